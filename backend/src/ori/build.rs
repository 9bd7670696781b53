//! Translates a position-free PTX function to Ori in SSA form.
//!
//! The statements are lowered one by one, in the order of the text. Operations are chosen only here. Constants stay
//! operands, even if no encoding takes them, because only legalization knows the encodings. If a lowering does not take
//! a part of its statement, the statement is unsupported; see [`statement`].
//!
//! A guard is lowered in one of three ways:
//!
//! - A single operation that has no side effects or accesses memory carries the guard itself, and names the old values
//!   that its destinations keep if the guard is false.
//! - An expansion without side effects is computed for all threads. Then each thread keeps or drops the results.
//! - An expansion with side effects and branches of its own is placed after a branch that skips it.

mod atomic;
mod atomic_loop;
mod bulk;
mod cache;
mod call;
mod cluster;
mod compare;
mod control;
mod convert;
mod copy;
mod divide;
mod divide_double;
mod double;
mod driver_copy;
mod flight;
mod float;
mod form;
mod gradient;
mod group;
mod half;
mod handle;
mod integer;
mod logic;
mod matrix;
mod matrix_parts;
mod matrix_quads;
mod matrix_scaled;
mod matrix_sparse;
mod memory;
mod multimem;
mod narrow;
mod nth_bit;
mod object;
mod operand;
mod proxy;
mod query;
mod registers;
mod rewrite;
mod row;
mod special;
mod ssa;
mod stack;
mod statement;
mod symbol;
mod tensor;
mod tensor_checks;
mod tensormap;
mod texture;
mod uniform;
mod video;
mod warp;
mod wmma;

use crate::Linking;
use crate::abi::{self, Convention};
use crate::copies::Statements;
use crate::input::{Env, Function, Guard, Operand, Param, SrcId, Stmt, Symbol};
use crate::layout::{self, SharedLayout};
use crate::ori::cfg::Cfg;
use crate::ori::ir::{self, BlockId, Dst, File, Inst, Src, SrcKind, Term, Value};
use crate::ori::op::Op;
use crate::phase::branches::decide_known;
use crate::phase::edit::remove_unreached;
use crate::regalloc::counts;
use crate::target::{ParamBlock, Target};
use crate::{CodegenError, Options};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use ssa::{Shape, Ssa, Variable};
use statement::Statement;

type Result<T, E = CodegenError> = std::result::Result<T, E>;

/// The maximum number of values in a function. Real functions have a few for each statement. In deep nests of loops,
/// each loop may need a phi for each variable, so their number grows with the product of both.
const MAX_VALUES: usize = 1 << 20;

/// More shared memory than a block has on any target.
const MAX_SHARED_BYTES: u32 = 1 << 20;
/// More local memory than a thread has on any target.
const MAX_LOCAL_BYTES: u32 = 1 << 28;

fn within(most: u32, bytes: u64, space: &str) -> Result<u32> {
    u32::try_from(bytes).ok().filter(|&bytes| bytes <= most).ok_or_else(|| CodegenError::Limit {
        at: SrcId::default(),
        what: format!("its .{space} variables exceed {most} bytes"),
    })
}

/// Whether the threads of each warp differ only in `%tid.x`, which is a multiple of 32 for the first.
fn fills_warps_along_x([x, y, z]: [u32; 3]) -> bool {
    x % 32 == 0 || (y <= 1 && z <= 1)
}

/// The number of statements between checkpoints.
const STRIDE: usize = 1 << 10;

/// Lowers one function. `starts_with` is the maximum number of registers that a thread may start with, if the
/// function's `setmaxnreg` is honored. `checkpoint` is called often; it cancels by unwinding.
pub fn build(
    env: &Env,
    func: &Function,
    options: &Options,
    starts_with: Option<u32>,
    checkpoint: &dyn Fn(),
) -> Result<ir::Function> {
    let at = SrcId::default();
    let Some(target) = Target::of(options.sm) else {
        return Err(CodegenError::unsupported(at, format!("code for {}", options.sm)));
    };
    if env.address_size != 64 {
        return Err(CodegenError::unsupported(at, "32-bit addressing"));
    }
    if !func.entry && func.params.iter().any(Param::is_opaque) {
        let what = "a function's parameter that is a texture, a sampler or a surface";
        return Err(CodegenError::unsupported(at, what));
    }
    let mut lowering = Lowering::new(env, func, options, target, checkpoint)?;
    lowering.out.facts.starts_with = starts_with;
    lowering.out.facts.free_registers = crate::registers::stated(&func.launch, options);
    lowering.out.facts.warps_along_x = func.entry && func.launch.reqntid.is_some_and(fills_warps_along_x);
    lowering.body(checkpoint)?;
    checkpoint();
    let mut out = lowering.finish(checkpoint);
    if let Some(most) = starts_with {
        let start = counts::to_start_with(&out, most).ok_or_else(|| CodegenError::Limit {
            at: SrcId::default(),
            what: "setmaxnreg with register counts that no start value allows".to_owned(),
        })?;
        out.facts.starts_with = Some(start);
    }
    Ok(out)
}

/// A run of statements that control enters only at its start and leaves only at its end.
struct Run {
    statements: std::ops::Range<usize>,
    block: Option<BlockId>,
}

struct Lowering<'a> {
    env: &'a Env,
    func: &'a Function,
    target: &'static Target,
    sm: u16,
    out: ir::Function,
    ssa: Ssa<'a>,
    /// The block to which operations are added, and the number of its operations when the current statement began.
    block: BlockId,
    begin: usize,
    /// The current statement and its guard.
    src: SrcId,
    guard: Src,
    /// Indexed by label: its block, if control reaches it.
    labels: Vec<Option<BlockId>>,
    /// The sources from which each wide value was packed.
    packed: FxHashMap<Value, SmallVec<[Src; 4]>>,
    /// For words in which some bits are known to be zero: the bits that may be set.
    bits: FxHashMap<Value, u32>,
    temporaries: Vec<Shape>,
    shared: SharedLayout,
    /// The slots of global variables that are already in `out.facts.symbols`.
    slots: FxHashSet<layout::Slot>,
    locals: Vec<Option<u32>>,
    /// The offsets of a kernel's parameters in constant bank 0.
    params: ParamBlock,
    /// The convention by which the function is called.
    convention: Convention,
    /// The function is linked with other functions. The addresses of its shared variables are known only then.
    linked: bool,
    linking: Linking,
    /// Debug information states where PTX registers are.
    shows_registers: bool,
    /// Before threads end, they wait until their accesses have reported errors.
    errors_at_exit: bool,
    /// Accesses of tensor memory are checked.
    checks_tensor_memory: bool,
    /// The variables for the words of parameters and results, of calls and of the function itself.
    words: FxHashMap<(Symbol, u32), Variable>,
    /// The frame offset of each parameter or result that is kept in the frame because the body uses its address.
    in_memory: FxHashMap<Symbol, u32>,
    /// The frame offset of the results of calls that are not returned in registers.
    results_at: u32,
    /// The number of bytes at the end of the stack for the arguments and results of calls that are not in registers.
    passed_bytes: u32,
    /// [`call::Outgoing::align`].
    passed_align: u32,
    /// The variable that holds the end of the stack, if the function changes it.
    stack_end: Option<Variable>,
    /// The address for the function's own results, if they are not returned in registers.
    result_address: Option<Src>,
    frame_top: Option<Value>,
    /// The block in which a function with several returns goes back to its caller, so that threads meet before that.
    way_back: Option<BlockId>,
    /// The operations at the start of the entry block.
    prologue: Vec<Inst>,
    /// The number of jump tables so far.
    tables: u32,
    /// The warpgroup products that fences and waits affect.
    products: flight::Products,
    descriptor: Option<Src>,
    shared_base: Option<Value>,
}

impl<'a> Lowering<'a> {
    fn new(
        env: &'a Env,
        func: &'a Function,
        options: &Options,
        target: &'static Target,
        checkpoint: &'a dyn Fn(),
    ) -> Result<Self> {
        let used = control::shared_symbols(env, func);
        let shared = SharedLayout::new(env, func, target, |symbol| used.contains(&symbol));
        let is_own = |symbol| matches!(symbol, Symbol::Local(_)) && used.contains(&symbol);
        // The linker of objects adds the variables of the module.
        let shared_bytes = match options.linking.is_object() {
            true => SharedLayout::new(env, func, target, is_own).static_bytes,
            false => shared.static_bytes,
        };
        let mut locals = layout::local_layout(&func.locals);
        let preserved = if options.linking.is_object() { func.preserved } else { abi::Preserved::default() };
        let convention = Self::own_convention(func, preserved)?;
        let passed = call::outgoing(env, func, target);
        locals.align = locals.align.max(passed.align);
        let taken = stack::taken_align(func);
        let below =
            (passed.params + passed.results).next_multiple_of(locals.align.max(taken.unwrap_or(1)).max(1));
        locals.offsets.iter_mut().flatten().for_each(|offset| *offset = offset.saturating_add(below));
        locals.size = locals.size.saturating_add(below.into());
        let mut in_memory = FxHashMap::default();
        if !func.entry {
            for symbol in call::with_addresses(func) {
                let param = match symbol {
                    Symbol::Param(i) => match convention.params.get(i as usize) {
                        Some(abi::ArgumentPlace::Registers(_)) => func.params.get(i as usize),
                        _ => None,
                    },
                    Symbol::Return(i) => func.returns.get(i as usize),
                    _ => None,
                };
                let Some(param) = param else { continue };
                locals.size = locals.size.next_multiple_of(u64::from(param.align.clamp(4, 16)));
                in_memory.insert(symbol, u32::try_from(locals.size).unwrap_or(u32::MAX));
                locals.size += u64::from(param.size.next_multiple_of(4));
            }
        }
        let mut out = ir::Function {
            name: func.name.clone(),
            entry: func.entry,
            routine: None,
            blocks: Vec::new(),
            layout: Vec::new(),
            values: Vec::new(),
            literals: Vec::new(),
            frame: ir::Frame::default(),
            facts: ir::Facts::default(),
        };
        out.facts.linking = options.linking;
        out.facts.preserved = preserved;
        out.facts.pointees_never_wait = !env.pointees_wait;
        out.facts.callees_never_watch = true;
        out.facts.statements = Statements::of(func);
        out.facts.locals.clone_from(&locals.offsets);
        out.facts.shared_bytes = within(MAX_SHARED_BYTES, shared_bytes, "shared")?;
        out.frame.local_bytes = within(MAX_LOCAL_BYTES, locals.size, "local")?;
        if !func.entry && options.linking.is_object() {
            out.frame.entry_align = abi::STACK_ALIGN;
        }
        let asked = call::callees_align(env, func, target, out.frame.entry_align);
        out.frame.local_align = locals.align.max(asked.unwrap_or(0));
        out.frame.uses_stack = asked.is_some() || !func.entry || taken.is_some();
        out.frame.moving = taken.is_some();
        Ok(Lowering {
            env,
            func,
            target,
            sm: options.sm.number,
            out,
            ssa: Ssa::new(checkpoint),
            block: BlockId(0),
            begin: 0,
            src: SrcId::default(),
            guard: Src::TRUE,
            labels: vec![None; func.labels as usize],
            packed: FxHashMap::default(),
            bits: FxHashMap::default(),
            temporaries: Vec::new(),
            shared,
            slots: FxHashSet::default(),
            locals: locals.offsets,
            params: target.place_params(if func.entry { &func.params } else { &[] }),
            convention,
            linked: asked.is_some() || !func.entry || !options.linking.is_joined(),
            linking: options.linking,
            shows_registers: options.shows_registers,
            errors_at_exit: options.errors_at_exit,
            checks_tensor_memory: options.checks_tensor_memory,
            words: FxHashMap::default(),
            in_memory,
            results_at: passed.params,
            passed_align: passed.align,
            passed_bytes: below,
            stack_end: None,
            result_address: None,
            frame_top: None,
            way_back: None,
            prologue: Vec::new(),
            tables: 0,
            products: flight::Products::default(),
            descriptor: None,
            shared_base: None,
        })
    }

    fn own_convention(func: &Function, preserved: abi::Preserved) -> Result<Convention> {
        if func.entry {
            return Ok(Convention {
                params: Vec::new(),
                results: abi::Results::Registers(Vec::new()),
                stack_bytes: 0,
            });
        }
        preserved.convention(&func.params, &func.returns).ok_or_else(|| call::no_place(SrcId(0)))
    }

    fn body(&mut self, checkpoint: &dyn Fn()) -> Result<()> {
        let runs = self.split_into_blocks()?;
        let entry = self.out.layout.first().copied().or_else(|| runs.first()?.block);
        self.enter(entry.unwrap_or(self.block))?;
        for (i, run) in runs.iter().enumerate() {
            let Some(block) = run.block else { continue };
            self.start(block);
            let next = runs.get(i + 1).and_then(|r| r.block);
            self.run(run.statements.clone(), next, checkpoint)?;
        }
        self.go_back()
    }

    /// Lowers the statements of one run. `next` is the block that control enters at the end of the run.
    fn run(
        &mut self,
        statements: std::ops::Range<usize>,
        next: Option<BlockId>,
        checkpoint: &dyn Fn(),
    ) -> Result<()> {
        for (i, stmt) in statements.clone().zip(&self.func.body[statements]) {
            if i % STRIDE == 0 {
                checkpoint();
            }
            let Stmt::Instr(instr) = stmt else { continue };
            if self.out.values.len() > MAX_VALUES {
                return Err(CodegenError::unsupported(
                    instr.src,
                    "more than a million values in one function",
                ));
            }
            self.src = instr.src;
            self.begin = self.out.block(self.block).insts.len();
            self.guard = Src::TRUE;
            if let Some(guard) = instr.guard {
                self.guard = self.guard_source(guard)?;
            }
            if control::never(self.guard) {
                self.out.facts.never.push(self.src);
                continue;
            }
            let statement = Statement::new(instr);
            if control::is_terminator(instr.opcode.form) {
                self.terminator(&statement, next)?;
                return self.nothing_left(&statement);
            }
            self.instruction(&statement)?;
            self.nothing_left(&statement)?;
        }
        match next {
            Some(next) => self.end(Term::Jump(next)),
            None => self.return_to_caller()?,
        }
        Ok(())
    }

    fn guard_source(&mut self, guard: Guard) -> Result<Src> {
        let src = self.read_register(guard.reg)?;
        Ok(if guard.negated { src.not() } else { src })
    }

    fn finish(mut self, checkpoint: &dyn Fn()) -> ir::Function {
        let entry = self.out.layout[0];
        let insts = &mut self.out.block_mut(entry).insts;
        insts.splice(0..0, std::mem::take(&mut self.prologue));
        // Branches whose guard is never true were left out. So some blocks have fewer incoming edges than were
        // declared.
        let (func, temporaries) = (self.func, &self.temporaries);
        self.ssa.close(&mut self.out, &|v| shape(func, temporaries, v));
        checkpoint();
        let cfg = Cfg::new(&self.out);
        remove_unreached(&mut self.out, &cfg);
        checkpoint();
        self.ssa.simplify(&mut self.out);
        let is_undefined =
            |term: &Term| matches!(term, Term::Branch { cond, .. } if cond.kind == SrcKind::Undef);
        if self.out.layout.iter().any(|&b| is_undefined(&self.out.block(b).term)) {
            decide_known(&mut self.out);
        }
        self.out
    }

    // Blocks.

    /// Creates a block that `edges` edges will enter.
    fn new_block(&mut self, edges: u32) -> BlockId {
        let block = self.out.new_block();
        self.ssa.add_block(block, edges);
        block
    }

    /// Starts `block`: the following operations are added to it.
    fn start(&mut self, block: BlockId) {
        self.out.layout.push(block);
        self.block = block;
        self.begin = 0;
    }

    /// Ends the current block.
    fn end(&mut self, term: Term) {
        let term = match term {
            Term::Branch { then, els, .. } if then == els => Term::Jump(then),
            Term::Branch { cond, then, .. } if cond.is_true() => Term::Jump(then),
            other => other,
        };
        let from = self.block;
        let mut successors = term.successors();
        successors.sort_unstable();
        successors.dedup();
        let block = self.out.block_mut(from);
        block.term = term;
        block.term_src = self.src;
        for to in successors {
            let (func, temporaries) = (self.func, &self.temporaries);
            self.ssa.add_edge(&mut self.out, from, to, &|v| shape(func, temporaries, v));
        }
    }

    /// Lowers `effects` after a branch that skips them unless the statement's guard is true.
    fn branch_around(&mut self, effects: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.guard.is_true() {
            return effects(self);
        }
        let (then, join) = (self.new_block(1), self.new_block(2));
        self.end(Term::Branch { cond: self.guard, then, els: join, uniform: false });
        self.start(then);
        let guard = std::mem::replace(&mut self.guard, Src::TRUE);
        effects(self)?;
        self.guard = guard;
        self.end(Term::Jump(join));
        self.start(join);
        Ok(())
    }

    // Variables.

    fn read_variable(&mut self, variable: Variable) -> Src {
        let (func, temporaries) = (self.func, &self.temporaries);
        self.ssa.read(&mut self.out, self.block, variable, &|v| shape(func, temporaries, v))
    }

    /// A new variable for an expansion. It may be assigned in several blocks.
    fn temporary(&mut self, file: File, width: u8) -> Variable {
        self.temporaries.push(Shape { file, width });
        Variable::Temporary(self.temporaries.len() as u32 - 1)
    }

    fn write_variable(&mut self, variable: Variable, src: Src) {
        self.ssa.write(self.block, variable, src);
    }

    // Operations.

    fn push(&mut self, inst: Inst) {
        self.out.block_mut(self.block).insts.push(inst);
    }

    fn new_value(&mut self, file: File, width: u8) -> Value {
        self.out.new_value(file, width)
    }

    /// An operation with one result in `width` general registers.
    fn wide(&mut self, width: u8, op: Op, srcs: &[Src]) -> Src {
        let value = self.new_value(File::R, width);
        self.push(Inst::new(op, &[Dst::Value(value)], srcs, self.src));
        value.into()
    }

    /// An operation with one 32-bit result.
    fn reg(&mut self, op: Op, srcs: &[Src]) -> Src {
        self.wide(1, op, srcs)
    }

    /// An operation with one predicate result.
    fn pred(&mut self, op: Op, srcs: &[Src]) -> Src {
        let value = self.new_value(File::P, 1);
        let dsts: &[Dst] = match op {
            Op::Isetp { .. } | Op::Fsetp { .. } | Op::Dsetp { .. } | Op::Hsetp2 { .. } | Op::Plop3 { .. } => {
                &[Dst::Value(value), Dst::Sink]
            }
            _ => &[Dst::Value(value)],
        };
        self.push(Inst::new(op, dsts, srcs, self.src));
        value.into()
    }

    /// An operation with effects, under the statement's guard.
    fn effect(&mut self, op: Op, srcs: &[Src]) {
        let mut inst = Inst::new(op, &[], srcs, self.src);
        inst.guard = self.guard;
        self.push(inst);
    }

    /// An operation with effects and results, under the statement's guard. `old`: the values of the results if the
    /// guard is false.
    fn guarded(&mut self, op: Op, dsts: &[Dst], srcs: &[Src], old: &[Src]) {
        let mut inst = Inst::new(op, dsts, srcs, self.src);
        if !self.guard.is_true() {
            inst.guard = self.guard;
            inst.old = SmallVec::from_slice(old);
        }
        self.push(inst);
    }

    /// Whether the target has the operation.
    fn encodes(&self, op: &Op) -> bool {
        crate::emit::encodes(self.target.generation(), op)
    }

    // Errors.

    fn unsupported<T>(&self, instr: &Statement<'_>, what: &str) -> Result<T> {
        Err(CodegenError::unsupported(self.src, format!("{}: {what}", instr.form().mnemonic())))
    }

    fn malformed<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(CodegenError::internal(self.src, "build", what))
    }

    /// Refuses a statement if its lowering has not taken all of its parts.
    fn nothing_left(&self, instr: &Statement<'_>) -> Result<()> {
        match instr.left_over() {
            Some(what) => self.unsupported(instr, &what),
            None => Ok(()),
        }
    }

    fn operand(&self, instr: &Statement<'a>, i: usize) -> Result<&'a Operand> {
        match instr.operand(i) {
            Some(operand) => Ok(operand),
            None => self.malformed(format!("{} has no operand {i}", instr.form().mnemonic())),
        }
    }
}

/// The register file and the width of a variable's values.
fn shape(func: &Function, temporaries: &[Shape], variable: Variable) -> Shape {
    match variable {
        Variable::Reg(r) => {
            func.regs.get(r.0 as usize).map_or(Shape { file: File::R, width: 1 }, |r| operand::shape(r.ty))
        }
        Variable::Carry => Shape { file: File::P, width: 1 },
        Variable::Temporary(i) => temporaries[i as usize],
    }
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod semantics;

#[cfg(test)]
mod tests {
    use super::sample::Sample;
    use crate::ori::text;
    use crate::ori::verify::{Stage, verify};
    use expect_test::{Expect, expect};

    fn check(sm: u16, text: &str, expected: Expect) {
        let func = Sample::new(text).build(sm).unwrap();
        if let Err(errors) = verify(&func, Stage::Built) {
            panic!(
                "{}\n{}",
                errors.iter().map(|e| e.to_string()).collect::<Vec<_>>().join("\n"),
                text::print(&func)
            );
        }
        expected.assert_eq(&text::print(&func));
    }

    #[test]
    fn loops_join_in_phis() {
        check(
            80,
            "param u64 out; param u32 n
            ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n]
            mov.u32 %r2, 0; mov.u32 %r3, 7
            loop:
            add.s32 %r2, %r2, %r3
            setp.lt.s32 %p1, %r2, %r1
            @%p1 bra loop
            cvta.to.global.u64 %rd2, %rd1
            mov.u32 %r4, %tid.x
            mul.wide.s32 %rd3, %r4, 4
            add.s64 %rd4, %rd2, %rd3
            st.global.u32 [%rd4+8], %r2
            ret",
            expect![[r#"
                entry "sample" {
                b0:
                  %v12:ur2 = ULDC.64 c[0x0][0x118] #11
                  JUMP b1 #3
                b1:
                  %v0:r = phi b0 RZ, b1 %v2
                  %v2:r, _, _ = IADD3 %v0, 0x7, RZ #4
                  %v4:p, _ = ISETP.LT.AND %v2, c[0x0][0x168], PT #5
                  BRA %v4, b1, b2 #6
                b2:
                  %v6:r = S2R{sr=0x21} #8
                  %v7:r2 = IMAD.WIDE %v6, 0x4, RZ #9
                  %v8:r, %v9:p, _ = IADD3 c[0x0][0x160], %v7.0, RZ #10
                  %v10:r, _, _ = IADD3.X c[0x0][0x164], %v7.1, RZ, %v9, PF #10
                  %v11:r2 = PACK %v8, %v10 #10
                  STG.E{offset=8} %v11, %v12, %v2 #11
                  EXIT #12
                }
            "#]],
        );
    }

    #[test]
    fn branches_that_are_never_taken_lead_nowhere() {
        check(
            80,
            "param u64 out
            ld.param.u64 %rd1, [out]
            mov.pred %p1, 0
            mov.u32 %r1, 1
            @%p1 bra never
            bra join
            never:
            st.global.u32 [%rd1+4], %r1
            mov.u32 %r1, 2
            join:
            st.global.u32 [%rd1], %r1
            @%p1 bra join
            ret",
            expect![[r#"
                entry "sample" facts(never=3,never=5) {
                b0:
                  %v2:ur2 = ULDC.64 c[0x0][0x118] #5
                  JUMP b1 #3
                b1:
                  JUMP b3 #4
                b3:
                  STG.E c[0x0][0x160], %v2, 0x1 #7
                  BRA PF, b3, b4 #8
                b4:
                  EXIT #9
                }
            "#]],
        );
    }

    #[test]
    fn guarded_statements_keep_what_was_there() {
        check(
            90,
            "param u64 out; shared 64 s
            ld.param.u64 %rd1, [out]
            mov.u32 %r1, 1
            mov.u32 %r4, %tid.x
            setp.eq.s32 %p1, %r4, 3
            @%p1 add.s32 %r4, %r4, 2
            @!%p1 ld.global.u32 %r1, [%rd1]
            @%p1 ld.shared.v2.u32 {%r5, %r6}, [s+8]
            @%p1 bra end
            @%p1 ret
            st.shared.u32 [s], %r5
            st.global.v2.u32 [%rd1], {%r1, %r4}
            end:
            ret",
            expect![[r#"
                entry "sample" facts(shared=64) {
                b0:
                  %v4:ur2 = ULDC.64 c[0x0][0x208] #5
                  %v5:ur = S2UR{sr=0x88} #6
                  %v6:ur = ULEA{shift=0x18} %v5, 0x400 #6
                  %v0:r = S2R{sr=0x21} #2
                  %v1:p, _ = ISETP.EQ.AND %v0, 0x3, PT #3
                  @%v1 %v2:r, _, _ = IADD3 %v0, 0x2, RZ old(%v0, undef, undef) #4
                  @!%v1 %v3:r = LDG.E c[0x0][0x210], %v4 old(0x1) #5
                  @%v1 %v7:r2 = LDS.64{offset=8} RZ, %v6 old(undef) #6
                  BRA %v1, b3, b1 #7
                b1:
                  BRA %v1, b4, b2 #8
                b4:
                  EXIT #8
                b2:
                  STS RZ, %v6, %v7.0 #9
                  %v8:r2 = PACK %v3, %v2 #10
                  STG.E.64 c[0x0][0x210], %v4, %v8 #10
                  JUMP b3 #10
                b3:
                  EXIT #11
                }
            "#]],
        );
    }

    const HEAD: &str = "param u64 p; param u32 q; shared 64 s; local 16 l; global 64 g; const 64 c
        ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [q]; setp.eq.u32 %p1, %r1, 1";

    const STATEMENTS: &[&str] = &[
        "@%p1 shfl.sync.idx.b32 %r9|%p2, %r1, %r2, 31, -1",
        "shfl.sync.bfly.b32 %r9, %r1, 1, 0x1f, %r3",
        "vote.sync.ballot.b32 %r9, %p1, -1",
        "vote.sync.all.pred %p2, !%p1, -1",
        "match.any.sync.b32 %r9, %r1, -1",
        "match.all.sync.b64 %r9|%p2, %rd1, %r2",
        "activemask.b32 %r9",
        "bar.sync 0",
        "@%p1 bar.sync %r1",
        "barrier.sync 3, 64",
        "bar.arrive 1, 64",
        "@%p1 bar.red.popc.u32 %r9, 1, %p1",
        "bar.red.and.pred %p2, 1, 64, !%p1",
        "bar.warp.sync %r1",
        "bar.sync 2, %r1",
        "bar.sync %r1, %r2",
        "membar.gl",
        "fence.acq_rel.sys",
        "nanosleep.u32 %r1",
        "@%p1 atom.global.add.u32 %r9, [%rd1+4], %r2",
        "atom.add.f64 %fd9, [%rd1], %fd2",
        "atom.global.acq_rel.gpu.cas.b64 %rd9, [%rd1], %rd2, %rd3",
        "atom.global.exch.b32 _, [%rd1], %r2",
        "red.global.max.s64 [%rd1], %rd2",
        "red.add.u32 [%rd1], %r2",
        "atom.shared.inc.u32 %r9, [s+4], %r1",
        "@%p1 atom.shared.add.f32 %f9, [s], %f1",
        "atom.shared.min.u64 %rd9, [%rd1], %rd2",
        "red.shared.add.f64 [s+8], %fd1",
        "atom.shared.cas.b32 %r9, [%r1], %r2, %r3",
        "ld.global.nc.L1::no_allocate.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16]",
        "@%p1 ld.acquire.gpu.global.v2.u64 {%rd5, %rd6}, [%rd1]",
        "st.release.sys.global.u32 [%rd1], %r1",
        "@!%p1 st.volatile.shared.v4.u16 [s], {%rs1, %rs2, %rs3, %rs4}",
        "st.local.u32 [l+4], %r1; mov.u64 %rd5, l; cvta.local.u64 %rd6, %rd5; ld.u8 %r9, [%rd6]",
        "mov.u64 %rd5, s; cvta.shared.u64 %rd6, %rd5; cvta.to.shared.u64 %rd7, %rd6; ld.shared.f64 %fd9, [%rd7]",
        "ld.global.u32 %r9, [g+4]; mov.u64 %rd5, g; st.global.u64 [%rd5], %rd1",
        "ld.const.v2.f32 {%f1, %f2}, [c+8]; ld.const.u32 %r9, [%rd1]",
        "mov.u32 %r9, %laneid; mov.u64 %rd9, %clock64; mov.u32 %r8, %nctaid.z; mov.u32 %r7, %ctaid.z",
        "@%p1 trap",
    ];

    /// The effects of these operations cannot be checked with a single thread. So only their form is checked, on every
    /// generation.
    #[test]
    fn memory_and_warp_operations_are_well_formed() {
        for sm in [75, 80, 86, 90] {
            for text in STATEMENTS {
                let head = "param u64 p; param u32 q; shared 64 s; local 16 l; global 64 g; const 64 c
                    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [q]; setp.eq.u32 %p1, %r1, 1";
                let func =
                    match Sample::new(&format!("{head}\n{text}\nst.global.u32 [%rd1], %r9; ret")).build(sm) {
                        Ok(func) => func,
                        Err(e) => panic!("sm_{sm} {text}: {e}"),
                    };
                if let Err(errors) = verify(&func, Stage::Built) {
                    panic!("sm_{sm} {text}: {}\n{}", errors[0], text::print(&func));
                }
            }
        }
    }

    /// The front end accepts predicates among the registers of a vector, as ptxas does.
    #[test]
    fn predicates_in_vectors_are_refused() {
        let sample = Sample::new(&format!("{HEAD}\nst.global.v2.b32 [%rd1], {{%r1, %p1}}\nret"));
        let error = sample.build(90).unwrap_err();
        assert_eq!(error.to_string(), "not supported yet: st: a predicate in a vector");
    }

    /// Operands of the wrong kind or number give errors.
    #[test]
    fn malformed_operands_never_panic() {
        use crate::input::{Address, AddressBase, LabelId, Operand, RegId, Stmt, Symbol};
        let arithmetic = [
            "add.cc.u64 %rd9, %rd1, %rd2; mad.wide.u32 %rd9, %r1, %r2, %rd3; div.s64 %rd9, %rd1, %rd2",
            "div.rn.f64 %fd9, %fd1, %fd2; sqrt.rn.f32 %f9, %f1; cvt.rzi.s8.f32 %r9, %f1; cvt.sat.u8.s64 %r9, %rd1",
            "mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd1, {%r1, %r2}; mov.b32 {%rs1, %rs2}, %r1; selp.u64 %rd9, %rd1, %rd2, %p1",
            "lop3.b32 %r9, %r1, %r2, %r3, 128; bfi.b64 %rd9, %rd1, %rd2, %r1, %r2; set.lt.u32.f32 %r9, %f1, %f2",
            ".branchtargets end, top; top: ; brx.idx %r1, $0; end:",
        ];
        let bases = [
            AddressBase::Reg(RegId(0)),
            AddressBase::Reg(RegId(1)),
            AddressBase::Symbol(Symbol::Local(0)),
            AddressBase::Symbol(Symbol::Local(1)),
            AddressBase::Symbol(Symbol::Global(1)),
            AddressBase::Symbol(Symbol::Param(0)),
            AddressBase::Absolute,
        ];
        let addresses = bases.into_iter().flat_map(|base| {
            [i64::MIN, i64::MAX, 1 << 23].map(|offset| Operand::Address(Address { base, offset }))
        });
        let addresses: Vec<Operand> = addresses.collect();
        for text in STATEMENTS.iter().chain(&arithmetic) {
            let sample = Sample::new(&format!("{HEAD}\n{text}\nret"));
            for at in 0..sample.func.body.len() {
                let Stmt::Instr(instr) = &sample.func.body[at] else { continue };
                for operand in 0..=instr.operands.len() {
                    let wrong = [
                        Operand::Reg(RegId(0)),
                        Operand::Reg(RegId(2)),
                        Operand::Reg(RegId(99)),
                        Operand::NotPred(RegId(0)),
                        Operand::Int(-1),
                        Operand::F64(u64::MAX),
                        Operand::Symbol(Symbol::Global(77), i64::MIN),
                        Operand::Symbol(Symbol::Local(0), 5),
                        Operand::Label(LabelId(99)),
                        Operand::Targets(7),
                        Operand::Sink,
                        Operand::Vector(Box::default()),
                        Operand::Vector(vec![Operand::Reg(RegId(1)); 9].into()),
                        Operand::Pair(Box::new((Operand::Sink, Operand::Int(3)))),
                    ];
                    for replacement in wrong.iter().chain(&addresses).cloned() {
                        let mut broken = Sample::new(&format!("{HEAD}\n{text}\nret"));
                        let Stmt::Instr(instr) = &mut broken.func.body[at] else { continue };
                        match instr.operands.get_mut(operand) {
                            Some(slot) => *slot = replacement,
                            None => drop(instr.operands.pop()),
                        }
                        let _ = broken.build(90);
                    }
                }
            }
        }
    }
}
