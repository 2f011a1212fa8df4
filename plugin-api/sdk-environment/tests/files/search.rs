//! Tests of searching texts and finding files with their facts.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use jaato_plugin_sdk_environment::files::ConfinedFiles;
use jaato_types::files::{
    FileFind, FileOrder, FileSearch, FoundPage, SearchTotals, SearchedPage, SkippedEntryCounts,
};
use jaato_types::{Error, ErrorKind, Result};

use crate::support::{TestFolders, is_root, set_mode};

fn search_request(pattern: &str) -> FileSearch {
    FileSearch { pattern: pattern.to_owned(), ..FileSearch::default() }
}

fn search_pages(files: &ConfinedFiles, request: &FileSearch) -> Result<Vec<SearchedPage>> {
    files.search(request)?.collect()
}

/// Formats each found line as `path:number:first-last: text`, with `-` for a line without a match.
fn search_all(
    files: &ConfinedFiles,
    request: &FileSearch,
) -> (Vec<String>, SearchTotals, Vec<String>) {
    let pages = search_pages(files, request).unwrap();
    let mut lines = Vec::new();
    for file in pages.iter().flat_map(|page| &page.files) {
        for line in &file.lines {
            let matches: Vec<_> =
                line.matches.iter().map(|(start, end)| format!("{start}-{end}")).collect();
            let matches = if matches.is_empty() { "-".to_owned() } else { matches.join(",") };
            lines.push(format!("{}:{}:{matches}: {}", file.path, line.number, line.text));
        }
    }
    let totals = pages.last().unwrap().totals;
    let unreadable = pages.into_iter().flat_map(|page| page.unreadable).collect();
    (lines, totals, unreadable)
}

fn found_pages(files: &ConfinedFiles, request: &FileFind) -> Vec<FoundPage> {
    files.find(request).unwrap().map(Result::unwrap).collect()
}

fn search_error(files: &ConfinedFiles, request: &FileSearch) -> Error {
    files.search(request).unwrap_err()
}

#[test]
fn matches_are_in_path_order_and_all_are_counted() {
    let ground = TestFolders::new();
    ground.put_file("work/b/2.txt", "moon and moon\n");
    ground.put_file("work/b-1.txt", "no\nMoon\n");
    ground.put_file("work/a.rs", "1\n2\nmoon\n4\n5\n6\nmoon\n8\n");
    ground.put_file("work/.hidden", "moon\n");
    ground.put_file("work/.gitignore", "*.log\n");
    ground.put_file("work/x.log", "moon\n");
    ground.put_file("work/left/out.txt", "moon\n");
    let files = ground.open_confined();
    let left = FileSearch { leave_out: vec!["left".into()], ..search_request("moon") };
    let (lines, totals, unreadable) = search_all(&files, &left);
    assert_eq!(
        lines,
        ["a.rs:3:0-4: moon", "a.rs:7:0-4: moon", "b/2.txt:1:0-4,9-13: moon and moon"]
    );
    // `.gitignore` and `.hidden` are hidden.
    let left_out = SkippedEntryCounts { ignored: 1, hidden: 2, excluded: 1, denied: 0 };
    let expected = SearchTotals {
        matches: 4,
        files_with_matches: 2,
        files_searched: 3,
        left_out,
        ..SearchTotals::default()
    };
    assert_eq!((totals, unreadable), (expected, Vec::new()));

    let around = FileSearch { context_lines: 2, files: vec!["*.rs".into()], ..left.clone() };
    let (lines, ..) = search_all(&files, &around);
    let numbers: Vec<_> = lines.iter().map(|it| it.split(':').nth(1).unwrap()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7", "8"]);

    let one = FileSearch { limit: Some(2), ..left.clone() };
    let (lines, totals, _) = search_all(&files, &one);
    assert_eq!((lines.len(), totals.matches), (2, 4));

    let all = FileSearch {
        include_hidden: true,
        include_ignored: true,
        ignore_case: true,
        ..search_request("MOON")
    };
    let (lines, totals, _) = search_all(&files, &all);
    assert_eq!((lines.len(), totals.matches, totals.files_with_matches), (7, 8, 6), "{lines:?}");
    let below = FileSearch { path: "b".into(), ..search_request("and") };
    assert_eq!(search_all(&files, &below).0, ["2.txt:1:5-8: moon and moon"]);
    let named = FileSearch { path: "x.log".into(), ..left };
    assert_eq!(search_all(&files, &named).0, [":1:0-4: moon"]);
}

#[test]
fn line_ends_and_byte_order_marks_are_handled_and_binary_files_skipped() {
    let ground = TestFolders::new();
    ground.put_file("work/1", "ab\r\nb\r\n");
    ground.put_file("work/2", b"\xef\xbb\xbfab");
    ground.put_file("work/3", b"\xff\xfea\0b\0\n\0");
    ground.put_file("work/4", b"ab \xff ab");
    ground.put_file("work/5", b"ab\0ab");
    ground.put_file("work/6", "");
    let files = ground.open_confined();
    let (lines, totals, _) = search_all(&files, &search_request("^a?b$"));
    assert_eq!(lines, ["1:1:0-2: ab", "1:2:0-1: b", "2:1:0-2: ab", "3:1:0-2: ab"]);
    assert_eq!((totals.files_binary, totals.files_searched), (1, 5));
    let (lines, ..) = search_all(&files, &FileSearch { path: "4".into(), ..search_request("ab") });
    assert_eq!(lines, [":1:0-2,5-7: ab \u{fffd} ab"]);
    let (lines, totals, _) =
        search_all(&files, &FileSearch { path: "1".into(), ..search_request("z*") });
    assert_eq!((lines[0].as_str(), totals.matches), (":1:0-0: ab", 2));
}

#[test]
fn links_pipes_and_binary_files_are_skipped_by_search() {
    let ground = TestFolders::new();
    ground.put_file("work/a", "moon\n");
    ground.put_file("secret/b", "moon\n");
    ground.make_link(ground.path("secret/b"), "work/link");
    ground.make_link(ground.path("secret"), "work/out");
    ground.make_link(".", "work/loop");
    let pipe = std::process::Command::new("mkfifo").arg(ground.path("work/pipe")).status();
    assert!(pipe.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(ground.path("work/socket")).unwrap();
    let odd = OsStr::from_bytes(b"\xfe\xff.txt");
    fs::write(ground.path("work").join(odd), "moon\n").unwrap();
    // A sparse file of zeros, without a block on the disk.
    File::create(ground.path("work/zeros")).unwrap().set_len(1 << 30).unwrap();
    let files = ground.open_confined();
    let (lines, totals, unreadable) = search_all(&files, &search_request("moon"));
    assert_eq!(lines, ["a:1:0-4: moon", "\u{fffd}\u{fffd}.txt:1:0-4: moon"]);
    assert_eq!((totals.files_searched, totals.files_binary, unreadable.len()), (2, 1, 0));
    let small = FileSearch { file_bytes_max: Some(4), ..search_request("moon") };
    assert_eq!(search_all(&files, &small).1.files_too_large, 3);
    let named = |path: &str| FileSearch { path: path.into(), ..search_request("moon") };
    assert_eq!(search_all(&files, &named("zeros")).1.files_binary, 1);
    for (path, kind) in [
        ("pipe", ErrorKind::Conflict),
        ("socket", ErrorKind::Conflict),
        ("link", ErrorKind::PermissionDenied),
        ("out", ErrorKind::PermissionDenied),
        ("../secret", ErrorKind::PermissionDenied),
        ("gone", ErrorKind::NotFound),
    ] {
        assert_eq!(search_error(&files, &named(path)).kind, kind, "{path}");
    }
}

#[test]
fn large_file_is_searched_and_a_too_long_line_is_reported() {
    let ground = TestFolders::new();
    let mut large = File::create(ground.path("work/large")).unwrap();
    for number in 0..200_000 {
        writeln!(large, "line {number} of a file that passes through a buffer").unwrap();
    }
    ground.put_file("work/wide", vec![b'x'; 40 << 20]);
    let files = ground.open_confined();
    let (lines, totals, unreadable) = search_all(&files, &search_request("line 19999[89] "));
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("large:200000:0-12: line 199999 of"), "{}", lines[1]);
    assert_eq!((totals.files_searched, totals.matches), (1, 2));
    assert_eq!(unreadable, ["`wide`: it has a line that is too long"]);
    let (lines, totals, _) =
        search_all(&files, &FileSearch { path: "large".into(), ..search_request("line") });
    assert_eq!((lines.len(), totals.matches), (10_000, 200_000));
}

#[test]
fn long_line_is_truncated_around_its_match() {
    let ground = TestFolders::new();
    ground.put_file("work/min.js", format!("{}moon{}", "é".repeat(50_000), "z".repeat(50_000)));
    let pages = search_pages(&ground.open_confined(), &search_request("moon")).unwrap();
    let line = &pages.iter().flat_map(|page| &page.files).next().unwrap().lines[0];
    assert!(line.is_cut && line.text.len() < 2010 && line.text.contains("émoonz"), "{line:?}");
    assert_eq!(line.skipped + line.matches[0].0, 50_000);
}

#[test]
fn invalid_or_too_large_patterns_are_refused_in_one_line() {
    let ground = TestFolders::new();
    let files = ground.open_confined();
    for pattern in ["(a", "((a{1000}){1000}){1000}", r"(a)\1", "(?=a)", r"a\nb"] {
        let error = search_error(&files, &search_request(pattern));
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{pattern}");
        assert!(error.message.lines().count() == 1 && error.hint.is_some(), "{error:?}");
    }
    let slow = FileSearch { files: vec!["{a".into()], ..search_request("a") };
    assert_eq!(search_error(&files, &slow).kind, ErrorKind::InvalidArguments);
}

#[test]
fn parallel_search_returns_all_matches_in_order() {
    let ground = TestFolders::new();
    for folder in 0..40 {
        for file in 0..25 {
            let text = format!("{}moon {folder} {file}\n", "plain\n".repeat(file * 20));
            ground.put_file(&format!("work/f{folder:02}/g{file:02}"), text);
        }
    }
    let files = ground.open_confined();
    let request = FileSearch { context_lines: 3, ..search_request("moon") };
    let (lines, totals, _) = search_all(&files, &request);
    let matches: Vec<_> = lines.iter().filter(|it| !it.contains(":-:")).collect();
    assert_eq!((matches.len(), totals.matches, totals.files_searched), (1000, 1000, 1000));
    assert!(matches.is_sorted());
    assert_eq!(search_all(&files, &request).0, lines);
    for page in search_pages(&files, &request).unwrap() {
        let bytes = serde_json::to_vec(&page).unwrap().len();
        assert!(bytes < 64 * 1024, "{bytes}");
    }
}

#[test]
fn unreadable_files_are_reported_by_search() {
    if is_root() {
        // Root reads everything: `file_tests_pass_for_an_ordinary_user` runs this test.
        return;
    }
    let ground = TestFolders::new();
    ground.put_file("work/a", "moon\n");
    ground.put_file("work/closed/b", "moon\n");
    set_mode(&ground.path("work/a"), 0);
    set_mode(&ground.path("work/closed"), 0);
    let (_, _, mut unreadable) = search_all(&ground.open_confined(), &search_request("moon"));
    unreadable.sort();
    set_mode(&ground.path("work/closed"), 0o755);
    let closed = format!("`{}`: permission denied", ground.shown_path("work/closed"));
    assert_eq!(unreadable, [closed, "`a`: permission denied".to_owned()]);
}

#[test]
fn found_files_include_facts_and_are_sorted_newest_first() {
    let ground = TestFolders::new();
    let at = |seconds: u64| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    for (path, seconds) in [("b/x.rs", 3), ("a.rs", 1), ("c.rs", 2), (".h.rs", 4), ("n/d.rs", 5)] {
        ground.put_file(&format!("work/{path}"), "12345");
        let file = File::options().write(true).open(ground.path(&format!("work/{path}"))).unwrap();
        file.set_modified(at(seconds)).unwrap();
    }
    fs::create_dir(ground.path("work/folder.rs")).unwrap();
    ground.make_link("a.rs", "work/link.rs");
    let files = ground.open_confined();
    let found = |request: &FileFind| -> (Vec<String>, u64) {
        let (mut paths, mut count) = (Vec::new(), 0);
        for FoundPage { files, count: so_far, .. } in found_pages(&files, request) {
            paths.extend(files.into_iter().map(|it| it.path));
            count = so_far;
        }
        (paths, count)
    };
    let find = |pattern: &str| FileFind { pattern: pattern.into(), ..FileFind::default() };
    let all = FileFind { leave_out: vec!["n".into()], ..find("**/*.rs") };
    assert_eq!(found(&all), (["b/x.rs", "c.rs", "a.rs"].map(String::from).into(), 3));
    let one = FileFind { limit: Some(1), ..all.clone() };
    assert_eq!(found(&one), (vec!["b/x.rs".into()], 3));
    let by_path = FileFind { order: FileOrder::Path, include_hidden: true, ..find("**/*.rs") };
    assert_eq!(found(&by_path).0, [".h.rs", "a.rs", "b/x.rs", "c.rs", "n/d.rs"]);
    assert_eq!(found(&FileFind { limit: Some(2), ..by_path }).1, 5);
    assert_eq!(found(&find("b/x.rs")), (vec!["b/x.rs".into()], 1));
    assert_eq!(found(&find("b")).1 + found(&find("gone.rs")).1, 0);
    assert_eq!(found(&find("n/*.rs")).0, ["n/d.rs"]);
    let left = FileFind { leave_out: vec!["n/d.*".into()], ..find("n/*.rs") };
    assert_eq!(found(&left).1, 0);
    let file = found_pages(&files, &find("a.rs")).remove(0).files.remove(0);
    assert_eq!((file.size, file.modified_ms), (5, 1000));
    for (pattern, kind) in [
        ("{a", ErrorKind::InvalidArguments),
        ("", ErrorKind::InvalidArguments),
        ("/etc/*", ErrorKind::InvalidArguments),
        ("../../*", ErrorKind::PermissionDenied),
    ] {
        assert_eq!(files.find(&find(pattern)).unwrap_err().kind, kind, "{pattern}");
    }
}

#[test]
fn default_exclusions_apply_only_outside_git_repositories() {
    let ground = TestFolders::new();
    ground.put_file("work/src/build/plan.rs", "moon\n");
    ground.put_file("work/target/made.rs", "moon\n");
    ground.put_file("work/.gitignore", "/target\n");
    let search = FileSearch {
        leave_out: vec!["*.lock".into()],
        leave_out_unless_git: vec!["build".into(), "target".into()],
        ..search_request("moon")
    };
    let find = FileFind {
        leave_out_unless_git: search.leave_out_unless_git.clone(),
        pattern: "**/*.rs".into(),
        ..FileFind::default()
    };
    let both = || {
        let files = ground.open_confined();
        let (lines, totals, _) = search_all(&files, &search);
        let found = found_pages(&files, &find).pop().unwrap();
        assert_eq!((totals.left_out, lines.len() as u64), (found.left_out, found.count));
        (lines, totals.left_out)
    };
    let left =
        |ignored, hidden, excluded| SkippedEntryCounts { ignored, hidden, excluded, denied: 0 };
    assert_eq!(both(), (Vec::new(), left(1, 1, 1)));
    fs::create_dir(ground.path("work/.git")).unwrap();
    assert_eq!(both(), (vec!["src/build/plan.rs:1:0-4: moon".to_owned()], left(1, 1, 0)));
}

#[test]
fn too_large_ignore_file_is_reported_and_ignored() {
    let ground = TestFolders::new();
    ground.put_file("work/.git/HEAD", "");
    ground.put_file("work/a/.ignore", format!("*.log\n{}\n", "[ab]?*".repeat(100_000)));
    ground.put_file("work/a/b/x.log", "moon\n");
    let path = ground.shown_path("work/a/.ignore");
    let lost = format!("`{path}`: its rules are too large and were ignored");
    for (folder, line) in [("", "a/b/x.log:1:0-4: moon"), ("a/b", "x.log:1:0-4: moon")] {
        let search = FileSearch { path: folder.into(), ..search_request("moon") };
        let (lines, _, unreadable) = search_all(&ground.open_confined(), &search);
        assert_eq!((lines, unreadable), (vec![line.to_owned()], vec![lost.clone()]), "{folder}");
    }
}

#[test]
fn path_with_brackets_matches_itself_as_a_pattern() {
    let ground = TestFolders::new();
    for path in ["app/[id]/page.tsx", "app/(group)/[...slug]/page.tsx", "app/{x}/page.tsx"] {
        ground.put_file(&format!("work/{path}"), "moon\n");
        let files = ground.open_confined();
        let find = FileFind { pattern: path.into(), ..FileFind::default() };
        assert_eq!(found_pages(&files, &find).pop().unwrap().count, 1, "{path}");
        let search = FileSearch { files: vec![path.into()], ..search_request("moon") };
        assert_eq!(search_all(&files, &search).1.matches, 1, "{path}");
    }
}
