//! Ori: the one IR between PTX and machine code.
//!
//! Operations are machine operations from the start ([`Op`]), so selection happens once, at
//! construction, and every later phase sees what will be encoded. The same types carry two states:
//!
//! - **SSA**: every [`Value`] has one definition; joins are [`Phi`]s. From construction to allocation.
//! - **Allocated**: every operand is a [`Reg`]; no phis, no [`Op::Pack`].
//!
//! A value occupies `width` consecutive 32-bit registers of one file (1, 2, 3, 4, 8 …), and one wider than a
//! register starts at a multiple of its width rounded up to a power of two, at most 4 in the R file. Parts of
//! a wide value are read in place ([`SrcKind::Part`]) and put together by `Op::Pack`; the allocator makes
//! both free wherever it can.
//!
//! A guarded instruction that writes leaves the old contents where the guard is false. In SSA this is an
//! explicit operand: [`Inst::old`] names, for each destination, the value that survives, and the allocator
//! ties both to one register.

use crate::abi;
use crate::copies::{Statements, Unrolled};
use crate::input::SrcId;
use crate::ori::op::{JumpTable, Op, Routine};
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

/// A physical register: the first of a run where the operand is wide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reg {
    pub file: File,
    pub index: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueData {
    pub file: File,
    /// Registers occupied.
    pub width: u8,
    /// The register that the calling convention has for it: R only, one register wide. Such a value is made and read by
    /// the operations of calls ([`Op::Fix`] copies into and out of it) and lives between neighbouring ones alone.
    pub pin: Option<u8>,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub entry: bool,
    /// It is code of the runtime library, called by a convention of its own.
    pub routine: Option<Routine>,
    /// Indexed by [`BlockId`]; a block that left `layout` is dead.
    pub blocks: Vec<Block>,
    /// Emission order; the first is the entry block and has no predecessors.
    pub layout: Vec<BlockId>,
    /// Indexed by [`Value`].
    pub values: Vec<ValueData>,
    pub frame: Frame,
    pub facts: Facts,
}

/// Thread-local memory of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Bytes of `.local` variables, at the bottom of the frame; below them what calls pass on the stack.
    pub local_bytes: u32,
    /// Bytes: what the frame's lowest address is a multiple of for the variables' sake. Zero without variables.
    pub local_align: u32,
    /// Bytes: what the stack pointer is a multiple of where the function starts.
    pub entry_align: u32,
    /// Bytes of spill slots, above them. Zero before allocation.
    pub spill_bytes: u32,
    /// Bytes stored and loaded by spills, counted per instruction as ptxas reports them.
    pub spill_stores: u32,
    pub spill_loads: u32,
    /// R1 is live: the frame or a generic local address is used.
    pub uses_stack: bool,
    /// The function takes memory from the stack as it runs: calls are told where that ends.
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

/// What the loader must know, collected while lowering.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// No function that is called by its address waits for other threads of its warp.
    pub pointees_never_wait: bool,
    /// No function that it calls watches other threads ([`crate::input::Signature::watches`]): no loop waits for what one
    /// returns, and none yields.
    pub callees_never_watch: bool,
    /// Results of products and sums of floats that name no rounding, in their order: a product and the sum that reads it
    /// may be one operation. Meant for the phase that does this, which comes first and takes them.
    pub unrounded: Vec<Value>,
    /// Statements whose load became part of another's: that one, and the one whose load is gone.
    pub joined: Vec<(SrcId, SrcId)>,
    /// Bytes of static shared memory, laid out by [`crate::layout`].
    pub shared_bytes: u32,
    /// Highest named barrier in use, plus one.
    pub barriers: u8,
    /// Registers that a thread of a kernel starts with, where it gives some back or takes more as it runs.
    pub starts_with: Option<u32>,
    pub reads_ctaid_z: bool,
    pub tensor: TensorUse,
    /// A linker fills in the addresses of functions and variables.
    pub relocatable: bool,
    /// Those whose address is read from its slot in bank 4 ([`crate::layout::address_slot`]), each once.
    pub symbols: Vec<crate::layout::Slot>,
    /// Offsets of the body's variables from the start of the frame; `None` for variables outside the frame.
    pub locals: Vec<Option<u32>>,
    /// Statements with effects that control does not reach or whose guard does not hold, as far as one of their
    /// operations was removed for it.
    pub never: Vec<SrcId>,
    /// The numbers of statements and of their copies.
    pub statements: Statements,
    /// Loops whose iterations were copied, in the order in which they were.
    pub unrolled: Vec<Unrolled>,
    /// What it preserves, unless it is private.
    pub preserved: abi::Preserved,
    /// Its callers are compiled after it, and know what it overwrites.
    pub private: bool,
    /// Its number where it calls itself.
    pub itself: Option<u32>,
    /// One past the last general register in which callers pass a word, read or not; zero where they pass none.
    pub arguments_end: u8,
    /// Where such a function has the address that it returns to, once it has registers.
    pub return_address: Option<u8>,
    /// What calls of other such functions overwrite, by function.
    pub known: Vec<(u32, abi::Known)>,
}

/// A function's use of tensor memory, which the cubin tells the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TensorUse(pub u8);

impl TensorUse {
    /// Operations of one block, or of a pair.
    pub const ALONE: TensorUse = TensorUse(1);
    pub const PAIR: TensorUse = TensorUse(2);
    /// It allocates or frees columns, for one block or for a pair.
    pub const COLUMNS: TensorUse = TensorUse(4);
    pub const COLUMNS_OF_PAIR: TensorUse = TensorUse(8);
    /// It accesses tensor memory.
    pub const MEMORY: TensorUse = TensorUse(16);
    /// Products of sparse factors.
    pub const SPARSE: TensorUse = TensorUse(32);

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
    /// Statement of the terminator.
    pub term_src: SrcId,
    /// A loop that begins here may be unrolled: it is one of the input, and no pragma forbids it.
    pub may_unroll: bool,
}

/// `dst` takes `args[p]` when control comes from block `p`; one argument per predecessor.
#[derive(Clone, Debug)]
pub struct Phi {
    pub dst: Value,
    pub args: Vec<(BlockId, Src)>,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Term {
    Jump(BlockId),
    /// To `then` where `cond` holds. `uniform`: all threads of the warp agree (`bra.uni` or proved).
    Branch {
        cond: Src,
        then: BlockId,
        els: BlockId,
        uniform: bool,
    },
    /// Indirect jump to one of `targets`. `address` is two registers wide; its low word is what an [`Op::Target`] of the
    /// same table gave, the high one zero.
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
    /// Not reached: the instruction before does not come back (`trap`).
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

    /// The list that has its targets.
    pub fn table(&self) -> Option<JumpTable> {
        match self {
            Term::Switch { table, .. } => Some(*table),
            _ => None,
        }
    }

    /// What it reads: the condition or the address.
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
    /// The instruction acts where this holds; [`Src::TRUE`] for always. A predicate (or UP for uniform ops).
    pub guard: Src,
    /// In the order that [`Op`]'s documentation gives.
    pub dsts: SmallVec<[Dst; 2]>,
    /// In the order that [`Op`]'s documentation gives.
    pub srcs: SmallVec<[Src; 4]>,
    /// Empty when the guard is always true; else one per destination, what it keeps where the guard is false.
    pub old: SmallVec<[Src; 2]>,
    /// The PTX statement this came from.
    pub src: SrcId,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dst {
    Value(Value),
    Reg(Reg),
    /// RZ, PT: the result is not wanted.
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
    /// A join or a kept value that nothing reads: any contents will do.
    Undef,
}

/// `c[bank][offset]`; 8 bytes where the operation reads a pair. Offset in bytes, a multiple of 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Const {
    pub bank: u8,
    pub offset: u16,
}

/// The upper word of a pair that is a word extended by its sign.
pub const fn sign_bits(low: u32) -> u32 {
    ((low as i32) >> 31) as u32
}

/// Operand modifiers; what each means is the operation's own (`neg` is two's complement or the sign bit).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SrcMods {
    pub neg: bool,
    pub abs: bool,
    /// Bitwise complement, or logical for predicates.
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

    /// The immediate that stands for a pair of words where operations extend it by its sign, if there is one.
    pub fn extended(low: u32, high: u32) -> Option<Src> {
        (high == sign_bits(low)).then_some(Src::imm(low))
    }

    pub const fn constant(bank: u8, offset: u16) -> Src {
        Src::new(SrcKind::Const(Const { bank, offset }))
    }

    pub const fn part(value: Value, part: u8) -> Src {
        Src::new(SrcKind::Part(value, part))
    }

    /// The value read, whole or in part.
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

    /// Everything read: guard, sources, kept values.
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

    /// Whether threads that wait at a convergence barrier for the threads that execute it may go on.
    pub fn yields(&self, inst: &Inst) -> bool {
        match inst.op {
            Op::Yield | Op::Nanosleep { .. } => true,
            op => {
                let may = self.known(&op).map_or(!self.facts.callees_never_watch, |callee| callee.yields);
                op.calls_function() && may
            }
        }
    }

    /// Whether it calls a function that may keep barriers in its frame meanwhile. An object's callees are not known, and too
    /// much would be lost if none of them could be called under a barrier, as ptxas has it.
    pub fn saves_barriers(&self, inst: &Inst) -> bool {
        let may = self.known(&inst.op).map_or(!self.facts.relocatable, |callee| callee.saves_barriers);
        inst.op.calls_function() && may
    }

    /// Convergence barriers that may be set at once. What a function saves of its caller's keeps naming threads that are
    /// released meanwhile, so one that may yield leaves these alone.
    pub fn barriers(&self) -> u16 {
        let yields = || self.layout.iter().any(|&b| self.block(b).insts.iter().any(|inst| self.yields(inst)));
        let is_kept = |index: &u8| self.facts.preserved.has(Reg { file: File::B, index: *index });
        let leaves_kept = self.routine.is_some() || !self.entry && yields();
        u16::from((0..BARRIERS).find(|index| leaves_kept && is_kept(index)).unwrap_or(BARRIERS))
    }

    /// What a call overwrites, if that is known.
    pub fn known(&self, call: &Op) -> Option<&abi::Known> {
        let Op::Call { callee } = *call else { return None };
        self.facts.known.iter().find(|(function, _)| *function == callee.function).map(|(_, known)| known)
    }

    /// It takes part in calls by the convention that all functions share.
    pub fn follows_convention(&self) -> bool {
        let calls = |inst: &Inst| inst.op.calls_function() && self.known(&inst.op).is_none();
        !self.entry && self.routine.is_none() && !self.facts.private
            || self.layout.iter().any(|&b| self.block(b).insts.iter().any(calls))
    }

    /// It calls functions.
    pub fn has_calls(&self) -> bool {
        self.layout.iter().any(|&b| self.block(b).insts.iter().any(|inst| inst.op.calls_function()))
    }

    /// It calls routines of the runtime library in which threads wait.
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
