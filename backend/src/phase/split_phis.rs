//! Splits wide phis that are only read in part into phis of the parts.
//!
//! 64-bit counters, and addresses of which only the low half is used, then need no register pairs, and unused halves
//! are removed later. A phi stays whole if an instruction reads it as a whole, or if an argument is defined by an
//! operation with a multi-register result.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::ir::{File, Function, Phi, Src, SrcKind, SrcMods, Value};
use crate::ori::op::Op;
use crate::phase::edit::{for_each_use_mut, part_of};
use crate::phases::{Change, Context};
use smallvec::SmallVec;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let mut splits = vec![false; func.values.len()];
    let mut any = false;
    for &b in &cfg.order {
        for phi in &func.block(b).phis {
            let data = func.value(phi.dst);
            splits[phi.dst.index()] = data.file == File::R && data.width > 1;
            any |= splits[phi.dst.index()];
        }
    }
    if !any {
        return Ok(Change::Nothing);
    }
    for &b in &cfg.order {
        let block = func.block(b);
        let uses = block.insts.iter().flat_map(crate::ori::ir::Inst::uses);
        for src in uses {
            if let SrcKind::Value(v) = src.kind {
                splits[v.index()] = false;
            }
        }
    }
    let defs = context.analyses.defs(func);
    // If a phi stays whole, its arguments stay whole, and vice versa.
    loop {
        (context.checkpoint)();
        let mut changed = false;
        for &b in &cfg.order {
            for phi in &func.block(b).phis {
                let separable = |src: &Src| is_separable(func, defs, &splits, src);
                if splits[phi.dst.index()] && !phi.args.iter().all(|(_, src)| separable(src)) {
                    splits[phi.dst.index()] = false;
                    changed = true;
                }
                if !splits[phi.dst.index()] {
                    for v in phi.args.iter().filter_map(|(_, src)| src.value()) {
                        changed |= std::mem::replace(&mut splits[v.index()], false);
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    split(func, cfg, defs, &splits);
    Ok(Change::Something)
}

fn is_separable(func: &Function, defs: &Defs, splits: &[bool], src: &Src) -> bool {
    match src.kind {
        SrcKind::Zero | SrcKind::Undef | SrcKind::Const(_) => true,
        SrcKind::Value(v) if splits[v.index()] => true,
        SrcKind::Value(v) => defs.inst(func, v).is_some_and(|inst| {
            inst.op == Op::Pack && inst.srcs.iter().all(|part| part.mods == SrcMods::NONE)
        }),
        _ => false,
    }
}

fn split(func: &mut Function, cfg: &Cfg, defs: &Defs, splits: &[bool]) {
    let mut parts: Vec<SmallVec<[Value; 4]>> = vec![SmallVec::new(); splits.len()];
    for v in (0..splits.len()).filter(|v| splits[*v]) {
        let width = func.values[v].width;
        parts[v] = (0..width).map(|_| func.new_value(File::R, 1)).collect();
    }
    let part = |func: &Function, src: &Src, i: usize| match src.kind {
        SrcKind::Value(v) if splits[v.index()] => Src::from(parts[v.index()][i]),
        SrcKind::Value(v) => match defs.inst(func, v) {
            Some(pack) if pack.op == Op::Pack => pack.srcs[i],
            _ => Src::part(v, i as u8),
        },
        kind => Src::new(part_of(kind, i as u8)),
    };
    for &b in &cfg.order {
        let phis = std::mem::take(&mut func.block_mut(b).phis);
        let mut new = Vec::with_capacity(phis.len());
        for phi in phis {
            if !splits[phi.dst.index()] {
                new.push(phi);
                continue;
            }
            for (i, &dst) in parts[phi.dst.index()].iter().enumerate() {
                let args = phi.args.iter().map(|(from, src)| (*from, part(func, src, i))).collect();
                new.push(Phi { dst, args });
            }
        }
        func.block_mut(b).phis = new;
    }
    for &b in &cfg.order {
        for_each_use_mut(func, b, |src| {
            if let SrcKind::Part(v, i) = src.kind
                && splits.get(v.index()) == Some(&true)
            {
                src.kind = SrcKind::Value(parts[v.index()][usize::from(i)]);
            }
        });
    }
}
