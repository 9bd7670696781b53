//! Products of matrices with an unspecified layout in registers, which only `wmma` loads and stores know.

use super::forms::{VERSION, names, target};
use super::matrix::word;
use super::{Random, compare_of};
use crate::case::{Argument, Case, Compare};
use ptx_isa::{ExpectedLanes, ExpectedType, FormId, Mod, Opcode, ScalarType, form, signature};
use std::fmt::Write;

pub(super) const FORMS: &[FormId] =
    &[FormId::WmmaMmaF16, FormId::WmmaMma, FormId::WmmaMmaInt4, FormId::WmmaMmaBits, FormId::WmmaMmaInt4Wide];

/// Rows, columns and depth.
const SHAPES: &[(Mod, [usize; 3])] = &[
    (Mod::M16n16k16, [16, 16, 16]),
    (Mod::M8n32k16, [8, 32, 16]),
    (Mod::M32n8k16, [32, 8, 16]),
    (Mod::M16n16k8, [16, 16, 8]),
    (Mod::M8n8k4, [8, 8, 4]),
    (Mod::M8n8k32, [8, 8, 32]),
    (Mod::M8n8k128, [8, 8, 128]),
];
/// The number of bits between the end of a row and the start of the next one.
const PADDING: usize = 128;

pub(super) fn absence(opcode: &Opcode) -> Option<&'static str> {
    match opcode.form {
        FormId::WmmaMmaInt4Wide => {
            Some("ptxas takes nibbles in the shapes of wider types, which the manual does not have")
        }
        _ => None,
    }
}

pub(super) fn all_names() -> impl Iterator<Item = (String, Opcode)> {
    FORMS.iter().flat_map(|&id| names(form(id)))
}

/// One matrix: its letter, type, extents and layout.
struct Part {
    letter: &'static str,
    ty: ScalarType,
    extents: [usize; 2],
    layout: Mod,
    registers: usize,
}

impl Part {
    /// The distance from one row or column to the next, in elements.
    fn stride(&self) -> usize {
        let across = self.extents[usize::from(self.layout == Mod::Row)];
        let unit = PADDING / self.ty.bits() as usize;
        across.next_multiple_of(unit) + unit
    }

    fn bytes(&self) -> usize {
        let lines = self.extents[usize::from(self.layout != Mod::Row)];
        self.stride() * lines * self.ty.bits() as usize / 8
    }

    fn registers(&self) -> String {
        let all: Vec<String> = (0..self.registers).map(|i| format!("%{}{i}", self.letter)).collect();
        format!("{{{}}}", all.join(", "))
    }
}

fn kernel(name: &str, opcode: &Opcode) -> Option<Case> {
    let mut random = Random::new(name.bytes().fold(7, |hash: u64, b| hash.wrapping_mul(31) + u64::from(b)));
    let &(shape, [m, n, k]) = SHAPES.iter().find(|(shape, _)| opcode.has(*shape))?;
    let mut layouts = opcode.mods().filter(|layout| matches!(layout, Mod::Row | Mod::Col));
    let (first, second) = (layouts.next()?, layouts.next()?);
    let halves = opcode.form == FormId::WmmaMmaF16;
    let ty = |position: usize| if halves { Some(ScalarType::F16) } else { opcode.ty(position) };
    let types = [opcode.ty(0)?, ty(1)?, ty(2)?, if halves { opcode.ty(1)? } else { opcode.ty(3)? }];
    let extents = [[m, n], [m, k], [k, n], [m, n]];
    // Whatever the layouts of the factors are, results are stored in both layouts.
    let other = if first == Mod::Row { Mod::Col } else { Mod::Row };
    let signature = signature(opcode);
    let mut parts = Vec::new();
    for (i, operand) in signature.operands.iter().enumerate() {
        let ExpectedLanes::Exactly(registers) = operand.lanes else { return None };
        parts.push(Part {
            letter: ["d", "a", "b", "c"][i],
            ty: types[i],
            extents: extents[i],
            layout: [other, first, second, second][i],
            registers: registers as usize,
        });
    }
    let mut text = String::new();
    let mut arguments = Vec::new();
    for (part, operand) in parts.iter().zip(&signature.operands) {
        let bits = if operand.ty == ExpectedType::Typed(ScalarType::F64) { 64 } else { 32 };
        let _ = writeln!(text, "    .reg .b{bits} %{}<{}>;", part.letter, part.registers);
    }
    for part in &parts[1..] {
        let _ = writeln!(
            text,
            "    ld.param.u64 %at, [{0}];\n    wmma.load.{0}.sync.aligned.{1}.{2}.global.{3} {4}, [%at], {5};",
            part.letter,
            part.layout.text(),
            shape.text(),
            part.ty.text(),
            part.registers(),
            part.stride(),
        );
        let size = if part.ty == ScalarType::F64 { 8 } else { 4 };
        let words = (0..part.bytes().div_ceil(size))
            .flat_map(|_| word(opcode, part.ty, &mut random).to_le_bytes()[..size].to_vec());
        arguments.push(Argument::Buffer(words.collect(), Compare::Exact));
    }
    let written: Vec<String> = parts.iter().map(Part::registers).collect();
    let _ = writeln!(text, "    {name} {};", written.join(", "));
    let d = &parts[0];
    let _ = writeln!(
        text,
        "    ld.param.u64 %at, [d];\n    wmma.store.d.sync.aligned.{}.{}.global.{} [%at], {}, {};",
        d.layout.text(),
        shape.text(),
        d.ty.text(),
        d.registers(),
        d.stride(),
    );
    arguments.insert(0, Argument::Buffer(vec![0; d.bytes()], compare_of(d.ty.text())));
    let ptx = format!(
        ".version {VERSION}\n.target {}\n.address_size 64\n.visible .entry k(.param .u64 d, .param .u64 a, \
         .param .u64 b, .param .u64 c)\n{{\n    .reg .b64 %at;\n{text}    ret;\n}}\n",
        target(opcode)?,
    );
    Some(Case::new(ptx, 1, 32, arguments))
}

/// The statement of a kernel.
pub(super) fn statement(case: &Case) -> Option<String> {
    case.ptx.lines().map(str::trim).find(|line| line.starts_with("wmma.mma")).map(str::to_owned)
}

/// The kernels of all products.
pub(super) fn all() -> Vec<Case> {
    let present = all_names().filter(|(_, opcode)| absence(opcode).is_none());
    present.filter_map(|(name, opcode)| kernel(&name, &opcode)).collect()
}
