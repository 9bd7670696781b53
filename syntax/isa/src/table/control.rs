//! Control flow.

use super::prelude::*;

const CONTROL: Fact = Fact::CONTROL;

#[rustfmt::skip]
pub(super) const ROWS: &[Form] = &[
    form(F::Bra).name(&[UNI]).ops(&[label("tgt")]).facts(CONTROL.or(Fact::TERMINATES)),
    form(F::BrxIdx).name(&[req(&[Idx]), UNI]).ops(&[src("index", I32), branch_targets("tlist")]).facts(CONTROL.or(Fact::TERMINATES)).since(6, 0, 30),
    form(F::Call).name(&[UNI]).ops(&[list("ret-param", Role::Destination).optional(), target("func"), list("params", Role::Source).optional(), prototype("targets").optional()]).facts(CONTROL.or(Fact::READS).or(Fact::WRITES).or(Fact::EFFECT)),
    form(F::Ret).name(&[UNI]).facts(CONTROL.or(Fact::TERMINATES)),
    form(F::Exit).facts(CONTROL.or(Fact::TERMINATES)),
];
