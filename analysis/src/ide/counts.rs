//! The number of references to functions and labels, for lenses.

use std::collections::BTreeMap;

use ptx_backend::input::Symbol;
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::ide::resources::{LENS_LIMIT, above};
use crate::items::{Item, items};
use crate::lower::lower;
use crate::module::module;
use crate::scope::{DeclKind, Entity};
use crate::source_map::Usage;
use crate::text::counted;

/// A function or a label, and the places that refer to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Referenced {
    /// Where a lens about it belongs.
    pub range: TextRange,
    /// Its name.
    pub focus: TextRange,
    pub references: Vec<TextRange>,
}

impl Referenced {
    /// `3 references`
    pub fn title(&self) -> String {
        counted(self.references.len(), "reference")
    }
}

/// The functions and labels of a file with their references, in text order. A kernel is listed only if the file refers
/// to it, because programs on the host launch kernels. Large files have no such list: it needs the names of all
/// functions.
pub fn referenced(db: &Database, file: SourceFile) -> Vec<Referenced> {
    if file.text(db).len() > LENS_LIMIT {
        return Vec::new();
    }
    let mut functions: BTreeMap<u32, Vec<TextRange>> = BTreeMap::new();
    for &item in items(db, file) {
        for occurrence in &lower(db, item).map.occurrences {
            if let Entity::Symbol(Symbol::Function(index)) = occurrence.entity
                && occurrence.access != Usage::Declaration
            {
                functions.entry(index).or_default().push(occurrence.range + item.offset(db));
            }
        }
    }
    let mut all: Vec<Referenced> = Vec::new();
    for &item in items(db, file).iter().filter(|&&item| lower(db, item).has_body) {
        all.extend(function(db, file, item, &functions));
        all.extend(labels(db, item));
    }
    all
}

fn function(
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    references: &BTreeMap<u32, Vec<TextRange>>,
) -> Option<Referenced> {
    let map = &lower(db, item).map;
    let (index, name) = map.occurrences.iter().find_map(|occurrence| match occurrence.entity {
        Entity::Symbol(Symbol::Function(index)) if occurrence.access == Usage::Declaration => {
            Some((index, occurrence.range))
        }
        _ => None,
    })?;
    let focus = name + item.offset(db);
    let is_kernel = module(db, file).env.functions.get(index as usize)?.entry;
    let references = references.get(&index).cloned().unwrap_or_default();
    (!is_kernel || !references.is_empty()).then(|| Referenced {
        range: above(db, item, focus),
        focus,
        references,
    })
}

fn labels(db: &dyn Db, item: Item<'_>) -> Vec<Referenced> {
    let (map, offset) = (&lower(db, item).map, item.offset(db));
    let mut references = vec![Vec::new(); map.labels.len()];
    for occurrence in &map.occurrences {
        if let Entity::Label(label) = occurrence.entity
            && occurrence.access != Usage::Declaration
            && let Some(known) = references.get_mut(label.0 as usize)
        {
            known.push(occurrence.range + offset);
        }
    }
    let is_empty = |range: TextRange| range.len() == TextSize::new(0);
    let found = map.declarations.iter().filter_map(|declaration| match declaration.kind {
        DeclKind::Label(label) if !is_empty(declaration.range) => Some(Referenced {
            range: declaration.range + offset,
            focus: declaration.range + offset,
            references: references.get_mut(label.0 as usize).map(std::mem::take).unwrap_or_default(),
        }),
        _ => None,
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_labels_are_counted() {
        let text = ".version 7.0\n.target sm_80\n.address_size 64\n\n// Doubles.\n\
            .func (.reg .b32 r) twice(.reg .b32 a) { add.s32 r, a, a; ret; }\n\
            .func alone() { ret; }\n.visible .entry k()\n{\n.reg .b32 %r<2>;\n.reg .pred %p;\nmov.b32 %r1, 1;\n\
            again:\ncall (%r1), twice, (%r1);\ncall (%r1), twice, (%r1);\nsetp.lt.s32 %p, %r1, 9;\n@%p bra again;\n\
            ret;\n}\n";
        let db = Database::default();
        let file = db.add_file(text);
        let found: Vec<String> = referenced(&db, file)
            .iter()
            .map(|found| format!("{}: {} at {:?}", &text[found.focus], found.title(), &text[found.range]))
            .collect();
        assert_eq!(
            found,
            [
                "twice: 2 references at \".func (.reg .b32 r) twice\"",
                "alone: 0 references at \".func alone\"",
                "again: 1 reference at \"again\"",
            ]
        );
    }
}
