//! Section types and flags, symbol kinds and relocations of cubins: those of ELF, and NVIDIA's own.

use crate::target::AddressRelocations;

pub(super) const SHT_PROGBITS: u32 = 1;
pub(super) const SHT_RELA: u32 = 4;
pub(super) const SHT_NOTE: u32 = 7;
pub(super) const SHT_NOBITS: u32 = 8;
pub(super) const SHT_REL: u32 = 9;
pub(super) const SHT_CUDA_INFO: u32 = 0x7000_0000;
pub(super) const SHT_CUDA_CALLGRAPH: u32 = 0x7000_0001;
pub(super) const SHT_CUDA_PROTOTYPE: u32 = 0x7000_0002;
pub(super) const SHT_CUDA_GLOBAL: u32 = 0x7000_0007;
pub(super) const SHT_CUDA_GLOBAL_INIT: u32 = 0x7000_0008;
pub(super) const SHT_CUDA_SHARED: u32 = 0x7000_000a;
/// The type of constant bank 0; those of the other banks follow.
pub(super) const SHT_CUDA_CONSTANT: u32 = 0x7000_0064;
pub(super) const SHT_CUDA_RELOCINFO: u32 = 0x7000_000b;
/// Variables in the shared memory that the system reserves.
pub(super) const SHT_CUDA_RESERVED_SHARED: u32 = 0x7000_0015;
/// Stubs of unified functions, unified variables, and the entries that describe them.
pub(super) const SHT_CUDA_UFT: u32 = 0x7000_000e;
pub(super) const SHT_CUDA_UFT_ENTRY: u32 = 0x7000_0011;
pub(super) const SHT_CUDA_UDT: u32 = 0x7000_0012;
pub(super) const SHT_CUDA_UDT_ENTRY: u32 = 0x7000_0014;
pub(super) const SHT_CUDA_COMPAT: u32 = 0x7000_0086;
pub(super) const SHF_WRITE: u64 = 1;
pub(super) const SHF_ALLOC: u64 = 2;
pub(super) const SHF_EXEC: u64 = 4;
pub(super) const SHF_INFO: u64 = 0x40;

/// In `e_flags` of an object: the object has machine code only. From sm_100 on ptxas writes 2 for files with the
/// sections from which other hardware of the family generates its own code. nvlink then requires these sections.
pub(super) const EF_CUDA_SASS: u32 = 4;

/// `st_other` of an entry point.
pub(super) const STO_CUDA_ENTRY: u8 = 0x10;
/// `st_other` of the reserved shared memory's alias, and of the variables there in objects.
pub(super) const STO_CUDA_RESERVED_SHARED: u8 = 0xa0;

/// `st_other` of a function with a stub.
pub(super) const STO_CUDA_UNIFIED_FUNCTION: u8 = 4;
/// In `st_other` of a variable: it is in the table of unified variables.
pub(super) const STO_CUDA_UNIFIED: u8 = 0x10;
/// `st_other` of variables that host and device share.
pub(super) const STO_CUDA_MANAGED: u8 = 4;
/// `st_other` of variables in objects: their state space.
pub(super) const STO_CUDA_GLOBAL: u8 = 0x20;
pub(super) const STO_CUDA_SHARED: u8 = 0x40;
pub(super) const STO_CUDA_CONSTANT: u8 = 0x80;
/// The symbol is not visible to other objects.
pub(super) const STV_INTERNAL: u8 = 1;

/// The section of the shared memory that the system reserves.
pub(super) const RESERVED_SHARED: &str = ".nv.shared.reserved.0";

/// The symbol that stands for the size of the `.const` variables of all objects. nvlink defines it.
pub(super) const CONST_BYTES: &str = ".nv.ptx.const0.size";

/// Relocations of 32 bits of an instruction: an address in shared memory, 16 bits of an address in a constant bank. Also
/// the offset and bank of a load from a constant bank.
pub(super) const R_CUDA_ABS32_32: u32 = 55;
pub(super) const R_CUDA_ABS16_32: u32 = 59;
pub(super) const R_CUDA_CONST_FIELD19_40: u32 = 64;
pub(super) const R_CUDA_CONST_FIELD21_38: u32 = 66;

/// The address of a kernel is that of its descriptor, which launches use: R_CUDA_FUNC_DESC32_LO_32,
/// R_CUDA_FUNC_DESC32_HI_32, R_CUDA_FUNC_DESC_64 and R_CUDA_FUNC_DESC_8_0.
pub(super) const KERNEL_ADDRESS: AddressRelocations =
    AddressRelocations { low: 62, high: 63, whole: 35, lowest_byte: 92 };

/// An address in memory, or of a function in an executable: R_CUDA_ABS32_LO_32, R_CUDA_ABS32_HI_32, R_CUDA_64 and
/// R_CUDA_8_0.
pub(super) const ADDRESS: AddressRelocations =
    AddressRelocations { low: 56, high: 57, whole: R_CUDA_64, lowest_byte: 76 };

/// Relocations for the indices of textures, samplers (in the upper bits of a word, and as a whole word) and surfaces.
pub(super) const R_CUDA_TEX_HEADER_INDEX: u32 = 6;
pub(super) const R_CUDA_SAMP_HEADER_INDEX: u32 = 7;
pub(super) const R_CUDA_SAMP_HEADER_INDEX_0: u32 = 101;
pub(super) const R_CUDA_SURF_HEADER_INDEX: u32 = 52;
/// Relocations for addresses of 32 and 64 bits, and for a 64-bit generic address.
pub(super) const R_CUDA_32: u32 = 1;
pub(super) const R_CUDA_64: u32 = 2;
pub(super) const R_CUDA_G64: u32 = 4;
/// The size of a function in the frame description, which is zero if the function is not linked.
pub(super) const R_CUDA_UNUSED_CLEAR64: u32 = 73;
/// The lowest byte of an address; the types for the other seven bytes follow.
pub(super) const R_CUDA_G8_0: u32 = 84;
