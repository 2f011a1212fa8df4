//! Tests of `updateFile`, `writeNewFile`, `removeFile` and `moveFile`.

use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::file_change::FileChangeKind;
use jaato_plugin_sdk::types::{Error, ErrorKind};

use crate::support::EditFixture;

#[test]
fn update_replaces_the_unique_match() {
    let desk = EditFixture::new().with_file("a.py", "x = 1\r\ny = 2\r\n");
    let result = desk.call_tool(
        "updateFile",
        json!({ "path": "a.py", "old": "y = 2\n", "new": "y = 3\nz = 4\n" }),
    );
    assert_eq!(desk.file_text("a.py"), "x = 1\r\ny = 3\r\nz = 4\r\n");
    let backup = result["backup"].as_str().unwrap();
    assert!(backup.starts_with("1."), "{backup}");
    let expected = json!({
        "success": true, "path": "a.py", "size": 21, "lines": 3, "backup": backup,
        "diff": "@@ -1,2 +1,3 @@\n x = 1\n-y = 2\n+y = 3\n+z = 4",
    });
    assert_eq!(result, expected);
}

#[test]
fn update_replaces_the_whole_text() {
    let desk = EditFixture::new().with_file("a.txt", "\u{FEFF}old\r\n");
    desk.call_tool("updateFile", json!({ "path": "a.txt", "new_content": "new\ntext\n" }));
    assert_eq!(desk.file_text("a.txt"), "\u{FEFF}new\r\ntext\r\n");
    let result =
        desk.call_tool("updateFile", json!({ "path": "a.txt", "new_content": "new\ntext\n" }));
    assert_eq!((&result["success"], &result["unchanged"]), (&json!(true), &json!(true)));
}

#[test]
fn incomplete_edit_arguments_change_nothing() {
    let desk = EditFixture::new().with_file("a.txt", "text\n");
    let refused = |arguments| desk.call_refused_tool("updateFile", arguments);
    let message = "either 'old' and 'new' or 'new_content' is required";
    assert_eq!(refused(json!({ "path": "a.txt" })).message, message);
    let message = "'new' is required when 'old' is provided";
    assert_eq!(refused(json!({ "path": "a.txt", "old": "text" })).message, message);
    let error = refused(json!({ "path": "a.txt", "old": "", "new": "x" }));
    assert_eq!(error.message, "Targeted edit failed: 'old' is empty and the file is not");
    let error = refused(json!({ "path": "a.txt", "old": "text", "new": "x", "new_content": "" }));
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    let error = refused(json!({ "path": "b.txt", "new_content": "x" }));
    assert_eq!(error.message, "File not found: b.txt");
    assert_eq!(desk.file_text("a.txt"), "text\n");
}

#[test]
fn missing_or_ambiguous_text_gets_a_hint() {
    let desk = EditFixture::new().with_file("a.py", "def f():\n    x = 1\n\ndef g():\n    x = 1\n");
    let refused = |old: &str| {
        let error =
            desk.call_refused_tool("updateFile", json!({ "path": "a.py", "old": old, "new": "" }));
        (error.kind, error.message, error.hint.unwrap())
    };
    let text = "Targeted edit failed: Search text not found: 'def h():\n    x = 1'";
    let hint = "the nearest lines are:\n1: def f():\n2:     x = 1";
    assert_eq!(
        refused("def h():\n    x = 1"),
        (ErrorKind::NotFound, text.to_owned(), hint.to_owned())
    );
    let text = "Targeted edit failed: Search text matched 2 times. \
                Use prologue/epilogue to disambiguate: 'x = 1'";
    let hint = "found in line 2, 5; `replace_all` replaces each";
    assert_eq!(refused("x = 1"), (ErrorKind::Conflict, text.to_owned(), hint.to_owned()));
    let arguments =
        json!({ "path": "a.py", "old": "x = 1", "new": "x = 2", "prologue": "def g():\n    " });
    desk.call_tool("updateFile", arguments);
    assert_eq!(desk.file_text("a.py"), "def f():\n    x = 1\n\ndef g():\n    x = 2\n");
    let all = json!({ "path": "a.py", "old": "x =", "new": "y =", "replace_all": true });
    assert_eq!(desk.call_tool("updateFile", all)["replaced"], 2);
    assert_eq!(desk.file_text("a.py"), "def f():\n    y = 1\n\ndef g():\n    y = 2\n");
}

#[test]
fn inexact_match_is_edited_with_a_note() {
    let desk = EditFixture::new().with_file("a.md", "\u{201C}Cafe\u{301}\u{201D} \n\u{2013} tea\n");
    let edit =
        json!({ "path": "a.md", "old": "\"Caf\u{E9}\"\n- tea", "new": "\"Caf\u{E9}\"\n- milk" });
    let result = desk.call_tool("updateFile", edit.clone());
    assert_eq!(desk.file_text("a.md"), "\u{201C}Cafe\u{301}\u{201D} \n\u{2013} milk\n");
    let note = "this text differs in the file (decomposed letters in the file (NFD), composed \
                ones in yours (NFC); straight or curly quotes; hyphens or dashes; whitespace at \
                line ends); text that you did not change is kept";
    assert_eq!(result["note"], note);
    // If the text occurs twice, nothing changes and the error describes the difference.
    desk.write_file("b.md", "Cafe\u{301} A\nx\nCafe\u{301} B\n");
    let error = desk
        .call_refused_tool("updateFile", json!({ "path": "b.md", "old": "Caf\u{E9}", "new": "" }));
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.hint.unwrap().starts_with("found in line 1, 3; the nearest lines"), "");
    let operations =
        json!([{ "action": "edit", "path": "b.md", "old": "Caf\u{E9} A", "new": "Tee" }]);
    let result = desk.call_tool("multiFileEdit", json!({ "operations": operations }));
    assert_eq!(desk.file_text("b.md"), "Tee\nx\nCafe\u{301} B\n");
    assert!(result["notes"][0].as_str().unwrap().starts_with("b.md: "), "{result}");
}

#[test]
fn a_file_that_changed_since_it_was_read_is_refused_once() {
    let desk = EditFixture::new().with_file("a.txt", "one\ntwo\n");
    desk.read_file_text("a.txt");
    desk.write_file("a.txt", "ONE\ntwo\nthree\n");
    let edit = json!({ "path": "a.txt", "old": "two", "new": "2" });
    // The preview already refuses the call. After that, the file counts as read.
    let preview = desk.preview_call("updateFile", edit.clone());
    let error = preview.refusal.unwrap();
    assert_eq!(error.message, "a.txt has changed since you read it, so nothing was done");
    let hint = error.hint.unwrap();
    assert!(hint.contains("-one\n+ONE\n two\n+three\n"), "{hint}");
    desk.call_tool("updateFile", edit);
    assert_eq!(desk.file_text("a.txt"), "ONE\n2\nthree\n");
    // The model knows a file that it wrote itself, even if only its time changed.
    desk.write_file("a.txt", "ONE\n2\nthree\n");
    desk.call_tool("updateFile", json!({ "path": "a.txt", "old": "2", "new": "two" }));
    desk.write_file("a.txt", "gone\n");
    let error = desk.call_refused_tool("removeFile", json!({ "path": "a.txt" }));
    assert_eq!(error.kind, ErrorKind::Conflict);
    desk.call_tool("removeFile", json!({ "path": "a.txt" }));
    // A file that was never read may be changed.
    desk.write_file("b.txt", "x");
    desk.call_tool("updateFile", json!({ "path": "b.txt", "new_content": "y" }));
    // Unless it changed after the preview that the user saw.
    desk.write_file("c.txt", "one\n");
    let edit = json!({ "path": "c.txt", "new_content": "two\n" });
    assert_eq!(desk.preview_call("updateFile", edit.clone()).refusal, None);
    desk.write_file("c.txt", "one\nand more\n");
    assert_eq!(desk.call_refused_tool("updateFile", edit).kind, ErrorKind::Conflict);
    assert_eq!(desk.file_text("c.txt"), "one\nand more\n");
}

#[test]
fn later_instance_knows_which_files_were_read() {
    let desk = EditFixture::new().with_file("a.txt", "one\n");
    desk.call_tool("updateFile", json!({ "path": "a.txt", "new_content": "two\n" }));
    let saved = desk.instance().save().unwrap();
    let later = desk.host().create(saved.as_ref()).unwrap();
    desk.write_file("a.txt", "three\n");
    let error =
        later.call("updateFile", json!({ "path": "a.txt", "new_content": "x" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
}

#[test]
fn new_files_are_written_with_their_folders() {
    let desk = EditFixture::new();
    let result = desk.call_tool("writeNewFile", json!({ "path": "a/b/c.txt", "content": "x\ny" }));
    assert_eq!(result, json!({ "success": true, "path": "a/b/c.txt", "size": 3, "lines": 2 }));
    assert_eq!(desk.file_text("a/b/c.txt"), "x\ny");
    let error =
        desk.call_refused_tool("writeNewFile", json!({ "path": "a/b/c.txt", "content": "z" }));
    assert_eq!(
        (error.kind, &*error.message),
        (ErrorKind::Conflict, "File already exists: a/b/c.txt")
    );
    let error = desk.call_refused_tool("writeNewFile", json!({ "path": "a/b", "content": "z" }));
    assert_eq!(error.kind, ErrorKind::Conflict);
    let error = desk.call_refused_tool("writeNewFile", json!({ "path": "d.txt" }));
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[test]
fn files_are_removed_and_moved() {
    let desk = EditFixture::new().with_file("a.txt", "a").with_file("b.txt", "b");
    let result = desk.call_tool("removeFile", json!({ "path": "a.txt" }));
    assert_eq!((&result["deleted"], desk.file_text("a.txt")), (&json!(true), "-".to_owned()));
    assert!(result["backup"].is_string());
    assert_eq!(
        desk.call_refused_tool("removeFile", json!({ "path": "a.txt" })).message,
        "File not found: a.txt"
    );
    let moved = json!({ "source_path": "b.txt", "destination_path": "new/c.txt" });
    let result = desk.call_tool("moveFile", moved.clone());
    assert_eq!(
        (desk.file_text("b.txt"), desk.file_text("new/c.txt")),
        ("-".to_owned(), "b".to_owned())
    );
    assert_eq!(result["destination"], "new/c.txt");
    let error = desk.call_refused_tool("moveFile", moved);
    assert_eq!(error.message, "Source file does not exist: b.txt");
    desk.write_file("d.txt", "d");
    let over = json!({ "source_path": "new/c.txt", "destination_path": "d.txt" });
    assert_eq!(
        desk.call_refused_tool("renameFile", over).message,
        "Destination file already exists: d.txt"
    );
    let over =
        json!({ "source_path": "new/c.txt", "destination_path": "d.txt", "overwrite": true });
    let result = desk.call_tool("renameFile", over);
    assert!(result["source_backup"].is_string() && result["destination_backup"].is_string());
    assert_eq!(desk.file_text("d.txt"), "b");
    let same = json!({ "source_path": "d.txt", "destination_path": "./d.txt" });
    assert_eq!(desk.call_refused_tool("moveFile", same).kind, ErrorKind::InvalidArguments);
}

#[test]
fn paths_outside_the_workspace_are_denied() {
    let desk = EditFixture::new();
    let outside = "../outside.txt";
    for (tool, arguments) in [
        ("updateFile", json!({ "path": outside, "new_content": "" })),
        ("writeNewFile", json!({ "path": outside, "content": "" })),
        ("removeFile", json!({ "path": outside })),
        ("moveFile", json!({ "source_path": outside, "destination_path": "a" })),
        ("undoFileChange", json!({ "path": outside })),
        ("restoreFile", json!({ "path": outside })),
        ("listBackups", json!({ "path": outside })),
    ] {
        assert_eq!(
            desk.call_refused_tool(tool, arguments).kind,
            ErrorKind::PermissionDenied,
            "{tool}"
        );
    }
}

#[test]
fn tilde_in_a_path_is_not_expanded() {
    let desk = EditFixture::new();
    let error = desk.call_refused_tool("writeNewFile", json!({ "path": "~/a.txt", "content": "" }));
    assert_eq!(error.message, "`~/a.txt` begins with `~`, which is not expanded");
    desk.call_tool("writeNewFile", json!({ "path": "./~/a.txt", "content": "a" }));
    desk.call_tool("writeNewFile", json!({ "path": "~a.txt", "content": "b" }));
    assert_eq!((desk.file_text("~/a.txt"), desk.file_text("~a.txt")), ("a".into(), "b".into()));
}

#[test]
fn edit_keeps_hard_links_and_reports_removed_setuid_bits() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = EditFixture::new().with_file("a.sh", "one\n");
    std::fs::hard_link(desk.path("a.sh"), desk.path("b.sh")).unwrap();
    let path = desk.path("a.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let result =
        desk.call_tool("updateFile", json!({ "path": "a.sh", "old": "one", "new": "two" }));
    assert_eq!((desk.file_text("a.sh"), desk.file_text("b.sh")), ("two\n".into(), "two\n".into()));
    let note = "the set-user-ID and set-group-ID bits were removed from: a.sh";
    // The kernel keeps the bits if root writes in place.
    let has_bit = std::fs::metadata(&path).unwrap().permissions().mode() & 0o4000 != 0;
    assert_eq!(result.get("mode_note"), (!has_bit).then_some(&json!(note)));
    std::fs::remove_file(desk.path("b.sh")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let result =
        desk.call_tool("updateFile", json!({ "path": "a.sh", "old": "two", "new": "three" }));
    assert_eq!(result["mode_note"], note);
}

#[test]
fn front_ends_receive_file_changes() {
    let desk = EditFixture::new().with_file("a.txt", "one\ntwo\n");
    let changes =
        desk.reported_changes("updateFile", json!({ "path": "a.txt", "old": "two", "new": "2" }));
    assert_eq!(changes.len(), 1);
    let change = &changes[0];
    assert_eq!(
        (change.kind, change.lines_added, change.lines_removed),
        (FileChangeKind::Changed, 1, 1)
    );
    assert_eq!(
        change.to_unified_diff(),
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );
    assert_eq!(change.old.as_deref(), Some("one\ntwo\n"));
    let moved = json!({ "source_path": "a.txt", "destination_path": "b.txt" });
    let changes = desk.reported_changes("moveFile", moved);
    assert_eq!((changes.len(), changes[0].kind), (1, FileChangeKind::Moved));
    assert_eq!(changes[0].moved_from.as_deref(), Some("a.txt"));
    let changes = desk.reported_changes("removeFile", json!({ "path": "b.txt" }));
    assert_eq!((changes.len(), changes[0].kind), (1, FileChangeKind::Deleted));
}

#[test]
fn a_preview_shows_what_a_call_would_do_and_does_nothing() {
    let desk = EditFixture::new().with_file("a.txt", "one\n").with_file("b.txt", "two\n");
    let preview =
        desk.preview_call("updateFile", json!({ "path": "a.txt", "old": "one", "new": "1\n2" }));
    assert_eq!(preview.text, "Update a.txt (+2, -1 lines)");
    assert_eq!((preview.changes.len(), &preview.files[..]), (1, &["a.txt".to_owned()][..]));
    let preview = desk.preview_call("writeNewFile", json!({ "path": "n", "content": "x\n" }));
    assert_eq!(preview.text, "Create new file: n (1 lines)");
    let preview = desk.preview_call("removeFile", json!({ "path": "a.txt" }));
    assert_eq!(preview.text, "Delete file: a.txt (1 lines, backup will be created)");
    let over = json!({ "source_path": "a.txt", "destination_path": "b.txt", "overwrite": true });
    let preview = desk.preview_call("moveFile", over);
    let text =
        "Move file: a.txt -> b.txt (1 lines), replacing the existing file (backup will be created)";
    assert_eq!(preview.text, text);
    let preview =
        desk.preview_call("updateFile", json!({ "path": "a.txt", "old": "no", "new": "" }));
    assert_eq!(preview.refusal.unwrap().kind, ErrorKind::NotFound);
    assert_eq!(
        (desk.file_text("a.txt"), desk.file_text("b.txt"), desk.file_text("n")),
        ("one\n".into(), "two\n".into(), "-".into())
    );
}

#[test]
fn error_of_a_denied_write_has_the_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let denied = Error::new(ErrorKind::Io, "cannot write `a.txt`: permission denied");
    let desk =
        EditFixture::new().with_file("a.txt", "one\n").with_failing_service("files.write", denied);
    let mode = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(desk.path("a.txt"), mode).unwrap();
    let error =
        desk.call_refused_tool("updateFile", json!({ "path": "a.txt", "old": "one", "new": "1" }));
    assert_eq!((error.kind, error.hint.as_deref()), (ErrorKind::Io, Some("its mode is 0444")));
}
