//! Traces demands backwards along the edges.
//!
//! All demands of one content in one place form a *web*, which is demanded at the start of each block at most once. A
//! web's blocks are stored as runs in reverse postorder, so that a value that lives through a long function takes
//! little memory.

use super::Checker;
use super::content::{Content, Held, Storage};
use super::run::{Effects, Reader};
use super::uniform;
use crate::ori::ir::{BlockId, File, Reg, Src};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The number of blocks between checkpoints.
const STRIDE: usize = 1 << 12;

/// The blocks of a web: the first and the last of each run, by position in reverse postorder, the last run first.
#[derive(Default)]
struct Visited(SmallVec<[(u32, u32); 1]>);

impl Visited {
    /// The index of the run that contains `at`, or the index where it would be inserted.
    fn find(&self, at: u32) -> Result<usize, usize> {
        let i = self.0.partition_point(|run| run.0 > at);
        if self.0.get(i).is_some_and(|run| at <= run.1) { Ok(i) } else { Err(i) }
    }

    /// Returns false if it was already there.
    fn insert(&mut self, at: u32) -> bool {
        let Err(i) = self.find(at) else { return false };
        let before = self.0.get(i).is_some_and(|run| run.1 + 1 == at);
        let after = i > 0 && self.0[i - 1].0 == at + 1;
        match (before, after) {
            (true, true) => {
                self.0[i - 1].0 = self.0[i].0;
                self.0.remove(i);
            }
            (true, false) => self.0[i].1 = at,
            (false, true) => self.0[i - 1].0 = at,
            (false, false) => self.0.insert(i, (at, at)),
        }
        true
    }
}

struct Web {
    place: Storage,
    content: Content,
    /// Blocks at whose start the content is demanded, and which have not been visited.
    starts: Vec<BlockId>,
    visited: Visited,
    /// One of the readers that demand it.
    reader: Reader,
}

/// The definition of a lane.
#[derive(Clone, Copy)]
struct Definition {
    block: BlockId,
    /// The index of a phi of the block; `None` for an instruction.
    phi: Option<u32>,
}

pub(super) struct Trace<'a> {
    checker: &'a Checker<'a>,
    pub(super) effects: Effects,
    /// The contents that are written to uniform registers, and where.
    pub(super) uniform: Vec<(Reg, Content, Reader)>,
    /// For each lane.
    definitions: Vec<Option<Definition>>,
    webs: Vec<Web>,
    numbers: FxHashMap<(Storage, Content), u32>,
    /// Webs with unvisited blocks.
    queue: VecDeque<u32>,
}

impl<'a> Trace<'a> {
    pub(super) fn new(checker: &'a Checker<'a>) -> Trace<'a> {
        let before = checker.before;
        let mut definitions = vec![None; checker.canonical.len()];
        for &block in &checker.cfg.order {
            let mut define = |value, phi| {
                for part in 0..before.value(value).width {
                    definitions[checker.lane(value, part) as usize] = Some(Definition { block, phi });
                }
            };
            for (i, phi) in before.block(block).phis.iter().enumerate() {
                define(phi.dst, Some(i as u32));
            }
            before.block(block).insts.iter().flat_map(|inst| inst.defs()).for_each(|v| define(v, None));
        }
        Trace {
            checker,
            effects: Effects::new(checker.after.blocks.len()),
            uniform: Vec::new(),
            definitions,
            webs: Vec::new(),
            numbers: FxHashMap::default(),
            queue: VecDeque::new(),
        }
    }

    /// Demands that a place holds a content at the start of a block.
    pub(super) fn demand(&mut self, place: Storage, content: Content, b: BlockId, reader: Reader) {
        let next = self.webs.len() as u32;
        let number = *self.numbers.entry((place, content)).or_insert(next);
        if number == next {
            let (starts, visited) = (Vec::new(), Visited::default());
            self.webs.push(Web { place, content, starts, visited, reader });
        }
        let web = &mut self.webs[number as usize];
        if web.visited.find(self.checker.cfg.place(b) as u32).is_err() && web.starts.last() != Some(&b) {
            if web.starts.is_empty() {
                self.queue.push_back(number);
            }
            web.starts.push(b);
        }
    }

    /// Traces all demands.
    pub(super) fn finish(mut self, checkpoint: &dyn Fn()) -> Result<(), String> {
        let edges = Edges::new(self.checker)?;
        let mut arguments = vec![None; self.checker.before.blocks.len()];
        let mut steps = 0;
        while let Some(number) = self.queue.pop_front() {
            let web = &mut self.webs[number as usize];
            let (place, content, reader) = (web.place, web.content, web.reader);
            let mut work = std::mem::take(&mut web.starts);
            if let Storage::Reg(reg) = place
                && self.checker.lent.has(reg)
            {
                return Err(self.checker.at(reader, &format!("{reg:?} does not last from block to block")));
            }
            while let Some(b) = work.pop() {
                steps += 1;
                if steps % STRIDE == 0 {
                    checkpoint();
                }
                if !self.webs[number as usize].visited.insert(self.checker.cfg.place(b) as u32) {
                    continue;
                }
                let traced = match self.definition(content) {
                    Some(Definition { block, phi: Some(phi) }) if block == b => {
                        self.through_phi(&edges, place, content, b, phi, &mut arguments, reader)
                    }
                    Some(Definition { block, phi: None }) if block == b => {
                        Err(format!("{place:?} should hold {content:?}, which {b:?} defines elsewhere"))
                    }
                    _ => self.through_edges(&edges, place, content, b, &mut work, reader),
                };
                traced.map_err(|what| self.checker.at(reader, &what))?;
            }
        }
        let lasting = self.webs.iter().filter_map(|web| match web.place {
            Storage::Reg(reg) if reg.file.is_uniform() => Some((reg, web.content, web.reader)),
            _ => None,
        });
        uniform::check(self.checker, &lasting.collect::<Vec<_>>(), &self.uniform)
    }

    fn definition(&self, content: Content) -> Option<Definition> {
        self.definitions[content.lane()? as usize]
    }

    /// Requires that the content reaches the block along every edge.
    fn through_edges(
        &mut self,
        edges: &Edges,
        place: Storage,
        content: Content,
        b: BlockId,
        work: &mut Vec<BlockId>,
        reader: Reader,
    ) -> Result<(), String> {
        if self.checker.cfg.place(b) == 0
            && !matches!((place, content), (Storage::Reg(r), Content::Fixed(f)) if r == f)
        {
            return Err(format!("{place:?} should hold {content:?} and is not written"));
        }
        for edge in edges.into(b) {
            match self.at_end(edge, place, content)? {
                Some((p, c)) if (p, c) == (place, content) => work.push(edge.from),
                Some((p, c)) => self.demand(p, c, edge.from, reader),
                None => {}
            }
        }
        Ok(())
    }

    /// Requires that along every edge into the block of a phi the content is the argument.
    #[expect(clippy::too_many_arguments, reason = "one demand")]
    fn through_phi(
        &mut self,
        edges: &Edges,
        place: Storage,
        content: Content,
        b: BlockId,
        phi: u32,
        arguments: &mut [Option<Src>],
        reader: Reader,
    ) -> Result<(), String> {
        let checker = self.checker;
        let phi = &checker.before.block(b).phis[phi as usize];
        let file = checker.before.value(phi.dst).file;
        let part = content.lane().unwrap_or_default() - checker.lane(phi.dst, 0);
        for (from, src) in &phi.args {
            arguments[from.index()] = Some(*src);
        }
        for edge in edges.into(b) {
            let argument =
                arguments[edge.from.index()].and_then(|src| checker.source_content(&src, part as u8));
            let wanted = match (argument, content) {
                // Any content is acceptable that such a place can hold.
                (Some(Content::Undef), _) if can_hold(place, content, file) => continue,
                (Some(argument), Content::Lane { not, .. }) => complement_if(argument, not),
                (Some(argument), Content::Bool { not, .. }) => {
                    complement_if(argument, not).and_then(Content::integer)
                }
                _ => None,
            };
            let Some(wanted) = wanted.filter(|wanted| *wanted != Content::Undef) else {
                return Err(format!("{place:?} should hold {content:?}, which {argument:?} cannot become"));
            };
            if let Some((p, c)) = self.at_end(edge, place, wanted)? {
                self.demand(p, c, edge.from, reader);
            }
        }
        for (from, _) in &phi.args {
            arguments[from.index()] = None;
        }
        Ok(())
    }

    /// A content that a place must hold at the end of an edge. If the preceding block does not compute it, returns the
    /// demand for the start of that block.
    fn at_end(
        &self,
        edge: &Edge,
        place: Storage,
        content: Content,
    ) -> Result<Option<(Storage, Content)>, String> {
        let mut wanted = (place, content);
        for b in edge.on.into_iter().chain([edge.from]) {
            wanted = match self.effects.find(b, wanted.0) {
                None => wanted,
                Some(Held::Known(content)) if content == wanted.1 => return Ok(None),
                Some(Held::Start(place, steps)) if let Some(content) = steps.before(wanted.1) => {
                    (place, content)
                }
                Some(held) => {
                    let (place, content) = wanted;
                    return Err(format!(
                        "{place:?} should hold {content:?} at the end of {b:?} but holds {held:?}"
                    ));
                }
            };
        }
        Ok(Some(wanted))
    }
}

fn complement_if(content: Content, not: bool) -> Option<Content> {
    if not { content.complement() } else { Some(content) }
}

/// Whether a place can hold a lane of a file, or the integer that represents it.
fn can_hold(place: Storage, content: Content, file: File) -> bool {
    match place {
        Storage::Word(_) => true,
        Storage::Reg(r) => r.file == file || (r.file == File::R && matches!(content, Content::Bool { .. })),
    }
}

/// An edge of the input, and the block that the output has on the edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    to: BlockId,
    from: BlockId,
    on: Option<BlockId>,
}

/// The edges, each once, by their targets.
struct Edges(Vec<Edge>);

impl Edges {
    fn new(checker: &Checker<'_>) -> Result<Edges, String> {
        let mut edges = Vec::new();
        for &from in &checker.cfg.order {
            for succ in checker.after.block(from).term.successors() {
                let (to, on) = checker.target(succ)?;
                edges.push(Edge { to, from, on });
            }
        }
        edges.sort_unstable();
        edges.dedup();
        Ok(Edges(edges))
    }

    fn into(&self, b: BlockId) -> impl Iterator<Item = &Edge> {
        let first = self.0.partition_point(|edge| edge.to < b);
        self.0[first..].iter().take_while(move |edge| edge.to == b)
    }
}
