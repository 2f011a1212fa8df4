//! The sandbox of a command: it can read this machine, write to some folders, finds some folders
//! empty, and sees only its own processes.
//!
//! Independent of plugins.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The limits of commands. Paths are those of this machine, absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Folders to which commands may write.
    pub writable: Vec<PathBuf>,
    /// Folders that appear empty.
    pub hidden: Vec<PathBuf>,
    /// The network access.
    pub network: Network,
}

/// The network access of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The same as this machine.
    Shared,
    /// No access, not even to this machine.
    None,
}

impl Sandbox {
    /// Returns the arguments of `bwrap` that precede a program and its arguments.
    ///
    /// Does not use `--die-with-parent`, which is bound to a thread, or `--new-session`, which no
    /// signal would reach. The host's guardian ends processes that are left.
    pub fn bwrap_arguments(&self, directory: &Path) -> Vec<String> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let mut words: Vec<String> = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
            .into_iter()
            .chain(["--unshare-pid", "--unshare-ipc"])
            .map(str::to_owned)
            .collect();
        if self.network == Network::None {
            words.push("--unshare-net".to_owned());
        }
        // Later mounts cover earlier ones, so a workspace inside a hidden home stays visible.
        for hidden in &self.hidden {
            words.extend(["--tmpfs".to_owned(), shown(hidden)]);
        }
        for writable in &self.writable {
            words.extend(["--bind".to_owned(), shown(writable), shown(writable)]);
        }
        words.extend(["--chdir".to_owned(), shown(directory), "--".to_owned()]);
        words
    }

    /// Returns true if a command can find a program, by its path or in `PATH`. Blocks.
    ///
    /// Called before a command starts, because `bwrap` would report a missing program only in the
    /// command's own error output.
    pub fn has_visible_program(&self, program: &str, directory: &Path, path: &OsStr) -> bool {
        if program.contains('/') {
            return self.has_program(&directory.join(program));
        }
        let mut folders = std::env::split_paths(path);
        folders.any(|folder| self.has_program(&directory.join(folder).join(program)))
    }

    fn has_program(&self, file: &Path) -> bool {
        let Ok(real) = file.canonicalize() else { return false };
        let may_be_run = |file: &Path| {
            let metadata = file.metadata();
            metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
        };
        self.is_visible(file) && self.is_visible(&real) && may_be_run(&real)
    }

    fn is_visible(&self, path: &Path) -> bool {
        let is_below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        is_below(&self.writable) || !is_below(&self.hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(hidden: &str) -> Sandbox {
        let writable = vec!["/home/ann/work".into()];
        Sandbox { writable, hidden: vec![hidden.into()], network: Network::None }
    }

    #[test]
    fn writable_folders_are_mounted_after_hidden_folders() {
        let expected = "--ro-bind / / --dev /dev --proc /proc --unshare-pid --unshare-ipc --unshare-net \
            --tmpfs /home --bind /home/ann/work /home/ann/work --chdir /home/ann/work/src --";
        let words = sandbox("/home").bwrap_arguments(Path::new("/home/ann/work/src"));
        assert_eq!(words.join(" "), expected);
        let shared = Sandbox { network: Network::Shared, ..sandbox("/home") };
        assert!(!shared.bwrap_arguments(Path::new("/")).contains(&"--unshare-net".to_owned()));
    }

    #[test]
    fn program_lookup_uses_the_command_path_and_skips_hidden_folders() {
        let finds = |hidden, program| {
            sandbox(hidden).has_visible_program(
                program,
                Path::new("/"),
                OsStr::new("/no-such-folder:/usr/bin"),
            )
        };
        assert!(finds("/root", "env") && finds("/root", "/usr/bin/env"));
        assert!(finds("/root", "usr/bin/env"), "a path begins at the directory");
        assert!(!finds("/usr", "env"), "it is hidden");
        assert!(!finds("/root", "no-such-program") && !finds("/root", "/etc/passwd"));
    }
}
