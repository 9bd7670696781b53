//! The outline of a file.

use std::sync::Arc;

use ptx_backend::input::Symbol;
use ptx_isa::Space;
use ptx_syntax::ItemKind;
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::ide::{DocumentSymbol, InItem, SymbolKind, Usage};
use crate::items::{Item, items};
use crate::locate::trimmed_text;
use crate::lower::{Resolved, resolved};
use crate::readable::readable;
use crate::scope::Entity;
use crate::signature::{FunctionDecl, ItemDecl, VariableDecl, item_decl};
use crate::text::counted;

/// Functions with their parameters, shared and local variables and labels; variables; debug sections.
pub fn document_symbols(db: &Database, file: SourceFile) -> Vec<DocumentSymbol> {
    let mut symbols = Vec::new();
    for item in outline(db, file) {
        symbols.extend(item.values.iter().map(|symbol| symbol.clone().shifted(item.start)));
    }
    symbols
}

/// The same in the stored form, item by item.
pub fn outline(db: &Database, file: SourceFile) -> Vec<InItem<DocumentSymbol>> {
    items(db, file).iter().map(|&item| InItem::new(db, item, item_symbols(db, item))).collect()
}

impl DocumentSymbol {
    fn shifted(self, offset: TextSize) -> Self {
        let children = self.children.into_iter().map(|child| child.shifted(offset)).collect();
        Self { full: self.full + offset, focus: self.focus + offset, children, ..self }
    }
}

/// The symbols of an item, relative to it. They are stored, but the data they are computed from is not.
#[salsa::tracked(returns(ref))]
fn item_symbols<'db>(db: &'db dyn Db, item: Item<'db>) -> Arc<[DocumentSymbol]> {
    let full = trimmed_text(item.text(db));
    match item_decl(db, item) {
        ItemDecl::Function(decl) => {
            resolved(db, item, |resolved| function_symbol(db, item, decl, full, resolved))
                .into_iter()
                .collect()
        }
        ItemDecl::Variables(variables) => {
            resolved(db, item, |resolved| variable_symbols(variables, full, resolved))
        }
        _ if item.kind(db) == ItemKind::Section => {
            let name = item.name(db).to_string();
            let (detail, children) = (".section".to_owned(), Vec::new());
            [DocumentSymbol { name, detail, kind: SymbolKind::Directive, full, focus: full, children }].into()
        }
        _ => Arc::default(),
    }
}

fn function_symbol(
    db: &dyn Db,
    item: Item<'_>,
    decl: &FunctionDecl,
    full: TextRange,
    resolved: &Resolved<'_>,
) -> Option<DocumentSymbol> {
    let kind = match (decl.signature.entry, decl.has_body) {
        (true, _) => SymbolKind::Entry,
        (false, true) => SymbolKind::Function,
        (false, false) => SymbolKind::Prototype,
    };
    let count = decl.signature.params.len();
    let what = if decl.signature.entry { ".entry" } else { ".func" };
    let detail = format!("{what}, {}", counted(count, "parameter"));
    let focus = resolved.map.name_range()?;
    let children = members(item.text(db), resolved);
    let name = item.name(db);
    Some(match readable(name) {
        Some(readable) => DocumentSymbol {
            name: readable,
            detail: format!("{detail}: {name}"),
            kind,
            full,
            focus,
            children,
        },
        None => DocumentSymbol { name: name.to_string(), detail, kind, full, focus, children },
    })
}

fn variable_symbols(
    variables: &[VariableDecl],
    full: TextRange,
    resolved: &Resolved<'_>,
) -> Arc<[DocumentSymbol]> {
    let names = resolved.map.occurrences.iter().filter(|o| o.access == Usage::Declaration);
    let symbols = variables.iter().zip(names).map(|(decl, name)| {
        let variable = &decl.variable;
        let kind = if variable.space == Space::Const { SymbolKind::Constant } else { SymbolKind::Variable };
        DocumentSymbol {
            name: readable(&variable.name).unwrap_or_else(|| variable.name.clone()),
            detail: super::hover::describe_variable(variable),
            kind,
            full: if variables.len() == 1 { full } else { name.range },
            focus: name.range,
            children: Vec::new(),
        }
    });
    symbols.collect()
}

/// The declarations of a function, without registers.
fn members(text: &str, resolved: &Resolved<'_>) -> Vec<DocumentSymbol> {
    let map = resolved.map;
    let declared = map.occurrences.iter().filter(|o| o.access == Usage::Declaration);
    let members = declared.filter_map(|occurrence| {
        let kind = match occurrence.entity {
            Entity::Label(_) => SymbolKind::Label,
            Entity::Symbol(Symbol::Param(_) | Symbol::Return(_)) => SymbolKind::Parameter,
            // Parameters of calls are declared by the hundred in small blocks.
            Entity::Symbol(Symbol::Local(i)) => {
                let is_call_parameter =
                    resolved.locals.get(i as usize).is_some_and(|v| v.space == Space::Param);
                (!is_call_parameter).then_some(SymbolKind::Variable)?
            }
            Entity::Prototype(_) => SymbolKind::Prototype,
            _ => return None,
        };
        map.declaration_of(occurrence.entity)?;
        let full = occurrence.range;
        Some(DocumentSymbol {
            name: text[full].to_owned(),
            detail: String::new(),
            kind,
            full,
            focus: full,
            children: Vec::new(),
        })
    });
    members.collect()
}
