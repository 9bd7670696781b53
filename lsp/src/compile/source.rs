//! Joins the inputs to one text, as ptxas does: one module with one definition of each function and variable.
//!
//! The header of every input but the first is replaced with blanks, so that all lines and columns stay the same.

use std::path::Path;

use super::log::{Kind, Log};
use super::options::{Options, Source};
use crate::input::{self, Input};

/// The name that ptxas prints for PTX text from the command line.
const STRING: &str = "application ptx input";

pub(super) struct Text {
    pub(super) text: String,
    /// The name and the start offset of each input.
    parts: Vec<(String, usize)>,
}

impl Text {
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
pub(super) fn read(options: &Options, log: &mut Log) -> Option<Text> {
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
    if failed {
        return None;
    }
    joined(inputs).map_err(|message| log.fatal(message)).ok()
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

fn joined(inputs: Vec<Input>) -> Result<Text, String> {
    let mut inputs = inputs.into_iter();
    let Some(first) = inputs.next() else { return Ok(Text { text: String::new(), parts: Vec::new() }) };
    let mut text = first.text;
    let mut parts = vec![(first.name, 0)];
    let model = if inputs.len() > 0 { Header::of(&text).words(&text) } else { Vec::new() };
    for input in inputs {
        let own = Header::of(&input.text);
        for (word, value) in own.words(&input.text) {
            if model.iter().all(|(other, its)| *other != word || *its != value) {
                return Err(format!(
                    "Input file '{}' has '{word} {value}', '{}' does not: inputs with different headers are not supported yet",
                    input.name, parts[0].0
                ));
            }
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        parts.push((input.name, text.len()));
        let blank = |c: char| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) };
        text.extend(input.text[..own.end].chars().map(blank));
        text.push_str(&input.text[own.end..]);
    }
    Ok(Text { text, parts })
}

/// The directives at the start of a module.
struct Header {
    /// The ranges of the name and of the value of each directive.
    directives: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>,
    end: usize,
}

impl Header {
    fn of(text: &str) -> Self {
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

    fn words(&self, text: &str) -> Vec<(String, String)> {
        let compact = |value: &str| value.split_whitespace().collect::<String>();
        self.directives
            .iter()
            .map(|(word, value)| (text[word.clone()].to_owned(), compact(&text[value.clone()])))
            .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, text: &str) -> Input {
        Input { name: name.into(), text: text.into(), replaced: None }
    }

    #[test]
    fn later_headers_become_blank() {
        let head = "// a\n.version 8.0\n.target sm_80 , debug\n.address_size 64\n";
        let text = joined(vec![
            input("a", &format!("{head}x\ny")),
            input("b", "/* \u{e4} */ .version 8.0 .target sm_80,debug\n\n.address_size 64 z\nw\n"),
        ])
        .unwrap();
        let rest = text.text.strip_prefix(head).unwrap();
        assert_eq!(rest.split_whitespace().collect::<Vec<_>>(), ["x", "y", "z", "w"]);
        let place = |word: &str| text.place(text.text.rfind(word).unwrap());
        assert_eq!((place("y"), place("z"), place("w")), (("a", 6), ("b", 3), ("b", 4)));
        assert_eq!(text.first_name(), "a");
    }

    #[test]
    fn headers_that_differ_are_refused() {
        let (a, b) = (".version 8.0\n.target sm_80\n", ".version 8.1\n.target sm_80\n");
        assert!(joined(vec![input("a", a), input("b", b)]).is_err_and(|e| e.contains(".version 8.1")));
        assert!(joined(vec![input("a", a)]).is_ok_and(|text| text.text == a));
    }
}
