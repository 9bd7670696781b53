//! Limits how long an answer waits for functions to be compiled.
//!
//! Functions that are compiled already are available at once. A worker compiles the others, and continues after the
//! answer has been sent without them; then the server asks the client to fetch hints and lenses again, if the client
//! supports this.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use ptx_analysis::{Database, SourceFile, catch_cancelled, is_ready, length, make_ready};
use tokio::runtime::Handle;
use tower_lsp::lsp_types::Url;

use crate::owner::{Event, Snapshot};

/// The time limit for a hover, which the user waits for.
pub const HOVER: Duration = Duration::from_millis(2);
/// The time limit for hints and lenses: most functions are compiled within it. The client keeps showing the old ones
/// meanwhile.
pub const HINTS: Duration = Duration::from_millis(50);

/// How many bytes of text at most can be compiled in a millisecond: several times the usual number. If a function is
/// too large for the time limit at this pace, the answer does not wait for it.
const PACE: usize = 8 << 10;

/// The delay before a worker starts that no answer waits for.
const START: Duration = Duration::from_millis(20);

/// Workers for one document. They compile the same functions, so additional workers would only wait for these.
const WORKERS: usize = 2;
/// How often a worker asks the client to fetch the results so far.
const REFRESH: Duration = Duration::from_millis(500);

/// What requests about one version of a document need in order to wait for compiled functions.
#[derive(Clone)]
pub struct Patience {
    pub uri: Url,
    pub version: i32,
    pub events: Sender<Event>,
    pub runtime: Handle,
    /// Shared by all requests about the document; each worker holds a reference too.
    pub workers: Arc<()>,
    /// The document is of another language. Its files come and go with the snippets.
    pub is_embedded: bool,
    /// The client can be asked to fetch hints again that were incomplete.
    pub refreshes_hints: bool,
    pub refreshes_lenses: bool,
}

impl Patience {
    /// Whether each of the functions `wanted`, indices of items of `file`, is compiled after at most `time`.
    pub fn compiled(&self, db: &Database, file: SourceFile, wanted: &[usize], time: Duration) -> Vec<bool> {
        let mut ready: Vec<bool> = wanted.iter().map(|&index| is_ready(db, file, index)).collect();
        let missing: Vec<usize> = (0..wanted.len()).filter(|&at| !ready[at]).collect();
        // The document and this request hold two references.
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
            // A change of the text stops the worker, which also ends this loop.
            let Ok(at) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
            ready[at] = true;
        }
        ready
    }

    /// Starts the worker after the answer has been sent, so that it does not compete with the answer. The worker takes
    /// its own snapshot then: a snapshot held since now would delay the next edit.
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

    /// The worker: compiles the functions of `work`, and after each sends the value that is paired with it.
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
