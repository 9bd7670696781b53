//! Disassembles cubins, fatbins and programs, and assembles its own output.

fn main() -> std::process::ExitCode {
    ptx_analyzer::machine::main()
}
