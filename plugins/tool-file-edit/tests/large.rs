//! Files that are read, digested and written in chunks.

use std::fs;

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;

use crate::support::EditFixture;

/// More files than drafts are open at a time, in one change.
const FILES: usize = 6;

/// Returns a text slightly larger than one write.
fn large(word: &str) -> String {
    let half = "a line of a file\n".repeat(4 * 1024 * 1024 / 17 / 2 + 1000);
    format!("{half}{word}\n{half}")
}

fn desk() -> EditFixture {
    (0..FILES)
        .fold(EditFixture::new(), |desk, number| desk.with_file(&number.to_string(), large("old")))
}

/// Returns the names of all entries in the folder.
fn names(desk: &EditFixture) -> Vec<String> {
    let entries = fs::read_dir(desk.path("")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn edits() -> Vec<Value> {
    let edit = |number| json!({ "action": "edit", "path": format!("{number}"), "old": "old", "new": "new" });
    (0..FILES).map(edit).collect()
}

#[test]
fn large_file_is_edited_and_undone() {
    let desk = EditFixture::new().with_file("a", large("old"));
    let result = desk.call("updateFile", json!({ "path": "a", "old": "old\n", "new": "new\n\n" }));
    let expected = large("new\n");
    assert!(desk.text("a") == expected);
    assert_eq!(result["size"], expected.len());
    assert_eq!(result["lines"], expected.lines().count());
    let diff = "@@ -124359,7 +124359,8 @@";
    assert!(result["diff"].as_str().unwrap().starts_with(diff), "{}", result["diff"]);
    desk.call("undoFileChange", json!({ "path": "a" }));
    assert!(desk.text("a") == large("old"));
    desk.call("undoFileChange", json!({ "path": "a", "redo": true }));
    assert!(desk.text("a") == expected);
    assert_eq!(names(&desk), ["a"]);
}

#[test]
fn large_file_changed_by_others_is_refused_once() {
    let desk = EditFixture::new().with_file("a", large("old"));
    desk.call("updateFile", json!({ "path": "a", "old": "old", "new": "new" }));
    desk.write("a", large("new"));
    desk.call("updateFile", json!({ "path": "a", "old": "new", "new": "newer" }));
    desk.write("a", large("newest"));
    let edit = json!({ "path": "a", "old": "newest", "new": "last" });
    let error = desk.refused("updateFile", edit.clone());
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.hint.as_deref().unwrap().starts_with("read it again"), "{error:?}");
    desk.call("updateFile", edit);
    assert!(desk.text("a") == large("last"));
}

#[test]
fn many_large_files_are_one_change() {
    let desk = desk();
    desk.call("multiFileEdit", json!({ "operations": edits() }));
    let new = large("new");
    assert!((0..FILES).all(|number| desk.text(&number.to_string()) == new));
    assert_eq!(names(&desk).len(), FILES);
}

#[test]
fn large_files_stay_unchanged_if_the_change_fails() {
    let desk = desk().with_file("folder", "a file where a folder must be made");
    let mut operations = edits();
    operations.push(json!({ "action": "create", "path": "folder/below", "content": "x" }));
    let error = desk.refused("multiFileEdit", json!({ "operations": operations }));
    assert!(error.message.ends_with("nothing was changed"), "{error:?}");
    let old = large("old");
    assert!((0..FILES).all(|number| desk.text(&number.to_string()) == old));
    assert_eq!(names(&desk).len(), FILES + 1);
}
