//! The data for pictures of a function: its machine code by instruction, its blocks and loops, its resources, and the
//! layouts of its fragments.

use std::ops::Range;

use ptx_backend::assemble::JumpTable;
use ptx_backend::hazard::blocks;
use ptx_backend::input::{Operand, Stmt};
use ptx_backend::natural_loops::{NaturalLoop, natural_loops, reverse_postorder};
use ptx_backend::{CompiledFunction, Resources};
use ptx_isa::fragment::{Fragment, fragments};
use ptx_isa::{Opcode, Sm, signature};
use rustc_hash::FxHashSet;

use crate::compile::{compile_function, functions};
use crate::db::{Database, Db, SourceFile};
use crate::ide::resources::of_item;
use crate::ide::sass::table;
use crate::items::{Item, line_index};
use crate::lower::{function, lower};
use crate::module::architecture;
use crate::occupancy::Occupancy;

/// A compiled function.
#[derive(Clone, PartialEq, Debug)]
pub struct Portrait {
    pub function: String,
    pub target: Sm,
    /// A kernel.
    pub entry: bool,
    pub resources: Resources,
    /// Of kernels.
    pub occupancy: Option<Occupancy>,
    /// The number of threads per CTA for which the occupancy is computed.
    pub threads: u32,
    /// The instructions without padding.
    pub instructions: Vec<Instruction>,
    /// The reachable blocks, in code order.
    pub blocks: Vec<MachineBlock>,
    /// One for each kind of instruction whose operands are distributed over the lanes of a warp.
    pub fragments: Vec<Fragments>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    pub text: String,
    /// The number of live registers before it.
    pub live: u16,
    /// Cycles until the next instruction of the warp.
    pub stall: u8,
    /// The line of its statement, starting at 1.
    pub line: Option<u32>,
}

/// A basic block of machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineBlock {
    pub instructions: Range<usize>,
    pub successors: Vec<usize>,
    /// The loops around it, the innermost last, each identified by its header block.
    pub loops: Vec<usize>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Fragments {
    /// The instruction's whole name.
    pub name: String,
    pub all: Vec<Fragment>,
}

/// The portrait of a function by name; `None` if it is not compiled.
pub fn portrait(db: &Database, file: SourceFile, name: &str) -> Option<Portrait> {
    of(db, file, functions(db, file).find(|item| item.name(db) == name)?)
}

/// Portraits of all functions that are compiled.
pub fn portraits(db: &Database, file: SourceFile) -> Vec<Portrait> {
    functions(db, file).filter_map(|item| of(db, file, item)).collect()
}

fn of(db: &dyn Db, file: SourceFile, item: Item<'_>) -> Option<Portrait> {
    let compiled = compile_function(db, item).as_deref()?.as_ref().ok()?;
    let sm = architecture(db, file)?;
    let found = of_item(db, file, item, true)?;
    let instructions = instructions(db, file, item, compiled, sm);
    Some(Portrait {
        function: compiled.name.clone(),
        target: sm,
        entry: compiled.entry,
        resources: compiled.resources,
        occupancy: found.occupancy,
        threads: found.threads,
        blocks: machine_blocks(compiled, sm, instructions.len()),
        instructions,
        fragments: layouts(db, item),
    })
}

fn instructions(
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    compiled: &CompiledFunction,
    sm: Sm,
) -> Vec<Instruction> {
    let (map, offset, lines) = (&lower(db, item).map, item.offset(db), line_index(db, file));
    let end = ptx_backend::assemble::used(table(sm), &compiled.code);
    let one = |index: usize| {
        let address = index as u64 * sass::INST_BYTES;
        let word = compiled.code[index];
        let text = sass::decode(table(sm), word).map(|inst| sass::print(table(sm), &inst, address));
        let statement = compiled.lines[index].and_then(|src| map.statement(src));
        Instruction {
            text: text.unwrap_or_default(),
            live: compiled.live_registers.get(index).copied().unwrap_or(0),
            stall: sass::Control::from_bits(word).stall,
            line: statement.map(|range| lines.line_col(range.start() + offset).line + 1),
        }
    };
    (0..end).map(one).collect()
}

/// The blocks of the first `length` instructions; the rest is padding.
fn machine_blocks(compiled: &CompiledFunction, sm: Sm, length: usize) -> Vec<MachineBlock> {
    let decode = |&word: &u128| sass::decode(table(sm), word);
    let Some(code) = compiled.code[..length].iter().map(decode).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    if code.is_empty() {
        return Vec::new();
    }
    let tables: Vec<(usize, Vec<usize>)> = compiled.tables.iter().map(JumpTable::indices).collect();
    let found = blocks(&code, &tables);
    let order = reverse_postorder(&found.successors);
    let mut kept = order.clone();
    kept.sort_unstable();
    let number = |old: usize| kept.binary_search(&old).ok();
    let end = |block: usize| found.starts.get(block + 1).copied().unwrap_or(code.len());
    let mut all: Vec<MachineBlock> = kept
        .iter()
        .map(|&old| {
            let mut successors: Vec<usize> =
                found.successors[old].iter().filter_map(|&to| number(to)).collect();
            successors.sort_unstable();
            successors.dedup();
            MachineBlock { instructions: found.starts[old]..end(old), successors, loops: Vec::new() }
        })
        .collect();
    for NaturalLoop { header, blocks } in natural_loops(&found.successors, &order) {
        let Some(header) = number(header) else { continue };
        blocks.into_iter().filter_map(number).for_each(|block| all[block].loops.push(header));
    }
    all
}

/// The fragments of each kind of instruction in a body.
fn layouts(db: &dyn Db, item: Item<'_>) -> Vec<Fragments> {
    let Some(input) = function(db, item).as_ref() else { return Vec::new() };
    let mut known: FxHashSet<Opcode> = FxHashSet::default();
    let mut out = Vec::new();
    for statement in &input.body {
        let Stmt::Instr(instruction) = statement else { continue };
        if instruction.opcode.form.mnemonic() == "wmma" || known.contains(&instruction.opcode) {
            continue;
        }
        let expected = signature(&instruction.opcode).operands;
        let is_list = |name: &str| {
            let mut named = expected.iter().zip(&instruction.operands);
            let operand = named.find(|(expected, _)| expected.name == name);
            operand.is_some_and(|(_, operand)| matches!(operand, Operand::Vector(_) | Operand::List(_)))
        };
        let all = fragments(&instruction.opcode, is_list);
        if all.is_empty() {
            continue;
        }
        known.insert(instruction.opcode);
        let map = &lower(db, item).map;
        let text = map.statement(instruction.src).map(|range| &item.text(db)[range]);
        let words = text.unwrap_or_default().split(|c: char| c.is_ascii_whitespace() || c == ';');
        let mnemonic = instruction.opcode.form.mnemonic();
        let name = words.into_iter().find(|word| word.split('.').next() == Some(mnemonic));
        out.push(Fragments { name: name.unwrap_or(mnemonic).to_owned(), all });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portrait_of_a_loop() {
        let db = Database::default();
        let file = db.add_file(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n)\n{\n\
             .reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n.reg .pred %p;\nld.param.u64 %rd1, [a];\nld.param.u32 %r1, [n];\n\
             mov.u32 %r2, 0;\nL:\natom.global.add.u32 %r3, [%rd1], %r2;\nadd.s32 %r2, %r2, %r3;\nsetp.lt.u32 %p, %r2, %r1;\n\
             @%p bra L;\nst.global.u32 [%rd1], %r2;\nret;\n}\n",
        );
        let found = portrait(&db, file, "k").expect("it is compiled");
        assert!(found.blocks.iter().any(|block| block.loops.len() == 1), "{:?}", found.blocks);
        assert_eq!(found.blocks.last().expect("a block").instructions.end, found.instructions.len());
        let load = found.instructions.iter().find(|i| i.text.starts_with("ATOM")).expect("an atomic");
        assert_eq!(load.line, Some(13));
        assert!(found.occupancy.is_some() && found.entry);
    }

    /// As in the line tables of ptxas.
    #[test]
    fn an_exit_that_control_falls_into_belongs_to_its_ret() {
        let db = Database::default();
        let file = db.add_file(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n)\n{\n\
             .reg .b32 %r<4>;\n.reg .b64 %rd<2>;\n.reg .pred %p;\nld.param.u64 %rd1, [a];\nld.param.u32 %r1, [n];\n\
             setp.eq.u32 %p, %r1, 0;\n@%p bra DONE;\natom.global.exch.b32 %r2, [%rd1], %r1;\n\
             st.global.u32 [%rd1], %r2;\nDONE:\nret;\n}\n",
        );
        let found = portrait(&db, file, "k").expect("it is compiled");
        let exits: Vec<(&str, Option<u32>)> = found
            .instructions
            .iter()
            .filter(|one| one.text.ends_with("EXIT"))
            .map(|one| (one.text.as_str(), one.line))
            .collect();
        assert_eq!(exits, [("EXIT", Some(16))]);
    }
}
