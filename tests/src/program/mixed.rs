//! Chains of carries, partly used vectors, fields at data-dependent positions, and bytes of words.

use super::Writer;

impl Writer {
    /// Adds sums or differences of several words, with other instructions between the words.
    pub(super) fn carries(&mut self) {
        let op = self.pick(&["add", "sub", "mad"]);
        let words = 2 + self.random.below(4);
        let own: Vec<String> = (0..words).map(|_| self.own()).collect();
        for (i, d) in own.iter().enumerate() {
            let (a, b, c) = (self.word(), self.operand(32), self.operand(32));
            let carry = if i == 0 { "" } else { "c" };
            let cc = if i + 1 == own.len() { "" } else { ".cc" };
            let half = self.pick(&["lo", "hi"]);
            match op {
                "mad" => self.line(&format!("mad{carry}.{half}{cc}.u32 {d}, {a}, {b}, {c};")),
                _ => self.line(&format!("{op}{carry}{cc}.u32 {d}, {a}, {b};")),
            }
            match self.random.below(4) {
                0 => self.comparison(),
                1 => self.choice(),
                2 => {
                    // No branch goes to this label.
                    let label = self.label();
                    self.line(&format!("{label}:"));
                }
                _ => {}
            }
        }
        for d in own {
            let r = self.word();
            self.guarded(&format!("xor.b32 {r}, {r}, {d};"));
        }
    }

    /// Adds vector loads with unused elements.
    pub(super) fn vectors(&mut self) {
        let space = self.pick(&["local", "shared", "global"]);
        let base = match space {
            "local" => "%local",
            "shared" => "%shared",
            _ => "%source",
        };
        let at = self.random.below(8) * 16;
        let first = self.random.below(super::WORDS);
        let element = |i: u64| format!("%r{}", (first + i) % super::WORDS);
        let wanted = 1 + self.random.below(14);
        let list: Vec<String> =
            (0..4).map(|i| if wanted >> i & 1 == 1 { element(i) } else { "_".into() }).collect();
        let ty = self.pick(&["b32", "u32", "s32", "f32"]);
        self.guarded(&format!("ld.{space}.v4.{ty} {{{}}}, [{base}+{at}];", list.join(", ")));
    }

    /// Adds fields and shifts by data-dependent amounts.
    pub(super) fn fields(&mut self) {
        let [d, a, b, c] = [(); 4].map(|()| self.word());
        let sign = self.pick(&["s", "u"]);
        self.line(&format!("and.b32 %t0, {b}, 31;\nand.b32 %t1, {c}, 31;"));
        let text = match self.random.below(6) {
            0 => format!("bfe.{sign}32 {d}, {a}, %t0, %t1;"),
            1 => format!("bfi.b32 {d}, {a}, {d}, %t0, %t1;"),
            2 => {
                let (x, y) = (self.double(), self.double());
                format!("bfe.{sign}64 {x}, {y}, %t0, %t1;")
            }
            3 => {
                let (x, y) = (self.double(), self.double());
                format!("bfi.b64 {x}, {y}, {x}, %t0, %t1;")
            }
            4 => {
                let (x, y) = (self.double(), self.double());
                format!("shr.{sign}64 {x}, {y}, {b};")
            }
            _ => {
                let (x, y) = (self.double(), self.double());
                format!("shl.b64 {x}, {y}, {b};")
            }
        };
        self.guarded(&text);
    }

    /// Adds words made of bytes and halves of other words.
    pub(super) fn bytes(&mut self) {
        let [d, a, b] = [(); 3].map(|()| self.word());
        let h = self.half();
        match self.random.below(5) {
            0 => {
                let selector = self.random.below(0x10000);
                self.guarded(&format!("prmt.b32 {d}, {a}, {b}, {selector};"));
            }
            1 => {
                self.line(&format!("cvt.u16.u32 {h}, {a};"));
                self.guarded(&format!("mov.b32 {d}, {{{h}, {h}}};"));
            }
            2 => {
                let g = self.half();
                if g != h {
                    self.guarded(&format!("mov.b32 {{{h}, {g}}}, {a};"));
                }
                let sign = self.pick(&["s", "u"]);
                self.line(&format!("cvt.{sign}32.{sign}8 %t0, {h};"));
                self.guarded(&format!("add.u32 {d}, %t0, {b};"));
            }
            3 => {
                let to = self.pick(&["s8", "u8", "s16", "u16"]);
                self.line(&format!("cvt.sat.{to}.s32 %t0, {a};\nshl.b32 %t0, %t0, 8;"));
                self.guarded(&format!("or.b32 {d}, %t0, {b};"));
            }
            _ => {
                let w = self.double();
                self.line(&format!("mov.b64 {{%t0, %t1}}, {w};\nprmt.b32 %t0, %t0, {a}, 0x5410;"));
                self.guarded(&format!("mov.b64 {w}, {{%t1, %t0}};"));
            }
        }
    }
}
