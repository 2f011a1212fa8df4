//! The plugin's state: the files that the model has seen, and the history of changes.

use std::sync::OnceLock;

use jaato_plugin_sdk::prelude::*;
use parking_lot::Mutex;

use crate::history::{FilePath, History, HistoryError, HistoryLimits};
use crate::plan::{absolute_path, resolve_links};
use crate::seen_files::{SeenFile, SeenFiles};
use crate::{commands, config};

/// The state that all tools share.
pub struct Editor {
    history: Result<History>,
    /// The limits of the history.
    pub bounds: HistoryLimits,
    sights: Mutex<SeenFiles>,
    place: OnceLock<EditorContext>,
}

/// The execution environment of the session. It does not change.
#[derive(Debug, Clone)]
pub struct EditorContext {
    /// The session's ID. Empty for a command that the user typed.
    pub session: String,
    /// The name of the execution environment.
    pub environment: String,
    /// The folder to which relative paths refer.
    pub folder: String,
}

impl State for Editor {
    async fn create(home: &Home, saved: Option<Value>) -> Result<Self> {
        let bounds = config::read_history_limits(home).await?;
        // Reading files works without a history. Changes report the error.
        let history = match home.store().of_workspace().folder().await {
            Ok(folder) => {
                let open =
                    move |_: &Reporter| History::open(folder.as_ref()).map_err(history_error);
                home.blocking(open).await.and_then(|opened| opened)
            }
            Err(error) => Err(error),
        };
        let sights = Mutex::new(SeenFiles::from_saved(saved));
        Ok(Self { history, bounds, sights, place: OnceLock::new() })
    }

    async fn save(&self) -> Result<Option<Value>> {
        Ok(Some(self.sights.lock().to_saved_state()))
    }

    fn describe(description: &mut Description) {
        description.config_schema = config::settings_schema();
        description.services = vec!["ask".to_owned()];
        description.commands = commands::command_specs();
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        commands::run_command(cx, name, arguments).await
    }
}

impl Editor {
    /// Returns the history of the workspace.
    ///
    /// # Errors
    /// If the history is unavailable.
    pub fn history(&self) -> Result<&History> {
        self.history.as_ref().map_err(|error| {
            let text = format!("cannot store the change in the history: {}", error.message);
            let error = Error { message: text, ..error.clone() };
            if error.hint.is_some() { error } else { error.with_hint("nothing was changed") }
        })
    }

    /// Returns the session's execution environment.
    ///
    /// # Errors
    /// The host's error.
    pub async fn editor_context(&self, cx: &Reporter) -> Result<&EditorContext> {
        if let Some(place) = self.place.get() {
            return Ok(place);
        }
        let facts = cx.environment().await?;
        // A command that the user typed has no session.
        let session = cx.session().await.map(|session| session.session_id).unwrap_or_default();
        let (environment, folder) = (facts.name, facts.working_directory);
        Ok(self.place.get_or_init(|| EditorContext { session, environment, folder }))
    }

    /// Remembers how the model saw a file.
    pub fn remember_seen_file(&self, path: &str, sight: SeenFile) {
        self.sights.lock().remember_file(path, sight);
    }

    /// Forgets a removed file.
    pub fn forget_file(&self, path: &str) {
        self.sights.lock().forget_file(path);
    }

    /// Returns how the model last saw a file.
    pub fn last_seen_file(&self, path: &str) -> Option<SeenFile> {
        self.sights.lock().get(path).cloned()
    }
}

impl EditorContext {
    /// Returns a file's name in the history, from its absolute path without links.
    pub fn file_name(&self, target: &str) -> FilePath {
        FilePath::new(target, &self.folder, &self.environment)
    }

    /// Returns a file's name in the history, from any path of the file.
    pub async fn resolve_file_name(&self, cx: &Reporter, path: &str) -> FilePath {
        self.file_name(&resolve_links(cx, &absolute_path(&self.folder, path)).await)
    }
}

/// Converts a history error to an error for users and models.
pub fn history_error(error: HistoryError) -> Error {
    let is_full = error.is_disk_full();
    let kind = match &error {
        HistoryError::Io { .. } | HistoryError::Damaged(_) => ErrorKind::Io,
        HistoryError::Busy(_) => ErrorKind::Unavailable,
        HistoryError::InUse(_) | HistoryError::TakenBack(_) | HistoryError::Hindered { .. } => {
            ErrorKind::Conflict
        }
        HistoryError::NotKept(_) | HistoryError::NoBackup(_) | HistoryError::NoChange(_) => {
            ErrorKind::NotFound
        }
        HistoryError::TooLarge { .. } | HistoryError::TooManyFiles { .. } => {
            ErrorKind::LimitReached
        }
    };
    let told = Error::new(kind, error.to_string());
    if matches!(error, HistoryError::InUse(_)) {
        return told.with_hint("read it again, then repeat the change");
    }
    if is_full { told.with_hint("the disk is full: free some space") } else { told }
}
