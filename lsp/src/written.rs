//! Answers that their handlers serialize to JSON themselves.
//!
//! tower-lsp makes a tree of each answer, with 32 bytes for each number, and the semantic tokens of a large document
//! have millions of numbers. A handler of such an answer serializes it to text and leaves the text in the task that
//! awaits the answer; tower-lsp sees null in its place.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;

/// An answer as JSON, in parts.
pub struct Written(Vec<Part>);

/// A part of a message.
pub enum Part {
    Own(Vec<u8>),
    /// A part that is also kept for later answers.
    Shared(Arc<str>),
}

impl Deref for Part {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(text) => text.as_bytes(),
        }
    }
}

impl From<String> for Written {
    /// `json` must be one JSON value.
    fn from(json: String) -> Self {
        Self(vec![Part::Own(json.into_bytes())])
    }
}

#[cfg(test)]
impl Written {
    pub(crate) fn text(self) -> String {
        let bytes = self.0.iter().flat_map(|part| part.to_vec()).collect();
        String::from_utf8(bytes).expect("JSON is UTF-8")
    }
}

impl From<Vec<Part>> for Written {
    /// The parts must form one JSON value.
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}

impl From<Written> for Vec<Part> {
    fn from(written: Written) -> Self {
        written.0
    }
}

tokio::task_local! {
    static WRITTEN: RefCell<Option<Written>>;
}

/// Writes an answer.
pub fn write(answer: &impl Serialize) -> Option<Written> {
    serde_json::to_vec(answer)
        .map(|json| Written(vec![Part::Own(json)]))
        .inspect_err(|error| tracing::error!("answer is not JSON: {error}"))
        .ok()
}

/// Leaves an answer in the current task for [`collect`].
pub fn leave(answer: Written) {
    // Outside such a task there is no client to write to.
    let _ = WRITTEN.try_with(|written| written.replace(Some(answer)));
}

/// Awaits the answer of a handler. Returns with it the text that the handler left.
pub async fn collect<T>(answer: impl Future<Output = T>) -> (T, Option<Written>) {
    let collected = async { (answer.await, WRITTEN.with(RefCell::take)) };
    WRITTEN.scope(RefCell::new(None), collected).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_task_collects_its_own() {
        let handler = |number: u32| async move {
            tokio::task::yield_now().await;
            leave(write(&[number]).unwrap());
            number
        };
        let (first, second) = tokio::join!(collect(handler(1)), collect(handler(2)));
        let text = |written: Option<Written>| written.unwrap().text();
        assert_eq!((first.0, text(first.1)), (1, "[1]".to_owned()));
        assert_eq!((second.0, text(second.1)), (2, "[2]".to_owned()));
        assert!(collect(async {}).await.1.is_none());
    }
}
