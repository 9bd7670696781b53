//! Asynchronous matrix products of a warpgroup, for sm_90a.

use super::prelude::*;

const HOPPER: Gate = Gate::only(8, 0, TargetSet::arch(90));
const GROUP: Fact = Fact::CONVERGENT;
const NARROW: TypeSet = t![E4m3 E5m2];
const INT8: TypeSet = t![U8 S8];
const S32: TypeSet = t![S32];

// The shapes by depth. Columns range from 8 to 256 in steps of 8.
#[rustfmt::skip]
const K8: &[Mod] = &[
    M64n8k8, M64n16k8, M64n24k8, M64n32k8, M64n40k8, M64n48k8, M64n56k8, M64n64k8, M64n72k8, M64n80k8, M64n88k8,
    M64n96k8, M64n104k8, M64n112k8, M64n120k8, M64n128k8, M64n136k8, M64n144k8, M64n152k8, M64n160k8, M64n168k8,
    M64n176k8, M64n184k8, M64n192k8, M64n200k8, M64n208k8, M64n216k8, M64n224k8, M64n232k8, M64n240k8, M64n248k8,
    M64n256k8,
];
#[rustfmt::skip]
const K16: &[Mod] = &[
    M64n8k16, M64n16k16, M64n24k16, M64n32k16, M64n40k16, M64n48k16, M64n56k16, M64n64k16, M64n72k16, M64n80k16,
    M64n88k16, M64n96k16, M64n104k16, M64n112k16, M64n120k16, M64n128k16, M64n136k16, M64n144k16, M64n152k16,
    M64n160k16, M64n168k16, M64n176k16, M64n184k16, M64n192k16, M64n200k16, M64n208k16, M64n216k16, M64n224k16,
    M64n232k16, M64n240k16, M64n248k16, M64n256k16,
];
#[rustfmt::skip]
const K32: &[Mod] = &[
    M64n8k32, M64n16k32, M64n24k32, M64n32k32, M64n40k32, M64n48k32, M64n56k32, M64n64k32, M64n72k32, M64n80k32,
    M64n88k32, M64n96k32, M64n104k32, M64n112k32, M64n120k32, M64n128k32, M64n136k32, M64n144k32, M64n152k32,
    M64n160k32, M64n168k32, M64n176k32, M64n184k32, M64n192k32, M64n200k32, M64n208k32, M64n216k32, M64n224k32,
    M64n232k32, M64n240k32, M64n248k32, M64n256k32,
];
#[rustfmt::skip]
const K64: &[Mod] = &[
    M64n8k64, M64n16k64, M64n24k64, M64n32k64, M64n40k64, M64n48k64, M64n56k64, M64n64k64, M64n72k64, M64n80k64,
    M64n88k64, M64n96k64, M64n104k64, M64n112k64, M64n120k64, M64n128k64, M64n136k64, M64n144k64, M64n152k64,
    M64n160k64, M64n168k64, M64n176k64, M64n184k64, M64n192k64, M64n200k64, M64n208k64, M64n216k64, M64n224k64,
    M64n232k64, M64n240k64, M64n248k64, M64n256k64,
];
// Integer and bit products have fewer numbers of columns.
#[rustfmt::skip]
const K32_INT: &[Mod] = &[
    M64n8k32, M64n16k32, M64n24k32, M64n32k32, M64n48k32, M64n64k32, M64n80k32, M64n96k32, M64n112k32, M64n128k32,
    M64n144k32, M64n160k32, M64n176k32, M64n192k32, M64n208k32, M64n224k32, M64n240k32, M64n256k32,
];
#[rustfmt::skip]
const K64_INT: &[Mod] = &[
    M64n8k64, M64n16k64, M64n24k64, M64n32k64, M64n48k64, M64n64k64, M64n80k64, M64n96k64, M64n112k64, M64n128k64,
    M64n144k64, M64n160k64, M64n176k64, M64n192k64, M64n208k64, M64n224k64, M64n240k64, M64n256k64,
];
#[rustfmt::skip]
const K256: &[Mod] = &[
    M64n8k256, M64n16k256, M64n24k256, M64n32k256, M64n48k256, M64n64k256, M64n80k256, M64n96k256, M64n112k256,
    M64n128k256, M64n144k256, M64n160k256, M64n176k256, M64n192k256, M64n208k256, M64n224k256, M64n240k256,
    M64n256k256,
];
/// Depths 8 to 64.
#[rustfmt::skip]
const SHAPES: &[Mod] = &[
    M64n8k8, M64n16k8, M64n24k8, M64n32k8, M64n40k8, M64n48k8, M64n56k8, M64n64k8, M64n72k8, M64n80k8, M64n88k8,
    M64n96k8, M64n104k8, M64n112k8, M64n120k8, M64n128k8, M64n136k8, M64n144k8, M64n152k8, M64n160k8, M64n168k8,
    M64n176k8, M64n184k8, M64n192k8, M64n200k8, M64n208k8, M64n216k8, M64n224k8, M64n232k8, M64n240k8, M64n248k8,
    M64n256k8,
    M64n8k16, M64n16k16, M64n24k16, M64n32k16, M64n40k16, M64n48k16, M64n56k16, M64n64k16, M64n72k16, M64n80k16,
    M64n88k16, M64n96k16, M64n104k16, M64n112k16, M64n120k16, M64n128k16, M64n136k16, M64n144k16, M64n152k16,
    M64n160k16, M64n168k16, M64n176k16, M64n184k16, M64n192k16, M64n200k16, M64n208k16, M64n216k16, M64n224k16,
    M64n232k16, M64n240k16, M64n248k16, M64n256k16,
    M64n8k32, M64n16k32, M64n24k32, M64n32k32, M64n40k32, M64n48k32, M64n56k32, M64n64k32, M64n72k32, M64n80k32,
    M64n88k32, M64n96k32, M64n104k32, M64n112k32, M64n120k32, M64n128k32, M64n136k32, M64n144k32, M64n152k32,
    M64n160k32, M64n168k32, M64n176k32, M64n184k32, M64n192k32, M64n200k32, M64n208k32, M64n216k32, M64n224k32,
    M64n232k32, M64n240k32, M64n248k32, M64n256k32,
    M64n8k64, M64n16k64, M64n24k64, M64n32k64, M64n40k64, M64n48k64, M64n56k64, M64n64k64, M64n72k64, M64n80k64,
    M64n88k64, M64n96k64, M64n104k64, M64n112k64, M64n120k64, M64n128k64, M64n136k64, M64n144k64, M64n152k64,
    M64n160k64, M64n168k64, M64n176k64, M64n184k64, M64n192k64, M64n200k64, M64n208k64, M64n216k64, M64n224k64,
    M64n232k64, M64n240k64, M64n248k64, M64n256k64,
];

/// A factor in shared memory or in four registers.
const FACTOR: Operand =
    src("a", OperandType::FragmentOrDescriptor(Matrix::A)).or(Class::VECTOR).lanes(Lanes::Of(&[1, 4]));
const SIGN: Values = Values::Of(&[-1, 1]);

const OPERANDS: &[Operand] = &[
    Operand { role: Role::Destination, ..fragment("d", Matrix::D) },
    FACTOR,
    src("b-desc", I64),
    pred("scale-d").range(0, 1),
    imm("imm-scale-a", I32).values(SIGN).optional(),
    imm("imm-scale-b", I32).values(SIGN).optional(),
    imm("imm-trans-a", I32).range(0, 1).optional(),
    imm("imm-trans-b", I32).range(0, 1).optional(),
];
const SPARSE: &[Operand] = &[
    Operand { role: Role::Destination, ..fragment("d", Matrix::D) },
    FACTOR,
    src("b-desc", I64),
    METADATA,
    imm("sp-sel", I32).range(0, 1),
    pred("scale-d").range(0, 1),
    imm("imm-scale-a", I32).values(SIGN).optional(),
    imm("imm-scale-b", I32).values(SIGN).optional(),
    imm("imm-trans-a", I32).range(0, 1).optional(),
    imm("imm-trans-b", I32).range(0, 1).optional(),
];
const A: TypeSet = t![F16 Bf16 Tf32 E4m3 E5m2 U8 S8];

const REQUIRED: Column = Column::Presence(Presence::Always);
const NEVER: Column = Column::Presence(Presence::Never);
/// Factors of different signedness came later.
const MIXED: Then = Then::Gate(Gate::only(8, 4, TargetSet::arch(90)));

/// What the types require of the accumulator and of the other factor.
macro_rules! product_rules {
    ($($more:expr),* $(,)?) => { &[
        on_second(t![F16]).types(t![F16 F32]), on_second(t![Bf16 Tf32]).types(F32), on_second(NARROW).types(t![F16 F32]), on_second(INT8).types(S32),
        on_second(t![F16 Bf16 Tf32]).same(1, 2), Rule { when: When { second: t![S8], third: t![U8], ..When::ALWAYS }, then: MIXED }, Rule { when: When { second: t![U8], third: t![S8], ..When::ALWAYS }, then: MIXED }, on_second(NARROW).types_at(2, NARROW), on_second(INT8).types_at(2, INT8), has(&[Satfinite]).types(S32),
        on_second(t![F16 Bf16 Tf32].union(NARROW)).operand("imm-scale-a", REQUIRED), on_second(t![F16 Bf16 Tf32].union(NARROW)).operand("imm-scale-b", REQUIRED), on_second(t![F16 Bf16]).operand("imm-trans-b", REQUIRED),
        on_second(INT8).operand("imm-scale-a", NEVER), on_second(INT8).operand("imm-scale-b", NEVER), on_second(INT8.union(NARROW).union(t![Tf32])).operand("imm-trans-a", NEVER), on_second(INT8.union(NARROW).union(t![Tf32])).operand("imm-trans-b", NEVER),
        $($more),*
    ] };
}

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::WgmmaFence).name(&[key(&[Fence]), SYNC, opt(&[Aligned])]).facts(GROUP.or(Fact::ORDERS)).gate(HOPPER),
    form(F::WgmmaCommitGroup).name(&[key(&[CommitGroup]), SYNC, opt(&[Aligned])]).facts(GROUP.or(Fact::ASYNC).or(Fact::EFFECT)).gate(HOPPER),
    form(F::WgmmaWaitGroup).name(&[key(&[WaitGroup]), SYNC, opt(&[Aligned])]).ops(&[imm("n", I32).range(0, i64::MAX)]).facts(GROUP.or(Fact::ORDERS).or(Fact::EFFECT)).gate(HOPPER),
    form(F::WgmmaMma).name(&[key(&[MmaAsync]), SYNC, opt(&[Aligned]), req(SHAPES), opt(&[Satfinite])]).ty(&[t![F16 F32 S32], A, A]).ops(OPERANDS).facts(GROUP.or(Fact::READS).or(Fact::ASYNC)).gate(HOPPER).rules(product_rules![
        on_second(t![F16 Bf16]).needs(K16), on_second(t![Tf32]).needs(K8), on_second(NARROW).needs(K32), on_second(INT8).needs(K32_INT),
    ]),
    form(F::WgmmaMmaSp).name(&[key(&[MmaAsync]), req(&[Sp]), SYNC, opt(&[Aligned]), req(SHAPES), opt(&[Satfinite])]).ty(&[t![F16 F32 S32], A, A]).ops(SPARSE).facts(GROUP.or(Fact::READS).or(Fact::ASYNC)).gate(Gate::only(8, 2, TargetSet::arch(90))).rules(product_rules![
        on_second(NARROW.union(INT8)).values("sp-sel", Values::Low(&Values::Range(0, 0))), on_second(t![F16 Bf16]).needs(K32), on_second(t![Tf32]).needs(K16), on_second(NARROW).needs(K64), on_second(INT8).needs(K64_INT),
    ]),
    form(F::WgmmaMmaBits).name(&[key(&[MmaAsync]), SYNC, opt(&[Aligned]), req(K256), req(&[And]), req(&[Popc])]).ty(&[S32, t![B1], t![B1]]).ops(OPERANDS).facts(GROUP.or(Fact::READS).or(Fact::ASYNC)).gate(HOPPER).rules(&[lacks(&[]).operand("imm-scale-a", NEVER), lacks(&[]).operand("imm-scale-b", NEVER), lacks(&[]).operand("imm-trans-a", NEVER), lacks(&[]).operand("imm-trans-b", NEVER)]),
];
