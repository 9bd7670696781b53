//! Variables of module scope, read from their text.
//!
//! One name with numbers for its value is plain, everything else is left to the tree: addresses, lists in lists, lists
//! of names. Tables of numbers are most of the text of some programs.

use ptx_isa::TypeKind;
use smallvec::smallvec;

use super::heading::Reader;
use crate::constant::{Value, literal_value};
use crate::declaration::{Declaration, Declarator, Head};
use crate::initializer::{InitialValue, Initializer, encode};

/// Methods give `None` when they give up.
impl Reader<'_, '_> {
    /// `.visible .global .align 4 .b32 table[3] = {1, 2, 3};`
    pub(super) fn variable(mut self) -> Option<Declaration> {
        if !self.cursor.text.is_ascii() {
            return None;
        }
        self.cursor.skip_trivia()?;
        // These have parts of their own.
        let head = self.head(|word| matches!(word, b".attribute" | b".ptr"))?;
        let (name, mut declarator) = self.declarator()?;
        declarator.name = Some(name);
        if self.cursor.byte() == b'=' {
            let start = self.cursor.pos;
            self.cursor.pos += 1;
            self.cursor.skip_trivia()?;
            let value = self.value(&head, &declarator)?;
            declarator.initializer =
                Some(Initializer::Numbers { range: self.cursor.range_from(start), value });
            self.cursor.skip_trivia()?;
        }
        let is_all = self.cursor.byte() == b';' && self.cursor.pos + 1 == self.cursor.text.len();
        is_all.then(|| Declaration { head, declarators: smallvec![declarator] })
    }

    /// `{1, 2, 3}` for an array, `7` for a scalar.
    fn value(&mut self, head: &Head, declarator: &Declarator) -> Option<InitialValue> {
        if head.lanes != 1
            || !matches!(
                head.ty.kind(),
                TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed | TypeKind::Float
            )
        {
            return None;
        }
        let mut value = InitialValue::default();
        let written = match *declarator.dimensions.as_slice() {
            [] => {
                self.element(head, &mut value.bytes)?;
                1
            }
            [count] => {
                let written = self.numbers(head, &mut value.bytes)?;
                // `[0]` is open like `[]`.
                match count.filter(|&count| count > 0) {
                    Some(count) if written > count => return None,
                    Some(count) => count,
                    None => written,
                }
            }
            _ => return None,
        };
        value.elements = written;
        Some(value)
    }

    /// The numbers in braces; gives how many.
    fn numbers(&mut self, head: &Head, bytes: &mut Vec<u8>) -> Option<u64> {
        self.cursor.eat(b'{')?;
        let mut written = 0;
        loop {
            self.cursor.skip_trivia()?;
            self.element(head, bytes)?;
            written += 1;
            self.cursor.skip_trivia()?;
            match self.cursor.byte() {
                b',' => self.cursor.pos += 1,
                b'}' => break,
                _ => return None,
            }
        }
        self.cursor.pos += 1;
        Some(written)
    }

    /// The number at the cursor.
    fn element(&mut self, head: &Head, bytes: &mut Vec<u8>) -> Option<()> {
        let value = match self.cursor.decimal() {
            Some(value) => Value::int(value),
            None => self.literal()?,
        };
        let encoded = encode(value, head.ty)?.to_le_bytes();
        bytes.extend_from_slice(&encoded[..head.ty.bytes() as usize]);
        Some(())
    }

    fn literal(&mut self) -> Option<Value> {
        let start = self.cursor.pos;
        if !self.cursor.byte().is_ascii_digit() {
            return None;
        }
        self.cursor.skip_word(start);
        // `1.5`, `1e-5`
        if matches!(self.cursor.byte(), b'.' | b'+' | b'-') {
            return None;
        }
        let text = &self.cursor.text[start..self.cursor.pos];
        let value = literal_value(text)?;
        // `1e5` is none, and `089` has a digit too many.
        let is_bits = matches!(text.as_bytes(), [b'0', b'f' | b'F' | b'd' | b'D', ..]);
        (is_bits != matches!(value, Value::Int { .. })).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use crate::db::Database;
    use crate::items::items;
    use crate::lower::heading::Headings;
    use crate::lower::{lower, walk_tree};
    use crate::signature::{declared_by_tree, item_decl};

    /// Whether the declaration is plain. What is plain gives what its tree gives, and nothing is wrong with it.
    fn is_plain(text: &str) -> bool {
        let db = Database::default();
        let file = db.add_file(format!(".version 9.0\n.target sm_90\n{text}"));
        let item = items(&db, file)[2];
        let is_plain = Headings::default().read_variable(item.text(&db)).is_some();
        assert_eq!(lower(&db, item), &walk_tree(&db, item), "{text}");
        assert_eq!(item_decl(&db, item), &declared_by_tree(&db, item), "{text}");
        is_plain
    }

    #[test]
    fn tables_of_numbers_are_plain() {
        for text in [
            ".global .align 8 .b8 table[4] = {0, 0x1F, 017,\n 255U};",
            "// a table\n.visible .const .align 4 .f32 f[2] = { 0f3F800000, 0F00000000 };",
            ".global .f64 d = 0d3FF0000000000000;",
            ".weak .global .b64 words[] = {1, /* two */ 2};",
            ".global .s16 open[0] = {1, 2};",
            ".global .b32 short[9] = {1, 2};",
            ".global .u8 large[2] = {256, 18446744073709551615};",
            ".global .b128 wide = 0xFFFFFFFFFFFFFFFF;",
            ".extern .shared .align 16 .b8 dynamic[];",
            ".global .v4 .f32 vectors[3];",
            ".global .texref texture;",
            ".shared .b32 wrong = 1;",
            ".extern .global .b32 wrong = 1;",
            ".global .b32 wrong[];",
        ] {
            assert!(is_plain(text), "{text}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_tree() {
        for text in [
            ".global .b32 a, b;",
            ".global .u64 pointer = table;",
            ".global .u64 pointers[1] = {generic(table)};",
            ".global .b32 negative = -1;",
            ".global .b32 sum[1] = {1 + 1};",
            ".global .f32 f = 1.5;",
            ".global .f64 f = 1e5;",
            ".global .b32 mistyped = 0f3F80000;",
            ".global .b32 list[2] = 1;",
            ".global .b32 scalar = {1};",
            ".global .b32 more[1] = {1, 2};",
            ".global .b32 nothing[1] = {};",
            ".global .b32 trailing[2] = {1, };",
            ".global .b8 two[2][2] = {{1, 2}, {3, 4}};",
            ".global .v2 .f32 vector = {1, 2};",
            ".global .f32 integer = 1;",
            ".global .b16 octal = 089;",
            ".global .f16 half = 0f3F800000;",
            ".global .b64 size = WARP_SZ;",
            ".const[2] .b32 bank;",
            ".global .attribute(.managed) .b32 managed;",
            ".global .b32 .align 4 late;",
            ".global .b32 x",
            ".global .b32 \u{e9};",
            ".global b;",
            ".b32 b;",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
