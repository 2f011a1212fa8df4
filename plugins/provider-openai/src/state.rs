//! The plugin's state and description.

use std::collections::HashMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CredentialSpec;
use jaato_plugin_sdk::{schemars, serde_json};
use jaato_plugin_sdk_provider::chat;
use parking_lot::Mutex;

use crate::config::Config;
use crate::responses;

/// The variable that holds the API key.
pub(crate) const KEY: &str = "OPENAI_API_KEY";

/// The variable that names another server.
const BASE_URL: &str = "OPENAI_BASE_URL";

/// The maximum number of models whose requirements are remembered. No one uses more at once.
const REMEMBERED_MAX: usize = 64;

/// The requirements of models that refused something, by URL and name.
#[derive(Debug)]
pub(crate) struct ModelRequirements<H>(Mutex<HashMap<(String, String), H>>);

impl<H> Default for ModelRequirements<H> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<H: Clone> ModelRequirements<H> {
    pub(crate) fn find_requirement(&self, url: &str, model: &str) -> Option<H> {
        let key = (url.to_owned(), model.to_owned());
        self.0.lock().get(&key).cloned()
    }

    pub(crate) fn remember_requirement(&self, url: &str, model: &str, habits: H) {
        let (mut known, key) = (self.0.lock(), (url.to_owned(), model.to_owned()));
        if known.len() < REMEMBERED_MAX || known.contains_key(&key) {
            known.insert(key, habits);
        }
    }
}

/// The plugin's state. It remembers refusals, so that a server refuses each request only once. It
/// contains nothing about conversations, because providers are stateless.
#[derive(Default)]
pub struct OpenAiState {
    pub(crate) chat: ModelRequirements<chat::ChatRequestStyle>,
    pub(crate) responses: ModelRequirements<responses::ResponsesRequestStyle>,
}

impl State for OpenAiState {
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
