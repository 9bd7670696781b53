//! The row types of the table: what a form's name may consist of, what its operands are, what it needs.
//!
//! A row says what the manual's syntax lines say: groups of modifiers in the order in which they are written
//! there, a set of types for each type position, operands, and rules for what the groups alone cannot say
//! ("`.ftz` only with `.f32`"). All of it is constant data built by the small functions here.

use crate::{FormId, Gate, Mod, Opcode, ScalarType, TypeSet};

/// Where in the name a group's modifier may stand. ptxas leaves the order free except for these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Free,
    /// Behind the mnemonic or another such group: the modifier tells which instruction it is (`mul.wide`).
    Leading,
    /// In the table's order among such groups: destination before source, `.row.col`.
    Ordered,
}

/// A place in an instruction's name that takes one of several modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    pub required: bool,
    pub place: Place,
    /// What single alternatives need beyond the form stands in the form's rules.
    pub names: &'static [Mod],
}

impl Group {
    pub fn contains(&self, m: Mod) -> bool {
        self.names.contains(&m)
    }
}

/// When a [`Rule`] applies: all parts that are given must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    /// At least one of these is present; empty: no condition.
    pub any: &'static [Mod],
    /// None of these is present.
    pub none: &'static [Mod],
    /// The first and the second type are in these sets; the full set: no condition.
    pub first: TypeSet,
    pub second: TypeSet,
}

impl When {
    pub const ALWAYS: When = When { any: &[], none: &[], first: TypeSet::ALL, second: TypeSet::ALL };

    pub fn holds(&self, opcode: &Opcode) -> bool {
        (self.any.is_empty() || self.any.iter().any(|&m| opcode.has(m)))
            && !self.none.iter().any(|&m| opcode.has(m))
            && opcode.ty(0).map_or(self.first == TypeSet::ALL, |ty| self.first.contains(ty))
            && opcode.ty(1).map_or(self.second == TypeSet::ALL, |ty| self.second.contains(ty))
    }
}

/// What a [`Rule`] asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// The type at a position is written and one of these.
    Types(u8, TypeSet),
    /// At least one of these is present.
    Needs(&'static [Mod]),
    /// None of these is present.
    Excludes(&'static [Mod]),
    /// The two type positions name the same type.
    SameType(u8, u8),
    /// A version and target beyond the form's.
    Gate(Gate),
}

/// A restriction that relates modifiers, types and gates of one form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    pub when: When,
    pub then: Then,
}

impl Rule {
    /// Whether the rule lets the name pass; gates do not concern names.
    pub fn allows(&self, opcode: &Opcode) -> bool {
        if !self.when.holds(opcode) {
            return true;
        }
        match self.then {
            Then::Types(position, set) => opcode.ty(position as usize).is_some_and(|ty| set.contains(ty)),
            Then::Needs(mods) => mods.iter().any(|&m| opcode.has(m)),
            Then::Excludes(mods) => !mods.iter().any(|&m| opcode.has(m)),
            Then::SameType(a, b) => opcode.ty(a as usize) == opcode.ty(b as usize),
            Then::Gate(_) => true,
        }
    }
}

/// What an operand may be: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Class(pub u16);

impl Class {
    pub const REGISTER: Class = Class(1);
    /// A constant expression; `WARP_SZ` is one.
    pub const IMMEDIATE: Class = Class(1 << 1);
    /// `[base+offset]`.
    pub const ADDRESS: Class = Class(1 << 2);
    pub const LABEL: Class = Class(1 << 3);
    /// A predicate register, `!p` where it is read.
    pub const PREDICATE: Class = Class(1 << 4);
    pub const SPECIAL: Class = Class(1 << 5);
    /// The name of a variable or a function, taken as its address.
    pub const SYMBOL: Class = Class(1 << 6);
    /// `{a, b, …}` of registers.
    pub const VECTOR: Class = Class(1 << 7);
    /// `_` in place of a destination.
    pub const SINK: Class = Class(1 << 8);
    /// `d|p`: the second is a predicate.
    pub const PAIR: Class = Class(1 << 9);
    /// `(a, b, …)`: arguments and results of `call`.
    pub const LIST: Class = Class(1 << 10);
    /// `[tex, sampler, {coordinates}]`.
    pub const TEXTURE: Class = Class(1 << 11);
    /// Registers and constants: what arithmetic reads.
    pub const VALUE: Class = Class(1 | 1 << 1);

    pub const fn or(self, other: Class) -> Class {
        Class(self.0 | other.0)
    }

    pub const fn and_not(self, other: Class) -> Class {
        Class(self.0 & !other.0)
    }

    pub const fn intersects(self, other: Class) -> bool {
        self.0 & other.0 != 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    Destination,
    Source,
    /// Read, then written.
    Both,
}

/// The type an operand has, given the instruction's type suffixes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperandType {
    /// The type suffix at this position.
    Suffix(u8),
    /// Twice as wide as the suffix at this position when `.wide` is present, else the same.
    Wide(u8),
    /// This type whatever the name says.
    Is(ScalarType),
    /// An integer or untyped register of this many bits, whatever its kind.
    Bits(u16),
    /// An address in the state space that the name gives, or a generic one.
    Address,
    /// Given by the modifiers (`ldmatrix.x4`) or not a typed thing (labels, lists).
    Free,
}

/// When an operand is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    Always,
    Optional,
    /// Written exactly when one of these is present.
    With(&'static [Mod]),
    /// Written exactly when none of these is present.
    Without(&'static [Mod]),
    /// May be written only when one of these is present.
    OptionalWith(&'static [Mod]),
}

/// An operand of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// As the manual names it.
    pub name: &'static str,
    pub role: Role,
    pub class: Class,
    pub ty: OperandType,
    pub presence: Presence,
    /// What writing this operand needs beyond the form.
    pub gate: Gate,
}

/// What lints and lowering need to know about a form beyond its syntax: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts(pub u16);

impl Facts {
    pub const NONE: Facts = Facts(0);
    /// Reads memory.
    pub const READS: Facts = Facts(1);
    /// Writes memory.
    pub const WRITES: Facts = Facts(1 << 1);
    /// Orders memory accesses of other instructions.
    pub const ORDERS: Facts = Facts(1 << 2);
    /// Threads of a warp must execute it together; it must not move across control flow.
    pub const CONVERGENT: Facts = Facts(1 << 3);
    /// The first two sources may be exchanged.
    pub const COMMUTES: Facts = Facts(1 << 4);
    /// Changes the flow of control.
    pub const CONTROL: Facts = Facts(1 << 5);
    /// Control never continues behind it when it is not guarded.
    pub const TERMINATES: Facts = Facts(1 << 6);
    /// Has an effect besides its destinations and memory, or observes state that changes by itself.
    pub const EFFECT: Facts = Facts(1 << 7);
    /// May stop the program.
    pub const TRAPS: Facts = Facts(1 << 8);
    /// Completes later than it issues; something else waits for it.
    pub const ASYNC: Facts = Facts(1 << 9);

    pub const fn or(self, other: Facts) -> Facts {
        Facts(self.0 | other.0)
    }

    pub const fn has(self, other: Facts) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Form {
    pub id: FormId,
    /// In the order of the manual's syntax line; a name may stand in two groups (`mma….row.row`).
    pub groups: &'static [Group],
    /// One set per type suffix.
    pub types: &'static [TypeSet],
    /// How many of `types` must be written; the others are optional.
    pub required_types: u8,
    pub rules: &'static [Rule],
    pub operands: &'static [Operand],
    pub gate: Gate,
    pub facts: Facts,
}

impl Form {
    pub fn mnemonic(&self) -> &'static str {
        self.id.mnemonic()
    }

    /// The modifiers every instruction of this form has: those of required groups with one name.
    pub fn fixed(&self) -> impl Iterator<Item = Mod> {
        self.groups.iter().filter(|g| g.required && g.names.len() == 1).map(|g| g.names[0])
    }

    // Builders for the table, each setting one column.

    pub(crate) const fn new(id: FormId) -> Self {
        Self {
            id,
            groups: &[],
            types: &[],
            required_types: 0,
            rules: &[],
            operands: &[],
            gate: Gate::BASE,
            facts: Facts::NONE,
        }
    }

    pub(crate) const fn name(mut self, groups: &'static [Group]) -> Self {
        self.groups = groups;
        self
    }

    pub(crate) const fn ty(mut self, types: &'static [TypeSet]) -> Self {
        self.types = types;
        self.required_types = types.len() as u8;
        self
    }

    pub(crate) const fn optional_types(mut self, count: u8) -> Self {
        self.required_types -= count;
        self
    }

    pub(crate) const fn rules(mut self, rules: &'static [Rule]) -> Self {
        self.rules = rules;
        self
    }

    pub(crate) const fn ops(mut self, operands: &'static [Operand]) -> Self {
        self.operands = operands;
        self
    }

    pub(crate) const fn gate(mut self, gate: Gate) -> Self {
        self.gate = gate;
        self
    }

    pub(crate) const fn since(self, major: u8, minor: u8, sm: u16) -> Self {
        self.gate(Gate::since(major, minor, sm))
    }

    pub(crate) const fn facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }
}
