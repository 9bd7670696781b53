//! The maximum size of the parameters of a kernel.

use ptx_isa::{Gate, PtxVersion, TypeKind};
use text_size::TextRange;

use super::Gates;
use super::lints::HARDWARE_LIMIT;
use crate::diagnostic::Diagnostic;
use crate::heading::Parameter;

/// The number of parameter bytes that every version allows.
const PARAMETERS: u64 = 4352;
/// The number of parameter bytes from PTX ISA 8.1 on.
const MORE_PARAMETERS: u64 = 32764;
/// A piece of memory: size and alignment in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub bytes: u64,
    pub align: u32,
}

/// The number of bytes of a kernel's parameters in their order. The driver passes textures, samplers and surfaces in
/// words of their own.
pub(crate) fn parameter_bytes(parameters: &[Parameter<'_>]) -> u64 {
    let passed = parameters.iter().filter(|parameter| parameter.shape.ty.kind() != TypeKind::Opaque);
    passed.fold(0u64, |end, parameter| {
        let start = end.checked_next_multiple_of(u64::from(parameter.shape.align)).unwrap_or(u64::MAX);
        start.saturating_add(parameter.bytes)
    })
}

/// Checks the size of a kernel's parameters.
pub(crate) fn kernel_parameters(bytes: u64, range: TextRange, gates: &Gates) -> Option<Diagnostic> {
    if bytes <= PARAMETERS || !gates.enabled {
        return None;
    }
    let has_more = gates.version >= PtxVersion::new(8, 1);
    if has_more && bytes <= MORE_PARAMETERS {
        let what = format!("a parameter list of {bytes} bytes (more than {PARAMETERS})");
        return gates.check_phrase(&Gate::since(8, 1, 70), what, range);
    }
    let most = if has_more { MORE_PARAMETERS } else { PARAMETERS };
    let message = format!("kernel parameters take {bytes} bytes; the limit is {most}");
    let diagnostic = Diagnostic::new(&HARDWARE_LIMIT, range, message);
    Some(diagnostic.note("pass a pointer to a structure instead"))
}
