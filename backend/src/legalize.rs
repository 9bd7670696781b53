//! Legalization: makes every operand encodable.
//!
//! Before: an immediate or a constant may be in any register slot. After: at most one operand of an instruction is not
//! a register, and it is in a slot that has such a form; all others are in registers. A constant in a uniform register
//! is loaded before the loop that uses it. A constant in a general register is loaded in the block that uses it,
//! because a register that is live through a loop costs more than a move. Operands are exchanged first if the operation
//! allows it.

use crate::CodegenError;
use crate::emit::takes_uniform;
use crate::input::SrcId;
use crate::layout;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, SrcMods, Value, sign_bits};
use crate::ori::memory;
use crate::ori::op::{BARRIER_BITS, Bool, FCmp, ICmp, MatchMode, MemSize, Op, ShfType, Sign, VoteMode, lut};
use crate::ori::signature::{self, Accept, At, SrcSlot, Width, facts, signature};
use crate::phase::edit::normalize_predicate;
use crate::phases::{Change, Context};
use crate::switches::Step;
use crate::target::Target;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The number of uniform registers that constants may take in a function. A long-lived uniform value keeps its register
/// for the whole function.
const UNIFORM_CONSTANTS: u32 = 40;

/// Whether operations read constants from their bank. Otherwise loads do.
pub(crate) fn reads_constants(sm: sass::Sm) -> bool {
    sass::lookup(sm, "IADD3", "rcr").is_some()
}

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let sm = sass::Sm(context.sm.number as u8);
    let constant_operands = reads_constants(sm);
    let hoists = context.switches.takes(Step::HoistConstants);
    let keeps_uniform = context.switches.takes(Step::UniformConstants);
    let reads_uniform =
        !constant_operands || Target::nearest(context.sm).is_some_and(Target::uniform_addresses);
    let uniform = if keeps_uniform && reads_uniform && func.entry { UNIFORM_CONSTANTS } else { 0 };
    // Only constants in uniform registers are loaded before loops.
    let homes = if hoists && uniform > 0 {
        context.analyses.loops(func).homes(func, context.analyses.dominators(func))
    } else {
        vec![None; func.blocks.len()]
    };
    let mut legalizer = Legalizer {
        constant_operands,
        phi_constants: if constant_operands { FxHashMap::default() } else { phi_constants(func, cfg) },
        mask_operands: sass::lookup(sm, "WARPSYNC", "").is_some(),
        predicate_votes: Target::nearest(context.sm).is_none_or(|target| target.predicate_votes),
        homes,
        sm,
        uniform,
        in_block: FxHashMap::default(),
        before_loops: FxHashMap::default(),
        block: BlockId(0),
        out: Vec::new(),
    };
    for (i, &b) in cfg.order.iter().enumerate() {
        if i % 64 == 0 {
            (context.checkpoint)();
        }
        legalizer.block(func, b);
    }
    Ok(Change::Something)
}

/// A value to load, the number of registers, and their file.
type Key = (SrcKind, u8, File);

/// For each edge: the phis of the target block that take a constant along the edge, and the index of that argument.
type PhiConstants = FxHashMap<(BlockId, BlockId), Vec<(usize, usize)>>;

fn phi_constants(func: &Function, cfg: &Cfg) -> PhiConstants {
    let mut constants = PhiConstants::default();
    for &b in &cfg.order {
        for (p, phi) in func.block(b).phis.iter().enumerate() {
            if func.value(phi.dst).file != File::R {
                continue;
            }
            for (a, (from, src)) in phi.args.iter().enumerate() {
                if matches!(src.kind, SrcKind::Const(_)) {
                    constants.entry((*from, b)).or_default().push((p, a));
                }
            }
        }
    }
    constants
}

struct Legalizer {
    /// Arithmetic can read constant banks.
    constant_operands: bool,
    /// The constants of phis that have not been loaded yet.
    phi_constants: PhiConstants,
    /// A mask of some threads, but not all, can be an immediate.
    mask_operands: bool,
    /// See [`Target::predicate_votes`].
    predicate_votes: bool,
    sm: sass::Sm,
    /// The number of uniform registers that constants may still take.
    uniform: u32,
    /// For each block, the block before its loops in which constants are loaded. See [`crate::ori::loops::Loops::homes`].
    homes: Vec<Option<BlockId>>,
    /// Constants that have been loaded in this block.
    in_block: FxHashMap<Key, Value>,
    /// Constants that have been loaded at the end of a block, before the loops after it.
    before_loops: FxHashMap<(BlockId, Key), Value>,
    block: BlockId,
    out: Vec<Inst>,
}

impl Legalizer {
    fn block(&mut self, func: &mut Function, b: BlockId) {
        self.block = b;
        self.in_block.clear();
        let insts = std::mem::take(&mut func.block_mut(b).insts);
        self.out = Vec::with_capacity(insts.len() + insts.len() / 8);
        for mut inst in insts {
            self.inst(func, &mut inst);
            if matches!(inst.op, Op::Iadd3 { .. } | Op::Lea { .. }) {
                self.terms(func, &mut inst);
            }
            self.out.push(inst);
        }
        if !self.constant_operands {
            self.constants_of_phis(func, b);
        }
        func.block_mut(b).insts = std::mem::take(&mut self.out);
    }

    /// Loads the constants that phis take from this block, because copies cannot read constants either.
    fn constants_of_phis(&mut self, func: &mut Function, b: BlockId) {
        let at = func.block(b).term_src;
        for next in func.block(b).term.successors() {
            for (p, a) in self.phi_constants.remove(&(b, next)).unwrap_or_default() {
                let phi = &func.block(next).phis[p];
                let (dst, src) = (func.value(phi.dst), phi.args[a].1);
                let loaded = self.register(func, src, dst.width, at);
                func.block_mut(next).phis[p].args[a].1 = loaded;
            }
        }
    }

    /// Loads the constants that guarded instructions keep as old values, because copies cannot read constants.
    fn constants_of_old(&mut self, func: &mut Function, inst: &mut Inst) {
        for i in 0..inst.old.len() {
            let old = inst.old[i];
            if let (SrcKind::Const(_), Some(Dst::Value(v))) = (old.kind, inst.dsts.get(i)) {
                inst.old[i] = self.register(func, old, func.value(*v).width, inst.src);
            }
        }
    }

    fn inst(&mut self, func: &mut Function, inst: &mut Inst) {
        if matches!(inst.op, Op::Warpsync { .. }) && inst.srcs[0].kind == SrcKind::Undef {
            // Any mask is correct, and all threads together need no register.
            inst.op = Op::Warpsync { exclusive: false };
            inst.srcs[0] = Src::imm(u32::MAX);
        }
        if inst.srcs.iter().any(|src| src.kind == SrcKind::Undef) && !matches!(inst.op, Op::Pack | Op::Copy) {
            let sig = signature(&inst.op);
            for (i, src) in inst.srcs.iter_mut().enumerate() {
                // A missing optional operand is not zero.
                let may_miss = sig.srcs.get(i).is_some_and(|slot| matches!(slot.at, At::Extra));
                if src.kind == SrcKind::Undef && !may_miss {
                    *src = Src::ZERO;
                }
            }
        }
        // The only coordinate of a surface must be in a register other than RZ.
        let is_surface =
            matches!(inst.op, Op::Suld { .. } | Op::Sust { .. } | Op::SustElements { .. } | Op::Sured { .. });
        if is_surface && inst.srcs.first() == Some(&Src::ZERO) {
            inst.srcs[0] = self.load_once(func, Src::ZERO, (1, File::R), inst.src);
        }
        // So must the address of an atomic operation with a result: this is how nvdisasm 13.0 decodes the words for
        // sm_80 to sm_89.
        if matches!(inst.op, Op::Atom { .. } | Op::AtomCas { .. }) && inst.srcs.first() == Some(&Src::ZERO) {
            inst.srcs[0] = self.load_once(func, Src::ZERO, (2, File::R), inst.src);
        }
        if matches!(inst.op, Op::Pack | Op::Copy) {
            if !self.constant_operands {
                self.constants_of_pack(func, inst);
            }
            return;
        }
        if !self.constant_operands {
            self.constants_of_old(func, inst);
        }
        if let (Op::Warpsync { exclusive }, [mask]) = (inst.op, &inst.srcs[..])
            && (exclusive || !self.mask_operands)
            && mask.kind != SrcKind::Imm(u32::MAX)
        {
            // A mask in RZ has no encoding.
            inst.srcs[0] = match *mask {
                Src::ZERO => self.load_once(func, Src::ZERO, (1, File::R), inst.src),
                mask => self.register(func, mask, 1, inst.src),
            };
            return;
        }
        if matches!(inst.op, Op::Bar { .. }) {
            self.barrier(func, inst);
        }
        if !self.predicate_votes {
            self.compare_votes(func, inst);
        }
        if !inst.srcs.iter().any(|src| is_special(func, src)) {
            undefined_predicates(inst);
            return;
        }
        let sig = signature(&inst.op);
        undefined_predicates(inst);
        exchange(func, inst);
        let keep = self.kept(func, inst, &sig.srcs).or_else(|| self.uniform_constant(func, inst, &sig.srcs));
        for i in 0..inst.srcs.len() {
            let (src, Some(slot)) = (inst.srcs[i], sig.srcs.get(i)) else { continue };
            if !is_special(func, &src) || keep == Some(i) || self.always_fits(func, &inst.op, slot, &src) {
                continue;
            }
            let width = match slot.width {
                Width::Exactly(n) => n,
                // A constant that is an address is a 64-bit pointer.
                Width::OneOrTwo if matches!(src.kind, SrcKind::Const(_)) => 2,
                Width::OneOrTwo | Width::Any => 1,
            };
            let loaded = match src.kind {
                SrcKind::Imm(bits) if slot.extended => self.load_extended(func, bits, inst.src),
                kind => self.register(func, Src::new(kind), width, inst.src),
            };
            inst.srcs[i] = Src { mods: src.mods, ..loaded };
        }
    }

    /// Makes the terms of a sum legal. One of the first two terms must have no modifier. The first and the third of
    /// three terms are registers.
    fn terms(&mut self, func: &mut Function, sum: &mut Inst) {
        let is_plain = |src: &Src| src.mods == SrcMods::NONE;
        if is_plain(&sum.srcs[0]) || is_plain(&sum.srcs[1]) {
            return;
        }
        if matches!(sum.op, Op::Iadd3 { .. }) {
            sum.srcs.swap(0, 2);
            if is_plain(&sum.srcs[0]) {
                return;
            }
        }
        // `LEA` shifts its first term, including the negation.
        let term = sum.srcs[0];
        let result = func.new_value(File::R, 1);
        let dst = [Dst::Value(result)];
        let inst = match sum.op {
            Op::Iadd3 { x: true } => Inst::new(
                Op::Lop3 { lut: !lut::A },
                &dst,
                &[Src::new(term.kind), Src::ZERO, Src::ZERO],
                sum.src,
            ),
            // The negation of zero sets the carry in a sum, but not by itself. No phase creates such a sum.
            _ if sum.dsts[1..].iter().any(|dst| *dst != Dst::Sink) => return,
            _ => Inst::new(Op::Iadd3 { x: false }, &dst, &[term, Src::ZERO, Src::ZERO], sum.src),
        };
        self.out.push(inst);
        sum.srcs[0] = result.into();
    }

    /// Packs a barrier and a number of threads into one register if both are in registers.
    fn barrier(&mut self, func: &mut Function, inst: &mut Inst) {
        let [number, threads, ..] = inst.srcs[..] else { return };
        if [number, threads].iter().any(|src| matches!(src.kind, SrcKind::Imm(_) | SrcKind::Zero)) {
            return;
        }
        let [number, threads] = [number, threads].map(|src| self.register(func, src, 1, inst.src));
        let shift = Op::Shf { right: false, wrap: false, ty: ShfType::U32, hi: false };
        let moved = func.new_value(File::R, 1);
        self.out.push(Inst::new(shift, &[Dst::Value(moved)], &[threads, Src::imm(16), Src::ZERO], inst.src));
        let join = Op::Lop3 { lut: lut::A | (lut::B & lut::C) };
        let both = func.new_value(File::R, 1);
        let srcs = [moved.into(), Src::imm(BARRIER_BITS), number];
        self.out.push(Inst::new(join, &[Dst::Value(both)], &srcs, inst.src));
        inst.srcs[..2].fill(both.into());
    }

    /// Replaces votes with a predicate result, and tests whether all threads have one value, by comparisons of thread
    /// masks.
    fn compare_votes(&mut self, func: &mut Function, inst: &mut Inst) {
        const ANY: Op = Op::Vote { mode: VoteMode::Any };
        let compare = |cmp: ICmp, bool_: Bool| Op::Isetp { cmp, sign: Sign::U32, bool_, ex: false };
        let is_asked = |inst: &Inst, i: usize| matches!(inst.dsts.get(i), Some(Dst::Value(_)));
        match inst.op {
            Op::Vote { mode } if is_asked(inst, 1) && !is_asked(inst, 0) => {
                let mut voters = if mode == VoteMode::All { inst.srcs[0].not() } else { inst.srcs[0] };
                normalize_predicate(&mut voters);
                let ballot = self.threads(func, inst, ANY, voters);
                let (op, srcs) = match mode {
                    VoteMode::Any => (compare(ICmp::Ne, Bool::And), [ballot, Src::ZERO, Src::TRUE]),
                    VoteMode::All => (compare(ICmp::Eq, Bool::And), [ballot, Src::ZERO, Src::TRUE]),
                    VoteMode::Eq => {
                        let all = self.threads(func, inst, ANY, Src::TRUE);
                        let none = self.compared(func, inst, [ballot, Src::ZERO]);
                        (compare(ICmp::Eq, Bool::Or), [ballot, all, none])
                    }
                };
                *inst = result(inst, 1, op, &srcs);
            }
            Op::Match { mode: MatchMode::All, wide } if is_asked(inst, 0) || is_asked(inst, 1) => {
                let word = self.register(func, inst.srcs[0], if wide { 2 } else { 1 }, inst.src);
                let equal = self.threads(func, inst, Op::Match { mode: MatchMode::Any, wide }, word);
                let all = self.threads(func, inst, ANY, Src::TRUE);
                if !is_asked(inst, 0) {
                    *inst = result(inst, 1, compare(ICmp::Eq, Bool::And), &[equal, all, Src::TRUE]);
                    return;
                }
                if is_asked(inst, 1) {
                    self.out.push(result(inst, 1, compare(ICmp::Eq, Bool::And), &[equal, all, Src::TRUE]));
                }
                let same = self.compared(func, inst, [equal, all]);
                *inst = result(inst, 0, Op::Sel, &[all, Src::ZERO, same]);
            }
            _ => {}
        }
    }

    /// The mask that a warp operation returns, computed under the guard of an instruction.
    fn threads(&mut self, func: &mut Function, inst: &Inst, op: Op, src: Src) -> Src {
        let v = func.new_value(File::R, 1);
        let mut made = Inst::new(op, &[Dst::Value(v)], &[src], inst.src);
        if !inst.guard.is_true() {
            made.guard = inst.guard;
            made.old.push(Src::UNDEF);
        }
        self.out.push(made);
        v.into()
    }

    /// Whether two words are equal.
    fn compared(&mut self, func: &mut Function, inst: &Inst, [a, b]: [Src; 2]) -> Src {
        let v = func.new_value(File::P, 1);
        let op = Op::Isetp { cmp: ICmp::Eq, sign: Sign::U32, bool_: Bool::And, ex: false };
        self.out.push(Inst::new(op, &[Dst::Value(v), Dst::Sink], &[a, b, Src::TRUE], inst.src));
        v.into()
    }

    /// Whether an operand does not compete for the single non-register slot, because it is encoded in other fields.
    fn always_fits(&self, func: &Function, op: &Op, slot: &SrcSlot, src: &Src) -> bool {
        let own_field = memory::memory(op).is_some()
            || facts(op).uniform
            || slot.file == File::UR
            || matches!(op, Op::Shfl { .. } | Op::Bar { .. } | Op::Warpsync { .. });
        own_field && fits(func, slot, src)
    }

    /// The index of the operand that stays as it is.
    fn kept(&self, func: &Function, inst: &Inst, slots: &[SrcSlot]) -> Option<usize> {
        let fitting = inst.srcs.iter().zip(slots).enumerate().filter(|(_, (src, slot))| {
            is_special(func, src)
                && fits(func, slot, src)
                && (self.constant_operands || !matches!(src.kind, SrcKind::Const(_)))
        });
        // A pair costs two loads. A constant or a uniform register costs one. A short immediate has probably been
        // loaded already.
        fitting
            .max_by_key(|(i, (src, slot))| {
                let wide = slot.width == Width::Exactly(2);
                let immediate = matches!(src.kind, SrcKind::Imm(_));
                let literal = matches!(src.kind, SrcKind::Const(c) if c.bank == layout::LITERALS);
                let loaded = self.in_block.contains_key(&(src.kind, if wide { 2 } else { 1 }, File::R));
                (wide, !immediate, literal, !loaded, std::cmp::Reverse(*i))
            })
            .map(|(i, _)| i)
    }

    /// Loads a constant into a uniform register, which replaces it in the instruction. Returns the index of the
    /// operand.
    fn uniform_constant(&mut self, func: &mut Function, inst: &mut Inst, slots: &[SrcSlot]) -> Option<usize> {
        let constants = inst.srcs.iter().zip(slots).enumerate().filter_map(|(i, (src, slot))| {
            let is_address = slot.at == At::Address;
            let width = match slot.width {
                Width::Exactly(width @ (1 | 2)) => width,
                _ if is_address => 2,
                _ => return None,
            };
            let takes = matches!(src.kind, SrcKind::Const(_))
                && slot.accept.has(Accept::UR)
                && (is_address || !self.constant_operands)
                && self.uniform >= u32::from(width)
                && takes_uniform(self.sm, &inst.op, i, src.mods);
            takes.then_some((width, i))
        });
        let (width, i) = constants.max_by_key(|&(width, i)| (width, std::cmp::Reverse(i)))?;
        let src = inst.srcs[i];
        let loaded = self.load_once(func, Src::new(src.kind), (width, File::UR), inst.src);
        inst.srcs[i] = Src { mods: src.mods, ..loaded };
        Some(i)
    }

    /// Loads `src`, which has no modifiers, into `width` registers.
    fn register(&mut self, func: &mut Function, src: Src, width: u8, at: SrcId) -> Src {
        if !is_special(func, &src) {
            return src;
        }
        self.load_once(func, src, (width, File::R), at)
    }

    /// Loads the bits and their sign as a pair.
    fn load_extended(&mut self, func: &mut Function, bits: u32, at: SrcId) -> Src {
        let v = func.new_value(File::R, 2);
        let halves = [Src::imm(bits), Src::imm(sign_bits(bits))];
        self.out.push(Inst::new(Op::Pack, &[Dst::Value(v)], &halves, at));
        v.into()
    }

    /// Returns `src` in `width` registers of a file. If it is not there yet, it is loaded here or before the outermost
    /// loop.
    fn load_once(&mut self, func: &mut Function, src: Src, (width, file): (u8, File), at: SrcId) -> Src {
        let key = (src.kind, width, file);
        if let Some(v) = self.in_block.get(&key) {
            return (*v).into();
        }
        if let Some(home) = self.homes[self.block.index()] {
            if let Some(v) = self.before_loops.get(&(home, key)) {
                return (*v).into();
            }
            // A uniform value may be defined in the loop.
            let invariant = matches!(src.kind, SrcKind::Imm(_) | SrcKind::Const(_));
            if invariant && file == File::UR {
                let mut load = Vec::new();
                let v = self.load(func, src, (width, file), at, &mut load);
                func.block_mut(home).insts.append(&mut load);
                self.before_loops.insert((home, key), v);
                return v.into();
            }
        }
        let mut out = std::mem::take(&mut self.out);
        let v = self.load(func, src, (width, file), at, &mut out);
        self.out = out;
        self.in_block.insert(key, v);
        v.into()
    }

    fn load(
        &mut self,
        func: &mut Function,
        src: Src,
        (width, file): (u8, File),
        at: SrcId,
        out: &mut Vec<Inst>,
    ) -> Value {
        let v = func.new_value(file, width);
        let dst = [Dst::Value(v)];
        let inst = match src.kind {
            SrcKind::Const(_) if file == File::UR => {
                self.uniform -= u32::from(width);
                Inst::new(Op::Uldc { wide: width == 2 }, &dst, &[src], at)
            }
            SrcKind::Const(c) if !self.constant_operands => {
                let size = if width == 2 { MemSize::B64 } else { MemSize::B32 };
                let op = Op::Ldc { size, bank: c.bank, offset: i32::from(c.offset) };
                Inst::new(op, &dst, &[Src::ZERO], at)
            }
            _ if width == 1 => Inst::new(Op::Mov, &dst, &[src], at),
            // The immediate of a double is its high word.
            SrcKind::Imm(_) => Inst::new(Op::Pack, &dst, &[Src::ZERO, src], at),
            kind => {
                let parts: SmallVec<[Src; 4]> =
                    (0..width).map(|i| Src::new(crate::phase::edit::part_of(kind, i))).collect();
                Inst::new(Op::Pack, &dst, &parts, at)
            }
        };
        out.push(inst);
        v
    }

    /// On targets that load constants with an instruction, loads a pair of constants with one instruction.
    fn constants_of_pack(&mut self, func: &mut Function, inst: &mut Inst) {
        if let [a, b] = inst.srcs[..]
            && inst.op == Op::Pack
            && let Some(whole) = crate::phase::copy_propagation::whole_of(func, &[a, b])
            && let SrcKind::Const(c) = whole.kind
        {
            inst.op = Op::Ldc { size: MemSize::B64, bank: c.bank, offset: i32::from(c.offset) };
            inst.srcs = smallvec::smallvec![Src::ZERO];
            return;
        }
        for i in 0..inst.srcs.len() {
            let src = inst.srcs[i];
            if matches!(src.kind, SrcKind::Const(_)) {
                let width = if inst.op == Op::Pack { 1 } else { self.width_of(func, inst) };
                inst.srcs[i] = self.register(func, src, width, inst.src);
            }
        }
    }

    fn width_of(&self, func: &Function, inst: &Inst) -> u8 {
        inst.defs().next().map_or(1, |v| func.value(v).width)
    }
}

/// An operation that computes the `i`-th result of an instruction in another way, under its guard.
fn result(inst: &Inst, i: usize, op: Op, srcs: &[Src]) -> Inst {
    let mut made = Inst::new(op, &[inst.dsts[i]], srcs, inst.src);
    made.guard = inst.guard;
    made.old.extend(inst.old.get(i).copied());
    if matches!(op, Op::Isetp { .. }) {
        made.dsts.push(Dst::Sink);
        made.old.extend(inst.old.get(i).map(|_| Src::UNDEF));
    }
    made
}

/// Whether an operand is neither a general register nor a predicate nor zero.
fn is_special(func: &Function, src: &Src) -> bool {
    match src.kind {
        SrcKind::Imm(_) | SrcKind::Const(_) => true,
        SrcKind::Value(v) | SrcKind::Part(v, _) => func.value(v).file == File::UR,
        SrcKind::Reg(reg) => reg.file == File::UR,
        SrcKind::Zero | SrcKind::Pred(_) | SrcKind::Undef => false,
    }
}

/// Whether the slot has a form for this operand. An immediate has no modifiers.
fn fits(func: &Function, slot: &SrcSlot, src: &Src) -> bool {
    if slot.file == File::UR && !matches!(src.kind, SrcKind::Imm(_) | SrcKind::Const(_)) {
        return true;
    }
    let Some(kind) = signature::kind_of(&src.kind, |v| func.value(v).file) else { return true };
    let modified = src.mods != SrcMods::NONE;
    slot.accept.has(kind) && !(modified && kind == Accept::IMM)
}

fn undefined_predicates(inst: &mut Inst) {
    if inst.guard.kind == SrcKind::Undef {
        inst.guard = Src::FALSE;
        inst.old.clear();
        inst.old.extend(inst.dsts.iter().map(|_| Src::UNDEF));
    }
    let sig_of = inst.op;
    if inst.srcs.iter().all(|src| src.kind != SrcKind::Zero) {
        return;
    }
    // `Undef` has become zero; in a predicate slot this is the false predicate.
    let sig = signature(&sig_of);
    for (slot, src) in sig.srcs.iter().zip(&mut inst.srcs) {
        if matches!(slot.file, File::P | File::UP) && src.kind == SrcKind::Zero {
            *src = Src::FALSE;
        }
    }
}

/// Exchanges operands to move a non-register operand to the slot that accepts one.
pub(crate) fn exchange(func: &Function, inst: &mut Inst) {
    let special = |inst: &Inst, i: usize| inst.srcs.get(i).is_some_and(|src| is_special(func, src));
    match inst.op {
        Op::Iadd3 { .. } => {
            for i in [0, 2] {
                if special(inst, i) && !special(inst, 1) {
                    inst.srcs.swap(i, 1);
                }
            }
        }
        Op::Lop3 { lut } | Op::Lop3P { lut } => {
            for i in [0, 2] {
                if special(inst, i) && !special(inst, 1) {
                    inst.srcs.swap(i, 1);
                    let lut = swap_lut(lut, i);
                    inst.op =
                        if matches!(inst.op, Op::Lop3 { .. }) { Op::Lop3 { lut } } else { Op::Lop3P { lut } };
                    break;
                }
            }
        }
        _ if !special(inst, 0) || special(inst, 1) => {}
        Op::Sel | Op::Sel64 | Op::Fsel { .. } => {
            inst.srcs.swap(0, 1);
            inst.srcs[2] = inst.srcs[2].not();
            crate::phase::edit::normalize_predicate(&mut inst.srcs[2]);
        }
        Op::Isetp { cmp, sign, bool_, ex } => {
            inst.srcs.swap(0, 1);
            inst.op = Op::Isetp { cmp: reversed(cmp), sign, bool_, ex };
        }
        Op::Isetp64 { cmp, sign, bool_ } => {
            inst.srcs.swap(0, 1);
            inst.op = Op::Isetp64 { cmp: reversed(cmp), sign, bool_ };
        }
        Op::Fsetp { cmp, ftz, bool_ } => {
            inst.srcs.swap(0, 1);
            inst.op = Op::Fsetp { cmp: reversed_float(cmp), ftz, bool_ };
        }
        Op::Dsetp { cmp, bool_ } => {
            inst.srcs.swap(0, 1);
            inst.op = Op::Dsetp { cmp: reversed_float(cmp), bool_ };
        }
        Op::Hsetp2 { cmp, bf16, ftz, bool_ } => {
            inst.srcs.swap(0, 1);
            inst.op = Op::Hsetp2 { cmp: reversed_float(cmp), bf16, ftz, bool_ };
        }
        op => {
            if let Some((a, b)) = facts(&op).commutes {
                inst.srcs.swap(a, b);
            }
        }
    }
}

/// The truth table of the function after exchanging source `i` (0 or 2) and source 1.
pub fn swap_lut(lut: u8, i: usize) -> u8 {
    let (x, y) = if i == 0 { (4, 2) } else { (1, 2) };
    (0..8u8).fold(0, |table, index| {
        let swapped =
            (index & !(x | y)) | (if index & x != 0 { y } else { 0 }) | (if index & y != 0 { x } else { 0 });
        table | ((lut >> swapped & 1) << index)
    })
}

/// The comparison `b cmp' a` that is equivalent to `a cmp b`.
pub fn reversed(cmp: ICmp) -> ICmp {
    match cmp {
        ICmp::Lt => ICmp::Gt,
        ICmp::Gt => ICmp::Lt,
        ICmp::Le => ICmp::Ge,
        ICmp::Ge => ICmp::Le,
        ICmp::F | ICmp::Eq | ICmp::Ne | ICmp::T => cmp,
    }
}

pub fn reversed_float(cmp: FCmp) -> FCmp {
    match cmp {
        FCmp::Lt => FCmp::Gt,
        FCmp::Gt => FCmp::Lt,
        FCmp::Le => FCmp::Ge,
        FCmp::Ge => FCmp::Le,
        FCmp::Ltu => FCmp::Gtu,
        FCmp::Gtu => FCmp::Ltu,
        FCmp::Leu => FCmp::Geu,
        FCmp::Geu => FCmp::Leu,
        FCmp::F | FCmp::Eq | FCmp::Ne | FCmp::Num | FCmp::Nan | FCmp::Equ | FCmp::Neu | FCmp::T => cmp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::analyses::Analyses;
    use crate::ori::text;
    use expect_test::{Expect, expect};

    fn check(sm: u16, body: &str, expected: Expect) {
        check_as("func", sm, body, expected);
    }

    fn check_as(kind: &str, sm: u16, body: &str, expected: Expect) {
        let mut func = text::parse(&format!("{kind} \"f\" {{\nb0:\n{body}\nEXIT\n}}")).unwrap();
        run(&mut func, &Context::of(sm, &Analyses::default())).unwrap();
        let text = text::print(&func);
        let lines: Vec<&str> =
            text.lines().skip(2).take_while(|l| !l.contains("EXIT")).map(str::trim).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn operands_are_exchanged() {
        check(
            80,
            "%v0:r = S2R\n%v1:r = IADD3 0x1, %v0, RZ\n%v2:p = ISETP.LT.AND c[0x0][0x160], %v0, PT
             %v3:r = SEL 0x5, %v0, %v2\n%v4:r = LOP3{lut=0xd0} 0x5, %v0, %v1",
            expect![[r#"
                %v0:r = S2R
                %v1:r = IADD3 %v0, 0x1, RZ
                %v2:p = ISETP.GT.AND %v0, c[0x0][0x160], PT
                %v3:r = SEL %v0, 0x5, !%v2
                %v4:r = LOP3{lut=0xc4} %v0, 0x5, %v1"#]],
        );
    }

    #[test]
    fn all_but_one_are_loaded_once_per_block() {
        check(
            80,
            "%v0:r = S2R\n%v1:r2 = IMAD.WIDE %v0, 0x4, c[0x0][0x160]\n%v2:r2 = IMAD.WIDE %v0, 0x4, c[0x0][0x168]",
            expect![[r#"
                %v0:r = S2R
                %v3:r = MOV 0x4
                %v1:r2 = IMAD.WIDE %v0, %v3, c[0x0][0x160]
                %v2:r2 = IMAD.WIDE %v0, %v3, c[0x0][0x168]"#]],
        );
    }

    #[test]
    fn addresses_and_data_are_registers() {
        check(
            80,
            "STG.E c[0x0][0x160], RZ, 0x7",
            expect![[r#"
                %v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]
                %v1:r = MOV 0x7
                STG.E %v0, RZ, %v1"#]],
        );
    }

    #[test]
    fn atomic_operations_read_null_from_registers() {
        check(
            80,
            "%v0:ur2 = ULDC.64 c[0x0][0x118]\n%v1:r = ATOM.E.ADD.F32.FTZ.RN.RELAXED.GPU RZ, %v0, 0x7",
            expect![[r#"
                %v0:ur2 = ULDC.64 c[0x0][0x118]
                %v2:r2 = PACK RZ, RZ
                %v3:r = MOV 0x7
                %v1:r = ATOM.E.ADD.F32.FTZ.RN.RELAXED.GPU %v2, %v0, %v3"#]],
        );
    }

    #[test]
    fn newer_targets_load_constants() {
        check(
            120,
            "%v0:r = IADD3 c[0x0][0x380], 0x1, RZ\nSTG.E c[0x0][0x388], RZ, %v0",
            expect![[r#"
                %v1:r = LDC{offset=0x380} RZ
                %v0:r = IADD3 %v1, 0x1, RZ
                %v2:r2 = LDC.64{offset=0x388} RZ
                STG.E %v2, RZ, %v0"#]],
        );
    }

    #[test]
    fn kernels_of_newer_targets_read_constants_from_uniform_registers() {
        check_as(
            "entry",
            120,
            "%v0:r = S2R\n%v1:r, _, _ = IADD3 %v0, c[0x0][0x380], c[0x0][0x384]\n%v3:r2 = PACK %v0, RZ\n%v2:r2 = DADD %v3, c[0x0][0x388]
             %v4:r2 = IMAD.WIDE %v0, 0x4, c[0x0][0x390]\n%v5:r, _, _ = IADD3 %v1, -c[0x0][0x380], RZ",
            expect![[r#"
                %v0:r = S2R
                %v6:ur = ULDC c[0x0][0x380]
                %v7:r = LDC{offset=0x384} RZ
                %v1:r, _, _ = IADD3 %v0, %v6, %v7
                %v3:r2 = PACK %v0, RZ
                %v8:ur2 = ULDC.64 c[0x0][0x388]
                %v2:r2 = DADD %v3, %v8
                %v9:r2 = LDC.64{offset=0x390} RZ
                %v4:r2 = IMAD.WIDE %v0, 0x4, %v9
                %v5:r, _, _ = IADD3 %v1, -%v6, RZ"#]],
        );
    }

    #[test]
    fn newer_targets_load_constants_that_guards_keep() {
        check(
            120,
            "%v0:p = ISETP.LT.AND RZ, 0x5, PT\n@%v0 %v1:r = LDG.E RZ, RZ old(c[0x0][0x380])\nSTG.E RZ, RZ, %v1",
            expect![[r#"
                %v0:p = ISETP.LT.AND RZ, 0x5, PT
                %v2:r = LDC{offset=0x380} RZ
                @%v0 %v1:r = LDG.E RZ, RZ old(%v2)
                STG.E RZ, RZ, %v1"#]],
        );
    }
}
