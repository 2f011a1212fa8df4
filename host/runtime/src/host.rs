//! The parts of the host that sessions and their ports share.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use jaato_catalog::Setup;
use jaato_environments::Environments;
use jaato_instances::{CallSite, PluginCaller};
use jaato_log::Log;
use jaato_registry::Registry;
use jaato_services::HostServices;
use jaato_session::{CallEnvironment, CallScope, EventEmitter, SharedFacts};
use jaato_sessions::SessionStore;
use jaato_store::Ledger;
use jaato_terminals::SharedTerminals;
use jaato_types::SessionId;
use parking_lot::Mutex;

use crate::program::ProgramParts;

/// Reports a session's events to plugins.
pub(crate) trait EventTap: Send + Sync {
    /// Provides the parts that exist only once the session does.
    fn begin(&self, emitter: EventEmitter, facts: SharedFacts);

    /// Reports the remaining events until a time limit, and stops.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// Where a session is saved, and so the sessions that it opens.
#[derive(Clone)]
pub(crate) struct SaveLocation {
    pub(crate) store: SessionStore,
    /// The workspace's root, as text.
    pub(crate) workspace: String,
}

/// The state that sessions and their ports share.
pub struct RuntimeHost {
    /// The event tap of each open session.
    pub(crate) taps: Mutex<HashMap<SessionId, Arc<dyn EventTap>>>,
    /// Where each open session is saved.
    pub(crate) saved_in: Mutex<HashMap<SessionId, SaveLocation>>,
    /// The additions of the embedding program.
    pub(crate) program: ProgramParts,
    pub(crate) setup: Arc<Setup>,
    /// Where calls run. Set by the first session.
    pub(crate) place: OnceLock<CallEnvironment>,
    /// Calls plugins.
    pub(crate) plugins: Arc<PluginCaller>,
    /// The services that plugins may use.
    pub(crate) services: Arc<HostServices>,
    pub(crate) environments: Arc<Environments>,
    /// The terminals that users see and join.
    pub(crate) terminals: Arc<SharedTerminals>,
    pub(crate) log: Log,
    /// `None` if the user disabled it.
    pub(crate) ledger: Option<Ledger>,
}

impl RuntimeHost {
    /// Returns the current registry of names.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.plugins.registry()
    }

    /// Returns the site of a tool or a command in its session while it is not being called.
    pub(crate) fn tool_call_site(
        &self,
        has_model: bool,
        name: &str,
        scope: &CallScope,
    ) -> CallSite {
        self.environments.call_site(&scope.session).for_tool(name, has_model, scope)
    }

    /// Removes a finished session: first closes the resources of its plugins, then ends their
    /// instances, then removes what they had in its environment.
    pub(crate) async fn close_session(&self, session: &SessionId) {
        if let Ok(handle) = self.services.shared_services().sessions().find(session) {
            handle.notify_end().await;
        }
        self.saved_in.lock().remove(session);
        let tap = self.taps.lock().remove(session);
        if let Some(tap) = tap {
            tap.end().await;
        }
        self.environments.close_resources(session).await;
        self.plugins.plugins.close_view(session);
        self.plugins.instances.close(Some(session)).await;
        self.environments.leave_environment(session).await;
        self.terminals.remove_session(session);
        self.services.shared_services().sessions().forget_session(session);
        self.services.shared_services().blobs().remove_session(session).await;
    }
}
