//! Fields of textures, samplers and surfaces: `{ filter_mode = linear }`.

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

/// Values that are words. Every field accepts any of them.
const VALUES: &[&str] =
    &["nearest", "linear", "wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border"];

fn fields(ty: ScalarType) -> [&'static [&'static str]; 3] {
    match ty {
        ScalarType::TexRef => [IMAGE, TEXTURE, SAMPLING],
        ScalarType::SamplerRef => [SAMPLING, SAMPLER, &[]],
        _ => [IMAGE, SURFACE, &[]],
    }
}

/// Checks a `FIELD_INITIALIZER` of a variable of an opaque type.
pub(super) fn field(node: Node<'_>, ty: ScalarType, text: &str, out: &mut Findings) {
    if let Some(range) = node.tokens(SyntaxKind::IDENT).next() {
        let known = fields(ty);
        if !known.iter().any(|names| names.contains(&&text[range])) {
            let message = format!("`.{}` has no field `{}`", ty.text(), &text[range]);
            let note = format!("the fields are {}", known.concat().join(", "));
            out.push(Diagnostic::new(&INITIAL_VALUE, range, message).note(note));
        }
    }
    let Some(value) = node.first_child() else { return };
    let range = value.text_range();
    match value.kind() {
        SyntaxKind::NAME_REF if VALUES.contains(&&text[range]) => {}
        SyntaxKind::NAME_REF => {
            let message = format!("`{}` is not a valid field value", &text[range]);
            out.push(Diagnostic::new(&INITIAL_VALUE, range, message).note(VALUES.join(", ")));
        }
        SyntaxKind::INITIALIZER_LIST => {
            out.push(Diagnostic::new(&INITIAL_VALUE, range, "expected a single value for a field"));
        }
        _ => {
            if let Err(error) = constant::evaluate(value, text) {
                out.push(Diagnostic::new(&BAD_CONSTANT, error.range, error.message));
            }
        }
    }
}
