//! Compiles PTX to a cubin; takes the arguments of ptxas.

fn main() -> std::process::ExitCode {
    ptx_analyzer::compile::main()
}
