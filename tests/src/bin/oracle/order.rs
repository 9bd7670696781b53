//! Runs the order checker on ptxas's own code, which shows whether its rules are too strict or too lax.
//!
//! With `-lineinfo`, ptxas records from which line of PTX each instruction comes, and `nvdisasm -gp` prints this. A
//! kernel is judged if every line has one statement, nothing is called, and no value is spilled, because the contents
//! of ptxas's stack frames are not known.

use crate::code::{self, Function};
use crate::tools::{self, Tools};
use conformance::case;
use ptx_backend::input::{Env, Function as Input, Instr, SrcId, Stmt};
use ptx_backend::order::{self, Claims};
use ptx_isa::{FormId, Mod};
use sass::{Inst, Sm};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The percentage of ptxas's kernels that must be accepted. The checker treats anything without a rule as a fence. So
/// it rejects code that moves surface accesses, or weak accesses past volatile accesses to other variables.
const LEAST_KEPT: usize = 95;

/// The findings in the kernels of a file.
#[derive(Clone, Default)]
pub(crate) struct Judged {
    pub(crate) kept: usize,
    pub(crate) all: usize,
    /// The kernels that cannot be judged, by reason.
    pub(crate) unjudged: BTreeMap<String, usize>,
    /// The violations, each with its kernel.
    pub(crate) findings: Vec<String>,
}

impl Judged {
    pub(crate) fn add(&mut self, other: Judged) {
        self.kept += other.kept;
        self.all += other.all;
        self.findings.extend(other.findings);
        for (why, count) in other.unjudged {
            *self.unjudged.entry(why).or_default() += count;
        }
    }

    /// Prints the findings. Returns whether enough kernels are accepted.
    pub(crate) fn report(&self) -> bool {
        for finding in &self.findings {
            println!("order          {finding}");
        }
        for (why, count) in &self.unjudged {
            println!("order          {count} kernels of ptxas's are not judged: {why}");
        }
        println!("order checker accepts {} of {} kernels of ptxas's", self.kept, self.all);
        self.kept * 100 >= self.all * LEAST_KEPT
    }
}

/// Judges ptxas's code of a file for a target.
pub(crate) fn judge(tools: &Tools, file: &Path, arch: &str, scratch: &Path) -> Judged {
    try_judge(tools, file, arch, scratch)
        .unwrap_or_else(|why| Judged { unjudged: BTreeMap::from([(why, 1)]), ..Judged::default() })
}

fn try_judge(tools: &Tools, file: &Path, arch: &str, scratch: &Path) -> Result<Judged, String> {
    let cubin = scratch.join("lines.cubin");
    let mut arguments = tools::compile_arguments(arch, file, &cubin);
    arguments.push("-lineinfo".to_owned());
    let said = tools::run(&tools.ptxas, arguments);
    let mut judged = Judged::default();
    if !said.ok {
        return Ok(judged);
    }
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&text);
    let module = case::parse(&text)?;
    let printed = tools::run(&tools.nvdisasm, ["-gp", "-c", &*cubin.to_string_lossy()]);
    let lines = lines(&printed.text);
    let bytes = std::fs::read(&cubin).map_err(|error| error.to_string())?;
    let (sm, functions) = code::read(&bytes)?;
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_of = |offset: usize| starts.partition_point(|start| *start <= offset);
    for (input, statements) in module.functions.iter().filter(|(input, _)| input.entry) {
        let Some(function) = functions.iter().find(|function| function.name == input.name) else { continue };
        let Some(lines) = lines.get(&input.name) else { continue };
        let statements: Vec<usize> = statements.iter().map(|offset| line_of(*offset)).collect();
        match one(sm, &module.env, input, &statements, function, lines) {
            Err(why) => *judged.unjudged.entry(why.to_owned()).or_default() += 1,
            Ok(result) => {
                judged.all += 1;
                match result {
                    Ok(()) => judged.kept += 1,
                    Err(violation) => {
                        let line = |src: SrcId| statements.get(src.0 as usize).copied().unwrap_or(0);
                        judged.findings.push(format!(
                            "{} {arch} {}: lines {} and {}: {}",
                            file.display(),
                            input.name,
                            line(violation.first),
                            line(violation.second),
                            violation.what
                        ));
                    }
                }
            }
        }
    }
    Ok(judged)
}

/// Judges one kernel. The error says why it cannot be judged.
fn one(
    sm: Sm,
    env: &Env,
    input: &Input,
    statements: &[usize],
    function: &Function,
    lines: &[usize],
) -> Result<Result<(), order::Violation>, &'static str> {
    let insts = function.code.as_ref().ok_or("a word does not decode")?;
    if function.calls() {
        return Err("it calls");
    }
    if !function.tables.is_empty() {
        return Err("it branches through a list");
    }
    let is_stack = |inst: &Inst| matches!(inst.form().mnemonic, "STL" | "LDL");
    if insts.iter().any(is_stack) {
        return Err("its frame is not known");
    }
    let mut by_line: BTreeMap<usize, SrcId> = BTreeMap::new();
    for (i, line) in statements.iter().enumerate() {
        if by_line.insert(*line, SrcId(i as u32)).is_some() {
            return Err("two statements are in one line");
        }
    }
    let count = input.body.iter().filter(|stmt| matches!(stmt, Stmt::Instr(_))).count();
    if count > statements.len() || lines.len() != insts.len() {
        return Err("its lines are not known");
    }
    // A statement that extends over several lines is identified by its first line.
    let statement = |line: &usize| by_line.range(..=*line).next_back().map(|(_, src)| *src);
    let lines: Vec<Option<SrcId>> = lines.iter().map(statement).collect();
    if is_unrolled(insts, &lines) {
        return Err("a loop is unrolled");
    }
    let insts = without_gatherings(sm, input, insts, &lines);
    let spills = vec![false; insts.len()];
    let never = dropped(input, &insts, &lines);
    Ok(order::check(
        env,
        input,
        sm,
        &insts,
        Claims {
            lines: &lines,
            unrolled: &[],
            joined: &[],
            spills: &spills,
            never: &never,
            tables: &[],
            frame_is_gone: false,
        },
    ))
}

/// Whether the access or barrier of a statement occurs more than once. Then one block of the code contains several
/// iterations of a loop, and the statements do not determine the order of its instructions.
fn is_unrolled(insts: &[Inst], lines: &[Option<SrcId>]) -> bool {
    const ONCE: [&str; 13] =
        ["LD", "LDG", "LDS", "ST", "STG", "STS", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "BAR", "LDGSTS"];
    let mut seen = BTreeSet::new();
    let accesses = insts.iter().zip(lines).filter(|(inst, _)| ONCE.contains(&inst.form().mnemonic));
    accesses
        .filter_map(|(inst, src)| Some((inst.form().mnemonic, (*src)?)))
        .any(|access| !seen.insert(access))
}

fn instrs(input: &Input) -> impl Iterator<Item = &Instr> {
    input.body.iter().filter_map(|stmt| match stmt {
        Stmt::Instr(instr) => Some(instr),
        _ => None,
    })
}

/// The code without instructions that only bring a warp together for another statement, for example before a barrier of
/// the block.
fn without_gatherings(sm: Sm, input: &Input, insts: &[Inst], lines: &[Option<SrcId>]) -> Vec<Inst> {
    let barriers: BTreeSet<SrcId> =
        instrs(input).filter(|i| i.opcode.form == FormId::BarWarpSync).map(|i| i.src).collect();
    let nop = Inst::new(sass::lookup(sm, "NOP", "").expect("every generation has the form"));
    let gathers = |inst: &Inst, src: &Option<SrcId>| {
        inst.form().mnemonic == "WARPSYNC" && !src.is_some_and(|src| barriers.contains(&src))
    };
    insts.iter().zip(lines).map(|(inst, src)| if gathers(inst, src) { nop } else { *inst }).collect()
}

/// The statements that ptxas may remove and we do not: weak stores that later ones overwrite or that were merged with
/// another, and barriers of a whole warp that has converged.
fn dropped(input: &Input, insts: &[Inst], lines: &[Option<SrcId>]) -> Vec<SrcId> {
    let weak = |instr: &Instr| {
        [Mod::Volatile, Mod::Mmio, Mod::Relaxed, Mod::Release].iter().all(|m| !instr.opcode.has(*m))
    };
    let of = |instr: &Instr| -> &[&str] {
        match instr.opcode.form {
            FormId::BarWarpSync => &["WARPSYNC"],
            FormId::St if weak(instr) => &["ST", "STG", "STS"],
            _ => &[],
        }
    };
    let is_there = |instr: &Instr, names: &[&str]| {
        let mut own = insts.iter().zip(lines).filter(|(_, src)| **src == Some(instr.src));
        own.any(|(inst, _)| names.contains(&inst.form().mnemonic))
    };
    let may_go = instrs(input).map(|instr| (instr, of(instr))).filter(|(_, names)| !names.is_empty());
    may_go.filter(|(instr, names)| !is_there(instr, names)).map(|(instr, _)| instr.src).collect()
}

/// The PTX line of each instruction, by function, from the output of `nvdisasm -gp`.
fn lines(text: &str) -> BTreeMap<String, Vec<usize>> {
    let mut functions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut current = None;
    let mut line = 0;
    for text in text.lines() {
        if let Some(name) = text.strip_prefix(".text.").and_then(|rest| rest.strip_suffix(':')) {
            current = Some(functions.entry(name.to_owned()).or_default());
            line = 0;
        } else if let Some(rest) = text.trim_start().strip_prefix("//## File \".nv_debug_ptx_txt")
            && let Some((_, rest)) = rest.split_once("line ")
        {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            line = rest[..digits].parse().unwrap_or(0);
        } else if let (Some(lines), true) = (&mut current, text.trim_start().starts_with("/*")) {
            lines.push(line);
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_of_instructions() {
        let text = "\
.text.f:
	//## File \".nv_debug_ptx_txt\", line 66
        /*0000*/                   S2R R3, SR_CTAID.X ;
.L_x_2:
        /*0010*/                   EXIT ;
	//## File \".nv_debug_ptx_txt\", line 68 inlined at line 9
        /*0020*/                   BRA 0x20;
";
        assert_eq!(lines(text)["f"], [66, 66, 68]);
    }
}
