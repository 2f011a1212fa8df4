//! Environments under the names of the original, and the plugin that describes them.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::facade::{JaatoSession, SessionPlugin};
use crate::types::{Error, ErrorKind, Result};
use crate::{EnvironmentFiles, EnvironmentShell, Jaato, OpenEnvironment, ResourceRegistry};

/// Files and commands of this machine. Needs the plugin `environment-local`.
#[derive(Debug, Clone, Default)]
pub struct LocalEnvironment(Map<String, Value>);

impl LocalEnvironment {
    /// Begins with the plugin's own settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the folders whose files are accessible.
    #[must_use]
    pub fn allowed_paths<'a>(self, paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let paths = paths.into_iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>();
        self.with_setting("allowed_paths", json!(paths))
    }

    /// Sets where relative paths and commands start.
    #[must_use]
    pub fn default_path(self, path: &Path) -> Self {
        self.with_setting("default_path", json!(path.to_string_lossy()))
    }

    /// Sets the time limit of a command.
    #[must_use]
    pub fn shell_timeout(self, limit: Duration) -> Self {
        self.with_setting("shell_timeout", json!(limit.as_secs_f64()))
    }

    /// Sets where the temporary folder is made.
    #[must_use]
    pub fn tmp_base_dir(self, path: &Path) -> Self {
        self.with_setting("tmp_base_dir", json!(path.to_string_lossy()))
    }

    /// Sets whether a temporary folder is made.
    #[must_use]
    pub fn enable_tmp_dir(self, is_enabled: bool) -> Self {
        self.with_setting("enable_tmp_dir", json!(is_enabled))
    }

    /// Sets the environment up.
    ///
    /// # Errors
    /// If the plugin is missing, or a folder does not exist.
    pub async fn enter(self, jaato: &Jaato) -> Result<OpenEnvironment> {
        jaato.environment("local", self.0).await
    }

    fn with_setting(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }
}

/// Files and commands of a container. Needs the plugin `environment-docker` and a container engine.
#[derive(Debug, Clone, Default)]
pub struct DockerEnvironment(Map<String, Value>);

impl DockerEnvironment {
    /// Begins with the plugin's own settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the folder of this machine that the container sees.
    #[must_use]
    pub fn mount_dir(self, path: &Path) -> Self {
        self.with_setting("mount_dir", json!(path.to_string_lossy()))
    }

    /// Sets its path inside the container.
    #[must_use]
    pub fn container_workdir(self, path: &str) -> Self {
        self.with_setting("container_workdir", json!(path))
    }

    /// Makes a container from an image.
    #[must_use]
    pub fn image(self, image: &str) -> Self {
        self.with_setting("image", json!(image))
    }

    /// Uses a container that runs already.
    #[must_use]
    pub fn container_id(self, id: &str) -> Self {
        self.with_setting("container_id", json!(id))
    }

    /// Sets whether a container that was made is removed at the end.
    #[must_use]
    pub fn cleanup_on_exit(self, is_removed: bool) -> Self {
        self.with_setting("cleanup_on_exit", json!(is_removed))
    }

    /// Sets the environment up.
    ///
    /// # Errors
    /// If the plugin is missing, or the container engine refuses.
    pub async fn enter(self, jaato: &Jaato) -> Result<OpenEnvironment> {
        jaato.environment("docker", self.0).await
    }

    fn with_setting(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }
}

/// The parts of an environment that a program uses without a session.
pub struct AgentContext<'a> {
    /// Its files.
    pub file_operator: FileOperator<'a>,
    /// Its shell.
    pub shell: Shell<'a>,
    /// Its resources.
    pub resources: &'a ResourceRegistry,
}

impl<'a> AgentContext<'a> {
    /// Uses an environment. Several contexts may use the same one.
    pub fn new(environment: &'a OpenEnvironment) -> Self {
        Self {
            file_operator: FileOperator(environment.files()),
            shell: Shell(environment.shell()),
            resources: environment.resources(),
        }
    }
}

/// The files of an environment.
pub struct FileOperator<'a>(EnvironmentFiles<'a>);

impl FileOperator<'_> {
    /// Reads a text file.
    ///
    /// # Errors
    /// If it does not exist, is not accessible, is not UTF-8, or is longer than 1 MiB.
    pub async fn read_file(&self, path: &str) -> Result<String> {
        let read = self.0.read_text(path).await?;
        if read.has_more {
            let text = format!("`{path}` is too large to be read at once");
            return Err(Error::new(ErrorKind::LimitReached, text)
                .with_hint("read it in ranges, with `OpenEnvironment::files`"));
        }
        Ok(read.text)
    }

    /// Replaces a file, or creates it.
    ///
    /// # Errors
    /// If it is not accessible.
    pub async fn write_file(&self, path: &str, content: &str) -> Result<()> {
        self.0.write(path, content).await.map(drop)
    }
}

/// The shell of an environment.
pub struct Shell<'a>(EnvironmentShell<'a>);

impl Shell<'_> {
    /// Runs a command line. Returns its exit code, or -1 if a signal ended it, its output and its
    /// error output.
    ///
    /// # Errors
    /// If it cannot start.
    pub async fn execute(&self, command: &str) -> Result<(i32, String, String)> {
        let ran = self.0.execute(command).await?;
        Ok((ran.code.unwrap_or(-1), ran.stdout, ran.stderr))
    }
}

/// Describes where a session runs, by the tool `get_environment` of `tool-environment`.
#[derive(Default)]
pub struct EnvironmentPlugin(Option<JaatoSession>);

impl EnvironmentPlugin {
    /// Creates the plugin without a session.
    pub fn new() -> Self {
        Self(None)
    }

    /// Returns one aspect (`os`, `shell`, `arch`, `cwd`, `terminal`, `context`), or `all`.
    ///
    /// # Errors
    /// If it has no session, or the session has no such tool.
    pub fn get_environment(&self, aspect: &str) -> Result<Map<String, Value>> {
        let text = "the plugin has no session: call `set_session_plugin` first";
        let missing = || Error::new(ErrorKind::Unavailable, text);
        let session = self.0.as_ref().ok_or_else(missing)?;
        session.call_tool("get_environment", json!({ "aspect": aspect }))
    }
}

impl SessionPlugin for EnvironmentPlugin {
    fn set_session(&mut self, session: &JaatoSession) {
        self.0 = Some(session.clone());
    }
}
