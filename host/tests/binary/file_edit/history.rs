//! The history of changes: shared by processes, read by later ones, damaged and bounded.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Desk, edit};
use crate::support::shells::Calls;

/// Changes that each of two processes makes.
const CHANGES: usize = 20;

/// Finds a file or folder of the history by its name.
fn of_history(desk: &Desk, name: &str) -> PathBuf {
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
fn two_processes_that_edit_at_once_lose_nothing_of_either() {
    let Some(desk) = Desk::new() else { return };
    let names = ["one", "two"];
    for name in names {
        desk.write(name, "0");
    }
    let mut both = names.map(|_| desk.calls());
    for number in 0..CHANGES {
        for (calls, name) in both.iter_mut().zip(names) {
            calls.call("updateFile", &edit(name, &number.to_string(), &(number + 1).to_string()));
        }
    }
    for calls in both {
        calls.end_alone();
    }
    let mut later = desk.calls();
    for name in names {
        for number in (0..CHANGES).rev() {
            later.call("undoFileChange", &json!({ "path": name }));
            assert_eq!(desk.text(name), number.to_string());
        }
        later.refused("undoFileChange", &json!({ "path": name }));
    }
    later.end(&desk.house);
}

#[test]
fn a_damaged_history_says_so_once_and_undoes_what_it_still_knows() {
    let Some(desk) = Desk::new() else { return };
    desk.write("a", "1");
    let mut calls = desk.calls();
    calls.call("updateFile", &edit("a", "1", "2"));
    calls.call("updateFile", &edit("a", "2", "3"));
    calls.end(&desk.house);
    let journal = of_history(&desk, "journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let second = text.lines().nth(1).unwrap();
    // The last line is torn, and one in the middle is no longer what it was.
    let damaged = text.replace(second, &second.replace("\"id\"", "\u{0}\"id"));
    fs::write(&journal, format!("{damaged}{{\"change\":{{\"id\":9")).unwrap();
    let mut calls = desk.calls();
    let written = calls.call("writeNewFile", &json!({ "path": "n", "content": "" }));
    let told = written["mended"][0].as_str().unwrap();
    assert!(told.starts_with("the history of changes is damaged: 2 of its entries"), "{told}");
    let backups = calls.call("listBackups", &json!({ "path": "a" }));
    assert_eq!(backups["count"], 1, "{backups}");
    // The content that the last known change made is not there any more: nothing is guessed.
    calls.refused("undoFileChange", &json!({ "path": "a" }));
    let backup = &backups["backups"][0]["backup_path"];
    let restored = calls.call("restoreFile", &json!({ "path": "a", "backup_path": backup }));
    assert!(restored.get("mended").is_none(), "{restored}");
    assert_eq!(desk.text("a"), "1");
    calls.call("undoFileChange", &json!({ "path": "a" }));
    assert_eq!(desk.text("a"), "3");
    calls.end(&desk.house);
}

#[test]
fn a_content_that_was_tampered_with_is_not_restored() {
    let Some(desk) = Desk::new() else { return };
    desk.write("a", "password");
    let mut calls = desk.calls();
    calls.call("updateFile", &edit("a", "password", "hunter2"));
    let digest = "884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
    fs::write(of_history(&desk, digest), "passw0rd").unwrap();
    let error = calls.refused("undoFileChange", &json!({ "path": "a" }));
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with("in the history of changes is damaged"), "{error}");
    assert_eq!((error["kind"].as_str(), desk.text("a").as_str()), (Some("io"), "hunter2"));
    calls.end(&desk.house);
}

#[test]
fn as_many_changes_of_a_file_are_kept_as_the_setting_says() {
    let Some(desk) = Desk::new() else { return };
    let command = desk.house.command(&["call", "--batch"]).patient();
    let mut calls = Calls::start(command.variable("JAATO_FILE_BACKUP_COUNT", "3"));
    desk.write("a", "0");
    for number in 0..6 {
        let (old, new) = (number.to_string(), (number + 1).to_string());
        calls.call("updateFile", &edit("a", &old, &new));
    }
    for expected in ["5", "4", "3"] {
        calls.call("undoFileChange", &json!({ "path": "a" }));
        // Going back and forth pushes out nothing that can still be undone.
        calls.call("undoFileChange", &json!({ "path": "a", "redo": true }));
        calls.call("undoFileChange", &json!({ "path": "a" }));
        assert_eq!(desk.text("a"), expected);
    }
    calls.refused("undoFileChange", &json!({ "path": "a" }));
    for expected in ["4", "5", "6"] {
        calls.call("undoFileChange", &json!({ "path": "a", "redo": true }));
        assert_eq!(desk.text("a"), expected);
    }
    calls.end(&desk.house);
}
