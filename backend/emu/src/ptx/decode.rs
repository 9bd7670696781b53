//! The program to interpret: statements by place, variables laid out, operands resolved.

use super::{Block, Step, WARP, Warp};
use crate::device::Device;
use crate::launch::{Fault, FaultKind, Launch};
use ptx_backend::input::{AddressBase, Env, Function, Instr, Operand, RegId, Stmt, Symbol};
use ptx_isa::{ScalarType, Space, SpecialReg};

/// Where shared variables start in the block's shared memory.
pub(super) const SHARED_BASE: u64 = 0;

pub(super) struct Program<'a> {
    pub(super) env: &'a Env,
    pub(super) func: &'a Function,
    code: Vec<&'a Instr>,
    /// Places of labels.
    labels: Vec<u32>,
    shared: Vec<Option<u64>>,
    shared_globals: Vec<Option<u64>>,
    locals: Vec<Option<u64>>,
    pub(super) shared_bytes: u32,
    pub(super) local_bytes: u32,
    /// Addresses of module-scope variables.
    globals: Vec<Option<u64>>,
}

pub(super) const fn ones(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The bits of a type's value, sign-extended if the type is signed.
pub(super) fn extend(value: u64, ty: ScalarType) -> u64 {
    let unused = 64 - ty.bits().min(64);
    if ty.is_signed() { ((value << unused) as i64 >> unused) as u64 } else { value & ones(ty.bits()) }
}

impl<'a> Program<'a> {
    pub(super) fn load(
        env: &'a Env,
        func: &'a Function,
        device: &Device,
        launch: &Launch,
    ) -> Result<Program<'a>, Fault> {
        let mut program = Program {
            env,
            func,
            code: Vec::new(),
            labels: vec![u32::MAX; func.labels as usize],
            shared: vec![None; func.locals.len()],
            shared_globals: vec![None; env.variables.len()],
            locals: vec![None; func.locals.len()],
            shared_bytes: 0,
            local_bytes: 0,
            globals: (0..env.variables.len()).map(|i| device.place(i)).collect(),
        };
        for statement in &func.body {
            match statement {
                Stmt::Label(label) => program.labels[label.0 as usize] = program.code.len() as u32,
                Stmt::Instr(instr) => program.code.push(instr),
            }
        }
        program.place_variables();
        let params = func.params.iter().map(|p| p.offset + p.size).max().unwrap_or(0);
        if launch.params.len() < params as usize {
            return Err(FaultKind::Malformed(format!("the kernel takes {params} bytes of parameters")).at(0));
        }
        Ok(program)
    }

    fn place_variables(&mut self) {
        let mut dynamic = Vec::new();
        let (mut shared, mut local) = (0u64, 0u64);
        let all = self.env.variables.iter().map(|v| (true, v)).enumerate();
        let own = self.func.locals.iter().map(|v| (false, v)).enumerate();
        for (i, (module, variable)) in all.chain(own) {
            let align = u64::from(variable.align.max(1));
            let place = match variable.space {
                Space::Shared if variable.size == 0 => {
                    dynamic.push((module, i));
                    continue;
                }
                Space::Shared => {
                    let start = shared.next_multiple_of(align);
                    shared = start + variable.size;
                    if module {
                        self.shared_globals[i] = Some(start)
                    } else {
                        self.shared[i] = Some(start)
                    }
                    continue;
                }
                Space::Local if !module => {
                    let start = local.next_multiple_of(align);
                    local = start + variable.size;
                    start
                }
                _ => continue,
            };
            self.locals[i] = Some(place);
        }
        if !dynamic.is_empty() {
            shared = shared.next_multiple_of(128);
        }
        for (module, i) in dynamic {
            if module { self.shared_globals[i] = Some(shared) } else { self.shared[i] = Some(shared) }
        }
        self.shared_bytes = shared as u32;
        self.local_bytes = local.next_multiple_of(16) as u32;
    }

    pub(super) fn registers(&self) -> usize {
        self.func.regs.len()
    }

    pub(super) fn register_types(&self) -> impl Iterator<Item = ScalarType> + '_ {
        self.func.regs.iter().map(|register| register.ty)
    }

    pub(super) fn bits(&self, register: RegId) -> u32 {
        self.func.regs[register.0 as usize].ty.bits()
    }

    pub(super) fn name(&self, register: usize) -> String {
        format!("register {register} of type {}", self.func.regs[register].ty.text())
    }

    pub(super) fn instr(&self, pc: u32) -> Option<&'a Instr> {
        self.code.get(pc as usize).copied()
    }

    pub(super) fn source(&self, pc: u32) -> usize {
        self.instr(pc).map_or(0, |instr| instr.src.0 as usize)
    }

    pub(super) fn label(&self, operand: &Operand) -> Step<u32> {
        match operand {
            Operand::Label(label) => Ok(self.labels[label.0 as usize]),
            _ => Err(FaultKind::Malformed("a branch to no label".into())),
        }
    }

    /// The places of a list of labels.
    pub(super) fn targets(&self, operand: &Operand) -> Step<Vec<u32>> {
        match operand {
            Operand::Targets(list) => {
                Ok(self.func.targets[*list as usize].iter().map(|l| self.labels[l.0 as usize]).collect())
            }
            _ => Err(FaultKind::Malformed("no list of labels".into())),
        }
    }

    /// The address of a variable in its own space.
    pub(super) fn address(&self, symbol: Symbol) -> Step<u64> {
        let found = match symbol {
            Symbol::Global(i) => match self.env.variables[i as usize].space {
                Space::Shared => self.shared_globals[i as usize].map(|offset| SHARED_BASE + offset),
                _ => self.globals[i as usize],
            },
            Symbol::Local(i) => {
                let i = i as usize;
                self.shared[i].map(|offset| SHARED_BASE + offset).or(self.locals[i])
            }
            Symbol::Param(i) => Some(self.func.params[i as usize].offset.into()),
            Symbol::Return(_) | Symbol::Function(_) => None,
        };
        found.ok_or_else(|| {
            FaultKind::Unsupported("the address of a function or of a call's parameter".into())
        })
    }
}

/// A source operand, resolved for a warp.
#[derive(Clone, Copy)]
pub(super) enum Value {
    /// Index of lane 0's value, and the bits to keep.
    Register(usize, u64),
    NotPredicate(usize),
    Constant(u64),
    /// One value for each lane.
    Special(SpecialReg),
}

impl Block<'_> {
    /// Resolves an operand that is read as a type.
    pub(super) fn value(&self, operand: &Operand, ty: ScalarType) -> Step<Value> {
        let mask = ones(ty.bits());
        Ok(match operand {
            Operand::Reg(register) => Value::Register(register.0 as usize * WARP, mask),
            Operand::NotPred(register) => Value::NotPredicate(register.0 as usize * WARP),
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
            Operand::Symbol(symbol, offset) => {
                Value::Constant(self.program.address(*symbol)?.wrapping_add(*offset as u64) & mask)
            }
            Operand::Special(register) => Value::Special(*register),
            other => return Err(FaultKind::Unsupported(format!("the operand {other:?}"))),
        })
    }

    /// A fault if a strict run reads a register that a lane never wrote.
    pub(super) fn is_written(&self, w: usize, register: usize, lanes: u32) -> Step<()> {
        if self.launch.strict && lanes & !self.warps[w].written[register] != 0 {
            return Err(FaultKind::Unwritten(self.program.name(register)));
        }
        Ok(())
    }

    pub(super) fn get(&self, w: usize, lane: usize, value: Value) -> Step<u64> {
        if let Value::Register(base, _) | Value::NotPredicate(base) = value {
            self.is_written(w, base / WARP, 1 << lane)?;
        }
        Ok(match value {
            Value::Register(base, mask) => self.warps[w].registers[base + lane] & mask,
            Value::NotPredicate(base) => 1 ^ self.warps[w].registers[base + lane],
            Value::Constant(value) => value,
            Value::Special(register) => self.special(&self.warps[w], lane, register)?,
        })
    }

    /// The values of all lanes of a mask; zero for others.
    pub(super) fn gather(&self, w: usize, mask: u32, operand: &Operand, ty: ScalarType) -> Step<[u64; WARP]> {
        let value = self.value(operand, ty)?;
        let mut values = [0; WARP];
        for lane in super::each(mask) {
            values[lane] = self.get(w, lane, value)?;
        }
        Ok(values)
    }

    /// Writes a result of a type to a register of at least its width, extended as the type says.
    pub(super) fn put(
        &mut self,
        w: usize,
        lane: usize,
        operand: &Operand,
        ty: ScalarType,
        value: u64,
    ) -> Step<()> {
        match operand {
            Operand::Reg(register) => {
                let value = extend(value, ty) & ones(self.program.bits(*register));
                self.warps[w].registers[register.0 as usize * WARP + lane] = value;
                self.warps[w].written[register.0 as usize] |= 1 << lane;
                Ok(())
            }
            Operand::Sink => Ok(()),
            other => Err(FaultKind::Unsupported(format!("the destination {other:?}"))),
        }
    }

    /// The address that an operand gives a lane, in the space of the access.
    pub(super) fn address(&self, w: usize, lane: usize, operand: &Operand) -> Step<u64> {
        let Operand::Address(address) = operand else {
            return Err(FaultKind::Malformed("no address".into()));
        };
        let base = match address.base {
            AddressBase::Reg(register) => {
                self.is_written(w, register.0 as usize, 1 << lane)?;
                self.warps[w].registers[register.0 as usize * WARP + lane]
            }
            AddressBase::Symbol(symbol) => self.program.address(symbol)?,
            AddressBase::Absolute => 0,
        };
        Ok(base.wrapping_add(address.offset as u64))
    }

    fn special(&self, warp: &Warp, lane: usize, register: SpecialReg) -> Step<u64> {
        use SpecialReg::*;
        let number = warp.first + lane as u32;
        let tid = self.launch.thread(number);
        let value = match register {
            TidX => tid[0],
            TidY => tid[1],
            TidZ => tid[2],
            NtidX => self.launch.block[0],
            NtidY => self.launch.block[1],
            NtidZ => self.launch.block[2],
            CtaidX | ClusteridX => self.ctaid[0],
            CtaidY | ClusteridY => self.ctaid[1],
            CtaidZ | ClusteridZ => self.ctaid[2],
            NctaidX | NclusteridX => self.launch.grid[0],
            NctaidY | NclusteridY => self.launch.grid[1],
            NctaidZ | NclusteridZ => self.launch.grid[2],
            ClusterCtaidX | ClusterCtaidY | ClusterCtaidZ | ClusterCtarank | IsExplicitCluster => 0,
            ClusterNctaidX | ClusterNctaidY | ClusterNctaidZ | ClusterNctarank => 1,
            Laneid => lane as u32,
            Warpid => warp.first / WARP as u32,
            LanemaskEq => 1 << lane,
            LanemaskLt => (1 << lane) - 1,
            LanemaskLe => u32::MAX >> (31 - lane),
            LanemaskGe => u32::MAX << lane,
            LanemaskGt => (u32::MAX << lane) << 1,
            DynamicSmemSize => self.launch.dynamic_shared,
            _ => return Err(FaultKind::Unsupported(format!("the special register {}", register.text()))),
        };
        Ok(value.into())
    }
}
