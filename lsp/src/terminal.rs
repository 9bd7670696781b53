//! Standard output and standard error of the programs. A closed pipe or a full disk does not cause a panic.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Prints a line on standard error. A closed stream is not an error.
pub fn say(message: impl Display) {
    // One write for the whole line, so that the lines of several programs do not mix.
    let line = format!("{message}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Prints a whole text on standard output.
///
/// # Errors
/// The text cannot be written. A reader that stops early (`| head`) is not an error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The result of writing to a pipe. A pipe closed by its reader is not an error.
pub fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints on standard output as the last act of a program. If this fails, the exit status is `failed`.
pub fn print_and_exit(program: &str, text: &str, failed: u8) -> ExitCode {
    match print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("{program}: standard output: {error}"));
            ExitCode::from(failed)
        }
    }
}

/// Ends a program whose arguments ask for help or are wrong.
pub fn stop(program: &str, error: &clap::Error, failed: u8) -> ExitCode {
    if error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(failed);
    }
    let printed = error.print().and_then(|()| io::stdout().flush());
    match unless_closed(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("{program}: standard output: {error}"));
            ExitCode::from(failed)
        }
    }
}
