//! For tests: random functions, valid by construction. Every value is defined before its uses on every path.
//!
//! A function is a tree of straight-line code, diamonds, loops, early exits and endless loops. The values in scope are
//! those of the enclosing regions; diamonds and loops return values through phis.

use crate::input::SrcId;
use crate::ori::ir::{Block, BlockId, Dst, Facts, File, Frame, Function, Inst, Phi, Src, Term, Value};
use crate::ori::op::{Access, Bool, ICmp, MemSize, Op, ShfType, Sign, Sr};

/// The composition of a random function.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// The number of instructions of a straight-line piece.
    pub(crate) straight: usize,
    /// The nesting depth of diamonds and loops.
    pub(crate) depth: usize,
    /// The percentage of guarded instructions.
    pub(crate) guarded: usize,
    /// The percentage of operands that are old values, which increases the pressure.
    pub(crate) far: usize,
}

pub(crate) fn function(seed: u64, shape: Shape) -> Function {
    let mut g = Generator {
        random: fastrand::Rng::with_seed(seed),
        shape,
        func: Function {
            name: "random".to_owned(),
            entry: true,
            routine: None,
            blocks: vec![Block::default()],
            layout: vec![BlockId(0)],
            values: Vec::new(),
            literals: Vec::new(),
            frame: Frame::default(),
            facts: Facts::default(),
        },
        scope: Vec::new(),
        at: BlockId(0),
    };
    for i in 0..4 {
        let v = g.func.new_value(File::R, 1);
        g.push(Inst::new(Op::S2r { sr: Sr(i) }, &[Dst::Value(v)], &[], SrcId(0)));
        g.scope.push(v);
    }
    g.region(shape.depth);
    // Some of the remaining values are stored.
    for _ in 0..4 {
        g.store();
    }
    g.func
}

struct Generator {
    random: fastrand::Rng,
    shape: Shape,
    func: Function,
    /// Values that may be read here.
    scope: Vec<Value>,
    at: BlockId,
}

impl Generator {
    fn chance(&mut self, percent: usize) -> bool {
        self.random.usize(..100) < percent
    }

    fn push(&mut self, inst: Inst) {
        self.func.block_mut(self.at).insts.push(inst);
    }

    fn block(&mut self) -> BlockId {
        let b = self.func.new_block();
        self.func.layout.push(b);
        b
    }

    /// A value in scope, recent ones more often.
    fn pick(&mut self, file: File, width: u8) -> Option<Value> {
        let far = self.chance(self.shape.far);
        let fits = |v: &&Value| {
            let data = self.func.value(**v);
            data.file == file && data.width == width
        };
        let all: Vec<Value> = self.scope.iter().filter(fits).copied().collect();
        let first = if far { 0 } else { all.len().saturating_sub(5) };
        (!all.is_empty()).then(|| all[first + self.random.usize(..all.len() - first)])
    }

    /// A register, a part of a wide one, or zero.
    fn reg(&mut self) -> Src {
        if self.chance(20) {
            let width = [2, 2, 3, 4][self.random.usize(..4)];
            if let Some(v) = self.pick(File::R, width) {
                return Src::part(v, self.random.usize(..usize::from(width)) as u8);
            }
        }
        self.pick(File::R, 1).map_or(Src::ZERO, Src::from)
    }

    fn alu(&mut self) -> Src {
        match self.random.usize(..6) {
            0 => Src::imm(self.random.usize(..100) as u32),
            1 => Src::constant(0, 0x160 + 4 * self.random.usize(..8) as u16),
            2 => self.pick(File::UR, 1).map_or(Src::ZERO, Src::from),
            _ => self.reg(),
        }
    }

    fn wide(&mut self, width: u8) -> Src {
        match self.pick(File::R, width) {
            Some(v) => v.into(),
            None => {
                let v = self.func.new_value(File::R, width);
                let srcs: Vec<Src> = (0..width).map(|_| self.packed()).collect();
                self.push(Inst::new(Op::Pack, &[Dst::Value(v)], &srcs, SrcId(0)));
                self.scope.push(v);
                v.into()
            }
        }
    }

    fn packed(&mut self) -> Src {
        match self.random.usize(..8) {
            0 => Src::imm(3),
            1 => Src::UNDEF,
            _ => self.reg(),
        }
    }

    fn pred(&mut self) -> Src {
        match self.pick(File::P, 1) {
            Some(v) if self.chance(70) => Src::from(v).not(),
            Some(v) => v.into(),
            None => Src::TRUE,
        }
    }

    fn store(&mut self) {
        let addr = self.wide(2);
        let (size, data) = match self.random.usize(..4) {
            0 => (MemSize::B64, self.wide(2)),
            1 => (MemSize::B128, self.wide(4)),
            _ => (MemSize::B32, self.reg()),
        };
        let access = Access::weak(size, 4 * self.random.usize(..16) as i32);
        let mut inst = Inst::new(Op::Stg { access }, &[], &[addr, Src::ZERO, data], SrcId(0));
        if self.chance(self.shape.guarded) {
            inst.guard = self.pred();
        }
        self.push(inst);
    }

    fn inst(&mut self) {
        let (op, dsts, srcs): (Op, &[(File, u8)], Vec<Src>) = match self.random.usize(..20) {
            0 => (Op::Mov, &[(File::R, 1)], vec![self.alu()]),
            1 | 2 => {
                let op = Op::Isetp { cmp: ICmp::Lt, sign: Sign::S32, bool_: Bool::And, ex: false };
                (op, &[(File::P, 1), (File::P, 1)], vec![self.reg(), self.alu(), self.pred()])
            }
            3 => {
                let op = Op::Plop3 { lut: 0x80, lut2: 0x08 };
                (op, &[(File::P, 1)], vec![self.pred(), self.pred(), self.pred()])
            }
            4 => (Op::Sel, &[(File::R, 1)], vec![self.reg(), self.alu(), self.pred()]),
            5 | 6 => (
                Op::ImadWide { sign: Sign::U32, x: false },
                &[(File::R, 2)],
                vec![self.reg(), self.alu(), self.wide(2)],
            ),
            7 => {
                let access = Access::weak(MemSize::B64, 0);
                (Op::Ldg { access }, &[(File::R, 2)], vec![self.wide(2), Src::ZERO])
            }
            8 => {
                let access = Access::weak(MemSize::B128, 0);
                (Op::Ldg { access }, &[(File::R, 4)], vec![self.wide(2), Src::ZERO])
            }
            9 => return self.store(),
            10 => (Op::Pack, &[(File::R, 2)], vec![self.packed(), self.packed()]),
            11 => (Op::Pack, &[(File::R, 4)], (0..4).map(|_| self.packed()).collect()),
            12 => (Op::Pack, &[(File::R, 3)], (0..3).map(|_| self.packed()).collect()),
            13 => (Op::Copy, &[(File::R, 2)], vec![self.wide(2)]),
            14 => (Op::Uldc { wide: false }, &[(File::UR, 1)], vec![Src::constant(0, 0x170)]),
            15 => {
                let ur = self.pick(File::UR, 1).map_or(Src::ZERO, Src::from);
                (Op::Ulea { shift: 2 }, &[(File::UR, 1)], vec![ur, Src::imm(5)])
            }
            16 => {
                let op = Op::Shf { right: true, wrap: true, hi: false, ty: ShfType::U32 };
                (op, &[(File::R, 1)], vec![self.reg(), self.alu(), self.reg()])
            }
            _ => {
                let dsts: &[(File, u8)] =
                    if self.chance(20) { &[(File::R, 1), (File::P, 1)] } else { &[(File::R, 1)] };
                (Op::Iadd3 { x: false }, dsts, vec![self.reg(), self.alu(), self.reg()])
            }
        };
        let mut results = Vec::new();
        for &(file, width) in dsts {
            results.push(if dsts.len() > 1 && self.chance(30) {
                Dst::Sink
            } else {
                Dst::Value(self.func.new_value(file, width))
            });
        }
        let mut inst = Inst::new(op, &results, &srcs, SrcId(0));
        let pseudo = matches!(op, Op::Pack | Op::Copy);
        let uniform = dsts[0].0 == File::UR;
        if !pseudo && !uniform && self.chance(self.shape.guarded) {
            inst.guard = self.pred();
            if !inst.guard.is_true() {
                for &(file, width) in dsts {
                    let old = match self.pick(file, width) {
                        Some(v) if self.chance(80) => v.into(),
                        _ => match file {
                            File::R if width == 1 => Src::imm(9),
                            File::P => Src::FALSE,
                            _ => Src::UNDEF,
                        },
                    };
                    inst.old.push(old);
                }
            }
        }
        let defined: Vec<Value> = inst.defs().collect();
        self.push(inst);
        self.scope.extend(defined);
    }

    fn straight(&mut self) {
        for _ in 0..self.random.usize(..self.shape.straight + 1) {
            self.inst();
        }
    }

    fn condition(&mut self) -> Src {
        if self.pick(File::P, 1).is_none() {
            let v = self.func.new_value(File::P, 1);
            let srcs = [self.reg(), self.alu(), Src::TRUE];
            let op = Op::Isetp { cmp: ICmp::Ge, sign: Sign::U32, bool_: Bool::And, ex: false };
            self.push(Inst::new(op, &[Dst::Value(v), Dst::Sink], &srcs, SrcId(0)));
            self.scope.push(v);
        }
        self.pred()
    }

    /// An argument of a phi, from the values in scope.
    fn argument(&mut self, file: File, width: u8) -> Src {
        match (self.random.usize(..8), file, width) {
            (0, File::R, 1) => Src::imm(11),
            (0, File::R, _) => Src::UNDEF,
            (1, File::R, 2) => Src::ZERO,
            (0, File::P, _) => Src::FALSE,
            (1, File::P, _) => self.pred(),
            _ => match self.pick(file, width) {
                Some(v) => v.into(),
                None if file == File::P => Src::TRUE,
                None => Src::UNDEF,
            },
        }
    }

    /// What joins are: none is in a uniform register.
    const KINDS: [(File, u8); 5] = [(File::R, 1), (File::R, 1), (File::R, 2), (File::P, 1), (File::R, 4)];

    fn region(&mut self, depth: usize) {
        self.straight();
        if depth == 0 {
            return;
        }
        for _ in 0..1 + self.random.usize(..2) {
            match self.random.usize(..4) {
                0 => self.diamond(depth),
                1 => self.loop_(depth),
                2 => self.exit_early(),
                _ => self.triangle(depth),
            }
            self.straight();
        }
    }

    fn branch(&mut self, from: BlockId, then: BlockId, els: BlockId, cond: Src) {
        self.func.block_mut(from).term = Term::Branch { cond, then, els, uniform: false };
    }

    fn diamond(&mut self, depth: usize) {
        let cond = self.condition();
        let (from, outer) = (self.at, self.scope.len());
        let then = self.block();
        let kinds: Vec<(File, u8)> = (0..self.random.usize(..6))
            .map(|_| Self::KINDS[self.random.usize(..Self::KINDS.len())])
            .collect();
        let mut args: Vec<Vec<(BlockId, Src)>> = vec![Vec::new(); kinds.len()];
        let mut arm = |g: &mut Generator, b: BlockId| {
            g.at = b;
            g.region(depth - 1);
            for (args, &(file, width)) in args.iter_mut().zip(&kinds) {
                let arg = g.argument(file, width);
                args.push((g.at, arg));
            }
            g.scope.truncate(outer);
            g.at
        };
        let then_end = arm(self, then);
        let els = self.block();
        let els_end = arm(self, els);
        let join = self.block();
        self.branch(from, then, els, cond);
        self.func.block_mut(then_end).term = Term::Jump(join);
        self.func.block_mut(els_end).term = Term::Jump(join);
        self.at = join;
        self.phis(kinds, args);
    }

    /// One arm only: the other edge is critical.
    fn triangle(&mut self, depth: usize) {
        let cond = self.condition();
        let (from, outer) = (self.at, self.scope.len());
        let kinds: Vec<(File, u8)> = (0..self.random.usize(..6))
            .map(|_| Self::KINDS[self.random.usize(..Self::KINDS.len())])
            .collect();
        let mut args: Vec<Vec<(BlockId, Src)>> = Vec::new();
        for &(file, width) in &kinds {
            args.push(vec![(from, self.argument(file, width))]);
        }
        let then = self.block();
        self.at = then;
        self.region(depth - 1);
        let end = self.at;
        for (args, &(file, width)) in args.iter_mut().zip(&kinds) {
            args.push((end, self.argument(file, width)));
        }
        self.scope.truncate(outer);
        let join = self.block();
        self.branch(from, then, join, cond);
        self.func.block_mut(end).term = Term::Jump(join);
        self.at = join;
        self.phis(kinds, args);
    }

    fn loop_(&mut self, depth: usize) {
        let (header, kinds) = self.enter_loop(7);
        let outer = self.scope.len();
        self.region(depth - 1);
        // Half of the loops exit from the latch, which makes the back edge critical.
        let cond = self.condition();
        let end = self.at;
        let latch = if self.chance(50) {
            let latch = self.block();
            self.at = latch;
            self.straight();
            self.func.block_mut(self.at).term = Term::Jump(header);
            latch
        } else {
            header
        };
        let back = if latch == header { end } else { self.at };
        self.go_round(header, back, &kinds);
        let exit = self.block();
        self.branch(end, latch, exit, cond);
        self.scope.truncate(outer);
        self.at = exit;
    }

    /// Continues in the header of a loop, with fewer phis than `most`. Returns the header and the kinds of the phis.
    fn enter_loop(&mut self, most: usize) -> (BlockId, Vec<(File, u8)>) {
        let kinds: Vec<(File, u8)> = (0..self.random.usize(..most))
            .map(|_| Self::KINDS[self.random.usize(..Self::KINDS.len())])
            .collect();
        let from = self.at;
        let args: Vec<Vec<(BlockId, Src)>> =
            kinds.iter().map(|&(file, width)| vec![(from, self.argument(file, width))]).collect();
        let header = self.block();
        self.func.block_mut(from).term = Term::Jump(header);
        self.at = header;
        self.phis(kinds.clone(), args);
        (header, kinds)
    }

    /// Gives the phis of a loop's header what comes around from `back`.
    fn go_round(&mut self, header: BlockId, back: BlockId, kinds: &[(File, u8)]) {
        for (i, &(file, width)) in kinds.iter().enumerate() {
            let arg = self.argument(file, width);
            self.func.block_mut(header).phis[i].args.push((back, arg));
        }
    }

    fn exit_early(&mut self) {
        let cond = self.condition();
        let from = self.at;
        let leave = self.block();
        self.at = leave;
        let outer = self.scope.len();
        self.store();
        if self.chance(30) {
            self.endless();
        }
        self.scope.truncate(outer);
        let go_on = self.block();
        self.branch(from, leave, go_on, cond);
        self.at = go_on;
    }

    /// A block that jumps to itself, and to nothing else.
    fn endless(&mut self) {
        let (spin, kinds) = self.enter_loop(4);
        self.straight();
        self.store();
        self.go_round(spin, spin, &kinds);
        self.func.block_mut(spin).term = Term::Jump(spin);
    }

    fn phis(&mut self, kinds: Vec<(File, u8)>, args: Vec<Vec<(BlockId, Src)>>) {
        for ((file, width), args) in kinds.into_iter().zip(args) {
            let dst = self.func.new_value(file, width);
            self.func.block_mut(self.at).phis.push(Phi { dst, args });
            self.scope.push(dst);
        }
    }
}
