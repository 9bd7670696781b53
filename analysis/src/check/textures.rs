//! Textures with and without a sampler of their own.

use ptx_backend::input::Operand;

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// A texture access names a sampler although the module has unified texture mode.
    pub(crate) TEXTURE_MODE = "E0309" "texture-mode", Error, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    if !matches!(statement.form.mnemonic(), "tex" | "tld4") {
        return;
    }
    let independent = ctx.header.target.options.iter().any(|option| option == "texmode_independent");
    for (operand, &range) in statement.operands.iter().zip(statement.ranges) {
        if let Some(Operand::List(parts)) = operand
            && let [_, Operand::Symbol(..), _] = parts.as_slice()
            && !independent
        {
            let message = "a texture brings its own sampler in the unified texture mode";
            let note = "write `.target …, texmode_independent` to name samplers";
            out.push(Diagnostic::new(&TEXTURE_MODE, range, message).note(note));
        }
    }
}
