//! Delivers document notifications in order.
//!
//! tower-lsp runs handlers concurrently, so a handler that awaits before it acts may be overtaken by a later
//! edit. This layer sits in front of the service. The transport calls it in message order, so an event posted
//! here, before anything is polled, arrives at the owner in order and needs no free handler slot.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};

use crate::owner::Event;
use serde_json::Value;
use tokio::sync::Notify;
use tower::Service;
use tower_lsp::jsonrpc::{Request, Response};
use tower_lsp::lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams,
};

pub struct Tap<S> {
    inner: S,
    events: Sender<Event>,
    exit: Arc<Notify>,
}

impl<S> Tap<S> {
    /// `exit` is notified when the client asks the server to end.
    pub fn new(inner: S, events: Sender<Event>, exit: Arc<Notify>) -> Self {
        Self { inner, events, exit }
    }
}

/// The event of a document notification; `None` if its parameters are not what the protocol says.
fn event(method: &str, params: Value) -> Option<Event> {
    Some(match method {
        "textDocument/didOpen" => {
            let p: DidOpenTextDocumentParams = serde_json::from_value(params).ok()?;
            let d = p.text_document;
            Event::Open { uri: d.uri, version: d.version, text: d.text }
        }
        "textDocument/didChange" => {
            let p: DidChangeTextDocumentParams = serde_json::from_value(params).ok()?;
            let d = p.text_document;
            Event::Change { uri: d.uri, version: d.version, changes: p.content_changes }
        }
        "textDocument/didSave" => {
            let p: DidSaveTextDocumentParams = serde_json::from_value(params).ok()?;
            Event::Save { uri: p.text_document.uri }
        }
        "textDocument/didClose" => {
            let p: DidCloseTextDocumentParams = serde_json::from_value(params).ok()?;
            Event::Close { uri: p.text_document.uri }
        }
        _ => return None,
    })
}

fn is_document_notification(method: &str) -> bool {
    matches!(
        method,
        "textDocument/didOpen" | "textDocument/didChange" | "textDocument/didSave" | "textDocument/didClose"
    )
}

/// Leaves out parameters that are null, as some clients send with `shutdown`; the transport takes only none.
fn without_null(request: Request) -> Request {
    if request.params() != Some(&Value::Null) {
        return request;
    }
    let (method, id, _) = request.into_parts();
    let request = Request::build(method);
    match id {
        Some(id) => request.id(id).finish(),
        None => request.finish(),
    }
}

impl<S> Service<Request> for Tap<S>
where
    S: Service<Request, Response = Option<Response>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Option<Response>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Option<Response>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if request.method() == "exit" {
            self.exit.notify_one();
        }
        if !is_document_notification(request.method()) {
            return Box::pin(self.inner.call(without_null(request)));
        }
        let (method, _, params) = request.into_parts();
        match params.and_then(|p| event(&method, p)) {
            // The owner is gone only when the process ends.
            Some(event) => drop(self.events.send(event)),
            None => tracing::warn!("malformed {method} ignored"),
        }
        Box::pin(ready(Ok(None)))
    }
}
