//! Tracks the functions that are being compiled, and threads that must not compile.
//!
//! The database computes every result that is requested. To find out whether a result already exists, a thread declares
//! that it only looks ([`look`]). On such a thread, a query that would compile a function unwinds, as if it had been
//! cancelled.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;
use salsa::{Cancelled, Database, Id};

thread_local! {
    static ONLY_LOOKS: Cell<bool> = const { Cell::new(false) };
}

/// The functions of a file that are being compiled. It never changes a result, so it is not tracked.
#[derive(Debug, Default)]
pub struct AtWork(Mutex<FxHashSet<Id>>);

impl AtWork {
    pub(crate) fn contains(&self, function: Id) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&function)
    }

    /// Must be called before a function is compiled. Unwinds on a thread that only looks.
    pub(crate) fn begin(&self, db: &dyn Database, function: Id) -> Compiling<'_> {
        if ONLY_LOOKS.get() {
            db.cancellation_token().cancel();
            db.unwind_if_revision_cancelled();
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(function);
        Compiling { all: self, function }
    }
}

/// A function that is being compiled, until this is dropped.
pub(crate) struct Compiling<'a> {
    all: &'a AtWork,
    function: Id,
}

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.function);
    }
}

/// Whether all results that `ask` requests have been compiled. Compiles nothing.
pub(crate) fn look<D: Database + Clone>(db: &D, ask: impl FnOnce(&D)) -> bool {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            ONLY_LOOKS.set(false);
        }
    }
    // A separate handle, so that cancelling the look cancels nothing else.
    let handle = db.clone();
    let found = Cancelled::catch(AssertUnwindSafe(|| {
        let _end = End;
        ONLY_LOOKS.set(true);
        ask(&handle);
    }));
    match found {
        Ok(()) => true,
        Err(Cancelled::Local) => false,
        Err(other) => resume_unwind(Box::new(other)),
    }
}
