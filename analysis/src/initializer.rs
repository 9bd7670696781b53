//! Initial values of variables: bytes and the addresses to patch into them.

use ptx_isa::{ScalarType, TypeKind};
use ptx_syntax::{SyntaxKind, SyntaxNode};
use smol_str::SmolStr;
use text_size::TextRange;

use crate::constant::{self, Value};
use crate::declaration::{BAD_CONSTANT, BAD_SIZE, Head};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// An initial value does not fit the variable's type.
    pub INITIAL_VALUE = "E0105" "initial-value", Error, since "0.1.0"
}

declare_lint! {
    /// An initialiser has more elements than the array.
    pub TOO_MANY_VALUES = "E0106" "too-many-values", Error, since "0.1.0"
}

/// Most bytes of initial values, so that a typing slip in a dimension costs no memory.
const MAX_BYTES: u64 = 1 << 30;

/// An address in an initialiser, its variable still a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedReloc {
    /// Byte offset in the variable.
    pub at: u64,
    pub name: SmolStr,
    pub addend: i64,
    pub generic: bool,
    /// 4 or 8; 1 for a byte that a mask selected and that no neighbours complete.
    pub size: u8,
}

/// An evaluated initialiser.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InitialValue {
    pub bytes: Vec<u8>,
    pub relocs: Vec<NamedReloc>,
    /// Elements of the outermost dimension times those inside, for arrays of open size.
    pub elements: u64,
    /// The names in it, for the index of uses.
    pub names: Vec<TextRange>,
}

/// Evaluates an `INITIALIZER`. Missing values are zero.
pub fn read(
    node: &SyntaxNode,
    head: &Head,
    dimensions: &[Option<u64>],
    text: &str,
    out: &mut Vec<Diagnostic>,
) -> InitialValue {
    let mut reader = Reader { head, text, out, result: InitialValue::default() };
    let lanes = u64::from(head.lanes);
    if let Some(value) = node.first_child() {
        let mut shape: Vec<Option<u64>> = dimensions.to_vec();
        if lanes > 1 {
            shape.push(Some(lanes));
        }
        let end = reader.value(&value, &shape, 0);
        reader.result.elements = end.div_ceil(lanes);
    }
    reader.finish()
}

struct Reader<'a> {
    head: &'a Head,
    text: &'a str,
    out: &'a mut Vec<Diagnostic>,
    result: InitialValue,
}

impl Reader<'_> {
    /// Reads a value of the given shape at element `at`; gives the element behind it.
    fn value(&mut self, node: &SyntaxNode, shape: &[Option<u64>], at: u64) -> u64 {
        if node.kind() != SyntaxKind::INITIALIZER_LIST {
            self.element(node, at);
            return at
                .saturating_add(shape.iter().map(|d| d.unwrap_or(1)).fold(1u64, u64::saturating_mul).max(1));
        }
        let inner = shape.get(1..).unwrap_or_default();
        let stride = inner.iter().map(|d| d.unwrap_or(1)).fold(1u64, u64::saturating_mul).max(1);
        let limit = match shape.first() {
            Some(Some(count)) => Some(count.saturating_mul(stride)),
            Some(None) => None,
            None => Some(1),
        };
        let mut next = 0;
        for child in node.children() {
            if child.kind() == SyntaxKind::FIELD_INITIALIZER {
                continue;
            }
            if limit.is_some_and(|limit| next >= limit) {
                let message = "more values than the variable has elements";
                self.out.push(Diagnostic::new(&TOO_MANY_VALUES, child.text_range(), message));
                break;
            }
            if child.kind() == SyntaxKind::INITIALIZER_LIST {
                next = next.checked_next_multiple_of(stride).unwrap_or(u64::MAX);
                self.value(&child, inner, at.saturating_add(next));
                next = next.saturating_add(stride);
            } else {
                self.element(&child, at.saturating_add(next));
                next += 1;
            }
        }
        at.saturating_add(limit.unwrap_or(next.checked_next_multiple_of(stride).unwrap_or(next)))
    }

    fn element(&mut self, node: &SyntaxNode, at: u64) {
        let size = u64::from(self.head.ty.bytes());
        let offset = at.saturating_mul(size);
        if offset >= MAX_BYTES {
            self.out.push(Diagnostic::new(&BAD_SIZE, node.text_range(), "this value is beyond any variable"));
            return;
        }
        let value = match constant::evaluate(node, self.text) {
            Ok(value) => value,
            Err(error) => {
                self.out.push(Diagnostic::new(&BAD_CONSTANT, error.range, error.message));
                return;
            }
        };
        match value {
            Value::Address { name, addend, generic } => {
                self.result.names.push(name);
                if size < 4 {
                    self.mismatch(node, "an address");
                    return;
                }
                let name = SmolStr::new(&self.text[name]);
                self.result.relocs.push(NamedReloc {
                    at: offset,
                    name,
                    addend,
                    generic,
                    size: size.min(8) as u8,
                });
                self.store(offset, &[0; 8][..size.min(8) as usize]);
            }
            Value::AddressByte { name, addend, generic, shift } => {
                self.result.names.push(name);
                let name = SmolStr::new(&self.text[name]);
                self.address_byte(offset, NamedReloc { at: offset, name, addend, generic, size: 1 }, shift);
                self.store(offset, &[0]);
            }
            number => match encode(number, self.head.ty) {
                Some(bytes) => self.store(offset, &bytes.to_le_bytes()[..size.min(16) as usize]),
                None => {
                    let what =
                        if number.as_int().is_some() { "an integer" } else { "a floating-point number" };
                    self.mismatch(node, what);
                }
            },
        }
    }

    /// Bytes of one address in order make a whole one.
    fn address_byte(&mut self, offset: u64, byte: NamedReloc, shift: u8) {
        let position = u64::from(shift / 8);
        if let Some(last) = self.result.relocs.last_mut()
            && position > 0
            && last.at + position == offset
            && (&last.name, last.addend, last.generic) == (&byte.name, byte.addend, byte.generic)
        {
            last.size = match position {
                3 => 4,
                7 => 8,
                _ => last.size,
            };
            return;
        }
        self.result.relocs.push(byte);
    }

    fn mismatch(&mut self, node: &SyntaxNode, what: &str) {
        let ty = self.head.ty.text();
        self.out.push(Diagnostic::new(
            &INITIAL_VALUE,
            node.text_range(),
            format!("{what} cannot initialise a `.{ty}`"),
        ));
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        if self.result.bytes.len() < end {
            self.result.bytes.resize(end, 0);
        }
        self.result.bytes[offset as usize..end].copy_from_slice(bytes);
    }

    fn finish(self) -> InitialValue {
        self.result
    }
}

/// The bits of a number in a type. `None` where the kinds do not go together.
fn encode(value: Value, ty: ScalarType) -> Option<u128> {
    match (value, ty.kind()) {
        (Value::Int { value, unsigned: true }, kind) if kind != TypeKind::Float => {
            Some(u128::from(value as u64))
        }
        (Value::Int { value, .. }, kind) if kind != TypeKind::Float => Some(i128::from(value) as u128),
        (Value::F32(bits), TypeKind::Float | TypeKind::Bits) => match ty.bits() {
            64 => Some(u128::from(f64::from(f32::from_bits(bits)).to_bits())),
            32 => Some(u128::from(bits)),
            _ => None,
        },
        (Value::F64(value), TypeKind::Float | TypeKind::Bits) => match ty.bits() {
            64 => Some(u128::from(value.to_bits())),
            32 => Some(u128::from((value as f32).to_bits())),
            _ => None,
        },
        _ => None,
    }
}
