//! Addresses of variables and parameters, and the conversion between a space's addresses and generic ones.

use super::special::sr;
use super::{Lowering, Result, Statement};
use crate::CodegenError;
use crate::input::{Operand, Symbol};
use crate::layout::{self, Slot};
use crate::ori::ir::{Dst, File, Inst, Reg, Src, SrcKind};
use crate::ori::op::{Bool, ICmp, Link, Op, QuerySpace, lut};
use crate::target::ParamWindow;
use ptx_isa::{Mod, ScalarType, Space};

/// The spaces that `cvta` names.
const SPACES: [Mod; 8] = [
    Mod::Global,
    Mod::Shared,
    Mod::SharedCta,
    Mod::SharedCluster,
    Mod::Local,
    Mod::Const,
    Mod::Param,
    Mod::ParamEntry,
];

/// The stack pointer.
pub(super) const STACK: Src = Src::new(SrcKind::Reg(Reg { file: File::R, index: 1 }));

/// The address of a symbol, as far as it is known during construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SymbolPlace {
    /// An offset in the block's shared window.
    Shared(u32),
    /// An offset from the stack pointer.
    Local(u32),
    /// An offset in a constant bank: a `.const` variable or a kernel parameter.
    Constant { bank: u8, offset: u32 },
    /// An offset in the arguments that the caller passes on the stack.
    Incoming(u32),
    /// Global memory, or a kernel: the offset of the bank 4 slot that contains the address.
    Slot(u16),
    /// A function or a shared variable whose address is known when the kernel is linked.
    Linked(Symbol),
}

impl<'a> Lowering<'a> {
    pub(super) fn place(&mut self, symbol: Symbol) -> Result<SymbolPlace> {
        let missing =
            |at| CodegenError::Limit { at, what: "the offset of a variable exceeds its space".into() };
        if layout::opaque(self.env, self.func, symbol).is_some() {
            return self.refuse("a memory access to a texture or surface variable");
        }
        if let Some(&start) = self.in_memory.get(&symbol) {
            return Ok(SymbolPlace::Local(start));
        }
        if let Symbol::Return(_) = symbol {
            return self.refuse("the address of a result");
        }
        if let Symbol::Param(i) = symbol {
            if self.func.params.get(i as usize).is_none() {
                return self.malformed(format!("parameter {i} does not exist"));
            }
            if let Some(crate::abi::ArgumentPlace::Stack(start)) = self.convention.params.get(i as usize) {
                return Ok(SymbolPlace::Incoming(*start));
            }
            if !self.func.entry {
                return self.refuse("the address of a parameter");
            }
            let offset = u32::from(self.params.first) + self.params.offsets[i as usize];
            return Ok(SymbolPlace::Constant { bank: 0, offset });
        }
        if let Symbol::Function(i) = symbol {
            let is_kernel = self.env.functions.get(i as usize).is_some_and(|f| f.entry);
            return match is_kernel && !self.linking.is_object() {
                true => Ok(SymbolPlace::Slot(self.address_slot(Slot::Function(i))?)),
                false => Ok(SymbolPlace::Linked(symbol)),
            };
        }
        let Some(variable) = layout::variable(self.env, self.func, symbol) else {
            return self.malformed(format!("{symbol:?} is not a variable"));
        };
        match (variable.space, symbol) {
            (Space::Shared, _) if self.linked => Ok(SymbolPlace::Linked(symbol)),
            (Space::Shared, _) => {
                self.shared.offset(symbol).map(SymbolPlace::Shared).ok_or_else(|| missing(self.src))
            }
            (Space::Local, Symbol::Local(i)) => {
                self.out.frame.uses_stack = true;
                match self.locals.get(i as usize).copied().flatten() {
                    Some(offset) => Ok(SymbolPlace::Local(offset)),
                    None => self.malformed(format!("local variable {i} has no offset")),
                }
            }
            (Space::Const | Space::Global, _) if self.linking.is_object() => Ok(SymbolPlace::Linked(symbol)),
            (Space::Const, _) => match layout::const_offset(self.env, symbol) {
                Some(offset) => Ok(SymbolPlace::Constant { bank: layout::CONST_BANK, offset: offset.into() }),
                None => self
                    .refuse("an `.extern .const` variable, or a `.const` variable past the end of its bank"),
            },
            (Space::Global, _) => {
                let Symbol::Global(variable) = symbol else { return Err(missing(self.src)) };
                Ok(SymbolPlace::Slot(self.address_slot(Slot::Global(variable))?))
            }
            (space, _) => self.refuse(&format!("the address of a `.{}` variable", space.text())),
        }
    }

    /// The offset in bank 4 of the slot with an address, which the driver fills in.
    pub(super) fn address_slot(&mut self, slot: Slot) -> Result<u16> {
        let offset = layout::address_slot(self.env, slot).ok_or_else(|| CodegenError::Limit {
            at: self.src,
            what: "more addresses than constant bank 4 has room for".into(),
        })?;
        if self.slots.insert(slot) {
            self.out.facts.symbols.push(slot);
        }
        Ok(offset)
    }

    /// The address of a shared variable in the block's shared memory, relative to the uniform base.
    pub(super) fn shared_link(&mut self, symbol: Symbol, offset: i64) -> Src {
        // A linker counts from the end of the system's part.
        let counted = self.target.clusters && !self.linking.is_object();
        let start = if counted { self.target.shared_base } else { 0 };
        let offset = (offset as i32).wrapping_sub(start as i32);
        self.locate(symbol, offset.into(), false)
    }

    /// An address in the frame plus a number of bytes.
    pub(super) fn offset_from(&mut self, base: Src, bytes: u32) -> Src {
        self.out.frame.uses_stack = true;
        self.reg_add(base, Src::imm(bytes))
    }

    /// One word of the address of a symbol, which is known when the code is linked.
    pub(super) fn locate(&mut self, symbol: Symbol, offset: i64, high: bool) -> Src {
        self.reg(Op::Locate { link: Link { symbol, offset: offset as i32, high } }, &[])
    }

    /// Whether the code contains the whole address, which is filled in later.
    pub(super) fn has_long_address(&self, symbol: Symbol) -> bool {
        match symbol {
            Symbol::Function(_) => !self.linking.is_joined(),
            _ => self.linking.is_object() && self.is_in(symbol, Space::Global),
        }
    }

    pub(super) fn is_in(&self, symbol: Symbol, space: Space) -> bool {
        layout::variable(self.env, self.func, symbol).is_some_and(|v| v.space == space)
    }

    pub(super) fn is_constant(&self, symbol: Symbol) -> bool {
        self.is_in(symbol, Space::Const)
    }

    /// The address of a symbol of an object. The offset is added in code, so that the linker adds no carry to a half.
    fn long_address(&mut self, symbol: Symbol, offset: i64) -> Src {
        let words = [false, true].map(|high| self.locate(symbol, 0, high));
        if offset == 0 {
            return self.pack(&words);
        }
        let sum = self.add_pair(words, super::operand::halves(offset as u64));
        self.pack(&sum)
    }

    pub(super) fn refuse<T>(&self, what: &str) -> Result<T> {
        Err(CodegenError::unsupported(self.src, what))
    }

    /// The 64-bit address of a symbol in its own space.
    pub(super) fn symbol_address(&mut self, symbol: Symbol, offset: i64) -> Result<Src> {
        if let Some(kind) = layout::opaque(self.env, self.func, symbol) {
            if offset != 0 {
                return self.refuse("an address inside a texture or surface variable");
            }
            return self.variable_handle(symbol, kind);
        }
        let low = match self.place(symbol)? {
            SymbolPlace::Shared(base) => {
                let at = base.wrapping_add(offset as u32);
                match self.shared_base() {
                    Some(window) => {
                        let start = self.target.shared_base;
                        self.add(window, Src::imm(at.wrapping_sub(start)))
                    }
                    None => Src::imm(at),
                }
            }
            SymbolPlace::Local(base) => {
                self.out.frame.uses_stack = true;
                self.reg_add(STACK, Src::imm(base.wrapping_add(offset as u32)))
            }
            SymbolPlace::Incoming(base) => {
                let top = self.incoming();
                self.add(top, Src::imm(base.wrapping_add(offset as u32)))
            }
            SymbolPlace::Linked(symbol) if self.has_long_address(symbol) => {
                return Ok(self.long_address(symbol, offset));
            }
            SymbolPlace::Linked(symbol)
                if matches!(symbol, Symbol::Function(_)) || self.is_constant(symbol) =>
            {
                self.locate(symbol, offset, false)
            }
            SymbolPlace::Linked(symbol) => {
                let at = self.shared_link(symbol, offset);
                match self.shared_base() {
                    Some(window) => self.add(window, at),
                    None => at,
                }
            }
            SymbolPlace::Constant { bank, offset: base } => {
                let start = if bank == 0 { u32::from(self.params.first) } else { 0 };
                Src::imm(base.wrapping_sub(start).wrapping_add(offset as u32))
            }
            SymbolPlace::Slot(slot) => {
                let address = self.pair(Src::constant(layout::ADDRESS_BANK, slot));
                if offset == 0 {
                    return Ok(self.pack(&address));
                }
                let sum = self.add_pair(address, super::operand::halves(offset as u64));
                return Ok(self.pack(&sum));
            }
        };
        Ok(self.pack(&[low, Src::ZERO]))
    }

    /// `a + b`. `a` may be the stack pointer, which must not be folded as a known value.
    fn reg_add(&mut self, a: Src, b: Src) -> Src {
        let dst = self.new_value(File::R, 1);
        self.push_add(Op::Iadd3 { x: false }, dst, [a, b, Src::ZERO]);
        dst.into()
    }

    /// The start of the block's shared memory in a uniform register; `None` if it is 0.
    pub(super) fn shared_base_uniform(&mut self) -> Option<Src> {
        if !self.target.clusters {
            return None;
        }
        if let Some(base) = self.shared_base {
            return Some(base.into());
        }
        let block = self.new_value(File::UR, 1);
        let base = self.new_value(File::UR, 1);
        let sr = sr::CLUSTER_CTA_ID;
        let start = Src::imm(self.target.shared_base);
        self.prologue.push(Inst::new(Op::S2ur { sr }, &[Dst::Value(block)], &[], self.src));
        self.prologue.push(Inst::new(
            Op::Ulea { shift: 24 },
            &[Dst::Value(base)],
            &[block.into(), start],
            self.src,
        ));
        self.shared_base = Some(base);
        Some(base.into())
    }

    /// As [`Self::shared_base_uniform`], in a general register.
    fn shared_base(&mut self) -> Option<Src> {
        let base = self.shared_base_uniform()?;
        Some(self.reg(Op::Mov, &[base]))
    }

    /// The descriptor of the global window, which is loaded once per function.
    pub(super) fn descriptor(&mut self) -> Src {
        let Some(slot) = self.target.driver.descriptor else { return Src::ZERO };
        if let Some(descriptor) = self.descriptor {
            return descriptor;
        }
        let value = self.new_value(File::UR, 2);
        let load =
            Inst::new(Op::Uldc { wide: true }, &[Dst::Value(value)], &[Src::constant(0, slot)], self.src);
        self.prologue.push(load);
        self.descriptor = Some(value.into());
        value.into()
    }

    /// The generic address of the start of a window: local, shared, `.const` variables or parameters.
    pub(super) fn window(&mut self, instr: &Statement<'_>, space: Mod) -> Result<[Src; 2]> {
        let driver = self.target.driver;
        match (space, driver.shared_window) {
            (Mod::Const, _) => Ok(self.pair(Src::constant(0, driver.const_window))),
            // Also in functions, this is the window of the kernel's parameters. Addresses count from the first
            // parameter.
            (Mod::Param | Mod::ParamEntry, _) => match driver.param_window {
                ParamWindow::Parameters(first) => Ok(self.pair(Src::constant(0, first))),
                ParamWindow::Bank(window) => {
                    let window = self.pair(Src::constant(0, window));
                    let first = super::operand::halves(self.params.first.into());
                    Ok(self.add_pair(window, first))
                }
            },
            (Mod::Local, _) => Ok(self.pair(Src::constant(0, driver.local_window))),
            (Mod::Shared | Mod::SharedCta, Some(window)) => Ok(self.pair(Src::constant(0, window))),
            (Mod::Shared | Mod::SharedCta | Mod::SharedCluster, None) => {
                Ok([Src::ZERO, self.s2r(sr::SHARED_WINDOW_HIGH)])
            }
            _ => self.unsupported(instr, &format!("the window of `.{}`", space.text())),
        }
    }

    /// `cvta` and `cvta.to`.
    pub(super) fn cvta(&mut self, instr: &Statement<'a>) -> Result<()> {
        if instr.ty(0).is_none_or(|t| t.bits() != 64) {
            return self.unsupported(instr, "32-bit addresses");
        }
        let Some(space) = instr.any_of(&SPACES) else {
            return self.malformed("cvta without a state space");
        };
        // A function's own parameter whose address is taken is in local memory.
        let is_own = matches!(instr.operand(1), Some(Operand::Symbol(Symbol::Param(_), _)));
        let space = match space {
            Mod::Param | Mod::ParamEntry if is_own && !self.func.entry => Mod::Local,
            _ => space,
        };
        let to = instr.has(Mod::To);
        let address = self.source(instr, 1, ScalarType::U64)?;
        match space {
            Mod::Global => self.result(instr, address),
            Mod::Shared | Mod::SharedCta | Mod::SharedCluster
                if self.target.driver.shared_window.is_none() =>
            {
                // The window is aligned to 4 GiB.
                let low = self.part(address, 0);
                let high = if to { Src::ZERO } else { self.window(instr, space)?[1] };
                self.result_pair(instr, [low, high])
            }
            Mod::Shared | Mod::SharedCta | Mod::Local | Mod::Const | Mod::Param | Mod::ParamEntry => {
                let address = self.pair(address);
                let window = self.window(instr, space)?;
                let moved =
                    if to { self.subtract_pair(address, window) } else { self.add_pair(address, window) };
                self.result_pair(instr, moved)
            }
            _ => self.unsupported(instr, &format!("generic addresses in the .{} space", space.text())),
        }
    }

    /// `isspacep`.
    pub(super) fn isspacep(&mut self, instr: &Statement<'a>) -> Result<()> {
        let address = self.source(instr, 1, ScalarType::U64)?;
        if instr.has(Mod::Const) {
            let within = self.is_in_constants(address);
            return self.result(instr, within);
        }
        if instr.any_of(&[Mod::Param, Mod::ParamEntry]).is_some() {
            let within = self.is_in_parameters(instr, address)?;
            return self.result(instr, within);
        }
        let space = instr.take(&[
            (Mod::Global, QuerySpace::Global),
            (Mod::Local, QuerySpace::Local),
            (Mod::Shared, QuerySpace::Shared),
            (Mod::SharedCta, QuerySpace::Shared),
            (Mod::SharedCluster, QuerySpace::Cluster),
        ]);
        let Some(space) = space else { return self.unsupported(instr, "this state space") };
        let op = Op::Qspc { space };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this state space on this target");
        }
        let mut within = self.pred(op, &[address]);
        if space == QuerySpace::Global {
            // Constants have addresses within those of global memory.
            let constant = self.is_in_constants(address);
            within = self.plop3(lut::A & !lut::B, within, constant, Src::TRUE);
        }
        self.result(instr, within)
    }

    /// Whether a generic address is that of a kernel parameter.
    fn is_in_parameters(&mut self, instr: &Statement<'a>, address: Src) -> Result<Src> {
        let driver = self.target.driver;
        let first = self.window(instr, Mod::Param)?;
        let last = match driver.param_window {
            ParamWindow::Parameters(_) => self.pair(Src::constant(0, driver.param_end)),
            ParamWindow::Bank(window) => {
                let window = self.pair(Src::constant(0, window));
                self.add_pair(window, [Src::constant(0, driver.param_end), Src::ZERO])
            }
        };
        let address = self.pair(address);
        let before = self.compare_pair(ICmp::Le, false, address, last);
        Ok(self.compare_pair_with(ICmp::Ge, false, address, first, Bool::And, before))
    }

    /// Whether a generic address is that of a `.const` variable.
    fn is_in_constants(&mut self, address: Src) -> Src {
        let start = Src::constant(0, self.target.driver.const_window);
        if self.linking.is_object() {
            // Other objects may have `.const` variables. nvlink fills in -1 if no object has one.
            let bytes = self.reg(Op::ConstBytes, &[]);
            let any = self.compare(ICmp::Ne, false, bytes, Src::imm(u32::MAX));
            let (address, start) = (self.pair(address), self.pair(start));
            let end = self.add_pair(start, [bytes, Src::ZERO]);
            let before = self.compare_pair_with(ICmp::Lt, false, address, end, Bool::And, any);
            return self.compare_pair_with(ICmp::Ge, false, address, start, Bool::And, before);
        }
        let bytes = layout::const_bytes(self.env);
        if bytes == 0 {
            return Src::FALSE;
        }
        let (address, start) = (self.pair(address), self.pair(start));
        let end = self.add_pair(start, super::operand::halves(bytes));
        let behind = self.compare_pair(ICmp::Ge, false, address, end);
        self.compare_pair_with(ICmp::Ge, false, address, start, Bool::And, behind.not())
    }

    /// A comparison of two 32-bit integers.
    pub(super) fn compare(&mut self, cmp: ICmp, signed: bool, a: Src, b: Src) -> Src {
        use crate::ori::op::{Bool, Sign};
        let sign = if signed { Sign::S32 } else { Sign::U32 };
        self.pred(Op::Isetp { cmp, sign, bool_: Bool::And, ex: false }, &[a, b, Src::TRUE])
    }
}
