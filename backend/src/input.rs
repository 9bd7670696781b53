//! The input of the backend: a PTX module without positions, with resolved names and typed instructions.
//!
//! The analysis builds it from the syntax tree. Its queries compare and hash it, so it contains neither text ranges nor
//! any other data that changes when only comments or blanks change. A statement is identified by its ordinal,
//! [`SrcId`]; the analysis maps ordinals to ranges. The analysis has checked the program. A malformed program (an
//! operand of the wrong class, a register that does not exist) causes [`CodegenError::Internal`](crate::CodegenError),
//! never wrong code.

use crate::abi::{Known, Preserved};
use ptx_isa::{FormId, Opcode, PtxVersion, ScalarType, Sm, Space, SpecialReg, TypeKind};
use smallvec::SmallVec;

/// The ordinal of a statement in its function, in text order. Labels and declarations do not count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SrcId(pub u32);

/// The facts about the module on which a function's code may depend, besides the function's own body.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Env {
    pub version: PtxVersion,
    /// The module's own `.target`. The target of the compilation is in [`crate::Options`].
    pub target: Sm,
    /// 64 or 32.
    pub address_size: u8,
    /// `texmode_independent`: textures and samplers have separate handles.
    pub independent_samplers: bool,
    /// Module-scope variables in text order, indexed by [`Symbol::Global`].
    pub variables: Vec<Variable>,
    /// Every function that the module declares, once, in the order of first appearance; indexed by
    /// [`Symbol::Function`].
    pub functions: Vec<Signature>,
    /// Whether a function that is called through its address may wait for other threads of its warp; true if unknown.
    pub pointees_wait: bool,
    /// Whether a function that is called through its address may watch other threads (see [`Signature::watches`]); true
    /// if unknown.
    pub pointees_watch: bool,
    /// `.pragma "nounroll"` at module scope: it applies to all functions, wherever it is.
    pub nounroll: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    pub name: String,
    pub entry: bool,
    pub linkage: Linkage,
    pub returns: Vec<Param>,
    pub params: Vec<Param>,
    /// Declared without a body in this module.
    pub external: bool,
    pub noreturn: bool,
    pub preserved: Preserved,
    /// Whether the function, or one that it calls, may wait for other threads of its warp; true if unknown.
    pub waits: bool,
    /// Whether the function watches other threads: its result may depend on what they do during the call, as with a
    /// lock, or it sleeps; true if unknown.
    pub watches: bool,
    /// The registers that a call of the function overwrites, if its code is known; otherwise the function follows the
    /// calling convention.
    pub known: Option<Known>,
    pub unified: Option<UnifiedId>,
}

/// The two numbers of `.attribute(.unified(1, 2))`. The driver gives all functions or variables with the same numbers the
/// same address, in whichever program they are.
pub type UnifiedId = [u64; 2];

/// An unknown function: it is defined in another module, and it may wait.
impl Default for Signature {
    fn default() -> Signature {
        Signature {
            name: String::new(),
            entry: false,
            linkage: Linkage::Internal,
            returns: Vec::new(),
            params: Vec::new(),
            external: true,
            noreturn: false,
            preserved: Preserved::default(),
            waits: true,
            watches: true,
            known: None,
            unified: None,
        }
    }
}

impl Signature {
    /// Whether the function is the driver's `malloc`, which may succeed after another thread has freed memory.
    pub fn is_malloc(&self) -> bool {
        self.is_of_driver() && self.name == "malloc"
    }

    /// Whether the driver provides the function. Such functions never wait for other threads.
    pub fn is_of_driver(&self) -> bool {
        self.external && driver_provides(&self.name)
    }
}

/// Whether the driver defines a function with this name for every program, so that kernels may call it without linking.
/// These are the names that ptxas 13.0.88 leaves unresolved in executables: system calls of the CUDA C++ library, graph
/// operations in kernels, and an old interface for launches from kernels.
pub fn driver_provides(name: &str) -> bool {
    matches!(
        name,
        "vprintf"
            | "vfprintf"
            | "malloc"
            | "free"
            | "__assertfail"
            | "cudaGraphLaunch"
            | "cudaGraphSetConditional"
            | "cudaGraphKernelNodeSetEnabled"
            | "cudaGraphKernelNodeSetGridDim"
            | "cudaGraphKernelNodeSetParam"
            | "cudaGraphKernelNodeUpdatesApply"
    ) || name.starts_with("__cuda_syscall")
        || name.strip_prefix("cnp").is_some_and(|name| LAUNCHES.contains(&name))
}

/// An old interface for launches from kernels, whose names begin with `cnp`.
const LAUNCHES: [&str; 17] = [
    "CtxSynchronize",
    "DeviceGetAttribute",
    "EventCreate",
    "EventDestroy",
    "EventRecord",
    "FuncGetAttribute",
    "GetDevice",
    "GetDeviceCount",
    "GetLastError",
    "GetParameterBuffer",
    "GetParameterBufferV2",
    "LaunchDevice",
    "LaunchDeviceV2",
    "SetLastError",
    "StreamCreate",
    "StreamDestroy",
    "StreamWaitEvent",
];

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Linkage {
    #[default]
    Internal,
    Visible,
    Extern,
    Weak,
    Common,
}

/// A parameter, with its offset in the parameter block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Param {
    pub name: String,
    pub ty: ScalarType,
    /// The size in bytes; for an array, the size of the whole array.
    pub size: u32,
    /// An array of elements of the type, even if it has only one.
    pub is_array: bool,
    /// Bytes, a power of two.
    pub align: u32,
    /// Bytes from the start of the parameter block.
    pub offset: u32,
    /// The register of the body for a `.reg` parameter of a function. A vector has consecutive registers; this is the
    /// first.
    pub reg: Option<RegId>,
    /// The memory that it points to, if `.ptr` states it.
    pub pointer: Option<Pointer>,
}

impl Param {
    /// Whether it is a texture, sampler or surface, which the driver binds. It takes no bytes of the parameter block.
    pub fn is_opaque(&self) -> bool {
        self.ty.kind() == TypeKind::Opaque
    }

    /// The registers of the body for a `.reg` parameter.
    pub fn registers(&self) -> impl Iterator<Item = RegId> + use<> {
        let lanes = if self.ty == ScalarType::Pred { 1 } else { self.size / self.ty.bytes().max(1) };
        self.reg.into_iter().flat_map(move |first| (0..lanes).map(move |lane| RegId(first.0 + lane)))
    }
}

/// `.ptr`: the memory that a parameter points to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pointer {
    /// `None` for a generic pointer.
    pub space: Option<Space>,
    /// Bytes, a power of two.
    pub align: u32,
}

/// A variable of any memory space, at module scope or in a body.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Variable {
    pub name: String,
    pub space: Space,
    pub linkage: Linkage,
    pub ty: ScalarType,
    /// Bytes; 0 for an unsized `.extern .shared` array (dynamic shared memory).
    pub size: u64,
    /// Bytes, a power of two; the declared alignment or the element's own.
    pub align: u32,
    pub init: Option<Init>,
    pub managed: bool,
    pub unified: Option<UnifiedId>,
}

impl Variable {
    /// Whether it is a texture, sampler or surface, which the driver binds.
    pub fn is_opaque(&self) -> bool {
        self.ty.kind() == TypeKind::Opaque
    }
}

/// The initial bytes of a variable and the addresses that are written into them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Init {
    /// At most `Variable::size` bytes; the rest is zero.
    pub bytes: Vec<u8>,
    pub relocs: Vec<InitReloc>,
    /// The fields of a sampler, which has no bytes.
    pub sampling: Sampling,
}

/// How a sampler reads textures, as far as its initializer states it. The program that launches the kernel can state the
/// rest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sampling {
    /// The driver's numbers for the addressing modes of the three dimensions and for the filter mode.
    pub modes: [Option<u8>; 4],
    pub unnormalized: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InitReloc {
    /// Byte offset in the variable.
    pub at: u64,
    pub symbol: Symbol,
    pub addend: i64,
    /// `generic(sym)`.
    pub generic: bool,
    /// 4 or 8; 1 for a byte of it.
    pub size: u8,
    /// Which byte of the address, counted from the lowest; 0 for a whole one.
    pub byte: u8,
}

/// A function with a body.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Function {
    pub name: String,
    pub entry: bool,
    pub linkage: Linkage,
    pub params: Vec<Param>,
    pub returns: Vec<Param>,
    /// Virtual registers of the body. Scopes and ranges (`%r<5>`) are already resolved to single registers.
    pub regs: Vec<Register>,
    /// Variables declared in the body (`.shared`, `.local`, `.param` of calls), indexed by [`Symbol::Local`].
    pub locals: Vec<Variable>,
    /// Labels; `Stmt::Label` defines each exactly once.
    pub labels: u32,
    /// `.branchtargets` lists, indexed by [`Operand::Targets`].
    pub targets: Vec<Vec<LabelId>>,
    pub body: Vec<Stmt>,
    /// Loops that must not be unrolled.
    pub nounroll: Nounroll,
    /// The parts of registers that operands of video instructions select, in the order of statements and operands.
    pub parts: Vec<Part>,
    pub launch: Launch,
    pub preserved: Preserved,
}

impl Function {
    /// The statements of the body without labels.
    pub fn instrs(&self) -> impl Iterator<Item = &Instr> {
        self.body.iter().filter_map(Stmt::instr)
    }

    /// Whether the body has an instruction of one of these forms.
    pub fn contains(&self, forms: &[FormId]) -> bool {
        self.instrs().any(|instr| forms.contains(&instr.opcode.form))
    }
}

/// The positions of `.pragma "nounroll"`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Nounroll {
    /// The pragma precedes the body, so it applies to all loops.
    pub everywhere: bool,
    /// Pragmas in the body, each for the loop whose first block it is in: the number of statements before it, labels
    /// included, in ascending order.
    pub before: Vec<u32>,
}

/// A part of a register, or its negation: `-%r1.b0`, `%r2.h10`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    pub src: SrcId,
    /// The operand's position.
    pub operand: u8,
    pub negated: bool,
    pub selector: Option<Selector>,
}

/// Lanes of one register, or of two registers whose lanes are numbered consecutively: `.b2` is one byte, `.h32` are two
/// halves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Selector {
    /// The size of a lane in bits: 8 or 16.
    pub bits: u8,
    /// The number of selected lanes.
    pub count: u8,
    /// The lanes as written, the highest position first.
    pub lanes: [u8; 4],
}

impl Selector {
    /// The lanes that two-lane video instructions take from their sources by default: the first source's, then the
    /// second's.
    pub const PAIRS: [Selector; 2] = [
        Selector { bits: 16, count: 2, lanes: [1, 0, 0, 0] },
        Selector { bits: 16, count: 2, lanes: [3, 2, 0, 0] },
    ];
    /// The same for four lanes.
    pub const QUARTETS: [Selector; 2] = [
        Selector { bits: 8, count: 4, lanes: [3, 2, 1, 0] },
        Selector { bits: 8, count: 4, lanes: [7, 6, 5, 4] },
    ];
}

/// Performance-tuning directives of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Launch {
    pub maxntid: Option<[u32; 3]>,
    pub reqntid: Option<[u32; 3]>,
    pub minnctapersm: Option<u32>,
    pub maxnreg: Option<u32>,
    pub reqnctapercluster: Option<[u32; 3]>,
    pub explicitcluster: bool,
    pub maxclusterrank: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Register {
    pub ty: ScalarType,
    /// The number of the module-scope register, if it is one. All functions that a thread executes share the register
    /// with that number.
    pub shared: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegId(pub u32);
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelId(pub u32);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Stmt {
    Label(LabelId),
    Instr(Instr),
}

impl Stmt {
    pub fn instr(&self) -> Option<&Instr> {
        match self {
            Stmt::Instr(instr) => Some(instr),
            Stmt::Label(_) => None,
        }
    }
}

/// New numbers for the entities that statements name, used when the statements become part of another function.
pub trait Renumber {
    fn reg(&self, reg: RegId) -> RegId;
    fn symbol(&self, symbol: Symbol) -> Symbol;
    fn label(&self, label: LabelId) -> LabelId;
    /// A list declared by `.branchtargets`.
    fn targets(&self, list: u32) -> u32;

    fn guard(&self, guard: Guard) -> Guard {
        Guard { reg: self.reg(guard.reg), ..guard }
    }

    fn operand(&self, operand: &Operand) -> Operand {
        let all = |list: &[Operand]| list.iter().map(|operand| self.operand(operand)).collect();
        match operand {
            Operand::Reg(reg) => Operand::Reg(self.reg(*reg)),
            Operand::NotPred(reg) => Operand::NotPred(self.reg(*reg)),
            Operand::Sum(reg, addend) => Operand::Sum(self.reg(*reg), *addend),
            Operand::Symbol(symbol, offset) => Operand::Symbol(self.symbol(*symbol), *offset),
            Operand::Address(address) => {
                let base = match address.base {
                    AddressBase::Reg(reg) => AddressBase::Reg(self.reg(reg)),
                    AddressBase::Symbol(symbol) => AddressBase::Symbol(self.symbol(symbol)),
                    AddressBase::Absolute => AddressBase::Absolute,
                };
                Operand::Address(Address { base, offset: address.offset })
            }
            Operand::Label(label) => Operand::Label(self.label(*label)),
            Operand::Targets(list) => Operand::Targets(self.targets(*list)),
            Operand::Vector(list) => Operand::Vector(all(list)),
            Operand::List(list) => Operand::List(all(list)),
            Operand::Pair(pair) => Operand::Pair(Box::new((self.operand(&pair.0), self.operand(&pair.1)))),
            Operand::Int(_)
            | Operand::F64(_)
            | Operand::F32(_)
            | Operand::Special(_)
            | Operand::Sink
            | Operand::Prototype(_) => operand.clone(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Instr {
    pub src: SrcId,
    pub opcode: Opcode,
    pub guard: Option<Guard>,
    /// The operands as written, destinations first. In `shfl.sync.idx.b32 %r|%p, …`, operand 0 is `Operand::Pair`.
    pub operands: Operands,
}

/// Programs have many instructions, few of which have more than four operands.
pub type Operands = SmallVec<[Operand; 4]>;

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guard {
    pub reg: RegId,
    pub negated: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    Reg(RegId),
    /// `!%p`, as a source.
    NotPred(RegId),
    /// `%r1+4`, as a source: the sum wraps around at the register's width.
    Sum(RegId, i64),
    /// An integer constant, sign-extended to 64 bits.
    Int(i64),
    /// A floating-point constant: the bits of an f64 (`0d`, decimal), or of an f32 if written as `0f`.
    F64(u64),
    F32(u32),
    /// `[base+offset]`.
    Address(Address),
    /// The address of a variable or function, plus bytes: `mov.u64 %rd1, table+8`.
    Symbol(Symbol, i64),
    Special(SpecialReg),
    Label(LabelId),
    /// A list declared by `.branchtargets`.
    Targets(u32),
    /// `{a, b, c, d}`.
    Vector(Box<[Operand]>),
    /// `d|p`: two destinations.
    Pair(Box<(Operand, Operand)>),
    /// `_`.
    Sink,
    /// A call's parenthesised list.
    List(Box<[Operand]>),
    /// A `.callprototype`.
    Prototype(Box<Signature>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    pub base: AddressBase,
    pub offset: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddressBase {
    Reg(RegId),
    Symbol(Symbol),
    /// A constant address, which is the offset.
    Absolute,
}

/// A named entity with an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Symbol {
    /// Index into [`Env::variables`].
    Global(u32),
    /// Index into [`Function::locals`].
    Local(u32),
    /// Index into [`Function::params`].
    Param(u32),
    /// Index into [`Function::returns`].
    Return(u32),
    /// Index into [`Env::functions`].
    Function(u32),
}
