//! Functions that a program calls. Each has registers, and memory of its own and of the caller.

use super::{PART, Writer};
use crate::sweep::Random;
use std::fmt::Write;

impl Writer {
    /// A function, which may call the functions before it. `ends` says in which of these threads may exit.
    pub(super) fn function(random: Random, ends: &[bool], early: bool, ragged: bool) -> Writer {
        let mut writer = Writer::new(random, true, early, ragged, 3);
        writer.statements = 2 + writer.random.below(9) as usize;
        (writer.functions, writer.callee) = (ends.to_vec(), true);
        let number = ends.len();
        while writer.statements > 0 {
            writer.statement(0, None);
        }
        let mut text = format!(
            ".func (.param .align 8 .b8 results[16]) f{number}(.param .b32 one, .param .b64 two, .param .b64 three, .param .b64 four, .param .b32 five)\n{{\n{}",
            writer.registers()
        );
        text += "ld.param.b32 %me, [one];\nld.param.u64 %d0, [two];\nld.param.u64 %in, [three];\nld.param.u64 %out, [four];\nld.param.b32 %shared, [five];\n\
             mov.b32 %all, -1;\nmov.u64 %local, array;\nmov.u64 %source, %in;\nmov.u32 %u0, %ntid.x;\nmov.u32 %u1, 5;\nmov.u32 %u2, 3;\nmov.u64 %d1, %in;\nsub.u64 %d1, %d0, 7;\nnot.b64 %d2, %d0;\nmov.b64 %d3, 1;\nmov.b16 %h0, 9;\nmov.b16 %h1, -3;\ncvt.u16.u32 %h2, %me;\n";
        for i in 0..super::WORDS {
            let _ = writeln!(text, "mad.lo.u32 %r{i}, %me, {}, {i};", 2 * i + 1);
        }
        for i in 0..super::PREDICATES {
            let _ = writeln!(text, "setp.lt.s32 %p{i}, %r{i}, %r{};", i + 4);
        }
        for at in (0..PART).step_by(16) {
            let _ = writeln!(text, "st.local.v4.b32 [array+{at}], {{%me, %r1, %all, %r2}};");
        }
        text += &writer.text;
        text += "END:\n";
        if number.is_multiple_of(2) {
            text += "and.b32 %t0, %r1, 2;\nsetp.eq.b32 %p0, %t0, 0;\n@%p0 bra LATER;\nst.param.b32 [results], %r2;\n\
                 st.param.b64 [results+8], %d1;\nret;\nLATER:\n";
        }
        for i in 1..super::WORDS {
            let _ = writeln!(text, "mad.lo.u32 %r0, %r0, 31, %r{i};");
        }
        for i in 1..super::DOUBLES {
            let _ = writeln!(text, "xor.b64 %d0, %d0, %d{i};");
        }
        for i in 0..super::HALVES {
            let _ = writeln!(text, "cvt.u32.u16 %t0, %h{i};\nmad.lo.u32 %r0, %r0, 31, %t0;");
        }
        for i in 0..super::PREDICATES {
            let _ = writeln!(text, "@%p{i} add.u32 %r0, %r0, {};", 1 << i);
        }
        text += "ld.local.b32 %t0, [array+20];\nxor.b32 %r0, %r0, %t0;\nst.param.b32 [results], %r0;\nst.param.b64 [results+8], %d0;\nret;\n}\n";
        writer.text = text;
        writer
    }

    /// Adds a call by some or all threads.
    pub(super) fn call(&mut self) {
        let (d, wide, x, y) = (self.word(), self.double(), self.operand(32), self.operand(64));
        let function = self.random.below(self.functions.len() as u64) as usize;
        self.ended |= self.functions[function];
        self.line("{\n.param .b32 a1; .param .b64 a2; .param .b64 a3; .param .b64 a4; .param .b32 a5; .param .align 8 .b8 r[16];");
        self.line(&format!("st.param.b32 [a1], {x};\nst.param.b64 [a2], {y};\nst.param.b64 [a3], %in;\nst.param.b64 [a4], %out;\nst.param.b32 [a5], %shared;"));
        // A load of a result cannot have a guard, so that a branch skips it with the call.
        let guard = self.guard();
        if !guard.is_empty() {
            let opposite = match guard.strip_prefix("@!") {
                Some(predicate) => format!("@{predicate}"),
                None => guard.replacen('@', "@!", 1),
            };
            self.line(&format!("{opposite}bra SKIP;"));
        }
        self.line(&format!(
            "call (r), f{function}, (a1, a2, a3, a4, a5);\nld.param.b32 {d}, [r];\nld.param.b64 {wide}, [r+8];\nSKIP:\n}}"
        ));
    }
}
