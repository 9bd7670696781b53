//! Special registers.

use crate::ScalarType;

macro_rules! special_regs {
    ($($name:ident $text:literal $ty:ident;)*) => {
        /// A predefined register: `%tid.x`, `%clock64`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum SpecialReg { $($name),* }

        impl SpecialReg {
            pub const ALL: &'static [SpecialReg] = &[$(SpecialReg::$name),*];

            /// As written, with `%`; components of vectors carry theirs.
            pub const fn text(self) -> &'static str {
                match self { $(SpecialReg::$name => $text),* }
            }

            pub const fn ty(self) -> ScalarType {
                match self { $(SpecialReg::$name => ScalarType::$ty),* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Some(match text { $($text => SpecialReg::$name,)* _ => return None })
            }
        }
    };
}

special_regs! {
    TidX "%tid.x" U32; TidY "%tid.y" U32; TidZ "%tid.z" U32;
    NtidX "%ntid.x" U32; NtidY "%ntid.y" U32; NtidZ "%ntid.z" U32;
    Laneid "%laneid" U32; Warpid "%warpid" U32; Nwarpid "%nwarpid" U32;
    CtaidX "%ctaid.x" U32; CtaidY "%ctaid.y" U32; CtaidZ "%ctaid.z" U32;
    NctaidX "%nctaid.x" U32; NctaidY "%nctaid.y" U32; NctaidZ "%nctaid.z" U32;
    Smid "%smid" U32; Nsmid "%nsmid" U32; Gridid "%gridid" U64;
    IsExplicitCluster "%is_explicit_cluster" Pred;
    ClusteridX "%clusterid.x" U32; ClusteridY "%clusterid.y" U32; ClusteridZ "%clusterid.z" U32;
    NclusteridX "%nclusterid.x" U32; NclusteridY "%nclusterid.y" U32; NclusteridZ "%nclusterid.z" U32;
    ClusterCtaidX "%cluster_ctaid.x" U32; ClusterCtaidY "%cluster_ctaid.y" U32; ClusterCtaidZ "%cluster_ctaid.z" U32;
    ClusterNctaidX "%cluster_nctaid.x" U32; ClusterNctaidY "%cluster_nctaid.y" U32; ClusterNctaidZ "%cluster_nctaid.z" U32;
    ClusterCtarank "%cluster_ctarank" U32; ClusterNctarank "%cluster_nctarank" U32;
    LanemaskEq "%lanemask_eq" U32; LanemaskLe "%lanemask_le" U32; LanemaskLt "%lanemask_lt" U32;
    LanemaskGe "%lanemask_ge" U32; LanemaskGt "%lanemask_gt" U32;
    Clock "%clock" U32; ClockHi "%clock_hi" U32; Clock64 "%clock64" U64;
    Pm0 "%pm0" U32; Pm1 "%pm1" U32; Pm2 "%pm2" U32; Pm3 "%pm3" U32;
    Pm4 "%pm4" U32; Pm5 "%pm5" U32; Pm6 "%pm6" U32; Pm7 "%pm7" U32;
    Pm064 "%pm0_64" U64; Pm164 "%pm1_64" U64; Pm264 "%pm2_64" U64; Pm364 "%pm3_64" U64;
    Pm464 "%pm4_64" U64; Pm564 "%pm5_64" U64; Pm664 "%pm6_64" U64; Pm764 "%pm7_64" U64;
    Envreg0 "%envreg0" B32; Envreg1 "%envreg1" B32; Envreg2 "%envreg2" B32; Envreg3 "%envreg3" B32;
    Envreg4 "%envreg4" B32; Envreg5 "%envreg5" B32; Envreg6 "%envreg6" B32; Envreg7 "%envreg7" B32;
    Envreg8 "%envreg8" B32; Envreg9 "%envreg9" B32; Envreg10 "%envreg10" B32; Envreg11 "%envreg11" B32;
    Envreg12 "%envreg12" B32; Envreg13 "%envreg13" B32; Envreg14 "%envreg14" B32; Envreg15 "%envreg15" B32;
    Envreg16 "%envreg16" B32; Envreg17 "%envreg17" B32; Envreg18 "%envreg18" B32; Envreg19 "%envreg19" B32;
    Envreg20 "%envreg20" B32; Envreg21 "%envreg21" B32; Envreg22 "%envreg22" B32; Envreg23 "%envreg23" B32;
    Envreg24 "%envreg24" B32; Envreg25 "%envreg25" B32; Envreg26 "%envreg26" B32; Envreg27 "%envreg27" B32;
    Envreg28 "%envreg28" B32; Envreg29 "%envreg29" B32; Envreg30 "%envreg30" B32; Envreg31 "%envreg31" B32;
    Globaltimer "%globaltimer" U64; GlobaltimerLo "%globaltimer_lo" U32; GlobaltimerHi "%globaltimer_hi" U32;
    ReservedSmemOffsetBegin "%reserved_smem_offset_begin" B32; ReservedSmemOffsetEnd "%reserved_smem_offset_end" B32;
    ReservedSmemOffsetCap "%reserved_smem_offset_cap" B32; ReservedSmemOffset0 "%reserved_smem_offset_0" B32;
    ReservedSmemOffset1 "%reserved_smem_offset_1" B32;
    TotalSmemSize "%total_smem_size" U32; AggrSmemSize "%aggr_smem_size" U32; DynamicSmemSize "%dynamic_smem_size" U32;
    CurrentGraphExec "%current_graph_exec" U64;
    WarpSz "WARP_SZ" U32;
}
