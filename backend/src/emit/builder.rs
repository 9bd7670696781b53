//! Builds one machine instruction: chooses a form by mnemonic and operand shape, and sets its fields by role.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::ir::{Dst, File, Reg, Src, SrcKind};
use crate::ori::row::Setting;
use crate::ori::signature::{At, Signature, SrcSlot};
use sass::{Field, Inst, Sm};
use smallvec::SmallVec;

/// The phase name in errors.
pub(super) const PHASE: &str = "emit";

/// A source that may be a register, an immediate, a constant or a uniform register, by its role in the form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    A,
    B,
    C,
}

impl Slot {
    fn register(self) -> Field {
        match self {
            Slot::A => Field::Ra,
            Slot::B => Field::Rb,
            Slot::C => Field::Rc,
        }
    }

    fn uniform(self) -> Field {
        match self {
            Slot::A => Field::URa,
            Slot::B => Field::URb,
            Slot::C => Field::URc,
        }
    }

    fn negation(self) -> Field {
        match self {
            Slot::A => Field::NegA,
            Slot::B => Field::NegB,
            Slot::C => Field::NegC,
        }
    }

    fn magnitude(self) -> Field {
        match self {
            Slot::A => Field::AbsA,
            Slot::B => Field::AbsB,
            Slot::C => Field::AbsC,
        }
    }
}

/// Builds one instruction. [`Builder::finish`] reports the first operand or modifier that does not fit.
pub(super) struct Builder {
    inst: Inst,
    src: SrcId,
    problem: Option<String>,
}

impl Builder {
    /// Starts an instruction whose form has no slots, or whose slots the caller sets by field.
    pub(super) fn new(sm: Sm, src: SrcId, mnemonic: &str, shape: &str) -> Result<Builder, CodegenError> {
        match sass::lookup(sm, mnemonic, shape) {
            Some(form) => Ok(Builder { inst: Inst::new(form), src, problem: None }),
            None => {
                let what = format!("{mnemonic} {shape:?}, which has no encoding on sm_{}", sm.0);
                Err(CodegenError::unsupported(src, what))
            }
        }
    }

    /// Starts an instruction whose shape follows from the sources.
    pub(super) fn shaped(
        sm: Sm,
        src: SrcId,
        mnemonic: &str,
        slots: &[(Slot, &Src)],
    ) -> Result<Builder, CodegenError> {
        let mut shape = [0u8; 3];
        for (letter, (_, source)) in shape.iter_mut().zip(slots) {
            *letter = shape_letter(source);
        }
        let shape = str::from_utf8(&shape[..slots.len()]).unwrap_or("");
        let mut builder = Builder::new(sm, src, mnemonic, shape)?;
        for &(slot, source) in slots {
            builder.source(slot, source);
        }
        Ok(builder)
    }

    /// Starts an instruction of the best family that the target has, in the form that the sources select.
    pub(super) fn of_row(
        sm: Sm,
        src: SrcId,
        families: &[&'static str],
        signature: &Signature,
        sources: &[Src],
    ) -> Result<Builder, CodegenError> {
        let letters: SmallVec<[u8; 4]> =
            signature.srcs.iter().zip(sources).filter_map(|(slot, source)| letter(slot, source)).collect();
        let shape = str::from_utf8(&letters).unwrap_or("");
        // Some accesses have a separate form for addresses without a descriptor.
        let bare =
            |(slot, source): (&SrcSlot, &Src)| slot.at == At::Descriptor && source.kind == SrcKind::Zero;
        let without = signature.srcs.iter().zip(sources).any(bare).then_some("r");
        for shape in without.into_iter().chain([shape]) {
            if let Some(form) = families.iter().find_map(|family| sass::lookup(sm, family, shape)) {
                return Ok(Builder { inst: Inst::new(form), src, problem: None });
            }
        }
        Builder::new(sm, src, families[0], shape)
    }

    /// Sets the source of a slot.
    pub(super) fn operand(&mut self, slot: &SrcSlot, source: &Src) -> &mut Builder {
        match slot.at {
            At::B if slot.extended && matches!(source.kind, SrcKind::Imm(_)) => self.extended(source),
            At::A => self.source(Slot::A, source),
            At::B => self.source(Slot::B, source),
            At::C => self.source(Slot::C, source),
            At::In(field) if matches!(slot.file, File::P | File::UP) => self.pred(field, source),
            At::In(field) => self.reg(field, slot.file, source),
            At::Either(register, immediate, mask) => {
                // Ignored bits need not fit.
                let kind = match source.kind {
                    SrcKind::Imm(bits) => SrcKind::Imm(bits & mask),
                    other => other,
                };
                self.reg_or_imm(register, immediate, &Src { kind, ..*source })
            }
            At::Constant => self.constant(source),
            At::Data => {
                let field = if self.has(Field::Rb) { Field::Rb } else { Field::Rc };
                self.reg(field, File::R, source)
            }
            At::Address if is_uniform(source) => {
                self.reg(Field::Ra, File::R, &Src::ZERO);
                self.reg(Field::UrBase, File::UR, source)
            }
            At::Address => self.reg(Field::Ra, File::R, source),
            // Compare-and-swap has no descriptor in any form.
            At::Descriptor if !self.has(Field::UrDesc) => self,
            At::Descriptor => self.reg(Field::UrDesc, File::UR, source),
            At::Base if source.kind == SrcKind::Zero => self,
            At::Base => self.reg(Field::UrBase, File::UR, source),
            At::Policy if source.kind == SrcKind::Zero => self,
            At::Extra if source.kind == SrcKind::Undef => self,
            At::Policy => self.reg(Field::UrDesc, File::UR, source),
            At::Extra => self.reg(Field::URc, File::UR, source),
            At::Custom | At::Each => self,
        }
    }

    /// Sets an immediate that the instruction sign-extends to a pair. Some forms encode the sign in a separate bit.
    fn extended(&mut self, source: &Src) -> &mut Builder {
        self.source(Slot::B, source);
        if let (SrcKind::Imm(bits), Some(spec)) = (source.kind, self.inst.form().spec(Field::Imm32))
            && spec.bits() > u32::BITS
        {
            self.value(Field::Imm32, i64::from(bits as i32) as u64);
        }
        self
    }

    /// Sets a modifier, in the first of the fields that the form has.
    pub(super) fn setting(&mut self, fields: &[Field], setting: Setting) -> &mut Builder {
        let found = fields.iter().copied().find(|&field| self.has(field));
        match (setting, found) {
            (Setting::Custom, _) => self,
            (Setting::Access(access), _) => {
                self.setting(&[Field::Size], Setting::Choice(access.size.machine_texts()));
                self.setting(&[Field::Order], Setting::Choice(access.order.machine_texts()));
                self.setting(&[Field::Evict], Setting::Choice(access.evict.machine_texts()));
                self.setting(&[Field::Prefetch], Setting::Choice(access.prefetch.machine_texts()));
                self.value(Field::Offset, i64::from(access.offset) as u64)
            }
            // With an index, the offset is a signed number of 16 bits.
            (Setting::Number(value), Some(Field::COffset)) => self.value(Field::COffset, value & 0xffff),
            (Setting::Number(value), _) => self.value(found.unwrap_or(fields[0]), value),
            (Setting::Choice(texts), None) => {
                if !texts.contains(&"") {
                    self.fail(format!("no {:?} for {}", fields[0], texts[0]));
                }
                self
            }
            (Setting::Choice(texts), Some(field)) => {
                let named = texts.iter().filter(|text| !text.is_empty());
                let unnamed = texts.iter().filter(|text| text.is_empty());
                // A target may lack some settings.
                let allowed =
                    |value: &u64| self.inst.form().spec(field).is_some_and(|spec| spec.allows(*value));
                let value = |text: &&str| self.inst.choice(field, text).filter(allowed);
                match named.chain(unnamed).find_map(value) {
                    Some(value) => self.value(field, value),
                    None => {
                        self.fail(format!("{field:?} has no {:?}", texts[0]));
                        self
                    }
                }
            }
            (Setting::Flag(on, _), None) => self.flag(fields[0], on),
            (Setting::Flag(on, text), Some(field)) => match self.inst.choice(field, text) {
                Some(value) => self.value(field, value),
                None => self.flag(field, on),
            },
        }
    }

    pub(super) fn finish(self) -> Result<Inst, CodegenError> {
        let problem = self.problem.or_else(|| self.inst.rejected().map(|f| format!("{f:?} does not fit")));
        match problem {
            None => Ok(self.inst),
            Some(problem) => {
                let form = self.inst.form();
                let what = format!("{} {:?}: {problem}", form.mnemonic, form.shape);
                Err(CodegenError::unsupported(self.src, what))
            }
        }
    }

    fn fail(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    pub(super) fn has(&self, field: Field) -> bool {
        self.inst.has(field)
    }

    pub(super) fn value(&mut self, field: Field, value: u64) -> &mut Builder {
        if self.has(field) {
            self.inst.set(field, value);
        } else {
            self.fail(format!("no {field:?}"));
        }
        self
    }

    /// Sets a flag. If the form has no such field, the flag must be off.
    pub(super) fn flag(&mut self, field: Field, on: bool) -> &mut Builder {
        if on {
            self.value(field, 1);
        } else if self.has(field) {
            self.inst.set(field, 0);
        }
        self
    }

    /// Sets a field by the text of its setting. If the form has no such field, the text must be empty.
    pub(super) fn text(&mut self, field: Field, text: &str) -> &mut Builder {
        if !self.has(field) {
            if !text.is_empty() {
                self.fail(format!("no {field:?} for {text}"));
            }
        } else if let Some(value) = self.inst.choice(field, text) {
            self.inst.set(field, value);
        } else {
            self.fail(format!("{field:?} has no {text:?}"));
        }
        self
    }

    /// Sets a destination; a sink leaves the field at RZ or PT.
    pub(super) fn dst(&mut self, field: Field, dst: Option<&Dst>) -> &mut Builder {
        match dst {
            Some(Dst::Reg(reg)) => {
                self.value(field, u64::from(reg.index));
            }
            Some(Dst::Value(v)) => self.fail(format!("{v:?} has no register")),
            Some(Dst::Sink) | None => {}
        }
        self
    }

    /// Sets a source that must be a register of the file; zero leaves the field neutral.
    pub(super) fn reg(&mut self, field: Field, file: File, source: &Src) -> &mut Builder {
        match source.kind {
            SrcKind::Reg(reg) if reg.file == file => {
                self.value(field, u64::from(reg.index));
            }
            SrcKind::Zero | SrcKind::Undef => {}
            _ => self.fail(format!("{field:?} cannot be {source:?}")),
        }
        self
    }

    /// Sets a predicate source with its negation.
    pub(super) fn pred(&mut self, field: Field, source: &Src) -> &mut Builder {
        let not = match field {
            Field::Guard => Field::GuardNot,
            Field::Pp => Field::PpNot,
            Field::Pr => Field::PrNot,
            Field::Ps => Field::PsNot,
            _ => {
                self.fail(format!("{field:?} holds no predicate"));
                return self;
            }
        };
        match predicate(source) {
            Some((index, negated)) => {
                self.value(field, u64::from(index));
                self.flag(not, negated);
            }
            None => self.fail(format!("{field:?} cannot be {source:?}")),
        }
        self
    }

    /// Sets a source that the form encodes as a register or as a small immediate; zero is the immediate.
    pub(super) fn reg_or_imm(&mut self, register: Field, immediate: Field, source: &Src) -> &mut Builder {
        match source.kind {
            SrcKind::Imm(bits) => self.value(immediate, bits.into()),
            SrcKind::Zero => self.value(immediate, 0),
            _ => self.reg(register, File::R, source),
        }
    }

    /// Sets `c[bank][offset]` in a form that always has a constant.
    pub(super) fn constant(&mut self, source: &Src) -> &mut Builder {
        if let SrcKind::Const(c) = source.kind {
            self.value(Field::CBank, c.bank.into()).value(Field::COffset, c.offset.into());
        }
        self
    }

    /// Sets a source of the shape, with its modifiers.
    pub(super) fn source(&mut self, slot: Slot, source: &Src) -> &mut Builder {
        match source.kind {
            SrcKind::Reg(Reg { file: File::R, index }) => {
                self.value(slot.register(), u64::from(index));
            }
            SrcKind::Reg(Reg { file: File::UR, index }) => {
                let field = if self.has(Field::Ur) { Field::Ur } else { slot.uniform() };
                self.value(field, u64::from(index));
            }
            SrcKind::Zero | SrcKind::Undef => {}
            SrcKind::Imm(bits) => {
                self.value(Field::Imm32, u64::from(bits));
            }
            SrcKind::Const(c) => {
                self.value(Field::CBank, u64::from(c.bank)).value(Field::COffset, u64::from(c.offset));
            }
            _ => self.fail(format!("{slot:?} cannot be {source:?}")),
        }
        // The bit for the sign also encodes the complement.
        self.flag(slot.negation(), source.mods.neg || source.mods.not);
        self.flag(slot.magnitude(), source.mods.abs);
        self
    }
}

/// The register and negation of a predicate source.
pub(super) fn predicate(source: &Src) -> Option<(u8, bool)> {
    const PT: u8 = 7;
    match source.kind {
        SrcKind::Reg(Reg { file: File::P | File::UP, index }) => Some((index, source.mods.not)),
        SrcKind::Pred(value) => Some((PT, value == source.mods.not)),
        SrcKind::Undef => Some((PT, false)),
        _ => None,
    }
}

fn is_uniform(source: &Src) -> bool {
    matches!(source.kind, SrcKind::Reg(Reg { file: File::UR, .. }))
}

pub(super) fn is_imm(source: &Src) -> bool {
    matches!(source.kind, SrcKind::Imm(_) | SrcKind::Zero)
}

/// The letter of a source in the name of the form's shape.
fn letter(slot: &SrcSlot, source: &Src) -> Option<u8> {
    match slot.at {
        At::A | At::B | At::C if slot.file == File::UR && source.kind == SrcKind::Zero => Some(b'u'),
        At::A | At::B | At::C => Some(shape_letter(source)),
        At::Either(..) => Some(if is_imm(source) { b'i' } else { b'r' }),
        At::Address => is_uniform(source).then_some(b'u'),
        At::Base => (source.kind != SrcKind::Zero).then_some(b'u'),
        At::Extra => (source.kind != SrcKind::Undef).then_some(b'm'),
        At::Policy => (source.kind != SrcKind::Zero).then_some(b'd'),
        At::In(_) | At::Constant | At::Data | At::Descriptor | At::Custom | At::Each => None,
    }
}

/// The letter of a source's kind in shape names: see [`sass::lookup`].
fn shape_letter(source: &Src) -> u8 {
    match source.kind {
        SrcKind::Imm(_) => b'i',
        SrcKind::Const(_) => b'c',
        SrcKind::Reg(Reg { file: File::UR, .. }) => b'u',
        _ => b'r',
    }
}
