//! Tests of `multiFileEdit`.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Error, ErrorKind};

use crate::support::EditFixture;

fn multi_file_fixture() -> EditFixture {
    EditFixture::new().with_file("a", "1\n").with_file("b", "2\n").with_file("c", "3\n")
}

fn file_texts(desk: &EditFixture) -> [String; 4] {
    ["a", "b", "c", "d"].map(|name| desk.file_text(name).trim_end().to_owned())
}

fn run_operations(desk: &EditFixture, operations: Value) -> Value {
    desk.call_tool("multiFileEdit", json!({ "operations": operations }))
}

#[track_caller]
fn call_error(desk: &EditFixture, operations: Value) -> Error {
    let before = file_texts(desk);
    let error = desk.call_refused_tool("multiFileEdit", json!({ "operations": operations }));
    assert_eq!(file_texts(desk), before);
    error
}

#[test]
fn all_operations_are_done_in_order() {
    let desk = multi_file_fixture();
    let result = run_operations(
        &desk,
        json!([
            { "action": "edit", "path": "a", "old": "1", "new": "one" },
            { "action": "EDIT", "path": "a", "old": "one", "new": "uno" },
            { "action": "delete", "path": "b" },
            { "action": "create", "path": "b", "content": "again\n" },
            { "action": "rename", "from": "c", "to": "d" },
            { "action": "edit", "path": "d", "old": "3", "new": "three" },
        ]),
    );
    assert_eq!(file_texts(&desk), ["uno", "again", "-", "three"]);
    assert_eq!(result["operations_completed"], 6);
    assert_eq!(result["files_modified"], json!(["a", "d"]));
    assert_eq!(result["files_created"], json!(["b"]));
    assert_eq!(result["files_renamed"], json!([{ "from": "c", "to": "d" }]));
    let diff = result["diff"].as_str().unwrap();
    assert!(diff.contains("--- a/c\n+++ b/d\n@@ -1 +1 @@\n-3\n+three"), "{diff}");
}

#[test]
fn files_can_be_swapped_by_renames() {
    let desk = multi_file_fixture();
    run_operations(
        &desk,
        json!([
            { "action": "rename", "source_path": "a", "destination_path": "d" },
            { "action": "rename", "from": "b", "to": "a" },
            { "action": "rename", "from": "d", "to": "b" },
        ]),
    );
    assert_eq!(file_texts(&desk), ["2", "1", "3", "-"]);
}

#[test]
fn invalid_operation_leaves_all_files_unchanged() {
    let desk = multi_file_fixture();
    let edit = json!({ "action": "edit", "path": "a", "old": "1", "new": "one" });
    let message = |second: Value| call_error(&desk, json!([edit, second])).message;
    let start = "operation 2 of 2 cannot be done, nothing was changed: ";
    let cases = [
        (
            json!({ "action": "edit", "path": "b", "old": "x", "new": "" }),
            "Edit target not found in b: 'x'",
        ),
        (json!({ "action": "edit", "path": "no", "old": "x", "new": "" }), "File not found: no"),
        (
            json!({ "action": "edit", "path": "b", "new": "" }),
            "'old' content is required for edit operation",
        ),
        (json!({ "action": "create", "path": "b", "content": "" }), "File already exists: b"),
        (json!({ "action": "create", "path": "n" }), "'content' is required for create operation"),
        (json!({ "action": "rename", "from": "a", "to": "b" }), "Destination already exists: b"),
        (json!({ "action": "rename", "from": "a" }), "to is required"),
        (json!({ "action": "delete" }), "path is required"),
        (
            json!({ "action": "explode" }),
            "Invalid action: explode. Valid actions: ['edit', 'create', 'delete', 'rename']",
        ),
    ];
    for (second, expected) in cases {
        assert_eq!(message(second), format!("{start}{expected}"));
    }
    let error = call_error(&desk, json!([]));
    assert_eq!(error.message, "operations array is required and cannot be empty");
    let outside = json!([edit, { "action": "create", "path": "../x", "content": "" }]);
    assert_eq!(call_error(&desk, outside).kind, ErrorKind::PermissionDenied);
}

#[test]
fn failure_while_applying_rolls_back_all_operations() {
    let desk = multi_file_fixture();
    // A file is in the way of a new folder.
    let error = call_error(
        &desk,
        json!([
            { "action": "edit", "path": "a", "old": "1", "new": "one" },
            { "action": "delete", "path": "b" },
            { "action": "create", "path": "c/below", "content": "x" },
        ]),
    );
    assert!(error.message.ends_with("nothing was changed"), "{error:?}");
    let backups = desk.call_tool("listBackups", json!({ "path": "a" }));
    assert_eq!(
        desk.call_refused_tool("undoFileChange", json!({ "path": "a" })).kind,
        ErrorKind::NotFound,
        "{backups}"
    );
}

#[test]
fn one_preview_shows_all_operations() {
    let desk = multi_file_fixture();
    let preview = desk.preview_call(
        "multiFileEdit",
        json!({ "operations": [
        { "action": "edit", "path": "a", "old": "1", "new": "one" },
        { "action": "delete", "path": "b" },
        { "action": "rename", "from": "c", "to": "d" },
    ] }),
    );
    assert_eq!(
        preview.text,
        "Atomic multi-file operation: 1 edit, 1 delete, 1 rename (+1, -2 lines)"
    );
    let paths: Vec<_> = preview.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["a", "b", "d"]);
    assert_eq!(file_texts(&desk), ["1", "2", "3", "-"]);
}

#[test]
fn a_patch_changes_many_files_or_none() {
    let desk = multi_file_fixture();
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n*** Delete File: b\n\
                 *** Update File: c\n*** Move to: n/d\n@@\n-3\n+three\n*** Add File: e\n+new\n\
                 *** End Patch";
    let preview = desk.preview_call("apply_patch", json!({ "input": patch }));
    assert_eq!(preview.text, "Patch 4 files (+3, -3 lines)");
    let paths: Vec<_> = preview.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!((paths, file_texts(&desk)[0].as_str()), (vec!["a", "b", "n/d", "e"], "1"));
    let result = desk.call_tool("apply_patch", json!({ "input": patch }));
    assert_eq!(file_texts(&desk), ["one", "-", "-", "-"]);
    assert_eq!((desk.file_text("n/d"), desk.file_text("e")), ("three\n".into(), "new\n".into()));
    assert_eq!(
        (&result["added"], &result["modified"], &result["deleted"], &result["moved"]),
        (&json!(["e"]), &json!(["a", "c"]), &json!(["b"]), &json!([{ "from": "c", "to": "n/d" }]))
    );
    // The patch is one change, which is undone as one.
    desk.call_tool("undoFileChange", json!({ "path": "e" }));
    assert_eq!(file_texts(&desk), ["1", "2", "3", "-"]);
    assert_eq!((desk.file_text("n/d"), desk.file_text("e")), ("-".into(), "-".into()));
    let half = patch.replace("-3\n+three", "-4\n+four");
    let error = desk.call_refused_tool("apply_patch", json!({ "input": half }));
    let text = "c cannot be patched: chunk 1 of 1: its lines are not in the file: '4'";
    assert_eq!((error.kind, &*error.message), (ErrorKind::NotFound, text));
    assert_eq!(file_texts(&desk), ["1", "2", "3", "-"]);
    // An existing file is replaced completely.
    desk.write_file("w", "old\r\n");
    let add = "*** Begin Patch\n*** Add File: w\n+x\n+y\n*** End Patch";
    desk.call_tool("apply_patch", json!({ "input": add }));
    assert_eq!(desk.file_text("w"), "x\r\ny\r\n");
    let over = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch";
    assert_eq!(
        desk.call_refused_tool("apply_patch", json!({ "input": over })).kind,
        ErrorKind::Conflict
    );
    let outside = "*** Begin Patch\n*** Add File: ../x\n+x\n*** End Patch";
    let error = desk.call_refused_tool("apply_patch", json!({ "input": outside }));
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
}

/// Returns a session whose files `a` and `link` are one file, and `real` and `lnd` one folder.
fn linked_files_fixture() -> EditFixture {
    let desk = multi_file_fixture().with_file("real/r", "r\n");
    std::fs::hard_link(desk.path("b"), desk.path("b2")).unwrap();
    std::os::unix::fs::symlink("a", desk.path("link")).unwrap();
    std::os::unix::fs::symlink("real", desk.path("lnd")).unwrap();
    desk
}

#[test]
fn changes_of_one_file_under_two_names_are_refused_before_any_write() {
    let desk = linked_files_fixture();
    let first = json!({ "action": "edit", "path": "c", "old": "3", "new": "three" });
    let edit =
        |path: &str, new: &str| json!({ "action": "edit", "path": path, "old": "2", "new": new });
    let create = |path: &str| json!({ "action": "create", "path": path, "content": "n" });
    let cases = [
        (edit("b", "two"), edit("b2", "zwei"), "`b` and `b2` are the same file"),
        (
            edit("b", "two"),
            json!({ "action": "delete", "path": "b2" }),
            "`b` and `b2` are the same file",
        ),
        (
            json!({ "action": "edit", "path": "a", "old": "1", "new": "one" }),
            json!({ "action": "edit", "path": "link", "old": "1", "new": "one" }),
            "`a` and `link` are the same file",
        ),
        (create("lnd/n/m"), create("real/n/m"), "`lnd/n/m` and `real/n/m` are the same file"),
        (
            create("lnd/r2"),
            json!({ "action": "rename", "from": "c", "to": "real/r2" }),
            "`lnd/r2` and `real/r2` are the same file",
        ),
    ];
    for (one, other, text) in cases {
        let operations = json!([first, one, other]);
        let error = call_error(&desk, operations.clone());
        assert!(error.message.ends_with(text), "{error:?}");
        assert_eq!(error.kind, ErrorKind::Conflict);
        let preview = desk.preview_call("multiFileEdit", json!({ "operations": operations }));
        assert!(preview.refusal.unwrap().message.ends_with(text));
    }
    let patch = "*** Begin Patch\n*** Update File: b\n@@\n-2\n+two\n*** Update File: b2\n@@\n-2\n\
                 +zwei\n*** End Patch";
    let error = desk.call_refused_tool("apply_patch", json!({ "input": patch }));
    assert_eq!(error.message, "`b` and `b2` are the same file");
    let over = json!({ "source_path": "b", "destination_path": "b2", "overwrite": true });
    assert_eq!(desk.call_refused_tool("moveFile", over).message, "`b` and `b2` are the same file");
    let over = json!({ "source_path": "lnd/r", "destination_path": "real/r", "overwrite": true });
    assert_eq!(
        desk.call_refused_tool("moveFile", over).message,
        "`lnd/r` and `real/r` are the same file"
    );
    assert_eq!((desk.file_text("b"), desk.file_text("real/r")), ("2\n".into(), "r\n".into()));
    assert_eq!(desk.call_tool("listBackups", json!({}))["count"], 0);
}

#[test]
fn same_edit_of_two_hard_links_is_rolled_back_as_one() {
    let desk = linked_files_fixture();
    let edit = |path: &str| json!({ "action": "edit", "path": path, "old": "2", "new": "two" });
    // A file is in the way of a new folder.
    let fails = json!({ "action": "create", "path": "c/below", "content": "x" });
    let error = call_error(&desk, json!([edit("b"), edit("b2"), fails]));
    assert!(error.message.ends_with("; nothing was changed"), "{error:?}");
    assert_eq!(desk.file_text("b2"), "2\n");
    run_operations(&desk, json!([edit("b"), edit("b2")]));
    assert_eq!((desk.file_text("b"), desk.file_text("b2")), ("two\n".into(), "two\n".into()));
}
