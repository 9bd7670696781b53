//! The row types of the table: the parts of a form's name, its operands and its requirements.
//!
//! A row contains what the manual's syntax lines say: groups of modifiers in the manual's order, a set of types for
//! each type position, operands, and rules for what groups cannot express ("`.ftz` only with `.f32`"). The rows are
//! constants, built by the small functions here.

use crate::{FormId, Gate, Mod, Opcode, ScalarType, Space, TypeSet};
use std::fmt;

/// Where a group's modifier may appear in the name. Apart from these restrictions, ptxas accepts any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Free,
    /// After the mnemonic or another leading group: the modifier selects the instruction (`mul.wide`).
    Leading,
    /// In the table's order among all ordered groups, for example destination before source, `.row.col`.
    Ordered,
}

/// A part of an instruction's name that is one of several modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    pub required: bool,
    pub place: Place,
    /// The modifiers. If some need more than the form does, the form's rules say so.
    pub names: &'static [Mod],
}

impl Group {
    pub fn contains(&self, m: Mod) -> bool {
        self.names.contains(&m)
    }
}

/// When a [`Rule`] applies. All of the given conditions must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    /// At least one of these is present. No condition if empty.
    pub any: &'static [Mod],
    /// At least one of these is present too. No condition if empty.
    pub and: &'static [Mod],
    /// None of these is present.
    pub none: &'static [Mod],
    /// The first three types are in these sets. The full set is not a condition.
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

/// What a [`Rule`] requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// The type at this position is written and is one of these.
    Types(u8, TypeSet),
    /// At least one of these is present.
    Needs(&'static [Mod]),
    /// None of these is present.
    Excludes(&'static [Mod]),
    /// The two type positions name the same type.
    SameType(u8, u8),
    /// A version and targets in addition to the form's.
    Gate(Gate),
    /// A column of the operand with this name has a different value.
    Operand(&'static str, Column),
}

/// A column of an operand, with the value that a rule gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    Class(Class),
    Type(OperandType),
    Lanes(Lanes),
    Values(Values),
    Head(&'static [Part]),
    Presence(Presence),
    Gate(Gate),
    /// Constants with additional requirements.
    Gated(Values, Gate),
    /// Additional requirements of `_`.
    GatedSink(Gate),
    /// The classes of this operand if the optional operand with the given name is present.
    Beside(&'static str, Class),
}

/// A restriction on the combination of modifiers, types and gates of one form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    pub when: When,
    pub then: Then,
}

impl Rule {
    /// Whether the rule accepts the name. Rules about gates and operands accept every name.
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

/// The classes that an operand may have: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Class(pub u16);

impl Class {
    pub const NONE: Class = Class(0);
    pub const REGISTER: Class = Class(1);
    /// A constant expression, which may be `WARP_SZ`.
    pub const IMMEDIATE: Class = Class(1 << 1);
    /// `[base+offset]`.
    pub const ADDRESS: Class = Class(1 << 2);
    pub const LABEL: Class = Class(1 << 3);
    /// The name of a `.branchtargets`.
    pub const BRANCH_TARGETS: Class = Class(1 << 14);
    /// The name of a `.callprototype` or a `.calltargets`.
    pub const PROTOTYPE: Class = Class(1 << 15);
    /// A predicate register; `!p` for sources.
    pub const PREDICATE: Class = Class(1 << 4);
    pub const SPECIAL: Class = Class(1 << 5);
    /// The name of a variable or a function, taken as its address.
    pub const SYMBOL: Class = Class(1 << 6);
    /// `{a, b, …}` of registers.
    pub const VECTOR: Class = Class(1 << 7);
    /// `_` as a destination.
    pub const SINK: Class = Class(1 << 8);
    /// `d|p`, where the second is a predicate. `d|_` means `d`.
    pub const PAIR: Class = Class(1 << 9);
    /// `_|p`.
    pub const PAIR_WITHOUT_FIRST: Class = Class(1 << 12);
    pub const ANY_PAIR: Class = Class(1 << 9 | 1 << 12);
    /// `(a, b, …)`: arguments and results of `call`.
    pub const LIST: Class = Class(1 << 10);
    /// `[tex, sampler, {coordinates}]`.
    pub const TEXTURE: Class = Class(1 << 11);
    /// Registers and constants, the sources of arithmetic.
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
    /// Read and then written.
    Both,
}

/// The type of an operand, which depends on the type suffixes of the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperandType {
    /// The type suffix at this position.
    Suffix(u8),
    /// Twice as wide as the suffix at this position if `.wide` is present, otherwise the same.
    Wide(u8),
    /// This type in all cases.
    Is(ScalarType),
    /// An integer of this many bits that is not a packed pair: for shift amounts, masks, sizes, policies.
    Integer(u16),
    /// An integer as wide as the type suffix at this position.
    IntegerLike(u8),
    /// An integer of 32 or 64 bits.
    Pointer,
    /// The same, but not an untyped register of 32 bits.
    Length,
    /// Any register of 32 bits, or a predicate.
    Word,
    /// Registers with a fragment of a matrix.
    Fragment(Matrix),
    /// A vector of such registers, or a 64-bit descriptor of shared memory.
    FragmentOrDescriptor(Matrix),
    /// Coordinates of the type at this position. For arrays, the first is an index.
    Coordinates(u8),
    /// A value of the type at this position, or the name of a variable as its address.
    AddressOf(u8, Base),
    /// An address with the given base.
    Address(Base),
    /// No type: labels, lists.
    Free,
}

/// The memory that an address operand refers to, and what may be written as the base.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Base {
    pub window: Window,
    /// The state space whose variables may be named, if the window does not determine it.
    pub variables: Option<Space>,
    /// Variables may be named.
    pub symbols: bool,
    /// Textures, samplers and surfaces may be named too.
    pub opaque: bool,
    pub size: AddressSize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Window {
    /// The state space that the name gives at this position, or the generic window if it gives none there.
    Named(u8),
    In(Space),
    /// Tensor memory: a 32-bit register without an offset.
    Tensor,
    /// The assembler accepts anything in brackets.
    Unchecked,
}

/// The width of address registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddressSize {
    /// Up to 64 bits.
    Any,
    /// 32 or 64 bits in global and generic memory, because the assembler first moves the address to another register.
    Moved,
    /// 32 or 64 bits, because the assembler copies the address as it is. In tensor memory, not a floating-point
    /// register.
    Copied,
    /// In global and generic memory, not 32 bits if the module's addresses have 64 bits.
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

    /// No variable may be named.
    pub(crate) const fn registers(mut self) -> Self {
        self.symbols = false;
        self
    }

    /// Only variables in memory may be named.
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

/// The number of elements of a vector operand. An operand without braces has one element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lanes {
    /// Any number.
    Any,
    /// One of these. If one of them is 1, a single element is written without braces.
    Of(&'static [u8]),
    /// One of these in braces; or, without braces, one value for all elements.
    OrBare(&'static [u8]),
    /// A multiple of the number in `.v2`, `.x4` and similar modifiers. Without such a modifier, this number.
    Named(u8),
    /// One. Pairs of `.bf16` may be in braces, with any number of elements.
    Bf16Pair,
    /// The registers of a part of a sparse vector. They depend on its types, its count and the number of kept elements.
    Sparse(Sparse),
    /// The registers of a thread's fragment of a matrix. They depend on shape, type and sparsity.
    Fragment(Matrix),
}

/// The parts of a sparse vector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sparse {
    /// The positions of the kept elements.
    Metadata,
    /// The kept elements.
    Kept,
    /// All elements, including those that are not kept.
    Whole,
}

/// The matrices of `d = a * b + c`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Matrix {
    A,
    B,
    C,
    D,
}

/// The constants that an operand accepts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Values {
    Any,
    /// From the first number to the second.
    Range(i64, i64),
    Of(&'static [i64]),
    /// Multiples of the first number, from the second to the third.
    Multiple(i64, i64, i64),
    /// Multiples of `of` as unsigned 32-bit numbers, with or without zero.
    Multiples {
        of: i64,
        zero: bool,
    },
    /// One set for each element.
    Each(&'static [Values]),
    /// Powers of two, from the first number to the second.
    PowerOfTwo(i64, i64),
    /// From zero to the constant in the operand with this name.
    UpTo(&'static str),
    /// Floating-point numbers above zero, up to one.
    Fraction,
    /// Constants whose low 32 bits are in this set. A comparison with another constant also uses only its low 32 bits.
    Low(&'static Values),
}

impl Values {
    /// Whether the set contains an integer, as far as this does not depend on other operands.
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
            to if to == from => write!(f, "{from}"),
            to if from.checked_add(1) == Some(to) => write!(f, "{from} or {to}"),
            to => write!(f, "{from} to {to}"),
        };
        match *self {
            Values::Any => f.write_str("any value"),
            Values::Low(values) => values.fmt(f),
            Values::Range(from, to) => range(f, from, to),
            Values::Of(values) if values.len() > 1 && values.is_sorted_by(|one, next| one + 1 == *next) => {
                range(f, values[0], values[values.len() - 1])
            }
            Values::Of(values) => {
                for (i, value) in values.iter().enumerate() {
                    let before = match i {
                        0 => "",
                        _ if i + 1 == values.len() => " or ",
                        _ => ", ",
                    };
                    write!(f, "{before}{value}")?;
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

/// When an operand is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    Always,
    Optional,
    Never,
    /// Present if and only if one of these is present.
    With(&'static [Mod]),
    /// Present if and only if none of these is present.
    Without(&'static [Mod]),
    /// Optional if one of these is present, otherwise absent.
    OptionalWith(&'static [Mod]),
}

/// A part of a bracketed operand: `[endpoint, offset]`, `[map, address, {coordinates}]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A register with an integer of this many bits.
    Integer(u32),
    /// In braces, one register of 8 or 16 bits for each dimension of a tensor.
    Sizes,
    /// In braces, one 32-bit register for each dimension except the first.
    Strides,
}

/// An operand of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// The operand's name in the manual.
    pub name: &'static str,
    pub role: Role,
    pub class: Class,
    /// The classes that only the assembler accepts; the manual does not mention them.
    pub beyond: Class,
    pub ty: OperandType,
    /// For operands that may be vectors.
    pub lanes: Lanes,
    /// For operands that may be constants.
    pub values: Values,
    /// For bracketed operands with several parts: the parts before the last one, after the tensor map if there is one.
    pub head: &'static [Part],
    pub presence: Presence,
    /// Requirements of this operand in addition to the form's.
    pub gate: Gate,
}

impl Operand {
    /// The classes that the manual gives.
    pub const fn documented(&self) -> Class {
        self.class.and_not(self.beyond)
    }
}

/// Facts about a form that lints and lowering need: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts(pub u16);

impl Facts {
    pub const NONE: Facts = Facts(0);
    /// Reads memory.
    pub const READS: Facts = Facts(1);
    /// Writes memory.
    pub const WRITES: Facts = Facts(1 << 1);
    /// Orders the memory accesses of other instructions.
    pub const ORDERS: Facts = Facts(1 << 2);
    /// Threads of a warp must execute it together; it must not move across control flow.
    pub const CONVERGENT: Facts = Facts(1 << 3);
    /// The first two sources may be exchanged.
    pub const COMMUTES: Facts = Facts(1 << 4);
    /// Changes the flow of control.
    pub const CONTROL: Facts = Facts(1 << 5);
    /// Unless it is guarded, control does not continue after it.
    pub const TERMINATES: Facts = Facts(1 << 6);
    /// Has an effect besides writing its destinations and memory, or reads state that changes by itself.
    pub const EFFECT: Facts = Facts(1 << 7);
    /// May stop the program with a trap.
    pub const TRAPS: Facts = Facts(1 << 8);
    /// Completes after it has issued; another instruction waits for it.
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
    /// In the order of the manual's syntax line. A modifier may be in two groups (`mma….row.row`).
    pub groups: &'static [Group],
    /// One set for each type suffix.
    pub types: &'static [TypeSet],
    /// How many of `types` are required. The others are optional.
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

    /// The modifiers that every instruction of this form has: those of required groups with only one modifier.
    pub fn fixed(&self) -> impl Iterator<Item = Mod> {
        self.groups.iter().filter(|g| g.required && g.names.len() == 1).map(|g| g.names[0])
    }

    // Builder functions for the table. Each sets one column.

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
