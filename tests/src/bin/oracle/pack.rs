//! Prepares cases for a machine with a GPU: `oracle --pack FOLDER [TARGET]` writes the input of `tests/gpu/run`.
//!
//! The folder contains `cases.json` and `bytes`. The latter holds ptxas's and our cubins of every case, and the buffers
//! before and after the run of the interpreter. The cases refer to parts of it by offset and size.

use crate::corpus;
use crate::tools::{self, Tools};
use conformance::case::{self, Argument, Case, Compare, Prepared};
use conformance::description::{self, Described};
use conformance::{program, sweep};
use ptx_emu::Device;
use ptx_emu::clock::{self, Setting};
use ptx_emu::cubin;
use ptx_emu::tensormap::TensorMap;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is packed besides the cases of this package.
pub(crate) struct Wanted<'a> {
    pub(crate) target: u32,
    /// The number of random programs.
    pub(crate) programs: u64,
    /// Files whose kernels are described elsewhere. If there are any, they are packed instead of the cases of this
    /// package.
    pub(crate) files: &'a [PathBuf],
    /// The time limit for collecting cases.
    pub(crate) time: Duration,
}

/// The kinds of cases. For described cases, the estimate of the emulator's clock is recorded too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Described,
    Swept,
    Program,
}

impl Kind {
    /// The compilers and optimization levels.
    fn compilers(self) -> &'static [(&'static str, u8)] {
        match self {
            Kind::Described => &[("ptxas", 3), ("ptxc", 3), ("ptxc", 1), ("ptxc", 0)],
            Kind::Swept => &[("ptxc", 3), ("ptxc", 0)],
            Kind::Program => &[("ptxc", 3), ("ptxc", 1), ("ptxc", 0), ("ptxas", 3)],
        }
    }
}

/// The contents of the file `bytes`. Equal parts are written once.
#[derive(Default)]
struct Bytes {
    all: Vec<u8>,
    known: HashMap<Vec<u8>, usize>,
}

impl Bytes {
    /// Adds a part. Returns its offset and size.
    fn add(&mut self, part: &[u8]) -> [usize; 2] {
        if let Some(&at) = self.known.get(part) {
            return [at, part.len()];
        }
        let at = self.all.len();
        self.all.extend_from_slice(part);
        self.known.insert(part.to_vec(), at);
        [at, part.len()]
    }
}

/// Writes the folder. Returns the number of cases.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn pack(tools: &Tools, folder: &Path, wanted: &Wanted<'_>) -> Result<usize, String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(said)?;
    let cases = cases(wanted)?;
    let (next, bytes) = (AtomicUsize::new(0), Mutex::new(Bytes::default()));
    let (entries, start) = (Mutex::new(Vec::new()), Instant::now());
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let scratch = folder.join(format!("scratch-{worker}"));
            let packer = Packer { tools, scratch, target: wanted.target, bytes: &bytes };
            let (next, entries, cases) = (&next, &entries, &cases);
            scope.spawn(move || {
                let _ = std::fs::create_dir_all(&packer.scratch);
                while start.elapsed() < wanted.time {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((kind, described)) = cases.get(number) else { break };
                    if let Some(entry) = packer.entry(*kind, described) {
                        entries.lock().expect("no worker panics").push((number, entry));
                    }
                }
                let _ = std::fs::remove_dir_all(&packer.scratch);
            });
        }
    });
    let left = cases.len().saturating_sub(next.into_inner());
    if left > 0 {
        println!("no time was left for {left} cases");
    }
    let mut entries = entries.into_inner().map_err(|error| error.to_string())?;
    entries.sort_by_key(|(number, _)| *number);
    let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
    let count = entries.len();
    let text = json!({ "target": wanted.target, "cases": entries }).to_string();
    std::fs::write(folder.join("cases.json"), text).map_err(said)?;
    let bytes = bytes.into_inner().map_err(|error| error.to_string())?;
    std::fs::write(folder.join("bytes"), bytes.all).map_err(said)?;
    Ok(count)
}

/// Described kernels, random programs and the sweep.
fn cases(wanted: &Wanted<'_>) -> Result<Vec<(Kind, Described)>, String> {
    let is_own = wanted.files.is_empty();
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let own = if is_own { description::folder(&kernels)? } else { Vec::new() };
    let mut cases: Vec<(Kind, Described)> = own.into_iter().map(|case| (Kind::Described, case)).collect();
    for file in corpus::find(wanted.files)?.0 {
        let (ptx, described) = corpus::read(&file)?;
        let described = described.into_iter().filter(|d| corpus::has_kernel(&ptx, &d.case.kernel));
        cases.extend(described.map(|Described { name, case }| {
            (Kind::Described, Described { name, case: Case { ptx: ptx.clone(), ..case } })
        }));
    }
    let target = wanted.target;
    cases.retain(|(_, described)| !described.case.except.contains(&target));
    let programs = (0..wanted.programs)
        .map(|seed| Described { name: format!("program {seed}"), case: program::case(seed) });
    cases.extend(programs.map(|case| (Kind::Program, case)));
    if is_own {
        let sweeps = sweep::all().into_iter().map(|case| Described { name: sweep::statement(&case), case });
        cases.extend(sweeps.map(|case| (Kind::Swept, case)));
    }
    Ok(cases)
}

struct Packer<'a> {
    tools: &'a Tools,
    scratch: PathBuf,
    target: u32,
    bytes: &'a Mutex<Bytes>,
}

impl Packer<'_> {
    /// A case with everything that a GPU needs. `None` if it cannot run there, or if neither compiler compiles it.
    fn entry(&self, kind: Kind, Described { name, case }: &Described) -> Option<Value> {
        let needs_objects = |argument: &Argument| matches!(argument, Argument::Texture(..));
        if case.arguments.iter().any(needs_objects) || !case.bound.is_empty() {
            return None;
        }
        let input = case::input(&case.ptx, &case.kernel).ok()?;
        let (prepared, expected) = case::interpret(case, &input).ok()?;
        let codes = self.codes(kind, case, &input.function.name, &prepared);
        if codes.is_empty() {
            return None;
        }
        Some(json!({
            "name": name,
            "kernel": input.function.name,
            "grid": case.grid,
            "block": case.block,
            "shared": case.dynamic_shared,
            "together": case.together,
            "parameters": self.add(&prepared.launch.params),
            "layout": prepared.launch.places.iter().map(|(offset, _)| offset).collect::<Vec<_>>(),
            "buffers": self.buffers(&prepared, &expected),
            "pointers": prepared.pointers.iter().map(|pointer| json!({
                "offset": pointer.offset,
                "buffer": buffer_at(&prepared, pointer.address),
                "into": pointer.into,
            })).collect::<Vec<_>>(),
            "maps": prepared.maps.iter().map(|mapped| json!({
                "offset": mapped.offset,
                "by_value": mapped.by_value,
                "buffer": buffer_at(&prepared, mapped.map.address),
                "map": map(&mapped.map),
            })).collect::<Vec<_>>(),
            "codes": codes,
        }))
    }

    fn add(&self, part: &[u8]) -> [usize; 2] {
        self.bytes.lock().expect("no worker panics").add(part)
    }

    /// The data to compare: variables, then buffers.
    fn buffers(&self, prepared: &Prepared, expected: &Device) -> Vec<Value> {
        let contents = |device: &Device, address| self.add(device.global.buffer(address).unwrap_or_default());
        let entry = |&(address, compare): &(u64, Compare)| {
            let variable = prepared.device.variables.iter().find(|(_, place)| *place == address);
            let (before, after) = (contents(&prepared.device, address), contents(expected, address));
            // Variables that the kernel does not write may hold addresses, which are different on a GPU.
            let is_constant = variable.is_some() && before == after;
            let mut entry = comparison(if is_constant { Compare::Ignored } else { compare });
            entry["before"] = json!(before);
            entry["after"] = json!(after);
            entry["variable"] = json!(variable.map(|(name, _)| name));
            entry
        };
        prepared.buffers.iter().map(entry).collect()
    }

    /// The different cubins of the compilers.
    fn codes(&self, kind: Kind, case: &Case, kernel: &str, prepared: &Prepared) -> Vec<Value> {
        let input = self.scratch.join("case.ptx");
        if std::fs::write(&input, &case.ptx).is_err() {
            return Vec::new();
        }
        let (mut codes, mut known): (Vec<Value>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for &(compiler, level) in kind.compilers() {
            let output = self.scratch.join("case.cubin");
            let tool = if compiler == "ptxas" { &self.tools.ptxas } else { &self.tools.ptxc };
            let mut arguments =
                tools::compile_arguments(&tools::architecture(self.target, &case.ptx), &input, &output);
            arguments[1] = format!("-O{level}");
            if !tools::run(tool, arguments).ok {
                continue;
            }
            let Ok(cubin) = std::fs::read(&output) else { continue };
            if known.contains(&cubin) {
                continue;
            }
            let mut code = json!({ "compiler": format!("{compiler} -O{level}"), "cubin": self.add(&cubin) });
            if kind == Kind::Described && level == 3 {
                let kernel = cubin::kernel(&cubin, kernel, &prepared.device);
                let report = kernel.ok().and_then(|kernel| {
                    let mut device = prepared.device.clone();
                    clock::time(&kernel, &prepared.launch, &mut device, Setting::default()).ok()
                });
                code["cycles"] = json!(report.as_ref().map(|report| report.cycles));
                code["issued"] = json!(report.as_ref().map(|report| report.issued));
            }
            codes.push(code);
            known.push(cubin);
        }
        codes
    }
}

/// The index of a buffer among those that are compared.
fn buffer_at(prepared: &Prepared, address: u64) -> Option<usize> {
    prepared.buffers.iter().position(|&(buffer, _)| buffer == address)
}

fn map(map: &TensorMap) -> Value {
    let dimensions = |of: fn(&ptx_emu::tensormap::Dimension) -> u64| -> Vec<u64> {
        map.dimensions.iter().map(of).collect()
    };
    json!({
        "type": map.ty(),
        "swizzle": map.swizzle,
        "extents": dimensions(|d| d.extent),
        "strides": dimensions(|d| d.stride),
        "boxes": dimensions(|d| d.box_extent),
        "image": map.image.as_ref().map(|image| json!({ "corners": image.corners, "pixels": image.pixels })),
    })
}

fn comparison(compare: Compare) -> Value {
    let (ty, ulps, absolute) = match compare {
        Compare::Exact => ("bytes", 0, 0.0),
        Compare::Ignored => ("ignored", 0, 0.0),
        Compare::F16 { ulps } => ("f16", u64::from(ulps), 0.0),
        Compare::Bf16 { ulps } => ("bf16", u64::from(ulps), 0.0),
        Compare::F32 { ulps, absolute } => ("f32", u64::from(ulps), absolute),
        Compare::F64 { ulps } => ("f64", ulps, 0.0),
    };
    json!({ "type": ty, "ulps": ulps, "absolute": absolute })
}
