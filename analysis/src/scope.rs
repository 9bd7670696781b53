//! Names in a function body: nested blocks, register ranges, shadowing.
//!
//! Each block opens a scope. A name is visible from its declaration to the end of its block, and hides names of outer
//! blocks. Labels are visible in their whole block and the blocks inside, so they are declared when the block opens.
//! `%r<100>` declares a hundred names at once. It is stored as one declaration, and a register gets its number when it
//! is first mentioned, so unmentioned registers cost nothing.

use ptx_backend::input::{LabelId, RegId, Symbol};
use ptx_isa::ScalarType;
use rustc_hash::FxHashMap;
use text_size::TextRange;

/// An index in [`Names::declarations`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeclId(pub u32);

/// A declaration of a name in a body. Ranges are relative to the item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The name, without the `<count>` of a range.
    pub range: TextRange,
    /// The range in which the name is visible. It ends with the block.
    pub visible: TextRange,
    pub kind: DeclKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeclKind {
    /// With a `count`, the names `name0`, `name1`, … of a range `name<count>`. Each name has `lanes` registers; more
    /// than one if it is a vector.
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

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Entity {
    Register(RegId),
    Label(LabelId),
    Symbol(Symbol),
    Targets(u32),
    Prototype(u32),
}

/// The declaration of a register, and the register's place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegisterName {
    pub declaration: DeclId,
    /// The register's number in a declared range.
    pub number: Option<u32>,
    /// The register's component in a declared vector.
    pub lane: u8,
    pub ty: ScalarType,
}

/// The largest range whose register numbers are stored in a vector. Those of larger ranges are in a map.
const DENSE: u32 = 1 << 16;

/// The largest size of the vector. Compilers use all registers of a range, but a text could declare many and use few.
const MOST_DENSE: usize = 1 << 20;

/// Where the register numbers of a declaration are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// No register has been mentioned yet.
    None,
    /// In the vector, from this index on.
    Dense(u32),
    /// In the map.
    Sparse,
}

/// Stands for "not in the vector".
const NOWHERE: u32 = u32::MAX;

/// A map with a larger capacity is not reused for the next item, which may be small but would have to clear it.
const KEPT: usize = 1 << 10;

#[derive(Default)]
struct Scope<'t> {
    names: FxHashMap<&'t str, DeclId>,
    ranges: FxHashMap<&'t str, DeclId>,
    /// The [`stem_bit`]s of all names. Most scopes contain no name with the bit that is searched for.
    stems: u64,
}

impl Scope<'_> {
    fn clear(&mut self) {
        clear(&mut self.names);
        clear(&mut self.ranges);
        self.stems = 0;
    }
}

/// Empties a map for reuse.
pub(crate) fn clear<K, V>(map: &mut FxHashMap<K, V>) {
    if map.capacity() > KEPT {
        *map = FxHashMap::default();
    } else {
        map.clear();
    }
}

/// A bit, one of 64, for the stem of a name. A name consists of its stem and the digits at its end, and all
/// declarations that it can refer to have the same stem.
fn stem_bit(stem: &str) -> u64 {
    let end = match stem.as_bytes().last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => stem.bytes().fold(0, |bytes, byte| bytes << 8 | u64::from(byte)),
    };
    1 << ((end ^ stem.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
}

/// A name such as `%rd12`: a short stem without digits, and a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbered {
    /// The bytes after the `%`, the first one in the lowest bits, padded with zeros.
    stem: u64,
    number: u32,
}

impl Numbered {
    /// Parses the name of a register.
    ///
    /// Half of a program consists of such names. A loop over the bytes would end with a branch that no processor
    /// predicts, so this function has no loop.
    fn of(name: &str) -> Option<Self> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x80 * ONES;
        let name = name.as_bytes().strip_prefix(b"%")?;
        let mut bytes = [0; 8];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        let bytes = u64::from_le_bytes(bytes);
        // Adding a constant to bytes below 0x80 sets the high bit of each byte that is at least 0x80 minus the
        // constant.
        let values = bytes ^ (u64::from(b'0') * ONES);
        let no_digit = (values + 0x76 * ONES) & HIGH;
        let stem_bits = (!no_digit & HIGH).trailing_zeros() & !7;
        let in_stem = 1u64.checked_shl(stem_bits)? - 1;
        let digit_bits = (no_digit >> stem_bits).trailing_zeros().min(64 - stem_bits) & !7;
        let is_all = (stem_bits + digit_bits) as usize == 8 * name.len();
        if stem_bits == 0 || !is_all || !bytes.to_le_bytes().is_ascii() {
            return None;
        }
        // Zeros are added before the number. Then each step joins pairs of digits, of two-digit numbers and of
        // four-digit numbers.
        let number = (values >> stem_bits) << (64 - digit_bits);
        let number = (number.wrapping_mul(10) + (number >> 8)) & 0x00FF_00FF_00FF_00FF;
        let number = (number.wrapping_mul(100) + (number >> 16)) & 0x0000_FFFF_0000_FFFF;
        let number = (number.wrapping_mul(10_000) + (number >> 32)) as u32;
        Some(Self { stem: bytes & in_stem, number })
    }
}

/// Recently used ranges of registers, by stem. An entry is valid until a scope closes or a name with its stem is
/// declared.
struct Recent {
    ranges: [Range; Self::SLOTS],
    /// The [`stem_bit`]s of all entries. Zero while no slot is in use.
    stems: u64,
}

#[derive(Clone, Copy)]
struct Range {
    stem: u64,
    declaration: DeclId,
    /// The range contains the numbers below this one.
    count: u32,
    /// The index in the vector of register numbers, or [`NOWHERE`].
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

/// The open scopes and all declarations so far.
#[derive(Default)]
pub struct Names<'t> {
    scopes: Vec<Scope<'t>>,
    /// Empty scopes for reuse.
    closed: Vec<Scope<'t>>,
    pub declarations: Vec<Declaration>,
    pub registers: Vec<RegisterName>,
    pub labels: Vec<DeclId>,
    /// Where the register numbers of each declaration are stored.
    numbers: Vec<Numbers>,
    /// Register numbers plus one. Zero means that the register has no number yet.
    dense: Vec<u32>,
    sparse: FxHashMap<(DeclId, u32), u32>,
    recent: Recent,
}

impl<'t> Names<'t> {
    pub fn open(&mut self) {
        self.scopes.push(self.closed.pop().unwrap_or_default());
    }

    /// Closes the innermost scope. Its names are no longer visible.
    pub fn close(&mut self) {
        self.recent.clear();
        if let Some(mut scope) = self.scopes.pop() {
            scope.clear();
            self.closed.push(scope);
        }
    }

    /// Closes all scopes and removes all declarations.
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

    /// Declares `name` in the innermost scope. Returns the earlier declaration of this name in the scope, if there is
    /// one; the later one then takes effect.
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
        // Without a name that has this stem, this is the first declaration.
        if !has_stem {
            if let Some(stem) = short_stem(name) {
                self.remember_range(stem, bit, id);
            }
            return (id, None);
        }
        (id, previous.or_else(|| self.clash(name, id, ranged)))
    }

    /// An earlier declaration in the innermost scope that shares a name with `id`, where one of the two is a range and
    /// the other is not. Labels may have names of a register range.
    fn clash(&self, name: &str, id: DeclId, ranged: bool) -> Option<DeclId> {
        let scope = self.scopes.last()?;
        let is_label = |id: DeclId| matches!(self.declarations[id.0 as usize].kind, DeclKind::Label(_));
        if ranged {
            // A range after single names, such as `%r<4>` after `%r1`, is rare. So only here the single names of the
            // scope are compared one by one.
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

    /// Finds the declaration of `name`, innermost scope first, and the number of `name` in a range. The number may have
    /// leading zeros.
    pub fn find(&self, name: &str) -> Option<(DeclId, Option<u32>)> {
        let stem = stem(name);
        let bit = stem_bit(stem);
        // All digits at the end are the number. So the names of a range whose own name ends in digits cannot be found.
        let number: Option<u32> = name[stem.len()..].parse().ok();
        self.scopes.iter().rev().filter(|scope| scope.stems & bit != 0).find_map(|scope| {
            let in_range = number.and_then(|number| {
                let &id = scope.ranges.get(stem)?;
                (number < self.range_count(id)?).then_some((id, Some(number)))
            });
            in_range.or_else(|| scope.names.get(name).map(|&id| (id, None)))
        })
    }

    /// Remembers the result of `find` for a name, if all names with its stem belong to the same range.
    fn remember(&mut self, name: &str, declaration: DeclId) {
        let stem = stem(name);
        let Some(short) = short_stem(stem) else { return };
        let bit = stem_bit(stem);
        // A scope inside that of the range may have names with this stem that hide some of the range's names.
        let nearest = self.scopes.iter().rev().find(|scope| scope.stems & bit != 0);
        if nearest.is_some_and(|scope| scope.ranges.get(stem) == Some(&declaration)) {
            self.remember_range(short, bit, declaration);
        }
    }

    /// Remembers the declaration for a stem, if it is a range of scalar registers.
    fn remember_range(&mut self, stem: u64, stem_bit: u64, declaration: DeclId) {
        let kind = self.declarations[declaration.0 as usize].kind;
        if let DeclKind::Register { ty, count: Some(count), lanes: 1 } = kind {
            self.recent.set(Range { stem, declaration, count, dense: NOWHERE, ty }, stem_bit);
        }
    }

    /// The scalar register that a name refers to.
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

    /// The register of a numbered name whose stem is remembered.
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

    /// A register of a declaration. It gets its number when it is first mentioned.
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

    /// The place where a register's number is stored, and the type of the register.
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

    /// All names visible now, for suggestions. Of a range, only its name without number.
    pub fn visible(&self) -> impl Iterator<Item = (&'t str, DeclId)> + '_ {
        self.scopes.iter().rev().flat_map(|scope| {
            // In no particular order. Callers sort by distance and then by text.
            scope.names.iter().chain(&scope.ranges).map(|(&name, &id)| (name, id))
        })
    }
}

/// Splits `%r12` into `%r` and 12. `None` if there are no digits, or leading zeros, or if the number exceeds 32 bits.
pub fn split_number(name: &str) -> Option<(&str, u32)> {
    let digits = digits(name);
    let (prefix, number) = name.split_at(name.len() - digits);
    if digits == 0 || digits > 10 || (digits > 1 && number.starts_with('0')) || prefix.is_empty() {
        return None;
    }
    Some((prefix, number.parse().ok()?))
}

/// A name without the digits at its end.
fn stem(name: &str) -> &str {
    &name[..name.len() - digits(name)]
}

/// The stem of a range's names in the form of [`Numbered`], if it is short enough.
fn short_stem(name: &str) -> Option<u64> {
    let letters = name.strip_prefix('%')?.as_bytes();
    let is_short = matches!(letters.len(), 1..8) && letters.iter().all(u8::is_ascii_alphabetic);
    is_short.then(|| letters.iter().rev().fold(0, |stem, &letter| stem << 8 | u64::from(letter)))
}

/// The number of digits at the end of a name.
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
        // All digits belong to the number.
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
        // A number outside of the range; another stem in the same slot.
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
        // Some names of the range are declared already.
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
