//! Replaces loads of bytes whose contents are known.

use super::flow;
use super::places::{Action, FollowedAccess, FollowedWord, PHIS, Places, Set, Step, data, is_signed};
use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind};
use crate::ori::op::Op;
use crate::phase::edit::{Replacements, part_of};
use smallvec::SmallVec;

/// The number of instructions of a block after which the content of memory outside the frame is loaded again: a value
/// that stays in a register for so long is likely to be spilled, which costs more than the load.
const FAR: u32 = 256;

/// A byte of a register, or of known bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Byte {
    of: Src,
    at: u8,
}

/// The known bytes of a word.
type Content = [Option<Byte>; 4];

fn whole(of: Src) -> [Byte; 4] {
    [0, 1, 2, 3].map(|at| Byte { of, at })
}

pub(super) fn forward(func: &mut Function, cfg: &Cfg, places: &Places) -> Result<(), CodegenError> {
    let kept = flow::kept(func, cfg, places);
    let mut walk = Walk {
        places,
        content: vec![[None; 4]; places.count],
        known: Set::empty(places.count),
        since: vec![0; places.count],
        at: 0,
        replaced: Replacements::new(func),
        ends: vec![Vec::new(); func.blocks.len()],
    };
    let mut joins: Vec<(BlockId, usize, FollowedWord)> = Vec::new();
    for (i, &b) in cfg.order.iter().enumerate() {
        walk.known = Set::empty(places.count);
        let preds = cfg.preds(b);
        for place in kept[b.index()].iter() {
            let src = match preds {
                _ if i == 0 => Some(Src::ZERO),
                [from] => walk.at_end(*from, place),
                _ => {
                    let dst = func.new_value(File::R, 1);
                    joins.push((b, func.block(b).phis.len(), place));
                    func.block_mut(b).phis.push(Phi { dst, args: Vec::new() });
                    Some(dst.into())
                }
            };
            walk.set(place, src.ok_or_else(lost)?);
        }
        let mut later = Set::empty(places.count);
        for_each_successor(func, b, |to| later.add_all(&kept[to.index()]));
        walk.block(func, b, &later);
    }
    for (b, phi, place) in joins {
        let args: Option<Vec<_>> =
            cfg.preds(b).iter().map(|from| Some((*from, walk.at_end(*from, place)?))).collect();
        func.block_mut(b).phis[phi].args = args.ok_or_else(lost)?;
    }
    walk.replaced.apply(func, cfg);
    Ok(())
}

fn lost() -> CodegenError {
    CodegenError::internal(
        SrcId::default(),
        "OriForwardMemory",
        "a word that is known at a join has no value",
    )
}

struct Walk<'a> {
    places: &'a Places,
    /// The content of each place; only valid for the places in `known`.
    content: Vec<Content>,
    /// The places with at least one known byte.
    known: Set,
    /// The instruction of the block at which the content of each place became known.
    since: Vec<u32>,
    /// The current instruction.
    at: u32,
    replaced: Replacements,
    /// For each block, the words that later blocks read, by place.
    ends: Vec<Vec<(FollowedWord, Src)>>,
}

impl Walk<'_> {
    fn at_end(&self, b: BlockId, place: FollowedWord) -> Option<Src> {
        let end = &self.ends[b.index()];
        end.binary_search_by_key(&place, |(place, _)| *place).ok().map(|at| end[at].1)
    }

    fn set(&mut self, place: FollowedWord, src: Src) {
        self.know(place, whole(src).map(Some));
    }

    fn know(&mut self, place: FollowedWord, content: Content) {
        self.content[place as usize] = content;
        self.known.add(place);
        self.since[place as usize] = self.at;
    }

    fn content(&self, place: FollowedWord) -> Content {
        if self.known.has(place) { self.content[place as usize] } else { [None; 4] }
    }

    fn block(&mut self, func: &mut Function, b: BlockId, later: &Set) {
        self.since.fill(0);
        let steps = self.places.steps(b);
        let phis = steps.partition_point(|step| step.at == PHIS);
        for step in &steps[..phis] {
            self.places.forget(step, &mut self.known);
        }
        let mut steps = steps[phis..].iter().peekable();
        let insts = std::mem::take(&mut func.block_mut(b).insts);
        let mut out = Vec::with_capacity(insts.len());
        for (inst, at) in insts.into_iter().zip(0..) {
            let mut inst = Some(inst);
            self.at = at;
            while let Some(step) = steps.next_if(|step| step.at == at) {
                self.step(func, step, &mut inst, &mut out);
            }
            out.extend(inst);
        }
        let at = func.block(b).term_src;
        for place in later.iter() {
            let bytes: Option<SmallVec<[Byte; 4]>> = self.content(place).into_iter().collect();
            if let Some(bytes) = bytes {
                let src = compose(func, &bytes, at, &mut out);
                self.ends[b.index()].push((place, src));
            }
        }
        func.block_mut(b).insts = out;
    }

    fn step(&mut self, func: &mut Function, step: &Step, inst: &mut Option<Inst>, out: &mut Vec<Inst>) {
        self.places.forget(step, &mut self.known);
        let Some(own) = inst else { return };
        let is_known = match &step.action {
            Action::Load(access) => !access.guarded && self.load(func, access, own, out),
            Action::Store(access) => {
                self.store(func, access, own, out);
                false
            }
            _ => false,
        };
        if is_known {
            *inst = None;
        }
    }

    /// Whether the result of the load is available without it.
    fn load(
        &mut self,
        func: &mut Function,
        access: &FollowedAccess,
        inst: &Inst,
        out: &mut Vec<Inst>,
    ) -> bool {
        let Some(&dst) = inst.dsts.first() else { return false };
        let Dst::Value(dst) = dst else { return false };
        if !access.is_local() {
            let is_far = |place: &FollowedWord| self.at - self.since[*place as usize] > FAR;
            access.words.iter().filter(|place| is_far(place)).for_each(|place| self.known.remove(*place));
        }
        let range = usize::from(access.byte)..usize::from(access.byte) + usize::from(access.bytes.min(4));
        let bytes: Option<SmallVec<[Byte; 16]>> =
            access.words.iter().flat_map(|place| self.content(*place)[range.clone()].to_vec()).collect();
        let Some(bytes) = bytes else {
            for (place, i) in access.words.iter().zip(0..) {
                let of = if access.words.len() == 1 { dst.into() } else { Src::part(dst, i) };
                let mut content = self.content(*place);
                for (byte, at) in content[range.clone()].iter_mut().zip(0..) {
                    *byte = Some(Byte { of, at });
                }
                self.know(*place, content);
            }
            return false;
        };
        if !access.is_whole() {
            let src = extend(func, &bytes, is_signed(inst), inst.src, out);
            self.replaced.insert(dst, src);
            return true;
        }
        let words: SmallVec<[Src; 4]> =
            bytes.chunks_exact(4).map(|bytes| compose(func, bytes, inst.src, out)).collect();
        match words[..] {
            [src] => self.replaced.insert(dst, src),
            _ => out.push(Inst::new(Op::Pack, &[Dst::Value(dst)], &words, inst.src)),
        }
        true
    }

    fn store(&mut self, func: &mut Function, access: &FollowedAccess, inst: &Inst, out: &mut Vec<Inst>) {
        let Some(data) = data(inst) else { return };
        for (&place, i) in access.words.iter().zip(0..) {
            let of = if access.words.len() == 1 { data } else { Src::new(part_of(data.kind, i)) };
            let content = self.content(place);
            let old: Option<SmallVec<[Byte; 4]>> = content.into_iter().collect();
            match (access.guarded, access.is_whole(), old) {
                (false, true, _) => self.set(place, of),
                (false, false, _) => {
                    let start = usize::from(access.byte);
                    let mut content = content;
                    for (byte, at) in content[start..start + usize::from(access.bytes)].iter_mut().zip(0..) {
                        *byte = Some(Byte { of, at });
                    }
                    self.know(place, content);
                }
                (true, true, Some(old)) => {
                    let old = compose(func, &old, inst.src, out);
                    let dst = func.new_value(File::R, 1);
                    out.push(Inst::new(Op::Sel, &[Dst::Value(dst)], &[of, old, inst.guard], inst.src));
                    self.set(place, dst.into());
                }
                (true, ..) => self.known.remove(place),
            }
        }
    }
}

/// Builds a word from four bytes.
fn compose(func: &mut Function, bytes: &[Byte], at: SrcId, out: &mut Vec<Inst>) -> Src {
    let is_zero = |byte: &Byte| byte.of.kind == SrcKind::Zero;
    let first = bytes.iter().find(|byte| !is_zero(byte)).map_or(Src::ZERO, |byte| byte.of);
    if first == Src::ZERO || bytes == whole(first) {
        return first;
    }
    let mut others: SmallVec<[Src; 4]> = SmallVec::new();
    for byte in bytes {
        let of = if is_zero(byte) { Src::ZERO } else { byte.of };
        if of != first && !others.contains(&of) {
            others.push(of);
        }
    }
    if others.is_empty() {
        others.push(Src::ZERO);
    }
    let mut word = first;
    for (i, other) in others.iter().enumerate() {
        let mut selector = 0;
        for (byte, to) in bytes.iter().zip(0u32..) {
            let of = if is_zero(byte) { Src::ZERO } else { byte.of };
            let nibble = match others.iter().position(|other| *other == of) {
                Some(k) if k == i => 4 + u32::from(byte.at),
                // Bytes that are already in position, or are inserted later.
                _ if i > 0 || of != first => to,
                _ => u32::from(byte.at),
            };
            selector |= nibble << (4 * to);
        }
        word = permute(func, [word, Src::imm(selector), *other], at, out);
    }
    word
}

/// The result of a load of less than a word.
fn extend(func: &mut Function, bytes: &[Byte], signed: bool, at: SrcId, out: &mut Vec<Inst>) -> Src {
    let (Some(&low), Some(&high)) = (bytes.first(), bytes.last()) else { return Src::ZERO };
    let zero = Byte { of: Src::ZERO, at: 0 };
    if !signed || low.of != high.of {
        let mut all = [zero; 4];
        all[..bytes.len()].copy_from_slice(bytes);
        let word = compose(func, &all, at, out);
        if !signed {
            return word;
        }
        let own: SmallVec<[Byte; 4]> = whole(word)[..bytes.len()].iter().copied().collect();
        return extend(func, &own, true, at, out);
    }
    if low.of.kind == SrcKind::Zero {
        return Src::ZERO;
    }
    let sign = 8 | u32::from(high.at);
    let rest = if bytes.len() == 1 { sign << 4 } else { u32::from(high.at) << 4 };
    let selector = u32::from(low.at) | rest | sign << 8 | sign << 12;
    permute(func, [low.of, Src::imm(selector), Src::ZERO], at, out)
}

fn permute(func: &mut Function, srcs: [Src; 3], at: SrcId, out: &mut Vec<Inst>) -> Src {
    let dst = func.new_value(File::R, 1);
    out.push(Inst::new(Op::Prmt, &[Dst::Value(dst)], &srcs, at));
    dst.into()
}
