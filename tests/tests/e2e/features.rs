//! Features of the server beyond diagnostics, as an editor asks for them.

use super::client::Client;
use super::{KERNEL, URI, at, document, place, started};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn completions_are_ranked_and_resolved() {
    let snippets =
        json!({ "textDocument": { "completion": { "completionItem": { "snippetSupport": true } } } });
    for (capabilities, has_snippets) in [(json!({}), false), (snippets, true)] {
        let (mut client, answer) = Client::start(capabilities, json!({})).await;
        assert_eq!(answer["capabilities"]["completionProvider"]["resolveProvider"], true);
        let text = KERNEL.replace("done:\n", "done:\n    \n    ld.global.\n");
        client.open(URI, &text).await;
        let (line, column) = place(&text, "ld.global.\n");
        let ask = |line: u32, character: u32| json!({ "textDocument": { "uri": URI }, "position": { "line": line, "character": character } });
        let found = client.request("textDocument/completion", ask(line, column + 10)).await.unwrap();
        let items = found.as_array().unwrap();
        let mut sorted: Vec<&Value> = items.iter().collect();
        sorted.sort_by_key(|item| item["sortText"].as_str().unwrap().to_owned());
        assert_eq!(sorted, items.iter().collect::<Vec<_>>());
        assert_eq!(items[0]["label"], "b32");
        let last = items.last().unwrap();
        assert!(last["detail"].as_str().unwrap().starts_with("requires "), "{last}");
        assert_eq!(items[0]["documentation"], Value::Null);
        let resolved = client.request("completionItem/resolve", items[0].clone()).await.unwrap();
        assert!(resolved["documentation"]["value"].as_str().unwrap().contains("32 bits"), "{resolved}");
        let found = client.request("textDocument/completion", ask(line - 1, 4)).await.unwrap();
        let is_snippet = |item: &Value| item["insertTextFormat"] == 2;
        assert_eq!(found.as_array().unwrap().iter().any(is_snippet), has_snippets);
        client.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_register_of_a_range_is_renamed() {
    let mut client = started().await;
    let mut ask = at("%rd3, %rd1;");
    let prepared = client.request("textDocument/prepareRename", ask.clone()).await.unwrap();
    assert_eq!(prepared["start"]["line"], ask["position"]["line"]);
    ask["newName"] = json!("base");
    let edit = client.request("textDocument/rename", ask.clone()).await.unwrap();
    let edits = edit["changes"][URI].as_array().unwrap();
    assert_eq!(edits[0]["newText"], ", base");
    assert!(edits[1..].iter().all(|edit| edit["newText"] == "base") && edits.len() == 3, "{edits:?}");
    ask["newName"] = json!("%rd5");
    let refused = client.request("textDocument/rename", ask).await.unwrap_err();
    assert_eq!(refused["message"], "`%rd5` is already declared by `%rd<8>`");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_formatted() {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    client.open(URI, ".version 8.0\n.target sm_80\n.entry k()\n{\nret ;\n  ret;\n}\n").await;
    let options = json!({ "tabSize": 8, "insertSpaces": false });
    let edits = client
        .request("textDocument/formatting", json!({ "textDocument": { "uri": URI }, "options": options }))
        .await
        .unwrap();
    assert_eq!(edits.as_array().unwrap().len(), 3, "{edits}");
    let range = json!({ "start": { "line": 4, "character": 3 }, "end": { "line": 6, "character": 0 } });
    let part = json!({ "textDocument": { "uri": URI }, "range": range, "options": options });
    let edits = client.request("textDocument/rangeFormatting", part).await.unwrap();
    assert_eq!(edits.as_array().unwrap().len(), 3, "{edits}");
    let typed = json!({ "textDocument": { "uri": URI }, "position": { "line": 4, "character": 5 }, "ch": ";", "options": options });
    let edits = client.request("textDocument/onTypeFormatting", typed).await.unwrap();
    assert_eq!(edits.as_array().unwrap().len(), 2, "{edits}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_lead_to_others() {
    let mut client = started().await;
    let linked = client.request("textDocument/linkedEditingRange", at("done;")).await.unwrap();
    assert_eq!(linked["ranges"].as_array().unwrap().len(), 2);
    let ty = client.request("textDocument/typeDefinition", at("%rd3, %rd1;")).await.unwrap();
    assert_eq!(ty["range"]["start"]["line"], place(KERNEL, ".b64").0);
    let mut several = document();
    several["positions"] = json!([at("%rd3, %rd1;")["position"]]);
    let selection = client.request("textDocument/selectionRange", several).await.unwrap();
    assert!(selection[0]["parent"]["parent"]["range"].is_object(), "{selection}");
    let node = client.request("textDocument/prepareCallHierarchy", at("saxpy(")).await.unwrap();
    assert_eq!((&node[0]["name"], &node[0]["detail"]), (&json!("saxpy"), &json!(".entry")));
    for calls in ["incomingCalls", "outgoingCalls"] {
        let found = client.request(&format!("callHierarchy/{calls}"), json!({ "item": node[0] })).await;
        assert_eq!(found.unwrap(), json!([]));
    }
    let symbols = client.request("workspace/symbol", json!({ "query": "sxp" })).await.unwrap();
    assert_eq!(symbols[0]["name"], "saxpy");
    let (line, column) = place(KERNEL, "fma.rn");
    client.edit(URI, 2, line, column, column + 3, "fna").await;
    let found = client.diagnostics(2).await;
    let page = found[0]["codeDescription"]["href"].as_str().unwrap();
    assert!(page.ends_with(&format!("lints/{}.md", found[0]["code"].as_str().unwrap())), "{page}");
    client.stop().await;
}

/// `.file` and `.loc` link to existing files.
#[tokio::test(flavor = "multi_thread")]
async fn instructions_lead_to_their_source() {
    let folder = super::settings::Folder::new("source", "");
    std::fs::write(folder.0.join("a.cu"), "int x;\n").expect("a file");
    let uri = format!("file://{}/k.ptx", folder.0.display());
    let text = ".version 8.0\n.target sm_80\n.file 1 \"a.cu\"\n.file 2 \"none.cu\"\n.entry k()\n{\n.loc 1 1 5\nbar.sync 0;\n.loc 2 1 5\nret;\n}\n";
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    client.open(&uri, text).await;
    let links =
        client.request("textDocument/documentLink", json!({ "textDocument": { "uri": uri } })).await.unwrap();
    assert_eq!(links.as_array().unwrap().len(), 1, "{links}");
    let ask =
        |line: u32| json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 1 } });
    let found = client.request("textDocument/definition", ask(7)).await.unwrap();
    assert!(found["uri"].as_str().unwrap().ends_with("a.cu"), "{found}");
    assert_eq!(found["range"]["start"], json!({ "line": 0, "character": 4 }));
    assert_eq!(client.request("textDocument/definition", ask(9)).await.unwrap(), Value::Null);
    client.stop().await;
}

/// Files that are not open have symbols too.
#[tokio::test(flavor = "multi_thread")]
async fn symbols_of_a_folder() {
    let folder = super::settings::Folder::new("symbols", "");
    for (name, text) in [
        ("closed.ptx", "// π\n.func other();\n/* π */ .entry closed_k() { ret; }\n"),
        ("open.ptx", ".entry old_k() { ret; }\n"),
    ] {
        std::fs::write(folder.0.join(name), text).expect("a file");
    }
    let mut client = super::settings::start(&folder.0, json!({})).await;
    let uri = format!("file://{}/open.ptx", folder.0.display());
    client.open(&uri, ".version 8.0\n.target sm_80\n.entry new_k() { ret; }\n").await;
    let found = client.request("workspace/symbol", json!({ "query": "_k" })).await.unwrap();
    let names: Vec<&str> =
        found.as_array().unwrap().iter().map(|symbol| symbol["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["new_k", "closed_k"]);
    assert_eq!(found[1]["location"]["range"]["start"], json!({ "line": 2, "character": 15 }));
    client.stop().await;
}
