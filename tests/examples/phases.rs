//! Measures the benefit of each optional compiler phase, and checks that the code is correct without it.
//!
//! - `phases kernels [TEXT [TARGET…]]`: described kernels whose names contain a text, for these targets (as `90`);
//! - `phases programs FIRST COUNT`: random programs, by seed;
//! - `phases files FILE…`: PTX files, which are compiled only.
//!
//! Each is compiled without each run of a phase, without all runs of it, and without each step. Kernels and programs
//! run in the emulator, and those that leave a different memory than the interpreter are listed. A row of the table
//! shows by how much each figure grows without the phase, as a geometric mean; a number above zero is the benefit of
//! the phase. With `PTX_PHASE` in the environment, the only row is that of its list.

#![expect(clippy::print_stdout, reason = "a tool for a terminal")]

use conformance::case::{self, Case};
use conformance::{description, program};
use ptx_analysis::Database;
use ptx_analysis::compile::{Compiled, compile_function, functions};
use ptx_backend::{CompiledFunction, Options, Resources, Switches, switches};
use ptx_emu::clock::{self, Setting};
use ptx_emu::machine::Kernel;
use ptx_isa::Sm;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The default targets: one of each generation.
const TARGETS: [u16; 5] = [75, 80, 90, 100, 120];

/// The compared figures, in the order of the columns.
const FIGURES: [&str; 5] = ["cycles", "issued", "instructions", "registers", "CPU time"];

/// The index of the time among the figures.
const TIME: usize = 4;

/// The figures of one function compiled in one way. Figures that were not measured are zero.
#[derive(Clone, Copy, Default)]
struct Figures {
    compared: [f64; FIGURES.len()],
    spilled: u32,
}

/// The effect of disabling one part.
#[derive(Clone, Copy, Default)]
struct Sum {
    functions: u32,
    changed: u32,
    logarithms: [f64; FIGURES.len()],
    spilled: i64,
}

/// The parts to disable, one after the other, with their names: those in the list, or every part.
fn parts(list: Option<String>) -> Result<Vec<(String, Switches)>, String> {
    if let Some(list) = list {
        return Switches::parse(&list).map(|switches| vec![(list, switches)]);
    }
    let often = switches::names().filter(|(_, runs)| *runs > 1);
    let whole =
        often.filter_map(|(name, _)| Some((name.to_owned(), Switches::parse(&format!("-{name}")).ok()?)));
    Ok(switches::singles().into_iter().chain(whole).collect())
}

struct Table {
    parts: Vec<(String, Switches)>,
    sums: Mutex<Vec<Sum>>,
}

impl Table {
    fn new(parts: Vec<(String, Switches)>) -> Table {
        Table { sums: Mutex::new(vec![Sum::default(); parts.len()]), parts }
    }

    /// Records the figures of a function with everything enabled and without a part.
    fn add(&self, part: usize, with: Figures, without: Figures) {
        let sum = &mut self.sums.lock().expect("no worker panics")[part];
        sum.functions += 1;
        sum.changed +=
            u32::from(with.spilled != without.spilled || with.compared[..TIME] != without.compared[..TIME]);
        sum.spilled += i64::from(without.spilled) - i64::from(with.spilled);
        for (sum, (a, b)) in sum.logarithms.iter_mut().zip(without.compared.iter().zip(with.compared)) {
            let logarithm = (a / b).ln();
            *sum += if logarithm.is_finite() { logarithm } else { 0.0 };
        }
    }

    fn print(self) {
        println!(
            "| without | changes | {} | spilled bytes |",
            FIGURES.map(|name| format!("{name} %")).join(" | ")
        );
        println!("|---|{}", "---:|".repeat(FIGURES.len() + 2));
        let sums = self.sums.into_inner().expect("no worker panics");
        for ((name, _), sum) in self.parts.iter().zip(sums) {
            let mean = |sums: f64| 100.0 * ((sums / f64::from(sum.functions.max(1))).exp() - 1.0);
            let figures = sum.logarithms.map(|sums| format!("{:.2}", mean(sums))).join(" | ");
            println!("| `{name}` | {} of {} | {figures} | {} |", sum.changed, sum.functions, sum.spilled);
        }
    }
}

/// Runs `work` for each number below `count`, on all cores.
fn for_each(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        break;
                    }
                    work(i);
                }
            });
        }
    });
}

fn static_figures(code: &CompiledFunction, cpu: f64) -> Figures {
    let Resources { registers, spill_store_bytes, spill_load_bytes, .. } = code.resources;
    let instructions = code.lines.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    Figures {
        compared: [0.0, 0.0, instructions as f64, registers.into(), cpu],
        spilled: spill_store_bytes + spill_load_bytes,
    }
}

/// Compiles a case in all ways for all targets, and runs the results that differ. Reports failures.
fn measure(name: &str, case: &Case, targets: &[u16], table: &Table) {
    let input = match case::input(&case.ptx, &case.kernel) {
        Ok(input) => input,
        Err(error) => return println!("{name}: {error}"),
    };
    let interpreted = match case::interpret(case, &input) {
        Ok(interpreted) => interpreted,
        Err(error) => return println!("{name}: {error}"),
    };
    let (prepared, expected) = &interpreted;
    for &number in targets {
        let sm = Sm { number, feature: input.env.target.feature };
        if input.env.target.runs_on(sm).is_err() || case.except.contains(&number.into()) {
            continue;
        }
        let mut known: HashMap<Vec<u128>, Option<Figures>> = HashMap::new();
        let mut figures = |part: &str, switches: Switches| {
            let code = match case::compile_with(&input, Options { switches, ..Options::new(sm) }) {
                Ok(code) => code,
                // An instruction that the target lacks has nothing to do with its phases.
                Err(_) if switches == Switches::ALL_ON => return None,
                Err(error) => {
                    println!("{name} {sm} without {part}: not compiled: {error}");
                    return None;
                }
            };
            let run = || {
                let kernel = Kernel::compiled(&input.env, &code, sass::Sm(number as u8), &prepared.device);
                let mut device = prepared.device.clone();
                let report = clock::time(&kernel, &prepared.launch, &mut device, Setting::default());
                let report = report.map_err(|fault| fault.to_string());
                let report =
                    report.and_then(|report| case::same(prepared, expected, &device).map(|()| report));
                let mut figures = static_figures(&code.kernel, 0.0);
                match report {
                    Ok(report) => {
                        figures.compared[..2].copy_from_slice(&[report.cycles as f64, report.issued as f64])
                    }
                    Err(how) => {
                        println!("{name} {sm} without {part}: WRONG: {how}");
                        return None;
                    }
                }
                Some(figures)
            };
            *known.entry(code.kernel.code.to_vec()).or_insert_with(run)
        };
        let Some(with) = figures("anything left out", Switches::ALL_ON) else { continue };
        for (i, (part, switches)) in table.parts.iter().enumerate() {
            let Some(without) = figures(part, *switches) else { continue };
            table.add(i, with, without);
        }
    }
}

/// Compiles the functions of a file in all ways, for the file's own target.
fn compile_file(path: &str, table: &Table) {
    let Ok(text) = std::fs::read_to_string(path) else { return println!("{path}: cannot be read") };
    let mut db = Database::default();
    let file = db.add_file(text);
    let compile = |db: &Database| -> (Vec<Option<Figures>>, f64) {
        let start = cpu_time();
        let codes: Vec<_> = functions(db, file).map(|item| compile_function(db, item)).collect();
        let time = cpu_time() - start;
        let of = |code: &&Option<Arc<Compiled>>| match code.as_deref() {
            Some(Ok(code)) => Some(static_figures(code, 0.0)),
            _ => None,
        };
        (codes.iter().map(of).collect(), time)
    };
    compile(&db);
    // The first compilation also reads the file.
    let mut again = |switches: Switches| {
        db.set_switches(switches);
        compile(&db)
    };
    for (i, (part, switches)) in table.parts.iter().enumerate() {
        let (with, time) = again(Switches::ALL_ON);
        let (without, time_without) = again(*switches);
        for (with, without) in with.into_iter().zip(without) {
            match (with, without) {
                (Some(mut with), Some(mut without)) => {
                    (with.compared[TIME], without.compared[TIME]) = (time, time_without);
                    table.add(i, with, without);
                }
                (Some(_), None) => println!("{path}: not compiled without {part}"),
                (None, _) => {}
            }
        }
    }
}

/// The CPU time of this thread in seconds, if the system reports it.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).map_or(0.0, |time| time * 1e-9)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let table = match parts(std::env::var("PTX_PHASE").ok()) {
        Ok(parts) => Table::new(parts),
        Err(message) => return println!("PTX_PHASE: {message}"),
    };
    match words[..] {
        ["kernels", ref rest @ ..] => {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
            let cases = description::folder(&folder).unwrap_or_else(|error| panic!("{error}"));
            let wanted = rest.first().copied().unwrap_or_default();
            let given: Vec<u16> = rest.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
            let targets = if given.is_empty() { TARGETS.to_vec() } else { given };
            let cases: Vec<_> = cases.iter().filter(|described| described.name.contains(wanted)).collect();
            for_each(cases.len(), |i| measure(&cases[i].name, &cases[i].case, &targets, &table));
        }
        ["programs", first, count] => {
            let (Ok(first), Ok(count)) = (first.parse::<u64>(), count.parse::<usize>()) else {
                return println!("phases programs FIRST COUNT");
            };
            for_each(count, |i| {
                let seed = first + i as u64;
                measure(
                    &format!("program {seed}"),
                    &program::case(seed),
                    &[TARGETS[i % TARGETS.len()]],
                    &table,
                );
            });
        }
        ["files", ref files @ ..] => for_each(files.len(), |i| compile_file(files[i], &table)),
        _ => return println!("phases kernels [TEXT [TARGET…]] | programs FIRST COUNT | files FILE…"),
    }
    table.print();
}
