//! The output of every stage as text, for developers.

use std::fmt::Write as _;

use ptx_backend::compile::stages;
use ptx_backend::input::Stmt;
use ptx_backend::session::{Session, Times};

use crate::callees::inlined;
use crate::compile::{backend_options, function_env, stage_of};
use crate::db::{Database, SourceFile};
use crate::items::{Item, items, parse};
use crate::lower::{function, lower};

/// The stages that [`dump`] knows: those of the analysis, those of the compiler, and the result of a phase of the
/// compiler.
pub const STAGES: &[&str] = &[
    "tokens",
    "tree",
    "items",
    "lowered",
    "names",
    "ori",
    "phase:<name>",
    "alloc",
    "mach",
    "sched",
    "times",
    "sass",
];

/// The text of a stage, for one function or for the file.
///
/// # Errors
/// Lists the stages if there is none of that name, or states that the function has no output at this stage.
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
                if let Some(view) =
                    crate::ide::sass_view(db, file, item.name(db), crate::ide::SassStyle::default())
                {
                    out.push_str(&view.text);
                }
            }
            "ori" | "alloc" | "mach" | "sched" => out.push_str(&item_of_compiler(db, item, stage)?),
            "times" => times(db, file, item, &mut out),
            _ if stage.starts_with("phase:") => {
                out.push_str(&item_of_compiler(db, item, &stage["phase:".len()..])?)
            }
            _ => return Err(format!("unknown stage `{stage}`; the stages are {}", STAGES.join(", "))),
        }
    }
    if out.is_empty()
        && let Some(name) = only
    {
        return Err(format!("`{name}` has no output at this stage"));
    }
    Ok(out)
}

/// Every function after a stage of the compiler, even if later stages fail.
///
/// # Errors
/// Lists the stages if there is none of that name.
pub fn of_compiler(db: &Database, file: SourceFile, stage: &str) -> Result<String, String> {
    let all = items(db, file).iter().map(|item| item_of_compiler(db, *item, stage));
    all.collect::<Result<Vec<_>, _>>().map(|texts| texts.concat())
}

fn item_of_compiler(db: &Database, item: Item<'_>, stage: &str) -> Result<String, String> {
    let Some(stage) = stages().find(|known| *known == stage) else {
        let known: Vec<&str> = stages().collect();
        return Err(format!("unknown compiler stage `{stage}`; the stages are {}", known.join(", ")));
    };
    let Some(found) = stage_of(db, item, stage) else { return Ok(String::new()) };
    let mut out: String = found.texts.concat();
    if let Some(error) = found.error {
        let _ = writeln!(out, "// {}: {error}", item.name(db));
    }
    Ok(out)
}

/// The time of each stage of the compiler for a function, in microseconds.
fn times(db: &Database, file: SourceFile, item: Item<'_>, out: &mut String) {
    let (Some(input), Some(options)) = (function(db, item), backend_options(db, file)) else { return };
    let mut session = Session { times: Some(Times::new()), ..Session::default() };
    let inlined = inlined(db, item).as_ref().ok().and_then(Option::as_ref);
    let input = inlined.map_or(&**input, |inlined| &inlined.function);
    let result = ptx_backend::compile(function_env(db, file, input), input, &options, &mut session);
    let _ = writeln!(out, "{}", input.name);
    for (stage, time) in session.times.into_iter().flat_map(|times| times.stages) {
        let _ = writeln!(out, "{:>10.1} us  {stage}", time.as_secs_f64() * 1e6);
    }
    if let Err(error) = result {
        let _ = writeln!(out, "// {error}");
    }
}
