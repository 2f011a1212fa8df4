//! Opens plugins when they are first called and keeps their instances, in this process or in
//! workers.
//!
//! A plugin is opened once a process, and only to call it. One instance lives for each session, or
//! one for the process where the manifest says so. An instance whose worker is gone is made again,
//! from what it saved, at the next call; a plugin whose workers are gone again and again is given
//! up. One whose plugin has a newer edition is followed by one of that, made from what it saves;
//! where that cannot be made, it stays.

mod drive;
mod living;
mod make;
mod slot;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use jaato_catalog::{Catalog, Setup};
use jaato_loader::{CLOSE_STEP_MAX, Executor, Plugin, Services};
use jaato_registry::{Candidate, PluginEntry, Trust};
use jaato_types::{Error, ErrorKind, Isolation, PluginName, Scope, SessionId};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::{Mutex, OnceCell};

use crate::copies::Copies;
use crate::workers::Workers;
pub use drive::{drive, misbehaved};
pub use living::{Lease, WeakLease};
use make::Trouble;
use slot::{Slot, Source};

/// Contents of one plugin that are opened inside the host: code is never unloaded. Further ones run
/// in a worker, which ends with its code.
pub const CONTENTS_INSIDE_MAX: usize = 16;

/// Stands in what was told for files that are opened where they lie, for want of a place for
/// copies.
const NOT_COPIED: &str = "not copied";

/// Which instance it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    plugin: PluginName,
    /// The name under `[providers]` by which it is asked: each has settings of its own.
    provider: Option<Arc<str>>,
    /// Whose it is: a session's, or with none the process's.
    owner: Option<SessionId>,
}

/// What is opened inside the host: a plugin and one content of its file.
type Inside = (PluginName, String);

/// Makes the services of a call for what is known of a plugin, and the number of its edition.
pub type ServicesOf<'a> =
    dyn Fn(&PluginEntry, u64) -> Result<Arc<dyn CallServices>, Error> + Send + Sync + 'a;

/// The instance by which services are asked: known once it is made.
pub type AskingInstance = Arc<OnceLock<WeakLease>>;

/// The services of one call, as the making of an instance needs them.
pub trait CallServices: Services {
    /// Tells whoever follows the call one line.
    fn notice(&self, text: String);

    /// Makes the services for the instance itself: the same, with nobody to tell.
    fn for_instance(&self) -> Arc<dyn Services>;

    /// Returns what programs get of the host's variables.
    fn program_variables(&self) -> Arc<BTreeMap<OsString, OsString>>;

    /// Says which instance asks: the one that runs the call, and that was made with these services.
    fn bind(&self, lease: WeakLease);
}

/// Plugins that were opened and their instances.
pub struct Instances {
    executor: Executor,
    workers: Workers,
    /// What files are copied with before they are opened, once plugins are watched.
    copies: OnceLock<Copies>,
    plugins: SyncMutex<HashMap<Inside, Arc<OnceCell<Plugin>>>>,
    places: SyncMutex<HashMap<Key, Arc<Place>>>,
    /// What was told and is told once, however often a worker dies: contents that are not trusted,
    /// and [`NOT_COPIED`].
    told: SyncMutex<HashSet<String>>,
}

/// The place of one instance.
#[derive(Default)]
struct Place {
    /// Locked while the instance is made, so that this happens once.
    slot: Mutex<Slot>,
    /// Locked while the instance is asked what it wants to keep.
    saving: Mutex<()>,
}

/// The instance that is wanted.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// What the host is set up with.
    pub setup: &'a Setup,
    /// What is known of the plugin.
    pub catalog: &'a Arc<Catalog>,
    /// The plugin.
    pub plugin: &'a str,
    /// The session that it is wanted for.
    pub session: &'a SessionId,
    /// The name under `[providers]` by which it is wanted.
    pub provider: Option<&'a Arc<str>>,
    /// Makes the services of the call.
    pub services: &'a ServicesOf<'a>,
}

/// An instance, and the services of one call on it.
pub struct Got {
    /// The instance.
    pub lease: Lease,
    /// The services of the call.
    pub services: Arc<dyn CallServices>,
    /// Why it is not of the edition that was wanted: that one does not start.
    pub refused: Option<Error>,
}

impl Instances {
    /// Starts with nothing open.
    pub fn new(executor: Executor, workers: Workers) -> Self {
        Self {
            executor,
            workers,
            copies: OnceLock::new(),
            plugins: SyncMutex::default(),
            places: SyncMutex::default(),
            told: SyncMutex::default(),
        }
    }

    /// Opens files from copies from here on. A second word changes nothing.
    pub fn open_copies(&self, copies: Copies) {
        // The first stays.
        let _ = self.copies.set(copies);
    }

    /// Returns what polls the plugins.
    pub fn executor(&self) -> Executor {
        self.executor.clone()
    }

    /// Returns the instance of a plugin for a session; none where its file changed since it was
    /// looked at.
    ///
    /// # Errors
    /// When the plugin cannot be used, opened, makes no instance, or died too often.
    pub async fn get(&self, wanted: Wanted<'_>) -> Result<Option<Got>, Error> {
        let entry = wanted.entry(wanted.catalog)?;
        let key = key(entry, wanted);
        let place = self.place(key.clone());
        let mut slot = place.slot.lock().await;
        if let Some(error) = slot.instance.as_ref().and_then(|instance| instance.ended()) {
            slot.died(&error);
        }
        let newest = Source::of(wanted.catalog, wanted.plugin);
        let older = slot.source.clone().filter(|source| source.number() < newest.number());
        let came = match &older {
            Some(_) => self.follow(&mut slot, &newest, wanted).await,
            // Another session may have gone over to a newer one.
            None => {
                let source = slot.source.clone().unwrap_or(newest);
                self.ready(&mut slot, &source, wanted).await
            }
        };
        let (services, refused) = match (came, older) {
            (Ok(services), _) => (services, None),
            (Err(Trouble::Changed), _) => return Ok(None),
            (Err(Trouble::Error(error)), None) => return Err(error),
            (Err(Trouble::Error(error)), Some(older)) => {
                match self.ready(&mut slot, &older, wanted).await {
                    Ok(services) => (services, Some(error)),
                    Err(_) => return Err(error),
                }
            }
        };
        let lease = slot.lease(key)?;
        Ok(Some(Got { lease, services, refused }))
    }

    /// Sees to it that an instance of this source is there.
    async fn ready(
        &self,
        slot: &mut Slot,
        source: &Source,
        wanted: Wanted<'_>,
    ) -> Result<Arc<dyn CallServices>, Trouble> {
        let entry = wanted.entry(&source.catalog)?;
        let services = (wanted.services)(entry, source.number())?;
        if slot.instance.is_some() {
            return Ok(services);
        }
        slot.check(&entry.candidate.manifest.name)?;
        slot.wait_after_death().await;
        let made = self.make(slot, source, wanted, &services).await;
        let made = made.inspect_err(|trouble| match trouble {
            Trouble::Error(error) if error.kind == ErrorKind::PluginCrashed => slot.died(error),
            Trouble::Error(_) | Trouble::Changed => {}
        })?;
        slot.put(made, source);
        Ok(services)
    }

    /// Puts an instance of a newer edition in the place of one that lives or has died.
    async fn follow(
        &self,
        slot: &mut Slot,
        newest: &Source,
        wanted: Wanted<'_>,
    ) -> Result<Arc<dyn CallServices>, Trouble> {
        let services = (wanted.services)(wanted.entry(&newest.catalog)?, newest.number())?;
        if let Some(instance) = &slot.instance {
            // Calls in flight go on meanwhile, and end on it.
            match tokio::time::timeout(CLOSE_STEP_MAX, instance.save()).await {
                Ok(Ok(saved)) => slot.saved = saved.or(slot.saved.take()),
                Ok(Err(_)) | Err(_) => services.notice(format!(
                    "plugin `{}` did not say what to keep: the one that follows it begins with what it kept before, if anything",
                    wanted.plugin
                )),
            }
        }
        let made = self.make(slot, newest, wanted, &services).await?;
        slot.retire();
        slot.forget_deaths();
        slot.put(made, newest);
        Ok(services)
    }

    /// Asks an instance for what its successor is to be given. One after the other: of two calls
    /// side by side the later answer must not be overtaken by the earlier. Returns what a person is
    /// told where it could not be saved, once for each instance.
    pub async fn save(&self, lease: &Lease) -> Option<String> {
        let place = self.places.lock().get(lease.key()).cloned();
        // None when it was closed meanwhile.
        let place = place?;
        let _alone = place.saving.lock().await;
        let saving = tokio::time::timeout(CLOSE_STEP_MAX, lease.save()).await;
        let saved = match saving.unwrap_or_else(|_| Err(too_long())) {
            Ok(saved) => saved?,
            // It went with its call, which tells of it.
            Err(error) if matches!(error.kind, ErrorKind::PluginCrashed | ErrorKind::Cancelled) => {
                return None;
            }
            Err(error) => {
                let plugin = lease.plugin();
                return lease.living().is_first_failure().then(|| {
                    format!(
                        "plugin `{plugin}` could not save its state, so what it saved before counts: {}",
                        error.message
                    )
                });
            }
        };
        let mut slot = place.slot.lock().await;
        // What an instance that was followed by another says late counts no more.
        if slot.instance.as_ref().is_some_and(|current| Arc::ptr_eq(current, lease.living())) {
            slot.saved = Some(saved);
        }
        None
    }

    /// Tells whether a session has an instance of a plugin.
    pub fn is_live(&self, plugin: &PluginName, session: &SessionId) -> bool {
        let places = self.places.lock();
        let is_it = |key: &Key| {
            key.plugin == *plugin && key.owner.as_ref().is_none_or(|owner| owner == session)
        };
        let mut found = places.iter().filter(|(key, _)| is_it(key)).map(|(_, place)| place);
        // One that is locked is being made.
        found.any(|place| place.slot.try_lock().map_or(true, |slot| slot.instance.is_some()))
    }

    /// Counts the plugins that were opened, here or in workers.
    pub async fn opened(&self) -> usize {
        let here = self.plugins.lock().values().filter(|plugin| plugin.initialized()).count();
        let places: Vec<_> = self.places.lock().values().cloned().collect();
        let mut elsewhere = 0;
        for place in places {
            let slot = place.slot.lock().await;
            elsewhere += usize::from(slot.instance.as_ref().is_some_and(|it| it.is_in_worker()));
        }
        here + elsewhere
    }

    /// Closes the instances of a session, or with none those of the process.
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
            // What they saved is kept by sessions that outlive the process, which none does.
            drop(futures_util::future::join_all(closing).await);
        });
        futures_util::future::join_all(closing).await;
    }

    /// Tells whether something is to be told: the first time that is asked.
    fn is_news(&self, what: &str) -> bool {
        self.told.lock().insert(what.to_owned())
    }

    fn place(&self, key: Key) -> Arc<Place> {
        Arc::clone(self.places.lock().entry(key).or_default())
    }
}

impl<'a> Wanted<'a> {
    /// Returns what a catalog knows of the plugin.
    fn entry<'c>(&self, catalog: &'c Catalog) -> Result<&'c PluginEntry, Error> {
        let plugin = self.plugin;
        catalog
            .registry
            .plugin(plugin)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no plugin `{plugin}`")))
    }
}

/// Returns why a plugin runs in a worker; none where it runs inside the host.
pub fn why_in_worker(setup: &Setup, entry: &PluginEntry) -> Option<&'static str> {
    let Candidate { manifest, trust, .. } = &entry.candidate;
    let is_named = |name: &String| name == "*" || name == manifest.name.as_str();
    if matches!(trust, Trust::No(_) | Trust::WorkspaceNot) {
        Some("it is not trusted")
    } else if manifest.isolation == Isolation::Worker {
        Some("it asks for that")
    } else if setup.config.plugins_isolated.iter().any(is_named) {
        Some("`[plugins] isolated` names it")
    } else {
        None
    }
}

fn too_long() -> Error {
    let text = format!("it took longer than {} s", CLOSE_STEP_MAX.as_secs());
    Error::new(ErrorKind::Timeout, text)
}

fn key(entry: &PluginEntry, wanted: Wanted<'_>) -> Key {
    let manifest = &entry.candidate.manifest;
    let owner = match manifest.scope {
        Scope::Session => Some(wanted.session.clone()),
        Scope::Host => None,
    };
    Key { plugin: manifest.name.clone(), provider: wanted.provider.cloned(), owner }
}
