//! Compares the `-v` output of both compilers line by line: `oracle --texts [--target sm_NN] FILE-OR-FOLDER…`.
//!
//! Numbers depend on the code, so lines are first compared without them. Then the comparison counts how often each
//! number in corresponding lines is the same. Times are left out.

use crate::cubins;
use crate::tools::{self, Tools};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Default)]
struct Figures {
    files: usize,
    /// The number of files with the same lines except for numbers, and of those with the same numbers too.
    alike: usize,
    equal: usize,
    /// The lines, without numbers, that only one compiler prints: their number, and the first file.
    lines: BTreeMap<(&'static str, String), (usize, String)>,
    /// For each number, identified by the words after it: how many are the same, and how many there are.
    numbers: BTreeMap<String, (usize, usize)>,
}

/// Compares the files and prints the figures. Returns whether all lines correspond.
pub(crate) fn run<'a>(arguments: impl Iterator<Item = &'a str>) -> Result<bool, String> {
    let tools = Tools::find()?;
    let (files, target) = cubins::files(arguments)?;
    let output = std::env::temp_dir().join(format!("ptx-texts-{}.cubin", std::process::id()));
    let mut figures = Figures::default();
    for file in &files {
        let Some(target) = target.clone().or_else(|| cubins::own_target(file)) else { continue };
        let arguments = tools::compile_arguments(&target, file, &output);
        let [ours, theirs] = [&tools.ptxc, &tools.ptxas].map(|tool| tools::run(tool, &arguments));
        if ours.ok && theirs.ok {
            figures.add(&lines(&ours.text), &lines(&theirs.text), file);
        }
    }
    let _ = std::fs::remove_file(&output);
    figures.print();
    Ok(figures.alike == figures.files)
}

/// The lines to compare, without the names of the programs.
fn lines(text: &str) -> Vec<String> {
    let without_name = |line: &str| {
        let line = line.strip_prefix("ptxc ").or_else(|| line.strip_prefix("ptxas ")).unwrap_or(line);
        line.split_once("Compile time = ").map_or(line.to_owned(), |(start, _)| start.to_owned())
    };
    text.lines().map(without_name).collect()
}

impl Figures {
    fn add(&mut self, ours: &[String], theirs: &[String], file: &Path) {
        self.files += 1;
        self.equal += usize::from(ours == theirs);
        let general = |lines: &[String]| lines.iter().map(|line| split(line).0).collect::<Vec<_>>();
        let (own, other) = (general(ours), general(theirs));
        if own == other {
            self.alike += 1;
            for (a, b) in ours.iter().zip(theirs) {
                for ((what, a), (_, b)) in split(a).1.into_iter().zip(split(b).1) {
                    let count = self.numbers.entry(what).or_default();
                    *count = (count.0 + usize::from(a == b), count.1 + 1);
                }
            }
            return;
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (who, lines, others) in [("ours", &own, &other), ("theirs", &other, &own)] {
            let mut left = others.clone();
            for line in lines {
                match left.iter().position(|known| known == line) {
                    Some(at) => {
                        left.swap_remove(at);
                    }
                    None => {
                        let entry = self.lines.entry((who, line.clone()));
                        entry.or_insert_with(|| (0, name.clone())).0 += 1;
                    }
                }
            }
        }
    }

    fn print(&self) {
        println!(
            "{} files; {} with the same lines but for numbers, {} with the same text",
            self.files, self.alike, self.equal
        );
        for (what, (same, all)) in &self.numbers {
            println!("{same:6} of {all:6} the same: {what}");
        }
        let mut lines: Vec<_> = self.lines.iter().collect();
        lines.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for ((who, line), (count, file)) in lines {
            println!("{count:6} only {who}: {line}  ({file})");
        }
    }
}

/// A line without names and numbers; and its numbers, each with the words after it.
fn split(line: &str) -> (String, Vec<(String, u64)>) {
    let (mut general, mut numbers) = (String::new(), Vec::new());
    let mut quoted = false;
    for part in line.split_inclusive([' ', ',', '\'']) {
        let word = part.trim_end_matches([' ', ',', '\'']);
        let is_name = quoted || general.ends_with("properties for ");
        quoted ^= part.ends_with('\'');
        match word.parse::<u64>() {
            _ if is_name => general.push('…'),
            Ok(number) => {
                general.push('#');
                let rest = &line[part.as_ptr() as usize - line.as_ptr() as usize + word.len()..];
                let what = rest.split(',').next().unwrap_or_default().trim();
                numbers.push((what.to_owned(), number));
            }
            Err(_) => general.push_str(word),
        }
        general.push_str(&part[word.len()..]);
    }
    (general, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_compared_without_names_and_numbers() {
        let (general, numbers) = split("info    : Used 12 registers, used 1 barriers, 360 bytes cmem[0]");
        assert_eq!(general, "info    : Used # registers, used # barriers, # bytes cmem[0]");
        let what = |text: &str, number| (text.to_owned(), number);
        assert_eq!(numbers, [what("registers", 12), what("barriers", 1), what("bytes cmem[0]", 360)]);
        let line = "info    : Compiling entry function 'k 1' for 'sm_80'";
        assert_eq!(split(line), ("info    : Compiling entry function '… …' for '…'".into(), Vec::new()));
        assert_eq!(split("info    : Function properties for k9").0, "info    : Function properties for …");
    }
}
