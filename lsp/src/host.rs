//! An open document of another language. Each of its snippets is a file of the database.
//!
//! The host text itself is not in the database. So an edit outside of snippets changes no file and cancels no request.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use ptx_analysis::ide::{self, Diagnostic};
use ptx_analysis::{Database, SourceFile};
use ptx_embed::{Document as Module, Language, Scan, scan};
use text_size::TextSize;

use crate::document::Document;
use crate::embedded;

/// With how many removed snippets a new one is compared.
const NEAR: usize = 16;

/// A snippet that is in the database.
#[derive(Clone)]
pub struct Part {
    pub file: SourceFile,
    module: Arc<Module>,
    /// The findings of the snippet, once it has been checked.
    found: Arc<OnceLock<Box<[Diagnostic]>>>,
}

/// The part of an open document that only documents of other languages have.
pub struct Host {
    language: Language,
    /// Whether embedded PTX is analyzed. If not, there are no snippets.
    is_enabled: bool,
    scan: Arc<Scan>,
    /// One entry for each snippet; `None` if an edit added the snippet and it is not in the database yet.
    parts: Arc<Vec<Option<Part>>>,
    /// The parts of snippets that edits removed.
    loose: VecDeque<Part>,
}

/// The snippets of one version of the document, for a worker.
pub struct Embedded {
    pub document: Document,
    pub scan: Arc<Scan>,
    parts: Arc<Vec<Option<Part>>>,
    pub has_target: bool,
}

impl Host {
    pub fn new(language: Language, text: &str, is_enabled: bool) -> Self {
        let scan = scan(language, if is_enabled { text } else { "" });
        let parts = vec![None; scan.snippets().len()];
        Self { language, is_enabled, scan: Arc::new(scan), parts: Arc::new(parts), loose: VecDeque::new() }
    }

    /// Finds the snippets of the document, or removes them.
    pub fn enable(&mut self, is_enabled: bool, document: &Document) {
        let text = if is_enabled { document.text() } else { String::new() };
        let new = Self::new(self.language, &text, is_enabled);
        let old = std::mem::replace(self, new);
        self.loose = old.loose;
        self.loose.extend(old.parts.iter().flatten().cloned());
    }

    /// Updates the snippets after a change of the text. [`commit`](Self::commit) then updates the database.
    pub fn edit(&mut self, document: &Document, removed: std::ops::Range<usize>, inserted: usize) {
        if !self.is_enabled {
            return;
        }
        let read = |range| document.part(range);
        let (gone, added) = Arc::make_mut(&mut self.scan).edit(removed, inserted, document.len(), read);
        if !gone.is_empty() || added > 0 {
            let parts = Arc::make_mut(&mut self.parts);
            self.loose.extend(parts.splice(gone, std::iter::repeat_n(None, added)).flatten());
        }
    }

    /// Whether snippets wait to be added to the database or removed from it.
    pub fn is_pending(&self) -> bool {
        !self.loose.is_empty() || self.parts.iter().any(Option::is_none)
    }

    /// Adds new snippets to the database. They reuse the files of removed snippets; files that are left over go to
    /// `spare`.
    pub fn commit(&mut self, db: &mut Database, spare: &mut Vec<SourceFile>) {
        if !self.is_pending() {
            return;
        }
        let new = |part: &Option<Part>| part.is_none();
        let missing: Vec<usize> =
            self.parts.iter().enumerate().filter(|(_, p)| new(p)).map(|(i, _)| i).collect();
        let parts = Arc::make_mut(&mut self.parts);
        // Snippets that an edit only moved are removed and added in the same order.
        for &index in &missing {
            let module = &self.scan.snippets()[index].document;
            let same = self.loose.iter().take(NEAR).position(|part| part.module == *module);
            parts[index] = same.and_then(|same| self.loose.remove(same));
        }
        for index in missing.into_iter().filter(|&index| parts[index].is_none()).collect::<Vec<_>>() {
            let module = self.scan.snippets()[index].document.clone();
            let file = match self.loose.pop_front().map(|part| part.file).or_else(|| spare.pop()) {
                Some(file) => {
                    db.set_text(file, module.text());
                    file
                }
                None => db.add_file(module.text()),
            };
            parts[index] = Some(Part { file, module, found: Arc::default() });
        }
        for part in self.loose.drain(..) {
            ide::clear_file(db, part.file);
            spare.push(part.file);
        }
    }

    /// Drops the findings, because they depend on the settings.
    pub fn forget(&mut self) {
        Arc::make_mut(&mut self.parts).iter_mut().flatten().for_each(|part| part.found = Arc::default());
    }

    /// Drops all files, because the database was replaced.
    pub fn forget_files(&mut self) {
        let count = self.parts.len();
        self.loose.clear();
        self.parts = Arc::new(vec![None; count]);
    }

    /// Closes the document. All of its files go to `spare`.
    pub fn close(mut self, db: &mut Database, spare: &mut Vec<SourceFile>) {
        let parts = std::mem::take(Arc::make_mut(&mut self.parts));
        for part in parts.into_iter().flatten().chain(self.loose) {
            ide::clear_file(db, part.file);
            spare.push(part.file);
        }
    }

    pub fn snapshot(&self, document: &Document, has_target: bool) -> Embedded {
        let (scan, parts) = (self.scan.clone(), self.parts.clone());
        Embedded { document: document.clone(), scan, parts, has_target }
    }
}

/// A place in a snippet.
pub struct Inside<'a> {
    pub file: SourceFile,
    pub module: &'a Module,
    /// The start of the snippet in the host text.
    pub start: TextSize,
    /// The place, as an offset in the module.
    pub offset: TextSize,
}

impl Embedded {
    /// The findings in all snippets.
    pub fn findings(&self, db: &Database) -> Vec<Diagnostic> {
        let each = self.parts.iter().map(|part| match part {
            Some(part) => &**part
                .found
                .get_or_init(|| embedded::findings(db, part.file, &part.module, self.has_target).into()),
            None => &[],
        });
        let each: Vec<&[Diagnostic]> = each.collect();
        // The whole text is needed only if a snippet uses a feature that a chosen target lacks.
        let text = OnceLock::new();
        let guarded = |at| embedded::is_guarded(text.get_or_init(|| self.document.text()), at);
        embedded::all(self.scan.snippets(), each.iter().copied(), guarded)
    }

    /// The snippet at an offset of the host text, and the place in the snippet.
    pub fn inside(&self, offset: TextSize) -> Option<Inside<'_>> {
        let index = self.scan.at(offset)?;
        let snippet = &self.scan.snippets()[index];
        let start = snippet.range.start();
        let offset = snippet.document.to_module(offset - start)?;
        let file = self.parts.get(index)?.as_ref()?.file;
        Some(Inside { file, module: &snippet.document, start, offset })
    }

    /// All snippets, with their files.
    pub fn all(&self) -> impl Iterator<Item = (&ptx_embed::Snippet, SourceFile)> {
        let files = self.parts.iter().map(|part| part.as_ref().map(|part| part.file));
        self.scan.snippets().iter().zip(files).filter_map(|(snippet, file)| Some((snippet, file?)))
    }
}
