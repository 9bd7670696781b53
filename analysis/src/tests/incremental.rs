//! Which queries run after an edit.

use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};

use crate::db::Database;
use crate::items::items;
use crate::lower::lower;
use crate::{compile, ide};

const TEXT: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter;
.func helper(.param .b32 a)
{
	.reg .b32 %r<2>;
	ld.param.b32 %r1, [a];
	ret;
}
.visible .entry first(.param .u64 p)
{
	.reg .b32 %r<3>;
	mov.u32 %r1, 1;
	ret;
}
.visible .entry second(.param .u64 q)
{
	.reg .b32 %r<3>;
	{
	.param .b32 x;
	st.param.b32 [x], 1;
	call helper, (x);
	}
	ret;
}
";

/// Checks and compiles the text, replaces `old` with `new`, repeats this, and counts the queries of the second run.
fn check(old: &str, new: &str, expected: Expect) {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&log);
    let mut db = Database::with_hook(Box::new(move |query| sink.lock().unwrap().push(query.to_owned())));
    let file = db.add_file(TEXT);
    let run = |db: &Database| {
        assert!(ide::diagnostics(db, file).is_empty());
        for item in compile::functions(db, file) {
            compile::compile_function(db, item);
        }
    };
    run(&db);
    log.lock().unwrap().clear();
    assert!(TEXT.contains(old));
    db.set_text(file, TEXT.replacen(old, new, 1));
    run(&db);
    expected.assert_eq(&counts(&log.lock().unwrap()));
}

/// The number of times that each costly query ran.
fn counts(log: &[String]) -> String {
    let count = |name: &str| log.iter().filter(|query| query.split('(').next() == Some(name)).count();
    let queries = [
        "items",
        "parse",
        "item_decl",
        "module",
        "is_still_declared_before",
        "lower",
        "environment",
        "compile_function",
    ];
    let counts: Vec<String> = queries.iter().map(|name| format!("{name} {}", count(name))).collect();
    counts.join(", ")
}

#[test]
fn comment_above_everything() {
    check(
        ".func helper",
        "// a comment\n.func helper",
        expect![
            "items 1, parse 0, item_decl 1, module 0, is_still_declared_before 0, lower 1, environment 0, compile_function 0"
        ],
    );
}

#[test]
fn comment_before_the_header() {
    check(
        ".version",
        "// a comment\n.version",
        expect![
            "items 1, parse 0, item_decl 1, module 0, is_still_declared_before 0, lower 0, environment 0, compile_function 0"
        ],
    );
}

#[test]
fn comment_inside_one_body() {
    check(
        "mov.u32 %r1, 1;",
        "mov.u32 %r1, 1; // a comment",
        expect![
            "items 1, parse 0, item_decl 1, module 0, is_still_declared_before 0, lower 1, environment 0, compile_function 0"
        ],
    );
}

#[test]
fn one_statement_in_one_body() {
    check(
        "mov.u32 %r1, 1;",
        "mov.u32 %r1, 2;",
        expect![
            "items 1, parse 0, item_decl 1, module 0, is_still_declared_before 0, lower 1, environment 0, compile_function 1"
        ],
    );
}

#[test]
fn parameter_added() {
    check(
        "first(.param .u64 p)",
        "first(.param .u64 p, .param .u32 n)",
        expect![
            "items 1, parse 0, item_decl 1, module 1, is_still_declared_before 1, lower 1, environment 1, compile_function 1"
        ],
    );
}

#[test]
fn initial_value_changed() {
    check(
        "counter;",
        "counter = 7;",
        expect![
            "items 1, parse 0, item_decl 1, module 1, is_still_declared_before 1, lower 0, environment 1, compile_function 0"
        ],
    );
}

#[test]
fn levels_repeat_no_walk() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&log);
    let mut db = Database::with_hook(Box::new(move |query| sink.lock().unwrap().push(query.to_owned())));
    let file = db.add_file(TEXT);
    ide::diagnostics(&db, file);
    log.lock().unwrap().clear();
    db.set_levels(crate::diagnostic::Levels::default());
    ide::diagnostics(&db, file);
    // The only query asks again whether optional lints are enabled. Nothing that depends on an unchanged answer runs
    // again.
    assert!(log.lock().unwrap().iter().all(|query| query.starts_with("extras(")));
}

/// The same for the size of real modules: the work after an edit does not grow with the number of functions.
#[test]
fn one_statement_among_two_thousand_functions() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&log);
    let mut db = Database::with_hook(Box::new(move |query| sink.lock().unwrap().push(query.to_owned())));
    let mut text = ".version 9.0\n.target sm_90\n.address_size 64\n".to_owned();
    for index in 0..2000 {
        text += &format!(".visible .entry kernel{index}(.param .u64 p)\n{{\n\t// {index}\n\tret;\n}}\n");
    }
    let file = db.add_file(text.as_str());
    let run = |db: &Database| {
        assert!(ide::diagnostics(db, file).is_empty());
        compile::compile_all(db, file, &|_, _| ());
    };
    run(&db);
    let mut edit = |new: &str, expected: Expect| {
        log.lock().unwrap().clear();
        db.set_text(file, text.replacen("// 1000", new, 1));
        run(&db);
        expected.assert_eq(&counts(&log.lock().unwrap()));
    };
    edit(
        "// one thousand",
        expect![
            "items 1, parse 0, item_decl 1, module 0, is_still_declared_before 0, lower 1, environment 0, compile_function 0"
        ],
    );
    edit(
        "trap;",
        expect![
            "items 1, parse 0, item_decl 1, module 0, is_still_declared_before 0, lower 1, environment 0, compile_function 1"
        ],
    );
}

/// The checks have walked over the edited function, and a hover needs only the tree of one statement.
#[test]
fn a_hover_after_an_edit_repeats_nothing() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&log);
    let mut db = Database::with_hook(Box::new(move |query| sink.lock().unwrap().push(query.to_owned())));
    let file = db.add_file(TEXT);
    ide::diagnostics(&db, file);
    let text = TEXT.replacen("mov.u32 %r1, 1", "mov.u32 %r2, 1", 1);
    let mnemonic = text.find("mov.u32 %r2").unwrap();
    db.set_text(file, text);
    ide::diagnostics(&db, file);
    log.lock().unwrap().clear();
    let not_ready = |wanted: &[usize]| vec![false; wanted.len()];
    let hover = ide::hover(&db, file, (mnemonic as u32).into(), crate::Code::IfReady(&not_ready)).unwrap();
    assert!(hover.markdown.contains("mov.u32 d, a"), "{}", hover.markdown);
    expect!["items 0, parse 0, item_decl 0, module 0, is_still_declared_before 0, lower 0, environment 0, compile_function 0"]
        .assert_eq(&counts(&log.lock().unwrap()));
}

/// The list of functions with bodies, and the places of their names, are the same as after a walk.
#[test]
fn functions_are_known_before_a_walk() {
    let text = TEXT.to_owned()
        + ".func f();\n.extern .func g() { ret; }\n.entry h( { ret; }\n.entry i() .maxntid { ret; }\n\
           .visible .func (.reg .b32 r) j(.reg .b32 a) // {\n{ ret; }\n.entry k() { { ret; }\n.entry () { }\n\
           .func /* l */ l /* { */ (.param .b32 a[2])\n{ }\n.entry m()\n";
    let db = Database::default();
    let file = db.add_file(text);
    let found: Vec<_> = compile::functions(&db, file).collect();
    for &item in items(&db, file) {
        let lowered = lower(&db, item);
        let name = lowered.map.name_range().map(|range| range + item.offset(&db));
        let is_function = lowered.has_body && name.is_some();
        assert_eq!(found.contains(&item), is_function, "{}", item.text(&db));
        if is_function {
            assert_eq!(item.name_range(&db), name, "{}", item.text(&db));
        }
    }
    let names: Vec<&str> = found.iter().map(|item| item.name(&db).as_str()).collect();
    for name in ["helper", "first", "second", "g", "i", "j", "k", "l"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
}
