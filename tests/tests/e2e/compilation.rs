//! Requests beyond the protocol: machine code in several styles and compared with other compilations, targets,
//! pictures.

use super::{KERNEL, URI, at, place, started};
use crate::client::Client;
use serde_json::{Value, json};

fn with(parameters: Value, more: Value) -> Value {
    let mut whole = parameters;
    for (key, value) in more.as_object().expect("an object") {
        whole[key] = value.clone();
    }
    whole
}

#[tokio::test(flavor = "multi_thread")]
async fn control_words_are_shown_as_asked() {
    let mut client = started().await;
    let lines = |view: &Value| {
        view["text"]
            .as_str()
            .unwrap()
            .lines()
            .filter(|l| l.starts_with("/*"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let codes = client.request("ptx/sassView", with(at("fma.rn"), json!({ "live": false }))).await.unwrap();
    assert!(lines(&codes).iter().all(|line| line.contains(":S") && !line.contains("live")), "{codes}");
    let words =
        client.request("ptx/sassView", with(at("fma.rn"), json!({ "controls": "words" }))).await.unwrap();
    assert!(lines(&words).iter().all(|line| line.contains("// ") && line.contains("cycle")), "{words}");
    let hidden =
        client.request("ptx/sassView", with(at("fma.rn"), json!({ "controls": "hidden" }))).await.unwrap();
    assert!(!lines(&hidden).iter().any(|line| line.contains(":S") || line.contains("cycle")), "{hidden}");
    // Each instruction is printed with its live registers and its stall cycles.
    let text: Vec<&str> = codes["text"].as_str().unwrap().lines().collect();
    let heat = codes["heat"].as_array().unwrap();
    assert_eq!(heat.len(), text.len());
    let fma = text.iter().position(|line| line.contains("FFMA")).unwrap();
    assert!(
        heat[0].is_null() && heat[fma][0].as_u64() > Some(2) && heat[fma][1].as_u64() > Some(0),
        "{codes}"
    );
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_of_the_compiler_are_shown() {
    let mut client = started().await;
    let stages = client.request("ptx/stages", json!({})).await.unwrap();
    let names: Vec<&str> =
        stages.as_array().unwrap().iter().filter_map(|stage| stage["name"].as_str()).collect();
    assert!(
        names.starts_with(&["ori"]) && names.contains(&"GvnCse") && names.ends_with(&["sched"]),
        "{stages}"
    );
    let after = |stage: &str| with(at("fma.rn"), json!({ "stage": stage }));
    for (stage, line) in [("ori", "%v"), ("alloc", "R0 = "), ("sched", "FFMA R")] {
        let view = client.request("ptx/sassView", after(stage)).await.unwrap();
        let text: Vec<&str> = view["text"].as_str().unwrap().lines().collect();
        assert_eq!((&view["function"], &view["hasCode"]), (&json!("saxpy"), &json!(true)));
        assert_eq!(text[0], format!("// saxpy for sm_80: {stage}"));
        assert!(text.iter().any(|found| found.contains(line)), "{text:#?}");
        let fma = text.iter().position(|found| found.contains("FFMA")).unwrap();
        assert_eq!(view["lines"][fma]["start"]["line"], place(KERNEL, "fma.rn").0);
    }
    let error = client.request("ptx/sassView", after("nonsense")).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("GvnCse"), "{error}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn references_are_counted_on_request() {
    let (mut client, _) = Client::start(json!({}), json!({ "referenceLens": true, "codeLens": false })).await;
    client.open(URI, KERNEL).await;
    client.diagnostics(1).await;
    let lenses =
        client.request("textDocument/codeLens", json!({ "textDocument": { "uri": URI } })).await.unwrap();
    let lenses = lenses.as_array().unwrap();
    assert_eq!(lenses.len(), KERNEL.matches(":\n").count(), "{lenses:?}");
    let command = &lenses[0]["command"];
    assert_eq!(
        (&command["title"], &command["command"]),
        (&json!("1 reference"), &json!("ptx.showReferences"))
    );
    assert_eq!(command["arguments"][2][0]["range"]["start"]["line"], place(KERNEL, "bra ").0);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_cannot_be_made_names_the_statement() {
    let mut client = started().await;
    let (line, column) = place(KERNEL, "fma.rn");
    client.edit(URI, 2, line, column, column + 3, "fna").await;
    let view = client.request("ptx/sassView", at("mad.lo")).await.unwrap();
    assert_eq!(view["hasCode"], false);
    let text = view["text"].as_str().unwrap();
    assert!(text.contains("not compiled: ") && text.contains("fna.rn.f32 %f4"), "{text}");
    assert_eq!(view["lines"][0]["start"]["line"], line);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_from_other_compilations() {
    let folder = std::env::temp_dir().join(format!("ptx-e2e-difference-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("saxpy.ptx");
    std::fs::write(&file, KERNEL).unwrap();
    let uri = format!("file://{}", file.display());
    let (mut client, _) = Client::start(json!({}), json!({})).await;
    client.open(&uri, KERNEL).await;
    client.diagnostics(1).await;
    let asked = |other: Value| json!({ "textDocument": { "uri": uri }, "function": "saxpy", "with": other });
    let same = client.request("ptx/sassDifference", asked(json!({ "saved": true }))).await.unwrap();
    assert_eq!(same["summary"], "no difference in registers, instructions or occupancy");
    assert_eq!(same["before"]["text"], same["after"]["text"]);

    let (line, column) = place(KERNEL, "fma.rn");
    client.edit(&uri, 2, line, column, column, "add.rn.f32 %f3, %f3, %f3;\n").await;
    client.diagnostics(2).await;
    let edited = client.request("ptx/sassDifference", asked(json!({ "saved": true }))).await.unwrap();
    assert_eq!(edited["summary"], "+1 instruction");
    assert!(edited["after"]["text"].as_str().unwrap().contains("FADD"));
    assert!(!edited["before"]["text"].as_str().unwrap().contains("FADD"));
    assert_eq!(edited["before"]["title"], "saxpy as saved");

    let target = client.request("ptx/sassDifference", asked(json!({ "target": "sm_100" }))).await.unwrap();
    assert_eq!(target["after"]["title"], "saxpy for sm_100");
    assert!(target["after"]["text"].as_str().unwrap().starts_with("// saxpy for sm_100:"), "{target}");
    let level = client.request("ptx/sassDifference", asked(json!({ "optLevel": 0 }))).await.unwrap();
    assert!(level["summary"].as_str().unwrap().contains("instruction"), "{level}");
    let error = client.request("ptx/sassDifference", asked(json!({ "target": "sm_1" }))).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("sm_1"), "{error}");
    std::fs::remove_file(&file).unwrap();
    client.request("ptx/sassDifference", asked(json!({ "saved": true }))).await.unwrap_err();
    client.stop().await;
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_over_all_targets() {
    let mut client = started().await;
    let answer = client.request("ptx/compareTargets", at("fma.rn")).await.unwrap();
    assert_eq!(answer["function"], "saxpy");
    let rows = answer["rows"].as_array().unwrap();
    let row =
        |target: &str| rows.iter().find(|row| row["target"] == target).unwrap_or_else(|| panic!("{answer}"));
    for target in ["sm_80", "sm_90", "sm_120"] {
        assert!(row(target)["registers"].as_u64() > Some(4) && row(target)["occupancy"] == 100, "{answer}");
    }
    assert!(answer["markdown"].as_str().unwrap().contains("| **sm_80** |"), "{answer}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_of_a_function() {
    let mut client = started().await;
    let answer = client.request("ptx/pictures", at("fma.rn")).await.unwrap();
    let page = answer["html"].as_str().unwrap();
    assert!(page.contains("Live registers") && page.contains("Control flow") && !page.contains("<script"));
    assert!(answer["svg"].as_str().unwrap().starts_with("<svg xmlns") && !page.contains("<a "));
    let blocks = answer["blocks"].as_array().unwrap();
    let first = blocks[0]["line"].as_u64().unwrap();
    assert!(blocks[0]["text"].as_str().unwrap().contains(&format!("lines {first}")), "{blocks:?}");
    let mut parameters = at("fma.rn");
    parameters["link"] = "command:go?{line}".into();
    let answer = client.request("ptx/pictures", parameters).await.unwrap();
    let first = blocks[0]["line"].as_u64().unwrap();
    assert!(
        answer["html"].as_str().unwrap().contains(&format!("<a href=\"command:go?{first}\">")),
        "{blocks:?}"
    );
    let (line, column) = place(KERNEL, "fma.rn");
    client.edit(URI, 2, line, column, column + 3, "fna").await;
    let answer = client.request("ptx/pictures", at("mad.lo")).await.unwrap();
    assert!(answer["html"].as_str().unwrap().contains("not compiled"), "{answer}");
    client.stop().await;
}

/// While a function has errors, its last resources are shown.
#[tokio::test(flavor = "multi_thread")]
async fn hints_keep_their_last_values() {
    let mut client = started().await;
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let parameters = json!({ "textDocument": { "uri": URI }, "range": range });
    let document = json!({ "textDocument": { "uri": URI } });
    let good = client.request("textDocument/inlayHint", parameters.clone()).await.unwrap();
    let label = good[0]["label"].as_str().unwrap().to_owned();
    let lens = client.request("textDocument/codeLens", document.clone()).await.unwrap();
    let title = lens[0]["command"]["title"].as_str().unwrap().to_owned();
    let (line, column) = place(KERNEL, "fma.rn");
    client.edit(URI, 2, line, column, column + 3, "fna").await;
    let kept = client.request("textDocument/inlayHint", parameters.clone()).await.unwrap();
    assert_eq!(kept[0]["label"], format!("was: {label}"));
    assert!(kept[0]["tooltip"].as_str().unwrap().starts_with("not compiled"), "{kept}");
    let lens = client.request("textDocument/codeLens", document).await.unwrap();
    assert_eq!(lens[0]["command"]["title"], format!("was: {title}"));
    client.edit(URI, 3, line, column, column + 3, "fma").await;
    assert_eq!(client.request("textDocument/inlayHint", parameters).await.unwrap(), good);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_registers_of_each_line_on_request() {
    let (mut client, _) = Client::start(json!({}), json!({ "liveRegisters": true })).await;
    client.open(URI, KERNEL).await;
    client.diagnostics(1).await;
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let parameters = json!({ "textDocument": { "uri": URI }, "range": range });
    let hints = client.request("textDocument/inlayHint", parameters.clone()).await.unwrap();
    let label = |hint: &Value| hint["label"].as_str().unwrap().to_owned();
    let hints = hints.as_array().unwrap();
    let store =
        hints.iter().find(|hint| hint["position"]["line"] == place(KERNEL, "st.global").0).expect("a hint");
    assert!(label(store).ends_with(" live"), "{store}");
    assert!(hints.iter().any(|hint| label(hint).ends_with(" live (peak)")), "{hints:?}");
    // They stay while the function has an error, also at lines that have moved.
    let line = place(KERNEL, "fma.rn").0;
    client.edit(URI, 2, line, 4, 7, "nop;\n    fm").await;
    let old = client.request("textDocument/inlayHint", parameters).await.unwrap();
    let old: Vec<&Value> = old.as_array().unwrap().iter().collect();
    let moved = old.iter().find(|hint| hint["position"]["line"] == place(KERNEL, "st.global").0 + 1);
    assert_eq!(label(moved.expect("a hint")), format!("was: {}", label(store)));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_and_loops_are_explained() {
    let mut client = started().await;
    let found = client.request("ptx/reasons", at("fma.rn")).await.unwrap();
    let markdown = found["markdown"].as_str().unwrap();
    assert!(markdown.contains("are live, before"), "{found}");
    // The statements of the peak are in the text, and compute all of its registers.
    let live = found["peak"]["live"].as_array().unwrap();
    let sum: u64 = live.iter().filter_map(|one| one["registers"].as_u64()).sum();
    assert_eq!(Some(sum), found["peak"]["registers"].as_u64());
    let is_instruction = |one: &Value| {
        let line = one["range"]["start"]["line"].as_u64().unwrap() as usize;
        KERNEL.lines().nth(line).is_some_and(|line| line.trim_end().ends_with(';'))
    };
    assert!(live.iter().all(is_instruction), "{found}");
    assert_eq!(found["spilled"], json!([]));
    client.stop().await;
}
