//! Saved sessions: what writes one while it runs, and what a saved one needs to continue.

mod restore;
mod saver;
mod start;

use jaato_session::SavedState;
use jaato_sessions::{
    ReadProblem, SessionOpener, SessionReader, SessionRecord, SessionStore, SessionStoreError,
    SessionWriter, effective_records, record_type,
};
use jaato_types::SessionId;

use crate::runtime::Runtime;
use crate::start_session::new_id_source;
pub use restore::{RestoredSession, read_history_entry, restore_session};
use saver::clean_texts;
pub(crate) use saver::{FileSessionSaver, SaveTarget, SaverAccess};
pub(crate) use start::{SessionSaving, StartedSaver};

/// Whether a session outlives its process.
#[derive(Default)]
pub enum SaveMode {
    /// It does not.
    #[default]
    Off,
    /// It is saved from its first message on.
    New {
        /// The store.
        store: SessionStore,
        /// The workspace's root, as text.
        workspace: String,
        /// The session that opens it, if any.
        opener: Option<SessionOpener>,
    },
    /// It continues a saved session.
    Continue(Box<OpenSession>),
    /// It has the conversation of a saved session, and saves nothing.
    Look(Box<LoadedSession>),
}

/// A saved session as it was read. Another process may have it open.
pub struct LoadedSession {
    /// What the file holds.
    pub restored: RestoredSession,
    /// The model that answered last, or `None` for the configured one.
    pub model: Option<String>,
}

impl LoadedSession {
    /// Reads a saved session.
    ///
    /// # Errors
    /// If the session does not exist, or cannot be read.
    pub fn read(store: &SessionStore, id: &SessionId) -> Result<Self, SessionStoreError> {
        let records = store.read_session(id)?.read_rest()?;
        let restored = restore_session(store, id, &effective_records(records));
        let model = Some(restored.state.model.clone()).filter(|model| !model.is_empty());
        Ok(Self { restored, model })
    }
}

/// A saved session that this process owns, with everything that it needs to continue.
pub struct OpenSession {
    store: SessionStore,
    writer: SessionWriter,
    /// The contents of the file.
    pub restored: RestoredSession,
    /// The root of the workspace in which it began, as text.
    pub workspace: String,
    /// The model that answers first, or `None` for the configured one.
    pub model: Option<String>,
    /// Whether it worked in a container of its own, which is gone.
    pub has_new_container: bool,
}

impl OpenSession {
    /// Opens a saved session. `take_over` replaces a process that has it open.
    ///
    /// # Errors
    /// If there is no such session, another process has it open, or it cannot be read.
    pub fn open(
        store: SessionStore,
        id: &SessionId,
        take_over: bool,
    ) -> Result<Self, SessionStoreError> {
        let opened = store.open_session(id, take_over)?;
        let mut restored = restore_session(&store, id, &effective_records(opened.records));
        restored.problems.extend(opened.problems.iter().map(problem_text));
        if !restored.state.background.is_empty() {
            let ended = restored.state.background.join(", ");
            restored.problems.push(format!("what ran in the background ended with jaato: {ended}"));
        }
        let model = Some(restored.state.model.clone()).filter(|model| !model.is_empty());
        let (writer, workspace) = (opened.writer, opened.workspace);
        let has_new_container = false;
        Ok(Self { store, writer, restored, workspace, model, has_new_container })
    }

    /// Returns the session's id.
    pub fn id(&self) -> &str {
        self.writer.id()
    }
}

/// Reads the last state of a session, without its conversation. The state is empty if none was
/// saved, or it is damaged.
///
/// # Errors
/// If the session cannot be read.
pub fn read_last_state(reader: &mut SessionReader) -> Result<SavedState, SessionStoreError> {
    // It survives rewinds.
    let last = reader.last_record_of(record_type::STATE)?;
    Ok(last.and_then(|it| serde_json::from_value(it.record.data).ok()).unwrap_or_default())
}

impl Runtime {
    /// Removes all keys and secrets that plugins of this process use from a record.
    pub fn clean_record(&self, record: &mut SessionRecord) {
        let services = &self.host().services;
        clean_texts(&mut record.data, &|text| services.without_any_secret(text));
    }
}

fn problem_text(problem: &ReadProblem) -> String {
    match problem {
        ReadProblem::TornEnd { bytes } => {
            format!("the last write did not finish: {bytes} bytes were dropped")
        }
        ReadProblem::Damaged { line, bytes } => {
            format!("the file is damaged: {bytes} bytes from line {line} on were skipped")
        }
    }
}

/// Creates the id of a new session.
pub fn new_session_id() -> SessionId {
    new_id_source().create_session_id()
}
