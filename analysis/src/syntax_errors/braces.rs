//! Finds unclosed braces by indentation. Counting braces alone does not tell which brace is unclosed; here it is the
//! one for which no `}` with the same indentation exists.

use ptx_syntax::SyntaxKind;
use text_size::{TextRange, TextSize};

/// The number of open braces that a `}` is compared with.
const MAX_AROUND: usize = 200;

/// An opening brace without a closing brace of the same indentation.
pub(super) struct Unclosed {
    /// The brace that is unclosed according to the count of braces.
    pub(super) counted: TextRange,
    pub(super) open: TextRange,
    /// The blanks before the first token on the brace's line.
    pub(super) indentation: TextRange,
    /// The first `}` that closes an outer brace while this one is open.
    pub(super) passed: Option<TextRange>,
}

/// An open brace.
struct Open {
    brace: TextRange,
    indentation: TextRange,
}

impl Open {
    fn unclosed(self, passed: Option<TextRange>) -> Unclosed {
        Unclosed { counted: self.brace, open: self.brace, indentation: self.indentation, passed }
    }
}

/// The unclosed braces of an item's text, in text order.
pub(super) fn unclosed(text: &str) -> Vec<Unclosed> {
    // The open braces according to the count and according to the indentation. At the end, both lists have the same
    // length.
    let mut counted: Vec<TextRange> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut unclosed: Vec<Unclosed> = Vec::new();
    let mut indentation = TextRange::default();
    let mut at_line_start = true;
    let mut start = TextSize::new(0);
    for token in ptx_syntax::lex(text) {
        let brace = TextRange::at(start, TextSize::new(token.len));
        start = brace.end();
        match token.kind {
            SyntaxKind::WHITESPACE => {
                if let Some(line) = text[brace].rfind('\n') {
                    let blanks = TextSize::of(&text[brace][line + 1..]);
                    indentation = TextRange::new(brace.end() - blanks, brace.end());
                    at_line_start = true;
                }
                continue;
            }
            SyntaxKind::L_BRACE => {
                counted.push(brace);
                open.push(Open { brace, indentation });
            }
            SyntaxKind::R_BRACE => {
                counted.pop();
                if at_line_start {
                    let inner = open.split_off(open.len() - passed(&open, indentation.len()));
                    unclosed.extend(inner.into_iter().map(|open| open.unclosed(Some(brace))));
                }
                // If no brace is open, the brace that was last considered unclosed was only indented differently.
                if open.pop().is_none() {
                    unclosed.pop();
                }
            }
            _ => {}
        }
        at_line_start = false;
    }
    unclosed.extend(open.into_iter().map(|open| open.unclosed(None)));
    unclosed.sort_unstable_by_key(|unclosed| unclosed.open.start());
    unclosed.iter_mut().zip(counted).for_each(|(unclosed, counted)| unclosed.counted = counted);
    unclosed
}

/// The number of open braces that a `}` at the start of a line skips. It skips braces with a larger indentation if the
/// next brace after them has its own indentation.
fn passed(open: &[Open], own: TextSize) -> usize {
    let mut around = open.iter().rev().take(MAX_AROUND).enumerate();
    let partner = around.find(|(_, open)| open.indentation.len() <= own);
    partner.filter(|(_, open)| open.indentation.len() == own).map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// The lines of the unclosed braces and of the `}` that skip them.
    fn check(text: &str, expected: Expect) {
        let line = |range: TextRange| text[..range.end().into()].lines().count();
        let found = unclosed(text).into_iter().map(|found| {
            let passed =
                found.passed.map_or(String::new(), |passed| format!(", passed in line {}", line(passed)));
            format!("{} for {}{passed}", line(found.open), line(found.counted))
        });
        expected.assert_eq(&found.collect::<Vec<_>>().join("; "));
    }

    #[test]
    fn indentation_tells_which() {
        check("k\n{\n  {\n    ret;\n  ret;\n}\n", expect!["3 for 2, passed in line 6"]);
        // The mistake shifts the partners of all braces, so the innermost one is reported.
        check("k\n{\n  {\n    {\n      ret;\n  }\n}\n", expect!["4 for 2, passed in line 6"]);
        check("k\n{\n  {\n    ret;\n  }\n", expect!["2 for 2"]);
    }

    #[test]
    fn several() {
        check(
            "k {\n  {\n    {\n      ret;\n}\n",
            expect!["2 for 1, passed in line 5; 3 for 2, passed in line 5"],
        );
        check(
            "k {\n  {\n    ret;\n  {\n    ret;\n}\n",
            expect!["2 for 1, passed in line 6; 4 for 2, passed in line 6"],
        );
        check("k {\n  {\n    {\n      ret;\n  }\n", expect!["1 for 1; 3 for 2, passed in line 5"]);
    }

    #[test]
    fn indentation_that_tells_nothing() {
        check("k\n{\n{\nret;\n}\n", expect!["2 for 2"]);
        // A closed block with a different indentation, before an unclosed one.
        check("k {\n    {\n    ret;\n  }\n  {\n    ret;\n}\n", expect!["5 for 1, passed in line 7"]);
        check("k {\n  {\n    ret;\n}\n  {\n    ret;\n}\n", expect!["2 for 1, passed in line 4"]);
        check("k {\n  {\n    ret;\n}\n  ret;\n", expect!["2 for 1, passed in line 4"]);
    }
}
