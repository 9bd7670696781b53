//! Special registers.

use crate::lookup::NameIndex;
use crate::{Gate, ScalarType};
use std::sync::LazyLock;

macro_rules! special_regs {
    ($($name:ident $text:literal $ty:ident;)*) => {
        /// A predefined register: `%tid.x`, `%clock64`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum SpecialReg { $($name),* }

        impl SpecialReg {
            pub const ALL: &'static [SpecialReg] = &[$(SpecialReg::$name),*];

            /// As written, with `%` and the component.
            pub const fn text(self) -> &'static str {
                match self { $(SpecialReg::$name => $text),* }
            }

            pub const fn ty(self) -> ScalarType {
                match self { $(SpecialReg::$name => ScalarType::$ty),* }
            }

        }
    };
}

impl SpecialReg {
    /// Parses a name with its `%`. Components may also be written as `.r`, `.g` and `.b`.
    pub fn parse(text: &str) -> Option<Self> {
        static INDEX: LazyLock<NameIndex> =
            LazyLock::new(|| NameIndex::new(SpecialReg::ALL.iter().map(|r| r.text())));
        if let Some(i) = INDEX.get(text) {
            return Some(Self::ALL[i]);
        }
        let (vector, letter) = text.rsplit_once('.')?;
        let letter = match letter {
            "r" => ".x",
            "g" => ".y",
            "b" => ".z",
            _ => return None,
        };
        let component =
            |register: &&Self| register.text().strip_suffix(letter).is_some_and(|name| name == vector);
        Self::ALL.iter().find(component).copied()
    }

    /// The vector register of which this is a component: `%tid` for `%tid.x`.
    pub fn vector(self) -> Option<&'static str> {
        self.text().split_once('.').map(|(vector, _)| vector)
    }

    /// Whether this is the index or the size of a block or of the grid. The first generation had these as 16-bit
    /// values.
    pub const fn is_index(self) -> bool {
        use SpecialReg::*;
        matches!(
            self,
            TidX | TidY
                | TidZ
                | NtidX
                | NtidY
                | NtidZ
                | CtaidX
                | CtaidY
                | CtaidZ
                | NctaidX
                | NctaidY
                | NctaidZ
        )
    }

    /// The requirements for reading the register.
    pub const fn gate(self) -> Gate {
        use SpecialReg::*;
        match self {
            Laneid | Warpid | Smid | Pm0 | Pm1 | Pm2 | Pm3 => Gate::since(1, 3, 10),
            Nwarpid | Nsmid | LanemaskEq | LanemaskLe | LanemaskLt | LanemaskGe | LanemaskGt | Clock64 => {
                Gate::since(2, 0, 20)
            }
            ClockHi => Gate::since(5, 0, 20),
            Pm4 | Pm5 | Pm6 | Pm7 => Gate::since(3, 0, 20),
            Pm064 | Pm164 | Pm264 | Pm364 | Pm464 | Pm564 | Pm664 | Pm764 => Gate::since(4, 0, 50),
            Globaltimer | GlobaltimerLo | GlobaltimerHi => Gate::since(3, 1, 30),
            TotalSmemSize | DynamicSmemSize => Gate::since(4, 1, 20),
            AggrSmemSize => Gate::since(8, 1, 90),
            CurrentGraphExec => Gate::since(8, 0, 50),
            ReservedSmemOffsetBegin
            | ReservedSmemOffsetEnd
            | ReservedSmemOffsetCap
            | ReservedSmemOffset0
            | ReservedSmemOffset1 => Gate::since(7, 6, 80),
            IsExplicitCluster | ClusteridX | ClusteridY | ClusteridZ | NclusteridX | NclusteridY
            | NclusteridZ | ClusterCtaidX | ClusterCtaidY | ClusterCtaidZ | ClusterNctaidX
            | ClusterNctaidY | ClusterNctaidZ | ClusterCtarank | ClusterNctarank => Gate::since(7, 8, 90),
            _ => Gate::BASE,
        }
    }

    /// What the register holds, in one line.
    pub const fn about(self) -> &'static str {
        use SpecialReg::*;
        match self {
            TidX | TidY | TidZ => "index of the thread in the CTA",
            NtidX | NtidY | NtidZ => "number of threads of the CTA in this dimension",
            Laneid => "index of the thread in the warp, 0 to 31",
            Warpid => "index of the warp in the CTA; can change during execution",
            Nwarpid => "maximum number of warps per multiprocessor",
            CtaidX | CtaidY | CtaidZ => "index of the CTA in the grid",
            NctaidX | NctaidY | NctaidZ => "number of CTAs of the grid in this dimension",
            Smid => "index of the multiprocessor; can change during execution",
            Nsmid => "upper bound of the multiprocessor indices, which need not be contiguous",
            Gridid => "index of the grid launch in the context",
            IsExplicitCluster => "whether the launch specified a cluster shape",
            ClusteridX | ClusteridY | ClusteridZ => "index of the cluster in the grid",
            NclusteridX | NclusteridY | NclusteridZ => "number of clusters of the grid in this dimension",
            ClusterCtaidX | ClusterCtaidY | ClusterCtaidZ => "index of the CTA in the cluster",
            ClusterNctaidX | ClusterNctaidY | ClusterNctaidZ => {
                "number of CTAs of the cluster in this dimension"
            }
            ClusterCtarank => "flat index of the CTA in the cluster",
            ClusterNctarank => "number of CTAs in the cluster",
            LanemaskEq => "mask with the bit of this lane",
            LanemaskLe => "mask with the bits of this lane and all lower lanes",
            LanemaskLt => "mask with the bits of all lower lanes",
            LanemaskGe => "mask with the bits of this lane and all higher lanes",
            LanemaskGt => "mask with the bits of all higher lanes",
            Clock => "cycle counter of the multiprocessor, lower 32 bits",
            ClockHi => "cycle counter of the multiprocessor, upper 32 bits",
            Clock64 => "cycle counter of the multiprocessor",
            Globaltimer => "global timer in nanoseconds; its resolution depends on the device",
            GlobaltimerLo => "global timer in nanoseconds, lower 32 bits",
            GlobaltimerHi => "global timer in nanoseconds, upper 32 bits",
            ReservedSmemOffsetBegin => "start of the shared memory reserved by the system",
            ReservedSmemOffsetEnd => "end of the shared memory reserved by the system",
            ReservedSmemOffsetCap => "size of the shared memory reserved by the system",
            ReservedSmemOffset0 | ReservedSmemOffset1 => {
                "offset into the shared memory reserved by the system"
            }
            TotalSmemSize => "bytes of shared memory of the CTA: static, dynamic and reserved for the user",
            AggrSmemSize => "bytes of shared memory of the CTA, including the part reserved by the system",
            DynamicSmemSize => "bytes of dynamic shared memory requested by the launch",
            CurrentGraphExec => "identifier of the CUDA graph that the kernel is a node of, or 0",
            WarpSz => "number of threads in a warp: 32",
            _ if self as u8 >= Envreg0 as u8 && self as u8 <= Envreg31 as u8 => {
                "value set by the driver before the launch"
            }
            _ => "performance monitoring counter",
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_reads_back() {
        for &register in SpecialReg::ALL {
            assert_eq!(SpecialReg::parse(register.text()), Some(register));
            assert!(!register.about().is_empty());
        }
        assert_eq!(SpecialReg::parse("%tid.g"), Some(SpecialReg::TidY));
        assert_eq!(SpecialReg::parse("%tid"), None);
        assert_eq!(SpecialReg::TidX.vector(), Some("%tid"));
        assert_eq!(SpecialReg::Smid.vector(), None);
    }
}
