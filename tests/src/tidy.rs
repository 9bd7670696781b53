//! Rules about the source tree: the dependencies between packages and modules, and the format of files.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace").to_owned()
}

/// The allowed dependencies between our packages. Any other dependency is a change of the design.
const EDGES: &[(&str, &[&str])] = &[
    ("ptx-isa", &[]),
    ("ptx-syntax", &["ptx-isa"]),
    ("ptx-embed", &["ptx-isa"]),
    ("sass", &[]),
    ("gpu-files", &["sass"]),
    ("ptx-backend", &["ptx-isa", "sass"]),
    ("ptx-emu", &["ptx-isa", "ptx-backend", "sass", "gpu-files"]),
    ("ptx-analysis", &["ptx-isa", "ptx-syntax", "ptx-backend", "sass"]),
    (
        "ptx-analyzer",
        &["ptx-isa", "ptx-syntax", "ptx-embed", "ptx-backend", "ptx-analysis", "sass", "gpu-files"],
    ),
    ("ptx-check-hook", &["ptx-analyzer"]),
];

/// External packages, each with the only package of ours that may use it. `object` has two users, because the compiler
/// only writes files.
const HOMES: &[(&str, &str)] = &[
    ("rowan", "ptx-syntax"),
    ("salsa", "ptx-analysis"),
    ("cpp_demangle", "ptx-analysis"),
    ("object", "ptx-backend"),
    ("tower-lsp", "ptx-analyzer"),
    ("lsp-types", "ptx-analyzer"),
    ("tokio", "ptx-analyzer"),
    ("ropey", "ptx-analyzer"),
    ("serde_json", "ptx-analyzer"),
    ("codespan-reporting", "ptx-analyzer"),
    ("tempfile", "ptx-analyzer"),
];

/// The modules of the analysis in layers, from the lowest up. Each module may use modules of lower layers, earlier
/// modules of its own layer, and its submodules.
const FLOORS: &[&[&str]] = &[
    // The text and its items.
    &["text", "pieces", "readable", "diagnostic", "syntax_errors", "at_work", "db", "items"],
    // The declarations of items, and the module that they form.
    &["externals", "constant", "declaration", "initializer", "heading", "signature", "module"],
    // Names in a function, and their ranges.
    &["scope", "source_map"],
    // The properties of a function: control flow and values, then the checks.
    &["flow", "check"],
    // The walk over an item, which passes each instruction and each body to the checks.
    &["lower"],
    // The file as a whole.
    &["reach", "callees", "convention", "locate", "findings"],
    &["debug_data", "lines", "product_waits", "compile", "ready"],
    &["link"],
    &["ide", "dump"],
];

/// The same for the emulator of machine code. Its root contains what all modules share.
const MACHINE_FLOORS: &[&[&str]] = &[
    // A decoded instruction.
    &["compute", "operand", "address", "facts", "step"],
    // What the emulator records.
    &["record", "registers"],
    // The effects of instructions, with a module for each kind.
    &["alu", "memory", "matrix", "texture", "tensor", "warpgroup", "bulk", "barrier", "hazard"],
    // Functions of the driver.
    &["system"],
    // Control flow, blocks and clusters.
    &["sync", "cluster", "bank"],
    &["decode"],
];

/// The package with the tests, which may use everything.
const TESTS: &str = "conformance";

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

/// Normal dependencies of each package of the workspace.
fn dependencies() -> Vec<(String, BTreeSet<String>)> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let name = package["name"].as_str().unwrap_or_default().to_owned();
            let normal = package["dependencies"].as_array().into_iter().flatten();
            let normal = normal
                .filter(|d| d["kind"].is_null())
                .filter_map(|d| d["name"].as_str().map(str::to_owned))
                .collect();
            (name, normal)
        })
        .collect()
}

#[test]
fn packages_know_only_what_they_may() {
    let all = dependencies();
    let ours: BTreeSet<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    for (name, depends_on) in &all {
        if name == TESTS {
            continue;
        }
        let (_, allowed) = EDGES.iter().find(|(p, _)| p == name).expect("every package is in the list");
        for dependency in depends_on.iter().filter(|d| ours.contains(d.as_str())) {
            assert!(allowed.contains(&dependency.as_str()), "{name} may not depend on {dependency}");
        }
    }
}

#[test]
fn fact_tables_depend_on_nothing() {
    for (name, depends_on) in dependencies() {
        if name == "ptx-isa" || name == "sass" {
            assert!(depends_on.is_empty(), "{name} depends on {depends_on:?}");
        }
    }
}

#[test]
fn given_packages_have_one_home() {
    for (name, depends_on) in dependencies() {
        for (package, home) in HOMES {
            let reads = (*package, name.as_str()) == ("object", "gpu-files");
            let at_home = name == *home || name == TESTS || reads;
            assert!(at_home || !depends_on.contains(*package), "{package} belongs to {home}, not {name}");
        }
    }
}

/// The modules that code names after a path such as `crate::`, either alone or in braces.
fn named_modules<'a>(code: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
    let is_boundary = |c: char| !(c == '_' || c == ':' || c.is_ascii_alphanumeric());
    let starts = code
        .match_indices(path)
        .filter(move |&(at, _)| code[..at].chars().next_back().is_none_or(is_boundary));
    starts.flat_map(move |(at, _)| {
        let rest = &code[at + path.len()..];
        let names = match rest.strip_prefix('{') {
            Some(group) => &group[..group.find('}').unwrap_or(group.len())],
            None => &rest[..rest.find(',').unwrap_or(rest.len())],
        };
        let name = |part: &'a str| {
            part.trim_start().split(|c: char| !(c == '_' || c.is_ascii_alphanumeric())).next()
        };
        names.split(',').filter_map(name)
    })
}

/// Checks that the modules of a folder use only modules before them in `floors`.
fn check_floors(folder: &str, floors: &[&[&str]], path_of: impl Fn(&Path) -> &'static [&'static str]) {
    let order: Vec<&str> = floors.concat();
    let floor = |module: &str| order.iter().position(|&name| name == module);
    let source = root().join(folder);
    for path in sources("rs").iter().filter(|path| path.starts_with(&source)) {
        let inside = path.strip_prefix(&source).expect("it starts so").with_extension("");
        let module = inside.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
        if matches!(module, "lib" | "tests" | "testing") {
            continue;
        }
        let own = floor(module).unwrap_or_else(|| panic!("{module} has no floor"));
        let text = std::fs::read_to_string(path).expect("a text file");
        let code: String = code(&text).flat_map(|line| [line, "\n"]).collect();
        for used in path_of(&inside).iter().flat_map(|path| named_modules(&code, path)).filter_map(floor) {
            assert!(used <= own, "{}: {module} may not know {}", path.display(), order[used]);
        }
    }
}

#[test]
fn named_modules_are_found() {
    let code = "use crate::a::B;\nuse crate::{c, d::E};\nf(crate::g(), super::h::i);";
    assert_eq!(named_modules(code, "crate::").collect::<Vec<_>>(), ["a", "c", "d", "g"]);
    assert_eq!(named_modules(code, "super::").collect::<Vec<_>>(), ["h"]);
}

#[test]
fn the_analysis_is_built_in_floors() {
    check_floors("analysis/src", FLOORS, |_| &["crate::"]);
}

#[test]
fn the_emulator_of_machine_code_is_built_in_floors() {
    check_floors("backend/emu/src/machine", MACHINE_FLOORS, |inside| match inside.components().count() {
        1 => &["super::", "crate::machine::"],
        _ => &["crate::machine::"],
    });
}

/// The source files that git would track, relative to the root.
fn sources(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let hidden = name.to_string_lossy().starts_with('.');
            if path.is_dir() && !hidden && name != "target" && name != "node_modules" {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_module_says_what_it_is() {
    for path in sources("rs") {
        let text = std::fs::read_to_string(&path).expect("a text file");
        assert!(text.starts_with("//!"), "{} has no module comment", path.display());
    }
}

/// The limit on the lines of code before the tests of a file. Tables are data and have no limit.
const MOST_LINES: usize = 1000;

#[test]
fn files_are_one_idea_long() {
    for path in sources("rs") {
        let text = std::fs::read_to_string(&path).expect("a text file");
        let is_table = path.components().any(|c| c.as_os_str() == "table");
        let code = text.lines().position(|l| l == "#[cfg(test)]").unwrap_or(text.lines().count());
        assert!(is_table || code <= MOST_LINES, "{} has {code} lines", path.display());
    }
}

#[test]
fn nothing_is_left_to_do_silently() {
    // Written in parts, so that this file does not match itself.
    let stubs = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore")];
    for path in sources("rs") {
        let text = std::fs::read_to_string(&path).expect("a text file");
        for stub in stubs {
            assert!(!text.contains(stub), "{} contains {stub}", path.display());
        }
    }
}

/// Whether code compares a value with the name of an SM to a number.
fn compares_sm(line: &str) -> bool {
    let is_sm = |left: &str| {
        let name = left.trim_end().rsplit(|c: char| !(c.is_alphanumeric() || "._".contains(c))).next();
        name.is_some_and(|n| {
            n.split('.').any(|part| part == "sm")
                || ["target.number", "architecture.number"].iter().any(|name| n.ends_with(name))
        })
    };
    // A named constant counts as a number.
    let is_number =
        |right: &str| right.trim_start().starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase());
    let compared = ["<=", ">=", "==", "!=", " < ", " > "].iter().any(|operator| {
        line.match_indices(operator)
            .any(|(at, _)| is_sm(&line[..at]) && is_number(&line[at + operator.len()..]))
    });
    compared
        || line.contains("contains(&sm)")
        || line.contains("match sm.number")
        || line.contains("match (target.number")
}

/// The code before a file's tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|l| *l != "#[cfg(test)]").filter(|l| !l.trim_start().starts_with("//"))
}

#[test]
fn targets_are_data() {
    assert!(
        compares_sm("if self.sm >= 90 {")
            && compares_sm("sm.0 < 80 => 5,")
            && compares_sm("sm.0 >= FIRST")
            && !compares_sm("a.sm == b.sm")
    );
    let root = root();
    for path in sources("rs") {
        let inside = ["backend/src", "backend/emu/src", "analysis/src", "lsp/src"]
            .iter()
            .any(|folder| path.starts_with(root.join(folder)));
        let is_test = path
            .file_stem()
            .is_some_and(|name| ["semantics", "tests", "carries"].iter().any(|test| name == *test));
        if !inside || is_test || path.ends_with("backend/src/target.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text file");
        for line in code(&text) {
            assert!(
                !compares_sm(line),
                "{}: a fact of a target belongs into target.rs or ptx-isa: {line}",
                path.display()
            );
        }
    }
}
