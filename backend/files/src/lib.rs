//! Files that hold GPU code: cubins, fatbins, and host programs with fatbins.
//!
//! `object` reads ELF, `lz4_flex` and `ruzstd` unpack; what is specific to NVIDIA's files is here.

pub mod cubin;
pub mod elf;
pub mod image;
mod unpack;
