//! Tests across packages, and the tools they need. Nothing here is part of the product.

pub mod filetest;
#[cfg(test)]
mod tidy;
