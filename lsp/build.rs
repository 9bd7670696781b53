//! Links the commands at a fixed address where the linker is known to take the option.
//!
//! The instruction tables are a megabyte of constants that point at one another. In a program that may lie
//! anywhere the loader corrects every pointer at every start, which takes as long as compiling a small kernel.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        for command in ["ptxc", "ptx-check"] {
            println!("cargo:rustc-link-arg-bin={command}=-no-pie");
        }
    }
}
