//! How long an answer waits for functions to be compiled.
//!
//! What is compiled already is found at once. The rest is compiled by a worker that goes on when the answer has been
//! given without it; then the client is asked to fetch hints and lenses again, as far as it can.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use ptx_analysis::{Database, SourceFile, catch_cancelled, is_ready, length, make_ready};
use tokio::runtime::Handle;
use tower_lsp::lsp_types::Url;

use crate::owner::{Event, Snapshot};

/// For a hover, which the user waits for.
pub const HOVER: Duration = Duration::from_millis(2);
/// For hints and lenses, where the client keeps the old ones meanwhile: most functions are compiled in this time.
pub const HINTS: Duration = Duration::from_millis(50);

/// Bytes of text that may be compiled in a millisecond: several times what is usual. It makes no sense to wait for more.
const PACE: usize = 8 << 10;

/// When a worker starts that the answer doesn't wait for.
const START: Duration = Duration::from_millis(20);

/// Workers for one document. They compile the same functions, so more would wait for these.
const WORKERS: usize = 2;
/// How often a worker has the client fetch what there is so far.
const REFRESH: Duration = Duration::from_millis(500);

/// What questions about one version of a document need to have functions compiled while they wait.
#[derive(Clone)]
pub struct Patience {
    pub uri: Url,
    pub version: i32,
    pub events: Sender<Event>,
    pub runtime: Handle,
    /// Shared with all questions about the document, and held by each worker.
    pub workers: Arc<()>,
    /// Files of documents of other languages come and go with the pieces of PTX in them.
    pub is_embedded: bool,
    /// Hints that lack something are asked for again.
    pub refreshes_hints: bool,
    pub refreshes_lenses: bool,
}

impl Patience {
    /// Which of the functions at `wanted`, places among the items of `file`, are compiled in at most `time`.
    pub fn compiled(&self, db: &Database, file: SourceFile, wanted: &[usize], time: Duration) -> Vec<bool> {
        let mut ready: Vec<bool> = wanted.iter().map(|&index| is_ready(db, file, index)).collect();
        let missing: Vec<usize> = (0..wanted.len()).filter(|&at| !ready[at]).collect();
        // The document and the question hold it too.
        if missing.is_empty() || Arc::strong_count(&self.workers) > WORKERS + 2 {
            return ready;
        }
        let most = time.as_millis() as usize * PACE;
        let is_longer: Vec<bool> = wanted.iter().map(|&index| length(db, file, index) > most).collect();
        let (sender, receiver) = channel();
        let work: Vec<(usize, usize)> = missing.iter().map(|&at| (at, wanted[at])).collect();
        if is_longer[missing[0]] && !self.is_embedded {
            self.compile_soon(file, work, sender);
            return ready;
        }
        let (patience, db) = (self.clone(), db.clone());
        self.runtime.spawn_blocking(move || patience.compile(db, file, &work, &sender));
        let end = Instant::now() + time;
        for at in missing {
            if is_longer[at] {
                break;
            }
            // The worker is stopped when the text changes, which ends this too.
            let Ok(at) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
            ready[at] = true;
        }
        ready
    }

    /// Starts the worker when the answer is out, which it would compete with. It takes a snapshot of its own then: one
    /// that is held for so long would delay the next edit.
    fn compile_soon(&self, file: SourceFile, work: Vec<(usize, usize)>, done: Sender<usize>) {
        let patience = self.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(START).await;
            let (uri, events) = (patience.uri.clone(), patience.events.clone());
            let job = Box::new(move |snapshot: Option<Snapshot>| {
                if let Some(Snapshot { db, file: current, version, .. }) = snapshot
                    && (current, version) == (file, patience.version)
                {
                    patience.compile(db, file, &work, &done);
                }
            });
            let _ = events.send(Event::Read { uri, job, token: Arc::default() });
        });
    }

    /// The worker: compiles functions, given with what is sent once each is compiled.
    fn compile(&self, db: Database, file: SourceFile, work: &[(usize, usize)], done: &Sender<usize>) {
        let mut last = Instant::now();
        let mut is_late = false;
        let found = catch_cancelled(AssertUnwindSafe(|| {
            for &(at, index) in work {
                make_ready(&db, file, index);
                is_late |= done.send(at).is_err();
                if is_late && last.elapsed() >= REFRESH {
                    last = Instant::now();
                    self.refresh();
                }
            }
        }));
        // A held snapshot blocks every write.
        drop(db);
        if found.is_ok() && is_late {
            self.refresh();
        }
    }

    fn refresh(&self) {
        let _ = self.events.send(Event::Late { uri: self.uri.clone(), version: self.version });
    }
}
