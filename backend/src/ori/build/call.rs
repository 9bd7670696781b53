//! Calls, and what functions take and give: parameters as words in registers or on the stack.
//!
//! Parameters of calls (`.param` variables of a body) and results are words of SSA form, never memory: what a body
//! stores to one and loads from it are parts of these words. Only a function's own parameters may have addresses.

use super::operand::{known, registers};
use super::ssa::Variable;
use super::symbol::STACK;
use super::{Lowering, Result, Statement, shape};
use crate::CodegenError;
use crate::abi::{self, ArgumentPlace, Convention, Preserved, Results};
use crate::driver::DriverFunction;
use crate::input::{Linkage, Operand, Param, Signature, SrcId, Stmt, Symbol};
use crate::layout::{self, Slot};
use crate::ori::ir::{BlockId, Dst, File, Inst, Src, SrcKind, Term};
use crate::ori::op::{Callee, MemSize, Op};
use crate::target::Target;
use ptx_isa::{FormId, ScalarType, Space};
use smallvec::SmallVec;

/// Bytes of one parameter of a function. PTX has no limit; each four are a value of the IR.
const MOST_BYTES: u32 = 1 << 16;

/// The parts of a call.
struct Parts<'a> {
    returns: &'a [Operand],
    target: &'a Operand,
    arguments: &'a [Operand],
    prototype: Option<&'a Signature>,
}

impl<'a> Lowering<'a> {
    fn parts(&self, instr: &Statement<'a>) -> Result<Parts<'a>> {
        // All threads of the warp may call together: nothing is made of it. The operands are taken here.
        instr.take_all();
        let operands = instr.peek_operands();
        let (returns, rest) = match operands {
            [Operand::List(returns), rest @ ..] => (&returns[..], rest),
            rest => (&[][..], rest),
        };
        let Some((target, rest)) = rest.split_first() else {
            return self.malformed("a call without a target");
        };
        let (arguments, rest) = match rest {
            [Operand::List(arguments), rest @ ..] => (&arguments[..], rest),
            rest => (&[][..], rest),
        };
        let prototype = match rest {
            [] => None,
            [Operand::Prototype(prototype)] => Some(&**prototype),
            _ => return self.unsupported(instr, "a call with a list of targets"),
        };
        Ok(Parts { returns, target, arguments, prototype })
    }

    /// `call`.
    pub(super) fn call(&mut self, instr: &Statement<'a>) -> Result<()> {
        let parts = self.parts(instr)?;
        self.branch_around(|lowering| lowering.call_always(instr, &parts))
    }

    fn call_always(&mut self, instr: &Statement<'a>, parts: &Parts<'a>) -> Result<()> {
        let env = self.env;
        let (signature, direct) = match *parts.target {
            Operand::Symbol(Symbol::Function(i), 0) => match env.functions.get(i as usize) {
                Some(signature) => (signature, Some(i)),
                None => return self.malformed(format!("function {i} does not exist")),
            },
            _ => match parts.prototype {
                Some(prototype) => (prototype, None),
                None => return self.unsupported(instr, "a call by address without a prototype"),
            },
        };
        let preserved = if self.relocatable { signature.preserved } else { Preserved::default() };
        let convention = self.convention(&signature.params, &signature.returns, preserved)?;
        let (formals, given) = (signature.params.len(), parts.arguments.len());
        let open = signature.params.last().is_some_and(abi::is_open);
        if given != formals && !(open && given + 1 == formals)
            || signature.returns.len() != parts.returns.len()
        {
            return self.malformed("a call with another number of arguments than the declaration has");
        }
        let watches = match direct {
            None => self.env.pointees_watch,
            Some(_) if signature.is_of_driver() => signature.is_malloc(),
            Some(_) => signature.watches,
        };
        self.out.facts.callees_never_watch &= !watches;
        let mut target: SmallVec<[Src; 1]> = SmallVec::new();
        let op = match direct {
            Some(_)
                if signature.linkage == Linkage::Extern && !signature.is_of_driver() && !self.relocatable =>
            {
                return self.unsupported(instr, &format!("the external function '{}'", signature.name));
            }
            Some(i) if signature.is_of_driver() && !self.relocatable => {
                target.push(self.function_slot(Slot::Function(i))?);
                Op::CallTo { absolute: true, preserved }
            }
            Some(function) if let Some(known) = signature.known => {
                if !self.out.facts.known.iter().any(|(other, _)| *other == function) {
                    self.out.facts.known.push((function, known));
                }
                Op::Call { callee: Callee { function, waits: signature.waits, preserved } }
            }
            Some(function) => {
                if signature.name == self.out.name {
                    self.out.facts.itself = Some(function);
                }
                Op::Call { callee: Callee { function, waits: signature.waits, preserved } }
            }
            None => {
                let address = self.read(parts.target, ScalarType::U64)?;
                target.push(if self.relocatable { address } else { self.call_target(address) });
                Op::CallTo { absolute: false, preserved }
            }
        };
        let mut arguments = Vec::with_capacity(given);
        for (param, operand) in signature.params.iter().zip(parts.arguments) {
            arguments.push(self.argument(operand, param)?);
        }
        let results = self.transfer((op, &target), &convention, &signature.returns, arguments);
        for ((operand, param), words) in parts.returns.iter().zip(&signature.returns).zip(results) {
            self.take_result(operand, param, &words)?;
        }
        Ok(())
    }

    /// Calls a function with words for its parameters, and gives the words of its results.
    pub(super) fn transfer(
        &mut self,
        (op, target): (Op, &[Src]),
        convention: &Convention,
        returns: &[Param],
        arguments: Vec<Vec<Src>>,
    ) -> Vec<Vec<Src>> {
        let mut passed: Vec<(u8, Src)> = Vec::new();
        if let Results::Memory { .. } = convention.results {
            let start = self.results_at;
            let end = self.stack_end();
            passed.push((abi::FIRST, self.offset_from(end, start)));
        }
        for (place, words) in convention.params.iter().zip(arguments) {
            match *place {
                ArgumentPlace::Registers(first) => {
                    let given = words.iter().enumerate().filter(|(_, word)| word.kind != SrcKind::Undef);
                    passed.extend(given.map(|(i, word)| (first + i as u8, *word)));
                }
                ArgumentPlace::Stack(start) => {
                    self.out.frame.uses_stack = true;
                    let end = self.stack_end();
                    for (i, word) in words.into_iter().enumerate() {
                        let op = Op::Stl { size: MemSize::B32, offset: (start + 4 * i as u32) as i32 };
                        self.effect(op, &[end, word]);
                    }
                }
            }
        }
        let mut srcs: SmallVec<[Src; 16]> = SmallVec::from_slice(target);
        let end = self.stack_end();
        if self.out.frame.moving {
            passed.push((abi::STACK_END, end));
        }
        for (register, word) in passed {
            srcs.push(self.fix_into(register, word));
        }
        let mut dsts: SmallVec<[Dst; 16]> = SmallVec::new();
        let mut results: Vec<Vec<Src>> = vec![Vec::new(); returns.len()];
        if let Results::Registers(first) = &convention.results {
            for ((result, first), words) in returns.iter().zip(first).zip(&mut results) {
                for i in 0..abi::words(result) as u8 {
                    let value = self.out.new_pinned(first + i);
                    dsts.push(Dst::Value(value));
                    words.push(value.into());
                }
            }
        }
        if self.out.frame.moving {
            dsts.push(Dst::Value(self.out.new_pinned(abi::FRAME)));
        }
        self.push(Inst::new(op, &dsts, &srcs, self.src));
        for word in results.iter_mut().flatten() {
            *word = self.reg(Op::Fix, &[*word]);
        }
        if let Results::Memory { starts, .. } = &convention.results {
            for ((result, start), words) in returns.iter().zip(starts).zip(&mut results) {
                for i in 0..abi::words(result) {
                    let offset = (self.results_at + start + 4 * i) as i32;
                    words.push(self.reg(Op::Ldl { size: MemSize::B32, offset }, &[end]));
                }
            }
        }
        results
    }

    fn convention(&self, params: &[Param], returns: &[Param], preserved: Preserved) -> Result<Convention> {
        if params.iter().chain(returns).any(|param| param.size > MOST_BYTES) {
            return Err(CodegenError::unsupported(self.src, "a parameter of more than 64 KB"));
        }
        preserved.convention(params, returns).ok_or_else(|| no_place(self.src))
    }

    /// A copy in a register of the calling convention.
    fn fix_into(&mut self, register: u8, word: Src) -> Src {
        let value = self.out.new_pinned(register);
        self.push(Inst::new(Op::Fix, &[Dst::Value(value)], &[word], self.src));
        value.into()
    }

    /// The address of a function of the driver.
    fn function_slot(&mut self, slot: Slot) -> Result<Src> {
        let Some(offset) = layout::address_slot(self.env, slot) else {
            let what = "more addresses than constant bank 4 has room for".into();
            return Err(CodegenError::Limit { at: self.src, what });
        };
        if !self.out.facts.symbols.contains(&slot) {
            self.out.facts.symbols.push(slot);
        }
        let bank = layout::ADDRESS_BANK;
        Ok(self.wide(2, Op::Ldc { size: MemSize::B64, bank, offset: offset.into() }, &[Src::ZERO]))
    }

    /// Calls a function of the driver; the words of its results.
    pub(super) fn call_driver(
        &mut self,
        function: DriverFunction,
        arguments: Vec<Vec<Src>>,
    ) -> Result<Vec<Vec<Src>>> {
        let (convention, returns) = (function.convention(), function.returns());
        if self.relocatable {
            let call = (Op::CallDriver { function }, &[][..]);
            return Ok(self.transfer(call, &convention, &returns, arguments));
        }
        let slot = self.function_slot(Slot::Driver(function))?;
        let call = (Op::CallTo { absolute: true, preserved: Preserved::default() }, &[slot][..]);
        Ok(self.transfer(call, &convention, &returns, arguments))
    }

    /// Where the function that an address stands for begins: addresses count through a table of the kernel's own.
    fn call_target(&mut self, address: Src) -> Src {
        let index = self.part(address, 0);
        let bank = layout::FUNCTION_BANK;
        let (index, offset) = match known(index) {
            Some(at) if at < 0x8000 => (Src::ZERO, at as i32),
            _ => (index, 0),
        };
        self.wide(2, Op::Ldc { size: MemSize::B64, bank, offset }, &[index])
    }

    /// What an operand passes for a parameter.
    fn argument(&mut self, operand: &Operand, param: &Param) -> Result<Vec<Src>> {
        if let Operand::Symbol(symbol @ Symbol::Local(_), 0) = *operand
            && self.is_parameter(symbol)
        {
            let count = if abi::is_open(param) { open_words(self.func, operand) } else { abi::words(param) };
            return Ok((0..count).map(|i| self.read_word(symbol, i)).collect());
        }
        if let Operand::Vector(elements) = operand {
            let parts = elements.iter().map(|e| self.read(e, param.ty)).collect::<Result<Vec<Src>>>()?;
            return Ok(self.elements_packed(parts, param.ty.bits()));
        }
        let bits = match (param.ty, param.size) {
            (ScalarType::Pred, _) => return self.predicate_argument(operand),
            (ty, size) if ty.bytes() == size => ty,
            (_, 1) => ScalarType::B8,
            (_, 2) => ScalarType::B16,
            (_, 4) => ScalarType::B32,
            (_, 8) => ScalarType::B64,
            _ => return self.malformed("an argument of no size that registers have"),
        };
        let value = self.read(operand, bits)?;
        let width = registers(bits);
        Ok((0..width).map(|i| self.word(value, i, width)).collect())
    }

    /// A predicate travels as an integer.
    fn predicate_argument(&mut self, operand: &Operand) -> Result<Vec<Src>> {
        let predicate = self.read(operand, ScalarType::Pred)?;
        Ok(vec![self.select(predicate, Src::imm(1), Src::ZERO, 1)])
    }

    /// Gives the words of a result to where the call wants them.
    fn take_result(&mut self, operand: &Operand, param: &Param, words: &[Src]) -> Result<()> {
        match *operand {
            Operand::Symbol(symbol @ Symbol::Local(_), 0) if self.is_parameter(symbol) => {
                for (i, word) in words.iter().enumerate() {
                    let variable = self.word_variable(symbol, i as u32);
                    self.write_variable(variable, *word);
                }
                Ok(())
            }
            Operand::Sink => Ok(()),
            Operand::Reg(_) => {
                let value = self.register_of(param.ty, words);
                self.write(operand, value)
            }
            Operand::Vector(ref elements) => (0..).zip(elements).try_for_each(|(lane, element)| {
                let (op, srcs) = part_of(words, param.ty, lane);
                let value = match op {
                    Op::Prmt => self.reg(op, &srcs),
                    _ if srcs.len() == 1 => srcs[0],
                    _ => self.pack(&srcs),
                };
                self.write(element, value)
            }),
            _ => self.malformed("a call whose result is neither a register nor a vector"),
        }
    }

    /// Words as a register of a type holds them.
    fn register_of(&mut self, ty: ScalarType, words: &[Src]) -> Src {
        match (ty, words) {
            (ScalarType::Pred, [word, ..]) => self.compare(crate::ori::op::ICmp::Ne, false, *word, Src::ZERO),
            (_, [word]) => *word,
            (_, words) => self.pack(words),
        }
    }

    // Words of parameters.

    /// A parameter of a call, or a result.
    pub(super) fn is_parameter(&self, symbol: Symbol) -> bool {
        match symbol {
            Symbol::Local(i) => self.func.locals.get(i as usize).is_some_and(|v| v.space == Space::Param),
            Symbol::Return(_) => true,
            Symbol::Param(i) => {
                let place = self.convention.params.get(i as usize);
                !self.func.entry
                    && matches!(place, Some(ArgumentPlace::Registers(_)))
                    && !self.in_memory.contains_key(&i)
            }
            Symbol::Global(_) | Symbol::Function(_) => false,
        }
    }

    /// Bytes of a parameter.
    fn parameter_bytes(&self, symbol: Symbol) -> u64 {
        let bytes = |params: &[Param], i: u32| params.get(i as usize).map_or(0, |p| u64::from(p.size));
        match symbol {
            Symbol::Local(i) => self.func.locals.get(i as usize).map_or(0, |v| v.size),
            Symbol::Param(i) => bytes(&self.func.params, i),
            Symbol::Return(i) => bytes(&self.func.returns, i),
            Symbol::Global(_) | Symbol::Function(_) => 0,
        }
    }

    fn word_variable(&mut self, symbol: Symbol, word: u32) -> Variable {
        if let Some(variable) = self.words.get(&(symbol, word)) {
            return *variable;
        }
        let variable = self.temporary(File::R, 1);
        self.words.insert((symbol, word), variable);
        variable
    }

    fn read_word(&mut self, symbol: Symbol, word: u32) -> Src {
        let variable = self.word_variable(symbol, word);
        self.read_variable(variable)
    }

    /// Whether so many bytes from an offset on are in a parameter.
    fn in_parameter(&self, symbol: Symbol, offset: i64, bytes: u32) -> Result<u32> {
        let size = self.parameter_bytes(symbol).min(MOST_BYTES.into()) as i64;
        match u32::try_from(offset) {
            Ok(start) if offset + i64::from(bytes) <= size && start.is_multiple_of(bytes.min(4)) => Ok(start),
            _ => Err(CodegenError::unsupported(self.src, "an access that is not inside its parameter")),
        }
    }

    /// An element of a parameter, as `ty` has it in registers.
    pub(super) fn parameter_element(&mut self, symbol: Symbol, offset: i64, ty: ScalarType) -> Result<Src> {
        let start = self.in_parameter(symbol, offset, ty.bytes())?;
        if ty.bits() >= 32 {
            let words: Vec<Src> =
                (0..registers(ty)).map(|i| self.read_word(symbol, start / 4 + u32::from(i))).collect();
            return Ok(if let [word] = words[..] { word } else { self.pack(&words) });
        }
        let word = self.read_word(symbol, start / 4);
        let shifted = self.shift_right_by(word, Src::imm(start % 4 * 8), false);
        Ok(self.extend(shifted, ty))
    }

    /// Stores an element to a parameter under the statement's guard.
    pub(super) fn set_parameter(
        &mut self,
        symbol: Symbol,
        offset: i64,
        ty: ScalarType,
        value: Src,
    ) -> Result<()> {
        let start = self.in_parameter(symbol, offset, ty.bytes())?;
        let width = registers(ty);
        for i in 0..width {
            let mut word = self.word(value, i, width);
            let variable = self.word_variable(symbol, start / 4 + u32::from(i));
            if ty.bits() < 32 && self.parameter_bytes(symbol) > ty.bytes().into() {
                let old = self.read_variable(variable);
                word = self.put_bytes(old, word, start % 4, ty.bytes());
            }
            if !self.guard.is_true() {
                let old = self.read_variable(variable);
                word = if old.kind == SrcKind::Undef { word } else { self.select(self.guard, word, old, 1) };
            }
            self.write_variable(variable, word);
        }
        Ok(())
    }

    /// `old` with one or two bytes of `new` from byte `at` on.
    fn put_bytes(&mut self, old: Src, new: Src, at: u32, bytes: u32) -> Src {
        let old = if old.kind == SrcKind::Undef { Src::ZERO } else { old };
        // Nibbles 0 to 3 take bytes of the first operand, 4 to 7 of the last.
        let byte = |i: u32| if (at..at + bytes).contains(&i) { i - at } else { 4 + i };
        let selector = (0..4).fold(0, |all, i| all | byte(i) << (4 * i));
        self.reg(Op::Prmt, &[new, Src::imm(selector), old])
    }

    // The function itself.

    /// Takes what the caller passes, in the entry block.
    pub(super) fn enter(&mut self, entry: BlockId) -> Result<()> {
        if self.func.entry {
            self.begin_stack(entry);
            return Ok(());
        }
        let mut dsts = Vec::new();
        let mut copies = Vec::new();
        let mut take = |lowering: &mut Self, register: u8| {
            let pinned = lowering.out.new_pinned(register);
            let value = lowering.new_value(File::R, 1);
            let end = &mut lowering.out.facts.arguments_end;
            *end = (*end).max(register + 1);
            dsts.push(Dst::Value(pinned));
            copies.push(Inst::new(Op::Fix, &[Dst::Value(value)], &[pinned.into()], lowering.src));
            Src::from(value)
        };
        if let Results::Memory { .. } = self.convention.results {
            self.result_address = Some(take(self, abi::FIRST));
        }
        let func = self.func;
        let mut words = Vec::new();
        for (i, (param, place)) in func.params.iter().zip(self.convention.params.clone()).enumerate() {
            let ArgumentPlace::Registers(first) = place else { continue };
            let taken: Vec<Src> = (0..abi::words(param) as u8).map(|w| take(self, first + w)).collect();
            words.push((i as u32, param, taken));
        }
        self.prologue.push(Inst::new(Op::Params, &dsts, &[], self.src));
        self.prologue.append(&mut copies);
        self.begin_stack(entry);
        for (i, param, taken) in words {
            if let Some(&start) = self.in_memory.get(&i) {
                self.out.frame.uses_stack = true;
                for (w, word) in (0..).zip(&taken) {
                    // No statement asks for it: the frame holds what the caller passed in a register.
                    let op = Op::Spill { size: MemSize::B32, offset: (start + 4 * w) as i32 };
                    self.prologue.push(Inst::new(op, &[], &[STACK, *word], self.src));
                }
            }
            for (w, word) in (0..).zip(&taken) {
                let variable = self.word_variable(Symbol::Param(i), w);
                self.ssa.write(entry, variable, *word);
            }
            for (lane, reg) in (0..).zip(param.registers()) {
                let value = self.entry_register(param.ty, &taken, lane);
                self.ssa.write(entry, Variable::Reg(reg), value);
            }
        }
        Ok(())
    }

    /// An element of a parameter that is registers of the body, made in the entry block.
    fn entry_register(&mut self, ty: ScalarType, words: &[Src], lane: u32) -> Src {
        if ty == ScalarType::Pred {
            use crate::ori::op::{Bool, ICmp, Sign};
            let op = Op::Isetp { cmp: ICmp::Ne, sign: Sign::U32, bool_: Bool::And, ex: false };
            let value = self.new_value(File::P, 1);
            let dsts = [Dst::Value(value), Dst::Sink];
            self.prologue.push(Inst::new(op, &dsts, &[words[0], Src::ZERO, Src::TRUE], self.src));
            return value.into();
        }
        let (op, srcs) = part_of(words, ty, lane);
        if srcs.len() == 1 {
            return srcs[0];
        }
        let width = if op == Op::Pack { srcs.len() as u8 } else { 1 };
        let value = self.new_value(File::R, width);
        self.prologue.push(Inst::new(op, &[Dst::Value(value)], &srcs, self.src));
        value.into()
    }

    /// Gives the results back, at the end of the function.
    fn give_results(&mut self) -> Result<()> {
        let func = self.func;
        let mut srcs: SmallVec<[Src; 12]> = SmallVec::new();
        match self.convention.results.clone() {
            Results::Registers(places) => {
                let mut given: Vec<(u8, Src)> = Vec::new();
                for (i, (result, first)) in func.returns.iter().zip(places).enumerate() {
                    let words = self.given_words(i as u32, result)?;
                    given.extend((first..).zip(words));
                }
                for (register, word) in given.into_iter().filter(|(_, word)| word.kind != SrcKind::Undef) {
                    srcs.push(self.fix_into(register, word));
                }
            }
            Results::Memory { starts, .. } => {
                let Some(address) = self.result_address else {
                    return self.malformed("no place for the results");
                };
                for (i, (result, start)) in func.returns.iter().zip(starts).enumerate() {
                    let words = self.given_words(i as u32, result)?;
                    // Other objects may have no more than the result says.
                    let align = if self.relocatable { result.align } else { 4 };
                    for (at, word) in (0..).step_by(4).zip(words) {
                        if word.kind != SrcKind::Undef {
                            let bytes = result.size.max(4) - at;
                            self.give_word(address, start + at, word, bytes.min(4), align);
                        }
                    }
                }
            }
        }
        self.push(Inst::new(Op::Results, &[], &srcs, self.src));
        Ok(())
    }

    /// Stores some bytes of a word of a result where the caller wants it, which has this alignment.
    fn give_word(&mut self, address: Src, start: u32, word: Src, bytes: u32, align: u32) {
        let mut at = 0;
        while at < bytes {
            let left = bytes - at;
            let (size, width) = match align {
                4.. if left >= 4 => (MemSize::B32, 4),
                2.. if left >= 2 => (MemSize::U16, 2),
                _ => (MemSize::U8, 1),
            };
            let part = if at == 0 { word } else { self.shift_right_by(word, Src::imm(8 * at), false) };
            self.effect(Op::Stl { size, offset: (start + at) as i32 }, &[address, part]);
            at += width;
        }
    }

    /// Ends the block by going back to the caller; a kernel's thread ends.
    pub(super) fn return_to_caller(&mut self) -> Result<()> {
        if self.func.entry {
            self.exit();
            return Ok(());
        }
        let is_return = |stmt: &&Stmt| matches!(stmt, Stmt::Instr(instr) if instr.opcode.form == FormId::Ret);
        let returns = self.func.body.iter().filter(is_return).count() as u32;
        if returns <= 1 {
            return self.leave();
        }
        // Control may come to the end of the function too.
        let back = self.way_back.unwrap_or_else(|| self.new_block(returns + 1));
        self.way_back = Some(back);
        self.end(Term::Jump(back));
        Ok(())
    }

    /// Gives the results back where all ways to the end of the function meet.
    pub(super) fn go_back(&mut self) -> Result<()> {
        let Some(back) = self.way_back else { return Ok(()) };
        let (func, temporaries) = (self.func, &self.temporaries);
        self.ssa.close(&mut self.out, &|v| shape(func, temporaries, v));
        self.start(back);
        self.leave()
    }

    fn leave(&mut self) -> Result<()> {
        self.guard = Src::TRUE;
        self.give_results()?;
        self.end(Term::Ret);
        Ok(())
    }

    fn given_words(&mut self, index: u32, result: &Param) -> Result<Vec<Src>> {
        let Some(reg) = result.reg else {
            return Ok((0..abi::words(result)).map(|i| self.read_word(Symbol::Return(index), i)).collect());
        };
        if result.ty == ScalarType::Pred {
            let value = self.read_register(reg)?;
            return Ok(vec![self.select(value, Src::imm(1), Src::ZERO, 1)]);
        }
        let parts = result.registers().map(|reg| self.read_register(reg)).collect::<Result<Vec<Src>>>()?;
        if let [value] = parts[..] {
            let width = registers(result.ty);
            return Ok((0..width).map(|i| self.word(value, i, width)).collect());
        }
        Ok(self.elements_packed(parts, result.ty.bits()))
    }

    /// Where what the caller passes on the stack begins.
    pub(super) fn incoming(&mut self) -> Src {
        if let Some(top) = self.frame_top {
            return top.into();
        }
        self.out.frame.uses_stack = true;
        let top = self.new_value(File::R, 1);
        self.prologue.push(Inst::new(Op::FrameTop, &[Dst::Value(top)], &[], self.src));
        self.frame_top = Some(top);
        top.into()
    }
}

/// The operation that takes an element out of a parameter's words, with its sources. A `Pack` of one source is that word.
/// A short element of a vector is extended with zeros; above a short scalar is whatever the word has.
fn part_of(words: &[Src], ty: ScalarType, lane: u32) -> (Op, SmallVec<[Src; 4]>) {
    let bits = ty.bits();
    let first = (lane * bits / 32) as usize;
    let given = words.get(first).copied().unwrap_or(Src::ZERO);
    let at = lane * bits % 32 / 8;
    match bits {
        8 => (Op::Prmt, SmallVec::from_slice(&[given, Src::imm(0x4440 | at), Src::ZERO])),
        16 => (Op::Prmt, SmallVec::from_slice(&[given, Src::imm(0x4410 + 0x11 * at), Src::ZERO])),
        _ => (Op::Pack, words.iter().skip(first).take((bits / 32) as usize).copied().collect()),
    }
}

/// Parameters or results of a function with `.abi_preserve` whose place is not known.
pub(super) fn no_place(at: SrcId) -> CodegenError {
    CodegenError::unsupported(
        at,
        "parameters or results that `.abi_preserve` leaves no registers for below R16",
    )
}

/// Bytes that a call passes for a parameter of open length.
fn open_bytes(func: &crate::input::Function, signature: &Signature, instr: &crate::input::Instr) -> u32 {
    if !signature.params.last().is_some_and(abi::is_open) {
        return 0;
    }
    let lists =
        instr.operands.iter().skip_while(|operand| !matches!(operand, Operand::Symbol(..) | Operand::Reg(_)));
    let arguments = lists.skip(1).find_map(|operand| match operand {
        Operand::List(arguments) => Some(&arguments[..]),
        _ => None,
    });
    let last =
        arguments.filter(|arguments| arguments.len() == signature.params.len()).and_then(|all| all.last());
    last.map_or(0, |operand| 4 * open_words(func, operand))
}

/// The words of an argument for a parameter of open length.
fn open_words(func: &crate::input::Function, operand: &Operand) -> u32 {
    let size = match *operand {
        Operand::Symbol(Symbol::Local(i), 0) => {
            func.locals.get(i as usize).map_or(0, |variable| variable.size)
        }
        _ => 0,
    };
    u32::try_from(size.min(MOST_BYTES.into())).unwrap_or(MOST_BYTES).div_ceil(4)
}

/// What the calls of a function need of its frame: bytes of parameters, and of large results after them.
pub(super) struct Outgoing {
    pub(super) params: u32,
    pub(super) results: u32,
    /// The largest alignment of these, zero without any: functions rely on a stack pointer that is a multiple of it.
    pub(super) align: u32,
}

pub(super) fn outgoing(env: &crate::input::Env, func: &crate::input::Function, target: &Target) -> Outgoing {
    let (mut params, mut results, mut align) = (0, 0, 0);
    for stmt in &func.body {
        let crate::input::Stmt::Instr(instr) = stmt else { continue };
        if instr.opcode.form != ptx_isa::FormId::Call {
            let called = DriverFunction::of(env, target, instr);
            params = params.max(called.map_or(0, |function| function.convention().stack_bytes));
            continue;
        }
        let signature = instr.operands.iter().find_map(|operand| match operand {
            Operand::Symbol(Symbol::Function(i), 0) => env.functions.get(*i as usize),
            Operand::Prototype(prototype) => Some(&**prototype),
            _ => None,
        });
        let Some(signature) = signature else { continue };
        let convention = abi::convention(&signature.params, &signature.returns);
        params = params.max(convention.stack_bytes.saturating_add(open_bytes(func, signature, instr)));
        let on_stack = convention.params.iter().zip(&signature.params);
        let on_stack = on_stack.filter(|(place, _)| matches!(place, ArgumentPlace::Stack(_)));
        align = on_stack.fold(align, |most, (_, param)| most.max(param.align));
        if let Results::Memory { bytes, .. } = convention.results {
            results = results.max(bytes);
            align = signature.returns.iter().fold(align, |most, result| most.max(result.align));
        }
    }
    let rounded = |bytes: u32| bytes.next_multiple_of(align.max(16));
    Outgoing { params: rounded(params), results: rounded(results), align }
}

/// The parameters of a function whose addresses its body uses otherwise than by loads at known places.
pub(super) fn with_addresses(func: &crate::input::Function) -> Vec<u32> {
    let mut found = Vec::new();
    for stmt in &func.body {
        let crate::input::Stmt::Instr(instr) = stmt else { continue };
        for operand in &instr.operands {
            if let Operand::Symbol(Symbol::Param(i), _) = operand
                && !found.contains(i)
            {
                found.push(*i);
            }
        }
    }
    found
}

/// The alignment of the stack pointer that the callees of a function need, if it has any. Functions of the module need
/// `kept` bytes.
pub(super) fn callees_align(
    env: &crate::input::Env,
    func: &crate::input::Function,
    target: &Target,
    kept: u32,
) -> Option<u32> {
    let asked = |stmt: &crate::input::Stmt| {
        let Stmt::Instr(instr) = stmt else { return None };
        if instr.opcode.form != FormId::Call {
            return DriverFunction::of(env, target, instr).map(|_| abi::STACK_ALIGN);
        }
        let callee = instr.operands.iter().find_map(|operand| match operand {
            Operand::Symbol(Symbol::Function(i), 0) => env.functions.get(*i as usize),
            _ => None,
        });
        Some(if callee.is_some_and(Signature::is_of_driver) { abi::STACK_ALIGN } else { kept })
    };
    func.body.iter().filter_map(asked).max()
}
