//! Starts sessions on a host: with a model, for a user's calls, and for plugins.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_approval::FileAnswerStore;
use jaato_catalog::Setup;
use jaato_config::{Caps, Config, NamedModel, PermissionMode};
use jaato_environments::{SessionOutputs, SharedEnvironment};
use jaato_policy::{AllowedTool, DenyRuleHandling, Rules, file_limits_outside_calls};
use jaato_services::SessionEntry;
use jaato_session::{
    Agent, CallGate, EventSink, History, Ids, NoAnswer, PermissionAsker, PolicyMode, RandomIds,
    SeededRandom, Session, SessionClock, SessionPorts, SessionRules, SessionSaver, SessionSetup,
    SharedBudget, SharedRules, SystemClock, SystemPrompt, UserAsker,
};
use jaato_terminals::SessionAudience;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionPrompt};
use jaato_types::{Error, ErrorKind, ModelId, RequestOptions, SessionId, ToolName};
use serde_json::{Map, Value};

use crate::child::ChildSessionOrigin;
use crate::core_tools::{CoreBudget, EditToolStyle};
use crate::gate::{HostPermissionCheck, rule_files};
use crate::gc::PluginGc;
use crate::hooks::{EventHooks, PluginHooks};
use crate::host::RuntimeHost;
use crate::ledger::LedgerEventSink;
use crate::media::SessionMedia;
use crate::named_model::ReadyModel;
use crate::prompt;
use crate::provider::NoProvider;
use crate::saved::{SaveMode, SessionSaving, StartedSaver};
use crate::tools::PluginTools;

/// The options of a session.
pub struct SessionOptions {
    /// Answers permission prompts.
    pub asker: Arc<dyn UserAsker>,
    /// Receives the session's events.
    pub events: Arc<dyn EventSink>,
    /// `--allow`: `TOOL` of a shipped plugin, or `PLUGIN:TOOL`.
    pub allow: Vec<String>,
    /// `--yes`.
    pub allow_all: bool,
    /// `--ignore-deny-rules`: ignores deny rules from files.
    pub ignore_deny_rules: bool,
    /// `--system`.
    pub system: Option<String>,
    /// Where its files are and its commands run. `None` creates an environment as configured.
    pub environment: Option<SharedEnvironment>,
    /// The working directory of the session's own environment, below the workspace's root. `None`
    /// for the runtime's.
    pub directory: Option<PathBuf>,
    /// Settings for the session's own environment, such as `image`, over its plugin's
    /// configuration. [`Runtime::environment_options`](crate::Runtime::environment_options) parses
    /// them from texts.
    pub environment_options: Map<String, Value>,
    /// `--mode`, or `None` for the configured mode.
    pub mode: Option<PolicyMode>,
    /// Options for each model request, over the configuration.
    pub request: RequestOptions,
    /// The session's resource limits, which override the configuration.
    pub caps: Caps,
    /// Caps on its usage together with other sessions.
    pub budget: Option<SharedBudget>,
    /// Whether an event has each new message of the record, as programs want it.
    pub tells_messages: bool,
    /// The model, by any name that [`Runtime::model_by_name`](crate::Runtime::model_by_name) takes,
    /// or `None` for the configured model.
    pub model: Option<String>,
    /// Whether the session outlives the process.
    pub saving: SaveMode,
    /// The names of its tools, or beginnings of names before a `*`, each maybe after `PLUGIN:`.
    /// `None` gives it every tool.
    pub tools: Option<Vec<ToolName>>,
    /// The session's identity in permission prompts, if it is not the main agent.
    pub agent: Option<Agent>,
    /// Replaces the policy that decides about calls before the user is asked.
    pub gate: Option<Arc<dyn CallGate>>,
    /// Saves the session in place of a store of files.
    pub saver: Option<Arc<dyn SessionSaver>>,
    /// The session's source of time.
    pub clock: Arc<dyn SessionClock>,
}

impl SessionOptions {
    /// Returns options for a session without a user: every permission prompt is refused.
    pub fn unattended(events: Arc<dyn EventSink>) -> Self {
        let asker = Arc::new(UnattendedAsker);
        Self {
            asker,
            events,
            allow: Vec::new(),
            allow_all: false,
            ignore_deny_rules: false,
            system: None,
            environment: None,
            directory: None,
            environment_options: Map::new(),
            mode: None,
            request: RequestOptions::default(),
            caps: Caps::default(),
            budget: None,
            tells_messages: false,
            model: None,
            saving: SaveMode::Off,
            tools: None,
            agent: None,
            gate: None,
            saver: None,
            clock: Arc::new(SystemClock::new()),
        }
    }
}

struct UnattendedAsker;

impl UnattendedAsker {
    const REASON: &str = "no user follows this session";
}

impl UserAsker for UnattendedAsker {}

impl PermissionAsker for UnattendedAsker {
    fn unavailable_reason(&self) -> Option<String> {
        Some(Self::REASON.to_owned())
    }

    fn ask_permission<'a>(
        &'a self,
        _session: &'a SessionId,
        _prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        Box::pin(std::future::ready(Err(NoAnswer::new(Self::REASON))))
    }
}

impl RuntimeHost {
    /// Builds the system prompt of a session.
    ///
    /// # Errors
    /// If one of its files cannot be used.
    pub(crate) fn system_prompt(
        &self,
        system: Option<String>,
        tools: &BTreeSet<ToolName>,
    ) -> Result<SystemPrompt, Error> {
        let parts = prompt::collect_prompt_parts(&self.setup, &self.registry(), system, tools)?;
        Ok(SystemPrompt::build(parts))
    }

    /// Starts a session that continues a history, whichever model produced it.
    ///
    /// # Errors
    /// As [`Runtime::open_session`](crate::Runtime::open_session).
    pub(crate) fn open_session_from(
        self: &Arc<Self>,
        history: History,
        options: SessionOptions,
    ) -> Result<Session, Error> {
        self.start_session(history, options, None)
    }

    /// Starts a session, as the child of another if `child` is given.
    pub(crate) fn start_session(
        self: &Arc<Self>,
        history: History,
        mut options: SessionOptions,
        child: Option<ChildSessionOrigin>,
    ) -> Result<Session, Error> {
        let config = &self.setup.config;
        let ids = new_id_source();
        let saving =
            SessionSaving::new(std::mem::take(&mut options.saving), ids.create_session_id());
        let id = saving.id.clone();
        let named = self.first_model(&options, &saving)?;
        let ready = self.ready_model(&named, &options.request, &id)?;
        let mut core = self.core_budget(&ready);
        // A child that names no tools has those of its opener, most of which it finds on demand.
        let names_tools = child.as_ref().is_none_or(|child| child.asked.tools.is_some());
        if names_tools {
            core.named.extend(options.tools.iter().flatten().cloned());
        }
        let tools = PluginTools::new(Arc::clone(self), id.clone(), true).with_core_budget(core);
        let only = options.tools.take();
        let tools = if names_tools { tools.restricted_to(only) } else { tools.limited_to(only) };
        if child.is_none() {
            // The opener's toolbox has checked those of a child.
            tools.check_restriction()?;
        }
        let system = self.system_prompt(options.system.clone(), &tools.active_tools())?;
        let mut setup = SessionSetup::new(named.model.clone(), 0, system);
        setup.model = ready.setup;
        let mut providers = vec![ready.answers.clone()];
        for name in config.fallback.0.iter().filter(|_| options.model.is_none()) {
            // An unknown name or an unsupported option is an error at the start.
            let next = self.ready_model(&self.model_by_name(name)?, &options.request, &id)?;
            providers.push(next.answers.clone());
            setup.fallbacks.push(next.into_answering_model());
        }
        setup.gc = config.gc.clone();
        setup.caps = session_caps(config, &options.caps);
        setup.budget = options.budget.take();
        setup.tells_messages = options.tells_messages;
        setup.history = history;
        setup.id = Some(id.clone());
        setup.limits = self.setup.config.session.clone();
        setup.rules = Arc::new(self.session_rules(&options));
        setup.patience_ms = patience_ms(&self.setup.config);
        setup.agent = options.agent.take();
        let (saved, setup_id) = (saving.set_up(self, &mut setup, &options)?, id.clone());
        if let Some(child) = &child {
            child.set_up(&mut setup);
        }
        self.join_environment(&id, &options, &setup.rules)?;
        let asker = Arc::clone(&options.asker);
        let gc_plugin = Arc::new(PluginGc::new(Arc::clone(self), id.clone(), &setup.gc.plugin));
        let model = ready.answers.provider();
        let events = Arc::clone(&options.events);
        let mut ports = session_ports(self, model, tools, id, ids, options);
        ports.gc = Some(Arc::clone(&gc_plugin) as _);
        let note = saved.as_ref().and_then(StartedSaver::ended_work_note);
        if let Some(saved) = saved {
            saved.connect(self, &setup_id, &mut ports);
        }
        let session = Session::start(setup, ports).map_err(|error| {
            Error::new(
                ErrorKind::HostBug,
                format!("cannot start a session with `{}`: {error}", named.model),
            )
        })?;
        note.into_iter().for_each(|note| session.tell_model(note));
        self.register_session(&session, asker, events, child);
        providers.iter().for_each(|provider| provider.set_facts(session.shared_facts()));
        gc_plugin.set_facts(session.shared_facts());
        Ok(session)
    }

    /// Returns the model that answers first: the one of the options, the one that answered last in
    /// a session that continues, or the configured one.
    fn first_model(
        self: &Arc<Self>,
        options: &SessionOptions,
        saving: &SessionSaving,
    ) -> Result<NamedModel, Error> {
        let config = &self.setup.config;
        match (&options.model, saving.model(self)) {
            (Some(name), _) => self.model_by_name(name),
            (None, Some(saved)) => Ok(saved),
            (None, None) => {
                let configured = self.model_by_name(config.model.as_str())?;
                Ok(NamedModel { alias: config.model_alias.clone(), ..configured })
            }
        }
    }

    /// Returns what core tools may cost a model. If the user names the tools, the budget is
    /// unlimited.
    fn core_budget(&self, model: &ReadyModel) -> CoreBudget {
        let config = &self.setup.config;
        if !config.tools_enabled.is_empty() || self.setup.tools_only.is_some() {
            return CoreBudget::ALL;
        }
        let tokens_max = config.tools_core_tokens_max;
        let tokens_max = model.core_tokens_max.map_or(tokens_max, |most| most.min(tokens_max));
        let edits = EditToolStyle::for_model(model.setup.id.as_str());
        CoreBudget { tokens_max, edits, named: model.core_tools.clone() }
    }

    /// Starts a session without a model, in which a user calls tools.
    pub(crate) fn open_session_for_calls(
        self: &Arc<Self>,
        mut options: SessionOptions,
    ) -> Result<Session, Error> {
        let mut setup = SessionSetup::new(ModelId::from(""), 0, SystemPrompt::default());
        setup.limits = self.setup.config.session.clone();
        setup.rules = Arc::new(self.session_rules(&options));
        let ids = new_id_source();
        let id = ids.create_session_id();
        setup.id = Some(id.clone());
        self.join_environment(&id, &options, &setup.rules)?;
        let asker = Arc::clone(&options.asker);
        let events = Arc::clone(&options.events);
        let tools = PluginTools::new(Arc::clone(self), id.clone(), false);
        let tools = tools.restricted_to(options.tools.take());
        let ports = session_ports(self, Arc::new(NoProvider), tools, id, ids, options);
        let session = Session::start(setup, ports)
            .map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
        self.register_session(&session, asker, events, None);
        Ok(session)
    }

    /// Returns a session's initial rules, and the store for permanent answers.
    fn session_rules(&self, options: &SessionOptions) -> SessionRules {
        let rules = SessionRules::new(initial_rules(&self.setup, options));
        match self.setup.folders.config_folder() {
            Ok(folder) => {
                rules.with_answer_store(Arc::new(FileAnswerStore::in_folder(folder.to_owned())))
            }
            Err(_) => rules,
        }
    }

    /// Gives a session its execution environment. If the default one is missing, the first tool
    /// that needs it reports that.
    fn join_environment(
        &self,
        id: &SessionId,
        options: &SessionOptions,
        rules: &SharedRules,
    ) -> Result<(), Error> {
        let (shared, of_own) = (options.environment.as_ref(), options.environment_options.clone());
        self.environments.enter_environment(id, shared, of_own, options.directory.clone())?;
        let rules = Arc::clone(rules);
        self.environments
            .set_file_limits(id, Arc::new(move || file_limits_outside_calls(&rules.lock())));
        Ok(())
    }

    /// Registers a session with terminals and services.
    fn register_session(
        &self,
        session: &Session,
        asker: Arc<dyn UserAsker>,
        events: Arc<dyn EventSink>,
        child: Option<ChildSessionOrigin>,
    ) {
        self.terminals.add_session(session.id(), session_audience(session, asker));
        let agent = child.as_ref().map(|child| child.asked.name.clone());
        let opener = child.map(|child| child.opener);
        let entered = SessionEntry { handle: session.handle(), events, opener, agent };
        self.services.shared_services().sessions().register_session(session.id(), entered);
        let tap = self.taps.lock().get(session.id()).cloned();
        if let Some(tap) = tap {
            tap.begin(session.emitter(), session.shared_facts());
        }
    }
}

/// Returns the receiver of a session's events and its asker.
fn session_audience(session: &Session, asker: Arc<dyn UserAsker>) -> SessionAudience {
    SessionAudience { emitter: session.emitter(), asker }
}

pub(crate) fn new_id_source() -> Arc<dyn Ids> {
    let clock = Arc::new(SystemClock::new());
    Arc::new(RandomIds::new(clock, Arc::new(SeededRandom::from_system())))
}

fn session_ports(
    host: &Arc<RuntimeHost>,
    provider: Arc<dyn jaato_session::Provider>,
    tools: PluginTools,
    session: SessionId,
    ids: Arc<dyn Ids>,
    options: SessionOptions,
) -> SessionPorts {
    let told = EventHooks::new(Arc::clone(host), session.clone(), options.events);
    let told = Arc::new(told);
    host.taps.lock().insert(session.clone(), Arc::clone(&told) as _);
    let events = match &host.ledger {
        Some(ledger) => Arc::new(LedgerEventSink::new(ledger.clone(), told)) as _,
        None => told as _,
    };
    let gate = options.gate.unwrap_or_else(|| {
        let has_shared_environment = options.environment.is_some();
        let check = HostPermissionCheck::for_session(host, session.clone(), has_shared_environment);
        Arc::new(match options.directory {
            Some(directory) => check.with_directory(directory),
            None => check,
        })
    });
    SessionPorts {
        gate,
        provider,
        hooks: Arc::new(PluginHooks::new(Arc::clone(host))),
        tools: Arc::new(tools),
        asker: options.asker,
        gc: None,
        events,
        media: Arc::new(SessionMedia { host: Arc::clone(host), session: session.clone() }),
        outputs: Arc::new(SessionOutputs {
            environments: Arc::clone(&host.environments),
            session,
            kept: None,
        }),
        clock: options.clock,
        saver: options.saver,
        ids,
        random: Arc::new(SeededRandom::from_system()),
    }
}

/// Returns the caps of a session. Its own come before the configured ones.
fn session_caps(config: &Config, own: &Caps) -> Caps {
    Caps {
        cost: own.cost.or(config.caps.cost),
        tokens: own.tokens.or(config.caps.tokens),
        steps: own.steps.or(config.caps.steps),
    }
}

/// Returns how long to wait for an answer, if the user configured it.
fn patience_ms(config: &Config) -> Option<u64> {
    Some(config.permissions.answer_ms).filter(|ms| *ms > 0)
}

/// Returns the rules at the start of a session.
pub(crate) fn initial_rules(setup: &Setup, options: &SessionOptions) -> Rules {
    let config = &setup.config;
    let names = |names: &[String]| -> BTreeSet<ToolName> {
        names.iter().map(|name| ToolName::from(name.as_str())).collect()
    };
    let mut rules = Rules::default();
    rules.disabled = names(&config.tools_disabled);
    rules.allowed = options.allow.iter().map(|text| AllowedTool::parse(text)).collect();
    rules.allow_all = options.allow_all;
    rules.mode = options.mode.unwrap_or(match config.permissions.mode {
        PermissionMode::Ask => PolicyMode::Ask,
        PermissionMode::AcceptEdits => PolicyMode::AcceptEdits,
        PermissionMode::ReadOnly => PolicyMode::ReadOnly,
        PermissionMode::Plan => PolicyMode::Plan,
    });
    rules.files = rule_files(setup).files;
    rules.deny_rules =
        if options.ignore_deny_rules { DenyRuleHandling::Ignored } else { DenyRuleHandling::Hold };
    rules
}
