//! Calls: the target, the arguments and the prototype.

use ptx_backend::input::{Signature, Symbol};
use ptx_isa::{ScalarType, Space, TypeKind};
use ptx_syntax::SyntaxKind;
use ptx_syntax::flat::Node;
use std::sync::Arc;
use text_size::TextRange;

use super::walker::Walker;
use crate::check::immediates::CONSTANT_TYPE;
use crate::check::lints::CALL_TARGET;
use crate::check::operands::{OPERAND_CLASS, OPERAND_COUNT};
use crate::check::types::OPERAND_TYPE;
use crate::declaration::Shape;
use crate::diagnostic::Diagnostic;
use crate::module::Global;
use crate::scope::{DeclKind, Entity};
use crate::signature::Shapes;
use crate::text::counted;

/// An argument or a result of a call.
enum Passed {
    /// A register or a `.param` variable.
    Shape(Shape),
    Integer,
    Float,
    /// `_`
    Nothing,
}

/// The parts of a call: results, target, arguments, prototype.
struct Parts<'n> {
    returns: Option<Node<'n>>,
    target: Node<'n>,
    arguments: Option<Node<'n>>,
    prototype: Option<Node<'n>>,
}

impl<'n> Parts<'n> {
    fn of(operands: &[Node<'n>]) -> Option<Self> {
        let is_list = |node: &Node<'_>| node.kind() == SyntaxKind::ARGUMENT_LIST;
        let (returns, rest) = match operands.split_first() {
            Some((first, rest)) if is_list(first) => (Some(*first), rest),
            _ => (None, operands),
        };
        let (&target, rest) = rest.split_first()?;
        let (arguments, rest) = match rest.split_first() {
            Some((first, rest)) if is_list(first) => (Some(*first), rest),
            _ => (None, rest),
        };
        match (target.kind(), rest) {
            (SyntaxKind::NAME_REF, []) => Some(Self { returns, target, arguments, prototype: None }),
            (SyntaxKind::NAME_REF, &[last]) => {
                Some(Self { returns, target, arguments, prototype: Some(last) })
            }
            _ => None,
        }
    }
}

impl Walker<'_> {
    /// Checks a call after its operands have been read.
    pub(super) fn call(&mut self, range: TextRange, operands: &[Node<'_>], has_count: bool) {
        let Some(parts) = Parts::of(operands) else {
            // The wrong number of operands has been reported.
            if !has_count {
                return;
            }
            let message =
                "expected `call (results), target, (arguments), prototype` with a name as the target";
            self.report(Diagnostic::new(&CALL_TARGET, range, message).rule());
            return;
        };
        let target = parts.target.text_range();
        let shapes = match self.find_name(target) {
            Some(Entity::Symbol(Symbol::Function(_))) => self.direct(target, parts.prototype),
            Some(Entity::Register(register)) => {
                let ty = self.names.registers[register.0 as usize].ty;
                let is_address = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed)
                    && matches!(ty.bits(), 32 | 64);
                if !is_address {
                    let message = format!(
                        "`{}` is `.{}` and cannot hold the address of a function",
                        self.slice(target),
                        ty.text()
                    );
                    self.report(Diagnostic::new(&OPERAND_TYPE, target, message));
                }
                self.indirect(target, parts.prototype)
            }
            Some(_) => {
                let message =
                    format!("cannot call `{}`: it is not a function or register", self.slice(target));
                self.report(Diagnostic::new(&CALL_TARGET, target, message).rule());
                None
            }
            // Reported when the operands were read.
            None => None,
        };
        let returns = self.passed(parts.returns);
        let arguments = self.passed(parts.arguments);
        let Some(shapes) = shapes else { return };
        // Functions with several results do not follow the convention that excludes short registers.
        if shapes.returns.len() <= 1 {
            self.refuse_short(parts.returns, &shapes.returns);
            self.refuse_short(parts.arguments, &shapes.params);
        }
        self.agree(range, parts.returns, returns, &shapes.returns, true);
        self.agree(range, parts.arguments, arguments, &shapes.params, false);
    }

    fn direct(&mut self, target: TextRange, prototype: Option<Node<'_>>) -> Option<Arc<Shapes>> {
        let name = self.slice(target);
        let Some(Global::Function { signature, shapes, .. }) = self.global(name) else { return None };
        if signature.entry {
            let message = format!("cannot call kernel `{name}`; only device functions can be called");
            self.report(Diagnostic::new(&CALL_TARGET, target, message));
            return None;
        }
        let shapes = Arc::clone(shapes);
        if let Some(prototype) = prototype {
            let message = format!(
                "a call of function `{name}` takes no prototype; prototypes are for calls through a register"
            );
            let range = prototype.text_range();
            self.report(Diagnostic::new(&CALL_TARGET, range, message));
        }
        Some(shapes)
    }

    /// The parameters of the prototype that an indirect call names.
    fn indirect(&mut self, target: TextRange, prototype: Option<Node<'_>>) -> Option<Arc<Shapes>> {
        let Some(prototype) = prototype else {
            let message = "an indirect call requires a prototype after the arguments";
            let note = "declare one: `name: .callprototype (result) _ (parameters);`";
            self.report(Diagnostic::new(&CALL_TARGET, target, message).note(note));
            return None;
        };
        let range = prototype.text_range();
        let name = self.slice(range);
        let shapes = match self.find_name(range) {
            Some(Entity::Prototype(index)) => self.prototype_shapes.get(index as usize).cloned(),
            Some(Entity::Symbol(Symbol::Global(_))) => self.table(name).map(|(_, shapes)| shapes),
            // Reported when the operands were read.
            None => return None,
            Some(_) => None,
        };
        if shapes.is_none() {
            let message =
                format!("`{name}` is not a `.callprototype`, a `.calltargets` list or an array of functions");
            self.report(Diagnostic::new(&CALL_TARGET, range, message).rule());
        }
        shapes
    }

    /// The prototype of a call that names a table of functions.
    pub(super) fn table_prototype(&mut self, operands: &[Node<'_>]) -> Option<Arc<Signature>> {
        let name = Parts::of(operands)?.prototype?.text_range();
        match self.find_name(name) {
            Some(Entity::Symbol(Symbol::Global(_))) => self.table(self.slice(name)).map(|(found, _)| found),
            _ => None,
        }
    }

    /// The signature of the functions in a table: that of the first function.
    fn table(&self, name: &str) -> Option<(Arc<Signature>, Arc<Shapes>)> {
        let key = crate::module::Name::new(self.db, smol_str::SmolStr::new(name));
        let Some(Global::Variable {
            is_array: true,
            ty: ScalarType::U64 | ScalarType::U32 | ScalarType::U8,
            table: Some(function),
            ..
        }) = crate::module::global(self.db, self.file, key)
        else {
            return None;
        };
        crate::module::function_signature(self.db, self.file, *function)
    }

    /// The arguments or results; `None` for an operand that cannot be passed, which is reported.
    fn passed(&mut self, list: Option<Node<'_>>) -> Vec<Option<Passed>> {
        let nodes = list.into_iter().flat_map(Node::children);
        nodes.map(|node| self.passed_one(node)).collect()
    }

    fn passed_one(&mut self, node: Node<'_>) -> Option<Passed> {
        let range = node.text_range();
        match node.kind() {
            SyntaxKind::SINK => return Some(Passed::Nothing),
            SyntaxKind::NAME_REF => {}
            SyntaxKind::LITERAL | SyntaxKind::PREFIX_EXPR | SyntaxKind::PAREN_EXPR => {
                return match crate::constant::evaluate(node, self.text) {
                    Ok(crate::constant::Value::Int { .. }) => Some(Passed::Integer),
                    Ok(_) => Some(Passed::Float),
                    Err(_) => {
                        self.cannot_pass(range, "not a name or constant");
                        None
                    }
                };
            }
            _ => {
                self.cannot_pass(range, "not a name or constant");
                return None;
            }
        }
        let name = self.slice(range);
        if let Some((id, _)) = self.names.find(name)
            && let DeclKind::Register { ty, lanes, .. } = self.names.declarations[id.0 as usize].kind
        {
            let align = (ty.bytes() * u32::from(lanes)).next_power_of_two();
            let dimensions = Box::default();
            return Some(Passed::Shape(Shape { space: Space::Reg, ty, lanes, dimensions, align }));
        }
        match self.find_name(range) {
            Some(Entity::Symbol(Symbol::Local(index))) => {
                let shape = self.local_shapes.get(index as usize)?.clone();
                if shape.space == Space::Param {
                    return Some(Passed::Shape(shape));
                }
                self.cannot_pass(range, &format!("in `.{}`", shape.space.text()));
            }
            Some(Entity::Symbol(Symbol::Param(_) | Symbol::Return(_))) => {
                self.cannot_pass(range, "a parameter of this function; copy it first");
            }
            Some(_) => self.cannot_pass(range, "not a register or a `.param` variable of this function"),
            None if ptx_isa::SpecialReg::parse(name).is_some() => {
                self.cannot_pass(range, "a special register; move it to a register first");
            }
            None => {}
        }
        None
    }

    fn cannot_pass(&mut self, range: TextRange, what: &str) {
        let message = format!("cannot pass `{}`: it is {what}", self.slice(range));
        let note = "an argument must be a register, a `.param` variable of this function or a constant";
        self.report(Diagnostic::new(&OPERAND_CLASS, range, message).note(note));
    }

    /// Compares the arguments with the declared parameters.
    fn agree(
        &mut self,
        call: TextRange,
        list: Option<Node<'_>>,
        passed: Vec<Option<Passed>>,
        formals: &[Shape],
        is_result: bool,
    ) {
        let what = if is_result { "result" } else { "argument" };
        let optional = usize::from(!is_result && formals.last().is_some_and(Shape::is_open));
        if passed.len() > formals.len() || passed.len() + optional < formals.len() {
            let range = list.map_or(call, Node::text_range);
            let message = format!("expected {}, found {}", counted(formals.len(), what), passed.len());
            let declared: Vec<String> = formals.iter().map(|formal| format!("`{formal}`")).collect();
            let note = match declared.as_slice() {
                [] => format!("the function has no {what}s"),
                declared => format!("the function declares {}", declared.join(", ")),
            };
            self.report(Diagnostic::new(&OPERAND_COUNT, range, message).note(note));
            return;
        }
        let nodes: Vec<TextRange> =
            list.into_iter().flat_map(Node::children).map(|node| node.text_range()).collect();
        for ((passed, formal), range) in passed.into_iter().zip(formals).zip(nodes) {
            match passed {
                Some(passed) => self.agree_one(&passed, formal, range, is_result),
                None => continue,
            }
        }
    }

    /// Reports parameters that the calling convention does not support.
    fn refuse_short(&mut self, list: Option<Node<'_>>, formals: &[Shape]) {
        let nodes = list.into_iter().flat_map(Node::children).map(|node| node.text_range());
        for (range, formal) in nodes.collect::<Vec<_>>().into_iter().zip(formals) {
            if is_unpassable(formal) {
                let (space, ty) = (formal.space.text(), formal.ty.text());
                let message =
                    format!("cannot pass a `.{space} .{ty}` parameter: it is smaller than a register");
                let note = match formal.space {
                    Space::Param => format!(
                        "declare it as `.param .b{}`, which is passed in a whole register",
                        formal.ty.bits()
                    ),
                    _ => "pass 32 bits in a register, or use `.param`".to_owned(),
                };
                self.report(Diagnostic::new(&OPERAND_TYPE, range, message).note(note));
            }
        }
    }

    fn agree_one(&mut self, passed: &Passed, formal: &Shape, range: TextRange, is_result: bool) {
        let ty = formal.ty;
        if formal.space == Space::Reg && is_unpassable(formal) {
            // `refuse_short` reports it if it is not allowed.
            return;
        }
        let actual = match passed {
            Passed::Nothing if is_result => return,
            Passed::Nothing => return self.cannot_pass(range, "nothing"),
            Passed::Integer | Passed::Float => {
                let is_float = matches!(passed, Passed::Float);
                let fits = !formal.is_array()
                    && match ty.kind() {
                        TypeKind::Float => is_float,
                        TypeKind::Bits => true,
                        _ => !is_float,
                    };
                if !fits {
                    let message = format!("this constant does not match parameter type `{formal}`");
                    self.report(Diagnostic::new(&CONSTANT_TYPE, range, message).rule());
                }
                return;
            }
            Passed::Shape(actual) => actual,
        };
        let name = self.slice(range);
        if !is_passable(actual, formal) {
            let message = format!("`{name}` is `{actual}`, but the parameter is `{formal}`");
            self.report(Diagnostic::new(&OPERAND_TYPE, range, message));
        } else if actual.align != formal.align {
            let message = format!(
                "`{name}` has an alignment of {} bytes, but parameter `{formal}` has {}",
                actual.align, formal.align
            );
            self.report(Diagnostic::new(&OPERAND_TYPE, range, message));
        }
    }
}

/// Whether the calling convention does not support a parameter. It supports all vectors and arrays, and short
/// parameters in memory whose type has no sign.
fn is_unpassable(formal: &Shape) -> bool {
    let ty = formal.ty;
    let is_short = match ty.kind() {
        TypeKind::Unsigned | TypeKind::Signed => ty.bits() <= 16,
        TypeKind::Pred => true,
        _ => false,
    };
    matches!(formal.space, Space::Reg | Space::Param) && formal.lanes == 1 && !formal.is_array() && is_short
}

/// Whether an argument of one shape can be passed to a parameter of the other, apart from alignment.
fn is_passable(actual: &Shape, formal: &Shape) -> bool {
    if actual.is_array() != formal.is_array() || actual.lanes != formal.lanes {
        return false;
    }
    let (a, f) = (actual.ty, formal.ty);
    let is_untyped = a.kind() == TypeKind::Bits || f.kind() == TypeKind::Bits;
    let is_integer = |ty: ScalarType| matches!(ty.kind(), TypeKind::Unsigned | TypeKind::Signed);
    let is_packed = a.kind() == TypeKind::Packed || f.kind() == TypeKind::Packed;
    let same_kind = a == f || (a.bits() == f.bits() && (is_packed || is_integer(a) && is_integer(f)));
    if formal.is_array() {
        return (is_untyped || same_kind) && (formal.is_open() || actual.bytes() == formal.bytes());
    }
    a.bits() == f.bits() && (is_untyped || same_kind)
}
