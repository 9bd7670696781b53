//! What a compilation carries besides its input: the cancellation checkpoint, and what is to be shown of it.
//!
//! The backend does no IO: what is shown is collected here for the caller to print.

use std::time::{Duration, Instant};

/// Lent by the caller of [`crate::compile()`].
pub struct Session<'a> {
    /// Called at every phase boundary and inside every loop that may exceed a millisecond. Cancels by
    /// unwinding.
    pub checkpoint: &'a dyn Fn(),
    /// The stage whose results are wanted, one of [`crate::compile::stages`].
    pub shown: Option<&'static str>,
    /// The text of the function after each run of that stage.
    pub dumps: Vec<String>,
    /// The time that each stage took, in the order in which they ran, where it is wanted.
    pub times: Option<Times>,
}

/// Times of stages, each since the one before ended.
pub struct Times {
    last: Instant,
    pub stages: Vec<(&'static str, Duration)>,
}

impl Times {
    #[expect(clippy::new_without_default, reason = "the clock starts")]
    pub fn new() -> Times {
        Times { last: Instant::now(), stages: Vec::new() }
    }
}

impl Default for Session<'_> {
    fn default() -> Self {
        Session { checkpoint: &|| (), shown: None, dumps: Vec::new(), times: None }
    }
}

impl<'a> Session<'a> {
    pub fn new(checkpoint: &'a dyn Fn()) -> Self {
        Session { checkpoint, ..Session::default() }
    }

    pub fn checkpoint(&self) {
        (self.checkpoint)();
    }

    /// A stage is over: keeps its time and its text where they are wanted, and lets the compilation be cancelled.
    pub(crate) fn over(&mut self, stage: &'static str, text: impl FnOnce() -> String) {
        self.checkpoint();
        if let Some(times) = &mut self.times {
            let now = Instant::now();
            times.stages.push((stage, now - times.last));
        }
        if self.shown == Some(stage) {
            self.dumps.push(text());
        }
        if let Some(times) = &mut self.times {
            times.last = Instant::now();
        }
    }
}
