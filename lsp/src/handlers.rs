//! One file per request: a snapshot and the parameters in, the protocol's answer out.

pub mod call_hierarchy;
pub mod code_action;
pub mod code_lens;
pub mod completion;
pub mod definition;
pub mod diagnostic;
pub mod document_symbol;
pub mod embedded;
pub mod explain;
pub mod folding_range;
pub mod formatting;
pub mod highlight;
pub mod hover;
pub mod inlay_hint;
pub mod linked_editing_range;
pub mod reference;
pub mod references;
pub mod rename;
pub mod sass_view;
pub mod selection_range;
pub mod semantic_tokens;
pub mod signature_help;
pub mod source;
pub mod workspace_symbol;
