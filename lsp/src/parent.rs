//! The process that started the server. When it is gone the server ends, even if something else still holds the
//! streams open.

use std::time::Duration;

use tokio::sync::watch;

const INTERVAL: Duration = Duration::from_secs(1);

/// Tells a [`Watch`] which process to look at.
pub struct Parent(watch::Sender<Option<i64>>);

pub struct Watch(watch::Receiver<Option<i64>>);

/// Nothing is watched until [`Parent::is`].
pub fn parent() -> (Parent, Watch) {
    let (sender, receiver) = watch::channel(None);
    (Parent(sender), Watch(receiver))
}

impl Parent {
    pub fn is(&self, process: i64) {
        self.0.send_replace(Some(process));
    }
}

impl Watch {
    /// Waits until the process is gone.
    pub async fn gone(mut self) {
        let process = self.0.wait_for(Option::is_some).await.ok().and_then(|process| *process);
        let Some(process) = process else { return std::future::pending().await };
        while is_running(process) {
            tokio::time::sleep(INTERVAL).await;
        }
        tracing::info!("the client process has ended");
    }
}

#[cfg(unix)]
fn is_running(process: i64) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    // A number that no process can have says nothing.
    let Some(pid) = i32::try_from(process).ok().filter(|&raw| raw > 0).and_then(Pid::from_raw) else {
        return true;
    };
    // Processes of other users answer with another error.
    test_kill_process(pid) != Err(Errno::SRCH)
}

/// Elsewhere the end of the streams must do.
#[cfg(not(unix))]
fn is_running(_: i64) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn knows_who_runs() {
        assert!(is_running(i64::from(std::process::id())));
        let mut child = Command::new("true").spawn().unwrap();
        let id = i64::from(child.id());
        child.wait().unwrap();
        assert!(!is_running(id));
        assert!(is_running(0) && is_running(-1) && is_running(i64::MAX));
    }
}
