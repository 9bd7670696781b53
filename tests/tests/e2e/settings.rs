//! Settings of clients and projects, and messages about errors in them.

use crate::client::Client;
use crate::{KERNEL, URI};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder with a project's file. Dropping this value deletes the folder.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("ptx-e2e-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("it can be made");
        let folder = Folder(folder);
        folder.write(text);
        folder
    }

    fn write(&self, text: &str) {
        std::fs::write(self.0.join("ptx-check.toml"), text).expect("it can be written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) async fn start(root: &Path, capabilities: Value) -> Client {
    let mut client = Client::connect();
    let root = format!("file://{}", root.display());
    let parameters = json!({ "processId": null, "rootUri": root, "capabilities": capabilities });
    client.request("initialize", parameters).await.expect("initialize succeeds");
    client.notify("initialized", json!({})).await;
    client
}

/// A kernel with an unused label, which causes a finding.
fn kernel() -> String {
    KERNEL.replace("    ret;", "unused:\n    ret;")
}

/// Waits for diagnostics with this severity; with 0, waits until there are none.
async fn severity(client: &mut Client, severity: u64) {
    loop {
        let found = client.diagnostics(1).await;
        if found.first().map_or(0, |found| found["severity"].as_u64().expect("a number")) == severity {
            return;
        }
    }
}

async fn shown(client: &mut Client) -> String {
    let message = client.notification("window/showMessage").await;
    message["message"].as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_settings_are_shown() {
    let (mut client, _) = Client::start(json!({}), json!({ "target": "sm_999" })).await;
    let message = shown(&mut client).await;
    assert!(message.contains("unknown target `sm_999`") && message.contains("sm_90a"), "{message}");
    let settings = json!({ "settings": { "ptx": { "lint": {}, "inlayHints": 1 } } });
    client.notify("workspace/didChangeConfiguration", settings).await;
    let message = shown(&mut client).await;
    assert!(message.contains("unknown setting `lint`") && message.contains("lints"), "{message}");
    assert!(message.contains("`inlayHints` must be true or false"), "{message}");
    client.stop().await;
}

/// A client that pulls diagnostics is told to do so again. The protocol calls the capability `diagnostics`.
#[tokio::test(flavor = "multi_thread")]
async fn settings_refresh_diagnostics() {
    let capabilities = json!({
        "textDocument": { "diagnostic": {} },
        "workspace": { "diagnostics": { "refreshSupport": true } },
    });
    let (mut client, _) = Client::start(capabilities, json!({})).await;
    let settings = json!({ "settings": { "lints": { "unused-register": "error" } } });
    client.notify("workspace/didChangeConfiguration", settings).await;
    while !client.asked.iter().any(|asked| asked["method"] == "workspace/diagnostic/refresh") {
        client.receive().await;
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_project_is_followed() {
    let folder = Folder::new("polled", "[lints]\nunused-label = \"error\"\n");
    let mut client = start(&folder.0, json!({})).await;
    client.open(URI, &kernel()).await;
    severity(&mut client, 1).await;
    folder.write("target = \"sm_999\"\n");
    let message = shown(&mut client).await;
    assert!(message.contains("ptx-check.toml:1: unknown target `sm_999`"), "{message}");
    folder.write("[lints]\nunused-label = \"allow\"\n");
    severity(&mut client, 0).await;
    client.stop().await;
}

/// The quick fix changes or creates the project's file, and the server reads it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_lint_is_ignored_in_the_project() {
    let folder = Folder::new("ignored", "# Ours.\n[lints]\n");
    let operations = json!({ "documentChanges": true, "resourceOperations": ["create"] });
    let mut client = start(&folder.0, json!({ "workspace": { "workspaceEdit": operations } })).await;
    client.open(URI, &KERNEL.replace("    ret;", "    .pragma \"other\";\n    ret;")).await;
    let found = client.diagnostics(1).await.remove(0);
    let ask =
        json!({ "textDocument": { "uri": URI }, "range": found["range"], "context": { "diagnostics": [] } });
    let title =
        format!("Ignore {} in this project (ptx-check.toml)", found["code"].as_str().expect("a code"));
    let edit = async |client: &mut Client| {
        let actions = client.request("textDocument/codeAction", ask.clone()).await.expect("actions");
        let is_ours = |action: &&Value| action["title"] == title.as_str();
        actions.as_array().and_then(|all| all.iter().find(is_ours)).expect("it is offered")["edit"].clone()
    };
    let uri = format!("file://{}/ptx-check.toml", folder.0.display());
    let at = json!({ "line": 2, "character": 0 });
    let new = "unknown-pragma = \"allow\"\n";
    let insertion = json!([{ "range": { "start": at, "end": at }, "newText": new }]);
    assert_eq!(edit(&mut client).await["changes"][&uri], insertion);
    std::fs::remove_file(folder.0.join("ptx-check.toml")).expect("it is there");
    let made = edit(&mut client).await;
    assert_eq!(made["documentChanges"][0], json!({ "kind": "create", "uri": uri }));
    assert_eq!(made["documentChanges"][1]["edits"][0]["newText"], format!("[lints]\n{new}"));
    folder.write(&format!("[lints]\n{new}"));
    severity(&mut client, 0).await;
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_watch_files_are_asked_to() {
    let folder = Folder::new("watched", "");
    let watches = json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
    let mut client = start(&folder.0, watches).await;
    client.open(URI, &kernel()).await;
    client.diagnostics(1).await;
    assert_eq!(client.asked.first().map(|asked| &asked["method"]), Some(&json!("client/registerCapability")));
    let watchers = &client.asked[0]["params"]["registrations"][0]["registerOptions"]["watchers"];
    assert_eq!(watchers[0]["globPattern"], "**/ptx-check.toml");
    folder.write("[lints]\nunused-label = \"error\"\n");
    let uri = format!("file://{}/ptx-check.toml", folder.0.display());
    let changes = json!({ "changes": [{ "uri": uri, "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changes).await;
    tokio::time::timeout(Duration::from_secs(60), severity(&mut client, 1)).await.expect("it is read again");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_asked_for_their_settings() {
    let folder = Folder::new("asked", "");
    let gives = json!({ "workspace": { "configuration": true } });
    let mut client = Client::connect();
    client.settings = json!({ "lints": { "unused-label": "warning" } });
    let root = format!("file://{}", folder.0.display());
    let parameters = json!({ "processId": null, "rootUri": root, "capabilities": gives });
    client.request("initialize", parameters).await.expect("initialize succeeds");
    client.notify("initialized", json!({})).await;
    client.open(URI, &kernel()).await;
    tokio::time::timeout(Duration::from_secs(60), severity(&mut client, 2)).await.expect("they are given");
    client.settings = json!({ "lints": { "unused-label": "error" } });
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null })).await;
    tokio::time::timeout(Duration::from_secs(60), severity(&mut client, 1)).await.expect("they are given");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_diagnostic_is_a_command() {
    let (mut client, answer) = Client::start(json!({}), json!({})).await;
    assert_eq!(answer["capabilities"]["executeCommandProvider"]["commands"], json!(["ptx.explain"]));
    client.open(URI, &KERNEL.replace("fma.rn", "fna.rn")).await;
    let found = client.diagnostics(1).await.remove(0);
    let context = json!({ "diagnostics": [] });
    let parameters = json!({ "textDocument": { "uri": URI }, "range": found["range"], "context": context });
    let actions = client.request("textDocument/codeAction", parameters).await.expect("actions");
    let is_explain = |action: &&Value| action["command"]["command"] == "ptx.explain";
    let command = actions.as_array().and_then(|all| all.iter().find(is_explain)).expect("it is offered");
    let code = command["command"]["arguments"][0].clone();
    assert_eq!(code, found["code"]);
    let run = |arguments: Value| json!({ "command": "ptx.explain", "arguments": arguments });
    let page = client.request("workspace/executeCommand", run(json!([code]))).await.expect("a page");
    assert!(page.as_str().is_some_and(|page| page.contains(code.as_str().unwrap())), "{page}");
    assert_eq!(shown(&mut client).await, page.as_str().unwrap());
    let silent = client.request("workspace/executeCommand", run(json!([code, true]))).await;
    assert_eq!(silent, Ok(page));
    let wrong = client.request("workspace/executeCommand", run(json!(["E9999"]))).await;
    assert!(wrong.expect_err("there is none")["message"].as_str().unwrap().contains("no page for `E9999`"));
    client.stop().await;
}
