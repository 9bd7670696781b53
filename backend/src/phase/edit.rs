//! Reading and rewriting SSA functions: facts about operands, replacement of values.

use crate::ori::alias;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Const, Dst, Function, Inst, Src, SrcKind, SrcMods, Term, Value, sign_bits};
use crate::ori::memory::effect;
use crate::ori::op::{Op, ShfType};
use crate::ori::signature;
use crate::regalloc::STACK_POINTER;

/// Whether an instruction may run elsewhere, as far as its effect and its operands allow: it has no guard and no physical
/// register except a stack pointer that never changes, and its result does not depend on the threads that execute it
/// together.
pub fn may_run_elsewhere(func: &Function, inst: &Inst) -> bool {
    let facts = signature::facts(&inst.op);
    let has_register = inst.dsts.iter().any(|dst| matches!(dst, Dst::Reg(_)))
        || inst
            .uses()
            .any(|src| matches!(src.kind, SrcKind::Reg(reg) if reg != STACK_POINTER || func.frame.moving))
        || inst.defs().any(|v| func.value(v).pin.is_some());
    !facts.convergent && !facts.pinned && inst.guard.is_true() && !has_register
}

pub fn for_each_use_mut(func: &mut Function, b: BlockId, mut visit: impl FnMut(&mut Src)) {
    let block = func.block_mut(b);
    block.phis.iter_mut().flat_map(|phi| &mut phi.args).for_each(|(_, src)| visit(src));
    block.insts.iter_mut().flat_map(Inst::uses_mut).for_each(&mut visit);
    block.term.operand_mut().into_iter().for_each(visit);
}

/// The word whose sign fills `high`.
pub fn extended(func: &Function, defs: &Defs, high: &Src) -> Option<Src> {
    let inst = defs.of_src(func, high)?;
    let is_sign = inst.op == (Op::Shf { right: true, wrap: false, hi: true, ty: ShfType::S32 })
        && known(&inst.srcs[1]) == Some(31);
    is_sign.then(|| inst.srcs[2])
}

/// Values and the operands that replace them.
pub struct Replacements {
    /// Indexed by value.
    by: Vec<Option<Src>>,
    any: bool,
}

impl Replacements {
    pub fn new(func: &Function) -> Replacements {
        Replacements { by: vec![None; func.values.len()], any: false }
    }

    pub fn is_empty(&self) -> bool {
        !self.any
    }

    pub fn get(&self, v: Value) -> Option<Src> {
        self.by.get(v.index()).copied().flatten()
    }

    /// Replaces `v` by `by`. `by` must be available wherever `v` is, and have no modifier except `not` on a predicate.
    pub fn insert(&mut self, v: Value, by: Src) {
        if self.by.len() <= v.index() {
            self.by.resize(v.index() + 1, None);
        }
        // Resolved at once, so that chains of replacements stay short.
        self.by[v.index()] = Some(self.resolve(by));
        self.any = true;
    }

    /// The replacement of `src`.
    pub fn resolve(&self, mut src: Src) -> Src {
        // Replacements never form a cycle, because each refers to an earlier definition.
        while let Some(by) = src.value().and_then(|v| self.get(v)) {
            src.kind = match src.kind {
                SrcKind::Part(_, part) => part_of(by.kind, part),
                _ => by.kind,
            };
            src.mods.not ^= by.mods.not;
        }
        normalize_predicate(&mut src);
        src
    }

    /// Rewrites every operand of the reached blocks.
    pub fn apply(&self, func: &mut Function, cfg: &Cfg) {
        if self.is_empty() {
            return;
        }
        for &b in &cfg.order {
            for_each_use_mut(func, b, |src| {
                if src.value().is_some() {
                    *src = self.resolve(*src);
                }
            });
            for inst in &mut func.block_mut(b).insts {
                signature::fold_modifiers(inst);
                // If the guard is always true, there is no old value to keep.
                if inst.guard.is_true() {
                    inst.old.clear();
                }
            }
        }
    }
}

/// `!PT` and `!PF` without their modifier.
pub fn normalize_predicate(src: &mut Src) {
    if let SrcKind::Pred(value) = src.kind
        && src.mods.not
    {
        *src = Src::new(SrcKind::Pred(!value));
    }
}

/// One 32-bit register of a wide operand.
pub fn part_of(kind: SrcKind, part: u8) -> SrcKind {
    match kind {
        SrcKind::Value(v) => SrcKind::Part(v, part),
        SrcKind::Const(c) => SrcKind::Const(Const { bank: c.bank, offset: c.offset + 4 * u16::from(part) }),
        other => other,
    }
}

/// Moves the instructions of a block from `at` on, and its terminator, to a new block, which is not in the layout yet.
pub fn split(func: &mut Function, b: BlockId, at: usize) -> BlockId {
    let new = func.new_block();
    let block = func.block_mut(b);
    let insts = block.insts.split_off(at);
    let term = std::mem::replace(&mut block.term, Term::Jump(new));
    let src = block.term_src;
    for to in term.successors() {
        for phi in &mut func.block_mut(to).phis {
            phi.args.iter_mut().filter(|(from, _)| *from == b).for_each(|(from, _)| *from = new);
        }
    }
    let after = func.block_mut(new);
    (after.insts, after.term, after.term_src) = (insts, term, src);
    new
}

/// The bits of a 32-bit operand, if they are known.
pub fn known(src: &Src) -> Option<u32> {
    src.known()
}

/// Splits an operand into a value and a constant that is added to it.
pub fn added(func: &Function, defs: &Defs, src: Src) -> Option<(Src, u32)> {
    let inst = defs.of_src(func, &src)?;
    if inst.op != (Op::Iadd3 { x: false }) || inst.dsts.first() != src.value().map(Dst::Value).as_ref() {
        return None;
    }
    let (constants, values): (Vec<&Src>, Vec<&Src>) =
        inst.srcs[..3].iter().partition(|src| known(src).is_some());
    match values[..] {
        [&value] if value.mods == SrcMods::NONE => {
            let sum = constants.into_iter().filter_map(known).fold(0u32, u32::wrapping_add);
            Some((value, sum))
        }
        _ => None,
    }
}

/// Splits the halves of a 64-bit operand into those of a value and a constant that is added to it.
pub fn added_to_pair(func: &Function, defs: &Defs, halves: &[Src; 2]) -> Option<([Src; 2], i64)> {
    let (low, high) = (defs.of_src(func, &halves[0])?, defs.of_src(func, &halves[1])?);
    if low.op != (Op::Iadd3 { x: false }) || high.op != (Op::Iadd3 { x: true }) {
        return None;
    }
    let Some(Dst::Value(carry)) = low.dsts.get(1) else { return None };
    let carried = high.srcs.get(3) == Some(&Src::from(*carry))
        && high.srcs.get(4).is_none_or(|second| *second == Src::FALSE);
    let zero = (0..3).find(|k| low.srcs[*k] == Src::ZERO && high.srcs[*k] == Src::ZERO)?;
    if !carried {
        return None;
    }
    let [k, l] = [[1, 2], [0, 2], [0, 1]][zero];
    [(k, l), (l, k)].into_iter().find_map(|(base, constant)| {
        let (add, extension) = (known(&low.srcs[constant])?, known(&high.srcs[constant])?);
        let base = [low.srcs[base], high.srcs[base]];
        let plain = base.iter().all(|half| half.mods == SrcMods::NONE);
        (extension == sign_bits(add) && plain).then_some((base, i64::from(add as i32)))
    })
}

/// If the pair is another pair, shifted left by less than 32: the other pair and the distance.
pub fn shifted_pair(func: &Function, defs: &Defs, pair: &[Src; 2]) -> Option<([Src; 2], u32)> {
    let (low, high) = (defs.of_src(func, &pair[0])?, defs.of_src(func, &pair[1])?);
    let low_shifts = matches!(low.op, Op::Shf { right: false, wrap: false, hi: false, ty: ShfType::U32 })
        && low.srcs[2] == Src::ZERO;
    let high_shifts = matches!(high.op, Op::Shf { right: false, wrap: false, hi: true, ty: ShfType::U64 });
    if !low_shifts || !high_shifts {
        return None;
    }
    let by = known(&low.srcs[1])?;
    let fits = high.srcs[0] == low.srcs[0] && known(&high.srcs[1]) == Some(by);
    (fits && (1..32).contains(&by)).then(|| ([low.srcs[0], high.srcs[2]], by))
}

/// Removes blocks that the entry does not reach from the layout and from phis.
pub fn remove_unreached(func: &mut Function, cfg: &Cfg) {
    if func.layout.iter().all(|b| cfg.is_reached(*b)) {
        return;
    }
    for i in 0..func.layout.len() {
        let b = func.layout[i];
        if cfg.is_reached(b) {
            for phi in &mut func.block_mut(b).phis {
                phi.args.retain(|(from, _)| cfg.is_reached(*from));
            }
        } else {
            let block = std::mem::take(func.block_mut(b));
            let has_effect = |inst: &&Inst| !alias::is_removable(&effect(&inst.op));
            func.facts.never.extend(block.insts.iter().filter(has_effect).map(|inst| inst.src));
        }
    }
    func.layout.retain(|b| cfg.is_reached(*b));
}
