//! Compares the interpreter with the emulator on ptxas's code: both must leave the same memory.
//!
//! The emulator's hazard model must accept all code of ptxas, and must detect damage to control fields. Many kernels
//! are assembled together, because starting ptxas takes most of its time.

use crate::corpus::{self, Launched};
use crate::mutations;
use crate::tools::{self, Tools};
use conformance::case::{self, Case, Prepared};
use conformance::description::{self, Described};
use conformance::{program, sweep};
use ptx_emu::machine::Kernel;
use ptx_emu::{Device, FaultKind, cubin, machine};
use ptx_isa::Sm;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The targets for which ptxas assembles.
pub(crate) const TARGETS: [u32; 5] = [75, 80, 90, 100, 120];

/// The number of kernels in one module.
const MODULE: usize = 64;

/// The number of random programs.
const PROGRAMS: u64 = 60;
/// Random programs for which ptxas's code is wrong. In one, a loop uses a predicate with the value before an earlier
/// iteration wrote it (57). In another, threads branch around a guarded atomic operation and do not meet before a
/// `redux.sync` of all of them (22). A third computes a different word from sm_80 on; no short program is known for it yet
/// (21).
const BROKEN_BY_PTXAS: &[u64] = &[21, 22, 57];

/// The number of damaged kernels on which the emulator's model is tested, divided among the modules. Short kernels have
/// fewer possible mutations.
const MUTATIONS: usize = 6_000;

/// A situation that the emulator does not implement, although ptxas relies on it: how the hardware continues if threads
/// that reached a convergence barrier in several groups wait there together. Our compiler emits no such code.
const GROUPS_UNITED: &str = "apart wait as one group";

/// A case, with its name in reports.
struct Named {
    name: String,
    case: Case,
    module: Module,
}

/// The module in which a kernel is assembled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Module {
    /// A module with many other kernels.
    Any,
    Own,
    /// Its own, relocatable module: each function has a section, and calls and variables use relocations.
    Relocatable,
}

impl Module {
    /// The module of a random program. Modules with many kernels contain only kernels, without variables.
    fn of_program(case: &Case) -> Module {
        if case.ptx.contains(".const") { Module::Own } else { Module::Any }
    }
}

/// A unit of work: cases of one module for a target, or a file with other cases for its own target.
enum Work<'a> {
    Cases(u32, &'a [Interpreted]),
    File(&'a Launched),
}

/// The number of attempts, and of those with the required result.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) good: usize,
    pub(crate) all: usize,
}

impl Count {
    fn add(&mut self, good: bool) {
        self.good += usize::from(good);
        self.all += 1;
    }
}

/// The figures of a run.
#[derive(Default)]
pub(crate) struct Triangle {
    /// By target.
    pub(crate) agree: BTreeMap<u32, Count>,
    /// The same for the kernels of other folders.
    pub(crate) launched: BTreeMap<u32, Count>,
    /// The kernels of those folders that have no description.
    pub(crate) undescribed: BTreeSet<String>,
    /// The reasons why code of ptxas was not judged, with their numbers.
    pub(crate) unjudged: BTreeMap<String, usize>,
    /// The number of modules for which there was no time.
    pub(crate) left: usize,
    /// The number of runs in which the model found a hazard in ptxas's code.
    pub(crate) hazards: usize,
    /// Mutations of control fields that were detected.
    pub(crate) seen: Count,
    pub(crate) findings: Vec<String>,
}

/// A case after its run in the interpreter, and its kernels in ptxas's code.
pub(crate) struct Interpreted {
    name: String,
    ptx: String,
    kernel: String,
    module: Module,
    /// The lowest target of the kernel; if it has a suffix, the only one.
    least: Sm,
    /// Targets that the case excludes.
    except: Vec<u32>,
    pub(crate) prepared: Prepared,
    pub(crate) expected: Device,
}

impl Interpreted {
    fn of(name: &str, case: &Case, module: Module) -> Result<Interpreted, String> {
        Interpreted::run(name, case, module, &case::input(&case.ptx, &case.kernel)?)
    }

    pub(crate) fn run(
        name: &str,
        case: &Case,
        module: Module,
        input: &case::Input,
    ) -> Result<Interpreted, String> {
        let (prepared, expected) = case::interpret(case, input)?;
        let kernel = input.function.name.clone();
        let least = input.env.target;
        Ok(Interpreted {
            name: name.to_owned(),
            ptx: case.ptx.clone(),
            kernel,
            module,
            least,
            except: case.except.clone(),
            prepared,
            expected,
        })
    }

    /// The kernel's name in a module in which the case has this index.
    fn kernel_name(&self, index: usize) -> String {
        if self.module == Module::Any { format!("k{index}") } else { self.kernel.clone() }
    }

    /// The architecture with a target's number that has the kernel's instructions.
    pub(crate) fn architecture(&self, target: u32) -> Option<Sm> {
        let architecture = Sm { number: target as u16, feature: self.least.feature };
        self.least.runs_on(architecture).is_ok().then_some(architecture)
    }
}

/// The shortest program derived from the seed's program that fails on a target, and its failure.
pub(crate) fn shrink(tools: &Tools, seed: u64, target: u32, scratch: &Path) -> String {
    let assembler = Assembler { tools, folder: scratch.to_owned() };
    let failure = |case: &Case| {
        let interpreted = Interpreted::of("", case, Module::of_program(case)).ok()?;
        let cases = std::slice::from_ref(&interpreted);
        let bytes = assembler.assemble(target, cases)?;
        let kernel = cubin::kernel(&bytes, &interpreted.kernel_name(0), &interpreted.prepared.device).ok()?;
        let how = case::agrees(&interpreted.prepared, &interpreted.expected, &kernel).err()?;
        Some(format!("{how}\n{}", case::listing(&kernel)))
    };
    let whole = program::case_of_plain_loops(seed);
    let Some(how) = failure(&whole) else { return format!("program {seed} does not fail") };
    let kind = |how: &str| how.split([' ', ':']).next().unwrap_or_default().to_owned();
    let small = program::shrink(&whole, |case| failure(case).is_some_and(|other| kind(&other) == kind(&how)));
    format!("{}\n{}", small.ptx, failure(&small).unwrap_or_default())
}

/// Runs every case whose text or name contains `only` on ptxas's code for `targets`, and the kernels of `files`.
pub(crate) fn run(
    tools: &Tools,
    targets: &[u32],
    only: &str,
    files: &[Launched],
    scratch: &Path,
    time: Duration,
) -> Triangle {
    let start = Instant::now();
    let mut triangle = Triangle::default();
    let mut cases = Vec::new();
    let sweeps = sweep::all().into_iter().map(|case| Named {
        name: sweep::statement(&case),
        case,
        module: Module::Any,
    });
    let sound = (0..PROGRAMS).filter(|seed| !BROKEN_BY_PTXAS.contains(seed));
    let programs = sound.map(|seed| {
        let case = program::case_of_plain_loops(seed);
        Named { name: format!("program {seed}"), module: Module::of_program(&case), case }
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let described = description::folder(&folder).unwrap_or_else(|error| {
        triangle.findings.push(error);
        Vec::new()
    });
    let described = described.into_iter().flat_map(|Described { name, case }| {
        let linked = [".func", ".shared", ".const"].iter().any(|what| case.ptx.contains(what));
        let relocatable = linked.then(|| Named {
            name: format!("{name} (relocatable)"),
            case: case.clone(),
            module: Module::Relocatable,
        });
        std::iter::once(Named { name, case, module: Module::Own }).chain(relocatable)
    });
    let wanted = |named: &Named| named.case.ptx.contains(only) || named.name.contains(only);
    for Named { name, case, module } in sweeps.chain(programs).chain(described).filter(wanted) {
        match Interpreted::of(&name, &case, module) {
            Ok(interpreted) => cases.push(interpreted),
            Err(error) => triangle.findings.push(format!("{name}: {error}")),
        }
    }
    let verbose = !only.is_empty();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let same = |a: &Interpreted, b: &Interpreted| {
        let together = if a.module == Module::Any { a.least == b.least } else { a.ptx == b.ptx };
        a.module == b.module && together
    };
    let chunks: Vec<&[Interpreted]> = cases.chunk_by(same).flat_map(|chunk| chunk.chunks(MODULE)).collect();
    let modules = chunks.iter().flat_map(|&chunk| targets.iter().map(move |&t| (t, chunk)));
    let has = |&(target, chunk): &(u32, &[Interpreted])| {
        chunk[0].module != Module::Any || chunk[0].architecture(target).is_some()
    };
    let modules: Vec<Work<'_>> = modules.filter(has).map(|(t, chunk)| Work::Cases(t, chunk)).collect();
    let share = MUTATIONS.div_ceil(modules.len().max(1));
    let files = files.iter().filter(|file| targets.contains(&file.target) || targets.len() > 1);
    let modules: Vec<Work<'_>> = modules.into_iter().chain(files.map(Work::File)).collect();
    let results = std::sync::Mutex::new(&mut triangle);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let assembler = Assembler { tools, folder: scratch.join(format!("triangle-{worker}")) };
            let (modules, next, results) = (&modules, &next, &results);
            scope.spawn(move || {
                while let Some(work) = modules.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let mut part = Part::default();
                    let is_late = start.elapsed() >= time;
                    match work {
                        _ if is_late => {}
                        Work::Cases(target, chunk) => part.module(&assembler, *target, chunk, share, verbose),
                        Work::File(file) => part.file(&assembler, file, only, verbose),
                    }
                    let mut all = results.lock().expect("no worker panics");
                    all.left += usize::from(is_late);
                    let agree = match work {
                        Work::Cases(target, _) => all.agree.entry(*target),
                        Work::File(file) => all.launched.entry(file.target),
                    };
                    let agree = agree.or_default();
                    agree.good += part.agree.good;
                    agree.all += part.agree.all;
                    all.undescribed.append(&mut part.undescribed);
                    for (why, count) in std::mem::take(&mut part.unjudged) {
                        *all.unjudged.entry(why).or_default() += count;
                    }
                    all.hazards += part.hazards;
                    all.seen.good += part.seen.good;
                    all.seen.all += part.seen.all;
                    all.findings.append(&mut part.findings);
                }
            });
        }
    });
    triangle.findings.sort();
    triangle
}

/// The results of one module.
#[derive(Default)]
struct Part {
    agree: Count,
    hazards: usize,
    seen: Count,
    findings: Vec<String>,
    undescribed: BTreeSet<String>,
    unjudged: BTreeMap<String, usize>,
}

impl Part {
    /// Runs the described kernels of a file, as code for its own target.
    fn file(&mut self, assembler: &Assembler<'_>, file: &Launched, only: &str, verbose: bool) {
        let name = file.name();
        let read = corpus::read(file).and_then(|(ptx, cases)| Ok((case::parse(&ptx)?, ptx, cases)));
        let (module, ptx, cases) = match read {
            Ok(read) => read,
            Err(error) => {
                self.agree.add(false);
                return self.findings.push(format!("{name}: {error}"));
            }
        };
        self.undescribed = corpus::undescribed(file, &ptx, &cases);
        let mut interpreted = Vec::new();
        for Described { name, case } in cases {
            if case.except.contains(&file.target)
                || !corpus::has_kernel(&ptx, &case.kernel)
                || !(name.contains(only) || only.is_empty())
            {
                continue;
            }
            let case = Case { ptx: ptx.clone(), ..case };
            let run = case::kernel_of(&module, &case.kernel);
            match run.and_then(|input| Interpreted::run(&name, &case, Module::Own, &input)) {
                Ok(case) => interpreted.push(case),
                Err(error) => {
                    self.agree.add(false);
                    self.findings.push(format!("{name}: {error}"));
                }
            }
        }
        self.module(assembler, file.target, &interpreted, 0, verbose);
    }

    fn module(
        &mut self,
        assembler: &Assembler<'_>,
        target: u32,
        cases: &[Interpreted],
        mutations: usize,
        verbose: bool,
    ) {
        let Some(bytes) = assembler.assemble(target, cases) else {
            match cases {
                // Some targets lack some instructions.
                [] | [_] => {}
                [one, ..] if one.module != Module::Any => {}
                _ => {
                    let (first, second) = cases.split_at(cases.len() / 2);
                    self.module(assembler, target, first, mutations / 2, verbose);
                    self.module(assembler, target, second, mutations.div_ceil(2), verbose);
                }
            }
            return;
        };
        let mut left = mutations;
        for (i, case) in cases.iter().enumerate().filter(|(_, case)| !case.except.contains(&target)) {
            let name = &case.name;
            let kernel = match cubin::kernel(&bytes, &case.kernel_name(i), &case.prepared.device) {
                Ok(kernel) => kernel,
                // The emulator does not implement everything that a linker does.
                Err(error) if case.module == Module::Relocatable => {
                    *self.unjudged.entry(error.to_string()).or_default() += 1;
                    continue;
                }
                Err(error) => {
                    self.agree.add(false);
                    self.findings.push(format!("{name} sm_{target}: {error}"));
                    continue;
                }
            };
            let outcome = case::agrees(&case.prepared, &case.expected, &kernel);
            if let Err(how) = &outcome
                && how.ends_with(GROUPS_UNITED)
            {
                *self.unjudged.entry(GROUPS_UNITED.to_owned()).or_default() += 1;
                continue;
            }
            self.agree.add(outcome.is_ok());
            if let Err(how) = &outcome {
                self.hazards += usize::from(how.contains("too early"));
                let listing = if verbose { case::listing(&kernel) } else { String::new() };
                self.findings.push(format!("{name} sm_{target}: {how}\n{listing}"));
                continue;
            }
            let share = left / (cases.len() - i);
            let before = self.seen.all;
            self.damage(case, &kernel, share);
            left -= (self.seen.all - before).min(left);
        }
    }

    /// Damages a kernel that runs correctly, in at most `most` ways. Each must be detected.
    fn damage(&mut self, case: &Interpreted, kernel: &Kernel, most: usize) {
        let Some(code) =
            kernel.code.iter().map(|&word| sass::decode(kernel.sm, word)).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let mut hasher = DefaultHasher::new();
        case.name.hash(&mut hasher);
        let mut acted = Vec::new();
        let mut device = case.prepared.device.clone();
        let _ = machine::run_covering(kernel, &case.prepared.launch, &mut device, &mut acted);
        for mutation in mutations::choose(kernel.sm, &code, &acted, most, hasher.finish()) {
            let mut damaged = code.clone();
            mutation.apply(&mut damaged);
            let words =
                damaged.iter().map(|inst| sass::encode(kernel.sm, inst)).collect::<Result<Vec<_>, _>>();
            let Ok(code) = words else { continue };
            let damaged = Kernel { code, ..kernel.clone() };
            let mut device = case.prepared.device.clone();
            let run = machine::run(&damaged, &case.prepared.launch, &mut device);
            let seen = matches!(&run, Err(fault) if matches!(fault.kind, FaultKind::Hazard(_)));
            self.seen.add(seen);
            if !seen {
                self.findings.push(format!("{} sm_{}: {mutation:?} is not seen", case.name, kernel.sm.0));
            }
        }
    }
}

pub(crate) struct Assembler<'a> {
    pub(crate) tools: &'a Tools,
    pub(crate) folder: PathBuf,
}

impl Assembler<'_> {
    /// A cubin with the kernels of the cases, which share a module or need none. `None` if ptxas rejects one.
    ///
    /// `PTX_CUBINS` names a folder in which cubins are kept for later runs.
    pub(crate) fn assemble(&self, target: u32, cases: &[Interpreted]) -> Option<Vec<u8>> {
        let module = match cases {
            [Interpreted { module: Module::Own | Module::Relocatable, ptx, .. }, ..] => ptx.clone(),
            _ => together(target, cases)?,
        };
        let relocatable = cases.first().is_some_and(|case| case.module == Module::Relocatable);
        let mut hasher = DefaultHasher::new();
        (&module, relocatable).hash(&mut hasher);
        let kept = std::env::var_os("PTX_CUBINS")
            .map(|folder| PathBuf::from(folder).join(format!("{target}-{:016x}.cubin", hasher.finish())));
        if let Some(kept) = kept.as_ref().filter(|kept| kept.exists()) {
            return std::fs::read(kept).ok().filter(|bytes| !bytes.is_empty());
        }
        std::fs::create_dir_all(&self.folder).ok()?;
        let (input, output) = (self.folder.join("module.ptx"), self.folder.join("module.cubin"));
        std::fs::write(&input, &module).ok()?;
        let architecture = match cases {
            [case, ..] if case.module == Module::Any => case.architecture(target)?.to_string(),
            _ => tools::architecture(target, &module),
        };
        let mut arguments = tools::compile_arguments(&architecture, &input, &output);
        arguments.extend(relocatable.then(|| "-c".into()));
        let bytes = match tools::run(&self.tools.ptxas, arguments).ok {
            true => std::fs::read(&output).ok()?,
            false => Vec::new(),
        };
        if let Some(kept) = kept {
            let _ = std::fs::write(kept, &bytes);
        }
        Some(bytes).filter(|bytes| !bytes.is_empty())
    }
}

/// A module with the kernels of the cases, named `k0`, `k1` and so on.
fn together(target: u32, cases: &[Interpreted]) -> Option<String> {
    let architecture = cases.first()?.architecture(target)?;
    let mut module = format!(".version 9.0\n.target {architecture}\n.address_size 64\n");
    for (i, case) in cases.iter().enumerate() {
        let entry = case.ptx.find(".visible .entry")?;
        let body = case.ptx[entry..].replacen(&format!(".entry {}", case.kernel), &format!(".entry k{i}"), 1);
        let _ = writeln!(module, "{body}");
    }
    Some(module)
}
