//! Checks random cases for a given time.
//!
//! ```text
//! fuzz [--seconds N] [--seed N] [--findings FOLDER] [FILE or FOLDER]...
//! ```
//!
//! The programs to start from are the repository's kernels, unless others are named. The first finding of each kind is
//! shrunk and written to the folder. Exit status: 0 no findings, 1 findings, 2 wrong usage, 3 a case does not end.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for a terminal")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use conformance::fuzz::{Case, PROPERTIES, Property, Seeds, outcome, shrink};

/// A case that takes longer than this counts as a finding.
const SLOW: Duration = Duration::from_secs(10);
/// A case that takes longer than this many seconds counts as one that does not end.
const HANG: u64 = 120;
/// The time for shrinking one finding.
const SHRINK: Duration = Duration::from_secs(60);

struct Arguments {
    seconds: u64,
    seed: u64,
    findings: PathBuf,
    seeds: Vec<PathBuf>,
}

fn arguments() -> Result<Arguments, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut parsed = Arguments { seconds: 60, seed: 1, findings: "target/fuzz".into(), seeds: Vec::new() };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seconds" => parsed.seconds = value()?.parse().map_err(|_| "expected seconds")?,
            "--seed" => parsed.seed = value()?.parse().map_err(|_| "expected a number")?,
            "--findings" => parsed.findings = value()?.into(),
            option if option.starts_with("--") => return Err(format!("unknown option {option}")),
            path => parsed.seeds.push(path.into()),
        }
    }
    if parsed.seeds.is_empty() {
        parsed.seeds = vec![root.join("kernels"), root.join("../examples")];
    }
    Ok(parsed)
}

/// The place of the last panic, which distinguishes kinds of findings.
static PLACE: Mutex<String> = Mutex::new(String::new());
/// The time at which the current case began, in seconds since the start.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// The result of a property: for a failure, its message and a name for its kind. The name is the message without
/// numbers, or the place of the panic.
fn judge(property: &Property, case: &Case) -> Result<(), (String, String)> {
    let start = Instant::now();
    let result = outcome(property, case);
    match result {
        Ok(()) if start.elapsed() > SLOW => {
            Err((format!("{}: slow", property.name), format!("took {:?}", start.elapsed())))
        }
        Ok(()) => Ok(()),
        Err(message) => {
            let place = PLACE.lock().map(|place| place.clone()).unwrap_or_default();
            let words: String = message.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
            // The compiler catches its own defects and returns a message. The place is then that of the property.
            Err((format!("{}: {place}: {words}", property.name), message))
        }
    }
}

fn write(folder: &Path, name: &str, case: &Case, message: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (index, text) in case.texts.iter().enumerate() {
        fs::write(folder.join(format!("{name}.{index}.ptx")), text)?;
    }
    let target = case.target.map(|sm| format!("{sm:?}\n")).unwrap_or_default();
    fs::write(folder.join(format!("{name}.txt")), format!("{message}\n{target}"))
}

fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let seeds = Seeds::load(&arguments.seeds)?;
    let start = Instant::now();
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        if let Ok(mut slot) = PLACE.lock() {
            *slot = place;
        }
    }));
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(5));
            if start.elapsed().as_secs().saturating_sub(BEGAN.load(Ordering::Relaxed)) > HANG {
                eprintln!("a case does not end; it is in the folder of findings as current.*.ptx");
                std::process::exit(3);
            }
        }
    });
    let mut random = fastrand::Rng::with_seed(arguments.seed);
    let mut cases = 0u64;
    let mut findings: BTreeMap<String, u64> = BTreeMap::new();
    let mut report = Duration::from_secs(60);
    while start.elapsed().as_secs() < arguments.seconds {
        let case = seeds.case(&mut random);
        // Written first, because some failures cannot be caught: a stack overflow, or a case that does not end.
        write(&arguments.findings, "current", &case, "")?;
        for property in PROPERTIES {
            BEGAN.store(start.elapsed().as_secs(), Ordering::Relaxed);
            let Err((kind, message)) = judge(property, &case) else { continue };
            let count = findings.entry(kind.clone()).or_default();
            *count += 1;
            if *count == 1 {
                let name = format!("finding{}", findings.len());
                println!("{name}: {kind}\n  {message}");
                let same = |case: &Case| {
                    BEGAN.store(start.elapsed().as_secs(), Ordering::Relaxed);
                    judge(property, case).is_err_and(|(other, _)| other == kind)
                };
                write(&arguments.findings, &name, &shrink(&case, SHRINK, same), &message)?;
            }
        }
        cases += 1;
        if start.elapsed() > report {
            println!("{} s, {cases} cases, {} kinds of findings", start.elapsed().as_secs(), findings.len());
            report += Duration::from_secs(60);
        }
    }
    println!("{} s, {cases} cases, {} kinds of findings", start.elapsed().as_secs(), findings.len());
    for (kind, count) in &findings {
        println!("  {count} x {kind}");
    }
    Ok(ExitCode::from(u8::from(!findings.is_empty())))
}

fn main() -> ExitCode {
    arguments().map_err(io::Error::other).and_then(|arguments| run(&arguments)).unwrap_or_else(|error| {
        eprintln!("fuzz: {error}");
        ExitCode::from(2)
    })
}
