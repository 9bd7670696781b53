//! Checks that a function in SSA form is well formed: control flow, definitions before uses, phis, and every
//! operand against the signature of its operation.
//!
//! Blocks that the entry does not reach are not checked.

use crate::abi;
use crate::ori::cfg::Cfg;
use crate::ori::divergence::{Common, Divergence};
use crate::ori::dominators::{Tree, dominators, post_dominators};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, Term, Value};
use crate::ori::loops::Loops;
use crate::ori::memory;
use crate::ori::op::Op;
use crate::ori::signature::{self, Accept, Signature, SrcSlot, Width, facts, signature};
use crate::ori::text;
use crate::ori::together::Together;
use smallvec::SmallVec;
use std::fmt;

/// How strict the rules for operands are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Immediates and constants may be in any general register slot.
    Built,
    /// Every operand has an encoding.
    Legal,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError {
    pub block: BlockId,
    /// The text of the instruction; empty if the block itself is wrong.
    pub inst: String,
    pub reason: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}: ", self.block.0)?;
        if !self.inst.is_empty() {
            write!(f, "`{}`: ", self.inst)?;
        }
        write!(f, "{}", self.reason)
    }
}

/// All errors in `func`, in the order of its blocks.
pub fn verify(func: &Function, stage: Stage) -> Result<(), Vec<VerifyError>> {
    let mut check = Check { func, stage, defs: Vec::new(), errors: Vec::new() };
    if check.control_flow() {
        let cfg = Cfg::new(func);
        let tree = dominators(&cfg, func);
        check.definitions(&cfg);
        for &b in &cfg.order {
            check.block(b, &cfg, &tree);
        }
        check.uniform_values(&cfg, &tree);
    }
    if check.errors.is_empty() { Ok(()) } else { Err(check.errors) }
}

/// For each value, whether it is in a uniform register and is a phi or computed from one.
fn changing(func: &Function, cfg: &Cfg) -> Vec<bool> {
    let mut changing = vec![false; func.values.len()];
    let is_uniform = |v: Value| func.value(v).file.is_uniform();
    for &b in &cfg.order {
        let phis = func.block(b).phis.iter().map(|phi| phi.dst);
        phis.filter(|v| is_uniform(*v)).for_each(|v| changing[v.index()] = true);
    }
    if changing.contains(&true) {
        // Definitions precede their uses, except for arguments of phis.
        for inst in cfg.order.iter().flat_map(|b| &func.block(*b).insts) {
            if inst.uses().any(|src| src.value().is_some_and(|v| changing[v.index()])) {
                inst.defs().filter(|v| is_uniform(*v)).for_each(|v| changing[v.index()] = true);
            }
        }
    }
    changing
}

/// Where a value is defined.
#[derive(Clone, Copy)]
enum Def {
    Nowhere,
    /// A phi of the block.
    Phi(BlockId),
    /// The instruction with this index.
    Inst(BlockId, u32),
}

struct Check<'a> {
    func: &'a Function,
    stage: Stage,
    /// Indexed by value.
    defs: Vec<Def>,
    errors: Vec<VerifyError>,
}

impl Check<'_> {
    fn error(&mut self, block: BlockId, inst: String, reason: impl Into<String>) {
        self.errors.push(VerifyError { block, inst, reason: reason.into() });
    }

    fn control_flow(&mut self) -> bool {
        let func = self.func;
        let mut placed = vec![false; func.blocks.len()];
        let Some(&entry) = func.layout.first() else {
            self.error(BlockId(0), String::new(), "the function has no blocks");
            return false;
        };
        for &b in &func.layout {
            match placed.get_mut(b.index()) {
                Some(placed) if !*placed => *placed = true,
                _ => self.error(b, String::new(), "is in the layout twice or does not exist"),
            }
        }
        for &b in &func.layout {
            let Some(block) = func.blocks.get(b.index()) else { continue };
            for to in block.term.successors() {
                if !placed.get(to.index()).copied().unwrap_or(false) {
                    self.error(b, String::new(), format!("goes to b{}, which is not in the layout", to.0));
                } else if to == entry {
                    self.error(b, String::new(), "goes to the entry block");
                }
            }
        }
        self.errors.is_empty()
    }

    fn definitions(&mut self, cfg: &Cfg) {
        let func = self.func;
        self.defs = vec![Def::Nowhere; func.values.len()];
        for &b in &cfg.order {
            let block = func.block(b);
            for phi in &block.phis {
                self.define(b, phi.dst, Def::Phi(b));
            }
            for (i, inst) in block.insts.iter().enumerate() {
                for v in inst.defs() {
                    self.define(b, v, Def::Inst(b, i as u32));
                }
            }
        }
    }

    fn define(&mut self, b: BlockId, v: Value, def: Def) {
        match self.defs.get_mut(v.index()) {
            None => self.error(b, String::new(), format!("%v{} does not exist", v.0)),
            Some(slot) => {
                let again = !matches!(slot, Def::Nowhere);
                *slot = def;
                if again {
                    self.error(b, String::new(), format!("%v{} is defined twice", v.0));
                }
            }
        }
    }

    fn block(&mut self, b: BlockId, cfg: &Cfg, tree: &Tree) {
        let func = self.func;
        let block = func.block(b);
        for phi in &block.phis {
            let name = format!("phi %v{}", phi.dst.0);
            let mut from: Vec<_> = phi.args.iter().map(|(from, _)| *from).collect();
            from.sort_unstable();
            let mut preds = cfg.preds(b).to_vec();
            preds.sort_unstable();
            if from != preds {
                let list =
                    |ids: &[BlockId]| ids.iter().map(|b| format!("b{}", b.0)).collect::<Vec<_>>().join(", ");
                self.error(
                    b,
                    name.clone(),
                    format!("has arguments from {}, predecessors are {}", list(&from), list(&preds)),
                );
            }
            let data = func.value(phi.dst);
            let slot = SrcSlot::any_of(data.file, data.width);
            for (pred, arg) in &phi.args {
                if let Err(reason) =
                    self.operand(&slot, arg).and_then(|()| self.reaches(arg, *pred, None, tree))
                {
                    self.error(b, name.clone(), reason);
                }
            }
        }
        for (i, inst) in block.insts.iter().enumerate() {
            if let Err(reason) = self.inst(b, i as u32, inst, tree) {
                self.error(b, text::print_inst(func, inst), reason);
            }
        }
        let end = block.insts.len() as u32;
        let (cond, file, width, name) = match &block.term {
            Term::Branch { cond, .. } => (cond, File::P, 1, "BRA"),
            Term::Switch { address, .. } => (address, File::R, 2, "BRX"),
            _ => return,
        };
        let file = match self.file_of(cond) {
            Some(File::UP) if file == File::P => File::UP,
            _ => file,
        };
        let slot = SrcSlot::any_of(file, width).not();
        if let Err(reason) = self.operand(&slot, cond).and_then(|()| self.reaches(cond, b, Some(end), tree)) {
            self.error(b, name.to_owned(), reason);
        }
    }

    fn file_of(&self, src: &Src) -> Option<File> {
        match src.kind {
            SrcKind::Value(v) | SrcKind::Part(v, _) => self.func.values.get(v.index()).map(|d| d.file),
            SrcKind::Reg(reg) => Some(reg.file),
            _ => None,
        }
    }

    fn inst(&self, b: BlockId, index: u32, inst: &Inst, tree: &Tree) -> Result<(), String> {
        let sig = signature(&inst.op);
        if !sig.admits_counts(inst) {
            return Err(format!("has {} results and {} sources", inst.dsts.len(), inst.srcs.len()));
        }
        for src in inst.uses() {
            self.reaches(src, b, Some(index), tree)?;
        }
        match inst.op {
            Op::Pack => self.pack(inst)?,
            Op::Copy => self.copy(inst)?,
            _ => {
                for (slot, dst) in sig.dsts.iter().zip(&inst.dsts) {
                    if let Dst::Value(v) = dst {
                        let data = self.func.value(*v);
                        if data.file != slot.file || !slot.width.admits(data.width) {
                            return Err(format!(
                                "%v{} is {:?} {}, the result is {:?} {:?}",
                                v.0, data.file, data.width, slot.file, slot.width
                            ));
                        }
                    }
                }
                for (slot, src) in sig.srcs.iter().zip(&inst.srcs) {
                    self.operand(slot, src)?;
                }
                self.named_registers(b, index, inst, &sig)?;
                self.one_special_operand(inst)?;
            }
        }
        self.guard(inst)
    }

    /// Checks values in registers of the calling convention: only operations of calls define and read them, values of
    /// one operation are in different registers, and no call is between the definition and the use of such a value.
    fn named_registers(&self, b: BlockId, index: u32, inst: &Inst, sig: &Signature) -> Result<(), String> {
        let pin = |v: Value| self.func.value(v).pin;
        let has_end = inst.srcs.iter().any(|src| src.value().and_then(pin) == Some(abi::STACK_END));
        let has_frame = inst.defs().any(|v| pin(v) == Some(abi::FRAME));
        if self.func.frame.moving && inst.op.calls_function() && !(has_end && has_frame) {
            return Err("lacks the end of the stack or the start of the frame".to_owned());
        }
        let mut taken: SmallVec<[u8; 16]> = SmallVec::new();
        for (i, dst) in inst.dsts.iter().enumerate() {
            let Dst::Value(v) = dst else { continue };
            let more = sig.more_dsts && i >= sig.dsts.len();
            match pin(*v) {
                Some(register) if more && taken.contains(&register) => {
                    return Err(format!("two results are in R{register}"));
                }
                Some(register) if more => taken.push(register),
                Some(_) if inst.op == Op::Fix => {}
                Some(_) => return Err(format!("%v{} has a fixed register, but no call defines it", v.0)),
                None if more => return Err(format!("%v{} has no register", v.0)),
                None => {}
            }
        }
        taken.clear();
        let block = self.func.block(b);
        for (i, src) in inst.srcs.iter().enumerate() {
            let more = sig.more_srcs && i >= sig.srcs.len();
            let Some(v) = src.value() else {
                if more {
                    return Err("passes no value".to_owned());
                }
                continue;
            };
            let Some(register) = pin(v) else {
                if more {
                    return Err(format!("%v{} has no register", v.0));
                }
                continue;
            };
            if !more && inst.op != Op::Fix {
                return Err(format!("%v{} has a fixed register, but the operation is not a call", v.0));
            }
            if more && taken.contains(&register) {
                return Err(format!("two sources are in R{register}"));
            }
            taken.push(register);
            let before = &block.insts[..index as usize];
            let made = before.iter().rposition(|inst| inst.defs().any(|def| def == v));
            let Some(made) = made else {
                return Err(format!("%v{} is defined in another block", v.0));
            };
            let lost = before[made + 1..]
                .iter()
                .any(|inst| inst.op.is_call() || inst.defs().any(|other| pin(other) == Some(register)));
            if lost {
                return Err(format!("%v{} is overwritten before it is read", v.0));
            }
        }
        Ok(())
    }

    fn pack(&self, inst: &Inst) -> Result<(), String> {
        let [Dst::Value(v)] = inst.dsts[..] else { return Err("does not define a value".to_owned()) };
        let data = self.func.value(v);
        if usize::from(data.width) != inst.srcs.len() {
            return Err(format!("{} sources for {} registers", inst.srcs.len(), data.width));
        }
        let slot = SrcSlot::any_of(data.file, 1);
        inst.srcs.iter().try_for_each(|src| self.operand(&slot, src))
    }

    fn copy(&self, inst: &Inst) -> Result<(), String> {
        let (Some(Dst::Value(v)), [src]) = (inst.dsts.first(), &inst.srcs[..]) else { return Ok(()) };
        let data = self.func.value(*v);
        self.operand(&SrcSlot::any_of(data.file, data.width).not(), src)
    }

    fn guard(&self, inst: &Inst) -> Result<(), String> {
        let file = match self.file_of(&inst.guard) {
            Some(File::UP) if facts(&inst.op).uniform => File::UP,
            _ => File::P,
        };
        self.operand(&SrcSlot::any_of(file, 1).not(), &inst.guard)
            .map_err(|reason| format!("guard: {reason}"))?;
        if inst.guard.is_true() {
            return if inst.old.is_empty() { Ok(()) } else { Err("keeps values without a guard".to_owned()) };
        }
        if inst.old.len() != inst.dsts.len() {
            return Err("has a guard but not one kept value per result".to_owned());
        }
        for (dst, old) in inst.dsts.iter().zip(&inst.old) {
            if let Dst::Value(v) = dst {
                let data = self.func.value(*v);
                self.operand(&SrcSlot::any_of(data.file, data.width), old)
                    .map_err(|reason| format!("kept value: {reason}"))?;
            }
        }
        Ok(())
    }

    /// Whether the operand fits the slot.
    fn operand(&self, slot: &SrcSlot, src: &Src) -> Result<(), String> {
        let mods = src.mods;
        if (mods.neg && !slot.mods.neg) || (mods.abs && !slot.mods.abs) || (mods.not && !slot.mods.not) {
            return Err("a modifier that the operand cannot have".to_owned());
        }
        let predicate = matches!(slot.file, File::P | File::UP);
        let width = match src.kind {
            SrcKind::Undef => return Ok(()),
            SrcKind::Pred(_) if predicate => return Ok(()),
            SrcKind::Pred(_) => return Err("a predicate in a register operand".to_owned()),
            SrcKind::Zero | SrcKind::Imm(_) | SrcKind::Const(_) if predicate || slot.file == File::B => {
                return Err("a number in a predicate or barrier operand".to_owned());
            }
            SrcKind::Zero => return Ok(()),
            SrcKind::Value(v) => self.func.value(v).width,
            SrcKind::Part(v, part) => {
                if part >= self.func.value(v).width {
                    return Err(format!("%v{} has no part {part}", v.0));
                }
                1
            }
            // A register has the width of its slot, and so has a number.
            SrcKind::Reg(_) | SrcKind::Imm(_) | SrcKind::Const(_) => match slot.width {
                Width::Exactly(n) => n,
                Width::OneOrTwo | Width::Any => 1,
            },
        };
        if !slot.width.admits(width) {
            return Err(format!("an operand of width {width} where {:?} is read", slot.width));
        }
        let kind = signature::kind_of(&src.kind, |v| self.func.value(v).file);
        let Some(kind) = kind else { return Ok(()) };
        if let Some(file) = self.file_of(src)
            && file != slot.file
        {
            let uniform = file == File::UR && slot.file == File::R;
            if !uniform || (self.stage == Stage::Legal && !slot.accept.has(Accept::UR)) {
                return Err(format!("a {file:?} operand where {:?} is read", slot.file));
            }
            return Ok(());
        }
        let number = matches!(src.kind, SrcKind::Imm(_) | SrcKind::Const(_));
        if number && self.stage == Stage::Legal && !slot.accept.has(kind) {
            return Err("a number where only a register can be encoded".to_owned());
        }
        Ok(())
    }

    /// Checks that at most one operand of an instruction is not a register.
    fn one_special_operand(&self, inst: &Inst) -> Result<(), String> {
        if self.stage != Stage::Legal || memory::memory(&inst.op).is_some() {
            return Ok(());
        }
        let exempt = matches!(inst.op, Op::Shfl { .. } | Op::Bar { .. } | Op::Uldc { .. } | Op::Ulea { .. });
        // Uniform registers have separate fields, which cannot contain anything else.
        let sig = signature(&inst.op);
        let shared = |i: usize| sig.srcs.get(i).is_none_or(|slot| slot.file != File::UR);
        let special = inst
            .srcs
            .iter()
            .enumerate()
            .filter(|(i, src)| match src.kind {
                SrcKind::Imm(_) | SrcKind::Const(_) => true,
                _ => shared(*i) && self.file_of(src) == Some(File::UR),
            })
            .count();
        if special > 1 && !exempt {
            return Err(format!("{special} operands that are not registers"));
        }
        Ok(())
    }

    /// Checks uniform values that depend on the threads which execute an operation together: such a value is read in
    /// its block, before any operation at which threads wait, because meanwhile other threads might compute their own.
    ///
    /// A value that changes from iteration to iteration is computed where all threads of the warp are together, and is
    /// not read where threads end while others continue.
    fn uniform_values(&mut self, cfg: &Cfg, tree: &Tree) {
        let func = self.func;
        let common = Common::new(func, cfg);
        let is_uniform = |v: Value| func.value(v).file.is_uniform();
        let changing = changing(func, cfg);
        let together = changing.contains(&true).then(|| {
            let loops = Loops::new(func, cfg, tree);
            let divergence = Divergence::new(func, cfg, &post_dominators(cfg, func, &loops), &loops);
            Together::new(func, cfg, tree, &divergence, true)
        });
        let mut of_group = vec![false; func.values.len()];
        let mut kept = vec![false; func.values.len()];
        for &b in &cfg.order {
            let block = func.block(b);
            if let Some(together) = &together {
                self.changing_values(b, cfg, together, &changing);
            }
            let from = together.as_ref().map_or(Some(0), |together| together.from(b));
            let mut here: Vec<Value> = Vec::new();
            let lost = |src: &Src, of_group: &[bool], kept: &[bool]| {
                src.value().filter(|v| of_group[v.index()] && !kept[v.index()])
            };
            for (i, inst) in block.insts.iter().enumerate() {
                if let Some(v) = inst.uses().find_map(|src| lost(src, &of_group, &kept)) {
                    let reason = format!("%v{} may have been overwritten by other threads", v.0);
                    self.error(b, text::print_inst(func, &block.insts[i]), reason);
                }
                if facts(&inst.op).waits {
                    here.drain(..).for_each(|v| kept[v.index()] = false);
                }
                let source = facts(&inst.op).convergent || matches!(inst.op, Op::S2ur { .. });
                let source = source && !inst.defs().all(|v| common.is(v));
                let of = |src: &Src| src.value().is_some_and(|v| of_group[v.index()]);
                let made_apart = from.is_none_or(|from| i < from) && inst.defs().any(|v| changing[v.index()]);
                if source || made_apart || inst.uses().any(of) {
                    for v in inst.defs().filter(|v| is_uniform(*v)) {
                        of_group[v.index()] = true;
                        kept[v.index()] = true;
                        here.push(v);
                    }
                }
            }
            for next in block.term.successors() {
                let args = func.block(next).phis.iter().flat_map(|phi| &phi.args);
                if let Some(v) = args.filter_map(|(_, arg)| arg.value()).find(|v| of_group[v.index()]) {
                    self.error(
                        b,
                        String::new(),
                        format!("%v{} may be overwritten by other threads after the block", v.0),
                    );
                }
            }
            here.drain(..).for_each(|v| kept[v.index()] = false);
        }
    }

    /// Checks phis in uniform registers, and values computed from them.
    fn changing_values(&mut self, b: BlockId, cfg: &Cfg, together: &Together, changing: &[bool]) {
        let func = self.func;
        let block = func.block(b);
        let one_way = together.come_one_way(cfg, b);
        for phi in block.phis.iter().filter(|phi| changing[phi.dst.index()] && !one_way) {
            let reason = "threads on another path may overwrite the uniform register";
            self.error(b, format!("phi %v{}", phi.dst.0), reason);
        }
        if !together.is_last(b) {
            return;
        }
        let is_other = |v: &Value| {
            changing[v.index()] && !block.insts.iter().any(|inst| inst.defs().any(|def| def == *v))
        };
        for inst in &block.insts {
            if let Some(v) = inst.uses().filter_map(Src::value).find(is_other) {
                let reason = format!("%v{} may be overwritten by the threads that continue", v.0);
                self.error(b, text::print_inst(func, inst), reason);
            }
        }
    }

    /// Whether the value is defined before instruction `at` of `b`, or before its end.
    fn reaches(&self, src: &Src, b: BlockId, at: Option<u32>, tree: &Tree) -> Result<(), String> {
        let Some(v) = src.value() else { return Ok(()) };
        match self.defs.get(v.index()) {
            None | Some(Def::Nowhere) => Err(format!("%v{} is not defined", v.0)),
            Some(Def::Phi(def)) if tree.dominates(*def, b) => Ok(()),
            Some(Def::Inst(def, i)) if *def == b && at.is_none_or(|at| *i < at) => Ok(()),
            Some(Def::Inst(def, _)) if *def != b && tree.dominates(*def, b) => Ok(()),
            Some(_) => Err(format!("%v{} is used where its definition does not reach", v.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors_of(text: &str) -> Vec<String> {
        let func = text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        verify(&func, Stage::Built).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    fn errors(body: &str) -> Vec<String> {
        errors_of(&format!("func \"f\" {{\n{body}\n}}"))
    }

    #[test]
    fn a_good_function_has_no_errors() {
        let body = "b0:\n%v0:r = S2R{sr=0x21}\n%v1:p = ISETP.LT.AND %v0, 0x5, PT\nBRA %v1, b1, b2
            b1:\n%v2:r2 = PACK %v0, RZ\nJUMP b2\nb2:\n%v3:r = phi b0 %v0, b1 %v2.1\nEXIT";
        assert_eq!(errors(body), [""; 0]);
    }

    #[test]
    fn uses_need_definitions_that_reach_them() {
        assert_eq!(
            errors("b0:\n%v0:r = MOV %v1\n%v1:r = MOV RZ\nEXIT"),
            ["b0: `%v0:r = MOV %v1`: %v1 is used where its definition does not reach"]
        );
        assert_eq!(errors("b0:\n%v0:r = MOV %v7\nEXIT"), ["b0: `%v0:r = MOV %v7`: %v7 is not defined"]);
    }

    #[test]
    fn values_have_one_definition() {
        assert_eq!(errors("b0:\n%v0:r = MOV RZ\n%v0:r = MOV RZ\nEXIT"), ["b0: %v0 is defined twice"]);
    }

    #[test]
    fn operands_agree_with_signatures() {
        assert_eq!(
            errors("b0:\n%v0:p = MOV RZ\nEXIT"),
            ["b0: `%v0:p = MOV RZ`: %v0 is P 1, the result is R Exactly(1)"]
        );
        assert_eq!(
            errors("b0:\n%v0:r2 = PACK RZ, RZ\n%v1:r = IADD3 %v0, RZ, RZ\nEXIT"),
            ["b0: `%v1:r = IADD3 %v0, RZ, RZ`: an operand of width 2 where Exactly(1) is read"]
        );
        assert_eq!(
            errors("b0:\n%v1:r = LOP3 -RZ, RZ, RZ\nEXIT"),
            ["b0: `%v1:r = LOP3 -RZ, RZ, RZ`: a modifier that the operand cannot have"]
        );
    }

    #[test]
    fn uniform_values_stay_with_their_threads() {
        let copy = "b0:\n%v0:r = S2R\n%v1:ur = R2UR %v0";
        let ends = |rest: &str| errors(&format!("{copy}\n{rest}\nEXIT"));
        assert_eq!(ends("%v2:ur2 = PACK %v1, RZ\nSYNCS.EXCH.64 %v1, %v2"), [""; 0]);
        assert_eq!(
            ends("NANOSLEEP 0x1\n%v2:r = MOV %v1"),
            ["b0: `%v2:r = MOV %v1`: %v1 may have been overwritten by other threads"]
        );
        assert_eq!(
            ends("%v2:ur2 = PACK %v1, RZ\nJUMP b1\nb1:\nSYNCS.EXCH.64 RZ, %v2"),
            ["b1: `SYNCS.EXCH.64 RZ, %v2`: %v2 may have been overwritten by other threads"]
        );
    }

    #[test]
    fn values_of_the_block_live_anywhere() {
        let rest = "JUMP b1\nb1:\nNANOSLEEP 0x1\n%v9:r = MOV %v1\nEXIT";
        let moved =
            |special: u32| errors(&format!("b0:\n%v0:r = S2R{{sr={special:#x}}}\n%v1:ur = R2UR %v0\n{rest}"));
        assert_eq!(moved(0x25), [""; 0]);
        assert_eq!(moved(0x21), ["b1: `%v9:r = MOV %v1`: %v1 may have been overwritten by other threads"]);
        let read = |special: u32| errors(&format!("b0:\n%v1:ur = S2UR{{sr={special:#x}}}\n{rest}"));
        assert_eq!(read(0x25), [""; 0]);
        assert_eq!(read(0x21), ["b1: `%v9:r = MOV %v1`: %v1 may have been overwritten by other threads"]);
    }

    #[test]
    fn joins_in_uniform_registers_are_made_by_the_whole_warp() {
        let counts = |turn: &str| {
            let text = format!(
                "entry \"f\" {{\nb0:\n%v0:r = S2R{{sr=0x21}}\n%v9:p, _ = ISETP.LT.AND %v0, 0x5, PT\nJUMP b1
                b1:\n%v1:ur = phi b0 RZ, b3 %v2\n{turn}
                b3:\n%v2:ur = UIADD3 %v1, 0x1, RZ\n%v3:up = UISETP.LT.AND %v2, 0x40, PT\nBRA %v3, b1, b4\nb4:\nEXIT\n}}"
            );
            errors_of(&text)
        };
        assert_eq!(counts("JUMP b3"), [""; 0]);
        // The other threads stay together when threads exit, but the value that they read then has been overwritten.
        assert_eq!(counts("BRA %v9, b5, b3\nb5:\nEXIT"), [""; 0]);
        assert_eq!(
            counts("BRA %v9, b5, b3\nb5:\n%v6:r = MOV %v1\nEXIT"),
            ["b5: `%v6:r = MOV %v1`: %v1 may be overwritten by the threads that continue"]
        );
        let apart = [
            "b1: `phi %v1`: threads on another path may overwrite the uniform register",
            "b3: %v2 may be overwritten by other threads after the block",
        ];
        let side = "BRA %v9, b2, b7\nb2:\n%v6:r = MOV %v1\nJUMP b7\nb7:\n";
        assert_eq!(counts(&format!("{side}JUMP b3")), apart);
        assert_eq!(counts(&format!("{side}BAR.SYNC RZ\nJUMP b3")), [""; 0]);
        assert_eq!(counts(&format!("%v8:b = BSSY{{target=b7}}\n{side}BSYNC %v8\nJUMP b3")), [""; 0]);
        assert_eq!(counts(&format!("{side}BAR.SYNC RZ\nNANOSLEEP 0x1\nJUMP b3")), apart);
    }

    #[test]
    fn phis_match_predecessors() {
        assert_eq!(
            errors("b0:\nJUMP b1\nb1:\n%v0:r = phi b3 RZ\nEXIT\nb3:\nEXIT"),
            ["b1: `phi %v0`: has arguments from b3, predecessors are b0"]
        );
    }

    #[test]
    fn a_guarded_result_keeps_a_value() {
        assert_eq!(
            errors("b0:\n%v0:p = ISETP.LT.AND RZ, RZ, PT\n@%v0 %v1:r = MOV RZ\nEXIT"),
            ["b0: `@%v0 %v1:r = MOV RZ`: has a guard but not one kept value per result"]
        );
    }

    #[test]
    fn branches_stay_in_the_layout() {
        assert_eq!(errors("b0:\nJUMP b4"), ["b0: goes to b4, which is not in the layout"]);
        assert_eq!(errors("b0:\nJUMP b0"), ["b0: goes to the entry block"]);
    }
}
