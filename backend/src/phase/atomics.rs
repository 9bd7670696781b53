//! Executes atomic operations on one address once for all threads that are together, instead of once for each thread.
//!
//! The memory system executes the operations of a warp on one address one after another. If all active threads have the
//! same address, one of them, the active thread with the highest number, executes one operation with the combined value
//! of all:
//!
//! - If all add the same value, it adds the product of the value and the number of active threads. The old value that a
//!   thread reads is the one that it would read if the threads executed their operations in the order of their numbers.
//! - If all have the same value, their minimum, maximum, `and` and `or` are that value.
//! - Otherwise `REDUX` combines the values, on targets that have it, if no thread reads the old value.
//!
//! The address, and a value that counts as the same, are computed from constants, parameters and the position of the
//! block. So they are the same for all threads of the block, whichever of them are together.
//!
//! Before and after: SSA. A guarded operation gets a branch, because its code is long.

use crate::CodegenError;
use crate::emit::encodes;
use crate::input::SrcId;
use crate::ori::defs::Defs;
use crate::ori::divergence::Common;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind, SrcMods, Term, Value};
use crate::ori::op::{
    AtomOp, AtomType, Bool, ExtremeType, FloatRedux, ICmp, Op, ReduxOp, ShflMode, Sign, VoteMode, lut,
};
use crate::ori::operations::{facts, signature};
use crate::ori::signature::{atom_registers, special};
use crate::phase::edit::{known, part_of, split};
use crate::phases::{Change, Context};
use rustc_hash::FxHashMap;
use sass::Sm;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    if !cfg.order.iter().any(|b| func.block(*b).insts.iter().any(|inst| operation(inst).is_some())) {
        return Ok(Change::Nothing);
    }
    let uniformity = Uniformity {
        sm: Sm(context.sm.number as u8),
        common: context.analyses.common(func),
        uses: context.analyses.uses(func),
        defs: context.analyses.defs(func),
    };
    let plans: Vec<(BlockId, Vec<Option<Plan>>)> = (cfg.order.iter())
        .map(|b| (*b, func.block(*b).insts.iter().map(|inst| uniformity.plan(func, inst)).collect()))
        .filter(|(_, plans): &(_, Vec<_>)| plans.iter().any(Option::is_some))
        .collect();
    let mut added = FxHashMap::default();
    for (b, plans) in &plans {
        added.insert(*b, combine(func, *b, plans));
    }
    let layout = std::mem::take(&mut func.layout);
    func.layout = layout
        .into_iter()
        .flat_map(|b| std::iter::once(b).chain(added.remove(&b).unwrap_or_default()))
        .collect();
    Ok(Change::of(!plans.is_empty()))
}

/// How the operations of several threads become one.
#[derive(Clone, Copy)]
enum Plan {
    /// The value, of one word or two, is multiplied by the number of threads.
    Multiply([Src; 2]),
    /// One of the values, all of which are the same.
    Any,
    /// The result of an operation of the warp.
    Reduce(Op),
    /// One operation that the memory executes for threads with equal addresses together.
    Count(Op),
}

/// What the plan of an operation depends on.
struct Uniformity<'a> {
    sm: Sm,
    common: &'a Common,
    uses: &'a [u32],
    defs: &'a Defs,
}

fn operation(inst: &Inst) -> Option<(AtomOp, AtomType)> {
    match inst.op {
        Op::Atom { op, ty, .. } | Op::Red { op, ty, .. } | Op::Atoms { op, ty, .. } => Some((op, ty)),
        _ => None,
    }
}

impl Uniformity<'_> {
    /// `None` if the operations stay separate.
    fn plan(&self, func: &Function, inst: &Inst) -> Option<Plan> {
        let (op, ty) = operation(inst)?;
        let [address, base, value] = inst.srcs[..] else { return None };
        let reads = match inst.dsts[..] {
            [] | [Dst::Sink] | [Dst::Sink, Dst::Sink] => false,
            [Dst::Value(old)] | [Dst::Value(old), Dst::Sink] => self.uses[old.index()] > 0,
            _ => return None,
        };
        if let Op::Atoms { op: AtomOp::Add, ty: AtomType::U32, order, offset } = inst.op
            && !reads
            && known(&value) == Some(1)
            && encodes(self.sm, &Op::AtomsCount { order, offset })
        {
            return Some(Plan::Count(Op::AtomsCount { order, offset }));
        }
        let is_word = matches!(ty, AtomType::U32 | AtomType::S32);
        let is_integer = is_word || matches!(ty, AtomType::U64 | AtomType::S64);
        if !(is_integer && self.is_same(address) && self.is_same(base) && value.mods == SrcMods::NONE) {
            return None;
        }
        match op {
            AtomOp::Add if self.is_same(value) => {
                if is_word {
                    return Some(Plan::Multiply([value, Src::ZERO]));
                }
                let parts =
                    value.value().and_then(|v| self.defs.inst(func, v)).filter(|inst| inst.op == Op::Pack);
                match parts.map(|pack| &pack.srcs[..]) {
                    Some(&[low, high]) => Some(Plan::Multiply([low, high])),
                    _ if matches!(value.kind, SrcKind::Imm(_)) => None,
                    _ => Some(Plan::Multiply([0, 1].map(|i| Src::new(part_of(value.kind, i))))),
                }
            }
            AtomOp::Min | AtomOp::Max | AtomOp::And | AtomOp::Or if !reads && self.is_same(value) => {
                Some(Plan::Any)
            }
            _ if !reads && is_word => {
                let reductions = reductions(op, ty == AtomType::S32)?;
                reductions.into_iter().find(|op| encodes(self.sm, op)).map(Plan::Reduce)
            }
            _ => None,
        }
    }

    fn is_same(&self, src: Src) -> bool {
        match src.kind {
            SrcKind::Value(v) | SrcKind::Part(v, _) => self.common.is(v),
            SrcKind::Reg(_) | SrcKind::Undef => false,
            SrcKind::Zero | SrcKind::Pred(_) | SrcKind::Imm(_) | SrcKind::Const(_) => true,
        }
    }
}

/// The operations that combine values of threads. A target has one of them, or none.
fn reductions(op: AtomOp, signed: bool) -> Option<[Op; 2]> {
    let ty = if signed { ExtremeType::S32 } else { ExtremeType::U32 };
    let redux = |op: ReduxOp, signed: bool| Op::Redux { op, signed };
    let credux = |op: FloatRedux| Op::Credux { op, ty, nan: false };
    Some(match op {
        AtomOp::Add => [redux(ReduxOp::Sum, false); 2],
        AtomOp::And => [redux(ReduxOp::And, false); 2],
        AtomOp::Or => [redux(ReduxOp::Or, false); 2],
        AtomOp::Xor => [redux(ReduxOp::Xor, false); 2],
        AtomOp::Min => [credux(FloatRedux::Min), redux(ReduxOp::Min, signed)],
        AtomOp::Max => [credux(FloatRedux::Max), redux(ReduxOp::Max, signed)],
        AtomOp::Inc | AtomOp::Dec | AtomOp::Exch => return None,
    })
}

/// Carries out the plans for the instructions of a block. Returns the blocks that follow it as a result.
fn combine(func: &mut Function, b: BlockId, plans: &[Option<Plan>]) -> Vec<BlockId> {
    let insts = std::mem::take(&mut func.block_mut(b).insts);
    let mut added = Vec::new();
    let mut at = b;
    // The threads that are together since the last operation.
    let mut group = None;
    for (mut inst, plan) in insts.into_iter().zip(plans) {
        let Some(plan) = *plan else {
            if facts(&inst.op).waits || inst.op.is_call() {
                group = None;
            }
            func.block_mut(at).insts.push(inst);
            continue;
        };
        if let Plan::Count(op) = plan {
            inst.srcs.truncate(2);
            inst.op = op;
            inst.dsts.fill(Dst::Sink);
            inst.old.fill(Src::UNDEF);
            func.block_mut(at).insts.push(inst);
        } else if inst.guard.is_true() {
            let code = combined(func, inst, plan, &mut group);
            func.block_mut(at).insts.extend(code);
        } else {
            let [then, after] = branch_around(func, at, inst, plan);
            added.extend([then, after]);
            (at, group) = (after, None);
        }
    }
    added
}

/// Ends the block with a branch around the combined operation of a guarded instruction. Returns the block with the
/// operation, and the one after it.
fn branch_around(func: &mut Function, b: BlockId, mut inst: Inst, plan: Plan) -> [BlockId; 2] {
    let after = split(func, b, func.block(b).insts.len());
    let then = func.new_block();
    let cond = std::mem::replace(&mut inst.guard, Src::TRUE);
    let old = std::mem::take(&mut inst.old);
    if let Some(Dst::Value(v)) = inst.dsts.first_mut() {
        let width = func.value(*v).width;
        let dst = std::mem::replace(v, func.new_value(File::R, width));
        let kept = old.first().copied().unwrap_or(Src::UNDEF);
        func.block_mut(after).phis.push(Phi { dst, args: vec![(b, kept), (then, (*v).into())] });
    }
    let src = inst.src;
    let insts = combined(func, inst, plan, &mut None);
    let block = func.block_mut(then);
    (block.insts, block.term, block.term_src) = (insts, Term::Jump(after), src);
    let block = func.block_mut(b);
    (block.term, block.term_src) = (Term::Branch { cond, then, els: after, uniform: false }, src);
    [then, after]
}

/// Threads that execute instructions together.
#[derive(Clone, Copy)]
struct Group {
    /// Their mask.
    active: Src,
    /// The highest number of them.
    leader: Src,
    /// Whether the thread has that number.
    is_leader: Src,
    /// How many they are.
    count: Option<Src>,
    /// How many of them have lower numbers than the thread.
    before: Option<Src>,
}

/// One operation for all threads that execute it together.
fn combined(func: &mut Function, mut inst: Inst, plan: Plan, group: &mut Option<Group>) -> Vec<Inst> {
    let mut code = Code { insts: Vec::new(), src: inst.src, func };
    let width = operation(&inst).map_or(1, |(_, ty)| atom_registers(ty));
    let group = group.get_or_insert_with(|| code.group());
    match plan {
        Plan::Multiply(value) => {
            let count = *group.count.get_or_insert_with(|| code.word(Op::Popc, &[group.active]));
            inst.srcs[2] = if width == 1 && known(&value[0]) == Some(1) {
                count
            } else {
                let product = code.value(File::R, width);
                code.multiply_add(product, count, value, Src::ZERO);
                product.into()
            };
        }
        Plan::Any | Plan::Count(_) => {}
        Plan::Reduce(op) => {
            let reduced = code.value(File::UR, 1);
            code.push(op, &[Dst::Value(reduced)], &[inst.srcs[2]]);
            inst.srcs[2] = code.word(Op::Mov, &[reduced.into()]);
        }
    }
    inst.guard = group.is_leader;
    inst.old = inst.dsts.iter().map(|_| Src::UNDEF).collect();
    let Some(Dst::Value(result)) = inst.dsts.first_mut() else {
        code.insts.push(inst);
        return code.insts;
    };
    let old = code.value(File::R, width);
    let result = std::mem::replace(result, old);
    code.insts.push(inst);
    // Only the old value of a sum is read.
    let Plan::Multiply(value) = plan else { return code.insts };
    let before = *group.before.get_or_insert_with(|| {
        let lower = code.word(Op::S2r { sr: special::LOWER_LANES }, &[]);
        let before = code.word(Op::Lop3 { lut: lut::A & lut::B }, &[group.active, lower, Src::ZERO]);
        code.word(Op::Popc, &[before])
    });
    let shared = code.shared(old, group.leader);
    code.multiply_add(result, before, value, shared);
    code.insts
}

/// Instructions of one statement.
struct Code<'a> {
    insts: Vec<Inst>,
    src: SrcId,
    func: &'a mut Function,
}

impl Code<'_> {
    fn value(&mut self, file: File, width: u8) -> Value {
        self.func.new_value(file, width)
    }

    fn push(&mut self, op: Op, dsts: &[Dst], srcs: &[Src]) {
        self.insts.push(Inst::new(op, dsts, srcs, self.src));
    }

    /// The first result of an operation.
    fn word(&mut self, op: Op, srcs: &[Src]) -> Src {
        let value = self.value(File::R, 1);
        let dsts = [Dst::Value(value), Dst::Sink, Dst::Sink];
        self.push(op, &dsts[..signature(&op).dsts.len()], srcs);
        value.into()
    }

    /// The threads that execute the code.
    fn group(&mut self) -> Group {
        let lane = self.word(Op::S2r { sr: special::LANE_ID }, &[]);
        let active = self.word(Op::Vote { mode: VoteMode::Any }, &[Src::TRUE]);
        let leader = self.word(Op::Flo { sign: Sign::U32, shift: false }, &[active]);
        let is_leader = self.value(File::P, 1);
        let equal = Op::Isetp { cmp: ICmp::Eq, sign: Sign::U32, bool_: Bool::And, ex: false };
        self.push(equal, &[Dst::Value(is_leader), Dst::Sink], &[lane, leader, Src::TRUE, Src::TRUE]);
        Group { active, leader, is_leader: is_leader.into(), count: None, before: None }
    }

    /// What the thread `leader` has in `of`, as one or two words.
    fn shared(&mut self, of: Value, leader: Src) -> Src {
        let width = self.func.value(of).width;
        let mut read = |of: Src| self.word(Op::Shfl { mode: ShflMode::Idx }, &[of, leader, Src::imm(0x1f)]);
        if width == 1 {
            return read(of.into());
        }
        let words = [0, 1].map(|i| read(Src::part(of, i)));
        let pair = self.value(File::R, 2);
        self.push(Op::Pack, &[Dst::Value(pair)], &words);
        pair.into()
    }

    /// Computes `count * value + addend`. The addend has the width of the result.
    fn multiply_add(&mut self, result: Value, count: Src, value: [Src; 2], addend: Src) {
        let [low, high] = value;
        let to = |result: Value| [Dst::Value(result), Dst::Sink, Dst::Sink];
        let is_one = known(&low) == Some(1);
        match self.func.value(result).width {
            1 if is_one => self.push(Op::Iadd3 { x: false }, &to(result), &[count, addend, Src::ZERO]),
            1 => self.push(Op::Imad { sign: Sign::U32 }, &to(result)[..1], &[count, low, addend]),
            _ => {
                let wide = Op::ImadWide { sign: Sign::U32, x: false };
                if known(&high) == Some(0) {
                    return self.push(wide, &to(result)[..2], &[count, low, addend]);
                }
                let product = self.value(File::R, 2);
                self.push(wide, &to(product)[..2], &[count, low, addend]);
                let upper = self.word(Op::Imad { sign: Sign::U32 }, &[count, high, Src::part(product, 1)]);
                self.push(Op::Pack, &[Dst::Value(result)], &[Src::part(product, 0), upper]);
            }
        }
    }
}
