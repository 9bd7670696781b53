//! Operations of several threads that have diverged: loops around operations of the warp and of the block, which some
//! threads leave early, or in which they skip the rest of an iteration or exit.

use super::{ALL, Writer};

/// The largest number of iterations of a thread, minus one.
const TURNS: u64 = 5;

impl Writer {
    /// Adds a loop that runs while any thread of the mask has iterations left. Threads without any go back at once.
    pub(super) fn while_any(&mut self, depth: usize, mask: &str) {
        let (head, end, left, any) = (self.label(), self.label(), self.own(), self.own());
        let turns = self.word();
        self.line(&format!("and.b32 {left}, {turns}, 7;\nmin.u32 {left}, {left}, {TURNS};"));
        // Warps iterate as often as they need, unless the block counts the iterations.
        let block = mask == ALL && self.random.below(2) == 0;
        let inside = if block { mask.to_owned() } else { self.copy(mask) };
        self.line(&format!("{head}:"));
        if self.random.below(2) == 0 {
            self.block(depth + 1, Some(&inside));
        }
        self.line(&format!("setp.ne.u32 %q, {left}, 0;"));
        let barrier = self.pick(&["bar.red", "barrier.red", "barrier.red"]);
        match (block, self.random.below(4)) {
            (true, 0) => self.line(&format!("{barrier}.popc.u32 {any}, 0, %q;")),
            (true, _) => self.line(&format!("{barrier}.or.pred %q, 0, %q;\nselp.b32 {any}, 1, 0, %q;")),
            (false, 0) => self.line(&format!("redux.sync.max.u32 {any}, {left}, {mask};")),
            (false, 1) => {
                self.line(&format!("vote.sync.any.pred %q, %q, {mask};\nselp.b32 {any}, 1, 0, %q;"));
            }
            (false, _) => self.line(&format!("vote.sync.ballot.b32 {any}, %q, {mask};")),
        }
        self.line(&format!("setp.eq.u32 %q, {any}, 0;\n@%q bra {end};"));
        if self.random.below(3) == 0 {
            self.block(depth + 1, Some(&inside));
        }
        self.line(&format!("setp.eq.u32 %q, {left}, 0;\n@%q bra {head};\nsub.u32 {left}, {left}, 1;"));
        self.rest_of_turn(depth, &head);
        self.line(&format!("bra {head};\n{end}:"));
    }

    /// Adds the end of an iteration: some threads skip it, and some exit.
    fn rest_of_turn(&mut self, depth: usize, head: &str) {
        self.block(depth + 1, None);
        for _ in 0..self.random.below(3) {
            let predicate = self.predicate();
            let not = self.pick(&["", "!"]);
            let go = if self.random.below(4) == 0 {
                self.ended = true;
                "exit".to_owned()
            } else {
                format!("bra {head}")
            };
            self.line(&format!("@{not}{predicate} {go};"));
            self.block(depth + 1, None);
        }
    }

    /// Adds a work queue: the first thread of each warp that has not exited fetches work for all threads. Some get
    /// nothing from the last portion.
    pub(super) fn work_queue(&mut self, depth: usize) {
        let (head, others, end) = (self.label(), self.label(), self.label());
        let (next, first, item, leader) = (self.own(), self.own(), self.own(), self.own());
        let limit = 1 + self.random.below(150);
        self.line(&format!("mov.b32 {next}, 0;\n{head}:\nand.b32 {item}, %me, 31;\nmov.b32 {first}, 0;"));
        self.line(&format!("setp.eq.u32 %q, {item}, {item};\nvote.sync.ballot.b32 {leader}, %q, {ALL};"));
        self.line(&format!("brev.b32 {leader}, {leader};\nclz.b32 {leader}, {leader};"));
        self.line(&format!("setp.ne.u32 %q, {item}, {leader};\n@%q bra {others};\nmov.b32 {first}, {next};"));
        self.line(&format!("{others}:\nshfl.sync.idx.b32 {first}, {first}, {leader}, 31, {ALL};"));
        self.line(&format!("add.u32 {next}, {first}, 32;"));
        self.line(&format!("setp.ge.u32 %q, {first}, {limit};\n@%q bra {end};"));
        self.line(&format!("add.u32 {item}, {item}, {first};\nsetp.ge.u32 %q, {item}, {limit};"));
        self.line(&format!("@%q bra {head};"));
        self.rest_of_turn(depth, &head);
        self.line(&format!("bra {head};\n{end}:"));
    }

    /// Adds a loop that threads leave one by one, at one of two places. The others know which threads are left.
    pub(super) fn shrinking(&mut self, depth: usize, mask: &str) {
        let (head, middle, end) = (self.label(), self.label(), self.label());
        let (left, inside) = (self.own(), self.copy(mask));
        let turns = self.word();
        self.line(&format!("and.b32 {left}, {turns}, 7;\nmin.u32 {left}, {left}, {TURNS};\n{head}:"));
        if self.random.below(2) == 0 {
            self.several_threads(&inside);
        }
        self.line(&format!("setp.ne.u32 %q, {left}, 0;\nvote.sync.ballot.b32 {inside}, %q, {inside};"));
        self.line(&format!("@!%q bra {end};\nsub.u32 {left}, {left}, 1;"));
        self.block(depth + 1, Some(&inside));
        let predicate = self.predicate();
        if self.random.below(2) == 0 {
            let stay = self.own();
            self.line(&format!("vote.sync.ballot.b32 {stay}, {predicate}, {inside};"));
            self.line(&format!("@!{predicate} bra {middle};\nmov.b32 {inside}, {stay};"));
        } else {
            // Some skip the rest and wait for the others at the vote in the next iteration.
            self.line(&format!("@{predicate} bra {head};"));
        }
        self.block(depth + 1, None);
        self.line(&format!("bra {head};\n{middle}:"));
        // Threads from different iterations reach this code.
        self.block(depth + 1, None);
        self.line(&format!("{end}:"));
    }

    /// Adds a loop in which each thread takes part in an operation of the mask in every second iteration. The
    /// iterations differ between threads.
    pub(super) fn alternating(&mut self, depth: usize, mask: &str) {
        let (head, skip, turn, odd) = (self.label(), self.label(), self.own(), self.own());
        let turns = 2 + 2 * self.random.below(3);
        let predicate = self.predicate();
        self.line(&format!("mov.b32 {turn}, {turns};\nselp.b32 {odd}, 1, 0, {predicate};\n{head}:"));
        self.line(&format!("add.u32 %t0, {turn}, {odd};\nand.b32 %t0, %t0, 1;\nsetp.eq.u32 %q, %t0, 0;"));
        self.line(&format!("@%q bra {skip};"));
        let inside = self.copy(mask);
        let mask = if self.random.below(2) == 0 { mask } else { &inside };
        for _ in 0..1 + self.random.below(2) {
            self.several_of_a_warp(mask);
        }
        self.line(&format!("{skip}:"));
        self.block(depth + 1, None);
        self.line(&format!("sub.u32 {turn}, {turn}, 1;\nsetp.ne.u32 %q, {turn}, 0;\n@%q bra {head};"));
    }

    /// Adds operations of groups of threads with equal keys.
    pub(super) fn groups(&mut self, mask: &str) {
        let (group, key) = (self.own(), self.word());
        let bits = [1, 3, 7][self.random.below(3) as usize];
        self.line(&format!("and.b32 %t0, {key}, {bits};\nmatch.any.sync.b32 {group}, %t0, {mask};"));
        for _ in 0..1 + self.random.below(2) {
            self.several_of_a_warp(&group);
        }
    }

    /// Adds barriers of the block that threads of one warp reach at different places.
    pub(super) fn barriers_apart(&mut self, depth: usize) {
        let (otherwise, end) = (self.label(), self.label());
        let (predicate, across) = (self.predicate(), self.random.below(2) == 0);
        let which = self.own();
        self.line(&format!("selp.b32 {which}, 1, 0, {predicate};\n@!{predicate} bra {otherwise};"));
        self.block(depth + 1, None);
        self.line("barrier.sync 0;");
        self.block(depth + 1, None);
        if across {
            self.line(&format!("{otherwise}:"));
            self.block(depth + 1, None);
            self.line(&format!("setp.ne.u32 %q, {which}, 0;\n@%q bra {end};\nbarrier.sync 0;"));
        } else {
            self.line(&format!("bra {end};\n{otherwise}:\nbarrier.sync 0;"));
        }
        self.block(depth + 1, None);
        self.line(&format!("{end}:"));
    }

    /// Lets some threads exit.
    pub(super) fn early_exit(&mut self) {
        self.ended = true;
        let (predicate, other) = (self.predicate(), self.predicate());
        let end = self.pick(&["exit", "ret"]);
        // Rarely all of them exit.
        self.line(&format!("and.pred %q, {predicate}, {other};\n@%q {end};"));
    }

    /// Copies a mask to a register of its own.
    fn copy(&mut self, mask: &str) -> String {
        let copy = self.own();
        self.line(&format!("mov.b32 {copy}, {mask};"));
        copy
    }

    /// Adds an atomic operation of all threads on one word. Each word has one operation, so their order does not matter.
    pub(super) fn total(&mut self) {
        let of_words = ["add.u32", "max.s32", "min.u32", "or.b32", "xor.b32", "and.b32"];
        let at = self.random.below(of_words.len() as u64 + 1);
        let (op, bits) = of_words.get(at as usize).map_or(("add.u64", 64), |op| (*op, 32));
        let value = match self.random.below(3) {
            0 => self.pick(&["1", "1", "-3"]).to_owned(),
            1 if bits == 32 => self.shared(),
            _ => self.operand(bits),
        };
        self.guarded(&format!("red.global.{op} [%totals+{}], {value};", 4 * at));
    }
}
