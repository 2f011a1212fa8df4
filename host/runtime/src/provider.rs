//! The session's view of a provider plugin.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_instances::{CallSite, DeltaCallback, clean_completion, invalid_answer_error};
use jaato_session::{Cancel, DeltaSink, Provider, SharedFacts};
use jaato_types::large::LargeRequestKind;
use jaato_types::{
    Completion, CompletionRequest, Error, ErrorKind, Frame, ModelId, ModelInfo, Part, PluginName,
    SessionId,
};

use crate::host::RuntimeHost;
use crate::large_requests;
use crate::model_queries;

/// The provider of one session.
pub struct PluginProvider {
    host: Arc<RuntimeHost>,
    plugin: PluginName,
    /// The name under `[providers]` by which it is called, and the plugin's own name.
    names: Option<ProviderNames>,
    model: ModelId,
    session: SessionId,
    facts: std::sync::OnceLock<SharedFacts>,
}

/// The names of a provider that the user configured under a name of their own.
pub struct ProviderNames {
    /// The user's name.
    pub given: Arc<str>,
    /// The plugin's name.
    pub own: String,
}

impl PluginProvider {
    /// Creates the provider for a model of a session.
    pub fn new(
        host: Arc<RuntimeHost>,
        plugin: PluginName,
        names: Option<ProviderNames>,
        model: ModelId,
        session: SessionId,
    ) -> Self {
        Self { host, plugin, names, model, session, facts: std::sync::OnceLock::new() }
    }

    /// Sets the session's facts, which exist only after the session does.
    pub fn set_facts(&self, facts: SharedFacts) {
        // A second call can only bring the same session's facts.
        let _ = self.facts.set(facts);
    }

    async fn request_completion(
        &self,
        request: &CompletionRequest,
        sink: DeltaSink,
        cancel: Cancel,
    ) -> Result<Completion, Error> {
        let living = sink.clone();
        let tell: DeltaCallback = Arc::new(move |delta| {
            sink.emit_delta(delta);
        });
        let site = CallSite {
            facts: self.facts.get().cloned(),
            provider: self.configured_name(),
            alive: Some(Arc::new(move || living.record_activity())),
            ..self.host.environments.call_site(&self.session)
        };
        let (plugin, of) = (&self.plugin, LargeRequestKind::Complete);
        let request = match &self.names {
            Some(names) => with_provider_name(request, names),
            None => Cow::Borrowed(request),
        };
        let asked = large_requests::send_large_request(
            &self.host, plugin, of, site, &request, &tell, &cancel,
        );
        let mut completion =
            Frame::read(&asked.await?).map_err(invalid_answer_error(plugin.as_str()))?;
        let clean = |text: &str| self.host.plugins.without_secrets(plugin.as_str(), text);
        clean_completion(&mut completion, clean);
        Ok(completion)
    }
}

impl PluginProvider {
    fn configured_name(&self) -> Option<Arc<str>> {
        self.names.as_ref().map(|names| Arc::clone(&names.given))
    }
}

/// Replaces the configured name with the provider's own in its opaque parts, because the provider
/// knows no other name.
fn with_provider_name<'a>(
    request: &'a CompletionRequest,
    names: &ProviderNames,
) -> Cow<'a, CompletionRequest> {
    let is_its = |part: &Part| matches!(part, Part::Opaque(it) if it.provider == *names.given);
    if !request.messages.iter().flat_map(|message| &message.parts).any(is_its) {
        return Cow::Borrowed(request);
    }
    let mut request = request.clone();
    for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
        if let Part::Opaque(opaque) = part
            && opaque.provider == *names.given
        {
            opaque.provider.clone_from(&names.own);
        }
    }
    Cow::Owned(request)
}

impl Provider for PluginProvider {
    fn source(&self) -> &str {
        self.host.registry().event_source_name(&self.plugin)
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        sink: DeltaSink,
        cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        Box::pin(self.request_completion(request, sink, cancel))
    }

    fn query_model_info(&self) -> BoxFuture<'static, Option<ModelInfo>> {
        let facts = self.facts.get().cloned();
        let site = CallSite {
            facts,
            provider: self.configured_name(),
            ..CallSite::for_session(self.session.clone())
        };
        model_queries::ask_about_model(
            Arc::clone(&self.host),
            self.plugin.clone(),
            &self.model,
            site,
        )
    }
}

/// The provider of a session in which only a user calls tools.
pub struct NoProvider;

impl Provider for NoProvider {
    fn source(&self) -> &str {
        "host"
    }

    fn complete<'a>(
        &'a self,
        _request: &'a CompletionRequest,
        _sink: DeltaSink,
        _cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        let error = Error::new(ErrorKind::Unavailable, "this session has no model");
        Box::pin(std::future::ready(Err(error)))
    }
}

#[cfg(test)]
mod tests {
    use jaato_types::{Message, OpaqueData};
    use serde_json::json;

    use super::*;

    #[test]
    fn opaque_parts_of_a_renamed_provider_get_its_original_name() {
        let names = ProviderNames { given: "work".into(), own: "anthropic".to_owned() };
        let made = |provider: &str| {
            let (provider, model) = (provider.to_owned(), "m".to_owned());
            Part::Opaque(OpaqueData { provider, model, item: json!({}) })
        };
        let request = |provider: &str| {
            let parts = vec![Part::text("a"), made(provider), made("another")];
            CompletionRequest::new("m", vec![Message::user("x"), Message::model(parts)])
        };
        let others = request("elsewhere");
        assert!(matches!(with_provider_name(&others, &names), Cow::Borrowed(_)));
        assert_eq!(*with_provider_name(&request("work"), &names), request("anthropic"));
    }
}
