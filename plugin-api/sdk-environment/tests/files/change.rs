//! Tests of writing, editing, deleting, creating folders, moving and copying.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use jaato_plugin_sdk_environment::files::ConfinedFiles;
use jaato_types::files::*;
use jaato_types::{ErrorKind, Result};

use crate::support::{TestFolders, is_root, set_mode};

fn write_request(path: &str, mode: WriteMode) -> FileWrite {
    FileWrite { path: path.to_owned(), mode, ..FileWrite::default() }
}

fn write_file(confined: &ConfinedFiles, path: &str, text: &str) -> Result<FileFacts> {
    confined.write(&write_request(path, WriteMode::Replace), text.as_bytes())
}

fn edit_file(confined: &ConfinedFiles, edits: &[(&str, &str, bool)]) -> Result<FileEditAnswer> {
    let edits = edits.iter().map(|(old, new, all)| TextEdit {
        old: old.to_string(),
        new: new.to_string(),
        all: *all,
    });
    confined.edit(&FileEdit { path: "file".into(), edits: edits.collect(), expected: None })
}

fn file_pair(from: &str, to: &str, overwrite: bool) -> FilePair {
    FilePair { from: from.to_owned(), to: to.to_owned(), overwrite }
}

#[test]
fn write_modes_replace_append_and_create_new_work() {
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    assert_eq!(write_file(&confined, "file", "one").unwrap().size, 3);
    assert_eq!(write_file(&confined, "file", "two").unwrap().path, ground.shown_path("work/file"));
    assert_eq!(ground.read_text("work/file"), "two");
    let facts = confined.write(&write_request("file", WriteMode::Append), b" three").unwrap();
    assert_eq!((facts.size, ground.read_text("work/file")), (9, "two three".to_owned()));
    let error = confined.write(&write_request("file", WriteMode::CreateNew), b"x").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.ends_with("work/file`: it already exists"), "{error}");
    confined.write(&write_request("new", WriteMode::CreateNew), b"new").unwrap();
    confined.write(&write_request("newer", WriteMode::Append), b"newer").unwrap();
    assert_eq!(
        (ground.read_text("work/new"), ground.read_text("work/newer")),
        ("new".into(), "newer".into())
    );
    assert_eq!(fs::read_dir(ground.path("work")).unwrap().count(), 3, "a draft is left");
}

#[test]
fn file_with_hard_links_is_written_in_place() {
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    ground.put_file("work/file", "a longer text");
    fs::hard_link(ground.path("work/file"), ground.path("work/other")).unwrap();
    write_file(&confined, "file", "short").unwrap();
    assert_eq!(
        (ground.read_text("work/file"), ground.read_text("work/other")),
        ("short".into(), "short".into())
    );
    let mut stream = confined.write_stream(&write_request("other", WriteMode::Replace)).unwrap();
    stream.write(b"piece by ").unwrap();
    stream.write(b"piece").unwrap();
    assert_eq!(stream.finish().unwrap().size, 14);
    assert_eq!(ground.read_text("work/file"), "piece by piece");
    assert_eq!(fs::read_dir(ground.path("work")).unwrap().count(), 2, "a draft is left");
}

#[cfg(target_os = "linux")]
#[test]
fn extended_attributes_and_access_lists_stay() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    ground.put_file("work/file", "old");
    let path = ground.path("work/file");
    if setxattr(&path, "user.mark", b"moon", XattrFlags::empty()).is_err() {
        // This file system has no extended attributes.
        return;
    }
    // An access list that lets user 1 read and write, in addition to the owner.
    let list: Vec<u8> = [
        &2u32.to_le_bytes()[..],
        &[1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 6, 0, 1, 0, 0, 0],
        &[4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 6, 0, 255, 255, 255, 255],
        &[32, 0, 4, 0, 255, 255, 255, 255],
    ]
    .concat();
    let has_lists = setxattr(&path, "system.posix_acl_access", &list, XattrFlags::empty()).is_ok();
    write_file(&confined, "file", "new").unwrap();
    let read = |name: &str| {
        let mut value = vec![0; 256];
        let length = getxattr(&path, name, &mut value[..]).unwrap();
        value.truncate(length);
        value
    };
    assert_eq!(
        (read("user.mark"), ground.read_text("work/file")),
        (b"moon".to_vec(), "new".into())
    );
    if has_lists {
        assert_eq!(read("system.posix_acl_access"), list);
    }
}

#[test]
fn draft_in_use_cannot_be_deleted_but_an_abandoned_one_can() {
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    let stream = confined.write_stream(&write_request("file", WriteMode::Replace)).unwrap();
    let name = fs::read_dir(ground.path("work")).unwrap().next().unwrap().unwrap().file_name();
    let path = name.to_str().unwrap().to_owned();
    let delete = || confined.delete(&FileDelete { path: path.clone(), ..FileDelete::default() });
    let error = delete().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.ends_with("another process is writing it"), "{error}");
    drop(stream);
    ground.put_file(&format!("work/{path}"), "left by a kill");
    delete().unwrap();
    assert_eq!(fs::read_dir(ground.path("work")).unwrap().count(), 0);
}

#[test]
fn new_file_gets_the_requested_mode_and_an_existing_one_keeps_its_own() {
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    let mode = |name: &str| {
        fs::metadata(ground.path(&format!("work/{name}"))).unwrap().permissions().mode() & 0o7777
    };
    let ask =
        |path: &str, mode| FileWrite { permissions: Some(0o4751), ..write_request(path, mode) };
    confined.write(&ask("new", WriteMode::CreateNew), b"x").unwrap();
    confined.write(&ask("made", WriteMode::Replace), b"x").unwrap();
    let mut stream = confined.write_stream(&ask("streamed", WriteMode::CreateNew)).unwrap();
    stream.write(b"x").unwrap();
    stream.finish().unwrap();
    // The set-user-ID and set-group-ID bits are removed.
    assert_eq!(["new", "made", "streamed"].map(mode), [0o751; 3]);
    set_mode(&ground.path("work/new"), 0o640);
    confined.write(&ask("new", WriteMode::Replace), b"y").unwrap();
    assert_eq!(mode("new"), 0o640);
}

#[test]
fn stat_returns_the_link_itself_on_request() {
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    write_file(&confined, "file", "text").unwrap();
    std::os::unix::fs::symlink("file", ground.path("work/link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", ground.path("work/out")).unwrap();
    let kind = |path: &str, itself| {
        let request = FilePath { path: path.to_owned(), itself, ..FilePath::default() };
        assert!(!itself || confined.stat_cached(&request).is_none());
        confined.stat(&request).map(|facts| facts.kind).ok()
    };
    assert_eq!(
        (kind("link", false), kind("link", true)),
        (Some(FileKind::File), Some(FileKind::Link))
    );
    assert_eq!((kind("out", false), kind("out", true)), (None, Some(FileKind::Link)));
    assert_eq!((kind("file", true), kind("none", true)), (Some(FileKind::File), None));
}

#[test]
fn folders_that_are_missing_are_made_only_if_asked() {
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    let error = write_file(&confined, "a/b/file", "x").unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let with_parents = FileWrite { parents: true, ..write_request("a/b/file", WriteMode::Replace) };
    confined.write(&with_parents, b"x").unwrap();
    assert_eq!(ground.read_text("work/a/b/file"), "x");
    let make =
        |path: &str, parents| confined.make_folder(&FolderMake { path: path.to_owned(), parents });
    assert_eq!(make("c/d", false).unwrap_err().kind, ErrorKind::NotFound);
    make("c/d/", true).unwrap();
    make("c/d", false).unwrap();
    make(".", false).unwrap();
    assert_eq!(make("a/b/file", false).unwrap_err().kind, ErrorKind::Conflict);
    assert!(ground.path("work/c/d").is_dir());
}

#[test]
fn permission_bits_and_owner_are_kept_and_read_only_files_are_not_written() {
    let ground = TestFolders::new();
    ground.put_file("work/file", "old");
    set_mode(&ground.path("work/file"), 0o4751);
    let confined = ground.open_confined();
    if is_root() {
        std::os::unix::fs::chown(ground.path("work/file"), Some(7), Some(8)).unwrap();
        set_mode(&ground.path("work/file"), 0o4751);
    }
    let before = fs::metadata(ground.path("work/file")).unwrap();
    write_file(&confined, "file", "new").unwrap();
    let after = fs::metadata(ground.path("work/file")).unwrap();
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    // Content from another user must not keep the set-user-ID bit.
    assert_eq!(after.permissions().mode() & 0o7777, 0o751);
    if !is_root() {
        set_mode(&ground.path("work/file"), 0o444);
        let error = write_file(&confined, "file", "newer").unwrap_err();
        assert!(error.message.ends_with("permission denied"), "{error}");
        assert_eq!(ground.read_text("work/file"), "new");
        // A read-only folder may contain writable files.
        set_mode(&ground.path("work/file"), 0o644);
        set_mode(&ground.path("work"), 0o555);
        write_file(&confined, "file", "n").unwrap();
        set_mode(&ground.path("work"), 0o755);
        assert_eq!(ground.read_text("work/file"), "n");
    }
}

#[test]
fn writing_through_a_link_keeps_the_link_and_changes_its_target() {
    let ground = TestFolders::new();
    ground.put_file("second/file", "old");
    ground.make_link(ground.path("second/file"), "work/link");
    ground.make_link("new", "work/dangling");
    let confined = ground.open_confined();
    write_file(&confined, "link", "new").unwrap();
    write_file(&confined, "dangling", "made").unwrap();
    confined.write(&write_request("link", WriteMode::Append), b"er").unwrap();
    assert_eq!(
        (ground.read_text("second/file"), ground.read_text("work/new")),
        ("newer".into(), "made".into())
    );
    assert!(fs::symlink_metadata(ground.path("work/link")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(ground.path("work/dangling")).unwrap().is_symlink());
    let error = confined.write(&write_request("link", WriteMode::CreateNew), b"x").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
}

#[test]
fn a_file_that_was_changed_meanwhile_is_not_overwritten() {
    let ground = TestFolders::new();
    ground.put_file("work/file", "one");
    let confined = ground.open_confined();
    let read = FileReadText { path: "file".into(), ..FileReadText::default() };
    let version = confined.read_text(&read).unwrap().version;
    let stat = confined.stat(&FilePath { path: "file".into(), ..FilePath::default() }).unwrap();
    assert_eq!(stat.version, version);
    for mode in [WriteMode::Replace, WriteMode::Append] {
        let version = confined.read_text(&read).unwrap().version;
        let expecting = FileWrite { expected: version.clone(), ..write_request("file", mode) };
        let facts = confined.write(&expecting, b"two").unwrap();
        assert_ne!(facts.version, version);
        let error = confined.write(&expecting, b"three").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(error.message.ends_with("it has changed since it was read"), "{error}");
        let stream = confined.write_stream(&expecting);
        assert_eq!(stream.unwrap_err().kind, ErrorKind::Conflict);
    }
    fs::remove_file(ground.path("work/file")).unwrap();
    for mode in [WriteMode::Replace, WriteMode::Append] {
        let expecting = FileWrite { expected: version.clone(), ..write_request("file", mode) };
        assert_eq!(confined.write(&expecting, b"x").unwrap_err().kind, ErrorKind::Conflict);
    }
    assert!(!ground.path("work/file").exists());
}

#[test]
fn edits_are_applied_in_order_and_preserve_other_bytes() {
    let ground = TestFolders::new();
    ground.put_file("work/file", b"one\r\ntwo\r\n\xff one\r\n");
    let confined = ground.open_confined();
    let edited =
        edit_file(&confined, &[("two", "three", false), ("one", "1", true), ("three", "x", false)]);
    assert_eq!(edited.unwrap().replaced, [1, 2, 1]);
    assert_eq!(fs::read(ground.path("work/file")).unwrap(), b"1\r\nx\r\n\xff 1\r\n");
}

#[test]
fn edits_are_all_or_nothing_and_the_error_names_the_failing_edit() {
    let ground = TestFolders::new();
    let text = "one\r\ntwo one\r\naaa\r\n";
    ground.put_file("work/file", text);
    let confined = ground.open_confined();
    let check = |edits: &[(&str, &str, bool)], kind, told: &str, hint: &str| {
        let error = edit_file(&confined, edits).unwrap_err();
        let shown = ground.shown_path("work/file");
        assert_eq!(error.message, format!("cannot edit `{shown}`: {told}"));
        assert_eq!(error.kind, kind);
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{error}");
        assert_eq!(ground.read_text("work/file"), text);
    };
    let (missing, twice) = (ErrorKind::NotFound, ErrorKind::Conflict);
    check(
        &[("two", "2", false), ("four", "4", false)],
        missing,
        "edit 2 of 2: the text was not found",
        "match exactly",
    );
    check(&[("one", "1", false)], twice, "the text occurs 2 times, in lines 1, 2", "`all`");
    check(&[("aa", "b", false)], twice, "the text occurs 2 times, in lines 3, 3", "`all`");
    check(&[("one\ntwo", "x", false)], missing, "the text was not found", "CR LF");
    check(&[("two  one", "x", false)], missing, "the text was not found", "other blanks");
    check(&[("", "x", true)], ErrorKind::InvalidArguments, "the text to replace is empty", "");
    check(&[], ErrorKind::InvalidArguments, "no edits are given", "");
    let grown = "x".repeat(40_000_000);
    check(
        &[("one", &grown, true)],
        ErrorKind::LimitReached,
        "it would become larger than 67108864 bytes",
        "",
    );
}

#[test]
fn concurrent_edits_are_all_applied() {
    let ground = TestFolders::new();
    let marks: Vec<String> = (0..40).map(|at| format!("<{at}>")).collect();
    ground.put_file("work/file", marks.concat());
    let confined = ground.open_confined();
    std::thread::scope(|scope| {
        for half in marks.chunks(20) {
            let confined = &confined;
            scope.spawn(move || {
                for mark in half {
                    edit_file(confined, &[(mark, ".", false)]).unwrap();
                }
            });
        }
    });
    assert_eq!(ground.read_text("work/file"), ".".repeat(40));
}

#[test]
fn delete_removes_the_link_not_its_target_and_folders_need_recursive() {
    let ground = TestFolders::new();
    ground.put_file("work/folder/a/b/file", "");
    ground.put_file("work/file", "kept");
    ground.make_link("file", "work/link");
    ground.make_link("folder", "work/folder_link");
    let confined = ground.open_confined();
    let delete =
        |path: &str, recursive| confined.delete(&FileDelete { path: path.to_owned(), recursive });
    delete("link", false).unwrap();
    assert_eq!(delete("folder_link/", true).unwrap_err().kind, ErrorKind::Conflict);
    delete("folder_link", true).unwrap();
    assert_eq!(ground.read_text("work/file"), "kept");
    let error = delete("folder", false).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.ends_with("the folder is not empty"), "{error}");
    delete("folder", true).unwrap();
    delete("file", true).unwrap();
    assert_eq!(delete("file", false).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(fs::read_dir(ground.path("work")).unwrap().count(), 0);
}

#[test]
fn moving_replaces_a_file_only_if_asked_and_a_folder_never() {
    let ground = TestFolders::new();
    ground.put_file("work/a", "a");
    ground.put_file("work/b", "b");
    ground.put_file("work/folder/file", "f");
    fs::create_dir(ground.path("work/empty")).unwrap();
    ground.make_link("a", "work/link");
    let confined = ground.open_confined();
    let kind = |pair| confined.move_to(&pair).unwrap_err().kind;
    assert_eq!(kind(file_pair("a", "b", false)), ErrorKind::Conflict);
    assert_eq!(kind(file_pair("a", "empty", true)), ErrorKind::Conflict);
    assert_eq!(kind(file_pair("folder", "empty", true)), ErrorKind::Conflict);
    assert_eq!(kind(file_pair("folder", "b", true)), ErrorKind::Conflict);
    assert_eq!(kind(file_pair("folder", "folder/in", false)), ErrorKind::InvalidArguments);
    assert_eq!(kind(file_pair("missing", "x", false)), ErrorKind::NotFound);
    assert_eq!(kind(file_pair("a", "missing/x", false)), ErrorKind::NotFound);
    confined.move_to(&file_pair("link", "moved_link", false)).unwrap();
    assert!(fs::symlink_metadata(ground.path("work/moved_link")).unwrap().is_symlink());
    confined.move_to(&file_pair("a", "b", true)).unwrap();
    confined.move_to(&file_pair("folder", "../second/folder", false)).unwrap();
    assert_eq!(ground.read_text("work/b"), "a");
    assert_eq!(ground.read_text("second/folder/file"), "f");
    assert!(!ground.path("work/a").exists() && !ground.path("work/folder").exists());
}

#[test]
fn a_copy_is_whole_with_links_and_permission_bits() {
    let ground = TestFolders::new();
    ground.put_file("work/folder/in/file", "f");
    set_mode(&ground.path("work/folder/in/file"), 0o750);
    set_mode(&ground.path("work/folder/in"), 0o711);
    ground.make_link("in/file", "work/folder/link");
    ground.make_link("folder/in/file", "work/link");
    let confined = ground.open_confined();
    confined.copy(&file_pair("folder", "../second/copy", false)).unwrap();
    let copy = ground.path("second/copy");
    assert_eq!(fs::metadata(copy.join("in")).unwrap().permissions().mode() & 0o777, 0o711);
    assert_eq!(fs::metadata(copy.join("in/file")).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(fs::read_link(copy.join("link")).unwrap().to_str(), Some("in/file"));
    confined.copy(&file_pair("link", "file", false)).unwrap();
    assert!(fs::symlink_metadata(ground.path("work/file")).unwrap().is_file());
    let kind = |pair| confined.copy(&pair).unwrap_err().kind;
    assert_eq!(kind(file_pair("folder", "folder/in/copy", false)), ErrorKind::InvalidArguments);
    assert_eq!(kind(file_pair("folder", "../second/copy", true)), ErrorKind::Conflict);
    assert_eq!(kind(file_pair("file", "link", false)), ErrorKind::Conflict);
    let names = fs::read_dir(ground.path("work")).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(fs::read_dir(ground.path("work/folder/in")).unwrap().count(), 1);
    confined.copy(&file_pair("file", "link", true)).unwrap();
    assert!(fs::symlink_metadata(ground.path("work/link")).unwrap().is_file());
}

#[test]
fn too_deep_folder_tree_is_refused() {
    let ground = TestFolders::new();
    let mut folder = ground.path("work/deep");
    for _ in 0..300 {
        folder.push("d");
    }
    fs::create_dir_all(&folder).unwrap();
    let confined = ground.open_confined();
    let error = confined.copy(&file_pair("deep", "copy", false)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached);
    assert!(!ground.path("work/copy").exists());
    let delete = FileDelete { path: "deep".into(), recursive: true };
    assert_eq!(confined.delete(&delete).unwrap_err().kind, ErrorKind::LimitReached);
    let pages: Vec<_> = confined.walk(&FileWalk::default()).unwrap().map(Result::unwrap).collect();
    let unreadable: Vec<&String> = pages.iter().flat_map(|page| &page.unreadable).collect();
    assert!(unreadable[0].ends_with("more than 256 folders deep"), "{unreadable:?}");
    assert_eq!(unreadable.len(), 1);
    assert_eq!(pages.iter().map(|page| page.entries.len()).sum::<usize>(), 256);
}
