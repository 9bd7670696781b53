//! Special registers: `S2R` and `CS2R` with their numbers, or words that the driver writes into constant bank 0.
//!
//! Numbers and offsets were observed on ptxas 13.0.88. Those that differ between targets are in [`crate::target`].

use super::{Lowering, Result};
use crate::CodegenError;
use crate::ori::ir::Src;
use crate::ori::op::{ICmp, MemSize, Op, ShfType, Sr};
use crate::target::ClusterWords;
use ptx_isa::SpecialReg;

/// Special registers of the hardware.
pub(super) mod sr {
    use super::Sr;
    pub(in super::super) use crate::ori::signature::special::CLUSTER_CTA_ID;

    pub(in super::super) const LANE_ID: Sr = Sr(0);
    pub(in super::super) const VIRTUAL_CONFIG: Sr = Sr(2);
    pub(in super::super) const VIRTUAL_ID: Sr = Sr(3);
    pub(in super::super) const TID_X: Sr = Sr(33);
    pub(in super::super) const CTAID_X: Sr = Sr(37);
    pub(in super::super) const SHARED_SIZE: Sr = Sr(50);
    pub(in super::super) const SHARED_WINDOW_HIGH: Sr = Sr(47);
    pub(in super::super) const LANE_MASK_EQ: Sr = Sr(56);
    pub(in super::super) const VIRTUAL_SM_ID: Sr = Sr(67);
    pub(in super::super) const CLOCK_LOW: Sr = Sr(80);
    pub(in super::super) const GLOBAL_TIMER_LOW: Sr = Sr(82);
    pub(in super::super) const PERFORMANCE_0: Sr = Sr(100);
    pub(in super::super) const CLUSTER_SIZE: Sr = Sr(138);
}

impl Lowering<'_> {
    pub(super) fn s2r(&mut self, sr: Sr) -> Src {
        self.reg(Op::S2r { sr }, &[])
    }

    /// The value of a special register; 64-bit ones take a pair.
    pub(super) fn special_register(&mut self, register: SpecialReg) -> Result<Src> {
        use SpecialReg as R;
        let axis = |first: R| register as u16 - first as u16;
        let bank0 = |offset: u16| Src::constant(0, offset);
        Ok(match register {
            R::TidX | R::TidY | R::TidZ => self.s2r(Sr(sr::TID_X.0 + axis(R::TidX) as u8)),
            R::CtaidX | R::CtaidY | R::CtaidZ => {
                self.out.facts.reads_ctaid_z |= register == R::CtaidZ;
                self.s2r(Sr(sr::CTAID_X.0 + axis(R::CtaidX) as u8))
            }
            R::NtidX | R::NtidY | R::NtidZ => bank0(self.target.driver.ntid + 4 * axis(R::NtidX)),
            R::NctaidX | R::NctaidY | R::NctaidZ => bank0(self.target.driver.nctaid + 4 * axis(R::NctaidX)),
            R::Laneid => self.s2r(sr::LANE_ID),
            R::Warpid => {
                let id = self.s2r(sr::VIRTUAL_ID);
                self.bits(id, 8, 7)
            }
            R::Nwarpid => match self.target.warp_slots {
                Some(warps) => Src::imm(warps),
                None => {
                    let config = self.s2r(sr::VIRTUAL_CONFIG);
                    self.bits(config, 8, 8)
                }
            },
            R::Smid => self.s2r(sr::VIRTUAL_SM_ID),
            R::LanemaskEq => self.s2r(sr::LANE_MASK_EQ),
            R::LanemaskLt => self.s2r(Sr(sr::LANE_MASK_EQ.0 + 1)),
            R::LanemaskLe => self.s2r(Sr(sr::LANE_MASK_EQ.0 + 2)),
            R::LanemaskGt => self.s2r(Sr(sr::LANE_MASK_EQ.0 + 3)),
            R::LanemaskGe => self.s2r(Sr(sr::LANE_MASK_EQ.0 + 4)),
            R::Clock => self.reg(Op::Cs2r { sr: sr::CLOCK_LOW, wide: false }, &[]),
            R::ClockHi => self.reg(Op::Cs2r { sr: Sr(sr::CLOCK_LOW.0 + 1), wide: false }, &[]),
            R::Clock64 => self.wide(2, Op::Cs2r { sr: sr::CLOCK_LOW, wide: true }, &[]),
            R::GlobaltimerLo => self.reg(Op::Cs2r { sr: sr::GLOBAL_TIMER_LOW, wide: false }, &[]),
            R::GlobaltimerHi => self.reg(Op::Cs2r { sr: Sr(sr::GLOBAL_TIMER_LOW.0 + 1), wide: false }, &[]),
            R::Globaltimer => self.wide(2, Op::Cs2r { sr: sr::GLOBAL_TIMER_LOW, wide: true }, &[]),
            R::Pm0 | R::Pm1 | R::Pm2 | R::Pm3 | R::Pm4 | R::Pm5 | R::Pm6 | R::Pm7 => {
                let sr = Sr(sr::PERFORMANCE_0.0 + 2 * axis(R::Pm0) as u8);
                self.reg(Op::Cs2r { sr, wide: false }, &[])
            }
            R::Pm064 | R::Pm164 | R::Pm264 | R::Pm364 | R::Pm464 | R::Pm564 | R::Pm664 | R::Pm764 => {
                let sr = Sr(sr::PERFORMANCE_0.0 + 2 * axis(R::Pm064) as u8);
                self.wide(2, Op::Cs2r { sr, wide: true }, &[])
            }
            R::WarpSz => Src::imm(32),
            _ => return self.driver_word(register),
        })
    }

    fn bits(&mut self, src: Src, from: u32, count: u32) -> Src {
        let op = Op::Shf { right: true, wrap: false, hi: true, ty: ShfType::U32 };
        let shifted = self.reg(op, &[Src::ZERO, Src::imm(from), src]);
        self.reg(Op::Lop3 { lut: 0xc0 }, &[shifted, Src::imm((1 << count) - 1), Src::ZERO])
    }

    /// The word of bank 0 that the driver writes for a special register.
    fn driver_word(&mut self, register: SpecialReg) -> Result<Src> {
        use SpecialReg as R;
        let words = self.target.driver;
        let bank0 = |offset: u16| Src::constant(0, offset);
        let axis = |first: R| register as u16 - first as u16;
        Ok(match register {
            R::Gridid => bank0(words.grid_id),
            R::CurrentGraphExec => bank0(words.graph_exec),
            R::Nsmid => bank0(words.sm_count),
            R::DynamicSmemSize => self.launch_word(words.launch.dynamic_shared),
            r if (R::Envreg16..=R::Envreg31).contains(&r)
                && let Some(late) = words.launch.late_environment =>
            {
                bank0(late + 4 * axis(R::Envreg16))
            }
            r if (R::Envreg0..=R::Envreg31).contains(&r) => {
                self.launch_word(words.launch.environment + 4 * axis(R::Envreg0))
            }
            R::TotalSmemSize => self.shared_size(),
            R::ReservedSmemOffsetBegin | R::ReservedSmemOffset0 if self.target.shared_base == 0 => {
                self.shared_size()
            }
            R::ReservedSmemOffsetCap if self.target.shared_base == 0 => self.s2r(sr::SHARED_SIZE),
            R::ReservedSmemOffsetBegin => Src::ZERO,
            R::ReservedSmemOffset0 => Src::imm(self.target.cubin.reserved_shared as u32),
            R::ReservedSmemOffsetCap => Src::imm(self.target.shared_base),
            R::ReservedSmemOffsetEnd | R::ReservedSmemOffset1 => match words.launch.reserved_end {
                Some(word) if register == R::ReservedSmemOffset1 => self.launch_word(word + 4),
                Some(word) => self.launch_word(word),
                None => return self.no_special_register(register),
            },
            R::IsExplicitCluster => match words.explicit_cluster {
                Some(word) => self.compare(ICmp::Eq, true, bank0(word), Src::imm(1)),
                None => return self.no_special_register(register),
            },
            _ => match words.launch.clusters {
                Some(clusters) => return self.cluster_word(register, &clusters),
                None => return self.no_special_register(register),
            },
        })
    }

    fn cluster_word(&mut self, register: SpecialReg, words: &ClusterWords) -> Result<Src> {
        use SpecialReg as R;
        let axis = |first: R| register as u16 - first as u16;
        Ok(match register {
            R::NclusteridX | R::NclusteridY | R::NclusteridZ => {
                self.launch_word(words.clusters_x + 4 * axis(R::NclusteridX))
            }
            R::ClusterNctaidX | R::ClusterNctaidY | R::ClusterNctaidZ => {
                self.launch_word(words.blocks_x + 4 * axis(R::ClusterNctaidX))
            }
            R::ClusteridX | R::ClusteridY | R::ClusteridZ => self.cluster_id(axis(R::ClusteridX), words),
            R::ClusterCtaidX | R::ClusterCtaidY | R::ClusterCtaidZ => {
                let axis = axis(R::ClusterCtaidX);
                let cluster = self.cluster_id(axis, words);
                let block = self.s2r(Sr(sr::CTAID_X.0 + axis as u8));
                let blocks = self.launch_word(words.blocks_x + 4 * axis);
                let first = self.multiply_add(cluster, blocks, Src::ZERO);
                self.subtract(block, first)
            }
            R::ClusterCtarank => self.s2r(sr::CLUSTER_CTA_ID),
            R::ClusterNctarank => self.launch_word(words.blocks),
            R::AggrSmemSize => {
                let (size, least) = (self.s2r(sr::SHARED_SIZE), self.launch_word(words.aggregate_shared));
                self.minimum(false, false, size, least)
            }
            _ => return self.no_special_register(register),
        })
    }

    /// A word about the launch. On targets that schedule blocks by clusters, its offset is lower by a multiple of the
    /// cluster size.
    fn launch_word(&mut self, offset: u16) -> Src {
        let stride = self.target.driver.launch.stride;
        if stride == 0 {
            return Src::constant(0, offset);
        }
        let size = self.reg(Op::Cs2r { sr: sr::CLUSTER_SIZE, wide: false }, &[]);
        let index = self.multiply_add(size, Src::imm(u32::from(stride).wrapping_neg()), Src::ZERO);
        self.reg(Op::Ldc { size: MemSize::B32, bank: 0, offset: offset.into() }, &[index])
    }

    /// The number of bytes of shared memory of the block, without those reserved for the system.
    fn shared_size(&mut self) -> Src {
        let size = self.s2r(sr::SHARED_SIZE);
        match self.target.driver.reserved_shared {
            Some(reserved) => self.subtract(size, Src::constant(0, reserved)),
            None => size,
        }
    }

    /// `%clusterid`: the block's index divided by the number of blocks per cluster, with the driver's reciprocal.
    fn cluster_id(&mut self, axis: u16, words: &ClusterWords) -> Src {
        use crate::ori::op::{FloatType, IntRound, IntType, Round, Sign};
        let block = self.s2r(Sr(sr::CTAID_X.0 + axis as u8));
        let float = self.word_to_float(Sign::U32, Round::Rn, block);
        let multiply = Op::Fmul { round: Round::Rn, ftz: false, sat: false };
        let reciprocal = self.launch_word(words.reciprocal_x + 4 * axis);
        let quotient = self.reg(multiply, &[float, reciprocal]);
        let convert =
            Op::F2i { to: IntType::U32, from: FloatType::F32, round: IntRound::Trunc, ftz: false, ntz: true };
        self.reg(convert, &[quotient])
    }

    fn no_special_register<T>(&self, register: SpecialReg) -> Result<T> {
        let what = format!("the special register {} on sm_{}", register.text(), self.sm);
        Err(CodegenError::unsupported(self.src, what))
    }
}
