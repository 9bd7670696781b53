//! Names of a function body: nested blocks, register ranges, shadowing.
//!
//! A block opens a scope; a name is visible from its declaration to the end of its block and hides outer ones.
//! Labels are visible in their whole block and the blocks inside, so they are declared when the block opens.
//! `%r<100>` declares a hundred names at once: it is kept as one declaration and a register gets its number
//! when it is first mentioned, so unmentioned registers cost nothing.

use ptx_backend::input::{LabelId, RegId, Symbol};
use ptx_isa::ScalarType;
use rustc_hash::FxHashMap;
use text_size::TextRange;

/// Index into [`Names::declarations`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeclId(pub u32);

/// A name that a body declares. Ranges are relative to the item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The name, without the `<count>` of a range.
    pub range: TextRange,
    /// Where the name is visible; ends with the block.
    pub visible: TextRange,
    pub kind: DeclKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeclKind {
    /// `count` names `name0`, `name1`, … where written `name<count>`; `lanes` registers each, 1 unless a vector.
    Register {
        ty: ScalarType,
        count: Option<u32>,
        lanes: u8,
    },
    Label(LabelId),
    Symbol(Symbol),
    /// `.branchtargets` or `.calltargets`.
    Targets(u32),
    /// `.callprototype`.
    Prototype(u32),
}

/// What a name means.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Entity {
    Register(RegId),
    Label(LabelId),
    Symbol(Symbol),
    Targets(u32),
    Prototype(u32),
}

/// Where a register comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegisterName {
    pub declaration: DeclId,
    /// Its number in a declared range.
    pub number: Option<u32>,
    /// Its component of a declared vector.
    pub lane: u8,
    pub ty: ScalarType,
}

/// Ranges up to this size keep their numbers in a vector, larger ones in a map.
const DENSE: u32 = 1 << 16;

/// Most of what the vector holds: compilers mention all of a range, but a text could declare a lot and mention little.
const MOST_DENSE: usize = 1 << 20;

/// Where the numbers of the registers of a declaration are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// None is mentioned so far.
    None,
    /// From here on in the vector.
    Dense(u32),
    /// In the map.
    Sparse,
}

/// No place in the vector.
const NOWHERE: u32 = u32::MAX;

/// What held more than this is not kept for the next item, which may be small and has to clear it.
const KEPT: usize = 1 << 10;

#[derive(Default)]
struct Scope<'t> {
    names: FxHashMap<&'t str, DeclId>,
    ranges: FxHashMap<&'t str, DeclId>,
    /// The [`stem_bit`]s of all of them: most scopes have nothing like the name that is looked for.
    stems: u64,
}

impl Scope<'_> {
    fn clear(&mut self) {
        clear(&mut self.names);
        clear(&mut self.ranges);
        self.stems = 0;
    }
}

/// Makes a map empty that is used again.
pub(crate) fn clear<K, V>(map: &mut FxHashMap<K, V>) {
    if map.capacity() > KEPT {
        *map = FxHashMap::default();
    } else {
        map.clear();
    }
}

/// A name is its stem and the digits at its end. All that it can mean is declared with this stem. This gives one of
/// 64 bits for each stem.
fn stem_bit(stem: &str) -> u64 {
    let end = match stem.as_bytes().last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => stem.bytes().fold(0, |bytes, byte| bytes << 8 | u64::from(byte)),
    };
    1 << ((end ^ stem.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
}

/// `%rd12`: a name of a short stem without digits, and a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbered {
    /// The bytes after the `%`, the first one lowest, and zeros.
    stem: u64,
    number: u32,
}

impl Numbered {
    /// Reads the name of a register.
    ///
    /// Half of a program are such names. A loop over their bytes ends where no processor expects it; this has none.
    fn of(name: &str) -> Option<Self> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x80 * ONES;
        let name = name.as_bytes().strip_prefix(b"%")?;
        let mut bytes = [0; 8];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        let bytes = u64::from_le_bytes(bytes);
        // Of each byte below 0x80 the high bit of a sum says whether it is at least 0x80 less the constant.
        let values = bytes ^ (u64::from(b'0') * ONES);
        let no_digit = (values + 0x76 * ONES) & HIGH;
        let stem_bits = (!no_digit & HIGH).trailing_zeros() & !7;
        let in_stem = 1u64.checked_shl(stem_bits)? - 1;
        let digit_bits = (no_digit >> stem_bits).trailing_zeros().min(64 - stem_bits) & !7;
        let is_all = (stem_bits + digit_bits) as usize == 8 * name.len();
        if stem_bits == 0 || !is_all || !bytes.to_le_bytes().is_ascii() {
            return None;
        }
        // The number with zeros before it; then two, four and eight digits become one.
        let number = (values >> stem_bits) << (64 - digit_bits);
        let number = (number.wrapping_mul(10) + (number >> 8)) & 0x00FF_00FF_00FF_00FF;
        let number = (number.wrapping_mul(100) + (number >> 16)) & 0x0000_FFFF_0000_FFFF;
        let number = (number.wrapping_mul(10_000) + (number >> 32)) as u32;
        Some(Self { stem: bytes & in_stem, number })
    }
}

/// Ranges of registers by their stems, as long as no scope closes and nothing of their stems is declared.
struct Recent {
    ranges: [Range; Self::SLOTS],
    /// The [`stem_bit`]s of all of them; none where there are no ranges.
    stems: u64,
}

#[derive(Clone, Copy)]
struct Range {
    stem: u64,
    declaration: DeclId,
    /// Numbers below it are in the range.
    count: u32,
    /// Where its registers are numbered, or [`NOWHERE`].
    dense: u32,
    ty: ScalarType,
}

impl Recent {
    const SLOTS: usize = 16;

    fn slot(stem: u64) -> usize {
        (stem.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize % Self::SLOTS
    }

    #[inline]
    fn get(&mut self, numbered: Numbered) -> Option<&mut Range> {
        let range = &mut self.ranges[Self::slot(numbered.stem)];
        (range.stem == numbered.stem && numbered.number < range.count).then_some(range)
    }

    fn set(&mut self, range: Range, stem_bit: u64) {
        self.ranges[Self::slot(range.stem)] = range;
        self.stems |= stem_bit;
    }

    fn clear(&mut self) {
        if self.stems != 0 {
            *self = Self::default();
        }
    }
}

impl Default for Recent {
    fn default() -> Self {
        let none = Range { stem: 0, declaration: DeclId(0), count: 0, dense: NOWHERE, ty: ScalarType::B32 };
        Self { ranges: [none; Self::SLOTS], stems: 0 }
    }
}

/// The scopes that are open and everything declared so far.
#[derive(Default)]
pub struct Names<'t> {
    scopes: Vec<Scope<'t>>,
    /// Empty ones, to be used again.
    closed: Vec<Scope<'t>>,
    pub declarations: Vec<Declaration>,
    pub registers: Vec<RegisterName>,
    pub labels: Vec<DeclId>,
    /// Where the registers of each declaration are numbered.
    numbers: Vec<Numbers>,
    /// Registers plus one; zero is not numbered yet.
    dense: Vec<u32>,
    sparse: FxHashMap<(DeclId, u32), u32>,
    recent: Recent,
}

impl<'t> Names<'t> {
    pub fn open(&mut self) {
        self.scopes.push(self.closed.pop().unwrap_or_default());
    }

    /// Ends the innermost scope: its names stop being visible.
    pub fn close(&mut self) {
        self.recent.clear();
        if let Some(mut scope) = self.scopes.pop() {
            scope.clear();
            self.closed.push(scope);
        }
    }

    /// Closes all scopes and forgets everything declared.
    pub fn clear(&mut self) {
        while !self.scopes.is_empty() {
            self.close();
        }
        self.declarations.clear();
        self.registers.clear();
        self.labels.clear();
        self.numbers.clear();
        self.dense.clear();
        clear(&mut self.sparse);
        self.recent.clear();
    }

    /// Declares `name` in the innermost scope. Gives the earlier declaration of the same name there, if any;
    /// the later one then wins.
    pub fn declare(&mut self, name: &'t str, declaration: Declaration) -> (DeclId, Option<DeclId>) {
        let id = DeclId(self.declarations.len() as u32);
        let ranged = matches!(declaration.kind, DeclKind::Register { count: Some(_), .. });
        if let DeclKind::Label(label) = declaration.kind {
            debug_assert_eq!(label.0 as usize, self.labels.len());
            self.labels.push(id);
        }
        self.declarations.push(declaration);
        self.numbers.push(Numbers::None);
        let Some(scope) = self.scopes.last_mut() else { return (id, None) };
        let bit = stem_bit(stem(name));
        if self.recent.stems & bit != 0 {
            self.recent.clear();
        }
        let has_stem = scope.stems & bit != 0;
        scope.stems |= bit;
        let map = if ranged { &mut scope.ranges } else { &mut scope.names };
        let previous = map.insert(name, id);
        // Without names of its stem there is none like it.
        if !has_stem {
            if let Some(stem) = short_stem(name) {
                self.remember_range(stem, bit, id);
            }
            return (id, None);
        }
        (id, previous.or_else(|| self.clash(name, id, ranged)))
    }

    /// A declaration of the other kind in the innermost scope that already covers a name of `id`. Labels may be called
    /// like registers of a range.
    fn clash(&self, name: &str, id: DeclId, ranged: bool) -> Option<DeclId> {
        let scope = self.scopes.last()?;
        let is_label = |id: DeclId| matches!(self.declarations[id.0 as usize].kind, DeclKind::Label(_));
        if ranged {
            // `%r<4>` after `%r1`: rare, so the few plain names of the scope are tried one by one only here.
            let count = self.range_count(id).filter(|&count| count <= 64)?;
            let clashing = |number| scope.names.get(format!("{name}{number}").as_str()).copied();
            return (0..count).filter_map(clashing).find(|&other| !is_label(other));
        }
        if is_label(id) {
            return None;
        }
        let (prefix, number) = split_number(name)?;
        let range = *scope.ranges.get(prefix)?;
        (number < self.range_count(range)?).then_some(range)
    }

    fn range_count(&self, id: DeclId) -> Option<u32> {
        match self.declarations[id.0 as usize].kind {
            DeclKind::Register { count, .. } => count,
            _ => None,
        }
    }

    /// Finds the declaration of `name`, innermost scope first, and its number in a range. A number may be
    /// written with leading zeros.
    pub fn find(&self, name: &str) -> Option<(DeclId, Option<u32>)> {
        let stem = stem(name);
        let bit = stem_bit(stem);
        // All digits are the number: of a range whose name ends in digits there is nothing to mention.
        let number: Option<u32> = name[stem.len()..].parse().ok();
        self.scopes.iter().rev().filter(|scope| scope.stems & bit != 0).find_map(|scope| {
            let in_range = number.and_then(|number| {
                let &id = scope.ranges.get(stem)?;
                (number < self.range_count(id)?).then_some((id, Some(number)))
            });
            in_range.or_else(|| scope.names.get(name).map(|&id| (id, None)))
        })
    }

    /// Remembers what `find` gave for a name, if all names of its stem mean the same range.
    fn remember(&mut self, name: &str, declaration: DeclId) {
        let stem = stem(name);
        let Some(short) = short_stem(stem) else { return };
        let bit = stem_bit(stem);
        // Scopes further in than that of the range might have names of this stem that hide some of it.
        let nearest = self.scopes.iter().rev().find(|scope| scope.stems & bit != 0);
        if nearest.is_some_and(|scope| scope.ranges.get(stem) == Some(&declaration)) {
            self.remember_range(short, bit, declaration);
        }
    }

    /// Remembers what names of a stem mean, if that is a range of scalars.
    fn remember_range(&mut self, stem: u64, stem_bit: u64, declaration: DeclId) {
        let kind = self.declarations[declaration.0 as usize].kind;
        if let DeclKind::Register { ty, count: Some(count), lanes: 1 } = kind {
            self.recent.set(Range { stem, declaration, count, dense: NOWHERE, ty }, stem_bit);
        }
    }

    /// What a name means, if it is that of a scalar register.
    #[inline]
    pub fn scalar(&mut self, name: &str) -> Option<RegId> {
        if let Some(found) = Numbered::of(name).and_then(|numbered| self.recall(numbered)) {
            return Some(found);
        }
        let (declaration, number) = self.find(name)?;
        let DeclKind::Register { lanes: 1, .. } = self.declarations[declaration.0 as usize].kind else {
            return None;
        };
        self.remember(name, declaration);
        Some(self.register(declaration, number, 0))
    }

    /// The register that a numbered name means, where its stem is remembered.
    #[inline]
    fn recall(&mut self, numbered: Numbered) -> Option<RegId> {
        let range = self.recent.get(numbered)?;
        let (declaration, number, ty) = (range.declaration, Some(numbered.number), range.ty);
        let Some(cell) = self.dense.get_mut(range.dense as usize + numbered.number as usize) else {
            let register = self.register(declaration, number, 0);
            if let (Some(range), Numbers::Dense(start)) =
                (self.recent.get(numbered), self.numbers[declaration.0 as usize])
            {
                range.dense = start;
            }
            return Some(register);
        };
        if *cell == 0 {
            *cell = self.registers.len() as u32 + 1;
            self.registers.push(RegisterName { declaration, number, lane: 0, ty });
        }
        Some(RegId(*cell - 1))
    }

    /// A register of a declaration, numbered on first mention.
    pub fn register(&mut self, declaration: DeclId, number: Option<u32>, lane: u8) -> RegId {
        let next = self.registers.len() as u32;
        let (cell, ty) = self.cell(declaration, number, lane);
        if *cell == 0 {
            *cell = next + 1;
            self.registers.push(RegisterName { declaration, number, lane, ty });
            return RegId(next);
        }
        RegId(*cell - 1)
    }

    /// Where a register is numbered, and its type.
    fn cell(&mut self, declaration: DeclId, number: Option<u32>, lane: u8) -> (&mut u32, ScalarType) {
        let DeclKind::Register { ty, lanes, count } = self.declarations[declaration.0 as usize].kind else {
            unreachable!("only registers are numbered");
        };
        let lanes = u32::from(lanes);
        let slot = number.unwrap_or(0).saturating_mul(lanes).saturating_add(u32::from(lane));
        let numbers = &mut self.numbers[declaration.0 as usize];
        if *numbers == Numbers::None {
            let (start, all) = (self.dense.len(), count.unwrap_or(1).saturating_mul(lanes));
            *numbers = if all <= DENSE && start + all as usize <= MOST_DENSE {
                self.dense.resize(start + all as usize, 0);
                Numbers::Dense(start as u32)
            } else {
                Numbers::Sparse
            };
        }
        let cell = match *numbers {
            Numbers::Dense(start) => &mut self.dense[(start + slot) as usize],
            _ => self.sparse.entry((declaration, slot)).or_default(),
        };
        (cell, ty)
    }

    /// Every name visible now, for suggestions: ranges give their first names.
    pub fn visible(&self) -> impl Iterator<Item = (&'t str, DeclId)> + '_ {
        self.scopes.iter().rev().flat_map(|scope| {
            // In no particular order: callers choose by distance and then by text.
            scope.names.iter().chain(&scope.ranges).map(|(&name, &id)| (name, id))
        })
    }
}

/// `%r12` is `%r` and 12. `None` without digits, with leading zeros, or beyond 32 bits.
pub fn split_number(name: &str) -> Option<(&str, u32)> {
    let digits = digits(name);
    let (prefix, number) = name.split_at(name.len() - digits);
    if digits == 0 || digits > 10 || (digits > 1 && number.starts_with('0')) || prefix.is_empty() {
        return None;
    }
    Some((prefix, number.parse().ok()?))
}

/// A name without the digits that it ends in.
fn stem(name: &str) -> &str {
    &name[..name.len() - digits(name)]
}

/// The stem of the names of a range, as in [`Numbered`], if it is a short one.
fn short_stem(name: &str) -> Option<u64> {
    let letters = name.strip_prefix('%')?.as_bytes();
    let is_short = matches!(letters.len(), 1..8) && letters.iter().all(u8::is_ascii_alphabetic);
    is_short.then(|| letters.iter().rev().fold(0, |stem, &letter| stem << 8 | u64::from(letter)))
}

/// How many digits a name ends in.
fn digits(name: &str) -> usize {
    name.bytes().rev().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(count: Option<u32>) -> Declaration {
        let range = TextRange::empty(0.into());
        let kind = DeclKind::Register { ty: ScalarType::B32, count, lanes: 1 };
        Declaration { range, visible: range, kind }
    }

    #[test]
    fn ranges_are_numbered_on_first_mention() {
        let mut names = Names::default();
        names.open();
        let (range, _) = names.declare("%r", register(Some(1_000_000)));
        assert_eq!(names.find("%r999999"), Some((range, Some(999_999))));
        assert_eq!(names.find("%r1000000"), None);
        assert_eq!(names.find("%r01"), Some((range, Some(1))));
        assert_eq!(names.find("%r"), None);
        // All digits are the number.
        names.declare("%x1", register(Some(4)));
        assert_eq!(names.find("%x13"), None);
        assert_eq!(names.register(range, Some(999_999), 0), RegId(0));
        assert_eq!(names.register(range, Some(3), 0), RegId(1));
        assert_eq!(names.register(range, Some(999_999), 0), RegId(0));
    }

    #[test]
    fn inner_names_hide_outer_ones() {
        let mut names = Names::default();
        names.open();
        let (outer, _) = names.declare("%r", register(Some(4)));
        names.open();
        let (inner, clash) = names.declare("%r2", register(None));
        assert_eq!(clash, None);
        assert_eq!(names.find("%r2"), Some((inner, None)));
        assert_eq!(names.find("%r1"), Some((outer, Some(1))));
        names.close();
        assert_eq!(names.find("%r2"), Some((outer, Some(2))));
    }

    #[test]
    fn names_are_a_stem_and_a_number() {
        let read = |name: &str| {
            Numbered::of(name).map(|Numbered { stem, number }| {
                let stem = stem.to_le_bytes();
                let length = stem.iter().position(|&byte| byte == 0).unwrap_or(8);
                (std::str::from_utf8(&stem[..length]).unwrap().to_owned(), number)
            })
        };
        let found = |stem: &str, number| Some((stem.to_owned(), number));
        assert_eq!(read("%r1"), found("r", 1));
        assert_eq!(read("%rd12345"), found("rd", 12345));
        assert_eq!(read("%p007"), found("p", 7));
        assert_eq!(read("%Zaz9"), found("Zaz", 9));
        assert_eq!(read("%r987654"), found("r", 987_654));
        assert_eq!(read("%r1234567"), found("r", 1_234_567));
        for other in ["%r12345678", "%p", "r1", "%r1x", "%r1_", "%1r", "%12", "%", "", "%\u{e9}1"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_remembered_is_what_is_found() {
        let numbered = |number| Numbered { stem: b'r'.into(), number };
        let mut names = Names::default();
        names.open();
        let (range, _) = names.declare("%r", register(Some(4)));
        let one = names.register(range, Some(1), 0);
        // Nothing is remembered after the end of a scope.
        names.open();
        names.close();
        assert_eq!(names.recall(numbered(1)), None);
        names.remember("%r1", range);
        assert_eq!(names.recall(numbered(1)), Some(one));
        let two = RegId(1);
        assert_eq!(names.recall(numbered(2)), Some(two));
        // Not in the range; another stem in the same slot.
        assert_eq!(names.recall(numbered(4)), None);
        assert_eq!(names.recall(Numbered { stem: 0, number: 1 }), None);
        // An inner name hides one of them.
        names.open();
        assert_eq!(names.recall(numbered(1)), Some(one));
        names.declare("%r2", register(None));
        assert_eq!(names.recall(numbered(1)), None);
        names.remember("%r1", range);
        assert_eq!(names.recall(numbered(2)), None);
        names.close();
        names.remember("%r1", range);
        assert_eq!(names.recall(numbered(2)), Some(two));
    }

    #[test]
    fn ranges_are_remembered_when_they_are_declared() {
        let numbered = |number| Numbered { stem: u64::from_le_bytes(*b"rd\0\0\0\0\0\0"), number };
        let mut names = Names::default();
        names.open();
        let (outer, _) = names.declare("%rd", register(Some(4)));
        names.declare("%r", register(Some(4)));
        let one = names.recall(numbered(1)).unwrap();
        assert_eq!((one, None), (names.register(outer, Some(1), 0), names.recall(numbered(4))));
        names.open();
        let (inner, _) = names.declare("%rd", register(Some(2)));
        let other = names.recall(numbered(1)).unwrap();
        assert_eq!((other, None), (names.register(inner, Some(1), 0), names.recall(numbered(2))));
        names.close();
        assert_eq!(names.recall(numbered(1)), None);
        // Names that a range may mean are there already.
        names.open();
        names.declare("%rd3", register(None));
        names.declare("%rd", register(Some(4)));
        assert_eq!(names.recall(numbered(1)), None);
    }

    #[test]
    fn clashes_within_a_scope() {
        let mut names = Names::default();
        names.open();
        let (range, _) = names.declare("%r", register(Some(4)));
        assert_eq!(names.declare("%r3", register(None)).1, Some(range));
        assert_eq!(names.declare("%r4", register(None)).1, None);
        let (plain, _) = names.declare("%f1", register(None));
        assert_eq!(names.declare("%f", register(Some(2))).1, Some(plain));
    }
}
