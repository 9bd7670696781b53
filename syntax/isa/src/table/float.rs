//! Arithmetic on `.f32` and `.f64`.

use super::prelude::*;

/// For `.f32`, rounding towards an infinity requires sm_20.
const DIRECTED: Rule = has(&[Rm, Rp]).since(2, 0, 20);
/// The `mad.f32` of sm_1x. Later targets accept it in old PTX versions.
const UNROUNDED: Gate = Gate::since(1, 0, 10).until(3, 2, 20);
const MINMAX: &[Group] = &[FTZ, opt(&[Nan]), opt(&[XorSign]), opt(&[Abs])];
const MINMAX_RULES: &[Rule] = &[
    has(&[XorSign]).needs(&[Abs]),
    has(&[XorSign]).operand("c", Column::Presence(Presence::Never)),
    has(&[Abs]).lacks(&[XorSign]).operand("c", Column::Presence(Presence::Always)),
    has(&[Nan]).since(7, 0, 80),
    has(&[XorSign]).since(7, 2, 86),
    has(&[Abs]).lacks(&[XorSign]).since(8, 8, 100),
];
const MINMAX_OPS: &[Operand] =
    &[dst("d", T0), src("a", T0), src("b", T0), src("c", T0).optional().since(8, 8, 100)];
const PAIR: Gate = Gate::since(8, 6, 100);

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::AddF32).name(&[ROUND, FTZ, SAT]).ty(&[F32]).ops(DAB).facts(Fact::COMMUTES).rules(&[DIRECTED]),
    form(F::AddF64).name(&[ROUND]).ty(&[F64]).ops(DAB).facts(Fact::COMMUTES),
    form(F::SubF32).name(&[ROUND, FTZ, SAT]).ty(&[F32]).ops(DAB).rules(&[DIRECTED]),
    form(F::SubF64).name(&[ROUND]).ty(&[F64]).ops(DAB),
    form(F::MulF32).name(&[ROUND, FTZ, SAT]).ty(&[F32]).ops(DAB).facts(Fact::COMMUTES).rules(&[DIRECTED]),
    form(F::MulF64).name(&[ROUND]).ty(&[F64]).ops(DAB).facts(Fact::COMMUTES),
    form(F::FmaF32).name(&[MUST_ROUND, FTZ, SAT]).ty(&[F32]).ops(DABC).facts(Fact::COMMUTES).since(2, 0, 20),
    form(F::FmaF64).name(&[MUST_ROUND]).ty(&[F64]).ops(DABC).facts(Fact::COMMUTES).since(1, 4, 10),
    form(F::MadF32).name(&[ROUND, FTZ, SAT]).ty(&[F32]).ops(DABC).facts(Fact::COMMUTES).rules(&[has(&[Rn, Rz, Rm, Rp]).since(2, 0, 20), lacks(&[Rn, Rz, Rm, Rp]).gate(UNROUNDED)]),
    form(F::MadF64).name(&[MUST_ROUND]).ty(&[F64]).ops(DABC).facts(Fact::COMMUTES),
    form(F::DivFull).name(&[key(&[Full]), FTZ]).ty(&[F32]).ops(DAB),
    form(F::DivF32).name(&[req(&[Approx, Rn, Rz, Rm, Rp]), FTZ]).ty(&[F32]).ops(DAB).rules(&[has(&[Rn, Rz, Rm, Rp]).since(2, 0, 20)]),
    form(F::DivF64).name(&[MUST_ROUND]).ty(&[F64]).ops(DAB).rules(&[has(&[Rz, Rm, Rp]).since(2, 0, 20)]),
    form(F::AbsFloat).name(&[FTZ]).ty(&[t![F32 F64]]).ops(DA).rules(&[has(&[Ftz]).types(F32)]),
    form(F::NegFloat).name(&[FTZ]).ty(&[t![F32 F64]]).ops(DA).rules(&[has(&[Ftz]).types(F32)]),
    form(F::MinF32).name(MINMAX).ty(&[F32]).ops(MINMAX_OPS).facts(Fact::COMMUTES).rules(MINMAX_RULES),
    form(F::MinF64).ty(&[F64]).ops(DAB).facts(Fact::COMMUTES),
    form(F::MaxF32).name(MINMAX).ty(&[F32]).ops(MINMAX_OPS).facts(Fact::COMMUTES).rules(MINMAX_RULES),
    form(F::MaxF64).ty(&[F64]).ops(DAB).facts(Fact::COMMUTES),
    form(F::RcpF32).name(&[req(&[Approx, Rn, Rz, Rm, Rp]), FTZ]).ty(&[F32]).ops(DA).rules(&[has(&[Rn, Rz, Rm, Rp]).since(2, 0, 20)]),
    form(F::RcpF64).name(&[MUST_ROUND, FTZ]).ty(&[F64]).ops(DA).rules(&[has(&[Rz, Rm, Rp]).since(2, 0, 20)]),
    form(F::RcpApproxF64).name(&[APPROX, req(&[Ftz])]).ty(&[F64]).ops(DA).since(2, 1, 20),
    form(F::SqrtF32).name(&[req(&[Approx, Rn, Rz, Rm, Rp]), FTZ]).ty(&[F32]).ops(DA).rules(&[has(&[Rn, Rz, Rm, Rp]).since(2, 0, 20)]),
    form(F::SqrtF64).name(&[MUST_ROUND]).ty(&[F64]).ops(DA).rules(&[has(&[Rz, Rm, Rp]).since(2, 0, 20)]),
    form(F::RsqrtF32).name(&[APPROX, FTZ]).ty(&[F32]).ops(DA),
    form(F::RsqrtF64).name(&[APPROX, FTZ]).ty(&[F64]).ops(DA).rules(&[has(&[Ftz]).since(4, 0, 20)]),
    form(F::Sin).name(&[APPROX, FTZ]).ty(&[F32]).ops(DA),
    form(F::Cos).name(&[APPROX, FTZ]).ty(&[F32]).ops(DA),
    form(F::Lg2).name(&[APPROX, FTZ]).ty(&[F32]).ops(DA),
    form(F::Ex2).name(&[APPROX, FTZ]).ty(&[F32]).ops(DA),
    form(F::Tanh).name(&[APPROX]).ty(&[F32]).ops(DA).since(7, 0, 75),
    form(F::Testp).name(&[opt(&[Finite, Infinite, Number, NotANumber, Normal, Subnormal])]).ty(&[t![F32 F64]]).ops(&[dst_pred("p"), src("a", T0)]).since(2, 0, 20),
    form(F::Copysign).ty(&[t![F32 F64]]).ops(DAB).since(2, 0, 20),
    form(F::AddF32x2).name(&[ROUND, FTZ]).ty(&[t![F32x2]]).ops(DAB).facts(Fact::COMMUTES).gate(PAIR),
    form(F::SubF32x2).name(&[ROUND, FTZ]).ty(&[t![F32x2]]).ops(DAB).gate(PAIR),
    form(F::MulF32x2).name(&[ROUND, FTZ]).ty(&[t![F32x2]]).ops(DAB).facts(Fact::COMMUTES).gate(PAIR),
    form(F::FmaF32x2).name(&[MUST_ROUND, FTZ]).ty(&[t![F32x2]]).ops(DABC).facts(Fact::COMMUTES).gate(PAIR),
    form(F::AddMixed).name(&[ROUND, SAT]).ty(&[F32, t![F16 Bf16]]).ops(&[dst("d", T0), src("a", T1), src("c", T0)]).gate(PAIR).rules(&[on_second(t![Bf16]).operand("a", Column::Type(I16)), on_second(t![Bf16]).operand("a", Column::Class(Class::VALUE.or(Class::VECTOR))), on_second(t![Bf16]).lanes("a", Lanes::OrBare(&[1, 2, 4]))]),
    form(F::SubMixed).name(&[ROUND, SAT]).ty(&[F32, t![F16 Bf16]]).ops(&[dst("d", T0), src("a", T1), src("c", T0)]).gate(PAIR).rules(&[on_second(t![Bf16]).operand("a", Column::Type(I16)), on_second(t![Bf16]).operand("a", Column::Class(Class::VALUE.or(Class::VECTOR))), on_second(t![Bf16]).lanes("a", Lanes::OrBare(&[1, 2, 4]))]),
    form(F::FmaMixed).name(&[MUST_ROUND, SAT]).ty(&[F32, t![F16 Bf16]]).ops(&[dst("d", T0), src("a", T1), src("b", T1), src("c", T0)]).facts(Fact::COMMUTES).gate(PAIR).rules(&[on_second(t![Bf16]).operand("a", Column::Type(I16)), on_second(t![Bf16]).operand("a", Column::Class(Class::VALUE.or(Class::VECTOR))), on_second(t![Bf16]).lanes("a", Lanes::OrBare(&[1, 2, 4])), on_second(t![Bf16]).operand("b", Column::Type(I16)), on_second(t![Bf16]).operand("b", Column::Class(Class::VALUE.or(Class::VECTOR))), on_second(t![Bf16]).lanes("b", Lanes::OrBare(&[1, 2, 4]))]),
];
