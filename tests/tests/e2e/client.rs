//! A client in the same process: the server's streams are pipes in memory.
//!
//! Requests and notifications are sent as an editor sends them. Received messages are sorted into replies and
//! notifications. Dropping the client fails the test if it has not looked at every reply.

use ptx_analyzer::transport::Ending;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

/// Longer than anything here takes on a busy machine. Only a hang reaches this limit.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Client {
    input: ReadHalf<DuplexStream>,
    output: WriteHalf<DuplexStream>,
    buffer: Vec<u8>,
    next_id: i64,
    replies: HashMap<i64, Value>,
    notifications: VecDeque<Value>,
    /// The requests of the server to the client.
    pub(crate) asked: Vec<Value>,
    /// The answer to requests for the client's settings.
    pub(crate) settings: Value,
    /// Error replies without a known id.
    pub(crate) refusals: Vec<Value>,
    server: Option<JoinHandle<Ending>>,
}

/// Whether a hover lacks the machine code because the function is still being compiled.
pub(crate) fn is_early(hover: &Value) -> bool {
    hover["contents"]["value"].as_str().is_some_and(|text| text.contains("being compiled"))
}

impl Client {
    /// Starts a server and initializes it with the given client capabilities and options.
    pub(crate) async fn start(capabilities: Value, options: Value) -> (Client, Value) {
        let mut client = Client::connect();
        let parameters = json!({ "processId": null, "rootUri": null, "capabilities": capabilities, "initializationOptions": options });
        let answer = client.request("initialize", parameters).await.expect("initialize succeeds");
        client.notify("initialized", json!({})).await;
        (client, answer)
    }

    /// Starts a server without sending anything.
    pub(crate) fn connect() -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let server = tokio::spawn(ptx_analyzer::server::serve(read, write));
        let (input, output) = tokio::io::split(ours);
        Client {
            input,
            output,
            buffer: Vec::new(),
            next_id: 0,
            replies: HashMap::new(),
            notifications: VecDeque::new(),
            refusals: Vec::new(),
            asked: Vec::new(),
            settings: Value::Null,
            server: Some(server),
        }
    }

    async fn send(&mut self, message: Value) {
        let body = message.to_string();
        self.send_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
    }

    /// Sends bytes that may not be a message.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.output.write_all(bytes).await.expect("the server reads");
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request. Returns its id, to wait for the reply later.
    pub(crate) async fn post(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Waits for the reply to a request.
    pub(crate) async fn reply(&mut self, id: i64) -> Result<Value, Value> {
        loop {
            if let Some(mut reply) = self.replies.remove(&id) {
                return match reply.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(reply["result"].take()),
                };
            }
            self.receive().await;
        }
    }

    /// Sends a request and waits for the reply. Sends it again if the text changed in between, as editors do, or if a
    /// hover did not wait for the compiler, as users do.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        loop {
            let id = self.post(method, params.clone()).await;
            match self.reply(id).await {
                Err(error) if error["code"] == -32801 => {}
                Ok(hover) if is_early(&hover) => tokio::time::sleep(Duration::from_millis(20)).await,
                answer => return answer,
            }
        }
    }

    /// The next notification of any kind.
    pub(crate) async fn any_notification(&mut self) -> Value {
        loop {
            match self.notifications.pop_front() {
                Some(message) => return message,
                None => self.receive().await,
            }
        }
    }

    /// The parameters of the next notification of a method. Other notifications are dropped.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        loop {
            let mut message = self.any_notification().await;
            if message["method"] == method {
                return message["params"].take();
            }
        }
    }

    /// The diagnostics sent for a version of a document.
    pub(crate) async fn diagnostics(&mut self, version: i32) -> Vec<Value> {
        loop {
            let mut params = self.notification("textDocument/publishDiagnostics").await;
            if params["version"] == version {
                return params["diagnostics"].as_array_mut().map(std::mem::take).unwrap_or_default();
            }
        }
    }

    /// Reads one message. Answers requests of the server.
    pub(crate) async fn receive(&mut self) {
        let message =
            tokio::time::timeout(PATIENCE, self.message()).await.expect("the server answers in time");
        if message.get("method").is_none() {
            match message["id"].as_i64().filter(|&id| id <= self.next_id) {
                Some(id) => drop(self.replies.insert(id, message)),
                None => self.refusals.push(message),
            }
        } else if let Some(id) = message.get("id") {
            let result = match message["method"] == "workspace/configuration" {
                true => json!([self.settings]),
                false => Value::Null,
            };
            self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
            self.asked.push(message);
        } else {
            self.notifications.push_back(message);
        }
    }

    async fn message(&mut self) -> Value {
        loop {
            if let Some(message) = self.take_message() {
                return message;
            }
            let mut chunk = [0; 4096];
            let count = self.input.read(&mut chunk).await.expect("the server writes");
            assert!(count > 0, "the server closed the stream");
            self.buffer.extend_from_slice(&chunk[..count]);
        }
    }

    fn take_message(&mut self) -> Option<Value> {
        let head = self.buffer.windows(4).position(|w| w == b"\r\n\r\n")?;
        let header = std::str::from_utf8(&self.buffer[..head]).expect("headers are text");
        let length = header.lines().find_map(|l| l.strip_prefix("Content-Length: ")).expect("a length");
        let length: usize = length.trim().parse().expect("a number");
        let end = head + 4 + length;
        if self.buffer.len() < end {
            return None;
        }
        let message = serde_json::from_slice(&self.buffer[head + 4..end]).expect("JSON");
        self.buffer.drain(..end);
        Some(message)
    }

    pub(crate) async fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "ptx", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
    }

    /// Replaces columns `from..to` of a line.
    pub(crate) async fn edit(&mut self, uri: &str, version: i32, line: u32, from: u32, to: u32, text: &str) {
        let range =
            json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } });
        let params = json!({
            "textDocument": { "uri": uri, "version": version },
            "contentChanges": [{ "range": range, "text": text }],
        });
        self.notify("textDocument/didChange", params).await;
    }

    /// Closes the stream to the server.
    pub(crate) async fn hang_up(&mut self) {
        self.output.shutdown().await.expect("the server still reads");
    }

    /// Ends the session as an editor does.
    pub(crate) async fn stop(mut self) {
        self.request("shutdown", Value::Null).await.expect("shutdown succeeds");
        self.notify("exit", Value::Null).await;
        assert_eq!(self.ended().await, Ending::Orderly);
    }

    /// Waits until the server ends.
    pub(crate) async fn ended(&mut self) -> Ending {
        let server = self.server.take().expect("started once");
        tokio::time::timeout(PATIENCE, server).await.expect("the server ends").expect("without a panic")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let unread: Vec<_> = self.replies.keys().collect();
            assert!(unread.is_empty(), "replies nobody looked at: {unread:?}");
        }
    }
}
