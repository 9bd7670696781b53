//! Tests whether a wrong fact in a row would be noticed.
//!
//! A mutation changes one fact of one row: it adds or removes a modifier, or changes a type, gate, class, range or
//! presence. A mutation is noticed if it changes what [`forms`](super::forms) records about the row. Every run tries a
//! sample of the mutations. `PTX_MUTATIONS=all` tries all of them, and `PTX_MUTATIONS=list` prints those that no test
//! would notice.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::forms::{Digest, combinations, describe_briefly};
use crate::{
    Base, Class, Column, Facts, Form, FormId, Gate, Group, Lanes, Mod, Operand, OperandType, Place, Presence,
    PtxVersion, Role, Rule, ScalarType, Space, TargetSet, Then, TypeSet, Values, When, Window, form,
};

thread_local! {
    static REPLACED: Cell<Option<&'static Form>> = const { Cell::new(None) };
}

/// The mutated row, if it has this id.
pub(crate) fn replacement(id: FormId) -> Option<&'static Form> {
    REPLACED.get().filter(|form| form.id == id)
}

/// A row with one fact changed.
struct Mutation {
    what: String,
    form: Form,
}

fn leak<T>(values: Vec<T>) -> &'static [T] {
    Vec::leak(values)
}

/// The list with another element at `i`.
fn with<T: Copy>(list: &[T], i: usize, element: T) -> &'static [T] {
    let mut list = list.to_vec();
    list[i] = element;
    leak(list)
}

fn without<T: Copy>(list: &[T], i: usize) -> &'static [T] {
    let mut list = list.to_vec();
    list.remove(i);
    leak(list)
}

/// All lists with one element removed, unless this would leave the list empty.
fn shorter<T: Copy>(list: &'static [T]) -> impl Iterator<Item = &'static [T]> {
    (0..list.len()).filter(|_| list.len() > 1).map(|i| without(list, i))
}

fn mutations(form: &'static Form) -> Vec<Mutation> {
    let mut all = Vec::new();
    let mut add = |what: String, form: Form| all.push(Mutation { what, form });
    for gate in gates(form.gate) {
        add(format!("gate {gate:?}"), Form { gate, ..*form });
    }
    for bit in 0..10 {
        let facts = Facts(form.facts.0 ^ 1 << bit);
        add(format!("facts {facts:?}"), Form { facts, ..*form });
    }
    for (i, group) in form.groups.iter().enumerate() {
        for group in groups(form, group) {
            add(format!("group {i}: {group:?}"), Form { groups: with(form.groups, i, group), ..*form });
        }
    }
    for (i, set) in form.types.iter().enumerate() {
        for set in types(*set, TypeSet::ALL) {
            add(format!("types {i}: {set:?}"), Form { types: with(form.types, i, set), ..*form });
        }
    }
    if form.required_types > 0 {
        add("a type less is required".into(), Form { required_types: form.required_types - 1, ..*form });
    }
    for (i, rule) in form.rules.iter().enumerate() {
        add(format!("rule {i} is missing: {rule:?}"), Form { rules: without(form.rules, i), ..*form });
        for rule in rules(form, rule) {
            add(format!("rule {i}: {rule:?}"), Form { rules: with(form.rules, i, rule), ..*form });
        }
    }
    for (i, operand) in form.operands.iter().enumerate() {
        add(format!("operand {i} is missing"), Form { operands: without(form.operands, i), ..*form });
        for operand in operands(operand) {
            let operands = with(form.operands, i, operand);
            add(format!("operand {i}: {operand:?}"), Form { operands, ..*form });
        }
    }
    all
}

/// Gates with a later and an earlier version, with one generation of targets more and less, and without the special
/// cases.
fn gates(gate: Gate) -> Vec<Gate> {
    let PtxVersion { major, minor } = gate.ptx;
    let mut all = vec![Gate { ptx: PtxVersion::new(major, minor + 1), ..gate }];
    if minor > 0 {
        all.push(Gate { ptx: PtxVersion::new(major, minor - 1), ..gate });
    }
    let lowest = gate.targets.lowest().unwrap_or(0);
    let fewer = gate.targets.and(TargetSet::since(lowest + 1));
    all.push(Gate { targets: fewer, ..gate });
    if lowest > 10 {
        all.push(Gate { targets: gate.targets.or(TargetSet::since(lowest - 1)), ..gate });
    }
    if gate.removed.is_some() {
        all.push(Gate { removed: None, ..gate });
    }
    if gate.late.is_some() {
        all.push(Gate { late: None, ..gate });
    }
    all.retain(|mutated| *mutated != gate);
    all
}

fn groups(form: &Form, group: &Group) -> Vec<Group> {
    let mut all = vec![Group { required: !group.required, ..*group }];
    all.extend(shorter(group.names).map(|names| Group { names, ..*group }));
    // A modifier that is nowhere in the row.
    let new = Mod::ALL.iter().find(|m| !form.groups.iter().any(|group| group.contains(**m)));
    if let Some(&new) = new {
        let names = leak(group.names.iter().copied().chain([new]).collect());
        all.push(Group { names, ..*group });
    }
    for place in [Place::Free, Place::Leading, Place::Ordered] {
        // A group that is alone is always in order, and leading if there is nothing else.
        let is_alone = form.groups.len() == 1 && form.types.is_empty();
        let is_same = is_alone
            || place != Place::Leading
                && group.place != Place::Leading
                && form.groups.iter().filter(|g| g.place != Place::Free).count() <= 1;
        if place != group.place && !is_same {
            all.push(Group { place, ..*group });
        }
    }
    all
}

fn both(one: TypeSet, other: TypeSet) -> TypeSet {
    TypeSet(one.0 & other.0)
}

/// The set with one more element of `possible` (at most two such sets), and with each of its elements removed.
fn types(set: TypeSet, possible: TypeSet) -> Vec<TypeSet> {
    let members: Vec<ScalarType> = set.iter().collect();
    let bit = |ty: &ScalarType| 1u64 << (*ty as u8);
    let mut all: Vec<TypeSet> =
        members.iter().filter(|_| members.len() > 1).map(|ty| TypeSet(set.0 & !bit(ty))).collect();
    let new = ScalarType::ALL.iter().filter(|ty| possible.contains(**ty) && !set.contains(**ty)).take(2);
    all.extend(new.map(|ty| TypeSet(set.0 | bit(ty))));
    all
}

fn rules(form: &Form, rule: &Rule) -> Vec<Rule> {
    let mut all: Vec<Rule> = Vec::new();
    // A rule may mention types that the row does not have at this position.
    let possible = |at: usize| form.types.get(at).copied().unwrap_or_default();
    let When { any, and, none, first, second, third } = rule.when;
    all.extend(shorter(any).map(|any| Rule { when: When { any, ..rule.when }, ..*rule }));
    all.extend(shorter(and).map(|and| Rule { when: When { and, ..rule.when }, ..*rule }));
    all.extend((0..none.len()).map(|i| Rule { when: When { none: without(none, i), ..rule.when }, ..*rule }));
    for (i, set) in [first, second, third].into_iter().enumerate() {
        if set != TypeSet::ALL {
            for set in types(both(set, possible(i)), possible(i)) {
                let when = match i {
                    0 => When { first: set, ..rule.when },
                    1 => When { second: set, ..rule.when },
                    _ => When { third: set, ..rule.when },
                };
                all.push(Rule { when, ..*rule });
            }
        }
    }
    let thens: Vec<Then> = match rule.then {
        Then::Types(at, set) => {
            let possible = possible(at.into());
            types(both(set, possible), possible).into_iter().map(|set| Then::Types(at, set)).collect()
        }
        Then::Needs(mods) => shorter(mods).map(Then::Needs).collect(),
        Then::Excludes(mods) => shorter(mods).map(Then::Excludes).collect(),
        Then::SameType(..) => Vec::new(),
        Then::Gate(gate) => gates(gate).into_iter().map(Then::Gate).collect(),
        Then::Operand(name, column) => columns(column).into_iter().map(|c| Then::Operand(name, c)).collect(),
    };
    all.extend(thens.into_iter().map(|then| Rule { then, ..*rule }));
    all
}

fn columns(column: Column) -> Vec<Column> {
    match column {
        Column::Class(class) => classes(class).into_iter().map(Column::Class).collect(),
        Column::Type(ty) => operand_types(ty).into_iter().map(Column::Type).collect(),
        Column::Lanes(lanes) => all_lanes(lanes).into_iter().map(Column::Lanes).collect(),
        Column::Values(values) => all_values(values).into_iter().map(Column::Values).collect(),
        Column::Head(head) => (0..head.len()).map(|i| Column::Head(without(head, i))).collect(),
        Column::Presence(presence) => presences(presence).into_iter().map(Column::Presence).collect(),
        Column::Gate(gate) => gates(gate).into_iter().map(Column::Gate).collect(),
        Column::GatedSink(gate) => gates(gate).into_iter().map(Column::GatedSink).collect(),
        Column::Beside(other, class) => {
            classes(class).into_iter().map(|class| Column::Beside(other, class)).collect()
        }
        Column::Gated(values, gate) => {
            gates(gate).into_iter().map(|gate| Column::Gated(values, gate)).collect()
        }
    }
}

fn operands(row: &Operand) -> Vec<Operand> {
    let mut all: Vec<Operand> = Vec::new();
    for role in [Role::Destination, Role::Source, Role::Both] {
        if role != row.role {
            all.push(Operand { role, ..*row });
        }
    }
    all.extend(classes(row.class).into_iter().map(|class| Operand { class, ..*row }));
    all.extend(operand_types(row.ty).into_iter().map(|ty| Operand { ty, ..*row }));
    if row.class.intersects(Class::VECTOR.or(Class::TEXTURE)) {
        all.extend(all_lanes(row.lanes).into_iter().map(|lanes| Operand { lanes, ..*row }));
    }
    if row.class.intersects(Class::IMMEDIATE) {
        all.extend(all_values(row.values).into_iter().map(|values| Operand { values, ..*row }));
    }
    all.extend((0..row.head.len()).map(|i| Operand { head: without(row.head, i), ..*row }));
    all.extend(presences(row.presence).into_iter().map(|presence| Operand { presence, ..*row }));
    all.extend(gates(row.gate).into_iter().map(|gate| Operand { gate, ..*row }));
    all
}

fn classes(class: Class) -> Vec<Class> {
    (0..14).map(|bit| Class(class.0 ^ 1 << bit)).filter(|class| class.0 != 0).collect()
}

fn operand_types(ty: OperandType) -> Vec<OperandType> {
    use OperandType as T;
    match ty {
        T::Suffix(i) => vec![T::Is(ScalarType::B128), T::IntegerLike(i), T::Free],
        T::Wide(i) => vec![T::Suffix(i)],
        T::Is(found) => {
            let other = if found == ScalarType::U32 { ScalarType::U64 } else { ScalarType::U32 };
            vec![T::Is(other), T::Free]
        }
        T::Integer(bits) => vec![T::Integer(bits * 2), T::Free],
        T::IntegerLike(i) => vec![T::Suffix(i), T::Free],
        T::Address(base) => bases(base).into_iter().map(T::Address).collect(),
        T::AddressOf(i, base) => bases(base).into_iter().map(|base| T::AddressOf(i, base)).collect(),
        T::Free => vec![T::Pointer],
        _ => vec![T::Free],
    }
}

fn bases(base: Base) -> Vec<Base> {
    let mut all = vec![Base { opaque: !base.opaque, ..base }, Base { symbols: !base.symbols, ..base }];
    all.push(Base { variables: if base.variables.is_some() { None } else { Some(Space::Const) }, ..base });
    let window =
        if base.window == Window::In(Space::Local) { Window::Tensor } else { Window::In(Space::Local) };
    all.push(Base { window, ..base });
    all
}

fn all_lanes(lanes: Lanes) -> Vec<Lanes> {
    match lanes {
        Lanes::Any => vec![Lanes::Of(&[3])],
        Lanes::Of(counts) => shorter(counts).map(Lanes::Of).chain([Lanes::Any]).collect(),
        Lanes::Named(factor) => vec![Lanes::Named(factor + 1), Lanes::Any],
        Lanes::OrBare(counts) => shorter(counts).map(Lanes::OrBare).chain([Lanes::Any]).collect(),
        Lanes::Bf16Pair | Lanes::Sparse(_) | Lanes::Fragment(_) => vec![Lanes::Any],
    }
}

fn all_values(values: Values) -> Vec<Values> {
    match values {
        Values::Any => vec![Values::Range(0, 7)],
        Values::Range(from, to) => {
            vec![Values::Range(from, to.wrapping_sub(1)), Values::Range(from + 1, to), Values::Any]
        }
        Values::Low(values) => {
            all_values(*values).into_iter().map(|values| Values::Low(Box::leak(Box::new(values)))).collect()
        }
        Values::Of(all) => shorter(all).map(Values::Of).chain([Values::Any]).collect(),
        Values::Multiple(of, from, to) => {
            vec![Values::Multiple(of * 2, from, to), Values::Multiple(of, from, to - of)]
        }
        Values::Multiples { of, zero } => {
            vec![Values::Multiples { of: of * 2, zero }, Values::Multiples { of, zero: !zero }]
        }
        _ => vec![Values::Any],
    }
}

fn presences(presence: Presence) -> Vec<Presence> {
    match presence {
        Presence::Always => vec![Presence::Optional, Presence::Never],
        Presence::Optional => vec![Presence::Always, Presence::Never],
        Presence::Never => vec![Presence::Always, Presence::Optional],
        Presence::With(mods) => shorter(mods)
            .map(Presence::With)
            .chain([Presence::Always, Presence::OptionalWith(mods)])
            .collect(),
        Presence::Without(mods) => shorter(mods).map(Presence::Without).chain([Presence::Always]).collect(),
        Presence::OptionalWith(mods) => shorter(mods)
            .map(Presence::OptionalWith)
            .chain([Presence::Optional, Presence::With(mods)])
            .collect(),
    }
}

/// The record of a row: its facts and lines, and the digest of all combinations.
struct Record {
    facts: Facts,
    lines: String,
    combinations: Vec<u64>,
}

fn lines(id: FormId) -> String {
    let mut text = String::new();
    describe_briefly(form(id), &mut text);
    text
}

fn digest(outcome: &str) -> u64 {
    let mut digest = Digest::default();
    digest.add(outcome);
    digest.0
}

impl Record {
    fn of(id: FormId) -> Self {
        let mut all = Vec::new();
        combinations(form(id), &mut |outcome| {
            all.push(digest(outcome));
            true
        });
        Self { facts: form(id).facts, lines: lines(id), combinations: all }
    }

    /// Whether the current row has this record. Compares the lines first, because they differ most often, and stops at
    /// the first difference.
    fn is_of(&self, id: FormId) -> bool {
        if self.facts != form(id).facts || self.lines != lines(id) {
            return false;
        }
        let mut recorded = self.combinations.iter();
        let mut is_same = true;
        combinations(form(id), &mut |outcome| {
            is_same &= recorded.next() == Some(&digest(outcome));
            is_same
        });
        is_same && recorded.next().is_none()
    }
}

fn is_caught(mutation: &Mutation, recorded: &Record) -> bool {
    REPLACED.set(Some(Box::leak(Box::new(mutation.form))));
    let is_same = catch_unwind(AssertUnwindSafe(|| recorded.is_of(mutation.form.id)));
    REPLACED.set(None);
    !is_same.unwrap_or(false)
}

#[test]
fn wrong_facts_are_noticed() {
    let asked = std::env::var("PTX_MUTATIONS").unwrap_or_default();
    // A prime number, so that the sample contains every kind of mutation.
    let step = if asked.is_empty() { 53 } else { 1 };
    let mut recorded: BTreeMap<FormId, Record> = BTreeMap::new();
    let (mut made, mut caught) = (0, 0);
    let all = FormId::ALL.iter().flat_map(|&id| mutations(form(id)));
    for mutation in all.step_by(step) {
        let id = mutation.form.id;
        let recorded = recorded.entry(id).or_insert_with(|| Record::of(id));
        let is_caught = is_caught(&mutation, recorded);
        made += 1;
        caught += usize::from(is_caught);
        if !is_caught && asked == "list" {
            println!("{id:?}: {}", mutation.what);
        }
    }
    println!("{caught} of {made} mutations are caught");
    assert!(caught * 100 >= made * 95, "{caught} of {made} mutations are caught");
}
