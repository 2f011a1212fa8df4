//! The plugin's settings, and what it remembers of servers.

use std::collections::HashSet;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::CredentialSpec;
use parking_lot::{Mutex, MutexGuard};

use crate::endpoint::VENDOR;
use crate::request::Outcomes;

/// The variable that holds the key.
pub(crate) const KEY: &str = "OPENAI_API_KEY";

/// The variable that names another server.
const BASE_URL: &str = "OPENAI_BASE_URL";

/// Most models of which it is remembered how they take outcomes. Nobody speaks with more at once.
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
    /// URL and model of servers that take outcomes only in tool results.
    wants_results_last: Mutex<HashSet<(String, String)>>,
}

impl OpenAi {
    pub(crate) fn outcomes_for(&self, url: &str, model: &str) -> Outcomes {
        let known = self.known();
        let is_known = known.contains(&(url.to_owned(), model.to_owned()));
        if is_known { Outcomes::InLastResult } else { Outcomes::AsUser }
    }

    pub(crate) fn remember(&self, url: &str, model: &str) {
        let mut known = self.known();
        if known.len() < REMEMBERED_MAX {
            known.insert((url.to_owned(), model.to_owned()));
        }
    }

    fn known(&self) -> MutexGuard<'_, HashSet<(String, String)>> {
        self.wants_results_last.lock()
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
        }];
    }
}
