//! The table of PTX instructions: one row per form, like the syntax lines of the manual.
//!
//! The table contains only facts. Completion, validation, hover and lowering read the rows here and do not repeat them
//! in code. The crate has no dependencies.

mod about;
mod docs;
pub mod fragment;
mod gate;
mod lookup;
mod model;
mod names;
mod old;
mod opcode;
mod resolve;
mod rewrites;
mod signature;
mod special;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod undescribed;
mod version;

pub use docs::doc;
pub use gate::{Gate, GateError, Late, Removal, TargetSet};
pub use model::{
    AddressSize, Base, Class, Column, Facts, Form, Group, Lanes, Matrix, Operand, OperandType, Part, Place,
    Presence, Role, Rule, Sparse, Then, Values, When, Window,
};
pub use names::{Directive, DirectiveKind, PRAGMAS, Pragma, PragmaArgument, Site, is_reserved};
pub use old::resolve_in;
pub use opcode::{MAX_MODS, MAX_TYPES, Mod, Opcode, Suffix};
pub use resolve::{
    ResolveError, forms_of, frequent, gates, is_mnemonic, mnemonics, resolve, suggestions,
    suggestions_within, title,
};
pub use rewrites::{SHORT_ADDRESSES, expanded_on, moved_on};
pub use signature::{Expected, ExpectedLanes, ExpectedType, Signature, Target, signature};
pub use special::SpecialReg;
pub use table::{FormId, form};
pub use types::{ScalarType, Space, TypeKind, TypeSet};
pub use version::{Feature, Mismatch, PtxVersion, Sm};
