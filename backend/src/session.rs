//! State of a compilation besides its input: the cancellation checkpoint, and the requested output of stages.
//!
//! The backend does no IO: it collects the output here, and the caller prints it.

use std::time::{Duration, Instant};

/// Lent by the caller of [`crate::compile()`].
pub struct Session<'a> {
    /// Called at every phase boundary and inside every loop that may exceed a millisecond. Cancels by
    /// unwinding.
    pub checkpoint: &'a dyn Fn(),
    /// The stage whose results are requested, one of [`crate::compile::stages`].
    pub shown: Option<&'static str>,
    /// The text of the function after each run of that stage.
    pub dumps: Vec<String>,
    /// The time of each stage in execution order, if requested.
    pub times: Option<Times>,
}

/// The time of each stage, measured from the end of the previous one.
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

    /// Ends a stage: records its time and text if requested, and allows the compilation to be cancelled.
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
