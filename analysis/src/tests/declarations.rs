//! Accepted and rejected modules: their headers, declarations and constants.

use crate::db::Database;
use crate::diagnostic::Severity;
use crate::ide;

/// The errors of a module after its header: their lines as ptxas counts them, from one, and their codes.
fn errors(module: &str) -> Vec<(u32, &'static str)> {
    errors_after(".version 9.0\n.target sm_90\n.address_size 64\n", module)
}

fn errors_after(header: &str, module: &str) -> Vec<(u32, &'static str)> {
    let text = format!("{header}{module}\n");
    let db = Database::default();
    let file = db.add_file(text.as_str());
    let found = ide::diagnostics(&db, file);
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors
        .map(|error| {
            let reported = usize::from(error.reported.unwrap_or(error.range.start()));
            (text[header.len()..reported].matches('\n').count() as u32 + 1, error.code())
        })
        .collect()
}

/// Checks that the first modules are accepted, and that each of the others has a given error.
fn check(accepted: &[&str], refused: &[(&str, u32, &str)]) {
    for module in accepted {
        assert_eq!(errors(module), [], "{module}");
    }
    for &(module, line, code) in refused {
        let found = errors(module);
        assert!(found.contains(&(line, code)), "{module}: {found:?}");
    }
}

#[test]
fn declarations_without_names() {
    check(
        &[
            ".u8;",
            ".visible .u8; .v4 .u8; .align 8 .f32; .texref; .pred; .global .u8; .attribute(.managed) .u8;",
            ".entry k() { .u8; .f16x2; .e4m3; .align 8 .v2 .f64; ret; }",
        ],
        &[
            (".u8 x;", 1, "E0101"),
            (".entry k() { .u8 x; ret; }", 1, "E0101"),
            (".u8 .u8;", 1, "E0004"),
            (".visible .extern .u8;", 1, "E0101"),
            (".u8, .u8;", 1, "E0004"),
            (".tf32;", 1, "E0101"),
            (".entry k() { .s4; ret; }", 1, "E0101"),
            (".v4;", 1, "E0004"),
            (".entry k() { .texref; ret; }", 1, "E0109"),
            (".entry k() { { .global .surfref; } ret; }", 1, "E0109"),
        ],
    );
}

#[test]
fn constant_banks() {
    let old = |module: &str| errors_after(".version 2.1\n.target sm_20\n", module);
    let load = |bank: &str| format!(".entry k() {{ .reg .u32 r, a; ld.const{bank}.u32 r, [a]; ret; }}");
    for bank in ["", "[0]", "[1]", "[10]"] {
        assert_eq!(old(&load(bank)), [], "{bank}");
    }
    for bank in ["[11]", "[00]", "[ 0 ]", "[0x1]"] {
        assert_eq!(old(&load(bank)), [(1, "E0101")], "{bank}");
    }
    assert_eq!(old(".const[0] .u32 c = 7;"), []);
    assert_eq!(old(".const[2] .u32 c = 7;"), [(1, "E0101")]);
    assert_eq!(old(".extern .const[2] .u32 c[4];"), [(1, "E0101")]);
    assert_eq!(errors_after(".version 1.4\n.target sm_13\n", &load("[0]")), []);
    assert_eq!(errors_after(".version 1.4\n.target sm_13\n", &load("[1]")), [(1, "E0401")]);
    assert_eq!(errors(&load("[0]")), [(1, "E0112")]);
}

#[test]
fn attributes_of_functions() {
    check(
        &[],
        &[
            // Only the option `-c` of the compiler allows it.
            (".func .attribute(.unified(1,0x2U)) f() { ret; }", 1, "E0115"),
            (".func .attribute(.unified(1.0,2)) f() { ret; }", 1, "E0004"),
            (".func .attribute(.unified(1+1,2)) f() { ret; }", 1, "E0004"),
            (".func .attribute(.unified(1)) f() { ret; }", 1, "E0101"),
            (".func .attribute(.managed) f() { ret; }", 1, "E0101"),
            (".func f() .attribute(.unified(1,2)) { ret; }", 1, "E0004"),
        ],
    );
}

#[test]
fn a_label_is_the_only_value_of_its_directive() {
    check(
        &[".section .debug_x {\nl:\n.b32 l\n.b64 l+1\n.b8 1, 2\n}"],
        &[
            (".section .debug_x {\nl:\n.b32 1, l\n}", 3, "E0114"),
            (".section .debug_x {\nl:\n.b32 .debug_x, 1\n}", 3, "E0114"),
            (".section .debug_x {\n.b64 -9223372036854775809\n}", 2, "E0114"),
        ],
    );
}

#[test]
fn the_size_of_a_warp_is_a_number() {
    check(
        &[
            ".global .align WARP_SZ .b32 x[WARP_SZ];",
            ".global .b32 x[2] = {WARP_SZ, -WARP_SZ|1};",
            ".entry k(.param .align WARP_SZ .b8 a[WARP_SZ]) .maxntid 1, WARP_SZ { .reg .b32 %r<WARP_SZ>; ret; }",
            ".file WARP_SZ \"a.cu\"\n.entry k() { .loc WARP_SZ WARP_SZ WARP_SZ\nret; }",
        ],
        &[
            (".global .b32 WARP_SZ;", 1, "E0004"),
            (".func WARP_SZ() { ret; }", 1, "E0004"),
            (".entry k() { WARP_SZ: ret; }", 1, "E0004"),
            (".section .debug_str { .b8 WARP_SZ }", 1, "E0114"),
            (".file WARP_SZ \"a.cu\"\n.file 32 \"b.cu\"", 3, "E0201"),
        ],
    );
}

#[test]
fn constant_expressions() {
    check(
        &[
            ".global .f32 x = -(0f3F800000);",
            ".global .f64 x = -0d3FF0000000000000;",
            ".global .f64 x = 1.0/-0.5;",
            ".global .f64 x = 0.0e-400;",
            ".global .b64 x = 1 ? 2 : (1.0 == 1.0);",
            ".entry k() { .reg .b32 %r<3>; .reg .b64 %d; mov.b64 %d, {-1|2, %r1}; add.s32 %r1, %r2, !1|2; ret; }",
        ],
        &[
            (".global .f32 x = -0f3F800000;", 1, "E0103"),
            (".global .f64 x = 1.0/0.0;", 1, "E0103"),
            (".global .f64 x = 1e-310;", 1, "E0003"),
            (".global .b32 x = !1.0;", 1, "E0103"),
            (".global .b32 x = 1.0 || 1.0;", 1, "E0103"),
            (".global .f64 x = 1 ? 1.0 : 2.0;", 1, "E0103"),
            (".global .b64 x = 1 ? 1 : 5/0;", 1, "E0103"),
            (".entry k() { .reg .b32 %r<3>; add.s32 %r1, %r2, %r1|1; ret; }", 1, "E0004"),
        ],
    );
}

#[test]
fn integers_of_directives_have_32_bits() {
    check(
        &[
            ".entry k() .maxntid 18446744069414584321 .maxnreg 18446744073709551615 { ret; }",
            ".global .align 18446744069414584336 .b32 x;",
            ".file 18446744073709551615 \"a.cu\"",
            ".global .b8 x[281474976710656];",
        ],
        &[
            (".entry k() .maxnreg 4294967296 { ret; }", 1, "E0102"),
            (".entry k() .maxnreg 18446744069414584320 { ret; }", 1, "E0102"),
            (".entry k() .reqntid 32 .reqnctapercluster 0 .blocksareclusters { ret; }", 1, "E0108"),
            (".file 4294967296 \"a.cu\"", 1, "E0102"),
            (".global .b8 x[2][0];", 1, "E0102"),
        ],
    );
}

#[test]
fn what_is_missing_is_noticed_at_the_next_token() {
    check(
        &[".func f()\n.entry k() { ret; }\n.func f() { ret; }"],
        &[
            (".global .b32 x", 2, "E0005"),
            (".global .b32 x\n\n// why\n.global .b32 y;", 4, "E0005"),
            (".global .b32 x[\n;", 2, "E0004"),
            (".entry k()\n", 3, "E0004"),
            (".entry k() {\nret\n/* why */\n}", 4, "E0005"),
            (".entry k() { .reg .b32 %r1; mov.b32 %r1,\n# 1\n;\nret; }", 3, "E0004"),
        ],
    );
}

#[test]
fn pointers_among_parameters() {
    check(
        &[".entry k(.param .u64 .align 8 a, .param .u64 .ptr .global .align 8 b) { ret; }"],
        &[
            (".entry k(.param .u64 .align 8 .ptr a) { ret; }", 1, "E0101"),
            (".entry k(.param .u64 .align 7 a) { ret; }", 1, "E0102"),
            (".entry k(.param .u64 .ptr .param a) { ret; }", 1, "E0004"),
            (".func f(.param .u64 .align 8 a) { ret; }", 1, "E0109"),
            (".global .u64 .align 8 a;", 1, "E0004"),
        ],
    );
}

#[test]
fn names_of_sections() {
    check(
        &[
            ".section .debug_str { .b8 1 }",
            ".section .x { .b8 1 }",
            ".section .tf32 { .b32 .wide .b8 -0, 0 .b32 a-b.b64 .tile::w + 4 }",
        ],
        &[
            (".section .reg { .b8 1 }", 1, "E0004"),
            (".section .u32 { .b8 1 }", 1, "E0004"),
            (".section .rn { .b8 1 }", 1, "E0004"),
            (".section .4byte { .b8 1 }", 1, "E0004"),
            (".section .debug_str { .b32 .rn }", 1, "E0004"),
            (".section .debug_str { .b32 a-.b }", 1, "E0004"),
            (".section .debug_str { .b32 .a-b }", 1, "E0004"),
            (".section .debug_str { .b32 -0 }", 1, "E0114"),
            (".section .debug_str { .b32 -1U }", 1, "E0114"),
            (".section .nv.info { .b8 1 }", 1, "E0004"),
        ],
    );
}

#[test]
fn names_of_ranges() {
    check(
        &[".entry k() { .reg .b32 x<4>; x3: mov.b32 x1, 1; ret; }"],
        &[
            (".entry k() { .reg .b32 x1<4>; mov.b32 x13, 1; ret; }", 1, "E0202"),
            (".entry k() { .reg .b32 x<4>; .reg .b32 x3; ret; }", 1, "E0201"),
        ],
    );
}

#[test]
fn no_quote_stands_in_a_string() {
    check(&[".file 1 \"C:\\\""], &[(".pragma \"a\\\"b\";", 1, "E0004")]);
}

#[test]
fn positions_and_files() {
    let position = |clauses: &str| format!(".entry k() {{\n.loc 1 1 1\n.loc 1 2 1, {clauses}\nret;\n}}");
    check(
        &[
            ".file 1\n\"a.cu\"\n, 1, 2",
            ".entry k() { .loc 1\n2 3\nret; }",
            &position("function_name .debug_str + 4, inlined_at 1 1 1"),
            ".entry k() { .pragma \"frequency 0x10\"; ret; }",
        ],
        &[
            (".file 1 \"a.cu\"\n.file 1 \"b.cu\"\n\n.global .b32 x;", 4, "E0201"),
            (".section .debug_str { .b8 1; }", 1, "E0004"),
            ("\n.loc 1 1 1", 2, "E0101"),
            (&position("function_name L"), 4, "E0101"),
            (&position("function_name L, inlined_at 1 1"), 4, "E0004"),
            (
                &(position("function_name L-4, inlined_at 1 1 1") + ".section .debug_str { L: .b8 1 }"),
                3,
                "E0004",
            ),
            (
                &(position("function_name L, inlined_at 1 2 1") + ".section .debug_str { L: .b8 1 }"),
                3,
                "E0114",
            ),
            (".entry k() { .pragma \"frequency 08\"; ret; }", 1, "E0113"),
            (".pragma \"nounroll \";", 1, "E0113"),
        ],
    );
}

#[test]
fn markers_of_lines() {
    check(
        &["# 1 \"a.cu\"\n#line 2 \"a.cu\" 3\n.global .b32 x;"],
        &[
            ("#\n.global .b32 x;", 1, "E0004"),
            ("# 1\n.global .b32 x;", 1, "E0004"),
            ("# 1 \"a.cu\" x\n.global .b32 x;", 1, "E0004"),
        ],
    );
}

#[test]
fn headers() {
    let errors = |header: &str| {
        let db = Database::default();
        let file = db.add_file(header);
        let found = ide::diagnostics(&db, file);
        let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        errors.map(|error| error.code()).collect::<Vec<_>>()
    };
    assert_eq!(errors(".version \t9.0\n.target sm_90\n.address_size 0x40\n"), [""; 0]);
    assert_eq!(errors(".version\n9.0\n.target sm_90\n"), ["E0104"]);
    assert_eq!(errors(".version /**/ 9.0\n.target sm_90\n"), ["E0104"]);
}

#[test]
fn an_alias_is_a_definition() {
    let call = "\n.entry k() { call b; ret; }";
    check(
        &[&(".func a() { ret; }\n.extern .func b();\n.alias b, a;".to_owned() + call)],
        &[(&(".extern .func b();".to_owned() + call), 2, "E0115")],
    );
}

#[test]
fn bodies_declare_no_kernels() {
    check(
        &[".entry k() { .extern .func f(); ret; }"],
        &[
            (".entry k() { .entry j(); ret; }", 1, "E0004"),
            (".entry k() { .visible .entry j(); ret; }", 1, "E0004"),
        ],
    );
}

#[test]
fn findings_lie_in_texts_that_end_early() {
    for text in ["@@", "@@D", "@@DWARF .byte 1"] {
        let db = Database::default();
        let file = db.add_file(text);
        let found = ide::diagnostics(&db, file);
        assert!(found.iter().all(|d| usize::from(d.range.end()) <= text.len()), "{found:?}");
        assert!(!found.is_empty(), "{text}");
    }
}

#[test]
fn short_parameters_of_functions() {
    check(
        &[
            ".func f(.param .b16 a) { ret; }\n.entry k() { .param .b16 a; call f, (a); ret; }",
            ".func (.param .b8 r) f() { ret; }\n.entry k() { .param .b8 a; call (a), f; ret; }",
            ".func f(.param .u16 a[1]) { ret; }\n.entry k() { .param .u16 a[1]; call f, (a); ret; }",
            ".func f(.param .u16 a) { ret; }\n.entry k(.param .u16 a) { ret; }",
        ],
        &[
            (".func f(.param .u16 a) { ret; }\n.entry k() { .param .u16 a; call f, (a); ret; }", 2, "E0303"),
            (".func f(.param .u16 a) { ret; }\n.entry k() { call f, (3); ret; }", 2, "E0303"),
            (".func (.param .s8 r) f() { ret; }\n.entry k() { .param .s8 a; call (a), f; ret; }", 2, "E0303"),
            (
                ".entry k() { .reg .b64 %d;\np: .callprototype _ (.param .u8 _);\n.param .u8 a; call %d, (a), p; ret; }",
                3,
                "E0303",
            ),
        ],
    );
}

#[test]
fn declarations_preserve_the_same_registers() {
    check(
        &[
            ".func f() .abi_preserve 4 .abi_preserve_control 2;\n.func f() .abi_preserve_control 2 .abi_preserve 4 { ret; }",
            ".visible .func a();\n.visible .func b() .abi_preserve 4 { ret; }\n.alias a, b;",
        ],
        &[
            (".func f() .abi_preserve 4;\n.func f() { ret; }", 2, "E0205"),
            (".func f();\n.func f() .abi_preserve_control 4 { ret; }", 2, "E0205"),
            (".func f() .abi_preserve 4;\n.func f() .abi_preserve 5 { ret; }", 2, "E0205"),
        ],
    );
}

/// An incomplete file has one finding for each missing part.
#[test]
fn what_is_not_complete_is_reported_once() {
    let header = ".version 8.5\n.target sm_90\n.address_size 64\n";
    let codes = |text: &str| {
        let db = Database::default();
        let found = ide::diagnostics(&db, db.add_file(text));
        found.iter().map(|d| d.lint.code).collect::<Vec<_>>().join(" ")
    };
    let found = [
        codes(".version "),
        codes(".version 8.5\n.target "),
        codes(".version 8.5\n.target sm_90\n.address_size "),
        codes(&format!("{header}.visible .entry k(")),
        codes(&format!("{header}.visible .entry k(.param ")),
        codes(&format!("{header}.visible .entry k(.param .u64 a")),
        codes(".func f() { .reg; add; }"),
    ];
    expect_test::expect![[r#"
        E0107 E0004
        E0004
        E0004
        E0006
        E0006 E0004
        E0006
        E0104 E0004 E0212"#]]
    .assert_eq(&found.join("\n"));
}

/// Registers whose declaration has a mistake count as declared.
#[test]
fn mistakes_in_register_declarations_are_reported_once() {
    for name in ["%r<>", "%r 8>", "%r8>", "%r[8]", "%r<8x>", "%r<8", "%r<-1>", "%r<8.5>", "%x, %r<>, %y"] {
        let body = "mov.u32 %r1, 1;\nmov.u32 %r2, 2;\nadd.u32 %r3, %r1, %r2;\nret;";
        let found = errors(&format!(".entry k() {{\n.reg .b32 {name};\n{body}\n}}"));
        assert_eq!(found.len(), 1, "{name}: {found:?}");
    }
}
