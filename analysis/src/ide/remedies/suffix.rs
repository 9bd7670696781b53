//! Types that an instruction lacks: those that its registers can have.

use ptx_backend::input::Operand;
use ptx_isa::{ResolveError, ScalarType};
use ptx_syntax::SyntaxKind;
use text_size::TextRange;

use super::{item_of, name_words, node_at};
use crate::check::lints::MISSING_MODIFIER;
use crate::check::{bind, types};
use crate::db::{Db, SourceFile};
use crate::diagnostic::{Applicability, Diagnostic, TextEdit};
use crate::lower::lower;
use crate::scope::Entity;

/// Most types that are offered.
const OFFERED: usize = 3;

pub(super) fn complete(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    if diagnostic.lint != &MISSING_MODIFIER {
        return;
    }
    let Some((item, range)) = item_of(db, file, diagnostic.range) else { return };
    let Some(node) = node_at(db, item, range.start(), SyntaxKind::INSTRUCTION) else { return };
    let words = name_words(&node, item.text(db));
    let Some((mnemonic, suffixes)) = words.split_first() else { return };
    let Err(ResolveError::MissingType { expected, .. }) = ptx_isa::resolve(mnemonic, suffixes) else {
        return;
    };
    let map = &lower(db, item).map;
    let operands =
        node.children().filter(|child| !matches!(child.kind(), SyntaxKind::GUARD | SyntaxKind::BANK));
    // The registers that are operands by themselves, with their declared types.
    let operands: Vec<Option<(Operand, ScalarType)>> = operands
        .map(|operand| {
            let range = operand.text_range();
            let found = map.occurrence_at(range.start()).filter(|found| found.range == range)?;
            match found.entity {
                Entity::Register(register) => {
                    Some((Operand::Reg(register), map.registers.get(register.0 as usize)?.ty))
                }
                _ => None,
            }
        })
        .collect();
    let unbound: Vec<Option<Operand>> =
        operands.iter().map(|known| known.as_ref().map(|(operand, _)| operand.clone())).collect();
    let fits = |word: &&&'static str| {
        let name: Vec<&str> = suffixes.iter().copied().chain([**word]).collect();
        let Ok(opcode) = ptx_isa::resolve(mnemonic, &name) else { return false };
        let signature = ptx_isa::signature(&opcode);
        let Some(rows) = bind(&signature, &unbound, &map.registers) else { return false };
        let mut known = operands.iter().zip(rows).filter_map(|(known, row)| Some((known.as_ref()?.1, row)));
        known.all(|(ty, row)| types::accepts(row, ty, types::takes_wider(&opcode)))
    };
    diagnostic.fixes.clear();
    for word in expected.iter().filter(fits).take(OFFERED) {
        let end = TextRange::empty(diagnostic.range.end());
        let edits = vec![TextEdit::new(end, format!(".{word}"))];
        diagnostic.offer(format!("add `.{word}`"), edits, Applicability::MaybeIncorrect);
    }
}
