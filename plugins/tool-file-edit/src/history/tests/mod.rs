//! Tests of the history as sessions use it.

mod processes;
mod sessions;

use super::{ChangeId, ContentId, FilePath, FileTransition, RecordedChange, StoredFileState};

pub(super) fn path(name: &str) -> FilePath {
    FilePath::new(&format!("/srv/{name}"), "/srv", "local")
}

pub(super) fn kept(text: &str) -> StoredFileState {
    StoredFileState {
        content: ContentId::from_bytes(text.as_bytes()),
        size: text.len() as u64,
        mode: 0o644,
    }
}

pub(super) fn edit(name: &str, before: Option<&str>, after: Option<&str>) -> FileTransition {
    let (before, after) = (before.map(kept), after.map(kept));
    FileTransition { path: path(name), before, after, moved_from: None }
}

pub(super) fn change(id: u64, files: Vec<FileTransition>) -> RecordedChange {
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
