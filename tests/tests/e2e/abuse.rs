//! Random edits and requests. Every answer is compared with that of a server that has seen only the current text.
//!
//! `PTX_ABUSE` is the number of steps, a few hundred by default. `PTX_SEED` is the seed of the random numbers. With
//! 10,000 steps or more, the large document has 50 MB.

mod answers;
mod questions;

use crate::KERNEL;
use crate::client::Client;
use answers::Lines;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(crate) const CANCELLED: i64 = -32800;
pub(crate) const MODIFIED: i64 = -32801;
const INVALID: i64 = -32602;

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

const CUDA: &str = "// asm(\"trap \u{3c0};\");\n__device__ unsigned f(unsigned x)\n{\n    unsigned r;\n\
    \x20   asm volatile(\"{\\n\\t.reg .pred p;\\n\\t\" // a predicate\n\
    \x20       R\"(setp.ne.u32 p, %1, 0;\n)\" \"@p mov.u32 %0, %%laneid;\\n\\t}\" : \"=r\"(r) : \"r\"(x));\n    return r;\n}\n";

const PYTHON: &str = "import triton.language as tl\n\nPTX = \"\"\"\n.version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .entry k()\n{\n\t.reg .b32 %r<3>;\n\tmov.u32 %r1, %tid.x;\n\tret;\n}\n\"\"\"\n\
    y = tl.inline_asm_elementwise(\"add.s32 $0, $1, 1;\", \"=r,r\", [x], dtype=tl.int32, is_pure=True, pack=1)\n";

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
    language: &'static str,
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
        Self { uri, language: "ptx", base: base.to_owned(), text: base.to_owned(), version: 1, tokens: None }
    }

    /// A document of another language that contains PTX.
    fn embedded(name: &str, language: &'static str, base: &str) -> Self {
        Self { uri: format!("file:///{name}"), language, ..Self::new(name, base) }
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
        let document = json!({ "uri": self.uri, "languageId": self.language, "version": self.version, "text": self.text });
        client.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
    }

    async fn close(&mut self, client: &mut Client) {
        self.tokens = None;
        client.notify("textDocument/didClose", json!({ "textDocument": self.identifier() })).await;
    }

    /// A request about a random place.
    fn question(&self, random: &mut fastrand::Rng) -> (&'static str, Value) {
        questions::question(self, random)
    }

    /// Compares the server's answer with that of a server that sees the text for the first time. If functions are
    /// compiled in the background, the answer may show that for a while; so it is requested until it is the same.
    async fn check(
        &mut self,
        client: &mut Client,
        fresh: &mut Client,
        random: &mut fastrand::Rng,
        is_compiled: bool,
    ) {
        let (method, params) = self.question(random);
        self.open(fresh).await;
        let start = Instant::now();
        loop {
            let answer = client.request(method, params.clone()).await;
            let mut expected = match method {
                "textDocument/semanticTokens/full/delta" => {
                    fresh.request("textDocument/semanticTokens/full", params.clone()).await
                }
                _ => fresh.request(method, params.clone()).await,
            };
            let lines = Lines::new(&self.uri, &self.text);
            if let Ok(expected) = &expected {
                // The changes of tokens were answered with all tokens.
                let checked = lines.check(method.trim_end_matches("/delta"), expected);
                assert_eq!(checked, Ok(()), "{method} {params} about\n{:?}", self.text);
            }
            if method.starts_with("textDocument/semanticTokens/full") {
                self.receive_tokens(answer.as_ref().expect("tokens"));
                let expected = numbers(expected.as_ref().expect("tokens"));
                assert_eq!(self.numbers(), expected, "{method} about\n{:?}", self.text);
                break;
            }
            let mut answer = answer;
            if let (Ok(answer), Ok(expected)) = (&mut answer, &mut expected) {
                take_earlier_values(answer, expected);
                if method == "workspace/symbol" {
                    // The new server has only this document.
                    let of_others = |symbol: &Value| symbol["location"]["uri"] != *self.uri;
                    answer.as_array_mut().expect("symbols").retain(|symbol| !of_others(symbol));
                }
            }
            if answer != expected && is_compiled && start.elapsed() < Duration::from_secs(60) {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            assert_eq!(answer, expected, "{method} {params} about\n{:?}", self.text);
            if let Ok(answer) = &answer {
                if method.ends_with("ormatting") {
                    self.format(method, answer, fresh).await;
                }
                if method == "textDocument/completion" {
                    resolve(answer, client, fresh, random).await;
                }
            }
            break;
        }
        fresh.notify("textDocument/didClose", json!({ "textDocument": self.identifier() })).await;
    }

    /// Checks edits of formatting: they change only blanks, and a formatted document is not formatted again.
    async fn format(&self, method: &str, edits: &Value, fresh: &mut Client) {
        let formatted = Lines::new(&self.uri, &self.text).formatted(edits);
        if method == "textDocument/formatting" && formatted != self.text {
            let document = Document { language: self.language, ..Document::new("formatted", &formatted) };
            document.open(fresh).await;
            let options = json!({ "tabSize": 4, "insertSpaces": true });
            let params = json!({ "textDocument": document.identifier(), "options": options });
            let again = fresh.request(method, params).await.expect("an answer");
            fresh.notify("textDocument/didClose", json!({ "textDocument": document.identifier() })).await;
            assert_eq!(again, json!([]), "{formatted:?}, which is the format of {:?}", self.text);
        }
    }

    /// The ranges of an answer that an edit overtook are in the text before the edit or in that after it, whichever the
    /// answer is about.
    fn check_overtaken(&self, method: &str, answer: &Value, before: &str) {
        let check = |text| Lines::new(&self.uri, text).check(method, answer);
        if let (Err(error), Err(_)) = (check(before), check(&self.text)) {
            panic!("{method}: {error} in {answer} about\n{before:?}, and then {:?}", self.text);
        }
    }

    /// Receives the reply to a request that may have been cancelled with this code. Returns an answer.
    async fn settle(&mut self, client: &mut Client, id: i64, method: &str, given_up: i64) -> Option<Value> {
        match client.reply(id).await {
            Ok(answer) => {
                if method.starts_with("textDocument/semanticTokens/full") {
                    self.receive_tokens(&answer);
                }
                Some(answer)
            }
            Err(error) => {
                let code = error["code"].as_i64();
                let is_refused = code == Some(INVALID)
                    && ["textDocument/rename", "ptx/sassDifference", "workspace/executeCommand"]
                        .contains(&method);
                assert!(code == Some(given_up) || is_refused, "{method}: {error}");
                None
            }
        }
    }

    /// Receives tokens, or their changes.
    pub(crate) fn receive_tokens(&mut self, answer: &Value) {
        if answer.is_null() {
            self.tokens = None;
            return;
        }
        // Tokens in other languages have no name, and are always sent as a whole.
        let id = answer["resultId"].as_str().unwrap_or("none").to_owned();
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

/// Resolves an item of a list of completions. Resolving adds the documentation and changes nothing else.
async fn resolve(answer: &Value, client: &mut Client, fresh: &mut Client, random: &mut fastrand::Rng) {
    let Some(item) = answer.as_array().and_then(|items| random.choice(items)) else { return };
    let mut resolved = client.request("completionItem/resolve", item.clone()).await.expect("an item");
    assert_eq!(fresh.request("completionItem/resolve", item.clone()).await, Ok(resolved.clone()));
    resolved.as_object_mut().expect("an item").remove("documentation");
    assert_eq!(resolved, *item);
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
    abuse(false, steps()).await;
}

/// The same while functions are compiled in the background.
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_that_of_a_new_server_that_compiles() {
    let _alone = ALONE.lock().await;
    abuse(true, steps() / 10).await;
}

async fn abuse(is_compiled: bool, all: u64) {
    let mut random = fastrand::Rng::with_seed(variable("PTX_SEED", 1));
    let options = json!({ "compile": is_compiled });
    let (mut client, _) = Client::start(capabilities(), options.clone()).await;
    let (mut fresh, _) = Client::start(capabilities(), options.clone()).await;
    let crlf = CALLS.replace('\n', "\r\n").replace("\r\r", "\r");
    let mut documents = [("saxpy", KERNEL), ("calls", CALLS), ("crlf", &crlf), ("empty", "")]
        .map(|(name, text)| Document::new(name, text))
        .into_iter()
        .chain([
            Document::embedded("kernel.cu", "cuda-cpp", CUDA),
            Document::embedded("kernel.py", "python", PYTHON),
        ])
        .collect::<Vec<_>>();
    for document in &documents {
        document.open(&mut client).await;
    }
    let mut early = None;
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
            9..16 => document.check(&mut client, &mut fresh, &mut random, is_compiled).await,
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
                let before = document.text.clone();
                document.edit(&mut client, &mut random).await;
                if let Some(answer) = document.settle(&mut client, id, method, MODIFIED).await {
                    document.check_overtaken(method, &answer, &before);
                }
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
        document.check(&mut client, &mut fresh, &mut random, false).await;
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
