//! Tests the history of changes: tampered entries are not used.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{FileToolsHouse, edit_arguments};

/// Finds a file or folder of the history by its name.
fn find_in_history(desk: &FileToolsHouse, name: &str) -> PathBuf {
    fn find(folder: &Path, name: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(folder).ok()?.map(|entry| entry.unwrap().path());
        entries.into_iter().find_map(|path| match path.file_name().unwrap() == name {
            true => Some(path),
            false => find(&path, name),
        })
    }
    find(&desk.house.home().join(".local/share/jaato"), name).unwrap()
}

#[test]
fn a_content_that_was_tampered_with_is_not_restored() {
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("a", "password");
    let mut calls = desk.start_calls();
    calls.call("updateFile", &edit_arguments("a", "password", "hunter2"));
    let digest = "884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
    fs::write(find_in_history(&desk, digest), "passw0rd").unwrap();
    let error = calls.call_refused("undoFileChange", &json!({ "path": "a" }));
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with("in the history of changes is damaged"), "{error}");
    assert_eq!((error["kind"].as_str(), desk.file_text("a").as_str()), (Some("io"), "hunter2"));
    calls.end(&desk.house);
}
