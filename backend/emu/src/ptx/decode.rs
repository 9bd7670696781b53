//! Prepares the program for interpretation: links functions, lays out variables, resolves operands.

use super::link::{Code, DataPlace, Linked};
use super::{Block, Module, Step, WARP, Warp};
use crate::device::Device;
use crate::launch::{Fault, FaultKind, Launch};
use ptx_backend::input::{Address, AddressBase, Env, Function, Instr, Operand, Part, RegId, Symbol};
use ptx_isa::{ScalarType, Space, SpecialReg};

/// The address of the first shared variable in the block's shared memory.
pub(super) const SHARED_BASE: u64 = 0;

pub(super) struct Program<'a> {
    pub(super) env: &'a Env,
    pub(super) code: Code,
    shared_globals: Vec<Option<u64>>,
    pub(super) shared_bytes: u32,
    /// Addresses of module-scope variables.
    globals: Vec<Option<u64>>,
}

pub(super) const fn ones(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The bits of a value, sign-extended if its type is signed.
pub(super) fn extend(value: u64, ty: ScalarType) -> u64 {
    let unused = 64 - ty.bits().min(64);
    if ty.is_signed() { ((value << unused) as i64 >> unused) as u64 } else { value & ones(ty.bits()) }
}

impl<'a> Program<'a> {
    pub(super) fn load(
        module: &Module<'a>,
        kernel: &Function,
        device: &Device,
        launch: &Launch,
    ) -> Result<Program<'a>, Fault> {
        let env = module.env;
        let mut shared_globals = vec![None; env.variables.len()];
        let mut shared = 0;
        for (variable, place) in env.variables.iter().zip(&mut shared_globals) {
            if variable.space == Space::Shared && variable.size > 0 {
                let start = u64::next_multiple_of(shared, u64::from(variable.align.max(1)));
                shared = start + variable.size;
                *place = Some(start);
            }
        }
        let mut code = Code::link(module, kernel, shared, device.constant_bytes().len() as u64);
        let first = code.params.len() - kernel.params.len();
        for &(param, handle) in &device.parameters {
            code.params[first + param as usize] = DataPlace::Fixed(handle);
        }
        let unsized_globals =
            |i: &usize| env.variables[*i].space == Space::Shared && env.variables[*i].size == 0;
        let dynamic: Vec<usize> = (0..env.variables.len()).filter(unsized_globals).collect();
        let mut end = code.shared_bytes;
        if !dynamic.is_empty() || !code.dynamic.is_empty() {
            let aligns = dynamic.iter().map(|&i| u64::from(env.variables[i].align));
            end = end.next_multiple_of(aligns.fold(code.dynamic_align.max(128), u64::max));
        }
        dynamic.iter().for_each(|&i| shared_globals[i] = Some(end));
        std::mem::take(&mut code.dynamic).into_iter().for_each(|i| code.locals[i] = DataPlace::Shared(end));
        let params = code.param_bytes;
        if launch.params.len() < params as usize {
            return Err(FaultKind::Malformed(format!("the kernel takes {params} bytes of parameters")).at(0));
        }
        let globals = (0..env.variables.len()).map(|i| device.place(i)).collect();
        Ok(Program { env, code, shared_globals, shared_bytes: end as u32, globals })
    }

    /// The kernel itself.
    pub(super) fn kernel(&self) -> &Linked {
        self.code.functions.last().expect("the kernel is linked last")
    }

    pub(super) fn registers(&self) -> usize {
        self.code.registers.len()
    }

    pub(super) fn register_types(&self) -> impl Iterator<Item = ScalarType> + '_ {
        self.code.registers.iter().copied()
    }

    pub(super) fn bits(&self, register: RegId) -> u32 {
        self.code.registers[register.0 as usize].bits()
    }

    pub(super) fn name(&self, register: usize) -> String {
        let owner = self.code.functions.iter().find(|function| function.registers.contains(&register));
        let number = register - owner.map_or(0, |function| function.registers.start);
        format!("register {number} of type {}", self.code.registers[register].text())
    }

    pub(super) fn instr(&self, pc: u32) -> Option<&Instr> {
        self.code.instructions.get(pc as usize)
    }

    /// The instruction at which threads wait.
    pub(super) fn instr_at(&self, pc: u32) -> Result<&Instr, FaultKind> {
        self.instr(pc).ok_or_else(|| FaultKind::Malformed("threads wait where no instruction is".into()))
    }

    /// A fault at a position.
    pub(super) fn fault(&self, pc: u32, kind: FaultKind) -> Fault {
        let owner = self.code.owner.get(pc as usize).map(|&index| &self.code.functions[index as usize]);
        let function = owner.and_then(|function| function.name.clone());
        Fault { function, ..kind.at(self.instr(pc).map_or(0, |instr| instr.src.0 as usize)) }
    }

    /// Whether an instruction belongs to a device function.
    pub(super) fn is_called(&self, pc: u32) -> bool {
        self.code.owner.get(pc as usize).is_some_and(|&i| self.code.functions[i as usize].name.is_some())
    }

    /// The part of a register that an operand of a video instruction uses.
    pub(super) fn part(&self, pc: u32, operand: u8) -> Option<Part> {
        self.code.parts.get(&(pc, operand)).copied()
    }

    pub(super) fn label(&self, operand: &Operand) -> Step<u32> {
        match operand {
            Operand::Label(label) => Ok(self.code.labels[label.0 as usize]),
            _ => Err(FaultKind::Malformed("a branch to no label".into())),
        }
    }

    /// The positions of the labels in a list.
    pub(super) fn targets(&self, operand: &Operand) -> Step<Vec<u32>> {
        match operand {
            Operand::Targets(list) => Ok(self.code.targets[*list as usize]
                .iter()
                .map(|label| self.code.labels[label.0 as usize])
                .collect()),
            _ => Err(FaultKind::Malformed("no list of labels".into())),
        }
    }

    /// The address of a variable in its own state space, or of a function in code.
    pub(super) fn place(&self, symbol: Symbol) -> DataPlace {
        let fixed = |address: Option<u64>| address.map_or(DataPlace::Nowhere, DataPlace::Fixed);
        match symbol {
            Symbol::Global(i) => match self.env.variables[i as usize].space {
                Space::Shared => {
                    self.shared_globals[i as usize].map_or(DataPlace::Nowhere, DataPlace::Shared)
                }
                Space::Local => {
                    self.code.module_locals.get(i as usize).copied().unwrap_or(DataPlace::Nowhere)
                }
                _ => fixed(self.globals[i as usize]),
            },
            Symbol::Local(i) => self.code.locals[i as usize],
            Symbol::Param(i) => self.code.params[i as usize],
            Symbol::Return(i) => self.code.returns[i as usize],
            Symbol::Function(i) => DataPlace::Fixed(crate::device::code_address(i)),
        }
    }
}

fn nowhere() -> FaultKind {
    FaultKind::Unsupported("the address of a variable of this kind".into())
}

/// A source operand, resolved for a warp.
#[derive(Clone, Copy)]
pub(super) enum Value {
    /// The index of lane 0's value, and the bits to keep.
    Register(usize, u64),
    NotPredicate(usize),
    /// The index of a register, the number added to its value, the bits of the register, and the bits to keep.
    Sum(usize, u64, u64, u64),
    Constant(u64),
    /// An address in the thread's frame, and the bits to keep.
    Frame(u64, u64),
    /// One value for each lane.
    Special(SpecialReg),
}

impl Block<'_> {
    /// Resolves an operand that is read with a type.
    pub(super) fn value(&self, operand: &Operand, ty: ScalarType) -> Step<Value> {
        let mask = ones(ty.bits());
        Ok(match operand {
            Operand::Reg(register) => Value::Register(register.0 as usize * WARP, mask),
            Operand::NotPred(register) => Value::NotPredicate(register.0 as usize * WARP),
            Operand::Sum(register, addend) => {
                let own = ones(self.program.bits(*register));
                Value::Sum(register.0 as usize * WARP, *addend as u64, own, mask)
            }
            Operand::Int(value) if ty == ScalarType::F64 => Value::Constant((*value as f64).to_bits()),
            Operand::Int(value) if ty == ScalarType::F32 => Value::Constant((*value as f32).to_bits().into()),
            Operand::Int(value) if ty == ScalarType::Pred => Value::Constant(u64::from(*value != 0)),
            Operand::Int(value) => Value::Constant(*value as u64 & mask),
            Operand::F64(bits) if ty.bits() == 32 => {
                Value::Constant((f64::from_bits(*bits) as f32).to_bits().into())
            }
            Operand::F64(bits) if ty.bits() == 64 => Value::Constant(*bits),
            Operand::F32(bits) if ty.bits() == 64 => {
                Value::Constant(f64::from(f32::from_bits(*bits)).to_bits())
            }
            Operand::F32(bits) if ty.bits() == 32 => Value::Constant((*bits).into()),
            Operand::Symbol(symbol, offset) => match self.program.place(*symbol) {
                DataPlace::Fixed(start) => Value::Constant(start.wrapping_add(*offset as u64) & mask),
                DataPlace::Shared(start) => {
                    let start = start | self.cluster.base();
                    Value::Constant(start.wrapping_add(*offset as u64) & mask)
                }
                DataPlace::Frame(start) => Value::Frame(start.wrapping_add(*offset as u64), mask),
                DataPlace::Nowhere => return Err(nowhere()),
            },
            Operand::Special(register) => Value::Special(*register),
            // ptxas uses the first element of a vector as the value.
            Operand::Vector(elements) if !elements.is_empty() => self.value(&elements[0], ty)?,
            other => return Err(FaultKind::Unsupported(format!("the operand {other:?}"))),
        })
    }

    /// Returns a fault if a strict run reads a register that a lane never wrote.
    pub(super) fn is_written(&self, w: usize, register: usize, lanes: u32) -> Step<()> {
        self.warps[w].products.is_free(register)?;
        if self.launch.strict && lanes & !self.warps[w].written[register] != 0 {
            return Err(FaultKind::Unwritten(self.program.name(register)));
        }
        Ok(())
    }

    pub(super) fn get(&self, w: usize, lane: usize, value: Value) -> Step<u64> {
        if let Value::Register(base, _) | Value::NotPredicate(base) | Value::Sum(base, ..) = value {
            self.is_written(w, base / WARP, 1 << lane)?;
        }
        Ok(match value {
            Value::Register(base, mask) => self.warps[w].registers[base + lane] & mask,
            Value::NotPredicate(base) => 1 ^ self.warps[w].registers[base + lane],
            Value::Sum(base, addend, own, mask) => {
                self.warps[w].registers[base + lane].wrapping_add(addend) & own & mask
            }
            Value::Constant(value) => value,
            Value::Frame(offset, mask) => self.warps[w].frame[lane].wrapping_add(offset) & mask,
            Value::Special(register) => self.special(&self.warps[w], lane, register)?,
        })
    }

    /// The values in all lanes of a mask; zero in other lanes.
    pub(super) fn gather(&self, w: usize, mask: u32, operand: &Operand, ty: ScalarType) -> Step<[u64; WARP]> {
        let value = self.value(operand, ty)?;
        let mut values = [0; WARP];
        for lane in super::each(mask) {
            values[lane] = self.get(w, lane, value)?;
        }
        Ok(values)
    }

    /// Writes a result to a register that is at least as wide. The result is extended as its type requires.
    pub(super) fn put(
        &mut self,
        w: usize,
        lane: usize,
        operand: &Operand,
        ty: ScalarType,
        value: u64,
    ) -> Step<()> {
        match operand {
            Operand::Vector(elements) => {
                elements.iter().try_for_each(|element| self.put(w, lane, element, ty, value))
            }
            Operand::Reg(register) => {
                let value = extend(value, ty) & ones(self.program.bits(*register));
                self.warps[w].products.is_free(register.0 as usize)?;
                self.warps[w].products.write(register.0 as usize);
                self.warps[w].registers[register.0 as usize * WARP + lane] = value;
                self.warps[w].written[register.0 as usize] |= 1 << lane;
                Ok(())
            }
            Operand::Sink => Ok(()),
            other => Err(FaultKind::Unsupported(format!("the destination {other:?}"))),
        }
    }

    /// The address of an operand in a lane, in the state space of the access.
    pub(super) fn address(&self, w: usize, lane: usize, operand: &Operand) -> Step<u64> {
        let address = match *operand {
            Operand::Address(address) => address,
            // In some forms, the address has no brackets.
            Operand::Reg(register) => Address { base: AddressBase::Reg(register), offset: 0 },
            Operand::Sum(register, offset) => Address { base: AddressBase::Reg(register), offset },
            Operand::Symbol(symbol, offset) => Address { base: AddressBase::Symbol(symbol), offset },
            Operand::Int(offset) => Address { base: AddressBase::Absolute, offset },
            _ => return Err(FaultKind::Malformed("no address".into())),
        };
        let base = match address.base {
            AddressBase::Reg(register) => {
                self.is_written(w, register.0 as usize, 1 << lane)?;
                self.warps[w].registers[register.0 as usize * WARP + lane]
            }
            AddressBase::Symbol(symbol) => match self.program.place(symbol) {
                DataPlace::Fixed(start) => start,
                DataPlace::Shared(start) => start | self.cluster.base(),
                DataPlace::Frame(start) => self.warps[w].frame[lane] + start,
                DataPlace::Nowhere => return Err(nowhere()),
            },
            AddressBase::Absolute => 0,
        };
        Ok(base.wrapping_add(address.offset as u64))
    }

    fn special(&self, warp: &Warp, lane: usize, register: SpecialReg) -> Step<u64> {
        use SpecialReg::*;
        let number = warp.first + lane as u32;
        let tid = self.launch.thread(number);
        let cluster = self.launch.cluster_extent();
        let value = match register {
            TidX => tid[0],
            TidY => tid[1],
            TidZ => tid[2],
            NtidX => self.launch.block[0],
            NtidY => self.launch.block[1],
            NtidZ => self.launch.block[2],
            CtaidX => self.ctaid[0],
            CtaidY => self.ctaid[1],
            CtaidZ => self.ctaid[2],
            NctaidX => self.launch.grid[0],
            NctaidY => self.launch.grid[1],
            NctaidZ => self.launch.grid[2],
            ClusteridX => self.ctaid[0] / cluster[0],
            ClusteridY => self.ctaid[1] / cluster[1],
            ClusteridZ => self.ctaid[2] / cluster[2],
            NclusteridX => self.launch.grid[0] / cluster[0],
            NclusteridY => self.launch.grid[1] / cluster[1],
            NclusteridZ => self.launch.grid[2] / cluster[2],
            ClusterCtaidX => self.ctaid[0] % cluster[0],
            ClusterCtaidY => self.ctaid[1] % cluster[1],
            ClusterCtaidZ => self.ctaid[2] % cluster[2],
            ClusterCtarank => self.cluster.rank() as u32,
            ClusterNctaidX => cluster[0],
            ClusterNctaidY => cluster[1],
            ClusterNctaidZ => cluster[2],
            ClusterNctarank => cluster.iter().product(),
            IsExplicitCluster => self.launch.cluster.is_some().into(),
            Laneid => lane as u32,
            Warpid => warp.first / WARP as u32,
            LanemaskEq => 1 << lane,
            LanemaskLt => (1 << lane) - 1,
            LanemaskLe => u32::MAX >> (31 - lane),
            LanemaskGe => u32::MAX << lane,
            LanemaskGt => (u32::MAX << lane) << 1,
            DynamicSmemSize => self.launch.dynamic_shared,
            TotalSmemSize => self.launch.dynamic_shared + self.program.shared_bytes,
            Nwarpid => self.warps.len() as u32,
            // One multiprocessor executes one grid.
            Smid => 0,
            Nsmid | Gridid => 1,
            Clock | GlobaltimerLo => self.clock as u32,
            ClockHi | GlobaltimerHi => (self.clock >> 32) as u32,
            Clock64 | Globaltimer => return Ok(self.clock),
            _ => return Err(FaultKind::Unsupported(format!("the special register {}", register.text()))),
        };
        Ok(value.into())
    }
}
