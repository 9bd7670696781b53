//! Computes the operands of the uniform datapath in uniform registers: matrix descriptors, addresses of mbarrier
//! objects, coordinates of tensor copies.
//!
//! Construction computes them in general registers and moves each result with `R2UR`. Results that are sums, shifts and
//! masks of one value need only one `R2UR`, of that value, or none if it is already in a uniform register. The steps in
//! between become uniform operations, and general registers need not hold their results. The moved value belongs to the
//! same thread, and so do the values computed from it.
//!
//! Before and after: SSA. Dead code elimination removes unused instructions later.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::{Op, Sign};
use crate::ori::operations::facts;
use crate::phase::edit::known;
use crate::phases::{Change, Context};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The maximum number of uniform operations that replace one `R2UR`.
const MOST: usize = 4;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let is_move = |inst: &Inst| inst.op == Op::R2ur;
    let moves: Vec<BlockId> =
        cfg.order.iter().copied().filter(|b| func.block(*b).insts.iter().any(is_move)).collect();
    if moves.is_empty() {
        return Ok(Change::Nothing);
    }
    let recipes = recipes(func, cfg);
    for b in moves {
        (context.checkpoint)();
        let insts = std::mem::take(&mut func.block_mut(b).insts);
        let cuts = cuts(&recipes, &insts);
        let mut block = Block {
            func,
            recipes: &recipes,
            cuts,
            made: FxHashMap::default(),
            replaced: FxHashMap::default(),
            code: Vec::with_capacity(insts.len() + insts.len() / 8),
        };
        insts.into_iter().for_each(|inst| block.inst(inst));
        let code = block.code;
        func.block_mut(b).insts = code;
    }
    Ok(Change::Something)
}

/// How the uniform datapath can compute the value of a general register.
struct Recipe {
    op: Op,
    srcs: SmallVec<[Src; 4]>,
    /// The only source that is in a general register or in a part of one.
    root: Option<SrcKind>,
}

/// Indexed by value.
fn recipes(func: &Function, cfg: &Cfg) -> Vec<Option<Recipe>> {
    let mut recipes: Vec<Option<Recipe>> = Vec::new();
    recipes.resize_with(func.values.len(), || None);
    // Values that belong to threads which execute an operation together are read where these threads are.
    let mut of_group = vec![false; func.values.len()];
    for inst in cfg.order.iter().flat_map(|&b| &func.block(b).insts) {
        let of = |src: &Src| src.value().is_some_and(|v| of_group[v.index()]);
        if facts(&inst.op).convergent || inst.uses().any(of) {
            let values = inst.defs().filter(|v| func.value(*v).file.is_uniform());
            values.for_each(|v| of_group[v.index()] = true);
        } else if let Some(v) = inst.defs().next() {
            recipes[v.index()] = recipe(func, inst);
        }
    }
    recipes
}

fn recipe(func: &Function, inst: &Inst) -> Option<Recipe> {
    let plain = inst.guard.is_true()
        && inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink)
        && inst.srcs.iter().all(|src| src.mods == SrcMods::NONE);
    if !plain {
        return None;
    }
    let mut srcs: SmallVec<[Src; 4]> = inst.srcs.iter().copied().collect();
    let op = match inst.op {
        Op::Mov => Op::Umov,
        Op::Iadd3 { x: false } => {
            // A number must be the second operand.
            if let Some(i) = srcs.iter().position(|src| matches!(src.kind, SrcKind::Imm(_))) {
                srcs.swap(i, 1);
            }
            Op::Uiadd3 { x: false }
        }
        Op::Lea { shift } => Op::Ulea { shift },
        Op::Lop3 { lut } => Op::Ulop3 { lut },
        Op::Shf { right, wrap, ty, hi } => Op::Ushf { right, wrap, ty, hi },
        Op::Sgxt { wrap: false, sign: Sign::U32 } => {
            let bits = known(&srcs[1]).filter(|bits| *bits < 32)?;
            srcs = smallvec::smallvec![srcs[0], Src::imm((1 << bits) - 1), Src::ZERO];
            Op::Ulop3 { lut: 0xc0 }
        }
        _ => return None,
    };
    let mut root = None;
    for (i, src) in srcs.iter().enumerate() {
        match src.kind {
            SrcKind::Zero => {}
            SrcKind::Imm(_) if i == 1 || op == Op::Umov => {}
            SrcKind::Value(v) if func.value(v).file == File::UR => {}
            SrcKind::Value(v) | SrcKind::Part(v, _) if func.value(v).file == File::R => {
                if root.is_some_and(|root| root != src.kind) {
                    return None;
                }
                root = Some(src.kind);
            }
            _ => return None,
        }
    }
    Some(Recipe { op, srcs, root })
}

fn recipe_of(recipes: &[Option<Recipe>], kind: SrcKind) -> Option<&Recipe> {
    match kind {
        SrcKind::Value(v) => recipes.get(v.index())?.as_ref(),
        _ => None,
    }
}

/// For each value that the block moves, the value from which it is computed and that is moved instead; none if all its
/// sources are in uniform registers.
fn cuts(recipes: &[Option<Recipe>], insts: &[Inst]) -> FxHashMap<SrcKind, Option<SrcKind>> {
    let chain = |from: SrcKind| {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let at = next?;
            next = recipe_of(recipes, at).and_then(|recipe| recipe.root);
            Some(at)
        })
        .take(MOST + 1)
    };
    let mut moved: FxHashSet<SrcKind> = FxHashSet::default();
    let moves = insts.iter().filter(|inst| inst.op == Op::R2ur);
    let moved: Vec<SrcKind> =
        moves.map(|inst| inst.srcs[0].kind).filter(|kind| moved.insert(*kind)).collect();
    let mut counts: FxHashMap<SrcKind, u32> = FxHashMap::default();
    for at in moved.iter().flat_map(|&kind| chain(kind)) {
        *counts.entry(at).or_default() += 1;
    }
    let count = |at: &SrcKind| counts.get(at).copied().unwrap_or(0);
    let cut = |from: SrcKind| {
        let is_free = |at| recipe_of(recipes, at).is_some_and(|recipe| recipe.root.is_none());
        if chain(from).take(MOST).any(is_free) {
            return None;
        }
        // The nearest of the values from which most others are computed.
        chain(from).reduce(|best, at| if count(&at) > count(&best) { at } else { best })
    };
    moved.iter().map(|&from| (from, cut(from))).collect()
}

struct Block<'a> {
    func: &'a mut Function,
    recipes: &'a [Option<Recipe>],
    cuts: FxHashMap<SrcKind, Option<SrcKind>>,
    /// The uniform registers of values, by the guard of the move.
    made: FxHashMap<(SrcKind, SrcKind, bool), Src>,
    /// The replacements of removed moves, by their results.
    replaced: FxHashMap<Value, Src>,
    code: Vec<Inst>,
}

impl Block<'_> {
    fn inst(&mut self, mut inst: Inst) {
        let packs = inst.op == Op::Pack;
        for src in inst.uses_mut() {
            let Some(&by) = src.value().and_then(|v| self.replaced.get(&v)) else { continue };
            src.kind = match by.kind {
                SrcKind::Imm(_) | SrcKind::Zero if !packs => self.number(by),
                kind => kind,
            };
        }
        if facts(&inst.op).waits {
            self.made.clear();
        }
        let keeps = inst.old.iter().any(|old| !matches!(old.kind, SrcKind::Undef));
        let plain = inst.op == Op::R2ur && !keeps && inst.srcs[0].mods == SrcMods::NONE;
        let (true, Some(Dst::Value(v))) = (plain, inst.dsts.first().copied()) else {
            self.code.push(inst);
            return;
        };
        let kind = inst.srcs[0].kind;
        let cut = self.cuts.get(&kind).copied().flatten();
        let by = self.uniform(kind, cut, &inst);
        self.replaced.insert(v, by);
    }

    /// The source in a uniform register, or a number. `cut` is moved by an instruction like `by`.
    fn uniform(&mut self, kind: SrcKind, cut: Option<SrcKind>, by: &Inst) -> Src {
        match kind {
            SrcKind::Imm(_) | SrcKind::Zero => return Src::new(kind),
            SrcKind::Value(v) if self.func.value(v).file == File::UR => return Src::new(kind),
            _ => {}
        }
        let key = (kind, by.guard.kind, by.guard.mods.not);
        if let Some(&made) = self.made.get(&key) {
            return made;
        }
        let recipes = self.recipes;
        let recipe = recipe_of(recipes, kind).filter(|_| cut != Some(kind));
        let src = match recipe {
            Some(Recipe { op: Op::Umov, srcs, .. }) => self.uniform(srcs[0].kind, cut, by),
            Some(recipe) => {
                let srcs: SmallVec<[Src; 4]> =
                    recipe.srcs.iter().map(|src| self.uniform(src.kind, cut, by)).collect();
                self.make(recipe.op, &srcs, by.src)
            }
            None => {
                let value = self.func.new_value(File::UR, 1);
                let mut inst = by.clone();
                inst.srcs[0] = Src::new(kind);
                inst.dsts[0] = Dst::Value(value);
                self.code.push(inst);
                value.into()
            }
        };
        self.made.insert(key, src);
        src
    }

    fn make(&mut self, op: Op, srcs: &[Src], at: SrcId) -> Src {
        let value = self.func.new_value(File::UR, 1);
        self.code.push(Inst::new(op, &[Dst::Value(value)], srcs, at));
        value.into()
    }

    /// A number in a uniform register.
    fn number(&mut self, src: Src) -> SrcKind {
        self.make(Op::Umov, &[src], SrcId::default()).kind
    }
}
