//! Calls plugins: from the look at a plugin's file to the answer that its instance gives.

use std::sync::Arc;

use jaato_catalog::{Plugins, ScanInputs, Setup};
use jaato_loader::{RunningCall, Services};
use jaato_log::Log;
use jaato_process::Supervisor;
use jaato_registry::{PluginEntry, Registry};
use jaato_session::Cancel;
use jaato_types::count::COUNT_TOKENS;
use jaato_types::hooks::{COMPLETE_WORDS, Hook, PREVIEW};
use jaato_types::large::{LARGE, LargeOf};
use jaato_types::resources::RESOURCE;
use jaato_types::tools_set::AWAIT_TOOLS;
use jaato_types::{CONDITION, Delta, Error, ErrorKind, PULL_MODEL, SessionId};

use crate::given_names::clean_delta;
use crate::instances::{CallServices, Got, Instances, Lease, Wanted, drive};
use crate::site::{CallSite, Tell};

/// How often a file may change under the hands of who opens it.
const CHANGES_MAX: u32 = 5;

/// The operation by which a plugin is asked to run a command.
const COMMAND: &str = "command";

/// Makes the services of calls.
pub trait ServiceFactory: Send + Sync {
    /// Makes the services of one call.
    ///
    /// # Errors
    /// What keeps the plugin from having any: settings that its schema refuses, say.
    fn services(
        &self,
        plugin: PluginInUse<'_>,
        site: &CallSite,
        tell: &Tell,
    ) -> Result<Arc<dyn CallServices>, Error>;

    /// Takes the keys of a plugin out of a text that it gives.
    fn without_secrets(&self, plugin: &str, text: &str) -> String;

    /// Hears of a registry that follows, before a plugin is called by it.
    fn follows(&self, registry: &Registry);
}

/// A plugin that is called.
#[derive(Clone, Copy)]
pub struct PluginInUse<'a> {
    /// What is known of it.
    pub entry: &'a PluginEntry,
    /// The number of the edition that this is of.
    pub edition: u64,
    /// Who has which name at this moment.
    pub registry: &'a Registry,
}

/// What a plugin is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facet<'a> {
    /// To run a tool.
    Tool(&'a str, Effect),
    /// Whether a tool's condition holds. What it changed by that is not saved, and what it says on
    /// the way is not told: it is a question.
    Condition,
    /// To run a command.
    Command,
    /// Something of a resource that it keeps.
    Resource(Effect),
    /// A completion.
    Completion,
    /// What a gc would leave out.
    Plan,
    /// A completion or a plan for what the call reads of its site, as it is larger than a frame.
    Large(LargeOf),
    /// Its models.
    Models,
    /// To fetch a model to its server.
    PullModel,
    /// One of the questions that it wants to be asked. What it says on the way is not told.
    Hook(Hook),
    /// What a call of its tool would change.
    Preview,
    /// Which words may come next in a command of its own.
    CompleteWords,
    /// To count the tokens of a request.
    CountTokens,
    /// To wait for tools that it has not set yet.
    AwaitTools,
}

/// Whether a call may change what the instance would save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads.
    Reads,
    /// It may change something.
    Changes,
}

/// Calls plugins for sessions. One a host.
pub struct PluginCaller {
    /// What the host is set up with.
    pub setup: Arc<Setup>,
    /// What is known of the plugins.
    pub plugins: Plugins,
    /// Their instances.
    pub instances: Instances,
    /// The host's log.
    pub log: Log,
    /// What starts the children that describe plugins.
    pub supervisor: Supervisor,
    /// Makes the services of calls.
    pub services: Arc<dyn ServiceFactory>,
}

/// An instance that was lent for one call, and the services of that.
pub struct Reached<'a> {
    caller: &'a PluginCaller,
    facet: Facet<'a>,
    lease: Lease,
    services: Arc<dyn Services>,
    tell: Tell,
}

impl PluginCaller {
    /// Asks a session's instance of a plugin for something, and waits for the answer's frame.
    ///
    /// # Errors
    /// What keeps the plugin from being called; what it answers; `cancelled`.
    pub async fn ask(
        &self,
        plugin: &str,
        facet: Facet<'_>,
        site: CallSite,
        request: Vec<u8>,
        tell: &Tell,
        cancel: &Cancel,
    ) -> Result<Vec<u8>, Error> {
        self.reach(plugin, facet, site, tell).await?.ask(request, cancel).await
    }

    /// Gets ready to ask, so that it can be looked at what is asked.
    ///
    /// # Errors
    /// What keeps the plugin from being called.
    pub async fn reach<'a>(
        &'a self,
        plugin: &str,
        facet: Facet<'a>,
        site: CallSite,
        tell: &Tell,
    ) -> Result<Reached<'a>, Error> {
        let session = site.session.clone();
        let (lease, services) = self.instance(plugin, site, tell).await?;
        if facet.is_followed() {
            self.tell_news(&session, plugin, tell);
        }
        Ok(Reached { caller: self, facet, lease, services, tell: Arc::clone(tell) })
    }

    /// Asks an instance that is held, which another may have followed.
    ///
    /// # Errors
    /// As [`PluginCaller::ask`].
    pub async fn ask_held(
        &self,
        lease: Lease,
        facet: Facet<'_>,
        site: &CallSite,
        request: Vec<u8>,
        tell: &Tell,
        cancel: &Cancel,
    ) -> Result<Vec<u8>, Error> {
        let services = self.services_on(&lease, site, tell)?;
        let reached = Reached { caller: self, facet, lease, services, tell: Arc::clone(tell) };
        reached.ask(request, cancel).await
    }

    /// Returns a plugin's instance for a session and the services of one call on it. Where its file
    /// was replaced, it is an instance of what is there.
    ///
    /// # Errors
    /// What keeps the plugin from being called.
    pub async fn instance(
        &self,
        plugin: &str,
        site: CallSite,
        tell: &Tell,
    ) -> Result<(Lease, Arc<dyn Services>), Error> {
        let session = site.session.clone();
        let services = |entry: &PluginEntry, edition| self.services_of(entry, edition, &site, tell);
        for _ in 0..CHANGES_MAX {
            self.plugins.look_at(self.scan_inputs(&self.following()), plugin).await;
            let catalog = self.plugins.for_call(&session, plugin);
            let wanted = Wanted {
                setup: &self.setup,
                catalog: &catalog,
                plugin,
                session: &session,
                provider: site.provider.as_ref(),
                services: &services,
            };
            let Some(Got { lease, services, refused }) = self.instances.get(wanted).await? else {
                self.look().await;
                continue;
            };
            if let Some(error) = refused {
                let name = lease.plugin();
                self.plugins.refuse(&session, name, &catalog, lease.catalog(), &error.to_string());
            }
            services.bind(lease.downgrade());
            return Ok((lease, services));
        }
        let text = format!("the file of plugin `{plugin}` is gone, or changes again and again");
        Err(Error::new(ErrorKind::Unavailable, text).with_hint("try again once it is in its place"))
    }

    /// Returns who has which name at this moment.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.plugins.current().registry)
    }

    /// Takes the keys of a plugin out of a text that it gives.
    pub fn without_secrets(&self, plugin: &str, text: &str) -> String {
        self.services.without_secrets(plugin, text)
    }

    /// Looks at the files of all plugins, where they are watched.
    pub async fn look(&self) {
        self.plugins.look(self.scan_inputs(&self.following())).await;
    }

    /// Describes plugins again, as [`Plugins::again`].
    ///
    /// # Errors
    /// When there is no plugin of that name, or plugins are not watched.
    pub async fn look_again(&self, plugin: Option<&str>) -> Result<Vec<String>, Error> {
        self.plugins.again(self.scan_inputs(&self.following()), plugin).await
    }

    /// Lets an instance that a call may have changed say what its successor is to be given. Awaited
    /// before the call is over, so that nothing is lost when the next one kills it.
    async fn save(&self, instance: &Lease, tell: &Tell) {
        if !instance.is_in_worker() {
            return;
        }
        if let Some(text) = self.instances.save(instance).await {
            self.log.line(2, "host", &text);
            tell(Delta::notice(text));
        }
    }

    /// Tells whoever follows a call what has become of its plugin.
    fn tell_news(&self, session: &SessionId, plugin: &str, tell: &Tell) {
        for text in self.plugins.news(session, Some(plugin)) {
            tell(Delta::notice(text));
        }
    }

    /// Makes the services of a further call on an instance, which may be one that another has
    /// followed.
    fn services_on(
        &self,
        lease: &Lease,
        site: &CallSite,
        tell: &Tell,
    ) -> Result<Arc<dyn Services>, Error> {
        let (catalog, plugin) = (lease.catalog(), lease.plugin().as_str());
        let Some(entry) = catalog.registry.plugin(plugin) else {
            return Err(Error::new(ErrorKind::NotFound, format!("no plugin `{plugin}`")));
        };
        let services = self.services_of(entry, catalog.edition(plugin).number, site, tell)?;
        services.bind(lease.downgrade());
        Ok(services)
    }

    fn services_of(
        &self,
        entry: &PluginEntry,
        edition: u64,
        site: &CallSite,
        tell: &Tell,
    ) -> Result<Arc<dyn CallServices>, Error> {
        let registry = self.registry();
        let plugin = PluginInUse { entry, edition, registry: &registry };
        self.services.services(plugin, site, tell)
    }

    fn following(&self) -> impl Fn(&Registry) + Send + Sync {
        |registry| self.services.follows(registry)
    }

    fn scan_inputs<'a>(&'a self, follows: &'a (dyn Fn(&Registry) + Send + Sync)) -> ScanInputs<'a> {
        ScanInputs { setup: &self.setup, supervisor: &self.supervisor, follows }
    }
}

impl Reached<'_> {
    /// Returns the instance.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Asks, and waits for the answer's frame.
    ///
    /// # Errors
    /// What the plugin answers, without its keys; `cancelled`.
    pub async fn ask(self, request: Vec<u8>, cancel: &Cancel) -> Result<Vec<u8>, Error> {
        let Self { caller, facet, lease, services, tell } = self;
        let running = facet.begin(&lease, request, services)?;
        let is_told = facet.is_told();
        let plugin = lease.plugin().as_str();
        let clean = |text: &str| caller.without_secrets(plugin, text);
        let take = |mut delta| {
            if is_told {
                clean_delta(&mut delta, clean);
                tell(delta);
            }
        };
        let answer = drive(running, cancel, take).await;
        if facet.is_saved() {
            caller.save(&lease, &tell).await;
        }
        answer.map_err(|error| Error {
            message: clean(&error.message),
            hint: error.hint.map(|hint| clean(&hint)),
            ..error
        })
    }
}

impl Facet<'_> {
    /// Returns true if somebody follows the call, who is told what has become of its plugin.
    fn is_followed(self) -> bool {
        match self {
            Self::Tool(..) | Self::Command | Self::Completion | Self::PullModel => true,
            Self::Large(of) => of == LargeOf::Complete,
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

    /// Returns true if what the plugin says on the way is told; a question has no place for it.
    fn is_told(self) -> bool {
        match self {
            Self::Condition
            | Self::Hook(_)
            | Self::Preview
            | Self::CompleteWords
            | Self::AwaitTools => false,
            Self::Tool(..)
            | Self::Command
            | Self::Resource(_)
            | Self::Completion
            | Self::Plan
            | Self::Large(_)
            | Self::Models
            | Self::CountTokens
            | Self::PullModel => true,
        }
    }

    /// Returns true if the instance is asked afterwards what its successor is to be given.
    fn is_saved(self) -> bool {
        match self {
            Self::Tool(_, effect) | Self::Resource(effect) => effect == Effect::Changes,
            // What was told to it may be what it keeps; a question changes nothing.
            Self::Hook(hook) => matches!(hook, Hook::AfterTool | Hook::Event),
            Self::Condition
            | Self::Preview
            | Self::CompleteWords
            | Self::CountTokens
            | Self::AwaitTools => false,
            Self::Command
            | Self::Completion
            | Self::Plan
            | Self::Large(_)
            | Self::Models
            | Self::PullModel => true,
        }
    }

    fn begin(
        self,
        lease: &Lease,
        request: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error> {
        match self {
            Self::Tool(name, _) => lease.call_tool(name, request, services),
            Self::Condition => lease.operation(CONDITION, request, services),
            Self::Command => lease.operation(COMMAND, request, services),
            Self::Resource(_) => lease.operation(RESOURCE, request, services),
            Self::Completion => lease.complete(request, services),
            Self::Plan => lease.plan(request, services),
            Self::Large(_) => lease.operation(LARGE, request, services),
            Self::Models => lease.models(services),
            Self::PullModel => lease.operation(PULL_MODEL, request, services),
            Self::Hook(hook) => lease.operation(hook.name(), request, services),
            Self::Preview => lease.operation(PREVIEW, request, services),
            Self::CompleteWords => lease.operation(COMPLETE_WORDS, request, services),
            Self::CountTokens => lease.operation(COUNT_TOKENS, request, services),
            Self::AwaitTools => lease.operation(AWAIT_TOOLS, request, services),
        }
    }
}
