//! What has passed the checks, so that the like of it is not looked at again.
//!
//! It makes answers quick and changes none: whether something passes is a function of what it is remembered by, and of
//! what [`passed`] reads.

use std::sync::{Arc, Mutex, PoisonError};

use ptx_backend::input::Variable;
use ptx_isa::{Opcode, ScalarType};
use ptx_syntax::StatementParser;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::plain::Buffers;
use crate::db::{Db, SourceFile};
use crate::declaration::Shape;
use crate::ide::Access;
use crate::module::{effective_target, header};

#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) shapes: Shapes,
    /// Types that `.reg` has passed with: `b32`.
    pub(super) registers: FxHashMap<Box<str>, ScalarType>,
    /// Declarations of variables, by their text without the name.
    pub(super) variables: FxHashMap<Box<[u8]>, (Shape, Variable)>,
    /// Lines with pragmas, behind whether they stood in a kernel.
    pub(super) pragmas: FxHashSet<Box<[u8]>>,
    pub(super) parser: StatementParser,
    pub(super) buffers: Buffers,
}

/// What has passed in a module; one memory for each thread that walks.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed(Arc<Mutex<Vec<Memory>>>);

impl PartialEq for Passed {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Passed {}

impl Passed {
    pub(super) fn take(&self) -> Memory {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Gives back a memory, which is forgotten where years of edits have made it large.
    pub(super) fn give_back(&self, memory: Memory) {
        /// Some tens of megabytes; the largest programs have ten thousand.
        const MOST_POINTS: usize = 1 << 19;
        if memory.shapes.nodes.len() > MOST_POINTS {
            return;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }
}

/// The memory for a file, as long as its version, target and options are the same.
#[salsa::tracked]
pub(super) fn passed(db: &dyn Db, file: SourceFile) -> Passed {
    let _: (&_, _) = (header(db, file), effective_target(db, file));
    Passed::default()
}

/// The [shapes](super::shape) of instructions as a tree: by dotted name, then by what follows, one code after the other.
/// Reading an instruction goes down the tree, so that nothing has to be put together and looked up when it ends.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    mnemonics: FxHashMap<Box<str>, Mnemonic>,
    nodes: Vec<Node>,
    /// All steps.
    steps: FxHashMap<(Point, u64), Point>,
    known: Vec<Known>,
}

/// A dotted name that the instruction table has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mnemonic {
    pub(super) is_call: bool,
    /// The checks look at its constants, so that they are part of the shape.
    pub(super) limits_constants: bool,
    /// Before its operands.
    pub(super) start: Point,
}

/// A point in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Point(u32);

#[derive(Debug)]
struct Node {
    /// The step that was taken last from here, which is mostly the next one too. None has the code zero.
    code: u64,
    next: Point,
    /// Index of what is known of instructions that end here.
    known: u32,
}

const UNKNOWN: u32 = u32::MAX;

/// What is the same for all instructions of a shape that passes.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) opcode: Opcode,
    /// By name in the instruction.
    pub(super) accesses: SmallVec<[Access; 8]>,
    /// One of the names is that of a variable or a function.
    pub(super) has_symbols: bool,
}

impl Shapes {
    pub(super) fn mnemonic(&self, name: &str) -> Option<Mnemonic> {
        self.mnemonics.get(name).copied()
    }

    pub(super) fn add(&mut self, name: &str, limits_constants: bool) -> Mnemonic {
        let start = self.node();
        let is_call = name.split('.').next() == Some("call");
        let mnemonic = Mnemonic { is_call, limits_constants, start };
        self.mnemonics.insert(name.into(), mnemonic);
        mnemonic
    }

    fn node(&mut self) -> Point {
        self.nodes.push(Node { code: 0, next: Point::default(), known: UNKNOWN });
        Point(self.nodes.len() as u32 - 1)
    }

    /// The point behind a code, which is not zero.
    #[inline(always)]
    pub(super) fn step(&mut self, from: Point, code: u64) -> Point {
        let node = &self.nodes[from.0 as usize];
        if node.code == code { node.next } else { self.turn(from, code) }
    }

    fn turn(&mut self, from: Point, code: u64) -> Point {
        let next = match self.steps.get(&(from, code)) {
            Some(&next) => next,
            None => {
                let next = self.node();
                self.steps.insert((from, code), next);
                next
            }
        };
        let node = &mut self.nodes[from.0 as usize];
        (node.code, node.next) = (code, next);
        next
    }

    /// What is known of the instructions that end at a point.
    #[inline]
    pub(super) fn known(&self, point: Point) -> Option<&Known> {
        self.known.get(self.nodes[point.0 as usize].known as usize)
    }

    pub(super) fn remember(&mut self, point: Point, known: Known) {
        self.nodes[point.0 as usize].known = self.known.len() as u32;
        self.known.push(known);
    }
}
