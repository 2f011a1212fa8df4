//! Tests of reading bytes and text, listing, and facts.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use jaato_plugin_sdk_environment::files::{AllowedFolder, ConfinedFiles, ConfinedFilesSettings};
use jaato_types::files::*;
use jaato_types::{ErrorKind, Result};

use crate::skip::skip;
use crate::support::{TestFolders, is_root, set_mode};

fn range_request(path: &str, offset: u64, length: Option<u64>) -> FileRead {
    FileRead { path: path.to_owned(), offset, length }
}

fn text_of_file(
    confined: &ConfinedFiles,
    path: &str,
    offset: u64,
    length: u64,
    unit: TextUnit,
) -> Result<FileText> {
    let length = Some(length);
    confined.read_text(&FileReadText { path: path.to_owned(), offset, length, unit })
}

fn file_path(path: &str) -> FilePath {
    FilePath { path: path.to_owned(), ..FilePath::default() }
}

#[test]
fn bytes_are_read_in_ranges() {
    let ground = TestFolders::new();
    ground.put_file("work/a", "0123456789");
    let confined = ground.open_confined();
    for (offset, length, expected, has_more) in [
        (0, None, "0123456789", false),
        (3, Some(4), "3456", true),
        (3, Some(7), "3456789", false),
        (3, Some(99), "3456789", false),
        (10, None, "", false),
        (99, Some(1), "", false),
        (u64::MAX, None, "", false),
        (2, Some(0), "", true),
    ] {
        let request = range_request("a", offset, length);
        let (facts, bytes) = confined.read(&request).unwrap();
        assert_eq!(bytes, expected.as_bytes());
        assert_eq!(facts, FileBytes { size: 10, offset, has_more });
        // A read in place returns the same.
        if let Some((cached, cached_bytes)) = confined.read_cached(&request) {
            assert_eq!((cached, cached_bytes), (facts, bytes));
        }
    }
}

#[test]
fn read_answer_is_limited_to_four_mebibytes() {
    let ground = TestFolders::new();
    ground.put_file("work/at", vec![b'x'; usize::try_from(READ_BYTES_MAX).unwrap()]);
    ground.put_file("work/past", vec![b'x'; usize::try_from(READ_BYTES_MAX).unwrap() + 1]);
    let confined = ground.open_confined();
    for (name, has_more) in [("at", false), ("past", true)] {
        let (facts, bytes) = confined.read(&range_request(name, 0, Some(u64::MAX))).unwrap();
        assert_eq!((bytes.len() as u64, facts.has_more), (READ_BYTES_MAX, has_more));
        assert_eq!(confined.read_cached(&range_request(name, 0, None)), None);
    }
}

#[test]
fn proc_file_without_a_size_can_be_read() {
    let confined = ConfinedFiles::open(&ConfinedFilesSettings {
        roots: vec![AllowedFolder::local("/proc/self")],
        default_folder: "/proc/self".into(),
        temporary: None,
    });
    let Ok(confined) = confined else { return skip("there is no `/proc/self`") };
    let (facts, bytes) = confined.read(&range_request("status", 0, None)).unwrap();
    assert!(bytes.starts_with(b"Name:") && facts.size == bytes.len() as u64);
    assert_eq!(confined.read_cached(&range_request("status", 0, None)), None);
}

#[test]
fn text_ranges_count_characters_or_lines_and_preserve_line_ends() {
    let ground = TestFolders::new();
    ground.put_file("work/a", "ä€𝄞\r\nb\n\nc");
    let confined = ground.open_confined();
    let read = |offset, length, unit| {
        let told = text_of_file(&confined, "a", offset, length, unit).unwrap();
        assert!(told.version.is_some() && told.size == 15);
        (told.text, told.has_more)
    };
    assert_eq!(read(1, 3, TextUnit::Characters), ("€𝄞\r".to_owned(), true));
    assert_eq!(read(0, 99, TextUnit::Characters), ("ä€𝄞\r\nb\n\nc".to_owned(), false));
    assert_eq!(read(99, 1, TextUnit::Characters), (String::new(), false));
    assert_eq!(read(0, 1, TextUnit::Lines), ("ä€𝄞\r\n".to_owned(), true));
    assert_eq!(read(2, 2, TextUnit::Lines), ("\nc".to_owned(), false));
    assert_eq!(read(4, 1, TextUnit::Lines), (String::new(), false));
}

#[test]
fn large_text_is_read_in_consecutive_pieces() {
    let ground = TestFolders::new();
    let whole = "ä€𝄞x".repeat(150_000);
    ground.put_file("work/a", &whole);
    let confined = ground.open_confined();
    let (mut together, mut offset) = (String::new(), 0);
    loop {
        let told = text_of_file(&confined, "a", offset, u64::MAX, TextUnit::Characters).unwrap();
        assert!(told.text.len() <= TEXT_BYTES_MAX);
        offset += told.text.chars().count() as u64;
        together.push_str(&told.text);
        if !told.has_more {
            break;
        }
    }
    assert!(together == whole);
}

#[test]
fn invalid_utf8_error_names_the_first_invalid_byte() {
    let ground = TestFolders::new();
    ground.put_file("work/a", b"ab\xffcd");
    ground.put_file("work/cut", "ab€".as_bytes().split_last().unwrap().1);
    let confined = ground.open_confined();
    for (name, at) in [("a", 2), ("cut", 2)] {
        let error = text_of_file(&confined, name, 0, 9, TextUnit::Characters).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        let shown = ground.shown_path(&format!("work/{name}"));
        assert_eq!(error.message, format!("cannot read `{shown}` as text: byte {at} is not UTF-8"));
    }
    // The requested range ends before the invalid byte.
    assert_eq!(text_of_file(&confined, "a", 0, 2, TextUnit::Characters).unwrap().text, "ab");
}

#[test]
fn reading_or_writing_a_pipe_fails_without_blocking() {
    let ground = TestFolders::new();
    let status = Command::new("mkfifo").arg(ground.path("work/pipe")).status().unwrap();
    assert!(status.success());
    let confined = ground.open_confined();
    let error = confined.read(&range_request("pipe", 0, None)).unwrap_err();
    assert!(error.message.ends_with("it is a pipe, a socket or a device, not a file"), "{error}");
    assert_eq!(confined.read_cached(&range_request("pipe", 0, None)), None);
    assert!(text_of_file(&confined, "pipe", 0, 1, TextUnit::Lines).is_err());
    assert!(confined.read_stream(&range_request("pipe", 0, None)).is_err());
    let pair = FilePair { from: "pipe".into(), to: "copy".into(), overwrite: false };
    assert!(confined.copy(&pair).unwrap_err().message.contains("it is a pipe"));
    for mode in [WriteMode::Replace, WriteMode::Append] {
        let request = FileWrite { path: "pipe".into(), mode, ..FileWrite::default() };
        let error = confined.write(&request, b"x").unwrap_err();
        assert!(error.message.contains("it is a pipe"), "{error}");
    }
    assert_eq!(confined.stat(&file_path("pipe")).unwrap().kind, FileKind::Other);
}

#[test]
fn file_errors_name_the_path_and_the_reason() {
    let ground = TestFolders::new();
    ground.put_file("work/file", "");
    fs::create_dir(ground.path("work/folder")).unwrap();
    let confined = ground.open_confined();
    let work = ground.shown_path("work");
    let check = |name: &str, kind, reason: &str| {
        let error = confined.read(&range_request(name, 0, None)).unwrap_err();
        let name = name.trim_end_matches('/');
        assert_eq!(
            (error.kind, error.message),
            (kind, format!("cannot read `{work}/{name}`: {reason}"))
        );
    };
    check("missing", ErrorKind::NotFound, "file not found");
    check("missing/file", ErrorKind::NotFound, "file not found");
    check("folder", ErrorKind::Conflict, "it is a folder, not a file");
    check("file/below", ErrorKind::Conflict, "not a directory");
    check("file/", ErrorKind::Conflict, "not a directory");
    check(&"x".repeat(256), ErrorKind::InvalidArguments, "the name is too long");
    let error = confined.list(&FolderList { path: "missing".into(), skip: 0 }).unwrap_err();
    assert_eq!(error.message, format!("cannot list `{work}/missing`: folder not found"));
    let error = confined.list(&FolderList { path: "file".into(), skip: 0 }).unwrap_err();
    assert_eq!(error.message, format!("cannot list `{work}/file`: not a directory"));
}

#[test]
fn unreadable_entries_are_reported_and_do_not_stop_list_or_walk() {
    if is_root() {
        // Root reads everything: `file_tests_pass_for_an_ordinary_user` runs this test.
        return;
    }
    let ground = TestFolders::new();
    ground.put_file("work/closed/in", "");
    ground.put_file("work/file", "");
    ground.put_file("work/z", "");
    let confined = ground.open_confined();
    set_mode(&ground.path("work/file"), 0);
    set_mode(&ground.path("work/closed"), 0);
    let error = confined.read(&range_request("file", 0, None)).unwrap_err();
    assert!(error.message.ends_with(": permission denied"), "{error}");
    assert_eq!(confined.list(&FolderList::default()).unwrap().count, 3);
    let pages: Vec<_> = confined.walk(&FileWalk::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(pages[0].entries.len(), 3);
    let closed = format!("`{}`: permission denied", ground.shown_path("work/closed"));
    assert_eq!(pages[0].unreadable.concat(), closed);
    let find = FileFind { pattern: "**/z".into(), ..FileFind::default() };
    let pages: Vec<_> = confined.find(&find).unwrap().map(Result::unwrap).collect();
    let page = &pages[0];
    assert_eq!((page.files[0].path.as_str(), page.unreadable.concat()), ("z", closed));
    set_mode(&ground.path("work/closed"), 0o700);
}

#[test]
fn folder_list_is_sorted_and_keeps_links_and_non_utf8_names() {
    let ground = TestFolders::new();
    ground.put_file("work/b", "12345");
    ground.put_file("work/.hidden", "");
    fs::create_dir(ground.path("work/a")).unwrap();
    ground.make_link("/etc/passwd", "work/out");
    let odd = ground.path("work").join(std::ffi::OsStr::from_bytes(b"x\xff"));
    // Not every file system allows such names.
    let has_odd = fs::write(odd, "").is_ok();
    let confined = ground.open_confined();
    let listed = confined.list(&FolderList::default()).unwrap();
    let entry = |name: &str, kind, size| FolderEntry { name: name.to_owned(), kind, size };
    let mut expected = vec![
        entry(".hidden", FileKind::File, 0),
        entry("a", FileKind::Folder, 0),
        entry("b", FileKind::File, 5),
        entry("out", FileKind::Link, 0),
    ];
    expected.extend(has_odd.then(|| entry("x\u{fffd}", FileKind::File, 0)));
    assert_eq!(
        listed,
        FolderEntries { count: expected.len(), entries: expected.clone(), denied: 0 }
    );
    let skipped = confined.list(&FolderList { path: String::new(), skip: 3 }).unwrap();
    assert_eq!(
        skipped,
        FolderEntries { count: expected.len(), entries: expected.split_off(3), denied: 0 }
    );
    assert!(confined.walk(&FileWalk::default()).unwrap().next().is_some());
}

#[test]
fn links_inside_the_allowed_folders_are_followed() {
    let ground = TestFolders::new();
    ground.put_file("work/folder/file", "content");
    ground.put_file("second/file", "second");
    ground.make_link("folder", "work/relative");
    ground.make_link(ground.path("work/folder"), "work/absolute");
    ground.make_link(ground.path("second"), "work/elsewhere");
    ground.make_link("../second/./file", "work/over");
    let confined = ground.open_confined();
    for (path, expected) in [
        ("relative/file", "content"),
        ("absolute/file", "content"),
        ("absolute/../folder/file", "content"),
        ("elsewhere/file", "second"),
        ("elsewhere/../work/folder/file", "content"),
        ("over", "second"),
        ("../second/file", "second"),
        ("./folder//file", "content"),
    ] {
        let (_, bytes) = confined.read(&range_request(path, 0, None)).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{path}");
    }
    let facts = confined.stat(&file_path("elsewhere/../work/folder/file")).unwrap();
    assert_eq!(facts.path, ground.shown_path("work/folder/file"));
    let (host, shown) = confined.folder_paths("absolute").unwrap();
    assert_eq!(shown, ground.path("work/folder"));
    assert_eq!(host, ground.path("work/folder").canonicalize().unwrap());
}

#[test]
fn stat_returns_facts_or_not_found() {
    let ground = TestFolders::new();
    ground.put_file("work/folder/file", "12345");
    ground.make_link("nothing", "work/dangling");
    let confined = ground.open_confined();
    let kind = |name: &str| confined.stat(&file_path(name)).map(|it| it.kind).map_err(|it| it.kind);
    assert_eq!(kind("folder/file"), Ok(FileKind::File));
    assert_eq!(kind("folder/"), Ok(FileKind::Folder));
    for name in ["nothing", "nothing/below", "dangling", "folder/file/below", "folder/file/"] {
        assert_eq!(kind(name), Err(ErrorKind::NotFound), "{name}");
    }
    let facts = confined.stat(&file_path("folder/file")).unwrap();
    assert_eq!((facts.size, facts.kind), (5, FileKind::File));
    assert_eq!(facts.path, ground.shown_path("work/folder/file"));
    assert!(facts.modified_ms > 1_600_000_000_000, "{facts:?}");
    if let Some(cached) = confined.stat_cached(&file_path("folder/file")) {
        assert_eq!(cached, facts);
    }
}

#[test]
fn container_paths_are_shown_in_links_and_errors() {
    let ground = TestFolders::new();
    ground.put_file("work/folder/file", "content");
    ground.make_link("/workspace/folder", "work/inside");
    ground.make_link(ground.path("work/folder"), "work/of_the_host");
    let confined = ConfinedFiles::open(&ConfinedFilesSettings {
        roots: vec![AllowedFolder {
            shown: "/workspace".into(),
            ..AllowedFolder::local(ground.path("work"))
        }],
        default_folder: "/workspace/folder".into(),
        temporary: None,
    })
    .unwrap();
    for name in ["file", "/workspace/folder/file", "../inside/file"] {
        assert_eq!(confined.read(&range_request(name, 0, None)).unwrap().1, b"content", "{name}");
    }
    assert_eq!(confined.stat(&file_path("file")).unwrap().path, "/workspace/folder/file");
    let ground_path = ground.folder.path().display().to_string();
    for name in
        ["missing", "/etc/passwd", "../of_the_host/file", &ground.shown_path("work/folder/file")]
    {
        let error = confined.read(&range_request(name, 0, None)).unwrap_err().to_string();
        assert!(name.starts_with(&ground_path) || !error.contains(&ground_path), "{error}");
    }
    let (host, shown) = confined.folder_paths("/workspace/inside").unwrap();
    assert_eq!(shown.display().to_string(), "/workspace/folder");
    assert!(host.ends_with("work/folder"));
}
