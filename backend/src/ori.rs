//! The Ori IR.

pub mod cfg;
pub mod dominators;
pub mod ir;
pub mod mnemonic;
pub mod op;
pub mod signature;
pub mod text;
