//! Which functions have been compiled. For requests that do not wait for the compiler.

use salsa::plumbing::AsId;

use crate::at_work::look;
use crate::compile::compile_function;
use crate::db::{Database, Db, SourceFile};
use crate::items::{Item, items};

/// Whether a function has been compiled, or needs no compilation. `index` is its index among the items of the file.
/// This does not compile anything.
pub fn is_ready(db: &Database, file: SourceFile, index: usize) -> bool {
    let Some(&item) = items(db, file).get(index) else { return true };
    // Asking for the code of a function that another thread compiles would wait for that thread.
    !file.at_work(db).contains(item.as_id())
        && look(db, |db| {
            compile_function(db, items(db, file)[index]);
        })
}

/// The length of a function's text in bytes, to estimate how long its compilation takes.
pub fn length(db: &Database, file: SourceFile, index: usize) -> usize {
    items(db, file).get(index).map_or(0, |item| item.text(db).len())
}

/// Compiles a function.
pub fn make_ready(db: &Database, file: SourceFile, index: usize) {
    if let Some(&item) = items(db, file).get(index) {
        compile_function(db, item);
    }
}

/// Whether an answer waits for compilations.
#[derive(Clone, Copy)]
pub enum Code<'a> {
    /// The answer waits.
    Awaited,
    /// The answer does not wait. The callback takes indices of items of the file and returns which of these functions
    /// are compiled. For the others, the answer says that they are being compiled.
    IfReady(&'a dyn Fn(&[usize]) -> Vec<bool>),
}

impl Code<'_> {
    /// For each of `wanted`, which must be in text order: whether its code is available.
    pub(crate) fn ready(self, db: &dyn Db, file: SourceFile, wanted: &[Item<'_>]) -> Vec<bool> {
        let Self::IfReady(ask) = self else { return vec![true; wanted.len()] };
        let mut all = items(db, file).iter().enumerate();
        let places = wanted.iter().filter_map(|item| all.find(|(_, other)| *other == item));
        let places: Vec<usize> = places.map(|(at, _)| at).collect();
        ask(&places)
    }

    /// Whether the code of a function is available.
    pub(crate) fn is_ready(self, db: &dyn Db, file: SourceFile, item: Item<'_>) -> bool {
        self.ready(db, file, &[item]) != [false]
    }
}
