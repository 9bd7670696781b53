//! The compiler as queries.
//!
//! A function is compiled from its own [`Function`] and from the facts about the module that it mentions, so an edit
//! elsewhere recompiles nothing. Functions are compiled in parallel outside of queries, with one database handle per
//! worker; [`link`] then finds every function compiled.

#![expect(unused_lifetimes, reason = "interned structs need the lifetime and use it in generated code")]

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use ptx_backend::abi::Known;
use ptx_backend::assemble::{JumpTable, LinkTo};
use ptx_backend::calls::{in_order_of_objects, sort_kernels, taken_in_order};
use ptx_backend::cubin::{self, Kernel, LinkFunction, Sizes};
use ptx_backend::input::{
    AddressBase, Env, Function, Linkage, Operand, Signature, SrcId, Stmt, Symbol, Variable,
};
use ptx_backend::join::{self, Part, Program};
use ptx_backend::layout::Slot;
use ptx_backend::ori::op::Link;
use ptx_backend::session::Session;
use ptx_backend::target::{MAX_REGISTERS, Target};
use ptx_backend::{CodegenError, CompiledFunction, Fixed, Resources};
use ptx_isa::{Facts, FormId, Mod, ScalarType, Sm};
use ptx_syntax::ItemKind;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use salsa::plumbing::AsId;
use text_size::{TextRange, TextSize};

use crate::callees::{
    body_of, inlined, is_private, serves_known_callers, shares, shares_with_unknown_callers,
};
use crate::check::lints;
use crate::check::suppressions::Suppressions;
use crate::db::{Cancelled, Database, Db, Options, SourceFile};
use crate::debug_data::{self, Piece};
use crate::diagnostic::{Diagnostic, Severity};
use crate::findings;
use crate::items::{Item, item, items};
use crate::lines::Positions;
use crate::locate::{place_range, trimmed};
pub use crate::lower::functions;
pub use crate::lower::statics::whole_env;
use crate::lower::{function, has_body, lower};
use crate::module::{architecture, header, is_for_debuggers, module};
use crate::reach::{aliasee, pointed_to_by_variables, used_functions, wanted};

/// A compiled function, or the reason why it could not be compiled.
pub type Compiled = Result<CompiledFunction, CodegenError>;

/// The facts about the module that a function's body needs.
#[salsa::interned(debug)]
pub struct Mentions<'db> {
    /// The functions that it mentions, as ordinals in the module, sorted.
    #[returns(deref)]
    pub functions: Box<[u32]>,
    /// Whether it calls a function through its address.
    pub calls_by_address: bool,
}

/// The module as seen by functions that mention the same other functions. Functions that they do not mention are blank,
/// and initial values are omitted, so that changes to them recompile nothing. It is shared, because most functions of a
/// large module mention no other functions, or the same few.
#[salsa::tracked]
pub fn environment<'db>(db: &'db dyn Db, file: SourceFile, mentions: Mentions<'db>) -> Arc<Env> {
    let whole = whole_env(db, file);
    let blank = Signature { external: false, ..Signature::default() };
    let mut functions = vec![blank; whole.functions.len()];
    for &index in mentions.functions(db) {
        if let (Some(slot), Some(signature)) =
            (functions.get_mut(index as usize), whole.functions.get(index as usize))
        {
            slot.clone_from(signature);
            slot.waits = may_wait(db, file, index);
            slot.watches = may_watch(db, file, index);
            slot.known = known(db, file, index);
        }
    }
    let variables = whole.variables.iter().map(|variable| Variable {
        name: variable.name.clone(),
        space: variable.space,
        linkage: variable.linkage,
        ty: variable.ty,
        size: variable.size,
        align: variable.align,
        init: None,
        managed: variable.managed,
        unified: variable.unified,
    });
    Arc::new(Env {
        version: whole.version,
        target: whole.target,
        address_size: whole.address_size,
        independent_samplers: whole.independent_samplers,
        variables: variables.collect(),
        functions,
        pointees_wait: !mentions.calls_by_address(db) || *pointees_wait(db, file),
        pointees_watch: !mentions.calls_by_address(db) || *pointees_watch(db, file),
    })
}

/// Whether a function that is called through its address may wait for other threads of its warp: true if any function
/// may.
#[salsa::tracked]
pub fn pointees_wait(db: &dyn Db, file: SourceFile) -> bool {
    Options::get(db).relocatable(db) || any_callable(db, file, |item| *waits_itself(db, item))
}

/// Whether a function that is called through its address may watch other threads: true if any function may.
#[salsa::tracked]
pub fn pointees_watch(db: &dyn Db, file: SourceFile) -> bool {
    Options::get(db).relocatable(db) || any_callable(db, file, |item| *watches_itself(db, item))
}

/// Whether a condition holds for any function that can be called. It counts as true for a function without a body in
/// this file.
fn any_callable<'db>(db: &'db dyn Db, file: SourceFile, holds: impl Fn(Item<'db>) -> bool) -> bool {
    let module = module(db, file);
    let functions = module.env.functions.iter().zip(&module.function_items);
    let mut callable = functions.filter(|(signature, _)| !signature.entry && !signature.external);
    callable.any(|(_, place)| item(db, file, place.item).is_none_or(&holds))
}

/// Whether a body has an instruction that sleeps, or whose result may depend on what other threads do meanwhile. Also
/// true for functions without a body here.
#[salsa::tracked]
fn watches_itself<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    let Some(function) = function(db, item).as_ref() else { return true };
    function.body.iter().any(|statement| {
        let Stmt::Instr(instruction) = statement else { return false };
        let opcode = &instruction.opcode;
        let strong = [Mod::Volatile, Mod::Relaxed, Mod::Acquire, Mod::Mmio];
        match opcode.form {
            FormId::Nanosleep => true,
            // Called functions are examined separately.
            FormId::Call => false,
            FormId::Ld => strong.iter().any(|m| opcode.has(*m)),
            form => ptx_isa::form(form).facts.has(Facts::READS),
        }
    })
}

/// Whether a function, or one that it calls, may wait for other threads of its warp. Visits only reachable functions.
pub fn may_wait(db: &dyn Db, file: SourceFile, function: u32) -> bool {
    reaches(db, file, function, |item| *waits_itself(db, item), |_| false, || *pointees_wait(db, file))
}

/// Whether a function, or one that it calls, may watch other threads. Visits only reachable functions.
pub fn may_watch(db: &dyn Db, file: SourceFile, function: u32) -> bool {
    let itself = |item| *watches_itself(db, item);
    reaches(db, file, function, itself, Signature::is_malloc, || *pointees_watch(db, file))
}

/// Whether a condition holds for a function, for one that it calls or, if it calls through addresses, for functions
/// whose addresses are taken. True for functions with bodies elsewhere; `driver` is the answer for driver functions.
fn reaches<'db>(
    db: &'db dyn Db,
    file: SourceFile,
    function: u32,
    holds: impl Fn(Item<'db>) -> bool,
    driver: impl Fn(&Signature) -> bool,
    pointees: impl Fn() -> bool,
) -> bool {
    let module = module(db, file);
    let relocatable = Options::get(db).relocatable(db);
    let mut seen = FxHashSet::default();
    let mut pending = vec![function];
    while let Some(index) = pending.pop() {
        if !seen.insert(index) {
            continue;
        }
        let signature = &module.env.functions[index as usize];
        if signature.is_of_driver() {
            if driver(signature) {
                return true;
            }
            continue;
        }
        if let Some(aliased) = aliasee(module, index) {
            pending.push(aliased);
            continue;
        }
        // Another module may define a strong function with the same name.
        let is_replaced = relocatable && signature.linkage == Linkage::Weak;
        let item = item(db, file, module.function_items[index as usize].item);
        let Some(item) = item.filter(|&item| !is_replaced && !holds(item)) else { return true };
        if *calls_by_address(db, item) && pointees() {
            return true;
        }
        pending.extend(used_functions(db, item));
    }
    false
}

/// The registers that a call of a function overwrites, if its callers may rely on that.
fn known(db: &dyn Db, file: SourceFile, index: u32) -> Option<Known> {
    if !is_private(db, file, index) {
        return None;
    }
    compile_function(db, body_of(db, file, index)?).as_deref()?.as_ref().ok()?.known
}

/// Whether a body has a warp-wide operation. All of them wait, except `activemask`, which returns the threads that are
/// present. Also true for functions without a body here.
#[salsa::tracked]
fn waits_itself<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    let Some(function) = function(db, item).as_ref() else { return true };
    function.body.iter().any(|statement| {
        let Stmt::Instr(instruction) = statement else { return false };
        let form = instruction.opcode.form;
        ptx_isa::form(form).facts.has(Facts::CONVERGENT) && form != FormId::Activemask
    })
}

#[salsa::tracked]
fn calls_by_address<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    function(db, item).as_ref().is_some_and(|function| has_call_by_address(function))
}

fn has_call_by_address(function: &Function) -> bool {
    function.body.iter().any(|statement| {
        let Stmt::Instr(instruction) = statement else { return false };
        let called = |operand: &Operand| matches!(operand, Operand::Symbol(Symbol::Function(_), 0));
        instruction.opcode.form == FormId::Call && !instruction.operands.iter().any(called)
    })
}

/// The environment that a function is compiled in.
pub fn function_env<'db>(db: &'db dyn Db, file: SourceFile, function: &Function) -> &'db Arc<Env> {
    let mut mentioned = Vec::new();
    visit_symbols(function, &mut |symbol| {
        if let Symbol::Function(index) = symbol {
            mentioned.push(index);
        }
    });
    mentioned.sort_unstable();
    mentioned.dedup();
    environment(db, file, Mentions::new(db, mentioned.into_boxed_slice(), has_call_by_address(function)))
}

/// Calls `visit` with every symbol that a body mentions.
fn visit_symbols(function: &Function, visit: &mut impl FnMut(Symbol)) {
    for statement in &function.body {
        if let Stmt::Instr(instruction) = statement {
            instruction.operands.iter().for_each(|operand| visit_operand(operand, visit));
        }
    }
    let relocs =
        function.locals.iter().filter_map(|variable| variable.init.as_ref()).flat_map(|init| &init.relocs);
    relocs.for_each(|reloc| visit(reloc.symbol));
}

fn visit_operand(operand: &Operand, visit: &mut impl FnMut(Symbol)) {
    match operand {
        Operand::Symbol(symbol, _) => visit(*symbol),
        Operand::Address(address) => {
            if let AddressBase::Symbol(symbol) = address.base {
                visit(symbol);
            }
        }
        Operand::Vector(parts) | Operand::List(parts) => {
            parts.iter().for_each(|part| visit_operand(part, visit))
        }
        Operand::Pair(pair) => {
            visit_operand(&pair.0, visit);
            visit_operand(&pair.1, visit);
        }
        _ => {}
    }
}

/// The compiler's options for a file; `None` without a target.
pub fn backend_options(db: &dyn Db, file: SourceFile) -> Option<ptx_backend::Options> {
    let options = Options::get(db);
    Some(ptx_backend::Options {
        sm: architecture(db, file)?,
        // Debuggers expect the statements as written.
        opt_level: if is_for_debuggers(db, file) { 0 } else { options.opt_level(db) },
        max_registers: options.max_registers(db),
        relocatable: options.relocatable(db),
        shows_registers: options.shows_registers(db),
        errors_at_exit: options.errors_at_exit(db),
        checks_tensor_memory: options.checks_tensor_memory(db),
        switches: options.switches(db),
    })
}

/// Compiles a function. `None` for items that are not functions, have no body or have errors.
#[salsa::tracked]
pub fn compile_function<'db>(db: &'db dyn Db, item: Item<'db>) -> Option<Arc<Compiled>> {
    if function(db, item).is_none() || backend_options(db, item.file(db)).is_none() {
        return None;
    }
    let _at_work = item.file(db).at_work(db).begin(db, item.as_id());
    compile_item(db, item, &mut |env, input, options, is_private| {
        guarded(db, |session| run(env, input, options, is_private, session))
    })
    .map(Arc::new)
}

/// The text of a function after each run of a stage of the compiler, and the result of the compilation. Statement
/// numbers in the text are those of the function into which callees have been inlined, if the result says so.
pub(crate) fn stage_of(db: &dyn Db, item: Item<'_>, stage: &'static str) -> Option<StageText> {
    let mut texts = Vec::new();
    let mut is_inlined = false;
    let result = compile_item(db, item, &mut |env, input, options, is_private| {
        is_inlined = matches!(inlined(db, item), Ok(Some(inlined)) if std::ptr::eq(&inlined.function, input));
        guarded(db, |session| {
            session.shown = Some(stage);
            let result = run(env, input, options, is_private, session);
            texts = std::mem::take(&mut session.dumps);
            result
        })
    })?;
    Some(StageText { texts, is_inlined, error: result.err() })
}

pub(crate) struct StageText {
    pub(crate) texts: Vec<String>,
    /// Whether the texts are of the function with inlined callees.
    pub(crate) is_inlined: bool,
    pub(crate) error: Option<CodegenError>,
}

/// Runs one compilation: of a function with these options, private or not.
type Run<'a> = dyn FnMut(&Env, &Function, &ptx_backend::Options, bool) -> Compiled + 'a;

/// Compiles a function with `compile`, which may be called again with less inlining or another calling convention.
fn compile_item(db: &dyn Db, item: Item<'_>, compile: &mut Run<'_>) -> Option<Compiled> {
    let input = function(db, item).as_ref()?;
    let mut options = backend_options(db, item.file(db))?;
    if !input.entry {
        // All callers must be able to run.
        options.max_registers = Some(*callee_registers(db, item.file(db)));
    }
    if let Some(error) = too_large(db, item.file(db), input) {
        return Some(Err(error));
    }
    let file = item.file(db);
    let is_private = !input.entry && *serves_known_callers(db, item);
    if !input.entry && *shares_with_unknown_callers(db, item) {
        let what = "module-scope registers or variables of a function that is called by its address".into();
        return Some(Err(CodegenError::Unsupported { at: SrcId(u32::MAX), what }));
    }
    match inlined(db, item) {
        Ok(None) => {}
        Ok(Some(inlined)) => {
            let env = function_env(db, file, &inlined.function);
            match compile(env, &inlined.function, &options, is_private) {
                Ok(mut code) => {
                    inlined.restore(&mut code);
                    return Some(Ok(code));
                }
                Err(error) if shares(db, file) => {
                    return Some(Err(inlined.restore_error(error)));
                }
                // A callee may be the reason, or inlining may exceed a limit.
                Err(_) => {}
            }
        }
        Err(error) => return Some(Err(error.clone())),
    }
    let env = function_env(db, file, input);
    Some(match compile(env, input, &options, is_private) {
        Err(CodegenError::Limit { .. }) if is_private => compile(env, input, &options, false),
        code => code,
    })
}

/// The maximum number of registers of functions: the number in the options, or the number that the launch bounds of
/// every kernel of the file allow.
#[salsa::tracked]
fn callee_registers(db: &dyn Db, file: SourceFile) -> u32 {
    if let Some(limit) = Options::get(db).max_function_registers(db) {
        return limit;
    }
    let limit = |item: Item<'_>| {
        let kernel = function(db, item).as_ref().filter(|function| function.entry)?;
        Some(ptx_backend::register_limit(&kernel.launch, &backend_options(db, file)?))
    };
    functions(db, file).filter_map(limit).min().unwrap_or(MAX_REGISTERS)
}

/// Why a function is not compiled while its file is being edited.
fn too_large(db: &dyn Db, file: SourceFile, input: &Function) -> Option<CodegenError> {
    let statements = input.body.len();
    let limit = Options::get(db).live_limit(db)?;
    if statements <= limit as usize || file.compiles_all(db) {
        return None;
    }
    // The reason is not in a statement.
    let at = SrcId(u32::MAX);
    Some(CodegenError::Unsupported { at, what: format!("{statements} statements") })
}

/// Whether a function has no code because it is too large to be compiled while its file is being edited.
pub(crate) fn is_too_large(db: &dyn Db, item: Item<'_>) -> bool {
    function(db, item).as_ref().is_some_and(|input| too_large(db, item.file(db), input).is_some())
}

fn run(
    env: &Env,
    input: &Function,
    options: &ptx_backend::Options,
    is_private: bool,
    session: &mut Session<'_>,
) -> Compiled {
    match is_private {
        true => ptx_backend::compile_private(env, input, options, session),
        false => ptx_backend::compile(env, input, options, session),
    }
}

/// Runs one compilation. Unwinding cancels it, and a panic of the compiler becomes an error.
fn guarded(db: &dyn Db, run: impl FnOnce(&mut Session<'_>) -> Compiled) -> Compiled {
    let checkpoint = || db.unwind_if_revision_cancelled();
    let result = catch_unwind(AssertUnwindSafe(|| run(&mut Session::new(&checkpoint))));
    result.unwrap_or_else(|payload| {
        if payload.is::<Cancelled>() {
            resume_unwind(payload);
        }
        let what = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic".to_owned());
        Err(CodegenError::internal(SrcId(0), "compile", what))
    })
}

/// The compiler's diagnostics. Compiles all functions that have not been compiled yet.
pub fn compile_diagnostics(db: &Database, file: SourceFile) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    if let Some((directive, reason)) = unsupported_header(db, file) {
        // One finding at the directive, not one for each function. 32-bit addresses are an error of the module.
        if directive == ItemKind::Target {
            let target = items(db, file).iter().find(|item| item.kind(db) == directive);
            let place = target.map_or_else(TextRange::default, |&target| trimmed(db, target));
            let note =
                "code for older targets also runs on later ones: set `target` to compile it for one of them";
            all.push(Diagnostic::new(&lints::NOT_COMPILED, place, reason).note(note));
        }
        return findings::finish(db, file, all, &Suppressions::of(db, file));
    }
    for &item in items(db, file) {
        let found = compile_diagnostic(db, item).into_iter().chain(product_waits(db, item));
        all.extend(found.map(|d| d.shifted(item.offset(db))));
    }
    findings::finish(db, file, all, &Suppressions::of(db, file))
}

/// Compiles every function of a file on all cores. `progress` is called with the number done and the total, in
/// no particular order.
pub fn compile_all(db: &Database, file: SourceFile, progress: &(dyn Fn(usize, usize) + Sync)) {
    let total = items(db, file).len();
    let done = std::sync::atomic::AtomicUsize::new(0);
    (0..total).into_par_iter().for_each_with(db.clone(), |db, index| {
        let db: &Database = db;
        let item = items(db, file)[index];
        if item.kind(db).is_function() {
            compile_function(db, item);
        }
        let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        progress(done, total);
    });
}

/// Checks every item of a file on all cores, so that its diagnostics are available.
pub fn check_all(db: &Database, file: SourceFile) {
    let total = items(db, file).len();
    (0..total).into_par_iter().for_each_with(db.clone(), |db, index| {
        let db: &Database = db;
        lower(db, items(db, file)[index]);
    });
}

/// Whether `.loc` may be a word of the text. Most texts without it contain `.local`.
fn has_locations(text: &str) -> bool {
    text.match_indices(".loc").any(|(at, word)| !text[at + word.len()..].starts_with("al"))
}

/// Why no function of a file can be compiled, and the header directive that is the cause.
fn unsupported_header(db: &dyn Db, file: SourceFile) -> Option<(ItemKind, String)> {
    if header(db, file).address_size() != 64 {
        return Some((ItemKind::AddressSize, "32-bit addresses are not supported".to_owned()));
    }
    let sm = architecture(db, file).filter(|&sm| Target::of(sm).is_none())?;
    let supported = Sm::KNOWN.into_iter().filter(|&sm| Target::of(sm).is_some());
    let oldest = supported.min_by_key(|sm| sm.number)?;
    let reason = if sm.number < oldest.number {
        format!("the compiler supports {oldest} and later")
    } else {
        format!("the compiler does not support {sm} yet")
    };
    Some((ItemKind::Target, reason))
}

/// The diagnostic for a construct that the compiler does not support. `what` is a noun phrase. If the reason is an
/// instruction, it follows the full name of the instruction.
fn unsupported(db: &dyn Db, item: Item<'_>, at: SrcId, what: &str) -> String {
    if is_too_large(db, item) {
        let name = item.name(db);
        return format!(
            "`{name}` is too large to compile while typing ({what}); save the file to compile it"
        );
    }
    let name = || {
        let statement = &item.text(db)[lower(db, item).map.statement(at)?];
        let (mnemonic, reason) = what.split_once(": ")?;
        let words = statement.split(|c: char| c.is_ascii_whitespace() || c == ';');
        let name = words.into_iter().find(|word| word.split('.').next() == Some(mnemonic))?;
        Some(format!("`{name}` is not supported yet: {reason}"))
    };
    name().unwrap_or_else(|| format!("`{}` cannot be compiled yet: {what}", item.name(db)))
}

/// Why a function without errors was not passed to the compiler.
fn not_lowered(db: &dyn Db, item: Item<'_>) -> Option<Diagnostic> {
    let lowered = lower(db, item);
    let is_wrong = || lowered.diagnostics.iter().any(|d| d.severity == Severity::Error);
    if !item.kind(db).is_function() || !lowered.has_body || is_wrong() {
        return None;
    }
    let name = lowered.map.name_range().unwrap_or_default();
    let (range, what) = match lowered.not_understood {
        Some(statement) => (statement, "cannot be compiled yet: unsupported statement"),
        None if lowered.function.is_some() => (name, "is not compiled: the module has no target"),
        None => (name, "cannot be compiled yet: unsupported declaration"),
    };
    let message = format!("`{}` {what}", item.name(db));
    Some(Diagnostic::new(&lints::NOT_COMPILED, range, message))
}

/// The diagnostic for a function without machine code and without another reason, so that it is not silently missing
/// from a file.
fn without_code(db: &dyn Db, item: Item<'_>) -> Diagnostic {
    let range = lower(db, item).map.name_range().unwrap_or_default();
    Diagnostic::new(
        &lints::NOT_COMPILED,
        range,
        format!("`{}` is not compiled: it has errors", item.name(db)),
    )
}

/// The compiler's diagnostic for an item, relative to the item.
pub fn compile_diagnostic(db: &dyn Db, item: Item<'_>) -> Option<Diagnostic> {
    if let Some((_, reason)) = unsupported_header(db, item.file(db)).filter(|_| has_body(db, item)) {
        let name = lower(db, item).map.name_range().unwrap_or_default();
        let message = format!("`{}` is not compiled: {reason}", item.name(db));
        return Some(Diagnostic::new(&lints::NOT_COMPILED, name, message));
    }
    let Some(compiled) = compile_function(db, item).as_ref() else { return not_lowered(db, item) };
    let error = compiled.as_ref().as_ref().err()?;
    let map = &lower(db, item).map;
    let range = map.statement(error.at()).or_else(|| map.name_range()).unwrap_or_default();
    Some(match error {
        CodegenError::Unsupported { at, what } => {
            Diagnostic::new(&lints::NOT_COMPILED, range, unsupported(db, item, *at, what))
        }
        CodegenError::Limit { what, .. } => Diagnostic::new(&lints::HARDWARE_LIMIT, range, what.clone()),
        CodegenError::Internal { phase, what, .. } => {
            Diagnostic::new(&lints::INTERNAL, range, format!("internal compiler error in {phase}: {what}"))
                .note(
                    "this is a defect of the compiler, not of the program; the function has no machine code",
                )
        }
    })
}

/// Why `setmaxnreg` of a function is ignored.
pub fn kept_registers(db: &dyn Db, item: Item<'_>) -> Option<Fixed> {
    compile_function(db, item).as_deref()?.as_ref().ok()?.attributes.changes_registers?.err()
}

/// The statements before which the code of a function waits for `wgmma` products although the program does not ask for
/// it, relative to the item.
pub fn added_waits(db: &dyn Db, item: Item<'_>) -> Vec<TextRange> {
    let (Some(input), Some(Ok(code)), Some(options)) =
        (function(db, item), compile_function(db, item).as_deref(), backend_options(db, item.file(db)))
    else {
        return Vec::new();
    };
    let map = &lower(db, item).map;
    let waits = crate::product_waits::added_waits(input, code, sass::Sm(options.sm.number as u8));
    waits.into_iter().filter_map(|at| map.statement(at)).collect()
}

fn product_waits(db: &dyn Db, item: Item<'_>) -> impl Iterator<Item = Diagnostic> {
    let message =
        "the compiler waits here for `wgmma` products, because the statement accesses their registers";
    let ranges = added_waits(db, item).into_iter();
    ranges.map(|range| Diagnostic::new(&lints::PRODUCT_WAIT, range, message.to_owned()).rule())
}

/// Options of linking.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkOptions {
    /// Names of kernels to link, with the functions that they call; empty for all functions.
    pub entries: Vec<String>,
    /// Recorded in the cubin as the tool's command line.
    pub arguments: String,
    pub lines: LineTables,
    /// Whether to pass debug data through. Modules with `.target …, debug` always have theirs passed through.
    pub debug: bool,
    /// Whether an object is a whole program that calls functions of other modules, as with
    /// `--extensible-whole-program`.
    pub extensible: bool,
}

/// When line tables are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LineTables {
    /// If the text has `.loc` directives, as ptxas does.
    #[default]
    Given,
    Always,
    Never,
}

/// A linked module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linked {
    pub cubin: Vec<u8>,
    /// The functions in the order of the output file: the last kernel of the text first. For an object, also its
    /// functions, callees before their callers.
    pub kernels: Vec<LinkedKernel>,
    /// The sizes of variables, and of constant banks 3 and 4.
    pub sizes: Sizes,
    /// Whether the text has `.loc` directives but no `.file` directive.
    pub lacks_files: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkedKernel {
    pub name: String,
    /// Whether it is a kernel; otherwise it is a function of an object.
    pub entry: bool,
    /// The stack frame, which contains those of functions in the kernel's frame, and the function's own spills.
    pub frame: Frame,
    /// The resources of the kernel with all functions that it calls; the stack size is the maximum.
    pub resources: Resources,
    /// The size of constant bank 2.
    pub bank_2_bytes: u32,
    /// The numbers of texture, surface and sampler indices in constant bank 0.
    pub handles: [u32; 3],
    /// The functions that it may call, by name. Functions that other modules may replace come last.
    pub parts: Vec<LinkedPart>,
}

/// A function in a kernel's code. The bytes of its frame are 0 if it is in the kernel's frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkedPart {
    pub name: String,
    pub frame: Frame,
}

/// The bytes of a function's stack frame, and of its spill stores and loads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    pub bytes: u32,
    pub spill_stores: u32,
    pub spill_loads: u32,
}

impl Frame {
    fn of(resources: &Resources) -> Self {
        Frame {
            bytes: resources.stack_bytes,
            spill_stores: resources.spill_store_bytes,
            spill_loads: resources.spill_load_bytes,
        }
    }
}

/// Compiles and links a file. Functions that [`compile_all`] has not compiled are compiled here by one thread; for few
/// functions this is cheaper than waking other threads.
///
/// # Errors
/// The reasons why the module cannot be linked, in file offsets: the errors of the program or, if it has none, the
/// constructs that the compiler does not support.
pub fn link(db: &Database, file: SourceFile, options: &LinkOptions) -> Result<Linked, Vec<Diagnostic>> {
    link_watched(db, file, options, &mut |_| ())
}

/// As [`link`]; `compiled` is called with the name of each function once it is compiled.
///
/// # Errors
/// As there.
pub fn link_watched(
    db: &Database,
    file: SourceFile,
    options: &LinkOptions,
    compiled: &mut dyn FnMut(&str),
) -> Result<Linked, Vec<Diagnostic>> {
    let mut errors = findings::diagnostics_for(db, file, &options.entries);
    errors.retain(|diagnostic| diagnostic.severity == Severity::Error);
    if !errors.is_empty() {
        return Err(errors);
    }
    let (mut linked, mut compiled_items) = (Vec::new(), Vec::new());
    let needed = needed(db, file, &options.entries, compiled);
    for item in wanted(db, file, &options.entries).into_iter().filter(|item| needed.contains(item)) {
        let offset = item.offset(db);
        let (Some(input), Some(result)) = (function(db, item), compile_function(db, item)) else {
            // Not an error of the program: the table does not describe an instruction, or the module has no target.
            let reasons = lower(db, item).diagnostics.iter().filter(|d| d.lint == &lints::NOT_CHECKED);
            let known = errors.len();
            errors.extend(reasons.map(|d| d.clone().shifted(offset)));
            if errors.len() == known {
                let reason = compile_diagnostic(db, item).unwrap_or_else(|| without_code(db, item));
                errors.push(reason.shifted(offset));
            }
            continue;
        };
        match result.as_ref() {
            Ok(code) => {
                linked.push(LinkFunction { input, code });
                compiled_items.push(item);
            }
            Err(_) => errors.extend(compile_diagnostic(db, item).map(|d| d.shifted(offset))),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let Some(target) = backend_options(db, file) else { return Err(errors) };
    let module = module(db, file);
    let aliases: Vec<(String, String)> =
        module.aliases.iter().map(|(name, of)| (name.to_string(), of.to_string())).collect();
    let env = whole_env(db, file);
    let program = Program::new(env, &linked, &aliases);
    let not_linked = |error: CodegenError| {
        let range = text_size::TextRange::empty(0.into());
        vec![Diagnostic::new(&lints::NOT_COMPILED, range, format!("cannot link the module: {error}"))]
    };
    let text = file.text(db);
    if target.relocatable
        && let Some(alias) = module.env.functions.iter().position(|declared| {
            declared.unified.is_some() && aliases.iter().any(|(name, _)| *name == declared.name)
        })
    {
        let range = place_range(db, file, module.function_items[alias]).unwrap_or_default();
        let message = "a `.unified` alias is not supported yet: the table of functions has no entry for it";
        return Err(vec![Diagnostic::new(&lints::NOT_COMPILED, range, message)]);
    }
    let may_have = match options.lines {
        LineTables::Given => has_locations(text),
        LineTables::Always => true,
        LineTables::Never => false,
    };
    let positions = may_have.then(|| Positions::read(text));
    let positions = positions.filter(|p| options.lines == LineTables::Always || p.any());
    let Some(row) = Target::of(target.sm) else { return Err(errors) };
    let has_debug = options.lines != LineTables::Never && (options.debug || is_for_debuggers(db, file));
    let positions = positions.map(|mut positions| {
        positions.has_debug_data = has_debug;
        positions
    });
    // `places`: the section and offset of each function's code.
    let debug = |places: Vec<Option<(usize, u64)>>| {
        let pieces = linked.iter().zip(&compiled_items).zip(places);
        let pieces: Vec<Piece<'_, '_>> = pieces
            .map(|((function, &item), place)| Piece {
                item,
                input: function.input,
                code: function.code,
                place,
            })
            .collect();
        let read = || debug_data::read(db, file, env, row, target.relocatable, &pieces);
        has_debug.then(read).flatten()
    };
    let lacks_files = positions.as_ref().is_some_and(Positions::lacks_files);
    if target.relocatable {
        let lines = positions.map(|mut positions| {
            for (function, &item) in linked.iter().zip(&compiled_items) {
                positions.add_code(db, std::iter::once((item, function.code, 0)));
            }
            positions.finish(text)
        });
        let places: Vec<_> = (0..linked.len()).map(|function| Some((function, 0))).collect();
        let debug = debug(places);
        let object =
            cubin::object(&program, &linked, &target, &options.arguments, lines.as_ref(), debug.as_ref());
        let (cubin, sizes) = object.map_err(not_linked)?;
        let report = |(function, shared_bytes): (&LinkFunction<'_>, u32)| LinkedKernel {
            name: function.input.name.clone(),
            entry: function.input.entry,
            frame: Frame::of(&function.code.resources),
            // The linker knows the rest of the stack.
            resources: Resources { stack_bytes: 0, shared_bytes, ..function.code.resources },
            bank_2_bytes: function.code.tables.iter().map(JumpTable::bytes).sum(),
            handles: [0; 3],
            parts: Vec::new(),
        };
        let by_name: FxHashMap<&str, &LinkFunction<'_>> =
            linked.iter().map(|function| (&*function.input.name, function)).collect();
        let of = |index: u32| by_name.get(&*env.functions[index as usize].name).copied();
        let bodies = |index| of(index).map(|of| of.input);
        let taken = taken_in_order(env, &bodies);
        let ordered = in_order_of_objects(env, &bodies, &taken, target.opt_level > 0);
        let shared_bytes = |index, function: &LinkFunction<'_>| {
            let is_whole = options.extensible && function.input.entry;
            let all = is_whole.then(|| join::shared_bytes(env, index, &of, &taken, row));
            all.unwrap_or_default().max(function.code.resources.shared_bytes)
        };
        let with_shared = |index| of(index).map(|function| (function, shared_bytes(index, function)));
        let kernels = ordered.into_iter().filter_map(with_shared).map(report).collect();
        return Ok(Linked { cubin, kernels, sizes, lacks_files });
    }
    let mut joined = Vec::new();
    for function in kernels_in_order(db, file, env, &linked) {
        joined.push((function, program.join(function, row).map_err(not_linked)?));
    }
    let reports = joined.iter().map(|(own, joined)| {
        let part = |part: &Part| {
            let code = linked.iter().find(|f| !f.code.entry && f.input.name == part.name).map(|f| f.code);
            let mut frame = code.map_or(Frame::default(), |code| Frame::of(&code.resources));
            if !part.is_apart {
                frame.bytes = 0;
            }
            (part.linkage == Linkage::Weak, LinkedPart { name: part.name.clone(), frame })
        };
        let mut parts: Vec<(bool, LinkedPart)> = joined.parts.iter().map(part).collect();
        parts.sort_by(|(a, x), (b, y)| (a, &x.name).cmp(&(b, &y.name)));
        LinkedKernel {
            name: own.input.name.clone(),
            entry: true,
            frame: Frame { bytes: joined.frame_bytes, ..Frame::of(&own.code.resources) },
            resources: joined.kernel.resources,
            bank_2_bytes: joined.constants.len() as u32,
            handles: joined.kernel.attributes.handles.counts(env, own.input),
            parts: parts.into_iter().map(|(_, part)| part).collect(),
        }
    });
    let reports = reports.collect();
    let kernels: Vec<Kernel<'_>> =
        joined.iter().map(|(own, joined)| Kernel { input: own.input, joined }).collect();
    let lines = positions.map(|mut positions| {
        let place = |name: &str, entry: bool| {
            linked.iter().position(|f| f.input.entry == entry && f.input.name == name)
        };
        for (own, joined) in &joined {
            let parts = joined.parts.iter().filter_map(|part| Some((place(&part.name, false)?, part.start)));
            let pieces = place(&own.input.name, true).map(|at| (at, 0)).into_iter().chain(parts);
            let pieces = pieces.map(|(at, start)| (compiled_items[at], linked[at].code, start));
            positions.add_code(db, pieces);
        }
        positions.finish(text)
    });
    // A function that several kernels contain is described at its position in the first one.
    let place = |function: &LinkFunction<'_>| {
        joined.iter().enumerate().find_map(|(kernel, (own, joined))| {
            if function.code.entry {
                return (own.input.name == function.input.name).then_some((kernel, 0));
            }
            let part = joined.parts.iter().find(|part| part.name == function.input.name)?;
            Some((kernel, part.start))
        })
    };
    let debug = debug(linked.iter().map(place).collect());
    match cubin::link(&program, &kernels, &target, &options.arguments, lines.as_ref(), debug.as_ref()) {
        Ok((cubin, sizes)) => Ok(Linked { cubin, kernels: reports, sizes, lacks_files }),
        Err(error) => Err(not_linked(error)),
    }
}

/// The kernels among these functions, in the order in which ptxas writes them.
fn kernels_in_order<'l>(
    db: &Database,
    file: SourceFile,
    env: &Env,
    linked: &[LinkFunction<'l>],
) -> Vec<LinkFunction<'l>> {
    let all = 0..env.functions.len() as u32;
    let by_name: FxHashMap<&str, LinkFunction<'l>> =
        linked.iter().filter(|f| f.code.entry).map(|f| (&*f.input.name, *f)).collect();
    let kernel = |index: u32| by_name.get(&*env.functions[index as usize].name).copied();
    // Functions count even if no kernel needs them.
    let bodies: Vec<Option<&Function>> =
        all.clone().map(|index| function(db, body_of(db, file, index)?).as_deref()).collect();
    let bodies = |index: u32| bodies.get(index as usize).copied().flatten();
    let mut kernels: Vec<u32> = all.filter(|&index| kernel(index).is_some()).collect();
    sort_kernels(&mut kernels, &bodies, &taken_in_order(env, &bodies));
    kernels.into_iter().filter_map(kernel).collect()
}

/// The functions to link: kernels, and functions that are still called or whose addresses are taken after inlining. For
/// an object, and if a kernel has no code, all functions that may be needed.
fn needed<'db>(
    db: &'db Database,
    file: SourceFile,
    entries: &[String],
    compiled: &mut dyn FnMut(&str),
) -> FxHashSet<Item<'db>> {
    let is_object = Options::get(db).relocatable(db);
    let start =
        wanted(db, file, entries).into_iter().filter(|item| is_object || item.kind(db) == ItemKind::Entry);
    let mut pending: Vec<Item<'_>> = start.collect();
    pending.reverse();
    let mut indices: Vec<u32> = pointed_to_by_variables(db, file).collect();
    let mut needed = FxHashSet::default();
    let module = module(db, file);
    loop {
        for index in std::mem::take(&mut indices) {
            let index = aliasee(module, index).unwrap_or(index);
            pending.extend(body_of(db, file, index));
        }
        let Some(item) = pending.pop() else { return needed };
        if !needed.insert(item) {
            continue;
        }
        match compile_function(db, item).as_deref() {
            Some(Ok(code)) => {
                compiled(item.name(db));
                indices.extend(code.links.iter().filter_map(|link| match link.to {
                    LinkTo::Function(index) => Some(index),
                    LinkTo::Symbol(Link { symbol: Symbol::Function(index), .. }) => Some(index),
                    _ => None,
                }));
                indices.extend(code.attributes.symbols.iter().filter_map(|slot| match slot {
                    Slot::Function(index) => Some(*index),
                    _ => None,
                }));
            }
            _ => indices.extend(used_functions(db, item)),
        }
    }
}

/// The name of the function at a position.
pub fn function_at(db: &Database, file: SourceFile, at: TextSize) -> Option<&str> {
    let all = items(db, file);
    let item = *all.get(all.partition_point(|item| item.offset(db) <= at).checked_sub(1)?)?;
    item.kind(db).is_function().then(|| item.name(db).as_str())
}

/// The offsets of instructions on values of 64-bit floating-point types. An instruction that ptxas expands to two appears
/// twice.
pub fn doubles(db: &Database, file: SourceFile) -> Vec<TextSize> {
    let mut all = Vec::new();
    for item in functions(db, file) {
        let (lowered, offset) = (lower(db, item), item.offset(db));
        let Some(function) = &lowered.function else { continue };
        let doubles = function.body.iter().filter_map(|statement| {
            let Stmt::Instr(instr) = statement else { return None };
            let double = instr.opcode.types().any(|ty| ty == ScalarType::F64);
            let at = lowered.map.statement(instr.src).filter(|_| double)?.start() + offset;
            let is_expanded = matches!(instr.opcode.form, FormId::Cvt | FormId::Testp);
            Some(iter::repeat_n(at, 1 + usize::from(is_expanded)))
        });
        all.extend(doubles.flatten());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the functions that may wait for other threads.
    fn watching(text: &str) -> Vec<String> {
        let db = Database::default();
        let file = db.add_frozen_file(format!(".version 8.0\n.target sm_80\n.address_size 64\n{text}"));
        let functions = &module(&db, file).env.functions;
        let watching = (0..).zip(functions).filter(|(i, _)| may_watch(&db, file, *i));
        watching.map(|(_, signature)| signature.name.clone()).collect()
    }

    #[test]
    fn functions_watch_other_threads_where_they_or_what_they_call_read_strongly() {
        let text = "
            .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
            .func even(.param .b32 a);
            .func odd(.param .b32 a) { .param .b32 b; call even, (b); ret; }
            .func even(.param .b32 a) { .param .b32 b; call odd, (b); ret; }
            .func says(.param .b64 a) { .param .b32 r; .param .b64 b, c; call (r), vprintf, (b, c); ret; }
            .func reads(.param .b64 a) { .reg .b32 %r; .reg .b64 %d; ld.param.b64 %d, [a]; ld.b32 %r, [%d]; ret; }
            .func waits() { .reg .b32 %r; .reg .b64 %d; ld.acquire.gpu.b32 %r, [%d]; ret; }
            .func locks() { .reg .b32 %r; .reg .b64 %d; atom.cas.b32 %r, [%d], 0, 1; ret; }
            .func sleeps() { nanosleep.u32 20; ret; }
            .func calls() { call locks; ret; }";
        assert_eq!(watching(text), ["waits", "locks", "sleeps", "calls"]);
        // A call by address may call any of them.
        let by_address =
            ".func any(.param .b64 a) { .reg .b64 %d; p: .callprototype _ (); call %d, (), p; ret; }";
        assert_eq!(watching(by_address), [""; 0]);
        assert_eq!(
            watching(&format!("{by_address} .func sleeps() {{ nanosleep.u32 20; ret; }}")),
            ["any", "sleeps"]
        );
        let memory = "
            .extern .func (.param .b64 r) malloc(.param .b64 a);
            .func takes() { .param .b64 r, a; call (r), malloc, (a); ret; }";
        assert_eq!(watching(memory), ["malloc", "takes"]);
    }
}
