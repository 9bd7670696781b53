//! Floating-point immediates in NVIDIA's format: C's `%.20g`, but `%.20e` from 1e9 on, and NVIDIA's own words for
//! infinities and NaNs.

/// The number of significant digits, or of decimals in scientific notation.
const DIGITS: usize = 20;
/// The decimal exponent from which numbers are printed in scientific notation with all decimals.
const SCIENTIFIC: i32 = 9;

/// A single-precision immediate.
pub(crate) fn print_f32(out: &mut String, bits: u32) {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        return nan_text(out, bits >> 31 != 0, bits >> 22 & 1 != 0);
    }
    general(out, f64::from(value));
}

/// A double-precision immediate, given by its high word.
pub(crate) fn print_f64(out: &mut String, high: u32) {
    let value = f64::from_bits(u64::from(high) << 32);
    if value.is_nan() {
        return nan_text(out, high >> 31 != 0, high >> 19 & 1 != 0);
    }
    general(out, value);
}

pub(crate) fn print_f16(out: &mut String, bits: u16) {
    let value = f16_to_f64(bits);
    if value.is_nan() {
        return nan_text(out, bits >> 15 != 0, bits >> 9 & 1 != 0);
    }
    general(out, value);
}

pub(crate) fn print_bf16(out: &mut String, bits: u16) {
    print_f32(out, u32::from(bits) << 16);
}

fn nan_text(out: &mut String, negative: bool, quiet: bool) {
    out.push(if negative { '-' } else { '+' });
    out.push_str(if quiet { "QNAN " } else { "SNAN " });
}

fn general(out: &mut String, value: f64) {
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "+INF " } else { "-INF " });
    }
    if value == 0.0 {
        return out.push_str(if value.is_sign_negative() { "-0.0 " } else { "0" });
    }
    // The digits are written directly to the output, and surplus ones are removed again.
    let start = out.len();
    let exponent = push_scientific(out, value, DIGITS - 1);
    if exponent >= SCIENTIFIC {
        out.truncate(start);
        push_scientific(out, value, DIGITS);
        push_exponent(out, '+', exponent);
    } else if exponent < -4 {
        trim_zeros(out, start);
        push_exponent(out, '-', -exponent);
    } else {
        out.truncate(start);
        let decimals = (DIGITS as i32 - 1 - exponent) as usize;
        push(out, format_args!("{value:.decimals$}"));
        trim_zeros(out, start);
    }
}

/// Appends the mantissa of a number with one digit before the point. Returns the decimal exponent.
fn push_scientific(out: &mut String, value: f64, decimals: usize) -> i32 {
    let start = out.len();
    push(out, format_args!("{value:.decimals$e}"));
    let at = start + out[start..].find('e').expect("the format has an exponent");
    let exponent = out[at + 1..].parse().expect("the exponent is a number");
    out.truncate(at);
    exponent
}

fn push_exponent(out: &mut String, sign: char, exponent: i32) {
    push(out, format_args!("e{sign}{exponent:02}"));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    use std::fmt::Write;
    out.write_fmt(text).expect("writing to a string");
}

/// Removes the zeros at the end of the decimals of the number that begins at `start`.
fn trim_zeros(out: &mut String, start: usize) {
    let text = &out[start..];
    if text.contains('.') {
        let kept = text.trim_end_matches('0').trim_end_matches('.').len();
        out.truncate(start + kept);
    }
}

/// Parses the word for an infinity or a NaN: its sign, and the top bits of the mantissa.
fn special(text: &str) -> Option<(bool, u8)> {
    let (negative, word) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    match word {
        "INF" => Some((negative, 0)),
        "QNAN" => Some((negative, 2)),
        "SNAN" => Some((negative, 1)),
        _ => None,
    }
}

/// Parses the bits of a number, such as `0x7fc00000`. Listings give the bits where the word for a NaN is ambiguous.
fn raw(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim_end().strip_prefix("0x")?, 16).ok()
}

pub(crate) fn parse_f32(text: &str) -> Option<u32> {
    if let Some((negative, mantissa)) = special(text.trim_end()) {
        // The text does not give the payload of a NaN, so the most common one is assumed.
        let mantissa = match (mantissa, negative) {
            (2, false) => 0x7f_ffff,
            (2, true) => 0x40_0000,
            (1, _) => 0x3f_ffff,
            _ => 0,
        };
        return Some(u32::from(negative) << 31 | 0x7f80_0000 | mantissa);
    }
    raw(text).or_else(|| number(text)?.parse::<f32>().ok().map(f32::to_bits))
}

/// Parses an immediate of `FSEL`, which is a float or the high word of a double. The most common high word with the
/// text of a NaN is that of an infinite double, and the most common NaN of a float has all mantissa bits set.
pub(crate) fn parse_selected(text: &str, is_high_word: impl Fn(bool) -> bool) -> Option<u32> {
    match special(text.trim_end()) {
        Some((negative, 2)) => {
            let sign = u32::from(negative) << 31;
            Some(sign | if is_high_word(negative) { 0x7ff0_0000 } else { 0x7fff_ffff })
        }
        _ => parse_f32(text),
    }
}

pub(crate) fn parse_f64(text: &str) -> Option<u32> {
    if let Some((negative, mantissa)) = special(text.trim_end()) {
        return Some(u32::from(negative) << 31 | 0x7ff0_0000 | u32::from(mantissa) << 18);
    }
    if let Some(bits) = raw(text) {
        return Some(bits);
    }
    let bits = number(text)?.parse::<f64>().ok()?.to_bits();
    (bits as u32 == 0).then_some((bits >> 32) as u32)
}

pub(crate) fn parse_f16(text: &str) -> Option<u16> {
    if let Some((negative, mantissa)) = special(text.trim_end()) {
        let mantissa = match mantissa {
            2 => 0x3ff,
            1 => 0x1ff,
            _ => 0,
        };
        return Some(u16::from(negative) << 15 | 0x7c00 | mantissa);
    }
    if let Some(bits) = raw(text) {
        return u16::try_from(bits).ok();
    }
    let value = number(text)?.parse::<f64>().ok()?;
    // The printed digits are exact.
    let units = match value.abs() {
        small if small < f64::powi(2.0, -14) => small * f64::powi(2.0, 24),
        normal => {
            let bits = normal.to_bits();
            let exponent = (bits >> 52) as i32 - 1023 + 15;
            f64::from(exponent.min(31)) * 1024.0 + (bits >> 42 & 0x3ff) as f64
        }
    };
    let bits = u16::from(value.is_sign_negative()) << 15 | units as u16;
    (f16_to_f64(bits).to_bits() == value.to_bits()).then_some(bits)
}

pub(crate) fn parse_bf16(text: &str) -> Option<u16> {
    if let Some(bits) = raw(text) {
        return u16::try_from(bits).ok();
    }
    let bits = parse_f32(text)?;
    if special(text.trim_end()).is_some() {
        return Some((bits >> 16) as u16);
    }
    (bits as u16 == 0).then_some((bits >> 16) as u16)
}

/// A number that consists only of digits, sign, point and exponent. The standard parser would also accept words such as
/// `inf`.
fn number(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e');
    text.chars().all(plain).then_some(text)
}

fn f16_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 != 0 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 31);
    let mantissa = f64::from(bits & 0x3ff);
    match exponent {
        0 => sign * mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<T>(print: fn(&mut String, T), bits: T) -> String {
        let mut out = String::new();
        print(&mut out, bits);
        out
    }

    #[test]
    fn prints_as_the_vendor_does() {
        let single = |bits: u32| text(print_f32, bits);
        assert_eq!(single(1.0f32.to_bits()), "1");
        assert_eq!(single((-0.5f32).to_bits()), "-0.5");
        assert_eq!(single(0x3380_0000), "5.9604644775390625e-08");
        assert_eq!(single(0xbab6_07ed), "-0.0013887860113754868507");
        assert_eq!(single(105_615f32.to_bits()), "105615");
        assert_eq!(single(f32::INFINITY.to_bits()), "+INF ");
        assert_eq!(single(0xffff_ffff), "-QNAN ");
        assert_eq!(text(print_f64, 0x7fe0_0000), "8.98846567431157953865e+307");
        assert_eq!(single(1e9f32.to_bits()), "1.00000000000000000000e+09");
        assert_eq!(single(123_456_792f32.to_bits()), "123456792");
        assert_eq!(text(print_f16, 3), "1.78813934326171875e-07");
        assert_eq!(text(print_f16, 0x3c00), "1");
    }

    #[test]
    fn text_reads_back() {
        for bits in [0, 1, 0x8000_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0xbab6_07ed, 0x0080_0000] {
            assert_eq!(parse_f32(&text(print_f32, bits)), Some(bits));
            assert_eq!(parse_f64(&text(print_f64, bits)), Some(bits));
        }
        for bits in (0..0x7c00u16).step_by(97).chain([1, 0x3ff, 0x400, 0x8001, 0xfbff]) {
            assert_eq!(parse_f16(&text(print_f16, bits)), Some(bits));
            assert_eq!(parse_bf16(&text(print_bf16, bits)), Some(bits));
        }
        assert_eq!(parse_f32("0x7fc00001"), Some(0x7fc0_0001));
        assert_eq!(parse_f32("nan"), None);
        assert_eq!(parse_f64("0.1"), None);
        assert_eq!(parse_f16("0.1"), None);
        assert_eq!(parse_f16("65536"), None);
    }
}
