//! A loaded plugin: its factory, and the instances that it creates.

use std::sync::Arc;

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RStr, RVec};
use jaato_plugin_api::abi::{FactoryBox, LogAbi, LogBox};
use jaato_types::{Error, Manifest, PluginName};

use crate::call::{panic_error, read_error};
use crate::context::{ContextEndGuard, HostContext};
use crate::executor::{Executor, ExecutorOwned, GuestPlugin, HostCodeGuard};
use crate::fence::{run_host_code, run_plugin_code};
use crate::instance::{InstanceObjects, OwnedInstanceObjects, PluginInstance, poll_fenced};
use crate::services::{CallerKind, EngineServices};
use crate::watch::EngineObserver;

/// A plugin with its factory. Start it once per process.
pub struct EnginePlugin {
    factory: Arc<ExecutorOwned<FactoryBox>>,
    guest: Arc<GuestPlugin>,
    executor: Executor,
    manifest: Manifest,
}

impl EnginePlugin {
    /// Gets the factory of a plugin on the executor. `factory` receives the host's log.
    ///
    /// # Errors
    /// The plugin's error (for example a manifest with tools but a plugin without, or two tools of
    /// the same name), or `plugin_misbehaved` for an invalid answer.
    pub async fn start(
        executor: &Executor,
        manifest: Manifest,
        factory: impl FnOnce(LogBox) -> RResult<FactoryBox, RVec<u8>> + Send + 'static,
    ) -> Result<Self, Error> {
        let guest = executor.add_guest(manifest.name.clone());
        let log = HostLog { plugin: manifest.name.clone(), watch: Arc::clone(executor.observer()) };
        let (own, own_guest) = (executor.clone(), Arc::clone(&guest));
        let task = executor.spawn(&guest, async move {
            let answer = run_plugin_code(|| factory(LogBox::from_value(log, TD_Opaque)));
            match answer.map_err(|text| panic_error(&own_guest, &text))? {
                RResult::ROk(factory) => Ok(ExecutorOwned::new(&own, &own_guest, factory)),
                RResult::RErr(error) => Err(read_error(&own_guest, &error)),
            }
        });
        let factory = task.await.unwrap_or_else(|| Err(guest.lost_error()))?;
        Ok(Self { factory: Arc::new(factory), guest, executor: executor.clone(), manifest })
    }

    /// Creates a plugin from an existing factory.
    pub fn from_factory(executor: &Executor, factory: FactoryBox, manifest: Manifest) -> Self {
        let guest = executor.add_guest(manifest.name.clone());
        let factory = Arc::new(ExecutorOwned::new(executor, &guest, factory));
        Self { factory, guest, executor: executor.clone(), manifest }
    }

    /// Returns the plugin's name.
    pub fn name(&self) -> &PluginName {
        self.guest.name()
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns true if the plugin is disabled because it blocked or flooded the executor too often.
    pub fn is_disabled(&self) -> bool {
        self.guest.is_disabled()
    }

    /// Creates an instance, either fresh or from saved state. `services` are its services outside
    /// calls. Dropping the future cancels the creation. If the instance is created nevertheless,
    /// the executor drops it.
    ///
    /// # Errors
    /// The plugin's error. If this fails with `saved`, keep the bytes, report the failure, and
    /// create a fresh instance.
    pub async fn create(
        &self,
        services: Arc<dyn EngineServices>,
        saved: Option<Vec<u8>>,
    ) -> Result<PluginInstance, Error> {
        if self.guest.is_disabled() {
            return Err(self.guest.disabled_error());
        }
        let core = HostContext::new(CallerKind::Instance, &self.executor, &self.guest, services);
        let making = create_instance(Arc::clone(&self.factory), Arc::clone(&core), saved);
        let mut task = self.executor.spawn(&self.guest, making);
        // Dropped before the task: first the flag is set, then the plugin's future is dropped.
        let cancel = CreationCancelGuard(Some(&core));
        let living = self.guest.wait_unless_disabled(&mut task).await?;
        cancel.disarm();
        Ok(PluginInstance::new(Arc::clone(&core), living))
    }
}

/// Cancels an instance's context if its creation is abandoned.
struct CreationCancelGuard<'a>(Option<&'a Arc<HostContext>>);

impl CreationCancelGuard<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CreationCancelGuard<'_> {
    fn drop(&mut self) {
        if let Some(core) = self.0 {
            core.cancel();
        }
    }
}

/// Runs on the executor. The result is already wrapped, so that the executor drops it even if
/// another thread holds it last.
async fn create_instance(
    factory: Arc<ExecutorOwned<FactoryBox>>,
    core: Arc<HostContext>,
    saved: Option<Vec<u8>>,
) -> Result<OwnedInstanceObjects, Error> {
    let end = ContextEndGuard(Arc::clone(&core));
    let saved: ROption<RVec<u8>> = saved.map(RVec::from).into();
    let begun = run_plugin_code(|| factory.get().create(core.lend_context_box(), saved));
    match poll_fenced(begun).await.map_err(|text| panic_error(&core.guest, &text))? {
        RResult::ROk(instance) => {
            let rooms = run_plugin_code(move || InstanceObjects::from_instance(instance, end));
            let rooms = rooms.map_err(|text| panic_error(&core.guest, &text))?;
            Ok(ExecutorOwned::new(&core.executor, &core.guest, rooms))
        }
        RResult::RErr(error) => Err(read_error(&core.guest, &error)),
    }
}

/// The host's log for one plugin, which lives as long as the process.
struct HostLog {
    plugin: PluginName,
    watch: Arc<dyn EngineObserver>,
}

impl LogAbi for HostLog {
    fn log(&self, level: u8, text: RStr<'_>) {
        let _host = HostCodeGuard::enter();
        // If the log itself panics, nothing can report it.
        let _ = run_host_code(|| self.watch.log(&self.plugin, level, text.as_str()));
    }
}
