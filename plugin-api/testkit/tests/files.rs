//! Tests of the files of a fake host's session, which are limited to its working directory.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use jaato_plugin_sdk::files::{
    FileEdit, FileFind, FileOrder, FileRead, FileReadText, FileWalk, FileWrite, TextEdit,
};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::service::SessionFacts;
use jaato_plugin_testkit::FakeHost;

/// Writes, changes and finds files.
#[tool_fn(destructive = false, open_world = false, example("tidy up", name = "a.txt"))]
async fn tidy(
    cx: &Cx,
    /// A file.
    name: String,
) -> Result<Output> {
    let files = cx.files();
    let write = || FileWrite { path: name.clone(), parents: true, ..FileWrite::default() };
    files.write(write(), b"one\ntwo\n").await?;
    let edits = vec![TextEdit { old: "two".into(), new: "2".into(), ..TextEdit::default() }];
    files.edit(FileEdit { path: name.clone(), edits, ..FileEdit::default() }).await?;
    let read = FileReadText { path: name.clone(), ..FileReadText::default() };
    let before = files.read_text(read).await?.text;

    let upload = files.upload(write()).await?;
    upload.write(b"up").await?;
    upload.write(b"loaded").await?;
    upload.finish().await?;
    let mut stream = files.stream(FileRead { path: name, ..FileRead::default() }).await?;
    let mut after = Vec::new();
    while let Some(piece) = stream.next().await? {
        after.extend(piece);
    }
    let order = FileOrder::Path;
    let find = FileFind { pattern: "**".into(), order, ..FileFind::default() };
    let found = files.find(find).await?.collect().await?;
    let found: Vec<_> = found.files.into_iter().map(|file| file.path).collect();
    let mut tree = files.walk(FileWalk::default()).await?;
    let mut walked = Vec::new();
    while let Some(page) = tree.next().await? {
        walked.extend(page.entries.into_iter().map(|entry| entry.path));
    }
    Ok(Output::json(json!({
        "before": before, "after": String::from_utf8_lossy(&after), "found": found, "walked": walked,
        "folder": cx.environment().await?.working_directory,
    })))
}

export_plugin! { state: (), tools }

jaato_plugin_testkit::conformance!(crate: tool; |suite| suite.with_all_examples());

#[test]
fn tools_work_on_the_files_of_the_sessions_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().to_string_lossy().into_owned();
    let facts = SessionFacts { working_directory: path.clone(), ..SessionFacts::default() };
    let host = FakeHost::new(__jaato::MODULE).with_session(facts);
    let done = host.call("tidy", json!({ "name": "new/a.txt" })).unwrap();
    assert_eq!(
        json!(done.content),
        json!({
            "before": "one\n2\n", "after": "uploaded", "found": ["new/a.txt"],
            "walked": ["new", "new/a.txt"], "folder": path,
        })
    );
    assert_eq!(std::fs::read_to_string(folder.path().join("new/a.txt")).unwrap(), "uploaded");
}

#[test]
fn path_outside_the_session_folder_is_refused_even_by_link() {
    let host = FakeHost::new(__jaato::MODULE);
    let outside = tempfile::tempdir().unwrap();
    for name in ["../a.txt", "/etc/hostname", "b/../../a.txt"] {
        let error = host.call("tidy", json!({ "name": name })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied, "{name}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    let working_directory = folder.path().to_string_lossy().into_owned();
    let facts = SessionFacts { working_directory, ..SessionFacts::default() };
    let host = FakeHost::new(__jaato::MODULE).with_session(facts);
    let error = host.call("tidy", json!({ "name": "link/a.txt" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied, "{error}");
    assert!(std::fs::read_dir(outside.path()).unwrap().next().is_none());
}
