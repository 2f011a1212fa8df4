//! Finds a model's provider, its plugin, and what is known about both without asking a server.

use std::collections::BTreeSet;
use std::sync::Arc;

use jaato_catalog::missing_shipped_hint;
use jaato_model_facts::ModelFacts;
use jaato_registry::{PluginEntry, PluginStatus, Registry};
use jaato_services::named_plugin;
use jaato_session::ModelCapabilities;
use jaato_types::{Error, ErrorKind, ModelId, PluginName, Price, ToolName};

use crate::host::RuntimeHost;
use crate::provider::ProviderNames;

/// A model's provider, and what is known about both.
pub(crate) struct KnownProvider {
    /// The provider's name.
    pub(crate) name: String,
    pub(crate) plugin: PluginName,
    /// The provider's name in `[providers]` and the plugin's own, if the provider is configured
    /// there.
    pub(crate) names: Option<ProviderNames>,
    /// The model's context window in tokens, if known.
    pub(crate) context_limit: Option<u64>,
    /// The model's prices, if known.
    pub(crate) price: Option<Price>,
    /// The most tokens of an answer, if known.
    pub(crate) answer_tokens_max: Option<u64>,
    pub(crate) takes: ModelCapabilities,
    /// Maximum tokens for tools in each request, if the provider declares a limit.
    pub(crate) core_tokens_max: Option<u64>,
    /// The tools offered from the start, if the provider names any.
    pub(crate) core_tools: Vec<ToolName>,
    pub(crate) has_one_conversation: bool,
}

impl RuntimeHost {
    /// Finds a model's provider and what is known about both.
    pub(crate) fn resolve_provider(&self, model: &ModelId) -> Result<KnownProvider, Error> {
        let Some((provider, name)) = model.split() else {
            let text = format!("the model `{model}` is not `provider/model`");
            return Err(Error::new(ErrorKind::Configuration, text));
        };
        let registry = self.registry();
        let (entry, configured) = self.provider_plugin(&registry, provider, Some(model))?;
        let plugin = entry.candidate.manifest.name.clone();
        if entry.status != PluginStatus::Active {
            let text = format!(
                "plugin `{plugin}`, which offers the provider `{provider}`, cannot be used"
            );
            return Err(Error::new(ErrorKind::PluginDisabled, text)
                .with_hint(format!("jaato plugin show {plugin}")));
        }
        let spec = entry.description().and_then(|description| description.provider.as_ref());
        let info = spec.and_then(|spec| spec.models.iter().find(|info| info.name == name));
        let spec_says = spec.cloned().unwrap_or_default();
        let model_accepts = info.and_then(|info| info.accepts.clone());
        let facts = self.model_facts(provider, name, &registry);
        let own_limit = info.and_then(|info| info.context_limit);
        let own_price = info.and_then(|info| info.price.clone());
        Ok(KnownProvider {
            name: provider.to_owned(),
            plugin,
            names: configured.map(|given| ProviderNames { given, own: spec_says.name.clone() }),
            context_limit: own_limit.or(facts.as_ref().and_then(|facts| facts.context_limit)),
            answer_tokens_max: facts.as_ref().and_then(|facts| facts.output_limit),
            price: own_price.or(facts.and_then(|facts| facts.price)),
            core_tokens_max: info.and_then(|info| info.core_tokens_max),
            core_tools: info.map(|info| info.core_tools.clone()).unwrap_or_default(),
            has_one_conversation: spec_says.one_conversation,
            takes: ModelCapabilities {
                options: spec_says.options,
                media_types: model_accepts.unwrap_or(spec_says.accepts),
                media_limits: spec_says.media_limits,
            },
        })
    }

    /// Returns what is known about a model without asking, if its vendor's own server provides it.
    pub(crate) fn model_facts(
        &self,
        provider: &str,
        model: &str,
        registry: &Registry,
    ) -> Option<ModelFacts> {
        let (vendor, is_asked) = self.provider_vendor(provider, registry)?;
        jaato_model_facts::find_facts(&vendor, model).filter(|_| is_asked)
    }

    /// Returns the vendor of a provider's models, and whether the provider uses the vendor's own
    /// server.
    pub(crate) fn provider_vendor(
        &self,
        provider: &str,
        registry: &Registry,
    ) -> Option<(String, bool)> {
        let (entry, configured) = self.provider_plugin(registry, provider, None).ok()?;
        let plugin = entry.candidate.manifest.name.as_str();
        let edition = self.plugins.plugins.current().edition(plugin).number;
        self.services.vendor_name(entry, configured.as_ref(), edition)
    }

    /// Lists the names that may precede the slash in a model's name: names in `[providers]`, names
    /// of plugins' providers, and servers that these know.
    pub(crate) fn provider_names(&self, registry: &Registry) -> BTreeSet<String> {
        let configured = self.setup.config.provider_settings.keys().map(String::as_str);
        let all = configured.chain(registry.providers()).chain(registry.presets());
        all.map(str::to_owned).collect()
    }

    /// Finds a provider's plugin, and the provider's name if it is one of `[providers]`. The error
    /// names the model for which the caller needs the provider.
    pub(crate) fn provider_plugin<'a>(
        &self,
        registry: &'a Registry,
        provider: &str,
        model: Option<&ModelId>,
    ) -> Result<(&'a PluginEntry, Option<Arc<str>>), Error> {
        let config = &self.setup.config;
        if config.provider_settings.contains_key(provider) {
            return Ok((named_plugin(registry, config, provider)?, Some(provider.into())));
        }
        let dashed = provider.replace('_', "-");
        let found = registry.provider(provider).or_else(|| registry.provider(&dashed));
        let preset = || registry.preset(provider).map(|(entry, _)| (entry, Some(provider.into())));
        found.map(|entry| (entry, None)).or_else(preset).ok_or_else(|| {
            let of = model.map(|model| format!(" of the model `{model}`")).unwrap_or_default();
            let text = format!("no plugin offers the provider `{provider}`{of}");
            let mut known = self.provider_names(registry);
            known.extend(self.program.providers.keys().cloned());
            let known = Vec::from_iter(known).join(", ");
            let missing = missing_shipped_hint(&self.setup, registry);
            let hint = match (missing, known.is_empty()) {
                (Some(missing), true) => missing,
                (Some(missing), false) => format!("{missing}; known providers are: {known}"),
                (None, true) => {
                    "no provider plugin was found: `jaato doctor` shows the plugin folders"
                        .to_owned()
                }
                (None, false) => format!("known providers are: {known}"),
            };
            Error::new(ErrorKind::Configuration, text).with_hint(hint)
        })
    }
}
