//! Functions without a body that the driver provides: printing, the device's heap, failed assertions.

use crate::launch::FaultKind;
use crate::memory::{Space, View};
use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

/// A driver function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum System {
    Print,
    Allocate,
    Free,
    Assert,
}

/// The effects of a call.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) result: u64,
    /// The text that was printed.
    pub(crate) text: Option<String>,
    pub(crate) traps: bool,
}

/// The largest text that is read, in bytes.
const TEXT_BYTES: u64 = 1 << 16;
/// The largest width of a field in characters, so that a wrong width has no cost.
const FIELD: usize = 1 << 12;

impl System {
    pub(crate) const ALL: [(&'static str, System); 4] = [
        ("vprintf", System::Print),
        ("malloc", System::Allocate),
        ("free", System::Free),
        ("__assertfail", System::Assert),
    ];

    pub(crate) fn named(name: &str) -> Option<System> {
        System::ALL.iter().find(|(known, _)| *known == name).map(|(_, system)| *system)
    }

    /// Calls the function for one thread, whose memory is `view`.
    pub(crate) fn call(self, arguments: &[u64], view: &mut View<'_>) -> Result<Done, FaultKind> {
        let argument = |i: usize| arguments.get(i).copied().unwrap_or(0);
        Ok(match self {
            System::Print => {
                let format = text(view, argument(0))?;
                let (text, count) = print(view, &format, argument(1))?;
                Done { result: count, text: Some(text), ..Done::default() }
            }
            System::Allocate => Done { result: view.global.allocate(argument(0)), ..Done::default() },
            System::Free => {
                if argument(0) != 0 && !view.global.free(argument(0)) {
                    let message = format!("{:#x} is freed, which the heap did not give", argument(0));
                    return Err(FaultKind::Malformed(message));
                }
                Done::default()
            }
            System::Assert => {
                let [message, file, function] = [0, 1, 3].map(argument);
                let [message, file, function] =
                    [text(view, message)?, text(view, file)?, text(view, function)?];
                let line = argument(2) as u32;
                let text = format!("{file}:{line}: {function}: Assertion `{message}` failed.\n");
                Done { text: Some(text), traps: true, ..Done::default() }
            }
        })
    }
}

/// The text at an address, up to its terminating zero.
fn text(view: &mut View<'_>, address: u64) -> Result<String, FaultKind> {
    let mut bytes = Vec::new();
    for at in 0..TEXT_BYTES {
        match view.load(Space::Generic, address.wrapping_add(at), 1)? as u8 {
            0 => break,
            byte => bytes.push(byte),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads numbers one after the other, each aligned to its size.
struct Arguments<'v, 'm> {
    view: &'v mut View<'m>,
    next: u64,
    count: u64,
}

impl Arguments<'_, '_> {
    fn take(&mut self, size: u32) -> Result<u64, FaultKind> {
        let address = self.next.next_multiple_of(size.into());
        self.next = address + u64::from(size);
        self.count += 1;
        self.view.load(Space::Generic, address, size)
    }
}

/// The options of a conversion besides its letter.
#[derive(Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// The size of an integer in bytes, from its length modifiers.
    bytes: u32,
}

/// The text that `printf` prints for a format and arguments, and the number of arguments that it used.
fn print(view: &mut View<'_>, format: &str, arguments: u64) -> Result<(String, u64), FaultKind> {
    let mut arguments = Arguments { view, next: arguments, count: 0 };
    let mut out = String::new();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut conversion = Conversion { bytes: 4, ..Conversion::default() };
        while let Some(flag) = rest.next_if(|c| "-+ #0".contains(*c)) {
            match flag {
                '-' => conversion.left = true,
                '+' => conversion.plus = true,
                ' ' => conversion.space = true,
                '#' => conversion.alternative = true,
                _ => conversion.zeros = true,
            }
        }
        conversion.width = field(&mut rest, &mut arguments)?;
        if rest.next_if_eq(&'.').is_some() {
            conversion.precision = Some(field(&mut rest, &mut arguments)?);
        }
        while let Some(length) = rest.next_if(|c| "hlLqjzt".contains(*c)) {
            conversion.bytes = if length == 'h' { 4 } else { 8 };
        }
        let Some(letter) = rest.next() else { break };
        let body = match letter {
            '%' => {
                out.push('%');
                continue;
            }
            'd' | 'i' => {
                let value = arguments.take(conversion.bytes)?;
                let value = if conversion.bytes == 4 { i64::from(value as i32) } else { value as i64 };
                conversion.signed(value < 0, digits(value.unsigned_abs(), 10, false, &conversion))
            }
            'u' => digits(arguments.take(conversion.bytes)?, 10, false, &conversion),
            'o' => digits(arguments.take(conversion.bytes)?, 8, false, &conversion),
            'x' | 'X' => digits(arguments.take(conversion.bytes)?, 16, letter == 'X', &conversion),
            'p' => format!("{:#x}", arguments.take(8)?),
            'c' => char::from(arguments.take(4)? as u8).to_string(),
            's' => {
                let address = arguments.take(8)?;
                let text = text(arguments.view, address)?;
                text.chars().take(conversion.precision.unwrap_or(usize::MAX)).collect()
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => {
                let value = f64::from_bits(arguments.take(8)?);
                let text = float(value.abs(), letter.to_ascii_lowercase(), &conversion);
                let text = conversion.signed(value.is_sign_negative(), text);
                if letter.is_ascii_uppercase() { text.to_uppercase() } else { text }
            }
            other => {
                let _ = write!(out, "%{other}");
                continue;
            }
        };
        let is_number = !matches!(letter, 'c' | 's' | 'p');
        out.push_str(&conversion.pad(body, is_number));
    }
    Ok((out, arguments.count))
}

/// A width or a precision: digits, or `*` for an argument.
fn field(rest: &mut Peekable<Chars<'_>>, arguments: &mut Arguments<'_, '_>) -> Result<usize, FaultKind> {
    if rest.next_if_eq(&'*').is_some() {
        return Ok((arguments.take(4)? as usize).min(FIELD));
    }
    let mut number = 0;
    while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
        rest.next();
        number = (number * 10 + digit as usize).min(FIELD);
    }
    Ok(number)
}

impl Conversion {
    fn signed(&self, negative: bool, digits: String) -> String {
        let sign = match () {
            () if negative => "-",
            () if self.plus => "+",
            () if self.space => " ",
            () => "",
        };
        format!("{sign}{digits}")
    }

    fn pad(&self, body: String, is_number: bool) -> String {
        let missing = self.width.saturating_sub(body.chars().count());
        if self.left {
            return body + &" ".repeat(missing);
        }
        if !self.zeros || !is_number {
            return " ".repeat(missing) + &body;
        }
        let sign = body.find(|c: char| !"+- ".contains(c)).unwrap_or(0);
        format!("{}{}{}", &body[..sign], "0".repeat(missing), &body[sign..])
    }
}

fn digits(value: u64, base: u32, upper: bool, conversion: &Conversion) -> String {
    let digits = match base {
        8 => format!("{value:o}"),
        16 if upper => format!("{value:X}"),
        16 => format!("{value:x}"),
        _ => value.to_string(),
    };
    let missing = conversion.precision.unwrap_or(1).saturating_sub(digits.len());
    let prefix = match base {
        16 if conversion.alternative && value != 0 => {
            if upper {
                "0X"
            } else {
                "0x"
            }
        }
        8 if conversion.alternative && missing == 0 => "0",
        _ => "",
    };
    format!("{prefix}{}{digits}", "0".repeat(missing))
}

/// Formats a non-negative number with `%e`, `%f`, `%g` or `%a`.
fn float(value: f64, letter: char, conversion: &Conversion) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return "inf".into();
    }
    let precision = conversion.precision.unwrap_or(6);
    match letter {
        'f' => format!("{value:.precision$}"),
        'e' => scientific(value, precision),
        'g' => {
            let precision = precision.max(1);
            let shown = scientific(value, precision - 1);
            let exponent: i32 = shown.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
            let fixed = exponent >= -4 && exponent < precision as i32;
            let text = match fixed {
                true => format!("{value:.*}", (precision as i32 - 1 - exponent).max(0) as usize),
                false => shown,
            };
            if conversion.alternative {
                return text;
            }
            let (mantissa, exponent) = match text.split_once('e') {
                Some((mantissa, exponent)) => (mantissa, format!("e{exponent}")),
                None => (&text[..], String::new()),
            };
            let mantissa = match mantissa.contains('.') {
                true => mantissa.trim_end_matches('0').trim_end_matches('.'),
                false => mantissa,
            };
            format!("{mantissa}{exponent}")
        }
        _ => {
            let bits = value.to_bits();
            let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
            let (lead, power) = match exponent {
                0 if fraction == 0 => (0, 0),
                0 => (0, -1022),
                exponent => (1, exponent as i64 - 1023),
            };
            let digits = format!("{fraction:013x}");
            let digits = digits.trim_end_matches('0');
            let point = if digits.is_empty() { "" } else { "." };
            format!("0x{lead}{point}{digits}p{power:+}")
        }
    }
}

fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Global;

    fn shown(format: &str, arguments: &[u64]) -> String {
        let mut global = Global::default();
        let bytes: Vec<u8> = arguments.iter().flat_map(|word| word.to_le_bytes()).collect();
        let address = global.add(bytes);
        let mut view = View::of_global(&mut global);
        print(&mut view, format, address).expect("it prints").0
    }

    #[test]
    fn numbers_are_printed_as_in_c() {
        assert_eq!(shown("[%5d|%-4u|%+d]", &[9 << 32 | 7, 3]), "[    7|9   |+3]");
        assert_eq!(shown("%#x %08llX %lld", &[255, 0xabcd, u64::MAX]), "0xff 0000ABCD -1");
        let [half, big] = [0.5f64, 1234567.0].map(f64::to_bits);
        assert_eq!(shown("%f %.2e %g %g", &[half, big, half, big]), "0.500000 1.23e+06 0.5 1.23457e+06");
        assert_eq!(shown("%a %7.2f%%", &[half, half]), "0x1p-1    0.50%");
    }
}
