//! Loop-carried values. The next iteration's value can take the register of the current one if no instruction reads the
//! current value after the next one is defined. Otherwise each iteration needs a move, and often a branch to the block
//! that contains the move.

use super::graph::Graph;
use super::lanes::Lanes;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Function, Inst, SrcKind, Value};
use crate::ori::op::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The number of cycles by which waiting for the readers of the old value may lengthen a block: the latency of a 64-bit
/// sum.
const LONGER: u32 = 12;
/// The number of edges per instruction that the search for cycles may follow in a block.
const VISITS: usize = 64;

/// Two lanes that a phi can put into one register if they are never live at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tie {
    /// The lane of the phi.
    old: u32,
    /// The lane of its argument, which the block defines.
    new: u32,
}

/// The ties of the phis in successors of `b` that `b` reads: phis of loops that end in `b`. `end`: the lanes that are
/// live at its end.
pub(super) fn ties(func: &Function, cfg: &Cfg, b: BlockId, lanes: &Lanes, end: &[u32]) -> Vec<Tie> {
    let mut ties = Vec::new();
    let mut makers: Option<FxHashMap<Value, &Inst>> = None;
    for_each_successor(func, b, |to| {
        // The block reads no phis of other successors.
        if cfg.place(to) > cfg.place(b) {
            return;
        }
        for phi in &func.block(to).phis {
            let arg = phi.args.iter().find(|(from, _)| *from == b);
            let Some(arg) = arg.and_then(|(_, arg)| arg.value().map(|_| arg.kind)) else { continue };
            let makers = makers.get_or_insert_with(|| {
                let insts = &func.block(b).insts;
                insts.iter().flat_map(|inst| inst.defs().map(move |v| (v, inst))).collect()
            });
            for part in 0..func.value(phi.dst).width {
                let Some(old) = lanes.lane(phi.dst, part) else { continue };
                // A value that is still live afterwards keeps its register.
                if let Some(new) = source(func, makers, arg, part).and_then(|(v, part)| lanes.lane(v, part))
                    && new != old
                    && !end.contains(&old)
                {
                    ties.push(Tie { old, new });
                }
            }
        }
    });
    ties
}

/// The value in the block, and its part, from which packs and copies take a part of an operand.
fn source(func: &Function, makers: &FxHashMap<Value, &Inst>, kind: SrcKind, part: u8) -> Option<(Value, u8)> {
    let (mut kind, mut part) = (kind, part);
    loop {
        let (v, at) = match kind {
            SrcKind::Value(v) => (v, part),
            SrcKind::Part(v, at) => (v, at),
            _ => return None,
        };
        let inst = makers.get(&v)?;
        match inst.op {
            Op::Pack => (kind, part) = (inst.srcs.get(usize::from(at))?.kind, 0),
            Op::Copy => (kind, part) = (inst.srcs.first()?.kind, at),
            _ => return (at < func.value(v).width).then_some((v, at)),
        }
    }
}

/// Makes the definitions of new values wait for the readers of the old ones, as far as possible without lengthening the
/// block much.
pub(super) fn keep(graph: &mut Graph, ties: &[Tie], insts: &[Inst], lanes: &Lanes) {
    if ties.is_empty() {
        return;
    }
    let heights = heights(graph);
    let length = graph.depth.iter().zip(&heights).map(|(depth, height)| depth + height).max().unwrap_or(0);
    let mut used: FxHashMap<u32, Used> = FxHashMap::default();
    for tie in ties {
        used.entry(tie.old).or_default();
        used.entry(tie.new).or_default();
    }
    let mut after: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); insts.len()];
    for (i, inst) in (0u32..).zip(insts) {
        graph.before[i as usize].iter().for_each(|(before, _)| after[*before as usize].push(i));
        lanes.for_each(inst, |lane, defined| match used.get_mut(&lane) {
            Some(used) if defined => used.maker = Some(i),
            Some(used) if used.readers.last() != Some(&i) => used.readers.push(i),
            _ => {}
        });
    }
    let mut budget = VISITS * insts.len();
    let mut seen = vec![u32::MAX; insts.len()];
    for (number, tie) in (0..).zip(ties) {
        let Some(maker) = used[&tie.new].maker else { continue };
        let readers = used[&tie.old].readers.iter().copied().filter(|reader| *reader != maker);
        let Some(start) = readers.clone().map(|i| graph.depth[i as usize] + 1).max() else { continue };
        if start + heights[maker as usize] > length + LONGER {
            continue;
        }
        // Readers that wait for the new value come after it.
        let mut work = vec![maker];
        while let Some(at) = work.pop().filter(|_| budget > 0) {
            budget -= 1;
            if std::mem::replace(&mut seen[at as usize], number) != number {
                work.extend(&after[at as usize]);
            }
        }
        if budget > 0 && readers.clone().all(|reader| seen[reader as usize] != number) {
            for reader in readers {
                graph.edge(reader, maker, 1);
                after[reader as usize].push(maker);
            }
        }
    }
}

/// The instructions that touch a lane.
#[derive(Default)]
struct Used {
    maker: Option<u32>,
    readers: SmallVec<[u32; 4]>,
}

/// For each instruction: the number of cycles from its issue until its dependent instructions are complete, in its
/// block or later ones.
fn heights(graph: &Graph) -> Vec<u32> {
    let mut heights = graph.later.clone();
    for i in (0..heights.len()).rev() {
        for &(before, wait) in &graph.before[i] {
            heights[before as usize] = heights[before as usize].max(heights[i] + wait);
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use crate::ori::ir::BlockId;
    use crate::ori::text;
    use crate::ori::verify::{Stage, verify};
    use crate::sched::pre::Plans;
    use crate::target::Target;

    /// The loop's instructions in their new order, as positions in the text.
    fn order(body: &str) -> Vec<u32> {
        let numbered: String =
            body.lines().zip(1..).map(|(line, i)| format!("{} #{i}\n", line.trim())).collect();
        let text = format!(
            "entry \"f\" {{\nb0:\n%v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]\n%v1:r = S2R{{sr=0x21}}\nJUMP b1\nb1:\n\
             %v2:r2 = phi b0 %v0, b1 %v12\n%v3:r = phi b0 %v1, b1 %v13\n{numbered}BRA %v20, b1, b2\nb2:\nEXIT\n}}"
        );
        let mut func = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        verify(&func, Stage::Built).expect("is valid");
        let target = Target::of(ptx_isa::Sm::new(80)).expect("a target");
        Plans::new(&func, target).order(&func, 255, &|| ()).apply(&mut func);
        verify(&func, Stage::Built).expect("stays valid");
        func.block(BlockId(1)).insts.iter().map(|inst| inst.src.0).collect()
    }

    fn place(order: &[u32], inst: u32) -> usize {
        order.iter().position(|i| *i == inst).expect("is there")
    }

    #[test]
    fn the_next_address_comes_after_what_uses_this_one() {
        let order = order(
            "%v10:r, %v21:p, _ = IADD3 %v2.0, 0x4, RZ
             %v11:r, _, _ = IADD3.X %v2.1, RZ, RZ, %v21, PT
             %v12:r2 = PACK %v10, %v11
             %v5:r = LDG.E %v2, RZ
             %v6:r = FADD %v5, %v5
             STG.E %v2, RZ, %v6
             %v13:r, _, _ = IADD3 %v3, 0x1, RZ
             %v20:p, _ = ISETP.LT.AND %v13, c[0x0][0x168], PT",
        );
        assert!(place(&order, 1) > place(&order, 6) && place(&order, 2) > place(&order, 6), "{order:?}");
    }

    /// An instruction that needs the new value also reads the old value, so both are live together.
    #[test]
    fn a_value_that_both_iterations_need_waits_for_nothing() {
        let order = order(
            "%v12:r2 = LDG.E.64 %v2, RZ
             %v6:r = LDG.E %v12, RZ
             STG.E %v2, RZ, %v6
             %v13:r, _, _ = IADD3 %v3, 0x1, RZ
             %v20:p, _ = ISETP.LT.AND %v13, c[0x0][0x168], PT",
        );
        assert!(place(&order, 1) < place(&order, 3), "{order:?}");
    }

    #[test]
    fn a_counter_does_not_hold_up_the_branch() {
        let order = order(
            "%v12:r2 = LDG.E.64 %v2, RZ
             %v5:r = LDG.E{offset=8} %v2, RZ
             %v6:r = FADD %v5, %v3
             STG.E{offset=8} %v12, RZ, %v6
             %v13:r, _, _ = IADD3 %v3, 0x1, RZ
             %v20:p, _ = ISETP.LT.AND %v13, c[0x0][0x168], PT",
        );
        assert!(place(&order, 6) < place(&order, 4), "{order:?}");
    }
}
