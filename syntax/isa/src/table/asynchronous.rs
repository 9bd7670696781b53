//! Asynchronous copies, barrier objects, tensor maps and multimem.

use super::prelude::*;

const BARRIER_OBJECT: Group = opt(&[Shared, SharedCta, SharedCluster]);
pub(super) const OWN_BARRIER: Group = opt(&[Shared, SharedCta]);
/// The barrier objects of several thread blocks in the cluster.
const TO_BLOCKS: Group = opt(&[MulticastCluster32b]);
const TO_BLOCKS_RULES: [Rule; 2] =
    [has(&[MulticastCluster32b]).gate(RUBIN), has(&[MulticastCluster32b]).excludes(&[Shared, SharedCta])];
const BLOCKS: Operand = src("ctaMask", I32).with(&[MulticastCluster32b]);
const ATOMIC: Fact = Fact::READS.or(Fact::WRITES);
pub(super) const COPY: Fact = Fact::READS.or(Fact::WRITES).or(Fact::ASYNC);
const BY_BARRIER: Group = req(&[MbarrierCompleteTxBytes]);
pub(super) const BY_GROUP: Group = req(&[BulkGroup]);
const MULTICASTS: &[Mod] = &[MulticastCluster, MulticastCluster16b, MulticastCluster32b];
const MULTICAST: Group = opt(MULTICASTS);
/// The requirements of features that sm_107 introduced.
pub(super) const RUBIN: Gate = Gate::only(9, 4, TargetSet::family(107));
/// What a copy reports about invalid values.
const REPORTS: &[Mod] = &[
    ReportDisabled,
    ReportPer16BytesWord,
    ReportPer16BytesHalf,
    ReportPer16BytesByte,
    ReportPer16BytesNibble,
    ReportPerElement,
];
/// Properties of a tensor map that the instruction overrides.
pub(super) const OVERRIDE_ADDRESS: Group = opt(&[OverrideGlobalAddress]);
pub(super) const ATTRIBUTES: &[Mod] = &[OverrideGlobalDim, OverrideGlobalDimStride];
pub(super) const OVERRIDE_ATTRIBUTES: Group = opt(ATTRIBUTES);
/// Modes other than `.tile`.
pub(super) const GATHERED: &[Mod] =
    &[TileGather4, TileScatter4, Im2col, Im2colW, Im2colW128, Im2colNoOffs, Im2colNoOffsW];
/// Coordinates of a tensor.
pub(super) const fn tensor(name: &'static str) -> Operand {
    texture(name, OperandType::Integer(32), Lanes::Of(&[1]))
}
/// There is one coordinate for each dimension, or five for `.tile::gather4` and `.tile::scatter4`. The offsets of
/// `.im2col` omit the two outer dimensions.
macro_rules! tensor_rules {
    ($($more:expr),* $(,)?) => { &[
        has(&[D2d]).lanes("tensorMap", Lanes::Of(&[2])), has(&[D3d]).lanes("tensorMap", Lanes::Of(&[3])),
        has(&[D4d]).lanes("tensorMap", Lanes::Of(&[4])), has(&[D5d]).lanes("tensorMap", Lanes::Of(&[5])),
        has(&[TileGather4, TileScatter4]).lanes("tensorMap", Lanes::Of(&[5])),
        has(&[OverrideGlobalAddress]).operand("tensorMap", Column::Head(&[Part::Integer(64)])),
        has(&[OverrideGlobalDim]).operand("tensorMap", Column::Head(&[Part::Integer(64), Part::Sizes])),
        has(&[OverrideGlobalDimStride]).operand("tensorMap", Column::Head(&[Part::Integer(64), Part::Sizes, Part::Strides, Part::Integer(16)])),
        has(&[OverrideGlobalAddress]).gate(RUBIN), has(ATTRIBUTES).needs(&[OverrideGlobalAddress]), has(ATTRIBUTES).excludes(GATHERED),
        has(&[OverrideGlobalDim]).needs(&[D1d]), has(&[OverrideGlobalDimStride]).excludes(&[D1d]),
        $($more),*
    ] };
}
pub(super) use tensor_rules;
pub(super) const DIMS: Group = req(&[D1d, D2d, D3d, D4d, D5d]);
const PREFETCH_SIZES: Group = opt(&[L264B, L2128B, L2256B]);
const BLACKWELL_DATACENTER: TargetSet = TargetSet::family(100).or(TargetSet::family(110));
const CTA_GROUPS: &[Mod] = &[CtaGroup1, CtaGroup2];
const MASK: Operand = src("ctaMask", I16).with(MULTICASTS);
const MASK_RULES: [Rule; 3] = [
    has(&[MulticastCluster16b]).since(9, 4, 90),
    has(&[MulticastCluster32b]).gate(RUBIN),
    has(&[MulticastCluster32b]).operand("ctaMask", Column::Type(I32)),
];
pub(super) const CP_MASK: Operand = src("byteMask", I16).with(&[CpMask]);

/// The number of bytes of a bulk copy.
pub(super) const BULK_SIZE: Values = Values::Low(&Values::Multiple(16, 0, 0xffff0));
/// The scope of a bulk copy. The assembler accepts it, but it has no effect.
pub(super) const BULK_SCOPE: Group = opt(&[Cta, Cluster, Gpu, Sys]);
/// Copies with strong accesses access 128 bits at a time.
pub(super) const BULK_STRENGTH: Group = opt(&[Weak, Relaxed]);
pub(super) const WHOLE: TypeSet = t![B128];
pub(super) const STRENGTH_RULES: [Rule; 4] = [
    has(&[Relaxed]).types(WHOLE),
    has(&[Relaxed]).needs(SCOPES),
    on(WHOLE).needs(&[Relaxed]),
    has(&[Weak, Relaxed]).since(9, 3, 90),
];
/// The barrier object that counts the bytes of a bulk copy. The assembler also accepts a 64-bit address without
/// brackets.
const BULK_BARRIER: Operand = addr_at("mbar", Base::of(Window::In(Space::Shared))).also(Class::VALUE);
/// The address of a barrier object: a variable of shared memory, whatever the address window is.
pub(super) const BARRIER_ADDRESS: Operand =
    addr_at("addr", Base::named(0).memory().variables(Space::Shared).sized());
/// The shared memory operand of a tensor copy. Without brackets, the assembler accepts anything but integers.
const TENSOR_SHARED: Operand = addr_at("dstMem", Base::of(Window::In(Space::Shared)))
    .also(Class::VALUE.or(Class::PREDICATE).or(Class::SYMBOL))
    .values(Values::Of(&[]));

const SEMANTICS: &[Mod] = &[Acquire, Release, Relaxed];
const CLUSTER_SCOPE: Gate = Gate::since(8, 0, 90);
/// Rules that the waits and arrivals of barrier objects share.
macro_rules! mbarrier_rules {
    ($($more:expr),* $(,)?) => { &[
        has(SEMANTICS).needs(&[Cta, Cluster]), has(&[Cta, Cluster]).needs(SEMANTICS),
        has(SEMANTICS).since(8, 0, 80), has(&[Relaxed]).since(8, 6, 90), has(&[Cluster]).gate(CLUSTER_SCOPE),
        has(&[SharedCta]).since(7, 8, 80),
        $($more),*
    ] };
}
const ARRIVE_RULES: &[Rule] = mbarrier_rules![
    has(&[SharedCluster, ExpectTx]).gate(CLUSTER_SCOPE),
    has(&[SharedCluster]).operand("state", Column::Class(Class::SINK)),
    lacks(&[]).operand("state", Column::GatedSink(Gate::since(7, 1, 80))),
    has(&[ExpectTx]).operand("count", Column::Class(Class::VALUE)),
    has(&[ExpectTx]).values("count", Values::Any),
    has(&[ExpectTx, NoComplete]).operand("count", Column::Presence(Presence::Always)),
    lacks(&[NoComplete]).operand("count", Column::Gate(CLUSTER_SCOPE)),
    has(&[NoComplete]).excludes(&[ExpectTx, SharedCluster, Relaxed, Cluster, MulticastCluster32b]),
    TO_BLOCKS_RULES[0],
    TO_BLOCKS_RULES[1],
    has(&[MulticastCluster32b]).operand("state", Column::Class(Class::SINK)),
    // With a single number, the number is the mask and may have any value.
    has(&[MulticastCluster32b]).operand("count", Column::Presence(Presence::Always)),
    has(&[MulticastCluster32b]).values("count", Values::Any),
    lacks(&[ExpectTx]).operand("ctaMask", Column::Presence(Presence::OptionalWith(&[MulticastCluster32b])))
];
const WAIT_RULES: &[Rule] = mbarrier_rules![
    has(&[Parity]).operand("state", Column::Type(I32)),
    has(&[Parity]).values("state", Values::Range(0, 1)),
    has(&[Parity]).since(7, 1, 80),
    has(PHASES).since(9, 3, 90),
    has(&[PhaseTypeConditional]).needs(&[Parity]),
    lacks(&[PhaseTypePrimary]).operand("waitComplete", Column::Class(Class::PREDICATE))
];
/// If the barrier object has a report, a second predicate receives it.
const WAIT_COMPLETE: Operand = dst_pred("waitComplete").pair();
const ARRIVE: &[Operand] = &[
    dst("state", I64).sink(),
    BARRIER_ADDRESS,
    src_vector("count", I32).lanes(Lanes::OrBare(&[1, 2, 4])).range(1, i64::MAX).optional(),
    BLOCKS,
];
const SCOPED: Group = opt(&[Cta, Cluster]);
pub(super) const LAYOUTS: &[Mod] = &[LayoutV0, LayoutV1];
const PHASES: &[Mod] = &[PhaseTypePrimary, PhaseTypeConditional];

/// The destination of an asynchronous store. The assembler copies the address to a register.
const ASYNC_TARGET: Operand = addr_at("a", Base::named(0).memory().copied());
const RELEASE_SCOPE: Group = req(&[Gpu, Sys]);

const MULTIMEM_SPACE: Group = opt(&[Global]);
const E8: TypeSet = t![E4m3 E5m2 E4m3x2 E5m2x2 E4m3x4 E5m2x4];
const MULTIMEM: TypeSet = t![U32 S32 B32 U64 S64 B64 F16 F16x2 Bf16 Bf16x2 F32 F64].union(E8);
const MULTIMEM_ADD: TypeSet = t![U32 S32 U64 F16 F16x2 Bf16 Bf16x2 F32 F64].union(E8);
const MULTIMEM_VECTOR: TypeSet = t![F16 F16x2 Bf16 Bf16x2 F32].union(E8);
const MULTIMEM_GATES: Gate =
    Gate::only(8, 6, BLACKWELL_DATACENTER.or(TargetSet::arch(120)).or(TargetSet::arch(121)));
const ORDERED: &[Mod] = &[Relaxed, Acquire, Release];
/// The types of floating-point values that only `multimem` computes with. The assembler accepts any registers of their
/// width.
const RAW_16: OperandType = is(ScalarType::B16);
const RAW_8: OperandType = is(ScalarType::B8);
/// Fields of a tensor map with one entry for each dimension.
const ORDINAL: &[Mod] = &[BoxDim, GlobalDim, GlobalStride, ElementStride];
/// Fields with a constant for their value.
/// Element types of tensor maps.
const ELEMENTS: Values = Values::Of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
const FIELDS: &[Mod] = &[Elemtype, InterleaveLayout, SwizzleMode, SwizzleAtomicity, FillMode];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::CpAsync).name(&[ASYNC, req(&[Ca, Cg]), ordered(&[Shared, SharedCta]), ordered(&[Global]), CACHE_HINT, PREFETCH_SIZES]).ops(&[addr("dst"), addr_at("src", Base::named(1)), imm("cp-size", I32).values(Values::Of(&[4, 8, 16])), src("src-size", I32).values(Values::UpTo("cp-size")).optional(), reg("ignore-src", is(ScalarType::Pred)).class(Class::PREDICATE).optional().since(7, 5, 80), POLICY]).facts(COPY).since(7, 0, 80).rules(&[has(&[Cg]).values("cp-size", Values::Of(&[16])), has(&[L2CacheHint, L264B, L2128B, L2256B]).since(7, 4, 80)]),
    form(F::CpAsyncCommitGroup).name(&[ASYNC, key(&[CommitGroup])]).facts(Fact::ASYNC.or(Fact::EFFECT)).since(7, 0, 80),
    form(F::CpAsyncWaitGroup).name(&[ASYNC, key(&[WaitGroup])]).ops(&[imm("n", I32)]).facts(Fact::ORDERS.or(Fact::EFFECT)).since(7, 0, 80),
    form(F::CpAsyncWaitAll).name(&[ASYNC, key(&[WaitAll])]).facts(Fact::ORDERS.or(Fact::EFFECT)).since(7, 0, 80),
    form(F::CpAsyncMbarrierArrive).name(&[ASYNC, key(&[Mbarrier]), key(&[Arrive]), opt(&[Noinc]), OWN_BARRIER]).ty(&[B64]).ops(&[addr("addr")]).facts(Fact::ASYNC.or(Fact::EFFECT)).since(7, 0, 80).rules(&[has(&[SharedCta]).since(7, 8, 80)]),
    form(F::CpAsyncBulkLoad).name(&[ASYNC, BULK, ordered(&[SharedCta, SharedCluster]), ordered(&[Global]), BY_BARRIER, opt(REPORTS), BULK_STRENGTH, BULK_SCOPE, MULTICAST, CACHE_HINT, opt(&[IgnoreOob])]).ty(&[WHOLE]).optional_types(1).ops(&[addr("dstMem"), addr_at("srcMem", Base::named(1)), src("size", I32).values(BULK_SIZE), src("ignoreBytesLeft", I32).with(&[IgnoreOob]), src("ignoreBytesRight", I32).with(&[IgnoreOob]), BULK_BARRIER, MASK, POLICY]).facts(COPY).since(8, 0, 90).rules(&[has(&[SharedCta]).since(8, 6, 90), has(MULTICASTS).needs(&[SharedCluster]), has(REPORTS).gate(RUBIN), MASK_RULES[0], MASK_RULES[1], MASK_RULES[2], has(&[MulticastCluster, MulticastCluster16b, MulticastCluster32b, L2CacheHint]).operand("mbar", Column::Class(Class::ADDRESS)), has(&[IgnoreOob]).needs(&[SharedCta]), has(&[IgnoreOob]).since(9, 2, 90), STRENGTH_RULES[0], STRENGTH_RULES[1], STRENGTH_RULES[2], STRENGTH_RULES[3]]),
    form(F::CpAsyncBulkCluster).name(&[ASYNC, BULK, ordered(&[SharedCluster]), ordered(&[SharedCta]), BY_BARRIER, BULK_SCOPE]).ops(&[addr("dstMem"), addr_at("srcMem", Base::named(1)), src("size", I32).values(BULK_SIZE), BULK_BARRIER]).facts(COPY).since(8, 0, 90),
    form(F::CpAsyncBulkStore).name(&[ASYNC, BULK, ordered(&[Global]), ordered(&[SharedCta]), BY_GROUP, BULK_STRENGTH, BULK_SCOPE, CACHE_HINT, opt(&[CpMask])]).ty(&[WHOLE]).optional_types(1).ops(&[addr("dstMem"), addr_at("srcMem", Base::named(1)), src("size", I32).values(BULK_SIZE), POLICY, CP_MASK]).facts(COPY).since(8, 0, 90).rules(&[has(&[CpMask]).since(8, 6, 100), STRENGTH_RULES[0], STRENGTH_RULES[1], STRENGTH_RULES[2], STRENGTH_RULES[3]]),
    form(F::CpAsyncBulkPrefetch).name(&[ASYNC, BULK, key(&[Prefetch]), req(&[L2]), ordered(&[Global]), opt(&[L2CacheHint, L2EvictLast])]).ops(&[addr("srcMem"), src("size", I32).values(Values::Multiple(16, 0, 0xffff0)), POLICY]).facts(Fact::ASYNC.or(Fact::EFFECT)).since(8, 0, 90).rules(&[has(&[L2EvictLast]).gate(RUBIN)]),
    form(F::CpAsyncBulkCommitGroup).name(&[ASYNC, BULK, key(&[CommitGroup])]).facts(Fact::ASYNC.or(Fact::EFFECT)).since(8, 0, 90),
    form(F::CpAsyncBulkWaitGroup).name(&[ASYNC, BULK, key(&[WaitGroup]), opt(&[Read])]).ops(&[imm("n", I32)]).facts(Fact::ORDERS.or(Fact::EFFECT)).since(8, 0, 90),
    form(F::CpReduceAsyncBulkCluster).name(&[key(&[Reduce]), ASYNC, BULK, ordered(&[SharedCluster]), ordered(&[SharedCta]), BY_BARRIER, req(&[And, Or, Xor, Add, Inc, Dec, Min, Max])]).ty(&[t![S32 U32 S64 U64 B32 B64]]).ops(&[addr("dstMem"), addr_at("srcMem", Base::named(1)), src("size", I32).values(BULK_SIZE), BULK_BARRIER]).facts(COPY).since(8, 0, 90).rules(&[
        has(&[And, Or, Xor]).types(B32), has(&[Inc, Dec]).types(U32), has(&[Min, Max]).types(UI32), has(&[Add]).types(t![U32 S32 U64]),
    ]),
    form(F::CpReduceAsyncBulkStore).name(&[key(&[Reduce]), ASYNC, BULK, ordered(&[Global]), ordered(&[SharedCta]), BY_GROUP, CACHE_HINT, req(&[And, Or, Xor, Add, Inc, Dec, Min, Max]), opt(&[Noftz])]).ty(&[t![F16 Bf16 B32 U32 S32 B64 U64 S64 F32 F64]]).ops(&[addr("dstMem"), addr_at("srcMem", Base::named(1)), src("size", I32).values(BULK_SIZE), POLICY]).facts(COPY).since(8, 0, 90).rules(&[
        has(&[And, Or, Xor]).types(B32_64), has(&[Inc, Dec]).types(U32), has(&[Min, Max]).types(t![U32 S32 U64 S64 F16 Bf16]), has(&[Add]).types(t![U32 S32 U64 F32 F64 F16 Bf16]),
        has(&[Noftz]).types(t![F16 Bf16 F32]), has(&[Noftz]).on(F32).since(9, 4, 90), has(&[Noftz]).needs(&[Add]), has(&[Add]).on(t![F16 Bf16]).needs(&[Noftz]),
    ]),
    form(F::CpAsyncBulkTensorLoad).name(&[ASYNC, BULK, TENSOR, DIMS, ordered(&[SharedCta, SharedCluster]), ordered(&[Global]), opt(&[Tile, TileGather4, Im2col, Im2colW, Im2colW128]), BY_BARRIER, opt(REPORTS), MULTICAST, opt(CTA_GROUPS), CACHE_HINT, OVERRIDE_ADDRESS, OVERRIDE_ATTRIBUTES]).ops(&[TENSOR_SHARED, tensor("tensorMap"), Operand { name: "mbar", ..TENSOR_SHARED }, src_vector("im2colInfo", I16).braces(Lanes::Of(&[1])).when(Presence::OptionalWith(&[Im2col, Im2colW, Im2colW128])), MASK, POLICY]).facts(COPY).since(8, 0, 90).rules(tensor_rules![has(&[D4d]).lanes("im2colInfo", Lanes::Of(&[2])), has(&[D5d]).lanes("im2colInfo", Lanes::Of(&[3])), has(&[Im2colW, Im2colW128]).lanes("im2colInfo", Lanes::Of(&[2])), has(&[Im2col, Im2colW, Im2colW128]).operand("im2colInfo", Column::Presence(Presence::Always)), 
        has(&[SharedCta]).since(8, 6, 90), has(MULTICASTS).needs(&[SharedCluster]), has(REPORTS).gate(RUBIN), MASK_RULES[0], MASK_RULES[1], MASK_RULES[2], has(ATTRIBUTES).excludes(&[MulticastCluster, MulticastCluster16b]),
        has(&[TileGather4]).needs(&[D2d]), has(&[Im2col, Im2colW, Im2colW128]).excludes(&[D1d, D2d]),
        has(&[Im2colW]).lacks(&[SharedCta]).gate(Gate::only(8, 6, BLACKWELL_DATACENTER)), has(&[Im2colW128]).gate(Gate::only(8, 6, BLACKWELL_DATACENTER)), has(&[Im2colW]).since(8, 6, 100), has(CTA_GROUPS).gate(Gate::only(8, 6, BLACKWELL_DATACENTER)),
        has(&[TileGather4]).lacks(&[SharedCta]).gate(Gate::only(8, 6, BLACKWELL_DATACENTER)), has(&[TileGather4]).since(8, 6, 100),
    ]),
    form(F::CpAsyncBulkTensorStore).name(&[ASYNC, BULK, TENSOR, DIMS, ordered(&[Global]), ordered(&[SharedCta]), opt(&[Tile, TileScatter4, Im2colNoOffs, Im2colNoOffsW]), BY_GROUP, CACHE_HINT, OVERRIDE_ADDRESS, OVERRIDE_ATTRIBUTES]).ops(&[tensor("tensorMap"), Operand { name: "srcMem", ..TENSOR_SHARED }, POLICY]).facts(COPY).since(8, 0, 90).rules(tensor_rules![
        has(&[Im2colNoOffs, Im2colNoOffsW]).excludes(&[D1d, D2d]), has(&[Im2colNoOffsW]).gate(RUBIN), has(&[TileScatter4]).needs(&[D2d]), has(&[TileScatter4]).gate(Gate::only(8, 6, BLACKWELL_DATACENTER)),
    ]),
    form(F::CpReduceAsyncBulkTensor).name(&[key(&[Reduce]), ASYNC, BULK, TENSOR, DIMS, ordered(&[Global]), ordered(&[SharedCta]), req(&[Add, Min, Max, Inc, Dec, And, Or, Xor]), opt(&[Tile, TileScatter4, Im2colNoOffs, Im2colNoOffsW]), BY_GROUP, CACHE_HINT, OVERRIDE_ADDRESS, OVERRIDE_ATTRIBUTES]).ops(&[tensor("tensorMap"), Operand { name: "srcMem", ..TENSOR_SHARED }, POLICY]).facts(COPY).since(8, 0, 90).rules(tensor_rules![
        has(&[Im2colNoOffs, Im2colNoOffsW]).excludes(&[D1d, D2d]), has(&[Im2colNoOffsW]).gate(RUBIN), has(&[TileScatter4]).needs(&[D2d]), has(&[TileScatter4]).gate(Gate::only(8, 6, BLACKWELL_DATACENTER)),
    ]),
    form(F::CpAsyncBulkPrefetchTensor).name(&[ASYNC, BULK, key(&[Prefetch]), TENSOR, DIMS, req(&[L2]), ordered(&[Global]), opt(&[Tile, TileGather4, Im2col, Im2colW, Im2colW128]), opt(&[L2CacheHint, L2EvictLast]), OVERRIDE_ADDRESS, OVERRIDE_ATTRIBUTES]).ops(&[tensor("tensorMap"), src_vector("im2colInfo", I16).braces(Lanes::Of(&[1])).when(Presence::OptionalWith(&[Im2col, Im2colW, Im2colW128])), POLICY]).facts(Fact::ASYNC.or(Fact::EFFECT)).since(8, 0, 90).rules(tensor_rules![has(&[D4d]).lanes("im2colInfo", Lanes::Of(&[2])), has(&[D5d]).lanes("im2colInfo", Lanes::Of(&[3])), has(&[Im2colW, Im2colW128]).lanes("im2colInfo", Lanes::Of(&[2])), has(&[Im2col, Im2colW, Im2colW128]).operand("im2colInfo", Column::Presence(Presence::Always)), 
        has(&[L2EvictLast]).gate(RUBIN), has(&[Im2col, Im2colW, Im2colW128]).excludes(&[D1d, D2d]), has(&[TileGather4]).needs(&[D2d]), has(&[TileGather4, Im2colW, Im2colW128]).gate(Gate::only(8, 6, BLACKWELL_DATACENTER)),
    ]),
    form(F::MbarrierInit).name(&[key(&[Init]), opt(LAYOUTS), OWN_BARRIER]).ty(&[B64]).ops(&[BARRIER_ADDRESS, src("count", I32)]).facts(Fact::WRITES).since(7, 0, 80).rules(&[has(&[SharedCta]).since(7, 8, 80), has(LAYOUTS).since(9, 3, 90)]),
    form(F::MbarrierInval).name(&[key(&[Inval]), OWN_BARRIER]).ty(&[B64]).ops(&[BARRIER_ADDRESS]).facts(Fact::WRITES).since(7, 0, 80).rules(&[has(&[SharedCta]).since(7, 8, 80)]),
    form(F::MbarrierExpectTx).name(&[key(&[ExpectTx]), opt(&[Relaxed]), SCOPED, BARRIER_OBJECT, TO_BLOCKS]).ty(&[B64]).ops(&[BARRIER_ADDRESS, src("txCount", I32), BLOCKS]).facts(ATOMIC).since(8, 0, 90).rules(&[TO_BLOCKS_RULES[0], TO_BLOCKS_RULES[1], has(&[Relaxed]).needs(&[Cta, Cluster]), has(&[Cta, Cluster]).needs(&[Relaxed])]),
    form(F::MbarrierCompleteTx).name(&[key(&[CompleteTx]), opt(&[Relaxed]), SCOPED, BARRIER_OBJECT, TO_BLOCKS]).ty(&[B64]).ops(&[BARRIER_ADDRESS, src("txCount", I32), BLOCKS]).facts(ATOMIC).since(8, 0, 90).rules(&[TO_BLOCKS_RULES[0], TO_BLOCKS_RULES[1], has(&[Relaxed]).needs(&[Cta, Cluster]), has(&[Cta, Cluster]).needs(&[Relaxed])]),
    form(F::MbarrierArrive).name(&[key(&[Arrive]), opt(&[ExpectTx]).at(Place::Leading), opt(&[NoComplete]), opt(&[Release, Relaxed]), SCOPED, BARRIER_OBJECT, TO_BLOCKS]).ty(&[B64]).ops(ARRIVE).facts(ATOMIC.or(Fact::ORDERS)).since(7, 0, 80).rules(ARRIVE_RULES),
    form(F::MbarrierArriveDrop).name(&[key(&[ArriveDrop]), opt(&[ExpectTx]).at(Place::Leading), opt(&[NoComplete]), opt(&[Release, Relaxed]), SCOPED, BARRIER_OBJECT, TO_BLOCKS]).ty(&[B64]).ops(ARRIVE).facts(ATOMIC.or(Fact::ORDERS)).since(7, 0, 80).rules(ARRIVE_RULES),
    form(F::MbarrierTestWait).name(&[key(&[TestWait]), opt(&[Parity]).at(Place::Leading), opt(PHASES), opt(&[Acquire, Relaxed]), SCOPED, OWN_BARRIER]).ty(&[B64]).ops(&[WAIT_COMPLETE, BARRIER_ADDRESS, src("state", I64)]).facts(Fact::READS.or(Fact::ORDERS)).since(7, 0, 80).rules(WAIT_RULES),
    form(F::MbarrierTryWait).name(&[key(&[TryWait]), opt(&[Parity]).at(Place::Leading), opt(PHASES), opt(&[Acquire, Relaxed]), SCOPED, OWN_BARRIER]).ty(&[B64]).ops(&[WAIT_COMPLETE, BARRIER_ADDRESS, src("state", I64), src("suspendTimeHint", I32).optional()]).facts(Fact::READS.or(Fact::ORDERS)).since(7, 8, 90).rules(WAIT_RULES),
    form(F::MbarrierPendingCount).name(&[key(&[PendingCount])]).ty(&[B64]).ops(&[dst("count", I32), src("state", I64)]).since(7, 0, 80),
    form(F::StAsync).name(&[ASYNC, opt(&[Weak]), opt(&[Shared, SharedCta, SharedCluster]), BY_BARRIER, opt(&[V2, V4])]).ty(&[t![B32 B64 U32 U64 S32 S64 F32 F64 B128]]).ops(&[ASYNC_TARGET, src_vector("b", T0).lanes(Lanes::Any), addr("mbar").optional()]).facts(Fact::WRITES.or(Fact::ASYNC)).since(8, 1, 90).rules(&[on(t![B32 B64 B128]).lanes("b", Lanes::Of(&[1])), on(t![B128]).since(9, 2, 90), has(&[V2, V4]).types(t![B32 B64 U32 U64 S32 S64 F32 F64]), has(&[V2, V4]).operand("mbar", Column::Presence(Presence::Always)), has(&[V2]).lanes("b", Lanes::Of(&[1, 2])), has(&[V4]).lanes("b", Lanes::Of(&[1, 4])), has(&[V4]).types(t![B32 U32 S32 F32])]),
    form(F::StAsyncRelease).name(&[ASYNC, opt(&[Mmio]), opt(&[Release]), RELEASE_SCOPE, opt(&[Global])]).ty(&[SCALAR]).ops(&[ASYNC_TARGET, src("b", T0), addr("mbar").optional()]).facts(Fact::WRITES.or(Fact::ASYNC).or(Fact::ORDERS)).since(8, 1, 90).rules(&[has(&[Mmio]).needs(&[Release]), has(&[Release, Global]).since(8, 7, 100)]),
    form(F::StBulk).name(&[BULK, opt(&[Weak]), opt(&[SharedCta])]).ops(&[ASYNC_TARGET, src("size", OperandType::Length).values(Values::Multiple(8, 0, 1 << 24)), imm("initval", I64).values(Values::Of(&[0]))]).facts(Fact::WRITES).since(8, 6, 100).rules(&[has(&[SharedCta]).operand("a", Column::Type(OperandType::Address(Base::named(0).copied().registers())))]),
    form(F::RedAsync).name(&[ASYNC, req(&[Relaxed]), req(&[Cluster]), opt(&[SharedCluster]), BY_BARRIER, req(&[Inc, Dec, Min, Max, Add, And, Or, Xor])]).ty(&[t![U32 S32 U64 S64 B32 B64]]).ops(&[ASYNC_TARGET, src("b", T0), addr("mbar").optional()]).facts(COPY).since(8, 1, 90).rules(&[
        has(&[Inc, Dec]).types(U32), has(&[Min, Max]).types(UI32), has(&[And, Or, Xor]).types(B32_64), has(&[Add]).types(t![U32 S32 U64 S64]),
    ]),
    form(F::RedAsyncRelease).name(&[ASYNC, opt(&[Mmio]), req(&[Release, Relaxed]), RELEASE_SCOPE, opt(&[Global]), req(&[Inc, Dec, Min, Max, Add, And, Or, Xor])]).ty(&[t![U32 S32 U64 S64 B32 B64]]).ops(&[ASYNC_TARGET, src("b", T0)]).facts(COPY.or(Fact::ORDERS)).since(8, 1, 90).rules(&[has(&[Mmio]).needs(&[Release]), has(&[Release, Global]).since(8, 7, 100), has(&[Relaxed]).and(&[Min, Max]).types(UI32), has(&[Relaxed]).and(&[And, Or, Xor]).types(B32), has(&[Relaxed]).and(&[Add]).types(t![U32 S32 U64]), has(&[Inc, Dec]).types(U32), has(&[Min, Max]).types(t![U32 S32 U64 S64]), has(&[And, Or, Xor]).types(B32_64), has(&[Add]).types(t![U32 S32 U64 S64])]),
    form(F::MultimemLdReduce).name(&[key(&[LdReduce]), opt(&[Weak, Relaxed, Acquire]), SCOPE, MULTIMEM_SPACE, req(&[Min, Max, Add, And, Or, Xor]), opt(&[AccF32, AccF16]), VECTOR]).ty(&[MULTIMEM]).ops(&[dst_vector("d", T0), addr_sized("a")]).facts(Fact::READS).since(8, 1, 90).rules(&[on(t![Bf16 E4m3x2 E5m2x2]).operand("d", Column::Type(RAW_16)), on(t![Bf16x2 E4m3x4 E5m2x4]).operand("d", Column::Type(TB32)), on(t![E4m3 E5m2]).operand("d", Column::Type(RAW_8)), lacks(&[V2, V4, V8]).operand("d", Column::Class(Class::REGISTER)), lacks(&[V2, V4, V8]).types(MULTIMEM.without(t![F16 Bf16 E4m3 E5m2 E4m3x2 E5m2x2])), has(&[V2]).types(MULTIMEM.without(t![E4m3 E5m2])), 
        has(ORDERED).needs(SCOPES), has(SCOPES).needs(ORDERED), has(&[Add]).types(MULTIMEM_ADD), has(&[And, Or, Xor]).types(B32_64), has(&[Min, Max]).types(t![U32 S32 U64 S64 F16 F16x2 Bf16 Bf16x2].union(E8)),
        has(&[AccF32]).types(HALVES), has(&[AccF16]).types(E8), has(&[AccF32]).since(8, 2, 90), has(&[AccF32, AccF16]).needs(&[Add]), on(E8).gate(MULTIMEM_GATES), has(&[V2, V4, V8]).types(MULTIMEM_VECTOR), has(&[V8]).types(t![F16 Bf16 E4m3 E5m2 E4m3x2 E5m2x2]),
    ]),
    form(F::MultimemSt).name(&[key(&[St]), opt(&[Weak, Relaxed, Release]), SCOPE, MULTIMEM_SPACE, opt(&[AccF32, AccF16]), VECTOR]).ty(&[MULTIMEM]).ops(&[addr_at("a", Base::named(0).memory().sized()), src_vector("b", T0)]).facts(Fact::WRITES).since(8, 1, 90).rules(&[on(t![Bf16 E4m3x2 E5m2x2]).operand("b", Column::Type(RAW_16)), on(t![Bf16x2 E4m3x4 E5m2x4]).operand("b", Column::Type(TB32)), on(t![E4m3 E5m2]).operand("b", Column::Type(RAW_8)), lacks(&[V2, V4, V8]).operand("b", Column::Class(Class::VALUE)), lacks(&[V2, V4, V8]).types(MULTIMEM.without(t![F16 Bf16 E4m3 E5m2 E4m3x2 E5m2x2])), has(&[V2]).types(MULTIMEM.without(t![E4m3 E5m2])), has(ORDERED).needs(SCOPES), has(SCOPES).needs(ORDERED), on(E8).gate(MULTIMEM_GATES), has(&[V2, V4, V8]).types(MULTIMEM_VECTOR), has(&[V8]).types(t![F16 Bf16 E4m3 E5m2 E4m3x2 E5m2x2])]),
    form(F::MultimemRed).name(&[key(&[Red]), opt(&[Relaxed, Release]), SCOPE, MULTIMEM_SPACE, req(&[Min, Max, Add, And, Or, Xor]), opt(&[AccF32, AccF16]), VECTOR]).ty(&[MULTIMEM.without(E8)]).ops(&[addr_sized("a"), src_vector("b", T0)]).facts(ATOMIC).since(8, 1, 90).rules(&[lacks(&[V2, V4, V8]).operand("b", Column::Class(Class::VALUE)), lacks(&[V2, V4, V8]).types(MULTIMEM.without(t![F16 Bf16]).without(E8)), has(&[Min, Max]).lacks(&[V2, V4, V8]).types(INT_32_64.union(B32_64)), 
        has(ORDERED).needs(SCOPES), has(SCOPES).needs(ORDERED), has(&[Add]).types(MULTIMEM_ADD), has(&[And, Or, Xor]).types(B32_64), has(&[Min, Max]).types(t![U32 S32 U64 S64 F16 F16x2 Bf16 Bf16x2]), has(&[V2, V4, V8]).types(MULTIMEM_VECTOR.without(E8)), has(&[V8]).types(t![F16 Bf16]),
    ]),
    form(F::TensormapReplace).name(&[key(&[Replace]), req(&[Tile]), req(&[B1024]), req(&[GlobalAddress, Rank, BoxDim, GlobalDim, GlobalStride, ElementStride, Elemtype, InterleaveLayout, SwizzleMode, SwizzleAtomicity, FillMode]), opt(&[Global, SharedCta])]).ty(&[B32_64]).ops(&[addr_at("addr", Base::named(0).copied()), imm("ord", I32).range(0, 4).with(ORDINAL), src("new_val", T0)]).facts(Fact::READS.or(Fact::WRITES)).gate(Gate::only(8, 3, TargetSet::arch(90).or(BLACKWELL_DATACENTER).or(TargetSet::family(120)))).rules(&[
        has(&[GlobalAddress, GlobalStride]).types(B64), has(&[Rank, BoxDim, GlobalDim, ElementStride, Elemtype, InterleaveLayout, SwizzleMode, SwizzleAtomicity, FillMode]).types(B32),
        has(ORDINAL).operand("new_val", Column::Type(is(ScalarType::U32))), has(&[GlobalStride]).operand("new_val", Column::Type(T0)),
        has(FIELDS).operand("new_val", Column::Class(Class::IMMEDIATE)), has(FIELDS).operand("new_val", Column::Type(I32)), has(&[InterleaveLayout]).values("new_val", Values::Range(0, 2)), has(&[SwizzleMode]).values("new_val", Values::Range(0, 4)), has(&[SwizzleMode]).operand("new_val", Column::Gated(Values::Range(4, 4), Gate::only(8, 8, TargetSet::arch(103).or(TargetSet::arch(107))))), has(&[Elemtype]).operand("new_val", Column::Gated(Values::Range(13, 15), Gate::only(8, 7, BLACKWELL_DATACENTER.or(TargetSet::family(120))))), has(&[SwizzleAtomicity]).values("new_val", Values::Range(0, 3)),
        has(&[FillMode]).values("new_val", Values::Range(0, 1)), has(&[Elemtype]).values("new_val", ELEMENTS), has(&[Elemtype]).operand("new_val", Column::Class(Class::IMMEDIATE)),
        has(&[SwizzleAtomicity]).gate(Gate::only(8, 6, BLACKWELL_DATACENTER.or(TargetSet::family(120)))),
    ]),
    form(F::TensormapCpFenceproxy).name(&[key(&[CpFenceproxy]), ordered(&[Global]), ordered(&[SharedCta]), req(&[TensormapGeneric]), req(&[Release]), MUST_SCOPE, SYNC, ALIGNED]).ops(&[addr("dst"), addr_at("src", Base::named(1)), imm("size", I32).values(Values::Of(&[128]))]).facts(COPY.or(Fact::ORDERS).or(Fact::CONVERGENT)).since(8, 3, 90),
];
