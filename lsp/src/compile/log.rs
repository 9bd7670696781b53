//! The messages of the compiler, in ptxas's form: `PROGRAM KIND: …` or `PROGRAM FILE, line N; KIND: …`.
//!
//! PROGRAM is the name under which the program was started, as with ptxas: if a build tool runs it under the name
//! ptxas, it reads `ptxas info`.

use std::ffi::OsStr;
use std::fmt::{Display, Write as _};
use std::path::Path;

/// The exit status of ptxas for every failure.
pub(super) const FAILED: u8 = 255;

const NAME: &str = "ptxc";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Info,
    Warning,
    Error,
    Fatal,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Info => "info   ",
            Kind::Warning => "warning",
            Kind::Error => "error  ",
            Kind::Fatal => "fatal  ",
        }
    }
}

/// The name of a program that was started by this path.
fn stem(path: &OsStr) -> Option<&str> {
    Path::new(path).file_stem().and_then(OsStr::to_str)
}

pub(super) struct Log {
    program: String,
    pub(super) text: String,
}

impl Log {
    /// The log of a program that was started by this path.
    pub(super) fn new(started: Option<&OsStr>) -> Self {
        let program = started.and_then(stem).filter(|name| !name.is_empty()).unwrap_or(NAME).to_owned();
        Log { program, text: String::new() }
    }

    /// Sets the program name that the options give.
    pub(super) fn rename(&mut self, name: &str) {
        self.program = stem(OsStr::new(name)).unwrap_or_default().to_owned();
    }

    pub(super) fn program(&self) -> &str {
        &self.program
    }

    pub(super) fn say(&mut self, kind: Kind, message: impl Display) {
        let _ = writeln!(self.text, "{} {} : {message}", self.program, kind.words());
    }

    pub(super) fn say_at(&mut self, file: &str, line: u32, kind: Kind, message: impl Display) {
        let _ = writeln!(self.text, "{} {file}, line {line}; {} : {message}", self.program, kind.words());
    }

    /// Prints a continuation line of the last message.
    pub(super) fn more(&mut self, message: impl Display) {
        let _ = writeln!(self.text, "{message}");
    }

    /// Reports an error that ends the compilation. Returns the exit status.
    pub(super) fn fatal(&mut self, message: impl Display) -> u8 {
        self.say(Kind::Fatal, message);
        FAILED
    }

    /// Ends a compilation that had errors. Returns the exit status.
    pub(super) fn aborted(&mut self) -> u8 {
        self.fatal("Ptx assembly aborted due to errors")
    }
}
