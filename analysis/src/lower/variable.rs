//! Variables of bodies and of module scope: names in initializers, uses of other variables.

use ptx_backend::input::{Init, InitReloc, Symbol, Variable};
use ptx_isa::{Gate, Space};
use ptx_syntax::SyntaxKind;
use ptx_syntax::flat::Node;
use text_size::{TextRange, TextSize};

use super::body::first_word;
use super::operand::is_extern;
use super::walker::Walker;
use crate::check::declarations::{self, Site};
use crate::check::lints;
use crate::declaration::{Declaration, Declarator, Head};
use crate::diagnostic::Diagnostic;
use crate::externals;
use crate::initializer::{self, INITIAL_VALUE, InitialValue, NameUse, NamedReloc};
use crate::module::Global;
use crate::scope::Entity;
use crate::source_map::Usage;

impl Walker<'_> {
    /// Checks a declaration at module scope. Errors of its parts are reported here; the module interprets it.
    pub(super) fn module_variable(&mut self, declaration: Declaration<'_>) {
        self.check_declaration(Site::Module, &declaration, TextRange::up_to(TextSize::of(self.text)));
        self.names.open();
        for declarator in declaration.declarators {
            let Some(range) = declarator.name else { continue };
            if let Some(symbol) = self.global(self.slice(range)).map(Global::symbol) {
                self.occur(range, Entity::Symbol(symbol), Usage::Declaration);
            }
            self.initial_value(&declaration.head, &declarator);
        }
        self.names.close();
    }

    /// Checks a declaration, unless it has syntax errors: missing parts are not reported twice.
    pub(super) fn check_declaration(&mut self, site: Site, declaration: &Declaration<'_>, range: TextRange) {
        if !self.is_broken(range) {
            let Declaration { head, declarators } = declaration;
            let context = (self.header, &self.gates);
            declarations::check(site, head, declarators, context, self.text, &mut self.diagnostics);
        }
    }

    /// Resolves an `.alias`. The module checks its names.
    pub(super) fn alias(&mut self, node: Node<'_>) {
        self.diagnostics.extend(self.gates.check(&Gate::since(6, 3, 30), ".alias", first_word(node), ""));
        for name in node.children() {
            let range = name.text_range();
            let access = if name.kind() == SyntaxKind::NAME_REF { Usage::Read } else { Usage::Declaration };
            if let Some(symbol) = self.global(self.slice(range)).map(Global::symbol) {
                self.occur(range, Entity::Symbol(symbol), access);
            }
        }
    }

    /// Evaluates an initializer and records the names in it.
    fn initial_value(&mut self, head: &Head, declarator: &Declarator<'_>) -> Option<InitialValue> {
        let initializer = declarator.initializer?;
        let value =
            initializer::read(initializer, head, &declarator.dimensions, self.text, &mut self.diagnostics);
        for &name in &value.names {
            self.address_in_value(name, declarator.name);
        }
        Some(value)
    }

    /// Checks a name whose address is an initial value. `variable` is the name of the initialized variable.
    fn address_in_value(&mut self, name: NameUse, variable: Option<TextRange>) {
        let range = name.range;
        let gates = [
            (name.generic, Gate::since(3, 1, 20), "generic()"),
            (name.masked, Gate::since(7, 1, 20), "0xFF()"),
        ];
        for (_, gate, what) in gates.iter().filter(|(used, ..)| *used) {
            self.diagnostics.extend(self.gates.check(gate, what, range, ""));
        }
        let is_own = variable.is_some_and(|own| self.slice(own) == self.slice(range));
        let symbol = match self.find_name(range) {
            Some(Entity::Symbol(symbol)) if !is_own => symbol,
            _ if is_own => {
                let message = format!("`{}` cannot be used in its own initializer", self.slice(range));
                self.report(Diagnostic::new(&INITIAL_VALUE, range, message));
                return;
            }
            _ => return self.undefined(range, lints::Expected::Symbol),
        };
        self.occur(range, Entity::Symbol(symbol), Usage::Read);
        let text = self.slice(range);
        if is_extern(self.global(text)) {
            self.diagnostics.extend(externals::function(text, range, self.gates.architecture));
        }
        if matches!(self.global(text), Some(Global::Function { signature, .. }) if signature.entry) {
            self.diagnostics.extend(self.gates.check(
                &Gate::since(3, 1, 35),
                "the address of a kernel",
                range,
                "",
            ));
        }
        let space = match symbol {
            Symbol::Function(_) => None,
            Symbol::Param(_) | Symbol::Return(_) => Some(Space::Param),
            Symbol::Global(_) | Symbol::Local(_) => self.variables.get(&symbol).map(|place| place.space),
        };
        let message = match space {
            Some(Space::Global | Space::Const) => return,
            Some(space) => {
                format!(
                    "`{text}` is in `.{}`; only addresses in `.global` and `.const` can be initializers",
                    space.text()
                )
            }
            None if name.generic => format!("`{text}` is a function; `generic()` applies only to variables"),
            None if name.addend != 0 => {
                format!("`{text}` is a function; an offset cannot be added to its address")
            }
            None => return,
        };
        self.report(Diagnostic::new(&INITIAL_VALUE, range, message));
    }

    pub(super) fn variable_value(
        &mut self,
        head: &Head,
        declarator: &Declarator<'_>,
        name: TextRange,
    ) -> Variable {
        let value = self.initial_value(head, declarator);
        let elements = declarator.elements().or(value.as_ref().map(|value| value.elements)).unwrap_or(0);
        let init = value.map(|value| {
            let mut relocs = Vec::new();
            for reloc in value.relocs {
                let place =
                    self.names.find(&reloc.name).map(|(id, _)| self.names.declarations[id.0 as usize].kind);
                let symbol = match place {
                    Some(crate::scope::DeclKind::Symbol(symbol)) => Some(symbol),
                    Some(_) => None,
                    None => {
                        let interned = crate::module::Name::new(self.db, reloc.name.clone());
                        crate::module::global(self.db, self.file, interned).as_ref().map(Global::symbol)
                    }
                };
                if let Some(symbol) = symbol {
                    let NamedReloc { at, addend, generic, size, byte, .. } = reloc;
                    relocs.push(InitReloc { at, symbol, addend, generic, size, byte });
                }
            }
            Init { bytes: value.bytes, relocs, sampling: value.sampling }
        });
        Variable {
            name: self.slice(name).to_owned(),
            space: head.space,
            linkage: head.linkage,
            ty: head.ty,
            size: elements.saturating_mul(head.element_bytes()),
            align: head.alignment(),
            init,
            managed: head.managed,
            unified: head.unified,
        }
    }
}
