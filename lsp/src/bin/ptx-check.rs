//! Checks PTX files without an editor.

use mimalloc::MiMalloc;

/// With the system's allocators a fifth of a check is allocation: many small pieces, in pages that are fetched from the
/// kernel one by one. The server, which lives longer, keeps to them, since they give more back.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    ptx_analyzer::check::main()
}
