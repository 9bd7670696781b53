//! Splits a file into top-level items in one scan, without tokens.
//!
//! An item is a header directive, a declaration up to its `;`, a function up to its closing brace, a section, or text
//! that belongs to no item. Blanks and comments belong to the following item. The ranges of the items cover the text in
//! order, without gaps.
//!
//! The splitter decides only where items end; the item parser makes no assumptions about its text. If braces are
//! unbalanced, the item ends at the next line that can only start a function or a module-level declaration.

use memchr::{memchr2, memchr3};
use text_size::{TextRange, TextSize};

use crate::scan::{self, Next};

/// The kind of an item, according to its first words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ItemKind {
    Version,
    Target,
    AddressSize,
    /// A declaration in any state space, or without one.
    Variable,
    Entry,
    /// A device function.
    Func,
    File,
    Loc,
    Section,
    Pragma,
    Alias,
    /// `@@DWARF …`
    Dwarf,
    /// Text that starts no item.
    Stray,
    /// Blanks and comments at the end of the file.
    Trivia,
}

impl ItemKind {
    /// Whether the item is a kernel or a device function, declared or defined.
    pub const fn is_function(self) -> bool {
        matches!(self, Self::Entry | Self::Func)
    }
}

/// A top-level item of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RawItem {
    /// The range of the item, including the blanks and comments before it.
    pub range: TextRange,
    pub kind: ItemKind,
    /// The range of its name in the file.
    pub name: Option<TextRange>,
    /// Whether the item ends with its closing brace. If so, the text before this place and the text after it are split
    /// independently.
    pub is_closed: bool,
}

/// Splits `text` into items. A text of 4 GiB or more exceeds the range of positions and yields none.
pub fn split(text: &str) -> Vec<RawItem> {
    split_again(text, &[], 0, 0).items
}

/// The items after a change of the text.
#[derive(Debug)]
pub struct Again {
    /// How many items at the start are unchanged.
    pub kept_before: usize,
    /// The new items after these.
    pub items: Vec<RawItem>,
    /// How many old items follow the new ones, unchanged except for their positions.
    pub kept_after: usize,
}

/// Splits `text` into items again after a change. The items before the change were `old`. The change replaced all bytes
/// except the first `same_before` and the last `same_after`.
pub fn split_again(text: &str, old: &[RawItem], same_before: usize, same_after: usize) -> Again {
    let mut again = Again { kept_before: 0, items: Vec::new(), kept_after: 0 };
    if u32::try_from(text.len()).is_err() {
        return again;
    }
    let end_of = |item: &RawItem| usize::from(item.range.end());
    let unchanged = old.partition_point(|item| end_of(item) <= same_before);
    again.kept_before = old[..unchanged].iter().rposition(|item| item.is_closed).map_or(0, |last| last + 1);
    let old_length = old.last().map_or(0, end_of);
    let mut splitter = Splitter::new(text);
    splitter.pos = old[..again.kept_before].last().map_or(0, end_of);
    while splitter.pos < text.len() {
        let start = splitter.pos;
        let (kind, name) = splitter.item();
        // `item` always consumes something. If it did not because of a bug, this prevents an endless loop.
        if splitter.pos == start {
            splitter.pos = text.len();
        }
        let is_closed = std::mem::take(&mut splitter.is_closed) && splitter.unclosed_to <= splitter.pos;
        again.items.push(RawItem { range: range(start, splitter.pos), kind, name, is_closed });
        let left = text.len() - splitter.pos;
        if is_closed && left <= same_after {
            let after = old.partition_point(|item| end_of(item) < old_length - left);
            if old.get(after).is_some_and(|item| item.is_closed && end_of(item) == old_length - left) {
                again.kept_after = old.len() - (after + 1);
                break;
            }
        }
    }
    again
}

/// The line break before `pos`, if there are only blanks between them.
fn line_break_before(bytes: &[u8], pos: usize) -> Option<usize> {
    let before = bytes[..pos].iter().rposition(|&byte| byte == b'\n' || !scan::is_blank(byte))?;
    (bytes[before] == b'\n').then_some(before)
}

fn range(start: usize, end: usize) -> TextRange {
    TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32))
}

/// Words that cannot occur inside a function. At the start of a line, they end the current item.
fn is_hard_start(word: &[u8]) -> bool {
    matches!(
        word,
        b".visible"
            | b".entry"
            | b".func"
            | b".extern"
            | b".weak"
            | b".version"
            | b".target"
            | b".address_size"
    )
}

/// Words that start a new item if the current item already has its name and no brace is open.
fn is_soft_start(word: &[u8]) -> bool {
    is_hard_start(word)
        || is_space(word)
        || matches!(word, b".common" | b".file" | b".loc" | b".section" | b".alias" | b".pragma")
}

/// Words that start a new item after stray text, which may be the rest of a function body.
fn is_start_after_stray(word: &[u8]) -> bool {
    is_hard_start(word)
        || matches!(word, b".common" | b".global" | b".const" | b".file" | b".section" | b".alias")
}

/// State spaces whose declarations begin most function bodies. After a header without `{`, a line with one of them
/// belongs to the body.
pub(crate) fn starts_body(word: &[u8]) -> bool {
    matches!(word, b".reg" | b".local" | b".shared" | b".param")
}

fn is_linkage(word: &[u8]) -> bool {
    matches!(word, b".visible" | b".extern" | b".weak")
}

fn is_space(word: &[u8]) -> bool {
    matches!(
        word,
        b".global"
            | b".const"
            | b".shared"
            | b".local"
            | b".param"
            | b".reg"
            | b".sreg"
            | b".tex"
            | b".surf"
            | b".sampler"
    )
}

/// Editors and shells of Windows write it at the start of a file in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

struct Splitter<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// The next `;`, `{` or `}`.
    next_end: Next,
    /// The next brace.
    next_mark: Next,
    /// The next line that may begin an item, or that is a preprocessor line.
    next_start: Next,
    /// The next quote or slash, which may begin a string or comment that contains braces.
    next_hidden: Next,
    /// Up to this position, no `}` closes a body whose `{` is missing.
    unclosed_to: usize,
    /// The item ends with its closing brace.
    is_closed: bool,
}

type Item = (ItemKind, Option<TextRange>);

impl<'a> Splitter<'a> {
    fn new(text: &'a str) -> Self {
        let next = Next::default();
        Self {
            bytes: text.as_bytes(),
            pos: 0,
            next_end: next,
            next_mark: next,
            next_start: next,
            next_hidden: next,
            unclosed_to: 0,
            is_closed: false,
        }
    }

    fn item(&mut self) -> Item {
        self.skip_trivia(true);
        let Some(&first) = self.bytes.get(self.pos) else { return (ItemKind::Trivia, None) };
        if first == b'@' && self.bytes.get(self.pos + 1) == Some(&b'@') {
            self.pos = scan::line_end(self.bytes, self.pos);
            return (ItemKind::Dwarf, None);
        }
        if first != b'.' {
            self.stray();
            return (ItemKind::Stray, None);
        }
        let word = self.word_at(self.pos);
        match word {
            b".version" => self.line_item(ItemKind::Version),
            b".target" => self.line_item(ItemKind::Target),
            b".address_size" => self.line_item(ItemKind::AddressSize),
            b".file" => self.line_item(ItemKind::File),
            b".loc" => self.line_item(ItemKind::Loc),
            b".section" => self.declaration(ItemKind::Section),
            b".pragma" => self.declaration(ItemKind::Pragma),
            b".alias" => self.declaration(ItemKind::Alias),
            b".entry" => self.declaration(ItemKind::Entry),
            b".func" => self.declaration(ItemKind::Func),
            _ if is_soft_start(word) || word.len() > 1 => self.declaration(ItemKind::Variable),
            _ => {
                self.stray();
                (ItemKind::Stray, None)
            }
        }
    }

    /// A directive that ends with its line, unless the line ends in a comma or has no operand yet.
    fn line_item(&mut self, kind: ItemKind) -> Item {
        self.pos += self.word_at(self.pos).len();
        // The position of the last byte that is neither blank nor comment.
        let mut last = 0;
        loop {
            let end = self.pos;
            let broken = self.skip_trivia(false);
            let Some(&byte) = self.bytes.get(self.pos) else {
                self.pos = end;
                break;
            };
            let wants_more = last == b',' || last == 0;
            let starts_item =
                byte == b'.' && self.bytes.get(self.pos + 1).is_some_and(u8::is_ascii_alphabetic);
            // Only operands of `.file` begin with these.
            let continues = kind == ItemKind::File && matches!(byte, b'"' | b',');
            if (broken && !wants_more && !continues) || starts_item || matches!(byte, b'{' | b'}' | b'@') {
                self.pos = end;
                break;
            }
            last = byte;
            match byte {
                b'"' => self.pos = scan::string_end(self.bytes, self.pos).0,
                b';' => {
                    self.pos += 1;
                    break;
                }
                _ if scan::is_word(byte) => self.pos = scan::word_end(self.bytes, self.pos),
                _ => self.skip_char(),
            }
        }
        (kind, None)
    }

    /// A declaration, function or section, up to its `;` or closing brace.
    fn declaration(&mut self, mut kind: ItemKind) -> Item {
        let mut name = None;
        let mut parens = 0usize;
        // A `.pragma` in a function header has its own `;`.
        let mut in_pragma = false;
        let mut first = true;
        loop {
            if parens > 0 && kind.is_function() {
                self.pos = scan::parameters_end(self.bytes, self.pos);
            }
            let end = self.pos;
            let broken = self.skip_trivia(false);
            let Some(&byte) = self.bytes.get(self.pos) else {
                self.pos = end;
                break;
            };
            match byte {
                b'.' => {
                    let start = self.pos;
                    if broken
                        && name.is_some()
                        && parens == 0
                        && kind.is_function()
                        && starts_body(self.word_at(start))
                        && self.unopened_body()
                    {
                        break;
                    }
                    let word = self.word_at(start);
                    let headed = name.is_some() && parens == 0;
                    let pragma_of_function = word == b".pragma" && kind.is_function();
                    if broken
                        && !first
                        && ((headed && is_soft_start(word) && !pragma_of_function)
                            || ((headed || parens > 0) && is_hard_start(word)))
                    {
                        self.pos = end;
                        break;
                    }
                    match word {
                        b".entry" if kind == ItemKind::Variable && name.is_none() => kind = ItemKind::Entry,
                        b".func" if kind == ItemKind::Variable && name.is_none() => kind = ItemKind::Func,
                        _ => {}
                    }
                    in_pragma |= pragma_of_function;
                    self.pos += word.len();
                    if kind == ItemKind::Section && !first && name.is_none() {
                        name = Some(range(start, self.pos));
                    }
                }
                b'(' => {
                    parens += 1;
                    self.pos += 1;
                }
                b')' => {
                    parens = parens.saturating_sub(1);
                    self.pos += 1;
                }
                b'{' => {
                    let closed = self.braces(0);
                    if !closed || kind.is_function() || kind == ItemKind::Section {
                        self.is_closed = closed;
                        break;
                    }
                }
                b'}' if parens == 0 => {
                    // A closing brace without an opening one. The item ends before it, and the brace is stray.
                    self.pos = end;
                    break;
                }
                b';' => {
                    self.pos += 1;
                    if !in_pragma {
                        break;
                    }
                    in_pragma = false;
                }
                b'"' => self.pos = scan::string_end(self.bytes, self.pos).0,
                b'0'..=b'9' => self.pos = scan::word_end(self.bytes, self.pos),
                b'%' | b'_' | b'$' | b'a'..=b'z' | b'A'..=b'Z' => {
                    let start = self.pos;
                    if broken && name.is_some() && parens == 0 && kind.is_function() && self.unopened_body() {
                        break;
                    }
                    self.pos = scan::word_end(self.bytes, start + 1);
                    if name.is_none() && parens == 0 && kind != ItemKind::Pragma {
                        name = Some(range(start, self.pos));
                    }
                }
                _ => self.skip_char(),
            }
            first = false;
        }
        (kind, name)
    }

    /// Skips the body of a function whose `{` is missing. Returns false and does not move if no `}` comes before the
    /// next item.
    fn unopened_body(&mut self) -> bool {
        let start = self.pos;
        // The text is searched only once, so that the time stays linear.
        if start < self.unclosed_to {
            return false;
        }
        let closed = self.braces(1);
        self.is_closed = closed;
        if !closed {
            self.unclosed_to = self.pos;
            self.pos = start;
            (self.next_end, self.next_mark, self.next_start, self.next_hidden) = Default::default();
        }
        closed
    }

    /// Moves past the `}` that closes all of the `depth` open braces; if `depth` is 0, past the one that closes the
    /// brace at the current position. Returns false if a line that must start an item comes first.
    ///
    /// This loop skips nearly all bytes of a file.
    fn braces(&mut self, mut depth: usize) -> bool {
        let bytes = self.bytes;
        let mut pos = self.pos;
        loop {
            let mark = self.next_mark.at_or_after(bytes, pos, |rest| memchr2(b'{', b'}', rest));
            let hidden = self.next_hidden.at_or_after(bytes, pos, |rest| memchr2(b'"', b'/', rest));
            let start = self.next_start.at_or_after(bytes, pos, scan::find_start);
            if start < mark.min(hidden) {
                let line = line_break_before(bytes, start).filter(|&line| line >= pos);
                pos = start + 1;
                match line {
                    Some(line) if bytes[start] == b'.' && self.is_item_start_in_braces(start) => {
                        self.pos = line;
                        return false;
                    }
                    Some(_) if bytes[start] == b'#' => pos = scan::hash_line_end(bytes, start),
                    _ => {}
                }
                continue;
            }
            if hidden < mark {
                pos = match bytes[hidden] {
                    b'"' => scan::string_end(bytes, hidden).0,
                    _ => comment_end(bytes, hidden),
                };
                continue;
            }
            pos = mark + 1;
            match bytes.get(mark) {
                Some(b'{') => depth += 1,
                Some(_) => {
                    depth -= 1;
                    if depth == 0 {
                        self.pos = pos;
                        return true;
                    }
                }
                None => {
                    self.pos = bytes.len();
                    return false;
                }
            }
        }
    }

    /// Whether the word at `pos` shows that a closing brace is missing.
    fn is_item_start_in_braces(&mut self, pos: usize) -> bool {
        // A fast check first: nearly every line of a debug section starts with a directive.
        if !matches!(self.bytes.get(pos + 1), Some(b'v' | b'e' | b'f' | b'w' | b't' | b'a')) {
            return false;
        }
        let word = self.word_at(pos);
        if !is_hard_start(word) {
            return false;
        }
        // A block may declare a function, but must not define one.
        let end = self.next_end.at_or_after(self.bytes, pos, |rest| memchr3(b';', b'{', b'}', rest));
        let mut words =
            self.bytes[pos..end].split(|byte| scan::is_blank(*byte)).filter(|word| !word.is_empty());
        let is_func =
            words.by_ref().take(3).find(|word| !is_linkage(word)).is_some_and(|word| word == b".func");
        !is_func || self.bytes.get(end) != Some(&b';')
    }

    /// Skips text that starts no item, up to the next line that does.
    fn stray(&mut self) {
        loop {
            let end = self.pos;
            let broken = self.skip_trivia(false);
            let Some(&byte) = self.bytes.get(self.pos) else {
                self.pos = end;
                return;
            };
            match byte {
                b'.' => {
                    let word = self.word_at(self.pos);
                    if broken && is_start_after_stray(word) {
                        self.pos = end;
                        return;
                    }
                    self.pos += word.len();
                }
                b'"' => self.pos = scan::string_end(self.bytes, self.pos).0,
                _ => self.skip_char(),
            }
        }
    }

    /// Skips blanks, comments and preprocessor lines. Returns true if they contain a line break.
    fn skip_trivia(&mut self, mut line_start: bool) -> bool {
        let mut broken = false;
        // A byte order mark is an error of the file, not a part of its first item.
        if self.pos == 0 && self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.pos = BYTE_ORDER_MARK.len();
        }
        while let Some(&byte) = self.bytes.get(self.pos) {
            match byte {
                b'\n' => {
                    broken = true;
                    line_start = true;
                    self.pos += 1;
                }
                byte if scan::is_blank(byte) => self.pos += 1,
                b'#' if line_start => self.pos = scan::hash_line_end(self.bytes, self.pos),
                b'/' => {
                    let end = comment_end(self.bytes, self.pos);
                    if end == self.pos + 1 {
                        break;
                    }
                    line_start = false;
                    self.pos = end;
                }
                _ => break,
            }
        }
        broken
    }

    fn skip_char(&mut self) {
        self.pos += 1;
        while self.bytes.get(self.pos).is_some_and(|byte| byte & 0xC0 == 0x80) {
            self.pos += 1;
        }
    }

    /// The `.word` at `pos`, including its dot.
    fn word_at(&self, pos: usize) -> &[u8] {
        &self.bytes[pos..scan::word_end(self.bytes, pos + 1)]
    }
}

/// The end of the comment at `pos`. If there is none, the position after the slash.
fn comment_end(bytes: &[u8], pos: usize) -> usize {
    match bytes.get(pos + 1) {
        Some(b'/') => scan::line_end(bytes, pos),
        Some(b'*') => scan::block_comment_end(bytes, pos).0,
        _ => pos + 1,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        let mut out = String::new();
        for item in split(text) {
            let name = item.name.map_or("-", |name| &text[name]);
            out.push_str(&format!("{:?} {name} {:?}\n", item.kind, &text[item.range]));
        }
        expected.assert_eq(&out);
    }

    /// Only the changed function is split again.
    #[test]
    fn change_in_a_function() {
        let before = ".version 9.0\n.func f() { }\n.func g() { ret; }\n.global .u32 x;\n.func h() { }\n";
        let after = before.replace("ret", "exit");
        let at = before.find("ret").unwrap();
        let again = split_again(&after, &split(before), at, before.len() - at - 3);
        assert_eq!((again.kept_before, again.items.len(), again.kept_after), (2, 1, 3));
        // Without its closing brace, the function includes the declaration after it.
        let after = before.replace("ret; }", "ret; ");
        let again = split_again(&after, &split(before), at + 5, before.len() - at - 6);
        assert_eq!((again.kept_before, again.items.len(), again.kept_after), (2, 2, 1));
    }

    #[test]
    fn header() {
        check(
            "// c\n.version 9.0.target sm_90,\n debug .address_size 64\n.file 1 \"a\" // d\n.loc 1 2 3",
            expect![[r#"
                Version - "// c\n.version 9.0"
                Target - ".target sm_90,\n debug"
                AddressSize - " .address_size 64"
                File - "\n.file 1 \"a\""
                Loc - " // d\n.loc 1 2 3"
            "#]],
        );
    }

    #[test]
    fn incomplete_header() {
        check(
            ".version\n.target\n.address_size }\n",
            expect![[r#"
                Version - ".version"
                Target - "\n.target"
                AddressSize - "\n.address_size"
                Stray - " }"
                Trivia - "\n"
            "#]],
        );
    }

    #[test]
    fn declarations() {
        check(
            ".global .align 8 .attribute(.managed) .u32 x[] = {1, {2}}, y;.extern .func (.param .u32 r) f(.param .u32 a);\n.alias g, f;.pragma \"a;\";",
            expect![[r#"
                Variable x ".global .align 8 .attribute(.managed) .u32 x[] = {1, {2}}, y;"
                Func f ".extern .func (.param .u32 r) f(.param .u32 a);"
                Alias g "\n.alias g, f;"
                Pragma - ".pragma \"a;\";"
            "#]],
        );
    }

    #[test]
    fn functions_and_sections() {
        check(
            ".visible\n.entry k() .pragma \"x\"; .maxntid 1 { { } // }\n /* } */ \"}\" }\n.section .debug_str { .b8 1 }\n",
            expect![[r#"
                Entry k ".visible\n.entry k() .pragma \"x\"; .maxntid 1 { { } // }\n /* } */ \"}\" }"
                Section .debug_str "\n.section .debug_str { .b8 1 }"
                Trivia - "\n"
            "#]],
        );
    }

    #[test]
    fn missing_semicolon() {
        check(
            ".global .u32 x\n.global .u32 y\n.func f()\n.func g();",
            expect![[r#"
                Variable x ".global .u32 x"
                Variable y "\n.global .u32 y"
                Func f "\n.func f()"
                Func g "\n.func g();"
            "#]],
        );
    }

    #[test]
    fn missing_brace() {
        check(
            ".func f() {\n{ ret;\n}\n// of g\n.visible .func g() { ret; }\n.entry h(\n.entry i() {}",
            expect![[r#"
                Func f ".func f() {\n{ ret;\n}\n// of g"
                Func g "\n.visible .func g() { ret; }"
                Entry h "\n.entry h("
                Entry i "\n.entry i() {}"
            "#]],
        );
    }

    #[test]
    fn missing_open_brace() {
        check(
            ".entry f()\n.reg .u32 r;\n{ ret; }\n}\n.func g()\nret;\n}\n.func h()\n.reg .u32 r;\n.entry i() {}",
            expect![[r#"
                Entry f ".entry f()\n.reg .u32 r;\n{ ret; }\n}"
                Func g "\n.func g()\nret;\n}"
                Func h "\n.func h()"
                Variable r "\n.reg .u32 r;"
                Entry i "\n.entry i() {}"
            "#]],
        );
    }

    #[test]
    fn function_declared_in_block() {
        check(
            ".func f() {\n.extern .func g(\n.param .u32 a);\n.func h(); }",
            expect![[r#"
                Func f ".func f() {\n.extern .func g(\n.param .u32 a);\n.func h(); }"
            "#]],
        );
    }

    #[test]
    fn extra_brace() {
        check(
            ".func f() { }\n ret;\n}\n.reg .u32 r;\n.global .u32 x;",
            expect![[r#"
                Func f ".func f() { }"
                Stray - "\n ret;\n}\n.reg .u32 r;"
                Variable x "\n.global .u32 x;"
            "#]],
        );
    }

    #[test]
    fn preprocessor_lines_hide_braces() {
        check(
            ".func f() {\n# 1 \"}\"\n}\n# 2 {\n.global .u32 x;",
            expect![[r##"
                Func f ".func f() {\n# 1 \"}\"\n}"
                Variable x "\n# 2 {\n.global .u32 x;"
            "##]],
        );
    }

    #[test]
    fn dwarf_lines() {
        check(
            "@@DWARF .section .debug_info, \"\", @progbits\n@@DWARF .byte 0x1, {\n",
            expect![[r#"
                Dwarf - "@@DWARF .section .debug_info, \"\", @progbits"
                Dwarf - "\n@@DWARF .byte 0x1, {"
                Trivia - "\n"
            "#]],
        );
    }
}
