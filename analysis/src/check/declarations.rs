//! Which properties the declaration of a variable, a register or a parameter may combine.
//!
//! These checks depend only on the declaration and its position. [`crate::module`] and the walk check names and other
//! declarations.

use ptx_backend::input::Linkage;
use ptx_isa::{Gate, PtxVersion, ScalarType, Space, TypeKind};
use ptx_syntax::SyntaxKind;
use ptx_syntax::flat::Node;
use text_size::TextRange;

use super::Gates;
use super::textures::TEXTURE_MODE;
use crate::declaration::{BAD_DECLARATION, BAD_SIZE, Declarator, Head, is_unwritten, storage_note};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings, Lint};
use crate::externals;
use crate::heading::Parameter;
use crate::initializer::INITIAL_VALUE;
use crate::module::Header;
use crate::text::with_line;

declare_lint! {
    /// A variable or parameter is declared in a place or state space that does not allow it.
    pub(crate) MISPLACED = "E0109" "misplaced-declaration", Error, since "0.1.0"
}

declare_lint! {
    /// A parameter has a form that is not allowed in this kind of function.
    pub(crate) BAD_PARAMETER = "E0110" "bad-parameter", Error, since "0.1.0"
}

declare_lint! {
    /// The syntax was removed from PTX.
    pub(crate) REMOVED_FORM = "E0112" "removed-form", Error, since "0.1.0"
}

/// The position of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Site {
    Module,
    Body,
    /// A parameter of a kernel.
    Kernel,
    /// A parameter of a device function.
    Function,
    Result,
    /// A parameter in a `.callprototype`.
    Prototype,
    PrototypeResult,
}

impl Site {
    const fn is_parameter(self) -> bool {
        !matches!(self, Self::Module | Self::Body)
    }

    const fn is_result(self) -> bool {
        matches!(self, Self::Result | Self::PrototypeResult)
    }

    const fn is_prototype(self) -> bool {
        matches!(self, Self::Prototype | Self::PrototypeResult)
    }
}

/// Types that only instructions have, such as `.e4m3x2`.
const fn is_instruction_type(ty: ScalarType) -> bool {
    use ScalarType as T;
    matches!(ty, T::E4m3 | T::E5m2) || matches!(ty.kind(), TypeKind::Packed) && !matches!(ty, T::F16x2)
}

/// One declared name with the head of its declaration.
struct Declared<'a> {
    site: Site,
    head: &'a Head,
    declarator: &'a Declarator<'a>,
    name: TextRange,
    text: &'a str,
    is_array: bool,
    /// The first dimension is open or zero.
    is_incomplete: bool,
}

impl Declared<'_> {
    fn is_opaque(&self) -> bool {
        self.head.ty.kind() == TypeKind::Opaque
    }

    /// Whether it is neither an array nor a vector.
    fn is_scalar(&self) -> bool {
        !self.is_array && self.head.lanes == 1
    }

    fn name(&self) -> &str {
        &self.text[self.name]
    }

    fn report(&self, out: &mut Findings, lint: &'static Lint, message: String) {
        out.push(Diagnostic::new(lint, self.name, message));
    }
}

/// Reports all errors of a declaration.
pub(crate) fn check(
    site: Site,
    head: &Head,
    declarators: &[Declarator<'_>],
    (header, gates): (&Header, &Gates),
    text: &str,
    out: &mut Findings,
) {
    if let Some(range) = head.words.ty
        && is_unwritten(head.ty, range, out)
    {
        return;
    }
    words(site, head, gates, text, out);
    // Vectors of these types, and arrays of 128 bits, are accepted everywhere.
    let is_scalar = declarators.iter().any(|d| d.dimensions.is_empty());
    if head.lanes == 1 && (is_scalar || head.ty == ScalarType::F16x2) {
        type_gate(head, gates, out);
    }
    for declarator in declarators {
        let Some(name) = declarator.name else { continue };
        let declared = Declared {
            site,
            head,
            declarator,
            name,
            text,
            is_array: !declarator.dimensions.is_empty(),
            is_incomplete: matches!(declarator.dimensions.first(), Some(None | Some(0))),
        };
        if declarator.dimensions.iter().skip(1).any(|&size| size == Some(0)) {
            declared.report(out, &BAD_SIZE, "only the first dimension of an array can be omitted".to_owned());
        }
        types(&declared, header, out);
        if gates.version < BANKS_REMOVED {
            place_in_bank(&declared, out);
        }
        if site.is_parameter() {
            parameter(&declared, out);
        } else {
            variable(&declared, header, out);
        }
    }
}

/// Checks the words of the head, independently of the declared names.
fn words(site: Site, head: &Head, gates: &Gates, text: &str, out: &mut Findings) {
    let words = &head.words;
    let mut gate = |gate: Gate, word: &str, range: Option<TextRange>| {
        out.extend(range.and_then(|range| gates.check(&gate, word, range, "")));
    };
    match head.linkage {
        Linkage::Weak => gate(Gate::since(3, 1, 20), ".weak", words.linkage),
        Linkage::Common => gate(Gate::since(5, 0, 20), ".common", words.linkage),
        _ => {}
    }
    gate(Gate::since(4, 0, 30), ".attribute(.managed)", words.managed);
    gate(Gate::since(8, 0, 90), ".attribute(.unified)", words.unified);
    gate(Gate::since(2, 2, 10), ".ptr", words.pointer);
    for (range, word) in [(words.managed, ".managed"), (words.unified, ".unified")] {
        if let Some(range) = range
            && head.space != Space::Global
        {
            let message = format!("`{word}` applies only to `.global` variables");
            out.push(Diagnostic::new(&MISPLACED, range, message));
        }
    }
    if let Some(range) = words.unified {
        out.push(externals::report(
            range,
            "`.unified` variables are shared between modules and require separate compilation".to_owned(),
        ));
    }
    if let Some(range) = words.pointer
        && matches!(site, Site::Function | Site::Result)
    {
        let message = "`.ptr` applies only to kernel parameters";
        out.push(Diagnostic::new(&MISPLACED, range, message).fix(
            "remove `.ptr`",
            with_line(text, range),
            "",
        ));
    }
    if let Some(range) = words.bank {
        bank(range, text, gates, out);
    }
    if let Some(range) = words.texture {
        if gates.version >= PtxVersion::new(1, 5) {
            let message = "the `.tex` state space was removed in PTX ISA 1.5";
            let diagnostic = Diagnostic::new(&REMOVED_FORM, range, message);
            out.push(diagnostic.note("declare the texture as `.global .texref name;`"));
        }
        if head.ty != ScalarType::TexRef {
            let message =
                format!("expected `.u32` or `.u64` for a `.tex` variable, found `.{}`", head.ty.text());
            out.push(Diagnostic::new(&BAD_DECLARATION, words.ty.unwrap_or(range), message));
        }
    }
}

/// The number of constant banks that a name such as `.const[2]` can state.
const BANKS: u64 = 11;
const BANKS_REMOVED: PtxVersion = PtxVersion::new(2, 2);

/// Checks the bank in `.const[2]`. Bank 0 is the bank of all variables. The others are only for `.extern` arrays
/// without a size.
pub(crate) fn bank(range: TextRange, text: &str, gates: &Gates, out: &mut Findings) {
    if gates.version >= BANKS_REMOVED {
        let message = "constant banks were removed in PTX ISA 2.2";
        out.push(Diagnostic::new(&REMOVED_FORM, range, message).fix("remove the bank", range, ""));
        return;
    }
    match bank_number(range, text) {
        Some(0) => {}
        Some(1..BANKS) => {
            let what = "a constant bank other than 0".to_owned();
            out.extend(gates.check_phrase(&Gate::since(1, 5, 10), what, range));
        }
        _ => {
            let message =
                format!("expected a constant bank from `[0]` to `[{}]`, found `{}`", BANKS - 1, &text[range]);
            out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
        }
    }
}

/// Checks that a variable may be in the bank that its declaration states.
fn place_in_bank(d: &Declared<'_>, out: &mut Findings) {
    let bank = d.head.words.bank.and_then(|range| bank_number(range, d.text));
    let is_open_extern = d.head.linkage == Linkage::Extern && d.is_incomplete;
    if bank.is_some_and(|bank| bank != 0) && !is_open_extern {
        let message =
            format!("`{}` must be an `.extern` array without a size to be in a bank other than 0", d.name());
        d.report(out, &BAD_DECLARATION, message);
    }
}

/// The number of a bank such as `[2]`. There must be no blanks and no leading zeros.
fn bank_number(range: TextRange, text: &str) -> Option<u64> {
    let number = text[range].strip_prefix('[')?.strip_suffix(']')?;
    number.parse().ok().filter(|value: &u64| value.to_string() == number)
}

/// Checks types that were introduced after PTX ISA 1.0.
fn type_gate(head: &Head, gates: &Gates, out: &mut Findings) {
    let (gate, word) = match head.ty {
        ScalarType::B128 => (Gate::since(8, 3, 70), ".b128"),
        ScalarType::F16x2 => (Gate::since(4, 2, 53), ".f16x2"),
        _ => return,
    };
    out.extend(head.words.ty.and_then(|range| gates.check(&gate, word, range, "")));
}

/// The first version that requires registers and `.local` variables to be declared in functions.
const CALLING_CONVENTION: PtxVersion = PtxVersion::new(3, 0);

/// Checks the type: its possible elements, and where its values can be stored.
fn types(d: &Declared<'_>, header: &Header, out: &mut Findings) {
    let head = d.head;
    let ty = head.ty.text();
    // Arrays of these types are accepted as bytes where no instruction accesses the elements.
    let is_shared = d.site == Site::Module && head.space == Space::Shared && !d.is_incomplete;
    let is_bytes =
        d.is_array && (matches!(d.site, Site::Function | Site::Result) || is_shared) || d.site.is_prototype();
    if (is_instruction_type(head.ty) && !is_bytes) || (d.is_opaque() && head.lanes > 1) {
        let message = if head.lanes > 1 {
            format!("`.{ty}` cannot be the element of a vector")
        } else {
            format!("`.{ty}` is an instruction type and cannot be used in a declaration")
        };
        let range = head.words.ty.unwrap_or(d.name);
        let diagnostic = Diagnostic::new(&BAD_DECLARATION, range, message);
        out.push(if d.is_opaque() { diagnostic } else { diagnostic.note(storage_note(head.ty)) });
    }
    if u64::from(head.lanes) * u64::from(head.ty.bits()) > 128 {
        let message = format!("`.v{} .{ty}` exceeds the maximum vector size of 128 bits", head.lanes);
        out.push(Diagnostic::new(&BAD_DECLARATION, head.words.lanes.unwrap_or(d.name), message));
    }
    if head.ty == ScalarType::Pred && !d.site.is_prototype() {
        if !d.is_scalar() {
            d.report(out, &BAD_DECLARATION, "a predicate cannot be an array or a vector".to_owned());
        } else if head.space != Space::Reg {
            let message = format!("predicate `{}` must be declared in `.reg`", d.name());
            d.report(out, &MISPLACED, message);
        }
    }
    if head.space == Space::Reg && (d.is_array || d.is_opaque()) {
        let what = if d.is_array { "an array".to_owned() } else { format!("a `.{ty}`") };
        let message = format!("`{}` is {what} and cannot be a register", d.name());
        let note = "`name<4>` declares four registers";
        out.push(Diagnostic::new(&MISPLACED, d.name, message).note(note));
    }
    if head.space == Space::Param && !d.site.is_prototype() {
        let opaque = d.is_opaque() && d.is_scalar() && d.site != Site::Kernel && d.site != Site::Body;
        let packed = head.ty == ScalarType::F16x2 && d.is_scalar();
        if head.lanes > 1 && !d.is_array || packed || opaque {
            let what = if head.lanes > 1 { "a vector".to_owned() } else { format!("a `.{ty}`") };
            let message = format!("`{}` is {what} and cannot be a `.param`", d.name());
            let note = match head.words.lanes {
                Some(_) => format!("pass it as `.align {} .b8 name[{0}]`", head.element_bytes()),
                None => storage_note(head.ty),
            };
            let diagnostic = Diagnostic::new(&MISPLACED, d.name, message);
            out.push(if opaque { diagnostic } else { diagnostic.note(note) });
        }
    }
    opaque(d, header, out);
}

fn opaque_in_body(ty: ScalarType) -> String {
    format!("`.{}` must be declared at module scope or as a kernel parameter", ty.text())
}

/// Reports a declaration in a body without names.
pub(crate) fn unnamed(node: Node<'_>, text: &str, out: &mut Findings) {
    for word in node.tokens(SyntaxKind::DOT_WORD) {
        let ty = text[word].strip_prefix('.').and_then(ScalarType::parse);
        if let Some(ty) = ty.filter(|ty| ty.kind() == TypeKind::Opaque) {
            out.push(Diagnostic::new(&MISPLACED, word, opaque_in_body(ty)));
        }
    }
}

/// Checks textures, samplers and surfaces.
fn opaque(d: &Declared<'_>, header: &Header, out: &mut Findings) {
    if !d.is_opaque() {
        return;
    }
    let ty = d.head.ty.text();
    if d.site == Site::Body {
        d.report(out, &MISPLACED, opaque_in_body(d.head.ty));
        return;
    }
    if d.site == Site::Module && d.is_scalar() && d.head.space != Space::Global {
        d.report(out, &MISPLACED, format!("`.{ty}` must be declared in `.global`"));
    }
    if d.head.linkage == Linkage::Common && d.is_scalar() {
        d.report(out, &BAD_DECLARATION, format!("`.{ty}` cannot be `.common`"));
    }
    let is_independent = header.target.options.iter().any(|option| option == "texmode_independent");
    if d.head.ty == ScalarType::SamplerRef && d.is_scalar() && !is_independent && !d.site.is_prototype() {
        let message = "`.samplerref` variables require independent texture mode";
        let note = "write `.target …, texmode_independent`";
        out.push(Diagnostic::new(&TEXTURE_MODE, d.name, message).note(note));
    }
}

/// Checks variables and registers of modules and bodies.
fn variable(d: &Declared<'_>, header: &Header, out: &mut Findings) {
    let head = d.head;
    let is_extern = head.linkage == Linkage::Extern;
    if head.linkage == Linkage::Common && head.space != Space::Global {
        d.report(out, &MISPLACED, "`.common` variables must be in `.global`".to_owned());
    }
    if d.site == Site::Body
        && let Some(range) = head.words.linkage
    {
        let message =
            "linkage directives are not allowed inside a function; declare the variable at module scope";
        out.push(Diagnostic::new(&MISPLACED, range, message));
    }
    let is_old = header.version_or_newest() < CALLING_CONVENTION;
    let is_local = matches!(head.space, Space::Reg | Space::Local) && !is_old || head.space == Space::Param;
    if d.site == Site::Module && is_local {
        let what = match head.space {
            Space::Reg => "registers",
            Space::Local => "`.local` variables",
            _ => "`.param` variables",
        };
        let message =
            format!("{what} must be declared inside a function, but `{}` is at module scope", d.name());
        d.report(out, &MISPLACED, message);
    }
    if d.is_incomplete && !is_extern && d.declarator.initializer.is_none() {
        let message = format!("array `{}` has no size; only `.extern` arrays can omit it", d.name());
        d.report(out, &BAD_SIZE, message);
    }
    if let Some(value) = d.declarator.initializer {
        let range = value.text_range();
        let mut report = |message: String| out.push(Diagnostic::new(&INITIAL_VALUE, range, message));
        if !matches!(head.space, Space::Global | Space::Const) {
            report(format!("a `.{}` variable cannot have an initializer", head.space.text()));
        } else if is_extern {
            report(format!(
                "`{}` is `.extern` and cannot have an initializer; only its definition can",
                d.name()
            ));
        }
        if d.declarator.count.is_some() {
            report("a parameterized name such as `x<4>` cannot have an initializer".to_owned());
        }
    }
    if d.declarator.count.is_some() && d.is_array {
        d.report(out, &BAD_DECLARATION, "a parameterized name such as `x<4>` cannot be an array".to_owned());
    }
}

/// The largest alignment that the calling convention supports.
const MAX_PARAMETER_ALIGNMENT: u32 = 128;

/// Checks parameters and results.
fn parameter(d: &Declared<'_>, out: &mut Findings) {
    let head = d.head;
    let name = d.name();
    let space = head.space.text();
    match d.site {
        Site::Kernel if head.space != Space::Param => {
            d.report(
                out,
                &BAD_PARAMETER,
                format!("kernel parameter `{name}` must be in `.param`, not `.{space}`"),
            );
        }
        Site::Kernel => {}
        _ if !matches!(head.space, Space::Param | Space::Reg) => {
            let message =
                format!("function parameter `{name}` must be in `.param` or `.reg`, not `.{space}`");
            d.report(out, &BAD_PARAMETER, message);
        }
        _ => {}
    }
    if d.is_incomplete && (d.site == Site::Kernel || d.site.is_result()) {
        let what = if d.site == Site::Kernel { "a kernel parameter" } else { "a return parameter" };
        d.report(out, &BAD_PARAMETER, format!("{what} must have a size, but array `{name}` has none"));
    }
    if d.declarator.dimensions.len() > 1 {
        d.report(out, &BAD_PARAMETER, "a parameter can have at most one dimension".to_owned());
    }
    if d.declarator.count.is_some() {
        d.report(out, &BAD_PARAMETER, "a parameter cannot be a range of names".to_owned());
    }
    if let Some(value) = d.declarator.initializer {
        out.push(Diagnostic::new(
            &BAD_PARAMETER,
            value.text_range(),
            "a parameter cannot have an initializer",
        ));
    }
    if matches!(d.site, Site::Function | Site::Result) {
        if name == "_" {
            d.report(out, &BAD_PARAMETER, "a function parameter must have a name".to_owned());
        }
        if head.space == Space::Param
            && let Some(align) = head.align
            && align > MAX_PARAMETER_ALIGNMENT
        {
            let message =
                format!("parameter alignment is limited to {MAX_PARAMETER_ALIGNMENT} bytes, found {align}");
            out.push(Diagnostic::new(&BAD_SIZE, head.words.align.unwrap_or(d.name), message));
        }
    }
}

/// Checks the parameters of a list together.
pub(crate) fn check_list(site: Site, parameters: &[Parameter<'_>], gates: &Gates, out: &mut Findings) {
    let is_open = |d: &Declarator<'_>| matches!(d.dimensions.first(), Some(None | Some(0)));
    let says_something = match site.is_result() {
        true => parameters.len() > 1,
        false => parameters.iter().any(|p| is_open(&p.declarator)),
    };
    if !says_something {
        return;
    }
    let declared: Vec<(&Head, &Declarator<'_>, TextRange)> =
        parameters.iter().filter_map(|p| Some((&p.head, &p.declarator, p.name()?))).collect();
    if site.is_result() && declared.len() > 1 {
        let in_memory = declared.iter().find(|(head, ..)| head.space == Space::Param);
        if let Some(&(_, _, range)) = in_memory {
            let message = "a function with several return parameters must return them in `.reg`";
            out.push(Diagnostic::new(&BAD_PARAMETER, range, message));
        }
    }
    if site.is_result() {
        return;
    }
    for (index, (_, declarator, range)) in declared.iter().enumerate() {
        if !is_open(declarator) {
            continue;
        }
        if index + 1 < declared.len() {
            let message = "only the last parameter can be an array without a size";
            out.push(Diagnostic::new(&BAD_PARAMETER, *range, message));
        }
        out.extend(gates.check(&Gate::since(6, 0, 30), "[]", *range, ""));
    }
}
