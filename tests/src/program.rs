//! Random kernels that terminate: typed registers, nested conditions, switches and loops, forward jumps, memory of each
//! thread, and numbers that stay finite.

mod block;
mod counted;
mod functions;
mod mixed;
mod rare;
mod together;

use crate::case::{Argument, Case, Compare};
use crate::sweep::{Random, widens};
use std::fmt::Write;

const THREADS: usize = 64;
/// More instructions than the warps of any program execute.
const MOST_STEPS: u64 = 1_000_000;
/// The size of a thread's part of each buffer and array, in bytes.
const PART: usize = 128;
/// The size of a thread's part of the destination of copies, in bytes.
const STAGE: usize = 48;
/// The words that all threads change, in bytes, after the parts of the threads. At first all bits are set.
const TOTALS: usize = 32;
/// The number of variables of each class.
const WORDS: u64 = 8;
const DOUBLES: u64 = 4;
const HALVES: u64 = 3;
const PREDICATES: u64 = 4;
/// The number of words that are computed only from each other and from values that all threads share.
const SHARED_WORDS: u64 = 3;
/// The number of words in the constant bank.
const CONSTANTS: u64 = 16;
/// Parts of statements that the first target lacks.
const LATER: [&str; 9] =
    ["redux", "cp.async", "mma.", "bf16", "relu", "x2.f32", "min.f16", "max.f16", "max.NaN"];
/// The mask of all threads.
const ALL: &str = "%all";

/// A program under construction.
struct Writer {
    random: Random,
    text: String,
    labels: usize,
    /// The number of counters and masks that the program's structure uses. Statements do not write them.
    own: usize,
    /// Labels that are still to be defined: the ends of conditions and of loops.
    ahead: Vec<String>,
    /// Threads may jump out of their structure. If so, operations of several threads name the threads that arrive.
    jumps: bool,
    /// The program is for the first target too, without later features.
    early: bool,
    /// Threads may enter loops in the middle, meet in different iterations of a loop, and jump through tables.
    ragged: bool,
    statements: usize,
    /// The functions that may be called: for each, whether threads may exit in it.
    functions: Vec<bool>,
    /// The code is that of a function, not of the kernel.
    callee: bool,
    /// Some threads may have exited.
    ended: bool,
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    write(seed, true)
}

/// The case of a seed, without loops that threads enter in the middle or in which threads meet in different iterations:
/// ptxas counts iterations in registers that the warp shares, even if threads arrive at different times. It has no jump
/// tables either: in loops with jump tables, ptxas treats a predicate that an earlier iteration wrote as false.
pub fn case_of_plain_loops(seed: u64) -> Case {
    write(seed, false)
}

fn write(seed: u64, ragged: bool) -> Case {
    let mut random = Random::new(seed);
    random.next();
    let jumps = random.below(2) == 0;
    let registers = [None, None, Some(24), Some(28), Some(32)][random.below(5) as usize];
    let input: Vec<u8> = (0..THREADS * PART).map(|_| random.next() as u8).collect();
    let statements = 10 + random.below(50) as usize;
    let turns = random.below(40) as u32;
    let early = random.below(3) == 0;
    let (mut functions, mut ends) = (String::new(), Vec::new());
    for _ in 0..[0, 0, 1, 2][random.below(4) as usize] {
        let function = Writer::function(random, &ends, early, ragged);
        functions += &function.text;
        ends.push(function.ended);
        random = function.random;
    }
    let registers = registers.filter(|_| ends.is_empty());
    let mut writer = Writer::new(random, jumps, early, ragged, statements);
    writer.functions = ends;
    while writer.statements > 0 {
        writer.statement(0, Some(ALL));
    }
    let body = std::mem::take(&mut writer.text);
    if writer.random.below(2) == 0 {
        writer.left_inside();
    }
    let declared = writer.registers();
    let last = std::mem::take(&mut writer.text);
    let limit = registers.map_or(String::new(), |count| format!("\n.maxnreg {count}"));
    let constants: Vec<String> =
        (0..CONSTANTS).map(|i| (i * i * 2654435761 % 0xffff_ffff).to_string()).collect();
    let constants = constants.join(", ");
    let mut text = format!(
        ".version 8.0\n.target sm_{}\n.address_size 64\n.const .align 16 .b32 constants[{CONSTANTS}] = {{{constants}}};\n{functions}.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 turns){limit}\n{{\n\
         {declared}.shared .align 16 .b8 exchange[{}];\n.shared .align 16 .b8 stage[{}];\n.shared .align 16 .b32 counters[4];\n\
         mov.u32 %me, %tid.x;\nmov.b32 %all, -1;\nmov.u32 %u0, %ntid.x;\nmov.u32 %u1, %ctaid.x;\nmov.u32 %u2, 3;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         add.u64 %totals, %out, {};\nmad.wide.u32 %in, %me, {PART}, %in;\nmov.u64 %source, %in;\nmad.wide.u32 %out, %me, {PART}, %out;\n\
         mov.u32 %shared, exchange;\nmad.lo.u32 %shared, %me, {PART}, %shared;\nmov.u64 %local, array;\n",
        if early { 75 } else { 80 },
        THREADS * PART,
        THREADS * STAGE,
        THREADS * PART
    );
    let _ = writeln!(text, "mov.b32 %t0, 0;\nmov.u32 %t1, stage;\nmad.lo.u32 %t1, %me, {STAGE}, %t1;");
    for at in (0..STAGE).step_by(16) {
        let _ = writeln!(text, "st.shared.v4.b32 [%t1+{at}], {{%t0, %me, %all, %t0}};");
    }
    text += "st.shared.b32 [counters], %t0;\nst.shared.b32 [counters+4], %t0;\nst.shared.b32 [counters+8], %t0;\nst.shared.b32 [counters+12], %t0;\nbar.sync 0;\n";
    for at in (0..PART).step_by(16) {
        let _ = writeln!(text, "st.local.v4.b32 [array+{at}], {{%t0, %me, %all, %t0}};");
        let _ = writeln!(text, "st.shared.v4.b32 [%shared+{at}], {{%me, %t0, %all, %me}};");
    }
    for i in 0..WORDS {
        let _ = writeln!(text, "ld.global.b32 %r{i}, [%in+{}];", i * 4);
    }
    for i in 0..DOUBLES {
        let _ = writeln!(text, "ld.global.b64 %d{i}, [%in+{}];", 32 + i * 8);
    }
    for i in 0..HALVES {
        let _ = writeln!(text, "ld.global.b16 %h{i}, [%in+{}];", 64 + i * 2);
    }
    for i in 0..PREDICATES {
        let _ = writeln!(text, "setp.lt.s32 %p{i}, %r{i}, %r{};", i + 4);
    }
    text += &body;
    text += "END:\n";
    for i in 0..WORDS {
        let _ = writeln!(text, "st.global.b32 [%out+{}], %r{i};", i * 4);
    }
    for i in 0..DOUBLES {
        let _ = writeln!(text, "st.global.b64 [%out+{}], %d{i};", 32 + i * 8);
    }
    for i in 0..HALVES {
        let _ = writeln!(text, "st.global.b16 [%out+{}], %h{i};", 64 + i * 2);
    }
    for i in 0..PREDICATES {
        let _ = writeln!(text, "selp.b32 %t0, 1, 0, %p{i};\nst.global.b8 [%out+{}], %t0;", 70 + i);
    }
    text += "mad.lo.u32 %t2, %u0, 7, %u1;\nmad.lo.u32 %t2, %t2, 7, %u2;\nmov.b32 %t0, 0;\nSUM:\ncvt.u64.u32 %at, %t0;\nadd.u64 %at, %at, %local;\n\
             ld.local.b32 %t1, [%at];\nmad.lo.u32 %t2, %t2, 31, %t1;\nadd.u32 %t3, %shared, %t0;\n\
             ld.shared.b32 %t1, [%t3];\nmad.lo.u32 %t2, %t2, 31, %t1;\nadd.u32 %t0, %t0, 4;\n";
    let _ = writeln!(
        text,
        "setp.lt.u32 %q, %t0, {PART};\n@%q bra SUM;\nst.global.b32 [%out+76], %t2;\n{last}ret;\n}}"
    );
    let exact = |bytes| Argument::Buffer(bytes, Compare::Exact);
    let mut output = vec![0; THREADS * PART];
    output.extend([0xff; TOTALS]);
    Case::new(text, 1, THREADS as u32, vec![exact(input), exact(output), Argument::U32(turns)])
}

/// Removes runs of lines from a case, long runs first, as long as it still fails.
pub fn shrink(case: &Case, fails: impl Fn(&Case) -> bool) -> Case {
    let mut best = case.clone();
    // The first lines give registers and memory their values.
    let first = best.ptx.lines().take_while(|line| !line.starts_with("setp.")).count();
    let mut size = best.ptx.lines().count().saturating_sub(first).div_ceil(2);
    while size > 0 {
        let mut at = first;
        loop {
            let lines: Vec<&str> = best.ptx.split_inclusive('\n').collect();
            if at >= lines.len() {
                break;
            }
            let rest = [&lines[..at], &lines[lines.len().min(at + size)..]].concat().concat();
            // A loop that has lost its end must reach the limit soon.
            let candidate = Case { ptx: rest, steps: Some(MOST_STEPS), ..best.clone() };
            if fails(&candidate) {
                best = candidate;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    best
}

impl Writer {
    fn new(random: Random, jumps: bool, early: bool, ragged: bool, statements: usize) -> Writer {
        Writer {
            random,
            text: String::new(),
            labels: 0,
            own: 0,
            ahead: vec!["END".into()],
            jumps,
            early,
            ragged,
            statements,
            functions: Vec::new(),
            callee: false,
            ended: false,
        }
    }

    /// Declarations of the names that the statements use.
    fn registers(&self) -> String {
        format!(
            ".reg .b32 %r<{WORDS}>, %t<4>, %own<{}>, %me, %all;\n.reg .b64 %d<{DOUBLES}>, %w<3>, %in, %out, %at, %local, %source, %totals;\n\
             .reg .b32 %u<{SHARED_WORDS}>;\n.reg .b16 %h<{HALVES}>;\n.reg .pred %p<{PREDICATES}>, %q;\n.reg .b32 %shared;\n\
             .local .align 16 .b8 array[{PART}];\n",
            self.own.max(1)
        )
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.random.below(from.len() as u64) as usize]
    }

    fn word(&mut self) -> String {
        format!("%r{}", self.random.below(WORDS))
    }

    fn double(&mut self) -> String {
        format!("%d{}", self.random.below(DOUBLES))
    }

    fn half(&mut self) -> String {
        format!("%h{}", self.random.below(HALVES))
    }

    fn predicate(&mut self) -> String {
        format!("%p{}", self.random.below(PREDICATES))
    }

    /// A register of `bits` bits, or a number.
    fn operand(&mut self, bits: u32) -> String {
        if self.random.below(4) == 0 {
            let number = self.random.next() as i64 >> self.random.below(64);
            return match bits {
                16 => (number as i16).to_string(),
                32 => (number as i32).to_string(),
                _ => number.to_string(),
            };
        }
        if bits == 32 && self.random.below(12) == 0 {
            return self.shared();
        }
        self.register(bits)
    }

    fn register(&mut self, bits: u32) -> String {
        match bits {
            16 => self.half(),
            32 => self.word(),
            _ => self.double(),
        }
    }

    /// The position and the length of a field. If they are constants and the field extends past the end, ptxas does not
    /// follow the manual.
    fn field(&mut self, bits: u32) -> (u64, u64) {
        let at = self.random.below(bits.into());
        (at, self.random.below(u64::from(bits) - at + 1))
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// A new register for the program's structure.
    fn own(&mut self) -> String {
        self.own += 1;
        format!("%own{}", self.own - 1)
    }

    fn guard(&mut self) -> String {
        match self.random.below(5) {
            0 => format!("@{} ", self.predicate()),
            1 => format!("@!{} ", self.predicate()),
            _ => String::new(),
        }
    }

    fn line(&mut self, text: &str) {
        self.text += text;
        self.text += "\n";
    }

    fn guarded(&mut self, text: &str) {
        let guard = self.guard();
        self.line(&format!("{guard}{text}"));
    }

    fn block(&mut self, depth: usize, mask: Option<&str>) {
        for _ in 0..1 + self.random.below(4) {
            self.statement(depth, mask);
        }
    }

    /// Adds a statement. `mask` is the register with the threads that execute it, if they are known.
    fn statement(&mut self, depth: usize, mask: Option<&str>) {
        let start = self.text.len();
        self.any_statement(depth, mask);
        if self.early && LATER.iter().any(|name| self.text[start..].contains(name)) {
            self.text.truncate(start);
        }
    }

    fn any_statement(&mut self, depth: usize, mask: Option<&str>) {
        self.statements = self.statements.saturating_sub(1);
        let structured = depth < 4 && self.statements > 0;
        match self.random.below(60) {
            0..=2 if structured => self.condition(depth, mask),
            3 if structured => self.repeat(depth, mask),
            4 | 54 if structured => self.counted(depth, mask),
            5 if structured && self.jumps && self.ragged => self.two_entries(depth),
            6 if self.jumps => {
                let to = self.ahead[self.random.below(self.ahead.len() as u64) as usize].clone();
                let predicate = self.predicate();
                let not = self.pick(&["", "!"]);
                self.line(&format!("@{not}{predicate} bra {to};"));
            }
            7..=8 if !self.jumps => match mask {
                Some(mask) => self.several_threads(mask),
                None => self.arithmetic(32),
            },
            9..=10 => self.comparison(),
            11 => self.chain(),
            12..=13 => self.conversion(),
            14..=18 => self.memory(),
            19 => self.choice(),
            20..=22 => self.arithmetic(64),
            23 => self.arithmetic(16),
            24..=25 if structured && self.ragged => self.switch(depth),
            26 => self.shared_word(),
            27..=28 => self.floats(),
            29 => self.doubles(),
            30 => self.halves(),
            31 => self.read_only(),
            32 => self.division(),
            33 if self.jumps => {
                let predicate = self.predicate();
                let end = if self.callee { "exit" } else { self.pick(&["exit", "ret"]) };
                self.ended = true;
                self.line(&format!("@{predicate} {end};"));
            }
            34..=39 if !self.jumps => match mask {
                Some(mask) => self.together(depth, structured, mask),
                None => self.arithmetic(32),
            },
            40..=41 => self.whole_numbers(),
            42 => self.roots(),
            43..=44 => self.rare(),
            45..=46 => self.more_halves(),
            47..=48 if !self.functions.is_empty() => self.call(),
            49 if !self.callee => self.copies(),
            50 if !self.jumps && depth == 0 && !self.ended => self.product(),
            51 if !self.jumps && depth == 0 && !self.ended => self.fragments(),
            52 if !self.jumps && depth == 0 => self.shared_by_all(),
            53 if structured && self.jumps => self.search(depth),
            55 => self.carries(),
            56 => self.vectors(),
            57 => self.fields(),
            58 => self.bytes(),
            59 if !self.callee => self.total(),
            _ => self.arithmetic(32),
        }
    }

    fn together(&mut self, depth: usize, structured: bool, mask: &str) {
        match self.random.below(8) {
            0..=2 if structured => self.while_any(depth, mask),
            3 if structured => self.shrinking(depth, mask),
            4 if structured && mask == ALL => self.work_queue(depth),
            5 if structured && self.ragged => self.alternating(depth, mask),
            6 if structured && self.ragged && mask == ALL => self.barriers_apart(depth),
            7 => self.early_exit(),
            _ => self.groups(mask),
        }
    }

    fn condition(&mut self, depth: usize, mask: Option<&str>) {
        let predicate = self.predicate();
        let (otherwise, end) = (self.label(), self.label());
        let mask = if self.jumps { None } else { mask };
        let masks = mask.map(|mask| (mask.to_owned(), self.own(), self.own()));
        if let Some((mask, then, rest)) = &masks {
            self.line(&format!("vote.sync.ballot.b32 {then}, {predicate}, {mask};"));
            self.line(&format!("not.b32 {rest}, {then};\nand.b32 {rest}, {rest}, {mask};"));
        }
        self.line(&format!("@!{predicate} bra {otherwise};"));
        self.ahead.push(end.clone());
        self.block(depth + 1, masks.as_ref().map(|masks| &*masks.1));
        if self.random.below(3) == 0 {
            self.line(&format!("{otherwise}:"));
        } else {
            let jump = self.pick(&["bra", "bra.uni"]);
            // `.uni` promises that all active threads jump together, which is true here.
            self.line(&format!("{jump} {end};\n{otherwise}:"));
            self.block(depth + 1, masks.as_ref().map(|masks| &*masks.2));
        }
        self.ahead.pop();
        self.line(&format!("{end}:"));
    }

    /// Adds a jump through a table. Which threads reach which entry is unknown.
    fn switch(&mut self, depth: usize) {
        let (table, end) = (self.label(), self.label());
        let entries: Vec<String> = (0..2 + self.random.below(3)).map(|_| self.label()).collect();
        let targets: Vec<&str> =
            (0..4).map(|_| &*entries[self.random.below(entries.len() as u64) as usize]).collect();
        let targets = targets.join(", ");
        let index = if self.random.below(4) == 0 { self.shared() } else { self.word() };
        self.line(&format!(
            "and.b32 %t0, {index}, 3;\n{table}: .branchtargets {targets};\nbrx.idx %t0, {table};"
        ));
        self.ahead.push(end.clone());
        for entry in entries {
            self.line(&format!("{entry}:"));
            self.block(depth + 1, None);
            // Some entries fall through into the next.
            if self.random.below(3) > 0 {
                self.line(&format!("bra {end};"));
            }
        }
        self.ahead.pop();
        self.line(&format!("{end}:"));
    }

    fn shared(&mut self) -> String {
        format!("%u{}", self.random.below(SHARED_WORDS))
    }

    /// Adds arithmetic on values that all threads share, where threads do not diverge.
    fn shared_word(&mut self) {
        let (d, a, b) = (self.shared(), self.shared(), self.shared());
        let number = self.random.below(64);
        let text = match self.random.below(6) {
            0 => format!("add.u32 {d}, {a}, {number};"),
            1 => format!("mul.lo.u32 {d}, {a}, {b};"),
            2 => format!("shr.u32 {d}, {a}, {};", number / 2),
            3 => format!("{}.b32 {d}, {a}, {b};", self.pick(&["and", "or", "xor"])),
            4 => {
                let p = self.predicate();
                format!("setp.lt.u32 {p}, {a}, {number};")
            }
            _ => format!("mad.lo.u32 {d}, {a}, {b}, {number};"),
        };
        self.line(&text);
    }

    /// Adds single-precision arithmetic on numbers below two.
    fn floats(&mut self) {
        let (d, a, b, c, p) = (self.word(), self.word(), self.operand(32), self.word(), self.predicate());
        self.line(&format!("and.b32 %t0, {a}, 0xbfffffff;\nand.b32 %t1, {b}, 0xbfffffff;"));
        let mode = self.pick(&["rn", "rz", "rm", "rp"]);
        let text = match self.random.below(8) {
            0 => format!("{}.{mode}.f32 {d}, %t0, %t1;", self.pick(&["add", "sub", "mul"])),
            1 => {
                self.line(&format!("and.b32 %t2, {c}, 0xbfffffff;"));
                format!("fma.{mode}.f32 {d}, %t0, %t1, %t2;")
            }
            2 => format!("{}.f32 {d}, %t0, %t1;", self.pick(&["min", "max"])),
            3 => format!("{}.f32 {d}, %t0;", self.pick(&["abs", "neg"])),
            4 => format!("setp.{}.f32 {p}, %t0, %t1;", self.pick(&["lt", "le", "eq", "neu", "geu"])),
            5 => format!("set.{}.u32.f32 {d}, %t0, %t1;", self.pick(&["lt", "ge"])),
            6 => format!("cvt.f64.f32 {}, %t0;", self.double()),
            _ => format!("selp.f32 {d}, %t0, %t1, {p};"),
        };
        self.guarded(&text);
    }

    /// Adds double-precision arithmetic on numbers below two.
    fn doubles(&mut self) {
        let (d, a, b, p) = (self.double(), self.double(), self.operand(64), self.predicate());
        self.line(&format!("and.b64 %w0, {a}, 0xbfffffffffffffff;\nand.b64 %w1, {b}, 0xbfffffffffffffff;"));
        let text = match self.random.below(5) {
            0 => format!("{}.rn.f64 {d}, %w0, %w1;", self.pick(&["add", "sub", "mul"])),
            1 => format!("fma.rn.f64 {d}, %w0, %w1, %w0;"),
            2 => format!("setp.{}.f64 {p}, %w0, %w1;", self.pick(&["lt", "le", "ne"])),
            3 => format!("{}.f64 {d}, %w0, %w1;", self.pick(&["min", "max"])),
            _ => format!("cvt.rzi.s32.f64 {}, %w0;", self.word()),
        };
        self.guarded(&text);
    }

    /// Adds arithmetic on pairs of halves below two.
    fn halves(&mut self) {
        let (d, a, b) = (self.word(), self.word(), self.operand(32));
        self.line(&format!("and.b32 %t0, {a}, 0xbbffbbff;\nand.b32 %t1, {b}, 0xbbffbbff;"));
        let text = match self.random.below(3) {
            0 => format!("{}.rn.f16x2 {d}, %t0, %t1;", self.pick(&["add", "sub", "mul"])),
            1 => format!("fma.rn.f16x2 {d}, %t0, %t1, %t0;"),
            _ => format!("{}.f16x2 {d}, %t0, %t1;", self.pick(&["min", "max"])),
        };
        self.guarded(&text);
    }

    /// Adds loads of data that no thread writes.
    fn read_only(&mut self) {
        let (a, b, index) = (self.random.below(WORDS), 1 + self.random.below(WORDS - 1), self.word());
        let b = (a + b) % WORDS;
        let at = self.random.below(CONSTANTS / 2) * 8;
        let text = match self.random.below(4) {
            0 => format!("ld.const.b32 %r{a}, [constants+{at}];"),
            1 => format!("ld.const.v2.b32 {{%r{a}, %r{b}}}, [constants+{at}];"),
            2 => {
                self.line(&format!("and.b32 %t0, {index}, {};\nmov.u64 %at, constants;", CONSTANTS - 1));
                self.line("mad.wide.u32 %at, %t0, 4, %at;");
                format!("ld.const.b32 %r{a}, [%at];")
            }
            _ => format!("ld.global.nc.v2.b32 {{%r{a}, %r{b}}}, [%in+{at}];"),
        };
        self.guarded(&text);
    }

    /// Adds a division by a number that is not zero and, in signed divisions, positive.
    fn division(&mut self) {
        let op = self.pick(&["div", "rem"]);
        let sign = self.pick(&["s", "u"]);
        let text = if self.random.below(3) == 0 {
            let (d, a, b) = (self.double(), self.double(), self.double());
            self.line(&format!("shr.u64 %w0, {b}, 1;\nor.b64 %w0, %w0, 1;"));
            format!("{op}.{sign}64 {d}, {a}, %w0;")
        } else {
            let (d, a, b) = (self.word(), self.word(), self.word());
            self.line(&format!("shr.u32 %t0, {b}, 1;\nor.b32 %t0, %t0, 1;"));
            format!("{op}.{sign}32 {d}, {a}, %t0;")
        };
        self.guarded(&text);
    }

    fn repeat(&mut self, depth: usize, mask: Option<&str>) {
        let (head, next, end, count) = (self.label(), self.label(), self.label(), self.own());
        let trips = self.word();
        let mask = if self.jumps { None } else { mask };
        let varies = self.random.below(2) == 0;
        if varies {
            self.line(&format!("and.b32 {count}, {trips}, 3;"));
        } else {
            let trips = 1 + self.random.below(4);
            self.line(&format!("mov.b32 {count}, {trips};"));
        }
        // If the number of iterations is known, all threads iterate together.
        let together = mask.filter(|mask| !varies && *mask == ALL && self.random.below(2) == 0);
        let inside = mask.filter(|_| together.is_none()).map(|mask| {
            let inside = self.own();
            self.line(&format!("mov.b32 {inside}, {mask};"));
            inside
        });
        self.line(&format!("{head}:"));
        self.ahead.extend([end.clone(), next.clone()]);
        self.block(depth + 1, together.or(inside.as_deref()));
        self.ahead.truncate(self.ahead.len() - 2);
        self.line(&format!("{next}:\nsub.u32 {count}, {count}, 1;\nsetp.gt.s32 %q, {count}, 0;"));
        if let Some(inside) = inside {
            self.line(&format!("vote.sync.ballot.b32 {inside}, %q, {inside};"));
        }
        self.line(&format!("@%q bra {head};\n{end}:"));
    }

    /// Adds a loop that some threads enter in the middle.
    fn two_entries(&mut self, depth: usize) {
        let (head, middle, end, count) = (self.label(), self.label(), self.label(), self.own());
        let predicate = self.predicate();
        let trips = 2 + self.random.below(3);
        self.line(&format!("mov.b32 {count}, {trips};\n@{predicate} bra {middle};\n{head}:"));
        self.ahead.push(end.clone());
        self.block(depth + 1, None);
        self.line(&format!("{middle}:"));
        self.block(depth + 1, None);
        self.ahead.pop();
        self.line(&format!(
            "sub.u32 {count}, {count}, 1;\nsetp.ne.u32 %q, {count}, 0;\n@%q bra {head};\n{end}:"
        ));
    }

    /// Adds a loop in whose middle threads exit.
    fn left_inside(&mut self) {
        let (head, next, count, sum) = (self.label(), self.label(), self.own(), self.own());
        let trips = self.word();
        self.line(&format!("and.b32 {count}, {trips}, 3;\nmov.b32 {sum}, %t2;\n{head}:"));
        self.ahead = vec![next.clone()];
        self.statements = 6;
        self.block(3, None);
        let (a, b) = (self.word(), self.word());
        self.line(&format!("{next}:\nmad.lo.u32 {sum}, {sum}, 31, {a};\nst.global.b32 [%out+76], {sum};"));
        self.line(&format!("setp.eq.u32 %q, {count}, 0;\n@%q ret;\nsub.u32 {count}, {count}, 1;"));
        self.line(&format!("add.u32 {b}, {b}, {sum};\nbra {head};"));
    }

    /// Adds an operation of the threads in a mask. If that is all threads, it may be an operation of the block.
    fn several_threads(&mut self, mask: &str) {
        self.operation_of_several(mask, if mask == ALL { 8 } else { 7 });
    }

    fn several_of_a_warp(&mut self, mask: &str) {
        self.operation_of_several(mask, 7);
    }

    fn operation_of_several(&mut self, mask: &str, kinds: u64) {
        let (d, a, b) = (self.word(), self.word(), self.operand(32));
        let (p, q) = (self.predicate(), self.predicate());
        match self.random.below(kinds) {
            0 => {
                let mode = self.pick(&["all", "any", "uni"]);
                self.line(&format!("vote.sync.{mode}.pred {p}, {q}, {mask};"));
            }
            1 => self.line(&format!("vote.sync.ballot.b32 {d}, !{p}, {mask};")),
            2 => {
                // A lane outside the mask provides an undefined value, so threads read their own value or that of a
                // lane found by a vote.
                self.line(&format!("shfl.sync.idx.b32 %t0, {a}, %me, 31, {mask};\nmov.b32 {d}, %t0;"));
            }
            3 => self.line(&format!("match.any.sync.b32 {d}, {a}, {mask};")),
            4 => {
                let op = self.pick(&["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"]);
                self.line(&format!("redux.sync.{op} {d}, {a}, {mask};"));
            }
            5 => self.line(&format!("bar.warp.sync {mask};")),
            6 => self.line(&format!("match.all.sync.b32 {d}|{p}, {a}, {mask};")),
            _ => {
                let mode = self.pick(&["up", "down", "bfly", "idx"]);
                let clamp = if mode == "up" { 0 } else { 31 }
                    | self.pick(&["0", "4096", "6144"]).parse().unwrap_or(0);
                let lane = self.random.below(32);
                let lane = if self.random.below(2) == 0 { b } else { lane.to_string() };
                self.line(&format!("shfl.sync.{mode}.b32 {d}|{p}, {a}, {lane}, {clamp}, -1;"));
                let other = [4, 32, 36][self.random.below(3) as usize];
                self.line(&format!("bar.sync 0;\nmov.u32 %t0, exchange;\nxor.b32 %t1, %me, {other};\nmad.lo.u32 %t0, %t1, {PART}, %t0;\nld.shared.b32 {d}, [%t0+8];\nbar.sync 0;"));
            }
        }
    }

    fn comparison(&mut self) {
        let ty = self.pick(&["s32", "u32", "s64", "u64", "s16", "u16", "b32", "b64"]);
        let bits = ty[1..].parse().unwrap_or(32);
        let (a, b, c) = (self.register(bits), self.operand(bits), self.predicate());
        let how = if ty.starts_with('b') {
            self.pick(&["eq", "ne"])
        } else {
            self.pick(&["eq", "ne", "lt", "le", "gt", "ge"])
        };
        let p = self.predicate();
        let q = self.predicate();
        let not = self.pick(&["", "!"]);
        let join = self.pick(&["and", "or", "xor"]);
        let text = match self.random.below(5) {
            0 => format!("setp.{how}.{ty} {p}, {a}, {b};"),
            1 if p != q => format!("setp.{how}.{ty} {p}|{q}, {a}, {b};"),
            2 if p != q => format!("setp.{how}.{join}.{ty} {p}|{q}, {a}, {b}, {not}{c};"),
            3 => format!("{join}.pred {p}, {q}, {c};"),
            4 => format!("not.pred {p}, {q};"),
            _ => format!("setp.{how}.{join}.{ty} {p}, {a}, {b}, {not}{c};"),
        };
        self.guarded(&text);
    }

    fn choice(&mut self) {
        let bits = [16, 32, 64][self.random.below(3) as usize];
        let (d, a, b, p) = (self.register(bits), self.operand(bits), self.operand(bits), self.predicate());
        self.guarded(&format!("selp.b{bits} {d}, {a}, {b}, {p};"));
    }

    fn chain(&mut self) {
        let (a, b, c, d) = (self.word(), self.word(), self.word(), self.operand(32));
        let op = self.pick(&["add", "sub"]);
        self.line(&format!(
            "{op}.cc.u32 %t0, {a}, {b};\n{op}c.cc.u32 %t1, {b}, {d};\n{op}c.u32 %t2, {c}, 0;"
        ));
        self.guarded(&format!("xor.b32 {a}, %t0, %t1;"));
        self.line(&format!("add.u32 {c}, {c}, %t2;"));
    }

    fn conversion(&mut self) {
        let from = self.pick(&["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]);
        let to = self.pick(&["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]);
        let class = |ty: &str| ty[1..].parse().unwrap_or(32).max(16);
        let (d, a) = (self.register(class(to)), self.register(class(from)));
        let saturate = if widens(to, from) { "" } else { self.pick(&["", "", ".sat"]) };
        let text = match self.random.below(4) {
            0 => {
                let (d, a) = (self.word(), self.word());
                let to = self.pick(&["s32", "u32"]);
                self.line(&format!(
                    "cvt.rn.f32.{to} %t0, {a};\nfma.rn.f32 %t0, %t0, 0f3F400000, 0f41200000;"
                ));
                format!("cvt.rzi.{to}.f32 {d}, %t0;")
            }
            1 => {
                let (d, a, b) = (self.double(), self.word(), self.word());
                format!("mov.b64 {d}, {{{a}, {b}}};")
            }
            2 => {
                let (d, a, b) = (self.double(), self.word(), self.word());
                if a == b { format!("cvt.u32.u64 {a}, {d};") } else { format!("mov.b64 {{{a}, {b}}}, {d};") }
            }
            _ => format!("cvt{saturate}.{to}.{from} {d}, {a};"),
        };
        self.guarded(&text);
    }

    fn memory(&mut self) {
        let ty = self.pick(&["s8", "u8", "b8", "s16", "u16", "b16", "b32", "u32", "s32", "b64", "u64"]);
        let bits: u32 = ty[1..].parse().unwrap_or(32);
        let count = match self.random.below(4) {
            0 => 2,
            1 if bits <= 32 => 4,
            _ => 1,
        };
        let class = if bits == 8 { [16, 32, 64][self.random.below(3) as usize] } else { bits };
        let size = (bits / 8 * count) as usize;
        let space = self.pick(&["global", "local", "shared", "local", "generic"]);
        let store = self.random.below(2) == 0;
        let mut values: Vec<String> = Vec::new();
        while values.len() < count as usize {
            let value = if store && count == 1 || class == 16 && count == 4 {
                if class == 16 && count == 4 && !store { "_".to_owned() } else { self.register(class) }
            } else {
                self.register(class)
            };
            if store || value == "_" && values.len() > 2 || !values.contains(&value) && value != "_" {
                values.push(value);
            } else if class == 16 && count == 4 {
                let value = format!("%h{}", values.len() % HALVES as usize);
                values.push(if values.contains(&value) { "_".into() } else { value });
            }
        }
        // The outputs written here follow the final values of the registers.
        let (low, high) = if space == "global" || space == "generic" { (80, PART) } else { (0, PART) };
        let slots = (high - low) / size;
        let at = low + self.random.below(slots as u64) as usize * size;
        let base = match space {
            "global" => "%out",
            "shared" => "%shared",
            _ => "%local",
        };
        let address = if self.random.below(2) == 0 {
            if space == "local" && self.random.below(2) == 0 {
                format!("array+{at}")
            } else {
                format!("{base}+{at}")
            }
        } else {
            let index = self.word();
            let mask = slots.next_power_of_two() / if slots.is_power_of_two() { 1 } else { 2 } - 1;
            self.line(&format!("and.b32 %t0, {index}, {mask};\nmul.lo.u32 %t0, %t0, {size};"));
            if space == "shared" {
                self.line("add.u32 %t0, %t0, %shared;");
                "%t0".into()
            } else {
                self.line(&format!("cvt.u64.u32 %at, %t0;\nadd.u64 %at, %at, {base};"));
                let low = low.next_multiple_of(size);
                if space == "global" || space == "generic" { format!("%at+{low}") } else { "%at".into() }
            }
        };
        let (address, space) = if space == "generic" {
            if address.starts_with("%at") {
                self.line("cvta.local.u64 %at, %at;");
            } else {
                self.line("cvta.local.u64 %at, %local;");
            }
            let plus = address.split_once('+').map_or("0", |(_, at)| at);
            (format!("%at+{plus}"), String::new())
        } else {
            (address, format!(".{space}"))
        };
        if store
            && count == 1
            && bits >= 32
            && space != ".local"
            && !space.is_empty()
            && self.random.below(2) == 0
        {
            let op = self.pick(&["add.u", "min.s", "max.u", "and.b", "or.b", "xor.b", "exch.b"]);
            let (d, value) = (self.register(bits), &values[0]);
            let text = if self.random.below(4) == 0 {
                let other = self.register(bits);
                format!("atom{space}.cas.b{bits} {d}, [{address}], {value}, {other};")
            } else if self.random.below(2) == 0 || op.starts_with("exch") {
                format!("atom{space}.{op}{bits} {d}, [{address}], {value};")
            } else {
                format!("red{space}.{op}{bits} [{address}], {value};")
            };
            return self.guarded(&text);
        }
        let (vector, list) = match count {
            1 => (String::new(), values[0].clone()),
            _ => (format!(".v{count}"), format!("{{{}}}", values.join(", "))),
        };
        let text = if store {
            format!("st{space}{vector}.{ty} [{address}], {list};")
        } else {
            format!("ld{space}{vector}.{ty} {list}, [{address}];")
        };
        self.guarded(&text);
    }

    fn arithmetic(&mut self, bits: u32) {
        let sign = self.pick(&["s", "u"]);
        let [d, e] = [self.register(bits), self.register(bits)];
        let [a, b, c] = [self.operand(bits), self.operand(bits), self.operand(bits)];
        let w = self.operand(32);
        let table = self.random.below(256);
        let text = match self.random.below(if bits == 16 {
            8
        } else if bits == 64 {
            17
        } else {
            29
        }) {
            0 => format!("add.{sign}{bits} {d}, {e}, {b};"),
            1 => format!("sub.{sign}{bits} {d}, {a}, {e};"),
            2 => format!("mul.lo.{sign}{bits} {d}, {e}, {b};"),
            3 => format!("mad.lo.{sign}{bits} {d}, {e}, {b}, {c};"),
            4 => format!("{}.{sign}{bits} {d}, {e}, {b};", self.pick(&["min", "max"])),
            5 => format!("{}.b{bits} {d}, {e}, {b};", self.pick(&["and", "or", "xor"])),
            6 => format!("shl.b{bits} {d}, {e}, {w};"),
            7 => format!("shr.{sign}{bits} {d}, {e}, {w};"),
            8 => format!("not.b{bits} {d}, {e};"),
            9 => format!("{}.s{bits} {d}, {e};", self.pick(&["neg", "abs"])),
            10 => format!("{}.b{bits} {}, {e};", self.pick(&["popc", "clz"]), self.word()),
            11 => format!("brev.b{bits} {d}, {e};"),
            12 => format!("mul.hi.{sign}{bits} {d}, {e}, {b};"),
            13 => {
                let (at, length) = self.field(bits);
                format!("bfe.{sign}{bits} {d}, {e}, {at}, {length};")
            }
            14 => {
                let (at, length) = self.field(bits);
                format!("bfi.b{bits} {d}, {e}, {a}, {at}, {length};")
            }
            15 => {
                let (wide, x, y) = (self.double(), self.word(), self.operand(32));
                format!("mul.wide.{sign}32 {wide}, {x}, {y};")
            }
            16 => {
                let (wide, x, y, z) = (self.double(), self.word(), self.operand(32), self.operand(64));
                format!("mad.wide.{sign}32 {wide}, {x}, {y}, {z};")
            }
            17 => format!("lop3.b32 {d}, {e}, {b}, {c}, {table};"),
            18 => format!("prmt.b32 {d}, {e}, {b}, {c};"),
            19 => {
                let (side, mode) = (self.pick(&["l", "r"]), self.pick(&["wrap", "clamp"]));
                format!("shf.{side}.{mode}.b32 {d}, {e}, {b}, {c};")
            }
            20 => format!("sad.{sign}32 {d}, {e}, {b}, {c};"),
            21 => format!("bfind.{sign}32 {d}, {e};"),
            22 => format!("slct.{sign}32.s32 {d}, {e}, {b}, {};", self.word()),
            23 => format!("dp4a.{sign}32.{}32 {d}, {e}, {b}, {c};", self.pick(&["s", "u"])),
            24 => format!("mul24.lo.{sign}32 {d}, {e}, {b};"),
            25 => {
                let (x, y) = (self.half(), self.operand(16));
                format!("mul.wide.{sign}16 {d}, {x}, {y};")
            }
            26 => format!("cnot.b32 {d}, {e};"),
            27 => format!("set.{}.u32.{sign}32 {d}, {e}, {b};", self.pick(&["eq", "lt", "ge"])),
            _ => {
                let op = self.pick(&["div", "rem"]);
                self.line(&format!("or.b32 %t0, {e}, 1;"));
                format!("{op}.u32 {d}, {d}, %t0;")
            }
        };
        self.guarded(&text);
    }
}
