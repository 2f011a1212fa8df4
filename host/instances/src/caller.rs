//! Calls plugins, from the check of a plugin's file to its instance's answer.

use std::pin::pin;
use std::sync::Arc;

use jaato_catalog::{Plugins, ScanInputs, Setup};
use jaato_loader::{EngineServices, RunningCall};
use jaato_log::Log;
use jaato_process::Supervisor;
use jaato_registry::{PluginEntry, Registry};
use jaato_session::Cancel;
use jaato_types::count::COUNT_TOKENS;
use jaato_types::hooks::{COMPLETE_WORDS, Hook, PREVIEW};
use jaato_types::large::{LARGE, LargeRequestKind};
use jaato_types::resources::RESOURCE;
use jaato_types::tools_set::AWAIT_TOOLS;
use jaato_types::{CONDITION, Delta, Error, ErrorKind, PULL_MODEL, SessionId};

use crate::call_site::{CallSite, DeltaCallback};
use crate::given_names::clean_delta;
use crate::instances::{
    AcquiredInstance, CallServices, InstanceLease, InstanceRequest, Instances, blame_plugin,
    drive_call,
};

/// How often a file may change while it is being opened.
const CHANGES_MAX: u32 = 5;

/// The operation that asks a plugin to run a command.
const COMMAND: &str = "command";

/// Creates the services of calls.
pub trait ServiceFactory: Send + Sync {
    /// Creates the services of one call.
    ///
    /// # Errors
    /// If the plugin gets no services, for example because its schema rejects the settings.
    fn services_for_call(
        &self,
        plugin: PluginInUse<'_>,
        site: &CallSite,
        tell: &DeltaCallback,
    ) -> Result<Arc<dyn CallServices>, Error>;

    /// Removes a plugin's keys from a text of that plugin.
    fn without_secrets(&self, plugin: &str, text: &str) -> String;

    /// Receives a new registry, before a plugin is called by it.
    fn follow_registry(&self, registry: &Registry);
}

/// A plugin that is called.
#[derive(Clone, Copy)]
pub struct PluginInUse<'a> {
    /// The plugin's entry.
    pub entry: &'a PluginEntry,
    /// The number of its edition.
    pub edition: u64,
    /// The current registry of names.
    pub registry: &'a Registry,
}

/// The operation that a plugin is asked to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FacetRequest<'a> {
    /// Run a tool.
    Tool(&'a str, StateEffect),
    /// Check whether a tool's condition holds. The host does not save the instance afterwards and
    /// shows no messages, because this is only a question.
    Condition,
    /// Run a command.
    Command,
    /// Perform an action on a resource that it keeps.
    Resource(StateEffect),
    /// Return a completion.
    Completion,
    /// Propose what a gc would remove.
    Plan,
    /// Return a completion or a plan for a request that is larger than a frame and that the call
    /// reads through its site.
    Large(LargeRequestKind),
    /// List its models.
    Models,
    /// Download a model to its server.
    PullModel,
    /// Answer a hook that it listed. The host shows no messages.
    Hook(Hook),
    /// Preview what a call to its tool would change.
    Preview,
    /// List the next words of its own command.
    CompleteWords,
    /// Count the tokens of a request.
    CountTokens,
    /// Wait for tools that it has not set yet.
    AwaitTools,
}

/// Whether a call may change the state that the instance saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateEffect {
    /// It only reads.
    Reads,
    /// It may change something.
    Changes,
}

/// Calls plugins for sessions. One per host.
pub struct PluginCaller {
    /// The host's setup.
    pub setup: Arc<Setup>,
    /// The plugins.
    pub plugins: Plugins,
    /// Their instances.
    pub instances: Instances,
    /// The host's log.
    pub log: Log,
    /// Starts the children that describe plugins.
    pub supervisor: Supervisor,
    /// Creates the services of calls.
    pub services: Arc<dyn ServiceFactory>,
}

/// An instance on loan for one call, and the call's services.
pub struct PreparedCall<'a> {
    caller: &'a PluginCaller,
    facet: FacetRequest<'a>,
    session: SessionId,
    lease: InstanceLease,
    services: Arc<dyn EngineServices>,
    tell: DeltaCallback,
}

impl PluginCaller {
    /// Asks a session's instance of a plugin, and waits for the answer's frame.
    ///
    /// # Errors
    /// If the plugin cannot be called, returns an error, or the call is cancelled.
    pub async fn call_plugin(
        &self,
        plugin: &str,
        facet: FacetRequest<'_>,
        site: CallSite,
        request: Vec<u8>,
        tell: &DeltaCallback,
        cancel: &Cancel,
    ) -> Result<Vec<u8>, Error> {
        self.prepare_call(plugin, facet, site, tell).await?.ask(request, cancel).await
    }

    /// Prepares a call, so that the caller can inspect it first.
    ///
    /// # Errors
    /// If the plugin cannot be called.
    pub async fn prepare_call<'a>(
        &'a self,
        plugin: &str,
        facet: FacetRequest<'a>,
        site: CallSite,
        tell: &DeltaCallback,
    ) -> Result<PreparedCall<'a>, Error> {
        let session = site.session.clone();
        let (lease, services) = self.acquire_instance(plugin, site, tell).await?;
        if facet.has_followers() {
            self.show_plugin_news(&session, plugin, tell);
        }
        let tell = Arc::clone(tell);
        Ok(PreparedCall { caller: self, facet, session, lease, services, tell })
    }

    /// Asks an instance that is held, which may already have a successor.
    ///
    /// # Errors
    /// As [`PluginCaller::call_plugin`].
    pub async fn ask_leased(
        &self,
        lease: InstanceLease,
        facet: FacetRequest<'_>,
        site: &CallSite,
        request: Vec<u8>,
        tell: &DeltaCallback,
        cancel: &Cancel,
    ) -> Result<Vec<u8>, Error> {
        let services = self.services_for_lease(&lease, site, tell)?;
        let (session, tell) = (site.session.clone(), Arc::clone(tell));
        let reached = PreparedCall { caller: self, facet, session, lease, services, tell };
        reached.ask(request, cancel).await
    }

    /// Returns a plugin's instance for a session, and the services for one call. If the file was
    /// replaced, the instance belongs to the current file.
    ///
    /// # Errors
    /// If the plugin cannot be called.
    pub async fn acquire_instance(
        &self,
        plugin: &str,
        site: CallSite,
        tell: &DeltaCallback,
    ) -> Result<(InstanceLease, Arc<dyn EngineServices>), Error> {
        let session = site.session.clone();
        let services = |entry: &PluginEntry, edition| self.services_of(entry, edition, &site, tell);
        for _ in 0..CHANGES_MAX {
            self.plugins
                .check_plugin_file(self.scan_inputs(&self.registry_follower()), plugin)
                .await;
            let catalog = self.plugins.catalog_for_call(&session, plugin);
            let wanted = InstanceRequest {
                setup: &self.setup,
                catalog: &catalog,
                plugin,
                session: &session,
                provider: site.provider.as_ref(),
                services: &services,
            };
            let Some(AcquiredInstance { lease, services, refused }) =
                self.instances.get(wanted).await.map_err(|error| blame_plugin(plugin, error))?
            else {
                self.check_plugin_files().await;
                continue;
            };
            if let Some(error) = refused {
                let name = lease.plugin();
                self.plugins.record_refusal(
                    &session,
                    name,
                    &catalog,
                    lease.catalog(),
                    &error.to_string(),
                );
            }
            services.bind_lease(lease.downgrade());
            return Ok((lease, services));
        }
        let text = format!("the file of plugin `{plugin}` is missing or keeps changing");
        Err(Error::new(ErrorKind::Unavailable, text)
            .with_hint("try again when the file is complete"))
    }

    /// Returns the current registry of names.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.plugins.current().registry)
    }

    /// Removes a plugin's keys from a text of that plugin.
    pub fn without_secrets(&self, plugin: &str, text: &str) -> String {
        self.services.without_secrets(plugin, text)
    }

    /// Checks the files of all plugins, if they are watched.
    pub async fn check_plugin_files(&self) {
        self.plugins.check_all_places(self.scan_inputs(&self.registry_follower())).await;
    }

    /// Describes plugins again, as [`Plugins::redescribe_plugins`].
    ///
    /// # Errors
    /// If no plugin has this name, or plugins are not watched.
    pub async fn describe_again(&self, plugin: Option<&str>) -> Result<Vec<String>, Error> {
        self.plugins.redescribe_plugins(self.scan_inputs(&self.registry_follower()), plugin).await
    }

    /// Saves the state of an instance that a call may have changed, for its successor. Awaited
    /// before the call is over, so that nothing is lost if the next call crashes the instance.
    async fn save_state(&self, instance: &InstanceLease, tell: &DeltaCallback) {
        if !self.instances.is_saved(instance) {
            return;
        }
        if let Some(text) = self.instances.save(instance).await {
            self.log.write_line(2, "host", &text);
            tell(Delta::notice(text));
        }
    }

    /// Shows a call's followers the news about its plugin.
    fn show_plugin_news(&self, session: &SessionId, plugin: &str, tell: &DeltaCallback) {
        for text in self.plugins.unseen_news(session, Some(plugin)) {
            tell(Delta::notice(text));
        }
    }

    /// Waits for a call, and shows misdeeds of plugins that are reported during it.
    async fn with_misdeeds<T>(&self, call: impl Future<Output = T>, show: impl Fn()) -> T {
        let mut call = pin!(call);
        loop {
            let misdeed = self.plugins.next_misdeed();
            tokio::select! {
                biased;
                answer = &mut call => return answer,
                () = misdeed => show(),
            }
        }
    }

    /// Creates the services of a further call on an instance, which may already have a successor.
    fn services_for_lease(
        &self,
        lease: &InstanceLease,
        site: &CallSite,
        tell: &DeltaCallback,
    ) -> Result<Arc<dyn EngineServices>, Error> {
        let (catalog, plugin) = (lease.catalog(), lease.plugin().as_str());
        let Some(entry) = catalog.registry.plugin(plugin) else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("plugin `{plugin}` does not exist"),
            )
            .with_hint("`jaato plugin list` lists the plugins"));
        };
        let services = self.services_of(entry, catalog.edition(plugin).number, site, tell)?;
        services.bind_lease(lease.downgrade());
        Ok(services)
    }

    fn services_of(
        &self,
        entry: &PluginEntry,
        edition: u64,
        site: &CallSite,
        tell: &DeltaCallback,
    ) -> Result<Arc<dyn CallServices>, Error> {
        let registry = self.registry();
        let plugin = PluginInUse { entry, edition, registry: &registry };
        self.services.services_for_call(plugin, site, tell)
    }

    fn registry_follower(&self) -> impl Fn(&Registry) + Send + Sync {
        |registry| self.services.follow_registry(registry)
    }

    fn scan_inputs<'a>(&'a self, follows: &'a (dyn Fn(&Registry) + Send + Sync)) -> ScanInputs<'a> {
        ScanInputs { setup: &self.setup, supervisor: &self.supervisor, follows }
    }
}

impl PreparedCall<'_> {
    /// Returns the instance.
    pub fn lease(&self) -> &InstanceLease {
        &self.lease
    }

    /// Asks, and waits for the answer's frame.
    ///
    /// # Errors
    /// The plugin's error without its keys, or `cancelled`.
    pub async fn ask(self, request: Vec<u8>, cancel: &Cancel) -> Result<Vec<u8>, Error> {
        let Self { caller, facet, session, lease, services, tell } = self;
        let running = facet.begin_call(&lease, request, services)?;
        let is_told = facet.passes_messages_on();
        let plugin = lease.plugin().as_str();
        let clean = |text: &str| caller.without_secrets(plugin, text);
        let take = |mut delta| {
            if is_told {
                clean_delta(&mut delta, clean);
                tell(delta);
            }
        };
        let driving = drive_call(running, cancel, take);
        let answer = if facet.has_followers() {
            let show = || caller.show_plugin_news(&session, plugin, &tell);
            caller.with_misdeeds(driving, show).await
        } else {
            driving.await
        };
        if facet.saves_state() {
            caller.save_state(&lease, &tell).await;
        }
        answer.map_err(|error| {
            let error = blame_plugin(plugin, error);
            let (message, hint) = (clean(&error.message), error.hint.map(|hint| clean(&hint)));
            Error { message, hint, ..error }
        })
    }
}

impl FacetRequest<'_> {
    /// Returns true if the call has followers, who see the news about its plugin.
    fn has_followers(self) -> bool {
        match self {
            Self::Tool(..) | Self::Command | Self::Completion | Self::PullModel => true,
            Self::Large(of) => of == LargeRequestKind::Complete,
            Self::Condition
            | Self::Resource(_)
            | Self::Plan
            | Self::Models
            | Self::CountTokens
            | Self::Hook(_)
            | Self::Preview
            | Self::CompleteWords
            | Self::AwaitTools => false,
        }
    }

    /// Returns true if the plugin's messages are passed on. Questions show none, except hooks, of
    /// which the caller shows only notices.
    fn passes_messages_on(self) -> bool {
        match self {
            Self::Condition | Self::Preview | Self::CompleteWords | Self::AwaitTools => false,
            Self::Tool(..)
            | Self::Command
            | Self::Hook(_)
            | Self::Resource(_)
            | Self::Completion
            | Self::Plan
            | Self::Large(_)
            | Self::Models
            | Self::CountTokens
            | Self::PullModel => true,
        }
    }

    /// Returns true if the instance's state is saved afterwards.
    fn saves_state(self) -> bool {
        match self {
            Self::Tool(_, effect) | Self::Resource(effect) => effect == StateEffect::Changes,
            // The plugin may keep the event it received. A question changes nothing, and the host
            // may stop polling one for a while.
            Self::Hook(hook) => matches!(
                hook,
                Hook::AfterTool | Hook::TurnEnd | Hook::BeforeGc | Hook::SessionEnd | Hook::Event
            ),
            Self::Condition
            | Self::Preview
            | Self::CompleteWords
            | Self::CountTokens
            | Self::Models
            | Self::AwaitTools => false,
            Self::Command | Self::Completion | Self::Plan | Self::Large(_) | Self::PullModel => {
                true
            }
        }
    }

    fn begin_call(
        self,
        lease: &InstanceLease,
        request: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        match self {
            Self::Tool(name, _) => lease.call_tool(name, request, services),
            Self::Condition => lease.begin_operation(CONDITION, request, services),
            Self::Command => lease.begin_operation(COMMAND, request, services),
            Self::Resource(_) => lease.begin_operation(RESOURCE, request, services),
            Self::Completion => lease.begin_completion(request, services),
            Self::Plan => lease.begin_plan(request, services),
            Self::Large(_) => lease.begin_operation(LARGE, request, services),
            Self::Models => lease.begin_model_list(services),
            Self::PullModel => lease.begin_operation(PULL_MODEL, request, services),
            Self::Hook(hook) => lease.begin_operation(hook.name(), request, services),
            Self::Preview => lease.begin_operation(PREVIEW, request, services),
            Self::CompleteWords => lease.begin_operation(COMPLETE_WORDS, request, services),
            Self::CountTokens => lease.begin_operation(COUNT_TOKENS, request, services),
            Self::AwaitTools => lease.begin_operation(AWAIT_TOOLS, request, services),
        }
    }
}
