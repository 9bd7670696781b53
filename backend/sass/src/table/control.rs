//! Branches, barriers and the rest.

use super::*;
use crate::class::Class::*;

/// A condition besides the guard; shown unless PT.
const CONDITION: Piece = optional(PP_OPERAND);
const TARGET: FieldSpec = FieldSpec::new(Field::Target, 34, 48).value(Value::Signed { scale: 4 });

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("NOP", 0x918, "", Control, &[]),
    Family::new("EXIT", 0x94d, "", Branch, &[choice(Field::Mode, 84, 2, &["", ".KEEPREFCOUNT", ".PREEMPTED", BAD]), flag(Field::Flag, 86, &["", ".NO_ATEXIT"]), CONDITION]),
    Family::new("BRA", 0x947, "", Branch, &[
        choice(Field::Mode, 32, 2, &["", ".U", ".DIV", ".CONV"]), choice(Field::Mode2, 85, 2, &["", ".INC", ".DEC", BAD]), CONDITION,
        Piece::Op(Operand::Target(TARGET, TargetStyle::FromNext)),
    ]),
];
