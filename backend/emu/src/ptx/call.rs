//! Calls of device functions, and the stack frames of threads: `.local` variables, `.param` space and `alloca`.
//!
//! A thread's stack is its local memory. A call adds a frame with the callee's variables, parameters and results, and
//! saves the old values of the callee's registers, because an earlier call of the same function may still use them.

use super::arithmetic::{ty, unsupported};
use super::link::{DataPlace, Formal, Linked, Slot};
use super::{Block, State, Step, each};
use crate::launch::FaultKind;
use crate::memory::{UNWRITTEN, number};
use crate::system::System;
use ptx_backend::input::{Instr, Operand, Symbol};
use ptx_isa::{FormId, ScalarType};

/// The largest stack of a thread in bytes.
const STACK_BYTES: usize = 1 << 20;

/// The state that a call saves.
pub(super) struct Frame {
    /// The call instruction.
    call: u32,
    /// The function called.
    callee: u32,
    /// The start of the caller's frame and the end of its stack.
    base: u64,
    top: usize,
    /// The old values of the callee's registers, and whether they had been written.
    registers: Vec<(u128, bool)>,
}

/// A byte of an argument or result. `None`: it was never written.
type Passed = Option<u8>;

fn all_written(bytes: &[u8]) -> Vec<Passed> {
    bytes.iter().copied().map(Some).collect()
}

/// The bytes, if at least one of them was written.
fn written(bytes: &[Passed]) -> Option<Vec<u8>> {
    let any = bytes.iter().any(Option::is_some);
    any.then(|| bytes.iter().map(|byte| byte.unwrap_or(UNWRITTEN)).collect())
}

struct Parts<'i> {
    returns: &'i [Operand],
    target: &'i Operand,
    arguments: &'i [Operand],
}

fn parts(instr: &Instr) -> Step<Parts<'_>> {
    let list = |operand: Option<&'_ Operand>| matches!(operand, Some(Operand::List(_)));
    let (returns, rest) = match &instr.operands[..] {
        [Operand::List(returns), rest @ ..] => (&returns[..], rest),
        rest => (&[][..], rest),
    };
    let [target, rest @ ..] = rest else { return unsupported(instr) };
    let arguments = match rest {
        [Operand::List(arguments), ..] if list(rest.first()) => &arguments[..],
        _ => &[][..],
    };
    Ok(Parts { returns, target, arguments })
}

impl Block<'_> {
    pub(super) fn call(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        let Parts { returns, target, arguments } = parts(instr)?;
        for lane in each(mask) {
            let symbol = match target {
                Operand::Symbol(Symbol::Function(index), 0) => *index,
                _ => {
                    let value = self.value(target, ScalarType::U64)?;
                    let address = self.get(w, lane, value)?;
                    let function = crate::device::function_at(address);
                    function.filter(|&i| (i as usize) < self.program.env.functions.len()).ok_or_else(
                        || FaultKind::Malformed(format!("a call of {address:#x}, where no function is")),
                    )?
                }
            };
            match self.program.code.by_symbol[symbol as usize] {
                Some(callee) => self.enter(w, lane, pc, callee, arguments)?,
                None => self.call_system(w, lane, symbol, returns, arguments)?,
            }
        }
        Ok(())
    }

    /// The bytes that an argument passes for a parameter of a given size.
    fn argument(&mut self, w: usize, lane: usize, operand: &Operand, size: u32) -> Step<Vec<Passed>> {
        if let Operand::Symbol(symbol @ Symbol::Local(_), offset) = operand
            && let DataPlace::Frame(start) = self.program.place(*symbol)
        {
            let start = (self.warps[w].frame[lane] + start).wrapping_add(*offset as u64) as usize;
            return Ok(self.warps[w].passed(lane, start, size as usize));
        }
        if let Operand::Vector(elements) = operand {
            let size = size / elements.len().max(1) as u32;
            let all = elements.iter().map(|element| self.argument(w, lane, element, size));
            return Ok(all.collect::<Step<Vec<_>>>()?.concat());
        }
        let bits = match size {
            1 => ScalarType::B8,
            2 => ScalarType::B16,
            4 => ScalarType::B32,
            8 => ScalarType::B64,
            _ => return Err(FaultKind::Malformed(format!("an argument of {size} bytes in a register"))),
        };
        let bits = match operand {
            Operand::F32(_) | Operand::F64(_) if size == 4 => ScalarType::F32,
            Operand::F32(_) | Operand::F64(_) if size == 8 => ScalarType::F64,
            _ => bits,
        };
        let value = self.value(operand, bits)?;
        Ok(all_written(&self.get(w, lane, value)?.to_le_bytes()[..size as usize]))
    }

    /// The size of a variable that a call passes as a whole.
    fn bytes_of(&self, argument: &Operand) -> u32 {
        let Operand::Symbol(Symbol::Local(local), _) = argument else { return 0 };
        let bytes = self.program.code.local_bytes.get(*local as usize);
        bytes.and_then(|bytes| u32::try_from(*bytes).ok()).unwrap_or(0)
    }

    fn enter(&mut self, w: usize, lane: usize, pc: u32, callee: u32, arguments: &[Operand]) -> Step<()> {
        let program = self.program;
        let function = &program.code.functions[callee as usize];
        let open = function.params.last().is_some_and(Formal::is_open);
        if function.params.len() != arguments.len() && !(open && function.params.len() == arguments.len() + 1)
        {
            return Err(FaultKind::Malformed("a call with another number of arguments".into()));
        }
        let mut passed = Vec::with_capacity(arguments.len());
        for (formal, argument) in function.params.iter().zip(arguments) {
            let size = if formal.is_open() { self.bytes_of(argument) } else { formal.size };
            passed.push(self.argument(w, lane, argument, size)?);
        }
        let open_bytes = if open { passed.get(function.params.len() - 1).map_or(0, Vec::len) } else { 0 };
        let warp = &mut self.warps[w];
        let frame = Frame {
            call: pc,
            callee,
            base: warp.frame[lane],
            top: warp.local[lane].len(),
            registers: function.registers.clone().map(|register| warp.take(lane, register)).collect(),
        };
        warp.frames[lane].push(frame);
        let bytes = function.frame_bytes + open_bytes as u64;
        warp.frame[lane] = warp.grow(lane, function.frame_align, bytes)?;
        warp.pc[lane] = function.entry;
        for (formal, bytes) in function.params.iter().zip(passed) {
            match &formal.at {
                Slot::Registers(registers) => {
                    let size = bytes.len() / registers.len();
                    for (register, bytes) in registers.iter().zip(bytes.chunks(size.max(1))) {
                        let Some(bytes) = written(bytes) else { continue };
                        let bits = program.code.registers[register.0 as usize];
                        self.put(w, lane, &Operand::Reg(*register), bits, number(&bytes))?;
                    }
                }
                Slot::Frame(start) => self.write_frame(w, lane, *start, &bytes),
            }
        }
        Ok(())
    }

    /// Writes to a thread's frame.
    fn write_frame(&mut self, w: usize, lane: usize, start: u64, bytes: &[Passed]) {
        let warp = &mut self.warps[w];
        let start = (warp.frame[lane] + start) as usize;
        for (at, byte) in (start..warp.local[lane].len()).zip(bytes) {
            warp.local[lane][at] = byte.unwrap_or(UNWRITTEN);
            if let Some(written) = warp.local_written[lane].get_mut(at) {
                *written = byte.is_some();
            }
        }
    }

    /// Returns from a function. In the kernel, the threads exit.
    pub(super) fn ret(&mut self, w: usize, mask: u32) -> Step<()> {
        let mut exiting = 0;
        for lane in each(mask) {
            match self.warps[w].frames[lane].pop() {
                Some(frame) => self.leave_function(w, lane, frame)?,
                None => exiting |= 1 << lane,
            }
        }
        if exiting == 0 { Ok(()) } else { self.exit(w, exiting) }
    }

    fn leave_function(&mut self, w: usize, lane: usize, frame: Frame) -> Step<()> {
        let program = self.program;
        let function: &Linked = &program.code.functions[frame.callee as usize];
        let Some(call) = program.instr(frame.call) else { return Ok(()) };
        let wanted = parts(call)?.returns;
        let mut results = Vec::with_capacity(wanted.len());
        for (formal, wanted) in function.returns.iter().zip(wanted) {
            if *wanted != Operand::Sink {
                results.push((wanted, self.result(w, lane, formal)?));
            }
        }
        let warp = &mut self.warps[w];
        for (register, (value, written)) in function.registers.clone().zip(frame.registers) {
            warp.set_back(lane, register, value, written);
        }
        warp.frame[lane] = frame.base;
        warp.shrink(lane, frame.top);
        warp.pc[lane] = frame.call + 1;
        for (wanted, bytes) in results {
            self.returned(w, lane, wanted, &bytes)?;
        }
        Ok(())
    }

    /// The bytes of a result of a function that is about to return.
    fn result(&self, w: usize, lane: usize, formal: &Formal) -> Step<Vec<Passed>> {
        let size = formal.size as usize;
        let warp = &self.warps[w];
        match &formal.at {
            Slot::Registers(registers) => {
                let mut bytes = Vec::with_capacity(size);
                for register in registers {
                    self.is_written(w, register.0 as usize, 1 << lane)?;
                    let value = warp.registers[register.0 as usize * crate::WARP + lane];
                    bytes.extend(&value.to_le_bytes()[..(size / registers.len()).min(8)]);
                }
                Ok(all_written(&bytes))
            }
            Slot::Frame(start) => {
                let start = (warp.frame[lane] + *start) as usize;
                Ok(warp.passed(lane, start, size))
            }
        }
    }

    /// Writes a result to the register or the `.param` variable that the call names.
    fn returned(&mut self, w: usize, lane: usize, wanted: &Operand, bytes: &[Passed]) -> Step<()> {
        match wanted {
            Operand::Symbol(symbol, _) => {
                if let DataPlace::Frame(start) = self.program.place(*symbol) {
                    self.write_frame(w, lane, start, bytes);
                }
                Ok(())
            }
            Operand::Reg(register) => {
                let Some(bytes) = written(&bytes[..bytes.len().min(8)]) else { return Ok(()) };
                let t = self.program.code.registers[register.0 as usize];
                self.put(w, lane, wanted, t, number(&bytes))
            }
            Operand::Vector(elements) => {
                let size = bytes.len() / elements.len().max(1);
                let mut all = elements.iter().zip(bytes.chunks(size.max(1)));
                all.try_for_each(|(element, bytes)| self.returned(w, lane, element, bytes))
            }
            other => self.put(w, lane, other, ScalarType::B64, 0),
        }
    }

    fn call_system(
        &mut self,
        w: usize,
        lane: usize,
        symbol: u32,
        returns: &[Operand],
        arguments: &[Operand],
    ) -> Step<()> {
        let signature = &self.program.env.functions[symbol as usize];
        let Some(system) = System::named(&signature.name) else {
            return Err(FaultKind::Unsupported(format!(
                "the function {}, which has no body",
                signature.name
            )));
        };
        let mut passed = Vec::with_capacity(arguments.len());
        for (param, argument) in signature.params.iter().zip(arguments) {
            let bytes = self.argument(w, lane, argument, param.size)?;
            passed.push(written(&bytes[..bytes.len().min(8)]).map_or(0, |bytes| number(&bytes)));
        }
        let done = system.call(&passed, &mut self.view(w, lane))?;
        self.device.output.extend(done.text);
        if done.traps {
            return Err(FaultKind::Trap);
        }
        for (param, wanted) in signature.returns.iter().zip(returns) {
            let bytes = all_written(&done.result.to_le_bytes()[..param.size.min(8) as usize]);
            self.returned(w, lane, wanted, &bytes)?;
        }
        Ok(())
    }

    /// `alloca`, `stacksave`, `stackrestore`.
    pub(super) fn stack(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let t = ty(&instr.opcode, 0)?;
        for lane in each(mask) {
            let value = match instr.opcode.form {
                FormId::Alloca => {
                    let align = match instr.operands.get(2) {
                        Some(Operand::Int(align)) => (*align).max(1) as u64,
                        _ => 8,
                    };
                    let size = self.value(&instr.operands[1], t)?;
                    let size = self.get(w, lane, size)?;
                    self.warps[w].grow(lane, align, size)?
                }
                FormId::Stacksave => self.warps[w].local[lane].len() as u64,
                _ => {
                    let top = self.value(&instr.operands[0], t)?;
                    let top = self.get(w, lane, top)? as usize;
                    if top > self.warps[w].local[lane].len() {
                        return Err(FaultKind::Malformed("a stack is restored that was larger".into()));
                    }
                    self.warps[w].shrink(lane, top);
                    continue;
                }
            };
            self.put(w, lane, &instr.operands[0], t, value)?;
        }
        Ok(())
    }

    pub(super) fn exit(&mut self, w: usize, mask: u32) -> Step<()> {
        for lane in each(mask) {
            self.warps[w].state[lane] = State::Exited;
            let copies = self.warps[w].copies.finish_all(lane);
            self.land(w, copies)?;
        }
        self.leave(w)
    }
}

impl super::Warp {
    /// Saves a thread's register and marks it as not written.
    fn take(&mut self, lane: usize, register: usize) -> (u128, bool) {
        let written = self.written[register] >> lane & 1 == 1;
        self.written[register] &= !(1 << lane);
        let upper = self.upper.get(&register).map_or(0, |upper| u128::from(upper[lane]) << 64);
        (upper | u128::from(self.registers[register * crate::WARP + lane]), written)
    }

    fn set_back(&mut self, lane: usize, register: usize, value: u128, written: bool) {
        self.registers[register * crate::WARP + lane] = value as u64;
        if let Some(upper) = self.upper.get_mut(&register) {
            upper[lane] = (value >> 64) as u64;
        }
        self.written[register] = self.written[register] & !(1 << lane) | u32::from(written) << lane;
    }

    /// Bytes of a thread's stack, without those past its end.
    fn passed(&self, lane: usize, start: usize, size: usize) -> Vec<Passed> {
        let bytes = self.local[lane].get(start..start + size).unwrap_or_default();
        let is_written = |at: usize| self.local_written[lane].get(at).copied().unwrap_or(true);
        (start..).zip(bytes).map(|(at, byte)| is_written(at).then_some(*byte)).collect()
    }

    /// Extends a thread's stack. Returns the address of the new memory.
    fn grow(&mut self, lane: usize, align: u64, bytes: u64) -> Step<u64> {
        let start = (self.local[lane].len() as u64).next_multiple_of(align);
        let end = start.saturating_add(bytes);
        if end > STACK_BYTES as u64 {
            return Err(FaultKind::OutOfBounds { space: "local", address: start, size: bytes as u32 });
        }
        self.local[lane].resize(end as usize, UNWRITTEN);
        if self.tracks {
            self.local_written[lane].resize(end as usize, false);
        }
        Ok(start)
    }

    fn shrink(&mut self, lane: usize, top: usize) {
        self.local[lane].truncate(top);
        self.local_written[lane].truncate(top);
    }
}
