//! Cases for a machine with a GPU: `oracle --pack FOLDER [TARGET]` writes what `tests/gpu/run` runs there.
//!
//! In the folder: `cases.json`; ptxas's and our cubin of every case; and the buffers before and after, as the
//! interpreter leaves them.

use crate::tools::{self, Tools};
use conformance::case::{self, Argument, Compare};
use conformance::description::{self, Described};
use conformance::sweep;
use std::fmt::Write as _;
use std::path::Path;

/// Writes the folder and says how many cases are in it.
///
/// # Errors
/// What could not be written.
pub(crate) fn pack(tools: &Tools, folder: &Path, target: u32) -> Result<usize, String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(said)?;
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let sweeps = sweep::all().into_iter().map(|case| Described { name: sweep::statement(&case), case });
    let mut entries = Vec::new();
    for Described { name, case } in description::folder(&kernels)?.into_iter().chain(sweeps) {
        if case.arguments.iter().any(|argument| {
            matches!(
                argument,
                Argument::Tensor(_) | Argument::TensorOf(..) | Argument::Texture(..) | Argument::Into(..)
            )
        }) {
            continue;
        }
        let Ok(input) = case::input(&case.ptx, &case.kernel) else { continue };
        let Ok((prepared, expected)) = case::interpret(&case, &input) else { continue };
        let number = entries.len();
        let path = |suffix: &str| folder.join(format!("{number}{suffix}"));
        std::fs::write(path(".ptx"), &case.ptx).map_err(said)?;
        let architecture = tools::architecture(target, &case.ptx);
        let arguments = tools::compile_arguments(&architecture, &path(".ptx"), &path(".ptxas.cubin"));
        let theirs = tools::run(&tools.ptxas, arguments).ok;
        let arguments = tools::compile_arguments(&architecture, &path(".ptx"), &path(".ptxc.cubin"));
        let ours = tools::run(&tools.ptxc, arguments).ok;
        if !theirs && !ours {
            continue;
        }
        let mut buffers = String::new();
        for (i, pointer) in prepared.pointers.iter().enumerate() {
            let contents = [&prepared.device, &expected].map(|device| device.global.buffer(pointer.address));
            for (bytes, when) in contents.into_iter().zip(["before", "after"]) {
                std::fs::write(path(&format!(".{i}.{when}")), bytes.unwrap_or_default()).map_err(said)?;
            }
            let separator = if i == 0 { "" } else { ", " };
            let _ = write!(
                buffers,
                "{separator}{{\"offset\": {}, {}}}",
                pointer.offset,
                comparison(pointer.compare)
            );
        }
        let parameters = prepared.launch.params.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        entries.push(format!(
            "{{\"number\": {number}, \"name\": {name:?}, \"kernel\": {:?}, \"grid\": {:?}, \"block\": {:?}, \"shared\": {}, \
             \"parameters\": \"{parameters}\", \"buffers\": [{buffers}], \"ptxas\": {theirs}, \"ptxc\": {ours}}}",
            input.function.name, case.grid, case.block, case.dynamic_shared
        ));
    }
    let text = format!("{{\"target\": {target}, \"cases\": [\n{}\n]}}\n", entries.join(",\n"));
    std::fs::write(folder.join("cases.json"), text).map_err(said)?;
    Ok(entries.len())
}

fn comparison(compare: Compare) -> String {
    let (ty, ulps, absolute) = match compare {
        Compare::Exact => ("bytes", 0, 0.0),
        Compare::Ignored => ("ignored", 0, 0.0),
        Compare::F16 { ulps } => ("f16", u64::from(ulps), 0.0),
        Compare::Bf16 { ulps } => ("bf16", u64::from(ulps), 0.0),
        Compare::F32 { ulps, absolute } => ("f32", u64::from(ulps), absolute),
        Compare::F64 { ulps } => ("f64", ulps, 0.0),
    };
    format!("\"type\": {ty:?}, \"ulps\": {ulps}, \"absolute\": {absolute:?}")
}
