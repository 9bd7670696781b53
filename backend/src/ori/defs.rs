//! Definitions and uses of the values of a function in SSA form.

use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Function, Inst, Src, SrcKind, SrcMods, Value};

/// The definition of each value. It stays valid while instructions are changed in place, but not if they are inserted
/// or removed.
#[derive(Clone, PartialEq, Debug)]
pub struct Defs {
    /// For each value: block and index of its instruction; `NOWHERE` for phis and dead values.
    sites: Vec<(BlockId, u32)>,
}

const NOWHERE: u32 = u32::MAX;

impl Defs {
    pub fn new(func: &Function, cfg: &Cfg) -> Defs {
        let mut sites = vec![(BlockId(0), NOWHERE); func.values.len()];
        for &b in &cfg.order {
            for (i, inst) in func.block(b).insts.iter().enumerate() {
                for v in inst.defs() {
                    sites[v.index()] = (b, i as u32);
                }
            }
        }
        Defs { sites }
    }

    /// The instruction that defines `v`; `None` for phis.
    pub fn inst<'f>(&self, func: &'f Function, v: Value) -> Option<&'f Inst> {
        let (b, i) = self.site(v)?;
        func.block(b).insts.get(i)
    }

    pub fn site(&self, v: Value) -> Option<(BlockId, usize)> {
        let (b, i) = *self.sites.get(v.index())?;
        (i != NOWHERE).then_some((b, i as usize))
    }

    /// The unguarded instruction that defines the whole operand, if the operand is read without modifiers.
    pub fn of_src<'f>(&self, func: &'f Function, src: &Src) -> Option<&'f Inst> {
        match src {
            Src { kind: SrcKind::Value(v), mods: SrcMods::NONE } => {
                self.inst(func, *v).filter(|inst| inst.guard.is_true())
            }
            _ => None,
        }
    }

    pub fn set(&mut self, v: Value, b: BlockId, i: usize) {
        if self.sites.len() <= v.index() {
            self.sites.resize(v.index() + 1, (BlockId(0), NOWHERE));
        }
        self.sites[v.index()] = (b, i as u32);
    }
}

/// The number of uses of each value.
pub fn count_uses(func: &Function, cfg: &Cfg) -> Vec<u32> {
    let mut counts = vec![0u32; func.values.len()];
    for &b in &cfg.order {
        for_each_use(func, b, |src| {
            if let Some(v) = src.value() {
                counts[v.index()] += 1;
            }
        });
    }
    counts
}

/// Every operand read in `b`: by phis, instructions and the terminator.
pub fn for_each_use(func: &Function, b: BlockId, mut visit: impl FnMut(&Src)) {
    let block = func.block(b);
    block.phis.iter().flat_map(|phi| &phi.args).for_each(|(_, src)| visit(src));
    block.insts.iter().flat_map(Inst::uses).for_each(&mut visit);
    block.term.operand().into_iter().for_each(visit);
}
