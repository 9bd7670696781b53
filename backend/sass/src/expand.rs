//! The table: families expanded into forms, with the indices that the walkers use.
//!
//! A shape has one letter per slot: `r` register, `i` immediate, `c` constant, `u` uniform register,
//! `x` constant through a handle. The letters choose the operand form, bits 9 to 11 of the opcode, and the
//! place of each source: one source at most is not a register, and it takes the wide slot from bit 32.

use crate::inst::Control;
use crate::model::*;
use crate::table::FAMILIES;
use std::collections::HashMap;
use std::sync::LazyLock;

/// All forms of all generations.
pub(crate) struct Table {
    forms: Vec<Form>,
    by_opcode: Vec<Vec<FormId>>,
    by_mnemonic: HashMap<&'static str, Vec<FormId>>,
    /// Names with dots, of rows that share their mnemonic with others.
    by_name: HashMap<&'static str, Vec<FormId>>,
}

/// The low bits of a word that every form fixes.
const OPCODE_BITS: u8 = 12;
/// Set where the wide slot holds a uniform register, and in all instructions of the uniform datapath.
const UNIFORM_BIT: u128 = 1 << 91;
/// The last generation whose arithmetic reads constants in place.
const LAST_CONSTANT_SM: u8 = 90;
/// The first generation whose uniform registers take eight bits.
const WIDE_UNIFORM_SM: u8 = 100;
/// The first generation whose branch offsets are split around bit 24.
const SPLIT_TARGET_SM: u8 = 90;

static TABLE: LazyLock<Table> = LazyLock::new(Table::build);

pub(crate) fn table() -> &'static Table {
    &TABLE
}

/// The form of a name with an operand shape on a generation. The name is a mnemonic, or for the rows that
/// need one, a mnemonic with modifiers: `IMAD.WIDE`. Rows without a choice of operands have the shape "".
pub fn lookup(sm: Sm, name: &str, shape: &str) -> Option<FormId> {
    named(sm, name).find(|&id| table().form(id).shape == shape)
}

/// The operand shapes that a name has on a generation.
pub fn shapes(sm: Sm, name: &str) -> impl Iterator<Item = &'static str> {
    named(sm, name).map(|id| table().form(id).shape)
}

fn named(sm: Sm, name: &str) -> impl Iterator<Item = FormId> {
    let ids = if name.contains('.') { table().by_name.get(name) } else { table().by_mnemonic.get(name) };
    ids.into_iter().flatten().copied().filter(move |&id| {
        let form = table().form(id);
        form.holds_for(sm) && (form.name == name)
    })
}

/// The row of a form.
pub fn form(id: FormId) -> &'static Form {
    table().form(id)
}

/// Every form, in the order of the table.
pub fn forms() -> impl Iterator<Item = FormId> {
    (0..table().forms.len()).map(|i| FormId(i as u16))
}

impl Table {
    fn build() -> Table {
        let mut forms = Vec::new();
        for family in FAMILIES.iter().copied().flatten() {
            expand(family, &mut forms);
        }
        let mut by_opcode = vec![Vec::new(); 1 << OPCODE_BITS];
        let mut by_mnemonic: HashMap<_, Vec<FormId>> = HashMap::new();
        let mut by_name: HashMap<_, Vec<FormId>> = HashMap::new();
        for (i, form) in forms.iter().enumerate() {
            let id = FormId(i as u16);
            by_opcode[(form.fixed & ones(OPCODE_BITS)) as usize].push(id);
            by_mnemonic.entry(form.mnemonic).or_default().push(id);
            if form.name != form.mnemonic {
                by_name.entry(form.name).or_default().push(id);
            }
        }
        Table { forms, by_opcode, by_mnemonic, by_name }
    }

    pub(crate) fn form(&self, id: FormId) -> &Form {
        &self.forms[usize::from(id.0)]
    }

    pub(crate) fn forms_of_opcode(&self, word: u128) -> impl Iterator<Item = FormId> {
        self.by_opcode[(word & ones(OPCODE_BITS)) as usize].iter().copied()
    }

    pub(crate) fn forms_of_mnemonic(&self, mnemonic: &str) -> impl Iterator<Item = FormId> + use<'_> {
        self.by_mnemonic.get(mnemonic).into_iter().flatten().copied()
    }
}

fn expand(family: &'static Family, out: &mut Vec<Form>) {
    if family.shapes.is_empty() {
        expand_generations(family, family.label, u128::from(family.opcode), |_, piece| piece, out);
        return;
    }
    for shape in family.shapes.split_ascii_whitespace() {
        let (letters, operand_form) = match shape.split_once(':') {
            Some((letters, digit)) => (letters, u16::from(digit.as_bytes()[0] - b'0')),
            None => (shape, operand_form(shape)),
        };
        let mut family = *family;
        if letters.contains(['c', 'x']) {
            family.sm.1 = family.sm.1.min(LAST_CONSTANT_SM);
            if family.sm.0 > family.sm.1 {
                continue;
            }
        }
        let mut opcode = u128::from(family.opcode | operand_form << 9);
        if letters.contains(['u', 'x']) {
            opcode |= UNIFORM_BIT;
        }
        let place = |nth: usize, piece: Piece| match piece {
            Piece::Op(Operand::Slot(slot)) => {
                Piece::Op(place_slot(slot, letters.as_bytes()[nth], operand_form))
            }
            Piece::OpIf(Operand::Slot(slot), show) => {
                Piece::OpIf(place_slot(slot, letters.as_bytes()[nth], operand_form), show)
            }
            other => other,
        };
        expand_generations(&family, letters, opcode, place, out);
    }
}

/// The operand form of a shape: which source is not a register, and of which kind.
fn operand_form(letters: &str) -> u16 {
    let uniform = !letters.contains('r');
    let special =
        letters.rfind(if uniform { ['i', 'c', 'x'].as_slice() } else { ['i', 'c', 'u', 'x'].as_slice() });
    let Some(at) = special else { return 1 };
    let kind = match letters.as_bytes()[at] {
        b'i' => 0,
        b'c' | b'x' => 1,
        _ => 2,
    };
    // The third source swaps places with the second.
    match (at, kind) {
        (2, 2) => 7,
        (2, kind) => 2 + kind,
        (_, kind) => 4 + kind,
    }
}

/// Splits a form where its bits differ between generations.
fn expand_generations(
    family: &Family,
    shape: &'static str,
    opcode: u128,
    place: impl Fn(usize, Piece) -> Piece,
    out: &mut Vec<Form>,
) {
    let mut nth = 0;
    let pieces: Vec<Piece> = family
        .pieces
        .iter()
        .map(|&piece| {
            let slot = matches!(piece, Piece::Op(Operand::Slot(_)) | Piece::OpIf(Operand::Slot(_), _));
            let placed = place(nth, piece);
            nth += usize::from(slot);
            placed
        })
        .collect();
    let mut starts = vec![family.sm.0];
    for boundary in [80, 86, 89, 90, WIDE_UNIFORM_SM] {
        let differs =
            pieces.iter().any(|piece| at_generation(*piece, boundary) != at_generation(*piece, boundary - 1));
        if differs && family.sm.0 < boundary && boundary <= family.sm.1 {
            starts.push(boundary);
        }
    }
    for (i, &first) in starts.iter().enumerate() {
        let last = starts.get(i + 1).map_or(family.sm.1, |&next| next - 1);
        let pieces: Vec<Piece> = pieces.iter().map(|piece| at_generation(*piece, first)).collect();
        out.push(finish(family, shape, opcode, (first, last), pieces));
    }
}

/// The piece as the generation encodes it.
fn at_generation(mut piece: Piece, sm: u8) -> Piece {
    if let Piece::Mod(spec) | Piece::ModIf(spec, _) = &mut piece
        && sm < spec.since.1
    {
        spec.limit = spec.since.0;
    }
    if let Piece::Op(operand) | Piece::OpIf(operand, _) = &mut piece {
        match operand {
            Operand::Reg(reg) | Operand::Bracket(_, reg) => widen(reg, sm),
            Operand::Const(c) => {
                if let Some(index) = &mut c.index {
                    widen(index, sm);
                }
                if let Some(handle) = &mut c.handle {
                    widen_spec(handle, sm);
                }
            }
            Operand::Mem(mem) => {
                if let Some(reg) = &mut mem.reg {
                    widen(reg, sm);
                }
                if let Some((spec, _)) = &mut mem.ureg {
                    widen_spec(spec, sm);
                }
                if let Some(desc) = &mut mem.desc {
                    widen_spec(&mut desc.spec, sm);
                }
            }
            Operand::Target(spec, _) | Operand::RegTarget(_, spec, _)
                if spec.width == 48 && sm >= SPLIT_TARGET_SM =>
            {
                *spec = FieldSpec { lo: 16, width: 8, high: (34, 48), ..*spec };
            }
            _ => {}
        }
    }
    piece
}

fn widen(reg: &mut RegOperand, sm: u8) {
    if reg.file == RegFile::UR {
        widen_spec(&mut reg.spec, sm);
    }
}

fn widen_spec(spec: &mut FieldSpec, sm: u8) {
    if spec.width == 6 && sm >= WIDE_UNIFORM_SM {
        spec.width = 8;
        if spec.neutral == 63 {
            spec.neutral = 255;
        }
    }
}

/// Puts a source where the operand form has it.
fn place_slot(slot: Slot, letter: u8, operand_form: u16) -> Operand {
    let swapped = matches!(operand_form, 2 | 3 | 7);
    let (lo, neg, abs, swizzle) = match slot.place {
        Place::A => (24, 72, 73, 74),
        Place::B if !swapped => (32, 63, 62, 60),
        Place::C if swapped => (32, 63, 62, 60),
        Place::Wide | Place::WideC => (32, 63, 62, 60),
        Place::B | Place::C => (64, 75, 74, 81),
    };
    // The operand cache goes by the source's role, not by its bits.
    let reuse = match slot.place {
        Place::A => 0,
        Place::B | Place::Wide => 1,
        Place::C | Place::WideC => 2,
    };
    // The third source of packed halves has its modifiers elsewhere than that of singles.
    let half = matches!(slot.mods, Mods::Half | Mods::HalfWhole);
    let (neg, abs) = if half && lo == 64 { (84, 83) } else { (neg, abs) };
    let (f_neg, f_abs, f_swizzle, f_reg, f_ureg) = match slot.role {
        Role::A => (Field::NegA, Field::AbsA, Field::SwizzleA, Field::Ra, Field::URa),
        Role::B => (Field::NegB, Field::AbsB, Field::SwizzleB, Field::Rb, Field::URb),
        _ => (Field::NegC, Field::AbsC, Field::SwizzleC, Field::Rc, Field::URc),
    };
    let flag = |field, lo| Some(FieldSpec::new(field, lo, 1));
    let (neg, abs, suffix, complement) = match slot.mods {
        Mods::None => (None, None, None, None),
        Mods::Neg => (flag(f_neg, neg), None, None, None),
        Mods::NegAbs | Mods::HalfWhole => (flag(f_neg, neg), flag(f_abs, abs), None, None),
        Mods::NegOrNot(field) => (flag(f_neg, neg), None, None, Some(field)),
        Mods::Not => (flag(f_neg, neg), None, None, Some(f_neg)),
        Mods::Half => (
            flag(f_neg, neg),
            flag(f_abs, abs),
            Some(FieldSpec::new(f_swizzle, swizzle, 2).choice(SWIZZLE)),
            None,
        ),
    };
    let register = |file, field, width, neutral| {
        Operand::Reg(RegOperand {
            count: slot.count,
            neg,
            abs,
            suffix: suffix.or(slot.suffix),
            text: slot.text,
            complement,
            reuse: (file == RegFile::R).then_some(reuse),
            ..RegOperand::new(file, FieldSpec::new(field, lo, width).neutral(neutral), slot.role)
        })
    };
    match letter {
        b'i' => Operand::Imm(FieldSpec::new(Field::Imm32, 32, 32), slot.imm),
        b'c' | b'x' => Operand::Const(ConstOperand {
            bank: FieldSpec::new(Field::CBank, 54, 5),
            offset: FieldSpec::new(Field::COffset, 40, 14).value(Value::Scaled { scale: 4 }),
            index: None,
            handle: (letter == b'x').then_some(FieldSpec::new(Field::Ur, 32, 6).neutral(63)),
            neg,
            abs,
            suffix,
            text: slot.text,
            complement,
        }),
        b'u' if lo == 32 && !matches!(slot.place, Place::A) && operand_form >= 6 => {
            register(RegFile::UR, Field::Ur, 6, 63)
        }
        b'u' => register(RegFile::UR, f_ureg, 6, 63),
        _ => register(RegFile::R, f_reg, 8, 255),
    }
}

/// Lanes of a packed half source.
pub(crate) const SWIZZLE: &[&str] = &["", ".F32", ".H0_H0", ".H1_H1"];

fn finish(family: &Family, shape: &'static str, opcode: u128, sm: (u8, u8), pieces: Vec<Piece>) -> Form {
    let mut fields =
        vec![FieldSpec::new(Field::Guard, 12, 3).neutral(7), FieldSpec::new(Field::GuardNot, 15, 1)];
    for piece in &pieces {
        piece.each_field(&mut |spec| {
            // Conditional pieces may show one field in several ways.
            if !fields.iter().any(|known| known.field == spec.field && known.mask() == spec.mask()) {
                fields.push(*spec);
            }
        });
    }
    let fixed = opcode | family.ones;
    let mut taken = Control::MASK;
    let mut neutral = fixed;
    for spec in &fields {
        taken |= spec.mask();
        neutral = spec.insert(neutral, spec.neutral);
    }
    Form {
        name: family.name,
        mnemonic: family.name.split('.').next().unwrap_or_default(),
        shape,
        sm,
        fixed_mask: !taken,
        fixed,
        neutral,
        guard: family.guard,
        class: family.class,
        pieces,
        fields,
    }
}
