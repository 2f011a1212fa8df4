//! What the plugin remembers of servers, and what it tells of itself.

use std::collections::{HashMap, HashSet};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CredentialSpec;
use jaato_plugin_sdk::{schemars, serde_json};
use parking_lot::Mutex;

use crate::config::Config;
use crate::endpoint::Server;
use crate::facts::Facts;
use crate::models::with_tag;

/// The variable that holds a key for a server which wants one.
pub(crate) const KEY: &str = "OLLAMA_API_KEY";

/// Most models that are remembered. Nobody speaks with more at once.
const REMEMBERED_MAX: usize = 256;

/// What is known of a model of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) facts: Facts,
    /// Size of the context with which it was loaded when it was first asked for. It stays: the size
    /// that is asked for must not change.
    pub(crate) loaded: Option<u64>,
}

/// The plugin's state: what servers said of models, so that they need not say it before each
/// request. Nothing of a conversation, because providers are stateless.
#[derive(Default)]
pub struct Ollama(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    models: HashMap<(String, String), Known>,
    /// Models that have answered.
    used: HashSet<(String, String)>,
    /// Models of which a person was told that their context is too small.
    told: HashSet<(String, String)>,
    /// Servers that have answered.
    answered: HashSet<String>,
}

fn key(server: &Server, model: &str) -> (String, String) {
    (server.root.clone(), with_tag(model))
}

impl Ollama {
    pub(crate) fn known(&self, server: &Server, model: &str) -> Option<Known> {
        self.0.lock().models.get(&key(server, model)).cloned()
    }

    pub(crate) fn remember(&self, server: &Server, model: &str, known: Known) {
        let mut remembered = self.0.lock();
        if remembered.models.len() >= REMEMBERED_MAX {
            *remembered = Remembered::default();
        }
        remembered.models.insert(key(server, model), known);
    }

    /// Forgets a model that was refused: the person may be changing something about it.
    pub(crate) fn forget(&self, server: &Server, model: &str) {
        self.0.lock().models.remove(&key(server, model));
    }

    pub(crate) fn is_used(&self, server: &Server, model: &str) -> bool {
        self.0.lock().used.contains(&key(server, model))
    }

    pub(crate) fn set_used(&self, server: &Server, model: &str) {
        self.0.lock().used.insert(key(server, model));
    }

    /// Returns true the first time it is asked about a model, so that a notice is shown once.
    pub(crate) fn is_first_notice(&self, server: &Server, model: &str) -> bool {
        self.0.lock().told.insert(key(server, model))
    }

    pub(crate) fn has_answered(&self, server: &Server) -> bool {
        self.0.lock().answered.contains(&server.root)
    }

    pub(crate) fn set_answered(&self, server: &Server) {
        let mut remembered = self.0.lock();
        if !remembered.answered.contains(&server.root) {
            remembered.answered.insert(server.root.clone());
        }
    }
}

impl State for Ollama {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.credentials = vec![CredentialSpec {
            variable: KEY.to_owned(),
            scheme: "bearer".to_owned(),
            // Without an origin: a server on this machine needs no key, so the host binds a key to
            // `base_url` alone.
            ..CredentialSpec::default()
        }];
    }
}
