//! The plugin's settings, and what it remembers of servers.

use std::collections::HashMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::CredentialSpec;
use parking_lot::Mutex;

use crate::endpoint::VENDOR;
use crate::habits::Habits;

/// The variable that holds the key.
pub(crate) const KEY: &str = "OPENAI_API_KEY";

/// The variable that names another server.
const BASE_URL: &str = "OPENAI_BASE_URL";

/// Most models of which it is remembered how they want to be asked. Nobody speaks with more at
/// once.
const REMEMBERED_MAX: usize = 64;

/// `[plugins.provider-openai]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// Where the server is, up to and with `/v1`. `OPENAI_BASE_URL` wins.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: VENDOR.to_owned() }
    }
}

/// The plugin's state: what servers refused once, so that they need not refuse it again. Nothing of
/// a conversation, because providers are stateless.
#[derive(Default)]
pub struct OpenAi {
    /// By URL and model, where they are not as most.
    habits: Mutex<HashMap<(String, String), Habits>>,
}

impl OpenAi {
    pub(crate) fn habits_of(&self, url: &str, model: &str) -> Habits {
        let key = (url.to_owned(), model.to_owned());
        self.habits.lock().get(&key).copied().unwrap_or_default()
    }

    pub(crate) fn remember(&self, url: &str, model: &str, habits: Habits) {
        let (mut known, key) = (self.habits.lock(), (url.to_owned(), model.to_owned()));
        if known.len() < REMEMBERED_MAX || known.contains_key(&key) {
            known.insert(key, habits);
        }
    }
}

impl State for OpenAi {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.credentials = vec![CredentialSpec {
            variable: KEY.to_owned(),
            scheme: "bearer".to_owned(),
            origin: "https://api.openai.com".to_owned(),
            base_url_variable: BASE_URL.to_owned(),
            ..CredentialSpec::default()
        }];
    }
}
