//! Scalar and packed types, their sizes, and state spaces.

macro_rules! scalar_types {
    ($($name:ident $text:literal $bits:literal $kind:ident $($free:ident)?;)*) => {
        /// A type suffix: `.u32`, `.f16x2`, `.pred`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum ScalarType { $($name),* }

        impl ScalarType {
            pub const ALL: &'static [ScalarType] = &[$(ScalarType::$name),*];

            /// The name without its dot.
            pub const fn text(self) -> &'static str {
                match self { $(ScalarType::$name => $text),* }
            }

            /// Size in bits. `.pred` has 1 bit, and sub-byte types have their own width.
            pub const fn bits(self) -> u32 {
                match self { $(ScalarType::$name => $bits),* }
            }

            pub const fn kind(self) -> TypeKind {
                match self { $(ScalarType::$name => TypeKind::$kind),* }
            }

            /// Parses a name without its dot.
            pub fn parse(text: &str) -> Option<Self> {
                match crate::opcode::Suffix::parse(text) { Some(crate::opcode::Suffix::Type(ty)) => Some(ty), _ => None }
            }

            /// Whether the word is a type only in some instructions, and an ordinary word elsewhere.
            pub const fn is_free(self) -> bool {
                match self { $(ScalarType::$name => crate::opcode::is_free!($($free)?)),* }
            }
        }
    };
}

/// The fundamental kind of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    Bits,
    Unsigned,
    Signed,
    Float,
    /// Several floating-point numbers or integers in one register: `.f16x2`, `.e4m3x2`.
    Packed,
    Pred,
    /// `.texref`, `.samplerref`, `.surfref`.
    Opaque,
}

scalar_types! {
    Pred "pred" 1 Pred;
    B8 "b8" 8 Bits;
    B16 "b16" 16 Bits;
    B32 "b32" 32 Bits;
    B64 "b64" 64 Bits;
    B128 "b128" 128 Bits;
    U8 "u8" 8 Unsigned;
    U16 "u16" 16 Unsigned;
    U32 "u32" 32 Unsigned;
    U64 "u64" 64 Unsigned;
    S8 "s8" 8 Signed;
    S16 "s16" 16 Signed;
    S32 "s32" 32 Signed;
    S64 "s64" 64 Signed;
    F16 "f16" 16 Float;
    F32 "f32" 32 Float;
    F64 "f64" 64 Float;
    Bf16 "bf16" 16 Float;
    Tf32 "tf32" 32 Float free;
    F16x2 "f16x2" 32 Packed;
    Bf16x2 "bf16x2" 32 Packed;
    F32x2 "f32x2" 64 Packed;
    U16x2 "u16x2" 32 Packed;
    S16x2 "s16x2" 32 Packed;
    U8x4 "u8x4" 32 Packed free;
    S8x4 "s8x4" 32 Packed free;
    E4m3 "e4m3" 8 Float;
    E5m2 "e5m2" 8 Float;
    E2m1 "e2m1" 4 Float free;
    E2m3 "e2m3" 6 Float free;
    E3m2 "e3m2" 6 Float free;
    Ue8m0 "ue8m0" 8 Float free;
    Ue4m3 "ue4m3" 8 Float free;
    E4m3x2 "e4m3x2" 16 Packed;
    E5m2x2 "e5m2x2" 16 Packed;
    E2m1x2 "e2m1x2" 8 Packed;
    E2m3x2 "e2m3x2" 16 Packed;
    E3m2x2 "e3m2x2" 16 Packed;
    Ue8m0x2 "ue8m0x2" 16 Packed;
    S2f6x2 "s2f6x2" 16 Packed free;
    Ue5m3x2 "ue5m3x2" 16 Packed free;
    E4m3x4 "e4m3x4" 32 Packed;
    E5m2x4 "e5m2x4" 32 Packed;
    E2m1x4 "e2m1x4" 16 Packed;
    E2m3x4 "e2m3x4" 32 Packed;
    E3m2x4 "e3m2x4" 32 Packed;
    Ue8m0x4 "ue8m0x4" 32 Packed;
    B1 "b1" 1 Bits free;
    U4 "u4" 4 Unsigned;
    S4 "s4" 4 Signed;
    U2 "u2" 2 Unsigned;
    S2 "s2" 2 Signed;
    B2 "b2" 2 Bits free;
    B4 "b4" 4 Bits free;
    B4x16 "b4x16" 64 Packed free;
    B6x16P32 "b6x16_p32" 128 Packed free;
    B4x16P64 "b4x16_p64" 128 Packed free;
    B8x16 "b8x16" 128 Packed free;
    TexRef "texref" 64 Opaque;
    SamplerRef "samplerref" 64 Opaque;
    SurfRef "surfref" 64 Opaque;
}

impl ScalarType {
    /// Size in memory, in bytes. Sub-byte types and predicates take one byte.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), TypeKind::Signed)
    }
}

/// A set of types, one bit each in the order of [`ScalarType::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TypeSet(pub u64);

impl TypeSet {
    pub const ALL: TypeSet = TypeSet((1 << ScalarType::ALL.len()) - 1);

    pub const fn of(types: &[ScalarType]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < types.len() {
            bits |= 1 << types[i] as u32;
            i += 1;
        }
        Self(bits)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn contains(self, ty: ScalarType) -> bool {
        self.0 >> ty as u32 & 1 != 0
    }

    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = ScalarType> {
        ScalarType::ALL.iter().copied().filter(move |&t| self.contains(t))
    }
}

/// The memory that a variable or an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// No space named: the generic window.
    Generic,
    Reg,
    Const,
    Global,
    Local,
    /// `.param`: the parameters of an entry are in constant memory and read-only; those of a function are in its frame.
    Param,
    Shared,
}
