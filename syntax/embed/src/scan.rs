//! All snippets of a text. After an edit, only the changed part is scanned again.

use std::ops::Range;
use std::sync::Arc;

use text_size::{TextRange, TextSize};

use crate::cursor::Cursor;
use crate::document::Document;
use crate::literal::{Decoded, range};
use crate::{Language, Snippet, c, module, python, rust};

/// The smallest distance between two marks, in bytes.
const DISTANCE: u32 = 2048;
/// How many bytes after an edit are read first.
const WINDOW: usize = 8192;

/// The snippets of a text, in order.
///
/// A mark is the start of a line at which a scanner is outside of all constructs and has not looked ahead. What follows
/// a mark does not depend on the text before it. So after an edit, the scan begins at the mark before the edit and ends
/// at the first old mark after it.
#[derive(Clone, Debug)]
pub struct Scan {
    language: Language,
    snippets: Vec<Snippet>,
    marks: Vec<u32>,
}

/// Collects the snippets and marks in a window of a text.
pub(crate) struct Sink<'a> {
    /// The start of the window in the text.
    base: u32,
    snippets: Vec<Snippet>,
    marks: Vec<u32>,
    last: u32,
    furthest: usize,
    /// Whether the scan may end at this mark.
    is_known: &'a dyn Fn(u32) -> bool,
    stopped_at: Option<u32>,
}

impl<'a> Sink<'a> {
    fn new(base: u32, is_known: &'a dyn Fn(u32) -> bool) -> Self {
        let (snippets, marks) = (Vec::new(), Vec::new());
        Sink { base, snippets, marks, last: base, furthest: 0, is_known, stopped_at: None }
    }

    pub(crate) fn snippet(&mut self, range: TextRange, document: Document) {
        let document = Arc::new(document.relative_to(range.start()));
        self.snippets.push(Snippet { range: range + TextSize::new(self.base), document });
    }

    /// Handles a string in code: it may be a module, or CUDA code with inline assembly. `literal` reads one literal.
    /// `literals` reads all consecutive literals and returns the end of the last one. `stands_alone` says whether the
    /// string is used as it is, judged by the blanks after it and the next character.
    pub(crate) fn string(
        &mut self,
        cursor: &mut Cursor<'_>,
        literal: fn(&mut Cursor<'_>, &mut Decoded) -> Option<()>,
        literals: fn(&mut Cursor<'_>) -> Option<(Decoded, usize)>,
        stands_alone: fn(&str, u8) -> bool,
    ) {
        let start = *cursor;
        let mut first = Decoded::default();
        let is_known = literal(cursor, &mut first).is_some();
        let is_cuda = module::is_cuda_with_assembly(&first.text);
        if !is_known || !is_cuda && !module::may_begin(&first.text) {
            return;
        }
        let mut all = start;
        let decoded = literals(&mut all);
        self.looked(all.at);
        if let Some((decoded, end)) = decoded
            && stands_alone(&all.text[end..all.at], all.byte())
        {
            match module::begins(&decoded.text) {
                true => self.snippet(range(start.at, end), Document::module(&decoded)),
                false if is_cuda => self.cuda(&decoded),
                false => return,
            }
            cursor.at = end;
        }
    }

    /// Adds the snippets of CUDA code in a string, which a program compiles at run time.
    fn cuda(&mut self, decoded: &Decoded) {
        let mut inside = Sink::new(0, &|_| false);
        c::scan(&decoded.text, true, &mut inside);
        for Snippet { range, document } in inside.snippets {
            if let Some(place) = decoded.host_of(range) {
                self.snippet(place, Arc::unwrap_or_clone(document).within(range.start(), decoded));
            }
        }
    }

    /// Records that the scanner has looked ahead up to this place.
    pub(crate) fn looked(&mut self, at: usize) {
        self.furthest = self.furthest.max(at);
    }

    /// Records the start of a line outside of all constructs. Returns false if the scan ends there.
    pub(crate) fn line(&mut self, at: usize) -> bool {
        let place = self.base + at as u32;
        if self.furthest > at {
            return true;
        }
        if (self.is_known)(place) {
            self.stopped_at = Some(place);
            return false;
        }
        if place - self.last >= DISTANCE {
            self.marks.push(place);
            self.last = place;
        }
        true
    }
}

/// Words that occur only in code for GPUs, which headers also contain.
const CUDA_WORDS: [&str; 7] = [
    "__device__",
    "__global__",
    "__CUDA_ARCH__",
    "__CUDACC__",
    "CUTE_DEVICE",
    "CUTE_HOST_DEVICE",
    "CUTLASS_DEVICE",
];

/// The language of a text: C++ with words of CUDA is CUDA.
fn refined(language: Language, text: &str) -> Language {
    let is_cuda = language == Language::Cpp && CUDA_WORDS.iter().any(|word| text.contains(word));
    if is_cuda { Language::Cuda } else { language }
}

fn run(language: Language, text: &str, sink: &mut Sink<'_>) {
    match language {
        Language::Cuda => c::scan(text, true, sink),
        Language::Cpp => c::scan(text, false, sink),
        Language::Rust => rust::scan(text, sink),
        Language::Python => python::scan(text, sink),
    }
}

/// Finds the snippets of a text. A text that is too long for 32-bit positions has none.
pub fn scan(language: Language, text: &str) -> Scan {
    let language = refined(language, text);
    let mut sink = Sink::new(0, &|_| false);
    if u32::try_from(text.len()).is_ok() {
        run(language, text, &mut sink);
    }
    Scan { language, snippets: sink.snippets, marks: sink.marks }
}

impl Scan {
    pub fn snippets(&self) -> &[Snippet] {
        &self.snippets
    }

    /// The index of the snippet that contains a position.
    pub fn at(&self, offset: TextSize) -> Option<usize> {
        let index = self.snippets.partition_point(|snippet| snippet.range.end() < offset);
        self.snippets.get(index).filter(|snippet| snippet.range.contains_inclusive(offset)).map(|_| index)
    }

    /// Updates the snippets after an edit, which replaced `removed` with the given number of bytes. The new text has
    /// `len` bytes. `read` returns a part of it, without a character that extends beyond the part. Returns the range of
    /// replaced snippets and the number of new ones.
    pub fn edit(
        &mut self,
        removed: Range<usize>,
        inserted: usize,
        len: usize,
        read: impl Fn(Range<usize>) -> String,
    ) -> (Range<usize>, usize) {
        let moved = |at: u32| (i64::from(at) + inserted as i64 - removed.len() as i64) as u32;
        let before = self.marks.partition_point(|&mark| (mark as usize) <= removed.start);
        let start = before.checked_sub(1).map_or(0, |index| self.marks[index]);
        let edited_end = removed.start + inserted;
        let old_marks = &self.marks;
        // The index of the old mark that corresponds to a place after the edit.
        let mark_at = |place: u32| {
            let old = (i64::from(place) - inserted as i64 + removed.len() as i64) as u32;
            let is_behind = place as usize >= edited_end && old as usize >= removed.end;
            is_behind.then(|| old_marks.binary_search(&old).ok()).flatten()
        };
        let is_known = |place: u32| mark_at(place).is_some();
        let mut window = WINDOW;
        let (snippets, marks, stop) = loop {
            let end = (edited_end + window).min(len);
            let text = read(start as usize..end);
            if refined(self.language, &text) != self.language {
                let before = std::mem::replace(self, scan(Language::Cuda, &read(0..len)));
                return (0..before.snippets.len(), self.snippets.len());
            }
            let mut sink = Sink::new(start, &is_known);
            run(self.language, &text, &mut sink);
            if sink.stopped_at.is_some() || end == len {
                break (sink.snippets, sink.marks, sink.stopped_at);
            }
            window *= 4;
        };
        // The first old mark that holds on, in old positions.
        let first = self.snippets.partition_point(|s| u32::from(s.range.start()) < start);
        let (kept, kept_marks) = match stop {
            None => (self.snippets.len(), self.marks.len()),
            Some(place) => {
                let mark = mark_at(place).unwrap_or(old_marks.len());
                let at = old_marks.get(mark).copied().unwrap_or(u32::MAX);
                (self.snippets.partition_point(|s| u32::from(s.range.start()) < at), mark)
            }
        };
        let added = snippets.len();
        for snippet in &mut self.snippets[kept..] {
            let start = TextSize::new(moved(snippet.range.start().into()));
            snippet.range = TextRange::at(start, snippet.range.len());
        }
        self.marks[kept_marks..].iter_mut().for_each(|mark| *mark = moved(*mark));
        self.snippets.splice(first..kept, snippets);
        self.marks.splice(before..kept_marks, marks);
        (first..kept, added)
    }
}
