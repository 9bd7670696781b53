//! `oracle --run FILE.ptx FILE.cases [--target NN] [--level N] [--cubin FILE] [--steps N] [--clock] [--out FOLDER]`:
//! runs launches of any file, without NVIDIA's tools.
//!
//! Each case runs in the interpreter, and in the emulator as our code for the target (by default the module's own) and
//! as the kernel of the same name in a given cubin. The resulting contents of memory are compared. With `--out`, they
//! are written to `CASE.EXECUTION.BUFFER`; buffers are numbered from 0, with the module's variables first. With
//! `--clock`, the cycles are printed, and the time that warps spend at each instruction.

use crate::clock::explain;
use conformance::case::{self, Case, Prepared};
use conformance::description::{self, Described};
use ptx_emu::Device;
use ptx_emu::clock::{self, Setting};
use ptx_emu::machine::Kernel;
use ptx_isa::Sm;
use std::path::{Path, PathBuf};

struct Arguments {
    ptx: PathBuf,
    cases: PathBuf,
    target: Option<u16>,
    level: u8,
    cubin: Option<PathBuf>,
    steps: Option<u64>,
    clock: bool,
    out: Option<PathBuf>,
}

const USAGE: &str =
    "--run FILE.ptx FILE.cases [--target NN] [--level N] [--cubin FILE] [--steps N] [--clock] [--out FOLDER]";

impl Arguments {
    fn parse<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Arguments> {
        let mut files = Vec::new();
        let (mut target, mut level, mut cubin, mut steps, mut out) = (None, 3, None, None, None);
        let mut clock = false;
        while let Some(word) = words.next() {
            match word {
                "--target" => target = Some(words.next()?.trim_start_matches("sm_").parse().ok()?),
                "--level" => level = words.next()?.parse().ok()?,
                "--cubin" => cubin = Some(words.next()?.into()),
                "--steps" => steps = Some(words.next()?.parse().ok()?),
                "--clock" => clock = true,
                "--out" => out = Some(words.next()?.into()),
                _ if word.starts_with('-') => return None,
                file => files.push(PathBuf::from(file)),
            }
        }
        let [ptx, cases] = <[PathBuf; 2]>::try_from(files).ok()?;
        Some(Arguments { ptx, cases, target, level, cubin, steps, clock, out })
    }
}

/// Runs the cases. Returns whether every execution of every case leaves the same memory as the interpreter.
pub(crate) fn run<'a>(words: impl Iterator<Item = &'a str>) -> Result<bool, String> {
    let arguments = Arguments::parse(words).ok_or(USAGE)?;
    let read = |path: &Path| -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let text = |path: &Path| -> Result<String, String> {
        String::from_utf8(read(path)?).map_err(|error| format!("{}: {error}", path.display()))
    };
    let stem = arguments.cases.file_stem().unwrap_or_default().to_string_lossy();
    let cases = description::parse(&stem, &text(&arguments.ptx)?, &text(&arguments.cases)?)
        .map_err(|error| format!("{}: {error}", arguments.cases.display()))?;
    let cubin = arguments.cubin.as_deref().map(read).transpose()?;
    let mut all_agree = true;
    for Described { name, mut case } in cases {
        case.steps = arguments.steps.or(case.steps);
        println!("{name}");
        match launch(&name, &case, &arguments, cubin.as_deref()) {
            Ok(agree) => all_agree &= agree,
            Err(error) => {
                println!("  {error}");
                all_agree = false;
            }
        }
    }
    Ok(all_agree)
}

fn launch(name: &str, case: &Case, arguments: &Arguments, cubin: Option<&[u8]>) -> Result<bool, String> {
    let input = case::input(&case.ptx, &case.kernel)?;
    let (prepared, expected) = case::interpret(case, &input)?;
    let leave = |execution: &str, device: &Device| match &arguments.out {
        Some(folder) => write(folder, name, execution, &prepared, device),
        None => Ok(()),
    };
    leave("interpreted", &expected)?;
    println!("  interpreted");
    let sm = arguments.target.map_or(input.env.target, Sm::new);
    let ours = case::compile(&input, sm, arguments.level)
        .map(|code| Kernel::compiled(&input.env, &code, sass::Sm(sm.number as u8), &prepared.device))
        .map_err(|error| error.to_string());
    let given = cubin.map(|bytes| {
        ptx_emu::cubin::kernel(bytes, &input.function.name, &prepared.device)
            .map_err(|error| error.to_string())
    });
    let mut agree = true;
    for (execution, kernel) in [("compiled", Some(ours)), ("cubin", given)] {
        let Some(kernel) = kernel else { continue };
        let run = kernel.as_ref().map_err(Clone::clone);
        let outcome = run.and_then(|kernel| case::execute(&prepared, kernel)).and_then(|device| {
            leave(execution, &device)?;
            case::same(&prepared, &expected, &device)
        });
        println!("  {execution}: {}", outcome.as_ref().err().map_or("agrees", |how| how.as_str()));
        agree &= outcome.is_ok();
        if let (Ok(kernel), true) = (kernel, arguments.clock) {
            let mut device = prepared.device.clone();
            let report = clock::time(&kernel, &prepared.launch, &mut device, Setting::default());
            println!("{}", report.map_or_else(|fault| fault.to_string(), |report| explain(&kernel, &report)));
        }
    }
    Ok(agree)
}

/// Writes the buffers that are compared.
fn write(
    folder: &Path,
    name: &str,
    execution: &str,
    prepared: &Prepared,
    device: &Device,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    for (i, (address, _)) in prepared.buffers.iter().enumerate() {
        let Some(bytes) = device.global.buffer(*address) else { continue };
        std::fs::write(folder.join(format!("{name}.{execution}.{i}")), bytes).map_err(failed)?;
    }
    Ok(())
}
