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
pub struct LocalEnvironmentConfig {
    /// Folders whose files are accessible. A relative path starts at the working directory. The
    /// default is the workspace (the nearest folder upwards with `.jaato` or `.git`).
    #[schemars(extend("x-jaato-path" = "home"))]
    pub allowed_paths: Vec<PathBuf>,
    /// Where relative paths and commands start; always accessible. The default is the working
    /// directory.
    #[schemars(extend("x-jaato-path" = "home"))]
    pub default_path: Option<PathBuf>,
    /// Time limit in seconds for a command that sets none itself. It does not apply to terminals
    /// and to programs that outlive their call.
    #[schemars(range(min = 0.1, max = 86400.0))]
    #[schemars(extend("x-jaato-workspace" = true))]
    pub shell_timeout: f64,
    /// Whether to create a temporary folder, which is removed with the session.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub enable_tmp_dir: bool,
    /// Where to create the temporary folder. The default is the system's temporary folder.
    #[schemars(extend("x-jaato-path" = "file"))]
    pub tmp_base_dir: Option<PathBuf>,
}

impl Default for LocalEnvironmentConfig {
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

impl LocalEnvironmentConfig {
    /// Returns the folder in which relative paths and commands start.
    pub fn default_folder(&self, working: &Path) -> PathBuf {
        self.default_path.as_ref().map_or_else(|| working.to_owned(), |path| working.join(path))
    }

    /// Returns the folders whose files tools may access, which include the default folder. `root`
    /// is the root of the workspace that contains the working directory.
    pub fn allowed_folders(&self, working: &Path, root: &Path) -> Vec<PathBuf> {
        let named = self.allowed_paths.iter().map(|path| working.join(path));
        let mut allowed = vec![self.default_folder(working)];
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
    fn workspace_is_the_default_allowed_path() {
        let paths = |config: LocalEnvironmentConfig| {
            config.allowed_folders(Path::new("/ws"), Path::new("/ws"))
        };
        assert_eq!(paths(LocalEnvironmentConfig::default()), [Path::new("/ws")]);
        let below = LocalEnvironmentConfig::default()
            .allowed_folders(Path::new("/ws/docs"), Path::new("/ws"));
        assert_eq!(below, ["/ws", "/ws/docs"].map(Path::new));
        let named = LocalEnvironmentConfig {
            allowed_paths: vec!["/a".into(), "b".into()],
            ..LocalEnvironmentConfig::default()
        };
        assert_eq!(paths(named), ["/a", "/ws", "/ws/b"].map(Path::new));
        let inner = LocalEnvironmentConfig {
            allowed_paths: vec!["/a".into()],
            default_path: Some("sub".into()),
            ..LocalEnvironmentConfig::default()
        };
        assert_eq!(inner.default_folder(Path::new("/ws")), Path::new("/ws/sub"));
        assert_eq!(paths(inner), ["/a", "/ws/sub"].map(Path::new));
    }
}
