//! Logic and shift.

use super::prelude::*;

const LOGIC: TypeSet = PRED.union(BITS);
const D: Operand = dst("d", T0).or(Class::PREDICATE);
const ONE: &[Operand] = &[D, src("a", T0).or(Class::PREDICATE)];
const TWO: &[Operand] = &[D, src("a", T0).or(Class::PREDICATE), src("b", T0).or(Class::PREDICATE)];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::And).ty(&[LOGIC]).ops(TWO).facts(Fact::COMMUTES),
    form(F::Or).ty(&[LOGIC]).ops(TWO).facts(Fact::COMMUTES),
    form(F::Xor).ty(&[LOGIC]).ops(TWO).facts(Fact::COMMUTES),
    form(F::Not).ty(&[LOGIC]).ops(ONE),
    form(F::Cnot).ty(&[BITS]).ops(DA),
    form(F::Lop3).name(&[opt(&[And, Or])]).ty(&[B32]).ops(&[dst("d", T0).sink(), src("a", T0), src("b", T0), src("c", T0), imm("immLut", I32), pred("q").with(&[And, Or])]).since(4, 3, 50).rules(&[has(&[And, Or]).operand("d", Column::Class(Class::PAIR.or(Class::PAIR_WITHOUT_FIRST))), has(&[And, Or]).since(8, 2, 70)]),
    form(F::Shf).name(&[key(&[L, R]), req(&[Clamp, Wrap])]).ty(&[B32]).ops(&[dst("d", T0), src("a", T0), src("b", T0), src("c", I32)]).since(3, 1, 32),
    form(F::Shl).ty(&[BITS]).ops(&[dst("d", T0), src("a", T0), src("b", I32)]),
    form(F::Shr).ty(&[BITS.union(INT)]).ops(&[dst("d", T0), src("a", T0), src("b", I32)]),
];
