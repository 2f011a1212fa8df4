//! A plugin in use: its factory, and the instances that it creates.

use std::sync::Arc;

use jaato_plugin_api::abi::FactoryBox;
use jaato_plugin_engine::EngineServices;
use jaato_types::{Error, Manifest, PluginName};

use crate::executor::Executor;
use crate::instance::Instance;
use crate::open::OpenedPlugin;

/// A plugin with its factory. Start it once per process.
pub struct StartedPlugin(jaato_plugin_engine::EnginePlugin);

impl StartedPlugin {
    /// Gets the factory of an opened plugin, on the executor.
    ///
    /// # Errors
    /// The plugin's error (for example, it has no tools although its manifest lists that kind, or
    /// two of the same name), or `plugin_misbehaved` for an invalid answer.
    pub async fn start(executor: &Executor, opened: &OpenedPlugin) -> Result<Self, Error> {
        let (manifest, opened) = (opened.manifest().clone(), opened.clone());
        let factory = move |log| opened.factory(log);
        jaato_plugin_engine::EnginePlugin::start(&executor.0, manifest, factory).await.map(Self)
    }

    /// Creates a plugin from a factory without a file: one that is linked into the host, or a
    /// test's own.
    pub fn from_factory(executor: &Executor, factory: FactoryBox, manifest: Manifest) -> Self {
        Self(jaato_plugin_engine::EnginePlugin::from_factory(&executor.0, factory, manifest))
    }

    /// Returns the plugin's name.
    pub fn name(&self) -> &PluginName {
        self.0.name()
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        self.0.manifest()
    }

    /// Returns true if the plugin is disabled because it blocked or flooded the executor too often.
    pub fn is_disabled(&self) -> bool {
        self.0.is_disabled()
    }

    /// Creates an instance, fresh or from saved state. It uses `services` outside of calls.
    /// Dropping the future cancels it. If the plugin still creates the instance, it is dropped on
    /// the executor.
    ///
    /// # Errors
    /// The plugin's error. If `saved` was given, keep the bytes, report the error and create a
    /// fresh instance.
    pub async fn create_instance(
        &self,
        services: Arc<dyn EngineServices>,
        saved: Option<Vec<u8>>,
    ) -> Result<Instance, Error> {
        self.0.create(services, saved).await.map(Instance::from_local)
    }
}
