//! Ori: the only IR between PTX and machine code.
//!
//! Operations are machine operations from the start ([`Op`]), so instructions are selected only once, at construction,
//! and every later phase sees the operations that will be encoded. The same types represent two states:
//!
//! - **SSA**: every [`Value`] has one definition; joins are [`Phi`]s. From construction to allocation.
//! - **Allocated**: every operand is a [`Reg`]; no phis, no [`Op::Pack`].
//!
//! A value occupies `width` consecutive 32-bit registers of one file (1, 2, 3, 4, 8 …). A value wider than a register
//! starts at a multiple of its width rounded up to a power of two, at most 4 in the R file. Parts of a wide value are
//! read in place ([`SrcKind::Part`]), and `Op::Pack` combines registers to a wide value. The allocator makes both free
//! where possible.
//!
//! A guarded instruction keeps the old contents of its destination if the guard is false. In SSA this is an explicit
//! operand: [`Inst::old`] names the value that each destination keeps, and the allocator puts both into the same
//! register.

use crate::Linking;
use crate::abi;
use crate::copies::{Statements, Unrolled};
use crate::explain::Kept;
use crate::input::SrcId;
use crate::ori::op::{JumpTable, Op, Routine};
use crate::target::Target;
use smallvec::SmallVec;

/// Convergence barrier registers.
const BARRIERS: u8 = 16;

/// Defines a `u32` index type.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// A block of [`Function::blocks`].
    BlockId
}
index! {
    /// An SSA value of [`Function::values`].
    Value
}

/// A register file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum File {
    /// R0–R254; 255 is RZ.
    R,
    /// P0–P6; 7 is PT.
    P,
    /// UR0–UR62; one value for the whole warp.
    UR,
    /// UP0–UP6.
    UP,
    /// B0–B15, convergence barriers.
    B,
}

impl File {
    /// Whether the warp has each register once.
    pub fn is_uniform(self) -> bool {
        matches!(self, File::UR | File::UP)
    }
}

/// A physical register; for a wide operand, the first of its registers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reg {
    pub file: File,
    pub index: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueData {
    pub file: File,
    /// The number of registers.
    pub width: u8,
    /// The register that the calling convention assigns to the value: only in file R, one register wide. Only the
    /// operations of calls define and read such a value ([`Op::Fix`] copies into and out of it), and it is live only
    /// between neighboring ones.
    pub pin: Option<u8>,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub entry: bool,
    /// Set for code of the runtime library, which has its own calling convention.
    pub routine: Option<Routine>,
    /// Indexed by [`BlockId`]. A block that is no longer in `layout` is dead.
    pub blocks: Vec<Block>,
    /// Emission order; the first is the entry block and has no predecessors.
    pub layout: Vec<BlockId>,
    /// Indexed by [`Value`].
    pub values: Vec<ValueData>,
    /// The numbers to which operands in [`crate::layout::LITERALS`] refer.
    pub literals: Vec<u64>,
    pub frame: Frame,
    pub facts: Facts,
}

/// Thread-local memory of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The size of the `.local` variables in bytes. They are at the bottom of the frame; the arguments that calls pass
    /// on the stack are below them.
    pub local_bytes: u32,
    /// The alignment of the frame's lowest address that the variables need. Zero without variables.
    pub local_align: u32,
    /// The alignment of the stack pointer at the start of the function.
    pub entry_align: u32,
    /// The size of the spill slots above the variables in bytes. Zero before allocation.
    pub spill_bytes: u32,
    /// The number of bytes that spills store, counted per instruction as ptxas reports them.
    pub spill_stores: u32,
    pub spill_loads: u32,
    /// R1 is live, because the frame or a generic local address is used.
    pub uses_stack: bool,
    /// The function allocates stack memory at run time, so calls pass the end of the stack.
    pub moving: bool,
}

impl Default for Frame {
    fn default() -> Frame {
        Frame {
            local_bytes: 0,
            local_align: 0,
            entry_align: abi::ENTRY_ALIGN,
            spill_bytes: 0,
            spill_stores: 0,
            spill_loads: 0,
            uses_stack: false,
            moving: false,
        }
    }
}

/// Facts for the loader, collected during lowering.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// No function that is called through its address waits for other threads of its warp.
    pub pointees_never_wait: bool,
    /// No called function watches other threads ([`crate::input::Signature::watches`]), so no loop waits for the result
    /// of a call, and no callee yields.
    pub callees_never_watch: bool,
    /// Results of float products and sums without a rounding modifier, in their order. A product and the sum that reads
    /// it may be fused. The phase that does this comes first and takes the list.
    pub unrounded: Vec<Value>,
    /// Sums that were fused with a product that no earlier one was fused with, in their order. Unrolling counts them twice.
    pub fused: Vec<SrcId>,
    /// Statements whose load was joined with another load: the statement of the remaining load, and the one whose load
    /// is gone.
    pub joined: Vec<(SrcId, SrcId)>,
    /// The size of static shared memory in bytes, laid out by [`crate::layout`].
    pub shared_bytes: u32,
    /// The highest named barrier in use, plus one.
    pub barriers: u8,
    /// The number of registers that a thread starts with, for a kernel that changes the number with `setmaxnreg`.
    pub starts_with: Option<u32>,
    /// The number of registers that a thread can use while as many blocks fit on a multiprocessor as `.minnctapersm`
    /// states.
    pub free_registers: Option<u32>,
    pub reads_ctaid_z: bool,
    /// Each warp consists of 32 threads with consecutive `%tid.x`, starting at a multiple of 32: the kernel states a block
    /// size with one dimension, or with a multiple of 32 threads along x.
    pub warps_along_x: bool,
    pub tensor: TensorUse,
    pub linking: Linking,
    /// The symbols whose addresses are read from slots in bank 4 ([`crate::layout::address_slot`]), each once.
    pub symbols: Vec<crate::layout::Slot>,
    /// Offsets of the body's variables from the start of the frame; `None` for variables outside the frame.
    pub locals: Vec<Option<u32>>,
    /// Statements with effects that control does not reach or whose guard is false, if an operation of them was removed
    /// for this reason.
    pub never: Vec<SrcId>,
    /// The numbering of statements and of their copies.
    pub statements: Statements,
    /// The loops that were unrolled, in the order of unrolling.
    pub unrolled: Vec<Unrolled>,
    /// The branches that end or repeat an iteration of the loops that were not, and why.
    pub kept: Vec<(SrcId, Kept)>,
    /// The registers that the function preserves, unless it is private.
    pub preserved: abi::Preserved,
    /// The callers are compiled later and know the registers that the function overwrites.
    pub private: bool,
    /// The number of the function, if it calls itself.
    pub itself: Option<u32>,
    /// The highest general register that passes an argument, used or not, plus one; zero if there are no arguments.
    pub arguments_end: u8,
    /// The register pair that holds the return address of a private function, once registers are allocated.
    pub return_address: Option<u8>,
    /// The registers that calls of other private functions overwrite, by function.
    pub known: Vec<(u32, abi::Known)>,
}

/// How a function uses tensor memory, which the cubin states for the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TensorUse(pub u8);

impl TensorUse {
    /// The function has operations of a single block.
    pub const ALONE: TensorUse = TensorUse(1);
    pub const PAIR: TensorUse = TensorUse(2);
    /// The function allocates or frees columns of a single block.
    pub const COLUMNS: TensorUse = TensorUse(4);
    pub const COLUMNS_OF_PAIR: TensorUse = TensorUse(8);
    /// The function accesses tensor memory.
    pub const MEMORY: TensorUse = TensorUse(16);
    /// The function has products with sparse factors.
    pub const SPARSE: TensorUse = TensorUse(32);
    /// The function reads which columns its block holds, in order to check accesses.
    pub const CHECKED: TensorUse = TensorUse(64);

    pub fn add(&mut self, more: TensorUse) {
        self.0 |= more.0;
    }

    pub fn has(self, what: TensorUse) -> bool {
        self.0 & what.0 != 0
    }
}

#[derive(Clone, Debug, Default)]
pub struct Block {
    pub phis: Vec<Phi>,
    pub insts: Vec<Inst>,
    pub term: Term,
    /// The statement of the terminator.
    pub term_src: SrcId,
    /// A loop begins here that may be unrolled: it is in the input, and no pragma forbids unrolling.
    pub may_unroll: bool,
}

/// `dst` takes `args[p]` if control comes from block `p`; there is one argument per predecessor.
#[derive(Clone, Debug)]
pub struct Phi {
    pub dst: Value,
    pub args: Vec<(BlockId, Src)>,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Term {
    Jump(BlockId),
    /// To `then` if `cond` is true. `uniform`: all threads of the warp agree (`bra.uni`, or proved).
    Branch {
        cond: Src,
        then: BlockId,
        els: BlockId,
        uniform: bool,
    },
    /// Indirect jump to one of `targets`. `address` is two registers wide: the low word is the result of an
    /// [`Op::Target`] of the same table, the high word is zero.
    Switch {
        address: Src,
        table: JumpTable,
        targets: Vec<BlockId>,
        uniform: bool,
    },
    /// The thread ends.
    #[default]
    Exit,
    /// Return from a function.
    Ret,
    /// Never reached: the preceding instruction does not return (`trap`).
    Unreachable,
}

impl Term {
    pub fn successors(&self) -> SmallVec<[BlockId; 2]> {
        match self {
            Term::Jump(b) => smallvec::smallvec![*b],
            Term::Branch { then, els, .. } => smallvec::smallvec![*then, *els],
            Term::Switch { targets, .. } => targets.iter().copied().collect(),
            Term::Exit | Term::Ret | Term::Unreachable => SmallVec::new(),
        }
    }

    /// The target list of the terminator.
    pub fn table(&self) -> Option<JumpTable> {
        match self {
            Term::Switch { table, .. } => Some(*table),
            _ => None,
        }
    }

    /// The operand of the terminator: the condition or the address.
    pub fn operand(&self) -> Option<&Src> {
        match self {
            Term::Branch { cond: src, .. } | Term::Switch { address: src, .. } => Some(src),
            Term::Jump(_) | Term::Exit | Term::Ret | Term::Unreachable => None,
        }
    }

    pub fn operand_mut(&mut self) -> Option<&mut Src> {
        match self {
            Term::Branch { cond: src, .. } | Term::Switch { address: src, .. } => Some(src),
            Term::Jump(_) | Term::Exit | Term::Ret | Term::Unreachable => None,
        }
    }
}

/// One machine operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Inst {
    pub op: Op,
    /// The instruction acts only if the guard is true; [`Src::TRUE`] for no guard. It is a predicate (or UP for
    /// operations of the uniform datapath).
    pub guard: Src,
    /// In the order of [`Op`]'s documentation.
    pub dsts: SmallVec<[Dst; 2]>,
    /// In the order of [`Op`]'s documentation.
    pub srcs: SmallVec<[Src; 4]>,
    /// Empty if there is no guard; otherwise, for each destination, the value that it keeps if the guard is false.
    pub old: SmallVec<[Src; 2]>,
    /// The PTX statement of the instruction.
    pub src: SrcId,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dst {
    Value(Value),
    Reg(Reg),
    /// RZ or PT: the result is discarded.
    Sink,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Src {
    pub kind: SrcKind,
    pub mods: SrcMods,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SrcKind {
    /// The whole value.
    Value(Value),
    /// One 32-bit register of a wide value.
    Part(Value, u8),
    Reg(Reg),
    /// RZ or URZ; zero at any width.
    Zero,
    /// PT, or !PT.
    Pred(bool),
    /// 32 bits.
    Imm(u32),
    Const(Const),
    /// An argument of a phi, or an old value, that is never read: any contents are correct.
    Undef,
}

/// `c[bank][offset]`; 8 bytes if the operation reads a pair. The offset is in bytes, a multiple of 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Const {
    pub bank: u8,
    pub offset: u16,
}

/// The upper word of a word that is sign-extended to a pair.
pub const fn sign_bits(low: u32) -> u32 {
    ((low as i32) >> 31) as u32
}

/// Operand modifiers. Their meaning depends on the operation (`neg` is two's complement or the sign bit).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SrcMods {
    pub neg: bool,
    pub abs: bool,
    /// Bitwise complement; logical negation for predicates.
    pub not: bool,
}

impl SrcMods {
    pub const NONE: SrcMods = SrcMods { neg: false, abs: false, not: false };
}

impl Src {
    pub const TRUE: Src = Src { kind: SrcKind::Pred(true), mods: SrcMods::NONE };
    pub const FALSE: Src = Src { kind: SrcKind::Pred(false), mods: SrcMods::NONE };
    pub const ZERO: Src = Src { kind: SrcKind::Zero, mods: SrcMods::NONE };
    pub const UNDEF: Src = Src { kind: SrcKind::Undef, mods: SrcMods::NONE };

    pub const fn new(kind: SrcKind) -> Src {
        Src { kind, mods: SrcMods::NONE }
    }

    /// An immediate; zero becomes RZ.
    pub const fn imm(bits: u32) -> Src {
        if bits == 0 { Src::ZERO } else { Src::new(SrcKind::Imm(bits)) }
    }

    /// The immediate for a pair of words, if operations can represent the pair by sign-extending the immediate.
    pub fn extended(low: u32, high: u32) -> Option<Src> {
        (high == sign_bits(low)).then_some(Src::imm(low))
    }

    pub const fn constant(bank: u8, offset: u16) -> Src {
        Src::new(SrcKind::Const(Const { bank, offset }))
    }

    pub const fn part(value: Value, part: u8) -> Src {
        Src::new(SrcKind::Part(value, part))
    }

    /// The bits of a 32-bit operand without modifiers, if they are known.
    pub fn known(&self) -> Option<u32> {
        match (self.kind, self.mods) {
            (SrcKind::Imm(bits), SrcMods::NONE) => Some(bits),
            (SrcKind::Zero, SrcMods::NONE) => Some(0),
            _ => None,
        }
    }

    /// The value that is read, as a whole or in part.
    pub const fn value(&self) -> Option<Value> {
        match self.kind {
            SrcKind::Value(v) | SrcKind::Part(v, _) => Some(v),
            _ => None,
        }
    }

    pub const fn neg(mut self) -> Src {
        self.mods.neg = !self.mods.neg;
        self
    }

    pub const fn not(mut self) -> Src {
        self.mods.not = !self.mods.not;
        self
    }

    pub fn is_true(&self) -> bool {
        matches!((self.kind, self.mods.not), (SrcKind::Pred(true), false) | (SrcKind::Pred(false), true))
    }
}

impl From<Value> for Src {
    fn from(v: Value) -> Src {
        Src::new(SrcKind::Value(v))
    }
}

impl Default for Src {
    fn default() -> Src {
        Src::UNDEF
    }
}

impl Inst {
    pub fn new(op: Op, dsts: &[Dst], srcs: &[Src], src: SrcId) -> Inst {
        Inst {
            op,
            guard: Src::TRUE,
            dsts: SmallVec::from_slice(dsts),
            srcs: SmallVec::from_slice(srcs),
            old: SmallVec::new(),
            src,
        }
    }

    /// All operands that are read: guard, sources, old values.
    pub fn uses(&self) -> impl Iterator<Item = &Src> {
        std::iter::once(&self.guard).chain(&self.srcs).chain(&self.old)
    }

    pub fn uses_mut(&mut self) -> impl Iterator<Item = &mut Src> {
        std::iter::once(&mut self.guard).chain(&mut self.srcs).chain(&mut self.old)
    }

    /// Values written.
    pub fn defs(&self) -> impl Iterator<Item = Value> + '_ {
        self.dsts.iter().filter_map(|d| match d {
            Dst::Value(v) => Some(*v),
            _ => None,
        })
    }
}

impl Function {
    /// The number of registers that a thread can use without reducing the occupancy that the kernel asks for: the number
    /// of blocks that it states, otherwise the maximum number of warps.
    pub fn free_registers(&self, target: &Target) -> u32 {
        self.facts.free_registers.unwrap_or_else(|| target.limits.free_registers())
    }

    pub fn value(&self, v: Value) -> ValueData {
        self.values[v.index()]
    }

    pub fn new_value(&mut self, file: File, width: u8) -> Value {
        self.values.push(ValueData { file, width, pin: None });
        Value(self.values.len() as u32 - 1)
    }

    /// A value in a general register that the calling convention names.
    pub fn new_pinned(&mut self, register: u8) -> Value {
        self.values.push(ValueData { file: File::R, width: 1, pin: Some(register) });
        Value(self.values.len() as u32 - 1)
    }

    /// Whether threads that wait at a convergence barrier for the executing threads may continue. The barrier counts
    /// threads that wait for others of their mask as arrived, as hardware showed. With the full mask, no thread is at the
    /// barrier meanwhile.
    pub fn yields(&self, inst: &Inst) -> bool {
        match inst.op {
            Op::Yield | Op::Nanosleep { .. } => true,
            Op::Warpsync { .. } => inst.srcs.first().and_then(Src::known) != Some(u32::MAX),
            op => {
                let may = self.known(&op).map_or(!self.facts.callees_never_watch, |callee| callee.yields);
                op.calls_function() && may
            }
        }
    }

    /// Whether the instruction calls a function that may save barriers of its caller in its frame. The callees of an object
    /// are not known; they are assumed not to, as in ptxas's code, since otherwise no loose barrier could be set around
    /// their calls.
    pub fn saves_barriers(&self, inst: &Inst) -> bool {
        let may =
            self.known(&inst.op).map_or(!self.facts.linking.is_object(), |callee| callee.saves_barriers);
        inst.op.calls_function() && may
    }

    /// Whether threads may yield in the function. A recursive call alone is not a reason: whether they yield in it is seen
    /// from the other instructions.
    pub fn may_yield(&self) -> bool {
        let is_itself =
            |op: Op| matches!(op, Op::Call { callee } if Some(callee.function) == self.facts.itself);
        let mut insts = self.layout.iter().flat_map(|b| &self.block(*b).insts);
        insts.any(|inst| self.yields(inst) && !is_itself(inst.op))
    }

    /// The number of convergence barriers that may be set at the same time. A function that may yield does not use the
    /// barriers that it would have to save for its caller: threads that are released meanwhile would stay in the saved masks.
    pub fn barriers(&self) -> u16 {
        let is_kept = |index: &u8| self.facts.preserved.has(Reg { file: File::B, index: *index });
        let leaves_kept = self.routine.is_some() || !self.entry && self.may_yield();
        u16::from((0..BARRIERS).find(|index| leaves_kept && is_kept(index)).unwrap_or(BARRIERS))
    }

    /// The registers that a call overwrites, if they are known.
    pub fn known(&self, call: &Op) -> Option<&abi::Known> {
        let Op::Call { callee } = *call else { return None };
        self.facts.known.iter().find(|(function, _)| *function == callee.function).map(|(_, known)| known)
    }

    /// Whether the function takes part in calls by the common calling convention.
    pub fn follows_convention(&self) -> bool {
        let calls = |inst: &Inst| inst.op.calls_function() && self.known(&inst.op).is_none();
        !self.entry && self.routine.is_none() && !self.facts.private
            || self.layout.iter().any(|&b| self.block(b).insts.iter().any(calls))
    }

    /// Whether the function calls functions.
    pub fn has_calls(&self) -> bool {
        self.layout.iter().any(|&b| self.block(b).insts.iter().any(|inst| inst.op.calls_function()))
    }

    /// Whether the function calls routines of the runtime library in which threads wait.
    pub fn calls_waiting_routines(&self) -> bool {
        let waits = |inst: &Inst| matches!(inst.op, Op::CallRoutine { routine } if routine.waits());
        self.layout.iter().any(|&b| self.block(b).insts.iter().any(waits))
    }

    /// Adds an empty block that is not in the layout yet.
    pub fn new_block(&mut self) -> BlockId {
        self.blocks.push(Block::default());
        BlockId(self.blocks.len() as u32 - 1)
    }

    pub fn block(&self, b: BlockId) -> &Block {
        &self.blocks[b.index()]
    }

    pub fn block_mut(&mut self, b: BlockId) -> &mut Block {
        &mut self.blocks[b.index()]
    }
}
