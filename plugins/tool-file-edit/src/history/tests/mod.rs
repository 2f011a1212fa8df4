//! Tests of the history as sessions use it.

mod processes;
mod sessions;

use super::{ChangeId, ContentId, FilePath, FileTransition, RecordedChange, StoredFileState};

pub(super) fn file_path(name: &str) -> FilePath {
    FilePath::new(&format!("/srv/{name}"), "/srv", "local")
}

pub(super) fn stored_state(text: &str) -> StoredFileState {
    StoredFileState {
        content: ContentId::from_bytes(text.as_bytes()),
        size: text.len() as u64,
        mode: 0o644,
    }
}

pub(super) fn transition(name: &str, before: Option<&str>, after: Option<&str>) -> FileTransition {
    let (before, after) = (before.map(stored_state), after.map(stored_state));
    FileTransition { path: file_path(name), before, after, moved_from: None }
}

pub(super) fn done_change(id: u64, files: Vec<FileTransition>) -> RecordedChange {
    RecordedChange {
        id: ChangeId(id),
        at_ms: 0,
        session: "s1".to_owned(),
        tool: "updateFile".to_owned(),
        call: format!("call_{id}"),
        environment: "local".to_owned(),
        undoes: None,
        undone: Vec::new(),
        redone: Vec::new(),
        outcome: Some(super::ChangeOutcome::Done),
        forgotten: 0,
        files,
    }
}
