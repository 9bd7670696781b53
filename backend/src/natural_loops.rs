//! Natural loops of machine code: each has one entry, its header, to which control returns from inside.
//!
//! Control flow is given as the successors of each block; the first block is the entry.

use rustc_hash::FxHashSet;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NaturalLoop {
    pub header: usize,
    /// With the header, ascending.
    pub blocks: Vec<usize>,
}

/// The blocks that are reachable from the first one, in reverse postorder.
pub fn reverse_postorder(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; successors.len()];
    let mut order = Vec::new();
    let mut pending = vec![(0, 0)];
    seen[0] = true;
    while let Some((block, next)) = pending.last_mut() {
        match successors[*block].get(*next) {
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    pending.push((to, 0));
                }
            }
            None => {
                order.push(*block);
                pending.pop();
            }
        }
    }
    order.reverse();
    order
}

/// The loops among the blocks of a reverse postorder; outer loops come before those in them.
pub fn natural_loops(successors: &[Vec<usize>], order: &[usize]) -> Vec<NaturalLoop> {
    let dominators = dominators(successors, order);
    let dominates = |above: usize, mut block: usize| loop {
        if block == above {
            return true;
        }
        match dominators[block] {
            Some(up) if up != block => block = up,
            _ => return false,
        }
    };
    let mut predecessors = vec![Vec::new(); successors.len()];
    for &block in order {
        successors[block].iter().for_each(|&to| predecessors[to].push(block));
    }
    let mut place = vec![0; successors.len()];
    order.iter().enumerate().for_each(|(i, &block)| place[block] = i);
    let mut found = Vec::new();
    for &header in order {
        // Only edges against the order can lead to a block that dominates their start.
        let latches = predecessors[header].iter().copied().filter(|&latch| place[latch] >= place[header]);
        let mut pending: Vec<usize> = latches.filter(|&latch| dominates(header, latch)).collect();
        if pending.is_empty() {
            continue;
        }
        let mut body = FxHashSet::from_iter([header]);
        while let Some(block) = pending.pop() {
            if body.insert(block) {
                pending.extend(&predecessors[block]);
            }
        }
        let mut blocks: Vec<usize> = body.into_iter().collect();
        blocks.sort_unstable();
        found.push(NaturalLoop { header, blocks });
    }
    found
}

/// The nearest block that every path to a block passes.
fn dominators(successors: &[Vec<usize>], order: &[usize]) -> Vec<Option<usize>> {
    let mut place = vec![usize::MAX; successors.len()];
    order.iter().enumerate().for_each(|(i, &block)| place[block] = i);
    let mut found: Vec<Option<usize>> = vec![None; successors.len()];
    let Some(&root) = order.first() else { return found };
    found[root] = Some(root);
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order {
            for &to in &successors[block] {
                if to == root || found[block].is_none() {
                    continue;
                }
                let common = match found[to] {
                    None => block,
                    Some(old) => meet(&found, &place, old, block),
                };
                if found[to] != Some(common) {
                    found[to] = Some(common);
                    changed = true;
                }
            }
        }
    }
    found
}

fn meet(found: &[Option<usize>], place: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        let later = if place[a] > place[b] { &mut a } else { &mut b };
        match found[*later] {
            Some(up) if up != *later => *later = up,
            _ => return *later,
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_in_loops() {
        // 0 → 1 (outer) → 2 (inner, to itself) → 3 → 1 or 4.
        let successors = [vec![1], vec![2], vec![2, 3], vec![1, 4], vec![]];
        let found = natural_loops(&successors, &reverse_postorder(&successors));
        let one = |header, blocks: &[usize]| NaturalLoop { header, blocks: blocks.to_vec() };
        assert_eq!(found, [one(1, &[1, 2, 3]), one(2, &[2])]);
    }

    #[test]
    fn a_cycle_with_two_entries_is_no_loop() {
        let successors = [vec![1, 2], vec![2], vec![1, 3], vec![]];
        assert_eq!(natural_loops(&successors, &reverse_postorder(&successors)), []);
    }
}
