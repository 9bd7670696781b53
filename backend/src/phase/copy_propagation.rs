//! Reads the source of a copy instead of the copy: through `MOV`, `COPY`, `PACK` and its parts, and phis whose
//! arguments are all the same.

use crate::CodegenError;
use crate::ori::ir::{Const, Dst, File, Function, Inst, Phi, Src, SrcKind, SrcMods};
use crate::ori::memory;
use crate::ori::op::Op;
use crate::ori::operations::facts;
use crate::ori::signature::{self, Accept, fold_modifiers};
use crate::phase::edit::{Replacements, part_of};
use crate::phases::{Change, Context};
use smallvec::SmallVec;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let mut copies = Copies {
        whole: Replacements::new(func),
        packed: vec![None; func.values.len()],
        uniform: vec![None; func.values.len()],
        of_group: vec![false; func.values.len()],
    };
    for &b in &cfg.order {
        let mut phis = std::mem::take(&mut func.block_mut(b).phis);
        for phi in &mut phis {
            for (_, arg) in &mut phi.args {
                *arg = copies.read(*arg);
            }
            if let Some(src) = same_argument(phi) {
                copies.whole.insert(phi.dst, src);
            }
        }
        func.block_mut(b).phis = phis;
        let mut insts = std::mem::take(&mut func.block_mut(b).insts);
        for inst in &mut insts {
            for src in inst.uses_mut() {
                *src = copies.read(*src);
            }
            copies.read_uniform(inst);
            fold_modifiers(inst);
            copies.note(func, inst);
        }
        func.block_mut(b).insts = insts;
        if let Some(src) = func.block_mut(b).term.operand_mut() {
            *src = copies.read(*src);
        }
    }
    // Arguments along back edges were rewritten before the definitions of their values were visited.
    for &b in &cfg.order {
        for phi in &mut func.block_mut(b).phis {
            for (_, arg) in &mut phi.args {
                *arg = copies.read(*arg);
            }
        }
    }
    copies.whole.apply(func, cfg);
    Ok(Change::Something)
}

struct Copies {
    whole: Replacements,
    /// For each wide value, the sources from which it was packed.
    packed: Vec<Option<SmallVec<[Src; 4]>>>,
    /// For each value, the uniform register that it copies.
    uniform: Vec<Option<Src>>,
    /// For each value, whether it is a uniform register of the threads that execute an operation together. Threads that
    /// execute the operation later overwrite it, so it is copied at once and not read again.
    of_group: Vec<bool>,
}

impl Copies {
    fn read(&self, src: Src) -> Src {
        let mut src = self.whole.resolve(src);
        if let SrcKind::Part(v, part) = src.kind
            && let Some(Some(parts)) = self.packed.get(v.index())
            && parts[usize::from(part)].mods == SrcMods::NONE
        {
            src.kind = parts[usize::from(part)].kind;
        }
        src
    }

    /// Replaces copies of uniform registers by the registers, in slots that can read them.
    fn read_uniform(&self, inst: &mut Inst) {
        let copied = |src: &Src| src.value().and_then(|v| self.uniform.get(v.index()).copied().flatten());
        if memory::memory(&inst.op).is_some() || !inst.srcs.iter().any(|src| copied(src).is_some()) {
            return;
        }
        let sig = signature::signature(&inst.op);
        for (slot, src) in sig.srcs.iter().zip(&mut inst.srcs) {
            if slot.accept.has(Accept::UR)
                && let Some(by) = copied(src)
            {
                src.kind = by.kind;
            }
        }
    }

    fn note(&mut self, func: &Function, inst: &Inst) {
        if facts(&inst.op).convergent {
            inst.defs().for_each(|dst| self.of_group[dst.index()] = true);
        }
        let ([Dst::Value(dst)], true) = (&inst.dsts[..], inst.guard.is_true()) else { return };
        match inst.op {
            Op::Mov | Op::Copy => {
                let src = inst.srcs[0];
                let data = func.value(*dst);
                let predicate = matches!(data.file, File::P | File::UP);
                let plain = src.mods == SrcMods::NONE || (predicate && !src.mods.neg && !src.mods.abs);
                let same_file = match src.kind {
                    SrcKind::Value(v) | SrcKind::Part(v, _) => func.value(v).file == data.file,
                    SrcKind::Imm(_) => data.width == 1 && data.file == File::R,
                    SrcKind::Const(_) | SrcKind::Zero => data.width <= 2 && data.file == File::R,
                    SrcKind::Pred(_) | SrcKind::Undef => true,
                    SrcKind::Reg(_) => false,
                };
                if plain && same_file {
                    self.whole.insert(*dst, src);
                } else if src.mods == SrcMods::NONE
                    && data.file == File::R
                    && src
                        .value()
                        .is_some_and(|v| func.value(v).file == File::UR && !self.of_group[v.index()])
                {
                    self.uniform[dst.index()] = Some(src);
                }
            }
            Op::Pack => {
                self.packed[dst.index()] = Some(inst.srcs.iter().copied().collect());
                if let Some(whole) = whole_of(func, &inst.srcs) {
                    self.whole.insert(*dst, whole);
                }
            }
            _ => {}
        }
    }
}

/// The wide operand of which these are the parts.
pub fn whole_of(func: &Function, parts: &[Src]) -> Option<Src> {
    if parts.iter().any(|part| part.mods != SrcMods::NONE) {
        return None;
    }
    let whole = match parts.first()?.kind {
        SrcKind::Part(v, 0) if usize::from(func.value(v).width) == parts.len() => SrcKind::Value(v),
        // A pair of constants can only be read at multiples of its size.
        SrcKind::Const(c @ Const { offset, .. }) if parts.len() == 2 && offset % 8 == 0 => SrcKind::Const(c),
        SrcKind::Zero => SrcKind::Zero,
        _ => return None,
    };
    let all = parts.iter().enumerate().all(|(i, part)| part.kind == part_of(whole, i as u8));
    all.then_some(Src::new(whole))
}

/// The only possible value of the phi. An argument that is the phi itself does not count.
fn same_argument(phi: &Phi) -> Option<Src> {
    let mut others = phi.args.iter().map(|(_, src)| *src).filter(|src| *src != Src::from(phi.dst));
    let first = others.next()?;
    // `Undef` would select a value here that differs from what other readers select.
    let known = !matches!(first.kind, SrcKind::Undef | SrcKind::Reg(_));
    (known && others.all(|other| other == first)).then_some(first)
}
