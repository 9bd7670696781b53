//! `ptx/sassView`: a function's machine code as a document, each line with the PTX it comes from.
//!
//! Parameters: `{ textDocument, function }` or `{ textDocument, position }`, and optionally `controls` (`codes`,
//! `words` or `hidden`) and `live` (whether the text has a column of live registers). Result:
//! `{ function, text, lines, heat, hasCode }`; `lines[i]` is the PTX range of line `i` or null, and `heat[i]` is its
//! number of live registers and its stall cycles, or null. If a function has no machine code, the text says why. The
//! answer is null outside of a function.

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

pub fn handle(s: &Snapshot, params: &SassViewParams) -> Option<SassViewResult> {
    let controls = match params.controls {
        ShownControls::Codes => Controls::Codes,
        ShownControls::Words => Controls::Words,
        ShownControls::Hidden => Controls::Hidden,
    };
    let style = SassStyle { controls, live: params.live.unwrap_or(true), addresses: true };
    Some(object(&params.place.view(s, style)?, s.lines()))
}

/// The JSON object of a view. `lines` is the document of the view's ranges.
pub fn object(view: &SassView, lines: &Document) -> Value {
    let map: Vec<Option<Range>> = view.lines.iter().map(|range| range.map(|r| lines.range(r))).collect();
    let heat: Vec<Option<[u16; 2]>> =
        view.heat.iter().map(|heat| heat.map(|heat| [heat.live, heat.stall.into()])).collect();
    json!({
        "function": view.function,
        "text": &*view.text,
        "lines": map,
        "heat": heat,
        "hasCode": view.figures.is_some(),
    })
}

/// The machine code of a function in a file that is not an open document.
pub fn of_file(db: &Database, file: SourceFile, function: &str) -> Option<SassView> {
    ide::sass_view(db, file, function, SassStyle::BARE)
}
