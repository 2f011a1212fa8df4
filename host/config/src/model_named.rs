//! Which model answers, and what is said of it, where a person gave it by a name of their own.

use crate::error::ConfigError;
use crate::keys::Config;
use crate::model_id::is_alias;
use crate::model_settings::ModelSettings;

impl Config {
    /// Puts the model in the place of a person's name for it.
    pub(crate) fn with_model_named(mut self) -> Result<Self, ConfigError> {
        if self.model.split().is_some() {
            return Ok(self);
        }
        let name = self.model.as_str().to_owned();
        let known = self.model_settings.get(&name).and_then(|settings| settings.model.clone());
        let Some(model) = known else {
            let names = self.model_settings.keys().filter(|name| is_alias(name));
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            let or = match names.as_slice() {
                [] => String::new(),
                names => format!(", or one of your names: {}", names.join(", ")),
            };
            let origin = self.origins.get("model").and_then(|places| places.first()).cloned();
            return Err(ConfigError::NoModel { has: name, or, origin: origin.map(Box::new) });
        };
        self.model = model;
        self.model_alias = Some(name);
        Ok(self)
    }

    /// What is said of the model that answers: by the name by which it was given, then by its own.
    pub fn model_says(&self) -> ModelSettings {
        let of = |name: &str| self.model_settings.get(name).cloned().unwrap_or_default();
        let by_alias = self.model_alias.as_deref().map(of).unwrap_or_default();
        by_alias.or(&of(self.model.as_str()))
    }
}
