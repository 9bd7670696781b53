//! The server as a process of its own.

use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};

fn server() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptx-lsp"));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command
}

fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#;
const SHUTDOWN: &str = r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#;
const EXIT: &str = r#"{"jsonrpc":"2.0","method":"exit"}"#;

/// The status after these messages; the stream stays open until then.
fn status(command: &mut Command, messages: &[&str]) -> ExitStatus {
    let mut server = command.spawn().expect("it starts");
    let mut input = server.stdin.take().expect("it is a pipe");
    for message in messages {
        input.write_all(framed(message).as_bytes()).expect("the server reads");
    }
    let status = server.wait().expect("it ends");
    drop(input);
    status
}

#[test]
fn the_exit_status_says_whether_shutdown_came_first() {
    assert_eq!(status(&mut server(), &[INITIALIZE, SHUTDOWN, EXIT]).code(), Some(0));
    assert_eq!(status(&mut server(), &[INITIALIZE, EXIT]).code(), Some(1));
    assert_eq!(status(&mut server(), &[EXIT]).code(), Some(1));
}

#[test]
fn the_environment_does_not_set_the_number_of_threads() {
    let mut server = server();
    server.env("TOKIO_WORKER_THREADS", "0");
    assert_eq!(status(&mut server, &[INITIALIZE, SHUTDOWN, EXIT]).code(), Some(0));
}
