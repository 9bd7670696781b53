//! The words of memory that accesses name, and the effect of each instruction on them.

use crate::ori::alias;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Reg, Src, SrcKind, SrcMods, Value};
use crate::ori::memory::{Effect, Kind, Memory, Order, Space, effect, memory};
use crate::ori::op::{MemSize, Op};
use crate::phase::edit::{added, known, part_of};
use crate::regalloc::STACK_POINTER;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The maximum number of words that are tracked; all others count only as read and written.
const MOST: usize = 4096;

/// The spaces whose words are tracked.
pub(super) const SPACES: [Space; 4] = [Space::Global, Space::Generic, Space::Shared, Space::Local];

/// A tracked word.
pub(super) type FollowedWord = u32;

/// A set of places.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub(super) fn empty(places: usize) -> Set {
        Set(vec![0; places.div_ceil(64)])
    }

    pub(super) fn full(places: usize) -> Set {
        Set(vec![u64::MAX; places.div_ceil(64)])
    }

    pub(super) fn has(&self, place: FollowedWord) -> bool {
        self.0[place as usize / 64] >> (place % 64) & 1 != 0
    }

    pub(super) fn add(&mut self, place: FollowedWord) {
        self.0[place as usize / 64] |= 1 << (place % 64);
    }

    pub(super) fn remove(&mut self, place: FollowedWord) {
        self.0[place as usize / 64] &= !(1 << (place % 64));
    }

    pub(super) fn add_all(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    pub(super) fn remove_all(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
    }

    pub(super) fn keep(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = FollowedWord> + '_ {
        self.0.iter().zip(0..).flat_map(|(&word, i)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
            std::iter::successors(Some(word).filter(|word| *word != 0), rest)
                .map(move |word| 64 * i + word.trailing_zeros())
        })
    }
}

/// The common part of comparable addresses: words at different offsets from it do not overlap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Root {
    space: Space,
    address: SrcKind,
    /// The uniform part of an address in shared memory.
    uniform: SrcKind,
}

impl Root {
    const FRAME: Root = Root {
        space: Space::Local,
        address: SrcKind::Reg(Reg { file: File::R, index: STACK_POINTER.index }),
        uniform: SrcKind::Zero,
    };

    fn values(&self) -> impl Iterator<Item = Value> {
        [self.address, self.uniform].into_iter().filter_map(|kind| Src::new(kind).value())
    }
}

/// A weak load or store.
#[derive(Clone, Debug)]
pub(super) struct FollowedAccess {
    root: u32,
    /// The words in order; for an access of less than a word, the word that contains all its bytes.
    pub(super) words: SmallVec<[FollowedWord; 4]>,
    /// For an access of less than a word, the index of its first byte in the word; otherwise zero.
    pub(super) byte: u8,
    pub(super) bytes: u8,
    pub(super) guarded: bool,
    pub(super) space: Space,
}

impl FollowedAccess {
    pub(super) fn is_local(&self) -> bool {
        self.space == Space::Local
    }

    /// Whether it accesses whole words.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes >= 4
    }
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Load(FollowedAccess),
    Store(FollowedAccess),
    /// May write the marked spaces of [`SPACES`]; `reads`: may also read local memory.
    Other {
        writes: [bool; 4],
        reads: bool,
    },
    /// The root of these places gets another address.
    Moves(u32),
}

/// The effect of an instruction on the places.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The index of the instruction; [`PHIS`] for the phis, which come first.
    pub(super) at: u32,
    pub(super) action: Action,
}

pub(super) const PHIS: u32 = u32::MAX;

pub(super) struct Places {
    pub(super) count: usize,
    /// The places of each root.
    roots: Vec<Set>,
    /// The places of each space of [`SPACES`].
    spaces: [Set; 4],
    /// The words of the function's own frame. They are undefined at its start, and nothing reads them after its end.
    pub(super) own: Set,
    /// The address of the frame is used other than in local loads and stores, so other accesses may access the frame.
    escapes: bool,
    /// The steps of each block, in order.
    steps: Vec<Vec<Step>>,
}

/// An access before its words are numbered.
struct Named {
    root: Root,
    offset: i64,
    memory: Memory,
}

impl Places {
    /// `None` if no access can be forwarded.
    pub(super) fn new(func: &Function, cfg: &Cfg) -> Option<Places> {
        let stores = |b: &BlockId| func.block(*b).insts.iter().any(|inst| is_followed(inst).is_some());
        if !cfg.order.iter().any(stores) {
            return None;
        }
        let defs = Defs::new(func, cfg);
        let mut used: FxHashMap<(Root, i64), (u32, bool)> = FxHashMap::default();
        let mut in_order = Vec::new();
        for &b in &cfg.order {
            for named in func.block(b).insts.iter().filter_map(|inst| name(func, &defs, inst)) {
                for word in named.words() {
                    let key = (named.root, word);
                    let (times, read) = used.entry(key).or_insert_with(|| {
                        in_order.push(key);
                        (0, false)
                    });
                    *times += 1;
                    *read |= !named.memory.writes();
                }
            }
        }
        let mut places: FxHashMap<(Root, i64), FollowedWord> = FxHashMap::default();
        let mut roots: FxHashMap<Root, u32> = FxHashMap::default();
        let gains = |key: &&(Root, i64)| {
            let (times, read) = used[*key];
            key.0.space == Space::Local || (read && times > 1)
        };
        let followed: Vec<(Root, i64)> = in_order.iter().filter(gains).take(MOST).copied().collect();
        let mut moves: FxHashMap<Value, SmallVec<[u32; 1]>> = FxHashMap::default();
        for (key, place) in followed.iter().zip(0..) {
            places.insert(*key, place);
            let next = roots.len() as u32;
            roots.entry(key.0).or_insert_with(|| {
                key.0.values().for_each(|v| moves.entry(v).or_default().push(next));
                next
            });
        }
        let count = followed.len();
        if count == 0 {
            return None;
        }
        let none = Set::empty(count);
        let mut all = Places {
            count,
            roots: vec![none.clone(); roots.len()],
            spaces: [none.clone(), none.clone(), none.clone(), none.clone()],
            own: none,
            escapes: frame_escapes(func, cfg),
            steps: vec![Vec::new(); func.blocks.len()],
        };
        for ((root, word), place) in followed.iter().zip(0..) {
            all.roots[roots[root] as usize].add(place);
            let in_frame = (0..i64::from(func.frame.local_bytes)).contains(word);
            if *root == Root::FRAME && in_frame {
                all.own.add(place);
            }
            for (space, set) in SPACES.iter().zip(&mut all.spaces) {
                if root.space == *space {
                    set.add(place);
                }
            }
        }
        for &b in &cfg.order {
            let block = func.block(b);
            let mut steps = Vec::new();
            let of = |v: Value| moves.get(&v).into_iter().flatten().map(|root| Action::Moves(*root));
            steps.extend(
                block.phis.iter().flat_map(|phi| of(phi.dst)).map(|action| Step { at: PHIS, action }),
            );
            for (inst, at) in block.insts.iter().zip(0..) {
                let access = name(func, &defs, inst).and_then(|named| named.access(&roots, &places, inst));
                let action = match access {
                    Some(access) if memory(&inst.op).is_some_and(|m| m.writes()) => {
                        Some(Action::Store(access))
                    }
                    Some(access) => Some(Action::Load(access)),
                    None => other(&inst.op, all.escapes),
                };
                steps.extend(action.map(|action| Step { at, action }));
                steps.extend(inst.defs().flat_map(of).map(|action| Step { at, action }));
            }
            all.steps[b.index()] = steps;
        }
        Some(all)
    }

    pub(super) fn steps(&self, b: BlockId) -> &[Step] {
        &self.steps[b.index()]
    }

    /// The places of a root.
    pub(super) fn of_root(&self, root: u32) -> &Set {
        &self.roots[root as usize]
    }

    /// The places of local memory.
    pub(super) fn local(&self) -> &Set {
        &self.spaces[3]
    }

    /// Whether an access may touch `place` although it names other words, because those have another root.
    pub(super) fn is_of(&self, access: &FollowedAccess, place: FollowedWord) -> bool {
        self.roots[access.root as usize].has(place)
    }

    /// Whether a load may read words of local memory that it does not name.
    pub(super) fn reads_local(&self, access: &FollowedAccess) -> bool {
        access.space == Space::Local || (access.space == Space::Generic && self.escapes)
    }

    /// Removes from `set` the places that a step overwrites with unknown contents.
    pub(super) fn forget(&self, step: &Step, set: &mut Set) {
        match &step.action {
            Action::Load(_) => {}
            Action::Moves(root) => set.remove_all(self.of_root(*root)),
            Action::Other { writes, .. } => {
                for (_, places) in writes.iter().zip(&self.spaces).filter(|(writes, _)| **writes) {
                    set.remove_all(places);
                }
            }
            Action::Store(access) => {
                let own = self.of_root(access.root);
                let mut kept = own.clone();
                kept.keep(set);
                let mut writes = overwritten(&store_to(access.space));
                writes[3] &= access.space == Space::Local || self.escapes;
                for (_, places) in writes.iter().zip(&self.spaces).filter(|(writes, _)| **writes) {
                    set.remove_all(places);
                }
                set.add_all(&kept);
            }
        }
    }
}

impl Named {
    /// The offsets of the words; none if the access is not aligned to words.
    fn words(&self) -> impl Iterator<Item = i64> {
        let bytes = i64::from(self.memory.bytes);
        let aligned = self.offset.rem_euclid(bytes.min(4)) == 0;
        let first = self.offset.div_euclid(4) * 4;
        (0..if aligned { (bytes + 3) / 4 } else { 0 }).map(move |i| first + 4 * i)
    }

    fn access(
        &self,
        roots: &FxHashMap<Root, u32>,
        places: &FxHashMap<(Root, i64), FollowedWord>,
        inst: &Inst,
    ) -> Option<FollowedAccess> {
        let words: Option<SmallVec<[FollowedWord; 4]>> =
            self.words().map(|word| places.get(&(self.root, word)).copied()).collect();
        let words = words.filter(|words| !words.is_empty())?;
        Some(FollowedAccess {
            root: *roots.get(&self.root)?,
            words,
            byte: if self.memory.bytes < 4 { self.offset.rem_euclid(4) as u8 } else { 0 },
            bytes: self.memory.bytes,
            guarded: !inst.guard.is_true(),
            space: self.root.space,
        })
    }
}

/// The description of a weak load or store that can be tracked.
fn is_followed(inst: &Inst) -> Option<Memory> {
    let weak = matches!(
        inst.op,
        Op::Ldg { .. }
            | Op::Stg { .. }
            | Op::Ld { .. }
            | Op::St { .. }
            | Op::Lds { .. }
            | Op::Sts { .. }
            | Op::Ldl { .. }
            | Op::Stl { .. }
    );
    memory(&inst.op).filter(|memory| {
        weak && memory.order == Order::Weak && memory.scale == 0 && memory.bytes != Memory::ANYWHERE
    })
}

/// The data of a store: a value, or known bits.
pub(super) fn data(inst: &Inst) -> Option<Src> {
    match inst.op {
        Op::Stg { .. } | Op::St { .. } | Op::Sts { .. } => inst.srcs.get(2).copied(),
        Op::Stl { .. } => inst.srcs.get(1).copied(),
        _ => None,
    }
}

/// Whether a load of less than a word is signed.
pub(super) fn is_signed(inst: &Inst) -> bool {
    let size = match inst.op {
        Op::Ldg { access } | Op::Ld { access } => access.size,
        Op::Lds { size, .. } | Op::Ldl { size, .. } => size,
        _ => return false,
    };
    matches!(size, MemSize::S8 | MemSize::S16)
}

fn name(func: &Function, defs: &Defs, inst: &Inst) -> Option<Named> {
    let memory = is_followed(inst)?;
    if memory.kind == Kind::Store {
        let data = data(inst)?;
        let is_plain = match data.kind {
            SrcKind::Value(v) | SrcKind::Part(v, _) => {
                func.value(v).file == File::R && func.value(v).pin.is_none()
            }
            SrcKind::Zero => true,
            SrcKind::Imm(_) | SrcKind::Const(_) => memory.bytes <= 4,
            _ => false,
        };
        if !is_plain || data.mods != SrcMods::NONE {
            return None;
        }
    }
    if memory.kind == Kind::Load && !matches!(inst.dsts[..], [Dst::Value(_)]) {
        return None;
    }
    let address = *inst.srcs.first()?;
    let (address, offset) = match memory.space {
        Space::Shared | Space::Local => resolve(func, defs, address),
        _ => (address, 0),
    };
    let uniform = if memory.space == Space::Shared { inst.srcs.get(1)?.kind } else { SrcKind::Zero };
    if address.mods != SrcMods::NONE {
        return None;
    }
    let root = Root { space: memory.space, address: address.kind, uniform };
    Some(Named { root, offset: offset + i64::from(memory.offset), memory })
}

/// Splits a 32-bit address into its root and a constant.
fn resolve(func: &Function, defs: &Defs, mut src: Src) -> (Src, i64) {
    const MOST_STEPS: u32 = 32;
    let mut offset = 0u32;
    for _ in 0..MOST_STEPS {
        if let Some(bits) = known(&src) {
            return (Src::ZERO, i64::from(offset.wrapping_add(bits) as i32));
        }
        if let SrcKind::Part(v, part) = src.kind
            && let Some(inst) = defs.inst(func, v).filter(|inst| inst.guard.is_true())
            && src.mods == SrcMods::NONE
        {
            let product = || Some(known(&inst.srcs[0])?.wrapping_mul(known(&inst.srcs[1])?));
            match inst.op {
                Op::Pack => src = inst.srcs[usize::from(part)],
                Op::ImadWide { .. }
                    if part == 0
                        && let Some(product) = product() =>
                {
                    offset = offset.wrapping_add(product);
                    src = Src { kind: part_of(inst.srcs[2].kind, 0), mods: inst.srcs[2].mods };
                }
                _ => break,
            }
            continue;
        }
        let copied = defs.of_src(func, &src).filter(|inst| matches!(inst.op, Op::Mov | Op::Copy));
        if let Some(copy) = copied.filter(|copy| copy.srcs[0].mods == SrcMods::NONE) {
            src = copy.srcs[0];
            continue;
        }
        let Some((base, more)) = added(func, defs, src) else { break };
        offset = offset.wrapping_add(more);
        src = base;
    }
    (src, i64::from(offset as i32))
}

fn store_to(space: Space) -> Effect {
    Effect::Memory(Memory {
        space,
        kind: Kind::Store,
        order: Order::Weak,
        offset: 0,
        scale: 0,
        bytes: Memory::ANYWHERE,
    })
}

/// The spaces in which a weak load must not move before an operation with this effect.
fn overwritten(effect: &Effect) -> [bool; 4] {
    SPACES.map(|space| {
        let load = Memory {
            space,
            kind: Kind::Load,
            order: Order::Weak,
            offset: 0,
            scale: 0,
            bytes: Memory::ANYWHERE,
        };
        !alias::may_exchange(effect, &Effect::Memory(load), false)
    })
}

/// The effect of an instruction on places that it does not name.
fn other(op: &Op, escapes: bool) -> Option<Action> {
    let effect = effect(op);
    let mut writes = overwritten(&effect);
    let own = match effect {
        Effect::None => return None,
        Effect::Memory(access) => access.space == Space::Local,
        _ => false,
    };
    // Only caller and callee know the arguments and results that a call passes on the stack.
    let calls = op.calls_function() || matches!(op, Op::Params | Op::Results);
    writes[3] &= own || calls || escapes;
    let reads = own || calls || escapes;
    (reads || writes.contains(&true)).then_some(Action::Other { writes, reads })
}

/// Whether the address of the frame, or one computed from it, is used other than as the address of local loads and
/// stores.
fn frame_escapes(func: &Function, cfg: &Cfg) -> bool {
    let mut derived = vec![false; func.values.len()];
    let is_derived = |derived: &[bool], src: &Src| match src.kind {
        SrcKind::Reg(reg) => reg == STACK_POINTER,
        _ => src.value().is_some_and(|v| derived[v.index()]),
    };
    loop {
        let mut changed = false;
        let mut mark = |derived: &mut Vec<bool>, v: Value| {
            let holds = matches!(func.value(v).file, File::R | File::UR);
            changed |= holds && !std::mem::replace(&mut derived[v.index()], true);
        };
        for &b in &cfg.order {
            let block = func.block(b);
            for phi in &block.phis {
                if !derived[phi.dst.index()] && phi.args.iter().any(|(_, src)| is_derived(&derived, src)) {
                    mark(&mut derived, phi.dst);
                }
            }
            for inst in &block.insts {
                let data = usize::from(matches!(inst.op, Op::Ldl { .. } | Op::Stl { .. }));
                if !inst.srcs.iter().skip(data).chain(&inst.old).any(|src| is_derived(&derived, src)) {
                    continue;
                }
                if effect(&inst.op) != Effect::None {
                    return true;
                }
                inst.defs().for_each(|v| mark(&mut derived, v));
            }
            if block.term.operand().is_some_and(|src| is_derived(&derived, src)) {
                return true;
            }
        }
        if !changed {
            return false;
        }
    }
}
