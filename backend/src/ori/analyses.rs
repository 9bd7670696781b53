//! Analyses of a function's control flow, computed on demand and kept until the control flow changes.
//!
//! The owner drops them after each phase that does not declare that it keeps the control flow
//! ([`crate::phases::Phase::keeps_flow`]). Builds with debug assertions compare them with the function at every use, so
//! that no stale result is read.

use crate::ori::cfg::Cfg;
use crate::ori::dominators::{self, Tree};
use crate::ori::ir::Function;
use crate::ori::loops::Loops;
use std::cell::OnceCell;

#[derive(Default, Debug)]
pub struct Analyses {
    cfg: OnceCell<Cfg>,
    dominators: OnceCell<Tree>,
    loops: OnceCell<Loops>,
}

impl Analyses {
    pub fn cfg(&self, func: &Function) -> &Cfg {
        debug_assert!(self.hold(func), "control flow changed since it was analysed");
        self.cfg.get_or_init(|| Cfg::new(func))
    }

    pub fn dominators(&self, func: &Function) -> &Tree {
        let cfg = self.cfg(func);
        self.dominators.get_or_init(|| dominators::dominators(cfg, func))
    }

    pub fn loops(&self, func: &Function) -> &Loops {
        let dominators = self.dominators(func);
        self.loops.get_or_init(|| Loops::new(func, self.cfg(func), dominators))
    }

    /// Whether all computed analyses are still valid for the function.
    pub(crate) fn hold(&self, func: &Function) -> bool {
        self.cfg.get().is_none_or(|cfg| *cfg == Cfg::new(func))
    }
}
