//! Completion of operands: names of the right type first, and among these the nearest first.

use ptx_backend::input::Symbol;
use ptx_isa::{Class, Expected, ExpectedType, Opcode, Role, ScalarType, Space, SpecialReg, TypeKind};
use text_size::TextSize;

use super::call::describe;
use super::{Collector, Rank};
use crate::check::types::takes_register;
use crate::db::{Db, SourceFile};
use crate::ide::CompletionKind;
use crate::ide::hover::{as_written, describe_variable};
use crate::items::Item;
use crate::lower::lower;
use crate::module::module;
use crate::scope::{DeclKind, Entity};
use crate::source_map::{SourceMap, Usage};

/// The operand at the cursor.
pub(super) struct OperandPlace {
    /// The instruction and the table row of the operand; `None` if the name is not complete.
    known: Option<(Opcode, Expected)>,
    within: Within,
    /// Whether the operand is an address without brackets so far.
    lacks_brackets: bool,
    /// Whether the cursor is after the `|` of a pair, whose second part is a predicate.
    is_second: bool,
    /// Whether the cursor is after an operator, where only constants are allowed.
    is_constant: bool,
    /// The start of the statement in the item.
    statement: Option<TextSize>,
}

/// The innermost bracket around the cursor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Address,
    Vector,
    List,
}

impl OperandPlace {
    /// The predicate of a guard.
    pub(super) fn guard() -> Self {
        let known = ptx_isa::resolve("not", &["pred"]).ok().and_then(|opcode| {
            let operand = ptx_isa::signature(&opcode).operands.first()?.clone();
            // A guard is read.
            Some((opcode, Expected { role: Role::Source, ..operand }))
        });
        Self {
            known,
            within: Within::Nothing,
            lacks_brackets: false,
            is_second: false,
            is_constant: false,
            statement: None,
        }
    }

    /// The operand at the end of `rest`, the text after a name.
    pub(super) fn of(name: &str, rest: &str) -> Self {
        let (mut open, mut index) = (Vec::new(), 0);
        for byte in rest.bytes() {
            match byte {
                b'(' | b'[' | b'{' => open.push(byte),
                b')' | b']' | b'}' => drop(open.pop()),
                b',' if open.is_empty() => index += 1,
                _ => {}
            }
        }
        let within = match open.last() {
            None => Within::Nothing,
            Some(b'[') => Within::Address,
            Some(b'{') => Within::Vector,
            Some(_) => Within::List,
        };
        let mut words = name.split('.');
        let mnemonic = words.next().unwrap_or_default();
        let known = match ptx_isa::resolve(mnemonic, &words.collect::<Vec<_>>()) {
            Ok(opcode) => {
                ptx_isa::signature(&opcode).operands.get(index).cloned().map(|operand| (opcode, operand))
            }
            Err(_) => None,
        };
        let last = rest.rsplit(',').next().unwrap_or_default();
        let is_second = within == Within::Nothing && last.contains('|');
        let is_address = known.as_ref().is_some_and(|(_, operand)| operand.documented() == Class::ADDRESS);
        let lacks_brackets = is_address && within == Within::Nothing;
        let within = if lacks_brackets { Within::Address } else { within };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
        let is_constant = last.trim_end_matches(is_name).trim_end().ends_with(['+', '-', '*', '/', '~']);
        Self { known, within, lacks_brackets, is_second, is_constant, statement: None }
    }

    /// The same, in a statement that starts at this offset of its item.
    pub(super) fn in_statement(self, start: TextSize) -> Self {
        Self { statement: Some(start), ..self }
    }

    fn takes(&self, class: Class) -> bool {
        let Some((_, operand)) = &self.known else { return true };
        let documented = operand.documented();
        self.within != Within::Nothing || documented == Class::NONE || documented.intersects(class)
    }

    /// The state space of an address, if the name states it.
    fn space(&self) -> Option<Space> {
        let (_, operand) = self.known.as_ref()?;
        match operand.ty {
            ExpectedType::Address(target) | ExpectedType::AddressOf(_, target)
                if self.within == Within::Address && target.space != Space::Generic =>
            {
                Some(target.space)
            }
            _ => None,
        }
    }

    /// How well a register of a type fits: smaller is better; `None` if it is not allowed.
    fn register(&self, found: ScalarType) -> Option<u32> {
        let Some((opcode, operand)) = &self.known else {
            return Some(u32::from(found == ScalarType::Pred));
        };
        let is_integer = matches!(found.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
        if self.within == Within::Address {
            let is_window =
                matches!(self.space(), Some(Space::Shared | Space::Local | Space::Const | Space::Param));
            return match (is_integer, found.bits()) {
                // Most parameters are accessed by name.
                (true, bits) if self.space() == Some(Space::Param) => Some(if bits == 64 { 2 } else { 3 }),
                (true, 64) => Some(u32::from(is_window)),
                (true, 32) => Some(u32::from(!is_window)),
                _ => None,
            };
        }
        if self.is_second {
            return (found == ScalarType::Pred).then_some(0);
        }
        // `mov` packs and unpacks halves or quarters.
        if self.within == Within::Vector && opcode.form.mnemonic() == "mov" {
            let ExpectedType::Typed(whole) = operand.ty else { return None };
            let is_data = found != ScalarType::Pred && found.bits() > 0;
            return [2, 4]
                .into_iter()
                .position(|n| is_data && found.bits() * n == whole.bits())
                .map(|i| i as u32);
        }
        let classes = Class::REGISTER.or(Class::PREDICATE).or(Class::ANY_PAIR);
        if self.within == Within::Nothing && !self.takes(classes) {
            return None;
        }
        // The second part of a pair, after `|`, is a predicate.
        let is_untyped = matches!(operand.ty, ExpectedType::Free);
        if !takes_register(opcode, operand, found) || found == ScalarType::Pred && is_untyped {
            return None;
        }
        Some(match operand.ty {
            ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) | ExpectedType::OrDescriptor(ty)
                if ty.bits() != found.bits() =>
            {
                2
            }
            ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) | ExpectedType::OrDescriptor(ty) => {
                // Compilers keep integers in untyped registers.
                let is_common = found.kind() == TypeKind::Bits && ty.kind() != TypeKind::Float;
                u32::from(ty != found && !is_common)
            }
            _ => 0,
        })
    }

    /// The type of the memory at an address.
    fn accessed(&self) -> Option<ScalarType> {
        match self.known.as_ref()?.1.ty {
            ExpectedType::AddressOf(ty, _) => Some(ty),
            _ => self.known.as_ref().and_then(|(opcode, _)| {
                let value = ptx_isa::signature(opcode).operands;
                value.iter().find_map(|operand| match operand.ty {
                    ExpectedType::Typed(ty) => Some(ty),
                    _ => None,
                })
            }),
        }
    }

    fn is_written(&self) -> bool {
        let is_destination =
            self.known.as_ref().is_some_and(|(_, operand)| operand.role == Role::Destination);
        is_destination && self.within != Within::Address
    }

    fn stores(&self) -> bool {
        self.known.as_ref().is_some_and(|(opcode, _)| opcode.form.mnemonic() == "st")
    }

    fn takes_label(&self, class: Class) -> bool {
        self.within == Within::Nothing && self.known.is_some() && self.takes(class)
    }

    /// Whether names of variables, parameters and functions are allowed.
    pub(super) fn takes_symbols(&self) -> bool {
        self.within != Within::Vector
            && self.takes(Class::SYMBOL.or(Class::ADDRESS).or(Class::TEXTURE).or(Class::LIST))
    }

    /// The group of variables and functions, which stand for their addresses.
    fn of_address(&self) -> u32 {
        let is_wide = self.known.as_ref().is_some_and(|(_, operand)| match operand.ty {
            ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) => ty.bits() == 64,
            _ => false,
        });
        if is_wide && self.within == Within::Nothing { ADDRESS } else { OTHER }
    }

    fn takes_specials(&self) -> bool {
        self.within == Within::Nothing && self.takes(Class::SPECIAL)
    }
}

/// The kinds of names, in the order in which they are offered.
const FITTING: u32 = 0;
/// Variables and functions where their addresses fit.
const ADDRESS: u32 = 7;
const SPECIAL: u32 = 8;
const OTHER: u32 = 9;
/// Special registers of another width.
const OTHER_SPECIAL: u32 = 10;

/// The maximum number of registers of one range that are offered although the function does not mention them.
const UNUSED: usize = 32;
/// The maximum number of registers that are offered because they are mentioned.
const MENTIONED: usize = 512;

/// Offers all names that can be the operand.
pub(super) fn names(
    out: &mut Collector,
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    offset: TextSize,
    place: &OperandPlace,
) {
    if place.is_constant {
        return;
    }
    let here = offset - item.offset(db);
    out.in_brackets = place.lacks_brackets;
    registers(out, &lower(db, item).map, item.text(db), here, place, FITTING);
    locals(out, db, item, here, place);
    if place.takes_symbols() {
        module_names(out, db, file, place);
    }
    special_registers(out, place);
}

/// Special registers; those with the operand's width come first.
pub(super) fn special_registers(out: &mut Collector, place: &OperandPlace) {
    if !place.takes_specials() {
        return;
    }
    for (i, register) in SpecialReg::ALL.iter().enumerate() {
        let wanted = place.known.as_ref().is_none_or(|(_, operand)| match operand.ty {
            ExpectedType::Typed(ty) => ty.bits() == register.ty().bits(),
            _ => true,
        });
        let rank = Rank::legal(true, if wanted { SPECIAL } else { OTHER_SPECIAL }, i as u32);
        out.add(rank, register.text(), CompletionKind::SpecialRegister, register.about().to_owned());
    }
}

/// The distance in bytes between a position and the cursor; text after the cursor counts as farther.
pub(super) fn distance(at: TextSize, here: TextSize) -> u32 {
    if at <= here { u32::from(here - at) } else { u32::from(at - here).saturating_mul(4) }
}

/// Registers that can be used at a position, in groups from `first` on.
pub(super) fn registers(
    out: &mut Collector,
    map: &SourceMap,
    text: &str,
    here: TextSize,
    place: &OperandPlace,
    first: u32,
) {
    let is_visible = |id: usize| {
        let declaration = &map.declarations[id];
        declaration.visible.contains_inclusive(here) && !declaration.range.is_empty()
    };
    // The mention nearest to the cursor, except the word that is being typed.
    let mut nearest: Vec<Option<u32>> = vec![None; map.registers.len()];
    let mut has_value = vec![false; map.registers.len()];
    let statement = place.statement.unwrap_or(here);
    for occurrence in &map.occurrences {
        if let Entity::Register(register) = occurrence.entity
            && occurrence.range.end() != here
            && let Some(known) = nearest.get_mut(register.0 as usize)
        {
            // The result of a statement is nearer than its operands, because the next statements use it.
            let is_result = occurrence.access == Usage::Write && occurrence.range.end() < statement;
            let end = || map.statement(map.statement_at(occurrence.range.start())?).map(|range| range.end());
            let at = if is_result { end().filter(|&end| end <= here) } else { None };
            let distance = distance(at.unwrap_or(occurrence.range.start()), here);
            *known = Some(known.map_or(distance, |known| known.min(distance)));
            let is_write = matches!(occurrence.access, Usage::Write | Usage::ReadWrite);
            has_value[register.0 as usize] |= is_write && occurrence.range.start() < statement;
        }
    }
    let mut mentioned: Vec<(u32, usize, u32)> = Vec::new();
    for (index, register) in map.registers.iter().enumerate() {
        if let Some(distance) = nearest[index]
            && register.lane == 0
            && let Some(fit) = place.register(register.ty)
            && is_visible(register.declaration.0 as usize)
        {
            mentioned.push((distance, index, fit));
        }
    }
    mentioned.sort_unstable();
    let is_written = place.is_written();
    for (order, &(_, index, fit)) in mentioned.iter().take(MENTIONED).enumerate() {
        let register = &map.registers[index];
        let name = &text[map.declarations[register.declaration.0 as usize].range];
        let number = register.number.map_or(String::new(), |number| number.to_string());
        // A destination is usually a new register; a source has been written before.
        let order = match is_written {
            true => order as u32 + 1,
            false => u32::from(!has_value[index]) << 15 | order as u32,
        };
        let rank = Rank::legal(true, first + fit, order);
        let detail = format!(".{}", register.ty.text());
        out.add(rank, &format!("{name}{number}"), CompletionKind::Register, detail);
    }
    for (id, declaration) in map.declarations.iter().enumerate() {
        let DeclKind::Register { ty, count, .. } = declaration.kind else { continue };
        let Some(fit) = place.register(ty).filter(|_| is_visible(id)) else { continue };
        let of_declaration = mentioned.iter().map(|&(_, index, _)| &map.registers[index]);
        let mut own = of_declaration.filter(|register| register.declaration.0 as usize == id);
        let name = &text[declaration.range];
        let unused = match count {
            None if own.next().is_some() => Vec::new(),
            None => vec![String::new()],
            Some(count) => unused(own.filter_map(|register| register.number).collect(), count),
        };
        for (order, number) in unused.into_iter().enumerate() {
            let within = if is_written && order == 0 { 0 } else { 1 << 16 | order as u32 };
            let detail = format!(".{}, not used yet", ty.text());
            let rank = Rank::legal(true, first + fit, within);
            out.add(rank, &format!("{name}{number}"), CompletionKind::Register, detail);
        }
    }
}

/// The lowest unused numbers of a range. Zero comes last, because compilers count from one.
fn unused(mut taken: Vec<u32>, count: u32) -> Vec<String> {
    taken.sort_unstable();
    let has_zero = taken.first() == Some(&0);
    let mut taken = taken.into_iter().skip(usize::from(has_zero)).peekable();
    let mut free: Vec<u32> =
        (1..count).filter(|number| taken.next_if_eq(number).is_none()).take(UNUSED).collect();
    free.extend((!has_zero && count > 0).then_some(0));
    free.into_iter().map(|number| number.to_string()).collect()
}

/// Labels, parameters, local variables and lists.
fn locals(out: &mut Collector, db: &dyn Db, item: Item<'_>, here: TextSize, place: &OperandPlace) {
    let (map, text) = (&lower(db, item).map, item.text(db));
    let item_is_kernel = item.text(db).split('(').next().is_some_and(|heading| heading.contains(".entry"));
    let visible =
        map.declarations.iter().filter(|d| d.visible.contains_inclusive(here) && !d.range.is_empty());
    for declaration in visible {
        let name = &text[declaration.range];
        let near = distance(declaration.range.start(), here);
        let rank = |group| Rank::legal(true, group, near);
        match declaration.kind {
            DeclKind::Register { .. } => {}
            DeclKind::Label(_) if !place.takes_label(Class::LABEL) => {}
            DeclKind::Targets(_) if !place.takes_label(Class::BRANCH_TARGETS) => {}
            // Only calls name them.
            DeclKind::Prototype(_) => {}
            DeclKind::Symbol(_) if !place.takes_symbols() => {}
            DeclKind::Label(_) => {
                out.add(rank(FITTING), name, CompletionKind::Label, "label".to_owned());
            }
            DeclKind::Targets(_) => {
                out.add(rank(FITTING), name, CompletionKind::Label, "possible targets".to_owned());
            }
            DeclKind::Symbol(symbol) => {
                let written = as_written(text, declaration.range);
                let kind = match symbol {
                    Symbol::Param(_) | Symbol::Return(_) => CompletionKind::Parameter,
                    _ => CompletionKind::Variable,
                };
                let space = written.split(['.', ' ', '\t', '\n']).find_map(Space::parse);
                let is_of_kernel = item_is_kernel && matches!(symbol, Symbol::Param(_));
                if is_of_kernel && place.stores() {
                    continue;
                }
                let Some(group) = of_space(place, space) else { continue };
                let wanted = place.accessed().filter(|_| space == Some(Space::Param));
                let Some((wanted, found)) = wanted.zip(written_type(written)) else {
                    out.add(rank(group), name, kind, written.to_owned());
                    continue;
                };
                // Parameters are usually loaded in order, each once.
                let is_like =
                    |a: ScalarType, b: ScalarType| a.kind() == b.kind() || a.kind() == TypeKind::Bits;
                let fit =
                    match (wanted.bits() == found.bits(), is_like(wanted, found) || is_like(found, wanted)) {
                        (true, true) => 0,
                        (true, false) => 1,
                        (false, _) => 2,
                    };
                let entity = Entity::Symbol(symbol);
                let is_used = map.occurrences.iter().any(|other| {
                    other.entity == entity && other.access != Usage::Declaration && other.range.end() != here
                });
                let within =
                    u32::from(is_used) << 28 | fit << 26 | u32::from(declaration.range.start()).min(1 << 25);
                out.add(
                    Rank::legal(true, group + u32::from(fit > 0), within),
                    name,
                    kind,
                    written.to_owned(),
                );
            }
        }
    }
}

/// The type in the text of a declaration.
pub(super) fn written_type(written: &str) -> Option<ScalarType> {
    written.split(['.', ' ', '\t', '\n']).find_map(ScalarType::parse)
}

/// The group of a variable in a state space; `None` if it is not allowed.
fn of_space(place: &OperandPlace, space: Option<Space>) -> Option<u32> {
    match (place.space(), space) {
        (Some(wanted), Some(space)) => (wanted == space).then_some(FITTING),
        // Generic addresses of these variables are computed by `cvta`.
        (None, Some(Space::Global)) if place.within == Within::Address => Some(FITTING),
        _ => Some(place.of_address()),
    }
}

/// Variables and functions of the module.
pub(super) fn module_names(out: &mut Collector, db: &dyn Db, file: SourceFile, place: &OperandPlace) {
    let env = &module(db, file).env;
    for variable in &env.variables {
        if let Some(group) = of_space(place, Some(variable.space)) {
            let rank = Rank::legal(true, group, 1 << 15);
            out.add(rank, &variable.name, CompletionKind::Variable, describe_variable(variable));
        }
    }
    if place.within == Within::Address && place.known.is_some() {
        return;
    }
    for function in env.functions.iter().filter(|function| !function.entry) {
        let rank = Rank::legal(true, place.of_address(), 1 << 17);
        let detail = describe(function);
        out.add(rank, &function.name, CompletionKind::Function, detail);
    }
}
