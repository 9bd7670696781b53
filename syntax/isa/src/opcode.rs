//! An instruction's dotted name, resolved with the table.
//!
//! Checks and lowering use the resolved [`Opcode`]: the form, the modifiers, and the types in the order written. It is
//! small, `Copy`, and independent of the text.

use crate::lookup::NameIndex;
use crate::{FormId, ScalarType, Space};
use std::sync::LazyLock;

/// Whether a row in a list of words ends in `free`.
macro_rules! is_free {
    () => {
        false
    };
    (free) => {
        true
    };
}
pub(crate) use is_free;

macro_rules! mods {
    ($($name:ident $text:literal $($free:ident)?;)*) => {
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

            /// Parses a name without its dot.
            pub fn parse(text: &str) -> Option<Self> {
                match Suffix::parse(text) { Some(Suffix::Mod(m)) => Some(m), _ => None }
            }

            /// Whether the word is a modifier only in some instructions, and an ordinary word elsewhere.
            pub(crate) const fn is_free(self) -> bool {
                match self { $(Mod::$name => is_free!($($free)?)),* }
            }
        }
    };
}

mods! {
    // Arithmetic.
    Rn "rn"; Rz "rz"; Rm "rm"; Rp "rp"; Rna "rna"; Rs "rs"; Rni "rni"; Rzi "rzi"; Rmi "rmi"; Rpi "rpi"; Ftz "ftz";
    Sat "sat"; Satfinite "satfinite"; Relu "relu"; Nan "NaN"; XorSign "xorsign" free; Abs "abs"; Oob "oob" free;
    Approx "approx"; Full "full" free; Cc "cc"; Hi "hi"; Lo "lo"; Wide "wide" free; Shiftamt "shiftamt";
    Wrap "wrap"; Clamp "clamp"; L "l" free; R "r" free; Finite "finite"; Infinite "infinite"; Number "number";
    NotANumber "notanumber"; Normal "normal"; Subnormal "subnormal";
    // Comparison and boolean combination.
    Eq "eq"; Ne "ne"; Lt "lt"; Le "le"; Gt "gt"; Ge "ge"; Ls "ls"; Hs "hs"; Equ "equ"; Neu "neu"; Ltu "ltu";
    Leu "leu"; Gtu "gtu"; Geu "geu"; Num "num"; IsNan "nan"; And "and"; Or "or"; Xor "xor"; Not "not" free;
    Popc "popc";
    // State spaces and addresses.
    Global "global"; Shared "shared"; SharedCta "shared::cta"; SharedCluster "shared::cluster"; Local "local";
    Const "const"; Param "param"; ParamEntry "param::entry"; ParamFunc "param::func"; To "to" free;
    // Vectors.
    V2 "v2"; V4 "v4"; V8 "v8" free; X1 "x1"; X2 "x2"; X4 "x4";
    // Memory consistency and caching.
    Weak "weak"; Relaxed "relaxed"; Acquire "acquire"; Release "release"; AcqRel "acq_rel"; Sc "sc";
    Volatile "volatile"; Mmio "mmio"; Cta "cta"; Cluster "cluster"; Gpu "gpu"; Sys "sys"; Gl "gl"; Ca "ca"; Cg "cg";
    Cs "cs"; Lu "lu"; Cv "cv"; Wb "wb"; Wt "wt"; Nc "nc"; Unified "unified"; L1EvictNormal "L1::evict_normal";
    L1EvictUnchanged "L1::evict_unchanged"; L1EvictFirst "L1::evict_first"; L1EvictLast "L1::evict_last";
    L1NoAllocate "L1::no_allocate"; L2EvictNormal "L2::evict_normal"; L2EvictFirst "L2::evict_first";
    L2EvictLast "L2::evict_last"; L2CacheHint "L2::cache_hint"; L264B "L2::64B"; L2128B "L2::128B";
    L2256B "L2::256B"; L1 "L1"; L2 "L2";
    // Atomics.
    Exch "exch"; Cas "cas"; Add "add"; Inc "inc"; Dec "dec"; Min "min"; Max "max"; Noftz "noftz";
    // Warps and barriers.
    Sync "sync"; Aligned "aligned"; Arrive "arrive" free; Red "red" free; Warp "warp" free; All "all"; Any "any";
    Uni "uni"; Ballot "ballot"; Up "up"; Down "down"; Bfly "bfly"; Idx "idx"; Async "async" free; Wait "wait" free;
    Proxy "proxy" free;
    // prmt.
    F4e "f4e"; B4e "b4e"; Rc8 "rc8"; Ecl "ecl"; Ecr "ecr"; Rc16 "rc16";
    // Geometry of textures, surfaces and tensor copies.
    D1d "1d"; D2d "2d"; D3d "3d"; D4d "4d"; D5d "5d"; A1d "a1d"; A2d "a2d"; Cube "cube"; Acube "acube";
    D2dms "2dms"; A2dms "a2dms"; Level "level" free; Grad "grad" free; Base "base" free; G "g" free; B "b" free;
    A "a" free; P "p" free; Trap "trap"; Zero "zero";
    // Texture and surface queries.
    Width "width"; Height "height"; Depth "depth"; ChannelDataType "channel_data_type";
    ChannelOrder "channel_order"; NormalizedCoords "normalized_coords"; ArraySize "array_size";
    NumMipmapLevels "num_mipmap_levels"; NumSamples "num_samples"; MemoryLayout "memory_layout";
    FilterMode "filter_mode"; AddrMode0 "addr_mode_0"; AddrMode1 "addr_mode_1"; AddrMode2 "addr_mode_2";
    ForceUnnormalizedCoords "force_unnormalized_coords";
    // Asynchronous copies, barrier objects and proxies.
    Bulk "bulk" free; BulkGroup "bulk_group"; CommitGroup "commit_group" free; WaitGroup "wait_group" free;
    WaitAll "wait_all" free; Read "read" free; Tensor "tensor" free; Tile "tile" free;
    TileGather4 "tile::gather4" free; TileScatter4 "tile::scatter4" free; Im2col "im2col" free;
    Im2colNoOffs "im2col_no_offs" free; Im2colW "im2col::w" free; Im2colW128 "im2col::w::128" free;
    Reduce "reduce" free; Prefetch "prefetch" free; Mbarrier "mbarrier";
    MbarrierCompleteTxBytes "mbarrier::complete_tx::bytes"; MbarrierArriveOne "mbarrier::arrive::one";
    MbarrierInit "mbarrier_init"; MulticastCluster "multicast::cluster";
    MulticastClusterAll "multicast::cluster::all"; CtaGroup1 "cta_group::1" free; CtaGroup2 "cta_group::2" free;
    CpMask "cp_mask" free; Noinc "noinc"; Init "init" free; Inval "inval" free; ArriveDrop "arrive_drop" free;
    ExpectTx "expect_tx" free; CompleteTx "complete_tx" free; TestWait "test_wait" free; TryWait "try_wait" free;
    Parity "parity" free; PendingCount "pending_count" free; NoComplete "noComplete";
    AsyncGlobal "async::global" free; AsyncSharedCta "async::shared::cta" free;
    AsyncSharedCluster "async::shared::cluster" free; AsyncGeneric "async::generic"; Alias "alias";
    Generic "generic" free; Tensormap "tensormap"; TensormapGeneric "tensormap::generic";
    SyncRestrictSharedCta "sync_restrict::shared::cta"; SyncRestrictSharedCluster "sync_restrict::shared::cluster";
    CpFenceproxy "cp_fenceproxy" free; Replace "replace" free; GlobalAddress "global_address"; Rank "rank";
    BoxDim "box_dim"; GlobalDim "global_dim"; GlobalStride "global_stride"; ElementStride "element_stride";
    Elemtype "elemtype"; B1024 "b1024"; InterleaveLayout "interleave_layout"; SwizzleMode "swizzle_mode";
    SwizzleAtomicity "swizzle_atomicity"; FillMode "fill_mode"; TryCancel "try_cancel" free;
    QueryCancel "query_cancel" free; IsCanceled "is_canceled" free; GetFirstCtaid "get_first_ctaid" free;
    GetFirstCtaidX "get_first_ctaid::x" free; GetFirstCtaidY "get_first_ctaid::y" free;
    GetFirstCtaidZ "get_first_ctaid::z" free; LaunchDependents "launch_dependents" free;
    Fractional "fractional" free; Range "range" free; Cvt "cvt" free; L2EvictUnchanged "L2::evict_unchanged";
    Mask "mask" free; LdReduce "ld_reduce" free; St "st" free; AccF16 "acc::f16"; AccF32 "acc::f32";
    IgnoreOob "ignore_oob" free; LayoutV0 "layout::v0" free; LayoutV1 "layout::v1" free;
    CheckLayout "check_layout" free; PhaseTypePrimary "phase_type::primary" free;
    PhaseTypeConditional "phase_type::conditional" free; ProxyReadonly "proxy::readonly" free; L132B "L1::32B" free;
    ValidAddr "valid_addr" free; ScaledN2Ue8m0 "scaled::n2::ue8m0" free; Exclusive "exclusive";
    Submit "submit" free; Pzo "pzo" free; SyncRestrictReads "sync_restrict::reads" free;
    MulticastCluster16b "multicast::cluster::16b" free; MulticastCluster32b "multicast::cluster::32b" free;
    OverrideGlobalAddress "override::global_address" free; OverrideGlobalDim "override::global_dim" free;
    OverrideGlobalDimStride "override::global_dim_stride" free; Im2colNoOffsW "im2col_no_offs::w" free;
    ReportDisabled "mbarrier::report::disabled" free; ReportPer16BytesWord "mbarrier::report::validity::per_16bytes::80000000" free;
    ReportPer16BytesHalf "mbarrier::report::validity::per_16bytes::8000" free;
    ReportPer16BytesByte "mbarrier::report::validity::per_16bytes::80" free;
    ReportPer16BytesNibble "mbarrier::report::validity::per_16bytes::8" free;
    ReportPerElement "mbarrier::report::validity::per_element::ff" free;
    SyncRestrictSharedClusterRead "sync_restrict::shared::cluster::read" free;
    SyncRestrictReadByA "sync_restrict::shared::read::mma::a" free;
    // Memory of other GPUs, accessed through the fabric.
    Fabric "fabric" free; TryGet "try_get" free; TryPut "try_put" free; TryRed "try_red" free; TryPullred "try_pullred" free; TryAtom "try_atom" free;
    ReportFabric "mbarrier::report::fabric" free; MbarrierCompleteTx16Bytes "mbarrier::complete_tx::16B" free;
    CountedBytes "counted::bytes" free; Multimem "multimem" free; OpRestrictFetching "op_restrict::fetching" free;
    GenericFabric "generic::fabric" free; FabricGeneric "fabric::generic" free; FabricFabric "fabric::fabric" free;
    // Video instructions and packed conversion.
    Po "po"; Shr7 "shr7"; Shr15 "shr15"; Pack "pack" free;
    // Matrices.
    M8n8 "m8n8"; M8n16 "m8n16"; M16n8 "m16n8"; M16n16 "m16n16"; Trans "trans"; X8 "x8"; X16 "x16"; X32 "x32";
    X64 "x64"; X128 "x128"; Row "row"; Col "col"; Load "load" free; Store "store" free; Mma "mma" free; C "c" free;
    D "d" free; Sp "sp"; SpOrderedMetadata "sp::ordered_metadata"; BlockScale "block_scale" free;
    ScaleVec1X "scale_vec::1X" free; ScaleVec2X "scale_vec::2X" free; ScaleVec4X "scale_vec::4X" free;
    KindF16 "kind::f16" free; KindTf32 "kind::tf32" free; KindF8f6f4 "kind::f8f6f4" free; KindI8 "kind::i8" free;
    KindMxf8f6f4 "kind::mxf8f6f4" free; KindMxf4 "kind::mxf4" free; KindMxf4nvf4 "kind::mxf4nvf4" free;
    M8n8k4 "m8n8k4"; M8n8k16 "m8n8k16"; M8n8k32 "m8n8k32"; M8n8k128 "m8n8k128"; M16n8k4 "m16n8k4";
    M16n8k8 "m16n8k8"; M16n8k16 "m16n8k16"; M16n8k32 "m16n8k32"; M16n8k64 "m16n8k64"; M16n8k128 "m16n8k128";
    M16n8k256 "m16n8k256"; M16n16k8 "m16n16k8"; M16n16k16 "m16n16k16"; M32n8k16 "m32n8k16"; M8n32k16 "m8n32k16";
    MmaAsync "mma_async" free; Fence "fence" free;
    // Tensor memory.
    Alloc "alloc" free; Dealloc "dealloc" free; RelinquishAllocPermit "relinquish_alloc_permit" free; Ld "ld" free;
    Cp "cp" free; Shift "shift" free; Commit "commit" free; FenceBeforeThreadSync "fence::before_thread_sync" free;
    FenceAfterThreadSync "fence::after_thread_sync" free; WaitLd "wait::ld" free; WaitSt "wait::st" free;
    Pack16b "pack::16b" free; Unpack16b "unpack::16b" free; N16x64b "16x64b"; N16x128b "16x128b";
    N16x256b "16x256b"; N32x32b "32x32b"; N16x32bx2 "16x32bx2"; N128x256b "128x256b"; N4x256b "4x256b";
    N128x128b "128x128b"; N64x128b "64x128b"; N32x128b "32x128b"; Warpx20213 "warpx2::02_13" free;
    Warpx20123 "warpx2::01_23" free; Warpx4 "warpx4" free; Ws "ws" free; Ashift "ashift" free; Block16 "block16";
    Block32 "block32"; CollectorAFill "collector::a::fill" free; CollectorAUse "collector::a::use" free;
    CollectorALastuse "collector::a::lastuse" free; CollectorADiscard "collector::a::discard" free;
    CollectorB0Fill "collector::b0::fill" free; CollectorB0Use "collector::b0::use" free;
    CollectorB0Lastuse "collector::b0::lastuse" free; CollectorB0Discard "collector::b0::discard" free;
    CollectorB1Fill "collector::b1::fill" free; CollectorB1Use "collector::b1::use" free;
    CollectorB1Lastuse "collector::b1::lastuse" free; CollectorB1Discard "collector::b1::discard" free;
    CollectorB2Fill "collector::b2::fill" free; CollectorB2Use "collector::b2::use" free;
    CollectorB2Lastuse "collector::b2::lastuse" free; CollectorB2Discard "collector::b2::discard" free;
    CollectorB3Fill "collector::b3::fill" free; CollectorB3Use "collector::b3::use" free;
    CollectorB3Lastuse "collector::b3::lastuse" free; CollectorB3Discard "collector::b3::discard" free;
    CollectorBFill "collector::b::fill" free;
    CollectorBUse "collector::b::use" free; CollectorBLastuse "collector::b::lastuse" free;
    CollectorBDiscard "collector::b::discard" free; KindTi16 "kind::ti16" free; DecompressLutB "decompress::lut::b" free;
    // Structured sparsity: the number of elements kept, and out of how many.
    Spcompress "spcompress" free; Sp1Of2 "sp::1:2" free; Sp1Of4 "sp::1:4" free; Sp1Of8 "sp::1:8" free; Sp1Of16 "sp::1:16" free;
    Sp2Of4 "sp::2:4" free; Sp2Of8 "sp::2:8" free; Sp2Of16 "sp::2:16" free; Sp4Of8 "sp::4:8" free; Sp4Of16 "sp::4:16" free;
    // Shapes of warpgroup products.
    M64n8k8 "m64n8k8"; M64n8k16 "m64n8k16"; M64n8k32 "m64n8k32"; M64n8k64 "m64n8k64"; M64n8k256 "m64n8k256";
    M64n16k8 "m64n16k8"; M64n16k16 "m64n16k16"; M64n16k32 "m64n16k32"; M64n16k64 "m64n16k64";
    M64n16k256 "m64n16k256"; M64n24k8 "m64n24k8"; M64n24k16 "m64n24k16"; M64n24k32 "m64n24k32";
    M64n24k64 "m64n24k64"; M64n24k256 "m64n24k256"; M64n32k8 "m64n32k8"; M64n32k16 "m64n32k16";
    M64n32k32 "m64n32k32"; M64n32k64 "m64n32k64"; M64n32k256 "m64n32k256"; M64n40k8 "m64n40k8";
    M64n40k16 "m64n40k16"; M64n40k32 "m64n40k32"; M64n40k64 "m64n40k64"; M64n40k256 "m64n40k256" free;
    M64n48k8 "m64n48k8"; M64n48k16 "m64n48k16"; M64n48k32 "m64n48k32"; M64n48k64 "m64n48k64";
    M64n48k256 "m64n48k256"; M64n56k8 "m64n56k8"; M64n56k16 "m64n56k16"; M64n56k32 "m64n56k32";
    M64n56k64 "m64n56k64"; M64n56k256 "m64n56k256" free; M64n64k8 "m64n64k8"; M64n64k16 "m64n64k16";
    M64n64k32 "m64n64k32"; M64n64k64 "m64n64k64"; M64n64k256 "m64n64k256"; M64n72k8 "m64n72k8";
    M64n72k16 "m64n72k16"; M64n72k32 "m64n72k32"; M64n72k64 "m64n72k64"; M64n72k256 "m64n72k256" free;
    M64n80k8 "m64n80k8"; M64n80k16 "m64n80k16"; M64n80k32 "m64n80k32"; M64n80k64 "m64n80k64";
    M64n80k256 "m64n80k256"; M64n88k8 "m64n88k8"; M64n88k16 "m64n88k16"; M64n88k32 "m64n88k32";
    M64n88k64 "m64n88k64"; M64n88k256 "m64n88k256" free; M64n96k8 "m64n96k8"; M64n96k16 "m64n96k16";
    M64n96k32 "m64n96k32"; M64n96k64 "m64n96k64"; M64n96k256 "m64n96k256"; M64n104k8 "m64n104k8";
    M64n104k16 "m64n104k16"; M64n104k32 "m64n104k32"; M64n104k64 "m64n104k64"; M64n104k256 "m64n104k256" free;
    M64n112k8 "m64n112k8"; M64n112k16 "m64n112k16"; M64n112k32 "m64n112k32"; M64n112k64 "m64n112k64";
    M64n112k256 "m64n112k256"; M64n120k8 "m64n120k8"; M64n120k16 "m64n120k16"; M64n120k32 "m64n120k32";
    M64n120k64 "m64n120k64"; M64n120k256 "m64n120k256" free; M64n128k8 "m64n128k8"; M64n128k16 "m64n128k16";
    M64n128k32 "m64n128k32"; M64n128k64 "m64n128k64"; M64n128k256 "m64n128k256"; M64n136k8 "m64n136k8";
    M64n136k16 "m64n136k16"; M64n136k32 "m64n136k32"; M64n136k64 "m64n136k64"; M64n136k256 "m64n136k256" free;
    M64n144k8 "m64n144k8"; M64n144k16 "m64n144k16"; M64n144k32 "m64n144k32"; M64n144k64 "m64n144k64";
    M64n144k256 "m64n144k256"; M64n152k8 "m64n152k8"; M64n152k16 "m64n152k16"; M64n152k32 "m64n152k32";
    M64n152k64 "m64n152k64"; M64n152k256 "m64n152k256" free; M64n160k8 "m64n160k8"; M64n160k16 "m64n160k16";
    M64n160k32 "m64n160k32"; M64n160k64 "m64n160k64"; M64n160k256 "m64n160k256"; M64n168k8 "m64n168k8";
    M64n168k16 "m64n168k16"; M64n168k32 "m64n168k32"; M64n168k64 "m64n168k64"; M64n168k256 "m64n168k256" free;
    M64n176k8 "m64n176k8"; M64n176k16 "m64n176k16"; M64n176k32 "m64n176k32"; M64n176k64 "m64n176k64";
    M64n176k256 "m64n176k256"; M64n184k8 "m64n184k8"; M64n184k16 "m64n184k16"; M64n184k32 "m64n184k32";
    M64n184k64 "m64n184k64"; M64n184k256 "m64n184k256" free; M64n192k8 "m64n192k8"; M64n192k16 "m64n192k16";
    M64n192k32 "m64n192k32"; M64n192k64 "m64n192k64"; M64n192k256 "m64n192k256"; M64n200k8 "m64n200k8";
    M64n200k16 "m64n200k16"; M64n200k32 "m64n200k32"; M64n200k64 "m64n200k64"; M64n200k256 "m64n200k256" free;
    M64n208k8 "m64n208k8"; M64n208k16 "m64n208k16"; M64n208k32 "m64n208k32"; M64n208k64 "m64n208k64";
    M64n208k256 "m64n208k256"; M64n216k8 "m64n216k8"; M64n216k16 "m64n216k16"; M64n216k32 "m64n216k32";
    M64n216k64 "m64n216k64"; M64n216k256 "m64n216k256" free; M64n224k8 "m64n224k8"; M64n224k16 "m64n224k16";
    M64n224k32 "m64n224k32"; M64n224k64 "m64n224k64"; M64n224k256 "m64n224k256"; M64n232k8 "m64n232k8";
    M64n232k16 "m64n232k16"; M64n232k32 "m64n232k32"; M64n232k64 "m64n232k64"; M64n232k256 "m64n232k256" free;
    M64n240k8 "m64n240k8"; M64n240k16 "m64n240k16"; M64n240k32 "m64n240k32"; M64n240k64 "m64n240k64";
    M64n240k256 "m64n240k256"; M64n248k8 "m64n248k8"; M64n248k16 "m64n248k16"; M64n248k32 "m64n248k32";
    M64n248k64 "m64n248k64"; M64n248k256 "m64n248k256" free; M64n256k8 "m64n256k8"; M64n256k16 "m64n256k16";
    M64n256k32 "m64n256k32"; M64n256k64 "m64n256k64"; M64n256k256 "m64n256k256";
}

impl Mod {
    /// The state space that the modifier names.
    pub const fn space(self) -> Option<Space> {
        Some(match self {
            Mod::Global => Space::Global,
            Mod::Shared | Mod::SharedCta | Mod::SharedCluster => Space::Shared,
            Mod::Const => Space::Const,
            Mod::Local => Space::Local,
            Mod::Param | Mod::ParamEntry | Mod::ParamFunc => Space::Param,
            _ => return None,
        })
    }

    /// The number of elements or matrices in the modifier: 4 for `.v4` and `.x4`.
    pub const fn count(self) -> Option<u32> {
        Some(match self {
            Mod::X1 => 1,
            Mod::V2 | Mod::X2 => 2,
            Mod::V4 | Mod::X4 => 4,
            Mod::V8 | Mod::X8 => 8,
            Mod::X16 => 16,
            Mod::X32 => 32,
            Mod::X64 => 64,
            Mod::X128 => 128,
            _ => return None,
        })
    }

    /// How many elements a sparse vector keeps, and out of how many: 2 and 4 for `.sp::2:4`.
    pub fn kept(self) -> Option<(u32, u32)> {
        let (kept, of) = self.text().strip_prefix("sp::")?.split_once(':')?;
        Some((kept.parse().ok()?, of.parse().ok()?))
    }

    /// The rows, columns and depth of a product's shape such as `m16n8k4`.
    pub fn shape(self) -> Option<(u32, u32, u32)> {
        let (m, rest) = self.text().strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
    }
}

/// A dotted part of an instruction's name after the mnemonic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Suffix {
    Mod(Mod),
    Type(ScalarType),
}

impl Suffix {
    /// Parses a name without its dot.
    pub fn parse(text: &str) -> Option<Self> {
        static INDEX: LazyLock<NameIndex> = LazyLock::new(|| NameIndex::new(Suffix::all().map(Suffix::text)));
        let i = INDEX.get(text)?;
        Some(match ScalarType::ALL.get(i) {
            Some(&ty) => Suffix::Type(ty),
            None => Suffix::Mod(Mod::ALL[i - ScalarType::ALL.len()]),
        })
    }

    /// All suffixes of the language: types, then modifiers.
    pub fn all() -> impl Iterator<Item = Suffix> {
        let types = ScalarType::ALL.iter().map(|&ty| Suffix::Type(ty));
        types.chain(Mod::ALL.iter().map(|&m| Suffix::Mod(m)))
    }

    /// The name without its dot.
    pub const fn text(self) -> &'static str {
        match self {
            Suffix::Mod(m) => m.text(),
            Suffix::Type(ty) => ty.text(),
        }
    }
}

/// The largest number of modifiers in an instruction.
pub const MAX_MODS: usize = 16;
/// The largest number of type suffixes in an instruction.
pub const MAX_TYPES: usize = 5;

/// A resolved instruction name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Opcode {
    pub form: FormId,
    mods: [Option<Mod>; MAX_MODS],
    types: [Option<ScalarType>; MAX_TYPES],
}

impl Opcode {
    /// `mods` and `types` are in the order written. `None` if there are more than the limits allow.
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

    /// The modifiers in the order written.
    pub fn mods(&self) -> impl Iterator<Item = Mod> + '_ {
        self.mods.iter().map_while(|&m| m)
    }

    /// The types in the order written.
    pub fn types(&self) -> impl Iterator<Item = ScalarType> + '_ {
        self.types.iter().map_while(|&t| t)
    }

    /// The `i`-th type suffix as written: `cvt.f32.s8` has `F32` at 0 and `S8` at 1.
    pub fn ty(&self, i: usize) -> Option<ScalarType> {
        self.types.get(i).copied().flatten()
    }
}
