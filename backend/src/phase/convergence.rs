//! Brings diverged threads of a warp together again: `BSSY` before they part, `BSYNC` where they meet.
//!
//! A divergent branch at `b` parts threads; they meet at its post-dominator `d`. One barrier per `d`, set at a
//! place that
//!
//! - dominates `d`, so that every thread that waits has set the barrier, and is post-dominated by `d`, so that
//!   every thread that set it comes (threads that end take themselves out);
//! - is in the same loops as `d`, so that setting and waiting alternate.
//!
//! That is the end of `b`, or of the preheader of the outermost loop around `b` that `d` is not in, or, where
//! `d` is reached past `b` too, of a dominator. Nor may threads wait at `d` that others need before they come there.
//! Where there is no such place, threads meet further out or stay apart: slower, never wrong. See
//! `docs/convergence.md`.
//!
//! A warp-synchronous operation outside divergent regions needs no `WARPSYNC` of the full mask: it is removed.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Term};
use crate::ori::op::Op;
use crate::phases::Context;
use plan::{Barrier, Plan};
use rustc_hash::FxHashMap;

mod apart;
mod plan;
mod waits;

/// Convergence barrier registers.
const BARRIERS: u32 = 16;

/// Each round may ask for blocks that the next round's barriers need, one level of loops after the other.
const ROUNDS: usize = 16;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<(), CodegenError> {
    for round in 1..=ROUNDS {
        (context.checkpoint)();
        let plan = Plan::new(func, round == ROUNDS);
        if !plan.preheaders.is_empty() || !plan.latches.is_empty() {
            let cfg = Cfg::new(func);
            // What leads to a header after its edges are joined: the new block is the only change.
            let mut joined: FxHashMap<BlockId, Vec<BlockId>> = FxHashMap::default();
            let mut join = |header: BlockId, takes: &dyn Fn(BlockId) -> bool| {
                let preds = joined.entry(header).or_insert_with(|| cfg.preds(header).to_vec());
                let sources: Vec<BlockId> = preds.iter().copied().filter(|p| takes(*p)).collect();
                preds.retain(|p| !takes(*p));
                preds.push(join_edges(func, header, &sources, takes));
            };
            for (header, inside) in plan.preheaders {
                join(header, &|from| !inside.contains(&from));
            }
            for (header, inside) in plan.latches {
                join(header, &|from| inside.contains(&from));
            }
            continue;
        }
        place_barriers(func, &plan.barriers)?;
        remove_warp_syncs(func, &plan.diverged);
        break;
    }
    Ok(())
}

/// Leads the edges into `to` from `sources`, the reached blocks that `takes`, through one new block before it,
/// which it returns.
fn join_edges(
    func: &mut Function,
    to: BlockId,
    sources: &[BlockId],
    takes: &dyn Fn(BlockId) -> bool,
) -> BlockId {
    let new = func.new_block();
    func.block_mut(new).term = Term::Jump(to);
    func.block_mut(new).term_src = func.block(to).term_src;
    let mut phis = std::mem::take(&mut func.block_mut(to).phis);
    for phi in &mut phis {
        let (moved, mut kept): (Vec<_>, Vec<_>) = phi.args.drain(..).partition(|(from, _)| takes(*from));
        let same =
            moved.first().map(|(_, src)| *src).filter(|first| moved.iter().all(|(_, src)| src == first));
        let joined = match same {
            Some(src) => src,
            None => {
                let data = func.value(phi.dst);
                let dst = func.new_value(data.file, data.width);
                func.block_mut(new).phis.push(Phi { dst, args: moved });
                dst.into()
            }
        };
        kept.push((new, joined));
        phi.args = kept;
    }
    func.block_mut(to).phis = phis;
    for from in sources {
        retarget(&mut func.block_mut(*from).term, to, new);
    }
    // Before its target where control falls in from above, else after the last source.
    let at = func.layout.iter().position(|b| *b == to).unwrap_or(0);
    let above = at > 0 && sources.contains(&func.layout[at - 1]);
    let last = func.layout.iter().rposition(|b| sources.contains(b)).map_or(at, |i| i + 1);
    func.layout.insert(if above { at } else { last.max(1) }, new);
    new
}

/// Makes edges to `old` go to `new`.
pub(super) fn retarget(term: &mut Term, old: BlockId, new: BlockId) {
    let change = |b: &mut BlockId| {
        if *b == old {
            *b = new;
        }
    };
    match term {
        Term::Jump(b) => change(b),
        Term::Branch { then, els, .. } => {
            change(then);
            change(els);
        }
        Term::Switch { targets, .. } => targets.iter_mut().for_each(change),
        Term::Exit | Term::Ret | Term::Unreachable => {}
    }
}

fn place_barriers(func: &mut Function, barriers: &[Barrier]) -> Result<(), CodegenError> {
    check_registers(func, barriers)?;
    for barrier in barriers {
        let value = func.new_value(File::B, 1);
        let place = func.block_mut(barrier.place);
        let src = place.term_src;
        place.insts.push(Inst::new(Op::Bssy { target: barrier.meet }, &[Dst::Value(value)], &[], src));
        let meet = func.block_mut(barrier.meet);
        let src = meet.insts.first().map_or(meet.term_src, |inst| inst.src);
        meet.insts.insert(0, Inst::new(Op::Bsync, &[], &[value.into()], src));
    }
    Ok(())
}

/// Refuses functions in which more barriers are set at once than there are registers.
fn check_registers(func: &Function, barriers: &[Barrier]) -> Result<(), CodegenError> {
    if barriers.len() <= BARRIERS as usize {
        return Ok(());
    }
    let mut set = vec![0u32; func.blocks.len()];
    let mut seen = vec![u32::MAX; func.blocks.len()];
    for (i, barrier) in barriers.iter().enumerate() {
        for b in region(func, barrier, &mut seen, i as u32) {
            set[b.index()] += 1;
            if set[b.index()] >= BARRIERS {
                let at = func.block(b).insts.first().map_or(SrcId::default(), |inst| inst.src);
                return Err(CodegenError::unsupported(at, "divergent regions nested more than 16 deep"));
            }
        }
    }
    Ok(())
}

/// Blocks in which the barrier is set: behind its place and before its meeting point. `seen` is scratch, indexed by
/// block, in which no element is `walk` yet.
fn region(func: &Function, barrier: &Barrier, seen: &mut [u32], walk: u32) -> Vec<BlockId> {
    let mut region = Vec::new();
    let mut enter = |from: BlockId, region: &mut Vec<BlockId>| {
        for_each_successor(func, from, |to| {
            if to != barrier.meet && std::mem::replace(&mut seen[to.index()], walk) != walk {
                region.push(to);
            }
        });
    };
    enter(barrier.place, &mut region);
    let mut next = 0;
    while let Some(&at) = region.get(next) {
        enter(at, &mut region);
        next += 1;
    }
    region
}

/// Removes `WARPSYNC` of all threads where they are together anyway.
fn remove_warp_syncs(func: &mut Function, diverged: &[bool]) {
    for i in 0..func.layout.len() {
        let b = func.layout[i];
        if diverged.get(b.index()).copied().unwrap_or(false) {
            continue;
        }
        let insts = &mut func.block_mut(b).insts;
        // One that stands for `bar.warp.sync` also orders memory, and stays: it is of another statement.
        let synchronizes_next = |insts: &[Inst], i: usize| {
            insts.get(i + 1).is_some_and(|next| {
                let together = matches!(
                    next.op,
                    Op::Shfl { .. } | Op::Vote { .. } | Op::Match { .. } | Op::Redux { .. } | Op::Bar { .. }
                );
                together && next.src == insts[i].src
            })
        };
        let keep: Vec<bool> =
            (0..insts.len()).map(|i| !(waits::is_full(&insts[i]) && synchronizes_next(insts, i))).collect();
        if keep.iter().all(|k| *k) {
            continue;
        }
        let mut keep = keep.into_iter();
        insts.retain(|_| keep.next().unwrap_or(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use expect_test::{Expect, expect};

    fn check(body: &str, expected: Expect) {
        let mut func = text::parse(&format!("func \"f\" {{\n{body}\n}}")).unwrap();
        let context = Context { sm: ptx_isa::Sm::new(90), checkpoint: &|| () };
        run(&mut func, &context).unwrap();
        crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
        let text = text::print(&func);
        let lines: Vec<&str> =
            text.lines().filter(|l| l.ends_with(':') || l.contains("BS") || l.contains("JUMP")).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    const DIVERGENT: &str = "b0:\n%v0:r = S2R{sr=0x21}\n%v1:p = ISETP.LT.AND %v0, 0x5, PT\n";

    #[test]
    fn a_triangle_has_one_barrier() {
        check(
            &format!("{DIVERGENT} BRA %v1, b1, b2\nb1:\nSTS RZ, RZ, RZ\nJUMP b2\nb2:\nSTS RZ, RZ, RZ\nEXIT"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b2}
                b1:
                  JUMP b2
                b2:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn an_early_exit_needs_none() {
        check(
            &format!("{DIVERGENT} BRA %v1, b2, b1\nb1:\nSTS RZ, RZ, RZ\nJUMP b2\nb2:\nEXIT"),
            expect![[r#"
            b0:
            b1:
              JUMP b2
            b2:"#]],
        );
    }

    #[test]
    fn a_loop_left_at_different_times_is_set_before_it() {
        check(
            &format!("{DIVERGENT} JUMP b1\nb1:\nSTS RZ, RZ, RZ\nBRA %v1, b1, b2\nb2:\nSTS RZ, RZ, RZ\nEXIT"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b2}
                  JUMP b1
                b1:
                b2:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn short_circuits_share_the_outer_barrier() {
        check(
            &format!(
                "{DIVERGENT} BRA %v1, b1, b3\nb1:\nBRA %v1, b2, b3\nb2:\nSTS RZ, RZ, RZ\nJUMP b3\nb3:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b3}
                b1:
                b2:
                  JUMP b3
                b3:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn branches_back_and_on_meet_in_a_common_latch() {
        check(
            &format!(
                "{DIVERGENT} JUMP b1\nb1:\n%v2:p = ISETP.LT.AND c[0x0][0x160], RZ, PT\nBRA.U %v2, b4, b5\nb5:\nBRA %v1, b2, b3
                b2:\nSTS RZ, RZ, RZ\nJUMP b1\nb3:\nJUMP b1\nb4:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                b5:
                  %v3:b = BSSY{target=b6}
                b2:
                  JUMP b6
                b3:
                  JUMP b6
                b6:
                  BSYNC %v3
                  JUMP b1
                b4:"#]],
        );
    }

    #[test]
    fn a_loop_inside_a_loop_with_the_same_header_is_set_before_it() {
        check(
            &format!(
                "{DIVERGENT} JUMP b1\nb1:\nBRA %v1, b2, b3\nb2:\nSTS RZ, RZ, RZ\nJUMP b1\n
                b3:\nBRA.U %v1, b1, b4\nb4:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  JUMP b5
                b5:
                  %v2:b = BSSY{target=b3}
                  JUMP b1
                b1:
                b2:
                  JUMP b1
                b3:
                  BSYNC %v2
                b4:"#]],
        );
    }

    #[test]
    fn loops_one_after_the_other_have_a_barrier_each() {
        check(
            &format!(
                "{DIVERGENT} JUMP b1\nb1:\nSTS RZ, RZ, RZ\nBRA %v1, b1, b2\nb2:\nSTS RZ, RZ, RZ\nBRA %v1, b2, b3\nb3:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b4}
                  JUMP b1
                b1:
                b4:
                  BSYNC %v2
                  %v3:b = BSSY{target=b3}
                  JUMP b2
                b2:
                b3:
                  BSYNC %v3"#]],
        );
    }

    #[test]
    fn threads_meet_after_a_cycle_with_two_entries() {
        check(
            &format!(
                "{DIVERGENT} BRA %v1, b1, b2\nb1:\nJUMP b2\nb2:\nBRA.U %v1, b1, b3\nb3:\nBRA %v1, b4, b5
                b4:\nSTS RZ, RZ, RZ\nJUMP b5\nb5:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b3}
                b1:
                  JUMP b2
                b2:
                b3:
                  BSYNC %v2
                  %v3:b = BSSY{target=b5}
                b4:
                  JUMP b5
                b5:
                  BSYNC %v3"#]],
        );
    }

    /// The sum of ballots while any thread lives; those that do not go straight to the next turn.
    const WHILE_ANY: &str = "JUMP b1\nb1:\nWARPSYNC 0xffffffff\n%v2:r = VOTE.ANY %v1
        %v3:p = ISETP.EQ.AND %v2, RZ, PT\nBRA %v3, b5, b2\nb2:\nBRA %v1, b1, b3
        b3:\nSTS RZ, RZ, RZ\nJUMP b1\nb5:\nEXIT";

    #[test]
    fn threads_that_skip_the_rest_of_a_turn_meet_before_the_next() {
        check(
            &format!("{DIVERGENT} {WHILE_ANY}"),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                b2:
                  %v4:b = BSSY{target=b6}
                b3:
                  JUMP b6
                b6:
                  BSYNC %v4
                  JUMP b1
                b5:"#]],
        );
    }

    /// Threads do something with all others in a turn of their own each.
    fn turns(inside: &str, every: &str) -> String {
        format!(
            "{DIVERGENT} JUMP b1\nb1:\n{every}\nBRA %v1, b2, b3\nb2:\n{inside}\nJUMP b3
            b3:\nSTS RZ, RZ, RZ\nBRA.U %v1, b1, b4\nb4:\nSTS RZ, RZ, RZ\nEXIT"
        )
    }

    #[test]
    fn those_needed_in_a_later_turn_do_not_wait_in_this_one() {
        check(
            &turns("WARPSYNC 0xffffffff", "STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b4}
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:
                  BSYNC %v2"#]],
        );
        check(
            &turns("WARPSYNC %v0", "STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b4}
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:
                  BSYNC %v2"#]],
        );
        check(
            &turns("BAR.SYNC RZ", "STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b4}
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn nobody_is_needed_past_an_operation_of_the_whole_warp() {
        check(
            &turns("WARPSYNC %v0", "WARPSYNC 0xffffffff"),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                  %v2:b = BSSY{target=b3}
                b2:
                  JUMP b3
                b3:
                  BSYNC %v2
                b4:"#]],
        );
        // A guarded one lets threads pass.
        check(
            &turns("WARPSYNC %v0", "@%v1 WARPSYNC 0xffffffff"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b4}
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn barriers_of_the_block_pair_with_each_other() {
        let sides =
            |last: &str| format!("{DIVERGENT} BRA %v1, b1, b2\nb1:\nBAR.SYNC RZ\nJUMP b2\nb2:\n{last}\nEXIT");
        check(
            &sides("STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b2}
                b1:
                  JUMP b2
                b2:
                  BSYNC %v2"#]],
        );
        check(
            &sides("BAR.SYNC RZ"),
            expect![[r#"
                b0:
                b1:
                  JUMP b2
                b2:"#]],
        );
        check(
            &sides("BAR.ARV RZ, 0x40"),
            expect![[r#"
                b0:
                b1:
                  JUMP b2
                b2:"#]],
        );
        // One that all come to lets nobody pass who is needed elsewhere; one for some of the threads might.
        let between = |barrier: &str| turns("WARPSYNC %v0", barrier);
        check(
            &between("BAR.SYNC RZ"),
            expect![[r#"
            b0:
              JUMP b1
            b1:
              %v2:b = BSSY{target=b3}
            b2:
              JUMP b3
            b3:
              BSYNC %v2
            b4:"#]],
        );
        check(
            &between("BAR.SYNC RZ, 0x40"),
            expect![[r#"
            b0:
              %v2:b = BSSY{target=b4}
              JUMP b1
            b1:
            b2:
              JUMP b3
            b3:
            b4:
              BSYNC %v2"#]],
        );
        // The warp is together at one of the kind `.aligned`.
        check(
            &sides("BAR.SYNC RZ").replace("BAR", "WARPSYNC 0xffffffff\nBAR"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b2}
                b1:
                  JUMP b2
                b2:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn groups_that_come_one_after_the_other_do_not_unite_within_a_region() {
        // Threads leave the loop in different turns by b3.
        let left = |inside: &str| {
            format!(
                "{DIVERGENT} JUMP b1\nb1:\nBRA %v1, b3, b2\nb2:\nSTS RZ, RZ, RZ\nBRA %v1, b1, b6
                b3:\nBRA %v1, b4, b5\nb4:\n{inside}\nJUMP b5\nb5:\nSTS RZ, RZ, RZ\nJUMP b6\nb6:\nSTS RZ, RZ, RZ\nEXIT"
            )
        };
        check(
            &left("STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b6}
                  JUMP b1
                b1:
                b2:
                b3:
                  %v3:b = BSSY{target=b5}
                b4:
                  JUMP b5
                b5:
                  BSYNC %v3
                  JUMP b6
                b6:
                  BSYNC %v2"#]],
        );
        check(
            &left("WARPSYNC %v0"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b6}
                  JUMP b1
                b1:
                b2:
                b3:
                b4:
                  JUMP b5
                b5:
                  JUMP b6
                b6:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn full_warp_syncs_stay_in_divergent_regions_only() {
        let shuffle = "WARPSYNC 0xffffffff\n%v9:r = SHFL.IDX %v0, RZ, 0x1f\n";
        let body = format!(
            "{DIVERGENT}{shuffle} BRA %v1, b1, b2\nb1:\n{}STG.E RZ, RZ, %v8\nJUMP b2\nb2:\nSTS RZ, RZ, RZ\nSTG.E RZ, RZ, %v9\nEXIT",
            shuffle.replace("%v9", "%v8")
        );
        let mut func = text::parse(&format!("func \"f\" {{\n{body}\n}}")).unwrap();
        run(&mut func, &Context { sm: ptx_isa::Sm::new(90), checkpoint: &|| () }).unwrap();
        let count = |b: u32| func.block(BlockId(b)).insts.iter().filter(|i| i.op == Op::Warpsync).count();
        assert_eq!((count(0), count(1)), (0, 1));
    }
}
