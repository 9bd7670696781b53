//! Tests that involve several packages, and the tools that they need. Nothing in this package is part of the product.

pub mod blessed;
pub mod case;
pub mod description;
pub mod filetest;
pub mod fuzz;
#[cfg(test)]
mod grammars;
pub mod long;
#[cfg(test)]
mod messages;
pub mod program;
pub mod sized;
pub mod sweep;
#[cfg(test)]
mod tidy;
