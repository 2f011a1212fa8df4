//! `undoFileChange`, `restoreFile`, `listBackups`.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;

use crate::support::Desk;

fn undo(desk: &Desk, path: &str) -> Value {
    desk.call("undoFileChange", json!({ "path": path }))
}

fn redo(desk: &Desk, path: &str) -> Value {
    desk.call("undoFileChange", json!({ "path": path, "redo": true }))
}

fn update(desk: &Desk, text: &str) {
    desk.call("updateFile", json!({ "path": "a.txt", "new_content": text }));
}

#[test]
fn undo_walks_back_and_redo_walks_forth() {
    let desk = Desk::new().with("a.txt", "v1\n");
    update(&desk, "v2\n");
    update(&desk, "v3\n");
    let result = undo(&desk, "a.txt");
    assert_eq!(
        (desk.text("a.txt"), &result["diff"]),
        ("v2\n".into(), &json!("@@ -1 +1 @@\n-v3\n+v2"))
    );
    undo(&desk, "a.txt");
    assert_eq!(desk.text("a.txt"), "v1\n");
    let error = desk.refused("undoFileChange", json!({ "path": "a.txt" }));
    assert_eq!((error.kind, &*error.message), (ErrorKind::NotFound, "No backup found for: a.txt"));
    redo(&desk, "a.txt");
    redo(&desk, "a.txt");
    assert_eq!(desk.text("a.txt"), "v3\n");
    undo(&desk, "a.txt");
    update(&desk, "v4\n");
    let error = desk.refused("undoFileChange", json!({ "path": "a.txt", "redo": true }));
    assert_eq!(error.message, "Nothing to redo for: a.txt");
    undo(&desk, "a.txt");
    assert_eq!(desk.text("a.txt"), "v2\n");
}

#[test]
fn creations_removals_and_moves_are_taken_back() {
    let desk = Desk::new().with("gone", "g").with("from", "f").with("over", "o");
    desk.call("writeNewFile", json!({ "path": "new", "content": "n" }));
    undo(&desk, "new");
    assert_eq!(desk.text("new"), "-");
    redo(&desk, "new");
    assert_eq!(desk.text("new"), "n");
    desk.call("removeFile", json!({ "path": "gone" }));
    undo(&desk, "gone");
    assert_eq!(desk.text("gone"), "g");
    let moved = json!({ "source_path": "from", "destination_path": "over", "overwrite": true });
    desk.call("moveFile", moved);
    undo(&desk, "over");
    assert_eq!((desk.text("from"), desk.text("over")), ("f".into(), "o".into()));
    desk.call("moveFile", json!({ "source_path": "from", "destination_path": "x/to" }));
    undo(&desk, "from");
    assert_eq!((desk.text("from"), desk.text("x/to")), ("f".into(), "-".into()));
}

#[test]
fn what_somebody_else_changed_is_not_undone() {
    let desk = Desk::new().with("a.txt", "v1\n");
    update(&desk, "v2\n");
    desk.write("a.txt", "theirs\n");
    let error = desk.refused("undoFileChange", json!({ "path": "a.txt" }));
    assert_eq!((error.kind, desk.text("a.txt")), (ErrorKind::Conflict, "theirs\n".into()));
    let preview = desk.preview("restoreFile", json!({ "path": "a.txt" }));
    assert!(preview.text.starts_with("Restore a.txt from backup 1."), "{}", preview.text);
    assert_eq!(preview.changes[0].new.as_deref(), Some("v1\n"));
    desk.call("restoreFile", json!({ "path": "a.txt" }));
    assert_eq!(desk.text("a.txt"), "v1\n");
    undo(&desk, "a.txt");
    assert_eq!(desk.text("a.txt"), "theirs\n");
}

#[test]
fn backups_are_listed_and_restored_by_name() {
    let desk = Desk::new().with("a.txt", "v1\n").with("b.txt", "b\n");
    update(&desk, "v2\n");
    update(&desk, "v3\n");
    let listed = desk.call("listBackups", json!({ "path": "a.txt" }));
    let backups = listed["backups"].as_array().unwrap();
    assert_eq!((backups.len(), &listed["count"]), (2, &json!(2)));
    let oldest = backups[1]["backup_path"].clone();
    assert_eq!(backups[1]["size"], 3);
    let result = desk.call("restoreFile", json!({ "path": "a.txt", "backup_path": oldest }));
    assert_eq!((desk.text("a.txt"), &result["restored_from"]), ("v1\n".into(), &oldest));
    let all = desk.call("listBackups", json!({}));
    assert_eq!(all["backups"][0]["original_path"], "a.txt");
    for bad in [json!("/etc/passwd"), json!("9.000000000000"), oldest] {
        let error = desk.refused("restoreFile", json!({ "path": "b.txt", "backup_path": bad }));
        assert!(error.message.starts_with("Backup file not found: "), "{error:?}");
    }
    let error = desk.refused("restoreFile", json!({ "path": "b.txt" }));
    assert_eq!(error.message, "No backups found for: b.txt");
    let none = desk.call("listBackups", json!({ "path": "b.txt" }));
    assert_eq!(
        none,
        json!({ "backups": [], "count": 0, "path": "b.txt", "message": "No backups found" })
    );
}

#[test]
fn a_later_session_finds_what_an_earlier_one_changed() {
    let desk = Desk::new().with("a.txt", "v1\n").with("b.txt", "b1\n");
    let operations = json!([
        { "action": "edit", "path": "a.txt", "old": "v1", "new": "v2" },
        { "action": "edit", "path": "b.txt", "old": "b1", "new": "b2" },
    ]);
    desk.call("multiFileEdit", json!({ "operations": operations }));
    let later = desk.host().create(None).unwrap();
    let result = later.call("undoFileChange", json!({ "path": "a.txt" })).unwrap();
    assert_eq!((desk.text("a.txt"), desk.text("b.txt")), ("v1\n".into(), "b2\n".into()));
    assert_eq!(result.content["note"], "that call changed 1 more files, which stay as they are");
}
