//! The Ori IR.

pub mod ir;
pub mod op;
