//! Tests of the temporary folder and of invalid settings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use jaato_plugin_sdk_environment::files::{
    AllowedFolder, ConfinedFiles, ConfinedFilesSettings, TemporarySettings,
};
use jaato_types::ErrorKind;
use jaato_types::files::*;

use crate::skip::skip;
use crate::support::{TestFolders, is_root};

fn folders_in_base(ground: &TestFolders) -> Vec<PathBuf> {
    fs::read_dir(ground.path("base")).unwrap().map(|it| it.unwrap().path()).collect()
}

#[test]
fn temporary_folder_is_private_and_removed_with_its_owner() {
    let ground = TestFolders::new();
    let confined = ground.open_confined();
    let (host, shown) = confined.temporary_folder().unwrap();
    assert_eq!(fs::metadata(host).unwrap().permissions().mode() & 0o7777, 0o700);
    assert!(shown.starts_with(ground.path("base")));
    let write = FileWrite {
        path: format!("{}/a/b", shown.display()),
        parents: true,
        ..FileWrite::default()
    };
    confined.write(&write, b"x").unwrap();
    assert_eq!(fs::read(host.join("a/b")).unwrap(), b"x");
    let delete = FileDelete { path: shown.display().to_string(), recursive: true };
    assert_eq!(confined.delete(&delete).unwrap_err().kind, ErrorKind::PermissionDenied);
    drop(confined);
    assert_eq!(folders_in_base(&ground), Vec::<PathBuf>::new());
}

#[test]
fn abandoned_temporary_folder_is_removed_and_one_in_use_is_kept() {
    let ground = TestFolders::new();
    let in_use = ground.open_confined();
    let (kept, _) = in_use.temporary_folder().unwrap();
    // A killed host leaves its folder behind, without a lock.
    let prefix = kept.file_name().unwrap().to_str().unwrap().rsplit_once('-').unwrap().0.to_owned();
    ground.put_file(&format!("base/{prefix}-0123456789abcdef/deep/file"), "left");
    ground.put_file("base/somebody-elses/file", "kept");
    ground.put_file("work/file", "kept");
    ground.make_link(ground.path("work"), &format!("base/{prefix}-link"));
    let next = ground.open_confined();
    let mut expected = vec![
        ground.path("base/somebody-elses"),
        ground.path(&format!("base/{prefix}-link")),
        ground.path("base").join(kept.file_name().unwrap()),
        ground.path("base").join(next.temporary_folder().unwrap().0.file_name().unwrap()),
    ];
    expected.sort();
    let mut there = folders_in_base(&ground);
    there.sort();
    assert_eq!(there, expected);
    assert_eq!(ground.read_text("work/file"), "kept");
}

#[test]
fn temporary_folder_of_another_user_is_kept() {
    if !is_root() {
        return skip("only root can make folders of another user");
    }
    let ground = TestFolders::new();
    fs::create_dir(ground.path("base/jaato-environment-0-0000000000000000")).unwrap();
    let theirs = ground.path("base/jaato-environment-0-0000000000000000");
    std::os::unix::fs::chown(&theirs, Some(65_124), Some(65_124)).unwrap();
    let _confined = ground.open_confined();
    assert!(theirs.exists());
}

#[test]
fn temporary_folder_is_shown_with_its_container_path() {
    let ground = TestFolders::new();
    let temporary =
        TemporarySettings { base: Some(ground.path("base")), shown: Some("/tmp/x".into()) };
    let settings = ConfinedFilesSettings { temporary: Some(temporary), ..ground.settings() };
    let confined = ConfinedFiles::open(&settings).unwrap();
    let path = "/tmp/x/a.txt".to_owned();
    let write = FileWrite { path: path.clone(), ..FileWrite::default() };
    confined.write(&write, b"abc").unwrap();
    let read = FileRead { path, ..FileRead::default() };
    assert_eq!(confined.read(&read).unwrap().1, b"abc");
    let (host, _) = confined.temporary_folder().unwrap();
    assert_eq!(fs::read(host.join("a.txt")).unwrap(), b"abc");
}

#[test]
fn invalid_folder_settings_are_refused() {
    let ground = TestFolders::new();
    ground.put_file("work/file", "");
    let check = |settings: ConfinedFilesSettings, part: &str| {
        let error = ConfinedFiles::open(&settings).unwrap_err();
        assert!(error.message.contains(part), "{error}");
        assert_eq!(folders_in_base(&ground), Vec::<PathBuf>::new());
    };
    let with = |root: AllowedFolder| {
        let mut settings = ground.settings();
        settings.roots.push(root);
        settings
    };
    check(with(AllowedFolder::local(ground.path("missing"))), "missing`: entity not found");
    check(with(AllowedFolder::local(ground.path("work/file"))), "work/file`: not a directory");
    check(
        with(AllowedFolder {
            shown: "relative".into(),
            ..AllowedFolder::local(ground.path("work"))
        }),
        "is not an absolute path",
    );
    check(with(AllowedFolder::local(ground.path("work"))), "is allowed twice");
    check(
        ConfinedFilesSettings { default_folder: "/".into(), ..ground.settings() },
        "outside of the allowed",
    );
    check(
        ConfinedFilesSettings { default_folder: "work".into(), ..ground.settings() },
        "is not absolute",
    );
    let temporary = Some(TemporarySettings { base: Some(ground.path("none")), shown: None });
    check(
        ConfinedFilesSettings { temporary, ..ground.settings() },
        "cannot create a temporary folder in",
    );
}
