//! Parses NVIDIA's text of an instruction.
//!
//! The parser tries every form of the mnemonic in the order of the table. The first form that matches the whole text
//! wins. If no form does, the error is at the furthest place that any form reached, and lists what the forms expected
//! there.

mod cursor;

use crate::expand::table;
use crate::float;
use crate::inst::Inst;
use crate::model::*;
use crate::print::{INST_BYTES, SHOWN_DESCRIPTOR_SM, SIGNS, operand_shown, zero_register_shows};
use cursor::{Cursor, Failed, Wanted};
use std::fmt;

/// The reason why a text is not an instruction, and the offset of the wrong byte.
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

/// Before sm_90, the text does not show the window's descriptor. This is the register pair that NVIDIA's compiler uses
/// first.
pub(crate) const USUAL_DESCRIPTOR: u64 = 4;

/// Parses the text of the instruction at an address. A final `;` is allowed. The control word is the default one, with
/// the `.reuse` flags of the text.
pub fn parse(sm: Sm, text: &str, address: u64) -> Result<Inst, ParseError> {
    let text = text.trim_end().trim_end_matches(';').trim_end();
    attempt(sm, &mut Cursor::new(text), address).or_else(|Failed| {
        // Parses again to collect the error message.
        let mut cursor = Cursor::noting(text);
        attempt(sm, &mut cursor, address).map_err(|Failed| {
            let (column, message) = cursor.error();
            ParseError { column, message }
        })
    })
}

fn attempt(sm: Sm, cursor: &mut Cursor<'_>, address: u64) -> Result<Inst, Failed> {
    cursor.blanks();
    let guard = guard(cursor)?;
    let name_at = cursor.at;
    let name = cursor.word(|c| c.is_ascii_alphanumeric() || c == b'_');
    let after_name = cursor.at;
    let mut known = false;
    let mut loose = None;
    let mut forms = table().forms_of_mnemonic(name).map(|id| (id, table().form(id)));
    while let Some((id, form)) = forms.find(|(_, form)| form.holds_for(sm)) {
        known = true;
        cursor.at = after_name;
        let mut parser = Parser { sm, address, inst: Inst::new(id), loose: false, cursor };
        if parser.form(form, guard).is_ok() {
            if !parser.loose {
                return Ok(parser.inst);
            }
            loose.get_or_insert(parser.inst);
        }
    }
    if let Some(inst) = loose {
        return Ok(inst);
    }
    Err(match (known, table().forms_of_mnemonic(name).next()) {
        (true, _) => Failed,
        (false, Some(_)) => cursor.fail_at(name_at, Wanted::Not("this generation has no such mnemonic")),
        (false, None) => cursor.fail_at(name_at, Wanted::Not("unknown mnemonic")),
    })
}

/// The register file, index and negation of the guard.
type Guard = Option<(RegFile, u64, bool)>;

fn guard(cursor: &mut Cursor<'_>) -> Result<Guard, Failed> {
    if !cursor.eat("@") {
        return Ok(None);
    }
    let not = cursor.eat("!");
    let file = if cursor.starts_with("U") { RegFile::UP } else { RegFile::P };
    let index = cursor.register(file, 3)?;
    cursor.blanks();
    Ok(Some((file, index, not)))
}

struct Parser<'a, 'text> {
    sm: Sm,
    address: u64,
    inst: Inst,
    /// The form would print the instruction with another text. Another form that matches takes precedence.
    loose: bool,
    cursor: &'a mut Cursor<'text>,
}

impl Parser<'_, '_> {
    fn form(&mut self, form: &Form, guard: Guard) -> Result<(), Failed> {
        if let Some((file, index, not)) = guard {
            if file != form.guard {
                let uniform = form.guard == RegFile::UP;
                let wanted = if uniform { "a uniform predicate as guard" } else { "a predicate as guard" };
                return Err(self.cursor.fail_at(0, Wanted::Thing(wanted)));
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
                Piece::OpIf(operand, Show::NotNeutral | Show::NotNeutralOr(..)) => {
                    // The operand is present if it can be parsed. If not, the parser goes back to where it began.
                    let (at, inst) = (self.cursor.at, self.inst);
                    if self.separator(first).is_ok() && self.operand(operand).is_ok() {
                        first = false;
                    } else {
                        (self.cursor.at, self.inst) = (at, inst);
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
            return Err(self.cursor.fail(Wanted::Thing("the end")));
        }
        Ok(())
    }

    /// Sets a field to a value from the text at offset `at`.
    fn set(&mut self, at: usize, spec: &FieldSpec, value: u64) -> Result<(), Failed> {
        self.inst.set_spec(spec, value);
        match self.inst.rejected() {
            Some(_) => Err(self.cursor.fail_at(at, Wanted::Not("the value does not fit into its field"))),
            None => Ok(()),
        }
    }

    fn modifiers(&mut self, form: &Form) -> Result<(), Failed> {
        // The first of the modifiers that may still follow the last one in the text.
        let mut open = 0;
        for (i, piece) in form.pieces.iter().enumerate() {
            let start = self.cursor.at;
            match piece {
                Piece::Mod(spec) | Piece::ModIf(spec, _) => match self.cursor.choice(spec.texts()) {
                    Some(value) => self.set(start, spec, value)?,
                    None if matches!(piece, Piece::ModIf(..)) => {}
                    None => {
                        self.note_modifiers(&form.pieces[open..i]);
                        return Err(self.cursor.fail(Wanted::Texts(spec.texts())));
                    }
                },
                Piece::Text(text) if self.cursor.choice(&[text]).is_none() => {
                    self.note_modifiers(&form.pieces[open..i]);
                    return Err(self.cursor.fail(Wanted::Text(text)));
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
            if self.cursor.at > start {
                open = i + 1;
            }
        }
        if self.cursor.rest().is_empty() || self.cursor.at_any(b" ") {
            return Ok(());
        }
        self.note_modifiers(&form.pieces[open..]);
        Err(self.cursor.fail(Wanted::Thing("a blank")))
    }

    fn note_modifiers(&mut self, pieces: &[&Piece]) {
        for piece in pieces {
            if let Piece::Mod(spec) | Piece::ModIf(spec, _) = piece {
                self.cursor.fail(Wanted::Texts(spec.texts()));
            }
        }
    }

    fn separator(&mut self, first: bool) -> Result<(), Failed> {
        self.cursor.blanks();
        if !first {
            self.cursor.expect(",")?;
            self.cursor.blanks();
        }
        Ok(())
    }

    fn operand(&mut self, operand: &Operand) -> Result<(), Failed> {
        match operand {
            Operand::Slot(_) => Err(self.cursor.fail(Wanted::Not("a source without a place"))),
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(spec, style) => self.imm(spec, *style),
            Operand::Const(c) => self.constant(c),
            Operand::Mem(mem) => self.mem(mem),
            Operand::Target(spec, style) => self.target(spec, *style),
            Operand::RegTarget(reg, spec, style) => {
                self.reg(reg)?;
                self.cursor.blanks();
                if *style == TargetStyle::Optional && !self.cursor.at_any(b"-0") {
                    return Ok(());
                }
                self.target(spec, *style)
            }
            Operand::Word(spec) => self.choice(spec),
            Operand::Literal(text) => self.cursor.expect(text),
            Operand::Scoreboard(spec) => {
                let start = self.cursor.at;
                self.cursor.expect("SB")?;
                let index = self.cursor.integer()?;
                self.set(start, spec, index as u64)
            }
            Operand::ScoreboardSet(spec) => {
                self.cursor.expect("{")?;
                let mut set = 0;
                while !self.cursor.eat("}") {
                    let start = self.cursor.at;
                    let sb = self.cursor.integer()?;
                    if !(0..6).contains(&sb) {
                        return Err(self
                            .cursor
                            .fail_at(start, Wanted::Not("scoreboard number out of range")));
                    }
                    set |= 1 << sb;
                    self.cursor.eat(",");
                }
                self.set(self.cursor.at, spec, set)
            }
            Operand::Signs(spec) => {
                let start = self.cursor.at;
                let mut signs = 0;
                for _ in (0..spec.bits()).step_by(2) {
                    match SIGNS.iter().position(|text| self.cursor.eat(text)) {
                        Some(value) => signs = signs << 2 | value as u64,
                        None => return Err(self.cursor.fail(Wanted::Texts(SIGNS))),
                    }
                }
                self.set(start, spec, signs)
            }
            Operand::Handle(handle) => self.handle(handle),
        }
    }

    fn target(&mut self, spec: &FieldSpec, style: TargetStyle) -> Result<(), Failed> {
        let start = self.cursor.at;
        let target = self.cursor.integer()? as u64;
        let distance = match style {
            TargetStyle::FromNext => target.wrapping_sub(self.address.wrapping_add(INST_BYTES)),
            TargetStyle::Plain | TargetStyle::Optional => target,
        };
        self.set(start, spec, distance)
    }

    /// Parses one of the texts of a choice.
    fn choice(&mut self, spec: &FieldSpec) -> Result<(), Failed> {
        let start = self.cursor.at;
        match self.cursor.choice(spec.texts()) {
            Some(value) => self.set(start, spec, value),
            None => Err(self.cursor.fail(Wanted::Texts(spec.texts()))),
        }
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
        // If the sign bit itself means a complement, only `~` is accepted.
        let always = neg.is_some_and(|spec| Some(spec.field) == complement);
        self.flag(neg, if complemented || always { "~" } else { "-" });
    }

    fn reg(&mut self, reg: &RegOperand) -> Result<(), Failed> {
        if let Some(not) = &reg.not {
            let set = self.cursor.eat("!");
            self.inst.set_spec(not, u64::from(set));
        }
        self.sign(&reg.neg, reg.complement);
        let magnitude = self.flag(&reg.abs, "|");
        let start = self.cursor.at;
        let index = self.cursor.register(reg.file, reg.spec.bits())?;
        self.set(start, &reg.spec, index)?;
        if reg.inside {
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
        if reg.inside { Ok(()) } else { self.suffix(reg.text, &reg.suffix) }
    }

    fn suffix(&mut self, text: &'static str, suffix: &Option<FieldSpec>) -> Result<(), Failed> {
        self.cursor.expect(text)?;
        suffix.as_ref().map_or(Ok(()), |spec| self.choice(spec))
    }

    fn imm(&mut self, spec: &FieldSpec, style: ImmStyle) -> Result<(), Failed> {
        let start = self.cursor.at;
        let value = match style {
            ImmStyle::Hex | ImmStyle::Decimal => self.cursor.integer()? as u64,
            ImmStyle::Bracketed => {
                self.cursor.expect("[")?;
                let value = self.cursor.integer()? as u64;
                self.cursor.expect("]")?;
                value
            }
            ImmStyle::SignedHex | ImmStyle::SignedBy(_) => {
                let value = self.cursor.integer()?;
                if spec.value == Value::Unsigned && value < 0 {
                    let limit = 1i64 << (spec.bits() - 1);
                    if value < -limit {
                        return Err(self.cursor.fail(Wanted::Not("the value does not fit into its field")));
                    }
                    value as u64 & ones(spec.bits() as u8) as u64
                } else {
                    value as u64
                }
            }
            ImmStyle::F32 => self.float(float::parse_f32)?.into(),
            ImmStyle::HighWord => {
                let [to, from] = [Field::Rd, Field::Ra].map(|field| self.inst.get(field).unwrap_or(0));
                // A double's high word is in a register with an odd number. A positive NaN more often replaces a float.
                let high = |negative| to & 1 != 0 && (negative || from & 1 != 0 && to != from);
                self.float(|text| float::parse_selected(text, high))?.into()
            }
            ImmStyle::F64 => self.float(float::parse_f64)?.into(),
            ImmStyle::DoubleIn(field, first, last)
                if self.inst.get(field).is_some_and(|value| (first..=last).contains(&value)) =>
            {
                self.float(float::parse_f64)?.into()
            }
            ImmStyle::DoubleIn(..) => self.float(float::parse_f32)?.into(),
            ImmStyle::F16x2 => self.halves(float::parse_f16)?,
            ImmStyle::Bf16x2 => self.halves(float::parse_bf16)?,
            ImmStyle::HalfWord(field, bf16) if self.inst.get(field) == Some(bf16) => {
                self.float(float::parse_bf16)?.into()
            }
            ImmStyle::HalfWord(..) => self.float(float::parse_f16)?.into(),
            ImmStyle::HalfSum(field, bf16, single) if self.inst.get(single) == Some(1) => {
                return self.imm(spec, ImmStyle::HalfWord(field, bf16));
            }
            ImmStyle::HalfBy(field, bf16) | ImmStyle::HalfSum(field, bf16, _)
                if self.inst.get(field) == Some(bf16) =>
            {
                self.halves(float::parse_bf16)?
            }
            ImmStyle::HalfBy(..) | ImmStyle::HalfSum(..) => self.halves(float::parse_f16)?,
        };
        self.set(start, spec, value)
    }

    fn float<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<T, Failed> {
        let start = self.cursor.at;
        let word = self.cursor.word(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.'));
        match parse(word) {
            Some(value) => {
                self.cursor.blanks();
                Ok(value)
            }
            None => {
                self.cursor.at = start;
                Err(self.cursor.fail(Wanted::Thing("a number within the range of the immediate")))
            }
        }
    }

    fn halves(&mut self, parse: impl Fn(&str) -> Option<u16>) -> Result<u64, Failed> {
        let high = self.float(&parse)?;
        self.separator(false)?;
        let low = self.float(&parse)?;
        Ok(u64::from(high) << 16 | u64::from(low))
    }

    fn constant(&mut self, c: &ConstOperand) -> Result<(), Failed> {
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
                let start = self.cursor.at;
                let bank = self.cursor.integer()?;
                self.set(start, &c.bank, bank as u64)?;
            }
        }
        self.cursor.expect("]")?;
        self.cursor.blanks();
        self.cursor.expect("[")?;
        let mut follows = false;
        if let Some(index) = &c.index
            && self.cursor.at_any(b"RU")
        {
            self.reg(index)?;
            follows = true;
        }
        if !follows || self.cursor.eat("+") {
            let start = self.cursor.at;
            let offset = self.cursor.integer()?;
            let bits = c.offset.value_bits() as u8;
            if offset < -(1 << (bits - 1)) {
                return Err(self.cursor.fail_at(start, Wanted::Not("the value does not fit into its field")));
            }
            let offset = if offset < 0 { offset as u64 & ones(bits) as u64 } else { offset as u64 };
            self.set(start, &c.offset, offset)?;
        }
        self.cursor.expect("]")?;
        self.suffix(c.text, &c.suffix)?;
        if magnitude {
            self.cursor.expect("|")?;
        }
        Ok(())
    }

    fn handle(&mut self, handle: &HandleOperand) -> Result<(), Failed> {
        let spec = &handle.reg.spec;
        self.cursor.expect(handle.word)?;
        self.cursor.expect("[")?;
        let start = self.cursor.at;
        let named = handle.offset.is_none() || self.cursor.starts_with("U");
        if named {
            let index = self.cursor.register(handle.reg.file, spec.bits())?;
            if !handle.next {
                self.set(start, spec, index)?;
            } else if index != (self.inst.get_spec(spec) + 1).min((1 << spec.bits()) - 1) {
                return Err(self.cursor.fail_at(start, Wanted::Thing("the next consecutive register")));
            }
        }
        if handle.offset.is_some() {
            self.offset(handle.offset.as_ref(), named)?;
        }
        self.cursor.expect("]")?;
        self.suffix(handle.reg.text, &handle.reg.suffix)
    }

    /// Parses an offset: `+0x8` or `+-0x8` after a register, or `0x8` alone.
    fn offset(&mut self, spec: Option<&FieldSpec>, follows: bool) -> Result<(), Failed> {
        if follows && !self.cursor.eat("+") {
            return Ok(());
        }
        let start = self.cursor.at;
        let value = self.cursor.integer()?;
        match spec {
            // An offset without a register is an address, and therefore unsigned.
            Some(spec) if !follows && value >> (spec.value_bits() - 1) == 1 => {
                let sign = value & 1 << (spec.value_bits() - 1);
                self.set(start, spec, (value - 2 * sign) as u64)
            }
            Some(spec) => self.set(start, spec, value as u64),
            None if value == 0 => Ok(()),
            None => Err(self.cursor.fail_at(start, Wanted::Not("the operand has no offset"))),
        }
    }

    fn mem(&mut self, mem: &MemOperand) -> Result<(), Failed> {
        if let Some(desc) = &mem.desc {
            let shown = self.sm.0 >= SHOWN_DESCRIPTOR_SM;
            if self.cursor.eat("desc[") {
                let index = self.cursor.register(RegFile::UR, desc.spec.bits())?;
                let last = (1 << desc.spec.bits()) - 1;
                if !desc.next {
                    self.inst.set_spec(&desc.spec, index);
                } else if index != (self.inst.raw(&desc.spec) + 1).min(last) {
                    return Err(self.cursor.fail(Wanted::Thing("the uniform register after the base")));
                }
                self.inst.set_spec(&desc.own, u64::from(!shown));
                self.cursor.expect("]")?;
            } else if shown {
                return Err(self.cursor.fail(Wanted::Text("desc[")));
            } else if !desc.next {
                self.inst.set_spec(&desc.spec, USUAL_DESCRIPTOR);
            }
        }
        self.cursor.expect("[")?;
        let mut follows = false;
        if let Some(reg) = &mem.reg {
            if self.cursor.starts_with("R") {
                self.reg(reg)?;
                follows = true;
            } else if !reg.text.is_empty() && zero_register_shows(self.sm, &self.inst, mem, reg) {
                return Err(self.cursor.fail(Wanted::Thing("a register")));
            }
        }
        if let Some((ureg, _)) = &mem.ureg {
            let before = self.cursor.at;
            if (!follows || self.cursor.eat("+")) && self.cursor.starts_with("UR") {
                let index = self.cursor.register(RegFile::UR, ureg.bits())?;
                self.inst.set_spec(ureg, index);
                follows = true;
            } else if mem.urz == Urz::Shown {
                return Err(self.cursor.fail(Wanted::Thing("a uniform register")));
            } else {
                self.cursor.at = before;
            }
        }
        if !(follows && self.cursor.starts_with("]")) {
            self.offset(mem.offset.as_ref(), follows)?;
            // An offset from RZ alone is printed as an address.
            let alone = mem.desc.is_none() && mem.ureg.is_none();
            self.loose |=
                follows && alone && mem.reg.is_some_and(|reg| self.inst.raw(&reg.spec) == reg.spec.neutral);
        }
        self.cursor.expect("]")
    }
}
