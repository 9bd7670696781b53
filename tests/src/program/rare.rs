//! Operations that expand to several instructions, and half-precision arithmetic.

use super::Writer;

impl Writer {
    /// Adds correctly rounded roots and quotients.
    pub(super) fn roots(&mut self) {
        let text = if self.random.below(3) == 0 {
            let (d, a, b) = (self.double(), self.double(), self.double());
            self.line(&format!("and.b64 %w0, {a}, 0x7fefffffffffffff;\nor.b64 %w1, {b}, 0x10000000000000;\nand.b64 %w1, %w1, 0xbfffffffffffffff;"));
            match self.random.below(3) {
                0 => format!("div.rn.f64 {d}, %w0, %w1;"),
                1 => format!("sqrt.rn.f64 {d}, %w0;"),
                _ => format!("rcp.rn.f64 {d}, %w1;"),
            }
        } else {
            let (d, a, b) = (self.word(), self.word(), self.word());
            self.line(&format!(
                "and.b32 %t0, {a}, 0x7f7fffff;\nor.b32 %t1, {b}, 0x800000;\nand.b32 %t1, %t1, 0xbfffffff;"
            ));
            let mode = self.pick(&["rn", "rn", "rz", "rm", "rp"]);
            match self.random.below(3) {
                0 => format!("div.{mode}.f32 {d}, %t0, %t1;"),
                1 => format!("sqrt.{mode}.f32 {d}, %t0;"),
                _ => format!("rcp.{mode}.f32 {d}, %t1;"),
            }
        };
        self.guarded(&text);
    }

    /// Adds integer operations that are rare in programs.
    pub(super) fn rare(&mut self) {
        let [d, a, e] = [(); 3].map(|()| self.word());
        let (b, c) = (self.operand(32), self.operand(32));
        let text = match self.random.below(15) {
            // If ptxas unrolls a loop, these sums wrongly use the first iteration's addend in all copies.
            1..=2 if !self.ragged => format!("mul.hi.{}32 {d}, {a}, {b};", self.pick(&["s", "u"])),
            0 => format!("{}.sat.s32 {d}, {a}, {b};", self.pick(&["add", "sub"])),
            1 => format!("mad.hi.{}32 {d}, {a}, {b}, {c};", self.pick(&["s", "u"])),
            2 => format!("mad.hi.sat.s32 {d}, {a}, {b}, {c};"),
            3 => {
                format!("mad24.{}.{}32 {d}, {a}, {b}, {c};", self.pick(&["lo", "hi"]), self.pick(&["s", "u"]))
            }
            4 => {
                self.line(&format!("mad.lo.cc.u32 %t0, {a}, {e}, {b};\nmadc.hi.cc.u32 %t1, {a}, {e}, {c};\nmadc.lo.u32 %t2, {e}, 3, 0;"));
                self.line(&format!("xor.b32 {d}, %t0, %t1;"));
                format!("add.u32 {d}, {d}, %t2;")
            }
            5 => format!(
                "prmt.b32.{} {d}, {a}, {b}, {c};",
                self.pick(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
            ),
            6 => format!(
                "dp2a.{}.{}32.{}32 {d}, {a}, {b}, {c};",
                self.pick(&["lo", "hi"]),
                self.pick(&["s", "u"]),
                self.pick(&["s", "u"])
            ),
            7 => format!("bmsk.{}.b32 {d}, {a}, {b};", self.pick(&["clamp", "wrap"])),
            8 => {
                format!("szext.{}.{}32 {d}, {a}, {b};", self.pick(&["clamp", "wrap"]), self.pick(&["s", "u"]))
            }
            9 => format!("bfind.shiftamt.{}64 {d}, {};", self.pick(&["s", "u"]), self.double()),
            10 => format!(
                "mul.hi.{}64 {}, {}, {};",
                self.pick(&["s", "u"]),
                self.double(),
                self.double(),
                self.operand(64)
            ),
            11 => {
                let (p, q, w) = (self.double(), self.double(), self.operand(64));
                self.line(&format!("sub.cc.u64 %w0, {p}, {w};\nsubc.u64 {q}, {q}, 0;"));
                format!("xor.b64 {p}, %w0, {q};")
            }
            12 => format!(
                "vadd{}.u32.u32.u32{} {d}, {a}, {e}, {d};",
                self.pick(&["2", "4"]),
                self.pick(&["", ".sat"])
            ),
            13 => {
                let property =
                    self.pick(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"]);
                let text = format!("testp.{property}.f32 {}, {a};", self.predicate());
                // ptxas executes it whether its guard is true or not.
                if self.ragged { text } else { return self.line(&text) }
            }
            _ => format!("copysign.f32 {d}, {a}, {e};"),
        };
        self.guarded(&text);
    }

    /// Adds half-precision arithmetic, on single halves and pairs, and conversions.
    pub(super) fn more_halves(&mut self) {
        let [d, a, b] = [(); 3].map(|()| self.word());
        let (h, g, p, q) = (self.half(), self.half(), self.predicate(), self.predicate());
        self.line(&format!("and.b32 %t0, {a}, 0xbbffbbff;\nand.b32 %t1, {b}, 0xbbffbbff;"));
        let text = match self.random.below(12) {
            0 => format!("fma.rn{}.bf16x2 {d}, %t0, %t1, %t0;", self.pick(&["", ".relu"])),
            1 => format!("{}.bf16x2 {d}, %t0, %t1;", self.pick(&["min", "max", "max.NaN"])),
            2 => format!("fma.rn{}.f16x2 {d}, %t0, %t1, %t1;", self.pick(&[".relu", ".sat", ".ftz"])),
            3 if p != q => format!("setp.{}.f16x2 {p}|{q}, %t0, %t1;", self.pick(&["lt", "ge", "neu"])),
            4 => format!("set.{}.f16x2.f16x2 {d}, %t0, %t1;", self.pick(&["lt", "eq"])),
            5 => format!("{}.f16x2 {d}, %t0;", self.pick(&["neg", "abs"])),
            6 => {
                self.line(&format!("and.b16 {h}, {h}, 0xbbff;\nand.b16 {g}, {g}, 0xbbff;"));
                // Without `.rn`, a product and a sum may be contracted.
                let operation = self.pick(&["add.rn", "sub.rn", "mul.rn", "min", "max", "add.rn.sat"]);
                format!("{operation}.f16 {h}, {h}, {g};")
            }
            7 => {
                self.line(&format!("and.b16 {h}, {h}, 0xbbff;"));
                format!("cvt.f32.f16 {d}, {h};")
            }
            8 => format!("cvt.{}.f16.f32 {h}, %t0;", self.pick(&["rn", "rz", "rn.sat"])),
            9 => format!(
                "cvt.{}.{}x2.f32 {d}, %t0, %t1;",
                self.pick(&["rn", "rz", "rn.relu"]),
                self.pick(&["f16", "bf16"])
            ),
            10 => {
                self.line(&format!("and.b16 {h}, {h}, 0xbbff;"));
                format!(
                    "cvt.{}.{}.f16 {d}, {h};",
                    self.pick(&["rni", "rzi", "rmi", "rpi"]),
                    self.pick(&["s32", "u32"])
                )
            }
            _ => format!("cvt.rn.f16.{} {h}, {a};", self.pick(&["s32", "u32"])),
        };
        self.guarded(&text);
    }

    /// Adds products and sums without a rounding modifier, which may be contracted. Small whole numbers are exact in
    /// both cases.
    pub(super) fn whole_numbers(&mut self) {
        let wide = self.random.below(3) == 0;
        let (ty, bits, v, d) =
            if wide { ("f64", 64, "%w", self.double()) } else { ("f32", 32, "%t", self.word()) };
        for i in 0..3 {
            let from = self.word();
            self.line(&format!("and.b32 %t{i}, {from}, 15;\nsub.s32 %t{i}, %t{i}, 8;"));
            self.line(&format!("cvt.rn.{ty}.s32 {v}{i}, %t{i};"));
        }
        // The product keeps its factor if its guard is false.
        let flush = if wide { "" } else { self.pick(&["", "", ".ftz"]) };
        self.guarded(&format!("mul{flush}.{ty} {v}1, {v}0, {v}1;"));
        if self.random.below(4) == 0 {
            let reader = self.register(bits);
            self.guarded(&format!("mov.b{bits} {reader}, {v}1;"));
        }
        let sum = self.pick(&["add", "sub"]);
        let operands = self.pick(&["#1, #2", "#2, #1", "#1, #1"]).replace('#', v);
        let limit = if wide { "" } else { self.pick(&["", "", ".sat"]) };
        self.guarded(&format!("{sum}{flush}{limit}.{ty} {d}, {operands};"));
    }

    /// Adds a search loop with a data-dependent end and two early exits.
    pub(super) fn search(&mut self, depth: usize) {
        let (head, end) = (self.label(), self.label());
        let (x, left) = (self.own(), self.own());
        let (from, predicate, most) = (self.word(), self.predicate(), 3 + self.random.below(9));
        self.line(&format!("or.b32 {x}, {from}, 1;\nmov.b32 {left}, {most};\n{head}:"));
        self.line(&format!("and.b32 %t0, {x}, 1;\nsetp.eq.u32 %q, %t0, 0;\n@%q shr.u32 {x}, {x}, 1;\n@!%q mad.lo.u32 {x}, {x}, 5, 3;"));
        self.ahead.push(end.clone());
        self.block(depth + 1, None);
        self.ahead.pop();
        if self.random.below(2) == 0 {
            self.line(&format!("@{predicate} bra {end};"));
        }
        self.line(&format!("setp.eq.u32 %q, {x}, 1;\n@%q bra {end};\nsub.u32 {left}, {left}, 1;\nsetp.ne.u32 %q, {left}, 0;\n@%q bra {head};\n{end}:"));
        let d = self.word();
        self.line(&format!("xor.b32 {d}, {d}, {x};"));
    }
}
