//! Limits how many requests run at once, in total and for each document. So a document with slow requests leaves
//! workers to the other documents.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tokio::sync::{Semaphore, SemaphorePermit};
use tower_lsp::lsp_types::Url;

/// Requests that may run at once for one document. Several of them need the same compilation and wait for each other.
const EACH: usize = 6;
/// Requests that may run at once for all documents: fewer than the runtime has threads for them.
const ALL: usize = 128;

pub struct Lanes {
    all: Semaphore,
    documents: Mutex<Documents>,
}

/// The documents, each with its number of requests.
type Documents = FxHashMap<Url, (Arc<Document>, usize)>;

struct Document {
    lane: Semaphore,
    /// Counts the changes of the text.
    changes: AtomicU64,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { all: Semaphore::new(ALL), documents: Mutex::default() }
    }
}

impl Lanes {
    /// Records a change of a document. Earlier requests that still wait are cancelled, because they are about the old
    /// text.
    pub fn changed(&self, uri: &Url) {
        if let Some((document, _)) = self.documents().get(uri) {
            document.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Runs `work` when its turn comes. Runs it again if it returns nothing, because a write to another document
    /// cancelled it. Returns `None` once the document itself has changed.
    pub async fn run<T, F>(&self, uri: &Url, mut work: impl FnMut() -> F) -> Option<T>
    where
        F: Future<Output = Option<T>>,
    {
        let member = Member::join(self, uri);
        let document = &member.document;
        let before = document.changes.load(Ordering::Relaxed);
        let _permits = (turn(&document.lane).await, turn(&self.all).await);
        while document.changes.load(Ordering::Relaxed) == before {
            if let Some(result) = work().await {
                return Some(result);
            }
        }
        None
    }

    fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a permit. The semaphores are never closed.
async fn turn(semaphore: &Semaphore) -> Option<SemaphorePermit<'_>> {
    semaphore.acquire().await.ok()
}

/// A request for a document, running or waiting.
struct Member<'a> {
    lanes: &'a Lanes,
    uri: &'a Url,
    document: Arc<Document>,
}

impl<'a> Member<'a> {
    fn join(lanes: &'a Lanes, uri: &'a Url) -> Self {
        let new = || (Arc::new(Document { lane: Semaphore::new(EACH), changes: AtomicU64::new(0) }), 0);
        let mut documents = lanes.documents();
        let (document, members) = documents.entry(uri.clone()).or_insert_with(new);
        *members += 1;
        Self { lanes, uri, document: document.clone() }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let mut documents = self.lanes.documents();
        if let Some((_, members)) = documents.get_mut(self.uri) {
            *members -= 1;
            if *members == 0 {
                documents.remove(self.uri);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn a_document_that_is_busy_leaves_the_others_alone() {
        let lanes = Lanes::default();
        let (slow, other) = (Url::parse("file:///a").unwrap(), Url::parse("file:///b").unwrap());
        let mut stuck: Vec<_> =
            (0..EACH).map(|_| Box::pin(lanes.run(&slow, pending::<Option<()>>))).collect();
        assert!(stuck.iter_mut().all(|work| work.now_or_never().is_none()));
        let mut next = Box::pin(lanes.run(&slow, || ready(Some(()))));
        assert_eq!((&mut next).now_or_never(), None);
        assert_eq!(lanes.run(&other, || ready(Some(()))).now_or_never(), Some(Some(())));
        stuck.pop();
        assert_eq!((&mut next).now_or_never(), Some(Some(())));
        drop((next, stuck));
        assert!(lanes.documents().is_empty());
    }

    #[tokio::test]
    async fn what_waits_while_its_document_changes_is_not_done() {
        let lanes = Lanes::default();
        let uri = Url::parse("file:///a").unwrap();
        let mut stuck: Vec<_> = (0..EACH).map(|_| Box::pin(lanes.run(&uri, pending::<Option<()>>))).collect();
        assert!(stuck.iter_mut().all(|work| work.now_or_never().is_none()));
        let mut next = Box::pin(lanes.run(&uri, || ready(Some(()))));
        assert_eq!((&mut next).now_or_never(), None);
        lanes.changed(&uri);
        stuck.pop();
        assert_eq!((&mut next).now_or_never(), Some(None));
    }
}
