//! Reads the debug sections of a PTX text, such as `.section .debug_info { … }`: their bytes and the names in them.
//!
//! A label in a body becomes the address of the code of the following statements. A kernel parameter becomes an offset
//! in constant bank 0, and a `.local` variable an offset below the end of the frame. A variable without an address for
//! debuggers, such as one in shared memory of a kernel, gets an empty location expression.

use ptx_backend::assemble::{CodeLink, LinkTo};
use ptx_backend::cubin::{Debug, DebugSection, Reference, Referred};
use ptx_backend::input::{Env, Function, Symbol};
use ptx_backend::target::Target;
use ptx_backend::{CompiledFunction, Linking};
use ptx_isa::Space;
use ptx_syntax::{ItemKind, SyntaxKind, Token, tokens};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

use crate::db::{Database, Db, SourceFile};
use crate::items::{Item, items};
use crate::lower::lower;
use crate::scope::DeclKind;

/// `DW_OP_addr`, which precedes the address of a variable.
const ADDRESS: u8 = 3;
/// `DW_OP_fbreg`: an offset in bytes from the end of the frame.
const FRAME: u8 = 0x91;
/// `DW_OP_nop`.
const NOTHING: u8 = 0x96;

/// A function of the module with its code.
pub(crate) struct Piece<'db, 'c> {
    pub(crate) item: Item<'db>,
    pub(crate) input: &'c Function,
    pub(crate) code: &'c CompiledFunction,
    /// The linked section that contains its code, and the code's offset in the section; `None` for functions that no
    /// kernel reaches.
    pub(crate) place: Option<(usize, u64)>,
}

type Word<'t> = (SyntaxKind, &'t str, u32);

/// A field whose value is the value of a name.
struct Use<'t> {
    at: usize,
    bytes: usize,
    name: &'t str,
    addend: i64,
    /// The name whose value is subtracted.
    less: Option<&'t str>,
}

struct Section<'t> {
    name: &'t str,
    bytes: Vec<u8>,
    uses: Vec<Use<'t>>,
}

/// The labels of a text.
#[derive(Default)]
struct Labels<'t> {
    /// Labels in sections: the section, and the byte in it.
    data: FxHashMap<&'t str, (usize, usize)>,
    /// Labels in bodies: their position in the text.
    code: FxHashMap<&'t str, u32>,
}

/// Reads the debug data of a file. `None` where it has none.
pub(crate) fn read(
    db: &Database,
    file: SourceFile,
    env: &Env,
    target: &Target,
    linking: Linking,
    pieces: &[Piece<'_, '_>],
) -> Option<Debug> {
    let (sections, labels) = sections(file.text(db));
    if sections.is_empty() {
        return None;
    }
    let places: Vec<CodePlaces> = pieces.iter().map(|piece| CodePlaces::of(db, piece)).collect();
    let mut resolver = Resolver { env, target, linking, pieces, places, labels };
    let resolved = sections.iter().map(|section| resolver.section(section, &sections));
    let registers = registers(db, pieces);
    Some(Debug { sections: resolved.chain(registers).collect() })
}

/// The name of the section that states where PTX registers are.
const REGISTERS: &str = ".nv_debug_info_reg_sass";
/// The upper byte of a location that marks a general register.
const GENERAL: u32 = 5 << 24;

/// The locations of the PTX registers of all functions, by name; debug data uses them for variables. `None` if no
/// location is known.
fn registers(db: &Database, pieces: &[Piece<'_, '_>]) -> Option<DebugSection> {
    let mut bytes = Vec::new();
    let linked = pieces.iter().filter(|piece| piece.place.is_some() && !piece.code.shown.is_empty());
    for piece in linked {
        let (map, text) = (&lower(db, piece.item).map, piece.item.text(db));
        let known = piece.code.shown.iter().filter_map(|location| {
            let name = map.registers.get(location.word.register.0 as usize)?;
            let declaration = &map.declarations[name.declaration.0 as usize];
            // An element of a vector has no name.
            let DeclKind::Register { lanes: 1, .. } = declaration.kind else { return None };
            let stem = &text[declaration.range];
            let number = name.number.map_or(String::new(), |number| number.to_string());
            Some((format!("{stem}{number}"), location))
        });
        let known: Vec<_> = known.collect();
        bytes.extend(piece.input.name.bytes().chain([0]));
        bytes.extend((known.len() as u32).to_le_bytes());
        for (name, location) in known {
            bytes.extend(u32::from(location.word.index).to_le_bytes());
            bytes.extend(name.bytes().chain([0]));
            let place = GENERAL | u32::from(location.at);
            bytes.extend([place, location.start, location.end].into_iter().flat_map(u32::to_le_bytes));
        }
    }
    (!bytes.is_empty()).then(|| DebugSection { name: REGISTERS.to_owned(), bytes, references: Vec::new() })
}

/// Whether a file has a section of this name.
pub fn has_section(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    let mut sections = items(db, file).iter().filter(|item| item.kind(db) == ItemKind::Section);
    sections.any(|item| words(item.text(db)).peek(1) == name)
}

/// The words of a text, read one after the other.
struct Words<'t, Tokens> {
    text: &'t str,
    tokens: Tokens,
    /// The position after the last token that was read.
    at: usize,
    /// Words that have been looked at, but not taken.
    ahead: VecDeque<Word<'t>>,
}

fn words(text: &str) -> Words<'_, impl Iterator<Item = Token>> {
    Words { text, tokens: tokens(text), at: 0, ahead: VecDeque::new() }
}

impl<'t, Tokens: Iterator<Item = Token>> Words<'t, Tokens> {
    /// Reads to the next word.
    fn read(&mut self) -> Option<Word<'t>> {
        for token in self.tokens.by_ref() {
            let start = self.at;
            self.at += token.len as usize;
            if !token.kind.is_trivia() {
                return Some((token.kind, &self.text[start..self.at], start as u32));
            }
        }
        None
    }

    /// The text of the word after `skipped` others; a closing brace after the end.
    fn peek(&mut self, skipped: usize) -> &'t str {
        while self.ahead.len() <= skipped {
            let Some(word) = self.read() else { return "}" };
            self.ahead.push_back(word);
        }
        self.ahead[skipped].1
    }

    fn pass(&mut self, count: usize) {
        (0..count).for_each(|_| {
            self.next();
        });
    }
}

impl<'t, Tokens: Iterator<Item = Token>> Iterator for Words<'t, Tokens> {
    type Item = Word<'t>;

    fn next(&mut self) -> Option<Word<'t>> {
        self.ahead.pop_front().or_else(|| self.read())
    }
}

fn sections(text: &str) -> (Vec<Section<'_>>, Labels<'_>) {
    let mut sections = Vec::new();
    let mut labels = Labels::default();
    let mut words = words(text);
    while let Some((kind, word, start)) = words.next() {
        if word == ".section" && words.peek(1) == "{" {
            let name = words.peek(0);
            words.pass(2);
            sections.push(section(name, &mut words, sections.len(), &mut labels));
        } else if kind == SyntaxKind::IDENT && words.peek(0) == ":" {
            labels.code.entry(word).or_insert(start);
        }
    }
    (sections, labels)
}

/// Reads the contents of a section up to its closing brace.
fn section<'t>(
    name: &'t str,
    words: &mut Words<'t, impl Iterator<Item = Token>>,
    number: usize,
    labels: &mut Labels<'t>,
) -> Section<'t> {
    let mut out = Section { name, bytes: Vec::new(), uses: Vec::new() };
    let mut width = 1;
    while words.peek(0) != "}" {
        let Some((_, word, _)) = words.next() else { break };
        match word {
            ".b8" => width = 1,
            ".b16" => width = 2,
            ".b32" => width = 4,
            ".b64" => width = 8,
            "," => {}
            label if words.peek(0) == ":" => {
                labels.data.insert(label, (number, out.bytes.len()));
                words.pass(1);
            }
            value => {
                let is_negative = value == "-";
                let value = if is_negative { words.next().map_or("}", |(_, word, _)| word) } else { value };
                let place = out.bytes.len();
                match number_of(value) {
                    Some(number) => {
                        let number = if is_negative { number.wrapping_neg() } else { number };
                        out.bytes.extend(&number.to_le_bytes()[..width]);
                    }
                    None => {
                        let mut named = Use { at: place, bytes: width, name: value, addend: 0, less: None };
                        let (sign, term) = (words.peek(0), words.peek(1));
                        match (sign, number_of(term)) {
                            ("+", Some(addend)) => named.addend = addend as i64,
                            ("-", Some(addend)) => named.addend = (addend as i64).wrapping_neg(),
                            ("-", None) => named.less = Some(term),
                            _ => {}
                        }
                        if matches!(sign, "+" | "-") {
                            words.pass(2);
                        }
                        out.uses.push(named);
                        out.bytes.extend(&[0; 8][..width]);
                    }
                }
            }
        }
    }
    out
}

fn number_of(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['u', 'U']);
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// Maps the statements of a function to their code.
struct CodePlaces {
    /// The range of the function's item in the text.
    text: std::ops::Range<u32>,
    /// Pairs of a statement's position in the text and the offset of its code, or of the next code after it; sorted.
    starts: Vec<(u32, u64)>,
    bytes: u64,
}

impl CodePlaces {
    fn of(db: &Database, piece: &Piece<'_, '_>) -> CodePlaces {
        let start = u32::from(piece.item.offset(db));
        let text = start..start + piece.item.text(db).len() as u32;
        let map = &lower(db, piece.item).map;
        let bytes = piece.code.code.len() as u64 * 16;
        let mut first: FxHashMap<u32, u64> = FxHashMap::default();
        for (at, src) in (0u64..).step_by(16).zip(piece.code.lines.iter()) {
            if let Some(range) = src.and_then(|src| map.statement(src)) {
                first.entry(start + u32::from(range.start())).or_insert(at);
            }
        }
        let mut starts: Vec<(u32, u64)> = first.into_iter().collect();
        starts.sort_unstable();
        let mut least = bytes;
        for (_, at) in starts.iter_mut().rev() {
            least = least.min(*at);
            *at = least;
        }
        CodePlaces { text, starts, bytes }
    }

    /// The offset of the code for a position in the text.
    fn at(&self, place: u32) -> u64 {
        match self.starts.partition_point(|&(start, _)| start < place) {
            0 => 0,
            next => self.starts.get(next).map_or(self.bytes, |&(_, at)| at),
        }
    }
}

struct Resolver<'a, 'db, 'c, 't> {
    env: &'a Env,
    target: &'a Target,
    linking: Linking,
    pieces: &'a [Piece<'db, 'c>],
    places: Vec<CodePlaces>,
    labels: Labels<'t>,
}

/// What a name in a section refers to.
enum Meaning {
    Number(u64),
    Code(usize, u64),
    Data(usize, usize),
    Variable(u32),
    /// A shared variable of a piece.
    Local(usize, u32),
    /// An offset below the end of a frame.
    Frame(i64),
    Nothing,
}

impl<'t> Resolver<'_, '_, '_, 't> {
    fn section(&mut self, section: &Section<'t>, all: &[Section<'t>]) -> DebugSection {
        let mut bytes = section.bytes.clone();
        let mut references = Vec::new();
        for named in &section.uses {
            let (at, end) = (named.at, named.at + named.bytes);
            let to = match (self.meaning(named.name, all), named.less) {
                (meaning, Some(less)) => {
                    let difference = self.difference(&meaning, &self.meaning(less, all)).unwrap_or(0);
                    bytes[at..end].copy_from_slice(&difference.to_le_bytes()[..named.bytes]);
                    continue;
                }
                (Meaning::Code(piece, offset), None) if named.bytes == 8 => {
                    let Some((function, start)) = self.pieces[piece].place else { continue };
                    Referred::Code { function, offset: start + offset.saturating_add_signed(named.addend) }
                }
                (Meaning::Variable(i), None) if named.bytes == 8 => Referred::Variable(i),
                (Meaning::Local(piece, variable), None) if named.bytes == 8 => {
                    let Some((function, _)) = self.pieces[piece].place else { continue };
                    Referred::Local { function, variable }
                }
                (Meaning::Data(number, offset), None) if named.bytes == 4 => Referred::Section {
                    name: all[number].name.to_owned(),
                    offset: (offset as u32).wrapping_add(named.addend as u32),
                },
                (Meaning::Number(number), None) => {
                    let number = number.wrapping_add_signed(named.addend);
                    bytes[at..end].copy_from_slice(&number.to_le_bytes()[..named.bytes]);
                    continue;
                }
                (Meaning::Frame(offset), None) if named.bytes == 8 => {
                    expression(&mut bytes, at, Some(offset + named.addend));
                    continue;
                }
                _ if named.name.starts_with('.') && named.bytes == 4 => {
                    Referred::Section { name: named.name.to_owned(), offset: named.addend as u32 }
                }
                _ => {
                    expression(&mut bytes, at, None);
                    continue;
                }
            };
            references.push(Reference { at: at as u64, to });
        }
        DebugSection { name: section.name.to_owned(), bytes, references }
    }

    fn difference(&self, from: &Meaning, less: &Meaning) -> Option<u64> {
        match (from, less) {
            (Meaning::Code(a, from), Meaning::Code(b, less)) if a == b => Some(from.wrapping_sub(*less)),
            (Meaning::Data(a, from), Meaning::Data(b, less)) if a == b => {
                Some((*from as u64).wrapping_sub(*less as u64))
            }
            _ => None,
        }
    }

    fn meaning(&self, name: &str, all: &[Section<'t>]) -> Meaning {
        if let Some(&(section, offset)) = self.labels.data.get(name) {
            return Meaning::Data(section, offset);
        }
        if name.starts_with('.') {
            let known = all.iter().position(|section| section.name == name);
            return known.map_or(Meaning::Nothing, |section| Meaning::Data(section, 0));
        }
        if let Some(&place) = self.labels.code.get(name)
            && let Some(piece) = self.places.iter().position(|own| own.text.contains(&place))
        {
            return Meaning::Code(piece, self.places[piece].at(place));
        }
        if let Some(i) = self.env.variables.iter().position(|variable| variable.name == name) {
            let is_known = match self.env.variables[i].space {
                Space::Global | Space::Const => true,
                _ => self.pieces.iter().any(|piece| self.has_symbol(piece, Symbol::Global(i as u32))),
            };
            return if is_known { Meaning::Variable(i as u32) } else { Meaning::Nothing };
        }
        (0..self.pieces.len()).find_map(|piece| self.own(piece, name)).unwrap_or(Meaning::Nothing)
    }

    /// Whether the file has a symbol for a shared variable: in objects always, in executables if the code names it.
    fn has_symbol(&self, piece: &Piece<'_, '_>, symbol: Symbol) -> bool {
        let names = |link: &CodeLink| matches!(link.to, LinkTo::Symbol(link) if link.symbol == symbol);
        match self.linking {
            Linking::Joined => false,
            Linking::Separate => piece.code.links.iter().any(names),
            Linking::Object => true,
        }
    }

    /// Looks a name up among a function's own parameters and variables.
    fn own(&self, index: usize, name: &str) -> Option<Meaning> {
        let piece = &self.pieces[index];
        let parameters = if piece.input.entry { &piece.input.params[..] } else { &[] };
        if let Some(i) = parameters.iter().position(|param| param.name == name) {
            let block = self.target.place_params(parameters);
            return Some(Meaning::Number(u64::from(block.first) + u64::from(block.offsets[i])));
        }
        let local = piece.input.locals.iter().position(|variable| variable.name == name)?;
        if piece.input.locals[local].space == Space::Shared
            && self.has_symbol(piece, Symbol::Local(local as u32))
        {
            return Some(Meaning::Local(index, local as u32));
        }
        let offset = piece.code.attributes.locals.get(local).copied().flatten();
        let below = |at: u32| i64::from(at) - i64::from(piece.code.resources.stack_bytes);
        Some(offset.map_or(Meaning::Nothing, |at| Meaning::Frame(below(at))))
    }
}

/// Replaces an address and its `DW_OP_addr` by an expression of the same length.
fn expression(bytes: &mut [u8], address: usize, frame: Option<i64>) {
    let Some(start) = address.checked_sub(1).filter(|&at| bytes[at] == ADDRESS) else { return };
    let Some(field) = bytes.get_mut(start..start + 9) else { return };
    field.fill(NOTHING);
    let Some(mut offset) = frame else { return };
    field[0] = FRAME;
    for place in &mut field[1..] {
        let low = (offset & 0x7f) as u8;
        offset >>= 7;
        let is_last = offset == 0 && low & 0x40 == 0 || offset == -1 && low & 0x40 != 0;
        *place = if is_last { low } else { low | 0x80 };
        if is_last {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{compile_function, functions};
    use crate::lower::function;
    use crate::module::module;
    use ptx_isa::Sm;

    const TEXT: &str = "\
.version 8.0
.target sm_90, debug
.address_size 64
.global .b32 g;
.entry k(.param .b64 p, .param .b32 n) {
	.local .align 8 .b8 depot[16];
	.shared .b32 s;
	.reg .b32 %r<3>;
	.reg .b64 %d<3>;
begin:
	ld.param.b64 %d1, [p];
	ld.param.b32 %r1, [n];
	st.local.b32 [depot + 4], %r1;
middle:
	st.volatile.global.b32 [%d1], %r1;
	ret;
end:
}
.section .debug_str { .b8 65, 0 name: .b8 66, 0 }
.section .debug_info {
	.b32 name
	.b32 .debug_str
	.b32 .debug_line
	.b64 begin
	.b64 middle
	.b64 end
	.b32 end-end
	.b32 name-name
	.b8 3
	.b64 n
	.b8 3
	.b64 depot
	.b8 35, 4, 3
	.b64 s
	.b64 g
	.b16 -2
}
";

    #[test]
    fn registers_have_places() {
        let mut db = Database::default();
        db.set_opt_level(0);
        db.set_shows_registers(true);
        let file = db.add_file(TEXT.to_owned());
        let item = functions(&db, file).next().unwrap();
        let compiled = compile_function(&db, item).as_ref().unwrap().clone();
        let code = compiled.as_ref().as_ref().unwrap();
        let input = function(&db, item).as_ref().unwrap();
        let pieces = [Piece { item, input, code, place: Some((0, 0)) }];
        let section = registers(&db, &pieces).unwrap();
        assert_eq!(section.name, ".nv_debug_info_reg_sass");
        let (head, places) = section.bytes.split_at(6);
        assert_eq!(head, *b"k\0\x03\0\0\0");
        let name = |place: &[u8]| (place[0], place[4..7].escape_ascii().to_string());
        let names: Vec<_> = places.chunks(20).map(name).collect();
        assert_eq!(names, [(0, "%d1".to_owned()), (1, "%d1".to_owned()), (0, "%r1".to_owned())]);
        assert!(places.chunks(20).all(|place| place[7] == 0 && place[11] == 5));
    }

    #[test]
    fn names_become_places() {
        let mut db = Database::default();
        // Optimized code does not keep the local variable.
        db.set_opt_level(0);
        let file = db.add_file(TEXT.to_owned());
        let item = functions(&db, file).next().unwrap();
        let compiled = compile_function(&db, item).as_ref().unwrap().clone();
        let code = compiled.as_ref().as_ref().unwrap();
        let input = function(&db, item).as_ref().unwrap();
        let pieces = [Piece { item, input, code, place: Some((0, 32)) }];
        let target = Target::of(Sm::new(90)).unwrap();
        let debug = read(&db, file, &module(&db, file).env, target, Linking::Joined, &pieces).unwrap();
        assert_eq!(debug.sections[0].bytes, [65, 0, 66, 0]);
        let DebugSection { name, bytes, references } = &debug.sections[1];
        assert_eq!(name, ".debug_info");
        let section = |name: &str, offset| Referred::Section { name: name.into(), offset };
        let to: Vec<&Referred> = references.iter().map(|reference| &reference.to).collect();
        let end = code.code.len() as u64 * 16 + 32;
        let Referred::Code { function: 0, offset } = *to[4] else { panic!("{to:?}") };
        assert!(32 < offset && offset < end, "{offset}");
        assert_eq!(
            to,
            [
                &section(".debug_str", 2),
                &section(".debug_str", 0),
                &section(".debug_line", 0),
                &Referred::Code { function: 0, offset: 32 },
                to[4],
                &Referred::Code { function: 0, offset: end },
                &Referred::Variable(0),
            ]
        );
        // A parameter in the constant bank, a variable below the end of the frame, and a variable without a known
        // place.
        assert_eq!(bytes[44..53], [3, 0x18, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[53..64], [FRAME, 0x70, 0x96, 0x96, 0x96, 0x96, 0x96, 0x96, 0x96, 35, 4]);
        assert_eq!(bytes[64..73], [NOTHING; 9]);
        assert_eq!(bytes[81..], [0xfe, 0xff]);
    }
}
