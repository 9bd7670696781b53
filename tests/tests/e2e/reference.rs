//! A reference compiler. Here it is a program of this test that copies a cubin.

use crate::client::Client;
use crate::settings::Folder;
use crate::{KERNEL, URI, document};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn program(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its owner's");
    path.display().to_string()
}

async fn save(client: &mut Client) {
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": URI } })).await;
}

/// Waits for the lens with the comparison. Returns its title.
async fn comparison(client: &mut Client) -> Value {
    loop {
        let lenses = client.request("textDocument/codeLens", document()).await.unwrap();
        let all = lenses.as_array().unwrap().iter();
        let mut found = all.filter(|lens| lens["command"]["command"] == "ptx.showReference");
        if let Some(lens) = found.next() {
            return lens["command"].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn its_results_stand_beside_ours() {
    let folder = Folder::new("reference", "");
    let db = ptx_analysis::Database::default();
    // The code differs from that of the document.
    let other = KERNEL.replace("fma.rn.f32 ", "mul.rn.f32 %f2, %f2, %f2; fma.rn.f32 ");
    let linked = ptx_analysis::link(&db, db.add_file(other.as_str()), &Default::default()).expect("a cubin");
    std::fs::write(folder.0.join("copied"), linked.cubin).expect("a file");
    let script = format!(
        "[ \"$1 $2 $3\" = '-v -arch=sm_80 -o' ] || exit 9\ncp '{0}/copied' \"$4\"\n\
        grep -q 'fma.rn' \"$5\" || {{ echo \"ptxas $5, line 3; error   : no product\" >&2; exit 255; }}\n\
        echo \"ptxas info    : Compiling entry function 'saxpy' for 'sm_80'\" >&2\n\
        echo \"ptxas info    : Function properties for saxpy\" >&2\n\
        echo \"    0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\" >&2\n\
        echo \"ptxas info    : Used 99 registers\" >&2",
        folder.0.display()
    );
    let path = program(&folder.0, "compiler", &script);
    let (mut client, _) = Client::start(json!({}), json!({ "reference": { "path": path } })).await;
    client.open(URI, KERNEL).await;
    save(&mut client).await;
    let command = comparison(&mut client).await;
    let title = command["title"].as_str().unwrap();
    for part in ["reference: 99 registers (ours ", "8 bytes spilled (ours 0)", " instructions (ours "] {
        assert!(title.contains(part), "{title}");
    }
    let asked = json!({ "textDocument": { "uri": URI }, "function": command["arguments"][1] });
    let both = client.request("ptx/reference", asked).await.unwrap();
    let has = |side: &str, what: &str| both[side].as_str().unwrap().contains(what);
    assert!(has("ours", "FFMA") && !has("ours", "FMUL") && has("theirs", "FMUL"), "{both}");
    // The lens stays while the text is edited, and says that its figures are those of the saved text.
    client.edit(URI, 2, 0, 0, 0, "\n").await;
    let title = comparison(&mut client).await["title"].clone();
    assert!(title.as_str().unwrap().starts_with("reference (as saved): "), "{title}");
    // The reference compiler's messages are shown.
    let (line, column) = crate::place(KERNEL, "fma.rn");
    client.edit(URI, 3, line + 1, column, column + 3, "fna").await;
    save(&mut client).await;
    let message = client.notification("window/showMessage").await;
    let text = message["message"].as_str().unwrap();
    assert!(text.contains("exit status: 255") && text.contains("line 3; error   : no product"), "{text}");
    client.stop().await;
}

/// A file in the workspace cannot name the program.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_cannot_name_it() {
    let folder = Folder::new("reference-project", "");
    let touched = folder.0.join("touched");
    let path = program(&folder.0, "compiler", &format!("touch '{}'", touched.display()));
    std::fs::write(folder.0.join("ptx-check.toml"), format!("[reference]\npath = '{path}'\n"))
        .expect("a file");
    let mut client = crate::settings::start(&folder.0, json!({})).await;
    let uri = format!("file://{}/a.ptx", folder.0.display());
    client.open(&uri, KERNEL).await;
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } })).await;
    let message = client.notification("window/showMessage").await;
    assert!(message["message"].as_str().unwrap().contains("unknown field `reference`"), "{message}");
    client.stop().await;
    assert!(!touched.exists());
}

/// A program that hangs is killed when its document is closed.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_ended_with_its_document() {
    let folder = Folder::new("reference-hang", "");
    let number = folder.0.join("number");
    let path = program(&folder.0, "compiler", &format!("echo $$ > '{}'\nexec sleep 1000", number.display()));
    let (mut client, _) = Client::start(json!({}), json!({ "reference": { "path": path } })).await;
    client.open(URI, KERNEL).await;
    save(&mut client).await;
    let process = loop {
        match std::fs::read_to_string(&number) {
            Ok(text) if text.ends_with('\n') => break format!("/proc/{}", text.trim()),
            _ => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    };
    client.notify("textDocument/didClose", document()).await;
    let started = std::time::Instant::now();
    while Path::new(&process).exists() {
        assert!(started.elapsed().as_secs() < 60, "{process} goes on");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    client.stop().await;
}
