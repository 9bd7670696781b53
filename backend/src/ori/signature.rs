//! What each operation takes and gives, and what else it does.
//!
//! [`signature`] is the one place that knows the operands of an [`Op`]: file and width of every slot, which
//! kinds of operand the machine has for it, and which modifiers. Trailing destinations that are not wanted and
//! trailing predicate sources at their neutral value may be left out; how many may is in the signature.
//!
//! The facts below it ([`is_pure`], [`may_be_guarded`], …) say what a phase may do with an instruction. What it
//! does to memory is [`super::memory`]'s.

use crate::ori::ir::{Dst, File, Inst, Src, SrcKind, SrcMods};
use crate::ori::memory::{Effect, Memory, Space, effect};
use crate::ori::op::{AtomType, FloatType, IntType, MemSize, Op, Sr};
use smallvec::{SmallVec, smallvec};

/// How many registers an operand has.
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

/// Operand kinds that a source slot can hold besides its file's zero or true register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accept(u8);

impl Accept {
    pub const REG: Accept = Accept(1);
    pub const UR: Accept = Accept(2);
    pub const IMM: Accept = Accept(4);
    pub const CONST: Accept = Accept(8);
    /// Any of them; one operand that is not a register per instruction.
    pub const ALU: Accept = Accept(15);

    pub const fn or(self, other: Accept) -> Accept {
        Accept(self.0 | other.0)
    }

    pub const fn has(self, kind: Accept) -> bool {
        self.0 & kind.0 == kind.0
    }
}

/// Modifiers that a source slot can carry.
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SrcSlot {
    pub file: File,
    pub width: Width,
    pub accept: Accept,
    pub mods: Mods,
    /// What the slot holds when the instruction leaves it out; only trailing slots have one.
    pub neutral: Option<Src>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DstSlot {
    pub file: File,
    pub width: Width,
    /// May be left out, which means [`Dst::Sink`].
    pub optional: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    pub dsts: SmallVec<[DstSlot; 3]>,
    pub srcs: SmallVec<[SrcSlot; 5]>,
    /// `Pack` alone takes as many sources as its result has registers.
    pub variadic: bool,
}

impl SrcSlot {
    const fn new(file: File, width: u8, accept: Accept, mods: Mods) -> SrcSlot {
        SrcSlot { file, width: Width::Exactly(width), accept, mods, neutral: None }
    }

    const fn or_absent(mut self, neutral: Src) -> SrcSlot {
        self.neutral = Some(neutral);
        self
    }

    const fn any_width(mut self) -> SrcSlot {
        self.width = Width::Any;
        self
    }

    const fn one_or_two(mut self) -> SrcSlot {
        self.width = Width::OneOrTwo;
        self
    }
}

impl DstSlot {
    const fn new(file: File, width: u8) -> DstSlot {
        DstSlot { file, width: Width::Exactly(width), optional: false }
    }

    const fn optional(mut self) -> DstSlot {
        self.optional = true;
        self
    }
}

/// A general register, one wide.
const fn r() -> SrcSlot {
    r_wide(1)
}

const fn r_wide(width: u8) -> SrcSlot {
    SrcSlot::new(File::R, width, Accept::REG, Mods::NONE)
}

/// A register with modifiers.
const fn rm(mods: Mods) -> SrcSlot {
    SrcSlot::new(File::R, 1, Accept::REG, mods)
}

/// The slot that takes a register, an immediate, a constant or a uniform register.
const fn alu(mods: Mods) -> SrcSlot {
    SrcSlot::new(File::R, 1, Accept::ALU, mods)
}

const fn alu_wide(width: u8, mods: Mods) -> SrcSlot {
    SrcSlot::new(File::R, width, Accept::ALU, mods)
}

const fn reg_or_imm() -> SrcSlot {
    SrcSlot::new(File::R, 1, Accept::REG.or(Accept::IMM), Mods::NONE)
}

/// A predicate read straight or negated.
const fn p() -> SrcSlot {
    SrcSlot::new(File::P, 1, Accept::REG, Mods::NOT)
}

/// A predicate combined with a result: left out for a neutral one.
const fn p_or_true() -> SrcSlot {
    p().or_absent(Src::TRUE)
}

/// A carry: left out for none.
const fn carry() -> SrcSlot {
    p().or_absent(Src::FALSE)
}

/// A 64-bit address, or a 32-bit one of a windowed space.
const fn address() -> SrcSlot {
    r().one_or_two()
}

/// A uniform register pair (the descriptor of global memory), or `Zero`.
const fn descriptor() -> SrcSlot {
    SrcSlot::new(File::UR, 2, Accept::REG, Mods::NONE)
}

/// A uniform base added to a 32-bit address, or `Zero`.
const fn uniform_base() -> SrcSlot {
    SrcSlot::new(File::UR, 1, Accept::REG, Mods::NONE)
}

const fn uniform_or_imm() -> SrcSlot {
    SrcSlot::new(File::UR, 1, Accept::REG.or(Accept::IMM), Mods::NONE)
}

const fn barrier() -> SrcSlot {
    SrcSlot::new(File::B, 1, Accept::REG, Mods::NONE)
}

const D: DstSlot = DstSlot::new(File::R, 1);
const D2: DstSlot = DstSlot::new(File::R, 2);
const DP: DstSlot = DstSlot::new(File::P, 1);
const DU: DstSlot = DstSlot::new(File::UR, 1);

fn result(width: u8) -> DstSlot {
    DstSlot::new(File::R, width)
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

const fn atom_registers(ty: AtomType) -> u8 {
    match ty {
        AtomType::U64 | AtomType::S64 | AtomType::F64 => 2,
        AtomType::U32 | AtomType::S32 | AtomType::F32 | AtomType::F16x2 | AtomType::Bf16x2 => 1,
    }
}

const fn wide(wide: bool) -> u8 {
    if wide { 2 } else { 1 }
}

const fn float_registers(ty: FloatType) -> u8 {
    match ty {
        FloatType::F64 => 2,
        FloatType::F16 | FloatType::Bf16 | FloatType::F32 => 1,
    }
}

const fn int_registers(ty: IntType) -> u8 {
    match ty {
        IntType::U64 | IntType::S64 => 2,
        IntType::U8 | IntType::S8 | IntType::U16 | IntType::S16 | IntType::U32 | IntType::S32 => 1,
    }
}

fn sig(dsts: &[DstSlot], srcs: &[SrcSlot]) -> Signature {
    Signature { dsts: SmallVec::from_slice(dsts), srcs: SmallVec::from_slice(srcs), variadic: false }
}

/// The operands of `op`.
pub fn signature(op: &Op) -> Signature {
    let none = Mods::NONE;
    let float = Mods::FLOAT;
    match *op {
        Op::Pack => Signature {
            dsts: smallvec![DstSlot { file: File::R, width: Width::Any, optional: false }],
            srcs: smallvec![],
            variadic: true,
        },
        Op::Copy => sig(
            &[DstSlot { file: File::R, width: Width::Any, optional: false }],
            &[alu(Mods { neg: false, abs: false, not: true }).any_width()],
        ),
        Op::Mov => sig(&[D], &[alu(none)]),
        Op::Sel => sig(&[D], &[r(), alu(none), p()]),
        Op::Fsel { .. } => sig(&[D], &[rm(float), alu(float), p()]),
        Op::Prmt => sig(&[D], &[r(), alu(none), r()]),
        Op::S2r { .. } => sig(&[D], &[]),
        Op::Cs2r { wide: w, .. } => sig(&[result(wide(w))], &[]),
        Op::P2r { mask } => {
            sig(&[D], &std::iter::repeat_n(p(), mask.count_ones() as usize).collect::<SmallVec<[_; 8]>>())
        }
        Op::R2p { mask } => {
            sig(&std::iter::repeat_n(DP, mask.count_ones() as usize).collect::<SmallVec<[_; 8]>>(), &[r()])
        }

        Op::Iadd3 { x: false } => {
            sig(&[D, DP.optional(), DP.optional()], &[rm(Mods::NEG), alu(Mods::NEG), rm(Mods::NEG)])
        }
        Op::Iadd3 { x: true } => {
            let flip = Mods { neg: true, abs: false, not: true };
            sig(&[D, DP.optional(), DP.optional()], &[rm(flip), alu(flip), rm(flip), carry(), carry()])
        }
        Op::Imad { .. } => sig(&[D], &[r(), alu(none), alu(Mods::NEG)]),
        Op::ImadWide { .. } => sig(&[D2, DP.optional()], &[r(), alu(none), alu_wide(2, none)]),
        Op::ImadHi { .. } => sig(&[D], &[r(), alu(none), r().one_or_two()]),
        Op::ImadX { .. } => sig(&[D, DP.optional()], &[r(), alu(none), r(), carry()]),
        Op::Lea { .. } => sig(&[D, DP.optional()], &[rm(Mods::NEG), alu(Mods::NEG)]),
        Op::LeaHi { .. } => sig(&[D], &[r(), alu(none), r(), carry()]),
        Op::LeaHiSx32 { .. } => sig(&[D], &[r(), alu(none), carry()]),
        Op::Lop3 { .. } => sig(&[D], &[r(), alu(none), r()]),
        Op::Lop3P { .. } => sig(&[DP], &[r(), alu(none), r()]),
        Op::Plop3 { .. } => sig(&[DP, DP.optional()], &[p(), p_or_true(), p_or_true()]),
        Op::Shf { .. } => sig(&[D], &[r(), alu(none), r()]),
        Op::Isetp { .. } => sig(&[DP, DP.optional()], &[r(), alu(none), p_or_true(), p_or_true()]),
        Op::Imnmx { .. } => sig(&[D], &[r(), alu(none), p()]),
        Op::Iabs => sig(&[D], &[alu(none)]),
        Op::Popc | Op::Flo { .. } | Op::Brev => sig(&[D], &[alu(Mods::NOT)]),
        Op::Sgxt { .. } | Op::Bmsk { .. } => sig(&[D], &[r(), alu(none)]),
        // No immediate.
        Op::Idp { .. } => {
            let b = SrcSlot::new(File::R, 1, Accept::REG.or(Accept::CONST).or(Accept::UR), none);
            sig(&[D], &[r(), b, r()])
        }
        Op::Vabsdiff { .. } => sig(&[D], &[r(), alu(none), r()]),

        Op::Fadd { .. } | Op::Fmul { .. } => sig(&[D], &[rm(float), alu(float)]),
        Op::Ffma { .. } => sig(&[D], &[rm(Mods::NEG), alu(Mods::NEG), alu(Mods::NEG)]),
        Op::Fmnmx { .. } => sig(&[D], &[rm(float), alu(float), p()]),
        Op::Fsetp { .. } => sig(&[DP, DP.optional()], &[rm(float), alu(float), p_or_true()]),
        Op::Mufu { .. } => sig(&[D], &[alu(float)]),
        Op::Fchk => sig(&[DP], &[rm(float), alu(float)]),

        Op::Dadd { .. } | Op::Dmul { .. } => {
            sig(&[D2], &[SrcSlot::new(File::R, 2, Accept::REG, float), alu_wide(2, float)])
        }
        Op::Dfma { .. } => sig(
            &[D2],
            &[
                SrcSlot::new(File::R, 2, Accept::REG, Mods::NEG),
                alu_wide(2, Mods::NEG),
                alu_wide(2, Mods::NEG),
            ],
        ),
        Op::Dsetp { .. } => sig(
            &[DP, DP.optional()],
            &[SrcSlot::new(File::R, 2, Accept::REG, float), alu_wide(2, float), p_or_true()],
        ),

        Op::Hadd2 { .. } | Op::Hmul2 { .. } => sig(&[D], &[rm(float), alu(float)]),
        Op::Hfma2 { .. } => sig(&[D], &[rm(float), alu(float), alu(Mods::NEG)]),
        Op::Hsetp2 { .. } => sig(&[DP, DP.optional()], &[rm(float), alu(float), p_or_true()]),
        Op::Hmnmx2 { .. } => sig(&[D], &[rm(float), alu(float), p()]),

        Op::I2f { to, from, .. } => {
            sig(&[result(float_registers(to))], &[alu_wide(int_registers(from), none)])
        }
        Op::I2fp { .. } => sig(&[D], &[alu(none)]),
        Op::F2i { to, from, .. } => {
            sig(&[result(int_registers(to))], &[alu_wide(float_registers(from), float)])
        }
        Op::F2f { to, from, .. } => {
            sig(&[result(float_registers(to))], &[alu_wide(float_registers(from), float)])
        }
        Op::Frnd { ty, .. } => sig(&[result(float_registers(ty))], &[alu_wide(float_registers(ty), float)]),
        Op::F2fp { .. } => sig(&[D], &[rm(float), alu(float)]),

        Op::Uldc { wide: w } => {
            sig(&[DstSlot::new(File::UR, wide(w))], &[SrcSlot::new(File::UR, wide(w), Accept::CONST, none)])
        }
        Op::Umov => sig(&[DU], &[uniform_or_imm()]),
        Op::Ulea { .. } => sig(&[DU], &[uniform_base(), uniform_or_imm()]),
        Op::S2ur { .. } => sig(&[DU], &[]),
        Op::R2ur => sig(&[DU], &[r()]),

        Op::Ldg { access } | Op::Ld { access } => {
            sig(&[result(size_registers(access.size))], &[address(), descriptor()])
        }
        Op::Stg { access } | Op::St { access } => {
            sig(&[], &[address(), descriptor(), r_wide(size_registers(access.size))])
        }
        Op::Lds { size, .. } => sig(&[result(size_registers(size))], &[r(), uniform_base()]),
        Op::Sts { size, .. } => sig(&[], &[r(), uniform_base(), r_wide(size_registers(size))]),
        Op::Ldl { size, .. } => sig(&[result(size_registers(size))], &[r()]),
        Op::Stl { size, .. } => sig(&[], &[r(), r_wide(size_registers(size))]),
        Op::Ldc { size, .. } => sig(&[result(size_registers(size))], &[r()]),
        Op::Atom { ty, .. } => {
            sig(&[result(atom_registers(ty))], &[address(), descriptor(), r_wide(atom_registers(ty))])
        }
        Op::AtomCas { wide: w, .. } => {
            sig(&[result(wide(w))], &[address(), descriptor(), r_wide(wide(w)), r_wide(wide(w))])
        }
        Op::Red { ty, .. } => sig(&[], &[address(), descriptor(), r_wide(atom_registers(ty))]),
        Op::Atoms { ty, .. } => {
            sig(&[result(atom_registers(ty))], &[r(), uniform_base(), r_wide(atom_registers(ty))])
        }
        Op::AtomsCas { wide: w, .. } => {
            sig(&[result(wide(w))], &[r(), uniform_base(), r_wide(wide(w)), r_wide(wide(w))])
        }
        Op::Membar { .. } | Op::Errbar | Op::Cctl { .. } => sig(&[], &[]),

        Op::Shfl { .. } => sig(&[D, DP.optional()], &[r(), reg_or_imm(), reg_or_imm()]),
        Op::Vote { .. } => sig(&[D, DP.optional()], &[p()]),
        Op::Match { wide: w, .. } => sig(&[D, DP.optional()], &[r_wide(wide(w))]),
        Op::Redux { .. } => sig(&[DU], &[r()]),
        Op::Warpsync => sig(&[], &[reg_or_imm()]),
        Op::Nanosleep => sig(&[], &[alu(none)]),

        Op::Bar { .. } => {
            sig(&[], &[reg_or_imm(), reg_or_imm().or_absent(Src::ZERO), p().or_absent(Src::TRUE)])
        }
        Op::B2r { result } => sig(&[if result { DP } else { D }], &[]),
        Op::Bssy { .. } => sig(&[DstSlot::new(File::B, 1)], &[]),
        Op::Bsync | Op::Break => sig(&[], &[barrier()]),
        Op::Bpt { .. } | Op::Nop => sig(&[], &[]),
    }
}

/// Special registers that hold one value for as long as the thread runs, by number.
pub mod special {
    use super::Sr;

    pub const LANE_ID: Sr = Sr(0x00);
    pub const TID: [Sr; 3] = [Sr(0x21), Sr(0x22), Sr(0x23)];
    pub const CTA_ID: [Sr; 3] = [Sr(0x25), Sr(0x26), Sr(0x27)];
    pub const LANE_MASKS: std::ops::RangeInclusive<u8> = 0x38..=0x3c;
    pub const ZERO: Sr = Sr(0xff);

    /// Reading it again gives the same value.
    pub fn is_stable(sr: Sr) -> bool {
        sr == LANE_ID || sr == ZERO || is_tid(sr) || is_cta_id(sr) || LANE_MASKS.contains(&sr.0)
    }

    /// All threads of a warp read the same value.
    pub fn is_uniform(sr: Sr) -> bool {
        is_cta_id(sr) || sr == ZERO
    }

    pub fn is_tid(sr: Sr) -> bool {
        TID.contains(&sr)
    }

    pub fn is_cta_id(sr: Sr) -> bool {
        CTA_ID.contains(&sr)
    }
}

/// Its result depends on which threads execute it together; it must not be moved into or out of other control
/// flow, nor repeated.
pub fn is_convergent(op: &Op) -> bool {
    matches!(
        op,
        Op::Shfl { .. }
            | Op::Vote { .. }
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::R2ur
            | Op::Warpsync
            | Op::Bar { .. }
            | Op::B2r { .. }
            | Op::Bssy { .. }
            | Op::Bsync
            | Op::Break
    )
}

/// Threads wait in it, so others of the warp that are elsewhere may run meanwhile.
pub fn waits(op: &Op) -> bool {
    matches!(op, Op::Warpsync | Op::Bar { .. } | Op::Bsync | Op::Nanosleep)
}

/// Same operands, same results, at any place: may be shared with an equal instruction and moved freely.
pub fn is_pure(op: &Op) -> bool {
    matches!(effect(op), Effect::None | Effect::Memory(Memory { space: Space::Constant, .. }))
}

/// May execute where the program would not have executed it: no fault, no effect, no thread set.
pub fn is_speculatable(op: &Op) -> bool {
    is_pure(op)
}

/// The encoding has a guard that acts on it alone. Convergence operations have none that is safe to add.
pub fn may_be_guarded(op: &Op) -> bool {
    !is_convergent(op)
        && !matches!(op, Op::Pack | Op::Copy | Op::Bpt { .. } | Op::P2r { .. } | Op::R2p { .. })
}

/// Executes on the uniform datapath, for the whole warp at once.
pub fn is_uniform_op(op: &Op) -> bool {
    matches!(op, Op::Uldc { .. } | Op::Umov | Op::Ulea { .. } | Op::S2ur { .. } | Op::R2ur | Op::Redux { .. })
}

/// Two source slots that may be exchanged without changing the result.
pub fn commutes(op: &Op) -> Option<(usize, usize)> {
    match op {
        Op::Iadd3 { .. }
        | Op::Imad { .. }
        | Op::ImadWide { .. }
        | Op::ImadHi { .. }
        | Op::ImadX { .. }
        | Op::Imnmx { .. }
        | Op::Fadd { .. }
        | Op::Fmul { .. }
        | Op::Ffma { .. }
        | Op::Fmnmx { .. }
        | Op::Dadd { .. }
        | Op::Dmul { .. }
        | Op::Dfma { .. }
        | Op::Hadd2 { f32: false, .. }
        | Op::Hmul2 { .. }
        | Op::Hfma2 { .. }
        | Op::Hmnmx2 { .. }
        | Op::Vabsdiff { .. } => Some((0, 1)),
        Op::Idp { two: false, a_signed, b_signed, .. } if a_signed == b_signed => Some((0, 1)),
        _ => None,
    }
}

impl Signature {
    /// Checks the number of operands.
    pub fn admits_counts(&self, inst: &Inst) -> bool {
        let required_dsts = self.dsts.iter().filter(|d| !d.optional).count();
        let required_srcs = self.srcs.iter().filter(|s| s.neutral.is_none()).count();
        (required_dsts..=self.dsts.len()).contains(&inst.dsts.len())
            && (self.variadic || (required_srcs..=self.srcs.len()).contains(&inst.srcs.len()))
    }
}

/// Source `index` of `inst`, or the neutral operand where it is left out.
pub fn src_or_neutral(inst: &Inst, index: usize) -> Src {
    inst.srcs.get(index).copied().unwrap_or_else(|| {
        signature(&inst.op).srcs.get(index).and_then(|slot| slot.neutral).unwrap_or(Src::UNDEF)
    })
}

/// Destination `index` of `inst`, or a sink where it is left out.
pub fn dst_or_sink(inst: &Inst, index: usize) -> Dst {
    inst.dsts.get(index).copied().unwrap_or(Dst::Sink)
}

/// What kind of operand a source is, for [`Accept::has`]; `None` for those that every slot takes.
pub fn kind_of(kind: &SrcKind, file: impl Fn(crate::ori::ir::Value) -> File) -> Option<Accept> {
    let of_file = |f: File| if matches!(f, File::UR | File::UP) { Accept::UR } else { Accept::REG };
    match kind {
        SrcKind::Value(v) | SrcKind::Part(v, _) => Some(of_file(file(*v))),
        SrcKind::Reg(reg) => Some(of_file(reg.file)),
        SrcKind::Imm(_) => Some(Accept::IMM),
        SrcKind::Const(_) => Some(Accept::CONST),
        SrcKind::Zero | SrcKind::Pred(_) | SrcKind::Undef => None,
    }
}

/// How an operation reads the modifiers of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interpretation {
    Integer,
    /// `neg` is a complement: additions with carry.
    Complement,
    Float,
    /// Two floats in 32 bits.
    Half,
}

pub fn interpretation(op: &Op) -> Interpretation {
    match op {
        Op::Iadd3 { x: true } => Interpretation::Complement,
        Op::Fadd { .. }
        | Op::Fmul { .. }
        | Op::Ffma { .. }
        | Op::Fmnmx { .. }
        | Op::Fsetp { .. }
        | Op::Fsel { .. }
        | Op::Mufu { .. }
        | Op::Fchk
        | Op::Dadd { .. }
        | Op::Dmul { .. }
        | Op::Dfma { .. }
        | Op::Dsetp { .. }
        | Op::F2i { .. }
        | Op::F2f { .. }
        | Op::Frnd { .. }
        | Op::F2fp { .. } => Interpretation::Float,
        Op::Hadd2 { .. } | Op::Hmul2 { .. } | Op::Hfma2 { .. } | Op::Hsetp2 { .. } | Op::Hmnmx2 { .. } => {
            Interpretation::Half
        }
        _ => Interpretation::Integer,
    }
}

/// An immediate carries no modifiers: applies those that replacements have brought to one. A 16-bit float
/// source of a conversion and the halves of packed operations are left as they are.
pub fn fold_modifiers(inst: &mut Inst) {
    let how = interpretation(&inst.op);
    let narrow = matches!(
        inst.op,
        Op::F2f { from: FloatType::F16 | FloatType::Bf16, .. }
            | Op::F2i { from: FloatType::F16 | FloatType::Bf16, .. }
            | Op::Frnd { ty: FloatType::F16 | FloatType::Bf16, .. }
    );
    // A carry tells `-0` from `0`.
    let carries = matches!(inst.op, Op::Iadd3 { x: false }) && inst.defs().count() > 1;
    for src in &mut inst.srcs {
        if src.mods == SrcMods::NONE {
            continue;
        }
        let bits = match src.kind {
            SrcKind::Imm(0) if carries && src.mods.neg => {
                src.kind = SrcKind::Zero;
                continue;
            }
            SrcKind::Imm(bits) => bits,
            SrcKind::Zero if matches!(how, Interpretation::Integer) && !carries => {
                src.mods.neg = false;
                continue;
            }
            _ => continue,
        };
        let SrcMods { neg, abs, not } = src.mods;
        let mut bits = bits;
        match how {
            Interpretation::Half => continue,
            Interpretation::Float if narrow => continue,
            Interpretation::Float => {
                if abs {
                    bits &= 0x7fff_ffff;
                }
                if neg {
                    bits ^= 0x8000_0000;
                }
            }
            Interpretation::Complement => {
                if neg || not {
                    bits = !bits;
                }
            }
            Interpretation::Integer => {
                if not {
                    bits = !bits;
                }
                if neg {
                    bits = bits.wrapping_neg();
                }
            }
        }
        *src = Src::imm(bits);
    }
}
