//! Compiles PTX to a cubin; takes the arguments of ptxas.

use mimalloc::MiMalloc;

/// As for the checks; the server, which lives longer, keeps to the system's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    ptx_analyzer::compile::main()
}
