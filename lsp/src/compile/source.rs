//! Reads the inputs, and finds the input and the line of a position in the text that they are joined to.

use std::ops::Range;
use std::path::Path;

use ptx_syntax::{SyntaxKind, tokens};

use super::log::{Kind, Log};
use super::options::{Options, Source};
use crate::input::{self, Input};

/// The name that ptxas prints for PTX text from the command line.
const STRING: &str = "application ptx input";

#[derive(Default)]
pub(super) struct Text {
    pub(super) text: String,
    /// The name and the start offset of each input.
    parts: Vec<(String, usize)>,
}

impl Text {
    /// The text of one input.
    pub(super) fn of(name: String, text: String) -> Self {
        Text { text, parts: vec![(name, 0)] }
    }

    /// Adds the text of a further input.
    pub(super) fn add(&mut self, name: String, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.parts.push((name, self.text.len()));
        self.text.push_str(text);
    }

    /// Whether the text consists of several inputs.
    pub(super) fn is_joined(&self) -> bool {
        self.parts.len() > 1
    }

    /// The name of the input that contains an offset, and the line in it.
    pub(super) fn place(&self, offset: usize) -> (&str, u32) {
        let at = self.parts.partition_point(|&(_, start)| start <= offset).saturating_sub(1);
        let Some((name, start)) = self.parts.get(at) else { return ("", 1) };
        let before = &self.text.as_bytes()[*start..offset.clamp(*start, self.text.len())];
        (name, 1 + memchr::memchr_iter(b'\n', before).count() as u32)
    }

    pub(super) fn first_name(&self) -> &str {
        self.parts.first().map_or("", |(name, _)| name)
    }
}

/// Reads all inputs. Errors go to the log.
pub(super) fn read(options: &Options, log: &mut Log) -> Option<Vec<Input>> {
    let mut inputs = Vec::new();
    let mut failed = false;
    for source in &options.sources {
        match source {
            Source::Text(text) => {
                inputs.push(Input { name: STRING.to_owned(), text: text.clone(), replaced: None });
            }
            Source::File(path) => match input::read(path, options.max_input_size) {
                Ok(input) => inputs.push(input),
                Err(error) => {
                    log.fatal(unreadable(path, &error));
                    failed = true;
                }
            },
        }
    }
    for input in &inputs {
        if let Some(at) = input.replaced {
            let line = 1 + memchr::memchr_iter(b'\n', &input.text.as_bytes()[..at]).count() as u32;
            log.say_at(&input.name, line, Kind::Fatal, "byte is not UTF-8 text");
            failed = true;
        }
    }
    (!failed).then_some(inputs)
}

/// Whether a function has this pragma. Without errors, it is not in a comment.
pub(super) fn has_pragma(text: &str, name: &str) -> bool {
    if !text.contains(name) {
        return false;
    }
    let (mut at, mut in_pragma) = (0, false);
    tokens(text).any(|token| {
        let word = &text[at..at + token.len as usize];
        at += word.len();
        match token.kind {
            SyntaxKind::DOT_WORD => in_pragma = word == ".pragma",
            SyntaxKind::SEMICOLON => in_pragma = false,
            SyntaxKind::STRING if in_pragma => {
                return word.trim_matches('"').split_whitespace().next() == Some(name);
            }
            _ => {}
        }
        false
    })
}

fn unreadable(input: &Path, error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let name = input.display();
    match error.kind() {
        _ if input.as_os_str() == "-" => format!("Standard input could not be read: {error}"),
        ErrorKind::NotFound => format!("Input file '{name}' could not be opened"),
        ErrorKind::PermissionDenied => format!("Input file '{name}' could not be opened: {error}"),
        _ => format!("Input file '{name}' could not be read: {error}"),
    }
}

/// The directives at the start of a module.
pub(super) struct Header {
    /// The ranges of the name and of the value of each directive.
    directives: Vec<(Range<usize>, Range<usize>)>,
    pub(super) end: usize,
}

impl Header {
    pub(super) fn of(text: &str) -> Self {
        let mut header = Header { directives: Vec::new(), end: 0 };
        let mut at = 0;
        loop {
            at = skip_blanks(text, at);
            let word = at..word_end(text, at);
            if ![".version", ".target", ".address_size"].contains(&&text[word.clone()]) {
                return header;
            }
            let start = skip_blanks(text, word.end);
            let mut end = word_end(text, start);
            // The value is a list.
            loop {
                let comma = skip_blanks(text, end);
                if !text[comma..].starts_with(',') {
                    break;
                }
                end = word_end(text, skip_blanks(text, comma + 1));
            }
            header.directives.push((word, start..end));
            (header.end, at) = (end, end.max(at + 1));
        }
    }

    /// The ranges of a directive's name and value.
    pub(super) fn directive(&self, text: &str, name: &str) -> Option<&(Range<usize>, Range<usize>)> {
        self.directives.iter().find(|(word, _)| &text[word.clone()] == name)
    }
}

fn word_end(text: &str, at: usize) -> usize {
    let ends = |c: char| c.is_whitespace() || c == ',' || c == '/';
    text[at..].find(ends).map_or(text.len(), |length| at + length)
}

/// The offset of the first character that is neither blank nor in a comment.
fn skip_blanks(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_start().len();
        let rest = &rest[blanks..];
        at += blanks;
        at += if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            return at;
        };
    }
}
