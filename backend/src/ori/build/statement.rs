//! A statement that is being lowered, with a record of the parts that have been taken.
//!
//! A lowering takes the modifiers, types and operands that it implements. If a part is left over, the statement is
//! unsupported. So a lowering need not list the modifiers that it knows, and no part of the program is silently
//! ignored.

use crate::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, ScalarType};
use std::cell::Cell;

/// The parts of a statement that have not been taken yet.
struct Rest(Cell<u64>);

impl Rest {
    /// The maximum number of parts of a statement. Later operands count as never taken.
    const MOST: usize = u64::BITS as usize;

    fn new(places: impl Iterator<Item = usize>) -> Rest {
        Rest(Cell::new(places.filter(|place| *place < Rest::MOST).fold(0, |rest, place| rest | 1 << place)))
    }

    fn take(&self, place: usize) {
        if place < Rest::MOST {
            self.0.set(self.0.get() & !(1 << place));
        }
    }

    fn first(&self) -> Option<usize> {
        (self.0.get() != 0).then(|| self.0.get().trailing_zeros() as usize)
    }
}

/// A statement. Reading a part of it takes that part; reading it again gives the same answer.
pub(super) struct Statement<'a> {
    instr: &'a Instr,
    mods: Rest,
    types: Rest,
    operands: Rest,
}

impl<'a> Statement<'a> {
    /// Creates the record. The modifiers and types that the form fixes count as taken: `.sync` of `shfl.sync`, `.b32`
    /// of `lop3`.
    pub(super) fn new(instr: &'a Instr) -> Statement<'a> {
        let row = ptx_isa::form(instr.opcode.form);
        let mods = instr.opcode.mods().enumerate().filter(|(_, m)| !row.fixed().any(|fixed| fixed == *m));
        let chosen = |i: usize| row.types.get(i).is_none_or(|types| types.iter().nth(1).is_some());
        let types = instr.opcode.types().enumerate().map(|(i, _)| i).filter(|i| chosen(*i));
        Statement {
            instr,
            mods: Rest::new(mods.map(|(i, _)| i)),
            types: Rest::new(types),
            operands: Rest::new(0..instr.operands.len()),
        }
    }

    pub(super) fn form(&self) -> FormId {
        self.instr.opcode.form
    }

    /// Whether the statement has the modifier.
    pub(super) fn has(&self, m: Mod) -> bool {
        self.any_of(&[m]).is_some()
    }

    /// The first of these modifiers that the statement has.
    pub(super) fn any_of(&self, mods: &[Mod]) -> Option<Mod> {
        let (place, m) = self.instr.opcode.mods().enumerate().find(|(_, m)| mods.contains(m))?;
        self.mods.take(place);
        Some(m)
    }

    /// The table's value for the first of its modifiers that the statement has. A second one is left over, so the
    /// statement is unsupported.
    pub(super) fn take<T: Copy>(&self, table: &[(Mod, T)]) -> Option<T> {
        let meaning = |m| table.iter().find(|row| row.0 == m).map(|row| row.1);
        let (place, meaning) =
            self.instr.opcode.mods().enumerate().find_map(|(i, m)| Some((i, meaning(m)?)))?;
        self.mods.take(place);
        Some(meaning)
    }

    /// The table's values for all its modifiers that the statement has, in their order.
    pub(super) fn take_each<T: Copy>(&self, table: &[(Mod, T)]) -> Vec<T> {
        let meaning = |m| table.iter().find(|row| row.0 == m).map(|row| row.1);
        let found = self.instr.opcode.mods().enumerate().filter_map(|(i, m)| Some((i, meaning(m)?)));
        found.inspect(|(place, _)| self.mods.take(*place)).map(|(_, meaning)| meaning).collect()
    }

    /// The meaning of the first modifier whose text has one.
    pub(super) fn take_text<T>(&self, meaning: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut mods = self.instr.opcode.mods().enumerate();
        let (place, meaning) = mods.find_map(|(i, m)| Some((i, meaning(m.text())?)))?;
        self.mods.take(place);
        Some(meaning)
    }

    /// Takes modifiers that do not change the code. The caller states the reason.
    pub(super) fn ignore(&self, mods: &[Mod]) {
        for (place, _) in self.instr.opcode.mods().enumerate().filter(|(_, m)| mods.contains(m)) {
            self.mods.take(place);
        }
    }

    /// The `i`-th type suffix.
    pub(super) fn ty(&self, i: usize) -> Option<ScalarType> {
        self.types.take(i);
        self.instr.opcode.ty(i)
    }

    pub(super) fn operand(&self, i: usize) -> Option<&'a Operand> {
        self.operands.take(i);
        self.instr.operands.get(i)
    }

    /// The number of operands; takes none of them.
    pub(super) fn operand_count(&self) -> usize {
        self.instr.operands.len()
    }

    /// The statement itself; takes no part.
    pub(super) fn input(&self) -> &'a Instr {
        self.instr
    }

    /// All operands; takes none of them.
    pub(super) fn peek_operands(&self) -> &'a [Operand] {
        &self.instr.operands
    }

    /// Takes all parts: the statement requires no code. The caller states the reason.
    pub(super) fn take_all(&self) {
        for rest in [&self.mods, &self.types, &self.operands] {
            rest.0.set(0);
        }
    }

    /// A description of a part that is left over.
    pub(super) fn left_over(&self) -> Option<String> {
        let opcode = &self.instr.opcode;
        if let Some(m) = self.mods.first().and_then(|i| opcode.mods().nth(i)) {
            return Some(format!("the modifier `.{}`", m.text()));
        }
        if let Some(ty) = self.types.first().and_then(|i| opcode.ty(i)) {
            return Some(format!("the type `.{}`", ty.text()));
        }
        let past = (self.instr.operands.len() > Rest::MOST).then_some(Rest::MOST);
        self.operands.first().or(past).map(|i| format!("operand number {}", i + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;
    use crate::input::Stmt;

    /// The parts of a statement that `lower` has not used.
    fn left(text: &str, lower: impl Fn(&Statement<'_>)) -> Option<String> {
        let sample = Sample::new(text);
        let [Stmt::Instr(instr)] = &sample.func.body[..] else { panic!("one statement") };
        let statement = Statement::new(instr);
        lower(&statement);
        statement.left_over()
    }

    fn operands(statement: &Statement<'_>) {
        (0..statement.operand_count()).for_each(|i| assert!(statement.operand(i).is_some()));
    }

    #[test]
    fn what_the_form_fixes_is_taken() {
        assert_eq!(left("bar.warp.sync -1", operands), None);
        assert_eq!(left("lop3.b32 %r1, %r2, %r3, %r4, 128", operands), None);
        assert_eq!(left("sin.approx.f32 %f1, %f2", operands), None);
    }

    #[test]
    fn untaken_modifiers_are_left() {
        let text = "add.rz.ftz.f32 %f1, %f2, %f3";
        assert_eq!(left(text, operands), Some("the modifier `.rz`".into()));
        let round = |s: &Statement<'_>| {
            operands(s);
            assert_eq!(s.take(&[(Mod::Rn, 1), (Mod::Rz, 2)]), Some(2));
        };
        assert_eq!(left(text, round), Some("the modifier `.ftz`".into()));
        let flush = |s: &Statement<'_>| {
            round(s);
            assert!(s.has(Mod::Ftz) && !s.has(Mod::Sat));
        };
        assert_eq!(left(text, flush), None);
    }

    /// Each question uses one modifier. A second modifier that would also answer it is left over.
    #[test]
    fn a_second_answer_is_left() {
        let both = |s: &Statement<'_>| {
            operands(s);
            s.ty(0);
            for _ in 0..2 {
                assert_eq!(s.any_of(&[Mod::Cta, Mod::Relaxed]), Some(Mod::Relaxed));
            }
            s.ignore(&[Mod::Global, Mod::Add]);
        };
        assert_eq!(
            left("red.relaxed.cta.global.add.u32 [%rd1], %r1", both),
            Some("the modifier `.cta`".into())
        );
    }

    #[test]
    fn untaken_types_are_left() {
        assert_eq!(left("cvt.s32.u16 %r1, %rs1", operands), Some("the type `.s32`".into()));
        let first = |s: &Statement<'_>| {
            operands(s);
            assert_eq!(s.ty(0), Some(ScalarType::S32));
        };
        assert_eq!(left("cvt.s32.u16 %r1, %rs1", first), Some("the type `.u16`".into()));
    }

    #[test]
    fn untaken_operands_are_left() {
        let two = |s: &Statement<'_>| {
            s.ty(0);
            s.operand(0);
            s.operand(2);
        };
        assert_eq!(left("add.s32 %r1, %r2, %r3", two), Some("operand number 2".into()));
        assert_eq!(left("add.s32 %r1, %r2, %r3", |s| s.take_all()), None);
    }

    #[test]
    fn the_limit_holds_everything() {
        let all = Rest::new(0..80);
        (0..80).for_each(|i| all.take(i));
        assert_eq!(all.first(), None);
        let text = format!("bar.warp.sync {}", vec!["%r1"; 70].join(", "));
        assert_eq!(left(&text, operands), Some("operand number 65".into()));
    }

    #[test]
    fn leftovers_are_refused() {
        for (text, what) in [
            ("fma.rp.bf16x2 %r1, %r2, %r3, %r4", "fma: the modifier `.rp`"),
            ("popc.b32 %r1, %r2, %r3", "popc: operand number 3"),
        ] {
            let error = Sample::new(&format!("{text}\nret")).build(100).unwrap_err();
            assert_eq!(error.to_string(), format!("not supported yet: {what}"));
        }
    }
}
