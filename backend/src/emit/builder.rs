//! One machine instruction in the making: a form chosen by mnemonic and operand shape, its fields by role.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::ir::{Dst, File, Reg, Src, SrcKind};
use sass::{Field, Inst, Sm};

/// The phase that errors name.
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

/// Builds one instruction; the first thing that does not fit is reported by [`Builder::finish`].
pub(super) struct Builder {
    inst: Inst,
    src: SrcId,
    problem: Option<String>,
}

impl Builder {
    /// An instruction of a form that takes no slots, or whose slots the caller fills by field.
    pub(super) fn new(sm: Sm, src: SrcId, mnemonic: &str, shape: &str) -> Result<Builder, CodegenError> {
        match sass::lookup(sm, mnemonic, shape) {
            Some(form) => Ok(Builder { inst: Inst::new(form), src, problem: None }),
            None => {
                let what = format!("{mnemonic} {shape:?}, which has no encoding on sm_{}", sm.0);
                Err(CodegenError::unsupported(src, what))
            }
        }
    }

    /// An instruction whose shape the sources decide.
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

    /// A flag; a form without it has it off.
    pub(super) fn flag(&mut self, field: Field, on: bool) -> &mut Builder {
        if on {
            self.value(field, 1);
        } else if self.has(field) {
            self.inst.set(field, 0);
        }
        self
    }

    /// A choice by its text. A form without the field has none of its alternatives, the empty text apart.
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

    /// A destination; a sink leaves the field at RZ or PT.
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

    /// A source that can only be a register of the file; zero leaves the field neutral.
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

    /// A predicate source with its negation.
    pub(super) fn pred(&mut self, field: Field, not: Field, source: &Src) -> &mut Builder {
        match predicate(source) {
            Some((index, negated)) => {
                self.value(field, u64::from(index));
                self.flag(not, negated);
            }
            None => self.fail(format!("{field:?} cannot be {source:?}")),
        }
        self
    }

    /// A source of the shape, with its modifiers.
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
        // A complement is encoded where the sign is.
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

/// What the sources of a shape are called: see [`sass::lookup`].
fn shape_letter(source: &Src) -> u8 {
    match source.kind {
        SrcKind::Imm(_) => b'i',
        SrcKind::Const(_) => b'c',
        SrcKind::Reg(Reg { file: File::UR, .. }) => b'u',
        _ => b'r',
    }
}
