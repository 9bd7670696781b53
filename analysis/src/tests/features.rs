//! Editor features on small files; `$0` is the cursor.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use text_size::{TextRange, TextSize};

use crate::compile::functions;
use crate::db::{Database, SourceFile};
use crate::diagnostic::Diagnostic;
use crate::ide;
use crate::ready::{Code, is_ready, make_ready};

/// A kernel around `body`.
pub(super) fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .b32 table[4];\n\
         .visible .entry kernel(.param .u64 input)\n{{\n{body}\n}}\n"
    )
}

pub(super) fn open(body: &str) -> (Database, SourceFile, TextSize) {
    let text = kernel(body);
    let offset = text.find("$0").expect("the fixture has a cursor");
    let db = Database::default();
    let file = db.add_file(text.replacen("$0", "", 1));
    (db, file, TextSize::new(offset as u32))
}

pub(super) fn shown(db: &Database, file: SourceFile, range: TextRange) -> String {
    let start = ide::line_index(db, file).line_col(range.start());
    format!("{}:{} {}", start.line + 1, start.col, &file.text(db)[range])
}

#[test]
fn hover_on_register() {
    let (db, file, offset) = open(".reg .b32 %r<3>;\nmov.u32 %r$01, 1;\nadd.s32 %r2, %r1, %r1;\nret;");
    let hover = ide::hover(&db, file, offset, Code::Awaited).unwrap();
    expect![[r#"
        ```ptx
        .reg .b32 %r1
        ```
        untyped, 32 bits; written 1×, read 2×

        declared on line 7
    "#]]
    .assert_eq(&hover.markdown);
}

#[test]
fn hover_on_instruction() {
    let (db, file, offset) = open(".reg .b32 %r<3>;\na$0dd.s32 %r2, %r1, 1;\nret;");
    let hover = ide::hover(&db, file, offset, Code::Awaited).unwrap();
    let head: Vec<&str> = hover.markdown.lines().take(6).collect();
    expect![[r#"
        ```ptx
        add.s32 d, a, b
        ```
        Adds two values.

        no machine code: the result is never read"#]]
    .assert_eq(&head.join("\n"));
    let forms: Vec<&str> = hover.markdown.lines().filter(|line| line.starts_with("- ")).collect();
    expect![[r#"
        - `d`: written; a register; `.s32`
        - `a`: read; a register or a constant; `.s32`
        - `b`: read; a register or a constant; `.s32`
        - **`add{.sat}.type d, a, b`** ◂ this form
        - `add.cc.type d, a, b`
        - `add{.rn|rz|rm|rp}{.ftz}{.sat}.f32 d, a, b`
        - `add{.rn|rz|rm|rp}.f64 d, a, b`
        - `add{.rn|rz|rm|rp}{.ftz}.f32x2 d, a, b`: requires PTX ISA 8.6, sm_100 or higher
        - `add{.rn|rz|rm|rp}{.sat}.f32.f16|bf16 d, a, c`: requires PTX ISA 8.6, sm_100 or higher
        - `add{.rn}{.ftz}{.sat}.type d, a, b`"#]]
    .assert_eq(&forms.join("\n"));
}

#[test]
fn completions_say_what_modifiers_need() {
    let (db, file, offset) = open("ld.global.$0");
    let all = ide::completions(&db, file, offset);
    let detail = |label: &str| all.iter().find(|item| item.label == label).map(|item| item.detail.as_str());
    expect![[r#"Some("PTX ISA 6.0, sm_70 or higher") Some("PTX ISA 7.4, sm_80 or higher")"#]]
        .assert_eq(&format!("{:?} {:?}", detail("relaxed"), detail("L2::cache_hint")));
}

#[test]
fn hover_on_parts_of_statements() {
    let first = |body: &str| {
        let (db, file, offset) = open(body);
        let hover = ide::hover(&db, file, offset, Code::Awaited);
        let text = hover.map_or("nothing".to_owned(), |hover| hover.markdown);
        text.lines().take(4).collect::<Vec<_>>().join(" ") + "\n"
    };
    let hovers = [
        first("fma.rn.f$0tz.f32 %f0, %f0, 0f3F800000, %f1;"),
        first("fma.rn.ftz.f32 %f0, %f0, 0f3F8$000000, %f1;"),
        first("ld.global.L2::c$0ache_hint.f32 %f0, [%rd0], %rd1;"),
        first("lop3.b$032 %r1, %r1, %r2, %r3, 0xCA;"),
        first("lop3.b32 %r1, %r1, %r2, %r3, 0x$0CA;"),
        first("prmt.b32 %r1, %r1, %r2, 0x54$010;"),
        first("prmt.b32.rc8 %r1, %r1, %r2, 0$0x9;"),
        first(".local .align 4 .b8 sta$0ck[16];\nno.such;"),
        first(".pragma \"noun$0roll\";"),
        first("mov.u32 %r1, %cluster$0id.x;"),
        first("add.s32 %r1, %r2, -$01;"),
        first(
            ".reg .f32 %f<4>; .reg .b64 %rd1;\nmov.u64 %rd1, 0x40000040000$010000;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd1, %rd1, 1,1,1,0,0;",
        ),
        first("add.b$0ogus %r1, %r2, 3;"),
    ];
    expect![[r#"
        `.ftz`: flushes subnormal `.f32` inputs and results to zero, keeping the sign  ```ptx fma.rn.ftz.f32 d, a, b, c
        `1.0` as `.f32`, bits `0f3F800000`
        `.L2::cache_hint`: the last operand is a 64-bit cache policy from `createpolicy`  ```ptx ld.global.L2::cache_hint.f32 d, [a], cache-policy
        `.b32`: untyped, 32 bits  ```ptx lop3.b32 d, a, b, c, immLut
        `202` = `0xca`  - `immLut` is `0xca`: `(a & b) | (~a & c)`
        `21520` = `0x5410`  - `c` is `0x5410`: from the lowest byte on: byte 0 of `a`, byte 1 of `a`, byte 0 of `b`, byte 1 of `b`
        `9` = `0x9`
        ```ptx .local .align 4 .b8 stack[16] ``` 
        `nounroll`: do not unroll this loop, or any loop of the function or module
        ```ptx .sreg .u32 %clusterid.x ``` index of the cluster in the grid
        `-1` = `0xffffffff` as `.b32`
        `4611686293305360384` = `0x4000004000010000` = `2.000122070341604` as `.f64`  in `wgmma` on line 9: 
        `add.bogus`  not compiled: `.bogus` is not a modifier or type of any instruction (line 7) 
    "#]].assert_eq(&hovers.concat());
}

#[test]
fn hover_on_variables_and_parameters() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.extern .shared .b8 dynamic[];\n\
                .entry k(.param .u64 .ptr .global .align 16 p, .param .align 64 .b8 map[128])\n\
                {\n.shared .align 8 .b64 bar[4];\nEND:\nbra END;\nbra END;\n}\n\
                .entry l() { .reg .b64 %d; mov.u64 %d, dynamic; bra END; END: ret; }\n";
    let hover = |what: &str, at: usize| {
        let db = Database::default();
        let file = db.add_file(text);
        let offset = file.text(&db).find(what).unwrap() + at;
        let shown = ide::hover(&db, file, TextSize::new(offset as u32), Code::Awaited).unwrap().markdown;
        shown
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("```"))
            .collect::<Vec<_>>()
            .join(" | ")
            + "\n"
    };
    let shown =
        [hover("dynamic[", 0), hover(".global", 1), hover("map[", 0), hover("bar[", 0), hover("END:", 0)];
    expect![[r#"
        .extern .shared .align 1 .b8 dynamic[] | the launch determines the size | declared on line 4
        `.global`: the parameter is a pointer to `.global` memory
        .param .b8 map[128] | 128 bytes, aligned to 64, at offset 64 | declared on line 5
        .shared .align 8 .b64 bar[4] | 32 bytes | declared on line 7
        END: | label; used 2× | declared on line 8
    "#]]
    .assert_eq(&shown.concat());
}

#[test]
fn hover_on_names_of_the_module() {
    let (db, file, offset) = open(".reg .b64 %rd<2>;\nmov.u64 %rd1, tab$0le;\nret;");
    expect![[r#"
        ```ptx
        .visible .global .align 4 .b32 table[4]
        ```
        16 bytes

        declared on line 4
    "#]]
    .assert_eq(&ide::hover(&db, file, offset, Code::Awaited).unwrap().markdown);
}

fn check_references(body: &str, expected: Expect) {
    let (db, file, offset) = open(body);
    let mut out = String::new();
    for reference in ide::references(&db, file, offset).unwrap_or_default() {
        let _ = writeln!(out, "{} {:?}", shown(&db, file, reference.range), reference.access);
    }
    let definition = ide::definition(&db, file, offset).map(|target| shown(&db, file, target.focus));
    let _ = writeln!(out, "defined at {definition:?}");
    expected.assert_eq(&out);
}

#[test]
fn references_to_one_register_of_a_range() {
    check_references(
        ".reg .b32 %r<3>;\nmov.u32 %r1, 1;\nadd.s32 %r2, %r$01, %r1;\nret;",
        expect![[r#"
        7:10 %r Declaration
        8:8 %r1 Write
        9:13 %r1 Read
        9:18 %r1 Read
        defined at Some("7:10 %r")
    "#]],
    );
}

#[test]
fn references_respect_scopes() {
    check_references(
        ".reg .b32 x;\nmov.u32 x, 1;\n{\n.reg .b32 x;\nmov.u32 $0x, 2;\n}\nadd.s32 x, x, 1;\nret;",
        expect![[r#"
            10:10 x Declaration
            11:8 x Write
            defined at Some("10:10 x")
        "#]],
    );
}

#[test]
fn references_to_label_and_variable() {
    check_references(
        "bra DO$0NE;\nDONE:\nret;",
        expect![[r#"
        7:4 DONE Read
        8:0 DONE Declaration
        defined at Some("8:0 DONE")
    "#]],
    );
    check_references(
        ".reg .b32 %r1;\nld.global.u32 %r1, [ta$0ble+4];\nret;",
        expect![[r#"
        4:31 table Declaration
        8:20 table Read
        defined at Some("4:31 table")
    "#]],
    );
}

#[test]
fn rename_label() {
    let (db, file, offset) = open("bra DO$0NE;\nDONE:\nret;");
    let edits = ide::rename(&db, file, offset, "END").unwrap();
    let edits: Vec<String> =
        edits.iter().map(|edit| shown(&db, file, edit.range) + " -> " + &edit.text).collect();
    expect![[r#"
        7:4 DONE -> END
        8:0 DONE -> END"#]]
    .assert_eq(&edits.join("\n"));
    expect!["`1x` is not a valid PTX name"].assert_eq(&ide::rename(&db, file, offset, "1x").unwrap_err());
}

#[test]
fn rename_range_of_registers() {
    let (db, file, offset) = open(".reg .b32 %$0r<3>;\nmov.u32 %r1, 1;\nret;");
    let edits = ide::rename(&db, file, offset, "%x").unwrap();
    let edits: Vec<String> =
        edits.iter().map(|edit| shown(&db, file, edit.range) + " -> " + &edit.text).collect();
    expect![[r#"
        7:10 %r -> %x
        8:8 %r1 -> %x1"#]]
    .assert_eq(&edits.join("\n"));
}

fn check_completions(body: &str, wanted: &[&str], unwanted: &[&str]) {
    let (db, file, offset) = open(body);
    let labels: Vec<String> =
        ide::completions(&db, file, offset).into_iter().map(|item| item.label).collect();
    for word in wanted {
        assert!(labels.iter().any(|label| label == word), "no `{word}` in {labels:?}");
    }
    for word in unwanted {
        assert!(!labels.iter().any(|label| label == word), "`{word}` in {labels:?}");
    }
}

#[test]
fn completions_by_place() {
    check_completions("ad$0", &["add", "addc", "mad"], &["%r1"]);
    check_completions("ld.global.$0", &["nc", "u32", "v4", "relaxed"], &["shared", "rn"]);
    check_completions("redux.sync.add.$0", &["u32", "s32"], &["f32", "b32", "abs"]);
    let registers = ".reg .b32 %r<3>;\n.reg .pred %p<2>;\nL1:\n";
    let check = |body: &str, wanted: &[&str], unwanted: &[&str]| {
        check_completions(&format!("{registers}{body}"), wanted, unwanted);
    };
    check("add.s32 %$0", &["%r1"], &["add", "%p1", "L1", "table", "input", "%tid.x"]);
    check("add.s32 %r1, %$0", &["%r1"], &["%p1", "L1", "table", "%tid.x"]);
    check("mov.u32 %r1, $0", &["%r1", "%tid.x", "table", "input"], &["%p1"]);
    check("@!$0", &["%p1"], &["%r1", "L1", "table", "add"]);
    check("setp.lt.s32 $0", &["%p1"], &["%r1", "table"]);
    check("ld.global.u32 %r1, [$0", &["%r1", "table"], &["input", "L1"]);
    check("ld.param.u32 %r1, [$0", &["%r1", "input"], &["table", "L1"]);
    check("selp.b32 %r1, %r1, %r2, $0", &["%p1"], &["%r1", "L1"]);
    check_completions("L1:\nbra $0;\n{\nL2:\n}", &["L1"], &["L2", "%tid.x"]);
}

#[test]
fn outline_and_folds() {
    let (db, file, _) = open(".shared .b8 tile[16];\nLOOP:\nbra LOOP;$0");
    let mut out = String::new();
    for symbol in ide::document_symbols(&db, file) {
        let _ = writeln!(out, "{:?} {} ({})", symbol.kind, symbol.name, symbol.detail);
        for child in &symbol.children {
            let _ = writeln!(out, "  {:?} {}", child.kind, child.name);
        }
    }
    for fold in ide::folding_ranges(&db, file) {
        let lines = ide::line_index(&db, file);
        let (start, end) =
            (lines.line_col(fold.range.start()).line + 1, lines.line_col(fold.range.end()).line + 1);
        let _ = writeln!(out, "{:?} {start}-{end}", fold.kind);
    }
    expect![[r#"
        Variable table (.visible .global .align 4 .b32 table[4])
        Entry kernel (.entry, 1 parameter)
          Parameter input
          Variable tile
          Label LOOP
        Region 6-10
    "#]]
    .assert_eq(&out);
}

#[test]
fn tokens_know_their_names() {
    let (db, file, _) =
        open(".reg .pred %p<2>;\n@%p1 bra L;\nL:\nmov.u32 %x, %tid.x;\nvadd.u32.u32.u32 %x, %y.b1, %z;$0");
    let tokens = ide::semantic_tokens(&db, file, None);
    let body: Vec<String> = tokens
        .iter()
        .skip_while(|token| &file.text(&db)[token.range] != "input")
        .map(|token| format!("{} {:?}", &file.text(&db)[token.range], token.kind))
        .collect();
    expect![[r#"
        input Parameter
        .reg Directive
        .pred Type
        %p Register
        2 Number
        %p1 Predicate
        bra Mnemonic
        L Label
        L Label
        mov Mnemonic
        .u32 Type
        %tid SpecialRegister
        .x SpecialRegister
        vadd Mnemonic
        .u32 Type
        .u32 Type
        .u32 Type
        .b1 SpecialRegister"#]]
    .assert_eq(&body.join("\n"));
}

#[test]
fn fixes_are_offered() {
    // Also elsewhere on the line.
    for body in ["ad$0.s32 %r1, %r2, 1;", "ad.s32 %r1, %r$02, 1;"] {
        let (db, file, offset) = open(&format!(".reg .b32 %r<3>;\n{body}\nret;"));
        let actions = ide::code_actions(&db, file, TextRange::empty(offset));
        let titles: Vec<&str> = actions.iter().map(|action| action.title.as_str()).collect();
        expect![[r#"
            change to `add`
            Explain E0210
            Show SASS of kernel"#]]
        .assert_eq(&titles.join("\n"));
    }
}

#[test]
fn lints_are_ignored_on_their_line() {
    let ignored = |body: &str| {
        let (db, file, offset) = open(body);
        let here = TextRange::empty(offset);
        let is_ignore = |action: &ide::CodeAction| action.title == "Ignore W0507 on this line";
        let action = ide::code_actions(&db, file, here).into_iter().find(is_ignore).expect("it is offered");
        let [edit] = &action.edits[..] else { panic!("{action:?}") };
        let mut text = file.text(&db).to_string();
        text.replace_range(std::ops::Range::<usize>::from(edit.range), &edit.text);
        let file = db.add_file(text.as_str());
        assert_eq!(ide::diagnostics(&db, file), []);
        text.lines().filter(|line| line.contains("ptx-ignore")).collect::<Vec<_>>().join("\n")
    };
    let body = ".reg .b32 %r<3>;\nadd.s32 %r1, %r$02, 1;";
    assert_eq!(ignored(&format!("{body}\nret;")), "add.s32 %r1, %r2, 1; // ptx-ignore: W0507");
    assert_eq!(
        ignored(&format!("{body} // ptx-ignore: W0522 -- later\nret;")),
        "add.s32 %r1, %r2, 1; // ptx-ignore: W0507, W0522 -- later"
    );
    assert_eq!(ignored(&format!("{body} // a sum\nret;")), "// ptx-ignore: W0507");
}

#[test]
fn one_mistake_is_one_finding() {
    let found = |text: &str| {
        let db = Database::default();
        let found = ide::diagnostics(&db, db.add_file(text));
        found.iter().map(|d| (d.lint.code, d.related.len())).collect::<Vec<_>>()
    };
    let body =
        ".reg .b32 %r<9>;\nmov.b32 %r1, 1;\nredux.sync.add.u32 %r2, %r1, -1;\ncp.async.wait_all;\nret;";
    let module = |version: &str, target: &str| {
        format!(
            ".version {version}\n.target {target}\n.entry k() {{\n{body}\n}}\n.entry l() {{\n{body}\n}}\n"
        )
    };
    // One error for each function: for the other statement, and for the directive.
    assert_eq!(found(&module("9.0", "sm_75")), [("E0402", 2), ("E0402", 2)]);
    // The target requires the same version as the instructions.
    assert_eq!(found(&module("6.0", "sm_80")), [("E0403", 1)]);
    assert_eq!(found(&kernel(".reg .pred %p<2>;\n@%p1 {\nret;\n}\nret;")).len(), 1);
    let product =
        "wgmma.fence.sync.aligned;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nret;";
    let ampere = format!(".version 9.0\n.target sm_80\n.entry k() {{\n{product}\n}}\n");
    assert_eq!(found(&ampere), [("E0402", 3)]);
    let body = ".reg .b32 %r<9>;\nmad.lo.u32 %r1, %r2, %r3, %r4;\nadd.u32 %r1, %r5, %r6;\nret;";
    assert_eq!(found(&kernel(body)), [("W0507", 2), ("W0507", 1)]);
}

#[test]
fn text_after_the_last_item_is_checked() {
    for (rest, code) in
        [("/* open", "E0002"), ("// \u{3c0}\n", "E0001"), ("#pragma once\n", "E0004"), ("// fine\n", "")]
    {
        let db = Database::default();
        let text = kernel("ret;") + rest;
        for file in [db.add_file(text.as_str()), db.add_frozen_file(text.as_str())] {
            let found = ide::diagnostics(&db, file);
            let codes: Vec<_> = found.iter().map(Diagnostic::code).collect();
            assert_eq!(codes.concat(), code, "{rest}");
        }
    }
}

#[test]
fn an_unclosed_inner_brace_is_reported_where_it_opens() {
    let db = Database::default();
    let text = kernel("    {\n        ret;\n    // The block ends here.\n    ret;");
    let found = ide::diagnostics(&db, db.add_file(text.as_str()));
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.lint.code, "E0006");
    let inner = text.rfind('{').unwrap() as u32;
    assert_eq!(u32::from(finding.range.start()), inner, "{}", finding.message);
}

#[test]
fn signature_names_the_operand() {
    let (db, file, offset) = open(".reg .b32 %r<3>;\nadd.s32 %r1, $0");
    let help = ide::signature_help(&db, file, offset).unwrap();
    expect!["add.s32 d, a, b Some(1)"].assert_eq(&format!("{} {:?}", help.label, help.active));
}

#[test]
fn signature_of_a_call_is_that_of_the_function() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n\
                .func (.param .f32 r) scale(.param .f32 x, .param .b8 s[16])\n{\nret;\n}\n\
                .entry k(.param .u64 a, .param .u64 b)\n{\n$0\n}\n";
    let help = |call: &str| {
        let at = text.find("$0").unwrap() + call.len();
        let db = Database::default();
        let file = db.add_file(text.replace("$0", call));
        let help = ide::signature_help(&db, file, TextSize::new(at as u32)).unwrap();
        let active = help.active.map(|at| &help.parameters[at as usize]);
        let active = active.map_or("none", |range| &help.label[range.start as usize..range.end as usize]);
        format!("{} | {active}\n", help.label)
    };
    let shown = [
        help("call (r0), scale, (%f1, "),
        help("call.uni (r0), scale, ("),
        help("call "),
        help("ld.global.f32 %f1, ["),
    ];
    expect![[r#"
        call (.f32 r), scale, (.f32 x, .b8 s[16]) | .b8 s[16]
        call.uni (.f32 r), scale, (.f32 x, .b8 s[16]) | .f32 x
        call ret-param?, func, params?, targets? | ret-param?
        ld.global.f32 d, [a] | [a]
    "#]]
    .assert_eq(&shown.concat());
}

#[test]
fn a_function_that_never_reaches_the_compiler_says_where_and_why() {
    let db = Database::default();
    let body = ".reg .f32 %r<4>;\nmov.f32 %r1, 0f3F800000;\nst.global.f32 [%clock], %r1;\nret;";
    let file = db.add_file(kernel(body));
    assert!(ide::diagnostics(&db, file).is_empty());
    let found = ide::compile_diagnostics(&db, file);
    let text: Vec<String> =
        found.iter().map(|d| format!("{}: {}", shown(&db, file, d.range), d.message)).collect();
    expect!["9:0 st.global.f32 [%clock], %r1;: `kernel` cannot be compiled yet: unsupported statement"]
        .assert_eq(&text.join("\n"));
}

/// A million equal errors do not give a million findings.
#[test]
fn notes_belong_to_their_messages() {
    let notes = |text: &str, code: &str| {
        let db = Database::default();
        let file = db.add_file(text);
        let found = ide::diagnostics(&db, file);
        found
            .iter()
            .find(|d| d.lint.code == code)
            .unwrap_or_else(|| panic!("no {code}: {found:?}"))
            .notes
            .clone()
    };
    let head = ".version 8.0\n.target sm_80\n";
    let debug = ".version 8.0\n.target sm_80, debug\n.entry k() { ret; }\n";
    assert!(notes(debug, "E0108").is_empty());
    let both = format!("{head}.entry k() .maxntid 32 .reqntid 32 {{ ret; }}\n");
    assert_eq!(
        notes(&both, "E0108"),
        ["`.reqntid` gives the exact size of a CTA, `.maxntid` an upper bound"]
    );
    assert!(notes(&format!("{head}.func f() .maxntid 128 {{ ret; }}\n"), "E0101").is_empty());
    let body = |body: &str| format!("{head}.entry k() {{ .reg .f32 %f<4>; .reg .b32 %r<4>; {body} ret; }}\n");
    let negated = notes(&body("add.f32 %f1, %f2, -%f3;"), "E0305");
    assert_eq!(negated, ["use `neg` to negate a register, or `sub` in place of `add`"]);
    let written = notes(&body("mov.u32 %tid.x, %r1;"), "E0302");
    assert_eq!(written, ["operand `d` of `mov.u32` is a destination"]);
}

#[test]
fn findings_are_bounded() {
    use crate::diagnostic::Findings;
    let db = Database::default();
    let names = "a,".repeat(2 * Findings::LIMIT);
    let file = db.add_file(kernel(&format!(".reg .b32 {names}a;\nmov.u32 %r1, 1;\nret;")));
    let found = ide::diagnostics(&db, file);
    let again = |d: &&crate::diagnostic::Diagnostic| d.lint.code == "E0201";
    assert_eq!(found.iter().filter(again).count(), Findings::LIMIT);
    let last = found.iter().rfind(again).unwrap();
    assert_eq!(last.notes.last().unwrap(), "further findings of this kind are not shown");
    assert!(found.iter().any(|d| d.lint.code == "E0202"), "other lints have room of their own");
}

/// The codes of the findings in a kernel with this body.
fn codes(body: &str) -> Vec<&'static str> {
    let db = Database::default();
    let file = db.add_file(kernel(body));
    ide::diagnostics(&db, file).iter().map(Diagnostic::code).collect()
}

#[test]
fn comments_hide_lints() {
    let read = |before: &str, behind: &str| {
        codes(&format!(".reg .b32 %r<3>;\n{before}mov.b32 %r1, %r2;{behind}\nret;"))
    };
    assert_eq!(read("", ""), ["W0507"]);
    for hidden in
        ["// ptx-ignore: W0507", "//ptx-ignore:unassigned-read", "// ptx-ignore: W0501 W0507 -- on purpose"]
    {
        assert_eq!(read("", hidden), [""; 0], "{hidden}");
        assert_eq!(read(&format!("{hidden}\n"), ""), [""; 0], "{hidden}");
    }
    // If several comments stand on lines of their own above a statement, all of them apply. A comment after code
    // applies to its own line.
    assert_eq!(read("// ptx-ignore: W0507\n  // ptx-ignore: W0501\n", ""), [""; 0]);
    assert_eq!(read("mov.b32 %r1, 1; // ptx-ignore: W0507\n", ""), ["W0507"]);
    assert_eq!(read("// ptx-ignore: W0507\n\n", ""), ["W0507"]);
    // Looks like a suppression but is not one.
    assert_eq!(read("", "/* // ptx-ignore: W0507 */"), ["W0507"]);
    assert_eq!(read("", " .pragma \"nounroll\"; // ptx-ignored: W0507"), ["W0507"]);
}

#[test]
fn comments_hide_no_errors() {
    assert_eq!(codes("mov.u32 %r1, 1;"), ["E0202"]);
    assert_eq!(codes("mov.u32 %r1, 1; // ptx-ignore: E0202"), ["E0202", "W0523"]);
    assert_eq!(codes("// ptx-ignore: undefined-register\nmov.u32 %r1, 1;"), ["W0523", "E0202"]);
    assert_eq!(codes("ret; // ptx-ignore"), ["W0523"]);
    assert_eq!(codes("ret; // ptx-ignore: , -- why"), ["W0523"]);
    assert_eq!(codes("ret; // ptx-ignore: W0501, W05O2"), ["W0523"]);
    assert_eq!(codes("ret; // ptx-ignore: W0523, E0202"), [""; 0]);
}

#[test]
fn machine_code_of_a_kernel() {
    let (db, file, offset) = open(
        ".reg .b32 %r<3>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [input];\nst.global.u32 [%rd1], 7;$0\nret;",
    );
    let view = ide::sass_view_at(&db, file, offset, ide::SassStyle::default()).unwrap();
    assert_eq!(view.text.lines().count(), view.lines.len());
    let store = view.text.lines().position(|line| line.contains("STG")).unwrap();
    assert_eq!(shown(&db, file, view.lines[store].unwrap()), "10:0 st.global.u32 [%rd1], 7;");
    let resources = &ide::function_resources(&db, file)[0];
    assert!(resources.resources.is_ok(), "{}", resources.summary());
}

#[test]
fn what_a_higher_occupancy_needs() {
    let summary = |shared: &str| {
        let db = Database::default();
        let file = db.add_file(kernel(&format!("{shared}ret;")).as_str());
        ide::function_resources(&db, file)[0].summary()
    };
    let text = summary(".shared .b8 all[40000];\n.reg .b32 %r;\nmov.u32 %r, all;\nst.shared.u32 [%r], 1;\n");
    assert!(text.contains("limited by shared memory; 75% requires at most "), "{text}");
    assert!(!summary("").contains("needs"));
}

/// Of a register with a known value, hardware and ptxas use the low bits.
#[test]
fn barriers_take_the_low_bits_of_registers() {
    let code = |body: &str| {
        let text = format!(".reg .b32 %r<5>;\n.reg .pred %p;\n{body}\nret;$0");
        let (db, file, offset) = open(&text);
        assert_eq!(ide::diagnostics(&db, file), []);
        let view = ide::sass_view_at(&db, file, offset, ide::SassStyle::default()).unwrap();
        view.text
            .lines()
            .find_map(|line| Some(format!("BAR{}", line.split_once("BAR")?.1)))
            .unwrap_or_default()
    };
    assert_eq!(code("mov.u32 %r1, 64;\nbarrier.sync %r1;"), "BAR.SYNC.DEFER_BLOCKING 0x0 ;");
    assert_eq!(
        code("mov.u32 %r1, 60;\nadd.u32 %r1, %r1, 7;\nbarrier.sync %r1;"),
        "BAR.SYNC.DEFER_BLOCKING 0x3 ;"
    );
    assert_eq!(
        code("mov.u32 %r1, -1;\nmov.u32 %r2, 5000;\nbarrier.sync %r1, %r2;"),
        "BAR.SYNC.DEFER_BLOCKING 0xf, 0x388 ;"
    );
    assert_eq!(code("mov.u32 %r1, 17;\nbarrier.arrive %r1, 64;"), "BAR.ARV 0x1, 0x40 ;");
    // Known after a join of two paths.
    let ways = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p, %r1, 5;\nmov.u32 %r2, 64;\n@%p bra A;\nmov.u32 %r2, 70;\nadd.u32 %r2, %r2, -6;\nA:\nadd.u32 %r4, %r2, 6000;";
    assert_eq!(code(&format!("{ways}\nbarrier.sync %r2, %r4;")), "BAR.SYNC.DEFER_BLOCKING 0x0, 0x7b0 ;");
    // Both values are unknown, and the same register holds both.
    assert_eq!(
        code("mov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %nctaid.y;\nbarrier.sync %r1, %r2;"),
        "BAR.SYNC.DEFER_BLOCKING R0, R0 ;"
    );
}

#[test]
fn no_offset_is_out_of_reach() {
    let broken =
        kernel(".reg .b32 %r<3>;\n// \u{e4}\nadd.s32 %r1, {%r2, \u{20ac}[;\n@ bra\n.loc 1\nmov.u32 %tid.x")
            + "}} .entry\n/* open";
    let db = Database::default();
    let file = db.add_file(broken.as_str());
    for offset in 0..=broken.len() as u32 + 2 {
        let offset = TextSize::new(offset);
        let _ = ide::hover(&db, file, offset, Code::Awaited);
        let _ = ide::completions(&db, file, offset);
        let _ = ide::signature_help(&db, file, offset);
        let _ = ide::definition(&db, file, offset);
        let _ = ide::highlights(&db, file, offset);
        let _ = ide::rename(&db, file, offset, "x");
        let _ = ide::code_actions(&db, file, TextRange::empty(offset));
    }
    let _ = (
        ide::document_symbols(&db, file),
        ide::folding_ranges(&db, file),
        ide::code_lenses(&db, file, Code::Awaited),
    );
    let _ = ide::semantic_tokens(&db, file, None);
}

#[test]
fn large_functions_wait_for_a_save() {
    let mut db = Database::default();
    db.set_live_limit(Some(3));
    let text = kernel(".reg .b32 %r<3>;\nmov.u32 %r1, 1;\nmov.u32 %r2, %r1;\nadd.s32 %r2, %r1, %r1;\nret;");
    let file = db.add_file(text.replace("sm_90", "sm_80"));
    let all = TextRange::up_to(TextSize::of(text.as_str()));
    let shown = |db: &Database| {
        let hint = ide::inlay_hints(db, file, all, Code::Awaited).pop().expect("a hint").label;
        let notes = ide::compile_diagnostics(db, file);
        (hint, notes.first().map(|note| note.message.clone()))
    };
    let message = "`kernel` is too large to compile while typing (4 statements); save the file to compile it";
    assert_eq!(
        shown(&db),
        ("not compiled: too large to compile while typing".to_owned(), Some(message.to_owned()))
    );
    let offset = TextSize::new(text.find("mov.u32").expect("it is there") as u32);
    let hover = ide::hover(&db, file, offset, Code::Awaited).expect("a hover").markdown;
    assert!(hover.contains(message), "{hover}");
    db.set_compiles_all(file, true);
    let (hint, note) = shown(&db);
    assert!(hint.contains("registers") && note.is_none(), "{hint} {note:?}");
    db.set_compiles_all(file, false);
    db.set_live_limit(Some(4));
    assert_eq!(shown(&db), (hint, None));
}

/// A request that does not wait does not compile a function whose code is not available.
#[test]
fn questions_that_do_not_wait_compile_nothing() {
    let (mut db, file, offset) = open("st$0.global.u32 [table], 1;\nret;");
    let text = file.text(&db).to_string();
    let function = |db: &Database| functions(db, file).next().unwrap().offset(db);
    db.set_text(file, format!("{text}.visible .entry other() {{ ret; }}\n"));
    let places: Vec<usize> =
        (0..crate::items::items(&db, file).len()).filter(|&at| !is_ready(&db, file, at)).collect();
    assert_eq!(places.len(), 2, "{places:?}");
    let hover = |db: &Database| {
        let ask = |wanted: &[usize]| wanted.iter().map(|&at| is_ready(db, file, at)).collect::<Vec<_>>();
        ide::hover(db, file, offset, Code::IfReady(&ask)).unwrap().markdown
    };
    assert!(hover(&db).contains("being compiled"), "{}", hover(&db));
    assert!(!is_ready(&db, file, places[0]));
    make_ready(&db, file, places[0]);
    assert!(hover(&db).contains("STG"), "{}", hover(&db));
    assert!(!is_ready(&db, file, places[1]));
    // The code survives an edit of another function, and a new comment.
    let before = function(&db);
    let edited = file.text(&db).to_string().replace("other() { ret; }", "other() { exit; }");
    db.set_text(file, edited.replace("ret;\n}", "/**/ret;\n}"));
    assert_eq!(function(&db), before);
    assert!(is_ready(&db, file, places[0]) && !is_ready(&db, file, places[1]));
}

/// C++ names are shown demangled.
#[test]
fn readable_names() {
    let text = ".version 8.0\n.target sm_90\n.global .u32 _ZN1a1bE;\n.visible .entry _Z4gemmILi64EEvPf(.param .u64 p) { ret; }\n";
    let db = Database::default();
    let file = db.add_file(text);
    let symbols = ide::document_symbols(&db, file);
    let shown: Vec<String> =
        symbols.iter().map(|symbol| format!("{} | {}", symbol.name, symbol.detail)).collect();
    assert_eq!(
        shown,
        ["a::b | .global .align 4 .u32 _ZN1a1bE", "gemm<64> | .entry, 1 parameter: _Z4gemmILi64EEvPf"]
    );
    let at = TextSize::new(text.find("_Z4").unwrap() as u32);
    let markdown = ide::hover(&db, file, at, Code::Awaited).unwrap().markdown;
    assert!(markdown.contains("```cpp\nvoid gemm<64>(float*)\n```"), "{markdown}");
    let view = ide::sass_view(&db, file, "_Z4gemmILi64EEvPf", ide::SassStyle::default()).unwrap();
    assert_eq!(view.text.lines().nth(1), Some("// gemm<64>"));
}

/// What the warp scheduler waits for, and where statements without an instruction of their own went.
#[test]
fn hovers_tell_what_instructions_wait_for() {
    let body = ".reg .b64 %rd<4>;\n.reg .f32 %f<6>;\nld.param.u64 %rd1, [input];\n\
        cvta.to.global.u64 %rd2, %rd1;\nld.global.f32 %f1, [%rd2];\nmul.f32 %f2, %f1, %f1;\n\
        add.f32 %f3, %f2, 0f3F800000;\nadd.f32 %f4, %f3, %f1;\nst.global.f32 [%rd2], %f3;\nret;";
    let (db, file, _) = open(&format!("{body}$0"));
    let hover = |place: &str| {
        let at = file.text(&db).find(place).unwrap() + 1;
        let markdown = ide::hover(&db, file, TextSize::new(at as u32), Code::Awaited).unwrap().markdown;
        let told = markdown.lines().take_while(|line| *line != "---").filter(|line| {
            ["/*", "machine code", "includes", "no instruction"].iter().any(|word| line.contains(word))
        });
        told.map(|line| line.to_owned() + "\n").collect::<String>()
    };
    let all = ["ld.param", "cvta", "mul.f32", "add.f32 %f3", "add.f32 %f4", "st.global"].map(hover);
    expect![[r#"
        no instruction of its own: part of the machine code of `ld.global.f32` (line 11), `st.global.f32` (line 15)
        no instruction of its own: part of the machine code of `ld.global.f32` (line 11), `st.global.f32` (line 15)
        no instruction of its own: part of the machine code of `add.f32` (line 13)
        /*0050*/ FFMA R5, R0, R0, 1 ; // waits for SB0 (LDG on line 11), 5 cycles, may yield
        includes `mul.f32` (line 12)
        no machine code: the result is never read
        /*0060*/ STG.E desc[UR0][R2.64], R5 ; // 1 cycle
        includes `ld.param.u64` (line 9), `cvta.to.global.u64` (line 10)
    "#]].assert_eq(&all.concat());
}
