//! The resources of an environment as a value, and back.

use std::sync::Arc;

use jaato_types::resources::ResourceAction;
use jaato_types::{Delta, Error, ErrorKind, SessionId};
use serde_json::{Map, Value, json};

use super::service::Asking;
use super::{Entry, Resources};
use crate::environments::{Environments, Member};

/// How long one resource may take to say what it can be made from again.
const SAVE_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// The resources of an environment as a value.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedResources {
    /// `{"entries": {NAME: {"state": …}}}`.
    pub value: Value,
    /// What could not be saved, a line each.
    pub problems: Vec<String>,
}

impl Environments {
    /// Asks each resource of a session's environment what it can be made from again. Those that
    /// cannot be are left out; what was restored and is not yet made is kept as it is.
    pub async fn save_resources(&self, session: &SessionId) -> SavedResources {
        match self.of(session) {
            Some(member) => member.scope().resources.save().await,
            None => SavedResources { value: json!({ "entries": {} }), problems: Vec::new() },
        }
    }

    /// Has each saved resource made again by the plugin that makes those of its name. Returns what
    /// could not be, a line each: it is kept, and tried again when a plugin asks for the resource.
    /// What an earlier call left to be tried again is forgotten.
    ///
    /// # Errors
    /// `invalid_arguments` where that is no value of [`Environments::save_resources`],
    /// `unavailable` where the session has no environment.
    pub async fn restore_resources(
        self: &Arc<Self>,
        session: &SessionId,
        value: &Value,
    ) -> Result<Vec<String>, Error> {
        let Some(member) = self.of(session) else {
            let text = "the session has no execution environment for its resources";
            return Err(Error::new(ErrorKind::Unavailable, text));
        };
        let resources = &member.scope().resources;
        let mut failed = Vec::new();
        for name in resources.take_saved(value)? {
            if let Err(error) = restore(self, &member, session, &name).await {
                failed.push(format!("the resource `{name}` was not restored: {error}"));
            }
        }
        Ok(failed)
    }
}

async fn restore(
    host: &Arc<Environments>,
    member: &Arc<Member>,
    session: &SessionId,
    name: &str,
) -> Result<(), Error> {
    let resources = Arc::clone(&member.scope().resources);
    if resources.get(name).is_some() {
        return Err(Error::new(ErrorKind::Conflict, "one of that name is there"));
    }
    let quiet = Arc::new(|_: Delta| {});
    Asking::of_host(host, resources, session, quiet).get_or_create(name).await.map(drop)
}

impl Resources {
    /// Asks each what it can be made from again.
    pub async fn save(&self) -> SavedResources {
        let (entries, waiting) = {
            let kept = self.lock();
            (kept.entries.clone(), kept.saved.clone())
        };
        let mut saved: Map<String, Value> =
            waiting.into_iter().map(|(name, state)| (name, json!({ "state": state }))).collect();
        let mut problems = Vec::new();
        for entry in entries {
            match entry.save().await {
                Ok(Value::Null) => {}
                Ok(state) => drop(saved.insert(entry.facts.name, json!({ "state": state }))),
                Err(problem) => problems.push(problem),
            }
        }
        SavedResources { value: json!({ "entries": saved }), problems }
    }

    /// Takes what was saved, in place of what was taken before; returns the names.
    ///
    /// # Errors
    /// `invalid_arguments` where it is something else; nothing is taken then.
    pub fn take_saved(&self, value: &Value) -> Result<Vec<String>, Error> {
        let wrong = |what: &str| {
            let text = format!("that are no saved resources: {what}");
            Error::new(ErrorKind::InvalidArguments, text)
        };
        let entries = value.get("entries").and_then(Value::as_object);
        let entries = entries.ok_or_else(|| wrong("`entries` is no object"))?;
        let mut states = Map::new();
        for (name, entry) in entries {
            let state =
                entry.get("state").ok_or_else(|| wrong(&format!("`{name}` has no `state`")));
            states.insert(name.clone(), state?.clone());
        }
        let names = states.keys().cloned().collect();
        self.lock().saved = states;
        Ok(names)
    }
}

impl Entry {
    async fn save(&self) -> Result<Value, String> {
        let failed = |error: &Error| format!("{} was not saved: {error}", self.title());
        if let Some(error) = self.keeper.ended() {
            return Err(failed(&error));
        }
        let saving = self.keeper.ask(self.to(ResourceAction::Save), None);
        let saved = tokio::time::timeout(SAVE_MAX, saving).await.unwrap_or_else(|_| {
            let text = format!("it took more than {} s", SAVE_MAX.as_secs());
            Err(Error::new(ErrorKind::Timeout, text))
        });
        saved.map_err(|error| failed(&error))
    }
}
