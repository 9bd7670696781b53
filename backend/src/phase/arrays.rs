//! Keeps small arrays of local memory in registers, although their indices are not known.
//!
//! The common case is the argument reduction of sine and cosine, with an array of seven words that is written in a loop
//! and read by an index. A load from an unknown place becomes loads of all words, and selects one of them by the index.
//! A store to an unknown place becomes stores to all words, each of the new value or of the word's old value. All
//! accesses then have constant offsets, and [`crate::phase::forward`] turns the words into values. If an access of
//! local memory remains after that, the function is left unchanged.
//!
//! Only kernels are changed. Functions that are called keep their arrays in memory, as in the code of ptxas.
//!
//! An index beyond the array is an error of the program, and so is a misaligned address.
//!
//! Before and after: SSA.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{Dst, File, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::memory::{Order, memory};
use crate::ori::op::{Bool, ICmp, MemSize, Op, Sign};
use crate::ori::signature::size_registers;
use crate::phase::edit::part_of;
use crate::phase::{dead_code, forward};
use crate::phases::{Change, Context};
use crate::regalloc::STACK_POINTER;

/// The maximum number of words in the frame.
const MOST_WORDS: u32 = 10;
/// The maximum number of words that all accesses with unknown indices together select from: one argument reduction, but
/// not two, between which the words would be live.
const MOST_SELECTED: u32 = 48;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let bytes = func.frame.local_bytes;
    let words = bytes / 4;
    if !func.entry || func.frame.moving || !bytes.is_multiple_of(4) || !(1..=MOST_WORDS).contains(&words) {
        return Ok(Change::Nothing);
    }
    let cfg = context.analyses.cfg(func);
    // An unused instruction must not count as a use of an address.
    dead_code::remove_dead(func, cfg);
    let Some(frame) = Frame::of(func, cfg) else { return Ok(Change::Something) };
    let indexed = insts(func, cfg).filter(|inst| frame.is_indexed(inst)).count() as u32;
    if indexed == 0 || indexed * words > MOST_SELECTED {
        return Ok(Change::Something);
    }
    let mut promoted = func.clone();
    frame.expand(&mut promoted, cfg, words);
    (context.checkpoint)();
    forward::run(&mut promoted, context)?;
    dead_code::remove_dead(&mut promoted, cfg);
    if !insts(&promoted, cfg).any(|inst| access(inst).is_some()) {
        *func = promoted;
    }
    Ok(Change::Something)
}

fn insts<'f>(func: &'f Function, cfg: &'f Cfg) -> impl Iterator<Item = &'f Inst> {
    cfg.order.iter().flat_map(|&b| &func.block(b).insts)
}

/// The size and offset of an access to local memory.
fn access(inst: &Inst) -> Option<(MemSize, i32)> {
    match inst.op {
        Op::Ldl { size, offset } | Op::Stl { size, offset } => Some((size, offset)),
        _ => None,
    }
}

const FRAME: SrcKind = SrcKind::Reg(STACK_POINTER);

/// The values that are addresses in the frame.
struct Frame {
    /// Indexed by value: the value is an address in the frame.
    addresses: Vec<bool>,
}

impl Frame {
    /// `None` if addresses in the frame are used for anything except accesses of whole words, or if local memory is
    /// accessed through other addresses.
    fn of(func: &Function, cfg: &Cfg) -> Option<Frame> {
        let mut frame = Frame { addresses: vec![false; func.values.len()] };
        loop {
            let mut changed = false;
            for &b in &cfg.order {
                let block = func.block(b);
                for phi in &block.phis {
                    if phi.args.iter().any(|(_, src)| frame.has(src)) {
                        changed |= frame.add(phi.dst);
                    }
                }
                for inst in &block.insts {
                    if inst.uses().any(|src| frame.has(src)) && access(inst).is_none() {
                        let address = frame.computed(func, inst)?;
                        changed |= frame.add(address);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        frame.is_closed(func, cfg).then_some(frame)
    }

    /// Adds an address. Returns whether it is new.
    fn add(&mut self, v: Value) -> bool {
        !std::mem::replace(&mut self.addresses[v.index()], true)
    }

    fn has(&self, src: &Src) -> bool {
        src.kind == FRAME || src.value().is_some_and(|v| self.addresses[v.index()])
    }

    /// The address that an instruction computes from a single address in the frame.
    fn computed(&self, func: &Function, inst: &Inst) -> Option<Value> {
        let [Dst::Value(v), others @ ..] = &inst.dsts[..] else { return None };
        let plain = inst.guard.is_true()
            && others.iter().all(|dst| *dst == Dst::Sink)
            && func.value(*v).width == 1
            && func.value(*v).file == File::R;
        let mut bases = (0..inst.srcs.len()).filter(|i| self.has(&inst.srcs[*i]));
        let (base, other) = (bases.next()?, bases.next());
        let sum = match inst.op {
            Op::Mov | Op::Iadd3 { x: false } => true,
            Op::Lea { .. } | Op::LeaHi { x: false, .. } | Op::LeaHiSx { x: false, .. } => base == 1,
            Op::Imad { .. } => base == 2,
            _ => false,
        };
        (plain && sum && other.is_none() && inst.srcs[base].mods == SrcMods::NONE).then_some(*v)
    }

    /// Whether phis join addresses only with addresses, all accesses are of whole words through addresses in the frame,
    /// and no address is stored or read by a terminator.
    fn is_closed(&self, func: &Function, cfg: &Cfg) -> bool {
        cfg.order.iter().all(|&b| {
            let block = func.block(b);
            let joins = block.phis.iter().all(|phi| {
                let mut args = phi.args.iter();
                !self.addresses[phi.dst.index()]
                    || args.all(|(_, src)| self.has(src) || src.kind == SrcKind::Undef)
            });
            let accesses = block.insts.iter().all(|inst| match access(inst) {
                Some((size, _)) => {
                    let whole = matches!(size, MemSize::B32 | MemSize::B64 | MemSize::B128);
                    let weak = memory(&inst.op).is_some_and(|access| access.order == Order::Weak);
                    let address = self.has(&inst.srcs[0]) && inst.srcs[0].mods == SrcMods::NONE;
                    let escapes = inst.srcs[1..].iter().chain(&inst.old).any(|src| self.has(src));
                    whole && weak && address && !escapes && (!self.is_indexed(inst) || inst.guard.is_true())
                }
                None => true,
            });
            joins && accesses && !block.term.operand().is_some_and(|src| self.has(src))
        })
    }

    /// Whether the instruction is an access whose offset in the frame is unknown.
    fn is_indexed(&self, inst: &Inst) -> bool {
        access(inst).is_some() && inst.srcs[0].kind != FRAME
    }

    /// Turns addresses in the frame into byte offsets from its start, and accesses at unknown offsets into accesses of
    /// all words.
    fn expand(&self, func: &mut Function, cfg: &Cfg, words: u32) {
        for &b in &cfg.order {
            let insts = std::mem::take(&mut func.block_mut(b).insts);
            let mut code = Vec::with_capacity(insts.len());
            for mut inst in insts {
                match access(&inst) {
                    Some((size, offset)) if self.is_indexed(&inst) => {
                        Access { func, code: &mut code, inst, size, offset }.expand(words);
                    }
                    Some(_) => code.push(inst),
                    None => {
                        inst.srcs.iter_mut().filter(|src| src.kind == FRAME).for_each(|src| *src = Src::ZERO);
                        code.push(inst);
                    }
                }
            }
            let block = func.block_mut(b);
            block.insts = code;
            let args = block.phis.iter_mut().flat_map(|phi| &mut phi.args);
            args.filter(|(_, src)| src.kind == FRAME).for_each(|(_, src)| *src = Src::ZERO);
        }
    }
}

/// An access at an unknown byte offset in the frame.
struct Access<'a> {
    func: &'a mut Function,
    code: &'a mut Vec<Inst>,
    inst: Inst,
    size: MemSize,
    offset: i32,
}

impl Access<'_> {
    fn expand(mut self, words: u32) {
        let each = u32::from(size_registers(self.size));
        let places = (0..words / each).map(|i| i * each);
        match self.inst.dsts.first().copied() {
            Some(dst) => self.load(places, each, dst),
            None => self.store(places, each),
        }
    }

    fn load(&mut self, places: impl Iterator<Item = u32>, each: u32, dst: Dst) {
        let mut found: Vec<Src> = Vec::new();
        for place in places {
            let all: Vec<Src> = (0..each).map(|i| self.word(place + i)).collect();
            found = if place == 0 {
                all
            } else {
                let here = self.is_at(place);
                all.iter().zip(&found).map(|(new, old)| self.select(here, *new, *old)).collect()
            };
        }
        let op = if each == 1 { Op::Mov } else { Op::Pack };
        self.code.push(Inst::new(op, &[dst], &found, self.inst.src));
    }

    fn store(&mut self, places: impl Iterator<Item = u32>, each: u32) {
        let data = self.inst.srcs[1];
        for place in places {
            let here = self.is_at(place);
            for i in 0..each {
                let part = match each {
                    1 => data,
                    _ => Src { kind: part_of(data.kind, i as u8), ..data },
                };
                let old = self.word(place + i);
                let new = self.select(here, part, old);
                let op = Op::Stl { size: MemSize::B32, offset: 4 * (place + i) as i32 };
                self.code.push(Inst::new(op, &[], &[Src::new(FRAME), new], self.inst.src));
            }
        }
    }

    fn define(&mut self, op: Op, file: File, others: &[Dst], srcs: &[Src]) -> Src {
        let v = self.func.new_value(file, 1);
        let dsts: Vec<Dst> = [Dst::Value(v)].into_iter().chain(others.iter().copied()).collect();
        self.code.push(Inst::new(op, &dsts, srcs, self.inst.src));
        v.into()
    }

    /// Loads the word with the index `place`.
    fn word(&mut self, place: u32) -> Src {
        let op = Op::Ldl { size: MemSize::B32, offset: 4 * place as i32 };
        self.define(op, File::R, &[], &[Src::new(FRAME)])
    }

    /// Whether the access begins at the word with the index `place`.
    fn is_at(&mut self, place: u32) -> Src {
        let op = Op::Isetp { cmp: ICmp::Eq, sign: Sign::U32, bool_: Bool::And, ex: false };
        let bytes = Src::imm((4 * place).wrapping_sub(self.offset as u32));
        self.define(op, File::P, &[Dst::Sink], &[self.inst.srcs[0], bytes, Src::TRUE])
    }

    fn select(&mut self, condition: Src, then: Src, or: Src) -> Src {
        self.define(Op::Sel, File::R, &[], &[then, or, condition])
    }
}
