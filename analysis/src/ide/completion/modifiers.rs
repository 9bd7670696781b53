//! Completion of instruction names: mnemonics, modifiers and types.

use ptx_isa::{
    Form, Gate, Group, Mod, Opcode, Place, Rule, ScalarType, Space, Suffix, Then, forms_of, gates,
};

use super::{Collector, Rank};
use crate::ide::CompletionKind;
use crate::ide::reference::needs;
use crate::ide::setting::Setting;
use crate::ide::signature_help::spelled;
use crate::text::counted;

/// All mnemonics, the frequent ones first; those without a form for the target come last.
pub(super) fn mnemonics(out: &mut Collector, setting: &Setting) {
    let frequent = ptx_isa::frequent();
    for &mnemonic in ptx_isa::mnemonics() {
        let forms = || forms_of(mnemonic).iter().map(|&id| ptx_isa::form(id));
        let form = forms().find(|form| setting.has(&form.gate));
        let detail = match (form, forms().next()) {
            (Some(form), _) => form.operands.iter().map(spelled).collect::<Vec<_>>().join(", "),
            (None, Some(form)) => format!("requires {}", needs(&form.gate)),
            (None, None) => String::new(),
        };
        let is_missing = form.is_none() && !forms_of(mnemonic).is_empty();
        let place = frequent.iter().position(|&other| other == mnemonic).unwrap_or(frequent.len());
        out.add(Rank::legal(!is_missing, 0, place as u32), mnemonic, CompletionKind::Mnemonic, detail);
    }
}

/// A possible continuation of a name, and its position in the order.
struct Candidate {
    suffix: Suffix,
    /// The smallest position among the forms that take it.
    order: (u32, u32),
    /// Whether a form that takes it is available.
    is_legal: bool,
    /// The requirements in addition to the rest of the name, in every form that takes it.
    needs: Option<Gate>,
}

/// Completions after a name such as `ld.global`: modifiers and types of the rows that fit so far.
///
/// The missing parts come first: required modifiers in the order of the manual, a state space, the type. Then come the
/// optional modifiers, those of later positions first. Continuations that the target or the version lacks come last.
pub(super) fn modifiers(out: &mut Collector, setting: &Setting, name: &str) {
    let mut words = name.split('.').filter(|word| !word.is_empty());
    let Some(mnemonic) = words.next() else { return };
    let written: Vec<Suffix> = words.filter_map(Suffix::parse).collect();
    let mut found: Vec<Candidate> = Vec::new();
    let all = forms_of(mnemonic).iter().map(|&id| ptx_isa::form(id));
    let forms: Vec<&Form> = all.filter(|form| written.iter().all(|suffix| takes(form, *suffix))).collect();
    let by_first_word =
        forms.iter().all(|form| pending(form, &written).is_some()) || is_told_by_first_word(&forms, &written);
    let choice = Choice { forms: &forms, by_first_word };
    for form in &forms {
        of_form(form, &choice, &written, setting, &mut found);
    }
    for candidate in found {
        let (group, within) = candidate.order;
        let rank = Rank::legal(candidate.is_legal, group, within);
        let require = candidate.needs.map(|gate| needs(&gate));
        let require = require.map(|text| if candidate.is_legal { text } else { format!("requires {text}") });
        match candidate.suffix {
            Suffix::Mod(m) => {
                let detail = require.unwrap_or_else(|| m.about().into_owned());
                out.add(rank, m.text(), CompletionKind::Modifier, detail);
            }
            Suffix::Type(ty) => {
                let detail = require.filter(|_| !candidate.is_legal);
                let detail = detail.unwrap_or_else(|| counted(ty.bits() as usize, "bit"));
                out.add(rank, ty.text(), CompletionKind::Type, detail);
            }
        }
    }
}

fn takes(form: &Form, suffix: Suffix) -> bool {
    match suffix {
        Suffix::Mod(m) => form.groups.iter().any(|group| group.contains(m)),
        Suffix::Type(ty) => form.types.iter().any(|set| set.contains(ty)),
    }
}

/// The opcode of a name of a form, complete or not.
fn opcode(form: &Form, suffixes: impl Iterator<Item = Suffix>) -> Option<Opcode> {
    let (mut mods, mut types) = (Vec::new(), Vec::new());
    for suffix in suffixes {
        match suffix {
            Suffix::Mod(m) => mods.push(m),
            Suffix::Type(ty) => types.push(ty),
        }
    }
    Opcode::new(form.id, &mods, &types)
}

/// The forms that fit a name so far.
struct Choice<'a> {
    forms: &'a [&'a Form],
    /// The forms are distinguished by their next required modifiers, as after `cp.async` and `tcgen05`.
    by_first_word: bool,
}

/// The first missing required modifiers of a name, if the name has no later ones.
fn next_required<'a>(form: &'a Form, written: &[Suffix]) -> Option<&'a Group> {
    let is_taken = |group: &Group| group.names.iter().any(|&m| written.contains(&Suffix::Mod(m)));
    let start = form.groups.iter().rposition(is_taken).map_or(0, |last| last + 1);
    form.groups[start..].iter().find(|group| group.required)
}

/// The position of the missing modifier that selects the instruction, which precedes all others.
fn pending(form: &Form, written: &[Suffix]) -> Option<usize> {
    form.groups.iter().position(|group| {
        let is_taken = group.names.iter().any(|&m| written.contains(&Suffix::Mod(m)));
        group.required && group.place == Place::Leading && !is_taken
    })
}

/// Whether a rule of the form requires a modifier of the group, because the name has no alternative to it.
fn is_needed(form: &Form, group: &Group, written: &[Suffix]) -> bool {
    form.rules.iter().any(|rule| match rule.then {
        Then::Needs(mods) => {
            !rule.when.none.is_empty()
                && opcode(form, written.iter().copied()).is_some_and(|opcode| rule.when.holds(&opcode))
                && mods.iter().any(|&m| group.contains(m))
        }
        _ => false,
    })
}

/// Whether each form requires a modifier next, and no group of modifiers belongs to most of the forms.
fn is_told_by_first_word(forms: &[&Form], written: &[Suffix]) -> bool {
    let next: Option<Vec<&Group>> = forms.iter().map(|form| next_required(form, written)).collect();
    next.is_some_and(|next| next.iter().all(|group| kind_of_group(group, forms, false) != REQUIRED))
}

/// The rank of a group of modifiers in the forms that fit so far.
fn kind_of_group(group: &Group, forms: &[&Form], is_past: bool) -> u32 {
    let required = |form: &&&Form| {
        form.groups.iter().any(|other| other.required && other.names.iter().any(|&m| group.contains(m)))
    };
    let count = forms.iter().filter(required).count();
    let tells_instruction = group.place == Place::Leading || 2 * count >= forms.len();
    match () {
        () if count == forms.len() => REQUIRED,
        () if group.required && group.names.len() > 1 && tells_instruction => REQUIRED,
        () if group.place == Place::Leading && !group.required => SELECTING,
        () if is_space(group) => SPACE,
        () if is_past => PAST,
        () => OPTIONAL,
    }
}

fn is_space(group: &Group) -> bool {
    group.names.iter().any(|m| Space::parse(m.text()).is_some())
}

/// The possible continuations of a name of one form, each with its position in the order.
fn following(form: &Form, choice: &Choice<'_>, written: &[Suffix]) -> Vec<(Suffix, (u32, u32))> {
    let is_taken = |group: &Group| group.names.iter().any(|&m| written.contains(&Suffix::Mod(m)));
    let last = form.groups.iter().rposition(is_taken);
    let pending = pending(form, written);
    let mut all = Vec::new();
    for (place, group) in form.groups.iter().enumerate().filter(|(_, group)| !is_taken(group)) {
        let is_next = choice.by_first_word
            && next_required(form, written).is_some_and(|next| std::ptr::eq(next, group));
        let kind = match () {
            () if pending.is_some_and(|pending| place > pending) => OPTIONAL,
            () if is_next || is_needed(form, group, written) => REQUIRED,
            () => kind_of_group(group, choice.forms, last.is_some_and(|last| place < last)),
        };
        // The optional modifiers before one that selects the instruction do not delay it.
        let place = if is_next || pending == Some(place) { 0 } else { place };
        for (i, &m) in group.names.iter().enumerate() {
            let order = if is_space(group) { order_of_space(m) as usize } else { i };
            let within = (place * 64 + order) as u32;
            all.push((Suffix::Mod(m), (kind, within)));
        }
    }
    let types_written = written.iter().filter(|suffix| matches!(suffix, Suffix::Type(_))).count();
    let types = form.types.get(types_written).into_iter().flat_map(|set| set.iter());
    let kind = if pending.is_some() { PAST } else { TYPE };
    all.extend(types.map(|ty| (Suffix::Type(ty), (kind, order_of_type(ty)))));
    all
}

fn of_form(
    form: &Form,
    choice: &Choice<'_>,
    written: &[Suffix],
    setting: &Setting,
    found: &mut Vec<Candidate>,
) {
    let base = opcode(form, written.iter().copied()).map_or(form.gate, |opcode| gates(&opcode));
    for (suffix, order) in following(form, choice, written) {
        let Some(opcode) = opcode(form, written.iter().copied().chain([suffix])) else { continue };
        if !is_possible(form, &opcode) {
            continue;
        }
        let gate = least_gate(form, &opcode, setting);
        let is_legal = setting.has(&gate);
        let needs = (gate != base || !is_legal).then_some(gate);
        match found.iter_mut().find(|other| other.suffix == suffix) {
            Some(other) => {
                // The gate of an available form, or a gate that all of them share.
                other.needs = match (other.is_legal, is_legal) {
                    (false, true) => needs,
                    (true, false) => other.needs,
                    _ => other.needs.filter(|gate| needs == Some(*gate)),
                };
                other.is_legal |= is_legal;
                other.order = other.order.min(order);
            }
            None => found.push(Candidate { suffix, order, is_legal, needs }),
        }
    }
}

/// The requirements of a name with the following type: those for an available type, if there is one.
fn least_gate(form: &Form, opcode: &Opcode, setting: &Setting) -> Gate {
    let own = gates(opcode);
    let next = form.types.get(opcode.types().count());
    let (mods, types): (Vec<Mod>, Vec<ScalarType>) = (opcode.mods().collect(), opcode.types().collect());
    let with_type = next.into_iter().flat_map(|set| set.iter()).filter_map(|ty| {
        let longer = Opcode::new(form.id, &mods, &[types.as_slice(), &[ty]].concat())?;
        is_possible(form, &longer).then(|| gates(&longer))
    });
    let all: Vec<Gate> = with_type.collect();
    match all.iter().any(|gate| setting.has(gate)) {
        true => own,
        false => all.first().copied().unwrap_or(own),
    }
}

/// The kinds of continuations, in the order in which they are offered.
const REQUIRED: u32 = 0;
/// Selects a variant of the instruction.
const SELECTING: u32 = 1;
const SPACE: u32 = 2;
const TYPE: u32 = 3;
const OPTIONAL: u32 = 4;
const PAST: u32 = 5;

fn order_of_space(m: Mod) -> u32 {
    let common = ["global", "shared", "param", "const", "local"];
    common.iter().position(|name| *name == m.text()).unwrap_or(common.len()) as u32
}

/// 32-bit types come first, then those of 64, 16 and 8 bits; numbers before packed types.
pub(super) fn order_of_type(ty: ScalarType) -> u32 {
    let width = [32, 64, 16, 8].iter().position(|&bits| bits == ty.bits()).unwrap_or(4) as u32;
    let is_plain = ty == ScalarType::Pred || ty.text()[1..].bytes().all(|byte| byte.is_ascii_digit());
    let place = ScalarType::ALL.iter().position(|&other| other == ty).unwrap_or_default() as u32;
    u32::from(!is_plain) << 16 | width << 8 | place
}

/// Whether further suffixes may complete the instruction name of a form, according to its rules.
fn is_possible(form: &Form, opcode: &Opcode) -> bool {
    // A rule that a later modifier may satisfy is not violated yet.
    let holds = |rule: &&Rule| rule.when.none.is_empty() && rule.when.holds(opcode);
    let rules = || form.rules.iter().filter(holds);
    let typed = form.types.iter().enumerate().all(|(position, &set)| {
        let left = |ty| {
            rules().all(|rule| match rule.then {
                Then::Types(at, set) if usize::from(at) == position => set.contains(ty),
                _ => true,
            })
        };
        match opcode.ty(position) {
            Some(ty) => left(ty),
            None => set.iter().any(left),
        }
    });
    typed
        && rules().all(|rule| match rule.then {
            Then::Excludes(mods) => !mods.iter().any(|&m| opcode.has(m)),
            Then::SameType(a, b) => opcode.ty(a.into()).zip(opcode.ty(b.into())).is_none_or(|(a, b)| a == b),
            Then::Types(..) | Then::Needs(_) | Then::Gate(_) | Then::Operand(..) => true,
        })
}
