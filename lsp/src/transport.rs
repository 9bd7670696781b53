//! Reads messages, dispatches them in order and writes the answers.
//!
//! Document notifications go directly to the owner. Every other call goes to the service. The transport polls the call
//! once before it reads the next message, so that the call posts its event to the owner in order too; then a separate
//! task completes it. Messages that are not finished count as [`Load`]; above a limit the transport reads no more. No
//! finished answer waits for the client to read or to send, so the server cannot deadlock with itself.

use std::sync::Arc;
use std::time::Duration;

use crate::frame::{Frame, Frames};
use crate::lanes::Lanes;
use crate::message::{self, Message, Refusal};
use crate::notification;
use crate::outbox::Outbox;
use crate::owner::Event;
use crate::parent::Parent;
use crate::written::{self, Written};
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::Value;
use std::sync::mpsc::Sender;
use tokio::io::AsyncRead;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;
use tower_lsp::jsonrpc::{Request, Response};
use tower_lsp::{ClientSocket, ExitedError};

/// The total size of the messages in progress, in KiB. A message longer than this is processed alone.
const LIMIT: u32 = 64 << 10;
/// The cost of a message besides its bytes: the future that answers it.
const OVERHEAD: usize = 4 << 10;

/// How long requests in progress may take after `exit`.
const AFTER_EXIT: Duration = Duration::from_millis(50);
/// How long requests in progress may take after the client has closed the stream. Scripts close it right after their
/// last request.
const AFTER_END: Duration = Duration::from_secs(10);

/// The share of a message in the total size of the messages in progress. Dropping it returns the share.
#[derive(Debug)]
pub struct Load(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Load {
    /// Waits until there is room for a message of this size.
    async fn take(all: &Arc<Semaphore>, bytes: usize) -> Self {
        let share = u32::try_from((bytes + OVERHEAD) >> 10).unwrap_or(LIMIT).min(LIMIT);
        Load(all.clone().acquire_many_owned(share).await.expect("the semaphore is never closed"))
    }
}

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The client sent `shutdown` first.
    Orderly,
    Abrupt,
}

pub struct Transport<S> {
    pub service: S,
    pub outbox: Outbox,
    pub events: Sender<Event>,
    pub lanes: Arc<Lanes>,
    /// Receives the process that the client names.
    pub parent: Parent,
    load: Arc<Semaphore>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Uninitialized,
    Running,
    ShutDown,
}

impl<S> Transport<S>
where
    S: Service<Request, Response = Option<Response>, Error = ExitedError>,
    S::Future: Send + Unpin + 'static,
{
    pub fn new(service: S, outbox: Outbox, events: Sender<Event>, lanes: Arc<Lanes>, parent: Parent) -> Self {
        let load = Arc::new(Semaphore::new(LIMIT as usize));
        Self { service, outbox, events, lanes, parent, load, stage: Stage::Uninitialized }
    }

    /// Serves until `exit` or until a stream ends. Requests in progress then get a short time to finish.
    pub async fn run(mut self, input: impl AsyncRead + Unpin, socket: ClientSocket) -> Ending {
        let (mut calls, mut replies) = socket.split();
        let outbox = self.outbox.clone();
        let forward = tokio::spawn(async move {
            while let Some(call) = calls.next().await {
                outbox.put(&call);
            }
        });
        let mut frames = Frames::new(input);
        let mut patience = AFTER_END;
        while self.outbox.room().await {
            let body = match frames.next().await {
                None => break,
                Some(Frame::Malformed(fault)) => {
                    self.outbox.put(&Refusal::parse_error(fault));
                    continue;
                }
                Some(Frame::Body(body)) => body,
            };
            let load = Load::take(&self.load, body.len()).await;
            match message::parse(body) {
                Ok(Message::Call(call)) if call.method() == "exit" => {
                    patience = AFTER_EXIT;
                    break;
                }
                Ok(Message::Call(call)) => self.call(call, load).await,
                Ok(Message::Reply(reply)) => drop(replies.send(reply).await),
                Err(Some(refusal)) => self.outbox.put(&refusal),
                Err(None) => {}
            }
        }
        let _ = tokio::time::timeout(patience, self.load.acquire_many(LIMIT)).await;
        forward.abort();
        match self.stage {
            Stage::ShutDown => Ending::Orderly,
            Stage::Uninitialized | Stage::Running => Ending::Abrupt,
        }
    }

    async fn call(&mut self, call: Request, load: Load) {
        let is_request = call.id().is_some();
        match (call.method(), self.stage) {
            ("initialize", Stage::Uninitialized) if is_request => return self.initialize(call).await,
            // As the protocol says.
            (_, Stage::Uninitialized) if !is_request => return,
            ("shutdown", Stage::Running) if is_request => self.stage = Stage::ShutDown,
            _ => {}
        }
        if !is_request && notification::is_of_a_document(&call) {
            let event = notification::event(call, load);
            if let Some(Event::Open { uri, .. } | Event::Change { uri, .. } | Event::Close { uri }) = &event {
                self.lanes.changed(uri);
            }
            if let Some(event) = event {
                // The owner ends only with the process.
                let _ = self.events.send(event);
            }
            return;
        }
        let mut answer = Box::pin(written::collect(self.service.call(call)));
        if let Some(answer) = (&mut answer).now_or_never() {
            return put(&self.outbox, answer);
        }
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            put(&outbox, answer.await);
            drop(load);
        });
    }

    /// Answers `initialize` before the next message is read, because the meaning of the next message may depend on it.
    async fn initialize(&mut self, call: Request) {
        let process = call.params().and_then(|params| params.get("processId")?.as_i64());
        let call = with_old_names(call);
        let answer = written::collect(self.service.call(call)).await;
        if let Ok(Some(answer)) = &answer.0
            && answer.is_ok()
        {
            self.stage = Stage::Running;
            if let Some(process) = process {
                self.parent.is(process);
            }
        }
        put(&self.outbox, answer);
    }
}

/// The request `initialize` with `workspace.diagnostic`, as the protocol's types here call `workspace.diagnostics`.
fn with_old_names(call: Request) -> Request {
    let (method, id, params) = call.into_parts();
    let mut params = params.unwrap_or_default();
    let given = params.pointer("/capabilities/workspace/diagnostics").cloned();
    let workspace = params.pointer_mut("/capabilities/workspace").and_then(Value::as_object_mut);
    if let (Some(given), Some(workspace)) = (given, workspace) {
        workspace.entry("diagnostic").or_insert(given);
    }
    let call = Request::build(method).params(params);
    match id {
        Some(id) => call.id(id).finish(),
        None => call.finish(),
    }
}

fn put(outbox: &Outbox, answer: (Result<Option<Response>, ExitedError>, Option<Written>)) {
    match answer {
        (Ok(Some(answer)), Some(written)) if answer.is_ok() => outbox.put_written(answer.id(), written),
        (Ok(Some(answer)), _) => outbox.put(&answer),
        (Ok(None) | Err(_), _) => {}
    }
}
