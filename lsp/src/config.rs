//! The settings of the server, from the client's `initializationOptions` and configuration changes.

use std::path::{Path, PathBuf};

use ptx_analysis::check::{IGNORED_EXTERN, SEPARATE_COMPILATION, setting};
use ptx_analysis::diagnostic::{Levels, Severity};
use ptx_isa::Sm;
use serde_json::Value;

use crate::project::Project;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Check and compile for this target instead of the target of each file.
    pub target: Option<Sm>,
    pub levels: Levels,
    pub inlay_hints: bool,
    pub code_lens: bool,
    /// Show the number of references above functions and labels.
    pub reference_lens: bool,
    /// Show inlay hints with the number of live registers of each line.
    pub live_registers: bool,
    /// Compile all functions when a document is opened or saved, and after a pause in typing.
    pub compile: bool,
    /// A reference compiler, whose results are shown next to ours. Only a client can set it.
    pub reference: Option<PathBuf>,
    /// Look for PTX in documents of other languages.
    pub embedded: bool,
}

impl Default for Config {
    fn default() -> Self {
        // Open documents are usually single modules of a program.
        let mut levels = Levels::default();
        levels.set(&SEPARATE_COMPILATION, Severity::Information);
        levels.set(&IGNORED_EXTERN, Severity::Allow);
        Self {
            target: None,
            levels,
            inlay_hints: true,
            code_lens: true,
            reference_lens: false,
            live_registers: false,
            compile: true,
            embedded: true,
            reference: None,
        }
    }
}

impl Config {
    /// The settings of a project's settings file, for everything that the client does not set.
    pub fn of(project: &Project) -> Config {
        let mut config = Config { target: project.target, ..Config::default() };
        if project.compile_only {
            config.levels.set(&SEPARATE_COMPILATION, Severity::Allow);
        }
        for &(lint, level) in &project.levels {
            config.levels.set(lint, level);
        }
        config
    }

    /// These settings, overridden with those of a client:
    /// `{"target": "sm_90", "lints": {"W0501": "warning"}, "reference": {"path": "/usr/local/cuda/bin/ptxas"}, "inlayHints": true, "liveRegisters": false, "codeLens": true, "referenceLens": false, "compile": true, "embedded": true}`,
    /// directly or under `"ptx"`. Also returns messages about invalid settings, which are ignored.
    pub fn with(mut self, value: &Value) -> (Config, Vec<String>) {
        let mut errors = Vec::new();
        let settings = match value.get("ptx").unwrap_or(value) {
            Value::Object(settings) => settings,
            Value::Null => return (self, errors),
            _ => return (self, vec!["settings must be an object".to_owned()]),
        };
        for (name, value) in settings.iter().filter(|(_, value)| !value.is_null()) {
            if let Err(error) = self.set(name, value) {
                errors.push(error);
            }
        }
        for (lint, level) in settings.get("lints").and_then(Value::as_object).into_iter().flatten() {
            match setting(lint, level.as_str().unwrap_or_default()) {
                Ok((lint, level)) => self.levels.set(lint, level),
                Err(error) => errors.push(error),
            }
        }
        (self, errors)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let flag = || value.as_bool().ok_or_else(|| format!("`{name}` must be true or false"));
        match name {
            "target" => match value.as_str() {
                // A settings form of a client may send an empty text.
                Some("") => {}
                Some(target) => self.target = Some(Sm::known(target)?),
                None => return Err("`target` must be a string such as \"sm_90\"".to_owned()),
            },
            "inlayHints" => self.inlay_hints = flag()?,
            "liveRegisters" => self.live_registers = flag()?,
            "codeLens" => self.code_lens = flag()?,
            "referenceLens" => self.reference_lens = flag()?,
            "compile" => self.compile = flag()?,
            "embedded" => self.embedded = flag()?,
            "reference" => self.reference = reference(value)?,
            // The client reads this setting itself, once at its start.
            "embeddedOnly" => _ = flag()?,
            "lints" if value.is_object() => {}
            "lints" => return Err("`lints` must be an object that maps codes or names to levels".to_owned()),
            // The client reads this setting itself: it says which server to start.
            "server" => {}
            _ => {
                let all = "target, lints, inlayHints, liveRegisters, codeLens, referenceLens, compile, embedded, embeddedOnly, reference";
                return Err(format!("unknown setting `{name}`, expected one of {all}"));
            }
        }
        Ok(())
    }
}

/// Reads `{"path": "…"}`. An empty path means no compiler.
fn reference(value: &Value) -> Result<Option<PathBuf>, String> {
    match value.get("path").and_then(Value::as_str) {
        Some("") => Ok(None),
        // Some systems would search the workspace for a path that is not absolute.
        Some(path) if Path::new(path).is_absolute() => Ok(Some(path.into())),
        Some(_) => Err("`reference.path` must be an absolute path".to_owned()),
        None => Err("`reference` must be an object with a `path`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_is_there_and_keeps_defaults() {
        let read = |value| Config::default().with(&value);
        let (config, errors) = read(json!({"ptx": {"target": "sm_90", "codeLens": false, "compile": null}}));
        assert_eq!(config.target, Some(Sm::new(90)));
        assert!(!config.code_lens && config.compile && config.inlay_hints && errors.is_empty());
        assert_eq!(read(Value::Null), (Config::default(), Vec::new()));
        let reference = |path: &str| read(json!({"reference": {"path": path}}));
        assert_eq!(reference("/opt/ptxas").0.reference, Some("/opt/ptxas".into()));
        assert_eq!(reference(""), (Config::default(), Vec::new()));
        assert_eq!(reference("ptxas").1.len(), 1);
        assert_eq!(read(json!({"target": "", "server": {"path": "x"}})), (Config::default(), Vec::new()));
    }

    #[test]
    fn says_what_is_wrong() {
        let wrong = json!({"target": "sm_999", "compile": 3, "inlayHint": true, "codeLens": false,
            "lints": {"unused-lable": "allow", "W0501": "loud", "W0511": 1, "E0303": "allow"}});
        let (config, errors) = Config::default().with(&wrong);
        assert_eq!(config, Config { code_lens: false, ..Config::default() });
        let all = errors.join("\n");
        for part in [
            "unknown target `sm_999`",
            "sm_90a",
            "`compile` must be true or false",
            "unknown setting `inlayHint`",
            "inlayHints",
            "`unused-label`",
            "expected \"allow\"",
            "`E0303` is an error",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert_eq!(errors.len(), 7, "{all}");
        assert_eq!(Config::default().with(&json!(3)).1.len(), 1);
    }

    #[test]
    fn the_client_has_the_last_word() {
        let levels = [("W0511", "allow"), ("unused-label", "warning")];
        let levels = levels.map(|(lint, level)| setting(lint, level).unwrap()).to_vec();
        let project = Project { target: Some(Sm::new(80)), levels, ..Project::default() };
        let config = Config::of(&project).with(&json!({"lints": {"W0511": "info"}})).0;
        assert_eq!(config.target, Some(Sm::new(80)));
        let level = |code: &str| {
            let lint = ptx_analysis::lints().iter().find(|lint| lint.code == code).unwrap();
            config.levels.level(lint)
        };
        assert_eq!((level("W0511"), level("W0501")), (Severity::Information, Severity::Warning));
    }
}
