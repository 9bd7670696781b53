//! Language versions and targets that instructions need.

use ptx_isa::{GateError, PtxVersion};

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// The instruction needs a newer `.version` than the module has.
    pub VERSION_GATE = "E0401" "version-gate", Error, since "0.1.0"
}

declare_lint! {
    /// The instruction does not exist on the module's target.
    pub TARGET_GATE = "E0402" "target-gate", Error, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    if !ctx.gated {
        return;
    }
    let gate = ptx_isa::gates(&statement.opcode);
    let Err(error) = gate.check(ctx.version, ctx.target) else { return };
    let name = ctx.slice(statement.name);
    let what = format!("`{name}` {error}");
    let diagnostic = match error {
        GateError::Version(version) => Diagnostic::new(&VERSION_GATE, statement.name, what)
            .note(format!("the module says `.version {}`; raise it to {version}", ctx.version)),
        GateError::Target(targets) => {
            let needed = targets.iter().find(|sm| *sm >= ctx.target).or_else(|| targets.iter().next());
            let diagnostic = Diagnostic::new(&TARGET_GATE, statement.name, what);
            match needed {
                Some(sm) => diagnostic.note(format!("the target is {}; `.target {sm}` would do", ctx.target)),
                None => diagnostic,
            }
        }
        GateError::Removed(_) => Diagnostic::new(&TARGET_GATE, statement.name, what)
            .note(replacement(statement.form.mnemonic(), ctx.version)),
    };
    out.push(diagnostic);
}

fn replacement(mnemonic: &str, version: PtxVersion) -> String {
    match mnemonic {
        "shfl" | "vote" => format!("use `{mnemonic}.sync` with a mask of the participating threads"),
        _ => format!("the module says `.version {version}`"),
    }
}
