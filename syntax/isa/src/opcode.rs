//! An instruction's dotted name, resolved against the table.
//!
//! The resolved [`Opcode`] is what the checks and the lowering read: the form, the modifiers present and
//! the types in the order written. It is small, `Copy` and independent of the text.

use crate::{FormId, ScalarType};

macro_rules! mods {
    ($($name:ident $text:literal;)*) => {
        /// A modifier that is not a type: `.ftz`, `.global`, `.v4`, `.relaxed`, `.L2::128B`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum Mod { $($name),* }

        impl Mod {
            pub const ALL: &'static [Mod] = &[$(Mod::$name),*];

            /// The name without its dot.
            pub const fn text(self) -> &'static str {
                match self { $(Mod::$name => $text),* }
            }

            /// Reads a name without its dot.
            pub fn parse(text: &str) -> Option<Self> {
                Some(match text { $($text => Mod::$name,)* _ => return None })
            }
        }
    };
}

mods! {
    // Arithmetic.
    Rn "rn"; Rz "rz"; Rm "rm"; Rp "rp"; Rna "rna"; Rs "rs";
    Rni "rni"; Rzi "rzi"; Rmi "rmi"; Rpi "rpi";
    Ftz "ftz"; Sat "sat"; Satfinite "satfinite"; Relu "relu"; Nan "NaN"; XorSign "xorsign"; Abs "abs"; Oob "oob";
    Approx "approx"; Full "full"; Cc "cc"; Hi "hi"; Lo "lo"; Wide "wide"; Shiftamt "shiftamt";
    Wrap "wrap"; Clamp "clamp"; L "l"; R "r"; Finite "finite"; Infinite "infinite"; Number "number";
    NotANumber "notanumber"; Normal "normal"; Subnormal "subnormal";
    // Comparison and boolean combination.
    Eq "eq"; Ne "ne"; Lt "lt"; Le "le"; Gt "gt"; Ge "ge"; Ls "ls"; Hs "hs";
    Equ "equ"; Neu "neu"; Ltu "ltu"; Leu "leu"; Gtu "gtu"; Geu "geu"; Num "num"; IsNan "nan";
    And "and"; Or "or"; Xor "xor"; Not "not"; Popc "popc";
    // State spaces and addresses.
    Global "global"; Shared "shared"; SharedCta "shared::cta"; SharedCluster "shared::cluster"; Local "local";
    Const "const"; Param "param"; ParamEntry "param::entry"; ParamFunc "param::func"; To "to";
    // Vectors.
    V2 "v2"; V4 "v4"; V8 "v8"; X1 "x1"; X2 "x2"; X4 "x4";
    // Memory consistency and caching.
    Weak "weak"; Relaxed "relaxed"; Acquire "acquire"; Release "release"; AcqRel "acq_rel"; Sc "sc";
    Volatile "volatile"; Mmio "mmio"; Cta "cta"; Cluster "cluster"; Gpu "gpu"; Sys "sys"; Gl "gl";
    Ca "ca"; Cg "cg"; Cs "cs"; Lu "lu"; Cv "cv"; Wb "wb"; Wt "wt"; Nc "nc"; Unified "unified";
    L1EvictNormal "L1::evict_normal"; L1EvictUnchanged "L1::evict_unchanged"; L1EvictFirst "L1::evict_first";
    L1EvictLast "L1::evict_last"; L1NoAllocate "L1::no_allocate"; L2EvictNormal "L2::evict_normal";
    L2EvictFirst "L2::evict_first"; L2EvictLast "L2::evict_last"; L2CacheHint "L2::cache_hint";
    L264B "L2::64B"; L2128B "L2::128B"; L2256B "L2::256B"; L1 "L1"; L2 "L2"; LevelCacheEviction "level::eviction_priority";
    // Atomics.
    Exch "exch"; Cas "cas"; Add "add"; Inc "inc"; Dec "dec"; Min "min"; Max "max"; Noftz "noftz";
    // Warps and barriers.
    Sync "sync"; Aligned "aligned"; Arrive "arrive"; Red "red"; Warp "warp"; All "all"; Any "any"; Uni "uni";
    Ballot "ballot"; Up "up"; Down "down"; Bfly "bfly"; Idx "idx"; Async "async"; Wait "wait"; Proxy "proxy";
    // prmt.
    F4e "f4e"; B4e "b4e"; Rc8 "rc8"; Ecl "ecl"; Ecr "ecr"; Rc16 "rc16";
}

/// Most modifiers of one instruction.
pub const MAX_MODS: usize = 12;
/// Most type suffixes of one instruction.
pub const MAX_TYPES: usize = 4;

/// An instruction name resolved against its row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Opcode {
    pub form: FormId,
    mods: [Option<Mod>; MAX_MODS],
    types: [Option<ScalarType>; MAX_TYPES],
}

impl Opcode {
    /// `mods` and `types` in the order written. `None` when there are more than the limits.
    pub fn new(form: FormId, mods: &[Mod], types: &[ScalarType]) -> Option<Self> {
        let mut opcode = Self { form, mods: [None; MAX_MODS], types: [None; MAX_TYPES] };
        for (i, &m) in mods.iter().enumerate() {
            *opcode.mods.get_mut(i)? = Some(m);
        }
        for (i, &t) in types.iter().enumerate() {
            *opcode.types.get_mut(i)? = Some(t);
        }
        Some(opcode)
    }

    pub fn has(&self, m: Mod) -> bool {
        self.mods.contains(&Some(m))
    }

    /// Modifiers in the order written.
    pub fn mods(&self) -> impl Iterator<Item = Mod> + '_ {
        self.mods.iter().map_while(|&m| m)
    }

    /// The `i`-th type suffix as written: `cvt.f32.s8` has `F32` at 0 and `S8` at 1.
    pub fn ty(&self, i: usize) -> Option<ScalarType> {
        self.types.get(i).copied().flatten()
    }
}
