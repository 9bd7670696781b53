//! Instructions, parsed by their shape, and the directives that list call targets and branch targets.

use super::statement::{at_statement_start, semicolon, skip_statement};
use super::{declaration, expression, function};
use crate::Remedy;
use crate::SyntaxKind::{self, *};
use crate::parser::Parser;

/// `@!p name.suffix.suffix operand, operand;`
pub(super) fn instruction(p: &mut Parser<'_>) {
    let marker = p.start();
    let is_guarded = p.at(AT) || is_guard_without_at(p);
    if is_guarded {
        guard(p);
    }
    if !p.at(IDENT) {
        match is_guarded && p.at(L_BRACE) {
            true => p.error_here("expected an instruction, found `{`; a guard cannot apply to a block"),
            false => p.error_expected("an instruction"),
        }
        if !at_statement_start(p) {
            skip_statement(p);
        }
        marker.complete(p, INSTRUCTION);
        return;
    }
    if p.current_text().starts_with('%') {
        let hint =
            if p.nth(1) == EQ { "; PTX has no assignments, use an instruction such as `mov`" } else { "" };
        p.error_here(format!("expected an instruction, found {}{hint}", p.found()));
        skip_statement(p);
        marker.complete(p, INSTRUCTION);
        return;
    }
    let is_call = p.current_text() == "call";
    p.bump();
    while p.at(DOT_WORD) && !is_next_statement(p) {
        let is_const = p.current_text() == ".const";
        p.bump();
        // The bank in `ld.const[2].u32` of PTX 1.x.
        if is_const && p.is_joint() && p.nth(3) == DOT_WORD {
            declaration::bank(p);
        }
    }
    if p.at(DOT) && p.is_joint() {
        p.error_here("expected a modifier or type after `.`");
        p.bump_as_error();
    }
    // `ld.param u64 %rd1`: if the first of two words without a comma between them is a type, its dot is missing.
    if p.at(IDENT) && matches!(p.nth(1), IDENT | L_BRACK | L_BRACE) && !p.nth_at_line_start(1) {
        let word = format!(".{}", p.current_text());
        if ptx_isa::ScalarType::parse(p.current_text()).is_some() {
            let range = p.current_range();
            p.error_here(format!("expected `{word}`, found {}", p.found()));
            p.mend(range, Remedy::Replace(word.into()));
            p.bump_as_error();
        }
    }
    if p.at(COMMA) {
        p.error_instead("expected an operand, found `,`", "");
        p.bump_as_error();
    }
    if !p.at(SEMICOLON) && !at_statement_start(p) {
        operands(p, is_call);
    }
    semicolon(p);
    marker.complete(p, INSTRUCTION);
}

/// Whether a directive on a new line starts a statement, and is not a suffix of the mnemonic in the line above.
fn is_next_statement(p: &Parser<'_>) -> bool {
    p.at_line_start()
        && match p.current_text() {
            ".reg" | ".loc" | ".pragma" | ".file" | ".section" => true,
            // Suffixes have no blanks between them, but the words of a declaration do.
            ".local" | ".shared" | ".param" | ".global" | ".const" => {
                p.nth(1) == DOT_WORD && !p.nth_is_joint(1)
            }
            _ => false,
        }
}

/// Whether a guard has no `@`: `%p bra`, `!p bra`. No mnemonic begins with `%`.
fn is_guard_without_at(p: &Parser<'_>) -> bool {
    p.at(BANG) || p.nth(1) == IDENT && !p.nth_at_line_start(1) && p.current_text().starts_with('%')
}

/// Whether the word after `@` is the mnemonic of the guarded instruction: `@ bra L`.
fn lacks_predicate(p: &Parser<'_>) -> bool {
    let is_mnemonic = |name: &str| !ptx_isa::forms_of(name).is_empty();
    is_mnemonic(p.current_text()) && !(p.nth(1) == IDENT && is_mnemonic(p.nth_text(1)))
}

/// `@p`, `@!p`
fn guard(p: &mut Parser<'_>) {
    let marker = p.start();
    if !p.eat(AT) {
        let range = p.current_range();
        p.error_here(format!("expected `@` before a guard, found {}", p.found()));
        p.mend(range, Remedy::Replace(format!("@{}", p.current_text()).into()));
    }
    if p.at(TILDE) {
        p.error_instead("expected `!` before a predicate, found `~`", "!");
        p.bump_as_error();
    }
    p.eat(BANG);
    if p.at(IDENT) && !lacks_predicate(p) {
        expression::name_ref(p);
    } else {
        p.error_expected("a predicate");
    }
    marker.complete(p, GUARD);
}

/// Parses operands separated by commas, up to a token that cannot continue the list.
fn operands(p: &mut Parser<'_>, is_call: bool) {
    // Only the first operand can be a pair of destinations.
    let mut is_first = true;
    loop {
        if is_call && p.at(L_PAREN) {
            argument_list(p);
        } else if at_statement_start(p) {
            p.error_expected("an operand");
            return;
        } else if !expression::operand(p, is_first) && !p.at(COMMA) {
            return;
        }
        if !p.eat(COMMA) && p.previous() != COMMA {
            if !expression::is_next_operand(p) {
                return;
            }
            p.error_missing("`,` or `;`", ",");
        }
        is_first = false;
    }
}

/// Parses `(a, b)` of a call.
fn argument_list(p: &mut Parser<'_>) {
    let marker = p.start();
    p.bump();
    // Results and arguments are optional.
    let mut more = !p.at(R_PAREN);
    while more {
        if at_statement_start(p) {
            p.error_expected("an operand");
            break;
        }
        more = (expression::operand(p, false) || p.at(COMMA)) && p.eat(COMMA);
    }
    if !p.eat(R_PAREN) {
        p.error_expected("`,` or `)`");
    }
    marker.complete(p, ARGUMENT_LIST);
}

/// `.callprototype (.param .b32 _) _ (.param .b64 _);`, `.branchtargets a, b<4>;`, `.calltargets f, g;`
pub(super) fn target_directive(p: &mut Parser<'_>) -> SyntaxKind {
    let word = p.current_text();
    p.bump();
    let kind = match word {
        ".callprototype" => {
            prototype(p);
            CALL_PROTOTYPE
        }
        _ => {
            loop {
                if !p.at(IDENT) || (p.at_line_start() && at_statement_start(p)) {
                    p.error_expected("a name");
                    break;
                }
                expression::name_ref(p);
                if word == ".branchtargets" {
                    declaration::name_range(p, "a number of labels");
                }
                if !p.eat(COMMA) {
                    break;
                }
            }
            if word == ".branchtargets" { BRANCH_TARGETS } else { CALL_TARGETS }
        }
    };
    semicolon(p);
    kind
}

fn prototype(p: &mut Parser<'_>) {
    if p.at(L_PAREN) {
        declaration::param_list(p);
    }
    if !p.eat(UNDERSCORE) {
        p.error_expected("`_` as the function name");
        p.eat(IDENT);
    }
    if p.at(L_PAREN) {
        declaration::param_list(p);
    }
    function::function_directives(p);
}
