//! Miscellaneous: traps, timing, stack, grid and register control.

use super::prelude::*;

const CANCEL: &[Mod] = &[GetFirstCtaidX, GetFirstCtaidY, GetFirstCtaidZ];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Trap).facts(Fact::TRAPS.or(Fact::TERMINATES)),
    form(F::Brkpt).facts(Fact::EFFECT).since(1, 0, 11),
    form(F::Nanosleep).ty(&[U32]).ops(&[src("t", I32)]).facts(Fact::EFFECT).since(6, 2, 70),
    form(F::Pmevent).name(&[opt(&[Mask]).at(Place::Leading)]).ops(&[imm("a", I32).range(0, 15)]).facts(Fact::EFFECT).since(1, 4, 10).rules(&[has(&[Mask]).values("a", Values::Range(0, 65535)), has(&[Mask]).since(3, 0, 20)]),
    form(F::Griddepcontrol).name(&[req(&[LaunchDependents, Wait])]).facts(Fact::EFFECT.or(Fact::ORDERS)).since(7, 8, 90),
    form(F::Setmaxnreg).name(&[key(&[Inc, Dec]), SYNC, ALIGNED]).ty(&[UI32]).ops(&[imm("imm-reg-count", I32).values(Values::Multiple(8, 24, 256))]).facts(Fact::CONVERGENT.or(Fact::EFFECT)).gate(Gate::only(8, 0, TargetSet::arch(90).or(TargetSet::family(100)).or(TargetSet::family(110)).or(TargetSet::family(120)))),
    form(F::Alloca).ty(&[t![U32 U64]]).ops(&[dst("ptr", T0), src("size", T0), imm("immAlign", I32).values(Values::PowerOfTwo(1, 1 << 23)).optional()]).facts(Fact::EFFECT).since(7, 3, 52),
    form(F::Stacksave).ty(&[t![U32 U64]]).ops(&[dst("d", T0)]).facts(Fact::EFFECT).since(7, 3, 52),
    form(F::Stackrestore).ty(&[t![U32 U64]]).ops(&[reg("a", T0)]).facts(Fact::EFFECT).since(7, 3, 52),
    form(F::ClusterlaunchcontrolTryCancel).name(&[key(&[TryCancel]), ASYNC, opt(&[SharedCta]), req(&[MbarrierCompleteTxBytes]), opt(&[MulticastClusterAll])]).ty(&[t![B128]]).ops(&[addr("addr"), addr("mbar")]).facts(Fact::ASYNC.or(Fact::WRITES).or(Fact::EFFECT)).since(8, 6, 100).rules(&[
        has(&[MulticastClusterAll]).gate(Gate::only(8, 6, TargetSet::family(100).or(TargetSet::family(110)).or(TargetSet::family(120)))),
    ]),
    form(F::ClusterlaunchcontrolIsCanceled).name(&[key(&[QueryCancel]), req(&[IsCanceled])]).ty(&[PRED, t![B128]]).ops(&[dst_pred("pred"), src("try-cancel-response", T1)]).since(8, 6, 100),
    form(F::ClusterlaunchcontrolGetFirstCtaid).name(&[key(&[QueryCancel]), req(&[GetFirstCtaid]), req(&[V4])]).ty(&[B32, t![B128]]).ops(&[dst_vector("d", T0).braces(Lanes::Of(&[4])), src("try-cancel-response", T1)]).since(8, 6, 100),
    form(F::ClusterlaunchcontrolGetFirstCtaidDim).name(&[key(&[QueryCancel]), req(CANCEL)]).ty(&[B32, t![B128]]).ops(&[dst("d", T0), src("try-cancel-response", T1)]).since(8, 6, 100),
];
