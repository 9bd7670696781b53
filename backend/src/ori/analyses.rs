//! What is known of a function's control flow, computed when first asked for and kept until the flow changes.
//!
//! The owner drops them when a phase does not state that it keeps the flow ([`crate::phases::Phase::keeps_flow`]). Builds
//! with debug assertions compare them with the function at every question, so nothing stale is read.

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

    /// What was computed so far is still so.
    pub(crate) fn hold(&self, func: &Function) -> bool {
        self.cfg.get().is_none_or(|cfg| *cfg == Cfg::new(func))
    }
}
