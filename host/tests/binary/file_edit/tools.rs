//! Tests every file tool.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;

use super::{FileToolsHouse, edit_arguments};
use crate::support::set_mode;

#[test]
fn every_edit_tool_works_and_can_be_undone() {
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("a.txt", "one\r\ntwo\r\n");
    let mut calls = desk.start_calls();
    let read = calls.call("readFile", &json!({ "path": "a.txt" }));
    let heading = "path: a.txt | lines: 2 | size: 10 | line ends: CRLF, shown as LF".to_owned();
    assert_eq!(read["result"], heading + "\n\none\ntwo\n");
    calls.call("updateFile", &edit_arguments("a.txt", "one\n", "1\n"));
    assert_eq!(desk.file_text("a.txt"), "1\r\ntwo\r\n");
    calls.call("writeNewFile", &json!({ "path": "new/b.txt", "content": "b\n" }));
    let moved = json!({ "source_path": "new/b.txt", "destination_path": "c.txt" });
    calls.call("moveFile", &moved);
    let renamed = json!({ "source_path": "c.txt", "destination_path": "d.txt" });
    calls.call("renameFile", &renamed);
    assert_eq!((desk.file_text("c.txt"), desk.file_text("d.txt")), ("-".into(), "b\n".into()));
    let operations = json!({ "operations": [
        { "action": "edit", "path": "a.txt", "old": "two", "new": "2" },
        { "action": "create", "path": "e.txt", "content": "e\n" },
        { "action": "delete", "path": "d.txt" },
    ] });
    calls.call("multiFileEdit", &operations);
    assert_eq!(
        (desk.file_text("a.txt"), desk.file_text("d.txt")),
        ("1\r\n2\r\n".into(), "-".into())
    );
    let replace = json!({ "pattern": "^(.)$", "replacement": r"<\1>", "paths": "*.txt" });
    let replaced = calls.call("findAndReplace", &replace);
    assert_eq!((&replaced["total_matches"], &replaced["files_affected"]), (&json!(3), &json!(2)));
    assert_eq!(
        (desk.file_text("a.txt"), desk.file_text("e.txt")),
        ("<1>\r\n<2>\r\n".into(), "<e>\n".into())
    );
    calls.call("removeFile", &json!({ "path": "e.txt" }));
    let backups = calls.call("listBackups", &json!({ "path": "a.txt" }));
    assert_eq!(backups["count"], 3);
    let oldest = json!({ "path": "a.txt", "backup_path": backups["backups"][2]["backup_path"] });
    calls.call("restoreFile", &oldest);
    assert_eq!(desk.file_text("a.txt"), "one\r\ntwo\r\n");
    calls.end(&desk.house);
    // A later session in another process goes back and forward step by step.
    let mut later = desk.start_calls();
    later.call("undoFileChange", &json!({ "path": "a.txt" }));
    assert_eq!(desk.file_text("a.txt"), "<1>\r\n<2>\r\n");
    // The change before it also changed e.txt, which was removed since.
    later.call_refused("undoFileChange", &json!({ "path": "a.txt" }));
    later.call("undoFileChange", &json!({ "path": "e.txt" }));
    assert_eq!(desk.file_text("e.txt"), "<e>\n");
    for (a, e, d) in
        [("1\r\n2\r\n", "e\n", "-"), ("1\r\ntwo\r\n", "-", "b\n"), ("one\r\ntwo\r\n", "-", "b\n")]
    {
        later.call("undoFileChange", &json!({ "path": "a.txt" }));
        assert_eq!(["a.txt", "e.txt", "d.txt"].map(|name| desk.file_text(name)), [a, e, d]);
    }
    later.call_refused("undoFileChange", &json!({ "path": "a.txt" }));
    later.call("undoFileChange", &json!({ "path": "a.txt", "redo": true }));
    assert_eq!(desk.file_text("a.txt"), "1\r\ntwo\r\n");
    later.end(&desk.house);
}

#[test]
fn edits_keep_file_mode_links_and_encoding() {
    let Some(desk) = FileToolsHouse::new() else { return };
    let mode = |name: &str| fs::metadata(desk.path(name)).unwrap().permissions().mode() & 0o7777;
    desk.write("run.sh", "echo 1\n");
    set_mode(&desk.path("run.sh"), 0o750);
    symlink("run.sh", desk.path("link")).unwrap();
    desk.write("latin", b"d\xE9j\xE0 vu, caf\xE9 au lait\r\n");
    let mut calls = desk.start_calls();
    calls.call("updateFile", &edit_arguments("link", "1", "2"));
    assert_eq!((desk.file_text("run.sh"), mode("run.sh")), ("echo 2\n".into(), 0o750));
    assert!(fs::symlink_metadata(desk.path("link")).unwrap().is_symlink());
    calls.call("updateFile", &edit_arguments("latin", "vu", "lu"));
    assert_eq!(fs::read(desk.path("latin")).unwrap(), b"d\xE9j\xE0 lu, caf\xE9 au lait\r\n");
    // A file that was removed, or moved and created again, gets its mode back.
    calls.call("removeFile", &json!({ "path": "run.sh" }));
    calls.call("undoFileChange", &json!({ "path": "run.sh" }));
    assert_eq!((desk.file_text("run.sh"), mode("run.sh")), ("echo 2\n".into(), 0o750));
    let operations = json!({ "operations": [
        { "action": "rename", "from": "run.sh", "to": "bin/run.sh" },
        { "action": "edit", "path": "bin/run.sh", "old": "2", "new": "3" },
    ] });
    calls.call("multiFileEdit", &operations);
    assert_eq!((desk.file_text("bin/run.sh"), mode("bin/run.sh")), ("echo 3\n".into(), 0o750));
    calls.call("undoFileChange", &json!({ "path": "run.sh" }));
    assert_eq!((desk.file_text("run.sh"), mode("run.sh")), ("echo 2\n".into(), 0o750));
    assert_eq!(desk.file_text("bin/run.sh"), "-");
    calls.end(&desk.house);
}
