//! Attempts that need their own ground.

use std::fs;

use jaato_plugin_sdk_environment::files::{AllowedFolder, ConfinedFiles, ConfinedFilesSettings};
use jaato_types::ErrorKind;
use jaato_types::files::*;

use super::trap::{EscapeTrap, SECRET};
use crate::support::TestFolders;

fn read_text(confined: &ConfinedFiles, path: &str) -> jaato_types::Result<String> {
    let request = FileRead { path: path.to_owned(), ..FileRead::default() };
    confined.read(&request).map(|(_, bytes)| String::from_utf8(bytes).unwrap())
}

fn write_request(path: &str) -> FileWrite {
    FileWrite { path: path.to_owned(), ..FileWrite::default() }
}

#[test]
fn invalid_paths_are_refused() {
    let trap = EscapeTrap::new();
    for (path, part) in [
        ("", "empty"),
        ("file.txt\0/../../outside/secret.txt", "NUL"),
        (&"../outside/".repeat(1000), "too long"),
    ] {
        let error = read_text(&trap.confined, path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error}");
        assert!(error.message.contains(part) && error.message.len() < 200, "{error}");
    }
    let error = read_text(&trap.confined, &"x".repeat(300)).unwrap_err();
    assert!(error.message.ends_with("the name is too long"), "{error}");
}

#[test]
fn path_with_different_case_is_outside_the_allowed_folder() {
    let trap = EscapeTrap::new();
    let path = trap.ground.shown_path("work").replace("/work", "/WORK");
    let error = read_text(&trap.confined, &format!("{path}/file.txt")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
}

#[test]
fn symlink_loop_is_reported_as_a_loop() {
    let trap = EscapeTrap::new();
    for path in ["loop_1", "loop_1/file.txt", "loop_2/../file.txt"] {
        let error = read_text(&trap.confined, path).unwrap_err();
        assert!(error.message.contains("loop of symbolic links"), "{error}");
    }
}

#[test]
fn hard_link_can_be_read_and_written_like_any_file() {
    let trap = EscapeTrap::new();
    // A process that can create a hard link can already read and write the file.
    fs::hard_link(trap.ground.path("outside/secret.txt"), trap.ground.path("work/hard")).unwrap();
    assert_eq!(read_text(&trap.confined, "hard").unwrap(), SECRET);
    trap.confined.write(&write_request("hard"), b"new").unwrap();
    assert_eq!(trap.ground.read_text("work/hard"), "new");
    assert_eq!(trap.ground.read_text("outside/secret.txt"), "new");
}

#[test]
fn renamed_allowed_folder_stays_the_opened_folder() {
    let trap = EscapeTrap::new();
    fs::rename(trap.ground.path("work"), trap.ground.path("renamed")).unwrap();
    trap.ground.make_link(trap.ground.path("outside"), "work");
    assert_eq!(read_text(&trap.confined, "file.txt").unwrap(), "inside");
    assert_eq!(read_text(&trap.confined, "secret.txt").unwrap_err().kind, ErrorKind::NotFound);
    trap.confined.write(&write_request("new.txt"), b"new").unwrap();
    assert_eq!(trap.ground.read_text("renamed/new.txt"), "new");
    assert!(!trap.ground.path("outside/new.txt").exists());
}

#[test]
fn a_walk_does_not_enter_links_and_a_pattern_does_not_either() {
    let trap = EscapeTrap::new();
    let walk = trap.confined.walk(&FileWalk { include_ignored: true, ..FileWalk::default() });
    let pages: Vec<WalkedPage> = walk.unwrap().map(Result::unwrap).collect();
    let paths: Vec<&str> =
        pages.iter().flat_map(|page| &page.entries).map(|entry| entry.path.as_str()).collect();
    assert!(paths.contains(&"absolute_folder") && paths.contains(&"folder/in/up"), "{paths:?}");
    assert!(!paths.iter().any(|path| path.contains("secret")), "{paths:?}");
    for pattern in ["**/secret.txt", "*/secret.txt", "*/*/*/secret.txt", "{above,top}/**"] {
        let request = FileFind { pattern: pattern.to_owned(), ..FileFind::default() };
        let mut pages = trap.confined.find(&request).unwrap();
        assert!(pages.all(|page| page.unwrap().files.is_empty()), "{pattern}");
    }
    let request = FileFind { pattern: "*/../../outside/*".to_owned(), ..FileFind::default() };
    let error = trap.confined.find(&request).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[test]
fn deleting_a_folder_deletes_links_in_it_and_not_what_they_lead_to() {
    let trap = EscapeTrap::new();
    trap.confined.delete(&FileDelete { path: "folder".to_owned(), recursive: true }).unwrap();
    assert!(!trap.ground.path("work/folder").exists());
    trap.check_untouched("delete", "");
}

#[test]
fn copied_folder_keeps_its_links_and_their_targets_stay_refused() {
    let trap = EscapeTrap::new();
    let pair = FilePair { from: "folder".to_owned(), to: "copy".to_owned(), overwrite: false };
    trap.confined.copy(&pair).unwrap();
    let link = fs::read_link(trap.ground.path("work/copy/chain_3")).unwrap();
    assert_eq!(link, trap.ground.path("outside"));
    let error = read_text(&trap.confined, "copy/chain_3/secret.txt").unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    trap.check_untouched("copy", "");
}

#[test]
fn allowed_folders_and_their_parents_cannot_be_deleted_or_moved() {
    let ground = TestFolders::new();
    fs::create_dir_all(ground.path("work/a/inner")).unwrap();
    ground.put_file("work/a/inner/file.txt", "inner");
    ground.make_link("a", "work/other_name");
    let inner = AllowedFolder {
        access: jaato_plugin_sdk_environment::files::FolderAccess::Read,
        ..AllowedFolder::local(ground.path("work/a/inner"))
    };
    let confined = ConfinedFiles::open(&ConfinedFilesSettings {
        roots: vec![AllowedFolder::local(ground.path("work")), inner],
        default_folder: ground.path("work"),
        temporary: None,
    })
    .unwrap();
    for path in [".", "a", "a/inner", "a/../a", "other_name/inner", "a/inner/.."] {
        let delete = FileDelete { path: path.to_owned(), recursive: true };
        let error = confined.delete(&delete).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied, "{path}: {error}");
        let pair = FilePair { from: path.to_owned(), to: "b".to_owned(), overwrite: true };
        let error = confined.move_to(&pair).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied, "{path}: {error}");
    }
    for path in ["a/inner/new", "other_name/inner/new", "a/inner/../inner/new", "a/inner/x/new"] {
        let request = FileWrite { parents: true, ..write_request(path) };
        let error = confined.write(&request, b"new").unwrap_err();
        assert!(error.message.ends_with("is read-only"), "{path}: {error}");
    }
    assert_eq!(read_text(&confined, "other_name/inner/file.txt").unwrap(), "inner");
    assert_eq!(fs::read_dir(ground.path("work/a/inner")).unwrap().count(), 1);
}

#[test]
fn read_only_folder_cannot_be_changed() {
    let trap = EscapeTrap::new();
    for operation in super::operations::OPERATIONS {
        let path = trap.ground.shown_path("fixed/file.txt");
        let _ = (operation.run)(&trap.confined, &path);
        let _ = (operation.run)(&trap.confined, &trap.ground.shown_path("fixed/new"));
        let names: Vec<_> =
            fs::read_dir(trap.ground.path("fixed")).unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(names.len(), 2, "{}: {names:?}", operation.name);
        assert_eq!(trap.ground.read_text("fixed/file.txt"), "fixed", "{}", operation.name);
    }
}
