//! The configuration, `[plugins.environment-bubblewrap]`.

use std::path::{Path, PathBuf};

use jaato_plugin_sdk::prelude::*;

use crate::sandbox::{Network, Sandbox};

/// `[plugins.environment-bubblewrap]` of the user's configuration.
#[tool_type]
#[serde(default)]
pub struct Config {
    /// Folders that commands find empty, such as that of your keys; a relative one starts at the
    /// workspace.
    hidden_paths: Vec<PathBuf>,
    /// Whether commands reach the network.
    network: bool,
    /// Seconds that a command may take which says nothing itself.
    #[schemars(range(min = 0.1, max = 86400.0))]
    shell_timeout: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { hidden_paths: Vec::new(), network: true, shell_timeout: 300.0 }
    }
}

impl Config {
    /// Creates the sandbox of a session.
    ///
    /// # Errors
    /// Kind `configuration` for a folder that cannot be hidden, because commands may write to it.
    pub fn sandbox(&self, workspace: &Path, writable: Vec<PathBuf>) -> Result<Sandbox> {
        let mut hidden = Vec::new();
        for path in &self.hidden_paths {
            // A folder that does not exist need not be hidden.
            let Ok(path) = workspace.join(path).canonicalize() else { continue };
            if !path.is_dir() || writable.iter().any(|folder| path.starts_with(folder)) {
                let text = format!("`hidden_paths`: cannot hide `{}`", path.display());
                return Err(Error::new(ErrorKind::Configuration, text)
                    .with_hint("name folders outside of the workspace"));
            }
            hidden.push(path);
        }
        let network = if self.network { Network::Shared } else { Network::None };
        Ok(Sandbox { writable, hidden, network })
    }

    /// Returns the default timeout of a command. The sdk enforces it.
    pub fn shell_timeout_ms(&self) -> u64 {
        // The schema keeps the value in range.
        (self.shell_timeout * 1000.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_path_inside_a_writable_or_shared_folder_is_refused() {
        let sandbox = |path: &str| {
            let config = Config { hidden_paths: vec![path.into()], ..Config::default() };
            config.sandbox(Path::new("/usr"), vec!["/usr".into()])
        };
        assert_eq!(sandbox("/etc").unwrap().hidden, [Path::new("/etc")]);
        assert_eq!(sandbox("no-such-folder").unwrap().hidden, Vec::<PathBuf>::new());
        for inside in ["bin", "/usr/bin", "/etc/passwd"] {
            assert_eq!(sandbox(inside).unwrap_err().kind, ErrorKind::Configuration, "{inside}");
        }
    }
}
