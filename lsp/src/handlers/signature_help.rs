//! `textDocument/signatureHelp`: the operands of the instruction being typed.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{
    Documentation, MarkupContent, MarkupKind, ParameterInformation, ParameterLabel, Position, SignatureHelp,
    SignatureInformation,
};

pub fn handle(s: &Snapshot, position: Position) -> Option<SignatureHelp> {
    if let Some(embedded) = &s.embedded {
        return embedded::signature(s, embedded, position);
    }
    answer(ide::signature_help(&s.db, s.file, s.lines().offset(position))?)
}

pub(super) fn answer(help: ide::SignatureHelp) -> Option<SignatureHelp> {
    // Labels are ASCII, so their byte offsets equal the protocol's UTF-16 offsets.
    let parameters = help
        .parameters
        .iter()
        .map(|p| ParameterInformation {
            label: ParameterLabel::LabelOffsets([p.start, p.end]),
            documentation: None,
        })
        .collect();
    let markup = MarkupContent { kind: MarkupKind::Markdown, value: help.documentation };
    Some(SignatureHelp {
        signatures: vec![SignatureInformation {
            label: help.label,
            documentation: (!markup.value.is_empty()).then_some(Documentation::MarkupContent(markup)),
            parameters: Some(parameters),
            active_parameter: help.active,
        }],
        active_signature: Some(0),
        active_parameter: help.active,
    })
}
