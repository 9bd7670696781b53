//! The walk over functions, blocks, declarations and statements.

use std::sync::Arc;

use ptx_backend::input::{LabelId, Launch, Linkage, Param, Signature, Symbol, Variable};
use ptx_isa::{PtxVersion, Space};
use ptx_syntax::flat::{FlatTree, Node};
use ptx_syntax::{ItemKind, SyntaxKind};
use text_size::{TextRange, TextSize};

use super::walker::Walker;
use crate::check::declarations::{self, Site};
use crate::check::lints::CALL_TARGET;
use crate::check::{Hidden, VariableFacts, debug, directives, limits, lints, pragmas};
use crate::declaration::{self, BAD_DECLARATION, Shape};
use crate::diagnostic::Diagnostic;
use crate::heading::{Heading, Layout, List, Parameter};
use crate::module::{self, Global, REDEFINITION};
use crate::scope::{DeclId, DeclKind, Declaration, Entity};
use crate::signature::{self, Shapes};
use crate::source_map::Usage;

impl<'db> Walker<'db> {
    /// Walks the tree of the item.
    pub(super) fn item(&mut self, kind: ItemKind, tree: &FlatTree) {
        self.syntax_errors(&tree.errors);
        let node = tree.root();
        match node.kind() {
            _ if kind == ItemKind::Dwarf => self.dwarf(),
            SyntaxKind::FUNCTION => {
                let heading = Heading::read(node, self.text, &mut self.diagnostics);
                self.function(&heading);
            }
            SyntaxKind::VARIABLE => {
                if let Some(declaration) = declaration::read(node, self.text, &mut self.diagnostics) {
                    self.module_variable(declaration);
                }
            }
            // Its syntax errors have been reported.
            SyntaxKind::SECTION if self.broken.is_empty() => {
                debug::section(node, &self.gates, self.text, &mut self.diagnostics);
            }
            SyntaxKind::FILE_DIRECTIVE => debug::file(node, &self.gates, self.text, &mut self.diagnostics),
            SyntaxKind::LOC_DIRECTIVE => self.misplaced_loc(node),
            SyntaxKind::ALIAS => self.alias(node),
            SyntaxKind::PRAGMA => self.pragma(node, pragmas::Site::Module),
            _ => {}
        }
    }

    fn function(&mut self, heading: &Heading<'_>) {
        self.names.open();
        self.module_registers();
        self.names.open();
        let end = TextSize::of(self.text) - TextSize::of('}');
        directives::check(heading, &self.gates, self.text, end, &mut self.diagnostics);
        self.function.entry = heading.is_entry(self.text);
        self.function.linkage = heading.linkage(self.text);
        self.function.launch = launch(heading);
        self.function.preserved = heading.preserved();
        let visible = TextRange::up_to(TextSize::of(self.text));
        self.parameters(&heading.results, visible, Site::Result);
        if let Some(range) = heading.name {
            let name = self.slice(range);
            name.clone_into(&mut self.function.name);
            let symbol = match self.file.is_frozen(self.db) {
                // An item may use the names that it declares.
                true => module::module(self.db, self.file).names.get(name).map(|named| named.symbol),
                false => self.global(name).map(Global::symbol),
            };
            if let Some(symbol) = symbol {
                self.occur(range, Entity::Symbol(symbol), Usage::Declaration);
            }
        }
        let site = match (heading.name, self.function.entry) {
            (None, _) => Site::Result,
            (Some(_), true) => Site::Kernel,
            (Some(_), false) => Site::Function,
        };
        self.parameters(&heading.parameters, visible, site);
        for &pragma in &heading.pragmas {
            self.pragma(pragma, pragmas::Site::Kernel);
        }
        if let Some(body) = heading.body {
            self.has_body = true;
            // In the scope of the parameters.
            self.statements(body, self.scope_of(body));
        }
        self.names.close();
        self.names.close();
        self.incomplete |= heading.name.is_none();
        if self.has_body && self.function.linkage == Linkage::Extern {
            let range = self.map.occurrences.first().map_or(visible, |name| name.range);
            let message = "an `.extern` function is defined elsewhere and cannot have a body".to_owned();
            self.report(Diagnostic::new(&BAD_DECLARATION, range, message).reported_at(end));
        }
    }

    /// Declares the registers of module scope: every function has its own copy.
    fn module_registers(&mut self) {
        for register in self.module_registers {
            // They are declared outside of this item, so the range is empty, at the start of the item.
            let range = TextRange::empty(TextSize::new(0));
            let kind = DeclKind::Register { ty: register.ty, count: register.count, lanes: register.lanes };
            self.names.declare(
                &register.name,
                Declaration { range, visible: TextRange::up_to(TextSize::of(self.text)), kind },
            );
        }
    }

    /// Checks the parameters of a list, individually and together.
    fn parameter_list(&mut self, list: &List<'_>, site: Site) {
        for parameter in &list.parameters {
            let declarators = std::slice::from_ref(&parameter.declarator);
            let context = (self.header, &self.gates);
            declarations::check(
                site,
                &parameter.head,
                declarators,
                context,
                self.text,
                &mut self.diagnostics,
            );
        }
        declarations::check_list(site, &list.parameters, &self.gates, &mut self.diagnostics);
    }

    fn parameters(&mut self, list: &List<'_>, visible: TextRange, site: Site) {
        let is_input = site != Site::Result;
        let mut layout = Layout::default();
        self.parameter_list(list, site);
        if site == Site::Kernel {
            let bytes = limits::parameter_bytes(&list.parameters);
            self.diagnostics.extend(limits::kernel_parameters(bytes, list.range, &self.gates));
        }
        for parameter in &list.parameters {
            let Some(range) = parameter.name() else { continue };
            let Parameter { shape, declarator, .. } = parameter;
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
            let reg = (is_register && declarator.count.is_none()).then(|| {
                let first = self.names.register(id, None, 0);
                // The elements are numbered consecutively.
                (1..lanes).for_each(|lane| _ = self.names.register(id, None, lane));
                first
            });
            let param = Param { reg, ..layout.add(parameter, self.slice(range)) };
            let size = u64::from(param.size);
            let place = VariableFacts { space, ty, is_array: shape.is_array(), align, size, hides: None };
            self.variables.insert(symbol, place);
            let entity = reg.filter(|_| lanes == 1).map_or(Entity::Symbol(symbol), Entity::Register);
            self.occur(range, entity, Usage::Declaration);
            if is_input {
                self.function.params.push(param);
                self.map.params.push(id);
            } else {
                self.function.returns.push(param);
                self.map.returns.push(id);
            }
        }
    }

    /// Declares a name in the innermost scope, and reports an earlier declaration there.
    pub(super) fn declare(&mut self, range: TextRange, visible: TextRange, kind: DeclKind) -> DeclId {
        self.step();
        let name = self.slice(range);
        let (id, previous) = self.names.declare(name, Declaration { range, visible, kind });
        if let Some(previous) = previous
            && name != "_"
        {
            let earlier = self.names.declarations[previous.0 as usize].range;
            let message = format!("`{name}` is declared more than once in this scope");
            // Labels are declared before all other names of their block.
            let (first, second) =
                if earlier.start() < range.start() { (earlier, range) } else { (range, earlier) };
            self.report(
                Diagnostic::new(&REDEFINITION, second, message).rule().related(first, "first declared here"),
            );
        }
        id
    }

    fn block(&mut self, block: Node<'_>) {
        self.names.open();
        self.statements(block, self.scope_of(block));
        self.names.close();
    }

    /// The range in which names of a block are visible. An unclosed block ends with the text, including blanks.
    fn scope_of(&self, block: Node<'_>) -> TextRange {
        let range = block.text_range();
        match block.tokens(SyntaxKind::R_BRACE).next() {
            Some(_) => range,
            None => TextRange::new(range.start(), TextSize::of(self.text)),
        }
    }

    /// Walks the contents of a block, in the open scope, whose names are visible in `visible`.
    pub(super) fn statements(&mut self, block: Node<'_>, visible: TextRange) {
        let first_label = self.labels_of(block, visible);
        let mut label = first_label;
        for child in block.children() {
            self.step();
            let was_incomplete = self.incomplete;
            match child.kind() {
                SyntaxKind::INSTRUCTION => self.instruction(child),
                SyntaxKind::VARIABLE => self.variable(child, visible),
                SyntaxKind::LABEL => {
                    self.survey.label();
                    self.code.label(label);
                    let range = self.names.declarations[self.names.labels[label.0 as usize].0 as usize].range;
                    self.occur(range, Entity::Label(label), Usage::Declaration);
                    label.0 += 1;
                }
                SyntaxKind::BLOCK => self.block(child),
                SyntaxKind::LOC_DIRECTIVE => self.loc(child),
                SyntaxKind::PRAGMA => {
                    let is_entry = self.function.entry;
                    let site = if is_entry { pragmas::Site::KernelBody } else { pragmas::Site::FunctionBody };
                    self.pragma(child, site);
                }
                SyntaxKind::BRANCH_TARGETS => self.branch_targets(child, visible),
                SyntaxKind::CALL_TARGETS => self.call_targets(child, visible),
                SyntaxKind::CALL_PROTOTYPE => self.prototype(child, visible),
                SyntaxKind::ERROR => self.incomplete = true,
                _ => {}
            }
            if self.incomplete && !was_incomplete {
                self.not_understood.get_or_insert(child.text_range());
            }
        }
    }

    fn loc(&mut self, node: Node<'_>) {
        let (db, file, part) = (self.db, self.file, self.part);
        let is_known = |position| {
            let first = debug::first_positions(db, file).get(&position);
            first.zip(part).is_some_and(|(&first, part)| first < part.index(db))
        };
        let Some(label) = self.positions.check(node, self.text, is_known, &mut self.diagnostics) else {
            return;
        };
        if !debug::section_labels(self.db, self.file).contains(&self.text[label]) {
            let message = format!("label `{}` is not defined in any section", &self.text[label]);
            self.report(Diagnostic::new(&debug::BAD_DEBUG_DATA, label, message));
        }
    }

    /// `@@DWARF`: debug data in the syntax of PTX 1.x.
    pub(super) fn dwarf(&mut self) {
        if self.header.version_or_newest() >= PtxVersion::new(2, 0) {
            let start = self.text.find("@@").unwrap_or(0);
            let word = self.text[start..].split_ascii_whitespace().next().unwrap_or_default();
            let range = TextRange::at(TextSize::new(start as u32), TextSize::of(word));
            let message = "`@@DWARF` was removed in PTX ISA 2.0; use `.section`";
            self.report(Diagnostic::new(&declarations::REMOVED_FORM, range, message));
        }
    }

    pub(super) fn misplaced_loc(&mut self, node: Node<'_>) {
        let message = "`.loc` must be inside a function, before the instructions of the line";
        self.report(Diagnostic::new(&BAD_DECLARATION, first_word(node), message));
    }

    pub(super) fn pragma(&mut self, node: Node<'_>, site: pragmas::Site) {
        pragmas::check(node, site, &self.gates, self.text, &mut self.diagnostics);
        if self.text[node.text_range()].contains("\"nounroll\"") {
            // The loop that begins here, or every loop of the function, must not be unrolled.
            let nounroll = &mut self.function.nounroll;
            match site {
                pragmas::Site::Module => {}
                pragmas::Site::Kernel => nounroll.everywhere = true,
                pragmas::Site::KernelBody | pragmas::Site::FunctionBody => {
                    nounroll.before.push(self.code.len() as u32);
                }
            }
        }
    }

    /// Declares the labels of a block, except those of inner blocks; returns the first one.
    fn labels_of(&mut self, block: Node<'_>, visible: TextRange) -> LabelId {
        let first = LabelId(self.names.labels.len() as u32);
        for node in block.children().filter(|child| child.kind() == SyntaxKind::LABEL) {
            let label = LabelId(self.names.labels.len() as u32);
            let name = node.first_child().unwrap_or(node);
            self.declare(name.text_range(), visible, DeclKind::Label(label));
        }
        first
    }

    fn variable(&mut self, node: Node<'_>, block: TextRange) {
        let has_names = node.child(SyntaxKind::DECLARATOR).is_some();
        if !has_names {
            declarations::unnamed(node, self.text, &mut self.diagnostics);
        }
        let Some(declaration) = declaration::read(node, self.text, &mut self.diagnostics) else {
            // A declaration without names may lack its state space; it declares nothing.
            self.incomplete |= has_names;
            return;
        };
        self.check_declaration(Site::Body, &declaration, node.text_range());
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
            self.occur(range, Entity::Symbol(symbol), Usage::Declaration);
            let variable = self.variable_value(&head, &declarator, range);
            self.add_local(id, Shape::new(&head, &declarator), variable);
        }
    }

    /// The parameter or result that a variable of the body hides.
    fn hidden(&self, space: Space, name: &str) -> Option<Hidden> {
        let is_in = |params: &[Param]| space == Space::Param && params.iter().any(|param| param.name == name);
        let parameter = is_in(&self.function.params).then_some(Hidden::Parameter);
        parameter.or_else(|| is_in(&self.function.returns).then_some(Hidden::Result))
    }

    /// Adds the next local variable, which `id` declares.
    pub(super) fn add_local(&mut self, id: DeclId, shape: Shape, variable: Variable) {
        let symbol = Symbol::Local(self.function.locals.len() as u32);
        let Shape { space, ty, align, .. } = shape;
        self.map.locals.push(id);
        let size = if shape.is_open() { 0 } else { shape.bytes() };
        let hides = self.hidden(space, &variable.name);
        self.variables
            .insert(symbol, VariableFacts { space, ty, is_array: shape.is_array(), align, size, hides });
        self.local_shapes.push(shape);
        if matches!(space, Space::Shared | Space::Const | Space::Global) {
            self.storage.push((space, limits::Block { bytes: variable.size, align: variable.align }));
        }
        self.function.locals.push(variable);
    }

    fn branch_targets(&mut self, node: Node<'_>, block: TextRange) {
        let index = self.function.targets.len() as u32;
        let Some(id) = self.named_list(node, block, DeclKind::Targets(index), Entity::Targets(index)) else {
            return;
        };
        self.map.targets.push(id);
        let mut labels = Vec::new();
        let mut children = node.children().peekable();
        while let Some(name) = children.next() {
            if name.kind() != SyntaxKind::NAME_REF {
                continue;
            }
            if let Some(range) = children.next_if(|next| next.kind() == SyntaxKind::REGISTER_RANGE) {
                self.numbered_labels(name.text_range(), range, &mut labels);
                continue;
            }
            match self.find_name(name.text_range()) {
                Some(Entity::Label(label)) => {
                    self.occur(name.text_range(), Entity::Label(label), Usage::Read);
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

    /// `name<2>`: the labels `name0` and `name1`. No other name may look like one of them.
    fn numbered_labels(&mut self, name: TextRange, range: Node<'_>, labels: &mut Vec<LabelId>) {
        let count = declaration::integer_in(range, self.text).unwrap_or(0);
        for number in 0..count {
            let label = format!("{}{number}", self.slice(name));
            let found = self.names.find(&label).map(|(id, _)| self.names.declarations[id.0 as usize].kind);
            if let Some(DeclKind::Label(found)) = found {
                labels.push(found);
                continue;
            }
            let message = format!("label `{label}` is not declared in this scope");
            self.report(
                Diagnostic::new(&lints::UNDEFINED_LABEL, name.cover(range.text_range()), message).rule(),
            );
            self.incomplete = true;
            break;
        }
    }

    fn call_targets(&mut self, node: Node<'_>, block: TextRange) {
        // Kept as a prototype: that of the first function in the list.
        let index = self.prototypes.len() as u32;
        let Some(id) = self.named_list(node, block, DeclKind::Prototype(index), Entity::Prototype(index))
        else {
            return;
        };
        self.map.prototypes.push(id);
        let mut first = None;
        for name in node.children().filter(|child| child.kind() == SyntaxKind::NAME_REF) {
            let range = name.text_range();
            match self.global(self.slice(range)) {
                Some(Global::Function { index, signature, shapes }) => {
                    first.get_or_insert_with(|| (Signature::clone(signature), Arc::clone(shapes)));
                    self.occur(range, Entity::Symbol(Symbol::Function(*index)), Usage::Read);
                }
                Some(Global::Variable { .. }) => {
                    let message = format!("expected a function, found variable `{}`", self.slice(range));
                    self.report(Diagnostic::new(&CALL_TARGET, range, message));
                }
                None => self.undefined(range, lints::Expected::Symbol),
            }
        }
        self.incomplete |= first.is_none();
        let (signature, shapes) = first.unwrap_or_else(|| (Signature::default(), Arc::default()));
        self.prototypes.push(signature);
        self.prototype_shapes.push(shapes);
    }

    fn prototype(&mut self, node: Node<'_>, block: TextRange) {
        let index = self.prototypes.len() as u32;
        let Some(id) = self.named_list(node, block, DeclKind::Prototype(index), Entity::Prototype(index))
        else {
            return;
        };
        self.map.prototypes.push(id);
        let heading = Heading::read(node, self.text, &mut self.diagnostics);
        directives::check(&heading, &self.gates, self.text, node.text_range().end(), &mut self.diagnostics);
        let mut result = Signature::default();
        let mut all = Shapes::default();
        self.parameter_list(&heading.results, Site::PrototypeResult);
        self.parameter_list(&heading.parameters, Site::Prototype);
        (result.returns, all.returns) = signature::parameters(&heading.results, self.text);
        (result.params, all.params) = signature::parameters(&heading.parameters, self.text);
        result.noreturn = heading.is_noreturn();
        result.preserved = heading.preserved();
        self.prototypes.push(result);
        self.prototype_shapes.push(Arc::new(all));
    }

    fn named_list(
        &mut self,
        node: Node<'_>,
        block: TextRange,
        kind: DeclKind,
        entity: Entity,
    ) -> Option<DeclId> {
        let Some(name) = node.child(SyntaxKind::NAME) else {
            self.incomplete = true;
            return None;
        };
        let range = name.text_range();
        let id = self.declare(range, block, kind);
        self.occur(range, entity, Usage::Declaration);
        Some(id)
    }
}

/// The word that a directive begins with.
pub(super) fn first_word(node: Node<'_>) -> TextRange {
    node.tokens(SyntaxKind::DOT_WORD).next().unwrap_or_else(|| node.text_range())
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
            ".maxclusterrank" => launch.maxclusterrank = value(0),
            _ => {}
        }
    }
    launch
}
