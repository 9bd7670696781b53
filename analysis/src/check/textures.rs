//! Textures, samplers and surfaces: the operands before the coordinates, in both texture modes.

use ptx_backend::input::{AddressBase, Operand, Symbol};
use ptx_isa::{Gate, Mod, ScalarType, TypeKind};
use text_size::TextRange;

use super::operands::is_sum;
use super::{Context, Statement, lints};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// A texture access has a sampler in unified texture mode, or lacks one in independent texture mode.
    pub(crate) TEXTURE_MODE = "E0309" "texture-mode", Error, since "0.1.0"
}

/// The version that introduced textures given by a register with their address.
pub(super) const INDIRECT: Gate = Gate::since(3, 1, 20);
/// The version that introduced a sampler operand for a texture that includes its own.
const SAMPLER: Gate = Gate::since(4, 3, 30);
/// The version that introduced the second result of a texture access: whether all texels are resident.
const RESIDENCY: Gate = Gate::since(7, 1, 60);

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    let is_independent = ctx.header.target.has_independent_samplers();
    let wanted: &[ScalarType] = match statement.form.mnemonic() {
        "tex" | "tld4" if is_independent => &[ScalarType::TexRef, ScalarType::SamplerRef],
        "tex" | "tld4" => &[ScalarType::TexRef],
        "txq" if statement.opcode.mods().any(|m| asks_sampler(m, is_independent)) => {
            &[ScalarType::SamplerRef]
        }
        "txq" => &[ScalarType::TexRef],
        "suld" | "sust" | "sured" | "suq" => &[ScalarType::SurfRef],
        _ => return,
    };
    for (operand, &range) in statement.operands.iter().zip(statement.ranges) {
        match operand {
            Some(Operand::List(parts)) => list(ctx, wanted, parts, range, out),
            Some(Operand::Address(_)) if is_sum(ctx.slice(range).trim_end_matches(']')) => {
                let message = "a texture or surface operand cannot have an offset";
                out.push(Diagnostic::new(&lints::ADDRESS, range, message));
            }
            Some(Operand::Address(address)) => {
                let first = match address.base {
                    AddressBase::Reg(register) => Operand::Reg(register),
                    AddressBase::Symbol(symbol) => Operand::Symbol(symbol, 0),
                    AddressBase::Absolute => Operand::Int(0),
                };
                out.extend(handle(ctx, &first, wanted[0], range));
            }
            Some(Operand::Pair(_)) => {
                let what = "a predicate result of a texture instruction".to_owned();
                out.extend(ctx.gates.check_phrase(&RESIDENCY, what, range));
            }
            _ => {}
        }
    }
}

/// Whether a query is about a sampler. In unified mode, the texture answers the other queries about sampling.
fn asks_sampler(query: Mod, is_independent: bool) -> bool {
    match query {
        Mod::ForceUnnormalizedCoords => true,
        Mod::FilterMode | Mod::AddrMode0 | Mod::AddrMode1 | Mod::AddrMode2 => is_independent,
        _ => false,
    }
}

/// `[texture, sampler, {coordinates}]`
fn list(ctx: &Context<'_>, wanted: &[ScalarType], parts: &[Operand], range: TextRange, out: &mut Findings) {
    let Some((_, handles)) = parts.split_last() else { return };
    match (wanted, handles) {
        ([texture @ ScalarType::TexRef], [first, Operand::Reg(_)]) => {
            out.extend(handle(ctx, first, *texture, range));
            out.extend(handle(ctx, &handles[1], ScalarType::SamplerRef, range));
            out.extend(ctx.gates.check_phrase(&SAMPLER, "a sampler in a register".to_owned(), range));
        }
        // ptxas accepts a texture or a surface as the sampler, without regard to its use.
        ([texture @ ScalarType::TexRef], [first, Operand::Symbol(second, _)])
            if is_reference(ctx, *second) && matches!(parts.last(), Some(Operand::Vector(_))) =>
        {
            out.extend(handle(ctx, first, *texture, range));
        }
        ([_], [_, _]) => {
            let message = "a separate sampler is not allowed in unified texture mode";
            let note = "write `.target …, texmode_independent` to use separate samplers";
            out.push(Diagnostic::new(&TEXTURE_MODE, range, message).note(note));
        }
        ([_, _], [_]) => {
            let message = "missing sampler: independent texture mode requires `[texture, sampler, …]`";
            out.push(Diagnostic::new(&TEXTURE_MODE, range, message).rule());
        }
        _ => {
            let both = wanted.iter().zip(handles);
            out.extend(both.filter_map(|(&wanted, part)| handle(ctx, part, wanted, range)));
        }
    }
}

fn is_reference(ctx: &Context<'_>, symbol: Symbol) -> bool {
    let is_opaque =
        |place: &super::VariableFacts| matches!(place.ty, ScalarType::TexRef | ScalarType::SurfRef);
    ctx.variables.get(&symbol).is_some_and(is_opaque)
}

fn handle(ctx: &Context<'_>, operand: &Operand, wanted: ScalarType, range: TextRange) -> Option<Diagnostic> {
    let bad = |found: &str| {
        let message = format!(
            "expected a `.{}` or a 64-bit register that holds its address, found {found}",
            wanted.text()
        );
        Some(Diagnostic::new(&lints::ADDRESS, range, message))
    };
    match operand {
        Operand::Reg(register) => {
            let ty = ctx.register_type(*register);
            let is_integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
            if !is_integer || ty.bits() != 64 {
                return bad(&format!("a register of type `.{}`", ty.text()));
            }
            ctx.gates.check_phrase(&INDIRECT, "a texture address in a register".to_owned(), range)
        }
        Operand::Symbol(symbol, _) => match ctx.variables.get(symbol) {
            Some(place) if place.is_array => bad(&format!("an array of `.{}`", place.ty.text())),
            Some(place) if place.ty != wanted => bad(&format!("a variable of type `.{}`", place.ty.text())),
            Some(_) => None,
            None => bad("a name that is not a variable"),
        },
        _ => bad("something else"),
    }
}
