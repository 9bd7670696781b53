//! Loops with a counter, as compilers write them: short, with one test at the end, of many or few turns.

use super::Writer;

impl Writer {
    /// A loop whose counter goes by a constant step to a limit, which is known or is not.
    pub(super) fn counted(&mut self, mask: Option<&str>) {
        let (head, count, limit) = (self.label(), self.own(), self.own());
        if self.random.below(4) == 0 {
            self.line(".pragma \"nounroll\";");
        }
        let step =
            [1, 2, 3, 4, 7, 64][self.random.below(6) as usize] * [1, -1][self.random.below(2) as usize];
        let known = self.random.below(2) == 0;
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
            // The limit may be passed before the start, and lies between steps.
            let bits = self.random.below(4);
            self.line(&format!("xor.b32 {limit}, {limit}, {bits};"));
        }
        let compare = match step > 0 {
            _ if exact => "ne.s32",
            true => self.pick(&["lt.s32", "le.s32"]),
            false => self.pick(&["gt.s32", "ge.s32"]),
        };
        // A turn may see its number before or after the step.
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
}

/// No structure stands so deep.
const DEEPEST: usize = 4;
