//! Matrices held by a warp: loads, stores and products.

use super::prelude::*;

const WARP: Fact = Fact::CONVERGENT;
const COUNT: Group = req(&[X1, X2, X4]);
const OWN_SHARED: Group = opt(&[Shared, SharedCta]);
const BLOCK_TARGETS: TargetSet = TargetSet::family(100).or(TargetSet::family(110)).or(TargetSet::family(120));
const BLOCK: Gate = Gate::only(8, 6, BLOCK_TARGETS);
const ROW: Group = ordered(&[Row]);
const COL: Group = ordered(&[Col]);
const LAYOUT: Group = ordered(&[Row, Col]);
const ABC: &[Operand] =
    &[dst_vector("d", FREE), src_vector("a", FREE), src_vector("b", FREE), src_vector("c", FREE)];
const INT8: TypeSet = t![U8 S8];
const INT4: TypeSet = t![U4 S4];
const S32: TypeSet = t![S32];
const FP8: TypeSet = t![E4m3 E5m2];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Ldmatrix).name(&[SYNC, ALIGNED, req(&[M8n8]), COUNT, opt(&[Trans]), OWN_SHARED]).ty(&[t![B16]]).ops(&[dst_vector("r", TB32), addr("p")]).facts(WARP.or(Fact::READS)).since(6, 5, 75).rules(&[has(&[SharedCta]).since(7, 8, 75)]),
    form(F::LdmatrixBytes).name(&[SYNC, ALIGNED, req(&[M16n16]), req(&[X1, X2]), req(&[Trans]), OWN_SHARED]).ty(&[t![B8]]).ops(&[dst_vector("r", TB32), addr("p")]).facts(WARP.or(Fact::READS)).gate(BLOCK),
    form(F::LdmatrixUnpack).name(&[SYNC, ALIGNED, req(&[M8n16, M16n16]), COUNT, opt(&[Trans]), OWN_SHARED]).ty(&[t![B8x16], t![B6x16P32 B4x16P64]]).ops(&[dst_vector("r", TB32), addr("p")]).facts(WARP.or(Fact::READS)).gate(BLOCK).rules(&[
        has(&[M16n16]).needs(&[Trans]), has(&[M16n16]).excludes(&[X4]), has(&[M8n16]).excludes(&[Trans]),
    ]),
    form(F::Stmatrix).name(&[SYNC, ALIGNED, req(&[M8n8]), COUNT, opt(&[Trans]), OWN_SHARED]).ty(&[t![B16]]).ops(&[addr("p"), src_vector("r", TB32)]).facts(WARP.or(Fact::WRITES)).since(7, 8, 90),
    form(F::StmatrixBytes).name(&[SYNC, ALIGNED, req(&[M16n8]), COUNT, req(&[Trans]), OWN_SHARED]).ty(&[t![B8]]).ops(&[addr("p"), src_vector("r", TB32)]).facts(WARP.or(Fact::WRITES)).gate(BLOCK),
    form(F::Movmatrix).name(&[SYNC, ALIGNED, req(&[M8n8]), req(&[Trans])]).ty(&[t![B16]]).ops(&[dst("d", TB32), src("a", TB32)]).facts(WARP).since(7, 8, 75),
    form(F::MmaF16M8).name(&[SYNC, ALIGNED, req(&[M8n8k4]), LAYOUT, LAYOUT]).ty(&[t![F16 F32], t![F16], t![F16], t![F16 F32]]).ops(ABC).facts(WARP).since(6, 4, 70).rules(&[on(t![F16]).types_at(3, t![F16])]),
    form(F::MmaF16).name(&[SYNC, ALIGNED, req(&[M16n8k8, M16n8k16]), ROW, COL]).ty(&[t![F16 F32], t![F16], t![F16], t![F16 F32]]).ops(ABC).facts(WARP).since(6, 5, 75).rules(&[lacks(&[]).same(0, 3), has(&[M16n8k16]).since(7, 0, 80)]),
    form(F::MmaBf16).name(&[SYNC, ALIGNED, req(&[M16n8k8, M16n8k16]), ROW, COL]).ty(&[F32, t![Bf16], t![Bf16], F32]).ops(ABC).facts(WARP).since(7, 0, 80),
    form(F::MmaTf32).name(&[SYNC, ALIGNED, req(&[M16n8k4, M16n8k8]), ROW, COL]).ty(&[F32, t![Tf32], t![Tf32], F32]).ops(ABC).facts(WARP).since(7, 0, 80),
    form(F::MmaF64).name(&[SYNC, ALIGNED, req(&[M8n8k4, M16n8k4, M16n8k8, M16n8k16]), ROW, COL]).ty(&[F64, F64, F64, F64]).ops(ABC).facts(WARP).since(7, 0, 80).rules(&[has(&[M16n8k4, M16n8k8, M16n8k16]).since(7, 8, 90)]),
    form(F::MmaInt8).name(&[SYNC, ALIGNED, req(&[M8n8k16, M16n8k16, M16n8k32]), ROW, COL, opt(&[Satfinite])]).ty(&[S32, INT8, INT8, S32]).ops(ABC).facts(WARP).since(6, 5, 75).rules(&[has(&[M16n8k16, M16n8k32]).since(7, 0, 80)]),
    form(F::MmaInt4).name(&[SYNC, ALIGNED, req(&[M8n8k32, M16n8k32, M16n8k64]), ROW, COL, opt(&[Satfinite])]).ty(&[S32, INT4, INT4, S32]).ops(ABC).facts(WARP).since(6, 5, 75).rules(&[has(&[M16n8k32, M16n8k64]).since(7, 0, 80)]),
    form(F::MmaBits).name(&[SYNC, ALIGNED, req(&[M8n8k128, M16n8k128, M16n8k256]), ROW, COL, req(&[Xor, And]), req(&[Popc])]).ty(&[S32, t![B1], t![B1], S32]).ops(ABC).facts(WARP).since(7, 0, 75).rules(&[has(&[M16n8k128, M16n8k256]).since(7, 0, 80), has(&[And]).since(7, 1, 80)]),
    form(F::MmaFp8).name(&[SYNC, ALIGNED, req(&[M16n8k16, M16n8k32]), ROW, COL]).ty(&[t![F16 F32], FP8, FP8, t![F16 F32]]).ops(ABC).facts(WARP).since(8, 4, 89).rules(&[lacks(&[]).same(0, 3), has(&[M16n8k16]).since(8, 7, 89), on(t![F16]).since(8, 7, 89)]),
];
