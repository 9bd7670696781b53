//! The outline of a file.

use ptx_backend::input::Symbol;
use ptx_isa::Space;
use ptx_syntax::ItemKind;

use crate::db::{Database, Db, SourceFile};
use crate::ide::{DocumentSymbol, SymbolKind, Usage};
use crate::items::{Item, items};
use crate::locate::trimmed;
use crate::lower::lower;
use crate::scope::{DeclKind, Entity};
use crate::signature::{ItemDecl, item_decl};

/// Functions with their parameters, shared and local variables and labels; variables; debug sections.
pub fn document_symbols(db: &Database, file: SourceFile) -> Vec<DocumentSymbol> {
    items(db, file).iter().flat_map(|&item| item_symbols(db, item)).collect()
}

fn item_symbols(db: &dyn Db, item: Item<'_>) -> Vec<DocumentSymbol> {
    match item_decl(db, item) {
        ItemDecl::Function(decl) => {
            let kind = match (decl.signature.entry, decl.has_body) {
                (true, _) => SymbolKind::Entry,
                (false, true) => SymbolKind::Function,
                (false, false) => SymbolKind::Prototype,
            };
            let count = decl.signature.params.len();
            let plural = if count == 1 { "" } else { "s" };
            let what = if decl.signature.entry { ".entry" } else { ".func" };
            let detail = format!("{what}, {count} parameter{plural}");
            named(db, item, kind, detail)
                .map(|symbol| DocumentSymbol { children: members(db, item), ..symbol })
                .into_iter()
                .collect()
        }
        ItemDecl::Variables(variables) => {
            let map = &lower(db, item).map;
            let names = map.occurrences.iter().filter(|o| o.access == Usage::Declaration);
            let offset = item.offset(db);
            let symbols = variables.iter().zip(names).map(|(decl, name)| {
                let variable = &decl.variable;
                let kind =
                    if variable.space == Space::Const { SymbolKind::Constant } else { SymbolKind::Variable };
                let full = if variables.len() == 1 { trimmed(db, item) } else { name.range + offset };
                DocumentSymbol {
                    name: variable.name.clone(),
                    detail: super::hover::describe_variable(variable),
                    kind,
                    full,
                    focus: name.range + offset,
                    children: Vec::new(),
                }
            });
            symbols.collect()
        }
        _ if item.kind(db) == ItemKind::Section => {
            let full = trimmed(db, item);
            let name = item.name(db).to_string();
            let (detail, children) = (".section".to_owned(), Vec::new());
            vec![DocumentSymbol { name, detail, kind: SymbolKind::Directive, full, focus: full, children }]
        }
        _ => Vec::new(),
    }
}

fn named(db: &dyn Db, item: Item<'_>, kind: SymbolKind, detail: String) -> Option<DocumentSymbol> {
    let focus = lower(db, item).map.name_range()? + item.offset(db);
    let full = trimmed(db, item);
    Some(DocumentSymbol { name: item.name(db).to_string(), detail, kind, full, focus, children: Vec::new() })
}

/// What a function declares, registers left out.
fn members(db: &dyn Db, item: Item<'_>) -> Vec<DocumentSymbol> {
    let lowered = lower(db, item);
    let (text, offset) = (item.text(db), item.offset(db));
    let members =
        lowered.map.occurrences.iter().filter(|o| o.access == Usage::Declaration).filter_map(|occurrence| {
            let kind = match occurrence.entity {
                Entity::Label(_) => SymbolKind::Label,
                Entity::Symbol(Symbol::Param(_) | Symbol::Return(_)) => SymbolKind::Parameter,
                Entity::Symbol(Symbol::Local(_)) => SymbolKind::Variable,
                Entity::Prototype(_) => SymbolKind::Prototype,
                _ => return None,
            };
            let id = lowered.map.declaration_of(occurrence.entity)?;
            let declaration = &lowered.map.declarations[id.0 as usize];
            // Parameters of calls are declared in small blocks of their own, by the hundred.
            let is_call_parameter = matches!(declaration.kind, DeclKind::Symbol(Symbol::Local(_)))
                && lowered.function.as_ref().is_some_and(|function| {
                    matches!(occurrence.entity, Entity::Symbol(Symbol::Local(i))
                    if function.locals.get(i as usize).is_some_and(|v| v.space == Space::Param))
                });
            let full = occurrence.range + offset;
            (!is_call_parameter).then(|| DocumentSymbol {
                name: text[occurrence.range].to_owned(),
                detail: String::new(),
                kind,
                full,
                focus: full,
                children: Vec::new(),
            })
        });
    members.collect()
}
