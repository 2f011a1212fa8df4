//! What sessions and their ports share: the rooms of the host, put together.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use jaato_catalog::Setup;
use jaato_environments::Environments;
use jaato_instances::{CallSite, PluginCaller};
use jaato_log::Log;
use jaato_registry::Registry;
use jaato_services::HostServices;
use jaato_session::{CallPlace, CallScope, Emitter, SharedFacts};
use jaato_store::Ledger;
use jaato_terminals::Terminals;
use jaato_types::SessionId;
use parking_lot::Mutex;

/// What tells plugins of a session's events.
pub(crate) trait EventTap: Send + Sync {
    /// Gives what exists only once the session does.
    fn begin(&self, emitter: Emitter, facts: SharedFacts);

    /// Tells the plugins what still waits, as far as they take it in time, and ends.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// What sessions and their ports share.
pub struct Host {
    /// What tells plugins of each session's events, while it lives.
    pub(crate) taps: Mutex<HashMap<SessionId, Arc<dyn EventTap>>>,
    pub(crate) setup: Arc<Setup>,
    /// Where calls run, found with the first session.
    pub(crate) place: OnceLock<CallPlace>,
    /// Calls plugins.
    pub(crate) plugins: Arc<PluginCaller>,
    /// What plugins may ask for.
    pub(crate) services: Arc<HostServices>,
    pub(crate) environments: Arc<Environments>,
    /// What people see and join.
    pub(crate) terminals: Arc<Terminals>,
    pub(crate) log: Log,
    /// None where the person switched it off.
    pub(crate) ledger: Option<Ledger>,
}

impl Host {
    /// Returns who has which name at this moment.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.plugins.registry()
    }

    /// Says where a tool or a command stands in its session while it is not called.
    pub(crate) fn site_of_tool(&self, has_model: bool, name: &str, scope: &CallScope) -> CallSite {
        self.environments.site(&scope.session).for_tool(name, has_model, scope)
    }

    /// Forgets a session that is over: what its plugins keep open is closed first, then they end,
    /// then what they had in its environment.
    pub(crate) async fn close_session(&self, session: &SessionId) {
        let tap = self.taps.lock().remove(session);
        if let Some(tap) = tap {
            tap.end().await;
        }
        self.environments.close_resources(session).await;
        self.plugins.plugins.close_view(session);
        self.plugins.instances.close(Some(session)).await;
        self.environments.leave(session).await;
        self.terminals.leave(session);
        self.services.shared().sessions().leave(session);
        self.services.shared().blobs().leave(session).await;
    }
}
