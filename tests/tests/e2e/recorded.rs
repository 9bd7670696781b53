//! Sessions of real editors, which `tests/editors/record.py` recorded. They are sent again in the same order. The
//! replay waits for an answer where the editor received it, and compares it with the answer of a server that sees only
//! the text.
//!
//! Machine code is not compiled in the background here, because the results would depend on timing.

use crate::abuse::{CANCELLED, Document, MODIFIED, numbers};
use crate::client::{Client, is_early};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A request without an answer so far.
struct Asked {
    /// Its id in this session.
    id: i64,
    method: String,
    params: Value,
    /// The document's version at the time of the request.
    version: Option<i32>,
    is_cancelled: bool,
}

struct Session {
    client: Client,
    fresh: Client,
    documents: HashMap<String, Document>,
    /// Indexed by the editor's ids.
    asked: BTreeMap<String, Asked>,
    is_utf8: bool,
    compared: usize,
}

/// The offset of a position.
fn offset(text: &str, position: &Value, is_utf8: bool) -> usize {
    let number = |name: &str| position[name].as_u64().expect("a number") as usize;
    let (line, column) = (number("line"), number("character"));
    let start = match line {
        0 => 0,
        _ => match text.match_indices('\n').nth(line - 1) {
            Some((at, _)) => at + 1,
            None => return text.len(),
        },
    };
    let line = text[start..].split('\n').next().expect("a line").trim_end_matches('\r');
    let mut left = column;
    let width = |c: char| if is_utf8 { c.len_utf8() } else { c.len_utf16() };
    let before = line.chars().take_while(|&c| left.checked_sub(width(c)).map(|rest| left = rest).is_some());
    start + before.map(char::len_utf8).sum::<usize>()
}

impl Session {
    async fn start(mut params: Value) -> Session {
        // The editor is not the parent of this process.
        params["processId"] = Value::Null;
        params["initializationOptions"] = json!({ "compile": false });
        let mut servers = [Client::connect(), Client::connect()];
        let mut answers = Vec::new();
        for client in &mut servers {
            answers.push(client.request("initialize", params.clone()).await.expect("initialize succeeds"));
        }
        assert_eq!(answers[0], answers[1]);
        let is_utf8 = answers[0]["capabilities"]["positionEncoding"] == "utf-8";
        let [client, mut fresh] = servers;
        fresh.notify("initialized", json!({})).await;
        Session { client, fresh, documents: HashMap::new(), asked: BTreeMap::new(), is_utf8, compared: 0 }
    }

    /// The document that the parameters refer to, if it is open.
    fn document(&mut self, params: &Value) -> Option<&mut Document> {
        self.documents.get_mut(params["textDocument"]["uri"].as_str()?)
    }

    async fn send(&mut self, mut message: Value) {
        let mut params = message["params"].take();
        let method = message["method"].as_str().expect("a method").to_owned();
        if !message["id"].is_null() {
            if let Some(document) = self.document(&params)
                && params["previousResultId"].is_string()
            {
                params["previousResultId"] = document.tokens.as_ref().map_or("none", |(id, _)| id).into();
            }
            let version = self.document(&params).map(|document| document.version);
            let id = self.client.post(&method, params.clone()).await;
            let asked = Asked { id, method, params, version, is_cancelled: false };
            self.asked.insert(message["id"].to_string(), asked);
            return;
        }
        let is_utf8 = self.is_utf8;
        match method.as_str() {
            "$/cancelRequest" => {
                let Some(asked) = self.asked.get_mut(&params["id"].to_string()) else { return };
                asked.is_cancelled = true;
                params["id"] = asked.id.into();
            }
            // The message would enable compilation.
            "workspace/didChangeConfiguration" => return,
            "textDocument/didOpen" => {
                let document = &params["textDocument"];
                let uri = document["uri"].as_str().expect("a name").to_owned();
                let text = document["text"].as_str().expect("a text");
                let mut new = Document::new("recorded", text);
                new.version = document["version"].as_i64().expect("a version") as i32;
                new.uri.clone_from(&uri);
                self.documents.insert(uri, new);
            }
            "textDocument/didChange" => {
                let document = self.document(&params).expect("an open document");
                document.version = params["textDocument"]["version"].as_i64().expect("a version") as i32;
                for change in params["contentChanges"].as_array().expect("changes") {
                    let text = change["text"].as_str().expect("a text");
                    match &change["range"] {
                        Value::Null => text.clone_into(&mut document.text),
                        range => {
                            let at = |position| offset(&document.text, &range[position], is_utf8);
                            let range = at("start")..at("end");
                            document.text.replace_range(range, text);
                        }
                    }
                }
            }
            "textDocument/didClose" => {
                self.documents.remove(params["textDocument"]["uri"].as_str().expect("a name"));
            }
            _ => {}
        }
        self.client.notify(&method, params).await;
    }

    /// Waits for the answer to a request and checks it.
    async fn reply(&mut self, id: &str) {
        let Some(Asked { id, method, params, version, is_cancelled }) = self.asked.remove(id) else { return };
        let mut answer = self.client.reply(id).await;
        if matches!(&answer, Ok(hover) if is_early(hover)) {
            answer = self.client.request(&method, params.clone()).await;
        }
        let is_tokens = method.starts_with("textDocument/semanticTokens/full");
        if is_tokens
            && let Ok(tokens) = &answer
            && let Some(document) = self.document(&params)
            && tokens["resultId"].is_string()
        {
            document.receive_tokens(tokens);
        }
        let is_changed = self.document(&params).map(|document| document.version) != version;
        if let Err(error) = &answer
            && (is_cancelled && error["code"] == CANCELLED || is_changed && error["code"] == MODIFIED)
        {
            return;
        }
        // For a function with errors, these show the values from before the errors.
        let depends_on_the_past = matches!(&*method, "textDocument/inlayHint" | "textDocument/codeLens");
        if is_changed
            || depends_on_the_past
            || !method.starts_with("textDocument/") && method != "ptx/sassView"
        {
            return;
        }
        let Some(document) = self.documents.get_mut(params["textDocument"]["uri"].as_str().unwrap_or(""))
        else {
            return;
        };
        document.open(&mut self.fresh).await;
        let asked = if is_tokens { "textDocument/semanticTokens/full" } else { &method };
        let expected = self.fresh.request(asked, params).await;
        let close = json!({ "textDocument": { "uri": document.uri } });
        self.fresh.notify("textDocument/didClose", close).await;
        if is_tokens {
            assert_eq!(
                document.numbers(),
                numbers(&expected.expect("tokens")),
                "{method} about\n{}",
                document.text
            );
        } else {
            assert_eq!(answer, expected, "{method} about\n{}", document.text);
        }
        self.compared += 1;
    }
}

/// Replays a session. Returns the number of compared answers.
async fn replay(text: &str) -> usize {
    let mut entries = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut first = entries.next().expect("a session").take();
    assert_eq!(first["send"]["method"], "initialize");
    let mut session = Session::start(first["send"]["params"].take()).await;
    for mut entry in entries {
        match entry["send"]["method"].as_str() {
            Some("shutdown" | "exit") => break,
            Some(_) => session.send(entry["send"].take()).await,
            None => session.reply(&entry["reply"].to_string()).await,
        }
    }
    // The editor was closed before it received answers to these requests.
    for (_, asked) in std::mem::take(&mut session.asked) {
        let _ = session.client.reply(asked.id).await;
    }
    session.client.stop().await;
    session.fresh.stop().await;
    session.compared
}

fn recorded() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the recorded sessions")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| std::fs::read_to_string(path).expect("a text");
    files.iter().map(|path| (path.display().to_string(), read(path))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_editors_have_the_answers_of_a_new_server() {
    let sessions = recorded();
    assert!(sessions.len() >= 2, "one of each editor");
    for (name, text) in sessions {
        let compared = replay(&text).await;
        assert!(compared >= 10, "{name}: {compared} answers compared");
    }
}
