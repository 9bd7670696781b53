//! What callers make of the functions that they call: which are inlined, and which are compiled for them alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use ptx_backend::calls::{self, leads_back};
use ptx_backend::inline::{self, Inlined};
use ptx_backend::input::Function;

use crate::db::{Db, Options, SourceFile};
use crate::items::{Item, item};
use crate::lower::statics::whole_env;
use crate::lower::{function, functions};
use crate::module::{header, module};
use crate::reach::aliasee;

/// A function with small ones in place of calls of them; `None` where nothing is inlined.
#[salsa::tracked]
pub(crate) fn inlined<'db>(db: &'db dyn Db, item: Item<'db>) -> Option<Arc<Inlined>> {
    let input = function(db, item).as_ref()?;
    let file = item.file(db);
    if !inlines(db, file) {
        return None;
    }
    inline::inline(input, &|index| inlinable(db, file, index)).map(Arc::new)
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

/// Whether all that calls a function is known, and none of it is called by the function itself.
pub(crate) fn is_private(db: &dyn Db, file: SourceFile, index: u32) -> bool {
    let module = module(db, file);
    let Some(signature) = module.env.functions.get(index as usize) else { return false };
    let is_alias = module.aliases.iter().any(|(alias, of)| [alias, of].iter().any(|&n| *n == signature.name));
    inlines(db, file)
        && !signature.entry
        && !is_alias
        && !taken_addresses(db, file).contains(&index)
        && !leads_back(index, &|index| function(db, body_of(db, file, index)?).as_deref())
}

/// The functions of a file that may be called by their addresses.
#[salsa::tracked]
fn taken_addresses(db: &dyn Db, file: SourceFile) -> BTreeSet<u32> {
    let mut taken = BTreeSet::new();
    calls::add_pointed_to(whole_env(db, file), &mut taken);
    for input in functions(db, file).filter_map(|item| function(db, item).as_ref()) {
        calls::add_taken(input, &mut taken);
    }
    taken
}

/// Whether functions are compiled for their callers. Debuggers know them as they were written, and so do linkers: in
/// objects all calls keep the calling convention.
fn inlines(db: &dyn Db, file: SourceFile) -> bool {
    let options = Options::get(db);
    options.opt_level(db) > 0
        && !options.relocatable(db)
        && !header(db, file).target.options.iter().any(|o| o == "debug")
}

/// As [`is_private`]. A query of its own, since it asks the module for more than code may depend on.
#[salsa::tracked]
pub(crate) fn serves_known_callers<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    let (file, name) = (item.file(db), item.name(db));
    let mut functions = (0..).zip(&module(db, file).env.functions);
    let own = functions.find(|(_, function)| !function.entry && function.name == *name);
    own.is_some_and(|(index, _)| body_of(db, file, index) == Some(item) && is_private(db, file, index))
}
