//! The `[plugins.environment-local]` settings.

use std::path::{Path, PathBuf};

use jaato_plugin_sdk::prelude::*;

/// The default time limit of a command, in seconds. It leaves room for a build or a test suite, and
/// is shorter than the session's own limit of 600 s, at which the command's output would be lost.
const SHELL_TIMEOUT: f64 = 300.0;

/// `[plugins.environment-local]`.
#[tool_type]
#[derive(Debug)]
#[serde(default)]
pub struct Config {
    /// Folders in which files may be touched; a relative one starts at the working directory. The
    /// workspace (the nearest folder upwards with `.jaato` or `.git`) if there is none.
    #[schemars(extend("x-jaato-path" = "home"))]
    pub allowed_paths: Vec<PathBuf>,
    /// Where relative paths and commands begin, and always allowed; the working directory where
    /// nothing is said.
    #[schemars(extend("x-jaato-path" = "home"))]
    pub default_path: Option<PathBuf>,
    /// Seconds that a command may take which says nothing itself. Programs that outlive their call,
    /// and terminals, have no such bound.
    #[schemars(range(min = 0.1, max = 86400.0))]
    #[schemars(extend("x-jaato-workspace" = true))]
    pub shell_timeout: f64,
    /// Whether there is a temporary folder, which goes with the session.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub enable_tmp_dir: bool,
    /// Where the temporary folder is made; the system's folder for such things where nothing is
    /// said.
    #[schemars(extend("x-jaato-path" = "file"))]
    pub tmp_base_dir: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            allowed_paths: Vec::new(),
            default_path: None,
            shell_timeout: SHELL_TIMEOUT,
            enable_tmp_dir: true,
            tmp_base_dir: None,
        }
    }
}

impl Config {
    /// Returns the folder in which relative paths and commands start.
    pub fn default_path(&self, working: &Path) -> PathBuf {
        self.default_path.as_ref().map_or_else(|| working.to_owned(), |path| working.join(path))
    }

    /// Returns the folders whose files tools may access, which include the default folder. `root`
    /// is the root of the workspace that contains the working directory.
    pub fn allowed_paths(&self, working: &Path, root: &Path) -> Vec<PathBuf> {
        let named = self.allowed_paths.iter().map(|path| working.join(path));
        let mut allowed = vec![self.default_path(working)];
        if self.allowed_paths.is_empty() {
            allowed.push(root.to_owned());
        }
        allowed.extend(named);
        allowed.sort();
        allowed.dedup();
        allowed
    }

    /// Returns the time limit of a command that sets none itself.
    pub fn shell_timeout_ms(&self) -> u64 {
        // The schema keeps the value within range.
        (self.shell_timeout * 1000.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_allowed_where_nothing_else_is_said() {
        let paths = |config: Config| config.allowed_paths(Path::new("/ws"), Path::new("/ws"));
        assert_eq!(paths(Config::default()), [Path::new("/ws")]);
        let below = Config::default().allowed_paths(Path::new("/ws/docs"), Path::new("/ws"));
        assert_eq!(below, ["/ws", "/ws/docs"].map(Path::new));
        let named = Config { allowed_paths: vec!["/a".into(), "b".into()], ..Config::default() };
        assert_eq!(paths(named), ["/a", "/ws", "/ws/b"].map(Path::new));
        let inner = Config {
            allowed_paths: vec!["/a".into()],
            default_path: Some("sub".into()),
            ..Config::default()
        };
        assert_eq!(inner.default_path(Path::new("/ws")), Path::new("/ws/sub"));
        assert_eq!(paths(inner), ["/a", "/ws/sub"].map(Path::new));
    }
}
