//! Loads, stores and fences.
//!
//! Kernel parameters and `.const` variables at known offsets are operands, not loads. The code for acquire, release and
//! the fences was observed on ptxas 13.0.88.

use super::multimem;
use super::operand::{known, registers};
use super::symbol::{STACK, SymbolPlace};
use super::{Lowering, Result, Statement};
use crate::input::{Address, AddressBase, Operand, RegId, Symbol};
use crate::ori::ir::{Dst, File, Inst, Src};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{Access, AddressScale, CctlOp, Evict, EvictL2, MemSize, MembarScope, Op, Prefetch};
use ptx_isa::{FormId, Mod, ScalarType, Space};

/// The number of bytes of an access of eight registers.
const WIDE: usize = 32;
/// The offsets that a memory operation can add to its address: signed 24 bits.
const OFFSETS: std::ops::Range<i64> = -(1 << 23)..1 << 23;

/// The scope that an instruction names. Cluster scope is implemented by device scope.
pub(super) fn scope(instr: &Statement<'_>) -> Option<Scope> {
    instr.take(&[
        (Mod::Cta, Scope::Cta),
        (Mod::Cluster, Scope::Gpu),
        (Mod::Gpu, Scope::Gpu),
        (Mod::Gl, Scope::Gpu),
        (Mod::Sys, Scope::Sys),
    ])
}

/// The memory order of a load or store. Cache operators are orders of the hardware.
fn order(instr: &Statement<'_>) -> Order {
    let scope = scope(instr).unwrap_or(Scope::Sys);
    let named = instr.take(&[
        (Mod::Weak, Order::Weak),
        (Mod::Volatile, Order::Volatile),
        (Mod::Relaxed, Order::Relaxed(scope)),
        (Mod::Acquire, Order::Acquire(scope)),
        (Mod::Release, Order::Release(scope)),
    ]);
    let cached = instr.take(&CACHES).map_or(Order::Weak, Order::Relaxed);
    match named {
        None if instr.form() == FormId::StAsyncRelease => Order::Release(scope),
        // It is one access, like any atomic operation.
        Some(order) if instr.form() == FormId::RedAsyncRelease => order,
        // `.mmio` is the strongest order, so other modifiers add nothing.
        _ if instr.has(Mod::Mmio) => Order::Mmio,
        // No cache can contain old data.
        None | Some(Order::Weak) if instr.has(Mod::Nc) => Order::Constant,
        None | Some(Order::Weak) => cached,
        Some(order) => order,
    }
}

/// Cache operators, with the scope of the threads that share that cache.
const CACHES: [(Mod, Scope); 5] = [
    (Mod::Ca, Scope::Cta),
    (Mod::Wb, Scope::Cta),
    (Mod::Cg, Scope::Gpu),
    (Mod::Cv, Scope::Sys),
    (Mod::Wt, Scope::Sys),
];

/// The order of an access of shared memory. Shared memory has no caches, so operators for caches have no effect.
fn shared_order(instr: &Statement<'_>) -> Order {
    let hint = instr.any_of(&[Mod::Ca, Mod::Cg, Mod::Wb]).is_some();
    // Shared memory has no cache lines to evict.
    instr.ignore(&[Mod::Cs, Mod::Lu]);
    match order(instr) {
        Order::Relaxed(_) if hint => Order::Weak,
        order => order,
    }
}

/// The memory and address of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// A 64-bit address; generic or global.
    Wide {
        address: Src,
        offset: i32,
        generic: bool,
    },
    /// A 32-bit shared address and a uniform base.
    Shared {
        address: Src,
        base: Src,
        offset: i32,
    },
    Local {
        address: Src,
        offset: i32,
    },
    /// A parameter of a function or a call, which is in registers.
    Parameter {
        symbol: Symbol,
        offset: i64,
    },
    /// A known offset in a constant bank.
    Constant {
        bank: u8,
        offset: u16,
    },
    /// A constant bank with an index in a register.
    Indexed {
        bank: u8,
        index: Src,
        offset: i32,
    },
}

impl Target {
    /// The bank, index and offset of a place in a constant bank.
    fn in_bank(self) -> Option<(u8, Src, i32)> {
        match self {
            Target::Constant { bank, offset } => Some((bank, Src::ZERO, offset.into())),
            Target::Indexed { bank, index, offset } => Some((bank, index, offset)),
            _ => None,
        }
    }
}

const SPACES: [Mod; 9] = [
    Mod::Global,
    Mod::Shared,
    Mod::SharedCta,
    Mod::Local,
    Mod::Const,
    Mod::Param,
    Mod::ParamEntry,
    Mod::SharedCluster,
    Mod::ParamFunc,
];

/// The space that an instruction names; `None` for generic addresses.
pub(super) fn space(instr: &Statement<'_>) -> Option<Mod> {
    instr.any_of(&SPACES)
}

/// The order, eviction priority and prefetch size that an access requests.
fn access(instr: &Statement<'_>, size: MemSize, offset: i32) -> Access {
    let evict = instr.take(&[
        (Mod::Cs, Evict::First),
        (Mod::Lu, Evict::LastUse),
        (Mod::L1EvictFirst, Evict::First),
        (Mod::L1EvictLast, Evict::Last),
        (Mod::L1EvictNormal, Evict::Normal),
        (Mod::L1EvictUnchanged, Evict::Unchanged),
        (Mod::L1NoAllocate, Evict::NoAllocate),
    ]);
    let prefetch = instr.take(&[
        (Mod::L264B, Prefetch::B64),
        (Mod::L2128B, Prefetch::B128),
        (Mod::L2256B, Prefetch::B256),
    ]);
    // This is the default of the second-level cache.
    instr.ignore(&[Mod::L2EvictNormal]);
    Access {
        size,
        order: order(instr),
        evict: evict.unwrap_or(Evict::Normal),
        prefetch: prefetch.unwrap_or(Prefetch::None),
        offset,
    }
}

/// A bit for each word of a 32-byte store to which elements are stored. `_` leaves memory unchanged.
fn stored_words(srcs: &[Operand], ty: ScalarType) -> u8 {
    let words = srcs.iter().flat_map(|src| (0..registers(ty)).map(move |_| *src != Operand::Sink));
    words.enumerate().fold(0, |mask, (i, stored)| mask | u8::from(stored) << i)
}

/// The second-level cache priority of the line. Only 32-byte accesses encode it themselves.
fn second_level(instr: &Statement<'_>) -> EvictL2 {
    let policies = [
        (Mod::L2EvictFirst, EvictL2::First),
        (Mod::L2EvictNormal, EvictL2::Normal),
        (Mod::L2EvictLast, EvictL2::Last),
    ];
    instr.take(&policies).unwrap_or(EvictL2::Normal)
}

/// Ignores order and cache operators: no other thread writes this memory, so there is no order to keep, and no thread
/// can observe the cache.
fn ignore_order(instr: &Statement<'_>) {
    instr.ignore(&[Mod::Weak, Mod::Volatile, Mod::Cs, Mod::Lu]);
    instr.ignore(&CACHES.map(|cache| cache.0));
}

/// The elements of a vector operand, or the scalar operand.
pub(super) fn elements<'a>(instr: &Statement<'_>, operand: &'a Operand) -> &'a [Operand] {
    // The number of elements in the braces shows it.
    instr.ignore(&[Mod::V2, Mod::V4, Mod::V8]);
    match operand {
        Operand::Vector(elements) => elements,
        single => std::slice::from_ref(single),
    }
}

impl<'a> Lowering<'a> {
    pub(super) fn address(&self, instr: &Statement<'a>, i: usize) -> Result<Address> {
        match self.operand(instr, i)? {
            Operand::Address(address) => Ok(*address),
            // Some forms take their address without brackets.
            Operand::Reg(reg) => Ok(Address { base: AddressBase::Reg(*reg), offset: 0 }),
            Operand::Sum(reg, offset) => Ok(Address { base: AddressBase::Reg(*reg), offset: *offset }),
            Operand::Symbol(symbol, offset) => {
                Ok(Address { base: AddressBase::Symbol(*symbol), offset: *offset })
            }
            Operand::Int(address) => Ok(Address { base: AddressBase::Absolute, offset: *address }),
            _ => self.unsupported(instr, "an operand that is not an address"),
        }
    }

    /// Resolves the address operand of an access.
    pub(super) fn target(&mut self, instr: &Statement<'a>, i: usize) -> Result<Target> {
        let address = self.address(instr, i)?;
        match space(instr) {
            None => {
                // These forms access global memory even if they name no space.
                let global = multimem::is_of_devices(instr.form())
                    || matches!(instr.form(), FormId::StAsyncRelease | FormId::RedAsyncRelease);
                match self.named_space(address) {
                    Some(Space::Shared) => self.shared_target(instr, address),
                    Some(Space::Local) => self.local_target(instr, address),
                    _ => self.wide_target(address, !global),
                }
            }
            Some(Mod::Global) => self.wide_target(address, false),
            Some(Mod::Shared | Mod::SharedCta) => self.shared_target(instr, address),
            Some(Mod::SharedCluster) => self.cluster_target(instr, address),
            Some(Mod::Local) => self.local_target(instr, address),
            Some(Mod::Const) => self.constant_target(instr, address, crate::layout::CONST_BANK),
            Some(Mod::Param | Mod::ParamEntry | Mod::ParamFunc) => self.parameter_target(instr, address),
            Some(other) => self.unsupported(instr, &format!("the state space `.{}`", other.text())),
        }
    }

    /// The state space of the variable that an address names.
    fn named_space(&self, address: Address) -> Option<Space> {
        let AddressBase::Symbol(symbol) = address.base else { return None };
        crate::layout::variable(self.env, self.func, symbol).map(|variable| variable.space)
    }

    fn wide_target(&mut self, address: Address, generic: bool) -> Result<Target> {
        let (address, offset) = self.wide_address(address, generic)?;
        Ok(Target::Wide { address, offset, generic })
    }

    /// The register of a global or generic address, and the part of the offset that fits; the rest is added to the
    /// register.
    pub(super) fn wide_address(&mut self, address: Address, generic: bool) -> Result<(Src, i32)> {
        let base = match address.base {
            AddressBase::Reg(reg) => self.read_address(reg)?,
            AddressBase::Symbol(symbol) => {
                let base = self.symbol_address(symbol, 0)?;
                if generic { self.generic_address(symbol, base)? } else { base }
            }
            AddressBase::Absolute => Src::ZERO,
        };
        if OFFSETS.contains(&address.offset) && address.base != AddressBase::Absolute {
            return Ok((base, address.offset as i32));
        }
        let base = self.pair(base);
        let sum = self.add_pair(base, super::operand::halves(address.offset as u64));
        Ok((self.pack(&sum), 0))
    }

    /// A 64-bit address; a 32-bit register is extended with zeros.
    fn read_address(&mut self, reg: RegId) -> Result<Src> {
        self.read(&Operand::Reg(reg), ScalarType::U64)
    }

    /// The generic address of a symbol. Only a global address is its own generic address.
    fn generic_address(&mut self, symbol: Symbol, address: Src) -> Result<Src> {
        match self.place(symbol)? {
            SymbolPlace::Slot(_) => Ok(address),
            SymbolPlace::Linked(symbol) if self.has_long_address(symbol) => Ok(address),
            _ => Err(crate::CodegenError::unsupported(self.src, "a generic access to a variable")),
        }
    }

    pub(super) fn shared_target(&mut self, instr: &Statement<'a>, address: Address) -> Result<Target> {
        match address.base {
            AddressBase::Symbol(symbol) if self.linked => {
                let SymbolPlace::Linked(symbol @ (Symbol::Global(_) | Symbol::Local(_))) =
                    self.place(symbol)?
                else {
                    return self.unsupported(instr, "a shared access to a variable in another space");
                };
                if !self.is_in(symbol, ptx_isa::Space::Shared) {
                    return self.unsupported(instr, "a shared access to a variable in another space");
                }
                let base = self.shared_base_uniform().unwrap_or(Src::ZERO);
                let address = self.shared_link(symbol, address.offset);
                Ok(Target::Shared { address, base, offset: 0 })
            }
            AddressBase::Symbol(symbol) => {
                let SymbolPlace::Shared(at) = self.place(symbol)? else {
                    return self.unsupported(instr, "a shared access to a variable in another space");
                };
                let at = i64::from(at).saturating_add(address.offset);
                let base = self.shared_base_uniform();
                let at = if base.is_some() { at - i64::from(self.target.shared_base) } else { at };
                let base = base.unwrap_or(Src::ZERO);
                if !OFFSETS.contains(&at) {
                    let address = self.in_register(Src::imm(at as u32));
                    return Ok(Target::Shared { address, base, offset: 0 });
                }
                Ok(Target::Shared { address: Src::ZERO, base, offset: at as i32 })
            }
            AddressBase::Reg(reg) => {
                let address = self.narrow_address(reg, address.offset)?;
                Ok(Target::Shared { address: address.0, base: Src::ZERO, offset: address.1 })
            }
            AddressBase::Absolute => {
                let address = self.split_offset(Src::ZERO, address.offset);
                Ok(Target::Shared { address: address.0, base: Src::ZERO, offset: address.1 })
            }
        }
    }

    /// A 32-bit address, and the offset that the operation adds.
    fn narrow_address(&mut self, reg: RegId, offset: i64) -> Result<(Src, i32)> {
        let src = self.read(&Operand::Reg(reg), ScalarType::U32)?;
        Ok(self.split_offset(src, offset))
    }

    fn split_offset(&mut self, src: Src, offset: i64) -> (Src, i32) {
        match known(src) {
            Some(v) if OFFSETS.contains(&i64::from(v).saturating_add(offset)) => {
                (Src::ZERO, i64::from(v).saturating_add(offset) as i32)
            }
            None if OFFSETS.contains(&offset) => (src, offset as i32),
            _ => (self.add(src, Src::imm(offset as u32)), 0),
        }
    }

    fn local_target(&mut self, instr: &Statement<'a>, address: Address) -> Result<Target> {
        self.out.frame.uses_stack = true;
        let (address, offset) = match address.base {
            AddressBase::Symbol(symbol) => {
                let (base, at) = match self.place(symbol)? {
                    SymbolPlace::Local(at) => (STACK, at),
                    SymbolPlace::Incoming(at) => (self.incoming(), at),
                    _ => {
                        return self.unsupported(instr, "a local access to a variable in another space");
                    }
                };
                let at = i64::from(at).saturating_add(address.offset);
                self.split_offset(base, at)
            }
            AddressBase::Reg(reg) => self.narrow_address(reg, address.offset)?,
            AddressBase::Absolute => self.split_offset(Src::ZERO, address.offset),
        };
        Ok(Target::Local { address, offset })
    }

    /// The target for a parameter: a constant for kernels, registers or local memory for functions.
    fn parameter_target(&mut self, instr: &Statement<'a>, address: Address) -> Result<Target> {
        match address.base {
            AddressBase::Symbol(symbol) if self.is_parameter(symbol) => {
                Ok(Target::Parameter { symbol, offset: address.offset })
            }
            _ if self.func.entry => self.constant_target(instr, address, 0),
            _ => self.local_target(instr, address),
        }
    }

    fn constant_target(&mut self, instr: &Statement<'a>, address: Address, bank: u8) -> Result<Target> {
        // Addresses of parameters count from the first parameter.
        let first = if bank == 0 { i64::from(self.params.first) } else { 0 };
        let own = address.offset.saturating_add(first);
        let (index, offset) = match address.base {
            AddressBase::Symbol(symbol) => match self.place(symbol)? {
                SymbolPlace::Constant { bank: of_symbol, offset } if of_symbol == bank => {
                    (Src::ZERO, i64::from(offset).saturating_add(address.offset))
                }
                SymbolPlace::Linked(symbol) if bank != 0 && self.is_constant(symbol) => {
                    (self.locate(symbol, address.offset, false), 0)
                }
                _ => return self.unsupported(instr, "an access to a variable in another space"),
            },
            AddressBase::Reg(reg) => {
                let src = self.read(&Operand::Reg(reg), ScalarType::U32)?;
                match known(src) {
                    Some(v) => (Src::ZERO, i64::from(v).saturating_add(own)),
                    None => (src, own),
                }
            }
            AddressBase::Absolute => (Src::ZERO, own),
        };
        if index == Src::ZERO {
            // As with ptxas, accesses outside the bank begin again at its start.
            return Ok(Target::Constant { bank, offset: offset as u16 });
        }
        // The offset is a signed number of 16 bits; a load of four words adds 12.
        if (0..0x7ff0).contains(&offset) {
            return Ok(Target::Indexed { bank, index, offset: offset as i32 });
        }
        let index = self.add(index, Src::imm(offset as u32));
        Ok(Target::Indexed { bank, index, offset: 0 })
    }

    fn memory_size(&self, instr: &Statement<'_>, ty: ScalarType, count: usize) -> Result<MemSize> {
        match (ty.bytes() as usize * count, ty.is_signed() && count == 1) {
            (1, true) => Ok(MemSize::S8),
            (1, false) => Ok(MemSize::U8),
            (2, true) => Ok(MemSize::S16),
            (2, false) => Ok(MemSize::U16),
            (4, _) => Ok(MemSize::B32),
            (8, _) => Ok(MemSize::B64),
            (16, _) => Ok(MemSize::B128),
            (bytes, _) => self.unsupported(instr, &format!("an access of {bytes} bytes")),
        }
    }

    /// `ld`, `ldu`.
    pub(super) fn load(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let dsts = elements(instr, self.operand(instr, 0)?);
        if dsts.len() * ty.bytes() as usize == WIDE {
            return self.branch_around(|this| this.load_wide(instr, dsts, ty));
        }
        let size = self.memory_size(instr, ty, dsts.len())?;
        let target = self.target(instr, 1)?;
        if let Target::Parameter { symbol, offset } = target {
            ignore_order(instr);
            for (i, dst) in dsts.iter().enumerate() {
                let at = offset.saturating_add(i as i64 * i64::from(ty.bytes()));
                let element = self.parameter_element(symbol, at, ty);
                let element = self.widen_to(dst, element, ty)?;
                self.write(dst, element)?;
            }
            return Ok(());
        }
        if let Target::Constant { bank, offset } = target
            && let Some(words) = Self::constant_words(bank, offset, ty, dsts.len())
        {
            ignore_order(instr);
            return self.write_elements(dsts, &words, ty);
        }
        if let (Some((bank, index, offset)), MemSize::B128) = (target.in_bank(), size) {
            ignore_order(instr);
            let words = self.indexed_words(bank, index, offset);
            return self.write_elements(dsts, &words, ty);
        }
        let count = (ty.bits() as usize * dsts.len()).div_ceil(32);
        let direct = ty.bits() >= 32 || dsts.len() == 1;
        let direct = direct && dsts.iter().all(|d| self.takes(d, ty));
        let old = if direct && !self.guard.is_true() { self.kept(dsts, ty)? } else { Src::UNDEF };
        let value = self.new_value(File::R, count as u8);
        let (op, srcs) = self.load_operation(instr, target, size)?;
        self.guarded(op, &[Dst::Value(value)], &srcs, &[old]);
        if instr.has(Mod::Acquire) {
            self.acquire(instr);
        }
        let words: Vec<Src> = match count {
            1 => vec![value.into()],
            _ => (0..count).map(|i| Src::part(value, i as u8)).collect(),
        };
        if !direct {
            return self.write_elements(dsts, &words, ty);
        }
        let guard = std::mem::replace(&mut self.guard, Src::TRUE);
        let written = self.write_elements(dsts, &words, ty);
        self.guard = guard;
        written
    }

    /// A load of 32 bytes. It accesses global memory even if no space is named.
    fn load_wide(&mut self, instr: &Statement<'a>, dsts: &[Operand], ty: ScalarType) -> Result<()> {
        let Target::Wide { address, offset, .. } = self.target(instr, 1)? else {
            return self.unsupported(instr, "a 32-byte access in this state space");
        };
        let level_two = second_level(instr);
        let op = Op::LdgWide { access: access(instr, MemSize::B32, offset), level_two };
        if !self.encodes(&op) {
            return self.unsupported(instr, "a 32-byte access on this target");
        }
        let halves = [self.new_value(File::R, 4), self.new_value(File::R, 4)];
        let srcs = [address, self.descriptor_of(instr)?];
        self.push(Inst::new(op, &halves.map(Dst::Value), &srcs, self.src));
        if instr.has(Mod::Acquire) {
            self.acquire(instr);
        }
        let words: Vec<Src> = halves.iter().flat_map(|half| (0..4).map(|i| Src::part(*half, i))).collect();
        self.write_elements(dsts, &words, ty)
    }

    fn store_wide(&mut self, instr: &Statement<'a>, srcs: &[Operand], ty: ScalarType) -> Result<()> {
        let Target::Wide { address, offset, .. } = self.target(instr, 0)? else {
            return self.unsupported(instr, "a 32-byte access in this state space");
        };
        let level_two = second_level(instr);
        let mask = stored_words(srcs, ty);
        let op = Op::StgWide { access: access(instr, MemSize::B32, offset), level_two, mask };
        if !self.encodes(&op) {
            return self.unsupported(instr, "a 32-byte access on this target");
        }
        // In each group of registers, the stored ones come first.
        let group = |srcs: &[Operand]| {
            let mut group = srcs.to_vec();
            group.sort_by_key(|src| *src == Operand::Sink);
            group
        };
        let (low, high) = srcs.split_at(srcs.len() / 2);
        let (low, high) = (self.stored(&group(low), ty)?, self.stored(&group(high), ty)?);
        if instr.has(Mod::Release) {
            self.release(scope(instr).unwrap_or(Scope::Sys));
        }
        let descriptor = self.descriptor_of(instr)?;
        self.effect(op, &[address, descriptor, low, high]);
        Ok(())
    }

    fn load_operation(
        &mut self,
        instr: &Statement<'a>,
        target: Target,
        size: MemSize,
    ) -> Result<(Op, Vec<Src>)> {
        if let Some((bank, index, offset)) = target.in_bank() {
            ignore_order(instr);
            return Ok((Op::Ldc { size, bank, offset }, vec![index]));
        }
        Ok(match target {
            Target::Wide { address, offset, generic } => {
                let access = access(instr, size, offset);
                let descriptor = self.descriptor_of(instr)?;
                let op = if generic { Op::Ld { access } } else { Op::Ldg { access } };
                (op, vec![address, descriptor])
            }
            Target::Shared { address, base, offset } => (
                Op::Lds { size, order: shared_order(instr), scale: AddressScale::One, offset },
                vec![address, base],
            ),
            Target::Local { address, offset } => {
                ignore_order(instr);
                (Op::Ldl { size, offset }, vec![address])
            }
            _ => return self.unsupported(instr, "a load from this state space"),
        })
    }

    /// Loads four words at an index of a constant bank. No load of constants is that wide.
    fn indexed_words(&mut self, bank: u8, index: Src, offset: i32) -> Vec<Src> {
        let word = |i| {
            let value = self.new_value(File::R, 1);
            let op = Op::Ldc { size: MemSize::B32, bank, offset: offset + 4 * i };
            self.guarded(op, &[Dst::Value(value)], &[index], &[Src::UNDEF]);
            Src::from(value)
        };
        (0..4).map(word).collect()
    }

    /// The words at a known offset of a constant bank, if operands can name them.
    fn constant_words(bank: u8, offset: u16, ty: ScalarType, count: usize) -> Option<Vec<Src>> {
        let bits = ty.bits() as usize * count;
        if !bits.is_multiple_of(32) || !offset.is_multiple_of(4) {
            return None;
        }
        // As with ptxas, accesses outside the bank begin again at its start.
        let word = |i| Src::constant(bank, offset.wrapping_add(4 * i as u16));
        Some((0..bits / 32).map(word).collect())
    }

    /// Whether the destination takes the bits of memory unchanged.
    fn takes(&self, dst: &Operand, ty: ScalarType) -> bool {
        match dst {
            Operand::Reg(reg) => self.register_type(*reg).is_ok_and(|r| registers(r) == registers(ty)),
            _ => true,
        }
    }

    /// The old values of the destinations, packed as one value.
    pub(super) fn kept(&mut self, dsts: &[Operand], ty: ScalarType) -> Result<Src> {
        let mut words = Vec::new();
        for dst in dsts {
            let src = match dst {
                Operand::Reg(reg) => self.read_register(*reg)?,
                _ => Src::UNDEF,
            };
            words.extend((0..registers(ty)).map(|i| self.word(src, i, registers(ty))));
        }
        Ok(match words[..] {
            [word] => word,
            _ if words.iter().all(|w| *w == Src::UNDEF) => Src::UNDEF,
            _ => self.pack(&words),
        })
    }

    /// Writes loaded words to the elements, extended to the registers' size.
    pub(super) fn write_elements(&mut self, dsts: &[Operand], words: &[Src], ty: ScalarType) -> Result<()> {
        for (i, dst) in dsts.iter().enumerate() {
            let src = match ty.bits() {
                bits @ (8 | 16) if dsts.len() > 1 => {
                    let at = i as u32 * bits;
                    let word = words[(at / 32) as usize];
                    let part = self.shift_right_by(word, Src::imm(at % 32), false);
                    self.extend(part, ty)
                }
                64.. => {
                    let count = registers(ty) as usize;
                    self.pack(&words[count * i..count * (i + 1)])
                }
                _ => words[i],
            };
            let src = self.widen_to(dst, src, ty)?;
            self.write(dst, src)?;
        }
        Ok(())
    }

    /// A loaded element, extended to the size of a wider destination.
    pub(super) fn widen_to(&mut self, dst: &Operand, src: Src, ty: ScalarType) -> Result<Src> {
        let Operand::Reg(reg) = dst else { return Ok(src) };
        let (have, want) = (registers(ty), registers(self.register_type(*reg)?));
        if want == have {
            return Ok(src);
        }
        if want < have {
            return self.malformed(format!("a {}-bit element for register {}", ty.bits(), reg.0));
        }
        let mut words: Vec<Src> = (0..have).map(|i| self.word(src, i, have)).collect();
        let last = words[have as usize - 1];
        let high = if ty.is_signed() { self.shift_right(last, 31, true) } else { Src::ZERO };
        words.resize(want as usize, high);
        Ok(self.pack(&words))
    }

    /// `st`.
    pub(super) fn store(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let srcs = elements(instr, self.operand(instr, 1)?);
        if srcs.len() * ty.bytes() as usize == WIDE {
            return self.store_wide(instr, srcs, ty);
        }
        let size = match self.memory_size(instr, ty, srcs.len())? {
            MemSize::S8 => MemSize::U8,
            MemSize::S16 => MemSize::U16,
            size => size,
        };
        let target = self.target(instr, 0)?;
        if let Target::Parameter { symbol, offset } = target {
            ignore_order(instr);
            for (i, src) in srcs.iter().enumerate() {
                let value = self.read(src, ty)?;
                let at = offset.saturating_add(i as i64 * i64::from(ty.bytes()));
                self.set_parameter(symbol, at, ty, value);
            }
            return Ok(());
        }
        let data = self.stored(srcs, ty)?;
        if instr.has(Mod::Release) {
            self.release(scope(instr).unwrap_or(Scope::Sys));
        }
        match target {
            Target::Wide { address, offset, generic } => {
                let access = access(instr, size, offset);
                let descriptor = self.descriptor_of(instr)?;
                let op = if generic { Op::St { access } } else { Op::Stg { access } };
                self.effect(op, &[address, descriptor, data]);
            }
            Target::Shared { address, base, offset } => self.effect(
                Op::Sts { size, order: shared_order(instr), scale: AddressScale::One, offset },
                &[address, base, data],
            ),
            Target::Local { address, offset } => {
                ignore_order(instr);
                self.effect(Op::Stl { size, offset }, &[address, data]);
            }
            Target::Constant { .. } | Target::Indexed { .. } | Target::Parameter { .. } => {
                return self.unsupported(instr, "a store to constant memory");
            }
        }
        Ok(())
    }

    /// The registers that a store writes to memory.
    pub(super) fn stored(&mut self, srcs: &[Operand], ty: ScalarType) -> Result<Src> {
        let read = |s: &Operand, this: &mut Self| match s {
            Operand::Sink if ty.bits() >= 32 => Ok(Src::UNDEF),
            s => this.read(s, ty),
        };
        let values = srcs.iter().map(|s| read(s, self)).collect::<Result<Vec<Src>>>()?;
        let mut words = Vec::new();
        match ty.bits() {
            8 | 16 if values.len() > 1 => {
                let per_word = 32 / ty.bits() as usize;
                for chunk in values.chunks(per_word) {
                    words.push(self.pack_small(chunk, ty));
                }
            }
            _ => {
                for value in values {
                    words.extend((0..registers(ty)).map(|i| self.word(value, i, registers(ty))));
                }
            }
        }
        Ok(if words.len() == 1 { words[0] } else { self.pack(&words) })
    }

    /// Up to four bytes or two halves in one register.
    fn pack_small(&mut self, values: &[Src], ty: ScalarType) -> Src {
        if ty.bits() == 16 {
            return self.halves_of(values[0], values.get(1).copied().unwrap_or(Src::ZERO));
        }
        let byte = |i: usize| values.get(i).copied().unwrap_or(Src::ZERO);
        let low = self.reg(Op::Prmt, &[byte(0), Src::imm(0x0040), byte(1)]);
        if values.len() <= 2 {
            return low;
        }
        let high = self.reg(Op::Prmt, &[byte(2), Src::imm(0x0040), byte(3)]);
        self.halves_of(low, high)
    }

    /// After an acquire: invalidates the cache, which may lack the writes of other blocks.
    fn acquire(&mut self, instr: &Statement<'_>) {
        if scope(instr).unwrap_or(Scope::Sys) > Scope::Cta {
            self.effect(Op::Cctl { op: CctlOp::Ivall }, &[]);
        }
    }

    /// The fences before a releasing write.
    pub(super) fn release(&mut self, scope: Scope) {
        let all = match scope {
            Scope::Cta => MembarScope::AllCta,
            Scope::Gpu => MembarScope::AllGpu,
            Scope::Sys => MembarScope::AllSys,
        };
        self.effect(Op::Membar { scope: all }, &[]);
        if scope > Scope::Cta {
            self.effect(Op::Errbar, &[]);
        }
    }

    /// The fence before an atomic operation that releases.
    pub(super) fn release_before(&mut self, instr: &Statement<'_>) {
        if instr.has(Mod::Release) || instr.has(Mod::AcqRel) {
            self.release(scope(instr).unwrap_or(Scope::Gpu));
        }
    }

    pub(super) fn acquire_after(&mut self, instr: &Statement<'_>) {
        let wide = scope(instr).unwrap_or(Scope::Gpu) > Scope::Cta;
        if wide && (instr.has(Mod::Acquire) || instr.has(Mod::AcqRel)) {
            self.effect(Op::Cctl { op: CctlOp::Ivall }, &[]);
        }
    }

    /// `membar` and `fence`.
    pub(super) fn fence(&mut self, instr: &Statement<'a>) -> Result<()> {
        let Some(scope) = scope(instr) else { return self.unsupported(instr, "a fence without a scope") };
        // `membar` and a fence without a name are `.sc`.
        let weak = matches!(
            instr.any_of(&[Mod::Sc, Mod::AcqRel, Mod::Acquire, Mod::Release]),
            Some(Mod::AcqRel | Mod::Acquire | Mod::Release)
        );
        let barrier = match (scope, weak) {
            (Scope::Cta, true) => MembarScope::AllCta,
            (Scope::Gpu, true) => MembarScope::AllGpu,
            (Scope::Sys, true) => MembarScope::AllSys,
            (Scope::Cta, false) => MembarScope::Cta,
            (Scope::Gpu, false) => MembarScope::Gpu,
            (Scope::Sys, false) => MembarScope::Sys,
        };
        // A fence that only acquires waits for the loads before it, because every `CCTL` does.
        let (releases, acquires) = (!instr.has(Mod::Acquire), !instr.has(Mod::Release));
        if releases || scope == Scope::Cta {
            self.effect(Op::Membar { scope: barrier }, &[]);
        }
        if releases && scope > Scope::Cta {
            self.effect(Op::Errbar, &[]);
        }
        if acquires && scope > Scope::Cta {
            self.effect(Op::Cctl { op: CctlOp::Ivall }, &[]);
        }
        Ok(())
    }
}
