//! Inlining: replaces calls of small functions by their bodies, before any function is compiled.
//!
//! Inlining transforms the input to another input, in which every statement has its own number. So all later parts,
//! including the checks of the result, see one function: a statement that is inlined twice becomes two statements.
//! [`Inlined::frames`] maps each statement to the function in which it was written.
//!
//! Parameters and results of an inlined function become `.param` variables of the caller, which are kept in registers.
//!
//! Functions that share module-scope registers or local variables with their callers are always inlined: a kernel has
//! one copy of each, and the calling convention has no place for them. The same holds for functions that name textures,
//! samplers or surfaces of the module: their handles are in each kernel's own constant bank, after its parameters.

use crate::calls::{Bodies, call_of};
use crate::input::{
    Address, AddressBase, Function, Guard, Instr, LabelId, Operand, Operands, Param, Part, RegId, Renumber,
    SrcId, Stmt, Symbol, Variable,
};
use crate::{CodegenError, CompiledFunction, abi};
use ptx_isa::{FormId, Mod, Opcode, ScalarType, Space};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function with at most this number of statements is always inlined.
const SMALL: usize = 24;
/// The maximum number of statements that inlining one function may add to another.
const GROWTH: usize = 160;
/// The maximum number of statements that all inlining may add to a function.
const MOST: usize = 2000;

/// A function in which calls have been replaced by bodies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inlined {
    pub function: Function,
    /// For each statement, by number: its number in the function that it comes from, and the index of the replaced
    /// call; `None` for the caller's own statements.
    pub origins: Vec<(SrcId, Option<u32>)>,
    pub frames: Vec<Frame>,
    /// The number of the caller's own variables, which come first.
    own_locals: usize,
}

/// A call that a body has replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The called function: an index into [`crate::input::Env::functions`].
    pub function: u32,
    /// The number of the call in its function.
    pub call: SrcId,
    /// The index of the enclosing replaced call, if the call was itself in an inlined body.
    pub parent: Option<u32>,
}

impl Inlined {
    /// The statement of the caller to which a statement belongs.
    pub fn own(&self, src: SrcId) -> SrcId {
        let Some(&(own, mut frame)) = self.origins.get(src.0 as usize) else { return src };
        let mut own = own;
        while let Some(&Frame { call, parent, .. }) = frame.and_then(|frame| self.frames.get(frame as usize))
        {
            (own, frame) = (call, parent);
        }
        own
    }

    /// Replaces statements of inlined bodies in the code by the caller's statements.
    pub fn restore(&self, code: &mut CompiledFunction) {
        code.inlined = Some(std::mem::take(&mut code.lines));
        let inlined = code.inlined.iter().flatten();
        code.lines = inlined.map(|src| src.map(|src| self.own(src))).collect();
        code.attributes.locals.truncate(self.own_locals);
        if let Some(explanation) = &mut code.explanation {
            explanation.map(&|src| self.own(src));
        }
    }

    /// Replaces a statement of an inlined body in an error by the caller's statement.
    pub fn restore_error(&self, error: CodegenError) -> CodegenError {
        match error {
            CodegenError::Unsupported { at, what } => CodegenError::Unsupported { at: self.own(at), what },
            CodegenError::Limit { at, what } => CodegenError::Limit { at: self.own(at), what },
            CodegenError::Internal { at, phase, what } => {
                CodegenError::Internal { at: self.own(at), phase, what }
            }
        }
    }
}

/// The functions that may be inlined into the functions of a module.
#[derive(Clone, Copy)]
pub struct Callees<'b, 'a> {
    /// The functions that may be inlined, by their index in [`crate::input::Env::functions`].
    pub bodies: Bodies<'b, 'a>,
    /// [`crate::input::Env::variables`]; may be empty if none of them is a local variable.
    pub variables: &'b [Variable],
    /// Whether to inline all functions for which it pays, and not only those that share registers or variables with
    /// their callers.
    pub small: bool,
    /// Whether any function shares registers or variables with its callers.
    pub any_shares: bool,
    /// Whether a function may call itself, directly or through other functions.
    pub recursive: &'b dyn Fn(u32) -> bool,
}

impl Callees<'_, '_> {
    /// Whether a function, or one that it calls, shares module-scope registers or local variables with its callers.
    pub fn share(&self, index: u32) -> bool {
        self.any_shares
            && self.any_reached(index, |function| {
                function.regs.iter().any(|register| register.shared.is_some())
                    || self.mentions_local(function)
            })
    }

    /// Whether `holds` is true for a function, or for one that it calls.
    fn any_reached(&self, index: u32, holds: impl Fn(&Function) -> bool) -> bool {
        let mut seen = FxHashSet::from_iter([index]);
        let mut pending = vec![index];
        while let Some(body) = pending.pop().map(self.bodies) {
            let Some(function) = body else { continue };
            if holds(function) {
                return true;
            }
            pending.extend(function.body.iter().filter_map(call_of).filter(|callee| seen.insert(*callee)));
        }
        false
    }

    /// Whether calls of a function have to be replaced.
    pub fn must_replace(&self, function: &Function) -> bool {
        function.body.iter().filter_map(call_of).any(|callee| self.share(callee))
    }

    /// The module's variable with a number, if every thread has its own copy of it.
    fn local_variable(&self, index: u32) -> Option<&Variable> {
        self.variables.get(index as usize).filter(|variable| variable.space == Space::Local)
    }

    fn mentions_local(&self, function: &Function) -> bool {
        let is_local = |symbol| matches!(symbol, Symbol::Global(i) if self.local_variable(i).is_some());
        self.variables.iter().any(|variable| variable.space == Space::Local)
            && operands(function).any(|operand| mentions(operand, &is_local))
    }
}

fn operands(function: &Function) -> impl Iterator<Item = &Operand> {
    function.instrs().flat_map(|instr| &instr.operands)
}

/// Inlines functions for which it pays or is necessary. `None` if no call is replaced.
///
/// # Errors
/// [`CodegenError::Unsupported`] for a call that has to be replaced and cannot.
pub fn inline(function: &Function, callees: Callees<'_, '_>) -> Result<Option<Inlined>, CodegenError> {
    let has_local = callees.mentions_local(function);
    let may_replace = |stmt| call_of(stmt).is_some_and(|callee| (callees.bodies)(callee).is_some());
    if !has_local && !function.body.iter().any(may_replace) {
        return Ok(None);
    }
    let mut shell = function.clone();
    let body = std::mem::take(&mut shell.body);
    let parts = std::mem::take(&mut shell.parts);
    let nounroll = std::mem::take(&mut shell.nounroll.before);
    let mut inliner = Inliner {
        callees,
        shared: FxHashMap::default(),
        registers: shared_registers(function).collect(),
        sizes: FxHashMap::default(),
        locals: FxHashMap::default(),
        out: Inlined {
            own_locals: function.locals.len(),
            function: shell,
            origins: Vec::with_capacity(function.body.len()),
            frames: Vec::new(),
        },
        added: 0,
    };
    let caller =
        Caller { body: &body, parts: &parts, nounroll: &nounroll, names: Names::default(), frame: None };
    inliner.body(&caller);
    let mut out = inliner.out;
    for stmt in &out.function.body {
        if let (Stmt::Instr(instr), Some(callee)) = (stmt, call_of(stmt))
            && callees.share(callee)
        {
            let what = "call: module-scope registers or `.local` variables shared with a function that is not inlined";
            return Err(out.restore_error(CodegenError::unsupported(instr.src, what.to_owned())));
        }
    }
    if callees.mentions_local(&out.function) {
        adopt(&mut out.function, callees);
    }
    Ok((has_local || !out.frames.is_empty()).then_some(out))
}

/// The module-scope registers that a function uses, each after its number.
fn shared_registers(function: &Function) -> impl Iterator<Item = (u32, RegId)> {
    (0..).map(RegId).zip(&function.regs).filter_map(|(reg, register)| Some((register.shared?, reg)))
}

/// Turns local variables of the module into the function's own.
fn adopt(function: &mut Function, callees: Callees<'_, '_>) {
    let mut adopted = Adopted(FxHashMap::default());
    for i in 0..callees.variables.len() as u32 {
        if let Some(variable) = callees.local_variable(i) {
            adopted.0.insert(i, function.locals.len() as u32);
            function.locals.push(variable.clone());
        }
    }
    for stmt in &mut function.body {
        if let Stmt::Instr(instr) = stmt {
            instr.operands.iter_mut().for_each(|operand| *operand = adopted.operand(operand));
        }
    }
}

/// Maps local variables of the module to the variables that replace them.
struct Adopted(FxHashMap<u32, u32>);

impl Renumber for Adopted {
    fn reg(&self, reg: RegId) -> RegId {
        reg
    }

    fn label(&self, label: LabelId) -> LabelId {
        label
    }

    fn targets(&self, list: u32) -> u32 {
        list
    }

    fn symbol(&self, symbol: Symbol) -> Symbol {
        match symbol {
            Symbol::Global(i) => self.0.get(&i).map_or(symbol, |&local| Symbol::Local(local)),
            symbol => symbol,
        }
    }
}

/// Maps a body's own numbers to the numbers in the function that it becomes a part of.
#[derive(Clone, Default)]
struct Names {
    regs: u32,
    /// Module-scope registers, which are the caller's.
    shared: Vec<(RegId, RegId)>,
    labels: u32,
    targets: u32,
    /// The new number of each variable; `None` for the caller's own body, whose variables keep their numbers.
    locals: Option<Vec<u32>>,
    params: Vec<u32>,
    returns: Vec<u32>,
}

/// A body that is being copied into the result.
struct Caller<'a> {
    body: &'a [Stmt],
    /// The statements before which a loop begins that must not be unrolled, in ascending order.
    nounroll: &'a [u32],
    parts: &'a [Part],
    names: Names,
    /// The index of the replaced call, and the label to which the body returns.
    frame: Option<(u32, LabelId)>,
}

struct Inliner<'b, 'a> {
    callees: Callees<'b, 'a>,
    /// Whether each function must be inlined.
    shared: FxHashMap<u32, bool>,
    /// Module-scope registers in the result, by their numbers.
    registers: FxHashMap<u32, RegId>,
    /// The number of statements of each function, with all functions that are inlined into it; `None` if it cannot be
    /// inlined.
    sizes: FxHashMap<u32, Option<usize>>,
    /// Variables of inlined functions. Two bodies of the same function are never active at the same time, so they share
    /// them.
    locals: FxHashMap<(u32, u32), u32>,
    out: Inlined,
    added: usize,
}

impl<'a> Inliner<'_, 'a> {
    /// Copies a body into the result.
    fn body(&mut self, caller: &Caller<'_>) {
        let mut calls: FxHashMap<u32, usize> = FxHashMap::default();
        for callee in caller.body.iter().filter_map(call_of) {
            *calls.entry(callee).or_default() += 1;
        }
        for (i, stmt) in caller.body.iter().enumerate() {
            if caller.nounroll.binary_search(&(i as u32)).is_ok() {
                let out = &mut self.out.function;
                out.nounroll.before.push(out.body.len() as u32);
            }
            let instr = match stmt {
                Stmt::Label(label) => {
                    let label = caller.names.label(*label);
                    self.out.function.body.push(Stmt::Label(label));
                    continue;
                }
                Stmt::Instr(instr) => instr,
            };
            if let Some(site) =
                call_of(stmt).and_then(|callee| self.site(caller, instr, callee, calls[&callee]))
            {
                self.site_body(caller, instr, site);
                continue;
            }
            if let (FormId::Ret, Some((_, end))) = (instr.opcode.form, caller.frame) {
                if i + 1 < caller.body.len() || instr.guard.is_some() {
                    self.branch(caller, instr, self.guard(caller, instr.guard), end);
                }
                continue;
            }
            self.copy(caller, instr);
        }
    }

    /// Copies a statement with its new names.
    fn copy(&mut self, caller: &Caller<'_>, instr: &Instr) {
        let src = self.number(caller, instr.src);
        let first = caller.parts.partition_point(|part| part.src < instr.src);
        let parts = caller.parts[first..].iter().take_while(|part| part.src == instr.src);
        self.out.function.parts.extend(parts.map(|part| Part { src, ..*part }));
        let guard = self.guard(caller, instr.guard);
        let operands = instr.operands.iter().map(|operand| caller.names.operand(operand)).collect();
        self.push(Instr { src, opcode: instr.opcode, guard, operands });
    }

    fn push(&mut self, instr: Instr) {
        self.out.function.body.push(Stmt::Instr(instr));
    }

    fn guard(&self, caller: &Caller<'_>, guard: Option<Guard>) -> Option<Guard> {
        guard.map(|guard| caller.names.guard(guard))
    }

    /// A new number for a statement.
    fn number(&mut self, caller: &Caller<'_>, src: SrcId) -> SrcId {
        let new = SrcId(self.out.origins.len() as u32);
        self.out.origins.push((src, caller.frame.map(|(frame, _)| frame)));
        new
    }

    fn branch(&mut self, caller: &Caller<'_>, instr: &Instr, guard: Option<Guard>, to: LabelId) {
        let Some(opcode) = Opcode::new(FormId::Bra, &[], &[]) else { return };
        let src = self.number(caller, instr.src);
        self.push(Instr { src, opcode, guard, operands: Operands::from_iter([Operand::Label(to)]) });
    }

    fn new_label(&mut self) -> LabelId {
        self.out.function.labels += 1;
        LabelId(self.out.function.labels - 1)
    }

    /// The number of statements of a function, with all functions that are inlined into it. `None` if it is not
    /// inlined.
    fn size(&mut self, index: u32) -> Option<usize> {
        if let Some(&known) = self.sizes.get(&index) {
            return known;
        }
        let may = |callee: &&Function| fits(callee) && !(self.callees.recursive)(index);
        let size = (self.callees.bodies)(index).filter(may).map(|callee| {
            let own = callee.instrs().count();
            let mut calls: FxHashMap<u32, usize> = FxHashMap::default();
            for callee in callee.body.iter().filter_map(call_of) {
                *calls.entry(callee).or_default() += 1;
            }
            let mut calls: Vec<(u32, usize)> = calls.into_iter().collect();
            calls.sort_unstable();
            let added = |(callee, count): (u32, usize)| {
                self.size(callee)
                    .filter(|size| self.is_worth(callee, *size, count))
                    .map_or(0, |size| size * count)
            };
            own + calls.into_iter().map(added).sum::<usize>()
        });
        self.sizes.insert(index, size);
        size
    }

    /// Whether to inline a function of a given size that another function calls a given number of times.
    fn is_worth(&mut self, callee: u32, size: usize, calls: usize) -> bool {
        let is_small = size <= SMALL || size.saturating_mul(calls) <= GROWTH;
        is_small && self.callees.small || self.has_to(callee)
    }

    fn has_to(&mut self, callee: u32) -> bool {
        *self.shared.entry(callee).or_insert_with(|| self.callees.share(callee))
    }

    /// The data for the replacement of a call; `None` if the call stays.
    fn site(&mut self, caller: &Caller<'_>, instr: &Instr, callee: u32, calls: usize) -> Option<Site<'a>> {
        let size = self.size(callee)?;
        if !self.is_worth(callee, size, calls) || !self.has_to(callee) && self.added + size > MOST {
            return None;
        }
        let function = (self.callees.bodies)(callee)?;
        let (returns, arguments) = match &instr.operands[..] {
            [Operand::List(returns), Operand::Symbol(..), Operand::List(arguments)] => {
                (&**returns, &**arguments)
            }
            [Operand::List(returns), Operand::Symbol(..)] => (&**returns, &[][..]),
            [Operand::Symbol(..), Operand::List(arguments)] => (&[][..], &**arguments),
            [Operand::Symbol(..)] => (&[][..], &[][..]),
            _ => return None,
        };
        if returns.len() != function.returns.len() || arguments.len() != function.params.len() {
            return None;
        }
        let passed = |(operand, param): (&Operand, &Param)| self.passed(caller, operand, param);
        let params: Vec<Passed> =
            arguments.iter().zip(&function.params).map(passed).collect::<Option<_>>()?;
        let given: Vec<Passed> = returns.iter().zip(&function.returns).map(passed).collect::<Option<_>>()?;
        // A result must not share a variable with a parameter that is still read.
        if given.iter().any(|result| matches!(result, Passed::Local(_)) && params.contains(result)) {
            return None;
        }
        Some(Site { callee, function, params, given })
    }

    /// How an operand becomes a parameter, or a result becomes an operand.
    fn passed(&self, caller: &Caller<'_>, operand: &Operand, param: &Param) -> Option<Passed> {
        match *operand {
            Operand::Symbol(Symbol::Local(i), 0) if param.reg.is_none() => {
                let local = caller.names.local(i);
                let variable = self.out.function.locals.get(local as usize)?;
                let same = variable.space == Space::Param && variable.size == u64::from(param.size);
                same.then_some(Passed::Local(local))
            }
            Operand::Sink => Some(Passed::Nowhere),
            Operand::Reg(_) if param.reg.is_some() && move_type(param).is_some() => Some(Passed::Register),
            Operand::Int(_) if param.reg.is_some() && param.ty != ScalarType::Pred => {
                move_type(param).map(|_| Passed::Register)
            }
            _ if param.reg.is_some() => None,
            Operand::Reg(_) | Operand::Int(_)
                if matches!(param.size, 4 | 8) && param.ty.bytes() == param.size =>
            {
                Some(Passed::Value)
            }
            _ => None,
        }
    }

    /// Replaces a call.
    fn site_body(&mut self, caller: &Caller<'_>, instr: &Instr, site: Site<'a>) {
        let Site { callee, function, params, given } = site;
        self.added += function.body.len();
        let around = instr.guard.map(|guard| (guard, self.new_label()));
        if let Some((guard, behind)) = around {
            let not = Guard { negated: !guard.negated, ..guard };
            self.branch(caller, instr, self.guard(caller, Some(not)), behind);
        }
        let arguments = list(&instr.operands, false);
        let returns = list(&instr.operands, true);
        let mut names = Names {
            regs: self.out.function.regs.len() as u32,
            labels: self.out.function.labels,
            targets: self.out.function.targets.len() as u32,
            ..Names::default()
        };
        for (number, reg) in shared_registers(function) {
            let own = *self.registers.entry(number).or_insert(RegId(reg.0 + names.regs));
            names.shared.push((reg, own));
        }
        for ((passed, param), i) in params.iter().zip(&function.params).zip(0..) {
            let local = self.place(passed, param);
            match (passed, arguments.get(i)) {
                (Passed::Value, Some(value)) => self.access(caller, instr, "st", local, param, value),
                (Passed::Register, Some(value)) => {
                    let value = caller.names.operand(value);
                    self.mov(caller, instr, param, |reg| [Operand::Reg(names.reg(reg)), value]);
                }
                _ => {}
            }
            names.params.push(local);
        }
        names.returns =
            given.iter().zip(&function.returns).map(|(to, param)| self.place(to, param)).collect();
        let locals: Vec<u32> =
            (0..).zip(&function.locals).map(|(i, local)| self.local(callee, i, local)).collect();
        names.locals = Some(locals);
        let out = &mut self.out.function;
        out.regs.extend(function.regs.iter().cloned());
        out.labels += function.labels;
        let labels = names.labels;
        let moved = |list: &Vec<LabelId>| list.iter().map(|label| LabelId(label.0 + labels)).collect();
        out.targets.extend(function.targets.iter().map(moved));
        let parent = caller.frame.map(|(frame, _)| frame);
        let frame = self.out.frames.len() as u32;
        self.out.frames.push(Frame { function: callee, call: instr.src, parent });
        let end = self.new_label();
        let results = names.returns.clone();
        let given_in: Vec<RegId> =
            function.returns.iter().map(|param| param.reg.map_or(RegId(0), |reg| names.reg(reg))).collect();
        let body = Caller {
            body: &function.body,
            parts: &function.parts,
            nounroll: &function.nounroll.before,
            names,
            frame: Some((frame, end)),
        };
        // The body has its own blocks. So, as with ptxas, no product in it is fused with a sum outside, nor the
        // reverse.
        let begin = self.new_label();
        self.out.function.body.push(Stmt::Label(begin));
        self.body(&body);
        self.out.function.body.push(Stmt::Label(end));
        for (i, (to, param)) in given.iter().zip(&function.returns).enumerate() {
            match (to, returns.get(i)) {
                (Passed::Value, Some(register)) => {
                    self.access(caller, instr, "ld", results[i], param, register);
                }
                (Passed::Register, Some(register)) => {
                    let register = caller.names.operand(register);
                    self.mov(caller, instr, param, |_| [register, Operand::Reg(given_in[i])]);
                }
                _ => {}
            }
        }
        if let Some((_, behind)) = around {
            self.out.function.body.push(Stmt::Label(behind));
        }
    }

    /// The variable that replaces a parameter or a result.
    fn place(&mut self, passed: &Passed, param: &Param) -> u32 {
        match *passed {
            Passed::Local(local) => local,
            Passed::Value | Passed::Register | Passed::Nowhere => self.new_local(Variable {
                name: param.name.clone(),
                space: Space::Param,
                linkage: Default::default(),
                ty: param.ty,
                size: param.size.into(),
                align: param.align,
                init: None,
                managed: false,
                unified: None,
            }),
        }
    }

    fn new_local(&mut self, variable: Variable) -> u32 {
        self.out.function.locals.push(variable);
        self.out.function.locals.len() as u32 - 1
    }

    /// A variable of an inlined body in the result.
    fn local(&mut self, callee: u32, index: u32, variable: &Variable) -> u32 {
        // Each body gets its own variable, so that live ranges stay short.
        if variable.space == Space::Param {
            return self.new_local(variable.clone());
        }
        if let Some(&known) = self.locals.get(&(callee, index)) {
            return known;
        }
        let new = self.new_local(variable.clone());
        self.locals.insert((callee, index), new);
        new
    }

    /// Moves a value to or from a parameter that is a register.
    fn mov(
        &mut self,
        caller: &Caller<'_>,
        instr: &Instr,
        param: &Param,
        operands: impl FnOnce(RegId) -> [Operand; 2],
    ) {
        let (Some(ty), Some(reg)) = (move_type(param), param.reg) else { return };
        let Ok(opcode) = ptx_isa::resolve("mov", &[ty]) else { return };
        let src = self.number(caller, instr.src);
        self.push(Instr { src, opcode, guard: None, operands: Operands::from_iter(operands(reg)) });
    }

    /// Stores a value to a `.param` variable, or loads it from there.
    fn access(
        &mut self,
        caller: &Caller<'_>,
        instr: &Instr,
        mnemonic: &str,
        local: u32,
        param: &Param,
        value: &Operand,
    ) {
        let bits = if param.size == 8 { "b64" } else { "b32" };
        let Ok(opcode) = ptx_isa::resolve(mnemonic, &["param", bits]) else { return };
        let src = self.number(caller, instr.src);
        let base = AddressBase::Symbol(Symbol::Local(local));
        let place = Operand::Address(Address { base, offset: 0 });
        let value = caller.names.operand(value);
        let operands = if mnemonic == "st" { [place, value] } else { [value, place] };
        self.push(Instr { src, opcode, guard: None, operands: Operands::from_iter(operands) });
    }
}

/// The type that moves a parameter which is a register.
fn move_type(param: &Param) -> Option<&'static str> {
    match (param.ty, param.size) {
        (ScalarType::Pred, _) => Some("pred"),
        (_, 2) => Some("b16"),
        (_, 4) => Some("b32"),
        (_, 8) => Some("b64"),
        _ => None,
    }
}

/// The operands of a call that precede its function, or those that follow it.
fn list(operands: &[Operand], before: bool) -> &[Operand] {
    let function = operands.iter().position(|operand| matches!(operand, Operand::Symbol(..))).unwrap_or(0);
    let list = if before { operands[..function].first() } else { operands[function..].get(1) };
    match list {
        Some(Operand::List(list)) => list,
        _ => &[],
    }
}

/// The data for the replacement of a call.
struct Site<'a> {
    callee: u32,
    function: &'a Function,
    params: Vec<Passed>,
    given: Vec<Passed>,
}

/// How a parameter enters a body, or a result leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Passed {
    /// The parameter is replaced by this variable.
    Local(u32),
    /// By a store before the body, or a load after it.
    Value,
    /// The parameter is a register of the body: by a move before or after the body.
    Register,
    Nowhere,
}

impl Names {
    fn local(&self, i: u32) -> u32 {
        match &self.locals {
            Some(locals) => locals.get(i as usize).copied().unwrap_or(u32::MAX),
            None => i,
        }
    }
}

impl Renumber for Names {
    fn reg(&self, reg: RegId) -> RegId {
        let shared = self.shared.iter().find(|(own, _)| *own == reg);
        shared.map_or(RegId(reg.0 + self.regs), |&(_, shared)| shared)
    }

    fn label(&self, label: LabelId) -> LabelId {
        LabelId(label.0 + self.labels)
    }

    fn targets(&self, list: u32) -> u32 {
        list + self.targets
    }

    fn symbol(&self, symbol: Symbol) -> Symbol {
        let is_inlined = self.locals.is_some();
        let of = |places: &[u32], i: u32| Symbol::Local(places.get(i as usize).copied().unwrap_or(u32::MAX));
        match symbol {
            Symbol::Local(i) => Symbol::Local(self.local(i)),
            Symbol::Param(i) if is_inlined => of(&self.params, i),
            Symbol::Return(i) if is_inlined => of(&self.returns, i),
            Symbol::Param(_) | Symbol::Return(_) | Symbol::Global(_) | Symbol::Function(_) => symbol,
        }
    }
}

/// Whether a body has the same meaning inside another function.
fn fits(function: &Function) -> bool {
    let mut words = function.params.iter().chain(&function.returns);
    // All calls share a variable in shared memory.
    let is_own = |variable: &Variable| matches!(variable.space, Space::Local | Space::Param | Space::Reg);
    !function.entry
        && words.all(|param| !abi::is_open(param) && (param.reg.is_some() || param.ty != ScalarType::Pred))
        && function.locals.iter().all(|variable| is_own(variable) && variable.init.is_none())
        && function.instrs().all(statement_fits)
}

/// Parameters of kernels are in another memory than those of functions. A function frees the stack memory that it
/// allocates only when it returns.
fn statement_fits(instr: &Instr) -> bool {
    let form = instr.opcode.form;
    if matches!(form, FormId::Alloca | FormId::Stacksave | FormId::Stackrestore) {
        return false;
    }
    let names_param = instr.opcode.mods().any(|m| matches!(m, Mod::Param | Mod::ParamEntry | Mod::ParamFunc));
    let own = |operand: &Operand| match operand {
        Operand::Address(Address { base: AddressBase::Symbol(symbol), .. }) => match symbol {
            Symbol::Param(_) => names_param && form == FormId::Ld,
            Symbol::Return(_) => names_param && form == FormId::St,
            _ => true,
        },
        Operand::Address(_) => !names_param,
        operand => !mentions_words(operand),
    };
    if names_param && !matches!(form, FormId::Ld | FormId::St) {
        return false;
    }
    instr.operands.iter().all(own)
}

/// Whether an operand is a parameter or a result of the function as a whole.
fn mentions_words(operand: &Operand) -> bool {
    mentions(operand, &|symbol| matches!(symbol, Symbol::Param(_) | Symbol::Return(_)))
}

/// Whether an operand names a symbol for which `is_wanted` is true.
fn mentions(operand: &Operand, is_wanted: &impl Fn(Symbol) -> bool) -> bool {
    match operand {
        Operand::Symbol(symbol, _) | Operand::Address(Address { base: AddressBase::Symbol(symbol), .. }) => {
            is_wanted(*symbol)
        }
        Operand::Vector(list) | Operand::List(list) => list.iter().any(|part| mentions(part, is_wanted)),
        Operand::Pair(pair) => mentions(&pair.0, is_wanted) || mentions(&pair.1, is_wanted),
        _ => false,
    }
}
