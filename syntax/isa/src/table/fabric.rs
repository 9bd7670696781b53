//! Accesses to the memory of other GPUs through the fabric. An address is the number of an endpoint and an offset in
//! its memory.

use super::asynchronous::{COPY, CP_MASK, DIMS, OVERRIDE_ATTRIBUTES, RUBIN, tensor};
use super::prelude::*;

const SPACE: Group = req(&[SharedCta]);
/// A barrier object counts the bytes, or the groups of sixteen bytes, and receives errors.
const BYTES: Group = req(&[MbarrierCompleteTxBytes]);
const LINES: Group = req(&[MbarrierCompleteTx16Bytes]);
const REPORT: Group = req(&[ReportFabric]);
const ORDER: Group = opt(&[Relaxed]);
const REACH: Group = opt(&[Sys]);
const ORDERED: Rule = has(&[Relaxed]).needs(&[Sys]);
/// The other GPU also counts the bytes, in its own memory.
const COUNTED: Group = opt(&[CountedBytes]);
/// A handle that includes the offset of that counter.
const COUNTED_HANDLE: Rule = has(&[CountedBytes]).operand("dst", Column::Head(PLACE));
const TO_SEVERAL: Group = opt(&[Multimem]);
const WHOLE: TypeSet = t![B128];
const SIZE: Operand = src("size", I32);
/// The assembler also accepts the address without brackets.
const BARRIER: Operand = addr("mbar").also(Class::VALUE);
const OPERATIONS: Group = req(&[Add, Min, Max, And, Or, Xor]);
const ACCUMULATE: &[Mod] = &[AccF16, AccF32];
const NARROW: TypeSet = t![E4m3 E5m2];
const NARROW_TARGETS: TargetSet =
    TargetSet::family(100).or(TargetSet::family(110)).or(TargetSet::family(120));

/// The tensor is that of the tensor map with another address, and optionally other sizes.
const OVERRIDE: Group = req(&[OverrideGlobalAddress]);
macro_rules! tensor_rules {
    ($($more:expr),* $(,)?) => { &[
        ORDERED, has(&[OverrideGlobalDim]).operand("tensorMap", Column::Head(&[NUMBER, OFFSET, Part::Sizes])),
        has(&[OverrideGlobalDimStride]).operand("tensorMap", Column::Head(&[NUMBER, OFFSET, Part::Sizes, Part::Strides, Part::Integer(16)])),
        $($more,)*
        has(&[D2d]).lanes("tensorMap", Lanes::Of(&[2])), has(&[D3d]).lanes("tensorMap", Lanes::Of(&[3])),
        has(&[D4d]).lanes("tensorMap", Lanes::Of(&[4])), has(&[D5d]).lanes("tensorMap", Lanes::Of(&[5])),
        has(&[OverrideGlobalDim]).needs(&[D1d]), has(&[OverrideGlobalDimStride]).excludes(&[D1d]),
    ] };
}
const NUMBER: Part = Part::Integer(32);
const OFFSET: Part = Part::Integer(64);
const PLACE: &[Part] = &[NUMBER, OFFSET];
const MAP: Operand = tensor("tensorMap").head(PLACE);
/// The offset of the counter follows that of the data.
macro_rules! counted_tensor_rules {
    () => {
        tensor_rules![
            has(&[CountedBytes]).operand("tensorMap", Column::Head(&[NUMBER, OFFSET, OFFSET])),
            has(&[CountedBytes])
                .and(&[OverrideGlobalDim])
                .operand("tensorMap", Column::Head(&[NUMBER, OFFSET, OFFSET, Part::Sizes])),
            has(&[CountedBytes]).and(&[OverrideGlobalDimStride]).operand(
                "tensorMap",
                Column::Head(&[NUMBER, OFFSET, OFFSET, Part::Sizes, Part::Strides, Part::Integer(16)])
            )
        ]
    };
}

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::FabricSubmit).name(&[key(&[Submit]), opt(&[OpRestrictFetching])]).facts(Fact::ASYNC.or(Fact::EFFECT)).since(9, 3, 100),
    form(F::FabricWait).name(&[key(&[Wait]), req(&[SyncRestrictReads])]).facts(Fact::ORDERS.or(Fact::EFFECT)).since(9, 3, 100),
    form(F::FabricTryGet).name(&[key(&[TryGet]), ASYNC, SPACE, BYTES, REPORT, ORDER, REACH, CACHE_HINT]).ty(&[WHOLE]).ops(&[addr("dst"), handle("src"), SIZE, BARRIER, POLICY]).facts(COPY).since(9, 3, 100).rules(&[ORDERED]),
    form(F::FabricTryPut).name(&[key(&[TryPut]), ASYNC, TO_SEVERAL, SPACE, LINES, REPORT, opt(&[CpMask, CountedBytes]), ORDER, REACH, CACHE_HINT]).ty(&[WHOLE]).ops(&[handle("dst"), addr("src"), SIZE, BARRIER, CP_MASK, POLICY]).facts(COPY).since(9, 3, 100).rules(&[ORDERED, COUNTED_HANDLE]),
    form(F::FabricTryRed).name(&[key(&[TryRed]), ASYNC, TO_SEVERAL, SPACE, LINES, REPORT, COUNTED, ORDER, REACH, CACHE_HINT, OPERATIONS, opt(ACCUMULATE)]).ty(&[t![U32 S32 B32 U64 S64 B64 F16 Bf16 F32 F64]]).ops(&[handle("dst"), addr("src"), SIZE, BARRIER, POLICY]).facts(COPY).since(9, 3, 100).rules(&[
        ORDERED, COUNTED_HANDLE, has(ACCUMULATE).needs(&[Add]),
        has(&[And, Or, Xor]).types(B32_64), has(&[Min, Max]).types(t![U32 S32 U64 S64 F16 Bf16]), has(&[Add]).types(t![U32 U64 F16 Bf16 F32 F64]),
    ]),
    form(F::FabricTryPullred).name(&[key(&[TryPullred]), ASYNC, req(&[Multimem]), SPACE, BYTES, REPORT, ORDER, REACH, OPERATIONS, opt(ACCUMULATE), SYNC]).ty(&[t![U32 S32 B32 U64 S64 B64 F16 Bf16 F32 E4m3 E5m2]]).ops(&[addr("dst"), handle("src"), SIZE, BARRIER, imm("membermask", I32).values(Values::Low(&Values::Of(&[0xffff_ffff])))]).facts(COPY.or(Fact::CONVERGENT)).since(9, 3, 100).rules(&[
        ORDERED, has(ACCUMULATE).needs(&[Add]), has(ACCUMULATE).gate(Gate::only(9, 3, NARROW_TARGETS)), on(NARROW).gate(Gate::only(9, 3, NARROW_TARGETS)),
        has(&[And, Or, Xor]).types(B32_64), has(&[Min, Max]).types(t![U32 S32 U64 S64 F16 Bf16 E4m3 E5m2]), has(&[Add]).lacks(ACCUMULATE).types(t![U32 U64 F16 Bf16 F32]),
        has(&[AccF16]).types(NARROW), has(&[AccF32]).types(t![F16 Bf16 E4m3 E5m2]),
    ]),
    form(F::FabricTryAtom).name(&[key(&[TryAtom]), ASYNC, SPACE, LINES, REPORT, ORDER, REACH, CACHE_HINT, req(&[Add, Min, Max, And, Or, Xor, Exch, Cas]), opt(ACCUMULATE)]).ty(&[t![U32 S32 B32 U64 S64 B64 B128 F16 F16x2 Bf16 Bf16x2 F32 F64]]).ops(&[handle("a"), addr("dst"), addr("src"), BARRIER, POLICY]).facts(COPY).since(9, 4, 100).rules(&[
        ORDERED, has(ACCUMULATE).needs(&[Add]), has(&[AccF32]).types(t![U32 U64 F16 F16x2 Bf16x2 F32 F64]),
        has(&[And, Or, Xor]).types(B32_64), has(&[Exch, Cas]).types(t![B32 B64 B128]), has(&[Min, Max]).types(t![U32 S32 U64 S64 F16x2 Bf16x2]), has(&[Add]).types(t![U32 U64 F16 F16x2 Bf16 Bf16x2 F32 F64]),
    ]),
    form(F::FabricTryGetTensor).name(&[key(&[TryGet]), ASYNC, TENSOR, DIMS, opt(&[Tile]), SPACE, BYTES, REPORT, ORDER, REACH, CACHE_HINT, OVERRIDE, OVERRIDE_ATTRIBUTES]).ty(&[WHOLE]).ops(&[addr("dst"), MAP, BARRIER, POLICY]).facts(COPY).gate(RUBIN).rules(tensor_rules![]),
    form(F::FabricTryPutTensor).name(&[key(&[TryPut]), ASYNC, TENSOR, TO_SEVERAL, DIMS, opt(&[Tile]), SPACE, LINES, REPORT, COUNTED, ORDER, REACH, CACHE_HINT, OVERRIDE, OVERRIDE_ATTRIBUTES]).ty(&[WHOLE]).ops(&[MAP, addr("src"), SIZE, BARRIER, POLICY]).facts(COPY).gate(RUBIN).rules(counted_tensor_rules![]),
    form(F::FabricTryRedTensor).name(&[key(&[TryRed]), ASYNC, TENSOR, TO_SEVERAL, DIMS, opt(&[Tile]), SPACE, LINES, REPORT, COUNTED, ORDER, REACH, CACHE_HINT, OVERRIDE, OVERRIDE_ATTRIBUTES, OPERATIONS]).ops(&[MAP, addr("src"), SIZE, BARRIER, POLICY]).facts(COPY).gate(RUBIN).rules(counted_tensor_rules![]),
];
