//! For each block, the words that are known at its start and read later.

use super::places::{Action, FollowedAccess, Places, Set};
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::Function;

/// The maximum number of words that are kept in registers from one block to another.
const MOST: usize = 128;

/// For each block, the words that are known on all paths to it, and that a load reads before they are overwritten.
pub(super) fn kept(func: &Function, cfg: &Cfg, places: &Places) -> Vec<Set> {
    let mut kept = known(func, cfg, places);
    let read = read(func, cfg, places);
    let mut most = 0;
    for &b in &cfg.order {
        kept[b.index()].keep(&read[b.index()]);
        most = most.max(kept[b.index()].count());
    }
    if most > MOST {
        kept.fill(Set::empty(places.count));
    }
    kept
}

/// Whether the store makes its words known, even if they were unknown before.
fn replaces(access: &FollowedAccess) -> bool {
    access.is_whole() && !access.guarded
}

/// Whether the store keeps the rest of a known word, because it stores only a part or may not be executed. The store
/// must not be both.
pub(super) fn merges(access: &FollowedAccess) -> bool {
    !replaces(access) && (access.is_whole() || !access.guarded)
}

fn known(func: &Function, cfg: &Cfg, places: &Places) -> Vec<Set> {
    let mut starts = vec![Set::full(places.count); func.blocks.len()];
    let mut ends = starts.clone();
    loop {
        let mut changed = false;
        for (i, &b) in cfg.order.iter().enumerate() {
            let mut set = if i == 0 { places.own.clone() } else { Set::full(places.count) };
            for from in cfg.preds(b) {
                set.keep(&ends[from.index()]);
            }
            starts[b.index()] = set.clone();
            for step in places.steps(b) {
                places.forget(step, &mut set);
                match &step.action {
                    Action::Load(access) if access.is_whole() && !access.guarded => {
                        access.words.iter().for_each(|place| set.add(*place));
                    }
                    Action::Store(access) if replaces(access) => {
                        access.words.iter().for_each(|place| set.add(*place));
                    }
                    Action::Store(access) if !merges(access) => {
                        access.words.iter().for_each(|place| set.remove(*place));
                    }
                    _ => {}
                }
            }
            if ends[b.index()] != set {
                ends[b.index()] = set;
                changed = true;
            }
        }
        if !changed {
            return starts;
        }
    }
}

fn read(func: &Function, cfg: &Cfg, places: &Places) -> Vec<Set> {
    let mut starts = vec![Set::empty(places.count); func.blocks.len()];
    loop {
        let mut changed = false;
        for &b in cfg.order.iter().rev() {
            let mut set = Set::empty(places.count);
            for_each_successor(func, b, |to| set.add_all(&starts[to.index()]));
            for step in places.steps(b).iter().rev() {
                match &step.action {
                    Action::Store(access) if !merges(access) => {
                        access.words.iter().for_each(|place| set.remove(*place));
                    }
                    _ => {}
                }
                places.forget(step, &mut set);
                match &step.action {
                    Action::Load(access) if !access.guarded => {
                        access.words.iter().for_each(|place| set.add(*place));
                    }
                    _ => {}
                }
            }
            if starts[b.index()] != set {
                starts[b.index()] = set;
                changed = true;
            }
        }
        if !changed {
            return starts;
        }
    }
}
