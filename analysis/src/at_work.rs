//! The functions that are being compiled, and threads that compile nothing.
//!
//! The database computes what it is asked for. To find out whether a result is there, a thread says that it only looks
//! ([`look`]), and a query about to compile unwinds on such a thread, as if it had been cancelled.

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

    /// To be called before anything is compiled. Unwinds on a thread that only looks.
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

/// Whether `ask` finds everything that it asks for compiled. What is not compiled stays so.
pub(crate) fn look<D: Database + Clone>(db: &D, ask: impl FnOnce(&D)) -> bool {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            ONLY_LOOKS.set(false);
        }
    }
    // A handle of its own: what stops the looking stops nothing else.
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
