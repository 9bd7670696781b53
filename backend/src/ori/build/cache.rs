//! Cache hints: policies, prefetches, priorities.

use super::memory::Target;
use super::uniform::Chosen;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{
    Bool, FloatType, ICmp, IntRound, IntType, LineOp, MapOp, MufuFunc, Op, Round, ShfType, Sign, lut,
};
use ptx_isa::{Mod, ScalarType};

/// The high word of a policy contains, from this bit on, its kind, both priorities and the fraction.
const KIND_AT: u32 = 20;
/// The kind of a policy in which a fraction of the accesses has the first priority, and the others the second.
const FRACTIONAL: u32 = 0x100;

/// The kind of a policy in which parts of a range have the first priority.
const RANGE: u32 = 0x180;
/// The factor for fractions. The field contains the number of sixteenths minus one, so its maximum is fifteen.
const SIXTEENTHS: f32 = 15.99;
/// A range has at most 127 pages of at least 4096 bytes each; both limits as powers of two.
const PAGES_LOG: u32 = 7;
const MOST_PAGES: u32 = 127;
const SMALLEST_PAGE: u32 = 12;

/// The priorities of a policy.
fn priorities(instr: &Statement<'_>) -> Option<(u32, u32)> {
    let priorities = instr.take_each(&[
        (Mod::L2EvictUnchanged, 0x0),
        (Mod::L2EvictFirst, 0x1),
        (Mod::L2EvictLast, 0x2),
        (Mod::L2EvictNormal, 0x3),
    ]);
    match priorities[..] {
        [first] => Some((first, 0)),
        [first, second] => Some((first, second)),
        _ => None,
    }
}

impl<'a> Lowering<'a> {
    /// `createpolicy.fractional` with a constant fraction: sixteenths, rounded up.
    pub(super) fn create_policy(&mut self, instr: &Statement<'a>) -> Result<()> {
        let Some((first, second)) = priorities(instr) else {
            return self.malformed("a policy without a priority");
        };
        let sixteenths = match instr.operand(1) {
            None => 16,
            Some(fraction) => match super::operand::literal(fraction, ScalarType::F32) {
                Some(bits) => (f32::from_bits(bits as u32) * 16.0).ceil().clamp(1.0, 16.0) as u32,
                None => {
                    let fraction = self.source(instr, 1, ScalarType::F32)?;
                    return self.create_changing_policy(
                        instr,
                        FRACTIONAL | first << 5 | second << 4,
                        fraction,
                    );
                }
            },
        };
        let kind = FRACTIONAL | first << 5 | second << 4 | (sixteenths - 1);
        let policy = self.pack(&[Src::ZERO, Src::imm(kind << KIND_AT)]);
        self.result(instr, policy)
    }

    /// A policy for a fraction that is known only at run time: sixteenths, rounded down.
    fn create_changing_policy(&mut self, instr: &Statement<'a>, kind: u32, fraction: Src) -> Result<()> {
        let scale = Op::Fmul { ftz: false, round: Round::Rn, sat: false };
        let scaled = self.reg(scale, &[fraction, Src::imm(SIXTEENTHS.to_bits())]);
        let truncate =
            Op::F2i { ftz: false, to: IntType::U32, from: FloatType::F32, round: IntRound::Trunc, ntz: true };
        let sixteenths = self.reg(truncate, &[scaled]);
        let sixteenths = self.masked(sixteenths, 0xf);
        let kind = self.united(sixteenths, Src::imm(kind));
        let high = self.shift_left(kind, Src::imm(KIND_AT));
        let policy = self.pack(&[Src::ZERO, high]);
        self.result(instr, policy)
    }

    /// `createpolicy.range`: the page size (chosen so that 127 pages contain the whole range), the first page, and the
    /// number of pages.
    pub(super) fn create_range_policy(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Global]);
        let Some((first, second)) = priorities(instr) else {
            return self.malformed("a policy without a priority");
        };
        let address = self.address(instr, 1)?;
        let (address, offset) = self.wide_address(address, false)?;
        let mut start = self.pair(address);
        if offset != 0 {
            start = self.add_pair(start, super::operand::halves(offset as u64));
        }
        let [primary, total] =
            [self.source(instr, 2, ScalarType::U32)?, self.source(instr, 3, ScalarType::U32)?];
        // The binary logarithm of the page size.
        let float = self.word_to_float(Sign::U32, Round::Rn, total);
        let log = self.reg(Op::Mufu { func: MufuFunc::Lg2 }, &[float]);
        let ceil =
            Op::F2i { ftz: false, to: IntType::U32, from: FloatType::F32, round: IntRound::Ceil, ntz: true };
        let log = self.reg(ceil, &[log]);
        let page = self.add(log, Src::imm(PAGES_LOG.wrapping_neg()));
        let signed = Op::Imnmx { sign: Sign::S32 };
        let page = self.reg(signed, &[page, Src::imm(SMALLEST_PAGE), Src::FALSE]);
        let size = self.shift_left(Src::imm(1), page);
        let reach = self.add(primary, Src::imm(u32::MAX));
        let reach = self.add(reach, size);
        let end = self.add_pair(start, [reach, Src::ZERO]);
        let [from, to] = [start, end].map(|[low, high]| {
            let low = self
                .reg(Op::Shf { right: true, wrap: false, ty: ShfType::U64, hi: false }, &[low, page, high]);
            [low, self.shift_right_by(high, page, false)]
        });
        let count = self.subtract_pair(to, from);
        let few = self.compare_pair(ICmp::Lt, false, count, [Src::imm(MOST_PAGES), Src::ZERO]);
        let count = self.reg(Op::Sel, &[count[0], Src::imm(MOST_PAGES), few]);
        let mut word = Src::imm(RANGE | first << 5 | second << 4);
        let kind = self.add(page, Src::imm(SMALLEST_PAGE.wrapping_neg()));
        for (value, mask, shift) in [(kind, 0xf, 8), (from[0], 0x7f, 7), (count, 0x7f, 5)] {
            let value = self.masked(value, mask);
            word = self.united(word, value);
            word = self.shift_left(word, Src::imm(shift));
        }
        // An empty range has no priority.
        let none = self.pred(
            Op::Isetp { cmp: ICmp::Eq, sign: Sign::U32, bool_: Bool::And, ex: false },
            &[total, Src::ZERO, Src::TRUE],
        );
        let high = self.reg(Op::Sel, &[Src::imm(RANGE << KIND_AT), word, none]);
        let policy = self.pack(&[Src::ZERO, high]);
        self.result(instr, policy)
    }

    fn united(&mut self, a: Src, b: Src) -> Src {
        self.reg(Op::Lop3 { lut: lut::A | lut::B }, &[a, b, Src::ZERO])
    }

    /// The descriptor of an access: the cache policy in the last operand, if the access has one, otherwise that of the
    /// window. Threads that execute the access together use the policy of one of them.
    pub(super) fn descriptor_of(&mut self, instr: &Statement<'a>) -> Result<Src> {
        let last = instr.operand_count().saturating_sub(1);
        match self.cache_policy(instr, last)? {
            Some(policy) => Ok(self.uniform_pack(&policy, Chosen::all(self.guard))),
            None => Ok(self.descriptor()),
        }
    }

    /// The words of the cache policy in operand `i`, where the instruction has one.
    pub(super) fn cache_policy(&mut self, instr: &Statement<'a>, i: usize) -> Result<Option<[Src; 2]>> {
        if !instr.has(Mod::L2CacheHint) {
            return Ok(None);
        }
        let policy = self.source(instr, i, ScalarType::U64)?;
        Ok(Some(self.pair(policy)))
    }

    pub(super) fn uniform_policy(&mut self, policy: Option<[Src; 2]>, chosen: Chosen) -> Src {
        policy.map_or(Src::ZERO, |policy| self.uniform_pack(&policy, chosen))
    }

    /// `prefetch` and `prefetchu`.
    pub(super) fn prefetch(&mut self, instr: &Statement<'a>) -> Result<()> {
        if instr.has(Mod::Tensormap) {
            return self.prefetch_map(instr);
        }
        let op = instr.take(&[
            (Mod::L1, LineOp::Prefetch1),
            (Mod::L2, LineOp::Prefetch2),
            (Mod::L2EvictNormal, LineOp::Prefetch2),
            (Mod::L2EvictLast, LineOp::PrefetchLast),
        ]);
        let Some(op) = op else { return self.malformed("a prefetch without a cache") };
        self.line(instr, op)
    }

    /// `applypriority`.
    pub(super) fn apply_priority(&mut self, instr: &Statement<'a>) -> Result<()> {
        // There is only this priority and this size.
        instr.ignore(&[Mod::L2EvictNormal]);
        instr.operand(1);
        self.line(instr, LineOp::Demote)
    }

    /// An operation on the cache line at the address of the first operand.
    fn line(&mut self, instr: &Statement<'a>, op: LineOp) -> Result<()> {
        match self.target(instr, 0)? {
            Target::Wide { address, offset, .. } => self.effect(Op::Line { op, offset }, &[address]),
            // No thread can observe the effect on local memory.
            Target::Local { .. } => {}
            _ => return self.unsupported(instr, "this state space"),
        }
        Ok(())
    }

    /// Loads a tensor map into the cache for tensor maps.
    fn prefetch_map(&mut self, instr: &Statement<'a>) -> Result<()> {
        let space = super::memory::space(instr);
        let window = match space {
            None | Some(Mod::Global) => None,
            Some(space @ (Mod::Const | Mod::Param | Mod::ParamEntry)) => Some(self.window(instr, space)?),
            Some(_) => return self.unsupported(instr, "this state space"),
        };
        let address = self.address(instr, 0)?;
        let (address, offset) = self.wide_address(address, space.is_none())?;
        let mut words = self.pair(address);
        if let Some(window) = window {
            words = self.add_pair(words, window);
        }
        if offset != 0 {
            words = self.add_pair(words, super::operand::halves(offset as u64));
        }
        if !self.encodes(&Op::TensorMap { op: MapOp::Prefetch }) {
            return self.unsupported(instr, "this instruction on this target");
        }
        self.one_by_one(|this, chosen| {
            let map = this.uniform_pack(&words, chosen);
            this.effect(Op::TensorMap { op: MapOp::Prefetch }, &[map]);
            Ok(())
        })
    }
}
