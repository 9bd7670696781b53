//! `ptx/pictures`: pictures of a function as an HTML page.
//!
//! Parameters: `{ textDocument, function | position, link }`. Result: `{ function, html, svg, blocks }`. If the
//! function is not compiled, the page and the field `reason` say why. `link` is an address with `{line}` in place of a
//! line number; with it, each block in the page links to its first line. `blocks` describes the blocks in words,
//! `{ text, line }`. The answer is null outside of a function.

use crate::handlers::sass_view::Place;
use crate::owner::Snapshot;
use crate::pictures::{apology, blocks, page, svg};
use ptx_analysis::ide::{self, SassStyle};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Clone, Deserialize)]
pub struct PicturesParams {
    #[serde(flatten)]
    pub place: Place,
    #[serde(default)]
    pub link: Option<String>,
}

pub fn handle(s: &Snapshot, params: &PicturesParams) -> Option<Value> {
    let view = params.place.view(s, SassStyle::BARE)?;
    let name = view.function;
    let Some(portrait) = ide::portrait(&s.db, s.file, &name) else {
        let why = view.text.lines().next().unwrap_or_default().trim_start_matches("// ");
        return Some(
            json!({ "function": name, "html": apology(&name, why), "svg": svg(&[]), "blocks": [], "reason": why }),
        );
    };
    let blocks = blocks(&portrait);
    let all = [portrait];
    let html = page(&name, &all, params.link.as_deref());
    Some(json!({ "function": name, "html": html, "svg": svg(&all), "blocks": blocks }))
}
