//! Extended-precision integer arithmetic: a condition code carries between instructions.

use super::prelude::*;

const SATURATING: &[Rule] = &[
    has(&[Cc]).types(INT_32_64),
    has(&[Cc]).on(t![U64 S64]).since(4, 3, 20),
    has(&[Sat]).types(t![S32]),
    has(&[Sat]).excludes(&[Cc]),
];
const WIDE: &[Rule] = &[has(&[Cc]).types(INT_32_64), has(&[Cc]).on(t![U64 S64]).since(4, 3, 20)];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::AddCc).name(&[CC]).ty(&[INT_32_64]).ops(DAB).since(1, 2, 10).facts(Fact::COMMUTES).rules(WIDE),
    form(F::Addc).name(&[opt(&[Cc]), SAT]).ty(&[INT]).ops(DAB).since(1, 2, 10).facts(Fact::COMMUTES).rules(SATURATING),
    form(F::SubCc).name(&[CC]).ty(&[INT_32_64]).ops(DAB).since(1, 2, 10).rules(WIDE),
    form(F::Subc).name(&[opt(&[Cc]), SAT]).ty(&[INT]).ops(DAB).since(1, 2, 10).rules(SATURATING),
    form(F::MadCc).name(&[HI_LO, CC]).ty(&[INT_32_64]).ops(DABC).since(3, 0, 20).facts(Fact::COMMUTES).rules(WIDE),
    form(F::Madc).name(&[HI_LO, opt(&[Cc])]).ty(&[INT]).ops(DABC).since(3, 0, 20).facts(Fact::COMMUTES).rules(WIDE),
];
