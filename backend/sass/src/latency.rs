//! Issue distances between instructions.

use crate::inst::Inst;
use crate::model::{RegFile, Sm};

/// Cycles from the issue of a producer to that of a consumer of its result.
pub fn raw(_sm: Sm, _producer: &Inst, _consumer: &Inst, _file: RegFile) -> u8 {
    13
}

/// Cycles from the issue of a reader to that of an instruction which overwrites what it read.
pub fn war(_sm: Sm, _reader: &Inst, _writer: &Inst, _file: RegFile) -> u8 {
    1
}

/// Cycles from the issue of a writer to that of another one of the same register.
pub fn waw(_sm: Sm, _first: &Inst, _second: &Inst, _file: RegFile) -> u8 {
    13
}
