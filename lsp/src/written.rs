//! Answers that their handlers write as JSON.
//!
//! tower-lsp makes a tree of each answer: 32 bytes for each number, of which the semantic tokens of a large document
//! have millions. A handler of such an answer writes it as text and leaves it in the task that awaits the answer;
//! tower-lsp sees a null in its place.

use std::cell::RefCell;

use serde::Serialize;

/// An answer as JSON.
pub struct Written(Vec<u8>);

impl From<String> for Written {
    /// `json` is one value.
    fn from(json: String) -> Self {
        Self(json.into_bytes())
    }
}

impl From<Written> for Vec<u8> {
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
        .map(Written)
        .inspect_err(|error| tracing::error!("answer is not JSON: {error}"))
        .ok()
}

/// Leaves an answer for the task's [`collect`].
pub fn leave(answer: Written) {
    // Without such a task there is no client to write to.
    let _ = WRITTEN.try_with(|written| written.replace(Some(answer)));
}

/// Awaits the answer of a handler, and gives with it what the handler left.
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
        let text = |written: Option<Written>| String::from_utf8(written.unwrap().into()).unwrap();
        assert_eq!((first.0, text(first.1)), (1, "[1]".to_owned()));
        assert_eq!((second.0, text(second.1)), (2, "[2]".to_owned()));
        assert!(collect(async {}).await.1.is_none());
    }
}
