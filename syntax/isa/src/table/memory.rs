//! Data movement and conversion.

use super::prelude::*;

const L1_EVICTIONS: &[Mod] = &[L1EvictNormal, L1EvictUnchanged, L1EvictFirst, L1EvictLast, L1NoAllocate];
const L2_EVICTIONS: &[Mod] = &[L2EvictNormal, L2EvictFirst, L2EvictLast];
const L1_EVICT: Group = opt(L1_EVICTIONS);
const L2_EVICT: Group = opt(L2_EVICTIONS);
const PREFETCH_SIZE: Group = opt(&[L264B, L2128B, L2256B]);
const LD_SPACE: Group =
    opt(&[Const, Global, Local, Param, ParamEntry, ParamFunc, Shared, SharedCta, SharedCluster]);
const ST_SPACE: Group = opt(&[Global, Local, Param, ParamFunc, Shared, SharedCta, SharedCluster]);
const STRONG: &[Mod] = &[Relaxed, Acquire, Release];
const LD: &[Group] = &[
    opt(&[Weak, Relaxed, Acquire, Volatile]),
    opt(&[Mmio]),
    SCOPE,
    LD_SPACE,
    opt(&[Ca, Cg, Cs, Lu, Cv]),
    opt(&[Nc]),
    opt(&[ProxyReadonly]),
    L1_EVICT,
    L2_EVICT,
    CACHE_HINT,
    PREFETCH_SIZE,
    VECTOR,
];
const ST: &[Group] = &[
    opt(&[Weak, Relaxed, Release, Volatile]),
    opt(&[Mmio]),
    SCOPE,
    ST_SPACE,
    opt(&[Wb, Cg, Cs, Wt]),
    L1_EVICT,
    L2_EVICT,
    CACHE_HINT,
    VECTOR,
];
const ANY_MEMORY: TypeSet = SCALAR.union(t![B128]);
const WIDE: TypeSet = t![B64 U64 S64 F64];
/// Types of which eight elements are 256 bits; and shorter types.
const EIGHT: TypeSet = t![B32 U32 S32 F32];
const SHORT: TypeSet = t![B8 U8 S8 B16 U16 S16];
const WIDE_VECTOR: Gate = Gate::since(8, 8, 100);
const NOT_GLOBAL: &[Mod] = &[Const, Local, Param, ParamEntry, ParamFunc, Shared, SharedCta, SharedCluster];

/// The gates and combinations that loads and stores share.
macro_rules! access_rules {
    ($($more:expr),* $(,)?) => { &[
        has(STRONG).needs(SCOPES), has(SCOPES).needs(STRONG), has(&[Mmio]).needs(STRONG), has(&[Mmio]).lacks(&[Relaxed]).since(9, 3, 70), has(&[Mmio]).needs(&[Sys]),
        has(STRONG).excludes(&[Const, Local, Param, ParamEntry, ParamFunc]),
        has(&[Volatile]).and(&[Local]).since(9, 1, 10), has(&[Volatile]).excludes(&[Ca, Cg, Cs, Lu, Cv, Wb, Wt, Const, Param, ParamEntry, ParamFunc, L2CacheHint, Nc]),
        has(STRONG).excludes(&[Ca, Cg, Cs, Lu, Cv, Wb, Wt]),
        has(L2_EVICTIONS).excludes(NOT_GLOBAL), has(L2_EVICTIONS).needs(&[V4, V8]), has(L2_EVICTIONS).lacks(&[V8]).types(WIDE), has(L2_EVICTIONS).and(&[V8]).types(EIGHT),
        has(L1_EVICTIONS).excludes(NOT_GLOBAL),
        has(L1_EVICTIONS).excludes(&[Volatile, Mmio, Ca, Cg, Cs, Lu, Cv, Wb, Wt]),
        has(&[Mmio]).excludes(&[V2, V4, V8, Shared, SharedCta, SharedCluster]),
        has(&[L2CacheHint]).excludes(NOT_GLOBAL),
        has(&[V8]).types(EIGHT.union(SHORT)), has(&[V8]).on(EIGHT).excludes(NOT_GLOBAL),
        has(&[V2, V4, V8]).types(SCALAR),
        has(&[V8]).on(EIGHT).gate(WIDE_VECTOR), has(&[V4]).on(WIDE).gate(WIDE_VECTOR), has(&[V4]).on(WIDE).excludes(NOT_GLOBAL),
        has(&[Weak]).since(6, 0, 70), has(STRONG).since(6, 0, 70), has(&[Mmio]).since(8, 2, 70), has(&[Cluster]).since(7, 8, 90),
        has(&[SharedCta]).since(7, 8, 10), has(&[SharedCluster]).since(7, 8, 90), has(&[ParamEntry, ParamFunc]).since(8, 3, 10),
        has(L1_EVICTIONS).since(7, 4, 70),
        has(L2_EVICTIONS).gate(WIDE_VECTOR), has(&[L2CacheHint]).since(7, 4, 80),
        has(&[Ca, Cg, Cs, Lu, Cv, Wb, Wt]).since(2, 0, 20), on(t![B128]).since(8, 3, 70),
        $($more),*
    ] };
}

const LD_RULES: &[Rule] = access_rules!(
    has(&[Nc]).needs(&[Global]),
    has(&[Nc]).excludes(&[Weak, Relaxed, Acquire, Volatile, Mmio]),
    has(&[Nc]).excludes(&[Lu, Cv]),
    has(&[Nc]).since(3, 1, 32),
    has(&[L264B, L2128B, L2256B]).excludes(NOT_GLOBAL),
    has(&[L264B, L2128B, L2256B]).excludes(&[Mmio]),
    has(&[L264B, L2128B]).since(7, 4, 75),
    has(&[L2256B]).since(7, 4, 80),
    has(&[ProxyReadonly]).since(9, 4, 90),
);
const ST_RULES: &[Rule] = access_rules!();

const LINE_ADDRESS: Operand = addr_at("a", Base::named(0).exact());
const NAMED: Base = Base::named(0).memory();
const SHARED: Base = Base::of(Window::In(Space::Shared)).memory();
/// The source of `mov`: a value, or the name of a variable or of a special register.
const SOURCE: Operand = src_vector("a", T0)
    .or(Class::SPECIAL)
    .or(Class::SYMBOL)
    .or(Class::PREDICATE)
    .or(Class::REGISTER)
    .lanes(Lanes::Any);
const F32_ONLY: OperandType = is(ScalarType::F32);
/// The size of a line of the second-level cache, in bytes.
const LINE: Values = Values::Of(&[128]);

const FLOATS: TypeSet = t![F16 Bf16 F32 F64];
const INTS: TypeSet = t![U8 U16 U32 U64 S8 S16 S32 S64];
const ROUND_INT: &[Mod] = &[Rni, Rzi, Rmi, Rpi];
const ROUND_FLOAT: &[Mod] = &[Rn, Rz, Rm, Rp];
const CVT_ROUND: Group = opt(&[Rni, Rzi, Rmi, Rpi, Rn, Rz, Rm, Rp]);
const BF16: TypeSet = t![Bf16];
const SMALL: TypeSet = t![F16 Bf16];
const CVT: &[Rule] = &[
    on(FLOATS).operand("a", Column::Class(Class::VALUE)),
    // The assembler accepts `.bf16` operands in braces, although this has no use.
    on_second(BF16).operand("a", Column::Class(Class::VALUE.or(Class::VECTOR))),
    on_second(BF16).lanes("a", Lanes::OrBare(&[1, 2, 4])),
    on(BF16).operand("d", Column::Class(Class::REGISTER.or(Class::VECTOR))),
    on(BF16).lanes("d", Lanes::OrBare(&[1, 2, 4])),
    // Conversions that round, and how they round.
    on(INTS).second(FLOATS).needs(ROUND_INT),
    on(INTS).second(INTS).excludes(&[Rni, Rzi, Rmi, Rpi, Rn, Rz, Rm, Rp, Ftz]),
    on(FLOATS).second(INTS).needs(ROUND_FLOAT),
    on(t![F16 Bf16 F32]).second(F64).needs(ROUND_FLOAT),
    on(SMALL).second(F32).needs(ROUND_FLOAT),
    on(F64).second(t![F16 F32]).excludes(&[Rni, Rzi, Rmi, Rpi, Rn, Rz, Rm, Rp]),
    on(F32).second(t![F16]).excludes(&[Rni, Rzi, Rmi, Rpi, Rn, Rz, Rm, Rp]),
    on(t![F32 F64 F16]).second(BF16).excludes(ROUND_INT),
    on(BF16).second(t![F16]).excludes(ROUND_INT),
    on(t![F16]).second(t![F16]).excludes(ROUND_FLOAT),
    on(BF16).second(BF16).excludes(ROUND_FLOAT),
    on(F32).second(F32).excludes(ROUND_FLOAT),
    on(F64).second(F64).excludes(ROUND_FLOAT),
    // The requirements of the flags.
    has(&[Ftz]).second(INTS.union(t![F16 Bf16 F64])).types(F32),
    // Conversions whose result type holds every value do not saturate.
    has(&[Sat]).on(t![U8]).second(t![U8]).excludes(&[Sat]),
    has(&[Sat]).on(t![S8]).second(t![S8]).excludes(&[Sat]),
    has(&[Sat]).on(t![U16]).second(t![U8 U16]).excludes(&[Sat]),
    has(&[Sat]).on(t![S16]).second(t![U8 S8 S16]).excludes(&[Sat]),
    has(&[Sat]).on(t![U32]).second(t![U8 U16 U32]).excludes(&[Sat]),
    has(&[Sat]).on(t![S32]).second(t![U8 S8 U16 S16 S32]).excludes(&[Sat]),
    has(&[Sat]).on(t![U64]).second(t![U8 U16 U32 U64]).excludes(&[Sat]),
    has(&[Sat]).on(t![S64]).second(t![U8 S8 U16 S16 U32 S32 S64]).excludes(&[Sat]),
    has(&[Sat]).on(BF16).excludes(&[Sat]),
    has(&[Sat]).second(BF16).excludes(&[Sat]),
    has(&[Relu, Satfinite]).types(SMALL),
    has(&[Relu, Satfinite]).types_at(1, F32),
    has(&[Relu, Satfinite]).needs(&[Rn, Rz]),
    has(&[Relu, Satfinite]).excludes(&[Ftz, Sat]),
    // Gates.
    has(&[Relu]).since(7, 0, 80),
    has(&[Satfinite]).on(t![F16]).since(8, 1, 70),
    has(&[Satfinite]).on(BF16).since(8, 1, 80),
    on(BF16).second(F32).since(7, 0, 80),
    on(F32).second(BF16).since(7, 1, 80),
    has(&[Ftz]).on(F32).second(BF16).since(7, 8, 90),
    on(BF16).second(INTS.union(t![F16 Bf16 F64])).since(7, 8, 90),
    on(INTS.union(t![F16 F64])).second(BF16).since(7, 8, 90),
];
const FP8X2: TypeSet = t![E4m3x2 E5m2x2];
const FP6X2: TypeSet = t![E2m3x2 E3m2x2];
const FP4X2: TypeSet = t![E2m1x2];
const FIXED_X2: TypeSet = t![S2f6x2];
const UFLOAT_X2: TypeSet = t![Ue5m3x2];
const NARROW_X2: TypeSet = FP8X2.union(FP6X2).union(FP4X2).union(FIXED_X2).union(UFLOAT_X2);
const NARROW_X4: TypeSet = t![E4m3x4 E5m2x4 E2m3x4 E3m2x4 E2m1x4];
/// Conversions to the formats of block-scaled matrices, in the families of sm_100, sm_110 and sm_120.
const BLOCK_FORMATS: Gate = Gate::only(8, 6, BLOCK_TARGETS);
const BLOCK_TARGETS: TargetSet = TargetSet::family(100).or(TargetSet::family(110)).or(TargetSet::family(120));
/// Conversions to and from eight-bit floating-point numbers. sm_89 got them later than sm_90.
const FP8: Gate = Gate::since(7, 8, 89).late(8, 1, TargetSet::since(89).without(TargetSet::since(90)));
/// Later conversions between narrow formats and pairs of halves.
const BETWEEN_PAIRS: Gate = Gate::only(9, 1, BLOCK_TARGETS);
const TO_BF16: Gate = Gate::only(9, 2, BLOCK_TARGETS);
/// The signed fixed-point format with two bits before and six bits after the binary point.
const FIXED: Gate = Gate::only(
    9,
    1,
    TargetSet::arch(100)
        .or(TargetSet::arch(103))
        .or(TargetSet::arch(107))
        .or(TargetSet::arch(110))
        .or(TargetSet::arch(120))
        .or(TargetSet::arch(121)),
);
/// Features that sm_107 added to the family.
const FROM_107: Gate = Gate::only(9, 4, TargetSet::family(107));
const STOCHASTIC: Gate = Gate::only(8, 7, TargetSet::arch(100).or(TargetSet::arch(103)));

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Mov).ty(&[PRED.union(BITS).union(INT).union(t![F32 F64 B128])]).ops(&[dst_vector("d", T0).or(Class::PREDICATE).lanes(Lanes::Any), SOURCE]).rules(&[on(t![B128]).since(8, 3, 70)]),
    form(F::Prmt).name(&[opt(&[F4e, B4e, Rc8, Ecl, Ecr, Rc16])]).ty(&[B32]).ops(DABC).since(2, 0, 20),
    form(F::Ld).name(LD).ty(&[ANY_MEMORY]).ops(&[dst_vector("d", T0), addr_at("a", Base::named(0).memory().sized()), POLICY]).facts(Fact::READS).rules(LD_RULES),
    form(F::Ldu).name(&[opt(&[Global]), opt(&[V2, V4])]).ty(&[ANY_MEMORY]).ops(&[dst_vector("d", T0), addr_at("a", Base::named(0).memory().sized())]).facts(Fact::READS).since(2, 0, 20).rules(&[has(&[V2, V4]).types(SCALAR), has(&[V4]).types(t![B8 B16 B32 U8 U16 U32 S8 S16 S32 F32]), on(t![B128]).since(8, 3, 70)]),
    form(F::St).name(ST).ty(&[ANY_MEMORY]).ops(&[addr_at("a", Base::named(0).memory().sized()), src_vector("b", T0), POLICY]).facts(Fact::WRITES).rules(ST_RULES),
    form(F::Cvta).name(&[opt(&[To]).at(Place::Leading), req(&[Const, Global, Local, Param, ParamEntry, Shared, SharedCta, SharedCluster])]).ty(&[t![U32 U64]]).ops(&[dst("d", T0), src("a", OperandType::AddressOf(0, NAMED)).or(Class::SYMBOL)]).since(2, 0, 20).rules(&[has(&[To]).operand("a", Column::Class(Class::VALUE)), has(&[Global]).operand("a", Column::Type(OperandType::AddressOf(0, Base::named(0)))),
        has(&[Const]).since(3, 1, 20), has(&[Param]).since(7, 7, 70), has(&[ParamEntry]).since(8, 3, 70), has(&[SharedCta]).since(7, 8, 10), has(&[SharedCluster]).since(7, 8, 90),
    ]),
    form(F::Isspacep).name(&[req(&[Const, Global, Local, Param, ParamEntry, Shared, SharedCta, SharedCluster])]).ops(&[dst_pred("p"), src("a", OperandType::Pointer)]).since(2, 0, 20).rules(&[
        has(&[Const]).since(3, 1, 20), has(&[Param]).since(7, 7, 70), has(&[ParamEntry]).since(8, 3, 70), has(&[SharedCta]).since(7, 8, 10), has(&[SharedCluster]).since(7, 8, 90),
    ]),
    form(F::Cvt).name(&[CVT_ROUND, FTZ, SAT, opt(&[Relu]), opt(&[Satfinite])]).ty(&[INTS.union(FLOATS), INTS.union(FLOATS)]).ops(&[dst("d", T0), src("a", T1).or(Class::SPECIAL)]).rules(CVT),
    form(F::Prefetch).name(&[opt(&[Global, Local, Const, Param]), req(&[L1, L2, L2EvictLast, L2EvictNormal, Tensormap, L132B]), opt(&[ValidAddr])]).ops(&[LINE_ADDRESS]).since(2, 0, 20).facts(Fact::EFFECT).rules(&[
        has(&[L2EvictLast, L2EvictNormal]).excludes(&[Local]), has(&[Const, Param]).needs(&[Tensormap]), has(&[Tensormap]).operand("a", Column::Type(OperandType::Address(Base::named(0).memory().copied()))), has(&[Tensormap]).excludes(&[Global, Local]),
        has(&[L2EvictLast, L2EvictNormal]).since(7, 4, 80), has(&[Tensormap]).since(8, 0, 90),
        has(&[L132B]).needs(&[ValidAddr]), has(&[ValidAddr]).needs(&[L132B]), has(&[L132B]).excludes(&[Local, Const, Param]), has(&[L132B]).since(9, 4, 90),
    ]),
    form(F::Shfl).name(&[req(&[Up, Down, Bfly, Idx])]).ty(&[B32]).ops(&[dst_pair("d", T0), src("a", T0), src("b", T0), src("c", T0)]).facts(Fact::CONVERGENT).gate(Gate::since(3, 0, 30).until(6, 4, 70)),
    form(F::ShflSync).name(&[SYNC, req(&[Up, Down, Bfly, Idx])]).ty(&[B32]).ops(&[dst_pair("d", T0), src("a", T0), src("b", T0), src("c", T0), src("membermask", I32)]).facts(Fact::CONVERGENT).since(6, 0, 30),
    form(F::CvtPair).name(&[req(&[Rn, Rz, Rs]), opt(&[Relu]), opt(&[Satfinite])]).ty(&[t![F16x2 Bf16x2], F32]).ops(&[dst("d", T0), src("a", T1), src("b", T1), reg("rbits", I32).with(&[Rs])]).since(7, 0, 80).rules(&[
        has(&[Satfinite]).since(8, 1, 80), has(&[Rs]).gate(STOCHASTIC),
    ]),
    form(F::CvtTf32).name(&[req(&[Rna, Rn, Rz]), opt(&[Relu]), opt(&[Satfinite])]).ty(&[t![Tf32], F32]).ops(&[dst("d", is(ScalarType::Bf16x2)), src("a", T1)]).since(7, 0, 80).rules(&[
        has(&[Rna]).excludes(&[Relu]), has(&[Rn, Rz]).since(7, 8, 90), has(&[Satfinite]).since(8, 1, 80), has(&[Satfinite]).lacks(&[Rna]).since(8, 6, 100),
    ]),
    form(F::CvtToNarrow).name(&[req(&[Rn, Rz]), req(&[Satfinite]), opt(&[Relu]), opt(&[Pzo]), opt(&[ScaledN2Ue8m0])]).ty(&[NARROW_X2, t![F32 F16x2 Bf16x2]]).ops(&[dst("d", T0), src("a", T1), src("b", T1), reg("scale-factor", I16).with(&[ScaledN2Ue8m0])]).gate(FP8).rules(&[on_second(t![F16x2 Bf16x2]).operand("b", Column::Presence(Presence::Never)),
        on(FP6X2.union(FP4X2)).gate(BLOCK_FORMATS), on(FP6X2).second(t![F16x2]).gate(BETWEEN_PAIRS), on_second(t![Bf16x2]).gate(BETWEEN_PAIRS),
        on(FIXED_X2).types_at(1, t![F32 Bf16x2]), on(FIXED_X2).gate(FIXED), on(UFLOAT_X2).gate(FROM_107), has(&[Rz, Pzo]).gate(FROM_107), has(&[Rz, Pzo]).types(NARROW_X2.without(FIXED_X2)), has(&[ScaledN2Ue8m0]).types(FIXED_X2),
    ]),
    form(F::CvtToNarrow4).name(&[req(&[Rs]), opt(&[Relu]), req(&[Satfinite])]).ty(&[NARROW_X4, F32]).ops(&[dst("d", T0), src_vector("a", T1).braces(Lanes::Of(&[4])), reg("rbits", is(ScalarType::Bf16x2))]).gate(STOCHASTIC),
    form(F::CvtFromNarrow).name(&[req(&[Rn]), opt(&[Relu]), opt(&[Satfinite]), opt(&[ScaledN2Ue8m0])]).ty(&[t![F16x2 Bf16x2], NARROW_X2]).ops(&[dst("d", T0), src("a", T1), reg("scale-factor", I16).with(&[ScaledN2Ue8m0])]).gate(FP8).rules(&[on_second(FP6X2.union(FP4X2)).gate(BLOCK_FORMATS),
        has(&[Satfinite, ScaledN2Ue8m0]).types(t![Bf16x2]), on_second(FIXED_X2).types(t![Bf16x2]), on_second(FIXED_X2).gate(FIXED), on_second(UFLOAT_X2).gate(FROM_107), on(t![Bf16x2]).second(FP8X2.union(FP6X2).union(FP4X2)).gate(TO_BF16),
    ]),
    form(F::CvtToScale).name(&[req(&[Rz, Rp]), opt(&[Satfinite])]).ty(&[t![Ue8m0x2], t![F32 Bf16x2]]).ops(&[dst("d", T0), src("a", T1), src("b", T1)]).gate(BLOCK_FORMATS).rules(&[on_second(t![Bf16x2]).operand("b", Column::Presence(Presence::Never)), on_second(t![Bf16x2]).operand("a", Column::Class(METADATA.class)), on_second(t![Bf16x2]).operand("a", Column::Type(METADATA.ty)), on_second(t![Bf16x2]).operand("a", Column::Lanes(METADATA.lanes)), on_second(t![Bf16x2]).values("a", METADATA.values)]),
    form(F::CvtFromScale).name(&[req(&[Rn])]).ty(&[t![Bf16x2], t![Ue8m0x2]]).ops(&[dst("d", OperandType::Word).also(Class::PREDICATE.or(Class::VECTOR)).lanes(Lanes::Any), src("a", T1)]).gate(BLOCK_FORMATS),
    form(F::CvtPack).name(&[key(&[Pack]), req(&[Sat])]).ty(&[t![U16 S16], t![S32]]).ops(&[dst("d", is(ScalarType::U32)), src("a", T1), src("b", T1)]).since(6, 5, 72),
    form(F::CvtPackInto).name(&[key(&[Pack]), req(&[Sat])]).ty(&[t![U8 S8 U4 S4 U2 S2], t![S32], B32]).ops(&[dst("d", is(ScalarType::U32)), src("a", T1), src("b", T1), src("c", TB32)]).since(6, 5, 72).rules(&[on(t![U4 S4 U2 S2]).since(6, 5, 75)]),
    form(F::Prefetchu).name(&[req(&[L1])]).ops(&[addr_at("a", Base::named(0).variables(Space::Global).exact())]).since(2, 0, 20).facts(Fact::EFFECT),
    form(F::Applypriority).name(&[opt(&[Global]), req(&[L2EvictNormal])]).ops(&[LINE_ADDRESS, imm("size", I32).values(LINE)]).since(7, 4, 80).facts(Fact::EFFECT),
    form(F::Discard).name(&[opt(&[Global]), req(&[L2])]).ops(&[addr_sized("a"), imm("size", I32).values(LINE)]).since(7, 4, 80).facts(Fact::WRITES),
    form(F::CreatepolicyRange).name(&[key(&[Range]), opt(&[Fabric]), opt(&[Global]), req(&[L2EvictLast, L2EvictNormal, L2EvictFirst, L2EvictUnchanged]), opt(&[L2EvictFirst, L2EvictUnchanged])]).ty(&[B64]).ops(&[dst("policy", I64), addr_at("a", Base::named(0).memory().copied()), src("primary-size", I32).values(Values::Low(&Values::UpTo("total-size"))), src("total-size", I32)]).since(7, 4, 80).rules(&[
        has(&[Fabric]).since(9, 4, 100), has(&[Fabric]).operand("a", Column::Class(Class::TEXTURE)), has(&[Fabric]).operand("a", Column::Type(I64)), has(&[Fabric]).operand("a", Column::Head(ENDPOINT)), has(&[Fabric]).lanes("a", Lanes::Of(&[1])),
    ]),
    form(F::CreatepolicyFractional).name(&[key(&[Fractional]), req(&[L2EvictLast, L2EvictNormal, L2EvictFirst, L2EvictUnchanged]), opt(&[L2EvictFirst, L2EvictUnchanged])]).ty(&[B64]).ops(&[dst("policy", I64), src("fraction", F32_ONLY).values(Values::Fraction).optional()]).since(7, 4, 80),
    form(F::CreatepolicyCvt).name(&[key(&[Cvt]), req(&[L2])]).ty(&[B64]).ops(&[dst("policy", I64), src("access-property", I64)]).since(7, 4, 80),
    form(F::Mapa).name(&[opt(&[SharedCluster])]).ty(&[INT_32_64]).ops(&[dst("d", T0), src("a", OperandType::AddressOf(0, SHARED)).or(Class::SYMBOL), src("b", I32)]).since(7, 8, 90),
    form(F::Getctarank).name(&[opt(&[SharedCluster])]).ty(&[INT_32_64]).ops(&[dst("d", I32), src("a", OperandType::AddressOf(0, SHARED)).or(Class::SYMBOL)]).since(7, 8, 90),
    form(F::MovVector).name(&[req(&[V2, V4])]).ty(&[BITS.union(INT).union(t![F32 F64])]).ops(&[dst_vector("d", T0).class(Class::VECTOR), SOURCE]).rules(&[has(&[V2]).lanes("a", Lanes::Of(&[1, 2])), has(&[V4]).lanes("a", Lanes::Of(&[1, 4])), has(&[V4]).types(t![B16 B32 U16 U32 S16 S32 F32])]),
    // This conversion is not in the manual. The assembler accepts it for every target.
    form(F::CvtToScale4).name(&[MUST_ROUND, opt(&[Relu]), opt(&[Satfinite])]).ty(&[t![Ue8m0x4], F32]).ops(&[dst("d", TB32), src_vector("a", T1).lanes(Lanes::Of(&[1, 4])), src("b", FREE)]).rules(&[has(&[Satfinite]).since(8, 1, 70), has(&[Relu]).excludes(&[Rm, Rp]), has(&[Relu]).since(7, 0, 80)]),
];
