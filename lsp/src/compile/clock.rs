//! Measures the time and memory of each stage, for `-v`, `--compiler-stats` and `--fdevice-time-trace`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::log::{Kind, Log};
use super::options::Stats;
use crate::output;

/// The stages of a compilation, with ptxas's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Reads and checks the text.
    Parse,
    /// Collects the declarations of the module.
    Setup,
    /// Prints compiler stages.
    Shown,
    /// Compiles functions.
    Code,
    /// Links the functions and writes the file.
    Elf,
}

/// The stages that are reported. `DAGgen` has no counterpart here, because functions are compiled from the PTX directly.
/// `DebugInfo` belongs to `ELF`.
const REPORTED: [(&str, Option<Stage>); 6] = [
    ("Parse", Some(Stage::Parse)),
    ("CompileUnitSetup", Some(Stage::Setup)),
    ("DAGgen", None),
    ("OCG", Some(Stage::Code)),
    ("ELF", Some(Stage::Elf)),
    ("DebugInfo", None),
];

pub(super) struct Clock {
    start: Instant,
    last: Instant,
    /// The finished stages in order: start and duration of each.
    stages: Vec<(Stage, Duration, Duration)>,
    /// Start and duration of the compilation of each function.
    functions: Vec<(String, Duration, Duration)>,
    /// The peak memory use of the process at the last end of a stage, in KiB, if it is measured.
    peak: Option<f64>,
    /// The stages, each with the growth of the peak during it.
    growth: Vec<(Stage, f64)>,
}

impl Clock {
    /// `stats` tells what is measured.
    pub(super) fn new(stats: Stats) -> Self {
        let start = Instant::now();
        let peak = if stats.memory && stats.stages { peak_memory() } else { None };
        Clock { start, last: start, stages: Vec::new(), functions: Vec::new(), peak, growth: Vec::new() }
    }

    /// The time since the last call, and the time of the last call.
    fn lap(&mut self) -> (Duration, Duration) {
        let now = Instant::now();
        let lap = (self.last - self.start, now - self.last);
        self.last = now;
        lap
    }

    /// Marks the end of a stage.
    pub(super) fn end(&mut self, stage: Stage) {
        let (began, took) = self.lap();
        self.stages.push((stage, began, took));
        self.measure(stage);
    }

    fn measure(&mut self, stage: Stage) {
        if let Some(before) = self.peak
            && let Some(now) = peak_memory()
        {
            self.growth.push((stage, now - before));
            self.peak = Some(now);
        }
    }

    /// Marks the end of the compilation of a function.
    pub(super) fn compiled(&mut self, name: &str) {
        let (began, took) = self.lap();
        self.functions.push((name.to_owned(), began, took));
        self.measure(Stage::Code);
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

    /// Prints the output of `--compiler-stats`.
    pub(super) fn report(&self, stats: Stats, log: &mut Log) {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let all = milliseconds(self.last - self.start);
        if stats.time {
            let share = if stats.stages { " (100%)" } else { "" };
            log.say(Kind::Info, format_args!("STAT: CompileTime = {all:.6} ms{share}"));
            for (name, stage) in REPORTED.iter().filter(|_| stats.stages) {
                let time = stage.map_or(0.0, |stage| milliseconds(self.of(stage)));
                let share = if all > 0.0 { 100.0 * time / all } else { 0.0 };
                log.more(format_args!("{:22}: {time:.3} ms ({share:.2}%)", format!("{name}-time")));
            }
        }
        if stats.time && stats.stages {
            log.more("");
        }
        if stats.memory
            && let Some(kib) = peak_memory()
        {
            log.say(Kind::Info, format_args!("STAT: PeakMemoryUsage = {kib:.3} KB"));
            for (name, stage) in REPORTED.iter().filter(|_| stats.stages) {
                let own = self.growth.iter().filter(|(known, _)| Some(*known) == *stage);
                let kib = own.fold(0.0, |sum, (_, growth)| sum + growth);
                let name = if *stage == Some(Stage::Parse) { "Parser" } else { *name };
                log.more(format_args!("{:32}: {kib:.3} KB", format!("Peak{name}MemoryUsage")));
            }
            if stats.stages {
                log.more("");
            }
        }
    }

    /// Appends the trace events to a file, as `--fdevice-time-trace` asks.
    pub(super) fn trace(&self, path: &Path, input: &str) -> Result<(), String> {
        let name = path.display();
        // Appending means reading the file first, which a pipe does not allow.
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

/// The peak memory use of the process in KiB, if the system reports it.
fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
