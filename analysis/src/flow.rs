//! What the order of execution says about a body: its control flow, who dominates whom, which registers are
//! written where, and what is known of their values.
//!
//! Everything here is made when a check first asks for it and dropped with the walk. Time is linear in the
//! statements or nearly so, memory is a few words for each statement and block; where an analysis could take
//! longer on odd graphs it has a budget of steps and says less when that is spent.

mod accesses;
mod dominators;
mod graph;

use std::cell::OnceCell;

use ptx_backend::input::{Function, Instr, Stmt};

use crate::lower::SourceMap;

pub use accesses::Accesses;
pub use dominators::Tree;
pub use graph::{BlockId, End, Graph};

/// What is known of one body. Every statement of it was understood.
pub struct Flow<'a> {
    function: &'a Function,
    map: &'a SourceMap,
    graph: OnceCell<Graph>,
    accesses: OnceCell<Accesses<'a>>,
    dominators: OnceCell<Tree>,
}

impl<'a> Flow<'a> {
    pub fn new(function: &'a Function, map: &'a SourceMap) -> Self {
        Self { function, map, graph: OnceCell::new(), accesses: OnceCell::new(), dominators: OnceCell::new() }
    }

    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::new(self.function))
    }

    pub fn accesses(&self) -> &Accesses<'a> {
        self.accesses.get_or_init(|| Accesses::new(self.map))
    }

    pub fn dominators(&self) -> &Tree {
        self.dominators.get_or_init(|| Tree::dominators(self.graph()))
    }

    /// The instructions of a block, labels left out.
    pub fn instructions(&self, block: BlockId) -> impl DoubleEndedIterator<Item = &'a Instr> + use<'a> {
        instructions(&self.function.body[self.graph().statements(block)])
    }
}

/// The instructions among statements.
pub fn instructions(statements: &[Stmt]) -> impl DoubleEndedIterator<Item = &Instr> {
    statements.iter().filter_map(|statement| match statement {
        Stmt::Instr(instr) => Some(instr),
        Stmt::Label(_) => None,
    })
}
