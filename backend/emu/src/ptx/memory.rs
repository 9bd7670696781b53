//! Loads, stores, atomics, and conversions between addresses of a state space and generic addresses.

use super::arithmetic::{ty, unsupported};
use super::decode::{SHARED_BASE, extend, ones};
use super::link::DataPlace;
use super::matrix::parts;
use super::wide::wide_number;
use super::{Block, Step, WARP, Warp, each};
use crate::float::{BF16, F16, F32, F64, Format, Rounding};
use crate::launch::FaultKind;
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, Space, View, in_window, space_of};
use ptx_backend::input::{Address, AddressBase, Instr, Operand, Symbol};
use ptx_isa::{FormId, Mod, ScalarType};

/// The destination of a PTX access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Memory(Space),
    Constant,
    Param,
}

fn place(instr: &Instr) -> Where {
    let op = &instr.opcode;
    let has = |mods: &[Mod]| mods.iter().any(|&m| op.has(m));
    match () {
        () if has(&[Mod::Global]) || op.form == FormId::Ldu => Where::Memory(Space::Global),
        () if has(&[Mod::Shared, Mod::SharedCta]) => Where::Memory(Space::Shared),
        () if has(&[Mod::SharedCluster]) => Where::Memory(Space::Cluster),
        () if has(&[Mod::Local]) => Where::Memory(Space::Local),
        () if has(&[Mod::Const]) => Where::Constant,
        () if has(&[Mod::Param, Mod::ParamEntry]) => Where::Param,
        () => Where::Memory(Space::Generic),
    }
}

/// The state space that an instruction on shared memory names.
pub(super) fn space(instr: &Instr) -> Space {
    match place(instr) {
        Where::Memory(space) => space,
        _ => Space::Generic,
    }
}

impl Block<'_> {
    pub(super) fn view(&mut self, w: usize, lane: usize) -> View<'_> {
        let Warp { local, local_written, .. } = &mut self.warps[w];
        let local = &mut local[lane][..];
        View {
            global: &mut self.device.global,
            shared: &mut self.shared,
            shared_written: &mut self.shared_written,
            reserved: &mut [],
            reserved_base: 0,
            rank: self.cluster.rank(),
            shared_base: SHARED_BASE,
            local_end: local.len() as u64,
            local_low: 0,
            local,
            local_written: &mut local_written[lane],
        }
    }

    pub(super) fn memory(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        match instr.opcode.form {
            // The multicast address refers to a single device, so a reduction over all devices is the value on this
            // device.
            FormId::Ld | FormId::Ldu | FormId::MultimemLdReduce => self.load(w, pc, mask, instr),
            FormId::St | FormId::MultimemSt | FormId::StAsyncRelease => self.store(w, pc, mask, instr),
            FormId::Atom
            | FormId::AtomVector
            | FormId::Red
            | FormId::RedVector
            | FormId::RedAsyncRelease
            | FormId::MultimemRed => self.atomic(w, pc, mask, instr),
            FormId::Cvta => self.cvta(w, pc, mask, instr),
            _ => self.is_space(w, mask, instr),
        }
    }

    /// The destination of an access. Parameters of device functions and of calls are in the thread's frame.
    fn place(&self, pc: u32, instr: &Instr, address: &Operand) -> Where {
        let place = place(instr);
        if place == Where::Memory(Space::Generic) {
            return Where::Memory(self.named_space(address).unwrap_or(Space::Generic));
        }
        if place != Where::Param {
            return place;
        }
        let framed = match address {
            Operand::Address(address) => match address.base {
                AddressBase::Symbol(symbol) => matches!(self.program.place(symbol), DataPlace::Frame(_)),
                _ => self.program.is_called(pc) && !instr.opcode.has(Mod::ParamEntry),
            },
            _ => false,
        };
        if framed { Where::Memory(Space::Local) } else { place }
    }

    /// The state space of the variable in an access without a state space, unless it is global. Such a name is not a
    /// generic address.
    fn named_space(&self, address: &Operand) -> Option<Space> {
        let (Operand::Address(Address { base: AddressBase::Symbol(symbol), .. })
        | Operand::Symbol(symbol, _)) = *address
        else {
            return None;
        };
        match self.program.place(symbol) {
            DataPlace::Shared(_) => Some(Space::Shared),
            DataPlace::Frame(_) => Some(Space::Local),
            DataPlace::Fixed(_) | DataPlace::Nowhere => None,
        }
    }

    fn load(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        let t = ty(&instr.opcode, 0)?;
        let parts = parts(&instr.operands[0]);
        let size = t.bytes();
        let place = self.place(pc, instr, &instr.operands[1]);
        for lane in each(mask) {
            let address = self.address(w, lane, &instr.operands[1])?;
            let total = size * parts.len() as u32;
            let mut bytes = [0; 64];
            let bytes = &mut bytes[..total as usize];
            match place {
                Where::Memory(space) => {
                    bytes.copy_from_slice(self.view(w, lane).read(space, address, total)?);
                    self.race(w, instr, (space, address), bytes, None)?;
                }
                Where::Constant | Where::Param => {
                    let address = in_window(address);
                    let module = self.device.constant_bytes().len() as u64;
                    let (memory, space, base) = match place {
                        Where::Constant if address >= module => {
                            (&self.program.code.constants[..], "constant", module)
                        }
                        Where::Constant => (self.device.constant_bytes(), "constant", 0),
                        _ => (&self.launch.params[..], "param", 0),
                    };
                    if !address.is_multiple_of(total.next_power_of_two().into()) {
                        return Err(FaultKind::Misaligned { space, address, size: total });
                    }
                    let start = (address - base) as usize;
                    let found = memory.get(start..start.saturating_add(bytes.len()));
                    bytes.copy_from_slice(found.ok_or(FaultKind::OutOfBounds {
                        space,
                        address,
                        size: total,
                    })?);
                }
            }
            let mut values = [0; 8];
            for (value, chunk) in values.iter_mut().zip(bytes.chunks(size as usize)) {
                *value = wide_number(chunk);
            }
            for (d, value) in parts.iter().zip(values) {
                self.put_wide(w, lane, d, t, value)?;
            }
        }
        Ok(())
    }

    fn store(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        let t = ty(&instr.opcode, 0)?;
        let parts = parts(&instr.operands[1]);
        let size = t.bytes();
        let Where::Memory(space) = self.place(pc, instr, &instr.operands[0]) else {
            return unsupported(instr);
        };
        // For an element `_`, the memory is unchanged.
        let gather = |part: &Operand| match part {
            Operand::Sink => Ok(None),
            part => self.gather_wide(w, mask, part, t).map(Some),
        };
        let values: Vec<Option<[u128; WARP]>> = parts.iter().map(gather).collect::<Step<_>>()?;
        for lane in each(mask) {
            let address = self.address(w, lane, &instr.operands[0])?;
            let mut bytes = [0; 64];
            let bytes = &mut bytes[..size as usize * parts.len()];
            let mut view = self.view(w, lane);
            let place = view.slice(space, address, bytes.len() as u32)?;
            let mut before = [0; 64];
            let before = &mut before[..place.len()];
            before.copy_from_slice(place);
            bytes.copy_from_slice(place);
            for (value, bytes) in values.iter().zip(bytes.chunks_mut(size as usize)) {
                if let Some(value) = value {
                    bytes.copy_from_slice(&value[lane].to_le_bytes()[..size as usize]);
                }
            }
            place.copy_from_slice(bytes);
            self.race(w, instr, (space, address), before, Some(bytes))?;
        }
        Ok(())
    }

    fn atomic(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        self.races.publish();
        let t = ty(&instr.opcode, 0)?;
        // A reduction has no destination operand.
        let at = usize::from(matches!(instr.opcode.form, FormId::Atom | FormId::AtomVector));
        let Where::Memory(space) = self.place(pc, instr, &instr.operands[at]) else {
            return unsupported(instr);
        };
        let gather = |i: usize| -> Step<Vec<[u128; WARP]>> {
            parts(&instr.operands[i]).iter().map(|part| self.gather_wide(w, mask, part, t)).collect()
        };
        let b = gather(at + 1)?;
        let c = if instr.opcode.has(Mod::Cas) { gather(at + 2)? } else { vec![[0; WARP]; b.len()] };
        let size = t.bytes() as usize;
        for lane in each(mask) {
            let address = self.address(w, lane, &instr.operands[at])?;
            let resolved = if space == Space::Generic { space_of(address) } else { space };
            let mut view = self.view(w, lane);
            // Each element of a vector is a separate operation.
            let total = (size * b.len()) as u32;
            let old = view.read(space, address, total)?.to_vec();
            let mut new = Vec::new();
            for ((old, b), c) in old.chunks(size).zip(&b).zip(&c) {
                let old = wide_number(old);
                let value = match () {
                    () if instr.opcode.has(Mod::Exch) => b[lane],
                    () if instr.opcode.has(Mod::Cas) && old == b[lane] => c[lane],
                    () if instr.opcode.has(Mod::Cas) => old,
                    () if size > 8 => return unsupported(instr),
                    () => update(instr, t, resolved == Space::Global, old as u64, b[lane] as u64)?.into(),
                };
                new.extend(&value.to_le_bytes()[..size]);
            }
            view.slice(space, address, total)?.copy_from_slice(&new);
            if at == 1 {
                for (d, old) in parts(&instr.operands[0]).iter().zip(old.chunks(size)) {
                    self.put_wide(w, lane, d, t, wide_number(old))?;
                }
            }
        }
        Ok(())
    }

    /// The generic address of the start of a state space.
    fn window(&self, instr: &Instr) -> Step<u64> {
        let op = &instr.opcode;
        Ok(match () {
            () if op.has(Mod::Global) => 0,
            () if op.has(Mod::Shared) || op.has(Mod::SharedCta) || op.has(Mod::SharedCluster) => {
                SHARED_WINDOW
            }
            () if op.has(Mod::Local) => LOCAL_WINDOW,
            () if op.has(Mod::Const) => self.device.constants(),
            () if op.has(Mod::Param) || op.has(Mod::ParamEntry) => PARAM_WINDOW,
            () => return unsupported(instr),
        })
    }

    fn cvta(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        let t = ty(&instr.opcode, 0)?;
        let window = self.window(instr)?;
        let to = instr.opcode.has(Mod::To);
        // A parameter of a device function is not among the kernel's parameters, to which the PTX refers.
        let is_own = matches!(instr.operands[1], Operand::Symbol(Symbol::Param(_), _));
        if is_own && self.program.is_called(pc) {
            return unsupported(instr);
        }
        self.map1(w, mask, instr, t, t, |a| {
            Ok(if to { a.wrapping_sub(window) } else { a.wrapping_add(window) })
        })
    }

    fn is_space(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let start = self.device.constants();
        let constants = start..start + self.device.constant_bytes().len() as u64;
        if op.has(Mod::Param) || op.has(Mod::ParamEntry) {
            let parameters = PARAM_WINDOW..PARAM_WINDOW + self.launch.params.len() as u64;
            let (pred, address) = (ScalarType::Pred, ScalarType::U64);
            return self.map1(w, mask, instr, pred, address, |a| Ok(parameters.contains(&a).into()));
        }
        let wanted = match () {
            () if op.has(Mod::Const) => None,
            () if op.has(Mod::Global) => Some(Space::Global),
            () if op.has(Mod::Shared) || op.has(Mod::SharedCta) || op.has(Mod::SharedCluster) => {
                Some(Space::Shared)
            }
            () if op.has(Mod::Local) => Some(Space::Local),
            () => return unsupported(instr),
        };
        // Constants may be in a buffer, but not in another state space.
        let space = |a| Some(space_of(a)).filter(|_| !constants.contains(&a));
        self.map1(w, mask, instr, ScalarType::Pred, ScalarType::U64, |a| Ok((space(a) == wanted).into()))
    }
}

/// The new value in memory after an atomic operation that computes.
pub(super) fn update(instr: &Instr, t: ScalarType, global: bool, old: u64, b: u64) -> Step<u64> {
    let op = &instr.opcode;
    let (x, y) = (extend(old, t), extend(b, t));
    let half = |format: Format, x: u64, y: u64| match () {
        () if op.has(Mod::Add) => format.add(x & 0xffff, y & 0xffff, Rounding::Nearest),
        () => format.extremum(x & 0xffff, y & 0xffff, op.has(Mod::Max), false),
    };
    let halves = |format| half(format, x >> 16, y >> 16) << 16 | half(format, x, y);
    let less = if t.is_signed() { (x as i64) < y as i64 } else { x < y };
    let format = match t {
        ScalarType::F16 | ScalarType::F16x2 => Some(F16),
        ScalarType::Bf16 | ScalarType::Bf16x2 => Some(BF16),
        _ => None,
    };
    if let Some(format) = format {
        return match t.bits() {
            _ if ![Mod::Add, Mod::Min, Mod::Max].into_iter().any(|m| op.has(m)) => unsupported(instr),
            16 => Ok(half(format, x, y)),
            _ => Ok(halves(format)),
        };
    }
    Ok(match () {
        () if op.has(Mod::And) => x & y,
        () if op.has(Mod::Or) => x | y,
        () if op.has(Mod::Xor) => x ^ y,
        () if op.has(Mod::Inc) => {
            if x >= y {
                0
            } else {
                x + 1
            }
        }
        () if op.has(Mod::Dec) => {
            if x == 0 || x > y {
                y
            } else {
                x - 1
            }
        }
        () if op.has(Mod::Min) => {
            if less {
                x
            } else {
                y
            }
        }
        () if op.has(Mod::Max) => {
            if less {
                y
            } else {
                x
            }
        }
        () if op.has(Mod::Add) => match t {
            // The adder of global memory flushes subnormal numbers.
            ScalarType::F32 if global => F32.flush(F32.add(F32.flush(x), F32.flush(y), Rounding::Nearest)),
            ScalarType::F32 => F32.add(x, y, Rounding::Nearest),
            ScalarType::F64 => F64.add(x, y, Rounding::Nearest),
            _ => x.wrapping_add(y) & ones(t.bits()),
        },
        () => return unsupported(instr),
    })
}
