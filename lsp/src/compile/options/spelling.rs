//! The spelling of options: names with dashes, attached values, numbers, and the words of option files.

use std::ffi::{OsStr, OsString};
use std::num::IntErrorKind;

use super::table::{OPTIONS, Row, Value};

/// Checks that a value has the type of its option.
pub(super) fn check(row: &Row, value: &str) -> Result<(), String> {
    match row.value {
        Value::Number => match number(value) {
            None => Err(format!("'{value}': expected a number")),
            Some(number) if i32::try_from(number).is_err() => {
                Err(format!("32-bit integer value ({value}) out of range"))
            }
            Some(_) => Ok(()),
        },
        Value::Truth if !matches!(value, "true" | "false") => {
            Err(format!("'{value}': expected true or false"))
        }
        Value::Word(words) if !words.contains(&value) => {
            Err(format!("Value '{value}' is not defined for option '{}'", row.long))
        }
        _ => Ok(()),
    }
}

/// The words of an option file. Double quotes keep blanks in a word, and a backslash escapes the next character.
pub(super) fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None);
    let (mut quoted, mut characters) = (false, text.chars());
    while let Some(c) = characters.next() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_with(String::new);
            }
            '\\' => word.get_or_insert_with(String::new).extend(characters.next()),
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_with(String::new).push(c),
        }
    }
    words.extend(word);
    words
}

/// Parses a number as C's `strtol` does. An empty text is zero, and a number that is too large becomes the largest one.
pub(super) fn number(text: &str) -> Option<i64> {
    let signed = text.trim_start();
    let (negative, digits) = match signed.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, signed.strip_prefix('+').unwrap_or(signed)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    if digits.is_empty() {
        return (text.is_empty()).then_some(0);
    }
    let number = digits.bytes().all(|b| b.is_ascii_alphanumeric()).then_some(digits)?;
    match i64::from_str_radix(number, radix) {
        Ok(number) => Some(if negative { -number } else { number }),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Some(if negative { i64::MIN } else { i64::MAX })
        }
        Err(_) => None,
    }
}

/// Splits `-name=value` into the name without its first dash and the value. `None` if the name is not UTF-8.
pub(super) fn split(argument: &OsStr) -> Option<(&str, Option<OsString>)> {
    let bytes = argument.as_encoded_bytes();
    let end = bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len());
    let name = str::from_utf8(bytes.get(1..end)?).ok()?;
    let value = if end < bytes.len() { Some(rest(argument, end + 1)?) } else { None };
    Some((name, value))
}

/// The rest of an argument from a byte offset. The byte before the offset is ASCII.
#[cfg(unix)]
fn rest(argument: &OsStr, start: usize) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt;
    Some(OsStr::from_bytes(argument.as_bytes().get(start..)?).to_owned())
}

#[cfg(not(unix))]
fn rest(argument: &OsStr, start: usize) -> Option<OsString> {
    Some(argument.to_str()?.get(start..)?.into())
}

/// The option with a name. The values in `-O3` and `-m64` are attached to the name; `-O` accepts its value in no other
/// place.
pub(super) fn find(name: &str, value: &mut Option<OsString>) -> Option<&'static Row> {
    let attached = OPTIONS.iter().find(|row| row.is_called(name));
    if name == "O" && value.is_none() {
        *value = Some("3".into());
    }
    if attached.is_some() {
        return attached;
    }
    let short = ["O", "m"].into_iter().find(|short| name.starts_with(short) && !name.starts_with("max"))?;
    let level = &name[1..];
    let whole = value.take().map_or(level.to_owned(), |rest| format!("{level}={}", rest.to_string_lossy()));
    *value = Some(whole.into());
    OPTIONS.iter().find(|row| row.short == short)
}
