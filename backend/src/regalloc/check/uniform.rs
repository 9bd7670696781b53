//! Checks uniform registers. They belong to the warp: while some of its threads wait at the edge of a block, others run
//! elsewhere in the function. So a uniform register that holds a value from block to block may hold nothing else
//! anywhere, apart from values that phis and ties make the same.
//!
//! Moves of values that come from another block are not examined; allocation adds them only for phis.

use super::Checker;
use super::content::Content;
use super::run::Reader;
use crate::ori::ir::{Dst, Reg};
use rustc_hash::FxHashMap;

/// Lanes that may legitimately be in one place.
struct Classes {
    /// For each lane, the next one in a chain that ends with a lane that refers to itself.
    next: Vec<u32>,
    /// For each constant argument of phis, the lanes of these phis.
    constants: FxHashMap<Content, Vec<u32>>,
}

impl Classes {
    fn new(checker: &Checker<'_>) -> Classes {
        let lanes = checker.canonical.len() as u32;
        let mut classes = Classes { next: (0..lanes).collect(), constants: FxHashMap::default() };
        let before = checker.before;
        for block in before.layout.iter().map(|&b| before.block(b)) {
            for phi in &block.phis {
                for part in 0..before.value(phi.dst).width {
                    for (_, src) in &phi.args {
                        classes.join(checker.expected(phi.dst, part), checker.source_content(src, part));
                    }
                }
            }
            for inst in &block.insts {
                for (dst, old) in inst.dsts.iter().zip(&inst.old) {
                    let Dst::Value(v) = *dst else { continue };
                    for part in 0..before.value(v).width {
                        classes.join(checker.expected(v, part), checker.source_content(old, part));
                    }
                }
            }
        }
        classes
    }

    fn join(&mut self, content: Content, other: Option<Content>) {
        let (Some(lane), Some(other)) = (content.lane(), other) else { return };
        match other.lane() {
            Some(other) => {
                let (a, b) = (self.of(lane), self.of(other));
                self.next[a as usize] = b;
            }
            None => self.constants.entry(other).or_default().push(lane),
        }
    }

    fn of(&mut self, mut lane: u32) -> u32 {
        while self.next[lane as usize] != lane {
            let next = self.next[lane as usize];
            self.next[lane as usize] = self.next[next as usize];
            lane = next;
        }
        lane
    }

    fn are_one(&mut self, a: Content, b: Content) -> bool {
        match (a.lane(), b.lane()) {
            _ if a == b || b == Content::Undef => true,
            (Some(a), Some(b)) => self.of(a) == self.of(b),
            (Some(a), None) => {
                let class = self.of(a);
                let phis = self.constants.get(&b).cloned().unwrap_or_default();
                phis.into_iter().any(|lane| self.of(lane) == class)
            }
            (None, Some(_)) => self.are_one(b, a),
            (None, None) => false,
        }
    }
}

/// `lasting`: the contents that uniform registers must hold at the start of some block. `written`: all contents that
/// are written to them.
pub(super) fn check(
    checker: &Checker<'_>,
    lasting: &[(Reg, Content, Reader)],
    written: &[(Reg, Content, Reader)],
) -> Result<(), String> {
    if lasting.is_empty() {
        return Ok(());
    }
    let mut classes = Classes::new(checker);
    let mut kept_in: FxHashMap<Reg, Content> = FxHashMap::default();
    for &(reg, content, _) in lasting {
        kept_in.entry(reg).or_insert(content);
    }
    for &(reg, content, reader) in lasting.iter().chain(written) {
        let Some(&kept) = kept_in.get(&reg) else { continue };
        if !classes.are_one(kept, content) {
            let what =
                format!("{reg:?} gets {content:?}, but other threads of the warp may need {kept:?} there");
            return Err(checker.at(reader, &what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ori::ir::{Dst, Function, SrcKind};
    use crate::ori::text;
    use crate::regalloc::{allocate, check};
    use crate::target::Target;
    use expect_test::expect;

    /// One side of the branch needs `%v0`. The other side runs while the first one waits.
    const ARMS: &str = "entry \"f\" {
        b0:
          %v0:ur = ULDC c[0x0][0x160]
          %v1:r = S2R
          %v2:p = ISETP.LT.AND %v1, 0x5, PT
          BRA %v2, b2, b1
        b1:
          %v3:ur = ULDC c[0x0][0x164]
          %v4:r = MOV %v3
          EXIT
        b2:
          %v5:r = MOV %v0
          EXIT
        }";

    #[test]
    fn an_arm_keeps_the_registers_of_the_other() {
        let before = text::parse(ARMS).expect("parses");
        let target = Target::of(ptx_isa::Sm::new(100)).expect("a target");
        let mut after = before.clone();
        let allocation = allocate(&mut after, target, 255).expect("allocates");
        let result = |after: &Function| check::check(&before, after, target, &allocation, 255, &|| ());
        assert_eq!(result(&after), Ok(()));
        let Dst::Reg(lasting) = after.blocks[0].insts[0].dsts[0] else { panic!("no register") };
        let arm = &mut after.blocks[1].insts;
        (arm[0].dsts[0], arm[1].srcs[0].kind) = (Dst::Reg(lasting), SrcKind::Reg(lasting));
        expect!["BlockId(1), instruction 0, Uldc { wide: false }: Reg { file: UR, index: 0 } gets Const { bank: 0, offset: 356 }, but other threads of the warp may need Const { bank: 0, offset: 352 } there"]
            .assert_eq(&result(&after).expect_err("is broken"));
    }
}
