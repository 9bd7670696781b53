//! Sections of debug data.

use ptx_isa::{Directive, ScalarType};

use super::expression;
use super::statement::{label, skip_line};
use crate::SyntaxKind::{self, *};
use crate::parser::Parser;
use crate::{ErrorCode, TextRange};

/// `.section .debug_str { label: .b8 1, 2 .b64 label + 4 }`
pub(super) fn section(p: &mut Parser<'_>) -> SyntaxKind {
    p.bump();
    let name = p.start();
    if p.at(DOT_WORD) && !is_reserved(&p.current_text()[1..]) {
        p.bump();
        name.complete(p, NAME);
    } else {
        p.error_expected("the name of a section");
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

/// Words that mean something else wherever they stand.
fn is_reserved(word: &str) -> bool {
    ScalarType::parse(word).is_some()
        || Directive::parse(word).is_some_and(|directive| !matches!(directive.name, "version" | "sreg"))
        || matches!(word, "v2" | "v4")
}

/// Reports the brace at `open`, which nothing closes.
pub(super) fn unclosed(p: &mut Parser<'_>, open: TextRange, what: &str) {
    p.error_at(
        ErrorCode::Unbalanced,
        open,
        format!("`{{` is not closed, expected `}}` before the end of the {what}"),
    );
}

/// `.b8 1, 2`
fn data(p: &mut Parser<'_>) {
    let marker = p.start();
    p.bump();
    loop {
        if p.at(DOT_WORD) {
            // Another section, by its name.
            expression::section_offset(p);
        } else if !expression::constant(p) {
            break;
        }
        if !p.eat(COMMA) {
            break;
        }
    }
    marker.complete(p, SECTION_DATA);
}
