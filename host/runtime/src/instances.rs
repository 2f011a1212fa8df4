//! Opens plugins when they are first called and keeps their instances, in this process or in workers.
//!
//! A plugin is opened once a process, and only to call it. One instance lives for each session, or one
//! for the process where the manifest says so. An instance whose worker is gone is made again, from what
//! it saved, at the next call; a plugin whose workers are gone again and again is given up.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use jaato_loader::{CLOSE_STEP_MAX, Executor, Instance, Library, LoadError, Plugin, remote};
use jaato_registry::{Candidate, PluginEntry, Status, Trust};
use jaato_types::{Error, ErrorKind, Isolation, PluginName, Scope, SessionId};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use crate::services::PluginServices;
use crate::setup::Setup;
use crate::trusted::private_copy;
use crate::workers::{WorkerOf, Workers};

/// Deaths of its worker, one soon after the other, after which an instance is not made again.
pub const DEATHS_MAX: u32 = 5;
/// How long ago a death counts no more.
const DEATHS_FORGOTTEN: Duration = Duration::from_secs(600);
/// How long the second worker waits after the death of the first; doubles with each further one.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Whose an instance is: a session's, or with none the process's.
type Key = (PluginName, Option<SessionId>);

/// Plugins that were opened and their instances.
pub struct Instances {
    executor: Executor,
    workers: Workers,
    plugins: StdMutex<HashMap<PluginName, Arc<OnceCell<Plugin>>>>,
    places: StdMutex<HashMap<Key, Arc<Place>>>,
}

/// The place of one instance.
#[derive(Default)]
struct Place {
    /// Locked while the instance is made, so that this happens once.
    slot: Mutex<Slot>,
    /// Locked while the instance is asked what it wants to keep.
    saving: Mutex<()>,
}

/// What is in a place.
#[derive(Default)]
struct Slot {
    instance: Option<Arc<Instance>>,
    /// What the instance saved last.
    saved: Option<Vec<u8>>,
    deaths: u32,
    last_death: Option<Instant>,
    last_words: String,
}

impl Instances {
    /// Starts with nothing open.
    pub fn new(executor: Executor, workers: Workers) -> Self {
        Self { executor, workers, plugins: StdMutex::default(), places: StdMutex::default() }
    }

    /// Returns the instance of a plugin for a session.
    ///
    /// # Errors
    /// When the plugin cannot be used, opened, makes no instance, or died too often.
    pub async fn get(
        &self,
        setup: &Setup,
        entry: &PluginEntry,
        session: &SessionId,
        services: &Arc<PluginServices>,
    ) -> Result<Arc<Instance>, Error> {
        let place = self.place(key(entry, session));
        let mut slot = place.slot.lock().await;
        if let Some(instance) = &slot.instance {
            match instance.ended() {
                None => return Ok(Arc::clone(instance)),
                Some(error) => slot.died(&error),
            }
        }
        let name = &entry.candidate.manifest.name;
        slot.check(name)?;
        slot.wait_after_death().await;
        let made = self.make(setup, entry, session, services, slot.saved.clone()).await;
        let (instance, refusal) = made.inspect_err(|error| {
            if error.kind == ErrorKind::PluginCrashed {
                slot.died(error);
            }
        })?;
        if let Some(error) = refusal {
            // What it saved is kept, for a version of the plugin that can read it.
            let why = error.message;
            let text = format!("`{name}` starts afresh: it refused what it had saved: {why}");
            services.notice(text);
        }
        let instance = Arc::new(instance);
        slot.instance = Some(Arc::clone(&instance));
        Ok(instance)
    }

    /// Makes an instance; one that refuses what was saved is made afresh, and what it said is given too.
    async fn make(
        &self,
        setup: &Setup,
        entry: &PluginEntry,
        session: &SessionId,
        services: &Arc<PluginServices>,
        saved: Option<Vec<u8>>,
    ) -> Result<(Instance, Option<Error>), Error> {
        let path = file_to_open(setup, entry)?;
        let manifest = &entry.candidate.manifest;
        if why_in_worker(setup, entry).is_none() {
            let plugin = self.plugin(&manifest.name);
            let opening = plugin.get_or_try_init(|| async {
                let opened = Library::open(&path).map_err(|error| load_error(&error))?;
                Plugin::start(&self.executor, &opened).await
            });
            let plugin = opening.await?;
            let has_saved = saved.is_some();
            return match plugin.create(services.for_instance(), saved).await {
                Err(error) if has_saved => {
                    let fresh = plugin.create(services.for_instance(), None).await?;
                    Ok((fresh, Some(error)))
                }
                made => Ok((made?, None)),
            };
        }
        if matches!(entry.candidate.trust, Trust::No(_)) {
            let name = &manifest.name;
            services.notice(format!(
                "plugin `{name}` is not trusted: it runs in a worker, which is no sandbox, and is given no key"
            ));
        }
        let is_shipped = entry.candidate.trust == Trust::Shipped;
        let owner = (manifest.scope == Scope::Session).then(|| session.as_str());
        let is_trusted = !matches!(entry.candidate.trust, Trust::No(_));
        let variable = |name: &str| {
            // A manifest names what it likes: what no command may see is no stranger's either.
            let cleaned = services.program_variables();
            if is_trusted {
                setup.variables.get(name).map(ToOwned::to_owned)
            } else {
                cleaned.get(OsStr::new(name)).cloned()
            }
        };
        let asked = WorkerOf { file: &path, manifest, is_shipped, owner, variable: &variable };
        let started = self.workers.start(asked).await?;
        let start = remote::Start {
            manifest: manifest.clone(),
            stream: started.stream,
            process: started.process,
            services: services.for_instance(),
            saved,
        };
        let instance = Instance::in_worker(&self.executor, start).await?;
        let refusal = instance.refusal().cloned();
        Ok((instance, refusal))
    }

    /// Asks an instance for what its successor is to be given. One after the other: of two calls side by
    /// side the later answer must not be overtaken by the earlier.
    pub async fn save(&self, entry: &PluginEntry, session: &SessionId, instance: &Arc<Instance>) {
        let place = lock(&self.places).get(&key(entry, session)).cloned();
        // None when it was closed meanwhile.
        let Some(place) = place else { return };
        let _alone = place.saving.lock().await;
        let saving = tokio::time::timeout(CLOSE_STEP_MAX, instance.save()).await;
        // One that cannot save goes on with what it saved before.
        let Ok(Ok(Some(saved))) = saving else { return };
        let mut slot = place.slot.lock().await;
        // What an instance that was followed by another says late counts no more.
        if slot.instance.as_ref().is_some_and(|current| Arc::ptr_eq(current, instance)) {
            slot.saved = Some(saved);
        }
    }

    /// Counts the plugins that were opened, here or in workers.
    pub async fn opened(&self) -> usize {
        let here = lock(&self.plugins).values().filter(|plugin| plugin.initialized()).count();
        let places: Vec<_> = lock(&self.places).values().cloned().collect();
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
            let mut places = lock(&self.places);
            let is_closed = |(_, owner): &Key| owner.as_ref() == session;
            places.extract_if(|key, _| is_closed(key)).map(|(_, place)| place).collect()
        };
        let closing = places.into_iter().map(|place| async move {
            let instance = place.slot.lock().await.instance.take();
            if let Some(instance) = instance {
                // What it saved is kept by sessions that outlive the process, which none does.
                drop(instance.close().await);
            }
        });
        futures_util::future::join_all(closing).await;
    }

    fn plugin(&self, name: &PluginName) -> Arc<OnceCell<Plugin>> {
        Arc::clone(lock(&self.plugins).entry(name.clone()).or_default())
    }

    fn place(&self, key: Key) -> Arc<Place> {
        Arc::clone(lock(&self.places).entry(key).or_default())
    }
}

impl Slot {
    /// Counts a worker's death and lets go of its instance.
    fn died(&mut self, error: &Error) {
        let now = Instant::now();
        if self.last_death.is_none_or(|last| now - last > DEATHS_FORGOTTEN) {
            self.deaths = 0;
        }
        self.deaths += 1;
        self.last_death = Some(now);
        self.last_words.clone_from(&error.message);
        self.instance = None;
    }

    /// Refuses another worker when too many died.
    fn check(&self, name: &PluginName) -> Result<(), Error> {
        if self.deaths < DEATHS_MAX {
            return Ok(());
        }
        let text = format!(
            "plugin `{name}` is not run any more: its worker died {DEATHS_MAX} times; the last time: {}",
            self.last_words
        );
        Err(Error::new(ErrorKind::PluginDisabled, text)
            .with_hint("tell the plugin's author; it can be kept out with `[plugins] disabled`"))
    }

    async fn wait_after_death(&self) {
        let Some(last) = self.last_death.filter(|_| self.deaths > 1) else { return };
        let wait = BACK_OFF * 2_u32.saturating_pow(self.deaths - 2);
        tokio::time::sleep_until(last + wait).await;
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

fn key(entry: &PluginEntry, session: &SessionId) -> Key {
    let manifest = &entry.candidate.manifest;
    let owner = match manifest.scope {
        Scope::Session => Some(session.clone()),
        Scope::Host => None,
    };
    (manifest.name.clone(), owner)
}

fn lock<T>(mutex: &StdMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the file to open: a shipped one where it lies, a trusted one as its private copy.
fn file_to_open(setup: &Setup, entry: &PluginEntry) -> Result<PathBuf, Error> {
    let candidate = &entry.candidate;
    let name = &candidate.manifest.name;
    match (&entry.status, &candidate.trust) {
        // What is not trusted may change as it likes: only its worker opens it.
        (Status::Active, Trust::Shipped | Trust::No(_)) => Ok(candidate.path.clone()),
        (Status::Active, Trust::ByHash(digest)) => {
            let folder = setup.folders.trusted().map_err(|error| {
                Error::new(ErrorKind::Io, error.to_string()).with_hint(error.hint())
            })?;
            private_copy(&candidate.path, digest, &folder)
                .map_err(|error| Error::new(ErrorKind::PluginMisbehaved, error.to_string()))
        }
        _ => {
            let text = format!("plugin `{name}` cannot be used");
            Err(Error::new(ErrorKind::PluginDisabled, text)
                .with_hint(format!("jaato plugin show {name}")))
        }
    }
}

fn load_error(error: &LoadError) -> Error {
    let made = Error::new(ErrorKind::PluginMisbehaved, error.to_string());
    match error.problem.hint() {
        Some(hint) => made.with_hint(hint),
        None => made,
    }
}
