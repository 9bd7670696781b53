//! Branches, barriers, and operations of a whole warp.
//!
//! The letters of a shape distinguish immediates from registers: lane and clamp of `SHFL` ("ii", "ri", "ir", "rr"),
//! barrier and thread count of `BAR` ("" for two immediates, "ir", "r", "rr"), and elsewhere a mask, a time or a target
//! ("", "r").

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

/// A condition in addition to the guard. It is printed unless it is PT.
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
/// The guarantee that a convergence barrier gives, from sm_100 on.
const RECONVERGENT: Piece =
    since(choice(Field::Mode, 72, 2, &["", ".RELIABLE", ".RECONVERGENT", BAD]), 1, 100);
const COUNTED: Piece = choice(Field::Mode2, 85, 2, &["", ".INC", ".DEC", BAD]);
/// The branch is uniform in the warp.
const TOGETHER: Piece = since(
    Piece::Mod(
        FieldSpec::new(Field::Mode, 32, 2).high(84, 1).choice(&["", ".U", BAD, BAD, BAD, ".U.ANY", BAD, BAD]),
    ),
    4,
    90,
);
/// The threads diverge or reconverge.
const APART: Piece = choice_from(Field::Mode, 32, 2, &[BAD, BAD, ".DIV", ".CONV"], 2);
const UNIFORM_ADDRESS: RegOperand = counted(ureg_at(Field::URa, 24, Role::Address), Count::Fixed(2));
const ADDRESS: RegOperand = counted(reg_at(Field::Ra, 24, Role::Address), Count::Fixed(2));
const NOINC: Piece = flag_from(Field::Flag, 86, &["", ".NOINC"], 1);
const NODEC: Piece = flag_from(Field::Flag, 86, &["", ".NODEC"], 1);
/// The operation on a named barrier.
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
/// The number of threads that meet; without it, all threads of the block. An arrival always has this operand.
const BARRIER_THREADS: Piece =
    Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Imm3, 42, 12), Hex), Show::NotNeutralOr(Field::Mode, 1));
/// Parts of a thread's state. Numbers below them are convergence barriers.
#[rustfmt::skip]
const THREAD_STATES: &[&str] = &[
    BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
    "THREAD_STATE_ENUM.0", "THREAD_STATE_ENUM.1", "THREAD_STATE_ENUM.2", "THREAD_STATE_ENUM.3", "THREAD_STATE_ENUM.4",
    "TRAP_RETURN_PC.LO", "TRAP_RETURN_PC.HI", "TRAP_RETURN_MASK", "MEXITED", "MKILL", "MACTIVE", "MATEXIT", "OPT_STACK",
    "API_CALL_DEPTH", "ATEXIT_PC.LO", "ATEXIT_PC.HI", "MCOLLECTIVE",
];
const THREAD_STATE: Piece =
    Piece::Op(Operand::Word(FieldSpec::new(Field::Special, 24, 6).choice(THREAD_STATES).neutral(26)));
const CLEAR: Piece = flag(Field::Flag, 84, &["", ".CLEAR"]);
const PQUAD: Piece = flag(Field::Flag, 84, &["", ".PQUAD"]);
const MOVED_BARRIER: RegOperand =
    RegOperand { spec: FieldSpec::new(Field::Barrier, 24, 4), ..BARRIER_OPERAND };
const SOURCES: &str = "r i c x u:6";
/// The program counter of the calling context: one half, or both.
const RPC: Piece =
    Piece::Op(Operand::Word(FieldSpec::new(Field::Special, 31, 1).choice(&["Rpc.LO", "Rpc.HI"])));
const ABSOLUTE: Piece = Piece::Op(Operand::Target(
    FieldSpec::new(Field::Target, 34, 47).value(Value::Scaled { scale: 4 }),
    TargetStyle::Plain,
));
const UNIFORM_OR_DIVERGENT: Piece = choice(Field::Mode, 32, 2, &["", ".U", ".DIV", ".CONV"]);
const EXCLUSIVE_86: Piece = since(choice(Field::Mode, 86, 1, &["", ".EXCLUSIVE"]), 1, 80);
const PLAIN_SOURCE: Piece = source_wide(Mods::None, Hex);
const ATEXIT: Piece = Piece::Op(Operand::Literal("ATEXIT_PC"));
const RPC_WHOLE: Piece = Piece::Op(Operand::Literal("Rpc"));
const PLAIN_PAIR: Piece = pair(source_wide(Mods::None, Hex));
const SHUFFLE: Piece = choice(Field::Mode, 58, 2, &[".IDX", ".UP", ".DOWN", ".BFLY"]);
const LANE: Piece = imm(Field::Imm2, 53, 5);
const CLAMP: Piece = imm(Field::Imm3, 40, 13);
const MASK: Piece = imm(Field::Imm32, 32, 32);
const CLEARED: &[(Field, u64)] = &[(Field::Mode, 1)];
const SLEEP: [Piece; 6] = [
    since(flag(Field::Mode, 83, &["", ".CLEAR"]), 1, 80),
    Piece::Mod(FieldSpec::new(Field::Flag3, 86, 1).choice(&["", ".RAND"]).silent(CLEARED)),
    Piece::Mod(FieldSpec::new(Field::Flag2, 85, 1).choice(&["", ".WARP"]).silent(CLEARED)),
    Piece::Mod(FieldSpec::new(Field::Mode2, 84, 1).choice(&["", ".SYNCS"]).silent(CLEARED).since(1, 90)),
    CONDITION,
    Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Imm32, 32, 32), Hex), Show::Unless(Field::Mode, 1)),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("NOP", 0x918, "", Control, &[]),
    Family::new("EXIT", 0x94d, "", Branch, &[choice(Field::Mode, 84, 2, &["", ".KEEPREFCOUNT", ".PREEMPTED", BAD]), flag(Field::Flag, 86, &["", ".NO_ATEXIT"]), CONDITION]),
    Family::new("BRA", 0x947, "", Branch, &[COUNTED, TOGETHER, CONDITION, TARGET]),
    Family::new("BRA.DIV", 0x947, "", Branch, &[
        COUNTED, APART, CONDITION,
        op(RegOperand { neg: Some(FieldSpec::new(Field::NegA, 30, 1)), complement: Some(Field::NegA), ..ureg_at(Field::Ur, 24, Role::A) }), TARGET,
    ]).ones(one(91)).sm(80, 90),
    Family::new("BRA.DIV", 0x947, "", Branch, &[
        COUNTED, APART, CONDITION,
        op(RegOperand { neg: Some(FieldSpec::new(Field::NegA, 82, 1)), complement: Some(Field::NegA), ..ureg_at(Field::Ur, 24, Role::A) }), TARGET,
    ]).ones(one(91)).sm(100, 255),
    Family::new("BRA.DIV", 0x947, "", Branch, &[COUNTED, APART, CONDITION, TARGET]).labelled("p"),
    Family::new("BRA.U", 0x547, "", Branch, &[
        COUNTED, Piece::Text(".U"), since(flag(Field::Flag, 84, &["", ".ANY"]), 1, 90), CONDITION, op(noted(upred_at(Field::Pr, 24, Role::Carry), Field::PrNot, 27)), TARGET,
    ]).ones(one(32) | one(91)).sm(80, 255),
    Family::new("BRX", 0x949, "", Branch, &[COUNTED, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::Optional))]),
    Family::new("BRXU", 0x958, "", Branch, &[
        COUNTED, choice(Field::Mode, 32, 2, &["", ".U", ".DIV", ".CONV"]), CONDITION, Piece::Op(Operand::RegTarget(UNIFORM_ADDRESS, DISTANCE, TargetStyle::Optional)),
    ]).ones(one(91)),
    Family::new("CALL.REL", 0x944, "", Branch, &[Piece::Text(".REL"), NOINC, CONDITION, Piece::Op(Operand::RegTarget(UNIFORM_ADDRESS, DISTANCE, TargetStyle::FromNext))])
        .ones(one(91)).labelled("u"),
    Family::new("CALL.ABS", 0x943, "", Branch, &[Piece::Text(".ABS"), NOINC, CONDITION, Piece::Op(Operand::RegTarget(UNIFORM_ADDRESS, DISTANCE, TargetStyle::Optional))])
        .ones(one(91)).labelled("u"),
    Family::new("RET.REL", 0x950, "", Branch, &[Piece::Text(".REL"), NODEC, CONDITION, Piece::Op(Operand::RegTarget(UNIFORM_ADDRESS, DISTANCE, TargetStyle::FromNext))])
        .ones(one(91)).labelled("u"),
    Family::new("RET.ABS", 0x950, "", Branch, &[Piece::Text(".ABS"), NODEC, CONDITION, Piece::Op(Operand::RegTarget(UNIFORM_ADDRESS, DISTANCE, TargetStyle::Plain))])
        .ones(one(85) | one(91)).labelled("u"),
    Family::new("CALL.REL", 0x944, "", Branch, &[Piece::Text(".REL"), NOINC, CONDITION, TARGET]),
    Family::new("CALL.ABS", 0x943, "", Branch, &[Piece::Text(".ABS"), NOINC, CONDITION, ABSOLUTE]),
    Family::new("CALL.ABS", 0x143, "c", Branch, &[Piece::Text(".ABS"), NOINC, CONDITION, PLAIN_PAIR]),
    Family::new("JMP", 0x94a, "", Branch, &[COUNTED, UNIFORM_OR_DIVERGENT, CONDITION, ABSOLUTE]),
    Family::new("JMP", 0x14a, "c", Branch, &[COUNTED, UNIFORM_OR_DIVERGENT, CONDITION, PLAIN_PAIR]),
    Family::new("JMP.U", 0x54a, "", Branch, &[
        COUNTED, Piece::Text(".U"), since(flag(Field::Flag, 84, &["", ".ANY"]), 1, 90), CONDITION, op(noted(upred_at(Field::Pr, 24, Role::Carry), Field::PrNot, 27)), ABSOLUTE,
    ]).ones(one(32) | one(91)).sm(80, 255).reserved(one(33)),
    Family::new("JMX", 0x94c, "", Branch, &[COUNTED, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::Optional))]),
    Family::new("JMXU", 0x959, "", Branch, &[
        COUNTED, choice(Field::Mode, 32, 2, &["", ".U", ".DIV", ".CONV"]), CONDITION, Piece::Op(Operand::RegTarget(UNIFORM_ADDRESS, DISTANCE, TargetStyle::Optional)),
    ]).ones(one(91)),
    Family::new("CALL.REL", 0x344, "", Branch, &[Piece::Text(".REL"), NOINC, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::FromNext))]).labelled("r"),
    Family::new("CALL.ABS", 0x343, "", Branch, &[Piece::Text(".ABS"), NOINC, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::Optional))]).labelled("r"),
    Family::new("RET.REL", 0x950, "", Branch, &[Piece::Text(".REL"), NODEC, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::FromNext))]),
    Family::new("RET.ABS", 0x950, "", Branch, &[Piece::Text(".ABS"), NODEC, CONDITION, Piece::Op(Operand::RegTarget(ADDRESS, DISTANCE, TargetStyle::Plain))]).ones(one(85)),
    Family::new("LEPC", 0x34e, "", S2r, &[RD2]).sm(75, 89),
    Family::new("LEPC", 0x34e, "", S2r, &[RD2]).sm(90, 255).labelled("r"),
    Family::new("LEPC", 0x94e, "", S2r, &[RD2, EPILOGUE]).sm(90, 255),
    Family::new("BSSY", 0x945, "", Branch, &[RECONVERGENT, CONDITION, SET_BARRIER, NEAR_TARGET]),
    Family::new("BSYNC", 0x941, "", Branch, &[RECONVERGENT, CONDITION, BARRIER]),
    Family::new("BREAK", 0x942, "", Branch, &[since(choice(Field::Mode, 72, 2, &["", ".RELIABLE", BAD, BAD]), 1, 100), CONDITION, BARRIER]),
    Family::new("YIELD", 0x946, "", Branch, &[CONDITION]),
    Family::new("WARPSYNC", 0x948, "", Branch, &[CONDITION, MASK]).sm(75, 89),
    Family::new("WARPSYNC.ALL", 0x948, "", Branch, &[Piece::Text(".ALL"), CONDITION]).sm(90, 255).reserved(one(85)),
    Family::new("WARPSYNC.COLLECTIVE.ALL", 0x948, "", Branch, &[Piece::Text(".COLLECTIVE"), Piece::Text(".ALL"), CONDITION, TARGET]).ones(one(86)).sm(90, 255),
    Family::new("WARPSYNC", 0x148, "r", Branch, &[EXCLUSIVE_86, CONDITION, PLAIN_SOURCE]).sm(75, 89),
    Family::new("WARPSYNC", 0x148, "c x u:6", Branch, &[CONDITION, PLAIN_SOURCE]).sm(75, 89),
    Family::new("WARPSYNC", 0x348, "", Branch, &[choice(Field::Mode, 85, 1, &["", ".EXCLUSIVE"]), CONDITION, RA]).sm(90, 255).labelled("r"),
    Family::new("WARPSYNC.COLLECTIVE", 0x348, "", Branch, &[Piece::Text(".COLLECTIVE"), CONDITION, RA, TARGET]).ones(one(86)).sm(90, 255),
    Family::new("ENDCOLLECTIVE", 0x91b, "", Branch, &[CONDITION]).sm(90, 255),
    Family::new("BPT", 0x95c, "", Branch, &[choice_from(Field::Mode, 84, 3, &[BAD, BAD, ".PAUSE", ".TRAP", ".INT", ".DRAIN", ".PAUSE_QUIET", BAD], 3), Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Imm2, 34, 3), Hex), Show::NotNeutral)]).sm(75, 75),
    Family::new("BPT", 0x95c, "", Branch, &[choice_from(Field::Mode, 84, 3, &[BAD, BAD, BAD, ".TRAP", ".INT", BAD, BAD, BAD], 3), Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Imm2, 34, 3), Hex), Show::NotNeutral)]).sm(80, 255),
    Family::new("NANOSLEEP", 0x95d, "", Branch, &SLEEP).labelled("i"),
    Family::new("NANOSLEEP", 0x15d, "r c x u:6", Branch, &[SLEEP[1], SLEEP[2], SLEEP[3], CONDITION, PLAIN_SOURCE]),
    Family::new("BMOV.32", 0x355, "", S2r, &[Piece::Text(".32"), CLEAR, RD, op(MOVED_BARRIER)]),
    Family::new("BMOV.32.STATE", 0x355, "", S2r, &[Piece::Text(".32"), CLEAR, RD, THREAD_STATE]),
    Family::new("BMOV.32", 0x156, SOURCES, S2r, &[Piece::Text(".32"), PQUAD, op(RegOperand { role: Role::Dst, ..MOVED_BARRIER }), PLAIN_SOURCE]),
    Family::new("BMOV.32.STATE", 0x156, SOURCES, S2r, &[Piece::Text(".32"), PQUAD, THREAD_STATE, PLAIN_SOURCE]),
    Family::new("BMOV.32.STATE", 0xf55, "", S2r, &[Piece::Text(".32"), CLEAR, SET_BARRIER, THREAD_STATE]).labelled("s"),
    Family::new("BMOV.32", 0xf55, "", S2r, &[Piece::Text(".32"), Piece::Text(".CLEAR"), SET_BARRIER, op(RegOperand { spec: FieldSpec::new(Field::Imm2, 24, 4), ..BARRIER_OPERAND })]).ones(one(84)).labelled("b"),
    Family::new("BMOV.32.STATE", 0xf56, "", S2r, &[Piece::Text(".32"), PQUAD, THREAD_STATE, BARRIER]).labelled("b"),
    Family::new("BMOV.64", 0x157, "r c x u:6", S2r, &[Piece::Text(".64"), ATEXIT, PLAIN_PAIR]),
    Family::new("BMOV.64", 0x957, "", S2r, &[Piece::Text(".64"), ATEXIT, ABSOLUTE]).labelled("i"),
    Family::new("RPCMOV.32", 0x152, SOURCES, S2r, &[Piece::Text(".32"), RPC, PLAIN_SOURCE]),
    Family::new("RPCMOV.32", 0x353, "", S2r, &[Piece::Text(".32"), RD, RPC]),
    Family::new("RPCMOV.64", 0x154, "c x u:6", S2r, &[Piece::Text(".64"), RPC_WHOLE, PLAIN_PAIR]),
    Family::new("RPCMOV.64", 0x954, "", S2r, &[Piece::Text(".64"), RPC_WHOLE, ABSOLUTE]).labelled("i"),
    Family::new("GETLMEMBASE", 0x3c0, "", S2r, &[RD2]),
    Family::new("SETLMEMBASE", 0x3c1, "", S2r, &[op(counted(RA_OPERAND, Count::Fixed(2)))]),
    Family::new("SETCTAID", 0x31f, "", S2r, &[choice(Field::Mode, 78, 2, &[".X", ".Y", ".Z", ""]), RA]),
    Family::new("KILL", 0x95b, "", Branch, &[CONDITION]),
    Family::new("PMTRIG", 0x801, "", Control, &[CONDITION, imm(Field::Imm32, 32, 16)]),
    Family::new("BAR", 0xb1d, "", Sync, &[BARRIER_MODE, BARRIER_REDUCTION, DEFER, BARRIER_NUMBER, BARRIER_THREADS, BARRIER_VALUE]),
    Family::new("BAR.SYNCALL", 0xb1d, "", Sync, &[Piece::Text(".SYNCALL"), DEFER]).ones(one(79)).sm(75, 88).reserved(one(77) | one(78)),
    Family::new("BAR", 0x91d, "", Sync, &[BARRIER_MODE, BARRIER_REDUCTION, DEFER, BARRIER_NUMBER, RB, BARRIER_VALUE]).labelled("ir"),
    Family::new("BAR", 0x51d, "", Sync, &[BARRIER_MODE, BARRIER_REDUCTION, DEFER, RB, BARRIER_THREADS, BARRIER_VALUE]).labelled("r"),
    Family::new("BAR", 0x31d, "", Sync, &[BARRIER_MODE, BARRIER_REDUCTION, DEFER, RB, RB, BARRIER_VALUE]).labelled("rr"),
    Family::new("B2R.RESULT", 0x31c, "", Load, &[Piece::Text(".RESULT"), RD, optional(PD_OPERAND)]).ones(one(78)).reserved(one(79)),
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
    Family::new("ELECT", 0x82f, "", Vote, &[
        flag(Field::Flag, 85, &["", ".IGNOREKILL"]), PD, URD,
        op(RegOperand { neg: Some(FieldSpec::new(Field::NegA, 72, 1)), complement: Some(Field::NegA), ..ureg_at(Field::URa, 24, Role::A) }),
    ]).ones(one(91)).sm(90, 255).labelled("u"),
    Family::new("VOTE", 0x806, "", Vote, &[choice(Field::Mode, 72, 2, VOTES), optional(RD_OPERAND), PD, PP]),
    Family::new("VOTEU", 0x886, "", VoteUniform, &[choice(Field::Mode, 72, 2, VOTES), optional(ureg_at(Field::URd, 16, Role::Dst)), UPD, PP]),
    Family::new("MATCH.ANY", 0x3a1, "", Load, &[Piece::Text(".ANY"), MATCH_TYPE, RD, op(counted(RA_OPERAND, MATCH_COUNT))]).ones(7 << 81 | one(79)),
    Family::new("MATCH.ALL", 0x3a1, "", Load, &[Piece::Text(".ALL"), MATCH_TYPE, PD, RD, op(counted(RA_OPERAND, MATCH_COUNT))]),
    Family::new("REDUX", 0x3c4, "", UniformLoad, &[
        choice(Field::Op, 78, 3, &["", ".OR", ".XOR", ".SUM", ".MIN", ".MAX", BAD, BAD]), flag(Field::Signed, 73, &["", ".S32"]), URD, RA,
    ]).sm(80, 255),
];

/// The address that `LEPC` adds to the program counter.
const EPILOGUE: Piece = Piece::Op(Operand::Target(
    FieldSpec::new(Field::Target, 24, 58).value(Value::Signed { scale: 1 }),
    TargetStyle::FromNext,
));
const VOTES: &[&str] = &[".ALL", ".ANY", ".EQ", BAD];
const MATCH_TYPE: Piece = flag(Field::Wide, 73, &["", ".U64"]);
const MATCH_COUNT: Count = Count::By(Field::Wide, &[1, 2]);
