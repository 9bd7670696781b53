//! The call graph of a module, as far as function bodies show it.

use crate::input::{AddressBase, Env, Function, Operand, Stmt, Symbol};
use ptx_isa::FormId;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The functions of a module with a body, by their index in [`Env::functions`].
pub type Bodies<'b, 'a> = &'b dyn Fn(u32) -> Option<&'a Function>;

/// The function that a statement calls by name.
pub fn call_of(stmt: &Stmt) -> Option<u32> {
    let Stmt::Instr(instr) = stmt else { return None };
    if instr.opcode.form != FormId::Call {
        return None;
    }
    instr.operands.iter().find_map(|operand| match operand {
        Operand::Symbol(Symbol::Function(i), 0) => Some(*i),
        _ => None,
    })
}

/// Whether a function may call itself by name, directly or through other functions.
pub fn leads_back(function: u32, bodies: Bodies<'_, '_>) -> bool {
    let mut seen = FxHashSet::default();
    let mut pending = vec![function];
    while let Some(next) = pending.pop() {
        for callee in bodies(next).iter().flat_map(|function| &function.body).filter_map(call_of) {
            if callee == function {
                return true;
            }
            if seen.insert(callee) {
                pending.push(callee);
            }
        }
    }
    false
}

/// All functions, callees before their callers, in the order of ptxas: starting with the last function, and in each
/// function with its last callee.
pub fn callees_first(functions: u32, bodies: Bodies<'_, '_>) -> Vec<u32> {
    let mut seen = vec![false; functions as usize];
    let mut ordered = Vec::new();
    // Functions that wait for their callees, each with its remaining callees; the next callee is the last in the list.
    let mut waiting: Vec<(u32, Vec<u32>)> = Vec::new();
    for start in (0..functions).rev() {
        let mut next = Some(start);
        loop {
            if let Some(function) = next.take()
                && !std::mem::replace(&mut seen[function as usize], true)
            {
                let mut known = FxHashSet::default();
                let body = bodies(function).map_or(&[][..], |function| &function.body);
                let calls = body.iter().filter_map(call_of).filter(|callee| known.insert(*callee));
                waiting.push((function, calls.collect()));
            }
            let Some((function, callees)) = waiting.last_mut() else { break };
            next = callees.pop();
            if next.is_none() {
                ordered.push(*function);
                waiting.pop();
            }
        }
    }
    ordered
}

/// Adds the functions that a body uses other than by calling them by name. They may be called through their addresses.
pub fn add_taken(function: &Function, taken: &mut BTreeSet<u32>) {
    for stmt in &function.body {
        let Stmt::Instr(instr) = stmt else { continue };
        let callee = call_of(stmt);
        for operand in &instr.operands {
            let is_callee = matches!(operand, Operand::Symbol(Symbol::Function(i), 0) if callee == Some(*i));
            if !is_callee {
                add_operand(operand, taken);
            }
        }
    }
    for relocation in
        function.locals.iter().filter_map(|variable| variable.init.as_ref()).flat_map(|i| &i.relocs)
    {
        add_symbol(relocation.symbol, taken);
    }
}

/// Adds the functions whose addresses are in initializers of the module's variables.
pub fn add_pointed_to(env: &Env, taken: &mut BTreeSet<u32>) {
    for relocation in
        env.variables.iter().filter_map(|variable| variable.init.as_ref()).flat_map(|i| &i.relocs)
    {
        add_symbol(relocation.symbol, taken);
    }
}

fn add_symbol(symbol: Symbol, taken: &mut BTreeSet<u32>) {
    if let Symbol::Function(i) = symbol {
        taken.insert(i);
    }
}

fn add_operand(operand: &Operand, taken: &mut BTreeSet<u32>) {
    match operand {
        Operand::Symbol(symbol, _) => add_symbol(*symbol, taken),
        Operand::Address(address) => {
            if let AddressBase::Symbol(symbol) = address.base {
                add_symbol(symbol, taken);
            }
        }
        Operand::Vector(list) | Operand::List(list) => {
            list.iter().for_each(|operand| add_operand(operand, taken))
        }
        Operand::Pair(pair) => {
            add_operand(&pair.0, taken);
            add_operand(&pair.1, taken);
        }
        _ => {}
    }
}
