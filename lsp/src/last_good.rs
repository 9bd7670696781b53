//! Keeps what was last shown about each compiled function, to show it while the function has errors.

use std::sync::{Mutex, PoisonError};

use ptx_analysis::ide::Standing;
use rustc_hash::FxHashMap;

/// Values by function name.
#[derive(Debug)]
pub struct LastGood<T>(Mutex<FxHashMap<String, T>>);

impl<T> Default for LastGood<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> LastGood<T> {
    /// The value to show about a function: its current one, or that of the last compiled function. `old` marks the
    /// latter as old, given the current one and the old one.
    pub fn shown(&self, function: &str, now: T, standing: Standing, old: impl FnOnce(T, &T) -> T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match standing {
            Standing::Compiled => {
                known.insert(function.to_owned(), now.clone());
                now
            }
            Standing::Later => match known.get(function) {
                Some(last) => old(now, last),
                None => now,
            },
            Standing::Never => {
                known.remove(function);
                now
            }
        }
    }
}

/// Marks a text as old. The mark comes first because editors cut long hints.
pub fn marked(_: String, old: &String) -> String {
    format!("was: {old}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_good_text_is_kept() {
        let all = LastGood::default();
        let errors = Standing::Later;
        assert_eq!(all.shown("k", "not compiled".into(), errors, marked), "not compiled");
        assert_eq!(all.shown("k", "8 registers".into(), Standing::Compiled, marked), "8 registers");
        assert_eq!(all.shown("k", "not compiled".into(), errors, marked), "was: 8 registers");
        assert_eq!(all.shown("other", "not compiled".into(), errors, marked), "not compiled");
        assert_eq!(all.shown("k", "not supported".into(), Standing::Never, marked), "not supported");
        assert_eq!(all.shown("k", "not compiled".into(), errors, marked), "not compiled");
    }
}
