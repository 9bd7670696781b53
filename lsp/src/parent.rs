//! Watches the process that started the server. When that process ends, the server ends too, even if another process
//! still holds the streams open.

use std::time::Duration;

use tokio::sync::watch;

const INTERVAL: Duration = Duration::from_secs(1);

/// Sets the process that a [`Watch`] watches.
pub struct Parent(watch::Sender<Option<i64>>);

pub struct Watch(watch::Receiver<Option<i64>>);

/// No process is watched until [`Parent::is`] is called.
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
    /// Waits until the process has ended.
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
    // No process can have a number outside this range, so it is ignored.
    let Some(pid) = i32::try_from(process).ok().filter(|&raw| raw > 0).and_then(Pid::from_raw) else {
        return true;
    };
    // For a process of another user, the error is a different one.
    test_kill_process(pid) != Err(Errno::SRCH)
}

/// On other systems, the server ends only when the streams end.
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
