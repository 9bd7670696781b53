//! Renumbers the values of a function without gaps.
//!
//! Construction creates a phi for each variable at each join, and removes most of them again; phases leave the numbers
//! of removed values behind. Analyses and the allocator have tables with one entry per value, so unused numbers cost
//! time and memory. The order of the numbers stays the same.

use crate::ori::ir::{Block, Dst, Function, Src, SrcKind, Value};

/// The number of a value that is not used.
const UNUSED: u32 = u32::MAX;

/// Empties blocks outside the layout, and renumbers the values that the others define or read.
pub fn compact(func: &mut Function) {
    let mut laid_out = vec![false; func.blocks.len()];
    func.layout.iter().for_each(|b| laid_out[b.index()] = true);
    let outside = func.blocks.iter_mut().zip(laid_out).filter(|(_, laid_out)| !laid_out);
    outside.for_each(|(block, _)| *block = Block::default());

    let mut numbers = vec![UNUSED; func.values.len()];
    each(func, |v| numbers[v.index()] = 0);
    let mut next = 0;
    for number in numbers.iter_mut().filter(|number| **number != UNUSED) {
        *number = next;
        next += 1;
    }
    if next as usize == func.values.len() {
        return;
    }
    each(func, |v| *v = Value(numbers[v.index()]));
    let mut numbers = numbers.into_iter();
    func.values.retain(|_| numbers.next().is_some_and(|number| number != UNUSED));
    func.values.shrink_to_fit();
}

/// Calls `f` for each mention of a value.
fn each(func: &mut Function, mut f: impl FnMut(&mut Value)) {
    func.facts.unrounded.iter_mut().for_each(&mut f);
    let source = |src: &mut Src, f: &mut dyn FnMut(&mut Value)| {
        if let SrcKind::Value(v) | SrcKind::Part(v, _) = &mut src.kind {
            f(v);
        }
    };
    for block in &mut func.blocks {
        for phi in &mut block.phis {
            f(&mut phi.dst);
            phi.args.iter_mut().for_each(|(_, arg)| source(arg, &mut f));
        }
        for inst in &mut block.insts {
            inst.uses_mut().for_each(|src| source(src, &mut f));
            for dst in &mut inst.dsts {
                if let Dst::Value(v) = dst {
                    f(v);
                }
            }
        }
        if let Some(src) = block.term.operand_mut() {
            source(src, &mut f);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use expect_test::expect;

    #[test]
    fn unused_numbers_disappear() {
        let mut func = text::parse(
            "entry \"f\" {\nb0:\n%v3:r64 = LDC.64 c[0x0][0x160]\nJUMP b2\nb1:\n%v5:r = MOV 0x1\nEXIT
             b2:\n%v9:r = MOV %v3.0\n%v7:p = ISETP.LT.AND %v9, %v3.1, PT\nBRA %v7, b1, b2\n}",
        )
        .unwrap();
        compact(&mut func);
        expect![[r#"
            entry "f" {
            b0:
              %v0:r64 = LDC.64 c[0x0][0x160]
              JUMP b2
            b1:
              %v1:r = MOV 0x1
              EXIT
            b2:
              %v3:r = MOV %v0.0
              %v2:p = ISETP.LT.AND %v3, %v0.1, PT
              BRA %v2, b1, b2
            }
        "#]]
        .assert_eq(&text::print(&func));
        assert_eq!(func.values.len(), 4);
    }
}
