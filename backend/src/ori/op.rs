//! The modifiers of operations. Each is a choice, with the text that SASS uses.
//!
//! The operations themselves are rows of [`super::operations`].

pub use super::operations::Op;

use super::memory::Order;
use crate::abi::Preserved;
use crate::input::Symbol;

macro_rules! modifiers {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal $(or $other:literal)*),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
            pub enum $name { $($variant),* }

            impl $name {
                pub const ALL: &'static [$name] = &[$($name::$variant),*];

                /// The text in an operation's name, with its dot; empty for the default.
                pub const fn text(self) -> &'static str {
                    match self { $($name::$variant => $text),* }
                }

                /// The names in machine instructions. Families differ in whether they print a default.
                pub const fn machine_texts(self) -> &'static [&'static str] {
                    match self { $($name::$variant => &[$text $(, $other)*]),* }
                }
            }
        )*
    };
}

modifiers! {
    /// Rounding of float results.
    Round { Rn "", Rm ".RM", Rp ".RP", Rz ".RZ" }
    /// Inputs of fused multiply-adds of halves that count as zero: none, subnormal numbers, or the NaN that tensor copies
    /// write for elements out of bounds.
    HalfZeros { Zero "", Ftz ".FTZ", Oob ".OOB" }
    /// The factor of the register in an address.
    AddressScale { One "", Four ".X4", Eight ".X8", Sixteen ".X16" }
    /// The halves of a source that an operation reads: its own halves, or the high one for both.
    HalfRead { Own "", High ".H1_H1" }
    /// Integer comparison.
    ICmp { F ".F", Lt ".LT", Eq ".EQ", Le ".LE", Gt ".GT", Ne ".NE", Ge ".GE", T ".T" }
    /// Float comparison; the `U` ones are also true for unordered operands.
    FCmp {
        F ".F", Lt ".LT", Eq ".EQ", Le ".LE", Gt ".GT", Ne ".NE", Ge ".GE", Num ".NUM",
        Nan ".NAN", Ltu ".LTU", Equ ".EQU", Leu ".LEU", Gtu ".GTU", Neu ".NEU", Geu ".GEU", T ".T",
    }
    /// Combination of a comparison with a predicate.
    Bool { And ".AND", Or ".OR", Xor ".XOR" }
    /// Signedness of a 32-bit integer operation.
    Sign { S32 "" or ".S32", U32 ".U32" }
    /// Signedness of a 64-bit one.
    WideSign { S64 ".S64", U64 ".U64" }
    /// Element of a memory access.
    MemSize { U8 ".U8", S8 ".S8", U16 ".U16", S16 ".S16", B32 "", B64 ".64", B128 ".128" }
    /// Eviction policy.
    Evict { Normal "", First ".EF", Last ".EL", Unchanged ".EU", NoAllocate ".NA", LastUse ".LU" }
    /// Eviction policy of the second-level cache.
    EvictL2 { First ".EFL2", Normal ".ENL2", Last ".ELL2" }
    /// Prefetch size hint of a load.
    Prefetch { None "", B64 ".LTC64B", B128 ".LTC128B", B256 ".LTC256B" }
    /// What a `SHF` shifts.
    ShfType { S64 ".S64", U64 ".U64", S32 ".S32", U32 ".U32" }
    ShflMode { Idx ".IDX", Up ".UP", Down ".DOWN", Bfly ".BFLY" }
    VoteMode { All ".ALL", Any ".ANY", Eq ".EQ" }
    MufuFunc {
        Cos ".COS", Sin ".SIN", Ex2 ".EX2", Lg2 ".LG2", Rcp ".RCP", Rsq ".RSQ", Rcp64h ".RCP64H", Rsq64h ".RSQ64H",
        Sqrt ".SQRT", Tanh ".TANH",
    }
    /// Functions that have a form for halves.
    HalfFunc { Ex2 ".EX2", Tanh ".TANH" }
    AtomOp {
        Add ".ADD", Min ".MIN", Max ".MAX", Inc ".INC", Dec ".DEC", And ".AND", Or ".OR", Xor ".XOR", Exch ".EXCH",
    }
    AtomType {
        U32 "", S32 ".S32", U64 ".64", S64 ".S64", B128 ".128", F32 ".F32.FTZ.RN", F32x2 ".F32x2.FTZ.RN", F32x4 ".F32x4.FTZ.RN",
        F64 ".F64.RN", F16x2 ".F16x2.RN", F16x4 ".F16x4.RN", F16x8 ".F16x8.RN", Bf16x2 ".BF16x2.RN", Bf16x4 ".BF16x4.RN",
        Bf16x8 ".BF16x8.RN",
    }
    /// The size of a compare-and-swap.
    CasSize { B32 "", B64 ".64", B128 ".128" }
    /// Integer formats of conversions.
    IntType { U8 ".U8", S8 ".S8", U16 ".U16", S16 ".S16", U32 ".U32", S32 "", U64 ".U64", S64 ".S64" }
    FloatType { F16 ".F16", Bf16 ".BF16", F32 ".F32" or "", F64 ".F64" }
    /// Rounding of float-to-integral conversions.
    IntRound { Near ".RN" or "", Floor ".FLOOR", Ceil ".CEIL", Trunc ".TRUNC" }
    MembarScope { Cta ".SC.CTA", Gpu ".SC.GPU", Sys ".SC.SYS", AllGpu ".ALL.GPU", AllSys ".ALL.SYS", AllCta ".ALL.CTA" }
    /// The mode of a barrier of the block. All threads of a warp execute an aligned one together.
    BarMode { Sync ".SYNC", SyncAligned ".SYNC.ALIGNED", Arv ".ARV", RedPopc ".RED.POPC", RedAnd ".RED.AND", RedOr ".RED.OR" }
    /// The kind of a convergence barrier. `Loose`: some threads may yield before it, so the others do not wait for
    /// them.
    Meeting { Firm "" or ".RECONVERGENT", Loose ".LOOSE" or "" }
    /// What `IDP` multiplies: four bytes by four bytes, or two halves by two bytes.
    DotMode { A4 ".4A", A2Lo ".2A.LO", A2Hi ".2A.HI" }
    MatchMode { Any ".ANY", All ".ALL" }
    ReduxOp { And ".AND" or "", Or ".OR", Xor ".XOR", Sum ".SUM", Min ".MIN", Max ".MAX" }
    CctlOp { Ivall ".IVALL" }
    /// The space that `QSPC` tests; `D` is the shared memory of the cluster.
    QuerySpace { Global ".G", Local ".L", Shared ".S", Cluster ".D" }
    /// The operation on a cache line: discard it, prefetch it into the first or the second level, prefetch it into the
    /// second level with high priority, or reset its priority.
    LineOp { Discard ".RML2", Prefetch1 ".PF1", Prefetch2 ".PF2", PrefetchLast ".PML2", Demote ".DML2" }
    /// The result of an arrival. `Mask`: the state before the arrivals of other threads, and the mask of these threads.
    /// `Remote`: no state; the object may be in any block of the cluster.
    ArriveMode { State "", Mask ".TMASK", Remote ".RED" }
    /// What an arrival at an mbarrier object counts: one thread and no bytes, a number of threads, one thread that
    /// announces bytes, or bytes that are announced or have arrived.
    Arrival { OneAndBytes "", One ".A1T0", OneByte ".A0T1", Count ".ART0", Announced ".A0TR", Bytes ".A0TX" }
    /// How an mbarrier object counts the arrival after copies: in the only way of objects that are words, as one of the
    /// expected arrivals of a phase, or as the byte that was announced for it.
    CopiesArrive { Word "", Expected ".ARVCNT", Announced ".TRANSCNT" }
    /// The memory of one end of a bulk copy.
    BulkPlace { Global ".G", Shared ".S" }
    /// The operand type of a bulk reduction.
    BulkType {
        U32 "", S32 ".S32", U64 ".U64", S64 ".S64", F16 ".F16.RN", F32 ".F32.RN", F64 ".F64.RN", Bf16 ".BF16.RN",
    }
    /// Integer types of a reduction over devices.
    ManyInt { B32 ".32", S32 ".S32", B64 ".64", S64 ".S64" }
    /// How a reduction over devices combines values: bytes and halves may be added in a wider format.
    ManyOp { Add ".ADD", Min ".MIN", Max ".MAX", AddF32 ".F32ADD", AddWide ".HPADD" }
    ManyFloat {
        F16x2 ".F16x2", F16x4 ".F16x4", F16x8 ".F16x8", Bf16x2 ".BF16x2", Bf16x4 ".BF16x4", Bf16x8 ".BF16x8",
        E5m2x4 ".E5M2x4", E5m2x8 ".E5M2x8", E5m2x16 ".E5M2x16", E4m3x4 ".E4M3x4", E4m3x8 ".E4M3x8", E4m3x16 ".E4M3x16",
        F32 ".F32", F32x2 ".F32x2", F32x4 ".F32x4", F64 ".F64",
    }
    MapOp { Invalidate ".IV", Prefetch ".PF" }
    /// The types of the factors of a `wgmma` product.
    GroupFormat { F16 "", Bf16 ".BF16", Tf32 ".TF32" }
    /// Dimensions of a tensor.
    Dims { D1 ".1D", D2 ".2D", D3 ".3D", D4 ".4D", D5 ".5D" }
    /// The elements of a tile: a box, or columns of an image (im2col).
    TensorMode { Tiled "", Im2col ".IM2COL", W ".W", W128 ".W128", Gather ".GATHER4", Scatter ".SCATTER4" }
    /// Shared, global or tensor memory.
    ViewOf { Shared ".S", Global ".G", Tensor ".T" }
    /// Element types of a `tcgen05` product: floats of 16 bits or more, integers, floats of at most 8 bits, and of 4
    /// bits.
    TensorKind { Half "", Integer ".I8", Quarter ".F8", Nibble ".F4" }
    /// Use of the collector buffer of A.
    TensorCollect { Discard "", Keep ".A_KEEP", Last ".A_REUSE", Reuse ".A_REUSE.A_KEEP" }
    /// Lanes and bits of a row that a warp moves at a time; the halves of a warp may use different columns.
    TensorLanes {
        L32B32 "", L16B64 ".16dp64bit", L16B128 ".16dp128bit", L16B256 ".16dp256bit", Lower ".16dp32bit_t0_t15",
        Upper ".16dp32bit_t16_t31",
    }
    /// How often the access is repeated.
    TensorCount { X1 "", X2 ".x2", X4 ".x4", X8 ".x8", X16 ".x16", X32 ".x32", X64 ".x64", X128 ".x128" }
    /// Lanes and bits of a copy; shapes with fewer lanes are replicated.
    TensorCopy {
        L128B256 "", L4B256 ".4dp256bit", L128B128 ".128dp128bit", L64Pairs02 ".2x64dp128bit_lw02_lw13",
        L64Pairs01 ".2x64dp128bit_lw01_lw23", L32 ".4x32dp128bit",
    }
    /// Elements of a copy in shared memory, which are widened to bytes.
    TensorFormat { Bytes "", Nibbles ".U4x16P64", Sextets ".U6x16P32" }
    TensorStat { Max ".MAX", MaxAbs ".MAXABS", Min ".MIN", MinAbs ".MINABS" }
    TensorStatType { U32 "", S32 ".S32", F32 ".F32" }
    /// Granularity of scale factors: the default, or smaller blocks.
    TensorScales { Wide "", Fine ".4X" or ".BLOCK16" }
    /// Whether matrices of shared memory are moved as they are or transposed.
    MatrixLayout { Rows ".M88", Columns ".MT88" }
    /// Elements of matrices of bytes in memory, which narrower ones become.
    ByteFormat { Bytes ".8", Nibbles ".U4x16P64TO8", Sextets ".U6x16P32TO8" }
    StoreFormat { Bytes ".8" }
    StoreLayout { Columns ".MT168" }
    /// Matrices of 8 by 16 bytes without transposition, and of 16 by 16 bytes with transposition.
    ByteLayout { Rows ".M816", Columns ".MT1616" }
    /// The number of 8 by 8 matrices.
    MatrixCount { One "", Two ".2", Four ".4" }
    /// Rows, columns and depth of a product. A result with four registers has the layout of 16 by 8.
    HalfShape { M16n8k8 ".1688", M16n8k16 ".16816", M16n8k32 ".16832" }
    Tf32Shape { M16n8k4 ".1684", M16n8k8 ".1688" }
    ByteShape { M8n8k16 ".8816", M16n8k16 ".16816", M16n8k32 ".16832", M16n8k64 ".16864" }
    NibbleShape { M8n8k32 ".8832", M16n8k32 ".16832", M16n8k64 ".16864" }
    BitShape { M8n8k128 ".88128", M16n8k128 ".168128", M16n8k256 ".168256" }
    QuarterShape { M16n8k16 ".16816", M16n8k32 ".16832", M16n8k64 ".16864" }
    /// Shapes of `.f64` products; targets with only one shape do not print it.
    DoubleShape { M8n8k4 "" or ".8x8x4", M16n8k4 ".16x8x4", M16n8k8 ".16x8x8", M16n8k16 ".16x8x16" }
    /// Shapes of sparse products of 4-bit integers.
    SparseNibbleShape { M16n8k64 ".16864", M16n8k128 ".168128" }
    /// Types of the result and of the accumulator of `mma.m8n8k4`.
    QuadTypes { Halves ".F16.F16", Mixed ".F32.F16", Singles ".F32.F32" }
    /// Steps of `mma.m8n8k4`; each computes two registers of the result.
    QuadStep { First ".STEP0", Second ".STEP1", Third ".STEP2", Fourth ".STEP3" }
    /// Scale factors: powers of two, or 8-bit floats.
    ScaleFormat { E8 ".E8", Ue4m3 ".UE4M3" }
    /// The number of blocks along K.
    ScaleBlocks { Two "", Four ".4X" }
    /// Integers that a packing conversion makes.
    PackType { U8 ".U8", S8 ".S8", U16 ".U16", S16 ".S16", U2 ".U2", S2 ".S2", U4 ".U4", S4 ".S4" }
    /// The part of the third source that a packing conversion keeps below its results: the low half, 24 bits or 28
    /// bits.
    PackKept { Half "", Most ".24", Nearly ".28" }
    /// Saturation of a packing conversion; some targets always saturate.
    PackSat { Sat ".SAT" or "" }
    /// Pairs of integers.
    PairType { B16 ".16x2", U16 ".U16x2", S16 ".S16x2" }
    ScaleType { E8 ".E8" }
    RandomRound { Rs ".RS" }
    /// Rounding of scale factors.
    ScaleRound { Rp ".RP", Rz ".RZ" }
    /// The types that `CREDUX` reduces.
    ExtremeType { U32 "", S32 ".S32", F32 ".F32" }
    FloatRedux { Max ".MAX", MaxAbs ".MAXABS", Min ".MIN", MinAbs ".MINABS" }
    /// The bitwise operation before the population count.
    BitOp { Xor ".XOR", And ".AND" }
    /// A routine of the runtime library: a PTX instruction that has no machine instruction.
    Routine {
        DivideU64 ".DIVIDE_U64", QuotientF32 ".QUOTIENT_F32", ReciprocalF32 ".RECIPROCAL_F32", RootF32 ".ROOT_F32",
        QuotientF64 ".QUOTIENT_F64", ReciprocalF64 ".RECIPROCAL_F64", RootF64 ".ROOT_F64",
        ReciprocalRootF64 ".RECIPROCAL_ROOT_F64",
        TruncatedQuotientF64 ".TRUNCATED_QUOTIENT_F64", TruncatedRootF64 ".TRUNCATED_ROOT_F64",
        BarrierSync ".BARRIER_SYNC", BarrierArrive ".BARRIER_ARRIVE", BarrierCount ".BARRIER_COUNT",
        BarrierAll ".BARRIER_ALL", BarrierAny ".BARRIER_ANY",
        WarpBallots ".WARP_BALLOTS", ShuffleIdx ".SHUFFLE_IDX", ShuffleUp ".SHUFFLE_UP", ShuffleDown ".SHUFFLE_DOWN",
        ShuffleBfly ".SHUFFLE_BFLY", MatchWord ".MATCH_WORD", MatchPair ".MATCH_PAIR", Elect ".ELECT",
        ReduxAnd ".REDUX_AND", ReduxOr ".REDUX_OR", ReduxXor ".REDUX_XOR", ReduxSum ".REDUX_SUM",
        ReduxMinU32 ".REDUX_MIN_U32", ReduxMaxU32 ".REDUX_MAX_U32",
        ReduxMinS32 ".REDUX_MIN_S32", ReduxMaxS32 ".REDUX_MAX_S32",
        CreduxMinU32 ".CREDUX_MIN_U32", CreduxMaxU32 ".CREDUX_MAX_U32",
        CreduxMinS32 ".CREDUX_MIN_S32", CreduxMaxS32 ".CREDUX_MAX_S32",
        CreduxMin ".CREDUX_MIN", CreduxMax ".CREDUX_MAX",
        CreduxMinAbs ".CREDUX_MIN_ABS", CreduxMaxAbs ".CREDUX_MAX_ABS",
        CreduxMinNan ".CREDUX_MIN_NAN", CreduxMaxNan ".CREDUX_MAX_NAN",
        CreduxMinAbsNan ".CREDUX_MIN_ABS_NAN", CreduxMaxAbsNan ".CREDUX_MAX_ABS_NAN",
    }
    /// The coordinates of a texture; in arrays, the layer index comes first.
    TexDims { D1 ".1D" or "1D", D2 ".2D" or "2D", D3 ".3D" or "3D", A1 ".ARRAY_1D" or "ARRAY_1D", A2 ".ARRAY_2D" or "ARRAY_2D", Cube ".CUBE" or "CUBE", Cubes ".ARRAY_CUBE" or "ARRAY_CUBE" }
    /// How the level of a texture is selected: automatically, the first level, or an explicit level.
    TexLevel { Own "", First ".LZ", Given ".LL" }
    /// The kind of texture read: sampled, with or without explicit derivatives; a fetch of one element or of one of its
    /// samples; or a gather of one channel of four neighbors.
    TexRead {
        Sample ".SAMPLE", Derive ".DERIVE", Fetch ".FETCH", FetchSample ".FETCH_SAMPLE", GatherR ".GATHER_R", GatherG ".GATHER_G", GatherB ".GATHER_B", GatherA ".GATHER_A",
    }
    /// The coordinates of a surface; in arrays, the layer index comes last.
    SurfDims { D1 ".1D", D2 ".2D", D3 ".3D", A1 ".1D_ARRAY", A2 ".2D_ARRAY" }
    /// Where the handle of a texture or a surface is: in a constant or in uniform registers, or in a register.
    HandleAt { Shared "", Register ".B" }
    /// A driver table that describes textures, samplers or surfaces; `Unified` describes textures with their samplers.
    Descriptors { Unified ".UNIFIED", Texture ".TEXTURE", Sampler ".SAMPLER", Surface ".SURFACE" }
    /// The type of a surface reduction; elements are as wide as those of the surface.
    SurfType { U32 "", S32 ".S32", U64 ".U64", S64 ".S64", Element ".SD32", Element64 ".SD64" }
    /// The effect of an access outside of a surface: none, that of the nearest element, or an error.
    SurfClamp { Ignore ".IGN", Clamp "", Trap ".TRAP" }
    /// Floats of at most 8 bits.
    QuarterType { E4m3 ".E4M3", E5m2 ".E5M2", E3m2 ".E3M2", E2m3 ".E2M3", E2m1 ".E2M1" }
}

/// A special register that `S2R`, `S2UR` or `CS2R` reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sr(pub u8);

/// The properties of a global or generic access besides its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    pub size: MemSize,
    pub order: Order,
    pub evict: Evict,
    pub prefetch: Prefetch,
    /// The number of bytes added to the address: signed 24 bits.
    pub offset: i32,
}

/// A called function, by its index in [`Env::functions`](crate::input::Env::functions).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Callee {
    pub function: u32,
    /// Whether the function may wait for other threads.
    pub waits: bool,
    pub preserved: Preserved,
}

/// A number that is known when a kernel is linked with the functions that it calls: a word of a symbol's address, or
/// the number that represents the address of a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Link {
    pub symbol: Symbol,
    /// The offset from the symbol in bytes.
    pub offset: i32,
    /// Whether the high word of the address is meant.
    pub high: bool,
}

/// The target list of an indirect branch, by its number in the function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JumpTable(pub u32);

impl Descriptors {
    /// The symbol whose value is the size of an entry; the driver defines it.
    pub const fn entry_size(self) -> &'static str {
        match self {
            Descriptors::Unified => ".nv.unified.texrefDescSize",
            Descriptors::Texture => ".nv.independent.texrefDescSize",
            Descriptors::Sampler => ".nv.independent.samplerrefDescSize",
            Descriptors::Surface => ".nv.surfrefDescSize",
        }
    }

    /// The offset of the table's address from the first of [`crate::target::DriverWords::descriptors`].
    pub const fn place(self) -> u16 {
        match self {
            Descriptors::Unified | Descriptors::Texture => 0,
            Descriptors::Sampler => 8,
            Descriptors::Surface => 16,
        }
    }
}

impl Op {
    /// The number of leading results that the operation overwrites in threads which do not execute it: other threads of
    /// their quads. These threads may be anywhere in the function, so the registers have no other use in it.
    pub const fn results_of_others(&self) -> usize {
        if matches!(self, Op::TexDerive { .. }) { 3 } else { 0 }
    }

    /// Whether control leaves the function's code and returns.
    pub const fn is_call(&self) -> bool {
        self.calls_function() || matches!(self, Op::CallRoutine { .. })
    }

    /// Whether the uniform result combines values of all threads that execute the operation together.
    pub const fn reduces_group(&self) -> bool {
        matches!(self, Op::Redux { .. } | Op::Credux { .. } | Op::Elect)
    }

    /// The registers that the called function preserves, if nothing more precise is known.
    pub const fn preserved(&self) -> Preserved {
        match *self {
            Op::Call { callee } => callee.preserved,
            Op::CallTo { preserved, .. } => preserved,
            Op::CallDriver { .. } => Preserved::BY_DRIVER,
            _ => Preserved::BY_CONVENTION,
        }
    }

    /// Whether it calls a function by the calling convention of functions, whose code is elsewhere.
    pub const fn calls_function(&self) -> bool {
        matches!(self, Op::Call { .. } | Op::CallTo { .. } | Op::CallDriver { .. })
    }
}

impl AddressScale {
    /// The number of bits by which the register is shifted.
    pub const fn shift(self) -> u8 {
        match self {
            AddressScale::One => 0,
            AddressScale::Four => 2,
            AddressScale::Eight => 3,
            AddressScale::Sixteen => 4,
        }
    }
}

impl ICmp {
    /// The comparison that is true if this one is false.
    pub const fn inverse(self) -> ICmp {
        match self {
            ICmp::F => ICmp::T,
            ICmp::Lt => ICmp::Ge,
            ICmp::Eq => ICmp::Ne,
            ICmp::Le => ICmp::Gt,
            ICmp::Gt => ICmp::Le,
            ICmp::Ne => ICmp::Eq,
            ICmp::Ge => ICmp::Lt,
            ICmp::T => ICmp::F,
        }
    }
}

impl FCmp {
    /// The comparison that is true if this one is false; ordered and unordered are exchanged.
    pub const fn inverse(self) -> FCmp {
        match self {
            FCmp::F => FCmp::T,
            FCmp::Lt => FCmp::Geu,
            FCmp::Eq => FCmp::Neu,
            FCmp::Le => FCmp::Gtu,
            FCmp::Gt => FCmp::Leu,
            FCmp::Ne => FCmp::Equ,
            FCmp::Ge => FCmp::Ltu,
            FCmp::Num => FCmp::Nan,
            FCmp::Nan => FCmp::Num,
            FCmp::Ltu => FCmp::Ge,
            FCmp::Equ => FCmp::Ne,
            FCmp::Leu => FCmp::Gt,
            FCmp::Gtu => FCmp::Le,
            FCmp::Neu => FCmp::Eq,
            FCmp::Geu => FCmp::Lt,
            FCmp::T => FCmp::F,
        }
    }
}

impl Access {
    pub const fn weak(size: MemSize, offset: i32) -> Access {
        Access { size, order: Order::Weak, evict: Evict::Normal, prefetch: Prefetch::None, offset }
    }
}

/// The bits of a number that select one of the sixteen barriers of a block; the hardware ignores other bits.
pub const BARRIER_BITS: u32 = 0xf;

/// Truth tables of logical functions of three operands; combine the constants with Rust's operators.
pub mod lut {
    pub const A: u8 = 0xf0;
    pub const B: u8 = 0xcc;
    pub const C: u8 = 0xaa;
    /// `c` if `b` is set, otherwise `a`.
    pub const SELECT: u8 = (B & C) | (!B & A);
}
