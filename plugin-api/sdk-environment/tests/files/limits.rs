//! Tests that a call's limits apply to every path that leads to an excluded file.

use jaato_plugin_sdk_environment::files::{CallLimits, ConfinedFiles};
use jaato_types::files::{
    FileDelete, FileEdit, FileFind, FileKind, FileLimits, FilePair, FilePath, FileRead,
    FileReadText, FileResolve, FileSearch, FileWalk, FileWrite, FolderList, FolderMake,
    ResolvedPath, TextEdit,
};
use jaato_types::protected::ProtectedFiles;
use jaato_types::{ErrorKind, Result};

use crate::support::TestFolders;

/// Paths that lead to the denied `secret/key`, or to the content of `secret`.
const WAYS: [&str; 9] = [
    "secret/key",
    "./secret/../secret/key",
    "dl/../key",
    "dl/../../secret/key",
    "to_key",
    "to_folder/key",
    "absolute/key",
    "chain/key",
    "plain/../to_folder/sub/../key",
];

fn prepare_ground() -> TestFolders {
    let ground = TestFolders::new();
    ground.put_file("work/secret/key", "TOP\n");
    ground.put_file("work/secret/sub/deep", "TOP\n");
    ground.put_file("work/plain/a.txt", "TOP\n");
    ground.put_file("work/.env", "TOP\n");
    ground.make_link("secret/sub", "work/dl");
    ground.make_link("secret/key", "work/to_key");
    ground.make_link("secret", "work/to_folder");
    ground.make_link(ground.path("work/secret"), "work/absolute");
    ground.make_link("plain/../to_folder", "work/chain");
    ground
}

fn deny_limits(ground: &TestFolders) -> FileLimits {
    FileLimits {
        denied: vec![ground.shown_path("work/secret")],
        protected: Some(protected_files(ground, &[])),
        ..FileLimits::default()
    }
}

/// Protects all names that start with a dot, and the given names.
fn protected_files(ground: &TestFolders, names: &[&str]) -> ProtectedFiles {
    ProtectedFiles {
        directory: ground.path("work").canonicalize().unwrap(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        ..ProtectedFiles::default()
    }
}

fn limited_files(ground: &TestFolders, limits: FileLimits) -> ConfinedFiles {
    ground.open_confined().with_limits(&CallLimits::new(limits).unwrap())
}

#[track_caller]
fn assert_refused<T>(done: Result<T>, way: &str) {
    let Err(error) = done else { panic!("{way}: not refused") };
    assert_eq!(error.kind, ErrorKind::PermissionDenied, "{way}: {error}");
    assert!(!error.to_string().contains("TOP"), "{way}: {error}");
}

fn file_pair(from: &str, to: &str) -> FilePair {
    FilePair { from: from.into(), to: to.into(), overwrite: true }
}

fn write_request(path: &str) -> FileWrite {
    FileWrite { path: path.into(), parents: true, ..FileWrite::default() }
}

#[test]
fn denied_file_cannot_be_read_or_changed_by_any_path() {
    let ground = prepare_ground();
    let files = limited_files(&ground, deny_limits(&ground));
    for way in WAYS {
        let read = FileRead { path: way.into(), ..FileRead::default() };
        assert_refused(files.read(&read), way);
        assert!(files.read_cached(&read).is_none(), "{way}");
        assert_refused(files.read_stream(&read), way);
        assert_refused(
            files.read_text(&FileReadText { path: way.into(), ..Default::default() }),
            way,
        );
        let path = FilePath { path: way.into(), ..FilePath::default() };
        assert_refused(files.stat(&path), way);
        assert!(files.stat_cached(&path).is_none(), "{way}");
        assert_refused(files.write(&write_request(way), b"x"), way);
        assert_refused(files.write_stream(&write_request(way)), way);
        let edits = vec![TextEdit { old: "TOP".into(), new: "x".into(), all: false }];
        assert_refused(files.edit(&FileEdit { path: way.into(), edits, expected: None }), way);
        assert_refused(files.copy(&file_pair(way, "copy")), way);
        assert_refused(files.copy(&file_pair("plain/a.txt", &format!("{way}/new"))), way);
    }
    // Deleting and moving act on a link itself.
    for way in WAYS.iter().filter(|way| **way != "to_key") {
        let delete = FileDelete { path: (*way).into(), ..FileDelete::default() };
        assert_refused(files.delete(&delete), way);
        assert_refused(files.move_to(&file_pair(way, "moved")), way);
        assert_refused(files.move_to(&file_pair("plain/a.txt", way)), way);
    }
    for way in ["secret", "to_folder", "absolute", "chain", "dl", "dl/.."] {
        assert_refused(files.list(&FolderList { path: way.into(), skip: 0 }), way);
        assert_refused(
            files.walk(&FileWalk { path: way.into(), ..FileWalk::default() }).map(drop),
            way,
        );
        let search = FileSearch { path: way.into(), pattern: "TOP".into(), ..Default::default() };
        assert_refused(files.search(&search).map(drop), way);
        let find = FileFind { pattern: format!("{way}/*"), ..FileFind::default() };
        assert_refused(files.find(&find).map(drop), way);
        let make = FolderMake { path: format!("{way}/new/er"), parents: true };
        assert_refused(files.make_folder(&make), way);
    }
    // The error does not reveal whether the file exists.
    let missing = FileRead { path: "secret/no/such".into(), ..FileRead::default() };
    assert_refused(files.read(&missing), "secret/no/such");
    assert_eq!(ground.read_text("work/secret/key"), "TOP\n");
}

#[test]
fn folder_that_contains_a_denied_file_cannot_be_copied_or_moved() {
    let ground = prepare_ground();
    let files = limited_files(&ground, deny_limits(&ground));
    std::fs::create_dir(ground.path("work/in")).unwrap();
    std::fs::rename(ground.path("work/secret"), ground.path("work/in/secret")).unwrap();
    let limits =
        FileLimits { denied: vec![ground.shown_path("work/in/se*")], ..FileLimits::default() };
    for limits in
        [FileLimits { denied: vec![ground.shown_path("work/in/secret")], ..limits.clone() }, limits]
    {
        let files = limited_files(&ground, limits);
        assert_refused(files.copy(&file_pair("in", "out")), "copy");
        assert_refused(files.move_to(&file_pair("in", "out")), "move");
        let delete = FileDelete { path: "in".into(), recursive: true };
        assert_refused(files.delete(&delete), "delete");
    }
    // A move to a denied path is refused, too.
    ground.put_file("work/other/key", "new");
    assert_refused(files.move_to(&file_pair("other", "secret")), "onto");
    ground.put_file("work/with/secret/key", "new");
    let below =
        FileLimits { denied: vec![ground.shown_path("work/to/secret")], ..FileLimits::default() };
    assert_refused(
        limited_files(&ground, below.clone()).copy(&file_pair("with", "to")),
        "copy below",
    );
    assert_refused(limited_files(&ground, below).move_to(&file_pair("with", "to")), "move below");
    let protected = Some(protected_files(&ground, &["key"]));
    let protects = FileLimits { protected, ..FileLimits::default() };
    assert_refused(
        limited_files(&ground, protects.clone()).move_to(&file_pair("with", "to")),
        "protected",
    );
    assert_eq!(ground.read_text("work/in/secret/key"), "TOP\n");
    limited_files(&ground, protects).copy(&file_pair("plain", "plain2")).unwrap();
}

#[test]
fn searches_skip_denied_files_and_report_only_their_number() {
    let ground = prepare_ground();
    ground.put_file("work/deep/er/secret/key", "TOP\n");
    let limits = FileLimits { denied: vec!["*/secret".into()], ..FileLimits::default() };
    let files = limited_files(&ground, limits);
    let search = FileSearch { pattern: "TOP".into(), ..FileSearch::default() };
    let pages: Vec<_> = files.search(&search).unwrap().map(Result::unwrap).collect();
    let found: Vec<_> = pages.iter().flat_map(|page| &page.files).map(|it| &*it.path).collect();
    assert_eq!(found, ["plain/a.txt"]);
    let totals = pages.last().unwrap().totals;
    assert_eq!((totals.matches, totals.files_searched, totals.left_out.denied), (1, 1, 2));
    for pattern in ["**/*", "s*/*", "s*/k*", "{secret,plain}/*", "[s]ecret/key", "*/*/secret/*"] {
        let find = FileFind { pattern: pattern.into(), ..FileFind::default() };
        let pages: Vec<_> = files.find(&find).unwrap().map(Result::unwrap).collect();
        let found: Vec<_> = pages.iter().flat_map(|page| &page.files).collect();
        assert!(found.iter().all(|file| file.path == "plain/a.txt"), "{pattern} {found:?}");
        assert_eq!(pages.last().unwrap().count, found.len() as u64, "{pattern}");
    }
    let walk = files.walk(&FileWalk::default()).unwrap().flat_map(|page| page.unwrap().entries);
    assert!(walk.map(|entry| entry.path).all(|path| !path.contains("secret")));
    let listed = files.list(&FolderList::default()).unwrap();
    assert!(listed.entries.iter().all(|entry| entry.name != "secret"));
    assert_eq!((listed.count, listed.denied), (listed.entries.len(), 1));
}

#[test]
fn protected_file_can_be_read_but_not_changed() {
    let ground = prepare_ground();
    let files = limited_files(&ground, deny_limits(&ground));
    let read = FileRead { path: ".env".into(), ..FileRead::default() };
    assert_eq!(files.read(&read).unwrap().1, b"TOP\n");
    let error = files.write(&write_request(".env"), b"x").unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert!(error.hint.as_deref().unwrap().contains("a separate call"), "{error}");
    assert_refused(files.write(&write_request("new/.env"), b"x"), "a folder is not made either");
    assert_refused(
        files.make_folder(&FolderMake { path: "new/.env/x".into(), parents: true }),
        "mkdir",
    );
    assert!(!ground.path("work/new/.env").exists());
    let find = FileFind { pattern: "*".into(), include_hidden: true, ..FileFind::default() };
    let found = files.find(&find).unwrap().flat_map(|page| page.unwrap().files);
    let told: Vec<_> = found.map(|file| (file.path, file.protected)).collect();
    assert_eq!(told, [(".env".to_owned(), true)]);
    // A pattern without `*` names one file.
    ground.make_link(".env", "work/to_env");
    for (pattern, expected) in [(".env", true), ("to_env", true), ("plain/a.txt", false)] {
        let find = FileFind { pattern: pattern.into(), ..FileFind::default() };
        let found = files.find(&find).unwrap().flat_map(|page| page.unwrap().files);
        let told: Vec<_> = found.map(|file| (file.path, file.protected)).collect();
        assert_eq!(told, [(pattern.to_owned(), expected)]);
    }
}

#[test]
fn a_rule_about_hidden_names_does_not_refuse_folders() {
    let ground = prepare_ground();
    ground.put_file("work/plain/.key", "TOP\n");
    for rule in ["work/*/.*", "work/plain/.*"] {
        let limits = FileLimits { denied: vec![ground.shown_path(rule)], ..FileLimits::default() };
        let files = limited_files(&ground, limits);
        let listed = files.list(&FolderList { path: "plain".into(), skip: 0 }).unwrap();
        let names: Vec<_> = listed.entries.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, ["a.txt"], "{rule}");
        let path = FilePath { path: "plain/".into(), ..FilePath::default() };
        assert_eq!(files.stat(&path).unwrap().kind, FileKind::Folder);
        let search =
            FileSearch { path: "plain".into(), pattern: "TOP".into(), ..Default::default() };
        files.search(&search).unwrap();
        let read = FileRead { path: "plain/.key".into(), ..FileRead::default() };
        assert_refused(files.read(&read), rule);
    }
}

fn resolve_path(files: &ConfinedFiles, path: &str) -> ResolvedPath {
    let request = FileResolve { paths: vec![path.into()] };
    files.resolve(&request).paths.remove(0).unwrap()
}

#[test]
fn path_resolution_matches_the_file_operations() {
    let ground = prepare_ground();
    let files = ground.open_confined();
    let root = ground.path("work").canonicalize().unwrap();
    let leads = |path: &str| {
        let found = resolve_path(&files, path);
        let below = |path: &str| {
            let below = std::path::Path::new(path).strip_prefix(&root);
            below.map_or_else(|_| path.to_owned(), |it| it.display().to_string())
        };
        (below(&found.path), below(&found.entry), found.kind, below(&found.found))
    };
    let key = || "secret/key".to_owned();
    for way in WAYS.iter().filter(|way| **way != "to_key") {
        assert_eq!(leads(way), (key(), key(), Some(FileKind::File), key()), "{way}");
    }
    assert_eq!(leads("to_key"), (key(), "to_key".into(), Some(FileKind::File), key()));
    let new = || "secret/sub/new/x".to_owned();
    assert_eq!(leads("dl/new/x"), (new(), new(), None, "secret/sub".into()));
    ground.make_link("secret/hook", "work/to_nothing");
    let (path, entry, kind, found) = leads("to_nothing");
    assert_eq!((&*path, &*entry, kind, &*found), ("secret/hook", "to_nothing", None, "secret"));
    assert_eq!(leads("plain/a.txt/x").0, "plain/a.txt/x");
    ground.make_link("/etc", "work/out");
    assert_eq!(leads("out/passwd").0, "/etc/passwd");
    ground.make_link("round", "work/round");
    let round = FileResolve { paths: vec!["round/x".into(), "plain".into()] };
    let told = files.resolve(&round).paths;
    assert!(told[0].is_none() && told[1].is_some());
    let (one, other) = (resolve_path(&files, "dl/../key"), resolve_path(&files, "secret/key"));
    assert_eq!((one.identity, one.identity.is_some()), (other.identity, true));
}

#[test]
fn path_that_changed_since_it_was_checked_is_refused() {
    let ground = prepare_ground();
    let files = ground.open_confined();
    let exchanges: [(&str, &dyn Fn()); 4] = [
        ("a link", &|| ground.make_link("../secret/key", "work/plain/a.txt")),
        ("a hard link", &|| {
            std::fs::hard_link(ground.path("work/secret/key"), ground.path("work/plain/a.txt"))
                .unwrap();
        }),
        ("another file", &|| ground.put_file("work/plain/a.txt", "other")),
        ("a folder", &|| std::fs::create_dir(ground.path("work/plain/a.txt")).unwrap()),
    ];
    for (what, exchange) in exchanges {
        let _ = std::fs::remove_dir_all(ground.path("work/plain"));
        ground.put_file("work/plain/a.txt", "old");
        let expected = vec![resolve_path(&files, "plain/a.txt")];
        let files = limited_files(&ground, FileLimits { expected, ..FileLimits::default() });
        files
            .write(&FileWrite { mode: Default::default(), ..write_request("plain/b.txt") }, b"x")
            .unwrap();
        std::fs::rename(ground.path("work/plain/a.txt"), ground.path("work/away")).unwrap();
        exchange();
        let absolute = ground.shown_path("work/plain/a.txt");
        for path in ["plain/a.txt", "./plain//a.txt", &absolute] {
            let error = files.write(&write_request(path), b"new").unwrap_err();
            assert!(error.to_string().contains("changed since it was checked"), "{what} {error}");
            let read = FileRead { path: path.into(), ..FileRead::default() };
            assert!(files.read(&read).is_err(), "{what}");
        }
    }
    assert_eq!(ground.read_text("work/secret/key"), "TOP\n");
}

#[test]
fn missing_file_is_created_only_in_the_folder_that_was_checked() {
    let ground = prepare_ground();
    let files = ground.open_confined();
    let expected = vec![resolve_path(&files, "plain/new/x")];
    let limited = limited_files(&ground, FileLimits { expected, ..FileLimits::default() });
    limited.write(&write_request("plain/new/x"), b"1").unwrap();
    limited.write(&write_request("plain/new/x"), b"2").unwrap();
    std::fs::rename(ground.path("work/plain"), ground.path("work/plain.old")).unwrap();
    ground.make_link("secret", "work/plain");
    assert!(limited.write(&write_request("plain/new/x"), b"3").is_err());
    std::fs::remove_file(ground.path("work/plain")).unwrap();
    std::fs::create_dir(ground.path("work/plain")).unwrap();
    assert!(limited.write(&write_request("plain/new/x"), b"3").is_err());
    assert!(!ground.path("work/secret/new").exists());
}
