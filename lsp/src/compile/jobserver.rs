//! The client of GNU make's jobserver, for `--jobserver` with `--split-compile`.
//!
//! make names a pipe in `MAKEFLAGS`, which contains a byte for each job that may still start. A program that runs on more
//! than one thread takes a byte for each further thread, and puts it back later.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

const OPTION: &str = "--jobserver-auth=";

#[derive(Debug)]
pub(super) enum Failure {
    /// `MAKEFLAGS` names no jobserver, or the system cannot reach one.
    Absent,
    /// The named jobserver cannot be opened.
    Broken,
}

/// Bytes taken from the pipe. They are put back when the value is dropped.
pub(super) struct Tokens {
    bytes: Vec<u8>,
    back: File,
}

impl Tokens {
    /// Takes at most `most` bytes, without waiting for more.
    pub(super) fn take(most: usize) -> Result<Tokens, Failure> {
        let flags = std::env::var_os("MAKEFLAGS").unwrap_or_default();
        let (from, back) = named(&flags).ok_or(Failure::Absent)??;
        let mut from = open(&from, Access::Read)?;
        let mut tokens = Tokens { bytes: vec![0; most], back: open(&back, Access::Write)? };
        // An empty pipe is not an error: another job may have taken the last byte.
        let taken = from.read(&mut tokens.bytes).unwrap_or(0);
        tokens.bytes.truncate(taken);
        Ok(tokens)
    }

    pub(super) fn count(&self) -> usize {
        self.bytes.len()
    }
}

impl Drop for Tokens {
    fn drop(&mut self) {
        // If make has exited, the tokens are no longer needed.
        let _ = self.back.write_all(&self.bytes);
    }
}

/// The two ends of the pipe that the flags name; `None` if they name none. The words after `--` are variables.
fn named(flags: &OsStr) -> Option<Result<(PathBuf, PathBuf), Failure>> {
    let flags = flags.to_string_lossy();
    let words = flags.split_whitespace().take_while(|word| *word != "--");
    let name = words.filter_map(|word| word.strip_prefix(OPTION)).last()?;
    if let Some(path) = name.strip_prefix("fifo:") {
        return Some(Ok((path.into(), path.into())));
    }
    let end = |number: &str| {
        number.parse::<u16>().ok().map(|number| PathBuf::from(format!("/proc/self/fd/{number}")))
    };
    let ends = name.split_once(',').and_then(|(from, back)| Some((end(from)?, end(back)?)));
    Some(ends.ok_or(Failure::Broken))
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

/// Opens one end of the pipe. A file opened by its number in `/proc` shares no flags with the one that make passed, so
/// reading without waiting does not affect other jobs.
#[cfg(target_os = "linux")]
fn open(path: &Path, access: Access) -> Result<File, Failure> {
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
    let is_pipe = std::fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo());
    // A number that was not passed on may belong to another file of this process.
    if !is_pipe {
        return Err(Failure::Broken);
    }
    let mut options = File::options();
    match access {
        Access::Read => options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32),
        Access::Write => options.write(true),
    };
    options.open(path).map_err(|_| Failure::Broken)
}

#[cfg(not(target_os = "linux"))]
fn open(_: &Path, _: Access) -> Result<File, Failure> {
    Err(Failure::Absent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipe_is_named_in_the_flags() {
        let ends = |flags: &str| {
            named(OsStr::new(flags))
                .map(|ends| ends.ok().map(|(from, back)| [from, back].map(|path| path.display().to_string())))
        };
        let numbers =
            |from: u16, back: u16| Some(Some([from, back].map(|end| format!("/proc/self/fd/{end}"))));
        assert_eq!(ends(""), None);
        assert_eq!(ends(" -j4 --jobserver-fds=3,4"), None);
        assert_eq!(ends("k -- A=--jobserver-auth=3,4"), None);
        assert_eq!(ends("k -- --jobserver-auth=3,4"), None);
        assert_eq!(ends(" -j4 --jobserver-auth=3,4 -- A=1"), numbers(3, 4));
        assert_eq!(ends("--jobserver-auth=3,4 --jobserver-auth=5,6"), numbers(5, 6));
        assert_eq!(ends("--jobserver-auth=fifo:/tmp/x"), Some(Some(["/tmp/x"; 2].map(str::to_owned))));
        assert_eq!(ends("--jobserver-auth=-2,-2"), Some(None));
        assert_eq!(ends("--jobserver-auth=x"), Some(None));
    }
}
