//! Compiles PTX to a cubin. Takes the arguments of ptxas.

use mimalloc::MiMalloc;

/// The same allocator as `ptx-check`, for the same reason.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    ptx_analyzer::compile::main()
}
