//! Linking a compiled file to a cubin.

use ptx_backend::assemble::{JumpTable, LinkTo};
use ptx_backend::calls::{in_order_of_objects, sort_kernels, taken_in_order};
use ptx_backend::cubin::{self, Kernel, LinkFunction, Sizes};
use ptx_backend::input::{Env, Function, Linkage, Symbol};
use ptx_backend::join::{self, Joined, Part, Program};
use ptx_backend::layout::Slot;
use ptx_backend::ori::op::Link;
use ptx_backend::target::Target;
use ptx_backend::{CodegenError, Resources};
use ptx_syntax::ItemKind;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::callees::body_of;
use crate::check::lints;
use crate::compile::{
    backend_options, compile_diagnostic, compile_function, has_locations, linking, whole_env, without_code,
};
use crate::db::{Database, SourceFile};
use crate::debug_data::{self, Piece};
use crate::diagnostic::{Diagnostic, Severity};
use crate::findings;
use crate::items::Item;
use crate::lines::Positions;
use crate::locate::place_range;
use crate::lower::{function, lower};
use crate::module::{is_for_debuggers, module};
use crate::reach::{aliasee, pointed_to_by_variables, used_functions, wanted};

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
    /// The functions in the order of the output file: the last kernel of the text first. If functions have sections of
    /// their own, also these, callees before their callers.
    pub kernels: Vec<LinkedKernel>,
    /// The sizes of variables, and of constant banks 3 and 4.
    pub sizes: Sizes,
    /// Whether the text has `.loc` directives but no `.file` directive.
    pub lacks_files: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkedKernel {
    pub name: String,
    /// Whether it is a kernel; otherwise it is a function with a section of its own.
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

/// Compiles and links a file. Functions that [`compile_all`](crate::compile::compile_all) has not compiled are compiled
/// here by one thread; for few functions this is cheaper than waking other threads.
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
    let Some(row) = Target::of(target.sm) else { return Err(errors) };
    let module = module(db, file);
    let aliases: Vec<(String, String)> =
        module.aliases.iter().map(|(name, of)| (name.to_string(), of.to_string())).collect();
    let env = whole_env(db, file);
    let program = Program::new(env, &linked, &aliases);
    let is_alias = |name: &str| aliases.iter().any(|(alias, _)| *alias == name);
    let unified = module.env.functions.iter().position(|f| f.unified.is_some() && is_alias(&f.name));
    if let Some(alias) = unified.filter(|_| target.linking.is_object()) {
        let range = place_range(db, file, module.function_items[alias]).unwrap_or_default();
        let message = "a `.unified` alias is not supported yet: the table of functions has no entry for it";
        return Err(vec![Diagnostic::new(&lints::NOT_COMPILED, range, message)]);
    }
    let has_debug = options.lines != LineTables::Never && (options.debug || is_for_debuggers(db, file));
    let by_name: FxHashMap<&str, LinkFunction<'_>> = linked.iter().map(|f| (&*f.input.name, *f)).collect();
    let compiled = Compiled {
        db,
        file,
        options,
        env,
        program: &program,
        linked: &linked,
        by_name,
        items: &compiled_items,
        target: &target,
        row,
        has_debug,
    };
    let written = if target.linking.is_object() { compiled.object() } else { compiled.executable() };
    written.map_err(|error| {
        let range = text_size::TextRange::empty(0.into());
        vec![Diagnostic::new(&lints::NOT_COMPILED, range, format!("cannot link the module: {error}"))]
    })
}

/// A module whose functions have all been compiled.
struct Compiled<'m, 'db> {
    db: &'db Database,
    file: SourceFile,
    options: &'m LinkOptions,
    env: &'m Env,
    program: &'m Program<'m>,
    linked: &'m [LinkFunction<'m>],
    by_name: FxHashMap<&'m str, LinkFunction<'m>>,
    /// The item of each function in `linked`.
    items: &'m [Item<'db>],
    target: &'m ptx_backend::Options,
    row: &'static Target,
    has_debug: bool,
}

impl<'m> Compiled<'m, '_> {
    /// What line tables are made from; `None` if the file has none.
    fn positions(&self) -> Option<Positions> {
        let text = self.file.text(self.db);
        let may_have = match self.options.lines {
            LineTables::Given => has_locations(text),
            LineTables::Always => true,
            LineTables::Never => false,
        };
        let mut positions = may_have.then(|| Positions::read(text))?;
        positions.has_debug_data = self.has_debug;
        (self.options.lines == LineTables::Always || positions.any()).then_some(positions)
    }

    /// The debug data, if there is any. `places`: the section and offset of each function's code.
    fn debug(&self, places: impl Iterator<Item = Option<(usize, u64)>>) -> Option<cubin::Debug> {
        let pieces = self.linked.iter().zip(self.items).zip(places);
        let pieces: Vec<Piece<'_, '_>> = pieces
            .map(|((function, &item), place)| Piece {
                item,
                input: function.input,
                code: function.code,
                place,
            })
            .collect();
        let read = || debug_data::read(self.db, self.file, self.env, self.row, self.target.linking, &pieces);
        self.has_debug.then(read).flatten()
    }

    fn object(&self) -> Result<Linked, CodegenError> {
        let positions = self.positions();
        let lacks_files = positions.as_ref().is_some_and(Positions::lacks_files);
        let lines = positions.map(|mut positions| {
            for (function, &item) in self.linked.iter().zip(self.items) {
                positions.add_code(self.db, std::iter::once((item, function.code, 0)));
            }
            positions.finish(self.file.text(self.db))
        });
        let debug = self.debug((0..self.linked.len()).map(|function| Some((function, 0))));
        let (cubin, sizes) = cubin::object(
            self.program,
            self.linked,
            self.target,
            &self.options.arguments,
            lines.as_ref(),
            debug.as_ref(),
        )?;
        Ok(Linked { cubin, kernels: self.reports_of_object(), sizes, lacks_files })
    }

    /// The function at an index of [`Env::functions`], if it is among those to link.
    fn of(&self, index: u32) -> Option<LinkFunction<'m>> {
        self.by_name.get(&*self.env.functions[index as usize].name).copied()
    }

    /// Functions with sections of their own, in the order in which ptxas prints them.
    fn in_order_of_sections(&self) -> Vec<LinkFunction<'m>> {
        let bodies = |index| self.of(index).map(|of| of.input);
        let ordered = in_order_of_objects(self.env, &bodies, &taken_in_order(self.env, &bodies), false);
        ordered.into_iter().filter_map(|index| self.of(index)).collect()
    }

    /// The kernels, in the order in which ptxas writes them.
    fn kernels_in_order(&self) -> Vec<LinkFunction<'m>> {
        let all = 0..self.env.functions.len() as u32;
        let kernel = |index| self.of(index).filter(|of| of.code.entry);
        // Functions count even if no kernel needs them.
        let bodies: Vec<Option<&Function>> = all
            .clone()
            .map(|index| function(self.db, body_of(self.db, self.file, index)?).as_deref())
            .collect();
        let bodies = |index: u32| bodies.get(index as usize).copied().flatten();
        let mut kernels: Vec<u32> = all.filter(|&index| kernel(index).is_some()).collect();
        sort_kernels(&mut kernels, &bodies, &taken_in_order(self.env, &bodies));
        kernels.into_iter().filter_map(kernel).collect()
    }

    fn reports_of_object(&self) -> Vec<LinkedKernel> {
        let bodies = |index| self.of(index).map(|of| of.input);
        let taken = taken_in_order(self.env, &bodies);
        let report = |index| {
            let function = self.of(index)?;
            let is_whole = self.options.extensible && function.input.entry;
            let all = is_whole
                .then(|| join::shared_bytes(self.env, index, &|index| self.of(index), &taken, self.row));
            let shared_bytes = all.unwrap_or_default().max(function.code.resources.shared_bytes);
            Some(LinkedKernel {
                name: function.input.name.clone(),
                entry: function.input.entry,
                frame: Frame::of(&function.code.resources),
                // The linker knows the rest of the stack.
                resources: Resources { stack_bytes: 0, shared_bytes, ..function.code.resources },
                bank_2_bytes: function.code.tables.iter().map(JumpTable::bytes).sum(),
                handles: [0; 3],
                parts: Vec::new(),
            })
        };
        let ordered = in_order_of_objects(self.env, &bodies, &taken, self.target.opt_level > 0);
        ordered.into_iter().filter_map(report).collect()
    }

    fn executable(&self) -> Result<Linked, CodegenError> {
        let joined: Vec<(LinkFunction<'m>, Joined)> = if self.target.linking.is_joined() {
            let kernels = self.kernels_in_order().into_iter();
            kernels
                .map(|kernel| Ok((kernel, self.program.join(kernel, self.row)?)))
                .collect::<Result<_, _>>()?
        } else {
            let ordered = self.in_order_of_sections();
            let separate = self.program.separate(&ordered, self.row)?;
            ordered.into_iter().zip(separate).collect()
        };
        let positions = self.positions();
        let lacks_files = positions.as_ref().is_some_and(Positions::lacks_files);
        let lines = positions.map(|mut positions| {
            let place = |name: &str, entry: bool| {
                self.linked.iter().position(|f| f.input.entry == entry && f.input.name == name)
            };
            for (own, joined) in &joined {
                let parts =
                    joined.parts.iter().filter_map(|part| Some((place(&part.name, false)?, part.start)));
                let pieces =
                    place(&own.input.name, own.input.entry).map(|at| (at, 0)).into_iter().chain(parts);
                let pieces = pieces.map(|(at, start)| (self.items[at], self.linked[at].code, start));
                positions.add_code(self.db, pieces);
            }
            positions.finish(self.file.text(self.db))
        });
        // A function that several kernels contain is described at its position in the first one.
        let place = |function: &LinkFunction<'_>| {
            joined.iter().enumerate().find_map(|(kernel, (own, joined))| {
                if own.code.entry == function.code.entry {
                    return (own.input.name == function.input.name).then_some((kernel, 0));
                }
                let part = joined.parts.iter().find(|part| part.name == function.input.name)?;
                Some((kernel, part.start))
            })
        };
        let debug = self.debug(self.linked.iter().map(place));
        let kernels: Vec<Kernel<'_>> =
            joined.iter().map(|(own, joined)| Kernel { input: own.input, joined }).collect();
        let (cubin, sizes) = cubin::link(
            self.program,
            &kernels,
            self.target,
            &self.options.arguments,
            lines.as_ref(),
            debug.as_ref(),
        )?;
        let kernels = joined.iter().map(|(own, joined)| self.report_of_executable(*own, joined)).collect();
        Ok(Linked { cubin, kernels, sizes, lacks_files })
    }

    fn report_of_executable(&self, own: LinkFunction<'_>, joined: &Joined) -> LinkedKernel {
        let part = |part: &Part| {
            let code = self.linked.iter().find(|f| !f.code.entry && f.input.name == part.name);
            let mut frame = code.map_or(Frame::default(), |f| Frame::of(&f.code.resources));
            if !part.is_apart {
                frame.bytes = 0;
            }
            (part.linkage == Linkage::Weak, LinkedPart { name: part.name.clone(), frame })
        };
        let mut parts: Vec<(bool, LinkedPart)> = joined.parts.iter().map(part).collect();
        parts.sort_by(|(a, x), (b, y)| (a, &x.name).cmp(&(b, &y.name)));
        LinkedKernel {
            name: own.input.name.clone(),
            entry: own.input.entry,
            frame: Frame { bytes: joined.frame_bytes, ..Frame::of(&own.code.resources) },
            resources: joined.kernel.resources,
            bank_2_bytes: joined.constants.len() as u32,
            handles: joined.kernel.attributes.handles.counts(self.env, own.input),
            parts: parts.into_iter().map(|(_, part)| part).collect(),
        }
    }
}

/// The functions to link: kernels, and functions that are still called or whose addresses are taken after inlining. If
/// functions have sections of their own, and if a kernel has no code, all functions that may be needed.
fn needed<'db>(
    db: &'db Database,
    file: SourceFile,
    entries: &[String],
    compiled: &mut dyn FnMut(&str),
) -> FxHashSet<Item<'db>> {
    let keeps_all = !linking(db, file).is_joined();
    let start =
        wanted(db, file, entries).into_iter().filter(|item| keeps_all || item.kind(db) == ItemKind::Entry);
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
