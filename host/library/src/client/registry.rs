//! The plugins from which a client has its tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::blocking;
use crate::types::{Error, ErrorKind, Result, ToolName};
use crate::{Configuration, Jaato, JaatoBuilder, PluginFiles};

/// Finds plugins, and says which of them sessions use.
#[derive(Clone)]
pub struct PluginRegistry {
    builder: Arc<dyn Fn() -> JaatoBuilder + Send + Sync>,
    found: BTreeSet<String>,
    exposed: BTreeSet<String>,
}

impl PluginRegistry {
    /// Creates a registry of the user's plugins.
    pub fn new() -> Self {
        Self::with(|| {
            let builder = Jaato::builder().configuration(Configuration::OfUser);
            builder.plugin_files(PluginFiles::Searched)
        })
    }

    /// Creates a registry of what a function gives each host: linked plugins, tools, providers,
    /// folders with plugin files.
    pub fn with(builder: impl Fn() -> JaatoBuilder + Send + Sync + 'static) -> Self {
        Self { builder: Arc::new(builder), found: BTreeSet::new(), exposed: BTreeSet::new() }
    }

    /// Finds the plugins and returns their names.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn discover(&mut self) -> Result<Vec<String>> {
        let jaato = blocking::BlockingJaato::start(self.builder())?;
        let registry = jaato.inner().runtime().registry();
        let names = registry.plugins().iter().map(|it| it.candidate.manifest.name.to_string());
        self.found = names.collect();
        jaato.close();
        Ok(self.found.iter().cloned().collect())
    }

    /// Lets sessions use the tools of a plugin: `environment`, or `tool-environment`.
    ///
    /// # Errors
    /// If [`PluginRegistry::discover`] has not found it.
    pub fn expose_tool(&mut self, plugin: &str) -> Result<()> {
        let name = self.full_name(plugin)?;
        self.exposed.insert(name);
        Ok(())
    }

    /// Lets sessions use the tools of all plugins that were found.
    pub fn expose_all(&mut self) {
        self.exposed.clone_from(&self.found);
    }

    /// Takes the tools of a plugin from sessions that are created later.
    ///
    /// # Errors
    /// If [`PluginRegistry::discover`] has not found it.
    pub fn unexpose_tool(&mut self, plugin: &str) -> Result<()> {
        let name = self.full_name(plugin)?;
        self.exposed.remove(&name);
        Ok(())
    }

    /// Lists the plugins whose tools sessions use.
    pub fn list_exposed(&self) -> Vec<String> {
        self.exposed.iter().cloned().collect()
    }

    pub(super) fn builder(&self) -> JaatoBuilder {
        (self.builder)()
    }

    /// Returns the words that select the tools of plugins, and of the program itself. Without
    /// names, those of all exposed plugins.
    pub(super) fn exposed_tools(&self, plugins: Option<&[&str]>) -> Result<Vec<ToolName>> {
        let names: Vec<String> = match plugins {
            Some(plugins) => {
                plugins.iter().map(|name| self.full_name(name)).collect::<Result<_>>()?
            }
            None => self.exposed.iter().cloned().collect(),
        };
        let of_program = jaato_runtime::PROGRAM.to_owned();
        let words = names.into_iter().chain([of_program]);
        Ok(words.map(|name| ToolName::new(format!("{name}:*"))).collect())
    }

    fn full_name(&self, plugin: &str) -> Result<String> {
        let dashed = plugin.replace('_', "-");
        let candidates = [plugin.to_owned(), format!("tool-{dashed}"), dashed];
        let found = candidates.into_iter().find(|name| self.found.contains(name));
        found.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no plugin `{plugin}`"))
                .with_hint("`discover` returns the names of all plugins")
        })
    }
}

impl Default for PluginRegistry {
    fn default() -> Self {
        Self::new()
    }
}
