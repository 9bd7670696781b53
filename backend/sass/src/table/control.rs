//! Branches, barriers and what the warp does together.
//!
//! The letters of a shape tell immediates from registers: lane and clamp of `SHFL` ("ii", "ri", "ir", "rr"), barrier
//! and thread count of `BAR` ("" for two immediates, "ir", "r", "rr"), mask, time or target elsewhere ("", "r").

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

/// A condition besides the guard; shown unless PT.
const CONDITION: Piece = optional(PP_OPERAND);
const DISTANCE: FieldSpec = FieldSpec::new(Field::Target, 34, 48).value(Value::Signed { scale: 4 });
const TARGET: Piece = Piece::Op(Operand::Target(DISTANCE, TargetStyle::FromNext));
const NEAR_TARGET: Piece = Piece::Op(Operand::Target(
    FieldSpec::new(Field::Target, 34, 30).value(Value::Signed { scale: 4 }),
    TargetStyle::FromNext,
));
const BARRIER_OPERAND: RegOperand =
    RegOperand::new(RegFile::B, FieldSpec::new(Field::Barrier, 16, 4), Role::A);
const BARRIER: Piece = op(BARRIER_OPERAND);
const SET_BARRIER: Piece = op(RegOperand { role: Role::Dst, ..BARRIER_OPERAND });
/// What a barrier promises, from sm_100 on.
const RECONVERGENT: Piece =
    since(choice(Field::Mode, 72, 2, &["", ".RELIABLE", ".RECONVERGENT", BAD]), 1, 100);
const COUNTED: Piece = choice(Field::Mode2, 85, 2, &["", ".INC", ".DEC", BAD]);
const ADDRESS: RegOperand = counted(reg_at(Field::Ra, 24, Role::Address), Count::Fixed(2));
const NOINC: Piece = flag_from(Field::Flag, 86, &["", ".NOINC"], 1);
const NODEC: Piece = flag_from(Field::Flag, 86, &["", ".NODEC"], 1);
/// Named barriers.
const BARRIER_MODE: Piece = choice(Field::Mode, 77, 2, &[".SYNC", ".ARV", ".RED", BAD]);
const BARRIER_REDUCTION: Piece = Piece::ModIf(
    FieldSpec::new(Field::Op, 74, 2).choice(&[".POPC", ".AND", ".OR", BAD]),
    Show::When(Field::Mode, 2),
);
const DEFER: Piece = flag(Field::Flag, 80, &["", ".DEFER_BLOCKING"]);
const BARRIER_VALUE: Piece = Piece::OpIf(
    Operand::Reg(noted(
        RegOperand { spec: FieldSpec::new(Field::Pp, 87, 3), ..pred_at(Field::Pp, 87, Role::Carry) },
        Field::PpNot,
        90,
    )),
    Show::When(Field::Mode, 2),
);
const BARRIER_NUMBER: Piece = imm(Field::Imm2, 54, 4);
const BARRIER_THREADS: Piece =
    Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Imm3, 42, 12), Hex), Show::NotNeutral);
/// Parts of a thread's state beside the barriers, which have the lower numbers.
const THREAD_STATE: Piece = Piece::Op(Operand::Word(
    FieldSpec::new(Field::Special, 24, 5)
        .choice(&[
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            BAD,
            "THREAD_STATE_ENUM.0",
            "THREAD_STATE_ENUM.1",
            "THREAD_STATE_ENUM.2",
            "THREAD_STATE_ENUM.3",
            "THREAD_STATE_ENUM.4",
            "TRAP_RETURN_PC.LO",
            "TRAP_RETURN_PC.HI",
            "TRAP_RETURN_MASK",
            "MEXITED",
            "MKILL",
            "MACTIVE",
            "MATEXIT",
            "OPT_STACK",
            "API_CALL_DEPTH",
            "ATEXIT_PC.LO",
            "ATEXIT_PC.HI",
        ])
        .neutral(26),
));
const SHUFFLE: Piece = choice(Field::Mode, 58, 2, &[".IDX", ".UP", ".DOWN", ".BFLY"]);
const LANE: Piece = imm(Field::Imm2, 53, 5);
const CLAMP: Piece = imm(Field::Imm3, 40, 13);
const MASK: Piece = imm(Field::Imm32, 32, 32);
const SLEEP: [Piece; 6] = [
    since(flag(Field::Mode, 83, &["", ".CLEAR"]), 1, 80),
    since(flag(Field::Mode2, 84, &["", ".SYNCS"]), 1, 90),
    flag(Field::Flag2, 85, &["", ".WARP"]),
    flag(Field::Flag3, 86, &["", ".RAND"]),
    CONDITION,
    MASK,
];

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("NOP", 0x918, "", Control, &[]),
    Family::new("EXIT", 0x94d, "", Branch, &[choice(Field::Mode, 84, 2, &["", ".KEEPREFCOUNT", ".PREEMPTED", BAD]), flag(Field::Flag, 86, &["", ".NO_ATEXIT"]), CONDITION]),
    Family::new("BRA", 0x947, "", Branch, &[choice(Field::Mode, 32, 1, &["", ".U"]), flag(Field::Flag, 84, &["", ".ANY"]), COUNTED, CONDITION, TARGET]),
    Family::new("BRA.DIV", 0x947, "", Branch, &[
        choice_from(Field::Mode, 32, 2, &[BAD, BAD, ".DIV", ".CONV"], 2), COUNTED, CONDITION,
        op(RegOperand { neg: Some(FieldSpec::new(Field::NegA, 30, 1)), complement: Some(Field::NegA), ..ureg_at(Field::Ur, 24, Role::A) }), TARGET,
    ]).ones(one(91)).sm(75, 90),
    Family::new("BRA.U", 0x547, "", Branch, &[
        Piece::Text(".U"), CONDITION, op(noted(upred_at(Field::Pr, 24, Role::Carry), Field::PrNot, 27)), TARGET,
    ]).ones(one(32) | one(91)).sm(90, 255),
    Family::new("BRA.DIV", 0x947, "", Branch, &[choice_from(Field::Mode, 32, 2, &[BAD, BAD, ".DIV", ".CONV"], 2), COUNTED, CONDITION, op(ureg_at(Field::Ur, 24, Role::A)), TARGET])
        .ones(one(91)).sm(100, 255),
    Family::new("BRA.DIV", 0x947, "", Branch, &[choice_from(Field::Mode, 32, 2, &[BAD, BAD, ".DIV", ".CONV"], 2), COUNTED, CONDITION, TARGET]).sm(75, 75).labelled("p"),
    Family::new("BRX", 0x949, "", Branch, &[COUNTED, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::Optional))]),
    Family::new("BRXU", 0x958, "", Branch, &[COUNTED, CONDITION, Piece::Op(Operand::RegTarget(
        counted(ureg_at(Field::URa, 24, Role::Address), Count::Fixed(2)), DISTANCE, TargetStyle::Optional))]).ones(one(91)),
    Family::new("CALL.REL", 0x944, "", Branch, &[Piece::Text(".REL"), NOINC, CONDITION, TARGET]),
    Family::new("CALL.ABS", 0x943, "", Branch, &[Piece::Text(".ABS"), NOINC, CONDITION, Piece::Op(Operand::Target(DISTANCE, TargetStyle::Plain))]),
    Family::new("CALL.REL", 0x344, "", Branch, &[Piece::Text(".REL"), NOINC, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::FromNext))]).labelled("r"),
    Family::new("CALL.ABS", 0x343, "", Branch, &[Piece::Text(".ABS"), NOINC, CONDITION, op(ADDRESS)]).labelled("r"),
    Family::new("RET.REL", 0x950, "", Branch, &[Piece::Text(".REL"), NODEC, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::FromNext))]),
    Family::new("RET.ABS", 0x950, "", Branch, &[Piece::Text(".ABS"), NODEC, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::Plain))]).ones(one(85)),
    Family::new("LEPC", 0x34e, "", S2r, &[RD2]).sm(75, 89),
    Family::new("LEPC", 0x94e, "", S2r, &[RD2, EPILOGUE]).sm(90, 255),
    Family::new("BSSY", 0x945, "", Branch, &[RECONVERGENT, CONDITION, SET_BARRIER, NEAR_TARGET]),
    Family::new("BSYNC", 0x941, "", Branch, &[RECONVERGENT, CONDITION, BARRIER]),
    Family::new("BREAK", 0x942, "", Branch, &[RECONVERGENT, CONDITION, BARRIER]),
    Family::new("YIELD", 0x946, "", Branch, &[CONDITION]),
    Family::new("WARPSYNC", 0x948, "", Branch, &[CONDITION, MASK]).sm(75, 89),
    Family::new("WARPSYNC.ALL", 0x948, "", Branch, &[Piece::Text(".ALL"), CONDITION]).sm(90, 255),
    Family::new("WARPSYNC.COLLECTIVE.ALL", 0x948, "", Branch, &[Piece::Text(".COLLECTIVE"), Piece::Text(".ALL"), CONDITION, TARGET]).ones(one(86)).sm(90, 255),
    Family::new("WARPSYNC", 0x348, "", Branch, &[CONDITION, RB]).sm(75, 89).labelled("r"),
    Family::new("WARPSYNC", 0x348, "", Branch, &[choice(Field::Mode, 85, 1, &["", ".EXCLUSIVE"]), CONDITION, RA]).sm(90, 255).labelled("r"),
    Family::new("WARPSYNC.COLLECTIVE", 0x348, "", Branch, &[Piece::Text(".COLLECTIVE"), CONDITION, RA, TARGET]).ones(one(86)).sm(90, 255),
    Family::new("ENDCOLLECTIVE", 0x91b, "", Branch, &[CONDITION]).sm(90, 255),
    Family::new("BPT", 0x95c, "", Branch, &[choice_from(Field::Mode, 84, 3, &[BAD, BAD, BAD, ".TRAP", BAD, BAD, BAD, BAD], 3), Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Imm2, 34, 3), Hex), Show::NotNeutral)]),
    Family::new("NANOSLEEP", 0x95d, "", Branch, &SLEEP),
    Family::new("NANOSLEEP", 0x35d, "", Branch, &[SLEEP[0], SLEEP[1], SLEEP[2], SLEEP[3], CONDITION, RB]).labelled("r"),
    Family::new("BMOV.32.STATE", 0xf55, "", S2r, &[Piece::Text(".32"), flag(Field::Flag, 84, &["", ".CLEAR"]), SET_BARRIER, THREAD_STATE]).sm(80, 255).labelled("s"),
    Family::new("BMOV.32.STATE", 0xf56, "", S2r, &[Piece::Text(".32"), flag(Field::Flag, 84, &["", ".PQUAD"]), THREAD_STATE, BARRIER]).sm(80, 255).labelled("b"),
    Family::new("PMTRIG", 0x801, "", Control, &[CONDITION, imm(Field::Imm32, 32, 16)]),
    Family::new("BMOV.32", 0x355, "", S2r, &[Piece::Text(".32"), flag(Field::Flag, 84, &["", ".CLEAR"]), RD, op(RegOperand { spec: FieldSpec::new(Field::Barrier, 24, 4), ..BARRIER_OPERAND })]),
    Family::new("BMOV.32", 0x356, "", S2r, &[Piece::Text(".32"), flag(Field::Flag, 84, &["", ".PQUAD"]), op(RegOperand { spec: FieldSpec::new(Field::Barrier, 24, 4), role: Role::Dst, ..BARRIER_OPERAND }), RB])
        .labelled("r"),
    Family::new("BAR", 0xb1d, "", Sync, &[BARRIER_MODE, BARRIER_REDUCTION, DEFER, BARRIER_NUMBER, BARRIER_THREADS, BARRIER_VALUE]),
    Family::new("BAR", 0x91d, "", Sync, &[BARRIER_MODE, BARRIER_REDUCTION, DEFER, BARRIER_NUMBER, RB, BARRIER_VALUE]).labelled("ir"),
    Family::new("BAR", 0x51d, "", Sync, &[BARRIER_MODE, BARRIER_REDUCTION, DEFER, RB, BARRIER_THREADS, BARRIER_VALUE]).labelled("r"),
    Family::new("BAR", 0x31d, "", Sync, &[BARRIER_MODE, BARRIER_REDUCTION, DEFER, RB, RB, BARRIER_VALUE]).labelled("rr"),
    Family::new("B2R.RESULT", 0x31c, "", Load, &[Piece::Text(".RESULT"), RD, optional(PD_OPERAND)]).ones(one(78)),
    Family::new("DEPBAR.LE", 0x91a, "", Control, &[
        Piece::Text(".LE"), Piece::Op(Operand::Scoreboard(FieldSpec::new(Field::Scoreboard, 44, 3))), imm(Field::Imm2, 38, 6),
        Piece::OpIf(Operand::ScoreboardSet(FieldSpec::new(Field::Imm3, 32, 6)), Show::NotNeutral),
    ]).ones(one(47)),
    Family::new("DEPBAR", 0x91a, "", Control, &[Piece::OpIf(Operand::ScoreboardSet(FieldSpec::new(Field::Imm3, 32, 6)), Show::NotNeutral)]),
    Family::new("SHFL", 0xf89, "", Load, &[SHUFFLE, PD, RD, RA, LANE, CLAMP]).labelled("ii"),
    Family::new("SHFL", 0x589, "", Load, &[SHUFFLE, PD, RD, RA, RB, CLAMP]).labelled("ri"),
    Family::new("SHFL", 0x989, "", Load, &[SHUFFLE, PD, RD, RA, LANE, RC]).labelled("ir"),
    Family::new("SHFL", 0x389, "", Load, &[SHUFFLE, PD, RD, RA, RB, RC]).labelled("rr"),
    Family::new("ELECT", 0x82f, "", Vote, &[flag(Field::Flag, 85, &["", ".IGNOREKILL"]), PD, URD, PP]).sm(90, 255),
    Family::new("VOTE", 0x806, "", Vote, &[choice(Field::Mode, 72, 2, VOTES), optional(RD_OPERAND), PD, PP]),
    Family::new("VOTEU", 0x886, "", VoteUniform, &[choice(Field::Mode, 72, 2, VOTES), optional(ureg_at(Field::URd, 16, Role::Dst)), UPD, PP]),
    Family::new("MATCH.ANY", 0x3a1, "", Load, &[Piece::Text(".ANY"), MATCH_TYPE, RD, op(counted(RA_OPERAND, MATCH_COUNT))]).ones(7 << 81 | one(79)),
    Family::new("MATCH.ALL", 0x3a1, "", Load, &[Piece::Text(".ALL"), MATCH_TYPE, PD, RD, op(counted(RA_OPERAND, MATCH_COUNT))]),
    Family::new("REDUX", 0x3c4, "", UniformLoad, &[
        choice(Field::Op, 78, 3, &["", ".OR", ".XOR", ".SUM", ".MIN", ".MAX", BAD, BAD]), flag(Field::Signed, 73, &["", ".S32"]), URD, RA,
    ]).sm(80, 255),
];

/// The address that `LEPC` adds to the counter.
const EPILOGUE: Piece = Piece::Op(Operand::Target(
    FieldSpec::new(Field::Target, 24, 58).value(Value::Signed { scale: 1 }),
    TargetStyle::FromNext,
));
const VOTES: &[&str] = &[".ALL", ".ANY", ".EQ", BAD];
const MATCH_TYPE: Piece = flag(Field::Wide, 73, &["", ".U64"]);
const MATCH_COUNT: Count = Count::By(Field::Wide, &[1, 2]);
