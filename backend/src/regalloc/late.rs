//! Finds where registers should not be overwritten soon, because an instruction may still read them.
//!
//! Instructions without a fixed latency read their operands some time after issue. An instruction that overwrites such an
//! operand waits for a scoreboard, unless another instruction has already waited for the result of the reader. ptxas does not
//! rely on that: it keeps values out of these registers as long as others cost nothing. It reuses the operands of 64-bit float
//! operations and of moves to uniform registers at once, whatever their latency.

use crate::emit::any_form;
use crate::ori::ir::{File, Function, SrcKind};
use crate::ori::operations::families;
use crate::regalloc::bundle::Bundle;
use crate::regalloc::live::{Interval, Liveness, Point, Ranges};
use rustc_hash::FxHashMap;
use sass::{Class, FormId, Sm};

/// The number of instructions after which a late read is taken to be complete.
const SETTLING: Point = 12;

/// For each lane of general registers, the write points of instructions that read it late; sorted.
#[derive(Debug)]
pub(crate) struct LateReads(Vec<(usize, Point)>);

impl LateReads {
    pub(crate) fn new(func: &Function, live: &Liveness, sm: Sm) -> LateReads {
        let mut known: FxHashMap<&'static str, bool> = FxHashMap::default();
        let mut reads = Vec::new();
        for &b in &func.layout {
            let span = live.spans[b.index()];
            for (i, inst) in func.block(b).insts.iter().enumerate() {
                let Some(&family) = families(&inst.op).first() else { continue };
                let is_late = *known
                    .entry(family)
                    .or_insert_with(|| any_form(sm, &inst.op).is_some_and(|form| holds(form, sm)));
                if !is_late {
                    continue;
                }
                for src in &inst.srcs {
                    let (v, parts) = match src.kind {
                        SrcKind::Value(v) => (v, 0..func.value(v).width),
                        SrcKind::Part(v, part) => (v, part..part + 1),
                        _ => continue,
                    };
                    if func.value(v).file == File::R {
                        reads.extend(parts.map(|part| (live.lane(v, part), span.write(i))));
                    }
                }
            }
        }
        reads.sort_unstable();
        reads.dedup();
        LateReads(reads)
    }

    /// For each register of a bundle that is read late: its offset in the run, and the points after such reads at which
    /// other values should not take it. The write point of the reader is not one of them, because it writes its result
    /// after it has read its operands.
    pub(crate) fn unsettled<'a>(
        &'a self,
        bundle: &'a Bundle,
        func: &'a Function,
        live: &'a Liveness,
    ) -> impl Iterator<Item = (usize, Ranges)> + 'a {
        let lanes = bundle.members.iter().flat_map(move |&(v, offset)| {
            (0..func.value(v).width).map(move |part| (usize::from(offset + part), live.lane(v, part)))
        });
        lanes.filter_map(move |(offset, lane)| {
            let first = self.0.partition_point(|read| read.0 < lane);
            let reads = self.0[first..].iter().take_while(|read| read.0 == lane);
            let after =
                reads.map(|&(_, at)| Interval { start: at + 1, end: (at + 2 * SETTLING).min(live.points) });
            let after = Ranges::from_unsorted(after.filter(|i| i.start < i.end).collect());
            (!after.is_empty()).then_some((offset, after))
        })
    }
}

/// Whether instructions of a form hold their operands, so that other values should not take the registers soon.
fn holds(form: FormId, sm: Sm) -> bool {
    let inst = sass::Inst::new(form);
    inst.reads_late(sm) && !matches!(inst.class(sm), Class::Fp64 | Class::Fp64Compare | Class::UniformLoad)
}
