//! All comparisons for one file and one target.

use crate::code;
use crate::mutations::{self, Tally};
use crate::order;
use crate::tools::{self, Tools};
use ptx_backend::hazard;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// A file, and the number of a target for which it can be compiled.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) file: PathBuf,
    pub(crate) target: u32,
}

impl Pair {
    pub(crate) fn arch(&self) -> String {
        format!("sm_{}", self.target)
    }
}

/// A kernel that both compilers compile: our figures, then NVIDIA's.
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) registers: (u32, u32),
    pub(crate) instructions: (usize, usize),
    pub(crate) spills: (bool, bool),
}

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) accepted: bool,
    pub(crate) compiled: bool,
    pub(crate) kernels: Vec<Kernel>,
    /// The number of functions without findings and of all functions, in our code and in NVIDIA's.
    pub(crate) clean: (Counts, Counts),
    /// The results of the order checker for NVIDIA's code.
    pub(crate) order: order::Judged,
    pub(crate) stalls: (Tally, Tally),
    pub(crate) waits: (Tally, Tally),
    /// The reasons why the file is not compiled. This is a failure only for our own files.
    pub(crate) refusals: Vec<String>,
    /// The requirements that are not met.
    pub(crate) failures: Vec<String>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) clean: usize,
    pub(crate) all: usize,
}

/// The number of mutations of each kind per function.
const MUTATIONS: usize = 8;

/// The number of findings of each kind that are printed per file.
const SHOWN: usize = 3;

pub(crate) fn compare(tools: &Tools, pair: &Pair, scratch: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let arch = pair.arch();
    let (theirs, ours) = (scratch.join("vendor.cubin"), scratch.join("ours.cubin"));
    let vendor = tools::run(&tools.ptxas, tools::compile_arguments(&arch, &pair.file, &theirs));
    outcome.accepted = vendor.ok;
    check_diagnostics(tools, pair, &vendor, &mut outcome);
    if !vendor.ok {
        return outcome;
    }
    let mut missed = Vec::new();
    let functions = inspect(&theirs, &mut outcome.failures, "the vendor's code");
    let vendor_sizes = sizes(&functions);
    outcome.clean.1 = functions.counts;
    (outcome.stalls.1, outcome.waits.1) = damage(pair, &functions, &mut missed);
    outcome.order = order::judge(tools, &pair.file, &arch, scratch);

    let compiled = tools::run(&tools.ptxc, tools::compile_arguments(&arch, &pair.file, &ours));
    outcome.compiled = compiled.ok;
    if !compiled.ok {
        outcome.refusals = compiled.text.lines().filter(|l| l.contains("error")).map(str::to_owned).collect();
        if outcome.refusals.is_empty() {
            outcome.failures.push(format!("ptxc fails without a reason: {}", first_line(&compiled.text)));
        }
        let internal = outcome.refusals.iter().filter(|l| l.contains("the compiler failed in"));
        outcome.failures.extend(internal.cloned());
        outcome.failures.append(&mut missed);
        return outcome;
    }
    check_readers(tools, &ours, &mut outcome.failures);
    let functions = inspect(&ours, &mut outcome.failures, "our code");
    outcome.clean.0 = functions.counts;
    (outcome.stalls.0, outcome.waits.0) = damage(pair, &functions, &mut missed);
    check_listing(tools, &ours, &functions, &mut outcome.failures);
    let our_sizes = sizes(&functions);
    let their_kernels = tools::kernels(&vendor.text);
    let calls = |name: &str| functions.functions.iter().any(|f| f.name == name && f.calls());
    for kernel in tools::kernels(&compiled.text) {
        let Some(other) = their_kernels.iter().find(|k| k.name == kernel.name) else { continue };
        let size = |sizes: &BTreeMap<&str, usize>| sizes.get(kernel.name.as_str()).copied().unwrap_or(0);
        outcome.kernels.push(Kernel {
            registers: (kernel.registers, other.registers),
            instructions: (size(&our_sizes), size(&vendor_sizes)),
            // Functions save registers for their callers, which both compilers count as spills. ptxas saves none if it
            // sees all callers.
            spills: (kernel.spill_stores > 0 && !calls(&kernel.name), other.spill_stores > 0),
            name: kernel.name,
        });
    }
    outcome.failures.append(&mut missed);
    outcome
}

/// Checks that `ptx-check` finds an error exactly where NVIDIA's assembler does.
fn check_diagnostics(tools: &Tools, pair: &Pair, vendor: &tools::Said, outcome: &mut Outcome) {
    let arguments =
        ["--target", &pair.arch(), "--fail-on", "error", &pair.file.to_string_lossy()].map(str::to_owned);
    let checked = tools::run(&tools.ptx_check, arguments);
    // A message of ptxas without a place is about its options or about linking.
    let comparable = vendor.ok || vendor.text.contains("; error");
    if checked.ok == vendor.ok || !comparable {
        return;
    }
    let (who, said) = if checked.ok { ("ptxas", vendor) } else { ("ptx-check", &checked) };
    let reason = said.text.lines().find(|l| l.contains("error")).unwrap_or("no reason");
    outcome.failures.push(format!("only {who} refuses the file: {reason}"));
}

/// Checks that NVIDIA's tools read our cubin.
fn check_readers(tools: &Tools, cubin: &Path, failures: &mut Vec<String>) {
    let path = cubin.to_string_lossy();
    for (name, tool, option) in
        [("nvdisasm -c", &tools.nvdisasm, "-c"), ("cuobjdump -elf", &tools.cuobjdump, "-elf")]
    {
        let said = tools::run(tool, [option, &*path]);
        if !said.ok || said.text.lines().any(|line| line.starts_with("error") || line.contains(" error ")) {
            failures.push(format!("{name} does not read the cubin: {}", first_line(&said.text)));
        }
    }
}

struct Inspected {
    sm: sass::Sm,
    functions: Vec<code::Function>,
    counts: Counts,
}

/// Decodes a cubin and runs the hazard checker on its code.
fn inspect(cubin: &Path, failures: &mut Vec<String>, whose: &str) -> Inspected {
    let read = std::fs::read(cubin).map_err(|e| e.to_string()).and_then(|bytes| code::read(&bytes));
    let (sm, functions) = match read {
        Ok(read) => read,
        Err(error) => {
            failures.push(format!("{whose} cannot be read: {error}"));
            (sass::Sm(0), Vec::new())
        }
    };
    let mut counts = Counts::default();
    for function in &functions {
        counts.all += 1;
        let Some(code) = &function.code else {
            let at = function
                .words
                .iter()
                .position(|&word| sass::decode_tolerant(sm, word).is_none())
                .unwrap_or(0);
            failures.push(format!(
                "{whose}: {}: {:#06x}: {:#034x} does not decode",
                function.name,
                at * 16,
                function.words[at]
            ));
            continue;
        };
        let found = hazard::check(sm, code, &function.tables);
        counts.clean += usize::from(found.is_empty());
        for hazard in found.iter().take(SHOWN) {
            let text = |at: usize| sass::print(sm, &code[at], at as u64 * sass::INST_BYTES);
            let earlier = hazard.earlier.map_or(String::new(), text);
            failures.push(format!("{whose}: {}: {hazard}: {earlier} | {}", function.name, text(hazard.at)));
        }
    }
    Inspected { sm, functions, counts }
}

fn sizes(inspected: &Inspected) -> BTreeMap<&str, usize> {
    inspected.functions.iter().map(|f| (f.name.as_str(), f.instructions())).collect()
}

fn damage(pair: &Pair, inspected: &Inspected, missed: &mut Vec<String>) -> (Tally, Tally) {
    let (mut stalls, mut waits) = (Tally::default(), Tally::default());
    for function in &inspected.functions {
        let mut hasher = DefaultHasher::new();
        (pair.file.file_name(), pair.target, &function.name).hash(&mut hasher);
        let (s, w) = mutations::mutate(inspected.sm, function, MUTATIONS, hasher.finish(), missed);
        stalls.add(s);
        waits.add(w);
    }
    (stalls, waits)
}

/// Checks that our disassembler prints our code as NVIDIA's does.
fn check_listing(tools: &Tools, cubin: &Path, inspected: &Inspected, failures: &mut Vec<String>) {
    let said = tools::run(&tools.cuobjdump, ["-sass", &*cubin.to_string_lossy()]);
    let printed = code::printed(&said.text);
    for function in &inspected.functions {
        let (Some(lines), Some(code)) = (printed.get(&function.name), &function.code) else {
            failures.push(format!("cuobjdump -sass has no function {}", function.name));
            continue;
        };
        if lines.len() != code.len() {
            failures.push(format!(
                "{}: cuobjdump prints {} of {} words",
                function.name,
                lines.len(),
                code.len()
            ));
        }
        for (at, (inst, line)) in code.iter().zip(lines).enumerate() {
            let ours = sass::print(inspected.sm, inst, at as u64 * sass::INST_BYTES);
            if ours.trim() != line {
                failures.push(format!("{}: {:#06x}: '{ours}' is '{line}' there", function.name, at * 16));
                break;
            }
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no output")
}
