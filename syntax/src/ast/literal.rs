//! The values of literals.

/// The number of threads in a warp. It is the only named number, and is allowed wherever a number is.
pub const WARP_SIZE: &str = "WARP_SZ";

/// The reason why a number has no value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LiteralError {
    /// No digit after the prefix.
    NoDigits,
    /// The first character that is not a digit of the base.
    BadDigit { digit: char, base: u32 },
    /// The number has more than 64 bits, and ptxas rejects it too.
    TooLarge,
    /// The number is nearer to zero than any normal number of double precision.
    TooSmall,
    /// The number of digits in a `0f` or `0d` literal does not match its width.
    WrongDigitCount { expected: u32, found: u32 },
}

impl LiteralError {
    /// The message for the user about the literal `text`.
    pub fn message(self, text: &str) -> String {
        match self {
            LiteralError::NoDigits => format!("number `{text}` has no digits"),
            LiteralError::BadDigit { digit, base } => {
                let base = match base {
                    2 => "binary",
                    8 => "octal",
                    16 => "hexadecimal",
                    _ => "decimal",
                };
                format!("`{digit}` is not a digit of {base} number `{text}`")
            }
            LiteralError::TooLarge => format!("`{text}` does not fit in 64 bits"),
            LiteralError::TooSmall => format!("`{text}` is too small for a 64-bit float"),
            LiteralError::WrongDigitCount { expected, found } => {
                format!("expected {expected} hexadecimal digits in `{text}`, found {found}")
            }
        }
    }
}

/// An integer literal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Integer {
    pub value: u64,
    /// The literal has type `.u64`, because it ends in `U` or does not fit into `.s64`.
    pub is_unsigned: bool,
    /// The literal has more than 64 bits. `value` holds the low 64.
    ///
    /// ptxas silently accepts such a literal unless it appends a digit to a value whose top bit is set. Only then it
    /// reports an error.
    pub is_truncated: bool,
}

/// A floating-point literal, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Float {
    /// `0f`: single precision, exactly these bits.
    Single(u32),
    /// `0d` or decimal: double precision.
    Double(u64),
}

impl Float {
    /// The value in double precision.
    pub fn to_f64(self) -> f64 {
        match self {
            Float::Single(bits) => f64::from(f32::from_bits(bits)),
            Float::Double(bits) => f64::from_bits(bits),
        }
    }
}

/// The value of `12`, `0x1F`, `017`, `0b11`, each with an optional `U`, and of `WARP_SZ`.
pub fn integer(text: &str) -> Result<Integer, LiteralError> {
    // Nearly all literals are decimal and short.
    if let bytes @ ([_] | [b'1'..=b'9', ..]) = text.as_bytes()
        && bytes.len() < 19
        && bytes.iter().all(u8::is_ascii_digit)
    {
        let value = bytes.iter().fold(0, |value, digit| 10 * value + u64::from(digit - b'0'));
        return Ok(Integer { value, is_unsigned: false, is_truncated: false });
    }
    if text == WARP_SIZE {
        return Ok(Integer { value: 32, is_unsigned: false, is_truncated: false });
    }
    let (digits, marked_unsigned) = match text.strip_suffix('U') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let (digits, base) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.is_empty() {
        return Err(LiteralError::NoDigits);
    }
    let mut value = 0u64;
    let mut is_truncated = false;
    let mut overflow = false;
    for digit in digits.chars() {
        let Some(number) = digit.to_digit(base) else { return Err(LiteralError::BadDigit { digit, base }) };
        let (scaled, scale_overflow) = value.overflowing_mul(u64::from(base));
        let (sum, add_overflow) = scaled.overflowing_add(u64::from(number));
        is_truncated |= scale_overflow || add_overflow;
        overflow |= value > i64::MAX as u64;
        value = sum;
    }
    if overflow {
        return Err(LiteralError::TooLarge);
    }
    Ok(Integer { value, is_unsigned: marked_unsigned || i64::try_from(value).is_err(), is_truncated })
}

/// The value of `0f3F800000`, `0d3FF0000000000000`, `1.5`, `1e-5`.
pub fn float(text: &str) -> Result<Float, LiteralError> {
    match text.as_bytes() {
        [b'0', b'f' | b'F', ..] => float_bits(&text[2..], 8).map(|bits| Float::Single(bits as u32)),
        [b'0', b'd' | b'D', ..] => float_bits(&text[2..], 16).map(Float::Double),
        _ => match text.parse::<f64>() {
            // No digits of a decimal number mean infinity, so the number is too large.
            Ok(value) if value.is_infinite() => Err(LiteralError::TooLarge),
            Ok(value) if !value.is_normal() && has_nonzero_digit(text) => Err(LiteralError::TooSmall),
            Ok(value) => Ok(Float::Double(value.to_bits())),
            Err(_) => {
                let digit = text
                    .chars()
                    .find(|character| !matches!(character, '0'..='9' | '.' | 'e' | 'E' | '+' | '-'));
                Err(digit.map_or(LiteralError::NoDigits, |digit| LiteralError::BadDigit { digit, base: 10 }))
            }
        },
    }
}

/// Whether a digit before the exponent is not zero.
fn has_nonzero_digit(text: &str) -> bool {
    text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).any(|byte| matches!(byte, b'1'..=b'9'))
}

fn float_bits(digits: &str, expected: u32) -> Result<u64, LiteralError> {
    if let Some(digit) = digits.chars().find(|digit| !digit.is_ascii_hexdigit()) {
        return Err(LiteralError::BadDigit { digit, base: 16 });
    }
    let found = digits.len() as u32;
    if found != expected {
        return Err(LiteralError::WrongDigitCount { expected, found });
    }
    u64::from_str_radix(digits, 16).map_err(|_| LiteralError::TooLarge)
}

/// The text of a string literal without its quotes and with its escapes replaced.
pub fn string(text: &str) -> String {
    let inner = text.strip_prefix('"').unwrap_or(text);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> u64 {
        integer(text).unwrap().value
    }

    #[test]
    fn integers() {
        assert_eq!(value("0"), 0);
        assert_eq!(value("0U"), 0);
        assert_eq!(value("42"), 42);
        assert_eq!(value("0x1fU"), 31);
        assert_eq!(value("017"), 15);
        assert_eq!(value("0b101"), 5);
        assert_eq!(value("WARP_SZ"), 32);
        assert_eq!(value("18446744073709551615"), u64::MAX);
        assert!(integer("9223372036854775808").unwrap().is_unsigned);
        assert!(!integer("9223372036854775807").unwrap().is_unsigned);
        assert!(integer("18446744073709551616").unwrap().is_truncated);
        assert_eq!(integer("99999999999999999999"), Err(LiteralError::TooLarge));
        assert_eq!(value("0x7fffffffffffffff0"), 0xffff_ffff_ffff_fff0);
        assert_eq!(integer("0x80000000000000000"), Err(LiteralError::TooLarge));
        assert_eq!(integer("089"), Err(LiteralError::BadDigit { digit: '8', base: 8 }));
        assert_eq!(integer("12ab"), Err(LiteralError::BadDigit { digit: 'a', base: 10 }));
        assert_eq!(integer("0x"), Err(LiteralError::NoDigits));
        assert_eq!(integer("0xU"), Err(LiteralError::NoDigits));
    }

    #[test]
    fn floats() {
        assert_eq!(float("0f3F800000"), Ok(Float::Single(0x3F80_0000)));
        assert_eq!(float("0d3FF0000000000000").unwrap().to_f64(), 1.0);
        assert_eq!(float("1.5").unwrap().to_f64(), 1.5);
        assert_eq!(float("1.").unwrap().to_f64(), 1.0);
        assert_eq!(float(".5").unwrap().to_f64(), 0.5);
        assert_eq!(float("1e-5").unwrap().to_f64(), 1e-5);
        assert_eq!(float("0f3F8"), Err(LiteralError::WrongDigitCount { expected: 8, found: 3 }));
        assert_eq!(float("0f3F80000G"), Err(LiteralError::BadDigit { digit: 'G', base: 16 }));
        assert_eq!(float("1e400"), Err(LiteralError::TooLarge));
        assert_eq!(float("1e-310"), Err(LiteralError::TooSmall));
        assert_eq!(float("1e-400"), Err(LiteralError::TooSmall));
        assert_eq!(float("0.0e-400").unwrap().to_f64(), 0.0);
        assert_eq!(float("1.5x"), Err(LiteralError::BadDigit { digit: 'x', base: 10 }));
    }

    #[test]
    fn strings() {
        assert_eq!(string(r#""a\"b\\""#), r#"a"b\"#);
        assert_eq!(string("\"open"), "open");
    }
}
