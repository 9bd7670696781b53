//! A place in a text that is read without tokens.
//!
//! Readers of plain text give up where something is unusual and leave it to the tree. So do these methods: they give `None`
//! for what a token or blanks may also be, and the cursor is anywhere then.

use ptx_syntax::ast::literal::WARP_SIZE;
use ptx_syntax::word_end;
use text_size::{TextRange, TextSize};

use super::shape::comment_len;

/// A place in a text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'t> {
    pub(crate) text: &'t str,
    pub(crate) pos: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, pos: 0 }
    }

    pub(crate) fn bytes(&self, range: TextRange) -> &'t [u8] {
        self.text[range].as_bytes()
    }

    /// The byte at the cursor; zero at the end.
    pub(crate) fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.pos).copied().unwrap_or(0)
    }

    pub(crate) fn eat(&mut self, byte: u8) -> Option<()> {
        let is_there = self.byte() == byte;
        self.pos += usize::from(is_there);
        is_there.then_some(())
    }

    #[inline]
    pub(crate) fn skip_trivia(&mut self) -> Option<()> {
        loop {
            match self.byte() {
                b' ' | b'\t' | b'\n' | b'\r' => self.pos += 1,
                b'/' => self.skip_comment()?,
                _ => return Some(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Option<()> {
        let comment = &self.text[self.pos..];
        let length = comment_len(comment)?;
        self.pos += length;
        comment[..length].is_ascii().then_some(())
    }

    /// The `.word` at the cursor.
    pub(crate) fn dot_word(&mut self) -> Option<TextRange> {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        if self.byte() != b'.' || !bytes.get(start + 1)?.is_ascii_alphabetic() {
            return None;
        }
        self.skip_word(start + 2);
        // `.L2::128B` is one word.
        (self.byte() != b':').then(|| self.range_from(start))
    }

    pub(crate) fn name(&mut self) -> Option<TextRange> {
        let start = self.pos;
        let first = self.byte();
        if !first.is_ascii_alphabetic() && !matches!(first, b'_' | b'$' | b'%') {
            return None;
        }
        self.skip_word(start + 1);
        // The marks begin a name, and are none; and one word is a number.
        let is_name = first.is_ascii_alphabetic() || self.pos > start + 1;
        (is_name && &self.text[start..self.pos] != WARP_SIZE).then(|| self.range_from(start))
    }

    /// A decimal number of up to nine digits, behind blanks.
    pub(crate) fn number(&mut self) -> Option<u32> {
        self.skip_trivia()?;
        let start = self.pos;
        self.skip_word(start);
        let digits = &self.text[start..self.pos];
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(digits.len(), 1..=9)
            && (digits == "0" || !digits.starts_with('0'))
            && self.byte() != b'.';
        if is_plain { digits.parse().ok() } else { None }
    }

    /// A number of a table, as nearly all are written; the cursor stays where it is none.
    pub(crate) fn decimal(&mut self) -> Option<i64> {
        /// Digits that fit into 63 bits.
        const MOST: usize = 18;
        let digits = &self.text.as_bytes()[self.pos..];
        let mut value = 0;
        let mut count = 0;
        while let Some(digit @ b'0'..=b'9') = digits.get(count)
            && count < MOST
        {
            value = 10 * value + i64::from(digit - b'0');
            count += 1;
        }
        let is_octal = count > 1 && digits[0] == b'0';
        let is_end = matches!(digits.get(count), Some(b',' | b'}' | b';' | b' ' | b'\t' | b'\n' | b'\r'));
        (count > 0 && is_end && !is_octal).then(|| {
            self.pos += count;
            value
        })
    }

    pub(crate) fn skip_word(&mut self, from: usize) {
        self.pos = word_end(self.text.as_bytes(), from);
    }

    pub(crate) fn range_from(&self, start: usize) -> TextRange {
        TextRange::new(TextSize::new(start as u32), TextSize::new(self.pos as u32))
    }
}
