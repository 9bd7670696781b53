//! Every stage as text, for developers.

use std::fmt::Write as _;

use ptx_backend::input::Stmt;
use ptx_backend::phases::PHASES;
use ptx_backend::session::Session;

use crate::compile::{backend_options, function_env};
use crate::db::{Database, SourceFile};
use crate::items::{Item, items, parse};
use crate::lower::{function, lower};

/// The stages that [`dump`] knows.
pub const STAGES: &[&str] = &["tokens", "tree", "items", "lowered", "names", "ori", "phase:<name>", "sass"];

/// The text of a stage, of one function or of the file.
///
/// # Errors
/// Names the stages when there is none of that name, or says that the function has no such stage.
pub fn dump(db: &Database, file: SourceFile, stage: &str, only: Option<&str>) -> Result<String, String> {
    let mut out = String::new();
    let wanted = items(db, file).iter().copied().filter(|item| only.is_none_or(|name| item.name(db) == name));
    for item in wanted {
        let text = item.text(db);
        match stage {
            "tokens" => {
                let mut start = 0;
                for token in ptx_syntax::lex(text) {
                    let end = start + token.len as usize;
                    let _ = writeln!(out, "{:?} {:?}", token.kind, &text[start..end]);
                    start = end;
                }
            }
            "tree" => out.push_str(&ptx_syntax::dump(parse(db, item))),
            "items" => {
                let _ = writeln!(out, "{:?} {} {:?}", item.kind(db), item.name(db), item.range(db));
            }
            "lowered" => {
                let Some(function) = function(db, item) else { continue };
                let _ =
                    writeln!(out, "{} {}", if function.entry { ".entry" } else { ".func" }, function.name);
                for (i, register) in function.regs.iter().enumerate() {
                    let _ = writeln!(out, "  r{i}: .{}", register.ty.text());
                }
                for statement in &function.body {
                    match statement {
                        Stmt::Label(label) => drop(writeln!(out, "L{}:", label.0)),
                        Stmt::Instr(instruction) => {
                            let mods: Vec<&str> = instruction.opcode.mods().map(|m| m.text()).collect();
                            let types: Vec<&str> = instruction.opcode.types().map(|t| t.text()).collect();
                            let form = instruction.opcode.form;
                            let (src, operands) = (instruction.src.0, &instruction.operands);
                            let guard = instruction.guard;
                            let _ =
                                writeln!(out, "  #{src} {form:?} {mods:?} {types:?} {guard:?} {operands:?}");
                        }
                    }
                }
            }
            "names" => {
                for occurrence in &lower(db, item).map.occurrences {
                    let name = &text[occurrence.range];
                    let _ = writeln!(
                        out,
                        "{:?} {name} {:?} {:?}",
                        occurrence.range, occurrence.entity, occurrence.access
                    );
                }
            }
            "sass" => {
                if let Some(view) = crate::ide::sass_view(db, file, item.name(db)) {
                    out.push_str(&view.text);
                }
            }
            "ori" => {
                if let (Some(input), Some(options)) = (function(db, item), backend_options(db, file)) {
                    let env = function_env(db, file, input);
                    match ptx_backend::ori::build::build(env, input, &options, &|| ()) {
                        Ok(built) => out.push_str(&ptx_backend::ori::text::print(&built)),
                        Err(error) => drop(writeln!(out, "// {}: {error}", input.name)),
                    }
                }
            }
            _ if stage.starts_with("phase:") => {
                out.push_str(&after_phase(db, file, item, &stage["phase:".len()..])?)
            }
            _ => return Err(format!("unknown stage `{stage}`; the stages are {}", STAGES.join(", "))),
        }
    }
    if out.is_empty()
        && let Some(name) = only
    {
        return Err(format!("nothing to show of `{name}` at this stage"));
    }
    Ok(out)
}

/// The function after a phase of the compiler, whether or not the later ones succeed.
fn after_phase(db: &Database, file: SourceFile, item: Item<'_>, phase: &str) -> Result<String, String> {
    let Some(phase) = PHASES.iter().find(|known| known.name == phase) else {
        let known: Vec<&str> = PHASES.iter().map(|phase| phase.name).collect();
        return Err(format!("unknown phase `{phase}`; the phases are {}", known.join(", ")));
    };
    let (Some(input), Some(options)) = (function(db, item), backend_options(db, file)) else {
        return Ok(String::new());
    };
    let mut session = Session { shown: Some(phase.name), ..Session::default() };
    let result = ptx_backend::compile(function_env(db, file, input), input, &options, &mut session);
    let mut out: String = session.dumps.concat();
    if let Err(error) = result {
        let _ = writeln!(out, "// {}: {error}", input.name);
    }
    Ok(out)
}
