//! Tests that no phase changes what random functions store, by executing them before and after each phase.

use crate::Options;
use crate::ori::eval::Machine;
use crate::ori::ir::{BlockId, Dst, File, Frame, Function, Inst, Phi, Src, SrcKind, Term, Value};
use crate::ori::memory::Order;
use crate::ori::op::{AddressScale, Bool, ICmp, MemSize, Op, ShfType, Sign};
use crate::ori::text;
use crate::ori::verify::verify;
use crate::phase::to_uniform;
use crate::phases::{PHASES, Phase, run_phase};
use crate::session::Session;

/// The values that can be read at a point, by kind.
#[derive(Clone, Default)]
struct Pool {
    words: Vec<Value>,
    pairs: Vec<Value>,
    predicates: Vec<Value>,
}

struct Generator {
    random: fastrand::Rng,
    func: Function,
    block: BlockId,
    pool: Pool,
    stores: u32,
}

const COMPARES: [ICmp; 6] = [ICmp::Lt, ICmp::Eq, ICmp::Le, ICmp::Gt, ICmp::Ne, ICmp::Ge];

impl Generator {
    fn push(&mut self, op: Op, dsts: &[Dst], srcs: &[Src]) {
        let block = self.block;
        self.func.block_mut(block).insts.push(Inst::new(op, dsts, srcs, Default::default()));
    }

    fn value(&mut self, file: File, width: u8) -> Value {
        self.func.new_value(file, width)
    }

    fn define(&mut self, op: Op, srcs: &[Src]) -> Value {
        let v = self.value(File::R, 1);
        self.push(op, &[Dst::Value(v)], srcs);
        self.pool.words.push(v);
        v
    }

    fn immediate(&mut self) -> Src {
        let interesting =
            [0, 1, 2, 3, 4, 8, 31, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0xffff_fff0];
        Src::imm(interesting[self.random.usize(..interesting.len())])
    }

    fn word(&mut self) -> Src {
        match self.random.usize(..8) {
            0 => self.immediate(),
            1 => Src::constant(0, 0x160 + 4 * self.random.usize(..4) as u16),
            2 if !self.pool.pairs.is_empty() => {
                let at = self.random.usize(..self.pool.pairs.len());
                Src::part(self.pool.pairs[at], self.random.usize(..2) as u8)
            }
            _ => self.register(),
        }
    }

    fn register(&mut self) -> Src {
        // Recent values are chosen more often, so that chains form.
        let n = self.pool.words.len();
        let at =
            if self.random.bool() { n - 1 - self.random.usize(..n.min(3)) } else { self.random.usize(..n) };
        self.pool.words[at].into()
    }

    fn predicate(&mut self) -> Src {
        if self.pool.predicates.is_empty() {
            return Src::TRUE;
        }
        let at = self.random.usize(..self.pool.predicates.len());
        let src = Src::from(self.pool.predicates[at]);
        if self.random.bool() { src.not() } else { src }
    }

    fn halves(&mut self) -> [Src; 2] {
        match self.random.usize(..5) {
            0 => {
                let low = self.register();
                let shift = Op::Shf { right: true, wrap: false, hi: true, ty: ShfType::S32 };
                let high = self.define(shift, &[Src::ZERO, Src::imm(31), low]);
                [low, high.into()]
            }
            1 => [self.register(), Src::ZERO],
            2 => [Src::constant(0, 0x160), Src::constant(0, 0x164)],
            3 => [Src::imm(16), Src::ZERO],
            _ if self.pool.pairs.is_empty() => [self.word(), self.word()],
            _ => {
                let at = self.random.usize(..self.pool.pairs.len());
                [0, 1].map(|part| Src::part(self.pool.pairs[at], part))
            }
        }
    }

    fn pack(&mut self, halves: [Src; 2]) {
        let v = self.value(File::R, 2);
        self.push(Op::Pack, &[Dst::Value(v)], &halves);
        self.pool.pairs.push(v);
    }

    fn operation(&mut self) {
        let neg = |random: &mut fastrand::Rng, src: Src| match src.kind {
            SrcKind::Value(_) | SrcKind::Const(_) if random.usize(..4) == 0 => src.neg(),
            _ => src,
        };
        match self.random.usize(..19) {
            0 | 1 => {
                let srcs =
                    [self.word(), self.word(), if self.random.bool() { self.word() } else { Src::ZERO }];
                let srcs = srcs.map(|src| neg(&mut self.random, src));
                self.define(Op::Iadd3 { x: false }, &srcs);
            }
            2 => {
                let srcs =
                    [self.register(), self.word(), if self.random.bool() { self.word() } else { Src::ZERO }];
                self.define(Op::Imad { sign: Sign::U32 }, &srcs);
            }
            3 | 4 => {
                let lut = [0xc0, 0xfc, 0x3c, 0x0f, 0x96, 0xca, 0xe8, self.random.usize(..256) as u8];
                let lut = lut[self.random.usize(..8)];
                let srcs =
                    [self.word(), self.word(), if self.random.bool() { self.word() } else { Src::ZERO }];
                self.define(Op::Lop3 { lut }, &srcs);
            }
            5 => {
                let by = Src::imm(self.random.usize(..34) as u32);
                let a = self.word();
                self.define(
                    Op::Shf { right: false, wrap: false, hi: false, ty: ShfType::U32 },
                    &[a, by, Src::ZERO],
                );
            }
            6 => {
                let by = Src::imm(self.random.usize(..34) as u32);
                let ty = if self.random.bool() { ShfType::S32 } else { ShfType::U32 };
                let a = self.word();
                self.define(Op::Shf { right: true, wrap: false, hi: true, ty }, &[Src::ZERO, by, a]);
            }
            7 => {
                let selector = [0x8880, 0x9910, 0x3210, 0x7654, 0x5410][self.random.usize(..5)];
                let srcs = [
                    self.word(),
                    Src::imm(selector),
                    if self.random.bool() { self.word() } else { Src::ZERO },
                ];
                self.define(Op::Prmt, &srcs);
            }
            8 | 9 => {
                let op = Op::Isetp {
                    cmp: COMPARES[self.random.usize(..6)],
                    sign: if self.random.bool() { Sign::S32 } else { Sign::U32 },
                    bool_: Bool::And,
                    ex: false,
                };
                let v = self.value(File::P, 1);
                let srcs = [self.word(), if self.random.bool() { self.word() } else { Src::ZERO }, Src::TRUE];
                self.push(op, &[Dst::Value(v)], &srcs);
                self.pool.predicates.push(v);
            }
            16 | 17 => {
                let (a, b) = (self.halves(), self.halves());
                let cmp = COMPARES[self.random.usize(..6)];
                let sign = if self.random.bool() { Sign::S32 } else { Sign::U32 };
                let (bool_, with) = match self.random.usize(..4) {
                    0 => (Bool::Or, self.predicate()),
                    1 => (Bool::Xor, self.predicate()),
                    2 => (Bool::And, self.predicate()),
                    _ => (Bool::And, Src::TRUE),
                };
                let (low, v) = (self.value(File::P, 1), self.value(File::P, 1));
                let op = Op::Isetp { cmp, sign: Sign::U32, bool_: Bool::And, ex: false };
                self.push(op, &[Dst::Value(low)], &[a[0], b[0], Src::TRUE]);
                let op = Op::Isetp { cmp, sign, bool_, ex: true };
                self.push(op, &[Dst::Value(v)], &[a[1], b[1], with, low.into()]);
                self.pool.predicates.push(v);
            }
            18 => {
                let (a, b, condition) = (self.halves(), self.halves(), self.predicate());
                let halves = [0, 1].map(|k| self.define(Op::Sel, &[a[k], b[k], condition]).into());
                self.pack(halves);
            }
            10 => {
                let lut = [0xc0, 0xfc, 0x3c, 0x30, 0x0c, 0xcf, self.random.usize(..256) as u8]
                    [self.random.usize(..7)];
                let v = self.value(File::P, 1);
                let srcs = [self.predicate(), self.predicate(), Src::TRUE];
                self.push(Op::Plop3 { lut, lut2: 0 }, &[Dst::Value(v), Dst::Sink], &srcs);
                self.pool.predicates.push(v);
            }
            11 => {
                let srcs = [self.word(), self.word(), self.predicate()];
                self.define(Op::Sel, &srcs);
            }
            12 => {
                let (a, b) = (self.register(), self.word());
                let v = self.value(File::R, 2);
                let sign = if self.random.bool() { Sign::S32 } else { Sign::U32 };
                self.push(Op::ImadWide { sign, x: false }, &[Dst::Value(v)], &[a, b, Src::ZERO]);
                self.pool.pairs.push(v);
            }
            13 => {
                let source = self.halves();
                let by = Src::imm(1 + self.random.usize(..31) as u32);
                let low = Op::Shf { right: false, wrap: false, hi: false, ty: ShfType::U32 };
                let low = self.define(low, &[source[0], by, Src::ZERO]);
                let high = Op::Shf { right: false, wrap: false, hi: true, ty: ShfType::U64 };
                let high = self.define(high, &[source[0], by, source[1]]);
                self.pack([low.into(), high.into()]);
            }
            _ => {
                let (a, b) = (self.halves(), self.halves());
                let (low, carry) = (self.value(File::R, 1), self.value(File::P, 1));
                let dsts = [Dst::Value(low), Dst::Value(carry), Dst::Sink];
                self.push(Op::Iadd3 { x: false }, &dsts, &[a[0], b[0], Src::ZERO]);
                let high = self.value(File::R, 1);
                let dsts = [Dst::Value(high), Dst::Sink, Dst::Sink];
                let srcs = [a[1], b[1], Src::ZERO, carry.into(), Src::FALSE];
                self.push(Op::Iadd3 { x: true }, &dsts, &srcs);
                if self.random.usize(..4) == 0 {
                    self.pool.words.extend([low, high]);
                }
                self.pack([low.into(), high.into()]);
            }
        }
        if self.random.usize(..3) == 0 {
            self.store();
        }
    }

    /// Stores a value to an address of its own, through an address with a constant addend.
    fn store(&mut self) {
        let at = 8 * self.stores;
        self.stores += 1;
        let v = self.value(File::R, 1);
        self.push(
            Op::Iadd3 { x: false },
            &[Dst::Value(v)],
            &[Src::constant(0, 0x200), Src::imm(at), Src::ZERO],
        );
        if self.random.bool() || self.pool.pairs.is_empty() {
            let data = self.word();
            let op = Op::Sts { size: MemSize::B32, order: Order::Weak, scale: AddressScale::One, offset: 0 };
            self.push(op, &[], &[v.into(), Src::ZERO, data]);
        } else {
            let data = self.pool.pairs[self.random.usize(..self.pool.pairs.len())];
            self.push(
                Op::Sts { size: MemSize::B64, order: Order::Weak, scale: AddressScale::One, offset: 0 },
                &[],
                &[v.into(), Src::ZERO, data.into()],
            );
        }
    }

    fn new_block(&mut self) -> BlockId {
        let b = self.func.new_block();
        self.func.layout.push(b);
        b
    }

    fn region(&mut self, depth: u32) {
        for _ in 0..2 + self.random.usize(..6) {
            match self.random.usize(..8) {
                0 if depth > 0 => self.diamond(depth),
                1 if depth > 0 => self.counted_loop(depth),
                _ => self.operation(),
            }
        }
    }

    fn diamond(&mut self, depth: u32) {
        let cond = self.predicate();
        let (top, pool) = (self.block, self.pool.clone());
        let then = self.new_block();
        let both = self.random.bool();
        self.block = then;
        self.region(depth - 1);
        let (then_end, then_pool) = (self.block, std::mem::replace(&mut self.pool, pool.clone()));
        let other = both.then(|| {
            let els = self.new_block();
            self.block = els;
            self.region(depth - 1);
            (els, self.block)
        });
        let else_pool = std::mem::replace(&mut self.pool, pool);
        let join = self.new_block();
        let (els, else_end) = other.unwrap_or((join, top));
        self.func.block_mut(top).term = Term::Branch { cond, then, els, uniform: false };
        self.func.block_mut(then_end).term = Term::Jump(join);
        if both {
            self.func.block_mut(else_end).term = Term::Jump(join);
        }
        self.block = join;
        for (file, width) in [(File::R, 1), (File::R, 2), (File::P, 1)] {
            let of = |pool: &Pool| match (file, width) {
                (File::P, _) => pool.predicates.last().copied(),
                (_, 1) => pool.words.last().copied(),
                _ => pool.pairs.last().copied(),
            };
            let (Some(a), Some(b)) = (of(&then_pool), of(&else_pool)) else { continue };
            let dst = self.value(file, width);
            let args = vec![(then_end, Src::from(a)), (else_end, Src::from(b))];
            self.func.block_mut(join).phis.push(Phi { dst, args });
            match (file, width) {
                (File::P, _) => self.pool.predicates.push(dst),
                (_, 1) => self.pool.words.push(dst),
                _ => self.pool.pairs.push(dst),
            }
        }
    }

    fn counted_loop(&mut self, depth: u32) {
        let top = self.block;
        let start = self.register();
        let header = self.new_block();
        self.func.block_mut(top).term = Term::Jump(header);
        let (counter, carried) = (self.value(File::R, 1), self.value(File::R, 1));
        let pool = self.pool.clone();
        self.pool.words.extend([counter, carried]);
        self.block = header;
        self.region(depth - 1);
        let next = self.define(Op::Iadd3 { x: false }, &[counter.into(), Src::imm(1), Src::ZERO]);
        let result = self.register();
        let again = self.value(File::P, 1);
        let op = Op::Isetp { cmp: ICmp::Lt, sign: Sign::S32, bool_: Bool::And, ex: false };
        self.push(op, &[Dst::Value(again)], &[next.into(), Src::imm(3), Src::TRUE]);
        let latch = self.block;
        let phis = vec![
            Phi { dst: counter, args: vec![(top, Src::ZERO), (latch, next.into())] },
            Phi { dst: carried, args: vec![(top, start), (latch, result)] },
        ];
        self.func.block_mut(header).phis = phis;
        let exit = self.new_block();
        self.func.block_mut(latch).term =
            Term::Branch { cond: again.into(), then: header, els: exit, uniform: false };
        self.block = exit;
        self.pool = pool;
        self.pool.words.push(next);
        self.pool.words.extend(result.value());
    }
}

fn function(seed: u64) -> Function {
    let func = Function {
        name: format!("seed {seed}"),
        entry: true,
        routine: None,
        blocks: Vec::new(),
        layout: Vec::new(),
        values: Vec::new(),
        literals: Vec::new(),
        frame: Frame::default(),
        facts: Default::default(),
    };
    let random = fastrand::Rng::with_seed(seed);
    let mut generator = Generator { random, func, block: BlockId(0), pool: Pool::default(), stores: 0 };
    generator.block = generator.new_block();
    for sr in [0x21, 0x25] {
        generator.define(Op::S2r { sr: crate::ori::op::Sr(sr) }, &[]);
    }
    generator.region(3);
    generator.operation();
    generator.store();
    generator.store();
    let end = generator.block;
    generator.func.block_mut(end).term = Term::Exit;
    generator.func
}

/// The contents of shared memory after executing the function.
fn run(func: &Function) -> Vec<u8> {
    let mut machine = Machine::new();
    machine.shared = vec![0; 1 << 16];
    machine.special.extend([(0x21, 77), (0x25, 0x8000_0003)]);
    for (i, word) in [3, 0xffff_fff7, 0x1234_5678, 0x8000_0000].into_iter().enumerate() {
        machine.set_constant(0, 0x160 + 4 * i as u16, word);
    }
    machine.set_constant(0, 0x200, 64);
    machine.run(func).unwrap_or_else(|error| panic!("{error}\n{}", text::print(func)));
    machine.shared
}

#[test]
fn phases_keep_what_functions_store() {
    for seed in 0..600 {
        // The last target has 64-bit operations.
        let options = Options::new(ptx_isa::Sm::new(if seed % 2 == 0 { 80 } else { 120 }));
        let mut func = function(seed);
        verify(&func, crate::ori::verify::Stage::Built)
            .unwrap_or_else(|errors| panic!("seed {seed}: {}\n{}", errors[0], text::print(&func)));
        let expected = run(&func);
        for phase in PHASES.iter().filter(|phase| phase.name != "LateExpandSyncInstructions") {
            let before = text::print(&func);
            let on_all = Phase { run: to_uniform::run_on_all, ..*phase };
            let phase = if phase.name == "OriPropagateVaryingSecond" { &on_all } else { phase };
            run_phase(&mut func, phase, &options, &Session::default()).unwrap();
            let after = text::print(&func);
            let context = || format!("seed {seed}, {}:\n{before}\n{after}", phase.name);
            if let Err(errors) = verify(&func, phase.result) {
                panic!("{}\n{}", errors[0], context());
            }
            assert!(run(&func) == expected, "stored values differ: {}", context());
        }
    }
}
