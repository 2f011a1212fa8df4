//! Describes providers to the user: their servers and the sources of their keys.

use std::sync::Arc;
use std::time::Duration;

use jaato_config::NamedModel;
use jaato_model_facts::ModelFacts;
use jaato_registry::PluginStatus;
use jaato_services::KeyInfo;
use jaato_types::{Error, ErrorKind, ModelId, ModelInfo, PluginName};

use crate::host::RuntimeHost;
use crate::model_queries;
use crate::runtime::Runtime;

/// A provider as the user configured it.
#[derive(Debug, Clone)]
pub struct ProviderInfo {
    /// The name before the slash of its models, as lists show it.
    pub name: String,
    /// The provider's plugin.
    pub plugin: PluginName,
    /// The server's address, or `None` if the provider needs no server.
    pub server: Option<String>,
    /// The model for a request that names none. Empty if there is none, for a server that a plugin
    /// knows, and for a provider that the user configured under a name of their own.
    pub default_model: String,
    /// Whether this is a server that the plugin knows by name and that has no key.
    pub is_unused: bool,
    /// The provider's keys and where each was found, without the keys themselves.
    pub keys: Vec<KeyInfo>,
    /// Why it cannot be used.
    pub problem: Option<Error>,
}

impl Runtime {
    /// Lists the configured providers and the plugins' own. Contacts no server.
    pub fn providers(&self) -> Vec<ProviderInfo> {
        let registry = self.registry();
        let names = self.host().provider_names(&registry);
        names.iter().filter_map(|name| self.provider(name).ok()).collect()
    }

    /// Returns one provider.
    ///
    /// # Errors
    /// If no provider has this name.
    pub fn provider(&self, name: &str) -> Result<ProviderInfo, Error> {
        self.host().provider(name)
    }

    /// Returns what is known about a provider's model: the user's configuration, the provider's
    /// answer, and built-in facts about its vendor's models.
    pub fn describe_model(&self, provider: &str, info: &ModelInfo) -> ModelFacts {
        let known =
            self.host().model_facts(provider, &info.name, &self.registry()).unwrap_or_default();
        let id = format!("{provider}/{}", info.name);
        let named = NamedModel { model: ModelId::new(&id), alias: None };
        let says = self.setup().config.settings_for_model(&named);
        ModelFacts {
            context_limit: says.context_limit.or(info.context_limit).or(known.context_limit),
            price: says.price.or_else(|| info.price.clone()).or(known.price),
            id,
            ..known
        }
    }

    /// Asks a provider for its models.
    ///
    /// # Errors
    /// If no provider has this name, or the provider answers with an error or takes longer than
    /// `wait`.
    pub async fn models_of_provider(
        &self,
        name: &str,
        wait: Duration,
    ) -> Result<Vec<ModelInfo>, Error> {
        let registry = self.registry();
        let (entry, configured): (_, Option<Arc<str>>) =
            self.host().provider_plugin(&registry, name, None)?;
        self.plugin_models(entry, configured, wait).await
    }

    /// Returns true if a provider lists a model by its name, or by a name that only adds a date or
    /// a version. A provider that lists no models may have any.
    ///
    /// # Errors
    /// As [`Runtime::models_of_provider`].
    pub async fn is_model_listed(&self, model: &ModelId, wait: Duration) -> Result<bool, Error> {
        let (provider, name) = model.split().unwrap_or_default();
        let infos = self.models_of_provider(provider, wait).await?;
        let adds = |info: &ModelInfo| {
            let rest = info.name.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['-', '@', ':']))
        };
        let is_listed =
            model_queries::find_model_info(&infos, model).is_some() || infos.iter().any(adds);
        Ok(infos.is_empty() || is_listed)
    }
}

impl RuntimeHost {
    /// Returns one provider.
    ///
    /// # Errors
    /// If no provider has this name.
    pub(crate) fn provider(&self, name: &str) -> Result<ProviderInfo, Error> {
        let registry = self.registry();
        let (entry, configured) = self.provider_plugin(&registry, name, None)?;
        let plugin = entry.candidate.manifest.name.clone();
        let spec = entry.description().and_then(|description| description.provider.as_ref());
        let own = spec.map(|spec| spec.name.clone()).filter(|_| configured.is_none());
        let mut info = ProviderInfo {
            name: own.unwrap_or_else(|| name.to_owned()),
            plugin: plugin.clone(),
            server: None,
            // Another server has other models.
            default_model: spec
                .filter(|_| configured.is_none())
                .map(|spec| spec.default_model.clone())
                .unwrap_or_default(),
            is_unused: false,
            keys: Vec::new(),
            problem: None,
        };
        if entry.status != PluginStatus::Active {
            let text = format!("the plugin `{plugin}` cannot be used");
            let hint = format!("jaato plugin show {plugin}");
            info.problem = Some(Error::new(ErrorKind::PluginDisabled, text).with_hint(hint));
            return Ok(info);
        }
        let edition = self.plugins.plugins.current().edition(plugin.as_str()).number;
        match self.services.credential_access(entry, configured.as_ref(), edition) {
            Ok(access) => (info.server, info.keys) = (access.server, access.keys),
            Err(error) => info.problem = Some(error),
        }
        // A name that is neither configured nor a provider's own is a server that the plugin knows.
        let is_set_up = self.setup.config.provider_settings.contains_key(name);
        let has_key = info.keys.iter().any(|key| key.found.is_some());
        info.is_unused = configured.is_some() && !is_set_up && !has_key;
        Ok(info)
    }
}
