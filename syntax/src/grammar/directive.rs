//! Directives that are neither declarations nor functions.

use super::expression;
use super::statement::semicolon;
use crate::SyntaxKind::{self, *};
use crate::parser::Parser;

/// `.version 9.0`
pub(super) fn version(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    if !(p.eat(FLOAT) || p.eat(INT)) {
        p.error_expected("a version such as `9.0`");
    }
    VERSION_DIRECTIVE
}

/// `.target sm_90, texmode_independent`
pub(super) fn target(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    loop {
        if !p.eat(IDENT) {
            p.error_expected("a target such as `sm_90`");
            break;
        }
        if !p.eat(COMMA) {
            break;
        }
    }
    TARGET_DIRECTIVE
}

/// `.address_size 64`
pub(super) fn address_size(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    if !p.eat(INT) {
        p.error_expected("`32` or `64`");
    }
    ADDRESS_SIZE_DIRECTIVE
}

/// `.file 1 "name.cu", 1700000000, 1234`
pub(super) fn file(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    if !p.eat(INT) {
        p.error_expected("a file number");
    } else if !p.eat(STRING) {
        p.error_expected("a file name in quotes");
    }
    while p.at(COMMA) {
        p.bump();
        if !p.eat(INT) {
            p.error_expected("a time or size");
        }
    }
    FILE_DIRECTIVE
}

/// `.loc 1 20 5, function_name $info + 24, inlined_at 1 10 3`
pub(super) fn loc(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    position(p);
    while p.at(COMMA) {
        p.bump();
        let clause = p.start();
        match p.current_text() {
            "function_name" => {
                p.bump();
                if p.at(DOT_WORD) || p.at(IDENT) && !p.at_line_start() {
                    expression::name_and_bytes(p);
                } else {
                    p.error_expected("a label or section of a debug string");
                }
                clause.complete(p, LOC_FUNCTION);
            }
            "inlined_at" => {
                p.bump();
                position(p);
                clause.complete(p, LOC_INLINED_AT);
            }
            _ => {
                p.error_expected("`function_name` or `inlined_at`");
                break;
            }
        }
    }
    LOC_DIRECTIVE
}

/// The numbers of file, line and column.
fn position(p: &mut Parser<'_>) {
    for what in ["a file number", "a line number", "a column number"] {
        if !p.eat(INT) {
            p.error_expected(what);
            return;
        }
    }
}

/// `.pragma "nounroll";`
pub(super) fn pragma(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    loop {
        if !p.eat(STRING) {
            p.error_expected("a string");
            break;
        }
        if !p.eat(COMMA) {
            break;
        }
    }
    semicolon(p);
    PRAGMA
}

/// `.alias name, aliasee;`
pub(super) fn alias(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    let name = p.start();
    if p.eat(IDENT) {
        name.complete(p, NAME);
    } else {
        p.error_expected("the name of the alias");
    }
    p.expect(COMMA);
    if p.at(IDENT) {
        expression::name_ref(p);
    } else {
        p.error_expected("the name of a function");
    }
    semicolon(p);
    ALIAS
}

/// `@@DWARF .4byte 0x10`. Its contents are not parsed.
pub(super) fn dwarf_line(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    p.bump();
    if !p.current_text().eq_ignore_ascii_case("dwarf") {
        p.error_expected("`DWARF`");
    }
    while !p.at(EOF) && !p.at_line_start() {
        p.bump();
    }
    DWARF_LINE
}
