//! The plugin's state and description.

use std::collections::HashMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};
use parking_lot::Mutex;

use crate::config::Config;
use crate::credentials::{self, credential_variables};
use crate::endpoint::GoogleBackend;
use crate::request_style::GoogleRequestStyle;

/// The maximum number of servers and models whose requirements are remembered. No one uses more at
/// once.
const REMEMBERED_MAX: usize = 64;

/// The plugin's state. It remembers refusals, so that a server refuses each request only once. It
/// contains nothing about conversations, because providers are stateless.
#[derive(Default)]
pub struct GoogleState {
    /// Unusual requirements, by URL.
    habits: Mutex<HashMap<String, GoogleRequestStyle>>,
    /// The variable that last had a credential, by kind of credential.
    variables: Mutex<HashMap<&'static str, usize>>,
}

impl GoogleState {
    pub(crate) fn request_style(&self, url: &str) -> GoogleRequestStyle {
        self.habits.lock().get(url).copied().unwrap_or_default()
    }

    pub(crate) fn remember_style(&self, url: &str, habits: GoogleRequestStyle) {
        let mut known = self.habits.lock();
        if known.len() < REMEMBERED_MAX || known.contains_key(url) {
            known.insert(url.to_owned(), habits);
        }
    }

    /// Lists the variables of credentials that a server accepts, starting with the one that last
    /// existed.
    pub(crate) fn credential_variables_for(&self, backend: &GoogleBackend) -> Vec<&'static str> {
        let mut all = credential_variables(backend).to_vec();
        if let Some(last) = self.variables.lock().get(all[0]) {
            let known = all.remove(*last);
            all.insert(0, known);
        }
        all
    }

    pub(crate) fn remember_variable(&self, backend: &GoogleBackend, variable: &str) {
        let all = credential_variables(backend);
        if let Some(place) = all.iter().position(|name| *name == variable) {
            self.variables.lock().insert(all[0], place);
        }
    }
}

impl State for GoogleState {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.credentials = credentials::credential_specs();
    }
}
