//! Parameters of functions.
//!
//! Nearly all parameters of a program are of a few kinds, such as `.param .u64`. What follows from the kind alone is found
//! out once: how large it is, and that nothing is wrong with it.

use std::cell::Cell;
use std::rc::Rc;

use ptx_backend::input::Param;
use text_size::{TextRange, TextSize};

use crate::check::declarations::Site;
use crate::declaration::{Declaration, Declarator, Declarators, Head, Shape};
use ptx_syntax::is_word;

/// A parameter or a result.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) kind: Rc<Kind>,
    /// Where the places in its kind start.
    start: TextSize,
    /// `None` where the name is missing; the parser has reported it.
    pub(crate) name: Option<TextRange>,
}

/// What a parameter is, whatever its name.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) head: Head,
    pub(crate) declarator: Declarator,
    pub(crate) shape: Shape,
    /// Bytes; zero where the size is open.
    pub(crate) bytes: u64,
    /// Where such parameters may stand, as far as is known: [`Site`]s as bits.
    passed: Cell<u8>,
}

impl Kind {
    /// The places in `head` start with it; `declarator` has no name.
    pub(super) fn new(head: Head, declarator: Declarator) -> Self {
        let shape = Shape::new(&head, &declarator);
        let bytes = declarator.elements().unwrap_or(0).saturating_mul(head.element_bytes());
        Self { head, declarator, shape, bytes, passed: Cell::new(0) }
    }

    /// Whether the checks have let pass such a parameter at a place.
    pub(crate) fn passes(&self, site: Site) -> bool {
        self.passed.get() & 1 << site as u8 != 0
    }

    pub(crate) fn pass(&self, site: Site) {
        self.passed.set(self.passed.get() | 1 << site as u8);
    }
}

impl Parameter {
    /// A parameter whose kind begins at `start`.
    pub(super) fn new(kind: Rc<Kind>, start: TextSize, name: TextRange) -> Self {
        Self { kind, start, name: Some(name) }
    }

    /// The names of a declaration.
    pub(super) fn all_of(declaration: Declaration) -> impl Iterator<Item = Self> {
        let Declaration { head, declarators } = declaration;
        declarators.into_iter().map(move |mut declarator| {
            let name = declarator.name.take();
            Self { kind: Rc::new(Kind::new(head.clone(), declarator)), start: TextSize::new(0), name }
        })
    }

    /// As declared, with all places.
    pub(crate) fn declaration(&self) -> Declaration {
        let Kind { head, declarator, .. } = &*self.kind;
        let declarator = Declarator { name: self.name, ..declarator.clone() };
        Declaration { head: head.moved(self.start), declarators: Declarators::from_buf([declarator]) }
    }
}

impl PartialEq for Parameter {
    fn eq(&self, other: &Self) -> bool {
        self.declaration() == other.declaration()
    }
}

/// The kinds of the parameters so far, by what is written before the names. Those of one entry differ in what follows.
#[derive(Debug, Default)]
pub(super) struct Kinds<'t>(Vec<(&'t str, Vec<Rc<Kind>>)>);

impl<'t> Kinds<'t> {
    /// Most entries, and most kinds of one.
    const MOST: usize = 16;

    /// The entry of what is written at the start of a text, if a name follows, and how long that is.
    pub(super) fn find(&self, text: &str) -> Option<(usize, usize)> {
        let is_here = |written: &str| {
            let behind = text.strip_prefix(written).and_then(|rest| rest.bytes().next());
            behind.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%'))
        };
        let index = self.0.iter().position(|&(written, _)| is_here(written))?;
        Some((index, self.0[index].0.len()))
    }

    /// The kind of an entry with this declarator.
    pub(super) fn get(&mut self, entry: usize, declarator: Declarator) -> Rc<Kind> {
        let kinds = &mut self.0[entry].1;
        if let Some(known) = kinds.iter().find(|kind| kind.declarator == declarator) {
            return Rc::clone(known);
        }
        let kind = Rc::new(Kind::new(kinds[0].head.clone(), declarator));
        if kinds.len() < Self::MOST {
            kinds.push(Rc::clone(&kind));
        }
        kind
    }

    /// Adds an entry.
    pub(super) fn add(&mut self, written: &'t str, kind: &Rc<Kind>) {
        // Letters behind a word would be part of it.
        if self.0.len() < Self::MOST && !written.bytes().next_back().is_none_or(is_word) {
            self.0.push((written, vec![Rc::clone(kind)]));
        }
    }
}

/// Lays out parameters one behind the other.
#[derive(Default)]
pub(crate) struct Layout {
    /// Bytes so far.
    end: u32,
}

impl Layout {
    /// The next parameter, with this name.
    pub(crate) fn add(&mut self, kind: &Kind, name: &str) -> Param {
        let size = u32::try_from(kind.bytes).unwrap_or(u32::MAX);
        let Shape { ty, align, .. } = kind.shape;
        let offset = self.end.checked_next_multiple_of(align).unwrap_or(u32::MAX);
        self.end = offset.saturating_add(size);
        Param { name: name.to_owned(), ty, size, align, offset, reg: None, pointer: kind.head.pointer }
    }
}
