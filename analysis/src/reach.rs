//! What a function uses of its module, and which functions a cubin with chosen kernels contains.

use ptx_backend::input::{Symbol, Variable};
use rustc_hash::FxHashSet;

use crate::db::{Db, Options, SourceFile};
use crate::items::{Item, item};
use crate::lower::statics::whole_env;
use crate::lower::{findings, functions};
use crate::module::{Module, module};

/// The functions with a body that the chosen kernels may need: the kernels, the functions that they mention, directly
/// or indirectly, and the functions that variables point to. They are in text order. If `entries` is empty, all kernels
/// are chosen; for an object, all functions are needed.
pub fn wanted<'db>(db: &'db dyn Db, file: SourceFile, entries: &[String]) -> Vec<Item<'db>> {
    if entries.is_empty() && Options::get(db).relocatable(db) {
        return functions(db, file).collect();
    }
    let module = module(db, file);
    let is_start = |index: &u32| {
        let function = &module.env.functions[*index as usize];
        function.entry && is_chosen(entries, &function.name)
    };
    let mut pending: Vec<u32> = (0..module.env.functions.len() as u32).filter(is_start).collect();
    pending.extend(pointed_to_by_variables(db, file));
    let mut seen = FxHashSet::default();
    let mut reached = FxHashSet::default();
    while let Some(index) = pending.pop() {
        if !seen.insert(index) {
            continue;
        }
        pending.extend(aliasee(module, index));
        let Some(item) = item(db, file, module.function_items[index as usize].item) else { continue };
        reached.insert(item);
        pending.extend(used_functions(db, item));
    }
    functions(db, file).filter(|item| reached.contains(item)).collect()
}

/// The functions that an item calls or whose addresses it takes, as indices in the module.
pub(crate) fn used_functions<'db>(db: &'db dyn Db, item: Item<'db>) -> impl Iterator<Item = u32> {
    findings(db, item).uses.functions.iter().copied()
}

/// Whether a kernel is chosen. If `entries` is empty, all kernels are.
pub(crate) fn is_chosen(entries: &[String], kernel: &str) -> bool {
    entries.is_empty() || entries.iter().any(|entry| entry == kernel)
}

/// The functions whose addresses are in the initial values of a file's variables.
pub(crate) fn pointed_to_by_variables(db: &dyn Db, file: SourceFile) -> impl Iterator<Item = u32> {
    whole_env(db, file).variables.iter().flat_map(pointed_to)
}

/// The functions whose addresses are in a variable's initial value.
fn pointed_to(variable: &Variable) -> impl Iterator<Item = u32> {
    let relocs = variable.init.iter().flat_map(|init| &init.relocs);
    relocs.filter_map(|reloc| match reloc.symbol {
        Symbol::Function(index) => Some(index),
        _ => None,
    })
}

/// The function that an alias refers to.
pub(crate) fn aliasee(module: &Module, index: u32) -> Option<u32> {
    let name = &module.env.functions[index as usize].name;
    let (_, aliasee) = module.aliases.iter().find(|(alias, _)| alias == name)?;
    module.env.functions.iter().position(|function| function.name == *aliasee).map(|index| index as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Database;

    const TEXT: &str = "\
.version 9.0
.target sm_90
.address_size 64
.func last() { ret; }
.func middle() { call last; ret; }
.func other();
.func held() { ret; }
.func unused() { call middle; ret; }
.alias other, middle;
.global .u64 table[1] = { held };
.entry a() { call other; ret; }
.entry b() { ret; }
";

    #[test]
    fn a_kernel_brings_what_it_calls() {
        let db = Database::default();
        let reached = |text: &str, entries: &[&str]| {
            let file = db.add_file(text);
            let entries: Vec<String> = entries.iter().map(|&name| name.to_owned()).collect();
            let items = wanted(&db, file, &entries);
            items.into_iter().map(|item| item.name(&db).to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(reached(TEXT, &[]), "last middle held a b");
        assert_eq!(reached(TEXT, &["a"]), "last middle held a");
        assert_eq!(reached(TEXT, &["b"]), "held b");
        assert_eq!(reached(TEXT, &["b", "a"]), "last middle held a b");
        assert_eq!(reached(&TEXT.replace("{ held }", "{ 0 }"), &["b"]), "b");
        // A variable in a body exists whether or not its function is reached.
        let kept = TEXT.replace("unused() {", "unused() { .global .u64 kept = last;");
        assert_eq!(reached(&kept, &["b"]), "last held b");
        // Functions that call each other.
        assert_eq!(reached(&TEXT.replace("last() {", "last() { call other;"), &["a"]), "last middle held a");
    }
}
