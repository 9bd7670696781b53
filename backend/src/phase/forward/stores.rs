//! Removes stores to local memory that are never read.

use super::places::{Action, FollowedWord, Places, Set, Step};
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Function, Term};

pub(super) fn remove_dead(func: &mut Function, cfg: &Cfg, places: &Places) {
    let is_store = |step: &Step| matches!(&step.action, Action::Store(access) if access.is_local());
    if !cfg.order.iter().any(|b| places.steps(*b).iter().any(is_store)) {
        return;
    }
    let live = Live { places, any: places.count as FollowedWord };
    let mut starts = vec![Set::empty(places.count + 1); func.blocks.len()];
    loop {
        let mut changed = false;
        for &b in cfg.order.iter().rev() {
            let mut set = live.at_end(func, b, &starts);
            for step in places.steps(b).iter().rev() {
                live.before(step, &mut set);
            }
            if starts[b.index()] != set {
                starts[b.index()] = set;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    for &b in &cfg.order {
        let mut set = live.at_end(func, b, &starts);
        let mut dead = Vec::new();
        for step in places.steps(b).iter().rev() {
            if let Action::Store(access) = &step.action
                && access.is_local()
                && !access.words.iter().any(|place| set.has(*place))
            {
                dead.push(step.at);
            }
            live.before(step, &mut set);
        }
        let mut at = 0;
        func.block_mut(b).insts.retain(|_| {
            at += 1;
            let is_dead = dead.last() == Some(&(at - 1));
            if is_dead {
                dead.pop();
            }
            !is_dead
        });
    }
}

/// The words of local memory that may be read before they are overwritten.
struct Live<'a> {
    places: &'a Places,
    /// A member of the set which means that any word of local memory may be read, at any address.
    any: FollowedWord,
}

impl Live<'_> {
    fn at_end(&self, func: &Function, b: BlockId, starts: &[Set]) -> Set {
        let mut set = Set::empty(self.places.count + 1);
        // The memory that a function writes may belong to its caller, except for its own frame.
        if func.block(b).term == Term::Ret || (!func.entry && func.block(b).term == Term::Exit) {
            self.read_all(&mut set);
            set.remove_all(&self.places.own);
        }
        for_each_successor(func, b, |to| set.add_all(&starts[to.index()]));
        set
    }

    fn read_all(&self, set: &mut Set) {
        set.add_all(self.places.local());
        set.add(self.any);
    }

    fn before(&self, step: &Step, set: &mut Set) {
        match &step.action {
            Action::Store(access) if access.is_local() && access.is_whole() && !access.guarded => {
                access.words.iter().for_each(|place| set.remove(*place));
            }
            Action::Load(access) if self.places.reads_local(access) => {
                let others = self.places.local().iter().filter(|place| !self.places.is_of(access, *place));
                others.chain(access.words.iter().copied()).for_each(|place| set.add(place));
                set.add(self.any);
            }
            Action::Other { reads: true, .. } => self.read_all(set),
            Action::Moves(root) => {
                // From here on, the words at the old address may have any other name.
                let own = self.places.of_root(*root);
                if set.has(self.any) {
                    own.iter()
                        .filter(|place| self.places.local().has(*place))
                        .for_each(|place| set.add(place));
                } else {
                    set.remove_all(own);
                }
            }
            _ => {}
        }
    }
}
