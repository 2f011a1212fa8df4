//! Checks that a git repository configures nothing that a read-only `git` command runs.
//!
//! A repository's own configuration can set filters, text converters, pagers, monitors, signature
//! programs and transports, and its author wrote that configuration. A plain repository, as
//! `git clone` and `git init` create it, sets none of them. Unknown settings make a repository not
//! plain. The user's own configuration is trusted.

use std::fs;
use std::path::Path;

/// Largest configuration and index that are read.
const CONFIG_BYTES_MAX: u64 = 64 * 1024;
const INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Sections of a configuration, and their keys that run nothing.
const HARMLESS: &[(&str, &str)] = &[
    (
        "core",
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode \
         symlinks autocrlf eol safecrlf quotepath preloadindex untrackedcache",
    ),
    ("remote", "url fetch pushurl tagopt prune gh-resolved"),
    ("branch", "remote merge rebase pushremote vscode-merge-base gh-merge-base"),
    ("user", "name email signingkey"),
    ("pull", "rebase ff"),
    ("push", "default autosetupremote followtags"),
    ("init", "defaultbranch"),
    ("commit", "gpgsign"),
    ("gc", "auto"),
    ("rerere", "enabled"),
];

/// Files that add configuration or nested repositories, or a hook that runs when `git status`
/// refreshes the index.
const NOT_PLAIN: [&str; 5] =
    ["modules", "commondir", "config.worktree", "hooks/post-index-change", "index.lock"];

/// Returns true if a folder's repository is plain, or if the folder is not in a repository.
pub(crate) fn is_plain(folder: &Path) -> bool {
    for folder in folder.ancestors() {
        let git = folder.join(".git");
        match git.symlink_metadata() {
            // A file or a link points to a repository elsewhere.
            Ok(found) => return found.is_dir() && is_plain_repository(folder, &git),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return false,
        }
        // A bare repository, or the folder of a repository whose other files are elsewhere.
        if path_exists(&folder.join("HEAD")) {
            return false;
        }
    }
    true
}

fn is_plain_repository(folder: &Path, git: &Path) -> bool {
    is_repository(git)
        && !path_exists(&folder.join(".gitmodules"))
        && !NOT_PLAIN.iter().any(|name| path_exists(&git.join(name)))
        && read_limited(&git.join("config"), CONFIG_BYTES_MAX)
            .is_some_and(|bytes| std::str::from_utf8(&bytes).is_ok_and(is_plain_config))
        && (!path_exists(&git.join("index"))
            || read_limited(&git.join("index"), INDEX_BYTES_MAX)
                .is_some_and(|bytes| is_plain_index(&bytes)))
}

/// Returns true if `git` certainly treats a folder as a repository. Otherwise it searches the
/// parent folders.
fn is_repository(git: &Path) -> bool {
    let head = read_limited(&git.join("HEAD"), CONFIG_BYTES_MAX).unwrap_or_default();
    let head = std::str::from_utf8(&head).unwrap_or_default().trim_end();
    let is_digest = head.len() == 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_head = is_digest || head.starts_with("ref: refs/");
    // With the dot, only a folder that can be entered counts.
    is_head && ["objects/.", "refs/."].iter().all(|name| git.join(name).is_dir())
}

fn path_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Reads a file unless it is a link or too large.
fn read_limited(path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok()?;
    (found.is_file() && found.len() <= bytes_max).then(|| fs::read(path).ok()).flatten()
}

/// Returns true if a configuration contains only harmless keys, each on its own line.
fn is_plain_config(text: &str) -> bool {
    let mut keys = "";
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return !line.ends_with('\\');
        }
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let known = known_keys(section);
            keys = known.unwrap_or_default();
            return known.is_some();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let is_known = keys.split_whitespace().any(|known| known.eq_ignore_ascii_case(key.trim()));
        is_known && !value.contains(['\\', '"', '[', ']', '#', ';']) && value.is_ascii()
    })
}

fn known_keys(section: &str) -> Option<&'static str> {
    let (name, rest) = section.split_once(' ').unwrap_or((section, "\"\""));
    let inside = rest.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./+@".contains(letter);
    let known = HARMLESS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.filter(|_| inside.chars().all(is_plain)).map(|(_, keys)| *keys)
}

/// Returns true if an index contains no nested repository. `git status` would inspect those by
/// their own configuration.
fn is_plain_index(bytes: &[u8]) -> bool {
    has_plain_entries(bytes).unwrap_or(false)
}

/// Bytes of an entry before its name.
const ENTRY_BYTES: usize = 62;

/// Bytes of the digest at the end.
const DIGEST_BYTES: usize = 20;

/// The offset of an entry's mode, and the mode of a nested repository.
const MODE_AT: usize = 24;
const GITLINK: u32 = 0o160_000;

fn has_plain_entries(bytes: &[u8]) -> Option<bool> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if !bytes.starts_with(b"DIRC") || !matches!(version, 2 | 3) {
        return Some(false);
    }
    let mut at = 12;
    for _ in 0..number(8)? {
        if number(at + MODE_AT)? & 0o170_000 == GITLINK {
            return Some(false);
        }
        let flags = u16::from_be_bytes(bytes.get(at + 60..at + 62)?.try_into().ok()?);
        let extended = if flags & 0x4000 != 0 { 2 } else { 0 };
        let name = bytes.get(at + ENTRY_BYTES + extended..)?;
        let length = ENTRY_BYTES + extended + name.iter().position(|byte| *byte == 0)?;
        // One to eight zero bytes follow, up to a multiple of eight.
        at += (length / 8 + 1) * 8;
    }
    // An extension marks a split index, whose entries are in another file. A digest comes last.
    while at + 8 + DIGEST_BYTES <= bytes.len() {
        if bytes.get(at..at + 4)? == b"link" {
            return Some(false);
        }
        at = at.checked_add(8)?.checked_add(usize::try_from(number(at + 4)?).ok()?)?;
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn run_git(folder: &Path, words: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    fn create_repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        run_git(folder.path(), &["init", "-q"]);
        for name in ["a.txt", "a file with a long name.txt", "folder/b.txt", "link/c"] {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), name).unwrap();
        }
        run_git(folder.path(), &["add", "."]);
        run_git(folder.path(), &["commit", "-qm", "a"]);
        folder
    }

    #[test]
    fn repositories_as_git_makes_them_are_plain() {
        let first = create_repository();
        assert!(is_plain(first.path()));
        assert!(is_plain(&first.path().join("folder")));
        let clone = tempfile::tempdir().unwrap();
        let url = first.path().display().to_string();
        run_git(clone.path(), &["clone", "-q", &url, "."]);
        run_git(clone.path(), &["checkout", "-qb", "other", "--track", "origin/HEAD"]);
        assert!(is_plain(clone.path()));
        assert!(is_plain(tempfile::tempdir().unwrap().path()));
    }

    #[test]
    fn git_configuration_that_runs_programs_is_not_plain() {
        let configurations = [
            "[core]\n\tfsmonitor = ./x",
            "[core]\n\tpager = ./x",
            "[core] pager = ./x",
            "[CORE]\nFSMONITOR=./x",
            "[core]\n\thooksPath = x",
            "[core]\n\tsshCommand = x",
            "[core]\n\tworktree = /",
            "[core]\n\tbare = false \\\n[core] fsmonitor = x",
            "[core]\n\tbare = \"false\n",
            "[diff]\n\texternal = ./x",
            "[diff \"a\"]\n\ttextconv = ./x",
            "[filter \"a\"]\n\tclean = ./x",
            "[pager]\n\tlog = ./x",
            "[log]\n\tshowSignature = true",
            "[gpg]\n\tprogram = ./x",
            "[alias]\n\tstatus = !./x",
            "[include]\n\tpath = x",
            "[includeIf \"gitdir:/\"]\n\tpath = x",
            "[extensions]\n\tpartialClone = origin",
            "[extensions]\n\tworktreeConfig = true",
            "[remote \"a\"]\n\tpromisor = true",
            "[remote \"a\"]\n\tuploadpack = ./x",
            "[remote \"a]\"]\n\turl = x",
            "[remote]\n\tvcs = x",
            "[merge \"a\"]\n\tdriver = ./x",
        ];
        for configuration in configurations {
            let folder = create_repository();
            fs::write(folder.path().join(".git/config"), configuration).unwrap();
            assert!(!is_plain(folder.path()), "{configuration}");
        }
    }

    #[test]
    fn a_repository_inside_another_is_not_plain() {
        let folder = create_repository();
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).unwrap();
        run_git(&inside, &["init", "-q"]);
        fs::write(inside.join("x"), "").unwrap();
        run_git(&inside, &["add", "."]);
        run_git(&inside, &["commit", "-qm", "a"]);
        assert!(is_plain(folder.path()));
        run_git(folder.path(), &["add", "inside"]);
        assert!(!is_plain(folder.path()));
    }

    #[test]
    fn other_forms_of_a_repository_are_not_plain() {
        let change = |change: &dyn Fn(&Path)| {
            let folder = create_repository();
            change(folder.path());
            assert!(!is_plain(folder.path()));
            assert!(!is_plain(&folder.path().join("folder")));
        };
        let folder = create_repository();
        fs::create_dir(folder.path().join("folder/.git")).unwrap();
        fs::write(folder.path().join("folder/.git/config"), "").unwrap();
        assert!(!is_plain(&folder.path().join("folder")));
        change(&|folder| fs::write(folder.join(".git/hooks/post-index-change"), "").unwrap());
        change(&|folder| fs::write(folder.join(".gitmodules"), "").unwrap());
        change(&|folder| fs::write(folder.join(".git/config.worktree"), "").unwrap());
        change(&|folder| fs::write(folder.join(".git/index"), "DIRC").unwrap());
        change(&|folder| run_git(folder, &["update-index", "--index-version", "4"]));
        change(&|folder| run_git(folder, &["update-index", "--split-index"]));
        // Git does not treat such a folder as a repository, and searches further.
        change(&|folder| fs::remove_file(folder.join(".git/HEAD")).unwrap());
        change(&|folder| fs::write(folder.join(".git/HEAD"), "ref: x").unwrap());
        change(&|folder| fs::remove_dir_all(folder.join(".git/refs")).unwrap());
        change(&|folder| fs::remove_dir_all(folder.join(".git/objects")).unwrap());
        change(&|folder| {
            fs::rename(folder.join(".git"), folder.join("other")).unwrap();
            fs::write(folder.join(".git"), "gitdir: other").unwrap();
        });
        change(&|folder| {
            fs::rename(folder.join(".git"), folder.join("other")).unwrap();
            fs::write(folder.join("HEAD"), "ref: refs/heads/a").unwrap();
            fs::write(folder.join("commondir"), "other").unwrap();
        });
        change(&|folder| {
            fs::rename(folder.join(".git"), folder.join("other")).unwrap();
            for name in ["HEAD", "objects", "refs"] {
                fs::rename(folder.join("other").join(name), folder.join(name)).unwrap();
            }
        });
    }
}
