//! Basic blocks, branches and the end of the thread.

use super::{Lowering, Result, Run, Statement, flight};
use crate::CodegenError;
use crate::input::{AddressBase, Env, Function, LabelId, Operand, Stmt, Symbol};
use crate::layout;
use crate::ori::ir::{BlockId, Src, Term};
use crate::ori::op::{JumpTable, Op};
use ptx_isa::{FormId, Mod, ScalarType, Space};
use rustc_hash::FxHashSet;

/// Statements that end a block.
pub(super) fn is_terminator(form: FormId) -> bool {
    matches!(form, FormId::Bra | FormId::BrxIdx | FormId::Ret | FormId::Exit)
}

/// The shared variables that a body names.
pub(super) fn shared_symbols(env: &Env, func: &Function) -> FxHashSet<Symbol> {
    fn collect(operand: &Operand, found: &mut impl FnMut(Symbol)) {
        match operand {
            Operand::Symbol(symbol, _) => found(*symbol),
            Operand::Address(address) => {
                if let AddressBase::Symbol(symbol) = address.base {
                    found(symbol);
                }
            }
            Operand::Vector(list) | Operand::List(list) => list.iter().for_each(|o| collect(o, found)),
            Operand::Pair(pair) => {
                collect(&pair.0, found);
                collect(&pair.1, found);
            }
            _ => {}
        }
    }
    let mut symbols = FxHashSet::default();
    let mut found = |symbol| {
        if layout::variable(env, func, symbol).is_some_and(|v| v.space == Space::Shared) {
            symbols.insert(symbol);
        }
    };
    for stmt in &func.body {
        if let Stmt::Instr(instr) = stmt {
            instr.operands.iter().for_each(|operand| collect(operand, &mut found));
        }
    }
    symbols
}

impl<'a> Lowering<'a> {
    /// Splits the body at labels and after terminators, and creates a block for each run that control reaches.
    pub(super) fn split_into_blocks(&mut self) -> Result<Vec<Run>> {
        let body = &self.func.body;
        let mut runs = Vec::new();
        let mut run_of_label = vec![None; self.labels.len()];
        let mut start = 0;
        for (i, stmt) in body.iter().enumerate() {
            match stmt {
                Stmt::Label(label) => {
                    if start < i {
                        runs.push(Run { statements: start..i, block: None });
                        start = i;
                    }
                    if let Some(slot) = run_of_label.get_mut(label.0 as usize) {
                        *slot = Some(runs.len());
                    }
                }
                Stmt::Instr(instr) if is_terminator(instr.opcode.form) => {
                    runs.push(Run { statements: start..i + 1, block: None });
                    start = i + 1;
                }
                Stmt::Instr(_) => {}
            }
        }
        runs.push(Run { statements: start..body.len(), block: None });
        self.reach(&mut runs, &run_of_label)?;
        let nounroll = &self.func.nounroll;
        for run in &runs {
            let Some(block) = run.block else { continue };
            // As in ptxas, a pragma before the label of a loop is in the block before the loop.
            let (start, end) = (run.statements.start, run.statements.end);
            let next = nounroll.before.partition_point(|&before| before as usize <= start);
            let is_last = |stmt: &Stmt| matches!(stmt, Stmt::Instr(i) if is_terminator(i.opcode.form));
            let last = end - usize::from(body[start..end].last().is_some_and(is_last));
            let here = nounroll.before.get(next).is_some_and(|&before| before as usize <= last);
            self.out.block_mut(block).may_unroll = !(self.env.nounroll || nounroll.everywhere || here);
        }
        self.labels = run_of_label.iter().map(|run| run.and_then(|i: usize| runs[i].block)).collect();
        Ok(runs)
    }

    /// Creates blocks for the runs that control reaches from the first.
    fn reach(&mut self, runs: &mut [Run], run_of_label: &[Option<usize>]) -> Result<()> {
        let mut edges = vec![0u32; runs.len()];
        let mut successors = vec![Vec::new(); runs.len()];
        let mut reached = vec![false; runs.len()];
        let mut work = vec![0];
        reached[0] = true;
        while let Some(i) = work.pop() {
            successors[i] = self.successors(&runs[i], i + 1, runs.len(), run_of_label)?;
            for &next in &successors[i] {
                edges[next] += 1;
                if !std::mem::replace(&mut reached[next], true) {
                    work.push(next);
                }
            }
        }
        self.products = flight::follow(&self.func.body, runs, &successors);
        if edges[0] > 0 {
            // The entry block has no predecessors.
            let entry = self.new_block(0);
            self.start(entry);
            edges[0] += 1;
        }
        for (i, run) in runs.iter_mut().enumerate() {
            run.block = reached[i].then(|| self.new_block(edges[i]));
        }
        if edges[0] > 0
            && let Some(first) = runs[0].block
        {
            self.end(Term::Jump(first));
        }
        Ok(())
    }

    /// The successors of a run, once for each edge of its blocks.
    fn successors(
        &self,
        run: &Run,
        next: usize,
        count: usize,
        run_of_label: &[Option<usize>],
    ) -> Result<Vec<usize>> {
        let next = (next < count).then_some(next);
        let last = self.func.body[run.statements.clone()].last();
        let Some(Stmt::Instr(instr)) =
            last.filter(|s| matches!(s, Stmt::Instr(i) if is_terminator(i.opcode.form)))
        else {
            return Ok(next.into_iter().collect());
        };
        let labels = match (instr.opcode.form, instr.operands.last()) {
            (FormId::Bra, Some(Operand::Label(label))) => vec![*label],
            (FormId::BrxIdx, Some(Operand::Targets(i))) => {
                self.func.targets.get(*i as usize).cloned().unwrap_or_default()
            }
            (FormId::Bra | FormId::BrxIdx, _) => return self.malformed("a branch without a target"),
            _ => Vec::new(),
        };
        let mut successors = Vec::new();
        for label in labels {
            match run_of_label.get(label.0 as usize).copied().flatten() {
                Some(run) => successors.push(run),
                None => {
                    let what = format!("label {} is not defined", label.0);
                    return Err(CodegenError::internal(instr.src, "build", what));
                }
            }
        }
        successors.sort_unstable();
        successors.dedup();
        if instr.guard.is_some() {
            successors.extend(next);
        }
        if instr.opcode.form == FormId::Bra {
            successors.dedup();
        }
        Ok(successors)
    }

    /// Ends the block with a branch or the end of the thread. With a guard, control may fall into `next`.
    pub(super) fn terminator(&mut self, instr: &Statement<'a>, next: Option<BlockId>) -> Result<()> {
        let uniform = instr.has(Mod::Uni);
        let guarded = !self.guard.is_true();
        let els = match next {
            _ if !guarded => None,
            Some(next) => Some(next),
            None => Some(self.new_block(1)),
        };
        match (instr.form(), els) {
            (FormId::Bra, None) => {
                let then = self.destination(instr)?;
                self.end(Term::Jump(then));
            }
            (FormId::Bra, Some(els)) => {
                let then = self.destination(instr)?;
                self.end(Term::Branch { cond: self.guard, then, els, uniform });
            }
            (FormId::BrxIdx, els) => {
                if let Some(els) = els {
                    let then = self.new_block(1);
                    self.end(Term::Branch { cond: self.guard, then, els, uniform });
                    self.start(then);
                }
                self.switch(instr, uniform)?;
            }
            (form, els) => {
                if let Some(els) = els {
                    let then = self.new_block(1);
                    self.end(Term::Branch { cond: self.guard, then, els, uniform });
                    self.start(then);
                }
                match form {
                    FormId::Exit => self.exit(),
                    _ => self.return_to_caller()?,
                }
            }
        }
        if let (Some(els), None) = (els, next) {
            self.start(els);
            self.return_to_caller()?;
        }
        Ok(())
    }

    /// Ends the block with the end of the thread.
    pub(super) fn exit(&mut self) {
        if self.errors_at_exit {
            self.guard = Src::TRUE;
            self.effect(Op::Errbar, &[]);
        }
        self.end(Term::Exit);
    }

    fn destination(&self, instr: &Statement<'_>) -> Result<BlockId> {
        match self.operand(instr, 0)? {
            Operand::Label(label) => self.block_of(*label),
            _ => self.malformed("a branch without a target"),
        }
    }

    fn block_of(&self, label: LabelId) -> Result<BlockId> {
        match self.labels.get(label.0 as usize).copied().flatten() {
            Some(block) => Ok(block),
            None => self.malformed(format!("label {} is not defined", label.0)),
        }
    }

    fn switch(&mut self, instr: &Statement<'a>, uniform: bool) -> Result<()> {
        let index = self.source(instr, 0, ScalarType::U32)?;
        let Operand::Targets(list) = self.operand(instr, 1)? else {
            return self.malformed("brx.idx without a list of targets");
        };
        let labels = self.func.targets.get(*list as usize).map_or(&[][..], |t| t);
        let targets = labels.iter().map(|label| self.block_of(*label)).collect::<Result<Vec<BlockId>>>()?;
        if targets.is_empty() {
            return self.malformed("brx.idx without targets");
        }
        if targets.iter().all(|target| *target == targets[0]) {
            self.end(Term::Jump(targets[0]));
            return Ok(());
        }
        let table = JumpTable(self.tables);
        self.tables += 1;
        let entry = self.shift_left(index, Src::imm(2));
        // The offset that the linker puts into the instruction is signed, but the bank is larger.
        let entry = if self.linking.is_object() { self.add(entry, Src::imm(TABLE_BIAS)) } else { entry };
        let low = self.reg(Op::Target { table }, &[entry]);
        let address = self.pack(&[low, Src::ZERO]);
        self.end(Term::Switch { address, table, targets, uniform });
        Ok(())
    }
}

/// The offset that objects add to indices of target lists, and subtract from the addresses of the lists.
const TABLE_BIAS: u32 = 0x8000;

/// Whether a predicate is known to be always false.
pub(super) fn never(src: Src) -> bool {
    src.not().is_true()
}
