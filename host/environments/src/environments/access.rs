//! A session's environment as its plugins' calls access it.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use jaato_instances::{EnvironmentAccess, EnvironmentRequest};
use jaato_loader::EngineServiceAnswer;
use jaato_terminals::{TerminalServices, is_operation as is_terminal_operation};
use jaato_types::{Error, ErrorKind, SessionId};

use super::resources::ResourceCaller;
use super::{EnvironmentMember, EnvironmentResources, Environments};

/// The execution environment of a session.
pub struct SessionEnvironment {
    /// Weak, because an instance holds this object, and the environments hold instances.
    host: Weak<Environments>,
    /// `None` for the environment's own plugin.
    member: Option<Arc<EnvironmentMember>>,
    resources: Arc<EnvironmentResources>,
}

impl SessionEnvironment {
    /// Returns a session's environment, if it has one.
    pub fn for_session(host: &Arc<Environments>, session: &SessionId) -> Option<Self> {
        let member = host.member_of(session)?;
        let resources = Arc::clone(member.scope().resources());
        Some(Self { host: Arc::downgrade(host), member: Some(member), resources })
    }

    /// Returns the part that the environment's own plugin can access: its resources.
    pub fn for_own_plugin(host: &Arc<Environments>, resources: &Arc<EnvironmentResources>) -> Self {
        Self { host: Arc::downgrade(host), member: None, resources: Arc::clone(resources) }
    }
}

impl EnvironmentAccess for SessionEnvironment {
    fn call(
        &self,
        asked: EnvironmentRequest,
    ) -> Option<BoxFuture<'static, Result<EngineServiceAnswer, Error>>> {
        let member = self.member.as_ref()?;
        let Some(host) = self.host.upgrade() else { return Some(session_ended_error()) };
        let EnvironmentRequest { plugin, session, operation, request, files, tell, .. } = asked;
        if is_terminal_operation(&operation) {
            let board = Arc::clone(&host.terminals);
            return Some(TerminalServices { board, plugin, session }.call(&operation, request));
        }
        Some(member.call(host, &plugin, &operation, (request, files), tell))
    }

    fn call_resources(
        &self,
        asked: EnvironmentRequest,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        let Some(host) = self.host.upgrade() else { return session_ended_error() };
        let EnvironmentRequest { plugin, session, asker, operation, request, tell, .. } = asked;
        let resources = Arc::clone(&self.resources);
        let asking = ResourceCaller { host, resources, plugin, session, asker, tell };
        Box::pin(async move { asking.answer_operation(&operation, &request).await })
    }
}

fn session_ended_error() -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
    let error = Error::new(ErrorKind::Unavailable, "the host has ended");
    Box::pin(std::future::ready(Err(error)))
}
