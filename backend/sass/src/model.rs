//! The row types of the table: fields, operands, modifiers and forms.
//!
//! A [`Family`] is what is written down: a mnemonic with all its operand shapes. [`crate::table`] expands the
//! families into [`Form`]s, one per encodable operand shape, and each form lists where every bit of the word
//! goes. Bits of a form that belong to no field are fixed. Decoding holds a word to those that another form of the
//! opcode uses and keeps the others, so that it is exact: a word that has a form encodes back to itself.

use crate::class::Class;
use crate::speed::Speed;

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

    /// From `sm_90`; the suffixes `a` and `f` are accepted and ignored, since they encode alike.
    pub fn parse(text: &str) -> Option<Sm> {
        let digits = text.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
        let number = digits.parse().ok()?;
        Sm::ALL.contains(&Sm(number)).then_some(Sm(number))
    }

    /// The index in [`Sm::ALL`].
    pub(crate) fn ordinal(self) -> Option<usize> {
        Sm::ALL.iter().position(|&sm| sm == self)
    }

    /// The value that means URZ: the highest of the field, which grew with sm_100.
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
    /// Guard predicate (7: always) and its negation.
    Guard,
    GuardNot,
    /// Register destination, or the register pair's first.
    Rd,
    /// Second register destination.
    Rd2,
    /// Sources in the order of the text, in whichever slot they are encoded.
    Ra,
    Rb,
    Rc,
    Re,
    /// Uniform registers: destination, sources, the one in the place of a register source, base of an address,
    /// descriptor of the global window.
    URd,
    URa,
    URb,
    URc,
    Ur,
    UrBase,
    UrDesc,
    /// The descriptor is the access's own.
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
    /// The operand cache keeps a fourth source.
    KeepD,
    /// Immediate in the wide slot.
    Imm32,
    /// Further small immediates, in the order of the text.
    Imm2,
    Imm3,
    /// Constant operand: bank and byte offset.
    CBank,
    COffset,
    /// Byte offset of a memory operand.
    Offset,
    /// Branch target: bytes relative to the next instruction.
    Target,
    /// Convergence barrier, scoreboard.
    Barrier,
    Scoreboard,
    /// Special register.
    Special,
    /// Truth tables.
    Lut,
    Lut2,
    /// Comparison, and how it combines.
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
    /// Texture and surface modifiers: kind of texture, components, level of detail, texel offsets, uniform array
    /// index, comparison or sample, coordinates outside.
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

/// How a field's bits are read as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    Unsigned,
    /// Two's complement; `scale` units of the value per unit of the field (4 for word offsets).
    Signed {
        scale: u8,
    },
    /// All bits complemented: zero stands for the highest value.
    Inverted,
    /// Unsigned in units of `scale`.
    Scaled {
        scale: u8,
    },
    /// An index into texts. An empty text prints nothing; [`BAD`] marks values that the hardware lacks.
    Choice(&'static [&'static str]),
}

/// The text of a choice value that does not exist.
pub const BAD: &str = "\0";

/// One field of a form: its role, its bits, its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldSpec {
    pub field: Field,
    /// Lowest bit and width of the low part.
    pub lo: u8,
    pub width: u8,
    /// Lowest bit and width of the high part; width 0 where the field is in one piece.
    pub high: (u8, u8),
    pub value: Value,
    /// Raw bits in a new instruction.
    pub neutral: u64,
    /// Raw values from this one on do not exist.
    pub limit: u64,
    /// Raw values from the first on exist only since the second, a generation.
    pub since: (u64, u8),
    /// Where a field has such a value the bits mean nothing, and the text does not tell them.
    pub silent: &'static [(Field, u64)],
}

impl FieldSpec {
    /// An unsigned field in one piece whose neutral value is zero.
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

    /// Leaves the field out of the text where another has such a value.
    pub const fn silent(mut self, silent: &'static [(Field, u64)]) -> FieldSpec {
        self.silent = silent;
        self
    }

    /// Whether raw bits stand for a value that exists.
    pub fn allows(&self, raw: u64) -> bool {
        (raw < self.limit || self.limit == u64::MAX)
            && match self.value {
                Value::Choice(texts) => texts.get(raw as usize).is_some_and(|&text| text != BAD),
                _ => true,
            }
    }

    /// Whether the field came with a later generation than the form's: it has its first value only.
    pub(crate) fn came_later(&self) -> bool {
        self.limit == 1
    }

    /// Continues the field in the bits from `lo` on.
    pub const fn high(mut self, lo: u8, width: u8) -> FieldSpec {
        self.high = (lo, width);
        self
    }

    pub const fn bits(&self) -> u32 {
        self.width as u32 + self.high.1 as u32
    }

    /// The bits that a value of the field has.
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

    /// The word with the field's bits replaced; `raw` has no more bits than the field.
    pub const fn insert(&self, word: u128, raw: u64) -> u128 {
        let raw = raw as u128;
        let low = (raw & ones(self.width)) << self.lo;
        let high = (raw >> self.width & ones(self.high.1)) << self.high.0;
        word & !self.mask() | low | high
    }

    /// The value that raw bits stand for.
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

    /// The raw bits for a value, where the field can hold it.
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

/// What an instruction uses a register for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    Dst,
    Guard,
    A,
    B,
    C,
    D,
    /// Address of a memory operand, its uniform base, its window descriptor.
    Address,
    Base,
    Descriptor,
    /// Stored value.
    Data,
    /// Predicate source: carry, selector, accumulated comparison.
    Carry,
}

/// Registers that an operand spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    Fixed(u8),
    /// By the value of a field.
    By(Field, &'static [u8]),
    /// By the product of two fields' counts.
    By2(Field, &'static [u8], Field, &'static [u8]),
    /// By the sum of several fields' counts; a field that the form lacks counts nothing.
    Sum(&'static [(Field, &'static [u8])]),
    /// The count that a field's value selects, else the first.
    Select(Field, &'static [Count]),
    /// A number more than another count.
    Plus(u8, &'static Count),
    /// Another count, where a flag is set at most so many.
    AtMost(Field, u8, &'static Count),
    /// The first of two counts; if a flag is set, half of their sum, rounded up, at most two.
    First(Field, &'static Count, &'static Count),
    /// The rest of the sum of the two counts.
    Second(Field, &'static Count, &'static Count),
}

/// When an operand or a modifier is part of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Show {
    Always,
    /// Unless it has its neutral value.
    NotNeutral,
    /// The same, and in any case where a field has a value.
    NotNeutralOr(Field, u64),
    /// Where a field has a value.
    When(Field, u64),
    /// Where a field has another value.
    Unless(Field, u64),
    /// Never: bits that the text does not tell.
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
    /// `!` for predicates; `~` for registers, if the field `complement` names is set it replaces `-`.
    pub not: Option<FieldSpec>,
    /// The flag under which `neg` complements: it prints `~`.
    pub complement: Option<Field>,
    /// Fixed text after the name.
    pub text: &'static str,
    /// Text after the name, a choice.
    pub suffix: Option<FieldSpec>,
    /// What follows the name appears between the bars of a magnitude.
    pub inside: bool,
    /// Bit of [`crate::Control::reuse`].
    pub reuse: Option<u8>,
}

/// How an immediate prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImmStyle {
    /// `0xff`.
    Hex,
    /// `-0x1`.
    SignedHex,
    /// With a sign where the lowest bit of the field is set, which tells a signed type.
    SignedBy(Field),
    /// 17.
    Decimal,
    /// As a float.
    F32,
    /// As a float, though it may be the high word of a double.
    HighWord,
    /// The high word of a double.
    F64,
    /// As a float, or the high word of a double where the field is in the range.
    DoubleIn(Field, u64, u64),
    /// Two halves: `1, 0.5`, the high one second.
    F16x2,
    /// Two bfloat16.
    Bf16x2,
    /// Two halves or, where the field has the value, bfloat16.
    HalfBy(Field, u64),
    /// As [`ImmStyle::HalfBy`]; where the second field is set, only the low one.
    HalfSum(Field, u64, Field),
    /// One half in the low bits or, where the field has the value, bfloat16.
    HalfWord(Field, u64),
    /// Single-digit flag texts are not needed here: a plain hexadecimal byte without sign in brackets.
    Bracketed,
}

/// `c[bank][offset]`, possibly indexed by a register or through a uniform-register handle.
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

/// The descriptor of a global or generic access, a pair of uniform registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    pub spec: FieldSpec,
    /// Set where it describes this access, with a cache policy, and not the window. Before sm_90 the text shows
    /// the register only then.
    pub own: FieldSpec,
    /// The register is the one after the field's, URZ after the last; the field is that of a base before it.
    pub next: bool,
}

/// Whether a uniform base shows that is URZ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urz {
    Shown,
    /// Beside an address of 32 bits only.
    Beside32,
    Hidden,
}

/// `desc[UR][R.64+UR+offset]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemOperand {
    pub desc: Option<Descriptor>,
    pub reg: Option<RegOperand>,
    /// Uniform base and the registers it spans.
    pub ureg: Option<(FieldSpec, u8)>,
    pub urz: Urz,
    pub offset: Option<FieldSpec>,
}

/// `tmem[UR4+0x10].A_KEEP`: what a uniform register describes. The register's suffix follows the bracket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandleOperand {
    pub word: &'static str,
    pub reg: RegOperand,
    pub offset: Option<FieldSpec>,
    /// The register in the text is the one after the field's, URZ after itself.
    pub next: bool,
}

/// Where a source that may be a register, an immediate, a constant or a uniform register is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Bits 24–31.
    A,
    /// The wide slot from bit 32, or bits 64–71 where that holds C.
    B,
    /// Bits 64–71, or the wide slot where it is not a register.
    C,
    /// Always the wide slot.
    Wide,
    /// Always the wide slot, in the role of the third source.
    WideC,
}

/// Modifiers a slot takes; their bits follow from where the source is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mods {
    None,
    Neg,
    NegAbs,
    /// `-`, or `~` when the field is set.
    NegOrNot(Field),
    /// Half: sign, magnitude, lanes.
    Half,
    /// The same, and the halves of a complex number may be those of its product with i.
    HalfTimesI,
    /// The same, but where the field has the value there is no magnitude.
    HalfSum(&'static [(Field, u64)]),
    /// Half without lanes.
    HalfWhole,
    /// Bitwise complement at the place of the sign.
    Not,
}

/// A source of a [`Family`], to be expanded by the shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub role: Role,
    pub place: Place,
    pub mods: Mods,
    pub count: Count,
    pub imm: ImmStyle,
    /// Text after the source, unless [`Mods::Half`] has its own.
    pub suffix: Option<FieldSpec>,
    /// Fixed text after the source.
    pub text: &'static str,
}

/// How a branch distance prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetStyle {
    /// The address that the distance from the next instruction leads to.
    FromNext,
    /// The field itself, signed.
    Plain,
    /// The same, and nothing where it is zero.
    Optional,
}

/// An operand in the text, which also tells how its fields are encoded and what it reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// Only in families.
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

/// An element of a form's text, in the order of printing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// A choice or a flag after the mnemonic.
    Mod(FieldSpec),
    /// A modifier that is only shown under a condition.
    ModIf(FieldSpec, Show),
    /// Fixed text after the mnemonic.
    Text(&'static str),
    /// Text after the mnemonic that field values imply: of the first alternative whose conditions all hold.
    Alias(&'static [Alias]),
    Op(Operand),
    OpIf(Operand, Show),
    /// Bits that the text does not tell.
    Hidden(FieldSpec),
}

/// An alternative of [`Piece::Alias`]: its text and the field values that imply it.
pub type Alias = (&'static str, &'static [(Field, AliasValue)]);

/// A condition of an [`Alias`]. It does not hold where the form lacks the field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliasValue {
    Is(u64),
    Below(u64),
    /// A power of two as NVIDIA counts them for shifts: positive, and for no known reason not 1 << 16.
    PowerOfTwo,
}

/// A mnemonic with its operand shapes, as the table files write it.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name for [`crate::lookup`]; what precedes its first dot is the mnemonic.
    pub name: &'static str,
    /// Nine bits of base where there are slots, else the twelve bits of the opcode.
    pub opcode: u16,
    /// Blank-separated shapes; `ri:2` names the operand form where it differs from the usual one.
    pub shapes: &'static str,
    /// The shape's name where there are no slots.
    pub label: &'static str,
    /// First and last generation.
    pub sm: (u8, u8),
    /// Further fixed bits that are one.
    pub ones: u128,
    /// As `ones`, and the bits mean nothing: NVIDIA's compiler sets them, and its disassembler does not look.
    pub filled: u128,
    /// Bits that are zero where they belong to no field: NVIDIA's disassembler refuses words where they are not.
    pub reserved: u128,
    pub guard: RegFile,
    pub class: Class,
    pub pieces: &'static [Piece],
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

    /// Sets fixed bits that mean nothing.
    pub const fn filled(mut self, bits: u128) -> Family {
        self.filled = bits;
        self
    }

    /// Names bits that must be zero.
    pub const fn reserved(mut self, bits: u128) -> Family {
        self.reserved = bits;
        self
    }

    /// The guard is a uniform predicate.
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
    /// Bits outside the fields, the guard and the control word, and their values.
    pub fixed_mask: u128,
    pub fixed: u128,
    /// Fixed bits that mean nothing.
    pub filled: u128,
    /// Fixed bits that no word has set.
    pub reserved: u128,
    /// The word of a new instruction: fixed bits and neutral values.
    pub neutral: u128,
    pub guard: RegFile,
    pub class: Class,
    pub(crate) speed: Speed,
    pub pieces: Box<[&'static Piece]>,
    /// Every field, guard included, in the order of the text.
    pub fields: Vec<FieldSpec>,
    pub(crate) places: Places,
}

/// Where in [`Form::fields`] each role is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Places([u8; Places::ROLES]);

impl Places {
    /// Room for every [`Field`].
    const ROLES: usize = 128;
    const ABSENT: u8 = u8::MAX;

    pub(crate) fn of(fields: &[FieldSpec]) -> Places {
        let mut places = [Places::ABSENT; Places::ROLES];
        // The first of a role counts.
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
    /// Visits the operand's fields.
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
    /// Visits the piece's fields.
    pub fn each_field(&self, visit: &mut dyn FnMut(&FieldSpec)) {
        match self {
            Piece::Mod(spec) | Piece::ModIf(spec, _) | Piece::Hidden(spec) => visit(spec),
            Piece::Op(operand) | Piece::OpIf(operand, _) => operand.each_field(visit),
            Piece::Text(_) | Piece::Alias(_) => {}
        }
    }
}
