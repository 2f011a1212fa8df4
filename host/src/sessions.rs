//! `jaato session`: lists, shows, searches and changes saved sessions, without a model; and how
//! `run` and `chat` continue them.
//!
//! Commands that only read do not claim a session, so another process may have it open.

mod change;
mod conversation;
mod export;
mod follow;
mod import;
mod list;
pub mod resume;
mod show;
mod time;

pub use change::{delete_sessions, fork_session, rebuild_index, rename_session, rewind_session};
pub use export::{ExportForm, TraceForm, export_session, export_trace};
pub use follow::follow_session;
pub use import::{ImportArgs, import_sessions};
pub use list::{ListArgs, SearchArgs, list_sessions, search_sessions};
pub use show::show_session;

use std::io::ErrorKind;

use jaato_runtime::saved::new_session_id;
use jaato_runtime::sessions::{IndexProblem, SessionIndex, SessionStore, SessionStoreError};
use jaato_runtime::types::SessionId;
use jaato_runtime::{Runtime, Setup};

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, Exit};
use crate::{report, start};

/// The saved sessions, as the commands use them.
struct SavedSessions {
    store: SessionStore,
    /// The root of this workspace, as the sessions name it.
    workspace: String,
}

impl SavedSessions {
    /// Uses the sessions of this user.
    fn for_user(global: GlobalArgs) -> Result<Self, CommandFailure> {
        Self::from_setup(&start::read_setup(start::setup_arguments(global))?)
    }

    /// Uses the sessions of a runtime's user.
    fn from_runtime(runtime: &Runtime) -> Result<Self, CommandFailure> {
        Self::from_setup(runtime.setup())
    }

    fn from_setup(setup: &Setup) -> Result<Self, CommandFailure> {
        let store = SessionStore::new(setup.folders.sessions_folder()?);
        Ok(Self { store, workspace: setup.workspace.root().display().to_string() })
    }

    /// Copies a session, up to a message of the user or to its end. Returns the id of the copy.
    fn fork(&self, id: &SessionId, before: Option<u64>) -> Result<SessionId, CommandFailure> {
        let up_to = self.store.last_seq_before(id, before).map_err(store_failure)?;
        let copy = new_session_id();
        self.store.fork_session(id, &copy, up_to).map_err(store_failure)?;
        Ok(copy)
    }

    /// Finds the session that the user typed.
    fn find(&self, text: &str) -> Result<SessionId, CommandFailure> {
        self.store.find_session(text).map_err(store_failure)
    }

    /// Opens the index. Returns `None` if there are no sessions, so that nothing is created for
    /// them. Reports sessions that cannot be read.
    fn open_index(&self) -> Result<Option<SessionIndex>, CommandFailure> {
        if !self.store.folder().exists() {
            return Ok(None);
        }
        let (index, problems) = SessionIndex::open(&self.store).map_err(store_failure)?;
        report_problems(&problems);
        Ok(Some(index))
    }
}

fn report_problems(problems: &[IndexProblem]) {
    let line = |problem: &IndexProblem| {
        format!("cannot read session `{}`: {}", problem.session, problem.error)
    };
    report::print_problems(&problems.iter().map(line).collect::<Vec<_>>());
}

/// Converts an error of the store.
fn store_failure(error: SessionStoreError) -> CommandFailure {
    let (exit, hint) = match &error {
        SessionStoreError::NotFound(_)
        | SessionStoreError::InvalidId(_)
        | SessionStoreError::PartTooShort { .. } => {
            (Exit::Usage, Some("`jaato session list --all` lists the sessions"))
        }
        SessionStoreError::Ambiguous { .. } => (Exit::Usage, Some("give more of the id")),
        SessionStoreError::NoPrompt { id, count, .. } => {
            let hint = match count {
                0 => "it has no messages of yours".to_owned(),
                _ => format!("`jaato session show {id}` shows the numbers"),
            };
            return CommandFailure::new(Exit::Usage, &error).hint(hint);
        }
        SessionStoreError::NoRecord { id, .. } => {
            let hint = format!("`jaato session show {id}` shows the conversation");
            return CommandFailure::new(Exit::Usage, &error).hint(hint);
        }
        SessionStoreError::AlreadyExists(_) => (Exit::Usage, None),
        SessionStoreError::InUse { id, .. } => {
            let hint = format!(
                "end that process first, or continue here: `jaato chat --resume {id} --take-over`"
            );
            return CommandFailure::new(Exit::Failed, &error).hint(hint);
        }
        SessionStoreError::TakenOver { .. } => (Exit::Failed, Some("run the command again")),
        SessionStoreError::NewerFormat { .. } => (Exit::Failed, Some("update jaato")),
        SessionStoreError::NotASession(_) => {
            (Exit::Failed, Some("the file is damaged; restore it from a backup"))
        }
        SessionStoreError::Index(_) => {
            (Exit::Failed, Some("`jaato session reindex` makes a new index"))
        }
        SessionStoreError::Place(error) => {
            return CommandFailure::new(Exit::Configuration, error).maybe_hint(error.hint());
        }
        SessionStoreError::Io { error: system, .. } if system.kind() == ErrorKind::StorageFull => {
            (Exit::Failed, Some("free some space, then run the command again"))
        }
        SessionStoreError::Unwritable { .. } | SessionStoreError::Io { .. } => (Exit::Failed, None),
    };
    CommandFailure::new(exit, &error).maybe_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_and_missing_record_have_a_hint() {
        let full = SessionStoreError::Io {
            action: "write",
            path: "/s/a".into(),
            error: ErrorKind::StorageFull.into(),
        };
        let hint = store_failure(full).hint.unwrap();
        assert_eq!(hint, "free some space, then run the command again");
        let missing = SessionStoreError::NoRecord { id: "a".to_owned(), seq: 7 };
        let hint = store_failure(missing).hint.unwrap();
        assert_eq!(hint, "`jaato session show a` shows the conversation");
    }
}
