//! Initializers of variables: bytes, and the addresses to write into them.

use ptx_backend::input::Sampling;
use ptx_isa::{ScalarType, TypeKind};
use ptx_syntax::SyntaxKind;
use ptx_syntax::flat::Node;
use smol_str::SmolStr;
use text_size::TextRange;

mod opaque;

use crate::constant::{self, Value};
use crate::declaration::{BAD_CONSTANT, BAD_SIZE, Head};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// An initializer does not match the type of the variable.
    pub INITIAL_VALUE = "E0105" "initial-value", Error, since "0.1.0"
}

declare_lint! {
    /// An initializer has more elements than the array.
    pub TOO_MANY_VALUES = "E0106" "too-many-values", Error, since "0.1.0"
}

/// The maximum size of an initializer in bytes, so that a typing mistake in a dimension takes no memory.
const MAX_BYTES: u64 = 1 << 30;

/// An address in an initializer; its variable is still a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedReloc {
    /// Byte offset in the variable.
    pub at: u64,
    pub name: SmolStr,
    pub addend: i64,
    pub generic: bool,
    /// 4 or 8; 1 for a byte that a mask selected.
    pub size: u8,
    /// Which byte the mask selected, counted from the lowest.
    pub byte: u8,
}

/// An evaluated initializer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InitialValue {
    pub bytes: Vec<u8>,
    pub relocs: Vec<NamedReloc>,
    pub sampling: Sampling,
    /// The number of elements of the outermost dimension times those inside, for arrays of open size.
    pub elements: u64,
    /// The names in it.
    pub names: Vec<NameUse>,
}

/// A name whose address an initializer takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameUse {
    pub range: TextRange,
    /// `generic(name)`
    pub generic: bool,
    /// `0xFF(name)`
    pub masked: bool,
    pub addend: i64,
}

/// Evaluates the `INITIALIZER` of a variable. Missing values are zero.
pub fn read(
    node: Node<'_>,
    head: &Head,
    dimensions: &[Option<u64>],
    text: &str,
    out: &mut Findings,
) -> InitialValue {
    let mut reader = Reader { head, text, out, result: InitialValue::default() };
    let lanes = u64::from(head.lanes);
    if let Some(value) = node.first_child() {
        if head.ty == ScalarType::F16 {
            let message = "a `.f16` variable cannot have an initializer; declare it as `.b16`";
            reader.out.push(Diagnostic::new(&INITIAL_VALUE, value.text_range(), message));
            return reader.result;
        }
        // `[0]` is open like `[]`.
        let shape: Vec<Option<u64>> = dimensions.iter().map(|d| d.filter(|&count| count > 0)).collect();
        let end = reader.value(value, &shape, 0);
        reader.result.elements = end.div_ceil(lanes);
    }
    reader.result
}

struct Reader<'a> {
    head: &'a Head,
    text: &'a str,
    out: &'a mut Findings,
    result: InitialValue,
}

impl Reader<'_> {
    /// Reads a value of the given shape at scalar element `at`; returns the index of the element after it.
    fn value(&mut self, node: Node<'_>, shape: &[Option<u64>], at: u64) -> u64 {
        let is_list = node.kind() == SyntaxKind::INITIALIZER_LIST;
        let lanes = u64::from(self.head.lanes);
        let Some((&count, inner)) = shape.split_first() else {
            match (is_list, lanes) {
                (false, 1) => self.element(node, at),
                (false, _) => self.lacks_braces(node, "vector"),
                (true, 1) => self.fields(node),
                (true, _) => self.vector(node, at),
            }
            return at.saturating_add(lanes);
        };
        if !is_list {
            self.lacks_braces(node, "array");
            return at;
        }
        let stride = inner.iter().map(|d| d.unwrap_or(1)).fold(lanes, u64::saturating_mul);
        let mut next = at;
        for (index, child) in node.children().enumerate() {
            if count.is_some_and(|count| index as u64 >= count) {
                let message = "too many values: the array has fewer elements";
                self.out.push(Diagnostic::new(&TOO_MANY_VALUES, child.text_range(), message).rule());
                break;
            }
            self.value(child, inner, next);
            next = next.saturating_add(stride);
        }
        if count.is_none() && next == at {
            self.mismatch(node, "an empty list");
        }
        count.map_or(next, |count| at.saturating_add(count.saturating_mul(stride)))
    }

    /// Reads all lanes of a vector.
    fn vector(&mut self, node: Node<'_>, at: u64) {
        let lanes = usize::from(self.head.lanes);
        if node.children().count() != lanes {
            let message = format!("expected {lanes} values for an element of type `.v{lanes}`");
            self.out.push(Diagnostic::new(&INITIAL_VALUE, node.text_range(), message));
            return;
        }
        for (lane, child) in node.children().enumerate() {
            match child.kind() {
                SyntaxKind::INITIALIZER_LIST => self.mismatch(child, "a list"),
                _ => self.element(child, at.saturating_add(lane as u64)),
            }
        }
    }

    /// Checks braces around the value of a scalar: only textures, samplers and surfaces have fields.
    fn fields(&mut self, node: Node<'_>) {
        if self.head.ty == ScalarType::F16x2 {
            return;
        }
        if self.head.ty.kind() != TypeKind::Opaque {
            self.mismatch(node, "a list");
            return;
        }
        for child in node.children() {
            if child.kind() == SyntaxKind::FIELD_INITIALIZER {
                opaque::field(child, self.head.ty, self.text, &mut self.result.sampling, self.out);
            } else {
                let message = "expected `field = value` in the initializer of a texture, sampler or surface";
                self.out.push(Diagnostic::new(&INITIAL_VALUE, child.text_range(), message));
            }
        }
    }

    fn element(&mut self, node: Node<'_>, at: u64) {
        let size = u64::from(self.head.ty.bytes());
        let offset = at.saturating_mul(size);
        if offset >= MAX_BYTES {
            self.out.push(Diagnostic::new(
                &BAD_SIZE,
                node.text_range(),
                "initializer exceeds the maximum size of a variable",
            ));
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
                if !is_address(node) {
                    let message = "expected `name` or `generic(name)`, optionally plus a constant";
                    self.out.push(Diagnostic::new(&BAD_CONSTANT, node.text_range(), message));
                }
                self.result.names.push(NameUse { range: name, generic, masked: false, addend });
                if !matches!(self.head.ty, ScalarType::U32 | ScalarType::U64) {
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
                    byte: 0,
                });
                self.store(offset, &[0; 8][..size.min(8) as usize]);
            }
            Value::AddressByte { name, addend, generic, shift } => {
                self.result.names.push(NameUse { range: name, generic, masked: true, addend: 0 });
                if !matches!(self.head.ty, ScalarType::U8 | ScalarType::U32 | ScalarType::U64) {
                    self.mismatch(node, "a byte of an address");
                    return;
                }
                let name = SmolStr::new(&self.text[name]);
                let byte = shift / 8;
                self.result.relocs.push(NamedReloc { at: offset, name, addend, generic, size: 1, byte });
                self.store(offset, &[0]);
            }
            number => match encode(number, self.head.ty) {
                Some(bytes) => self.store(offset, &bytes.to_le_bytes()[..size.min(16) as usize]),
                None => {
                    let what =
                        if number.as_int().is_some() { "an integer" } else { "a floating-point constant" };
                    self.mismatch(node, what);
                }
            },
        }
    }

    fn mismatch(&mut self, node: Node<'_>, what: &str) {
        let ty = self.head.ty.text();
        self.out.push(
            Diagnostic::new(&INITIAL_VALUE, node.text_range(), format!("{what} cannot initialize a `.{ty}`"))
                .rule(),
        );
    }

    fn lacks_braces(&mut self, node: Node<'_>, what: &str) {
        let message = format!("expected the values of the {what} in braces, found a single value");
        self.out.push(Diagnostic::new(&INITIAL_VALUE, node.text_range(), message).rule());
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        if self.result.bytes.len() < end {
            self.result.bytes.resize(end, 0);
        }
        self.result.bytes[offset as usize..end].copy_from_slice(bytes);
    }
}

/// Whether a node is `name` or `generic(name)`, optionally plus a constant.
fn is_address(node: Node<'_>) -> bool {
    match node.kind() {
        SyntaxKind::NAME_REF => true,
        SyntaxKind::CALL_EXPR => node.last_child().is_some_and(|name| name.kind() == SyntaxKind::NAME_REF),
        SyntaxKind::BINARY_EXPR => {
            let is_sum = node.tokens(SyntaxKind::PLUS).next().is_some();
            // The constant after the first `+` may itself be a difference.
            node.first_child()
                .is_some_and(|left| is_address(left) && (is_sum || left.kind() == SyntaxKind::BINARY_EXPR))
        }
        _ => false,
    }
}

/// The bits of a number in a type. `None` if the kinds do not match.
pub(crate) fn encode(value: Value, ty: ScalarType) -> Option<u128> {
    match (value, ty.kind()) {
        (Value::Int { value, unsigned: true }, TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed) => {
            Some(u128::from(value as u64))
        }
        (Value::Int { value, .. }, TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed) => {
            Some(i128::from(value) as u128)
        }
        // Untyped memory takes the bits as written.
        (Value::F32(bits), TypeKind::Bits) => Some(u128::from(bits)),
        (Value::F64(value), TypeKind::Bits) if ty.bits() == 32 => Some(u128::from((value as f32).to_bits())),
        (Value::F64(value), TypeKind::Bits) => Some(u128::from(value.to_bits())),
        (Value::F32(bits), TypeKind::Float) => match ty.bits() {
            64 => Some(u128::from(f64::from(f32::from_bits(bits)).to_bits())),
            32 => Some(u128::from(bits)),
            _ => None,
        },
        (Value::F64(value), TypeKind::Float) => match ty.bits() {
            64 => Some(u128::from(value.to_bits())),
            32 => Some(u128::from((value as f32).to_bits())),
            _ => None,
        },
        _ => None,
    }
}
