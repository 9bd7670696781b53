//! Editor features: file offsets in, plain data out.
//!
//! Nothing here knows a protocol, a column or a terminal. Each feature is a function of the database, the file
//! and usually an offset; it finds the item at the offset, works inside the item, and moves the answer into the
//! file at the end.

mod actions;
mod calls;
mod completion;
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
mod reference;
mod resources;
mod sass;
mod selection;
mod signature_help;
mod source;
mod symbols;
mod tokens;
mod words;

pub use crate::compile::{check_all, compile_diagnostics};
pub use crate::findings::{diagnostics, diagnostics_for};
pub use crate::locate::Target;
pub use crate::readable::readable;
pub use crate::source_map::Usage;
pub use actions::{code_actions, ignorable};
pub use calls::{CallNode, Calls, call_node, callees, callers};
pub use completion::{completion_documentation, completions};
pub use fix_all::{Fixed, apply, fix_all, new_errors};
pub use folding::folding_ranges;
pub use format::{format, format_on_type, formatted};
pub use hover::hover;
pub use navigation::{
    declaration, definition, highlights, linked_ranges, prepare_rename, references, rename, type_definition,
};
pub use portrait::{Fragments, Instruction, MachineBlock, Portrait, portrait, portraits};
pub use reference::{Page, instruction_page, pages};
pub use resources::{
    FunctionResources, code_lenses, function_resources, inlay_hints, live_register_hints, resources_of,
    targets,
};
pub use sass::{sass_view, sass_view_at};
pub use selection::selection_ranges;
pub use signature_help::signature_help;
pub use source::{SourcePlace, file_links, source_place};
pub use symbols::{document_symbols, outline};
pub use tokens::{ItemTokens, item_tokens, semantic_tokens};

pub use crate::diagnostic::{Applicability, Diagnostic, Fix, Related, Severity, TextEdit};

use std::sync::Arc;

use text_size::{TextRange, TextSize};

use crate::db::{Database, SourceFile};

/// The text index of a file: lines and columns.
pub use crate::items::line_index;

/// Empties a file that is no longer used and frees what was derived from it. The file itself can't be taken
/// back; it can have the text of the next one.
pub fn clear_file(db: &mut Database, file: SourceFile) {
    db.set_text(file, "");
    db.set_compiles_all(file, false);
    // A result is freed when the next one takes its place, and those of an item when its file has none.
    diagnostics(db, file);
    line_index(db, file);
}

/// Markdown about the thing at `range`.
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
    /// As the source of a C++ compiler's output has it.
    pub name: String,
    /// With the name in the file, if it is another one.
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

/// A coloured token. Never crosses a line unless a block comment does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SemanticToken {
    pub range: TextRange,
    pub kind: TokenKind,
    pub declaration: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoldKind {
    Comment,
    /// A function, a block, an initialiser.
    Region,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    pub range: TextRange,
    pub kind: FoldKind,
}

/// Whether there is code that a text about a function is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    Compiled,
    /// Not of this text, but perhaps of an earlier one.
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

/// A line of text above a function, and what clicking it does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lens {
    pub function: String,
    pub standing: Standing,
    pub range: TextRange,
    pub title: String,
    pub command: Option<Command>,
}

/// Something the client can ask the server to do.
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
    Source,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeAction {
    pub title: String,
    pub kind: ActionKind,
    pub edits: Vec<TextEdit>,
    pub command: Option<Command>,
    /// The code of the diagnostic that this resolves.
    pub fixes: Option<&'static str>,
    /// What was meant is not in doubt.
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
    /// What to replace, and by what; for a snippet in the snippet syntax of the protocol.
    pub edit: TextEdit,
    /// The version and the target of the file have it.
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

/// How machine code shows its control words.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Controls {
    /// A narrow column, as the assembler writes them.
    #[default]
    Codes,
    /// Behind the instruction.
    Words,
    Hidden,
}

/// How machine code is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SassStyle {
    pub controls: Controls,
    /// A column with the registers live before each instruction.
    pub live: bool,
    /// Addresses; else branches lead to labels, and padding is left out.
    pub addresses: bool,
}

impl Default for SassStyle {
    fn default() -> Self {
        Self { controls: Controls::Codes, live: true, addresses: true }
    }
}

impl SassStyle {
    /// For comparisons: only what the instructions do.
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
    /// For each line of `text`, the statement it comes from.
    pub lines: Box<[Option<TextRange>]>,
    /// For each line that is an instruction, what it costs.
    pub heat: Box<[Option<Heat>]>,
    /// Where there is code.
    pub figures: Option<Figures>,
}

/// What makes an instruction expensive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heat {
    /// Registers live before it.
    pub live: u16,
    /// Cycles until the next instruction of the warp.
    pub stall: u8,
}

/// What two compilations of a function are compared by.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Figures {
    pub registers: u32,
    /// Without padding.
    pub instructions: u32,
    /// Bytes stored and loaded.
    pub spilled: u32,
    pub stack: u32,
    pub shared: u32,
    /// Percent, of kernels.
    pub occupancy: Option<u32>,
}

impl Figures {
    /// What is more or less than before: `+2 registers, −14 instructions`.
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
