//! Compares our cubins with ptxas's: `oracle --cubins [--target sm_NN] FILE-OR-FOLDER…`.
//!
//! For each file that both compilers compile for its own target, the metadata of both cubins is compared: header,
//! sections, symbols, relocations, attributes. Data that depends on the code alone, such as sizes of functions and
//! offsets in them, is left out. The table lists each kind of difference and the number of files that have it, most
//! frequent first. `backend/docs/cubin.md` explains the remaining differences.

mod facts;

use crate::tools::{self, Tools};
use facts::Facts;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A difference, without the names of the program.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    subject: String,
    what: String,
}

#[derive(Default)]
struct Seen {
    files: BTreeSet<usize>,
    /// The first occurrence: subject, our value and theirs, and the file.
    example: String,
}

/// Compares the files and prints the table. Returns whether there are no differences.
pub(crate) fn run<'a>(arguments: impl Iterator<Item = &'a str>) -> Result<bool, String> {
    let tools = Tools::find()?;
    let (files, target) = files(arguments)?;
    let scratch = std::env::temp_dir().join(format!("ptx-cubins-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let mut table: BTreeMap<Difference, Seen> = BTreeMap::new();
    let mut compared = 0;
    for (number, file) in files.iter().enumerate() {
        let target = target.clone().or_else(|| own_target(file));
        let Some(target) = target else { continue };
        let Some((ours, theirs)) = both(&tools, file, &target, &scratch)? else { continue };
        compared += 1;
        for (difference, example) in differences(&ours, &theirs) {
            let seen = table.entry(difference).or_default();
            seen.files.insert(number);
            if seen.example.is_empty() {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                seen.example = format!("{example}; {name}");
            }
        }
    }
    let _ = std::fs::remove_dir_all(&scratch);
    let mut rows: Vec<_> = table.into_iter().collect();
    rows.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.files.len()));
    println!("{compared} cubins are compared");
    for (difference, seen) in &rows {
        println!(
            "{:5}  {:<34} {:<30} {}",
            seen.files.len(),
            difference.subject,
            difference.what,
            seen.example
        );
    }
    Ok(rows.is_empty())
}

/// The named files, and the target for which all of them are compiled.
pub(crate) fn files<'a>(
    arguments: impl Iterator<Item = &'a str>,
) -> Result<(Vec<PathBuf>, Option<String>), String> {
    let (mut files, mut target) = (Vec::new(), None);
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        if word == "--target" {
            target = Some(arguments.next().ok_or("--target NAME")?.to_owned());
        } else {
            crate::collect(Path::new(word), &mut files).map_err(|error| format!("{word}: {error}"))?;
        }
    }
    files.sort();
    Ok((files, target))
}

/// The target that a file names, or the oldest one that ptxas supports for it.
pub(crate) fn own_target(file: &Path) -> Option<String> {
    const OLDEST: u32 = 75;
    let bytes = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    let name = line.trim_start().split([',', ' ', '/']).next()?;
    let digits = name.strip_prefix("sm_")?.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u32 = digits.parse().ok()?;
    Some(if number < OLDEST { format!("sm_{OLDEST}") } else { name.to_owned() })
}

/// The metadata of both cubins of a file. `None` if one compiler does not compile it.
fn both(tools: &Tools, file: &Path, target: &str, scratch: &Path) -> Result<Option<(Facts, Facts)>, String> {
    let mut all = Vec::new();
    for (tool, name) in [(&tools.ptxc, "ours.cubin"), (&tools.ptxas, "theirs.cubin")] {
        let output = scratch.join(name);
        if !tools::run(tool, tools::compile_arguments(target, file, &output)).ok {
            return Ok(None);
        }
        let bytes = std::fs::read(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        all.push(facts::of(&bytes).map_err(|error| format!("{}: {error}", file.display()))?);
    }
    let theirs = all.pop();
    Ok(all.pop().zip(theirs))
}

/// The differences, each with an example.
fn differences(ours: &Facts, theirs: &Facts) -> Vec<(Difference, String)> {
    let mut all = Vec::new();
    let mut note = |subject: &str, what: &str, example: String| {
        let difference = Difference { subject: general(subject), what: what.to_owned() };
        all.push((difference, format!("{subject}: {example}")));
    };
    for (subject, own) in &ours.all {
        let Some(other) = theirs.all.get(subject) else {
            note(subject, "only ours", String::new());
            continue;
        };
        let keys: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
        for key in keys {
            match (own.get(key), other.get(key)) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) => note(subject, key, format!("{a}, theirs {b}")),
                (Some(a), None) => note(subject, &format!("{key} only ours"), a.clone()),
                (None, Some(b)) => note(subject, &format!("{key} only theirs"), b.clone()),
                (None, None) => {}
            }
        }
    }
    for subject in theirs.all.keys().filter(|subject| !ours.all.contains_key(*subject)) {
        note(subject, "only theirs", String::new());
    }
    for (list, own) in &ours.orders {
        let Some(other) = theirs.orders.get(list) else { continue };
        let common = |of: &[String], with: &[String]| -> Vec<String> {
            of.iter().filter(|name| with.contains(name)).cloned().collect()
        };
        let (a, b) = (common(own, other), common(other, own));
        if let Some((a, b)) = a.iter().zip(&b).find(|(a, b)| a != b) {
            note(list, "order", format!("{a}, theirs {b}"));
        }
    }
    all
}

/// A subject without the names of functions and variables.
fn general(subject: &str) -> String {
    const OF_FUNCTIONS: [&str; 6] =
        [".text.", ".nv.info.", ".nv.constant0.", ".nv.constant2.", ".nv.shared.", ".nv.local."];
    let Some((kind, name)) = subject.split_once(' ') else { return subject.to_owned() };
    let whole = [".nv.shared.reserved.0", ".nv.merc.nv.info"];
    for prefix in OF_FUNCTIONS {
        if let Some(at) = name.find(prefix).filter(|_| !whole.contains(&name)) {
            return format!("{kind} {}*", &name[..at + prefix.len()]);
        }
    }
    let own = name.starts_with(['.', '_']) && name.contains("nv") || name.starts_with('.');
    if kind == "symbol" && !own { format!("{kind} *") } else { subject.to_owned() }
}
