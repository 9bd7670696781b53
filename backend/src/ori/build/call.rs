//! Calls, and the parameters and results of functions: words in registers or on the stack.
//!
//! Parameters of calls (`.param` variables of a body) and results are words in SSA form, never memory. A store to such
//! a parameter or a load from it accesses parts of these words. Only a function's own parameters may have addresses.

use super::operand::{known, registers};
use super::ssa::Variable;
use super::symbol::STACK;
use super::{Lowering, Result, Statement, shape};
use crate::CodegenError;
use crate::abi::{self, ArgumentPlace, Convention, Preserved, Results};
use crate::calls::call_of;
use crate::driver::DriverFunction;
use crate::input::{Linkage, Operand, Param, Signature, SrcId, Stmt, Symbol};
use crate::layout::{self, Slot};
use crate::ori::ir::{BlockId, Dst, File, Inst, Src, SrcKind, Term};
use crate::ori::op::{Callee, MemSize, Op};
use crate::target::Target;
use ptx_isa::{FormId, ScalarType, Space};
use smallvec::SmallVec;

/// The maximum number of bytes of one parameter of a function: the local memory of a thread has no more. PTX has no
/// limit, but each four bytes are a value of the IR.
const MOST_BYTES: u32 = 1 << 19;

/// The parts of a call.
struct Parts<'a> {
    returns: &'a [Operand],
    target: &'a Operand,
    arguments: &'a [Operand],
    prototype: Option<&'a Signature>,
}

impl<'a> Lowering<'a> {
    fn parts(&self, instr: &Statement<'a>) -> Result<Parts<'a>> {
        // `take_all` takes the operands, and also `.uni`, which is not used: it states that all threads call together.
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
        let preserved = if self.linking.is_object() { signature.preserved } else { Preserved::default() };
        let convention = self.convention(&signature.params, &signature.returns, preserved)?;
        let preserved = if signature.is_of_driver() { self.target.driver_preserves } else { preserved };
        let (formals, given) = (signature.params.len(), parts.arguments.len());
        let open = signature.params.last().is_some_and(abi::is_open);
        if given != formals && !(open && given + 1 == formals)
            || signature.returns.len() != parts.returns.len()
        {
            return self
                .malformed("a call whose number of arguments or results differs from the declaration");
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
                if signature.linkage == Linkage::Extern
                    && !signature.is_of_driver()
                    && !self.linking.is_object() =>
            {
                return self.unsupported(instr, &format!("the external function '{}'", signature.name));
            }
            Some(i) if signature.is_of_driver() && !self.linking.is_object() => {
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
                target.push(if self.linking.is_joined() { self.call_target(address) } else { address });
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

    /// Calls a function. `arguments` has the words of each argument. Returns the words of each result.
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
            return Err(CodegenError::unsupported(self.src, "a parameter of more than 512 KB"));
        }
        preserved.convention(params, returns).ok_or_else(|| no_place(self.src))
    }

    /// Copies a word to a register of the calling convention.
    fn fix_into(&mut self, register: u8, word: Src) -> Src {
        let value = self.out.new_pinned(register);
        self.push(Inst::new(Op::Fix, &[Dst::Value(value)], &[word], self.src));
        value.into()
    }

    /// Loads the address of a driver function.
    fn function_slot(&mut self, slot: Slot) -> Result<Src> {
        let offset = self.address_slot(slot)?;
        let bank = layout::ADDRESS_BANK;
        Ok(self.wide(2, Op::Ldc { size: MemSize::B64, bank, offset: offset.into() }, &[Src::ZERO]))
    }

    /// Calls a driver function. Returns the words of each result.
    pub(super) fn call_driver(
        &mut self,
        function: DriverFunction,
        arguments: Vec<Vec<Src>>,
    ) -> Result<Vec<Vec<Src>>> {
        let (convention, returns) = (function.convention(), function.returns());
        if self.linking.is_object() {
            let call = (Op::CallDriver { function }, &[][..]);
            return Ok(self.transfer(call, &convention, &returns, arguments));
        }
        let slot = self.function_slot(Slot::Driver(function))?;
        let call = (Op::CallTo { absolute: true, preserved: self.target.driver_preserves }, &[slot][..]);
        Ok(self.transfer(call, &convention, &returns, arguments))
    }

    /// Loads the start of the code of a function. In the program, the address of a function is an offset in a table of
    /// the kernel, which holds these starts.
    fn call_target(&mut self, address: Src) -> Src {
        let index = self.part(address, 0);
        let bank = layout::FUNCTION_BANK;
        let (index, offset) = match known(index) {
            Some(at) if at < 0x8000 => (Src::ZERO, at as i32),
            _ => (index, 0),
        };
        self.wide(2, Op::Ldc { size: MemSize::B64, bank, offset }, &[index])
    }

    /// The words that an operand passes for a parameter.
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
            _ => return self.malformed("an argument of a size that no register has"),
        };
        let value = self.read(operand, bits)?;
        let width = registers(bits);
        Ok((0..width).map(|i| self.word(value, i, width)).collect())
    }

    /// A predicate is passed as an integer.
    fn predicate_argument(&mut self, operand: &Operand) -> Result<Vec<Src>> {
        let predicate = self.read(operand, ScalarType::Pred)?;
        Ok(vec![self.select(predicate, Src::imm(1), Src::ZERO, 1)])
    }

    /// Assigns the words of a result to the operand that receives it.
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

    /// Combines words to a value as a register of type `ty` holds it.
    fn register_of(&mut self, ty: ScalarType, words: &[Src]) -> Src {
        match (ty, words) {
            (ScalarType::Pred, [word, ..]) => self.compare(crate::ori::op::ICmp::Ne, false, *word, Src::ZERO),
            (_, [word]) => *word,
            (_, words) => self.pack(words),
        }
    }

    // Words of parameters.

    /// Whether the symbol is represented by words: a parameter of a call, a result of the function, or a parameter of
    /// the function that is passed in registers and is not in the frame.
    pub(super) fn is_parameter(&self, symbol: Symbol) -> bool {
        match symbol {
            Symbol::Local(i) => self.func.locals.get(i as usize).is_some_and(|v| v.space == Space::Param),
            Symbol::Return(_) => !self.in_memory.contains_key(&symbol),
            Symbol::Param(i) => {
                let place = self.convention.params.get(i as usize);
                !self.func.entry
                    && matches!(place, Some(ArgumentPlace::Registers(_)))
                    && !self.in_memory.contains_key(&symbol)
            }
            Symbol::Global(_) | Symbol::Function(_) => false,
        }
    }

    /// The number of bytes of a parameter or result.
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

    /// A word of a parameter. Words outside it have no value.
    fn word_within(&mut self, symbol: Symbol, word: i64) -> Src {
        match self.within(symbol, word) {
            Some(word) => self.read_word(symbol, word),
            None => Src::UNDEF,
        }
    }

    /// The number of a word, if the parameter has it.
    fn within(&self, symbol: Symbol, word: i64) -> Option<u32> {
        let words = self.parameter_bytes(symbol).div_ceil(4);
        u32::try_from(word).ok().filter(|&word| u64::from(word) < words && word <= MOST_BYTES / 4)
    }

    /// The four bytes of a parameter from a byte on.
    fn four_bytes(&mut self, symbol: Symbol, at: i64) -> Src {
        let (word, lane) = (at.div_euclid(4), at.rem_euclid(4) as u32);
        let first = self.word_within(symbol, word);
        if lane == 0 {
            return first;
        }
        let next = self.word_within(symbol, word.saturating_add(1));
        let selector = (0..4).fold(0, |all, i| all | (lane + i) << (4 * i));
        self.reg(Op::Prmt, &[defined(first), Src::imm(selector), defined(next)])
    }

    /// Reads an element of a parameter as a value of type `ty`. Bytes outside the parameter have no value.
    pub(super) fn parameter_element(&mut self, symbol: Symbol, offset: i64, ty: ScalarType) -> Src {
        if ty.bits() >= 32 {
            let words: Vec<Src> = (0..registers(ty))
                .map(|i| self.four_bytes(symbol, offset.saturating_add(4 * i64::from(i))))
                .collect();
            return if let [word] = words[..] { word } else { self.pack(&words) };
        }
        let lane = offset.rem_euclid(4) as u32;
        let value = if lane + ty.bytes() > 4 {
            self.four_bytes(symbol, offset)
        } else {
            let word = self.word_within(symbol, offset.div_euclid(4));
            self.shift_right_by(word, Src::imm(lane * 8), false)
        };
        self.extend(value, ty)
    }

    /// Stores an element to a parameter under the statement's guard. Bytes outside the parameter are not stored.
    pub(super) fn set_parameter(&mut self, symbol: Symbol, offset: i64, ty: ScalarType, value: Src) {
        let (width, bytes) = (registers(ty), i64::from(ty.bytes().min(4)));
        for i in 0..width {
            let new = self.word(value, i, width);
            let start = offset.saturating_add(4 * i64::from(i));
            for word in start.div_euclid(4)..=start.saturating_add(bytes - 1).div_euclid(4) {
                let Some(word) = self.within(symbol, word) else { continue };
                let variable = self.word_variable(symbol, word);
                let at = start - 4 * i64::from(word);
                let is_whole = at == 0 && (bytes == 4 || self.parameter_bytes(symbol) == bytes as u64);
                let mut new = new;
                if !is_whole {
                    let old = self.read_variable(variable);
                    new = self.put_bytes(old, new, at, bytes);
                }
                if !self.guard.is_true() {
                    let old = self.read_variable(variable);
                    new = if old.kind == SrcKind::Undef { new } else { self.select(self.guard, new, old, 1) };
                }
                self.write_variable(variable, new);
            }
        }
    }

    /// `old` with some bytes replaced by those of `new`, whose first byte is byte `at`. It may be before the word.
    fn put_bytes(&mut self, old: Src, new: Src, at: i64, bytes: i64) -> Src {
        // A nibble of 0 to 3 selects a byte of the first operand, 4 to 7 a byte of the last operand.
        let byte = |i: i64| if (at..at + bytes).contains(&i) { i - at } else { 4 + i };
        let selector = (0..4).fold(0, |all, i| all | (byte(i) as u32) << (4 * i));
        self.reg(Op::Prmt, &[defined(new), Src::imm(selector), defined(old)])
    }

    // The function itself.

    /// Receives the arguments from the caller, in the entry block.
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
            if let Some(&start) = self.in_memory.get(&Symbol::Param(i)) {
                self.out.frame.uses_stack = true;
                for (w, word) in (0..).zip(&taken) {
                    // This store belongs to no statement. It puts an argument that is passed in a register into the
                    // frame.
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

    /// Computes an element of a parameter that is declared as registers, in the entry block.
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

    /// Passes the results to the caller, at the end of the function.
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
                    return self.malformed("results in memory without an address");
                };
                for (i, (result, start)) in func.returns.iter().zip(starts).enumerate() {
                    let words = self.given_words(i as u32, result)?;
                    // A caller in another object guarantees only the declared alignment of the result.
                    let align = if self.linking.is_object() { result.align } else { 4 };
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

    /// Stores the first `bytes` bytes of a word of a result to the caller's memory, whose alignment is `align`.
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

    /// Ends the block by a return to the caller. In a kernel, the thread ends.
    pub(super) fn return_to_caller(&mut self) -> Result<()> {
        if self.func.entry {
            self.exit();
            return Ok(());
        }
        let returns = self.func.instrs().filter(|instr| instr.opcode.form == FormId::Ret).count() as u32;
        if returns <= 1 {
            return self.leave();
        }
        // Control may also reach the end of the function without a `ret`.
        let back = self.way_back.unwrap_or_else(|| self.new_block(returns + 1));
        self.way_back = Some(back);
        self.end(Term::Jump(back));
        Ok(())
    }

    /// Returns to the caller from the block in which all returns meet, if there is such a block.
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
        if let Some(&start) = self.in_memory.get(&Symbol::Return(index)) {
            self.out.frame.uses_stack = true;
            let load = |w: u32| Op::Ldl { size: MemSize::B32, offset: (start + 4 * w) as i32 };
            return Ok((0..abi::words(result)).map(|w| self.reg(load(w), &[STACK])).collect());
        }
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

    /// The address of the arguments that the caller passes on the stack.
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

/// A source that an instruction can read: zero for one without a value.
fn defined(src: Src) -> Src {
    if src.kind == SrcKind::Undef { Src::ZERO } else { src }
}

/// The operation that extracts an element from a parameter's words, with its sources. A `Pack` with one source is just
/// that word. An element of 8 or 16 bits is extended with zeros.
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

/// The error for parameters or results that have no registers because of `.abi_preserve`.
pub(super) fn no_place(at: SrcId) -> CodegenError {
    CodegenError::unsupported(
        at,
        "parameters or results that do not fit in the registers below R16, with `.abi_preserve`",
    )
}

/// The number of bytes that a call passes for a parameter of open length.
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

/// The number of words of an argument for a parameter of open length.
fn open_words(func: &crate::input::Function, operand: &Operand) -> u32 {
    let size = match *operand {
        Operand::Symbol(Symbol::Local(i), 0) => {
            func.locals.get(i as usize).map_or(0, |variable| variable.size)
        }
        _ => 0,
    };
    u32::try_from(size.min(MOST_BYTES.into())).unwrap_or(MOST_BYTES).div_ceil(4)
}

/// The space that the calls of a function need in its frame, in bytes: for arguments on the stack, and after them for
/// results that are not returned in registers.
pub(super) struct Outgoing {
    pub(super) params: u32,
    pub(super) results: u32,
    /// The largest alignment of these arguments and results; zero if there are none. The callees rely on a stack
    /// pointer that is a multiple of it.
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

/// The parameters and results of a function whose addresses the body uses, except in accesses at known offsets.
pub(super) fn with_addresses(func: &crate::input::Function) -> Vec<Symbol> {
    let mut found = Vec::new();
    for stmt in &func.body {
        let crate::input::Stmt::Instr(instr) = stmt else { continue };
        for operand in &instr.operands {
            if let Operand::Symbol(symbol @ (Symbol::Param(_) | Symbol::Return(_)), _) = operand
                && !found.contains(symbol)
            {
                found.push(*symbol);
            }
        }
    }
    found
}

/// The alignment of the stack pointer that the callees of a function need; `None` if the function calls nothing.
/// Functions of the module need `kept` bytes.
pub(super) fn callees_align(
    env: &crate::input::Env,
    func: &crate::input::Function,
    target: &Target,
    kept: u32,
) -> Option<u32> {
    let asked = |stmt: &Stmt| {
        let Stmt::Instr(instr) = stmt else { return None };
        if instr.opcode.form != FormId::Call {
            return DriverFunction::of(env, target, instr).map(|_| abi::STACK_ALIGN);
        }
        let callee = call_of(stmt).and_then(|i| env.functions.get(i as usize));
        Some(if callee.is_some_and(Signature::is_of_driver) { abi::STACK_ALIGN } else { kept })
    };
    func.body.iter().filter_map(asked).max()
}
