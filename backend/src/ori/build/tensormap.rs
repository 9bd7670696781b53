//! Tensor maps: their fields, and fences of the proxy that reads them.
//!
//! A map has 128 bytes. The positions of its fields were observed on ptxas 13.0.88.

use super::memory::{Target, scope};
use super::special::sr;
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::{Dst, Src};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{
    Access, AddressScale, AtomOp, AtomType, CctlOp, MapOp, MemSize, MembarScope, Op, ShfType, lut,
};
use ptx_isa::{FormId as F, Mod, ScalarType};

/// Some bits of a word.
#[derive(Clone, Copy)]
struct Field {
    /// The offset of the word in the map.
    at: i32,
    low: u32,
    bits: u32,
}

/// The logarithm of the unit of strides in bytes.
const STRIDE_UNIT: u32 = 4;
/// Marks a swizzle mode other than the first four.
const OTHER_SWIZZLE: Field = Field { at: 8, low: 22, bits: 1 };
const RANK: Field = Field { at: 8, low: 4, bits: 3 };
const ELEMENT: Field = Field { at: 8, low: 7, bits: 4 };
const INTERLEAVE: Field = Field { at: 8, low: 11, bits: 2 };
const SWIZZLE: Field = Field { at: 8, low: 13, bits: 2 };
const FILL: Field = Field { at: 8, low: 15, bits: 1 };
const ATOMICITY: Field = Field { at: 8, low: 19, bits: 3 };
const DIMENSIONS: u32 = 5;

impl<'a> Lowering<'a> {
    /// `tensormap.replace`.
    pub(super) fn replace_in_map(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Tile]);
        let map = self.target(instr, 0)?;
        let field = instr.take(&[
            (Mod::Rank, RANK),
            (Mod::Elemtype, ELEMENT),
            (Mod::InterleaveLayout, INTERLEAVE),
            (Mod::SwizzleMode, SWIZZLE),
            (Mod::FillMode, FILL),
            (Mod::SwizzleAtomicity, ATOMICITY),
        ]);
        // The form has only one size of maps.
        instr.ignore(&[Mod::B1024]);
        let ty = self.type_of(instr, 0)?;
        if let Some(field) = field {
            let value = self.source(instr, 1, ty)?;
            self.put_field(instr, map, field, value)?;
            if field.low == SWIZZLE.low {
                self.put_field(instr, map, OTHER_SWIZZLE, Src::ZERO)?;
            }
            return Ok(());
        }
        if instr.has(Mod::GlobalAddress) {
            let address = self.source(instr, 1, ty)?;
            let [low, high] = self.pair(address);
            self.put_word(instr, map, 0, low)?;
            return self.put_word(instr, map, 4, high);
        }
        let i = match self.operand(instr, 1)? {
            Operand::Int(i) if (0..i64::from(DIMENSIONS)).contains(i) => *i as u32,
            _ => return self.unsupported(instr, "a tensor map dimension that is not 0 to 4"),
        };
        let value = self.source(instr, 2, ty)?;
        if instr.has(Mod::GlobalStride) {
            let [low, high] = self.pair(value);
            let shift = Op::Shf { right: true, wrap: false, hi: false, ty: ShfType::U64 };
            let units = self.reg(shift, &[low, Src::imm(STRIDE_UNIT), high]);
            self.put_word(instr, map, 0xc + 4 * i as i32, units)?;
            let above = self.shift_right(high, STRIDE_UNIT, false);
            return self.put_field(instr, map, Field { at: 0x1c, low: 4 * i, bits: 4 }, above);
        }
        let last = self.subtract(value, Src::imm(1));
        match () {
            () if instr.has(Mod::GlobalDim) => self.put_word(instr, map, 0x20 + 4 * i as i32, last),
            () if instr.has(Mod::BoxDim) && i == 0 => {
                self.put_field(instr, map, Field { at: 0x34, low: 24, bits: 8 }, last)
            }
            () if instr.has(Mod::BoxDim) => {
                self.put_field(instr, map, Field { at: 0x38, low: 8 * (i - 1), bits: 8 }, last)
            }
            () if instr.has(Mod::ElementStride) => {
                self.put_field(instr, map, Field { at: 0x34, low: 3 * i, bits: 3 }, last)
            }
            () => self.unsupported(instr, "this field"),
        }
    }

    fn put_field(&mut self, instr: &Statement<'a>, map: Target, field: Field, value: Src) -> Result<()> {
        let (load, srcs) = self.word_of_map(instr, map, field.at, None)?;
        let word = self.reg(load, &srcs);
        let mask = (u32::MAX >> (32 - field.bits)) << field.low;
        let value = self.shift_left(value, Src::imm(field.low));
        let word = self.lop3((lut::A & !lut::B) | (lut::B & lut::C), word, Src::imm(mask), value);
        self.put_word(instr, map, field.at, word)
    }

    fn put_word(&mut self, instr: &Statement<'a>, map: Target, at: i32, word: Src) -> Result<()> {
        let (store, srcs) = self.word_of_map(instr, map, at, Some(word))?;
        self.effect(store, &srcs);
        Ok(())
    }

    /// An access of a word of a map: a store of `data`, or a load.
    fn word_of_map(
        &mut self,
        instr: &Statement<'a>,
        map: Target,
        at: i32,
        data: Option<Src>,
    ) -> Result<(Op, Vec<Src>)> {
        let size = MemSize::B32;
        let (op, mut srcs) = match map {
            Target::Wide { address, offset, generic } => {
                let access = Access::weak(size, offset + at);
                let op = match (generic, data.is_some()) {
                    (true, true) => Op::St { access },
                    (true, false) => Op::Ld { access },
                    (false, true) => Op::Stg { access },
                    (false, false) => Op::Ldg { access },
                };
                (op, vec![address, self.descriptor()])
            }
            Target::Shared { address, base, offset } => {
                let (order, offset) = (Order::Weak, offset + at);
                let op = match data {
                    Some(_) => Op::Sts { size, order, scale: AddressScale::One, offset },
                    None => Op::Lds { size, order, scale: AddressScale::One, offset },
                };
                (op, vec![address, base])
            }
            _ => return self.unsupported(instr, "a map in this state space"),
        };
        srcs.extend(data);
        Ok((op, srcs))
    }

    /// `tensormap.cp_fenceproxy`: each thread of the warp copies a word and makes it visible to the proxy that reads
    /// maps.
    pub(super) fn copy_map(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Global, Mod::SharedCta, Mod::TensormapGeneric, Mod::Release]);
        // The size of a map is fixed.
        instr.operand(2);
        let scope = scope(instr).unwrap_or(Scope::Gpu);
        let to = self.address(instr, 0)?;
        let (address, offset) = self.wide_address(to, false)?;
        let from = self.shared_address(instr, 1)?;
        self.join_all();
        let lane = self.s2r(sr::LANE_ID);
        let own = self.shift_left(lane, Src::imm(2));
        let from = self.add(from, own);
        let load = Op::Lds { size: MemSize::B32, order: Order::Weak, scale: AddressScale::One, offset: 0 };
        let word = self.reg(load, &[from, Src::ZERO]);
        let address = self.pair(address);
        let address = self.add_pair(address, [own, Src::ZERO]);
        let address = self.pack(&address);
        let order = Order::Relaxed(scope);
        let op = Op::Atom { generic: false, op: AtomOp::Exch, ty: AtomType::U32, order, offset };
        let descriptor = self.descriptor();
        self.guarded(op, &[Dst::Sink], &[address, descriptor, word], &[Src::UNDEF]);
        Ok(())
    }

    /// `fence.proxy.tensormap`: invalidates the copy of a map in its cache (acquire), or makes earlier writes visible
    /// (release).
    pub(super) fn fence_maps(&mut self, instr: &Statement<'a>) -> Result<()> {
        // The proxy reads maps from global memory, even if they were written elsewhere.
        instr.ignore(&[Mod::TensormapGeneric, Mod::Global]);
        instr.ignore(&[Mod::Shared, Mod::SharedCta, Mod::SharedCluster]);
        let scope = scope(instr).unwrap_or(Scope::Gpu);
        if instr.any_of(&[Mod::Acquire, Mod::Release]) == Some(Mod::Release) {
            let wide = if scope == Scope::Sys { MembarScope::AllSys } else { MembarScope::AllGpu };
            self.effect(Op::Membar { scope: wide }, &[]);
            self.effect(Op::Errbar, &[]);
            return Ok(());
        }
        // The size of a map is fixed.
        instr.operand(1);
        let address = self.address(instr, 0)?;
        let (address, offset) = self.wide_address(address, true)?;
        let address = self.pair(address);
        let address = self.add_pair(address, super::operand::halves(i64::from(offset) as u64));
        self.one_by_one(|this, chosen| {
            let map = this.uniform_pack(&address, chosen);
            this.effect(Op::TensorMap { op: MapOp::Invalidate }, &[map]);
            Ok(())
        })
    }

    /// `fence.proxy.alias`: orders accesses of the same memory through different addresses.
    pub(super) fn fence_aliases(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Alias]);
        self.effect(Op::Membar { scope: MembarScope::Sys }, &[]);
        self.effect(Op::Cctl { op: CctlOp::Ivall }, &[]);
        Ok(())
    }

    /// `clusterlaunchcontrol.try_cancel`: the response is written to shared memory, and an mbarrier object counts its
    /// bytes.
    pub(super) fn try_cancel(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::SharedCta, Mod::MbarrierCompleteTxBytes]);
        let op = Op::NextWork { broadcast: instr.has(Mod::MulticastClusterAll) };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this instruction on this target");
        }
        let (to, object) = (self.shared_address(instr, 0)?, self.shared_address(instr, 1)?);
        self.one_by_one(|this, chosen| {
            let to = this.uniform_pack(&[to, object], chosen);
            this.effect(op, &[to]);
            Ok(())
        })
    }

    /// `clusterlaunchcontrol.query_cancel`: the words of a response are the first block and whether there is one.
    pub(super) fn query_cancel(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = instr.ty(0);
        instr.ty(1);
        let answer = self.source(instr, 1, ScalarType::B128)?;
        let word = |this: &Self, i| this.part(answer, i);
        let (x, yz) = (word(self, 0), word(self, 1));
        if instr.form() == F::ClusterlaunchcontrolIsCanceled {
            let third = word(self, 2);
            let cancelled = self.pred(Op::Lop3P { lut: lut::A & lut::B }, &[third, Src::imm(1), Src::ZERO]);
            return self.result(instr, cancelled);
        }
        let y = self.lop3(lut::A & lut::B, yz, Src::imm(0xffff), Src::ZERO);
        let z = self.shift_right(yz, 16, false);
        if instr.form() == F::ClusterlaunchcontrolGetFirstCtaid {
            instr.ignore(&[Mod::V4]);
            let Operand::Vector(dsts) = self.operand(instr, 0)? else {
                return self.malformed("a first CTA number whose destination is not a vector");
            };
            let ty = ty.unwrap_or(ScalarType::B32);
            return self.write_elements(dsts, &[x, y, z, Src::ZERO], ty);
        }
        let axis =
            instr.take(&[(Mod::GetFirstCtaidX, x), (Mod::GetFirstCtaidY, y), (Mod::GetFirstCtaidZ, z)]);
        match axis {
            Some(axis) => self.result(instr, axis),
            None => self.malformed("a block without its axis"),
        }
    }

    /// `st.bulk`: stores zeros.
    pub(super) fn clear_block(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Weak]);
        if !self.encodes(&Op::ClearBlock) {
            return self.unsupported(instr, "this instruction on this target");
        }
        instr.operand(2);
        let address = match instr.has(Mod::SharedCta) {
            true => self.shared_address(instr, 0)?,
            // The address must be in shared memory, so the low word of a generic address suffices.
            false => {
                let address = self.address(instr, 0)?;
                let (address, offset) = self.wide_address(address, true)?;
                let low = self.part(address, 0);
                self.add(low, Src::imm(offset as u32))
            }
        };
        let size = self.source(instr, 1, ScalarType::U32)?;
        let units = self.shift_right(size, 3, false);
        self.one_by_one(|this, chosen| {
            let address = this.uniform_register(address, chosen);
            let units = this.uniform_register(units, chosen);
            this.effect(Op::ClearBlock, &[address, units]);
            Ok(())
        })
    }
}
