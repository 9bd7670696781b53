//! Finds where the compiler waits for products of warpgroups although the program does not.

use ptx_backend::CompiledFunction;
use ptx_backend::input::SrcId;
use ptx_isa::FormId;
use sass::Sm;

/// The name of the wait in the `sass` table.
const WAIT: &str = "WARPGROUP.DEPBAR";

/// The products.
pub(crate) const PRODUCTS: [FormId; 3] = [FormId::WgmmaMma, FormId::WgmmaMmaSp, FormId::WgmmaMmaBits];

/// The statements before which the compiled code has an additional wait, because they use registers of products that
/// are still running.
pub(crate) fn added_waits(code: &CompiledFunction, sm: Sm) -> Vec<SrcId> {
    let is_wait = |word: u128| sass::decode(sm, word).is_some_and(|inst| inst.form().name == WAIT);
    let added = (0..).zip(&*code.code).filter(|(at, word)| code.lines[*at].is_none() && is_wait(**word));
    let mut found: Vec<SrcId> =
        added.filter_map(|(at, _)| code.lines[at..].iter().find_map(|line| *line)).collect();
    found.sort_unstable();
    found.dedup();
    found
}
