//! The meaning of single words: modifiers, types, directives, special registers, numbers, pragmas.

use ptx_isa::{Directive, Form, Mod, PRAGMAS, ScalarType, Sm, SpecialReg, TypeKind};
use ptx_syntax::ast::literal;

use crate::ide::reference::modifier_needs;
use crate::ide::setting::Setting;

/// Markdown with each paragraph and each item of a list on one line. Some clients show line breaks inside paragraphs.
pub fn unwrapped(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut is_block = false;
    // Whether the next line may continue the last one.
    let mut is_open = false;
    for line in markdown.lines() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        let is_item = ["- ", "* ", "+ "].iter().any(|mark| text.starts_with(mark))
            || text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
        let stands_alone = is_block
            || is_fence
            || text.is_empty()
            || text.starts_with(['#', '|', '>'])
            || text == "---"
            || !is_open && line.starts_with("    ");
        if is_open && !is_item && !stands_alone {
            out.push(' ');
            out.push_str(text.trim_end());
        } else {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(line.trim_end());
        }
        is_block ^= is_fence;
        is_open = !stands_alone;
    }
    if markdown.ends_with('\n') {
        out.push('\n');
    }
    out
}

pub(super) fn code(text: &str) -> String {
    format!("```ptx\n{text}\n```\n")
}

pub(super) fn kind_name(ty: ScalarType) -> &'static str {
    use TypeKind as K;
    match ty.kind() {
        K::Bits => "untyped",
        K::Unsigned => "unsigned integer",
        K::Signed => "signed integer",
        K::Float => "floating point",
        K::Packed => "packed",
        K::Pred => "predicate",
        K::Opaque => "opaque",
    }
}

/// `floating point, 16 bits`
pub(super) fn kind_and_size(ty: ScalarType) -> String {
    match ty.bits() {
        1 => format!("{}, 1 bit", kind_name(ty)),
        bits => format!("{}, {bits} bits", kind_name(ty)),
    }
}

/// `floating point, 16 bits; IEEE half: …`
pub(super) fn type_words(ty: ScalarType) -> String {
    let about = ty.about().map_or(String::new(), |about| format!("; {about}"));
    kind_and_size(ty) + &about
}

/// The description of a target name.
pub(super) fn target(name: &str) -> Option<String> {
    let sm = Sm::parse(name)?;
    let suffix = match name.trim_start_matches("sm_").trim_start_matches(|c: char| c.is_ascii_digit()) {
        "a" => "; uses features of this architecture; the code runs on no other architecture",
        "f" => "; uses features of this family; the code runs on this and later architectures of the family",
        _ => "; the code runs on this and later architectures",
    };
    Some(format!("`{name}`: since PTX ISA {}{suffix}\n", sm.since()))
}

/// The description of a modifier or type in an instruction's name, with its dot.
pub(super) fn suffix(word: &str, form: Option<&Form>, setting: &Setting) -> Option<String> {
    let name = word.strip_prefix('.')?;
    if let Some(ty) = ScalarType::parse(name) {
        return Some(format!("`{word}`: {}\n", type_words(ty)));
    }
    let m = Mod::parse(name)?;
    let gate = form.and_then(|form| modifier_needs(form, m));
    let gate =
        gate.and_then(|gate| setting.lacks(&gate)).map_or(String::new(), |lacks| format!(" ({lacks})"));
    Some(format!("`{word}`: {}{gate}\n", m.about()))
}

fn paragraph(text: Option<String>) -> String {
    text.map_or(String::new(), |text| format!("\n{text}\n"))
}

pub(super) fn special(text: &str, setting: &Setting) -> Option<String> {
    let name: String = text.split_whitespace().collect();
    if let Some(register) = SpecialReg::parse(&name) {
        let head = code(&format!(".sreg .{} {name}", register.ty().text()));
        return Some(format!("{head}{}\n{}", register.about(), paragraph(setting.lacks(&register.gate()))));
    }
    SpecialReg::parse(&format!("{name}.x")).map(|register| {
        let head = code(&format!(".sreg .v4 .{} {name}", register.ty().text()));
        let lacks = paragraph(setting.lacks(&register.gate()));
        format!("{head}a vector; `.x`: {}\n{lacks}", register.about())
    })
}

/// The purpose of a directive, in one line; also of types and modifiers of declarations.
pub(super) fn directive(word: &str, setting: &Setting) -> Option<String> {
    let name = word.strip_prefix('.')?;
    if let Some(ty) = ScalarType::parse(name) {
        return Some(format!("`{word}`: {}\n", type_words(ty)));
    }
    match Directive::parse(name) {
        Some(directive) => {
            let head = code(directive.syntax);
            Some(format!("{head}{}\n{}", directive.about, paragraph(setting.lacks(&directive.gate))))
        }
        None => suffix(word, None, setting),
    }
}

/// The string of a `.pragma`.
pub(super) fn pragma(string: &str, setting: &Setting) -> Option<String> {
    let name = string.split([' ', '=', ':']).next()?;
    let pragma = PRAGMAS.iter().find(|pragma| pragma.name == name)?;
    Some(format!("`{name}`: {}\n{}", pragma.about, paragraph(setting.lacks(&pragma.gate))))
}

/// An integer, perhaps after a minus, in the other bases; also as a negative number if its top bit is set.
pub(super) fn integer(text: &str) -> Option<String> {
    let (value, is_negative) = match text.strip_prefix('-') {
        Some(digits) => (literal::integer(digits.trim_start()).ok()?.value.wrapping_neg(), true),
        None => (literal::integer(text).ok()?.value, false),
    };
    if is_negative {
        let bits = match i32::try_from(value as i64) {
            Ok(word) => format!("`{:#x}` as `.b32`", word as u32),
            Err(_) => format!("`{value:#x}` as `.b64`"),
        };
        return Some(format!("`{}` = {bits}\n", value as i64));
    }
    let mut parts = vec![format!("`{value}`"), format!("`0x{value:x}`")];
    match (u32::try_from(value), value) {
        (Ok(word), _) if (word as i32) < 0 => parts.push(format!("`{}` as `.s32`", word as i32)),
        (Err(_), value) if (value as i64) < 0 => parts.push(format!("`{}` as `.s64`", value as i64)),
        _ => {}
    }
    if value.is_power_of_two() && value > 1 {
        parts.push(format!("2^{}", value.trailing_zeros()));
    }
    if text.starts_with("0x") {
        parts.extend(as_float(value));
    }
    Some(format!("{}\n", parts.join(" = ")))
}

/// The float with these bits, if it is one that programs are likely to contain.
fn as_float(bits: u64) -> Option<String> {
    let is_usual = |value: f64| (1e-9..1e9).contains(&value.abs());
    match u32::try_from(bits) {
        Ok(bits) => {
            let value = f32::from_bits(bits);
            is_usual(value.into()).then(|| format!("`{value:?}` as `.f32`"))
        }
        Err(_) => {
            let value = f64::from_bits(bits);
            is_usual(value).then(|| format!("`{value:?}` as `.f64`"))
        }
    }
}

/// A float as a decimal number and as bits.
pub(super) fn float(text: &str) -> Option<String> {
    Some(match literal::float(text).ok()? {
        literal::Float::Single(bits) => {
            format!("`{:?}` as `.f32`, bits `0f{bits:08X}`\n", f32::from_bits(bits))
        }
        literal::Float::Double(bits) => {
            let value = f64::from_bits(bits);
            let single = (value as f32).to_bits();
            format!("`{value:?}` as `.f64`, bits `0d{bits:016X}`; as `.f32` `0f{single:08X}`\n")
        }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn paragraphs_are_lines() {
        let text = "# One\nA text\nof two lines.\n\n- an item\n  of two\n- another\n\n    code\n    more\n\n```\na\nb\n```\n\
            end\n| a |\n|---|\n";
        let lines = "# One\nA text of two lines.\n\n- an item of two\n- another\n\n    code\n    more\n\n```\na\nb\n```\n\
            end\n| a |\n|---|\n";
        assert_eq!(super::unwrapped(text), lines);
    }

    use super::*;
    use expect_test::expect;

    #[test]
    fn numbers_in_other_spellings() {
        let words = [
            float("0f3F800000"),
            float("0d3FF0000000000000"),
            float("1.5"),
            integer("0xffffffff"),
            integer("64"),
            integer("-1"),
            integer("0xbf000000"),
            integer("0x3ff8000000000000"),
            integer("WARP_SZ"),
            integer("09"),
        ];
        let lines: String = words.map(|word| word.unwrap_or_else(|| "nothing\n".to_owned())).concat();
        expect![[r#"
            `1.0` as `.f32`, bits `0f3F800000`
            `1.0` as `.f64`, bits `0d3FF0000000000000`; as `.f32` `0f3F800000`
            `1.5` as `.f64`, bits `0d3FF8000000000000`; as `.f32` `0f3FC00000`
            `4294967295` = `0xffffffff` = `-1` as `.s32`
            `64` = `0x40` = 2^6
            `-1` = `0xffffffff` as `.b32`
            `3204448256` = `0xbf000000` = `-1090519040` as `.s32` = `-0.5` as `.f32`
            `4609434218613702656` = `0x3ff8000000000000` = `1.5` as `.f64`
            `32` = `0x20` = 2^5
            nothing
        "#]]
        .assert_eq(&lines);
    }

    #[test]
    fn words_of_names_and_declarations() {
        let words = [
            suffix(".kind::mxf8f6f4", None, &Setting::UNKNOWN),
            suffix(".e4m3", None, &Setting::UNKNOWN),
            directive(".pred", &Setting::UNKNOWN),
            pragma("nounroll", &Setting::UNKNOWN),
            special("%clusterid.x", &Setting::UNKNOWN),
        ];
        let lines: String = words.map(Option::unwrap).concat();
        expect![[r#"
            `.kind::mxf8f6f4`: operands are 8-bit, 6-bit or 4-bit floats; 32 elements share a scale of type `.ue8m0`
            `.e4m3`: floating point, 8 bits; 4 bits of exponent, 3 bits of fraction, up to 448; has NaN but no infinity
            `.pred`: predicate, 1 bit; true or false; allowed only in `.reg`
            `nounroll`: do not unroll this loop, or any loop of the function or module

            requires PTX ISA 2.0, sm_20 or higher
            ```ptx
            .sreg .u32 %clusterid.x
            ```
            index of the cluster in the grid

            requires PTX ISA 7.8, sm_90 or higher
        "#]]
        .assert_eq(&lines);
    }
}
