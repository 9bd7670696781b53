//! The module as a whole: header, symbols, and the agreement of declarations.
//!
//! [`module`] is one value for the whole file, built from the declarations of all items. The checks of a body do not
//! read it as a whole. They ask [`header`] and [`global`] for one name at a time, so a changed declaration affects only
//! the items that mention its name.

#![expect(unused_lifetimes, reason = "interned structs need the lifetime and use it in generated code")]

use ptx_backend::input::{Env, Init, InitReloc, Linkage, Signature, Symbol, Variable};
use ptx_isa::{PtxVersion, ScalarType, Sm, Space};
use ptx_syntax::ItemKind;
use ptx_syntax::flat::FlatTree;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::Arc;

mod directives;
mod linking;

use crate::db::{Db, Options, SourceFile};
use crate::declaration::Shape;
use crate::declare_lint;
use crate::diagnostic::Lint;
use crate::externals::{self, IGNORED_EXTERN, SEPARATE_COMPILATION};
use crate::initializer::NamedReloc;
use crate::items::{Item, Part, parts};
use crate::signature::{
    FunctionDecl, ItemDecl, RegisterDecl, Shapes, TargetDecl, VariableDecl, item_decl, read_decl,
};

declare_lint! {
    /// The module does not start with a valid `.version`.
    pub MISSING_VERSION = "E0104" "missing-version", Error, since "0.1.0"
}

declare_lint! {
    /// The module has no valid `.target` after `.version`.
    pub MISSING_TARGET = "E0107" "missing-target", Error, since "0.1.0"
}

declare_lint! {
    /// A name is defined more than once in the same scope.
    pub REDEFINITION = "E0201" "redefinition", Error, since "0.1.0"
}

declare_lint! {
    /// Two declarations of a function or variable have different types.
    pub PROTOTYPE_MISMATCH = "E0205" "prototype-mismatch", Error, since "0.1.0"
}

declare_lint! {
    /// An `.alias` is invalid.
    pub BAD_ALIAS = "E0206" "bad-alias", Error, since "0.1.0"
}

declare_lint! {
    /// A function is declared but not defined.
    pub UNDEFINED_FUNCTION = "E0207" "undefined-function", Error, since "0.1.0"
}

declare_lint! {
    /// The instruction requires a newer `.version`.
    pub(crate) VERSION_GATE = "E0401" "version-gate", Error, since "0.1.0"
}

declare_lint! {
    /// The PTX ISA version or the target does not exist, or the two do not match.
    pub UNKNOWN_TARGET = "E0403" "unknown-target", Error, since "0.1.0"
}

declare_lint! {
    /// The name of the target is deprecated or has an ignored suffix.
    pub TARGET_NAME = "W0520" "target-name", Warning, since "0.1.0"
}

declare_lint! {
    /// Code for the target of the module does not run on the selected architecture.
    pub ARCHITECTURE = "E0405" "architecture", Error, since "0.1.0"
}

declare_lint! {
    /// 32-bit addresses are no longer supported.
    pub ADDRESS_SIZE = "E0404" "address-size", Error, since "0.1.0"
}

/// The header directives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    pub version: Option<PtxVersion>,
    pub target: TargetDecl,
    /// 64 or 32. It is 64 if the file does not state it, because assemblers no longer support 32.
    /// The number that `.address_size` states.
    pub stated_address_size: Option<u8>,
}

impl Header {
    /// The language version, or the newest one if the version is missing.
    pub fn version_or_newest(&self) -> PtxVersion {
        self.version.unwrap_or(PtxVersion::NEWEST)
    }

    /// The number of bits of an address.
    pub fn address_size(&self) -> u8 {
        self.stated_address_size.unwrap_or(64)
    }
}

/// Whether the module is compiled for debuggers, whatever the options are: `.target …, debug`.
pub fn is_for_debuggers(db: &dyn Db, file: SourceFile) -> bool {
    header(db, file).target.options.iter().any(|option| option == "debug")
}

/// If a header directive appears several times, the first one counts.
#[salsa::tracked]
pub fn header(db: &dyn Db, file: SourceFile) -> Header {
    let mut header = Header { version: None, target: TargetDecl::default(), stated_address_size: None };
    let mut target = None;
    for part in parts(db, file) {
        // Header directives are at the start of the file. Reading every item of a large file would be slow.
        if !may_precede_header(part.kind(db)) {
            break;
        }
        match item_decl(db, part.item(db)) {
            ItemDecl::Version(version) => header.version = header.version.or(*version),
            ItemDecl::Target(found) => {
                target.get_or_insert_with(|| found.clone());
            }
            ItemDecl::AddressSize(size) => {
                header.stated_address_size = header.stated_address_size.or(*size);
            }
            _ => {}
        }
    }
    header.target = target.unwrap_or_default();
    header
}

fn may_precede_header(kind: ItemKind) -> bool {
    !kind.is_function() && kind != ItemKind::Variable
}

/// The effective target: the one that the options select, or else the file's own.
#[salsa::tracked(returns(copy))]
pub fn effective_target(db: &dyn Db, file: SourceFile) -> Option<Sm> {
    Options::get(db).target(db).or(header(db, file).target.sm)
}

/// The architecture that code is generated for: the one that the options select, or else the effective target.
#[salsa::tracked(returns(copy))]
pub fn architecture(db: &dyn Db, file: SourceFile) -> Option<Sm> {
    Options::get(db).architecture(db).or(effective_target(db, file))
}

/// Everything declared at module scope.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    pub env: Arc<Env>,
    pub names: FxHashMap<SmolStr, Named>,
    pub registers: Box<[RegisterDecl]>,
    /// For each variable of `env`, its declaration: the item, and the index among the item's names.
    pub variable_items: Box<[DeclaredName]>,
    /// For each function, its definition or, without a definition, its first declaration.
    pub function_items: Box<[DeclaredName]>,
    /// Aliases of functions, each with the aliased function.
    pub aliases: Box<[(SmolStr, SmolStr)]>,
    /// The parameters of the functions of `env`, as declared.
    pub shapes: Box<[Arc<Shapes>]>,
    /// The variables of `env`, as declared.
    pub variable_shapes: Box<[Shape]>,
    pub findings: Box<[Finding]>,
}

/// The meaning of a name at module scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    pub symbol: Symbol,
    /// The first declaration of the name.
    pub first: DeclaredName,
}

/// A declared name of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeclaredName {
    /// The index of the item in the file.
    pub item: u32,
    /// The index of the name among those that the item declares.
    pub declarator: u32,
}

/// A finding about several declarations. Its position is computed when it is displayed.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    pub lint: &'static Lint,
    /// `None` means the start of the file.
    pub at: Option<DeclaredName>,
    pub message: String,
    pub note: Option<String>,
    pub related: Option<(DeclaredName, &'static str)>,
    /// The place at which ptxas reports the error, if it differs from `at`.
    pub noticed: Noticed,
}

/// The place at which ptxas reports a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Noticed {
    #[default]
    There,
    /// The end of the function's parameters.
    Parameters,
    /// The next item.
    NextItem,
}

fn find<'a>(
    findings: &'a mut Vec<Finding>,
    lint: &'static Lint,
    at: Option<DeclaredName>,
    message: String,
) -> &'a mut Finding {
    findings.push(Finding { lint, at, message, note: None, related: None, noticed: Noticed::There });
    findings.last_mut().expect("just pushed")
}

#[salsa::tracked]
pub fn module(db: &dyn Db, file: SourceFile) -> Module {
    let header = header(db, file);
    let mut builder = Builder::default();
    builder.reserve(parts(db, file).filter(|part| part.kind(db).is_function()).count());
    directives::check(db, file, header, &mut builder.findings);
    let (is_frozen, mut tree) = (file.is_frozen(db), FlatTree::default());
    for (part, ordinal) in parts(db, file).zip(0..) {
        let decl = match is_frozen {
            true => read_decl(db, part, &mut tree),
            false => item_decl(db, part.item(db)).clone(),
        };
        builder.item(ordinal, decl);
    }
    if !Options::get(db).relocatable(db) {
        builder.whole_program();
    }
    builder.finish(header)
}

#[derive(Default)]
struct Builder {
    variables: Vec<Variable>,
    functions: Vec<Signature>,
    relocs: Vec<(usize, Box<[NamedReloc]>)>,
    names: FxHashMap<SmolStr, Named>,
    registers: Vec<RegisterDecl>,
    variable_items: Vec<DeclaredName>,
    function_items: Vec<DeclaredName>,
    has_body: Vec<bool>,
    aliases: Vec<(SmolStr, SmolStr)>,
    /// The files by number.
    files: FxHashMap<u64, DeclaredName>,
    /// Parallel to `functions`.
    shapes: Vec<Arc<Shapes>>,
    /// Parallel to `variables`.
    variable_shapes: Vec<Shape>,
    findings: Vec<Finding>,
    nounroll: bool,
}

impl Builder {
    /// Reserves memory for the given number of functions.
    fn reserve(&mut self, functions: usize) {
        self.names.reserve(functions);
        self.functions.reserve(functions);
        self.shapes.reserve(functions);
    }

    fn find(&mut self, lint: &'static Lint, at: Option<DeclaredName>, message: String) -> &mut Finding {
        find(&mut self.findings, lint, at, message)
    }

    fn symbol(&self, name: &str) -> Option<Symbol> {
        Some(self.names.get(name)?.symbol)
    }

    fn item(&mut self, item: u32, decl: ItemDecl) {
        let at = DeclaredName { item, declarator: 0 };
        match decl {
            ItemDecl::Variables(variables) => {
                for (decl, declarator) in variables.into_iter().zip(0..) {
                    self.variable(DeclaredName { item, declarator }, decl);
                }
            }
            ItemDecl::Registers(registers) => self.registers.extend(registers),
            ItemDecl::Function(function) => self.function(at, *function),
            ItemDecl::Alias { name, aliasee } => self.alias(at, &name, &aliasee),
            ItemDecl::File(Some(number)) => self.file(item, number),
            ItemDecl::NoUnroll => self.nounroll = true,
            ItemDecl::File(None) | ItemDecl::DebugInfo => {}
            ItemDecl::None | ItemDecl::Version(_) | ItemDecl::Target(_) | ItemDecl::AddressSize(_) => {}
        }
    }

    fn file(&mut self, item: u32, number: u64) {
        let at = DeclaredName { item, declarator: 0 };
        if let Some(earlier) = self.files.insert(number, at) {
            let finding =
                self.find(&REDEFINITION, Some(at), format!("file index {number} is defined more than once"));
            finding.related = Some((earlier, "first defined here"));
            finding.noticed = Noticed::NextItem;
        }
    }

    fn redefinition(&mut self, at: DeclaredName, earlier: DeclaredName, name: &str) {
        let finding = self.find(&REDEFINITION, Some(at), format!("`{name}` is defined more than once"));
        finding.related = Some((earlier, "first defined here"));
        finding.note = Some("`.extern` declarations and prototypes are not definitions".to_owned());
    }

    fn mismatch(&mut self, at: DeclaredName, earlier: DeclaredName, message: String) {
        self.find(&PROTOTYPE_MISMATCH, Some(at), message).related = Some((earlier, "first declared here"));
    }

    fn variable(&mut self, at: DeclaredName, decl: VariableDecl) {
        let VariableDecl { variable, shape, relocs } = decl;
        let name = &variable.name;
        match self.symbol(name) {
            Some(Symbol::Global(index)) => {
                let index = index as usize;
                let (earlier, place) = (&self.variables[index], self.variable_items[index]);
                let was_extern = earlier.linkage == Linkage::Extern;
                let is_extern = variable.linkage == Linkage::Extern;
                if !self.variable_shapes[index].is_same_type(&shape) {
                    let (was, is) = (&self.variable_shapes[index], &shape);
                    let message =
                        format!("conflicting types for `{name}`: `{is}`, previously declared as `{was}`");
                    self.mismatch(at, place, message);
                } else if was_extern && variable.linkage == Linkage::Internal {
                    let message =
                        format!("`{name}` was declared `.extern`, so its definition must be `.visible`");
                    self.mismatch(at, place, message);
                } else if !was_extern && !is_extern {
                    self.redefinition(at, place, name);
                }
                if was_extern && !is_extern {
                    // The definition replaces the declaration.
                    self.variables[index] = variable;
                    self.variable_items[index] = at;
                    self.relocs.push((index, relocs));
                }
            }
            Some(Symbol::Function(index)) => {
                self.redefinition(at, self.function_items[index as usize], name);
            }
            _ => {
                let index = self.variables.len();
                let symbol = Symbol::Global(index as u32);
                self.names.insert(SmolStr::new(name), Named { symbol, first: at });
                self.relocs.push((index, relocs));
                self.variables.push(variable);
                self.variable_shapes.push(shape);
                self.variable_items.push(at);
            }
        }
    }

    fn function(&mut self, at: DeclaredName, decl: FunctionDecl) {
        let signature = &decl.signature;
        match self.symbol(&signature.name) {
            Some(Symbol::Function(index)) => {
                let index = index as usize;
                let place = self.function_items[index];
                if self.has_body[index] {
                    self.redefinition(at, place, &signature.name);
                    self.findings.last_mut().expect("just pushed").noticed = Noticed::Parameters;
                } else if let Some(difference) =
                    linking::redeclaration(&self.functions[index], &self.shapes[index], &decl)
                {
                    let message = format!(
                        "conflicting declaration of `{}`: previously declared {difference}",
                        signature.name
                    );
                    self.mismatch(at, place, message);
                    self.findings.last_mut().expect("just pushed").noticed = Noticed::Parameters;
                }
                if decl.has_body && !self.has_body[index] {
                    self.functions[index] = Signature {
                        noreturn: signature.noreturn || self.functions[index].noreturn,
                        waits: true,
                        watches: true,
                        unified: self.functions[index].unified,
                        ..decl.signature
                    };
                    self.function_items[index] = at;
                    self.has_body[index] = true;
                }
            }
            Some(Symbol::Global(index)) => {
                self.redefinition(at, self.variable_items[index as usize], &signature.name);
            }
            _ => {
                let symbol = Symbol::Function(self.functions.len() as u32);
                self.names.insert(SmolStr::new(&signature.name), Named { symbol, first: at });
                self.functions.push(decl.signature);
                self.shapes.push(Arc::new(decl.shapes));
                self.function_items.push(at);
                self.has_body.push(decl.has_body);
            }
        }
    }

    /// Handles an alias of a function. Both names must be declared as functions before it.
    fn alias(&mut self, at: DeclaredName, name: &SmolStr, aliasee: &SmolStr) {
        if let Some((_, other)) = self.aliases.iter().find(|(alias, _)| alias == name) {
            let message = format!("`{name}` is already an alias of `{other}`");
            self.find(&BAD_ALIAS, Some(at), message);
            return;
        }
        let found = [name, aliasee].map(|name| self.symbol(name));
        for (name, symbol) in [name, aliasee].into_iter().zip(found) {
            let message = match symbol {
                None => format!("function `{name}` is not declared before this alias"),
                Some(Symbol::Function(index)) if self.functions[index as usize].entry => {
                    format!("`{name}` is a kernel; only device functions can have aliases")
                }
                Some(Symbol::Function(_)) => continue,
                Some(_) => format!("`{name}` is a variable; only device functions can have aliases"),
            };
            self.find(&BAD_ALIAS, Some(at), message);
            return;
        }
        let [Some(Symbol::Function(alias)), Some(Symbol::Function(function))] = found else { return };
        let (alias, function) = (alias as usize, function as usize);
        let linkage = self.functions[function].linkage;
        let message = if alias == function {
            format!("`{name}` is an alias of itself")
        } else if self.has_body[alias] {
            format!("alias `{name}` already has a body")
        } else if matches!(linkage, Linkage::Extern | Linkage::Weak) {
            let word = if linkage == Linkage::Weak { ".weak" } else { ".extern" };
            format!("`{aliasee}` is `{word}` and cannot have an alias")
        } else if let Some(difference) = linking::difference(&self.shapes[alias], &self.shapes[function]) {
            format!("`{name}` and `{aliasee}` have different types: {difference}")
        } else if self.functions[alias].noreturn != self.functions[function].noreturn {
            format!("only one of `{name}` and `{aliasee}` is `.noreturn`")
        } else {
            self.aliases.push((name.clone(), aliasee.clone()));
            let preserved = self.functions[function].preserved;
            let alias = &mut self.functions[alias];
            alias.preserved = preserved;
            if alias.linkage == Linkage::Extern {
                // Because of the alias, this module does define the function.
                alias.linkage = Linkage::Visible;
            }
            return;
        };
        let place = self.function_items[function];
        self.find(&BAD_ALIAS, Some(at), message).related = Some((place, "the function"));
    }

    /// Reports functions that the module declares without `.extern` and does not define.
    fn undefined_functions(&mut self) {
        for index in 0..self.functions.len() {
            let function = &self.functions[index];
            let name = &function.name;
            let is_missing = !self.has_body[index] && function.linkage != Linkage::Extern;
            if is_missing && self.aliases.iter().all(|(alias, _)| alias != name) {
                let message = format!("function `{name}` is declared but not defined");
                let finding = self.find(&UNDEFINED_FUNCTION, Some(self.function_items[index]), message);
                finding.note = Some("declare it `.extern` if another module defines it".to_owned());
            }
        }
    }

    /// Handles `.extern` variables in a whole program, where no other module can define them. A variable without a size
    /// is an error. The others are defined here.
    fn whole_program(&mut self) {
        for index in 0..self.variables.len() {
            let Variable { linkage, space, name, .. } = &self.variables[index];
            if *linkage != Linkage::Extern || !matches!(space, Space::Global | Space::Const) {
                continue;
            }
            let is_open = matches!(self.variable_shapes[index].dimensions.first(), Some(None | Some(0)));
            let (lint, message) = if is_open {
                let message = "is not defined in this module, so its size is unknown";
                (&SEPARATE_COMPILATION, format!("`.extern` array `{name}` {message}"))
            } else {
                (
                    &IGNORED_EXTERN,
                    format!("`.extern` is ignored: in whole-program mode `{name}` is defined in this module"),
                )
            };
            if !is_open {
                self.variables[index].linkage = Linkage::Visible;
            }
            let finding = self.find(lint, Some(self.variable_items[index]), message);
            finding.note = Some(externals::WAY_OUT.to_owned());
        }
    }

    fn finish(mut self, header: &Header) -> Module {
        self.undefined_functions();
        for (index, relocs) in std::mem::take(&mut self.relocs) {
            let resolved: Vec<InitReloc> = relocs
                .iter()
                .filter_map(|reloc| {
                    let symbol = self.symbol(&reloc.name)?;
                    let NamedReloc { at, addend, generic, size, byte, .. } = *reloc;
                    Some(InitReloc { at, symbol, addend, generic, size, byte })
                })
                .collect();
            if !resolved.is_empty() {
                self.variables[index].init.get_or_insert_with(Init::default).relocs = resolved;
            }
        }
        let env = Env {
            version: header.version_or_newest(),
            target: header.target.sm.unwrap_or(Sm::new(75)),
            address_size: header.address_size(),
            independent_samplers: header.target.has_independent_samplers(),
            variables: self.variables,
            functions: self.functions,
            pointees_wait: true,
            pointees_watch: true,
            nounroll: self.nounroll,
        };
        Module {
            env: Arc::new(env),
            names: self.names,
            registers: self.registers.into(),
            variable_items: self.variable_items.into(),
            function_items: self.function_items.into(),
            aliases: self.aliases.into(),
            shapes: self.shapes.into(),
            variable_shapes: self.variable_shapes.into(),
            findings: self.findings.into(),
        }
    }
}

/// A name at module scope, as function bodies see it.
#[derive(Clone, PartialEq, Debug)]
pub enum Global {
    /// `table` is the first function whose address the initial value contains.
    Variable {
        index: u32,
        space: Space,
        ty: ScalarType,
        size: u64,
        align: u32,
        is_array: bool,
        table: Option<u32>,
    },
    Function {
        index: u32,
        signature: Arc<Signature>,
        shapes: Arc<Shapes>,
    },
}

impl Global {
    pub fn symbol(&self) -> Symbol {
        match self {
            Self::Variable { index, .. } => Symbol::Global(*index),
            Self::Function { index, .. } => Symbol::Function(*index),
        }
    }
}

/// A name, interned so that a query can take it as an argument.
#[salsa::interned(debug)]
pub struct Name<'db> {
    pub text: SmolStr,
}

/// Finds a name at module scope. Follows aliases.
#[salsa::tracked]
pub fn global<'db>(db: &'db dyn Db, file: SourceFile, name: Name<'db>) -> Option<Global> {
    let module = module(db, file);
    let mut text = name.text(db).clone();
    if !module.names.contains_key(&text) {
        text = module.aliases.iter().find(|(alias, _)| *alias == text)?.1.clone();
    }
    Some(match module.names.get(&text)?.symbol {
        Symbol::Function(index) => Global::Function {
            index,
            signature: Arc::new(module.env.functions[index as usize].clone()),
            shapes: Arc::clone(&module.shapes[index as usize]),
        },
        Symbol::Global(index) => {
            let variable = &module.env.variables[index as usize];
            let (space, ty, size, align) = (variable.space, variable.ty, variable.size, variable.align);
            let is_array = module.variable_shapes[index as usize].is_array();
            let relocs = variable.init.iter().flat_map(|init| &init.relocs);
            let table = relocs.map(|reloc| reloc.symbol).find_map(|symbol| match symbol {
                Symbol::Function(function) => Some(function),
                _ => None,
            });
            Global::Variable { index, space, ty, size, align, is_array, table }
        }
        Symbol::Local(_) | Symbol::Param(_) | Symbol::Return(_) => return None,
    })
}

/// The signature of a function, given by its index in [`Env::functions`].
#[salsa::tracked(returns(clone))]
pub fn function_signature(
    db: &dyn Db,
    file: SourceFile,
    function: u32,
) -> Option<(Arc<Signature>, Arc<Shapes>)> {
    let module = module(db, file);
    let signature = module.env.functions.get(function as usize)?;
    Some((Arc::new(signature.clone()), Arc::clone(module.shapes.get(function as usize)?)))
}

/// Whether a name at module scope is declared in or before an item, so that the item may use it.
pub(crate) fn is_declared_before<'db>(db: &'db dyn Db, part: Part<'db>, name: Name<'db>) -> bool {
    match part {
        // Most kernels mention only their own name, which needs no query.
        Part::Edited(item) if item.name(db) == name.text(db) => true,
        Part::Edited(item) => is_still_declared_before(db, item, name),
        Part::Frozen { file, index, .. } => is_declared_up_to(db, file, index, name),
    }
}

#[salsa::tracked(returns(copy))]
fn is_still_declared_before<'db>(db: &'db dyn Db, item: Item<'db>, name: Name<'db>) -> bool {
    is_declared_up_to(db, item.file(db), item.index(db), name)
}

fn is_declared_up_to(db: &dyn Db, file: SourceFile, item: u32, name: Name<'_>) -> bool {
    module(db, file).names.get(name.text(db)).is_some_and(|named| named.first.item <= item)
}

/// Registers of module scope.
#[salsa::tracked(returns(deref))]
pub fn module_registers(db: &dyn Db, file: SourceFile) -> Box<[RegisterDecl]> {
    module(db, file).registers.clone()
}
