//! Registers, memory and occupancy of functions, as hints and lenses.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use ptx_backend::Resources;
use ptx_backend::input::SrcId;
use ptx_backend::target::Target;
use ptx_isa::Sm;
use rustc_hash::FxBuildHasher;
use text_size::{TextRange, TextSize};

use crate::compile::{compile_diagnostic, compile_function, functions, is_too_large};
use crate::db::{Database, Db, SourceFile};
use crate::diagnostic::Severity;
use crate::ide::{Command, InlayHint, Lens, Standing};
use crate::items::{Item, line_number};
use crate::locate::{items_in, trimmed};
use crate::lower::{function, has_body, lower};
use crate::module::architecture;
use crate::occupancy::{BlockUse, Limiter, Occupancy, occupancy};
use crate::ready::Code;
use crate::text::counted;

impl FunctionResources {
    /// One line: registers, spills, stack, shared memory, occupancy and its limiter; or the reason why there is no
    /// code.
    pub fn summary(&self) -> String {
        match &self.resources {
            Ok(_) => summary(self),
            Err(why) => why.clone(),
        }
    }
}

/// The text for a function whose code is not available yet.
pub(super) const BEING_COMPILED: &str = "being compiled";

/// The number of threads per CTA for a kernel that does not state it.
const DEFAULT_THREADS: u32 = 256;

/// Lenses compile every function of the file. In larger files (in bytes), they only offer to do so.
pub(super) const LENS_LIMIT: usize = 1 << 19;

/// The resources of a function, or the reason why it has none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionResources {
    pub name: String,
    pub entry: bool,
    /// The range of its name in the file.
    pub range: TextRange,
    /// The reason in the words of [`not_compiled`].
    pub resources: Result<Resources, String>,
    /// Only for kernels.
    pub occupancy: Option<Occupancy>,
    /// The number of threads per CTA for which the occupancy is computed.
    pub threads: u32,
    /// The change that would raise the occupancy, if registers or shared memory limit it.
    pub next_step: Option<String>,
}

/// Compiles every function of a file, and returns their resources in text order.
pub fn function_resources(db: &Database, file: SourceFile) -> Vec<FunctionResources> {
    functions(db, file).filter_map(|item| of_item(db, file, item, true)).collect()
}

/// The resources of a function, given its name.
pub fn resources_of(db: &Database, file: SourceFile, name: &str) -> Option<FunctionResources> {
    of_item(db, file, functions(db, file).find(|item| item.name(db) == name)?, true)
}

/// The targets that code is generated for: those without suffix, and those with the suffix of the file's own target.
pub fn targets(own: Option<Sm>) -> Vec<Sm> {
    let plain = Sm::new(0).feature;
    let feature = own.map_or(plain, |own| own.feature);
    let mut all: Vec<Sm> = Sm::KNOWN
        .into_iter()
        .filter(|target| target.feature == plain || target.feature == feature)
        // No target appears a second time under its old name.
        .filter(|target| Target::of(*target).is_some() && target.current() == *target)
        .collect();
    all.sort_by_key(|target| (target.number, target.to_string()));
    all
}

/// `is_ready`: the code of the function is available.
pub(super) fn of_item(
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    is_ready: bool,
) -> Option<FunctionResources> {
    let range = lower(db, item).map.name_range()? + item.offset(db);
    let compiled = is_ready.then(|| compile_function(db, item).as_deref());
    let resources = match compiled {
        None => Err(BEING_COMPILED.to_owned()),
        Some(Some(Ok(compiled))) => Ok(compiled.resources),
        Some(Some(Err(_)) | None) => Err(not_compiled(db, file, item).0),
    };
    let input = function(db, item).as_deref();
    let launch = input.map(|function| function.launch).unwrap_or_default();
    let threads = launch
        .reqntid
        .or(launch.maxntid)
        .map_or(DEFAULT_THREADS, |[x, y, z]| x.saturating_mul(y).saturating_mul(z));
    let entry = input.is_some_and(|function| function.entry);
    let occupancy = match (&resources, architecture(db, file)) {
        (Ok(found), Some(sm)) if entry => {
            occupancy(sm, BlockUse { threads, registers: found.registers, shared: found.shared_bytes })
        }
        _ => None,
    };
    let name = item.name(db).to_string();
    let mut found = FunctionResources { name, entry, range, resources, occupancy, threads, next_step: None };
    found.next_step = architecture(db, file).and_then(|sm| next_step(&found, sm));
    Some(found)
}

/// Why a function has no machine code, in the same words wherever it is shown, and the statement that causes it, in
/// file offsets.
pub(super) fn not_compiled(db: &dyn Db, file: SourceFile, item: Item<'_>) -> (String, Option<TextRange>) {
    let line = |at: TextRange| format!(" (line {})", line_number(db, file, at.start()));
    let Some(diagnostic) = compile_diagnostic(db, item) else {
        let lowered = lower(db, item);
        let errors = lowered.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let Some(first) = errors.min_by_key(|found| found.range.start()) else {
            return ("not compiled: the file has errors".to_owned(), None);
        };
        let statement =
            lowered.map.statement_at(first.range.start()).and_then(|src| lowered.map.statement(src));
        let place = statement.unwrap_or(first.range) + item.offset(db);
        return (format!("not compiled: {}{}", first.message, line(place)), Some(place));
    };
    let is_statement = lower(db, item).map.statement_at(diagnostic.range.start()).is_some();
    let place = Some(diagnostic.range + item.offset(db)).filter(|_| is_statement);
    let line = place.map(line).unwrap_or_default();
    // The text is shown at the function itself, so its name is omitted.
    let own = |rest: &str| format!("`{}` {rest}: ", item.name(db));
    let message = diagnostic.message.as_str();
    let why = message
        .strip_prefix(&own("cannot be compiled yet"))
        .or(message.strip_prefix(&own("is not compiled")))
        .unwrap_or(message);
    (format!("not compiled: {why}{line}"), place)
}

/// The functions with a body that a range touches.
fn functions_in<'db>(db: &'db dyn Db, file: SourceFile, range: TextRange) -> impl Iterator<Item = Item<'db>> {
    items_in(db, file, Some(range)).filter(|&item| has_body(db, item))
}

/// Registers and occupancy, shown at the end of each line with a function's name in a range.
pub fn inlay_hints(db: &Database, file: SourceFile, range: TextRange, code: Code<'_>) -> Vec<InlayHint> {
    let is_shown = |item: &Item<'_>| item.name_range(db).is_some_and(|name| range.intersect(name).is_some());
    let names: Vec<Item<'_>> = functions_in(db, file, range).filter(is_shown).collect();
    let ready = code.ready(db, file, &names);
    names
        .into_iter()
        .zip(ready)
        .filter_map(|(item, is_ready)| {
            let found = of_item(db, file, item, is_ready)?;
            let label = match &found.resources {
                Ok(resources) => label(resources, found.occupancy),
                Err(_) if !is_ready => BEING_COMPILED.to_owned(),
                Err(_) if is_too_large(db, item) => {
                    "not compiled: too large to compile while typing".to_owned()
                }
                Err(_) => "not compiled".to_owned(),
            };
            let text = &file.text(db)[usize::from(found.range.end())..];
            let rest_of_line = TextSize::of(text.lines().next().unwrap_or_default().trim_end());
            Some(InlayHint {
                function: found.name.clone(),
                standing: if is_ready { standing(db, item, &found) } else { Standing::Later },
                offset: found.range.end() + rest_of_line,
                label,
                tooltip: details(&found),
            })
        })
        .collect()
}

/// The live registers of a function, statement by statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveRegisters {
    pub function: String,
    pub standing: Standing,
    /// Whether the numbers are those of an older text.
    is_old: bool,
    statements: Vec<LiveStatement>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct LiveStatement {
    /// The hash of its text.
    text: u64,
    range: TextRange,
    /// The maximum number of live registers; `None` without machine code.
    count: Option<u16>,
}

/// The live registers of the functions in a range.
pub fn live_registers(
    db: &Database,
    file: SourceFile,
    range: TextRange,
    code: Code<'_>,
) -> Vec<LiveRegisters> {
    let shown: Vec<Item<'_>> = functions_in(db, file, range).collect();
    let ready = code.ready(db, file, &shown);
    shown
        .into_iter()
        .zip(ready)
        .filter_map(|(item, is_ready)| {
            let (map, offset, text) = (&lower(db, item).map, item.offset(db), item.text(db));
            let compiled = if is_ready { compile_function(db, item).as_deref() } else { None };
            let mut live: BTreeMap<SrcId, u16> = BTreeMap::new();
            if let Some(Ok(compiled)) = compiled {
                for (src, &count) in compiled.lines.iter().zip(&compiled.live_registers) {
                    if let Some(src) = src {
                        let most = live.entry(*src).or_default();
                        *most = count.max(*most);
                    }
                }
            }
            let statements = map.statements.iter().zip(0..).map(|(&range, src)| LiveStatement {
                text: FxBuildHasher.hash_one(&text[range]),
                range: range + offset,
                count: live.get(&SrcId(src)).copied(),
            });
            let standing =
                if is_ready { standing(db, item, &of_item(db, file, item, true)?) } else { Standing::Later };
            let function = item.name(db).to_string();
            Some(LiveRegisters { function, standing, is_old: false, statements: statements.collect() })
        })
        .collect()
}

impl LiveRegisters {
    /// The numbers of an older text of the function at the statements that are the same: those before the first and
    /// after the last difference.
    pub fn with_old(mut self, old: &Self) -> Self {
        let (new, old) = (&mut self.statements, &old.statements);
        let is_same = |(new, old): &(&mut LiveStatement, &LiveStatement)| new.text == old.text;
        let mut same = 0;
        for (new, old) in new.iter_mut().zip(old).take_while(is_same) {
            new.count = old.count;
            same += 1;
        }
        for (new, old) in new[same..].iter_mut().rev().zip(old[same..].iter().rev()).take_while(is_same) {
            new.count = old.count;
        }
        self.is_old = true;
        self
    }

    /// The numbers in a range, shown at the ends of lines. The peak is marked. Statements without machine code have no
    /// hint.
    pub fn hints(&self, range: TextRange) -> impl Iterator<Item = InlayHint> + '_ {
        let peak = self.statements.iter().filter_map(|statement| statement.count).max().unwrap_or(0);
        let shown = self.statements.iter().filter(move |found| range.intersect(found.range).is_some());
        shown.filter_map(move |statement| {
            let count = statement.count?;
            let was = if self.is_old { "was: " } else { "" };
            let mark = if count == peak { " (peak)" } else { "" };
            Some(InlayHint {
                function: self.function.clone(),
                standing: self.standing,
                offset: statement.range.end(),
                label: format!("{was}{count} live{mark}"),
                tooltip: format!(
                    "{}; the peak of the function is {peak}",
                    counted(count.into(), "live register")
                ),
            })
        })
    }
}

/// The change that raises the occupancy: fewer registers, or less shared memory.
fn next_step(found: &FunctionResources, sm: Sm) -> Option<String> {
    let (resources, own) = (found.resources.as_ref().ok()?, found.occupancy?);
    let today =
        BlockUse { threads: found.threads, registers: resources.registers, shared: resources.shared_bytes };
    let better = |block: BlockUse| occupancy(sm, block).filter(|other| other.warps > own.warps);
    match own.limiter {
        Limiter::Registers => (1..resources.registers).rev().find_map(|registers| {
            let percent = better(BlockUse { registers, ..today })?.percent();
            Some(format!("{percent}% requires at most {registers} registers"))
        }),
        Limiter::SharedMemory => (0..resources.shared_bytes).rev().step_by(16).find_map(|shared| {
            let percent = better(BlockUse { shared, ..today })?.percent();
            Some(format!("{percent}% requires at most {shared} bytes of shared memory"))
        }),
        Limiter::Warps | Limiter::Blocks => None,
    }
}

fn standing(db: &dyn Db, item: Item<'_>, found: &FunctionResources) -> Standing {
    match &found.resources {
        Ok(_) => Standing::Compiled,
        Err(_) if is_too_large(db, item) || compile_diagnostic(db, item).is_none() => Standing::Later,
        Err(_) => Standing::Never,
    }
}

fn label(resources: &Resources, occupancy: Option<Occupancy>) -> String {
    let mut label = format!("{} registers", resources.registers);
    let spilled = resources.spill_store_bytes + resources.spill_load_bytes;
    if spilled > 0 {
        label.push_str(&format!(", {spilled} bytes spilled"));
    }
    if let Some(occupancy) = occupancy {
        label.push_str(&format!(", {}% occupancy", occupancy.percent()));
    }
    label
}

/// Where a lens about a function belongs: from the start of its heading, because editors indent the lens like the start.
pub(super) fn above(db: &dyn Db, item: Item<'_>, name: TextRange) -> TextRange {
    let start = trimmed(db, item).start();
    if start <= name.start() { TextRange::new(start, name.end()) } else { name }
}

/// A lens for each function with its resources; a click shows the machine code.
pub fn code_lenses(db: &Database, file: SourceFile, code: Code<'_>) -> Vec<Lens> {
    let is_large = file.text(db).len() > LENS_LIMIT;
    let all: Vec<Item<'_>> = functions(db, file).collect();
    let ready = if is_large { vec![false; all.len()] } else { code.ready(db, file, &all) };
    let lens = |(item, is_ready): (Item<'_>, bool)| {
        let function = item.name(db).to_string();
        let command = Some(Command::ShowSass { function: function.clone() });
        if is_large {
            let (standing, range) = (Standing::Never, above(db, item, item.name_range(db)?));
            return Some(Lens { function, standing, range, title: "Show SASS".to_owned(), command });
        }
        let found = of_item(db, file, item, is_ready)?;
        let standing = if is_ready { standing(db, item, &found) } else { Standing::Later };
        let range = above(db, item, found.range);
        Some(Lens { function, standing, range, title: found.summary(), command })
    };
    all.into_iter().zip(ready).filter_map(lens).collect()
}

/// One line: `32 registers · 0 spills · 1024 B shared · 100% occupancy (warps)`.
pub(super) fn summary(found: &FunctionResources) -> String {
    let Ok(resources) = &found.resources else { return String::new() };
    let mut parts = vec![format!("{} registers", resources.registers)];
    match resources.spill_store_bytes + resources.spill_load_bytes {
        0 => parts.push("no spills".to_owned()),
        bytes => parts.push(format!("{bytes} bytes spilled")),
    }
    if resources.stack_bytes > 0 {
        parts.push(format!("{} bytes of stack", resources.stack_bytes));
    }
    if resources.shared_bytes > 0 {
        parts.push(format!("{} bytes of shared memory", resources.shared_bytes));
    }
    if let Some(occupancy) = found.occupancy {
        let limit = format!("{}% occupancy, limited by {}", occupancy.percent(), occupancy.limiter);
        parts.push(match &found.next_step {
            Some(step) => format!("{limit}; {step}"),
            None => limit,
        });
    }
    parts.join(" · ")
}

/// All resources as Markdown.
pub(super) fn details(found: &FunctionResources) -> String {
    let resources = match &found.resources {
        Ok(resources) => resources,
        Err(why) => return why.clone(),
    };
    let mut text = format!(
        "| resource | amount |\n|---|---|\n| registers | {} |\n| stack | {} bytes |\n| spill stores | {} bytes |\n\
         | spill loads | {} bytes |\n| shared memory | {} bytes |\n| barriers | {} |\n| constant bank 0 | {} bytes |\n",
        resources.registers,
        resources.stack_bytes,
        resources.spill_store_bytes,
        resources.spill_load_bytes,
        resources.shared_bytes,
        resources.barriers,
        resources.const0_bytes,
    );
    if let Some(occupancy) = found.occupancy {
        text.push_str(&format!(
            "\nWith {} threads per CTA, {} CTAs and {} of {} warps are resident per multiprocessor ({}%), limited by {}.\n",
            found.threads,
            occupancy.blocks,
            occupancy.warps,
            occupancy.max_warps,
            occupancy.percent(),
            occupancy.limiter
        ));
        if let Some(step) = &found.next_step {
            text.push_str(&format!("{step}.\n"));
        }
    }
    text
}
