//! The plugins that answer hooks, as the session calls them.
//!
//! The host asks a plugin if it is in use, lists the hook, and is shipped or was granted the hook.
//! Plugins are asked in order of name. Stricter rules apply to guards: a guard stays a guard until
//! the session ends, and denies every call if it cannot be asked.

mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_instances::{CallSite, DeltaCallback, FacetRequest, invalid_answer_error};
use jaato_registry::{PluginEntry, PluginFileTrust, PluginStatus, Registry};
use jaato_session::{EventEmitter, HookPlugin, HookScope, Hooks};
use jaato_types::grant::grant_missing_error;
use jaato_types::hooks::Hook;
use jaato_types::{Delta, Error, ErrorKind, Event, Frame, PluginKind, PluginName};
use parking_lot::Mutex;
use serde_json::Value;

pub(crate) use events::EventHooks;

use crate::host::RuntimeHost;

/// The hooks of one session.
pub(crate) struct PluginHooks {
    host: Arc<RuntimeHost>,
    /// The guards of this session so far, each with its file's digest if that matters.
    guards: Mutex<BTreeMap<PluginName, Option<String>>>,
}

impl PluginHooks {
    /// Creates the hooks. Opens no plugin.
    pub(crate) fn new(host: Arc<RuntimeHost>) -> Self {
        Self { host, guards: Mutex::default() }
    }

    fn guard_plugins(&self, registry: &Registry) -> Vec<PluginName> {
        let mut guards = self.guards.lock();
        guards.retain(|name, digest| !self.is_guard_revoked(registry, name, digest.as_deref()));
        let is_due =
            |entry| can_ask_hook(&self.host, entry, Hook::BeforeTool) && self.has_work(entry);
        let found =
            registry.plugins().iter().filter(|entry| is_due(entry) || self.may_be_guard(entry));
        guards.extend(found.map(|entry| {
            let digest = file_digest(entry).map(str::to_owned);
            (entry.candidate.manifest.name.clone(), digest)
        }));
        guards.keys().cloned().collect()
    }

    /// Returns true if a guard has something to check. A shipped guard without its files and
    /// settings has nothing.
    fn has_work(&self, entry: &PluginEntry) -> bool {
        entry.candidate.trust != PluginFileTrust::Shipped || self.host.services.has_work(entry)
    }

    /// Returns true if the user themselves ended a plugin's role as a guard: they revoked its grant
    /// for the same file, or trust other content that does not want to be a guard.
    fn is_guard_revoked(
        &self,
        registry: &Registry,
        name: &PluginName,
        digest: Option<&str>,
    ) -> bool {
        let entry = registry.plugin(name.as_str()).filter(|it| it.status == PluginStatus::Active);
        let (Some(entry), None) = (entry, self.host.setup.grants.read_problem()) else {
            return false;
        };
        if !has_hook(entry, Hook::BeforeTool) {
            return entry.candidate.trust.is_trusted();
        }
        file_digest(entry) == digest && !can_ask_hook(&self.host, entry, Hook::BeforeTool)
    }

    /// Returns true if a plugin that cannot be asked may have a grant to be a guard.
    fn may_be_guard(&self, entry: &PluginEntry) -> bool {
        // A damaged record may contain the grant.
        let is_unknown = entry.status == PluginStatus::Active
            && has_hook(entry, Hook::BeforeTool)
            && entry.candidate.trust.is_trusted()
            && self.host.setup.grants.read_problem().is_some();
        is_unknown || self.is_broken_guard(entry)
    }

    /// Returns true if a plugin that cannot be used was supposed to be a guard.
    fn is_broken_guard(&self, entry: &PluginEntry) -> bool {
        let (manifest, grant) = (&entry.candidate.manifest, Hook::BeforeTool.name());
        let is_broken = matches!(entry.status, PluginStatus::Failed(_));
        if !is_broken || !manifest.kinds.contains(&PluginKind::Hook) {
            return false;
        }
        let grants = &self.host.setup.grants;
        let was_granted =
            |digest| grants.granted_services(manifest.name.as_str(), digest).contains(grant);
        file_digest(entry).map_or(entry.candidate.trust == PluginFileTrust::Shipped, was_granted)
    }
}

/// Lists the plugins that may be asked a hook and have work, by name.
fn plugins_with_hook(host: &RuntimeHost, registry: &Registry, hook: Hook) -> BTreeSet<PluginName> {
    let is_due =
        |entry: &&PluginEntry| can_ask_hook(host, entry, hook) && host.services.has_work(entry);
    let found = registry.plugins().iter().filter(is_due);
    found.map(|entry| entry.candidate.manifest.name.clone()).collect()
}

fn can_ask_hook(host: &RuntimeHost, entry: &PluginEntry, hook: Hook) -> bool {
    // The grant comes last because it reads a file.
    entry.status == PluginStatus::Active
        && has_hook(entry, hook)
        && host.setup.grants.has_grant(entry, hook.name())
}

fn file_digest(entry: &PluginEntry) -> Option<&str> {
    match &entry.candidate.trust {
        PluginFileTrust::ByHash(digest) | PluginFileTrust::No(digest) => Some(digest),
        PluginFileTrust::Shipped | PluginFileTrust::WorkspaceNot => None,
    }
}

fn has_hook(entry: &PluginEntry, hook: Hook) -> bool {
    entry.description().is_some_and(|description| description.hooks.contains(&hook))
}

fn hook_plugin(registry: &Registry, name: PluginName, hook: Hook) -> HookPlugin {
    let source = registry.event_source_name(&name).to_owned();
    let description = registry.plugin(name.as_str()).and_then(PluginEntry::description);
    let deadline_ms = description.and_then(|it| it.hook_deadlines_ms.get(&hook).copied());
    HookPlugin { name, source, deadline_ms }
}

impl Hooks for PluginHooks {
    fn plugins_with_hook(&self, hook: Hook) -> Vec<HookPlugin> {
        let registry = self.host.registry();
        let names: Vec<PluginName> = match hook {
            Hook::BeforeTool => self.guard_plugins(&registry),
            _ => plugins_with_hook(&self.host, &registry, hook).into_iter().collect(),
        };
        names.into_iter().map(|name| hook_plugin(&registry, name, hook)).collect()
    }

    fn open_plugin(
        &self,
        plugin: &PluginName,
        scope: HookScope,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let (host, plugin) = (Arc::clone(&self.host), plugin.clone());
        Box::pin(async move {
            let site = hook_call_site(&host, &scope);
            host.plugins.acquire_instance(plugin.as_str(), site, &silent_progress()).await.map(drop)
        })
    }

    fn ask_hook(
        &self,
        plugin: &PluginName,
        hook: Hook,
        request: Value,
        scope: HookScope,
    ) -> BoxFuture<'static, Result<Value, Error>> {
        let (host, plugin) = (Arc::clone(&self.host), plugin.clone());
        Box::pin(async move {
            let frame = Frame::write(&request)
                .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
            let answer = ask_plugin(&host, &plugin, hook, frame, &scope).await?;
            Frame::read(&answer).map_err(invalid_answer_error(plugin.as_str()))
        })
    }
}

/// Asks a plugin if it may currently be asked.
async fn ask_plugin(
    host: &RuntimeHost,
    plugin: &PluginName,
    hook: Hook,
    frame: Vec<u8>,
    scope: &HookScope,
) -> Result<Vec<u8>, Error> {
    let name = plugin.as_str();
    let registry = host.registry();
    let Some(entry) = registry.plugin(name) else {
        return Err(Error::new(ErrorKind::NotFound, format!("plugin `{plugin}` is gone")));
    };
    if let Some((reason, _)) = entry.unusable_reason() {
        return Err(Error::new(ErrorKind::PluginDisabled, format!("it cannot be used: {reason}")));
    }
    if !host.setup.grants.has_grant(entry, hook.name()) {
        return Err(grant_missing_error(plugin, hook.name()));
    }
    let (facet, site) = (FacetRequest::Hook(hook), hook_call_site(host, scope));
    let tell = match &scope.notices {
        Some(emitter) => notice_callback(emitter.clone(), registry.event_source_name(plugin)),
        None => silent_progress(),
    };
    host.plugins.call_plugin(name, facet, site, frame, &tell, &scope.cancel).await
}

fn hook_call_site(host: &RuntimeHost, scope: &HookScope) -> CallSite {
    let facts = Some(scope.facts.clone());
    let hold = scope.hold.clone();
    CallSite { facts, hold, ..host.environments.call_site(&scope.session).for_hook() }
}

fn silent_progress() -> DeltaCallback {
    Arc::new(|_| {})
}

/// Shows the notices of a hook, and nothing else that it emits.
fn notice_callback(emitter: EventEmitter, source: &str) -> DeltaCallback {
    let source = source.to_owned();
    Arc::new(move |delta| {
        if let Delta::Notice { text, .. } = delta {
            emitter.emit(Event::Notice { source: source.clone(), text });
        }
    })
}
