//! The call graph of a module, as far as function bodies show it.

use crate::input::{AddressBase, Env, Function, Linkage, Operand, Stmt, Symbol};
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

/// The functions among the first `count` that may call themselves by name, directly or through other functions. They are
/// those in cycles of the call graph, found by Tarjan's algorithm for strongly connected components.
pub fn recursive(count: u32, bodies: Bodies<'_, '_>) -> BTreeSet<u32> {
    /// A function that waits for its callees.
    struct Frame {
        function: u32,
        callees: Vec<u32>,
        next: usize,
    }
    let callees = |function: u32| -> Vec<u32> {
        let body = bodies(function).into_iter().flat_map(|function| &function.body);
        body.filter_map(call_of).filter(|callee| *callee < count).collect()
    };
    let mut found = BTreeSet::new();
    // The order of the first visit, counted from one, and the lowest such number that is reached and not yet finished.
    let (mut order, mut lowest) = (vec![0u32; count as usize], vec![0u32; count as usize]);
    let (mut open, mut is_open) = (Vec::new(), vec![false; count as usize]);
    let mut visited = 0;
    for start in 0..count {
        let mut frames = Vec::new();
        let mut entered = (order[start as usize] == 0).then_some(start);
        loop {
            if let Some(function) = entered.take() {
                visited += 1;
                (order[function as usize], lowest[function as usize]) = (visited, visited);
                open.push(function);
                is_open[function as usize] = true;
                frames.push(Frame { function, callees: callees(function), next: 0 });
            }
            let Some(frame) = frames.last_mut() else { break };
            let function = frame.function as usize;
            if let Some(&callee) = frame.callees.get(frame.next) {
                frame.next += 1;
                if callee == frame.function {
                    found.insert(callee);
                } else if order[callee as usize] == 0 {
                    entered = Some(callee);
                } else if is_open[callee as usize] {
                    lowest[function] = lowest[function].min(order[callee as usize]);
                }
                continue;
            }
            frames.pop();
            if let Some(caller) = frames.last() {
                let caller = caller.function as usize;
                lowest[caller] = lowest[caller].min(lowest[function]);
            }
            if lowest[function] == order[function] {
                let at = open.iter().rposition(|&other| other as usize == function).unwrap_or(0);
                let component = open.split_off(at);
                component.iter().for_each(|&member| is_open[member as usize] = false);
                if component.len() > 1 {
                    found.extend(component);
                }
            }
        }
    }
    found
}

/// All functions in the order in which ptxas describes those of an object.
///
/// Optimized code: callees before their callers, starting with the last function without linkage, then with the last one
/// of the others, and in each function with its last callee. A function that takes addresses of functions, or calls
/// through one, counts as a caller of all functions in `taken`, which follow those that it calls by name.
///
/// Code without optimization: in the order of the declarations, those without linkage last.
pub fn in_order_of_objects(env: &Env, bodies: Bodies<'_, '_>, taken: &[u32], is_optimized: bool) -> Vec<u32> {
    let all = 0..env.functions.len() as u32;
    let is_local = |i: &u32| env.functions[*i as usize].linkage == Linkage::Internal;
    let (local, public): (Vec<u32>, Vec<u32>) = all.partition(is_local);
    if !is_optimized {
        return public.into_iter().chain(local).collect();
    }
    let mut seen = vec![false; env.functions.len()];
    let mut ordered = Vec::new();
    // Functions that wait for their callees, each with its remaining callees; the next callee is the last in the list.
    let mut waiting: Vec<(u32, Vec<u32>)> = Vec::new();
    for start in local.into_iter().rev().chain(public.into_iter().rev()) {
        let mut next = Some(start);
        loop {
            if let Some(function) = next.take()
                && !std::mem::replace(&mut seen[function as usize], true)
            {
                let mut known = FxHashSet::default();
                let calls = bodies(function).into_iter().flat_map(|body| callees(body, taken));
                waiting.push((function, calls.filter(|callee| known.insert(*callee)).collect()));
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

/// The functions that a body calls by name and then, if it takes addresses or calls through one, those in `taken`.
fn callees<'f>(body: &'f Function, taken: &'f [u32]) -> impl Iterator<Item = u32> + 'f {
    let pointees = if uses_addresses(body, taken) { taken } else { &[] };
    body.body.iter().filter_map(call_of).chain(pointees.iter().copied())
}

/// Whether a body calls through an address, or takes the address of one of these functions.
fn uses_addresses(function: &Function, taken: &[u32]) -> bool {
    let mut takes = false;
    each_taken(function, &mut |i| takes |= taken.contains(&i));
    let is_call = |stmt: &Stmt| matches!(stmt, Stmt::Instr(instr) if instr.opcode.form == FormId::Call);
    takes || function.body.iter().any(|stmt| is_call(stmt) && call_of(stmt).is_none())
}

/// The functions other than kernels whose addresses are taken, in the order of ptxas: as they are found in the bodies,
/// then those in initializers.
pub fn taken_in_order(env: &Env, bodies: Bodies<'_, '_>) -> Vec<u32> {
    let (mut taken, mut known) = (Vec::new(), FxHashSet::default());
    let mut found = |i: u32| {
        let is_kernel = env.functions.get(i as usize).is_some_and(|function| function.entry);
        if !is_kernel && known.insert(i) {
            taken.push(i);
        }
    };
    (0..env.functions.len() as u32).filter_map(bodies).for_each(|body| each_taken(body, &mut found));
    each_pointed_to(env, &mut found);
    taken
}

/// Sorts the kernels of an executable, which are in the order of the text, as ptxas does. It reverses them. If the module
/// takes the address of a function (`taken`), it sorts them instead: kernels that may call through addresses come first.
/// Kernels that are equal in this respect end up in the order in which a merge sort leaves them that deals the list
/// alternately onto two stacks and takes from the second stack first.
pub fn sort_kernels(kernels: &mut Vec<u32>, bodies: Bodies<'_, '_>, taken: &[u32]) {
    if taken.is_empty() {
        kernels.reverse();
        return;
    }
    *kernels = dealt(std::mem::take(kernels));
    kernels.sort_by_cached_key(|&kernel| !may_call_through_addresses(kernel, bodies, taken));
}

fn dealt(list: Vec<u32>) -> Vec<u32> {
    if list.len() < 2 {
        return list;
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (at, item) in list.into_iter().enumerate().rev() {
        if at % 2 == 0 { first.push(item) } else { second.push(item) }
    }
    let mut all = dealt(second);
    all.extend(dealt(first));
    all
}

/// The functions that a function may call, without the function itself. Once one calls through an address, these are all
/// functions whose addresses are taken.
pub fn reached(function: u32, bodies: Bodies<'_, '_>, taken: &[u32]) -> Vec<u32> {
    let mut reached = Vec::new();
    let mut seen = FxHashSet::from_iter([function]);
    let mut pending = vec![function];
    while let Some(next) = pending.pop() {
        let Some(body) = bodies(next) else { continue };
        let new: Vec<u32> = callees(body, taken).filter(|callee| seen.insert(*callee)).collect();
        reached.extend(&new);
        pending.extend(new);
    }
    reached
}

/// Whether a function, or one that it calls by name, takes the address of a function or calls through an address.
fn may_call_through_addresses(function: u32, bodies: Bodies<'_, '_>, taken: &[u32]) -> bool {
    let mut all = std::iter::once(function).chain(reached(function, bodies, taken));
    all.any(|function| bodies(function).is_some_and(|body| uses_addresses(body, taken)))
}

/// Adds the functions that a body uses other than by calling them by name. They may be called through their addresses.
pub fn add_taken(function: &Function, taken: &mut BTreeSet<u32>) {
    each_taken(function, &mut |i| _ = taken.insert(i));
}

/// Adds the functions whose addresses are in initializers of the module's variables.
pub fn add_pointed_to(env: &Env, taken: &mut BTreeSet<u32>) {
    each_pointed_to(env, &mut |i| _ = taken.insert(i));
}

fn each_taken(function: &Function, found: &mut dyn FnMut(u32)) {
    for stmt in &function.body {
        let Stmt::Instr(instr) = stmt else { continue };
        let callee = call_of(stmt);
        for operand in &instr.operands {
            let is_callee = matches!(operand, Operand::Symbol(Symbol::Function(i), 0) if callee == Some(*i));
            if !is_callee {
                in_operand(operand, found);
            }
        }
    }
    let inits = function.locals.iter().filter_map(|variable| variable.init.as_ref());
    inits.flat_map(|init| &init.relocs).for_each(|relocation| in_symbol(relocation.symbol, found));
}

fn each_pointed_to(env: &Env, found: &mut dyn FnMut(u32)) {
    let inits = env.variables.iter().filter_map(|variable| variable.init.as_ref());
    inits.flat_map(|init| &init.relocs).for_each(|relocation| in_symbol(relocation.symbol, found));
}

fn in_symbol(symbol: Symbol, found: &mut dyn FnMut(u32)) {
    if let Symbol::Function(i) = symbol {
        found(i);
    }
}

fn in_operand(operand: &Operand, found: &mut dyn FnMut(u32)) {
    match operand {
        Operand::Symbol(symbol, _) => in_symbol(*symbol, found),
        Operand::Address(address) => {
            if let AddressBase::Symbol(symbol) = address.base {
                in_symbol(symbol, found);
            }
        }
        Operand::Vector(list) | Operand::List(list) => {
            list.iter().for_each(|operand| in_operand(operand, found));
        }
        Operand::Pair(pair) => {
            in_operand(&pair.0, found);
            in_operand(&pair.1, found);
        }
        _ => {}
    }
}
