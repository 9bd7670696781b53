//! Kernels with their launches and the comparison of results: the PTX interpreter against the emulator of machine code.

use ptx_analysis::Database;
use ptx_analysis::compile::functions;
use ptx_analysis::module::module;
use ptx_backend::abi::Known;
use ptx_backend::calls;
use ptx_backend::inline::{self, Callees};
use ptx_backend::input::{Env, Function, SrcId};
use ptx_backend::join::{Joined, Program};
use ptx_backend::switches::Step;
use ptx_backend::target::Target;
use ptx_backend::{CodegenError, CompiledFunction, LinkFunction, Options, Session};
use ptx_emu::machine::{self, Kernel};
use ptx_emu::tensormap::{self, TensorMap};
use ptx_emu::texture::{self, Texture};
use ptx_emu::{Device, Fault, Launch, Work};
use ptx_isa::Sm;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

/// A kernel's argument.
#[derive(Clone, Debug)]
pub enum Argument {
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
    Buffer(Vec<u8>, Compare),
    /// A buffer of this many bytes that counts as not written until the kernel writes it.
    Unwritten(usize, Compare),
    /// An address in a buffer, with its offset.
    Into(Box<Argument>, u64),
    /// The handle of a texture or a surface, and its contents.
    Texture(Texture, Vec<u8>),
    /// The bytes of a number or a structure.
    Bytes(Vec<u8>),
    /// The address of a tensor map of the previous buffer. On a GPU, maps have a different encoding.
    Tensor(TensorMap),
    /// A tensor map, and its tensor, which is a buffer. If the parameter has the size of a map, the map is passed;
    /// otherwise its address.
    TensorOf(TensorMap, Box<Argument>),
}

/// How the contents of a buffer are compared after the run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Compare {
    Exact,
    /// Equal, both NaN, or within the given number of units in the last place or the given absolute difference.
    F32 {
        ulps: u32,
        absolute: f32,
    },
    /// Equal, both NaN, or within the given number of units in the last place.
    F64 {
        ulps: u64,
    },
    /// Not compared.
    Ignored,
    /// Halves: equal, both NaN, or within the given number of units in the last place.
    F16 {
        ulps: u32,
    },
    Bf16 {
        ulps: u32,
    },
}

impl Compare {
    pub const SINGLE: Compare = Compare::F32 { ulps: 0, absolute: 0.0 };
    pub const DOUBLE: Compare = Compare::F64 { ulps: 0 };
    pub const HALF: Compare = Compare::F16 { ulps: 0 };
    pub const BFLOAT: Compare = Compare::Bf16 { ulps: 0 };

    /// The offset of the first difference that is too large.
    fn difference(self, a: &[u8], b: &[u8]) -> Option<usize> {
        let unit = match self {
            Compare::Ignored => return None,
            Compare::Exact => 1,
            Compare::F32 { .. } => 4,
            Compare::F64 { .. } => 8,
            Compare::F16 { .. } | Compare::Bf16 { .. } => 2,
        };
        let differs = |(a, b): (&[u8], &[u8])| {
            if a == b || a.len() < unit {
                return a != b;
            }
            match self {
                Compare::Exact | Compare::Ignored => true,
                Compare::F32 { ulps, absolute } => {
                    let [x, y] = [a, b].map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
                    let order = |x: f32| {
                        let bits = x.to_bits() as i32;
                        i64::from(if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits })
                    };
                    let close =
                        (order(x) - order(y)).unsigned_abs() <= ulps.into() || (x - y).abs() <= absolute;
                    !(x.is_nan() && y.is_nan()) && (x.is_nan() != y.is_nan() || !close)
                }
                Compare::F64 { ulps } => {
                    let [x, y] = [a, b].map(|x| f64::from_le_bytes(x.try_into().unwrap_or_default()));
                    let order = |x: f64| {
                        let bits = x.to_bits() as i64;
                        i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
                    };
                    let close = (order(x) - order(y)).unsigned_abs() <= ulps.into();
                    !(x.is_nan() && y.is_nan()) && (x.is_nan() != y.is_nan() || !close)
                }
                Compare::F16 { ulps } | Compare::Bf16 { ulps } => {
                    let infinity = if matches!(self, Compare::F16 { .. }) { 0x7c00 } else { 0x7f80 };
                    let order = |x: &[u8]| {
                        let magnitude = i32::from(x[1] & 0x7f) << 8 | i32::from(x[0]);
                        if x[1] >> 7 == 1 { -magnitude } else { magnitude }
                    };
                    let (x, y) = (order(a), order(b));
                    let nan = |x: i32| x.abs() > infinity;
                    !(nan(x) && nan(y)) && (nan(x) != nan(y) || ulps == 0 || x.abs_diff(y) > ulps)
                }
            }
        };
        a.chunks(unit).zip(b.chunks(unit)).position(differs).map(|at| at * unit)
    }
}

/// A launch of one kernel.
#[derive(Clone, Debug)]
pub struct Case {
    pub ptx: String,
    /// The kernel's name. If it is empty, the first kernel.
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    pub arguments: Vec<Argument>,
    /// Reading uninitialized memory and data races are not faults.
    pub unchecked: bool,
    /// All blocks run at once.
    pub together: bool,
    /// Targets without the case: ptxas's code is wrong, or the emulator does not execute something that it needs.
    pub except: Vec<u32>,
    /// The module's texture, sampler and surface variables: their names and contents.
    pub bound: Vec<(String, Texture, Vec<u8>)>,
    /// The limit of warp instructions, if it differs from the usual one.
    pub steps: Option<u64>,
}

impl Case {
    pub fn new(ptx: impl Into<String>, grid: u32, block: u32, arguments: Vec<Argument>) -> Case {
        Case {
            ptx: ptx.into(),
            kernel: String::new(),
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            dynamic_shared: 0,
            arguments,
            unchecked: false,
            together: false,
            except: Vec::new(),
            bound: Vec::new(),
            steps: None,
        }
    }
}

/// A module and one of its kernels, as the compiler takes them.
#[derive(Clone)]
pub struct Input {
    pub env: Arc<Env>,
    pub function: Arc<Function>,
    module: Arc<Module>,
}

/// A module as the compiler takes it.
pub struct Module {
    pub env: Arc<Env>,
    /// Every function with a body, and the starts of its statements.
    pub functions: Vec<(Arc<Function>, Vec<usize>)>,
    aliases: Vec<(String, String)>,
    /// The findings in the module.
    messages: Vec<String>,
}

impl Module {
    /// The body of a function that is inlined where this is profitable.
    fn body(&self, index: u32) -> Option<&Function> {
        let name = &self.env.functions.get(index as usize)?.name;
        let mut functions = self.functions.iter().map(|(function, _)| &**function);
        functions.find(|function| !function.entry && function.name == *name)
    }
}

impl Input {
    fn module(&self) -> ptx_emu::ptx::Module<'_> {
        ptx_emu::ptx::Module {
            env: &self.env,
            functions: self.module.functions.iter().map(|(function, _)| &**function).collect(),
            aliases: &self.module.aliases,
        }
    }

    /// The line of the text on which a statement starts, counted from one.
    fn line(&self, ptx: &str, fault: &Fault) -> Option<usize> {
        let name = fault.function.as_ref().unwrap_or(&self.function.name);
        let (_, statements) = self.module.functions.iter().find(|(function, _)| function.name == *name)?;
        Some(ptx.get(..*statements.get(fault.at)?)?.matches('\n').count() + 1)
    }

    /// Runs the kernel in the interpreter.
    ///
    /// # Errors
    /// The mistake of the program, with the line of the text.
    pub fn interpret(&self, ptx: &str, launch: &Launch, device: &mut Device) -> Result<Work, String> {
        ptx_emu::ptx::run(&self.module(), &self.function, launch, device).map_err(|fault| {
            let line = self.line(ptx, &fault).map_or(String::new(), |line| format!("line {line}: "));
            format!("interpreter: {line}{fault}")
        })
    }
}

/// A kernel of a module.
///
/// # Errors
/// The diagnostics of a program that cannot be compiled.
pub fn input(ptx: &str, kernel: &str) -> Result<Input, String> {
    let module = parse(ptx).map_err(|errors| format!("{errors}\n{ptx}"))?;
    kernel_of(&module, kernel)
}

/// Parses a module.
///
/// # Errors
/// The diagnostics of a program that cannot be compiled.
pub fn parse(ptx: &str) -> Result<Arc<Module>, String> {
    let db = Database::default();
    let file = db.add_frozen_file(ptx);
    let diagnostics = ptx_analysis::ide::diagnostics(&db, file);
    let errors = diagnostics.iter().filter(|d| d.severity == ptx_analysis::diagnostic::Severity::Error);
    let errors: Vec<&str> = errors.map(|d| d.message.as_str()).collect();
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    let all = functions(&db, file).filter_map(|item| {
        let lowered = ptx_analysis::lower::lower(&db, item);
        let start = usize::from(item.offset(&db));
        let statements = lowered.map.statements.iter().map(|range| start + usize::from(range.start()));
        Some((ptx_analysis::lower::function(&db, item).clone()?, statements.collect()))
    });
    let module = module(&db, file);
    let aliases = module.aliases.iter().map(|(name, of)| (name.to_string(), of.to_string())).collect();
    let mut env = Env::clone(ptx_analysis::compile::whole_env(&db, file));
    env.pointees_wait = *ptx_analysis::compile::pointees_wait(&db, file);
    env.pointees_watch = *ptx_analysis::compile::pointees_watch(&db, file);
    for (i, signature) in (0..).zip(&mut env.functions) {
        signature.waits = ptx_analysis::compile::may_wait(&db, file, i);
        signature.watches = ptx_analysis::compile::may_watch(&db, file, i);
    }
    Ok(Arc::new(Module {
        env: Arc::new(env),
        functions: all.collect(),
        aliases,
        messages: diagnostics.iter().map(|d| d.message.clone()).collect(),
    }))
}

/// The kernel of a module with a name. If the name is empty, the first kernel.
///
/// # Errors
/// The findings in the module, if there is no such kernel.
pub fn kernel_of(module: &Arc<Module>, kernel: &str) -> Result<Input, String> {
    let mut kernels = module.functions.iter().map(|(function, _)| function).filter(|f| f.entry);
    let found = kernels.find(|f| kernel.is_empty() || f.name == kernel).cloned();
    let function = found.ok_or_else(|| format!("no kernel {kernel}: {}", module.messages.join("\n")))?;
    Ok(Input { env: module.env.clone(), function, module: module.clone() })
}

/// Memory before a launch, the launch, and the buffers to compare after it.
pub struct Prepared {
    pub device: Device,
    pub launch: Launch,
    pub buffers: Vec<(u64, Compare)>,
    /// The parameters that are addresses of buffers.
    pub pointers: Vec<Pointer>,
    /// The parameters that are tensor maps or their addresses.
    pub maps: Vec<Mapped>,
}

/// A parameter that is the address of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Pointer {
    /// The offset among the parameters.
    pub offset: usize,
    pub address: u64,
    /// The offset in the buffer that the parameter points to.
    pub into: u64,
}

/// A parameter that is a tensor map, or the address of one.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// The offset among the parameters.
    pub offset: usize,
    pub by_value: bool,
    /// The map with the address of its tensor.
    pub map: TensorMap,
}

pub fn prepare(case: &Case, input: &Input) -> Result<Prepared, String> {
    let mut device = Device::new(&input.env).map_err(|kind| format!("{kind:?}"))?;
    let (mut params, mut places) = (Vec::new(), Vec::new());
    let (mut pointers, mut maps) = (Vec::new(), Vec::new());
    let mut buffers: Vec<_> =
        device.variables.iter().map(|(_, address)| (*address, Compare::Exact)).collect();
    for (name, texture, bytes) in &case.bound {
        let address = device.global.add(bytes.clone());
        buffers.push((address, Compare::Exact));
        device.bind(&input.env, name, device.textures.len());
        device.textures.push(Texture { address, ..texture.clone() });
    }
    let declared = &input.function.params;
    if declared.len() != case.arguments.len() {
        return Err(format!("{} parameters, {} arguments", declared.len(), case.arguments.len()));
    }
    for ((param, argument), i) in declared.iter().zip(&case.arguments).zip(0..) {
        params.resize(param.offset as usize, 0);
        places.push((param.offset, if param.is_opaque() { 0 } else { param.size }));
        let (argument, into) = match argument {
            Argument::Into(buffer, into) => (&**buffer, *into),
            argument => (argument, 0),
        };
        match argument {
            Argument::Into(..) => return Err("an address into no buffer".into()),
            Argument::U32(value) => params.extend(value.to_le_bytes()),
            Argument::U64(value) => params.extend(value.to_le_bytes()),
            Argument::F32(value) => params.extend(value.to_le_bytes()),
            Argument::F64(value) => params.extend(value.to_le_bytes()),
            Argument::Bytes(bytes) => params.extend(bytes),
            Argument::Texture(texture, bytes) => {
                let address = device.global.add(bytes.clone());
                buffers.push((address, Compare::Exact));
                if param.is_opaque() {
                    device.bind_parameter(&param.name, i, param.ty, device.textures.len());
                }
                params.extend(texture::handle(device.textures.len()).to_le_bytes());
                device.textures.push(Texture { address, ..texture.clone() });
            }
            Argument::Tensor(map) => {
                let address = pointers.last().map_or(0, |pointer: &Pointer| pointer.address);
                maps.push(pass(TensorMap { address, ..map.clone() }, param.size, &mut params, &mut device));
            }
            Argument::TensorOf(map, buffer) => {
                let (address, compare) = match &**buffer {
                    Argument::Unwritten(bytes, compare) => (device.global.add_unwritten(*bytes), *compare),
                    Argument::Buffer(bytes, compare) => (device.global.add(bytes.clone()), *compare),
                    _ => return Err("a tensor that is no buffer".into()),
                };
                buffers.push((address, compare));
                maps.push(pass(TensorMap { address, ..map.clone() }, param.size, &mut params, &mut device));
            }
            Argument::Buffer(_, compare) | Argument::Unwritten(_, compare) => {
                let address = match argument {
                    Argument::Unwritten(bytes, _) => device.global.add_unwritten(*bytes),
                    Argument::Buffer(bytes, _) => device.global.add(bytes.clone()),
                    _ => continue,
                };
                buffers.push((address, *compare));
                pointers.push(Pointer { offset: params.len(), address, into });
                params.extend((address + into).to_le_bytes());
            }
        }
    }
    let mut launch = Launch { strict: !case.unchecked, places, ..Launch::new(1, 1, params) };
    (launch.grid, launch.block, launch.dynamic_shared) = (case.grid, case.block, case.dynamic_shared);
    launch.together = case.together;
    launch.cluster = input.function.launch.reqnctapercluster;
    launch.steps = case.steps.unwrap_or(launch.steps);
    Ok(Prepared { device, launch, buffers, pointers, maps })
}

/// Adds a tensor map to the parameters: by value if the parameter has the size of a map, otherwise its address.
fn pass(map: TensorMap, size: u32, params: &mut Vec<u8>, device: &mut Device) -> Mapped {
    let (offset, by_value) = (params.len(), size as usize == tensormap::BYTES);
    if by_value {
        params.extend(map.encode());
    } else {
        params.extend(device.global.add(map.encode()).to_le_bytes());
    }
    Mapped { offset, by_value, map }
}

/// The outcome of an execution of machine code that should agree with the interpreter.
#[derive(Debug)]
pub enum Outcome {
    Agrees,
    /// The compiler cannot compile the kernel.
    NotCompiled(CodegenError),
    Differs(String),
}

/// Compiles a kernel for a target at an optimization level, with the functions of its module if it calls any.
///
/// # Errors
/// Those of the compiler.
pub fn compile(input: &Input, sm: Sm, level: u8) -> Result<Joined, CodegenError> {
    compile_with(input, Options { opt_level: level, ..Options::new(sm) })
}

/// As [`compile`], with all options.
///
/// # Errors
/// Those of the compiler.
pub fn compile_with(input: &Input, options: Options) -> Result<Joined, CodegenError> {
    let sm = options.sm;
    let mut taken = BTreeSet::default();
    calls::add_pointed_to(&input.module.env, &mut taken);
    let functions = || input.module.functions.iter().map(|(function, _)| function);
    functions().for_each(|function| calls::add_taken(function, &mut taken));
    let env = Env::clone(&input.env);
    let count = input.module.env.functions.len() as u32;
    let recursive = Rc::new(calls::recursive(count, &|index| input.module.body(index)));
    let mut compiler = Compiler { module: &input.module, options, env, taken, recursive, done: Vec::new() };
    let kernel = compiler.function(&input.function)?;
    if !kernel.links.is_empty() {
        for function in functions().filter(|function| !function.entry) {
            compiler.callee(function)?;
        }
    }
    let done = compiler.done;
    let mut all = vec![LinkFunction { input: &input.function, code: &kernel }];
    all.extend(done.iter().map(|(input, code)| LinkFunction { input, code }));
    let target = Target::of(sm).ok_or_else(|| CodegenError::unsupported(SrcId(0), sm.to_string()))?;
    Program::new(&input.env, &all, &input.module.aliases).join(all[0], target)
}

/// Compiles functions before their callers.
struct Compiler<'a> {
    module: &'a Module,
    options: Options,
    env: Env,
    /// Functions whose addresses are taken.
    taken: BTreeSet<u32>,
    /// Functions that may call themselves.
    recursive: Rc<BTreeSet<u32>>,
    done: Vec<(Arc<Function>, CompiledFunction)>,
}

impl Compiler<'_> {
    /// Compiles a function with its calls inlined; if that fails, without inlining.
    fn function(&mut self, function: &Function) -> Result<CompiledFunction, CodegenError> {
        let inlines = self.options.opt_level > 0 && self.options.switches.takes(Step::InlineFunctions);
        let bodies = |index| self.module.body(index);
        let recursive = self.recursive.clone();
        let callees = Callees {
            bodies: &bodies,
            variables: &self.module.env.variables,
            small: inlines,
            any_shares: true,
            recursive: &|index| recursive.contains(&index),
        };
        if let Some(inlined) = inline::inline(function, callees)? {
            match self.code(&inlined.function) {
                Ok(mut code) => {
                    inlined.restore(&mut code);
                    return Ok(code);
                }
                Err(error) if callees.must_replace(function) => return Err(inlined.restore_error(error)),
                Err(_) => {}
            }
        }
        self.code(function)
    }

    fn code(&mut self, function: &Function) -> Result<CompiledFunction, CodegenError> {
        for callee in function.body.iter().filter_map(calls::call_of) {
            if self.is_private(callee) {
                let body = self.module.functions.iter().map(|(function, _)| function);
                let name = &self.env.functions[callee as usize].name;
                let body = body.clone().find(|function| !function.entry && function.name == *name).cloned();
                if let Some(body) = body {
                    self.env.functions[callee as usize].known = self.callee(&body)?;
                }
            }
        }
        let index = self.env.functions.iter().position(|f| !f.entry && f.name == function.name);
        let is_private = !function.entry && index.is_some_and(|index| self.is_private(index as u32));
        let compile = if is_private { ptx_backend::compile_private } else { ptx_backend::compile };
        compile(&self.env, function, &self.options, &mut Session::default())
    }

    /// Compiles a called function, once.
    fn callee(&mut self, function: &Arc<Function>) -> Result<Option<Known>, CodegenError> {
        if let Some((_, code)) = self.done.iter().find(|(known, _)| Arc::ptr_eq(known, function)) {
            return Ok(code.known);
        }
        let code = self.function(function)?;
        let known = code.known;
        self.done.push((function.clone(), code));
        Ok(known)
    }

    /// Whether all callers of a function are known, and the function calls none of them.
    fn is_private(&self, index: u32) -> bool {
        let name = &self.env.functions[index as usize].name;
        self.options.opt_level > 0
            && !self.taken.contains(&index)
            && !self.module.aliases.iter().any(|(alias, of)| alias == name || of == name)
            && !self.recursive.contains(&index)
    }
}

/// Runs the interpreter. Returns the state of memory afterwards.
pub fn interpret(case: &Case, input: &Input) -> Result<(Prepared, Device), String> {
    let prepared = prepare(case, input)?;
    let mut device = prepared.device.clone();
    input.interpret(&case.ptx, &prepared.launch, &mut device)?;
    Ok((prepared, device))
}

/// Runs machine code and compares the state of memory afterwards.
pub fn agrees(prepared: &Prepared, expected: &Device, kernel: &Kernel) -> Result<(), String> {
    same(prepared, expected, &execute(prepared, kernel)?)
}

/// Runs machine code. Returns the state of memory afterwards.
pub fn execute(prepared: &Prepared, kernel: &Kernel) -> Result<Device, String> {
    let mut device = prepared.device.clone();
    let run: Result<_, Fault> = machine::run(kernel, &prepared.launch, &mut device);
    run.map_err(|fault| format!("emulator: {fault}"))?;
    Ok(device)
}

/// Compares the output and the state of memory of two executions.
pub fn same(prepared: &Prepared, expected: &Device, device: &Device) -> Result<(), String> {
    let printed = |device: &Device| {
        let mut output = device.output.clone();
        output.sort();
        output
    };
    let (said, wanted) = (printed(device), printed(expected));
    if said != wanted {
        return Err(format!("printed {said:?}, interpreted {wanted:?}"));
    }
    for (i, &(address, compare)) in prepared.buffers.iter().enumerate() {
        let (Some(a), Some(b)) = (expected.global.buffer(address), device.global.buffer(address)) else {
            continue;
        };
        if let Some(at) = compare.difference(a, b) {
            let at = at / 8 * 8;
            let show = |bytes: &[u8]| {
                bytes[at..bytes.len().min(at + 8)].iter().fold(String::new(), |mut text, byte| {
                    let _ = write!(text, "{byte:02x} ");
                    text
                })
            };
            return Err(format!("buffer {i}, byte {at}: interpreted {}emulated {}", show(a), show(b)));
        }
    }
    Ok(())
}

/// Compiles a case for a target at a level and compares its run with the interpreter's.
pub fn check(input: &Input, interpreted: &(Prepared, Device), sm: Sm, level: u8) -> Outcome {
    match compile(input, sm, level) {
        Ok(function) => run(input, interpreted, sm, &function),
        Err(error) => Outcome::NotCompiled(error),
    }
}

/// Compares the run of a compiled kernel with the interpreter's.
pub fn run(input: &Input, interpreted: &(Prepared, Device), sm: Sm, function: &Joined) -> Outcome {
    let (prepared, expected) = interpreted;
    let kernel = Kernel::compiled(&input.env, function, sass::Sm(sm.number as u8), &prepared.device);
    match agrees(prepared, expected, &kernel) {
        Ok(()) => Outcome::Agrees,
        Err(difference) => Outcome::Differs(format!("{difference}\n{}", listing(&kernel))),
    }
}

/// The machine code as text.
pub fn listing(kernel: &Kernel) -> String {
    let mut text = String::new();
    for (at, &word) in kernel.code.iter().enumerate() {
        if let Some(inst) = sass::decode(kernel.sm, word) {
            let _ = writeln!(text, "{at:4} {}", sass::print(kernel.sm, &inst, at as u64 * 16));
        }
    }
    text
}

/// Checks a case at all levels and for all generations of targets. Returns the differences, and what was not compiled.
pub fn differences(case: &Case) -> Result<(Vec<String>, Vec<String>), String> {
    let input = input(&case.ptx, &case.kernel)?;
    let interpreted = interpret(case, &input)?;
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    let levels = [80, 90].into_iter().flat_map(|number| [0, 1, 3].map(|level| (number, level)));
    let generations = [75, 89, 100, 120].map(|number| (number, 3));
    // A module can be compiled for its own target and newer ones.
    let own = input.env.target.number;
    for (number, level) in levels.chain(generations).filter(|(number, _)| *number >= own) {
        let sm = Sm::new(number);
        match check(&input, &interpreted, sm, level) {
            Outcome::Agrees => {}
            Outcome::NotCompiled(error) => missing.push(format!("{sm} -O{level}: {error}")),
            Outcome::Differs(how) => wrong.push(format!("{sm} -O{level}: {how}")),
        }
    }
    Ok((wrong, missing))
}
