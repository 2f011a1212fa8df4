//! The connection to the engine.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::StreamExt as _;
use jaato_plugin_sdk::types::Result;

use crate::address::Address;
use crate::errors::{self, Doing};
use crate::fetched::{Fetched, Progress};
use crate::settings::Pull;

/// An engine that answers. A clone is the same connection.
#[derive(Clone)]
pub struct Engine {
    docker: Docker,
    address: Arc<Address>,
    is_rootless: bool,
    architecture: Arc<str>,
    /// Takes how far an image has come.
    on_fetched: Option<Telling>,
}

/// Tells a person how far an image has come: its name, and how much is there.
pub type Telling = Arc<dyn Fn(&str, Progress) + Send + Sync>;

impl Engine {
    /// Connects, agrees on a version, and asks what kind of engine it is. Runs on the thread of
    /// [`crate::Runtime`], as all that speaks to the engine.
    ///
    /// # Errors
    /// Kind `unavailable` when there is no engine or it does not listen, `permission_denied` for
    /// its socket, `timeout` when no answer comes in time.
    pub async fn connect(address: Address, deadline: Duration) -> Result<Self> {
        let told = |error| errors::explain(&error, &address, Doing::Connecting);
        let connected = match &address {
            Address::Unix(path) => {
                Docker::connect_with_unix(&path.to_string_lossy(), 1, API_DEFAULT_VERSION)
            }
            Address::Tcp(host) => {
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

    /// Lets a person see how far an image has come that is fetched.
    #[must_use]
    pub fn telling(self, on_fetched: Telling) -> Self {
        Self { on_fetched: Some(on_fetched), ..self }
    }

    /// The client.
    pub(crate) fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether root in its containers is the user outside.
    pub fn is_rootless(&self) -> bool {
        self.is_rootless
    }

    /// The engine's processor, as `uname -m` names it.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// Says what an error of the client means.
    pub(crate) fn explain(
        &self,
        error: &bollard::errors::Error,
        doing: Doing<'_>,
    ) -> jaato_plugin_sdk::types::Error {
        errors::explain(error, &self.address, doing)
    }

    /// Makes sure that the image is there; fetches it where that is wanted.
    ///
    /// # Errors
    /// Kind `not_found` for an image that is not there, with the command that fetches it.
    pub async fn need_image(&self, image: &str, pull: Pull) -> Result<()> {
        let told = |error| self.explain(&error, Doing::Image(image));
        let Err(missing) = self.docker.inspect_image(image).await.map_err(told) else {
            return Ok(());
        };
        if pull == Pull::Never || missing.kind != jaato_plugin_sdk::types::ErrorKind::NotFound {
            return Err(missing);
        }
        // A name alone would fetch every tag there is.
        let last = image.rsplit('/').next().unwrap_or(image);
        let tag = if last.contains([':', '@']) { "" } else { "latest" };
        let options = CreateImageOptionsBuilder::new().from_image(image).tag(tag).build();
        let tell = |progress| self.on_fetched.iter().for_each(|tell| tell(image, progress));
        tell(Progress { done: 0, total: 0 });
        let mut fetched = Fetched::default();
        let mut steps = self.docker.create_image(Some(options), None, None);
        while let Some(step) = steps.next().await {
            fetched.note(&step.map_err(told)?).into_iter().for_each(tell);
        }
        Ok(())
    }
}
