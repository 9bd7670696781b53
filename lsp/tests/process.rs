//! Tests the server as a separate process.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

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

/// The exit status after these messages. The stream stays open until then.
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

const KERNEL: &str = include_str!("../../examples/saxpy.ptx");

/// A client that waits for each answer.
struct Session {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Session {
    fn start() -> Self {
        let mut server = server().stdout(Stdio::piped()).spawn().expect("it starts");
        let input = server.stdin.take().expect("it is a pipe");
        let output = BufReader::new(server.stdout.take().expect("it is a pipe"));
        let mut session = Session { server, input, output, asked: 0 };
        session.ask("initialize", json!({ "capabilities": {} }));
        session
    }

    fn say(&mut self, message: &Value) {
        self.input.write_all(framed(&message.to_string()).as_bytes()).expect("the server reads");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        loop {
            let mut message = self.read();
            if message["id"] == self.asked && message["method"].is_null() {
                return message["result"].take();
            }
        }
    }

    fn read(&mut self) -> Value {
        let mut header = String::new();
        self.output.read_line(&mut header).expect("the server writes");
        let length: usize = header.trim()["Content-Length: ".len()..].parse().expect("a length");
        let mut body = vec![0; length + 2];
        self.output.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "ptx", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// The memory use in KiB.
    fn resident(&self) -> usize {
        let path = format!("/proc/{}/statm", self.server.id());
        let pages = std::fs::read_to_string(path).expect("it runs");
        pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number") * 4
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Opens and closes a document many times, with the same name and with many names, and compares the memory use.
#[test]
fn closing_a_document_frees_it() {
    let mut session = Session::start();
    let line = KERNEL.lines().position(|line| line.contains("fma.rn")).expect("it is there");
    let mut sizes = Vec::new();
    for round in 0..1000 {
        let uri = if round % 2 == 0 { "file:///same.ptx".to_owned() } else { format!("file:///{round}.ptx") };
        let document = json!({ "uri": uri });
        session.open(&uri, KERNEL);
        let position = json!({ "line": line, "character": 6 });
        let question = json!({ "textDocument": document, "position": position });
        let compiled = (0..1000).any(|_| {
            let hover = session.ask("textDocument/hover", question.clone());
            let text = hover["contents"]["value"].as_str().expect("a hover");
            assert!(text.contains("FFMA") || text.contains("is being compiled"), "{text}");
            text.contains("FFMA")
        });
        assert!(compiled, "the function is not compiled after 1,000 questions");
        session.tell("textDocument/didClose", json!({ "textDocument": document }));
        if cfg!(target_os = "linux") && round % 100 == 99 {
            sizes.push(session.resident());
        }
    }
    // The first rounds allocate memory that is reused later.
    if let [_, _, early, .., late] = sizes[..] {
        assert!(late < early + 8192, "kilobytes after every 100 rounds: {sizes:?}");
    }
}
