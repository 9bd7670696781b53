//! Source locations of instructions for line tables: `.file`, `.loc` and the names of inlined functions.
//!
//! They are separate from the compiled code. Machine code refers to statements, and the position of a statement in the
//! text determines the `.loc` that applies to it. So code stays valid if only positions change.

use ptx_backend::CompiledFunction;
use ptx_backend::cubin::{File, Inlined as InlinedAt, Lines, Row, SourcePlace};
use ptx_backend::inline::{Frame, Inlined};
use ptx_backend::input::SrcId;
use ptx_syntax::{SyntaxKind, tokens};
use rustc_hash::FxHashMap;

use crate::callees::{body_of, inlined};
use crate::db::{Database, SourceFile};
use crate::items::Item;
use crate::items::line_index;
use crate::lower::lower;
use crate::module::module;

/// The source locations in a text.
#[derive(Default)]
pub(crate) struct Positions {
    lines: Lines,
    /// The offset in the text at which each location is given.
    starts: Vec<u32>,
    /// Locations of inlined functions: by the caller's offset, the compiler's number of the call, and the location.
    moved: FxHashMap<(u32, u32, u32), u32>,
    /// The strings are those of debug data, to which no names are added.
    pub(crate) has_debug_data: bool,
    /// The offsets of the names of inlined functions in the strings.
    names: FxHashMap<u32, u32>,
}

/// A word and its offset.
type Word<'t> = (SyntaxKind, &'t str, u32);

/// The words of directives about positions, in text order. Words in between are omitted; omitting them does not end a
/// list.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    // The number of further words of the current directive.
    let mut wanted = 0;
    let mut at = 0;
    for token in tokens(text) {
        let end = at + token.len as usize;
        let start = std::mem::replace(&mut at, end);
        if token.kind.is_trivia() {
            continue;
        }
        let word = &text[start..end];
        if token.kind == SyntaxKind::DOT_WORD {
            wanted = match word {
                ".loc" | ".file" => MOST_WORDS,
                ".section" => 2,
                ".debug_str" if words.last().is_some_and(|(_, last, _)| *last == ".section") => usize::MAX,
                _ => wanted,
            };
        }
        if wanted > 0 {
            words.push((token.kind, word, start as u32));
            wanted = match word {
                "}" => 0,
                ";" if wanted <= MOST_WORDS => 0,
                _ => wanted - 1,
            };
        }
    }
    words
}

impl Positions {
    pub(crate) fn read(text: &str) -> Self {
        let words = words(text);
        let mut positions = Positions::default();
        let labels = positions.strings(&words);
        // The last location of each call.
        let mut known: FxHashMap<[u32; 3], u32> = FxHashMap::default();
        for (i, &(kind, word, start)) in words.iter().enumerate() {
            let rest = &words[i + 1..];
            match word {
                ".file" if kind == SyntaxKind::DOT_WORD => positions.lines.files.extend(file(rest)),
                ".loc" if kind == SyntaxKind::DOT_WORD => {
                    let Some((position, inlined)) = location(rest, &labels, &known) else { continue };
                    known.insert(position, positions.starts.len() as u32);
                    let [file, line, _] = position;
                    positions.lines.places.push(SourcePlace { file, line, inlined });
                    positions.starts.push(start);
                }
                _ => {}
            }
        }
        positions
    }

    /// Reads `.debug_str`; returns the offset of each label in it.
    fn strings<'t>(&mut self, words: &[Word<'t>]) -> FxHashMap<&'t str, u32> {
        let mut labels = FxHashMap::default();
        let is_start = |pair: &[Word<'_>]| pair[0].1 == ".section" && pair[1].1 == ".debug_str";
        let Some(start) = words.windows(2).position(is_start) else { return labels };
        let mut rest = words[start + 2..].iter().skip(1).peekable();
        while let Some((kind, word, _)) = rest.next().filter(|(.., word, _)| *word != "}") {
            match kind {
                SyntaxKind::INT => self.lines.strings.push(integer(word).unwrap_or(0) as u8),
                SyntaxKind::IDENT if rest.peek().is_some_and(|(kind, ..)| *kind == SyntaxKind::COLON) => {
                    labels.insert(*word, self.lines.strings.len() as u32);
                }
                _ => {}
            }
        }
        labels
    }

    /// Adds the line rows of a section. The section contains a kernel and its functions, each with the offset of its
    /// code, or one function of an object.
    pub(crate) fn add_code<'db, 'c>(
        &mut self,
        db: &'db Database,
        pieces: impl Iterator<Item = (Item<'db>, &'c CompiledFunction, u64)>,
    ) {
        let mut rows = Vec::new();
        for (item, code, start) in pieces {
            self.add_function(db, item, code, start, &mut rows);
        }
        self.lines.kernels.push(rows);
    }

    fn add_function(
        &mut self,
        db: &Database,
        item: Item<'_>,
        code: &CompiledFunction,
        start: u64,
        rows: &mut Vec<Row>,
    ) {
        let offset = u32::from(item.offset(db));
        let first = self.given(offset);
        let end = offset + item.text(db).len() as u32;
        let own = self.starts.get(first).is_some_and(|&start| start < end).then_some(first as u32);
        // Code before that of the first statement belongs to the opening brace of the body.
        let body = item.text(db).find('{').map_or(offset, |brace| offset + brace as u32);
        let line = line_index(db, item.file(db)).line_col(body.into()).line + 1;
        let mut last = (own, line);
        rows.push(Row { at: start, place: last.0, ptx_line: last.1 });
        let inlined =
            code.inlined.as_ref().and_then(|lines| Some((lines, inlined(db, item).as_ref().ok()?.as_ref()?)));
        let lines = inlined.map_or(&code.lines, |(lines, _)| lines);
        let mut known: Option<(SrcId, (Option<u32>, u32))> = None;
        for (i, src) in (0u64..).zip(lines.iter()) {
            let Some(src) = *src else { continue };
            let found = match known {
                Some((before, found)) if before == src => found,
                _ => match inlined {
                    Some((_, inlined)) => self.origin(db, item, inlined, src),
                    None => self.position(db, item, src),
                }
                .unwrap_or(last),
            };
            known = Some((src, found));
            let found = (found.0.or(last.0), found.1);
            if found != last {
                last = found;
                // The code begins with this statement, not with the brace.
                if i == 0 {
                    rows.pop();
                }
                rows.push(Row { at: start + i * INST_BYTES, place: last.0, ptx_line: last.1 });
            }
        }
    }

    /// The number of locations that the text gives up to an offset.
    fn given(&self, at: u32) -> usize {
        self.starts.partition_point(|&start| start <= at)
    }

    /// The location that applies to a statement, and its line in the text.
    fn position(&self, db: &Database, item: Item<'_>, src: SrcId) -> Option<(Option<u32>, u32)> {
        let offset = u32::from(item.offset(db));
        let at = offset + u32::from(lower(db, item).map.statement(src)?.start());
        let place = self.given(at).checked_sub(1).filter(|&place| place >= self.given(offset));
        let line = line_index(db, item.file(db)).line_col(at.into()).line + 1;
        Some((place.map(|place| place as u32), line))
    }

    /// The same for a statement of a function with inlined calls.
    fn origin(
        &mut self,
        db: &Database,
        item: Item<'_>,
        inlined: &Inlined,
        src: SrcId,
    ) -> Option<(Option<u32>, u32)> {
        let &(own, frame) = inlined.origins.get(src.0 as usize)?;
        let Some(frame) = frame else { return self.position(db, item, own) };
        let function = inlined.frames.get(frame as usize)?.function;
        let (place, line) = self.position(db, body_of(db, item.file(db), function)?, own)?;
        if self.has_debug_data {
            return Some((place, line));
        }
        Some((self.inside(db, item, inlined, frame, place), line))
    }

    /// A location in an inlined function, for one call of it.
    fn inside(
        &mut self,
        db: &Database,
        item: Item<'_>,
        inlined: &Inlined,
        frame: u32,
        place: Option<u32>,
    ) -> Option<u32> {
        let place = place?;
        let known = (item.offset(db).into(), frame, place);
        if let Some(&known) = self.moved.get(&known) {
            return Some(known);
        }
        let Frame { function, call, parent } = *inlined.frames.get(frame as usize)?;
        // According to the text, the location may already be inlined.
        let SourcePlace { file, line, inlined: within } = *self.lines.places.get(place as usize)?;
        let at = match within {
            Some(within) => self.inside(db, item, inlined, frame, Some(within.at)),
            None => {
                let caller = match parent {
                    Some(parent) => {
                        let function = inlined.frames.get(parent as usize)?.function;
                        body_of(db, item.file(db), function)?
                    }
                    None => item,
                };
                let (call, _) = self.position(db, caller, call)?;
                match parent {
                    Some(parent) => self.inside(db, item, inlined, parent, call),
                    None => call,
                }
            }
        };
        let Some(at) = at else { return Some(place) };
        let name = within.map_or_else(|| self.name(db, item.file(db), function), |within| within.name);
        self.lines.places.push(SourcePlace { file, line, inlined: Some(InlinedAt { name, at }) });
        let new = self.lines.places.len() as u32 - 1;
        self.moved.insert(known, new);
        Some(new)
    }

    /// The offset of a function's name in the strings.
    fn name(&mut self, db: &Database, file: SourceFile, function: u32) -> u32 {
        if let Some(&known) = self.names.get(&function) {
            return known;
        }
        let start = self.lines.strings.len() as u32;
        let name = module(db, file).env.functions.get(function as usize).map_or("", |f| &f.name);
        self.lines.strings.extend(name.bytes().chain([0]));
        self.names.insert(function, start);
        start
    }

    /// Whether there are any locations.
    pub(crate) fn any(&self) -> bool {
        !self.starts.is_empty()
    }

    /// Whether the text has locations but declares no file. Like ptxas, this ignores the numbers of the files.
    pub(crate) fn lacks_files(&self) -> bool {
        !self.lines.places.is_empty() && self.lines.files.is_empty()
    }

    /// Of the text that was read.
    pub(crate) fn finish(mut self, text: &str) -> Lines {
        self.lines.text = ptx_text(text);
        self.lines
    }
}

const INST_BYTES: u64 = 16;

/// The maximum number of words of a `.loc`: one that states, with an offset, where a function is inlined; rounded up.
const MOST_WORDS: usize = 16;

fn integer(word: &str) -> Option<u64> {
    let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (word, 10),
    };
    u64::from_str_radix(digits.trim_end_matches('U'), radix).ok()
}

/// `1 "a.cu", 0, 0`
fn file(words: &[Word<'_>]) -> Option<File> {
    let number = u32::try_from(integer(words.first()?.1)?).ok()?;
    let (kind, name, _) = *words.get(1)?;
    let name = name.strip_prefix('"')?.strip_suffix('"').filter(|_| kind == SyntaxKind::STRING)?.to_owned();
    let value = |i: usize| {
        let comma = words.get(i)?.0 == SyntaxKind::COMMA;
        integer(words.get(i + 1).filter(|_| comma)?.1)
    };
    let time = value(2);
    Some(File { number, name, time: time.unwrap_or(0), size: time.and_then(|_| value(4)).unwrap_or(0) })
}

/// `1 2 3, function_name label+4, inlined_at 1 5 6`: the location, and where it is inlined.
fn location(
    words: &[Word<'_>],
    labels: &FxHashMap<&str, u32>,
    known: &FxHashMap<[u32; 3], u32>,
) -> Option<([u32; 3], Option<InlinedAt>)> {
    let number = |i: usize| u32::try_from(integer(words.get(i)?.1)?).ok();
    let position = |i: usize| Some([number(i)?, number(i + 1)?, number(i + 2)?]);
    let own = position(0)?;
    let is = |i: usize, text: &str| words.get(i).is_some_and(|(_, word, _)| *word == text);
    if !(is(3, ",") && is(4, "function_name")) {
        return Some((own, None));
    }
    let label = words.get(5)?.1;
    let (more, next) = if is(6, "+") { (number(7)?, 8) } else { (0, 6) };
    if !(is(next, ",") && is(next + 1, "inlined_at")) {
        return Some((own, None));
    }
    let name = labels.get(label).copied().unwrap_or(0).saturating_add(more);
    let at = position(next + 2).and_then(|call| known.get(&call)).copied();
    Some((own, at.map(|at| InlinedAt { name, at })))
}

/// The text of the debug section: its lines as strings, without indentation. Lines with comments, locations and data
/// are empty, so that the other lines keep their numbers.
fn ptx_text(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '\t']);
        let left_out = ["//", ".loc", ".file", ".b8", ".b16", ".b32", ".b64"];
        if !left_out.iter().any(|start| line.starts_with(start)) {
            out.extend(line.bytes().filter(|&byte| byte != 0));
        }
        out.push(0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 9.0 // .loc 7 7 7\n\t.loc\t1 10 1\n.loc 2 20 3, function_name $L1+2, inlined_at 1 10 1\n\
        .loc 1 10 1\n.loc 1 4 5, function_name none, inlined_at 9 9 9\n.file 1 \"/a/b.cu\"\n.file 2 \"c\", 17, 0x10\n\
        .section .debug_str\n{\n$L0:\n.b8 65,66\n.b8 0\n$L1: .b8 67,0\n}\n";

    #[test]
    fn positions_are_read() {
        let positions = Positions::read(TEXT);
        let Lines { files, places, strings, text, .. } = positions.finish(TEXT);
        let file = |number, name: &str, time, size| File { number, name: name.into(), time, size };
        assert_eq!(files, [file(1, "/a/b.cu", 0, 0), file(2, "c", 17, 16)]);
        let place = |file, line, inlined| SourcePlace { file, line, inlined };
        let inlined = Some(InlinedAt { name: 5, at: 0 });
        assert_eq!(
            places,
            [place(1, 10, None), place(2, 20, inlined), place(1, 10, None), place(1, 4, None)]
        );
        assert_eq!(strings, b"AB\0C\0");
        let lines = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = lines.split_terminator('\0').collect();
        assert_eq!(lines[..2], [".version 9.0 // .loc 7 7 7", ""]);
        assert_eq!(lines[7..], [".section .debug_str", "{", "$L0:", "", "", "$L1: .b8 67,0", "}"]);
    }
}
