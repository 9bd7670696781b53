//! Sections of debug data.

use ptx_isa::is_reserved;

use super::expression;
use super::statement::{label, skip_line};
use crate::SyntaxKind::{self, *};
use crate::parser::Parser;
use crate::{ErrorCode, TextRange};

/// `.section .debug_str { label: .b8 1, 2 .b64 label + 4 }`
pub(super) fn section(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    let name = p.start();
    if at_name(p) {
        p.bump();
        name.complete(p, NAME);
    } else {
        p.error_expected("a section name");
    }
    let open = p.current_range();
    if !p.expect(L_BRACE) {
        return SECTION;
    }
    loop {
        match p.current() {
            DOT_WORD => data(p),
            IDENT if p.nth(1) == COLON => label(p),
            R_BRACE => {
                p.bump();
                break;
            }
            EOF => {
                unclosed(p, open, "section");
                break;
            }
            _ => {
                p.error_expected("section data such as `.b8 1`, a label, or `}`");
                skip_line(p);
            }
        }
    }
    SECTION
}

/// Whether the next token can be the name of a section.
fn at_name(p: &Parser<'_>) -> bool {
    p.at(DOT_WORD) && !is_reserved(&p.current_text()[1..])
}

/// Reports that the brace at `open` is not closed.
pub(super) fn unclosed(p: &mut Parser<'_>, open: TextRange, what: &str) {
    p.error_at(
        ErrorCode::Unbalanced,
        open,
        format!("unclosed `{{`, expected `}}` before the end of the {what}"),
    );
}

/// `.b8 1, 2`
fn data(p: &mut Parser<'_>) {
    let marker = p.start();
    p.bump();
    loop {
        if !value(p) {
            break;
        }
        if !p.eat(COMMA) {
            break;
        }
    }
    marker.complete(p, SECTION_DATA);
}

/// Parses a number, a label or a section with or without an offset, or a difference of labels. Returns false and
/// reports an error if there is none.
fn value(p: &mut Parser<'_>) -> bool {
    if p.at(IDENT) && p.nth(1) == MINUS {
        let difference = expression::name_ref(p).precede(p);
        p.bump();
        if p.at(IDENT) {
            expression::name_ref(p);
        } else {
            p.error_expected("a label");
        }
        difference.complete(p, BINARY_EXPR);
    } else if p.at(IDENT) || at_name(p) {
        expression::name_and_bytes(p);
    } else {
        return expression::constant(p);
    }
    true
}
