//! Tests of walks and patterns.

use std::fs;
use std::time::{Duration, SystemTime};

use jaato_plugin_sdk_environment::files::ConfinedFiles;
use jaato_types::ErrorKind;
use jaato_types::files::*;

use crate::support::TestFolders;

fn walk_names(
    confined: &ConfinedFiles,
    path: &str,
    include_ignored: bool,
    depth: Option<usize>,
) -> String {
    let request = FileWalk { path: path.to_owned(), include_ignored, depth_max: depth };
    let pages: Vec<WalkedPage> = confined.walk(&request).unwrap().map(Result::unwrap).collect();
    assert!(pages.iter().all(|page| page.unreadable.is_empty()));
    let paths = pages.into_iter().flat_map(|page| page.entries).map(|entry| entry.path);
    paths.collect::<Vec<_>>().join(" ")
}

fn find_paths(confined: &ConfinedFiles, pattern: &str, path: &str) -> String {
    let request = FileFind {
        pattern: pattern.to_owned(),
        path: path.to_owned(),
        order: FileOrder::Path,
        ..FileFind::default()
    };
    let (count, paths) = find_all(confined, &request);
    assert_eq!(count, paths.len() as u64);
    paths.join(" ")
}

fn find_all(confined: &ConfinedFiles, request: &FileFind) -> (u64, Vec<String>) {
    let pages: Vec<FoundPage> = confined.find(request).unwrap().map(Result::unwrap).collect();
    let count = pages.last().unwrap().count;
    (count, pages.into_iter().flat_map(|page| page.files).map(|file| file.path).collect())
}

/// Creates a repository with files of all kinds.
fn make_repository() -> TestFolders {
    let ground = TestFolders::new();
    for name in
        ["a.rs", "b/c.rs", "b/d.txt", "b/deep/e.rs", "target/f.rs", "b/skipped.log", "b/kept.log"]
    {
        ground.put_file(&format!("work/{name}"), "");
    }
    ground.put_file("work/.gitignore", "target/\n*.log\n!kept.log\n/only_here\n");
    ground.put_file("work/only_here", "");
    ground.put_file("work/b/only_here", "");
    ground.put_file("work/b/deep/.gitignore", "*.tmp\n");
    ground.put_file("work/b/deep/g.tmp", "");
    ground.put_file("work/.hidden/h.rs", "");
    ground.put_file("work/.git/config", "");
    ground.put_file("work/.git/info/exclude", "excluded\n");
    ground.put_file("work/excluded", "");
    ground.put_file("work/.ignore", "d.txt\n");
    ground
}

#[test]
fn walk_skips_hidden_and_ignored_files() {
    let ground = make_repository();
    let confined = ground.open_confined();
    let expected = "a.rs b b/c.rs b/deep b/deep/e.rs b/kept.log b/only_here";
    assert_eq!(walk_names(&confined, "", false, None), expected);
    assert_eq!(walk_names(&confined, "", false, Some(1)), "a.rs b");
    assert_eq!(
        walk_names(&confined, "", false, Some(2)),
        "a.rs b b/c.rs b/deep b/kept.log b/only_here"
    );
    let all = walk_names(&confined, ".", true, None);
    assert!(all.contains(".hidden/h.rs") && all.contains("target/f.rs"), "{all}");
    assert!(!all.contains(".git/"), "{all}");
    // Rules of the folders above apply if the walk starts deeper.
    assert_eq!(walk_names(&confined, "b", false, None), "c.rs deep deep/e.rs kept.log only_here");
    // A folder that the request names is walked even if it is ignored or hidden.
    assert_eq!(walk_names(&confined, "target", false, None), "f.rs");
    assert_eq!(walk_names(&confined, ".hidden", false, None), "h.rs");
}

#[test]
fn a_walk_finds_what_the_ignore_crate_finds() {
    let ground = make_repository();
    ground.put_file("work/inner/.git/config", "");
    ground.put_file("work/inner/x.log", "");
    ground.put_file("work/inner/excluded", "");
    let confined = ground.open_confined();
    let work = ground.path("work");
    for start in ["", "b", "inner"] {
        let walk = ignore::WalkBuilder::new(work.join(start))
            .git_global(false)
            .sort_by_file_name(Ord::cmp)
            .build();
        let theirs: Vec<String> = walk
            .skip(1)
            .map(|it| {
                let entry = it.unwrap();
                entry.path().strip_prefix(work.join(start)).unwrap().display().to_string()
            })
            .collect();
        assert_eq!(walk_names(&confined, start, false, None), theirs.join(" "), "{start}");
    }
}

#[test]
fn walk_is_split_into_pages_that_fit_in_a_frame() {
    let ground = TestFolders::new();
    for at in 0..2500 {
        ground.put_file(&format!("work/{at:04}{}", "\u{1}".repeat(100)), "");
    }
    let confined = ground.open_confined();
    let walk = confined.walk(&FileWalk::default()).unwrap();
    let pages: Vec<WalkedPage> = walk.map(Result::unwrap).collect();
    let count: usize = pages.iter().map(|page| page.entries.len()).sum();
    assert_eq!(count, 2500);
    assert!(pages.len() >= 3);
    for page in &pages {
        assert!(page.entries.len() <= WALK_ENTRIES_MAX);
        assert!(serde_json::to_vec(page).unwrap().len() < 64 * 1024);
    }
}

#[test]
fn patterns_find_files() {
    let ground = make_repository();
    let confined = ground.open_confined();
    for (pattern, path, expected) in [
        ("**/*.rs", "", "a.rs b/c.rs b/deep/e.rs"),
        ("*.rs", "", "a.rs"),
        ("*", "", "a.rs"),
        ("b/*", "", "b/c.rs b/kept.log b/only_here"),
        ("*/*.rs", "", "b/c.rs"),
        ("{a,b/c}.rs", "", "a.rs b/c.rs"),
        ("?.rs", "b", "c.rs"),
        ("b/deep/**", "", "b/deep/e.rs"),
        ("[a-b].rs", "", "a.rs"),
        ("../work/b/*.rs", "", "../work/b/c.rs"),
        ("target/*", "", "target/f.rs"),
        (".hidden/*", "", ".hidden/h.rs"),
        (".gitignore", "", ".gitignore"),
        ("b/", "", ""),
        ("nothing", "", ""),
        ("*.none", "", ""),
    ] {
        assert_eq!(find_paths(&confined, pattern, path), expected, "{pattern} in {path}");
    }
    let include = FileFind {
        pattern: "**/*.rs".into(),
        include_ignored: true,
        include_hidden: true,
        ..FileFind::default()
    };
    assert_eq!(find_all(&confined, &include).0, 5);
}

#[test]
fn found_files_are_sorted_newest_first_and_limited() {
    let ground = TestFolders::new();
    let start = SystemTime::now() - Duration::from_secs(1000);
    for (at, name) in ["c", "a", "b", "d"].iter().enumerate() {
        ground.put_file(&format!("work/{name}"), "");
        let file = fs::File::options().write(true).open(ground.path("work").join(name)).unwrap();
        file.set_modified(start + Duration::from_secs(at as u64)).unwrap();
    }
    let confined = ground.open_confined();
    let find = |order, limit| {
        let request = FileFind { pattern: "*".into(), order, limit, ..FileFind::default() };
        let (count, paths) = find_all(&confined, &request);
        assert_eq!(count, 4);
        paths.concat()
    };
    assert_eq!(find(FileOrder::Newest, None), "dbac");
    assert_eq!(find(FileOrder::Newest, Some(2)), "db");
    assert_eq!(find(FileOrder::Path, Some(3)), "abc");
    assert_eq!(find(FileOrder::Path, Some(0)), "");
}

#[test]
fn invalid_patterns_are_refused() {
    let confined = TestFolders::new();
    let confined = confined.open_confined();
    for (pattern, part) in [("", "empty"), ("{a", "invalid pattern")] {
        let request = FileFind { pattern: pattern.to_owned(), ..FileFind::default() };
        let error = confined.find(&request).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn gitignore_rules_above_the_allowed_folder_apply() {
    let ground = TestFolders::new();
    ground.put_file(".git/info/exclude", "excluded\n");
    ground.put_file(".gitignore", "*.gen\n/work/only_here\n");
    ground.put_file(".ignore", "d.txt\n");
    for name in ["a.gen", "keep.gen", "excluded", "d.txt", "only_here", "b/only_here", "b/a.gen"] {
        ground.put_file(&format!("work/{name}"), "");
    }
    ground.put_file("work/.gitignore", "!keep.gen\n");
    assert_eq!(walk_names(&ground.open_confined(), "", false, None), "b b/only_here keep.gen");
    // Without a repository, the rules of folders above do not apply.
    fs::remove_dir_all(ground.path(".git")).unwrap();
    let without = "a.gen b b/a.gen b/only_here d.txt excluded keep.gen only_here";
    assert_eq!(walk_names(&ground.open_confined(), "", false, None), without);
}
