//! PTX in documents of other languages.

use crate::client::Client;
use crate::place;
use serde_json::{Value, json};

const CUDA: &str = "file:///kernel.cu";

const TEXT: &str = r#"// asm("trap π;");
__device__ unsigned f(unsigned x, unsigned long long y)
{
    unsigned r;
    asm volatile("{\n\t.reg .pred p;\n\t"   // a predicate
                 "setp.ne.u32 p, %1, 0;\n\t"
                 "@p mov.u32 %0, %%laneid;\n\t}"
                 : "=r"(r) : "r"(x));
    asm("add.u64 %0, %1, 1;" : "=r"(r) : "l"(y));
    return r;
}
"#;

fn at(uri: &str, text: &str, what: &str) -> Value {
    let (line, character) = place(text, what);
    json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } })
}

async fn open(client: &mut Client, uri: &str, language: &str, text: &str) {
    let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
    client.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn assembly_in_cuda() {
    let (mut client, answer) = Client::start(json!({}), json!({ "embeddedOnly": true })).await;
    let capabilities = answer["capabilities"].as_object().unwrap();
    assert!(capabilities["hoverProvider"].as_bool().unwrap());
    for other in
        ["documentFormattingProvider", "renameProvider", "documentSymbolProvider", "inlayHintProvider"]
    {
        assert!(!capabilities.contains_key(other), "{other} would compete with the language's own server");
    }
    open(&mut client, CUDA, "cuda-cpp", TEXT).await;
    // The width is that of the constraint.
    let found = client.diagnostics(1).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["code"], "E0303");
    let (line, column) = place(TEXT, "%0, %1, 1;");
    assert_eq!(found[0]["range"]["start"], json!({ "line": line, "character": column }));
    assert_eq!(found[0]["range"]["end"], json!({ "line": line, "character": column + 2 }));
    // Hover, in the second literal and after escapes.
    let hover = client.request("textDocument/hover", at(CUDA, TEXT, "setp.ne")).await.unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("setp"), "{hover}");
    let (line, column) = place(TEXT, "setp.ne");
    assert_eq!(hover["range"]["start"], json!({ "line": line, "character": column }));
    let hover = client.request("textDocument/hover", at(CUDA, TEXT, "%1, 0")).await.unwrap();
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.contains(".reg .b32 %1") && text.contains("\"r\"(x)"), "{text}");
    for outside in ["__device__", "unsigned r;", "a predicate", "trap", "return"] {
        let hover = client.request("textDocument/hover", at(CUDA, TEXT, outside)).await.unwrap();
        assert_eq!(hover, Value::Null, "{outside}");
        let items = client.request("textDocument/completion", at(CUDA, TEXT, outside)).await.unwrap();
        assert_eq!(items, Value::Null, "{outside}");
    }
    // A name is declared in another literal.
    let definition = client.request("textDocument/definition", at(CUDA, TEXT, "p mov.u32")).await.unwrap();
    let (line, column) = place(TEXT, "p;\\n");
    assert_eq!(definition["range"]["start"], json!({ "line": line, "character": column }));
    // Semantic tokens: only in the strings, including the placeholder.
    let document = json!({ "textDocument": { "uri": CUDA } });
    let tokens = client.request("textDocument/semanticTokens/full", document).await.unwrap();
    let data = tokens["data"].as_array().unwrap();
    let (mut line, mut places) = (0, Vec::new());
    for token in data.chunks(5) {
        line += token[0].as_u64().unwrap();
        places.push(line);
    }
    assert!(places.len() > 10 && places.iter().all(|line| (4..=8).contains(line)), "{places:?}");
    // A range may be given from its end to its start.
    let (first, last) = (json!({ "line": 0, "character": 0 }), json!({ "line": 10, "character": 0 }));
    for (start, end) in [(&first, &last), (&last, &first)] {
        let params = json!({ "textDocument": { "uri": CUDA }, "range": { "start": start, "end": end } });
        let in_range = client.request("textDocument/semanticTokens/range", params).await.unwrap();
        assert_eq!(in_range["data"], tokens["data"]);
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_follow_edits() {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    open(&mut client, CUDA, "cuda-cpp", TEXT).await;
    let found = client.diagnostics(1).await;
    assert_eq!(found.len(), 1);
    // An edit outside of the snippets moves the findings.
    client.edit(CUDA, 2, 0, 0, 0, "\n\n").await;
    let moved = client.diagnostics(2).await;
    let line = |found: &[Value]| found[0]["range"]["start"]["line"].as_u64().unwrap();
    assert_eq!(line(&moved), line(&found) + 2);
    // An edit inside fixes them.
    let text = format!("\n\n{TEXT}");
    let (row, column) = place(&text, "u64 %0");
    client.edit(CUDA, 3, row, column, column + 3, "u32").await;
    let other = client.diagnostics(3).await;
    assert_eq!(other.len(), 1);
    assert_eq!(other[0]["range"]["start"]["character"], place(&text, "%1, 1;").1);
    // The constraint counts too.
    let (row, column) = place(&text, "\"l\"(y)");
    client.edit(CUDA, 4, row, column, column + 3, "\"r\"").await;
    assert_eq!(client.diagnostics(4).await, [] as [Value; 0]);
    // Completion in a string: the inserted text is escaped as the string requires.
    let (row, column) = place(&text, "%%laneid");
    client.edit(CUDA, 5, row, column, column + 8, "%%lane").await;
    let here =
        json!({ "textDocument": { "uri": CUDA }, "position": { "line": row, "character": column + 6 } });
    let items = client.request("textDocument/completion", here).await.unwrap();
    let lane =
        items.as_array().unwrap().iter().find(|item| item["label"] == "%laneid").expect("it is offered");
    assert_eq!(lane["textEdit"]["newText"], "%%laneid");
    assert_eq!(lane["textEdit"]["range"]["start"], json!({ "line": row, "character": column }));
    // If the setting is off, there are no findings. If it is on again, all of them come back.
    client.notify("workspace/didChangeConfiguration", json!({ "settings": { "embedded": false } })).await;
    assert_eq!(client.request("textDocument/hover", at(CUDA, &text, "setp.ne")).await.unwrap(), Value::Null);
    client.notify("workspace/didChangeConfiguration", json!({ "settings": { "embedded": true } })).await;
    assert_ne!(client.request("textDocument/hover", at(CUDA, &text, "setp.ne")).await.unwrap(), Value::Null);
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": CUDA } })).await;
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fixes_are_written_as_the_language_needs_them() {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    let text = "asm!(\"mvo.u32 {x}, 1;\", x = out(reg32) x);\n";
    let uri = "file:///a.rs";
    open(&mut client, uri, "rust", text).await;
    let found = client.diagnostics(1).await;
    assert_eq!(found[0]["code"], "E0210");
    let range = found[0]["range"].clone();
    let asked = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [] } });
    let actions = client.request("textDocument/codeAction", asked).await.unwrap();
    let fix = actions.as_array().unwrap().iter().find(|a| a["edit"].is_object()).expect("a fix");
    assert_eq!(fix["edit"]["changes"][uri][0]["newText"], "mov");
    client.stop().await;
}

/// Names that were added around the assembly are not offered. Names with a percent sign are matched with what the user
/// types.
#[tokio::test(flavor = "multi_thread")]
async fn completions_are_those_of_the_assembly() {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    let text =
        "asm(\"ld.global.u32 %0, ;\" : \"=r\"(x) : \"l\"(p));\nasm(\"mov.u32 %0, %%;\" : \"=r\"(x));\n";
    open(&mut client, CUDA, "cuda-cpp", text).await;
    client.diagnostics(1).await;
    let mut offered = async |line: u32, what: &str, label: &str| {
        let column = text.lines().nth(line as usize).unwrap().find(what).unwrap() + what.len();
        let position = json!({ "line": line, "character": column });
        let asked = json!({ "textDocument": { "uri": CUDA }, "position": position });
        let items = client.request("textDocument/completion", asked).await.unwrap();
        let items = items.as_array().unwrap().clone();
        let filter = items.iter().find(|item| item["label"] == label).map(|item| item["filterText"].clone());
        (items.len(), filter)
    };
    assert_eq!(offered(0, "%0, ", "[%1]").await, (2, Some(json!("%1"))));
    let (_, filter) = offered(1, "%%", "%tid.x").await;
    assert_eq!(filter, Some(json!("%%tid.x")));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_ask_about_python() {
    let (mut client, _) = Client::start(json!({ "textDocument": { "diagnostic": {} } }), json!({})).await;
    let text =
        "y = tl.inline_asm_elementwise(\n    \"\"\"add.u32 $0, $1;\"\"\", \"=r,r\", [x])\nz = f\"mov.u33\"\n";
    let uri = "file:///a.py";
    open(&mut client, uri, "python", text).await;
    let document = json!({ "textDocument": { "uri": uri } });
    let report = client.request("textDocument/diagnostic", document).await.unwrap();
    let items = report["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(items[0]["range"]["start"]["line"], 1);
    client.stop().await;
}

/// An edit outside of snippets is handled at once, whatever the size of the text.
#[tokio::test(flavor = "multi_thread")]
async fn large_documents_are_quick() {
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    let text = TEXT.repeat(300);
    open(&mut client, CUDA, "cuda-cpp", &text).await;
    assert_eq!(client.diagnostics(1).await.len(), 300);
    for version in 2..12 {
        client.edit(CUDA, version, 3, 4, 4, "x").await;
        assert_eq!(client.diagnostics(version).await.len(), 300);
    }
    client.stop().await;
}
