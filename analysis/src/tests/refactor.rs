//! Refactorings on small kernels; `$0` is the cursor.

use text_size::TextRange;

use super::features::{kernel, open};
use crate::ide::{self, ActionKind};

/// The titles of the refactorings at the cursor, and the bodies after them. The text must not get errors.
fn changes(body: &str) -> Vec<(String, String)> {
    changes_of(body, |kind| matches!(kind, ActionKind::Rewrite | ActionKind::Inline))
}

fn changes_of(body: &str, is_wanted: fn(ActionKind) -> bool) -> Vec<(String, String)> {
    let (db, file, offset) = open(body);
    let text = file.text(&db).to_string();
    let found = ide::code_actions(&db, file, TextRange::empty(offset));
    let changes = found.into_iter().filter(|action| is_wanted(action.kind));
    changes
        .map(|change| {
            let new = ide::apply(&text, &change.edits).expect("the edits fit");
            let after = db.add_file(new.as_str());
            let errors = ide::new_errors(&ide::diagnostics(&db, file), &ide::diagnostics(&db, after));
            assert_eq!(errors, 0, "{new}");
            let empty = kernel("$1");
            let (before, behind) = empty.split_once("$1").unwrap();
            let body = new.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind)).unwrap();
            (change.title, body.to_owned())
        })
        .collect()
}

#[track_caller]
fn becomes(body: &str, title: &str, expected: &str) {
    let found = changes(body);
    let Some((_, new)) = found.iter().find(|(known, _)| known == title) else {
        panic!("no `{title}` in {found:?}")
    };
    assert_eq!(new, expected);
}

#[track_caller]
fn has_none(body: &str) {
    assert_eq!(changes(body), []);
}

#[test]
fn a_guard_is_inverted() {
    let rest = "A:\nadd.u32 %r, %r, 1;\nB: ret;";
    let head = ".reg .pred %p;\n.reg .b32 %r;\nmov.u32 %r, %tid.x;\nsetp.eq.s32 %p, %r, 0;\n";
    becomes(
        &format!("{head}@%p b$0ra A;\n    bra.uni B; // other\n{rest}"),
        "Invert the guard: branch to `B` first",
        &format!("{head}@!%p bra B;\n    // other\n{rest}"),
    );
    becomes(
        &format!("{head}C:\n@!%p b$0ra C;\nbra B;\n{rest}"),
        "Invert the guard: branch to `B` first",
        &format!("{head}C:\n@%p bra B;\nbra C;\n{rest}"),
    );
    // Not offered: a statement or a label separates the two branches, the second one has a guard, or the first one has none.
    has_none(&format!("{head}@%p b$0ra A;\nadd.u32 %r, %r, 2;\nbra B;\n{rest}"));
    has_none(&format!("{head}@%p b$0ra A;\n@%p bra B;\n{rest}"));
    has_none(&format!("{head}@%p b$0ra A;\nD: bra B;\nbra D;\n{rest}"));
    has_none(&format!("{head}b$0ra A;\nbra B;\n{rest}"));
}

#[test]
fn lists_become_ranges_and_ranges_lists() {
    let uses = "mov.u32 %r1, 1;\nmov.u32 %r5, %r1;\nret;";
    becomes(
        &format!(".reg .b32 %r1$0, %r2, %r5; // data\n{uses}"),
        "Change the list to the range `%r<6>`",
        &format!(".reg .b32 %r<6>; // data\n{uses}"),
    );
    becomes(
        &format!(".reg .b32 $0%r<6>;\n{uses}"),
        "Change the range to the list `%r1, %r5`",
        &format!(".reg .b32 %r1, %r5;\n{uses}"),
    );
    // `%r3` is another register; `%r01` is not a name of a range; the names have nothing in common.
    has_none(&format!(".reg .f32 %r3;\n.reg .b32 %r1$0, %r2, %r5;\n{uses}"));
    has_none(&format!(".reg .b32 %r1$0, %r01, %r5;\n{uses}"));
    has_none(&format!(".reg .b32 %r1$0, %s2, %r5;\n{uses}"));
    has_none(".reg .b32 %r1$0, %r40;\nret;");
    // The inner `%r3` would hide the outer one.
    has_none(".reg .b32 %r3;\n{ .reg .b32 %r1$0, %r2, %r5;\nmov.u32 %r1, %r3; }\nret;");
}

#[test]
fn numbers_change_their_notation() {
    let head = ".reg .b32 %r<3>; .reg .f32 %f<3>; .reg .f64 %d<3>; .reg .b64 %rd<3>;\n";
    let pairs = [
        ("add.s32 %r1, %r2, 255;", "add.s32 %r1, %r2, 0xFF;"),
        ("add.f32 %f1, %f2, 0f3F000000;", "add.f32 %f1, %f2, 0.5;"),
        ("add.f32 %f1, %f2, 0f3DCCCCCD;", "add.f32 %f1, %f2, 0.1;"),
        ("add.f32 %f1, %f2, 0fBF800000;", "add.f32 %f1, %f2, -1.0;"),
        ("add.f64 %d1, %d2, 0d3FB999999999999A;", "add.f64 %d1, %d2, 0.1;"),
        ("ld.global.b32 %r1, [%rd1+16];", "ld.global.b32 %r1, [%rd1+0x10];"),
    ];
    for (one, other) in pairs {
        for (from, to) in [(one, other), (other, one)] {
            let at = from.rfind(|c: char| c.is_ascii_alphanumeric()).unwrap();
            let body = format!("{head}{}$0{}\nret;", &from[..at], &from[at..]);
            let found = changes(&body);
            assert!(found.iter().any(|(_, new)| *new == format!("{head}{to}\nret;")), "{body}: {found:?}");
        }
    }
    has_none(&format!("{head}add.f32 %f1, %f2, 0f7F$0800000;\nret;"));
    has_none(&format!("{head}mov.b64 %rd1, 0xFFFFFFFFFFFF$0FFFF;\nret;"));
}

#[test]
fn a_constant_is_inlined() {
    let head = ".reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\nld.param.u64 %rd1, [input];\n";
    becomes(
        &format!("{head}m$0ov.u32 %r1, 16;\nadd.s32 %r2, %r2, %r1;\nst.global.u32 [%rd1], %r1;\nret;"),
        "Inline the constant `16` (2 uses)",
        &format!("{head}add.s32 %r2, %r2, 16;\nst.global.u32 [%rd1], 16;\nret;"),
    );
    becomes(
        &format!("{head}m$0ov.u32 %r1, -1;\nadd.s32 %r2, %r2, %r1;\nand.b32 %r3, %r2, %r1;\nret;"),
        "Inline the constant `-1` (2 uses)",
        &format!("{head}add.s32 %r2, %r2, -1;\nand.b32 %r3, %r2, 0xFFFFFFFF;\nret;"),
    );
    becomes(
        &format!("{head}m$0ov.f32 %f1, 0f3F800000;\nadd.f32 %f2, %f2, %f1;\nret;"),
        "Inline the constant `0f3F800000` (1 use)",
        &format!("{head}add.f32 %f2, %f2, 0f3F800000;\nret;"),
    );
    let none = |rest: &str| {
        let titles: Vec<String> = changes(&format!("{head}{rest}\nret;")).into_iter().map(|c| c.0).collect();
        assert!(titles.iter().all(|title| !title.starts_with("Inline")), "{titles:?}");
    };
    // It is written twice, used in an address, as bits of a float, with another width, or not at all.
    none("m$0ov.u32 %r1, 16;\nadd.s32 %r1, %r1, 1;");
    none("mo$0v.u64 %rd2, 16;\nld.global.u32 %r1, [%rd2];");
    none("mo$0v.b32 %f1, 1065353216;\nadd.f32 %f2, %f2, %f1;");
    none("mo$0v.u32 %r1, 16;\nst.global.u8 [%rd1], %r1;");
    none("mo$0v.u32 %r1, 16;");
}

#[test]
fn a_constant_is_extracted() {
    let head = ".reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p;\n";
    let becomes = |from: &str, title: &str, to: &str| {
        let found = changes_of(&format!("{head}{from}\nret;"), |kind| kind == ActionKind::Extract);
        let expected = (format!("Extract the constant `{title}`"), format!("{head}{to}\nret;"));
        assert_eq!(found, [expected]);
    };
    becomes(
        "    add.s32 %r1, %r2, 2$055;",
        "255",
        "    .reg .s32 %constant;\n    mov.s32 %constant, 255;\n    add.s32 %r1, %r2, %constant;",
    );
    becomes(
        "mov.u32 %r1, 1; L: @%p mul.f32 %f1, %f2, 0f3F$0000000;",
        "0f3F000000",
        "mov.u32 %r1, 1; L: .reg .f32 %constant; mov.f32 %constant, 0f3F000000; @%p mul.f32 %f1, %f2, %constant;",
    );
    becomes(
        ".reg .b32 %constant;\nxor.b32 %r1, %r2, -(1$0);",
        "-(1)",
        ".reg .b32 %constant;\n.reg .b32 %constant2;\nmov.b32 %constant2, -(1);\nxor.b32 %r1, %r2, %constant2;",
    );
    // The constant has a register, the operand takes only constants, or it is a part of an address.
    for body in ["mov.u32 %r1, 2$055;", "lop3.b32 %r1, %r1, %r1, %r1, 2$0;", "ld.shared.u32 %r1, [%r2+1$02];"]
    {
        let found = changes_of(&format!("{head}{body}\nret;"), |kind| kind == ActionKind::Extract);
        assert_eq!(found, []);
    }
}
