//! Checks PTX files without an editor.

use mimalloc::MiMalloc;

/// With the system's allocator, a fifth of the time of a check is allocation: a check makes many small allocations, in
/// pages that the kernel hands out one by one. The server keeps the system's allocator: it lives longer, and the
/// system's allocator returns more memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    ptx_analyzer::check::main()
}
