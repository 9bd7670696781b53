//! Which functions have been compiled, for questions that do not wait for the compiler.

use salsa::plumbing::AsId;

use crate::at_work::look;
use crate::compile::compile_function;
use crate::db::{Database, Db, SourceFile};
use crate::items::{Item, items};

/// Whether a function has been compiled or needs no compiling. `index` is its place among the items of the file.
/// Compiles nothing.
pub fn is_ready(db: &Database, file: SourceFile, index: usize) -> bool {
    let Some(&item) = items(db, file).get(index) else { return true };
    // To ask for one that another thread compiles would be to wait for that thread.
    !file.at_work(db).contains(item.as_id())
        && look(db, |db| {
            compile_function(db, items(db, file)[index]);
        })
}

/// The bytes of text of a function, for guesses at how long it takes to compile.
pub fn length(db: &Database, file: SourceFile, index: usize) -> usize {
    items(db, file).get(index).map_or(0, |item| item.text(db).len())
}

/// Compiles a function.
pub fn make_ready(db: &Database, file: SourceFile, index: usize) {
    if let Some(&item) = items(db, file).get(index) {
        compile_function(db, item);
    }
}

/// Whether an answer waits for functions to be compiled.
#[derive(Clone, Copy)]
pub enum Code<'a> {
    /// It waits.
    Awaited,
    /// It says of some functions that they are being compiled: of those for which this gives false, asked with their
    /// places among the items of the file.
    IfReady(&'a dyn Fn(&[usize]) -> Vec<bool>),
}

impl Code<'_> {
    /// Which of `wanted`, in text order, can be asked for their code.
    pub(crate) fn ready(self, db: &dyn Db, file: SourceFile, wanted: &[Item<'_>]) -> Vec<bool> {
        let Self::IfReady(ask) = self else { return vec![true; wanted.len()] };
        let mut all = items(db, file).iter().enumerate();
        let places = wanted.iter().filter_map(|item| all.find(|(_, other)| *other == item));
        let places: Vec<usize> = places.map(|(at, _)| at).collect();
        ask(&places)
    }

    /// Whether a function can be asked for its code.
    pub(crate) fn is_ready(self, db: &dyn Db, file: SourceFile, item: Item<'_>) -> bool {
        self.ready(db, file, &[item]) != [false]
    }
}
