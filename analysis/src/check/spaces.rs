//! Agreement of an instruction's state space with the variable that it names.

use ptx_backend::input::{AddressBase, Operand, Symbol};
use ptx_isa::{Mod, Space};

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// An address names a variable of another state space than the instruction's.
    pub(super) STATE_SPACE = "E0308" "state-space", Error, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    if !matches!(statement.form.mnemonic(), "ld" | "ldu" | "st" | "atom" | "red") {
        return;
    }
    let Some(expected) = statement.opcode.mods().find_map(space) else { return };
    for (operand, &range) in statement.operands.iter().zip(statement.ranges) {
        let Some(Operand::Address(address)) = operand else { continue };
        let AddressBase::Symbol(symbol) = address.base else { continue };
        let found = match symbol {
            Symbol::Param(_) | Symbol::Return(_) => Some(Space::Param),
            Symbol::Function(_) => None,
            Symbol::Global(_) | Symbol::Local(_) => ctx.spaces.get(&symbol).copied(),
        };
        if let Some(found) = found
            && found != expected
        {
            let name = ctx.slice(range);
            let message = format!(
                "`{name}` is in `.{}`, the instruction accesses `.{}`",
                found.text(),
                expected.text()
            );
            out.push(Diagnostic::new(&STATE_SPACE, range, message));
        }
    }
}

fn space(m: Mod) -> Option<Space> {
    Some(match m {
        Mod::Global => Space::Global,
        Mod::Shared | Mod::SharedCta | Mod::SharedCluster => Space::Shared,
        Mod::Const => Space::Const,
        Mod::Local => Space::Local,
        Mod::Param | Mod::ParamEntry | Mod::ParamFunc => Space::Param,
        _ => return None,
    })
}
