//! `textDocument/semanticTokens`: the tokens of a range, of the whole document, or the changes since an earlier answer.
//!
//! The tokens of a large document are millions of numbers, each token relative to the one before. So the numbers of
//! each item are kept as JSON, and the whole answer joins the numbers of all items: only the place of an item's first
//! token depends on the text before the item. After an edit, only the changed tokens are sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::by_item::Unchanged;
use crate::document::Encoding;
use crate::gap::{Gap, width};
use crate::handlers::embedded;
use crate::owner::Snapshot;
use crate::written::{self, Part, Written};
use memchr::{memchr_iter, memchr2};
use ptx_analysis::ide::{self, ItemTokens, TokenKind};
use text_size::TextRange;
use tower_lsp::lsp_types::{self as lsp, SemanticTokenModifier, SemanticTokenType, SemanticTokensLegend};

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

/// The tokens that the client has of a document.
#[derive(Default)]
pub struct Sent(Mutex<Option<Arc<Answer>>>);

struct Answer {
    id: String,
    items: Vec<Item>,
}

#[derive(Clone)]
struct Item {
    tokens: ItemTokens,
    encoded: Arc<Encoded>,
}

impl Sent {
    /// Records the answer that the client is about to receive. The answer contains its id.
    fn is(&self, items: Vec<Item>) -> Arc<Answer> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
        let answer = Arc::new(Answer { id, items });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.clone());
        answer
    }

    fn last(&self) -> Option<Arc<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub fn full(s: &Snapshot) -> Option<Written> {
    if let Some(embedded) = &s.embedded {
        return written::write(&embedded::tokens(s, embedded, None));
    }
    let last = s.answers.tokens.last();
    let old = last.as_ref().map_or(&[][..], |answer| &answer.items);
    let (items, _) = renewed(old, ide::item_tokens(&s.db, s.file, None), s.encoding);
    let answer = s.answers.tokens.is(items);
    let mut parts = vec![Part::Own(format!(r#"{{"resultId":"{}","data":["#, answer.id).into())];
    let mut json = String::new();
    let mut join = Join::new(&mut json, Gap::default());
    for item in &answer.items {
        join.place(&item.encoded);
        if item.encoded.count > 0 {
            parts.push(Part::Own(std::mem::take(join.json).into()));
            parts.push(Part::Shared(item.encoded.numbers.clone()));
        }
    }
    parts.push(Part::Own(b"]}".into()));
    Some(parts.into())
}

pub fn range(s: &Snapshot, range: lsp::Range) -> Option<Written> {
    if let Some(embedded) = &s.embedded {
        return written::write(&embedded::tokens(s, embedded, Some(range)));
    }
    let lines = s.lines();
    let range = lines.text_range(range);
    let items = ide::item_tokens(&s.db, s.file, Some(range));
    let start = items.first().map(|item| lines.position(item.start)).unwrap_or_default();
    let mut json = r#"{"data":["#.to_owned();
    let start = Gap { lines: start.line, columns: start.character, ..Gap::default() };
    let mut join = Join::new(&mut json, start);
    for item in &items {
        let is_wanted = |token| range.intersect(token + item.start).is_some();
        join.item(&Encoded::of(item, s.encoding, is_wanted));
    }
    json += "]}";
    Some(json.into())
}

/// The changes since the answer with the id `previous`. All tokens if this was not the last answer.
pub fn delta(s: &Snapshot, previous: &str) -> Option<Written> {
    let Some(previous) = s.answers.tokens.last().filter(|answer| answer.id == previous) else {
        return full(s);
    };
    let (items, kept) = renewed(&previous.items, ide::item_tokens(&s.db, s.file, None), s.encoding);
    let edit = changes(&previous.items, &items, kept);
    let edits = edit.map(|Edit { start, deleted, data }| {
        format!(r#"{{"start":{start},"deleteCount":{deleted},"data":[{data}]}}"#)
    });
    let answer = s.answers.tokens.is(items);
    let (id, edits) = (&answer.id, edits.unwrap_or_default());
    Some(format!(r#"{{"resultId":"{id}","edits":[{edits}]}}"#).into())
}

/// The new items. Items equal to old ones keep the numbers of the old ones.
fn renewed(old: &[Item], new: Vec<ItemTokens>, encoding: Encoding) -> (Vec<Item>, Unchanged) {
    let unchanged = Unchanged::of(old, &new, |old, new| old.tokens.is_same(new));
    let items = new.into_iter().enumerate().map(|(index, tokens)| {
        let encoded = match unchanged.old(index) {
            Some(kept) => old[kept].encoded.clone(),
            None => Arc::new(Encoded::of(&tokens, encoding, |_| true)),
        };
        Item { tokens, encoded }
    });
    (items.collect(), unchanged)
}

/// An edit of the protocol: replaces tokens with others.
struct Edit {
    /// The index of the first replaced number.
    start: usize,
    deleted: usize,
    data: String,
}

/// The edit that turns the tokens of the old items into those of the new ones.
fn changes(old: &[Item], new: &[Item], Unchanged { before, after, .. }: Unchanged) -> Option<Edit> {
    // The first token after the changed items is relative to the last one before it.
    let next = old[old.len() - after..].iter().position(|item| item.encoded.count > 0);
    let encode = |items: &[Item]| {
        let (unchanged, rest) = items.split_at(before);
        let (changed, rest) = rest.split_at(rest.len() - after);
        let mut data = String::new();
        let mut join = Join::new(&mut data, gap_after(unchanged));
        changed.iter().for_each(|item| join.item(&item.encoded));
        if let Some(next) = next {
            rest[..next].iter().for_each(|item| join.item(&item.encoded));
            join.first_token(&rest[next].encoded);
        }
        data
    };
    let (removed, inserted) = (encode(old), encode(new));
    let (removed, inserted) = (split_tokens(&removed), split_tokens(&inserted));
    let front = removed.iter().zip(&inserted).take_while(|(a, b)| a == b).count();
    let (removed, inserted) = (&removed[front..], &inserted[front..]);
    let back = removed.iter().rev().zip(inserted.iter().rev()).take_while(|(a, b)| a == b).count();
    let (removed, inserted) = (&removed[..removed.len() - back], &inserted[..inserted.len() - back]);
    let start = front + old[..before].iter().map(|item| item.encoded.count).sum::<usize>();
    let is_equal = removed.is_empty() && inserted.is_empty();
    (!is_equal).then(|| Edit {
        start: NUMBERS * start,
        deleted: NUMBERS * removed.len(),
        data: inserted.join(","),
    })
}

/// The protocol's numbers of a token: lines and columns since the token before, length, kind and modifiers.
const NUMBERS: usize = 5;

/// Splits JSON numbers into tokens.
fn split_tokens(data: &str) -> Vec<&str> {
    let ends = memchr_iter(b',', data.as_bytes()).skip(NUMBERS - 1).step_by(NUMBERS);
    let ends = ends.chain((!data.is_empty()).then_some(data.len()));
    let starts = std::iter::once(0).chain(ends.clone().map(|end| end + 1));
    starts.zip(ends).map(|(start, end)| &data[start..end]).collect()
}

/// Joins the tokens of items.
struct Join<'a> {
    json: &'a mut String,
    gap: Gap,
    is_empty: bool,
}

impl<'a> Join<'a> {
    /// `gap` is the text between the last token and the items.
    fn new(json: &'a mut String, gap: Gap) -> Self {
        Self { json, gap, is_empty: true }
    }

    fn item(&mut self, item: &Encoded) {
        self.place(item);
        self.json.push_str(&item.numbers);
    }

    /// Adds only the first token of an item that has tokens.
    fn first_token(&mut self, item: &Encoded) {
        self.place(item);
        let end = memchr_iter(b',', item.numbers.as_bytes()).nth(2);
        self.json.push_str(&item.numbers[..end.unwrap_or(item.numbers.len())]);
    }

    /// Adds the first two numbers of the item's first token, which are not part of the kept numbers.
    fn place(&mut self, item: &Encoded) {
        self.gap = self.gap.then(item.before);
        if item.count > 0 {
            if !std::mem::take(&mut self.is_empty) {
                self.json.push(',');
            }
            push_numbers(self.json, [self.gap.lines, self.gap.columns]);
            self.json.push(',');
            self.gap = item.after;
        }
    }
}

/// The text between the last token of the items and their end.
fn gap_after(items: &[Item]) -> Gap {
    items.iter().map(|item| &*item.encoded).fold(Gap::default(), |gap, item| match item.count {
        0 => gap.then(item.before),
        _ => item.after,
    })
}

/// The tokens of an item in the protocol's form, without the place of the first one.
struct Encoded {
    /// The text before the first token. If the item has no token, its whole text.
    before: Gap,
    /// The text from the start of the last token to the end of the item.
    after: Gap,
    count: usize,
    /// JSON, from the length of the first token on.
    numbers: Arc<str>,
}

impl Encoded {
    /// Encodes the tokens for whose range in the item `is_wanted` is true.
    fn of(item: &ItemTokens, encoding: Encoding, is_wanted: impl Fn(TextRange) -> bool) -> Self {
        let text: &str = &item.text;
        let (mut before, mut after, mut count) = (Gap::default(), Gap::default(), 0);
        let mut numbers = String::with_capacity(text.len() * 2);
        let mut end = 0;
        for token in item.iter() {
            let word = &text[token.range];
            // The protocol's tokens lie on one line. Block comments over several lines are highlighted by the editor's
            // grammar.
            if !is_wanted(token.range) || memchr2(b'\n', b'\r', word.as_bytes()).is_some() {
                continue;
            }
            let gap = after.then(Gap::of(&text[end..token.range.start().into()], encoding));
            if count == 0 {
                before = gap;
            } else {
                numbers.push(',');
                push_numbers(&mut numbers, [gap.lines, gap.columns]);
                numbers.push(',');
            }
            let length = width(word, encoding);
            push_numbers(&mut numbers, [length, token.kind as u32, u32::from(token.declaration)]);
            after = Gap { columns: length, ..Gap::default() };
            end = token.range.end().into();
            count += 1;
        }
        after = after.then(Gap::of(&text[end..], encoding));
        if count == 0 {
            before = after;
        }
        Self { before, after, count, numbers: numbers.into() }
    }
}

/// Appends numbers separated by commas. The formatter of the standard library takes several times as long.
fn push_numbers<const N: usize>(json: &mut String, numbers: [u32; N]) {
    let mut buffer = itoa::Buffer::new();
    for (place, number) in numbers.into_iter().enumerate() {
        if place > 0 {
            json.push(',');
        }
        json.push_str(buffer.format(number));
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

    fn decoded(data: &str) -> Vec<[u32; NUMBERS]> {
        let decode = |token: &str| {
            let numbers: Vec<u32> = token.split(',').map(|number| number.parse().unwrap()).collect();
            numbers.try_into().unwrap()
        };
        split_tokens(data).into_iter().map(decode).collect()
    }

    fn written(items: &[Item]) -> Vec<[u32; NUMBERS]> {
        let mut data = String::new();
        let mut join = Join::new(&mut data, Gap::default());
        items.iter().for_each(|item| join.item(&item.encoded));
        decoded(&data)
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
                let (items, _) = renewed(&[], items.clone(), encoding);
                for [lines, columns, length, ..] in written(&items) {
                    column = if lines == 0 { column } else { 0 } + columns;
                    line += lines;
                    let range = expected.next().unwrap();
                    assert_eq!((line, column), (range.start.line, range.start.character), "{text:?}");
                    assert_eq!(length, range.end.character - range.start.character, "{text:?}");
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
            let (mut sent, mut data): (Vec<Item>, Vec<[u32; NUMBERS]>) = (Vec::new(), Vec::new());
            for _ in 0..4 {
                let all = tokens(&pieces.concat());
                let expected = written(&renewed(&[], all.clone(), Encoding::Utf16).0);
                let (items, kept) = renewed(&sent, all, Encoding::Utf16);
                assert_eq!(written(&items), expected, "{:?}", pieces.concat());
                let edit = changes(&sent, &items, kept);
                assert_eq!(edit.is_none(), data == expected, "{:?}", pieces.concat());
                if let Some(Edit { start, deleted, data: inserted }) = edit {
                    let (start, count) = (start / NUMBERS, deleted / NUMBERS);
                    let (removed, inserted) = (&data[start..start + count], decoded(&inserted));
                    assert!(removed.first().zip(inserted.first()).is_none_or(|(old, new)| old != new));
                    assert!(removed.last().zip(inserted.last()).is_none_or(|(old, new)| old != new));
                    data.splice(start..start + count, inserted);
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
