//! The generations at which the encoding of a row changes. They are computed at compile time: every run of a tool needs
//! them for all rows.

use super::*;

/// The first generation with uniform register numbers of eight bits.
pub(crate) const WIDE_UNIFORM_SM: u8 = 100;
/// The first generation whose branch targets are split in two parts around bit 24, and the widths of the unsplit
/// targets: of distances and of addresses.
pub(crate) const SPLIT_TARGET_SM: u8 = 90;
const WHOLE_TARGETS: [u8; 2] = [48, 47];
/// The generations from which on the names of the special registers differ from those before.
pub(crate) const SPECIAL_REGISTERS_SINCE: [u8; 6] = [75, 80, 90, 100, 110, 120];

/// Generations at which an encoding changes: a bit for each of [`Sm::ALL`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changes(u16);

impl Changes {
    pub(crate) const NONE: Changes = Changes(0);

    /// Empty if the table has no such generation.
    pub(crate) const fn at(sm: u8) -> Changes {
        match Sm(sm).ordinal() {
            Some(ordinal) => Changes(1 << ordinal),
            None => Changes::NONE,
        }
    }

    const fn at_if(changes: bool, sm: u8) -> Changes {
        if changes { Changes::at(sm) } else { Changes::NONE }
    }

    pub(crate) const fn and(self, other: Changes) -> Changes {
        Changes(self.0 | other.0)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In ascending order, without the first generation, at which nothing can change.
    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        let later = Sm::ALL.iter().enumerate().skip(1);
        later.filter(move |(i, _)| self.0 >> i & 1 != 0).map(|(_, sm)| sm.0)
    }

    pub(super) const fn of_all(pieces: &[Piece]) -> Changes {
        let mut all = Changes::NONE;
        let mut i = 0;
        while i < pieces.len() {
            all = all.and(pieces[i].changes());
            i += 1;
        }
        all
    }
}

impl FieldSpec {
    /// Whether the field selects from all special registers. Other fields with this role select from fewer.
    pub(crate) const fn is_special_register(&self) -> bool {
        matches!(self.field, Field::Special) && self.width == 8
    }

    pub(crate) const fn is_whole_target(&self) -> bool {
        self.width == WHOLE_TARGETS[0] || self.width == WHOLE_TARGETS[1]
    }

    /// Whether the field has the width of a narrow uniform register number.
    pub(crate) const fn is_narrow(&self) -> bool {
        self.width == 6
    }
}

const fn since(spec: &FieldSpec) -> Changes {
    Changes::at_if(spec.since.1 != 0, spec.since.1)
}

const fn is_narrow_uniform(reg: &RegOperand) -> bool {
    matches!(reg.file, RegFile::UR) && reg.spec.is_narrow()
}

impl Piece {
    /// The generations at which the encoding of the piece changes.
    pub(crate) const fn changes(&self) -> Changes {
        match self {
            Piece::Mod(spec) | Piece::ModIf(spec, _) => since(spec),
            Piece::OpIf(Operand::Reg(reg), _) => since(&reg.spec).and(widens(is_narrow_uniform(reg))),
            Piece::Op(operand) | Piece::OpIf(operand, _) => operand.changes(),
            _ => Changes::NONE,
        }
    }
}

impl Operand {
    const fn changes(&self) -> Changes {
        match self {
            Operand::Target(spec, _) => splits(spec),
            Operand::RegTarget(reg, spec, _) => splits(spec).and(widens(is_narrow_uniform(reg))),
            Operand::Word(spec) if spec.is_special_register() => renames(),
            Operand::Reg(reg) | Operand::Handle(HandleOperand { reg, .. }) => widens(is_narrow_uniform(reg)),
            Operand::Const(c) => {
                let index = matches!(&c.index, Some(reg) if is_narrow_uniform(reg));
                let handle = matches!(&c.handle, Some(spec) if spec.is_narrow());
                widens(index || handle)
            }
            Operand::Mem(mem) => {
                let base = matches!(&mem.reg, Some(reg) if is_narrow_uniform(reg));
                let uniform = matches!(&mem.ureg, Some((spec, _)) if spec.is_narrow());
                let descriptor = matches!(&mem.desc, Some(desc) if desc.spec.is_narrow());
                widens(base || uniform || descriptor)
            }
            _ => Changes::NONE,
        }
    }
}

const fn splits(target: &FieldSpec) -> Changes {
    Changes::at_if(target.is_whole_target(), SPLIT_TARGET_SM)
}

const fn widens(changes: bool) -> Changes {
    Changes::at_if(changes, WIDE_UNIFORM_SM)
}

const fn renames() -> Changes {
    let mut all = Changes::NONE;
    let mut i = 0;
    while i < SPECIAL_REGISTERS_SINCE.len() {
        all = all.and(Changes::at(SPECIAL_REGISTERS_SINCE[i]));
        i += 1;
    }
    all
}
