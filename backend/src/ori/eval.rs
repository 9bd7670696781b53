//! Executes a function in SSA form for one thread, and so defines the meaning of Ori's operations. Tests compare phases
//! with it; phases evaluate single instructions with [`known_results`].
//!
//! It executes arithmetic, logic, comparisons, conversions, loads and stores of one thread, and control flow.
//! Operations between threads, atomics and arithmetic of the uniform datapath return [`EvalError::Operation`]. An
//! approximation of the multi-function unit is the nearest result plus [`Machine::error`] units in the last place. So a
//! test can show that a refinement tolerates the unit's error in both directions.
//!
//! Calls of functions also return an error: a phase sees only one function, and the meaning of a call depends on the
//! registers of another one. The emulator executes calls, in joined code.

pub mod float;
mod operation;

use crate::layout::{LITERAL_BYTES, LITERALS};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, Term, Value};
use crate::ori::op::{MemSize, Op, Routine};
use crate::ori::signature;
use crate::runtime;
use std::collections::BTreeMap;
use std::fmt;

/// The 32-bit registers of a value; a predicate is 0 or 1 in the first.
pub type Word = [u32; 4];

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EvalError {
    /// An operation whose result depends on more than one thread.
    Operation(Op),
    /// An access outside the given memory.
    Address(u64),
    /// A value that is read before it is written, or an operand without a value.
    Operand,
    /// More instructions than allowed.
    Steps,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(op) => write!(f, "{op:?} is not evaluated"),
            Self::Address(at) => write!(f, "address {at:#x} is outside the memory"),
            Self::Operand => write!(f, "an operand has no value"),
            Self::Steps => write!(f, "too many steps"),
        }
    }
}

impl std::error::Error for EvalError {}

/// The state of a thread besides its registers.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Constant banks: bank and byte offset of each 32-bit word; others are zero.
    pub constants: BTreeMap<(u8, u16), u32>,
    /// Special registers by number; others are zero.
    pub special: BTreeMap<u8, u32>,
    /// Global memory from address `global_base` on.
    pub global: Vec<u8>,
    pub global_base: u64,
    pub shared: Vec<u8>,
    pub local: Vec<u8>,
    /// The error of approximations in units in the last place.
    pub error: i32,
    /// The number of instructions that may still be executed.
    pub steps: u64,
}

/// A thread during execution.
struct Thread<'a> {
    func: &'a Function,
    values: Vec<Option<Word>>,
    machine: &'a mut Machine,
}

impl Machine {
    /// A machine without memory that may execute a million instructions.
    pub fn new() -> Machine {
        Machine { steps: 1_000_000, ..Machine::default() }
    }

    /// Sets a 32-bit word of a constant bank.
    pub fn set_constant(&mut self, bank: u8, offset: u16, word: u32) {
        self.constants.insert((bank, offset), word);
    }

    /// Runs a function from its entry to its end.
    pub fn run(&mut self, func: &Function) -> Result<(), EvalError> {
        let Some(&entry) = func.layout.first() else { return Ok(()) };
        let mut thread = Thread { func, values: vec![None; func.values.len()], machine: self };
        let mut from = entry;
        let mut block = entry;
        loop {
            thread.phis(from, block)?;
            for inst in &func.block(block).insts {
                thread.step(inst)?;
            }
            let next = match &func.block(block).term {
                Term::Jump(to) => *to,
                Term::Branch { cond, then, els, .. } => {
                    if thread.predicate(*cond)? {
                        *then
                    } else {
                        *els
                    }
                }
                Term::Switch { address, targets, .. } => {
                    let index = thread.word(*address)?[0] as usize;
                    *targets.get(index).ok_or(EvalError::Operand)?
                }
                Term::Exit | Term::Ret | Term::Unreachable => return Ok(()),
            };
            (from, block) = (block, next);
            thread.count()?;
        }
    }

    /// Runs a routine of the runtime library on some words.
    pub fn compute(&mut self, routine: Routine, words: &[u32]) -> Result<Vec<u32>, EvalError> {
        let body = runtime::body(routine);
        let values = vec![None; body.func.values.len()];
        let mut thread = Thread { func: body.func, values, machine: self };
        for (param, word) in body.params.iter().zip(words) {
            if let Dst::Value(v) = param {
                thread.values[v.index()] = Some([*word, 0, 0, 0]);
            }
        }
        body.insts.iter().try_for_each(|inst| thread.step(inst))?;
        body.results.iter().map(|src| Ok(thread.word(*src)?[0])).collect()
    }

    fn constant(&self, bank: u8, offset: u16) -> u32 {
        self.constants.get(&(bank, offset)).copied().unwrap_or(0)
    }
}

impl Thread<'_> {
    fn count(&mut self) -> Result<(), EvalError> {
        self.machine.steps = self.machine.steps.checked_sub(1).ok_or(EvalError::Steps)?;
        Ok(())
    }

    fn constant(&self, bank: u8, offset: u16) -> u32 {
        if bank == LITERALS { literal(self.func, offset) } else { self.machine.constant(bank, offset) }
    }

    fn phis(&mut self, from: BlockId, block: BlockId) -> Result<(), EvalError> {
        let mut read = Vec::new();
        for phi in &self.func.block(block).phis {
            let arg = phi.args.iter().find(|(pred, _)| *pred == from).ok_or(EvalError::Operand)?.1;
            read.push((phi.dst, self.wide(arg, self.func.value(phi.dst).width)?));
        }
        for (dst, word) in read {
            self.values[dst.index()] = Some(word);
        }
        Ok(())
    }

    /// The value of a source without its modifiers, but with a predicate's negation applied.
    fn word(&self, src: Src) -> Result<Word, EvalError> {
        self.wide(src, 1)
    }

    fn wide(&self, src: Src, width: u8) -> Result<Word, EvalError> {
        let value = |v: Value| self.values[v.index()].ok_or(EvalError::Operand);
        contents(self.func, src, width, value, |bank, offset| self.constant(bank, offset))
    }

    fn predicate(&self, src: Src) -> Result<bool, EvalError> {
        Ok(self.word(src)?[0] & 1 != 0)
    }

    fn step(&mut self, inst: &Inst) -> Result<(), EvalError> {
        self.count()?;
        if !self.predicate(inst.guard)? {
            for (i, dst) in inst.dsts.iter().enumerate() {
                if let Dst::Value(v) = dst {
                    let old = inst.old.get(i).copied().unwrap_or(Src::UNDEF);
                    self.values[v.index()] = Some(self.wide(old, self.func.value(*v).width)?);
                }
            }
            return Ok(());
        }
        let sig = signature::signature(&inst.op);
        let mut srcs = Vec::new();
        for i in 0..inst.srcs.len().max(sig.srcs.len()) {
            let src = signature::src_or_neutral(inst, i);
            srcs.push((self.wide(src, source_width(self.func, inst, i))?, src));
        }
        let results = match (self.memory(inst, &srcs)?, inst.op) {
            (Some(results), _) => results,
            (None, Op::Compute { routine } | Op::CallRoutine { routine }) => {
                let words: Vec<u32> = srcs.iter().map(|(word, _)| word[0]).collect();
                self.machine.compute(routine, &words)?.into_iter().map(|word| [word, 0, 0, 0]).collect()
            }
            (None, _) => operation::apply(self.machine, inst, &srcs)?,
        };
        for (dst, word) in inst.dsts.iter().zip(results) {
            if let Dst::Value(v) = dst {
                self.values[v.index()] = Some(word);
            }
        }
        Ok(())
    }

    /// Loads and stores; `None` for other operations.
    fn memory(&mut self, inst: &Inst, srcs: &[(Word, Src)]) -> Result<Option<Vec<Word>>, EvalError> {
        let address = |i: usize| -> u64 {
            let word = srcs[i].0;
            u64::from(word[0]) | u64::from(word[1]) << 32
        };
        let machine = &mut *self.machine;
        let base = machine.global_base;
        let at = |start: u64, offset: i32| start.wrapping_add(offset as i64 as u64);
        Ok(Some(match inst.op {
            Op::Ldg { access } | Op::Ld { access } => {
                vec![load(&machine.global, at(address(0), access.offset).wrapping_sub(base), access.size)?]
            }
            Op::Stg { access } | Op::St { access } => {
                let to = at(address(0), access.offset).wrapping_sub(base);
                store(&mut machine.global, to, access.size, srcs[2].0)?;
                Vec::new()
            }
            Op::Lds { size, scale, offset, .. } => {
                let start =
                    (srcs[0].0[0] << scale.shift()).wrapping_add(srcs[1].0[0]).wrapping_add(offset as u32);
                vec![load(&machine.shared, start.into(), size)?]
            }
            Op::Sts { size, scale, offset, .. } => {
                let start =
                    (srcs[0].0[0] << scale.shift()).wrapping_add(srcs[1].0[0]).wrapping_add(offset as u32);
                store(&mut machine.shared, start.into(), size, srcs[2].0)?;
                Vec::new()
            }
            Op::Ldl { size, offset } | Op::Fill { size, offset } => {
                vec![load(&machine.local, srcs[0].0[0].wrapping_add(offset as u32).into(), size)?]
            }
            Op::Stl { size, offset } | Op::Spill { size, offset } => {
                store(&mut machine.local, srcs[0].0[0].wrapping_add(offset as u32).into(), size, srcs[1].0)?;
                Vec::new()
            }
            // Code has no addresses here, so the number of the target represents its address.
            Op::Target { .. } => vec![[srcs[0].0[0] / 4, 0, 0, 0]],
            Op::Ldc { size, bank, offset } => {
                let start = srcs[0].0[0].wrapping_add(offset as u32);
                let mut bytes = Vec::new();
                for i in 0..u32::from(signature::size_bytes(size)) {
                    let byte = start.wrapping_add(i);
                    let word = machine.constant(bank, (byte & 0xfffc) as u16);
                    bytes.push((word >> (8 * (byte & 3))) as u8);
                }
                vec![load(&bytes, 0, size)?]
            }
            _ => return Ok(None),
        }))
    }
}

/// The contents of a source without its modifiers, but with a predicate's negation applied.
fn contents(
    func: &Function,
    src: Src,
    width: u8,
    value: impl Fn(Value) -> Result<Word, EvalError>,
    constant: impl Fn(u8, u16) -> u32,
) -> Result<Word, EvalError> {
    let mut word = match src.kind {
        SrcKind::Value(v) => value(v)?,
        SrcKind::Part(v, part) => [*value(v)?.get(usize::from(part)).ok_or(EvalError::Operand)?, 0, 0, 0],
        // The stack pointer is zero, so local memory starts at zero.
        SrcKind::Reg(_) | SrcKind::Zero | SrcKind::Undef => [0; 4],
        SrcKind::Pred(b) => [u32::from(b), 0, 0, 0],
        SrcKind::Imm(bits) => [bits, 0, 0, 0],
        SrcKind::Const(c) => {
            let mut word = [0; 4];
            for (i, w) in word.iter_mut().enumerate().take(usize::from(width)) {
                *w = constant(c.bank, c.offset + 4 * i as u16);
            }
            word
        }
    };
    let is_predicate = match src.kind {
        SrcKind::Value(v) => func.value(v).file == File::P,
        SrcKind::Pred(_) => true,
        _ => false,
    };
    if is_predicate && src.mods.not {
        word[0] ^= 1;
    }
    Ok(word)
}

/// A word of the function's literals.
fn literal(func: &Function, offset: u16) -> u32 {
    let (index, byte) = (u32::from(offset) / LITERAL_BYTES, u32::from(offset) % LITERAL_BYTES);
    let literal = func.literals.get(index as usize).copied().unwrap_or(0);
    (literal >> (8 * byte)) as u32
}

/// The number of words of a source that is in a constant bank; one for others, which have their own width.
fn source_width(func: &Function, inst: &Inst, i: usize) -> u8 {
    if !matches!(signature::src_or_neutral(inst, i).kind, SrcKind::Const(_)) {
        return 1;
    }
    let sig = signature::signature(&inst.op);
    match sig.srcs.get(i).map(|s| s.width) {
        Some(signature::Width::Exactly(n)) => n,
        Some(signature::Width::OneOrTwo) => 2,
        Some(signature::Width::Any) => match inst.dsts.first() {
            Some(Dst::Value(v)) => func.value(*v).width,
            _ => 1,
        },
        None => 1,
    }
}

/// Whether the results are exactly determined by the instruction's operands, on every machine and under every condition.
pub fn is_exact(inst: &Inst) -> bool {
    inst.guard.is_true() && operation::is_exact(&inst.op)
}

/// The contents of a source for values that are `known`, as [`Machine`] computes them: without modifiers. `None` if it
/// is another value or neither a value nor a constant.
pub fn known_word(
    func: &Function,
    src: Src,
    width: u8,
    known: impl Fn(Value) -> Option<Word>,
) -> Option<Word> {
    match src.kind {
        SrcKind::Reg(_) | SrcKind::Undef => return None,
        SrcKind::Const(c) if c.bank != LITERALS => return None,
        _ => {}
    }
    let value = |v: Value| known(v).ok_or(EvalError::Operand);
    contents(func, src, width, value, |_, offset| literal(func, offset)).ok()
}

/// The results of an exact instruction for values that are `known`; `None` if they depend on anything else.
pub fn known_results(
    func: &Function,
    inst: &Inst,
    known: impl Fn(Value) -> Option<Word>,
) -> Option<Vec<Word>> {
    if !is_exact(inst) {
        return None;
    }
    let mut srcs = Vec::new();
    for i in 0..inst.srcs.len().max(signature::signature(&inst.op).srcs.len()) {
        let src = signature::src_or_neutral(inst, i);
        srcs.push((known_word(func, src, source_width(func, inst, i), &known)?, src));
    }
    operation::apply(&Machine::default(), inst, &srcs).ok()
}

fn load(memory: &[u8], at: u64, size: MemSize) -> Result<Word, EvalError> {
    let bytes = usize::from(signature::size_bytes(size));
    let start = usize::try_from(at).map_err(|_| EvalError::Address(at))?;
    let end = start.checked_add(bytes).ok_or(EvalError::Address(at))?;
    let slice = memory.get(start..end).ok_or(EvalError::Address(at))?;
    let mut word = [0; 4];
    for (i, byte) in slice.iter().enumerate() {
        word[i / 4] |= u32::from(*byte) << (8 * (i % 4));
    }
    match size {
        MemSize::S8 => word[0] = word[0] as i8 as u32,
        MemSize::S16 => word[0] = word[0] as i16 as u32,
        _ => {}
    }
    Ok(word)
}

fn store(memory: &mut [u8], at: u64, size: MemSize, word: Word) -> Result<(), EvalError> {
    let bytes = usize::from(signature::size_bytes(size));
    let start = usize::try_from(at).map_err(|_| EvalError::Address(at))?;
    let end = start.checked_add(bytes).ok_or(EvalError::Address(at))?;
    let slice = memory.get_mut(start..end).ok_or(EvalError::Address(at))?;
    for (i, byte) in slice.iter_mut().enumerate() {
        *byte = (word[i / 4] >> (8 * (i % 4))) as u8;
    }
    Ok(())
}
