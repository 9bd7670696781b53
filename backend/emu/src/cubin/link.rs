//! The work of a linker: places variables in shared memory, and inserts addresses into instructions.
//!
//! Source: `cuobjdump -elf` for the names of relocations, and the results of nvlink 13.0 for code of ptxas with each of
//! them.

use super::{CubinError, Section, broken};
use gpu_files::elf::{SHARED, Symbol};
use sass::{Field, Inst, Sm};

/// The place of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SymbolPlace {
    /// A generic address, or an address of code.
    Address(u64),
    /// An address in shared memory, relative to the end of the area that the target reserves.
    Shared(u64),
    Constant {
        bank: u8,
        offset: u64,
    },
    /// A value that the linker knows, such as the size of a bank.
    Number(u64),
}

impl SymbolPlace {
    pub(super) fn plus(self, addend: u64) -> SymbolPlace {
        match self {
            SymbolPlace::Address(address) => SymbolPlace::Address(address.wrapping_add(addend)),
            SymbolPlace::Shared(address) => SymbolPlace::Shared(address.wrapping_add(addend)),
            SymbolPlace::Constant { bank, offset } => {
                SymbolPlace::Constant { bank, offset: offset.wrapping_add(addend) }
            }
            SymbolPlace::Number(number) => SymbolPlace::Number(number.wrapping_add(addend)),
        }
    }

    fn number(self) -> u64 {
        match self {
            SymbolPlace::Address(number) | SymbolPlace::Shared(number) | SymbolPlace::Number(number) => {
                number
            }
            SymbolPlace::Constant { offset, .. } => offset,
        }
    }
}

/// R_CUDA_64.
pub(super) const ADDRESS64: u32 = 2;
/// The same, as a generic address in initial values.
pub(super) const GENERIC64: u32 = 4;
/// R_CUDA_UNIFIED: the address of a function in memory.
pub(super) const FUNCTION64: u32 = 102;

/// The bits of an instruction that a number is inserted into.
struct Bits {
    low: u32,
    count: u32,
}

const WIDE: Bits = Bits { low: 32, count: 32 };
const BANK: Bits = Bits { low: 54, count: 5 };

/// What a relocation changes.
enum Change {
    Nothing,
    /// Bits of an address. The given number of its lower bits is left out.
    Address(Bits, u32),
    /// An offset as a multiple of the given number, and the number of its bank.
    Constant(Bits, u64),
    /// An offset in bank 0 as a multiple of the given number.
    Offset(Bits, u64),
    /// The target of a call.
    Target,
}

fn change(kind: u32) -> Option<Change> {
    Some(match kind {
        // ABS32_32, ABS32_LO_32 and UNIFIED32_LO_32; ABS32_HI_32 and UNIFIED32_HI_32.
        55 | 56 | 112 => Change::Address(WIDE, 0),
        57 | 113 => Change::Address(WIDE, 32),
        // ABS47_34, ABS55_16_34.
        58 | 75 => Change::Target,
        // ABS16_32.
        59 => Change::Address(Bits { low: 32, count: 16 }, 0),
        // CONST_FIELD19_40, CONST_FIELD21_38, CONST_FIELD22_37: offset and bank.
        64 => Change::Constant(Bits { low: 40, count: 14 }, 4),
        66 => Change::Constant(Bits { low: 38, count: 16 }, 1),
        115 => Change::Constant(Bits { low: 37, count: 17 }, 1),
        // BINDLESSOFF14_40: the word with the handle of a texture or surface.
        65 => Change::Offset(Bits { low: 40, count: 14 }, 4),
        // YIELD_OPCODE9_0 and YIELD_CLEAR_PRED4_87 say how a yield can be turned into an instruction without effect,
        // which nvlink leaves to other tools. ABS56_16_34 belongs to an addend of a function's address, which is zero
        // here.
        68 | 69 | 114 => Change::Nothing,
        // ABS24_40, ABS20_44.
        74 => Change::Address(Bits { low: 40, count: 24 }, 0),
        100 => Change::Address(Bits { low: 44, count: 20 }, 0),
        _ => return None,
    })
}

/// TEX_HEADER_INDEX, SAMP_HEADER_INDEX, SURF_HEADER_INDEX and SAMP_HEADER_INDEX_0.
pub(super) fn is_handle(kind: u32) -> bool {
    matches!(kind, 6 | SAMPLER | 52 | 101)
}

/// The relocation that inserts a sampler's index above a texture's index.
const SAMPLER: u32 = 7;

/// The bits that one of these relocations inserts into a word.
pub(super) fn handle_bits(kind: u32, handle: u64) -> u64 {
    if kind == SAMPLER { handle << crate::texture::SAMPLER_SHIFT } else { handle }
}

/// Places a word in bank 0, after the parameters, for each handle that code of an object reads. Returns the places by
/// symbol.
pub(super) fn place_handles(
    symbols: &[Symbol<'_>],
    used: impl Iterator<Item = usize>,
    parameters: u64,
) -> Vec<(usize, u64)> {
    let mut used: Vec<usize> = used.filter(|&symbol| is_bound(&symbols[symbol])).collect();
    used.sort_unstable();
    used.dedup();
    used.into_iter().zip((parameters.next_multiple_of(4)..).step_by(4)).collect()
}

/// Whether a symbol is a texture, sampler or surface variable.
fn is_bound(symbol: &Symbol<'_>) -> bool {
    /// STT_CUDA_TEXTURE and STT_CUDA_SURFACE.
    const KINDS: [u8; 3] = [10, SAMPLER_SYMBOL, 12];
    KINDS.contains(&(symbol.info & 0xf))
}

/// STT_CUDA_SAMPLER.
const SAMPLER_SYMBOL: u8 = 11;

/// The relocation with which a linker has the driver write a handle to its own word. On targets whose instructions take
/// handles in uniform registers, that of a sampler is not shifted.
pub(super) fn handle_relocation(sm: Sm, symbol: &Symbol<'_>) -> u32 {
    let target = ptx_backend::target::Target::of_generation(sm);
    match symbol.info & 0xf {
        SAMPLER_SYMBOL if target.is_some_and(|target| !target.uniform_handles) => SAMPLER,
        SAMPLER_SYMBOL => 101,
        _ => 6,
    }
}

/// Whether a relocation of code changes nothing.
pub(super) fn changes_nothing(kind: u32) -> bool {
    matches!(change(kind), Some(Change::Nothing))
}

/// Inserts a place into an instruction.
pub(super) fn relocate(sm: Sm, word: u128, kind: u32, place: SymbolPlace) -> Result<u128, CubinError> {
    let wrong = || CubinError(format!("the relocation {kind} of the word {word:#034x} to {place:?}"));
    let put = |word: u128, bits: Bits, value: u64| {
        let mask = (1u128 << bits.count) - 1;
        let fits = u128::from(value) <= mask || (value as i64) < 0 && value as i64 >> (bits.count - 1) == -1;
        fits.then_some(word & !(mask << bits.low) | (u128::from(value) & mask) << bits.low).ok_or_else(wrong)
    };
    match change(kind).ok_or_else(wrong)? {
        Change::Nothing => Ok(word),
        Change::Address(bits, 0) if bits.count == 32 => put(word, bits, place.number() & 0xffff_ffff),
        Change::Address(bits, skipped) => put(word, bits, place.number() >> skipped),
        Change::Constant(bits, unit) => {
            let SymbolPlace::Constant { bank, offset } = place else { return Err(wrong()) };
            if !offset.is_multiple_of(unit) {
                return Err(wrong());
            }
            put(word, bits, (offset as i64 / unit as i64) as u64)
                .and_then(|word| put(word, BANK, bank.into()))
        }
        Change::Offset(bits, unit) => match place {
            SymbolPlace::Constant { bank: 0, offset } if offset.is_multiple_of(unit) => {
                put(word, bits, offset / unit)
            }
            _ => Err(wrong()),
        },
        Change::Target => {
            let mut inst: Inst = sass::decode(sm, word).ok_or_else(wrong)?;
            inst.set(Field::Target, place.number());
            sass::encode(sm, &inst).map_err(|_| wrong())
        }
    }
}

/// Whether a symbol is a shared memory variable without an address. The value of such a symbol is its alignment.
fn is_shared(symbol: &Symbol<'_>, sections: &[Section<'_>]) -> bool {
    /// The bits of a symbol that give its state space, and their value for shared memory.
    const SPACE: u8 = 0xe0;
    const SPACE_SHARED: u8 = 0x40;
    match symbol.section {
        0 => symbol.other & SPACE == SPACE_SHARED,
        section => sections.get(section).is_some_and(|section| section.kind == SHARED),
    }
}

/// Places all shared memory symbols that have no address yet. Returns their places and their total size. Symbols
/// without a size share the place after the others.
pub(super) fn place_shared(
    sections: &[Section<'_>],
    symbols: &[Symbol<'_>],
    used: impl Iterator<Item = usize>,
) -> Result<(Vec<(usize, u64)>, u32), CubinError> {
    /// The minimum alignment of dynamic shared memory.
    const DYNAMIC_ALIGN: u64 = 128;
    let mut used: Vec<usize> = used.filter(|&symbol| is_shared(&symbols[symbol], sections)).collect();
    used.sort_unstable();
    used.dedup();
    let mut places = Vec::new();
    let mut end = 0u64;
    for &symbol in used.iter().filter(|&&symbol| symbols[symbol].size > 0) {
        let align = symbols[symbol].value.max(1);
        let start = end.checked_next_multiple_of(align).ok_or_else(broken)?;
        end = start
            .checked_add(symbols[symbol].size)
            .filter(|&end| end <= u32::MAX.into())
            .ok_or_else(broken)?;
        places.push((symbol, start));
    }
    let dynamic: Vec<usize> = used.into_iter().filter(|&symbol| symbols[symbol].size == 0).collect();
    if !dynamic.is_empty() {
        end = end.next_multiple_of(DYNAMIC_ALIGN);
    }
    places.extend(dynamic.into_iter().map(|symbol| (symbol, end)));
    Ok((places, end as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of an instruction into which a relocation inserts a place.
    fn relocated(sm: u8, text: &str, kind: u32, place: SymbolPlace) -> String {
        let sm = Sm(sm);
        let inst = sass::parse(sm, text, 0).unwrap_or_else(|error| panic!("{text}: {error}"));
        let word = sass::encode(sm, &inst).expect("encodes");
        match relocate(sm, word, kind, place) {
            Ok(word) => sass::print(sm, &sass::decode(sm, word).expect("an instruction"), 0),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_go_into_their_bits() {
        let shared = SymbolPlace::Shared(0x3b8);
        assert_eq!(relocated(80, "STS [R2], R4", 74, shared), "STS [R2+0x3b8], R4");
        assert_eq!(relocated(80, "ATOMS.ADD R4, [R2], R5", 74, shared), "ATOMS.ADD R4, [R2+0x3b8], R5");
        assert_eq!(relocated(80, "LDGSTS.E [R23], [R2.64]", 100, shared), "LDGSTS.E [R23+0x3b8], [R2.64]");
        assert_eq!(relocated(90, "UMOV UR4, 0x0", 55, shared), "UMOV UR4, 0x3b8");
        assert_eq!(
            relocated(80, "MOV R4, 0x0", 59, SymbolPlace::Constant { bank: 3, offset: 16 }),
            "MOV R4, 0x10"
        );
        let address = SymbolPlace::Address(0x12_3456_789a);
        assert_eq!(relocated(80, "MOV R4, 0x0", 56, address), "MOV R4, 0x3456789a");
        assert_eq!(relocated(80, "MOV R4, 0x0", 57, address), "MOV R4, 0x12");
        assert_eq!(relocated(80, "YIELD", 68, SymbolPlace::Number(0x118)), "YIELD");
    }

    #[test]
    fn constants_have_an_offset_and_a_bank() {
        let place = |offset| SymbolPlace::Constant { bank: 3, offset };
        assert_eq!(
            relocated(80, "IADD3 R4, R4, c[0x0][0x0], RZ", 64, place(0x18)),
            "IADD3 R4, R4, c[0x3][0x18], RZ"
        );
        assert_eq!(relocated(90, "ULDC.64 UR4, c[0x0][0x0]", 66, place(0x18)), "ULDC.64 UR4, c[0x3][0x18]");
        assert_eq!(relocated(100, "LDCU UR4, c[0x0][0x0]", 115, place(0x1c)), "LDCU UR4, c[0x3][0x1c]");
        let table = SymbolPlace::Constant { bank: 2, offset: 0x10 }.plus(0x8000u64.wrapping_neg());
        assert_eq!(relocated(80, "LDC R4, c[0x0][R4]", 66, table), "LDC R4, c[0x2][R4+-0x7ff0]");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |kind, place| relocated(80, "STS [R2], R4", kind, place).starts_with("the relocation");
        assert!(refused(74, SymbolPlace::Shared(1 << 24)));
        assert!(refused(59, SymbolPlace::Constant { bank: 3, offset: 1 << 16 }));
        assert!(refused(64, SymbolPlace::Constant { bank: 3, offset: 2 }));
        assert!(refused(64, SymbolPlace::Shared(4)));
        assert!(refused(65, SymbolPlace::Shared(4)));
    }
}
