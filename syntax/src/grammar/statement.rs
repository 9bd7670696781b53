//! Blocks and the statements in them, and recovery between statements.

use super::section::unclosed;
use super::{declaration, directive, expression, function, instruction, section};
use text_size::{TextRange, TextSize};

use crate::SyntaxKind::*;
use crate::parser::Parser;
use crate::{ErrorCode, Remedy};

/// `{ statements }`
pub(super) fn block(p: &mut Parser<'_>) {
    if !p.enter() {
        expression::skip_group(p);
        return;
    }
    let marker = p.start();
    let open = p.current_range();
    p.bump();
    loop {
        match p.current() {
            R_BRACE => {
                p.bump();
                break;
            }
            EOF => {
                unclosed(p, open, "function");
                break;
            }
            _ => statement(p),
        }
    }
    p.leave();
    marker.complete(p, BLOCK);
}

pub(super) fn statement(p: &mut Parser<'_>) {
    match p.current() {
        IDENT if p.nth(1) == COLON => labelled(p),
        IDENT if is_bare_label(p) => {
            let label = p.start();
            name(p);
            p.error_missing("`:` after a label", ":");
            label.complete(p, LABEL);
        }
        BANG if p.nth(1) == IDENT && p.nth(2) == IDENT => instruction::instruction(p),
        BANG if p.nth(1) == AT && p.nth_is_joint(1) => {
            let range = TextRange::at(p.current_range().start(), TextSize::of("!@"));
            p.error_at(ErrorCode::Unexpected, range, "expected `@!` before a negated guard, found `!@`");
            p.mend(range, Remedy::Replace("@!".into()));
            p.bump_as_error();
            instruction::instruction(p);
        }
        IDENT if p.nth(1) == L_PAREN && matches!(p.current_text(), "if" | "while" | "for" | "switch") => {
            p.error_here(format!(
                "expected an instruction, found {}; PTX has guards and branches, as in `@%p1 bra L`",
                p.found()
            ));
            p.bump_as_error();
            expression::skip_group(p);
        }
        IDENT => instruction::instruction(p),
        AT if p.nth(1) == AT => {
            let marker = p.start();
            let kind = directive::dwarf_line(p);
            marker.complete(p, kind);
        }
        AT => instruction::instruction(p),
        DOT_WORD => directive_statement(p),
        L_BRACE => block(p),
        SEMICOLON => {
            p.error_instead("expected a statement, found `;`", "");
            let marker = p.start();
            p.bump();
            marker.complete(p, EMPTY_STATEMENT);
        }
        _ => {
            let found = p.found();
            p.error_here(format!("expected a statement, found {found}"));
            skip_statement(p);
        }
    }
}

fn directive_statement(p: &mut Parser<'_>) {
    let marker = p.start();
    let kind = match p.current_text() {
        ".loc" => directive::loc(p),
        ".file" => {
            p.error_here("`.file` is not allowed inside a function");
            directive::file(p)
        }
        ".section" => {
            p.error_here("`.section` is not allowed inside a function");
            section::section(p)
        }
        ".pragma" => directive::pragma(p),
        ".callprototype" | ".branchtargets" | ".calltargets" => {
            let word = p.current_text();
            p.error_here(format!("expected a label before `{word}`"));
            instruction::target_directive(p)
        }
        ".visible" | ".extern" | ".weak" | ".common" | ".func" | ".entry" => {
            if p.at_word(".entry") || p.nth_text(1) == ".entry" {
                p.error_here("a kernel cannot be declared inside a function");
            }
            let is_function = p.at_word(".func") || p.at_word(".entry");
            let open = p.current_range();
            let kind = function::function_or_variable(p);
            // A body may declare functions, but must not define any.
            if is_function && p.previous() == R_BRACE {
                p.error_at(ErrorCode::Unexpected, open, "a function cannot be defined inside a function");
            }
            kind
        }
        word if function::is_declaration_word(word) => declaration::variable(p),
        word => {
            p.error_here(format!("expected a statement, found `{word}`"));
            skip_statement(p);
            ERROR
        }
    };
    marker.complete(p, kind);
}

/// Whether a name is alone on its line and looks like a label.
fn is_bare_label(p: &Parser<'_>) -> bool {
    let is_alone = p.nth_at_line_start(1) && p.at_line_start() && matches!(p.nth(1), IDENT | AT | DOT_WORD);
    let name = p.current_text();
    is_alone && (name.starts_with(['$', '_']) || !name.bytes().any(|byte| byte.is_ascii_lowercase()))
}

/// Parses a label, or one of the directives that begin with a label.
fn labelled(p: &mut Parser<'_>) {
    if p.nth(2) == DOT_WORD && matches!(p.nth_text(2), ".callprototype" | ".branchtargets" | ".calltargets") {
        let marker = p.start();
        name(p);
        p.bump();
        let kind = instruction::target_directive(p);
        marker.complete(p, kind);
        return;
    }
    label(p);
}

/// `name:`
pub(super) fn label(p: &mut Parser<'_>) {
    let marker = p.start();
    name(p);
    p.bump();
    marker.complete(p, LABEL);
}

fn name(p: &mut Parser<'_>) {
    let name = p.start();
    p.bump();
    name.complete(p, NAME);
}

/// Parses the `;` of a statement. If it is missing, reports an error, and the next statement begins.
pub(super) fn semicolon(p: &mut Parser<'_>) {
    if p.eat(SEMICOLON) {
        return;
    }
    let at = p.previous_end();
    let found = p.found();
    if at_statement_start(p) {
        p.error_at(ErrorCode::MissingSemicolon, TextRange::empty(at), format!("expected `;`, found {found}"));
        return;
    }
    if p.at(COLON) {
        p.error_instead("expected `;`, found `:`", ";");
        p.bump_as_error();
        return;
    }
    p.error_expected("`;`");
    skip_statement(p);
}

/// Whether the current token cannot belong to the previous statement: it ends the block, or is the first token of a
/// line that looks like a statement.
pub(super) fn at_statement_start(p: &Parser<'_>) -> bool {
    match p.current() {
        R_BRACE | EOF => true,
        _ if !p.at_line_start() => false,
        DOT_WORD | AT => true,
        L_BRACE => !looks_like_vector(p),
        IDENT => p.nth(1) == COLON || looks_like_instruction(p),
        _ => false,
    }
}

/// Whether a brace opens an operand instead of a block.
fn looks_like_vector(p: &Parser<'_>) -> bool {
    match p.nth(1) {
        IDENT => match p.nth(2) {
            COMMA | R_BRACE => true,
            DOT_WORD => expression::is_component(p.nth_text(2)),
            _ => false,
        },
        DOT_WORD | AT | L_BRACE | R_BRACE | SEMICOLON | EOF => false,
        _ => true,
    }
}

/// Whether a name is a mnemonic instead of an operand.
fn looks_like_instruction(p: &Parser<'_>) -> bool {
    let name = p.current_text();
    if name.starts_with(['%', '$', '_']) {
        return false;
    }
    match p.nth(1) {
        DOT_WORD => !expression::is_component(p.nth_text(1)),
        // There is always a comma between two operands.
        IDENT | INT | L_BRACE | UNDERSCORE => true,
        L_PAREN => name == "call",
        SEMICOLON => matches!(name, "ret" | "exit" | "trap" | "brkpt"),
        _ => false,
    }
}

/// Puts the rest of a malformed statement, including its `;`, into an `ERROR` node.
pub(super) fn skip_statement(p: &mut Parser<'_>) {
    let marker = p.start();
    let mut first = true;
    let mut vectors = 0usize;
    loop {
        match p.current() {
            SEMICOLON => {
                p.bump();
                break;
            }
            EOF => break,
            R_BRACE if vectors > 0 => {
                vectors -= 1;
                p.bump();
            }
            R_BRACE => break,
            L_BRACE if looks_like_vector(p) => {
                vectors += 1;
                p.bump();
            }
            L_BRACE => break,
            _ if !first && at_statement_start(p) => break,
            _ => p.bump(),
        }
        first = false;
    }
    marker.complete(p, ERROR);
}

/// Puts the rest of the line into an `ERROR` node.
pub(super) fn skip_line(p: &mut Parser<'_>) {
    let marker = p.start();
    p.bump();
    while !p.at_line_start() && !matches!(p.current(), R_BRACE | EOF) {
        p.bump();
    }
    marker.complete(p, ERROR);
}
