//! `textDocument/documentLink`, and the source line that `.loc` gives as the definition of an instruction.

use std::path::{Path, PathBuf};

use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{DocumentLink, Location, Position, Range, Url};

/// The path of a `.file` directive, if the file exists. A relative path is relative to the document's folder.
fn existing(s: &Snapshot, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let whole = match s.uri.to_file_path() {
        Ok(document) => document.parent()?.join(path),
        Err(()) => path.to_owned(),
    };
    whole.is_file().then_some(whole)
}

pub fn links(s: &Snapshot) -> Option<Vec<DocumentLink>> {
    let lines = s.lines();
    let link = |(range, path): (_, String)| {
        let target = Url::from_file_path(existing(s, &path)?).ok();
        Some(DocumentLink { range: lines.range(range), target, tooltip: None, data: None })
    };
    Some(ide::file_links(&s.db, s.file).into_iter().filter_map(link).collect())
}

/// The source line of the instruction at a position.
pub fn place(s: &Snapshot, position: Position) -> Option<Location> {
    let place = ide::source_place(&s.db, s.file, s.lines().offset(position))?;
    let uri = Url::from_file_path(existing(s, &place.path)?).ok()?;
    let start = Position::new(place.line.saturating_sub(1), place.column.saturating_sub(1));
    Some(Location::new(uri, Range::new(start, start)))
}
