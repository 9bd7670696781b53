//! Checks: one file each, one walk for all.
//!
//! The walk over an item (`crate::lower`) hands every instruction to each of [`STATEMENT_CHECKS`] once it is
//! resolved, and the whole body to each of [`BODY_CHECKS`] at the end. A check looks at one thing and pushes
//! what it finds; it never fails and never depends on another check. Its lint is declared beside it, and the
//! page of the lint in `docs/lints` is its test.

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

/// Where a variable lies and what it consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VariableFacts {
    pub space: Space,
    pub ty: ScalarType,
    pub is_array: bool,
    /// Bytes, a power of two.
    pub align: u32,
    /// Bytes in all; zero where that is not known.
    pub size: u64,
    /// The parameter or result of the same name.
    pub hides: Option<Hidden>,
}

/// A parameter or result that a `.param` variable of the body hides. ptxas identifies them by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hidden {
    Parameter,
    Result,
}

/// What an instruction check may look at besides the instruction.
pub struct Context<'a> {
    pub header: &'a Header,
    pub gates: Gates,
    /// What the variables mentioned so far are.
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

/// An instruction whose name and operands are known.
pub struct Statement<'a> {
    pub range: TextRange,
    /// Mnemonic and suffixes.
    pub name: TextRange,
    /// The suffixes with their dots, as written.
    pub suffixes: &'a [TextRange],
    pub opcode: Opcode,
    pub form: &'static Form,
    /// The version and the target have the instruction.
    pub available: bool,
    /// `None` where the operand is wrong in itself and was reported.
    pub operands: &'a [Option<Operand>],
    /// Parallel to `operands`.
    pub ranges: &'a [TextRange],
    pub signature: &'a Signature,
    /// Those of the signature that are written, parallel to `operands`. `None` when their number is wrong.
    pub rows: Option<&'a [&'a Expected]>,
}

/// Lints that are off by default and take time of their own: they run only where they are on. The other checks run
/// whatever their levels are, so that changing those repeats no walk.
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

/// A body whose statements were all walked.
pub struct Body<'a> {
    pub map: &'a SourceMap,
    pub text: &'a str,
    pub function: &'a Function,
    /// What the variables that it mentions are.
    pub variables: &'a FxHashMap<Symbol, VariableFacts>,
    extras: Extras,
    /// `None` when names or statements could not be read, so that absence of a use proves nothing.
    flow: Option<Flow<'a>>,
}

impl<'a> Body<'a> {
    /// Without `flow` nothing is said of the order of execution.
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

    /// The mnemonic and the suffixes of an instruction; with its operands where the text is unusual.
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

    /// What the order of execution says; `None` where that is not known.
    pub fn flow(&self) -> Option<&Flow<'a>> {
        self.flow.as_ref()
    }
}

/// Whether it finds anything depends on the shape of the instruction alone, and on the values of its constants where
/// the signature limits them: `crate::lower`'s `passed` says what that is.
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
