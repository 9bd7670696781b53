//! Decides which called functions are inlined, and which are compiled only for their callers.

use std::collections::BTreeSet;
use std::sync::Arc;

use ptx_backend::CodegenError;
use ptx_backend::calls;
use ptx_backend::inline::{self, Callees, Inlined};
use ptx_backend::input::{Function, Variable};
use ptx_backend::switches::Step;
use ptx_isa::Space;

use crate::db::{Db, Options, SourceFile};
use crate::items::{Item, item};
use crate::lower::statics::whole_env;
use crate::lower::{function, functions};
use crate::module::{is_for_debuggers, module, module_registers};
use crate::reach::aliasee;

/// A function in which calls have been replaced by bodies; `None` if no call is inlined. Returns an error if a function
/// must be inlined, because it shares variables with its callers, but cannot be.
#[salsa::tracked]
pub(crate) fn inlined<'db>(db: &'db dyn Db, item: Item<'db>) -> Result<Option<Arc<Inlined>>, CodegenError> {
    let Some(input) = function(db, item) else { return Ok(None) };
    let file = item.file(db);
    let small = inlines(db, file) && Options::get(db).switches(db).takes(Step::InlineFunctions);
    if !small && !shares(db, file) {
        return Ok(None);
    }
    let inlined = with_callees(db, file, small, |callees| inline::inline(input, callees));
    Ok(inlined?.map(Arc::new))
}

/// Runs `task` with the functions of a file that may be inlined. `small`: whether calls of small functions are.
fn with_callees<T>(db: &dyn Db, file: SourceFile, small: bool, task: impl FnOnce(Callees<'_, '_>) -> T) -> T {
    task(Callees {
        bodies: &|index| inlinable(db, file, index),
        variables: thread_variables(db, file),
        small,
        any_shares: shares(db, file),
        recursive: &|index| recursive(db, file).contains(&index),
    })
}

/// Whether functions of a file may share registers, local variables or samplers of module scope. Only old PTX versions
/// allow this.
pub(crate) fn shares(db: &dyn Db, file: SourceFile) -> bool {
    !module_registers(db, file).is_empty() || !thread_variables(db, file).is_empty()
}

/// Whether a function shares registers or variables with callers that call it through its address, so that it cannot be
/// inlined there.
#[salsa::tracked]
pub(crate) fn shares_with_unknown_callers<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    let (file, name) = (item.file(db), item.name(db));
    let functions = &module(db, file).env.functions;
    let is_own = |index: u32| functions.get(index as usize).is_some_and(|own| own.name == *name);
    let own = || taken_addresses(db, file).iter().copied().find(|&index| is_own(index));
    shares(db, file) && own().is_some_and(|own| with_callees(db, file, false, |callees| callees.share(own)))
}

/// The variables of a module, if some of them are in local memory; otherwise none.
#[salsa::tracked(returns(deref))]
fn thread_variables(db: &dyn Db, file: SourceFile) -> Box<[Variable]> {
    let variables = &module(db, file).env.variables;
    match variables.iter().any(|variable| variable.space == Space::Local) {
        true => variables.clone().into(),
        false => Box::default(),
    }
}

/// A function that may be inlined.
fn inlinable(db: &dyn Db, file: SourceFile, index: u32) -> Option<&Function> {
    let module = module(db, file);
    let signature = module.env.functions.get(index as usize)?;
    if signature.entry || aliasee(module, index).is_some() {
        return None;
    }
    function(db, body_of(db, file, index)?).as_deref()
}

/// The item of a function, by its ordinal in the module.
pub(crate) fn body_of(db: &dyn Db, file: SourceFile, function: u32) -> Option<Item<'_>> {
    item(db, file, module(db, file).function_items.get(function as usize)?.item)
}

/// Whether all callers of a function are known, and the function does not call itself, even indirectly.
pub(crate) fn is_private(db: &dyn Db, file: SourceFile, index: u32) -> bool {
    let module = module(db, file);
    let Some(signature) = module.env.functions.get(index as usize) else { return false };
    let is_alias = module.aliases.iter().any(|(alias, of)| [alias, of].iter().any(|&n| *n == signature.name));
    inlines(db, file)
        && !signature.entry
        && !is_alias
        && !taken_addresses(db, file).contains(&index)
        && !recursive(db, file).contains(&index)
}

/// The functions of a file that may call themselves by name, directly or through others.
#[salsa::tracked]
fn recursive(db: &dyn Db, file: SourceFile) -> BTreeSet<u32> {
    let count = module(db, file).env.functions.len() as u32;
    calls::recursive(count, &|index| function(db, body_of(db, file, index)?).as_deref())
}

/// The functions of a file that may be called through their addresses.
#[salsa::tracked]
fn taken_addresses(db: &dyn Db, file: SourceFile) -> BTreeSet<u32> {
    let mut taken = BTreeSet::new();
    calls::add_pointed_to(whole_env(db, file), &mut taken);
    for input in functions(db, file).filter_map(|item| function(db, item).as_ref()) {
        calls::add_taken(input, &mut taken);
    }
    taken
}

/// The first function that the module uses through its address although the module has no code under its name: a function
/// of another module, of the driver, or an alias.
pub fn first_address_of_another_module(db: &dyn Db, file: SourceFile) -> Option<&str> {
    let functions = &module(db, file).env.functions;
    let body = |index| function(db, body_of(db, file, index)?).as_deref();
    let taken = calls::taken_in_order(whole_env(db, file), &body);
    let first = taken.into_iter().find(|&index| body(index).is_none())?;
    Some(&functions.get(first as usize)?.name)
}

/// Whether functions are inlined or compiled for their callers. This is not done for debuggers, which expect the
/// functions as written, nor for linkers, because in objects all calls follow the calling convention.
fn inlines(db: &dyn Db, file: SourceFile) -> bool {
    let options = Options::get(db);
    options.opt_level(db) > 0 && !options.relocatable(db) && !is_for_debuggers(db, file)
}

/// As [`is_private`]. It is a separate query, because it asks for more facts about the module than code may depend on.
#[salsa::tracked]
pub(crate) fn serves_known_callers<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    let (file, name) = (item.file(db), item.name(db));
    let mut functions = (0..).zip(&module(db, file).env.functions);
    let own = functions.find(|(_, function)| !function.entry && function.name == *name);
    own.is_some_and(|(index, _)| body_of(db, file, index) == Some(item) && is_private(db, file, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Database;

    #[test]
    fn functions_in_cycles_of_calls_are_recursive() {
        const TEXT: &str = "
            .version 8.0
            .target sm_80
            .address_size 64
            .func a(); .func b(); .func c(); .func d(); .func e();
            .func leaf() { ret; }
            .func itself() { call itself; ret; }
            .func a() { call leaf; call b; ret; }
            .func b() { call c; call d; ret; }
            .func c() { call a; ret; }
            .func d() { call e; call leaf; ret; }
            .func e() { call itself; ret; }
            .func far() { call a; call d; ret; }";
        let db = Database::default();
        let file = db.add_frozen_file(TEXT.to_owned());
        let functions = &module(&db, file).env.functions;
        let mut names: Vec<&str> =
            recursive(&db, file).iter().map(|&index| &*functions[index as usize].name).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c", "itself"]);
    }
}
