//! Which paths count as safe, and the modes of new ones.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use jaato_places::{
    TrustedOwners, check_file, check_file_in, check_folder, make_missing_folders, make_own_folder,
    open_file_inside, open_own_file, open_plain_file, read_own_file,
};

#[path = "../../../plugin-api/testkit/src/skip.rs"]
mod skip;
use skip::skip;

/// A user that owns nothing here.
const STRANGER: u32 = 4711;

fn file_mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Creates a folder that others can enter, like `/home`.
fn create_root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    set_mode(root.path(), 0o755);
    root
}

/// Returns the problem with a folder, and the part of the path that has it.
#[track_caller]
fn folder_error(folder: &Path, root: &Path) -> String {
    let error = check_folder(folder, &TrustedOwners::this_user_and_root()).unwrap_err();
    error.to_string().replace(&root.canonicalize().unwrap().display().to_string(), "…")
}

/// Some tests need another user's files, which only root can make.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[test]
fn created_folders_and_files_are_private_to_their_owner() {
    let root = create_root();
    let folder = root.path().join("a/b/c");
    make_own_folder(&folder).unwrap();
    let mut file =
        open_own_file(&folder.join("f"), OpenOptions::new().append(true).create(true)).unwrap();
    file.write_all(b"x").unwrap();
    for made in ["a", "a/b", "a/b/c"] {
        assert_eq!(file_mode(&root.path().join(made)), 0o700, "{made}");
    }
    assert_eq!(file_mode(&folder.join("f")), 0o600);
    assert_eq!(read_own_file(&folder.join("f"), 1).unwrap(), Some(b"x".to_vec()));
}

#[test]
fn existing_folder_and_file_are_made_private() {
    let root = create_root();
    let folder = root.path().join("cache");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("log"), "").unwrap();
    set_mode(&folder, 0o775);
    set_mode(&folder.join("log"), 0o644);
    make_own_folder(&folder).unwrap();
    open_own_file(&folder.join("log"), OpenOptions::new().append(true)).unwrap();
    assert_eq!((file_mode(&folder), file_mode(&folder.join("log"))), (0o700, 0o600));
}

#[test]
fn a_file_that_others_could_write_to_is_not_used_though_its_folder_is_closed() {
    let root = create_root();
    let file = root.path().join("trust.json");
    fs::write(&file, "{}").unwrap();
    for mode in [0o620, 0o602, 0o666] {
        set_mode(&file, mode);
        let error = read_own_file(&file, 10).unwrap_err();
        assert!(
            error.to_string().ends_with(&format!("can write to it (mode {mode:o})")),
            "{error}"
        );
        assert!(error.hint().unwrap().starts_with("chmod go-w '/"), "{error:?}");
        open_own_file(&file, OpenOptions::new().append(true)).unwrap_err();
    }
    set_mode(&file, 0o644);
    assert_eq!(read_own_file(&file, 10).unwrap(), Some(b"{}".to_vec()));
}

#[test]
fn folder_below_a_folder_writable_by_others_is_refused() {
    let root = create_root();
    let folder = root.path().join("share/jaato");
    make_own_folder(&folder).unwrap();
    for mode in [0o775, 0o757] {
        set_mode(&root.path().join("share"), mode);
        let has = folder_error(&folder, root.path());
        let wants = format!(
            "`…/share` is not used: users other than its owner can write to it (mode {mode:o})"
        );
        assert_eq!(has, wants);
    }
    // Sticky, so our files below it stay ours.
    set_mode(&root.path().join("share"), 0o1777);
    check_folder(&folder, &TrustedOwners::this_user_and_root()).unwrap();
    // No one else can reach `share`.
    set_mode(&root.path().join("share"), 0o777);
    set_mode(root.path(), 0o700);
    check_folder(&folder, &TrustedOwners::this_user_and_root()).unwrap();
}

#[test]
fn symlinks_in_a_path_are_resolved_and_checked() {
    let root = create_root();
    let (open, closed) = (root.path().join("open"), root.path().join("closed"));
    make_own_folder(&open.join("inner")).unwrap();
    make_own_folder(&closed).unwrap();
    set_mode(&open, 0o777);
    let through = |name: &str, target: PathBuf| {
        symlink(target, closed.join(name)).unwrap();
        closed.join(name)
    };
    let relative = through("relative", "../open/inner".into());
    let absolute = through("absolute", open.join("inner"));
    let chained = through("chained", "relative".into());
    for link in [&relative, &absolute, &chained] {
        let has = folder_error(link, root.path());
        assert_eq!(
            has,
            "`…/open` is not used: users other than its owner can write to it (mode 777)"
        );
    }
    set_mode(&open, 0o755);
    for link in [relative, absolute, chained] {
        check_folder(&link, &TrustedOwners::this_user_and_root()).unwrap();
    }
    let circle = through("circle", "circle".into());
    assert!(folder_error(&circle, root.path()).ends_with("it has too many consecutive links"));
}

#[test]
fn private_folder_left_by_dot_dot_does_not_protect_the_path() {
    let root = create_root();
    make_own_folder(&root.path().join("private/inner")).unwrap();
    make_own_folder(&root.path().join("open/inner")).unwrap();
    set_mode(&root.path().join("open"), 0o777);
    // The mode of `private` protects nothing next to it.
    let beside = root.path().join("private/inner/../../open/inner");
    assert!(folder_error(&beside, root.path()).contains("`…/open` is not used"));
}

#[test]
fn files_and_folders_owned_by_another_user_are_refused() {
    if !is_root() {
        return skip("only root can make files of another user");
    }
    let root = create_root();
    let folder = root.path().join("home/jaato");
    make_own_folder(&folder).unwrap();
    fs::write(folder.join("trust.json"), "{}").unwrap();
    chown(folder.join("trust.json"), Some(STRANGER), None).unwrap();
    let error = read_own_file(&folder.join("trust.json"), 10).unwrap_err();
    assert!(error.to_string().ends_with("is not used: user 4711 owns it"), "{error}");
    check_file_in(&folder.join("trust.json"), &TrustedOwners::this_user_and_root()).unwrap_err();

    // A folder above it.
    chown(root.path().join("home"), Some(STRANGER), None).unwrap();
    assert_eq!(folder_error(&folder, root.path()), "`…/home` is not used: user 4711 owns it");

    // A link in a folder that everyone can write to.
    let target = root.path().join("target");
    make_own_folder(&target).unwrap();
    set_mode(root.path(), 0o1777);
    let link = root.path().join("link");
    symlink(&target, &link).unwrap();
    check_folder(&link, &TrustedOwners::this_user_and_root()).unwrap();
    std::os::unix::fs::lchown(&link, Some(STRANGER), None).unwrap();
    assert!(check_folder(&link, &TrustedOwners::this_user_and_root()).is_err());
}

#[test]
fn files_of_the_program_owner_are_accepted_only_on_request() {
    if !is_root() {
        return skip("only root can make files of another user");
    }
    let root = create_root();
    let (program, plugin) = (root.path().join("jaato"), root.path().join("plugins"));
    make_own_folder(&plugin).unwrap();
    fs::write(&program, "").unwrap();
    chown(&program, Some(STRANGER), None).unwrap();
    chown(&plugin, Some(STRANGER), None).unwrap();
    check_folder(&plugin, &TrustedOwners::this_user_and_root()).unwrap_err();
    check_folder(&plugin, &TrustedOwners::this_user_and_root().with_writers_of(&program)).unwrap();
}

#[test]
fn group_that_can_write_to_the_program_may_write_to_its_plugins() {
    let root = create_root();
    let (program, folder) = (root.path().join("jaato"), root.path().join("plugins"));
    make_own_folder(&folder).unwrap();
    let plugin = folder.join("libtool.so");
    for file in [&program, &plugin] {
        fs::write(file, "").unwrap();
    }
    let check = |program_mode: u32, mode: u32| {
        set_mode(&program, program_mode);
        set_mode(&folder, mode);
        set_mode(&plugin, mode);
        let owners = TrustedOwners::this_user_and_root().with_writers_of(&program);
        check_folder(&folder, &owners).is_ok() && check_file(&plugin, &owners).is_ok()
    };
    assert!(check(0o775, 0o775));
    assert!(!check(0o755, 0o775));
    assert!(!check(0o775, 0o777));
    assert!(!check(0o777, 0o777));
}

#[test]
fn special_files_and_too_large_files_are_not_read() {
    let root = create_root();
    let fifo = root.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    assert!(
        read_own_file(&fifo, 10).unwrap_err().to_string().ends_with("it is not a regular file")
    );
    assert!(check_file(root.path(), &TrustedOwners::this_user_and_root()).is_err());
    assert!(check_folder(&fifo, &TrustedOwners::this_user_and_root()).is_err());
    let file = root.path().join("file");
    fs::write(&file, "12345").unwrap();
    assert_eq!(read_own_file(&file, 5).unwrap().unwrap().len(), 5);
    assert!(read_own_file(&file, 4).unwrap_err().to_string().ends_with("it has more than 4 bytes"));
    assert_eq!(read_own_file(&root.path().join("none"), 4).unwrap(), None);
    assert!(make_own_folder(&file).unwrap_err().to_string().ends_with("it is not a folder"));
    assert!(make_missing_folders(&file.join("below")).is_err());
}

#[test]
fn open_inside_refuses_symlinks_outside_paths_and_pipes() {
    let root = create_root();
    let inside = root.path().join("workspace");
    fs::create_dir_all(inside.join("docs")).unwrap();
    fs::write(inside.join("docs/prompt.md"), "x").unwrap();
    fs::write(root.path().join("secret"), "x").unwrap();
    symlink(root.path(), inside.join("up")).unwrap();
    symlink(root.path().join("secret"), inside.join("link")).unwrap();
    let fifo = inside.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();

    open_file_inside(&inside, Path::new("docs/prompt.md")).unwrap();
    open_file_inside(&inside, &inside.join("docs/prompt.md")).unwrap();
    for refused in ["up/secret", "link", "fifo", "docs", "../secret", "docs/../../secret", ""] {
        open_file_inside(&inside, Path::new(refused)).expect_err(refused);
    }
    open_file_inside(&inside, &root.path().join("secret")).unwrap_err();
    // A path that the user named may be a link, but not a file that blocks.
    open_plain_file(&inside.join("link")).unwrap();
    open_plain_file(&fifo).unwrap_err();
    open_plain_file(Path::new("/dev/zero")).unwrap_err();
}
