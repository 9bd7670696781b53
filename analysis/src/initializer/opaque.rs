//! Fields of textures, samplers and surfaces: `{ filter_mode = linear }`.

use ptx_backend::input::Sampling;
use ptx_isa::ScalarType;
use ptx_syntax::SyntaxKind;
use ptx_syntax::flat::Node;

use super::INITIAL_VALUE;
use crate::constant;
use crate::declaration::BAD_CONSTANT;
use crate::diagnostic::{Diagnostic, Findings};

/// The fields of a texture or surface that describe its image.
const IMAGE: &[&str] = &["width", "height", "depth", "channel_data_type", "channel_order", "array_size"];
const TEXTURE: &[&str] = &["normalized_coords", "num_mipmap_levels", "num_samples"];
const SURFACE: &[&str] = &["memory_layout"];
/// Fields that a texture also has in unified mode; in independent mode they are accepted and ignored.
const SAMPLING: &[&str] = &["filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2"];
const SAMPLER: &[&str] = &["force_unnormalized_coords"];

/// The fields of a sampler that are in [`Sampling::modes`], in their order.
const MODES: [&str; 4] = ["addr_mode_0", "addr_mode_1", "addr_mode_2", "filter_mode"];

/// Values that are words. Every field accepts any of them. ptxas numbers them from 1, and accepts these numbers too.
const VALUES: &[&str] =
    &["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border", "nearest", "linear"];

fn fields(ty: ScalarType) -> [&'static [&'static str]; 3] {
    match ty {
        ScalarType::TexRef => [IMAGE, TEXTURE, SAMPLING],
        ScalarType::SamplerRef => [SAMPLING, SAMPLER, &[]],
        _ => [IMAGE, SURFACE, &[]],
    }
}

/// Checks a `FIELD_INITIALIZER` of a variable of an opaque type. A field of a sampler is stored in `sampling`.
pub(super) fn field(node: Node<'_>, ty: ScalarType, text: &str, sampling: &mut Sampling, out: &mut Findings) {
    if let Some(range) = node.tokens(SyntaxKind::IDENT).next() {
        let known = fields(ty);
        if !known.iter().any(|names| names.contains(&&text[range])) {
            let message = format!("`.{}` has no field `{}`", ty.text(), &text[range]);
            let note = format!("the fields are {}", known.concat().join(", "));
            out.push(Diagnostic::new(&INITIAL_VALUE, range, message).note(note));
        }
    }
    let Some(value) = node.first_child() else { return };
    let Some(number) = number(value, text, out) else { return };
    let name = node.tokens(SyntaxKind::IDENT).next().map_or("", |range| &text[range]);
    if let Some(index) = MODES.iter().position(|mode| *mode == name) {
        sampling.modes[index] = mode(number);
    } else if SAMPLER.contains(&name) {
        sampling.unnormalized = Some(number).filter(|&number| number != UNSTATED);
    }
}

/// ptxas treats a field with this value as absent.
const UNSTATED: i32 = -1;

/// The value of a field. ptxas keeps the lowest 30 bits.
fn number(value: Node<'_>, text: &str, out: &mut Findings) -> Option<i32> {
    let range = value.text_range();
    let mut refuse = |finding: Diagnostic| {
        out.push(finding);
        None
    };
    let expected = |message: &str| Diagnostic::new(&INITIAL_VALUE, range, message.to_owned());
    match value.kind() {
        SyntaxKind::NAME_REF => match VALUES.iter().position(|word| *word == &text[range]) {
            Some(index) => Some(index as i32 + 1),
            None => {
                let message = format!("`{}` is not a valid field value", &text[range]);
                refuse(expected(&message).note(VALUES.join(", ")))
            }
        },
        SyntaxKind::INITIALIZER_LIST => refuse(expected("expected a single value for a field")),
        _ => match constant::evaluate(value, text) {
            Err(error) => refuse(Diagnostic::new(&BAD_CONSTANT, error.range, error.message)),
            Ok(value) => match value.as_int() {
                Some(value) => Some((value as i32) << 2 >> 2),
                None => refuse(expected("expected an integer or a word for a field")),
            },
        },
    }
}

/// The driver's number for a mode: it numbers the addressing modes and the filter modes from 0.
fn mode(number: i32) -> Option<u8> {
    match number {
        1..=5 => Some(number as u8 - 1),
        6..=7 => Some(number as u8 - 6),
        _ => None,
    }
}
