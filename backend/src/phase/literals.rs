//! Puts 64-bit numbers that no instruction contains into a constant bank, on targets whose arithmetic reads such banks.
//!
//! An immediate is the high word of a double whose low word is zero. Any other double is a pair of moves, and takes a
//! pair of registers. As an operand in a constant bank it takes neither.
//!
//! Before and after: SSA. The numbers are in [`Function::literals`]; the offset of an operand in [`layout::LITERALS`] is
//! that of its number in this list.

use crate::CodegenError;
use crate::layout;
use crate::legalize;
use crate::ori::cfg::Cfg;
use crate::ori::defs::for_each_use;
use crate::ori::ir::{Const, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::Op;
use crate::ori::signature::{Accept, Width, signature};
use crate::phases::{Change, Context};
use crate::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most numbers of a kernel, and of a function that kernels may call: the bank holds those of a kernel and of all
/// functions that it calls.
const MOST: usize = 2048;
const MOST_OF_CALLED: usize = 32;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let has_bank = Target::nearest(context.sm).is_some_and(|target| target.literals);
    if !has_bank || func.routine.is_some() {
        return Ok(Change::Nothing);
    }
    let cfg = context.analyses.cfg(func);
    let numbers = numbers(func, cfg);
    if numbers.is_empty() {
        return Ok(Change::Nothing);
    }
    let most = if func.entry { MOST } else { MOST_OF_CALLED };
    let mut literals = Literals { offsets: FxHashMap::default(), list: Vec::new(), most };
    for &b in &cfg.order {
        let mut insts = std::mem::take(&mut func.block_mut(b).insts);
        for inst in &mut insts {
            if let Some(changed) = literals.read_by(func, &numbers, inst) {
                *inst = changed;
            }
        }
        func.block_mut(b).insts = insts;
    }
    func.literals = literals.list;
    remove_unread(func, cfg, &numbers);
    Ok(Change::Something)
}

/// The pairs of two known words of which the low one is not zero.
fn numbers(func: &Function, cfg: &Cfg) -> FxHashMap<Value, u64> {
    let word = |src: &Src| match src.kind {
        SrcKind::Imm(bits) if src.mods == SrcMods::NONE => Some(u64::from(bits)),
        SrcKind::Zero => Some(0),
        _ => None,
    };
    let number = |inst: &Inst| {
        let [low, high] = &inst.srcs[..] else { return None };
        let is_pair = inst.op == Op::Pack && inst.guard.is_true();
        let (low, high) = (word(low)?, word(high)?);
        Some((inst.defs().next()?, high << 32 | low)).filter(|_| is_pair && low != 0)
    };
    cfg.order.iter().flat_map(|b| &func.block(*b).insts).filter_map(number).collect()
}

/// Removes the pairs that only instructions with a literal read.
fn remove_unread(func: &mut Function, cfg: &Cfg, numbers: &FxHashMap<Value, u64>) {
    let mut unread: FxHashSet<Value> = numbers.keys().copied().collect();
    for &b in &cfg.order {
        for_each_use(func, b, |src| {
            src.value().map(|v| unread.remove(&v));
        });
    }
    for &b in &cfg.order {
        let is_read = |inst: &Inst| inst.defs().next().is_none_or(|v| !unread.contains(&v));
        func.block_mut(b).insts.retain(is_read);
    }
}

struct Literals {
    offsets: FxHashMap<u64, u16>,
    list: Vec<u64>,
    most: usize,
}

impl Literals {
    /// The instruction with a number as a constant operand, if it has a form for that.
    fn read_by(&mut self, func: &Function, numbers: &FxHashMap<Value, u64>, inst: &Inst) -> Option<Inst> {
        let is_number = |src: &Src| match src.kind {
            SrcKind::Value(v) => numbers.get(&v).copied(),
            _ => None,
        };
        if !inst.srcs.iter().any(|src| is_number(src).is_some()) || inst.op == Op::Pack {
            return None;
        }
        // An instruction has at most one operand that is not a register. An immediate or another constant would have to
        // be moved to a register in place of the number; ptxas does so only with a constant.
        if inst.srcs.iter().any(|src| matches!(src.kind, SrcKind::Imm(_))) {
            return None;
        }
        let slots = signature(&inst.op).srcs;
        for i in 0..inst.srcs.len() {
            let Some(number) = is_number(&inst.srcs[i]) else { continue };
            let mut changed = inst.clone();
            let literal = |offset| SrcKind::Const(Const { bank: layout::LITERALS, offset });
            changed.srcs[i].kind = literal(0);
            legalize::exchange(func, &mut changed);
            let at = changed.srcs.iter().position(|src| src.kind == literal(0))?;
            let fits = slots
                .get(at)
                .is_some_and(|slot| slot.width == Width::Exactly(2) && slot.accept.has(Accept::CONST));
            if fits && let Some(offset) = self.place(number) {
                changed.srcs[at].kind = literal(offset);
                return Some(changed);
            }
        }
        None
    }

    /// The offset of a number, which joins the list if it is new. `None` if the list is full.
    fn place(&mut self, number: u64) -> Option<u16> {
        if let Some(offset) = self.offsets.get(&number) {
            return Some(*offset);
        }
        if self.list.len() == self.most {
            return None;
        }
        let offset = (self.list.len() as u32 * layout::LITERAL_BYTES) as u16;
        self.list.push(number);
        self.offsets.insert(number, offset);
        Some(offset)
    }
}
