//! Finds instructions of a whole warp that only some of its lanes reach.
//!
//! Only cases that constants prove are reported: conditions on `%laneid`, on `%tid.x` in CTAs that are at least a warp
//! wide, and on the elected thread.

use std::fmt::Write as _;

use ptx_isa::{Facts, FormId, Mod, Opcode};
use rustc_hash::FxHashMap;
use text_size::{TextRange, TextSize};

use super::Body;
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::flow::{BlockId, Flow, Instr, Split, Value};

declare_lint! {
    /// An instruction that requires all threads of a warp is executed by only some of them.
    pub(super) PARTIAL_WARP = "W0508" "partial-warp", Warning, since "0.1.0"
}

declare_lint! {
    /// A member mask is zero or includes threads that never execute the instruction.
    pub(super) MEMBER_MASK = "W0509" "member-mask", Warning, since "0.1.0"
}

declare_lint! {
    /// An instruction that requires all threads of a warp follows a branch that may diverge.
    pub(super) VARYING_BRANCH = "W0517" "varying-branch", Allow, since "0.1.0"
}

pub(super) fn check(body: &Body<'_>, out: &mut Findings) {
    let Some(flow) = body.flow() else { return };
    if !flow.survey().any(|form| has_mask(form) || is_convergent(form)) {
        return;
    }
    let graph = flow.graph();
    let mut masked = Vec::new();
    // The lanes that reach an instruction at any position: threads with the same mask may be at several positions.
    let mut present: FxHashMap<(Opcode, u32), u32> = FxHashMap::default();
    for block in graph.reached_blocks() {
        for instr in flow.landmarks(block) {
            if has_mask(instr.opcode.form) {
                if let Some(found) = mask(body, flow, block, instr) {
                    *present.entry((*instr.opcode, found.mask)).or_default() |= found.mask & !found.absent;
                    masked.push((instr, found));
                }
            } else if is_aligned(instr) {
                aligned(body, flow, block, instr, out);
            }
        }
    }
    for (instr, mut found) in masked {
        found.absent &= !present.get(&(*instr.opcode, found.mask)).copied().unwrap_or(0);
        report_mask(body, flow, instr, found, out);
    }
}

/// Whether the last operand is a mask of lanes.
fn has_mask(form: FormId) -> bool {
    use FormId as F;
    matches!(form, F::ShflSync | F::VoteSync | F::MatchSync | F::Redux | F::Elect | F::BarWarpSync)
}

fn is_convergent(form: FormId) -> bool {
    ptx_isa::form(form).facts.has(Facts::CONVERGENT)
}

/// Whether all threads of the warp must execute the same instruction.
fn is_aligned(instr: Instr<'_>) -> bool {
    is_convergent(instr.opcode.form) && (instr.opcode.form == FormId::Bar || instr.opcode.has(Mod::Aligned))
}

fn aligned(body: &Body<'_>, flow: &Flow<'_>, block: BlockId, instr: Instr<'_>, out: &mut Findings) {
    let is_guarded =
        instr.guard.is_some_and(|guard| flow.register(guard.reg).splits_warps(&body.function.launch));
    let split = split(flow, block);
    if !is_guarded && split.is_none() && !body.extras.varying_branches {
        return;
    }
    let Some(place) = body.name(instr) else { return };
    let name = instr.opcode.form.mnemonic();
    if !is_guarded && split.is_none() {
        if may_be_parted(flow, block)
            && let Some(branch) = flow.uniformity().divergent(block)
        {
            let message = format!(
                "`{name}` may be executed by only part of a warp: it follows a branch that may diverge"
            );
            out.push(parted(body, flow, branch, Diagnostic::new(&VARYING_BRANCH, place, message).rule()));
        }
        return;
    }
    let message = format!("`{name}` is executed by only part of a warp, but requires all of its threads");
    let diagnostic = Diagnostic::new(&PARTIAL_WARP, place, message);
    out.push(match split {
        Some(split) if !is_guarded => parted(body, flow, split.branch, diagnostic.rule()),
        _ => diagnostic.note("the guard predicate is true in only some of the lanes"),
    });
}

/// The number of branches above a block that are examined; if there are more, the block counts as divergent.
const ABOVE: usize = 64;

/// Whether a block is below a branch whose arms meet only after the block: a cheap test before the analyses.
fn may_be_parted(flow: &Flow<'_>, block: BlockId) -> bool {
    let mut above = block;
    for _ in 0..ABOVE {
        let Some(branch) = flow.dominators().parent(above) else { return false };
        above = branch;
        let after = flow.post_dominators();
        if !after.dominates(block, branch) && after.parent(branch).is_some() {
            return true;
        }
    }
    true
}

fn split(flow: &Flow<'_>, block: BlockId) -> Option<Split> {
    if may_be_parted(flow, block) { flow.split(block) } else { None }
}

fn parted(body: &Body<'_>, flow: &Flow<'_>, branch: BlockId, diagnostic: Diagnostic) -> Diagnostic {
    let jump = flow.instructions(branch).next_back();
    match jump.and_then(|jump| body.map.statement(jump.src)) {
        Some(place) => diagnostic.related(place, "the warp diverges at this branch"),
        None => diagnostic,
    }
}

/// An instruction with a constant member mask.
struct Masked {
    mask: u32,
    /// The lanes of the mask that cannot execute it.
    absent: u32,
    split: Option<Split>,
    is_guarded: bool,
}

fn mask(body: &Body<'_>, flow: &Flow<'_>, block: BlockId, instr: Instr<'_>) -> Option<Masked> {
    let Value::Constant(mask) = flow.value(instr.operands.last()?) else { return None };
    let mask = mask as u32;
    let guard = instr.guard.map_or(0, |guard| {
        let holds = flow.register(guard.reg);
        let holds = if guard.negated { holds.opposite() } else { holds };
        if holds.splits_warps(&body.function.launch) { holds.lanes().map_or(0, |lanes| !lanes) } else { 0 }
    });
    let split = split(flow, block);
    let absent = mask & (guard | split.as_ref().map_or(0, |split| split.absent));
    Some(Masked { mask, absent, split, is_guarded: guard != 0 })
}

fn report_mask(body: &Body<'_>, flow: &Flow<'_>, instr: Instr<'_>, found: Masked, out: &mut Findings) {
    let Some(place) = body.map.statement(instr.src) else { return };
    let range = last_operand(body.text, place);
    if found.mask == 0 {
        let name = instr.opcode.form.mnemonic();
        let message = format!("`membermask` of `{name}` is 0; it must include the executing lane");
        out.push(Diagnostic::new(&MEMBER_MASK, range, message).rule());
        return;
    }
    if found.absent == 0 {
        return;
    }
    let message =
        format!("`membermask` includes {}, which cannot execute this instruction", lanes(found.absent));
    let diagnostic = Diagnostic::new(&MEMBER_MASK, range, message);
    out.push(match found.split {
        Some(split) if !found.is_guarded => parted(body, flow, split.branch, diagnostic.rule()),
        _ => diagnostic.note("the guard predicate is false in those lanes"),
    });
}

/// `lanes 0, 4 to 7`
fn lanes(mask: u32) -> String {
    let mut text = String::from(if mask.count_ones() == 1 { "lane" } else { "lanes" });
    let mut lane = 0;
    let mut separator = " ";
    while lane < 32 {
        if mask >> lane & 1 == 0 {
            lane += 1;
            continue;
        }
        let run = (mask >> lane).trailing_ones();
        let _ = match run {
            1 => write!(text, "{separator}{lane}"),
            _ => write!(text, "{separator}{lane} to {}", lane + run - 1),
        };
        separator = ", ";
        lane += run;
    }
    text
}

/// The range of the last operand of a statement; if the text is unusual, the whole statement.
fn last_operand(text: &str, statement: TextRange) -> TextRange {
    let all = text[statement].trim_end_matches(';').trim_end();
    match all.rfind([',', ' ', '\t', '\n']) {
        Some(before) if !all.contains("/*") && !all.contains("//") => {
            let end = statement.start() + TextSize::of(all);
            TextRange::new(statement.start() + TextSize::new(before as u32 + 1), end)
        }
        _ => statement,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::is_notable;
    use crate::tests::marks;

    const HEAD: &str = ".reg .b32 %r<8>; .reg .pred %p<4>; mov.u32 %r1, %laneid; mov.u32 %r2, %tid.x;\n";

    #[test]
    fn what_is_looked_at_is_a_landmark() {
        let looked_at = FormId::ALL.iter().filter(|&&form| has_mask(form) || is_convergent(form));
        assert_eq!(looked_at.filter(|&&form| !is_notable(form)).collect::<Vec<_>>(), Vec::<&FormId>::new());
    }

    fn partial(body: &str) -> usize {
        marks(&PARTIAL_WARP, &format!("{HEAD}{body}")).len()
    }

    fn masks(body: &str) -> Vec<String> {
        marks(&MEMBER_MASK, &format!("{HEAD}{body}"))
    }

    #[test]
    fn barriers_behind_conditions_on_lanes() {
        let within = |condition: &str| {
            partial(&format!("{condition} @%p1 bra A;\nbar.sync 0;\nA: mov.u32 %r3, 0; ret;"))
        };
        assert_eq!(within("setp.eq.u32 %p1, %r1, 0;"), 1);
        assert_eq!(within("setp.ge.u32 %p1, %r2, 16;"), 1);
        assert_eq!(within("and.b32 %r4, %r2, 31; setp.ne.s32 %p1, %r4, 0;"), 1);
        assert_eq!(within("elect.sync _|%p1, 0xffffffff;"), 1);
        // The condition is the same in the whole warp.
        assert_eq!(within("setp.ge.u32 %p1, %r2, 64;"), 0);
        assert_eq!(within("shr.u32 %r4, %r1, 5; setp.eq.u32 %p1, %r4, 0;"), 0);
        assert_eq!(within("shr.u32 %r4, %r2, 5; setp.eq.u32 %p1, %r4, 0;"), 0);
        assert_eq!(within("mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 0;"), 0);
    }

    #[test]
    fn both_sides_meet_before_the_barrier() {
        let body = "setp.eq.u32 %p1, %r1, 0; @%p1 bra A; mov.u32 %r3, 0; A: bar.sync 0; ret;";
        assert_eq!(partial(body), 0);
    }

    #[test]
    fn threads_that_leave_early_are_not_waited_for() {
        let body = "setp.eq.u32 %p1, %r1, 0; @%p1 bra A; ret; A: bar.sync 0; ret;";
        assert_eq!(partial(body), 0);
        assert_eq!(partial("setp.eq.u32 %p1, %r1, 0; @%p1 bra A; bar.sync 0; A: ret;"), 0);
    }

    #[test]
    fn branches_on_what_lanes_compute() {
        let varying = |before: &str| {
            let body = format!("{HEAD}{before} @%p1 bra A;\nbar.sync 0;\nA: mov.u32 %r4, 0; ret;");
            marks(&VARYING_BRANCH, &body).len()
        };
        let load = ".reg .b64 %rd<4>; mov.b64 %rd1, 0;";
        assert_eq!(varying("ld.param.u32 %r3, [input]; setp.ge.u32 %p1, %r2, %r3;"), 1);
        assert_eq!(
            varying(
                ".reg .b64 %rd0; mov.b64 %rd0, 0; atom.global.add.u32 %r3, [%rd0], 1; setp.ge.u32 %p1, %r3, 7;"
            ),
            1
        );
        assert_eq!(varying("ld.param.u32 %r3, [input]; setp.ge.u32 %p1, %r3, 7;"), 0);
        let by_address = "cvt.u64.u32 %rd2, %r2; ld.global.u32 %r3, [%rd2]; setp.ge.u32 %p1, %r3, 7;";
        assert_eq!(varying(&format!("{load} {by_address}")), 1);
        // The same in a warp: votes, and conditions on whole warps.
        assert_eq!(varying("vote.sync.any.pred %p2, %p3, -1; not.pred %p1, %p2;"), 0);
        assert_eq!(varying("and.b32 %r3, %r2, -32; setp.ne.s32 %p1, %r3, 0;"), 0);
        let signed =
            "shr.s32 %r3, %r2, 31; shr.u32 %r7, %r3, 27; add.s32 %r5, %r2, %r7; shr.s32 %r6, %r5, 5;";
        assert_eq!(varying(&format!("{signed} setp.ne.s32 %p1, %r6, 0;")), 0);
        assert_eq!(varying("shr.u32 %r3, %r2, 5; ld.param.u32 %r5, [input]; setp.ge.u32 %p1, %r3, %r5;"), 0);
    }

    #[test]
    fn values_that_depend_on_a_path() {
        let body = "ld.param.u32 %r3, [input]; setp.ge.u32 %p2, %r2, %r3; mov.u32 %r5, 0; @%p2 bra B;\n\
                    mov.u32 %r5, 1; B: setp.eq.u32 %p1, %r5, 0; @%p1 bra A;\nbar.sync 0; A: mov.u32 %r4, 0; ret;";
        assert_eq!(marks(&VARYING_BRANCH, &format!("{HEAD}{body}")).len(), 1);
    }

    #[test]
    fn deeper_blocks_and_guards() {
        let body = "setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r3, 0; @%p1 bra A;\n\
                    @%p2 bra B; bar.sync 0; B: bar.sync 1; A: mov.u32 %r4, 0; ret;";
        assert_eq!(partial(body), 2);
        assert_eq!(partial("setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 0; ret;"), 1);
    }

    #[test]
    fn masks_of_absent_lanes() {
        let body = "setp.gt.u32 %p1, %r1, 3; @%p1 bra A;\n\
                    bar.warp.sync 0xf; bar.warp.sync 0x1f; A: mov.u32 %r4, 0; ret;";
        assert_eq!(
            masks(body),
            ["0x1f: `membermask` includes lane 4, which cannot execute this instruction"]
        );
        let body = "setp.gt.u32 %p1, %r1, 3; @%p1 shfl.sync.idx.b32 %r3, %r1, 0, 31, -1; ret;";
        assert_eq!(
            masks(body),
            ["-1: `membermask` includes lanes 0 to 3, which cannot execute this instruction"]
        );
    }

    #[test]
    fn lanes_that_execute_the_same_instruction_elsewhere() {
        let arms = |other: &str| {
            format!(
                "setp.gt.u32 %p1, %r1, 3; @%p1 bra A;\nshfl.sync.idx.b32 %r3, %r1, 0, 31, -1; bra B;\n\
                 A: shfl.sync.{other}; B: mov.u32 %r4, 0; ret;"
            )
        };
        assert_eq!(masks(&arms("idx.b32 %r4, %r1, 1, 31, -1")).len(), 0);
        assert_eq!(masks(&arms("up.b32 %r4, %r1, 1, 0, -1")).len(), 2);
        assert_eq!(masks(&arms("idx.b32 %r4, %r1, 1, 31, 0xfffffff0")).len(), 1);
    }

    #[test]
    fn empty_masks() {
        let body = "mov.b32 %r4, 0; shfl.sync.idx.b32 %r3, %r1, 0, 31, %r4; ret;";
        assert_eq!(masks(body).len(), 1);
    }
}
