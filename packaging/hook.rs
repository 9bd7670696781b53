//! `ptx-check` as pre-commit installs it, which takes programs from the package at the root of a repository alone.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    ptx_analyzer::check::main()
}
