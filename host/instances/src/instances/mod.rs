//! Opens plugins when they are first called and keeps their instances, in this process or in
//! workers.
//!
//! A plugin is opened once per process, and only to call it. Each session has its own instance, or
//! the process has one if the manifest says so. If an instance's worker is gone, the next call
//! creates the instance again from its saved state. If workers of a plugin keep dying, the plugin
//! is disabled. When a plugin gets a newer edition, a new instance is created from the current
//! one's saved state. If that fails, the current one stays.

mod drive;
mod living_instance;
mod make;
mod slot;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use jaato_catalog::{Catalog, Setup};
use jaato_loader::{CLOSE_STEP_MAX, EngineServices, Executor, StartedPlugin};
use jaato_registry::{PluginCandidate, PluginEntry, PluginFileTrust};
use jaato_types::{Error, ErrorKind, Isolation, PluginName, PluginScope, SessionId};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::{Mutex, OnceCell};

use crate::copies::PluginCopies;
use crate::workers::Workers;
pub use drive::{blame_plugin, drive_call, invalid_answer_error, misbehaved_error};
pub use living_instance::{InstanceLease, WeakLease};
use make::InstanceCreationError;
use slot::{InstanceSlot, InstanceSource};

/// Maximum number of contents of one plugin that are opened inside the host, because code is never
/// unloaded. Further contents run in a worker, which ends with its code.
pub const CONTENTS_INSIDE_MAX: usize = 16;

/// Key in `told` for files that are opened in place, because they cannot be copied.
const NOT_COPIED: &str = "not copied";

/// Identifies an instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InstanceKey {
    plugin: PluginName,
    /// The name under `[providers]` by which it is used, because each name has its own settings.
    provider: Option<Arc<str>>,
    /// The session that owns it, or `None` for the process.
    owner: Option<SessionId>,
}

/// A plugin and one content of its file, opened inside the host.
type InProcessPluginKey = (PluginName, String);

/// Creates the services of a call from a plugin's entry and the number of its edition.
pub type CallServicesFactory<'a> =
    dyn Fn(&PluginEntry, u64) -> Result<Arc<dyn CallServices>, Error> + Send + Sync + 'a;

/// The instance that uses the services, known once it is created.
pub type AskingInstance = Arc<OnceLock<WeakLease>>;

/// The services of one call, as needed to create an instance.
pub trait CallServices: EngineServices {
    /// Shows the call's followers one line.
    fn show_notice(&self, text: String);

    /// Returns the same services for the instance itself, without followers.
    fn for_instance(&self) -> Arc<dyn EngineServices>;

    /// Returns the host's variables for programs.
    fn program_variables(&self) -> Arc<BTreeMap<OsString, OsString>>;

    /// Sets the instance that uses these services: the one that runs the call and was created with
    /// them.
    fn bind_lease(&self, lease: WeakLease);
}

/// Opened plugins and their instances.
pub struct Instances {
    executor: Executor,
    workers: Workers,
    /// Copies files before they are opened, once plugins are watched.
    copies: OnceLock<PluginCopies>,
    plugins: SyncMutex<HashMap<InProcessPluginKey, Arc<OnceCell<StartedPlugin>>>>,
    places: SyncMutex<HashMap<InstanceKey, Arc<InstanceCell>>>,
    /// Receive the states that the instances of a session save.
    followers: SyncMutex<HashMap<SessionId, StateFollower>>,
    /// Notices that are shown only once, however often a worker dies: digests of untrusted
    /// contents, and [`NOT_COPIED`].
    told: SyncMutex<HashSet<String>>,
}

/// Receives the state that a plugin's instance has saved.
pub type StateFollower = Arc<dyn Fn(&PluginName, &[u8]) + Send + Sync>;

/// The place of one instance.
#[derive(Default)]
struct InstanceCell {
    /// Locked while the instance is created, so that this happens once.
    slot: Mutex<InstanceSlot>,
    /// Locked while the instance saves its state.
    saving: Mutex<()>,
}

/// A request for an instance.
#[derive(Clone, Copy)]
pub struct InstanceRequest<'a> {
    /// The host's setup.
    pub setup: &'a Setup,
    /// The catalog with the plugin.
    pub catalog: &'a Arc<Catalog>,
    /// The plugin.
    pub plugin: &'a str,
    /// The session that needs it.
    pub session: &'a SessionId,
    /// The name under `[providers]` by which it is used.
    pub provider: Option<&'a Arc<str>>,
    /// Creates the services of the call.
    pub services: &'a CallServicesFactory<'a>,
}

/// An instance, and the services of one call on it.
pub struct AcquiredInstance {
    /// The instance.
    pub lease: InstanceLease,
    /// The services of the call.
    pub services: Arc<dyn CallServices>,
    /// Why it does not have the requested edition, which could not be started.
    pub refused: Option<Error>,
}

impl Instances {
    /// Creates an empty set of instances.
    pub fn new(executor: Executor, workers: Workers) -> Self {
        Self {
            executor,
            workers,
            copies: OnceLock::new(),
            plugins: SyncMutex::default(),
            places: SyncMutex::default(),
            followers: SyncMutex::default(),
            told: SyncMutex::default(),
        }
    }

    /// Opens files from copies after this call. Further calls have no effect.
    pub fn open_copies(&self, copies: PluginCopies) {
        // The first one stays.
        let _ = self.copies.set(copies);
    }

    /// Returns the executor that polls the plugins.
    pub fn executor(&self) -> Executor {
        self.executor.clone()
    }

    /// Returns a plugin's instance for a session, or `None` if its file changed since the last
    /// check.
    ///
    /// # Errors
    /// If the plugin cannot be used or opened, creates no instance, or died too often.
    pub async fn get(
        &self,
        wanted: InstanceRequest<'_>,
    ) -> Result<Option<AcquiredInstance>, Error> {
        let entry = wanted.plugin_entry(wanted.catalog)?;
        let key = instance_key(entry, wanted);
        let place = self.instance_cell(key.clone());
        let mut slot = place.slot.lock().await;
        if let Some(error) = slot.instance.as_ref().and_then(|instance| instance.end_error()) {
            slot.record_death(&error);
        }
        let newest = InstanceSource::from_catalog(wanted.catalog, wanted.plugin);
        let older =
            slot.source.clone().filter(|source| source.edition_number() < newest.edition_number());
        let came = match &older {
            Some(_) => self.replace_outdated(&mut slot, &newest, wanted).await,
            // Another session may already use a newer edition.
            None => {
                let source = slot.source.clone().unwrap_or(newest);
                self.ensure_instance(&mut slot, &source, wanted).await
            }
        };
        let (services, refused) = match (came, older) {
            (Ok(services), _) => (services, None),
            (Err(InstanceCreationError::Changed), _) => return Ok(None),
            (Err(InstanceCreationError::Error(error)), None) => return Err(error),
            (Err(InstanceCreationError::Error(error)), Some(older)) => {
                match self.ensure_instance(&mut slot, &older, wanted).await {
                    Ok(services) => (services, Some(error)),
                    Err(_) => return Err(error),
                }
            }
        };
        let lease = slot.lease(key)?;
        Ok(Some(AcquiredInstance { lease, services, refused }))
    }

    /// Ensures that an instance of this source exists.
    async fn ensure_instance(
        &self,
        slot: &mut InstanceSlot,
        source: &InstanceSource,
        wanted: InstanceRequest<'_>,
    ) -> Result<Arc<dyn CallServices>, InstanceCreationError> {
        let entry = wanted.plugin_entry(&source.catalog)?;
        let services = (wanted.services)(entry, source.edition_number())?;
        if slot.instance.is_some() {
            return Ok(services);
        }
        slot.check_crashes(&entry.candidate.manifest.name)?;
        slot.wait_after_death().await;
        let made = self.create_instance(slot, source, wanted, &services).await;
        let made = made.inspect_err(|trouble| match trouble {
            InstanceCreationError::Error(error) if error.kind == ErrorKind::PluginCrashed => {
                slot.record_death(error)
            }
            InstanceCreationError::Error(_) | InstanceCreationError::Changed => {}
        })?;
        slot.store_instance(made, source);
        Ok(services)
    }

    /// Replaces a living or dead instance with one of a newer edition.
    async fn replace_outdated(
        &self,
        slot: &mut InstanceSlot,
        newest: &InstanceSource,
        wanted: InstanceRequest<'_>,
    ) -> Result<Arc<dyn CallServices>, InstanceCreationError> {
        let services =
            (wanted.services)(wanted.plugin_entry(&newest.catalog)?, newest.edition_number())?;
        if let Some(instance) = &slot.instance {
            // Calls in flight continue on this instance until they end.
            match tokio::time::timeout(CLOSE_STEP_MAX, instance.save()).await {
                Ok(Ok(saved)) => slot.saved = saved.or(slot.saved.take()),
                Ok(Err(_)) | Err(_) => services.show_notice(format!(
                    "plugin `{}` did not save its state, so the new version starts from the previously saved state",
                    wanted.plugin
                )),
            }
        }
        let made = self.create_instance(slot, newest, wanted, &services).await?;
        slot.retire();
        slot.forget_deaths();
        slot.store_instance(made, newest);
        Ok(services)
    }

    /// Saves an instance's state for its successor. Saves run one after the other, so that the
    /// state of a later call is not overwritten by that of an earlier one. Returns a notice if
    /// saving failed, once per instance.
    pub async fn save(&self, lease: &InstanceLease) -> Option<String> {
        let place = self.places.lock().get(lease.key()).cloned();
        // `None` if the instance was closed.
        let place = place?;
        let _alone = place.saving.lock().await;
        let saving = tokio::time::timeout(CLOSE_STEP_MAX, lease.save()).await;
        let saved = match saving.unwrap_or_else(|_| Err(timeout_error())) {
            Ok(saved) => saved?,
            // The instance ended with its call, which reports that.
            Err(error) if is_end_error(error.kind) => return None,
            Err(error) => {
                let plugin = lease.plugin();
                return lease.living_instance().is_first_failure().then(|| {
                    format!(
                        "plugin `{plugin}` could not save its state, so the previously saved state is kept: {}",
                        error.message
                    )
                });
            }
        };
        if let Some(follower) = self.state_follower(lease) {
            follower(lease.plugin(), &saved);
        }
        let mut slot = place.slot.lock().await;
        // A late state of a replaced instance is ignored.
        if slot
            .instance
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, lease.living_instance()))
        {
            slot.saved = Some(saved);
        }
        None
    }

    /// Sets the state from which a session's instance of a plugin is created. Call it before the
    /// session starts.
    pub fn restore_state(&self, session: &SessionId, plugin: &PluginName, state: Vec<u8>) {
        let (plugin, owner) = (plugin.clone(), Some(session.clone()));
        let place = self.instance_cell(InstanceKey { plugin, provider: None, owner });
        if let Ok(mut slot) = place.slot.try_lock() {
            slot.saved = Some(state);
        }
    }

    /// Passes all states that instances of a session save to a follower, until the session ends.
    pub fn follow_states(&self, session: &SessionId, follower: StateFollower) {
        self.followers.lock().insert(session.clone(), follower);
    }

    /// Returns the follower of an instance's states.
    fn state_follower(&self, lease: &InstanceLease) -> Option<StateFollower> {
        let InstanceKey { provider: None, owner: Some(owner), .. } = lease.key() else {
            return None;
        };
        self.followers.lock().get(owner).cloned()
    }

    /// Returns true if the state of an instance outlives it.
    pub fn is_saved(&self, lease: &InstanceLease) -> bool {
        lease.is_in_worker() || self.state_follower(lease).is_some()
    }

    /// Returns true if a session has an instance of a plugin.
    pub fn is_live(&self, plugin: &PluginName, session: &SessionId) -> bool {
        let places = self.places.lock();
        let is_it = |key: &InstanceKey| {
            key.plugin == *plugin && key.owner.as_ref().is_none_or(|owner| owner == session)
        };
        let mut found = places.iter().filter(|(key, _)| is_it(key)).map(|(_, place)| place);
        // A locked slot is being filled.
        found.any(|place| place.slot.try_lock().map_or(true, |slot| slot.instance.is_some()))
    }

    /// Returns the number of plugins that were opened, in this process or in workers.
    pub async fn opened_plugin_count(&self) -> usize {
        let here = self.plugins.lock().values().filter(|plugin| plugin.initialized()).count();
        let places: Vec<_> = self.places.lock().values().cloned().collect();
        let mut elsewhere = 0;
        for place in places {
            let slot = place.slot.lock().await;
            elsewhere += usize::from(slot.instance.as_ref().is_some_and(|it| it.is_in_worker()));
        }
        here + elsewhere
    }

    /// Closes the instances of a session or, without one, those of the process.
    pub async fn close(&self, session: Option<&SessionId>) {
        let places: Vec<_> = {
            let mut places = self.places.lock();
            places
                .extract_if(|key, _| key.owner.as_ref() == session)
                .map(|(_, place)| place)
                .collect()
        };
        let closing = places.into_iter().map(|place| async move {
            let instances = place.slot.lock().await.take_all();
            let closing = instances.iter().map(|instance| instance.close());
            // A session that outlives the process has been told each state.
            drop(futures_util::future::join_all(closing).await);
        });
        futures_util::future::join_all(closing).await;
        if let Some(session) = session {
            self.followers.lock().remove(session);
        }
    }

    /// Returns true the first time that it is called for a notice.
    fn is_first_notice(&self, what: &str) -> bool {
        self.told.lock().insert(what.to_owned())
    }

    fn instance_cell(&self, key: InstanceKey) -> Arc<InstanceCell> {
        Arc::clone(self.places.lock().entry(key).or_default())
    }
}

/// Returns true for errors of an instance that can save nothing more.
fn is_end_error(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PluginCrashed
            | ErrorKind::PluginMisbehaved
            | ErrorKind::PluginDisabled
            | ErrorKind::Cancelled
    )
}

impl<'a> InstanceRequest<'a> {
    /// Returns a catalog's entry for the plugin.
    fn plugin_entry<'c>(&self, catalog: &'c Catalog) -> Result<&'c PluginEntry, Error> {
        let plugin = self.plugin;
        catalog.registry.plugin(plugin).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("plugin `{plugin}` does not exist"))
                .with_hint("`jaato plugin list` lists the plugins")
        })
    }
}

/// Returns why a plugin runs in a worker, or `None` if it runs inside the host.
pub fn isolation_reason(setup: &Setup, entry: &PluginEntry) -> Option<&'static str> {
    let PluginCandidate { manifest, trust, .. } = &entry.candidate;
    let is_named = |name: &String| name == "*" || name == manifest.name.as_str();
    if setup.linked.iter().any(|linked| linked.path() == entry.candidate.path) {
        // Its code is in this process already.
        return None;
    }
    if matches!(trust, PluginFileTrust::No(_) | PluginFileTrust::WorkspaceNot) {
        Some("it is not trusted")
    } else if manifest.isolation == Isolation::Worker {
        Some("its manifest requires it")
    } else if setup.config.plugins_isolated.iter().any(is_named) {
        Some("`[plugins] isolated` names it")
    } else {
        None
    }
}

fn timeout_error() -> Error {
    let text = format!("it took longer than {} s", CLOSE_STEP_MAX.as_secs());
    Error::new(ErrorKind::Timeout, text)
}

fn instance_key(entry: &PluginEntry, wanted: InstanceRequest<'_>) -> InstanceKey {
    let manifest = &entry.candidate.manifest;
    let owner = match manifest.scope {
        PluginScope::Session => Some(wanted.session.clone()),
        PluginScope::Host => None,
    };
    InstanceKey { plugin: manifest.name.clone(), provider: wanted.provider.cloned(), owner }
}
