//! Files that hold GPU code: cubins, fatbins, and host programs with fatbins.
//!
//! The crate `object` reads ELF files; `lz4_flex` and `ruzstd` unpack images. This crate adds what is specific to
//! NVIDIA's files.

pub mod cubin;
pub mod elf;
pub mod image;
mod unpack;
