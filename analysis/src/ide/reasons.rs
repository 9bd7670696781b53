//! Why a function needs its registers and its time, in words: at its name, at the labels of its loops, and at statements
//! whose results were spilled.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use ptx_backend::explain::{Explanation, Kept, Live, Loop, Spilled};
use ptx_backend::input::{Function, Instr, LabelId, Operand, SrcId, Stmt};
use ptx_backend::target::MAX_REGISTERS;
use ptx_backend::{CompiledFunction, copies::Unrolled};
use rustc_hash::FxHashMap;
use text_size::TextRange;

use crate::compile::{compile_function, functions};
use crate::db::{Database, Db, SourceFile};
use crate::ide::fate::instruction_name;
use crate::items::{Item, line_number};
use crate::lower::{function, lower};
use crate::scope::{DeclKind, Entity};
use crate::source_map::Usage;
use crate::text::counted;

/// The maximum number of statements that are listed for a peak or for spills.
const LISTED: usize = 8;
/// The maximum number of registers that are named for one row of live registers.
const NAMES: usize = 4;
/// The maximum number of waits that are listed for a loop.
const WAITS: usize = 2;

/// Why a function needs its registers and its time. Ranges are positions in the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reasons {
    pub function: String,
    pub peak: Option<PeakPlace>,
    pub spilled: Vec<SpilledPlace>,
    pub loops: Vec<LoopPlace>,
    /// All of this in words.
    pub markdown: String,
}

/// The statement before which most registers are live, and the statements that compute what is live there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeakPlace {
    pub at: TextRange,
    pub registers: u32,
    /// Each with its number of registers, the largest first.
    pub live: Vec<(TextRange, u32)>,
}

/// A statement whose results are spilled, and the statement where the registers do not suffice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpilledPlace {
    pub of: TextRange,
    pub registers: u32,
    pub at: TextRange,
    pub needed: u32,
    pub available: u32,
}

/// A loop of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopPlace {
    /// Its label.
    pub label: TextRange,
    /// What limits it and how it was unrolled.
    pub markdown: String,
    /// The loop of the machine code that executes most of its iterations, if it is an innermost loop.
    pub code: Option<LoopCode>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopCode {
    pub instructions: u32,
    /// The cycles of an iteration in a warp alone.
    pub cycles: u32,
    /// For which statements these cycles are spent waiting, and for how many, the longest waits first.
    pub waits: Vec<(TextRange, u32)>,
    /// What limits the loop in many warps, and for how many cycles an iteration uses it.
    pub unit: String,
    pub unit_cycles: u32,
}

/// Explains the registers, spills and loops of the function called `name`. `None` if it is not compiled.
pub fn reasons(db: &Database, file: SourceFile, name: &str) -> Option<Reasons> {
    let item = functions(db, file).find(|item| item.name(db) == name)?;
    let view = View::of(db, file, item)?;
    let place = |src: SrcId| Some(lower(db, item).map.statement(src)? + item.offset(db));
    let peak = view.why.peak.as_ref().and_then(|peak| {
        Some(PeakPlace {
            at: place(peak.at)?,
            registers: peak.live.iter().map(|live| live.registers).sum(),
            live: peak.live.iter().filter_map(|live| Some((place(live.of)?, live.registers))).collect(),
        })
    });
    let spilled = view.why.spilled.iter().filter_map(|spilled| {
        let Spilled { of, registers, at, needed, available } = *spilled;
        Some(SpilledPlace { of: place(of)?, registers, at: place(at)?, needed, available })
    });
    let loops = view.loops().iter().filter_map(|one| {
        let code = one.code.first().map(|found| LoopCode {
            instructions: found.instructions,
            cycles: found.cycles,
            waits: found.waits.iter().filter_map(|wait| Some((place(wait.of)?, wait.cycles))).collect(),
            unit: found.busiest.0.to_string(),
            unit_cycles: found.busiest.1,
        });
        let label = view.label(one.label)? + item.offset(db);
        Some(LoopPlace { label, markdown: view.of_loop(one)?, code })
    });
    let loops: Vec<LoopPlace> = loops.collect();
    let mut markdown = format!("# `{name}`\n{}", view.of_function());
    for found in &loops {
        let name = &file.text(db)[found.label];
        let line = line_number(db, file, found.label.start());
        let _ = write!(markdown, "\n## Loop `{name}` on line {line}\n{}", found.markdown);
    }
    Some(Reasons { function: name.to_owned(), peak, spilled: spilled.collect(), loops, markdown })
}

/// A loop of the text, and what the compiler says of it.
struct TextLoop<'a> {
    label: LabelId,
    /// The innermost loops of the machine code that belong to it, the longest first.
    code: Vec<&'a Loop>,
    unrolled: Option<&'a Unrolled>,
    kept: Option<Kept>,
}

/// A compiled function with its reasons.
pub(super) struct View<'a> {
    db: &'a dyn Db,
    file: SourceFile,
    item: Item<'a>,
    compiled: &'a CompiledFunction,
    why: &'a Explanation,
    input: &'a Function,
    loops: OnceCell<Vec<TextLoop<'a>>>,
}

impl<'a> View<'a> {
    pub(super) fn of(db: &'a dyn Db, file: SourceFile, item: Item<'a>) -> Option<View<'a>> {
        let compiled = compile_function(db, item).as_deref()?.as_ref().ok()?;
        let why = compiled.explanation.as_deref()?;
        let input = function(db, item).as_ref()?;
        Some(View { db, file, item, compiled, why, input, loops: OnceCell::new() })
    }

    /// The loops of the text in its order.
    fn loops(&self) -> &[TextLoop<'a>] {
        self.loops.get_or_init(|| {
            let (mut loops, around) = text_loops(self.input);
            let place = |branch: &SrcId| around.get(branch).copied();
            for one in &self.why.loops {
                place(&one.branch).into_iter().for_each(|i| loops[i].code.push(one));
            }
            for one in &self.why.unrolled {
                place(&one.branch).into_iter().for_each(|i| _ = loops[i].unrolled.get_or_insert(one));
            }
            for (branch, why) in &self.why.kept {
                place(branch).into_iter().for_each(|i| _ = loops[i].kept.get_or_insert(*why));
            }
            loops.iter_mut().for_each(|one| one.code.sort_by_key(|code| Reverse(code.instructions)));
            loops
        })
    }

    /// Where a label is defined.
    fn label(&self, label: LabelId) -> Option<TextRange> {
        let mut declared = lower(self.db, self.item).map.declarations.iter();
        Some(declared.find(|declared| declared.kind == DeclKind::Label(label))?.range)
    }

    /// The name of a statement's instruction.
    fn name(&self, src: SrcId) -> &'a str {
        let range = lower(self.db, self.item).map.statement(src).unwrap_or_default();
        instruction_name(&self.item.text(self.db)[range]).unwrap_or_default()
    }

    fn line(&self, src: SrcId) -> u32 {
        let range = lower(self.db, self.item).map.statement(src).unwrap_or_default();
        line_number(self.db, self.file, range.start() + self.item.offset(self.db))
    }

    /// `ld.global.f32` on line 7
    fn statement(&self, src: SrcId) -> String {
        format!("`{}` on line {}", self.name(src), self.line(src))
    }

    /// The registers that a statement writes.
    fn written(&self, src: SrcId) -> Vec<String> {
        let map = &lower(self.db, self.item).map;
        let range = map.statement(src).unwrap_or_default();
        let first = map.occurrences.partition_point(|o| o.range.start() < range.start());
        let own = map.occurrences[first..].iter().take_while(|o| o.range.start() < range.end());
        let written = own.filter(|o| {
            matches!(o.entity, Entity::Register(_)) && matches!(o.access, Usage::Write | Usage::ReadWrite)
        });
        written.map(|o| format!("`{}`", &self.item.text(self.db)[o.range])).collect()
    }

    /// Why the function needs its registers, as Markdown.
    pub(super) fn of_function(&self) -> String {
        let mut out = String::new();
        if let Some(peak) = &self.why.peak {
            let all: u32 = peak.live.iter().map(|live| live.registers).sum();
            let count = counted(all as usize, "register");
            let _ = writeln!(out, "\nAt most {count} are live, before {}:\n", self.statement(peak.at));
            let _ = writeln!(out, "| registers | computed by | as |\n|---|---|---|");
            let groups = self.groups(&peak.live);
            for group in groups.iter().take(LISTED) {
                let _ = writeln!(out, "{}", self.row(group));
            }
            let rest = groups.get(LISTED..).unwrap_or_default();
            if !rest.is_empty() {
                let registers: u32 = rest.iter().flatten().map(|live| live.registers).sum();
                let count = rest.iter().map(Vec::len).sum();
                let _ = writeln!(out, "| {registers} | {} | |", counted(count, "other statement"));
            }
        }
        let spilled = &self.why.spilled;
        if !spilled.is_empty() {
            out.push_str("\nSpilled, because too few registers are available:\n\n");
            let mut by_reason: BTreeMap<_, Vec<Spilled>> = BTreeMap::new();
            for one in spilled {
                let reason = (Reverse(one.needed), one.at, one.available);
                by_reason.entry(reason).or_default().push(*one);
            }
            for all in by_reason.values() {
                let live = |one: &Spilled| Live { of: one.of, registers: one.registers };
                let groups = self.groups(&all.iter().map(live).collect::<Vec<_>>());
                let of: Vec<String> = groups.iter().map(|group| self.statements(group)).collect();
                let registers = all.iter().map(|one| one.registers).sum();
                let reason = self.reason(&Spilled { registers, ..all[0] });
                let _ = writeln!(out, "- {}: {reason}", of.join(", "));
            }
            let most = self.compiled.attributes.max_registers;
            if most < MAX_REGISTERS {
                let _ = writeln!(out, "\nLaunch bounds or options limit the function to {most} registers.");
            }
        }
        out
    }

    /// Live values by the name of the instruction that computes them, those with most registers first.
    fn groups(&self, live: &[Live]) -> Vec<Vec<Live>> {
        let mut by_name: BTreeMap<&str, Vec<Live>> = BTreeMap::new();
        live.iter().for_each(|live| by_name.entry(self.name(live.of)).or_default().push(*live));
        let mut groups: Vec<Vec<Live>> = by_name.into_values().collect();
        groups.sort_by_key(|group| Reverse(group.iter().map(|live| live.registers).sum::<u32>()));
        groups.iter_mut().for_each(|group| group.sort_unstable_by_key(|live| live.of));
        groups
    }

    /// A row of the table of live registers. Some of the statements are named.
    fn row(&self, group: &[Live]) -> String {
        let registers: u32 = group.iter().map(|live| live.registers).sum();
        let mut written: Vec<String> = group.iter().flat_map(|live| self.written(live.of)).collect();
        if written.len() > NAMES {
            written.truncate(NAMES);
            written.push("…".to_owned());
        }
        format!("| {registers} | {} | {} |", self.statements(group), written.join(", "))
    }

    /// Statements with the same name: `ld.global.f32` on 3 lines, 7 to 12
    fn statements(&self, group: &[Live]) -> String {
        let mut lines: Vec<u32> = group.iter().map(|live| self.line(live.of)).collect();
        lines.dedup();
        match (group, &lines[..]) {
            ([one, ..], [first, .., last]) => {
                format!("`{}` on {} lines, {first} to {last}", self.name(one.of), lines.len())
            }
            ([one, ..], _) => self.statement(one.of),
            ([], _) => String::new(),
        }
    }

    fn reason(&self, spilled: &Spilled) -> String {
        let Spilled { registers, at, needed, available, .. } = *spilled;
        let own = counted(registers as usize, "register");
        let at = self.statement(at);
        if needed > available {
            format!("{own}; {needed} would be live before {at}, and {available} are available")
        } else {
            format!(
                "{own}; {needed} of {available} would be live before {at}, and the rest cannot be used because values \
                 of several registers must be adjacent and aligned"
            )
        }
    }

    /// Why the result of a statement is spilled.
    pub(super) fn of_statement(&self, src: SrcId) -> Option<String> {
        let spilled = self.why.spilled.iter().find(|spilled| spilled.of == src)?;
        Some(format!("The result is spilled: {}.", self.reason(spilled)))
    }

    /// What limits the loop that begins at a label, as Markdown.
    pub(super) fn of_label(&self, label: LabelId) -> Option<String> {
        self.of_loop(self.loops().iter().find(|one| one.label == label)?)
    }

    fn of_loop(&self, one: &TextLoop<'_>) -> Option<String> {
        let mut out = String::new();
        if let Some(found) = one.code.first() {
            self.describe(found, one.unrolled, &mut out);
        }
        match (one.unrolled, one.kept) {
            (Some(one), _) => out.push_str(&unrolled_in_words(one)),
            (None, Some(Kept::Outer)) if !out.is_empty() => {}
            (None, Some(why)) => {
                let at = why.statement().map(|at| format!(" ({})", self.statement(at))).unwrap_or_default();
                let _ = writeln!(out, "\nNot unrolled: {why}{at}.");
            }
            (None, None) => {}
        }
        (!out.is_empty()).then_some(out)
    }

    fn describe(&self, found: &Loop, unrolled: Option<&Unrolled>, out: &mut String) {
        let Loop { instructions, cycles, busiest: (unit, busy), calls, .. } = found;
        let (pass, takes) = match unrolled.and_then(repeated) {
            Some(iterations) => (format!("{iterations} iterations"), "take"),
            None => ("one iteration".to_owned(), "takes"),
        };
        let count = counted(*instructions as usize, "machine instruction");
        let without = if *calls { " without the functions that it calls" } else { "" };
        let _ = write!(
            out,
            "\nA loop of {count}. In a warp alone, with data in the second-level cache, {pass} {takes} about {cycles} \
             cycles{without}"
        );
        let long = found.waits.iter().filter(|wait| wait.cycles * 8 >= *cycles);
        let waits: Vec<String> =
            long.take(WAITS).map(|wait| format!("{} for {}", wait.cycles, self.statement(wait.of))).collect();
        match waits.is_empty() {
            true => out.push('.'),
            false => {
                let _ = write!(out, ", of which it waits {}.", waits.join(" and "));
            }
        }
        let _ = writeln!(
            out,
            " With many warps, a scheduler completes at most {pass} in {busy} cycles, limited by {unit}."
        );
    }
}

/// The number of iterations of the old loop in one of the new loop.
fn repeated(unrolled: &Unrolled) -> Option<u32> {
    let repeats = unrolled.pieces.iter().find(|piece| piece.repeats)?;
    (repeats.iterations > 1).then_some(repeats.iterations)
}

fn unrolled_in_words(unrolled: &Unrolled) -> String {
    match repeated(unrolled) {
        Some(iterations) => format!("\nUnrolled: {iterations} iterations at a time.\n"),
        None => format!("\nUnrolled: straight-line code of all {} iterations.\n", unrolled.iterations()),
    }
}

/// The loops of the text: from a label to the last branch back to it. And for each branch the index of the innermost
/// loop around it. The code of inlined functions belongs to their calls, so it is in none of these.
fn text_loops<'a>(function: &Function) -> (Vec<TextLoop<'a>>, FxHashMap<SrcId, usize>) {
    let mut starts: FxHashMap<LabelId, usize> = FxHashMap::default();
    let mut ends: Vec<Option<SrcId>> = Vec::new();
    for statement in &function.body {
        match statement {
            Stmt::Label(label) => {
                starts.insert(*label, ends.len());
                ends.push(None);
            }
            Stmt::Instr(instr) => {
                let back = targets(instr).filter_map(|label| starts.get(&label));
                back.for_each(|&start| ends[start] = Some(instr.src));
            }
        }
    }
    let (mut loops, mut around) = (Vec::new(), FxHashMap::default());
    // The loops that may still be open, with their ends.
    let mut open: Vec<(usize, SrcId)> = Vec::new();
    for statement in &function.body {
        match statement {
            Stmt::Label(label) => {
                if let Some(end) = ends[starts[label]] {
                    open.push((loops.len(), end));
                    loops.push(TextLoop { label: *label, code: Vec::new(), unrolled: None, kept: None });
                }
            }
            Stmt::Instr(instr) if targets(instr).next().is_some() => {
                while open.pop_if(|(_, end)| *end < instr.src).is_some() {}
                if let Some((inner, _)) = open.last() {
                    around.insert(instr.src, *inner);
                }
            }
            Stmt::Instr(_) => {}
        }
    }
    (loops, around)
}

/// The labels to which an instruction branches.
fn targets(instr: &Instr) -> impl Iterator<Item = LabelId> + '_ {
    instr.operands.iter().filter_map(|operand| match operand {
        Operand::Label(label) => Some(*label),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn text(body: &str) -> String {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n\
             .func (.param .b32 r) sum(.param .b64 p, .param .b32 n)\n{{\n.reg .pred %p;\n.reg .b32 %r<4>;\n\
             .reg .b64 %rd;\nld.param.b64 %rd, [p];\nld.param.b32 %r1, [n];\nmov.b32 %r2, 0;\nTOP:\n\
             ld.u32 %r3, [%rd];\nadd.u32 %r2, %r2, %r3;\nadd.u64 %rd, %rd, 4;\nsub.u32 %r1, %r1, 1;\n\
             setp.ne.u32 %p, %r3, 0;\n@%p bra TOP;\nst.param.b32 [r], %r2;\nret;\n}}\n\
             .entry k(.param .u64 a, .param .u32 n)\n{{\n.reg .pred %p<3>;\n.reg .b32 %r<60>;\n.reg .f32 %f<8>;\n\
             .reg .b64 %rd<4>;\nld.param.u64 %rd1, [a];\nld.param.u32 %r1, [n];\n{body}\nret;\n}}\n"
        )
    }

    fn check(body: &str, expected: Expect) {
        let mut db = Database::default();
        db.set_max_registers(Some(24));
        let file = db.add_file(text(body));
        let found = reasons(&db, file, "k").expect("compiled");
        expected.assert_eq(&found.markdown);
    }

    #[test]
    fn loops_wait_for_loads_and_are_unrolled_if_counted() {
        let counted = |pragma| {
            format!(
                "mov.u32 %r2, 0;\nmov.f32 %f1, 0f00000000;\nL:\n{pragma}ld.global.f32 %f2, [%rd1];\n\
                 add.f32 %f1, %f1, %f2;\nadd.u64 %rd1, %rd1, 4;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n\
                 @%p1 bra L;\nst.global.f32 [%rd1], %f1;"
            )
        };
        check(
            &counted(""),
            expect![[r#"
                # `k`

                At most 10 registers are live, before `bra` on line 38:

                | registers | computed by | as |
                |---|---|---|
                | 4 | `ld.global.f32` on line 33 | `%f2` |
                | 2 | `add.u64` on line 35 | `%rd1` |
                | 2 | `bra` on line 38 |  |
                | 1 | `add.f32` on line 34 | `%f1` |
                | 1 | `add.u32` on line 36 | `%r2` |

                ## Loop `L` on line 32

                A loop of 17 machine instructions. In a warp alone, with data in the second-level cache, 4 iterations take about 259 cycles, of which it waits 224 for `ld.global.f32` on line 33. With many warps, a scheduler completes at most 4 iterations in 32 cycles, limited by shared memory and the first-level cache.

                Unrolled: 4 iterations at a time.
            "#]],
        );
        check(
            &counted(".pragma \"nounroll\";\n"),
            expect![[r##"
            # `k`

            At most 7 registers are live, before `add.f32` on line 35:

            | registers | computed by | as |
            |---|---|---|
            | 4 | `add.u64` on line 36 | `%rd1` |
            | 1 | `add.f32` on line 35 | `%f1` |
            | 1 | `add.u32` on line 37 | `%r2` |
            | 1 | `ld.global.f32` on line 34 | `%f2` |

            ## Loop `L` on line 32

            A loop of 10 machine instructions. In a warp alone, with data in the second-level cache, one iteration takes about 260 cycles, of which it waits 228 for `ld.global.f32` on line 34. With many warps, a scheduler completes at most one iteration in 12 cycles, limited by the integer and logic pipe.

            Not unrolled: `.pragma "nounroll"` forbids it.
        "##]],
        );
    }

    #[test]
    fn a_loop_with_another_exit_stays() {
        check(
            "L:\nld.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p2, %r2, 7;\n@%p2 bra END;\nadd.u64 %rd1, %rd1, 4;\n\
             sub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra L;\nEND:",
            expect![[r#"
                # `k`

                At most 3 registers are live, before `setp.eq.u32` on line 32:

                | registers | computed by | as |
                |---|---|---|
                | 2 | `add.u64` on line 34 | `%rd1` |
                | 1 | `ld.global.u32` on line 31 | `%r2` |

                ## Loop `L` on line 30

                A loop of 8 machine instructions. In a warp alone, with data in the second-level cache, one iteration takes about 283 cycles, of which it waits 239 for `ld.global.u32` on line 31. With many warps, a scheduler completes at most one iteration in 8 cycles, limited by issue slots.

                Not unrolled: it has exits besides a test at its end.
            "#]],
        );
    }

    #[test]
    fn each_reason_against_unrolling() {
        let last = "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra L;";
        let long = "fma.rn.f32 %f1, %f1, %f2, %f3;\n".repeat(30);
        let loads = "ld.volatile.global.f32 %f1, [%rd1];\nst.volatile.global.f32 [%rd1], %f1;\n".repeat(50);
        let cases = [
            (long + last, "an iteration costs 32 operations; at most 20 are unrolled"),
            (
                "st.global.u32 [%rd1], %r2;\nsetp.lt.u32 %p1, %r2, %r1;\nadd.u32 %r2, %r2, 1;\n@%p1 bra L;"
                    .to_owned(),
                "the number of iterations is not constant, and the test compares the variable before its step",
            ),
            (
                "ld.global.u32 %r2, [%rd1];\nadd.u64 %rd1, %rd1, 4;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra L;"
                    .to_owned(),
                "its test does not compare a variable with constant step with a limit that stays the same",
            ),
            (
                format!(
                    "setp.eq.u32 %p2, %r2, 9;\n@%p2 bra M;\nactivemask.b32 %r3;\nst.global.u32 [%rd1], %r3;\nM:\n{last}"
                ),
                "threads execute a statement together, but not in every iteration (`activemask.b32` on line 34)",
            ),
            (
                format!("mov.u32 %r1, %laneid;\nactivemask.b32 %r3;\nst.global.u32 [%rd1], %r3;\n{last}"),
                "threads may leave it in different iterations, but execute operations together or update memory",
            ),
            (
                format!("membar.gl;\n{last}"),
                "a statement with a call, a fence or a wait is not copied (`membar.gl` on line 32)",
            ),
            (
                format!("{loads}mad.lo.u32 %r2, %r2, 5, 7;\nsetp.ne.u32 %p1, %r2, 1717;\n@%p1 bra L;"),
                "its 4 iterations would be too long for what is saved",
            ),
        ];
        for (body, expected) in cases {
            let body = format!(
                "mov.u32 %r2, 1;\nL:\n{body}\nst.global.f32 [%rd1], %f1;\nst.global.u32 [%rd1+8], %r2;"
            );
            let db = Database::default();
            let file = db.add_file(text(&body));
            let found = reasons(&db, file, "k").expect("compiled");
            let [one] = &found.loops[..] else { panic!("{body}\n{found:?}") };
            let expected = format!("\nNot unrolled: {expected}.\n");
            assert!(one.markdown.ends_with(&expected), "{body}\n{}\n{expected}", one.markdown);
        }
    }

    #[test]
    fn a_loop_of_an_inlined_function_is_not_one_of_the_caller() {
        check(
            "L:\n{\n.param .b64 p;\n.param .b32 q;\n.param .b32 s;\nst.param.b64 [p], %rd1;\nst.param.b32 [q], %r1;\n\
             call (s), sum, (p, q);\nld.param.b32 %r2, [s];\n}\nst.global.u32 [%rd1], %r2;\nadd.u64 %rd1, %rd1, 4;\n\
             setp.ne.u32 %p1, %r2, 0;\n@%p1 bra L;",
            expect![[r#"
                # `k`

                At most 6 registers are live, before `call` on line 37:

                | registers | computed by | as |
                |---|---|---|
                | 4 | `add.u64` on line 41 | `%rd1` |
                | 2 | `call` on line 37 |  |

                ## Loop `L` on line 30

                Not unrolled: it contains a loop.
            "#]],
        );
    }

    #[test]
    fn spills_state_where_registers_are_missing() {
        let loads = (10..40).map(|i| format!("ld.volatile.global.u32 %r{i}, [%rd1+{}];\n", 4 * i));
        let stores = (10..40).map(|i| format!("st.volatile.global.u32 [%rd1+{}], %r{i};\n", 4 * i));
        check(
            &loads.chain(stores).collect::<String>(),
            expect![[r#"
                # `k`

                At most 20 registers are live, before `ld.volatile.global.u32` on line 48:

                | registers | computed by | as |
                |---|---|---|
                | 20 | `ld.volatile.global.u32` on 18 lines, 30 to 47 | `%r10`, `%r11`, `%r12`, `%r13`, … |

                Spilled, because too few registers are available:

                - `ld.volatile.global.u32` on 12 lines, 48 to 59: 12 registers; 32 would be live before `ld.volatile.global.u32` on line 59, and 21 are available

                Launch bounds or options limit the function to 24 registers.
            "#]],
        );
    }
}
