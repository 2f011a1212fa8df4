//! Additions of an embedding program to its runtime without a plugin: tools, providers and keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_catalog::Setup;
use jaato_config::EnvironmentVariables;
use jaato_registry::Registry;
use jaato_session::{CallScope, KnownTool, Provider};
use jaato_types::{Error, ErrorKind, Output, PluginName, ToolCall, ToolSpec};

/// The plugin's name of a program's own tools, in events and rules.
pub const PROGRAM: &str = "program";

/// A tool of the embedding program. It runs on the program's own tokio runtime, where its session
/// runs, and not on the plugin executor.
pub trait ProgramTool: Send + Sync {
    /// Returns its spec. It never changes.
    fn spec(&self) -> &ToolSpec;

    /// Runs a call that passed the permission check and whose arguments match the schema. Dropping
    /// the future cancels the call.
    fn call(&self, call: ToolCall, scope: CallScope) -> BoxFuture<'static, Result<Output, Error>>;
}

/// The additions of an embedding program to its runtime.
#[derive(Default)]
pub struct ProgramParts {
    /// Its tools. One with the name of a plugin's tool replaces that tool.
    pub tools: Vec<Arc<dyn ProgramTool>>,
    /// Its providers, by the name before the slash of their models.
    pub providers: BTreeMap<String, Arc<dyn Provider>>,
    /// API keys, by the name of the provider.
    pub keys: BTreeMap<String, String>,
    /// Base URLs of servers, by the name of the provider.
    pub base_urls: BTreeMap<String, String>,
}

impl ProgramParts {
    /// Finds a tool by name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<dyn ProgramTool>> {
        self.tools.iter().find(|tool| tool.spec().name.as_str() == name)
    }

    /// Lists the tools as a session sees them.
    pub(crate) fn known_tools(&self) -> impl Iterator<Item = KnownTool> {
        let plugin = PluginName::from(PROGRAM);
        self.tools.iter().map(move |tool| KnownTool::new(tool.spec().clone(), plugin.clone(), true))
    }

    /// Moves keys and base URLs into the variables from which the provider's plugin gets them.
    ///
    /// # Errors
    /// If no plugin offers a provider, or its plugin names no variable.
    pub(crate) fn set_variables(
        &mut self,
        setup: &mut Setup,
        registry: &Registry,
    ) -> Result<(), Error> {
        if self.keys.is_empty() && self.base_urls.is_empty() {
            return Ok(());
        }
        let mut variables: BTreeMap<String, _> =
            setup.variables.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        for (provider, key) in std::mem::take(&mut self.keys) {
            let name = key_variable(registry, &provider)
                .ok_or_else(|| no_variable_error(&provider, "API key"))?;
            variables.insert(name, key.into());
        }
        for (provider, url) in std::mem::take(&mut self.base_urls) {
            let name = base_url_variable(registry, &provider)
                .ok_or_else(|| no_variable_error(&provider, "base URL"))?;
            variables.insert(name, url.into());
        }
        setup.variables = variables.into_iter().collect::<EnvironmentVariables>();
        Ok(())
    }
}

fn key_variable(registry: &Registry, provider: &str) -> Option<String> {
    let preset = registry.preset(provider).map(|(_, preset)| preset.variable.clone());
    let of_plugin =
        || Some(registry.provider(provider)?.description()?.credentials.first()?.variable.clone());
    preset.or_else(of_plugin).filter(|name| !name.is_empty())
}

fn base_url_variable(registry: &Registry, provider: &str) -> Option<String> {
    let credentials = &registry.provider(provider)?.description()?.credentials;
    let mut names = credentials.iter().map(|it| &it.base_url_variable);
    names.find(|name| !name.is_empty()).cloned()
}

fn no_variable_error(provider: &str, what: &str) -> Error {
    let text = format!("no plugin has a provider `{provider}` that takes the program's {what}");
    Error::new(ErrorKind::Configuration, text)
        .with_hint("link the provider's plugin, or let the runtime search for plugin files")
}
