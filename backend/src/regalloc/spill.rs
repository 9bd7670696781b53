//! Moves values that got no register to other places: general registers to the frame, predicates and uniform registers
//! to general registers or to the frame. Constants are not stored but loaded again.
//!
//! A spilled value keeps its definition, which is followed by a store. Each reader reads a copy that is loaded right
//! before it. These live ranges are as short as possible, and are marked as such. The function stays in SSA form,
//! because frame words are not values. Values of one bundle share their words, so a phi and its argument in one bundle
//! need no copy in memory.
//!
//! All spills of a function are made at once: if more turn out to be necessary, the allocator starts again from the
//! function without spills. Otherwise copies of copies would accumulate on the edges.

use crate::input::SrcId;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind, SrcMods, Term, Value};
use crate::ori::op::{MemSize, Op};
use crate::ori::signature::size_registers;
use crate::regalloc::STACK_POINTER;
use crate::regalloc::bundle::{Bundle, Bundles, source_width};
use crate::regalloc::draft::{Code, Draft};
use crate::regalloc::live::{Point, Ranges};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The place to which a value is spilled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Spill {
    #[default]
    No,
    /// A general register, for values of other files.
    ToGeneral,
    ToFrame,
}

/// The place of a spilled value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    /// In the frame, at this byte offset from R1; predicates are stored as integers.
    Frame(u32),
    /// In a general register; predicates are stored as integers.
    Shadow(Value),
    /// No place: the value is this constant.
    Constant(Src),
}

/// Spills values; `spills` is per value. Returns the values that were moved to general registers: the new values, from
/// the first one on, represent the values in the list in the same order.
///
/// A loaded value is used for instructions up to `reach` further on in the block. `remakes`: constants are loaded again
/// instead of being stored.
pub(crate) fn spill(
    draft: &mut Draft<'_>,
    cfg: &Cfg,
    bundles: &Bundles,
    spills: &[Spill],
    reach: u32,
    remakes: bool,
) -> Vec<Value> {
    let constants = if remakes { constants(draft.func) } else { vec![None; draft.func.values.len()] };
    let mut homes: Vec<Option<Home>> = vec![None; spills.len()];
    let mut shadows = Vec::new();
    let frame_start = draft.func.frame.local_bytes.next_multiple_of(16);
    let in_frame = |v: Value| {
        let shadowed = spills[v.index()] == Spill::ToGeneral;
        spills[v.index()] != Spill::No && !shadowed && constants[v.index()].is_none()
    };
    let mut frame_words = FrameWords::default();
    let places = frame_words.places(bundles, |bundle| bundle.members.iter().any(|m| in_frame(m.0)));
    for (bundle, place) in bundles.bundles.iter().zip(&places) {
        for &(v, offset) in bundle.members.iter().filter(|(v, _)| spills[v.index()] != Spill::No) {
            homes[v.index()] = Some(match (constants[v.index()], spills[v.index()]) {
                (Some(constant), _) => Home::Constant(constant),
                (None, Spill::ToGeneral) => {
                    shadows.push(v);
                    Home::Shadow(draft.new_value(File::R, draft.func.value(v).width))
                }
                _ => Home::Frame(frame_start + 4 * (place + u32::from(offset))),
            });
        }
    }
    let frame = &mut draft.func.frame;
    if frame_words.count > 0 {
        frame.spill_bytes = frame_start + 4 * frame_words.count - frame.local_bytes;
        frame.uses_stack = true;
    }
    // The remains of spilled values, and all new values, have the shortest possible live ranges.
    for (fixed, home) in draft.fixed.iter_mut().zip(&homes) {
        *fixed |= home.is_some();
    }
    homes.resize(draft.func.values.len(), None);
    let mut spiller = Spiller { draft, homes, reach };
    spiller.blocks();
    spiller.phis(cfg);
    remove_unread_stores(draft);
    shadows
}

/// A store to the frame or a load from the frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FrameAccess {
    /// The byte offset of the word.
    word: u32,
    block: BlockId,
    /// The instruction's index in its block.
    at: u32,
    is_store: bool,
}

/// Removes stores of spilled values that no load reads. There are such stores because values that share their words
/// follow each other, and early readers find the value in a register.
fn remove_unread_stores(draft: &mut Draft<'_>) {
    let func = &*draft.func;
    let cfg = Cfg::new(func);
    let mut accesses = Vec::new();
    for &block in cfg.order.iter() {
        for (at, inst) in (0..).zip(&func.block(block).insts) {
            let (size, offset, is_store) = match inst.op {
                Op::Spill { size, offset } => (size, offset, true),
                Op::Fill { size, offset } => (size, offset, false),
                _ => continue,
            };
            let words = Words { offset: offset as u32, count: size_registers(size) };
            accesses.extend(words.offsets().map(|word| FrameAccess { word, block, at, is_store }));
        }
    }
    accesses.sort_unstable();
    let mut read: FxHashSet<(BlockId, u32)> = FxHashSet::default();
    // The word for which the end of each block was last searched.
    let mut asked = vec![u32::MAX; func.blocks.len()];
    let mut work: Vec<BlockId> = Vec::new();
    for of_word in accesses.chunk_by(|a, b| a.word == b.word) {
        // The last store to the word in a block before an instruction.
        let store_before = |block: BlockId, at: u32| {
            let end = of_word.partition_point(|access| (access.block, access.at) < (block, at));
            let before = of_word[..end].iter().rev().take_while(|access| access.block == block);
            before.into_iter().find(|access| access.is_store).map(|store| (block, store.at))
        };
        for load in of_word.iter().filter(|access| !access.is_store) {
            match store_before(load.block, load.at) {
                Some(store) => _ = read.insert(store),
                None => work.extend(cfg.preds(load.block)),
            }
            while let Some(block) = work.pop() {
                if std::mem::replace(&mut asked[block.index()], load.word) == load.word {
                    continue;
                }
                match store_before(block, u32::MAX) {
                    Some(store) => _ = read.insert(store),
                    None => work.extend(cfg.preds(block)),
                }
            }
        }
    }
    let mut written: Vec<BlockId> = accesses.iter().filter(|a| a.is_store).map(|a| a.block).collect();
    written.sort_unstable();
    written.dedup();
    for block in written {
        let mut code = Code::default();
        for (at, (inst, origin)) in (0..).zip(draft.take(block)) {
            // Other stores of the function are those of parameters, which it reads through pointers.
            if !matches!(inst.op, Op::Spill { .. }) || origin.is_some() || read.contains(&(block, at)) {
                code.push(inst, origin);
            }
        }
        draft.put(block, code);
    }
}

/// The number of bytes that spills store and load, counted per instruction.
pub(crate) fn traffic(draft: &Draft<'_>) -> (u32, u32) {
    let (mut stores, mut loads) = (0, 0);
    for &b in &draft.func.layout {
        let added =
            draft.func.block(b).insts.iter().zip(&draft.origin[b.index()]).filter(|(_, o)| o.is_none());
        for (inst, _) in added {
            match inst.op {
                Op::Spill { size, .. } => stores += 4 * u32::from(size_registers(size)),
                Op::Fill { size, .. } => loads += 4 * u32::from(size_registers(size)),
                _ => {}
            }
        }
    }
    (stores, loads)
}

/// For each value, the constant that it always is, if one move can load it again.
pub(crate) fn constants(func: &Function) -> Vec<Option<Src>> {
    let mut result = vec![None; func.values.len()];
    for &b in &func.layout {
        for inst in &func.block(b).insts {
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

/// The number of words for which live ranges are compared exactly; for more words the time would be the product of
/// bundles and words.
const EXACT_WORDS: usize = 256;

/// The words of the new area of the frame.
#[derive(Default)]
struct FrameWords {
    count: u32,
    /// Where the first words are taken.
    exact: Vec<Ranges>,
}

impl FrameWords {
    /// For each bundle, the index of its first word in the area; any number for bundles that are not selected.
    fn places(&mut self, bundles: &Bundles, is_wanted: impl Fn(&Bundle) -> bool) -> Vec<u32> {
        let mut places = vec![0; bundles.bundles.len()];
        let mut more = Vec::new();
        for (i, bundle) in bundles.bundles.iter().enumerate().filter(|(_, bundle)| is_wanted(bundle)) {
            match self.lowest(bundle) {
                Some(base) => places[i] = base,
                None => more.push((bundle.start(), i)),
            }
        }
        self.recycle(bundles, more, &mut places);
        places
    }

    /// The lowest run among the first words that is free for the bundle.
    fn lowest(&mut self, bundle: &Bundle) -> Option<u32> {
        let free = |base: usize, words: &[Ranges]| {
            let slots = bundle.slots.iter().enumerate();
            slots
                .map(|(i, s)| (words.get(base + i), s))
                .all(|(word, s)| word.is_none_or(|w| !w.intersects(s)))
        };
        let mut bases = (usize::from(bundle.residue)..EXACT_WORDS).step_by(usize::from(bundle.align));
        let base = bases.find(|&base| base + bundle.slots.len() <= EXACT_WORDS && free(base, &self.exact))?;
        self.exact.resize(self.exact.len().max(base + bundle.slots.len()), Ranges::default());
        for (word, slot) in self.exact[base..].iter_mut().zip(&bundle.slots) {
            word.absorb(slot);
        }
        self.count = self.exact.len() as u32;
        Some(base as u32)
    }

    /// Assigns bundles, given with their start points, words that others of the same shape used before, or new words.
    fn recycle(&mut self, bundles: &Bundles, mut more: Vec<(Point, usize)>, places: &mut [u32]) {
        more.sort_unstable();
        // For each shape, the points at which words become free again.
        let mut used: FxHashMap<_, BinaryHeap<Reverse<(Point, u32)>>> = FxHashMap::default();
        for (start, i) in more {
            let bundle = &bundles.bundles[i];
            let of_shape = used.entry((bundle.align, bundle.residue, bundle.width())).or_default();
            let free = of_shape.peek().is_some_and(|Reverse((end, _))| *end <= start);
            let base = match if free { of_shape.pop() } else { None } {
                Some(Reverse((_, base))) => base,
                None => {
                    let aligned = self.count.next_multiple_of(u32::from(bundle.align));
                    self.count = aligned + u32::from(bundle.residue) + bundle.width() as u32;
                    aligned + u32::from(bundle.residue)
                }
            };
            of_shape.push(Reverse((bundle.end(), base)));
            places[i] = base;
        }
    }
}

struct Spiller<'a, 'f> {
    draft: &'a mut Draft<'f>,
    /// Per value.
    homes: Vec<Option<Home>>,
    reach: u32,
}

/// Copies of spilled values in registers: the operand, the value in a register, and the instruction that last used it.
#[derive(Default)]
struct Loaded {
    copies: Vec<(SrcKind, Value, u32)>,
    /// The index of the next instruction.
    place: u32,
}

impl Loaded {
    /// The copy that replaces an operand.
    fn find(&mut self, kind: SrcKind) -> Option<SrcKind> {
        let place = self.place;
        self.copies.iter_mut().find_map(|(of, copy, used)| {
            let found = match (kind, *of) {
                (kind, of) if kind == of => SrcKind::Value(*copy),
                (SrcKind::Part(v, part), SrcKind::Value(of)) if v == of => SrcKind::Part(*copy, part),
                _ => return None,
            };
            *used = place;
            Some(found)
        })
    }

    fn add(&mut self, kind: SrcKind, copy: Value) {
        self.copies.push((kind, copy, self.place));
    }

    /// Advances to the next instruction. Drops copies that were last used more than `reach` instructions ago.
    fn advance(&mut self, reach: u32) {
        self.place += 1;
        let place = self.place;
        self.copies.retain(|(_, _, used)| place - used <= reach);
    }
}

/// A run of words in the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Words {
    /// The offset from R1.
    offset: u32,
    count: u8,
}

impl Words {
    fn offsets(self) -> impl Iterator<Item = u32> {
        (self.offset..).step_by(4).take(usize::from(self.count))
    }
}

/// One of several copies that happen together on an edge or for a pack: all sources are read before any destination is
/// written.
#[derive(Clone, Copy, Debug)]
struct FrameCopy {
    from: CopySource,
    to: CopyTarget,
}

#[derive(Clone, Copy, Debug)]
enum CopySource {
    Frame(Words),
    /// A constant, or an operand in a register.
    Operand(Src),
}

#[derive(Clone, Copy, Debug)]
enum CopyTarget {
    Frame(Words),
    /// A value that has not been defined yet.
    Value(Value),
}

impl FrameCopy {
    fn reads(&self) -> Option<Words> {
        match self.from {
            CopySource::Frame(words) => Some(words),
            CopySource::Operand(_) => None,
        }
    }

    fn writes(&self) -> Option<Words> {
        match self.to {
            CopyTarget::Frame(words) => Some(words),
            CopyTarget::Value(_) => None,
        }
    }
}

/// Copies that have not been emitted.
struct PendingCopies {
    copies: Vec<FrameCopy>,
    done: Vec<bool>,
    /// For each word, by its offset: the number of copies that read it, and the copies that write it.
    readers: FxHashMap<u32, u32>,
    writers: FxHashMap<u32, Vec<usize>>,
    /// Copies that do not overwrite the source of another copy; an entry may be repeated.
    free: BinaryHeap<Reverse<usize>>,
    /// No copy before this one loads from the frame.
    loads_from: usize,
    reads_from: usize,
}

enum NextCopy {
    Store(FrameCopy),
    Load(FrameCopy),
    /// Every copy overwrites the source of another one: this one must be loaded first.
    Cycle(usize, Words),
}

impl PendingCopies {
    fn new(copies: Vec<FrameCopy>) -> PendingCopies {
        let mut pending = PendingCopies {
            done: vec![false; copies.len()],
            copies: Vec::new(),
            readers: FxHashMap::default(),
            writers: FxHashMap::default(),
            free: BinaryHeap::new(),
            loads_from: 0,
            reads_from: 0,
        };
        for (i, copy) in copies.iter().enumerate() {
            for word in copy.reads().into_iter().flat_map(Words::offsets) {
                *pending.readers.entry(word).or_default() += 1;
            }
            for word in copy.writes().into_iter().flat_map(Words::offsets) {
                pending.writers.entry(word).or_default().push(i);
            }
        }
        pending.copies = copies;
        (0..pending.copies.len()).for_each(|i| pending.offer(i));
        pending
    }

    /// Adds a copy that does not overwrite the source of another copy.
    fn offer(&mut self, i: usize) {
        let Some(writes) = self.copies[i].writes() else { return };
        let own = self.copies[i].reads();
        let is_free = writes.offsets().all(|word| {
            let by_itself = own.is_some_and(|own| own.offsets().any(|o| o == word));
            self.readers.get(&word).copied().unwrap_or(0) == u32::from(by_itself)
        });
        if is_free && !self.done[i] {
            self.free.push(Reverse(i));
        }
    }

    /// Records that the copy no longer reads the frame.
    fn has_read(&mut self, i: usize) {
        for word in self.copies[i].reads().into_iter().flat_map(Words::offsets) {
            if let Some(readers) = self.readers.get_mut(&word) {
                *readers -= 1;
            }
        }
    }

    /// Adds the copies that overwrite these words.
    fn offer_writers(&mut self, words: Option<Words>) {
        for word in words.into_iter().flat_map(Words::offsets) {
            for i in self.writers.get(&word).cloned().unwrap_or_default() {
                self.offer(i);
            }
        }
    }

    fn set_source(&mut self, i: usize, src: Src) {
        self.has_read(i);
        let words = self.copies[i].reads();
        self.copies[i].from = CopySource::Operand(src);
        self.offer_writers(words);
    }

    fn take(&mut self, i: usize) -> FrameCopy {
        self.done[i] = true;
        self.has_read(i);
        self.offer_writers(self.copies[i].reads());
        self.copies[i]
    }

    /// The next copy: the first one that is ready.
    fn next(&mut self) -> Option<NextCopy> {
        while let Some(Reverse(i)) = self.free.pop() {
            if !self.done[i] {
                return Some(NextCopy::Store(self.take(i)));
            }
        }
        let is_load = |i: &usize| !self.done[*i] && self.copies[*i].writes().is_none();
        let count = self.copies.len();
        self.loads_from = (self.loads_from..count).find(is_load).unwrap_or(count);
        if self.loads_from < count {
            return Some(NextCopy::Load(self.take(self.loads_from)));
        }
        let reads = |i: &usize| !self.done[*i] && self.copies[*i].reads().is_some();
        self.reads_from = (self.reads_from..count).find(reads).unwrap_or(count);
        let words = self.copies.get(self.reads_from)?.reads()?;
        Some(NextCopy::Cycle(self.reads_from, words))
    }
}

impl Spiller<'_, '_> {
    fn home(&self, v: Value) -> Option<Home> {
        self.homes.get(v.index()).copied().flatten()
    }

    /// The words of the frame that hold an operand.
    fn words(&self, src: &Src) -> Option<Words> {
        let v = src.value()?;
        let Some(Home::Frame(offset)) = self.home(v) else { return None };
        Some(match src.kind {
            SrcKind::Part(_, part) => Words { offset: offset + 4 * u32::from(part), count: 1 },
            _ => Words { offset, count: self.draft.func.value(v).width },
        })
    }

    /// A new value with the shortest possible live range.
    fn temporary(&mut self, file: File, width: u8) -> Value {
        let value = self.draft.new_value(file, width);
        self.draft.fixed[value.index()] = true;
        value
    }

    fn blocks(&mut self) {
        for b in self.draft.func.layout.clone() {
            let mut code = Code::default();
            let mut loaded = Loaded::default();
            for (inst, origin) in self.draft.take(b) {
                self.inst(inst, origin, &mut code, &mut loaded);
                loaded.advance(self.reach);
            }
            let mut term = self.draft.func.block(b).term.clone();
            if let Some(src) = term.operand_mut() {
                let at = self.draft.func.block(b).term_src;
                self.reload(src, at, &mut code, &mut loaded);
            }
            self.draft.func.block_mut(b).term = term;
            self.draft.put(b, code);
        }
    }

    fn inst(&mut self, mut inst: Inst, origin: Option<u32>, code: &mut Code, loaded: &mut Loaded) {
        let at = inst.src;
        if matches!(inst.op, Op::Pack | Op::Copy) {
            return self.pseudo(inst, code, loaded);
        }
        if inst.defs().any(|v| matches!(self.home(v), Some(Home::Constant(_)))) {
            return;
        }
        for src in inst.uses_mut() {
            self.reload(src, at, code, loaded);
        }
        let defs: Vec<Value> = inst.defs().collect();
        code.push(inst, origin);
        for v in defs {
            self.save(v, at, code);
            if self.home(v).is_some() {
                loaded.add(SrcKind::Value(v), v);
            }
        }
    }

    /// Stores a spilled value after its definition.
    fn save(&mut self, v: Value, at: SrcId, code: &mut Code) {
        match self.home(v) {
            Some(Home::Frame(offset)) => self.store(offset, v.into(), at, code),
            Some(Home::Shadow(shadow)) => {
                code.push(Inst::new(Op::Copy, &[Dst::Value(shadow)], &[v.into()], at), None);
            }
            Some(Home::Constant(_)) | None => {}
        }
    }

    /// Replaces an operand by a copy in a register.
    fn reload(&mut self, src: &mut Src, at: SrcId, code: &mut Code, loaded: &mut Loaded) {
        let Some(v) = src.value() else { return };
        let Some(home) = self.home(v) else { return };
        if let Some(kind) = loaded.find(src.kind) {
            src.kind = kind;
            return;
        }
        let data = self.draft.func.value(v);
        let (part, width) = match src.kind {
            SrcKind::Part(_, part) => (part, 1),
            _ => (0, data.width),
        };
        let copy = self.temporary(data.file, width);
        let from = match home {
            Home::Frame(offset) => {
                self.load(Words { offset: offset + 4 * u32::from(part), count: width }, copy, at, code);
                None
            }
            Home::Shadow(shadow) if width < data.width => Some(Src::part(shadow, part)),
            Home::Shadow(shadow) => Some(shadow.into()),
            Home::Constant(constant) => Some(constant_part(constant, part)),
        };
        if let Some(from) = from {
            code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[from], at), None);
        }
        loaded.add(src.kind, copy);
        src.kind = SrcKind::Value(copy);
    }

    /// Stores the sources of a pack or copy one by one, if its destination is in the frame.
    fn pseudo(&mut self, mut inst: Inst, code: &mut Code, loaded: &mut Loaded) {
        let (at, Some(dst)) = (inst.src, inst.defs().next()) else { return };
        match self.home(dst) {
            Some(Home::Constant(_)) => {}
            Some(Home::Frame(offset)) => {
                let mut copies = Vec::new();
                let mut part = 0;
                for src in &inst.srcs {
                    let count = match src.kind {
                        SrcKind::Value(_) | SrcKind::Part(..) => source_width(self.draft.func, src),
                        _ if inst.srcs.len() == 1 => self.draft.func.value(dst).width,
                        _ => 1,
                    };
                    let to = Words { offset: offset + 4 * u32::from(part), count };
                    self.copy_to_frame(to, src, at, code, &mut copies);
                    part += count;
                }
                self.copy_together(copies, at, code);
            }
            home => {
                let into = self.draft.func.value(dst).file;
                for src in &mut inst.srcs {
                    if !self.constant_source(src, into) {
                        self.reload(src, at, code, loaded);
                    }
                }
                code.push(inst, None);
                if home.is_some() {
                    self.save(dst, at, code);
                }
            }
        }
    }

    /// Replaces a source by the constant that it always is. Returns false if it is not a constant, or has several
    /// words. Only certain load instructions can access constants that were loaded into uniform registers.
    fn constant_source(&self, src: &mut Src, into: File) -> bool {
        let Some(v) = src.value() else { return false };
        let Some(Home::Constant(constant)) = self.home(v) else { return false };
        let uniform = self.draft.func.value(v).file == File::UR;
        if uniform && into != File::UR && matches!(constant.kind, SrcKind::Const(_)) {
            return false;
        }
        let part = if let SrcKind::Part(_, part) = src.kind { part } else { 0 };
        let is_word = self.draft.func.value(v).width == 1 || matches!(src.kind, SrcKind::Part(..));
        if is_word {
            *src = constant_part(constant, part);
        }
        is_word
    }

    /// Copies `src` to the frame unless it is already there; `code` comes before the copies.
    fn copy_to_frame(
        &mut self,
        to: Words,
        src: &Src,
        at: SrcId,
        code: &mut Code,
        copies: &mut Vec<FrameCopy>,
    ) {
        if src.kind == SrcKind::Undef {
            return;
        }
        let from = match self.words(src) {
            Some(words) if src.mods == SrcMods::NONE => {
                if words.offset == to.offset {
                    return;
                }
                CopySource::Frame(words)
            }
            // The frame does not contain a predicate's complement.
            Some(_) => {
                let mut src = *src;
                self.reload(&mut src, at, code, &mut Loaded::default());
                CopySource::Operand(src)
            }
            None => CopySource::Operand(*src),
        };
        copies.push(FrameCopy { from, to: CopyTarget::Frame(to) });
    }

    /// Emits copies, using as few values at the same time as their order allows.
    fn copy_together(&mut self, copies: Vec<FrameCopy>, at: SrcId, code: &mut Code) {
        let mut pending = PendingCopies::new(copies);
        // Copies into registers, whose results stay live, come after copies that do not overwrite other sources.
        while let Some(next) = pending.next() {
            match next {
                NextCopy::Store(FrameCopy { from, to }) => {
                    let src = match from {
                        CopySource::Frame(words) => self.loaded(words, at, code),
                        CopySource::Operand(src) => src,
                    };
                    if let CopyTarget::Frame(to) = to {
                        self.store_operand(to, src, at, code);
                    }
                }
                NextCopy::Load(FrameCopy { from, to }) => {
                    if let (CopySource::Frame(words), CopyTarget::Value(value)) = (from, to) {
                        self.load(words, value, at, code);
                    }
                }
                // One run of words that would be overwritten is moved to a register.
                NextCopy::Cycle(i, words) => {
                    let value = self.loaded(words, at, code);
                    pending.set_source(i, value);
                }
            }
        }
    }

    /// Loads words of the frame into a new value.
    fn loaded(&mut self, words: Words, at: SrcId, code: &mut Code) -> Src {
        let value = self.temporary(File::R, words.count);
        self.load(words, value, at, code);
        value.into()
    }

    /// Stores an operand of any kind.
    fn store_operand(&mut self, to: Words, mut src: Src, at: SrcId, code: &mut Code) {
        self.reload(&mut src, at, code, &mut Loaded::default());
        if src.value().is_none_or(|v| self.draft.func.value(v).file != File::R) {
            let copy = self.temporary(File::R, to.count);
            code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[src], at), None);
            src = copy.into();
        }
        self.store(to.offset, src, at, code);
    }

    /// Stores a value or a part of one.
    fn store(&mut self, offset: u32, mut src: Src, at: SrcId, code: &mut Code) {
        let width = source_width(self.draft.func, &src);
        if let SrcKind::Value(v) = src.kind
            && self.draft.func.value(v).file != File::R
        {
            let copy = self.temporary(File::R, width);
            code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[src], at), None);
            src = copy.into();
        }
        let base = Src::new(SrcKind::Reg(STACK_POINTER));
        let mut push = |size: MemSize, offset: u32, data: Src| {
            let op = Op::Spill { size, offset: offset as i32 };
            code.push(Inst::new(op, &[], &[base, data], at), None);
        };
        match (size_of(self.draft.func, width), src.kind) {
            (Some(size), _) => push(size, offset, src),
            (None, SrcKind::Value(v)) => {
                for part in 0..width {
                    push(MemSize::B32, offset + 4 * u32::from(part), Src::part(v, part));
                }
            }
            (None, _) => {}
        }
    }

    /// Defines a value by loading words of the frame.
    fn load(&mut self, words: Words, into: Value, at: SrcId, code: &mut Code) {
        let base = Src::new(SrcKind::Reg(STACK_POINTER));
        let Words { offset, count } = words;
        if self.draft.func.value(into).file != File::R {
            let copy = self.loaded(words, at, code);
            code.push(Inst::new(Op::Copy, &[Dst::Value(into)], &[copy], at), None);
        } else if let Some(size) = size_of(self.draft.func, count) {
            let op = Op::Fill { size, offset: offset as i32 };
            code.push(Inst::new(op, &[Dst::Value(into)], &[base], at), None);
        } else {
            let mut parts: Vec<Src> = Vec::new();
            let mut part = 0;
            while part < count {
                let offset = offset + 4 * u32::from(part);
                let fits = |words: &u8| {
                    *words <= count - part
                        && offset.is_multiple_of(4 * u32::from(*words))
                        && size_of(self.draft.func, *words).is_some()
                };
                let count = [4, 2].into_iter().find(fits).unwrap_or(1);
                parts.push(self.loaded(Words { offset, count }, at, code));
                part += count;
            }
            code.push(Inst::new(Op::Pack, &[Dst::Value(into)], &parts, at), None);
        }
    }

    fn phis(&mut self, cfg: &Cfg) {
        // The index of each phi's argument for another block.
        let mut places: FxHashMap<(BlockId, BlockId), Vec<usize>> = FxHashMap::default();
        for &to in &cfg.order {
            for phi in &self.draft.func.block(to).phis {
                for (i, &(from, _)) in phi.args.iter().enumerate() {
                    places.entry((from, to)).or_default().push(i);
                }
            }
        }
        for from in cfg.order.iter().copied() {
            let mut successors: Vec<BlockId> = Vec::new();
            for_each_successor(self.draft.func, from, |to| successors.push(to));
            for to in successors {
                if let Some(places) = places.get(&(from, to)) {
                    self.edge(cfg, from, to, places);
                }
            }
        }
        self.draft.place_edges();
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

    /// Loads spilled arguments, and stores values that go to the frame, on the edge. `places` gives the index of the
    /// argument of each phi.
    fn edge(&mut self, cfg: &Cfg, from: BlockId, to: BlockId, places: &[usize]) {
        let at = self.draft.func.block(from).term_src;
        let mut phis: Vec<Phi> = std::mem::take(&mut self.draft.func.block_mut(to).phis);
        let mut copies = Vec::new();
        let mut code = Code::default();
        let mut loaded = Loaded::default();
        for (phi, &place) in phis.iter_mut().zip(places) {
            let width = self.draft.func.value(phi.dst).width;
            let home = self.home(phi.dst);
            let arg = &mut phi.args[place].1;
            if let Some(Home::Frame(offset)) = home {
                let to = Words { offset, count: width };
                self.copy_to_frame(to, arg, at, &mut code, &mut copies);
                continue;
            }
            let shadowed = matches!(home, Some(Home::Shadow(_)));
            let into = if shadowed { File::R } else { self.draft.func.value(phi.dst).file };
            if self.constant_source(arg, into) {
                continue;
            }
            if shadowed {
                self.shadow_source(arg, width, at, &mut code);
                continue;
            }
            match self.words(arg) {
                Some(words) => {
                    arg.kind = loaded.find(arg.kind).unwrap_or_else(|| {
                        let file = arg.value().map_or(File::R, |v| self.draft.func.value(v).file);
                        let value = self.temporary(file, words.count);
                        loaded.add(arg.kind, value);
                        let from = CopySource::Frame(words);
                        copies.push(FrameCopy { from, to: CopyTarget::Value(value) });
                        SrcKind::Value(value)
                    });
                }
                None => self.reload(arg, at, &mut code, &mut loaded),
            }
        }
        let all_in_frame = phis.iter().all(|phi| matches!(self.home(phi.dst), Some(Home::Frame(_))));
        self.draft.func.block_mut(to).phis = phis;
        self.copy_together(copies, at, &mut code);
        if code.insts.is_empty() {
            return;
        }
        let jumps = matches!(self.draft.func.block(from).term, Term::Jump(_));
        if !jumps && cfg.preds(to).len() == 1 && all_in_frame {
            self.draft.func.block_mut(to).insts.splice(0..0, code.insts);
            self.draft.origin[to.index()].splice(0..0, code.origin);
            return;
        }
        let b = if jumps { from } else { self.draft.split_edge(from, to) };
        for (phi, &place) in self.draft.func.block_mut(to).phis.iter_mut().zip(places) {
            phi.args[place].0 = b;
        }
        self.draft.func.block_mut(b).insts.extend(code.insts);
        self.draft.origin[b.index()].extend(code.origin);
    }

    /// An argument of a phi that is now in the general file.
    fn shadow_source(&mut self, arg: &mut Src, width: u8, at: SrcId, code: &mut Code) {
        if let Some(v) = arg.value()
            && arg.mods == SrcMods::NONE
        {
            match self.home(v) {
                Some(Home::Shadow(shadow)) => {
                    arg.kind = match arg.kind {
                        SrcKind::Part(_, part) => SrcKind::Part(shadow, part),
                        _ => SrcKind::Value(shadow),
                    };
                    return;
                }
                Some(Home::Frame(_)) => {
                    if let Some(words) = self.words(arg) {
                        *arg = self.loaded(words, at, code);
                        return;
                    }
                }
                _ => {}
            }
        }
        if arg.value().is_some() {
            self.reload(arg, at, code, &mut Loaded::default());
            let copy = self.temporary(File::R, width);
            code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[*arg], at), None);
            *arg = copy.into();
        }
    }
}

/// The size of the access that moves a whole value. In a function that others call, the stack may be aligned to less
/// than four words.
fn size_of(func: &Function, width: u8) -> Option<MemSize> {
    match width {
        4 if func.frame.entry_align < 16 => None,
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
