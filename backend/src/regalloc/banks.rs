//! Finds bundles that should be in registers of different banks.
//!
//! General registers are in two banks, those with even and those with odd numbers. If all operands of an instruction
//! are in the same bank, they are read one after the other. Runs start at even registers, so only single registers have
//! a choice.

use crate::ori::ir::{File, Function, SrcKind};
use crate::ori::op::Op;
use crate::regalloc::bundle::Bundles;
use smallvec::SmallVec;

/// For each bundle whose first register may be odd: the bundles that an instruction reads together with it. The flag
/// tells whether their operands are in one bank if one bundle's first register is even and the other's is odd, rather
/// than if both are even or both odd.
#[derive(Debug)]
pub(crate) struct ReadTogether(Vec<SmallVec<[(u32, bool); 3]>>);

impl ReadTogether {
    pub(crate) fn new(bundles: &Bundles, func: &Function) -> ReadTogether {
        let mut together = vec![SmallVec::new(); bundles.bundles.len()];
        for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts) {
            // These become moves at most.
            if matches!(inst.op, Op::Pack | Op::Copy) {
                continue;
            }
            let place = |kind: SrcKind| {
                let (v, part) = match kind {
                    SrcKind::Value(v) => (v, 0),
                    SrcKind::Part(v, part) => (v, part),
                    _ => return None,
                };
                let (bundle, offset) = bundles.of[v.index()];
                (func.value(v).file == File::R).then_some((bundle, offset + part))
            };
            let read: SmallVec<[(u32, u8); 6]> = inst.uses().filter_map(|src| place(src.kind)).collect();
            for &(bundle, offset) in read.iter().filter(|(b, _)| bundles.bundles[*b as usize].align == 1) {
                let others = read.iter().filter(|other| other.0 != bundle);
                together[bundle as usize].extend(others.map(|other| (other.0, (offset ^ other.1) & 1 == 1)));
            }
        }
        ReadTogether(together)
    }

    /// How often an even and an odd first register of a bundle would be in the bank of another operand, as far as
    /// `base` knows the registers of the others.
    pub(crate) fn banks(&self, bundle: u32, base: impl Fn(u32) -> Option<u8>) -> [u32; 2] {
        let mut crowded = [0; 2];
        for &(other, differ) in self.0.get(bundle as usize).into_iter().flatten() {
            if let Some(base) = base(other) {
                crowded[usize::from(base & 1) ^ usize::from(differ)] += 1;
            }
        }
        crowded
    }
}
