//! Runs the programs as a shell does.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn command(program: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env_remove("PTX_PHASE");
    command
}

/// The output of a command. It must end on its own and print no more than fits into a pipe.
pub(crate) fn output(command: &mut Command) -> Output {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let start = Instant::now();
    while child.try_wait().expect("a status").is_none() {
        if start.elapsed() > Duration::from_secs(120) {
            let _ = child.kill();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("what it printed")
}

/// The exit status and all output.
pub(crate) fn told(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = output(command);
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(!text.contains("panicked"), "{command:?}: {text}");
    (status.code().expect("no signal"), text)
}

pub(crate) fn run(program: &str, folder: &Path, arguments: &[&str]) -> (i32, String) {
    told(&mut command(program, folder, arguments))
}

/// A folder with files that contain these texts.
#[allow(dead_code, reason = "some programs need no files")]
pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}
