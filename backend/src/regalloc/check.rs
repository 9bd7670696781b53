//! A symbolic check of an allocation, after the idea of regalloc2's checker.
//!
//! Every operand of every original instruction must find its value in the registers that it names. Each block of the
//! allocated code is executed once ([`run`]). For each operand, either the block itself computes the value, or it
//! leaves a *demand*: a place (a register or a word of the frame) must hold a *content* at the block's start. A content
//! is a lane of an SSA value, a constant, or a predicate turned into an integer. Demands are traced backwards along the
//! edges ([`trace`]), through moves, spills, reloads and phis, to a block that computes the content in that place. A
//! demand fails if a block computes something else there, if the trace passes the definition of the lane, or if it
//! reaches the start of the function. A demand that reaches itself holds if it holds on all other paths.
//!
//! So the work is proportional to the number of instructions, and to the number of blocks through which values live.
//! Ties, alignment, the order and the operations of the instructions, and the edges of the graph are checked on the
//! way. Uniform registers must also keep their contents while other threads of the warp run elsewhere ([`uniform`]).
//!
//! The checker shares no code with the allocator. From [`Allocation`] it takes only the correspondence of instructions,
//! and verifies it: each original instruction must be present, unchanged and in order.

mod content;
#[cfg(test)]
mod mutants;
mod run;
mod structure;
mod trace;
mod uniform;

use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Function, Reg, Src, SrcKind, SrcMods, Term, Value};
use crate::ori::op::Op;
use crate::regalloc::Allocation;
use crate::regalloc::convention::Lent;
use crate::regalloc::counts::{self, Counts};
use crate::target::Target;
use content::Content;
use trace::Trace;

/// Verifies that `after` computes the same as `before`, in a program whose threads have `most` registers at most, as
/// ptxas counts them. `checkpoint` is called often; it cancels by unwinding.
pub fn check(
    before: &Function,
    after: &Function,
    target: &Target,
    allocation: &Allocation,
    most: u32,
    checkpoint: &dyn Fn(),
) -> Result<(), String> {
    let checker = Checker::new(before, after, target, allocation, counts::end(most));
    checkpoint();
    checker.structure()?;
    checkpoint();
    let mut trace = Trace::new(&checker);
    checker.run_blocks(&mut trace, checkpoint)?;
    trace.finish(checkpoint)
}

struct Checker<'a> {
    before: &'a Function,
    after: &'a Function,
    target: &'a Target,
    origin: &'a [Vec<Option<u32>>],
    cfg: Cfg,
    lent: Lent,
    /// The number of registers of a thread of the output at each point, if it changes.
    counts: Option<Counts>,
    /// The end of the general registers that a thread of the program may have.
    end: u8,
    lane_base: Vec<u32>,
    /// For each lane, what it always holds; packs, copies and constants are resolved.
    canonical: Vec<Content>,
}

impl<'a> Checker<'a> {
    fn new(
        before: &'a Function,
        after: &'a Function,
        target: &'a Target,
        allocation: &'a Allocation,
        end: u8,
    ) -> Checker<'a> {
        let mut lane_base = Vec::with_capacity(before.values.len());
        let mut lanes = 0;
        for data in &before.values {
            lane_base.push(lanes);
            lanes += u32::from(data.width);
        }
        let canonical = (0..lanes).map(|lane| Content::Lane { lane, not: false }).collect();
        let cfg = Cfg::new(before);
        let (origin, lent) = (&allocation.origin, Lent::of(after));
        let counts = Counts::of(after, &Cfg::new(after));
        let mut checker =
            Checker { before, after, target, origin, cfg, lent, counts, end, lane_base, canonical };
        checker.see_through();
        checker
    }

    fn lane(&self, value: Value, part: u8) -> u32 {
        self.lane_base[value.index()] + u32::from(part)
    }

    /// The content that represents a value's lane.
    fn expected(&self, value: Value, part: u8) -> Content {
        self.canonical[self.lane(value, part) as usize]
    }

    /// Resolves lanes that are other lanes or constants. In reverse postorder, definitions precede uses.
    fn see_through(&mut self) {
        let before = self.before;
        let unreached = before.layout.iter().copied().filter(|b| !self.cfg.is_reached(*b));
        let order: Vec<BlockId> = self.cfg.order.iter().copied().chain(unreached).collect();
        for b in order {
            // A phi with one predecessor is a copy. Its moves may be after the predecessor's end, where no place holds
            // the constant that it stands for.
            for phi in &before.block(b).phis {
                if let [(_, arg)] = phi.args[..] {
                    for i in 0..before.value(phi.dst).width {
                        self.alias(self.lane(phi.dst, i), &arg, i);
                    }
                }
            }
            for inst in &before.block(b).insts {
                let alias = match inst.op {
                    Op::Pack | Op::Copy => true,
                    Op::Mov | Op::Umov | Op::Uldc { .. } => {
                        matches!(inst.srcs[0].kind, SrcKind::Imm(_) | SrcKind::Zero | SrcKind::Const(_))
                            && inst.srcs[0].mods == SrcMods::NONE
                    }
                    _ => false,
                };
                let (true, true, Some(dst)) = (alias, inst.guard.is_true(), inst.defs().next()) else {
                    continue;
                };
                let width = before.value(dst).width;
                let mut part = 0;
                for src in &inst.srcs {
                    let lanes = match src.kind {
                        SrcKind::Value(v) => before.value(v).width,
                        SrcKind::Part(..) => 1,
                        _ if inst.srcs.len() == 1 => width,
                        _ => 1,
                    };
                    for i in 0..lanes.min(width - part) {
                        self.alias(self.lane(dst, part), src, i);
                        part += 1;
                    }
                }
            }
        }
    }

    /// Records that a lane is lane `i` of a source, if that is known.
    fn alias(&mut self, lane: u32, src: &Src, i: u8) {
        if let Some(content) = self.source_content(src, i) {
            self.canonical[lane as usize] = content;
        }
    }

    /// The content of lane `i` of a source operand of the input.
    fn source_content(&self, src: &Src, i: u8) -> Option<Content> {
        let content = match src.kind {
            SrcKind::Value(v) => self.expected(v, i),
            SrcKind::Part(v, part) => self.expected(v, part),
            SrcKind::Zero => Content::Bits(0),
            SrcKind::Imm(bits) => Content::Bits(if i == 0 { bits } else { 0 }),
            SrcKind::Const(c) => Content::Const { bank: c.bank, offset: c.offset + 4 * u16::from(i) },
            SrcKind::Pred(p) => Content::Pred(p),
            SrcKind::Reg(r) => Content::Fixed(Reg { index: r.index + i, ..r }),
            SrcKind::Undef => Content::Undef,
        };
        match src.mods {
            SrcMods::NONE => Some(content),
            SrcMods { neg: false, abs: false, not: true } => content.complement(),
            _ => None,
        }
    }

    /// The block of the input to which an edge of the output leads, and the block that was added on the edge.
    fn target(&self, b: BlockId) -> Result<(BlockId, Option<BlockId>), String> {
        if b.index() < self.before.blocks.len() {
            return Ok((b, None));
        }
        match self.after.block(b).term {
            Term::Jump(to) if to.index() < self.before.blocks.len() => Ok((to, Some(b))),
            _ => Err(format!("{b:?} was added but is not on an edge")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::ir::{Dst, File};
    use crate::ori::text;
    use crate::regalloc::allocate;
    use crate::target::Target;
    use expect_test::{Expect, expect};

    const LOOP: &str = "entry \"f\" {
        b0:
          %v0:r = S2R{sr=0x21}
          %v1:r2 = PACK c[0x0][0x160], c[0x0][0x164]
          JUMP b1
        b1:
          %v2:r = phi b0 %v0, b1 %v3
          %v3:r = phi b0 0x5, b1 %v2
          %v4:r = LDG.E %v1, RZ
          %v5:p, _ = ISETP.LT.AND %v2, %v4, PT
          @%v5 %v6:r, _, _ = IADD3 %v2, %v3, RZ old(%v4, PF, PF)
          STG.E %v1, RZ, %v6
          BRA %v5, b1, b2
        b2:
          STG.E{offset=4} %v1, RZ, %v3
          EXIT
        }";

    /// Allocates `LOOP`, damages the result, and checks that the checker reports it.
    fn check_broken(damage: impl FnOnce(&mut Function, &mut Allocation), expect: Expect) {
        let before = text::parse(LOOP).expect("parses");
        let mut after = before.clone();
        let target = Target::of(ptx_isa::Sm::new(80)).expect("a target");
        let mut allocation = allocate(&mut after, target, 255).expect("allocates");
        assert_eq!(check(&before, &after, target, &allocation, 255, &|| ()), Ok(()));
        damage(&mut after, &mut allocation);
        expect.assert_eq(&check(&before, &after, target, &allocation, 255, &|| ()).expect_err("is broken"));
    }

    fn remove(func: &mut Function, allocation: &mut Allocation, b: usize, i: usize) {
        func.blocks[b].insts.remove(i);
        allocation.origin[b].remove(i);
    }

    fn find(func: &Function, b: usize, op: impl Fn(&Op) -> bool) -> usize {
        func.blocks[b].insts.iter().position(|i| op(&i.op)).expect("is there")
    }

    #[test]
    fn a_lost_move_is_found() {
        check_broken(
            |func, allocation| {
                // The copies of the back edge are in a separate block.
                let edge = func.blocks.len() - 1;
                remove(func, allocation, edge, 0);
            },
            expect![
                "BlockId(1), instruction 2, Iadd3 { x: false }: Reg(Reg { file: R, index: 4 }) should hold Lane { lane: 0, not: false }, which BlockId(0) defines elsewhere"
            ],
        );
    }

    #[test]
    fn another_register_is_found() {
        check_broken(
            |func, _| {
                let load = find(func, 1, |op| matches!(op, Op::Ldg { .. }));
                func.blocks[1].insts[load].srcs[0].kind = SrcKind::Reg(Reg { file: File::R, index: 8 });
            },
            expect![
                "BlockId(1), instruction 0, Ldg { access: Access { size: B32, order: Weak, evict: Normal, prefetch: None, offset: 0 } }: Reg(Reg { file: R, index: 8 }) should hold Const { bank: 0, offset: 352 } and is not written"
            ],
        );
    }

    #[test]
    fn a_clobbered_register_is_found() {
        check_broken(
            |func, _| {
                let load = find(func, 1, |op| matches!(op, Op::Ldg { .. }));
                let SrcKind::Reg(address) = func.blocks[1].insts[load].srcs[0].kind else {
                    panic!("a register")
                };
                func.blocks[1].insts[load].dsts[0] = Dst::Reg(address);
            },
            expect![
                "BlockId(1), instruction 3, Stg { access: Access { size: B32, order: Weak, evict: Normal, prefetch: None, offset: 0 } }: Reg { file: R, index: 2 } should hold Const { bank: 0, offset: 352 } but holds Known(Lane { lane: 5, not: false })"
            ],
        );
    }

    #[test]
    fn registers_that_other_threads_overwrite_have_nothing_else() {
        let before = text::parse(
            "entry \"f\" {
            b0:
              %v0:r = S2R{sr=0x21}
              %v1:r = S2R{sr=0x22}
              %v2:r20, %v3:p, %v4:b, %v5:r2, %v6:r2 = TEXTURE_BY_QUADS.2D.DC{word=0x5a} %v0, %v1, %v0, %v1, %v0, %v1, %v0
              STS RZ, RZ, %v5.0
              EXIT
            }",
        )
        .expect("parses");
        let mut after = before.clone();
        let target = Target::of(ptx_isa::Sm::new(80)).expect("a target");
        let allocation = allocate(&mut after, target, 255).expect("allocates");
        let verdict = |after: &Function| check(&before, after, target, &allocation, 255, &|| ());
        assert_eq!(verdict(&after), Ok(()));
        let read = find(&after, 0, |op| matches!(op, Op::TexDerive { .. }));
        let Dst::Reg(shared) = after.blocks[0].insts[read].dsts[0] else { panic!("a register") };
        after.blocks[0].insts[0].dsts[0] = Dst::Reg(Reg { index: shared.index + 19, ..shared });
        expect!["S2r { sr: Sr(33) } writes a register that other threads overwrite"]
            .assert_eq(&verdict(&after).expect_err("is broken"));
    }

    #[test]
    fn a_result_apart_from_what_it_keeps_is_found() {
        check_broken(
            |func, _| {
                let add = find(func, 1, |op| matches!(op, Op::Iadd3 { .. }));
                func.blocks[1].insts[add].dsts[0] = Dst::Reg(Reg { file: File::R, index: 9 });
            },
            expect![
                "BlockId(1), instruction 3, Stg { access: Access { size: B32, order: Weak, evict: Normal, prefetch: None, offset: 0 } }: Reg { file: R, index: 7 } should hold Lane { lane: 7, not: false } but holds Known(Lane { lane: 5, not: false })"
            ],
        );
    }

    #[test]
    fn a_lost_instruction_is_found() {
        check_broken(
            |func, allocation| {
                let store = find(func, 2, |op| matches!(op, Op::Stg { .. }));
                remove(func, allocation, 2, store);
            },
            expect![
                "BlockId(2) lost instruction 0, Stg { access: Access { size: B32, order: Weak, evict: Normal, prefetch: None, offset: 4 } }"
            ],
        );
    }

    #[test]
    fn another_target_is_found() {
        check_broken(
            |func, _| func.blocks[0].term = Term::Jump(BlockId(2)),
            expect!["BlockId(0) ended with Jump(BlockId(1)) and now ends with Jump(BlockId(2))"],
        );
    }

    #[test]
    fn a_branch_may_read_what_nothing_writes() {
        let mut func = text::parse(
            "entry \"f\" {
        b0:
          JUMP b1
        b1:
          %v0:p = phi b0 undef, b2 %v0
          JUMP b2
        b2:
          BRA %v0, b2, b1
        }",
        )
        .expect("parses");
        allocate(&mut func, Target::of(ptx_isa::Sm::new(80)).expect("a target"), 255).expect("is right");
    }

    #[test]
    fn a_constant_may_be_moved_behind_the_only_way_to_its_phi() {
        let mut func = text::parse(
            "entry \"f\" {
        b0:
          %v0:p, _ = ISETP.EQ.U32.AND RZ, RZ, PT
          BRA %v0, b3, b1
        b1:
          %v1:r = phi b0 c[0x0][0x210]
          JUMP b2
        b2:
          %v2:r = phi b1 %v1, b2 %v3
          %v3:r, _, _ = IADD3 %v2, 0x6, RZ
          JUMP b2
        b3:
          EXIT
        }",
        )
        .expect("parses");
        allocate(&mut func, Target::of(ptx_isa::Sm::new(80)).expect("a target"), 255).expect("is right");
    }

    const CALL: &str = "func \"f\" {
        b0:
          %v0:r@4, %v1:r@5 = PARAMS
          %v2:r = FIX %v0
          %v3:r = FIX %v1
          %v4:r@4 = FIX %v3
          %v5:r@4 = CALL{callee=f0} %v4
          %v6:r = FIX %v5
          %v7:r, _, _ = IADD3 %v6, %v2, RZ
          %v8:r@4 = FIX %v7
          RESULTS %v8
          RET
        }";

    /// Allocates `CALL` and damages the result. Returns the checker's report.
    fn broken_call(damage: impl FnOnce(&mut Function, &mut Allocation)) -> String {
        let mut before = text::parse(CALL).expect("parses");
        crate::regalloc::convention::lower_fixes(&mut before);
        let mut after = before.clone();
        let target = Target::of(ptx_isa::Sm::new(90)).expect("a target");
        let mut allocation = allocate(&mut after, target, 255).expect("allocates");
        assert_eq!(check(&before, &after, target, &allocation, 255, &|| ()), Ok(()));
        damage(&mut after, &mut allocation);
        check(&before, &after, target, &allocation, 255, &|| ()).expect_err("is broken")
    }

    fn general(index: u8) -> SrcKind {
        SrcKind::Reg(crate::ori::ir::Reg { file: File::R, index })
    }

    const SHARES: &str = "entry \"f\" facts(registers=40) {
        b0:
          %v0:r = S2R{sr=0x21}
          %v1:p, _ = ISETP.LT.AND %v0, 0x20, PT
          BRA %v1, b1, b2
        b1:
          USETMAXREG.DEALLOC{count=0x18}
          JUMP b3
        b2:
          USETMAXREG.DONE{count=0x30}
          %v2:r = MOV c[0x0][0x210]
          STS RZ, RZ, %v2
          JUMP b3
        b3:
          STS RZ, RZ, %v0
          EXIT
        }";

    /// Allocates `SHARES` and damages the result. Returns the checker's report.
    fn broken_shares(damage: impl FnOnce(&mut Function)) -> String {
        let before = text::parse(SHARES).expect("parses");
        let mut after = before.clone();
        let target = Target::of(ptx_isa::Sm::new(90)).expect("a target");
        let allocation = allocate(&mut after, target, 255).expect("allocates");
        assert_eq!(check(&before, &after, target, &allocation, 255, &|| ()), Ok(()));
        damage(&mut after);
        check(&before, &after, target, &allocation, 255, &|| ()).expect_err("is broken")
    }

    #[test]
    fn registers_that_a_warp_lacks_are_not_used() {
        let rename = |func: &mut Function, from: Reg, to: u8| {
            for inst in func.blocks.iter_mut().flat_map(|block| &mut block.insts) {
                inst.dsts.iter_mut().filter(|dst| **dst == Dst::Reg(from)).for_each(|dst| {
                    *dst = Dst::Reg(Reg { index: to, ..from });
                });
                inst.srcs.iter_mut().filter(|src| src.kind == SrcKind::Reg(from)).for_each(|src| {
                    src.kind = general(to);
                });
            }
        };
        let first = |func: &Function, b: usize| match func.blocks[b].insts.iter().find_map(|i| i.dsts.first())
        {
            Some(Dst::Reg(reg)) => *reg,
            other => panic!("{other:?}"),
        };
        // Both sides keep a value in a register that one of them releases.
        let lost = broken_shares(|func| rename(func, first(func, 0), 30));
        assert!(lost.contains("R, index: 30"), "{lost}");
        // A register beyond those that one side has taken.
        let beyond = broken_shares(|func| rename(func, first(func, 2), 46));
        assert!(beyond.contains("index: 46 } is not among the thread's registers"), "{beyond}");
    }

    #[test]
    fn what_a_call_overwrites_is_lost() {
        // The first parameter is live across the call in a register that calls preserve.
        let what = broken_call(|func, _| {
            let add = find(func, 0, |op| matches!(op, Op::Iadd3 { .. }));
            func.blocks[0].insts[add].srcs[1].kind = general(6);
        });
        assert!(what.contains("R, index: 6 } should hold") && what.contains("but holds Nothing"), "{what}");
    }

    #[test]
    fn arguments_are_where_the_convention_wants_them() {
        let what = broken_call(|func, _| {
            let call = find(func, 0, Op::is_call);
            func.blocks[0].insts[call].srcs[0].kind = general(6);
        });
        assert!(what.contains("not in R4"), "{what}");
    }

    #[test]
    fn what_callers_want_unchanged_is_taken_back() {
        let fills = broken_call(|func, allocation| {
            let fill = find(func, 0, |op| matches!(op, Op::Fill { .. }));
            remove(func, allocation, 0, fill);
        });
        assert!(fills.contains("should hold Fixed"), "{fills}");
        // Before the spilled value is overwritten.
        let spills = broken_call(|func, allocation| {
            let spill = find(func, 0, |op| matches!(op, Op::Spill { .. }));
            remove(func, allocation, 0, spill);
        });
        assert!(spills.contains("should hold Fixed"), "{spills}");
    }

    #[test]
    fn results_stay_until_the_return() {
        let what = broken_call(|func, allocation| {
            let mut mov = func.blocks[0].insts[find(func, 0, |op| *op == Op::Mov)].clone();
            mov.dsts[0] = Dst::Reg(crate::ori::ir::Reg { file: File::R, index: 4 });
            mov.srcs[0] = Src::ZERO;
            func.blocks[0].insts.push(mov);
            allocation.origin[0].push(None);
        });
        assert!(what.contains("R, index: 4 } should hold"), "{what}");
    }
}
