//! Variables of bodies that exist once per module: `.const` and `.global` ones.
//!
//! For the backend they are module-scope variables, after those that the module itself declares.

use ptx_backend::input::{Env, Function, Symbol, Variable};
use ptx_isa::Space;
use std::sync::Arc;

use super::rename::{rename_locals, renamed};
use super::{all_findings, functions, lower};
use crate::db::{Db, SourceFile};
use crate::items::Item;
use crate::module::module;

fn is_static(variable: &Variable) -> bool {
    has_storage(variable.space)
}

/// Whether variables of the space exist once per module, even if they are declared in a body.
fn has_storage(space: Space) -> bool {
    matches!(space, Space::Const | Space::Global)
}

/// The functions with such variables, each with the ordinal of its first one in the file.
#[salsa::tracked]
fn owners<'db>(db: &'db dyn Db, file: SourceFile) -> Box<[(Item<'db>, u32)]> {
    let mut storage = all_findings(db, file).into_iter().flat_map(|(_, found)| &found.storage);
    if !storage.any(|&(space, _)| has_storage(space)) {
        return Box::default();
    }
    let mut owners = Vec::new();
    let mut next = 0;
    for item in functions(db, file) {
        let Some(function) = &lower(db, item).function else { continue };
        let count = function.locals.iter().filter(|variable| is_static(variable)).count() as u32;
        if count > 0 {
            owners.push((item, next));
            next += count;
        }
    }
    owners.into()
}

/// The module, including the variables of bodies that exist once per module.
#[salsa::tracked]
pub fn whole_env(db: &dyn Db, file: SourceFile) -> Arc<Env> {
    let env = &module(db, file).env;
    let owners = owners(db, file);
    if owners.is_empty() {
        return Arc::clone(env);
    }
    let mut env = Env::clone(env);
    for &(item, first) in owners {
        let Some(function) = &lower(db, item).function else { continue };
        let moved = places(db, file, function, first);
        for (variable, ordinal) in function.locals.iter().filter(|variable| is_static(variable)).zip(first..)
        {
            let mut variable = variable.clone();
            variable.name = format!("$__{}__{ordinal}", variable.name);
            for reloc in variable.init.iter_mut().flat_map(|init| &mut init.relocs) {
                reloc.symbol = renamed(reloc.symbol, &moved);
            }
            env.variables.push(variable);
        }
    }
    Arc::new(env)
}

/// The symbols of a function's variables in [`whole_env`]. The numbers of its remaining own variables decrease.
fn places(db: &dyn Db, file: SourceFile, function: &Function, first: u32) -> Vec<Option<Symbol>> {
    let (mut next_static, mut next_own) = (module(db, file).env.variables.len() as u32 + first, 0);
    let place = |variable: &Variable| {
        let (next, symbol): (_, fn(u32) -> Symbol) = match is_static(variable) {
            true => (&mut next_static, Symbol::Global),
            false => (&mut next_own, Symbol::Local),
        };
        *next += 1;
        Some(symbol(*next - 1))
    };
    function.locals.iter().map(place).collect()
}

pub(super) fn any_in(function: &Function) -> bool {
    function.locals.iter().any(is_static)
}

/// Moves the variables that exist once per module out of a function.
pub(super) fn leave_body(db: &dyn Db, item: Item<'_>, function: &mut Function) {
    let file = item.file(db);
    let Some(&(_, first)) = owners(db, file).iter().find(|(owner, _)| *owner == item) else { return };
    let moved = places(db, file, function, first);
    rename_locals(function, &moved);
    function.locals.retain(|variable| !is_static(variable));
}
