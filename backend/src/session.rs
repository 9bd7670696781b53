//! What a compilation carries besides its input: the cancellation checkpoint and what is to be shown of it.
//!
//! The backend does no IO: what is shown is collected here for the caller to print.

/// Lent by the caller of [`crate::compile()`].
pub struct Session<'a> {
    /// Called at every phase boundary and inside every loop that may exceed a millisecond. Cancels by
    /// unwinding.
    pub checkpoint: &'a dyn Fn(),
    /// The phase whose results are wanted.
    pub shown: Option<&'static str>,
    /// The text of the function after each run of that phase.
    pub dumps: Vec<String>,
}

impl Default for Session<'_> {
    fn default() -> Self {
        Session { checkpoint: &|| (), shown: None, dumps: Vec::new() }
    }
}

impl<'a> Session<'a> {
    pub fn new(checkpoint: &'a dyn Fn()) -> Self {
        Session { checkpoint, ..Session::default() }
    }

    pub fn checkpoint(&self) {
        (self.checkpoint)();
    }
}
