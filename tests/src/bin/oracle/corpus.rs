//! Launches of kernels whose text is not in this repository. `tests/oracle/corpus/NAME.cases` describes the kernels of
//! every `NAME.ptx` and `NAME.VARIANT.ptx` in the compared folders, and so does `tests/kernels/NAME.cases`. A line
//! `include OTHER` stands for the contents of `tests/kernels/OTHER.cases`.
//!
//! Compilers insert library code of their vendors into PTX, which must not be copied. The descriptions of launches are
//! our own.

use conformance::description::{self, Described};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The oldest target that ptxas still supports.
const LEAST_TARGET: u32 = 75;

/// A file with kernels, and the description of their launches.
pub(crate) struct Launched {
    pub(crate) file: PathBuf,
    pub(crate) target: u32,
    descriptions: Vec<PathBuf>,
}

impl Launched {
    /// The file's name without its extension.
    pub(crate) fn name(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The files among `files` that have a description, and the number of descriptions without a file.
///
/// # Errors
/// The folder with the descriptions cannot be read.
pub(crate) fn find(files: &[PathBuf]) -> Result<(Vec<Launched>, usize), String> {
    let (own, others) = (descriptions("kernels")?, descriptions("oracle/corpus")?);
    let describes = |file: &Path, description: &Path| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = description.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        name.strip_prefix(&stem).is_some_and(|rest| rest.starts_with('.'))
    };
    let absent = others.iter().filter(|description| !files.iter().any(|file| describes(file, description)));
    let absent = absent.count();
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let is_foreign = |file: &&PathBuf| file.canonicalize().is_ok_and(|file| !file.starts_with(&kernels));
    let launched = files.iter().filter(is_foreign).filter_map(|file| {
        let descriptions = own.iter().chain(&others).filter(|description| describes(file, description));
        let mut descriptions: Vec<PathBuf> = descriptions.cloned().collect();
        // `NAME.VARIANT.cases` takes precedence over `NAME.cases`.
        let length = |description: &PathBuf| description.file_stem().map_or(0, |stem| stem.len());
        let longest = descriptions.iter().map(length).max();
        descriptions.retain(|description| Some(length(description)) == longest);
        let target = if descriptions.is_empty() { None } else { target(file) };
        Some(Launched { file: file.clone(), target: target?, descriptions })
    });
    Ok((launched.collect(), absent))
}

/// The descriptions in a folder of this package, by name.
fn descriptions(folder: &str) -> Result<Vec<PathBuf>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cases"));
    files.sort();
    Ok(files)
}

/// The number of the target that a file names.
fn target(file: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    let name = line.trim_start().strip_prefix("sm_")?;
    let number: u32 = name.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some(number.max(LEAST_TARGET))
}

/// The text of a file, and the launches of its kernels without the text.
///
/// # Errors
/// A file cannot be read, or a description is wrong.
pub(crate) fn read(launched: &Launched) -> Result<(String, Vec<Described>), String> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let ptx = read(&launched.file)?;
    let mut cases = Vec::new();
    for description in &launched.descriptions {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let mut text = read(description)?;
        if let Some(included) = text.lines().find_map(|line| line.strip_prefix("include ")) {
            let line = format!("include {included}");
            text = text.replace(&line, &read(&own.join(included.trim()).with_extension("cases"))?);
        }
        let described = description::parse(&launched.name(), "", &text);
        cases.extend(described.map_err(|error| format!("{}: {error}", description.display()))?);
    }
    Ok((ptx, cases))
}

/// The kernels of a text that no case launches, each after the first word of the file's name.
pub(crate) fn undescribed(launched: &Launched, ptx: &str, cases: &[Described]) -> BTreeSet<String> {
    let name = launched.name();
    let stem = name.split('.').next().unwrap_or_default();
    let kernels =
        entries(ptx).filter(|kernel| cases.iter().all(|described| described.case.kernel != *kernel));
    kernels.map(|kernel| format!("{stem}: {kernel}")).collect()
}

pub(crate) fn has_kernel(ptx: &str, kernel: &str) -> bool {
    entries(ptx).any(|name| name == kernel)
}

/// The names after `.entry`.
fn entries(ptx: &str) -> impl Iterator<Item = &str> {
    let names = ptx.split(".entry").skip(1).map(str::trim_start);
    names.filter_map(|rest| rest.split(|c: char| c == '(' || c == '{' || c.is_whitespace()).next())
}
