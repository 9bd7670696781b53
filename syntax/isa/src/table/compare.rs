//! Comparison and selection.

use super::prelude::*;

const INTEGER: TypeSet = BITS.union(INT);
const SIGNED: TypeSet = S16_64;
const SETP: &[Operand] = &[dst_preds("p"), src("a", T0), src("b", T0), pred("c").with(&[And, Or, Xor])];
/// The assembler accepts `.bf16` operands in braces, although this has no use.
const BRACED: Column = Column::Class(Class::VALUE.or(Class::VECTOR));
/// For the second operand of a pair, it also accepts a predicate.
const ANY_WORD: Column = Column::Class(Class::VALUE.or(Class::VECTOR).or(Class::PREDICATE));
/// Any 32-bit operand, if the assembler packs the result itself.
const PACKED: Column = Column::Class(Class::REGISTER.or(Class::VECTOR).or(Class::PREDICATE));
const BF16X2: TypeSet = t![Bf16x2];
const SET: &[Operand] = &[dst("d", T0), src("a", T1), src("b", T1), pred("c").with(&[And, Or, Xor])];
/// A predicate, but not a constant.
const PREDICATE: Column = Column::Class(Class::PREDICATE);
const FLOAT_ONLY: &[Mod] = &[Equ, Neu, Ltu, Leu, Gtu, Geu, Num, IsNan];
const UNSIGNED_ONLY: &[Mod] = &[Lo, Ls, Hi, Hs];
const ORDERED: &[Mod] = &[Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs];

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::SetpInt).name(&[COMPARE, BOOLEAN]).ty(&[INTEGER]).ops(SETP).rules(&[
        on(INTEGER).excludes(FLOAT_ONLY), on(SIGNED).excludes(UNSIGNED_ONLY), on(BITS).excludes(ORDERED),
    ]),
    form(F::SetpFloat).name(&[COMPARE, BOOLEAN, FTZ]).ty(&[t![F32 F64]]).ops(SETP).rules(&[
        on(t![F32 F64]).excludes(UNSIGNED_ONLY), has(&[Ftz]).types(F32)
    ]),
    form(F::SetpHalf).name(&[COMPARE, BOOLEAN, FTZ]).ty(&[HALVES]).ops(SETP).since(4, 2, 53).rules(&[on(t![F16 Bf16]).operand("p", Column::Class(Class::PREDICATE.or(Class::SINK))), 
        on(HALVES).excludes(UNSIGNED_ONLY), has(&[Ftz]).types(HALF), on(BFLOAT).since(7, 8, 90), on(BFLOAT).operand("c", PREDICATE),
        on(BFLOAT).operand("a", BRACED), on(BFLOAT).operand("b", BRACED), on(BF16X2).operand("b", ANY_WORD), on(BFLOAT).lanes("a", Lanes::OrBare(&[1, 2, 4])), on(BFLOAT).lanes("b", Lanes::OrBare(&[1, 2, 4])),
    ]),
    form(F::SetInt).name(&[COMPARE, BOOLEAN]).ty(&[t![U32 S32 F32], INTEGER]).ops(SET).rules(&[
        on_second(INTEGER).excludes(FLOAT_ONLY), on_second(SIGNED).excludes(UNSIGNED_ONLY), on_second(BITS).excludes(ORDERED),
    ]),
    form(F::SetFloat).name(&[COMPARE, BOOLEAN, FTZ]).ty(&[t![U32 S32 F32], t![F32 F64]]).ops(SET).rules(&[
        on_second(t![F32 F64]).excludes(UNSIGNED_ONLY), has(&[Ftz]).types_at(1, F32)
    ]),
    form(F::Selp).ty(&[BITS.union(INT).union(t![F32 F64])]).ops(&[dst("d", T0), src("a", T0), src("b", T0), pred("c")]),
    form(F::Slct).name(&[FTZ]).ty(&[BITS.union(INT).union(t![F32 F64]), t![S32 F32]]).ops(&[dst("d", T0), src("a", T0), src("b", T0), src("c", T1)]).rules(&[
        has(&[Ftz]).types_at(1, F32)
    ]),
    form(F::SetHalf).name(&[COMPARE, BOOLEAN, FTZ]).ty(&[t![F16 Bf16 F16x2 Bf16x2 U16 S16 U32 S32], HALVES]).ops(SET).since(4, 2, 53).rules(&[
        on_second(HALVES).excludes(UNSIGNED_ONLY), has(&[Ftz]).types_at(1, HALF), on(BFLOAT).excludes(&[Ftz]), on_second(BFLOAT).since(7, 8, 90), on_second(BFLOAT).operand("c", PREDICATE), on(BFLOAT).operand("c", PREDICATE),
        on(t![U16 S16 U32 S32]).since(6, 5, 53), on(BFLOAT).since(7, 8, 90), on(t![F16x2]).types_at(1, t![F16x2]), on(t![Bf16x2]).types_at(1, t![Bf16x2]),
        on_second(BFLOAT).operand("a", BRACED), on_second(BFLOAT).operand("b", BRACED), on_second(BF16X2).operand("b", ANY_WORD), on_second(BFLOAT).lanes("a", Lanes::OrBare(&[1, 2, 4])), on_second(BFLOAT).lanes("b", Lanes::OrBare(&[1, 2, 4])),
        on(BF16X2).operand("d", PACKED), on(BF16X2).operand("d", Column::Type(OperandType::Word)), on(BF16X2).lanes("d", Lanes::OrBare(&[1, 2, 4])),
        on_second(t![F16x2]).types(t![F16x2 U32 S32]), on_second(t![Bf16x2]).types(t![Bf16x2 U32 S32]),
    ]),
    form(F::SetHalfResult).name(&[COMPARE, BOOLEAN, FTZ]).ty(&[t![F16 Bf16], INTEGER.union(t![F32 F64])]).ops(SET).since(4, 2, 53).rules(&[
        on_second(INTEGER).excludes(FLOAT_ONLY), on_second(SIGNED).excludes(UNSIGNED_ONLY), on_second(BITS).excludes(ORDERED),
        on_second(t![F32 F64]).excludes(UNSIGNED_ONLY), has(&[Ftz]).types_at(1, F32), on(t![Bf16]).excludes(&[Ftz]), on(t![Bf16]).since(7, 8, 90), on(t![Bf16]).operand("c", PREDICATE),
    ]),
];
