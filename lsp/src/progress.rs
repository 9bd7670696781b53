//! A progress bar in the client.
//!
//! The client must confirm a progress bar, so a separate task waits for the confirmation. Reporting progress never
//! waits.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tower_lsp::Client;
use tower_lsp::lsp_types::{
    NumberOrString, ProgressParams, ProgressParamsValue, WorkDoneProgress, WorkDoneProgressBegin,
    WorkDoneProgressCreateParams, WorkDoneProgressEnd, WorkDoneProgressReport, notification, request,
};

static NEXT_TOKEN: AtomicU32 = AtomicU32::new(1);

/// Ends the progress bar when dropped.
pub struct Progress(UnboundedSender<(usize, usize)>);

impl Progress {
    pub fn begin(client: &Client, runtime: &Handle, title: &str) -> Progress {
        let (sender, mut steps) = unbounded_channel::<(usize, usize)>();
        let token = NumberOrString::String(format!("ptx/{}", NEXT_TOKEN.fetch_add(1, Ordering::Relaxed)));
        let (client, title) = (client.clone(), title.to_owned());
        runtime.spawn(async move {
            // A compilation that ends before its first report shows no progress bar.
            let Some(mut step) = steps.recv().await else { return };
            let create = WorkDoneProgressCreateParams { token: token.clone() };
            if client.send_request::<request::WorkDoneProgressCreate>(create).await.is_err() {
                return;
            }
            let begin =
                WorkDoneProgressBegin { title, cancellable: Some(false), message: None, percentage: Some(0) };
            send(&client, &token, WorkDoneProgress::Begin(begin)).await;
            loop {
                // Only the newest report matters.
                while let Ok(newer) = steps.try_recv() {
                    step = newer;
                }
                let (done, total) = step;
                let report = WorkDoneProgressReport {
                    cancellable: Some(false),
                    message: Some(format!("{done} of {total} functions")),
                    percentage: Some((done * 100).checked_div(total).unwrap_or(100) as u32),
                };
                send(&client, &token, WorkDoneProgress::Report(report)).await;
                match steps.recv().await {
                    Some(next) => step = next,
                    None => break,
                }
            }
            send(&client, &token, WorkDoneProgress::End(WorkDoneProgressEnd { message: None })).await;
        });
        Progress(sender)
    }

    pub fn report(&self, done: usize, total: usize) {
        let _ = self.0.send((done, total));
    }
}

async fn send(client: &Client, token: &NumberOrString, value: WorkDoneProgress) {
    let params = ProgressParams { token: token.clone(), value: ProgressParamsValue::WorkDone(value) };
    client.send_notification::<notification::Progress>(params).await;
}
