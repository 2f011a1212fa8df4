//! A plugin in use: its factory, and the instances that it makes.

use std::sync::Arc;

use jaato_plugin_api::abi::FactoryBox;
use jaato_plugin_engine::Services;
use jaato_types::{Error, Manifest, PluginName};

use crate::executor::Executor;
use crate::instance::Instance;
use crate::open::Opened;

/// A plugin whose factory is at hand. Start it once a process.
pub struct Plugin(jaato_plugin_engine::Plugin);

impl Plugin {
    /// Gets the factory of an opened plugin, on the executor.
    ///
    /// # Errors
    /// What the plugin answers (no tools where its manifest says there are some, two of one name),
    /// and `plugin_misbehaved` for what is no answer.
    pub async fn start(executor: &Executor, opened: &Opened) -> Result<Self, Error> {
        let (manifest, opened) = (opened.manifest().clone(), opened.clone());
        let factory = move |log| opened.factory(log);
        jaato_plugin_engine::Plugin::start(&executor.0, manifest, factory).await.map(Self)
    }

    /// Makes a plugin of a factory that is at hand without a file: one that is linked into the
    /// host, or a test's own.
    pub fn of(executor: &Executor, factory: FactoryBox, manifest: Manifest) -> Self {
        Self(jaato_plugin_engine::Plugin::of(&executor.0, factory, manifest))
    }

    /// Returns the plugin's name.
    pub fn name(&self) -> &PluginName {
        self.0.name()
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        self.0.manifest()
    }

    /// Tells whether the plugin is disabled because it blocked or flooded the executor too often.
    pub fn is_disabled(&self) -> bool {
        self.0.is_disabled()
    }

    /// Makes an instance, fresh or from what an earlier one saved. `services` are what it is lent
    /// outside of calls. Dropping the future cancels; an instance that is made all the same is
    /// dropped on the executor.
    ///
    /// # Errors
    /// What the plugin answers. With `saved`, keep the bytes, say so and make a fresh instance.
    pub async fn create(
        &self,
        services: Arc<dyn Services>,
        saved: Option<Vec<u8>>,
    ) -> Result<Instance, Error> {
        self.0.create(services, saved).await.map(Instance::local)
    }
}
