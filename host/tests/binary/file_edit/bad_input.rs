//! Tests unusual files: each causes a clear error at most.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::Command as Program;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{FileToolsHouse, edit_arguments};
use crate::support::{Command, skip};

/// Maximum number of lines that a writer adds during a read, so that the file remains editable.
const LINES_APPENDED_MAX: usize = 1_000_000;

const TOOLS: [&str; 5] = ["readFile", "updateFile", "removeFile", "undoFileChange", "restoreFile"];

fn invalid_arguments(tool: &str, path: &str) -> Value {
    match tool {
        "updateFile" => json!({ "path": path, "new_content": "x" }),
        _ => json!({ "path": path }),
    }
}

#[test]
fn path_outside_the_workspace_is_refused_by_every_edit_tool() {
    let Some(desk) = FileToolsHouse::new() else { return };
    let outside = desk.house.write("outside.txt", "theirs\n");
    symlink(&outside, desk.path("link.txt")).unwrap();
    symlink("..", desk.path("up")).unwrap();
    let mut calls = desk.start_calls();
    let absolute = outside.display().to_string();
    for path in ["../outside.txt", "link.txt", "up/outside.txt", &absolute, "/etc/passwd"] {
        for tool in TOOLS {
            let error = calls.call_refused(tool, &invalid_arguments(tool, path));
            assert_eq!(error["kind"], "permission_denied", "{tool} {path}: {error}");
        }
        let moved = json!({ "source_path": path, "destination_path": "mine.txt" });
        assert_eq!(calls.call_refused("moveFile", &moved)["kind"], "permission_denied");
        let operations = json!({ "operations": [{ "action": "delete", "path": path }] });
        assert_eq!(calls.call_refused("multiFileEdit", &operations)["kind"], "permission_denied");
    }
    let all = json!({ "pattern": "theirs", "replacement": "mine", "paths": "**/*" });
    assert_eq!(calls.call("findAndReplace", &all)["total_matches"], 0);
    let all = json!({ "pattern": "theirs", "replacement": "mine", "paths": "../*" });
    calls.call_refused("findAndReplace", &all);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs\n");
    calls.end(&desk.house);
}

#[test]
fn folders_pipes_devices_and_link_loops_are_refused_at_once() {
    let Some(desk) = FileToolsHouse::new() else { return };
    fs::create_dir(desk.path("folder")).unwrap();
    symlink("loop", desk.path("loop")).unwrap();
    symlink("/dev/zero", desk.path("zero")).unwrap();
    if !Program::new("mkfifo").arg(desk.path("pipe")).status().is_ok_and(|made| made.success()) {
        return skip("`mkfifo` is not installed");
    }
    let mut calls = desk.start_calls();
    for (path, text) in [
        ("folder", "Not a file"),
        ("pipe", "Not a file"),
        ("loop", "loop of symbolic links"),
        ("zero", "zero"),
    ] {
        for tool in ["readFile", "updateFile", "removeFile"] {
            let error = calls.call_refused(tool, &invalid_arguments(tool, path));
            assert!(error["message"].as_str().unwrap().contains(text), "{tool} {path}: {error}");
        }
        let made = json!({ "path": path, "content": "" });
        let error = calls.call_refused("writeNewFile", &made);
        assert!(
            ["conflict", "io", "permission_denied"].contains(&error["kind"].as_str().unwrap()),
            "{path}: {error}"
        );
    }
    let all = json!({ "pattern": "x", "replacement": "y", "paths": "**/*" });
    assert_eq!(calls.call("findAndReplace", &all)["files_searched"], 0);
    calls.end(&desk.house);
}

#[test]
fn links_are_written_through_and_neither_moved_nor_removed() {
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("a.txt", "word\n");
    symlink("a.txt", desk.path("link.txt")).unwrap();
    let mut calls = desk.start_calls();
    let moved = json!({ "source_path": "link.txt", "destination_path": "b.txt" });
    let over = json!({ "source_path": "a.txt", "destination_path": "link.txt", "overwrite": true });
    let delete = json!({ "operations": [{ "action": "delete", "path": "link.txt" }] });
    for (tool, arguments) in [
        ("removeFile", json!({ "path": "link.txt" })),
        ("moveFile", moved),
        ("moveFile", over),
        ("multiFileEdit", delete),
    ] {
        let error = calls.call_refused(tool, &arguments);
        assert_eq!(error["hint"], "it is a link: move or remove it with a command", "{tool}");
    }
    // Both names are found, but the file is changed once.
    let all = json!({ "pattern": "word", "replacement": "moon moon", "paths": "*" });
    assert_eq!(calls.call("findAndReplace", &all)["files_affected"], 1);
    assert_eq!(desk.file_text("a.txt"), "moon moon\n");
    assert!(fs::symlink_metadata(desk.path("link.txt")).unwrap().is_symlink());
    calls.end(&desk.house);
}

#[test]
fn file_names_with_invalid_utf8_are_skipped() {
    let Some(desk) = FileToolsHouse::new() else { return };
    let name = OsStr::from_bytes(b"caf\xE9.txt");
    fs::write(desk.house.workspace().join(name), "word\n").unwrap();
    desk.write("ä ö\n.txt", "word\n");
    let mut calls = desk.start_calls();
    let all = json!({ "pattern": "word", "replacement": "moon", "paths": "**/*.txt" });
    assert_eq!(calls.call("findAndReplace", &all)["files_affected"], 1);
    assert_eq!(desk.file_text("ä ö\n.txt"), "moon\n");
    assert_eq!(fs::read_to_string(desk.house.workspace().join(name)).unwrap(), "word\n");
    calls.call_refused("readFile", &json!({ "path": "caf\u{FFFD}.txt" }));
    calls.end(&desk.house);
}

#[test]
fn a_huge_file_is_read_in_part_and_not_changed() {
    let Some(desk) = FileToolsHouse::new() else { return };
    let mut file = File::create(desk.path("huge.txt")).unwrap();
    file.write_all("line of text\n".repeat(100_000).as_bytes()).unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(b"end\n").unwrap();
    let sparse = File::create(desk.path("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    let mut calls = desk.start_calls();
    let read = calls.call("readFile", &json!({ "path": "huge.txt", "limit": 200 }));
    let text = read["result"].as_str().unwrap();
    let heading = "path: huge.txt | lines: 1-200 of ? | size: 1073741828 | \
                   has_more: True\n\nline of text\n";
    assert!(text.starts_with(heading), "{}", &text[..120]);
    for path in ["huge.txt", "sparse"] {
        for tool in ["updateFile", "removeFile"] {
            let error = calls.call_refused(tool, &invalid_arguments(tool, path));
            assert_eq!(error["kind"], "limit_reached", "{tool} {path}: {error}");
        }
    }
    let error = calls.call_refused("readFile", &json!({ "path": "sparse" }));
    let text = "Not a text file: sparse (binary data, 1073741824 bytes)";
    assert_eq!(error["message"], text);
    calls.end(&desk.house);
}

#[test]
fn reading_a_growing_file_comes_to_an_end() {
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("log", "start\n".repeat(300_000));
    let (path, stop) = (desk.path("log"), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        let mut file = File::options().append(true).open(path).unwrap();
        for _ in 0..LINES_APPENDED_MAX {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            file.write_all(b"more and more\n").unwrap();
        }
        file
    });
    let mut calls = desk.start_calls();
    for offset in [1_u64, 299_990, 300_001] {
        let read = calls.call("readFile", &json!({ "path": "log", "offset": offset, "limit": 5 }));
        assert!(read["result"].as_str().unwrap().starts_with("path: log | lines: "), "{read}");
    }
    stop.store(true, Ordering::Relaxed);
    let mut file = writer.join().unwrap();
    // The first edit is refused because the file differs from the one that was read. The next one
    // examines it.
    file.write_all(b"and more\n").unwrap();
    for kind in ["conflict", "not_found"] {
        let error = calls.call_refused("updateFile", &edit_arguments("log", "no such text", "x"));
        assert_eq!(error["kind"], kind, "{error}");
    }
    calls.end(&desk.house);
}

#[test]
fn regex_with_exponential_cost_ends_quickly_or_is_refused() {
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("a.txt", "a".repeat(100_000));
    let mut calls = desk.start_calls();
    let all = json!({ "pattern": "(a*)*b", "replacement": "", "paths": "*" });
    assert_eq!(calls.call("findAndReplace", &all)["total_matches"], 0);
    let all = json!({ "pattern": r"(\w{1000}){1000}", "replacement": "", "paths": "*" });
    assert_eq!(calls.call_refused("findAndReplace", &all)["kind"], "invalid_arguments");
    calls.end(&desk.house);
}

/// Runs calls with a limit of this many KiB per file, to simulate a full disk.
fn call_on_full_disk(desk: &FileToolsHouse, kib: u32, calls: &[Value]) -> Vec<Value> {
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let file = desk.house.write("calls.json", &lines);
    let line = format!(
        "trap '' XFSZ; ulimit -f {kib}; {} call --batch < {}",
        desk.house.binary().display(),
        file.display()
    );
    Command::program(&desk.house, "bash", &["-c", &line]).run().json_lines()
}

#[test]
fn a_full_disk_in_mid_edit_leaves_everything_as_it_was() {
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("a.txt", "a\n");
    desk.write("b.txt", "b\n");
    // Run once without a limit first, so that nothing else has to be written later.
    desk.start_calls().end(&desk.house);
    let large = "x".repeat(600 * 1024);
    let operations = json!({ "operations": [
        { "action": "edit", "path": "a.txt", "old": "a", "new": "A" },
        { "action": "delete", "path": "b.txt" },
        { "action": "create", "path": "new/c.txt", "content": large },
    ] });
    let multi = json!({ "tool": "multiFileEdit", "args": operations });
    let single = json!({ "tool": "updateFile", "args": { "path": "a.txt", "new_content": large } });
    let small = json!({ "tool": "updateFile", "args": edit_arguments("a.txt", "a", "A") });
    let answers = call_on_full_disk(&desk, 512, &[multi, single, small]);
    for answer in &answers[..2] {
        assert_eq!(answer["error"]["kind"], "limit_reached", "{answer}");
    }
    let message = answers[0]["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("; nothing was changed"), "{message}");
    assert_eq!(answers[2]["result"]["success"], true, "{}", answers[2]);
    let texts = ["a.txt", "b.txt", "new/c.txt"].map(|name| desk.file_text(name));
    assert_eq!(texts, ["A\n", "b\n", "-"]);
}

#[test]
fn edit_that_cannot_be_saved_in_the_history_is_refused() {
    let Some(desk) = FileToolsHouse::new() else { return };
    let large = "x\n".repeat(400 * 1024);
    desk.write("large.txt", &large);
    desk.start_calls().end(&desk.house);
    let remove = json!({ "tool": "removeFile", "args": { "path": "large.txt" } });
    let empty = json!({ "tool": "updateFile", "args": { "path": "large.txt", "new_content": "" } });
    for answer in call_on_full_disk(&desk, 512, &[remove, empty]) {
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("history of changes"),
            "{answer}"
        );
    }
    assert_eq!(desk.file_text("large.txt"), large);
}
