//! A function after a stage of the compiler, as text, with each line linked to its statement.

use ptx_backend::compile::{stage_about, stages as names};
use ptx_backend::input::SrcId;
use text_size::{TextRange, TextSize};

use crate::callees::inlined;
use crate::compile::{functions, stage_of};
use crate::db::{Database, Db, SourceFile};
use crate::ide::SassView;
use crate::ide::sass::{Lines, reason};
use crate::items::Item;
use crate::locate::spot;
use crate::lower::lower;
use crate::module::architecture;

/// A stage of the compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stage {
    pub name: &'static str,
    /// What the text after it shows, or the reasons for the position of the phase.
    pub about: String,
}

/// The stages of the compiler in their order.
pub fn stages() -> Vec<Stage> {
    names().map(|name| Stage { name, about: stage_about(name) }).collect()
}

/// The function with a name after a stage.
///
/// # Errors
/// Lists the stages if there is none of that name.
pub fn stage_view(
    db: &Database,
    file: SourceFile,
    function: &str,
    stage: &str,
) -> Result<Option<SassView>, String> {
    let stage = known(stage)?;
    let item = functions(db, file).find(|item| item.name(db) == function);
    Ok(item.and_then(|item| view(db, file, item, stage)))
}

/// The function around an offset after a stage.
///
/// # Errors
/// As [`stage_view`].
pub fn stage_view_at(
    db: &Database,
    file: SourceFile,
    offset: TextSize,
    stage: &str,
) -> Result<Option<SassView>, String> {
    let stage = known(stage)?;
    Ok(spot(db, file, offset).and_then(|spot| view(db, file, spot.item, stage)))
}

fn known(stage: &str) -> Result<&'static str, String> {
    names().find(|known| *known == stage).ok_or_else(|| {
        let all: Vec<&str> = names().collect();
        format!("unknown compiler stage `{stage}`; the stages are {}", all.join(", "))
    })
}

fn view(db: &dyn Db, file: SourceFile, item: Item<'_>, stage: &'static str) -> Option<SassView> {
    if !lower(db, item).has_body {
        return None;
    }
    let (Some(found), Some(sm)) = (stage_of(db, item, stage), architecture(db, file)) else {
        return Some(reason(db, file, item));
    };
    if found.texts.is_empty() && found.error.is_some() {
        return Some(reason(db, file, item));
    }
    let mut out = Lines::default();
    out.push(&format!("// {} for {sm}: {stage}", item.name(db)), None, None);
    if found.texts.is_empty() {
        out.push("// this stage does not run at this optimization level", None, None);
    }
    let inlined = inlined(db, item).as_ref().ok().and_then(Option::as_ref).filter(|_| found.is_inlined);
    let place = |line: &str| -> Option<TextRange> {
        let own = SrcId(statement(line)?);
        let own = inlined.map_or(own, |inlined| inlined.own(own));
        Some(lower(db, item).map.statement(own)? + item.offset(db))
    };
    for (at, text) in found.texts.iter().enumerate() {
        if found.texts.len() > 1 {
            out.push(&format!("// run {} of {}", at + 1, found.texts.len()), None, None);
        }
        for line in text.lines() {
            out.push(line, place(line), None);
        }
    }
    if let Some(error) = found.error {
        out.push(&format!("// {error}"), None, None);
    }
    Some(SassView { has_code: true, ..out.finish(item.name(db), None) })
}

/// The number of the statement from which a line of the text comes: `%v1:r = IADD3 … #7`, or `#7   B------… IADD3 …`.
fn statement(line: &str) -> Option<u32> {
    let first = line.split_whitespace().next()?.strip_prefix('#');
    let number = first.or_else(|| line.rsplit_once(" #").map(|(_, number)| number))?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = ".version 7.0\n.target sm_80\n.address_size 64\n\
        .func (.reg .b32 r) twice(.reg .b32 a) { add.s32 r, a, a; ret; }\n\
        .entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>;\n.reg .b32 %r<3>;\nld.param.u64 %rd1, [p];\n\
        ld.global.b32 %r1, [%rd1];\ncall (%r2), twice, (%r1);\nst.global.b32 [%rd1], %r2;\nret;\n}\n";

    fn lines(stage: &str) -> Vec<String> {
        let db = Database::default();
        let file = db.add_file(KERNEL);
        let view = stage_view(&db, file, "k", stage).unwrap().unwrap();
        assert_eq!(view.lines.len(), view.text.lines().count());
        let text = |range: &Option<TextRange>| range.map_or("", |range| &KERNEL[range]);
        view.text.lines().zip(&view.lines).map(|(line, range)| format!("{line} | {}", text(range))).collect()
    }

    /// Lines lead to the statements of the function, also those of inlined functions.
    #[test]
    fn lines_lead_to_statements() {
        let has = |lines: &[String], code: &str, statement: &str| {
            lines.iter().any(|line| line.contains(code) && line.ends_with(&format!("| {statement}")))
        };
        for stage in ["ori", "mach"] {
            let lines = lines(stage);
            assert_eq!(lines[0], format!("// k for sm_80: {stage} | "));
            assert!(has(&lines, "LDG", "ld.global.b32 %r1, [%rd1];"), "{lines:#?}");
            assert!(has(&lines, "IADD3", "call (%r2), twice, (%r1);"), "{lines:#?}");
        }
    }

    #[test]
    fn all_stages_are_described() {
        for Stage { name, about } in stages() {
            assert!(!about.is_empty(), "{name}");
        }
        let db = Database::default();
        let file = db.add_file(KERNEL);
        assert!(stage_view(&db, file, "k", "nonsense").unwrap_err().contains("GvnCse"));
    }
}
