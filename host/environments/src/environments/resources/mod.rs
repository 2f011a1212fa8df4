//! An environment's resources: what plugins keep open in it, closed before the environment in
//! reverse order.
//!
//! Invariants: a name belongs to one resource. A resource removed from the list is always closed,
//! even if the caller stops waiting. Only one caller at a time creates the resource of a name.

mod keeper;
mod service;

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_types::resources::{
    NAME_BYTES_MAX, RESOURCES_MAX, ResourceAction, ResourceCall, ResourceCloseAnswer,
    ResourceFacts, ResourceRequest,
};
use jaato_types::{Error, ErrorKind, SessionId};
use parking_lot::Mutex as SyncMutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

pub use service::{ResourceCaller, is_operation};

/// How long closing one resource may take.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// How long closing may take in total. After that, each resource gets only [`CLOSE_LATE_MAX`],
/// because a user is waiting.
const CLOSE_ALL_MAX: Duration = Duration::from_secs(10);

/// How long closing a resource may take after the total time is used up.
const CLOSE_LATE_MAX: Duration = Duration::from_millis(50);

/// How long creating a resource may take, which may include downloading a browser or a server. Also
/// breaks deadlocks of factories that wait for each other.
const CREATE_MAX: Duration = Duration::from_secs(60);

/// Keeps a resource.
pub trait ResourceKeeper: Send + Sync {
    /// Sends a request to a resource.
    fn request_action(&self, request: ResourceRequest) -> BoxFuture<'static, Result<Value, Error>>;

    /// Returns why its resources no longer exist, if they are gone.
    fn end_error(&self) -> Option<Error>;
}

/// A registered resource.
#[derive(Clone)]
pub struct ResourceEntry {
    pub facts: ResourceFacts,
    /// The plugin's number for it.
    pub number: u64,
    /// The session whose instance keeps it, or the id of the environment.
    pub session: SessionId,
    pub keeper: Arc<dyn ResourceKeeper>,
}

/// The resources of one environment.
#[derive(Default)]
pub struct EnvironmentResources {
    kept: SyncMutex<ResourceTable>,
    /// Locked while a resource with this name is created. Only names of factories get here.
    making: SyncMutex<HashMap<String, Arc<Mutex<()>>>>,
}

#[derive(Default)]
struct ResourceTable {
    /// In the order of registration.
    entries: Vec<ResourceEntry>,
    /// Sessions that are closing.
    closing: HashSet<SessionId>,
    /// Whether the environment is closing.
    is_closing: bool,
}

impl EnvironmentResources {
    /// Registers a resource. First closes any resource with the same name, and returns the result
    /// of that.
    ///
    /// # Errors
    /// If the name is invalid, there are too many resources, or the environment or session is
    /// closing. Registers nothing then.
    pub async fn set(&self, entry: ResourceEntry) -> Result<ResourceCloseAnswer, Error> {
        check_name(&entry.facts.name)?;
        let mut closed = ResourceCloseAnswer::default();
        loop {
            let old = {
                let mut kept = self.lock_table();
                kept.check_open(&entry.session)?;
                match kept.position(&entry.facts.name) {
                    Some(at) => kept.entries.remove(at),
                    None if kept.entries.len() >= RESOURCES_MAX => {
                        let text = format!("the environment already has {RESOURCES_MAX} resources");
                        return Err(Error::new(ErrorKind::LimitReached, text)
                            .with_hint("remove unused resources"));
                    }
                    None => {
                        kept.entries.push(entry);
                        return Ok(closed);
                    }
                }
            };
            closed.found = true;
            closed.problem = old.close(CLOSE_MAX).await.err().or(closed.problem);
        }
    }

    /// Finds a resource, unless it was lost with its worker.
    pub fn get(&self, name: &str) -> Option<ResourceFacts> {
        self.find_entry(name)
            .filter(|entry| entry.keeper.end_error().is_none())
            .map(|entry| entry.facts)
    }

    /// Lists the living resources in the order of registration.
    pub fn list(&self) -> Vec<ResourceFacts> {
        let entries = self.lock_table().entries.clone();
        let living = entries.into_iter().filter(|entry| entry.keeper.end_error().is_none());
        living.map(|entry| entry.facts).collect()
    }

    /// Sends a request to a resource.
    ///
    /// # Errors
    /// If the resource is missing or gone, or its own error.
    pub async fn call(&self, call: ResourceCall) -> Result<Value, Error> {
        let Some(entry) = self.find_entry(&call.name) else {
            return Err(not_found_error(&call.name, "`resources.list` shows the existing ones"));
        };
        if let Some(error) = entry.keeper.end_error() {
            return Err(entry.gone_error(&error));
        }
        let ResourceCall { operation, arguments, .. } = call;
        let mut request = entry.request_for(ResourceAction::Call);
        request.operation = operation;
        request.arguments = arguments;
        entry.keeper.request_action(request).await
    }

    /// Closes and removes a resource.
    pub async fn remove(&self, name: &str) -> ResourceCloseAnswer {
        let old = {
            let mut kept = self.lock_table();
            kept.position(name).map(|at| kept.entries.remove(at))
        };
        let Some(old) = old else { return ResourceCloseAnswer::default() };
        ResourceCloseAnswer { found: true, problem: old.close(CLOSE_MAX).await.err() }
    }

    /// Finds a resource or creates it, once for any number of concurrent callers. After a failure
    /// nothing remains, and the next caller tries again.
    ///
    /// # Errors
    /// The error from creating it, otherwise as [`EnvironmentResources::set`].
    pub async fn get_or_create(
        &self,
        name: &str,
        session: &SessionId,
        make: impl Future<Output = Result<ResourceEntry, Error>> + Send,
    ) -> Result<ResourceFacts, Error> {
        check_name(name)?;
        let gate = {
            let mut making = self.making.lock();
            Arc::clone(making.entry(name.to_owned()).or_default())
        };
        let _turn = gate.lock().await;
        if let Some(facts) = self.get(name) {
            return Ok(facts);
        }
        self.lock_table().check_open(session)?;
        let made = tokio::time::timeout(CREATE_MAX, make).await;
        let entry = made.unwrap_or_else(|_| {
            let seconds = CREATE_MAX.as_secs();
            let text = format!("the resource `{name}` was not created within {seconds} s");
            Err(Error::new(ErrorKind::Timeout, text))
        })?;
        let facts = entry.facts.clone();
        if let Err(error) = self.set(entry.clone()).await {
            // No one owns it, so a failure to close it does not concern the caller.
            let _ = entry.close(CLOSE_MAX).await;
            return Err(error);
        }
        Ok(facts)
    }

    /// Closes a session's resources, the last one first, and refuses further ones. Returns the
    /// errors.
    pub(super) async fn close_session_resources(&self, session: &SessionId) -> Vec<String> {
        self.lock_table().closing.insert(session.clone());
        self.close_matching(|entry| entry.session == *session).await
    }

    /// Marks a closing session as ended.
    pub(super) fn mark_session_ended(&self, session: &SessionId) {
        self.lock_table().closing.remove(session);
    }

    /// Closes all resources, the last one first. Returns the errors.
    pub(super) async fn close(&self) -> Vec<String> {
        self.lock_table().is_closing = true;
        let failed = self.close_matching(|_| true).await;
        // Sessions may enter the environment again.
        self.lock_table().is_closing = false;
        failed
    }

    async fn close_matching(&self, is_meant: impl Fn(&ResourceEntry) -> bool) -> Vec<String> {
        let (begun, mut failed) = (Instant::now(), Vec::new());
        loop {
            let last = {
                let mut kept = self.lock_table();
                kept.entries.iter().rposition(&is_meant).map(|at| kept.entries.remove(at))
            };
            let Some(entry) = last else { return failed };
            let is_late = begun.elapsed() >= CLOSE_ALL_MAX;
            failed
                .extend(entry.close(if is_late { CLOSE_LATE_MAX } else { CLOSE_MAX }).await.err());
        }
    }

    fn find_entry(&self, name: &str) -> Option<ResourceEntry> {
        let kept = self.lock_table();
        kept.position(name).map(|at| kept.entries[at].clone())
    }

    fn lock_table(&self) -> MutexGuard<'_, ResourceTable> {
        self.kept.lock()
    }
}

impl ResourceTable {
    fn position(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.facts.name == name)
    }

    fn check_open(&self, session: &SessionId) -> Result<(), Error> {
        if !self.is_closing && !self.closing.contains(session) {
            return Ok(());
        }
        let text = "the session is closing and accepts no more resources";
        Err(Error::new(ErrorKind::Unavailable, text))
    }
}

impl ResourceEntry {
    /// Closes the resource, even if the caller stops waiting. It must already be removed from the
    /// list.
    async fn close(&self, bound: Duration) -> Result<(), String> {
        let failed = |error: &Error| format!("{} was not closed: {error}", self.title());
        if let Some(error) = self.keeper.end_error() {
            return Err(self.gone_error(&error).message);
        }
        let closing = self.keeper.request_action(self.request_for(ResourceAction::Close));
        let closing = tokio::spawn(async move { tokio::time::timeout(bound, closing).await });
        match closing.await {
            Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err(error))) => Err(failed(&error)),
            Ok(Err(_)) => {
                let text = format!("it took more than {} ms", bound.as_millis());
                Err(failed(&Error::new(ErrorKind::Timeout, text)))
            }
            Err(error) => Err(failed(&Error::new(ErrorKind::HostBug, error.to_string()))),
        }
    }

    fn request_for(&self, action: ResourceAction) -> ResourceRequest {
        ResourceRequest::new(action, &self.facts.name, self.number)
    }

    fn gone_error(&self, error: &Error) -> Error {
        let text = format!("{} was lost with its instance: {}", self.title(), error.message);
        Error::new(ErrorKind::PluginCrashed, text)
    }

    fn title(&self) -> String {
        format!("the resource `{}` of plugin `{}`", self.facts.name, self.facts.plugin)
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(char::is_control) {
        return Ok(());
    }
    let text = format!("a resource's name is 1 to {NAME_BYTES_MAX} bytes, in one line");
    Err(Error::new(ErrorKind::InvalidArguments, text))
}

fn not_found_error(name: &str, hint: &str) -> Error {
    let text = format!("unknown resource `{name}`");
    Error::new(ErrorKind::NotFound, text).with_hint(hint)
}

#[cfg(test)]
mod tests;
