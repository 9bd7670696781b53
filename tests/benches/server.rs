//! How fast the server answers for a document of 10 MB, and how much memory it uses, with the bar for each figure.
//!
//! `cargo bench -p conformance --bench server` prints a table and fails if a figure is above its bar. The server is a
//! process of its own: this program, started again. The time of an answer is that from the first byte of the request to
//! the last byte of the reply. The table shows the time of the slowest in a hundred. In parentheses are the median and the
//! mean processor time; other programs on the machine hardly change the latter.

use conformance::sized::module;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const SIZE: usize = 10 << 20;
const EDITS: usize = 200;
/// How often a request that does not depend on an edit is sent.
const REQUESTS: usize = 20;
/// The argument with which this program is the server.
const SERVE: &str = "--serve";
const URI: &str = "file:///large.ptx";
const MODIFIED: i64 = -32801;

struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: i64,
}

impl Server {
    fn start() -> Self {
        let program = std::env::current_exe().expect("a path");
        let mut process = Command::new(program)
            .arg(SERVE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, input, output, next_id: 0 }
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("it reads");
        self.input.flush().expect("it reads");
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn message(&mut self) -> Vec<u8> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("it writes");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().expect("a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("it writes");
        body
    }

    /// Sends a request and waits for its reply. Sends it again if the document changed in between, as editors do.
    fn request(&mut self, method: &str, params: Value) -> (Duration, Value) {
        let message = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let start = Instant::now();
        loop {
            self.next_id += 1;
            self.send(&message(self.next_id));
            loop {
                let body = self.message();
                // The time that this program needs to parse the reply is not the server's.
                let time = start.elapsed();
                let mut reply: Value = serde_json::from_slice(&body).expect("JSON");
                if reply["id"] != self.next_id || reply.get("method").is_some() {
                    continue;
                }
                if reply["error"]["code"] == MODIFIED {
                    break;
                }
                assert!(reply.get("error").is_none(), "{method}: {reply}");
                return (time, reply["result"].take());
            }
        }
    }

    /// The time that all threads of the process have run.
    fn processor_time(&self) -> Option<Duration> {
        const TICKS_PER_SECOND: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).ok()?;
        // The name of the program is in parentheses. The times are the 14th and 15th fields.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
    }

    /// The memory that the process uses, in bytes.
    fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    }
}

/// The figures and whether each is at or below its bar.
#[derive(Default)]
struct Table {
    is_above: bool,
}

impl Table {
    fn row(&mut self, name: &str, value: f64, bar: f64, unit: &str) {
        let verdict = if value <= bar { "" } else { "  ABOVE" };
        self.is_above |= value > bar;
        println!("{name:<44}{value:>9.1} {unit:<22} bar {bar:>6}{verdict}");
    }

    /// A row for the largest of times, without one in a hundred.
    fn times(&mut self, name: &str, mut times: Vec<Duration>, processor: Option<Duration>, bar: f64) {
        times.sort();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let p99 = milliseconds(times[(times.len() * 99).div_ceil(100) - 1]);
        let median = milliseconds(times[times.len() / 2]);
        let mean = processor.map(|all| format!(", {:.1}", milliseconds(all) / times.len() as f64));
        self.row(name, p99, bar, &format!("ms ({median:.1}{})", mean.unwrap_or_default()));
    }
}

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == SERVE) {
        return ptx_analyzer::serve_stdio();
    }
    let text = module(SIZE);
    let lines: Vec<&str> = text.lines().collect();
    let mut table = Table::default();
    println!("{:<44}{:>9}    (median, processor time)", format!("{} bytes of PTX", text.len()), "p99");
    let mut server = Server::start();
    let capabilities = json!({ "textDocument": { "diagnostic": {} } });
    // The checks alone: compilation in the background would take the processors from them.
    let options = json!({ "compile": false });
    let params = json!({ "processId": null, "capabilities": capabilities, "initializationOptions": options });
    server.request("initialize", params);
    server.notify("initialized", json!({}));
    let document = json!({ "uri": URI, "languageId": "ptx", "version": 1, "text": text });
    let identifier = json!({ "textDocument": { "uri": URI } });
    let diagnostics = |server: &mut Server| server.request("textDocument/diagnostic", identifier.clone()).0;
    let start = Instant::now();
    server.notify("textDocument/didOpen", json!({ "textDocument": document }));
    diagnostics(&mut server);
    table.times("didOpen to diagnostics", vec![start.elapsed()], None, 2000.0);
    let tokens = "textDocument/semanticTokens/full";
    let (first, answer) = server.request(tokens, identifier.clone());
    let mut previous = answer["resultId"].clone();
    drop(answer);
    table.times("semantic tokens, the first time", vec![first], None, 2000.0);
    let symbols = "textDocument/documentSymbol";
    for (name, method) in [("document symbols", symbols), ("folding ranges", "textDocument/foldingRange")] {
        let (first, _) = server.request(method, identifier.clone());
        table.times(&format!("{name}, the first time"), vec![first], None, 1000.0);
    }
    for (name, method) in [
        ("semantic tokens, later", tokens),
        ("document symbols, later", symbols),
        ("folding ranges, later", "textDocument/foldingRange"),
    ] {
        let before = server.processor_time();
        let times = (0..REQUESTS).map(|_| server.request(method, identifier.clone()).0).collect();
        let processor = server.processor_time().zip(before).map(|(after, before)| after - before);
        table.times(name, times, processor, 100.0);
    }
    // Typing and deleting a character in instructions all over the document.
    let places: Vec<usize> = (0..lines.len()).filter(|&line| lines[line].starts_with("    add.")).collect();
    let (mut edits, mut changed, mut outlines) = (Vec::new(), Vec::new(), Vec::new());
    for edit in 0..EDITS {
        let line = places[(edit / 2) * 37 % places.len()];
        let range = |end: u32| json!({ "start": { "line": line, "character": 4 }, "end": { "line": line, "character": end } });
        let change = match edit % 2 {
            0 => json!({ "range": range(4), "text": "x" }),
            _ => json!({ "range": range(5), "text": "" }),
        };
        let start = Instant::now();
        let version = json!({ "uri": URI, "version": edit + 2 });
        server
            .notify("textDocument/didChange", json!({ "textDocument": version, "contentChanges": [change] }));
        diagnostics(&mut server);
        edits.push(start.elapsed());
        let params = json!({ "textDocument": { "uri": URI }, "previousResultId": previous });
        let (time, answer) = server.request("textDocument/semanticTokens/full/delta", params);
        previous = answer["resultId"].clone();
        changed.push(time);
        if edit % (EDITS / REQUESTS) == 0 {
            outlines.push(server.request(symbols, identifier.clone()).0);
        }
    }
    table.times("edit to diagnostics", edits, None, 100.0);
    table.times("changed semantic tokens after an edit", changed, None, 100.0);
    table.times("document symbols after an edit", outlines, None, 100.0);
    if let Some(memory) = server.memory() {
        table.row("memory", memory as f64 / text.len() as f64, 40.0, "bytes per byte");
    }
    server.request("shutdown", Value::Null);
    server.notify("exit", Value::Null);
    let ended = server.process.wait().expect("it ends");
    if ended.success() && !table.is_above { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
