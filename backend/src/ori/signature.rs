//! The operands of operations, in the terms that rows of the operation table use.
//!
//! A slot has a file and a width, the kinds of operands that the machine instruction accepts, the modifiers, and the
//! position in the machine instruction. Trailing destinations that are discarded, and trailing predicate sources with
//! their neutral value, may be omitted; the signature states how many.

pub use super::facts::{Interpretation, fold_modifiers};
pub use super::operations::{facts, signature};

use crate::ori::ir::{Dst, File, Inst, Src, SrcKind};
use crate::ori::memory::Space;
use crate::ori::op::{
    AtomType, ByteLayout, CasSize, Dims, FloatType, IntType, ManyFloat, ManyInt, MatrixCount, MemSize, Sr,
    SurfDims, SurfType, TensorCount, TensorLanes, TensorMode, TexDims, TexLevel, TexRead,
};
use sass::Field;
use smallvec::SmallVec;

/// The number of registers of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    Exactly(u8),
    OneOrTwo,
    Any,
}

impl Width {
    pub const fn admits(self, width: u8) -> bool {
        match self {
            Width::Exactly(n) => n == width,
            Width::OneOrTwo => width == 1 || width == 2,
            Width::Any => true,
        }
    }
}

/// The kinds of operands that a source slot accepts besides the zero or true register of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accept(u8);

impl Accept {
    pub const REG: Accept = Accept(1);
    pub const UR: Accept = Accept(2);
    pub const IMM: Accept = Accept(4);
    pub const CONST: Accept = Accept(8);
    /// Any kind; at most one operand of an instruction is not a register.
    pub const ALU: Accept = Accept(15);

    pub const fn or(self, other: Accept) -> Accept {
        Accept(self.0 | other.0)
    }

    pub const fn has(self, kind: Accept) -> bool {
        self.0 & kind.0 == kind.0
    }
}

/// The modifiers that a source slot accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mods {
    pub neg: bool,
    pub abs: bool,
    pub not: bool,
}

impl Mods {
    pub const NONE: Mods = Mods { neg: false, abs: false, not: false };
    pub const NEG: Mods = Mods { neg: true, abs: false, not: false };
    pub const NOT: Mods = Mods { neg: false, abs: false, not: true };
    pub const FLOAT: Mods = Mods { neg: true, abs: true, not: false };
}

/// The position of an operand in the machine instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// The sources whose kinds choose the form; see [`sass::lookup`].
    A,
    B,
    C,
    /// A separate field.
    In(Field),
    /// A register in the first field, or an immediate in the bits of the mask in the second field; the kind selects the
    /// form.
    Either(Field, Field, u32),
    /// `c[bank][offset]`.
    Constant,
    /// The stored value, whose field depends on the form.
    Data,
    /// An address in global or generic memory. A uniform register selects the form that adds one to a register, which
    /// is then RZ; only targets without descriptors have such forms.
    Address,
    /// The descriptor of the global window, in forms that have one.
    Descriptor,
    /// A uniform base of the address. A register selects the form that adds one.
    Base,
    /// The descriptor of a cache policy, in forms that have one.
    Policy,
    /// A uniform register with further properties of a tensor copy, in forms that have one.
    Extra,
    /// Set by special code of the family, or not encoded.
    Custom,
    /// In the register of the calling convention.
    Each,
}

impl From<Field> for At {
    fn from(field: Field) -> At {
        At::In(field)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SrcSlot {
    pub file: File,
    pub width: Width,
    pub accept: Accept,
    pub mods: Mods,
    /// The operand of the slot if the instruction omits it; only trailing slots can be omitted.
    pub neutral: Option<Src>,
    pub at: At,
    /// An immediate is the lower half of a pair, and its sign is the upper half. In other slots for pairs, an immediate
    /// is the upper half of a double.
    pub extended: bool,
    /// The operation with its current modifiers has no such operand.
    absent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DstSlot {
    pub file: File,
    pub width: Width,
    /// May be omitted, which means [`Dst::Sink`].
    pub optional: bool,
    pub at: Field,
    /// Represents any number of results, each in its register of the calling convention.
    each: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    pub dsts: SmallVec<[DstSlot; 3]>,
    pub srcs: SmallVec<[SrcSlot; 5]>,
    /// Only for `Pack`, which has as many sources as its result has registers.
    pub variadic: bool,
    /// After the results, and after the sources, there may be any number of values in registers of the calling
    /// convention.
    pub more_dsts: bool,
    pub more_srcs: bool,
}

impl SrcSlot {
    const fn new(file: File, accept: Accept, at: At) -> SrcSlot {
        SrcSlot {
            file,
            width: Width::Exactly(1),
            accept,
            mods: Mods::NONE,
            neutral: None,
            at,
            extended: false,
            absent: false,
        }
    }

    /// A slot that takes any operand of one file and width.
    pub const fn any_of(file: File, width: u8) -> SrcSlot {
        let mods = if matches!(file, File::P | File::UP) { Mods::NOT } else { Mods::NONE };
        SrcSlot { mods, width: Width::Exactly(width), ..SrcSlot::new(file, Accept::ALU, At::Custom) }
    }

    pub const fn or_absent(mut self, neutral: Src) -> SrcSlot {
        self.neutral = Some(neutral);
        self
    }

    pub const fn any_width(mut self) -> SrcSlot {
        self.width = Width::Any;
        self
    }

    pub const fn one_or_two(mut self) -> SrcSlot {
        self.width = Width::OneOrTwo;
        self
    }

    pub const fn wide(mut self, width: u8) -> SrcSlot {
        self.width = Width::Exactly(width);
        self
    }

    pub const fn neg(mut self) -> SrcSlot {
        self.mods.neg = true;
        self
    }

    pub const fn not(mut self) -> SrcSlot {
        self.mods.not = true;
        self
    }

    pub const fn neg_or_not(mut self, not: bool) -> SrcSlot {
        self.mods = Mods { neg: true, abs: false, not };
        self
    }

    pub const fn float(mut self) -> SrcSlot {
        self.mods = Mods::FLOAT;
        self
    }

    pub const fn extended(mut self) -> SrcSlot {
        self.extended = true;
        self
    }

    pub const fn no_constant(mut self) -> SrcSlot {
        self.accept = Accept::REG.or(Accept::IMM);
        self
    }

    pub const fn no_immediate(mut self) -> SrcSlot {
        self.accept = Accept::REG.or(Accept::CONST).or(Accept::UR);
        self
    }

    /// Removes the slot from the signature unless `present`.
    pub const fn only(mut self, present: bool) -> SrcSlot {
        self.absent = !present;
        self
    }
}

impl DstSlot {
    const fn new(file: File, width: Width, at: Field) -> DstSlot {
        DstSlot { file, width, optional: false, at, each: false }
    }

    pub const fn optional(mut self) -> DstSlot {
        self.optional = true;
        self
    }
}

impl Signature {
    pub(super) fn new(dsts: &[DstSlot], srcs: &[SrcSlot]) -> Signature {
        let more_dsts = dsts.last().is_some_and(|slot| slot.each);
        let more_srcs = srcs.last().is_some_and(|slot| slot.at == At::Each);
        let dsts = &dsts[..dsts.len() - usize::from(more_dsts)];
        let srcs = srcs[..srcs.len() - usize::from(more_srcs)].iter();
        let srcs: SmallVec<[SrcSlot; 5]> = srcs.filter(|slot| !slot.absent).copied().collect();
        let any_width = dsts.first().is_some_and(|dst| dst.width == Width::Any);
        let variadic = any_width && srcs.is_empty();
        Signature { dsts: SmallVec::from_slice(dsts), srcs, variadic, more_dsts, more_srcs }
    }
}

/// One general register.
pub(super) fn r(at: At) -> SrcSlot {
    SrcSlot::new(File::R, Accept::REG, at)
}

/// One general register, for operations that become several instructions.
pub(super) fn one() -> SrcSlot {
    r(At::Custom)
}

/// A register, an immediate, a constant or a uniform register.
pub(super) const fn alu(at: At) -> SrcSlot {
    SrcSlot::new(File::R, Accept::ALU, at)
}

pub(super) const fn r_or_imm(register: Field, immediate: Field, mask: u32) -> SrcSlot {
    SrcSlot::new(File::R, Accept::REG.or(Accept::IMM), At::Either(register, immediate, mask))
}

/// A predicate read straight or negated.
pub(super) const fn p(at: Field) -> SrcSlot {
    SrcSlot::new(File::P, Accept::REG, At::In(at)).not()
}

/// The same for the uniform datapath.
pub(super) const fn up(at: Field) -> SrcSlot {
    SrcSlot::new(File::UP, Accept::REG, At::In(at)).not()
}

/// A carry; omitted if there is none.
pub(super) const fn carry(at: Field) -> SrcSlot {
    p(at).or_absent(Src::FALSE)
}

/// The same for the uniform datapath.
pub(super) fn uniform_carry(at: Field) -> SrcSlot {
    up(at).or_absent(Src::FALSE)
}

/// A 64-bit address, or a 32-bit one of a windowed space.
/// The registers of a reduction over devices.
pub const fn many_int_registers(ty: ManyInt) -> u8 {
    match ty {
        ManyInt::B32 | ManyInt::S32 => 1,
        ManyInt::B64 | ManyInt::S64 => 2,
    }
}

pub const fn many_float_registers(ty: ManyFloat) -> u8 {
    use ManyFloat as M;
    match ty {
        M::F32 | M::F16x2 | M::Bf16x2 | M::E5m2x4 | M::E4m3x4 => 1,
        M::F64 | M::F32x2 | M::F16x4 | M::Bf16x4 | M::E5m2x8 | M::E4m3x8 => 2,
        M::F32x4 | M::F16x8 | M::Bf16x8 | M::E5m2x16 | M::E4m3x16 => 4,
    }
}

pub(super) fn address() -> SrcSlot {
    SrcSlot::new(File::R, Accept::REG.or(Accept::UR), At::Address).one_or_two()
}

/// A uniform register pair (the descriptor of global memory), or `Zero`.
pub(super) const fn descriptor() -> SrcSlot {
    SrcSlot::new(File::UR, Accept::REG, At::Descriptor).wide(2)
}

/// A uniform base added to a 32-bit address, or `Zero`.
pub(super) const fn uniform_base() -> SrcSlot {
    SrcSlot::new(File::UR, Accept::REG, At::Base)
}

/// A cache policy, or `Zero`.
pub(super) const fn policy() -> SrcSlot {
    SrcSlot::new(File::UR, Accept::REG, At::Policy).wide(2)
}

/// Blocks of the cluster and offsets in an image, or `Undef`.
pub(super) const fn extra() -> SrcSlot {
    SrcSlot::new(File::UR, Accept::REG, At::Extra)
}

/// The registers that a store writes to memory.
pub(super) const fn data(width: u8) -> SrcSlot {
    SrcSlot::new(File::R, Accept::REG, At::Data).wide(width)
}

pub(super) const fn uniform(at: At) -> SrcSlot {
    SrcSlot::new(File::UR, Accept::REG, at)
}

pub(super) const fn uniform_or_imm(at: At) -> SrcSlot {
    SrcSlot::new(File::UR, Accept::REG.or(Accept::IMM), at)
}

/// A constant read by the uniform datapath.
pub(super) const fn constant() -> SrcSlot {
    SrcSlot::new(File::UR, Accept::CONST, At::Constant)
}

pub(super) const fn barrier() -> SrcSlot {
    SrcSlot::new(File::B, Accept::REG, At::In(Field::Barrier))
}

pub(super) const R: DstSlot = result(1);
pub(super) const R2: DstSlot = result(2);
/// The last two of four registers.
pub(super) const UPPER2: DstSlot = DstSlot::new(File::R, Width::Exactly(2), Field::Rd2);
/// The minimum or maximum of the loaded words.
pub(super) const STAT: DstSlot = DstSlot::new(File::R, Width::Exactly(1), Field::Rd2);
/// The upper half of eight registers.
pub(super) const UPPER4: DstSlot = DstSlot::new(File::R, Width::Exactly(4), Field::Rd2);
pub(super) const P: DstSlot = DstSlot::new(File::P, Width::Exactly(1), Field::Pd);
/// A second predicate.
pub(super) const PQ: DstSlot = DstSlot::new(File::P, Width::Exactly(1), Field::Pq);
pub(super) const UR: DstSlot = uniform_result(1);
/// A predicate of the uniform datapath.
pub(super) const UP: DstSlot = DstSlot::new(File::UP, Width::Exactly(1), Field::Pd);
pub(super) const B_RESULT: DstSlot = DstSlot::new(File::B, Width::Exactly(1), Field::Barrier);

pub(super) const fn result(width: u8) -> DstSlot {
    DstSlot::new(File::R, Width::Exactly(width), Field::Rd)
}

/// Results with registers of the calling convention.
pub(super) const fn each_result() -> DstSlot {
    DstSlot { each: true, ..result(1) }
}

/// Sources with registers of the calling convention.
pub(super) const fn each_source() -> SrcSlot {
    SrcSlot::new(File::R, Accept::REG, At::Each)
}

pub(super) const fn any_result() -> DstSlot {
    DstSlot::new(File::R, Width::Any, Field::Rd)
}

pub(super) const fn uniform_result(width: u8) -> DstSlot {
    DstSlot::new(File::UR, Width::Exactly(width), Field::URd)
}

/// Registers of an element in a memory access.
pub const fn size_registers(size: MemSize) -> u8 {
    match size {
        MemSize::U8 | MemSize::S8 | MemSize::U16 | MemSize::S16 | MemSize::B32 => 1,
        MemSize::B64 => 2,
        MemSize::B128 => 4,
    }
}

/// Bytes of an element in a memory access.
pub const fn size_bytes(size: MemSize) -> u8 {
    match size {
        MemSize::U8 | MemSize::S8 => 1,
        MemSize::U16 | MemSize::S16 => 2,
        MemSize::B32 => 4,
        MemSize::B64 => 8,
        MemSize::B128 => 16,
    }
}

pub const fn atom_registers(ty: AtomType) -> u8 {
    match ty {
        AtomType::B128 | AtomType::F32x4 | AtomType::F16x8 | AtomType::Bf16x8 => 4,
        AtomType::U64
        | AtomType::S64
        | AtomType::F64
        | AtomType::F32x2
        | AtomType::F16x4
        | AtomType::Bf16x4 => 2,
        AtomType::U32 | AtomType::S32 | AtomType::F32 | AtomType::F16x2 | AtomType::Bf16x2 => 1,
    }
}

pub(super) const fn cas_registers(size: CasSize) -> u8 {
    match size {
        CasSize::B32 => 1,
        CasSize::B64 => 2,
        CasSize::B128 => 4,
    }
}

/// `width` registers if `wide`, otherwise one.
pub(super) const fn registers_if(wide: bool, width: u8) -> u8 {
    if wide { width } else { 1 }
}

pub(super) const fn is_float(ty: AtomType) -> bool {
    !matches!(ty, AtomType::U32 | AtomType::S32 | AtomType::U64 | AtomType::S64 | AtomType::B128)
}

/// Registers of a texture's coordinates.
pub const fn texture_coordinates(dims: TexDims) -> u8 {
    match dims {
        TexDims::D1 => 1,
        TexDims::D2 | TexDims::A1 => 2,
        TexDims::D3 | TexDims::A2 | TexDims::Cube | TexDims::Cubes => 4,
    }
}

/// Whether a layer index precedes the coordinates.
pub const fn has_layer(dims: TexDims) -> bool {
    matches!(dims, TexDims::A1 | TexDims::A2 | TexDims::Cubes)
}

/// The number of coordinates of a texel in a texture or in a layer.
pub const fn coordinates(dims: TexDims) -> u8 {
    match dims {
        TexDims::D1 | TexDims::A1 => 1,
        TexDims::D2 | TexDims::A2 => 2,
        TexDims::D3 | TexDims::Cube | TexDims::Cubes => 3,
    }
}

/// Registers of the first operand: the coordinates and, with derivatives, also a handle in a register and a word of
/// offsets.
pub const fn texture_place(read: TexRead, dims: TexDims, offsets: bool, bindless: bool) -> u8 {
    match read {
        TexRead::Derive if offsets || bindless => 4,
        TexRead::Derive if matches!(dims, TexDims::A2) => 4,
        _ => texture_coordinates(dims),
    }
}

/// Registers of the operands after the coordinates: derivatives, or a handle in a register, the level, offsets, and the
/// sample index or the reference value of a depth comparison.
pub const fn texture_extra(read: TexRead, dims: TexDims, level: TexLevel, more: [bool; 3]) -> u8 {
    let [offsets, compare, bindless] = more;
    let words = match (read, dims) {
        (TexRead::Derive, TexDims::D1 | TexDims::A1) => 2,
        (TexRead::Derive, _) => 4,
        _ => {
            let level = matches!(level, TexLevel::Given) as u8;
            let sample = matches!(read, TexRead::FetchSample) as u8;
            level + sample + offsets as u8 + compare as u8 + bindless as u8
        }
    };
    match words {
        0 => 1,
        3 => 4,
        words => words,
    }
}

/// The number of registers in which the threads of a quad read a texture for each other: eight for operands and results
/// of the read, five for the results of this thread, one that marks threads, and two for the derivatives of each
/// coordinate.
pub const DERIVE_REGISTERS: u8 = 8 + 5 + 1 + 6;

/// The number of registers that a warp's access of tensor memory moves.
pub const fn tensor_registers(lanes: TensorLanes, count: TensorCount) -> u8 {
    let row: u32 = match lanes {
        TensorLanes::L16B256 => 4,
        TensorLanes::L16B128 => 2,
        _ => 1,
    };
    // No access moves more than 128.
    let log = count as u8;
    if row << log > 128 { 128 } else { (row << log) as u8 }
}

/// The number of registers of a mask of lanes that a product does not write, or of columns that are zero.
pub(super) const fn tensor_mask(pair: bool, weights: bool) -> u8 {
    match (weights, pair) {
        (true, _) => 2,
        (false, false) => 4,
        (false, true) => 8,
    }
}

/// The number of registers of a tile's coordinates in its tensor: one for each dimension, or a column and four rows.
pub const fn tile_coordinates(dims: Dims, mode: TensorMode) -> u8 {
    match mode {
        TensorMode::Gather | TensorMode::Scatter => 5,
        _ => dims as u8 + 1,
    }
}

/// Registers of a surface's coordinates.
pub const fn surface_coordinates(dims: SurfDims) -> u8 {
    match dims {
        SurfDims::D1 => 1,
        SurfDims::D2 | SurfDims::A1 => 2,
        SurfDims::D3 | SurfDims::A2 => 4,
    }
}

/// Registers of the operand of a surface's reduction.
pub const fn surface_operand(ty: SurfType) -> u8 {
    match ty {
        SurfType::U32 | SurfType::S32 | SurfType::Element => 1,
        SurfType::U64 | SurfType::S64 | SurfType::Element64 => 2,
    }
}

pub(super) const fn byte_matrices(count: MatrixCount, layout: ByteLayout) -> u8 {
    match layout {
        ByteLayout::Rows => matrices(count),
        ByteLayout::Columns => 2 * matrices(count),
    }
}

/// Registers of matrices of 8 by 8 halves.
pub(super) const fn matrices(count: MatrixCount) -> u8 {
    match count {
        MatrixCount::One => 1,
        MatrixCount::Two => 2,
        MatrixCount::Four => 4,
    }
}

/// The number of registers of a 16 by 8 accumulator: floats, or pairs of halves.
pub(super) const fn sums(f32: bool) -> u8 {
    if f32 { 4 } else { 2 }
}

/// The number of registers of an accumulator with 8 rows, or 16.
pub(super) const fn rows(eight: bool) -> u8 {
    if eight { 2 } else { 4 }
}

/// The number of registers of a factor. The shape with half the depth has half of them.
pub(super) const fn by_depth(half: bool, full: u8) -> u8 {
    if half { full / 2 } else { full }
}

/// The number of registers of a factor by shape; the last entry is also that of all larger shapes.
pub(super) const fn fragment<const N: usize>(registers: [u8; N], shape: usize) -> u8 {
    registers[if shape < N { shape } else { N - 1 }]
}

/// The space of an atomic that is not shared.
pub(super) const fn global_or_generic(generic: bool) -> Space {
    if generic { Space::Generic } else { Space::Global }
}

pub(super) const fn is_half(ty: FloatType) -> bool {
    matches!(ty, FloatType::F16 | FloatType::Bf16)
}

pub(super) const fn float_registers(ty: FloatType) -> u8 {
    match ty {
        FloatType::F64 => 2,
        FloatType::F16 | FloatType::Bf16 | FloatType::F32 => 1,
    }
}

pub(super) const fn int_registers(ty: IntType) -> u8 {
    match ty {
        IntType::U64 | IntType::S64 => 2,
        IntType::U8 | IntType::S8 | IntType::U16 | IntType::S16 | IntType::U32 | IntType::S32 => 1,
    }
}

/// Special registers that do not change while the thread runs, by number.
pub mod special {
    use super::Sr;

    pub const LANE_ID: Sr = Sr(0x00);
    pub const TID: [Sr; 3] = [Sr(0x21), Sr(0x22), Sr(0x23)];
    pub const CTA_ID: [Sr; 3] = [Sr(0x25), Sr(0x26), Sr(0x27)];
    pub const LANE_MASKS: std::ops::RangeInclusive<u8> = 0x38..=0x3c;
    /// The mask of the lanes with lower numbers.
    pub const LOWER_LANES: Sr = Sr(0x39);
    /// The rank of the thread's CTA in its cluster.
    pub const CLUSTER_CTA_ID: Sr = Sr(0x88);
    pub const ZERO: Sr = Sr(0xff);

    /// Whether reading the register again gives the same value.
    pub fn is_stable(sr: Sr) -> bool {
        sr == LANE_ID || is_uniform(sr) || is_tid(sr) || LANE_MASKS.contains(&sr.0)
    }

    /// Whether all threads of a warp read the same value.
    pub fn is_uniform(sr: Sr) -> bool {
        is_cta_id(sr) || sr == CLUSTER_CTA_ID || sr == ZERO
    }

    pub fn is_tid(sr: Sr) -> bool {
        TID.contains(&sr)
    }

    pub fn is_cta_id(sr: Sr) -> bool {
        CTA_ID.contains(&sr)
    }
}

impl Signature {
    /// Checks the number of operands.
    pub fn admits_counts(&self, inst: &Inst) -> bool {
        let required_dsts = self.dsts.iter().filter(|d| !d.optional).count();
        let required_srcs = self.srcs.iter().filter(|s| s.neutral.is_none()).count();
        let most = |slots: usize, more: bool| if more { usize::MAX } else { slots };
        (required_dsts..=most(self.dsts.len(), self.more_dsts)).contains(&inst.dsts.len())
            && (self.variadic
                || (required_srcs..=most(self.srcs.len(), self.more_srcs)).contains(&inst.srcs.len()))
    }
}

/// Source `index` of `inst`, or the neutral operand if it is omitted.
pub fn src_or_neutral(inst: &Inst, index: usize) -> Src {
    inst.srcs.get(index).copied().unwrap_or_else(|| {
        signature(&inst.op).srcs.get(index).and_then(|slot| slot.neutral).unwrap_or(Src::UNDEF)
    })
}

/// Destination `index` of `inst`, or a sink if it is omitted.
pub fn dst_or_sink(inst: &Inst, index: usize) -> Dst {
    inst.dsts.get(index).copied().unwrap_or(Dst::Sink)
}

/// The kind of a source operand, for [`Accept::has`]; `None` for operands that every slot accepts.
pub fn kind_of(kind: &SrcKind, file: impl Fn(crate::ori::ir::Value) -> File) -> Option<Accept> {
    let of_file = |f: File| if f.is_uniform() { Accept::UR } else { Accept::REG };
    match kind {
        SrcKind::Value(v) | SrcKind::Part(v, _) => Some(of_file(file(*v))),
        SrcKind::Reg(reg) => Some(of_file(reg.file)),
        SrcKind::Imm(_) => Some(Accept::IMM),
        SrcKind::Const(_) => Some(Accept::CONST),
        SrcKind::Zero | SrcKind::Pred(_) | SrcKind::Undef => None,
    }
}
