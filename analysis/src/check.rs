//! The checks: one file for each, and one walk for all of them.
//!
//! The walk over an item (`crate::lower`) passes every resolved instruction to each of [`STATEMENT_CHECKS`], and the
//! whole body to each of [`BODY_CHECKS`] at the end. A check examines one aspect and adds its findings. It never fails
//! and never depends on another check. Its lint is declared beside it, and the page of the lint in `docs/lints` is its
//! test.

mod asynchronous;
mod brackets;
pub(crate) mod debug;
pub(crate) mod declarations;
pub(crate) mod directives;
mod divergence;
pub(crate) mod gates;
mod ignored;
pub(crate) mod immediates;
pub mod limits;
pub mod lints;
mod memory;
pub(crate) mod operands;
pub(crate) mod pragmas;
mod slow_forms;
mod spaces;
pub(crate) mod spelling;
pub(crate) mod suppressions;
pub(crate) mod textures;
pub(crate) mod types;
pub(crate) mod unassigned;
mod unreachable;
pub(crate) mod unused;
pub mod vectors;
pub(crate) mod video;
mod warp_sync;

pub use crate::externals::{IGNORED_EXTERN, SEPARATE_COMPILATION};
pub use gates::Gates;
pub use lints::{LINTS, lint, setting};
pub(crate) use operands::listed;
pub use operands::{bind, describe as describe_class};

use ptx_backend::input::{Function, Operand, RegId, Symbol};
use ptx_isa::{Expected, Form, Opcode, ScalarType, Signature, Space};
use rustc_hash::FxHashMap;
use text_size::{TextRange, TextSize};

use crate::db::{Db, Options};
use crate::diagnostic::{Findings, Severity};
use crate::flow::{Flow, Instr};
use crate::module::Header;
use crate::scope::RegisterName;
use crate::source_map::SourceMap;

/// The location and structure of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VariableFacts {
    pub space: Space,
    pub ty: ScalarType,
    pub is_array: bool,
    /// Bytes, a power of two.
    pub align: u32,
    /// The size in bytes; zero if it is not known.
    pub size: u64,
    /// The parameter or result that the variable hides.
    pub hides: Option<Hidden>,
}

/// A parameter or result with the same name as a `.param` variable of the body. ptxas identifies them by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hidden {
    Parameter,
    Result,
}

/// The context of an instruction for a check.
pub struct Context<'a> {
    pub header: &'a Header,
    pub gates: Gates,
    /// The variables mentioned so far.
    pub variables: &'a FxHashMap<Symbol, VariableFacts>,
    pub registers: &'a [RegisterName],
    /// The item's text.
    pub text: &'a str,
}

impl Context<'_> {
    pub fn register_type(&self, register: RegId) -> ScalarType {
        self.registers[register.0 as usize].ty
    }

    pub fn slice(&self, range: TextRange) -> &str {
        self.text.get(usize::from(range.start())..usize::from(range.end())).unwrap_or_default()
    }
}

/// An instruction with resolved name and operands.
pub struct Statement<'a> {
    pub range: TextRange,
    /// Mnemonic and suffixes.
    pub name: TextRange,
    /// The suffixes with their dots, as written.
    pub suffixes: &'a [TextRange],
    pub opcode: Opcode,
    pub form: &'static Form,
    /// Whether the version and the target of the module have the instruction.
    pub available: bool,
    /// `None` for an operand that is itself wrong and has been reported.
    pub operands: &'a [Option<Operand>],
    /// The ranges of the operands.
    pub ranges: &'a [TextRange],
    pub signature: &'a Signature,
    /// The rows of the signature for the written operands. `None` if their number is wrong.
    pub rows: Option<&'a [&'a Expected]>,
}

/// Lints that are off by default and take extra time: they run only if they are on. All other checks always run, so
/// that a changed level repeats no walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extras {
    unused: bool,
    varying_branches: bool,
    maybe_unassigned: bool,
}

#[salsa::tracked(returns(copy))]
pub(crate) fn extras(db: &dyn Db) -> Extras {
    let levels = Options::get(db).levels(db);
    let is_on = |lint| levels.level(lint) != Severity::Allow;
    Extras {
        unused: [&unused::UNUSED_LABEL, &unused::UNUSED_REGISTER, &unused::UNREAD_REGISTER]
            .into_iter()
            .any(is_on),
        varying_branches: is_on(&divergence::VARYING_BRANCH),
        maybe_unassigned: is_on(&unassigned::MAYBE_UNASSIGNED),
    }
}

/// A body whose statements have all been walked.
pub struct Body<'a> {
    pub map: &'a SourceMap,
    pub text: &'a str,
    pub function: &'a Function,
    /// The variables that the body mentions.
    pub variables: &'a FxHashMap<Symbol, VariableFacts>,
    extras: Extras,
    /// `None` if names or statements could not be read, because then an absent use proves nothing.
    flow: Option<Flow<'a>>,
}

impl<'a> Body<'a> {
    /// Without `flow`, checks cannot use the order of execution.
    pub(crate) fn new(
        function: &'a Function,
        flow: Option<Flow<'a>>,
        variables: &'a FxHashMap<Symbol, VariableFacts>,
        map: &'a SourceMap,
        text: &'a str,
        extras: Extras,
    ) -> Self {
        Self { map, text, function, variables, extras, flow }
    }

    /// The range of the mnemonic and the suffixes of an instruction; if the text is unusual, it includes the operands.
    pub fn name(&self, instr: Instr<'_>) -> Option<TextRange> {
        let statement = self.map.statement(instr.src)?;
        let text = &self.text[statement];
        let blank = |c: char| c.is_ascii_whitespace();
        let start = match text.strip_prefix('@') {
            // `@%p1 name`, `@!%p1 name`
            Some(guard) => {
                text.len() - guard.split_once(blank).map_or(guard, |(_, rest)| rest).trim_start().len()
            }
            None => 0,
        };
        let name = &text[start..];
        let end = start + name.find(|c: char| blank(c) || c == ';').unwrap_or(name.len());
        let range =
            TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32)) + statement.start();
        Some(if self.text[range].starts_with(instr.opcode.form.mnemonic()) { range } else { statement })
    }

    /// The control flow of the body; `None` if it is not known.
    pub fn flow(&self) -> Option<&Flow<'a>> {
        self.flow.as_ref()
    }
}

/// A check of one instruction. Its findings depend only on the shape of the instruction, and on the values of constants
/// that the signature limits. `passed` in `crate::lower` defines the shape.
pub type StatementCheck = fn(&Context<'_>, &Statement<'_>, &mut Findings);
pub type BodyCheck = fn(&Body<'_>, &mut Findings);

pub const STATEMENT_CHECKS: &[StatementCheck] = &[
    operands::check,
    types::check,
    immediates::check,
    vectors::check,
    spaces::check,
    textures::check,
    video::check,
    gates::check,
    warp_sync::check,
    slow_forms::check,
    ignored::check,
];

pub const BODY_CHECKS: &[BodyCheck] = &[
    unused::check,
    unreachable::check,
    unassigned::check,
    divergence::check,
    asynchronous::check,
    memory::check,
];
