//! Operations of whole warps and blocks on matrices and shared memory.

use super::{PART, STAGE, Writer};

impl Writer {
    /// Adds a product of fragments with arbitrary words.
    pub(super) fn product(&mut self) {
        let [a, b, c, d] = [(); 4].map(|()| self.word());
        let (e, f, g) = (self.word(), self.word(), self.word());
        let (left, right) = (self.pick(&["s8", "u8"]), self.pick(&["s8", "u8"]));
        self.line("bar.warp.sync -1;");
        match self.random.below(3) {
            0 => self.line(&format!(
                "mma.sync.aligned.m16n8k32.row.col.s32.{left}.{right}.s32 {{%r0, %r1, %r2, %r3}}, {{{a}, {b}, {c}, {d}}}, {{{e}, {f}}}, {{{g}, {a}, {b}, {c}}};"
            )),
            // Sums of products of such numbers are exact, so their order does not matter.
            1 => {
                for (t, from) in [("%t0", &a), ("%t1", &b), ("%t2", &c), ("%t3", &d)] {
                    self.line(&format!("and.b32 {t}, {from}, 0x83008300;\nor.b32 {t}, {t}, 0x3c003c00;"));
                }
                self.line("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r4, %r5}, {%t0, %t1, %t2, %t3}, {%t1, %t3}, {%t2, %t0};");
            }
            _ => {
                for (t, from) in [("%t0", &a), ("%t1", &b), ("%t2", &c)] {
                    self.line(&format!("and.b32 {t}, {from}, 0x80608060;\nor.b32 {t}, {t}, 0x3f803f80;"));
                }
                self.line(&format!("and.b32 %t3, {d}, 0x80600000;\nor.b32 %t3, %t3, 0x3f800000;"));
                self.line("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r2, %r3, %r4, %r5}, {%t0, %t1}, {%t2}, {%t3, %t3, %t3, %t3};");
            }
        }
    }

    /// Adds loads of fragments from rows in shared memory, and a transposition of fragments in registers.
    pub(super) fn fragments(&mut self) {
        let at = self.random.below(PART as u64 / 16) * 16;
        self.line("bar.warp.sync -1;");
        let trans = self.pick(&["", ".trans"]);
        match self.random.below(4) {
            0 => self.line(&format!(
                "ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r0, %r3, %r1, %r6}}, [%shared+{at}];"
            )),
            1 => self.line(&format!(
                "ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 {{%r5, %r2}}, [%shared+{at}];"
            )),
            2 => {
                let d = self.word();
                self.line(&format!(
                    "ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {{{d}}}, [%shared+{at}];"
                ));
            }
            _ => {
                let (d, a) = (self.word(), self.word());
                self.line(&format!("movmatrix.sync.aligned.m8n8.trans.b16 {d}, {a};"));
            }
        }
        self.line("bar.warp.sync -1;");
    }

    /// Adds counters of the block, and reads of other threads' words, between barriers.
    pub(super) fn shared_by_all(&mut self) {
        let (d, a, b) = (self.word(), self.word(), self.word());
        self.line("bar.sync 0;");
        if self.random.below(2) == 0 {
            let op = self.pick(&["add.u32", "max.s32", "min.u32", "xor.b32", "or.b32", "and.b32"]);
            let guard = self.guard();
            self.line(&format!("and.b32 %t0, {a}, 12;\nmov.u32 %t1, counters;\nadd.u32 %t1, %t1, %t0;"));
            self.line(&format!("{guard}red.shared.{op} [%t1], {b};\nbar.sync 0;\nld.shared.b32 {d}, [%t1];"));
        } else {
            let at = self.random.below(PART as u64 / 4) * 4;
            self.line(&format!(
                "and.b32 %t0, {a}, 63;\nmov.u32 %t1, exchange;\nmad.lo.u32 %t1, %t0, {PART}, %t1;"
            ));
            self.line(&format!("ld.shared.b32 {d}, [%t1+{at}];"));
        }
        self.line("bar.sync 0;");
    }

    /// Adds asynchronous copies that run while the thread does something else.
    pub(super) fn copies(&mut self) {
        let groups = 1 + self.random.below(3);
        self.line(&format!("mov.u32 %t3, stage;\nmad.lo.u32 %t3, %me, {STAGE}, %t3;"));
        for group in 0..groups {
            let size = [4, 8, 16][self.random.below(3) as usize];
            let from = self.random.below(PART as u64 / size) * size;
            let cache = if size == 16 { self.pick(&["ca", "cg"]) } else { "ca" };
            let some = match self.random.below(4) {
                0 => format!(", {}", self.random.below(size + 1)),
                _ => String::new(),
            };
            let guard = self.guard();
            self.line(&format!(
                "{guard}cp.async.{cache}.shared.global [%t3+{}], [%source+{from}], {size}{some};\ncp.async.commit_group;",
                group * 16
            ));
        }
        // `%t3` is not written here.
        for group in 0..groups {
            for _ in 0..self.random.below(3) {
                self.comparison();
            }
            let d = self.word();
            let left = groups - 1 - group;
            self.line(&format!("cp.async.wait_group {left};\nld.shared.b32 {d}, [%t3+{}];", group * 16));
        }
        self.line("cp.async.wait_all;");
    }
}
