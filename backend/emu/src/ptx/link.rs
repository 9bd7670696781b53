//! Links a kernel and the device functions that it may call into one program: all instructions in one sequence, with
//! separate numbers for each function's registers, labels and variables.
//!
//! Device functions precede the kernel. Threads at the lowest position run first, so threads in a function return
//! before the other threads of the warp continue, and join them there.

use super::Module;
use ptx_backend::input::{
    Function, Instr, LabelId, Operands, Param, Part, RegId, Renumber, Stmt, Symbol, Variable,
};
use ptx_isa::{FormId, Opcode, ScalarType, Space};
use std::collections::BTreeMap;

/// The place of a variable or a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DataPlace {
    /// An address in its own state space, the same for all threads.
    Fixed(u64),
    /// An address in the shared memory of the thread's block.
    Shared(u64),
    /// An offset in the thread's frame, in bytes.
    Frame(u64),
    Nowhere,
}

/// A parameter or a result of a function.
#[derive(Clone, Debug)]
pub(super) struct Formal {
    pub(super) size: u32,
    pub(super) at: Slot,
}

#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// The elements of a vector, or one register.
    Registers(Box<[RegId]>),
    /// An offset in the frame, in bytes.
    Frame(u64),
}

/// A function with a body.
#[derive(Clone, Debug)]
pub(super) struct Linked {
    /// `None` for the kernel.
    pub(super) name: Option<String>,
    pub(super) entry: u32,
    pub(super) registers: std::ops::Range<usize>,
    pub(super) frame_bytes: u64,
    pub(super) frame_align: u64,
    pub(super) params: Vec<Formal>,
    pub(super) returns: Vec<Formal>,
}

/// The program of a kernel.
#[derive(Default)]
pub(super) struct Code {
    pub(super) instructions: Vec<Instr>,
    /// For each instruction, its index in `functions`.
    pub(super) owner: Vec<u32>,
    pub(super) functions: Vec<Linked>,
    /// Indexed by [`Symbol::Function`], with aliases resolved. `None` for functions without a body.
    pub(super) by_symbol: Vec<Option<u32>>,
    pub(super) registers: Vec<ScalarType>,
    pub(super) labels: Vec<u32>,
    pub(super) targets: Vec<Vec<LabelId>>,
    pub(super) locals: Vec<DataPlace>,
    /// The size of each function's frame in bytes.
    pub(super) local_bytes: Vec<u64>,
    pub(super) params: Vec<DataPlace>,
    pub(super) returns: Vec<DataPlace>,
    /// The size of static shared memory in bytes. Dynamic shared memory starts there.
    pub(super) shared_bytes: u64,
    /// The size of the kernel's parameters in bytes.
    pub(super) param_bytes: u32,
    /// The variables in dynamic shared memory.
    pub(super) dynamic: Vec<usize>,
    /// The alignment of dynamic shared memory.
    pub(super) dynamic_align: u64,
    /// The constants that functions declare, which follow those of the module.
    pub(super) constants: Vec<u8>,
    /// By instruction and operand: the part of a register that a video instruction uses.
    pub(super) parts: BTreeMap<(u32, u8), Part>,
    module_constants: u64,
    /// By their numbers.
    module_registers: BTreeMap<u32, RegId>,
    /// Indexed by [`Symbol::Global`]: the places of variables of which each thread has its own copy.
    pub(super) module_locals: Vec<DataPlace>,
}

impl Code {
    /// Links the code that a kernel may run. `shared_bytes` and `module_constants` are the sizes of the module's
    /// variables in shared and constant memory.
    pub(super) fn link(
        module: &Module<'_>,
        kernel: &Function,
        shared_bytes: u64,
        module_constants: u64,
    ) -> Code {
        let mut code = Code { shared_bytes, module_constants, ..Code::default() };
        let calls = |statement: &Stmt| matches!(statement, Stmt::Instr(i) if i.opcode.form == FormId::Call);
        let callable: &[&Function] =
            if kernel.body.iter().any(calls) { &module.functions } else { Default::default() };
        let mut names = Vec::new();
        for function in callable.iter().filter(|function| !function.entry) {
            names.push(function.name.as_str());
            code.add(function, &[]);
        }
        code.add(kernel, &module.env.variables);
        code.by_symbol = module
            .env
            .functions
            .iter()
            .map(|signature| {
                let alias = module.aliases.iter().find(|(alias, _)| *alias == signature.name);
                let name = alias.map_or(&signature.name, |(_, name)| name);
                names.iter().position(|known| known == name).map(|index| index as u32)
            })
            .collect();
        code
    }

    /// Places a constant that a function declares.
    fn constant(&mut self, variable: &Variable) -> DataPlace {
        let bytes = variable.init.as_ref().map(|init| (&init.bytes[..], init.relocs.is_empty()));
        let (bytes, is_plain) = bytes.unwrap_or((&[], true));
        if !is_plain {
            return DataPlace::Nowhere;
        }
        let end = self.module_constants + self.constants.len() as u64;
        let start = end.next_multiple_of(variable.align.max(1).into());
        self.constants.resize((start - self.module_constants) as usize, 0);
        self.constants.extend(bytes);
        self.constants.resize((start + variable.size - self.module_constants) as usize, 0);
        DataPlace::Fixed(start)
    }

    /// The module's registers that a function uses, and their numbers in the linked program.
    fn shared_registers(&mut self, function: &Function) -> Vec<(RegId, RegId)> {
        let mut shared = Vec::new();
        for (own, register) in (0..).map(RegId).zip(&function.regs) {
            let Some(number) = register.shared else { continue };
            let next = RegId(self.registers.len() as u32);
            let place = *self.module_registers.entry(number).or_insert(next);
            if place == next {
                self.registers.push(register.ty);
            }
            shared.push((own, place));
        }
        shared
    }

    fn add(&mut self, function: &Function, variables: &[Variable]) {
        let shared = self.shared_registers(function);
        let base = Bases {
            shared,
            register: self.registers.len() as u32,
            label: self.labels.len() as u32,
            list: self.targets.len() as u32,
            local: self.locals.len() as u32,
            param: self.params.len() as u32,
            result: self.returns.len() as u32,
        };
        let entry = self.instructions.len() as u32;
        self.registers.extend(function.regs.iter().map(|register| register.ty));
        self.targets
            .extend(function.targets.iter().map(|list| list.iter().map(|l| base.label(*l)).collect()));
        let mut frame = Frame { bytes: 0, align: 16 };
        // The kernel's frame is the first frame of the thread.
        for variable in variables {
            self.module_locals.push(match variable.space {
                Space::Local => match frame.add(variable.size, variable.align.max(1).into()) {
                    DataPlace::Frame(start) => DataPlace::Fixed(start),
                    place => place,
                },
                _ => DataPlace::Nowhere,
            });
        }
        let returns = formals(&function.returns, &base, &mut frame);
        self.returns.extend(returns.iter().map(Formal::place));
        let mut params = if function.entry {
            self.param_bytes = function.params.iter().map(|p| p.offset + p.size).max().unwrap_or(0);
            self.params.extend(function.params.iter().map(|param| DataPlace::Fixed(param.offset.into())));
            Vec::new()
        } else {
            let params = formals(&function.params, &base, &mut frame);
            self.params.extend(params.iter().map(Formal::place));
            params
        };
        for variable in &function.locals {
            let align = u64::from(variable.align.max(1));
            let place = match variable.space {
                Space::Shared if variable.size == 0 => {
                    self.dynamic.push(self.locals.len());
                    self.dynamic_align = self.dynamic_align.max(align);
                    DataPlace::Nowhere
                }
                Space::Shared => {
                    let start = self.shared_bytes.next_multiple_of(align);
                    self.shared_bytes = start + variable.size;
                    DataPlace::Shared(start)
                }
                Space::Local | Space::Param => frame.add(variable.size, align),
                Space::Const => self.constant(variable),
                _ => DataPlace::Nowhere,
            };
            self.locals.push(place);
            self.local_bytes.push(variable.size);
        }
        if let Some(last) = params.last_mut().filter(|formal| formal.is_open())
            && let DataPlace::Frame(start) = frame.add(0, 16)
        {
            last.at = Slot::Frame(start);
            self.params.pop();
            self.params.push(last.place());
        }
        let mut labels = vec![u32::MAX; function.labels as usize];
        for statement in &function.body {
            match statement {
                Stmt::Label(label) => labels[label.0 as usize] = self.instructions.len() as u32,
                Stmt::Instr(instr) => {
                    let first = function.parts.partition_point(|part| part.src < instr.src);
                    let own = function.parts[first..].iter().take_while(|part| part.src == instr.src);
                    let at = self.instructions.len() as u32;
                    self.parts.extend(own.map(|part| ((at, part.operand), *part)));
                    self.instructions.push(base.instr(instr));
                }
            }
        }
        // Code that reaches the end of a function returns.
        if let Some(opcode) = Opcode::new(FormId::Ret, &[], &[]) {
            let src = function.body.iter().rev().find_map(|statement| match statement {
                Stmt::Instr(instr) => Some(instr.src),
                Stmt::Label(_) => None,
            });
            self.instructions.push(Instr {
                src: src.unwrap_or_default(),
                opcode,
                guard: None,
                operands: Operands::new(),
            });
        }
        self.owner.resize(self.instructions.len(), self.functions.len() as u32);
        self.labels.extend(labels);
        self.functions.push(Linked {
            name: (!function.entry).then(|| function.name.clone()),
            entry,
            registers: base.register as usize..self.registers.len(),
            frame_bytes: frame.bytes,
            frame_align: frame.align,
            params,
            returns,
        });
    }
}

/// The stack memory of a call.
struct Frame {
    bytes: u64,
    align: u64,
}

impl Frame {
    fn add(&mut self, size: u64, align: u64) -> DataPlace {
        let start = self.bytes.next_multiple_of(align);
        self.bytes = start + size;
        self.align = self.align.max(align);
        DataPlace::Frame(start)
    }
}

impl Formal {
    /// Whether this is a parameter whose size the call determines. It is the last parameter of its frame.
    pub(super) fn is_open(&self) -> bool {
        self.size == 0
    }

    fn place(&self) -> DataPlace {
        match self.at {
            Slot::Registers(_) => DataPlace::Nowhere,
            Slot::Frame(start) => DataPlace::Frame(start),
        }
    }
}

fn formals(params: &[Param], base: &Bases, frame: &mut Frame) -> Vec<Formal> {
    let formal = |param: &Param| {
        let at = match param.reg {
            Some(_) => Slot::Registers(param.registers().map(|register| base.reg(register)).collect()),
            None => match frame.add(param.size.into(), param.align.max(1).into()) {
                DataPlace::Frame(start) => Slot::Frame(start),
                DataPlace::Fixed(_) | DataPlace::Shared(_) | DataPlace::Nowhere => Slot::Frame(0),
            },
        };
        Formal { size: param.size, at }
    };
    params.iter().map(formal).collect()
}

/// The first numbers of a function's registers, labels and variables.
struct Bases {
    /// The module's registers.
    shared: Vec<(RegId, RegId)>,
    register: u32,
    label: u32,
    list: u32,
    local: u32,
    param: u32,
    result: u32,
}

impl Renumber for Bases {
    fn reg(&self, reg: RegId) -> RegId {
        let shared = self.shared.iter().find(|(own, _)| *own == reg);
        shared.map_or(RegId(reg.0 + self.register), |&(_, place)| place)
    }

    fn label(&self, label: LabelId) -> LabelId {
        LabelId(label.0 + self.label)
    }

    fn targets(&self, list: u32) -> u32 {
        list + self.list
    }

    fn symbol(&self, symbol: Symbol) -> Symbol {
        match symbol {
            Symbol::Local(i) => Symbol::Local(i + self.local),
            Symbol::Param(i) => Symbol::Param(i + self.param),
            Symbol::Return(i) => Symbol::Return(i + self.result),
            Symbol::Global(_) | Symbol::Function(_) => symbol,
        }
    }
}

impl Bases {
    fn instr(&self, instr: &Instr) -> Instr {
        let guard = instr.guard.map(|guard| self.guard(guard));
        let operands = instr.operands.iter().map(|operand| self.operand(operand)).collect();
        Instr { src: instr.src, opcode: instr.opcode, guard, operands }
    }
}
