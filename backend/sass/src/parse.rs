//! NVIDIA's text to instruction.
//!
//! Every form of the mnemonic is tried in the order of the table, and the first that reads the whole text
//! wins; otherwise the error is the one that came furthest.

use crate::expand::table;
use crate::float;
use crate::inst::Inst;
use crate::model::*;
use crate::print::{INST_BYTES, SHOWN_DESCRIPTOR_SM, operand_shown};
use std::fmt;

/// Why a text is no instruction, and at which byte of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    pub column: usize,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column + 1, self.message)
    }
}

impl std::error::Error for ParseError {}

/// The instruction that the text denotes at an address; a closing `;` is allowed. The control word is the
/// default one but for `.reuse`.
pub fn parse(sm: Sm, text: &str, address: u64) -> Result<Inst, ParseError> {
    let text = text.trim_end().trim_end_matches(';').trim_end();
    let mut head = Cursor { text, at: 0 };
    head.blanks();
    let guard = head.guard()?;
    let name_at = head.at;
    let name = head.word(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut furthest = ParseError { column: name_at, message: format!("unknown mnemonic '{name}'") };
    for id in table().forms_of_mnemonic(name) {
        let form = table().form(id);
        if !form.holds_for(sm) {
            continue;
        }
        let mut parser = Parser { sm, address, inst: Inst::new(id), cursor: head };
        match parser.form(form, guard) {
            Ok(()) => return Ok(parser.inst),
            Err(error) if error.column >= furthest.column => furthest = error,
            Err(_) => {}
        }
    }
    Err(furthest)
}

/// Before sm_90 the text does not tell the window's descriptor. This is the pair that NVIDIA's compiler takes first.
const UNSHOWN_DESCRIPTOR: u64 = 4;

#[derive(Clone, Copy)]
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

type Guard = Option<(RegFile, u64, bool)>;

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches(' ').len();
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Result<(), ParseError> {
        if self.eat(text) { Ok(()) } else { self.fail(format!("expected '{text}'")) }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError { column: self.at, message: message.into() })
    }

    fn word(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn guard(&mut self) -> Result<Guard, ParseError> {
        if !self.eat("@") {
            return Ok(None);
        }
        let not = self.eat("!");
        let file = if self.rest().starts_with('U') { RegFile::UP } else { RegFile::P };
        let index = self.register(file, 3)?;
        self.blanks();
        Ok(Some((file, index, not)))
    }

    fn register(&mut self, file: RegFile, width: u32) -> Result<u64, ParseError> {
        let start = *self;
        let (prefix, zero) = match file {
            RegFile::R => ("R", "Z"),
            RegFile::P => ("P", "T"),
            RegFile::UR => ("UR", "Z"),
            RegFile::UP => ("UP", "T"),
            RegFile::B => ("B", ""),
        };
        let all_ones = (1u64 << width) - 1;
        if self.eat(prefix) {
            if !zero.is_empty() && self.eat(zero) {
                return Ok(all_ones);
            }
            let digits = self.word(|c| c.is_ascii_digit());
            let limit = all_ones + u64::from(zero.is_empty());
            if let Ok(index) = digits.parse::<u64>()
                && index < limit
            {
                return Ok(index);
            }
        }
        self.at = start.at;
        self.fail(format!("expected a register of the {file:?} file"))
    }

    /// A hexadecimal or decimal integer with an optional sign.
    fn integer(&mut self) -> Result<i64, ParseError> {
        let start = self.at;
        let negative = self.eat("-");
        let parsed = if self.eat("0x") {
            u64::from_str_radix(self.word(|c| c.is_ascii_hexdigit()), 16).ok()
        } else {
            self.word(|c| c.is_ascii_digit()).parse().ok()
        };
        match parsed {
            Some(value) => Ok(if negative { (value as i64).wrapping_neg() } else { value as i64 }),
            None => {
                self.at = start;
                self.fail("expected an integer")
            }
        }
    }

    fn choice(&mut self, texts: &[&str]) -> Option<u64> {
        let (value, text) = longest_choice(texts, self.rest())?;
        self.at += text;
        Some(value)
    }
}

/// The longest text of a choice at the start, which ends where a word ends.
fn longest_choice(texts: &[&str], rest: &str) -> Option<(u64, usize)> {
    let ends = |text: &str| {
        text.is_empty() || !rest[text.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    };
    texts
        .iter()
        .enumerate()
        .filter(|(_, text)| **text != BAD && rest.starts_with(**text) && ends(text))
        .rev()
        .max_by_key(|(_, text)| text.len())
        .map(|(value, text)| (value as u64, text.len()))
}

struct Parser<'a> {
    sm: Sm,
    address: u64,
    inst: Inst,
    cursor: Cursor<'a>,
}

impl Parser<'_> {
    fn form(&mut self, form: &Form, guard: Guard) -> Result<(), ParseError> {
        if let Some((file, index, not)) = guard {
            if file != form.guard {
                return Err(ParseError {
                    column: 0,
                    message: format!("expected a guard of the {:?} file", form.guard),
                });
            }
            self.inst.set(Field::Guard, index).set(Field::GuardNot, u64::from(not));
        }
        self.modifiers(form)?;
        let mut first = true;
        for piece in &form.pieces {
            match piece {
                Piece::Op(operand) => {
                    self.separator(first)?;
                    self.operand(operand)?;
                    first = false;
                }
                Piece::OpIf(operand, Show::NotNeutral) => {
                    // Present where it reads; what it took is given back where it does not.
                    let (cursor, inst) = (self.cursor, self.inst);
                    if self.separator(first).is_ok() && self.operand(operand).is_ok() {
                        first = false;
                    } else {
                        (self.cursor, self.inst) = (cursor, inst);
                    }
                }
                Piece::OpIf(operand, show) if operand_shown(&self.inst, operand, *show) => {
                    self.separator(first)?;
                    self.operand(operand)?;
                    first = false;
                }
                _ => {}
            }
        }
        self.cursor.blanks();
        if !self.cursor.rest().is_empty() {
            return self.cursor.fail("unexpected text after the instruction");
        }
        match self.inst.rejected() {
            Some(field) => {
                Err(ParseError { column: 0, message: format!("the value of {field:?} does not fit") })
            }
            None => Ok(()),
        }
    }

    fn modifiers(&mut self, form: &Form) -> Result<(), ParseError> {
        for piece in &form.pieces {
            match piece {
                Piece::Mod(spec) | Piece::ModIf(spec, _) => match self.cursor.choice(spec.texts()) {
                    Some(value) => self.inst.set_spec(spec, value),
                    None if matches!(piece, Piece::ModIf(..)) => {}
                    None => return self.cursor.fail(format!("expected a modifier for {:?}", spec.field)),
                },
                Piece::Text(text) if self.cursor.choice(&[text]).is_none() => {
                    return self.cursor.fail(format!("expected '{text}'"));
                }
                Piece::Alias(aliases) => {
                    for (text, _) in *aliases {
                        if self.cursor.choice(&[text]).is_some() {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
        if self.cursor.rest().is_empty() || self.cursor.rest().starts_with(' ') {
            Ok(())
        } else {
            self.cursor.fail("unknown modifier")
        }
    }

    fn separator(&mut self, first: bool) -> Result<(), ParseError> {
        self.cursor.blanks();
        if !first {
            self.cursor.expect(",")?;
            self.cursor.blanks();
        }
        Ok(())
    }

    fn operand(&mut self, operand: &Operand) -> Result<(), ParseError> {
        match operand {
            Operand::Slot(_) => self.cursor.fail("a slot without a place"),
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(spec, style) => self.imm(spec, *style),
            Operand::Const(c) => self.constant(c),
            Operand::Mem(mem) => self.mem(mem),
            Operand::Target(spec, style) => self.target(spec, *style),
            Operand::RegTarget(reg, spec, style) => {
                self.reg(reg)?;
                self.cursor.blanks();
                if *style == TargetStyle::Optional && !self.cursor.rest().starts_with(['-', '0']) {
                    return Ok(());
                }
                self.target(spec, *style)
            }
            Operand::Word(spec) => match self.cursor.choice(spec.texts()) {
                Some(value) => {
                    self.inst.set_spec(spec, value);
                    Ok(())
                }
                None => self.cursor.fail("unknown word"),
            },
            Operand::Literal(text) => self.cursor.expect(text),
            Operand::Scoreboard(spec) => {
                self.cursor.expect("SB")?;
                let index = self.cursor.integer()?;
                self.inst.set_spec(spec, index as u64);
                Ok(())
            }
            Operand::ScoreboardSet(spec) => {
                self.cursor.expect("{")?;
                let mut set = 0;
                while !self.cursor.eat("}") {
                    let sb = self.cursor.integer()?;
                    if !(0..6).contains(&sb) {
                        return self.cursor.fail("expected a scoreboard");
                    }
                    set |= 1 << sb;
                    self.cursor.eat(",");
                }
                self.inst.set_spec(spec, set);
                Ok(())
            }
            Operand::Handle(handle) => self.handle(handle),
        }
    }

    fn target(&mut self, spec: &FieldSpec, style: TargetStyle) -> Result<(), ParseError> {
        let target = self.cursor.integer()? as u64;
        let distance = match style {
            TargetStyle::FromNext => target.wrapping_sub(self.address.wrapping_add(INST_BYTES)),
            TargetStyle::Plain | TargetStyle::Optional => target,
        };
        self.inst.set_spec(spec, distance);
        Ok(())
    }

    fn flag(&mut self, spec: &Option<FieldSpec>, text: &str) -> bool {
        match spec {
            Some(spec) if self.cursor.eat(text) => {
                self.inst.set_spec(spec, 1);
                true
            }
            _ => false,
        }
    }

    fn sign(&mut self, neg: &Option<FieldSpec>, complement: Option<Field>) {
        let complemented = complement.is_some_and(|field| self.inst.get(field).unwrap_or(0) != 0);
        // Where the sign bit itself makes it a complement, only `~` is written.
        let always = neg.is_some_and(|spec| Some(spec.field) == complement);
        self.flag(neg, if complemented || always { "~" } else { "-" });
    }

    fn reg(&mut self, reg: &RegOperand) -> Result<(), ParseError> {
        if let Some(not) = &reg.not {
            let set = self.cursor.eat("!");
            self.inst.set_spec(not, u64::from(set));
        }
        self.sign(&reg.neg, reg.complement);
        let magnitude = self.flag(&reg.abs, "|");
        let index = self.cursor.register(reg.file, reg.spec.bits())?;
        self.inst.set_spec(&reg.spec, index);
        let inside = reg.file != RegFile::R;
        if inside {
            self.suffix(reg.text, &reg.suffix)?;
        }
        if magnitude {
            self.cursor.expect("|")?;
        }
        if let Some(bit) = reg.reuse
            && self.cursor.eat(".reuse")
        {
            self.inst.control.reuse |= 1 << bit;
        }
        if inside { Ok(()) } else { self.suffix(reg.text, &reg.suffix) }
    }

    fn suffix(&mut self, text: &str, suffix: &Option<FieldSpec>) -> Result<(), ParseError> {
        self.cursor.expect(text)?;
        if let Some(spec) = suffix {
            match self.cursor.choice(spec.texts()) {
                Some(value) => self.inst.set_spec(spec, value),
                None => return self.cursor.fail("unknown suffix of a register"),
            }
        }
        Ok(())
    }

    fn imm(&mut self, spec: &FieldSpec, style: ImmStyle) -> Result<(), ParseError> {
        let value = match style {
            ImmStyle::Hex | ImmStyle::Decimal => self.cursor.integer()? as u64,
            ImmStyle::Bracketed => {
                self.cursor.expect("[")?;
                let value = self.cursor.integer()? as u64;
                self.cursor.expect("]")?;
                value
            }
            ImmStyle::SignedHex => {
                let value = self.cursor.integer()?;
                if spec.value == Value::Unsigned && value < 0 {
                    let limit = 1i64 << (spec.bits() - 1);
                    if value < -limit {
                        return self.cursor.fail("the immediate does not fit");
                    }
                    value as u64 & ones(spec.bits() as u8) as u64
                } else {
                    value as u64
                }
            }
            ImmStyle::F32 => self.float(float::parse_f32)?.into(),
            ImmStyle::F64 => self.float(float::parse_f64)?.into(),
            ImmStyle::DoubleIn(field, first, last)
                if self.inst.get(field).is_some_and(|value| (first..=last).contains(&value)) =>
            {
                self.float(float::parse_f64)?.into()
            }
            ImmStyle::DoubleIn(..) => self.float(float::parse_f32)?.into(),
            ImmStyle::F16x2 => self.halves(float::parse_f16)?,
            ImmStyle::Bf16x2 => self.halves(float::parse_bf16)?,
            ImmStyle::HalfBy(field, bf16) if self.inst.get(field) == Some(bf16) => {
                self.halves(float::parse_bf16)?
            }
            ImmStyle::HalfBy(..) => self.halves(float::parse_f16)?,
        };
        self.inst.set_spec(spec, value);
        Ok(())
    }

    fn float<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<T, ParseError> {
        let start = self.cursor.at;
        let word = self.cursor.word(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        match parse(word) {
            Some(value) => {
                self.cursor.blanks();
                Ok(value)
            }
            None => {
                self.cursor.at = start;
                self.cursor.fail("expected a number that the immediate can hold")
            }
        }
    }

    fn halves(&mut self, parse: impl Fn(&str) -> Option<u16>) -> Result<u64, ParseError> {
        let high = self.float(&parse)?;
        self.separator(false)?;
        let low = self.float(&parse)?;
        Ok(u64::from(high) << 16 | u64::from(low))
    }

    fn constant(&mut self, c: &ConstOperand) -> Result<(), ParseError> {
        self.sign(&c.neg, c.complement);
        let magnitude = self.flag(&c.abs, "|");
        match &c.handle {
            Some(handle) => {
                self.cursor.expect("cx[")?;
                let index = self.cursor.register(RegFile::UR, handle.bits())?;
                self.inst.set_spec(handle, index);
            }
            None => {
                self.cursor.expect("c[")?;
                let bank = self.cursor.integer()?;
                self.inst.set_spec(&c.bank, bank as u64);
            }
        }
        self.cursor.expect("]")?;
        self.cursor.blanks();
        self.cursor.expect("[")?;
        let mut follows = false;
        if let Some(index) = &c.index
            && self.cursor.rest().starts_with(['R', 'U'])
        {
            self.reg(index)?;
            follows = true;
        }
        if !follows || self.cursor.eat("+") {
            let offset = self.cursor.integer()?;
            if offset < i64::from(i16::MIN) || offset > i64::from(u16::MAX) {
                return self.cursor.fail("the offset does not fit");
            }
            self.inst.set_spec(&c.offset, u64::from(offset as u16));
        }
        self.cursor.expect("]")?;
        self.suffix(c.text, &c.suffix)?;
        if magnitude {
            self.cursor.expect("|")?;
        }
        Ok(())
    }

    fn handle(&mut self, handle: &HandleOperand) -> Result<(), ParseError> {
        let spec = &handle.reg.spec;
        self.cursor.expect(handle.word)?;
        self.cursor.expect("[")?;
        let before = self.cursor;
        let named = handle.offset.is_none() || before.rest().starts_with('U');
        if named {
            let index = self.cursor.register(handle.reg.file, spec.bits())?;
            if !handle.next {
                self.inst.set_spec(spec, index);
            } else if index != (self.inst.get_spec(spec) + 1).min((1 << spec.bits()) - 1) {
                return before.fail("expected the register after the one before");
            }
        }
        if handle.offset.is_some() {
            self.offset(handle.offset.as_ref(), named)?;
        }
        self.cursor.expect("]")?;
        self.suffix(handle.reg.text, &handle.reg.suffix)
    }

    /// `+0x8`, `+-0x8`, or alone without the plus.
    fn offset(&mut self, spec: Option<&FieldSpec>, follows: bool) -> Result<(), ParseError> {
        if follows && !self.cursor.eat("+") {
            return Ok(());
        }
        let value = self.cursor.integer()?;
        match spec {
            Some(spec) => self.inst.set_spec(spec, value as u64),
            None if value == 0 => {}
            None => return self.cursor.fail("the operand has no offset"),
        }
        Ok(())
    }

    fn mem(&mut self, mem: &MemOperand) -> Result<(), ParseError> {
        if let Some(desc) = &mem.desc {
            let shown = self.sm.0 >= SHOWN_DESCRIPTOR_SM;
            if self.cursor.eat("desc[") {
                let index = self.cursor.register(RegFile::UR, desc.spec.bits())?;
                self.inst.set_spec(&desc.spec, index);
                self.inst.set_spec(&desc.own, u64::from(!shown));
                self.cursor.expect("]")?;
            } else if shown {
                return self.cursor.fail("expected a descriptor");
            } else {
                self.inst.set_spec(&desc.spec, UNSHOWN_DESCRIPTOR);
            }
        }
        self.cursor.expect("[")?;
        let mut follows = false;
        if let Some(reg) = &mem.reg
            && self.cursor.rest().starts_with('R')
        {
            self.reg(reg)?;
            follows = true;
        }
        if let Some((ureg, _)) = &mem.ureg {
            let before = self.cursor;
            if (!follows || self.cursor.eat("+")) && self.cursor.rest().starts_with("UR") {
                let index = self.cursor.register(RegFile::UR, ureg.bits())?;
                self.inst.set_spec(ureg, index);
                follows = true;
            } else {
                self.cursor = before;
            }
        }
        if !(follows && self.cursor.rest().starts_with(']')) {
            self.offset(mem.offset.as_ref(), follows)?;
        }
        self.cursor.expect("]")
    }
}
