//! The user's reference compiler, if there is one: compiles a document on each save, to show its results next to ours.
//!
//! Only the client can name the program, not a file in the workspace. The program runs in an empty folder, for a
//! limited time, and is killed when no request waits for it any longer.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpu_files::cubin;
use ptx_isa::Sm;

use crate::machine::tool::push_text;

/// The time limit of the program.
const LIMIT: Duration = Duration::from_secs(120);
const INTERVAL: Duration = Duration::from_millis(10);
/// The largest numbers of bytes that are read of the program's output and of the cubin.
const MOST_TEXT: u64 = 1 << 20;
const MOST_CODE: u64 = 256 << 20;
/// The largest number of bytes of the program's messages that the user is shown.
const SHOWN: usize = 2000;

/// A function as the reference compiler compiled it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Function {
    pub name: String,
    /// The number of registers, if the program reports it.
    pub registers: Option<u32>,
    pub spill_bytes: u32,
    pub stack_bytes: u32,
    pub code: Code,
}

/// Machine code as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Code {
    /// The number of instructions without padding.
    pub instructions: usize,
    /// The instructions, one per line.
    pub text: String,
}

/// Stops the program when dropped.
#[derive(Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Compiles a text. Returns `None` if the program was stopped.
///
/// # Errors
/// The program cannot be started, fails or takes too long. The error includes the program's output.
pub fn compile(
    program: &Path,
    text: &str,
    target: Sm,
    is_part: bool,
    stop: &AtomicBool,
) -> Option<Result<Vec<Function>, String>> {
    let named = |error: io::Error| format!("{}: {error}", program.display());
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return Some(Err(named(error))),
    };
    match run(program, folder.path(), text, target, is_part, stop) {
        Ok(true) => Some(read(folder.path()).map_err(named)),
        Ok(false) => None,
        Err(error) => Some(Err(named(error))),
    }
}

/// Runs the program to its end. Returns false if it was stopped.
fn run(
    program: &Path,
    folder: &Path,
    text: &str,
    target: Sm,
    is_part: bool,
    stop: &AtomicBool,
) -> io::Result<bool> {
    std::fs::write(folder.join("in.ptx"), text)?;
    let log = File::create(folder.join("log"))?;
    let mut command = Command::new(program);
    command.arg("-v").arg(format!("-arch={target}")).args(is_part.then_some("-c"));
    command.args(["-o", "out.cubin", "in.ptx"]).current_dir(folder).stdin(Stdio::null());
    let mut child = Running(command.stdout(log.try_clone()?).stderr(log).spawn()?);
    let start = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if let Some(status) = child.0.try_wait()? {
            let said = if status.success() { return Ok(true) } else { said(folder)? };
            let said = said.replace("in.ptx, ", "");
            let end = said.floor_char_boundary(SHOWN);
            return Err(io::Error::other(format!("{status}\n{}", said[..end].trim_end())));
        }
        if start.elapsed() > LIMIT {
            let message = format!("took more than {} s and was stopped", LIMIT.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// A running program. Dropping it kills the program.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn said(folder: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(folder.join("log"))?.take(MOST_TEXT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read(folder: &Path) -> io::Result<Vec<Function>> {
    let mut functions = told(&said(folder)?);
    let mut bytes = Vec::new();
    File::open(folder.join("out.cubin"))?.take(MOST_CODE).read_to_end(&mut bytes)?;
    for (name, code) in codes(&bytes).map_err(io::Error::other)? {
        match functions.iter_mut().find(|function| function.name == name) {
            Some(function) => function.code = code,
            None => functions.push(Function { name, code, ..Function::default() }),
        }
    }
    Ok(functions)
}

/// The functions that the program reports with `-v`.
fn told(log: &str) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    let before = |text: &str, unit: &str| -> Option<u32> {
        text[..text.find(unit)?].split_whitespace().next_back()?.parse().ok()
    };
    for line in log.lines() {
        let line = line.split_once(": ").map_or(line, |(_, text)| text);
        let entry = line.strip_prefix("Compiling entry function '").and_then(|rest| rest.split_once('\''));
        let name = entry.map(|(name, _)| name).or_else(|| line.strip_prefix("Function properties for "));
        if let Some(name) = name {
            let name = name.trim();
            if functions.last().is_none_or(|last| last.name != name) {
                functions.push(Function { name: name.to_owned(), ..Function::default() });
            }
        } else if let Some(function) = functions.last_mut() {
            if let Some(stack) = before(line, " bytes stack frame") {
                function.stack_bytes = stack;
                let spills = [" bytes spill stores", " bytes spill loads"];
                function.spill_bytes = spills.iter().filter_map(|unit| before(line, unit)).sum();
            }
            function.registers = before(line, " registers").or(function.registers);
        }
    }
    functions
}

/// The machine code of each function of a cubin.
///
/// # Errors
/// The bytes are not a cubin.
pub fn codes(bytes: &[u8]) -> Result<Vec<(String, Code)>, String> {
    let cubin = cubin::read(bytes).map_err(|error| error.to_string())?;
    let code = |function: &cubin::Function<'_>| {
        let mut code = Code::default();
        let mut address = 0;
        for word in cubin::words(function.code) {
            let mut line = String::new();
            push_text(&mut line, cubin.sm, word, address);
            address += sass::INST_BYTES;
            if line != "NOP" {
                code.instructions += 1;
                code.text += &line;
                code.text.push('\n');
            }
        }
        // A branch to itself follows the end of the code and is never executed.
        let last = code.text.lines().next_back().unwrap_or_default();
        if last.starts_with("BRA ") {
            code.instructions -= 1;
        }
        (function.name.to_owned(), code)
    };
    Ok(cubin.functions.iter().map(code).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_functions() {
        let log = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'k' for 'sm_80'\n\
            ptxas info    : Function properties for k\n    \
            16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
            ptxas info    : Used 24 registers, 368 bytes cmem[0]\n\
            ptxas info    : Function properties for f\n    \
            0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
        let all = told(log);
        assert_eq!(all.len(), 2);
        let k = &all[0];
        assert_eq!((k.name.as_str(), k.registers, k.spill_bytes, k.stack_bytes), ("k", Some(24), 20, 16));
        assert_eq!((all[1].name.as_str(), all[1].registers), ("f", None));
    }

    #[cfg(unix)]
    #[test]
    fn programs_fail_and_are_stopped() {
        let sm = Sm::new(80);
        let go = AtomicBool::new(false);
        let run = |program: &str| compile(Path::new(program), "", sm, false, &go).expect("not stopped");
        assert!(run("/none").unwrap_err().starts_with("/none: "));
        assert!(run("/bin/false").unwrap_err().contains("exit status: 1"));
        // The program succeeds and writes nothing.
        assert!(run("/bin/true").is_err());
        let stop = Stop::default();
        let flag = stop.flag();
        drop(stop);
        assert!(flag.load(Ordering::Relaxed));
        assert!(compile(Path::new("/usr/bin/yes"), "", sm, false, &flag).is_none());
    }
}
