//! Operands: names, constants, addresses, vectors.

use ptx_backend::input::{Address, AddressBase, Linkage, Operand, Symbol};
use ptx_isa::{ScalarType, SpecialReg};
use ptx_syntax::SyntaxKind;
use ptx_syntax::flat::Node;
use smol_str::SmolStr;
use text_size::TextRange;

use super::walker::Walker;
use crate::check::lints::{self, Expected};
use crate::constant::{self, Value};
use crate::declaration::BAD_CONSTANT;
use crate::diagnostic::Diagnostic;
use crate::externals;
use crate::module::{self, Global};
use crate::scope::{DeclKind, Entity, split_number};
use crate::source_map::Usage;

impl<'db> Walker<'db> {
    /// The meaning of a name here, without recording a use.
    pub(super) fn find_name(&mut self, range: TextRange) -> Option<Entity> {
        let name = self.slice(range);
        if let Some((id, number)) = self.names.find(name) {
            return Some(match self.names.declarations[id.0 as usize].kind {
                DeclKind::Register { .. } => Entity::Register(self.names.register(id, number, 0)),
                DeclKind::Label(label) => Entity::Label(label),
                DeclKind::Symbol(symbol) => Entity::Symbol(symbol),
                DeclKind::Targets(index) => Entity::Targets(index),
                DeclKind::Prototype(index) => Entity::Prototype(index),
            });
        }
        self.global(name).map(|global| Entity::Symbol(global.symbol()))
    }

    pub(super) fn undefined(&mut self, range: TextRange, expected: Expected) {
        self.incomplete = true;
        let name = self.slice(range);
        let number = split_number(name);
        let is_suggested = !self.diagnostics.has_many(lints::lint_of(expected));
        let visible = self.names.visible().filter(|_| is_suggested).filter_map(|(other, id)| {
            let kind = self.names.declarations[id.0 as usize].kind;
            let is_expected = match expected {
                Expected::Register => matches!(kind, DeclKind::Register { .. }),
                Expected::Label => matches!(kind, DeclKind::Label(_)),
                Expected::Symbol => true,
            };
            match kind {
                _ if !is_expected => None,
                // A name of a range always has a number; the same number of another range may be meant.
                DeclKind::Register { count: Some(count), .. } => {
                    let (prefix, number) = number?;
                    (number < count && prefix != other).then(|| format!("{other}{number}"))
                }
                _ => Some(other.to_owned()),
            }
        });
        let specials = if expected == Expected::Register && is_suggested { SpecialReg::ALL } else { &[] };
        // A special register with a number is similar to any other name with a number.
        // The component, as in `%tid.x`, may already be in the text.
        let has_component = self.text[range.end().into()..].starts_with('.');
        let specials = specials.iter().map(|special| match special.text().split_once('.') {
            Some((vector, _)) if has_component => vector,
            _ => special.text(),
        });
        let specials = specials.filter(|special| !special.ends_with(|c: char| c.is_ascii_digit()));
        let diagnostic = lints::undefined(name, range, expected, visible.chain(specials.map(str::to_owned)));
        let key = module::Name::new(self.db, SmolStr::new(name));
        let is_later = module::global(self.db, self.file, key).is_some();
        let placeholder = name.strip_prefix('$').is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit()));
        self.report(if placeholder {
            diagnostic.note("names like this are placeholders of inline assembly, which the compiler replaces by registers")
        } else if is_later {
            diagnostic.note(format!("`{name}` is declared later; a name must be declared before it is used"))
        } else {
            diagnostic
        });
    }

    /// Reads an operand. `None`: the operand is wrong, which has been reported.
    pub(super) fn operand(&mut self, node: Node<'_>) -> Option<Operand> {
        match node.kind() {
            SyntaxKind::NAME_REF => self.name(node.text_range()),
            SyntaxKind::ADDRESS => {
                self.address_suffix(node);
                self.address(node)
            }
            SyntaxKind::VECTOR => self.elements(node).map(|elements| Operand::Vector(elements.into())),
            SyntaxKind::ARGUMENT_LIST => self.elements(node).map(|elements| Operand::List(elements.into())),
            SyntaxKind::PAIR => {
                let mut parts = node.children();
                let (first, second) = (parts.next()?, parts.next()?);
                let (first, second) = (self.operand(first), self.operand(second));
                // `d|_` is `d`.
                if let (Some(first @ Operand::Reg(_)), Some(Operand::Sink)) = (&first, &second) {
                    return Some(first.clone());
                }
                Some(Operand::Pair(Box::new((first?, second?))))
            }
            SyntaxKind::SINK => Some(Operand::Sink),
            SyntaxKind::COMPONENT => self.component(node),
            SyntaxKind::PREFIX_EXPR => self.negated(node),
            SyntaxKind::ERROR => {
                self.incomplete = true;
                None
            }
            _ => self.constant(node),
        }
    }

    fn elements(&mut self, node: Node<'_>) -> Option<Vec<Operand>> {
        let mut elements = Vec::with_capacity(4);
        let mut complete = true;
        let was_element = std::mem::replace(&mut self.is_element, node.kind() == SyntaxKind::VECTOR);
        for child in node.children() {
            match self.operand(child) {
                Some(element) => elements.push(element),
                None => complete = false,
            }
        }
        self.is_element = was_element;
        complete.then_some(elements)
    }

    fn name(&mut self, range: TextRange) -> Option<Operand> {
        let name = self.slice(range);
        if let Some(register) = self.names.scalar(name) {
            self.occur(range, Entity::Register(register), Usage::Read);
            return Some(Operand::Reg(register));
        }
        if let Some((id, number)) = self.names.find(name) {
            return Some(match self.names.declarations[id.0 as usize].kind {
                DeclKind::Register { lanes, .. } => {
                    let registers: Vec<_> =
                        (0..lanes).map(|lane| self.names.register(id, number, lane)).collect();
                    self.occur(range, Entity::Register(registers[0]), Usage::Read);
                    Operand::Vector(registers.into_iter().map(Operand::Reg).collect())
                }
                DeclKind::Label(label) => {
                    self.occur(range, Entity::Label(label), Usage::Read);
                    Operand::Label(label)
                }
                DeclKind::Symbol(symbol) => {
                    self.occur(range, Entity::Symbol(symbol), Usage::Read);
                    Operand::Symbol(symbol, 0)
                }
                DeclKind::Targets(index) => {
                    self.occur(range, Entity::Targets(index), Usage::Read);
                    Operand::Targets(index)
                }
                DeclKind::Prototype(index) => {
                    self.occur(range, Entity::Prototype(index), Usage::Read);
                    Operand::Prototype(Box::new(self.prototypes.get(index as usize)?.clone()))
                }
            });
        }
        if let Some(special) = special(name) {
            return Some(special);
        }
        if let Some(global) = self.global(name) {
            let symbol = global.symbol();
            let is_extern = is_extern(Some(global));
            self.occur(range, Entity::Symbol(symbol), Usage::Read);
            if is_extern {
                self.diagnostics.extend(externals::function(name, range, self.gates.architecture));
            }
            return Some(Operand::Symbol(symbol, 0));
        }
        let expected = match name.as_bytes() {
            [b'%', ..] => Expected::Register,
            _ => self.expected,
        };
        self.undefined(range, expected);
        None
    }

    /// `%tid.x`, `%v.y` of a declared vector, `%r1.b0` of the video instructions.
    fn component(&mut self, node: Node<'_>) -> Option<Operand> {
        let name = node.first_child()?.text_range();
        let suffix = self.slice(node.own_tokens().last()?.range);
        if let Some((id, number)) = self.names.find(self.slice(name))
            && let DeclKind::Register { lanes, .. } = self.names.declarations[id.0 as usize].kind
        {
            let lane = match suffix {
                ".x" | ".r" => 0,
                ".y" | ".g" => 1,
                ".z" | ".b" => 2,
                ".w" | ".a" => 3,
                // The part of a register is stored beside the operand.
                _ if self.is_video => 0,
                _ => lanes,
            };
            if lane >= lanes || (lanes == 1 && matches!(suffix, ".x" | ".r")) {
                let message = format!("`{}` has no component `{suffix}`", self.slice(name));
                self.report(Diagnostic::new(&lints::BAD_MODIFIER, node.text_range(), message));
                return None;
            }
            let register = self.names.register(id, number, lane);
            self.occur(name, Entity::Register(register), Usage::Read);
            return Some(Operand::Reg(register));
        }
        let whole = format!("{}{suffix}", self.slice(name));
        match special(&whole) {
            Some(operand) => Some(operand),
            // The fourth component of every such vector is zero.
            None => {
                let scalar = SpecialReg::parse(self.slice(name));
                let Some(register) = scalar.or_else(|| first_component(self.slice(name))) else {
                    self.undefined(name, Expected::Register);
                    return None;
                };
                let is_zero = scalar.is_none() && matches!(suffix, ".w" | ".a");
                let gated = if is_zero { &whole } else { self.slice(name) };
                let diagnostic = self.gates.check(&register.gate(), gated, node.text_range(), "");
                self.diagnostics.extend(diagnostic);
                if is_zero {
                    return Some(Operand::Int(0));
                }
                let message = format!("`{}` has no component `{suffix}`", self.slice(name));
                let diagnostic = Diagnostic::new(&lints::BAD_MODIFIER, node.text_range(), message);
                self.report(match scalar {
                    Some(_) => {
                        let excess = TextRange::new(name.end(), node.text_range().end());
                        let note = format!("`{}` is a single value", self.slice(name));
                        diagnostic.note(note).fix(format!("remove `{suffix}`"), excess, "")
                    }
                    None => diagnostic.note("the components are `.x`, `.y` and `.z`"),
                });
                None
            }
        }
    }

    /// `!%p`, or a constant.
    fn negated(&mut self, node: Node<'_>) -> Option<Operand> {
        let Some(inner) = node.first_child() else {
            self.incomplete = true;
            return None;
        };
        let operator = node.own_tokens().next().map(|token| token.kind);
        let is_minus = operator == Some(SyntaxKind::MINUS);
        if self.is_video && is_minus && inner.kind() == SyntaxKind::COMPONENT {
            return self.component(inner);
        }
        if !matches!(inner.kind(), SyntaxKind::NAME_REF | SyntaxKind::COMPONENT) {
            return self.constant(node);
        }
        let operand = self.operand(inner)?;
        match operand {
            Operand::Reg(_) if self.is_video && is_minus => Some(operand),
            Operand::Reg(register)
                if operator == Some(SyntaxKind::BANG)
                    && self.names.registers[register.0 as usize].ty == ScalarType::Pred =>
            {
                Some(Operand::NotPred(register))
            }
            _ => {
                let (message, note) = match operator {
                    Some(SyntaxKind::BANG) => (
                        "`!` can be applied only to predicates",
                        "use `not` to invert the bits of a register",
                    ),
                    Some(SyntaxKind::TILDE) => {
                        ("`~` can be applied only to constants", "use `not` to invert the bits of a register")
                    }
                    Some(SyntaxKind::MINUS) => (
                        "`-` can be applied only to constants",
                        "use `neg` to negate a register, or `sub` in place of `add`",
                    ),
                    _ => ("`+` can be applied only to constants", "remove the `+`"),
                };
                let diagnostic = Diagnostic::new(&lints::PREDICATE, node.text_range(), message);
                self.report(diagnostic.note(note));
                None
            }
        }
    }

    fn constant(&mut self, node: Node<'_>) -> Option<Operand> {
        if node.kind() == SyntaxKind::INDEX_EXPR {
            return self.indexed(node).map(|(symbol, offset)| Operand::Symbol(symbol, offset));
        }
        match constant::evaluate(node, self.text) {
            Ok(Value::Int { value, .. }) => Some(Operand::Int(value)),
            Ok(Value::F32(bits)) => Some(Operand::F32(bits)),
            Ok(Value::F64(value)) => Some(Operand::F64(value.to_bits())),
            Ok(Value::Address { .. } | Value::AddressByte { .. }) if !is_name_plus_constant(node) => {
                let message = "expected a name, a name plus a constant, or a constant";
                let note =
                    "addresses are resolved at link time, so a constant can only be added after the name";
                self.report(Diagnostic::new(&BAD_CONSTANT, node.text_range(), message).note(note));
                self.incomplete = true;
                None
            }
            Ok(Value::Address { name, addend, .. }) => match self.name(name)? {
                Operand::Symbol(Symbol::Function(_), _) => {
                    let message = format!(
                        "`{}` is a function; an offset cannot be added to its address",
                        self.slice(name)
                    );
                    self.report(Diagnostic::new(&BAD_CONSTANT, node.text_range(), message));
                    self.incomplete = true;
                    None
                }
                Operand::Symbol(symbol, _) => Some(Operand::Symbol(symbol, addend)),
                other => {
                    if self.is_element {
                        let message = "a register with an offset is not allowed here";
                        self.report(Diagnostic::new(&BAD_CONSTANT, node.text_range(), message));
                        self.incomplete = true;
                    } else {
                        self.sums.push((node.text_range(), addend));
                    }
                    Some(other)
                }
            },
            Ok(Value::AddressByte { .. }) => {
                self.incomplete = true;
                None
            }
            Err(error) => {
                if !self.is_broken(node.text_range()) {
                    self.report(Diagnostic::new(&BAD_CONSTANT, error.range, error.message));
                }
                self.incomplete = true;
                None
            }
        }
    }

    /// Checks that the word after the bracket is `.unified`.
    fn address_suffix(&mut self, node: Node<'_>) {
        let suffix = node.tokens(SyntaxKind::DOT_WORD).next();
        if let Some(range) = suffix
            && self.slice(range) != ".unified"
        {
            let message = format!("expected `.unified` after the address, found `{}`", self.slice(range));
            self.report(Diagnostic::new(&lints::BAD_MODIFIER, range, message));
        }
    }

    /// `[a]`, `[a+8]`, `[64]`. Brackets with several parts, as for textures and tensor maps, are a list.
    fn address(&mut self, node: Node<'_>) -> Option<Operand> {
        let mut children = node.children();
        let Some(first) = children.next() else {
            self.incomplete = true;
            return None;
        };
        let Some(second) = children.next() else {
            let (base, offset) = self.base(first)?;
            return Some(Operand::Address(Address { base, offset }));
        };
        let mut parts = Vec::with_capacity(2);
        let mut complete = true;
        for child in [first, second].into_iter().chain(children) {
            match self.operand(child) {
                Some(part) => parts.push(part),
                None => complete = false,
            }
        }
        complete.then(|| Operand::List(parts.into()))
    }

    fn base(&mut self, node: Node<'_>) -> Option<(AddressBase, i64)> {
        match node.kind() {
            SyntaxKind::NAME_REF | SyntaxKind::COMPONENT => match self.operand(node)? {
                Operand::Reg(register) => Some((AddressBase::Reg(register), 0)),
                // ptxas accepts them, whatever the instruction does with them.
                Operand::Special(register)
                    if node.kind() == SyntaxKind::NAME_REF && register.ty() != ScalarType::Pred =>
                {
                    self.incomplete = true;
                    None
                }
                Operand::Symbol(symbol, offset) => Some((AddressBase::Symbol(symbol), offset)),
                Operand::Int(value) => Some((AddressBase::Absolute, value)),
                _ => {
                    let message = "expected a register, a variable or a constant as the address";
                    self.report(Diagnostic::new(&lints::ADDRESS, node.text_range(), message).rule());
                    None
                }
            },
            SyntaxKind::BINARY_EXPR => {
                let mut parts = node.children();
                let (left, right) = (parts.next()?, parts.next()?);
                let is_sum = |kind| matches!(kind, SyntaxKind::PLUS | SyntaxKind::MINUS);
                let operator = node.own_tokens().map(|token| token.kind).find(|&kind| is_sum(kind));
                let Some(operator) = operator else { return self.absolute(node) };
                if left.kind() == SyntaxKind::LITERAL && right.kind() != SyntaxKind::LITERAL {
                    return self.absolute(node);
                }
                let (base, offset) = self.base(left)?;
                let right = match constant::evaluate(right, self.text) {
                    Ok(Value::Int { value, .. }) => value,
                    Ok(_) => {
                        let message = "the offset of an address must be an integer constant";
                        self.report(Diagnostic::new(&lints::ADDRESS, right.text_range(), message));
                        return None;
                    }
                    Err(error) => {
                        self.report(Diagnostic::new(&BAD_CONSTANT, error.range, error.message));
                        return None;
                    }
                };
                let offset = match operator {
                    SyntaxKind::PLUS => offset.wrapping_add(right),
                    _ => offset.wrapping_sub(right),
                };
                Some((base, offset))
            }
            SyntaxKind::INDEX_EXPR => {
                self.indexed(node).map(|(symbol, offset)| (AddressBase::Symbol(symbol), offset))
            }
            SyntaxKind::VECTOR | SyntaxKind::ERROR | SyntaxKind::SINK | SyntaxKind::PAIR => {
                self.incomplete = true;
                let message = "expected a register, a variable or a constant as the address";
                self.report(Diagnostic::new(&lints::ADDRESS, node.text_range(), message).rule());
                None
            }
            _ => self.absolute(node),
        }
    }

    fn absolute(&mut self, node: Node<'_>) -> Option<(AddressBase, i64)> {
        match self.constant(node)? {
            Operand::Int(value) => Some((AddressBase::Absolute, value)),
            Operand::Symbol(symbol, offset) => Some((AddressBase::Symbol(symbol), offset)),
            Operand::Reg(register) => Some((AddressBase::Reg(register), 0)),
            _ => {
                let message = "expected a register, a variable or a constant as the address";
                self.report(Diagnostic::new(&lints::ADDRESS, node.text_range(), message).rule());
                None
            }
        }
    }

    /// `table[3]`: the address of an element.
    fn indexed(&mut self, node: Node<'_>) -> Option<(Symbol, i64)> {
        let mut parts = node.children();
        let (name, index) = (parts.next()?, parts.next()?);
        let Operand::Symbol(symbol, _) = self.operand(name)? else {
            let message = "only variables can be indexed";
            self.report(Diagnostic::new(&lints::ADDRESS, name.text_range(), message));
            return None;
        };
        let is_scalar = self.variables.get(&symbol).is_some_and(|place| !place.is_array);
        if is_scalar || matches!(symbol, Symbol::Function(_)) {
            let message =
                format!("`{}` is not an array and cannot be indexed", self.slice(name.text_range()));
            self.report(Diagnostic::new(&lints::ADDRESS, name.text_range(), message));
            return None;
        }
        let index = match constant::evaluate(index, self.text) {
            Ok(Value::Int { value, .. }) => value,
            _ => {
                let message = "an index must be an integer constant";
                self.report(Diagnostic::new(&BAD_CONSTANT, index.text_range(), message));
                return None;
            }
        };
        let bytes = match symbol {
            Symbol::Local(i) => self.function.locals.get(i as usize)?.ty.bytes(),
            Symbol::Param(i) => self.function.params.get(i as usize)?.ty.bytes(),
            Symbol::Return(i) => self.function.returns.get(i as usize)?.ty.bytes(),
            Symbol::Global(_) | Symbol::Function(_) => match self.global(self.slice(name.text_range())) {
                Some(Global::Variable { ty, .. }) => ty.bytes(),
                _ => 1,
            },
        };
        Some((symbol, index.wrapping_mul(i64::from(bytes))))
    }
}

/// Whether a function is defined by another module.
pub(super) fn is_extern(global: Option<&Global>) -> bool {
    matches!(global, Some(Global::Function { signature, .. }) if signature.linkage == Linkage::Extern)
}

/// Whether a node is a name plus any constant, such as `name+4`.
fn is_name_plus_constant(node: Node<'_>) -> bool {
    if node.kind() != SyntaxKind::BINARY_EXPR {
        return false;
    }
    match node.first_child() {
        Some(left) if left.kind() == SyntaxKind::NAME_REF => node.tokens(SyntaxKind::PLUS).next().is_some(),
        Some(left) => is_name_plus_constant(left),
        None => false,
    }
}

/// The first component of a predefined vector.
pub(super) fn first_component(name: &str) -> Option<SpecialReg> {
    SpecialReg::parse(&format!("{name}.x"))
}

/// Predefined registers; predefined vectors have three lanes and a zero.
fn special(name: &str) -> Option<Operand> {
    if !name.starts_with('%') {
        return None;
    }
    if let Some(register) = SpecialReg::parse(name) {
        return Some(Operand::Special(register));
    }
    let lane = |suffix: &str| SpecialReg::parse(&format!("{name}{suffix}")).map(Operand::Special);
    Some(Operand::Vector([lane(".x")?, lane(".y")?, lane(".z")?, Operand::Int(0)].into()))
}
