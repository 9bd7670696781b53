//! Matrices in the registers of a warp: loads, stores and products.

use super::prelude::*;

const WARP: Fact = Fact::CONVERGENT;
const MATRIX: Operand = addr_at("p", Base::named(0).moved());
const COUNT: Group = req(&[X1, X2, X4]);
const OWN_SHARED: Group = opt(&[Shared, SharedCta]);
const BLOCK_TARGETS: TargetSet = TargetSet::family(100).or(TargetSet::family(110)).or(TargetSet::family(120));
const BLOCK: Gate = Gate::only(8, 6, BLOCK_TARGETS);
const ROW: Group = ordered(&[Row]);
const COL: Group = ordered(&[Col]);
const LAYOUT: Group = ordered(&[Row, Col]);
const RESULT: Operand = Operand { role: Role::Destination, ..fragment("d", Matrix::D) };
const ABC: &[Operand] =
    &[RESULT, fragment("a", Matrix::A), fragment("b", Matrix::B), fragment("c", Matrix::C)];
/// Operands whose sizes the assembler does not compare with the shape.
const UNCHECKED_ABC: &[Operand] = &[
    RESULT.lanes(Lanes::Of(&[2, 4, 8])),
    fragment("a", Matrix::A).lanes(Lanes::Of(&[1, 2, 4, 8])),
    fragment("b", Matrix::B).lanes(Lanes::Of(&[1, 2, 4, 8])),
    fragment("c", Matrix::C).lanes(Lanes::Of(&[2, 4, 8])),
];
const INT8: TypeSet = t![U8 S8];
const INT4: TypeSet = t![U4 S4];
const S32: TypeSet = t![S32];
const FP8: TypeSet = t![E4m3 E5m2];

const NARROW: TypeSet = t![E4m3 E5m2 E2m3 E3m2 E2m1];
/// Products of narrow floating-point numbers with scale factors, which the sm_120 family has.
const CONSUMER: Gate = Gate::only(8, 7, TargetSet::family(120));
/// The kinds of byte products without scale factors.
const F8_KINDS: &[Mod] = &[KindF8f6f4, KindMxf8f6f4, KindMxf4, KindMxf4nvf4];
/// The second factor has elements of less than a byte.
const NARROW_B: Rule =
    Rule { when: When { third: NARROW.without(FP8), ..When::ALWAYS }, then: Then::Gate(CONSUMER) };
const MX: &[Mod] = &[KindMxf8f6f4, KindMxf4, KindMxf4nvf4];
const SCALE: Group = opt(&[ScaleVec1X, ScaleVec2X, ScaleVec4X]);
const SPARSE: Group = req(&[Sp, SpOrderedMetadata]);
const ORDERED: Rule = has(&[SpOrderedMetadata]).since(8, 5, 80);
const SPARSE_OPS: &[Operand] = &[
    RESULT,
    fragment("a", Matrix::A),
    fragment("b", Matrix::B),
    fragment("c", Matrix::C),
    METADATA,
    imm("f", I32).values(Values::Low(&Values::Range(0, 0))),
];
const SCALED: &[Operand] = &[
    RESULT,
    fragment("a", Matrix::A),
    fragment("b", Matrix::B),
    fragment("c", Matrix::C),
    Operand { name: "scale-a-data", ..METADATA },
    fields("scale-a-selector", Values::Each(&[Values::Range(0, 3), Values::Range(0, 1)])),
    Operand { name: "scale-b-data", ..METADATA },
    fields("scale-b-selector", Values::Each(&[Values::Range(0, 3), Values::Range(0, 3)])),
];
const SPARSE_SCALED: &[Operand] = &[
    RESULT,
    fragment("a", Matrix::A),
    fragment("b", Matrix::B),
    fragment("c", Matrix::C),
    METADATA,
    imm("f", I32).values(Values::Low(&Values::Range(0, 0))),
    Operand { name: "scale-a-data", ..METADATA },
    fields("scale-a-selector", Values::Each(&[Values::Range(0, 3), Values::Range(0, 1)])),
    Operand { name: "scale-b-data", ..METADATA },
    fields("scale-b-selector", Values::Each(&[Values::Range(0, 3), Values::Range(0, 3)])),
];
const MX_TYPES: [Rule; 5] = [
    has(&[KindMxf4, KindMxf4nvf4]).types_at(1, t![E2m1]),
    has(&[KindMxf4, KindMxf4nvf4]).types_at(2, t![E2m1]),
    has(&[KindMxf8f6f4, KindMxf4]).types_at(4, t![Ue8m0]),
    has(&[ScaleVec2X]).types_at(4, t![Ue8m0]),
    has(&[ScaleVec4X]).types_at(4, t![Ue4m3]),
];
const EVEN: Values = Values::Of(&[0, 2]);
const ZERO: Values = Values::Range(0, 0);
const MX_SELECTORS: [Rule; 4] = [
    has(&[ScaleVec2X]).values("scale-a-selector", Values::Each(&[EVEN, Values::Range(0, 1)])),
    has(&[ScaleVec2X]).values("scale-b-selector", Values::Each(&[EVEN, Values::Range(0, 3)])),
    has(&[ScaleVec4X]).values("scale-a-selector", Values::Each(&[ZERO, Values::Range(0, 1)])),
    has(&[ScaleVec4X]).values("scale-b-selector", Values::Each(&[ZERO, Values::Range(0, 3)])),
];
const MX_SCALES: [Rule; 3] = [
    has(&[KindMxf8f6f4]).excludes(&[ScaleVec2X, ScaleVec4X]),
    has(&[KindMxf4]).excludes(&[ScaleVec1X, ScaleVec4X]),
    has(&[KindMxf4nvf4]).needs(&[ScaleVec2X, ScaleVec4X]),
];
const MX_RULES: &[Rule] = &[
    MX_TYPES[0],
    MX_TYPES[1],
    MX_TYPES[2],
    MX_TYPES[3],
    MX_TYPES[4],
    MX_SELECTORS[0],
    MX_SELECTORS[1],
    MX_SELECTORS[2],
    MX_SELECTORS[3],
    has(&[KindMxf4]).values("scale-a-selector", Values::Each(&[EVEN, Values::Range(0, 1)])),
    has(&[KindMxf4]).values("scale-b-selector", Values::Each(&[EVEN, Values::Range(0, 3)])),
    MX_SCALES[0],
    MX_SCALES[1],
    MX_SCALES[2],
    has(&[KindMxf8f6f4]).needs(&[M16n8k32]),
    has(&[KindMxf4, KindMxf4nvf4]).needs(&[M16n8k64]),
];
const MX_SPARSE_RULES: &[Rule] = &[
    MX_TYPES[0],
    MX_TYPES[1],
    MX_TYPES[2],
    MX_TYPES[3],
    MX_TYPES[4],
    MX_SELECTORS[0],
    MX_SELECTORS[1],
    MX_SELECTORS[2],
    MX_SELECTORS[3],
    has(&[KindMxf4]).values("scale-a-selector", Values::Each(&[EVEN, Values::Range(0, 1)])),
    has(&[KindMxf4]).values("scale-b-selector", Values::Each(&[EVEN, Values::Range(0, 3)])),
    MX_SCALES[0],
    MX_SCALES[1],
    MX_SCALES[2],
    has(&[KindMxf8f6f4]).needs(&[M16n8k64]),
    has(&[KindMxf4, KindMxf4nvf4]).needs(&[M16n8k128]),
    has(&[KindMxf4, KindMxf4nvf4]).gate(Gate::only(8, 7, TargetSet::arch(120).or(TargetSet::arch(121)))),
];
/// Four-bit types in the shapes of wider types.
const TURING_TO_ADA: TargetSet = TargetSet::since(75).without(TargetSet::since(90));
const WMMA_MATRIX: Operand = addr_at("p", Base::named(0).memory().copied());
const WMMA_HALF: &[Mod] = &[M16n16k16, M8n32k16, M32n8k16];
const WMMA_SHAPE: Group = req(&[M16n16k16, M8n32k16, M32n8k16, M16n16k8, M8n8k4, M8n8k32, M8n8k128]);
const WMMA_SPACE: Group = opt(&[Global, Shared, SharedCta]);
/// Before this version, `wmma` had no `.aligned` modifier.
const WMMA_ALIGNED: Rule = has(&[Aligned]).since(6, 3, 70);
const WMMA_WIDE: Rule = has(&[M8n32k16, M32n8k16]).since(6, 1, 70);
const WMMA_ACCUMULATOR: &[Rule] = &[
    WMMA_ALIGNED,
    WMMA_WIDE,
    on(F64).needs(&[M8n8k4]),
    on(t![F16]).needs(WMMA_HALF),
    has(&[M8n8k4]).types(F64),
    has(&[M16n16k8]).types(F32),
    on(S32).since(6, 3, 72),
    has(&[M8n8k32, M8n8k128]).since(6, 3, 75),
    has(&[M16n16k8, M8n8k4]).since(7, 0, 80),
    has(&[SharedCta]).since(7, 8, 70),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Ldmatrix).name(&[SYNC, ALIGNED, req(&[M8n8]), req(&[X1, X2, X4, X8]), opt(&[Trans]), OWN_SHARED]).ty(&[t![B16]]).ops(&[dst_vector("r", TB32).braces(Lanes::Named(1)), MATRIX]).facts(WARP.or(Fact::READS)).since(6, 5, 75).rules(&[has(&[X8]).lanes("r", Lanes::Of(&[1, 2, 4])), has(&[SharedCta]).since(7, 8, 75)]),
    form(F::LdmatrixBytes).name(&[SYNC, ALIGNED, req(&[M16n16]), req(&[X1, X2]), req(&[Trans]), OWN_SHARED]).ty(&[t![B8]]).ops(&[dst_vector("r", TB32).braces(Lanes::Named(2)), MATRIX]).facts(WARP.or(Fact::READS)).gate(BLOCK),
    form(F::LdmatrixUnpack).name(&[SYNC, ALIGNED, req(&[M8n16, M16n16]), COUNT, opt(&[Trans]), OWN_SHARED]).ty(&[t![B8x16], t![B6x16P32 B4x16P64]]).ops(&[dst_vector("r", TB32).braces(Lanes::Named(1)), MATRIX]).facts(WARP.or(Fact::READS)).gate(BLOCK).rules(&[
        has(&[M16n16]).lanes("r", Lanes::Named(2)), has(&[M16n16]).needs(&[Trans]), has(&[M16n16]).excludes(&[X4]), has(&[M8n16]).excludes(&[Trans]),
    ]),
    form(F::Stmatrix).name(&[SYNC, ALIGNED, req(&[M8n8]), req(&[X1, X2, X4, X8]), opt(&[Trans]), OWN_SHARED]).ty(&[t![B16]]).ops(&[MATRIX, src_vector("r", TB32).braces(Lanes::Named(1))]).facts(WARP.or(Fact::WRITES)).since(7, 8, 90).rules(&[has(&[X8]).lanes("r", Lanes::Of(&[1, 2, 4]))]),
    form(F::StmatrixBytes).name(&[SYNC, ALIGNED, req(&[M16n8]), COUNT, req(&[Trans]), OWN_SHARED]).ty(&[t![B8]]).ops(&[MATRIX, src_vector("r", TB32).braces(Lanes::Named(1))]).facts(WARP.or(Fact::WRITES)).gate(BLOCK),
    form(F::Movmatrix).name(&[SYNC, ALIGNED, req(&[M8n8]), req(&[Trans])]).ty(&[t![B16]]).ops(&[dst("d", OperandType::Word).also(Class::PREDICATE), Operand { name: "a", ..METADATA }.class(Class::VALUE.or(Class::PREDICATE)).lanes(Lanes::Named(1))]).facts(WARP).since(7, 8, 75),
    form(F::MmaF16M8).name(&[SYNC, ALIGNED, req(&[M8n8k4]), LAYOUT, LAYOUT]).ty(&[t![F16 F32], t![F16], t![F16], t![F16 F32]]).ops(ABC).facts(WARP).since(6, 4, 70).rules(&[on(t![F16]).types_at(3, t![F16])]),
    form(F::MmaF16).name(&[SYNC, ALIGNED, req(&[M16n8k8, M16n8k16]), ROW, COL]).ty(&[t![F16 F32], t![F16], t![F16], t![F16 F32]]).ops(ABC).facts(WARP).since(6, 5, 75).rules(&[lacks(&[]).same(0, 3), has(&[M16n8k16]).since(7, 0, 80)]),
    form(F::MmaBf16).name(&[SYNC, ALIGNED, req(&[M16n8k8, M16n8k16]), ROW, COL]).ty(&[F32, t![Bf16], t![Bf16], F32]).ops(ABC).facts(WARP).since(7, 0, 80),
    form(F::MmaTf32).name(&[SYNC, ALIGNED, req(&[M16n8k4, M16n8k8]), ROW, COL]).ty(&[F32, t![Tf32], t![Tf32], F32]).ops(ABC).facts(WARP).since(7, 0, 80),
    form(F::MmaF64).name(&[SYNC, ALIGNED, req(&[M8n8k4, M16n8k4, M16n8k8, M16n8k16]), ROW, COL, ROUND]).ty(&[F64, F64, F64, F64]).ops(ABC).facts(WARP).since(7, 0, 80).rules(&[has(&[M16n8k4, M16n8k8, M16n8k16]).since(7, 8, 90)]),
    form(F::MmaInt8).name(&[SYNC, ALIGNED, req(&[M8n8k16, M16n8k16, M16n8k32]), ROW, COL, opt(&[Satfinite])]).ty(&[S32, INT8, INT8, S32]).ops(ABC).facts(WARP).since(6, 5, 75).rules(&[has(&[M16n8k16, M16n8k32]).since(7, 0, 80)]),
    form(F::MmaInt4).name(&[SYNC, ALIGNED, req(&[M8n8k32, M16n8k32, M16n8k64]), ROW, COL, opt(&[Satfinite])]).ty(&[S32, INT4, INT4, S32]).ops(ABC).facts(WARP).since(6, 5, 75).rules(&[has(&[M16n8k32, M16n8k64]).since(7, 0, 80)]),
    form(F::MmaBits).name(&[SYNC, ALIGNED, req(&[M8n8k128, M16n8k128, M16n8k256]), ROW, COL, req(&[Xor, And]), req(&[Popc])]).ty(&[S32, t![B1], t![B1], S32]).ops(ABC).facts(WARP).since(7, 0, 75).rules(&[has(&[M16n8k128, M16n8k256]).since(7, 0, 80), has(&[And]).since(7, 1, 80)]),
    form(F::MmaFp8).name(&[SYNC, ALIGNED, req(&[M16n8k16, M16n8k32]), ROW, COL]).ty(&[t![F16 F32], FP8, FP8, t![F16 F32]]).ops(ABC).facts(WARP).since(8, 4, 89).rules(&[lacks(&[]).same(0, 3), has(&[M16n8k16]).since(8, 7, 89), on(t![F16]).since(8, 7, 89)]),
    form(F::MmaBf16M8).name(&[SYNC, ALIGNED, req(&[M8n8k4]), LAYOUT, LAYOUT]).ty(&[F32, t![Bf16], t![Bf16], F32]).ops(ABC).facts(WARP).since(7, 0, 80),
    form(F::MmaKind).name(&[SYNC, ALIGNED, req(&[M16n8k16, M16n8k32]), ROW, COL, req(F8_KINDS)]).ty(&[t![F16 F32], NARROW, NARROW, t![F16 F32]]).ops(ABC).facts(WARP).gate(BLOCK).rules(&[has(MX).types_at(1, FP8), has(MX).types_at(2, FP8), has(&[KindMxf4nvf4]).since(8, 7, 100), on(t![F16]).since(8, 7, 100), NARROW_B, 
        lacks(&[]).same(0, 3), has(&[M16n8k16]).types_at(1, FP8), has(&[M16n8k16]).types_at(2, FP8), on_second(NARROW.without(FP8)).gate(CONSUMER), has(&[M16n8k16]).gate(Gate::only(8, 7, BLOCK_TARGETS)),
    ]),
    form(F::MmaBlockScale).name(&[SYNC, ALIGNED, req(&[M16n8k32, M16n8k64]), ROW, COL, req(MX), req(&[BlockScale]), SCALE]).ty(&[F32, NARROW, NARROW, F32, t![Ue8m0 Ue4m3]]).ops(SCALED).facts(WARP).gate(CONSUMER).rules(MX_RULES),
    form(F::MmaSpF16).name(&[SPARSE, SYNC, ALIGNED, req(&[M16n8k16, M16n8k32]), ROW, COL]).ty(&[t![F16 F32], t![F16], t![F16], t![F16 F32]]).ops(SPARSE_OPS).facts(WARP).since(7, 1, 80).rules(&[has(&[M16n8k16]).values("f", Values::Range(0, 3)), has(&[M16n8k32]).values("f", Values::Range(0, 1)), lacks(&[]).same(0, 3), ORDERED]),
    form(F::MmaSpBf16).name(&[SPARSE, SYNC, ALIGNED, req(&[M16n8k16, M16n8k32]), ROW, COL]).ty(&[F32, t![Bf16], t![Bf16], F32]).ops(SPARSE_OPS).facts(WARP).since(7, 1, 80).rules(&[has(&[M16n8k16]).values("f", Values::Range(0, 3)), has(&[M16n8k32]).values("f", Values::Range(0, 1)), ORDERED]),
    form(F::MmaSpTf32).name(&[SPARSE, SYNC, ALIGNED, req(&[M16n8k8, M16n8k16]), ROW, COL]).ty(&[F32, t![Tf32], t![Tf32], F32]).ops(SPARSE_OPS).facts(WARP).since(7, 1, 80).rules(&[has(&[M16n8k8]).values("f", Values::Range(0, 3)), has(&[M16n8k16]).values("f", Values::Range(0, 1)), ORDERED]),
    form(F::MmaSpInt8).name(&[SPARSE, SYNC, ALIGNED, req(&[M16n8k32, M16n8k64]), ROW, COL, opt(&[Satfinite])]).ty(&[S32, INT8, INT8, S32]).ops(SPARSE_OPS).facts(WARP).since(7, 1, 80).rules(&[has(&[M16n8k32]).values("f", Values::Range(0, 1)), ORDERED]),
    form(F::MmaSpInt4).name(&[SPARSE, SYNC, ALIGNED, req(&[M16n8k64, M16n8k128]), ROW, COL, opt(&[Satfinite])]).ty(&[S32, INT4, INT4, S32]).ops(SPARSE_OPS).facts(WARP).since(7, 1, 80).rules(&[has(&[M16n8k64]).values("f", Values::Range(0, 1)), ORDERED]),
    form(F::MmaSpFp8).name(&[SPARSE, SYNC, ALIGNED, req(&[M16n8k64]), ROW, COL]).ty(&[t![F16 F32], FP8, FP8, t![F16 F32]]).ops(SPARSE_OPS).facts(WARP).since(8, 4, 89).rules(&[lacks(&[]).same(0, 3), ORDERED, on(t![F16]).needs(&[SpOrderedMetadata]), on(t![F16]).gate(CONSUMER)]),
    form(F::MmaSpKind).name(&[req(&[SpOrderedMetadata]), SYNC, ALIGNED, req(&[M16n8k64]), ROW, COL, req(F8_KINDS)]).ty(&[t![F16 F32], NARROW, NARROW, t![F16 F32]]).ops(SPARSE_OPS).facts(WARP).gate(BLOCK).rules(&[has(MX).types_at(1, FP8), has(MX).types_at(2, FP8), has(&[KindMxf4nvf4]).since(8, 7, 100), NARROW_B, lacks(&[]).same(0, 3), on(t![F16]).gate(CONSUMER), on_second(NARROW.without(FP8)).gate(CONSUMER)]),
    form(F::MmaSpBlockScale).name(&[req(&[SpOrderedMetadata]), SYNC, ALIGNED, req(&[M16n8k64, M16n8k128]), ROW, COL, req(MX), req(&[BlockScale]), SCALE]).ty(&[F32, NARROW, NARROW, F32, t![Ue8m0 Ue4m3]]).ops(SPARSE_SCALED).facts(WARP).gate(CONSUMER).rules(MX_SPARSE_RULES),
    form(F::WmmaLoad).name(&[key(&[Load]), key(&[A, B]), SYNC, ALIGNED, LAYOUT, WMMA_SHAPE, WMMA_SPACE]).ty(&[t![F16 Bf16 Tf32 F64 U8 S8 U4 S4 B1]]).ops(&[dst_vector("r", FREE), WMMA_MATRIX, src("stride", I32).optional()]).facts(WARP.or(Fact::READS)).since(6, 0, 70).rules(&[WMMA_ALIGNED, WMMA_WIDE,
        has(&[A]).operand("r", Column::Type(OperandType::Fragment(Matrix::A))), has(&[A]).lanes("r", Lanes::Fragment(Matrix::A)),
        has(&[B]).operand("r", Column::Type(OperandType::Fragment(Matrix::B))), has(&[B]).lanes("r", Lanes::Fragment(Matrix::B)),
       
        on(t![F16 Bf16 U8 S8]).needs(WMMA_HALF), on(t![Tf32]).needs(&[M16n16k8]), on(F64).needs(&[M8n8k4]), on(INT4).needs(&[M8n8k32]), on(t![B1]).needs(&[M8n8k128]),
        has(&[A]).on(t![U4 S4 B1]).excludes(&[Col]), has(&[B]).on(t![U4 S4 B1]).excludes(&[Row]),
        on(INT8).since(6, 3, 72), on(t![U4 S4 B1]).since(6, 3, 75), on(t![Bf16 Tf32 F64]).since(7, 0, 80), has(&[SharedCta]).since(7, 8, 70),
    ]),
    form(F::WmmaLoadC).name(&[key(&[Load]), key(&[C]), SYNC, ALIGNED, LAYOUT, WMMA_SHAPE, WMMA_SPACE]).ty(&[t![F16 F32 F64 S32]]).ops(&[Operand { role: Role::Destination, ..fragment("r", Matrix::C) }, WMMA_MATRIX, src("stride", I32).optional()]).facts(WARP.or(Fact::READS)).since(6, 0, 70).rules(WMMA_ACCUMULATOR),
    form(F::WmmaStore).name(&[key(&[Store]), key(&[D]), SYNC, ALIGNED, LAYOUT, WMMA_SHAPE, WMMA_SPACE]).ty(&[t![F16 F32 F64 S32]]).ops(&[WMMA_MATRIX, fragment("r", Matrix::D), src("stride", I32).optional()]).facts(WARP.or(Fact::WRITES)).since(6, 0, 70).rules(WMMA_ACCUMULATOR),
    form(F::WmmaMmaF16).name(&[key(&[Mma]), SYNC, ALIGNED, LAYOUT, LAYOUT, req(WMMA_HALF), opt(&[Satfinite])]).ty(&[t![F16 F32], t![F16 F32]]).ops(ABC).facts(WARP).since(6, 0, 70).rules(&[WMMA_ALIGNED, WMMA_WIDE, has(&[Satfinite]).gate(Gate::since(6, 0, 70).until(6, 5, 70))]),
    form(F::WmmaMma).name(&[key(&[Mma]), SYNC, ALIGNED, LAYOUT, LAYOUT, req(&[M16n16k16, M8n32k16, M32n8k16, M16n16k8, M8n8k4]), ROUND, opt(&[Satfinite])]).ty(&[t![F32 F64 S32], t![Bf16 Tf32 F64 U8 S8], t![Bf16 Tf32 F64 U8 S8], t![F32 F64 S32]]).ops(ABC).facts(WARP).since(6, 3, 72).rules(&[
        on_second(t![Bf16 Tf32]).types(F32), on_second(F64).types(F64), on_second(INT8).types(S32), lacks(&[]).same(0, 3),
        on_second(t![Bf16 Tf32 F64]).same(1, 2), on_second(INT8).types_at(2, INT8),
        on_second(t![Bf16 U8 S8]).needs(WMMA_HALF), on_second(t![Tf32]).needs(&[M16n16k8]), on_second(F64).needs(&[M8n8k4]),
        has(&[Rn, Rz, Rm, Rp]).types(F64), has(&[Satfinite]).types(S32), on_second(t![Bf16 Tf32 F64]).since(7, 0, 80),
    ]),
    form(F::WmmaMmaInt4).name(&[key(&[Mma]), SYNC, ALIGNED, ROW, COL, req(&[M8n8k32]), opt(&[Satfinite])]).ty(&[S32, INT4, INT4, S32]).ops(ABC).facts(WARP).since(6, 3, 75).rules(&[lacks(&[]).same(1, 2)]),
    form(F::WmmaMmaBits).name(&[key(&[Mma]), req(&[Xor, And]), req(&[Popc]), SYNC, ALIGNED, ROW, COL, req(&[M8n8k128])]).ty(&[S32, t![B1], t![B1], S32]).ops(ABC).facts(WARP).since(6, 3, 75).rules(&[has(&[And]).since(7, 1, 80)]),
    form(F::WmmaMmaInt4Wide).name(&[key(&[Mma]), SYNC, ALIGNED, LAYOUT, LAYOUT, req(&[M16n16k16, M8n32k16, M32n8k16, M16n16k8, M8n8k4]), opt(&[Satfinite])]).ty(&[S32, INT4, INT4, S32]).ops(UNCHECKED_ABC).facts(WARP).gate(Gate::only(6, 3, TURING_TO_ADA)).rules(&[lacks(&[]).same(1, 2), has(&[M16n16k8, M8n8k4]).since(7, 0, 80)]),
];
