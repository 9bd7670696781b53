//! The walk: functions, blocks, declarations, statements.

use std::mem::take;
use std::rc::Rc;
use std::sync::Arc;

use ptx_backend::input::{Function, LabelId, Launch, Linkage, Param, Register, Signature, Symbol, Variable};
use ptx_isa::{Opcode, PtxVersion, Space};
use ptx_syntax::{ItemKind, NodeOrToken, SyntaxError, SyntaxKind, SyntaxNode};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use text_size::{TextRange, TextSize};

use super::call::CALL_TARGET;
use super::heading::{Heading, List};
use super::parameter::{Kind, Layout};
use super::{ItemFindings, Lowered, Occurrence, SourceMap};
use crate::check::declarations::{self, Site};
use crate::check::externals::SEPARATE_COMPILATION;
use crate::check::{self, Gates, Place, debug, directives, limits, lints, pragmas};
use crate::db::{Db, SourceFile};
use crate::declaration::{self, BAD_DECLARATION, Shape};
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::flow::{Code, Survey};
use crate::ide::Access;
use crate::items::{Item, Part, parse};
use crate::module::{self, Global, Header, Name, REDEFINITION};
use crate::scope::{DeclId, DeclKind, Declaration, Entity, Names, clear};
use crate::signature::{self, RegisterDecl, Shapes};

/// An instruction's dotted name, looked up once per function.
#[derive(Clone, Copy)]
pub(super) enum Resolution {
    /// The opcode, whether the version and the target have it, and the index of its signature.
    Opcode(Opcode, bool, u32),
    /// The table knows nothing about it.
    NoRow,
    Wrong,
}

/// The walk over items of a file, one after the other. Its collections serve all of them.
pub(super) struct Walker<'db> {
    pub(super) db: &'db dyn Db,
    pub(super) file: SourceFile,
    pub(super) header: &'db Header,
    pub(super) gates: Gates,
    extras: check::Extras,
    module_registers: &'db [RegisterDecl],
    pub(super) resolutions: FxHashMap<&'db str, Resolution>,
    /// What the operands of the opcodes must be.
    pub(super) signatures: Vec<Rc<ptx_isa::Signature>>,

    // What follows is about one item.
    part: Option<Part<'db>>,
    pub(super) text: &'db str,
    /// What the variables mentioned are.
    pub(super) variables: FxHashMap<Symbol, Place>,
    /// The instruction is one of the video instructions, whose operands have signs and selectors.
    pub(super) is_video: bool,
    /// The instruction at hand jumps to a label.
    pub(super) is_branch: bool,
    pub(super) names: Names<'db>,
    globals: FxHashMap<&'db str, &'db Option<Global>>,
    pub(super) places: Vec<TextRange>,
    pub(super) occurrences: Vec<Occurrence>,
    pub(super) diagnostics: Findings,
    /// Without its body.
    pub(super) function: Function,
    pub(super) code: Code,
    /// What is in the function's body.
    pub(super) survey: Survey,
    pub(super) prototypes: Vec<Signature>,
    /// Parallel to `prototypes`.
    pub(super) prototype_shapes: Vec<Arc<Shapes>>,
    /// Parallel to the function's locals.
    pub(super) local_shapes: Vec<Shape>,
    locals: Vec<DeclId>,
    params: Vec<DeclId>,
    returns: Vec<DeclId>,
    targets: Vec<DeclId>,
    prototype_declarations: Vec<DeclId>,
    has_body: bool,
    /// The `.shared` and `.const` variables of the body.
    pub(super) storage: Vec<(Space, limits::Block)>,
    pub(super) positions: debug::Positions,
    /// Where the syntax errors are, in text order.
    broken: Vec<TextRange>,
    /// Something was not understood: no [`Function`] can be built, and absence of uses proves nothing.
    pub(super) incomplete: bool,
    /// The first statement that made it so.
    not_understood: Option<TextRange>,
}

impl<'db> Walker<'db> {
    pub(super) fn new(db: &'db dyn Db, file: SourceFile) -> Self {
        let header = module::header(db, file);
        let target = module::effective_target(db, file);
        let gates = Gates {
            version: header.version_or_newest(),
            target: target.unwrap_or(ptx_isa::Sm::new(75)),
            enabled: target.is_some() && header.version.is_some(),
        };
        Self {
            db,
            file,
            header,
            gates,
            extras: check::extras(db),
            module_registers: module::module_registers(db, file),
            resolutions: FxHashMap::default(),
            signatures: Vec::new(),
            part: None,
            text: "",
            variables: FxHashMap::default(),
            is_video: false,
            is_branch: false,
            names: Names::default(),
            globals: FxHashMap::default(),
            places: Vec::new(),
            occurrences: Vec::new(),
            diagnostics: Findings::default(),
            function: Function::default(),
            code: Code::default(),
            survey: Survey::default(),
            prototypes: Vec::new(),
            prototype_shapes: Vec::new(),
            local_shapes: Vec::new(),
            locals: Vec::new(),
            params: Vec::new(),
            returns: Vec::new(),
            targets: Vec::new(),
            prototype_declarations: Vec::new(),
            has_body: false,
            storage: Vec::new(),
            positions: debug::Positions::default(),
            broken: Vec::new(),
            incomplete: false,
            not_understood: None,
        }
    }

    /// Starts the walk over an item, whatever became of the one before.
    pub(super) fn begin(&mut self, part: Part<'db>) {
        self.part = Some(part);
        self.text = part.text(self.db);
        clear(&mut self.variables);
        self.is_video = false;
        self.is_branch = false;
        self.names.clear();
        clear(&mut self.globals);
        self.places.clear();
        self.occurrences.clear();
        self.diagnostics = Findings::default();
        clear_function(&mut self.function);
        self.code.clear();
        self.survey.clear();
        self.prototypes.clear();
        self.prototype_shapes.clear();
        self.local_shapes.clear();
        self.locals.clear();
        self.params.clear();
        self.returns.clear();
        self.targets.clear();
        self.prototype_declarations.clear();
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
        for error in errors {
            self.report(lints::syntax_error(error, self.text));
            self.broken.push(error.range);
            self.incomplete = true;
        }
    }

    /// Whether a syntax error touches a node, so that what is missing in it was said already.
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
            // An array whose size is open counts as one element.
            let size = if *is_array && *size <= u64::from(ty.bytes()) { 0 } else { *size };
            let place = Place { space: *space, ty: *ty, is_array: *is_array, align: *align, size };
            self.variables.insert(Symbol::Global(*index), place);
        }
        found.as_ref()
    }

    pub(super) fn occur(&mut self, range: TextRange, entity: Entity, access: Access) {
        self.occurrences.push(Occurrence { range, entity, access });
    }

    /// Makes room for a function: moving what grows would touch twice the memory, and memory that is never used costs
    /// nothing.
    pub(super) fn reserve(&mut self, text: &str) {
        let count = |byte| memchr::memchr_iter(byte, text.as_bytes()).count();
        let (statements, registers) = (count(b';'), count(b'%'));
        self.places.reserve(statements);
        // Besides its registers a statement has seldom more than one name.
        let names = registers + statements;
        self.occurrences.reserve(names);
        self.code.reserve(statements, names);
        self.survey.reserve(statements, names);
    }

    /// Walks the tree of the item.
    pub(super) fn tree(&mut self, item: Item<'db>) {
        let parsed = parse(self.db, item);
        self.syntax_errors(&parsed.errors);
        match item.kind(self.db) {
            ItemKind::Dwarf => return self.dwarf(),
            ItemKind::Trivia => return,
            _ => {}
        }
        let node = parsed.syntax();
        match node.kind() {
            SyntaxKind::FUNCTION => {
                let heading = Heading::read_tree(&node, self.text, &mut self.diagnostics);
                let block = node.children().find(|child| child.kind() == SyntaxKind::BLOCK);
                self.function(&heading, |walker| {
                    block.iter().for_each(|block| walker.statements(block, block.text_range()))
                });
            }
            SyntaxKind::VARIABLE => {
                if let Some(declaration) = declaration::read(&node, self.text, &mut self.diagnostics) {
                    self.module_variable(declaration);
                }
            }
            SyntaxKind::SECTION => self.section(&node),
            SyntaxKind::FILE_DIRECTIVE => self.file_directive(&node),
            SyntaxKind::LOC_DIRECTIVE => self.misplaced_loc(&node),
            SyntaxKind::ALIAS => self.alias(&node),
            SyntaxKind::PRAGMA => self.pragma(&node, pragmas::Site::Module),
            _ => {}
        }
    }

    /// Walks a function. `body` walks its body, in the scope of the parameters.
    pub(super) fn function(&mut self, heading: &Heading<'db>, body: impl FnOnce(&mut Self)) {
        self.names.open();
        self.module_registers();
        self.names.open();
        let end = TextSize::of(self.text) - TextSize::of('}');
        directives::check(heading, &self.gates, self.text, end, &mut self.diagnostics);
        self.function.entry = heading.is_entry(self.text);
        self.function.linkage = heading.linkage(self.text);
        self.function.launch = launch(heading);
        let visible = TextRange::up_to(TextSize::of(self.text));
        self.parameters(&heading.results, visible, Site::Result);
        if let Some(range) = heading.name {
            let name = self.slice(range);
            name.clone_into(&mut self.function.name);
            let symbol = match self.file.is_frozen(self.db) {
                // What this item declares, it may use.
                true => module::module(self.db, self.file).names.get(name).map(|named| named.symbol),
                false => self.global(name).map(Global::symbol),
            };
            if let Some(symbol) = symbol {
                self.occur(range, Entity::Symbol(symbol), Access::Declaration);
            }
        }
        let site = match (heading.name, self.function.entry) {
            (None, _) => Site::Result,
            (Some(_), true) => Site::Kernel,
            (Some(_), false) => Site::Function,
        };
        self.parameters(&heading.parameters, visible, site);
        for pragma in &heading.pragmas {
            self.pragma(pragma, pragmas::Site::Kernel);
        }
        if heading.body.is_some() {
            self.has_body = true;
            body(self);
        }
        self.names.close();
        self.names.close();
        self.incomplete |= heading.name.is_none();
        if self.has_body && self.function.linkage == Linkage::Extern {
            let range = self.occurrences.first().map_or(visible, |name| name.range);
            let message = "an `.extern` function is defined elsewhere and has no body".to_owned();
            self.report(Diagnostic::new(&BAD_DECLARATION, range, message).reported_at(end));
        }
    }

    /// Registers of module scope: every function has its own.
    fn module_registers(&mut self) {
        for register in self.module_registers {
            // They are declared outside this item: the place is empty, at its start.
            let range = TextRange::empty(TextSize::new(0));
            let kind = DeclKind::Register { ty: register.ty, count: register.count, lanes: register.lanes };
            self.names.declare(
                &register.name,
                Declaration { range, visible: TextRange::up_to(TextSize::of(self.text)), kind },
            );
        }
    }

    /// Checks the parameters of a list, alone and together.
    fn parameter_list(&mut self, list: &List, site: Site) {
        for parameter in &list.parameters {
            if parameter.kind.passes(site) {
                continue;
            }
            let (found, context) = (self.diagnostics.count(), (self.header, &self.gates));
            declarations::check(site, &parameter.declaration(), context, self.text, &mut self.diagnostics);
            if self.diagnostics.count() == found {
                parameter.kind.pass(site);
            }
        }
        declarations::check_list(site, &list.parameters, &self.gates, &mut self.diagnostics);
    }

    fn parameters(&mut self, list: &List, visible: TextRange, site: Site) {
        let is_input = site != Site::Result;
        let mut layout = Layout::default();
        self.parameter_list(list, site);
        if site == Site::Kernel {
            let bytes = limits::parameter_bytes(&list.parameters);
            self.diagnostics.extend(limits::kernel_parameters(bytes, list.range, &self.gates));
        }
        for parameter in &list.parameters {
            let Some(range) = parameter.name else { continue };
            let Kind { shape, declarator, .. } = &*parameter.kind;
            let Shape { space, ty, lanes, align, .. } = *shape;
            let index =
                if is_input { self.function.params.len() } else { self.function.returns.len() } as u32;
            let symbol = if is_input { Symbol::Param(index) } else { Symbol::Return(index) };
            let is_register = space == Space::Reg;
            let kind = match is_register {
                true => DeclKind::Register { ty, count: declarator.count, lanes },
                false => DeclKind::Symbol(symbol),
            };
            let id = self.declare(range, visible, kind);
            let reg = (is_register && declarator.count.is_none() && lanes == 1)
                .then(|| self.names.register(id, None, 0));
            let param = Param { reg, ..layout.add(&parameter.kind, self.slice(range)) };
            let size = u64::from(param.size);
            self.variables.insert(symbol, Place { space, ty, is_array: shape.is_array(), align, size });
            let entity = reg.map_or(Entity::Symbol(symbol), Entity::Register);
            self.occur(range, entity, Access::Declaration);
            if is_input {
                self.function.params.push(param);
                self.params.push(id);
            } else {
                self.function.returns.push(param);
                self.returns.push(id);
            }
        }
    }

    /// Declares a name in the innermost scope and reports an earlier one there.
    pub(super) fn declare(&mut self, range: TextRange, visible: TextRange, kind: DeclKind) -> DeclId {
        let name = self.slice(range);
        let (id, previous) = self.names.declare(name, Declaration { range, visible, kind });
        if let Some(previous) = previous
            && name != "_"
        {
            let earlier = self.names.declarations[previous.0 as usize].range;
            let message = format!("`{name}` is declared twice in this scope");
            // Labels are declared before everything else of their block.
            let (first, second) =
                if earlier.start() < range.start() { (earlier, range) } else { (range, earlier) };
            self.report(
                Diagnostic::new(&REDEFINITION, second, message).related(first, "first declared here"),
            );
        }
        id
    }

    fn block(&mut self, block: &SyntaxNode) {
        self.names.open();
        self.statements(block, block.text_range());
        self.names.close();
    }

    /// Contents of a block, in the scope that is open and reaches over `visible`.
    pub(super) fn statements(&mut self, block: &SyntaxNode, visible: TextRange) {
        let first_label = self.labels_of(block);
        let mut label = first_label;
        for child in block.children() {
            let was_incomplete = self.incomplete;
            match child.kind() {
                SyntaxKind::INSTRUCTION => self.instruction(&child),
                SyntaxKind::VARIABLE => self.variable(&child, visible),
                SyntaxKind::LABEL => {
                    self.survey.label();
                    self.code.label(label);
                    let range = self.names.declarations[self.names.labels[label.0 as usize].0 as usize].range;
                    self.occur(range, Entity::Label(label), Access::Declaration);
                    label.0 += 1;
                }
                SyntaxKind::BLOCK => self.block(&child),
                SyntaxKind::LOC_DIRECTIVE => self.loc(&child),
                SyntaxKind::PRAGMA => {
                    let is_entry = self.function.entry;
                    let site = if is_entry { pragmas::Site::KernelBody } else { pragmas::Site::FunctionBody };
                    self.pragma(&child, site);
                }
                SyntaxKind::BRANCH_TARGETS => self.branch_targets(&child, visible),
                SyntaxKind::CALL_TARGETS => self.call_targets(&child, visible),
                SyntaxKind::CALL_PROTOTYPE => self.prototype(&child, visible),
                SyntaxKind::ERROR => self.incomplete = true,
                _ => {}
            }
            if self.incomplete && !was_incomplete {
                self.not_understood.get_or_insert(child.text_range());
            }
        }
    }

    fn loc(&mut self, node: &SyntaxNode) {
        let (db, file, part) = (self.db, self.file, self.part);
        let is_known = |position| {
            let first = debug::first_positions(db, file).get(&position);
            first.zip(part.and_then(|part| part.index(db))).is_some_and(|(&first, own)| first < own)
        };
        let Some(label) = self.positions.check(node, self.text, is_known, &mut self.diagnostics) else {
            return;
        };
        if !debug::section_labels(self.db, self.file).contains(&self.text[label]) {
            let message = format!("no section has the label `{}`", &self.text[label]);
            self.report(Diagnostic::new(&debug::BAD_DEBUG_DATA, label, message));
        }
    }

    /// A section of debug data; its syntax errors were reported.
    pub(super) fn section(&mut self, node: &SyntaxNode) {
        if self.broken.is_empty() {
            debug::section(node, &self.gates, self.text, &mut self.diagnostics);
        }
    }

    /// `@@DWARF`: debug data as PTX 1.x wrote it.
    pub(super) fn dwarf(&mut self) {
        if self.header.version_or_newest() >= PtxVersion::new(2, 0) {
            let start = self.text.find("@@").unwrap_or(0);
            let range = TextRange::at(TextSize::new(start as u32), TextSize::of("@@DWARF"));
            let message = "`@@DWARF` is no longer written, PTX ISA 2.0 replaced it by `.section`";
            self.report(Diagnostic::new(&declarations::REMOVED_FORM, range, message));
        }
    }

    pub(super) fn file_directive(&mut self, node: &SyntaxNode) {
        debug::file(node, &self.gates, self.text, &mut self.diagnostics);
    }

    pub(super) fn misplaced_loc(&mut self, node: &SyntaxNode) {
        let message = "`.loc` stands in functions, before the instructions of that line";
        self.report(Diagnostic::new(&BAD_DECLARATION, node.text_range(), message));
    }

    pub(super) fn pragma(&mut self, node: &SyntaxNode, site: pragmas::Site) {
        pragmas::check(node, site, &self.gates, self.text, &mut self.diagnostics);
    }

    /// Declares the labels of a block, those of inner blocks not; gives the first.
    fn labels_of(&mut self, block: &SyntaxNode) -> LabelId {
        let first = LabelId(self.names.labels.len() as u32);
        let visible = block.text_range();
        let mut at = visible.start();
        // Green nodes have no places of their own, and walking them costs nothing.
        for child in block.green().children() {
            let length = child.text_len();
            if let NodeOrToken::Node(node) = child
                && node.kind().0 == SyntaxKind::LABEL as u16
            {
                let name = node.children().next().map_or(TextSize::new(0), |name| name.text_len());
                let label = LabelId(self.names.labels.len() as u32);
                self.declare(TextRange::at(at, name), visible, DeclKind::Label(label));
            }
            at += length;
        }
        first
    }

    fn variable(&mut self, node: &SyntaxNode, block: TextRange) {
        let Some(declaration) = declaration::read(node, self.text, &mut self.diagnostics) else {
            self.incomplete = true;
            return;
        };
        let context = (self.header, &self.gates);
        declarations::check(Site::Body, &declaration, context, self.text, &mut self.diagnostics);
        let head = declaration.head;
        for declarator in declaration.declarators {
            let Some(range) = declarator.name else { continue };
            let visible = TextRange::new(range.start(), block.end());
            if head.space == Space::Reg {
                let kind = DeclKind::Register { ty: head.ty, count: declarator.count, lanes: head.lanes };
                self.declare(range, visible, kind);
                continue;
            }
            let symbol = Symbol::Local(self.function.locals.len() as u32);
            let id = self.declare(range, visible, DeclKind::Symbol(symbol));
            self.occur(range, Entity::Symbol(symbol), Access::Declaration);
            let variable = self.variable_value(&head, &declarator, range);
            self.add_local(id, Shape::new(&head, &declarator), variable);
        }
    }

    /// Adds the next local variable, which `id` declares.
    pub(super) fn add_local(&mut self, id: DeclId, shape: Shape, variable: Variable) {
        let symbol = Symbol::Local(self.function.locals.len() as u32);
        let Shape { space, ty, align, .. } = shape;
        self.locals.push(id);
        let size = if shape.is_open() { 0 } else { shape.bytes() };
        self.variables.insert(symbol, Place { space, ty, is_array: shape.is_array(), align, size });
        self.local_shapes.push(shape);
        if matches!(space, Space::Shared | Space::Const) {
            self.storage.push((space, limits::Block { bytes: variable.size, align: variable.align }));
        }
        self.function.locals.push(variable);
    }

    fn branch_targets(&mut self, node: &SyntaxNode, block: TextRange) {
        let index = self.function.targets.len() as u32;
        let Some(id) = self.named_list(node, block, DeclKind::Targets(index), Entity::Targets(index)) else {
            return;
        };
        self.targets.push(id);
        let mut labels = Vec::new();
        for name in node.children().filter(|child| child.kind() == SyntaxKind::NAME_REF) {
            match self.find_name(name.text_range()) {
                Some(Entity::Label(label)) => {
                    self.occur(name.text_range(), Entity::Label(label), Access::Read);
                    labels.push(label);
                }
                _ => {
                    self.undefined(name.text_range(), lints::Expected::Label);
                    self.incomplete = true;
                }
            }
        }
        self.function.targets.push(labels);
    }

    fn call_targets(&mut self, node: &SyntaxNode, block: TextRange) {
        // Kept as a prototype: that of the first function named.
        let index = self.prototypes.len() as u32;
        let Some(id) = self.named_list(node, block, DeclKind::Prototype(index), Entity::Prototype(index))
        else {
            return;
        };
        self.prototype_declarations.push(id);
        let mut first = None;
        for name in node.children().filter(|child| child.kind() == SyntaxKind::NAME_REF) {
            let range = name.text_range();
            match self.global(self.slice(range)) {
                Some(Global::Function { index, signature, shapes }) => {
                    first.get_or_insert_with(|| (Signature::clone(signature), Arc::clone(shapes)));
                    self.occur(range, Entity::Symbol(Symbol::Function(*index)), Access::Read);
                }
                Some(Global::Variable { .. }) => {
                    let message = format!("`{}` is a variable, expected a function", self.slice(range));
                    self.report(Diagnostic::new(&CALL_TARGET, range, message));
                }
                None => self.undefined(range, lints::Expected::Symbol),
            }
        }
        self.incomplete |= first.is_none();
        let (signature, shapes) = first.unwrap_or_else(|| (empty_signature(), Arc::default()));
        self.prototypes.push(signature);
        self.prototype_shapes.push(shapes);
    }

    fn prototype(&mut self, node: &SyntaxNode, block: TextRange) {
        let index = self.prototypes.len() as u32;
        let Some(id) = self.named_list(node, block, DeclKind::Prototype(index), Entity::Prototype(index))
        else {
            return;
        };
        self.prototype_declarations.push(id);
        let heading = Heading::read_tree(node, self.text, &mut self.diagnostics);
        directives::check(&heading, &self.gates, self.text, node.text_range().end(), &mut self.diagnostics);
        let mut result = empty_signature();
        let mut all = Shapes::default();
        self.parameter_list(&heading.results, Site::PrototypeResult);
        self.parameter_list(&heading.parameters, Site::Prototype);
        (result.returns, all.returns) = signature::parameters(&heading.results, self.text);
        (result.params, all.params) = signature::parameters(&heading.parameters, self.text);
        result.noreturn = heading.is_noreturn();
        self.prototypes.push(result);
        self.prototype_shapes.push(Arc::new(all));
    }

    fn named_list(
        &mut self,
        node: &SyntaxNode,
        block: TextRange,
        kind: DeclKind,
        entity: Entity,
    ) -> Option<DeclId> {
        let name = node.children().find(|child| child.kind() == SyntaxKind::NAME);
        let Some(name) = name else {
            self.incomplete = true;
            return None;
        };
        let range = name.text_range();
        let id = self.declare(range, block, kind);
        self.occur(range, entity, Access::Declaration);
        Some(id)
    }

    /// Ends the walk over the item: what is left to check is its body as a whole. Gives the map, and whether all was
    /// understood and nothing is wrong.
    fn finish(&mut self) -> (SourceMap, bool) {
        let has_errors =
            self.diagnostics.iter().any(|d| d.severity == Severity::Error && d.lint != &SEPARATE_COMPILATION);
        let is_complete = self.has_body && !has_errors && !self.incomplete;
        let registers = self.names.registers.iter().map(|register| Register { ty: register.ty });
        self.function.regs.extend(registers);
        self.function.labels = self.names.labels.len() as u32;
        let start = |occurrence: &Occurrence| occurrence.range.start();
        // Sorting would take memory first; only trees give names out of order, and few of them.
        if !self.occurrences.is_sorted_by_key(start) {
            self.occurrences.sort_by_key(start);
        }
        let map = SourceMap {
            statements: take(&mut self.places),
            declarations: take(&mut self.names.declarations),
            registers: take(&mut self.names.registers),
            labels: take(&mut self.names.labels),
            locals: take(&mut self.locals),
            params: take(&mut self.params),
            returns: take(&mut self.returns),
            targets: take(&mut self.targets),
            prototypes: take(&mut self.prototype_declarations),
            occurrences: take(&mut self.occurrences),
        };
        if self.has_body {
            let incomplete = self.incomplete || has_errors;
            let (function, code, survey) = (&self.function, &self.code, &self.survey);
            let body = check::Body::new(
                function,
                code,
                survey,
                &self.variables,
                &map,
                self.text,
                incomplete,
                self.extras,
            );
            for check in check::BODY_CHECKS {
                check(&body, &mut self.diagnostics);
            }
        }
        (map, is_complete)
    }

    /// What the walk over the item gives.
    pub(super) fn lowered(&mut self) -> Lowered {
        let (mut map, is_complete) = self.finish();
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
            not_understood: self.not_understood,
            map,
            diagnostics: take(&mut self.diagnostics).into_sorted(),
        }
    }

    /// What [`lowered`](Self::lowered) would find.
    pub(super) fn findings(&mut self) -> ItemFindings {
        let (mut map, _) = self.finish();
        let diagnostics = take(&mut self.diagnostics).into_sorted();
        let map = if diagnostics.is_empty() {
            // The next item uses the collections again.
            self.places = map.statements;
            self.names.declarations = map.declarations;
            self.names.registers = map.registers;
            self.names.labels = map.labels;
            self.locals = map.locals;
            self.params = map.params;
            self.returns = map.returns;
            self.occurrences = map.occurrences;
            None
        } else {
            map.shrink_to_fit();
            Some(map)
        };
        ItemFindings { diagnostics, storage: self.storage.as_slice().into(), map }
    }
}

fn launch(heading: &Heading<'_>) -> Launch {
    let mut launch = Launch::default();
    for directive in &heading.directives {
        let value = |argument| directive.value(argument);
        let triple = || value(0).map(|x| [x, value(1).unwrap_or(1), value(2).unwrap_or(1)]);
        match directive.word {
            ".maxntid" => launch.maxntid = triple(),
            ".reqntid" => launch.reqntid = triple(),
            ".minnctapersm" => launch.minnctapersm = value(0),
            ".maxnreg" => launch.maxnreg = value(0),
            ".reqnctapercluster" => launch.reqnctapercluster = triple(),
            ".explicitcluster" => launch.explicitcluster = true,
            _ => {}
        }
    }
    launch
}

fn empty_signature() -> Signature {
    Signature {
        name: String::new(),
        entry: false,
        linkage: Linkage::Internal,
        returns: Vec::new(),
        params: Vec::new(),
        external: true,
        noreturn: false,
    }
}

/// Makes a function empty that keeps its memory.
fn clear_function(function: &mut Function) {
    let Function { name, params, returns, regs, locals, targets, body, parts, .. } = function;
    name.clear();
    params.clear();
    returns.clear();
    regs.clear();
    locals.clear();
    targets.clear();
    body.clear();
    parts.clear();
    (function.entry, function.linkage) = (false, Linkage::Internal);
    (function.labels, function.launch) = (0, Launch::default());
}
