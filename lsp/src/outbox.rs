//! The messages that wait to be written to the client.
//!
//! Adding a message never waits, so a client that does not read cannot block a thread that holds a lock or a snapshot.
//! Instead, every task waits for [`Outbox::room`] before it starts work that leads to new messages: the reader before
//! it reads the next message, and a request before its work. So the server stops listening to a client that sends
//! requests without reading answers. Memory is bounded by [`LIMIT`] and the answers that are being computed.

use crate::written::{Part, Written};
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tower_lsp::jsonrpc::Id;

/// The number of waiting bytes above which no new work starts. It has room for the answers to thousands of hovers,
/// because a simple client may write all its requests before it reads.
const LIMIT: usize = 32 << 20;

/// A message as the parts that it was made of, so that a long message is not copied.
type Parts = Vec<Part>;

/// The number of bytes that are written at once. Each write runs on another thread.
const CHUNK: usize = 64 << 10;

#[derive(Clone)]
pub struct Outbox {
    messages: UnboundedSender<Parts>,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy)]
struct State {
    /// The number of bytes that are not written yet.
    waiting: usize,
    /// The client is gone, and nothing more will be written.
    broken: bool,
}

impl Outbox {
    /// Starts a task that writes the messages to `output`.
    pub fn new(mut output: impl AsyncWrite + Unpin + Send + 'static) -> Self {
        let (messages, mut queue) = unbounded_channel::<Parts>();
        let state = watch::Sender::new(State { waiting: 0, broken: false });
        let shared = state.clone();
        tokio::spawn(async move {
            while let Some(message) = queue.recv().await {
                let length = length(&message);
                if write(&mut output, message).await.is_err() {
                    shared.send_modify(|state| state.broken = true);
                    return;
                }
                shared.send_modify(|state| state.waiting -= length);
            }
        });
        Self { messages, state }
    }

    /// Adds a message.
    pub fn put(&self, message: &impl Serialize) {
        match serde_json::to_vec(message) {
            Ok(body) => self.put_parts(vec![Part::Own(body)]),
            Err(error) => tracing::error!("message is not JSON: {error}"),
        }
    }

    /// Adds the answer to a request.
    pub fn put_written(&self, id: &Id, answer: Written) {
        let head = r#"{"jsonrpc":"2.0","result":"#;
        let tail = match serde_json::to_string(id) {
            Ok(id) => format!(r#","id":{id}}}"#),
            Err(error) => return tracing::error!("id is not JSON: {error}"),
        };
        let mut parts = vec![Part::Own(head.into())];
        parts.extend(Vec::from(answer));
        parts.push(Part::Own(tail.into()));
        self.put_parts(parts);
    }

    fn put_parts(&self, mut body: Parts) {
        body.insert(0, Part::Own(format!("Content-Length: {}\r\n\r\n", length(&body)).into_bytes()));
        self.state.send_modify(|state| state.waiting += length(&body));
        // If the receiver is gone, so is the client. `room` reports this.
        let _ = self.messages.send(body);
    }

    /// Waits until there is room for new messages. Returns false if the client is gone.
    pub async fn room(&self) -> bool {
        self.until(|state| state.waiting < LIMIT).await
    }

    /// Waits until everything is written. Returns false if the client is gone.
    pub async fn drained(&self) -> bool {
        self.until(|state| state.waiting == 0).await
    }

    async fn until(&self, condition: impl Fn(&State) -> bool) -> bool {
        let mut changes = self.state.subscribe();
        let state = changes.wait_for(|state| state.broken || condition(state)).await;
        state.is_ok_and(|state| !state.broken)
    }
}

fn length(message: &Parts) -> usize {
    message.iter().map(|part| part.len()).sum()
}

async fn write(output: &mut (impl AsyncWrite + Unpin), message: Parts) -> std::io::Result<()> {
    let mut chunk: Vec<u8> = Vec::new();
    for part in message {
        if !chunk.is_empty() && chunk.len() + part.len() > CHUNK {
            output.write_all(&chunk).await?;
            chunk.clear();
        }
        match part.len() {
            0..CHUNK => chunk.extend_from_slice(&part),
            _ => output.write_all(&part).await?,
        }
    }
    output.write_all(&chunk).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncReadExt;
    use tokio::time::timeout;

    #[tokio::test]
    async fn there_is_no_room_until_the_client_reads() {
        let (client, mut server_side) = (tokio::io::duplex(1 << 10), [0; 4096]);
        let (output, mut input) = client;
        let outbox = Outbox::new(output);
        let message = "x".repeat(LIMIT / 4);
        for _ in 0..3 {
            outbox.put(&message);
            assert!(outbox.room().await);
        }
        outbox.put(&message);
        assert!(timeout(Duration::from_millis(20), outbox.room()).await.is_err());
        let reader =
            tokio::spawn(async move { while input.read(&mut server_side).await.is_ok_and(|n| n > 0) {} });
        assert!(outbox.room().await);
        assert!(outbox.drained().await);
        drop(outbox);
        reader.await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_is_gone_makes_nobody_wait() {
        let (output, input) = tokio::io::duplex(1 << 10);
        drop(input);
        let outbox = Outbox::new(output);
        outbox.put(&"x".repeat(2 * LIMIT));
        assert!(!outbox.room().await);
        assert!(!outbox.drained().await);
    }
}
