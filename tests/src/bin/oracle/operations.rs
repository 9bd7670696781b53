//! Lists operations and distances that our code has and ptxas's code never has:
//! `oracle --operations ALLOWED FILE-OR-FOLDER…`.
//!
//! Both compilers compile the sweep of the instruction table and the files, for a target of each generation. An
//! operation is a row of the `sass` table with its modifiers and the kinds of its operands. The hardware may not
//! execute an operation that only our code has, or may execute it differently than we assume. A distance is the number
//! of cycles between an instruction and another one that reads its result. A distance that is shorter than all of many
//! such distances in ptxas's code may be too short. Each of these needs a reason in the list of allowed ones, and each
//! entry of the list must occur.
//!
//! Options such as `-O0` are passed to both compilers. Code that ptxas emits without these options counts too, and the
//! list may then have entries that do not occur.

use crate::code;
use crate::tools::{self, Tools};
use conformance::sweep;
use ptx_isa::Sm as Target;
use sass::{Class, Control, Field, Inst, RegFile, RegUse, Role, Sm};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const TARGETS: [&str; 9] =
    ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a"];

/// The number of kernels in one module.
const MODULE: usize = 64;

/// A distance is judged if ptxas's code has at least this many of its kind.
const JUDGED: usize = 60;

/// The number of cycles after which every result with a fixed latency is ready.
const FAR: u32 = 40;

/// The instructions in one compiler's code for a target.
#[derive(Default)]
struct Seen {
    /// For each operation, the number of occurrences and the first one.
    operations: BTreeMap<String, (usize, String)>,
    /// For each pair of instructions and the operand read: the shortest distance, the number of distances, and the
    /// first place with the shortest one.
    distances: BTreeMap<String, (u32, usize, String)>,
}

/// The code of both compilers for a target.
#[derive(Default)]
struct Both {
    ours: Seen,
    theirs: Seen,
    modules: usize,
}

/// What is compiled for a target, by its index.
enum Work<'a> {
    Kernels(usize, Vec<&'a Kernel>),
    File(usize, &'a Path),
}

/// A kernel of the sweep, without the header of its module.
struct Kernel {
    statement: String,
    body: String,
}

struct Worker<'a> {
    tools: &'a Tools,
    /// Options for both compilers.
    options: &'a [&'a str],
    folder: PathBuf,
}

/// An operation or distance that is allowed for some targets. It must occur on at least one of them. In the pattern,
/// `*` stands for any text.
#[derive(Debug)]
struct Allowed {
    targets: BTreeSet<&'static str>,
    pattern: String,
}

pub(crate) fn run<'a>(mut arguments: impl Iterator<Item = &'a str>) -> Result<bool, String> {
    let tools = Tools::find()?;
    let list = arguments.next().ok_or("--operations ALLOWED [TARGET…] FILE-OR-FOLDER…")?;
    let allowed = std::fs::read_to_string(list).map_err(|error| format!("{list}: {error}"))?;
    let allowed = parse(&allowed).map_err(|error| format!("{list}: {error}"))?;
    let (options, arguments): (Vec<&str>, Vec<&str>) = arguments.partition(|word| word.starts_with('-'));
    let (targets, paths): (Vec<&str>, Vec<&str>) =
        arguments.into_iter().partition(|word| TARGETS.contains(word));
    let files = crate::files_in(paths.into_iter().map(PathBuf::from))?;
    let kernels: Vec<Kernel> = sweep::all().iter().filter_map(kernel).collect();
    let mut work = Vec::new();
    for (at, name) in TARGETS.iter().enumerate() {
        if !targets.is_empty() && !targets.contains(name) {
            continue;
        }
        let target = Target::known(name)?;
        let runs = |own: &Target| own.runs_on(target).is_ok();
        let kernels: Vec<&Kernel> =
            kernels.iter().filter(|kernel| sweep::runs_on(&kernel.statement, target)).collect();
        work.extend(kernels.chunks(MODULE).map(|chunk| Work::Kernels(at, chunk.to_vec())));
        let files = files.iter().filter(|file| own_target(file).as_ref().is_some_and(runs));
        work.extend(files.map(|file| Work::File(at, file)));
    }
    let scratch = crate::scratch_folder();
    let results: Vec<Mutex<Both>> = TARGETS.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let folder = scratch.join(worker.to_string());
            let worker = Worker { tools: &tools, options: &options, folder };
            let (work, next, results) = (&work, &next, &results);
            scope.spawn(move || {
                while let Some(work) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match work {
                        Work::Kernels(target, kernels) => {
                            worker.kernels(TARGETS[*target], kernels, &results[*target]);
                        }
                        Work::File(target, file) => worker.file(TARGETS[*target], file, &results[*target]),
                    }
                }
            });
        }
    });
    let _ = std::fs::remove_dir_all(&scratch);
    let results = results.into_iter().map(|both| both.into_inner().expect("no worker panics"));
    let is_whole = options.is_empty();
    Ok(report(&results.collect::<Vec<Both>>(), &allowed, is_whole))
}

impl Worker<'_> {
    /// Compiles kernels in one module, or in several if a compiler rejects one.
    fn kernels(&self, target: &str, kernels: &[&Kernel], both: &Mutex<Both>) {
        let mut module = format!(".version 9.0\n.target {target}\n.address_size 64\n");
        for (i, kernel) in kernels.iter().enumerate() {
            let _ = writeln!(module, "{}", kernel.body.replacen(".entry k", &format!(".entry k{i}"), 1));
        }
        let input = self.folder.join("module.ptx");
        let written =
            std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&input, module)).is_ok();
        let named = |function: &str| {
            let index: Option<usize> = function.strip_prefix('k').and_then(|i| i.parse().ok());
            let kernel = index.and_then(|index| kernels.get(index));
            kernel.map_or(function, |kernel| &kernel.statement).to_owned()
        };
        let compiled = written && self.compile(target, &input, named, both);
        if !compiled && kernels.len() > 1 {
            for part in kernels.chunks(kernels.len().div_ceil(8)) {
                self.kernels(target, part, both);
            }
        }
    }

    fn file(&self, target: &str, file: &Path, both: &Mutex<Both>) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if std::fs::create_dir_all(&self.folder).is_ok() {
            self.compile(target, file, |function| format!("{name} {function}"), both);
        }
    }

    /// Compiles a file with both compilers. If both succeed, records their code. Returns whether they did.
    fn compile(&self, target: &str, input: &Path, name: impl Fn(&str) -> String, both: &Mutex<Both>) -> bool {
        let output = self.folder.join("module.cubin");
        let code = |tool: &Path, options: &[&str]| {
            // The last level counts.
            let arguments = tools::compile_arguments(target, input, &output);
            let arguments = arguments.into_iter().chain(options.iter().map(|option| (*option).to_owned()));
            let bytes = tools::run(tool, arguments).ok.then(|| std::fs::read(&output).ok()).flatten()?;
            code::read(&bytes).ok()
        };
        let Some((sm, theirs)) = code(&self.tools.ptxas, self.options) else { return false };
        let Some((_, ours)) = code(&self.tools.ptxc, self.options) else { return false };
        let more = (!self.options.is_empty()).then(|| code(&self.tools.ptxas, &[])).flatten();
        let mut both = both.lock().expect("no worker panics");
        both.modules += 1;
        for (_, theirs) in [(sm, theirs)].into_iter().chain(more) {
            both.theirs.note(sm, &theirs, &name);
        }
        both.ours.note(sm, &ours, &name);
        true
    }
}

impl Seen {
    fn note(&mut self, sm: Sm, functions: &[code::Function], name: impl Fn(&str) -> String) {
        for function in functions {
            let name = name(&function.name);
            let code: Vec<&Inst> = function.code.iter().flatten().collect();
            for inst in &code {
                let example = || format!("{}  ({name})", sass::print(sm, inst, 0));
                self.operations.entry(operation(sm, inst)).or_insert_with(|| (0, example())).0 += 1;
            }
            self.distances(sm, &code, &name);
        }
    }

    /// Records distances in straight-line code, which ends at branches and branch targets.
    fn distances(&mut self, sm: Sm, code: &[&Inst], name: &str) {
        let address = |at: usize| at as u64 * sass::INST_BYTES;
        let targets: BTreeSet<u64> =
            code.iter().enumerate().filter_map(|(at, inst)| inst.target(address(at))).collect();
        let mut recent: Vec<(u32, &Inst)> = Vec::new();
        let mut cycle = 0;
        for (at, &inst) in code.iter().enumerate() {
            if targets.contains(&address(at)) {
                recent.clear();
            }
            for read in inst.reads(sm).filter(|read| read.file != RegFile::B) {
                let writes = |earlier: &Inst| earlier.writes(sm).any(|def| def.overlaps(&read));
                let Some((when, earlier)) = recent.iter().rev().find(|(_, earlier)| writes(earlier)) else {
                    continue;
                };
                if !earlier.is_variable(sm) {
                    let distance = cycle - when;
                    let seen = self.distances.entry(pair(sm, earlier, inst, &read));
                    let seen = seen.or_insert_with(|| (u32::MAX, 0, String::new()));
                    seen.1 += 1;
                    if distance < seen.0 {
                        let (first, second) = (sass::print(sm, earlier, 0), sass::print(sm, inst, 0));
                        (seen.0, seen.2) = (distance, format!("{first} | {second}  ({name})"));
                    }
                }
            }
            recent.push((cycle, inst));
            recent.retain(|(when, _)| cycle - when < FAR);
            cycle += u32::from(inst.control.stall).max(1);
        }
    }
}

/// The text of an instruction with the same register everywhere in a file and without constants, conditions and
/// predicates: it describes what the hardware must be able to do.
fn operation(sm: Sm, inst: &Inst) -> String {
    let mut general = *inst;
    general.control = Control::default();
    for spec in &inst.form().fields {
        let neutral = spec.from_raw(spec.neutral);
        let value = match spec.field {
            Field::Guard | Field::GuardNot | Field::Cmp | Field::Bool | Field::Mask => neutral,
            Field::Pd | Field::Pq | Field::Pp | Field::Pr | Field::Ps => neutral,
            Field::PpNot | Field::PrNot | Field::PsNot => neutral,
            Field::Ra | Field::Rb | Field::Rc | Field::Re | Field::Rd | Field::Rd2 => 0,
            Field::URd | Field::URa | Field::URb | Field::URc | Field::Ur => 0,
            Field::UrBase | Field::UrDesc if inst.get(spec.field) != Some(neutral) => 0,
            Field::Imm32 | Field::Imm2 | Field::Imm3 | Field::Lut | Field::Lut2 => 0,
            Field::CBank | Field::COffset | Field::Offset | Field::Target => 0,
            Field::Barrier | Field::Scoreboard => 0,
            _ => continue,
        };
        general.set(spec.field, value);
    }
    sass::print(sm, &general, 0)
}

/// A description of two dependent instructions.
fn pair(sm: Sm, first: &Inst, second: &Inst, read: &RegUse) -> String {
    // `HADD2.F32` is executed by another unit than other forms of the instruction.
    let unit = |inst: &Inst| if inst.class(sm) == Class::HalfToSingle { ".F32" } else { "" };
    let place = match read.role {
        Role::Guard => " as a guard",
        Role::C => " as the third operand",
        _ => "",
    };
    let name = |inst: &Inst| format!("{}{}", inst.form().name, unit(inst));
    format!("{} -> {} reads {:?}{place}", name(first), name(second), read.file)
}

/// The kernel of a case. `None` if its module has variables or functions.
fn kernel(case: &conformance::case::Case) -> Option<Kernel> {
    let (head, body) = case.ptx.split_at(case.ptx.find(".visible .entry k(")?);
    let is_plain = |line: &str| {
        let plain = [".version", ".target", ".address_size"];
        line.trim().is_empty() || plain.iter().any(|word| line.trim_start().starts_with(word))
    };
    let alone = head.lines().all(is_plain) && body.matches(".entry").count() == 1;
    alone.then(|| Kernel { statement: sweep::statement(case), body: body.to_owned() })
}

fn own_target(file: &Path) -> Option<Target> {
    crate::cubins::own_target(file).and_then(|name| Target::parse(&name))
}

/// Parses the list. Each reason is a comment. The lines below it give targets and what is allowed for them.
fn parse(text: &str) -> Result<Vec<Allowed>, String> {
    let mut allowed = Vec::new();
    let mut has_reason = false;
    for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line.trim())) {
        if line.is_empty() {
            has_reason = false;
        } else if line.starts_with('#') {
            has_reason = true;
        } else if !has_reason {
            return Err(format!("line {number} has no reason"));
        } else {
            let (names, pattern) = line.split_once(": ").ok_or(format!("line {number} has no targets"))?;
            let known = |name: &str| {
                let target = TARGETS.iter().find(|target| target.strip_prefix("sm_") == Some(name));
                target.copied().ok_or(format!("line {number}: unknown target {name}"))
            };
            let targets = match names {
                "all" => TARGETS.into_iter().collect(),
                _ => names.split_whitespace().map(known).collect::<Result<_, _>>()?,
            };
            allowed.push(Allowed { targets, pattern: pattern.to_owned() });
        }
    }
    Ok(allowed)
}

impl Allowed {
    fn allows(&self, target: &str, text: &str) -> bool {
        let mut rest = text;
        let mut parts = self.pattern.split('*');
        let starts = parts.next().is_some_and(|first| match rest.strip_prefix(first) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        });
        let last = parts.next_back();
        let follows = |part: &str| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        };
        self.targets.contains(target)
            && starts
            && parts.all(follows)
            && last.map_or(rest.is_empty(), |last| rest.ends_with(last))
    }
}

impl Both {
    /// What only our code has, and where.
    fn only_ours(&self) -> impl Iterator<Item = (&str, String)> {
        let operations = self.ours.operations.iter().filter_map(|(text, (count, example))| {
            let is_known = self.theirs.operations.contains_key(text);
            (!is_known).then(|| (text.as_str(), format!("{count} times, such as {example}")))
        });
        let distances = self.ours.distances.iter().filter_map(|(text, (least, count, example))| {
            let (theirs, judged, other) = self.theirs.distances.get(text)?;
            (theirs > least && *judged >= JUDGED).then(|| {
                let ours = format!("after {least} cycles, {count} pairs, such as {example}");
                (text.as_str(), format!("{ours}; ptxas {theirs}, {judged} pairs, such as {other}"))
            })
        });
        operations.chain(distances)
    }
}

/// Checks that the list contains exactly what only our code has.
fn report(results: &[Both], allowed: &[Allowed], is_whole: bool) -> bool {
    let mut failed = 0;
    let mut fail = |text: String| {
        failed += 1;
        println!("FAILED: {text}");
    };
    let mut used: BTreeSet<usize> = BTreeSet::new();
    for (target, both) in TARGETS.iter().zip(results).filter(|(_, both)| both.modules > 0) {
        println!(
            "{target:8} {} modules; operations of ours {}, of ptxas {}",
            both.modules,
            both.ours.operations.len(),
            both.theirs.operations.len()
        );
        for (text, how) in both.only_ours() {
            let allowing: Vec<usize> =
                (0..allowed.len()).filter(|&at| allowed[at].allows(target, text)).collect();
            if allowing.is_empty() {
                fail(format!("only ours for {target}: {text}   {how}"));
            }
            used.extend(allowing);
        }
    }
    let whole = is_whole && results.iter().all(|both| both.modules > 0);
    for (_, allowed) in allowed.iter().enumerate().filter(|(at, _)| whole && !used.contains(at)) {
        fail(format!("allowed, but not only in our code: {}", allowed.pattern));
    }
    failed == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_has_a_reason() {
        let list = "# Why.\n75 90a: TEX.* R0\n75: MOV R0, R0\n\n80: SEL";
        assert_eq!(parse(list).expect_err("no reason"), "line 5 has no reason");
        assert_eq!(parse("# Why.\n7: SEL").expect_err("no target"), "line 2: unknown target 7");
        let allowed = parse(list.rsplit_once("\n\n").expect("two parts").0).expect("a list");
        let allows = |target, text| allowed.iter().any(|allowed| allowed.allows(target, text));
        assert!(
            allows("sm_75", "TEX.LL R0") && allows("sm_90a", "TEX.B R0") && allows("sm_75", "MOV R0, R0")
        );
        assert!(
            !allows("sm_80", "TEX.LL R0")
                && !allows("sm_75", "TEX.LL R0, R1")
                && !allows("sm_90a", "MOV R0, R0")
        );
        assert!(!allows("sm_75", "MOV R0, R0, R0"));
        assert_eq!(parse("# Why.\nall: SEL").expect("a list")[0].targets.len(), TARGETS.len());
    }

    #[test]
    fn operations_have_no_names_and_constants() {
        let sm = Sm(90);
        let inst = sass::parse(sm, "@P1 IADD3 R5, P2, R6, -0x7, RZ", 0).expect("an instruction");
        assert_eq!(operation(sm, &inst), "IADD3 R0, R0, 0x0, R0");
        let inst = sass::parse(sm, "FFMA.FTZ R5, R6, -R7, R8", 0).expect("an instruction");
        assert_eq!(operation(sm, &inst), "FFMA.FTZ R0, R0, -R0, R0");
    }
}
