//! The operations of Ori, one row each; [`super::row`] describes what follows from a row.
//!
//! `Name "TEXT" { modifier: Type ["text" "other"] = Field } [results] <- [sources] facts, as families;`
//!
//! Operations are machine operations: a row's modifiers are exactly the choices of its encoding besides operands, and
//! each names the field of the machine instruction that it sets. A flag has a text and, if it is not empty, a text for
//! its absence. Operands name their position in the machine instruction: `A`, `B` and `C` are the slots whose contents
//! select the form; all others are fields. The families are names in the machine table, the best first; without
//! families, the text is the name.
//!
//! A row that states no facts has [`Facts::WORST`].

use super::facts::{Facts, Interpretation};
use super::ir::{BlockId, Src};
use super::memory::{Effect, Kind, Order, Space};
#[cfg(test)]
use super::row::sample;
use super::row::{Payload, Reader, Setting, Writer, families, operations, setting, strip};
use super::signature::*;
use crate::abi::Preserved;
use crate::driver::DriverFunction;
use crate::ori::op::*;
use At::{A, B, C};
use sass::Field;
use std::fmt::Write as _;

const F: Facts = Facts::FLOAT;
const H: Facts = Facts::HALF;
const I: Facts = Facts::PURE;
const UNIFORM: Facts = Facts::PURE.uniform();
const NO_GUARD: Facts = Facts { guardable: false, ..Facts::PURE };
const NEITHER_GUARDED_NOR_MOVED: Facts = Facts { guardable: false, ..Facts::FENCE.pinned() };
/// How an addition with or without a carry in reads a negated source.
const fn negation(carry: bool) -> Interpretation {
    if carry { Interpretation::Complement } else { Interpretation::Integer }
}
const RA: At = At::In(Field::Ra);
const RB: At = At::In(Field::Rb);
const RC: At = At::In(Field::Rc);
const RE: At = At::In(Field::Re);
const SCALE_B: At = At::In(Field::Rd2);
const SCALE_SELECTORS: At = At::In(Field::Ur);

#[rustfmt::skip]
operations! {
    // Pseudo-operations, which do not exist after allocation.
    /// Builds a wide value from its registers, in order. A source may be `Zero`, `Imm`, `Const` or `Undef`.
    Pack "PACK" [any_result()] <- [] NO_GUARD;
    /// A copy in any file and of any width. The allocator tries to remove it.
    Copy "COPY" [any_result()] <- [alu(B).not().any_width()] NO_GUARD;

    // Routines of the runtime library; see `runtime`. Sources and results are words.
    /// The result of a routine, before the routine is inlined or called.
    Compute "COMPUTE" { routine: Routine } [R.optional(), R.optional(), R.optional(), R.optional()] <- [
        alu(B).or_absent(Src::ZERO), alu(B).or_absent(Src::ZERO), alu(B).or_absent(Src::ZERO), alu(B).or_absent(Src::ZERO),
    ] NO_GUARD;
    /// Calls a routine, by a special calling convention. No thread waits in it, and it accesses no memory.
    CallRoutine "CALL.ROUTINE" { routine: Routine } [each_result()] <- [each_source()] Facts::routine(routine);

    // Calls. Their sources and results are values in registers of the calling convention.
    /// A copy into or out of such a value. It keeps its order, so that values in the same register do not overlap.
    Fix "FIX" [R] <- [alu(B)] Facts { effect: Effect::Observes, ..NO_GUARD }, as &["MOV"];
    /// The arguments in registers that the function receives: the first operation of the function.
    Params "PARAMS" [each_result()] <- [] Facts { waits: false, ..Facts::WORST };
    /// The results in registers that the function returns.
    Results "RESULTS" [] <- [each_source()] Facts { waits: false, ..Facts::WORST };
    /// Calls a function of the module. It overwrites all registers that the convention allows, and may have any effect
    /// on memory.
    Call "CALL" { callee: Callee } [each_result()] <- [each_source()] Facts::WORST;
    /// Calls the function at the address in the first source: an absolute address, or an offset from the section's
    /// start.
    CallTo "CALL.TO" { absolute: bool [".ABS" ".REL"], preserved: Preserved } [each_result()] <- [r(RA).wide(2), each_source()] Facts::WORST;
    /// Calls a driver function by its name, which a linker resolves.
    CallDriver "CALL.DRIVER" { function: DriverFunction } [each_result()] <- [each_source()] Facts::WORST;
    /// A number that is known when the kernel is linked.
    Locate "LOCATE" { link: Link } [R] <- [] I, as &["MOV"];
    /// The size of an entry of a driver table, which the driver fills in.
    EntrySize "ENTRYSIZE" { table: Descriptors } [R] <- [] I, as &["MOV"];
    /// The size of the `.const` variables of all objects, which a linker fills in.
    ConstBytes "CONSTBYTES" [R] <- [] I, as &["MOV"];
    /// The address of the words in which a block records its columns of tensor memory, which a linker fills in.
    TensorWords "TENSORWORDS" [R] <- [] I, as &["MOV"];
    /// The stack pointer before the function's frame was allocated: the address of the arguments that the caller passes
    /// on the stack.
    FrameTop "FRAMETOP" [R] <- [] I, as &["IADD3"];

    /// The target of a branch with this target list: the entry at a byte offset in the list, with four bytes for each
    /// target.
    Target "TARGET" { table: JumpTable } [R] <- [r(RA)] Facts::access(Space::Constant, Kind::Load, Order::Constant, 0, 4), as &["LDC"];

    // Moves and selection.
    Mov "MOV" [R] <- [alu(B)] I;
    /// The first source if the predicate is true, otherwise the second.
    Sel "SEL" [R] <- [r(A), alu(B), p(Field::Pp)] I;
    /// The same for pairs. ptxas never reads a pair from a uniform register here.
    Sel64 "SEL.64" [R2] <- [r(A).wide(2), alu(B).wide(2).extended().no_constant(), p(Field::Pp)] I;
    /// The same with float modifiers on the sources.
    Fsel "FSEL" { ftz: bool [".FTZ"] = Ftz } [R] <- [r(A).float(), alu(B).float(), p(Field::Pp)] F;
    /// Selects bytes of the first and third source by the nibbles of the second.
    Prmt "PRMT" [R] <- [r(A), alu(B), r(C)] I;
    S2r "S2R" { sr: Sr = Special } [R] <- [] Facts::special(sr);
    /// Reads in a fixed time: clocks, and zeroing a pair with `SRZ`.
    Cs2r "CS2R" { sr: Sr = Special, wide: bool [".64" ".32"] = Wide } [result(registers_if(wide, 2))] <- [] Facts::special(sr).pinned_unless(sr == special::ZERO);

    // Integer.
    /// Sum of three terms with two carries out; with `x` also two carries in, and a negated source is complemented.
    Iadd3 "IADD3" { x: bool [".X"] = Extend }
        [R, P.optional(), PQ.optional()] <- [r(A).neg_or_not(x), alu(B).neg_or_not(x), r(C).neg_or_not(x), carry(Field::Pp).only(x), carry(Field::Pr).only(x)]
        Facts { modifiers: negation(x), ..I.commutes(0, 1) };
    /// Low 32 bits of a*b+c.
    Imad "IMAD" { sign: Sign = Signed } [R] <- [r(A), alu(B), alu(C).neg()] I.commutes(0, 1);
    /// a*b+c, 32x32+64, and the carry out if the product is unsigned; `x` takes a carry.
    ImadWide "IMAD.WIDE" { sign: Sign = Signed, x: bool [".X"] = Extend } [R2, P.optional()] <- [r(A), alu(B), alu(C).wide(2), carry(Field::Pp).only(x)] I.commutes(0, 1);
    /// High 32 bits of a*b, plus c.
    ImadHi "IMAD.HI" { sign: Sign = Signed } [R] <- [r(A), alu(B), r(C).one_or_two()] I.commutes(0, 1);
    /// (a << shift) + b.
    Lea "LEA" { shift: u8 = Imm2 } [R, P.optional()] <- [r(A).neg(), alu(B).neg()] I;
    /// High word of (a << shift), a in the first and third source, plus b; `x` takes a carry.
    LeaHi "LEA.HI" { x: bool [".X"] = Extend, shift: u8 = Imm2 } [R] <- [r(A), alu(B).neg_or_not(x), r(C), carry(Field::Pp).only(x)] Facts { modifiers: negation(x), ..I };
    /// The same for a sign-extended a.
    LeaHiSx "LEA.HI.SX32" { x: bool [".X"] = Extend, shift: u8 = Imm2 } [R] <- [r(A), alu(B).neg_or_not(x), carry(Field::Pp).only(x)] Facts { modifiers: negation(x), ..I };
    /// Any function of three bits; bit `4a+2b+c` of `lut`.
    Lop3 "LOP3" { lut: u8 = Lut } [R] <- [r(A), alu(B), r(C)] I;
    /// Whether the result of the function is not zero.
    Lop3P "LOP3.P" { lut: u8 = Lut } [P] <- [r(A), alu(B), r(C)] I, as &["LOP3"];
    /// Any function of three predicates; the second result by `lut2`.
    Plop3 "PLOP3" { lut: u8 = Lut, lut2: u8 = Lut2 } [P, PQ.optional()] <- [p(Field::Pp), p(Field::Pr).or_absent(Src::TRUE), p(Field::Ps).or_absent(Src::TRUE)] I;
    /// Funnel shift of low, amount, high; `hi` gives the high word.
    Shf "SHF" { right: bool [".R" ".L"] = Right, wrap: bool [".W"] = Wrap, ty: ShfType = Type, hi: bool [".HI"] = High } [R] <- [r(A), alu(B), r(C)] I;
    /// Comparison combined with a predicate; `ex` extends a comparison of the low words.
    Isetp "ISETP" { cmp: ICmp = Cmp, sign: Sign = Signed, bool_: Bool = Bool, ex: bool [".EX"] = Extend }
        [P, PQ.optional()] <- [r(A), alu(B), p(Field::Pp).or_absent(Src::TRUE), p(Field::Pr).or_absent(Src::TRUE)] I;
    /// The sum of pairs.
    Iadd64 "IADD.64" [R2] <- [r(A).wide(2).neg(), alu(B).wide(2).extended().neg()] I.commutes(0, 1);
    /// Comparison of pairs.
    Isetp64 "ISETP.64" { cmp: ICmp = Cmp, sign: WideSign = Signed, bool_: Bool = Bool }
        [P, PQ.optional()] <- [r(A).wide(2), alu(B).wide(2).extended(), p(Field::Pp).or_absent(Src::TRUE)] I;
    /// The minimum if the predicate is true, otherwise the maximum.
    Imnmx "IMNMX" { sign: Sign = Type | Signed } [R] <- [r(A), alu(B), p(Field::Pp)] I.commutes(0, 1), as &["VIMNMX", "IMNMX"];
    /// The same for pairs.
    Imnmx64 "IMNMX.64" { sign: WideSign = Type } [R2] <- [r(A).wide(2), alu(B).wide(2).extended(), p(Field::Pp)] I.commutes(0, 1), as &["IMNMX"];
    /// The minimum or maximum of three values.
    Imnmx3 "VIMNMX3" { sign: Sign = Type } [R] <- [r(A), alu(B), r(C), p(Field::Pp)] I.commutes(0, 1);
    /// The minimum or maximum of a + b and c.
    Iaddmnmx "VIADDMNMX" { sign: Sign = Type } [R] <- [r(A), alu(B).neg(), alu(C), p(Field::Pp)] I;
    Iabs "IABS" [R] <- [alu(B)] I;
    Popc "POPC" [R] <- [alu(B).not()] I;
    /// The position of the leading one or sign change; `shift`: counted from the top. All ones if there is none.
    Flo "FLO" { sign: Sign = Signed, shift: bool [".SH"] = Mode } [R] <- [alu(B).not()] I;
    Brev "BREV" [R] <- [alu(B).not()] I;
    /// Sign extension from a bit; with `wrap`, the bit number is taken modulo 32.
    Sgxt "SGXT" { wrap: bool [".W"] = Wrap, sign: Sign = Signed } [R] <- [r(A), alu(B)] I;
    /// A mask of b ones starting at bit a.
    Bmsk "BMSK" { wrap: bool [".W"] = Wrap } [R] <- [r(A), alu(B)] I;
    /// Sum of products of four or two lanes, plus c. It takes no immediate.
    Idp "IDP" { mode: DotMode = Mode, a_signed: bool [".S8" ".U8"] = SrcType, b_signed: bool [".S8" ".U8"] = SrcType2 }
        [R] <- [r(A), alu(B).no_immediate(), r(C)] if mode == DotMode::A4 && a_signed == b_signed { I.commutes(0, 1) } else { I };
    /// The sums of two 16-bit pairs.
    Viadd2 "VIADD" { ty: PairType = Type } [R] <- [r(A), alu(B)] I.commutes(0, 1);
    /// The minima of 16-bit pairs if the predicate is true, otherwise the maxima; with `relu` at least zero.
    Vimnmx2 "VIMNMX" { ty: PairType = Type, relu: bool [".RELU"] = Relu } [R] <- [r(A), alu(B), p(Field::Pp)] I.commutes(0, 1);
    /// Two integers, saturated to narrower ones, the high one first, above the kept part of the third source.
    I2ip "I2IP" { to: PackType = Type, sat: PackSat = Sat, kept: PackKept = SwizzleC } [R] <- [r(A), alu(B), r(C)] I;
    /// |a-b| + c.
    Vabsdiff "VABSDIFF" { sign: Sign = Signed } [R] <- [r(A), alu(B), r(C)] I.commutes(0, 1);

    // fp32.
    Fadd "FADD" { ftz: bool [".FTZ"] = Ftz, round: Round = Round, sat: bool [".SAT"] = Sat } [R] <- [r(A).float(), alu(B).float()] F.commutes(0, 1);
    Fmul "FMUL" { ftz: bool [".FTZ"] = Ftz, round: Round = Round, sat: bool [".SAT"] = Sat } [R] <- [r(A).float(), alu(B).float()] F.commutes(0, 1);
    Ffma "FFMA" { ftz: bool [".FTZ"] = Ftz, round: Round = Round, sat: bool [".SAT"] = Sat } [R] <- [r(A).neg(), alu(B).neg(), alu(C).neg()] F.commutes(0, 1);
    /// The sum of a half and a float.
    Fhadd "FHADD" { bf16: bool [".BF16"] = Type, round: Round = Round, sat: bool [".SAT"] = Sat } [R] <- [r(A), alu(B).float().no_immediate()] F;
    /// a*b+c of halves and a float.
    Fhfma "FHFMA" { bf16: bool [".BF16"] = Type, round: Round = Round, sat: bool [".SAT"] = Sat } [R] <- [r(A), r(B), r(C).neg()] F.commutes(0, 1);
    /// The minimum if the predicate is true, otherwise the maximum; with `xor`, its sign is the product of the signs.
    Fmnmx "FMNMX" { ftz: bool [".FTZ"] = Ftz, nan: bool [".NAN"] = Mode, xor: bool [".XORSIGN"] = Flag } [R] <- [r(A).float(), alu(B).float(), p(Field::Pp)] F.commutes(0, 1);
    Fmnmx3 "FMNMX3" { ftz: bool [".FTZ"] = Ftz, nan: bool [".NAN"] = Mode } [R] <- [r(A).float(), alu(B).float(), r(C).float(), p(Field::Pp)] F.commutes(0, 1);
    Fsetp "FSETP" { cmp: FCmp = Cmp, ftz: bool [".FTZ"] = Ftz, bool_: Bool = Bool } [P, PQ.optional()] <- [r(A).float(), alu(B).float(), p(Field::Pp).or_absent(Src::TRUE)] F;
    /// An approximate function of one float.
    Mufu "MUFU" { func: MufuFunc = Op } [R] <- [alu(B).float()] F;
    /// An approximate function of the low half, or of the high one.
    MufuHalf "MUFU.HALF" { func: HalfFunc = Op, bf16: bool [".BF16" ".F16"] = Type, high: bool [".H1"] = SwizzleB } [R] <- [alu(B)] F.narrow_if(true), as &["MUFU.F16"];
    /// Whether a/b needs the slow path.
    Fchk "FCHK" [P] <- [r(A).float(), alu(B).float()] F;

    // Operations on two fp32 values.
    Fadd2 "FADD2" { ftz: bool [".FTZ"] = Ftz, round: Round = Round } [R2] <- [r(A).wide(2).float(), r(B).wide(2).float()] F.commutes(0, 1);
    Fmul2 "FMUL2" { ftz: bool [".FTZ"] = Ftz, round: Round = Round } [R2] <- [r(A).wide(2).float(), r(B).wide(2).float()] F.commutes(0, 1);
    Ffma2 "FFMA2" { ftz: bool [".FTZ"] = Ftz, round: Round = Round } [R2] <- [r(A).wide(2).float(), r(B).wide(2).float(), r(C).wide(2).float()] F.commutes(0, 1);

    // fp64: operands are pairs, constants have 8 bytes, and an immediate is the high word.
    Dadd "DADD" { round: Round = Round } [R2] <- [r(A).wide(2).float(), alu(B).wide(2).float()] F.commutes(0, 1);
    Dmul "DMUL" { round: Round = Round } [R2] <- [r(A).wide(2).float(), alu(B).wide(2).float()] F.commutes(0, 1);
    Dfma "DFMA" { round: Round = Round } [R2] <- [r(A).wide(2).neg(), alu(B).wide(2).neg(), alu(C).wide(2).neg()] F.commutes(0, 1);
    Dsetp "DSETP" { cmp: FCmp = Cmp, bool_: Bool = Bool } [P, PQ.optional()] <- [r(A).wide(2).float(), alu(B).wide(2).float(), p(Field::Pp).or_absent(Src::TRUE)] F;

    /// Whether the minimum or maximum of two numbers is the first one, and whether both are NaN. A NaN gives the other
    /// operand, and -0 is less than +0.
    Dextreme "DSETP" { max: bool [".MAX" ".MIN"] = Cmp } [P, PQ] <- [r(A).wide(2).float(), alu(B).wide(2).float(), p(Field::Pp).or_absent(Src::TRUE)] F;

    // Packed half.
    /// With `f32`, the sum of the low halves as a float; `half` then selects the half of the second source.
    Hadd2 "HADD2" { f32: bool [".F32"] = High, half: HalfRead = SwizzleB, bf16: bool [".BF16_V2"] = Type, ftz: bool [".FTZ"] = Ftz, sat: bool [".SAT"] = Sat }
        [R] <- [r(A).float(), alu(B).float()] if f32 || half == HalfRead::High { H } else { H.commutes(0, 1) };
    Hmul2 "HMUL2" { bf16: bool [".BF16_V2"] = Type, ftz: bool [".FTZ"] = Ftz, sat: bool [".SAT"] = Sat } [R] <- [r(A).float(), alu(B).float()] H.commutes(0, 1);
    Hfma2 "HFMA2" { bf16: bool [".BF16_V2"] = Type, zeros: HalfZeros = Ftz, relu: bool [".RELU"] = Relu, sat: bool [".SAT"] = Sat }
        [R] <- [r(A).float(), alu(B).float(), alu(C).neg()] H.commutes(0, 1);
    Hsetp2 "HSETP2" { bf16: bool [".BF16_V2"] = Type, cmp: FCmp = Cmp, ftz: bool [".FTZ"] = Ftz, bool_: Bool = Bool }
        [P, PQ.optional()] <- [r(A).float(), alu(B).float(), p(Field::Pp).or_absent(Src::TRUE)] H;
    /// The result of a comparison in each half: all ones, or 1 with `one`.
    Hset2 "HSET2" { bf16: bool [".BF16_V2"] = Type, one: bool [".BF"] = Flag, cmp: FCmp = Cmp, ftz: bool [".FTZ"] = Ftz, bool_: Bool = Bool }
        [R] <- [r(A).float(), alu(B).float(), p(Field::Pp).or_absent(Src::TRUE)] H;
    Hmnmx2 "HMNMX2" { bf16: bool [".BF16_V2"] = Type, ftz: bool [".FTZ"] = Ftz, nan: bool [".NAN"] = Mode, xor: bool [".XORSIGN"] = Flag } [R] <- [r(A).float(), alu(B).float(), p(Field::Pp)] H.commutes(0, 1);

    // Conversions.
    /// From 32 bits, at the rate of integer arithmetic.
    I2fp "I2FP.F32" { sign: Sign = SrcType, round: Round = Round } [R] <- [alu(B)] I;
    I2f "I2F" { to: FloatType = Type, from: IntType = SrcType, round: Round = Round } [result(float_registers(to))] <- [alu(B).wide(int_registers(from))] I,
        as match (to == FloatType::F64, from) {
            (false, IntType::U8 | IntType::S8) => &["I2F.S8"],
            (false, IntType::U16 | IntType::S16) => &["I2F.S16"],
            (false, IntType::U32 | IntType::S32) => &["I2F"],
            (false, IntType::U64 | IntType::S64) => &["I2F.S64"],
            (true, IntType::U8 | IntType::S8) => &["I2F.F64.S8"],
            (true, IntType::U16 | IntType::S16) => &["I2F.F64.S16"],
            (true, IntType::U32 | IntType::S32) => &["I2F.F64"],
            (true, IntType::U64 | IntType::S64) => &["I2F.F64.S64"],
        };
    F2i "F2I" { ftz: bool [".FTZ"] = Ftz, to: IntType = Type, from: FloatType = SrcType, round: IntRound = Round, ntz: bool [".NTZ"] = Mode }
        [result(int_registers(to))] <- [alu(B).wide(float_registers(from)).float()] F.narrow_if(is_half(from)),
        as match (int_registers(to) == 2, from) {
            (false, FloatType::F32) => &["F2I"],
            (false, FloatType::F64) => &["F2I.F64"],
            (false, FloatType::F16 | FloatType::Bf16) => &["F2I.F16"],
            (true, FloatType::F32) => &["F2I.S64"],
            (true, FloatType::F64) => &["F2I.S64.F64"],
            (true, FloatType::F16 | FloatType::Bf16) => &["F2I.S64.F16"],
        };
    F2f "F2F" { ftz: bool [".FTZ"] = Ftz, to: FloatType = Type, from: FloatType = SrcType, round: Round = Round, sat: bool [".SAT"] = Sat }
        [result(float_registers(to))] <- [alu(B).wide(float_registers(from)).float()] F.narrow_if(is_half(from)),
        as match (to, from) {
            (FloatType::F64, FloatType::F32 | FloatType::F64) => &["F2F.F64"],
            (FloatType::F64, FloatType::F16 | FloatType::Bf16) => &["F2F.F64.F16"],
            (_, FloatType::F64) => &["F2F.F32.F64"],
            (_, FloatType::F32) => &["F2F"],
            (FloatType::F16, _) => &["F2F.F16.BF16"],
            (FloatType::Bf16, _) => &["F2F.BF16.F16"],
            (FloatType::F32, _) => &["F2F.F32.F16"],
        };
    /// Rounding to an integral value.
    Frnd "FRND" { ftz: bool [".FTZ"] = Ftz, ty: FloatType, round: IntRound = Round }
        [result(float_registers(ty))] <- [alu(B).wide(float_registers(ty)).float()] F.narrow_if(is_half(ty)),
        as match ty {
            FloatType::F64 => &["FRND.F64"],
            FloatType::F32 => &["FRND"],
            FloatType::F16 => &["FRND.F16"],
            FloatType::Bf16 => &["FRND.BF16"],
        };
    /// Two floats, the high one first, packed as halves; for a single float, the high source is `RZ`.
    F2fp "F2FP" { sat: bool [".SATFINITE"] = Sat, relu: bool [".RELU"] = Relu, bf16: bool [".BF16" ".F16"] = Type, round: Round = Round } [R] <- [r(A).float(), alu(B).float()] F,
        as &["F2FP.PACK_AB"];

    /// Two floats, converted to a pair of narrow floats in the low half; the high half is that of the third source.
    F2fpNarrow "F2FP.PACK_AB_MERGE_C" { sat: bool [".SATFINITE"] = Sat, relu: bool [".RELU"] = Relu, to: QuarterType = Type } [R] <- [r(A).float(), alu(B).float(), r(C)] F;
    /// The same for two halves.
    F2fpNarrowHalf "F2FP.UNPACK_B_MERGE_C" { sat: bool [".SATFINITE"] = Sat, relu: bool [".RELU"] = Relu, to: QuarterType = Type } [R] <- [alu(B), r(C)] I;
    /// Unpacks the pair of narrow floats in the low half to halves.
    F2fpUnpack "F2FP.UNPACK_B" { relu: bool [".RELU"] = Relu, from: QuarterType = SrcType } [R] <- [alu(B)] I;
    /// Unpacks the pair in the low byte.
    F2fpUnpackByte "F2FP.UNPACK_B.BYTE" { relu: bool [".RELU"] = Relu } [R] <- [alu(B)] I, as &["F2FP.UNPACK_B.E2M1"];
    /// Unpacks a pair of scale factors to bf16.
    F2fpUnpackScale "F2FP.UNPACK_B.E8" [R] <- [alu(B)] I;
    /// Converts two floats to scale factors, the high one first.
    F2fpScale "F2FP.PACK_AB_MERGE_C.E8" { sat: bool [".SATFINITE"] = Sat, to: ScaleType = Type, round: ScaleRound = Round } [R] <- [r(A).float(), alu(B).float(), r(C)] F,
        as &["F2FP.PACK_AB_MERGE_C"];
    /// Converts two bf16 to scale factors.
    F2fpScaleHalf "F2FP.UNPACK_B_MERGE_C.E8" { sat: bool [".SATFINITE"] = Sat, to: ScaleType = Type, bf16: bool [".BF16"] = SrcType, round: ScaleRound = Round } [R] <- [alu(B), r(C)] I,
        as &["F2FP.UNPACK_B_MERGE_C"];
    /// Converts two floats to halves, rounded with the random bits of the third source.
    F2fpRandom "F2FP.RS" { sat: bool [".SATFINITE"] = Sat, relu: bool [".RELU"] = Relu, bf16: bool [".BF16" ".F16"] = Type } [R] <- [r(A).float(), alu(B).float(), r(C)] F,
        as &["F2FP.PACK_AB.RS"];
    /// Converts two floats to narrow ones, rounded with random bits. The third source contains the random bits, or
    /// random bits and a pair of results.
    F2fpNarrowRandom "F2FP.PACK_AB_MERGE_C.RS" { sat: bool [".SATFINITE"] = Sat, relu: bool [".RELU"] = Relu, to: QuarterType = Type, round: RandomRound = Round } [R] <- [r(A).float(), alu(B).float(), r(C)] F,
        as &["F2FP.PACK_AB_MERGE_C"];
    /// Rounds a float to the precision of tensor cores.
    F2fpTf32 "F2FP.PACK_B" { sat: bool [".SATFINITE"] = Sat, relu: bool [".RELU"] = Relu, round: Round = Round } [R] <- [alu(B).float()] F;

    // Uniform datapath.
    /// Loads a constant into uniform registers.
    Uldc "ULDC" { wide: bool [".64"] = Size } [uniform_result(registers_if(wide, 2))] <- [constant().wide(registers_if(wide, 2))] UNIFORM, as &["LDCU", "ULDC"];
    /// Loads the handle of a variable from a word of constant bank 0 whose offset a linker assigns.
    LoadHandle "ULDC.HANDLE" { link: Link } [UR] <- [] UNIFORM, as &["LDCU", "ULDC"];
    Umov "UMOV" [UR] <- [uniform_or_imm(B)] UNIFORM;
    /// (a << shift) + b.
    Ulea "ULEA" { shift: u8 = Imm2 } [UR, UP.optional()] <- [uniform(A), uniform_or_imm(B)] UNIFORM;
    /// High word of (a << shift), a in the first and third source, plus b; `x` takes a carry.
    UleaHi "ULEA.HI" { x: bool [".X"] = Extend, shift: u8 = Imm2 } [UR] <- [uniform(A), uniform_or_imm(B), uniform(C), uniform_carry(Field::Pp).only(x)] UNIFORM;
    /// The same for a sign-extended a.
    UleaHiSx "ULEA.HI.SX32" { x: bool [".X"] = Extend, shift: u8 = Imm2 } [UR] <- [uniform(A), uniform_or_imm(B), uniform_carry(Field::Pp).only(x)] UNIFORM;
    /// Sum of three with a carry out; with `x` also two carries in, and a negated source is complemented.
    Uiadd3 "UIADD3" { x: bool [".X"] = Extend } [UR, UP.optional()]
        <- [uniform(A).neg_or_not(x), uniform_or_imm(B).neg_or_not(x), uniform(C).neg_or_not(x), uniform_carry(Field::Pp).only(x), uniform_carry(Field::Pr).only(x)]
        Facts { modifiers: negation(x), ..UNIFORM };
    /// Low 32 bits of a*b+c.
    Uimad "UIMAD" { sign: Sign = Signed } [UR] <- [uniform(A), uniform_or_imm(B), uniform(C)] UNIFORM;
    /// a*b+c, 32x32+64.
    UimadWide "UIMAD.WIDE" { sign: Sign = Signed } [uniform_result(2)] <- [uniform(A), uniform_or_imm(B), uniform(C).wide(2)] UNIFORM;
    /// Any function of three bits; bit `4a+2b+c` of `lut`.
    Ulop3 "ULOP3" { lut: u8 = Lut } [UR] <- [uniform(A), uniform_or_imm(B), uniform(C)] UNIFORM;
    /// Funnel shift of low, amount, high; `hi` gives the high word.
    Ushf "USHF" { right: bool [".R" ".L"] = Right, wrap: bool [".W"] = Wrap, ty: ShfType = Type, hi: bool [".HI"] = High }
        [UR] <- [uniform(A), uniform_or_imm(B), uniform(C)] UNIFORM;
    /// Selects bytes of the first and third source by the nibbles of the second.
    Uprmt "UPRMT" [UR] <- [uniform(A), uniform_or_imm(B), uniform(C)] UNIFORM;
    /// Sign extension from a bit; with `wrap`, the bit number is taken modulo 32.
    Usgxt "USGXT" { wrap: bool [".W"] = Wrap, sign: Sign = Signed } [UR] <- [uniform(A), uniform_or_imm(B)] UNIFORM;
    /// A mask of b ones starting at bit a.
    Ubmsk "UBMSK" { wrap: bool [".W"] = Wrap } [UR] <- [uniform(A), uniform_or_imm(B)] UNIFORM;
    /// The first source if the predicate is true, otherwise the second.
    Usel "USEL" [UR] <- [uniform(A), uniform_or_imm(B), up(Field::Pp)] UNIFORM;
    /// Comparison combined with a predicate.
    Uisetp "UISETP" { cmp: ICmp = Cmp, sign: Sign = Signed, bool_: Bool = Bool, ex: bool [".EX"] = Extend }
        [UP] <- [uniform(A), uniform_or_imm(B), up(Field::Pp).or_absent(Src::TRUE), up(Field::Pr).or_absent(Src::TRUE)]
        UNIFORM;
    S2ur "S2UR" { sr: Sr = Special } [UR] <- [] Facts::special(sr).uniform();
    /// The value of the threads that execute it together and whose guard is true; they all have the same value. The
    /// result belongs to these threads: threads that execute it later overwrite it.
    R2ur "R2UR" [UR] <- [r(RA)] Facts::WARP.uniform();

    // Memory. An address is R2 (64-bit), R (32-bit spaces) or `Zero`. The descriptor is the UR pair of the global
    // window, or `Zero` if the target has none.
    Ldg "LDG.E" { access: Access = Size } [result(size_registers(access.size))] <- [address(), descriptor()]
        Facts::access(Space::Global, Kind::Load, access.order, access.offset, size_bytes(access.size)), as &["LDG"];
    Stg "STG.E" { access: Access = Size } [] <- [address(), descriptor(), data(size_registers(access.size))]
        Facts::access(Space::Global, Kind::Store, access.order, access.offset, size_bytes(access.size)), as &["STG"];
    /// Reduces the values that several devices have at a multimem address.
    Ldgmc "LDGMC" { op: AtomOp = Op, ty: ManyInt = Type, order: Order, offset: i32 = Offset } [result(many_int_registers(ty))] <- [address(), uniform(At::In(Field::UrBase))]
        Facts::access(Space::Global, Kind::Load, order, offset, 4 * many_int_registers(ty));
    LdgmcFloat "LDGMC.F" { op: ManyOp = Op, ty: ManyFloat = Type, order: Order, offset: i32 = Offset } [result(many_float_registers(ty))] <- [address(), uniform(At::In(Field::UrBase))]
        Facts::access(Space::Global, Kind::Load, order, offset, 4 * many_float_registers(ty));
    /// Loads eight registers, in two halves. The size in the access is that of one register.
    LdgWide "LDG.E.256" { access: Access = Size, level_two: EvictL2 = Scope } [result(4), UPPER4] <- [address(), descriptor()]
        Facts::access(Space::Global, Kind::Load, access.order, access.offset, 32), as &["LDG.256"];
    /// Stores the registers whose bits are set.
    StgWide "STG.E.256" { access: Access = Size, level_two: EvictL2 = Scope, mask: u8 = Mask } [] <- [address(), descriptor(), r(RB).wide(4), r(RC).wide(4)]
        Facts::access(Space::Global, Kind::Store, access.order, access.offset, 32), as &["STG.256"];
    /// Generic accesses.
    Ld "LD.E" { access: Access = Size } [result(size_registers(access.size))] <- [address(), descriptor()]
        Facts::access(Space::Generic, Kind::Load, access.order, access.offset, size_bytes(access.size)), as &["LD"];
    St "ST.E" { access: Access = Size } [] <- [address(), descriptor(), data(size_registers(access.size))]
        Facts::access(Space::Generic, Kind::Store, access.order, access.offset, size_bytes(access.size)), as &["ST"];
    Lds "LDS" { size: MemSize = Size, order: Order, scale: AddressScale = Scale, offset: i32 = Offset } [result(size_registers(size))] <- [r(RA), uniform_base()]
        Facts::access(Space::Shared, Kind::Load, order, offset, size_bytes(size)).scaled(scale);
    Sts "STS" { size: MemSize = Size, order: Order, scale: AddressScale = Scale, offset: i32 = Offset } [] <- [r(RA), uniform_base(), data(size_registers(size))]
        Facts::access(Space::Shared, Kind::Store, order, offset, size_bytes(size)).scaled(scale);
    /// The address is relative to R1 if it is the register R1. PTX has no memory orders for local memory, because it is
    /// private to the thread.
    Ldl "LDL" { size: MemSize = Size, offset: i32 = Offset } [result(size_registers(size))] <- [r(RA)]
        Facts::access(Space::Local, Kind::Load, Order::Weak, offset, size_bytes(size));
    Stl "STL" { size: MemSize = Size, offset: i32 = Offset } [] <- [r(RA), data(size_registers(size))]
        Facts::access(Space::Local, Kind::Store, Order::Weak, offset, size_bytes(size));
    /// Stores a spilled value to its slot in the stack frame; the address is R1.
    Spill "SPILL" { size: MemSize = Size, offset: i32 = Offset } [] <- [r(RA), data(size_registers(size))]
        Facts::access(Space::Local, Kind::Store, Order::Weak, offset, size_bytes(size)), as &["STL"];
    /// Loads a spilled value from its slot.
    Fill "FILL" { size: MemSize = Size, offset: i32 = Offset } [result(size_registers(size))] <- [r(RA)]
        Facts::access(Space::Local, Kind::Load, Order::Weak, offset, size_bytes(size)), as &["LDL"];
    /// `c[bank][index+offset]`.
    Ldc "LDC" { size: MemSize = Size, bank: u8 = CBank, offset: i32 = COffset } [result(size_registers(size))] <- [r(RA)]
        Facts::access(Space::Constant, Kind::Load, Order::Constant, offset, size_bytes(size));
    /// Global, or generic if `generic`. Newer targets have separate names for floats. The predicate is true if the
    /// operation was executed: generic operations that shared memory does not support have no effect there.
    Atom "ATOM.E" { generic: bool [".GENERIC"], op: AtomOp = Op, ty: AtomType = Type, order: Order = Order, offset: i32 = Offset }
        [result(atom_registers(ty)), P.optional()] <- [address(), descriptor(), r(RB).wide(atom_registers(ty))]
        Facts::access(global_or_generic(generic), Kind::Update, order, offset, 4 * atom_registers(ty)),
        as match (generic, is_float(ty)) {
            (true, true) => &["ATOM.F", "ATOM"],
            (true, false) => &["ATOM"],
            (false, true) => &["ATOMG.F", "ATOMG"],
            (false, false) => &["ATOMG"],
        };
    /// Compare-and-swap: the expected value, then the new one.
    AtomCas "ATOM.E.CAS" { generic: bool [".GENERIC"], size: CasSize = Type, order: Order = Order, offset: i32 = Offset }
        [result(cas_registers(size)), P.optional()] <- [address(), descriptor(), r(RB).wide(cas_registers(size)), r(RC).wide(cas_registers(size))]
        Facts::access(global_or_generic(generic), Kind::Update, order, offset, 4 * cas_registers(size)), as if generic { &["ATOM.CAS"] } else { &["ATOMG.CAS"] };
    /// Without a result; global memory only.
    Red "RED.E" { op: AtomOp = Op, ty: AtomType = Type, order: Order = Order, offset: i32 = Offset } [] <- [address(), descriptor(), r(RB).wide(atom_registers(ty))]
        Facts::access(Space::Global, Kind::Update, order, offset, 4 * atom_registers(ty)), as if is_float(ty) { &["REDG.F", "RED"] } else { &["REDG", "RED"] };
    Atoms "ATOMS" { op: AtomOp = Op, ty: AtomType = Type, order: Order, offset: i32 = Offset }
        [result(atom_registers(ty))] <- [r(RA), uniform_base(), r(RB).wide(atom_registers(ty))] Facts::access(Space::Shared, Kind::Update, order, offset, 4 * atom_registers(ty));
    /// Adds one for each thread. The threads with the same address take one operation together. The result is not the
    /// old value of a thread, so nothing reads it.
    AtomsCount "ATOMS.POPC.INC.32" { order: Order, offset: i32 = Offset }
        [R] <- [r(RA), uniform(At::In(Field::UrBase))] Facts::access(Space::Shared, Kind::Update, order, offset, 4), as &["ATOMS.POPC.INC"];
    AtomsCas "ATOMS.CAS" { size: CasSize = Type, order: Order, offset: i32 = Offset }
        [result(cas_registers(size))] <- [r(RA), uniform_base(), r(RB).wide(cas_registers(size)), r(RC).wide(cas_registers(size))]
        Facts::access(Space::Shared, Kind::Update, order, offset, 4 * cas_registers(size));
    /// Whether a generic address points into a space.
    Qspc "QSPC.E" { space: QuerySpace = Mode } [P] <- [address()] I, as &["QSPC"];
    /// An operation on a cache line.
    Line "CCTL.E" { op: LineOp = Op, offset: i32 = Offset } [] <- [address()] Facts::FENCE, as &["CCTL"];
    /// A copy from global to shared memory, which is complete when the thread has waited for it: destination and
    /// source. If the predicate is false, the destination is cleared; with `fill`, the low bits of the source's address
    /// give the number of trailing bytes to clear.
    Ldgsts "LDGSTS.E" { bypass: bool [".BYPASS"] = Bypass, prefetch: Prefetch = Prefetch, size: MemSize = Size, fill: bool [".ZFILL"] = ZeroFill, to: i32 = Imm2, from: i32 = Offset }
        [] <- [r(RC), address(), descriptor(), p(Field::Pp).or_absent(Src::TRUE)]
        Facts::access(Space::Shared, Kind::Copy, Order::Weak, to, size_bytes(size)), as &["LDGSTS"];
    /// Ends a group of copies.
    Ldgdepbar "LDGDEPBAR" [] <- [] Facts::FENCE;
    /// Waits for all groups except the latest ones.
    Depbar "DEPBAR.LE" { but: u8 = Imm2 } [] <- [] Facts::FENCE;
    // mbarrier objects. An address is a register and a uniform register. It is in the shared memory of the block or, if
    // the top byte says so, of another block of the cluster.
    /// Sets the words of an object.
    SyncsExch "SYNCS.EXCH.64" { offset: i32 = Offset } [] <- [uniform(At::In(Field::UrBase)), uniform(At::In(Field::URb)).wide(2)] Facts::UNIFORM_FENCE, as &["SYNCS.EXCH"];
    /// Arrivals and announced bytes; returns the state before them.
    SyncsArrive "SYNCS.ARRIVE.TRANS64" { mode: ArriveMode = Flag, drop: bool [".OPTOUT"] = Flag3, what: Arrival = Mode, offset: i32 = Offset }
        [result(2).optional()] <- [r(RA), uniform(At::In(Field::UrBase)), data(1)] Facts::FENCE, as &["SYNCS.ARRIVE"];
    /// Whether the phase in the top bit of a state or parity has completed; with `wait`, waits for it for a limited
    /// time.
    SyncsPhasechk "SYNCS.PHASECHK.TRANS64" { wait: bool [".TRYWAIT"] = Mode, offset: i32 = Offset }
        [P] <- [r(RA), uniform(At::In(Field::UrBase)), data(1)] Facts::SYNC, as &["SYNCS.PHASECHK"];
    /// Invalidates an object.
    SyncsInvalidate "SYNCS.CCTL.IV" { offset: i32 = Offset } [] <- [r(RA), uniform(At::In(Field::UrBase))] Facts::FENCE, as &["SYNCS.CCTL"];
    /// Arrives when the thread's copies are complete.
    ArrivesCopies "ARRIVES.LDGSTSBAR.64" { count: CopiesArrive = Flag, offset: i32 = Offset } [] <- [r(RA), uniform(At::In(Field::UrBase))]
        Facts::FENCE, as &["ARRIVES.LDGSTSBAR"];
    /// One thread arrives at an object of sm_80; returns the state before.
    AtomsArrive "ATOMS.ARRIVE.64" { offset: i32 = Offset } [result(2).optional()] <- [r(RA), uniform(At::In(Field::UrBase))]
        Facts::FENCE, as &["ATOMS.ARRIVE"];

    // Clusters.
    ClusterArrive "UCGABAR_ARV" [] <- [] Facts::UNIFORM_FENCE;
    ClusterWait "UCGABAR_WAIT" [] <- [] Facts { waits: true, ..Facts::UNIFORM_FENCE };
    /// Stores to a block of the cluster. The pair is the address, and the address of the mbarrier object that counts
    /// the bytes.
    Stas "STAS" { size: MemSize = Size } [] <- [r(RA).wide(2), uniform(At::In(Field::UrBase)), data(size_registers(size))] Facts::FENCE;
    Redas "REDAS" { op: AtomOp = Op, ty: AtomType = Type } [] <- [r(RA).wide(2), uniform(At::In(Field::UrBase)), data(atom_registers(ty))] Facts::FENCE;

    // Bulk and tensor copies. In shared memory there are two addresses: that of the data and that of the mbarrier
    // object. Sizes are in units of 16 bytes; the bits above the size are the blocks of the cluster that receive the
    // bytes, or the bytes of each unit that are copied.
    BulkCopy "UBLKCP" { to: BulkPlace = Mode, from: BulkPlace = Mode2, multicast: bool [".MULTICAST"] = Flag, masked: bool [".DST_G_BYTE_MASK"] = Mask }
        [] <- [uniform(At::In(Field::UrBase)).wide(2), uniform(At::In(Field::Ur)).one_or_two(), uniform(At::In(Field::URb)), policy()] Facts::UNIFORM_FENCE;
    BulkReduce "UBLKRED" { to: BulkPlace = Mode, op: AtomOp = Op, ty: BulkType = Type }
        [] <- [uniform(At::In(Field::UrBase)).wide(2), uniform(At::In(Field::Ur)), uniform(At::In(Field::URb)), policy()] Facts::UNIFORM_FENCE;
    BulkPrefetch "UBLKPF.L2" [] <- [uniform(At::In(Field::Ur)).wide(2), uniform(At::In(Field::URb)), policy()] Facts::UNIFORM_FENCE, as &["UBLKPF"];
    /// Loads a tile: the addresses of the tile and of the mbarrier object, and coordinates. Then the tensor map,
    /// offsets in an image and receiving blocks, and a cache policy.
    TensorLoad "UTMALDG" { dims: Dims = Dims, mode: TensorMode = Mode, multicast: bool [".MULTICAST"] = Flag, pair: bool [".2CTA"] = Flag2 }
        [] <- [uniform(At::In(Field::UrBase)).wide(tile_coordinates(dims, mode) + 2), uniform(At::In(Field::Ur)).wide(2), extra(), policy()] Facts::UNIFORM_FENCE;
    TensorStore "UTMASTG" { dims: Dims = Dims, mode: TensorMode = Mode }
        [] <- [uniform(At::In(Field::UrBase)).wide(tile_coordinates(dims, mode) + 1), uniform(At::In(Field::Ur)).wide(2), policy()] Facts::UNIFORM_FENCE;
    TensorReduce "UTMAREDG" { dims: Dims = Dims, mode: TensorMode = Mode, op: AtomOp = Op }
        [] <- [uniform(At::In(Field::UrBase)).wide(dims as u8 + 2), uniform(At::In(Field::Ur)).wide(2), policy()] Facts::UNIFORM_FENCE;
    TensorPrefetch "UTMAPF.L2" { dims: Dims = Dims, mode: TensorMode = Mode }
        [] <- [uniform(At::In(Field::UrBase)).wide(tile_coordinates(dims, mode)), uniform(At::In(Field::Ur)).wide(2), extra(), policy()] Facts::UNIFORM_FENCE, as &["UTMAPF"];
    /// Ends a group of bulk copies.
    BulkFlush "UTMACMDFLUSH" [] <- [] Facts::UNIFORM_FENCE;
    /// Requests a cluster that has not started: the addresses of the response and of an mbarrier object.
    NextWork "UGETNEXTWORKID" { broadcast: bool [".BROADCAST" ".SELFCAST"] = Mode } [] <- [uniform(At::In(Field::UrBase)).wide(2)] Facts::UNIFORM_FENCE;
    /// Clears shared memory, in units of eight bytes.
    ClearBlock "UMEMSETS.64" [] <- [uniform(At::In(Field::UrBase)), uniform(At::In(Field::URc))] Facts::UNIFORM_FENCE, as &["UMEMSETS"];
    /// Loads a tensor map into its cache, or invalidates it there.
    TensorMap "UTMACCTL" { op: MapOp = Op } [] <- [uniform(At::In(Field::UrBase)).wide(2)] Facts::UNIFORM_FENCE;
    Membar "MEMBAR" { scope: MembarScope } [] <- [] Facts::FENCE;
    /// Orders accesses of threads with those of the proxy of asynchronous copies.
    FenceView "FENCE.VIEW.ASYNC" { of: ViewOf = Mode } [] <- [] Facts::FENCE;
    Errbar "ERRBAR" [] <- [] Facts::FENCE;
    Cctl "CCTL" { op: CctlOp } [] <- [] Facts::FENCE, as &["CCTL.IVALL"];

    // Warp.
    /// The value of another lane, and whether that lane is in range; the sources are value, lane and clamp.
    Shfl "SHFL" { mode: ShflMode = Mode } [R, P.optional()] <- [r(RA), r_or_imm(Field::Rb, Field::Imm2, 0x1f), r_or_imm(Field::Rc, Field::Imm3, 0x1f1f)] Facts::WARP;
    /// The ballot, and the result of the vote.
    Vote "VOTE" { mode: VoteMode = Mode } [R, P.optional()] <- [p(Field::Pp)] Facts::WARP;
    /// The vote of a predicate among the threads that execute it together.
    Voteu "VOTEU" { mode: VoteMode = Mode } [UP] <- [p(Field::Pp)] Facts::WARP.uniform();
    /// The mask of threads with the same value, and whether all threads have it.
    Match "MATCH" { mode: MatchMode, wide: bool [".U64"] = Wide } [R, P.optional()] <- [r(RA).wide(registers_if(wide, 2))] Facts::WARP,
        as if mode == MatchMode::All { &["MATCH.ALL"] } else { &["MATCH.ANY"] };
    /// Only the minimum and the maximum have a sign.
    Redux "REDUX" { op: ReduxOp = Op, signed: bool [".S32"] = Signed } [UR] <- [r(RA)] Facts::WARP.uniform();
    /// A minimum or maximum of floats, of their magnitudes, or of integers.
    Credux "CREDUX" { op: FloatRedux = Op, ty: ExtremeType = Type, nan: bool [".NAN"] = Mode } [UR] <- [r(RA)] Facts::WARP.uniform();
    /// A predicate that is true for one of the threads that execute it together, and the lane of that thread.
    Elect "ELECT" [P, UR.optional()] <- [p(Field::Pp).or_absent(Src::TRUE)] Facts::WARP;
    /// Waits for the threads of a mask. `exclusive`: groups of threads with different masks continue separately.
    /// Without it, they may stay together.
    Warpsync "WARPSYNC" { exclusive: bool [".EXCLUSIVE"] = Mode } [] <- [r_or_imm(Field::Rb, Field::Imm32, u32::MAX)] Facts::SYNC.convergent();
    /// With `object`, the thread sleeps until an event of an mbarrier object.
    Nanosleep "NANOSLEEP" { object: bool [".SYNCS"] = Mode2 } [] <- [alu(B)] Facts::SYNC.pinned();

    // Textures and surfaces. The handle is a word of constant bank 0 or in a register. On targets that support neither,
    // it is in uniform registers.
    /// Results: the four channels, and whether some texels are not resident. `texture_extra` describes the operands
    /// after the coordinates.
    Tex "TEXTURE" { read: TexRead, level: TexLevel, dims: TexDims, offsets: bool [".AOFFI"], compare: bool [".DC"], handle: HandleAt, word: i32 }
        [R2, UPPER2, P.optional()] <- [
            r(RA).wide(texture_place(read, dims, offsets, handle == HandleAt::Register)),
            r(RB).wide(texture_extra(read, dims, level, [offsets, compare, handle == HandleAt::Register])),
            descriptor(),
        ] Facts::FENCE, as &["TEX"];
    /// A texture read with derivatives that `TXD` cannot do: the threads of each quad read together for one thread
    /// after the other. Results: the registers, predicate and barrier that these threads overwrite; then the results of
    /// `TEXTURE`. Operands: the layer, the coordinates, the handle in a register, the offsets and the reference value,
    /// as far as present; and two derivatives of each coordinate.
    TexDerive "TEXTURE_BY_QUADS" { dims: TexDims, offsets: bool [".AOFFI"], compare: bool [".DC"], handle: HandleAt, word: i32 }
        [result(DERIVE_REGISTERS), P, B_RESULT, R2, UPPER2, P.optional()] <- [
            one().only(has_layer(dims)), one(), one().only(coordinates(dims) > 1), one().only(coordinates(dims) > 2),
            one().only(handle == HandleAt::Register), one().only(offsets), one().only(compare),
            one(), one(), one().only(coordinates(dims) > 1), one().only(coordinates(dims) > 1),
            one().only(coordinates(dims) > 2), one().only(coordinates(dims) > 2),
        ] NEITHER_GUARDED_NOR_MOVED;
    /// Queries the width, height or depth of a level. The level follows the handle if the handle is in a register.
    Txq "TXQ" { mask: u8, handle: HandleAt, word: i32 } [R] <- [r(RA).wide(registers_if(handle == HandleAt::Register, 2)), descriptor()] Facts::FENCE;
    /// Surface load. Operands: coordinates, and a handle in a register.
    Suld "SULD" { evict: Evict = Evict, dims: SurfDims = Dims, size: MemSize = Size, order: Order = Order, clamp: SurfClamp = Clamp, handle: HandleAt, word: i32 }
        [result(size_registers(size))] <- [r(RA).wide(surface_coordinates(dims)), r(RC), descriptor()] Facts::FENCE;
    Sust "SUST" { evict: Evict = Evict, dims: SurfDims = Dims, size: MemSize = Size, order: Order = Order, clamp: SurfClamp = Clamp, handle: HandleAt, word: i32 }
        [] <- [r(RA).wide(surface_coordinates(dims)), r(RC), descriptor(), r(RB).wide(size_registers(size))] Facts::FENCE;
    /// Surface store with conversion to the format of the surface.
    SustElements "SUST.P" { evict: Evict = Evict, dims: SurfDims = Dims, size: MemSize, order: Order = Order, clamp: SurfClamp = Clamp, handle: HandleAt, word: i32 }
        [] <- [r(RA).wide(surface_coordinates(dims)), r(RC), descriptor(), r(RB).wide(size_registers(size))] Facts::FENCE;
    /// The first coordinate counts bytes or, with `elements`, elements.
    Sured "SURED" { elements: bool [".P" ".BA"], dims: SurfDims = Dims, op: AtomOp = Op, ty: SurfType = Type, clamp: SurfClamp = Clamp, handle: HandleAt, word: i32 }
        [] <- [r(RA).wide(surface_coordinates(dims)), r(RC), descriptor(), r(RB).wide(surface_operand(ty))] Facts::FENCE;

    // Matrices whose elements are distributed over the threads of the warp.
    /// Loads matrices of 8 by 8 halves from shared memory; each thread supplies the address of a row.
    Ldsm "LDSM.16" { layout: MatrixLayout = Mode, count: MatrixCount = Size, offset: i32 = Offset } [result(matrices(count))] <- [r(RA), uniform_base()]
        Facts::matrix(Kind::Load, offset), as &["LDSM"];
    Stsm "STSM.16" { layout: MatrixLayout = Mode, count: MatrixCount = Size, offset: i32 = Offset } [] <- [r(RA), uniform_base(), data(matrices(count))]
        Facts::matrix(Kind::Store, offset), as &["STSM"];
    /// Loads matrices of bytes. Those of 16 by 16 take two registers each.
    LdsmBytes "LDSM.BYTES" { format: ByteFormat = Type, layout: ByteLayout = Mode, count: MatrixCount = Size, offset: i32 = Offset }
        [result(byte_matrices(count, layout))] <- [r(RA), uniform_base()] Facts::matrix(Kind::Load, offset), as &["LDSM"];
    /// Stores matrices of 16 by 8 bytes, transposed.
    StsmBytes "STSM.BYTES" { format: StoreFormat = Type, layout: StoreLayout = Mode, count: MatrixCount = Size, offset: i32 = Offset } [] <- [r(RA), uniform_base(), data(matrices(count))]
        Facts::matrix(Kind::Store, offset), as &["STSM"];
    /// Transposes a matrix.
    Movm "MOVM.16.MT88" [R] <- [r(RA)] Facts::WARP, as &["MOVM"];
    /// a*b+c of halves or bf16; the sum is in floats or, without `f32`, in pairs of halves.
    Hmma "HMMA" { shape: HalfShape = Size, f32: bool [".F32" ".F16"] = Type, bf16: bool [".BF16"] = SrcType }
        [result(sums(f32))] <- [r(RA).wide(by_depth(shape == HalfShape::M16n8k8, 4)), r(RB).wide(by_depth(shape == HalfShape::M16n8k8, 2)), r(RC).wide(sums(f32))] Facts::WARP;
    HmmaTf32 "HMMA.TF32" { shape: Tf32Shape = Size, f32: bool [".F32" ".F16"] = Type }
        [result(sums(f32))] <- [r(RA).wide(by_depth(shape == Tf32Shape::M16n8k4, 4)), r(RB).wide(by_depth(shape == Tf32Shape::M16n8k4, 2)), r(RC).wide(sums(f32))] Facts::WARP;
    Imma "IMMA" { shape: ByteShape = Size, a_signed: bool [".S8" ".U8"] = SrcType, b_signed: bool [".S8" ".U8"] = SrcType2, sat: bool [".SAT"] = Sat }
        [result(rows(shape == ByteShape::M8n8k16))] <- [
            r(RA).wide(fragment([1, 2, 4], shape as usize)), r(RB).wide(fragment([1, 1, 2], shape as usize)), r(RC).wide(rows(shape == ByteShape::M8n8k16)),
        ] Facts::WARP;
    ImmaNibbles "IMMA.S4" { shape: NibbleShape = Size, a_signed: bool [".S4" ".U4"] = SrcType, b_signed: bool [".S4" ".U4"] = SrcType2, sat: bool [".SAT"] = Sat }
        [result(rows(shape == NibbleShape::M8n8k32))] <- [
            r(RA).wide(fragment([1, 2, 4], shape as usize)), r(RB).wide(fragment([1, 1, 2], shape as usize)), r(RC).wide(rows(shape == NibbleShape::M8n8k32)),
        ] Facts::WARP;
    Bmma "BMMA" { shape: BitShape = Size, op: BitOp = Op }
        [result(rows(shape == BitShape::M8n8k128))] <- [
            r(RA).wide(fragment([1, 2, 4], shape as usize)), r(RB).wide(fragment([1, 1, 2], shape as usize)), r(RC).wide(rows(shape == BitShape::M8n8k128)),
        ] Facts::WARP;
    /// Two registers of the results of four products of halves, 8 by 8 by 4.
    HmmaQuad "HMMA.884" { types: QuadTypes = Type, step: QuadStep = Mode, a_rows: bool [".ROW" ".COL"] = LayoutA, b_rows: bool [".ROW" ".COL"] = LayoutB }
        [result(2)] <- [r(RA).wide(2), r(RB).wide(2), r(RC).wide(2)] Facts::WARP;
    Dmma "DMMA" { shape: DoubleShape = Size, round: Round = Round }
        [result(2 * rows(shape == DoubleShape::M8n8k4))] <- [
            r(RA).wide(2 << shape as u8), r(RB).wide(fragment([2, 2, 4, 8], shape as usize)), r(RC).wide(2 * rows(shape == DoubleShape::M8n8k4)),
        ] Facts::WARP;
    Qmma "QMMA" { shape: QuarterShape = Size, f32: bool [".F32" ".F16"] = Type, a: QuarterType = SrcType, b: QuarterType = SrcType2 }
        [result(sums(f32))] <- [r(RA).wide(by_depth(shape == QuarterShape::M16n8k16, 4)), r(RB).wide(by_depth(shape == QuarterShape::M16n8k16, 2)), r(RC).wide(sums(f32))] Facts::WARP;
    // Sparse products: the metadata state which two of each four elements of the first factor are present.
    HmmaSp "HMMA.SP" { shape: HalfShape = Size, f32: bool [".F32" ".F16"] = Type, bf16: bool [".BF16"] = SrcType, selector: u8 = Imm2 }
        [result(sums(f32))] <- [r(RA).wide(by_depth(shape == HalfShape::M16n8k16, 4)), r(RB).wide(by_depth(shape == HalfShape::M16n8k16, 4)), r(RC).wide(sums(f32)), r(RE)] Facts::WARP;
    HmmaSpTf32 "HMMA.SP.TF32" { shape: HalfShape = Size, f32: bool [".F32" ".F16"] = Type, selector: u8 = Imm2 }
        [result(sums(f32))] <- [r(RA).wide(by_depth(shape == HalfShape::M16n8k8, 4)), r(RB).wide(by_depth(shape == HalfShape::M16n8k8, 4)), r(RC).wide(sums(f32)), r(RE)] Facts::WARP;
    ImmaSp "IMMA.SP" { shape: ByteShape = Size, a_signed: bool [".S8" ".U8"] = SrcType, b_signed: bool [".S8" ".U8"] = SrcType2, sat: bool [".SAT"] = Sat, selector: u8 = Imm2 }
        [result(4)] <- [r(RA).wide(by_depth(shape == ByteShape::M16n8k32, 4)), r(RB).wide(by_depth(shape == ByteShape::M16n8k32, 4)), r(RC).wide(4), r(RE)] Facts::WARP;
    QmmaSp "QMMA.SP" { shape: QuarterShape = Size, f32: bool [".F32" ".F16"] = Type, a: QuarterType = SrcType, b: QuarterType = SrcType2, selector: u8 = Imm2 }
        [result(sums(f32))] <- [r(RA).wide(4), r(RB).wide(4), r(RC).wide(sums(f32)), r(RE)] Facts::WARP;
    ImmaSpNibbles "IMMA.SP.S4" { shape: SparseNibbleShape = Size, a_signed: bool [".S4" ".U4"] = SrcType, b_signed: bool [".S4" ".U4"] = SrcType2, sat: bool [".SAT"] = Sat, selector: u8 = Imm2 }
        [result(4)] <- [r(RA).wide(by_depth(shape == SparseNibbleShape::M16n8k64, 4)), r(RB).wide(by_depth(shape == SparseNibbleShape::M16n8k64, 4)), r(RC).wide(4), r(RE)] Facts::WARP;
    // Products with scale factors: the metadata if A is sparse, the scale factors of A, those of B, and the selectors
    // of the bytes and threads that supply them.
    QmmaScaled "QMMA.SF" { a: QuarterType = SrcType, b: QuarterType = SrcType2 }
        [result(4)] <- [r(RA).wide(4), r(RB).wide(2), r(RC).wide(4), r(RE), r(SCALE_B), uniform(SCALE_SELECTORS)] Facts::WARP;
    QmmaSpScaled "QMMA.SF.SP" { a: QuarterType = SrcType, b: QuarterType = SrcType2, selector: u8 = Imm2 }
        [result(4)] <- [r(RA).wide(4), r(RB).wide(4), r(RC).wide(4), r(RE).wide(2), r(SCALE_B), uniform(SCALE_SELECTORS)] Facts::WARP;
    OmmaScaled "OMMA.SF" { format: ScaleFormat = Mode, blocks: ScaleBlocks = Scale }
        [result(4)] <- [r(RA).wide(4), r(RB).wide(2), r(RC).wide(4), r(RE), r(SCALE_B), uniform(SCALE_SELECTORS)] Facts::WARP;
    OmmaSpScaled "OMMA.SF.SP" { format: ScaleFormat = Mode, blocks: ScaleBlocks = Scale, selector: u8 = Imm2 }
        [result(4)] <- [r(RA).wide(4), r(RB).wide(4), r(RC).wide(4), r(RE).wide(2), r(SCALE_B), uniform(SCALE_SELECTORS)] Facts::WARP;

    // `wgmma` products: both factors are in shared memory and given by descriptors, or the rows of the first factor are
    // in registers. Then the accumulator, and whether it is added. Products run asynchronously; emission adds waits
    // before instructions that conflict with their registers. The shape numbers are those of the encoding.
    Hgmma "HGMMA" { shape: u8 = Size, registers: u8, f32: bool [".F32" ".F16"] = Type, format: GroupFormat = SrcType, layout: u8 = LayoutB }
        [result(registers)] <- [uniform(At::In(Field::URa)).wide(4), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP;
    HgmmaRegisters "HGMMA.R" { shape: u8 = Size, registers: u8, f32: bool [".F32" ".F16"] = Type, format: GroupFormat = SrcType, layout: u8 = LayoutB, negated: bool [".NEG"] = NegA }
        [result(registers)] <- [r(A).wide(4), uniform(At::In(Field::URb)).wide(4), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP, as &["HGMMA"];
    Igmma "IGMMA" { shape: u8 = Size, registers: u8, a_signed: bool [".S8" ".U8"] = SrcType, b_signed: bool [".S8" ".U8"] = SrcType2, sat: bool [".SAT"] = Sat }
        [result(registers)] <- [uniform(At::In(Field::URa)).wide(4), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP;
    IgmmaRegisters "IGMMA.R" { shape: u8 = Size, registers: u8, a_signed: bool [".S8" ".U8"] = SrcType, b_signed: bool [".S8" ".U8"] = SrcType2, sat: bool [".SAT"] = Sat }
        [result(registers)] <- [r(A).wide(4), uniform(At::In(Field::URb)).wide(4), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP, as &["IGMMA"];
    Qgmma "QGMMA" { shape: u8 = Size, registers: u8, f32: bool [".F32" ".F16"] = Type, a: QuarterType = SrcType, b: QuarterType = SrcType2, layout: u8 = LayoutB }
        [result(registers)] <- [uniform(At::In(Field::URa)).wide(4), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP;
    QgmmaRegisters "QGMMA.R" { shape: u8 = Size, registers: u8, f32: bool [".F32" ".F16"] = Type, a: QuarterType = SrcType, b: QuarterType = SrcType2, layout: u8 = LayoutB, negated: bool [".NEG"] = NegA }
        [result(registers)] <- [r(A).wide(4), uniform(At::In(Field::URb)).wide(4), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP, as &["QGMMA"];
    // The same with a sparse first factor, and a register with its metadata.
    HgmmaSparse "HGMMA.SP" { shape: u8 = Size, registers: u8, f32: bool [".F32" ".F16"] = Type, format: GroupFormat = SrcType, layout: u8 = LayoutB, selector: u8 = Imm2 }
        [result(registers)] <- [uniform(At::In(Field::URa)).wide(4), r(RE), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP;
    HgmmaSparseRegisters "HGMMA.SP.R" { shape: u8 = Size, registers: u8, f32: bool [".F32" ".F16"] = Type, format: GroupFormat = SrcType, layout: u8 = LayoutB, negated: bool [".NEG"] = NegA, selector: u8 = Imm2 }
        [result(registers)] <- [r(A).wide(4), uniform(At::In(Field::URb)).wide(4), r(RE), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP, as &["HGMMA.SP"];
    IgmmaSparse "IGMMA.SP" { shape: u8 = Size, registers: u8, a_signed: bool [".S8" ".U8"] = SrcType, b_signed: bool [".S8" ".U8"] = SrcType2, sat: bool [".SAT"] = Sat }
        [result(registers)] <- [uniform(At::In(Field::URa)).wide(4), r(RE), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP;
    IgmmaSparseRegisters "IGMMA.SP.R" { shape: u8 = Size, registers: u8, a_signed: bool [".S8" ".U8"] = SrcType, b_signed: bool [".S8" ".U8"] = SrcType2, sat: bool [".SAT"] = Sat }
        [result(registers)] <- [r(A).wide(4), uniform(At::In(Field::URb)).wide(4), r(RE), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP, as &["IGMMA.SP"];
    QgmmaSparse "QGMMA.SP" { shape: u8 = Size, registers: u8, f32: bool [".F32" ".F16"] = Type, a: QuarterType = SrcType, b: QuarterType = SrcType2, layout: u8 = LayoutB }
        [result(registers)] <- [uniform(At::In(Field::URa)).wide(4), r(RE), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP;
    QgmmaSparseRegisters "QGMMA.SP.R" { shape: u8 = Size, registers: u8, f32: bool [".F32" ".F16"] = Type, a: QuarterType = SrcType, b: QuarterType = SrcType2, layout: u8 = LayoutB, negated: bool [".NEG"] = NegA }
        [result(registers)] <- [r(A).wide(4), uniform(At::In(Field::URb)).wide(4), r(RE), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP, as &["QGMMA.SP"];
    /// Population counts of the bitwise AND.
    Bgmma "BGMMA" { shape: u8 = Size, registers: u8 }
        [result(registers)] <- [uniform(At::In(Field::URa)).wide(4), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP;
    BgmmaRegisters "BGMMA.R" { shape: u8 = Size, registers: u8 }
        [result(registers)] <- [r(A).wide(4), uniform(At::In(Field::URb)).wide(4), r(RC).wide(registers), up(Field::Pp)] Facts::GROUP, as &["BGMMA"];
    /// Ends a group of products. The last product before it in its block is marked, or an empty product is added.
    EndGroup "ENDGROUP" [] <- [] Facts::GROUP, as &["HGMMA"];
    /// Waits for all groups of products except the given number of latest ones.
    AwaitGroup "WARPGROUP.DEPBAR" { but: u8 = Imm2 } [] <- [] Facts::GROUP;
    /// A new value for the accumulator of completed products, in the same registers.
    Settle "SETTLE" { registers: u8 } [result(registers)] <- [r(RC).wide(registers)] Facts { guardable: false, ..Facts::FENCE }, as &["MOV"];
    /// States for debuggers which register holds a word of a PTX register; none if the source is zero. Emits no
    /// instruction.
    Shown "SHOWN" { register: u32, word: u8 } [] <- [r(RA)] Facts { effect: Effect::Observes, ..NO_GUARD }, as &["NOP"];
    /// The warp releases registers to its block: each thread keeps the first `count`.
    GiveRegisters "USETMAXREG.DEALLOC" { count: u32 = Imm32 } [] <- [] Facts::UNIFORM_FENCE.pinned();
    /// The warp takes registers of its block, so that each thread has `count`. Returns whether enough were free.
    TakeRegisters "USETMAXREG.TRY_ALLOC" { count: u32 = Imm32 } [UP] <- [] Facts::UNIFORM_FENCE.pinned();
    /// The warp has taken the registers: from here on each thread has `count`. Emits no instruction.
    HaveRegisters "USETMAXREG.DONE" { count: u32 } [] <- [] Facts::UNIFORM_FENCE.pinned(), as &["NOP"];
    /// Keeps registers live up to here, because a product may still read them. Emits no instruction.
    Hold "HOLD" { registers: u8 } [] <- [r(RA).wide(registers)] Facts { guardable: false, ..Facts::FENCE }, as &["NOP"];

    // Tensor memory: 128 lanes of 512 columns of 32 bits. The uniform datapath acts once for all threads that execute
    // an operation together. An address has the lane in its upper half and the column in its lower half.
    /// Allocates a number of units of 32 columns. Results: the first unit, and whether enough were free.
    TmemTake "UTCATOMSWS.FIND_AND_SET" { pair: bool [".2CTA"] = Size, align: bool [".ALIGN"] = Mode } [UR, UP] <- [uniform(At::In(Field::URb))] Facts::UNIFORM_FENCE;
    /// Frees the units whose bits are zero.
    TmemGive "UTCATOMSWS.AND" [] <- [uniform(At::In(Field::URb))] Facts::UNIFORM_FENCE, as &["UTCATOMSWS"];
    /// Allows blocks to start that wait because this block could still allocate columns.
    TmemYield "UVIRTCOUNT.DEALLOC.SMPOOL" [] <- [uniform_or_imm(A)] Facts::UNIFORM_FENCE, as &["UVIRTCOUNT"];
    TmemLoad "LDTM" { lanes: TensorLanes = Type, count: TensorCount = Size, pack: bool [".PACK16BIT"] = Mode, offset: i32 = Offset }
        [result(tensor_registers(lanes, count))] <- [uniform(At::In(Field::UrBase))] Facts::FENCE.convergent();
    /// Also computes the minimum or maximum of the loaded words.
    TmemLoadStat "LDTM.STAT" { lanes: TensorLanes = Type, count: TensorCount = Size, op: TensorStat = Op, ty: TensorStatType = SrcType, nan: bool [".NAN"] = Mode, offset: i32 = Offset }
        [result(tensor_registers(lanes, count)), STAT] <- [uniform(At::In(Field::UrBase))] Facts::FENCE.convergent();
    /// The halves of the warp load from different columns, at a distance of `behind`.
    TmemLoadHalves "LDTM.HALVES" { count: TensorCount = Size, pack: bool [".PACK16BIT"] = Mode, offset: i32 = Offset, behind: i32 }
        [result(tensor_registers(TensorLanes::Lower, count))] <- [uniform(At::In(Field::UrBase))] Facts::FENCE.convergent(), as &["LDTM"];
    /// The same, with a minimum or maximum for each half of the warp.
    TmemLoadStatHalves "LDTM.STAT.HALVES" { count: TensorCount = Size, op: TensorStat = Op, ty: TensorStatType = SrcType, nan: bool [".NAN"] = Mode, offset: i32 = Offset, behind: i32 }
        [result(tensor_registers(TensorLanes::Lower, count)), STAT] <- [uniform(At::In(Field::UrBase))] Facts::FENCE.convergent(), as &["LDTM.STAT"];
    TmemStore "STTM" { lanes: TensorLanes = Type, count: TensorCount = Size, pack: bool [".EXPAND16BIT"] = Mode, offset: i32 = Offset }
        [] <- [uniform(At::In(Field::UrBase)), data(tensor_registers(lanes, count))] Facts::FENCE.convergent();
    TmemStoreHalves "STTM.HALVES" { count: TensorCount = Size, pack: bool [".EXPAND16BIT"] = Mode, offset: i32 = Offset, behind: i32 }
        [] <- [uniform(At::In(Field::UrBase)), data(tensor_registers(TensorLanes::Lower, count))] Facts::FENCE.convergent(), as &["STTM"];
    /// Waits for loads from tensor memory.
    TmemLoaded "NOP.TENSOR" [] <- [] Facts::FENCE, as &["NOP"];
    /// Operands: A by descriptor or in tensor memory; B by descriptor; the accumulator; the address of the metadata and
    /// the instruction descriptor; the mask of disabled lanes or zero columns; whether the accumulator is added.
    TmemProduct "UTCMMA" {
        kind: TensorKind, tensor: bool [".TENSOR"], pair: bool [".2CTA"] = Size, weights: bool [".WS"] = Mode, shift: bool [".ASHIFT"] = Flag,
        collect: TensorCollect = LayoutA, buffer: u8 = LayoutB, scale: u8
    } [] <- [
        uniform(At::In(Field::URa)).wide(registers_if(!tensor, 2)), uniform(At::In(Field::URb)).wide(2), uniform(At::In(Field::URc)),
        uniform(At::In(Field::UrBase)).wide(2), uniform(At::In(Field::Ur)).wide(tensor_mask(pair, weights)), up(Field::Pp),
    ] Facts::UNIFORM_FENCE, as match (kind, tensor) {
        (TensorKind::Half, false) => &["UTCHMMA"],
        (TensorKind::Half, true) => &["UTCHMMA.TENSOR"],
        (TensorKind::Integer, false) => &["UTCIMMA"],
        (TensorKind::Integer, true) => &["UTCIMMA.TENSOR"],
        (_, false) => &["UTCQMMA"],
        (_, true) => &["UTCQMMA.TENSOR"],
    };
    /// The same with scale factors of A and B, both in tensor memory.
    TmemProductScaled "UTCMMA.SCALED" { kind: TensorKind, tensor: bool [".TENSOR"], pair: bool [".2CTA"] = Size, scales: TensorScales = Scale, collect: TensorCollect = LayoutA } [] <- [
        uniform(At::In(Field::URa)).wide(registers_if(!tensor, 2)), uniform(At::In(Field::URb)).wide(2), uniform(At::In(Field::URc)),
        uniform(At::In(Field::UrBase)).wide(2), uniform(At::In(Field::Ur)).wide(2), up(Field::Pp),
    ] Facts::UNIFORM_FENCE, as match (kind == TensorKind::Nibble, tensor) {
        (false, false) => &["UTCQMMA.SCALED"],
        (false, true) => &["UTCQMMA.SCALED.TENSOR"],
        (true, false) => &["UTCOMMA"],
        (true, true) => &["UTCOMMA.TENSOR"],
    };
    /// Copies from shared memory to tensor memory.
    TmemCopyIn "UTCCP.T.S" { pair: bool [".2CTA"] = Size, shape: TensorCopy = Type, format: TensorFormat = SrcType, offset: i32 = Offset }
        [] <- [uniform(At::In(Field::UrBase)), uniform(At::In(Field::URb)).wide(2)] Facts::UNIFORM_FENCE, as &["UTCCP"];
    /// Shifts rows down by one.
    TmemShift "UTCSHIFT.DOWN" { pair: bool [".2CTA"] = Size, offset: i32 = Offset } [] <- [uniform(At::In(Field::UrBase))] Facts::UNIFORM_FENCE, as &["UTCSHIFT"];
    /// Arrives at a barrier object when earlier operations have completed; with `multicast`, in several blocks of the
    /// cluster.
    TmemCommit "UTCBAR" { pair: bool [".2CTA"] = Size, multicast: bool [".MULTICAST"] = Flag }
        [] <- [uniform(At::In(Field::UrBase)), uniform(At::In(Field::URb)), uniform(At::In(Field::URc))] Facts::UNIFORM_FENCE;

    // Barriers and control.
    /// Barrier, number of threads, and the operand of a reduction, whose result `B2R` reads. After legalization, two
    /// registers are packed into one, with the number of threads in the upper half.
    Bar "BAR" { mode: BarMode } [] <- [r_or_imm(Field::Rb, Field::Imm2, BARRIER_BITS), r_or_imm(Field::Rb, Field::Imm3, 0xfff).or_absent(Src::ZERO), p(Field::Pp).or_absent(Src::TRUE)] Facts::SYNC.convergent();
    /// The result of a barrier reduction: a predicate or a number.
    B2r "B2R" { result: bool [".RESULT"] } [if result { P } else { R }] <- [] Facts { effect: Effect::Warp { removable: false }, ..Facts::WARP }, as &["B2R.RESULT"];
    /// Sets the convergence barrier to the active threads, which meet at the block.
    Bssy "BSSY" { target: BlockId, meeting: Meeting = Mode } [B_RESULT] <- [] Facts::FENCE.convergent();
    Bsync "BSYNC" { meeting: Meeting = Mode } [] <- [barrier()] Facts::SYNC.convergent().pinned();
    /// Releases the threads that wait at a convergence barrier for the executing threads, and lets other threads of the
    /// warp run.
    Yield "YIELD" [] <- [] Facts::SYNC.convergent().pinned();
    /// Moves the mask of a convergence barrier into a register, and clears the barrier. A function does this before it
    /// sets a barrier of its caller.
    BarrierTake "BARRIER.TAKE" { clear: bool [".CLEAR"] = Flag } [R] <- [barrier()] Facts::FENCE.convergent().pinned(), as &["BMOV.32"];
    /// Restores the mask of a convergence barrier.
    BarrierGive "BARRIER.GIVE" [B_RESULT] <- [r(At::B)] Facts::FENCE.convergent().pinned(), as &["BMOV.32"];
    /// `trap` and `brkpt`.
    Bpt "BPT" { trap: bool [".TRAP"] } [] <- [] Facts { guardable: false, ..Facts::FENCE.pinned() };
    /// Waits for the grids that this grid depends on, and makes their writes visible.
    Acqbulk "ACQBULK" [] <- [] Facts::SYNC.pinned();
    /// Lets the grids that depend on this one start.
    Preexit "PREEXIT" [] <- [] Facts::FENCE.pinned();
    /// Triggers the events of a mask.
    Pmtrig "PMTRIG" { mask: i32 = Imm32 } [] <- [] Facts::FENCE.pinned();
    Nop "NOP" [] <- [] Facts::FENCE.pinned();
}

/// The operation's text.
pub fn print(op: &Op) -> String {
    let mut out = Writer::default();
    let name = write_op(op, &mut out);
    let mut text = String::with_capacity(name.len() + out.modifiers.len() + out.numbers.len() + 2);
    text.push_str(name);
    text.push_str(&out.modifiers);
    if !out.numbers.is_empty() {
        let _ = write!(text, "{{{}}}", out.numbers);
    }
    text
}

/// The operation that [`print()`] writes as `text`.
pub fn parse(text: &str) -> Option<Op> {
    let (name, numbers) = match text.split_once('{') {
        Some((name, rest)) => (name, rest.strip_suffix('}')?),
        None => (text, ""),
    };
    let numbers = numbers
        .split(',')
        .filter(|item| !item.is_empty())
        .map(|item| item.split_once('='))
        .collect::<Option<Vec<_>>>()?;
    read_op(name, &numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_survives_a_round_trip() {
        for op in samples() {
            let text = print(&op);
            assert_eq!(parse(&text), Some(op), "{text}");
        }
    }

    #[test]
    fn texts_look_like_sass() {
        let isetp = Op::Isetp { cmp: ICmp::Lt, sign: Sign::U32, bool_: Bool::And, ex: false };
        assert_eq!(print(&isetp), "ISETP.LT.U32.AND");
        assert_eq!(print(&Op::Lea { shift: 2 }), "LEA{shift=2}");
        assert_eq!(print(&Op::Stg { access: Access::weak(MemSize::B64, 16) }), "STG.E.64{offset=0x10}");
    }

    #[test]
    fn unknown_text_is_refused() {
        for text in ["", "FOO", "IADD3.Y", "IADD3{shift=1}", "LEA{shift=300}", "LEA{shift}", "LEA{"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
