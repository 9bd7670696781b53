//! The PTX grammar, as functions that call the parser. There is one module per group of constructs.

mod declaration;
mod directive;
mod expression;
mod function;
mod instruction;
mod section;
mod statement;

pub use declaration::type_of_c;

use crate::SyntaxKind::*;
use crate::parser::Parser;

/// Parses one top-level item. Any text after it becomes an error in it.
pub(crate) fn item(p: &mut Parser<'_>) {
    let marker = p.start();
    // A byte order mark has an error of its own, and the item follows it.
    if p.at(BAD_CHAR) && p.current_text() == "\u{feff}" {
        p.bump_as_error();
    }
    let kind = match p.current() {
        EOF => TRIVIA,
        AT if p.nth(1) == AT => directive::dwarf_line(p),
        DOT_WORD => match p.current_text() {
            ".version" => directive::version(p),
            ".target" => directive::target(p),
            ".address_size" => directive::address_size(p),
            ".file" => directive::file(p),
            ".loc" => directive::loc(p),
            ".section" => section::section(p),
            ".pragma" => directive::pragma(p),
            ".alias" => directive::alias(p),
            _ => function::function_or_variable(p),
        },
        R_BRACE => {
            p.error_at(crate::ErrorCode::Unbalanced, p.current_range(), "unmatched `}`");
            ERROR
        }
        _ => {
            let (range, found) = (p.current_range(), p.found());
            p.error_here(format!("expected a directive at module scope, found {found}"));
            let names = ptx_isa::Directive::ALL.iter().map(|known| known.name);
            if let Some(name) = names.into_iter().find(|&name| name == p.current_text()) {
                p.mend(range, crate::Remedy::Replace(format!(".{name}").into()));
            }
            ERROR
        }
    };
    if p.nth(0) != EOF {
        let found = p.found();
        p.error_here(format!("expected the end of the declaration, found {found}"));
        let rest = p.start();
        while p.nth(0) != EOF {
            p.bump();
        }
        rest.complete(p, ERROR);
    }
    marker.complete(p, kind);
}

/// Parses statements up to the end of the text, like the contents of a block without braces.
pub(crate) fn statements(p: &mut Parser<'_>) {
    let marker = p.start();
    while !p.at(EOF) {
        statement::statement(p);
    }
    marker.complete(p, BLOCK);
}
