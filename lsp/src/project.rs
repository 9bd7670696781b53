//! `ptx-check.toml`: the settings of all files below its folder, for the checker and for the server.
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

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::input;
use ptx_analysis::check::setting;
use ptx_analysis::diagnostic::{Lint, Severity};
use ptx_isa::Sm;
use serde::Deserialize;
use toml::Spanned;
use tower_lsp::lsp_types::{
    CreateFile, DocumentChangeOperation, DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier,
    Position, Range, ResourceOp, TextDocumentEdit, TextEdit, Url, WorkspaceEdit,
};

/// The name of the file.
pub const NAME: &str = "ptx-check.toml";

/// The settings of a project.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Project {
    pub target: Option<Sm>,
    pub arch: Option<Sm>,
    pub compile_only: bool,
    pub fail_on: Option<Severity>,
    /// The levels, in the order of the lints' names.
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

/// The settings file of a folder: the nearest one, in the folder or above it.
pub fn find(folder: &Path) -> Option<PathBuf> {
    // A relative path has no parents above the working directory.
    let folder = std::path::absolute(folder).ok()?;
    folder.ancestors().map(|above| above.join(NAME)).find(|file| file.is_file())
}

impl Project {
    /// Reads a settings file. The error names the file and the line.
    pub fn read(path: &Path) -> Result<Project, String> {
        match input::settings(path) {
            Ok(text) => Project::parse(&text).map_err(|error| format!("{}:{error}", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(format!("{}: file does not exist", path.display()))
            }
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// The settings of a folder. The defaults if there is no settings file.
    pub fn of(folder: &Path) -> Result<Project, String> {
        find(folder).map_or_else(|| Ok(Project::default()), |file| Project::read(&file))
    }

    fn parse(text: &str) -> Result<Project, String> {
        let at =
            |offset: usize, message: &str| format!("{}: {message}", text[..offset].matches('\n').count() + 1);
        let written: Written = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            at(start, &reason(text, start, error.message()))
        })?;
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

/// Why a settings file cannot be read: what is wrong at an offset, with the message of the parser.
fn reason(text: &str, start: usize, message: &str) -> String {
    if text.parse::<toml::Table>().is_err() {
        return "invalid TOML; expected `name = value`, with strings in quotes".to_owned();
    }
    // The parser names the known fields.
    if message.starts_with("unknown field") {
        return message.to_owned();
    }
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let name = text[line..].split(['=', '\n']).next().unwrap_or_default().trim().trim_matches(['[', ']']);
    let expected = match name {
        "compile-only" => "true or false",
        "lints" => "a table of lints and levels",
        _ => "a string",
    };
    format!("`{name}` must be {expected}")
}

/// A settings file that the editor can change for the user.
#[derive(Clone, Debug)]
pub struct ProjectFile {
    path: PathBuf,
    /// The text; `None` if the file does not exist and the client would create it.
    text: Option<String>,
}

impl ProjectFile {
    /// The settings file of a folder. If there is none and the client `creates` files, a new file in the folder.
    pub fn of(folder: &Path, creates: bool) -> Option<ProjectFile> {
        match find(folder) {
            Some(path) => {
                let text = input::settings(&path).ok()?;
                Some(ProjectFile { path, text: Some(text) })
            }
            None => creates.then(|| ProjectFile { path: folder.join(NAME), text: None }),
        }
    }

    /// The edit that sets the level of a lint to `allow`. `None` if the file has a form that the edit does not handle.
    pub fn allowing(&self, lint: &'static Lint) -> Option<WorkspaceEdit> {
        let uri = Url::from_file_path(&self.path).ok()?;
        let text = self.text.as_deref().unwrap_or_default();
        let (place, new) = allowing(text, lint)?;
        let edit = TextEdit::new(Range::new(position(text, place.start), position(text, place.end)), new);
        if self.text.is_some() {
            return Some(WorkspaceEdit::new(HashMap::from([(uri, vec![edit])])));
        }
        let create = CreateFile { uri: uri.clone(), options: None, annotation_id: None };
        let document = OptionalVersionedTextDocumentIdentifier { uri, version: None };
        let edit = TextDocumentEdit { text_document: document, edits: vec![OneOf::Left(edit)] };
        let operations = vec![
            DocumentChangeOperation::Op(ResourceOp::Create(create)),
            DocumentChangeOperation::Edit(edit),
        ];
        let document_changes = Some(DocumentChanges::Operations(operations));
        Some(WorkspaceEdit { document_changes, ..Default::default() })
    }
}

/// The part of a settings file to replace, and the new text. The result is parsed again: it must set the level and have
/// no errors.
fn allowing(text: &str, lint: &'static Lint) -> Option<(std::ops::Range<usize>, String)> {
    let written: Written = toml::from_str(text).ok()?;
    let is_this = |name: &str| ptx_analysis::check::lint(name) == Some(lint);
    // The last level counts.
    let level = written.lints.iter().rfind(|(name, _)| is_this(name.get_ref()));
    let (place, new) = match level {
        Some((_, level)) => (level.span(), "\"allow\"".to_owned()),
        None => insertion(text, lint),
    };
    let mut changed = text.to_owned();
    changed.replace_range(place.clone(), &new);
    let project = Project::parse(&changed).ok()?;
    let last = project.levels.iter().rfind(|(other, _)| *other == lint)?;
    (last.1 == Severity::Allow).then_some((place, new))
}

/// A new line in the section of the lints.
fn insertion(text: &str, lint: &Lint) -> (std::ops::Range<usize>, String) {
    let line = format!("{} = \"allow\"\n", lint.name);
    let header = text.split_inclusive('\n').position(|line| line.trim() == "[lints]");
    let lines = |count| text.split_inclusive('\n').take(count).map(str::len).sum();
    match header {
        Some(header) if text[..lines(header + 1)].ends_with('\n') => {
            let at = lines(header + 1);
            (at..at, line)
        }
        _ => {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let section = if header.is_some() { "" } else { "[lints]\n" };
            (text.len()..text.len(), format!("{end}{section}{line}"))
        }
    }
}

/// An offset of a text as a line and a column in UTF-16.
fn position(text: &str, offset: usize) -> Position {
    let before = &text[..offset];
    let last = before.rsplit('\n').next().unwrap_or_default();
    Position::new(before.matches('\n').count() as u32, last.encode_utf16().count() as u32)
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
    fn a_lint_is_switched_off() {
        let lint = ptx_analysis::check::lint("W0507").unwrap();
        let changed = |text: &str| {
            let (place, new) = allowing(text, lint)?;
            let position = position(text, place.start);
            Some(format!("{}:{} {new:?}", position.line, position.character))
        };
        let line = "unassigned-read = \\\"allow\\\"\\n\"";
        let section = format!("[lints]\\n{line}");
        assert_eq!(changed(""), Some(format!("0:0 \"{section}")));
        assert_eq!(changed("compile-only = true"), Some(format!("0:19 \"\\n{section}")));
        assert_eq!(changed("[lints]"), Some(format!("0:7 \"\\n{line}")));
        assert_eq!(changed("\n[lints]\nW0511 = \"allow\"\n"), Some(format!("2:0 \"{line}")));
        // The lint has a level already, by name or by code.
        let level = "\"\\\"allow\\\"\"";
        assert_eq!(changed("[lints]\nunassigned-read = \"info\"\n"), Some(format!("1:18 {level}")));
        assert_eq!(changed("[lints]\nW0507=\"info\" # x\n"), Some(format!("1:6 {level}")));
        // The table has another syntax, or the file has errors.
        assert_eq!(changed("lints = {}\n"), None);
        assert_eq!(changed("x = 1\n"), None);
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
        let unknown = error("color = 1");
        assert!(
            unknown.starts_with("1: unknown field `color`") && unknown.contains("`compile-only`"),
            "{unknown}"
        );
        assert_eq!(error("target ="), "1: invalid TOML; expected `name = value`, with strings in quotes");
        assert_eq!(error("\ntarget = 90"), "2: `target` must be a string");
        assert_eq!(error("compile-only = \"yes\""), "1: `compile-only` must be true or false");
    }
}
