//! Moves values that found no register elsewhere: general registers to the frame, predicates and uniform
//! registers to general registers. Constants are not kept at all but made again.
//!
//! A spilled value keeps its definition, which is followed by a store; every instruction that reads it reads a
//! fresh copy loaded just before. These ranges are as short as can be, and marked so. The function stays in
//! SSA form: frame words are not values. Values that share a bundle share their words, so a phi and its
//! argument in one bundle need no copy in memory either.

use crate::input::SrcId;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Dst, File, Inst, Phi, Src, SrcKind, SrcMods, Term, Value};
use crate::ori::op::{MemSize, Op};
use crate::regalloc::STACK_POINTER;
use crate::regalloc::bundle::{Bundle, Bundles, source_width};
use crate::regalloc::draft::{Code, Draft};
use crate::regalloc::live::Ranges;

/// Where a spilled value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    /// In the frame, at this byte offset from R1.
    Frame(u32),
    /// In a general register, as it is or as an integer for predicates.
    Shadow(Value),
    /// Nowhere: this constant.
    Constant(Src),
}

/// Spills the values of the bundles, all of one file.
pub(crate) fn spill(draft: &mut Draft<'_>, cfg: &Cfg, bundles: &Bundles, failed: &[u32]) {
    let constants = constants(draft);
    let mut homes: Vec<Option<Home>> = vec![None; draft.func.values.len()];
    let frame_start = (draft.func.frame.local_bytes + draft.func.frame.spill_bytes).next_multiple_of(16);
    let mut words: Vec<Ranges> = Vec::new();
    for &index in failed {
        let bundle = &bundles.bundles[index as usize];
        let in_frame: Vec<(Value, u8)> = bundle
            .members
            .iter()
            .copied()
            .filter(|&(v, _)| {
                if draft.fixed[v.index()] {
                    return false;
                }
                homes[v.index()] = constants[v.index()].map(Home::Constant);
                homes[v.index()].is_none()
            })
            .collect();
        if in_frame.is_empty() {
            continue;
        }
        let base = match bundle.file {
            File::R => Some(frame_start + 4 * place(&mut words, bundle)),
            _ => None,
        };
        for (v, offset) in in_frame {
            homes[v.index()] = Some(match base {
                Some(base) => Home::Frame(base + 4 * u32::from(offset)),
                None => {
                    let shadow = draft.func.new_value(File::R, draft.func.value(v).width);
                    draft.fixed.push(false);
                    Home::Shadow(shadow)
                }
            });
        }
    }
    let frame = &mut draft.func.frame;
    if !words.is_empty() {
        frame.spill_bytes = frame_start + 4 * words.len() as u32 - frame.local_bytes;
        frame.uses_stack = true;
    }
    // Values made from here on are never spilled themselves.
    for (fixed, home) in draft.fixed.iter_mut().zip(&homes) {
        *fixed |= home.is_some();
    }
    homes.resize(draft.func.values.len(), None);
    let mut spiller = Spiller { draft, homes };
    spiller.blocks();
    spiller.phis(cfg);
}

/// The constant that each value always is, if it can be made again by one move.
fn constants(draft: &Draft<'_>) -> Vec<Option<Src>> {
    let mut result = vec![None; draft.func.values.len()];
    for &b in &draft.func.layout {
        for inst in &draft.func.block(b).insts {
            let constant = |s: &Src| matches!(s.kind, SrcKind::Imm(_) | SrcKind::Const(_) | SrcKind::Zero);
            if let (Op::Mov | Op::Umov | Op::Copy | Op::Uldc { .. }, [src], [Dst::Value(v)], true) =
                (inst.op, &inst.srcs[..], &inst.dsts[..], inst.guard.is_true())
                && constant(src)
                && src.mods == SrcMods::NONE
            {
                result[v.index()] = Some(*src);
            }
        }
    }
    result
}

/// The lowest run of frame words that is free for the bundle, in words from the start of the new area.
fn place(words: &mut Vec<Ranges>, bundle: &Bundle) -> u32 {
    let mut base = usize::from(bundle.residue);
    let free = |base: usize, words: &[Ranges]| {
        bundle.slots.iter().enumerate().all(|(i, s)| words.get(base + i).is_none_or(|w| !w.intersects(s)))
    };
    while !free(base, words) {
        base += usize::from(bundle.align);
    }
    words.resize(words.len().max(base + bundle.slots.len()), Ranges::default());
    for (word, slot) in words[base..].iter_mut().zip(&bundle.slots) {
        word.absorb(slot);
    }
    base as u32
}

struct Spiller<'a, 'f> {
    draft: &'a mut Draft<'f>,
    /// Per value.
    homes: Vec<Option<Home>>,
}

/// Copies on an edge: all loads come before all stores.
#[derive(Default)]
struct EdgeCode {
    loads: Code,
    stores: Code,
}

impl Spiller<'_, '_> {
    fn home(&self, v: Value) -> Option<Home> {
        self.homes.get(v.index()).copied().flatten()
    }

    /// A value with the shortest of ranges.
    fn temporary(&mut self, file: File, width: u8) -> Value {
        self.draft.fixed.push(true);
        self.draft.func.new_value(file, width)
    }

    fn blocks(&mut self) {
        for b in self.draft.func.layout.clone() {
            let mut code = Code::default();
            for (inst, origin) in self.draft.take(b) {
                self.inst(inst, origin, &mut code);
            }
            let mut term = self.draft.func.block(b).term.clone();
            if let Some(src) = term.operand_mut() {
                let at = self.draft.func.block(b).term_src;
                self.reload(src, at, &mut code, &mut Vec::new());
            }
            self.draft.func.block_mut(b).term = term;
            self.draft.put(b, code);
        }
    }

    fn inst(&mut self, mut inst: Inst, origin: Option<u32>, code: &mut Code) {
        let at = inst.src;
        if matches!(inst.op, Op::Pack | Op::Copy) {
            return self.pseudo(inst, code);
        }
        if inst.defs().any(|v| matches!(self.home(v), Some(Home::Constant(_)))) {
            return;
        }
        let mut loaded = Vec::new();
        for src in inst.uses_mut() {
            self.reload(src, at, code, &mut loaded);
        }
        let defs: Vec<Value> = inst.defs().collect();
        code.push(inst, origin);
        for v in defs {
            self.save(v, at, code);
        }
    }

    /// Follows the definition of a spilled value.
    fn save(&mut self, v: Value, at: SrcId, code: &mut Code) {
        match self.home(v) {
            Some(Home::Frame(offset)) => self.store(offset, &v.into(), at, code),
            Some(Home::Shadow(shadow)) => {
                code.push(Inst::new(Op::Copy, &[Dst::Value(shadow)], &[v.into()], at), None);
            }
            Some(Home::Constant(_)) | None => {}
        }
    }

    /// Makes an operand readable. `loaded` has what the same instruction already loaded.
    fn reload(&mut self, src: &mut Src, at: SrcId, code: &mut Code, loaded: &mut Vec<(SrcKind, Value)>) {
        let Some(v) = src.value() else { return };
        let Some(home) = self.home(v) else { return };
        if let Some(&(_, copy)) = loaded.iter().find(|(kind, _)| *kind == src.kind) {
            src.kind = SrcKind::Value(copy);
            return;
        }
        let data = self.draft.func.value(v);
        let (part, width) = match src.kind {
            SrcKind::Part(_, part) => (part, 1),
            _ => (0, data.width),
        };
        let copy = match home {
            Home::Frame(offset) => self.load(offset + 4 * u32::from(part), width, at, code),
            Home::Shadow(shadow) => {
                let copy = self.temporary(data.file, width);
                let from = if width < data.width { Src::part(shadow, part) } else { shadow.into() };
                code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[from], at), None);
                copy
            }
            Home::Constant(constant) => {
                let copy = self.temporary(data.file, width);
                let from = constant_part(constant, part);
                code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[from], at), None);
                copy
            }
        };
        loaded.push((src.kind, copy));
        src.kind = SrcKind::Value(copy);
    }

    /// A pack or copy whose destination is in the frame stores its sources one by one.
    fn pseudo(&mut self, mut inst: Inst, code: &mut Code) {
        let (at, Some(dst)) = (inst.src, inst.defs().next()) else { return };
        match self.home(dst) {
            Some(Home::Constant(_)) => {}
            Some(Home::Frame(offset)) => {
                let mut edge = EdgeCode::default();
                let mut part = 0;
                for src in &inst.srcs {
                    let width = match src.kind {
                        SrcKind::Value(_) | SrcKind::Part(..) => source_width(self.draft.func, src),
                        _ if inst.srcs.len() == 1 => self.draft.func.value(dst).width,
                        _ => 1,
                    };
                    self.store_in_frame(offset + 4 * u32::from(part), width, src, at, &mut edge);
                    part += width;
                }
                code.append(edge.loads);
                code.append(edge.stores);
            }
            home => {
                let mut loaded = Vec::new();
                for src in &mut inst.srcs {
                    self.pseudo_source(src, at, code, &mut loaded);
                }
                code.push(inst, None);
                if home.is_some() {
                    self.save(dst, at, code);
                }
            }
        }
    }

    /// A source that may be a constant.
    fn pseudo_source(
        &mut self,
        src: &mut Src,
        at: SrcId,
        code: &mut Code,
        loaded: &mut Vec<(SrcKind, Value)>,
    ) {
        if let Some(v) = src.value()
            && let Some(Home::Constant(constant)) = self.home(v)
            && (self.draft.func.value(v).width == 1 || matches!(src.kind, SrcKind::Part(..)))
        {
            let part = if let SrcKind::Part(_, part) = src.kind { part } else { 0 };
            *src = constant_part(constant, part);
        } else {
            self.reload(src, at, code, loaded);
        }
    }

    /// Stores `src` into the frame unless it is there already.
    fn store_in_frame(&mut self, offset: u32, width: u8, src: &Src, at: SrcId, edge: &mut EdgeCode) {
        if src.kind == SrcKind::Undef {
            return;
        }
        let part = if let SrcKind::Part(_, part) = src.kind { part } else { 0 };
        if let Some(Home::Frame(home)) = src.value().and_then(|v| self.home(v))
            && home + 4 * u32::from(part) == offset
        {
            return;
        }
        let mut src = *src;
        self.reload(&mut src, at, &mut edge.loads, &mut Vec::new());
        if src.value().is_none_or(|v| self.draft.func.value(v).file != File::R) {
            let copy = self.temporary(File::R, width);
            edge.loads.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[src], at), None);
            src = copy.into();
        }
        self.store(offset, &src, at, &mut edge.stores);
    }

    fn store(&mut self, offset: u32, src: &Src, at: SrcId, code: &mut Code) {
        let width = source_width(self.draft.func, src);
        let base = Src::new(SrcKind::Reg(STACK_POINTER));
        let mut push = |size: MemSize, offset: u32, data: Src| {
            let op = Op::Stl { size, offset: offset as i32 };
            code.push(Inst::new(op, &[], &[base, data], at), None);
        };
        match (size_of(width), src.kind) {
            (Some(size), _) => push(size, offset, *src),
            (None, SrcKind::Value(v)) => {
                for part in 0..width {
                    push(MemSize::B32, offset + 4 * u32::from(part), Src::part(v, part));
                }
            }
            (None, _) => {}
        }
        self.draft.func.frame.spill_stores += 4 * u32::from(width);
    }

    /// Loads `width` words into a fresh value.
    fn load(&mut self, offset: u32, width: u8, at: SrcId, code: &mut Code) -> Value {
        let base = Src::new(SrcKind::Reg(STACK_POINTER));
        if let Some(size) = size_of(width) {
            let value = self.temporary(File::R, width);
            let op = Op::Ldl { size, offset: offset as i32 };
            code.push(Inst::new(op, &[Dst::Value(value)], &[base], at), None);
            self.draft.func.frame.spill_loads += 4 * u32::from(width);
            return value;
        }
        let mut parts: Vec<Src> = Vec::new();
        let mut part = 0;
        while part < width {
            let step = if width - part >= 4 { 4 } else { 1 };
            parts.push(self.load(offset + 4 * u32::from(part), step, at, code).into());
            part += step;
        }
        let value = self.temporary(File::R, width);
        code.push(Inst::new(Op::Pack, &[Dst::Value(value)], &parts, at), None);
        value
    }

    fn phis(&mut self, cfg: &Cfg) {
        for from in cfg.order.iter().copied() {
            let mut successors: Vec<BlockId> = Vec::new();
            for_each_successor(self.draft.func, from, |to| successors.push(to));
            for to in successors {
                self.edge(cfg, from, to);
            }
        }
        for &b in &cfg.order {
            let mut phis = std::mem::take(&mut self.draft.func.block_mut(b).phis);
            phis.retain_mut(|phi| match self.home(phi.dst) {
                Some(Home::Frame(_)) => false,
                Some(Home::Shadow(shadow)) => {
                    phi.dst = shadow;
                    true
                }
                Some(Home::Constant(_)) | None => true,
            });
            self.draft.func.block_mut(b).phis = phis;
        }
    }

    /// Arguments that are spilled are loaded at the end of the predecessor; what goes to the frame is stored on
    /// the edge.
    fn edge(&mut self, cfg: &Cfg, from: BlockId, to: BlockId) {
        let at = self.draft.func.block(from).term_src;
        let mut phis: Vec<Phi> = std::mem::take(&mut self.draft.func.block_mut(to).phis);
        let mut end = Code::default();
        let mut edge = EdgeCode::default();
        let mut loaded = Vec::new();
        for phi in &mut phis {
            let width = self.draft.func.value(phi.dst).width;
            let home = self.home(phi.dst);
            for (_, arg) in phi.args.iter_mut().filter(|(pred, _)| *pred == from) {
                match home {
                    Some(Home::Frame(offset)) => self.store_in_frame(offset, width, arg, at, &mut edge),
                    Some(Home::Shadow(_)) => self.shadow_source(arg, width, at, &mut end),
                    Some(Home::Constant(_)) | None => self.pseudo_source(arg, at, &mut end, &mut loaded),
                }
            }
        }
        self.draft.func.block_mut(to).phis = phis;
        let append = |draft: &mut Draft<'_>, b: BlockId, code: Code| {
            draft.func.block_mut(b).insts.extend(code.insts);
            draft.origin[b.index()].extend(code.origin);
        };
        append(self.draft, from, end);
        edge.loads.append(edge.stores);
        let code = edge.loads;
        if code.insts.is_empty() {
            return;
        }
        if matches!(self.draft.func.block(from).term, Term::Jump(_)) {
            append(self.draft, from, code);
        } else if cfg.preds(to).len() == 1 {
            self.draft.func.block_mut(to).insts.splice(0..0, code.insts);
            self.draft.origin[to.index()].splice(0..0, code.origin);
        } else {
            let middle = self.draft.split_edge(from, to);
            append(self.draft, middle, code);
        }
    }

    /// An argument of a phi that is now of the general file.
    fn shadow_source(&mut self, arg: &mut Src, width: u8, at: SrcId, code: &mut Code) {
        if let Some(v) = arg.value()
            && let Some(Home::Shadow(shadow)) = self.home(v)
            && arg.mods == SrcMods::NONE
        {
            arg.kind = match arg.kind {
                SrcKind::Part(_, part) => SrcKind::Part(shadow, part),
                _ => SrcKind::Value(shadow),
            };
            return;
        }
        match arg.kind {
            SrcKind::Value(_) | SrcKind::Part(..) => {
                self.reload(arg, at, code, &mut Vec::new());
                let copy = self.temporary(File::R, width);
                code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[*arg], at), None);
                *arg = copy.into();
            }
            SrcKind::Pred(p) => *arg = Src::imm(u32::from(p != arg.mods.not)),
            _ => {}
        }
    }
}

/// The access that moves a whole value.
fn size_of(width: u8) -> Option<MemSize> {
    match width {
        1 => Some(MemSize::B32),
        2 => Some(MemSize::B64),
        4 => Some(MemSize::B128),
        _ => None,
    }
}

/// One word of a constant.
fn constant_part(mut constant: Src, part: u8) -> Src {
    match &mut constant.kind {
        SrcKind::Const(c) => c.offset += 4 * u16::from(part),
        SrcKind::Imm(_) if part > 0 => constant.kind = SrcKind::Zero,
        _ => {}
    }
    constant
}
