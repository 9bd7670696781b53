//! Writes the truth tables of `lop3` as expressions.

use std::sync::LazyLock;

/// The tables of the operands.
const A: u8 = 0xf0;
const B: u8 = 0xcc;
const C: u8 = 0xaa;

/// The operator at the top of an expression. Operands of another binary operator are in parentheses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Top {
    /// A name, or the complement of an expression.
    Single,
    And,
    Or,
    Xor,
}

#[derive(Clone, Debug)]
struct Expression {
    text: String,
    top: Top,
    /// The number of operators.
    size: usize,
}

/// The most operators that an expression needs.
const LONGEST: usize = 9;

static EXPRESSIONS: LazyLock<Vec<Expression>> = LazyLock::new(expressions);

/// A short expression of `a`, `b` and `c` that has this truth table.
pub(super) fn expression(table: u8) -> &'static str {
    EXPRESSIONS.get(usize::from(table)).map_or("", |expression| &expression.text)
}

fn expressions() -> Vec<Expression> {
    let mut known: Vec<Option<Expression>> = vec![None; 256];
    for (table, text) in [(0, "0"), (0xff, "~0"), (A, "a"), (B, "b"), (C, "c")] {
        known[table as usize] = Some(Expression { text: text.to_owned(), top: Top::Single, size: 0 });
    }
    // Selections and the majority are best known in this form, although others are shorter.
    let names = [(A, "a"), (B, "b"), (C, "c")];
    for (x, y, z) in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)] {
        let [(x, xs), (y, ys), (z, zs)] = [names[x], names[y], names[z]];
        let text = format!("({xs} & {ys}) | (~{xs} & {zs})");
        known[usize::from(x & y | !x & z)] = Some(Expression { text, top: Top::Or, size: 3 });
    }
    let majority = "(a & b) | (a & c) | (b & c)".to_owned();
    known[usize::from(A & B | A & C | B & C)] = Some(Expression { text: majority, top: Top::Or, size: 3 });
    for size in 1..=LONGEST {
        let of_size = |size: usize| {
            let is = move |e: &Option<Expression>| e.as_ref().is_some_and(|e| e.size == size);
            let known = &known;
            (0..=u8::MAX).rev().filter(move |&table| is(&known[usize::from(table)]))
        };
        let mut new: Vec<(u8, Expression)> = Vec::new();
        for table in of_size(size - 1) {
            let Some(inner) = &known[usize::from(table)] else { continue };
            let text = format!("~{}", within(inner, Top::Single));
            new.push((!table, Expression { text, top: Top::Single, size }));
        }
        for left in 0..size {
            for (x, y) in of_size(left).flat_map(|x| of_size(size - 1 - left).map(move |y| (x, y))) {
                let (Some(one), Some(other)) = (&known[usize::from(x)], &known[usize::from(y)]) else {
                    continue;
                };
                for (table, top, sign) in
                    [(x & y, Top::And, '&'), (x | y, Top::Or, '|'), (x ^ y, Top::Xor, '^')]
                {
                    if known[usize::from(table)].is_none() {
                        let text = format!("{} {sign} {}", within(one, top), within(other, top));
                        new.push((table, Expression { text, top, size }));
                    }
                }
            }
        }
        for (table, expression) in new {
            known[usize::from(table)].get_or_insert(expression);
        }
    }
    known.into_iter().flatten().collect()
}

/// The text of an operand of an operator.
fn within(operand: &Expression, top: Top) -> String {
    match operand.top == Top::Single || operand.top == top {
        true => operand.text.clone(),
        false => format!("({})", operand.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates an expression of one-letter names, `0`, `~`, `&`, `|`, `^` and parentheses without precedence.
    fn evaluate(text: &mut std::iter::Peekable<impl Iterator<Item = char>>) -> u8 {
        let mut value = single(text);
        while let Some(sign) = text.next_if(|c| matches!(c, '&' | '|' | '^')) {
            let other = single(text);
            value = match sign {
                '&' => value & other,
                '|' => value | other,
                _ => value ^ other,
            };
        }
        value
    }

    fn single(text: &mut std::iter::Peekable<impl Iterator<Item = char>>) -> u8 {
        match text.next() {
            Some('~') => !single(text),
            Some('(') => {
                let value = evaluate(text);
                assert_eq!(text.next(), Some(')'));
                value
            }
            Some('a') => A,
            Some('b') => B,
            Some('c') => C,
            other => {
                assert_eq!(other, Some('0'));
                0
            }
        }
    }

    #[test]
    fn every_table_has_an_expression() {
        for table in 0..=u8::MAX {
            let text = expression(table);
            assert_eq!(evaluate(&mut text.chars().filter(|c| *c != ' ').peekable()), table, "{text}");
        }
        assert_eq!(expression(0x96), "a ^ b ^ c");
        assert_eq!(expression(0xc0), "a & b");
        assert_eq!(expression(0x0f), "~a");
        assert_eq!(expression(0xf8), "a | (b & c)");
        assert_eq!(expression(0xca), "(a & b) | (~a & c)");
    }
}
