//! `ptx/sassView`: a function's machine code as a document, each line with the PTX it comes from.
//!
//! Parameters: `{ textDocument, function }` or `{ textDocument, position }`, and optionally `controls` (`codes`,
//! `words` or `hidden`), `live` (whether the text has a column of live registers) and `stage` (a stage of the compiler,
//! whose result is shown instead of the machine code). Result:
//! `{ function, text, lines, heat, hasCode }`; `lines[i]` is the PTX range of line `i` or null, and `heat[i]` is its
//! number of live registers and its stall cycles, or null. If a function has no machine code, the text says why. The
//! answer is null outside of a function. `ptx/stages` lists the stages: `{ name, about }`.

use crate::document::Document;
use crate::owner::Snapshot;
use ptx_analysis::ide::{self, Controls, SassStyle, SassView};
use ptx_analysis::{Database, SourceFile};
use serde_json::{Value, json};
use tower_lsp::lsp_types::{Position, Range, TextDocumentIdentifier};

/// A function of a document, given by its name or by a position inside it.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    pub text_document: TextDocumentIdentifier,
    #[serde(default)]
    pub position: Option<Position>,
    #[serde(default)]
    pub function: Option<String>,
}

impl Place {
    /// The function's machine code.
    pub fn view(&self, s: &Snapshot, style: SassStyle) -> Option<SassView> {
        match (&self.function, self.position) {
            (Some(name), _) => ide::sass_view(&s.db, s.file, name, style),
            (None, Some(position)) => ide::sass_view_at(&s.db, s.file, s.lines().offset(position), style),
            (None, None) => None,
        }
    }

    /// The function's name.
    pub fn name(&self, s: &Snapshot) -> Option<String> {
        match &self.function {
            Some(name) => Some(name.clone()),
            None => self.view(s, SassStyle::BARE).map(|view| view.function),
        }
    }
}

/// Parameters of `ptx/sassView`.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct SassViewParams {
    #[serde(flatten)]
    pub place: Place,
    #[serde(default)]
    pub controls: ShownControls,
    #[serde(default)]
    pub live: Option<bool>,
    #[serde(default)]
    pub stage: Option<String>,
}

/// The protocol's form of [`Controls`].
#[derive(Clone, Copy, Default, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShownControls {
    #[default]
    Codes,
    Words,
    Hidden,
}

/// Result of `ptx/sassView`.
pub type SassViewResult = Value;

/// # Errors
/// No stage has that name.
pub fn handle(s: &Snapshot, params: &SassViewParams) -> Result<Option<SassViewResult>, String> {
    if let Some(stage) = &params.stage {
        let view = match (&params.place.function, params.place.position) {
            (Some(name), _) => ide::stage_view(&s.db, s.file, name, stage)?,
            (None, Some(position)) => ide::stage_view_at(&s.db, s.file, s.lines().offset(position), stage)?,
            (None, None) => None,
        };
        return Ok(view.map(|view| object(&view, s.lines())));
    }
    let controls = match params.controls {
        ShownControls::Codes => Controls::Codes,
        ShownControls::Words => Controls::Words,
        ShownControls::Hidden => Controls::Hidden,
    };
    let style = SassStyle { controls, live: params.live.unwrap_or(true), addresses: true };
    Ok(params.place.view(s, style).map(|view| object(&view, s.lines())))
}

/// The answer to `ptx/stages`.
pub fn stages() -> Value {
    ide::stages().iter().map(|stage| json!({ "name": stage.name, "about": stage.about })).collect()
}

/// The JSON object of a view. `lines` is the document of the view's ranges.
pub fn object(view: &SassView, lines: &Document) -> Value {
    let map: Vec<Option<Range>> = view.lines.iter().map(|range| range.map(|r| lines.range(r))).collect();
    // A text without instructions needs no room for figures before its lines.
    let shown = if view.heat.iter().any(Option::is_some) { &*view.heat } else { &[] };
    let heat: Vec<Option<[u16; 2]>> =
        shown.iter().map(|heat| heat.map(|heat| [heat.live, heat.stall.into()])).collect();
    json!({
        "function": view.function,
        "text": &*view.text,
        "lines": map,
        "heat": heat,
        "hasCode": view.has_code,
    })
}

/// The machine code of a function in a file that is not an open document.
pub fn of_file(db: &Database, file: SourceFile, function: &str) -> Option<SassView> {
    ide::sass_view(db, file, function, SassStyle::BARE)
}
