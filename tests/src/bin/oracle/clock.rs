//! `oracle --clock TEXT [TARGET] [FOLDER…]` compares the cycles of our code and of ptxas's code, as the emulator's
//! clock estimates them.
//!
//! It prints a line per described kernel, with the worst at the end, and geometric means. With a text and a target, it
//! also prints the cycles of each instruction.

use crate::corpus::{self, Launched};
use crate::tools::Tools;
use crate::triangle::{Assembler, Interpreted, Module, TARGETS};
use conformance::case::{self, Case};
use conformance::description::{self, Described};
use ptx_emu::clock::{self, Reason, Report, Setting};
use ptx_emu::cubin;
use ptx_emu::machine::Kernel;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The figures of a kernel, for our code and for ptxas's.
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) target: u32,
    pub(crate) cycles: [u64; 2],
    pub(crate) issued: [u64; 2],
    pub(crate) registers: [u32; 2],
    /// The cycles of each instruction, for each compiler.
    explained: String,
}

impl Timed {
    pub(crate) fn ratio(&self) -> f64 {
        self.cycles[0] as f64 / self.cycles[1] as f64
    }
}

/// The cases of a module that is compiled for a target.
struct Job {
    target: u32,
    cases: Vec<(String, Case)>,
}

/// Measures the described kernels of this package and of `files` whose name contains `only`, on `targets`.
///
/// # Errors
/// A folder cannot be read.
pub(crate) fn run(
    tools: &Tools,
    targets: &[u32],
    only: &str,
    files: &[Launched],
    scratch: &Path,
    explains: bool,
) -> Result<Vec<Timed>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let mut jobs = Vec::new();
    let described = description::folder(&folder)?;
    for same in described.chunk_by(|a, b| a.case.ptx == b.case.ptx) {
        let cases: Vec<(String, Case)> = same.iter().map(|d| (d.name.clone(), d.case.clone())).collect();
        jobs.extend(targets.iter().map(|&target| Job { target, cases: cases.clone() }));
    }
    for file in files.iter().filter(|file| targets.contains(&file.target) || targets.len() > 1) {
        let Ok((ptx, cases)) = corpus::read(file) else { continue };
        let cases = cases.into_iter().filter(|d| corpus::has_kernel(&ptx, &d.case.kernel));
        let cases = cases.filter(|d| !d.case.except.contains(&file.target));
        let own = |Described { name, case }: Described| (name, Case { ptx: ptx.clone(), ..case });
        jobs.push(Job { target: file.target, cases: cases.map(own).collect() });
    }
    for job in &mut jobs {
        job.cases.retain(|(name, _)| name.contains(only));
    }
    jobs.retain(|job| !job.cases.is_empty());
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let assembler = Assembler { tools, folder: scratch.join(format!("clock-{worker}")) };
            let (jobs, next, results) = (&jobs, &next, &results);
            scope.spawn(move || {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let timed = job.run(&assembler, explains);
                    results.lock().expect("no worker panics").extend(timed);
                }
            });
        }
    });
    let mut timed = results.into_inner().map_err(|error| error.to_string())?;
    timed.sort_by(|a: &Timed, b: &Timed| a.ratio().total_cmp(&b.ratio()).then(a.name.cmp(&b.name)));
    Ok(timed)
}

impl Job {
    /// Measures the cases that both compilers compile and the emulator runs.
    fn run(&self, assembler: &Assembler<'_>, explains: bool) -> Vec<Timed> {
        let Some(module) = self.cases.first().and_then(|(_, case)| case::parse(&case.ptx).ok()) else {
            return Vec::new();
        };
        let mut timed = Vec::new();
        let mut bytes = None;
        for (name, case) in &self.cases {
            let Ok(input) = case::kernel_of(&module, &case.kernel) else { continue };
            let Ok(interpreted) = Interpreted::run(name, case, Module::Own, &input) else { continue };
            let Some(sm) = interpreted.architecture(self.target) else { continue };
            let Ok(code) = case::compile(&input, sm, 3) else { continue };
            let prepared = &interpreted.prepared;
            let ours = Kernel::compiled(&input.env, &code, sass::Sm(sm.number as u8), &prepared.device);
            let bytes = bytes
                .get_or_insert_with(|| assembler.assemble(self.target, std::slice::from_ref(&interpreted)));
            let Some(bytes) = bytes else { return timed };
            let Ok(theirs) = cubin::kernel(bytes, &case.kernel, &prepared.device) else { continue };
            let time = |kernel: &Kernel| {
                let mut device = prepared.device.clone();
                let report = clock::time(kernel, &prepared.launch, &mut device, Setting::default());
                let report = report.map_err(|fault| fault.to_string())?;
                case::same(prepared, &interpreted.expected, &device).map(|()| report)
            };
            let (a, b) = match (time(&ours), time(&theirs)) {
                (Ok(a), Ok(b)) => (a, b),
                (Err(how), _) => {
                    println!("WRONG sm_{} {name}: {how}", self.target);
                    continue;
                }
                (Ok(_), Err(how)) => {
                    println!("ptxas's code is not timed: sm_{} {name}: {how}", self.target);
                    continue;
                }
            };
            timed.push(Timed {
                name: name.clone(),
                target: self.target,
                cycles: [a.cycles, b.cycles],
                issued: [a.issued, b.issued],
                registers: [ours.registers, theirs.registers],
                explained: match explains {
                    true => format!("ours\n{}\nptxas\n{}", explain(&ours, &a), explain(&theirs, &b)),
                    false => String::new(),
                },
            });
        }
        timed
    }
}

/// A listing of the code with the cycles of each instruction.
pub(crate) fn explain(kernel: &Kernel, report: &Report) -> String {
    let lost: Vec<String> = Reason::ALL
        .iter()
        .zip(report.lost)
        .map(|(reason, cycles)| format!("{} {cycles}", reason.name()))
        .collect();
    let mut text = format!(
        "{} cycles, {} instructions issued; slots lost: {}\n",
        report.cycles,
        report.issued,
        lost.join(", ")
    );
    for (at, (&word, spent)) in kernel.code.iter().zip(&report.instructions).enumerate() {
        let Some(inst) = sass::decode_tolerant(kernel.sm, word).filter(|_| spent.issued > 0) else {
            continue;
        };
        let worst = (0..Reason::ALL.len()).max_by_key(|&i| spent.waited[i]).filter(|&i| spent.waited[i] > 0);
        let worst = worst.map_or(String::new(), |i| format!("{} {}", Reason::ALL[i].name(), spent.waited[i]));
        let waited: u64 = spent.waited.iter().sum();
        text += &format!(
            "{at:5} {:8} {waited:9} {worst:20} {} {}\n",
            spent.issued,
            inst.control,
            sass::print(kernel.sm, &inst, at as u64 * sass::INST_BYTES)
        );
    }
    text
}

/// Prints the figures. Returns the means.
pub(crate) fn report(timed: &[Timed], lists: bool) {
    for t in timed.iter().filter(|_| lists) {
        println!(
            "{:6.2} sm_{:<4} cycles {:?} issued {:?} registers {:?} {}",
            t.ratio(),
            t.target,
            t.cycles,
            t.issued,
            t.registers,
            t.name
        );
        print!("{}", t.explained);
    }
    let mut targets: Vec<u32> = timed.iter().map(|t| t.target).collect();
    targets.sort_unstable();
    targets.dedup();
    for target in targets.iter().map(|&t| Some(t)).chain([None]) {
        let of = || timed.iter().filter(|t| target.is_none_or(|target| t.target == target));
        let mean = |ratio: &dyn Fn(&Timed) -> f64| crate::geometric_mean(of().map(ratio)).unwrap_or(f64::NAN);
        let above = |limit: f64| of().filter(|t| t.ratio() > limit).count();
        println!(
            "time           {}: {} kernels, {:.3} of ptxas's cycles (above 1.25: {}, above 2: {}), {:.3} of its instructions issued",
            target.map_or("all".into(), |target| format!("sm_{target}")),
            of().count(),
            mean(&Timed::ratio),
            above(1.25),
            above(2.0),
            mean(&|t| t.issued[0] as f64 / t.issued[1] as f64),
        );
    }
}

/// Parses the arguments of the command.
pub(crate) fn command<'a>(
    wanted: &str,
    rest: impl Iterator<Item = &'a str>,
    scratch: &Path,
) -> Result<(), String> {
    let (mut target, mut files) = (None, Vec::new());
    for word in rest {
        match word.parse() {
            Ok(number) => target = Some(number),
            Err(_) => {
                crate::collect(Path::new(word), &mut files).map_err(|error| format!("{word}: {error}"))?;
            }
        }
    }
    files.sort();
    let (launched, _) = corpus::find(&files)?;
    let targets = target.map_or(TARGETS.to_vec(), |target| vec![target]);
    let explains = target.is_some() && !wanted.is_empty();
    let timed = run(&Tools::find()?, &targets, wanted, &launched, scratch, explains)?;
    report(&timed, true);
    Ok(())
}
