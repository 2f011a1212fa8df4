//! The plugin's state: what the model has seen, and the history of changes.

use std::sync::OnceLock;

use jaato_plugin_sdk::prelude::*;
use parking_lot::Mutex;

use crate::history::{Bounds, FilePath, History, HistoryError};
use crate::sights::{Sight, Sights};
use crate::{commands, config};

/// The state that all tools share.
pub struct Editor {
    history: Result<History>,
    /// How much of the past is kept.
    pub bounds: Bounds,
    sights: Mutex<Sights>,
    place: OnceLock<Place>,
}

/// Where the session works. It does not change.
#[derive(Debug, Clone)]
pub struct Place {
    /// The session's id; empty for a person's own calls.
    pub session: String,
    /// The name of the execution environment.
    pub environment: String,
    /// Where relative paths begin.
    pub folder: String,
}

impl State for Editor {
    async fn create(home: &Home, saved: Option<Value>) -> Result<Self> {
        let bounds = config::bounds(home).await?;
        // Files can be read without a history: who changes one is told what is wrong with it.
        let history = match home.store().of_workspace().folder().await {
            Ok(folder) => {
                let open = move |_: &Reporter| History::open(folder.as_ref()).map_err(failed);
                home.blocking(open).await.and_then(|opened| opened)
            }
            Err(error) => Err(error),
        };
        let sights = Mutex::new(Sights::from_saved(saved));
        Ok(Self { history, bounds, sights, place: OnceLock::new() })
    }

    async fn save(&self) -> Result<Option<Value>> {
        Ok(Some(self.sights.lock().saved()))
    }

    fn describe(description: &mut Description) {
        description.config_schema = config::schema();
        description.services = vec!["ask".to_owned()];
        description.commands = commands::specs();
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        commands::run(cx, name, arguments).await
    }
}

impl Editor {
    /// Returns the history of the workspace.
    ///
    /// # Errors
    /// Why there is none.
    pub fn history(&self) -> Result<&History> {
        self.history.as_ref().map_err(|error| {
            let text = format!("what is changed cannot be kept: {}", error.message);
            let error = Error { message: text, ..error.clone() };
            if error.hint.is_some() { error } else { error.with_hint("nothing was changed") }
        })
    }

    /// Tells where the session works.
    ///
    /// # Errors
    /// What the host answers.
    pub async fn place(&self, cx: &Reporter) -> Result<&Place> {
        if let Some(place) = self.place.get() {
            return Ok(place);
        }
        let facts = cx.environment().await?;
        // A call that a person typed has no session.
        let session = cx.session().await.map(|session| session.session_id).unwrap_or_default();
        let (environment, folder) = (facts.name, facts.working_directory);
        Ok(self.place.get_or_init(|| Place { session, environment, folder }))
    }

    /// Remembers how the model saw a file.
    pub fn saw(&self, path: &str, sight: Sight) {
        self.sights.lock().remember(path, sight);
    }

    /// Forgets a file that is gone.
    pub fn forget(&self, path: &str) {
        self.sights.lock().forget(path);
    }

    /// Returns how the model saw a file last.
    pub fn seen(&self, path: &str) -> Option<Sight> {
        self.sights.lock().get(path).cloned()
    }
}

impl Place {
    /// Names a file for the history.
    pub fn name(&self, absolute: &str) -> FilePath {
        FilePath::new(absolute, &self.folder, &self.environment)
    }
}

/// Makes an error of the history one that people and models read.
pub fn failed(error: HistoryError) -> Error {
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
        return told.with_hint("read it again, then change it anew");
    }
    if is_full { told.with_hint("the disk is full: free some space") } else { told }
}
