//! Tests across packages, and the tools they need. Nothing here is part of the product.

#[cfg(test)]
mod tidy;
