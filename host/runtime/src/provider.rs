//! A provider plugin as the session sees it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_instances::{CallSite, Tell, misbehaved};
use jaato_session::{Cancel, DeltaSink, Provider, SharedFacts};
use jaato_types::large::LargeOf;
use jaato_types::{Completion, Error, ErrorKind, Frame, ModelInfo, PluginName, Request, SessionId};

use crate::about_models;
use crate::crossing;
use crate::host::Host;

/// The provider of one session.
pub struct PluginProvider {
    host: Arc<Host>,
    plugin: PluginName,
    /// The name under `[providers]` by which it is asked.
    name: Option<Arc<str>>,
    session: SessionId,
    facts: std::sync::OnceLock<SharedFacts>,
}

impl PluginProvider {
    /// Makes it for a session.
    pub fn new(
        host: Arc<Host>,
        plugin: PluginName,
        name: Option<Arc<str>>,
        session: SessionId,
    ) -> Self {
        Self { host, plugin, name, session, facts: std::sync::OnceLock::new() }
    }

    /// Gives it the session's facts, which exist only once the session does.
    pub fn set_facts(&self, facts: SharedFacts) {
        // A second set would be of the same session.
        let _ = self.facts.set(facts);
    }

    async fn run(
        &self,
        request: &Request,
        sink: DeltaSink,
        cancel: Cancel,
    ) -> Result<Completion, Error> {
        let living = sink.clone();
        let tell: Tell = Arc::new(move |delta| {
            sink.emit(delta);
        });
        let site = CallSite {
            facts: self.facts.get().cloned(),
            provider: self.name.clone(),
            alive: Some(Arc::new(move || living.alive())),
            ..self.host.environments.site(&self.session)
        };
        let (plugin, of) = (&self.plugin, LargeOf::Complete);
        let asked = crossing::ask(&self.host, plugin, of, site, request, &tell, &cancel);
        Frame::read(&asked.await?).map_err(misbehaved)
    }
}

impl Provider for PluginProvider {
    fn source(&self) -> &str {
        self.host.registry().source(&self.plugin)
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request,
        sink: DeltaSink,
        cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        Box::pin(self.run(request, sink, cancel))
    }

    fn about_model(&self) -> BoxFuture<'static, Option<ModelInfo>> {
        let facts = self.facts.get().cloned();
        let site =
            CallSite { facts, provider: self.name.clone(), ..CallSite::of(self.session.clone()) };
        about_models::ask(Arc::clone(&self.host), self.plugin.clone(), site)
    }
}

/// The provider of a session in which only a person calls tools.
pub struct NoProvider;

impl Provider for NoProvider {
    fn source(&self) -> &str {
        "host"
    }

    fn complete<'a>(
        &'a self,
        _request: &'a Request,
        _sink: DeltaSink,
        _cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        let error = Error::new(ErrorKind::Unavailable, "this session has no model");
        Box::pin(std::future::ready(Err(error)))
    }
}
