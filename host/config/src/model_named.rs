//! Resolves a user's alias to a model and its settings.

use jaato_types::ModelId;

use crate::keys::Config;
use crate::model_settings::ModelSettings;

/// A model, and the user's alias for it if it was given by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModel {
    /// `provider/model`, or only the model if its provider is unknown.
    pub model: ModelId,
    /// The name under `[models]`.
    pub alias: Option<String>,
}

impl Config {
    /// Replaces a user's alias with its model.
    pub(crate) fn resolve_model_alias(mut self) -> Self {
        let NamedModel { model, alias } = self.model_by_name(self.model.as_str());
        (self.model, self.model_alias) = (model, alias);
        self
    }

    /// Returns the model for a name: a user's alias, a name with its provider, or a name that the
    /// key `provider` completes.
    pub fn model_by_name(&self, name: &str) -> NamedModel {
        let is_whole = ModelId::new(name).split().is_some();
        let settings = self.model_settings.get(name).filter(|_| !is_whole);
        if let Some(model) = settings.and_then(|settings| settings.model.clone()) {
            return NamedModel { model, alias: Some(name.to_owned()) };
        }
        let model = if is_whole || self.provider.is_empty() {
            ModelId::new(name)
        } else {
            ModelId::new(format!("{}/{name}", self.provider))
        };
        NamedModel { model, alias: None }
    }

    /// Returns a model's settings: those of its alias first, then those of its own name.
    pub fn settings_for_model(&self, named: &NamedModel) -> ModelSettings {
        let of = |name: &str| self.model_settings.get(name).cloned().unwrap_or_default();
        let by_alias = named.alias.as_deref().map(of).unwrap_or_default();
        by_alias.fill_from(&of(named.model.as_str()))
    }
}
