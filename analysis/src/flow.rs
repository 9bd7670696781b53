//! Control-flow and data-flow facts about a body: its control flow, dominators, the registers that are written where,
//! and known values.
//!
//! The walk records which instructions a body contains. All other facts are computed when a check first asks for them,
//! and dropped after the walk. The time is linear or almost linear in the number of statements, and the memory is a few
//! words for each statement and block. An analysis that could take longer on unusual graphs has a budget of steps, and
//! returns less information when it is used up.

mod accesses;
mod code;
mod dominators;
mod graph;
mod order;
mod regions;
mod survey;
mod uniformity;
mod values;

use std::cell::{OnceCell, RefCell};

use ptx_backend::input::{Address, AddressBase, Function, Guard, Operand, RegId, SrcId, Symbol};
use rustc_hash::FxHashMap;
use text_size::TextRange;

use crate::source_map::{Occurrence, SourceMap};

pub use accesses::{Accesses, RegisterAccess};
pub use code::{Code, Instr};
pub use dominators::Tree;
pub use graph::{BlockId, End, Graph};
pub use order::{Order, Site};
pub use regions::Split;
pub use survey::{Survey, is_notable};
pub use uniformity::Uniformity;
pub use values::Value;

use values::Values;

/// The facts about one body, all of whose statements are valid.
pub struct Flow<'a> {
    function: &'a Function,
    code: &'a Code,
    map: &'a SourceMap,
    survey: &'a Survey,
    graph: OnceCell<Graph>,
    dominators: OnceCell<Tree>,
    post_dominators: OnceCell<Tree>,
    values: OnceCell<RefCell<Values<'a>>>,
    splits: OnceCell<FxHashMap<BlockId, Split>>,
    uniformity: OnceCell<Uniformity>,
}

impl<'a> Flow<'a> {
    /// `code` is the body of `function`, and `survey` describes it.
    pub fn new(function: &'a Function, code: &'a Code, survey: &'a Survey, map: &'a SourceMap) -> Self {
        Self {
            function,
            code,
            map,
            survey,
            graph: OnceCell::new(),
            dominators: OnceCell::new(),
            post_dominators: OnceCell::new(),
            values: OnceCell::new(),
            splits: OnceCell::new(),
            uniformity: OnceCell::new(),
        }
    }

    /// The survey of the body: a check of rare instructions asks it first.
    pub fn survey(&self) -> &'a Survey {
        self.survey
    }

    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::new(self.function, self.code, self.survey()))
    }

    pub fn accesses(&self) -> &'a Accesses {
        self.survey.accesses()
    }

    /// The names in a statement, in text order.
    pub fn names(&self, src: SrcId) -> &'a [Occurrence] {
        let Some(statement) = self.map.statement(src) else { return &[] };
        let before = |end| self.map.occurrences.partition_point(|name| name.range.start() < end);
        &self.map.occurrences[before(statement.start())..before(statement.end())]
    }

    /// The range of a register in a statement.
    pub fn place(&self, src: SrcId, access: &RegisterAccess) -> Option<TextRange> {
        self.names(src).get(access.index).map(|name| name.range)
    }

    pub fn dominators(&self) -> &Tree {
        self.dominators.get_or_init(|| Tree::dominators(self.graph()))
    }

    /// Whether every path to a reachable block passes `above`. All paths start in the first block, so most queries need
    /// no tree.
    pub fn dominates(&self, above: BlockId, block: BlockId) -> bool {
        above == 0 || self.dominators().dominates(above, block)
    }

    pub fn post_dominators(&self) -> &Tree {
        self.post_dominators.get_or_init(|| Tree::post_dominators(self.graph()))
    }

    fn values(&self) -> &RefCell<Values<'a>> {
        self.values.get_or_init(|| RefCell::new(Values::new(self.function, self.code, self.survey)))
    }

    /// The known value of an operand.
    pub fn value(&self, operand: &Operand) -> Value {
        self.values().borrow_mut().operand(operand)
    }

    /// The known value of a register.
    pub fn register(&self, register: RegId) -> Value {
        self.value(&Operand::Reg(register))
    }

    /// Whether a register has a single, unguarded write, so that it has one value unless a loop repeats the write.
    pub fn is_written_once(&self, register: RegId) -> bool {
        self.values().borrow().is_written_once(register)
    }

    /// The variable that contains an address, and the offset in the variable if it is known.
    pub fn address(&self, address: &Address) -> Option<(Symbol, Option<i64>)> {
        match address.base {
            AddressBase::Symbol(symbol) => Some((symbol, Some(address.offset))),
            AddressBase::Reg(register) => match self.register(register) {
                Value::Address(symbol, offset) => {
                    Some((symbol, offset.map(|offset| offset.wrapping_add(address.offset))))
                }
                _ => None,
            },
            AddressBase::Absolute => None,
        }
    }

    /// The lanes that reach a block, if not all lanes that enter the function do.
    pub fn split(&self, block: BlockId) -> Option<Split> {
        self.splits.get_or_init(|| regions::splits(self, &self.function.launch)).get(&block).copied()
    }

    /// Which registers and paths may differ between threads of a warp.
    pub fn uniformity(&self) -> &Uniformity {
        self.uniformity.get_or_init(|| Uniformity::new(self))
    }

    /// The guard of the branch at the end of a block with two successors.
    pub fn branch_guard(&self, block: BlockId) -> Option<Guard> {
        match self.graph().successors(block) {
            [taken, passed] if taken != passed => self.instructions(block).next_back()?.guard,
            _ => None,
        }
    }

    /// The instructions of a block, labels left out.
    pub fn instructions(
        &self,
        block: BlockId,
    ) -> impl DoubleEndedIterator<Item = Instr<'a>> + Clone + use<'a> {
        self.code.instructions(self.graph().statements(block))
    }

    /// All statements.
    pub fn code(&self) -> &'a Code {
        self.code
    }

    /// The ordinals of the instructions of a block.
    pub fn ordinals(&self, block: BlockId) -> impl Iterator<Item = SrcId> + use<> {
        let instructions = self.instructions(block);
        let first = instructions.clone().next().map_or(0, |instr| instr.src.0);
        let end = instructions.clone().next_back().map_or(0, |instr| instr.src.0 + 1);
        (first..end).map(SrcId)
    }

    /// The instructions of a block that are [notable](is_notable).
    pub fn landmarks(&self, block: BlockId) -> impl Iterator<Item = Instr<'a>> {
        let (code, landmarks) = (self.code, self.survey().landmarks());
        let statements = self.graph().statements(block);
        let before = |end: usize| landmarks.partition_point(|&index| (index as usize) < end);
        landmarks[before(statements.start)..before(statements.end)]
            .iter()
            .filter_map(|&index| code.instruction_at(index as usize))
    }

    /// An instruction by its ordinal.
    pub fn instruction(&self, src: SrcId) -> Option<Instr<'a>> {
        self.survey.find(self.code, src)
    }
}
