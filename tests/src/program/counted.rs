//! Loops with a counter, as compilers generate them: mostly short, with one test at the end, and with many or few
//! iterations.

use super::{PART, Writer};

impl Writer {
    /// Adds a loop whose counter changes by a constant step up to a limit, which is known or unknown.
    pub(super) fn counted(&mut self, depth: usize, mask: Option<&str>) {
        match self.random.below(3) {
            0 => self.uniform_loop(depth.clamp(1, DEEPEST - 1), mask, 0),
            known => self.short_loop(mask, known == 1),
        }
    }

    /// Adds a loop of one block, unless its few statements need more blocks. The number of iterations is known, or
    /// differs between threads.
    fn short_loop(&mut self, mask: Option<&str>, known: bool) {
        let (head, count, limit) = (self.label(), self.own(), self.own());
        if self.random.below(4) == 0 {
            self.line(".pragma \"nounroll\";");
        }
        let step =
            [1, 2, 3, 4, 7, 64][self.random.below(6) as usize] * [1, -1][self.random.below(2) as usize];
        let exact = self.random.below(2) == 0;
        let trips = 1 + self.random.below(20) as i64;
        let start = self.random.below(60) as i64 - 30;
        let (first, last) = (self.word(), self.word());
        match known {
            true => {
                self.line(&format!("mov.b32 {count}, {start};\nmov.b32 {limit}, {};", start + step * trips))
            }
            false => self.line(&format!(
                "and.b32 {count}, {first}, 63;\nand.b32 {limit}, {last}, 15;\n\
                 mad.lo.s32 {limit}, {limit}, {step}, {step};\nadd.u32 {limit}, {limit}, {count};"
            )),
        }
        if !known && !exact {
            // The limit may be before the start, and may lie between two steps.
            let bits = self.random.below(4);
            self.line(&format!("xor.b32 {limit}, {limit}, {bits};"));
        }
        let compare = match step > 0 {
            _ if exact => "ne.s32",
            true => self.pick(&["lt.s32", "le.s32"]),
            false => self.pick(&["gt.s32", "ge.s32"]),
        };
        // An iteration may use the counter before or after the step.
        let early = self.random.below(4) == 0;
        self.line(&format!("{head}:"));
        if early {
            self.line(&format!("add.s32 {count}, {count}, {step};"));
        }
        let sum = self.word();
        self.line(&format!("mad.lo.u32 {sum}, {sum}, 5, {count};"));
        let mask = mask.filter(|_| known);
        for _ in 0..1 + self.random.below(4) {
            self.statement(DEEPEST, mask);
        }
        if !early {
            self.line(&format!("add.s32 {count}, {count}, {step};"));
        }
        self.line(&format!("setp.{compare} %q, {count}, {limit};\n@%q bra {head};"));
    }

    /// An unknown number below `below` that is the same in all threads.
    fn uniform_number(&mut self, below: u64) -> String {
        let n = self.own();
        let text = match self.random.below(5) {
            0 => format!("mov.u32 {n}, %ntid.x;\nshr.u32 {n}, {n}, {};", self.random.below(7)),
            1 => format!(
                "mov.u32 {n}, %nctaid.x;\nmad.lo.u32 {n}, {n}, {}, {};",
                self.random.below(9),
                self.random.below(9)
            ),
            2 => format!("ld.const.b32 {n}, [constants+{}];", self.random.below(super::CONSTANTS) * 4),
            _ if self.callee => format!("mov.u32 {n}, %ntid.x;\nmul.hi.u32 {n}, {n}, 0x12345678;"),
            3 => format!("ld.param.u32 {n}, [turns];"),
            _ => format!(
                "mov.u32 {n}, %ntid.x;\nld.param.u32 %t0, [turns];\nsub.u32 {n}, {n}, %t0;\nshr.u32 {n}, {n}, {};",
                self.random.below(4)
            ),
        };
        self.line(&text);
        let bound = match self.random.below(3) {
            0 => format!("min.u32 {n}, {n}, {};", below - 1),
            1 => format!("rem.u32 {n}, {n}, {below};"),
            _ => format!("and.b32 {n}, {n}, {};", below.next_power_of_two() / 2 - 1),
        };
        self.line(&bound);
        n
    }

    /// Adds a loop in which all threads have the same iterations. It may contain other loops.
    fn uniform_loop(&mut self, depth: usize, mask: Option<&str>, level: u64) {
        let n = self.uniform_number([40, 7, 4][level as usize]);
        let (head, next, end) = (self.label(), self.label(), self.label());
        let count = self.own();
        if self.random.below(5) == 0 {
            self.line(".pragma \"nounroll\";");
        }
        let step = [1, 1, 1, 2, 3, 4, 8, 17][self.random.below(8) as usize];
        let down = self.random.below(3) == 0;
        let (limit, delta) = match down {
            false => {
                let start = [0, 0, 1, -5, 100][self.random.below(5) as usize];
                let limit = self.own();
                self.line(&format!("mov.b32 {count}, {start};\nmad.lo.s32 {limit}, {n}, {step}, {start};"));
                (limit, step)
            }
            true => {
                self.line(&format!("mul.lo.u32 {count}, {n}, {step};"));
                ("0".to_owned(), -step)
            }
        };
        let compare = match (down, self.random.below(3)) {
            (_, 0) => "ne.s32",
            (false, 1) => "lt.s32",
            (false, _) => self.pick(&["le.s32", "lt.s32"]),
            (true, 1) => "gt.s32",
            (true, _) => self.pick(&["ge.s32", "gt.s32"]),
        };
        // Without a test before it, a loop has at least one iteration. A loop that ends at exactly one value of the
        // counter needs the test.
        if compare == "ne.s32" || self.random.below(2) == 0 {
            self.line(&format!("setp.eq.u32 %q, {n}, 0;\n@%q bra {end};"));
        }
        self.line(&format!("{head}:"));
        if self.jumps {
            self.ahead.extend([end.clone(), next.clone()]);
        }
        let start = self.text.len();
        self.turn(depth, mask, level, &count);
        // As after unrolling: the same loop again, with a counter that has advanced.
        let copies = self.random.below(3);
        let body = self.text[start..].to_owned();
        if copies > 0 && !self.jumps && !body.contains(':') && compare != "ne.s32" {
            for _ in 0..copies {
                self.line(&format!("add.s32 {count}, {count}, {delta};\nsetp.{compare} %q, {count}, {limit};\n@!%q bra {end};"));
                self.text += &body;
            }
        }
        if self.random.below(5) == 0 {
            let last = self.random.below(24);
            self.line(&format!("setp.eq.u32 %q, {count}, {last};\n@%q bra {end};"));
        }
        if self.jumps {
            self.ahead.truncate(self.ahead.len() - 2);
        }
        self.line(&format!("{next}:\nadd.s32 {count}, {count}, {delta};"));
        self.line(&format!("setp.{compare} %q, {count}, {limit};\n@%q bra {head};\n{end}:"));
    }

    /// Adds the body of a loop.
    fn turn(&mut self, depth: usize, mask: Option<&str>, level: u64, count: &str) {
        let sum = self.word();
        match self.random.below(3) {
            0 => self.line(&format!("mad.lo.u32 {sum}, {sum}, 5, {count};")),
            1 => self.line(&format!("xor.b32 {sum}, {sum}, {count};")),
            _ => {}
        }
        if self.random.below(2) == 0 {
            self.element(count);
        }
        for _ in 0..self.random.below(4) {
            let deep = if level == 0 && self.random.below(4) == 0 { depth } else { DEEPEST };
            self.statement(deep, mask);
        }
        if level < 2 && self.random.below(3) == 0 {
            self.uniform_loop(depth, mask, level + 1);
        }
    }

    /// Adds a read or a write of the element that a counter selects in an array of the thread.
    fn element(&mut self, count: &str) {
        let (space, base) = [("local", "%local"), ("shared", "%shared"), ("global", "%source")]
            [self.random.below(3) as usize];
        let (d, turns) = (self.word(), PART / 4 - 1);
        let scale = [1, 1, 2, 5][self.random.below(4) as usize];
        self.line(&format!("mul.lo.u32 %t0, {count}, {scale};\nand.b32 %t0, %t0, {turns};"));
        match space {
            "shared" => self.line("mad.lo.u32 %t0, %t0, 4, %shared;"),
            _ => self.line(&format!("mad.wide.u32 %at, %t0, 4, {base};")),
        }
        let at = if space == "shared" { "%t0" } else { "%at" };
        if space == "global" || self.random.below(2) == 0 {
            self.line(&format!("ld.{space}.b32 %t1, [{at}];\nadd.u32 {d}, {d}, %t1;"));
        } else {
            self.line(&format!("st.{space}.b32 [{at}], {d};"));
        }
    }
}

/// Deeper than any structure.
const DEEPEST: usize = 4;
