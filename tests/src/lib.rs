//! Tests across packages, and the tools they need. Nothing here is part of the product.

pub mod filetest;
pub mod fuzz;
#[cfg(test)]
mod tidy;
