//! The functions and constants with which the rows are written.

pub(super) use crate::model::Facts as Fact;
pub(super) use crate::model::{
    Base, Class, Column, Form, Group, Lanes, Matrix, Operand, OperandType, Part, Place, Presence, Role, Rule,
    Sparse, Then, Values, When, Window,
};
pub(super) use crate::opcode::Mod::{self, *};
pub(super) use crate::table::FormId as F;
pub(super) use crate::{Gate, ScalarType, Space, TargetSet, TypeSet};

/// A set of types: `t![U16 U32]`.
macro_rules! t {
    ($($ty:ident)*) => { $crate::TypeSet::of(&[$($crate::ScalarType::$ty),*]) };
}
pub(super) use t;

pub(super) const fn form(id: F) -> Form {
    Form::new(id)
}

// Groups of modifiers.

pub(super) const fn req(names: &'static [Mod]) -> Group {
    Group { required: true, place: Place::Free, names }
}

pub(super) const fn opt(names: &'static [Mod]) -> Group {
    Group { required: false, place: Place::Free, names }
}

impl Group {
    pub(super) const fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }
}

/// A required group directly after the mnemonic.
pub(super) const fn key(names: &'static [Mod]) -> Group {
    req(names).at(Place::Leading)
}

/// A required group that keeps its order relative to other ordered groups.
pub(super) const fn ordered(names: &'static [Mod]) -> Group {
    req(names).at(Place::Ordered)
}

pub(super) const FTZ: Group = opt(&[Ftz]);
pub(super) const SAT: Group = opt(&[Sat]);
pub(super) const CC: Group = req(&[Cc]);
pub(super) const APPROX: Group = req(&[Approx]);
pub(super) const ROUND: Group = opt(&[Rn, Rz, Rm, Rp]);
pub(super) const MUST_ROUND: Group = req(&[Rn, Rz, Rm, Rp]);
pub(super) const HI_LO: Group = key(&[Hi, Lo]);
pub(super) const ALIGNED: Group = req(&[Aligned]);
pub(super) const SYNC: Group = req(&[Sync]);
pub(super) const UNI: Group = opt(&[Uni]);
pub(super) const ASYNC: Group = key(&[Async]);
pub(super) const BULK: Group = key(&[Bulk]);
pub(super) const TENSOR: Group = key(&[Tensor]);
pub(super) const COMPARE: Group =
    req(&[Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, IsNan]);
pub(super) const BOOLEAN: Group = opt(&[And, Or, Xor]);
pub(super) const SCOPES: &[Mod] = &[Cta, Cluster, Gpu, Sys];
pub(super) const SCOPE: Group = opt(SCOPES);
pub(super) const MUST_SCOPE: Group = req(SCOPES);
pub(super) const VECTOR: Group = opt(&[V2, V4, V8]);
pub(super) const CACHE_HINT: Group = opt(&[L2CacheHint]);
pub(super) const SHARED_SPACES: &[Mod] = &[Shared, SharedCta, SharedCluster];

// Types.

pub(super) const U16_64: TypeSet = t![U16 U32 U64];
pub(super) const S16_64: TypeSet = t![S16 S32 S64];
pub(super) const INT: TypeSet = U16_64.union(S16_64);
pub(super) const INT_32_64: TypeSet = t![U32 U64 S32 S64];
pub(super) const BITS: TypeSet = t![B16 B32 B64];
pub(super) const B32: TypeSet = t![B32];
pub(super) const B64: TypeSet = t![B64];
pub(super) const B32_64: TypeSet = t![B32 B64];
pub(super) const U32: TypeSet = t![U32];
pub(super) const UI32: TypeSet = t![U32 S32];
pub(super) const F32: TypeSet = t![F32];
pub(super) const F64: TypeSet = t![F64];
pub(super) const PRED: TypeSet = t![Pred];
pub(super) const HALF: TypeSet = t![F16 F16x2];
pub(super) const BFLOAT: TypeSet = t![Bf16 Bf16x2];
pub(super) const HALVES: TypeSet = HALF.union(BFLOAT);
pub(super) const SCALAR: TypeSet = t![B8 B16 B32 B64 U8 U16 U32 U64 S8 S16 S32 S64 F32 F64];

// Operands.

const fn operand(name: &'static str, role: Role, class: Class, ty: OperandType) -> Operand {
    let (lanes, values) = (Lanes::Named(1), Values::Any);
    let (beyond, presence, gate) = (Class::NONE, Presence::Always, Gate::BASE);
    Operand { name, role, class, beyond, ty, lanes, values, head: &[], presence, gate }
}

pub(super) const T0: OperandType = OperandType::Suffix(0);
pub(super) const T1: OperandType = OperandType::Suffix(1);
pub(super) const T2: OperandType = OperandType::Suffix(2);
pub(super) const WIDE: OperandType = OperandType::Wide(0);
pub(super) const FREE: OperandType = OperandType::Free;

pub(super) const fn is(ty: ScalarType) -> OperandType {
    OperandType::Is(ty)
}
pub(super) const I16: OperandType = OperandType::Integer(16);
pub(super) const I32: OperandType = OperandType::Integer(32);
pub(super) const I64: OperandType = OperandType::Integer(64);
pub(super) const TB32: OperandType = is(ScalarType::B32);

pub(super) const fn dst(name: &'static str, ty: OperandType) -> Operand {
    operand(name, Role::Destination, Class::REGISTER, ty)
}
pub(super) const fn dst_pred(name: &'static str) -> Operand {
    operand(name, Role::Destination, Class::PREDICATE, is(ScalarType::Pred))
}
/// `d|p`.
pub(super) const fn dst_pair(name: &'static str, ty: OperandType) -> Operand {
    operand(name, Role::Destination, Class::REGISTER.or(Class::PAIR), ty)
}
/// `p|q`.
pub(super) const fn dst_preds(name: &'static str) -> Operand {
    operand(
        name,
        Role::Destination,
        Class::PREDICATE.or(Class::ANY_PAIR).or(Class::SINK),
        is(ScalarType::Pred),
    )
}
/// A vector with the number of elements in the name, or a register.
pub(super) const fn dst_vector(name: &'static str, ty: OperandType) -> Operand {
    operand(name, Role::Destination, Class::REGISTER.or(Class::VECTOR), ty)
}
pub(super) const fn src(name: &'static str, ty: OperandType) -> Operand {
    operand(name, Role::Source, Class::VALUE, ty)
}
pub(super) const fn reg(name: &'static str, ty: OperandType) -> Operand {
    operand(name, Role::Source, Class::REGISTER, ty)
}
pub(super) const fn src_vector(name: &'static str, ty: OperandType) -> Operand {
    operand(name, Role::Source, Class::VALUE.or(Class::VECTOR), ty)
}
pub(super) const fn imm(name: &'static str, ty: OperandType) -> Operand {
    operand(name, Role::Source, Class::IMMEDIATE, ty)
}
pub(super) const fn pred(name: &'static str) -> Operand {
    operand(name, Role::Source, Class::PREDICATE.or(Class::IMMEDIATE), is(ScalarType::Pred))
}
/// As [`addr`], but the address size of the module matters.
pub(super) const fn addr_sized(name: &'static str) -> Operand {
    addr_at(name, Base::named(0).sized())
}
/// Registers with a fragment of a matrix.
pub(super) const fn fragment(name: &'static str, matrix: Matrix) -> Operand {
    let ty = OperandType::Fragment(matrix);
    operand(name, Role::Source, Class::VECTOR, ty).lanes(Lanes::Fragment(matrix))
}
/// The positions of the nonzero elements in a sparse matrix. The assembler accepts any 32-bit registers, and the bits
/// of a floating-point constant.
pub(super) const METADATA: Operand = src("e", OperandType::Word)
    .also(Class::IMMEDIATE.or(Class::PREDICATE).or(Class::VECTOR))
    .lanes(Lanes::Any)
    .values(Values::Of(&[]));

/// Two constants in braces, or registers of their width.
pub(super) const fn fields(name: &'static str, values: Values) -> Operand {
    operand(name, Role::Source, Class::VECTOR, I16).lanes(Lanes::Of(&[2])).values(values)
}
/// An address in the first state space of the name.
pub(super) const fn addr(name: &'static str) -> Operand {
    addr_at(name, Base::named(0))
}
pub(super) const fn addr_at(name: &'static str, base: Base) -> Operand {
    operand(name, Role::Source, Class::ADDRESS, OperandType::Address(base))
}
/// A texture, surface or tensor map with coordinates.
pub(super) const fn texture(name: &'static str, coordinates: OperandType, lanes: Lanes) -> Operand {
    operand(name, Role::Source, Class::TEXTURE, coordinates).lanes(lanes)
}
/// A place in the memory of another GPU: the number of an endpoint and an offset in its memory.
pub(super) const fn handle(name: &'static str) -> Operand {
    texture(name, I64, Lanes::Of(&[1])).head(ENDPOINT)
}
pub(super) const ENDPOINT: &[Part] = &[Part::Integer(32)];
pub(super) const fn label(name: &'static str) -> Operand {
    operand(name, Role::Source, Class::LABEL, FREE)
}
pub(super) const fn branch_targets(name: &'static str) -> Operand {
    operand(name, Role::Source, Class::BRANCH_TARGETS, FREE)
}
/// The possible targets of an indirect call. An array of functions may give them too.
pub(super) const fn prototype(name: &'static str) -> Operand {
    operand(name, Role::Source, Class::PROTOTYPE.or(Class::SYMBOL), FREE)
}
pub(super) const fn target(name: &'static str) -> Operand {
    operand(name, Role::Source, Class::SYMBOL.or(Class::REGISTER), FREE)
}
pub(super) const fn list(name: &'static str, role: Role) -> Operand {
    operand(name, role, Class::LIST, FREE)
}

impl Operand {
    pub(super) const fn when(mut self, presence: Presence) -> Self {
        self.presence = presence;
        self
    }
    pub(super) const fn optional(self) -> Self {
        self.when(Presence::Optional)
    }
    pub(super) const fn with(self, mods: &'static [Mod]) -> Self {
        self.when(Presence::With(mods))
    }
    pub(super) const fn since(mut self, major: u8, minor: u8, sm: u16) -> Self {
        self.gate = Gate::since(major, minor, sm);
        self
    }
    pub(super) const fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }
    /// `_` is allowed too.
    pub(super) const fn sink(self) -> Self {
        self.or(Class::SINK)
    }
    /// Always in braces, with these numbers of elements.
    pub(super) const fn braces(mut self, lanes: Lanes) -> Self {
        self.class = Class::VECTOR;
        self.lanes = lanes;
        self
    }
    pub(super) const fn lanes(mut self, lanes: Lanes) -> Self {
        self.lanes = lanes;
        self
    }
    pub(super) const fn values(mut self, values: Values) -> Self {
        self.values = values;
        self
    }
    pub(super) const fn head(mut self, head: &'static [Part]) -> Self {
        self.head = head;
        self
    }
    pub(super) const fn range(self, from: i64, to: i64) -> Self {
        self.values(Values::Range(from, to))
    }
    /// `d|p` is allowed too.
    pub(super) const fn pair(self) -> Self {
        self.or(Class::PAIR)
    }
    /// The operand may also be of another class.
    pub(super) const fn or(mut self, class: Class) -> Self {
        self.class = self.class.or(class);
        self
    }
    /// The assembler also accepts an operand of another class, which the manual does not mention.
    pub(super) const fn also(mut self, class: Class) -> Self {
        self.beyond = self.beyond.or(class);
        self.or(class)
    }
}

pub(super) const DA: &[Operand] = &[dst("d", T0), src("a", T0)];
pub(super) const DAB: &[Operand] = &[dst("d", T0), src("a", T0), src("b", T0)];
pub(super) const DABC: &[Operand] = &[dst("d", T0), src("a", T0), src("b", T0), src("c", T0)];
/// The cache policy that `.L2::cache_hint` requires.
pub(super) const POLICY: Operand = src("cache-policy", I64).with(&[L2CacheHint]);

// Rules.

pub(super) const fn has(any: &'static [Mod]) -> When {
    When { any, ..When::ALWAYS }
}
pub(super) const fn lacks(none: &'static [Mod]) -> When {
    When { none, ..When::ALWAYS }
}
pub(super) const fn on(types: TypeSet) -> When {
    When { first: types, ..When::ALWAYS }
}
pub(super) const fn on_second(types: TypeSet) -> When {
    When { second: types, ..When::ALWAYS }
}

impl When {
    pub(super) const fn lacks(mut self, none: &'static [Mod]) -> Self {
        self.none = none;
        self
    }
    pub(super) const fn on(mut self, types: TypeSet) -> Self {
        self.first = types;
        self
    }
    pub(super) const fn second(mut self, types: TypeSet) -> Self {
        self.second = types;
        self
    }
    /// The first type is one of these.
    pub(super) const fn types(self, types: TypeSet) -> Rule {
        self.types_at(0, types)
    }
    pub(super) const fn types_at(self, position: u8, types: TypeSet) -> Rule {
        Rule { when: self, then: Then::Types(position, types) }
    }
    pub(super) const fn needs(self, mods: &'static [Mod]) -> Rule {
        Rule { when: self, then: Then::Needs(mods) }
    }
    pub(super) const fn excludes(self, mods: &'static [Mod]) -> Rule {
        Rule { when: self, then: Then::Excludes(mods) }
    }
    pub(super) const fn same(self, a: u8, b: u8) -> Rule {
        Rule { when: self, then: Then::SameType(a, b) }
    }
    pub(super) const fn gate(self, gate: Gate) -> Rule {
        Rule { when: self, then: Then::Gate(gate) }
    }
    pub(super) const fn since(self, major: u8, minor: u8, sm: u16) -> Rule {
        self.gate(Gate::since(major, minor, sm))
    }
    /// At least one of these is present too.
    pub(super) const fn and(mut self, mods: &'static [Mod]) -> Self {
        self.and = mods;
        self
    }
    pub(super) const fn operand(self, name: &'static str, column: Column) -> Rule {
        Rule { when: self, then: Then::Operand(name, column) }
    }
    pub(super) const fn values(self, name: &'static str, values: Values) -> Rule {
        self.operand(name, Column::Values(values))
    }
    pub(super) const fn lanes(self, name: &'static str, lanes: Lanes) -> Rule {
        self.operand(name, Column::Lanes(lanes))
    }
}
