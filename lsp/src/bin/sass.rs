//! Disassembles cubins, fatbins and programs, and assembles what it prints.

fn main() -> std::process::ExitCode {
    ptx_analyzer::machine::main()
}
