//! The PTX instruction table: one row per form, as the manual's syntax lines present it.
//!
//! Facts only. Everything that knows PTX instructions (completion, validation, hover, lowering) reads the
//! rows here; nothing repeats them as code. The crate has no dependencies.

mod opcode;
mod special;
mod table;
mod types;
mod version;

pub use opcode::{MAX_MODS, MAX_TYPES, Mod, Opcode};
pub use special::SpecialReg;
pub use table::FormId;
pub use types::{ScalarType, Space, TypeKind, TypeSet};
pub use version::{Feature, PtxVersion, Sm};
