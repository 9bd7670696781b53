//! Which brace is not closed, where the text alone does not tell: the one whose partner is indented as the brace around it.

use ptx_syntax::SyntaxKind;
use text_size::{TextRange, TextSize};

/// A brace that was meant to be closed before the one that closes it.
pub(super) struct Unclosed {
    pub(super) open: TextRange,
    /// The start of the line on which its block ends too late.
    pub(super) before: TextSize,
}

/// Looks for the brace inside the one at `outer`, which nothing closes in an item's text.
pub(super) fn inside(text: &str, outer: TextRange) -> Option<Unclosed> {
    let mut open: Vec<TextRange> = Vec::new();
    let mut start = TextSize::new(0);
    for token in ptx_syntax::lex(text) {
        let range = TextRange::at(start, TextSize::new(token.len));
        start = range.end();
        match token.kind {
            SyntaxKind::L_BRACE if range.start() >= outer.start() => open.push(range),
            SyntaxKind::R_BRACE => {
                let Some(partner) = open.pop() else { continue };
                let Some(around) = open.last() else { continue };
                let (own, above) = (indent(text, partner.start()), indent(text, around.start()));
                let line = line_start(text, range.start());
                let is_first = text[line..range.start().into()].trim().is_empty();
                if is_first && own > above && indent(text, range.start()) == above {
                    return Some(Unclosed { open: partner, before: TextSize::new(line as u32) });
                }
            }
            _ => {}
        }
    }
    None
}

fn line_start(text: &str, at: TextSize) -> usize {
    text[..usize::from(at)].rfind('\n').map_or(0, |before| before + 1)
}

/// Blanks at the start of the line of an offset.
pub(super) fn indent(text: &str, at: TextSize) -> usize {
    let line = &text[line_start(text, at)..];
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(u32, u32)> {
        let outer = TextRange::at(TextSize::new(text.find('{').unwrap() as u32), TextSize::new(1));
        inside(text, outer).map(|found| (found.open.start().into(), found.before.into()))
    }

    #[test]
    fn indentation_tells_which() {
        assert_eq!(found("k\n{\n  {\n    ret;\n  ret;\n}\n"), Some((6, 24)));
        // The innermost, where the mistake shifts all partners.
        assert_eq!(found("k\n{\n  {\n    {\n      ret;\n  }\n}\n"), Some((12, 25)));
        assert_eq!(found("k\n{\n  {\n    ret;\n  }\n"), None);
        assert_eq!(found("k\n{\n{\nret;\n}\n"), None);
    }
}
