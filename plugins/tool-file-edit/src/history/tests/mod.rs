//! Tests of the history as sessions use it.

mod processes;
mod sessions;

use super::{Change, ChangeId, ContentId, FilePath, FileStep, Kept};

pub(super) fn path(name: &str) -> FilePath {
    FilePath::new(&format!("/srv/{name}"), "/srv", "local")
}

pub(super) fn kept(text: &str) -> Kept {
    Kept { content: ContentId::of(text.as_bytes()), size: text.len() as u64, mode: 0o644 }
}

pub(super) fn edit(name: &str, before: Option<&str>, after: Option<&str>) -> FileStep {
    let (before, after) = (before.map(kept), after.map(kept));
    FileStep { path: path(name), before, after, moved_from: None }
}

pub(super) fn change(id: u64, files: Vec<FileStep>) -> Change {
    Change {
        id: ChangeId(id),
        at_ms: 0,
        session: "s1".to_owned(),
        tool: "updateFile".to_owned(),
        call: format!("call_{id}"),
        environment: "local".to_owned(),
        undoes: None,
        undone: Vec::new(),
        redone: Vec::new(),
        outcome: Some(super::Outcome::Done),
        forgotten: 0,
        files,
    }
}
