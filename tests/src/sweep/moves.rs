//! Copies of matrices between shared memory and the registers of a warp.

use super::Random;
use super::forms::{VERSION, names, target};
use crate::case::{Argument, Case, Compare};
use ptx_isa::{ExpectedLanes, FormId, Mod, Opcode, Role, form, signature};
use std::fmt::Write;

pub(super) const FORMS: &[FormId] = &[
    FormId::Ldmatrix,
    FormId::LdmatrixBytes,
    FormId::LdmatrixUnpack,
    FormId::Stmatrix,
    FormId::StmatrixBytes,
    FormId::Movmatrix,
];
const WARP: usize = 32;
/// The size of a row in bytes. Each row address comes from one thread.
const ROW: usize = 16;

pub(super) fn absence(opcode: &Opcode) -> Option<&'static str> {
    match opcode.form {
        FormId::Ldmatrix | FormId::Stmatrix if opcode.has(Mod::X8) => {
            Some("ptxas takes eight matrices, which the manual does not have")
        }
        _ => None,
    }
}

pub(super) fn all_names() -> impl Iterator<Item = (String, Opcode)> {
    FORMS.iter().flat_map(|&id| names(form(id)))
}

/// Threads provide the row addresses in another order than their own.
const ORDER: usize = 5;

fn kernel(name: &str, opcode: &Opcode) -> Option<Case> {
    let mut random = Random::new(name.bytes().fold(7, |hash: u64, b| hash.wrapping_mul(31) + u64::from(b)));
    let signature = signature(opcode);
    let lanes = |role| {
        let fragments = signature.operands.iter().filter(|operand| operand.role == role);
        let count = |lanes| match lanes {
            ExpectedLanes::Exactly(count) => count as usize,
            _ => 1,
        };
        fragments.map(|operand| count(operand.lanes)).max().unwrap_or(0)
    };
    let (loads, moves) = (name.starts_with("ldmatrix"), name.starts_with("movmatrix"));
    let registers = if loads { lanes(Role::Destination) } else { lanes(Role::Source) };
    let list = |letter: &str| (0..registers).map(|i| format!("%{letter}{i}")).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    let all = WARP * ROW;
    // The contents of shared memory, and the registers to store.
    let _ = writeln!(text, "    ld.global.v4.b32 {{%t0, %t1, %t2, %t3}}, [%in];");
    let _ = writeln!(text, "    st.shared.v4.b32 [%own], {{%t0, %t1, %t2, %t3}};\n    bar.sync 0;");
    for i in 0..registers {
        let _ = writeln!(text, "    ld.global.b32 %s{i}, [%in+{}];", all + 4 * i);
    }
    let shared = name.contains(".shared");
    let row = if shared { "%row" } else { "%at" };
    if !shared {
        text.push_str("    cvt.u64.u32 %at, %row;\n    cvta.shared.u64 %at, %at;\n");
    }
    let _ = match (loads, moves) {
        (true, _) => writeln!(text, "    {name} {{{}}}, [{row}];", list("d")),
        (_, true) => writeln!(text, "    {name} %d0, %s0;"),
        _ => writeln!(text, "    {name} [{row}], {{{}}};", list("s")),
    };
    if loads || moves {
        for i in 0..registers {
            let _ = writeln!(text, "    st.global.b32 [%out+{}], %d{i};", 4 * i);
        }
    } else {
        let _ = writeln!(text, "    bar.sync 0;\n    ld.shared.v4.b32 {{%t0, %t1, %t2, %t3}}, [%own];");
        let _ = writeln!(text, "    st.global.v4.b32 [%out], {{%t0, %t1, %t2, %t3}};");
    }
    let ptx = format!(
        ".version {VERSION}\n.target {}\n.address_size 64\n.visible .entry k(.param .u64 o, .param .u64 i)\n{{\n    \
         .shared .align 16 .b8 rows[{all}];\n    .reg .b32 %lane, %own, %row, %t<4>, %s<4>, %d<4>;\n    \
         .reg .b64 %in, %out, %at;\n    mov.u32 %lane, %tid.x;\n    mov.u32 %own, rows;\n    xor.b32 %row, %lane, {ORDER};\n    \
         mad.lo.u32 %row, %row, {ROW}, %own;\n    mad.lo.u32 %own, %lane, {ROW}, %own;\n    ld.param.u64 %in, [i];\n    \
         ld.param.u64 %out, [o];\n    mad.wide.u32 %in, %lane, {ROW}, %in;\n    mad.wide.u32 %out, %lane, {ROW}, %out;\n\
         {text}    ret;\n}}\n",
        target(opcode)?
    );
    let input = (0..2 * all / 4).flat_map(|_| (random.next() as u32).to_le_bytes());
    let arguments = vec![
        Argument::Buffer(vec![0; all], Compare::Exact),
        Argument::Buffer(input.collect(), Compare::Exact),
    ];
    Some(Case::new(ptx, 1, WARP as u32, arguments))
}

/// The statement of a kernel.
pub(super) fn statement(case: &Case) -> Option<String> {
    let is_move =
        |line: &&str| ["ldmatrix", "stmatrix", "movmatrix"].iter().any(|name| line.starts_with(name));
    case.ptx.lines().map(str::trim).find(is_move).map(str::to_owned)
}

/// The kernels of all moves.
pub(super) fn all() -> Vec<Case> {
    let present = all_names().filter(|(_, opcode)| absence(opcode).is_none());
    present.filter_map(|(name, opcode)| kernel(&name, &opcode)).collect()
}
