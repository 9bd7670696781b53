//! The module as a whole: header, symbols, and what declarations say about each other.
//!
//! [`module`] is one value for the whole file, built from what each item declares. Bodies do not read it as a
//! whole: they ask [`header`] and [`global`], one name at a time, so that a change to one declaration touches
//! only those who mention it.

#![expect(unused_lifetimes, reason = "interned structs need the lifetime and use it in generated code")]

use ptx_backend::input::{Env, Init, InitReloc, Linkage, Param, Signature, Symbol, Variable};
use ptx_isa::{PtxVersion, ScalarType, Sm, Space};
use ptx_syntax::ItemKind;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::Arc;

use crate::db::{Db, Options, SourceFile};
use crate::declare_lint;
use crate::diagnostic::Lint;
use crate::items::{Item, items};
use crate::signature::{ItemDecl, RegisterDecl, TargetDecl, item_decl};

declare_lint! {
    /// The module does not start with a readable `.version`.
    pub MISSING_VERSION = "E0104" "missing-version", Error, since "0.1.0"
}

declare_lint! {
    /// The module has no readable `.target` behind its `.version`.
    pub MISSING_TARGET = "E0107" "missing-target", Error, since "0.1.0"
}

declare_lint! {
    /// A name is defined more than once in its scope.
    pub REDEFINITION = "E0201" "redefinition", Error, since "0.1.0"
}

declare_lint! {
    /// Two declarations of a function differ in their parameters.
    pub PROTOTYPE_MISMATCH = "E0205" "prototype-mismatch", Error, since "0.1.0"
}

declare_lint! {
    /// The language version or the target is none that exists, or they do not go together.
    pub UNKNOWN_TARGET = "E0403" "unknown-target", Error, since "0.1.0"
}

declare_lint! {
    /// Code for 32-bit addresses is no longer assembled.
    pub ADDRESS_SIZE = "E0404" "address-size", Error, since "0.1.0"
}

/// The header directives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    pub version: Option<PtxVersion>,
    pub target: TargetDecl,
    /// 64 or 32; 64 where the file does not say, since nothing else is assembled any more.
    pub address_size: u8,
}

impl Header {
    /// The language version, the newest one where it is missing.
    pub fn version_or_newest(&self) -> PtxVersion {
        self.version.unwrap_or(PtxVersion::NEWEST)
    }
}

/// The first of each header directive wins.
#[salsa::tracked]
pub fn header(db: &dyn Db, file: SourceFile) -> Header {
    let mut header = Header { version: None, target: TargetDecl::default(), address_size: 64 };
    let mut address_size = None;
    let mut target = None;
    for &item in items(db, file) {
        // Headers stand first; asking every item of a large file would read them all.
        if !may_precede_header(db, item) {
            break;
        }
        match item_decl(db, item) {
            ItemDecl::Version(version) => header.version = header.version.or(*version),
            ItemDecl::Target(found) => {
                target.get_or_insert_with(|| found.clone());
            }
            ItemDecl::AddressSize(size) => address_size = address_size.or(*size),
            _ => {}
        }
    }
    header.target = target.unwrap_or_default();
    header.address_size = address_size.unwrap_or(64);
    header
}

fn may_precede_header(db: &dyn Db, item: Item<'_>) -> bool {
    !matches!(item.kind(db), ItemKind::Entry | ItemKind::Func | ItemKind::Variable)
}

/// The target in effect: the one asked for, else the file's own.
#[salsa::tracked(returns(copy))]
pub fn effective_target(db: &dyn Db, file: SourceFile) -> Option<Sm> {
    Options::get(db).target(db).or(header(db, file).target.sm)
}

/// Everything declared at module scope.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    pub env: Arc<Env>,
    pub names: FxHashMap<SmolStr, Symbol>,
    /// Where each name is first declared, aliases included.
    pub first: FxHashMap<SmolStr, Place>,
    pub registers: Box<[RegisterDecl]>,
    /// Where each variable of `env` is declared: the item and which of its names.
    pub variable_items: Box<[Place]>,
    /// Where each function is declared: its definition, or else its first declaration.
    pub function_items: Box<[Place]>,
    /// Names without a symbol of their own: `.alias`.
    pub aliases: Box<[(SmolStr, SmolStr)]>,
    pub findings: Box<[Finding]>,
}

/// A declared name of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Ordinal in the file.
    pub item: u32,
    /// Ordinal among the names that the item declares.
    pub declarator: u32,
}

/// A finding about declarations as a whole; positions are looked up when it is shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    pub lint: &'static Lint,
    /// `None`: the start of the file.
    pub at: Option<Place>,
    pub message: String,
    pub note: Option<String>,
    pub related: Option<(Place, &'static str)>,
}

#[salsa::tracked]
pub fn module(db: &dyn Db, file: SourceFile) -> Module {
    let header = header(db, file);
    let mut builder = Builder::default();
    builder.header(db, file, header);
    for (ordinal, &item) in items(db, file).iter().enumerate() {
        builder.item(ordinal as u32, item_decl(db, item));
    }
    builder.finish(header)
}

#[derive(Default)]
struct Builder {
    variables: Vec<Variable>,
    functions: Vec<Signature>,
    relocs: Vec<(usize, Box<[crate::initializer::NamedReloc]>)>,
    names: FxHashMap<SmolStr, Symbol>,
    first: FxHashMap<SmolStr, Place>,
    registers: Vec<RegisterDecl>,
    variable_items: Vec<Place>,
    function_items: Vec<Place>,
    has_body: Vec<bool>,
    aliases: Vec<(SmolStr, SmolStr)>,
    findings: Vec<Finding>,
}

impl Builder {
    fn find(&mut self, lint: &'static Lint, at: Option<Place>, message: String) -> &mut Finding {
        self.findings.push(Finding { lint, at, message, note: None, related: None });
        self.findings.last_mut().expect("just pushed")
    }

    fn header(&mut self, db: &dyn Db, file: SourceFile, header: &Header) {
        let place = |wanted: fn(&ItemDecl) -> bool| {
            let mut all =
                items(db, file).iter().enumerate().take_while(|(_, item)| may_precede_header(db, **item));
            all.find(|(_, item)| wanted(item_decl(db, **item)))
                .map(|(i, _)| Place { item: i as u32, declarator: 0 })
        };
        let first = items(db, file).iter().position(|item| item.kind(db) != ItemKind::Trivia);
        let first = first.map(|item| Place { item: item as u32, declarator: 0 });
        let address_size = place(|decl| matches!(decl, ItemDecl::AddressSize(Some(32))));
        if address_size.is_some() {
            let message = "32-bit addresses are not supported".to_owned();
            self.find(&ADDRESS_SIZE, address_size, message).note =
                Some("write `.address_size 64`".to_owned());
        }
        let version = place(|decl| matches!(decl, ItemDecl::Version(_)));
        let target = place(|decl| matches!(decl, ItemDecl::Target(_)));
        match (header.version, version) {
            (None, None) => {
                let message = "the module has no `.version`".to_owned();
                self.find(&MISSING_VERSION, first, message).note =
                    Some("a module starts with `.version` and `.target`".to_owned());
            }
            (None, at) => {
                let _ = self.find(&MISSING_VERSION, at, "this is no language version".to_owned());
            }
            (Some(found), at) if found > PtxVersion::NEWEST => {
                let message =
                    format!("version {found} is newer than {}, the newest known", PtxVersion::NEWEST);
                self.find(&UNKNOWN_TARGET, at, message);
            }
            _ => {}
        }
        match (header.target.sm, target) {
            (None, None) => {
                let _ =
                    self.find(&MISSING_TARGET, version.or(first), "the module has no `.target`".to_owned());
            }
            (None, at) => {
                let _ = self.find(&UNKNOWN_TARGET, at, "this names no target".to_owned());
            }
            (Some(sm), at) => {
                if !Sm::KNOWN.contains(&sm) {
                    self.find(&UNKNOWN_TARGET, at, format!("there is no target {sm}"));
                } else if let Some(version) = header.version
                    && version < sm.since()
                {
                    let message = format!("{sm} needs PTX ISA {}, the module says {version}", sm.since());
                    self.find(&UNKNOWN_TARGET, at, message);
                }
            }
        }
    }

    fn item(&mut self, item: u32, decl: &ItemDecl) {
        match decl {
            ItemDecl::Variables(variables) => {
                for (i, decl) in variables.iter().enumerate() {
                    self.variable(Place { item, declarator: i as u32 }, decl);
                }
            }
            ItemDecl::Registers(registers) => self.registers.extend(registers.iter().cloned()),
            ItemDecl::Function(function) => {
                self.function(Place { item, declarator: 0 }, &function.signature, function.has_body)
            }
            ItemDecl::Alias { name, aliasee } => {
                self.first.entry(name.clone()).or_insert(Place { item, declarator: 0 });
                self.aliases.push((name.clone(), aliasee.clone()));
            }
            ItemDecl::None | ItemDecl::Version(_) | ItemDecl::Target(_) | ItemDecl::AddressSize(_) => {}
        }
    }

    fn redefinition(&mut self, at: Place, earlier: Place, name: &str) {
        let finding = self.find(&REDEFINITION, Some(at), format!("`{name}` is defined twice"));
        finding.related = Some((earlier, "first defined here"));
    }

    fn variable(&mut self, at: Place, decl: &crate::signature::VariableDecl) {
        let variable = &decl.variable;
        match self.names.get(variable.name.as_str()) {
            Some(&Symbol::Global(index)) => {
                let index = index as usize;
                let earlier = &self.variables[index];
                let weak = |linkage| matches!(linkage, Linkage::Extern | Linkage::Weak | Linkage::Common);
                if earlier.linkage == Linkage::Extern && variable.linkage != Linkage::Extern {
                    // The definition takes the place of the declaration.
                    self.variables[index] = variable.clone();
                    self.variable_items[index] = at;
                    self.relocs.push((index, decl.relocs.clone()));
                } else if !weak(variable.linkage) && !weak(earlier.linkage) {
                    self.redefinition(at, self.variable_items[index], &variable.name);
                }
            }
            Some(&Symbol::Function(index)) => {
                self.redefinition(at, self.function_items[index as usize], &variable.name);
            }
            _ => {
                let index = self.variables.len();
                self.names.insert(SmolStr::new(&variable.name), Symbol::Global(index as u32));
                self.first.insert(SmolStr::new(&variable.name), at);
                self.relocs.push((index, decl.relocs.clone()));
                self.variables.push(variable.clone());
                self.variable_items.push(at);
            }
        }
    }

    fn function(&mut self, at: Place, signature: &Signature, has_body: bool) {
        match self.names.get(signature.name.as_str()) {
            Some(&Symbol::Function(index)) => {
                let index = index as usize;
                let shape = |params: &[Param]| params.iter().map(|p| (p.ty, p.size)).collect::<Vec<_>>();
                let earlier = &self.functions[index];
                if shape(&earlier.params) != shape(&signature.params)
                    || shape(&earlier.returns) != shape(&signature.returns)
                {
                    let earlier = self.function_items[index];
                    let message = format!("`{}` was declared with other parameters", signature.name);
                    let finding = self.find(&PROTOTYPE_MISMATCH, Some(at), message);
                    finding.related = Some((earlier, "first declared here"));
                }
                if has_body && self.has_body[index] {
                    self.redefinition(at, self.function_items[index], &signature.name);
                } else if has_body {
                    self.functions[index] = Signature {
                        noreturn: signature.noreturn || self.functions[index].noreturn,
                        ..signature.clone()
                    };
                    self.function_items[index] = at;
                    self.has_body[index] = true;
                }
            }
            Some(&Symbol::Global(index)) => {
                self.redefinition(at, self.variable_items[index as usize], &signature.name);
            }
            _ => {
                self.names
                    .insert(SmolStr::new(&signature.name), Symbol::Function(self.functions.len() as u32));
                self.first.insert(SmolStr::new(&signature.name), at);
                self.functions.push(signature.clone());
                self.function_items.push(at);
                self.has_body.push(has_body);
            }
        }
    }

    fn finish(mut self, header: &Header) -> Module {
        for (index, relocs) in std::mem::take(&mut self.relocs) {
            let resolved: Vec<InitReloc> = relocs
                .iter()
                .filter_map(|reloc| {
                    let symbol = *self.names.get(&reloc.name)?;
                    let (at, addend, generic, size) = (reloc.at, reloc.addend, reloc.generic, reloc.size);
                    Some(InitReloc { at, symbol, addend, generic, size })
                })
                .collect();
            if !resolved.is_empty() {
                self.variables[index].init.get_or_insert_with(Init::default).relocs = resolved;
            }
        }
        let env = Env {
            version: header.version_or_newest(),
            target: header.target.sm.unwrap_or(Sm::new(75)),
            address_size: header.address_size,
            variables: self.variables,
            functions: self.functions,
        };
        Module {
            env: Arc::new(env),
            names: self.names,
            first: self.first,
            registers: self.registers.into(),
            variable_items: self.variable_items.into(),
            function_items: self.function_items.into(),
            aliases: self.aliases.into(),
            findings: self.findings.into(),
        }
    }
}

/// A name of module scope, as bodies see it.
#[derive(Clone, PartialEq, Debug)]
pub enum Global {
    Variable { index: u32, space: Space, ty: ScalarType, size: u64, align: u32 },
    Function { index: u32, signature: Arc<Signature> },
}

impl Global {
    pub fn symbol(&self) -> Symbol {
        match self {
            Self::Variable { index, .. } => Symbol::Global(*index),
            Self::Function { index, .. } => Symbol::Function(*index),
        }
    }
}

/// A name, so that a query can take it.
#[salsa::interned(debug)]
pub struct Name<'db> {
    pub text: SmolStr,
}

/// Finds a name at module scope, through aliases.
#[salsa::tracked]
pub fn global<'db>(db: &'db dyn Db, file: SourceFile, name: Name<'db>) -> Option<Global> {
    let module = module(db, file);
    let mut text = name.text(db).clone();
    if !module.names.contains_key(&text) {
        text = module.aliases.iter().find(|(alias, _)| *alias == text)?.1.clone();
    }
    Some(match *module.names.get(&text)? {
        Symbol::Function(index) => {
            Global::Function { index, signature: Arc::new(module.env.functions[index as usize].clone()) }
        }
        Symbol::Global(index) => {
            let variable = &module.env.variables[index as usize];
            let (space, ty, size, align) = (variable.space, variable.ty, variable.size, variable.align);
            Global::Variable { index, space, ty, size, align }
        }
        Symbol::Local(_) | Symbol::Param(_) | Symbol::Return(_) => return None,
    })
}

/// Whether a name of module scope is declared before an item or by it, so that the item may use it.
#[salsa::tracked(returns(copy))]
pub fn is_declared_before<'db>(db: &'db dyn Db, item: Item<'db>, name: Name<'db>) -> bool {
    let file = item.file(db);
    let before = items(db, file).partition_point(|other| other.offset(db) <= item.offset(db));
    module(db, file).first.get(name.text(db)).is_some_and(|place| (place.item as usize) < before)
}

/// Registers of module scope.
#[salsa::tracked(returns(deref))]
pub fn module_registers(db: &dyn Db, file: SourceFile) -> Box<[RegisterDecl]> {
    module(db, file).registers.clone()
}
