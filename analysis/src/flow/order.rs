//! Whether an instruction can be executed before or after another statement.

use rustc_hash::FxHashMap;

use super::{BlockId, Graph, Instr};

/// An instruction and its position.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    pub instr: Instr<'a>,
    pub block: BlockId,
}

/// Some instructions of a body, and the blocks from which control can reach them or which it can reach after them.
pub struct Order {
    /// For each block: the first and the last of these instructions, by their ordinals.
    places: FxHashMap<BlockId, (u32, u32)>,
    /// For each block: whether one of them can be executed after its end.
    ahead: Box<[bool]>,
    /// For each block: whether one of them can have been executed before its start.
    behind: Box<[bool]>,
}

impl Order {
    pub fn new<'x, 's: 'x>(graph: &Graph, sites: impl Iterator<Item = &'x Site<'s>>) -> Self {
        let mut places: FxHashMap<BlockId, (u32, u32)> = FxHashMap::default();
        for site in sites {
            let at = site.instr.src.0;
            let place = places.entry(site.block).or_insert((at, at));
            *place = (place.0.min(at), place.1.max(at));
        }
        let mut blocks: Vec<BlockId> = places.keys().copied().collect();
        blocks.sort_unstable();
        let (reaching, reached) = (graph.reaching(&blocks), graph.reached_from(&blocks));
        let ahead = graph.blocks().map(|block| graph.successors(block).iter().any(|&b| reaching[b as usize]));
        let behind =
            graph.blocks().map(|block| graph.predecessors(block).iter().any(|&b| reached[b as usize]));
        let (ahead, behind) = (ahead.collect(), behind.collect());
        Self { places, ahead, behind }
    }

    /// Whether one of the instructions can be executed after `site`.
    pub fn follows(&self, site: &Site<'_>) -> bool {
        self.ahead[site.block as usize]
            || self.places.get(&site.block).is_some_and(|&(_, last)| last > site.instr.src.0)
    }

    /// Whether one of the instructions can have been executed before `site`.
    pub fn precedes(&self, site: &Site<'_>) -> bool {
        self.behind[site.block as usize]
            || self.places.get(&site.block).is_some_and(|&(first, _)| first < site.instr.src.0)
    }
}
