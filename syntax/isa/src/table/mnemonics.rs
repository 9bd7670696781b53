//! All mnemonics of the language. Each has rows and a page.

macro_rules! mnemonics {
    ($($mnemonic:literal,)*) => {
        /// Sorted.
        pub(crate) const MNEMONICS: &[&str] = &[$($mnemonic),*];

        /// The page of each mnemonic in `docs/`.
        pub(crate) const PAGES: &[&str] = &[$(include_str!(concat!("../../docs/", $mnemonic, ".md"))),*];
    };
}

#[rustfmt::skip]
mnemonics! {
    "abs", "activemask", "add", "addc", "alloca", "and", "applypriority", "atom", "bar", "barrier", "bfe", "bfi",
    "bfind", "bmsk", "bra", "brev", "brkpt", "brx", "call", "clmad", "clusterlaunchcontrol", "clz", "cnot", "copysign",
    "cos", "cp", "createpolicy", "cvt", "cvta", "discard", "div", "dp2a", "dp4a", "elect", "ex2", "exit", "fabric", "fence",
    "fma", "fns", "getctarank", "griddepcontrol", "isspacep", "istypep", "ld", "ldmatrix", "ldu", "lg2", "lop3",
    "mad", "mad24", "madc", "mapa", "match", "max", "mbarrier", "membar", "min", "mma", "mov", "movmatrix", "mul",
    "mul24", "multimem", "nanosleep", "neg", "not", "or", "pmevent", "popc", "prefetch", "prefetchu", "prmt",
    "rcp", "red", "redux", "rem", "ret", "rsqrt", "sad", "selp", "set", "setmaxnreg", "setp", "shf", "shfl", "shl",
    "shr", "sin", "slct", "spcompress", "spdecompress", "sqrt", "st", "stackrestore", "stacksave", "stmatrix", "sub", "subc", "suld", "suq",
    "sured", "sust", "szext", "tanh", "tcgen05", "tensormap", "testp", "tex", "tld4", "trap", "txq", "vabsdiff",
    "vabsdiff2", "vabsdiff4", "vadd", "vadd2", "vadd4", "vavrg2", "vavrg4", "vmad", "vmax", "vmax2", "vmax4",
    "vmin", "vmin2", "vmin4", "vote", "vset", "vset2", "vset4", "vshl", "vshr", "vsub", "vsub2", "vsub4", "wgmma",
    "wmma", "xor",
}

/// The mnemonics that most programs consist of, the most frequent first. Editors offer them before the others.
#[rustfmt::skip]
pub(crate) const FREQUENT: &[&str] = &[
    "mov", "ld", "st", "add", "mad", "mul", "fma", "setp", "bra", "cvta", "cvt", "sub", "shl", "shr", "and", "or", "xor",
    "selp", "min", "max", "neg", "ret", "bar", "div", "rem", "call", "atom", "shfl",
];
