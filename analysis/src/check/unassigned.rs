//! Finds registers that are read before every path, or some path, has written them.
//!
//! If no path writes the register before the read, this is a warning. If only some paths do, the lint is off by
//! default: compilers leave registers unwritten on paths where the value does not matter. Guarded writes count as
//! writes. Instructions that only combine parts or pass values on are not checked, because compilers fill unused
//! positions with unwritten registers.

use memchr::memmem;
use ptx_backend::input::{Operand, RegId};
use ptx_isa::{FormId, Space};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use text_size::TextRange;

use super::Body;
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::flow::{BlockId, Flow, Graph, Instr};
use crate::scope::DeclKind;

declare_lint! {
    /// A register is read, but no path to the read writes it.
    pub(crate) UNASSIGNED_READ = "W0507" "unassigned-read", Warning, since "0.1.0"
}

declare_lint! {
    /// A register is read that is written on some paths only.
    pub(crate) MAYBE_UNASSIGNED = "W0519" "maybe-unassigned", Allow, since "0.1.0"
}

const NONE: u32 = u32::MAX;

/// The first block of the function.
const ENTRY: BlockId = 0;

/// A read that no write dominates, judging by the first write only.
struct Candidate {
    register: RegId,
    block: BlockId,
    range: TextRange,
}

pub(super) fn check(body: &Body<'_>, out: &mut Findings) {
    let Some(flow) = body.flow() else { return };
    let candidates = candidates(body, flow);
    if candidates.is_empty() {
        return;
    }
    let writes = writes(flow, &candidates);
    let intended = implicit_definitions(body.text);
    let mut search = Search::new(flow.graph());
    let mut reported = FxHashSet::default();
    for candidate in candidates {
        let blocks = writes.get(&candidate.register).map_or(&[][..], |writes| writes);
        let name = &body.text[candidate.range];
        if reported.contains(&candidate.register) || intended.contains(name) {
            continue;
        }
        match search.look(candidate.block, blocks, body.extras.maybe_unassigned) {
            Before::Written => continue,
            Before::Sometimes => {
                reported.insert(candidate.register);
                let message = format!("`{name}` may be read before it is written");
                let note = "some path from the function entry to this read does not write it";
                out.push(Diagnostic::new(&MAYBE_UNASSIGNED, candidate.range, message).note(note));
                continue;
            }
            Before::Never => {}
        }
        reported.insert(candidate.register);
        let (message, note) = match blocks {
            [] => ("is read but never written", "its value is undefined"),
            _ => ("is read before it is written", "no path from the function entry to this read writes it"),
        };
        let message = format!("`{name}` {message}");
        out.push(Diagnostic::new(&UNASSIGNED_READ, candidate.range, message).note(note));
    }
}

/// The registers of `// implicit-def: %r1`, which LLVM writes if a value does not matter.
fn implicit_definitions(text: &str) -> FxHashSet<&str> {
    const COMMENT: &str = "// implicit-def: ";
    let comments = memmem::find_iter(text.as_bytes(), COMMENT).map(|at| &text[at + COMMENT.len()..]);
    comments.filter_map(|rest| rest.split_ascii_whitespace().next()).collect()
}

/// Whether an instruction may read a value that does not matter: packing, byte selection, passing an argument.
fn is_passed_on(instr: Instr<'_>) -> bool {
    match instr.opcode.form {
        FormId::Mov => matches!(instr.operands.last(), Some(Operand::Vector(_))),
        FormId::Prmt => true,
        FormId::St => instr.opcode.mods().any(|m| m.space() == Some(Space::Param)),
        _ => false,
    }
}

/// Facts about a register, collected during the walk over all statements.
#[derive(Clone, Copy)]
struct Written {
    /// The block with its first write in text order.
    first: BlockId,
    /// The last block whose further reads need not be examined.
    here: BlockId,
}

fn candidates(body: &Body<'_>, flow: &Flow<'_>) -> Vec<Candidate> {
    let (graph, accesses) = (flow.graph(), flow.accesses());
    let mut written = vec![Written { first: NONE, here: NONE }; body.map.registers.len()];
    for (register, name) in body.map.registers.iter().enumerate() {
        let declaration = &body.map.declarations[name.declaration.0 as usize];
        // Module-scope registers are declared outside; parts of vectors are written together or separately.
        if declaration.range.is_empty() || matches!(declaration.kind, DeclKind::Register { lanes: 2.., .. }) {
            written[register].first = ENTRY;
        }
    }
    for parameter in body.function.params.iter().filter_map(|param| param.reg) {
        written[parameter.0 as usize].first = ENTRY;
    }
    let mut candidates = Vec::new();
    for block in graph.reached_blocks() {
        for src in flow.ordinals(block) {
            let registers = accesses.registers(src);
            for access in registers.clone().filter(|access| access.reads()) {
                let written = &mut written[access.register.0 as usize];
                if written.here == block {
                    continue;
                }
                let is_written = written.first != NONE && flow.dominates(written.first, block);
                if !is_written {
                    if flow.instruction(src).is_some_and(is_passed_on) {
                        continue;
                    }
                    let Some(range) = flow.place(src, &access) else { continue };
                    candidates.push(Candidate { register: access.register, block, range });
                }
                // One examination per block is enough.
                written.here = block;
            }
            for access in registers.filter(|access| access.writes()) {
                let written = &mut written[access.register.0 as usize];
                written.here = block;
                if written.first == NONE {
                    written.first = block;
                }
            }
        }
    }
    candidates
}

/// The blocks that write the registers of candidates, in order.
fn writes(flow: &Flow<'_>, candidates: &[Candidate]) -> FxHashMap<RegId, SmallVec<[BlockId; 4]>> {
    let mut writes: FxHashMap<RegId, SmallVec<[BlockId; 4]>> = FxHashMap::default();
    let last = candidates.iter().map(|candidate| candidate.register.0 as usize).max();
    let mut is_asked_for = vec![false; last.map_or(0, |last| last + 1)];
    for candidate in candidates {
        is_asked_for[candidate.register.0 as usize] = true;
    }
    let graph = flow.graph();
    for block in graph.reached_blocks() {
        for src in flow.ordinals(block) {
            for access in flow.accesses().registers(src).filter(|access| access.writes()) {
                if !is_asked_for.get(access.register.0 as usize).is_some_and(|&is_asked_for| is_asked_for) {
                    continue;
                }
                let blocks = writes.entry(access.register).or_default();
                if blocks.last() != Some(&block) {
                    blocks.push(block);
                }
            }
        }
    }
    writes
}

/// Searches backwards along the control flow.
struct Search<'a> {
    graph: &'a Graph,
    /// For each block: the number of the last walk that visited it.
    seen: Vec<u32>,
    walk: u32,
    work: Vec<BlockId>,
    /// The number of blocks that may still be visited.
    budget: usize,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Self {
        let budget = 100_000 + 16 * graph.blocks().len();
        Self { graph, seen: vec![0; graph.blocks().len()], walk: 0, work: Vec::new(), budget }
    }

    /// On which paths from the start of the function to the start of `block` one of `sources` (sorted) is passed. If
    /// the budget is used up, or the result need not be `exact`, one such path is enough.
    fn look(&mut self, block: BlockId, sources: &[BlockId], exact: bool) -> Before {
        if sources.is_empty() {
            return Before::Never;
        }
        self.walk += 1;
        self.work.clear();
        self.work.push(block);
        let (mut written, mut open) = (false, false);
        while let Some(block) = self.work.pop() {
            open |= block == ENTRY;
            for &before in self.graph.predecessors(block) {
                if self.budget == 0 || written && open {
                    return if self.budget == 0 { Before::Written } else { Before::Sometimes };
                }
                self.budget -= 1;
                if sources.binary_search(&before).is_ok() {
                    if !exact {
                        return Before::Written;
                    }
                    written = true;
                } else if std::mem::replace(&mut self.seen[before as usize], self.walk) != self.walk {
                    self.work.push(before);
                }
            }
        }
        match (written, open) {
            (false, _) => Before::Never,
            (true, false) => Before::Written,
            (true, true) => Before::Sometimes,
        }
    }
}

/// On which paths to a read the register is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Never,
    Sometimes,
    Written,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::marks;

    fn registers(body: &str) -> Vec<String> {
        let body = format!(".reg .b32 %r<8>; .reg .pred %p<4>;\n{body}");
        let name = |mark: String| mark.split(':').next().unwrap_or_default().to_owned();
        marks(&UNASSIGNED_READ, &body).into_iter().map(name).collect()
    }

    #[test]
    fn a_write_on_one_path_is_enough() {
        let body = "setp.eq.u32 %p1, 1, 2; @%p1 bra A; mov.b32 %r1, 1; A: add.u32 %r2, %r1, 1; ret;";
        assert_eq!(registers(body), Vec::<String>::new());
        assert_eq!(registers("@%p1 mov.b32 %r1, 1; add.u32 %r2, %r1, 1; ret;"), ["%p1"]);
    }

    #[test]
    fn a_path_without_a_write() {
        let found = |body: &str| {
            marks(&MAYBE_UNASSIGNED, &format!(".reg .b32 %r<8>; .reg .pred %p<4>;\n{body}")).len()
        };
        let body = "setp.eq.u32 %p1, 1, 2; @%p1 bra A; mov.b32 %r1, 1; A: add.u32 %r2, %r1, 1; ret;";
        assert_eq!(found(body), 1);
        let body = "setp.eq.u32 %p1, 1, 2; @%p1 bra A; mov.b32 %r1, 1; bra B; A: mov.b32 %r1, 2; B: add.u32 %r2, %r1, 1; ret;";
        assert_eq!(found(body), 0);
        let body = "A: setp.eq.u32 %p1, %r1, 2; mov.b32 %r1, 3; @%p1 bra A; ret;";
        assert_eq!(found(body), 1);
    }

    #[test]
    fn writes_of_the_other_arm_do_not_count() {
        let body = "setp.eq.u32 %p1, 1, 2; @%p1 bra A; mov.b32 %r1, 1; bra B;\n\
                    A: add.u32 %r2, %r1, 1; B: ret;";
        assert_eq!(registers(body), ["%r1"]);
    }

    #[test]
    fn loops_carry_values() {
        let body = "A: setp.eq.u32 %p1, %r1, 2; add.u32 %r1, %r2, 1; mov.b32 %r2, 3; @%p1 bra A; ret;";
        assert_eq!(registers(body), Vec::<String>::new());
        let body = "add.u32 %r3, %r1, 1; A: mov.b32 %r1, 1; setp.eq.u32 %p1, %r1, 2; @%p1 bra A; ret;";
        assert_eq!(registers(body), ["%r1"]);
    }

    #[test]
    fn values_that_do_not_matter() {
        let body = ".reg .b64 %d; mov.b32 %r1, 1; mov.b64 %d, {%r1, %r2}; // implicit-def: %r3\n\
                    add.u32 %r4, %r3, 1; ret;";
        assert_eq!(registers(body), Vec::<String>::new());
    }

    #[test]
    fn parts_of_vectors_are_not_looked_at() {
        let body = ".reg .v2 .b32 %v; mov.b32 %v.x, 1; add.u32 %r1, %v.y, 1; ret;";
        assert_eq!(registers(body), Vec::<String>::new());
    }
}
