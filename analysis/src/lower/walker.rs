//! The data that a walk over items collects, and its results.

use std::mem::{swap, take};
use std::sync::Arc;

use ptx_backend::abi::Preserved;
use ptx_backend::input::{Function, Launch, Linkage, Register, Signature, Symbol};
use ptx_isa::{Opcode, Space};
use ptx_syntax::SyntaxError;
use ptx_syntax::flat::FlatTree;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use smol_str::SmolStr;
use text_size::TextRange;

use super::passed::Passed;
use super::{ItemFindings, Lowered, Uses};
use crate::check::lints::Expected;
use crate::check::{self, Gates, VariableFacts, debug, limits};
use crate::db::{Db, SourceFile};
use crate::declaration::Shape;
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::externals::SEPARATE_COMPILATION;
use crate::flow::{Code, Flow, Survey};
use crate::items::Part;
use crate::module::{self, Global, Header, Name};
use crate::scope::{Entity, Names, RegisterName, clear};
use crate::signature::{RegisterDecl, Shapes};
use crate::source_map::Usage;
use crate::source_map::{Occurrence, SourceMap};
use crate::syntax_errors;

/// The result of looking up an instruction's dotted name, once per function.
#[derive(Clone, Copy)]
pub(super) enum Resolution {
    /// The opcode, whether the version and the target have it, and the index of its signature.
    Opcode(Opcode, bool, u32),
    /// The table has no row for it.
    NoRow,
    Wrong,
}

/// Data about instructions in a module with this header. It is kept from one walk to the next.
pub(super) struct Known {
    header: Header,
    gates: Gates,
    pub(super) resolutions: FxHashMap<SmolStr, Resolution>,
    /// The signatures of the opcodes.
    pub(super) signatures: Vec<Arc<ptx_isa::Signature>>,
    pub(super) passed: Passed,
    pub(super) room: Room,
}

/// Collections that grow with the text of an item, emptied by the next walk. Allocating them for each edit of a long
/// function, and letting the kernel map their pages, would take a tenth of the walk.
#[derive(Default)]
pub(super) struct Room {
    pub(super) tree: FlatTree,
    code: Code,
    survey: Survey,
}

impl Room {
    /// The maximum number of elements of a tree that is kept: that of half a megabyte of text.
    const MOST: usize = 1 << 19;
}

impl Known {
    /// The maximum number of instruction names that are kept. The largest programs have some hundreds.
    const MOST: usize = 1 << 13;

    /// The data of an earlier walk over the file, if the header is the same.
    fn of(db: &dyn Db, file: SourceFile, header: &Header, gates: Gates) -> Box<Self> {
        let last = file.spare(db).take::<Self>();
        last.filter(|known| known.header == *header && known.gates == gates).unwrap_or_else(|| {
            Box::new(Self {
                header: header.clone(),
                gates,
                resolutions: FxHashMap::default(),
                signatures: Vec::new(),
                passed: Passed::default(),
                room: Room::default(),
            })
        })
    }
}

/// What every walk reads of its file. It is one query, so that the database verifies one dependency of each item after an
/// edit instead of five.
#[derive(PartialEq)]
struct Surroundings {
    header: Header,
    gates: Gates,
    extras: check::Extras,
    module_registers: Box<[RegisterDecl]>,
}

#[salsa::tracked]
fn surroundings(db: &dyn Db, file: SourceFile) -> Surroundings {
    let header = module::header(db, file).clone();
    let target = module::effective_target(db, file);
    let gates = Gates {
        version: header.version_or_newest(),
        target: target.unwrap_or(ptx_isa::Sm::new(75)),
        architecture: module::architecture(db, file).unwrap_or(ptx_isa::Sm::new(75)),
        enabled: target.is_some() && header.version.is_some(),
    };
    let module_registers = module::module_registers(db, file).into();
    Surroundings { header, gates, extras: check::extras(db), module_registers }
}

/// The walk over items of a file, one after the other, which share its collections.
pub(super) struct Walker<'db> {
    pub(super) db: &'db dyn Db,
    pub(super) file: SourceFile,
    pub(super) header: &'db Header,
    pub(super) gates: Gates,
    extras: check::Extras,
    pub(super) module_registers: &'db [RegisterDecl],
    pub(super) known: Box<Known>,

    // The following fields are about one item.
    pub(super) part: Option<Part<'db>>,
    pub(super) text: &'db str,
    /// What the variables mentioned are.
    pub(super) variables: FxHashMap<Symbol, VariableFacts>,
    /// Whether the instruction is a video instruction, whose operands have signs and selectors.
    pub(super) is_video: bool,
    /// What a name without `%` is in the current operand.
    pub(super) expected: Expected,
    /// Whether the current operand is an element of a vector.
    pub(super) is_element: bool,
    /// Operands that are a register plus a constant, with the constant.
    pub(super) sums: SmallVec<[(TextRange, i64); 1]>,
    pub(super) names: Names<'db>,
    globals: FxHashMap<&'db str, &'db Option<Global>>,
    /// The declarations in `names` are added at the end.
    pub(super) map: SourceMap,
    pub(super) diagnostics: Findings,
    /// Without its body.
    pub(super) function: Function,
    pub(super) code: Code,
    /// The survey of the function's body.
    pub(super) survey: Survey,
    pub(super) prototypes: Vec<Signature>,
    /// The shapes of the prototypes, in the order of `prototypes`.
    pub(super) prototype_shapes: Vec<Arc<Shapes>>,
    /// The shapes of the function's local variables.
    pub(super) local_shapes: Vec<Shape>,
    pub(super) has_body: bool,
    /// The `.shared`, `.const` and `.global` variables of the body.
    pub(super) storage: Vec<(Space, limits::Block)>,
    pub(super) positions: debug::Positions,
    /// The ranges of syntax errors, in text order.
    pub(super) broken: Vec<TextRange>,
    /// Some text was not understood: no [`Function`] can be built, and a missing use proves nothing.
    pub(super) incomplete: bool,
    /// The first statement that was not understood.
    pub(super) not_understood: Option<TextRange>,
    /// The number of statements and declarations so far.
    steps: u32,
}

impl<'db> Walker<'db> {
    pub(super) fn new(db: &'db dyn Db, file: SourceFile) -> Self {
        let Surroundings { header, gates, extras, module_registers } = surroundings(db, file);
        let mut known = Known::of(db, file, header, *gates);
        let (code, survey) = (take(&mut known.room.code), take(&mut known.room.survey));
        Self {
            db,
            file,
            header,
            gates: *gates,
            known,
            extras: *extras,
            module_registers,
            part: None,
            text: "",
            variables: FxHashMap::default(),
            is_video: false,
            expected: Expected::Symbol,
            is_element: false,
            sums: SmallVec::new(),
            names: Names::default(),
            globals: FxHashMap::default(),
            map: SourceMap::default(),
            diagnostics: Findings::default(),
            function: Function::default(),
            code,
            survey,
            prototypes: Vec::new(),
            prototype_shapes: Vec::new(),
            local_shapes: Vec::new(),
            has_body: false,
            storage: Vec::new(),
            positions: debug::Positions::default(),
            broken: Vec::new(),
            incomplete: false,
            not_understood: None,
            steps: 0,
        }
    }

    /// Ends the walk. Its data about instructions is kept for the next one, and so are its collections, unless they are
    /// too large.
    pub(super) fn end(mut self, tree: FlatTree) {
        if tree.capacity() <= Room::MOST {
            self.known.room = Room { tree, code: self.code, survey: self.survey };
        }
        if self.known.passed.remembers() && self.known.resolutions.len() <= Known::MOST {
            self.file.spare(self.db).put(self.known);
        }
    }

    /// Starts the walk over an item, whatever the result of the previous one.
    pub(super) fn begin(&mut self, part: Part<'db>) {
        self.part = Some(part);
        self.text = part.text(self.db);
        clear(&mut self.variables);
        self.is_video = false;
        self.expected = Expected::Symbol;
        self.is_element = false;
        self.sums.clear();
        self.names.clear();
        clear(&mut self.globals);
        self.map.clear();
        self.diagnostics = Findings::default();
        clear_function(&mut self.function);
        self.code.clear();
        self.survey.clear();
        self.prototypes.clear();
        self.prototype_shapes.clear();
        self.local_shapes.clear();
        self.has_body = false;
        self.storage.clear();
        self.positions = debug::Positions::default();
        self.broken.clear();
        self.incomplete = false;
        self.not_understood = None;
    }

    pub(super) fn slice(&self, range: TextRange) -> &'db str {
        &self.text[range]
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn syntax_errors(&mut self, errors: &[SyntaxError]) {
        syntax_errors::findings(errors, self.text).into_iter().for_each(|finding| self.report(finding));
        for error in errors {
            self.broken.push(error.range);
            self.incomplete = true;
        }
    }

    /// Whether a syntax error touches a node, so that a missing part of it has already been reported.
    pub(super) fn is_broken(&self, range: TextRange) -> bool {
        let before = self.broken.partition_point(|error| error.end() < range.start());
        self.broken.get(before).is_some_and(|error| error.start() <= range.end())
    }

    /// A name of module scope that is declared before this item or by it.
    pub(super) fn global(&mut self, name: &'db str) -> Option<&'db Global> {
        let (db, file, part) = (self.db, self.file, self.part?);
        let found = self.globals.entry(name).or_insert_with(|| {
            let name = Name::new(db, SmolStr::new(name));
            let found = module::global(db, file, name);
            if found.is_some() && module::is_declared_before(db, part, name) { found } else { &None }
        });
        if let Some(Global::Variable { index, space, ty, is_array, align, size, .. }) = found {
            // An array of open size counts as one element.
            let size = if *is_array && *size <= u64::from(ty.bytes()) { 0 } else { *size };
            let place = VariableFacts {
                space: *space,
                ty: *ty,
                is_array: *is_array,
                align: *align,
                size,
                hides: None,
            };
            self.variables.insert(Symbol::Global(*index), place);
        }
        found.as_ref()
    }

    pub(super) fn occur(&mut self, range: TextRange, entity: Entity, access: Usage) {
        self.map.occurrences.push(Occurrence { range, entity, access });
    }

    /// Called for every statement and declaration; checks at intervals whether the walk was cancelled.
    pub(super) fn step(&mut self) {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(1 << 12) {
            self.db.unwind_if_revision_cancelled();
        }
    }

    /// Reserves memory for a function: growing collections would touch twice the memory, and unused memory costs
    /// nothing.
    pub(super) fn reserve(&mut self, text: &str) {
        let count = |byte| memchr::memchr_iter(byte, text.as_bytes()).count();
        let (statements, registers) = (count(b';'), count(b'%'));
        self.map.statements.reserve(statements);
        // In addition to its registers, a statement rarely has more than one name.
        let names = registers + statements;
        self.map.occurrences.reserve(names);
        self.code.reserve(statements, names);
        self.survey.reserve(statements, names);
    }

    /// Ends the walk over the item with the checks of the whole body. Returns whether all text was understood and there
    /// are no errors.
    fn finish(&mut self) -> bool {
        let has_errors =
            self.diagnostics.iter().any(|d| d.severity == Severity::Error && d.lint != &SEPARATE_COMPILATION);
        let is_complete = self.has_body && !has_errors && !self.incomplete;
        let shared = shared_numbers(self.module_registers);
        let registers = self
            .names
            .registers
            .iter()
            .map(|register| Register { ty: register.ty, shared: shared(register) });
        self.function.regs.extend(registers);
        self.function.labels = self.names.labels.len() as u32;
        self.finish_map();
        if self.has_body {
            let (function, map) = (&self.function, &self.map);
            let is_understood = !self.incomplete && !has_errors;
            let flow = is_understood.then(|| Flow::new(function, &self.code, &self.survey, map));
            let body = check::Body::new(function, flow, &self.variables, map, self.text, self.extras);
            for check in check::BODY_CHECKS {
                self.db.unwind_if_revision_cancelled();
                check(&body, &mut self.diagnostics);
            }
        }
        is_complete
    }

    /// Completes the map of the item, without the checks of the whole body.
    pub(super) fn finish_map(&mut self) {
        let start = |occurrence: &Occurrence| occurrence.range.start();
        // Sorting allocates; few items have names out of order.
        if !self.map.occurrences.is_sorted_by_key(start) {
            self.map.occurrences.sort_by_key(start);
        }
        self.swap_declared();
    }

    /// Moves declarations from the names to the map, or back.
    fn swap_declared(&mut self) {
        swap(&mut self.map.declarations, &mut self.names.declarations);
        swap(&mut self.map.registers, &mut self.names.registers);
        swap(&mut self.map.labels, &mut self.names.labels);
    }

    /// What the walk over the item gives.
    pub(super) fn lowered(&mut self) -> Lowered {
        let is_complete = self.finish();
        let mut map = take(&mut self.map);
        map.shrink_to_fit();
        let function = is_complete.then(|| {
            let mut function = take(&mut self.function);
            function.body = self.code.take();
            Arc::new(function)
        });
        Lowered {
            function,
            has_body: self.has_body,
            storage: self.storage.as_slice().into(),
            uses: self.uses(),
            not_understood: self.not_understood,
            map,
            diagnostics: take(&mut self.diagnostics).into_sorted(),
        }
    }

    /// The findings that [`lowered`](Self::lowered) would return. The next item reuses the collections.
    pub(super) fn findings(&mut self) -> ItemFindings {
        self.finish();
        let diagnostics = take(&mut self.diagnostics).into_sorted();
        let map = (!diagnostics.is_empty()).then(|| self.map.clone());
        self.swap_declared();
        ItemFindings { diagnostics, storage: self.storage.as_slice().into(), uses: self.uses(), map }
    }

    fn uses(&self) -> Uses {
        let (mut variables, mut functions) = (Vec::new(), Vec::new());
        for global in self.globals.values().copied().flatten() {
            match *global {
                Global::Variable { index, .. } => variables.push(index),
                Global::Function { index, .. } => functions.push(index),
            }
        }
        // An alias and its function have the same index.
        let sorted = |mut all: Vec<u32>| {
            all.sort_unstable();
            all.dedup();
            all.into()
        };
        Uses { variables: sorted(variables), functions: sorted(functions) }
    }
}

/// The numbers of the registers of module scope, whose declarations are the first of every body.
fn shared_numbers(declared: &[RegisterDecl]) -> impl Fn(&RegisterName) -> Option<u32> {
    let width = |decl: &RegisterDecl| decl.count.unwrap_or(1).saturating_mul(decl.lanes.into());
    let starts = declared.iter().scan(0u32, move |next, decl| {
        let start = *next;
        *next = next.saturating_add(width(decl));
        Some((start, u32::from(decl.lanes)))
    });
    let starts: Vec<(u32, u32)> = starts.collect();
    move |register| {
        let &(start, lanes) = starts.get(register.declaration.0 as usize)?;
        let inside = register.number.unwrap_or(0).saturating_mul(lanes).saturating_add(register.lane.into());
        Some(start.saturating_add(inside))
    }
}

/// Empties a function but keeps its memory.
fn clear_function(function: &mut Function) {
    let Function { name, params, returns, regs, locals, targets, body, nounroll, parts, .. } = function;
    name.clear();
    params.clear();
    returns.clear();
    regs.clear();
    locals.clear();
    targets.clear();
    body.clear();
    parts.clear();
    (nounroll.everywhere, _) = (false, nounroll.before.clear());
    (function.entry, function.linkage) = (false, Linkage::Internal);
    (function.labels, function.launch) = (0, Launch::default());
    function.preserved = Preserved::default();
}
