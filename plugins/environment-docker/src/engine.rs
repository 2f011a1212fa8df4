//! The connection to the engine.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::StreamExt as _;
use jaato_plugin_sdk::types::Result;

use crate::address::EngineAddress;
use crate::errors::{self, EngineRequestKind};
use crate::pull_progress::{ImageDownload, ImageDownloadProgress};
use crate::settings::ImagePullPolicy;

/// A connected engine. Clones share the connection.
#[derive(Clone)]
pub struct DockerEngine {
    docker: Docker,
    address: Arc<EngineAddress>,
    is_rootless: bool,
    architecture: Arc<str>,
    /// Reports the progress of image downloads.
    on_fetched: Option<PullProgressCallback>,
}

/// Reports the progress of an image download to the user: the image's name, and its progress.
pub type PullProgressCallback = Arc<dyn Fn(&str, ImageDownloadProgress) + Send + Sync>;

impl DockerEngine {
    /// Connects, negotiates a version, and asks for the kind of engine. Must run on the thread of
    /// [`crate::Runtime`], like all communication with the engine.
    ///
    /// # Errors
    /// `unavailable` if the engine is missing or does not listen, `permission_denied` for its
    /// socket, or `timeout`.
    pub async fn connect_to_engine(address: EngineAddress, deadline: Duration) -> Result<Self> {
        let told =
            |error| errors::explain_engine_error(&error, &address, EngineRequestKind::Connecting);
        let connected = match &address {
            EngineAddress::Unix(path) => {
                Docker::connect_with_unix(&path.to_string_lossy(), 1, API_DEFAULT_VERSION)
            }
            EngineAddress::Tcp(host) => {
                Docker::connect_with_http(&format!("tcp://{host}"), 1, API_DEFAULT_VERSION)
            }
        };
        let docker = connected.map_err(told)?.with_timeout(deadline);
        let docker = docker.negotiate_version().await.map_err(told)?;
        let info = docker.info().await.map_err(told)?;
        let options = info.security_options.unwrap_or_default();
        Ok(Self {
            is_rootless: options.iter().any(|option| option.contains("name=rootless")),
            architecture: info.architecture.unwrap_or_default().into(),
            docker,
            address: Arc::new(address),
            on_fetched: None,
        })
    }

    /// Sets a callback that reports the progress of image downloads.
    #[must_use]
    pub fn with_progress_callback(self, on_fetched: PullProgressCallback) -> Self {
        Self { on_fetched: Some(on_fetched), ..self }
    }

    /// Returns the client.
    pub(crate) fn docker_client(&self) -> &Docker {
        &self.docker
    }

    /// Returns the engine's address.
    pub fn address(&self) -> &EngineAddress {
        &self.address
    }

    /// Returns true if root in its containers is the user outside.
    pub fn is_rootless(&self) -> bool {
        self.is_rootless
    }

    /// Returns the engine's processor architecture, as `uname -m` names it.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// Converts an error of the client to an error for the user.
    pub(crate) fn explain_error(
        &self,
        error: &bollard::errors::Error,
        doing: EngineRequestKind<'_>,
    ) -> jaato_plugin_sdk::types::Error {
        errors::explain_engine_error(error, &self.address, doing)
    }

    /// Ensures that the image exists, and downloads it if `pull` allows that.
    ///
    /// # Errors
    /// `not_found` if the image does not exist, with the command that downloads it.
    pub async fn ensure_image(&self, image: &str, pull: ImagePullPolicy) -> Result<()> {
        let told = |error| self.explain_error(&error, EngineRequestKind::Image(image));
        let Err(missing) = self.docker.inspect_image(image).await.map_err(told) else {
            return Ok(());
        };
        if pull == ImagePullPolicy::Never
            || missing.kind != jaato_plugin_sdk::types::ErrorKind::NotFound
        {
            return Err(missing);
        }
        // A name without a tag would download all tags.
        let last = image.rsplit('/').next().unwrap_or(image);
        let tag = if last.contains([':', '@']) { "" } else { "latest" };
        let options = CreateImageOptionsBuilder::new().from_image(image).tag(tag).build();
        let tell = |progress| self.on_fetched.iter().for_each(|tell| tell(image, progress));
        tell(ImageDownloadProgress { done: 0, total: 0 });
        let mut fetched = ImageDownload::default();
        let mut steps = self.docker.create_image(Some(options), None, None);
        while let Some(step) = steps.next().await {
            fetched.add_layer_report(&step.map_err(told)?).into_iter().for_each(tell);
        }
        Ok(())
    }
}
