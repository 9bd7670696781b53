//! The declarations of an item at module scope, without bodies and positions.
//!
//! Other items see only these values. They stay equal when a body, a comment or blanks are edited, so no query that
//! reads them runs again. Errors in a declaration are reported by the walk over its item, not here.

use ptx_backend::input::{Init, Param, Signature, Variable};
use ptx_isa::{PtxVersion, ScalarType, Sm, Space};
use ptx_syntax::ast::literal;
use ptx_syntax::flat::{FlatTree, Node};
use ptx_syntax::{ItemKind, SyntaxKind};
use smol_str::SmolStr;

use crate::db::Db;
use crate::declaration::{self, Declaration, Declarator, Head, Shape};
use crate::diagnostic::Findings;
use crate::heading::{Heading, Layout, List};
use crate::initializer::{self, NamedReloc};
use crate::items::{Item, Part};

/// What an item declares.
#[derive(Clone, PartialEq, Debug)]
pub enum ItemDecl {
    /// Nothing that other items can see.
    None,
    /// `None` if the version is malformed.
    Version(Option<PtxVersion>),
    Target(TargetDecl),
    AddressSize(Option<u8>),
    Variables(Box<[VariableDecl]>),
    Registers(Box<[RegisterDecl]>),
    Function(Box<FunctionDecl>),
    Alias {
        name: SmolStr,
        aliasee: SmolStr,
    },
    /// The number of a `.file` directive.
    File(Option<u64>),
    /// The section `.debug_info`.
    DebugInfo,
    /// `.pragma "nounroll"`.
    NoUnroll,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TargetDecl {
    pub sm: Option<Sm>,
    /// The target as written.
    pub spelling: SmolStr,
    /// The first word is a target, not an option.
    pub starts_with_target: bool,
    /// The other words: `texmode_independent`, `debug`, `map_f64_to_f32`.
    pub options: Box<[SmolStr]>,
}

impl TargetDecl {
    /// Textures and samplers have separate handles.
    pub fn has_independent_samplers(&self) -> bool {
        self.options.iter().any(|option| option == "texmode_independent")
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct VariableDecl {
    pub shape: Shape,
    /// The variable. Addresses in its initializer are not resolved yet.
    pub variable: Variable,
    pub relocs: Box<[NamedReloc]>,
}

/// A register at module scope, which old programs have. Each function gets its own copy.
#[derive(Clone, PartialEq, Debug)]
pub struct RegisterDecl {
    pub name: SmolStr,
    pub ty: ScalarType,
    pub count: Option<u32>,
    pub lanes: u8,
}

#[derive(Clone, PartialEq, Debug)]
pub struct FunctionDecl {
    pub signature: Signature,
    pub shapes: Shapes,
    pub has_body: bool,
}

/// The parameters of a function as declared.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shapes {
    pub returns: Box<[Shape]>,
    pub params: Box<[Shape]>,
}

#[salsa::tracked]
pub fn item_decl<'db>(db: &'db dyn Db, item: Item<'db>) -> ItemDecl {
    read_decl(db, Part::new(db, item), &mut FlatTree::default())
}

/// The declaration of an item, for callers that store it themselves. `tree` is reused as memory for the item's tree.
pub(crate) fn read_decl<'db>(db: &'db dyn Db, part: Part<'db>, tree: &mut FlatTree) -> ItemDecl {
    let text = part.text(db);
    // Items without declarations, such as debug data, are often large.
    match part.kind(db) {
        ItemKind::Dwarf | ItemKind::Loc | ItemKind::Trivia => return ItemDecl::None,
        ItemKind::Section => {
            let name = text.split_once(".section").map_or("", |(_, rest)| rest.trim_start());
            let is_info = name.starts_with(".debug_info");
            return if is_info { ItemDecl::DebugInfo } else { ItemDecl::None };
        }
        _ => {}
    }
    // Other items do not see the body.
    if !(part.kind(db).is_function() && tree.parse_heading(text)) {
        tree.parse(text);
    }
    declared_in(tree.root(), text)
}

/// The declaration in the tree of an item.
fn declared_in(node: Node<'_>, text: &str) -> ItemDecl {
    let words = |kind: SyntaxKind| node.tokens(kind).map(|range| &text[range]);
    match node.kind() {
        SyntaxKind::VERSION_DIRECTIVE => {
            let range = |kind: SyntaxKind| node.tokens(kind).next();
            let found = range(SyntaxKind::DOT_WORD).zip(range(SyntaxKind::FLOAT)).filter(|(word, number)| {
                // Version and number are separated only by blanks.
                text[usize::from(word.end())..number.start().into()]
                    .bytes()
                    .all(|byte| matches!(byte, b' ' | b'\t' | 0x0C))
            });
            ItemDecl::Version(found.and_then(|(_, number)| version(&text[number])))
        }
        SyntaxKind::TARGET_DIRECTIVE => {
            let found = words(SyntaxKind::IDENT).find_map(|word| Some((target(word)?, SmolStr::new(word))));
            let (sm, spelling) = found.map_or((None, SmolStr::default()), |(sm, word)| (Some(sm), word));
            let options =
                words(SyntaxKind::IDENT).filter(|word| target(word).is_none()).map(SmolStr::new).collect();
            let starts_with_target =
                words(SyntaxKind::IDENT).next().is_some_and(|word| target(word).is_some());
            ItemDecl::Target(TargetDecl { sm, spelling, starts_with_target, options })
        }
        SyntaxKind::ADDRESS_SIZE_DIRECTIVE => ItemDecl::AddressSize(match words(SyntaxKind::INT).next() {
            Some(word) => match literal::integer(word).map(|integer| integer.value) {
                Ok(32) => Some(32),
                Ok(64) => Some(64),
                _ => None,
            },
            None => None,
        }),
        SyntaxKind::VARIABLE => declaration::read(node, text, &mut Findings::default())
            .map_or(ItemDecl::None, |declaration| variables(declaration, text)),
        SyntaxKind::FUNCTION => function(&Heading::read(node, text, &mut Findings::default()), text),
        SyntaxKind::FILE_DIRECTIVE => {
            let number = words(SyntaxKind::INT).next().and_then(|word| literal::integer(word).ok());
            ItemDecl::File(number.map(|number| number.value))
        }
        SyntaxKind::ALIAS => {
            let mut names = node.children().map(|child| SmolStr::new(&text[child.text_range()]));
            match (names.next(), names.next()) {
                (Some(name), Some(aliasee)) => ItemDecl::Alias { name, aliasee },
                _ => ItemDecl::None,
            }
        }
        SyntaxKind::PRAGMA if words(SyntaxKind::STRING).any(|word| word == "\"nounroll\"") => {
            ItemDecl::NoUnroll
        }
        _ => ItemDecl::None,
    }
}

/// Parses a version such as `8.0`.
pub fn version(text: &str) -> Option<PtxVersion> {
    let (major, minor) = text.split_once('.')?;
    let minor = if minor.bytes().all(|b| b == b'0') && !minor.is_empty() { "0" } else { minor };
    Some(PtxVersion::new(major.parse().ok()?, minor.parse().ok()?))
}

/// Parses a target as ptxas does. Letters without a meaning after the number are ignored.
pub(crate) fn target(word: &str) -> Option<Sm> {
    Sm::parse(word).or_else(|| Sm::parse(word.trim_end_matches(|c: char| c.is_ascii_lowercase())))
}

fn variables(declaration: Declaration<'_>, text: &str) -> ItemDecl {
    let Declaration { head, declarators } = declaration;
    let name = |declarator: &Declarator<'_>| declarator.name.map(|range| &text[range]);
    if head.space == Space::Reg {
        let registers = declarators.iter().filter_map(|declarator| {
            let (ty, lanes, count) = (head.ty, head.lanes, declarator.count);
            Some(RegisterDecl { name: SmolStr::new(name(declarator)?), ty, count, lanes })
        });
        return ItemDecl::Registers(registers.collect());
    }
    let variables = declarators.iter().filter_map(|declarator| {
        let (variable, relocs) = variable(&head, declarator, name(declarator)?, text);
        Some(VariableDecl { shape: Shape::new(&head, declarator), variable, relocs })
    });
    ItemDecl::Variables(variables.collect())
}

/// A variable with its initializer evaluated. Names of other variables in it are kept as names.
pub fn variable(
    head: &Head,
    declarator: &Declarator<'_>,
    name: &str,
    text: &str,
) -> (Variable, Box<[NamedReloc]>) {
    let mut init = None;
    let mut relocs: Box<[NamedReloc]> = Box::default();
    let mut elements = declarator.elements();
    if let Some(initializer) = declarator.initializer {
        let value =
            initializer::read(initializer, head, &declarator.dimensions, text, &mut Findings::default());
        elements = elements.or(Some(value.elements));
        relocs = value.relocs.into();
        init = Some(Init { bytes: value.bytes, relocs: Vec::new(), sampling: value.sampling });
    }
    let variable = Variable {
        name: name.to_owned(),
        space: head.space,
        linkage: head.linkage,
        ty: head.ty,
        size: elements.unwrap_or(0).saturating_mul(head.element_bytes()),
        align: head.alignment(),
        init,
        managed: head.managed,
        unified: head.unified,
    };
    (variable, relocs)
}

/// The signature of a function. If the function has no name, there is none.
fn function(heading: &Heading<'_>, text: &str) -> ItemDecl {
    let Some(name) = heading.name else { return ItemDecl::None };
    let (returns, return_shapes) = parameters(&heading.results, text);
    let (params, param_shapes) = parameters(&heading.parameters, text);
    let has_body = heading.body.is_some();
    let signature = Signature {
        name: text[name].to_owned(),
        entry: heading.is_entry(text),
        linkage: heading.linkage(text),
        returns,
        params,
        external: !has_body,
        noreturn: heading.is_noreturn(),
        preserved: heading.preserved(),
        waits: true,
        watches: true,
        known: None,
        unified: heading.unified(text),
    };
    let shapes = Shapes { returns: return_shapes, params: param_shapes };
    ItemDecl::Function(Box::new(FunctionDecl { signature, shapes, has_body }))
}

/// The parameters of a list, with their offsets.
pub(crate) fn parameters(list: &List<'_>, text: &str) -> (Vec<Param>, Box<[Shape]>) {
    let mut layout = Layout::default();
    let mut params = Vec::with_capacity(list.parameters.len());
    let mut shapes = Vec::with_capacity(list.parameters.len());
    for parameter in &list.parameters {
        if let Some(name) = parameter.name() {
            params.push(layout.add(parameter, &text[name]));
            shapes.push(parameter.shape.clone());
        }
    }
    (params, shapes.into())
}
