//! Opens plugins when they are first called and keeps their instances.
//!
//! A plugin is opened once a process, and only to call it. One instance lives for each session, or one
//! for the process where the manifest says so.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use jaato_loader::{Executor, Instance, Library, LoadError, Plugin};
use jaato_registry::{PluginEntry, Status, Trust};
use jaato_types::{Error, ErrorKind, PluginName, Scope, SessionId};
use tokio::sync::Mutex;

use crate::services::PluginServices;
use crate::setup::Setup;
use crate::trusted::private_copy;

/// Plugins that were opened and their instances.
pub struct Instances {
    executor: Executor,
    /// The lock is held while a plugin is opened or an instance made, so that both happen once.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    plugins: HashMap<PluginName, Plugin>,
    instances: HashMap<(PluginName, Option<SessionId>), Arc<Instance>>,
}

impl Instances {
    /// Starts with nothing open.
    pub fn new(executor: Executor) -> Self {
        Self { executor, open: Mutex::new(Open::default()) }
    }

    /// Returns the instance of a plugin for a session.
    ///
    /// # Errors
    /// When the plugin cannot be used, opened, or makes no instance.
    pub async fn get(
        &self,
        setup: &Setup,
        entry: &PluginEntry,
        session: &SessionId,
        services: &Arc<PluginServices>,
    ) -> Result<Arc<Instance>, Error> {
        let manifest = &entry.candidate.manifest;
        let owner = match manifest.scope {
            Scope::Session => Some(session.clone()),
            Scope::Host => None,
        };
        let mut open = self.open.lock().await;
        let key = (manifest.name.clone(), owner);
        if let Some(instance) = open.instances.get(&key) {
            return Ok(Arc::clone(instance));
        }
        if !open.plugins.contains_key(&manifest.name) {
            let path = file_to_open(setup, entry)?;
            let opened = Library::open(&path).map_err(|error| load_error(&error))?;
            let plugin = Plugin::start(&self.executor, &opened).await?;
            open.plugins.insert(manifest.name.clone(), plugin);
        }
        let Some(plugin) = open.plugins.get(&manifest.name) else {
            unreachable!("inserted above");
        };
        let instance = plugin.create(services.for_instance(), None).await?;
        let instance = Arc::new(instance);
        open.instances.insert(key, Arc::clone(&instance));
        Ok(instance)
    }

    /// Counts the plugins that were opened.
    pub async fn opened(&self) -> usize {
        self.open.lock().await.plugins.len()
    }

    /// Closes the instances of a session, or with none those of the process.
    pub async fn close(&self, session: Option<&SessionId>) {
        let mut open = self.open.lock().await;
        let is_closed = |(_, owner): &(PluginName, Option<SessionId>)| owner.as_ref() == session;
        let keys: Vec<_> = open.instances.keys().filter(|key| is_closed(key)).cloned().collect();
        for key in keys {
            if let Some(instance) = open.instances.remove(&key) {
                // What it saved is kept by sessions that outlive the process, which none does.
                drop(instance.close().await);
            }
        }
    }
}

/// Returns the file to open: a shipped one where it lies, a trusted one as its private copy.
fn file_to_open(setup: &Setup, entry: &PluginEntry) -> Result<PathBuf, Error> {
    let candidate = &entry.candidate;
    let name = &candidate.manifest.name;
    match (&entry.status, &candidate.trust) {
        (Status::Active, Trust::Shipped) => Ok(candidate.path.clone()),
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
