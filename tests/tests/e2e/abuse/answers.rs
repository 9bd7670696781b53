//! What is true of every answer, whatever the text is: its ranges are in the text, and formatting changes only blanks.

use serde_json::{Value, json};

/// The lines of a document in UTF-16 units, without their line breaks, and the offset of each in bytes.
pub(super) struct Lines<'a> {
    text: &'a str,
    uri: &'a str,
    lines: Vec<(usize, &'a str)>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(uri: &'a str, text: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        for (at, end) in text.match_indices(['\n', '\r']) {
            let is_crlf = end == "\r" && text[at + 1..].starts_with('\n');
            if is_crlf {
                continue;
            }
            let is_second = end == "\n" && text[start..at].ends_with('\r');
            lines.push((start, &text[start..at - usize::from(is_second)]));
            start = at + 1;
        }
        lines.push((start, &text[start..]));
        Self { text, uri, lines }
    }

    /// The offset of a position, which is between two characters of a line.
    fn offset(&self, position: &Value) -> Result<usize, String> {
        let number =
            |name: &str| position[name].as_u64().ok_or_else(|| format!("{position} is not a position"));
        let (line, column) = (number("line")? as usize, number("character")? as usize);
        let Some(&(start, line)) = self.lines.get(line) else {
            return Err(format!("{position} is after the last of {} lines", self.lines.len()));
        };
        let mut units = 0;
        for (at, c) in line.char_indices() {
            if units == column {
                return Ok(start + at);
            }
            units += c.len_utf16();
        }
        if units != column {
            return Err(format!("{position} is not a place in the line {line:?}"));
        }
        Ok(start + line.len())
    }

    fn range(&self, range: &Value) -> Result<(usize, usize), String> {
        let (start, end) = (self.offset(&range["start"])?, self.offset(&range["end"])?);
        if start <= end { Ok((start, end)) } else { Err(format!("{range} ends before its start")) }
    }

    /// Checks that all ranges in an answer about the document are in its text, and that ranges that belong together
    /// contain each other.
    pub(super) fn check(&self, method: &str, answer: &Value) -> Result<(), String> {
        match method {
            "textDocument/semanticTokens/full" | "textDocument/semanticTokens/range" => self.tokens(answer),
            "textDocument/semanticTokens/full/delta" => Ok(()),
            _ => self.ranges(answer),
        }
    }

    fn ranges(&self, value: &Value) -> Result<(), String> {
        let object = match value {
            Value::Array(all) => return all.iter().try_for_each(|value| self.ranges(value)),
            Value::Object(object) => object,
            _ => return Ok(()),
        };
        let uri = object.get("uri").or(object.get("targetUri")).and_then(Value::as_str);
        if uri.is_some_and(|uri| uri != self.uri) {
            return Ok(());
        }
        if let (Some(start), Some(end)) = (object.get("startLine"), object.get("endLine"))
            && !(start.as_u64() <= end.as_u64() && end.as_u64() < Some(self.lines.len() as u64))
        {
            return Err(format!("{value} is not in the text"));
        }
        if object.contains_key("start") && object.contains_key("end") {
            return self.range(value).map(|_| ());
        }
        let inside = |outer: Option<&Value>, inner: Option<&Value>| {
            let (Some(outer), Some(inner)) = (outer, inner) else { return Ok(()) };
            let (outer, inner) = (self.range(outer)?, self.range(inner)?);
            let is_inside = outer.0 <= inner.0 && inner.1 <= outer.1;
            if is_inside { Ok(()) } else { Err(format!("the ranges of {value} do not contain each other")) }
        };
        inside(object.get("range"), object.get("selectionRange"))?;
        inside(object.get("parent").and_then(|parent| parent.get("range")), object.get("range"))?;
        object.iter().try_for_each(|(name, value)| match name.as_str() {
            "position" => self.offset(value).map(|_| ()),
            _ => self.ranges(value),
        })
    }

    /// Each token is in one line, after the token before it.
    fn tokens(&self, answer: &Value) -> Result<(), String> {
        let (mut line, mut column, mut end) = (0, 0, 0);
        for token in super::numbers(answer).chunks(5) {
            if token[0] > 0 {
                (line, column, end) = (line + token[0], 0, 0);
            }
            column += token[1];
            for character in [column, column + token[2]] {
                self.offset(&json!({ "line": line, "character": character }))?;
            }
            if column < end || token[2] == 0 {
                return Err(format!("{token:?} in line {line} is empty or starts before the end of another"));
            }
            end = column + token[2];
        }
        Ok(())
    }

    /// The text after edits, which change only blanks.
    pub(super) fn formatted(&self, edits: &Value) -> String {
        let mut edits: Vec<_> = edits
            .as_array()
            .into_iter()
            .flatten()
            .map(|edit| {
                (self.range(&edit["range"]).expect("a range"), edit["newText"].as_str().expect("a text"))
            })
            .collect();
        edits.sort_by_key(|(range, _)| *range);
        let overlap = edits.windows(2).find(|pair| pair[0].0.1 > pair[1].0.0);
        assert!(overlap.is_none(), "{overlap:?} in {:?}", self.text);
        let mut text = self.text.to_owned();
        for ((start, end), new) in edits.into_iter().rev() {
            text.replace_range(start..end, new);
        }
        let bare = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace()).collect() };
        assert_eq!(bare(&text), bare(self.text), "formatting of {:?}", self.text);
        text
    }
}
