//! `textDocument/semanticTokens`: of a range, of the whole document, and what has changed of them.
//!
//! The tokens of a large document are millions of numbers. So what a client has is remembered by item, and after an
//! edit only the tokens of items that changed are sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::document::Encoding;
use crate::handlers::embedded;
use crate::owner::Snapshot;
use memchr::memchr2_iter;
use ptx_analysis::ide::{self, ItemTokens, TokenKind};
use text_size::TextRange;
use tower_lsp::lsp_types::{
    Position, Range, SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokens,
    SemanticTokensDelta, SemanticTokensEdit, SemanticTokensFullDeltaResult, SemanticTokensLegend,
};

/// Token types in the order of [`TokenKind::ALL`]; one modifier, "declaration".
pub fn legend() -> SemanticTokensLegend {
    let token_types = TokenKind::ALL
        .iter()
        .map(|kind| match kind {
            TokenKind::Comment => SemanticTokenType::COMMENT,
            TokenKind::Directive => SemanticTokenType::KEYWORD,
            TokenKind::Mnemonic => SemanticTokenType::FUNCTION,
            TokenKind::Modifier => SemanticTokenType::MODIFIER,
            TokenKind::Type => SemanticTokenType::TYPE,
            TokenKind::Register | TokenKind::Variable => SemanticTokenType::VARIABLE,
            TokenKind::Predicate => SemanticTokenType::new("predicate"),
            TokenKind::SpecialRegister => SemanticTokenType::ENUM_MEMBER,
            TokenKind::Parameter => SemanticTokenType::PARAMETER,
            TokenKind::Function => SemanticTokenType::METHOD,
            TokenKind::Label => SemanticTokenType::new("label"),
            TokenKind::Number => SemanticTokenType::NUMBER,
            TokenKind::String => SemanticTokenType::STRING,
        })
        .collect();
    SemanticTokensLegend { token_types, token_modifiers: vec![SemanticTokenModifier::DECLARATION] }
}

/// What the client has of a document.
#[derive(Default)]
pub struct Sent(Mutex<Option<Arc<Answer>>>);

struct Answer {
    id: String,
    items: Vec<SentItem>,
}

struct SentItem {
    tokens: ItemTokens,
    /// How many of them were sent.
    count: usize,
}

impl Sent {
    fn is(&self, items: Vec<SentItem>) -> Option<String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
        let answer = Answer { id: id.clone(), items };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(answer));
        Some(id)
    }

    fn answer(&self, id: &str) -> Option<Arc<Answer>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.filter(|answer| answer.id == id)
    }
}

pub fn full(s: &Snapshot) -> SemanticTokens {
    if let Some(embedded) = &s.embedded {
        return embedded::tokens(s, embedded, None);
    }
    let mut writer = Writer::new(s.encoding, Position::default());
    let items = ide::item_tokens(&s.db, s.file, None).into_iter().map(|tokens| {
        let count = writer.item(&tokens);
        SentItem { tokens, count }
    });
    let items = items.collect();
    SemanticTokens { result_id: s.sent_tokens.is(items), data: writer.data }
}

pub fn range(s: &Snapshot, range: Range) -> SemanticTokens {
    if let Some(embedded) = &s.embedded {
        return embedded::tokens(s, embedded, Some(range));
    }
    let lines = s.lines();
    let range = lines.text_range(range);
    let items = ide::item_tokens(&s.db, s.file, Some(range));
    let start = items.first().map(|item| lines.position(item.start));
    let mut writer = Writer::new(s.encoding, start.unwrap_or_default());
    for item in &items {
        writer.tokens(item, |token| range.intersect(token + item.start).is_some());
    }
    SemanticTokens { result_id: None, data: writer.data }
}

/// What changed since the answer `previous`; all tokens if that is not the last one.
pub fn delta(s: &Snapshot, previous: &str) -> SemanticTokensFullDeltaResult {
    let Some(previous) = s.sent_tokens.answer(previous) else {
        return SemanticTokensFullDeltaResult::Tokens(full(s));
    };
    let (edit, items) = changes(&previous.items, ide::item_tokens(&s.db, s.file, None), s.encoding);
    let result_id = s.sent_tokens.is(items);
    let edits = edit.into_iter().collect();
    SemanticTokensFullDeltaResult::TokensDelta(SemanticTokensDelta { result_id, edits })
}

/// The edit that makes the tokens of the new items out of those of the old ones, and what the client then has.
fn changes(
    old: &[SentItem],
    new: Vec<ItemTokens>,
    encoding: Encoding,
) -> (Option<SemanticTokensEdit>, Vec<SentItem>) {
    let before = old.iter().zip(&new).take_while(|(old, new)| old.tokens.is_same(new)).count();
    let after = old[before..].iter().rev().zip(new[before..].iter().rev());
    let after = after.take_while(|(old, new)| old.tokens.is_same(new)).count();
    let (old_end, new_end) = (old.len() - after, new.len() - after);

    // The first changed token is relative to the last one before it, so writing starts at the item of that one.
    let first = old[..before].iter().rposition(|item| item.count > 0).unwrap_or(0);
    let mut writer = Writer::new(encoding, Position::default());
    for item in &new[first..before] {
        writer.item(item);
    }
    let unchanged = writer.data.len();
    let counts: Vec<usize> = new[before..new_end].iter().map(|item| writer.item(item)).collect();
    // The first token after the changed ones is relative to the last of them.
    let next = (old_end..old.len()).find(|&index| old[index].count > 0);
    if let Some(next) = next {
        let next = next - old_end + new_end;
        for item in &new[new_end..next] {
            writer.item(item);
        }
        writer.first_token(&new[next]);
    }
    let data = writer.data.split_off(unchanged);

    let sum = |items: &[SentItem]| items.iter().map(|item| item.count).sum::<usize>();
    let deleted = sum(&old[before..old_end]) + usize::from(next.is_some());
    let is_equal = before == old_end && before == new_end;
    // Five numbers a token.
    let edit = SemanticTokensEdit {
        start: 5 * sum(&old[..before]) as u32,
        delete_count: 5 * deleted as u32,
        data: Some(data),
    };
    let counts = old[..before]
        .iter()
        .map(|item| item.count)
        .chain(counts)
        .chain(old[old_end..].iter().map(|item| item.count));
    let items = new.into_iter().zip(counts).map(|(tokens, count)| SentItem { tokens, count }).collect();
    ((!is_equal).then_some(edit), items)
}

/// Writes tokens as the protocol has them: each relative to the one before.
struct Writer {
    encoding: Encoding,
    /// The line breaks since the start of the last token.
    lines: u32,
    /// The columns since then, or since the last line break.
    columns: u32,
    /// The text so far ends with a carriage return: a line feed would belong to it.
    after_return: bool,
    data: Vec<SemanticToken>,
}

impl Writer {
    fn new(encoding: Encoding, start: Position) -> Self {
        let Position { line: lines, character: columns } = start;
        Self { encoding, lines, columns, after_return: false, data: Vec::new() }
    }

    /// Writes the tokens of an item and gives their number.
    fn item(&mut self, item: &ItemTokens) -> usize {
        let before = self.data.len();
        self.tokens(item, |_| true);
        self.data.len() - before
    }

    fn first_token(&mut self, item: &ItemTokens) {
        let before = self.data.len();
        self.tokens(item, |_| true);
        self.data.truncate(before + 1);
    }

    /// Writes the tokens whose range in the item `is_wanted`.
    fn tokens(&mut self, item: &ItemTokens, is_wanted: impl Fn(TextRange) -> bool) {
        let text: &str = &item.text;
        let mut end = 0;
        for token in item.iter() {
            let word = &text[token.range];
            // The protocol's tokens lie on one line; the rest of a block comment is left to the grammar.
            if !is_wanted(token.range) || word.contains(['\n', '\r']) {
                continue;
            }
            let start = usize::from(token.range.start());
            self.skip(&text[end..start]);
            let length = self.width(word);
            self.data.push(SemanticToken {
                delta_line: self.lines,
                delta_start: self.columns,
                length,
                token_type: token.kind as u32,
                token_modifiers_bitset: u32::from(token.declaration),
            });
            (self.lines, self.columns, self.after_return) = (0, length, false);
            end = token.range.end().into();
        }
        self.skip(&text[end..]);
    }

    fn skip(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut line_start = 0;
        for end in memchr2_iter(b'\n', b'\r', bytes) {
            let is_second =
                bytes[end] == b'\n' && (self.after_return && end == 0 || text[..end].ends_with('\r'));
            self.lines += u32::from(!is_second);
            self.columns = 0;
            line_start = end + 1;
        }
        self.columns += self.width(&text[line_start..]);
        if let Some(&last) = bytes.last() {
            self.after_return = last == b'\r';
        }
    }

    fn width(&self, text: &str) -> u32 {
        match self.encoding {
            Encoding::Utf16 if !text.is_ascii() => text.encode_utf16().count() as u32,
            Encoding::Utf8 | Encoding::Utf16 => text.len() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use ptx_analysis::Database;

    fn tokens(text: &str) -> Vec<ItemTokens> {
        let db = Database::default();
        let file = db.add_file(text);
        ide::item_tokens(&db, file, None)
    }

    fn written(items: &[ItemTokens], encoding: Encoding) -> Vec<SemanticToken> {
        let mut writer = Writer::new(encoding, Position::default());
        for item in items {
            writer.item(item);
        }
        writer.data
    }

    #[test]
    fn kinds_are_numbered_as_in_the_legend() {
        for (kind, number) in TokenKind::ALL.iter().zip(0..) {
            assert_eq!(*kind as u32, number);
        }
        assert_eq!(legend().token_types.len(), TokenKind::ALL.len());
    }

    const PIECES: [&str; 14] = [
        ".version 9.0\n.target sm_90\n",
        "// a \u{1d11e}\n",
        "/* \u{3c0} */",
        "/*\r*/",
        ".global .b32 a;",
        ".entry f(.param .b32 p)\n{ .reg .b32 %r<4>;\nL: mov.u32 %r1, %tid.x; ret; }",
        ".entry g()\r\n{\r\tret; }\r",
        "\n",
        "\r",
        "{",
        "}",
        "add.s32 %r1, %r1, 1;",
        "\"\u{1d11e}\"",
        " ",
    ];

    fn text(random: &mut fastrand::Rng, pieces: usize) -> Vec<&'static str> {
        (0..pieces).map(|_| random.choice(PIECES).unwrap()).collect()
    }

    #[test]
    fn tokens_are_where_their_positions_are() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..300 {
            let text = text(&mut random, 12).concat();
            for encoding in [Encoding::Utf8, Encoding::Utf16] {
                let lines = Document::new(&text, 1, encoding);
                let items = tokens(&text);
                let mut expected = items.iter().flat_map(|item| {
                    let range = |token: ide::SemanticToken| lines.range(token.range + item.start);
                    item.iter().map(range).filter(|range| range.start.line == range.end.line)
                });
                let (mut line, mut column) = (0, 0);
                for token in written(&items, encoding) {
                    column = if token.delta_line == 0 { column } else { 0 } + token.delta_start;
                    line += token.delta_line;
                    let range = expected.next().unwrap();
                    assert_eq!((line, column), (range.start.line, range.start.character), "{text:?}");
                    assert_eq!(token.length, range.end.character - range.start.character, "{text:?}");
                }
                assert_eq!(expected.next(), None, "{text:?}");
            }
        }
    }

    #[test]
    fn changes_lead_from_the_old_tokens_to_the_new_ones() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..1000 {
            let mut pieces = text(&mut random, 16);
            let mut sent: Vec<SentItem> = Vec::new();
            let mut data: Vec<SemanticToken> = Vec::new();
            for _ in 0..4 {
                let all = tokens(&pieces.concat());
                let expected = written(&all, Encoding::Utf16);
                let (edit, items) = changes(&sent, all, Encoding::Utf16);
                if let Some(edit) = edit {
                    let (start, count) = (edit.start as usize / 5, edit.delete_count as usize / 5);
                    data.splice(start..start + count, edit.data.unwrap());
                }
                assert_eq!(data, expected, "{:?}", pieces.concat());
                sent = items;
                let at = random.usize(..pieces.len());
                match random.bool() {
                    true => pieces[at] = random.choice(PIECES).unwrap(),
                    false => drop(pieces.remove(at)),
                }
            }
        }
    }
}
