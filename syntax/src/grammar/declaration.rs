//! Variables, registers and parameters.

use text_size::{TextRange, TextSize};

use super::expression;
use super::statement::semicolon;
use crate::SyntaxKind::{self, *};
use crate::parser::Parser;
use crate::{ErrorCode, Remedy};

/// Parses `.global .align 16 .v4 .f32 x[4], y = { … };` from the first word on.
pub(super) fn variable(p: &mut Parser<'_>) -> SyntaxKind {
    let has_type = qualifiers(p, false);
    if !has_type {
        missing_type(p);
    } else if p.at(SEMICOLON) {
        // A declaration without names is allowed.
        p.bump();
        return VARIABLE;
    }
    loop {
        // Only parameters may have no name.
        if p.at(UNDERSCORE) || !declarator(p) {
            p.error_expected("a variable name");
            break;
        }
        if !p.eat(COMMA) {
            break;
        }
    }
    semicolon(p);
    VARIABLE
}

/// Parses `(.param .align 8 .b8 x[16], .reg .u32 %y)`. Returns false and reports an error if the text ends before the
/// `)`.
pub(super) fn param_list(p: &mut Parser<'_>) -> bool {
    let marker = p.start();
    let open = p.current_range();
    p.bump();
    while !p.at(R_PAREN) {
        match p.current() {
            DOT_WORD => {
                if starts_function(p.current_text()) {
                    break;
                }
                let param = p.start();
                if !qualifiers(p, true) {
                    missing_type(p);
                }
                if !declarator(p) {
                    p.error_expected("a parameter name");
                }
                param.complete(p, PARAM);
            }
            EOF | L_BRACE | SEMICOLON => break,
            _ => {
                p.error_expected("a parameter such as `.param .u64 x`");
                while !matches!(p.current(), COMMA | R_PAREN | L_BRACE | R_BRACE | SEMICOLON | EOF) {
                    p.bump_as_error();
                }
            }
        }
        if p.eat(COMMA) {
            if p.at(R_PAREN) {
                let comma = TextRange::new(p.previous_end() - TextSize::of(','), p.previous_end());
                p.error_at(ErrorCode::Unexpected, comma, "expected a parameter after `,`, found `)`");
                p.mend(comma, Remedy::Replace("".into()));
            }
        } else if !p.at(R_PAREN) {
            if p.at(DOT_WORD) && !starts_function(p.current_text()) {
                p.error_missing("`,` between parameters", ",");
                continue;
            }
            break;
        }
    }
    let is_closed = p.eat(R_PAREN);
    let is_complete = is_closed || !p.at(EOF);
    if !is_closed {
        if p.at(EOF) {
            p.error_at(ErrorCode::Unbalanced, open, "unclosed `(`, expected `)` after the parameters");
        } else {
            p.error_missing("`,` or `)`", ")");
        }
    }
    marker.complete(p, PARAM_LIST);
    is_complete
}

/// The PTX type that corresponds to a C type.
pub fn type_of_c(name: &str) -> Option<&'static str> {
    Some(match name {
        "float" => ".f32",
        "double" => ".f64",
        "int" => ".s32",
        "unsigned" => ".u32",
        "bool" => ".pred",
        _ => return None,
    })
}

/// Reports that the type is missing. If there is a name without a dot instead, suggests the type that it probably
/// means.
fn missing_type(p: &mut Parser<'_>) {
    let (range, word) = (p.current_range(), p.current_text());
    p.error_expected("a type");
    if p.at(IDENT) && p.nth(1) == IDENT && !p.at_line_start() {
        let dotted = format!(".{word}");
        if ptx_isa::ScalarType::parse(word).is_some() {
            p.mend(range, Remedy::Replace(dotted.into()));
        } else if let Some(ty) = type_of_c(word) {
            p.mend(range, Remedy::Replace(ty.into()));
        }
        p.bump_as_error();
    }
}

fn starts_function(word: &str) -> bool {
    matches!(
        word,
        ".visible" | ".extern" | ".weak" | ".entry" | ".func" | ".noreturn" | ".maxntid" | ".reqntid"
    )
}

/// Parses everything before the names. Returns true if there is a type. The grammar does not check the order or whether
/// the words exist; later stages do.
fn qualifiers(p: &mut Parser<'_>, is_param: bool) -> bool {
    let mut has_type = false;
    while p.at(DOT_WORD) {
        // The type is the last word, except for those that describe a pointer.
        let word = p.current_text();
        if has_type && word != ".ptr" && !(is_param && word == ".align") {
            p.error_expected("a name");
        }
        match word {
            ".align" if has_type && is_param => pointer(p),
            ".align" => align(p),
            ".attribute" => attribute_list(p),
            ".ptr" => pointer(p),
            ".const" => {
                p.bump();
                bank(p);
            }
            word => {
                has_type |= crate::ast::is_type_word(word);
                p.bump();
            }
        }
    }
    has_type
}

/// `.align 8`
fn align(p: &mut Parser<'_>) {
    let marker = p.start();
    p.bump();
    if !p.eat(INT) {
        p.error_expected("an alignment in bytes");
    }
    marker.complete(p, ALIGN);
}

/// `.ptr .global .align 8`, `.align 8`
fn pointer(p: &mut Parser<'_>) {
    let marker = p.start();
    if p.at_word(".ptr") {
        p.bump();
    }
    if p.at(DOT_WORD) && matches!(p.current_text(), ".const" | ".global" | ".local" | ".shared") {
        p.bump();
    }
    if p.at_word(".align") {
        align(p);
    }
    marker.complete(p, POINTER);
}

/// `[2]` after `.const`, before PTX 2.2.
pub(super) fn bank(p: &mut Parser<'_>) {
    if p.at(L_BRACK) && p.nth(1) == INT && p.nth(2) == R_BRACK {
        let marker = p.start();
        p.bump();
        p.bump();
        p.bump();
        marker.complete(p, BANK);
    }
}

/// `.attribute(.managed, .unified(1, 2))`
pub(super) fn attribute_list(p: &mut Parser<'_>) {
    let marker = p.start();
    p.bump();
    if p.expect(L_PAREN) {
        loop {
            if !p.at(DOT_WORD) {
                p.error_expected("an attribute such as `.managed`");
                break;
            }
            let attribute = p.start();
            p.bump();
            if p.eat(L_PAREN) {
                loop {
                    if p.at(INT) {
                        expression::literal(p);
                    } else {
                        p.error_expected("an integer");
                        break;
                    }
                    if !p.eat(COMMA) {
                        break;
                    }
                }
                p.expect(R_PAREN);
            }
            attribute.complete(p, ATTRIBUTE);
            if !p.eat(COMMA) {
                break;
            }
        }
        p.expect(R_PAREN);
    }
    marker.complete(p, ATTRIBUTE_LIST);
}

/// `x`, `%r<10>`, `x[2][3] = { … }`, `_`
fn declarator(p: &mut Parser<'_>) -> bool {
    if !matches!(p.current(), IDENT | UNDERSCORE) {
        return false;
    }
    let marker = p.start();
    let name = p.start();
    p.bump();
    name.complete(p, NAME);
    name_range(p, "a number of registers");
    let mut is_first = true;
    while p.at(L_BRACK) {
        let dimension = p.start();
        p.bump();
        // Only the outermost dimension may be empty, and each size must be a single number.
        if p.at(INT) {
            expression::literal(p);
        } else if !(is_first && p.at(R_BRACK)) {
            p.error_expected("a number of elements");
            if !p.at(R_BRACK) {
                expression::constant(p);
            }
        }
        is_first = false;
        p.expect(R_BRACK);
        dimension.complete(p, ARRAY_DIMENSION);
    }
    if p.at(EQ) {
        let initializer = p.start();
        p.bump();
        initial_value(p);
        initializer.complete(p, INITIALIZER);
    }
    marker.complete(p, DECLARATOR);
    true
}

/// Parses `<4>` after a name that declares so many registers or labels.
pub(super) fn name_range(p: &mut Parser<'_>, count: &str) {
    if p.at(LT) {
        let range = p.start();
        p.bump();
        if !p.eat(INT) {
            p.error_expected(count);
        }
        p.expect(GT);
        range.complete(p, REGISTER_RANGE);
    }
}

/// `1.0`, `{ 1, { 2, x + 4 } }`, `{ addr_mode_0 = wrap }`
fn initial_value(p: &mut Parser<'_>) {
    if !p.at(L_BRACE) {
        expression::constant(p);
        return;
    }
    if !p.enter() {
        expression::skip_group(p);
        return;
    }
    let marker = p.start();
    p.bump();
    while !matches!(p.current(), R_BRACE | SEMICOLON | EOF) {
        match p.current() {
            L_BRACE => initial_value(p),
            IDENT if p.nth(1) == EQ => {
                let field = p.start();
                p.bump();
                p.bump();
                initial_value(p);
                field.complete(p, FIELD_INITIALIZER);
            }
            _ => {
                if !expression::constant(p) && !p.at(COMMA) {
                    break;
                }
            }
        }
        if p.at(R_BRACE) || !p.eat(COMMA) {
            break;
        }
        if p.at(R_BRACE) {
            p.error_expected("a value");
        }
    }
    if !p.eat(R_BRACE) {
        p.error_expected("`,` or `}`");
    }
    p.leave();
    marker.complete(p, INITIALIZER_LIST);
}
