//! What is known of the call, or of the instance, that asks for services.

use std::sync::Arc;

use jaato_catalog::GrantHolder;
use jaato_environments::CallProcesses;
use jaato_instances::{AskingInstance, CallSite, EnvironmentRequest, Tell};
use jaato_session::CallOrigin;
use jaato_types::grant::{grant_of, not_asked_for};
use jaato_types::tool_calls::{CALLS_PER_CALL_MAX, CALLS_PER_MINUTE_MAX};
use jaato_types::{Asset, Error, ErrorKind, PluginName, SessionId};
use serde_json::Value;

use crate::blobs::Uploads;
use crate::bodies::Bodies;
use crate::children::Children;
use crate::credentials::Credentials;
use crate::rate::Rate;
use crate::shared::Shared;

/// Programs of this machine that one instance of a plugin may have running outside of the session's
/// environment: servers of tools, of which a person has a handful.
const HOST_PROGRAMS_MAX: usize = 32;

/// Who asks for services, for one call or one instance of one plugin.
pub struct Call {
    /// What all calls share.
    pub shared: Arc<Shared>,
    /// The plugin.
    pub plugin: PluginName,
    /// `[plugins.NAME]`, checked.
    pub config: Arc<Value>,
    /// What the plugin declares.
    pub assets: Arc<[Asset]>,
    /// Its secrets, and where they may go.
    pub credentials: Arc<Credentials>,
    /// What it asks for that needs a grant, and by what it has it; without one it has nothing.
    pub grants: Option<Arc<GrantHolder>>,
    /// Programs of this machine: an execution environment's alone.
    pub processes: Option<CallProcesses>,
    /// Programs of this machine that it runs where it was granted that.
    pub host_processes: CallProcesses,
    /// Where the call stands.
    pub site: CallSite,
    /// The tools to whose objects it is kept, where it is not trusted.
    pub own_tools: Option<Arc<[String]>>,
    /// Who follows the call.
    pub tell: Tell,
    /// The blobs that it has begun to write.
    pub uploads: Arc<Uploads>,
    /// The bodies of requests that it has begun.
    pub bodies: Arc<Bodies>,
    /// The sessions that it has opened.
    pub children: Arc<Children>,
    /// Whether the plugin has one instance for all sessions.
    pub is_host_wide: bool,
    /// Whether the instance asks, outside of its calls.
    pub is_instance: bool,
    /// The tools that it has called.
    pub made_calls: Arc<Rate>,
    /// The instance that asks, once it is known.
    pub asker: AskingInstance,
}

impl Call {
    /// A call of a plugin that has no credentials and runs no programs.
    pub fn new(
        shared: Arc<Shared>,
        plugin: PluginName,
        config: Arc<Value>,
        assets: Arc<[Asset]>,
        site: CallSite,
        tell: Tell,
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
            made_calls: Arc::default(),
            asker: AskingInstance::default(),
        }
    }

    /// Adds the plugin's credentials.
    #[must_use]
    pub fn with_credentials(self, credentials: Arc<Credentials>) -> Self {
        Self { credentials, ..self }
    }

    /// Says by what the plugin has its grants.
    #[must_use]
    pub fn granted_to(self, holder: Arc<GrantHolder>) -> Self {
        Self { grants: Some(holder), ..self }
    }

    /// Keeps a plugin that is not trusted to the objects of these tools, its own.
    #[must_use]
    pub fn kept_to(self, own_tools: Arc<[String]>) -> Self {
        Self { own_tools: Some(own_tools), ..self }
    }

    /// Lends programs of this machine, to an execution environment.
    #[must_use]
    pub fn with_processes(self) -> Self {
        let processes = Arc::clone(&self.shared.processes);
        let processes = CallProcesses::new(processes, self.site.session.clone());
        Self { processes: Some(processes), ..self }
    }

    /// The same for the instance itself, with nobody to tell.
    pub fn for_instance(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            plugin: self.plugin.clone(),
            config: Arc::clone(&self.config),
            assets: Arc::clone(&self.assets),
            credentials: Arc::clone(&self.credentials),
            grants: self.grants.clone(),
            processes: self.processes.as_ref().map(CallProcesses::for_instance),
            host_processes: self.host_processes.for_instance().at_most(HOST_PROGRAMS_MAX),
            site: self.site_of_instance(),
            own_tools: self.own_tools.clone(),
            tell: Arc::new(|_| {}),
            uploads: Arc::default(),
            bodies: Arc::default(),
            children: Arc::default(),
            is_host_wide: self.is_host_wide,
            is_instance: true,
            made_calls: Arc::default(),
            asker: Arc::clone(&self.asker),
        }
    }

    /// Tells for whom it calls tools.
    pub fn origin(&self) -> CallOrigin {
        CallOrigin {
            plugin: self.plugin.clone(),
            parent: self.site.call.clone(),
            depth: self.site.depth + 1,
            hold: self.site.hold.clone(),
        }
    }

    /// Counts a tool that it calls.
    ///
    /// # Errors
    /// `limit_reached` where it has called too many.
    pub fn count_made_call(&self) -> Result<(), Error> {
        let (is_counted, most) = match self.is_instance {
            false => {
                let text = format!("a call may call tools {CALLS_PER_CALL_MAX} times");
                (self.made_calls.take_of(CALLS_PER_CALL_MAX), text)
            }
            true => {
                let text =
                    format!("a plugin may by itself call {CALLS_PER_MINUTE_MAX} tools a minute");
                (self.made_calls.take_in_minute(CALLS_PER_MINUTE_MAX), text)
            }
        };
        if is_counted { Ok(()) } else { Err(Error::new(ErrorKind::LimitReached, most)) }
    }

    /// Checks that the plugin has the grant that an operation needs, as it stands at this moment.
    ///
    /// # Errors
    /// `permission_denied`.
    pub fn check_grant(&self, operation: &str) -> Result<(), Error> {
        let Some(grant) = grant_of(operation) else { return Ok(()) };
        match &self.grants {
            Some(holder) => self.shared.grants.check(holder, grant),
            None => Err(not_asked_for(&self.plugin, grant)),
        }
    }

    /// Says where the instance stands: a host-wide one in no session, as it outlives the one that
    /// it was made for.
    fn site_of_instance(&self) -> CallSite {
        let site = self.site.for_instance();
        if !self.is_host_wide {
            return site;
        }
        CallSite { facts: None, session: SessionId::from(""), ..site }
    }

    /// Passes an operation on to the session's environment.
    pub fn to_environment(&self, operation: &str, request: Vec<u8>) -> EnvironmentRequest {
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
