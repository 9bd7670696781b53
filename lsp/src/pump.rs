//! An output that never blocks its writer.
//!
//! The transport's links are bounded, so a client that stops reading would stop the server reading too, and
//! both would wait for ever. Writes go to an unbounded channel; a task of its own drains it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

pub struct Pump(UnboundedSender<Vec<u8>>);

/// Starts draining into `output`. The task ends when the pump is dropped and everything is written.
pub fn pump(mut output: impl AsyncWrite + Unpin + Send + 'static) -> (Pump, JoinHandle<()>) {
    let (sender, mut receiver) = unbounded_channel::<Vec<u8>>();
    let task = tokio::spawn(async move {
        while let Some(bytes) = receiver.recv().await {
            if output.write_all(&bytes).await.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    });
    (Pump(sender), task)
}

impl AsyncWrite for Pump {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let sent = self.0.send(bytes.to_vec());
        Poll::Ready(sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
