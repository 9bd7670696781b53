//! A cursor in the text. It records what was expected where parsing failed.

use crate::model::{BAD, RegFile};

/// Parsing failed. The cursor holds the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failed;

/// What was expected at a place of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// This text.
    Text(&'static str),
    /// One of these texts, except the empty one.
    Texts(&'static [&'static str]),
    /// Something that this text describes.
    Thing(&'static str),
    /// The text at this place is wrong for the given reason.
    Not(&'static str),
}

pub(crate) struct Cursor<'a> {
    text: &'a str,
    pub(crate) at: usize,
    /// Whether failures are recorded.
    notes: bool,
    /// The furthest place at which parsing failed, and what was expected there.
    furthest: usize,
    wanted: Vec<Wanted>,
}

/// The number of alternatives that a message lists.
const LISTED: usize = 64;

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0, notes: false, furthest: 0, wanted: Vec::new() }
    }

    /// A cursor that records failures.
    pub(crate) fn noting(text: &'a str) -> Cursor<'a> {
        Cursor { notes: true, ..Cursor::new(text) }
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    #[inline]
    pub(crate) fn starts_with(&self, text: &str) -> bool {
        begins_with(self.rest().as_bytes(), text.as_bytes())
    }

    /// Whether the next character is one of these.
    #[inline]
    pub(crate) fn at_any(&self, characters: &[u8]) -> bool {
        self.rest().as_bytes().first().is_some_and(|next| characters.contains(next))
    }

    #[inline]
    pub(crate) fn blanks(&mut self) {
        while self.at_any(b" ") {
            self.at += 1;
        }
    }

    #[inline]
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    #[inline]
    pub(crate) fn expect(&mut self, text: &'static str) -> Result<(), Failed> {
        if self.eat(text) { Ok(()) } else { Err(self.fail(Wanted::Text(text))) }
    }

    pub(crate) fn fail(&mut self, wanted: Wanted) -> Failed {
        self.fail_at(self.at, wanted)
    }

    /// Records a failure at another place than the current one.
    pub(crate) fn fail_at(&mut self, at: usize, wanted: Wanted) -> Failed {
        if !self.notes {
            return Failed;
        }
        if at > self.furthest {
            self.furthest = at;
            self.wanted.clear();
        }
        if at == self.furthest {
            self.wanted.push(wanted);
        }
        Failed
    }

    /// The furthest place, and the message about what was expected there.
    pub(crate) fn error(&self) -> (usize, String) {
        if let Some(Wanted::Not(reason)) = self.wanted.iter().find(|wanted| matches!(wanted, Wanted::Not(_)))
        {
            return (self.furthest, (*reason).to_owned());
        }
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: String| {
            if !names.contains(&name) {
                names.push(name);
            }
        };
        for wanted in &self.wanted {
            match wanted {
                Wanted::Text(text) => add(format!("'{text}'")),
                Wanted::Texts(texts) => {
                    texts
                        .iter()
                        .filter(|text| !text.is_empty() && **text != BAD)
                        .for_each(|text| add((*text).to_owned()));
                }
                Wanted::Thing(thing) => add((*thing).to_owned()),
                Wanted::Not(_) => {}
            }
        }
        let more = names.len() > LISTED;
        names.truncate(LISTED);
        let list = match names.split_last() {
            None => "the end of the line".to_owned(),
            Some((last, [])) => last.clone(),
            Some(_) if more => format!("{}, ...", names.join(", ")),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
        };
        (self.furthest, format!("expected {list} here"))
    }

    pub(crate) fn word(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.bytes().position(|c| !c.is_ascii() || !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Parses the index of a register. The last register of `width` bits has a special name.
    pub(crate) fn register(&mut self, file: RegFile, width: u32) -> Result<u64, Failed> {
        let start = self.at;
        let (prefix, zero, thing) = match file {
            RegFile::R => ("R", "Z", "a register"),
            RegFile::P => ("P", "T", "a predicate"),
            RegFile::UR => ("UR", "Z", "a uniform register"),
            RegFile::UP => ("UP", "T", "a uniform predicate"),
            RegFile::B => ("B", "", "a barrier register"),
        };
        let all_ones = (1u64 << width) - 1;
        if self.eat(prefix) {
            if !zero.is_empty() && self.eat(zero) {
                return Ok(all_ones);
            }
            let digits = self.word(|c| c.is_ascii_digit());
            let limit = all_ones + u64::from(zero.is_empty());
            match digits.parse::<u64>() {
                Ok(index) if index < limit => return Ok(index),
                Ok(_) => return Err(self.fail_at(start, Wanted::Not("register number out of range"))),
                Err(_) => {}
            }
        }
        self.at = start;
        Err(self.fail(Wanted::Thing(thing)))
    }

    /// A hexadecimal or decimal integer with an optional sign.
    pub(crate) fn integer(&mut self) -> Result<i64, Failed> {
        let start = self.at;
        let negative = self.eat("-");
        let parsed = if self.eat("0x") {
            u64::from_str_radix(self.word(|c| c.is_ascii_hexdigit()), 16).ok()
        } else {
            self.word(|c| c.is_ascii_digit()).parse().ok()
        };
        match parsed {
            Some(value) => Ok(if negative { (value as i64).wrapping_neg() } else { value as i64 }),
            None => {
                self.at = start;
                Err(self.fail(Wanted::Thing("an integer")))
            }
        }
    }

    /// The longest text of a choice that appears here and ends at a word boundary, as its index.
    pub(crate) fn choice(&mut self, texts: &[&str]) -> Option<u64> {
        let rest = self.rest().as_bytes();
        let ends =
            |len: usize| !rest.get(len).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_') || len == 0;
        let mut best: Option<(usize, usize)> = None;
        for (value, text) in texts.iter().enumerate() {
            let longer = best.is_none_or(|(_, len)| text.len() > len);
            if longer && begins_with(rest, text.as_bytes()) && *text != BAD && ends(text.len()) {
                best = Some((value, text.len()));
            }
        }
        let (value, len) = best?;
        self.at += len;
        Some(value as u64)
    }
}

/// As `starts_with`, but faster if the first bytes differ, as they usually do.
#[inline]
fn begins_with(text: &[u8], start: &[u8]) -> bool {
    match (start, text) {
        ([], _) => true,
        ([a], [b, ..]) => a == b,
        ([a0, a1, ..], [b0, b1, ..]) => a0 == b0 && a1 == b1 && text.starts_with(start),
        _ => false,
    }
}
