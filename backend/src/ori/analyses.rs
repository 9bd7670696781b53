//! Analyses of a function, computed on demand and kept while they are valid.
//!
//! The owner drops the analyses of instructions after each phase that changed something, and those of the control flow
//! too unless the phase declares that it keeps it ([`crate::phases::Phase::keeps_flow`]). Builds with debug assertions
//! compare the results with the function at every use and after every phase, so that no stale result is read.

use crate::ori::cfg::Cfg;
use crate::ori::defs::{Defs, count_uses};
use crate::ori::divergence::{Common, Divergence};
use crate::ori::dominators::{self, Tree};
use crate::ori::ir::Function;
use crate::ori::loops::Loops;
use std::cell::OnceCell;

#[derive(Default, Debug)]
pub struct Analyses {
    cfg: OnceCell<Cfg>,
    dominators: OnceCell<Tree>,
    post_dominators: OnceCell<Tree>,
    loops: OnceCell<Loops>,
    values: Values,
}

/// Analyses of instructions.
#[derive(Default, Debug)]
struct Values {
    defs: OnceCell<Defs>,
    uses: OnceCell<Vec<u32>>,
    divergence: OnceCell<Divergence>,
    common: OnceCell<Common>,
}

impl Analyses {
    pub fn cfg(&self, func: &Function) -> &Cfg {
        debug_assert!(self.flow_holds(func), "control flow changed since it was analyzed");
        self.cfg.get_or_init(|| Cfg::new(func))
    }

    pub fn dominators(&self, func: &Function) -> &Tree {
        let cfg = self.cfg(func);
        self.dominators.get_or_init(|| dominators::dominators(cfg, func))
    }

    pub fn post_dominators(&self, func: &Function) -> &Tree {
        let loops = self.loops(func);
        self.post_dominators.get_or_init(|| dominators::post_dominators(self.cfg(func), func, loops))
    }

    pub fn loops(&self, func: &Function) -> &Loops {
        let dominators = self.dominators(func);
        self.loops.get_or_init(|| Loops::new(func, self.cfg(func), dominators))
    }

    /// The definition of each value before the phase.
    pub fn defs(&self, func: &Function) -> &Defs {
        self.values(func).defs.get_or_init(|| Defs::new(func, self.cfg(func)))
    }

    /// The number of uses of each value before the phase.
    pub fn uses(&self, func: &Function) -> &[u32] {
        self.values(func).uses.get_or_init(|| count_uses(func, self.cfg(func)))
    }

    pub fn divergence(&self, func: &Function) -> &Divergence {
        let post = self.post_dominators(func);
        let new = || {
            self.witness(func);
            Divergence::new(func, self.cfg(func), post, self.loops(func))
        };
        self.values(func).divergence.get_or_init(new)
    }

    pub fn common(&self, func: &Function) -> &Common {
        let new = || {
            self.witness(func);
            Common::new(func, self.cfg(func))
        };
        self.values(func).common.get_or_init(new)
    }

    /// In builds with debug assertions, computes the uses, by which [`Self::values_hold`] recognises a change.
    fn witness(&self, func: &Function) {
        if cfg!(debug_assertions) {
            self.uses(func);
        }
    }

    fn values(&self, func: &Function) -> &Values {
        debug_assert!(self.values_hold(func), "instructions changed since they were analyzed");
        &self.values
    }

    /// Drops the analyses of instructions.
    pub(crate) fn drop_values(&mut self) {
        self.values = Values::default();
    }

    /// Whether all computed analyses are still valid for the function.
    pub(crate) fn hold(&self, func: &Function) -> bool {
        self.flow_holds(func) && self.values_hold(func)
    }

    fn flow_holds(&self, func: &Function) -> bool {
        self.cfg.get().is_none_or(|cfg| *cfg == Cfg::new(func))
    }

    /// The other analyses depend on the same instructions. They are not computed again, because that costs more;
    /// the uses are known wherever one of them is ([`Self::witness`]).
    fn values_hold(&self, func: &Function) -> bool {
        let Values { defs, uses, .. } = &self.values;
        let cfg = || Cfg::new(func);
        defs.get().is_none_or(|defs| *defs == Defs::new(func, &cfg()))
            && uses.get().is_none_or(|uses| *uses == count_uses(func, &cfg()))
    }
}
