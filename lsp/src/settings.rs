//! The current settings: those of the project's file, overridden by those of the client. Both may change.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use crate::config::Config;
use crate::owner::Event;
use crate::project::{self, Project, ProjectFile};
use serde_json::{Value, json};
use tower_lsp::Client;
use tower_lsp::lsp_types::{ConfigurationItem, MessageType, Registration};

/// How often the project's file is checked for changes if the client does not report them.
const INTERVAL: Duration = Duration::from_secs(2);

/// The section of the client's settings.
const SECTION: &str = "ptx";

pub struct Settings {
    client: Client,
    events: Sender<Event>,
    /// The client's workspace folder, known after `initialize`.
    root: OnceLock<PathBuf>,
    given: Mutex<Value>,
}

impl Settings {
    pub fn new(client: Client, events: Sender<Event>) -> Self {
        Self { client, events, root: OnceLock::new(), given: Mutex::default() }
    }

    /// Sets the initial settings, from the project in `root` and from the client.
    pub async fn begin(&self, root: Option<PathBuf>, given: Option<Value>) -> Config {
        if let Some(root) = root {
            let _ = self.root.set(root);
        }
        self.give(given.unwrap_or_default());
        self.read().await
    }

    /// The client's workspace folder.
    pub fn root(&self) -> Option<PathBuf> {
        self.root.get().cloned()
    }

    /// The project's file. If there is none and the client `creates` files, a new file in the client's folder.
    pub fn project_file(&self, creates: bool) -> Option<ProjectFile> {
        ProjectFile::of(self.root.get()?, creates)
    }

    /// Takes new settings of the client.
    pub async fn change(&self, given: Value) {
        self.give(given);
        self.renew().await;
    }

    /// Asks the client for its settings, if it gave none at its start. A client that `tells` about changes is asked to
    /// do so. The requests to the client need replies, so no handler may wait for this function.
    pub async fn ask_at_start(self: Arc<Self>, tells: bool) {
        if !self.given.lock().unwrap_or_else(PoisonError::into_inner).is_null() {
            return;
        }
        if tells {
            let registration = Registration {
                id: "settings".to_owned(),
                method: "workspace/didChangeConfiguration".to_owned(),
                register_options: Some(json!({ "section": SECTION })),
            };
            let _ = self.client.register_capability(vec![registration]).await;
        }
        self.ask().await;
    }

    /// Asks the client for its settings. No handler may wait for this function.
    pub async fn ask(self: Arc<Self>) {
        let item = ConfigurationItem { scope_uri: None, section: Some(SECTION.to_owned()) };
        let settings = self.client.configuration(vec![item]).await.unwrap_or_default().into_iter().next();
        if let Some(settings) = settings.filter(Value::is_object) {
            self.change(settings).await;
        }
    }

    /// Reads the project's file again.
    pub async fn renew(&self) {
        let config = self.read().await;
        let _ = self.events.send(Event::Configure { config });
    }

    fn give(&self, given: Value) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = given;
    }

    /// The current settings. Errors in them are shown to the user.
    async fn read(&self) -> Config {
        let project = self.root.get().map_or_else(|| Ok(Project::default()), |root| Project::of(root));
        let project = match project {
            Ok(project) => project,
            Err(error) => {
                self.client.show_message(MessageType::ERROR, error).await;
                Project::default()
            }
        };
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (config, errors) = Config::of(&project).with(&given);
        if !errors.is_empty() {
            let message = format!("PTX settings: {}", errors.join("\nPTX settings: "));
            self.client.show_message(MessageType::ERROR, message).await;
        }
        config
    }

    /// Watches the project's file from now on, with the client's help if the client `tells` about changed files. The
    /// request to the client needs a reply, so no handler may wait for this function.
    pub async fn follow(self: Arc<Self>, tells: bool) {
        let Some(root) = self.root.get() else { return };
        if tells {
            let watcher = json!({ "watchers": [{ "globPattern": format!("**/{}", project::NAME) }] });
            let registration = Registration {
                id: "project".to_owned(),
                method: "workspace/didChangeWatchedFiles".to_owned(),
                register_options: Some(watcher),
            };
            if self.client.register_capability(vec![registration]).await.is_ok() {
                return;
            }
        }
        let mut before = state(root);
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = state(root);
            if std::mem::replace(&mut before, now) != before {
                self.renew().await;
            }
        }
    }
}

/// The path of the project's file, and the time of its last change.
fn state(root: &Path) -> Option<(PathBuf, Option<SystemTime>, u64)> {
    let file = project::find(root)?;
    let data = file.metadata().ok()?;
    Some((file, data.modified().ok(), data.len()))
}
