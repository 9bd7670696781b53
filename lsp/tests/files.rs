//! Whatever a user's files and folders are, each program terminates, reports the problem in a line that names the file,
//! and exits with the documented status.
#![cfg(unix)]

mod shell;

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use shell::{command, run, told};

const CHECK: &str = env!("CARGO_BIN_EXE_ptx-check");
const COMPILE: &str = env!("CARGO_BIN_EXE_ptxc");
const SASS: &str = env!("CARGO_BIN_EXE_sass");
const SERVER: &str = env!("CARGO_BIN_EXE_ptx-lsp");

const TEXT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo starts");
    assert!(made.success(), "a pipe with a name");
}

/// Whether permissions restrict this user.
fn is_restricted(folder: &Path) -> bool {
    let path = folder.join("probe");
    fs::write(&path, "").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o000)).expect("permissions");
    let is_restricted = File::open(&path).is_err();
    fs::remove_file(path).expect("it goes");
    is_restricted
}

/// Each program on one file, with its exit status for a failure.
const PROGRAMS: [(&str, &[&str], i32); 4] = [
    (CHECK, &[], 2),
    (COMPILE, &["-arch=sm_80", "-o", "out.cubin"], 255),
    (SASS, &["dis"], 1),
    (SERVER, &["dump", "--stage", "items"], 2),
];

#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    symlink("nothing", path.join("dangling.ptx")).expect("a link");
    symlink("loop.ptx", path.join("loop.ptx")).expect("a link");
    symlink("b.ptx", path.join("a.ptx")).expect("a link");
    symlink("a.ptx", path.join("b.ptx")).expect("a link");
    fs::create_dir(path.join("folder.ptx")).expect("a folder");
    // A sparse file, without blocks on the disk.
    File::create(path.join("huge.ptx")).and_then(|file| file.set_len(1 << 30)).expect("a file");
    let mut cases = vec![
        ("missing.ptx", "o such file"),
        ("dangling.ptx", "o such file"),
        ("loop.ptx", "symbolic links"),
        ("a.ptx", "symbolic links"),
        ("folder.ptx", "it is a folder, not a file"),
        ("folder.ptx/a.ptx", "o such file"),
        ("huge.ptx", "larger than 256 MiB"),
        ("huge.ptx/a.ptx", "ot a directory"),
        ("/dev/zero", "larger than 256 MiB"),
    ];
    if is_restricted(path) {
        fs::write(path.join("closed.ptx"), TEXT).expect("a file");
        fs::set_permissions(path.join("closed.ptx"), Permissions::from_mode(0o000)).expect("permissions");
        cases.push(("closed.ptx", "ermission denied"));
    }
    for (name, message) in cases {
        for (program, arguments, failed) in PROGRAMS {
            if program == CHECK && name == "folder.ptx" || program == SERVER && name == "/dev/zero" {
                continue;
            }
            let (status, text) = run(program, path, &[arguments, &[name]].concat());
            let message = match (program, message) {
                (COMPILE, "o such file") => "could not be opened",
                (SASS, "larger than 256 MiB") => "neither a cubin nor a file that holds cubins",
                _ => message,
            };
            assert!(
                status == failed && text.contains(name) && text.contains(message),
                "{program}: {status} {text}"
            );
        }
    }
    assert!(!path.join("out.cubin").exists());
}

#[test]
fn special_files_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fifo(&path.join("pipe"));
    for (program, arguments, _) in PROGRAMS.into_iter().filter(|(program, ..)| *program != SASS) {
        let pipe = path.join("pipe");
        let writer = std::thread::spawn(move || fs::write(pipe, TEXT).expect("somebody reads"));
        let (status, text) = run(program, path, &[arguments, &["pipe"]].concat());
        assert_eq!(status, 0, "{program}: {text}");
        writer.join().expect("it is written");
    }
    // A file of NUL bytes and an empty file are texts without a module.
    fs::write(path.join("nul.ptx"), [0; 100_000]).expect("a file");
    let nul_in_text = TEXT.replace("ret", "\0ret");
    fs::write(path.join("one.ptx"), nul_in_text).expect("a file");
    for name in ["nul.ptx", "one.ptx", "/dev/null"] {
        for (program, arguments, failed) in PROGRAMS.into_iter().filter(|(program, ..)| *program != SERVER) {
            let expected = if program == CHECK { 1 } else { failed };
            let (status, text) = run(program, path, &[arguments, &[name]].concat());
            assert!(status == expected && text.contains(name), "{program} {name}: {status} {text}");
        }
    }
}

#[test]
fn folders_are_searched_whatever_is_in_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::create_dir_all(path.join("deep/er")).expect("folders");
    fs::write(path.join("deep/er/right.ptx"), TEXT).expect("a file");
    fs::create_dir(path.join("deep/folder.ptx")).expect("a folder");
    symlink("..", path.join("deep/up")).expect("a link");
    symlink("round.ptx", path.join("deep/round.ptx")).expect("a link");
    symlink("nothing", path.join("deep/dangling.ptx")).expect("a link");
    symlink("/dev/zero", path.join("deep/endless.ptx")).expect("a link");
    fifo(&path.join("deep/pipe.ptx"));
    let _socket = std::os::unix::net::UnixListener::bind(path.join("deep/socket.ptx")).expect("a socket");
    assert_eq!(run(CHECK, path, &["-q", "."]), (0, String::new()));
    // The rest is checked, but the exit status shows that the run could not read everything.
    if is_restricted(path) {
        fs::create_dir(path.join("closed")).expect("a folder");
        fs::set_permissions(path.join("closed"), Permissions::from_mode(0o000)).expect("permissions");
        fs::write(path.join("wrong.ptx"), TEXT.replace("ret", "rot")).expect("a file");
        let (status, text) = run(CHECK, path, &["."]);
        assert!(status == 2 && text.contains("closed: Permission denied") && text.contains("rot"), "{text}");
        fs::set_permissions(path.join("closed"), Permissions::from_mode(0o755)).expect("permissions");
    }
}

#[test]
fn files_may_go_while_they_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("stays.ptx"), TEXT).expect("a file");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let inner = path.join("inner");
            while !ends.load(Ordering::Relaxed) {
                let _ = fs::create_dir(&inner);
                for name in ["a.ptx", "b.ptx", "c.ptx"] {
                    let _ = fs::write(inner.join(name), TEXT);
                }
                let _ = fs::remove_dir_all(&inner);
            }
        });
        for _ in 0..30 {
            let (status, text) = run(CHECK, path, &["."]);
            // A new file may be empty when it is found.
            let is_told = |line: &str| line.contains("./inner");
            assert!(matches!(status, 0..=2) && (status == 0 || text.lines().any(is_told)), "{status} {text}");
        }
        ends.store(true, Ordering::Relaxed);
    });
}

#[test]
fn files_of_settings_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("a.ptx"), TEXT).expect("a file");
    fs::create_dir(path.join("folder")).expect("a folder");
    File::create(path.join("huge")).and_then(|file| file.set_len(1 << 30)).expect("a file");
    fs::write(path.join("noise"), [0xFF; 100]).expect("a file");
    for (name, message) in [
        ("huge", "larger than 1 MiB"),
        ("/dev/zero", "larger than 1 MiB"),
        ("folder", "it is a folder, not a file"),
        ("noise", "is not UTF-8 text"),
        ("missing", "does not exist"),
    ] {
        let (status, text) = run(CHECK, path, &["--config", name, "a.ptx"]);
        assert!(status == 2 && text.contains(name) && text.contains(message), "{status} {text}");
        let (status, text) = run(COMPILE, path, &["-optf", name, "a.ptx"]);
        assert!(status == 255 && text.contains(name), "{status} {text}");
    }
    fifo(&path.join("pipe"));
    let (status, text) = run(COMPILE, path, &["-arch=sm_80", "--fdevice-time-trace", "pipe", "a.ptx"]);
    assert!(status == 255 && text.contains("File 'pipe' could not be opened"), "{status} {text}");
}

#[test]
fn outputs_leave_inputs_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("a.ptx"), TEXT).expect("a file");
    symlink("a.ptx", path.join("link")).expect("a link");
    fs::hard_link(path.join("a.ptx"), path.join("same.ptx")).expect("a second name");
    symlink("loop", path.join("loop")).expect("a link");
    fs::create_dir(path.join("folder")).expect("a folder");
    for (input, out, message) in [
        ("a.ptx", "a.ptx", "is the input file"),
        ("a.ptx", "link", "is the input file"),
        ("link", "./a.ptx", "is the input file"),
        ("a.ptx", "loop", "symbolic links"),
        ("a.ptx", "folder", "could not be opened"),
        ("a.ptx", "missing/out", "could not be opened"),
        ("a.ptx", "a.ptx/out", "ot a directory"),
    ] {
        let (status, text) = run(COMPILE, path, &["-arch=sm_80", input, "-o", out]);
        assert!(status == 255 && text.contains(out) && text.contains(message), "{out}: {status} {text}");
    }
    if cfg!(target_os = "linux") {
        let mut command = command(COMPILE, path, &["-arch=sm_80", "-", "-o", "a.ptx"]);
        let (status, text) = told(command.stdin(File::open(path.join("a.ptx")).expect("the file")));
        assert!(status == 255 && text.contains("is the input file"), "{status} {text}");
    }
    assert_eq!(fs::read_to_string(path.join("a.ptx")).expect("the text"), TEXT);
    // The file gets the new content. Its other name keeps the old one.
    assert_eq!(run(COMPILE, path, &["-arch=sm_80", "a.ptx", "-o", "same.ptx"]), (0, String::new()));
    assert_eq!(fs::read_to_string(path.join("a.ptx")).expect("the text"), TEXT);
}

/// The server starts even if it cannot read the settings of its folder.
#[test]
fn the_server_starts_in_any_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = |name: &str, make: &dyn Fn(&Path)| {
        let root = folder.path().join(name);
        fs::create_dir(&root).expect("a folder");
        make(&root.join("ptx-check.toml"));
    };
    make("none", &|_| {});
    make("folder", &|file| fs::create_dir(file).expect("a folder"));
    make("loop", &|file| symlink("ptx-check.toml", file).expect("a link"));
    make("device", &|file| symlink("/dev/zero", file).expect("a link"));
    make("pipe", &|file| fifo(file));
    make("huge", &|file| File::create(file).and_then(|file| file.set_len(1 << 30)).expect("a file"));
    make("nul", &|file| fs::write(file, [0; 100]).expect("a file"));
    for name in ["none", "folder", "loop", "device", "pipe", "huge", "nul", "missing"] {
        let root = folder.path().join(name);
        let mut server = command(SERVER, folder.path(), &[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut input = server.stdin.take().expect("it is a pipe");
        let root = format!("file://{}", root.display());
        let mut send = |body: &str| {
            write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("it reads");
        };
        send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"rootUri":"{root}","capabilities":{{}}}}}}"#
        ));
        send(r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#);
        let mut output = server.stdout.take().expect("it is a pipe");
        let (mut text, mut part) = (String::new(), [0; 4096]);
        // After the server has been told to exit, it reports nothing more.
        while name == "huge" && !text.contains("larger than 1 MiB") {
            let count = output.read(&mut part).expect("what it says");
            assert!(count > 0, "{name}: {text}");
            text += &String::from_utf8_lossy(&part[..count]);
        }
        send(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#);
        send(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        output.read_to_string(&mut text).expect("what it says");
        assert_eq!(server.wait().expect("it ends").code(), Some(0), "{name}: {text}");
        assert!(text.contains("\"capabilities\"") && text.contains("\"id\":2"), "{name}: {text}");
        assert_eq!(text.contains("larger than 1 MiB"), name == "huge", "{name}: {text}");
    }
}

#[test]
fn only_regular_files_are_rewritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fifo(&path.join("pipe"));
    let wrong = TEXT.replace("\tret", "rte");
    for option in ["--fix", "--format-code"] {
        let (pipe, text) = (path.join("pipe"), wrong.clone());
        let writer = std::thread::spawn(move || fs::write(pipe, text).expect("somebody reads"));
        let (status, text) = run(CHECK, path, &[option, "pipe"]);
        assert!(status == 2 && text.contains("pipe: not a regular file"), "{option}: {status} {text}");
        writer.join().expect("it is written");
    }
    // The file that a link names is rewritten, and the link stays.
    fs::write(path.join("a.ptx"), &wrong).expect("a file");
    symlink("a.ptx", path.join("link.ptx")).expect("a link");
    let (status, text) = run(CHECK, path, &["--fix", "link.ptx"]);
    assert_eq!(status, 0, "{text}");
    assert!(path.join("link.ptx").is_symlink());
    assert!(fs::read_to_string(path.join("a.ptx")).expect("the text").contains("ret;"));
    for place in ["a.ptx", "a.ptx/pages", "pipe"] {
        let (status, text) = run(CHECK, path, &["--docs", place]);
        assert!(status == 2 && text.contains(place), "{place}: {status} {text}");
    }
}

#[test]
fn full_devices_are_reported() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("a.ptx"), TEXT).expect("a file");
    let full = "Output file '/dev/full' could not be written: No space left on device";
    let (status, text) = run(COMPILE, path, &["-arch=sm_80", "a.ptx", "-o", "/dev/full"]);
    assert!(status == 255 && text.contains(full), "{status} {text}");
    // A time trace is appended to, so it must be readable.
    let arguments = ["-arch=sm_80", "a.ptx", "-o", "out.cubin", "--fdevice-time-trace", "/dev/full"];
    let (status, text) = run(COMPILE, path, &arguments);
    assert!(status == 255 && text.contains("File '/dev/full' could not be opened"), "{status} {text}");
}

#[test]
fn machine_code_is_read_from_pipes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("a.ptx"), TEXT).expect("a file");
    assert_eq!(run(COMPILE, path, &["-arch=sm_80", "a.ptx", "-o", "a.cubin"]), (0, String::new()));
    let cubin = fs::read(path.join("a.cubin")).expect("the cubin");
    fifo(&path.join("pipe"));
    for (length, status, message) in [(cubin.len(), 0, "EXIT"), (cubin.len() / 3, 1, "truncated")] {
        let (pipe, part) = (path.join("pipe"), cubin[..length].to_vec());
        let writer = std::thread::spawn(move || fs::write(pipe, part).expect("somebody reads"));
        let (found, text) = run(SASS, path, &["dis", "pipe"]);
        assert!(found == status && text.contains(message), "{found} {text}");
        writer.join().expect("it is written");
    }
}
