//! The server as an editor sees it.

mod abuse;
mod client;
mod compilation;
mod embedded;
mod features;
mod hostile;
mod recorded;
#[cfg(target_os = "linux")]
mod reference;
mod session;
mod settings;

use client::{Client, is_early};
use serde_json::{Value, json};

const URI: &str = "file:///kernel.ptx";
const KERNEL: &str = include_str!("../../../examples/saxpy.ptx");

/// The line and the column of a piece of the kernel.
fn place(text: &str, what: &str) -> (u32, u32) {
    let at = text.find(what).unwrap_or_else(|| panic!("`{what}` is in the text"));
    let line = text[..at].matches('\n').count();
    let column = at - text[..at].rfind('\n').map_or(0, |n| n + 1);
    (line as u32, column as u32)
}

fn at(what: &str) -> Value {
    let (line, character) = place(KERNEL, what);
    json!({ "textDocument": { "uri": URI }, "position": { "line": line, "character": character } })
}

fn document() -> Value {
    json!({ "textDocument": { "uri": URI } })
}

async fn started() -> Client {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    client.open(URI, KERNEL).await;
    assert_eq!(client.diagnostics(1).await, [] as [Value; 0]);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_follow_the_text() {
    let mut client = started().await;
    let (line, column) = place(KERNEL, "fma.rn");
    client.edit(URI, 2, line, column, column + 3, "fna").await;
    let found = client.diagnostics(2).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["severity"], 1);
    assert_eq!(found[0]["range"]["start"], json!({ "line": line, "character": column }));
    assert_eq!(found[0]["range"]["end"], json!({ "line": line, "character": column + 3 }));
    client.edit(URI, 3, line, column, column + 3, "fma").await;
    assert_eq!(client.diagnostics(3).await, [] as [Value; 0]);
    client.stop().await;
}

/// For a document with an error on every line, only some findings are sent after each edit.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_findings_the_first_are_sent() {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.entry f()\n{{\n{}ret;\n}}\n",
        "frobnicate;\n".repeat(600)
    );
    client.open(URI, &text).await;
    let all = client.diagnostics(1).await;
    assert_eq!(all.len(), 501);
    assert_eq!((&all[499]["code"], &all[499]["range"]["start"]["line"]), (&json!("E0210"), &json!(504)));
    let note = "not shown: 100 errors; run `ptx-check` to list all of them";
    assert_eq!((&all[500]["message"], &all[500]["severity"]), (&json!(note), &json!(3)));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_sure_fixes_of_a_document_are_one_action() {
    let wrong = KERNEL.replace("fma.rn", "fna.rn").replace("ret;", "rte;");
    let (mut client, answer) = Client::start(json!({}), json!({})).await;
    let kinds = answer["capabilities"]["codeActionProvider"]["codeActionKinds"].as_array().unwrap();
    assert!(kinds.contains(&json!("source.fixAll.ptx")));
    client.open(URI, &wrong).await;
    let start = json!({ "line": 0, "character": 0 });
    let asked = |only: Value| {
        let context = json!({ "diagnostics": [], "only": only });
        json!({ "textDocument": { "uri": URI }, "range": { "start": start, "end": start }, "context": context })
    };
    let is_fix_all = |action: &&Value| action["kind"] == "source.fixAll.ptx";
    let actions = client.request("textDocument/codeAction", asked(json!(["source.fixAll"]))).await.unwrap();
    let action = actions.as_array().unwrap().iter().find(is_fix_all).expect("it is offered");
    let edit = &action["edit"]["changes"][URI][0];
    let (from, to) = (place(&wrong, "fna.rn"), place(&wrong, "rte;"));
    assert_eq!(edit["range"]["start"], json!({ "line": from.0, "character": from.1 + 1 }));
    assert_eq!(edit["range"]["end"], json!({ "line": to.0, "character": to.1 + 3 }));
    assert!(edit["newText"].as_str().unwrap().starts_with("ma.rn"));
    let others = client.request("textDocument/codeAction", asked(json!(["quickfix"]))).await.unwrap();
    assert_eq!(others.as_array().unwrap().iter().find(is_fix_all), None);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_ask_for_diagnostics() {
    let (mut client, answer) =
        Client::start(json!({ "textDocument": { "diagnostic": {} } }), json!({})).await;
    assert!(answer["capabilities"]["diagnosticProvider"].is_object());
    client.open(URI, &KERNEL.replace("fma.rn", "fna.rn")).await;
    let report = client.request("textDocument/diagnostic", document()).await.unwrap();
    assert_eq!(report["items"].as_array().unwrap().len(), 1);
    // If the findings are unchanged, the answer says only this.
    let known =
        |report: &Value| json!({ "textDocument": { "uri": URI }, "previousResultId": report["resultId"] });
    let again = client.request("textDocument/diagnostic", known(&report)).await.unwrap();
    assert_eq!(again, json!({ "kind": "unchanged", "resultId": report["resultId"] }));
    let (line, column) = place(KERNEL, "fma.rn");
    client.edit(URI, 2, line, column, column + 6, "fma.rn").await;
    let other = client.request("textDocument/diagnostic", known(&report)).await.unwrap();
    assert_eq!((&other["kind"], &other["items"]), (&json!("full"), &json!([])));
    // A client that asked before this answer came names the first one, but shows this one.
    client.edit(URI, 3, line, column, column + 6, "fna.rn").await;
    let first = client.request("textDocument/diagnostic", known(&report)).await.unwrap();
    assert_eq!((&first["kind"], &first["items"]), (&json!("full"), &report["items"]));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hover_shows_machine_code_and_registers() {
    let mut client = started().await;
    let hover = client.request("textDocument/hover", at("fma.rn.f32")).await.unwrap();
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.contains("FFMA"), "{text}");
    assert!(text.contains("live"), "{text}");
    client.stop().await;
}

/// Hovers and hints do not wait for the compiler. The server tells the client when to ask again.
#[tokio::test(flavor = "multi_thread")]
async fn answers_do_not_wait_for_the_compiler() {
    let refresh = json!({ "refreshSupport": true });
    let capabilities = json!({ "workspace": { "codeLens": refresh, "inlayHint": refresh } });
    let (mut client, _) = Client::start(capabilities, json!({})).await;
    // This takes the compiler some seconds, so that even a busy machine answers first.
    let long = "fma.rn.f32 %f4, %f1, %f2, %f3;\ndiv.rn.f32 %f2, %f4, %f1;\n".repeat(3000);
    let (line, _) = place(KERNEL, "fma.rn");
    client.open(URI, &KERNEL.replace("fma.rn.f32      %f4, %f1, %f2, %f3;", &long)).await;
    client.diagnostics(1).await;
    let position = json!({ "textDocument": { "uri": URI }, "position": { "line": line, "character": 5 } });
    let id = client.post("textDocument/hover", position.clone()).await;
    let hover = client.reply(id).await.unwrap();
    assert!(is_early(&hover), "{hover}");
    assert!(hover["contents"]["value"].as_str().unwrap().contains("fma.rn.f32 d, a, b, c"), "{hover}");
    let lenses = client.request("textDocument/codeLens", document()).await.unwrap();
    assert_eq!(lenses[0]["command"]["title"], "being compiled");
    while !client.asked.iter().any(|asked| asked["method"] == "workspace/codeLens/refresh") {
        client.receive().await;
    }
    let lenses = client.request("textDocument/codeLens", document()).await.unwrap();
    assert!(lenses[0]["command"]["title"].as_str().unwrap().contains("registers"), "{lenses}");
    let hover = client.request("textDocument/hover", position).await.unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("FFMA"), "{hover}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_stand_at_the_entry() {
    let mut client = started().await;
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let parameters = json!({ "textDocument": { "uri": URI }, "range": range });
    let hints = client.request("textDocument/inlayHint", parameters).await.unwrap();
    let label = hints[0]["label"].as_str().unwrap();
    assert!(label.contains("registers") && label.contains("occupancy"), "{label}");
    assert_eq!(hints[0]["position"]["line"], place(KERNEL, ".visible .entry").0);
    let lenses = client.request("textDocument/codeLens", document()).await.unwrap();
    assert_eq!(lenses[0]["command"]["command"], "ptx.showSass");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sass_view_maps_back_to_the_text() {
    let mut client = started().await;
    let actions = client
        .request("textDocument/codeAction", {
            let (line, character) = place(KERNEL, "fma.rn");
            let here = json!({ "line": line, "character": character });
            json!({ "textDocument": { "uri": URI }, "range": { "start": here, "end": here }, "context": { "diagnostics": [] } })
        })
        .await
        .unwrap();
    let show = actions.as_array().unwrap().iter().find(|a| a["command"]["command"] == "ptx.showSass");
    let name = show.expect("the action is offered")["command"]["arguments"][1].clone();
    let parameters = json!({ "textDocument": { "uri": URI }, "function": name });
    let view = client.request("ptx/sassView", parameters).await.unwrap();
    let text = view["text"].as_str().unwrap();
    let line = text.lines().position(|l| l.contains("FFMA")).expect("the multiplication is there");
    assert_eq!(view["lines"][line]["start"]["line"], place(KERNEL, "fma.rn").0);
    let here = client.request("ptx/sassView", at("fma.rn")).await.unwrap();
    assert_eq!(here, view);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_lead_to_their_declarations() {
    let mut client = started().await;
    let definition = client.request("textDocument/definition", at("done;")).await.unwrap();
    assert_eq!(definition["range"]["start"]["line"], place(KERNEL, "\ndone:").0 + 1);
    let mut parameters = at("%f4, %f1");
    parameters["context"] = json!({ "includeDeclaration": false });
    let references = client.request("textDocument/references", parameters).await.unwrap();
    assert_eq!(references.as_array().unwrap().len(), 2, "one write and one read of %f4");
    let symbols = client.request("textDocument/documentSymbol", document()).await.unwrap();
    assert!(symbols.as_array().unwrap().iter().any(|s| s["name"] == "saxpy"));
    let folds = client.request("textDocument/foldingRange", document()).await.unwrap();
    assert!(!folds.as_array().unwrap().is_empty());
    let tokens = client.request("textDocument/semanticTokens/full", document()).await.unwrap();
    assert_eq!(tokens["data"].as_array().unwrap().len() % 5, 0);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_counted_as_agreed() {
    for (encoding, units) in [("utf-16", 2), ("utf-8", 4)] {
        let capabilities = json!({ "general": { "positionEncodings": [encoding] } });
        let (mut client, answer) = Client::start(capabilities, json!({})).await;
        assert_eq!(answer["capabilities"]["positionEncoding"], encoding);
        let text = KERNEL.replace("fma.rn", "/*𝄞*/ fna.rn");
        client.open(URI, &text).await;
        let found = client.diagnostics(1).await;
        let fault = found.iter().find(|d| d["message"].as_str().is_some_and(|m| m.contains("fna"))).unwrap();
        let (line, column) = place(KERNEL, "fma.rn");
        assert_eq!(fault["range"]["start"], json!({ "line": line, "character": column + 5 + units }));
        // Deletes the comment and fixes the name, with the client's columns.
        client.edit(URI, 2, line, column, column + 5 + units + 3, "fma").await;
        assert_eq!(client.diagnostics(2).await, [] as [Value; 0]);
        client.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_arrive_in_order_whatever_else_is_asked() {
    let mut client = started().await;
    let (line, column) = place(KERNEL, "%f4, %f1");
    let mut pending = Vec::new();
    // Each edit applies to the result of the previous one. The last one restores the text.
    for version in 2..=301 {
        let (to, text) = if version % 2 == 0 { (column, "x") } else { (column + 1, "") };
        client.edit(URI, version, line, column, to, text).await;
        if version % 3 == 0 {
            pending.push(client.post("textDocument/hover", at("fma.rn")).await);
        }
    }
    for id in pending {
        if let Err(error) = client.reply(id).await {
            assert_eq!(error["code"], -32801, "{error}");
        }
    }
    assert_eq!(client.diagnostics(301).await, [] as [Value; 0]);
    let hover = client.request("textDocument/hover", at("fma.rn")).await.unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("FFMA"));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_requests_are_answered_and_nothing_hangs() {
    let mut client = started().await;
    for _ in 0..20 {
        let id = client.post("textDocument/hover", at("fma.rn")).await;
        client.notify("$/cancelRequest", json!({ "id": id })).await;
        if let Err(error) = client.reply(id).await {
            assert_eq!(error["code"], -32800, "{error}");
        }
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_compiles_with_progress() {
    let capabilities = json!({ "window": { "workDoneProgress": true } });
    let (mut client, _) = Client::start(capabilities, json!({})).await;
    // An unsupported statement is reported at its place, once it has been compiled.
    let text = KERNEL.replace(
        "fma.rn.f32      %f4, %f1, %f2, %f3;",
        "fma.rn.f32 %f4, %f1, %f2, %f3; brkpt; { .reg .b16 %s; fma.rz.bf16 %s, %s, %s, %s; }",
    );
    client.open(URI, &text.replace(".target sm_80", ".target sm_90")).await;
    client.diagnostics(1).await;
    client.notify("textDocument/didSave", document()).await;
    // The progress bar and the findings arrive in either order.
    let (mut began, mut noted) = (false, false);
    while !began || !noted {
        let message = client.any_notification().await;
        began |= message["params"]["value"]["kind"] == "begin";
        let found = message["params"]["diagnostics"].as_array().into_iter().flatten();
        for note in found.filter(|d| d["severity"] == 3) {
            assert!(note["message"].as_str().unwrap().contains(" is not supported yet: "), "{note}");
            noted = true;
        }
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_survived() {
    let mut client = started().await;
    client.notify("textDocument/didChange", json!({ "garbage": [1, 2, 3] })).await;
    client.edit("file:///never-opened.ptx", 2, 0, 0, 0, "x").await;
    client.edit(URI, 2, 9999, 7, 9999, "\u{0}\u{fffd}{{{{").await;
    client.diagnostics(2).await;
    let closed = client
        .request(
            "textDocument/hover",
            json!({ "textDocument": { "uri": "file:///no.ptx" }, "position": { "line": 0, "character": 0 } }),
        )
        .await;
    assert_eq!(closed, Ok(Value::Null));
    let far = json!({ "textDocument": { "uri": URI }, "position": { "line": 4000000000u32, "character": 4000000000u32 } });
    client.request("textDocument/hover", far).await.unwrap();
    client.notify("textDocument/didClose", document()).await;
    let reopened = ".version 8.0\n.target sm_90\n.address_size 64\n";
    client.open(URI, reopened).await;
    assert_eq!(client.diagnostics(1).await, [] as [Value; 0]);
    client.stop().await;
}
