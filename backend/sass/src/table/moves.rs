//! Moves, selection, byte permutation, special registers, and moves between predicates and registers.

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

/// The lanes that a `MOV` writes, printed unless it writes all four.
const LANES: Piece =
    Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Mode, 72, 4).neutral(0xf), Hex), Show::NotNeutral);
const BYTES: Piece = choice(Field::Mode, 76, 2, &["", ".B1", ".B2", ".B3"]);
const PREDICATES: Piece = Piece::Op(Operand::Literal("PR"));

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("MOV", 0x002, "r i c x", Alu, &[RD, source_wide(Mods::None, Hex), LANES]),
    Family::new("MOV", 0x002, "u:6", Alu, &[RD, source_wide(Mods::None, Hex), LANES]),
    Family::new("MOV.SPILL", 0x002, "u:6", Alu, &[Piece::Text(".SPILL"), RD, source_wide(Mods::None, Hex)]).ones(one(88) | 0xf << 72).sm(100, 255),
    Family::new("MOV.64", 0x002, "r u:6", Alu, &[Piece::Text(".64"), RD2, pair(source_wide(Mods::None, Hex))]).ones(0xf << 72 | one(80)).sm(120, 255),
    Family::new("MOV.64", 0x402, "", Alu, &[Piece::Text(".64"), RD2, imm(Field::Imm32, 24, 64)]).sm(120, 255).labelled("i"),
    Family::new("MOV64IUR", 0x554, "", Alu, &[RD2, imm(Field::Imm32, 24, 64)]).sm(120, 255).labelled("i"),
    Family::new("MOV64IUR", 0xf54, "", Alu, &[RD2, op(counted(ureg_at(Field::Ur, 32, Role::B), Count::Fixed(2)))]).ones(one(91)).sm(120, 255).labelled("u"),
    Family::new("SEL.64", 0x007, "rr:3 ru:7", Alu, &[Piece::Text(".64"), RD2, pair(source_a(Mods::None, Hex)), pair(source(slot(Role::B, Place::Wide, Mods::None, SignedHex))), PP]).sm(120, 255),
    Family::new("SEL.64", 0x407, "", Alu, &[
        Piece::Text(".64"), RD2, op(counted(RA_OPERAND, Count::Fixed(2))),
        Piece::Op(Operand::Imm(FieldSpec::new(Field::Imm32, 32, 33).value(Value::Signed { scale: 1 }), SignedHex)), PP,
    ]).sm(120, 255).labelled("ri"),
    Family::new("SEL", 0x007, "rr ri rc rx ru", Alu, &[RD, source_a(Mods::None, Hex), source_b(Mods::None, Hex), PP]),
    Family::new("FSEL", 0x008, "rr ri rc rx ru", Alu, &[FTZ, RD, source_a(Mods::NegAbs, F32), source_b(Mods::NegAbs, HighWord), PP]),
    Family::new("PRMT", 0x016, "rrr rri rrc rrx rir rcr rxr rur rru", Alu, &[
        choice(Field::Mode, 72, 3, &["", ".F4E", ".B4E", ".RC8", ".ECL", ".ECR", ".RC16", BAD]),
        RD, source_a(Mods::None, Hex), source_b(Mods::None, Hex), source_c(Mods::None, Hex),
    ]),
    Family::new("S2R", 0x919, "", S2r, &[RD, SPECIAL]),
    Family::new("CS2R", 0x805, "", Cs2r, &[
        choice_from(Field::Wide, 80, 1, &[".32", ""], 1),
        op(counted(RD_OPERAND, Count::By(Field::Wide, &[1, 2]))), SPECIAL,
    ]),
    Family::new("CS2UR", 0x8cb, "", Cs2r, &[
        choice_from(Field::Wide, 80, 1, &[".32", ""], 1),
        op(counted(ureg_at(Field::URd, 16, Role::Dst), Count::By(Field::Wide, &[1, 2]))), SPECIAL,
    ]).uniform().sm(120, 255),
    Family::new("P2R", 0x003, "rr ri rc rx ru", Alu, &[BYTES, RD, PREDICATES, source_a(Mods::None, Hex), source_b(Mods::None, SignedHex)]).sm(75, 89),
    Family::new("P2R", 0x003, "rr ri rc rx ru", Alu, &[BYTES, RD, PREDICATES, source_a(Mods::None, Hex), source_b(Mods::None, Hex)]).sm(90, 255),
    Family::new("R2P", 0x004, "rr ri rc rx ru", Alu, &[
        PREDICATES,
        source(Slot { suffix: Some(FieldSpec::new(Field::Mode, 76, 2).choice(&["", ".B1", ".B2", ".B3"])), ..slot(Role::A, Place::A, Mods::None, Hex) }),
        source_b(Mods::None, Hex),
    ]),
];

pub(super) const SPECIAL: Piece =
    Piece::Op(Operand::Word(FieldSpec::new(Field::Special, 72, 8).choice(SPECIAL_REGISTERS)));

/// The names of a generation's special registers, by number.
pub(crate) fn special_registers(sm: u8) -> &'static [&'static str] {
    let names: [&[&str]; SPECIAL_REGISTERS_SINCE.len()] =
        [&SPECIAL_75, &SPECIAL_80, &SPECIAL_90, &SPECIAL_100, SPECIAL_REGISTERS, &SPECIAL_120];
    let at = SPECIAL_REGISTERS_SINCE.partition_point(|&since| since <= sm);
    names[at.saturating_sub(1)]
}

static SPECIAL_75: [&str; 256] = renamed(&SPECIAL_80, &[(24, "SR_MACHINE_ID_0")]);
static SPECIAL_80: [&str; 256] = renamed(
    &SPECIAL_90,
    &[(65, "SR65"), (134, "SR134"), (135, "SR135"), (136, "SR136"), (137, "SR137"), (139, "SR139")],
);
static SPECIAL_90: [&str; 256] = renamed(SPECIAL_REGISTERS, &[(138, "SR138"), (141, "SR141")]);
static SPECIAL_100: [&str; 256] = renamed(SPECIAL_REGISTERS, &[(134, "SR134"), (135, "SR135")]);
static SPECIAL_120: [&str; 256] =
    renamed(&SPECIAL_100, &[(142, "SR_CONTEXT_SAVE_ADDR_LO"), (143, "SR_CONTEXT_SAVE_ADDR_HI")]);

/// `names` with some of them replaced.
const fn renamed(names: &[&'static str], changes: &[(usize, &'static str)]) -> [&'static str; 256] {
    let mut out = [""; 256];
    let mut i = 0;
    while i < out.len() {
        out[i] = names[i];
        i += 1;
    }
    i = 0;
    while i < changes.len() {
        out[changes[i].0] = changes[i].1;
        i += 1;
    }
    out
}

/// The special registers of sm_110. A number without a name reads whatever the generation has there.
#[rustfmt::skip]
const SPECIAL_REGISTERS: &[&str] = &[
    "SR_LANEID", "SR_CLOCK", "SR_VIRTCFG", "SR_VIRTID", "SR4", "SR5",
    "SR6", "SR7", "SR8", "SR9", "SR10", "SR11",
    "SR12", "SR13", "SR14", "SR_ORDERING_TICKET", "SR_PRIM_TYPE", "SR_INVOCATION_ID",
    "SR_Y_DIRECTION", "SR_THREAD_KILL", "SM_SHADER_TYPE", "SR_DIRECTCBEWRITEADDRESSLOW", "SR_DIRECTCBEWRITEADDRESSHIGH", "SR_DIRECTCBEWRITEENABLED",
    "SR_SW_SCRATCH", "SR_MACHINE_ID_1", "SR_MACHINE_ID_2", "SR_MACHINE_ID_3", "SR_AFFINITY", "SR_INVOCATION_INFO",
    "SR_WSCALEFACTOR_XY", "SR_WSCALEFACTOR_Z", "SR_TID", "SR_TID.X", "SR_TID.Y", "SR_TID.Z",
    "SR36", "SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SR_NTID", "SR_CirQueueIncrMinusOne",
    "SR_NLATC", "SR43", "SR_SM_SPA_VERSION", "SR_MULTIPASSSHADERINFO", "SR_LWINHI", "SR_SWINHI",
    "SR_SWINLO", "SR_SWINSZ", "SR_SMEMSZ", "SR_SMEMBANKS", "SR_LWINLO", "SR_LWINSZ",
    "SR_LMEMLOSZ", "SR_LMEMHIOFF", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK",
    "SR_GEMASK", "SR_REGALLOC", "SR_BARRIERALLOC", "SR63", "SR_GLOBALERRORSTATUS", "SR_CGAERRORSTATUS",
    "SR_WARPERRORSTATUS", "SR_VIRTUALSMID", "SR_VIRTUALENGINEID", "SR69", "SR70", "SR71",
    "SR72", "SR73", "SR74", "SR75", "SR76", "SR77",
    "SR78", "SR79", "SR_CLOCKLO", "SR_CLOCKHI", "SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI",
    "SR_ESR_PC", "SR_ESR_PC_HI", "SR86", "SR87", "SR88", "SR89",
    "SR90", "SR91", "SR92", "SR93", "SR94", "SR95",
    "SR_HWTASKID", "SR_CIRCULARQUEUEENTRYINDEX", "SR_CIRCULARQUEUEENTRYADDRESSLOW", "SR_CIRCULARQUEUEENTRYADDRESSHIGH", "SR_PM0", "SR_PM_HI0",
    "SR_PM1", "SR_PM_HI1", "SR_PM2", "SR_PM_HI2", "SR_PM3", "SR_PM_HI3",
    "SR_PM4", "SR_PM_HI4", "SR_PM5", "SR_PM_HI5", "SR_PM6", "SR_PM_HI6",
    "SR_PM7", "SR_PM_HI7", "SR_SNAP_PM0", "SR_SNAP_PM_HI0", "SR_SNAP_PM1", "SR_SNAP_PM_HI1",
    "SR_SNAP_PM2", "SR_SNAP_PM_HI2", "SR_SNAP_PM3", "SR_SNAP_PM_HI3", "SR_SNAP_PM4", "SR_SNAP_PM_HI4",
    "SR_SNAP_PM5", "SR_SNAP_PM_HI5", "SR_SNAP_PM6", "SR_SNAP_PM_HI6", "SR_SNAP_PM7", "SR_SNAP_PM_HI7",
    "SR_VARIABLE_RATE", "__HIR0X000", "SR_WARPGROUP_INFO", "SR_WARPGROUPID", "SR_CgaCtaId", "SR_GpcLocalCgaId",
    "SR_CgaSize", "SR_CTARegPoolSz", "SR140", "SR_TMemSz", "SR142", "SR143",
    "SR144", "SR145", "SR146", "SR147", "SR148", "SR149",
    "SR150", "SR151", "SR152", "SR153", "SR154", "SR155",
    "SR156", "SR157", "SR158", "SR159", "SR160", "SR161",
    "SR162", "SR163", "SR164", "SR165", "SR166", "SR167",
    "SR168", "SR169", "SR170", "SR171", "SR172", "SR173",
    "SR174", "SR175", "SR176", "SR177", "SR178", "SR179",
    "SR180", "SR181", "SR182", "SR183", "SR184", "SR185",
    "SR186", "SR187", "SR188", "SR189", "SR190", "SR191",
    "SR192", "SR193", "SR194", "SR195", "SR196", "SR197",
    "SR198", "SR199", "SR200", "SR201", "SR202", "SR203",
    "SR204", "SR205", "SR206", "SR207", "SR208", "SR209",
    "SR210", "SR211", "SR212", "SR213", "SR214", "SR215",
    "SR216", "SR217", "SR218", "SR219", "SR220", "SR221",
    "SR222", "SR223", "SR224", "SR225", "SR226", "SR227",
    "SR228", "SR229", "SR230", "SR231", "SR232", "SR233",
    "SR234", "SR235", "SR236", "SR237", "SR238", "SR239",
    "SR240", "SR241", "SR242", "SR243", "SR244", "SR245",
    "SR246", "SR247", "SR248", "SR249", "SR250", "SR251",
    "SR252", "SR253", "SR254", "SRZ",
];
