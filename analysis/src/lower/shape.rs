//! Reading an instruction: its operands, and its shape.
//!
//! A shape is everything about an instruction that the checks look at: the dotted name as written, and for each operand
//! its punctuation and what its names are, such as the type of a register or the place of a variable. Constants are in
//! it by their kind, and as written where the instruction takes some only. The offset of an address is left out: no
//! check looks at it. Which register, variable or label a name means does not matter.
//!
//! Only what is written as compilers write it has a shape: calls aside on one line, without comments, with plain
//! constants. Reading gives `None` for everything else.

use ptx_backend::input::{Address, AddressBase, Guard, Linkage, Operand, RegId, Symbol};
use ptx_isa::{ScalarType, SpecialReg};
use ptx_syntax::ast::literal::WARP_SIZE;
use ptx_syntax::{is_word, word_end};
use text_size::TextRange;

use super::memory::Mnemonic;
use super::plain::Body;
use crate::check::Place;
use crate::constant::{Value, literal_value};
use crate::declaration::Shape;
use crate::ide::Access;
use crate::module::Global;
use crate::scope::{DeclKind, Entity, Numbered};

/// The codes that shapes consist of, one for each name and constant: what it is in the lowest byte, then three bytes
/// about it, of which the last are bits, and four for more.
mod code {
    use ptx_isa::ScalarType;

    /// Of the bits: it is an array.
    pub(super) const ARRAY: u64 = 1 << 24;
    /// It is the base of an address and all of it, or all but an offset.
    pub(super) const ADDRESS: u64 = 1 << 25;
    pub(super) const OFFSET: u64 = 1 << 26;
    /// It is the first of a vector, or of the parts of an address. What they end with has a code of its own.
    pub(super) const VECTOR: u64 = 1 << 27;
    pub(super) const PARTS: u64 = 1 << 28;
    /// It is the second of a pair.
    pub(super) const SECOND: u64 = 1 << 29;
    /// It has a sign.
    pub(super) const NEGATED: u64 = 1 << 30;

    pub(super) const PREDICATE: u64 = register(ScalarType::Pred);

    #[inline]
    pub(super) const fn register(ty: ScalarType) -> u64 {
        b'r' as u64 | (ty as u64) << 8
    }
}

/// Bytes that a name or a number may go on with.
const CONTINUES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_word(byte as u8) || matches!(byte as u8, b'.' | b':');
        byte += 1;
    }
    table
};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

/// The end of what stands at `pos`: a byte that is no more than a blank, or a semicolon.
fn end(bytes: &[u8], mut pos: usize) -> usize {
    while let Some(window) = bytes.get(pos..).and_then(<[u8]>::first_chunk) {
        let window = u64::from_le_bytes(*window);
        // Of each byte of ASCII the high bit of a difference says whether it is below, if none before it is.
        let semicolons = (window ^ (u64::from(b';') * ONES)).wrapping_sub(ONES);
        let ends = (window.wrapping_sub(u64::from(b' ' + 1) * ONES) | semicolons) & HIGH;
        if ends != 0 {
            return pos + ends.trailing_zeros() as usize / 8;
        }
        pos += 8;
    }
    let rest = bytes.get(pos..).unwrap_or_default();
    pos + rest.iter().position(|&byte| byte <= b' ' || byte == b';').unwrap_or(rest.len())
}

/// Letters, digits, and what ends a name, in eight bytes of ASCII with the first one lowest: how many of them are the
/// name, and its parts. `None` where no number or no end is in sight.
///
/// Half of a program are names of registers. A loop over their bytes ends where no processor expects it; this has no
/// loops.
#[inline]
fn numbered(bytes: u64) -> Option<(usize, Numbered)> {
    // Of each byte below 0x80 the high bit of a sum says whether it is at least 0x80 less the constant.
    let values = bytes ^ (u64::from(b'0') * ONES);
    let no_digit = (values + 0x76 * ONES) & HIGH;

    let stem_bits = (!no_digit & HIGH).trailing_zeros() & !7;
    let in_stem = 1u64.checked_shl(stem_bits)? - 1;
    let behind = no_digit.checked_shr(stem_bits).filter(|&behind| behind != 0)?;
    let digit_bits = behind.trailing_zeros() & !7;
    let end = (bytes >> (stem_bits + digit_bits)) as u8;
    // A stem ends where its zeros begin, so that none may end in one.
    let is_stem = stem_bits > 0 && (bytes >> (stem_bits - 8)) as u8 != 0;
    if !is_stem || CONTINUES[end as usize] {
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

    /// Skips blanks. Gives the byte behind them.
    #[inline]
    pub(super) fn skip_blanks(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\t' => self.pos += 1,
                byte => return byte,
            }
        }
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
        let is_letter = first.is_ascii_alphabetic();
        if !is_letter && !matches!(first, b'%' | b'_' | b'$') {
            return None;
        }
        self.pos = word_end(self.text.as_bytes(), start + 1);
        // The marks begin a name, and are none; and one word is a number.
        let word = &self.text[start..self.pos];
        (is_letter || word.len() > 1).then_some(word).filter(|&word| word != WARP_SIZE)
    }

    /// Those of all instructions so far, and of this one.
    fn operands(&mut self) -> &mut Vec<Operand> {
        &mut self.walker.code.operands
    }

    /// Goes down the tree of shapes.
    #[inline(always)]
    fn step(&mut self, code: u64) {
        self.shape = self.memory.shapes.step(self.shape, code);
    }

    /// Reads the instruction at the cursor, with its semicolon. Gives its guard and what its dotted name is; its operands
    /// are put where they stay: handing them over would be most of the work.
    pub(super) fn read_instruction(&mut self) -> Option<(Option<Guard>, Mnemonic)> {
        self.operands = self.operands().len();
        let mut guard = None;
        if self.eat(b'@') {
            let negated = self.eat(b'!');
            guard = Some(Guard { reg: self.read_predicate()?, negated });
            self.skip_blanks();
        }
        let mnemonic = self.read_mnemonic()?;
        self.shape = mnemonic.start;
        self.limits_constants = mnemonic.limits_constants;
        if let Some(Guard { negated, .. }) = guard {
            self.step(if negated { b'!' } else { b'@' }.into());
        }
        if mnemonic.is_call {
            self.read_call()?;
        } else {
            self.read_operands()?;
        }
        Some((guard, mnemonic))
    }

    /// `ld.shared::cta.b32`. Operands of video instructions are looked at as text and have no shape.
    fn read_mnemonic(&mut self) -> Option<Mnemonic> {
        let start = self.pos;
        self.pos = end(self.text.as_bytes(), start);
        self.name = self.range_from(start);
        let name = &self.text[start..self.pos];
        if let Some(mnemonic) = self.memory.shapes.mnemonic(name) {
            return Some(mnemonic);
        }
        let is_video = name.starts_with('v') && !name.starts_with("vote.");
        let limits_constants = if is_video { None } else { self.walker.limits_constants(name) }?;
        Some(self.memory.shapes.add(name, limits_constants))
    }

    /// All operands with the semicolon.
    fn read_operands(&mut self) -> Option<()> {
        let mut first = self.skip_blanks();
        if first == b';' {
            self.pos += 1;
            return Some(());
        }
        loop {
            match first {
                b'{' => self.read_vector()?,
                b'[' => self.read_address()?,
                _ => self.read_simple(first, 0)?,
            }
            let mut mark = self.skip_blanks();
            if mark == b'|' && self.operands().len() == self.operands + 1 {
                self.read_second()?;
                mark = self.skip_blanks();
            }
            self.pos += 1;
            match mark {
                b',' => first = self.skip_blanks(),
                b';' => return Some(()),
                _ => return None,
            }
        }
    }

    /// `|%p`, behind the first operand.
    fn read_second(&mut self) -> Option<()> {
        self.pos += 1;
        let first = self.skip_blanks();
        self.read_simple(first, code::SECOND)?;
        let (second, first) = (self.operands().pop()?, self.operands().pop()?);
        self.operands().push(match (first, second) {
            // `d|_` is `d`.
            (register @ Operand::Reg(_), Operand::Sink) => register,
            pair @ (Operand::Reg(_) | Operand::Sink, Operand::Reg(_) | Operand::Sink) => {
                Operand::Pair(Box::new(pair))
            }
            _ => return None,
        });
        Some(())
    }

    /// `{%r1, %r2}`
    fn read_vector(&mut self) -> Option<()> {
        let elements = self.operands().len();
        let mut place = code::VECTOR;
        loop {
            self.pos += 1;
            let first = self.skip_blanks();
            self.read_simple(first, place)?;
            match self.skip_blanks() {
                b',' => place = 0,
                b'}' => break,
                _ => return None,
            }
        }
        self.pos += 1;
        self.step(b'}'.into());
        let elements = self.operands().drain(elements..).collect();
        self.operands().push(Operand::Vector(elements));
        Some(())
    }

    /// `[%rd1+16]`, `[%rd1, {%r1, %r2}]`
    fn read_address(&mut self) -> Option<()> {
        self.pos += 1;
        let first = self.skip_blanks();
        let (base, code) = match self.read_register(first) {
            Some((register, ty)) => (AddressBase::Reg(register), code::register(ty)),
            None => match self.read_name()? {
                (Operand::Reg(register), code) => (AddressBase::Reg(register), code),
                (Operand::Symbol(symbol, _), code) => (AddressBase::Symbol(symbol), code),
                _ => return None,
            },
        };
        let (mut code, mut offset) = (code | code::ADDRESS, 0);
        match self.skip_blanks() {
            b'+' => {
                self.pos += 1;
                self.skip_blanks();
                let is_negative = self.eat(b'-');
                let Operand::Int(value) = self.read_digits()? else { return None };
                offset = if is_negative { value.wrapping_neg() } else { value };
                code |= code::OFFSET;
                self.skip_blanks();
            }
            b',' => {
                self.step(code | code::PARTS);
                return self.read_parts(base);
            }
            _ => {}
        }
        if !self.eat(b']') || self.byte() == b'.' {
            return None;
        }
        self.step(code);
        self.operands().push(Operand::Address(Address { base, offset }));
        Some(())
    }

    /// The other parts of an address, with the comma before them.
    fn read_parts(&mut self, base: AddressBase) -> Option<()> {
        let first = self.operands().len();
        self.operands().push(match base {
            AddressBase::Reg(register) => Operand::Reg(register),
            AddressBase::Symbol(symbol) => Operand::Symbol(symbol, 0),
            AddressBase::Absolute => return None,
        });
        while self.eat(b',') {
            match self.skip_blanks() {
                b'{' => self.read_vector()?,
                first => self.read_simple(first, 0)?,
            }
            self.skip_blanks();
        }
        if !self.eat(b']') || self.byte() == b'.' {
            return None;
        }
        self.step(b']'.into());
        let parts = self.operands().drain(first..).collect();
        self.operands().push(Operand::List(parts));
        Some(())
    }

    /// A name or a constant, which starts with the byte `first`. `place` are bits of its code.
    fn read_simple(&mut self, first: u8, place: u64) -> Option<()> {
        if let Some((register, ty)) = self.read_register(first) {
            self.step(code::register(ty) | place);
            self.operands().push(Operand::Reg(register));
            return Some(());
        }
        let (operand, code) = match first {
            b'0'..=b'9' | b'-' => return self.read_constant(place),
            b'!' => {
                self.pos += 1;
                (Operand::NotPred(self.read_predicate()?), code::PREDICATE | code::NEGATED)
            }
            b'_' if !self.text.as_bytes().get(self.pos + 1).is_some_and(|&byte| is_word(byte)) => {
                self.pos += 1;
                (Operand::Sink, b'_'.into())
            }
            _ => self.read_name()?,
        };
        self.step(code | place);
        self.operands().push(operand);
        Some(())
    }

    fn read_constant(&mut self, place: u64) -> Option<()> {
        let start = self.pos;
        let is_negative = self.eat(b'-');
        let (kind, constant) = match self.read_digits()? {
            Operand::Int(value) if is_negative => (b'i', Operand::Int(value.wrapping_neg())),
            constant @ Operand::Int(_) => (b'i', constant),
            _ if is_negative => return None,
            constant @ Operand::F32(_) => (b'f', constant),
            constant => (b'd', constant),
        };
        self.step(u64::from(kind) | place | if is_negative { code::NEGATED } else { 0 });
        self.operands().push(constant);
        if self.limits_constants {
            for part in self.text.as_bytes()[start..self.pos].chunks(7) {
                let written = part.iter().rfold(0, |code, &byte| code << 8 | u64::from(byte));
                self.step(written << 8 | u64::from(b'#'));
            }
        }
        Some(())
    }

    /// A number without a point.
    fn read_digits(&mut self) -> Option<Operand> {
        let start = self.pos;
        let mut value = 0i64;
        while let digit @ 0..10 = self.byte().wrapping_sub(b'0') {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
            self.pos += 1;
        }
        let bytes = self.text.as_bytes();
        let (length, ends) = (self.pos - start, !CONTINUES[self.byte() as usize]);
        if ends && (length == 1 || matches!(length, 2..19) && bytes[start] != b'0') {
            return Some(Operand::Int(value));
        }
        // `1e5` is none of these.
        if length == 0 || !ends && bytes[start] != b'0' {
            return None;
        }
        self.pos = word_end(bytes, self.pos);
        if self.byte() == b'.' {
            return None;
        }
        Some(match literal_value(&self.text[start..self.pos])? {
            Value::Int { value, .. } => Operand::Int(value),
            // An integer of too many digits.
            _ if ends => return None,
            Value::F32(bits) => Operand::F32(bits),
            Value::F64(value) => Operand::F64(value.to_bits()),
            _ => return None,
        })
    }

    /// The register at the cursor, which is at the byte `first`, if it is of a range with a short name: `%rd12`.
    /// Otherwise the cursor stays.
    #[inline(always)]
    fn read_register(&mut self, first: u8) -> Option<(RegId, ScalarType)> {
        if first != b'%' {
            return None;
        }
        let window = self.text.as_bytes().get(self.pos + 1..)?.first_chunk()?;
        let (length, numbered) = numbered(u64::from_le_bytes(*window))?;
        let found = self.walker.names.recall(numbered)?;
        let start = self.pos;
        self.pos += 1 + length;
        self.walker.occur(self.range_from(start), Entity::Register(found.0), Access::Read);
        Some(found)
    }

    fn read_predicate(&mut self) -> Option<RegId> {
        if let Some((register, ty)) = self.read_register(self.byte()) {
            return (ty == ScalarType::Pred).then_some(register);
        }
        match self.read_name()? {
            (Operand::Reg(register), code::PREDICATE) => Some(register),
            _ => None,
        }
    }

    /// A register, variable or label with its code, as the walk finds it.
    #[inline(never)]
    fn read_name(&mut self) -> Option<(Operand, u64)> {
        let start = self.pos;
        let name = self.word()?;
        let range = self.range_from(start);
        let has_component = self.eat(b'.');
        if has_component {
            self.word()?;
        }
        if let Some((declaration, number)) = self.walker.names.find(name) {
            return match self.walker.names.declarations[declaration.0 as usize].kind {
                _ if has_component => None,
                DeclKind::Register { ty, lanes: 1, .. } => {
                    self.walker.names.remember(name, declaration);
                    let register = self.walker.names.register(declaration, number, 0);
                    self.walker.occur(range, Entity::Register(register), Access::Read);
                    Some((Operand::Reg(register), code::register(ty)))
                }
                DeclKind::Symbol(symbol) => self.variable_operand(range, symbol),
                DeclKind::Label(label) => {
                    self.walker.occur(range, Entity::Label(label), Access::Read);
                    Some((Operand::Label(label), b'l'.into()))
                }
                _ => None,
            };
        }
        if name.starts_with('%') {
            let register = SpecialReg::parse(&self.text[start..self.pos])?;
            return Some((Operand::Special(register), u64::from(b's') | (register as u64) << 8));
        }
        if has_component {
            return None;
        }
        let Global::Variable { index, .. } = self.walker.global(name)? else { return None };
        self.variable_operand(range, Symbol::Global(*index))
    }

    fn variable_operand(&mut self, range: TextRange, symbol: Symbol) -> Option<(Operand, u64)> {
        let kind = match symbol {
            Symbol::Global(_) => b'g',
            Symbol::Local(_) => b'v',
            Symbol::Param(_) => b'p',
            Symbol::Return(_) => b'q',
            Symbol::Function(_) => return None,
        };
        let &Place { space, ty, is_array, align, hides: None, .. } = self.walker.variables.get(&symbol)?
        else {
            return None;
        };
        self.walker.occur(range, Entity::Symbol(symbol), Access::Read);
        let array = if is_array { code::ARRAY } else { 0 };
        let place = (space as u64) << 8 | (ty as u64) << 16 | array | u64::from(align) << 32;
        Some((Operand::Symbol(symbol, 0), u64::from(kind) | place))
    }

    /// `(a, b), f, (c, d);` behind the name of a direct call, over several lines.
    fn read_call(&mut self) -> Option<()> {
        self.read_line_breaks();
        if self.byte() == b'(' {
            self.read_arguments()?;
            self.eat(b',').then_some(())?;
            self.step(b','.into());
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
            self.step(b':'.into());
            list.iter().for_each(|shape| self.declared(shape));
        }
        let symbol = Symbol::Function(*index);
        self.walker.occur(range, Entity::Symbol(symbol), Access::Read);
        self.operands().push(Operand::Symbol(symbol, 0));
        self.read_line_breaks();
        if self.eat(b',') {
            self.step(b','.into());
            self.read_line_breaks();
            self.read_arguments()?;
        }
        self.eat(b';').then_some(())
    }

    /// A list in parentheses, with the blanks behind it.
    fn read_arguments(&mut self) -> Option<()> {
        self.eat(b'(').then_some(())?;
        self.step(b'('.into());
        let first = self.operands().len();
        loop {
            self.read_line_breaks();
            let (operand, code) = self.read_name()?;
            self.step(code);
            match operand {
                Operand::Reg(_) => {}
                Operand::Symbol(Symbol::Local(index), _) => {
                    let shape = self.walker.local_shapes.get(index as usize)?.clone();
                    self.declared(&shape);
                }
                _ => return None,
            }
            self.operands().push(operand);
            self.read_line_breaks();
            let mark = self.byte();
            self.pos += 1;
            match mark {
                b',' => self.step(mark.into()),
                b')' => break,
                _ => return None,
            }
        }
        self.step(b')'.into());
        self.read_line_breaks();
        let arguments = self.operands().drain(first..).collect();
        self.operands().push(Operand::List(arguments));
        Some(())
    }

    /// Blanks and line breaks, which matter to the parser.
    fn read_line_breaks(&mut self) {
        while matches!(self.byte(), b' ' | b'\t' | b'\n') {
            if self.byte() == b'\n' {
                self.step(b'\n'.into());
            }
            self.pos += 1;
        }
    }

    /// The codes of what a declaration says.
    fn declared(&mut self, shape: &Shape) {
        let &Shape { space, ty, align, lanes, .. } = shape;
        self.step(u64::from(b'd') | (space as u64) << 8 | (ty as u64) << 16 | u64::from(lanes) << 24);
        self.step(u64::from(b'a') | u64::from(align) << 8);
        for dimension in &shape.dimensions {
            self.step(if dimension.is_some() { b'[' } else { b'o' }.into());
            let [low, high] = [dimension.unwrap_or(0), dimension.unwrap_or(0) >> 32].map(|half| half as u32);
            self.step(u64::from(b'<') | u64::from(low) << 8);
            self.step(u64::from(b'>') | u64::from(high) << 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics_end_at_blanks_and_semicolons() {
        for byte in 0..0x80u8 {
            for place in 0..8 {
                let mut bytes = *b"ld.v4::a.global.f32";
                bytes[place] = byte;
                let is_end = byte <= b' ' || byte == b';';
                assert_eq!(end(&bytes, 0), if is_end { place } else { bytes.len() }, "{byte}");
            }
        }
        assert_eq!(end(b"@ld.global.v2.f32\t%f1", 1), 17);
        assert_eq!(end(b"ret;", 0), 3);
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
        for other in ["r1234567", "p, %r, {", "r1.x, %r", "r1x, %r2", "r1_, %r2", "1r, %r2,", "rd\x004, %r"] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(read("        "), None);
    }
}
