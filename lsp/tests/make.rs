//! Runs `ptxc` as GNU make does, with a jobserver.
#![cfg(target_os = "linux")]

mod shell;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::Command;

use shell::{command, run, told};

const COMPILE: &str = env!("CARGO_BIN_EXE_ptxc");
const MODULE: &str = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";

/// The tokens of make's jobserver are put back.
#[test]
fn threads_take_tokens_from_make() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.ptx"), MODULE).expect("a file");
    assert_eq!(run(COMPILE, folder.path(), &["--jobserver", "a.ptx"]), (0, String::new()));
    let pipe = folder.path().join("jobs");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut jobs = File::options().read(true).write(true).open(&pipe).expect("the pipe");
    let compile = |flags: &str, threads: &str| {
        let mut command =
            command(COMPILE, folder.path(), &["--jobserver", "--split-compile", threads, "a.ptx"]);
        command.env("MAKEFLAGS", flags);
        told(&mut command)
    };
    jobs.write_all(b"ab").expect("the tokens");
    for threads in ["0", "1", "2", "8"] {
        let flags = format!("k -j3 --jobserver-auth=fifo:{} -- V=1", pipe.display());
        assert_eq!(compile(&flags, threads), (0, String::new()));
    }
    let mut left = [0; 2];
    jobs.read_exact(&mut left).expect("the tokens");
    left.sort_unstable();
    assert_eq!(&left, b"ab");
    let none = "ptxc warning : GNU Jobserver support requested, but no compatible jobserver found. Ignoring '--jobserver'\n";
    assert_eq!(compile("-j3", "2"), (0, none.to_owned()));
    assert_eq!(compile("-j3", "1"), (0, String::new()));
    let broken = "ptxc fatal   : Jobserver requested, but an error occurred\n";
    for flags in ["--jobserver-auth=fifo:nowhere", "--jobserver-auth=fifo:a.ptx", "--jobserver-auth=900,901"]
    {
        assert_eq!(compile(flags, "2"), (255, broken.to_owned()), "{flags}");
    }
}
