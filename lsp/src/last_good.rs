//! Keeps the last text about each compiled function, to show it while the function has errors.

use std::sync::{Mutex, PoisonError};

use ptx_analysis::ide::Standing;
use rustc_hash::FxHashMap;

/// Texts by function name.
#[derive(Debug, Default)]
pub struct LastGood(Mutex<FxHashMap<String, String>>);

impl LastGood {
    /// The text to show about a function: its current text, or the last text about the compiled function, marked as
    /// old.
    pub fn shown(&self, function: &str, text: String, standing: Standing) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match standing {
            Standing::Compiled => {
                known.insert(function.to_owned(), text.clone());
                text
            }
            // The mark comes first because editors cut long hints.
            Standing::Later => match known.get(function) {
                Some(old) => format!("was: {old}"),
                None => text,
            },
            Standing::Never => {
                known.remove(function);
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_good_text_is_kept() {
        let all = LastGood::default();
        let errors = Standing::Later;
        assert_eq!(all.shown("k", "not compiled".into(), errors), "not compiled");
        assert_eq!(all.shown("k", "8 registers".into(), Standing::Compiled), "8 registers");
        assert_eq!(all.shown("k", "not compiled".into(), errors), "was: 8 registers");
        assert_eq!(all.shown("other", "not compiled".into(), errors), "not compiled");
        assert_eq!(all.shown("k", "not supported".into(), Standing::Never), "not supported");
        assert_eq!(all.shown("k", "not compiled".into(), errors), "not compiled");
    }
}
