//! Skips the checks of instructions that are like an instruction which has passed all checks.
//!
//! Nearly every instruction of a program has the same name as an earlier one, and operands of the same kinds and types.
//! The findings of the checks depend only on these: the *shape* of the instruction. So a shape that has passed is not
//! checked again. This affects only the speed of a walk, never its findings.
//!
//! A shape consists of the dotted name as written and, for each operand, its punctuation and the properties of its
//! names, such as the type of a register or the state space of a variable. A constant is represented by its kind, and
//! by its text if the instruction accepts only some constants. The offset of an address is not part of the shape,
//! because no check examines it. It does not matter which register, variable or label a name means. Operands of other
//! forms have no shape; they are checked each time.

use ptx_backend::input::{AddressBase, Guard, Operand, RegId, Symbol};
use ptx_isa::{ScalarType, Signature, Values};
use ptx_syntax::SyntaxKind;
use ptx_syntax::flat::Node;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::walker::Walker;
use crate::check::VariableFacts;
use crate::source_map::Usage;

/// The maximum number of stored shapes, which take some megabytes. The largest programs have a few thousand.
const MOST: usize = 1 << 14;

/// The shapes that have passed in walks over items of one file.
#[derive(Debug)]
pub(super) struct Passed {
    /// The maximum number of shapes.
    most: usize,
    /// For each shape, how the instruction accesses its names, in text order.
    shapes: FxHashMap<Box<[u64]>, SmallVec<[Usage; 8]>>,
    /// The shape of the current instruction, with one code for each name and constant: its kind in the lowest byte,
    /// then three bytes of properties, of which the last contains flags, and four bytes of further data.
    shape: Vec<u64>,
}

impl Default for Passed {
    fn default() -> Self {
        Self { most: MOST, shapes: FxHashMap::default(), shape: Vec::new() }
    }
}

impl Passed {
    pub(super) fn remembers(&self) -> bool {
        self.most > 0
    }

    /// Stores no shapes.
    pub(super) fn of_nothing() -> Self {
        Self { most: 0, ..Self::default() }
    }
}

/// Flag: it is an array.
const ARRAY: u64 = 1 << 24;
/// Flag: it is the base of an address without an offset, or with an offset only.
const ADDRESS: u64 = 1 << 25;
const OFFSET: u64 = 1 << 26;
/// Flag: it is the first element of a vector, or of the parts of an address. The end of these has a separate code.
const VECTOR: u64 = 1 << 27;
const PARTS: u64 = 1 << 28;
/// Flag: it is the second part of a pair.
const SECOND: u64 = 1 << 29;
/// Flag: it has a sign.
const NEGATED: u64 = 1 << 30;

impl Walker<'_> {
    /// Whether an instruction has a shape that has passed. Its names are all except the first `names` ones; they get
    /// their accesses. `signature` belongs to its dotted name.
    pub(super) fn has_passed<'t>(
        &mut self,
        names: usize,
        signature: u32,
        guard: Option<Guard>,
        operands: impl Iterator<Item = (Node<'t>, Option<&'t Operand>)>,
    ) -> bool {
        let Some(()) = self.shape(signature, guard, operands) else { return false };
        let Some(accesses) = self.known.passed.shapes.get(self.known.passed.shape.as_slice()) else {
            return false;
        };
        for (name, &access) in self.map.occurrences[names..].iter_mut().zip(accesses) {
            name.access = access;
        }
        true
    }

    /// Stores that an instruction has passed, if it has a shape.
    pub(super) fn remember<'t>(
        &mut self,
        names: usize,
        signature: u32,
        guard: Option<Guard>,
        operands: impl Iterator<Item = (Node<'t>, Option<&'t Operand>)>,
    ) {
        if self.known.passed.most > 0 && self.shape(signature, guard, operands).is_some() {
            if self.known.passed.shapes.len() >= self.known.passed.most {
                self.known.passed.shapes.clear();
            }
            let accesses = self.map.occurrences[names..].iter().map(|name| name.access).collect();
            self.known.passed.shapes.insert(self.known.passed.shape.as_slice().into(), accesses);
        }
    }

    /// Computes the shape of the current instruction. `None` if it has none.
    fn shape<'t>(
        &mut self,
        signature: u32,
        guard: Option<Guard>,
        operands: impl Iterator<Item = (Node<'t>, Option<&'t Operand>)>,
    ) -> Option<()> {
        let mut shape = std::mem::take(&mut self.known.passed.shape);
        shape.clear();
        let guard = guard.map_or(0, |guard| if guard.negated { b'!' } else { b'@' });
        shape.push(u64::from(signature) << 8 | u64::from(guard));
        let limits_constants = limits_constants(&self.known.signatures[signature as usize]);
        let mut reader = Reader { walker: self, shape, limits_constants };
        let mut result = Some(());
        for (node, operand) in operands {
            result = operand.and_then(|operand| reader.operand(node, operand));
            if result.is_none() {
                break;
            }
        }
        self.known.passed.shape = reader.shape;
        result
    }
}

/// Whether the instructions with a signature accept only some constants.
fn limits_constants(signature: &Signature) -> bool {
    signature.operands.iter().any(|operand| {
        operand.values != Values::Any || operand.gated.is_some() || operand.gated_sink.is_some()
    })
}

/// Reads operands. Methods return `None` for operands without a shape.
struct Reader<'w, 'db> {
    walker: &'w Walker<'db>,
    shape: Vec<u64>,
    limits_constants: bool,
}

impl Reader<'_, '_> {
    fn operand(&mut self, node: Node<'_>, operand: &Operand) -> Option<()> {
        match (node.kind(), operand) {
            (SyntaxKind::VECTOR, Operand::Vector(elements)) => self.vector(node, elements),
            (SyntaxKind::ADDRESS, _) => self.address(node, operand),
            (SyntaxKind::PAIR, _) => {
                let mut parts = node.children();
                let (first, second) = (parts.next()?, parts.next()?);
                match operand {
                    Operand::Pair(pair) => {
                        let is_simple = |operand| matches!(operand, &(Operand::Reg(_) | Operand::Sink));
                        (is_simple(&pair.0) && is_simple(&pair.1)).then_some(())?;
                        self.simple(first, &pair.0, 0)?;
                        self.simple(second, &pair.1, SECOND)
                    }
                    // `d|_` is `d`.
                    _ => {
                        self.simple(first, operand, 0)?;
                        self.simple(second, &Operand::Sink, SECOND)
                    }
                }
            }
            _ => self.simple(node, operand, 0),
        }
    }

    fn vector(&mut self, node: Node<'_>, elements: &[Operand]) -> Option<()> {
        let mut place = VECTOR;
        for (node, element) in node.children().zip(elements) {
            self.simple(node, element, place)?;
            place = 0;
        }
        self.shape.push(b'}'.into());
        Some(())
    }

    fn address(&mut self, node: Node<'_>, operand: &Operand) -> Option<()> {
        // The text after the bracket is examined.
        (node.own_tokens().last()?.kind == SyntaxKind::R_BRACK).then_some(())?;
        let mut parts = node.children();
        match operand {
            Operand::Address(address) => {
                let (base, has_offset) = base(parts.next()?)?;
                (base.kind() == SyntaxKind::NAME_REF).then_some(())?;
                let code = match address.base {
                    AddressBase::Reg(register) => self.register(register),
                    AddressBase::Symbol(symbol) => self.variable(symbol)?,
                    AddressBase::Absolute => return None,
                };
                self.shape.push(code | ADDRESS | if has_offset { OFFSET } else { 0 });
            }
            Operand::List(operands) => {
                let (base, first) = (parts.next()?, operands.first()?);
                let code = match first {
                    _ if base.kind() != SyntaxKind::NAME_REF => return None,
                    Operand::Reg(register) => self.register(*register),
                    Operand::Symbol(symbol, _) => self.variable(*symbol)?,
                    _ => return None,
                };
                self.shape.push(code | ADDRESS | PARTS);
                for (node, operand) in parts.zip(&operands[1..]) {
                    match operand {
                        Operand::Vector(elements) if node.kind() == SyntaxKind::VECTOR => {
                            self.vector(node, elements)?;
                        }
                        _ => self.simple(node, operand, 0)?,
                    }
                }
                self.shape.push(b']'.into());
            }
            _ => return None,
        }
        Some(())
    }

    /// Adds a name or a constant. `place` contains flags of its code.
    fn simple(&mut self, node: Node<'_>, operand: &Operand, place: u64) -> Option<()> {
        let code = match (node.kind(), operand) {
            (SyntaxKind::NAME_REF, &Operand::Reg(register)) => self.register(register),
            (SyntaxKind::NAME_REF, &Operand::Symbol(symbol, _)) => self.variable(symbol)?,
            (SyntaxKind::NAME_REF, Operand::Label(_)) => b'l'.into(),
            (SyntaxKind::NAME_REF | SyntaxKind::COMPONENT, &Operand::Special(register)) => {
                u64::from(b's') | (register as u64) << 8
            }
            (SyntaxKind::PREFIX_EXPR, Operand::NotPred(_)) => register(ScalarType::Pred) | NEGATED,
            (SyntaxKind::SINK, Operand::Sink) => b'_'.into(),
            (SyntaxKind::LITERAL, _) => return self.constant(node, operand, place),
            (SyntaxKind::PREFIX_EXPR, Operand::Int(_)) => {
                let is_negative = node.own_tokens().next()?.kind == SyntaxKind::MINUS
                    && node.last_child()?.kind() == SyntaxKind::LITERAL;
                is_negative.then_some(())?;
                return self.constant(node, operand, place | NEGATED);
            }
            _ => return None,
        };
        self.shape.push(code | place);
        Some(())
    }

    fn constant(&mut self, node: Node<'_>, operand: &Operand, place: u64) -> Option<()> {
        let kind = match operand {
            Operand::Int(_) => b'i',
            Operand::F32(_) => b'f',
            Operand::F64(_) => b'd',
            _ => return None,
        };
        self.shape.push(u64::from(kind) | place);
        if self.limits_constants {
            for part in self.walker.slice(node.text_range()).as_bytes().chunks(7) {
                let written = part.iter().rfold(0, |code, &byte| code << 8 | u64::from(byte));
                self.shape.push(written << 8 | u64::from(b'#'));
            }
        }
        Some(())
    }

    fn register(&self, id: RegId) -> u64 {
        register(self.walker.names.registers[id.0 as usize].ty)
    }

    fn variable(&self, symbol: Symbol) -> Option<u64> {
        let kind = match symbol {
            Symbol::Global(_) => b'g',
            Symbol::Local(_) => b'v',
            Symbol::Param(_) => b'p',
            Symbol::Return(_) => b'q',
            Symbol::Function(_) => return None,
        };
        let &VariableFacts { space, ty, is_array, align, hides: None, .. } =
            self.walker.variables.get(&symbol)?
        else {
            return None;
        };
        let array = if is_array { ARRAY } else { 0 };
        Some(u64::from(kind) | (space as u64) << 8 | (ty as u64) << 16 | array | u64::from(align) << 32)
    }
}

const fn register(ty: ScalarType) -> u64 {
    b'r' as u64 | (ty as u64) << 8
}

/// The base of an address without the number after its `+`, and whether there is such a number.
fn base(node: Node<'_>) -> Option<(Node<'_>, bool)> {
    if node.kind() != SyntaxKind::BINARY_EXPR {
        return Some((node, false));
    }
    let mut parts = node.children();
    let (base, offset) = (parts.next()?, parts.next()?);
    let is_plain = matches!(offset.kind(), SyntaxKind::LITERAL | SyntaxKind::PREFIX_EXPR)
        && node.own_tokens().next()?.kind == SyntaxKind::PLUS;
    is_plain.then_some((base, true))
}

#[cfg(test)]
mod tests {
    use crate::db::Database;
    use crate::diagnostic::Severity;
    use crate::items::items;
    use crate::lower::{lower, walk_without_shapes};

    /// Whether some functions have no findings. The result must not depend on whether everything is checked.
    fn is_right(functions: &str) -> bool {
        let header = ".version 9.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 table[16];\n\
                      .func (.param .b32 r) callee(.param .b32 a, .param .align 8 .b8 b[16]) { ret; }\n";
        let db = Database::default();
        let file = db.add_file(format!("{header}{functions}"));
        let mut is_right = true;
        for &item in items(&db, file) {
            let lowered = lower(&db, item);
            assert_eq!(lowered, &walk_without_shapes(&db, item));
            is_right &= lowered.diagnostics.iter().all(|d| d.lint.default != Severity::Error);
        }
        is_right
    }

    fn kernel(name: &str, body: &str) -> String {
        format!(".entry {name}(.param .u64 p, .param .u32 n)\n{{\n{REGISTERS}{body}\n}}\n")
    }

    const REGISTERS: &str = ".reg .b32 %r<9>;\n.reg .f32 %f<3>;\n.reg .b64 %rd<4>, %x;\n.reg .pred %p<4>;\n";

    const RIGHT: &str = "ld.param.u64 %rd1, [p];\n@%p1 bra L1;\nmov.u32 %r1, %tid.x; // id\nL1:\n\
        setp.lt.and.s32 %p1|%p2, %r1, -1, !%p3;\nmov.b64 {%r1, _}, %x;\n\
        add.f32 %f1, %f2, 0f3F800000;\nadd.f64 %x, %x, 0d0000000000000000;\nst.global.v2.b32 [%rd1+-8], {%r1, %r2};\n\
        {\nbra L1;\n}\n.local .align 8 .b8 depot[64];\n.shared .align 8 .b8 tile[64];\nmov.u32 %r3, tile;\n\
        ld.global.u8 %r4, [table+3];\n\
        { .param .b32 a0; .param .align 8 .b8 a1[16]; .param .b32 r0;\nst.param.b32 [a0+0], %r1;\n\
        call.uni (r0),\ncallee,\n(\na0,\na1\n);\nld.param.b32 %r5, [r0+0]; }\n\
        shf.l.wrap.b32 %r1, %r2, %r3, 5;\nbar.sync 0;\nret;";

    #[test]
    fn what_passes_once_passes_again() {
        assert!(is_right(&kernel("one", RIGHT)));
        assert!(is_right(&kernel("one", &format!("{RIGHT}\n{{ {} }}", RIGHT.replace("L1", "L2")))));
        assert!(is_right(&(kernel("one", RIGHT) + &kernel("two", RIGHT))));
    }

    /// Each of these lines differs from a line that has passed in one respect.
    #[test]
    fn what_is_wrong_is_found() {
        for wrong in [
            "add.f32 %f1, %f2, %rd1;",
            "add.f32 %f1, %f3, 0f3F800000;",
            "@%r1 bra L1;",
            "bra L2;",
            "ld.param.u64 %rd1, [q];",
            "add.f32 %f1, %f2; mov.u32 %r1, %tid.q;",
            "mov.u32 %r1, %r2.x;",
            "ld.global.u8 %r4, [tile+3];",
            "bar.sync 99;",
            "@%q ret;",
            "o %r7+d; mov.u32 %r6, %r7;",
            "o %x+d; mov.b64 %rd3, %x;",
            "st.global.v2.b32 [%rd1+-8], {%r1, %r2, %r3};",
            "st.global.v2.b32 [%f1+-8], {%r1, %r2};",
            "add.f32 %f1, %f2, 0f3F80000;",
            "add.f64 %x, %x, 99999999999999999999;",
            "mov.u32 %r1,; mov.u32 %r2, %r1;",
            "mov.u32 %r1, %r2\nmov.u32 %r2, %r1;",
            "@ ret;",
            "{ .param .b64 a0; .param .align 8 .b8 a1[16]; .param .b32 r0;\n\
             call.uni (r0),\ncallee,\n(\na0,\na1\n); }",
            "{ .param .b32 a0; .param .align 8 .b8 a1[8]; .param .b32 r0;\n\
             call.uni (r0),\ncallee,\n(\na0,\na1\n); }",
        ] {
            assert!(!is_right(&kernel("one", &format!("{RIGHT}\n{wrong}"))), "{wrong}");
            assert!(!is_right(&kernel("one", &format!("{wrong}\n{RIGHT}\n{wrong}"))), "{wrong}");
        }
    }
}
