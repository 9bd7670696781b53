//! Lists in the repository that `PTX_BLESS=1` rewrites.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Compares pairs of a name and a target with the lines of `tests/expected/FILE.txt`. Each line has a name and its
/// targets.
///
/// # Errors
/// The new pairs, and the pairs that are no longer found.
pub fn compare(file: &str, found: impl IntoIterator<Item = (String, String)>) -> Result<(), String> {
    let mut targets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, target) in found {
        let known = targets.entry(name).or_default();
        if !known.contains(&target) {
            known.push(target);
        }
    }
    let lines = targets.into_iter().map(|(name, targets)| format!("{name}: {}", targets.join(" ")));
    lines_of(file, lines.collect())
}

fn lines_of(file: &str, found: BTreeSet<String>) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("expected").join(file).with_extension("txt");
    if std::env::var_os("PTX_BLESS").is_some() {
        let lines: String = found.iter().map(|line| format!("{line}\n")).collect();
        return std::fs::write(&path, lines).map_err(|error| format!("{}: {error}", path.display()));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let expected: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    if expected == found {
        return Ok(());
    }
    let list = |lines: Vec<&String>| lines.iter().map(|line| format!("\n  {line}")).collect::<String>();
    Err(format!(
        "{} is not true any more (PTX_BLESS=1 rewrites it)\nonly found:{}\nonly in the file:{}",
        path.display(),
        list(found.difference(&expected).collect()),
        list(expected.difference(&found).collect()),
    ))
}
