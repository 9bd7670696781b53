//! Memory limits of kernels and modules.

use ptx_backend::input::{Linkage, Variable};
use ptx_isa::Space;
use rustc_hash::FxHashSet;
use text_size::{TextRange, TextSize};

use crate::check::limits::Block;
use crate::check::lints::HARDWARE_LIMIT;
use crate::db::{Db, Options, SourceFile};
use crate::diagnostic::Diagnostic;
use crate::items::{Item, item, items};
use crate::lower::{ItemFindings, findings, lower};
use crate::module::{architecture, module};
use crate::reach::is_chosen;

/// The maximum size of the constants of a module in bytes.
const CONSTANTS: u64 = 64 << 10;

/// The size of variables placed with the largest alignment first.
fn total(mut blocks: Vec<Block>) -> u64 {
    blocks.sort_by_key(|block| std::cmp::Reverse(block.align));
    blocks.iter().fold(0u64, |end, block| {
        let start = end.checked_next_multiple_of(u64::from(block.align.max(1))).unwrap_or(u64::MAX);
        start.saturating_add(block.bytes)
    })
}

/// Checks the total sizes, for the kernels with these names or for all. Only files without other errors are checked.
/// `found` holds the findings of all items.
pub(super) fn check<'db>(
    db: &'db dyn Db,
    file: SourceFile,
    entries: &[String],
    found: &[(TextSize, &ItemFindings)],
) -> Vec<(Item<'db>, Diagnostic)> {
    let mut out = Vec::new();
    let module = module(db, file);
    let Some(target) = architecture(db, file) else { return out };
    let limit = target.static_shared_limit();
    let block = |variable: &Variable| Block { bytes: variable.size, align: variable.align };
    let in_space = |space| module.env.variables.iter().filter(move |variable| variable.space == space);
    let locals = |space| {
        let storage = found.iter().flat_map(|(_, found)| &found.storage);
        storage.filter(move |(found, _)| *found == space).map(|&(_, block)| block)
    };
    let constants = total(in_space(Space::Const).map(block).chain(locals(Space::Const)).collect());
    if constants > CONSTANTS
        && let Some(item) = items(db, file).iter().copied().find(|&item| declares(db, item, Space::Const))
    {
        let range = name_or_start(db, item);
        let message =
            format!("`.const` variables of the module take {constants} bytes; the limit is {CONSTANTS}");
        out.push((item, Diagnostic::new(&HARDWARE_LIMIT, range, message)));
    }
    // The linker checks the shared memory of kernels in objects.
    if Options::get(db).relocatable(db) {
        return out;
    }
    if total(in_space(Space::Shared).map(block).chain(locals(Space::Shared)).collect()) <= limit {
        return out;
    }
    for (function, place) in module.env.functions.iter().zip(&module.function_items) {
        if !function.entry || !is_chosen(entries, &function.name) {
            continue;
        }
        let bytes = shared_bytes(db, file, place.item);
        if bytes > limit {
            let Some(item) = item(db, file, place.item) else { continue };
            let range = name_or_start(db, item);
            let name = &function.name;
            let message =
                format!("`{name}` uses {bytes} bytes of static shared memory; the limit is {limit}");
            let note = "dynamic shared memory, declared as `.extern .shared name[]`, can be larger";
            out.push((item, Diagnostic::new(&HARDWARE_LIMIT, range, message).note(note)));
        }
    }
    out
}

fn declares(db: &dyn Db, item: Item<'_>, space: Space) -> bool {
    findings(db, item).storage.iter().any(|(found, _)| *found == space)
        || item.kind(db) == ptx_syntax::ItemKind::Variable && item.text(db).contains(space.text())
}

fn name_or_start(db: &dyn Db, item: Item<'_>) -> TextRange {
    lower(db, item).map.name_range().unwrap_or_else(|| TextRange::empty(0.into()))
}

/// The size of the shared memory that a kernel and all functions that it calls use.
fn shared_bytes(db: &dyn Db, file: SourceFile, kernel: u32) -> u64 {
    let module = module(db, file);
    let mut blocks = Vec::new();
    let mut seen_items = FxHashSet::default();
    let mut seen_variables = FxHashSet::default();
    let mut pending = vec![kernel];
    while let Some(index) = pending.pop() {
        if !seen_items.insert(index) {
            continue;
        }
        let Some(item) = item(db, file, index) else { continue };
        let found = findings(db, item);
        let own = found.storage.iter().filter(|(space, _)| *space == Space::Shared);
        blocks.extend(own.map(|&(_, block)| block));
        for &index in &found.uses.variables {
            let variable = &module.env.variables[index as usize];
            // An array of open size is dynamic memory.
            if variable.space == Space::Shared && variable.size > 0 && seen_variables.insert(index) {
                blocks.push(Block { bytes: variable.size, align: variable.align });
            }
        }
        let callees =
            found.uses.functions.iter().map(|&index| (index, module.function_items[index as usize].item));
        pending.extend(
            callees
                .filter(|&(index, _)| module.env.functions[index as usize].linkage != Linkage::Extern)
                .map(|(_, item)| item),
        );
    }
    total(blocks)
}
