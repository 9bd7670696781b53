//! Modifiers that the assembler accepts and ignores.

use ptx_isa::Suffix;

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// A modifier has no effect on the instruction.
    pub(super) IGNORED_MODIFIER = "W0524" "ignored-modifier", Warning, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    for &suffix in statement.suffixes {
        let word = ctx.slice(suffix);
        let is_ignored = match Suffix::parse(&word[1..]) {
            Some(Suffix::Mod(m)) => !statement.opcode.has(m),
            Some(Suffix::Type(ty)) => statement.opcode.types().all(|other| other != ty),
            None => false,
        };
        if is_ignored {
            let message = format!("`{word}` has no effect on `{}`", statement.form.mnemonic());
            let diagnostic = Diagnostic::new(&IGNORED_MODIFIER, suffix, message).rule();
            out.push(diagnostic.fix(format!("remove `{word}`"), suffix, ""));
        }
    }
}
