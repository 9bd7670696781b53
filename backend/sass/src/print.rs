//! Prints an instruction as NVIDIA's disassembler does.

use crate::float;
use crate::inst::Inst;
use crate::model::*;

/// The size of an instruction in bytes.
pub const INST_BYTES: u64 = 16;
/// The first generation whose descriptors are printed.
pub(crate) const SHOWN_DESCRIPTOR_SM: u8 = 90;

/// The text of an instruction at an address, as `cuobjdump -sass` prints it, without the final `;`.
pub fn print(sm: Sm, inst: &Inst, address: u64) -> String {
    let mut out = String::with_capacity(64);
    print_to(&mut out, sm, inst, address);
    out
}

/// Appends the result of [`print()`].
pub fn print_to(out: &mut String, sm: Sm, inst: &Inst, address: u64) {
    Printer { sm, inst, address, out }.inst();
}

/// What `FSWZADD` does with its two sources in one lane: adds them, subtracts the second, subtracts the first, uses
/// zero for the first.
pub(crate) const SIGNS: &[&str] = &["PP", "PN", "NP", "ZP"];

struct Printer<'a> {
    sm: Sm,
    inst: &'a Inst,
    address: u64,
    out: &'a mut String,
}

impl Printer<'_> {
    fn inst(&mut self) {
        let form = self.inst.form();
        self.guard(form);
        self.out.push_str(form.mnemonic);
        for piece in &form.pieces {
            match piece {
                Piece::Mod(spec) => self.out.push_str(choice_text(self.inst, spec)),
                Piece::ModIf(spec, show) if modifier_shown(self.inst, spec, *show) => {
                    self.out.push_str(choice_text(self.inst, spec));
                }
                Piece::Text(text) => self.out.push_str(text),
                Piece::Alias(aliases) => self.out.push_str(implied(self.inst, aliases)),
                _ => {}
            }
        }
        let mut first = true;
        for piece in &form.pieces {
            let operand = match piece {
                Piece::Op(operand) => operand,
                Piece::OpIf(operand, show) if operand_shown(self.inst, operand, *show) => operand,
                _ => continue,
            };
            self.out.push_str(if first { " " } else { ", " });
            first = false;
            self.operand(operand);
        }
    }

    fn guard(&mut self, form: &Form) {
        let (index, not) = (self.inst.word() >> 12 & 7, self.inst.word() >> 15 & 1 != 0);
        if index == 7 && !not {
            return;
        }
        self.out.push_str(if not { "@!" } else { "@" });
        self.register_name(form.guard, index as u64, 3);
        self.out.push(' ');
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Slot(_) => {}
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(spec, style) => self.imm(spec, *style),
            Operand::Const(c) => self.constant(c),
            Operand::Mem(mem) => self.mem(mem),
            Operand::Target(spec, style) => self.target(spec, *style),
            Operand::RegTarget(reg, spec, style) => {
                self.reg(reg);
                if *style != TargetStyle::Optional || !is_neutral(self.inst, spec) {
                    self.out.push(' ');
                    self.target(spec, *style);
                }
            }
            Operand::Word(spec) => {
                let text = choice_text(self.inst, spec);
                self.out.push_str(text);
            }
            Operand::Literal(text) => self.out.push_str(text),
            Operand::Scoreboard(spec) => {
                self.out.push_str("SB");
                push_decimal(self.out, self.inst.raw(spec));
            }
            Operand::ScoreboardSet(spec) => self.scoreboards(self.inst.raw(spec)),
            Operand::Handle(handle) => self.handle(handle),
            Operand::Signs(spec) => {
                let pairs = (0..spec.bits()).step_by(2).rev();
                pairs.for_each(|at| self.out.push_str(SIGNS[(self.inst.raw(spec) >> at & 3) as usize]));
            }
        }
    }

    fn handle(&mut self, handle: &HandleOperand) {
        let spec = &handle.reg.spec;
        let index = self.inst.raw(spec) + u64::from(handle.next);
        let offset = handle.offset.as_ref().map_or(0, |spec| self.inst.get_spec(spec) as i64);
        self.out.push_str(handle.word);
        self.out.push('[');
        let named = !is_neutral(self.inst, spec) || offset == 0;
        if named {
            self.register_name(handle.reg.file, index.min((1 << spec.bits()) - 1), spec.bits());
        }
        self.offset(offset, named);
        self.out.push(']');
        self.suffix(handle.reg.text, &handle.reg.suffix);
    }

    fn scoreboards(&mut self, set: u64) {
        self.out.push('{');
        let mut first = true;
        for sb in (0..6).rev().filter(|sb| set >> sb & 1 != 0) {
            if !first {
                self.out.push(',');
            }
            first = false;
            push_decimal(self.out, sb);
        }
        self.out.push('}');
    }

    fn flag(&self, spec: &Option<FieldSpec>) -> bool {
        spec.as_ref().is_some_and(|spec| self.inst.raw(spec) != 0 && told(self.inst, spec))
    }

    fn open_mods(&mut self, neg: &Option<FieldSpec>, abs: &Option<FieldSpec>, complement: Option<Field>) {
        if self.flag(neg) {
            let complemented = complement.is_some_and(|field| self.inst.get(field).unwrap_or(0) != 0);
            self.out.push(if complemented { '~' } else { '-' });
        }
        if self.flag(abs) {
            self.out.push('|');
        }
    }

    fn reg(&mut self, reg: &RegOperand) {
        if self.flag(&reg.not) {
            self.out.push('!');
        }
        self.open_mods(&reg.neg, &reg.abs, reg.complement);
        self.register_name(reg.file, self.inst.get_spec(&reg.spec), reg.spec.bits());
        if reg.inside {
            self.suffix(reg.text, &reg.suffix);
        }
        if self.flag(&reg.abs) {
            self.out.push('|');
        }
        let control = &self.inst.control;
        // The bits have another meaning if the warp may yield.
        if reg.reuse.is_some_and(|bit| control.reuse >> bit & 1 != 0) && !control.yield_ {
            self.out.push_str(".reuse");
        }
        if !reg.inside {
            self.suffix(reg.text, &reg.suffix);
        }
    }

    fn suffix(&mut self, text: &str, suffix: &Option<FieldSpec>) {
        self.out.push_str(text);
        if let Some(spec) = suffix {
            self.out.push_str(choice_text(self.inst, spec));
        }
    }

    fn register_name(&mut self, file: RegFile, index: u64, width: u32) {
        let (prefix, zero) = match file {
            RegFile::R => ("R", 'Z'),
            RegFile::P => ("P", 'T'),
            RegFile::UR => ("UR", 'Z'),
            RegFile::UP => ("UP", 'T'),
            RegFile::B => ("B", '\0'),
        };
        self.out.push_str(prefix);
        if zero != '\0' && index == (1 << width) - 1 {
            self.out.push(zero);
        } else {
            push_decimal(self.out, index);
        }
    }

    fn imm(&mut self, spec: &FieldSpec, style: ImmStyle) {
        let value = self.inst.get_spec(spec);
        match style {
            ImmStyle::Hex => push_hex(self.out, value),
            ImmStyle::SignedBy(field) if self.inst.get(field).is_none_or(|ty| ty & 1 == 0) => {
                push_hex(self.out, value);
            }
            ImmStyle::SignedHex | ImmStyle::SignedBy(_) => {
                let shift = 64 - spec.bits();
                push_signed(
                    self.out,
                    match spec.value {
                        Value::Unsigned => (value << shift) as i64 >> shift,
                        _ => value as i64,
                    },
                );
            }
            ImmStyle::Decimal => push_decimal(self.out, value),
            ImmStyle::Bracketed => {
                self.out.push('[');
                push_hex(self.out, value);
                self.out.push(']');
            }
            ImmStyle::F32 | ImmStyle::HighWord => float::print_f32(self.out, value as u32),
            ImmStyle::F64 => float::print_f64(self.out, value as u32),
            ImmStyle::DoubleIn(field, first, last) => {
                match self.inst.get(field).is_some_and(|value| (first..=last).contains(&value)) {
                    true => float::print_f64(self.out, value as u32),
                    false => float::print_f32(self.out, value as u32),
                }
            }
            ImmStyle::F16x2 => self.halves(value as u32, float::print_f16),
            ImmStyle::Bf16x2 => self.halves(value as u32, float::print_bf16),
            ImmStyle::HalfWord(field, bf16) => match self.inst.get(field) == Some(bf16) {
                true => float::print_bf16(self.out, value as u16),
                false => float::print_f16(self.out, value as u16),
            },
            ImmStyle::HalfSum(field, bf16, single) if self.inst.get(single) == Some(1) => {
                self.imm(spec, ImmStyle::HalfWord(field, bf16));
            }
            ImmStyle::HalfBy(field, bf16) | ImmStyle::HalfSum(field, bf16, _) => {
                let bf16 = self.inst.get(field) == Some(bf16);
                self.halves(value as u32, if bf16 { float::print_bf16 } else { float::print_f16 });
            }
        }
    }

    /// Prints two halves, the high one first.
    fn halves(&mut self, value: u32, print: fn(&mut String, u16)) {
        print(self.out, (value >> 16) as u16);
        self.out.push_str(", ");
        print(self.out, value as u16);
    }

    fn constant(&mut self, c: &ConstOperand) {
        self.open_mods(&c.neg, &c.abs, c.complement);
        match &c.handle {
            Some(handle) => {
                self.out.push_str("cx[");
                self.register_name(RegFile::UR, self.inst.raw(handle), handle.bits());
                self.out.push(']');
            }
            None => {
                self.out.push_str("c[");
                push_hex(self.out, self.inst.raw(&c.bank));
                self.out.push(']');
            }
        }
        let offset = self.inst.get_spec(&c.offset);
        // A zero index register is printed only if the offset is zero too.
        let index = c.index.as_ref().filter(|index| offset == 0 || !is_neutral(self.inst, &index.spec));
        // Offsets are printed as signed numbers, except after a handle without index.
        let unsigned = c.handle.is_some() && index.is_none();
        let unused = if unsigned { 0 } else { u64::BITS - c.offset.value_bits() };
        let offset = (offset << unused) as i64 >> unused;
        // NVIDIA prints a blank before the offset of operands that can have lanes.
        self.out.push_str(if c.suffix.is_some() || !c.text.is_empty() { " [" } else { "[" });
        if let Some(index) = index {
            self.reg(index);
        }
        self.offset(offset, index.is_some());
        self.out.push(']');
        self.suffix(c.text, &c.suffix);
        if self.flag(&c.abs) {
            self.out.push('|');
        }
    }

    fn offset(&mut self, offset: i64, follows: bool) {
        match (follows, offset) {
            (true, 0) => {}
            (true, offset) => {
                self.out.push('+');
                push_signed(self.out, offset);
            }
            (false, offset) => push_signed(self.out, offset),
        }
    }

    fn mem(&mut self, mem: &MemOperand) {
        if let Some(desc) = &mem.desc
            && (self.sm.0 >= SHOWN_DESCRIPTOR_SM || self.inst.raw(&desc.own) != 0)
        {
            self.out.push_str("desc[");
            let last = (1 << desc.spec.bits()) - 1;
            let index = (self.inst.raw(&desc.spec) + u64::from(desc.next)).min(last);
            self.register_name(RegFile::UR, index, desc.spec.bits());
            self.out.push(']');
        }
        self.out.push('[');
        let mut follows = false;
        let ureg = mem.ureg.as_ref();
        let offset = mem.offset.as_ref().map_or(0, |spec| self.inst.get_spec(spec) as i64);
        let based = ureg.is_some() || mem.desc.is_some();
        if let Some(reg) = &mem.reg {
            // A zero register is printed if it has a suffix that must be shown, or if the address has nothing else.
            if !is_neutral(self.inst, &reg.spec) || zero_register_shows(self.sm, self.inst, mem, reg) {
                self.reg(reg);
                follows = true;
            } else if ureg.is_none() && offset == 0 {
                self.out.push_str("RZ");
                follows = true;
            }
        }
        if let Some((ureg, _)) = ureg.filter(|(ureg, _)| self.shows_base(mem, ureg)) {
            if follows {
                self.out.push('+');
            }
            self.register_name(RegFile::UR, self.inst.raw(ureg), ureg.bits());
            follows = true;
        }
        match &mem.offset {
            // An offset without a register is an address.
            Some(spec) if !follows && !based => {
                push_hex(self.out, offset as u64 & ones(spec.value_bits() as u8) as u64);
            }
            _ => self.offset(offset, follows),
        }
        self.out.push(']');
    }

    fn shows_base(&self, mem: &MemOperand, ureg: &FieldSpec) -> bool {
        !is_neutral(self.inst, ureg)
            || match mem.urz {
                Urz::Shown => true,
                Urz::Beside32 => self.inst.get(Field::AddressWidth) == Some(0),
                Urz::Hidden => false,
            }
    }

    fn target(&mut self, spec: &FieldSpec, style: TargetStyle) {
        let distance = self.inst.get_spec(spec);
        let target = match style {
            TargetStyle::FromNext => self.address.wrapping_add(INST_BYTES).wrapping_add(distance),
            TargetStyle::Plain | TargetStyle::Optional => distance,
        };
        self.offset(target as i64, false);
    }
}

fn push_decimal(out: &mut String, value: u64) {
    if value >= 10 {
        push_decimal(out, value / 10);
    }
    out.push(char::from(b'0' + (value % 10) as u8));
}

/// `0x1f`.
fn push_hex(out: &mut String, value: u64) {
    out.push_str("0x");
    let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        let digit = (value >> (4 * digit) & 15) as u8;
        out.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
    }
}

fn push_signed(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    push_hex(out, value.unsigned_abs());
}

/// Whether the zero register of an address is printed for its suffix, next to a base or a descriptor.
pub(crate) fn zero_register_shows(sm: Sm, inst: &Inst, mem: &MemOperand, reg: &RegOperand) -> bool {
    let based = mem.ureg.is_some() || mem.desc.is_some();
    // A 32-bit address register is always printed after a descriptor.
    if mem.desc.is_some() && reg.text.is_empty() && reg.suffix.is_none() {
        return true;
    }
    let suffixed = !reg.text.is_empty()
        || reg.suffix.as_ref().is_some_and(|suffix| !choice_text(inst, suffix).is_empty());
    let width = reg.suffix.is_some_and(|suffix| suffix.field == Field::AddressWidth);
    based && suffixed && (!width || sm.0 >= SHOWN_DESCRIPTOR_SM)
}

fn is_neutral(inst: &Inst, spec: &FieldSpec) -> bool {
    inst.raw(spec) == spec.neutral
}

pub(crate) fn choice_text(inst: &Inst, spec: &FieldSpec) -> &'static str {
    if !told(inst, spec) {
        return "";
    }
    let value = if spec.came_later() { 0 } else { inst.raw(spec) as usize };
    spec.texts().get(value).copied().unwrap_or("")
}

/// Whether the field has a meaning, given the values of the other fields.
fn told(inst: &Inst, spec: &FieldSpec) -> bool {
    spec.silent.iter().all(|&(field, value)| inst.get(field) != Some(value))
}

/// Whether a conditional modifier is printed.
fn modifier_shown(inst: &Inst, spec: &FieldSpec, show: Show) -> bool {
    shown(inst, show, || !is_neutral(inst, spec))
}

/// Whether a conditional operand is printed.
pub(crate) fn operand_shown(inst: &Inst, operand: &Operand, show: Show) -> bool {
    shown(inst, show, || {
        let mut neutral = true;
        operand.each_field(&mut |spec| neutral &= is_neutral(inst, spec));
        !neutral
    })
}

fn shown(inst: &Inst, show: Show, not_neutral: impl Fn() -> bool) -> bool {
    match show {
        Show::Always => true,
        Show::Never => false,
        Show::NotNeutral => not_neutral(),
        Show::NotNeutralOr(field, value) => inst.get(field) == Some(value) || not_neutral(),
        Show::When(field, value) => inst.get(field) == Some(value),
        Show::Unless(field, value) => inst.get(field) != Some(value),
    }
}

/// The text of the first alternative whose conditions hold.
fn implied(inst: &Inst, aliases: &[Alias]) -> &'static str {
    let holds = |(field, condition): &(Field, AliasValue)| match (inst.get(*field), condition) {
        (Some(value), AliasValue::Is(wanted)) => value == *wanted,
        (Some(value), AliasValue::Below(limit)) => value < *limit,
        (Some(value), AliasValue::PowerOfTwo) => {
            value.is_power_of_two() && value < 1 << 31 && value != 1 << 16
        }
        (None, _) => false,
    };
    aliases.iter().find(|(_, conditions)| conditions.iter().all(holds)).map_or("", |(text, _)| text)
}
