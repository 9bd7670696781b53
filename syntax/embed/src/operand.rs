//! Operands of inline assembly: what their constraints say of the registers that stand for them.

/// What a placeholder stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A register of this type.
    Register(&'static str),
    /// An integer constant, if its value is known.
    Constant(Option<i64>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Operand {
    /// By which the text names it, if it has a name.
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    /// As the host text has it: `"=r"(x)`.
    pub(crate) source: String,
    pub(crate) is_read: bool,
    pub(crate) is_written: bool,
}

/// The register that nvcc declares for a letter; LLVM has the same letters, and two more.
fn register(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'b' => ".pred",
        b'c' | b'h' => ".b16",
        b'r' => ".b32",
        b'l' => ".b64",
        b'q' => ".b128",
        b'f' => ".f32",
        b'd' => ".f64",
        _ => return None,
    })
}

impl Operand {
    /// An operand by its constraint. `before` are the operands that a digit refers to.
    pub(crate) fn of_constraint(constraint: &str, before: &[Operand]) -> Option<Operand> {
        let is_both = constraint.starts_with('+');
        let is_output = constraint.starts_with('=') || is_both;
        let letters = constraint.trim_start_matches(['=', '+', '&', '%']);
        let kind = match letters.as_bytes() {
            [b'n' | b'i'] => Kind::Constant(None),
            [letter] if letter.is_ascii_digit() => before.get(usize::from(letter - b'0'))?.kind,
            [letter] => Kind::Register(register(*letter)?),
            _ => return None,
        };
        Some(Operand {
            name: None,
            kind,
            source: format!("\"{constraint}\""),
            is_read: is_both || !is_output,
            is_written: is_output,
        })
    }
}

/// The operands of a list of constraints as LLVM writes it: `=r,r,~{memory}`.
pub(crate) fn of_list(constraints: &str) -> Option<Vec<Operand>> {
    let mut operands = Vec::new();
    for constraint in constraints.split(',').map(str::trim) {
        if !constraint.is_empty() && !constraint.starts_with('~') {
            operands.push(Operand::of_constraint(constraint, &operands)?);
        }
    }
    Some(operands)
}

/// The value of an expression that is an integer literal.
pub(crate) fn literal(expression: &str) -> Option<i64> {
    let text = expression.trim().trim_end_matches(['u', 'U', 'l', 'L']);
    let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        // Octal is rare, and not worth a mistake.
        None if text.len() > 1 && text.starts_with('0') => None,
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints() {
        let kinds =
            |list| of_list(list).map(|all| all.iter().map(|o| (o.kind, o.is_written)).collect::<Vec<_>>());
        let b32 = Kind::Register(".b32");
        assert_eq!(
            kinds("=&r, 0,d,~{memory},n"),
            Some(vec![
                (b32, true),
                (b32, false),
                (Kind::Register(".f64"), false),
                (Kind::Constant(None), false)
            ])
        );
        assert_eq!(kinds("=v,v"), None);
        assert_eq!(kinds("=rm"), None);
    }

    #[test]
    fn literals() {
        assert_eq!(literal(" 16u "), Some(16));
        assert_eq!(literal("0x1F"), Some(31));
        assert_eq!(literal("(4)"), Some(4));
        assert_eq!(literal("N"), None);
        assert_eq!(literal("017"), None);
    }
}
