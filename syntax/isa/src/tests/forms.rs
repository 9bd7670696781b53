//! A record of what the table says about every row: the shortest name of each form with its gate and operands, and
//! every modifier and type that changes one of them or is rejected.
//!
//! The record is `test_data/forms.txt`, and `UPDATE_EXPECT=1` rewrites it. Any changed column, rule or gate shows up in
//! it.

use crate::{
    Class, Expected, ExpectedLanes, ExpectedType, Form, FormId, Gate, Mod, Opcode, Presence, PtxVersion,
    Role, ScalarType, Then, Values, gates, resolve, signature,
};
use std::fmt::Write as _;

#[test]
fn forms_are_as_recorded() {
    let mut found = String::new();
    for &id in FormId::ALL {
        describe(crate::form(id), &mut found);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/test_data/forms.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &found).expect("the record can be written");
    }
    let recorded = std::fs::read_to_string(path).expect("the record is there");
    for (line, (found, recorded)) in found.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(found, recorded, "line {} of forms.txt", line + 1);
    }
    assert_eq!(found.lines().count(), recorded.lines().count(), "forms.txt has as many lines as there are");
}

/// A name as a list of suffixes: at most one modifier for each group, and the types.
#[derive(Clone)]
struct Name {
    groups: Vec<Option<Mod>>,
    types: Vec<ScalarType>,
}

impl Name {
    /// The shortest name of the form. The form's rules choose among alternatives.
    fn shortest(form: &Form) -> Self {
        let groups = form.groups.iter().map(|group| group.required.then(|| group.names[0])).collect();
        let sets = &form.types[..usize::from(form.required_types)];
        let types = sets.iter().map(|set| set.iter().next().expect("a set has a type")).collect();
        let mut name = Self { groups, types };
        name.adjust(form, None, None);
        name
    }

    fn opcode(&self, form: &Form) -> Opcode {
        let mods: Vec<Mod> = self.groups.iter().copied().flatten().collect();
        Opcode::new(form.id, &mods, &self.types).expect("a name is within the limits")
    }

    /// Changes the name so that it follows the rules, but keeps the given group and the type at the given position.
    fn adjust(&mut self, form: &Form, group: Option<usize>, position: Option<usize>) {
        for _ in 0..12 {
            let opcode = self.opcode(form);
            let Some(rule) = form.rules.iter().find(|rule| !rule.allows(&opcode)) else { return };
            match rule.then {
                Then::Types(at, set) => {
                    let at = usize::from(at);
                    let Some(ty) = set.iter().find(|&ty| form.types[at].contains(ty)) else { return };
                    if Some(at) == position || at >= self.types.len() {
                        return;
                    }
                    self.types[at] = ty;
                }
                Then::SameType(a, b) => {
                    let (a, b) = (usize::from(a), usize::from(b));
                    let (from, to) = if Some(b) == position { (b, a) } else { (a, b) };
                    self.types[to] = self.types[from];
                }
                Then::Needs(mods) => {
                    let place = |m: Mod| {
                        (0..form.groups.len()).find(|&i| form.groups[i].contains(m) && Some(i) != group)
                    };
                    let Some((at, m)) = mods.iter().find_map(|&m| place(m).map(|at| (at, m))) else { return };
                    self.groups[at] = Some(m);
                }
                Then::Excludes(mods) => {
                    for (i, chosen) in self.groups.iter_mut().enumerate() {
                        if Some(i) != group && chosen.is_some_and(|m| mods.contains(&m)) {
                            let other = form.groups[i].names.iter().copied().find(|m| !mods.contains(m));
                            *chosen = other.filter(|_| form.groups[i].required);
                        }
                    }
                }
                Then::Gate(_) | Then::Operand(..) => return,
            }
        }
    }

    /// Modifiers and types, as the manual orders them.
    fn words(&self) -> Vec<&'static str> {
        let mods = self.groups.iter().flatten().map(|m| m.text());
        mods.chain(self.types.iter().map(|ty| ty.text())).collect()
    }

    fn text(&self, form: &Form) -> String {
        let mut text = form.mnemonic().to_owned();
        for word in self.words() {
            text.push('.');
            text.push_str(word);
        }
        text
    }

    /// What the table says about the name, or that it rejects the name.
    fn outcome(&self, form: &Form) -> String {
        Self::outcome_of(form, &self.words())
    }

    fn outcome_of(form: &Form, words: &[&str]) -> String {
        match resolve(form.mnemonic(), words) {
            Ok(opcode) if opcode.form == form.id => {
                format!("{}; {}", gate(&gates(&opcode)), operands(&opcode))
            }
            Ok(opcode) => format!("is {:?}", opcode.form),
            Err(_) => "refused".to_owned(),
        }
    }
}

/// Writes what the table says about a row.
fn describe(form: &Form, out: &mut String) {
    let mut digest = Digest::default();
    combinations(form, &mut |outcome| {
        digest.add(outcome);
        true
    });
    let mut lines = String::new();
    describe_briefly(form, &mut lines);
    let (first, rest) = lines.split_once('\n').expect("a row has a first line");
    writeln!(out, "{first}\n  facts {:x}, combinations {:016x}", form.facts.0, digest.0).unwrap();
    out.push_str(rest);
}

/// The same without the combinations, which take long.
pub(super) fn describe_briefly(form: &Form, out: &mut String) {
    let name = Name::shortest(form);
    let base = name.outcome(form);
    writeln!(out, "{:?} {}: {base}", form.id, name.text(form)).unwrap();
    for (i, group) in form.groups.iter().enumerate() {
        for &m in group.names {
            let mut other = name.clone();
            other.groups[i] = Some(m);
            other.adjust(form, Some(i), None);
            line(form, &base, &other, m.text(), out);
        }
    }
    for (position, set) in form.types.iter().enumerate() {
        for ty in set.iter() {
            let mut other = name.clone();
            other.types.resize(other.types.len().max(position + 1), ty);
            other.types[position] = ty;
            other.adjust(form, None, Some(position));
            line(form, &base, &other, ty.text(), out);
        }
    }
}

/// Calls `tell` with what the table says about the shortest name changed by every one and every two modifiers or types,
/// in any order. Stops when `tell` returns false.
pub(super) fn combinations(form: &Form, tell: &mut dyn FnMut(&str) -> bool) {
    let shortest = Name::shortest(form);
    let mods =
        form.groups.iter().enumerate().flat_map(|(at, group)| group.names.iter().map(move |m| (at, m)));
    let mut choices: Vec<Choice> = mods.map(|(at, &m)| Choice::Mod(at, m)).collect();
    for (at, set) in form.types.iter().enumerate() {
        choices.extend(set.iter().map(|ty| Choice::Type(at, ty)));
    }
    for (i, one) in choices.iter().enumerate() {
        for other in &choices[..=i] {
            let mut name = shortest.clone();
            one.apply(&mut name);
            other.apply(&mut name);
            let mut words = name.words();
            let mut goes_on = tell(&Name::outcome_of(form, &words));
            words.reverse();
            goes_on &= tell(&Name::outcome_of(form, &words));
            words.reverse();
            // The order with the last modifier after the types.
            if let Some(last) = words.len().checked_sub(name.types.len() + 1) {
                words[last..].rotate_left(1);
                goes_on &= tell(&Name::outcome_of(form, &words));
            }
            name.adjust(form, other.group(), other.position());
            if !(goes_on && tell(&name.outcome(form))) {
                return;
            }
        }
    }
}

/// A modifier for a group, or a type for a position.
#[derive(Clone, Copy)]
enum Choice {
    Mod(usize, Mod),
    Type(usize, ScalarType),
}

impl Choice {
    fn apply(self, name: &mut Name) {
        match self {
            Self::Mod(at, m) => name.groups[at] = Some(m),
            Self::Type(at, ty) => {
                name.types.resize(name.types.len().max(at + 1), ty);
                name.types[at] = ty;
            }
        }
    }

    fn group(self) -> Option<usize> {
        if let Self::Mod(at, _) = self { Some(at) } else { None }
    }

    fn position(self) -> Option<usize> {
        if let Self::Type(at, _) = self { Some(at) } else { None }
    }
}

/// FNV-1a.
pub(super) struct Digest(pub u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub(super) fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// A modifier or type that changes what the table says.
fn line(form: &Form, base: &str, name: &Name, word: &str, out: &mut String) {
    let outcome = name.outcome(form);
    if outcome != base {
        writeln!(out, "  .{word} {}: {outcome}", name.text(form)).unwrap();
    }
}

fn gate(gate: &Gate) -> String {
    let mut text = format!("{} {}", gate.ptx, gate.targets);
    if let Some(removed) = gate.removed {
        write!(text, " until {} {}", removed.since, removed.targets).unwrap();
    }
    if let Some(late) = gate.late {
        write!(text, " late {} {}", late.since, late.targets).unwrap();
    }
    text
}

fn operands(opcode: &Opcode) -> String {
    let signature = signature(opcode);
    let operands: Vec<String> = signature.operands.iter().map(operand).collect();
    operands.join(", ")
}

fn operand(row: &Expected) -> String {
    let optional = if row.optional { "?" } else { "" };
    let role = match row.role {
        Role::Destination => ">",
        Role::Source => "",
        Role::Both => "<>",
    };
    let mut text = format!("{role}{}{optional}:{:x}", row.name, row.class.0);
    match row.ty {
        ExpectedType::Typed(ty) => write!(text, " .{}", ty.text()),
        ExpectedType::Integer(bits) => write!(text, " i{bits}"),
        ExpectedType::Address(target) => write!(
            text,
            " {:?} {:?}{}{}{}",
            target.space,
            target.base.size,
            if target.base.symbols { "" } else { " unnamed" },
            if target.base.opaque { " opaque" } else { "" },
            target.base.variables.map_or(String::new(), |space| format!(" only {space:?}"))
        ),
        ExpectedType::Free => Ok(()),
        other => write!(text, " {other:?}"),
    }
    .unwrap();
    let vectors = Class::VECTOR.or(Class::TEXTURE);
    for part in row.head {
        write!(text, " behind {part:?}").unwrap();
    }
    match row.lanes {
        _ if !row.class.intersects(vectors) => Ok(()),
        ExpectedLanes::Exactly(1) => Ok(()),
        ExpectedLanes::Exactly(count) => write!(text, " x{count}"),
        ExpectedLanes::Of(counts) => write!(text, " x{counts:?}"),
        ExpectedLanes::OrBare(counts) => write!(text, " x{counts:?} or bare"),
        ExpectedLanes::Any => write!(text, " x*"),
    }
    .unwrap();
    if row.values != Values::Any {
        write!(text, " ({})", row.values).unwrap();
    }
    if row.gate != Gate::BASE {
        write!(text, " [{}]", gate(&row.gate)).unwrap();
    }
    if let Some((values, needed)) = row.gated {
        write!(text, " [{values}: {}]", gate(&needed)).unwrap();
    }
    if let Some(needed) = row.gated_sink {
        write!(text, " [_: {}]", gate(&needed)).unwrap();
    }
    if let Some((other, class)) = row.beside {
        write!(text, " [with {other}: {class:?}]").unwrap();
    }
    text
}

#[test]
fn operands_that_need_a_modifier_come_with_it() {
    for &id in FormId::ALL {
        let form = crate::form(id);
        for (i, group) in form.groups.iter().enumerate() {
            for &m in group.names {
                let mut name = Name::shortest(form);
                name.groups[i] = Some(m);
                name.adjust(form, Some(i), None);
                let opcode = name.opcode(form);
                let signature = signature(&opcode);
                for row in form.operands {
                    if let Presence::With(mods) = row.presence
                        && mods.contains(&m)
                    {
                        let there = signature.operands.iter().any(|operand| operand.name == row.name);
                        let moved = form.rules.iter().any(|rule| {
                            matches!(rule.then, Then::Operand(name, crate::Column::Presence(_)) if name == row.name)
                        });
                        assert!(there || moved, "{id:?}: {} with {}", row.name, m.text());
                    }
                }
            }
        }
        assert!(PtxVersion::NEWEST >= gates(&Name::shortest(form).opcode(form)).ptx, "{id:?}");
    }
}
