//! PTX to machine code.
//!
//! ```text
//! input::Function ──build──► ori (SSA) ──phases──► legalize ──► regalloc ──► ori (allocated)
//!                  ──emit──► sass::Inst ──sched──► control fields ──encode──► CompiledFunction ──link──► cubin
//! ```
//!
//! The backend knows neither text, trees nor queries. It takes a position-free module and gives back code,
//! resources and a map from code offsets to statements. It does no IO and is deterministic.

pub mod abi;
pub mod assemble;
pub mod calls;
pub mod compile;
pub mod copies;
pub mod cubin;
pub mod driver;
pub mod emit;
pub mod explain;
pub mod hazard;
pub mod inline;
pub mod input;
pub mod join;
pub mod layout;
pub mod legalize;
pub mod mach;
pub mod natural_loops;
pub mod occupancy;
pub mod order;
pub mod ori;
pub mod phase;
pub mod phases;
pub mod products;
pub mod regalloc;
mod registers;
mod remat;
pub mod runtime;
pub mod sched;
pub mod session;
pub mod shown;
pub mod switches;
pub mod target;

pub use compile::{compile, compile_private};
pub use cubin::{LinkFunction, link, object};
pub use registers::{Fixed, limit as register_limit};
pub use session::Session;
pub use switches::Switches;

use input::SrcId;
use std::fmt;

/// How the functions of a module become one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Linking {
    /// An executable whose kernels contain copies of the functions that they call.
    #[default]
    Joined,
    /// An executable whose functions have sections of their own, so that a debugger finds each function in one place. The
    /// driver places the sections and fills in the addresses of functions.
    Separate,
    /// `--compile-only`: an object for a linker, which fills in all addresses.
    Object,
}

impl Linking {
    pub const fn is_object(self) -> bool {
        matches!(self, Linking::Object)
    }

    /// Whether code refers to other functions of the module by their distance. Otherwise it refers to them by their
    /// address, which is filled in later.
    pub const fn is_joined(self) -> bool {
        matches!(self, Linking::Joined)
    }
}

/// The target and the options of a compilation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    pub sm: ptx_isa::Sm,
    /// The optimization level, 0 to 3, as in `ptxas -O`.
    pub opt_level: u8,
    /// `--maxrregcount`: an upper bound on registers per thread.
    pub max_registers: Option<u32>,
    pub linking: Linking,
    /// `--device-debug`: the result states where PTX registers are.
    pub shows_registers: bool,
    /// The result says why it is as it is: [`CompiledFunction::explanation`].
    pub explains: bool,
    /// `--make-errors-visible-at-exit`: before threads end, they wait until their accesses have reported errors.
    pub errors_at_exit: bool,
    /// `--g-tensor-memory-access-check`: the operands of `tcgen05` are checked, and violations are traps.
    pub checks_tensor_memory: bool,
    pub switches: Switches,
}

impl Options {
    /// ptxas's defaults for a target.
    pub fn new(sm: ptx_isa::Sm) -> Self {
        Self {
            sm,
            opt_level: 3,
            max_registers: None,
            linking: Linking::Joined,
            shows_registers: false,
            explains: false,
            errors_at_exit: false,
            checks_tensor_memory: false,
            switches: Switches::ALL_ON,
        }
    }
}

/// Why a function has no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodegenError {
    /// A construct that the backend does not compile yet.
    Unsupported { at: SrcId, what: String },
    /// A limit of the hardware or of the format.
    Limit { at: SrcId, what: String },
    /// A defect of the backend: the phase and what it found.
    Internal { at: SrcId, phase: &'static str, what: String },
}

impl CodegenError {
    pub fn unsupported(at: SrcId, what: impl Into<String>) -> Self {
        Self::Unsupported { at, what: what.into() }
    }

    pub fn internal(at: SrcId, phase: &'static str, what: impl Into<String>) -> Self {
        Self::Internal { at, phase, what: what.into() }
    }

    /// The error with its statement replaced.
    pub(crate) fn moved(mut self, to: impl Fn(SrcId) -> SrcId) -> Self {
        match &mut self {
            Self::Unsupported { at, .. } | Self::Limit { at, .. } | Self::Internal { at, .. } => {
                *at = to(*at)
            }
        }
        self
    }

    pub fn at(&self) -> SrcId {
        match self {
            Self::Unsupported { at, .. } | Self::Limit { at, .. } | Self::Internal { at, .. } => *at,
        }
    }
}

impl fmt::Display for CodegenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { what, .. } => write!(f, "not supported yet: {what}"),
            Self::Limit { what, .. } => write!(f, "limit exceeded: {what}"),
            Self::Internal { phase, what, .. } => write!(f, "internal error in {phase}: {what}"),
        }
    }
}

impl std::error::Error for CodegenError {}

/// Registers, memory and barriers of a compiled function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Resources {
    /// As ptxas reports it: the highest register used, plus one, plus two that the hardware takes.
    pub registers: u32,
    pub stack_bytes: u32,
    pub spill_store_bytes: u32,
    pub spill_load_bytes: u32,
    /// The number of bytes of static shared memory.
    pub shared_bytes: u32,
    pub barriers: u32,
    /// The number of bytes of constant bank 0: the base and the parameters.
    pub const0_bytes: u32,
}

/// One function's machine code, relocatable within its section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompiledFunction {
    pub name: String,
    pub entry: bool,
    /// 128-bit words, little endian in the section; padded to a multiple of 128 bytes.
    pub code: Box<[u128]>,
    /// The statement of each instruction of `code`; `None` for padding.
    pub lines: Box<[Option<SrcId>]>,
    pub copies: Copies,
    /// If functions were inlined: the same, with the statement numbers of the function that contains all bodies.
    pub inlined: Option<Box<[Option<SrcId>]>>,
    /// Whether each instruction of `code` loads or stores a spilled value.
    pub spills: Box<[bool]>,
    /// The number of general registers that are live before each instruction of `code`.
    pub live_registers: Box<[u16]>,
    /// The locations of PTX registers, if requested.
    pub shown: Vec<shown::Location>,
    pub resources: Resources,
    /// Explains the registers, spills and loops, if requested.
    pub explanation: Option<Box<explain::Explanation>>,
    pub attributes: Attributes,
    /// The registers that a call of the function overwrites, if its callers must know.
    pub known: Option<abi::Known>,
    /// Instructions that are completed when the function is linked into a kernel; see [`join`].
    pub links: Vec<assemble::CodeLink>,
    /// The targets of indirect branches, in the order of the branches.
    pub tables: Vec<assemble::JumpTable>,
    /// Numbers of 64 bits that the code reads from constant bank 2.
    pub literals: Vec<u64>,
}

/// The statements that unrolling copied, and the loads that were joined with others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Copies {
    /// The statement, or the copy of a statement, of each instruction of the code.
    pub lines: Box<[Option<SrcId>]>,
    pub unrolled: Vec<copies::Unrolled>,
    /// Copies whose load another instruction executes: the statement of that instruction, and this copy.
    pub joined: Vec<(SrcId, SrcId)>,
}

/// Byte offsets and facts for `.nv.info`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Byte offsets of every `EXIT`.
    pub exits: Vec<u32>,
    /// Warp-synchronous instructions: offset and mask register (all ones: a constant mask).
    pub coop_groups: Vec<(u32, u32)>,
    /// Byte offsets of warp-wide instructions that the compiler added.
    pub own_warp_operations: Vec<u32>,
    pub uses_convergence_barriers: bool,
    /// Byte offsets of calls of functions that the driver provides.
    pub system_calls: Vec<u32>,
    pub reads_ctaid_z: bool,
    pub tensor: ori::ir::TensorUse,
    pub matrix: products::MatrixUse,
    /// The code reads the address of the shared memory that the system reserves.
    pub reads_reserved_shared: bool,
    /// The symbols whose addresses the code reads from bank 4 (see [`layout::address_slot`]).
    pub symbols: Vec<layout::Slot>,
    /// The maximum number of registers per thread that the launch bounds and the options allow.
    pub max_registers: u32,
    /// For a function with `setmaxnreg`: whether it changes the registers of a thread, or why it is ignored.
    pub changes_registers: Option<Result<(), Fixed>>,
    /// The offset of each parameter of a kernel from the first parameter byte.
    pub params: Vec<u32>,
    /// The offset of each variable of the body from the start of the frame; `None` for variables elsewhere.
    pub locals: Vec<Option<u32>>,
    /// The words of a kernel's constant bank for texture, sampler and surface variables.
    pub handles: layout::HandleWords,
}
