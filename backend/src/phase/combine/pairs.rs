//! 64-bit arithmetic on 32-bit halves: sums of pairs with products, extensions and shifts.
//!
//! A sum of pairs consists of `IADD3` with a carry, `IADD3.X` and the `PACK` of both. If one operation can compute the
//! pair, it replaces the `PACK`, and the halves are read as parts of the pair.

use super::{Combiner, single_result};
use crate::emit::encodes;
use crate::ori::ir::{BlockId, Dst, File, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::{Op, Sign};
use crate::phase::edit::{extended, known, shifted_pair};
use smallvec::SmallVec;

/// Two halves, low first.
type Pair = [Src; 2];

/// Instructions of one block that add two pairs.
struct Add {
    low: usize,
    high: usize,
    /// The sums of the halves.
    results: [Value; 2],
    a: Pair,
    b: Pair,
}

/// A 64-bit sum of a product and words.
struct Carried {
    /// The index of the sum of the low words.
    low: usize,
    sums: [Value; 2],
    factors: Pair,
    addend: Pair,
    /// The carry into the low sum.
    carry: Option<Src>,
    carry_out: Dst,
}

/// The maximum distance between the operations of one 64-bit sum.
const REACH: usize = 8;

impl Combiner<'_> {
    pub(super) fn pair(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        let parts = [inst.srcs[0], inst.srcs[1]];
        if let Some((x, scale, sign)) = self.scaled_extension(parts)
            && scale > 1
        {
            let new = self.product(b, i, sign, x, Src::imm(scale), Src::ZERO);
            self.rewrite(b, i, new);
            return;
        }
        let Some(add) = self.add_of_pair(b, i, parts) else { return };
        for (x, y) in [(add.a, add.b), (add.b, add.a)] {
            if self.multiply_add(b, i, &add, x, y) {
                return;
            }
        }
        for (x, y) in [(add.a, add.b), (add.b, add.a)] {
            if self.shift_add(b, &add, x, y) {
                return;
            }
        }
    }

    /// The sum that computes these halves.
    fn add_of_pair(&self, b: BlockId, i: usize, parts: Pair) -> Option<Add> {
        let [SrcKind::Value(low), SrcKind::Value(high)] = parts.map(|part| part.kind) else { return None };
        let ((low_block, low_index), (high_block, high_index)) =
            (self.defs.site(low)?, self.defs.site(high)?);
        if low_block != b || high_block != b || low_index >= high_index || i - low_index > REACH {
            return None;
        }
        let (low_inst, high_inst) = (self.inst(b, low_index), self.inst(b, high_index));
        let [Dst::Value(_), Dst::Value(carry), ref rest @ ..] = low_inst.dsts[..] else { return None };
        let adds = low_inst.op == (Op::Iadd3 { x: false }) && high_inst.op == (Op::Iadd3 { x: true });
        let carried = high_inst.srcs.get(3) == Some(&carry.into())
            && high_inst.srcs.get(4).is_none_or(|second| *second == Src::FALSE)
            && self.uses(carry) == 1
            && rest.iter().all(|dst| *dst == Dst::Sink);
        let unguarded = low_inst.guard.is_true() && high_inst.guard.is_true();
        if !adds || !carried || !unguarded || !single_result(high_inst) {
            return None;
        }
        let zero = (0..3).find(|k| low_inst.srcs[*k] == Src::ZERO && high_inst.srcs[*k] == Src::ZERO)?;
        let [k, l] = match zero {
            0 => [1, 2],
            1 => [0, 2],
            _ => [0, 1],
        };
        let pair = |k: usize| [low_inst.srcs[k], high_inst.srcs[k]];
        Some(Add { low: low_index, high: high_index, results: [low, high], a: pair(k), b: pair(l) })
    }

    /// If the pair is the product of a sign- or zero-extended `x` and a power of two: `x` and the factor.
    fn scaled_extension(&self, pair: Pair) -> Option<(Src, u32, Sign)> {
        if let Some((x, sign)) = self.extension(pair) {
            return Some((x, 1, sign));
        }
        let (source, shift) = shifted_pair(self.func, &self.defs, &pair)?;
        let (x, sign) = self.extension(source)?;
        // A factor of 2^31 would be negative.
        (shift < 31).then_some((x, 1 << shift, sign))
    }

    /// The 32-bit operand whose extension the pair is.
    fn extension(&self, pair: Pair) -> Option<(Src, Sign)> {
        let [low, high] = pair;
        let in_register = matches!(low.kind, SrcKind::Value(_) | SrcKind::Part(..));
        if low.mods != SrcMods::NONE || !in_register {
            return None;
        }
        if high == Src::ZERO {
            return Some((low, Sign::U32));
        }
        (extended(self.func, &self.defs, &high)? == low).then_some((low, Sign::S32))
    }

    fn product(&self, b: BlockId, i: usize, sign: Sign, x: Src, y: Src, z: Src) -> Inst {
        let pack = self.inst(b, i);
        Inst::new(Op::ImadWide { sign, x: false }, &[pack.dsts[0]], &[x, y, z], pack.src)
    }

    /// Whether a product of constants is the step of a loop around `b`: `of` is the value of this iteration. The uniform
    /// datapath can compute the step before the loop.
    fn is_step(&self, b: BlockId, product: &Inst, of: &Src) -> bool {
        let is_phi = of.value().is_some() && self.defs.of_src(self.func, of).is_none();
        let is_constant = |src: &Src| matches!(src.kind, SrcKind::Const(_) | SrcKind::Imm(_));
        let home = product.defs().next().and_then(|v| self.defs.site(v));
        is_phi
            && product.srcs[..2].iter().all(is_constant)
            && home.is_some_and(|(home, _)| self.loops.depth(home) < self.loops.depth(b))
    }

    /// `x * y + z` in one `IMAD.WIDE` that replaces the pair.
    fn multiply_add(&mut self, b: BlockId, i: usize, add: &Add, x: Pair, z: Pair) -> bool {
        if z.iter().any(|half| half.mods != SrcMods::NONE) {
            return false;
        }
        let product = crate::phase::copy_propagation::whole_of(self.func, &x)
            .and_then(|whole| self.def(&whole, false))
            .filter(|inst| matches!(inst.op, Op::ImadWide { x: false, .. }) && inst.srcs[2] == Src::ZERO)
            .filter(|inst| single_result(inst) && !self.is_step(b, inst, &z[0]))
            .map(|inst| (inst.op, inst.srcs[0], inst.srcs[1]))
            .or_else(|| {
                let (x, scale, sign) = self.scaled_extension(x)?;
                // An extension without a factor is added by two sums, which need no aligned pair. On targets that add
                // whole pairs, the extension would have to be next to its word.
                if scale == 1 && !encodes(self.sm, &Op::Iadd64) {
                    return None;
                }
                Some((Op::ImadWide { sign, x: false }, x, Src::imm(scale)))
            });
        let Some((Op::ImadWide { sign, .. }, factor, by)) = product else { return false };
        if self.read_between(b, add, i) {
            return false;
        }
        let addend = match self.whole(z, b, i) {
            Some(whole) => whole,
            None => {
                // The addend is packed where the high half was computed.
                let pair = self.new_value(File::R, 2);
                let src = self.inst(b, add.high).src;
                let high = add.results[1];
                let pack = Inst::new(Op::Pack, &[Dst::Value(pair)], &z, src);
                // Its old result is read as part of the product from here on.
                self.defs.set(high, b, i);
                self.rewrite(b, add.high, pack);
                pair.into()
            }
        };
        let new = self.product(b, i, sign, factor, by, addend);
        let Dst::Value(pair) = new.dsts[0] else { return false };
        // Perhaps only the halves are read; from here on they are parts of the pair.
        self.count(&pair.into(), 1);
        self.rewrite(b, i, new);
        for (half, part) in add.results.into_iter().zip(0..) {
            self.defs.set(half, b, i);
            self.replace(half, Src::part(pair, part));
        }
        self.count(&pair.into(), -1);
        // The sums are dead, but their removal has not been recorded yet.
        for at in [add.low, add.high] {
            let inst = self.inst(b, at);
            if matches!(inst.op, Op::Iadd3 { .. }) {
                let nop = Inst::new(Op::Nop, &[], &[], inst.src);
                self.rewrite(b, at, nop);
            }
        }
        true
    }

    /// Both halves of one product are each added to a word, and the second sum takes the carry of the first. An
    /// `IMAD.WIDE` with a carry in and out replaces the second sum.
    pub(super) fn carried_product(&mut self, b: BlockId, i: usize) -> bool {
        let Some(new) = self.carried(b, i) else { return false };
        let Carried { low, sums, factors, addend, carry, carry_out } = new;
        let src = self.inst(b, i).src;
        // The product reads the carry in place of the first sum.
        if let Some(carry) = &carry {
            self.count(carry, 1);
        }
        let addend = match addend {
            [Src::ZERO, Src::ZERO] => Src::ZERO,
            parts => {
                // At the position of the first sum.
                let pair = self.new_value(File::R, 2);
                let pack = Inst::new(Op::Pack, &[Dst::Value(pair)], &parts, self.inst(b, low).src);
                self.defs.set(sums[0], b, i);
                self.rewrite(b, low, pack);
                pair.into()
            }
        };
        let wide = self.new_value(File::R, 2);
        let mut srcs = vec![factors[0], factors[1], addend];
        srcs.extend(carry);
        let op = Op::ImadWide { sign: Sign::U32, x: carry.is_some() };
        let new = Inst::new(op, &[Dst::Value(wide), carry_out], &srcs, src);
        // From here on the halves are parts of the pair.
        self.count(&wide.into(), 1);
        self.rewrite(b, i, new);
        if let Some(carry) = &carry {
            self.count(carry, -1);
        }
        for (half, part) in sums.into_iter().zip(0..) {
            self.defs.set(half, b, i);
            self.replace(half, Src::part(wide, part));
        }
        self.count(&wide.into(), -1);
        if matches!(self.inst(b, low).op, Op::Iadd3 { .. }) {
            let nop = Inst::new(Op::Nop, &[], &[], self.inst(b, low).src);
            self.rewrite(b, low, nop);
        }
        true
    }

    /// Two constants that are added to a pair one after the other, as the copies of an unrolled loop do: one sum adds both.
    pub(super) fn constants_of_pairs(&mut self, b: BlockId, i: usize) {
        let constant = |pair: &Pair| {
            let [low, high] = [known(&pair[0])?, known(&pair[1])?];
            Some(u64::from(high) << 32 | u64::from(low))
        };
        let split = |[x, y]: [Pair; 2]| match (constant(&x), constant(&y)) {
            (None, Some(c)) => Some((x, c)),
            (Some(c), None) => Some((y, c)),
            _ => None,
        };
        let both = || {
            let (low, outer) = self.sum_with_high(b, i)?;
            let (sum, second) = split(outer)?;
            let (base, first) = split(self.added(b, &sum)?)?;
            // The sum may also be an address, because the access will add the constant itself.
            let packed = sum[0].value().and_then(|v| *self.packs.get(v.index())?);
            let most = 1 + u32::from(packed.is_some());
            let lone = sum.iter().all(|half| half.value().is_some_and(|v| self.uses(v) <= most));
            lone.then_some((low, base, first.wrapping_add(second)))
        };
        let Some((low, base, sum)) = both() else { return };
        let (first, last) = (self.inst(b, low).clone(), self.inst(b, i).clone());
        let word = |bits: u64| if bits as u32 == 0 { Src::ZERO } else { Src::imm(bits as u32) };
        let srcs = [base[0], word(sum), Src::ZERO];
        self.rewrite(b, low, Inst::new(first.op, &first.dsts, &srcs, first.src));
        let srcs = [base[1], word(sum >> 32), Src::ZERO, last.srcs[3], last.srcs[4]];
        self.rewrite(b, i, Inst::new(last.op, &last.dsts, &srcs, last.src));
    }

    /// A sum of two pairs that only another sum reads: one `IADD3` with two carries adds three low words, and one
    /// `IADD3.X` the high words.
    pub(super) fn sum_of_three(&mut self, b: BlockId, i: usize) {
        let Some((low, terms)) = self.three_terms(b, i) else { return };
        let second = self.new_value(File::P, 1);
        let (first, last) = (self.inst(b, low).clone(), self.inst(b, i).clone());
        let [lows, highs] = [0, 1].map(|half| terms.map(|term| term[half]));
        let dsts = [first.dsts[0], first.dsts[1], Dst::Value(second)];
        self.rewrite(b, low, Inst::new(first.op, &dsts, &lows, first.src));
        let [x, y, z] = highs;
        let srcs = [x, y, z, last.srcs[3], second.into()];
        self.rewrite(b, i, Inst::new(last.op, &last.dsts, &srcs, last.src));
    }

    /// The index of the sum of the low words, and the three pairs.
    fn three_terms(&self, b: BlockId, i: usize) -> Option<(usize, [Pair; 3])> {
        // One operation adds two pairs on targets that have it.
        if encodes(self.sm, &Op::Iadd64) {
            return None;
        }
        let (low, outer) = self.sum_with_high(b, i)?;
        let (inner, other) =
            [(outer[0], outer[1]), (outer[1], outer[0])].into_iter().find_map(|(x, other)| {
                let lone = x.iter().all(|half| half.value().is_some_and(|v| self.uses(v) == 1));
                Some((self.added(b, &x).filter(|_| lone)?, other))
            })?;
        let terms = [inner[0], inner[1], other];
        // One operand need not be in a register.
        let is_register =
            |src: &Src| matches!(src.kind, SrcKind::Value(_) | SrcKind::Part(..) | SrcKind::Zero);
        let fits = (0..2).all(|half| terms.iter().filter(|term| !is_register(&term[half])).count() <= 1);
        // `IMAD.WIDE` can add such a term to the pair.
        let Dst::Value(sum) = self.inst(b, low).dsts[0] else { return None };
        let is_packed = self.packs.get(sum.index()).copied().flatten().is_some();
        let is_product = is_packed && self.scaled_extension(other).is_some();
        (fits && !is_product).then_some((low, terms))
    }

    /// If instructions of `b` compute the pair as a sum of two pairs: these.
    fn added(&self, b: BlockId, sum: &Pair) -> Option<[Pair; 2]> {
        let (low, pairs) = self.sum_with_high(b, self.place_in(b, &sum[1])?)?;
        (self.place_in(b, &sum[0]) == Some(low)).then_some(pairs)
    }

    /// The index in `b` of the unguarded instruction that defines the whole operand.
    fn place_in(&self, b: BlockId, src: &Src) -> Option<usize> {
        self.defs.of_src(self.func, src)?;
        self.defs.site(src.value()?).filter(|(at, _)| *at == b).map(|(_, index)| index)
    }

    /// If instruction `high` of `b` adds the high words of two pairs and the carry of their low words: the index of the
    /// instruction that adds the low words, and the pairs.
    fn sum_with_high(&self, b: BlockId, high: usize) -> Option<(usize, [Pair; 2])> {
        let high_inst = self.inst(b, high);
        let (Op::Iadd3 { x: true }, &[h0, h1, h2, carry, Src::FALSE]) = (high_inst.op, &high_inst.srcs[..])
        else {
            return None;
        };
        let low = self.place_in(b, &carry).filter(|low| *low < high)?;
        let low_inst = self.inst(b, low);
        let (Op::Iadd3 { x: false }, &[Dst::Value(_), Dst::Value(out), Dst::Sink]) =
            (low_inst.op, &low_inst.dsts[..])
        else {
            return None;
        };
        let terms: SmallVec<[Pair; 3]> =
            low_inst.srcs.iter().copied().zip([h0, h1, h2]).map(|(low, high)| [low, high]).collect();
        let zero = terms.iter().position(|term| *term == [Src::ZERO; 2])?;
        let plain = terms.iter().flatten().all(|src| src.mods == SrcMods::NONE);
        let others: SmallVec<[Pair; 3]> = (0..3).filter(|k| *k != zero).map(|k| terms[k]).collect();
        let whole = single_result(high_inst)
            && high_inst.guard.is_true()
            && self.uses(out) == 1
            && carry == Src::from(out);
        (plain && whole).then_some((low, [others[0], others[1]]))
    }

    fn carried(&self, b: BlockId, i: usize) -> Option<Carried> {
        let high = self.inst(b, i);
        let &[Dst::Value(high_sum), carry_out, Dst::Sink] = &high.dsts[..] else { return None };
        let &[_, _, _, carried, Src::FALSE] = &high.srcs[..] else { return None };
        let carried_value = carried.value().filter(|_| carried.mods == SrcMods::NONE)?;
        let (low_block, low) = self.defs.site(carried_value)?;
        if low_block != b || low >= i || i - low > REACH || self.uses(carried_value) != 1 {
            return None;
        }
        let first = self.inst(b, low);
        let &[Dst::Value(low_sum), Dst::Value(out), Dst::Sink] = &first.dsts[..] else { return None };
        let carry = match (first.op, &first.srcs[3..]) {
            (Op::Iadd3 { x: false }, []) => None,
            (Op::Iadd3 { x: true }, &[carry, Src::FALSE]) => Some(carry),
            _ => return None,
        };
        if out != carried_value || !first.guard.is_true() {
            return None;
        }
        // Half of a product, and a word.
        let terms = |inst: &Inst, is_half: &dyn Fn(Op) -> bool| {
            (0..3).find_map(|half| {
                let product = self.def(&inst.srcs[half], true).filter(|product| is_half(product.op))?;
                let &[x, y, Src::ZERO] = &product.srcs[..] else { return None };
                let others: Vec<Src> = (0..3).filter(|k| *k != half).map(|k| inst.srcs[k]).collect();
                match others[..] {
                    [addend, Src::ZERO] | [Src::ZERO, addend] if addend.mods == SrcMods::NONE => {
                        Some(([x, y], addend))
                    }
                    _ => None,
                }
            })
        };
        let (factors, low_addend) = terms(first, &|op| matches!(op, Op::Imad { .. }))?;
        let (others, high_addend) = terms(high, &|op| op == Op::ImadHi { sign: Sign::U32 })?;
        let same = factors == others || factors == [others[1], others[0]];
        // The parts of the pair are defined before the first sum, whose result is not read before the product.
        let is_there = high_addend
            .value()
            .and_then(|v| self.defs.site(v))
            .is_none_or(|(block, at)| block != b || at < low);
        let read = (low + 1..i).any(|at| self.inst(b, at).uses().any(|src| src.value() == Some(low_sum)));
        let plain = factors.iter().all(|factor| factor.mods == SrcMods::NONE);
        (same && is_there && !read && plain && high.guard.is_true()).then_some(Carried {
            low,
            sums: [low_sum, high_sum],
            factors,
            addend: [low_addend, high_addend],
            carry,
            carry_out,
        })
    }

    /// Whether an instruction between the sums and the pair reads a half.
    fn read_between(&self, b: BlockId, add: &Add, i: usize) -> bool {
        let [low, high] = add.results;
        (add.low + 1..i)
            .filter(|at| *at != add.high)
            .any(|at| self.inst(b, at).uses().any(|src| src.value().is_some_and(|v| v == low || v == high)))
    }

    /// `(x << k) + z` by `LEA` and `LEA.HI.X`, which replace the sums.
    fn shift_add(&mut self, b: BlockId, add: &Add, x: Pair, z: Pair) -> bool {
        if z.iter().any(|half| half.mods != SrcMods::NONE) || x.iter().any(|half| half.mods != SrcMods::NONE)
        {
            return false;
        }
        let Some((source, shift)) = shifted_pair(self.func, &self.defs, &x) else { return false };
        if source.iter().any(|half| half.mods != SrcMods::NONE) {
            return false;
        }
        let shift = shift as u8;
        let (low, high) = (self.inst(b, add.low), self.inst(b, add.high));
        let carry = low.dsts[1];
        let Dst::Value(carry_value) = carry else { return false };
        let new_low = Inst::new(Op::Lea { shift }, &[low.dsts[0], carry], &[source[0], z[0]], low.src);
        let new_high = Inst::new(
            Op::LeaHi { shift, x: true },
            &[high.dsts[0]],
            &[source[0], z[1], source[1], carry_value.into()],
            high.src,
        );
        self.rewrite(b, add.low, new_low);
        self.rewrite(b, add.high, new_high);
        true
    }
}
