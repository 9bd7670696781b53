//! Kernel parameters that are declared in the body, as in the first PTX versions.

use ptx_backend::input::{Function, Param, Symbol, Variable};
use ptx_isa::{PtxVersion, Space};

use super::rename::rename_locals;

/// The first version with parameter lists. From it on, `.param` variables of a body are arguments of calls.
const LISTS: PtxVersion = PtxVersion::new(1, 4);

/// Whether the `.param` variables of a kernel's body are its parameters.
pub(super) fn are_in_body(function: &Function, version: Option<PtxVersion>) -> bool {
    let in_body = |variable: &Variable| variable.space == Space::Param;
    function.entry && version.is_some_and(|version| version < LISTS) && function.locals.iter().any(in_body)
}

/// Turns these variables into parameters. They also remain variables of the body, without uses.
pub(super) fn leave_body(function: &mut Function) {
    let mut moved = vec![None; function.locals.len()];
    let mut end = function.params.last().map_or(0, |last| last.offset + last.size);
    for (variable, moved) in function.locals.iter().zip(&mut moved) {
        if variable.space != Space::Param {
            continue;
        }
        let offset = end.checked_next_multiple_of(variable.align.max(1)).unwrap_or(u32::MAX);
        let size = u32::try_from(variable.size).unwrap_or(u32::MAX);
        end = offset.saturating_add(size);
        *moved = Some(Symbol::Param(function.params.len() as u32));
        function.params.push(Param {
            name: variable.name.clone(),
            ty: variable.ty,
            size,
            is_array: size != variable.ty.bytes(),
            align: variable.align,
            offset,
            reg: None,
            pointer: None,
        });
    }
    rename_locals(function, &moved);
}
