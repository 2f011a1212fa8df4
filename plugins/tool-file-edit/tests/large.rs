//! Files that are read, digested and written in chunks.

use std::fs;

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;

use crate::support::EditFixture;

/// More files than drafts are open at a time, in one change.
const FILES: usize = 6;

/// Returns a text slightly larger than one write.
fn large_text(word: &str) -> String {
    let half = "a line of a file\n".repeat(4 * 1024 * 1024 / 17 / 2 + 1000);
    format!("{half}{word}\n{half}")
}

fn large_files_fixture() -> EditFixture {
    (0..FILES).fold(EditFixture::new(), |desk, number| {
        desk.with_file(&number.to_string(), large_text("old"))
    })
}

/// Returns the names of all entries in the folder.
fn entry_names(desk: &EditFixture) -> Vec<String> {
    let entries = fs::read_dir(desk.path("")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn edit_operations() -> Vec<Value> {
    let edit = |number| json!({ "action": "edit", "path": format!("{number}"), "old": "old", "new": "new" });
    (0..FILES).map(edit).collect()
}

#[test]
fn large_file_is_edited_and_undone() {
    let desk = EditFixture::new().with_file("a", large_text("old"));
    let result =
        desk.call_tool("updateFile", json!({ "path": "a", "old": "old\n", "new": "new\n\n" }));
    let expected = large_text("new\n");
    assert!(desk.file_text("a") == expected);
    assert_eq!(result["size"], expected.len());
    assert_eq!(result["lines"], expected.lines().count());
    let diff = "@@ -124359,7 +124359,8 @@";
    assert!(result["diff"].as_str().unwrap().starts_with(diff), "{}", result["diff"]);
    desk.call_tool("undoFileChange", json!({ "path": "a" }));
    assert!(desk.file_text("a") == large_text("old"));
    desk.call_tool("undoFileChange", json!({ "path": "a", "redo": true }));
    assert!(desk.file_text("a") == expected);
    assert_eq!(entry_names(&desk), ["a"]);
}

#[test]
fn large_file_changed_by_others_is_refused_once() {
    let desk = EditFixture::new().with_file("a", large_text("old"));
    desk.call_tool("updateFile", json!({ "path": "a", "old": "old", "new": "new" }));
    desk.write_file("a", large_text("new"));
    desk.call_tool("updateFile", json!({ "path": "a", "old": "new", "new": "newer" }));
    desk.write_file("a", large_text("newest"));
    let edit = json!({ "path": "a", "old": "newest", "new": "last" });
    let error = desk.call_refused_tool("updateFile", edit.clone());
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.hint.as_deref().unwrap().starts_with("read it again"), "{error:?}");
    desk.call_tool("updateFile", edit);
    assert!(desk.file_text("a") == large_text("last"));
}

#[test]
fn many_large_files_are_one_change() {
    let desk = large_files_fixture();
    desk.call_tool("multiFileEdit", json!({ "operations": edit_operations() }));
    let new = large_text("new");
    assert!((0..FILES).all(|number| desk.file_text(&number.to_string()) == new));
    assert_eq!(entry_names(&desk).len(), FILES);
}

#[test]
fn large_files_stay_unchanged_if_the_change_fails() {
    let desk = large_files_fixture().with_file("folder", "a file where a folder must be made");
    let mut operations = edit_operations();
    operations.push(json!({ "action": "create", "path": "folder/below", "content": "x" }));
    let error = desk.call_refused_tool("multiFileEdit", json!({ "operations": operations }));
    assert!(error.message.ends_with("nothing was changed"), "{error:?}");
    let old = large_text("old");
    assert!((0..FILES).all(|number| desk.file_text(&number.to_string()) == old));
    assert_eq!(entry_names(&desk).len(), FILES + 1);
}
