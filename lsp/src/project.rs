//! `ptx-check.toml`: what holds for all files below its folder, in the checker and in the server.
//!
//! ```toml
//! target = "sm_90"          # check for this target instead of each file's own
//! arch = "sm_90"            # refuse what cannot be assembled for this architecture
//! compile-only = true       # the files are parts of programs
//! fail-on = "warning"       # the least severity that fails a run of ptx-check
//!
//! [lints]
//! unused-register = "warning"
//! W0511 = "allow"
//! ```

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ptx_analysis::check::setting;
use ptx_analysis::diagnostic::{Lint, Severity};
use ptx_isa::Sm;
use serde::Deserialize;
use toml::Spanned;

/// The name of the file.
pub const NAME: &str = "ptx-check.toml";

/// What a project says of its files.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Project {
    pub target: Option<Sm>,
    pub arch: Option<Sm>,
    pub compile_only: bool,
    pub fail_on: Option<Severity>,
    /// In the order of the names.
    pub levels: Vec<(&'static Lint, Severity)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    target: Option<Spanned<String>>,
    arch: Option<Spanned<String>>,
    #[serde(default)]
    compile_only: bool,
    fail_on: Option<Spanned<String>>,
    #[serde(default)]
    lints: std::collections::BTreeMap<Spanned<String>, Spanned<String>>,
}

/// The file that holds for a folder: the nearest one, in it or above it.
pub fn find(folder: &Path) -> Option<PathBuf> {
    // A relative path has no parents above the working directory.
    let folder = std::path::absolute(folder).ok()?;
    folder.ancestors().map(|above| above.join(NAME)).find(|file| file.is_file())
}

impl Project {
    /// Reads a file; the error names it, and the line.
    pub fn read(path: &Path) -> Result<Project, String> {
        match fs::read_to_string(path) {
            Ok(text) => Project::parse(&text).map_err(|error| format!("{}:{error}", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(format!("{}: file does not exist", path.display()))
            }
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// The settings that hold for a folder; the defaults where there is no file.
    pub fn of(folder: &Path) -> Result<Project, String> {
        find(folder).map_or_else(|| Ok(Project::default()), |file| Project::read(&file))
    }

    fn parse(text: &str) -> Result<Project, String> {
        let at =
            |offset: usize, message: &str| format!("{}: {message}", text[..offset].matches('\n').count() + 1);
        let written: Written = toml::from_str(text)
            .map_err(|error| at(error.span().map_or(0, |span| span.start), error.message()))?;
        let start = |value: &Spanned<String>| value.span().start;
        let target = |value: Option<Spanned<String>>| {
            let read = |value: Spanned<String>| {
                Sm::known(value.get_ref()).map_err(|message| at(start(&value), &message))
            };
            value.map(read).transpose()
        };
        let level = |value: &Spanned<String>| {
            Severity::parse(value.get_ref())
                .ok_or_else(|| at(start(value), "expected \"allow\", \"info\", \"warning\" or \"error\""))
        };
        let mut levels = Vec::new();
        for (lint, value) in &written.lints {
            let set = setting(lint.get_ref(), value.get_ref());
            levels.push(set.map_err(|message| at(start(lint), &message))?);
        }
        Ok(Project {
            target: target(written.target)?,
            arch: target(written.arch)?,
            compile_only: written.compile_only,
            fail_on: written.fail_on.as_ref().map(level).transpose()?,
            levels,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_everything() {
        let text = "target = \"sm_90a\"\nfail-on = \"error\"\ncompile-only = true\n[lints]\nW0511 = \"allow\"\nunused-label = \"warning\"\n";
        let project = Project::parse(text).unwrap();
        assert_eq!(project.target, Sm::parse("sm_90a"));
        assert_eq!((project.fail_on, project.compile_only), (Some(Severity::Error), true));
        let expected = [("W0511", "allow"), ("unused-label", "warning")];
        assert_eq!(project.levels, expected.map(|(lint, level)| setting(lint, level).unwrap()));
        assert_eq!(Project::parse(""), Ok(Project::default()));
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let error = |text: &str| Project::parse(text).unwrap_err();
        assert_eq!(
            error("[lints]\nunused-lable = \"allow\""),
            "2: unknown lint `unused-lable`; did you mean `unused-label`?"
        );
        assert_eq!(
            error("\n[lints]\nW0511 = \"loud\""),
            "3: expected \"allow\", \"info\", \"warning\" or \"error\""
        );
        assert!(error("[lints]\nE0303 = \"allow\"").starts_with("2: `E0303` is an error"));
        for target in ["gfx90", "sm_999", "sm_80a", "90", ""] {
            let error = error(&format!("target = {target:?}"));
            assert!(error.starts_with("1: unknown target") && error.contains("sm_90a"), "{error}");
        }
        assert!(error("\narch = \"sm_999\"").starts_with("2: unknown target `sm_999`"));
        let unknown = error("colour = 1");
        assert!(
            unknown.starts_with("1: unknown field `colour`") && unknown.contains("`compile-only`"),
            "{unknown}"
        );
        assert!(error("target =").starts_with("1: "));
    }
}
