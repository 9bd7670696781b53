//! Functions and their headers.

use super::{declaration, directive, expression, statement};
use ptx_isa::{Directive, Site};

use crate::Remedy;
use crate::SyntaxKind::{self, *};
use crate::parser::Parser;
use crate::split::starts_body;
use crate::validate::DIGIT_FIRST;

/// Parses an item that starts with linkage, a state space, `.entry` or `.func`.
pub(super) fn function_or_variable(p: &mut Parser<'_>) -> SyntaxKind {
    let mut ahead = 0;
    while matches!(p.nth_text(ahead), ".visible" | ".extern" | ".weak" | ".common") {
        ahead += 1;
    }
    let is_function = matches!(p.nth_text(ahead), ".entry" | ".func");
    let is_entry = p.nth_text(ahead) == ".entry";
    if is_function {
        for index in 0..=ahead {
            if index < ahead && (index > 0 || p.at_word(".common")) {
                let found = p.found();
                p.error_here(format!("expected `.entry` or `.func`, found {found}"));
            }
            p.bump();
        }
        return function(p, is_entry);
    }
    if ahead > 0 && p.nth(ahead) != DOT_WORD {
        for _ in 0..ahead {
            p.bump();
        }
        p.error_expected("`.entry`, `.func` or a state space");
        return VARIABLE;
    }
    if !is_declaration_word(p.nth_text(ahead)) {
        for _ in 0..ahead {
            p.bump();
        }
        let (range, found) = (p.current_range(), p.found());
        p.error_here(format!("expected a directive at module scope, found {found}"));
        let names = Directive::ALL.iter().filter(|known| known.site.intersects(Site::MODULE));
        let word = p.current_text().trim_start_matches('.');
        if let [near, ..] = ptx_isa::suggestions(word, names.map(|known| known.name))[..] {
            p.mend(range, Remedy::Replace(format!(".{near}").into()));
        }
        return ERROR;
    }
    declaration::variable(p)
}

/// Whether `word` can be the first word of a declaration after the linkage. A declaration without names needs no state
/// space.
pub(super) fn is_declaration_word(word: &str) -> bool {
    let is_type = || word.get(1..).is_some_and(|name| ptx_isa::ScalarType::parse(name).is_some());
    matches!(
        word,
        ".global"
            | ".const"
            | ".shared"
            | ".local"
            | ".param"
            | ".reg"
            | ".sreg"
            | ".tex"
            | ".surf"
            | ".sampler"
            | ".align"
            | ".attribute"
            | ".v2"
            | ".v4"
    ) || is_type()
}

/// Whether the next tokens are a declaration in a function body.
fn at_declaration(p: &Parser<'_>) -> bool {
    p.at(DOT_WORD) && starts_body(p.current_text().as_bytes())
}

/// Parses a function from the word after `.entry` or `.func` on.
fn function(p: &mut Parser<'_>, is_entry: bool) -> SyntaxKind {
    while p.at_word(".attribute") {
        if is_entry {
            p.error_expected("a kernel name (kernels have no attributes)");
        }
        declaration::attribute_list(p);
    }
    // The result parameters precede the name.
    if p.at(L_PAREN) {
        if is_entry {
            p.error_expected("a kernel name (kernels have no return parameters)");
        }
        declaration::param_list(p);
    }
    let name = p.start();
    if p.eat(IDENT) {
        name.complete(p, NAME);
    } else if matches!(p.current(), INT | FLOAT) {
        let found = p.found();
        p.error_here(format!("expected a function name, found {found}; {DIGIT_FIRST}"));
        p.bump();
        name.complete(p, NAME);
    } else {
        p.error_expected("a function name");
    }
    let is_complete = !p.at(L_PAREN) || declaration::param_list(p);
    function_directives(p);
    match p.current() {
        L_BRACE => statement::block(p),
        SEMICOLON => p.bump(),
        // The declaration of a device function may also end without `;`.
        _ if p.at(EOF) && (!is_entry || !is_complete) => {}
        _ if p.at_line_start() && (matches!(p.current(), IDENT | AT) || at_declaration(p)) => {
            p.error_missing("`{` before the function body", "{");
            let body = p.start();
            while !p.at(EOF) {
                p.bump();
            }
            body.complete(p, ERROR);
        }
        _ => {
            p.error_expected("`{` or `;`");
            // Unexpected tokens between header and body. The body is still parsed.
            if !p.at(EOF) {
                let debris = p.start();
                while !matches!(p.current(), L_BRACE | SEMICOLON | EOF) {
                    p.bump();
                }
                debris.complete(p, ERROR);
                match p.current() {
                    L_BRACE => statement::block(p),
                    SEMICOLON => p.bump(),
                    _ => {}
                }
            }
        }
    }
    FUNCTION
}

/// `.maxntid 32, 1, 1 .noreturn .pragma "nounroll";`
pub(super) fn function_directives(p: &mut Parser<'_>) {
    while p.at(DOT_WORD) && !(p.at_line_start() && at_declaration(p)) {
        let marker = p.start();
        let kind = match p.current_text() {
            ".pragma" => directive::pragma(p),
            word => {
                let known =
                    Directive::parse(&word[1..]).filter(|known| known.site.intersects(Site::FUNCTION));
                if known.is_none() {
                    let range = p.current_range();
                    p.error_here(format!(
                        "expected a directive, `{{` or `;` in the function header, found `{word}`"
                    ));
                    let names = Directive::ALL.iter().filter(|known| known.site.intersects(Site::FUNCTION));
                    if let [near, ..] = ptx_isa::suggestions(&word[1..], names.map(|known| known.name))[..] {
                        p.mend(range, Remedy::Replace(format!(".{near}").into()));
                    }
                }
                p.bump();
                let has_arguments = match known {
                    Some(known) => known.takes_arguments(),
                    None => !matches!(p.current(), DOT_WORD | L_BRACE | SEMICOLON | EOF),
                };
                if has_arguments {
                    while expression::constant(p) && p.eat(COMMA) {}
                }
                FUNCTION_DIRECTIVE
            }
        };
        marker.complete(p, kind);
    }
}
