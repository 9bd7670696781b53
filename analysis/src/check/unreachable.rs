//! Finds statements that are never executed.

use text_size::TextRange;

use super::Body;
use crate::declare_lint;
use crate::diagnostic::{Applicability, Diagnostic, Findings, TextEdit};
use crate::flow::End;

declare_lint! {
    /// The code is never executed.
    pub(super) UNREACHABLE_CODE = "W0506" "unreachable-code", Warning, since "0.1.0"
}

/// Longer runs of statements must be removed by hand.
const MOST_EDITS: usize = 200;

pub(super) fn check(body: &Body<'_>, out: &mut Findings) {
    let Some(flow) = body.flow() else { return };
    let graph = flow.graph();
    let blocks = graph.blocks().end;
    let mut block = 0;
    while block < blocks {
        if graph.is_reached(block) {
            block += 1;
            continue;
        }
        let first = block;
        while block < blocks && !graph.is_reached(block) {
            block += 1;
        }
        let statements = graph.statements(first).start..graph.statements(block - 1).end;
        let places: Vec<TextRange> =
            flow.code().instructions(statements).filter_map(|instr| body.map.statement(instr.src)).collect();
        let (Some(start), Some(end)) = (places.first(), places.last()) else { continue };
        // The text above an unreachable block ends in a jump; otherwise the block would be reached from there.
        let Some(jump) = flow.instructions(first - 1).next_back() else { continue };
        let Some(place) = body.map.statement(jump.src) else { continue };
        // Compilers do not look into inline assembly, and do not remove code after a trap.
        let between = &body.text[usize::from(place.end())..usize::from(start.start())];
        if graph.end(first - 1) == End::Traps || between.contains("// end inline asm") {
            continue;
        }
        let name = jump.opcode.form.mnemonic();
        let mut diagnostic = Diagnostic::new(&UNREACHABLE_CODE, start.cover(*end), "unreachable code")
            .rule()
            .related(place, format!("execution never continues past this `{name}`"))
            .unnecessary();
        if places.len() <= MOST_EDITS {
            let edits = places.iter().map(|&range| TextEdit::new(range, "")).collect();
            diagnostic.offer("remove the unreachable code", edits, Applicability::MaybeIncorrect);
        }
        out.push(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::marks;

    fn lines(body: &str) -> Vec<String> {
        let body =
            format!(".reg .b32 %r<8>; .reg .pred %p<4>; mov.b32 %r1, 1; setp.eq.u32 %p1, 1, 2;\n{body}");
        marks(&UNREACHABLE_CODE, &body)
    }

    #[test]
    fn runs_end_at_labels_that_are_reached() {
        let found = lines("@%p1 bra B; ret;\nA: add.u32 %r1, %r1, 1; bra A; C: exit; B: ret; exit;");
        assert_eq!(
            found,
            ["add.u32 %r1, %r1, 1; bra A; C: exit;: unreachable code", "exit;: unreachable code",]
        );
    }

    #[test]
    fn lists_of_targets_reach() {
        let found = lines("T: .branchtargets A, B; brx.idx %r1, T; A: ret; B: ret;");
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn what_compilers_leave_behind() {
        assert_eq!(lines("trap; ret;"), Vec::<String>::new());
        assert_eq!(lines("// begin inline asm\nexit;\n// end inline asm\nret;"), Vec::<String>::new());
    }
}
