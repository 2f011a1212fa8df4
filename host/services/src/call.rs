//! The context of the call or instance that uses services.

use std::sync::Arc;

use jaato_catalog::GrantHolder;
use jaato_environments::CallProcesses;
use jaato_instances::{AskingInstance, CallAccess, CallSite, DeltaCallback, EnvironmentRequest};
use jaato_session::CallOrigin;
use jaato_types::grant::{grant_not_requested_error, required_grant, required_grant_in_hook};
use jaato_types::tool_calls::{CALLS_PER_CALL_MAX, CALLS_PER_MINUTE_MAX};
use jaato_types::{Asset, Error, ErrorKind, PluginName, SessionId};
use serde_json::Value;

use crate::blobs::BlobUploads;
use crate::children::ChildSessions;
use crate::credentials::PluginCredentials;
use crate::rate::RequestRateLimit;
use crate::request_bodies::RequestBodies;
use crate::shared::SharedServices;

/// Maximum number of local programs that one plugin instance may run outside of the session's
/// environment. These are tool servers, and a user has only a few.
const HOST_PROGRAMS_MAX: usize = 32;

/// The call or instance of a plugin that uses services.
pub struct ServiceCall {
    /// The state that all calls share.
    pub shared: Arc<SharedServices>,
    /// The plugin.
    pub plugin: PluginName,
    /// `[plugins.NAME]`, validated.
    pub config: Arc<Value>,
    /// The assets that the plugin declares.
    pub assets: Arc<[Asset]>,
    /// Its secrets and where they may go.
    pub credentials: Arc<PluginCredentials>,
    /// The services with a grant that it asks for, and what its grants are bound to. Without it,
    /// the plugin has no grants.
    pub grants: Option<Arc<GrantHolder>>,
    /// Programs on this machine, for execution environments only.
    pub processes: Option<CallProcesses>,
    /// Programs on this machine that the plugin runs with a grant.
    pub host_processes: CallProcesses,
    /// The site of the call.
    pub site: CallSite,
    /// For an untrusted plugin, the tools whose objects it may access.
    pub own_tools: Option<Arc<[String]>>,
    /// Receives the call's deltas.
    pub tell: DeltaCallback,
    /// The call's unfinished blobs.
    pub uploads: Arc<BlobUploads>,
    /// The call's unfinished request bodies.
    pub bodies: Arc<RequestBodies>,
    /// The sessions that it has opened.
    pub children: Arc<ChildSessions>,
    /// Whether the plugin has one instance for all sessions.
    pub is_host_wide: bool,
    /// Whether the instance itself asks, outside of its calls.
    pub is_instance: bool,
    /// Whether the plugin has hooks.
    pub has_hooks: bool,
    /// Counts the tool calls that it has made.
    pub made_calls: Arc<RequestRateLimit>,
    /// The instance that asks, once known.
    pub asker: AskingInstance,
}

impl ServiceCall {
    /// Creates a call of a plugin without credentials and programs.
    pub fn new(
        shared: Arc<SharedServices>,
        plugin: PluginName,
        config: Arc<Value>,
        assets: Arc<[Asset]>,
        site: CallSite,
        tell: DeltaCallback,
    ) -> Self {
        let host_processes =
            CallProcesses::new(Arc::clone(&shared.processes), site.session.clone());
        Self {
            shared,
            plugin,
            config,
            assets,
            credentials: Arc::default(),
            grants: None,
            processes: None,
            host_processes,
            site,
            own_tools: None,
            tell,
            uploads: Arc::default(),
            bodies: Arc::default(),
            children: Arc::default(),
            is_host_wide: false,
            is_instance: false,
            has_hooks: false,
            made_calls: Arc::default(),
            asker: AskingInstance::default(),
        }
    }

    /// Adds the plugin's credentials.
    #[must_use]
    pub fn with_credentials(self, credentials: Arc<PluginCredentials>) -> Self {
        Self { credentials, ..self }
    }

    /// Sets what the plugin's grants are bound to.
    #[must_use]
    pub fn with_grant_holder(self, holder: Arc<GrantHolder>) -> Self {
        Self { grants: Some(holder), ..self }
    }

    /// Restricts an untrusted plugin to the objects of its own tools.
    #[must_use]
    pub fn with_own_tools(self, own_tools: Arc<[String]>) -> Self {
        Self { own_tools: Some(own_tools), ..self }
    }

    /// Gives an execution environment access to programs on this machine.
    #[must_use]
    pub fn with_processes(self) -> Self {
        let processes = Arc::clone(&self.shared.processes);
        let processes = CallProcesses::new(processes, self.site.session.clone());
        Self { processes: Some(processes), ..self }
    }

    /// Returns the same context for the instance itself, without a receiver for deltas.
    pub fn for_instance(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            plugin: self.plugin.clone(),
            config: Arc::clone(&self.config),
            assets: Arc::clone(&self.assets),
            credentials: Arc::clone(&self.credentials),
            grants: self.grants.clone(),
            processes: self.processes.as_ref().map(CallProcesses::for_instance),
            host_processes: self.host_processes.for_instance().with_running_max(HOST_PROGRAMS_MAX),
            site: self.site_of_instance(),
            own_tools: self.own_tools.clone(),
            tell: Arc::new(|_| {}),
            uploads: Arc::default(),
            bodies: Arc::default(),
            children: Arc::default(),
            is_host_wide: self.is_host_wide,
            is_instance: true,
            has_hooks: self.has_hooks,
            made_calls: Arc::default(),
            asker: Arc::clone(&self.asker),
        }
    }

    /// Returns the origin of the tool calls that it makes.
    pub fn origin(&self) -> CallOrigin {
        CallOrigin {
            plugin: self.plugin.clone(),
            parent: self.site.call.clone(),
            depth: self.site.depth + 1,
            hold: self.site.hold.clone(),
        }
    }

    /// Counts a tool call that it makes.
    ///
    /// # Errors
    /// `limit_reached` if it has made too many.
    pub fn count_made_call(&self) -> Result<(), Error> {
        let (is_counted, most) = match self.is_instance {
            false => {
                let text = format!("one call may call tools at most {CALLS_PER_CALL_MAX} times");
                (self.made_calls.take_of_total(CALLS_PER_CALL_MAX), text)
            }
            true => {
                let text = format!(
                    "outside of its calls, a plugin may call at most {CALLS_PER_MINUTE_MAX} tools per minute"
                );
                (self.made_calls.take_in_minute(CALLS_PER_MINUTE_MAX), text)
            }
        };
        if is_counted { Ok(()) } else { Err(Error::new(ErrorKind::LimitReached, most)) }
    }

    /// Checks that the plugin currently has the grant that an operation needs.
    ///
    /// # Errors
    /// `permission_denied`.
    pub fn check_grant(&self, operation: &str) -> Result<(), Error> {
        // Otherwise a hook could use its instance to do things that the hook itself may not do.
        let acts_alone =
            self.site.access == CallAccess::Hook || (self.is_instance && self.has_hooks);
        let grant =
            if acts_alone { required_grant_in_hook(operation) } else { required_grant(operation) };
        let Some(grant) = grant else { return Ok(()) };
        match &self.grants {
            Some(holder) => self.shared.grants.check_grant(holder, grant),
            None => Err(grant_not_requested_error(&self.plugin, grant)),
        }
    }

    /// Returns the site of the instance. A host-wide instance has no session, because it outlives
    /// the session for which it was created.
    fn site_of_instance(&self) -> CallSite {
        let site = self.site.for_instance();
        if !self.is_host_wide {
            return site;
        }
        CallSite { facts: None, session: SessionId::from(""), ..site }
    }

    /// Builds a request that passes an operation on to the session's environment.
    pub fn environment_request(&self, operation: &str, request: Vec<u8>) -> EnvironmentRequest {
        EnvironmentRequest {
            plugin: self.plugin.clone(),
            session: self.site.session.clone(),
            asker: Arc::clone(&self.asker),
            operation: operation.to_owned(),
            request,
            files: self.site.files.clone(),
            tell: Arc::clone(&self.tell),
        }
    }
}
