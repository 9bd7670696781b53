//! Completions in a call: a function, then parameters and registers of the types that it takes.

use ptx_backend::input::{Param, Signature};
use ptx_isa::{ScalarType, Space};
use text_size::TextSize;

use super::operands::{OperandPlace, distance, registers, written_type};
use super::{Collector, Rank};
use crate::db::{Db, SourceFile};
use crate::ide::CompletionKind;
use crate::ide::hover::as_written;
use crate::items::Item;
use crate::lower::lower;
use crate::module::module;
use crate::scope::DeclKind;

/// The part of a call in which its text up to the cursor ends.
enum Part<'t> {
    /// `has_results`: a list of results precedes it.
    Callee {
        has_results: bool,
    },
    Results,
    /// The callee, and the index of the parameter.
    Argument(&'t str, usize),
    /// The list or prototype of an indirect call.
    Targets,
}

fn part(rest: &str) -> Part<'_> {
    let (mut depth, mut lists, mut start) = (0, 0, 0);
    // The operands before the one at the cursor.
    let mut operands = Vec::new();
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' => (depth, lists) = (depth + 1, 0),
            b')' => depth -= 1,
            b',' if depth > 0 => lists += 1,
            b',' => {
                operands.push(rest[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let has_results = rest.trim_start().starts_with('(');
    let callee = operands.get(usize::from(has_results));
    match (callee, depth > 0) {
        (Some(callee), true) => Part::Argument(callee, lists),
        (Some(_), false) => Part::Targets,
        (None, true) => Part::Results,
        (None, false) => Part::Callee { has_results },
    }
}

/// The callee and the index of its parameter at the end of `rest`, the text after `call`.
pub(in crate::ide) fn argument(rest: &str) -> Option<(&str, usize)> {
    match part(rest) {
        Part::Argument(callee, index) => Some((callee, index)),
        _ => None,
    }
}

/// Offers completions for the end of `rest`, the text after `call`.
pub(super) fn names(
    out: &mut Collector,
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    offset: TextSize,
    rest: &str,
) {
    let here = offset - item.offset(db);
    let functions = &module(db, file).env.functions;
    match part(rest) {
        Part::Callee { has_results } => {
            self::functions(out, db, file, |function| !has_results || !function.returns.is_empty());
            // The address of a function.
            let address = OperandPlace::of("mov.b64", "%rd0, ");
            registers(out, &lower(db, item).map, item.text(db), here, &address, 2);
        }
        Part::Results => parameters(out, db, item, here, None),
        Part::Argument(callee, index) => {
            let function = functions.iter().find(|function| function.name == callee);
            parameters(out, db, item, here, function.and_then(|function| function.params.get(index)));
        }
        Part::Targets => targets(out, db, item, here),
    }
}

/// Device functions, those that fit first.
pub(super) fn functions(
    out: &mut Collector,
    db: &dyn Db,
    file: SourceFile,
    fits: impl Fn(&Signature) -> bool,
) {
    for function in module(db, file).env.functions.iter().filter(|function| !function.entry) {
        let rank = Rank::legal(true, u32::from(!fits(function)), 0);
        out.add(rank, &function.name, CompletionKind::Function, describe(function));
    }
}

/// Target lists and prototypes, which state the possible targets of a call through a register.
fn targets(out: &mut Collector, db: &dyn Db, item: Item<'_>, here: TextSize) {
    let (map, text) = (&lower(db, item).map, item.text(db));
    for declaration in map.declarations.iter().filter(|found| found.visible.contains_inclusive(here)) {
        let detail = match declaration.kind {
            DeclKind::Targets(_) => "possible targets",
            DeclKind::Prototype(_) => "prototype",
            _ => continue,
        };
        let rank = Rank::legal(true, 0, distance(declaration.range.start(), here));
        out.add(rank, &text[declaration.range], CompletionKind::Label, detail.to_owned());
    }
}

/// `(.f32 x) returns .f32`
pub(super) fn describe(function: &Signature) -> String {
    let list = |all: &[Param]| {
        let one = |param: &Param| format!(".{} {}", param.ty.text(), param.name);
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let params = format!("({})", list(&function.params));
    match &function.returns[..] {
        [] => params,
        [only] => format!("{params} returns .{}", only.ty.text()),
        all => format!("{params} returns ({})", list(all)),
    }
}

/// `.param` variables of the body, and registers; those of the required type first.
fn parameters(out: &mut Collector, db: &dyn Db, item: Item<'_>, here: TextSize, wanted: Option<&Param>) {
    let (map, text) = (&lower(db, item).map, item.text(db));
    for declaration in map.declarations.iter().filter(|found| found.visible.contains_inclusive(here)) {
        let DeclKind::Symbol(ptx_backend::input::Symbol::Local(_)) = declaration.kind else { continue };
        let written = as_written(text, declaration.range);
        if written.split(['.', ' ', '\t', '\n']).find_map(Space::parse) != Some(Space::Param) {
            continue;
        }
        let fits = wanted.is_none_or(|param| {
            let is_array = param.size > param.ty.bytes();
            written_type(written).is_some_and(|ty| ty.bits() == param.ty.bits())
                && is_array == written.contains('[')
        });
        let group = if fits { 0 } else { 2 };
        let rank = Rank::legal(true, group, distance(declaration.range.start(), here));
        out.add(rank, &text[declaration.range], CompletionKind::Parameter, written.to_owned());
    }
    let name = wanted.map_or_else(|| "mov".to_owned(), |param| register_move(param.ty));
    registers(out, map, text, here, &OperandPlace::of(&name, "%r0, "), 1);
}

/// An instruction that reads a register of a type.
fn register_move(ty: ScalarType) -> String {
    match ty.bits() {
        8 => "mov.b16".to_owned(),
        _ => format!("mov.{}", ty.text()),
    }
}
