//! Renumbers variables of a body.

use ptx_backend::input::{AddressBase, Function, Operand, Stmt, Symbol};

/// Replaces variable `i` of the body by `moved[i]` everywhere.
pub(super) fn rename_locals(function: &mut Function, moved: &[Option<Symbol>]) {
    for stmt in &mut function.body {
        if let Stmt::Instr(instr) = stmt {
            instr.operands.iter_mut().for_each(|operand| rename(operand, moved));
        }
    }
}

/// The symbol that replaces another one after variables of the body have been renumbered.
pub(super) fn renamed(symbol: Symbol, moved: &[Option<Symbol>]) -> Symbol {
    match symbol {
        Symbol::Local(i) => moved.get(i as usize).copied().flatten().unwrap_or(symbol),
        symbol => symbol,
    }
}

fn rename(operand: &mut Operand, moved: &[Option<Symbol>]) {
    match operand {
        Operand::Symbol(symbol, _) => *symbol = renamed(*symbol, moved),
        Operand::Address(address) => {
            if let AddressBase::Symbol(symbol) = &mut address.base {
                *symbol = renamed(*symbol, moved);
            }
        }
        Operand::Vector(parts) | Operand::List(parts) => {
            parts.iter_mut().for_each(|part| rename(part, moved))
        }
        Operand::Pair(pair) => {
            rename(&mut pair.0, moved);
            rename(&mut pair.1, moved);
        }
        _ => {}
    }
}
