//! Fixes of register declarations: missing declarations, and declarations whose type does not fit the uses.

use std::collections::{BTreeMap, BTreeSet};

use ptx_isa::{Class, Expected, ExpectedLanes, ExpectedType, Role, ScalarType, Signature, TypeKind};
use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode};
use text_size::{TextRange, TextSize};

use super::{item_of, name_words, node_at, token_at};
use crate::check::bind;
use crate::check::lints::{UNDEFINED_REGISTER, UNDEFINED_SYMBOL};
use crate::check::types::OPERAND_TYPE;
use crate::db::{Db, SourceFile};
use crate::diagnostic::{Applicability, Diagnostic, TextEdit};
use crate::items::Item;
use crate::lower::source_map;
use crate::scope::{DeclKind, Declaration, Entity, split_number};
use crate::source_map::Usage;

/// The requirements of the uses of an undeclared register.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// `None` if the type is unknown.
    ty: Option<ScalarType>,
    /// Some instruction writes it.
    written: bool,
    /// No register satisfies all uses.
    contradictory: bool,
}

impl Wanted {
    const UNKNOWN: Wanted = Wanted { ty: None, written: false, contradictory: false };

    /// The combined requirements of two uses.
    fn and(self, other: Self) -> Self {
        let ty = match (self.ty, other.ty) {
            (Some(one), Some(other)) => both(one, other),
            (one, other) => one.or(other),
        };
        let contradictory = ty.is_none() && self.ty.is_some();
        Self {
            ty,
            written: self.written || other.written,
            contradictory: contradictory || self.contradictory || other.contradictory,
        }
    }
}

/// The undeclared registers of a file.
#[derive(Default)]
pub(super) struct Registers {
    /// By the offset of the item and the name.
    undeclared: BTreeMap<(TextSize, String), Wanted>,
    /// Registers whose names differ only in their number, by the offset of the item and the rest of the name.
    families: BTreeMap<(TextSize, String), Family>,
    /// The highest used number of each declared range, by the offset of the range in the file.
    highest: BTreeMap<TextSize, u32>,
}

/// Registers such as `%r1` and `%r7`, which are declared together.
struct Family {
    wanted: Wanted,
    numbers: BTreeSet<u32>,
}

/// The number of registers by which a range may certainly be extended.
const NEAR: u32 = 64;

impl Registers {
    /// Records a finding before any finding is completed, because all uses of a register determine its type.
    pub(super) fn collect(&mut self, db: &dyn Db, file: SourceFile, diagnostic: &Diagnostic) {
        if !is_undeclared(diagnostic) {
            return;
        }
        let Some((item, range)) = item_of(db, file, diagnostic.range) else { return };
        let name = &item.text(db)[range];
        let here = use_at(db, item, range.start()).unwrap_or(Wanted::UNKNOWN);
        let wanted = self.undeclared.entry((item.offset(db), name.to_owned())).or_insert(here);
        *wanted = wanted.and(here);
        if let Some((prefix, number)) = split_number(name) {
            let empty = Family { wanted: Wanted::UNKNOWN, numbers: BTreeSet::new() };
            let family = self.families.entry((item.offset(db), prefix.to_owned())).or_insert(empty);
            family.wanted = family.wanted.and(here);
            family.numbers.insert(number);
        }
        if let Some((declaration, number)) = range_of(db, item, name, range) {
            let highest = self.highest.entry(declaration.range.start() + item.offset(db)).or_default();
            *highest = number.max(*highest);
        }
    }

    pub(super) fn complete(&self, db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
        if is_undeclared(diagnostic) {
            self.declare(db, file, diagnostic);
        } else if diagnostic.lint == &OPERAND_TYPE
            && diagnostic.fixes.iter().all(|fix| fix.applicability != Applicability::MachineApplicable)
        {
            retype(db, file, diagnostic);
        }
    }

    fn declare(&self, db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
        let Some((item, range)) = item_of(db, file, diagnostic.range) else { return };
        let name = &item.text(db)[range];
        let Some(wanted) = self.undeclared.get(&(item.offset(db), name.to_owned())) else { return };
        // A similar name is the intended one only if its register is allowed here.
        let here = use_at(db, item, range.start()).and_then(|here| here.ty);
        diagnostic.fixes.retain(|fix| {
            let near = fix.edits.first().and_then(|edit| type_of_name(db, item, &edit.text, range));
            near.zip(here).is_none_or(|(near, here)| holds(near, here))
        });
        let Some(ty) = wanted.ty.filter(|_| !wanted.contradictory) else { return };
        if let Some((declaration, number)) = range_of(db, item, name, range)
            && let DeclKind::Register { ty: declared, count: Some(count), .. } = declaration.kind
        {
            let place = declaration.range + item.offset(db);
            let prefix = &item.text(db)[declaration.range];
            diagnostic
                .relate(place, format!("last register of `{prefix}<{count}>` is `{prefix}{}`", count - 1));
            let needed = self.highest.get(&place.start()).copied().unwrap_or(number).saturating_add(1);
            if holds(declared, ty)
                && let Some(length) = length_of(db, item, declaration)
            {
                let is_sure = wanted.written && needed <= count.saturating_add(NEAR);
                let title = format!("change the declaration to `{prefix}<{needed}>`");
                let edits = vec![TextEdit::new(length + item.offset(db), needed.to_string())];
                diagnostic.offer(title, edits, applicability(is_sure));
                return;
            }
        }
        // A name without `%` may as well be that of a variable.
        if diagnostic.lint == &UNDEFINED_SYMBOL && !wanted.written {
            return;
        }
        // A placeholder of inline assembly.
        if name.starts_with('$') {
            return;
        }
        let Some((at, indent)) = start_of_body(db, item) else { return };
        let declaration = match self.family(db, item, name) {
            Some((prefix, count, ty)) => format!(".reg .{} {prefix}<{count}>;", ty.text()),
            None => format!(".reg .{} {name};", ty.text()),
        };
        // A name that is similar to another one may be misspelled.
        let is_sure = wanted.written && diagnostic.fixes.is_empty() && diagnostic.lint == &UNDEFINED_REGISTER;
        let text = format!("{indent}{declaration}");
        let edits = vec![TextEdit::new(TextRange::empty(at + item.offset(db)), text)];
        let title = format!("insert the declaration `{declaration}`");
        diagnostic.offer(title, edits, applicability(is_sure));
    }
}

impl Registers {
    /// The range that declares a name together with others of an item: its name, length and type.
    fn family<'n>(&self, db: &dyn Db, item: Item<'_>, name: &'n str) -> Option<(&'n str, u32, ScalarType)> {
        let (prefix, _) = split_number(name)?;
        let family = self.families.get(&(item.offset(db), prefix.to_owned()))?;
        let highest = *family.numbers.last()?;
        let text = item.text(db);
        let is_taken = source_map(db, item).declarations.iter().any(|declaration| {
            let name = &text[declaration.range];
            name == prefix || split_number(name).is_some_and(|(other, _)| other == prefix)
        });
        let fits = !family.wanted.contradictory && !is_taken && family.numbers.len() > 1 && highest < LONGEST;
        Some((prefix, highest + 1, family.wanted.ty?)).filter(|_| fits)
    }
}

/// The longest range that is proposed.
const LONGEST: u32 = 10_000;

/// The declared type of a register that is visible at a position.
fn type_of_name(db: &dyn Db, item: Item<'_>, name: &str, place: TextRange) -> Option<ScalarType> {
    let text = item.text(db);
    let found = source_map(db, item).declarations.iter().rev().find(|declaration| {
        let declared = &text[declaration.range];
        let is_named = match declaration.kind {
            DeclKind::Register { count: Some(count), .. } => {
                split_number(name).is_some_and(|(prefix, number)| prefix == declared && number < count)
            }
            _ => declared == name,
        };
        is_named && declaration.visible.contains_range(place)
    })?;
    match found.kind {
        DeclKind::Register { ty, .. } => Some(ty),
        _ => None,
    }
}

fn applicability(is_sure: bool) -> Applicability {
    if is_sure { Applicability::MachineApplicable } else { Applicability::MaybeIncorrect }
}

fn is_undeclared(diagnostic: &Diagnostic) -> bool {
    diagnostic.lint == &UNDEFINED_REGISTER || diagnostic.lint == &UNDEFINED_SYMBOL
}

/// The type of a register with both uses: the common type, or untyped bits.
fn both(one: ScalarType, other: ScalarType) -> Option<ScalarType> {
    match (one, other) {
        _ if one == other => Some(one),
        (ScalarType::Pred, _) | (_, ScalarType::Pred) => None,
        _ if one.bits() == other.bits() => untyped(one.bits()),
        _ => None,
    }
}

/// Whether a register of one declared type can be used where another type would be declared.
fn holds(declared: ScalarType, wanted: ScalarType) -> bool {
    let is_untyped = |ty: ScalarType| ty.kind() == TypeKind::Bits;
    let is_integer = matches!(declared.kind(), TypeKind::Unsigned | TypeKind::Signed);
    let fits = is_untyped(declared) || is_integer && is_untyped(wanted);
    declared == wanted || wanted != ScalarType::Pred && declared.bits() == wanted.bits() && fits
}

fn untyped(bits: u32) -> Option<ScalarType> {
    Some(match bits {
        0..=16 => ScalarType::B16,
        32 => ScalarType::B32,
        64 => ScalarType::B64,
        128 => ScalarType::B128,
        _ => return None,
    })
}

/// The type with which a register for values of an instruction type is declared.
fn declarable(ty: ScalarType) -> Option<ScalarType> {
    match ty {
        ScalarType::Pred | ScalarType::F32 | ScalarType::F64 => Some(ty),
        _ => untyped(ty.bits()),
    }
}

/// The range `%r<4>` that a name such as `%r7` exceeds, and the number.
fn range_of<'db>(
    db: &'db dyn Db,
    item: Item<'db>,
    name: &str,
    place: TextRange,
) -> Option<(&'db Declaration, u32)> {
    let (prefix, number) = split_number(name)?;
    let text = item.text(db);
    let declarations = &source_map(db, item).declarations;
    let found = declarations.iter().rev().find(|declaration| {
        matches!(declaration.kind, DeclKind::Register { count: Some(count), .. } if count > 0 && number >= count)
            && &text[declaration.range] == prefix
            && declaration.visible.contains_range(place)
    })?;
    Some((found, number))
}

/// The number between the angle brackets of a range.
fn length_of(db: &dyn Db, item: Item<'_>, declaration: &Declaration) -> Option<TextRange> {
    let declarator = node_at(db, item, declaration.range.start(), SyntaxKind::DECLARATOR)?;
    let range = declarator.children().find(|child| child.kind() == SyntaxKind::REGISTER_RANGE)?;
    let mut tokens = range.descendants_with_tokens().filter_map(NodeOrToken::into_token);
    tokens.find(|token| token.kind() == SyntaxKind::INT).map(|token| token.text_range())
}

/// The offset where a declaration is visible to the whole function, and the blanks before it there.
fn start_of_body(db: &dyn Db, item: Item<'_>) -> Option<(TextSize, String)> {
    let start = crate::heading::start_of_body(item.text(db))?;
    let behind = &item.text(db)[start.into()..];
    let blanks = &behind[..behind.len() - behind.trim_ascii_start().len()];
    let indent = blanks.rsplit_once('\n').map(|(_, indent)| indent);
    Some((start, indent.map_or(" ".to_owned(), |indent| format!("\n{indent}"))))
}

/// The requirements of the instruction around a name.
fn use_at(db: &dyn Db, item: Item<'_>, offset: TextSize) -> Option<Wanted> {
    let name = token_at(db, item, offset)?.parent()?;
    let written = |ty, row: &Expected| Wanted { ty, written: row.role != Role::Source, ..Wanted::UNKNOWN };
    let read = |ty| Some(Wanted { ty: Some(ty), ..Wanted::UNKNOWN });
    let (mut inside, mut at) = (None, name);
    loop {
        let parent = at.parent()?;
        match parent.kind() {
            SyntaxKind::GUARD | SyntaxKind::PREFIX_EXPR => return read(ScalarType::Pred),
            SyntaxKind::INSTRUCTION => {
                let operand = at;
                let row = row_of(&parent, &operand, item.text(db))?;
                return match inside {
                    Some(Inside::Address) => read(address(&row)),
                    Some(Inside::Second) => Some(written(Some(ScalarType::Pred), &row)),
                    Some(Inside::Vector(count)) => Some(written(element(&row, count), &row)),
                    None => Some(written(whole(&row), &row)),
                };
            }
            SyntaxKind::VECTOR => inside = Some(Inside::Vector(parent.children().count() as u32)),
            SyntaxKind::ADDRESS if inside.is_none() => inside = Some(Inside::Address),
            SyntaxKind::PAIR if parent.children().next().as_ref() != Some(&at) => {
                inside = Some(Inside::Second)
            }
            SyntaxKind::ADDRESS | SyntaxKind::PAIR | SyntaxKind::BINARY_EXPR => {}
            _ => return None,
        }
        at = parent;
    }
}

/// The context of a name in an operand.
#[derive(Clone, Copy)]
enum Inside {
    /// `[a]`
    Address,
    /// `d|p`: the second.
    Second,
    /// An element of a vector with the given number of elements.
    Vector(u32),
}

/// The row of an operand of an instruction.
fn row_of(instruction: &SyntaxNode, operand: &SyntaxNode, text: &str) -> Option<Expected> {
    let words = name_words(instruction, text);
    let (mnemonic, suffixes) = words.split_first()?;
    let signature: Signature = ptx_isa::signature(&ptx_isa::resolve(mnemonic, suffixes).ok()?);
    let operands: Vec<SyntaxNode> = instruction
        .children()
        .filter(|child| !matches!(child.kind(), SyntaxKind::GUARD | SyntaxKind::BANK))
        .collect();
    let index = operands.iter().position(|other| other == operand)?;
    let unknown = vec![None; operands.len()];
    bind(&signature, &unknown, &[])?.get(index).map(|row| (*row).clone())
}

/// The type of the operand if it is one register.
fn whole(row: &Expected) -> Option<ScalarType> {
    match row.ty {
        ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) => declarable(ty),
        ExpectedType::Integer(bits) => untyped(bits),
        ExpectedType::Pointer
        | ExpectedType::Length
        | ExpectedType::OrDescriptor(_)
        | ExpectedType::Address(_) => Some(ScalarType::B64),
        ExpectedType::Word | ExpectedType::Coordinates(..) => Some(ScalarType::B32),
        ExpectedType::Free => None,
    }
}

/// The type of one of `count` elements.
fn element(row: &Expected, count: u32) -> Option<ScalarType> {
    match row.ty {
        // `mov` packs and unpacks: the elements share the bits.
        ExpectedType::Typed(ty) if row.lanes == ExpectedLanes::Any && row.class.intersects(Class::SYMBOL) => {
            untyped(ty.bits().checked_div(count)?)
        }
        ExpectedType::OrDescriptor(ty) => declarable(ty),
        ExpectedType::Address(_) => Some(ScalarType::B32),
        _ => whole(row),
    }
}

/// The type of a register with an address.
fn address(row: &Expected) -> ScalarType {
    let is_tensor = |ty| match ty {
        ExpectedType::Address(target) => target.base.window == ptx_isa::Window::Tensor,
        ExpectedType::Integer(_) => true,
        _ => false,
    };
    if is_tensor(row.ty) { ScalarType::B32 } else { ScalarType::B64 }
}

/// Offers another type for the register of a finding.
fn retype(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    let Some((item, range)) = item_of(db, file, diagnostic.range) else { return };
    let map = source_map(db, item);
    let Some(occurrence) = map.occurrence_at(range.start()).filter(|found| found.range == range) else {
        return;
    };
    let Entity::Register(_) = occurrence.entity else { return };
    let Some(id) = map.declaration_of(occurrence.entity) else { return };
    let declaration = &map.declarations[id.0 as usize];
    let DeclKind::Register { ty: found, .. } = declaration.kind else { return };
    let Some(wanted) = use_at(db, item, range.start()).and_then(|wanted| wanted.ty) else { return };
    let new = match both(found, wanted) {
        Some(untyped) => Some(untyped),
        None => only_use(db, item, declaration, id),
    };
    let Some(new) = new.filter(|&new| new != found) else { return };
    let Some((place, is_alone)) = type_of(db, item, declaration) else { return };
    // An untyped register is accepted wherever a register of its width is, so the other names of the declaration may
    // change too.
    if !is_alone && (new.kind() != TypeKind::Bits || new.bits() != found.bits()) {
        return;
    }
    let name = &item.text(db)[declaration.range];
    let title = format!("declare `{name}` as `.{}`", new.text());
    let edits = vec![TextEdit::new(place + item.offset(db), format!(".{}", new.text()))];
    diagnostic.offer(title, edits, Applicability::MaybeIncorrect);
}

/// The number of uses of a register that are examined: more take too long, and would disagree.
const USES: usize = 64;

/// The type that all uses of a declaration require.
fn only_use(
    db: &dyn Db,
    item: Item<'_>,
    declaration: &Declaration,
    id: crate::scope::DeclId,
) -> Option<ScalarType> {
    let map = source_map(db, item);
    if declaration.range.is_empty() {
        return None;
    }
    let mut uses = map
        .occurrences
        .iter()
        .filter(|o| o.access != Usage::Declaration && map.declaration_of(o.entity) == Some(id));
    let mut all = None;
    for (count, occurrence) in uses.by_ref().enumerate() {
        let here = use_at(db, item, occurrence.range.start())?.ty?;
        all = Some(match all {
            None => here,
            Some(known) => both(known, here)?,
        });
        if count == USES {
            return None;
        }
    }
    all
}

/// The word of a declaration's type, and whether it declares nothing else.
fn type_of(db: &dyn Db, item: Item<'_>, declaration: &Declaration) -> Option<(TextRange, bool)> {
    let statement = node_at(db, item, declaration.range.start(), SyntaxKind::VARIABLE)?;
    let is_alone = statement.children().filter(|child| child.kind() == SyntaxKind::DECLARATOR).count() == 1;
    let mut tokens = statement.children_with_tokens().filter_map(NodeOrToken::into_token);
    let ty = tokens.find(|token| {
        token.kind() == SyntaxKind::DOT_WORD && ScalarType::parse(&token.text()[1..]).is_some()
    })?;
    Some((ty.text_range(), is_alone))
}
