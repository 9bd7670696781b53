//! `ptx/reference`: the machine code of a function from our compiler and from the user's reference compiler.
//!
//! Parameters: `{ textDocument, function }`. Result: `{ function, ours, theirs }`; `ours` and `theirs` are lines of
//! instructions, to be shown side by side. The answer is null if the reference compiler has not compiled the function.

use crate::owner::Snapshot;
use crate::reference::{self, Code, Function};
use ptx_analysis::LinkOptions;
use ptx_analysis::ide::{self, FunctionResources};
use serde_json::{Value, json};
use tower_lsp::lsp_types::TextDocumentIdentifier;

/// Parameters of `ptx/reference`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonParams {
    pub text_document: TextDocumentIdentifier,
    pub function: String,
}

pub fn handle(s: &Snapshot, params: &ComparisonParams) -> Option<Value> {
    let (_, functions) = s.reference.as_ref()?;
    let theirs = functions.iter().find(|function| function.name == params.function)?;
    let ours = ours(s, &params.function).map_or_else(|why| format!("// {why}\n"), |code| code.text);
    Some(json!({ "function": theirs.name, "ours": ours, "theirs": theirs.code.text }))
}

fn ours(s: &Snapshot, name: &str) -> Result<Code, String> {
    let linked = ptx_analysis::link(&s.db, s.file, &LinkOptions::default());
    let linked = linked.map_err(|errors| errors.first().map_or_else(String::new, |d| d.message.clone()))?;
    let code = reference::codes(&linked.cubin)?.into_iter().find(|(function, _)| function == name);
    code.map(|(_, code)| code).ok_or_else(|| format!("the compiled file contains no code for `{name}`"))
}

/// The title of a function's lens: the resources with the reference compiler, and ours if they differ.
pub fn title(s: &Snapshot, name: &str) -> Option<String> {
    let (version, functions) = s.reference.as_ref()?;
    let theirs = functions.iter().find(|function| function.name == name)?;
    let ours = ide::resources_of(&s.db, s.file, name)?;
    let view = ide::sass_view(&s.db, s.file, name, ide::SassStyle::BARE);
    let instructions = view.and_then(|view| view.figures).map(|figures| figures.instructions as usize);
    let when = if *version == s.version { "" } else { " (as saved)" };
    Some(format!("reference{when}: {}", compared(theirs, &ours, instructions)))
}

fn compared(theirs: &Function, ours: &FunctionResources, instructions: Option<usize>) -> String {
    let own = ours.resources.as_ref().ok();
    let count = |theirs: usize, unit: &str, ours: Option<usize>| match ours {
        Some(ours) if ours != theirs => format!("{theirs} {unit} (ours {ours})"),
        _ => format!("{theirs} {unit}"),
    };
    let registers = theirs
        .registers
        .map(|registers| count(registers as usize, "registers", own.map(|own| own.registers as usize)));
    let spills = own.map(|own| (own.spill_store_bytes + own.spill_load_bytes) as usize);
    let spilled = match theirs.spill_bytes {
        0 if spills.unwrap_or(0) == 0 => "no spills".to_owned(),
        bytes => count(bytes as usize, "bytes spilled", spills),
    };
    let code = count(theirs.code.instructions, "instructions", instructions.filter(|_| own.is_some()));
    registers.into_iter().chain([spilled, code]).collect::<Vec<_>>().join(", ")
}
