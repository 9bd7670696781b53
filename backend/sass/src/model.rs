//! The row types of the table: fields, operands, modifiers and forms.
//!
//! A [`Family`] is a row as the table files contain it: a mnemonic with all its operand shapes. [`crate::table`]
//! expands the families into [`Form`]s, one per encodable operand shape, and each form lists the place of every bit of
//! the word. Bits of a form that belong to no field are fixed. Decoding checks the fixed bits that another form of the
//! opcode uses and keeps the others, so that a decoded word encodes back to itself.

mod changes;

use crate::class::Class;
use crate::speed::Speed;
pub(crate) use changes::{Changes, SPECIAL_REGISTERS_SINCE, SPLIT_TARGET_SM, WIDE_UNIFORM_SM};

/// A generation of the hardware: 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120 or 121.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sm(pub u8);

impl Sm {
    /// Every generation that the table describes.
    pub const ALL: &'static [Sm] = &[
        Sm(75),
        Sm(80),
        Sm(86),
        Sm(87),
        Sm(88),
        Sm(89),
        Sm(90),
        Sm(100),
        Sm(103),
        Sm(110),
        Sm(120),
        Sm(121),
    ];

    /// Parses a name such as `sm_90`. The suffixes `a` and `f` are accepted and ignored, because they do not change the
    /// encoding.
    pub fn parse(text: &str) -> Option<Sm> {
        let digits = text.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
        let number = digits.parse().ok()?;
        Sm::ALL.contains(&Sm(number)).then_some(Sm(number))
    }

    /// The index in [`Sm::ALL`].
    pub(crate) const fn ordinal(self) -> Option<usize> {
        let mut i = 0;
        while i < Sm::ALL.len() {
            if Sm::ALL[i].0 == self.0 {
                return Some(i);
            }
            i += 1;
        }
        None
    }

    /// The number of URZ: the highest value of the field, which is wider from sm_100 on.
    pub const fn urz(self) -> u8 {
        if self.0 >= 100 { 255 } else { 63 }
    }
}

/// Index of a form in the expanded table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FormId(pub u16);

/// The role of a field in its form. An instruction has at most one field of each role.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Field {
    /// The guard predicate (7: always) and its negation.
    Guard,
    GuardNot,
    /// The register destination, or the first register of the destination.
    Rd,
    /// The second register destination.
    Rd2,
    /// The sources in the order of the text, whatever slot encodes them.
    Ra,
    Rb,
    Rc,
    Re,
    /// Uniform registers: the destination, the sources, the one that replaces a general register source, the base of an
    /// address, the descriptor of the global window.
    URd,
    URa,
    URb,
    URc,
    Ur,
    UrBase,
    UrDesc,
    /// The descriptor belongs to this access instead of the window.
    OwnDescriptor,
    /// Predicate destinations.
    Pd,
    Pq,
    /// Predicate sources with their negations.
    Pp,
    PpNot,
    Pr,
    PrNot,
    Ps,
    PsNot,
    /// Modifiers of sources.
    NegA,
    NegB,
    NegC,
    AbsA,
    AbsB,
    AbsC,
    /// Lanes of packed sources.
    SwizzleA,
    SwizzleB,
    SwizzleC,
    /// Format or layout words attached to a source (`.ROW`, `.F32`).
    LayoutA,
    LayoutB,
    /// The operand cache keeps the fourth source.
    KeepD,
    /// The immediate in the wide slot.
    Imm32,
    /// Further small immediates, in the order of the text.
    Imm2,
    Imm3,
    /// Constant operand: bank and byte offset.
    CBank,
    COffset,
    /// Byte offset of a memory operand.
    Offset,
    /// The branch target, in bytes relative to the next instruction.
    Target,
    /// Convergence barrier, scoreboard.
    Barrier,
    Scoreboard,
    /// Special register.
    Special,
    /// Truth tables.
    Lut,
    Lut2,
    /// The comparison, and the operator that combines it with a predicate.
    Cmp,
    Bool,
    /// Signedness, element types.
    Signed,
    Type,
    SrcType,
    SrcType2,
    Size,
    /// Arithmetic modifiers.
    Round,
    Ftz,
    Sat,
    Relu,
    Extend,
    Wrap,
    High,
    Right,
    Mode,
    Mode2,
    Op,
    /// Memory modifiers.
    Wide,
    Order,
    Scope,
    Evict,
    Prefetch,
    Scale,
    AddressWidth,
    Bypass,
    ZeroFill,
    /// Texture and surface modifiers: kind of texture, components, level of detail, texel offsets, uniform array index,
    /// comparison or sample, coordinates out of bounds.
    Dims,
    Mask,
    Lod,
    Offsets,
    Index,
    Compare,
    Clamp,
    /// Flags of control flow and other single-purpose bits.
    Flag,
    Flag2,
    Flag3,
}

/// How the bits of a field are interpreted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    Unsigned,
    /// Two's complement. One unit of the field is `scale` units of the value (4 for word offsets).
    Signed {
        scale: u8,
    },
    /// All bits inverted: zero means the highest value.
    Inverted,
    /// Unsigned, in units of `scale`.
    Scaled {
        scale: u8,
    },
    /// An index into texts. An empty text prints nothing; [`BAD`] marks values that the hardware does not have.
    Choice(&'static [&'static str]),
}

/// The text of a choice value that does not exist.
pub const BAD: &str = "\0";

/// One field of a form: its role, its bits, its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldSpec {
    pub field: Field,
    /// The lowest bit and the width of the low part.
    pub lo: u8,
    pub width: u8,
    /// The lowest bit and the width of the high part. The width is 0 for a contiguous field.
    pub high: (u8, u8),
    pub value: Value,
    /// The raw bits in a new instruction.
    pub neutral: u64,
    /// Raw values from this one on are invalid.
    pub limit: u64,
    /// Raw values from the first number on exist only from a generation on, which is the second number.
    pub since: (u64, u8),
    /// If one of these fields has the given value, this field has no meaning and is not printed.
    pub silent: &'static [(Field, u64)],
}

impl FieldSpec {
    /// An unsigned, contiguous field whose neutral value is zero.
    pub const fn new(field: Field, lo: u8, width: u8) -> FieldSpec {
        FieldSpec {
            field,
            lo,
            width,
            high: (0, 0),
            value: Value::Unsigned,
            neutral: 0,
            limit: u64::MAX,
            since: (0, 0),
            silent: &[],
        }
    }

    pub const fn value(mut self, value: Value) -> FieldSpec {
        self.value = value;
        self
    }

    pub const fn choice(mut self, texts: &'static [&'static str]) -> FieldSpec {
        self.value = Value::Choice(texts);
        self
    }

    pub const fn neutral(mut self, bits: u64) -> FieldSpec {
        self.neutral = bits;
        self
    }

    /// Restricts the values from `first` on to the generations from `sm` on.
    pub const fn since(mut self, first: u64, sm: u8) -> FieldSpec {
        self.since = (first, sm);
        self
    }

    /// Makes the field meaningless if another field has the given value.
    pub const fn silent(mut self, silent: &'static [(Field, u64)]) -> FieldSpec {
        self.silent = silent;
        self
    }

    /// Whether raw bits are a valid value.
    pub fn allows(&self, raw: u64) -> bool {
        (raw < self.limit || self.limit == u64::MAX)
            && match self.value {
                Value::Choice(texts) => texts.get(raw as usize).is_some_and(|&text| text != BAD),
                _ => true,
            }
    }

    /// Whether the field was added by a later generation than that of the form. The field then has only its first
    /// value.
    pub(crate) fn came_later(&self) -> bool {
        self.limit == 1
    }

    /// Adds the high part of the field, from bit `lo` on.
    pub const fn high(mut self, lo: u8, width: u8) -> FieldSpec {
        self.high = (lo, width);
        self
    }

    pub const fn bits(&self) -> u32 {
        self.width as u32 + self.high.1 as u32
    }

    /// The number of bits of the field's values.
    pub const fn value_bits(&self) -> u32 {
        match self.value {
            Value::Scaled { scale } | Value::Signed { scale } => self.bits() + scale.trailing_zeros(),
            _ => self.bits(),
        }
    }

    /// The bits of the word that the field takes.
    pub const fn mask(&self) -> u128 {
        ones(self.width) << self.lo | ones(self.high.1) << self.high.0
    }

    /// The raw bits of the field in a word.
    pub const fn extract(&self, word: u128) -> u64 {
        let low = word >> self.lo & ones(self.width);
        let high = word >> self.high.0 & ones(self.high.1);
        (low | high << self.width) as u64
    }

    /// Replaces the field's bits in a word. `raw` must not have more bits than the field.
    pub const fn insert(&self, word: u128, raw: u64) -> u128 {
        let raw = raw as u128;
        let low = (raw & ones(self.width)) << self.lo;
        let high = (raw >> self.width & ones(self.high.1)) << self.high.0;
        word & !self.mask() | low | high
    }

    /// The value of raw bits.
    pub const fn from_raw(&self, raw: u64) -> u64 {
        match self.value {
            Value::Unsigned | Value::Choice(_) => raw,
            Value::Signed { scale } => {
                let shift = 64 - self.bits();
                (((raw << shift) as i64 >> shift) as u64).wrapping_mul(scale as u64)
            }
            Value::Inverted => raw ^ (u64::MAX >> (64 - self.bits())),
            Value::Scaled { scale } => raw * scale as u64,
        }
    }

    /// The raw bits of a value. `None` if the field cannot hold the value.
    pub fn to_raw(&self, value: u64) -> Option<u64> {
        let raw = match self.value {
            Value::Unsigned => value,
            Value::Inverted => value ^ (u64::MAX >> (64 - self.bits())),
            Value::Choice(_) => self.allows(value).then_some(value)?,
            Value::Signed { scale } => {
                let value = value as i64;
                if value % i64::from(scale) != 0 {
                    return None;
                }
                let units = value / i64::from(scale);
                let limit = 1i64 << (self.bits() - 1);
                if units < -limit || units >= limit {
                    return None;
                }
                return Some(units as u64 & (u64::MAX >> (64 - self.bits())));
            }
            Value::Scaled { scale } => {
                if !value.is_multiple_of(u64::from(scale)) {
                    return None;
                }
                value / u64::from(scale)
            }
        };
        (self.bits() >= 64 || raw >> self.bits() == 0).then_some(raw)
    }

    /// The texts of a choice.
    pub const fn texts(&self) -> &'static [&'static str] {
        match self.value {
            Value::Choice(texts) => texts,
            _ => &[],
        }
    }
}

/// The lowest `width` bits.
pub const fn ones(width: u8) -> u128 {
    (1 << width) - 1
}

/// A register file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RegFile {
    R,
    P,
    UR,
    UP,
    /// Convergence barriers.
    B,
}

/// The purpose of a register operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    Dst,
    Guard,
    A,
    B,
    C,
    D,
    /// The address of a memory operand, its uniform base, its window descriptor.
    Address,
    Base,
    Descriptor,
    /// A stored value.
    Data,
    /// Predicate source: carry, selector, accumulated comparison.
    Carry,
}

/// The number of registers that an operand spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    Fixed(u8),
    /// Depends on the value of a field.
    By(Field, &'static [u8]),
    /// The product of two fields' counts.
    By2(Field, &'static [u8], Field, &'static [u8]),
    /// The sum of several fields' counts, without fields that the form lacks.
    Sum(&'static [(Field, &'static [u8])]),
    /// The count that a field's value selects, or else the first.
    Select(Field, &'static [Count]),
    /// A fixed number added to another count.
    Plus(u8, &'static Count),
    /// Another count; if a flag is set, at most the given number.
    AtMost(Field, u8, &'static Count),
    /// The first of two counts. If a flag is set, half of their sum, rounded up, but at most two.
    First(Field, &'static Count, &'static Count),
    /// The second of two counts. If a flag is set, their sum without the registers of [`Count::First`].
    Second(Field, &'static Count, &'static Count),
}

/// When an operand or a modifier is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Show {
    Always,
    /// If it does not have its neutral value.
    NotNeutral,
    /// If it does not have its neutral value, or if a field has the given value.
    NotNeutralOr(Field, u64),
    /// If a field has the given value.
    When(Field, u64),
    /// If a field does not have the given value.
    Unless(Field, u64),
    /// Never. The text does not show the bits.
    Never,
}

/// A register of any file as an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegOperand {
    pub file: RegFile,
    pub spec: FieldSpec,
    pub role: Role,
    pub count: Count,
    pub neg: Option<FieldSpec>,
    pub abs: Option<FieldSpec>,
    /// Prints `!` before predicates and `~` before registers. For registers, it replaces `-` if the field in
    /// `complement` is set.
    pub not: Option<FieldSpec>,
    /// The flag that makes `neg` a complement, printed as `~`.
    pub complement: Option<Field>,
    /// A fixed text after the name.
    pub text: &'static str,
    /// A choice whose text is printed after the name.
    pub suffix: Option<FieldSpec>,
    /// The text after the name is printed inside the magnitude bars.
    pub inside: bool,
    /// The operand's bit in [`crate::Control::reuse`].
    pub reuse: Option<u8>,
}

/// How an immediate is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImmStyle {
    /// `0xff`.
    Hex,
    /// `-0x1`.
    SignedHex,
    /// With a sign if the lowest bit of the field is set, which means a signed type.
    SignedBy(Field),
    /// 17.
    Decimal,
    /// As a single-precision number.
    F32,
    /// As a single-precision number, although it may be the high word of a double.
    HighWord,
    /// The high word of a double.
    F64,
    /// As a single-precision number, or as the high word of a double if the field is in the range.
    DoubleIn(Field, u64, u64),
    /// Two halves: `1, 0.5`, the high one second.
    F16x2,
    /// Two bfloat16.
    Bf16x2,
    /// Two halves, or two bfloat16 if the field has the given value.
    HalfBy(Field, u64),
    /// As [`ImmStyle::HalfBy`], but only the low half if the second field is set.
    HalfSum(Field, u64, Field),
    /// One half in the low bits, or a bfloat16 if the field has the given value.
    HalfWord(Field, u64),
    /// An unsigned hexadecimal byte in brackets.
    Bracketed,
}

/// `c[bank][offset]`, with an optional index register; or a constant whose bank is given by a handle in a uniform
/// register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConstOperand {
    pub bank: FieldSpec,
    pub offset: FieldSpec,
    pub index: Option<RegOperand>,
    /// `cx[UR][offset]`: the bank is a handle.
    pub handle: Option<FieldSpec>,
    pub neg: Option<FieldSpec>,
    pub abs: Option<FieldSpec>,
    pub suffix: Option<FieldSpec>,
    /// Fixed text after the operand.
    pub text: &'static str,
    pub complement: Option<Field>,
}

/// The descriptor of a global or generic access, in a pair of uniform registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    pub spec: FieldSpec,
    /// Set if the descriptor belongs to this access and holds a cache policy, and is not that of the window. Before
    /// sm_90, only such descriptors are printed.
    pub own: FieldSpec,
    /// The descriptor's register is the one after the field's register, or URZ after the last one. The field holds the
    /// base that precedes it.
    pub next: bool,
}

/// Whether a uniform base is printed if it is URZ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urz {
    Shown,
    /// Only with a 32-bit address.
    Beside32,
    Hidden,
}

/// `desc[UR][R.64+UR+offset]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemOperand {
    pub desc: Option<Descriptor>,
    pub reg: Option<RegOperand>,
    /// The uniform base, and the number of registers that it spans.
    pub ureg: Option<(FieldSpec, u8)>,
    pub urz: Urz,
    pub offset: Option<FieldSpec>,
}

/// `tmem[UR4+0x10].A_KEEP`: a descriptor in a uniform register. The register's suffix follows the bracket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandleOperand {
    pub word: &'static str,
    pub reg: RegOperand,
    pub offset: Option<FieldSpec>,
    /// The text shows the register after the field's register, or URZ if the field is URZ.
    pub next: bool,
}

/// Where a source is encoded that may be a register, an immediate, a constant or a uniform register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Bits 24–31.
    A,
    /// The wide slot from bit 32 on, or bits 64–71 if source C occupies the wide slot.
    B,
    /// Bits 64–71, or the wide slot if the source is not a general register.
    C,
    /// Always the wide slot.
    Wide,
    /// Always the wide slot, but in the role of the third source.
    WideC,
}

/// The modifiers of a slot. Their bits depend on where the source is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mods {
    None,
    Neg,
    NegAbs,
    /// `-`, or `~` if the field is set.
    NegOrNot(Field),
    /// Modifiers of a half source: sign, magnitude, lanes.
    Half,
    /// The same, and the lanes may also be those of the complex product with i.
    HalfTimesI,
    /// The same, but without magnitude if a field has the given value.
    HalfSum(&'static [(Field, u64)]),
    /// A half source without lanes.
    HalfWhole,
    /// Bitwise complement, at the bit of the sign.
    Not,
}

/// A source of a [`Family`]. The shape determines its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub role: Role,
    pub place: Place,
    pub mods: Mods,
    pub count: Count,
    pub imm: ImmStyle,
    /// A text after the source, unless [`Mods::Half`] prints one.
    pub suffix: Option<FieldSpec>,
    /// A fixed text after the source.
    pub text: &'static str,
}

/// How a branch distance is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetStyle {
    /// As an address, computed from the address of the next instruction.
    FromNext,
    /// As the signed value of the field.
    Plain,
    /// As the signed value of the field, or not at all if it is zero.
    Optional,
}

/// An operand in the text. It also determines how its fields are encoded, and what it reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// Occurs only in families.
    Slot(Slot),
    Reg(RegOperand),
    Imm(FieldSpec, ImmStyle),
    Const(ConstOperand),
    Mem(MemOperand),
    /// An address.
    Target(FieldSpec, TargetStyle),
    /// A register and a distance: `R2 -0x110`.
    RegTarget(RegOperand, FieldSpec, TargetStyle),
    /// One of several words.
    Word(FieldSpec),
    /// Always the same text.
    Literal(&'static str),
    /// `SB0`.
    Scoreboard(FieldSpec),
    /// `{5,4,3}`: a set of scoreboards as bits.
    ScoreboardSet(FieldSpec),
    /// `tmem[UR4+0x10]`, `gdesc[UR4].negA`, `idesc[UR5]`.
    Handle(HandleOperand),
    /// `PNZPPPPP`: two letters for each two bits, the lowest last.
    Signs(FieldSpec),
}

/// A piece of a form's text, in printing order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// A choice or a flag after the mnemonic.
    Mod(FieldSpec),
    /// A modifier that is printed only under a condition.
    ModIf(FieldSpec, Show),
    /// Fixed text after the mnemonic.
    Text(&'static str),
    /// A text after the mnemonic that depends on several fields: that of the first alternative whose conditions all
    /// hold.
    Alias(&'static [Alias]),
    Op(Operand),
    OpIf(Operand, Show),
    /// Bits that the text does not show.
    Hidden(FieldSpec),
}

/// An alternative of [`Piece::Alias`]: its text and the field values that select it.
pub type Alias = (&'static str, &'static [(Field, AliasValue)]);

/// A condition of an [`Alias`]. It does not hold where the form lacks the field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliasValue {
    Is(u64),
    Below(u64),
    /// A power of two in NVIDIA's sense, which excludes negative numbers and, for no known reason, 1 << 16.
    PowerOfTwo,
}

/// A mnemonic with its operand shapes, as in the table files.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name for [`crate::lookup`]. The part before its first dot is the mnemonic.
    pub name: &'static str,
    /// The nine low bits of the opcode if there are slots, otherwise all twelve bits.
    pub opcode: u16,
    /// The shapes, separated by blanks. `ri:2` gives the operand form where it is not the usual one.
    pub shapes: &'static str,
    /// The shape's name if there are no slots.
    pub label: &'static str,
    /// The first and the last generation.
    pub sm: (u8, u8),
    /// Further fixed bits that are one.
    pub ones: u128,
    /// As `ones`, but the bits have no meaning: NVIDIA's compiler sets them, and its disassembler ignores them.
    pub filled: u128,
    /// Bits that must be zero unless they belong to a field: NVIDIA's disassembler rejects words in which they are set.
    pub reserved: u128,
    pub guard: RegFile,
    pub class: Class,
    pub pieces: &'static [Piece],
    /// The generations at which the encoding of a piece changes.
    pub(crate) changes: Changes,
}

impl Family {
    pub const fn new(
        name: &'static str,
        opcode: u16,
        shapes: &'static str,
        class: Class,
        pieces: &'static [Piece],
    ) -> Family {
        Family {
            name,
            opcode,
            shapes,
            label: "",
            sm: (75, 255),
            ones: 0,
            filled: 0,
            reserved: 0,
            guard: RegFile::P,
            class,
            pieces,
            changes: Changes::of_all(pieces),
        }
    }

    /// Restricts the row to generations.
    pub const fn sm(mut self, first: u8, last: u8) -> Family {
        self.sm = (first, last);
        self
    }

    /// Names the shape of a row without slots.
    pub const fn labelled(mut self, label: &'static str) -> Family {
        self.label = label;
        self
    }

    /// Sets fixed bits.
    pub const fn ones(mut self, bits: u128) -> Family {
        self.ones = bits;
        self
    }

    /// Sets fixed bits that have no meaning.
    pub const fn filled(mut self, bits: u128) -> Family {
        self.filled = bits;
        self
    }

    /// Declares bits that must be zero.
    pub const fn reserved(mut self, bits: u128) -> Family {
        self.reserved = bits;
        self
    }

    /// Makes the guard a uniform predicate.
    pub const fn uniform(mut self) -> Family {
        self.guard = RegFile::UP;
        self
    }
}

/// One encodable form.
#[derive(Clone, Debug)]
pub struct Form {
    /// The name for [`crate::lookup`].
    pub name: &'static str,
    pub mnemonic: &'static str,
    pub shape: &'static str,
    pub sm: (u8, u8),
    /// The mask of the bits outside the fields, the guard and the control word, and the values of these bits.
    pub fixed_mask: u128,
    pub fixed: u128,
    /// Fixed bits that are one and have no meaning.
    pub filled: u128,
    /// Fixed bits that must be zero.
    pub reserved: u128,
    /// The word of a new instruction: fixed bits and neutral values.
    pub neutral: u128,
    pub guard: RegFile,
    pub class: Class,
    pub(crate) speed: Speed,
    pub pieces: Box<[&'static Piece]>,
    /// All fields including the guard, in the order of the text.
    pub fields: Vec<FieldSpec>,
    pub(crate) places: Places,
}

/// The index in [`Form::fields`] of each role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Places([u8; Places::ROLES]);

impl Places {
    /// The size of the array, at least the number of [`Field`]s.
    const ROLES: usize = 128;
    const ABSENT: u8 = u8::MAX;

    pub(crate) fn of(fields: &[FieldSpec]) -> Places {
        let mut places = [Places::ABSENT; Places::ROLES];
        // If a role occurs twice, the first field counts.
        for (place, spec) in fields.iter().enumerate().rev() {
            places[spec.field as usize] = place as u8;
        }
        Places(places)
    }
}

impl Form {
    pub fn spec(&self, field: Field) -> Option<&FieldSpec> {
        self.fields.get(usize::from(self.places.0[field as usize]))
    }

    pub fn holds_for(&self, sm: Sm) -> bool {
        self.sm.0 <= sm.0 && sm.0 <= self.sm.1
    }

    /// The form's operands in the order of the text.
    pub fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Op(operand) | Piece::OpIf(operand, _) => Some(operand),
            _ => None,
        })
    }
}

impl RegOperand {
    pub const fn new(file: RegFile, spec: FieldSpec, role: Role) -> RegOperand {
        RegOperand {
            file,
            spec,
            role,
            count: Count::Fixed(1),
            neg: None,
            abs: None,
            not: None,
            complement: None,
            text: "",
            suffix: None,
            inside: !matches!(file, RegFile::R),
            reuse: None,
        }
    }

    fn each_field(&self, visit: &mut dyn FnMut(&FieldSpec)) {
        visit(&self.spec);
        [&self.neg, &self.abs, &self.not, &self.suffix].into_iter().flatten().for_each(visit);
    }
}

impl Operand {
    /// Calls `visit` for each field of the operand.
    pub fn each_field(&self, visit: &mut dyn FnMut(&FieldSpec)) {
        match self {
            Operand::Slot(_) | Operand::Literal(_) => {}
            Operand::Reg(reg) => reg.each_field(visit),
            Operand::Handle(handle) => {
                handle.reg.each_field(visit);
                handle.offset.iter().for_each(visit);
            }
            Operand::Imm(spec, _)
            | Operand::Target(spec, _)
            | Operand::Word(spec)
            | Operand::Scoreboard(spec)
            | Operand::ScoreboardSet(spec)
            | Operand::Signs(spec) => visit(spec),
            Operand::RegTarget(reg, spec, _) => {
                reg.each_field(visit);
                visit(spec);
            }
            Operand::Const(c) => {
                match &c.handle {
                    Some(handle) => visit(handle),
                    None => visit(&c.bank),
                }
                visit(&c.offset);
                if let Some(index) = &c.index {
                    index.each_field(visit);
                }
                [&c.neg, &c.abs, &c.suffix].into_iter().flatten().for_each(visit);
            }
            Operand::Mem(mem) => {
                if let Some(desc) = &mem.desc {
                    visit(&desc.spec);
                    visit(&desc.own);
                }
                if let Some(reg) = &mem.reg {
                    reg.each_field(visit);
                }
                if let Some((ureg, _)) = &mem.ureg {
                    visit(ureg);
                }
                if let Some(offset) = &mem.offset {
                    visit(offset);
                }
            }
        }
    }
}

impl Piece {
    /// Calls `visit` for each field of the piece.
    pub fn each_field(&self, visit: &mut dyn FnMut(&FieldSpec)) {
        match self {
            Piece::Mod(spec) | Piece::ModIf(spec, _) | Piece::Hidden(spec) => visit(spec),
            Piece::Op(operand) | Piece::OpIf(operand, _) => operand.each_field(visit),
            Piece::Text(_) | Piece::Alias(_) => {}
        }
    }
}
