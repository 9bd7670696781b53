//! The Ori IR.

pub mod alias;
pub mod analyses;
pub mod build;
pub mod cfg;
pub mod compact;
pub mod defs;
pub mod divergence;
pub mod dominators;
pub mod eval;
pub mod facts;
pub mod ir;
pub mod loops;
pub mod memory;
pub mod op;
pub mod operations;
pub(crate) mod row;
pub mod signature;
pub mod text;
pub mod together;
mod varying;
pub mod verify;
