//! The command `ptx.explain`: shows the page of a diagnostic, an instruction, or a word of machine code.
//!
//! Arguments: the code, name, mnemonic or word; and `true` if the client shows the page itself. The result is the page.

use crate::check::reference;
use ptx_analysis::ide;
use serde_json::Value;
use tower_lsp::jsonrpc::{Error, Result};

pub const COMMAND: &str = "ptx.explain";

/// The page, and whether the server shows it.
pub fn handle(arguments: &[Value]) -> Result<(String, bool)> {
    let Some(word) = arguments.first().and_then(Value::as_str) else {
        return Err(Error::invalid_params("expected a diagnostic code"));
    };
    let page = reference::page(word).ok_or_else(|| {
        let near =
            reference::nearest(word).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Error::invalid_params(format!("no page for `{word}`{near}"))
    })?;
    Ok((ide::unwrapped(&page), arguments.get(1) != Some(&Value::Bool(true))))
}
