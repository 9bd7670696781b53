//! Arithmetic on 16-bit floating-point numbers and pairs of them.

use super::prelude::*;

/// The assembler accepts pairs of `.bf16` in braces, although this has no use.
const PAIR: Lanes = Lanes::Bf16Pair;
const D: Operand = dst_vector("d", T0).lanes(PAIR);
const A: Operand = src_vector("a", T0).lanes(PAIR);
const B: Operand = src_vector("b", T0).lanes(PAIR);
const TWO: &[Operand] = &[D, A];
const THREE: &[Operand] = &[D, A, B];
const FOUR: &[Operand] = &[D, A, B, src_vector("c", T0).lanes(PAIR)];
/// In some instructions, it accepts single `.bf16` numbers in braces instead.
const SINGLE: TypeSet = t![Bf16];
const BRACED: Column = Column::Class(Class::VALUE.or(Class::VECTOR));
const BRACED_RESULT: Column = Column::Class(Class::REGISTER.or(Class::VECTOR));
const RN: Group = opt(&[Rn]);
const ARITH: &[Rule] = &[on(BFLOAT).excludes(&[Ftz, Sat]), on(BFLOAT).since(7, 8, 90)];
const MINMAX: &[Group] = &[FTZ, opt(&[Nan]), opt(&[XorSign]), opt(&[Abs])];
const MINMAX_RULES: &[Rule] = &[
    on(BFLOAT).excludes(&[Ftz]),
    has(&[XorSign]).needs(&[Abs]),
    has(&[Abs]).needs(&[XorSign]),
    has(&[XorSign]).since(7, 2, 86),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::AddHalf).name(&[RN, FTZ, SAT]).ty(&[HALVES]).ops(THREE).facts(Fact::COMMUTES).since(4, 2, 53).rules(ARITH),
    form(F::SubHalf).name(&[RN, FTZ, SAT]).ty(&[HALVES]).ops(THREE).since(4, 2, 53).rules(ARITH),
    form(F::MulHalf).name(&[RN, FTZ, SAT]).ty(&[HALVES]).ops(THREE).facts(Fact::COMMUTES).since(4, 2, 53).rules(ARITH),
    form(F::FmaHalf).name(&[MUST_ROUND, FTZ, SAT, opt(&[Relu]), opt(&[Oob])]).ty(&[HALVES]).ops(FOUR).facts(Fact::COMMUTES).since(4, 2, 53).rules(&[
        on(BFLOAT).excludes(&[Ftz, Sat]), has(&[Relu]).excludes(&[Sat]), has(&[Oob]).excludes(&[Ftz]), on(HALF).excludes(&[Rz, Rm, Rp]),
        on(BFLOAT).since(7, 0, 80), has(&[Relu]).since(7, 0, 80), has(&[Oob]).since(8, 1, 90),
    ]),
    form(F::AbsHalf).name(&[FTZ]).ty(&[HALVES]).ops(TWO).since(6, 5, 53).rules(&[on(BFLOAT).excludes(&[Ftz]), on(BFLOAT).since(7, 0, 80)]),
    form(F::NegHalf).name(&[FTZ]).ty(&[HALVES]).ops(TWO).since(6, 0, 53).rules(&[on(BFLOAT).excludes(&[Ftz]), on(BFLOAT).since(7, 0, 80)]),
    form(F::MinHalf).name(MINMAX).ty(&[HALVES]).ops(THREE).facts(Fact::COMMUTES).since(7, 0, 80).rules(MINMAX_RULES),
    form(F::MaxHalf).name(MINMAX).ty(&[HALVES]).ops(THREE).facts(Fact::COMMUTES).since(7, 0, 80).rules(MINMAX_RULES),
    form(F::Ex2Half).name(&[APPROX, FTZ]).ty(&[HALVES]).ops(DA).since(7, 0, 75).rules(&[has(&[Ftz]).types(BFLOAT), on(BFLOAT).needs(&[Ftz]), on(BFLOAT).since(7, 8, 90), on(SINGLE).operand("d", BRACED_RESULT), on(SINGLE).operand("a", BRACED), on(SINGLE).lanes("d", Lanes::OrBare(&[1, 2, 4])), on(SINGLE).lanes("a", Lanes::OrBare(&[1, 2, 4]))]),
    form(F::TanhHalf).name(&[APPROX]).ty(&[HALVES]).ops(DA).since(7, 0, 75).rules(&[on(BFLOAT).since(7, 8, 90), on(SINGLE).operand("d", BRACED_RESULT), on(SINGLE).operand("a", BRACED), on(SINGLE).lanes("d", Lanes::OrBare(&[1, 2, 4])), on(SINGLE).lanes("a", Lanes::OrBare(&[1, 2, 4]))]),
];
