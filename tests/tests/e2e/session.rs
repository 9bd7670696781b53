//! How sessions begin and end.

use crate::client::Client;
use crate::{KERNEL, URI, document};
use ptx_analyzer::transport::Ending;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn exit_without_shutdown_is_abrupt() {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    client.notify("exit", Value::Null).await;
    assert_eq!(client.ended().await, Ending::Abrupt);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_before_the_end_of_the_stream_are_answered() {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    client.open(URI, KERNEL).await;
    let id = client.post("textDocument/documentSymbol", document()).await;
    client.hang_up().await;
    assert!(client.reply(id).await.is_ok_and(|symbols| symbols.is_array()));
    assert_eq!(client.ended().await, Ending::Abrupt);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_server_ends_with_the_process_that_started_it() {
    let mut editor = std::process::Command::new("sleep").arg("600").spawn().expect("it starts");
    let mut client = Client::connect();
    let parameters = json!({ "processId": editor.id(), "capabilities": {} });
    client.request("initialize", parameters).await.expect("initialize succeeds");
    client.request("shutdown", Value::Null).await.expect("the server lives while the process does");
    editor.kill().expect("it is ours");
    editor.wait().expect("it ends");
    let start = Instant::now();
    assert_eq!(client.ended().await, Ending::Abrupt);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_wait_for_initialize() {
    let mut client = Client::connect();
    client.open(URI, KERNEL).await;
    let early = client.request("textDocument/hover", document()).await;
    assert_eq!(early.expect_err("not yet")["code"], -32002);
    client.request("initialize", json!({ "capabilities": {} })).await.expect("initialize succeeds");
    assert_eq!(client.request("textDocument/documentSymbol", document()).await, Ok(Value::Null));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_document_holds_up_no_other() {
    const LARGE: &str = "file:///large.ptx";
    let (mut client, _) = Client::start(json!({}), json!({ "compile": false })).await;
    client.open(URI, KERNEL).await;
    client.diagnostics(1).await;
    let line = "    add.s32 %r5, %r5, %r4;\n";
    client.open(LARGE, &KERNEL.replace("    ret;\n", &format!("{}    ret;\n", line.repeat(60_000)))).await;
    let folds = client.post("textDocument/foldingRange", json!({ "textDocument": { "uri": LARGE } })).await;
    // Each edit has to wait until the check releases the database.
    for version in 2..8 {
        client.edit(URI, version, 0, 0, 0, "//\n").await;
        loop {
            let found = client.notification("textDocument/publishDiagnostics").await;
            assert_eq!(found["uri"], URI, "the large document comes last");
            if found["version"] == version {
                break;
            }
        }
    }
    assert_eq!(client.notification("textDocument/publishDiagnostics").await["uri"], LARGE);
    // Edits of other documents do not cancel the request either.
    assert!(client.reply(folds).await.is_ok_and(|folds| folds.is_array()));
    client.stop().await;
}
