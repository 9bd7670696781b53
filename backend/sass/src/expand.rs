//! The table: the families expanded into forms, with indices for decoding and parsing.
//!
//! Which forms exist is computed once, which is cheap. The fields of a form are computed when the form is first used,
//! because one run of a tool uses few forms.
//!
//! A shape has one letter per slot: `r` register, `i` immediate, `c` constant, `u` uniform register, `x` constant
//! through a handle. The letters determine the operand form (bits 9 to 11 of the opcode) and the place of each source:
//! at most one source is not a general register, and it is encoded in the wide slot from bit 32 on.

use crate::control::Control;
use crate::decode::Bucket;
use crate::model::*;
use crate::names::Names;
use crate::table::{FAMILIES, special_registers};
use std::sync::{LazyLock, OnceLock};

/// All forms of all generations.
pub(crate) struct Table {
    entries: Vec<Entry>,
    /// The forms sorted by opcode, and the start of each opcode's forms.
    by_opcode: Vec<FormId>,
    opcodes: Vec<u16>,
    /// The decoding data of each generation, created on first use.
    generations: Vec<OnceLock<Generation>>,
    by_name: Names,
    /// The index of the parser.
    by_mnemonic: OnceLock<Names>,
}

/// A form that exists. Its row is computed on first use.
struct Entry {
    family: &'static Family,
    shape: &'static str,
    /// Bits 9 to 11 of the opcode, which determine where each source is encoded.
    operand_form: u16,
    fixed: u128,
    sm: (u8, u8),
    form: OnceLock<Box<Form>>,
}

/// The buckets of the opcodes, created on first use. The index of a bucket is that of the opcode's first form in
/// [`Table::by_opcode`].
struct Generation(Vec<OnceLock<Box<Bucket>>>);

/// The number of low bits that make up the opcode. Every form fixes them.
const OPCODE_BITS: u8 = 12;
/// Set if the wide slot holds a uniform register, and in all instructions of the uniform datapath.
pub(crate) const UNIFORM_BIT: u128 = 1 << 91;
/// The last generation whose arithmetic instructions have constant operands.
const LAST_CONSTANT_SM: u8 = 90;
/// The average number of forms per family, rounded up. Used to allocate the table.
const FORMS_PER_FAMILY: usize = 4;

static TABLE: LazyLock<Table> = LazyLock::new(Table::build);

pub(crate) fn table() -> &'static Table {
    &TABLE
}

/// The form with a name and an operand shape on a generation. The name is a mnemonic, or a mnemonic with modifiers for
/// the rows that need them: `IMAD.WIDE`. Rows without operand shapes have the shape "".
pub fn lookup(sm: Sm, name: &str, shape: &str) -> Option<FormId> {
    named(sm, name).find(|&id| table().entry(id).shape == shape)
}

pub(crate) fn named(sm: Sm, name: &str) -> impl Iterator<Item = FormId> {
    table().by_name.forms(name).filter(move |&id| table().entry(id).holds_for(sm))
}

/// The row of a form.
pub fn form(id: FormId) -> &'static Form {
    table().form(id)
}

/// Every form, in the order of the table.
pub fn forms() -> impl Iterator<Item = FormId> {
    (0..table().entries.len()).map(|i| FormId(i as u16))
}

impl Table {
    fn build() -> Table {
        let families = FAMILIES.iter().map(|rows| rows.len()).sum::<usize>();
        let mut entries = Vec::with_capacity(families * FORMS_PER_FAMILY);
        let mut by_name = Names::with_capacity(families);
        for family in FAMILIES.iter().copied().flatten() {
            let first = entries.len() as u16;
            expand(family, &mut entries);
            by_name.add(family.name, first..entries.len() as u16);
        }
        let mut opcodes = vec![0; (1 << OPCODE_BITS) + 1];
        for entry in &entries {
            opcodes[opcode(entry.fixed) + 1] += 1;
        }
        for i in 1..opcodes.len() {
            opcodes[i] += opcodes[i - 1];
        }
        let mut by_opcode = vec![FormId(0); entries.len()];
        let mut next = opcodes.clone();
        for (entry, id) in entries.iter().zip(0..) {
            let at = &mut next[opcode(entry.fixed)];
            by_opcode[usize::from(*at)] = FormId(id);
            *at += 1;
        }
        let generations = Sm::ALL.iter().map(|_| OnceLock::new()).collect();
        Table { entries, by_opcode, opcodes, generations, by_name, by_mnemonic: OnceLock::new() }
    }

    fn entry(&self, id: FormId) -> &Entry {
        &self.entries[usize::from(id.0)]
    }

    pub(crate) fn form(&self, id: FormId) -> &Form {
        let entry = self.entry(id);
        entry.form.get_or_init(|| Box::new(entry.expand()))
    }

    /// The forms of a word's opcode on a generation. `None` for an unknown generation or opcode.
    pub(crate) fn bucket(&self, sm: Sm, word: u128) -> Option<&Bucket> {
        let opcode = opcode(word);
        let first = usize::from(self.opcodes[opcode]);
        let end = usize::from(self.opcodes[opcode + 1]);
        if first == end {
            return None;
        }
        let new = || Generation(self.by_opcode.iter().map(|_| OnceLock::new()).collect());
        let generation = self.generations[sm.ordinal()?].get_or_init(new);
        Some(generation.0[first].get_or_init(|| {
            let forms = self.by_opcode[first..end].iter().copied();
            let holds = forms.filter(|&id| self.entry(id).holds_for(sm));
            Box::new(Bucket::new(holds.map(|id| (id, self.form(id)))))
        }))
    }

    pub(crate) fn forms_of_mnemonic(&self, mnemonic: &str) -> impl Iterator<Item = FormId> + use<'_> {
        let by_mnemonic = self.by_mnemonic.get_or_init(|| {
            let mut names = Names::with_capacity(self.entries.len());
            let mut first = 0;
            for run in self.entries.chunk_by(|a, b| std::ptr::eq(a.family, b.family)) {
                let end = first + run.len() as u16;
                names.add(self::mnemonic(run[0].family), first..end);
                first = end;
            }
            names
        });
        by_mnemonic.forms(mnemonic)
    }
}

fn opcode(word: u128) -> usize {
    (word & ones(OPCODE_BITS)) as usize
}

fn mnemonic(family: &Family) -> &'static str {
    family.name.split('.').next().unwrap_or_default()
}

/// Adds the forms of a family: one per shape, divided at each generation that changes the encoding.
fn expand(family: &'static Family, out: &mut Vec<Entry>) {
    let changes = family.changes;
    if family.shapes.is_empty() {
        split_generations(family, family.label, 0, u128::from(family.opcode), family.sm, changes, out);
        return;
    }
    for shape in family.shapes.split_ascii_whitespace() {
        let (letters, operand_form) = match shape.split_once(':') {
            Some((letters, digit)) => (letters, u16::from(digit.as_bytes()[0] - b'0')),
            None => (shape, operand_form(shape)),
        };
        let has = |wanted: [u8; 2]| letters.bytes().any(|letter| wanted.contains(&letter));
        let mut sm = family.sm;
        if has([b'c', b'x']) {
            sm.1 = sm.1.min(LAST_CONSTANT_SM);
            if sm.0 > sm.1 {
                continue;
            }
        }
        let mut opcode = u128::from(family.opcode | operand_form << 9);
        let mut changes = changes;
        if has([b'u', b'x']) {
            opcode |= UNIFORM_BIT;
            changes = changes.and(Changes::at(WIDE_UNIFORM_SM));
        }
        split_generations(family, letters, operand_form, opcode, sm, changes, out);
    }
}

fn split_generations(
    family: &'static Family,
    shape: &'static str,
    operand_form: u16,
    opcode: u128,
    sm: (u8, u8),
    changes: Changes,
    out: &mut Vec<Entry>,
) {
    let mut first = sm.0;
    let inner = changes.iter().filter(|&b| sm.0 < b && b <= sm.1);
    for next in inner.map(Some).chain([None]) {
        let last = next.map_or(sm.1, |next| next - 1);
        let fixed = opcode | family.ones | family.filled;
        out.push(Entry { family, shape, operand_form, fixed, sm: (first, last), form: OnceLock::new() });
        first = next.unwrap_or(first);
    }
}

impl Entry {
    fn holds_for(&self, sm: Sm) -> bool {
        (self.sm.0..=self.sm.1).contains(&sm.0)
    }

    fn expand(&self) -> Form {
        let mut letters = self.shape.bytes();
        let existing = self.family.pieces.iter().filter(|piece| exists_at(piece, self.sm.0));
        let pieces = existing.map(|piece| {
            let mut place = |slot| place_slot(slot, letters.next().unwrap_or(b'r'), self.operand_form);
            let placed = match *piece {
                Piece::Op(Operand::Slot(slot)) => Piece::Op(place(slot)),
                Piece::OpIf(Operand::Slot(slot), show) => Piece::OpIf(place(slot), show),
                // Most pieces have the same encoding on all generations.
                _ if piece.changes().is_empty() => return piece,
                other => other,
            };
            &*Box::leak(Box::new(at_generation(placed, self.sm.0)))
        });
        finish(self, pieces.collect())
    }
}

/// The operand form of a shape: it says which source is not a general register, and of which kind it is.
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
    // If it is the third source, it swaps places with the second.
    match (at, kind) {
        (2, 2) => 7,
        (2, kind) => 2 + kind,
        (_, kind) => 4 + kind,
    }
}

/// Whether the generation has the piece. Some conditional register operands exist only from a generation on.
fn exists_at(piece: &Piece, sm: u8) -> bool {
    !matches!(piece, Piece::OpIf(Operand::Reg(reg), _) if sm < reg.spec.since.1)
}

/// The piece as the generation encodes it.
fn at_generation(mut piece: Piece, sm: u8) -> Piece {
    if let Piece::Mod(spec) | Piece::ModIf(spec, _) = &mut piece
        && sm < spec.since.1
    {
        spec.limit = spec.since.0;
        // If the first values need fewer bits, the field is narrower: the other bits have no meaning yet.
        if let Value::Choice(texts) = spec.value
            && spec.limit.is_power_of_two()
            && spec.limit > 1
            && spec.high.1 == 0
        {
            spec.width = spec.limit.trailing_zeros() as u8;
            spec.value = Value::Choice(&texts[..texts.len().min(spec.limit as usize)]);
        }
    }
    if let Piece::Op(operand) | Piece::OpIf(operand, _) = &mut piece {
        if let Operand::RegTarget(reg, ..) = operand {
            widen(reg, sm);
        }
        match operand {
            Operand::Reg(reg) | Operand::Handle(HandleOperand { reg, .. }) => widen(reg, sm),
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
            Operand::Word(spec) if spec.is_special_register() => {
                *spec = spec.choice(special_registers(sm));
            }
            Operand::Target(spec, _) | Operand::RegTarget(_, spec, _)
                if spec.is_whole_target() && sm >= SPLIT_TARGET_SM =>
            {
                *spec = FieldSpec { lo: 16, width: 8, high: (34, spec.width), ..*spec };
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
    if spec.is_narrow() && sm >= WIDE_UNIFORM_SM {
        spec.width = 8;
        if spec.neutral == 63 {
            spec.neutral = 255;
        }
    }
}

/// Places a source as the operand form requires.
fn place_slot(slot: Slot, letter: u8, operand_form: u16) -> Operand {
    let swapped = matches!(operand_form, 2 | 3 | 7);
    let (lo, neg, abs, swizzle) = match slot.place {
        Place::A => (24, 72, 73, 74),
        Place::B if !swapped => (32, 63, 62, 60),
        Place::C if swapped => (32, 63, 62, 60),
        Place::Wide | Place::WideC => (32, 63, 62, 60),
        Place::B | Place::C => (64, 75, 74, 81),
    };
    // The operand cache depends on the role of the source, not on its bits.
    let reuse = match slot.place {
        Place::A => 0,
        Place::B | Place::Wide => 1,
        Place::C | Place::WideC => 2,
    };
    // Packed half instructions have the modifiers of the third source at other bits than single-precision ones.
    let half = matches!(slot.mods, Mods::Half | Mods::HalfTimesI | Mods::HalfSum(_) | Mods::HalfWhole);
    let (neg, abs) = if half && lo == 64 { (84, 83) } else { (neg, abs) };
    let (f_neg, f_abs, f_swizzle, f_reg, f_ureg) = match slot.role {
        Role::A => (Field::NegA, Field::AbsA, Field::SwizzleA, Field::Ra, Field::URa),
        Role::B => (Field::NegB, Field::AbsB, Field::SwizzleB, Field::Rb, Field::URb),
        _ => (Field::NegC, Field::AbsC, Field::SwizzleC, Field::Rc, Field::URc),
    };
    let flag = |field, lo| Some(FieldSpec::new(field, lo, 1));
    let lanes = Some(FieldSpec::new(f_swizzle, swizzle, 2).choice(SWIZZLE));
    let (neg, abs, suffix, complement) = match slot.mods {
        Mods::None => (None, None, None, None),
        Mods::Neg => (flag(f_neg, neg), None, None, None),
        Mods::NegAbs | Mods::HalfWhole => (flag(f_neg, neg), flag(f_abs, abs), None, None),
        Mods::NegOrNot(field) => (flag(f_neg, neg), None, None, Some(field)),
        Mods::Not => (flag(f_neg, neg), None, None, Some(f_neg)),
        Mods::Half => (flag(f_neg, neg), flag(f_abs, abs), lanes, None),
        Mods::HalfTimesI => {
            let lanes = FieldSpec::new(f_swizzle, swizzle, 2).high(86, 1).choice(SWIZZLE_TIMES_I);
            (flag(f_neg, neg), flag(f_abs, abs), Some(lanes), None)
        }
        Mods::HalfSum(silent) => {
            (flag(f_neg, neg), Some(FieldSpec::new(f_abs, abs, 1).silent(silent)), lanes, None)
        }
    };
    let register = |file, field, width, neutral| {
        Operand::Reg(RegOperand {
            count: slot.count,
            neg,
            abs,
            suffix: suffix.or(slot.suffix),
            text: slot.text,
            // The lanes of a general register are printed after the magnitude bars, those of other operands between
            // them.
            inside: file != RegFile::R || matches!(slot.imm, ImmStyle::HalfWord(..)),
            complement,
            reuse: (file == RegFile::R).then_some(reuse),
            ..RegOperand::new(file, FieldSpec::new(field, lo, width).neutral(neutral), slot.role)
        })
    };
    match letter {
        b'i' => {
            let width = if matches!(slot.imm, ImmStyle::HalfWord(..)) { 16 } else { 32 };
            Operand::Imm(FieldSpec::new(Field::Imm32, 32, width), slot.imm)
        }
        b'c' | b'x' => Operand::Const(ConstOperand {
            bank: FieldSpec::new(Field::CBank, 54, 5),
            offset: FieldSpec::new(Field::COffset, 40, 14).value(Value::Scaled { scale: 4 }),
            index: None,
            handle: (letter == b'x').then_some(FieldSpec::new(Field::Ur, 32, 6).neutral(63)),
            neg,
            abs,
            suffix: suffix.or(slot.suffix),
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

/// The lanes of a packed half source.
pub(crate) const SWIZZLE: &[&str] = &["", ".F32", ".H0_H0", ".H1_H1"];
/// The same, and `.H0_NH1`: the halves swapped, with the former high half negated.
const SWIZZLE_TIMES_I: &[&str] = &["", ".F32", ".H0_H0", ".H1_H1", ".H0_NH1", BAD, BAD, BAD];

fn finish(entry: &Entry, pieces: Box<[&'static Piece]>) -> Form {
    let mut most = 2;
    pieces.iter().for_each(|piece| piece.each_field(&mut |_| most += 1));
    let mut fields = Vec::with_capacity(most);
    fields.push(FieldSpec::new(Field::Guard, 12, 3).neutral(7));
    fields.push(FieldSpec::new(Field::GuardNot, 15, 1));
    for piece in &pieces {
        piece.each_field(&mut |spec| {
            // Several conditional pieces may print the same field in different ways.
            if !fields
                .iter()
                .any(|known: &FieldSpec| known.field == spec.field && known.mask() == spec.mask())
            {
                fields.push(*spec);
            }
        });
    }
    let (family, fixed) = (entry.family, entry.fixed);
    let mut taken = Control::MASK;
    let mut neutral = fixed;
    for spec in &fields {
        taken |= spec.mask();
        neutral = spec.insert(neutral, spec.neutral);
    }
    Form {
        name: family.name,
        mnemonic: mnemonic(family),
        shape: entry.shape,
        sm: entry.sm,
        fixed_mask: !taken,
        fixed,
        filled: family.filled,
        reserved: family.reserved & !taken,
        neutral,
        guard: family.guard,
        class: family.class,
        speed: crate::speed::of_mnemonic(mnemonic(family)),
        pieces,
        places: Places::of(&fields),
        fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_exactly_where_their_encoding_changes() {
        for piece in FAMILIES.iter().copied().flatten().flat_map(|family| family.pieces) {
            if matches!(piece, Piece::Op(_) | Piece::OpIf(..)) {
                for sm in Sm::ALL[1..].iter().map(|sm| sm.0) {
                    let at = |sm| exists_at(piece, sm).then(|| at_generation(*piece, sm));
                    let differs = at(sm) != at(sm - 1);
                    let changes = piece.changes().iter().any(|change| change == sm);
                    assert_eq!(changes, differs, "{piece:?} at sm_{sm}");
                }
            }
        }
    }
}
