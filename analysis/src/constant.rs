//! Constant expressions.
//!
//! Integers are 64 bits wide, signed unless they are written with `U` or are too large, and wrap, as the manual
//! defines. An expression may contain at most one address, to which integers are added. The address stays symbolic, and
//! the caller resolves its name.

use ptx_syntax::SyntaxKind;
use ptx_syntax::ast::literal::{self, Float};
use ptx_syntax::flat::Node;
use text_size::TextRange;

/// The value of an expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    Int {
        value: i64,
        unsigned: bool,
    },
    /// Written `0f…`: the bits.
    F32(u32),
    /// Written `0d…` or in decimal.
    F64(f64),
    /// The address of a name, plus bytes.
    Address {
        name: TextRange,
        addend: i64,
        generic: bool,
    },
    /// Eight bits of such an address, from bit `shift` up.
    AddressByte {
        name: TextRange,
        addend: i64,
        generic: bool,
        shift: u8,
    },
}

impl Value {
    pub const fn int(value: i64) -> Self {
        Self::Int { value, unsigned: false }
    }

    /// The integer, if it is one.
    pub fn as_int(self) -> Option<i64> {
        match self {
            Self::Int { value, .. } => Some(value),
            _ => None,
        }
    }
}

/// The reason why an expression has no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstantError {
    pub range: TextRange,
    pub message: &'static str,
}

type Result<T> = std::result::Result<T, ConstantError>;

/// Evaluates an expression node. `text` is the item's text.
pub fn evaluate(node: Node<'_>, text: &str) -> Result<Value> {
    let fail = |message| Err(ConstantError { range: node.text_range(), message });
    match node.kind() {
        SyntaxKind::LITERAL => {
            literal_value(&text[node.text_range()]).map_or_else(|| fail("expected a number"), Ok)
        }
        SyntaxKind::NAME_REF => Ok(Value::Address { name: node.text_range(), addend: 0, generic: false }),
        SyntaxKind::PAREN_EXPR => match node.first_child() {
            Some(inner) => evaluate(inner, text),
            None => fail("expected an expression"),
        },
        SyntaxKind::PREFIX_EXPR => prefix(node, text),
        SyntaxKind::BINARY_EXPR => binary(node, text),
        SyntaxKind::CONDITIONAL_EXPR => {
            let mut parts = node.children();
            let (Some(condition), Some(yes), Some(no)) = (parts.next(), parts.next(), parts.next()) else {
                return fail("expected `condition ? value : value`");
            };
            // The alternative that is not selected must have a value too.
            match (evaluate(condition, text)?, evaluate(yes, text)?, evaluate(no, text)?) {
                (Value::Int { value, .. }, yes @ Value::Int { .. }, no @ Value::Int { .. }) => {
                    Ok(if value == 0 { no } else { yes })
                }
                _ => fail("the condition and both values must be integers"),
            }
        }
        SyntaxKind::CAST_EXPR => {
            let Some(inner) = node.last_child() else { return fail("expected an expression") };
            let unsigned = match word(node, text, SyntaxKind::DOT_WORD) {
                Some(".u64") => true,
                Some(".s64") => false,
                _ => return fail("constants can be converted only to `.s64` and `.u64`"),
            };
            match evaluate(inner, text)? {
                Value::Int { value, .. } => Ok(Value::Int { value, unsigned }),
                _ => fail("only integer constants can be converted"),
            }
        }
        SyntaxKind::CALL_EXPR => {
            let generic = text[node.text_range()].trim_start().starts_with("generic");
            match node.last_child().map(|inner| evaluate(inner, text)) {
                Some(Ok(Value::Address { name, addend, .. })) if generic => {
                    Ok(Value::Address { name, addend, generic: true })
                }
                Some(Err(error)) => Err(error),
                _ => fail("expected `generic(name)`"),
            }
        }
        SyntaxKind::MASK_EXPR => mask(node, text),
        _ => fail("expected a constant expression"),
    }
}

/// An integer of a directive or declaration, which has 32 bits. `None` if it is too large. For negative numbers, and
/// numbers written so large that they are negative, only the low bits count.
pub fn narrow(value: i64) -> Option<u32> {
    (value <= i64::from(u32::MAX)).then_some(value as u32)
}

/// The value of a literal token. The parser reports invalid digits.
pub fn literal_value(text: &str) -> Option<Value> {
    if let Ok(integer) = literal::integer(text) {
        return Some(Value::Int { value: integer.value as i64, unsigned: integer.is_unsigned });
    }
    Some(match literal::float(text).ok()? {
        Float::Single(bits) => Value::F32(bits),
        Float::Double(bits) => Value::F64(f64::from_bits(bits)),
    })
}

fn word<'t>(node: Node<'_>, text: &'t str, kind: SyntaxKind) -> Option<&'t str> {
    node.tokens(kind).next().map(|range| &text[range])
}

/// The operator of a prefix or binary expression: its first token.
fn operator(node: Node<'_>) -> Option<SyntaxKind> {
    node.own_tokens().next().map(|token| token.kind)
}

fn prefix(node: Node<'_>, text: &str) -> Result<Value> {
    let fail = |message| Err(ConstantError { range: node.text_range(), message });
    let Some(inner) = node.last_child() else { return fail("expected an expression") };
    let value = evaluate(inner, text)?;
    if matches!(value, Value::F32(_)) && inner.kind() == SyntaxKind::LITERAL {
        return fail("the bits of `0f…` include the sign; `-` is not allowed");
    }
    Ok(match (operator(node), value) {
        (Some(SyntaxKind::PLUS), value) => value,
        (Some(SyntaxKind::MINUS), Value::Int { value, unsigned }) => {
            Value::Int { value: value.wrapping_neg(), unsigned }
        }
        (Some(SyntaxKind::MINUS), Value::F64(value)) => Value::F64(-value),
        (Some(SyntaxKind::MINUS), Value::F32(bits)) => Value::F32(bits ^ 1 << 31),
        (Some(SyntaxKind::TILDE), Value::Int { value, unsigned }) => Value::Int { value: !value, unsigned },
        (Some(SyntaxKind::BANG), Value::Int { value, .. }) => Value::int(i64::from(value == 0)),
        _ => return fail("operator cannot be applied to this value"),
    })
}

fn binary(node: Node<'_>, text: &str) -> Result<Value> {
    let fail = |message| Err(ConstantError { range: node.text_range(), message });
    let mut operands = node.children();
    let (Some(left), Some(right)) = (operands.next(), operands.next()) else {
        return fail("expected two operands");
    };
    let (left, right) = (evaluate(left, text)?, evaluate(right, text)?);
    let Some(operator) = operator(node) else { return fail("expected an operator") };
    match (left, right) {
        (Value::Int { value: a, unsigned: ua }, Value::Int { value: b, unsigned: ub }) => {
            match integer(operator, a, b, ua, ub) {
                Some(value) => Ok(value),
                None => fail("division by zero"),
            }
        }
        (Value::F64(_), Value::F64(0.0)) if operator == SyntaxKind::SLASH => fail("division by zero"),
        (Value::F64(a), Value::F64(b)) => match float(operator, a, b) {
            Some(value) => Ok(value),
            None => fail("operator cannot be applied to floating-point constants"),
        },
        (Value::Address { name, addend, generic }, Value::Int { value, .. }) => match operator {
            SyntaxKind::PLUS => Ok(Value::Address { name, addend: addend.wrapping_add(value), generic }),
            SyntaxKind::MINUS => Ok(Value::Address { name, addend: addend.wrapping_sub(value), generic }),
            _ => fail("only `+` and `-` can be applied to an address"),
        },
        (Value::Int { value, .. }, Value::Address { name, addend, generic })
            if operator == SyntaxKind::PLUS =>
        {
            Ok(Value::Address { name, addend: addend.wrapping_add(value), generic })
        }
        _ => fail("operator cannot be applied to these two operands"),
    }
}

/// `None` for a division by zero.
fn integer(operator: SyntaxKind, a: i64, b: i64, left_unsigned: bool, right_unsigned: bool) -> Option<Value> {
    use SyntaxKind as K;
    let unsigned = left_unsigned || right_unsigned;
    let (ua, ub) = (a as u64, b as u64);
    let truth = |truth: bool| Value::int(i64::from(truth));
    let order = if unsigned { ua.cmp(&ub) } else { a.cmp(&b) };
    let value = match operator {
        K::PLUS => a.wrapping_add(b),
        K::MINUS => a.wrapping_sub(b),
        K::STAR => a.wrapping_mul(b),
        K::SLASH if unsigned => ua.checked_div(ub)? as i64,
        K::PERCENT if unsigned => ua.checked_rem(ub)? as i64,
        K::SLASH if b == 0 => return None,
        K::PERCENT if b == 0 => return None,
        K::SLASH => a.wrapping_div(b),
        K::PERCENT => a.wrapping_rem(b),
        // The type of a shift is that of its left operand; a shift by 64 or more shifts all bits out.
        K::SHL => {
            let value = u32::try_from(ub).ok().and_then(|count| a.checked_shl(count)).unwrap_or(0);
            return Some(Value::Int { value, unsigned: left_unsigned });
        }
        K::SHR => {
            let count = u32::try_from(ub).unwrap_or(u32::MAX);
            let value =
                if left_unsigned { ua.checked_shr(count).unwrap_or(0) as i64 } else { a >> count.min(63) };
            return Some(Value::Int { value, unsigned: left_unsigned });
        }
        K::AMP => a & b,
        K::PIPE => a | b,
        K::CARET => a ^ b,
        K::AMP2 => return Some(truth(a != 0 && b != 0)),
        K::PIPE2 => return Some(truth(a != 0 || b != 0)),
        K::EQ2 => return Some(truth(a == b)),
        K::NEQ => return Some(truth(a != b)),
        K::LT => return Some(truth(order.is_lt())),
        K::LE => return Some(truth(order.is_le())),
        K::GT => return Some(truth(order.is_gt())),
        K::GE => return Some(truth(order.is_ge())),
        _ => return None,
    };
    Some(Value::Int { value, unsigned })
}

fn float(operator: SyntaxKind, a: f64, b: f64) -> Option<Value> {
    use SyntaxKind as K;
    let truth = |truth: bool| Some(Value::int(i64::from(truth)));
    match operator {
        K::PLUS => Some(Value::F64(a + b)),
        K::MINUS => Some(Value::F64(a - b)),
        K::STAR => Some(Value::F64(a * b)),
        K::SLASH => Some(Value::F64(a / b)),
        K::EQ2 => truth(a == b),
        K::NEQ => truth(a != b),
        K::LT => truth(a < b),
        K::LE => truth(a <= b),
        K::GT => truth(a > b),
        K::GE => truth(a >= b),
        _ => None,
    }
}

/// `0xFF00(name)`: the second byte of an address.
fn mask(node: Node<'_>, text: &str) -> Result<Value> {
    let fail = |message| Err(ConstantError { range: node.text_range(), message });
    let mut parts = node.children();
    let (Some(mask), Some(inner)) = (parts.next(), parts.next()) else {
        return fail("expected `0xFF(name)`");
    };
    let bits = evaluate(mask, text)?.as_int().unwrap_or(0) as u64;
    let shift = bits.trailing_zeros() & !7;
    match evaluate(inner, text)? {
        Value::Address { name, addend, generic } if bits != 0 && bits >> shift == 0xFF => {
            Ok(Value::AddressByte { name, addend, generic, shift: shift as u8 })
        }
        Value::Int { value, .. } if bits != 0 && bits >> shift == 0xFF => {
            Ok(Value::int((value >> shift) & 0xFF))
        }
        _ => fail("the mask must select exactly one byte of the address"),
    }
}
