//! Formatting: indentation, line breaks between statements, and spaces between words.
//!
//! Only blanks change. A statement has its own line, indented by four columns for each block around it; a label is
//! indented four columns less. Line breaks inside a statement, single blank lines and comments are kept. Text with
//! syntax errors is not changed. Formatting the result again changes nothing.

use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode, SyntaxToken, lex, parse_item, split};
use text_size::{TextRange, TextSize};

use crate::db::{Database, SourceFile};
use crate::diagnostic::TextEdit;
use crate::items::{Item, parse};
use crate::locate::{items_in, spot};

/// The number of columns per level.
const INDENT: usize = 4;

/// How often a text with syntax errors is laid out until it does not change any more.
const ROUNDS: usize = 8;

/// The edits that format a file, or the lines of it that `range` touches, in text order.
pub fn format(db: &Database, file: SourceFile, range: Option<TextRange>) -> Vec<TextEdit> {
    let text = file.text(db);
    let Some(range) = range else { return whole(text) };
    let lines = lines_of(text, range);
    let all: Vec<Item<'_>> = items_in(db, file, Some(lines)).collect();
    let from = all.first().map_or(TextSize::new(0), |item| item.offset(db));
    let mut formatter = Formatter::new(text);
    if from > TextSize::new(0) {
        // The text before it does not matter.
        formatter.previous =
            Some(Previous { end: from, kind: SyntaxKind::SEMICOLON, parent: SyntaxKind::VARIABLE });
    }
    for item in all {
        formatter.item(&parse(db, item).syntax(), item.offset(db));
    }
    let to = formatter.previous.map_or(from, |previous| previous.end);
    let edits = formatter.edits;
    if !keeps_tokens(text, TextRange::new(from, to), &edits) {
        return Vec::new();
    }
    edits.into_iter().filter_map(|edit| within(text, lines, edit)).collect()
}

/// The edits that format a whole text. In a text with syntax errors, a new line break can change where the parser
/// continues after an error, and so what is laid out. Such a text is laid out until it does not change any more.
fn whole(text: &str) -> Vec<TextEdit> {
    let (edits, has_errors) = laid_out(text);
    if edits.is_empty() || !has_errors {
        return edits;
    }
    let mut new = applied(text, everything(text), &edits);
    for _ in 0..ROUNDS {
        let (edits, _) = laid_out(&new);
        if edits.is_empty() {
            return between(text, &new);
        }
        new = applied(&new, everything(&new), &edits);
    }
    Vec::new()
}

/// The edits that lay a text out once, and whether it has syntax errors.
fn laid_out(text: &str) -> (Vec<TextEdit>, bool) {
    let mut formatter = Formatter::new(text);
    let mut has_errors = false;
    for raw in split(text) {
        let parse = parse_item(&text[raw.range]);
        has_errors |= !parse.errors.is_empty();
        formatter.item(&parse.syntax(), raw.range.start());
    }
    formatter.end();
    let edits = formatter.edits;
    if keeps_tokens(text, everything(text), &edits) { (edits, has_errors) } else { (Vec::new(), has_errors) }
}

fn everything(text: &str) -> TextRange {
    TextRange::up_to(TextSize::of(text))
}

/// The edits of blanks that turn a text into another one with the same tokens.
fn between(old: &str, new: &str) -> Vec<TextEdit> {
    let (mut edits, mut old_end, mut new_end) = (Vec::new(), TextSize::new(0), TextSize::new(0));
    for (old_token, new_token) in places(old).zip(places(new)) {
        let blanks = TextRange::new(old_end, old_token.start());
        let wanted = &new[TextRange::new(new_end, new_token.start())];
        if &old[blanks] != wanted {
            edits.push(TextEdit::new(blanks, wanted));
        }
        (old_end, new_end) = (old_token.end(), new_token.end());
    }
    edits
}

/// The lines that a range touches, without the line break after them. If the range ends at the start of a line, that
/// line is not included: editors select whole lines in this way.
fn lines_of(text: &str, range: TextRange) -> TextRange {
    let inside = |offset: TextSize| text.floor_char_boundary(offset.into());
    let (from, to) = (inside(range.start()), inside(range.end()));
    let start = text[..from].rfind('\n').map_or(0, |at| at + 1);
    let last = if to > from && text[..to].ends_with('\n') { to - 1 } else { to };
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at);
    TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32))
}

/// The part of an edit of blanks that is in some lines: the blanks before a token belong to the line of the token.
fn within(text: &str, lines: TextRange, edit: TextEdit) -> Option<TextEdit> {
    if !lines.contains_inclusive(edit.range.end()) {
        return None;
    }
    if lines.start() <= edit.range.start() {
        return Some(edit);
    }
    // The indentation of the first line. An edit that would join it with the line before it is left out.
    let (_, indent) = edit.text.rsplit_once('\n')?;
    let range = TextRange::new(lines.start(), edit.range.end());
    (&text[range] != indent).then(|| TextEdit::new(range, indent))
}

/// The edits after `typed` was typed before an offset. The end of a statement formats its line; a line break formats
/// the line before it and indents the new one.
pub fn format_on_type(db: &Database, file: SourceFile, offset: TextSize, typed: char) -> Vec<TextEdit> {
    let text = file.text(db);
    let Some(before) = text.get(..usize::from(offset)) else { return Vec::new() };
    let range =
        |start: usize, end: usize| TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32));
    if typed != '\n' {
        return format(db, file, Some(TextRange::empty(offset)));
    }
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let last = before[..line].trim_end().len();
    let blanks = text[line..].len() - text[line..].trim_start_matches([' ', '\t']).len();
    let rest = &text[line + blanks..];
    if !rest.is_empty() && !rest.starts_with(['\n', '\r']) {
        return format(db, file, Some(range(last, line + blanks + 1)));
    }
    let mut edits = format(db, file, Some(range(last, last)));
    let indent = " ".repeat(INDENT * depth(db, file, TextSize::new(last as u32)));
    if text[line..line + blanks] != indent {
        edits.push(TextEdit { range: range(line, line + blanks), text: indent });
    }
    edits
}

/// The number of brackets that are open at an offset. Text that is being typed has no tree.
fn depth(db: &Database, file: SourceFile, offset: TextSize) -> usize {
    use SyntaxKind as K;
    // The token before the offset decides which item it is.
    let Some(before) = offset.checked_sub(TextSize::new(1)) else { return 0 };
    let Some(spot) = spot(db, file, before) else { return 0 };
    let end = offset - spot.item.offset(db);
    let Some(text) = spot.item.text(db).get(..usize::from(end)) else { return 0 };
    tokens(text).fold(0, |open: usize, (kind, _)| match kind {
        K::L_BRACE | K::L_PAREN | K::L_BRACK => open + 1,
        K::R_BRACE | K::R_PAREN | K::R_BRACK => open.saturating_sub(1),
        _ => open,
    })
}

/// The tokens of a text, without blanks.
fn tokens(text: &str) -> impl Iterator<Item = (SyntaxKind, &str)> {
    let mut at = 0;
    lex(text).into_iter().filter_map(move |token| {
        let start = at;
        at += token.len as usize;
        (token.kind != SyntaxKind::WHITESPACE).then(|| (token.kind, &text[start..at]))
    })
}

/// The ranges of the tokens of a text, without blanks, and the end of the text.
fn places(text: &str) -> impl Iterator<Item = TextRange> {
    let mut at = TextSize::new(0);
    let tokens = lex(text).into_iter().filter_map(move |token| {
        let range = TextRange::at(at, token.len.into());
        at = range.end();
        (token.kind != SyntaxKind::WHITESPACE).then_some(range)
    });
    tokens.chain([TextRange::empty(TextSize::of(text))])
}

/// Whether the edits of a part of the text do not change its tokens.
fn keeps_tokens(text: &str, part: TextRange, edits: &[TextEdit]) -> bool {
    let after = applied(text, part, edits);
    tokens(&text[part]).eq(tokens(&after))
}

fn applied(text: &str, part: TextRange, edits: &[TextEdit]) -> String {
    let mut out = String::with_capacity(usize::from(part.len()));
    let mut at = part.start();
    for edit in edits {
        out.push_str(&text[TextRange::new(at, edit.range.start())]);
        out.push_str(&edit.text);
        at = edit.range.end();
    }
    out.push_str(&text[TextRange::new(at, part.end())]);
    out
}

/// The text laid out.
pub fn formatted(db: &Database, file: SourceFile) -> String {
    let text = file.text(db);
    applied(text, everything(text), &format(db, file, None))
}

/// The context of a token.
#[derive(Clone, Copy, Default)]
struct Context {
    /// The number of blocks and sections around it.
    depth: usize,
    is_in_address: bool,
    /// The token is in text with syntax errors, or in text whose lines have a meaning.
    is_verbatim: bool,
}

#[derive(Clone, Copy)]
struct Previous {
    end: TextSize,
    kind: SyntaxKind,
    parent: SyntaxKind,
}

struct Formatter<'t> {
    text: &'t str,
    line_end: &'static str,
    edits: Vec<TextEdit>,
    previous: Option<Previous>,
    /// The column of the next token, if it begins a statement.
    start: Option<usize>,
    /// The column of the current statement.
    base: usize,
    /// The column at which the current line begins.
    line: usize,
    /// For each open bracket of the statement, the column of its line.
    open: Vec<usize>,
    /// The last comment is at the start of its line.
    comment_begins_line: bool,
}

/// The blanks between two tokens.
enum Gap {
    /// A line break and a number of columns, perhaps after a blank line.
    Line {
        column: usize,
        has_blank: bool,
    },
    Space,
    Nothing,
}

impl<'t> Formatter<'t> {
    fn new(text: &'t str) -> Self {
        let first = text.find('\n');
        let is_carriage = first.is_some_and(|at| text[..at].ends_with('\r'));
        let line_end = if is_carriage { "\r\n" } else { "\n" };
        let (edits, open) = (Vec::new(), Vec::new());
        Self {
            text,
            line_end,
            edits,
            previous: None,
            start: None,
            base: 0,
            line: 0,
            open,
            comment_begins_line: false,
        }
    }

    /// Lays out an item.
    fn item(&mut self, root: &SyntaxNode, offset: TextSize) {
        self.start(0);
        self.node(root, offset, Context::default());
    }

    /// Records that the next token begins a statement.
    fn start(&mut self, column: usize) {
        self.start = Some(column);
    }

    fn node(&mut self, node: &SyntaxNode, offset: TextSize, context: Context) {
        use SyntaxKind as K;
        let kind = node.kind();
        let is_block = matches!(kind, K::BLOCK | K::SECTION);
        let context = Context {
            is_in_address: context.is_in_address || kind == K::ADDRESS,
            is_verbatim: context.is_verbatim || matches!(kind, K::ERROR | K::DWARF_LINE),
            ..context
        };
        let mut depth = context.depth;
        for element in node.children_with_tokens() {
            match element {
                NodeOrToken::Token(token) => {
                    if is_block && token.kind() == K::R_BRACE {
                        depth = context.depth;
                    }
                    self.token(&token, offset, Context { depth, ..context });
                    if is_block && token.kind() == K::L_BRACE {
                        depth = context.depth + 1;
                    }
                }
                NodeOrToken::Node(child) => {
                    if is_block && depth > context.depth {
                        match child.kind() {
                            K::EMPTY_STATEMENT => {}
                            K::LABEL => self.start((depth - 1) * INDENT),
                            _ => self.start(depth * INDENT),
                        }
                    }
                    self.node(&child, offset, Context { depth, ..context });
                }
            }
        }
    }

    fn token(&mut self, token: &SyntaxToken, offset: TextSize, context: Context) {
        let kind = token.kind();
        let range = token.text_range() + offset;
        if kind == SyntaxKind::WHITESPACE || range.is_empty() {
            return;
        }
        let parent = token.parent().map_or(SyntaxKind::ERROR, |node| node.kind());
        let from = self.previous.map_or(TextSize::new(0), |previous| previous.end);
        let blanks = TextRange::new(from, range.start());
        let is_start = self.start.is_some() && !kind.is_trivia();
        if context.is_verbatim && !(is_start && parent == SyntaxKind::DWARF_LINE) {
            self.keep(blanks);
        } else {
            let gap = self.gap(kind, parent, blanks, context);
            self.put(blanks, gap);
        }
        if is_start {
            self.start = None;
        }
        let is_bracket = !matches!(parent, SyntaxKind::BLOCK | SyntaxKind::SECTION);
        match kind {
            SyntaxKind::L_PAREN | SyntaxKind::L_BRACK | SyntaxKind::L_BRACE if is_bracket => {
                self.open.push(self.line);
            }
            SyntaxKind::R_PAREN | SyntaxKind::R_BRACK | SyntaxKind::R_BRACE if is_bracket => {
                self.open.pop();
            }
            _ => {}
        }
        self.previous = Some(Previous { end: range.end(), kind, parent });
    }

    /// The blanks before a token.
    fn gap(&mut self, kind: SyntaxKind, parent: SyntaxKind, blanks: TextRange, context: Context) -> Gap {
        use SyntaxKind as K;
        let Some(previous) = self.previous else {
            self.begin(context);
            return Gap::Nothing;
        };
        let breaks = self.text[blanks].matches('\n').count();
        let is_brace = |parent: K| matches!(parent, K::BLOCK | K::SECTION);
        let closes = kind == K::R_BRACE && is_brace(parent);
        let opens = previous.kind == K::L_BRACE && is_brace(previous.parent);
        let line = |column: usize| Gap::Line { column, has_blank: breaks > 1 && !opens && !closes };
        if kind.is_trivia() {
            let column = match kind {
                K::HASH_LINE => 0,
                _ if self.start.is_some() || is_brace(parent) => context.depth * INDENT,
                _ => self.continuation(kind, parent),
            };
            let is_alone = breaks > 0 || kind == K::HASH_LINE || previous.kind == K::LINE_COMMENT;
            self.comment_begins_line = is_alone;
            return if is_alone { line(column) } else { Gap::Space };
        }
        if self.start.is_some() {
            let column = self.begin(context);
            // A comment before a statement on the same line.
            let follows = breaks == 0 && previous.kind == K::BLOCK_COMMENT && self.comment_begins_line;
            return if follows { Gap::Space } else { line(column) };
        }
        let must_break = matches!(previous.kind, K::LINE_COMMENT | K::HASH_LINE)
            || previous.parent == K::DWARF_LINE
            || closes
            || kind == K::L_BRACE && parent == K::BLOCK;
        if must_break {
            let column =
                if is_brace(parent) { context.depth * INDENT } else { self.continuation(kind, parent) };
            return line(column);
        }
        let is_kept = match (kind, parent) {
            (K::SEMICOLON, K::EMPTY_STATEMENT) => true,
            (K::COMMA | K::SEMICOLON, _) => false,
            (_, K::INSTRUCTION) => !matches!(kind, K::IDENT | K::DOT_WORD),
            (_, K::COMPONENT | K::PAIR | K::GUARD) => false,
            _ => true,
        };
        match breaks > 0 && is_kept {
            true => {
                let column = self.continuation(kind, parent);
                Gap::Line { column, has_blank: false }
            }
            false if has_space(previous, kind, parent, context, !blanks.is_empty()) => Gap::Space,
            false => Gap::Nothing,
        }
    }

    /// The column of the statement that begins.
    fn begin(&mut self, context: Context) -> usize {
        self.open.clear();
        self.base = self.start.unwrap_or(context.depth * INDENT);
        self.base
    }

    /// The column of a line that continues a statement.
    fn continuation(&self, kind: SyntaxKind, parent: SyntaxKind) -> usize {
        use SyntaxKind as K;
        let closes = matches!(kind, K::R_PAREN | K::R_BRACK | K::R_BRACE);
        match self.open.last() {
            Some(&column) if closes => column,
            Some(&column) => column + INDENT,
            // The parts of a function's heading are on separate lines.
            None if matches!(parent, K::FUNCTION | K::FUNCTION_DIRECTIVE | K::NAME | K::SECTION) => self.base,
            None => self.base + INDENT,
        }
    }

    /// Keeps the blanks before a token.
    fn keep(&mut self, blanks: TextRange) {
        if let Some((_, line)) = self.text[blanks].rsplit_once('\n') {
            self.line = line.len();
        }
    }

    fn put(&mut self, blanks: TextRange, gap: Gap) {
        let wanted = match gap {
            Gap::Nothing => String::new(),
            Gap::Space => " ".to_owned(),
            Gap::Line { column, has_blank } => {
                self.line = column;
                let breaks = if has_blank { 2 } else { 1 };
                self.line_end.repeat(breaks) + &" ".repeat(column)
            }
        };
        if self.text[blanks] != wanted {
            self.edits.push(TextEdit { range: blanks, text: wanted });
        }
    }

    /// The text ends with a line break.
    fn end(&mut self) {
        let from = self.previous.map_or(TextSize::new(0), |previous| previous.end);
        let blanks = TextRange::new(from, TextSize::of(self.text));
        let wanted = if self.previous.is_some() { self.line_end } else { "" };
        if &self.text[blanks] != wanted {
            self.edits.push(TextEdit { range: blanks, text: wanted.to_owned() });
        }
    }
}

/// Whether there is a space between two tokens of a line; `had` decides if both forms are usual.
fn has_space(previous: Previous, kind: SyntaxKind, parent: SyntaxKind, context: Context, had: bool) -> bool {
    use SyntaxKind as K;
    let is_word = |kind: K| matches!(kind, K::IDENT | K::DOT_WORD);
    match (previous.kind, kind) {
        (_, K::COMMA | K::SEMICOLON) => false,
        (K::COMMA, _) => true,
        (K::BLOCK_COMMENT, _) => true,
        (K::L_PAREN | K::L_BRACK | K::L_BRACE, _) | (_, K::R_PAREN | K::R_BRACK | K::R_BRACE) => false,
        (K::QUESTION, _) | (_, K::QUESTION) => true,
        (_, K::COLON) => parent == K::CONDITIONAL_EXPR,
        (K::COLON, _) if previous.parent == K::CONDITIONAL_EXPR => true,
        (_, _) if matches!(previous.parent, K::PREFIX_EXPR) && !is_word(previous.kind) => false,
        (K::AT | K::BANG, _) if previous.parent == K::GUARD => false,
        (_, K::BANG) if parent == K::GUARD => false,
        (_, K::DOT_WORD) if parent == K::INSTRUCTION && previous.parent == K::INSTRUCTION => {
            !is_word(previous.kind)
        }
        (_, K::DOT_WORD) if parent == K::COMPONENT => false,
        (_, K::DOT) | (K::DOT, _) => false,
        (K::LT, _) | (_, K::LT | K::GT)
            if parent == K::REGISTER_RANGE || previous.parent == K::REGISTER_RANGE =>
        {
            false
        }
        (K::PIPE, _) | (_, K::PIPE) if parent == K::PAIR || previous.parent == K::PAIR => false,
        (_, K::L_BRACK) => !matches!(parent, K::ARRAY_DIMENSION | K::INDEX_EXPR | K::BANK),
        (_, K::L_PAREN) => match parent {
            K::CALL_EXPR | K::MASK_EXPR | K::ATTRIBUTE | K::ATTRIBUTE_LIST => false,
            K::PARAM_LIST => previous.parent != K::NAME,
            K::PAREN_EXPR => previous.parent != K::PREFIX_EXPR && !context.is_in_address,
            _ => had || parent == K::ARGUMENT_LIST,
        },
        (K::EQ, _) | (_, K::EQ) => true,
        (_, _) if parent == K::BINARY_EXPR && is_operator(kind) => !context.is_in_address,
        (_, _) if previous.parent == K::BINARY_EXPR && is_operator(previous.kind) => !context.is_in_address,
        // The name of an instruction and its first operand.
        (_, _) if previous.parent == K::INSTRUCTION && is_word(previous.kind) => true,
        _ => had,
    }
}

fn is_operator(kind: SyntaxKind) -> bool {
    use SyntaxKind as K;
    matches!(
        kind,
        K::PLUS
            | K::MINUS
            | K::STAR
            | K::SLASH
            | K::PERCENT
            | K::AMP
            | K::AMP2
            | K::PIPE
            | K::PIPE2
            | K::CARET
            | K::SHL
            | K::SHR
            | K::LT
            | K::GT
            | K::LE
            | K::GE
            | K::EQ2
            | K::NEQ
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn of(text: &str) -> String {
        let db = Database::default();
        let once = formatted(&db, db.add_file(text));
        assert_eq!(formatted(&db, db.add_file(once.as_str())), once, "formatting again changes nothing");
        once
    }

    #[test]
    fn statements_have_lines_of_their_own() {
        let text = "\n\n.version   8.0\n.target sm_80 , debug\n.address_size 64\n\n\n\n.global .align 4 .b32 t[4]={1,2,generic( x )+4};\n\
            .visible .entry k (\n  .param .u64 a,\n.param .u64 b\n  )\n  .maxntid 256,1,1 {\n  .reg .b32 %r < 4 >; .reg .pred %p;L:@ ! %p   add.s32\t%r1 , %r2,%r3;// sum\n\n\n\
            // next\n/* a */ ld.global .v2.u32 {%r1,%r2} ,[ %rd1 + 4 ] ;\n\
            setp.eq.s32 %p | %q,%r1,-1;\n{\n.reg .b32 x;\n  M:\n mov.b32 x, %tid .x;\n}\n\
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n{a,b,c,d},\n{a,b,c,d},{a,b},\n {a,b,c,d};\n\
            call.uni (r),\nf,\n(\na\n);\n.loc 1 2 3\n\nret;\n\n}\n#define X\n.func f();";
        expect![[r#"
            .version 8.0
            .target sm_80, debug
            .address_size 64

            .global .align 4 .b32 t[4] = {1, 2, generic(x) + 4};
            .visible .entry k(
                .param .u64 a,
                .param .u64 b
            )
            .maxntid 256, 1, 1
            {
                .reg .b32 %r<4>;
                .reg .pred %p;
            L:
                @!%p add.s32 %r1, %r2, %r3; // sum

                // next
                /* a */ ld.global.v2.u32 {%r1, %r2}, [%rd1+4];
                setp.eq.s32 %p|%q, %r1, -1;
                {
                    .reg .b32 x;
                M:
                    mov.b32 x, %tid.x;
                }
                mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
                    {a, b, c, d},
                    {a, b, c, d}, {a, b},
                    {a, b, c, d};
                call.uni (r),
                    f,
                    (
                        a
                    );
                .loc 1 2 3

                ret;
            }
            #define X
            .func f();
        "#]]
        .assert_eq(&of(text));
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        let text = ".version 8.0\n.target sm_80\n.entry k()\n{\n  ]  [ ;\nadd.s32   %r1,;\n@@DWARF  .byte   1\n  ret;\n}\n  }  x\n";
        expect![[r#"
            .version 8.0
            .target sm_80
            .entry k()
            {
              ]  [ ;
                add.s32 %r1,;
                @@DWARF  .byte   1
                ret;
            }
              }  x
        "#]]
        .assert_eq(&of(text));
        assert_eq!(of(""), "");
        assert_eq!(of("  \n"), "");
        assert_eq!(of(".version 8.0\r\n\r\n\r\n.target   sm_80"), ".version 8.0\r\n\r\n.target sm_80\r\n");
    }

    #[test]
    fn a_line_break_indents_the_next_line() {
        let on_type = |text: &str, typed: char| {
            let offset = text.find("$0").expect("the fixture has a cursor");
            let db = Database::default();
            let file = db.add_file(text.replacen("$0", "", 1));
            let text = file.text(&db);
            let edits = format_on_type(&db, file, TextSize::new(offset as u32), typed);
            applied(text, TextRange::up_to(TextSize::of(&**text)), &edits)
        };
        let head = ".version 8.0\n.target sm_80\n.entry k()\n{\n";
        let rest = "  ret;\n}\n";
        let after = on_type(&format!("{head}add.s32  a,b,c;\n$0\n{rest}"), '\n');
        assert_eq!(after, format!("{head}    add.s32 a, b, c;\n    \n{rest}"));
        let after = on_type(&format!("{head}add.s32  a,b,c;$0\n{rest}"), ';');
        assert_eq!(after, format!("{head}    add.s32 a, b, c;\n{rest}"));
        // Enter before existing text, in a function that is not closed yet, and in a parameter list.
        let after = on_type(&format!("{head}add.s32  a,b,c;\n$0{rest}"), '\n');
        assert_eq!(after, format!("{head}    add.s32 a, b, c;\n    ret;\n}}\n"));
        let after = on_type(&format!("{head}    {{\n$0}}\n{rest}"), '\n');
        assert_eq!(after, format!("{head}    {{\n    }}\n{rest}"));
        assert_eq!(on_type(&format!("{head}$0\n"), '\n'), format!("{head}    \n"));
        let start = ".version 8.0\n.target sm_80\n.entry k(\n";
        assert_eq!(on_type(&format!("{start}$0\n"), '\n'), format!("{start}    \n"));
    }

    #[test]
    fn a_range_is_whole_lines() {
        let text = ".version 8.0\n.target sm_80\n.entry k()\n{\nmov.u32 %r1,1;\nmov.u32 %r2,1;\n{\nmov.u32 %r3,1;\n}\nret;\n}\n";
        let db = Database::default();
        let file = db.add_file(text);
        let lines = |first: &str, next: &str| {
            let at = |part| TextSize::new(text.find(part).expect("the text has it") as u32);
            let edits = format(&db, file, Some(TextRange::new(at(first), at(next))));
            let new = applied(text, TextRange::up_to(TextSize::of(text)), &edits);
            let changed = new.lines().zip(text.lines()).filter(|(new, old)| new != old);
            changed.map(|(new, _)| format!("{new}\n")).collect::<String>()
        };
        assert_eq!(lines("mov.u32 %r1", "mov.u32 %r2"), "    mov.u32 %r1, 1;\n");
        assert_eq!(lines("1,1", ",1;"), "    mov.u32 %r1, 1;\n");
        assert_eq!(lines("{\nmov.u32 %r3", "ret"), "    {\n        mov.u32 %r3, 1;\n    }\n");
    }
}
