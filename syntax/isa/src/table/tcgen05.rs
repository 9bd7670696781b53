//! The fifth generation of tensor cores: matrix products with accumulators in tensor memory.

use super::asynchronous::RUBIN;
use super::prelude::*;

const TARGETS: TargetSet = TargetSet::family(100).or(TargetSet::family(110));
const GATE: Gate = Gate::only(8, 6, TARGETS);
/// Only targets with suffix `a` have these features.
const ARCH: TargetSet =
    TargetSet::arch(100).or(TargetSet::arch(103)).or(TargetSet::arch(107)).or(TargetSet::arch(110));
const CTA_GROUP: Group = req(&[CtaGroup1, CtaGroup2]);
const SHAPE: Group = req(&[N16x64b, N16x128b, N16x256b, N32x32b, N16x32bx2]);
const COUNT: Group = req(&[X1, X2, X4, X8, X16, X32, X64, X128]);
const COUNT_RULES: &[Rule] = &[
    has(&[N16x128b]).lanes("r", Lanes::Named(2)),
    has(&[N16x256b]).lanes("r", Lanes::Named(4)),
    has(&[N16x128b]).excludes(&[X128]),
    has(&[N16x256b]).excludes(&[X64, X128]),
];
const COLLECT_A: Group = opt(&[CollectorAFill, CollectorAUse, CollectorALastuse, CollectorADiscard]);
const COLLECT_B: Group = opt(&[
    CollectorB0Fill,
    CollectorB0Use,
    CollectorB0Lastuse,
    CollectorB0Discard,
    CollectorB1Fill,
    CollectorB1Use,
    CollectorB1Lastuse,
    CollectorB1Discard,
    CollectorB2Fill,
    CollectorB2Use,
    CollectorB2Lastuse,
    CollectorB2Discard,
    CollectorB3Fill,
    CollectorB3Use,
    CollectorB3Lastuse,
    CollectorB3Discard,
]);
/// The collector buffer operations of the second factor, for products that do not keep this factor in tensor memory.
const COLLECTED: &[Mod] = &[CollectorBFill, CollectorBUse, CollectorBLastuse, CollectorBDiscard];
const LUT: Operand = tensor("lut-tmem").with(&[DecompressLutB]);
const MULTICASTS: &[Mod] = &[MulticastCluster, MulticastCluster16b, MulticastCluster32b];
const WARP: Fact = Fact::CONVERGENT;
const START: Fact = Fact::ASYNC.or(Fact::READS).or(Fact::WRITES);
const INT8: Rule = has(&[KindI8]).gate(Gate::only(8, 6, TargetSet::arch(100).or(TargetSet::arch(110))));
const LATER: Rule =
    has(&[KindTi16, DecompressLutB, CollectorBFill, CollectorBUse, CollectorBLastuse, CollectorBDiscard])
        .gate(RUBIN);
/// The first factor: in tensor memory, or given by a descriptor of shared memory.
const A: Operand = src("a", I64).or(Class::ADDRESS);
/// The number of columns in a tensor memory allocation.
const COLUMNS: Values = Values::PowerOfTwo(32, 512);

const fn tensor(name: &'static str) -> Operand {
    addr_at(name, Base::of(Window::Tensor))
}

/// The same, but the assembler copies the address. It accepts any 32-bit register that is not floating-point.
const fn tensor_copied(name: &'static str) -> Operand {
    addr_at(name, Base::of(Window::Tensor).copied())
}

const MMA: &[Operand] = &[
    tensor("d-tmem"),
    A,
    src("b-desc", I64),
    tensor("sp-meta-tmem").with(&[Sp]),
    LUT,
    src("idesc", I32),
    src_vector("disable-output-lane", TB32).braces(Lanes::Of(&[4])).optional(),
    pred("enable-input-d"),
    imm("scale-input-d", I32).values(Values::Low(&Values::Range(0, 15))).optional(),
];
const SCALED: &[Operand] = &[
    tensor("d-tmem"),
    A,
    src("b-desc", I64),
    tensor("sp-meta-tmem").with(&[Sp]),
    LUT,
    src("idesc", I32),
    tensor("scale-A-tmem"),
    tensor("scale-B-tmem"),
    pred("enable-input-d"),
];
const WEIGHTS: &[Operand] = &[
    tensor("d-tmem"),
    A,
    src("b-desc", I64),
    tensor("sp-meta-tmem").with(&[Sp]),
    src("idesc", I32),
    pred("enable-input-d"),
    src("zero-column-mask-desc", I64).optional(),
];

const EXCLUSIVE: &[Rule] = &[has(&[Exclusive]).since(9, 4, 100)];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Tcgen05Alloc).name(&[key(&[Alloc]), CTA_GROUP, opt(&[Exclusive]), SYNC, ALIGNED, opt(&[SharedCta])]).ty(&[B32]).ops(&[addr_at("dst", Base::named(0).memory().copied()), src("nCols", I32).values(COLUMNS)]).facts(WARP.or(Fact::WRITES).or(Fact::EFFECT)).gate(GATE).rules(EXCLUSIVE),
    form(F::Tcgen05Dealloc).name(&[key(&[Dealloc]), CTA_GROUP, opt(&[Exclusive]), SYNC, ALIGNED]).ty(&[B32]).ops(&[src("taddr", I32), src("nCols", I32).values(Values::Multiples { of: 32, zero: true })]).facts(WARP.or(Fact::EFFECT)).gate(GATE).rules(EXCLUSIVE),
    form(F::Tcgen05RelinquishAllocPermit).name(&[key(&[RelinquishAllocPermit]), CTA_GROUP, SYNC, ALIGNED]).facts(WARP.or(Fact::EFFECT)).gate(GATE),
    form(F::Tcgen05Ld).name(&[key(&[Ld]), SYNC, opt(&[Aligned]), SHAPE, COUNT, opt(&[Pack16b])]).ty(&[B32]).ops(&[dst_vector("r", TB32).braces(Lanes::Named(1)), tensor_copied("taddr"), imm("immHalfSplitoff", I32).with(&[N16x32bx2])]).facts(WARP.or(Fact::READS).or(Fact::ASYNC)).gate(GATE).rules(COUNT_RULES),
    form(F::Tcgen05LdRed).name(&[key(&[Ld]), key(&[Red]), SYNC, opt(&[Aligned]), req(&[N32x32b, N16x32bx2]), req(&[X2, X4, X8, X16, X32, X64, X128]), req(&[Min, Max]), opt(&[Abs]), opt(&[Nan])]).ty(&[t![F32 U32 S32]]).ops(&[dst_vector("r", T0).braces(Lanes::Named(1)), dst_vector("redval", OperandType::Word).lanes(Lanes::OrBare(&[1])), tensor_copied("taddr"), imm("immHalfSplitoff", I32).with(&[N16x32bx2])]).facts(WARP.or(Fact::READS).or(Fact::ASYNC)).gate(Gate::only(8, 8, TargetSet::family(103).or(TargetSet::family(110)))).rules(&[has(&[Abs, Nan]).types(F32)]),
    form(F::Tcgen05St).name(&[key(&[St]), SYNC, opt(&[Aligned]), SHAPE, COUNT, opt(&[Unpack16b])]).ty(&[B32]).ops(&[tensor_copied("taddr"), imm("immHalfSplitoff", I32).with(&[N16x32bx2]), src_vector("r", TB32).braces(Lanes::Named(1))]).facts(WARP.or(Fact::WRITES).or(Fact::ASYNC)).gate(GATE).rules(COUNT_RULES),
    form(F::Tcgen05Wait).name(&[key(&[WaitLd, WaitSt]), SYNC, ALIGNED]).facts(WARP.or(Fact::ORDERS)).gate(GATE),
    form(F::Tcgen05Cp).name(&[key(&[Cp]), CTA_GROUP, req(&[N128x256b, N4x256b, N128x128b, N64x128b, N32x128b]), opt(&[Warpx20213, Warpx20123, Warpx4])]).ty(&[t![B8x16], t![B6x16P32 B4x16P64]]).optional_types(2).ops(&[tensor_copied("taddr"), src("s-desc", I64)]).facts(START).gate(GATE).rules(&[
        has(&[N64x128b]).needs(&[Warpx20213, Warpx20123]), has(&[N32x128b]).needs(&[Warpx4]), has(&[N128x256b, N4x256b, N128x128b]).excludes(&[Warpx20213, Warpx20123, Warpx4]), on(t![B8x16]).types_at(1, t![B6x16P32 B4x16P64]),
    ]),
    form(F::Tcgen05Shift).name(&[key(&[Shift]), CTA_GROUP, req(&[Down])]).ops(&[tensor_copied("taddr")]).facts(START).gate(Gate::only(8, 6, ARCH)),
    form(F::Tcgen05Mma).name(&[key(&[Mma]), opt(&[Sp]), CTA_GROUP, req(&[KindF16, KindTf32, KindF8f6f4, KindI8, KindTi16]), opt(&[Ashift]), opt(&[DecompressLutB]), COLLECT_A, opt(COLLECTED)]).ops(MMA).facts(START).gate(GATE).rules(&[INT8, LATER, has(&[DecompressLutB]).needs(&[KindF8f6f4]), has(&[DecompressLutB]).excludes(&[Sp, Ashift]), has(&[CtaGroup2]).lanes("disable-output-lane", Lanes::Of(&[8])), has(&[KindF8f6f4]).operand("scale-input-d", Column::Presence(Presence::Never)), has(&[KindI8, KindTi16]).values("scale-input-d", Values::Any), has(&[KindI8, KindTi16]).operand("scale-input-d", Column::Class(Class::IMMEDIATE.or(Class::PREDICATE))), has(&[KindI8, KindTi16]).operand("scale-input-d", Column::Type(is(ScalarType::Pred))), has(&[KindI8, KindTi16]).operand("scale-input-d", Column::Beside("disable-output-lane", Class::IMMEDIATE)), has(&[KindI8, KindTi16]).and(&[Sp]).operand("scale-input-d", Column::Beside("disable-output-lane", Class::NONE)), has(&[KindF16, KindTf32]).operand("scale-input-d", Column::Gate(Gate::only(8, 6, TargetSet::family(100)))), has(&[Ashift]).operand("a", Column::Class(Class::ADDRESS)), has(&[Ashift]).excludes(&[CollectorAFill, CollectorAUse])]),
    form(F::Tcgen05MmaBlockScale).name(&[key(&[Mma]), opt(&[Sp]), CTA_GROUP, req(&[KindMxf8f6f4, KindMxf4, KindMxf4nvf4]), req(&[BlockScale]), opt(&[ScaleVec1X, ScaleVec2X, ScaleVec4X, Block16, Block32]), opt(&[DecompressLutB]), COLLECT_A, opt(COLLECTED)]).ops(SCALED).facts(START).gate(GATE).rules(&[
        LATER, has(&[DecompressLutB]).needs(&[KindMxf8f6f4]), has(&[DecompressLutB]).excludes(&[Sp]),
        has(&[KindMxf8f6f4]).excludes(&[ScaleVec2X, ScaleVec4X, Block16]), has(&[KindMxf4]).excludes(&[ScaleVec1X, ScaleVec4X, Block16]), has(&[KindMxf4nvf4]).needs(&[ScaleVec2X, ScaleVec4X, Block16, Block32]),
        has(&[ScaleVec1X, ScaleVec2X, ScaleVec4X]).gate(Gate::only(8, 6, ARCH)), has(&[KindMxf4nvf4]).gate(Gate::only(8, 7, TARGETS)),
        has(&[Sp]).lacks(&[KindMxf8f6f4]).gate(Gate::only(8, 6, ARCH)),
        lacks(&[ScaleVec1X, ScaleVec2X, ScaleVec4X]).gate(Gate::only(8, 8, TARGETS)),
    ]),
    form(F::Tcgen05MmaWs).name(&[key(&[Mma]), key(&[Ws]), opt(&[Sp]), req(&[CtaGroup1]), req(&[KindF16, KindTf32, KindF8f6f4, KindI8, KindTi16]), COLLECT_B]).ops(WEIGHTS).facts(START).gate(GATE).rules(&[INT8, has(&[KindTi16]).gate(RUBIN)]),
    form(F::Tcgen05Commit).name(&[key(&[Commit]), CTA_GROUP, req(&[MbarrierArriveOne]), opt(&[SyncRestrictReadByA]), opt(&[SharedCluster]), opt(MULTICASTS)]).ty(&[B64]).ops(&[addr_at("mbar", Base::named(0).memory().copied()), reg("ctaMask", I16).with(MULTICASTS)]).facts(Fact::ASYNC.or(Fact::EFFECT)).gate(GATE).rules(&[has(&[SyncRestrictReadByA, MulticastCluster32b]).gate(RUBIN), has(&[MulticastCluster16b]).since(9, 4, 100), has(&[MulticastCluster32b]).operand("ctaMask", Column::Type(I32))]),
    form(F::Tcgen05Fence).name(&[key(&[FenceBeforeThreadSync, FenceAfterThreadSync])]).facts(Fact::ORDERS).gate(GATE),
];
