//! Reading an instruction: its operands, and its shape.
//!
//! A shape is everything about an instruction that the checks look at, as bytes: the dotted name as written, and for
//! each operand its punctuation and what its names are, such as the type of a register or the place of a variable.
//! Constants are in it by their kind; their values are kept apart, since few instructions care. The offset of an
//! address is left out: no check looks at it. Which register, variable or label a name means does not matter.
//!
//! Only what is written as compilers write it has a shape: calls aside on one line, without comments, with plain
//! constants. Reading gives `None` for everything else.

use ptx_backend::input::{Address, AddressBase, Guard, Linkage, Operand, RegId, Symbol};
use ptx_isa::{ScalarType, SpecialReg};
use ptx_syntax::ast::literal::WARP_SIZE;
use text_size::TextRange;

use super::plain::Body;
use crate::check::Place;
use crate::constant::{Value, literal_value};
use crate::declaration::Shape;
use crate::ide::Access;
use crate::module::Global;
use crate::scope::{DeclKind, Entity, Numbered};

/// What a byte may be in a name, as bits.
const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            b'_' | b'$' => MARK,
            b'.' | b':' => JOINT,
            _ => 0,
        };
        byte += 1;
    }
    table
};

const DIGIT: u8 = 1;
const LETTER: u8 = 2;
/// Behind it there must be more where a name starts with it.
const MARK: u8 = 4;
/// Between the words of a mnemonic.
const JOINT: u8 = 8;
const WORD: u8 = DIGIT | LETTER | MARK;

/// A byte that continues a name.
pub(super) const fn is_word(byte: u8) -> bool {
    CLASS[byte as usize] & WORD != 0
}

/// How many bytes from `pos` on are in the classes.
fn run(bytes: &[u8], pos: usize, classes: u8) -> usize {
    let rest = bytes.get(pos..).unwrap_or_default();
    rest.iter().position(|&byte| CLASS[byte as usize] & classes == 0).unwrap_or(rest.len())
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

/// How many of eight bytes of ASCII, from the first one, which is lowest, continue a dotted name.
fn dotted(bytes: u64) -> usize {
    // Of each byte below 0x80 the high bit of a sum says whether it is at least 0x80 less the constant.
    let between = |bytes: u64, first: u8, last: u8| {
        (bytes + u64::from(0x80 - first) * ONES) & !(bytes + u64::from(0x7F - last) * ONES)
    };
    let equal = |byte: u8| !((bytes ^ (u64::from(byte) * ONES)) + 0x7F * ONES);
    let letter = between(bytes | (0x20 * ONES), b'a', b'z');
    // Between `.` and `:` there are the digits and `/`.
    let digit_or_joint = between(bytes, b'.', b':') & !equal(b'/');
    let others = !(letter | digit_or_joint | equal(b'_') | equal(b'$')) & HIGH;
    others.trailing_zeros() as usize / 8
}

/// The end of the dotted name at `pos`.
fn dotted_end(bytes: &[u8], mut pos: usize) -> usize {
    while let Some(window) = bytes.get(pos..).and_then(<[u8]>::first_chunk) {
        let length = dotted(u64::from_le_bytes(*window));
        pos += length;
        if length < window.len() {
            return pos;
        }
    }
    pos + run(bytes, pos, WORD | JOINT)
}

/// Letters, digits, and what ends a name, in eight bytes of ASCII with the first one lowest: how many of them are the
/// name, and its parts. `None` for names of another kind, and where no end is in sight.
///
/// Half of a program are names of registers. A loop over their bytes ends where no processor expects it; this has no
/// loops.
fn numbered(bytes: u64) -> Option<(usize, Numbered)> {
    // As above.
    let values = bytes ^ (u64::from(b'0') * ONES);
    let no_digit = (values + 0x76 * ONES) & HIGH;
    let small = bytes | (0x20 * ONES);
    let letter = (small + 0x1F * ONES) & !(small + 0x05 * ONES) & HIGH;

    let stem_bits = (!no_digit & HIGH).trailing_zeros() & !7;
    let in_stem = 1u64.checked_shl(stem_bits)? - 1;
    let behind = no_digit.checked_shr(stem_bits).filter(|&behind| behind != 0)?;
    let digit_bits = behind.trailing_zeros() & !7;
    let end = (bytes >> (stem_bits + digit_bits)) as u8;
    if stem_bits == 0 || !letter & HIGH & in_stem != 0 || is_word(end) || end == b'.' {
        return None;
    }
    // The number with zeros before it; then two, four and eight digits become one.
    let number = (values >> stem_bits) << (64 - digit_bits);
    let number = (number.wrapping_mul(10) + (number >> 8)) & 0x00FF_00FF_00FF_00FF;
    let number = (number.wrapping_mul(100) + (number >> 16)) & 0x0000_FFFF_0000_FFFF;
    let number = (number.wrapping_mul(10_000) + (number >> 32)) as u32;
    let length = (stem_bits + digit_bits) as usize / 8;
    Some((length, Numbered { stem: bytes & in_stem, number }))
}

/// The length of the comment at the start of a text.
pub(super) fn comment_len(text: &str) -> Option<usize> {
    match text.as_bytes().get(1)? {
        b'/' => Some(memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len())),
        b'*' => Some(text[2..].find("*/")? + 4),
        _ => None,
    }
}

impl<'db> Body<'_, 'db> {
    /// The byte at the cursor; zero at the end.
    pub(super) fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.pos).copied().unwrap_or(0)
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.byte() == byte;
        self.pos += usize::from(found);
        found
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.byte(), b' ' | b'\t') {
            self.pos += 1;
        }
    }

    /// What stands behind something and blanks.
    fn mark(&mut self) -> u8 {
        let byte = self.byte();
        if byte > b' ' {
            return byte;
        }
        self.skip_blanks();
        self.byte()
    }

    /// Skips blanks, lines and comments.
    pub(super) fn skip_trivia(&mut self) -> Option<()> {
        loop {
            match self.byte() {
                b' ' | b'\t' | b'\n' | b'\r' => self.pos += 1,
                b'/' => self.pos += comment_len(&self.text[self.pos..])?,
                _ => return Some(()),
            }
        }
    }

    /// A name, or the word behind a dot.
    pub(super) fn word(&mut self) -> Option<&'db str> {
        let start = self.pos;
        let first = self.byte();
        let is_letter = CLASS[first as usize] & LETTER != 0;
        if !is_letter && !matches!(first, b'%' | b'_' | b'$') {
            return None;
        }
        self.pos += 1 + run(self.text.as_bytes(), start + 1, WORD);
        // The marks begin a name, and are none; and one word is a number.
        let word = &self.text[start..self.pos];
        (is_letter || word.len() > 1).then_some(word).filter(|&word| word != WARP_SIZE)
    }

    /// The register name at the cursor, where it is short: `%rd12`. The cursor goes behind it.
    fn numbered(&mut self) -> Option<Numbered> {
        let window = self.text.as_bytes().get(self.pos..self.pos + 9)?;
        let (b'%', rest) = window.split_first()? else { return None };
        let (length, numbered) = numbered(u64::from_le_bytes(rest.try_into().ok()?))?;
        self.pos += 1 + length;
        Some(numbered)
    }

    /// Reads the instruction at the cursor, with its semicolon. Gives its guard; its operands are then in
    /// `self.operands`, where all methods below put what they read: handing them over would be most of the work.
    pub(super) fn read_instruction(&mut self) -> Option<Option<Guard>> {
        self.operands.clear();
        let mut guard = None;
        if self.eat(b'@') {
            let negated = self.eat(b'!');
            self.shape.push(if negated { b'!' } else { b'@' });
            self.read_name()?;
            let Some(Operand::Reg(reg)) = self.operands.pop() else { return None };
            guard = Some(Guard { reg, negated });
            self.skip_blanks();
        }
        self.read_name_and_suffixes()?;
        if self.name.starts_with("call") && self.name[4..].starts_with(['.', ':']) || self.name == "call" {
            self.read_call()?;
            return Some(guard);
        }
        self.skip_blanks();
        if self.eat(b';') {
            return Some(guard);
        }
        loop {
            self.skip_blanks();
            self.read_operand()?;
            let mut mark = self.mark();
            if mark == b'|' && self.operands.len() == 1 {
                self.pos += 1;
                self.shape.push(mark);
                self.skip_blanks();
                self.read_simple()?;
                let (second, first) = (self.operands.pop()?, self.operands.pop()?);
                // `d|_` is `d`.
                self.operands.push(match (first, second) {
                    (register @ Operand::Reg(_), Operand::Sink) => register,
                    pair => Operand::Pair(Box::new(pair)),
                });
                mark = self.mark();
            }
            self.pos += 1;
            match mark {
                b',' => self.shape.push(mark),
                b';' => return Some(guard),
                _ => return None,
            }
        }
    }

    /// `ld.shared::cta.b32`. Whether its parts are well joined is looked at with the first of the name. Operands of
    /// video instructions are looked at as text and have no shape.
    fn read_name_and_suffixes(&mut self) -> Option<()> {
        let start = self.pos;
        self.pos = dotted_end(self.text.as_bytes(), start);
        self.name = &self.text[start..self.pos];
        let is_video = self.name.starts_with('v') && !self.name.starts_with("vote.");
        if is_video || !matches!(self.byte(), b' ' | b'\t' | b';') {
            return None;
        }
        self.shape.extend_from_slice(self.name.as_bytes());
        self.shape.push(b' ');
        Some(())
    }

    fn read_operand(&mut self) -> Option<()> {
        match self.byte() {
            b'%' => self.read_name(),
            b'{' => self.read_vector(),
            b'[' => self.read_address(),
            _ => self.read_simple(),
        }
    }

    /// `{%r1, %r2}`
    fn read_vector(&mut self) -> Option<()> {
        self.pos += 1;
        self.shape.push(b'{');
        let first = self.operands.len();
        loop {
            self.skip_blanks();
            self.read_simple()?;
            let mark = self.mark();
            self.shape.push(mark);
            self.pos += 1;
            match mark {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        let elements = self.operands.drain(first..).collect();
        self.operands.push(Operand::Vector(elements));
        Some(())
    }

    /// `[%rd1+16]`, `[%rd1, {%r1, %r2}]`
    fn read_address(&mut self) -> Option<()> {
        self.pos += 1;
        self.shape.push(b'[');
        self.skip_blanks();
        self.read_simple()?;
        self.skip_blanks();
        let mut offset = 0;
        if self.eat(b'+') {
            self.shape.push(b'+');
            self.skip_blanks();
            let is_negative = self.eat(b'-');
            let Operand::Int(value) = self.read_digits()? else { return None };
            offset = if is_negative { value.wrapping_neg() } else { value };
            self.skip_blanks();
        } else if self.byte() == b',' {
            return self.read_parts();
        }
        if !self.eat(b']') || self.byte() == b'.' {
            return None;
        }
        self.shape.push(b']');
        let (base, start) = match self.operands.pop()? {
            Operand::Reg(register) => (AddressBase::Reg(register), 0),
            Operand::Symbol(symbol, start) => (AddressBase::Symbol(symbol), start),
            _ => return None,
        };
        self.operands.push(Operand::Address(Address { base, offset: offset.wrapping_add(start) }));
        Some(())
    }

    /// The other parts of an address, with the comma before them.
    fn read_parts(&mut self) -> Option<()> {
        let first = self.operands.len() - 1;
        while self.eat(b',') {
            self.shape.push(b',');
            self.skip_blanks();
            if self.byte() == b'{' {
                self.read_vector()?
            } else {
                self.read_simple()?
            }
            self.skip_blanks();
        }
        if !self.eat(b']') || self.byte() == b'.' {
            return None;
        }
        self.shape.push(b']');
        let parts = self.operands.drain(first..).collect();
        self.operands.push(Operand::List(parts));
        Some(())
    }

    fn read_simple(&mut self) -> Option<()> {
        let start = self.pos;
        match self.byte() {
            b'0'..=b'9' | b'-' => {
                let is_negative = self.eat(b'-');
                if is_negative {
                    self.shape.push(b'-');
                }
                let constant = self.read_digits()?;
                self.values.extend_from_slice(&self.text.as_bytes()[start..self.pos]);
                self.values.push(b' ');
                let (kind, constant) = match constant {
                    Operand::Int(value) if is_negative => (b'i', Operand::Int(value.wrapping_neg())),
                    Operand::Int(_) => (b'i', constant),
                    _ if is_negative => return None,
                    Operand::F32(_) => (b'f', constant),
                    _ => (b'd', constant),
                };
                self.shape.push(kind);
                self.operands.push(constant);
                Some(())
            }
            b'!' => {
                self.pos += 1;
                self.shape.push(b'!');
                self.read_name()?;
                let Some(Operand::Reg(register)) = self.operands.pop() else { return None };
                self.operands.push(Operand::NotPred(register));
                Some(())
            }
            b'_' if !self.text.as_bytes().get(start + 1).is_some_and(|&byte| is_word(byte)) => {
                self.pos += 1;
                self.shape.push(b'_');
                self.operands.push(Operand::Sink);
                Some(())
            }
            _ => self.read_name(),
        }
    }

    /// A number without a point.
    fn read_digits(&mut self) -> Option<Operand> {
        let start = self.pos;
        let mut value = 0i64;
        let mut is_decimal = true;
        while is_word(self.byte()) {
            let digit = self.byte().wrapping_sub(b'0');
            is_decimal &= digit < 10;
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
            self.pos += 1;
        }
        let text = &self.text[start..self.pos];
        if !text.starts_with(|first: char| first.is_ascii_digit()) || self.byte() == b'.' {
            return None;
        }
        if is_decimal && text.len() < 19 && (text.len() == 1 || !text.starts_with('0')) {
            return Some(Operand::Int(value));
        }
        // `1e5` is none of these.
        if !text.starts_with('0') && !is_decimal {
            return None;
        }
        Some(match literal_value(text)? {
            Value::Int { value, .. } => Operand::Int(value),
            // An integer of too many digits.
            _ if is_decimal => return None,
            Value::F32(bits) => Operand::F32(bits),
            Value::F64(value) => Operand::F64(value.to_bits()),
            _ => return None,
        })
    }

    /// A register, variable or label, as the walk finds it.
    fn read_name(&mut self) -> Option<()> {
        let start = self.pos;
        let numbered = self.numbered();
        if let Some(numbered) = numbered
            && let Some((register, ty)) = self.walker.names.recall(numbered)
        {
            self.push_register(self.range_from(start), register, ty);
            return Some(());
        }
        self.pos = start;
        let name = self.word()?;
        let range = self.range_from(start);
        let has_component = self.eat(b'.');
        if has_component {
            self.word()?;
        }
        if let Some((declaration, number)) = self.walker.names.find(name) {
            match self.walker.names.declarations[declaration.0 as usize].kind {
                DeclKind::Register { ty, lanes: 1, .. } if !has_component => {
                    let register = self.walker.names.register(declaration, number, 0);
                    if let Some(numbered) = numbered {
                        self.walker.names.remember(name, numbered, declaration);
                    }
                    self.push_register(range, register, ty);
                }
                DeclKind::Symbol(symbol) if !has_component => {
                    self.push_variable(range, symbol)?;
                }
                DeclKind::Label(label) if !has_component => {
                    self.shape.push(b'l');
                    self.walker.occur(range, Entity::Label(label), Access::Read);
                    self.operands.push(Operand::Label(label));
                }
                _ => return None,
            }
            return Some(());
        }
        if name.starts_with('%') {
            let register = SpecialReg::parse(&self.text[start..self.pos])?;
            self.shape.extend_from_slice(&[b's', register as u8]);
            self.operands.push(Operand::Special(register));
            return Some(());
        }
        if has_component {
            return None;
        }
        let Global::Variable { index, .. } = self.walker.global(name)? else { return None };
        self.push_variable(range, Symbol::Global(*index))
    }

    fn push_register(&mut self, range: TextRange, register: RegId, ty: ScalarType) {
        self.shape.extend_from_slice(&[b'r', ty as u8]);
        self.walker.occur(range, Entity::Register(register), Access::Read);
        // Made in its place: one that waited for the vector to grow would be written and read again at once, in
        // pieces of other sizes, for which processors stop.
        self.operands.extend(std::iter::once_with(|| Operand::Reg(register)));
    }

    fn push_variable(&mut self, range: TextRange, symbol: Symbol) -> Option<()> {
        let kind = match symbol {
            Symbol::Global(_) => b'g',
            Symbol::Local(_) => b'v',
            Symbol::Param(_) => b'p',
            Symbol::Return(_) => b'q',
            Symbol::Function(_) => return None,
        };
        let &Place { space, ty, is_array, align, .. } = self.walker.variables.get(&symbol)?;
        self.shape.extend_from_slice(&[kind, space as u8, ty as u8, u8::from(is_array)]);
        self.shape.extend_from_slice(&align.to_le_bytes());
        self.walker.occur(range, Entity::Symbol(symbol), Access::Read);
        self.operands.push(Operand::Symbol(symbol, 0));
        Some(())
    }

    /// `(a, b), f, (c, d);` behind the name of a direct call, over several lines.
    fn read_call(&mut self) -> Option<()> {
        self.read_line_breaks();
        if self.byte() == b'(' {
            self.read_arguments()?;
            self.eat(b',').then_some(())?;
            self.shape.push(b',');
            self.read_line_breaks();
        }
        let start = self.pos;
        let name = self.word()?;
        let range = self.range_from(start);
        if self.walker.names.find(name).is_some() {
            return None;
        }
        let Global::Function { index, signature, shapes } = self.walker.global(name)? else { return None };
        if signature.entry || signature.linkage == Linkage::Extern {
            return None;
        }
        for list in [&shapes.returns, &shapes.params] {
            self.shape.push(b':');
            list.iter().for_each(|shape| push_shape(shape, &mut self.shape));
        }
        let symbol = Symbol::Function(*index);
        self.walker.occur(range, Entity::Symbol(symbol), Access::Read);
        self.operands.push(Operand::Symbol(symbol, 0));
        self.read_line_breaks();
        if self.eat(b',') {
            self.shape.push(b',');
            self.read_line_breaks();
            self.read_arguments()?;
        }
        self.eat(b';').then_some(())
    }

    /// A list in parentheses, with the blanks behind it.
    fn read_arguments(&mut self) -> Option<()> {
        self.eat(b'(').then_some(())?;
        self.shape.push(b'(');
        let first = self.operands.len();
        loop {
            self.read_line_breaks();
            self.read_name()?;
            match *self.operands.last()? {
                Operand::Reg(_) => {}
                Operand::Symbol(Symbol::Local(index), _) => {
                    push_shape(self.walker.local_shapes.get(index as usize)?, &mut self.shape);
                }
                _ => return None,
            }
            self.read_line_breaks();
            let mark = self.byte();
            self.shape.push(mark);
            self.pos += 1;
            match mark {
                b',' => {}
                b')' => break,
                _ => return None,
            }
        }
        self.read_line_breaks();
        let arguments = self.operands.drain(first..).collect();
        self.operands.push(Operand::List(arguments));
        Some(())
    }

    /// Blanks and line breaks, which matter to the parser.
    fn read_line_breaks(&mut self) {
        while matches!(self.byte(), b' ' | b'\t' | b'\n') {
            if self.byte() == b'\n' {
                self.shape.push(b'\n');
            }
            self.pos += 1;
        }
    }
}

fn push_shape(declared: &Shape, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'd', declared.space as u8, declared.ty as u8, declared.lanes]);
    out.extend_from_slice(&declared.align.to_le_bytes());
    for dimension in &declared.dimensions {
        out.push(if dimension.is_some() { b'[' } else { b'o' });
        out.extend_from_slice(&dimension.unwrap_or(0).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_names_end_at_other_bytes() {
        for byte in 0..0x80u8 {
            let is_in_name = CLASS[byte as usize] & (WORD | JOINT) != 0;
            for place in 0..8 {
                let mut bytes = *b"ld.v4::a";
                bytes[place] = byte;
                assert_eq!(dotted(u64::from_le_bytes(bytes)), if is_in_name { 8 } else { place }, "{byte}");
            }
        }
        assert_eq!(dotted_end(b"@ld.global.v2.f32\t", 1), 17);
        assert_eq!(dotted_end(b"ret;", 0), 3);
    }

    #[test]
    fn names_are_a_stem_and_a_number() {
        let read = |text: &str| {
            let bytes: [u8; 8] = text.as_bytes().try_into().unwrap();
            numbered(u64::from_le_bytes(bytes)).map(|(length, Numbered { stem, number })| {
                let stem = stem.to_le_bytes();
                let length_of_stem = stem.iter().position(|&byte| byte == 0).unwrap_or(8);
                let stem = std::str::from_utf8(&stem[..length_of_stem]).unwrap().to_owned();
                (length, stem, number)
            })
        };
        let found = |length, stem: &str, number| Some((length, stem.to_owned(), number));
        assert_eq!(read("r1, %r2,"), found(2, "r", 1));
        assert_eq!(read("rd12345;"), found(7, "rd", 12345));
        assert_eq!(read("p007 bra"), found(4, "p", 7));
        assert_eq!(read("Zaz9]\n\t\0"), found(4, "Zaz", 9));
        assert_eq!(read("r987654}"), found(7, "r", 987_654));
        for other in
            ["r1234567", "p, %r12,", "r1.x, %r", "r1x, %r2", "r1_, %r2", "_r1, %r2", "1r, %r2,", "ntid.x1;"]
        {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(read("        "), None);
    }
}
