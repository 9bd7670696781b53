//! The rows, grouped as in the manual. `FormId` has one variant per row.

macro_rules! form_ids {
    ($($id:ident $mnemonic:literal;)*) => {
        /// A row of the table. Lowering matches it exhaustively, so a new row is a compile error there.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum FormId { $($id),* }

        impl FormId {
            pub const ALL: &'static [FormId] = &[$(FormId::$id),*];

            pub const fn mnemonic(self) -> &'static str {
                match self { $(FormId::$id => $mnemonic),* }
            }
        }
    };
}

form_ids! {
    // Integer arithmetic.
    AddInt "add"; SubInt "sub"; MulInt "mul"; MadInt "mad"; Mul24 "mul24"; Mad24 "mad24"; Sad "sad";
    DivInt "div"; RemInt "rem"; AbsInt "abs"; NegInt "neg"; MinInt "min"; MaxInt "max";
    Popc "popc"; Clz "clz"; Bfind "bfind"; Fns "fns"; Brev "brev"; Bfe "bfe"; Bfi "bfi"; Szext "szext";
    Bmsk "bmsk"; Dp4a "dp4a"; Dp2a "dp2a";
    // Extended precision.
    AddCc "add"; Addc "addc"; SubCc "sub"; Subc "subc"; MadCc "mad"; Madc "madc";
    // Floating point.
    AddF32 "add"; AddF64 "add"; SubF32 "sub"; SubF64 "sub"; MulF32 "mul"; MulF64 "mul"; FmaF32 "fma"; FmaF64 "fma";
    MadF32 "mad"; MadF64 "mad"; DivF32 "div"; DivF64 "div"; AbsFloat "abs"; NegFloat "neg"; MinF32 "min"; MinF64 "min";
    MaxF32 "max"; MaxF64 "max"; RcpF32 "rcp"; RcpF64 "rcp"; RcpApproxF64 "rcp"; SqrtF32 "sqrt"; SqrtF64 "sqrt";
    RsqrtF32 "rsqrt"; RsqrtF64 "rsqrt"; Sin "sin"; Cos "cos"; Lg2 "lg2"; Ex2 "ex2"; Tanh "tanh"; Testp "testp";
    Copysign "copysign";
    // Half precision.
    AddHalf "add"; SubHalf "sub"; MulHalf "mul"; FmaHalf "fma"; AbsHalf "abs"; NegHalf "neg"; MinHalf "min";
    MaxHalf "max"; Ex2Half "ex2"; TanhHalf "tanh";
    // Comparison and selection.
    SetpInt "setp"; SetpFloat "setp"; SetpHalf "setp"; SetInt "set"; SetFloat "set"; Selp "selp"; Slct "slct";
    // Logic and shift.
    And "and"; Or "or"; Xor "xor"; Not "not"; Cnot "cnot"; Lop3 "lop3"; Shf "shf"; Shl "shl"; Shr "shr";
    // Data movement and conversion.
    Mov "mov"; Prmt "prmt"; Ld "ld"; Ldu "ldu"; St "st"; Cvta "cvta"; Isspacep "isspacep"; Cvt "cvt";
    Prefetch "prefetch"; Shfl "shfl"; ShflSync "shfl";
    // Control flow.
    Bra "bra"; BrxIdx "brx"; Call "call"; Ret "ret"; Exit "exit";
    // Synchronisation, atomics and warp operations.
    Bar "bar"; Barrier "barrier"; BarWarpSync "bar"; Membar "membar"; Fence "fence"; Atom "atom"; Red "red";
    Vote "vote"; VoteSync "vote"; MatchSync "match"; Activemask "activemask"; Redux "redux"; Elect "elect";
    // Miscellaneous.
    Trap "trap"; Brkpt "brkpt"; Nanosleep "nanosleep"; Pmevent "pmevent";
}
