//! Compares with NVIDIA's tools: `oracle FILE-OR-FOLDER…`, started by `tests/oracle/run`.
//!
//! For every PTX file and target, it checks the following. `ptx-check` finds errors exactly where ptxas does. NVIDIA's
//! tools read our cubins and print our code as we do. The hazard checker finds nothing in our code and in ptxas's code,
//! and detects damage to either. The order checker accepts ptxas's code. Registers, instructions and spills stay close
//! to ptxas's. Then the emulator runs ptxas's code of the test cases and of the described kernels in the folders, which
//! must leave the same memory as the interpreter.
//!
//! `oracle --help` lists the other commands.

mod clock;
mod code;
mod corpus;
mod cubins;
mod launch;
mod mutations;
mod operations;
mod order;
mod pack;
mod pair;
mod texts;
mod tools;
mod triangle;

use conformance::sweep;
use mutations::Tally;
use pair::{Counts, Outcome, Pair};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tools::Tools;
use triangle::Triangle;

const HELP: &str = "\
Compares with NVIDIA's tools, named by PTXAS, NVDISASM and CUOBJDUMP; SASS names our disassembler.

  oracle FILE-OR-FOLDER…
          the whole comparison: findings, cubins, code, timing and memory order of the files, and ptxas's code of the
          described kernels in the emulator (up to an hour)
  oracle --execute TEXT [TARGET] [FOLDER…]
          ptxas's code of the cases whose names contain a text, in the emulator; with listings of those that differ
  oracle --execute \"program SEED\" TARGET
          makes a random program that differs small
  oracle --clock TEXT [TARGET] [FOLDER…]
          cycles of our code and of ptxas's, for the kernels whose names contain a text
  oracle --run FILE.ptx FILE.cases [--target NN] [--level N] [--cubin FILE] [--steps N] [--clock] [--out FOLDER]
          described launches of any file: interpreter, our code, and the code of a cubin; needs none of NVIDIA's tools
  oracle --order FILE-OR-FOLDER…
          the order checker on ptxas's code
  oracle --cubins [--target sm_NN] FILE-OR-FOLDER…
          where the attributes of our cubins differ from ptxas's, and in how many files
  oracle --operations ALLOWED [OPTION…] [TARGET…] FILE-OR-FOLDER…
          operations that only our code of the sweep and of the files has, and distances between dependent instructions that are
          shorter than any of ptxas's, without those that a list allows; TARGET is a name such as sm_90a, OPTION one for both
          compilers such as -O0
  oracle --texts [--target sm_NN] FILE-OR-FOLDER…
          where the output of -v differs from ptxas's
  oracle --pack FOLDER [TARGET] [--programs COUNT] [--seconds N] [FILE-OR-FOLDER…]
          packs random programs, and the cases of this package or the described kernels of files, for a machine with a GPU
  oracle --help

TARGET is a number such as 90. The exit status is 0 if everything agrees, 1 if something does not, 2 after an error.
";

/// The targets to compile for.
const TARGETS: &[u32] = &[80, 90];

/// The upper limits of the ratios to ptxas, as geometric means over all kernels.
const MOST_REGISTERS: f64 = 1.15;
const MOST_INSTRUCTIONS: f64 = 1.35;

/// The desired ratio of CPU time to ptxas's. It is printed but not required, because machines differ.
const WANTED_CPU: f64 = 0.3;

/// The time limit for running ptxas's code.
const EXECUTION: Duration = Duration::from_secs(600);

/// The percentage of damage to executed code that must be detected.
const LEAST_SEEN: usize = 99;

/// The number of names that are printed of those without kernels for the same reason.
const SHOWN_NAMES: usize = 8;

/// The number of pairs whose CPU time is measured.
const MEASURED: usize = 40;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let rest = || arguments[1..].iter().map(String::as_str);
    let result = match arguments.first().map(String::as_str) {
        Some("--execute") => execute(rest().next().unwrap_or_default(), rest().skip(1)),
        Some("--clock") => {
            let scratch = scratch_folder();
            let result = clock::command(rest().next().unwrap_or_default(), rest().skip(1), &scratch);
            let _ = std::fs::remove_dir_all(&scratch);
            result.map(|()| true)
        }
        Some("--texts") => texts::run(rest()),
        Some("--cubins") => cubins::run(rest()),
        Some("--operations") => operations::run(rest()),
        Some("--run") => launch::run(rest()),
        Some("--order") => order(rest().map(PathBuf::from)),
        Some("--pack") => pack_cases(rest()),
        Some(word) if word.starts_with('-') => Err(format!("there is no option '{word}'; see oracle --help")),
        Some(_) => compare(arguments.iter().map(PathBuf::from)),
        None => Err("no files to compare; see oracle --help".to_owned()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("oracle: {message}");
            ExitCode::from(2)
        }
    }
}

fn compare(paths: impl Iterator<Item = PathBuf>) -> Result<bool, String> {
    let tools = Tools::find()?;
    let files = files_in(paths)?;
    let pairs: Vec<Pair> = files.iter().flat_map(|file| pairs(file)).collect();
    let scratch = scratch_folder();
    let outcomes = in_parallel(&tools, &pairs, &scratch);
    let cpu = measure(&tools, &pairs, &outcomes, &scratch);
    let (launched, absent) = corpus::find(&files)?;
    let executed = triangle::run(&tools, &triangle::TARGETS, "", &launched, &scratch, EXECUTION);
    let timed = clock::run(&tools, &triangle::TARGETS, "", &launched, &scratch, false)?;
    let _ = std::fs::remove_dir_all(&scratch);
    let compared = report(&pairs, &outcomes?, cpu);
    clock::report(&timed, false);
    println!();
    Ok(report_execution(&executed, absent) && compared)
}

/// Runs the order checker on ptxas's code of files.
fn order(paths: impl Iterator<Item = PathBuf>) -> Result<bool, String> {
    let tools = Tools::find()?;
    let files = files_in(paths)?;
    let scratch = scratch_folder();
    std::fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let mut all = order::Judged::default();
    for pair in files.iter().flat_map(|file| pairs(file)) {
        all.add(order::judge(&tools, &pair.file, &pair.arch(), &scratch));
    }
    let _ = std::fs::remove_dir_all(&scratch);
    Ok(all.report())
}

fn pack_cases<'a>(mut rest: impl Iterator<Item = &'a str>) -> Result<bool, String> {
    let (mut folder, mut target, mut programs, mut seconds, mut files) = (None, 90, 0, u64::MAX, Vec::new());
    while let Some(word) = rest.next() {
        let mut number =
            || rest.next().and_then(|count| count.parse().ok()).ok_or(format!("{word} needs a number"));
        if word == "--programs" {
            programs = number()?;
        } else if word == "--seconds" {
            seconds = number()?;
        } else if folder.is_none() {
            folder = Some(PathBuf::from(word));
        } else if let Ok(number) = word.parse() {
            target = number;
        } else {
            collect(Path::new(word), &mut files).map_err(|error| format!("{word}: {error}"))?;
        }
    }
    let folder = folder.ok_or("--pack FOLDER [TARGET]")?;
    files.sort();
    let wanted = pack::Wanted { target, programs, files: &files, time: Duration::from_secs(seconds) };
    let count = pack::pack(&Tools::find()?, &folder, &wanted)?;
    println!("{count} cases for sm_{target} in {}", folder.display());
    Ok(true)
}

/// Runs ptxas's code of the cases whose text contains `wanted`. Returns whether all results are as required.
fn execute<'a>(wanted: &str, rest: impl Iterator<Item = &'a str>) -> Result<bool, String> {
    let tools = Tools::find()?;
    let scratch = scratch_folder();
    let (mut target, mut files) = (None, Vec::new());
    for word in rest {
        match word.parse() {
            Ok(number) => target = Some(number),
            Err(_) => {
                collect(Path::new(word), &mut files).map_err(|error| format!("{word}: {error}"))?;
            }
        }
    }
    files.sort();
    let (launched, absent) = corpus::find(&files)?;
    let targets = target.map_or(triangle::TARGETS.to_vec(), |target| vec![target]);
    if let Some(seed) = wanted.strip_prefix("program ").and_then(|seed| seed.parse().ok()) {
        println!("{}", triangle::shrink(&tools, seed, targets[0], &scratch));
        return Ok(true);
    }
    let triangle = triangle::run(&tools, &targets, wanted, &launched, &scratch, Duration::MAX);
    let _ = std::fs::remove_dir_all(&scratch);
    Ok(report_execution(&triangle, absent))
}

/// Prints whether ptxas's code gives the interpreter's results without hazards, and whether damage to it is detected.
fn report_execution(triangle: &Triangle, absent: usize) -> bool {
    let (names, forms, not_swept) = sweep::coverage();
    println!(
        "swept          {names} names of {forms} forms: what computes in registers, and matrices of a warp"
    );
    for (reason, names) in not_swept {
        let (shown, more) = names.split_at(names.len().min(SHOWN_NAMES));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        println!("not swept      {}{more}: {reason}", shown.join(", "));
    }
    for finding in &triangle.findings {
        println!("{finding}");
    }
    for (target, agree) in &triangle.agree {
        println!(
            "sm_{target:<4} ptxas's code agrees with the interpreter in {} of {} runs",
            agree.good, agree.all
        );
    }
    for (target, agree) in &triangle.launched {
        println!("sm_{target:<4} and for kernels of the folders in {} of {} runs", agree.good, agree.all);
    }
    let undescribed: Vec<&str> = triangle.undescribed.iter().map(String::as_str).collect();
    println!(
        "{} described files are not in the folders; kernels in them that are not run: {}",
        absent,
        undescribed.join(", ")
    );
    for (why, count) in &triangle.unjudged {
        println!("{count} kernels of ptxas's are not judged: {why}");
    }
    if triangle.left > 0 {
        println!("no time was left for {} modules", triangle.left);
    }
    let seen = triangle.seen;
    println!(
        "hazards found in {} runs of ptxas's code; damage seen {} of {}",
        triangle.hazards, seen.good, seen.all
    );
    let mut counts = triangle.agree.values().chain(triangle.launched.values());
    let agree = counts.all(|count| count.good == count.all);
    agree && triangle.hazards == 0 && seen.good * 100 >= seen.all * LEAST_SEEN
}

/// The named PTX files and those in named folders, in order.
fn files_in(paths: impl Iterator<Item = PathBuf>) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        collect(&path, &mut files).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    files.sort();
    Ok(files)
}

/// The folder for compiled files. The process removes it at its end.
fn scratch_folder() -> PathBuf {
    std::env::temp_dir().join(format!("ptx-oracle-{}", std::process::id()))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else if path.extension().is_some_and(|extension| extension == "ptx") {
        files.push(path.to_owned());
    }
    Ok(())
}

/// The targets for which a file can be compiled. Code for a single architecture has no other targets.
fn pairs(file: &Path) -> Vec<Pair> {
    let text =
        std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let own = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"));
    let own = own.and_then(|rest| rest.trim_start().strip_prefix("sm_")).unwrap_or("");
    let digits = own.find(|c: char| !c.is_ascii_digit()).unwrap_or(own.len());
    let (number, suffix) = own.split_at(digits);
    let Some(least) = number.parse::<u32>().ok().filter(|_| !suffix.starts_with(['a', 'f'])) else {
        return Vec::new();
    };
    let fitting = TARGETS.iter().filter(|&&target| target >= least);
    fitting.map(|&target| Pair { file: file.to_owned(), target }).collect()
}

/// The outcomes of all pairs, in order.
fn in_parallel(tools: &Tools, pairs: &[Pair], scratch: &Path) -> Result<Vec<Outcome>, String> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<BTreeMap<usize, Outcome>> = Mutex::default();
    for worker in 0..workers {
        std::fs::create_dir_all(scratch.join(worker.to_string())).map_err(|error| error.to_string())?;
    }
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let scratch = scratch.join(worker.to_string());
            let (next, outcomes) = (&next, &outcomes);
            scope.spawn(move || {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(pair) = pairs.get(index)
                {
                    let outcome = pair::compare(tools, pair, &scratch);
                    outcomes.lock().expect("no worker panics").insert(index, outcome);
                }
            });
        }
    });
    Ok(outcomes.into_inner().expect("no worker panics").into_values().collect())
}

/// CPU seconds of our compiler and of ptxas, measured alternately and one process at a time, for a sample of the files
/// that both compile.
fn measure(
    tools: &Tools,
    pairs: &[Pair],
    outcomes: &Result<Vec<Outcome>, String>,
    scratch: &Path,
) -> (f64, f64) {
    let compiled: Vec<&Pair> =
        pairs.iter().zip(outcomes.iter().flatten()).filter(|(_, o)| o.compiled).map(|(p, _)| p).collect();
    let step = compiled.len().div_ceil(MEASURED).max(1);
    let output = scratch.join("measured.cubin");
    let mut seconds = (0.0, 0.0);
    for pair in compiled.into_iter().step_by(step) {
        let arguments = tools::compile_arguments(&pair.arch(), &pair.file, &output);
        let of = |tool| tools::cpu_seconds(tool, &arguments).unwrap_or(f64::NAN);
        seconds = (seconds.0 + of(&tools.ptxc), seconds.1 + of(&tools.ptxas));
    }
    seconds
}

/// Prints the results. Returns whether every requirement is met.
fn report(pairs: &[Pair], outcomes: &[Outcome], cpu: (f64, f64)) -> bool {
    let mut failed = 0;
    println!("{:<40} {:>6} {:>7} {:>6} {:>7}  result", "file", "target", "kernels", "regs", "instrs");
    for (pair, outcome) in pairs.iter().zip(outcomes) {
        let name = pair.file.file_name().unwrap_or_default().to_string_lossy();
        let result = match outcome {
            Outcome { accepted: false, .. } => "ptxas refuses it",
            Outcome { compiled: false, .. } => "not compiled yet",
            _ => "compiled",
        };
        println!(
            "{name:<40} {:>6} {:>7} {:>6} {:>7}  {result}",
            pair.arch(),
            outcome.kernels.len(),
            ratio(registers([outcome])),
            ratio(instructions([outcome])),
        );
        for failure in &outcome.failures {
            failed += 1;
            println!("    FAILED: {failure}");
        }
    }
    let mut require = |holds: bool, what: &str| {
        if !holds {
            failed += 1;
            println!("FAILED: {what}");
        }
    };
    println!();
    reasons(outcomes);
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|o| is(o)).count();
    println!(
        "pairs          {}; ptxas accepts {}, of which ptxc compiles {}",
        outcomes.len(),
        count(|o| o.accepted),
        count(|o| o.compiled)
    );
    println!("hazard checker accepts {} of our functions", counts(outcomes, |o| o.clean.0));
    println!("               and {} of ptxas's", counts(outcomes, |o| o.clean.1));
    let mut order = order::Judged::default();
    outcomes.iter().for_each(|outcome| order.add(outcome.order.clone()));
    let ordered = order.report();
    println!(
        "damage seen    stalls {} of ours, {} of ptxas's; waits {} of ours, {} of ptxas's",
        tally(outcomes, |o| o.stalls.0),
        tally(outcomes, |o| o.stalls.1),
        tally(outcomes, |o| o.waits.0),
        tally(outcomes, |o| o.waits.1)
    );
    let kernels = || outcomes.iter().flat_map(|o| &o.kernels);
    let (registers, instructions) = (registers(outcomes), instructions(outcomes));
    println!(
        "kernels        {}; of ptxas's: registers {} (at most {MOST_REGISTERS}), instructions {} (at most {MOST_INSTRUCTIONS})",
        kernels().count(),
        ratio(registers),
        ratio(instructions)
    );
    let spilled: Vec<&str> =
        kernels().filter(|k| k.spills.0 && !k.spills.1).map(|k| k.name.as_str()).collect();
    let theirs = kernels().filter(|k| k.spills.1 && !k.spills.0).count();
    println!("spills         only ours {}, only ptxas's {theirs}", spilled.len());
    println!(
        "cpu            {:.3} of ptxas's ({:.2} s of {:.2} s; wanted {WANTED_CPU})",
        cpu.0 / cpu.1,
        cpu.0,
        cpu.1
    );
    require(ordered, "the order checker refuses too much of ptxas's code");
    require(registers.is_some_and(|r| r <= MOST_REGISTERS), "too many registers");
    require(instructions.is_some_and(|r| r <= MOST_INSTRUCTIONS), "too many instructions");
    require(spilled.is_empty(), &format!("spills where ptxas has none: {}", spilled.join(", ")));
    if failed > 0 {
        println!("{failed} requirements do not hold");
    }
    failed == 0
}

/// Prints the reasons why files are not compiled, most frequent first.
fn reasons(outcomes: &[Outcome]) {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for outcome in outcomes {
        let mut own: Vec<String> = outcome.refusals.iter().map(|line| general(line)).collect();
        own.sort();
        own.dedup();
        for reason in own {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (reason, count) in reasons {
        println!("{count:5} pairs with {reason}");
    }
}

/// A message without its place and the names in it.
fn general(message: &str) -> String {
    let reason = message.split_once(": ").map_or(message, |(_, reason)| reason);
    let mut quoted = false;
    reason
        .split('\'')
        .map(|part| {
            quoted = !quoted;
            if quoted { part } else { "…" }
        })
        .collect()
}

fn registers<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Option<f64> {
    let kernels = outcomes.into_iter().flat_map(|o| &o.kernels);
    geometric_mean(kernels.map(|k| f64::from(k.registers.0) / f64::from(k.registers.1)))
}

fn instructions<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Option<f64> {
    let kernels = outcomes.into_iter().flat_map(|o| &o.kernels);
    geometric_mean(kernels.map(|k| k.instructions.0 as f64 / k.instructions.1 as f64))
}

/// The geometric mean of the finite ratios. `None` if there are none.
fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut logarithms, mut count) = (0.0, 0);
    for logarithm in ratios.map(f64::ln).filter(|l| l.is_finite()) {
        logarithms += logarithm;
        count += 1;
    }
    (count > 0).then(|| (logarithms / f64::from(count)).exp())
}

fn ratio(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}

fn counts(outcomes: &[Outcome], of: fn(&Outcome) -> Counts) -> String {
    let (clean, all) = outcomes.iter().map(of).fold((0, 0), |(c, a), n| (c + n.clean, a + n.all));
    format!("{clean} of {all}")
}

fn tally(outcomes: &[Outcome], of: fn(&Outcome) -> Tally) -> String {
    let mut sum = Tally::default();
    outcomes.iter().map(of).for_each(|t| sum.add(t));
    format!("{} of {}", sum.caught, sum.made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric_mean([0.5, 2.0, f64::INFINITY].into_iter()), Some(1.0));
        assert_eq!(geometric_mean(std::iter::empty()), None);
    }

    #[test]
    fn reasons_lose_names() {
        assert_eq!(general("error   : no code for 'foo' yet"), "no code for '…' yet".replace('\'', ""));
    }
}
