//! Settings, from the client's `initializationOptions` and configuration changes.

use ptx_analysis::diagnostic::{Levels, Severity};
use ptx_isa::Sm;
use serde_json::Value;

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
        levels.set("separate-compilation", Severity::Information);
        Self { target: None, levels, inlay_hints: true, code_lens: true, compile: true }
    }
}

impl Config {
    /// Reads `{"target": "sm_90", "lints": {"E0201": "warning"}, "inlayHints": true, "codeLens": true,
    /// "compile": true}`, alone or under `"ptx"`. What is missing or of the wrong type keeps its default.
    pub fn from_json(value: &Value) -> Config {
        let value = value.get("ptx").unwrap_or(value);
        let target = value.get("target").and_then(Value::as_str).and_then(Sm::parse);
        let mut config = Config { target, ..Config::default() };
        for (lint, level) in value.get("lints").and_then(Value::as_object).into_iter().flatten() {
            if let Some(level) = level.as_str().and_then(Severity::parse) {
                config.levels.set(lint, level);
            }
        }
        let flag = |name: &str, default| value.get(name).and_then(Value::as_bool).unwrap_or(default);
        config.inlay_hints = flag("inlayHints", config.inlay_hints);
        config.code_lens = flag("codeLens", config.code_lens);
        config.compile = flag("compile", config.compile);
        config
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
}
