//! Random edits and requests. Every answer is compared with that of a server that has seen only the current text.
//!
//! `PTX_ABUSE` is the number of steps, a few hundred by default. `PTX_SEED` is the seed of the random numbers. With
//! 10,000 steps or more, the large document has 50 MB.

use crate::KERNEL;
use crate::client::Client;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const CANCELLED: i64 = -32800;
pub(crate) const MODIFIED: i64 = -32801;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn steps() -> u64 {
    variable("PTX_ABUSE", 300)
}

/// Whether this is the long form, in which no other test runs at the same time and the memory use is checked.
fn is_long() -> bool {
    steps() >= 10_000
}

/// Held by the running test, because all tests share the memory of the process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const CALLS: &str = "// π\r\n.version 9.0\r\n.target sm_90\n.address_size 64\n.extern .shared .b8 pool[];\n\
    .global .align 4 .u32 counter = 7, table[3] = {1, 2, 3};\n\
    .func (.param .b32 r) callee(.param .b32 a)\n{\n\t.reg .b32 %r<4>;\n\tld.param.b32 %r1, [a]; // 𝄞\n\
    \tadd.s32 %r2, %r1, 1;\n\tst.param.b32 [r], %r2;\n\tret;\n}\n\
    .visible .entry calls(.param .u64 p, .param .u32 n)\n{\n\t.reg .pred %p<3>;\n\t.reg .b32 %r<9>;\n\
    \t.reg .b64 %rd<4>;\n\tld.param.u64 %rd1, [p];\n\tmov.u32 %r1, %tid.x;\n$again:\n\
    \t{ /* a call\n of two lines */ .param .b32 x; .param .b32 y;\n\tst.param.b32 [x], %r1;\n\
    \tcall.uni (y), callee, (x);\n\tld.param.b32 %r1, [y]; }\n\tsetp.lt.s32 %p1, %r1, 5;\n\t@%p1 bra $again;\n\
    \tst.global.u32 [%rd1], %r1;\n\tst.global.u32 [counter], %r1;\n\tret;\n}\n";

/// Texts that are typed.
const PIECES: [&str; 40] = [
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    ";",
    ",",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "//",
    "/*",
    "*/",
    "@%p1 ",
    "%r1",
    "%r",
    ".",
    "5",
    "-",
    "0f3F800000",
    "π",
    "𝄞",
    "\0",
    "x",
    ".reg .b32 %z;\n",
    "add.s32 %r1, %r2, 3;\n",
    "L1:\n",
    "bra L1;\n",
    ".visible .entry more()\n{\n\tret;\n}\n",
    ".global .b32 more;\n",
    ".version 8.0\n",
    ".target sm_100a\n",
    ".section .debug_str {\n.b8 1\n}\n",
    "call callee, (%r1);",
    "mov.u32 %r2, %ctaid.y;",
    "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];",
];

pub(crate) struct Document {
    pub(crate) uri: String,
    base: String,
    pub(crate) text: String,
    pub(crate) version: i32,
    /// The tokens that the client has, and the id of their answer.
    pub(crate) tokens: Option<(String, Vec<u32>)>,
}

/// The line and the column of an offset, in UTF-16 units. Uses functions of the standard library, which are fast in
/// debug builds too.
fn position(text: &str, offset: usize) -> Value {
    let before = &text[..offset];
    let returns =
        before.match_indices('\r').map(|(at, _)| at + 1).filter(|&end| !text[end..].starts_with('\n'));
    let (mut lines, mut start) = (0, 0);
    for end in before.match_indices('\n').map(|(at, _)| at + 1).chain(returns) {
        (lines, start) = (lines + 1, start.max(end));
    }
    json!({ "line": lines, "character": before[start..].encode_utf16().count() })
}

/// A random place between characters, but not within a line break.
fn somewhere(random: &mut fastrand::Rng, text: &str) -> usize {
    let mut at = text.floor_char_boundary(random.usize(..=text.len()));
    if text[..at].ends_with('\r') && text[at..].starts_with('\n') {
        at -= 1;
    }
    at
}

impl Document {
    pub(crate) fn new(name: &str, base: &str) -> Self {
        let uri = format!("file:///{name}.ptx");
        Self { uri, base: base.to_owned(), text: base.to_owned(), version: 1, tokens: None }
    }

    fn identifier(&self) -> Value {
        json!({ "uri": self.uri })
    }

    /// Changes the text. Returns the change as a client sends it.
    fn change(&mut self, random: &mut fastrand::Rng) -> Value {
        if random.u8(..12) == 0 || self.text.len() > 3 * self.base.len() {
            self.text.clone_from(&self.base);
            return json!({ "text": self.text });
        }
        let from = somewhere(random, &self.text);
        let mut to = from;
        if random.bool() {
            to = self.text.floor_char_boundary(self.text.len().min(from + random.usize(..40))).max(from);
            if self.text[..to].ends_with('\r') && self.text[to..].starts_with('\n') {
                to += 1;
            }
        }
        let count = if to == from { 1 } else { random.usize(..2) };
        let new: String = (0..count).map(|_| *random.choice(&PIECES).expect("some")).collect();
        let range = json!({ "start": position(&self.text, from), "end": position(&self.text, to) });
        self.text.replace_range(from..to, &new);
        json!({ "range": range, "text": new })
    }

    async fn edit(&mut self, client: &mut Client, random: &mut fastrand::Rng) {
        let changes: Vec<Value> = (0..random.usize(1..4)).map(|_| self.change(random)).collect();
        self.version += 1;
        let document = json!({ "uri": self.uri, "version": self.version });
        let params = json!({ "textDocument": document, "contentChanges": changes });
        client.notify("textDocument/didChange", params).await;
    }

    pub(crate) async fn open(&self, client: &mut Client) {
        let document =
            json!({ "uri": self.uri, "languageId": "ptx", "version": self.version, "text": self.text });
        client.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
    }

    async fn close(&mut self, client: &mut Client) {
        self.tokens = None;
        client.notify("textDocument/didClose", json!({ "textDocument": self.identifier() })).await;
    }

    /// A request about a random place.
    fn question(&self, random: &mut fastrand::Rng) -> (&'static str, Value) {
        const OF_DOCUMENT: [&str; 6] = [
            "textDocument/documentSymbol",
            "textDocument/foldingRange",
            "textDocument/codeLens",
            "textDocument/diagnostic",
            "textDocument/semanticTokens/full",
            "textDocument/semanticTokens/full/delta",
        ];
        const OF_PLACE: [&str; 7] = [
            "textDocument/hover",
            "textDocument/completion",
            "textDocument/signatureHelp",
            "textDocument/definition",
            "textDocument/documentHighlight",
            "textDocument/prepareRename",
            "ptx/sassView",
        ];
        const OF_RANGE: [&str; 2] = ["textDocument/inlayHint", "textDocument/semanticTokens/range"];
        let text_document = self.identifier();
        let mut place = || position(&self.text, somewhere(random, &self.text));
        let (here, there) = (place(), place());
        let range = json!({ "start": here, "end": there });
        match random.usize(..18) {
            n @ 0..6 => {
                let previous = self.tokens.as_ref().map_or("none", |(id, _)| id);
                let params = json!({ "textDocument": text_document, "previousResultId": previous });
                (OF_DOCUMENT[n], params)
            }
            n @ 6..13 => (OF_PLACE[n - 6], json!({ "textDocument": text_document, "position": here })),
            n @ 13..15 => (OF_RANGE[n - 13], json!({ "textDocument": text_document, "range": range })),
            15 => {
                let context = json!({ "includeDeclaration": true });
                let params = json!({ "textDocument": text_document, "position": here, "context": context });
                ("textDocument/references", params)
            }
            16 => {
                let params = json!({ "textDocument": text_document, "position": here, "newName": "%other" });
                ("textDocument/rename", params)
            }
            _ => {
                let context = json!({ "diagnostics": [] });
                let params = json!({ "textDocument": text_document, "range": range, "context": context });
                ("textDocument/codeAction", params)
            }
        }
    }

    /// Compares the server's answer with that of a server that sees the text for the first time.
    async fn check(&mut self, client: &mut Client, fresh: &mut Client, random: &mut fastrand::Rng) {
        let (method, params) = self.question(random);
        let answer = client.request(method, params.clone()).await;
        self.open(fresh).await;
        let mut expected = match method {
            "textDocument/semanticTokens/full/delta" => {
                fresh.request("textDocument/semanticTokens/full", params).await
            }
            _ => fresh.request(method, params).await,
        };
        fresh.notify("textDocument/didClose", json!({ "textDocument": self.identifier() })).await;
        if method.starts_with("textDocument/semanticTokens/full") {
            self.receive_tokens(answer.as_ref().expect("tokens"));
            assert_eq!(
                self.numbers(),
                numbers(expected.as_ref().expect("tokens")),
                "{method} about\n{:?}",
                self.text
            );
        } else {
            if let (Ok(answer), Ok(expected)) = (&answer, &mut expected) {
                take_earlier_values(answer, expected);
            }
            assert_eq!(answer, expected, "{method} about\n{:?}", self.text);
        }
    }

    /// Receives the reply to a request that may have been cancelled with this code.
    async fn settle(&mut self, client: &mut Client, id: i64, method: &str, given_up: i64) {
        match client.reply(id).await {
            Ok(answer) if answer["resultId"].is_string() => self.receive_tokens(&answer),
            Ok(_) => {}
            Err(error) => {
                let code = error["code"].as_i64();
                assert!(code == Some(given_up) || method.ends_with("ename"), "{method}: {error}");
            }
        }
    }

    /// Receives tokens, or their changes.
    pub(crate) fn receive_tokens(&mut self, answer: &Value) {
        let id = answer["resultId"].as_str().expect("a name").to_owned();
        let data = match answer["edits"].as_array() {
            None => numbers(answer),
            Some(edits) => {
                let (_, mut data) = self.tokens.take().expect("changes of something");
                // The positions of all changes refer to the tokens before the changes, so the last one is applied
                // first.
                for edit in edits.iter().rev() {
                    let number = |name: &str| edit[name].as_u64().expect("a number") as usize;
                    let (start, count) = (number("start"), number("deleteCount"));
                    data.splice(start..start + count, numbers(edit));
                }
                data
            }
        };
        self.tokens = Some((id, data));
    }

    /// The tokens that the client has.
    pub(crate) fn numbers(&self) -> &[u32] {
        self.tokens.as_ref().map_or(&[], |(_, data)| data)
    }
}

/// While a function cannot be compiled, lenses and hints show its last good values, which a new server does not know.
/// These values replace those of the new server.
fn take_earlier_values(answer: &Value, expected: &mut Value) {
    let (Some(answer), Some(expected)) = (answer.as_array(), expected.as_array_mut()) else { return };
    for (shown, expected) in answer.iter().zip(expected) {
        for place in ["/command/title", "/label"] {
            let text = shown.pointer(place).and_then(Value::as_str).unwrap_or_default();
            if text.starts_with("was: ")
                && let Some(own) = expected.pointer_mut(place)
                && own.as_str().is_some_and(|own| own.contains("compiled"))
            {
                *own = text.into();
            }
        }
    }
}

/// The data of tokens. Empty if the answer has none.
pub(crate) fn numbers(answer: &Value) -> Vec<u32> {
    let data = answer["data"].as_array().into_iter().flatten();
    data.map(|number| number.as_u64().expect("a number") as u32).collect()
}

/// The memory use of the process in bytes.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn capabilities() -> Value {
    json!({ "textDocument": { "diagnostic": {} } })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_that_of_a_new_server() {
    let _alone = ALONE.lock().await;
    let mut random = fastrand::Rng::with_seed(variable("PTX_SEED", 1));
    let options = json!({ "compile": false });
    let (mut client, _) = Client::start(capabilities(), options.clone()).await;
    let (mut fresh, _) = Client::start(capabilities(), options.clone()).await;
    let crlf = CALLS.replace('\n', "\r\n").replace("\r\r", "\r");
    let mut documents = [("saxpy", KERNEL), ("calls", CALLS), ("crlf", &crlf), ("empty", "")]
        .map(|(name, text)| Document::new(name, text));
    for document in &documents {
        document.open(&mut client).await;
    }
    let (all, mut early) = (steps(), None);
    for step in 0..all {
        if step == all / 4 {
            early = memory();
        }
        if step % 2000 == 1999 {
            // A server that is really new.
            fresh.stop().await;
            fresh = Client::start(capabilities(), options.clone()).await.0;
        }
        let document = random.choice(&mut documents).expect("some");
        match random.u8(..20) {
            0..9 => document.edit(&mut client, &mut random).await,
            9..16 => document.check(&mut client, &mut fresh, &mut random).await,
            // The request is cancelled during its work or afterwards.
            16 | 17 => {
                let (method, params) = document.question(&mut random);
                let id = client.post(method, params).await;
                if random.bool() {
                    tokio::time::sleep(Duration::from_micros(random.u64(..3000))).await;
                }
                client.notify("$/cancelRequest", json!({ "id": id })).await;
                document.settle(&mut client, id, method, CANCELLED).await;
            }
            // An edit overtakes the request.
            18 => {
                let (method, params) = document.question(&mut random);
                let id = client.post(method, params).await;
                document.edit(&mut client, &mut random).await;
                document.settle(&mut client, id, method, MODIFIED).await;
            }
            _ => {
                document.close(&mut client).await;
                document.open(&mut client).await;
            }
        }
    }
    if is_long()
        && let (Some(early), Some(late)) = (early, memory())
    {
        assert!(late < early + early / 4 + (16 << 20), "{early} bytes of memory became {late}");
    }
    client.stop().await;
    fresh.stop().await;
}

/// Requests of every kind are cancelled early and late in their work. Each has one reply, and the next answer is right.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_cancelled_at_every_point() {
    let _alone = ALONE.lock().await;
    let mut random = fastrand::Rng::with_seed(11);
    let options = json!({ "compile": false });
    let (mut client, _) = Client::start(capabilities(), options.clone()).await;
    let (mut fresh, _) = Client::start(capabilities(), options).await;
    let mut document = Document::new("calls", CALLS);
    document.open(&mut client).await;
    for delay in (0..20).map(|step| Duration::from_micros(step * 100)) {
        for _ in 0..20 {
            let (method, params) = document.question(&mut random);
            // An edit, so that there is work to be cancelled.
            document.edit(&mut client, &mut random).await;
            let id = client.post(method, params).await;
            tokio::time::sleep(delay).await;
            client.notify("$/cancelRequest", json!({ "id": id })).await;
            document.settle(&mut client, id, method, CANCELLED).await;
        }
        document.check(&mut client, &mut fresh, &mut random).await;
    }
    client.stop().await;
    fresh.stop().await;
}

/// A document with many kernels: requests are answered, the document is edited, and its memory is freed.
#[tokio::test(flavor = "multi_thread")]
async fn a_very_large_document() {
    let _alone = ALONE.lock().await;
    let size = if is_long() { 50 << 20 } else { 1 << 20 };
    let header = ".version 9.0\n.target sm_90\n.address_size 64\n";
    let kernel = CALLS.split_once(".visible").expect("a kernel").1.replace("call.uni (y), callee, (x);", "");
    let mut text = String::from(header);
    while text.len() < size {
        let name = format!(" k{}(", text.len());
        text += ".visible";
        text += &kernel.replace(" calls(", &name).replace("\tst.global.u32 [counter], %r1;\n", "");
    }
    let mut random = fastrand::Rng::with_seed(7);
    // A debug build takes an hour to compile its 80,000 kernels, on the cores that the requests need.
    let compile = !(is_long() && cfg!(debug_assertions));
    let (mut client, _) = Client::start(capabilities(), json!({ "compile": compile })).await;
    let before = memory();
    let mut document = Document::new("large", &text);
    document.open(&mut client).await;
    for _ in 0..12 {
        let (method, params) = document.question(&mut random);
        let id = client.post(method, params).await;
        tokio::time::sleep(Duration::from_micros(random.u64(..20_000))).await;
        client.notify("$/cancelRequest", json!({ "id": id })).await;
        let _ = client.reply(id).await;
        document.edit(&mut client, &mut random).await;
    }
    let params = json!({ "textDocument": document.identifier(), "previousResultId": "none" });
    let all = client.request("textDocument/semanticTokens/full", params).await.expect("tokens");
    document.receive_tokens(&all);
    drop(all);
    let first = document.numbers().len();
    let typed = "// 𝄞\n.global .b32 typed;\n";
    document.text.insert_str(0, typed);
    let zero = json!({ "line": 0, "character": 0 });
    let change = json!({ "range": { "start": zero, "end": zero }, "text": typed });
    let identifier = json!({ "uri": document.uri, "version": document.version + 1 });
    client
        .notify("textDocument/didChange", json!({ "textDocument": identifier, "contentChanges": [change] }))
        .await;
    let previous = document.tokens.as_ref().map(|(id, _)| id.clone());
    let params = json!({ "textDocument": document.identifier(), "previousResultId": previous });
    let changed = client.request("textDocument/semanticTokens/full/delta", params).await.expect("tokens");
    assert!(changed["edits"].is_array(), "only what changed");
    document.receive_tokens(&changed);
    // The comment, the two directives and the name.
    assert_eq!(document.numbers().len(), first + 5 * 4);
    document.close(&mut client).await;
    client.stop().await;
    // In the short form, other tests run in this process at the same time.
    if is_long()
        && let (Some(before), Some(after)) = (before, memory())
    {
        // The memory includes the client's own copy of the text.
        assert!(after < before + 80 * size as u64 + (64 << 20), "{before} bytes of memory became {after}");
    }
}
