//! Walks over the whole table, and the recorded instructions of every generation.

use expect_test::expect;
use proptest::prelude::*;
use sass::model::{BAD, FieldSpec, Value};
use sass::{Control, Form, FormId, Inst, Sm, decode, encode, form, forms, parse, print};
use std::collections::BTreeSet;

/// The recorded instructions: generation, address, word, text.
fn recorded() -> Vec<(Sm, u64, u128, &'static str)> {
    const FILES: &[(u8, &str)] = &[
        (75, include_str!("recorded/sm_75.txt")),
        (80, include_str!("recorded/sm_80.txt")),
        (86, include_str!("recorded/sm_86.txt")),
        (89, include_str!("recorded/sm_89.txt")),
        (90, include_str!("recorded/sm_90.txt")),
        (100, include_str!("recorded/sm_100.txt")),
        (103, include_str!("recorded/sm_103.txt")),
        (120, include_str!("recorded/sm_120.txt")),
    ];
    let mut samples = Vec::new();
    for &(sm, text) in FILES {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut parts = line.splitn(3, ' ');
            let mut next = || parts.next().expect("three columns");
            let address = u64::from_str_radix(next(), 16).expect("an address");
            let word = u128::from_str_radix(next(), 16).expect("a word");
            samples.push((Sm(sm), address, word, next()));
        }
    }
    samples
}

fn name(form: &Form) -> String {
    format!("{} {} sm_{}-{}", form.name, form.shape, form.sm.0, form.sm.1)
}

#[test]
fn fields_are_disjoint_from_each_other_and_from_fixed_bits() {
    for id in forms() {
        let form = form(id);
        let mut taken = Control::MASK;
        for spec in &form.fields {
            assert_eq!(taken & spec.mask(), 0, "{}: {:?} overlaps", name(form), spec.field);
            taken |= spec.mask();
        }
        assert_eq!(form.fixed & taken, 0, "{}: a fixed bit lies in a field", name(form));
        assert_eq!(form.fixed_mask, !taken, "{}", name(form));
    }
}

#[test]
fn roles_of_fields_are_unique() {
    for id in forms() {
        let form = form(id);
        let roles: BTreeSet<_> = form.fields.iter().map(|spec| spec.field).collect();
        assert_eq!(roles.len(), form.fields.len(), "{}", name(form));
    }
}

#[test]
fn choices_name_every_value() {
    for id in forms() {
        for spec in &form(id).fields {
            if let Value::Choice(texts) = spec.value {
                assert!(texts.len() <= 1 << spec.bits(), "{}: {:?}", name(form(id)), spec.field);
                assert_ne!(
                    texts.get(spec.neutral as usize),
                    Some(&BAD),
                    "{}: {:?}",
                    name(form(id)),
                    spec.field
                );
            }
        }
    }
}

/// Two forms match one word if they agree where both are fixed and their choices can agree too.
fn overlap(a: &Form, b: &Form) -> bool {
    let both = a.fixed_mask & b.fixed_mask;
    if a.fixed & both != b.fixed & both {
        return false;
    }
    // The choices of one form may exclude the other's fixed bits, or all of its choices.
    let excludes = |one: &Form, other: &Form| {
        one.fields.iter().any(|spec| {
            let Value::Choice(_) = spec.value else { return false };
            (0..1u64 << spec.bits()).filter(|&raw| spec.allows(raw)).all(|raw| {
                let word = spec.insert(0, raw);
                let fixed = spec.mask() & other.fixed_mask;
                let forbids = |theirs: &FieldSpec| {
                    theirs.mask() & !spec.mask() == 0 && !theirs.allows(theirs.extract(word))
                };
                word & fixed != other.fixed & fixed || other.fields.iter().any(forbids)
            })
        })
    };
    !excludes(a, b) && !excludes(b, a)
}

#[test]
fn no_two_forms_of_a_generation_match_the_same_word() {
    let ids: Vec<FormId> = forms().collect();
    for (i, &a) in ids.iter().enumerate() {
        for &b in &ids[i + 1..] {
            let (a, b) = (form(a), form(b));
            let shared = Sm::ALL.iter().any(|&sm| a.holds_for(sm) && b.holds_for(sm));
            assert!(!shared || !overlap(a, b), "{} and {} overlap", name(a), name(b));
        }
    }
}

#[test]
fn new_instructions_decode_to_themselves() {
    for id in forms() {
        let inst = Inst::new(id);
        for &sm in Sm::ALL.iter().filter(|&&sm| form(id).holds_for(sm)) {
            let word = encode(sm, &inst).expect("neutral values fit");
            assert_eq!(decode(sm, word), Some(inst), "{}", name(form(id)));
        }
    }
}

#[test]
fn recorded_words_print_as_recorded() {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut undecoded = BTreeSet::new();
    for (sm, address, word, text) in recorded() {
        match decode(sm, word) {
            Some(inst) => {
                assert_eq!(squeeze(&print(sm, &inst, address)), text, "sm_{} {word:032x}", sm.0);
                assert_eq!(encode(sm, &inst), Ok(word));
            }
            None => {
                let mnemonic = text.split(' ').find(|part| !part.starts_with('@')).unwrap_or_default();
                undecoded.insert(format!("sm_{} {}", sm.0, mnemonic.split('.').next().unwrap_or_default()));
            }
        }
    }
    let undecoded: String = undecoded.into_iter().map(|line| line + "\n").collect();
    expect![[r#"
        sm_100 ARRIVES
        sm_100 ATOMS
        sm_100 CREDUX
        sm_100 FADD2
        sm_100 FFMA2
        sm_100 FMUL2
        sm_100 I2F
        sm_100 LDG
        sm_100 STG
        sm_100 UGETNEXTWORKID
        sm_100 UPLOP3
        sm_120 ARRIVES
        sm_120 ATOMS
        sm_120 CS2UR
        sm_120 I2F
        sm_120 IMNMX
        sm_120 LDG
        sm_120 STG
        sm_120 UF2I
        sm_120 UFADD
        sm_120 UFFMA
        sm_120 UFMUL
        sm_120 UFSEL
        sm_120 UGETNEXTWORKID
        sm_120 UI2F
        sm_120 UI2FP
        sm_120 UIMNMX
        sm_120 UMOV
        sm_120 UPLOP3
        sm_120 USEL
        sm_120 UVIMNMX
        sm_120 VIADD
        sm_75 BMOV
        sm_75 FSWZADD
        sm_75 I2F
        sm_75 LD
        sm_75 QSPC
        sm_80 FSWZADD
        sm_80 I2F
        sm_86 FSWZADD
        sm_86 I2F
        sm_89 FSWZADD
        sm_89 I2F
        sm_90 I2F
    "#]]
    .assert_eq(&undecoded);
}

/// The text does not tell everything: NaN payloads, and the window's descriptor before sm_90.
#[test]
fn recorded_texts_assemble_to_the_recorded_words() {
    for (sm, address, word, text) in recorded() {
        let Some(inst) = decode(sm, word) else { continue };
        if text.contains("NAN") {
            continue;
        }
        let mut parsed = parse(sm, text, address).unwrap_or_else(|error| panic!("{text}: {error}"));
        parsed.control = inst.control;
        if sm < Sm(90)
            && let Some(desc) = inst.get(sass::Field::UrDesc)
        {
            parsed.set(sass::Field::UrDesc, desc);
        }
        assert_eq!(
            encode(sm, &parsed).map(|word| format!("{word:032x}")),
            Ok(format!("{word:032x}")),
            "{text}"
        );
    }
}

#[test]
fn forms_without_a_recorded_sample() {
    let mut unseen: BTreeSet<FormId> = forms().collect();
    for (sm, _, word, _) in recorded() {
        if let Some(inst) = decode(sm, word) {
            unseen.remove(&inst.form);
        }
    }
    let of_recorded = |form: &&Form| [75, 80, 90, 100, 103, 120].iter().any(|&sm| form.holds_for(Sm(sm)));
    let unseen: Vec<String> = unseen
        .into_iter()
        .map(form)
        .filter(of_recorded)
        .map(|form| format!("{} {}\n", form.name, form.shape))
        .collect();
    expect![[r#"
        PRMT rcr
        PRMT rur
        PRMT rur
        PRMT rru
        PRMT rru
        IMAD.WIDE rru
        IMAD.HI rru
        IMAD.HI rru
        LEA.HI.SX32 ri
        LEA.HI.SX32 ru
        SHF rru
        SHF rru
        IMNMX rc
        IMNMX ru
        VIMNMX rc
        ISETP.64 rr
        ISETP.64 ri
        VIADDMNMX rrc
        VIADDMNMX rcr
        VIADDMNMX rur
        VIADDMNMX rur
        VIADDMNMX rru
        VIADDMNMX rru
        VIMNMX3 rir
        VIMNMX3 rcr
        VIMNMX3 rur
        VIMNMX3 rur
        IABS i
        IABS u
        IABS u
        SGXT ru
        SGXT ru
        BMSK ri
        BMSK ru
        BMSK ru
        VIADD rc
        IDP rcr
        IDP rur
        VABSDIFF rri
        VABSDIFF rir
        VABSDIFF rcr
        VABSDIFF rur
        VABSDIFF rur
        VABSDIFF rru
        VABSDIFF rru
        PLOP3 u
        PLOP3.SIGN rur
        PLOP3.SIGN rur
        VABSDIFF4 rri
        VABSDIFF4 rrc
        VABSDIFF4 rir
        VABSDIFF4 rcr
        VABSDIFF4 rur
        VABSDIFF4 rur
        VABSDIFF4 rru
        VABSDIFF4 rru
        I2I i
        I2I u
        I2I u
        POPC i
        POPC c
        BREV i
        BREV c
        BREV u
        BREV u
        FLO i
        FFMA rru
        FFMA rru
        FMNMX ru
        FMNMX ru
        FMNMX ru
        FMNMX ru
        FMNMX3 rir
        FMNMX3 rur
        FSETP ru
        FSETP ru
        FSET ri
        FSET rc
        FSET ru
        FSET ru
        FCHK rc
        FCHK ru
        FCHK ru
        MUFU c
        MUFU c
        HADD2 rc
        HADD2 ru
        HMUL2 ri
        HMUL2 ri
        HMUL2 rc
        HMUL2 rc
        HMUL2 ru
        HMUL2 ru
        HMUL2 ru
        HFMA2 rri
        HFMA2 rrc
        HFMA2 rir
        HFMA2 rur
        HFMA2 rru
        HFMA2 rru
        HFMA2 rru
        HFMA2.MMA rrc
        HFMA2.MMA rcr
        HFMA2.MMA rcr
        HFMA2.MMA rur
        HFMA2.MMA rur
        HFMA2.MMA rru
        HFMA2.MMA rru
        HSET2 rc
        HSET2 ru
        HSET2 ru
        HSET2 ru
        HSETP2 rc
        HSETP2 ru
        HSETP2 ru
        HSETP2 ru
        HMNMX2 ri
        HMNMX2 ri
        HMNMX2 ru
        HMNMX2 ru
        HMNMX2 ru
        F2I c
        F2I c
        F2I u
        F2I u
        F2I u
        F2I.F64 i
        F2I.F64 i
        F2I.F64 c
        F2I.F64 c
        F2I.F64 u
        F2I.F64 u
        F2I.F64 u
        F2I.S64 i
        F2I.S64 i
        F2I.S64 c
        F2I.S64 c
        F2I.S64 u
        F2I.S64 u
        F2I.S64 u
        F2I.S64.F64 i
        F2I.S64.F64 i
        F2I.S64.F64 c
        F2I.S64.F64 c
        F2I.S64.F64 u
        F2I.S64.F64 u
        F2I.S64.F64 u
        I2F i
        I2F i
        I2F c
        I2F.S64 i
        I2F.S64 i
        I2F.S64 c
        I2F.S64 c
        I2F.F64 i
        I2F.F64 i
        I2F.F64 c
        I2F.F64 c
        I2F.F64 u
        I2F.F64 u
        I2F.F64 u
        I2F.F64.S64 i
        I2F.F64.S64 i
        I2F.F64.S64 c
        I2F.F64.S64 u
        I2F.F64.S64 u
        I2F.F64.S8 
        I2F.F64.S8 
        F2F i
        F2F i
        F2F c
        F2F c
        F2F u
        F2F u
        F2F u
        F2F.F64 i
        F2F.F64 i
        F2F.F64 c
        F2F.F64 c
        F2F.F64 u
        F2F.F64 u
        F2F.F64 u
        F2F.F32.F64 i
        F2F.F32.F64 i
        F2F.F32.F64 c
        F2F.F32.F64 c
        F2F.F32.F64 u
        F2F.F32.F64 u
        F2F.F32.F64 u
        FRND i
        FRND c
        FRND u
        FRND u
        FRND.F64 i
        FRND.F64 c
        FRND.F64 u
        FRND.F64 u
        I2FP.F32 i
        F2FP.PACK_AB rc
        F2FP.PACK_AB ru
        F2FP.PACK_AB rc
        F2FP.PACK_AB ru
        F2FP.PACK_AB ru
        ULEA ui
        ULEA ui
        ULEA.HI uiu
        ULEA.HI uiu
        ULEA.HI.SX32 ui
        ULEA.HI.SX32 uu
        ULEA.HI.SX32 ui
        UIMAD uiu
        UIMAD uiu
        UISETP.64 uu
        UISETP.64 ui
        UPRMT uuu
        UPRMT uuu
        LDG u
        LDG u
        STG u
        STG u
        LD u
        LD u
        LD r
        ST r
        STG r
        ST u
        ST u
        LDL u
        STL u
        ATOM r
        ATOMG r
        LD 
        LDS u
        RED 
        SYNCS.CCTL.IVALL 
        UTMACCTL.IVALL 
        LDGMC u
        LDGMC d
        LDGMC u
        LDGMC d
        LDGMC.F d
        LDGMC.F d
        UREDGR 
        UBLKPF d
        UBLKPF d
        UBLKRED d
        UBLKRED d
        UBLKRED d
        UTMALDG md
        UTMALDG md
        UTMALDG md
        UTMASTG d
        UTMASTG d
        UTMAPF d
        UTMAPF d
        UTMAPF m
        UTMAPF md
        UTMAPF m
        UTMAPF md
        UTMAPF m
        UTMAPF md
        TEX r
        TLD r
        TLD4 r
        TXD r
        TMML c
        TMML u
        TMML r
        TMML u
        TMML u
        TXQ r
        SULD u
        SULD r
        SULD r
        SULD r
        SUST u
        SUST r
        SUST r
        SUST r
        SUST.P u
        SUST.P r
        SUST.P r
        SUST.P r
        SURED u
        SURED r
        SURED r
        SURED r
        STSM u
        STSM u
        WARPGROUP.WAIT 
        UVIRTCOUNT u
        UTCATOMSWS.CAS 
        NANOSLEEP r
        BAR r
    "#]]
    .assert_eq(&unseen.concat());
}

/// An instruction of any form with random values in its fields.
fn any_inst() -> impl Strategy<Value = (Sm, Inst)> {
    let ids: Vec<FormId> = forms().collect();
    (prop::sample::select(ids), any::<u128>(), any::<prop::sample::Index>()).prop_map(|(id, random, sm)| {
        let generations: Vec<Sm> = Sm::ALL.iter().copied().filter(|&sm| form(id).holds_for(sm)).collect();
        let mut inst = Inst::new(id);
        for spec in &form(id).fields {
            let raw = spec.extract(random);
            let raw = match spec.value {
                Value::Choice(texts) => {
                    let legal: Vec<u64> = (0..texts.len() as u64)
                        .filter(|&i| i >> spec.bits() == 0 && spec.allows(i))
                        .collect();
                    legal[raw as usize % legal.len()]
                }
                _ => raw,
            };
            inst.set(spec.field, spec.from_raw(raw));
        }
        (generations[sm.index(generations.len())], inst)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn random_values_round_trip((sm, inst) in any_inst()) {
        let word = encode(sm, &inst).expect("values were chosen to fit");
        prop_assert_eq!(decode(sm, word), Some(inst));
        let text = print(sm, &inst, 0x1230);
        // What the text hides may read back as neutral, but the text stays.
        if !text.contains("NAN") {
            let parsed = parse(sm, &text, 0x1230).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            prop_assert_eq!(print(sm, &parsed, 0x1230), text);
        }
    }

    #[test]
    fn random_words_never_panic(word in any::<u128>(), sm in prop::sample::select(Sm::ALL)) {
        if let Some(inst) = decode(sm, word) {
            prop_assert_eq!(encode(sm, &inst).map(|encoded| encoded & !(7 << 125)), Ok(word & !(7 << 125)));
            print(sm, &inst, 0);
            prop_assert!(inst.reads(sm).count() + inst.writes(sm).count() < 32);
        }
    }

    #[test]
    fn random_text_never_panics(text in "[A-Z0-9@!.,\\[\\]|~ -]{0,40}") {
        let _ = parse(Sm(90), &text, 0);
    }
}
