//! Encodes an instruction as a word.

use crate::inst::Inst;
use crate::model::{Field, Sm};
use std::fmt;

/// The reason why an instruction cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// The form does not exist on the generation.
    Generation,
    /// A field was set to a value that it cannot hold.
    Value(Field),
    /// A value of the control word is out of range.
    Control,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::Generation => f.write_str("the instruction does not exist on this generation"),
            EncodeError::Value(field) => write!(f, "the value of {field:?} does not fit into its field"),
            EncodeError::Control => f.write_str("the control word is out of range"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// The 128 bits of an instruction.
pub fn encode(sm: Sm, inst: &Inst) -> Result<u128, EncodeError> {
    if !inst.form().holds_for(sm) {
        return Err(EncodeError::Generation);
    }
    if let Some(field) = inst.rejected() {
        return Err(EncodeError::Value(field));
    }
    let control = inst.control.to_bits().ok_or(EncodeError::Control)?;
    Ok(inst.word() | control)
}
