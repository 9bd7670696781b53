//! Collects the options of a command line and of option files, in their order.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::super::log::Kind;
use super::spelling::{check, find, number, split, words};
use super::table::{Effect, Row, Value};
use super::{Options, Source};
use crate::input;

/// The largest nesting depth of option files.
const MOST_DEPTH: usize = 16;

/// The state of the parser.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) options: Options,
    /// The values by long name.
    pub(super) given: Vec<(&'static str, OsString)>,
    pub(super) flags: Vec<&'static str>,
    pub(super) files: Vec<Source>,
}

impl Reader {
    pub(super) fn read(
        &mut self,
        arguments: impl Iterator<Item = OsString>,
        depth: usize,
    ) -> Result<(), String> {
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            if !argument.as_encoded_bytes().starts_with(b"-") || argument == "-" {
                self.files.push(Source::File(argument.into()));
                continue;
            }
            let unknown = || {
                let name = argument.to_string_lossy();
                format!("Unknown option '{}'", name[1..].split('=').next().unwrap_or_default())
            };
            let (name, mut value) = split(&argument).ok_or_else(unknown)?;
            let row = find(name, &mut value).ok_or_else(unknown)?;
            if row.value == Value::Nothing {
                if value.is_some() {
                    return Err(format!("no argument expected after '-{name}'"));
                }
                self.flags.push(row.long);
                self.judge(row);
                continue;
            }
            let value = match value {
                Some(value) => value,
                None => arguments.next().ok_or_else(|| format!("argument expected after '-{name}'"))?,
            };
            self.take(row, value, depth)?;
        }
        Ok(())
    }

    /// Records an option and its value.
    fn take(&mut self, row: &'static Row, value: OsString, depth: usize) -> Result<(), String> {
        match row.long {
            "input-as-string" => {
                let text = value.into_string().map_err(|_| "the input is not UTF-8 text".to_owned())?;
                self.files.push(Source::Text(text));
                return Ok(());
            }
            "options-file" => {
                if depth == MOST_DEPTH {
                    return Err("options files include each other".to_owned());
                }
                for name in value.to_string_lossy().split(',') {
                    let read = input::read(Path::new(name), 1);
                    let read = read.map_err(|_| format!("Could not open options file '{name}'"))?;
                    self.read(words(&read.text).into_iter().map(OsString::from), depth + 1)?;
                }
                return Ok(());
            }
            _ => {}
        }
        check(row, &value.to_string_lossy())?;
        if row.value != Value::List {
            let before = self.given.iter().rposition(|(long, _)| *long == row.long);
            if let Some(before) = before.filter(|_| row.long != "knob")
                && self.given.remove(before).1 != value
            {
                let long = row.long;
                let remark = format!(
                    "incompatible redefinition for option '{long}', the last value of this option was used"
                );
                self.options.remarks.push((Kind::Warning, remark));
            }
        }
        if row.value != Value::Truth || value == "true" {
            self.judge(row);
        }
        self.given.push((row.long, value));
        Ok(())
    }

    /// Records the message about an option that is only partly supported.
    fn judge(&mut self, row: &Row) {
        if let Effect::Missing(what) = row.effect {
            let remark = format!("option '{}' is not supported yet: {what}", row.long);
            self.options.remarks.push((Kind::Info, remark));
        }
    }

    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    pub(super) fn value(&self, long: &str) -> Option<&OsStr> {
        self.given.iter().rfind(|(name, _)| *name == long).map(|(_, value)| value.as_os_str())
    }

    pub(super) fn text(&self, long: &str) -> Option<String> {
        self.value(long).map(|value| value.to_string_lossy().into_owned())
    }

    pub(super) fn number(&self, long: &str) -> Option<i64> {
        number(&self.text(long)?)
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.options.remarks.push((Kind::Warning, warning.into()));
    }
}
