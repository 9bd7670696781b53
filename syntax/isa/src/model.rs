//! The row types of the table: what a form's name may consist of, what its operands are, what it needs.
//!
//! A row says what the manual's syntax lines say: groups of modifiers in the order in which they are written
//! there, a set of types for each type position, operands, and rules for what the groups alone cannot say
//! ("`.ftz` only with `.f32`"). All of it is constant data built by the small functions here.

use crate::{FormId, Gate, Mod, Opcode, ScalarType, Space, TypeSet};
use std::fmt;

/// Where in the name a group's modifier may appear. ptxas leaves the order free except for these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Free,
    /// After the mnemonic or another such group: the modifier tells which instruction it is (`mul.wide`).
    Leading,
    /// In the table's order among such groups: destination before source, `.row.col`.
    Ordered,
}

/// A place in an instruction's name that takes one of several modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    pub required: bool,
    pub place: Place,
    /// What single alternatives need beyond the form appears in the form's rules.
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
    /// At least one of these is present as well; empty: no condition.
    pub and: &'static [Mod],
    /// None of these is present.
    pub none: &'static [Mod],
    /// The first three types are in these sets; the full set: no condition.
    pub first: TypeSet,
    pub second: TypeSet,
    pub third: TypeSet,
}

impl When {
    pub const ALWAYS: When = When {
        any: &[],
        and: &[],
        none: &[],
        first: TypeSet::ALL,
        second: TypeSet::ALL,
        third: TypeSet::ALL,
    };

    pub fn holds(&self, opcode: &Opcode) -> bool {
        let any = |mods: &[Mod]| mods.is_empty() || mods.iter().any(|&m| opcode.has(m));
        let typed = |set: TypeSet, i| match opcode.ty(i) {
            _ if set == TypeSet::ALL => true,
            Some(ty) => set.contains(ty),
            None => false,
        };
        any(self.any)
            && any(self.and)
            && !self.none.iter().any(|&m| opcode.has(m))
            && typed(self.first, 0)
            && typed(self.second, 1)
            && typed(self.third, 2)
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
    /// The operand of this name differs from what its own columns say.
    Operand(&'static str, Column),
}

/// A column of an operand that a rule replaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    Class(Class),
    Type(OperandType),
    Lanes(Lanes),
    Values(Values),
    Head(&'static [Part]),
    Presence(Presence),
    Gate(Gate),
    /// Some of the constants need more than the others.
    Gated(Values, Gate),
    /// `_` needs more.
    GatedSink(Gate),
    /// All it may be where the operand of this name is written, which may be left out.
    Beside(&'static str, Class),
}

/// A restriction that relates modifiers, types and gates of one form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    pub when: When,
    pub then: Then,
}

impl Rule {
    /// Whether the rule lets the name pass; gates and operands do not concern names.
    pub fn allows(&self, opcode: &Opcode) -> bool {
        if !self.when.holds(opcode) {
            return true;
        }
        match self.then {
            Then::Types(position, set) => opcode.ty(position as usize).is_some_and(|ty| set.contains(ty)),
            Then::Needs(mods) => mods.iter().any(|&m| opcode.has(m)),
            Then::Excludes(mods) => !mods.iter().any(|&m| opcode.has(m)),
            Then::SameType(a, b) => opcode.ty(a as usize) == opcode.ty(b as usize),
            Then::Gate(_) | Then::Operand(..) => true,
        }
    }
}

/// What an operand may be: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Class(pub u16);

impl Class {
    pub const NONE: Class = Class(0);
    pub const REGISTER: Class = Class(1);
    /// A constant expression; `WARP_SZ` is one.
    pub const IMMEDIATE: Class = Class(1 << 1);
    /// `[base+offset]`.
    pub const ADDRESS: Class = Class(1 << 2);
    pub const LABEL: Class = Class(1 << 3);
    /// The name of a `.branchtargets`.
    pub const BRANCH_TARGETS: Class = Class(1 << 14);
    /// The name of a `.callprototype` or a `.calltargets`.
    pub const PROTOTYPE: Class = Class(1 << 15);
    /// A predicate register, `!p` where it is read.
    pub const PREDICATE: Class = Class(1 << 4);
    pub const SPECIAL: Class = Class(1 << 5);
    /// The name of a variable or a function, taken as its address.
    pub const SYMBOL: Class = Class(1 << 6);
    /// `{a, b, …}` of registers.
    pub const VECTOR: Class = Class(1 << 7);
    /// `_` in place of a destination.
    pub const SINK: Class = Class(1 << 8);
    /// `d|p`: the second is a predicate. `d|_` is `d`.
    pub const PAIR: Class = Class(1 << 9);
    /// `_|p`.
    pub const PAIR_WITHOUT_FIRST: Class = Class(1 << 12);
    pub const ANY_PAIR: Class = Class(1 << 9 | 1 << 12);
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
    /// An integer of this many bits that is not a packed pair: shift amounts, masks, sizes, policies.
    Integer(u16),
    /// An integer of the width of the suffix at this position.
    IntegerLike(u8),
    /// An integer of 32 or 64 bits.
    Pointer,
    /// The same, but no untyped one of 32 bits.
    Length,
    /// Any register of 32 bits, or a predicate.
    Word,
    /// Registers with a part of a matrix.
    Fragment(Matrix),
    /// The same in a vector, or a 64-bit descriptor of shared memory.
    FragmentOrDescriptor(Matrix),
    /// Coordinates of the type at this position; the first of arrays is an index.
    Coordinates(u8),
    /// A value of the type at this position, or the name of a variable where the base points.
    AddressOf(u8, Base),
    /// An address, and where it points.
    Address(Base),
    /// Not a typed thing: labels, lists.
    Free,
}

/// Where an address operand points, and what may be written for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Base {
    pub window: Window,
    /// The only state space whose variables may be named, where the window does not say that.
    pub variables: Option<Space>,
    /// Variables may be named.
    pub symbols: bool,
    /// Textures, samplers and surfaces may be named too.
    pub opaque: bool,
    pub size: AddressSize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Window {
    /// The state space that the name gives at this position; the generic window when it gives none there.
    Named(u8),
    In(Space),
    /// Tensor memory: a 32-bit register without an offset.
    Tensor,
    /// The assembler takes anything in brackets.
    Unchecked,
}

/// How wide registers with addresses are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddressSize {
    /// Up to 64 bits.
    Any,
    /// 32 or 64 bits in global and generic memory: the assembler moves it to a register first.
    Moved,
    /// 32 or 64 bits, in tensor memory no float: the assembler copies it as it is.
    Copied,
    /// Not 32 bits in global and generic memory where the module's addresses have 64.
    Module,
    /// As wide as the module's addresses.
    Exact,
}

impl Base {
    pub(crate) const fn of(window: Window) -> Self {
        Self { window, variables: None, symbols: true, opaque: true, size: AddressSize::Any }
    }

    pub(crate) const fn named(position: u8) -> Self {
        Self::of(Window::Named(position))
    }

    /// Nothing may be named.
    pub(crate) const fn registers(mut self) -> Self {
        self.symbols = false;
        self
    }

    /// Only memory may be named.
    pub(crate) const fn memory(mut self) -> Self {
        self.opaque = false;
        self
    }

    pub(crate) const fn sized(mut self) -> Self {
        self.size = AddressSize::Module;
        self
    }

    pub(crate) const fn moved(mut self) -> Self {
        self.size = AddressSize::Moved;
        self
    }

    pub(crate) const fn copied(mut self) -> Self {
        self.size = AddressSize::Copied;
        self
    }

    pub(crate) const fn exact(mut self) -> Self {
        self.size = AddressSize::Exact;
        self
    }

    pub(crate) const fn variables(mut self, space: Space) -> Self {
        self.variables = Some(space);
        self
    }
}

/// How many elements a vector operand has. An operand without braces has one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lanes {
    /// Any number.
    Any,
    /// One of these. Where one is among several, it appears without braces.
    Of(&'static [u8]),
    /// One of these in braces; without braces, one value for all of them.
    OrBare(&'static [u8]),
    /// This often the number that `.v2`, `.x4` and the like name; without one, this number.
    Named(u8),
    /// One; pairs of `.bf16` may appear in braces, any number of them.
    Bf16Pair,
    /// The registers of a part of a sparse vector, by its types, its count and how many elements are kept.
    Sparse(Sparse),
    /// The registers of a thread's part of a matrix, by shape, type and sparsity.
    Fragment(Matrix),
}

/// The parts of a sparse vector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sparse {
    /// Which elements are kept.
    Metadata,
    /// Those elements alone.
    Kept,
    /// With the elements that are not kept.
    Whole,
}

/// The matrices of a product `d = a * b + c`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Matrix {
    A,
    B,
    C,
    D,
}

/// Which constants an operand takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Values {
    Any,
    /// From the first to the second.
    Range(i64, i64),
    Of(&'static [i64]),
    /// Multiples of the first number from the second to the third.
    Multiple(i64, i64, i64),
    /// Multiples of the number, as unsigned ones of 32 bits; zero or not.
    Multiples {
        of: i64,
        zero: bool,
    },
    /// These, element by element.
    Each(&'static [Values]),
    /// Powers of two from the first to the second.
    PowerOfTwo(i64, i64),
    /// From zero to the constant that the operand of this name is.
    UpTo(&'static str),
    /// Floats above zero up to one.
    Fraction,
    /// The low 32 bits of the constant are among these, and those of the constant that it is compared with.
    Low(&'static Values),
}

impl Values {
    /// Whether an integer is among them, as far as it alone tells.
    pub fn contains(self, value: i64) -> bool {
        match self {
            Values::Any | Values::UpTo(_) | Values::Fraction | Values::Each(_) => true,
            Values::Range(from, to) => (from..=to).contains(&value),
            Values::Low(values) => values.contains(i64::from(value as u32)),
            Values::Of(values) => values.contains(&value),
            Values::Multiple(of, from, to) => value % of == 0 && (from..=to).contains(&value),
            Values::Multiples { of, zero } => value % of == 0 && (zero || value != 0),
            Values::PowerOfTwo(from, to) => value.count_ones() == 1 && (from..=to).contains(&value),
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |f: &mut fmt::Formatter<'_>, from, to| match to {
            i64::MAX => write!(f, "{from} or more"),
            to => write!(f, "{from} to {to}"),
        };
        match *self {
            Values::Any => f.write_str("any value"),
            Values::Low(values) => values.fmt(f),
            Values::Range(from, to) => range(f, from, to),
            Values::Of(values) => {
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "" } else { " or " })?;
                }
                Ok(())
            }
            Values::Multiple(of, from, to) => {
                write!(f, "a multiple of {of}, ")?;
                range(f, from, to)
            }
            Values::Multiples { of, zero } => {
                write!(f, "a multiple of {of}{}", if zero { "" } else { ", not 0" })
            }
            Values::Each(each) => {
                for (i, values) in each.iter().enumerate() {
                    write!(f, "{}{values}", if i == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
            Values::PowerOfTwo(from, to) => {
                f.write_str("a power of two, ")?;
                range(f, from, to)
            }
            Values::UpTo(name) => write!(f, "0 to the value of `{name}`"),
            Values::Fraction => f.write_str("greater than 0 and at most 1"),
        }
    }
}

/// When an operand is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    Always,
    Optional,
    Never,
    /// Written exactly when one of these is present.
    With(&'static [Mod]),
    /// Written exactly when none of these is present.
    Without(&'static [Mod]),
    /// May be written only when one of these is present.
    OptionalWith(&'static [Mod]),
}

/// A part of an operand in brackets: `[endpoint, offset]`, `[map, address, {coordinates}]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A register with an integer of this many bits.
    Integer(u32),
    /// In braces one register of 8 or 16 bits for each dimension of a tensor.
    Sizes,
    /// In braces one register of 32 bits for each dimension but the first.
    Strides,
}

/// An operand of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// As the manual names it.
    pub name: &'static str,
    pub role: Role,
    pub class: Class,
    pub ty: OperandType,
    /// Of operands that may be vectors.
    pub lanes: Lanes,
    /// Of operands that may be constants.
    pub values: Values,
    /// Of operands in brackets with several parts: what precedes the last part, after a tensor map.
    pub head: &'static [Part],
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
    /// Control never continues after it when it is not guarded.
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
    /// In the order of the manual's syntax line; a name may appear in two groups (`mma….row.row`).
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
