//! `.loc` in plain bodies, read from its text.

use memchr::memchr;

use super::plain::Body;
use crate::check::debug;
use ptx_syntax::is_word;

/// File, line and column.
type Position = [u64; 3];

impl<'db> Body<'_, 'db> {
    /// `.loc 1 20 5`, and whatever else is in its line. False where its tree has to tell what that is.
    pub(super) fn position(&mut self) -> Option<bool> {
        let position = self.numbers()?;
        let behind = self.pos;
        let caller = self.caller();
        if caller.is_none() {
            self.pos = behind;
        }
        let end = self.pos + memchr(b'\n', &self.text.as_bytes()[self.pos..])?;
        let rest = self.text[self.pos..end].trim_ascii();
        self.pos = end;
        self.skip_trivia()?;
        // It goes on in another line.
        if self.byte() == b',' {
            return None;
        }
        self.pos = end;
        let is_all = rest.is_empty() || rest.starts_with("//");
        let is_known = is_all && caller.is_none_or(|caller| self.is_inlined(caller));
        if is_known {
            self.walker.positions.pass(position);
        }
        Some(is_known)
    }

    fn numbers(&mut self) -> Option<Position> {
        let mut numbers = [0; 3];
        for number in &mut numbers {
            self.skip_blanks();
            *number = u64::from(self.small_number()?);
        }
        Some(numbers)
    }

    /// `, function_name LABEL, inlined_at 1 8 41`: the label of the function's name, and where it was inlined.
    fn caller(&mut self) -> Option<(&'db str, Position)> {
        self.clause("function_name")?;
        let label = self.word()?;
        self.clause("inlined_at")?;
        Some((label, self.numbers()?))
    }

    fn clause(&mut self, name: &str) -> Option<()> {
        self.skip_blanks();
        self.eat(b',').then_some(())?;
        self.skip_blanks();
        let is_named = self.word()? == name;
        self.skip_blanks();
        is_named.then_some(())
    }

    /// Whether the caller is known without the tree: a section has the label, and the body has named the position.
    fn is_inlined(&self, (label, position): (&str, Position)) -> bool {
        let walker = &self.walker;
        walker.positions.contains(position) && debug::section_labels(walker.db, walker.file).contains(label)
    }

    /// A decimal number of up to nine digits.
    pub(super) fn small_number(&mut self) -> Option<u32> {
        let start = self.pos;
        while self.byte().is_ascii_digit() {
            self.pos += 1;
        }
        let digits = &self.text[start..self.pos];
        let is_plain =
            digits.len() <= 9 && (digits == "0" || !digits.starts_with('0')) && !is_word(self.byte());
        if is_plain { digits.parse().ok() } else { None }
    }
}
