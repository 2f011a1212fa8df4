//! Tests of `undoFileChange`, `restoreFile` and `listBackups`.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;

use crate::support::EditFixture;

fn call_undo(desk: &EditFixture, path: &str) -> Value {
    desk.call_tool("undoFileChange", json!({ "path": path }))
}

fn call_redo(desk: &EditFixture, path: &str) -> Value {
    desk.call_tool("undoFileChange", json!({ "path": path, "redo": true }))
}

fn update_file(desk: &EditFixture, text: &str) {
    desk.call_tool("updateFile", json!({ "path": "a.txt", "new_content": text }));
}

#[test]
fn undo_walks_back_and_redo_walks_forth() {
    let desk = EditFixture::new().with_file("a.txt", "v1\n");
    update_file(&desk, "v2\n");
    update_file(&desk, "v3\n");
    let result = call_undo(&desk, "a.txt");
    assert_eq!(
        (desk.file_text("a.txt"), &result["diff"]),
        ("v2\n".into(), &json!("@@ -1 +1 @@\n-v3\n+v2"))
    );
    call_undo(&desk, "a.txt");
    assert_eq!(desk.file_text("a.txt"), "v1\n");
    let error = desk.call_refused_tool("undoFileChange", json!({ "path": "a.txt" }));
    assert_eq!((error.kind, &*error.message), (ErrorKind::NotFound, "No backup found for: a.txt"));
    call_redo(&desk, "a.txt");
    call_redo(&desk, "a.txt");
    assert_eq!(desk.file_text("a.txt"), "v3\n");
    call_undo(&desk, "a.txt");
    update_file(&desk, "v4\n");
    let error = desk.call_refused_tool("undoFileChange", json!({ "path": "a.txt", "redo": true }));
    assert_eq!(error.message, "Nothing to redo for: a.txt");
    call_undo(&desk, "a.txt");
    assert_eq!(desk.file_text("a.txt"), "v2\n");
}

#[test]
fn creations_removals_and_moves_can_be_undone() {
    let desk =
        EditFixture::new().with_file("gone", "g").with_file("from", "f").with_file("over", "o");
    desk.call_tool("writeNewFile", json!({ "path": "new", "content": "n" }));
    call_undo(&desk, "new");
    assert_eq!(desk.file_text("new"), "-");
    call_redo(&desk, "new");
    assert_eq!(desk.file_text("new"), "n");
    desk.call_tool("removeFile", json!({ "path": "gone" }));
    call_undo(&desk, "gone");
    assert_eq!(desk.file_text("gone"), "g");
    let moved = json!({ "source_path": "from", "destination_path": "over", "overwrite": true });
    desk.call_tool("moveFile", moved);
    call_undo(&desk, "over");
    assert_eq!((desk.file_text("from"), desk.file_text("over")), ("f".into(), "o".into()));
    desk.call_tool("moveFile", json!({ "source_path": "from", "destination_path": "x/to" }));
    call_undo(&desk, "from");
    assert_eq!((desk.file_text("from"), desk.file_text("x/to")), ("f".into(), "-".into()));
}

#[test]
fn files_changed_by_others_are_not_undone() {
    let desk = EditFixture::new().with_file("a.txt", "v1\n");
    update_file(&desk, "v2\n");
    desk.write_file("a.txt", "theirs\n");
    let error = desk.call_refused_tool("undoFileChange", json!({ "path": "a.txt" }));
    assert_eq!((error.kind, desk.file_text("a.txt")), (ErrorKind::Conflict, "theirs\n".into()));
    let preview = desk.preview_call("restoreFile", json!({ "path": "a.txt" }));
    assert!(preview.text.starts_with("Restore a.txt from backup 1."), "{}", preview.text);
    assert_eq!(preview.changes[0].new.as_deref(), Some("v1\n"));
    desk.call_tool("restoreFile", json!({ "path": "a.txt" }));
    assert_eq!(desk.file_text("a.txt"), "v1\n");
    call_undo(&desk, "a.txt");
    assert_eq!(desk.file_text("a.txt"), "theirs\n");
}

#[test]
fn backups_are_listed_and_restored_by_name() {
    let desk = EditFixture::new().with_file("a.txt", "v1\n").with_file("b.txt", "b\n");
    update_file(&desk, "v2\n");
    update_file(&desk, "v3\n");
    let listed = desk.call_tool("listBackups", json!({ "path": "a.txt" }));
    let backups = listed["backups"].as_array().unwrap();
    assert_eq!((backups.len(), &listed["count"]), (2, &json!(2)));
    let oldest = backups[1]["backup_path"].clone();
    assert_eq!(backups[1]["size"], 3);
    let result = desk.call_tool("restoreFile", json!({ "path": "a.txt", "backup_path": oldest }));
    assert_eq!((desk.file_text("a.txt"), &result["restored_from"]), ("v1\n".into(), &oldest));
    let all = desk.call_tool("listBackups", json!({}));
    assert_eq!(all["backups"][0]["original_path"], "a.txt");
    for bad in [json!("/etc/passwd"), json!("9.000000000000"), oldest] {
        let error =
            desk.call_refused_tool("restoreFile", json!({ "path": "b.txt", "backup_path": bad }));
        assert!(error.message.starts_with("Backup file not found: "), "{error:?}");
    }
    let error = desk.call_refused_tool("restoreFile", json!({ "path": "b.txt" }));
    assert_eq!(error.message, "No backups found for: b.txt");
    let none = desk.call_tool("listBackups", json!({ "path": "b.txt" }));
    assert_eq!(
        none,
        json!({ "backups": [], "count": 0, "path": "b.txt", "message": "No backups found" })
    );
}

#[test]
fn later_session_can_undo_changes_of_an_earlier_one() {
    let desk = EditFixture::new().with_file("a.txt", "v1\n").with_file("b.txt", "b1\n");
    let operations = json!([
        { "action": "edit", "path": "a.txt", "old": "v1", "new": "v2" },
        { "action": "edit", "path": "b.txt", "old": "b1", "new": "b2" },
    ]);
    desk.call_tool("multiFileEdit", json!({ "operations": operations }));
    let later = desk.host().create(None).unwrap();
    let result = later.call("undoFileChange", json!({ "path": "a.txt" })).unwrap();
    assert_eq!((desk.file_text("a.txt"), desk.file_text("b.txt")), ("v1\n".into(), "b1\n".into()));
    assert_eq!(result.content["files"], json!(["a.txt", "b.txt"]));
}

/// Returns a session in which one change wrote `v2` to two files.
fn with_both_changed(desk: EditFixture) -> EditFixture {
    let desk = desk.with_file("a.txt", "v1\n").with_file("b.txt", "v1\n");
    let arguments = json!({ "pattern": "v1", "replacement": "v2", "paths": "*.txt" });
    desk.call_tool("findAndReplace", arguments);
    desk
}

#[test]
fn multi_file_change_is_undone_completely_or_not_at_all() {
    let desk = with_both_changed(EditFixture::new());
    desk.call_tool("updateFile", json!({ "path": "b.txt", "old": "v2", "new": "v3" }));
    let error = desk.call_refused_tool("undoFileChange", json!({ "path": "a.txt" }));
    let text = "change 1 cannot be undone, so nothing was changed: b.txt was changed again by \
                updateFile (change 2)";
    assert_eq!((error.kind, &*error.message), (ErrorKind::Conflict, text));
    call_undo(&desk, "b.txt");
    desk.write_file("b.txt", "theirs\n");
    std::fs::remove_file(desk.path("a.txt")).unwrap();
    let error = desk.call_refused_tool("undoFileChange", json!({ "path": "b.txt" }));
    let text = "change 1 cannot be undone, so nothing was changed: a.txt no longer exists; b.txt \
                has changed since";
    assert_eq!((error.message.as_str(), desk.file_text("b.txt")), (text, "theirs\n".into()));
    desk.write_file("a.txt", "v2\n");
    desk.write_file("b.txt", "v2\n");
    call_undo(&desk, "b.txt");
    assert_eq!((desk.file_text("a.txt"), desk.file_text("b.txt")), ("v1\n".into(), "v1\n".into()));
    call_redo(&desk, "a.txt");
    assert_eq!((desk.file_text("a.txt"), desk.file_text("b.txt")), ("v2\n".into(), "v2\n".into()));
}

#[test]
fn user_sees_the_diff_and_undoes_a_change() {
    let command = |desk: &EditFixture, name: &str, arguments| {
        let output = desk.instance().command(name, arguments);
        output.map(|output| output.content["result"].as_str().unwrap_or_default().to_owned())
    };
    let desk = with_both_changed(EditFixture::with_form_answer("leave it"));
    assert_eq!(command(&desk, "undo", json!({})).unwrap(), "Change 1 was not undone.");
    let form = &desk.shown_forms()[0];
    assert!(form.title.starts_with("Undo change 1 (findAndReplace, 2"), "{form:?}");
    assert!(form.fields[0].text.contains("-v2\n+v1"), "{form:?}");
    assert_eq!(desk.file_text("a.txt"), "v2\n");

    let desk = with_both_changed(EditFixture::with_form_answer("take it back"));
    let told = "Change 1 (findAndReplace: a.txt, b.txt) was undone. `undo 2` redoes it.";
    assert_eq!(command(&desk, "undo", json!({})).unwrap(), told);
    assert_eq!((desk.file_text("a.txt"), desk.file_text("b.txt")), ("v1\n".into(), "v1\n".into()));
    let error = command(&desk, "undo", json!({})).unwrap_err();
    assert_eq!(error.message, "no change to undo");
    let error = command(&desk, "undo", json!({ "change": "1" })).unwrap_err();
    assert_eq!(error.message, "change 1 was already undone");
    command(&desk, "undo", json!({ "change": "#2", "yes": true })).unwrap();
    assert_eq!((desk.file_text("a.txt"), desk.shown_forms().len()), ("v2\n".into(), 1));
    let listed = command(&desk, "changes", json!({})).unwrap();
    let lines: Vec<&str> = listed.lines().map(|line| &line[line.len().min(29)..]).collect();
    assert_eq!(
        lines,
        [
            "undo            a.txt, b.txt  (redid 2)",
            "undo            a.txt, b.txt  (undid 1)",
            "findAndReplace  a.txt, b.txt  (undone)",
        ]
    );

    // If no user can agree, nothing is changed.
    let desk = with_both_changed(EditFixture::new());
    let error = command(&desk, "undo", json!({})).unwrap_err();
    assert_eq!((error.kind, desk.file_text("a.txt")), (ErrorKind::PermissionDenied, "v2\n".into()));
    assert_eq!(error.hint.unwrap(), "`jaato undo 1 --yes` undoes it without asking");
    for (bad, kind) in [("moon", ErrorKind::InvalidArguments), ("9", ErrorKind::NotFound)] {
        assert_eq!(command(&desk, "undo", json!({ "change": bad })).unwrap_err().kind, kind);
    }
}

#[test]
fn damaged_history_is_reported_in_the_backup_list() {
    let desk = with_both_changed(EditFixture::new());
    let journal = desk.history.path().join("journal.jsonl");
    std::fs::write(&journal, "{\"change\":{\"id\":1,\n").unwrap();
    let later = desk.host().create(None).unwrap();
    let listed = later.call("listBackups", json!({})).unwrap().content;
    let told = listed["mended"][0].as_str().unwrap();
    assert!(told.starts_with("the history of changes is damaged: 1 of its entries"), "{told}");
}

/// Begins a change of `a.txt` from `old` to `new text`, like a process that dies halfway.
fn kill_host(desk: &EditFixture) {
    use tool_file_edit::history::{FilePath, FileTransition, History, NewChange, StoredFileState};
    let history = History::open(desk.history.path()).unwrap();
    let kept = |text: &str| {
        let content = history.store_content(text.as_bytes()).unwrap();
        Some(StoredFileState { content, size: text.len() as u64, mode: 0o644 })
    };
    let path = FilePath::new("/w/a.txt", "/w", "local");
    let step =
        FileTransition { path, before: kept("old"), after: kept("new text"), moved_from: None };
    let environment = "local".to_owned();
    let tool = "updateFile".to_owned();
    let new = NewChange { environment, tool, files: vec![step], ..NewChange::default() };
    drop(history.begin_change(new).unwrap());
}

#[test]
fn interrupted_write_is_rolled_back_and_its_draft_removed() {
    const DRAFT: &str = ".jaato-0123456789abcdef.tmp";
    // The process was killed before the draft replaced the file.
    let desk = EditFixture::new()
        .with_file("a.txt", "old")
        .with_file(DRAFT, "new te")
        .with_file(".jaato-x.tmp", "mine");
    kill_host(&desk);
    desk.read_file_text("a.txt");
    assert_eq!((desk.file_text("a.txt"), desk.file_text(DRAFT)), ("old".into(), "-".into()));
    assert_eq!(desk.file_text(".jaato-x.tmp"), "mine");
    // The process was killed while the draft was copied into the existing file.
    let desk = EditFixture::new().with_file("a.txt", "new").with_file(DRAFT, "new text");
    kill_host(&desk);
    let told = desk.read_file_text("a.txt");
    assert!(told.contains("was rolled back]"), "{told}");
    assert_eq!((desk.file_text("a.txt"), desk.file_text(DRAFT)), ("old".into(), "-".into()));
    // Without a draft, the origin of the text is unknown.
    let desk = EditFixture::new().with_file("a.txt", "new");
    kill_host(&desk);
    assert!(desk.read_file_text("a.txt").contains("others have changed since: a.txt"));
    assert_eq!(desk.file_text("a.txt"), "new");
}

#[test]
fn undo_finds_the_changes_of_a_file_by_any_path() {
    let desk = EditFixture::new().with_file("real/a.txt", "v1\n");
    std::os::unix::fs::symlink("real", desk.path("lnd")).unwrap();
    std::os::unix::fs::symlink("real/a.txt", desk.path("b.txt")).unwrap();
    for (changed, undone) in
        [("lnd/a.txt", "real/a.txt"), ("real/a.txt", "b.txt"), ("b.txt", "lnd/../lnd/a.txt")]
    {
        desk.call_tool("updateFile", json!({ "path": changed, "new_content": "v2\n" }));
        assert!(
            desk.call_tool("listBackups", json!({ "path": undone }))["count"].as_u64() > Some(0)
        );
        call_undo(&desk, undone);
        assert_eq!(desk.file_text("real/a.txt"), "v1\n", "{changed} {undone}");
    }
    desk.call_tool("updateFile", json!({ "path": "b.txt", "new_content": "v3\n" }));
    desk.call_tool("restoreFile", json!({ "path": "lnd/a.txt" }));
    assert_eq!(desk.file_text("real/a.txt"), "v1\n");
    // The file does not exist any longer.
    desk.call_tool("writeNewFile", json!({ "path": "lnd/n/m.txt", "content": "m" }));
    desk.call_tool("removeFile", json!({ "path": "real/n/m.txt" }));
    call_undo(&desk, "lnd/n/m.txt");
    assert_eq!(desk.file_text("real/n/m.txt"), "m");
}

#[test]
fn calls_that_change_no_file_are_not_recorded() {
    let desk = EditFixture::new().with_file("a.txt", "v1\n");
    update_file(&desk, "v1\n");
    let edit = json!([{ "action": "edit", "path": "a.txt", "old": "v1", "new": "v1" }]);
    desk.call_tool("multiFileEdit", json!({ "operations": edit }));
    let same = json!({ "pattern": "v1", "replacement": "v1", "paths": "*" });
    desk.call_tool("findAndReplace", same);
    let listed = desk.instance().command("changes", json!({})).unwrap();
    let text = "The file tools have changed nothing in this workspace.";
    assert_eq!(listed.content["result"], text);
    update_file(&desk, "v2\n");
    desk.write_file("a.txt", "v1\n");
    desk.call_tool("restoreFile", json!({ "path": "a.txt" }));
    assert_eq!(desk.call_tool("listBackups", json!({}))["count"], 1);
}
