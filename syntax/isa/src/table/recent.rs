//! Instructions that were added after PTX ISA 9.0 and are not variants of older ones.

use super::asynchronous::{
    ATTRIBUTES, BARRIER_ADDRESS, BULK_SCOPE, BULK_SIZE, BULK_STRENGTH, BY_GROUP, COPY, CP_MASK, DIMS,
    GATHERED, LAYOUTS, OVERRIDE_ADDRESS, OVERRIDE_ATTRIBUTES, OWN_BARRIER, RUBIN, STRENGTH_RULES, WHOLE,
    tensor, tensor_rules,
};
use super::prelude::*;

const SIGNED_COMPARE: &[Mod] = &[Eq, Ne, Lt, Le, Gt, Ge];
const UNSIGNED_COMPARE: &[Mod] = &[Lo, Ls, Hi, Hs];
const REDUCTIONS: Group = req(&[And, Or, Xor, Add, Inc, Dec, Min, Max]);
/// The destination of stores to shared memory of other thread blocks. The address is used as it is.
const TARGET: Operand = addr_at("a", Base::named(0).memory().copied());
const COPIED: [Operand; 3] =
    [addr("dstMem"), addr_at("srcMem", Base::named(1)), src("size", I32).values(BULK_SIZE)];

/// The requirements of features that only sm_107a has.
const SPARSE: Gate = Gate::only(9, 4, TargetSet::arch(107));
/// The types of the elements and of their indices.
const SPARSE_TYPES: &[TypeSet] = &[t![B8 B16], t![B2 B4]];
const SPARSE_COUNT: Group = req(&[X1, X2, X4, X8, X16, X32, X64]);
/// A part of a sparse vector, in any 32-bit registers.
const fn sparse(name: &'static str, role: Role, part: Sparse) -> Operand {
    Operand { role, ..reg(name, OperandType::Word) }.braces(Lanes::Sparse(part))
}

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
    form(F::FenceProxyAlias).name(&[key(&[Proxy]), req(&[Alias]), req(&[Acquire, Release]), req(&[Sys])]).facts(Fact::ORDERS).since(9, 4, 90),
    form(F::FenceProxyFabric).name(&[key(&[Proxy]), req(&[GenericFabric, FabricGeneric, FabricFabric]), req(&[Alias]), req(&[Acquire, Release, AcqRel]), req(&[Sys])]).facts(Fact::ORDERS).since(9, 3, 100),
    form(F::ApplypriorityBulk).name(&[ASYNC, BULK, opt(&[Global]), BY_GROUP, req(&[L2EvictNormal])]).ops(&[addr("srcMem"), src("size", I32).values(BULK_SIZE)]).facts(Fact::ASYNC.or(Fact::EFFECT)).gate(RUBIN),
    form(F::ApplypriorityBulkTensor).name(&[ASYNC, BULK, TENSOR, DIMS, opt(&[Global]), opt(&[Tile, TileGather4, Im2col, Im2colW, Im2colW128, Im2colNoOffs]), BY_GROUP, req(&[L2EvictNormal]), OVERRIDE_ADDRESS, OVERRIDE_ATTRIBUTES]).ops(&[tensor("tensorMap"), src_vector("im2colInfo", I16).braces(Lanes::Of(&[1])).with(&[Im2col, Im2colW, Im2colW128])]).facts(Fact::ASYNC.or(Fact::EFFECT)).gate(RUBIN).rules(tensor_rules![
        has(&[D4d]).lanes("im2colInfo", Lanes::Of(&[2])), has(&[D5d]).lanes("im2colInfo", Lanes::Of(&[3])), has(&[Im2colW, Im2colW128]).lanes("im2colInfo", Lanes::Of(&[2])),
        has(&[Im2col, Im2colW, Im2colW128, Im2colNoOffs]).excludes(&[D1d, D2d]), has(&[TileGather4]).needs(&[D2d]),
    ]),
    form(F::Spcompress).name(&[req(&[Sp2Of4]), SPARSE_COUNT]).ty(SPARSE_TYPES).ops(&[sparse("mdata", Role::Destination, Sparse::Metadata), sparse("cdata", Role::Destination, Sparse::Kept), sparse("data", Role::Source, Sparse::Whole), reg("spdesc", OperandType::Word)]).gate(SPARSE),
    form(F::Spdecompress).name(&[req(&[Sp1Of2, Sp1Of4, Sp1Of8, Sp1Of16, Sp2Of4, Sp2Of8, Sp2Of16, Sp4Of8, Sp4Of16]), SPARSE_COUNT]).ty(SPARSE_TYPES).ops(&[sparse("data", Role::Destination, Sparse::Whole), sparse("mdata", Role::Source, Sparse::Metadata), sparse("cdata", Role::Source, Sparse::Kept)]).gate(SPARSE).rules(&[
        on(t![B16]).excludes(&[Sp4Of8, Sp4Of16]), on_second(t![B2]).needs(&[Sp1Of2, Sp1Of4, Sp2Of4]), has(&[Sp1Of2]).on(t![B8]).excludes(&[X1]),
        has(&[Sp1Of16, Sp2Of16, Sp4Of16]).excludes(&[X64]), has(&[Sp1Of16, Sp2Of16]).on(t![B16]).excludes(&[X32]), has(&[Sp1Of8, Sp2Of8]).on(t![B16]).excludes(&[X64]),
    ]),
    form(F::Tcgen05LdSpcompress).name(&[key(&[Ld]), opt(&[Red]).at(Place::Leading), key(&[Spcompress]), SYNC, ALIGNED, req(&[N32x32b]), req(&[X4, X8, X16, X32, X64, X128]), req(&[Min, Max]), req(&[Sp2Of4]), opt(&[Abs]), opt(&[Nan])]).ty(&[F32, t![B2]]).ops(&[sparse("mdata", Role::Destination, Sparse::Metadata), sparse("cdata", Role::Destination, Sparse::Kept), dst_vector("redval", OperandType::Word).lanes(Lanes::OrBare(&[1])).with(&[Red]), addr_at("taddr", Base::of(Window::Tensor).copied())]).facts(Fact::CONVERGENT.or(Fact::READS).or(Fact::ASYNC)).gate(SPARSE).rules(&[has(&[Nan]).needs(&[Red])]),
];
