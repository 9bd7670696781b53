//! Video instructions: scalar, and on two or four lanes of a register.

use super::prelude::*;

const SECOND_OP: Group = opt(&[Add, Min, Max]);
const ACCUMULATE: Group = opt(&[Add]);
const VIDEO: &[TypeSet] = &[UI32, UI32, UI32];
const OPS: &[Operand] = &[dst("d", T0), src("a", T1), src("b", T2), src("c", T0).optional()];
const LANES: &[Rule] = &[has(&[Sat]).excludes(&[Add])];
const MAD: &[Operand] = &[dst("d", T0), src("a", T1), src("b", T2), src("c", T0)];
const SIMD_SET: &[Operand] = &[dst("d", I32), reg("a", T0), reg("b", T1), reg("c", I32)];
const SIMD: &[Operand] = &[dst("d", T0), reg("a", T1), reg("b", T2), reg("c", T0)];
/// The second operation has a third source.
const SECOND: &[Rule] = &[has(&[Add, Min, Max]).operand("c", Column::Presence(Presence::Always))];
const SET: &[Operand] = &[dst("d", I32), src("a", T0), src("b", T1), src("c", I32).optional()];
const INTEGER_COMPARE: Group = req(&[Eq, Ne, Lt, Le, Gt, Ge]);

const fn scalar(id: F) -> Form {
    form(id).name(&[SAT, SECOND_OP]).ty(VIDEO).ops(OPS).since(2, 0, 20).rules(SECOND)
}

const fn lanes(id: F) -> Form {
    form(id).name(&[SAT, ACCUMULATE]).ty(VIDEO).ops(SIMD).since(3, 0, 30).rules(LANES)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    scalar(F::Vadd), scalar(F::Vsub), scalar(F::Vabsdiff), scalar(F::Vmin), scalar(F::Vmax),
    form(F::Vshl).name(&[SAT, req(&[Clamp, Wrap]), SECOND_OP]).ty(&[UI32, UI32, U32]).ops(OPS).since(2, 0, 20).rules(SECOND),
    form(F::Vshr).name(&[SAT, req(&[Clamp, Wrap]), SECOND_OP]).ty(&[UI32, UI32, U32]).ops(OPS).since(2, 0, 20).rules(SECOND),
    form(F::Vmad).name(&[opt(&[Po]), SAT, opt(&[Shr7, Shr15])]).ty(VIDEO).ops(MAD).since(2, 0, 20),
    form(F::Vset).name(&[INTEGER_COMPARE, SECOND_OP]).ty(&[UI32, UI32]).ops(SET).since(2, 0, 20).rules(SECOND),
    lanes(F::Vadd2), lanes(F::Vsub2), lanes(F::Vavrg2), lanes(F::Vabsdiff2), lanes(F::Vmin2), lanes(F::Vmax2),
    form(F::Vset2).name(&[INTEGER_COMPARE, ACCUMULATE]).ty(&[UI32, UI32]).ops(SIMD_SET).since(3, 0, 30),
    lanes(F::Vadd4), lanes(F::Vsub4), lanes(F::Vavrg4), lanes(F::Vabsdiff4), lanes(F::Vmin4), lanes(F::Vmax4),
    form(F::Vset4).name(&[INTEGER_COMPARE, ACCUMULATE]).ty(&[UI32, UI32]).ops(SIMD_SET).since(3, 0, 30),
];
