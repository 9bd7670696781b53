//! The machine code: one table of encodable forms for sm_75 to sm_121, and the four functions that use it.
//!
//! A [`Form`] is one row of the table; an [`Inst`] is a form with a value for each of its fields and a control word.
//! [`encode`] and [`decode`] are inverse to each other. [`print()`] writes an instruction as NVIDIA's disassembler
//! does, and [`parse`] reads this text back. The crate has no dependencies.

pub mod about;
mod assemble;
mod class;
mod control;
mod decode;
mod encode;
mod expand;
mod float;
mod illegal;
mod inst;
pub mod latency;
pub mod model;
mod names;
mod parse;
mod print;
pub mod rate;
mod roles;
pub mod speed;
mod table;
mod window;

pub use assemble::{assemble, print_exact};
pub use class::{Class, Told};
pub use control::Control;
pub use decode::{decode, decode_tolerant};
pub use encode::{EncodeError, encode};
pub use expand::{form, forms, lookup};
pub use inst::Inst;
pub use model::{Field, Form, FormId, RegFile, Role, Sm};
pub use parse::{ParseError, parse};
pub use print::{INST_BYTES, print, print_to};
pub use roles::RegUse;
