//! How long what took, for `-v`, `--compiler-stats` and `--fdevice-time-trace`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::log::{Kind, Log};
use super::options::Stats;
use crate::output;

/// The parts of a compilation, by ptxas's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Reading and checking the text.
    Parse,
    /// What the module declares.
    Setup,
    /// Showing stages of the compiler.
    Shown,
    /// Compiling functions.
    Code,
    /// Putting them together, and writing the file.
    Elf,
}

/// Stages that are reported; the second has no part of its own here: the code is made from the text's functions at once.
const REPORTED: [(&str, Option<Stage>); 6] = [
    ("Parse-time            ", Some(Stage::Parse)),
    ("CompileUnitSetup-time ", Some(Stage::Setup)),
    ("DAGgen-time           ", None),
    ("OCG-time              ", Some(Stage::Code)),
    ("ELF-time              ", Some(Stage::Elf)),
    ("DebugInfo-time        ", None),
];

pub(super) struct Clock {
    start: Instant,
    last: Instant,
    /// In their order: when each began and how long it took.
    stages: Vec<(Stage, Duration, Duration)>,
    /// The same of functions.
    functions: Vec<(String, Duration, Duration)>,
}

impl Clock {
    pub(super) fn new() -> Self {
        let start = Instant::now();
        Clock { start, last: start, stages: Vec::new(), functions: Vec::new() }
    }

    /// How long ago the last call was, and when that was.
    fn lap(&mut self) -> (Duration, Duration) {
        let now = Instant::now();
        let lap = (self.last - self.start, now - self.last);
        self.last = now;
        lap
    }

    /// A stage ends now.
    pub(super) fn end(&mut self, stage: Stage) {
        let (began, took) = self.lap();
        self.stages.push((stage, began, took));
    }

    /// A function is compiled now.
    pub(super) fn compiled(&mut self, name: &str) {
        let (began, took) = self.lap();
        self.functions.push((name.to_owned(), began, took));
    }

    pub(super) fn of_function(&self, name: &str) -> Duration {
        self.functions.iter().find(|(known, ..)| known == name).map_or(Duration::ZERO, |(.., took)| *took)
    }

    fn of(&self, stage: Stage) -> Duration {
        let own = self.stages.iter().filter(|(known, ..)| *known == stage).map(|(.., took)| *took).sum();
        if stage == Stage::Code {
            self.functions.iter().fold(own, |all, (.., took)| all + *took)
        } else {
            own
        }
    }

    /// What `--compiler-stats` prints.
    pub(super) fn report(&self, stats: Stats, log: &mut Log) {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let all = milliseconds(self.last - self.start);
        if stats.time || stats.stages {
            let share = if stats.stages { " (100%)" } else { "" };
            log.say(Kind::Info, format_args!("STAT: CompileTime = {all:.6} ms{share}"));
        }
        if stats.stages {
            for (name, stage) in REPORTED {
                let time = stage.map_or(0.0, |stage| milliseconds(self.of(stage)));
                let share = if all > 0.0 { 100.0 * time / all } else { 0.0 };
                log.more(format_args!("{name}: {time:.3} ms ({share:.2}%)"));
            }
            log.more("");
        }
        if (stats.memory || stats.stages)
            && let Some(kib) = peak_memory()
        {
            log.say(Kind::Info, format_args!("STAT: PeakMemoryUsage = {kib:.3} KB"));
        }
    }

    /// Adds what was done to a file of trace events, as `--fdevice-time-trace` asks.
    pub(super) fn trace(&self, path: &Path, input: &str) -> Result<(), String> {
        let name = path.display();
        // A pipe would have to be read and written again.
        let text =
            fs::metadata(path).ok().filter(fs::Metadata::is_file).and_then(|_| fs::read_to_string(path).ok());
        let text = text.ok_or_else(|| format!("File '{name}' could not be opened"))?;
        let format = || format!("Input file '{name}' not in expected format");
        let mut trace: serde_json::Value = serde_json::from_str(&text).map_err(|_| format())?;
        let events = trace.get_mut("traceEvents").and_then(|events| events.as_array_mut());
        let events = events.ok_or_else(format)?;
        let mut add = |name: &str, of: &str, began: Duration, took: Duration| {
            events.push(serde_json::json!({
                "args": { "name": of },
                "dur": took.as_micros() as u64,
                "name": name,
                "ph": "X",
                "pid": std::process::id(),
                "tid": 0,
                "ts": began.as_micros() as u64,
            }));
        };
        add("Total PTXAS Time", input, Duration::ZERO, self.last - self.start);
        for (function, began, took) in &self.functions {
            add("Optimizing compilation unit", function, *began, *took);
        }
        for (stage, began, took) in &self.stages {
            let name = match stage {
                Stage::Parse | Stage::Setup => "PTX parsing and setup time",
                Stage::Shown | Stage::Code => continue,
                Stage::Elf => "Post processing",
            };
            add(name, "", *began, *took);
        }
        output::rewrite(path, trace.to_string().as_bytes())
            .map_err(|_| format!("File '{name}' could not be opened"))
    }
}

/// The most memory that the process has had, in KiB, where the system tells.
fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
