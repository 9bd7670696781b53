//! Reference pages: the forms of each mnemonic, added to its manual page, and the index.

use std::fmt::Write as _;

use ptx_isa::{Directive, Form, Gate, Group, Mod, Rule, SpecialReg, Then, TypeSet, When, form, forms_of};

use crate::check::{LINTS, listed};
use crate::ide::operands;
use crate::ide::setting::Setting;
use crate::ide::signature_help::spelled;

/// A page of the reference: its path in the folder, and its text in Markdown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    pub path: String,
    pub text: String,
}

/// The maximum number of alternatives that a syntax line shows.
const SPELLED: usize = 6;
const SPELLED_TYPES: usize = 3;

/// The syntax line of a form: `add{.rn|rz|rm|rp}{.ftz}{.sat}.f32 d, a, b`.
pub(super) fn syntax(form: &Form) -> String {
    let mut line = form.mnemonic().to_owned();
    for group in form.groups {
        let names: Vec<&str> = group.names.iter().take(SPELLED).map(|m| m.text()).collect();
        let more = if group.names.len() > SPELLED { "|…" } else { "" };
        let choice = format!(".{}{more}", names.join("|"));
        line += &if group.required { choice } else { format!("{{{choice}}}") };
    }
    for (i, set) in form.types.iter().enumerate() {
        let types: Vec<&str> = set.iter().map(|ty| ty.text()).collect();
        let choice = match types.as_slice() {
            few if few.len() <= SPELLED_TYPES => format!(".{}", few.join("|")),
            _ if form.types.len() == 1 => ".type".to_owned(),
            _ => format!(".type{}", i + 1),
        };
        let is_required = i < usize::from(form.required_types);
        line += &if is_required { choice } else { format!("{{{choice}}}") };
    }
    let operands: Vec<String> = form.operands.iter().map(spelled).collect();
    if !operands.is_empty() {
        let _ = write!(line, " {}", operands.join(", "));
    }
    line
}

/// The requirements of a form, in words: `PTX ISA 7.0, sm_80 or higher`.
pub(super) fn needs(gate: &Gate) -> String {
    if *gate == Gate::BASE {
        return "all versions and targets".to_owned();
    }
    let mut text = format!("PTX ISA {}", gate.ptx);
    if gate.targets != Gate::BASE.targets {
        let _ = write!(text, ", {}", gate.targets);
    }
    if let Some(removed) = gate.removed {
        let _ = write!(text, "; removed in PTX ISA {} for {}", removed.since, removed.targets);
    }
    text
}

/// The additional requirements of a modifier in a form, if it has any.
pub(super) fn modifier_needs(form: &Form, m: Mod) -> Option<Gate> {
    let gates = form.rules.iter().filter_map(|rule| match rule.then {
        Then::Gate(gate) if rule.when == (When { any: rule.when.any, ..When::ALWAYS }) => {
            rule.when.any.contains(&m).then_some(gate)
        }
        _ => None,
    });
    gates.reduce(Gate::and)
}

/// The forms of a mnemonic as a table: modifiers, types, operands and requirements.
fn forms_table(mnemonic: &str) -> String {
    let mut out =
        String::from("| no. | form | modifiers | types | rules | requires |\n|---|---|---|---|---|---|\n");
    for (number, &id) in forms_of(mnemonic).iter().enumerate() {
        let form = form(id);
        let cells =
            [format!("`{}`", syntax(form)), modifiers(form), types(form), rules(form), form_needs(form)];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(out, "| {} | {} |", number + 1, cells.join(" | "));
    }
    out
}

/// The alternatives of a form's groups that its syntax line does not show.
fn modifiers(form: &Form) -> String {
    let long = form.groups.iter().filter(|group| group.names.len() > SPELLED);
    let spelled = |group: &Group| {
        let names: Vec<String> = group.names.iter().map(|m| format!("`.{}`", m.text())).collect();
        names.join(" ")
    };
    long.map(spelled).collect::<Vec<_>>().join("; ")
}

fn type_names(set: TypeSet) -> String {
    if set == TypeSet::ALL {
        return "any".to_owned();
    }
    set.iter().map(|ty| format!("`.{}`", ty.text())).collect::<Vec<_>>().join(" ")
}

fn types(form: &Form) -> String {
    form.types.iter().map(|&set| type_names(set)).collect::<Vec<_>>().join("; ")
}

/// Restrictions that the groups and types alone cannot express.
fn rules(form: &Form) -> String {
    let parts = form.rules.iter().filter_map(|rule| {
        let what = match rule.then {
            Then::Types(position, set) if form.types.len() > 1 => {
                format!("type {} is {}", position + 1, type_names(set))
            }
            Then::Types(_, set) => type_names(set),
            Then::Needs(mods) => format!("requires {}", any_of(mods)),
            Then::Excludes(mods) => format!("excludes {}", any_of(mods)),
            Then::SameType(a, b) => format!("types {} and {} must be equal", a + 1, b + 1),
            Then::Gate(_) | Then::Operand(..) => return None,
        };
        Some(format!("{}: {what}", condition(&rule.when)))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Modifiers of which one is written.
pub(super) fn any_of(mods: &[Mod]) -> String {
    listed(&mods.iter().map(|m| format!("`.{}`", m.text())).collect::<Vec<_>>(), "or")
}

/// The form's requirements, and the additional requirements of its parts.
fn form_needs(form: &Form) -> String {
    let mut parts = vec![needs(&form.gate)];
    parts.extend(form.rules.iter().filter_map(|rule| match rule {
        Rule { when, then: Then::Gate(gate) } => Some(format!("{}: {}", condition(when), needs(gate))),
        _ => None,
    }));
    parts.join("; ")
}

/// The condition of a rule, in words.
fn condition(when: &When) -> String {
    let mut parts: Vec<String> =
        [when.any, when.and].into_iter().filter(|mods| !mods.is_empty()).map(any_of).collect();
    let sets = [when.first, when.second, when.third];
    parts.extend(sets.into_iter().filter(|&set| set != TypeSet::ALL).map(type_names));
    let mut text = parts.join(" and ");
    if !when.none.is_empty() {
        let _ = write!(text, " without {}", any_of(when.none));
    }
    if text.is_empty() { "always".to_owned() } else { text.trim_start().to_owned() }
}

/// The page of a mnemonic: its manual page and its forms. `None` for other words.
pub fn instruction_page(mnemonic: &str) -> Option<String> {
    let page = ptx_isa::doc(mnemonic)?;
    let operands = match operands::table(mnemonic) {
        table if table.is_empty() => table,
        table => format!("## Operands\n\n{table}\n"),
    };
    let forms = forms_table(mnemonic);
    Some(format!("{}\n\n{operands}## Forms\n\n{forms}", page.trim_end()))
}

/// The forms of a mnemonic as a list for hovers, with the current one marked, and the requirements
/// that the file does not meet. Empty if there is only one, which the manual page already shows.
pub(super) fn marked_forms(current: &'static Form, setting: &Setting) -> String {
    /// The number of forms shown besides the current one; more would be too long for a hover.
    const SHOWN: usize = 7;
    // Forms with the same line differ only in rules that the line does not show.
    let mut lines: Vec<(String, bool, String)> = Vec::new();
    for &id in forms_of(current.mnemonic()) {
        let form = form(id);
        let is_current = form.id == current.id;
        let lacks = setting.lacks(&form.gate).map_or(String::new(), |lacks| format!(": {lacks}"));
        let line = syntax(form);
        match lines.iter_mut().find(|(known, ..)| *known == line) {
            Some(known) if is_current || lacks.is_empty() && !known.1 => *known = (line, is_current, lacks),
            Some(_) => {}
            None => lines.push((line, is_current, lacks)),
        }
    }
    if lines.len() == 1 {
        return String::new();
    }
    let at = lines.iter().position(|(_, is_current, _)| *is_current).unwrap_or(0);
    let first = at.saturating_sub(SHOWN / 2).min(lines.len().saturating_sub(SHOWN + 1));
    let mut out = String::new();
    for (line, is_current, lacks) in lines.iter().skip(first).take(SHOWN + 1) {
        let _ = match is_current {
            true => writeln!(out, "- **`{line}`** ◂ this form{lacks}"),
            false => writeln!(out, "- `{line}`{lacks}"),
        };
    }
    if lines.len() > SHOWN + 1 {
        let _ = writeln!(out, "- {} more", lines.len() - SHOWN - 1);
    }
    out
}

/// The whole reference: instructions, diagnostics, directives and special registers, with an index. The folder has the
/// layout of an mdBook book, but can be read without mdBook.
pub fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    let mut index = String::from("# PTX reference\n\n");
    let mut summary =
        String::from("# Summary\n\n[PTX reference](index.md)\n\n- [Instructions](instructions.md)\n");
    let mut list = String::from(
        "# Instructions\n\nIn the examples, register names tell the type: `%p` is a predicate; `%h`, `%r`, `%rd` and `%q` are untyped, 16, 32, 64 and\n128 bits wide; `%f` and `%fd` are 32-bit and 64-bit floats. `smem` and `mbar` are in shared memory, `data` is in global memory, `p` is a parameter, `image` is a\ntexture and `surface` is a surface.\n\n| instruction | forms | description |\n|---|---|---|\n",
    );
    for mnemonic in ptx_isa::mnemonics() {
        let Some(text) = instruction_page(mnemonic) else { continue };
        let path = format!("instructions/{mnemonic}.md");
        let _ = writeln!(summary, "  - [{mnemonic}]({path})");
        let count = forms_of(mnemonic).len();
        let about = about(&text).replace('|', "\\|");
        let _ = writeln!(list, "| [{mnemonic}]({path}) | {count} | {about} |");
        pages.push(Page { path, text });
    }
    pages.push(Page { path: "instructions.md".to_owned(), text: list });
    summary += "- [Diagnostics](diagnostics.md)\n";
    let mut list =
        String::from("# Diagnostics\n\n| code | name | level | description |\n|---|---|---|---|\n");
    let mut lints = LINTS.to_vec();
    lints.sort_by_key(|lint| lint.code);
    for lint in lints {
        let path = format!("diagnostics/{}.md", lint.code);
        let _ = writeln!(summary, "  - [{} {}]({path})", lint.code, lint.name);
        let (code, name, level) = (lint.code, lint.name, lint.default.text());
        let _ = writeln!(list, "| [{code}]({path}) | {name} | {level} | {} |", lint.summary.trim());
        pages.push(Page { path, text: lint.page.to_owned() });
    }
    pages.push(Page { path: "diagnostics.md".to_owned(), text: list });
    summary += "- [Directives](directives.md)\n- [Special registers](registers.md)\n";
    pages.push(Page { path: "directives.md".to_owned(), text: directives() });
    pages.push(Page { path: "registers.md".to_owned(), text: registers() });
    let _ = write!(
        index,
        "- [Instructions](instructions.md): {} mnemonics\n- [Diagnostics](diagnostics.md): {} codes\n\
         - [Directives](directives.md)\n- [Special registers](registers.md)\n",
        ptx_isa::mnemonics().len(),
        LINTS.len()
    );
    pages.push(Page { path: "index.md".to_owned(), text: index });
    pages.push(Page { path: "SUMMARY.md".to_owned(), text: summary });
    pages
}

/// The first sentence of a manual page.
fn about(page: &str) -> String {
    let lines = page.lines().skip_while(|line| !line.starts_with(char::is_uppercase));
    let paragraph = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
    paragraph[..end].to_owned()
}

fn directives() -> String {
    let mut out = String::from("# Directives\n\n| directive | description | requires |\n|---|---|---|\n");
    for directive in Directive::ALL {
        let syntax = directive.syntax.replace('|', "\\|");
        let about = directive.about.replace('|', "\\|");
        let _ = writeln!(out, "| `{syntax}` | {about} | {} |", needs(&directive.gate));
    }
    out
}

fn registers() -> String {
    let mut out = String::from(
        "# Special registers\n\n| register | type | description | requires |\n|---|---|---|---|\n",
    );
    for register in SpecialReg::ALL {
        let (name, ty, about) = (register.text(), register.ty().text(), register.about());
        let _ = writeln!(out, "| `{name}` | `.{ty}` | {about} | {} |", needs(&register.gate()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn forms_as_lines() {
        let lines: Vec<String> = forms_of("setp").iter().map(|&id| syntax(form(id))).collect();
        expect![[r#"
            setp.eq|ne|lt|le|gt|ge|…{.and|or|xor}.type p, a, b, c?
            setp.eq|ne|lt|le|gt|ge|…{.and|or|xor}{.ftz}.f32|f64 p, a, b, c?
            setp.eq|ne|lt|le|gt|ge|…{.and|or|xor}{.ftz}.type p, a, b, c?"#]]
        .assert_eq(&lines.join("\n"));
        expect![[r#"
            | no. | form | modifiers | types | rules | requires |
            |---|---|---|---|---|---|
            | 1 | `redux.sync.add\|min\|max\|and\|or\|xor{.abs}{.NaN}.type d, a, membermask` |  | `.b32` `.u32` `.s32` `.f32` | `.add`: `.u32` `.s32`; `.min` or `.max`: `.u32` `.s32` `.f32`; `.and`, `.or` or `.xor`: `.b32`; `.abs` or `.NaN`: `.f32` | PTX ISA 7.0, sm_80 or higher; `.f32`: PTX ISA 8.6, sm_100a, sm_103a, sm_107a, sm_100f, sm_103f, sm_107f |
        "#]].assert_eq(&forms_table("redux"));
    }

    /// Links refer to existing pages, relative to the page that contains them.
    #[test]
    fn links_lead_somewhere() {
        let pages = pages();
        let mut count = 0;
        for page in &pages {
            let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            // Code may contain brackets followed by parentheses that are not links.
            let prose = page.text.split("```").step_by(2).flat_map(|text| text.split('`').step_by(2));
            for link in prose.flat_map(|text| text.split("](").skip(1)) {
                let target = link.split(')').next().unwrap();
                if target.starts_with("https://") {
                    continue;
                }
                let mut path: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
                for part in target.split('#').next().unwrap().split('/') {
                    match part {
                        ".." => assert!(path.pop().is_some(), "{}: {target}", page.path),
                        part => path.push(part),
                    }
                }
                let path = path.join("/");
                assert!(pages.iter().any(|page| page.path == path), "{}: {target}", page.path);
                count += 1;
            }
        }
        assert!(count > 2 * ptx_isa::mnemonics().len(), "{count}");
    }

    /// Every page is linked.
    #[test]
    fn the_reference_is_complete() {
        let pages = pages();
        let summary = &pages.iter().find(|page| page.path == "SUMMARY.md").unwrap().text;
        for mnemonic in ptx_isa::mnemonics() {
            assert!(
                pages.iter().any(|page| page.path == format!("instructions/{mnemonic}.md")),
                "{mnemonic}"
            );
        }
        for lint in LINTS {
            assert!(pages.iter().any(|page| page.path == format!("diagnostics/{}.md", lint.code)));
        }
        for page in pages.iter().filter(|page| page.path != "SUMMARY.md") {
            assert!(summary.contains(&format!("]({})", page.path)), "{}", page.path);
            let is_table = page.path.starts_with("instructions/") && page.text.contains("| no. | form |");
            assert!(is_table || !page.path.starts_with("instructions/"), "{}", page.path);
            // Cells contain no bar characters.
            let mut rows = page.text.lines().zip(page.text.lines().skip(1));
            let columns = |row: &str| row.replace("\\|", "").matches('|').count();
            let odd =
                rows.find(|(a, b)| a.starts_with('|') && b.starts_with('|') && columns(a) != columns(b));
            assert_eq!(odd, None, "{}", page.path);
        }
    }
}
