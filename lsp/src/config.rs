//! Settings, from the client's `initializationOptions` and configuration changes.

use ptx_analysis::check::{SEPARATE_COMPILATION, setting};
use ptx_analysis::diagnostic::{Levels, Severity};
use ptx_isa::Sm;
use serde_json::Value;

use crate::project::Project;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Check and compile for this target instead of each file's own.
    pub target: Option<Sm>,
    pub levels: Levels,
    pub inlay_hints: bool,
    pub code_lens: bool,
    /// Compile all functions when a document is opened or saved, and after a pause in typing.
    pub compile: bool,
}

impl Default for Config {
    fn default() -> Self {
        // Documents are usually parts of programs.
        let mut levels = Levels::default();
        levels.set(&SEPARATE_COMPILATION, Severity::Information);
        Self { target: None, levels, inlay_hints: true, code_lens: true, compile: true }
    }
}

impl Config {
    /// Reads `{"target": "sm_90", "lints": {"W0501": "warning"}, "inlayHints": true, "codeLens": true,
    /// "compile": true}`, alone or under `"ptx"`. What is missing or of the wrong type keeps its default.
    pub fn from_json(value: &Value) -> Config {
        Config::default().with(value)
    }

    /// What a project says, where the client says nothing else.
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

    /// The settings with those of [`Config::from_json`] that the client has.
    pub fn with(mut self, value: &Value) -> Config {
        let value = value.get("ptx").unwrap_or(value);
        let target = value.get("target").and_then(Value::as_str).and_then(Sm::parse);
        let config = &mut self;
        config.target = target.or(config.target);
        for (lint, level) in value.get("lints").and_then(Value::as_object).into_iter().flatten() {
            if let Some(Ok((lint, level))) = level.as_str().map(|level| setting(lint, level)) {
                config.levels.set(lint, level);
            }
        }
        let flag = |name: &str, default| value.get(name).and_then(Value::as_bool).unwrap_or(default);
        config.inlay_hints = flag("inlayHints", config.inlay_hints);
        config.code_lens = flag("codeLens", config.code_lens);
        config.compile = flag("compile", config.compile);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_is_there_and_keeps_defaults() {
        let config = Config::from_json(&json!({"ptx": {"target": "sm_90", "codeLens": false, "compile": 3}}));
        assert_eq!(config.target, Some(Sm::new(90)));
        assert!(!config.code_lens && config.compile && config.inlay_hints);
        assert_eq!(Config::from_json(&Value::Null), Config::default());
    }

    #[test]
    fn the_client_has_the_last_word() {
        let levels = [("W0511", "allow"), ("unused-label", "warning")];
        let levels = levels.map(|(lint, level)| setting(lint, level).unwrap()).to_vec();
        let project = Project { target: Some(Sm::new(80)), levels, ..Project::default() };
        let config = Config::of(&project).with(&json!({"lints": {"W0511": "info"}}));
        assert_eq!(config.target, Some(Sm::new(80)));
        let level = |code: &str| {
            let lint = ptx_analysis::lints().iter().find(|lint| lint.code == code).unwrap();
            config.levels.level(lint)
        };
        assert_eq!((level("W0511"), level("W0501")), (Severity::Information, Severity::Warning));
    }
}
