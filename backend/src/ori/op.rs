//! Ori's operations: SASS mnemonics with their modifiers, and the order of their operands.
//!
//! One variant per machine operation; its payload is exactly what its encoding selects besides operands.
//! `ops!` makes the enum, its names and the text of its modifiers from one list, so a modifier prints and
//! parses as SASS writes it: `ISETP.LT.U32.AND`.
//!
//! In the comments, `R2` is a pair and `P` a predicate; `alu` accepts a register, an immediate, a constant or
//! a uniform register (one such operand per instruction, see [`crate::legalize`]).

use crate::ori::memory::Order;

macro_rules! modifiers {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
            pub enum $name { $($variant),* }

            impl $name {
                pub const ALL: &'static [$name] = &[$($name::$variant),*];

                /// As printed in an operation's name; with its dot, or empty for the default.
                pub const fn text(self) -> &'static str {
                    match self { $($name::$variant => $text),* }
                }
            }
        )*
    };
}

modifiers! {
    /// Rounding of float results.
    Round { Rn "", Rm ".RM", Rp ".RP", Rz ".RZ" }
    /// Integer comparison.
    ICmp { F ".F", Lt ".LT", Eq ".EQ", Le ".LE", Gt ".GT", Ne ".NE", Ge ".GE", T ".T" }
    /// Float comparison; the `U` ones hold for unordered operands too.
    FCmp {
        F ".F", Lt ".LT", Eq ".EQ", Le ".LE", Gt ".GT", Ne ".NE", Ge ".GE", Num ".NUM",
        Nan ".NAN", Ltu ".LTU", Equ ".EQU", Leu ".LEU", Gtu ".GTU", Neu ".NEU", Geu ".GEU", T ".T",
    }
    /// Combination of a comparison with a predicate.
    Bool { And ".AND", Or ".OR", Xor ".XOR" }
    /// Signedness of a 32-bit integer operation.
    Sign { S32 "", U32 ".U32" }
    /// Element of a memory access.
    MemSize { U8 ".U8", S8 ".S8", U16 ".U16", S16 ".S16", B32 "", B64 ".64", B128 ".128" }
    /// Eviction policy.
    Evict { Normal "", First ".EF", Last ".EL", Unchanged ".EU", NoAllocate ".NA", LastUse ".LU" }
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
    AtomOp {
        Add ".ADD", Min ".MIN", Max ".MAX", Inc ".INC", Dec ".DEC", And ".AND", Or ".OR", Xor ".XOR", Exch ".EXCH",
    }
    AtomType {
        U32 "", S32 ".S32", U64 ".64", S64 ".S64", F32 ".F32.FTZ.RN", F64 ".F64.RN", F16x2 ".F16x2.RN", Bf16x2 ".BF16_V2.RN",
    }
    /// Integer formats of conversions.
    IntType { U8 ".U8", S8 ".S8", U16 ".U16", S16 ".S16", U32 ".U32", S32 "", U64 ".U64", S64 ".S64" }
    FloatType { F16 ".F16", Bf16 ".BF16", F32 ".F32", F64 ".F64" }
    /// Rounding of float-to-integral conversions.
    IntRound { Near ".RN", Floor ".FLOOR", Ceil ".CEIL", Trunc ".TRUNC" }
    MembarScope { Cta ".SC.CTA", Gpu ".SC.GPU", Sys ".SC.SYS", AllGpu ".ALL.GPU", AllSys ".ALL.SYS", AllCta ".ALL.CTA" }
    BarMode { Sync ".SYNC", SyncDefer ".SYNC.DEFER_BLOCKING", Arv ".ARV", RedPopc ".RED.POPC", RedAnd ".RED.AND", RedOr ".RED.OR" }
    MatchMode { Any ".ANY", All ".ALL" }
    ReduxOp { And ".AND", Or ".OR", Xor ".XOR", Sum ".SUM", Min ".MIN", Max ".MAX" }
    CctlOp { Ivall ".IVALL" }
}

/// A named special register read by `S2R`, `S2UR` or `CS2R`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sr(pub u8);

/// A global or generic access besides its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    pub size: MemSize,
    pub order: Order,
    pub evict: Evict,
    pub prefetch: Prefetch,
    /// Bytes added to the address: signed 24 bits.
    pub offset: i32,
}

impl ICmp {
    /// The comparison that holds where this one does not.
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
    /// The comparison that holds where this one does not: ordered and unordered change places.
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

/// A machine operation. Operands are given as `destinations <- sources`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    // Pseudo-operations, gone after allocation.
    /// `W <- r, r, …`: a wide value from its registers, in order. Any source may be `Zero`, `Imm`, `Const`, `Undef`.
    Pack,
    /// `W <- W`: a copy of any file and width that the allocator tries to make free; any source kind.
    Copy,

    // Moves and selection.
    /// `R <- alu`.
    Mov,
    /// `R <- r, alu, P`: the first where P holds.
    Sel,
    /// `R <- r, alu, P` with float modifiers on its sources.
    Fsel {
        ftz: bool,
    },
    /// `R <- r, alu(selector), r`: bytes of the first and third by selector nibbles.
    Prmt,
    /// `R <- `special register.
    S2r {
        sr: Sr,
    },
    /// `R2 <- ` (or `R`, `wide` false) special register, fixed latency: clocks, and zeroing a pair with `SRZ`.
    Cs2r {
        sr: Sr,
        wide: bool,
    },
    /// `R <- ` predicates masked by an immediate: srcs are P0..P6 as listed. For spilling predicates.
    P2r {
        mask: u8,
    },
    /// `R <- r, alu`… reserved for predicate restores: `P…(written by mask) <- r`.
    R2p {
        mask: u8,
    },

    // Integer.
    /// `R, P(carry), P(carry2) <- r, alu, r`; with `x`: `<- r, alu, r, P(carry in), P(carry in 2)`. Sources may be negated
    /// (at most as the encoding allows); with `x` a negated source is complemented, not negated.
    Iadd3 {
        x: bool,
    },
    /// `R <- r, alu, alu(c)`: low 32 bits of a*b+c.
    Imad {
        sign: Sign,
    },
    /// `R2 <- r, alu, R2`: a*b+c, 32x32+64.
    ImadWide {
        sign: Sign,
    },
    /// `R <- r, alu, R2|r`: high 32 bits of a*b + c.
    ImadHi {
        sign: Sign,
    },
    /// `R, P(carry out) <- r, alu, r, P(carry in)`: a*b + c + carry; low or high half.
    ImadX {
        sign: Sign,
        hi: bool,
    },
    /// `R <- r(a), alu(b)`: (a << shift) + b. Carry-out: `R, P <- r, alu`.
    Lea {
        shift: u8,
    },
    /// `R <- r(a low), alu(b), r(a high), P(carry in)`: high part of ((a << shift) + b); `x` takes a carry.
    LeaHi {
        shift: u8,
        x: bool,
    },
    /// `R <- r(a), alu(b), P(carry in)`: (sign-extended a >> (32 - shift)) + b.
    LeaHiSx32 {
        shift: u8,
        x: bool,
    },
    /// `R <- r, alu, r`: any function of three bits; bit `4a+2b+c` of `lut`.
    Lop3 {
        lut: u8,
    },
    /// `P <- r, alu, r`: as `Lop3`, the predicate says whether the result is not zero.
    Lop3P {
        lut: u8,
    },
    /// `P, P <- P, P, P`: any function of three predicates; the second result by `lut2`.
    Plop3 {
        lut: u8,
        lut2: u8,
    },
    /// `R <- r(low), alu(shift), r(high)`: funnel shift; `hi` gives the high word.
    Shf {
        right: bool,
        wrap: bool,
        hi: bool,
        ty: ShfType,
    },
    /// `P, P <- r, alu, P(combined)[, P(ex)]`; `ex` extends a comparison of the low words.
    Isetp {
        cmp: ICmp,
        sign: Sign,
        bool_: Bool,
        ex: bool,
    },
    /// `R <- r, alu, P`: minimum where P holds, else maximum.
    Imnmx {
        sign: Sign,
    },
    /// `R <- alu`: absolute value.
    Iabs,
    /// `R <- alu`: count of ones.
    Popc,
    /// `R <- alu`: position of the leading one (or sign change); `shift`: counted from the top. All ones if none.
    Flo {
        sign: Sign,
        shift: bool,
    },
    /// `R <- alu`: bits reversed.
    Brev,
    /// `R <- r, alu`: sign extension from bit b, `wrap` taking b modulo 32.
    Sgxt {
        sign: Sign,
        wrap: bool,
    },
    /// `R <- r, alu`: a mask of b ones from bit a.
    Bmsk {
        wrap: bool,
    },
    /// `R <- r, alu, r`: sum of products of four 8-bit (`two` false) or two 16-bit lanes, plus c.
    Idp {
        two: bool,
        a_signed: bool,
        b_signed: bool,
        hi: bool,
    },
    /// `R <- r, alu, r`: |a-b| + c.
    Vabsdiff {
        sign: Sign,
    },

    // fp32.
    /// `R <- r, alu`.
    Fadd {
        round: Round,
        ftz: bool,
        sat: bool,
    },
    Fmul {
        round: Round,
        ftz: bool,
        sat: bool,
    },
    /// `R <- r, alu, alu(c)`.
    Ffma {
        round: Round,
        ftz: bool,
        sat: bool,
    },
    /// `R <- r, alu, P`: minimum where P holds, else maximum.
    Fmnmx {
        ftz: bool,
        nan: bool,
    },
    /// `P, P <- r, alu, P`.
    Fsetp {
        cmp: FCmp,
        ftz: bool,
        bool_: Bool,
    },
    /// `R <- alu`: a function of one float, approximate.
    Mufu {
        func: MufuFunc,
    },
    /// `P <- r, alu`: holds when a/b needs the slow path.
    Fchk,

    // fp64; operands are pairs, constants 8 bytes, immediates the high word.
    Dadd {
        round: Round,
    },
    Dmul {
        round: Round,
    },
    Dfma {
        round: Round,
    },
    Dsetp {
        cmp: FCmp,
        bool_: Bool,
    },

    // Packed half.
    /// `R <- r, alu`; `bf16` from sm_90.
    Hadd2 {
        bf16: bool,
        ftz: bool,
        sat: bool,
        f32: bool,
    },
    Hmul2 {
        bf16: bool,
        ftz: bool,
        sat: bool,
    },
    Hfma2 {
        bf16: bool,
        ftz: bool,
        sat: bool,
        relu: bool,
    },
    Hsetp2 {
        cmp: FCmp,
        bf16: bool,
        ftz: bool,
        bool_: Bool,
    },
    Hmnmx2 {
        bf16: bool,
        nan: bool,
        ftz: bool,
    },

    // Conversions.
    /// `R|R2 <- alu`.
    I2f {
        to: FloatType,
        from: IntType,
        round: Round,
    },
    /// `R <- alu`: 32-bit integer to f32 on the ALU, sm_86 and from sm_90.
    I2fp {
        sign: Sign,
        round: Round,
    },
    /// `R|R2 <- alu`.
    F2i {
        to: IntType,
        from: FloatType,
        round: IntRound,
        ftz: bool,
        ntz: bool,
    },
    /// `R|R2 <- alu`.
    F2f {
        to: FloatType,
        from: FloatType,
        round: Round,
        ftz: bool,
        sat: bool,
    },
    /// `R|R2 <- alu`: rounding to an integral value.
    Frnd {
        ty: FloatType,
        round: IntRound,
        ftz: bool,
    },
    /// `R <- r(high), alu(low)`: two floats packed as halves; `RZ` high for one.
    F2fp {
        bf16: bool,
        round: Round,
        relu: bool,
        sat: bool,
    },

    // Uniform datapath.
    /// `UR|UR2 <- c`: constant to uniform register(s).
    Uldc {
        wide: bool,
    },
    /// `UR <- ur|imm`.
    Umov,
    /// `UR <- ur(a), ur|imm(b)`: (a << shift) + b.
    Ulea {
        shift: u8,
    },
    S2ur {
        sr: Sr,
    },
    /// `UR <- r`: of a warp-uniform value.
    R2ur,

    // Memory. `addr` is R2 (64-bit), R (32-bit spaces) or `Zero`; `desc` is the UR pair of the global window,
    // `Zero` where the target has none.
    /// `R.. <- addr, desc`.
    Ldg {
        access: Access,
    },
    /// `<- addr, desc, R..`.
    Stg {
        access: Access,
    },
    /// Generic.
    Ld {
        access: Access,
    },
    St {
        access: Access,
    },
    /// `R.. <- addr, UR|Zero(base)`.
    Lds {
        size: MemSize,
        order: Order,
        offset: i32,
    },
    /// `<- addr, UR|Zero(base), R..`.
    Sts {
        size: MemSize,
        order: Order,
        offset: i32,
    },
    /// `R.. <- addr`; R1-relative when `addr` is [`SrcKind::Reg`](super::ir::SrcKind::Reg) R1.
    Ldl {
        size: MemSize,
        offset: i32,
    },
    /// `<- addr, R..`.
    Stl {
        size: MemSize,
        offset: i32,
    },
    /// `R.. <- R|Zero(index)`: `c[bank][index+offset]`.
    Ldc {
        size: MemSize,
        bank: u8,
        offset: i32,
    },
    /// `R.. <- addr, desc, R..`; global, or generic where `generic`.
    Atom {
        op: AtomOp,
        ty: AtomType,
        order: Order,
        offset: i32,
        generic: bool,
    },
    /// `R.. <- addr, desc, R..(compare), R..(swap)`.
    AtomCas {
        wide: bool,
        order: Order,
        offset: i32,
        generic: bool,
    },
    /// `<- addr, desc, R..`: no result; global only.
    Red {
        op: AtomOp,
        ty: AtomType,
        order: Order,
        offset: i32,
    },
    /// `R.. <- addr, UR|Zero, R..`.
    Atoms {
        op: AtomOp,
        ty: AtomType,
        order: Order,
        offset: i32,
    },
    /// `R.. <- addr, UR|Zero, R..(compare), R..(swap)`.
    AtomsCas {
        wide: bool,
        order: Order,
        offset: i32,
    },
    Membar {
        scope: MembarScope,
    },
    Errbar,
    Cctl {
        op: CctlOp,
    },

    // Warp.
    /// `R, P(in range) <- r, r|imm(lane), r|imm(clamp)`.
    Shfl {
        mode: ShflMode,
    },
    /// `R(ballot), P(result) <- P`.
    Vote {
        mode: VoteMode,
    },
    /// `R(mask), P(all agree) <- r|R2`.
    Match {
        mode: MatchMode,
        wide: bool,
    },
    /// `UR <- r`.
    Redux {
        op: ReduxOp,
        sign: Sign,
    },
    /// `<- r|imm(mask)`: waits for those threads.
    Warpsync,
    Nanosleep,

    // Barriers and control.
    /// `<- r|imm(barrier)[, r|imm(threads)][, P]`; `RED` results: `P|R` by [`Op::B2r`].
    Bar {
        mode: BarMode,
    },
    /// `R|P <- `barrier result register.
    B2r {
        result: bool,
    },
    /// `B <- `: sets the barrier to the active threads; they meet at the block's `target`.
    Bssy {
        target: super::ir::BlockId,
    },
    /// `<- B`.
    Bsync,
    /// `<- B`: removes the thread from the barrier.
    Break,
    /// `trap` and `brkpt`.
    Bpt {
        trap: bool,
    },
    Nop,
}
