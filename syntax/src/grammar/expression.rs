//! Operands and constant expressions, by precedence climbing.

use super::statement::at_statement_start;
use crate::SyntaxKind::{self, *};
use crate::parser::{CompletedMarker, Parser};
use crate::{ErrorCode, Remedy};
use text_size::{TextRange, TextSize};

/// Parses an expression that is evaluated at assembly time. Returns false and reports an error if there is none.
pub(super) fn constant(p: &mut Parser<'_>) -> bool {
    // Most constants are a single number.
    if p.at(INT) && matches!(p.nth(1), COMMA | R_BRACE | R_BRACK | SEMICOLON | DOT_WORD) {
        literal(p);
        return true;
    }
    p.with_own_height(|p| match expression(p, 0) {
        Some(left) => {
            conditional(p, left);
            true
        }
        None => {
            p.error_expected("an expression");
            false
        }
    })
}

/// `$label + 8`, or `.debug_str + 8`.
pub(super) fn name_and_bytes(p: &mut Parser<'_>) {
    let name = name_ref(p);
    if p.at(PLUS) {
        let sum = name.precede(p);
        p.bump();
        if p.at(INT) {
            literal(p);
        } else {
            p.error_expected("a number of bytes");
        }
        sum.complete(p, BINARY_EXPR);
    }
}

/// Parses an operand of an instruction. Returns false and reports an error if there is none.
pub(super) fn operand(p: &mut Parser<'_>, may_be_pair: bool) -> bool {
    match p.current() {
        // Most operands are a single name or number.
        IDENT if matches!(p.nth(1), COMMA | SEMICOLON | R_BRACE | R_BRACK | R_PAREN) => {
            name_ref(p);
            true
        }
        L_BRACK => {
            check_address(p);
            group(p, R_BRACK, ADDRESS);
            true
        }
        L_BRACE => {
            if let Some(vector) = group(p, R_BRACE, VECTOR) {
                pair(p, vector, may_be_pair);
            }
            true
        }
        PERCENT if p.nth(1) == IDENT && p.nth_is_joint(1) && p.nth_text(1).starts_with('%') => {
            p.error_instead("found `%%`, which means `%` only inside an `asm` statement", "");
            p.bump_as_error();
            operand(p, may_be_pair)
        }
        _ => p.with_own_height(|p| {
            // A sign before a number is part of an expression.
            let is_destination = matches!(p.current(), IDENT | UNDERSCORE) || p.nth(1) == IDENT;
            let Some(left) = unary(p) else {
                p.error_expected("an operand");
                return false;
            };
            pair_or_rest(p, left, is_destination, may_be_pair);
            true
        }),
    }
}

/// Parses `+ constant` after a name. The offset is the whole constant expression, whatever operators it contains.
fn offset(p: &mut Parser<'_>, base: CompletedMarker) {
    let marker = base.precede(p);
    p.bump();
    if at_statement_start(p) {
        p.error_expected("an expression");
    } else {
        constant(p);
    }
    marker.complete(p, BINARY_EXPR);
}

/// Parses the rest after `left`. `p|q` is a pair of destinations if the left side can be a destination, and otherwise
/// an expression.
fn pair_or_rest(p: &mut Parser<'_>, left: CompletedMarker, is_destination: bool, may_be_pair: bool) {
    let is_destination = is_destination && matches!(left.kind(), NAME_REF | SINK | PREFIX_EXPR);
    if is_destination && pair(p, left, may_be_pair) {
        return;
    }
    if left.kind() == NAME_REF && p.at(PLUS) {
        offset(p, left);
        return;
    }
    let left = binary(p, left, 0);
    conditional(p, left);
}

/// Parses the rest of `p|q` or `{a, b}|p`. Returns false if there is none.
fn pair(p: &mut Parser<'_>, left: CompletedMarker, may_be_pair: bool) -> bool {
    let found = p.at(PIPE);
    if found {
        if !may_be_pair {
            p.error_expected("`,` or `;`");
        }
        let pair = left.precede(p);
        p.bump();
        if expression(p, binding_power(PIPE) + 1).is_none() {
            p.error_expected("a predicate");
        }
        pair.complete(p, PAIR);
    }
    found
}

/// Checks the base of an address: a constant, or a name with an optional constant after `+`.
fn check_address(p: &mut Parser<'_>) {
    let is_named = p.nth(1) == IDENT;
    let mut at = if is_named { 2 } else { 1 };
    if is_named {
        match p.nth(at) {
            COMMA | R_BRACK => return,
            PLUS if p.nth(3) == INT && p.nth(4) == R_BRACK => return,
            PLUS => at += 1,
            EOF | SEMICOLON => return,
            MINUS => {
                return p
                    .nth_error(at, "expected `+` or `]` after the base of an address, found `-`; use `+-`");
            }
            _ => return p.nth_error(at, "expected `+` or `]` after the base of an address"),
        }
    }
    loop {
        match p.nth(at) {
            // An index, a vector or a second name.
            IDENT if is_named => {
                return p.nth_error(at, "expected a constant offset: an address has only one register");
            }
            L_BRACK | L_BRACE | UNDERSCORE | IDENT => break,
            COMMA | R_BRACK | R_BRACE | SEMICOLON | EOF => return,
            _ => at += 1,
        }
    }
    p.nth_error(at, "expected an address such as `[a]`, `[a+8]` or `[8]`");
}

/// `[a, b]` or `{a, b}`.
fn group(p: &mut Parser<'_>, close: SyntaxKind, kind: SyntaxKind) -> Option<CompletedMarker> {
    if !p.enter() {
        skip_group(p);
        return None;
    }
    let marker = p.start();
    p.bump();
    loop {
        if at_statement_start(p) {
            p.error_expected("an operand");
            break;
        }
        // In `{a, b, [c]`, the closing brace is missing: no element of a vector is an address.
        if kind == VECTOR && p.at(L_BRACK) && p.previous() == COMMA {
            let comma = TextRange::new(p.previous_end() - TextSize::of(','), p.previous_end());
            p.error_at(ErrorCode::Unexpected, comma, "expected `}` after the elements of a vector");
            p.mend(comma, Remedy::Replace("},".into()));
            p.leave();
            return Some(marker.complete(p, kind));
        }
        if !operand(p, false) && !p.at(COMMA) {
            break;
        }
        if !p.eat(COMMA) {
            if !is_next_operand(p) || kind == VECTOR && p.at(L_BRACK) {
                break;
            }
            p.error_missing(&expected_in(close), ",");
        }
    }
    if !p.eat(close) {
        match close.fixed_text().filter(|_| p.at(SEMICOLON)) {
            Some(missing) => p.error_missing(&expected_in(close), missing),
            None => p.error_expected(&expected_in(close)),
        }
    } else if kind == ADDRESS && p.at(DOT_WORD) && !p.at_line_start() {
        // The suffix in `[a].unified` of a load.
        p.bump();
    }
    p.leave();
    Some(marker.complete(p, kind))
}

fn expected_in(close: SyntaxKind) -> String {
    format!("`,` or `{}`", close.fixed_text().unwrap_or_default())
}

/// Whether another operand follows on the line, which means that a comma is missing. A brace does not count, because it
/// may open a block.
pub(super) fn is_next_operand(p: &Parser<'_>) -> bool {
    matches!(p.current(), IDENT | INT | FLOAT | L_BRACK) && !p.at_line_start()
}

/// Puts a bracket and everything up to its closing bracket into an `ERROR` node, without parsing it.
pub(super) fn skip_group(p: &mut Parser<'_>) {
    let marker = p.start();
    let mut depth = 0usize;
    loop {
        match p.current() {
            EOF => break,
            L_BRACE | L_BRACK | L_PAREN => depth += 1,
            R_BRACE | R_BRACK | R_PAREN => depth = depth.saturating_sub(1),
            _ => {}
        }
        p.bump();
        if depth == 0 {
            break;
        }
    }
    marker.complete(p, ERROR);
}

/// Puts the rest of a chain of operators into an `ERROR` node, so that the tree gets no deeper.
fn skip_chain(p: &mut Parser<'_>) {
    let marker = p.start();
    let mut depth = 0usize;
    while !at_statement_start(p) {
        match p.current() {
            L_PAREN => depth += 1,
            R_PAREN if depth > 0 => depth -= 1,
            COMMA | SEMICOLON | L_BRACE | R_PAREN | R_BRACK => break,
            _ => {}
        }
        p.bump();
    }
    marker.complete(p, ERROR);
}

/// The binding power of a binary operator, as in C; zero for other tokens. The right side binds tighter by one.
fn binding_power(kind: SyntaxKind) -> u8 {
    match kind {
        PIPE2 => 1,
        AMP2 => 2,
        PIPE => 3,
        CARET => 4,
        AMP => 5,
        EQ2 | NEQ => 6,
        LT | GT | LE | GE => 7,
        SHL | SHR => 8,
        PLUS | MINUS => 9,
        STAR | SLASH | PERCENT => 10,
        _ => 0,
    }
}

/// Parses operators with a power of at least `min`, and their operands. Returns `None` without an error if there is no
/// first operand.
fn expression(p: &mut Parser<'_>, min: u8) -> Option<CompletedMarker> {
    let left = unary(p)?;
    Some(binary(p, left, min))
}

fn binary(p: &mut Parser<'_>, mut left: CompletedMarker, min: u8) -> CompletedMarker {
    loop {
        let power = binding_power(p.current());
        if power == 0 || power < min {
            return left;
        }
        if !p.may_grow() {
            skip_chain(p);
            return left;
        }
        let marker = left.precede(p);
        p.bump();
        let found = p.grow(|p| !at_statement_start(p) && expression(p, power + 1).is_some());
        if !found {
            p.error_expected("an expression");
        }
        left = marker.complete(p, BINARY_EXPR);
    }
}

/// `left ? a : b`
fn conditional(p: &mut Parser<'_>, left: CompletedMarker) -> CompletedMarker {
    if !p.at(QUESTION) {
        return left;
    }
    let marker = left.precede(p);
    p.bump();
    if p.enter() {
        constant(p);
        if p.expect(COLON) {
            constant(p);
        }
        p.leave();
    }
    marker.complete(p, CONDITIONAL_EXPR)
}

fn unary(p: &mut Parser<'_>) -> Option<CompletedMarker> {
    if !matches!(p.current(), MINUS | PLUS | BANG | TILDE) {
        return primary(p);
    }
    if !p.enter() {
        // Consumes the operators without making nodes, because only nested nodes are a problem.
        while matches!(p.current(), MINUS | PLUS | BANG | TILDE) {
            p.bump();
        }
        return primary(p);
    }
    let marker = p.start();
    p.bump();
    if unary(p).is_none() {
        p.error_expected("an operand");
    }
    p.leave();
    Some(marker.complete(p, PREFIX_EXPR))
}

fn primary(p: &mut Parser<'_>) -> Option<CompletedMarker> {
    match p.current() {
        IDENT => {
            let name = name_ref(p);
            Some(postfix(p, name))
        }
        INT => {
            let value = literal(p);
            Some(mask(p, value))
        }
        FLOAT => Some(literal(p)),
        UNDERSCORE => {
            let marker = p.start();
            p.bump();
            Some(marker.complete(p, SINK))
        }
        L_PAREN => Some(parenthesis(p)),
        _ => None,
    }
}

pub(super) fn name_ref(p: &mut Parser<'_>) -> CompletedMarker {
    let marker = p.start();
    p.bump();
    marker.complete(p, NAME_REF)
}

pub(super) fn literal(p: &mut Parser<'_>) -> CompletedMarker {
    let marker = p.start();
    p.bump();
    marker.complete(p, LITERAL)
}

/// `name.x`, `name[3]`, `generic(name)`
fn postfix(p: &mut Parser<'_>, name: CompletedMarker) -> CompletedMarker {
    match p.current() {
        DOT_WORD if !p.at_line_start() => {
            let marker = name.precede(p);
            p.bump();
            marker.complete(p, COMPONENT)
        }
        L_BRACK if p.is_joint() => {
            let marker = name.precede(p);
            bracketed(p, R_BRACK);
            marker.complete(p, INDEX_EXPR)
        }
        L_PAREN if p.is_joint() => {
            let marker = name.precede(p);
            bracketed(p, R_PAREN);
            marker.complete(p, CALL_EXPR)
        }
        _ => name,
    }
}

/// `0xFF(name)`
fn mask(p: &mut Parser<'_>, value: CompletedMarker) -> CompletedMarker {
    if !p.at(L_PAREN) || p.at_line_start() {
        return value;
    }
    let marker = value.precede(p);
    bracketed(p, R_PAREN);
    marker.complete(p, MASK_EXPR)
}

/// `(value)`, `(.s64) value`
fn parenthesis(p: &mut Parser<'_>) -> CompletedMarker {
    let marker = p.start();
    if p.nth(1) == DOT_WORD && p.nth(2) == R_PAREN {
        p.bump();
        p.bump();
        p.bump();
        if p.enter() {
            if unary(p).is_none() {
                p.error_expected("an expression");
            }
            p.leave();
        }
        return marker.complete(p, CAST_EXPR);
    }
    bracketed(p, R_PAREN);
    marker.complete(p, PAREN_EXPR)
}

/// Adds a bracket, an expression and the closing bracket to the open node.
fn bracketed(p: &mut Parser<'_>, close: SyntaxKind) {
    if !p.enter() {
        skip_group(p);
        return;
    }
    p.bump();
    constant(p);
    p.expect(close);
    p.leave();
}

/// Whether a suffix selects a part of a register: `.x`, `.r`, `.b0`, `.h1`, `.b3210`.
pub(super) fn is_component(word: &str) -> bool {
    match word.as_bytes() {
        [b'.', b'x' | b'y' | b'z' | b'w' | b'r' | b'g' | b'b' | b'a'] => true,
        [b'.', b'b' | b'h', digits @ ..] => {
            !digits.is_empty()
                && digits.len() != 2
                && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        }
        _ => false,
    }
}
