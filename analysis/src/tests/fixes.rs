//! Fixes: the text before and after each fix. Applying a fix must not cause new findings.

mod header;

use expect_test::{Expect, expect};

use crate::check::lint;
use crate::db::Database;
use crate::diagnostic::{Levels, Severity};
use crate::ide::{self, Applicability};

/// A kernel around `body`.
fn kernel(body: &str) -> String {
    format!(".version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p)\n{{\n{body}\n}}\n")
}

fn database() -> Database {
    let mut db = Database::default();
    let mut levels = Levels::default();
    levels.set(lint("unused-label").unwrap(), Severity::Warning);
    levels.set(lint("unused-register").unwrap(), Severity::Warning);
    db.set_levels(levels);
    db
}

/// The changed lines of every fix of the first finding with `code`. A safe fix is marked with `!`. Each fix resolves
/// its finding.
fn check(code: &str, text: &str, expected: Expect) {
    let db = database();
    let found = ide::diagnostics(&db, db.add_file(text));
    let diagnostic =
        found.iter().find(|d| d.lint.code == code).unwrap_or_else(|| panic!("no {code}: {found:?}"));
    let mut out = String::new();
    for fix in &diagnostic.fixes {
        let sure = if fix.applicability == Applicability::MachineApplicable { "!" } else { "" };
        out += &format!("{sure}{}\n", fix.title);
        let fixed = ide::apply(text, &fix.edits).expect("the edits do not touch each other");
        for line in fixed.lines().filter(|line| !text.lines().any(|old| old == *line)) {
            out += &format!("  + {line}\n");
        }
        for line in text.lines().filter(|line| !fixed.lines().any(|new| new == *line)) {
            out += &format!("  - {line}\n");
        }
        let after = ide::diagnostics(&db, db.add_file(fixed.as_str()));
        let is_same = |d: &&ide::Diagnostic| d.lint == diagnostic.lint && d.message == diagnostic.message;
        assert!(!after.iter().any(|d| is_same(&d)), "`{}` leaves {after:?}", fix.title);
    }
    expected.assert_eq(&out);
}

fn check_body(code: &str, body: &str, expected: Expect) {
    check(code, &kernel(body), expected);
}

#[test]
fn declarations_with_syntax_errors_are_not_checked() {
    assert_eq!(codes(".reg .b32 x[;"), ["E0004"]);
    assert_eq!(codes(".reg .b32 %r1;\nmov.u32 %r1, %cluster_ctaid.q;"), ["E0211"]);
}

#[test]
fn components_of_special_registers() {
    let moved = |register: &str| format!("    .reg .b32 %r<2>;\n    mov.u32 %r1, {register};\n    ret;");
    check_body(
        "E0211",
        &moved("%laneid.x"),
        expect![[r#"
        remove `.x`
          +     mov.u32 %r1, %laneid;
          -     mov.u32 %r1, %laneid.x;
    "#]],
    );
    assert_eq!(codes(&moved("%smid.q")), ["E0211"]);
    assert_eq!(codes(&moved("%cluster_ctarank.x")), ["E0211"]);
    let db = Database::default();
    let old = kernel(&moved("%cluster_ctarank.x")).replace("sm_90", "sm_80");
    let found = ide::diagnostics(&db, db.add_file(old.as_str()));
    assert_eq!(found.iter().map(|d| d.lint.code).collect::<Vec<_>>(), ["E0211", "E0402"]);
}

#[test]
fn inserted_statements_are_indented() {
    check_body(
        "W0515",
        "    .shared .align 16 .b8 s[256];\n    .reg .b64 %a;\n    mov.b64 %a, 0;\n    st.shared.b32 [s], 1;\n    cp.async.bulk.global.shared::cta.bulk_group [%a], [s], 64;\n    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\n    ret;",
        expect![[r#"
            insert `fence.proxy.async.shared::cta;`
              +     fence.proxy.async.shared::cta;
        "#]],
    );
}

#[test]
fn names_of_instructions() {
    check_body(
        "E0210",
        ".reg .b32 %r<3>;\naddd.cc.u32 %r1, %r2, 1;",
        expect![[r#"
        change to `add`
          + add.cc.u32 %r1, %r2, 1;
          - addd.cc.u32 %r1, %r2, 1;
        change to `addc`
          + addc.cc.u32 %r1, %r2, 1;
          - addd.cc.u32 %r1, %r2, 1;
    "#]],
    );
    check_body(
        "E0211",
        ".reg .b32 %r<3>;\nld.gobal.u32 %r1, [p];",
        expect![[r#"
            change to `.global`
              + ld.global.u32 %r1, [p];
              - ld.gobal.u32 %r1, [p];
        "#]],
    );
    check_body(
        "E0211",
        ".reg .b32 %r<3>;\nadd.rn.u32 %r1, %r2, 1;",
        expect![[r#"
        remove `.rn`
          + add.u32 %r1, %r2, 1;
          - add.rn.u32 %r1, %r2, 1;
    "#]],
    );
    check_body(
        "E0211",
        ".reg .b32 %r<3>;\nmul.u32.lo %r1, %r2, 1;",
        expect![[r#"
            !change to `mul.lo.u32`
              + mul.lo.u32 %r1, %r2, 1;
              - mul.u32.lo %r1, %r2, 1;
        "#]],
    );
    check_body(
        "E0211",
        ".reg .f32 %f<3>;\nadd.rn.rn.f32 %f1, %f2, %f2;",
        expect![[r#"
        !remove `.rn`
          + add.rn.f32 %f1, %f2, %f2;
          - add.rn.rn.f32 %f1, %f2, %f2;
    "#]],
    );
    check_body(
        "E0212",
        ".reg .b32 %r<3>;\nmul.u32 %r1, %r2, 1;",
        expect![[r#"
            add `.hi`
              + mul.hi.u32 %r1, %r2, 1;
              - mul.u32 %r1, %r2, 1;
            add `.lo`
              + mul.lo.u32 %r1, %r2, 1;
              - mul.u32 %r1, %r2, 1;
        "#]],
    );
}

#[test]
fn one_mistake_is_one_finding() {
    let module = |function: &str| format!(".version 9.0\n.target sm_90\n{function}\n");
    let texts = [
        kernel(".reg .b64 %rd1;\nld.param u64 %rd1, [p];"),
        kernel(".reg .pred %p1;\n!@%p1 bra L;\nL: ret;"),
        kernel(".pragma \"nounroll;\nret;"),
        kernel(".reg .b32 %r<3>;\nadd.s32 %r1, %r2, 1:\nret;"),
        kernel(".reg .b32 %r1;\nld.param.u32 %r1, [p;\nret;"),
        kernel(".shared float buffer[32];\nret;"),
        module(".visible .enrty k() { ret; }"),
        module(".entry k()\n  .reg .b32 %r<3>;\n  mov.b64 %r1, {%r1, %r2};\n  ret;\n}"),
        module("visible .entry k() { ret; }"),
        module(".entry k(.param .u32 n,) { ret; }"),
        module(".entry k(.param .u32 n\n{ ret; }"),
    ];
    let db = database();
    for text in texts {
        let found = ide::diagnostics(&db, db.add_file(text.as_str()));
        let [only] = found.as_slice() else { panic!("{text}\n{found:#?}") };
        assert_eq!(only.fixes.len(), 1, "{text}\n{only:#?}");
    }
    let texts = [
        kernel(".reg .b32 %r<3>;\n%r1 = %r2 + 1;"),
        kernel(".reg .pred %p1;\nif (%p1) { ret; }"),
        kernel(".reg .b32 %r<3>;\n.reg .b64 %rd1;\nld.global.u32 %r1, [%rd1+4*%r2];"),
    ];
    for text in texts {
        let found = ide::diagnostics(&db, db.add_file(text.as_str()));
        assert_eq!(found.len(), 1, "{text}\n{found:#?}");
    }
}

#[test]
fn warps_that_are_named() {
    let old = ".version 6.0\n.target sm_60\n.entry k()\n{\n.reg .pred %p<2>;\nvote.all.pred %p0, %p1;\n}\n";
    check(
        "W0505",
        old,
        expect![[r#"
            add `.sync` and the mask of a full warp
              + vote.sync.all.pred %p0, %p1, 0xffffffff;
              - vote.all.pred %p0, %p1;
        "#]],
    );
    check_body(
        "E0402",
        ".reg .b32 %r<3>;\nshfl.idx.b32 %r1, %r2, 0, 31;",
        expect![[r#"
            add `.sync` and the mask of a full warp
              + shfl.sync.idx.b32 %r1, %r2, 0, 31, 0xffffffff;
              - shfl.idx.b32 %r1, %r2, 0, 31;
        "#]],
    );
}

#[test]
fn declarations_that_are_missing() {
    check_body(
        "E0202",
        "mov.u32 %r1, 1;\nret;",
        expect![[r#"
            !insert the declaration `.reg .b32 %r1;`
              + .reg .b32 %r1;
        "#]],
    );
    check_body(
        "E0202",
        "    setp.eq.s32 %p1, 1, 2;\n@%p1 bra L;\nL: ret;",
        expect![[r#"
            !insert the declaration `.reg .pred %p1;`
              +     .reg .pred %p1;
        "#]],
    );
    check_body(
        "E0202",
        ".reg .b32 %r<2>;\nld.shared.v2.f32 {%f1, %f2}, [%r1];",
        expect![[r#"
            change to `%r1`
              + ld.shared.v2.f32 {%r1, %f2}, [%r1];
              - ld.shared.v2.f32 {%f1, %f2}, [%r1];
            insert the declaration `.reg .f32 %f<3>;`
              + .reg .f32 %f<3>;
        "#]],
    );
    check_body(
        "E0202",
        ".reg .b32 %r<2>;\nld.global.u32 %r1, [%rd1];",
        expect![[r#"
            insert the declaration `.reg .b64 %rd1;`
              + .reg .b64 %rd1;
        "#]],
    );
    check_body(
        "E0202",
        ".reg .b32 %r<2>;\nadd.u32 %r2, %r1, %r7;\nmov.u32 %r7, 0;",
        expect![[r#"
            !change the declaration to `%r<8>`
              + .reg .b32 %r<8>;
              - .reg .b32 %r<2>;
        "#]],
    );
    // One change for all uses of the name.
    check_body(
        "E0202",
        ".reg .b32 %index;\nmov.u32 %indes, 1;\nadd.u32 %index, %indes, 1;",
        expect![[r#"
        change to `%index`
          + mov.u32 %index, 1;
          + add.u32 %index, %index, 1;
          - mov.u32 %indes, 1;
          - add.u32 %index, %indes, 1;
        insert the declaration `.reg .b32 %indes;`
          + .reg .b32 %indes;
    "#]],
    );
    check_body(
        "E0202",
        "mov.f32 x, 0f00000000;",
        expect![[r#"
            !insert the declaration `.reg .f32 x;`
              + .reg .f32 x;
        "#]],
    );
}

#[test]
fn declarations_of_another_type() {
    check_body(
        "E0303",
        ".reg .f32 %f<3>;\nadd.u32 %f1, %f2, 1;",
        expect![[r#"
        declare `%f` as `.b32`
          + .reg .b32 %f<3>;
          - .reg .f32 %f<3>;
    "#]],
    );
    check_body(
        "E0303",
        ".reg .b32 %p;\nsetp.eq.u32 %p, 1, 2;",
        expect![[r#"
        declare `%p` as `.pred`
          + .reg .pred %p;
          - .reg .b32 %p;
    "#]],
    );
    check_body(
        "E0303",
        ".reg .b32 a, b;\nmov.b64 a, 0;",
        expect![[r#"
        change `.b64` to `.b32`
          + mov.b32 a, 0;
          - mov.b64 a, 0;
        change `.b64` to `.u32`
          + mov.u32 a, 0;
          - mov.b64 a, 0;
    "#]],
    );
}

#[test]
fn what_nothing_uses() {
    check_body(
        "W0502",
        ".reg .b32 a, b, c;\nmov.u32 a, 1;\nmov.u32 b, 1;\nret;",
        expect![[r#"
        !remove `c`
          + .reg .b32 a, b;
          - .reg .b32 a, b, c;
    "#]],
    );
    check_body(
        "W0502",
        ".reg .b32 a, b;\nmov.u32 b, 1;\nret;",
        expect![[r#"
        !remove `a`
          + .reg .b32 b;
          - .reg .b32 a, b;
    "#]],
    );
    check_body(
        "W0502",
        "ret;\n  .reg .b32 %r<3>;\n",
        expect![[r#"
        !remove `%r`
          -   .reg .b32 %r<3>;
    "#]],
    );
    check_body(
        "W0501",
        "L: ret;",
        expect![[r#"
            !remove `L`
              + ret;
              - L: ret;
        "#]],
    );
    check_body(
        "W0501",
        "\tL:\n\tret;",
        expect![[r#"
        !remove `L`
          - 	L:
    "#]],
    );
}

#[test]
fn directives_are_removed_with_their_arguments() {
    check(
        "E0101",
        ".version 8.0\n.target sm_80\n.func f() .maxntid 128, 1, 1 { ret; }\n",
        expect![[r#"
        remove `.maxntid`
          + .func f() { ret; }
          - .func f() .maxntid 128, 1, 1 { ret; }
    "#]],
    );
    check(
        "E0101",
        ".version 8.0\n.target sm_80\n.func f()\n    .maxclusterrank\n    8\n{ ret; }\n",
        expect![[r#"
        remove `.maxclusterrank`
          -     .maxclusterrank
          -     8
    "#]],
    );
}

#[test]
fn single_words() {
    check_body(
        "E0005",
        ".reg .b32 %r1;\nmov.u32 %r1, 1\nret;",
        expect![[r#"
            !insert `;`
              + mov.u32 %r1, 1;
              - mov.u32 %r1, 1
        "#]],
    );
    check_body(
        "E0304",
        ".reg .f32 %f1;\nadd.f32 %f1, %f1, -2;",
        expect![[r#"
            !change to `-2.0`
              + add.f32 %f1, %f1, -2.0;
              - add.f32 %f1, %f1, -2;
        "#]],
    );
    check_body(
        "E0308",
        ".reg .b32 %r1;\n.shared .b32 s;\nld.global.u32 %r1, [s];",
        expect![[r#"
            change to `.shared`
              + ld.shared.u32 %r1, [s];
              - ld.global.u32 %r1, [s];
        "#]],
    );
}

/// All safe fixes are applied together, twice.
#[test]
fn making_all_fixes_once_is_enough() {
    let text = ".entry k()\n{\nUNUSED:\n.reg .b32 %r<2>, unused;\nmov.u32 %r1, 1\nmul.u32.lo %r2, %r1, 3;\n\
                redux.sync.add.u32 %r1, %r2, -1;\nret;\n}\n";
    let db = database();
    let fixed = ide::fix_all(&db, text);
    let made: Vec<String> = fixed.made.iter().map(|(code, title)| format!("{code} {title}")).collect();
    expect![[r#"
        E0104 insert `.version 8.0` and `.target sm_80`
        E0005 insert `;`
        E0211 change to `mul.lo.u32`
        E0202 change the declaration to `%r<3>`
        W0501 remove `UNUSED`
        W0502 remove `unused`"#]]
    .assert_eq(&made.join("\n"));
    expect![[r#"
        .version 8.0
        .target sm_80
        .address_size 64
        .entry k()
        {
        .reg .b32 %r<3>;
        mov.u32 %r1, 1;
        mul.lo.u32 %r2, %r1, 3;
        redux.sync.add.u32 %r1, %r2, -1;
        ret;
        }
    "#]]
    .assert_eq(&fixed.text);
    let again = ide::fix_all(&db, &fixed.text);
    assert_eq!((again.text, again.made.len()), (fixed.text, 0));
}

/// A fix that would cause an error is not applied: the higher version no longer has `shfl` without `.sync`.
#[test]
fn fixes_that_break_something_are_not_made() {
    let text = ".version 6.3\n.target sm_75\n.entry k()\n{\n.reg .b32 %r<3>;\nshfl.idx.b32 %r1, %r2, 0, 31;\n\
                ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];\n}\n";
    let db = database();
    let found = ide::diagnostics(&db, db.add_file(text));
    let raise = &found.iter().find(|d| d.lint.code == "E0401").unwrap().fixes[0];
    assert_eq!(raise.applicability, Applicability::MachineApplicable);
    let fixed = ide::fix_all(&db, text);
    assert_eq!((fixed.text.as_str(), fixed.made.len()), (text, 0));
}

#[test]
fn what_is_missing_in_the_text_or_too_much() {
    let found = |body: &str| {
        let text = kernel(body);
        let fixed = ide::fix_all(&Database::default(), &text).text;
        let kept = |line: &&str| !text.lines().any(|old| old == *line) && !line.is_empty();
        fixed.lines().filter(kept).collect::<Vec<_>>().join(" ~ ")
    };
    let registers = ".reg .b32 %r<4>; .reg .pred %p<2>; .reg .b64 %d<2>; .reg .f32 %f<3>;\n";
    let check = |body: &str, fixed: &str| assert_eq!(found(&format!("{registers}{body}")), fixed, "{body}");
    check("add.u32 %r1, %r2 %r3;", "add.u32 %r1, %r2, %r3;");
    check("add.u32, %r1, %r2, %r3;", "add.u32 %r1, %r2, %r3;");
    check("ld.global.v2.f32 {%f1, %f2, [%d1];", "ld.global.v2.f32 {%f1, %f2}, [%d1];");
    check("ld.global.v2.f32 {%f1 %f2}, [%d1];", "ld.global.v2.f32 {%f1, %f2}, [%d1];");
    check("%p1 mov.u32 %r1, 1;", "@%p1 mov.u32 %r1, 1;");
    check("!%p1 mov.u32 %r1, 1;", "@!%p1 mov.u32 %r1, 1;");
    check("@~%p1 mov.u32 %r1, 1;", "@!%p1 mov.u32 %r1, 1;");
    check("mov.u32 %%r1, %%tid.x;", "mov.u32 %r1, %tid.x;");
    check("mov.u32 %r1, 1;;", "mov.u32 %r1, 1;");
    check("LOOP\nmov.u32 %r1, 1;\nbra LOOP;", "LOOP:");
    check("mov.f32 %f1, 1.5f;", "mov.f32 %f1, 1.5;");
    check("# a comment\nmov.u32 %r1, 1;", "// a comment");
}

#[test]
fn operands_that_are_missing_or_elsewhere() {
    let registers = ".reg .b32 %r<4>; .reg .pred %p<2>; .reg .b64 %d<2>; .reg .f32 %f<3>;\n";
    let check = |code: &str, body: &str, expected| check_body(code, &format!("{registers}{body}"), expected);
    check(
        "E0301",
        "shfl.sync.down.b32 %r1, %r2, 1, 31;",
        expect![[r#"
            add the mask of a full warp
              + shfl.sync.down.b32 %r1, %r2, 1, 31, 0xffffffff;
              - shfl.sync.down.b32 %r1, %r2, 1, 31;
        "#]],
    );
    check(
        "E0301",
        "bar.sync;",
        expect![[r#"
        add barrier 0
          + bar.sync 0;
          - bar.sync;
    "#]],
    );
    check(
        "E0301",
        "red.global.add.u32 %r1, [%d1], %r2;",
        expect![[r#"
        change to `atom`
          + atom.global.add.u32 %r1, [%d1], %r2;
          - red.global.add.u32 %r1, [%d1], %r2;
        remove `%r1,`
          + red.global.add.u32 [%d1], %r2;
          - red.global.add.u32 %r1, [%d1], %r2;
    "#]],
    );
    check(
        "E0302",
        "st.global.f32 %f1, [%d1];",
        expect![[r#"
            change to `[%d1], %f1`
              + st.global.f32 [%d1], %f1;
              - st.global.f32 %f1, [%d1];
        "#]],
    );
    check(
        "E0302",
        "ld.global.f32 %f1, %d1;",
        expect![[r#"
            change to `[%d1]`
              + ld.global.f32 %f1, [%d1];
              - ld.global.f32 %f1, %d1;
        "#]],
    );
    check(
        "E0302",
        "elect.sync %p1, -1;",
        expect![[r#"
            change to `_|%p1`
              + elect.sync _|%p1, -1;
              - elect.sync %p1, -1;
        "#]],
    );
    check(
        "E0303",
        "mov.b32 {%r1, %r2}, %d1;",
        expect![[r#"
        change `.b32` to `.b64`
          + mov.b64 {%r1, %r2}, %d1;
          - mov.b32 {%r1, %r2}, %d1;
    "#]],
    );
    check(
        "E0303",
        "and.b32 %p1, %p0, %p1;",
        expect![[r#"
        change `.b32` to `.pred`
          + and.pred %p1, %p0, %p1;
          - and.b32 %p1, %p0, %p1;
        declare `%p` as `.b32`
          + .reg .b32 %r<4>; .reg .b32 %p<2>; .reg .b64 %d<2>; .reg .f32 %f<3>;
          - .reg .b32 %r<4>; .reg .pred %p<2>; .reg .b64 %d<2>; .reg .f32 %f<3>;
    "#]],
    );
    check(
        "E0304",
        "mov.f32 %f1, 0x3f800000;",
        expect![[r#"
            change to `0f3f800000`
              + mov.f32 %f1, 0f3f800000;
              - mov.f32 %f1, 0x3f800000;
        "#]],
    );
    check(
        "E0203",
        "bra LOOPP;\nLOOP:",
        expect![[r#"
        change to `LOOP`
          + bra LOOP;
          - bra LOOPP;
    "#]],
    );
    check(
        "E0202",
        "mov.u32 %r1, %laneId;",
        expect![[r#"
            change to `%laneid`
              + mov.u32 %r1, %laneid;
              - mov.u32 %r1, %laneId;
            insert the declaration `.reg .b32 %laneId;`
              + .reg .b32 %laneId;
        "#]],
    );
}

#[test]
fn words_that_stand_for_others() {
    let registers = ".reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<2>;\n";
    let check = |code: &str, body: &str, expected| check_body(code, &format!("{registers}{body}"), expected);
    check(
        "E0211",
        "membar.gpu;",
        expect![[r#"
        change to `.gl`
          + membar.gl;
          - membar.gpu;
    "#]],
    );
    check(
        "E0212",
        "cvt.rn.s32.f32 %r1, %f1;",
        expect![[r#"
        change `.rn` to `.rni`
          + cvt.rni.s32.f32 %r1, %f1;
          - cvt.rn.s32.f32 %r1, %f1;
    "#]],
    );
    check(
        "E0212",
        "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
        expect![[r#"
            change `.m16n8k32` to `.m16n8k16`
              + mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};
              - mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};
        "#]],
    );
}

#[test]
fn one_mistake_is_said_once() {
    let count = |body: &str| {
        let db = database();
        let text =
            kernel(&format!(".reg .b32 %r<4>; .reg .pred %p<2>; .reg .b64 %d<3>; .reg .f32 %f<3>;\n{body}"));
        let found = ide::diagnostics(&db, db.add_file(text));
        found.iter().filter(|d| d.severity == Severity::Error).count()
    };
    for body in [
        "st.global.f32 %f1, [%d1];",
        "ld.global.u32 %r1, [%d1 + %d2];",
        "call foo, (%r1);",
        "elect.sync %p1, -1;",
        "add.u32 %f0, %f1, %f2;",
        "st.param.u32 [p], %r1;",
        "mov.b64 %d1, {%r1, %r2, %r3};",
        "%p1 bra DONE;\nDONE:",
    ] {
        assert_eq!(count(body), 1, "{body}");
    }
    // Two mistakes give two findings.
    assert_eq!(count("add.u32 %r1, %x, %y;"), 2);
}

#[test]
fn what_exists_in_place_of_what_does_not() {
    let module = |header: &str| format!("{header}\n.entry k()\n{{\nret;\n}}\n");
    check(
        "E0403",
        &module(".version 8.0\n.target sm_91"),
        expect![[r#"
        change to sm_90
          + .target sm_90
          - .target sm_91
    "#]],
    );
    check(
        "E0403",
        &module(".version 9.9\n.target sm_90"),
        expect![[r#"
            change to 9.5, the newest known version
              + .version 9.5
              - .version 9.9
        "#]],
    );
    check(
        "E0006",
        ".version 8.0\n.target sm_80\n.entry k()\n{\nret;\n\n.entry l()\n{\nret;\n}\n",
        expect![[r#"
            insert the closing `}`
        "#]],
    );
    check_body(
        "E0303",
        ".reg .b32 %r<4>;\nmul.wide.u32 %r1, %r2, 4;",
        expect![[r#"
        change `.wide` to `.lo`
          + mul.lo.u32 %r1, %r2, 4;
          - mul.wide.u32 %r1, %r2, 4;
    "#]],
    );
    check_body(
        "E0307",
        ".reg .f32 %f<4>; .reg .b64 %d;\nld.global.v4.f32 {%f1, %f2}, [%d];",
        expect![[r#"
        change `.v4` to `.v2`
          + ld.global.v2.f32 {%f1, %f2}, [%d];
          - ld.global.v4.f32 {%f1, %f2}, [%d];
    "#]],
    );
    check_body(
        "E0212",
        ".shared .b32 s; .reg .b32 %r;\nld.shared.nc.u32 %r, [s];",
        expect![[r#"
        remove `.nc`
          + ld.shared.u32 %r, [s];
          - ld.shared.nc.u32 %r, [s];
    "#]],
    );
}

/// The codes of all findings in a kernel around `body`.
fn codes(body: &str) -> Vec<&'static str> {
    let db = Database::default();
    ide::diagnostics(&db, db.add_file(kernel(body).as_str())).iter().map(|d| d.lint.code).collect()
}

#[test]
fn frequent_mistakes_are_one_finding() {
    let registers = ".reg .pred %p<2>; .reg .b32 %r<3>; mov.b32 %r1, 0;";
    let found = |body: &str| codes(&format!("{registers}\n{body}\nret;"));
    assert_eq!(found("shfl.down.b32 %r2, %r1, 1, 31, -1;"), ["E0402"]);
    assert_eq!(found("call;"), ["E0301"]);
    assert_eq!(found("L: @ bra L;"), ["E0004"]);
    assert_eq!(found("mov. %r2, %r1;"), ["E0004"]);
    assert_eq!(found("mov.b32. %r2, %r1;"), ["E0004"]);
    assert_eq!(found("setp.eq.u32 %p1, %r1, 0; selp.b32 %r2, %p1, %r1, %r1;"), ["E0303"]);
    assert_eq!(found("mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 %r5, %r4;"), ["E0202"]);
    assert_eq!(found(".reg .int %x, %y<2>;\nmov.u32 %x, 0; mov.u32 %y1, %x;"), ["E0101"]);
    assert_eq!(found("mov.b32 %r2, 0;\n}\nmov.b32 %r2, %r1;"), ["E0004"]);
    assert_eq!(found("/* open"), ["E0002"]);
    assert_eq!(found("@%p1 bra L;\n}\nmov.b32 %r2, %r1;\nL:"), ["E0004"]);
    assert_eq!(found("@%p1 bra L;\n/* open\nL:"), ["E0002"]);
    assert_eq!(found("add.u32 %r1, %r2, {_, _};"), ["E0302"]);
    assert_eq!(found("st.local.v4.b32 [0], 1;"), ["E0307"]);
    assert_eq!(found("@%tid.x add.u32 %r1, %r1, 1;"), ["E0305"]);
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.entry 2k(.param .u64 p, .param .b32 q)\n{\n.reg .b64 %d; ld.param.u64 %d, [p]; ret;\n}\n";
    let db = Database::default();
    let messages: Vec<String> =
        ide::diagnostics(&db, db.add_file(text)).into_iter().map(|d| d.message.to_string()).collect();
    assert_eq!(messages, ["expected a function name, found `2k`; a name cannot begin with a digit"]);
}

#[test]
fn mistakes_of_beginners() {
    check_body(
        "E0402",
        ".reg .b32 %r<3>;\nshfl.down.b32 %r2, %r1, 1, 31, -1;",
        expect![[r#"
        !add `.sync`
          + shfl.sync.down.b32 %r2, %r1, 1, 31, -1;
          - shfl.down.b32 %r2, %r1, 1, 31, -1;
    "#]],
    );
    check_body(
        "E0303",
        ".reg .pred %p<2>; .reg .b32 %r<4>;\nselp.b32 %r1, %p1, %r2, %r3;",
        expect![[r#"
            !change to `%r2, %r3, %p1`
              + selp.b32 %r1, %r2, %r3, %p1;
              - selp.b32 %r1, %p1, %r2, %r3;
        "#]],
    );
    check_body(
        "E0202",
        ".reg .b32 %r<3>;\nadd.u32 %r3, %r4, %r5;",
        expect![[r#"
        !change the declaration to `%r<6>`
          + .reg .b32 %r<6>;
          - .reg .b32 %r<3>;
    "#]],
    );
    check_body(
        "E0303",
        ".reg .b32 %r<3>;\nmov.u32 %r1, %ctaid;",
        expect![[r#"
        change to `%ctaid.x`
          + mov.u32 %r1, %ctaid.x;
          - mov.u32 %r1, %ctaid;
    "#]],
    );
    check_body(
        "E0303",
        ".reg .f32 %f<3>;\nadd.u32 %f2, %f1, %f1;",
        expect![[r#"
        change `.u32` to `.f32`
          + add.f32 %f2, %f1, %f1;
          - add.u32 %f2, %f1, %f1;
        declare `%f` as `.b32`
          + .reg .b32 %f<3>;
          - .reg .f32 %f<3>;
    "#]],
    );
    check_body(
        "E0210",
        ".reg .b32 %r<3>;\nADD.U32 %r1, %r2, 1;",
        expect![[r#"
        !change to `add.u32`
          + add.u32 %r1, %r2, 1;
          - ADD.U32 %r1, %r2, 1;
    "#]],
    );
    check_body(
        "E0210",
        ".reg .f32 %f<3>;\nmin.NaN.F32 %f1, %f2, %f2;",
        expect![[r#"
        !change to `min.NaN.f32`
          + min.NaN.f32 %f1, %f2, %f2;
          - min.NaN.F32 %f1, %f2, %f2;
    "#]],
    );
    check_body(
        "E0101",
        ".reg .int %r<3>;\nmov.u32 %r1, 0;",
        expect![[r#"
        !change to `.s32`
          + .reg .s32 %r<3>;
          - .reg .int %r<3>;
    "#]],
    );
    check_body(
        "E0002",
        "/* open\nret;",
        expect![[r#"
        insert `*/` at the end of the line
          + /* open */
          - /* open
    "#]],
    );
    check_body(
        "E0004",
        "}\nret;",
        expect![[r#"
        remove the `}` that ends the function
          + 
    "#]],
    );
    let target =
        |name: &str| format!(".version 9.0\n.target {name}\n.address_size 64\n.entry k() {{ ret; }}\n");
    check(
        "E0403",
        &target("sm90"),
        expect![[r#"
        change to `sm_90`
          + .target sm_90
          - .target sm90
    "#]],
    );
    check(
        "E0403",
        &target("SM_90a"),
        expect![[r#"
        change to `sm_90a`
          + .target sm_90a
          - .target SM_90a
    "#]],
    );
}

/// Abbreviations of modifiers are completed; words that have no effect on the instruction are not offered.
#[test]
fn abbreviated_modifiers() {
    let at = |statement: &str| {
        kernel(&format!(".reg .b32 %r;\n.reg .b64 %d;\nld.param.u64 %d, [p];\n{statement}\nret;"))
    };
    check(
        "E0211",
        &at("ld.glob.u32 %r, [%d];"),
        expect![[r#"
        !change to `.global`
          + ld.global.u32 %r, [%d];
          - ld.glob.u32 %r, [%d];
    "#]],
    );
    check(
        "E0211",
        &at("ld.vol.global.u32 %r, [%d];"),
        expect![[r#"
        !change to `.volatile`
          + ld.volatile.global.u32 %r, [%d];
          - ld.vol.global.u32 %r, [%d];
    "#]],
    );
    check(
        "E0211",
        &at("ld.glbl.u32 %r, [%d];"),
        expect![[r#"
        change to `.global`
          + ld.global.u32 %r, [%d];
          - ld.glbl.u32 %r, [%d];
    "#]],
    );
    check(
        "E0211",
        &at("ld.xyzzy.global.u32 %r, [%d];"),
        expect![[r#"
        remove `.xyzzy`
          + ld.global.u32 %r, [%d];
          - ld.xyzzy.global.u32 %r, [%d];
    "#]],
    );
}

#[test]
fn misspelled_special_registers() {
    check(
        "E0202",
        &kernel(".reg .b32 %r;\nmov.u32 %r, %tidx;\nret;"),
        expect![[r#"
        change to `%tid.x`
          + mov.u32 %r, %tid.x;
          - mov.u32 %r, %tidx;
        insert the declaration `.reg .b32 %tidx;`
          + .reg .b32 %tidx;
    "#]],
    );
}
