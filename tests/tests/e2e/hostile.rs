//! Messages that no client should send. They are answered or ignored, and the session continues.

use crate::client::Client;
use crate::{KERNEL, URI, document, started};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// The codes of the error replies without a known id, once the server has answered a later request.
async fn codes(client: &mut Client) -> Vec<i64> {
    client.request("textDocument/documentSymbol", document()).await.expect("the session goes on");
    client.refusals.drain(..).map(|refusal| refusal["error"]["code"].as_i64().expect("an error")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_none_are_refused() {
    let mut client = started().await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let cases = [
        (framed("{,}"), vec![-32700]),
        (framed("{}"), vec![-32600]),
        (framed(r#"[{"jsonrpc":"2.0","method":"foo"}]"#), vec![-32600]),
        (framed(r#"{"jsonrpc":"2.0","id":1.5,"method":"foo"}"#), vec![-32600]),
        (framed(&format!(r#"{{"jsonrpc":"2.0","id":"x","method":"foo","params":{deep}}}"#)), vec![-32602]),
        (framed(&format!(r#"{{"jsonrpc":"2.0","method":"foo","params":{deep}}}"#)), vec![]),
        (framed(r#"{"jsonrpc":"2.0","id":"x","method":"foo"}"#), vec![-32601]),
        (framed(r#"{"jsonrpc":"2.0","id":77,"result":null}"#), vec![]),
        (framed(""), vec![-32700]),
        ("content-length: 2\r\nUnknown: yes\r\n\r\n{}".into(), vec![-32600]),
        ("Content-Length: -5\r\n\r\n{}".into(), vec![-32700]),
        ("Content-Length: 99999999999\r\n\r\n{}".into(), vec![-32700]),
        ("Unknown: yes\r\n\r\n{}".into(), vec![-32700]),
        ("garbage".into(), vec![-32700]),
    ];
    for (message, expected) in cases {
        client.send_raw(message.as_bytes()).await;
        assert_eq!(codes(&mut client).await, expected, "{message}");
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_surrogate_pair_keeps_the_text_and_its_positions() {
    for encoding in ["utf-16", "utf-8"] {
        let capabilities = json!({ "general": { "positionEncodings": [encoding] } });
        let (mut client, _) = Client::start(capabilities, json!({})).await;
        // A client counts one UTF-16 unit or three bytes.
        let width = if encoding == "utf-16" { 1 } else { 3 };
        let text = KERNEL.replace("fma.rn", "/*?*/ fna.rn");
        let open = json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {
            "textDocument": { "uri": URI, "languageId": "ptx", "version": 1, "text": text } } });
        client.send_raw(framed(&open.to_string().replace("/*?*/", r"/*\ud800*/")).as_bytes()).await;
        let found = client.diagnostics(1).await;
        let (line, column) = crate::place(KERNEL, "fma.rn");
        let fault = found.iter().find(|d| d["message"].as_str().is_some_and(|m| m.contains("fna"))).unwrap();
        assert_eq!(fault["range"]["start"], json!({ "line": line, "character": column + 5 + width }));
        client.edit(URI, 2, line, column, column + 8 + width, "fma").await;
        assert_eq!(client.diagnostics(2).await, [] as [Value; 0]);
        client.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_carriage_return_ends_a_line() {
    for encoding in ["utf-16", "utf-8"] {
        let capabilities = json!({ "general": { "positionEncodings": [encoding] } });
        let (mut client, _) = Client::start(capabilities, json!({})).await;
        // The first line is a comment, which continues after a carriage return.
        let text = KERNEL.replacen('\n', "\n// π\r\r", 1).replace("fma.rn", "fna.rn");
        client.open(URI, &text).await;
        let found = client.diagnostics(1).await;
        let (line, column) = crate::place(KERNEL, "fma.rn");
        assert_eq!(found.last().unwrap()["range"]["start"], json!({ "line": line + 2, "character": column }));
        client.edit(URI, 2, line + 2, column, column + 3, "fma").await;
        let left = client.diagnostics(2).await;
        assert_eq!(left.len(), found.len() - 1, "{left:?}");
        client.stop().await;
    }
}

/// After ten thousand messages made of pieces of messages, the server works as before.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_hostile_messages_end_nothing() {
    let mut client = started().await;
    let mut random = fastrand::Rng::with_seed(11);
    let good = [
        json!({ "jsonrpc": "2.0", "id": "h", "method": "textDocument/hover", "params": crate::at("fma.rn") }),
        json!({ "jsonrpc": "2.0", "id": "s", "method": "textDocument/foldingRange", "params": document() }),
        json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": "h" } }),
        json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
            "textDocument": { "uri": "file:///none.ptx", "version": 3 }, "contentChanges": [{ "text": "x" }] } }),
        json!({ "jsonrpc": "2.0", "id": 99_999_999, "result": null }),
    ];
    let mut batch = Vec::new();
    for count in 1..=10_000 {
        let text = random.choice(&good).expect("some").to_string();
        let mut body = text.clone().into_bytes();
        for _ in 0..random.usize(..4) {
            let (at, from) = (random.usize(1..body.len()), random.usize(..text.len()));
            match random.u8(..6) {
                0 => body[at] = random.u8(..),
                1 => body.insert(at, *random.choice(b"{}[]\",:\\u\r\n0").expect("some")),
                2 => body.truncate(at + 1),
                3 => drop(body.splice(at..at, text.bytes().skip(from).take(9))),
                4 => body.make_ascii_uppercase(),
                _ => body.extend_from_slice(b"\r\n\r\n"),
            }
        }
        let length = body.len();
        let header = match random.u8(..12) {
            0 => format!("Content-Length: {}\r\n\r\n", length + random.usize(..20)),
            1 => format!("Content-Length: {}\r\n\r\n", length / 2),
            2 => format!("Content-Length: -{length}\r\n\r\n"),
            3 => format!("Content-Length: {length}0000000000\r\n\r\n"),
            4 => "Content-Type: none\r\n\r\n".to_owned(),
            5 => String::new(),
            6 => format!("X-Y: z\r\ncontent-length:{length}\r\n\r\n"),
            _ => format!("Content-Length: {length}\r\n\r\n"),
        };
        batch.extend_from_slice(header.as_bytes());
        batch.append(&mut body);
        if count % 100 == 0 {
            // A body may be too short. Its missing bytes are then taken from the following text.
            batch.resize(batch.len() + 64, b' ');
            client.send_raw(&batch).await;
            batch.clear();
            client.request("textDocument/documentSymbol", document()).await.expect("the session goes on");
        }
    }
    assert!(client.refusals.len() > 1000, "{} refusals", client.refusals.len());
    let hover = client.request("textDocument/hover", crate::at("fma.rn")).await.unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("FFMA"));
    client.stop().await;
}

/// If a client sends requests without reading, the server stops listening until the client reads. Then the client gets
/// every answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_not_heard() {
    const COUNT: usize = 60;
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let server = tokio::spawn(ptx_analyzer::server::serve(input, output));
    let (mut input, mut output) = tokio::io::split(ours);
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let writer = tokio::spawn(async move {
        // The answer repeats the id.
        let request = json!({ "jsonrpc": "2.0", "id": "x".repeat(1 << 20), "method": "none" }).to_string();
        for _ in 0..COUNT {
            output.write_all(framed(&request).as_bytes()).await.expect("the server reads at last");
            counter.fetch_add(1, Ordering::Relaxed);
        }
        output
    });
    let mut before = 0;
    while before < 30 || before != sent.load(Ordering::Relaxed) {
        before = sent.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!((30..40).contains(&before), "{before} megabytes of answers wait");
    let mut answers = vec![0; COUNT << 20];
    tokio::time::timeout(Duration::from_secs(120), input.read_exact(&mut answers))
        .await
        .expect("the server goes on")
        .expect("it writes");
    drop(writer.await.expect("everything is sent"));
    drop(input);
    server.await.expect("it ends");
}
