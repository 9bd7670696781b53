//! Textures and surfaces: what is in front of the coordinates, and whether it has a sampler of its own.

use ptx_backend::input::{Address, AddressBase, Operand, Symbol};
use ptx_isa::{Class, Gate, ScalarType, TypeKind};
use text_size::TextRange;

use super::{Context, Statement, lints};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// A texture access names a sampler although the module has unified texture mode.
    pub(crate) TEXTURE_MODE = "E0309" "texture-mode", Error, since "0.1.0"
}

/// Textures by a register with their address.
const INDIRECT: Gate = Gate::since(3, 1, 20);
/// The second result of a texture access: whether all of it is resident.
const RESIDENCY: Gate = Gate::since(7, 1, 60);

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    let wanted = match statement.form.mnemonic() {
        "tex" | "tld4" | "txq" => ScalarType::TexRef,
        "suld" | "sust" | "sured" | "suq" => ScalarType::SurfRef,
        _ => return,
    };
    let independent = ctx.header.target.options.iter().any(|option| option == "texmode_independent");
    for (operand, &range) in statement.operands.iter().zip(statement.ranges) {
        match operand {
            Some(Operand::List(parts)) => {
                if let [_, Operand::Symbol(..), _] = parts.as_slice()
                    && !independent
                {
                    let message = "a texture brings its own sampler in the unified texture mode";
                    let note = "write `.target …, texmode_independent` to name samplers";
                    out.push(Diagnostic::new(&TEXTURE_MODE, range, message).note(note));
                }
                out.extend(handle(ctx, parts.first(), wanted, range));
            }
            Some(Operand::Address(Address { base, .. })) => {
                let first = match base {
                    AddressBase::Reg(register) => Operand::Reg(*register),
                    AddressBase::Symbol(symbol) => Operand::Symbol(*symbol, 0),
                    AddressBase::Absolute => Operand::Int(0),
                };
                out.extend(handle(ctx, Some(&first), wanted, range));
            }
            Some(Operand::Pair(_)) => {
                let what = "the predicate of a texture access".to_owned();
                out.extend(ctx.gates.check_phrase(&RESIDENCY, what, range));
            }
            _ => {}
        }
    }
    debug_assert!(
        statement
            .form
            .operands
            .iter()
            .any(|row| { row.class.intersects(Class::TEXTURE) || row.class.intersects(Class::ADDRESS) })
    );
}

fn handle(
    ctx: &Context<'_>,
    operand: Option<&Operand>,
    wanted: ScalarType,
    range: TextRange,
) -> Option<Diagnostic> {
    let bad = |found: &str| {
        let message =
            format!("expected a `.{}` or a 64-bit register with its address, found {found}", wanted.text());
        Some(Diagnostic::new(&lints::ADDRESS, range, message))
    };
    match operand? {
        Operand::Reg(register) => {
            let ty = ctx.register_type(*register);
            if !matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed) || ty.bits() != 64
            {
                return bad(&format!("a register of type `.{}`", ty.text()));
            }
            ctx.gates.check_phrase(&INDIRECT, "a texture by its address".to_owned(), range)
        }
        Operand::Symbol(symbol @ (Symbol::Global(_) | Symbol::Local(_)), _) => {
            let place = ctx.variables.get(symbol)?;
            let fits = place.ty == wanted || wanted == ScalarType::TexRef && is_sampler_query(ctx, place.ty);
            if fits { None } else { bad(&format!("a variable of type `.{}`", place.ty.text())) }
        }
        Operand::Symbol(..) => None,
        _ => bad("something else"),
    }
}

/// Queries may ask samplers where they are variables of their own.
fn is_sampler_query(ctx: &Context<'_>, ty: ScalarType) -> bool {
    ty == ScalarType::SamplerRef
        && ctx.header.target.options.iter().any(|option| option == "texmode_independent")
}
