//! Operands of inline assembly: the registers that their constraints require.

/// What a placeholder is replaced with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A register of this type.
    Register(&'static str),
    /// An integer constant, if its value is known.
    Constant(Option<i64>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Operand {
    /// The name by which the text refers to the operand.
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    /// The operand as written in the host text: `"=r"(x)`.
    pub(crate) source: String,
    pub(crate) is_read: bool,
    pub(crate) is_written: bool,
}

/// The register type that nvcc declares for a constraint letter. LLVM has the same letters and two more.
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
    /// The operand of a constraint. A constraint that is a number refers to an operand of `before`: the new operand
    /// then provides the initial value of that operand's register.
    pub(crate) fn of_constraint(constraint: &str, before: &mut [Operand]) -> Option<Operand> {
        let is_both = constraint.starts_with('+');
        let is_output = constraint.starts_with('=') || is_both;
        let letters = constraint.trim_start_matches(['=', '+', '&', '%']);
        let kind = match letters.as_bytes() {
            [b'n' | b'i'] => Kind::Constant(None),
            [digit, ..] if digit.is_ascii_digit() => {
                let same = before.get_mut(letters.parse::<usize>().ok()?)?;
                same.is_read = true;
                same.kind
            }
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

/// The operands of an LLVM constraint list: `=r,r,~{memory}`.
pub(crate) fn of_list(constraints: &str) -> Option<Vec<Operand>> {
    let mut operands = Vec::new();
    for constraint in constraints.split(',').map(str::trim) {
        if !constraint.is_empty() && !constraint.starts_with('~') {
            let operand = Operand::of_constraint(constraint, &mut operands)?;
            operands.push(operand);
        }
    }
    Some(operands)
}

/// The value of an expression, if it is an integer literal.
pub(crate) fn literal(expression: &str) -> Option<i64> {
    let text = expression.trim().trim_end_matches(['u', 'U', 'l', 'L']);
    let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        // Octal literals are rare, so they are not evaluated.
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
        assert!(of_list("=r,0").is_some_and(|all| all[0].is_read && all[0].is_written));
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
