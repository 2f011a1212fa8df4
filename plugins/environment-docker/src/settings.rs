//! The settings `[plugins.environment-docker]`.

use std::path::PathBuf;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::{Map, Value};
use jaato_plugin_sdk_environment::settings;

/// The path of the workspace in a container that jaato makes.
pub const CONTAINER_WORKDIR: &str = "/workspace";

/// The path of the temporary folder in a container that jaato makes.
pub const CONTAINER_TMP: &str = "/tmp/jaato";

/// The default time limit for a response of the engine. Making a container on a slow disk takes
/// seconds.
const ENGINE_DEADLINE_MS: u64 = 30_000;

/// The default time limit of a command, in seconds. It suffices for a build or a test suite. It is
/// less than the session's limit of 600 s, which would lose the command's output.
const SHELL_TIMEOUT: f64 = 300.0;

/// The settings of an environment in a container.
#[tool_type]
#[derive(Debug, Clone)]
#[serde(default)]
pub struct DockerSettings {
    /// The image that a container is made from, such as `debian:12`.
    pub image: Option<String>,
    /// ID or name of a running container to use instead of an image. jaato never stops or removes
    /// it.
    pub container_id: Option<String>,
    /// Where the workspace appears in a new container. For a running container, its mounts decide.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub container_workdir: Option<PathBuf>,
    /// The folder on this machine that the container gets as its workspace. A relative path starts
    /// at the workspace, which is the default.
    #[schemars(extend("x-jaato-path" = "home"))]
    pub mount_dir: Option<PathBuf>,
    /// More folders on this machine to mount in a new container, each
    /// `FOLDER:FOLDER_IN_CONTAINER`, with `:ro` at the end for read-only. Files in them are
    /// accessible like those of the workspace.
    #[schemars(extend("x-jaato-path" = "home"))]
    pub mounts: Vec<String>,
    /// The user that commands run as: a name, `UID`, `UID:GID`, or `container` for the image's own
    /// user. The default is the user who runs jaato, who then owns the files.
    pub user: Option<String>,
    /// The network of a new container, such as `none`. The default is the engine's default.
    pub network: Option<String>,
    /// Whether to remove a created container at the end.
    pub cleanup_on_exit: bool,
    /// Whether to pull a missing image from its registry.
    pub pull: ImagePullPolicy,
    /// Address of the engine. The default is `DOCKER_HOST`, then the known sockets.
    pub engine: Option<String>,
    /// Longest wait for an answer from the engine, in milliseconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    #[schemars(extend("x-jaato-workspace" = true))]
    pub engine_deadline_ms: u64,
    /// Time limit in seconds for a command that sets none itself. It does not apply to terminals
    /// and to programs that outlive their call.
    #[schemars(range(min = 0.1, max = 86400.0))]
    #[schemars(extend("x-jaato-workspace" = true))]
    pub shell_timeout: f64,
    /// The folder on this machine in which jaato creates the temporary folder.
    #[schemars(extend("x-jaato-path" = "file"))]
    pub tmp_base_dir: Option<PathBuf>,
}

/// Whether to pull a missing image.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ImagePullPolicy {
    /// The user pulls images.
    #[default]
    Never,
    /// Pull an image if it is missing.
    Missing,
}

impl Default for DockerSettings {
    fn default() -> Self {
        Self {
            image: None,
            container_id: None,
            container_workdir: None,
            mount_dir: None,
            mounts: Vec::new(),
            user: None,
            network: None,
            cleanup_on_exit: true,
            pull: ImagePullPolicy::Never,
            engine: None,
            engine_deadline_ms: ENGINE_DEADLINE_MS,
            shell_timeout: SHELL_TIMEOUT,
            tmp_base_dir: None,
        }
    }
}

/// The requested container, which is exactly one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedContainer<'a> {
    /// A new container from this image.
    Image(&'a str),
    /// The container with this ID or name.
    Container(&'a str),
}

impl DockerSettings {
    /// Merges the configuration with the user's options for this session, which take precedence. An
    /// image or container among the options replaces either in the configuration.
    ///
    /// # Errors
    /// `configuration` for an unknown option.
    pub fn from_config_and_options(config: &Value, options: &Map<String, Value>) -> Result<Self> {
        let mut config = config.as_object().cloned().unwrap_or_default();
        for (chosen, other) in [("image", "container_id"), ("container_id", "image")] {
            if options.contains_key(chosen) {
                config.remove(other);
            }
        }
        settings(&Value::Object(config), options)
    }

    /// Returns the requested container.
    ///
    /// # Errors
    /// `configuration` if neither or both of image and container are set, or a folder is not
    /// absolute.
    pub fn requested_container(&self) -> Result<RequestedContainer<'_>> {
        if let Some(folder) = self.container_workdir.as_ref().filter(|folder| !folder.is_absolute())
        {
            let text = format!("`container_workdir` is not absolute: `{}`", folder.display());
            return Err(Error::new(ErrorKind::Configuration, text));
        }
        let hint = "`--image IMAGE` for a new container, `--container NAME` for one that runs";
        match (self.image.as_deref(), self.container_id.as_deref()) {
            (Some(image), None) if !image.is_empty() => Ok(RequestedContainer::Image(image)),
            (None, Some(container)) if !container.is_empty() => {
                Ok(RequestedContainer::Container(container))
            }
            (Some(image), Some(container)) => {
                let text =
                    format!("both the image `{image}` and the container `{container}` are set");
                Err(Error::new(ErrorKind::Configuration, text).with_hint(hint))
            }
            _ => {
                let text = "the environment `docker` needs an image or a container";
                Err(Error::new(ErrorKind::Configuration, text).with_hint(hint))
            }
        }
    }

    /// Returns the time limit of a command that sets none.
    pub fn shell_timeout_ms(&self) -> u64 {
        // The schema keeps it within range.
        (self.shell_timeout * 1000.0) as u64
    }

    /// Returns the time limit for a response of the engine.
    pub fn engine_deadline(&self) -> Duration {
        Duration::from_millis(self.engine_deadline_ms.max(1))
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json;

    use super::*;

    fn parse_requested_container(text: &str) -> Result<String> {
        let settings: DockerSettings = serde_json::from_str(text).unwrap();
        settings.requested_container().map(|wanted| format!("{wanted:?}"))
    }

    #[test]
    fn exactly_one_of_image_and_container_is_wanted() {
        assert_eq!(parse_requested_container(r#"{"image":"a"}"#).unwrap(), r#"Image("a")"#);
        assert_eq!(
            parse_requested_container(r#"{"container_id":"b"}"#).unwrap(),
            r#"Container("b")"#
        );
        for text in ["{}", r#"{"image":""}"#, r#"{"image":"a","container_id":"b"}"#] {
            assert_eq!(
                parse_requested_container(text).unwrap_err().kind,
                ErrorKind::Configuration,
                "{text}"
            );
        }
    }

    #[test]
    fn user_options_override_the_configuration() {
        let chosen = |config: Value, options: Value| {
            DockerSettings::from_config_and_options(&config, options.as_object().unwrap())
        };
        let names = |settings: DockerSettings| (settings.image, settings.container_id);
        let image = json!({ "image": "a", "network": "none" });
        let found = chosen(image.clone(), json!({ "container_id": "web" })).unwrap();
        assert_eq!(found.network.as_deref(), Some("none"));
        assert_eq!(names(found), (None, Some("web".to_owned())));
        let found = chosen(image.clone(), json!({ "image": "b", "network": "host" })).unwrap();
        assert_eq!(found.network.as_deref(), Some("host"));
        assert_eq!(names(found), (Some("b".to_owned()), None));
        let both = chosen(image.clone(), json!({ "image": "b", "container_id": "web" })).unwrap();
        assert_eq!(both.requested_container().unwrap_err().kind, ErrorKind::Configuration);
        let error = chosen(image, json!({ "moon": 1 })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(error.message.contains("unknown field `moon`"), "{}", error.message);
    }

    #[test]
    fn a_relative_folder_of_the_container_is_refused() {
        let error =
            parse_requested_container(r#"{"image":"a","container_workdir":"src"}"#).unwrap_err();
        assert_eq!(error.message, "`container_workdir` is not absolute: `src`");
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        assert!(serde_json::from_str::<DockerSettings>(r#"{"imag":"a"}"#).is_err());
    }
}
