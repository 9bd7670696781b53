//! Runs `ptx-check` as a shell does, and with texts that no compiler would write.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ptx_analysis::{Database, ide};
use serde_json::Value;

const KERNEL: &str = include_str!("../../examples/saxpy.ptx");

/// The binaries of the other package are next to the folder of this test. `None` if they have not been built.
fn checker() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let path = test.parent()?.parent()?.join(format!("ptx-check{}", std::env::consts::EXE_SUFFIX));
    path.is_file().then_some(path)
}

fn run(checker: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(checker);
    let pipes = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the checker starts");
    // A checker that rejects its arguments does not read its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("the checker ends")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("no signal")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn statuses_tell_findings_from_failures() {
    let Some(checker) = checker() else { return };
    let wrong = KERNEL.replace("fma.rn", "fna.rn");
    assert_eq!(status(&run(&checker, &["-"], KERNEL.as_bytes())), 0);
    assert_eq!(status(&run(&checker, &["-"], wrong.as_bytes())), 1);
    assert_eq!(status(&run(&checker, &[], b"")), 2);
    assert_eq!(status(&run(&checker, &["--no-such-option", "-"], b"")), 2);
    assert_eq!(status(&run(&checker, &["--target", "sm_1x", "-"], b"")), 2);
    assert_eq!(status(&run(&checker, &["no/such/file.ptx"], b"")), 2);
    assert_eq!(status(&run(&checker, &["--explain", "E0210"], b"")), 0);
    assert_eq!(status(&run(&checker, &["--explain", "E9999"], b"")), 2);
    assert_eq!(status(&run(&checker, &["-W", "E0210=info", "-"], wrong.as_bytes())), 2);
    assert_eq!(status(&run(&checker, &["--target", "sm_999", "-"], b"")), 2);
}

#[test]
fn a_summary_follows_the_findings() {
    let Some(checker) = checker() else { return };
    let last = |arguments: &[&str], input: &str| {
        let output = run(&checker, arguments, input.as_bytes());
        text(&output.stderr).lines().last().unwrap_or_default().to_owned()
    };
    let wrong = KERNEL.replace("fma.rn", "fna.rn").replace("mad.lo", "mud.lo");
    let clean = last(&["-"], KERNEL);
    assert!(clean.starts_with("ptx-check: no findings in 1 file, 0.") && clean.ends_with(" s"), "{clean}");
    let found = last(&["-"], &wrong);
    assert!(found.starts_with("ptx-check: 2 errors in 1 file, "), "{found}");
    for quiet in [&["-q", "-"][..], &["--format", "json", "-"], &["--format-code", "-"]] {
        assert_eq!(last(quiet, &wrong), "", "{quiet:?}");
    }
}

#[test]
fn json_has_one_object_per_line_with_these_fields() {
    let Some(checker) = checker() else { return };
    let wrong = KERNEL.replace("fma.rn", "fna.rn");
    let output = run(&checker, &["--format", "json", "-"], wrong.as_bytes());
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 1);
    let object: Value = serde_json::from_str(lines[0]).expect("JSON");
    let fields = ["file", "line", "column", "end_line", "end_column", "severity", "code", "message"];
    for field in fields {
        assert!(object.get(field).is_some(), "no {field} in {object}");
    }
    assert_eq!(object["file"], "<stdin>");
    assert_eq!((&object["line"], &object["column"]), (&Value::from(37), &Value::from(5)));
    assert_eq!((&object["end_line"], &object["end_column"]), (&Value::from(37), &Value::from(8)));
    assert_eq!(object["severity"], "error");
}

#[test]
fn folders_are_searched_and_code_is_printed() {
    let Some(checker) = checker() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let examples = root.join("examples");
    let examples = examples.to_str().expect("a path in UTF-8");
    let output = run(&checker, &["--target", "sm_90", "--emit", "sass", examples], b"");
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("saxpy") && printed.contains("FFMA") && printed.contains("sm_90"), "{printed}");
    assert!(printed.contains("registers") && printed.contains("occupancy"), "{printed}");
}

#[test]
fn reasons_are_printed() {
    let Some(checker) = checker() else { return };
    let reasons = |more: &[&str]| {
        let output = run(&checker, &[&["--emit", "reasons"], more, &["-"]].concat(), KERNEL.as_bytes());
        assert_eq!(status(&output), 0, "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let words = reasons(&[]);
    assert!(words.starts_with("saxpy: ") && words.contains("are live, before `"), "{words}");
    let objects = reasons(&["--format", "json"]);
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [resources, why] = &objects[..] else { panic!("{objects:?}") };
    assert_eq!((&resources["function"], &why["function"]), (&"saxpy".into(), &"saxpy".into()));
    assert!(why["reasons"].as_str().is_some_and(|why| words.contains(why)), "{why}");
}

/// The codes of the findings.
#[test]
fn fixes_are_made_once() {
    let Some(checker) = checker() else { return };
    let wrong = KERNEL.replace("fma.rn", "fna.rn");
    let folder = std::env::temp_dir().join(format!("ptx-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("kernel.ptx");
    std::fs::write(&path, &wrong).expect("a file");
    let name = path.to_str().expect("a path in UTF-8");
    let output = run(&checker, &["--fix", name], b"");
    assert_eq!(status(&output), 0, "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("E0210: change to `fma`"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), KERNEL);
    assert_eq!(text(&run(&checker, &["--fix", "-q", name], b"").stderr), "");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    // With a pipe, the fixed text goes to standard output.
    assert_eq!(text(&run(&checker, &["--fix", "-"], wrong.as_bytes()).stdout), KERNEL);
}

#[test]
fn other_programs_read_the_findings() {
    let Some(checker) = checker() else { return };
    let wrong = KERNEL.replace("fma.rn", "fna.rn");
    let sarif = run(&checker, &["--format", "sarif", "-"], wrong.as_bytes());
    let document: Value = serde_json::from_slice(&sarif.stdout).expect("JSON");
    let run_of_tool = &document["runs"][0];
    assert_eq!(document["version"], "2.1.0");
    let result = &run_of_tool["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"E0210".into(), &"error".into()));
    let rules = run_of_tool["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(rules.iter().all(|rule| rule["help"]["text"].is_string() && rule["id"].is_string()));
    assert!(result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"].is_object());
    // A file without findings gives a document too.
    let clean = run(&checker, &["--format", "sarif", "-"], KERNEL.as_bytes());
    let document: Value = serde_json::from_slice(&clean.stdout).expect("JSON");
    assert_eq!(document["runs"][0]["results"], Value::Array(Vec::new()));
    let github = run(&checker, &["--format", "github", "-"], wrong.as_bytes());
    assert!(text(&github.stdout).starts_with("::error file=<stdin>,line=37,"), "{}", text(&github.stdout));
}

#[test]
fn architectures_and_pages() {
    let Some(checker) = checker() else { return };
    let module = b".version 9.0\n.target sm_90\n.address_size 64\n";
    assert_eq!(status(&run(&checker, &["-arch=sm_90", "-"], module)), 0);
    assert_eq!(status(&run(&checker, &["--arch", "sm_100", "-"], module)), 0);
    let refused = run(&checker, &["-arch", "sm_80", "-"], module);
    assert!(status(&refused) == 1 && text(&refused.stdout).contains("E0405"), "{}", text(&refused.stdout));
    let page = run(&checker, &["--explain", "redux.sync.add"], b"");
    assert!(text(&page.stdout).starts_with("# redux") && text(&page.stdout).contains("| no. | form |"));
    let unknown = run(&checker, &["--explain", "out-of-bound"], b"");
    assert!(
        status(&unknown) == 2 && text(&unknown.stderr).contains("'out-of-bounds'"),
        "{}",
        text(&unknown.stderr)
    );
}

fn codes(text: &str) -> Vec<&'static str> {
    let db = Database::default();
    let file = db.add_file(text);
    let mut found = ide::diagnostics(&db, file);
    found.extend(ide::compile_diagnostics(&db, file));
    for diagnostic in &found {
        assert!(usize::from(diagnostic.range.end()) <= text.len() && !diagnostic.message.is_empty());
        assert_ne!(diagnostic.lint.name, "internal", "{}", diagnostic.message);
    }
    found.iter().map(|diagnostic| diagnostic.code()).collect()
}

#[test]
fn files_without_a_module_say_what_is_missing() {
    // ptxas stops there: `.target` is required after `.version`.
    assert_eq!(codes(""), ["E0104"]);
    assert_eq!(codes("// nothing\n"), ["E0104"]);
    let start = KERNEL.find(".target").expect("a target");
    assert_eq!(codes(&KERNEL[start..]), ["E0104"]);
}

#[test]
fn a_kernel_cut_anywhere_has_errors_and_no_more() {
    let body = KERNEL.find("\n{").expect("a body") + 2;
    let end = KERNEL.rfind('}').expect("an end");
    for at in 0..KERNEL.len() {
        let found = codes(&KERNEL[..at]);
        assert!((body..=end).contains(&at) <= !found.is_empty(), "nothing wrong with the first {at} bytes");
    }
}

#[test]
fn brackets_in_the_wrong_places_end_what_they_end() {
    for (old, new) in [("{\n", "{{\n"), ("}\n", "}}\n"), ("}\n", ""), ("(\n", "((\n"), ("[n]", "[n")] {
        assert!(!codes(&KERNEL.replacen(old, new, 1)).is_empty(), "{old:?} as {new:?}");
    }
    assert!(!codes(&KERNEL.replace('}', "")).is_empty());
}

#[test]
fn bytes_that_are_no_text_are_errors() {
    assert!(codes(&KERNEL.replace("fma", "f\0ma")).contains(&"E0001"));
    let garbage: Vec<u8> = (0..20_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert!(!codes(&String::from_utf8_lossy(&garbage)).is_empty());
    assert!(!codes(&"\0".repeat(10_000)).is_empty());
}

/// Deeply nested or long texts do not overflow the stack, and take time in proportion to their length.
#[test]
fn deep_and_long_texts_are_checked_in_time() {
    let module = |body: &str| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.entry f()\n{{\n.reg .b32 %r<9>;\n{body}\nret;\n}}\n"
        )
    };
    let texts = [
        module(&"{".repeat(50_000)),
        module(&format!("{}{}", "{".repeat(50_000), "}".repeat(50_000))),
        module(&format!("mov.b32 %r1, {}1{};", "(".repeat(50_000), ")".repeat(50_000))),
        module(&format!("mov.b32 %r1, {}1;", "-".repeat(50_000))),
        module(&format!("mov.b32 %r1, 1{};", "+1".repeat(50_000))),
        module(&format!("mov.b32 %r1, {}1{};", "1?2:".repeat(20_000), "")),
        module(&format!("mov.b32 {}%r1{}, %r2;", "{".repeat(50_000), "}".repeat(50_000))),
        module(&"add.s32 %r1, %r2, %r3; ".repeat(5_000)),
        module(&format!("// {}", "x".repeat(1_000_000))),
        module(&format!("{};", "x".repeat(1_000_000))),
        format!(".global .b8 a[] = {{{}}};", "{".repeat(50_000)),
        "/*".repeat(500_000),
        "\"".repeat(100_001),
        "@".repeat(100_000),
        ".visible ".repeat(50_000),
    ];
    for text in texts {
        let start = Instant::now();
        codes(&text);
        let time = start.elapsed();
        assert!(time < Duration::from_secs(20), "{:?} took {time:?}", &text[..text.len().min(160)]);
    }
}

/// On request, a folder's files of other languages are checked. Findings have places in those files.
#[test]
fn folders_of_other_languages_are_searched_on_request() {
    let Some(checker) = checker() else { return };
    let folder = std::env::temp_dir().join(format!("ptx-check-hosts-{}", std::process::id()));
    std::fs::create_dir_all(folder.join(".venv")).expect("a folder");
    let wrong = "__device__ void f(int &x) {\n  asm(\"fna.rn.f32 %0, %0, %0, %0;\" : \"+f\"(x));\n}\n";
    let cupy = format!("import cupy\nk = cupy.RawKernel(r\'\'\'{wrong}\'\'\', 'f')\n");
    for (name, text) in [
        ("good.ptx", KERNEL),
        ("kernel.cu", wrong),
        ("kernel.py", cupy.as_str()),
        (".venv/copy.cu", wrong),
        ("plain.rs", "fn main() {}\n"),
    ] {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    let path = folder.to_str().expect("a path in UTF-8");
    assert_eq!(status(&run(&checker, &[path], b"")), 0);
    let sarif = run(&checker, &["--embedded", "--format", "sarif", path], b"");
    assert_eq!(status(&sarif), 1, "{}", text(&sarif.stderr));
    let document: Value = serde_json::from_slice(&sarif.stdout).expect("JSON");
    let results = document["runs"][0]["results"].as_array().expect("results");
    let places: Vec<(String, u64, u64)> = results
        .iter()
        .map(|result| {
            let place = &result["locations"][0]["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().expect("a name");
            let name = uri.rsplit('/').next().unwrap_or_default().to_owned();
            let number = |field: &str| place["region"][field].as_u64().expect("a number");
            (name, number("startLine"), number("startColumn"))
        })
        .collect();
    assert_eq!(places, [("kernel.cu".to_owned(), 2, 8), ("kernel.py".to_owned(), 3, 8)], "{document:#}");
    std::fs::remove_file(folder.join("good.ptx")).expect("it is there");
    let none = run(&checker, &[path], b"");
    assert_eq!(status(&none), 2);
    assert!(text(&none.stderr).contains("`--embedded`"), "{}", text(&none.stderr));
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
