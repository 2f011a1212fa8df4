//! Which model answers, and what is said of it, where a person gave it by a name of their own.

use jaato_types::ModelId;

use crate::keys::Config;
use crate::model_settings::ModelSettings;

/// A model, and the person's name for it where it was given by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModel {
    /// `provider/model`; without a provider where nobody says which.
    pub model: ModelId,
    /// The name under `[models]`.
    pub alias: Option<String>,
}

impl Config {
    /// Puts the model in the place of a person's name for it.
    pub(crate) fn with_model_named(mut self) -> Self {
        let NamedModel { model, alias } = self.model_by_name(self.model.as_str());
        (self.model, self.model_alias) = (model, alias);
        self
    }

    /// Returns the model that a name stands for: a person's own for one, one with its provider, or
    /// one that the key `provider` completes.
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

    /// What is said of a model: by the name by which it was given, then by its own.
    pub fn says_of(&self, named: &NamedModel) -> ModelSettings {
        let of = |name: &str| self.model_settings.get(name).cloned().unwrap_or_default();
        let by_alias = named.alias.as_deref().map(of).unwrap_or_default();
        by_alias.or(&of(named.model.as_str()))
    }
}
