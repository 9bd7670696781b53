//! What came after PTX ISA 9.0 and is no variant of an older instruction.

use super::asynchronous::{
    BARRIER_ADDRESS, BULK_SCOPE, BULK_SIZE, BULK_STRENGTH, BY_GROUP, COPY, CP_MASK, LAYOUTS, OWN_BARRIER,
    STRENGTH_RULES, WHOLE,
};
use super::prelude::*;

const SIGNED_COMPARE: &[Mod] = &[Eq, Ne, Lt, Le, Gt, Ge];
const UNSIGNED_COMPARE: &[Mod] = &[Lo, Ls, Hi, Hs];
const REDUCTIONS: Group = req(&[And, Or, Xor, Add, Inc, Dec, Min, Max]);
/// Where stores of other blocks' memory go; the address is used as it is.
const TARGET: Operand = addr_at("a", Base::named(0).memory().copied());
const COPIED: [Operand; 3] =
    [addr("dstMem"), addr_at("srcMem", Base::named(1)), src("size", I32).values(BULK_SIZE)];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Clmad).name(&[HI_LO]).ty(&[t![U64]]).ops(DABC).since(9, 3, 80),
    form(F::SetPacked).name(&[req(&[Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs])]).ty(&[t![U8x4 S8x4 U16x2 S16x2]]).ops(DAB).gate(Gate::only(9, 4, TargetSet::family(107))).rules(&[has(UNSIGNED_COMPARE).types(t![U8x4 U16x2]), lacks(UNSIGNED_COMPARE).needs(SIGNED_COMPARE)]),
    form(F::MbarrierCheckLayout).name(&[key(&[CheckLayout]), req(LAYOUTS), OWN_BARRIER]).ty(&[B64]).ops(&[dst_pred("p"), BARRIER_ADDRESS]).facts(Fact::READS).since(9, 3, 90),
    form(F::MultimemCpAsyncBulk).name(&[key(&[Mod::Cp]), ASYNC, BULK, ordered(&[Global]), ordered(&[SharedCta]), BY_GROUP, BULK_STRENGTH, BULK_SCOPE, opt(&[CpMask])]).ty(&[WHOLE]).optional_types(1).ops(&[COPIED[0], COPIED[1], COPIED[2], CP_MASK]).facts(COPY).since(9, 1, 90).rules(&[has(&[CpMask]).since(9, 1, 100), STRENGTH_RULES[0], STRENGTH_RULES[1], STRENGTH_RULES[2], STRENGTH_RULES[3]]),
    form(F::MultimemCpReduceAsyncBulk).name(&[key(&[Mod::Cp]), key(&[Reduce]), ASYNC, BULK, ordered(&[Global]), ordered(&[SharedCta]), BY_GROUP, REDUCTIONS, opt(&[Noftz])]).ty(&[t![F16 Bf16 B32 U32 S32 B64 U64 S64 F32 F64]]).ops(&COPIED).facts(COPY).since(9, 1, 90).rules(&[
        has(&[And, Or, Xor]).types(B32_64), has(&[Inc, Dec]).types(U32), has(&[Min, Max]).types(t![U32 S32 U64 S64 F16 Bf16]), has(&[Add]).types(t![U32 S32 U64 F32 F64 F16 Bf16]),
        has(&[Noftz]).types(t![F16 Bf16 F32]), has(&[Noftz]).on(F32).since(9, 4, 90), has(&[Noftz]).needs(&[Add]), has(&[Add]).on(t![F16 Bf16]).needs(&[Noftz]),
    ]),
    form(F::MultimemStAsync).name(&[key(&[St]), ASYNC, req(&[Release]), req(&[Gpu, Sys]), opt(&[Global])]).ty(&[SCALAR]).ops(&[TARGET, src("b", T0)]).facts(COPY.or(Fact::ORDERS)).since(9, 3, 100),
    form(F::MultimemRedAsync).name(&[key(&[Red]), ASYNC, req(&[Release]), req(&[Gpu, Sys]), opt(&[Global]), req(&[Add])]).ty(&[t![U32 S32 U64]]).ops(&[TARGET, src("b", T0)]).facts(COPY.or(Fact::ORDERS)).since(9, 3, 100),
    form(F::FabricSubmit).name(&[key(&[Submit])]).facts(Fact::ASYNC.or(Fact::EFFECT)).since(9, 3, 100),
    form(F::FabricWait).name(&[key(&[Wait]), req(&[SyncRestrictReads])]).facts(Fact::ORDERS.or(Fact::EFFECT)).since(9, 3, 100),
];
