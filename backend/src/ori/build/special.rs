//! Special registers: `S2R` and `CS2R` by number, or the driver's words in constant bank 0.
//!
//! Numbers and offsets: observation of ptxas 13.0.88 for sm_75 to sm_90.

use super::{Lowering, Result};
use crate::CodegenError;
use crate::ori::ir::Src;
use crate::ori::op::{ICmp, Op, ShfType, Sr};
use ptx_isa::SpecialReg;

/// Special registers of the hardware.
pub(super) mod sr {
    use super::Sr;

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
    pub(in super::super) const CLUSTER_CTA_ID: Sr = Sr(136);
}

/// Bank 0 words of one generation besides those in [`crate::target`]; bytes.
struct Words {
    grid_id: u16,
    dynamic_shared: u16,
    sm_count: u16,
    environment: u16,
    reserved_shared: u16,
}

const fn words(sm: u16) -> Option<Words> {
    match sm {
        75..=89 => Some(Words {
            grid_id: 0x30,
            dynamic_shared: 0x2c,
            sm_count: 0x10c,
            environment: 0x88,
            reserved_shared: 0x114,
        }),
        90 => Some(Words {
            grid_id: 0x30,
            dynamic_shared: 0x2c,
            sm_count: 0x10c,
            environment: 0x40,
            reserved_shared: 0x114,
        }),
        _ => None,
    }
}

/// sm_90's words about clusters, in bank 0.
mod cluster {
    pub(super) const EXPLICIT: u16 = 0x140;
    pub(super) const BLOCKS_X: u16 = 0x144;
    pub(super) const RECIPROCAL_X: u16 = 0x150;
    pub(super) const CLUSTERS_X: u16 = 0x15c;
    pub(super) const BLOCKS: u16 = 0x188;
}

impl Lowering<'_> {
    pub(super) fn s2r(&mut self, sr: Sr) -> Src {
        self.reg(Op::S2r { sr }, &[])
    }

    /// A special register's value: 64-bit ones take a pair.
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
            R::NtidX | R::NtidY | R::NtidZ => bank0(self.target.ntid + 4 * axis(R::NtidX)),
            R::NctaidX | R::NctaidY | R::NctaidZ => bank0(self.target.nctaid + 4 * axis(R::NctaidX)),
            R::Laneid => self.s2r(sr::LANE_ID),
            R::Warpid => {
                let id = self.s2r(sr::VIRTUAL_ID);
                self.bits(id, 8, 7)
            }
            R::Nwarpid if self.sm < 90 => {
                // Warps that an SM holds.
                Src::imm(match self.sm {
                    75 => 32,
                    80 | 87 => 64,
                    _ => 48,
                })
            }
            R::Nwarpid => {
                let config = self.s2r(sr::VIRTUAL_CONFIG);
                self.bits(config, 8, 8)
            }
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

    /// What the driver tells in bank 0, on generations whose layout is known.
    fn driver_word(&mut self, register: SpecialReg) -> Result<Src> {
        use SpecialReg as R;
        let Some(words) = words(self.sm) else { return self.no_special_register(register) };
        let bank0 = |offset: u16| Src::constant(0, offset);
        let axis = |first: R| register as u16 - first as u16;
        Ok(match register {
            R::Gridid => bank0(words.grid_id),
            R::DynamicSmemSize => bank0(words.dynamic_shared),
            R::Nsmid => bank0(words.sm_count),
            r if (R::Envreg0..=R::Envreg31).contains(&r) => bank0(words.environment + 4 * axis(R::Envreg0)),
            R::TotalSmemSize => {
                let size = self.s2r(sr::SHARED_SIZE);
                let iadd = Op::Iadd3 { x: false };
                let dst = self.new_value(crate::ori::ir::File::R, 1);
                self.push_add(iadd, dst, [size, bank0(words.reserved_shared).neg(), Src::ZERO]);
                dst.into()
            }
            _ if self.sm != 90 => return self.no_special_register(register),
            R::NclusteridX | R::NclusteridY | R::NclusteridZ => {
                bank0(cluster::CLUSTERS_X + 4 * axis(R::NclusteridX))
            }
            R::ClusterNctaidX | R::ClusterNctaidY | R::ClusterNctaidZ => {
                bank0(cluster::BLOCKS_X + 4 * axis(R::ClusterNctaidX))
            }
            R::ClusteridX | R::ClusteridY | R::ClusteridZ => {
                let axis = axis(R::ClusteridX);
                self.cluster_id(axis)
            }
            R::ClusterCtaidX | R::ClusterCtaidY | R::ClusterCtaidZ => {
                let axis = axis(R::ClusterCtaidX);
                let cluster = self.cluster_id(axis);
                let block = self.s2r(Sr(sr::CTAID_X.0 + axis as u8));
                let first = self.multiply_add(cluster, bank0(cluster::BLOCKS_X + 4 * axis), Src::ZERO);
                self.subtract(block, first)
            }
            R::ClusterCtarank => self.s2r(sr::CLUSTER_CTA_ID),
            R::ClusterNctarank => bank0(cluster::BLOCKS),
            R::IsExplicitCluster => self.compare(ICmp::Eq, true, bank0(cluster::EXPLICIT), Src::imm(1)),
            _ => return self.no_special_register(register),
        })
    }

    /// `%clusterid`: the block's index divided by the blocks per cluster, by the driver's reciprocal.
    fn cluster_id(&mut self, axis: u16) -> Src {
        use crate::ori::op::{FloatType, IntRound, IntType, Round};
        let block = self.s2r(Sr(sr::CTAID_X.0 + axis as u8));
        let float = self.reg(Op::I2f { to: FloatType::F32, from: IntType::U32, round: Round::Rn }, &[block]);
        let multiply = Op::Fmul { round: Round::Rn, ftz: false, sat: false };
        let quotient = self.reg(multiply, &[float, Src::constant(0, cluster::RECIPROCAL_X + 4 * axis)]);
        let convert =
            Op::F2i { to: IntType::U32, from: FloatType::F32, round: IntRound::Trunc, ftz: false, ntz: true };
        self.reg(convert, &[quotient])
    }

    fn no_special_register<T>(&self, register: SpecialReg) -> Result<T> {
        let what = format!("the special register {} on sm_{}", register.text(), self.sm);
        Err(CodegenError::unsupported(self.src, what))
    }
}
