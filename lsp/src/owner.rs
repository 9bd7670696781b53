//! The thread that owns the database and the documents. There is only one.
//!
//! Every change of state arrives here as an [`Event`], in order. Reads run elsewhere: the owner clones the database,
//! which gives a snapshot, and passes the clone to a worker. Setting a text cancels the workers that hold older
//! snapshots and blocks until they have dropped them, so the owner is a thread and not an async task. No async code
//! ever holds a snapshot.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::by_item::ByItem;
use crate::config::Config;
use crate::document::{Document, Encoding};
use crate::handlers::{embedded, semantic_tokens};
use crate::host::{Embedded, Host};
use crate::last_good::LastGood;
use crate::patience::Patience;
use crate::progress::Progress;
use crate::reference::{self, Stop};
use crate::report::report;
use crate::transport::Load;
use ptx_analysis::check::SEPARATE_COMPILATION;
use ptx_analysis::ide::{self, LiveRegisters};
use ptx_analysis::module::effective_target;
use ptx_analysis::{CancellationToken, Database, SourceFile, catch_cancelled};
use ptx_embed::Language;
use rustc_hash::FxHashMap;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower_lsp::Client;
use tower_lsp::lsp_types::{self as lsp, TextDocumentContentChangeEvent, Url};

/// How long the user must stop typing before functions are compiled in the background.
const QUIET: Duration = Duration::from_millis(300);

/// The number of documents that background work checks or compiles at once. If thousands of documents are opened
/// together, this leaves room for the user's requests. One compilation uses all cores by itself; a second one lets
/// short compilations pass a long one.
const AT_ONCE: usize = 2;

/// The size of the largest function, in statements, that is compiled in the background while the user types: about a
/// second's work. Larger functions are compiled on save.
const LIVE_LIMIT: u32 = 50_000;

/// How many files of closed documents are kept for reuse, besides two for each open document.
const SPARE: usize = 32;

/// All events that the owner handles.
pub enum Event {
    Initialize {
        config: Config,
        client: ClientAbilities,
    },
    Configure {
        config: Config,
    },
    Open {
        uri: Url,
        version: i32,
        text: String,
        /// The language, if the document is not PTX but may hold some.
        language: Option<Language>,
        load: Load,
    },
    Change {
        uri: Url,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        load: Load,
    },
    Save {
        uri: Url,
    },
    Close {
        uri: Url,
    },
    Read {
        uri: Url,
        job: ReadJob,
        token: Arc<OnceLock<CancellationToken>>,
    },
    /// A request for the list of open documents.
    List {
        reply: oneshot::Sender<Vec<Url>>,
    },
    /// The checks of a version have finished.
    Checked {
        uri: Url,
        version: i32,
        diagnostics: Arc<[ide::Diagnostic]>,
    },
    /// As [`Checked`](Self::Checked), for a document of another language, with its own positions.
    Found {
        uri: Url,
        version: i32,
        diagnostics: Vec<lsp::Diagnostic>,
    },
    /// The user's reference compiler has finished a version.
    Referred {
        uri: Url,
        version: i32,
        outcome: Result<Vec<reference::Function>, String>,
    },
    /// The compilation of all functions of a version has finished, with or without errors.
    Compiled {
        uri: Url,
        version: i32,
        diagnostics: Arc<[ide::Diagnostic]>,
    },
    /// Functions of a version were compiled after an answer had been sent without them.
    Late {
        uri: Url,
        version: i32,
    },
    /// A write to another document cancelled background work on this version.
    Interrupted {
        uri: Url,
        version: i32,
        work: Work,
    },
    /// Background work has ended, for whatever reason.
    Ended {
        work: Work,
    },
    Shutdown,
}

/// The kinds of background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    Check,
    Compile,
}

/// The client's capabilities that the owner needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientAbilities {
    pub encoding: Encoding,
    /// The client requests diagnostics. Otherwise the server sends them unasked.
    pub pulls_diagnostics: bool,
    pub refreshes_diagnostics: bool,
    pub refreshes_inlay_hints: bool,
    pub refreshes_code_lenses: bool,
    pub shows_progress: bool,
}

/// The last answers about a whole document, kept in parts for the next ones.
#[derive(Default)]
pub struct Answers {
    pub tokens: semantic_tokens::Sent,
    pub symbols: ByItem<ide::DocumentSymbol>,
    pub folds: ByItem<ide::Fold>,
}

/// A consistent state of one document, for a worker.
pub struct Snapshot {
    pub db: Database,
    pub file: SourceFile,
    pub uri: Url,
    pub version: i32,
    pub encoding: Encoding,
    document: Document,
    pub config: Arc<Config>,
    /// The findings of the last compilation, if it compiled exactly this version.
    pub compiled: Option<Arc<[ide::Diagnostic]>>,
    pub answers: Arc<Answers>,
    pub last_hints: Arc<LastGood<String>>,
    pub last_lenses: Arc<LastGood<String>>,
    pub last_live: Arc<LastGood<LiveRegisters>>,
    /// The results of the reference compiler for a version.
    pub reference: Option<Referred>,
    /// For requests that need machine code.
    pub patience: Patience,
    /// The snippets, if the document is of another language. `file` is then empty.
    pub embedded: Option<Embedded>,
}

impl Snapshot {
    /// The document, which converts positions.
    pub fn lines(&self) -> &Document {
        &self.document
    }

    /// Whether each of the functions `wanted`, indices of items of `file`, is compiled after at most `time`.
    pub fn compiled(&self, file: SourceFile, wanted: &[usize], time: Duration) -> Vec<bool> {
        self.patience.compiled(&self.db, file, wanted, time)
    }
}

/// A version, and the functions as the reference compiler compiled them.
pub type Referred = (i32, Arc<[reference::Function]>);

/// The work of a handler. Its argument is `None` if the document is not open.
pub type ReadJob = Box<dyn FnOnce(Option<Snapshot>) + Send>;

struct Open {
    document: Document,
    file: SourceFile,
    compiled: Option<(i32, Arc<[ide::Diagnostic]>)>,
    checked: Option<(i32, Arc<[ide::Diagnostic]>)>,
    /// The time at which to compile this version, if the user does not type until then.
    compile_at: Option<Instant>,
    compiling: Option<i32>,
    /// The version is in the queue of checks.
    check_queued: bool,
    answers: Arc<Answers>,
    last_hints: Arc<LastGood<String>>,
    last_lenses: Arc<LastGood<String>>,
    last_live: Arc<LastGood<LiveRegisters>>,
    /// See [`Patience::workers`].
    workers: Arc<()>,
    /// Set if the document is of another language. Its own file then stays empty.
    host: Option<Host>,
    reference: Option<Referred>,
    /// The running reference compiler of this document.
    referring: Option<Stop>,
    /// The diagnostics that the client was sent last were not empty.
    has_sent: bool,
}

/// Notifies the owner when background work ends, even by a panic.
struct EndOf {
    work: Work,
    events: Sender<Event>,
}

impl Drop for EndOf {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Ended { work: self.work });
    }
}

pub struct Owner {
    db: Database,
    config: Arc<Config>,
    abilities: ClientAbilities,
    documents: FxHashMap<Url, Open>,
    /// Empty files of closed documents, for reuse.
    spare: Vec<SourceFile>,
    /// The queue of documents to be checked.
    to_check: VecDeque<Url>,
    checking: usize,
    compiling: usize,
    client: Client,
    runtime: Handle,
    events: Sender<Event>,
}

impl Owner {
    pub fn new(client: Client, runtime: Handle, events: Sender<Event>) -> Self {
        let mut db = Database::default();
        db.set_live_limit(Some(LIVE_LIMIT));
        Self {
            db,
            config: Arc::default(),
            abilities: ClientAbilities::default(),
            documents: FxHashMap::default(),
            spare: Vec::new(),
            to_check: VecDeque::new(),
            checking: 0,
            compiling: 0,
            client,
            runtime,
            events,
        }
    }

    /// Handles events until shutdown or until every sender is dropped.
    pub fn run(mut self, queue: Receiver<Event>) {
        loop {
            let event = match self.next_deadline() {
                None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => queue.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(event) => {
                    if !self.handle_with_followers(event, &queue) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.start_due_compilations(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Handles an event. If it changes a document, handles all changes queued after it too, so that a burst of changes
    /// costs one write to the database. Returns false at shutdown.
    fn handle_with_followers(&mut self, event: Event, queue: &Receiver<Event>) -> bool {
        let mut event = event;
        let mut changed: Vec<Url> = Vec::new();
        loop {
            match event {
                Event::Change { uri, version, changes, load: _load } => {
                    if self.edit(&uri, version, changes) && !changed.contains(&uri) {
                        changed.push(uri);
                    }
                }
                other => {
                    self.commit(&mut changed);
                    return self.handle(other);
                }
            }
            event = match queue.try_recv() {
                Ok(next) => next,
                Err(_) => {
                    self.commit(&mut changed);
                    return true;
                }
            };
        }
    }

    fn handle(&mut self, event: Event) -> bool {
        match event {
            Event::Initialize { config, client } => {
                self.abilities = client;
                self.configure(config);
            }
            Event::Configure { config } if config == *self.config => {}
            Event::Configure { config } => {
                self.configure(config);
                self.refresh();
            }
            Event::Open { uri, version, text, language, load: _load } => {
                self.open(uri, version, &text, language);
            }
            Event::Change { .. } => unreachable!("changes are handled with their followers"),
            Event::Save { uri } => self.save(&uri),
            Event::Close { uri } => self.close(&uri),
            Event::Read { uri, job, token } => self.read(&uri, job, &token),
            Event::List { reply } => {
                let mut all: Vec<Url> = self.documents.keys().cloned().collect();
                all.sort();
                // The request may have been cancelled.
                let _ = reply.send(all);
            }
            Event::Checked { uri, version, diagnostics } => self.checked(&uri, version, diagnostics),
            Event::Referred { uri, version, outcome } => self.referred(&uri, version, outcome),
            Event::Found { uri, version, diagnostics } => self.found(uri, version, diagnostics),
            Event::Compiled { uri, version, diagnostics } => self.compiled(&uri, version, diagnostics),
            Event::Late { uri, version } => self.late(&uri, version),
            Event::Interrupted { uri, version, work } => self.interrupted(&uri, version, work),
            Event::Ended { work } => self.ended(work),
            Event::Shutdown => return false,
        }
        true
    }

    fn configure(&mut self, config: Config) {
        self.db.set_target_override(config.target);
        self.db.set_levels(config.levels.clone());
        if config.embedded != self.config.embedded {
            self.documents.values_mut().for_each(|open| {
                if let Some(host) = &mut open.host {
                    host.enable(config.embedded, &open.document);
                }
            });
        }
        self.config = Arc::new(config);
        self.restart();
    }

    /// Checks and compiles all documents again.
    fn restart(&mut self) {
        let uris: Vec<Url> = self.documents.keys().cloned().collect();
        for uri in uris {
            if let Some(host) = self.documents.get_mut(&uri).and_then(|open| open.host.as_mut()) {
                host.forget();
                host.commit(&mut self.db, &mut self.spare);
            }
            self.start_checks(&uri);
            self.schedule_compilation(&uri);
        }
    }

    fn open(&mut self, uri: Url, version: i32, text: &str, language: Option<Language>) {
        let document = Document::new(text, version, self.abilities.encoding);
        let mut host = language.map(|language| Host::new(language, text, self.config.embedded));
        // For a document of another language, the database holds only the snippets.
        let own = || if language.is_some() { String::new() } else { document.text() };
        let file = match self.documents.remove(&uri) {
            Some(open) => {
                if let Some(host) = open.host {
                    host.close(&mut self.db, &mut self.spare);
                }
                self.db.set_text(open.file, own());
                open.file
            }
            None => match self.spare.pop() {
                Some(file) => {
                    self.db.set_text(file, own());
                    file
                }
                None => self.db.add_file(own()),
            },
        };
        if let Some(host) = &mut host {
            host.commit(&mut self.db, &mut self.spare);
        }
        let open = Open {
            document,
            file,
            compiled: None,
            checked: None,
            compile_at: None,
            compiling: None,
            check_queued: false,
            answers: Arc::default(),
            last_hints: Arc::default(),
            last_lenses: Arc::default(),
            last_live: Arc::default(),
            workers: Arc::default(),
            host,
            reference: None,
            referring: None,
            has_sent: false,
        };
        self.documents.insert(uri.clone(), open);
        self.start_checks(&uri);
        self.schedule_compilation(&uri);
    }

    /// Compiles everything, including functions that are too large to be compiled while the user types.
    fn save(&mut self, uri: &Url) {
        let Some(open) = self.documents.get_mut(uri) else { return };
        if open.host.is_some() {
            return;
        }
        if !open.file.compiles_all(&self.db) {
            self.db.set_compiles_all(open.file, true);
            // A running compilation of this version may leave out large functions.
            open.compiling = None;
        }
        self.start_compilation(uri);
        self.start_reference(uri);
    }

    /// Compiles a saved text with the reference compiler, if the user has one. Stops a run for an older text.
    fn start_reference(&mut self, uri: &Url) {
        let Some(program) = self.config.reference.clone() else { return };
        let Some(open) = self.documents.get_mut(uri) else { return };
        let Some(target) = effective_target(&self.db, open.file) else { return };
        let stop = Stop::default();
        let flag = stop.flag();
        open.referring = Some(stop);
        let is_part = self.config.levels.level(&SEPARATE_COMPILATION) == ide::Severity::Allow;
        let (text, version) = (open.document.text(), open.document.version());
        let (uri, events) = (uri.clone(), self.events.clone());
        self.runtime.spawn_blocking(move || {
            if let Some(outcome) = reference::compile(&program, &text, target, is_part, &flag) {
                let _ = events.send(Event::Referred { uri, version, outcome });
            }
        });
    }

    fn referred(&mut self, uri: &Url, version: i32, outcome: Result<Vec<reference::Function>, String>) {
        let Some(open) = self.documents.get_mut(uri) else { return };
        open.referring = None;
        match outcome {
            Ok(functions) => open.reference = Some((version, functions.into())),
            Err(error) => {
                open.reference = None;
                let client = self.client.clone();
                let message = format!("PTX reference compiler: {error}");
                self.runtime
                    .spawn(async move { client.show_message(lsp::MessageType::WARNING, message).await });
            }
        }
        self.refresh();
    }

    fn close(&mut self, uri: &Url) {
        let Some(open) = self.documents.remove(uri) else { return };
        if let Some(host) = open.host {
            host.close(&mut self.db, &mut self.spare);
        }
        ide::clear_file(&mut self.db, open.file);
        self.spare.push(open.file);
        if self.spare.len() > SPARE + 2 * self.documents.len() {
            self.renew_database();
        }
        if !self.abilities.pulls_diagnostics {
            self.send_diagnostics(uri.clone(), Vec::new(), None);
        }
    }

    /// Replaces the database with an empty one: a database keeps most of the memory that it ever used.
    fn renew_database(&mut self) {
        self.db = self.db.scratch();
        self.spare.clear();
        let db = &self.db;
        self.documents.values_mut().for_each(|open| {
            let text = if open.host.is_some() { String::new() } else { open.document.text() };
            open.file = db.add_file(text);
            if let Some(host) = &mut open.host {
                host.forget_files();
            }
        });
        self.restart();
    }

    /// Applies changes to the rope. Returns false for an unknown document or an outdated version.
    fn edit(&mut self, uri: &Url, version: i32, changes: Vec<TextDocumentContentChangeEvent>) -> bool {
        let Some(open) = self.documents.get_mut(uri) else {
            tracing::warn!("change for {uri} ignored: the document is not open");
            return false;
        };
        if version <= open.document.version() {
            tracing::warn!(
                "unordered change for {uri}: version {} is followed by {version}",
                open.document.version()
            );
        }
        match &mut open.host {
            Some(host) => open.document.apply_watched(version, changes, |document, removed, inserted| {
                host.edit(document, removed, inserted);
            }),
            None => open.document.apply(version, changes),
        }
        true
    }

    /// Sets the edited texts in the database, and checks them.
    fn commit(&mut self, changed: &mut Vec<Url>) {
        for uri in changed.drain(..) {
            let Some(open) = self.documents.get_mut(&uri) else { continue };
            if let Some(host) = &mut open.host {
                host.commit(&mut self.db, &mut self.spare);
                self.start_checks(&uri);
                continue;
            }
            self.db.set_compiles_all(open.file, false);
            self.db.set_text(open.file, open.document.text());
            self.start_checks(&uri);
            self.schedule_compilation(&uri);
        }
    }

    fn snapshot(&self, uri: &Url) -> Option<Snapshot> {
        let open = self.documents.get(uri)?;
        let version = open.document.version();
        let compiled = open.compiled.as_ref().filter(|(v, _)| *v == version).map(|(_, d)| d.clone());
        Some(Snapshot {
            db: self.db.clone(),
            file: open.file,
            uri: uri.clone(),
            version,
            encoding: self.abilities.encoding,
            document: open.document.clone(),
            config: self.config.clone(),
            compiled,
            answers: open.answers.clone(),
            last_hints: open.last_hints.clone(),
            last_lenses: open.last_lenses.clone(),
            last_live: open.last_live.clone(),
            reference: open.reference.clone(),
            patience: Patience {
                uri: uri.clone(),
                version,
                events: self.events.clone(),
                runtime: self.runtime.clone(),
                workers: open.workers.clone(),
                is_embedded: open.host.is_some(),
                refreshes_hints: self.abilities.refreshes_inlay_hints,
                refreshes_lenses: self.abilities.refreshes_code_lenses,
            },
            embedded: open
                .host
                .as_ref()
                .map(|host| host.snapshot(&open.document, self.config.target.is_some())),
        })
    }

    fn read(&self, uri: &Url, job: ReadJob, token: &OnceLock<CancellationToken>) {
        let snapshot = self.snapshot(uri);
        if let Some(snapshot) = &snapshot {
            let _ = token.set(snapshot.db.cancellation_token());
        }
        self.runtime.spawn_blocking(move || job(snapshot));
    }

    fn start_checks(&mut self, uri: &Url) {
        if self.abilities.pulls_diagnostics {
            return;
        }
        let Some(open) = self.documents.get_mut(uri) else { return };
        if !std::mem::replace(&mut open.check_queued, true) {
            self.to_check.push_back(uri.clone());
        }
        self.start_queued_checks();
    }

    fn start_queued_checks(&mut self) {
        while self.checking < AT_ONCE
            && let Some(uri) = self.to_check.pop_front()
        {
            self.start_check(&uri);
        }
    }

    fn start_check(&mut self, uri: &Url) {
        let Some(open) = self.documents.get_mut(uri) else { return };
        open.check_queued = false;
        let Some(snapshot) = self.snapshot(uri) else { return };
        self.checking += 1;
        let events = self.events.clone();
        let end = EndOf { work: Work::Check, events: self.events.clone() };
        self.runtime.spawn_blocking(move || {
            let _end = end;
            let Snapshot { db, file, uri, version, embedded, .. } = snapshot;
            if let Some(embedded) = embedded {
                let found = catch_cancelled(AssertUnwindSafe(|| embedded::publishable(&db, &embedded, &uri)));
                drop((db, embedded));
                let _ = events.send(match found {
                    Ok(diagnostics) => Event::Found { uri, version, diagnostics },
                    Err(_) => Event::Interrupted { uri, version, work: Work::Check },
                });
                return;
            }
            let found = catch_cancelled(AssertUnwindSafe(|| ide::diagnostics(&db, file)));
            drop(db);
            let _ = events.send(match found {
                Ok(found) => Event::Checked { uri, version, diagnostics: found.into() },
                Err(_) => Event::Interrupted { uri, version, work: Work::Check },
            });
        });
    }

    fn ended(&mut self, work: Work) {
        match work {
            Work::Check => {
                self.checking -= 1;
                self.start_queued_checks();
            }
            Work::Compile => {
                self.compiling -= 1;
                self.start_due_compilations();
            }
        }
    }

    /// Restarts cancelled work, unless the document has a newer version.
    fn interrupted(&mut self, uri: &Url, version: i32, work: Work) {
        let Some(open) = self.documents.get_mut(uri) else { return };
        if work == Work::Compile && open.compiling == Some(version) {
            open.compiling = None;
        }
        if version != open.document.version() {
            return;
        }
        match work {
            Work::Check => self.start_checks(uri),
            Work::Compile => self.schedule_compilation(uri),
        }
    }

    fn checked(&mut self, uri: &Url, version: i32, diagnostics: Arc<[ide::Diagnostic]>) {
        let Some(open) = self.documents.get_mut(uri) else { return };
        if version == open.document.version() {
            open.checked = Some((version, diagnostics));
            self.publish(uri);
        }
    }

    /// Publishes the findings of a document of another language. Sends nothing for a document that has no findings now
    /// and had none before.
    fn found(&mut self, uri: Url, version: i32, diagnostics: Vec<lsp::Diagnostic>) {
        let Some(open) = self.documents.get_mut(&uri) else { return };
        let was_sent = std::mem::replace(&mut open.has_sent, !diagnostics.is_empty());
        if version == open.document.version() && (was_sent || open.has_sent) {
            self.send_diagnostics(uri, diagnostics, Some(version));
        }
    }

    fn compiled(&mut self, uri: &Url, version: i32, diagnostics: Arc<[ide::Diagnostic]>) {
        let Some(open) = self.documents.get_mut(uri) else { return };
        if open.compiling == Some(version) {
            open.compiling = None;
        }
        if version != open.document.version() {
            return;
        }
        open.compiled = Some((version, diagnostics));
        if !self.abilities.pulls_diagnostics {
            self.publish(uri);
        }
        self.refresh();
    }

    fn late(&self, uri: &Url, version: i32) {
        if self.documents.get(uri).is_some_and(|open| open.document.version() == version) {
            self.refresh();
        }
    }

    /// Asks the client to fetch the hints, lenses and diagnostics that a compilation may have changed.
    fn refresh(&self) {
        let (client, abilities) = (self.client.clone(), self.abilities);
        self.runtime.spawn(async move {
            if abilities.pulls_diagnostics && abilities.refreshes_diagnostics {
                let _ = client.workspace_diagnostic_refresh().await;
            }
            if abilities.refreshes_inlay_hints {
                let _ = client.inlay_hint_refresh().await;
            }
            if abilities.refreshes_code_lenses {
                let _ = client.code_lens_refresh().await;
            }
        });
    }

    /// Sends the findings of the current version: those of the checks, and those of the compilation if it has finished.
    fn publish(&self, uri: &Url) {
        let Some(snapshot) = self.snapshot(uri) else { return };
        let Some(open) = self.documents.get(uri) else { return };
        let Some((version, checked)) = open.checked.clone() else { return };
        if version != snapshot.version {
            return;
        }
        let compiled = snapshot.compiled.as_deref().unwrap_or_default();
        let all = report(snapshot.lines(), uri, &[&checked, compiled]);
        self.send_diagnostics(uri.clone(), all, Some(version));
    }

    fn send_diagnostics(&self, uri: Url, all: Vec<lsp::Diagnostic>, version: Option<i32>) {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.publish_diagnostics(uri, all, version).await });
    }

    fn schedule_compilation(&mut self, uri: &Url) {
        if !self.config.compile {
            return;
        }
        if let Some(open) = self.documents.get_mut(uri).filter(|open| open.host.is_none()) {
            open.compile_at = Some(Instant::now() + QUIET);
        }
    }

    /// The earliest time at which a compilation can start. `None` while as many compilations run as may run at once:
    /// the end of one starts the next.
    fn next_deadline(&self) -> Option<Instant> {
        let deadlines = self.documents.values().filter_map(|open| open.compile_at);
        deadlines.min().filter(|_| self.compiling < AT_ONCE)
    }

    fn start_due_compilations(&mut self) {
        let now = Instant::now();
        let deadline =
            |(uri, open): (&Url, &Open)| open.compile_at.filter(|&at| at <= now).map(|at| (at, uri.clone()));
        let mut due: Vec<(Instant, Url)> = self.documents.iter().filter_map(deadline).collect();
        due.sort();
        for (_, uri) in due {
            self.start_compilation(&uri);
        }
    }

    /// Compiles every function of the current version. Functions that are compiled already cost nothing.
    fn start_compilation(&mut self, uri: &Url) {
        let enabled = self.config.compile;
        let Some(open) = self.documents.get_mut(uri) else { return };
        if self.compiling >= AT_ONCE {
            open.compile_at.get_or_insert_with(Instant::now);
            return;
        }
        open.compile_at = None;
        let version = open.document.version();
        if !enabled || open.compiling == Some(version) {
            return;
        }
        open.compiling = Some(version);
        let Some(snapshot) = self.snapshot(uri) else { return };
        self.compiling += 1;
        let end = EndOf { work: Work::Compile, events: self.events.clone() };
        let progress = self
            .abilities
            .shows_progress
            .then(|| Progress::begin(&self.client, &self.runtime, "Compiling PTX"));
        let events = self.events.clone();
        self.runtime.spawn_blocking(move || {
            let _end = end;
            let Snapshot { db, file, uri, version, .. } = snapshot;
            let report = |done, total| {
                if let Some(progress) = &progress {
                    progress.report(done, total);
                }
            };
            let found = catch_cancelled(AssertUnwindSafe(|| {
                ptx_analysis::compile_all(&db, file, &report);
                ide::compile_diagnostics(&db, file)
            }));
            drop(db);
            let _ = events.send(match found {
                Ok(found) => Event::Compiled { uri, version, diagnostics: found.into() },
                Err(_) => Event::Interrupted { uri, version, work: Work::Compile },
            });
        });
    }
}
