//! Sections of debug data that nothing is wrong with, read from their text.
//!
//! They are a fourth of what a compiler writes for a debugger: one number a line.

use ptx_isa::{Gate, is_reserved};
use rustc_hash::FxHashSet;
use text_size::TextRange;

use super::cursor::Cursor;
use crate::check::{Gates, debug};

/// Whether a section is plain, and nothing wrong with it.
pub(super) fn is_plain(text: &str, gates: &Gates) -> bool {
    let mut reader = Reader { cursor: Cursor::new(text), gates, labels: FxHashSet::default() };
    text.is_ascii() && reader.section().is_some()
}

/// Methods give `None` when they give up.
struct Reader<'t, 'g> {
    cursor: Cursor<'t>,
    gates: &'g Gates,
    labels: FxHashSet<&'t str>,
}

/// How large the values of a line may be. Larger ones wrap, but not in bytes and in pairs of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Byte,
    Pair,
    Word,
}

impl Reader<'_, '_> {
    /// `.section .debug_str { label: .b8 1, 2 .b64 label+4 }`
    fn section(&mut self) -> Option<()> {
        self.cursor.skip_trivia()?;
        (self.dot_word()? == ".section").then_some(())?;
        self.cursor.skip_trivia()?;
        // Other names may be words of the language.
        self.dot_word()?.starts_with(".debug_").then_some(())?;
        self.cursor.skip_trivia()?;
        self.cursor.eat(b'{')?;
        loop {
            self.cursor.skip_trivia()?;
            match self.cursor.byte() {
                b'.' => self.data()?,
                b'}' => return (self.cursor.pos + 1 == self.cursor.text.len()).then_some(()),
                _ => self.label()?,
            }
        }
    }

    fn dot_word(&mut self) -> Option<&str> {
        self.cursor.dot_word().map(|range| &self.cursor.text[range])
    }

    fn label(&mut self) -> Option<()> {
        let name = self.cursor.name()?;
        self.cursor.skip_trivia()?;
        self.cursor.eat(b':')?;
        self.passes(&debug::LABELS)?;
        self.labels.insert(&self.cursor.text[name]).then_some(())
    }

    /// `.b8 1, 2`
    fn data(&mut self) -> Option<()> {
        let width = match self.dot_word()? {
            ".b8" => Width::Byte,
            ".b16" => Width::Pair,
            ".b32" | ".b64" => Width::Word,
            _ => return None,
        };
        loop {
            self.cursor.skip_trivia()?;
            self.value(width)?;
            self.cursor.skip_trivia()?;
            if self.cursor.eat(b',').is_none() {
                return Some(());
            }
        }
    }

    fn value(&mut self, width: Width) -> Option<()> {
        if let Some(value) = self.cursor.decimal() {
            let is_small = match width {
                Width::Byte => value <= i64::from(u8::MAX),
                Width::Pair => value <= i64::from(u16::MAX),
                Width::Word => true,
            };
            return is_small.then_some(());
        }
        (width == Width::Word).then_some(())?;
        let is_label = self.cursor.byte() != b'.';
        self.symbol()?;
        match self.cursor.byte() {
            b'+' => {
                self.cursor.pos += 1;
                self.cursor.decimal()?;
                self.passes(&debug::OFFSETS)
            }
            b'-' if is_label => {
                self.cursor.pos += 1;
                self.cursor.name()?;
                self.passes(&debug::DIFFERENCES)
            }
            _ => Some(()),
        }
    }

    /// A label or a section.
    fn symbol(&mut self) -> Option<()> {
        match self.cursor.byte() {
            b'.' => {
                let word = self.dot_word()?;
                (!is_reserved(&word[1..])).then_some(())
            }
            _ => self.cursor.name().map(|_| ()),
        }
    }

    fn passes(&self, gate: &Gate) -> Option<()> {
        self.gates.check(gate, "", TextRange::default(), "").is_none().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::db::Database;
    use crate::items::items;
    use crate::lower::{lower, walk_tree};

    use super::*;

    /// Whether a section is plain. What is plain gives what its tree gives.
    fn is_plain_in(version: &str, text: &str) -> bool {
        let db = Database::default();
        let file = db.add_file(format!(".version {version}\n.target sm_90\n{text}"));
        let item = items(&db, file)[2];
        let walker = super::super::walker::Walker::new(&db, file);
        assert_eq!(lower(&db, item), &walk_tree(&db, item), "{text}");
        is_plain(item.text(&db), &walker.gates)
    }

    #[test]
    fn what_compilers_write_is_plain() {
        let text = "\n\t.section\t.debug_info\n{\n.b32 .debug_abbrev\n.b8 8 // address\n$L__tmp1:\n.b64 $L__tmp1\n\
                    .b64 a+4, a\n.b16 65535\n.b64 a-b\n b : .b32 18446744073709551615 }";
        assert!(!is_plain_in("8.0", text));
        assert!(is_plain_in("8.0", &text.replace("18446744073709551615", "4294967295")));
        assert!(is_plain_in("8.0", ".section .debug_loc { }"));
    }

    #[test]
    fn everything_else_is_left_to_the_tree() {
        for data in [
            ".b8 256",
            ".b8 a",
            ".b16 65536",
            ".b32",
            ".b32 1,",
            ".b32 1 2",
            ".b64 1.5",
            ".b64 0x1F",
            ".b64 -1",
            ".b64 a + 1",
            ".b64 a+b",
            ".b64 a-1",
            ".b64 WARP_SZ",
            ".b64 generic(a)",
            ".b64 .rn",
            ".b64 .a-b",
            ".b64 a-.b",
            ".b63 1",
            ".f32 1",
            "a: a:",
            "a",
            ".b64 a\n-b",
            ";",
            "",
        ] {
            let end = if data.is_empty() { "" } else { "}" };
            assert!(!is_plain_in("8.0", &format!(".section .debug_str {{ {data} {end}")), "{data}");
        }
        assert!(!is_plain_in("7.0", ".section .debug_str { .b64 a-b }"));
        assert!(!is_plain_in("6.5", ".section .debug_str { a: .b64 1 }"));
        assert!(!is_plain_in("8.0", ".section .b32 { }"));
        assert!(!is_plain_in("8.0", ".section .debug_str { .b8 1 // \u{e9}\n}"));
    }
}
