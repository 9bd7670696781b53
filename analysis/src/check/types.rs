//! Checks the types of registers against the types of the instruction.
//!
//! The rules are those of "Operand Type Checking" and "Operand Size Exceeding Instruction-Type Size" in the manual, as
//! ptxas applies them. An untyped instruction accepts registers of any kind, an integer instruction all except floats,
//! and a floating-point instruction those of its own type and untyped ones. Widths are equal, except that loads, stores
//! and conversions accept wider registers. A packed pair of halves counts as an integer. A vector has one type, on
//! which its elements agree.

use ptx_backend::input::Operand;
use ptx_isa::{
    Class, Expected, ExpectedLanes, ExpectedType, FormId, Mod, Opcode, Role, ScalarType, SpecialReg, TypeKind,
};
use text_size::TextRange;

use super::operands::is_sum;
use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// The type of a register does not match the instruction.
    pub(crate) OPERAND_TYPE = "E0303" "operand-type", Error, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    let Some(rows) = statement.rows else { return };
    if let Some(diagnostic) = predicate_first(ctx, statement) {
        out.push(diagnostic);
        return;
    }
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        let Some(operand) = operand else { continue };
        let wider = takes_wider(&statement.opcode, row);
        operand_type(ctx, row, operand, range, wider, is_counted(statement, row), out);
        if let Operand::Reg(register) = operand
            && (is_sum(ctx.slice(range))
                || row.ty == ExpectedType::Typed(ScalarType::Pred)
                    && ctx.register_type(*register).kind() == TypeKind::Packed)
            && super::operands::is_expanded(ctx, statement, row)
            // A fraction may be a sum of the right size.
            && !(statement.form.id == FormId::CreatepolicyFractional
                && accepts(row, ctx.register_type(*register), wider))
        {
            out.push(mismatch(ctx, row, ctx.register_type(*register), range, wider));
        }
    }
}

/// Reports `selp d, p, a, b`: the predicate must be the last operand.
fn predicate_first(ctx: &Context<'_>, statement: &Statement<'_>) -> Option<Diagnostic> {
    let is_predicate = |operand: &Option<Operand>| match operand {
        Some(Operand::Reg(register)) => ctx.register_type(*register) == ScalarType::Pred,
        Some(Operand::NotPred(_)) => true,
        _ => false,
    };
    let ([_, a, b, c], [_, first, second, third]) = (statement.operands, statement.ranges) else {
        return None;
    };
    if statement.form.id != FormId::Selp || !is_predicate(a) || is_predicate(b) || is_predicate(c) {
        return None;
    }
    let [predicate, one, other] = [first, second, third].map(|range| ctx.slice(*range));
    let message = format!("`{predicate}` is a predicate and must be the last operand of `selp`");
    let new = format!("{one}, {other}, {predicate}");
    Some(
        Diagnostic::new(&OPERAND_TYPE, *first, message)
            .note("`selp d, a, b, p` writes `a` to `d` if `p` is true, and `b` if it is false")
            .sure_fix(format!("change to `{new}`"), first.cover(*third), new),
    )
}

/// Whether the registers of an instruction may be wider than its types. Among conversions, this applies only to formats
/// that no register is declared with.
fn takes_wider(opcode: &Opcode, row: &Expected) -> bool {
    use FormId as F;
    let is_wide =
        |ty| matches!(row.ty, ExpectedType::Typed(own) if is_untyped_only(own)) || !is_untyped_only(ty);
    match opcode.form {
        F::CvtPack | F::CvtPackInto | F::CvtToScale4 | F::MultimemStAsync => true,
        form if form.mnemonic() == "cvt" => opcode.types().all(is_wide),
        form => {
            matches!(form.mnemonic(), "ld" | "ldu" | "st" | "suld" | "sust" | "sured")
                && !opcode.has(Mod::Async)
        }
    }
}

/// Whether the operand is the vector whose number of elements the instruction name states. ptxas accepts integers of
/// the same width for its floats.
fn is_counted(statement: &Statement<'_>, row: &Expected) -> bool {
    let has_count = [Mod::V2, Mod::V4, Mod::V8].iter().any(|&count| statement.opcode.has(count));
    let is_gradient = statement.form.id == FormId::Tex && row.role == Role::Source;
    has_count && !is_gradient
}

/// Whether the elements of a vector share the bits of the operand's type, because `mov` packs and unpacks.
fn shares(row: &Expected) -> bool {
    row.lanes == ExpectedLanes::Any && row.class.intersects(Class::SYMBOL)
        || row.class.intersects(Class::PREDICATE) && row.role == Role::Destination
}

/// The type of each element of a vector with the given number of elements.
pub(super) fn element_type(row: &Expected, count: usize) -> ExpectedType {
    match row.ty {
        ExpectedType::Typed(ty) if shares(row) => match ty.bits() / count.max(1) as u32 {
            16 => ExpectedType::Typed(ScalarType::B16),
            32 => ExpectedType::Typed(ScalarType::B32),
            64 => ExpectedType::Typed(ScalarType::B64),
            _ => ExpectedType::Free,
        },
        ty => ty,
    }
}

/// Whether an operand is a vector with the given number of elements.
fn counts(row: &Expected, elements: usize) -> bool {
    elements > 1 && row.lanes != ExpectedLanes::Any && row.lanes.contains(elements)
}

fn operand_type(
    ctx: &Context<'_>,
    row: &Expected,
    operand: &Operand,
    range: TextRange,
    wider: bool,
    counted: bool,
    out: &mut Findings,
) {
    match operand {
        Operand::Reg(register) | Operand::NotPred(register) => {
            let found = ctx.register_type(*register);
            let fits = match row.ty {
                ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) if is_sum(ctx.slice(range)) => {
                    fits_sum(ty, found)
                }
                // For sums, even the signedness of 32-bit registers does not matter.
                ExpectedType::Length if is_sum(ctx.slice(range)) => {
                    found == ScalarType::B32 || accepts(row, found, wider)
                }
                _ => accepts(row, found, wider),
            };
            if !fits {
                out.push(mismatch(ctx, row, found, range, wider));
            }
        }
        Operand::Vector(elements) => match unify(ctx, elements) {
            Ok(None) if !shares(row) || elements.is_empty() => {}
            // Only untyped values can be packed.
            Ok(None) if matches!(row.ty, ExpectedType::Typed(ty) if ty.kind() != TypeKind::Bits) => {
                out.push(mismatch(ctx, row, ScalarType::B32, range, wider));
            }
            Ok(None) => {}
            Ok(Some(found)) => {
                let share = shares(row);
                let fits = match row.ty {
                    ExpectedType::Typed(ty) if share => {
                        let count = elements.len() as u32;
                        // Only untyped values can be packed and unpacked.
                        ty.kind() == TypeKind::Bits
                            && count <= 4
                            && bits_of(found) * count == ty.bits()
                            && (fits(untyped(found), found, false) || found == ScalarType::Pred)
                    }
                    ExpectedType::OrDescriptor(ty) => fits(ty, found, false),
                    ExpectedType::Typed(ty) if counted && ty.kind() == TypeKind::Float => {
                        let is_integer = matches!(found.kind(), TypeKind::Unsigned | TypeKind::Signed);
                        accepts(row, found, wider) || is_integer && found.bits() == ty.bits()
                    }
                    // Surfaces are accessed by their bits, whatever the element types are.
                    ExpectedType::Typed(ty) if wider && row.lanes == ExpectedLanes::Any => {
                        bits_of(found) * elements.len() as u32 >= ty.bits()
                    }
                    _ => accepts(row, found, wider),
                };
                let name = ctx.slice(range);
                let fits = match (&elements[0], row.ty) {
                    // A whole vector of special registers.
                    (Operand::Special(first), ExpectedType::Typed(ty))
                        if name.starts_with('%') && counts(row, elements.len()) =>
                    {
                        special(ty, *first, wider)
                    }
                    _ => fits,
                };
                if !fits {
                    out.push(match row.ty {
                        _ if name.starts_with('%') && counts(row, elements.len()) => {
                            let (found, expected) = (found.bits(), describe(row.ty, wider));
                            let message = format!(
                                "the components of `{name}` are {found}-bit integers, expected {expected}"
                            );
                            Diagnostic::new(&OPERAND_TYPE, range, message).note(relation(row, wider))
                        }
                        _ if name.starts_with('%') => {
                            let message =
                                format!("`{name}` is a vector, expected {}", describe(row.ty, wider));
                            let first = format!("{name}.x");
                            Diagnostic::new(&OPERAND_TYPE, range, message)
                                .note(format!("its components are `{first}`, `{name}.y` and `{name}.z`"))
                                .fix(format!("change to `{first}`"), range, first)
                        }
                        ExpectedType::Typed(ty) if share && ty.kind() == TypeKind::Bits => {
                            packed(elements.len(), found, ty, range)
                        }
                        _ => mismatch(ctx, row, found, range, wider),
                    });
                }
            }
            Err(()) => {
                let message = "elements of this vector have different types";
                let note = "all elements must have the same size and be either all integers or all of one floating-point type";
                out.push(Diagnostic::new(&OPERAND_TYPE, range, message).note(note));
            }
        },
        Operand::Pair(pair) => {
            operand_type(ctx, row, &pair.0, range, wider, counted, out);
            // The second result of all these instructions is a predicate.
            if let Operand::Reg(register) = pair.1
                && ctx.register_type(register) != ScalarType::Pred
            {
                let message = format!(
                    "expected a predicate as the second destination, found `.{}`",
                    ctx.register_type(register).text()
                );
                let note = "the second destination of a pair tells whether the first one is valid";
                out.push(Diagnostic::new(&OPERAND_TYPE, range, message).note(note));
            }
        }
        Operand::List(parts) => {
            // Without braces it has the type of any operand; in braces, integers are accepted for floats.
            let bare = match (parts.last(), row.ty) {
                (Some(Operand::Reg(register)), ExpectedType::Coordinates(ty, _)) => {
                    let found = ctx.register_type(*register);
                    (!fits(ty, found, false)).then_some(found)
                }
                (Some(Operand::Reg(register)), ExpectedType::Integer(_)) => {
                    let found = ctx.register_type(*register);
                    (!accepts(row, found, false)).then_some(found)
                }
                _ => None,
            };
            if let Some(found) = bare {
                out.push(mismatch(ctx, row, found, range, false));
            }
            if let Some(Operand::Vector(coordinates)) = parts.last()
                && !are_coordinates(ctx, row.ty, coordinates)
            {
                let message = match (row.ty, coordinates.first()) {
                    (ExpectedType::Coordinates(_, true), Some(index)) if !is_index(ctx, index) => {
                        "the array index, the first element, must be a 32-bit integer".to_owned()
                    }
                    _ => format!("expected {}", describe(row.ty, false)),
                };
                out.push(Diagnostic::new(&OPERAND_TYPE, range, message).note(relation(row, false)));
            }
        }
        Operand::Special(register) if row.class.intersects(Class::SPECIAL) => {
            if let ExpectedType::Typed(expected) = row.ty
                && !special(expected, *register, wider)
            {
                out.push(mismatch(ctx, row, register.ty(), range, wider));
            }
        }
        _ => {}
    }
}

/// Whether a special register can be read as the type. The oldest ones can also be read with 16 bits.
fn special(expected: ScalarType, register: SpecialReg, wider: bool) -> bool {
    let found = register.ty();
    match expected.kind() {
        TypeKind::Pred => found == ScalarType::Pred,
        TypeKind::Float | TypeKind::Packed | TypeKind::Opaque => false,
        _ if found == ScalarType::Pred => false,
        _ => {
            let bits = expected.bits();
            found.bits() == bits
                || wider && found.bits() > bits
                || bits < 32 && register.is_index()
                || bits <= 32 && register == SpecialReg::Gridid
        }
    }
}

fn mismatch(
    ctx: &Context<'_>,
    row: &Expected,
    found: ScalarType,
    range: TextRange,
    wider: bool,
) -> Diagnostic {
    let name = ctx.slice(range);
    let message = format!("`{name}` is `.{}`, expected {}", found.text(), describe(row.ty, wider));
    let diagnostic = Diagnostic::new(&OPERAND_TYPE, range, message).note(relation(row, wider));
    let Some(expected) = number(row.ty) else { return diagnostic };
    let is_number =
        |ty: ScalarType| matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
    match (found, expected) {
        (ScalarType::Pred, _) => diagnostic.note("use `selp` to turn a predicate into a number"),
        (_, ScalarType::Pred) => diagnostic.note("use `setp` to turn a comparison into a predicate"),
        _ if row.role == Role::Source
            && is_number(found)
            && is_number(expected)
            && found.bits() != expected.bits() =>
        {
            let (to, from) = (expected.bits(), found.bits());
            diagnostic.note(format!(
                "use `cvt.u{to}.u{from}` to zero-extend or truncate, `cvt.s{to}.s{from}` to sign-extend"
            ))
        }
        _ => diagnostic,
    }
}

/// Reports a vector whose elements are not the parts of the type.
fn packed(count: usize, found: ScalarType, ty: ScalarType, range: TextRange) -> Diagnostic {
    let (bits, whole) = (bits_of(found), ty.bits());
    let message = match bits * count as u32 {
        all if all == whole => format!("{count} elements of type `.{}` cannot be packed", found.text()),
        all => format!("{count} elements of {bits} bits make {all} bits, expected {whole}"),
    };
    let note = "`mov` packs 2 or 4 untyped elements into one register, or unpacks one into 2 or 4";
    Diagnostic::new(&OPERAND_TYPE, range, message).note(note)
}

/// Merges findings of a statement that report the same error for several operands.
pub(crate) fn gather(findings: &mut Vec<Diagnostic>) {
    let said =
        |d: &Diagnostic| d.message.split_once("` is ").map(|(name, rest)| (name.to_owned(), rest.to_owned()));
    let mut at = 0;
    while at < findings.len() {
        if let Some((_, rest)) = said(&findings[at]).filter(|_| findings[at].lint == &OPERAND_TYPE) {
            let is_same =
                |d: &Diagnostic| d.lint == &OPERAND_TYPE && said(d).is_some_and(|(_, other)| other == rest);
            let mut same: Vec<String> = findings[at + 1..]
                .iter()
                .filter(|d| is_same(d))
                .filter_map(|d| Some(said(d)?.0 + "`"))
                .collect();
            same.dedup();
            let mut index = 0;
            findings.retain(|d| {
                index += 1;
                index - 1 <= at || !is_same(d)
            });
            match same.as_slice() {
                [] => {}
                [only] => findings[at].notes.push(format!("{only} has the same type")),
                several => findings[at].notes.push(format!("{} have the same type", several.join(", "))),
            }
        }
        at += 1;
    }
}

/// The expected type of a single register.
fn number(ty: ExpectedType) -> Option<ScalarType> {
    match ty {
        ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) => Some(ty),
        ExpectedType::Integer(32) => Some(ScalarType::B32),
        ExpectedType::Integer(64) => Some(ScalarType::B64),
        _ => None,
    }
}

/// The relation between an operand's type and the instruction's type, in words.
fn relation(row: &Expected, wider: bool) -> String {
    let (ty, rule) = match row.ty {
        ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) => {
            let rule = match ty.kind() {
                TypeKind::Pred => "only `.pred` registers can hold it",
                TypeKind::Bits if wider => {
                    "a register of any non-predicate type and at least this size can hold it"
                }
                TypeKind::Bits => "a register of any non-predicate type and this size can hold it",
                TypeKind::Unsigned | TypeKind::Signed if wider => {
                    "a signed, unsigned or untyped register of at least this size can hold it"
                }
                TypeKind::Unsigned | TypeKind::Signed => {
                    "a signed, unsigned or untyped register of this size can hold it"
                }
                TypeKind::Opaque => "textures, samplers and surfaces are passed as 64-bit addresses",
                _ if is_untyped_only(ty) => {
                    "registers cannot have this type; use an untyped register of its size"
                }
                TypeKind::Float | TypeKind::Packed => {
                    let more = if wider { " or more" } else { "" };
                    return format!(
                        "operand `{}` accepts `.{}`, or an untyped register of {} bits{more}",
                        row.name,
                        ty.text(),
                        ty.bits()
                    );
                }
            };
            (format!("a `.{}`", ty.text()), rule)
        }
        ExpectedType::Integer(bits) => {
            (format!("an integer of {bits} bits"), "packed and floating-point registers cannot hold it")
        }
        ExpectedType::Pointer => ("an address".to_owned(), "an address is an integer"),
        ExpectedType::Length => {
            ("a length".to_owned(), "a length is an integer; a 32-bit one must be `.u32` or `.s32`")
        }
        ExpectedType::Word => {
            ("32 bits wide or a predicate".to_owned(), "the type of the register does not matter")
        }
        ExpectedType::OrDescriptor(_) => {
            ("a matrix".to_owned(), "it is passed in registers, or in shared memory through a descriptor")
        }
        ExpectedType::Coordinates(..) => (
            "a vector of coordinates".to_owned(),
            "all of them have the type named by the instruction, except that an array index is an integer",
        ),
        ExpectedType::Address(_) | ExpectedType::Free => ("a name".to_owned(), "it has no type"),
    };
    format!("operand `{}` is {ty}: {rule}", row.name)
}

/// The number of bits of a vector's element; predicates may appear among 32-bit registers.
fn bits_of(ty: ScalarType) -> u32 {
    if ty == ScalarType::Pred { 32 } else { ty.bits() }
}

/// The untyped type of the same size.
fn untyped(ty: ScalarType) -> ScalarType {
    match bits_of(ty) {
        8 => ScalarType::B8,
        16 => ScalarType::B16,
        32 => ScalarType::B32,
        64 => ScalarType::B64,
        _ => ScalarType::B128,
    }
}

/// What neighboring elements of a vector must have in common besides their width. An untyped register agrees with any
/// neighbor.
#[derive(Clone, Copy, PartialEq)]
enum Nature {
    Integer,
    /// A floating-point constant.
    Float,
    Of(ScalarType),
}

impl Nature {
    fn of(ty: ScalarType) -> Option<Self> {
        match ty.kind() {
            TypeKind::Bits => None,
            TypeKind::Unsigned | TypeKind::Signed => Some(Self::Integer),
            _ => Some(Self::Of(ty)),
        }
    }

    fn agrees(self, other: Self) -> bool {
        let is_float = |nature| matches!(nature, Self::Of(ty) if ty.kind() == TypeKind::Float);
        self == other || self == Self::Float && is_float(other) || other == Self::Float && is_float(self)
    }
}

/// The type on which the elements agree; `None` if none of them is a register.
///
/// An untyped register agrees with all types of its width, and signed registers agree with unsigned ones. Otherwise
/// only neighbors are compared, as in ptxas.
fn unify(ctx: &Context<'_>, elements: &[Operand]) -> Result<Option<ScalarType>, ()> {
    let mut all: Option<ScalarType> = None;
    let mut before: Option<Nature> = None;
    for element in elements {
        let (ty, nature) = match element {
            Operand::Reg(register) => {
                let ty = ctx.register_type(*register);
                (Some(ty), Nature::of(ty))
            }
            Operand::Special(register) => (Some(untyped(register.ty())), None),
            Operand::Int(_) => (None, Some(Nature::Integer)),
            Operand::F32(_) | Operand::F64(_) => (None, Some(Nature::Float)),
            Operand::Sink => continue,
            _ => return Err(()),
        };
        if let (Some(before), Some(nature)) = (before, nature)
            && !before.agrees(nature)
        {
            return Err(());
        }
        before = nature;
        if let Some(ty) = ty {
            all = Some(match all {
                None => ty,
                Some(known) => join(known, ty).ok_or(())?,
            });
        }
    }
    Ok(all)
}

fn join(a: ScalarType, b: ScalarType) -> Option<ScalarType> {
    use TypeKind::*;
    if a == b {
        return Some(a);
    }
    if bits_of(a) != bits_of(b) {
        return None;
    }
    match (a.kind(), b.kind()) {
        (Bits, _) | (_, Bits) | (Unsigned, Signed) | (Signed, Unsigned) => Some(untyped(a)),
        _ => None,
    }
}

/// Whether a register of type `found` can be an operand of an instruction, or an element of one.
pub(crate) fn takes_register(opcode: &Opcode, row: &Expected, found: ScalarType) -> bool {
    match row.ty {
        ExpectedType::OrDescriptor(ty) => fits(ty, found, false) || accepts(row, found, false),
        _ => accepts(row, found, takes_wider(opcode, row)),
    }
}

/// Whether a register of type `found` can be the operand.
fn accepts(row: &Expected, found: ScalarType, wider: bool) -> bool {
    let integer = matches!(found.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
    match row.ty {
        // Where any register may appear, ptxas accepts a packed pair as a predicate.
        ExpectedType::Typed(ScalarType::Pred) => {
            found == ScalarType::Pred
                || found.kind() == TypeKind::Packed && row.class.intersects(Class::REGISTER)
        }
        ExpectedType::Typed(ty) if found == ScalarType::Pred && is_untyped_only(ty) => {
            row.class.intersects(Class::PREDICATE)
        }
        ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) => fits(ty, found, wider),
        ExpectedType::Integer(_) if found == ScalarType::Pred => row.class.intersects(Class::PREDICATE),
        ExpectedType::Integer(bits) => integer && found.bits() == bits,
        ExpectedType::Word if found == ScalarType::Pred => row.class.intersects(Class::PREDICATE),
        ExpectedType::Word => found.bits() == 32,
        ExpectedType::Pointer => integer && matches!(found.bits(), 32 | 64),
        ExpectedType::Length => {
            integer && (found.bits() == 64 || found.bits() == 32 && found != ScalarType::B32)
        }
        // The operand of this kind that is not a vector.
        ExpectedType::OrDescriptor(_) => integer && found.bits() == 64,
        // Without brackets: any register, or the 64 bits of an address.
        ExpectedType::Address(_) => row.class.intersects(Class::PREDICATE) || integer && found.bits() == 64,
        ExpectedType::Coordinates(..) | ExpectedType::Free => true,
    }
}

fn is_integer(ty: ScalarType) -> bool {
    matches!(Nature::of(ty), None | Some(Nature::Integer))
}

/// Whether an operand can be the index of a texture array, which is the first coordinate.
fn is_index(ctx: &Context<'_>, element: &Operand) -> bool {
    match element {
        Operand::Reg(register) => {
            let ty = ctx.register_type(*register);
            is_integer(ty) && ty.bits() == 32
        }
        Operand::Special(register) => register.ty().bits() == 32,
        element => matches!(element, Operand::Int(_)),
    }
}

/// Whether the elements can be the coordinates of a texture or surface. In braces, integers are accepted for floats,
/// but constants are not, and packed registers are accepted for integers.
fn are_coordinates(ctx: &Context<'_>, expected: ExpectedType, elements: &[Operand]) -> bool {
    let (elements, ty) = match (expected, elements) {
        (ExpectedType::Coordinates(_, true), [index, ..]) if !is_index(ctx, index) => return false,
        (ExpectedType::Coordinates(ty, true), [_, rest @ ..]) => (rest, Some(ty)),
        (ExpectedType::Coordinates(ty, false), all) => (all, Some(ty)),
        (_, all) => (all, None),
    };
    let Ok(found) = unify(ctx, elements) else { return false };
    match (found, ty, expected) {
        // After an index, ptxas compares only the size, and takes predicates as all ones or zero.
        (Some(found), _, ExpectedType::Coordinates(_, true)) => {
            found.bits() == 32 || found == ScalarType::Pred
        }
        (Some(found), Some(ty), _) => {
            let own = if ty == ScalarType::F32 { TypeKind::Float } else { TypeKind::Packed };
            found.bits() == 32 && (is_integer(found) || found.kind() == own)
        }
        (None, Some(ScalarType::F32), _) => {
            elements.iter().any(|element| !matches!(element, Operand::Int(_)))
        }
        (None, _, ExpectedType::Coordinates(_, false) | ExpectedType::Integer(_)) => {
            elements.iter().all(|element| matches!(element, Operand::Int(_) | Operand::Sink))
        }
        (Some(found), None, ExpectedType::Integer(bits)) => found.bits() == bits && is_integer(found),
        _ => true,
    }
}

/// Whether only untyped registers can have the type.
pub(super) fn is_untyped_only(ty: ScalarType) -> bool {
    use ScalarType::*;
    match ty.kind() {
        TypeKind::Float => !matches!(ty, F16 | F32 | F64),
        TypeKind::Packed => !matches!(ty, F16x2 | U16x2 | S16x2 | U8x4 | S8x4),
        _ => false,
    }
}

/// Whether an integer constant can have the type.
pub(super) fn takes_integers(ty: ScalarType) -> bool {
    matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed | TypeKind::Pred)
}

/// Whether a register of type `found` can hold a value of the instruction type `expected`.
fn fits(expected: ScalarType, found: ScalarType, wider: bool) -> bool {
    let width = found.bits() == expected.bits() || wider && found.bits() > expected.bits();
    agrees(expected, found, width)
}

/// The same for `%r1+4`, whose width ptxas does not check.
fn fits_sum(expected: ScalarType, found: ScalarType) -> bool {
    let floats = expected.kind() == TypeKind::Float && found.kind() == TypeKind::Float;
    agrees(expected, found, true) || floats || expected == found
}

fn agrees(expected: ScalarType, found: ScalarType, width: bool) -> bool {
    use TypeKind::*;
    let integer = |kind| matches!(kind, Bits | Unsigned | Signed | Packed);
    match (expected.kind(), found.kind()) {
        (_, Pred) => false,
        (Opaque, _) | (_, Opaque) => found.bits() == 64,
        // A format that no register can be declared with takes a whole register.
        (_, kind) if is_untyped_only(expected) => kind == Bits && found.bits() == expected.bits(),
        (Float | Packed, Bits) => width,
        (Bits, _) => width,
        (Unsigned | Signed, kind) => width && integer(kind),
        (Float, Float) => found == expected,
        (Packed, Packed) => width,
        (Float | Packed | Pred, _) => false,
    }
}

/// "an 8-bit register", "an integer register of at least 16 bits"
fn sized(bits: u32, wider: bool, what: &str) -> String {
    let article = |word: &str| if word.starts_with(['8', 'i']) { "an" } else { "a" };
    match wider {
        true => format!("{} {what} of at least {bits} bits", article(what)),
        false => format!("{} {bits}-bit {what}", article(&bits.to_string())),
    }
}

fn describe(ty: ExpectedType, wider: bool) -> String {
    match ty {
        ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) => {
            let bits = ty.bits();
            match ty.kind() {
                TypeKind::Pred => "a predicate".to_owned(),
                TypeKind::Bits => sized(bits, wider, "register"),
                TypeKind::Unsigned | TypeKind::Signed => sized(bits, wider, "integer register"),
                _ if is_untyped_only(ty) => format!("`.b{bits}` for `.{}`", ty.text()),
                _ => format!("`.{}` or `.b{bits}`", ty.text()),
            }
        }
        ExpectedType::Integer(bits) => sized(bits, false, "integer register"),
        ExpectedType::Pointer => "a 32-bit or 64-bit integer register".to_owned(),
        ExpectedType::Length => "a `.u32`, a `.s32` or a 64-bit integer register".to_owned(),
        ExpectedType::Word => "a 32-bit register".to_owned(),
        ExpectedType::OrDescriptor(_) => "a vector of 32-bit registers or a 64-bit descriptor".to_owned(),
        ExpectedType::Coordinates(ty, _) => format!("coordinates of type `.{}`", ty.text()),
        ExpectedType::Address(_) | ExpectedType::Free => "another register".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScalarType::*;

    #[test]
    fn as_the_assembler_has_it() {
        assert!(fits(U32, S32, false) && fits(S32, F16x2, false) && !fits(U32, F32, false));
        assert!(fits(B32, F32, false) && fits(F32, B32, false) && !fits(F32, U32, false));
        assert!(fits(F32, B64, true) && !fits(F32, F64, true) && !fits(F32, B64, false));
        assert!(fits(U8, B128, true) && !fits(U8, F32, true) && fits(B8, F32, true));
        assert!(fits(F16x2, B32, false) && !fits(F16x2, U32, false));
        assert!(fits(Bf16, B16, false) && !fits(Bf16, F16, false) && !fits(E4m3x2, U16, false));
        assert!(!fits(B32, Pred, false) && !fits(Pred, B32, false));
    }

    #[test]
    fn elements_agree_on_a_type() {
        assert_eq!(join(B32, F32), Some(B32));
        assert_eq!(join(U32, S32), Some(B32));
        assert_eq!(join(F32, U32), None);
        assert_eq!(join(B32, B64), None);
        assert_eq!(join(Pred, B32), Some(B32));
    }
}
