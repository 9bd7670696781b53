//! Integer arithmetic.

use super::prelude::*;

/// The types with four bytes. They need the same gate as saturation in instructions that did not have it before.
const BYTES: TypeSet = t![U8x4 S8x4];
const BYTE_GATE: Gate = Gate::only(9, 2, TargetSet::family(120).or(TargetSet::family(107)));
const PACKED: TypeSet = t![U16x2 S16x2].union(BYTES);
const MINMAX_RULES: &[Rule] = &[
    has(&[Relu]).types(t![S32 S16x2 S8x4]),
    has(&[Relu]).since(8, 0, 90),
    on(t![U16x2 S16x2]).since(8, 0, 90),
    on(BYTES).gate(BYTE_GATE),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::AddInt).name(&[SAT]).ty(&[INT.union(PACKED)]).ops(DAB).facts(Fact::COMMUTES).rules(&[has(&[Sat]).types(PACKED.union(UI32)), on(t![U16x2 S16x2]).since(8, 0, 90), on(BYTES).gate(BYTE_GATE), has(&[Sat]).on(t![U32 U16x2 S16x2]).gate(BYTE_GATE)]),
    form(F::SubInt).name(&[SAT]).ty(&[INT.union(BYTES)]).ops(DAB).rules(&[has(&[Sat]).types(BYTES.union(t![S32])), on(BYTES).gate(BYTE_GATE)]),
    form(F::MulInt).name(&[key(&[Hi, Lo, Wide])]).ty(&[INT]).ops(&[dst("d", WIDE), src("a", T0), src("b", T0)]).facts(Fact::COMMUTES).rules(&[has(&[Wide]).types(t![U16 U32 S16 S32])]),
    form(F::MadInt).name(&[key(&[Hi, Lo, Wide]), SAT]).ty(&[INT]).ops(&[dst("d", WIDE), src("a", T0), src("b", T0), src("c", WIDE)]).facts(Fact::COMMUTES).rules(&[has(&[Wide]).types(t![U16 U32 S16 S32]), has(&[Sat]).types(t![S32]), has(&[Sat]).needs(&[Hi])]),
    form(F::Mul24).name(&[HI_LO]).ty(&[UI32]).ops(DAB).facts(Fact::COMMUTES),
    form(F::Mad24).name(&[HI_LO, SAT]).ty(&[UI32]).ops(DABC).facts(Fact::COMMUTES).rules(&[has(&[Sat]).types(t![S32]), has(&[Sat]).needs(&[Hi])]),
    form(F::Sad).ty(&[INT]).ops(DABC).facts(Fact::COMMUTES),
    form(F::DivInt).ty(&[INT]).ops(DAB),
    form(F::RemInt).ty(&[INT]).ops(DAB),
    form(F::AbsInt).ty(&[S16_64]).ops(DA),
    form(F::NegInt).ty(&[S16_64.union(t![S8x4])]).ops(DA).rules(&[on(BYTES).gate(BYTE_GATE)]),
    form(F::MinInt).name(&[opt(&[Relu])]).ty(&[INT.union(PACKED)]).ops(DAB).facts(Fact::COMMUTES).rules(MINMAX_RULES),
    form(F::MaxInt).name(&[opt(&[Relu])]).ty(&[INT.union(PACKED)]).ops(DAB).facts(Fact::COMMUTES).rules(MINMAX_RULES),
    form(F::Popc).ty(&[B32_64]).ops(&[dst("d", I32), src("a", T0)]).since(2, 0, 20),
    form(F::Clz).ty(&[B32_64]).ops(&[dst("d", I32), src("a", T0)]).since(2, 0, 20),
    form(F::Bfind).name(&[opt(&[Shiftamt])]).ty(&[INT_32_64]).ops(&[dst("d", I32), src("a", T0)]).since(2, 0, 20),
    form(F::Fns).ty(&[B32]).ops(&[dst("d", TB32), src("mask", TB32), src("base", TB32), src("offset", TB32)]).since(6, 0, 30),
    form(F::Brev).ty(&[B32_64]).ops(DA).since(2, 0, 20),
    form(F::Bfe).ty(&[INT_32_64]).ops(&[dst("d", T0), src("a", T0), src("b", I32).range(0, 255), src("c", I32).range(0, 255)]).since(2, 0, 20),
    form(F::Bfi).ty(&[B32_64]).ops(&[dst("f", T0), src("a", T0), src("b", T0), src("c", I32).range(0, 255), src("d", I32).range(0, 255)]).since(2, 0, 20),
    form(F::Szext).name(&[req(&[Clamp, Wrap])]).ty(&[UI32]).ops(&[dst("d", T0), src("a", T0), src("b", I32)]).since(7, 6, 70),
    form(F::Bmsk).name(&[req(&[Clamp, Wrap])]).ty(&[B32]).ops(&[dst("d", I32), src("a", I32), src("b", I32)]).since(7, 6, 70),
    form(F::Dp4a).ty(&[UI32, UI32]).ops(&[dst("d", I32), src("a", T0), src("b", T1), src("c", I32)]).since(5, 0, 61),
    form(F::Dp2a).name(&[HI_LO]).ty(&[UI32, UI32]).ops(&[dst("d", I32), src("a", T0), src("b", T1), src("c", I32)]).since(5, 0, 61),
];
