//! Replaces values by the sources that they stand for.

use crate::ori::ir::{Const, Function, Src, SrcKind, Value};
use crate::ori::signature::fold_modifiers;
use rustc_hash::FxHashMap;

/// Follows replacements to the end. The result keeps the modifiers of `src`.
pub(super) fn resolve(replaced: &FxHashMap<Value, Src>, mut src: Src) -> Src {
    while let Some(by) = src.value().and_then(|v| replaced.get(&v)) {
        let kind = match src.kind {
            SrcKind::Part(_, part) => part_of(by.kind, part),
            _ => by.kind,
        };
        src = Src { kind, mods: src.mods };
    }
    src
}

/// As [`resolve`]. Also shortens the chain: each replacement on the way then leads directly to the end.
pub(super) fn resolve_shortening(replaced: &mut FxHashMap<Value, Src>, src: Src) -> Src {
    let end = resolve(replaced, src);
    let mut at = src.kind;
    while let SrcKind::Value(v) = at
        && let Some(by) = replaced.get_mut(&v)
    {
        at = std::mem::replace(&mut by.kind, end.kind);
    }
    end
}

/// One 32-bit register of a wide source.
pub(super) fn part_of(kind: SrcKind, part: u8) -> SrcKind {
    match kind {
        SrcKind::Value(v) => SrcKind::Part(v, part),
        SrcKind::Const(c) => SrcKind::Const(Const { bank: c.bank, offset: c.offset + 4 * u16::from(part) }),
        other => other,
    }
}

/// Applies the replacements to every operand of the function.
pub(super) fn sources(out: &mut Function, replaced: &FxHashMap<Value, Src>) {
    for block in &mut out.blocks {
        for inst in &mut block.insts {
            for src in inst.uses_mut() {
                *src = resolve(replaced, *src);
            }
            fold_modifiers(inst);
        }
        for (_, arg) in block.phis.iter_mut().flat_map(|phi| &mut phi.args) {
            *arg = resolve(replaced, *arg);
        }
        if let Some(src) = block.term.operand_mut() {
            *src = resolve(replaced, *src);
        }
    }
}
