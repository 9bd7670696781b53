//! Reads lines from standard input and prints one line for each.

use super::{Failure, Out, TEXT_LIMIT, input, push_hex, push_text};
use crate::input::stdin;
use sass::Sm;
use std::io;

/// The content of a line.
enum Line<'a> {
    /// A blank line or a comment, which is printed unchanged.
    Passed(&'a str),
    Code {
        offset: u64,
        text: &'a str,
    },
    Wrong(String),
}

/// The output lines, and the errors of lines that could not be processed.
struct Answers {
    out: Out<io::StdoutLock<'static>>,
    wrong: Vec<String>,
    /// The number of lines so far.
    count: usize,
}

impl Answers {
    fn new() -> Answers {
        Answers { out: Out { text: String::new(), to: io::stdout().lock() }, wrong: Vec::new(), count: 0 }
    }

    /// Adds the line that `answer` appends. If `answer` returns an error, the line is empty.
    fn line(&mut self, answer: impl FnOnce(&mut String) -> Result<(), String>) -> Result<(), Failure> {
        self.count += 1;
        let start = self.out.text.len();
        if let Err(error) = answer(&mut self.out.text) {
            self.out.text.truncate(start);
            self.wrong.push(format!("line {}: {error}", self.count));
        }
        self.out.text.push('\n');
        super::written(self.out.pause())
    }

    fn end(mut self) -> Result<(), Failure> {
        super::written(self.out.flush())?;
        if self.wrong.is_empty() { Ok(()) } else { Err(self.wrong.join("\n").into()) }
    }
}

/// Disassembles the word of each line.
pub(crate) fn disassemble_words(sm: Sm) -> Result<(), Failure> {
    let text = text()?;
    let mut answers = Answers::new();
    for line in text.lines() {
        answers.line(|out| match read(line) {
            Line::Passed(line) => {
                out.push_str(line);
                Ok(())
            }
            Line::Wrong(error) => Err(error),
            Line::Code { offset, text } => {
                let word = text.trim().trim_start_matches("0x");
                let word = u128::from_str_radix(word, 16)
                    .map_err(|_| format!("'{word}' is not an instruction word"))?;
                push_text(out, sm, word, offset);
                Ok(())
            }
        })?;
    }
    answers.end()
}

/// Assembles each line. The encoding of a line may depend on other lines of the same generation.
pub(crate) fn assemble(arch: Option<Sm>) -> Result<(), Failure> {
    let text = text()?;
    let lines: Vec<Line<'_>> = text.lines().map(read).collect();
    let mut answers = Answers::new();
    let mut sm = arch;
    for lines in lines.chunk_by(|_, next| generation(next).is_none()) {
        sm = lines.first().and_then(generation).or(sm);
        assemble_for(sm, lines, &mut answers)?;
    }
    answers.end()
}

fn assemble_for(sm: Option<Sm>, lines: &[Line<'_>], answers: &mut Answers) -> Result<(), Failure> {
    let code = lines.iter().filter_map(|line| match line {
        Line::Code { offset, text } => Some((*offset, *text)),
        _ => None,
    });
    let mut made = sm.map(|sm| sass::assemble(sm, code).into_iter());
    for line in lines {
        answers.line(|out| match line {
            Line::Passed(line) => {
                out.push_str(line);
                Ok(())
            }
            Line::Wrong(error) => Err(error.clone()),
            Line::Code { text, .. } => {
                let (Some(sm), Some(made)) = (sm, made.as_mut().and_then(Iterator::next)) else {
                    return Err(
                        "unknown architecture: use --arch, or put a line `# sm_90 NAME` before the code"
                            .into(),
                    );
                };
                let word = as_is(text).map_or_else(
                    || {
                        let inst = made.map_err(|error| error.to_string())?;
                        sass::encode(sm, &inst).map_err(|error| error.to_string())
                    },
                    Ok,
                )?;
                push_words(out, word);
                Ok(())
            }
        })?;
    }
    Ok(())
}

/// The generation that a comment before a function names.
fn generation(line: &Line<'_>) -> Option<Sm> {
    let Line::Passed(line) = line else { return None };
    line.trim_start().strip_prefix('#')?.split_ascii_whitespace().next().and_then(Sm::parse)
}

fn text() -> Result<String, Failure> {
    let bytes = stdin()
        .and_then(|from| input(from, TEXT_LIMIT))
        .map_err(|error| format!("cannot read standard input: {error}"))?;
    Ok(String::from_utf8(bytes).map_err(|_| "standard input: not UTF-8 text".to_owned())?)
}

fn read(line: &str) -> Line<'_> {
    let content = line.trim_start();
    if content.is_empty() || content.starts_with('#') {
        return Line::Passed(line);
    }
    let (offset, text) = line.split_once('\t').unwrap_or(("0", line));
    match u64::from_str_radix(offset.trim_start_matches("0x"), 16) {
        Ok(offset) => Line::Code { offset, text },
        Err(_) => Line::Wrong(format!("'{offset}' is not an offset")),
    }
}

/// The word, if a line gives a word instead of an instruction.
fn as_is(text: &str) -> Option<u128> {
    u128::from_str_radix(text.trim().strip_prefix(".word 0x")?, 16).ok()
}

fn push_words(out: &mut String, word: u128) {
    out.push_str("0x");
    push_hex(out, word as u64, 16);
    out.push_str(" 0x");
    push_hex(out, (word >> 64) as u64, 16);
}
