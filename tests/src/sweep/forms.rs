//! The names of forms that compute in one thread, taken from the instruction table.
//!
//! Each form has enough names that every two of its modifiers and types that can be combined occur in one of them.

use super::{OPERANDS, case, compare_of, matrix, moves, wmma};
use crate::case::{Case, Compare, input};
use ptx_isa::{
    Class, ExpectedLanes, ExpectedType, Facts, Form, FormId, Gate, Mod, Opcode, PtxVersion, Role, ScalarType,
    Sm, Values, form, gates, resolve, signature,
};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the language that the kernels are written in.
pub(super) const VERSION: PtxVersion = PtxVersion::new(9, 0);

const NOT_ZERO: &str = "divisors that are not zero are chosen elsewhere";
const CARRIES: &str = "carries go from one instruction to the next";
const POLICIES: &str = "policies are numbers that only caches read";
const OWN: &str = "vectors, addresses and clusters have kernels of their own";
const STEPS: &str = "how many bits there are between the steps of a video instruction is not written";
const RESPONSES: &str = "responses of 128 bits have kernels of their own";

/// Forms without kernels, and the reasons.
const ABSENT: &[(FormId, &str)] = &[
    (FormId::DivInt, NOT_ZERO),
    (FormId::RemInt, NOT_ZERO),
    (FormId::AddCc, CARRIES),
    (FormId::Addc, CARRIES),
    (FormId::SubCc, CARRIES),
    (FormId::Subc, CARRIES),
    (FormId::MadCc, CARRIES),
    (FormId::Madc, CARRIES),
    (FormId::CreatepolicyFractional, POLICIES),
    (FormId::CreatepolicyCvt, POLICIES),
    (FormId::Mov, OWN),
    (FormId::MovVector, OWN),
    (FormId::Cvta, OWN),
    (FormId::Mapa, OWN),
    (FormId::Getctarank, OWN),
    (FormId::MbarrierPendingCount, OWN),
    (FormId::ClusterlaunchcontrolIsCanceled, RESPONSES),
    (FormId::ClusterlaunchcontrolGetFirstCtaid, RESPONSES),
    (FormId::ClusterlaunchcontrolGetFirstCtaidDim, RESPONSES),
    (FormId::CvtToScale4, "ptxas takes the name and no operands that one would write"),
    (FormId::Fns, "it has a kernel of its own"),
    (FormId::Istypep, "references are not executed, objects have kernels of their own"),
];

/// The reason why a name has no kernel although its form computes in one thread.
fn absence(opcode: &Opcode) -> Option<&'static str> {
    let has = |modes: &[Mod]| modes.iter().any(|&mode| opcode.has(mode));
    let is = |position, ty| opcode.ty(position) == Some(ty);
    match opcode.form {
        FormId::CvtToNarrow4 => Some("which random bits round which number is shown in a figure only"),
        FormId::FmaHalf if opcode.has(Mod::Oob) => {
            Some("which NaN stands for what lies outside of a tensor is not written")
        }
        FormId::FmaHalf if has(&[Mod::Rz, Mod::Rm, Mod::Rp]) => {
            Some("ptxas takes a mode for `bf16`, which the manual does not have, and then reads `f16`")
        }
        FormId::Cvt if opcode.has(Mod::Ftz) && is(0, ScalarType::F16) && has(&[Mod::Rm, Mod::Rp]) => {
            Some("ptxas does not flush here, though the manual says so")
        }
        FormId::Vmad if has(&[Mod::Po, Mod::Sat, Mod::Shr7, Mod::Shr15]) => Some(STEPS),
        FormId::Vshl if has(&[Mod::Sat, Mod::Add, Mod::Min, Mod::Max]) => Some(STEPS),
        FormId::Vadd | FormId::Vsub | FormId::Vabsdiff | FormId::Vmin | FormId::Vmax | FormId::Vshr
            if has(&[Mod::Min, Mod::Max]) || opcode.has(Mod::Sat) && opcode.has(Mod::Add) =>
        {
            Some(STEPS)
        }
        FormId::Vadd | FormId::Vsub | FormId::Vabsdiff if opcode.has(Mod::Sat) && is(0, ScalarType::U32) => {
            Some("ptxas saturates these to `u32` at zero only")
        }
        FormId::Testp if opcode.mods().next().is_none() => {
            Some("ptxas takes the name without a property, which the manual does not have")
        }
        _ => None,
    }
}

/// The targets of the kernels, lowest first. Targets without suffix stand for all later ones.
const TARGETS: &[Sm] = &[
    Sm::new(75),
    Sm::new(80),
    Sm::new(90),
    Sm::new(100),
    Sm::new(120),
    Sm { number: 100, feature: ptx_isa::Feature::Arch },
    Sm { number: 120, feature: ptx_isa::Feature::Arch },
];

/// The operand with the mask of the participating threads. All participate.
const MEMBERS: &str = "membermask";

/// Whether a form computes registers from registers and constants (of one thread or of the warp), and has no other
/// effect.
fn computes(form: &Form) -> bool {
    let classes = Class::VALUE
        .or(Class::PREDICATE)
        .or(Class::ANY_PAIR)
        .or(Class::SINK)
        .or(Class::SPECIAL)
        .or(Class::VECTOR);
    let warp = form.operands.iter().any(|operand| operand.name == MEMBERS);
    let facts = if warp { Facts::COMMUTES.or(Facts::CONVERGENT) } else { Facts::COMMUTES };
    form.facts.0 & !facts.0 == 0
        && !form.types.is_empty()
        && !form.operands.is_empty()
        && form.operands.iter().all(|operand| operand.class.and_not(classes) == Class(0))
}

/// The number of names with kernels, and of their forms; and the names without kernels, by reason.
pub fn coverage() -> (usize, usize, BTreeMap<&'static str, Vec<String>>) {
    let (mut present, mut forms) = (0, 0);
    let mut absent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for form in FormId::ALL.iter().map(|&id| form(id)).filter(|form| computes(form)) {
        if let Some(&(_, reason)) = ABSENT.iter().find(|(id, _)| *id == form.id) {
            absent.entry(reason).or_default().push(format!("{:?}", form.id));
            continue;
        }
        forms += 1;
        for (name, opcode) in names(form) {
            match absence(&opcode) {
                Some(reason) => absent.entry(reason).or_default().push(name),
                None => present += 1,
            }
        }
    }
    for (name, opcode) in matrix::all_names().chain(wmma::all_names()).chain(moves::all_names()) {
        let reason = matrix::absence(&opcode).or(wmma::absence(&opcode)).or(moves::absence(&opcode));
        match reason {
            Some(reason) => absent.entry(reason).or_default().push(name),
            None => present += 1,
        }
    }
    (present, forms + matrix::FORMS.len() + wmma::FORMS.len() + moves::FORMS.len(), absent)
}

/// The lowest target that has an instruction. `None` if no target of the comparison does.
pub(super) fn target(opcode: &Opcode) -> Option<Sm> {
    TARGETS.iter().copied().find(|&sm| runs_on(opcode, sm))
}

pub(super) fn runs_on(opcode: &Opcode, sm: Sm) -> bool {
    let gate = gates(opcode);
    // For sm_75, ptxas encodes this as words that its own disassembler does not know.
    let unknown = opcode.form == FormId::Cvt && opcode.has(Mod::Satfinite);
    let gate = if unknown { gate.and(Gate::since(7, 0, 80)) } else { gate };
    gate.check(VERSION, sm).is_ok()
}

/// The resolved names of a form.
pub(super) fn names(form: &Form) -> Vec<(String, Opcode)> {
    let mut slots: Vec<Vec<Option<&'static str>>> = Vec::new();
    for group in form.groups {
        let none = (!group.required).then_some(None);
        slots.push(none.into_iter().chain(group.names.iter().map(|m| Some(m.text()))).collect());
    }
    for types in form.types {
        slots.push(types.iter().map(|ty| Some(ty.text())).collect());
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut choice = vec![0; slots.len()];
    loop {
        let words: Vec<&str> = slots.iter().zip(&choice).filter_map(|(slot, &at)| slot[at]).collect();
        if let Ok(opcode) = resolve(form.mnemonic(), &words)
            && opcode.form == form.id
            && target(&opcode).is_some()
        {
            let places = (0..slots.len()).flat_map(|i| (0..=i).map(move |j| (i, j)));
            let mut new = false;
            for (i, j) in places {
                new |= seen.insert((i, choice[i], j, choice[j]));
            }
            if new {
                found.push((format!("{}.{}", form.mnemonic(), words.join(".")), opcode));
            }
        }
        let Some(next) = (0..slots.len()).rev().find(|&i| choice[i] + 1 < slots[i].len()) else {
            return found;
        };
        choice[next] += 1;
        choice[next + 1..].fill(0);
    }
}

/// A constant that an operand accepts.
fn constant(values: Values, name: &str) -> u64 {
    let random = name.bytes().fold(7, |hash: u64, byte| hash.wrapping_mul(31) + u64::from(byte));
    match values {
        Values::Range(from, to) => from as u64 + random % (to - from + 1) as u64,
        _ => random % 256,
    }
}

/// The type of a register for an operand, from which the values of its buffer are chosen.
fn register(opcode: &Opcode, ty: ExpectedType, values: Values) -> &'static str {
    let shifts =
        matches!(opcode.form, FormId::Shl | FormId::Shr | FormId::Shf | FormId::Szext | FormId::Bmsk);
    match ty {
        // Values for which the hardware's error is small.
        ExpectedType::Typed(ScalarType::F32) if matches!(opcode.form, FormId::Sin | FormId::Cos) => "angle",
        ExpectedType::Typed(ScalarType::F32)
            if matches!(opcode.form, FormId::DivFull | FormId::DivF32) && approximates(opcode) =>
        {
            "s32"
        }
        ExpectedType::Typed(ty) => ty.text(),
        ExpectedType::Integer(32) if values == Values::Range(0, 255) => "field",
        ExpectedType::Integer(32) if shifts => "shift",
        ExpectedType::Integer(16) => "b16",
        ExpectedType::Integer(64) => "b64",
        _ => "b32",
    }
}

fn approximates(opcode: &Opcode) -> bool {
    opcode.has(Mod::Approx) || opcode.has(Mod::Full)
}

/// The allowed difference of results.
fn compare(opcode: &Opcode, result: &str) -> Compare {
    let approximate = approximates(opcode);
    if opcode.form == FormId::CvtTf32 {
        return Compare::SINGLE;
    }
    match compare_of(result) {
        // The manual allows a relative error of 2^-11.
        Compare::F32 { .. } if approximate && opcode.form == FormId::Tanh => {
            Compare::F32 { ulps: 1 << 12, absolute: 0.0 }
        }
        Compare::F32 { .. } if approximate => Compare::F32 { ulps: 4, absolute: 2e-6 },
        // The low word of these results is zero.
        Compare::F64 { .. } if approximate => Compare::F64 { ulps: 1 << 33 },
        Compare::F16 { .. } if approximate => Compare::F16 { ulps: 1 },
        Compare::Bf16 { .. } if approximate => Compare::Bf16 { ulps: 1 },
        compare => compare,
    }
}

/// The kernel of a name with `count` operands.
fn kernel(name: &str, opcode: &Opcode, count: usize) -> Option<Case> {
    let mut written: Vec<String> = Vec::new();
    let mut sources = Vec::new();
    let mut result = None;
    for operand in signature(opcode).operands.iter().take(count) {
        if operand.role == Role::Destination {
            let ty = match operand.ty {
                ExpectedType::Typed(ty) => ty.text(),
                _ => "b32",
            };
            let pair = operand.class.intersects(Class::PAIR);
            result = Some(match operand.class {
                class if class.intersects(Class::PREDICATE) && ty == "pred" => {
                    if pair {
                        "preds"
                    } else {
                        "pred"
                    }
                }
                _ if pair => "b32|pred",
                _ => ty,
            });
            written.push("{d}".to_owned());
            continue;
        }
        let ty = register(opcode, operand.ty, operand.values);
        if operand.name == MEMBERS {
            written.push("-1".to_owned());
            continue;
        }
        if !operand.class.intersects(Class::REGISTER.or(Class::PREDICATE).or(Class::VECTOR)) {
            written.push(constant(operand.values, name).to_string());
            continue;
        }
        let lanes = match operand.lanes {
            ExpectedLanes::Of(&[lanes]) if !operand.class.intersects(Class::REGISTER) => lanes,
            _ => 1,
        };
        let place = |i: usize| format!("{{{}}}", OPERANDS[i]);
        let first = sources.len();
        sources.extend((0..lanes).map(|_| ty));
        if sources.len() > OPERANDS.len() {
            return None;
        }
        let places: Vec<String> = (first..sources.len()).map(place).collect();
        written.push(if lanes == 1 { places.concat() } else { format!("{{{}}}", places.join(", ")) });
    }
    let result = result?;
    let text = format!("{name} {};", written.join(", "));
    Some(case(&text, result, &sources, compare(opcode, result)))
}

/// The kernels of every form that computes in one thread.
pub(super) fn all() -> Vec<Case> {
    let present = |form: &&Form| computes(form) && !ABSENT.iter().any(|(id, _)| *id == form.id);
    let forms = FormId::ALL.iter().map(|&id| form(id)).filter(present);
    let mut cases = Vec::new();
    for (name, opcode) in forms.flat_map(names).filter(|(_, opcode)| absence(opcode).is_none()) {
        let signature = signature(&opcode);
        let most = signature.operands.len();
        if signature.least == most {
            cases.extend(kernel(&name, &opcode, most));
            continue;
        }
        // Some names have a choice of operand counts, others only seem to.
        let possible = [signature.least, most].into_iter().filter_map(|count| kernel(&name, &opcode, count));
        cases.extend(possible.filter(|case| input(&case.ptx, "").is_ok()));
    }
    cases
}

/// Whether a pair of elements of this type takes less than 16 bits and so needs its own register class.
pub(super) fn is_byte_pair(ty: &str) -> bool {
    ScalarType::parse(ty).is_some_and(|ty| ty.bits() == 8 && ty.kind() == ptx_isa::TypeKind::Packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_choices_of_a_name_stand_together() {
        let of = |id| names(form(id)).into_iter().map(|(name, _)| name).collect::<Vec<String>>();
        assert_eq!(of(FormId::Selp).len(), 11);
        assert!(of(FormId::AddHalf).contains(&"add.rn.ftz.f16".to_owned()));
        assert!(!computes(form(FormId::MmaF16)) && computes(form(FormId::Selp)));
    }
}
