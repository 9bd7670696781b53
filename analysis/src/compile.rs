//! The compiler as queries.
//!
//! A function is compiled from its own [`Function`] and from the facts about the module that it mentions, so an edit
//! elsewhere recompiles nothing. Functions are compiled in parallel outside of queries, with one database handle per
//! worker; [`link`](crate::link::link) then finds every function compiled.

#![expect(unused_lifetimes, reason = "interned structs need the lifetime and use it in generated code")]

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use ptx_backend::abi::Known;
use ptx_backend::input::{
    AddressBase, Env, Function, Linkage, Operand, Signature, SrcId, Stmt, Symbol, Variable,
};
use ptx_backend::session::Session;
use ptx_backend::target::{MAX_REGISTERS, Target};
use ptx_backend::{CodegenError, CompiledFunction, Fixed, Linking};
use ptx_isa::{Facts, FormId, Mod, ScalarType, Sm};
use ptx_syntax::ItemKind;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use salsa::plumbing::AsId;
use text_size::{TextRange, TextSize};

use crate::callees::{
    body_of, inlined, is_private, serves_known_callers, shares, shares_with_unknown_callers,
};
use crate::check::lints;
use crate::check::suppressions::Suppressions;
use crate::db::{Cancelled, Database, Db, Options, SourceFile};
use crate::diagnostic::{Diagnostic, Severity};
use crate::findings;
use crate::items::{Item, item, items};
use crate::locate::trimmed;
pub use crate::lower::functions;
pub use crate::lower::statics::whole_env;
use crate::lower::{function, has_body, lower};
use crate::module::{architecture, header, is_for_debuggers, module};
use crate::product_waits;
use crate::reach::{aliasee, used_functions};

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
        nounroll: whole.nounroll,
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
    function.instrs().any(|instruction| {
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
    function.instrs().any(|instruction| {
        let form = instruction.opcode.form;
        ptx_isa::form(form).facts.has(Facts::CONVERGENT) && form != FormId::Activemask
    })
}

#[salsa::tracked]
fn calls_by_address<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    function(db, item).as_ref().is_some_and(|function| has_call_by_address(function))
}

fn has_call_by_address(function: &Function) -> bool {
    function.instrs().any(|instruction| {
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
        linking: linking(db, file),
        shows_registers: options.shows_registers(db),
        // Texts that are compiled once have no editor that shows the reasons.
        explains: !file.is_frozen(db),
        errors_at_exit: options.errors_at_exit(db),
        checks_tensor_memory: options.checks_tensor_memory(db),
        switches: options.switches(db),
    })
}

/// How the functions of a file become one file.
pub(crate) fn linking(db: &dyn Db, file: SourceFile) -> Linking {
    let options = Options::get(db);
    match options.relocatable(db) {
        true => Linking::Object,
        false if options.shows_registers(db) || is_for_debuggers(db, file) => Linking::Separate,
        false => Linking::Joined,
    }
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
        let found = compile_diagnostic(db, item).into_iter().chain(product_wait_notes(db, item));
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
pub(crate) fn has_locations(text: &str) -> bool {
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
pub(crate) fn without_code(db: &dyn Db, item: Item<'_>) -> Diagnostic {
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
    if !contains(db, item, &[FormId::Setmaxnreg]) {
        return None;
    }
    compile_function(db, item).as_deref()?.as_ref().ok()?.attributes.changes_registers?.err()
}

/// The statements before which the code of a function waits for `wgmma` products although the program does not ask for
/// it, relative to the item.
pub fn added_waits(db: &dyn Db, item: Item<'_>) -> Vec<TextRange> {
    if !contains(db, item, &product_waits::PRODUCTS) {
        return Vec::new();
    }
    let (Some(Ok(code)), Some(options)) =
        (compile_function(db, item).as_deref(), backend_options(db, item.file(db)))
    else {
        return Vec::new();
    };
    let map = &lower(db, item).map;
    let waits = product_waits::added_waits(code, sass::Sm(options.sm.number as u8));
    waits.into_iter().filter_map(|at| map.statement(at)).collect()
}

/// Whether a function contains one of these instructions. To ask first spares compiling functions that are inlined
/// everywhere.
fn contains(db: &dyn Db, item: Item<'_>, forms: &[FormId]) -> bool {
    function(db, item).as_ref().is_some_and(|input| input.contains(forms))
}

fn product_wait_notes(db: &dyn Db, item: Item<'_>) -> impl Iterator<Item = Diagnostic> {
    let message =
        "the compiler waits here for `wgmma` products, because the statement accesses their registers";
    let ranges = added_waits(db, item).into_iter();
    ranges.map(|range| Diagnostic::new(&lints::PRODUCT_WAIT, range, message.to_owned()).rule())
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
        let doubles = function.instrs().filter_map(|instr| {
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
