//! Answers about PTX embedded in other languages. Outside of snippets this server gives no answer, because the servers
//! of those languages do.

use crate::convert;
use crate::handlers::{completion, explain, highlight, signature_help};
use crate::host::{Embedded, Inside};
use crate::owner::Snapshot;
use ptx_analysis::Database;
use ptx_analysis::ide::{self, ActionKind};
use text_size::TextRange;
use tower_lsp::lsp_types::{
    CodeAction, CodeActionOrCommand, CodeActionResponse, Command, CompletionResponse, Diagnostic,
    DocumentHighlight, GotoDefinitionResponse, Hover, Location, Position, Range, SemanticToken,
    SemanticTokens, SignatureHelp, TextEdit, Url,
};

/// The findings in all snippets, in the protocol's form.
pub fn publishable(db: &Database, embedded: &Embedded, uri: &Url) -> Vec<Diagnostic> {
    let found = embedded.findings(db);
    let range = |range| embedded.document.range(range);
    found.iter().filter_map(|d| convert::diagnostic(uri, d, range)).collect()
}

fn inside<'a>(embedded: &'a Embedded, position: Position) -> Option<Inside<'a>> {
    embedded.inside(embedded.document.offset(position))
}

/// Converts a range in the module of a snippet to the client's positions.
fn range(embedded: &Embedded, inside: &Inside<'_>, range: TextRange) -> Option<Range> {
    Some(embedded.document.range(inside.module.to_host(range)? + inside.start))
}

fn edit(embedded: &Embedded, inside: &Inside<'_>, edit: &ide::TextEdit) -> Option<TextEdit> {
    let edit = crate::embedded::edit_in_host(edit, inside.module)?;
    Some(TextEdit::new(embedded.document.range(edit.range + inside.start), edit.text))
}

pub fn hover(s: &Snapshot, e: &Embedded, position: Position) -> Option<Hover> {
    let inside = inside(e, position)?;
    let hover = super::hover::about(s, inside.file, inside.offset)?;
    let range = range(e, &inside, hover.range)?;
    let markdown = match inside.module.operand(&inside.module.text()[hover.range]) {
        // The declaration of the operand's register is not part of the text.
        Some((register, source)) => {
            let source = source.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("```ptx\n{register}\n```\noperand of the assembly\n```\n{source}\n```\n")
        }
        None => {
            let line = |at| e.document.range(TextRange::empty(at + inside.start)).start.line + 1;
            let markdown = inside.module.message(&hover.markdown);
            crate::embedded::with_host_lines(&markdown, inside.module, line)
        }
    };
    Some(super::hover::answer(markdown, range))
}

pub fn completions(
    s: &Snapshot,
    e: &Embedded,
    position: Position,
    takes_snippets: bool,
) -> Option<CompletionResponse> {
    let inside = inside(e, position)?;
    let all = ide::completions(&s.db, inside.file, inside.offset).into_iter().filter_map(|mut c| {
        if inside.module.is_around(c.label.trim_matches(['[', ']'])) {
            return None;
        }
        c.label = inside.module.message(&c.label);
        let edit = edit(e, &inside, &c.edit)?;
        Some((c, edit))
    });
    Some(completion::answer(all, takes_snippets))
}

pub fn signature(s: &Snapshot, e: &Embedded, position: Position) -> Option<SignatureHelp> {
    let inside = inside(e, position)?;
    signature_help::answer(ide::signature_help(&s.db, inside.file, inside.offset)?)
}

pub fn definition(s: &Snapshot, e: &Embedded, position: Position) -> Option<GotoDefinitionResponse> {
    let inside = inside(e, position)?;
    let target = ide::definition(&s.db, inside.file, inside.offset)?;
    let range = range(e, &inside, target.focus)?;
    Some(GotoDefinitionResponse::Scalar(Location::new(s.uri.clone(), range)))
}

pub fn highlights(s: &Snapshot, e: &Embedded, position: Position) -> Option<Vec<DocumentHighlight>> {
    let inside = inside(e, position)?;
    let found = ide::highlights(&s.db, inside.file, inside.offset)?;
    let uses = found.iter().filter_map(|r| Some(highlight::answer(range(e, &inside, r.range)?, r.access)));
    Some(uses.collect())
}

/// The fixes of a snippet, and commands that show the pages of its findings.
pub fn actions(s: &Snapshot, e: &Embedded, asked: Range) -> Option<CodeActionResponse> {
    let start = inside(e, asked.start)?;
    let end = inside(e, asked.end).filter(|end| end.start == start.start)?;
    let module_range = TextRange::new(start.offset.min(end.offset), start.offset.max(end.offset));
    let actions = ide::code_actions(&s.db, start.file, module_range).into_iter();
    let text = start.module.text();
    let is_wanted = |action: &ide::CodeAction| match action.kind {
        ActionKind::QuickFix | ActionKind::Source => true,
        // Lines belong to the code around the snippet.
        ActionKind::Rewrite => {
            action.edits.iter().all(|edit| !edit.text.contains('\n') && !text[edit.range].contains('\n'))
        }
        // A compiler may insert the assembly several times into a function, and names must not repeat.
        ActionKind::Extract | ActionKind::Inline => false,
    };
    let actions = actions.filter(is_wanted);
    let actions = actions.filter_map(|action| {
        let edits: Option<Vec<TextEdit>> =
            action.edits.iter().map(|change| edit(e, &start, change)).collect();
        let edits = edits?;
        let command = match action.command {
            Some(ide::Command::Explain { code }) => {
                let arguments = Some(vec![serde_json::json!(code)]);
                Some(Command::new(action.title.clone(), explain::COMMAND.into(), arguments))
            }
            _ if edits.is_empty() => return None,
            _ => None,
        };
        Some(CodeActionOrCommand::CodeAction(CodeAction {
            title: start.module.message(&action.title),
            kind: Some(super::code_action::kind(action.kind)),
            edit: (!edits.is_empty()).then(|| super::code_action::changes(s, edits)),
            command,
            is_preferred: action.fixes.map(|_| action.preferred),
            ..Default::default()
        }))
    });
    Some(actions.collect())
}

/// The tokens of all snippets, or of those in a range of the text. Tokens that extend over several string literals are
/// left out.
pub fn tokens(s: &Snapshot, e: &Embedded, asked: Option<Range>) -> SemanticTokens {
    let asked = asked.map(|range| e.document.text_range(range));
    let mut data = Vec::new();
    let mut last = Position::default();
    for (snippet, file) in e.all() {
        if asked.is_some_and(|asked| asked.intersect(snippet.range).is_none()) {
            continue;
        }
        for item in ide::item_tokens(&s.db, file, None) {
            for token in item.iter() {
                let Some(range) = snippet.document.to_host(token.range + item.start) else { continue };
                let range = e.document.range(range + snippet.range.start());
                let (start, end) = (range.start, range.end);
                let is_later = (start.line, start.character) >= (last.line, last.character);
                if start.line != end.line || start == end || !is_later {
                    continue;
                }
                let is_same_line = start.line == last.line;
                data.push(SemanticToken {
                    delta_line: start.line - last.line,
                    delta_start: start.character - if is_same_line { last.character } else { 0 },
                    length: end.character - start.character,
                    token_type: token.kind as u32,
                    token_modifiers_bitset: u32::from(token.declaration),
                });
                last = start;
            }
        }
    }
    SemanticTokens { result_id: None, data }
}
