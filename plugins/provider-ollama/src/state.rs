//! The plugin's state and description.

use std::collections::{HashMap, HashSet};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CredentialSpec;
use jaato_plugin_sdk::{schemars, serde_json};
use parking_lot::Mutex;

use crate::config::Config;
use crate::endpoint::OllamaServer;
use crate::facts::OllamaModelFacts;
use crate::models::name_with_tag;

/// The variable that holds the API key for a server that needs one.
pub(crate) const KEY: &str = "OLLAMA_API_KEY";

/// The maximum number of models to remember. No one uses more at once.
const REMEMBERED_MAX: usize = 256;

/// The known facts about a model on a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownOllamaModel {
    pub(crate) facts: OllamaModelFacts,
    /// The context size with which the model was loaded at its first query. It is kept because the
    /// requested size must not change.
    pub(crate) loaded: Option<u64>,
}

/// The plugin's state. It remembers facts about models, so that the plugin does not query them
/// before each request. It contains nothing about conversations, because providers are stateless.
#[derive(Default)]
pub struct OllamaState(Mutex<RememberedOllamaModels>);

#[derive(Default)]
struct RememberedOllamaModels {
    models: HashMap<(String, String), KnownOllamaModel>,
    /// Models that have answered.
    used: HashSet<(String, String)>,
    /// Models about whose small context the user was notified.
    told: HashSet<(String, String)>,
    /// Servers that have answered.
    answered: HashSet<String>,
}

fn model_key(server: &OllamaServer, model: &str) -> (String, String) {
    (server.root.clone(), name_with_tag(model))
}

impl OllamaState {
    pub(crate) fn known_model(
        &self,
        server: &OllamaServer,
        model: &str,
    ) -> Option<KnownOllamaModel> {
        self.0.lock().models.get(&model_key(server, model)).cloned()
    }

    pub(crate) fn remember_model(
        &self,
        server: &OllamaServer,
        model: &str,
        known: KnownOllamaModel,
    ) {
        let mut remembered = self.0.lock();
        if remembered.models.len() >= REMEMBERED_MAX {
            *remembered = RememberedOllamaModels::default();
        }
        remembered.models.insert(model_key(server, model), known);
    }

    /// Forgets a model that the server refused, because the user may be changing it.
    pub(crate) fn forget_model(&self, server: &OllamaServer, model: &str) {
        self.0.lock().models.remove(&model_key(server, model));
    }

    pub(crate) fn is_model_used(&self, server: &OllamaServer, model: &str) -> bool {
        self.0.lock().used.contains(&model_key(server, model))
    }

    pub(crate) fn set_model_used(&self, server: &OllamaServer, model: &str) {
        self.0.lock().used.insert(model_key(server, model));
    }

    /// Returns true on the first call for a model, so that a notice is shown once.
    pub(crate) fn is_first_notice(&self, server: &OllamaServer, model: &str) -> bool {
        self.0.lock().told.insert(model_key(server, model))
    }

    pub(crate) fn has_server_answered(&self, server: &OllamaServer) -> bool {
        self.0.lock().answered.contains(&server.root)
    }

    pub(crate) fn set_server_answered(&self, server: &OllamaServer) {
        let mut remembered = self.0.lock();
        if !remembered.answered.contains(&server.root) {
            remembered.answered.insert(server.root.clone());
        }
    }
}

impl State for OllamaState {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.credentials = vec![CredentialSpec {
            variable: KEY.to_owned(),
            scheme: "bearer".to_owned(),
            // No origin is set. A server on this machine needs no key, so the host binds a key
            // only to `base_url`.
            ..CredentialSpec::default()
        }];
    }
}
