//! Editor features: file offsets in, plain data out.
//!
//! No protocol, column or terminal is used here. Each feature is a function of the database, the file and usually an
//! offset. It finds the item at the offset, works inside the item, and converts the answer to file offsets at the end.

mod actions;
mod calls;
mod completion;
mod counts;
mod descriptors;
mod fate;
mod fix_all;
mod folding;
mod format;
mod hover;
mod layout;
mod navigation;
mod operands;
mod portrait;
mod reasons;
mod refactor;
mod reference;
mod resources;
mod sass;
mod selection;
mod setting;
mod signature_help;
mod source;
mod stage;
mod symbols;
mod tokens;
mod truth;
mod words;

pub use crate::compile::{check_all, compile_diagnostics};
pub use crate::findings::{diagnostics, diagnostics_for};
pub use crate::locate::Target;
pub use crate::readable::readable;
pub use crate::source_map::Usage;
pub use actions::{code_actions, ignorable};
pub use calls::{CallNode, Calls, call_node, callees, callers};
pub use completion::{completion_documentation, completions};
pub use counts::{Referenced, referenced};
pub use fix_all::{Fixed, apply, fix_all, new_errors};
pub use folding::{folding_ranges, folds_of_items};
pub use format::{format, format_on_type, formatted};
pub use hover::hover;
pub use navigation::{
    declaration, definition, highlights, linked_ranges, prepare_rename, references, rename, type_definition,
};
pub use portrait::{Fragments, Instruction, MachineBlock, Portrait, portrait, portraits};
pub use reasons::{LoopCode, LoopPlace, PeakPlace, Reasons, SpilledPlace, reasons};
pub use reference::{Page, instruction_page, pages};
pub use resources::{
    FunctionResources, LiveRegisters, code_lenses, function_resources, inlay_hints, live_registers,
    resources_of, targets,
};
pub use sass::{control_in_words, sass_view, sass_view_at};
pub use selection::selection_ranges;
pub use signature_help::signature_help;
pub use source::{SourcePlace, file_links, source_place};
pub use stage::{Stage, stage_view, stage_view_at, stages};
pub use symbols::{document_symbols, outline};
pub use tokens::{ItemTokens, item_tokens, semantic_tokens};
pub use words::unwrapped;

pub use crate::diagnostic::{Applicability, Diagnostic, Fix, Related, Severity, TextEdit};

use std::sync::Arc;

use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::items::Item;
use crate::text::Text;

/// The text index of a file: lines and columns.
pub use crate::items::line_index;

/// Empties an unused file and frees the data derived from it. The file itself cannot be removed; it can
/// be reused for the next text.
pub fn clear_file(db: &mut Database, file: SourceFile) {
    db.set_text(file, "");
    db.set_compiles_all(file, false);
    // A result is freed when the next one replaces it, and the results of items when the file has none.
    diagnostics(db, file);
    line_index(db, file);
}

/// A part of an answer about all items of a file: values with ranges relative to their item.
#[derive(Clone, Debug)]
pub struct InItem<T> {
    pub text: Text,
    /// Where the item starts in the file.
    pub start: TextSize,
    pub values: Arc<[T]>,
}

impl<T: Eq> InItem<T> {
    fn new<'db>(db: &'db dyn Db, item: Item<'db>, values: &Arc<[T]>) -> Self {
        Self { text: item.contents(db).clone(), start: item.offset(db), values: values.clone() }
    }

    /// Whether texts and values are equal, at any position of the items.
    pub fn is_same(&self, other: &Self) -> bool {
        self.values == other.values && self.text == other.text
    }
}

/// Markdown about the word at `range`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hover {
    pub range: TextRange,
    pub markdown: String,
}

/// A use of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reference {
    pub range: TextRange,
    pub access: Usage,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolKind {
    Entry,
    Function,
    Prototype,
    Variable,
    Constant,
    Parameter,
    Register,
    Label,
    Directive,
}

/// An outline entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentSymbol {
    /// The demangled name for C++; otherwise the name in the file.
    pub name: String,
    /// Details, including the name in the file if it differs.
    pub detail: String,
    pub kind: SymbolKind,
    pub full: TextRange,
    pub focus: TextRange,
    pub children: Vec<DocumentSymbol>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TokenKind {
    Comment,
    Directive,
    Mnemonic,
    Modifier,
    Type,
    Register,
    Predicate,
    SpecialRegister,
    Variable,
    Parameter,
    Function,
    Label,
    Number,
    String,
}

impl TokenKind {
    pub const ALL: &'static [TokenKind] = &[
        Self::Comment,
        Self::Directive,
        Self::Mnemonic,
        Self::Modifier,
        Self::Type,
        Self::Register,
        Self::Predicate,
        Self::SpecialRegister,
        Self::Variable,
        Self::Parameter,
        Self::Function,
        Self::Label,
        Self::Number,
        Self::String,
    ];
}

/// A colored token. It never crosses a line, unless it is a block comment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SemanticToken {
    pub range: TextRange,
    pub kind: TokenKind,
    pub declaration: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoldKind {
    Comment,
    /// A function, a block or an initializer.
    Region,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    pub range: TextRange,
    pub kind: FoldKind,
}

/// Whether the text about a function has machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    Compiled,
    /// This text has not been compiled. An earlier version may have been.
    Later,
    /// The compiler does not support it.
    Never,
}

/// Text shown after `offset`, not part of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InlayHint {
    pub function: String,
    pub standing: Standing,
    pub offset: TextSize,
    pub label: String,
    pub tooltip: String,
}

/// A line of text above a function, with the command that a click runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lens {
    pub function: String,
    pub standing: Standing,
    pub range: TextRange,
    pub title: String,
    pub command: Option<Command>,
}

/// A command that the client can send to the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Open the machine code of this function.
    ShowSass { function: String },
    /// Open the documentation of this lint.
    Explain { code: &'static str },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActionKind {
    QuickFix,
    Rewrite,
    Inline,
    Extract,
    Source,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeAction {
    pub title: String,
    pub kind: ActionKind,
    pub edits: Vec<TextEdit>,
    pub command: Option<Command>,
    /// The code of the diagnostic that this action resolves.
    pub fixes: Option<&'static str>,
    /// The action is certainly what was meant.
    pub preferred: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CompletionKind {
    Mnemonic,
    Modifier,
    Type,
    Register,
    SpecialRegister,
    Variable,
    Parameter,
    Function,
    Label,
    Directive,
    Target,
    Snippet,
}

impl CompletionKind {
    pub const ALL: &'static [CompletionKind] = &[
        Self::Mnemonic,
        Self::Modifier,
        Self::Type,
        Self::Register,
        Self::SpecialRegister,
        Self::Variable,
        Self::Parameter,
        Self::Function,
        Self::Label,
        Self::Directive,
        Self::Target,
        Self::Snippet,
    ];
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    pub label: String,
    pub kind: CompletionKind,
    /// One line beside the label.
    pub detail: String,
    /// The range to replace and the new text; for a snippet, in the snippet syntax of the protocol.
    pub edit: TextEdit,
    /// Whether the version and the target of the file have it.
    pub is_available: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignatureHelp {
    pub label: String,
    /// Markdown.
    pub documentation: String,
    /// Byte ranges of the operands in `label`.
    pub parameters: Vec<std::ops::Range<u32>>,
    pub active: Option<u32>,
}

/// How the control words of machine code are shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Controls {
    /// In a narrow column, as codes.
    #[default]
    Codes,
    /// In words after the instruction.
    Words,
    Hidden,
}

/// The style of a machine code listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SassStyle {
    pub controls: Controls,
    /// Show a column with the number of live registers before each instruction.
    pub live: bool,
    /// Show addresses. Without addresses, branches refer to labels, and padding is omitted.
    pub addresses: bool,
}

impl Default for SassStyle {
    fn default() -> Self {
        Self { controls: Controls::Codes, live: true, addresses: true }
    }
}

impl SassStyle {
    /// For comparisons: only the instructions.
    pub const BARE: Self = Self { controls: Controls::Hidden, live: false, addresses: false };

    fn legend(self) -> Option<&'static str> {
        match (self.controls, self.live) {
            (Controls::Codes, true) => Some(
                "// B: scoreboards waited on; R, W: scoreboards set; Y: yield; S: stall cycles; live: live registers",
            ),
            (Controls::Codes, false) => {
                Some("// B: scoreboards waited on; R, W: scoreboards set; Y: yield; S: stall cycles")
            }
            (Controls::Words, _) => Some("// SB: scoreboard; cycles: until the next instruction of the warp"),
            (Controls::Hidden, _) => None,
        }
    }
}

/// A function's machine code as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SassView {
    pub function: String,
    pub text: Arc<str>,
    /// For each line of `text`, the statement to which it belongs.
    pub lines: Box<[Option<TextRange>]>,
    /// For each line with an instruction, the cost of the instruction.
    pub heat: Box<[Option<Heat>]>,
    /// Whether the text is code; otherwise it is the reason why there is none.
    pub has_code: bool,
    /// Only if there is code.
    pub figures: Option<Figures>,
}

/// The cost of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heat {
    /// The number of live registers before it.
    pub live: u16,
    /// Cycles until the next instruction of the warp.
    pub stall: u8,
}

/// The figures by which two compilations of a function are compared.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Figures {
    pub registers: u32,
    /// The number of instructions without padding.
    pub instructions: u32,
    /// The number of bytes that spills store and load.
    pub spilled: u32,
    pub stack: u32,
    pub shared: u32,
    /// Occupancy of kernels in percent.
    pub occupancy: Option<u32>,
}

impl Figures {
    /// The differences from `before`: `+2 registers, −14 instructions`.
    pub fn difference(&self, before: &Self) -> String {
        let signed = |after: u32, before: u32, one: &str, many: &str| {
            let by = i64::from(after) - i64::from(before);
            let sign = if by < 0 { '−' } else { '+' };
            let noun = if by.abs() == 1 { one } else { many };
            (by != 0).then(|| format!("{sign}{} {noun}", by.abs()))
        };
        let occupancy = match (before.occupancy, self.occupancy) {
            (Some(old), Some(new)) if old != new => Some(format!("occupancy {old}% → {new}%")),
            _ => None,
        };
        let parts = [
            signed(self.registers, before.registers, "register", "registers"),
            signed(self.instructions, before.instructions, "instruction", "instructions"),
            signed(self.spilled, before.spilled, "byte spilled", "bytes spilled"),
            signed(self.stack, before.stack, "byte of stack", "bytes of stack"),
            signed(self.shared, before.shared, "byte of shared memory", "bytes of shared memory"),
            occupancy,
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => "no difference in registers, instructions or occupancy".to_owned(),
            false => parts.join(", "),
        }
    }
}
