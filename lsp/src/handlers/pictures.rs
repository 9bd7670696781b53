//! `ptx/pictures`: pictures of a function as a page.
//!
//! Parameters: `{ textDocument, function | position }`. Result: `{ function, html, svg }`; where the function is not
//! compiled, the page says why. The answer is null outside of a function.

use crate::handlers::sass_view::Place;
use crate::owner::Snapshot;
use crate::pictures::{apology, page, svg};
use ptx_analysis::ide::{self, SassStyle};
use serde_json::{Value, json};

pub fn handle(s: &Snapshot, place: &Place) -> Option<Value> {
    let view = place.view(s, SassStyle::BARE)?;
    let name = view.function;
    let Some(portrait) = ide::portrait(&s.db, s.file, &name) else {
        let why = view.text.lines().next().unwrap_or_default().trim_start_matches("// ");
        return Some(json!({ "function": name, "html": apology(&name, why), "svg": svg(&[]) }));
    };
    let all = [portrait];
    Some(json!({ "function": name, "html": page(&name, &all), "svg": svg(&all) }))
}
