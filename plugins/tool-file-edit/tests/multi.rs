//! Tests of `multiFileEdit`.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Error, ErrorKind};

use crate::support::Desk;

fn desk() -> Desk {
    Desk::new().with("a", "1\n").with("b", "2\n").with("c", "3\n")
}

fn texts(desk: &Desk) -> [String; 4] {
    ["a", "b", "c", "d"].map(|name| desk.text(name).trim_end().to_owned())
}

fn run(desk: &Desk, operations: Value) -> Value {
    desk.call("multiFileEdit", json!({ "operations": operations }))
}

#[track_caller]
fn refused(desk: &Desk, operations: Value) -> Error {
    let before = texts(desk);
    let error = desk.refused("multiFileEdit", json!({ "operations": operations }));
    assert_eq!(texts(desk), before);
    error
}

#[test]
fn all_operations_are_done_in_order() {
    let desk = desk();
    let result = run(
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
    assert_eq!(texts(&desk), ["uno", "again", "-", "three"]);
    assert_eq!(result["operations_completed"], 6);
    assert_eq!(result["files_modified"], json!(["a", "d"]));
    assert_eq!(result["files_created"], json!(["b"]));
    assert_eq!(result["files_renamed"], json!([{ "from": "c", "to": "d" }]));
    let diff = result["diff"].as_str().unwrap();
    assert!(diff.contains("--- a/c\n+++ b/d\n@@ -1 +1 @@\n-3\n+three"), "{diff}");
}

#[test]
fn files_change_places() {
    let desk = desk();
    run(
        &desk,
        json!([
            { "action": "rename", "source_path": "a", "destination_path": "d" },
            { "action": "rename", "from": "b", "to": "a" },
            { "action": "rename", "from": "d", "to": "b" },
        ]),
    );
    assert_eq!(texts(&desk), ["2", "1", "3", "-"]);
}

#[test]
fn one_operation_that_cannot_be_done_undoes_all() {
    let desk = desk();
    let edit = json!({ "action": "edit", "path": "a", "old": "1", "new": "one" });
    let message = |second: Value| refused(&desk, json!([edit, second])).message;
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
    let error = refused(&desk, json!([]));
    assert_eq!(error.message, "operations array is required and cannot be empty");
    let outside = json!([edit, { "action": "create", "path": "../x", "content": "" }]);
    assert_eq!(refused(&desk, outside).kind, ErrorKind::PermissionDenied);
}

#[test]
fn what_fails_while_it_is_done_is_taken_back() {
    let desk = desk();
    // A file is in the way of a new folder.
    let error = refused(
        &desk,
        json!([
            { "action": "edit", "path": "a", "old": "1", "new": "one" },
            { "action": "delete", "path": "b" },
            { "action": "create", "path": "c/below", "content": "x" },
        ]),
    );
    assert!(error.message.ends_with("nothing was changed"), "{error:?}");
    let backups = desk.call("listBackups", json!({ "path": "a" }));
    assert_eq!(
        desk.refused("undoFileChange", json!({ "path": "a" })).kind,
        ErrorKind::NotFound,
        "{backups}"
    );
}

#[test]
fn one_preview_shows_all_of_it() {
    let desk = desk();
    let preview = desk.preview(
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
    assert_eq!(texts(&desk), ["1", "2", "3", "-"]);
}

#[test]
fn a_patch_changes_many_files_or_none() {
    let desk = desk();
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n*** Delete File: b\n\
                 *** Update File: c\n*** Move to: n/d\n@@\n-3\n+three\n*** Add File: e\n+new\n\
                 *** End Patch";
    let preview = desk.preview("apply_patch", json!({ "input": patch }));
    assert_eq!(preview.text, "Patch 4 files (+3, -3 lines)");
    let paths: Vec<_> = preview.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!((paths, texts(&desk)[0].as_str()), (vec!["a", "b", "n/d", "e"], "1"));
    let result = desk.call("apply_patch", json!({ "input": patch }));
    assert_eq!(texts(&desk), ["one", "-", "-", "-"]);
    assert_eq!((desk.text("n/d"), desk.text("e")), ("three\n".into(), "new\n".into()));
    assert_eq!(
        (&result["added"], &result["modified"], &result["deleted"], &result["moved"]),
        (&json!(["e"]), &json!(["a", "c"]), &json!(["b"]), &json!([{ "from": "c", "to": "n/d" }]))
    );
    // The patch is one change, which is undone as one.
    desk.call("undoFileChange", json!({ "path": "e" }));
    assert_eq!(texts(&desk), ["1", "2", "3", "-"]);
    assert_eq!((desk.text("n/d"), desk.text("e")), ("-".into(), "-".into()));
    let half = patch.replace("-3\n+three", "-4\n+four");
    let error = desk.refused("apply_patch", json!({ "input": half }));
    let text = "c cannot be patched: chunk 1 of 1: its lines are not in the file: '4'";
    assert_eq!((error.kind, &*error.message), (ErrorKind::NotFound, text));
    assert_eq!(texts(&desk), ["1", "2", "3", "-"]);
    // An existing file is replaced completely.
    desk.write("w", "old\r\n");
    let add = "*** Begin Patch\n*** Add File: w\n+x\n+y\n*** End Patch";
    desk.call("apply_patch", json!({ "input": add }));
    assert_eq!(desk.text("w"), "x\r\ny\r\n");
    let over = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch";
    assert_eq!(desk.refused("apply_patch", json!({ "input": over })).kind, ErrorKind::Conflict);
    let outside = "*** Begin Patch\n*** Add File: ../x\n+x\n*** End Patch";
    let error = desk.refused("apply_patch", json!({ "input": outside }));
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
}
