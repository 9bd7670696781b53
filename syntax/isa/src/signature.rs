//! The operands that an instruction expects: the columns of its row, with the rules of its name applied.
//!
//! A signature is computed once for each name and used for all instructions with that name. So everything that depends
//! only on the name is computed here.

use crate::model::{
    Base, Class, Column, Lanes, Matrix, Operand, OperandType, Part, Presence, Role, Sparse, Then, Values,
    Window,
};
use crate::table::{self, FormId};
use crate::{Gate, Mod, Opcode, ScalarType, Space, TypeKind};

/// The possible operands of the instruction, in order.
#[derive(Clone, PartialEq, Debug)]
pub struct Signature {
    pub operands: Box<[Expected]>,
    /// How many of them are required.
    pub least: usize,
}

/// An operand in a [`Signature`].
#[derive(Clone, PartialEq, Debug)]
pub struct Expected {
    /// The operand's name in the manual.
    pub name: &'static str,
    pub role: Role,
    pub class: Class,
    /// The classes that only the assembler accepts.
    pub beyond: Class,
    pub ty: ExpectedType,
    pub lanes: ExpectedLanes,
    pub values: Values,
    /// The parts before the last one in brackets, after the tensor map.
    pub head: &'static [Part],
    pub gate: Gate,
    /// Constants with additional requirements, and these requirements.
    pub gated: Option<(Values, Gate)>,
    /// Additional requirements of `_`.
    pub gated_sink: Option<Gate>,
    /// The classes of the operand if an optional operand is present, and the name of the latter.
    pub beside: Option<(&'static str, Class)>,
    pub optional: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpectedType {
    /// A register or a constant that can hold the type.
    Typed(ScalarType),
    /// An integer of this many bits, neither floating-point nor a packed pair.
    Integer(u32),
    /// Such an integer of 32 or 64 bits.
    Pointer,
    /// The same, but not an untyped register of 32 bits.
    Length,
    /// Any 32-bit register, or a predicate.
    Word,
    /// As `Typed`, or the name of a variable in the target.
    AddressOf(ScalarType, Target),
    /// A vector of registers that can hold the type, or a 64-bit integer.
    OrDescriptor(ScalarType),
    /// Coordinates of a texture or surface with this type: all elements, or those after an index.
    Coordinates(ScalarType, bool),
    Address(Target),
    Free,
}

/// The memory that an address refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// As in the table.
    pub base: Base,
    /// The state space, or the generic window if there is none.
    pub space: Space,
}

/// The numbers of elements that an operand may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpectedLanes {
    Any,
    Exactly(u32),
    Of(&'static [u8]),
    /// One of these in braces; or one value without braces, used for all elements.
    OrBare(&'static [u8]),
}

impl ExpectedLanes {
    pub fn contains(self, count: usize) -> bool {
        match self {
            ExpectedLanes::Any => true,
            ExpectedLanes::Exactly(expected) => count == expected as usize,
            ExpectedLanes::Of(counts) | ExpectedLanes::OrBare(counts) => {
                counts.iter().any(|&expected| count == usize::from(expected))
            }
        }
    }
}

impl Expected {
    /// The classes that the manual gives for the operand of this type.
    pub fn documented(&self) -> Class {
        let class = self.class.and_not(self.beyond);
        if !class.intersects(Class::REGISTER) || !class.intersects(Class::PREDICATE) {
            return class;
        }
        match self.ty {
            ExpectedType::Typed(ScalarType::Pred) => class.and_not(Class::REGISTER),
            ExpectedType::Typed(_) => class.and_not(Class::PREDICATE),
            _ => class,
        }
    }
}

/// The signature of an instruction.
pub fn signature(opcode: &Opcode) -> Signature {
    let form = table::form(opcode.form);
    let mut operands = Vec::with_capacity(form.operands.len());
    for row in form.operands {
        let mut row = *row;
        let (mut gated, mut gated_sink, mut beside) = (None, None, None);
        for rule in form.rules {
            if let Then::Operand(name, column) = rule.then
                && name == row.name
                && rule.when.holds(opcode)
            {
                match column {
                    Column::Gated(values, gate) => gated = Some((values, gate)),
                    Column::GatedSink(gate) => gated_sink = Some(gate),
                    Column::Beside(other, class) => beside = Some((other, class)),
                    column => apply(&mut row, column),
                }
            }
        }
        if let Some(optional) = presence(opcode, &row) {
            operands.push(Expected { gated, gated_sink, beside, ..expected(opcode, &row, optional) });
        }
    }
    let least = operands.iter().filter(|operand| !operand.optional).count();
    Signature { operands: operands.into(), least }
}

fn apply(row: &mut Operand, column: Column) {
    match column {
        Column::Class(class) => row.class = class,
        Column::Type(ty) => row.ty = ty,
        Column::Lanes(lanes) => row.lanes = lanes,
        Column::Values(values) => row.values = values,
        Column::Head(head) => row.head = head,
        Column::Presence(presence) => row.presence = presence,
        Column::Gate(gate) => row.gate = gate,
        Column::Gated(..) | Column::GatedSink(_) | Column::Beside(..) => {}
    }
}

fn has_bf16(opcode: &Opcode) -> bool {
    matches!(opcode.ty(0), Some(ScalarType::Bf16 | ScalarType::Bf16x2))
}

/// Whether the operand is optional. `None` if it must be absent.
fn presence(opcode: &Opcode, row: &Operand) -> Option<bool> {
    let any = |mods: &[Mod]| mods.iter().any(|&m| opcode.has(m));
    match row.presence {
        Presence::Always => Some(false),
        Presence::Optional => Some(true),
        Presence::Never => None,
        Presence::With(mods) => any(mods).then_some(false),
        Presence::Without(mods) => (!any(mods)).then_some(false),
        Presence::OptionalWith(mods) => any(mods).then_some(true),
    }
}

fn expected(opcode: &Opcode, row: &Operand, optional: bool) -> Expected {
    let scalar = row.lanes == Lanes::Bf16Pair && !has_bf16(opcode);
    Expected {
        name: row.name,
        role: row.role,
        class: if scalar { row.class.and_not(Class::VECTOR) } else { row.class },
        beyond: row.beyond,
        ty: expected_type(opcode, row.ty),
        lanes: expected_lanes(opcode, row.lanes),
        values: row.values,
        head: row.head,
        gate: row.gate,
        gated: None,
        gated_sink: None,
        beside: None,
        optional,
    }
}

fn expected_type(opcode: &Opcode, ty: OperandType) -> ExpectedType {
    let suffix = |i: u8| opcode.ty(usize::from(i));
    let typed = |ty: Option<ScalarType>| ty.map_or(ExpectedType::Free, ExpectedType::Typed);
    match ty {
        OperandType::Suffix(i) => typed(suffix(i)),
        OperandType::Wide(i) if opcode.has(Mod::Wide) => typed(suffix(i).map(widened)),
        OperandType::Wide(i) => typed(suffix(i)),
        OperandType::Is(ty) => ExpectedType::Typed(ty),
        OperandType::Integer(bits) => ExpectedType::Integer(bits.into()),
        OperandType::IntegerLike(i) => {
            suffix(i).map_or(ExpectedType::Free, |ty| ExpectedType::Integer(ty.bits()))
        }
        OperandType::FragmentOrDescriptor(matrix) => match fragment_type(opcode, matrix) {
            ExpectedType::Typed(ty) => ExpectedType::OrDescriptor(ty),
            ExpectedType::Integer(_) => ExpectedType::OrDescriptor(ScalarType::U32),
            other => other,
        },
        OperandType::Coordinates(i) => {
            const ARRAYS: [Mod; 4] = [Mod::A1d, Mod::A2d, Mod::Acube, Mod::A2dms];
            let array = ARRAYS.iter().any(|&m| opcode.has(m));
            suffix(i).map_or(ExpectedType::Free, |ty| ExpectedType::Coordinates(ty, array))
        }
        OperandType::Pointer => ExpectedType::Pointer,
        OperandType::Length => ExpectedType::Length,
        OperandType::Word => ExpectedType::Word,
        OperandType::Fragment(matrix) => fragment_type(opcode, matrix),
        OperandType::AddressOf(i, base) => {
            suffix(i).map_or(ExpectedType::Free, |ty| ExpectedType::AddressOf(ty, target(opcode, base)))
        }
        OperandType::Address(base) => ExpectedType::Address(target(opcode, base)),
        OperandType::Free => ExpectedType::Free,
    }
}

/// The type with twice as many bits.
fn widened(ty: ScalarType) -> ScalarType {
    match ty {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::U32 => ScalarType::U64,
        ScalarType::S32 => ScalarType::S64,
        other => other,
    }
}

fn target(opcode: &Opcode, base: Base) -> Target {
    let space = match base.window {
        Window::Named(i) => opcode.mods().filter_map(Mod::space).nth(usize::from(i)),
        Window::In(space) => Some(space),
        Window::Tensor | Window::Unchecked => None,
    };
    Target { base, space: space.unwrap_or(Space::Generic) }
}

fn expected_lanes(opcode: &Opcode, lanes: Lanes) -> ExpectedLanes {
    match lanes {
        Lanes::Any => ExpectedLanes::Any,
        Lanes::Of(counts) => ExpectedLanes::Of(counts),
        Lanes::OrBare(counts) => ExpectedLanes::OrBare(counts),
        Lanes::Named(factor) => {
            let named = opcode.mods().find_map(Mod::count).unwrap_or(1);
            ExpectedLanes::Exactly(u32::from(factor) * named)
        }
        Lanes::Bf16Pair if has_bf16(opcode) => ExpectedLanes::Any,
        Lanes::Bf16Pair => ExpectedLanes::Exactly(1),
        // With narrow floating-point types, the assembler accepts more than one register but reads only the first.
        Lanes::Fragment(Matrix::B) if opcode.form == FormId::MmaFp8 && opcode.has(Mod::M16n8k16) => {
            ExpectedLanes::Of(&[1, 2, 4])
        }
        Lanes::Sparse(part) => match sparse_registers(opcode, part) {
            Some(count) => ExpectedLanes::Exactly(count),
            None => ExpectedLanes::Any,
        },
        Lanes::Fragment(matrix) => match fragment_registers(opcode, matrix) {
            Some(count) => ExpectedLanes::Exactly(count),
            None => ExpectedLanes::Any,
        },
    }
}

/// The registers of a part of a sparse vector. The count modifier counts registers with kept elements in `spcompress`,
/// groups of elements in `spdecompress`, and elements in a load from tensor memory.
fn sparse_registers(opcode: &Opcode, part: Sparse) -> Option<u32> {
    let (group_keeps, of) = opcode.mods().find_map(Mod::kept)?;
    let count = opcode.mods().find_map(Mod::count)?;
    let (bits, index_bits) = (opcode.ty(0)?.bits(), opcode.ty(1)?.bits());
    let kept = match opcode.form {
        FormId::Spcompress => count * 32 / bits,
        FormId::Spdecompress => count * group_keeps,
        _ => count * group_keeps / of,
    };
    let whole = match part {
        Sparse::Metadata => kept * index_bits,
        Sparse::Kept => kept * bits,
        Sparse::Whole => kept * bits / group_keeps * of,
    };
    Some(whole.div_ceil(32))
}

/// Whether the instruction is a product of a whole warpgroup.
fn is_warp_group(opcode: &Opcode) -> bool {
    opcode.has(Mod::MmaAsync)
}

/// Whether integer factors may be in registers of any type. This is so for all products except the smallest one of
/// bytes.
fn has_untyped_factors(opcode: &Opcode) -> bool {
    let shape = opcode.mods().find_map(Mod::shape);
    matches!(opcode.form.mnemonic(), "mma" | "wgmma") && shape != Some((8, 8, 16))
}

/// The same for floating-point types that no register has: for narrow types without scale factors, and for all sparse
/// products.
fn has_untyped_floats(opcode: &Opcode, ty: ScalarType) -> bool {
    let sparse = opcode.has(Mod::Sp) || opcode.has(Mod::SpOrderedMetadata);
    let narrow = !matches!(ty, ScalarType::Bf16 | ScalarType::Tf32);
    opcode.form.mnemonic() == "mma" && !opcode.has(Mod::BlockScale) && (sparse || narrow)
}

/// The element type of a matrix. Names with two types (`wmma.mma` on halves) omit those of the factors.
fn element(opcode: &Opcode, matrix: Matrix) -> Option<ScalarType> {
    let types = opcode.types().count();
    let factors = |i| if types == 2 { Some(ScalarType::F16) } else { opcode.ty(i) };
    match matrix {
        _ if types == 1 => opcode.ty(0),
        Matrix::A => factors(1),
        Matrix::B => factors(2),
        Matrix::C if types == 2 => opcode.ty(1),
        Matrix::C => opcode.ty(3),
        Matrix::D => opcode.ty(0),
    }
}

/// The size of an element in a fragment, in bits. Narrow floating-point elements take a byte, or four bits in products
/// of `.kind::mxf4`.
fn element_bits(opcode: &Opcode, ty: ScalarType) -> u32 {
    match ty {
        ScalarType::E2m1 if opcode.has(Mod::KindMxf4) || opcode.has(Mod::KindMxf4nvf4) => 4,
        ScalarType::E2m1 | ScalarType::E2m3 | ScalarType::E3m2 => 8,
        ty => ty.bits(),
    }
}

/// The registers of one thread for a matrix: the elements are divided among the threads, and narrow ones are packed
/// into 32 bits.
fn fragment_registers(opcode: &Opcode, matrix: Matrix) -> Option<u32> {
    let (m, n, k) = opcode.mods().find_map(Mod::shape)?;
    let ty = element(opcode, matrix)?;
    let sparse = opcode.has(Mod::Sp) || opcode.has(Mod::SpOrderedMetadata);
    // Half factors of `wmma` have eight registers for every shape.
    if opcode.form.mnemonic() == "wmma" && ty == ScalarType::F16 && matches!(matrix, Matrix::A | Matrix::B) {
        return Some(8);
    }
    let elements = match matrix {
        Matrix::A if sparse => m * k / 2,
        Matrix::A => m * k,
        Matrix::B => k * n,
        Matrix::C | Matrix::D => m * n,
    };
    // The instruction computes four products at once, each with eight threads.
    let quads = (m, n, k) == (8, 8, 4) && opcode.form.mnemonic() == "mma" && ty != ScalarType::F64;
    let copies = if quads { 4 } else { 1 };
    let threads = if is_warp_group(opcode) { 128 } else { 32 };
    let per_register = (32 / element_bits(opcode, ty)).max(1);
    Some((elements * copies).div_ceil(threads * per_register))
}

/// The type of a fragment's registers. Integers and narrow floating-point elements are packed in untyped 32-bit
/// registers. If the assembler unpacks the factors itself, it accepts any registers of this width.
fn fragment_type(opcode: &Opcode, matrix: Matrix) -> ExpectedType {
    let is_factor = matches!(matrix, Matrix::A | Matrix::B);
    match element(opcode, matrix) {
        Some(ScalarType::F16) => ExpectedType::Typed(ScalarType::F16x2),
        Some(ty @ (ScalarType::F32 | ScalarType::F64)) => ExpectedType::Typed(ty),
        Some(ty) if ty.kind() == TypeKind::Float && is_warp_group(opcode) => {
            ExpectedType::Typed(ScalarType::F16x2)
        }
        Some(ty) if ty.kind() == TypeKind::Float && is_factor && has_untyped_floats(opcode, ty) => {
            ExpectedType::Typed(ScalarType::B32)
        }
        Some(ty) if ty.kind() == TypeKind::Float => ExpectedType::Typed(ScalarType::Bf16x2),
        Some(_) if is_factor && has_untyped_factors(opcode) => ExpectedType::Typed(ScalarType::B32),
        Some(_) => ExpectedType::Integer(32),
        None => ExpectedType::Free,
    }
}
