//! One conversation: its setup, its state and its accessors.
//!
//! The session owns the history. It builds the system text and the tools once, when it starts. The
//! prefix of its requests changes only when a tool is activated or joins, or when plugins were
//! replaced between two turns, and an event reports it.

mod accepted_media;
mod forms;
mod handle;
mod interrupted;
mod limited_count;
mod listed;
mod model;
mod next_request;
mod omitted_media;
mod side_requests;

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use jaato_objects::ObjectEnvironment;
use jaato_types::service::ContextFacts;
use jaato_types::{
    CompletionRequest, Event, Message, ModelId, Output, Part, PluginName, Price, RequestOptions,
    Result, SessionId, ToolName, ToolSpec,
};
use parking_lot::Mutex;

use crate::calls::CallInitiator;
use crate::conditions::ConditionsState;
use crate::events::EventEmitter;
use crate::gc::GcState;
use crate::hooks::{HookAsker, HookPromptAddition};
use crate::output::SessionOutputFiles;
use crate::pace::RequestPace;
use crate::tasks::BackgroundTasks;
use crate::{
    COLLECTED_BYTES_MAX, Cancel, Caps, DeadlineHold, GcSettings, History, HistoryEntry,
    HistoryError, Inbox, InterruptedCalls, Limits, MessageMark, ModelCapabilities, Provider,
    SessionPorts, SessionUsage, SharedBudget, SharedFacts, SharedObjects, SharedRules, SharedUsage,
    SystemPrompt, Toolbox, WakeWaiter,
};
use accepted_media::MediaTypeState;
use forms::SessionForms;
pub(crate) use handle::SessionShared;
pub use handle::{PLUGIN_CALLS_MAX, PublishedRecord, SessionHandle, SharedSessionState};
pub use model::{AnsweringModel, ModelSetup};
use omitted_media::OmittedMedia;
pub(crate) use omitted_media::{RefusedBlobs, is_media_refusal, part_data};
use side_requests::PluginModelRequests;
pub use side_requests::{AskingPlugin, PieceSink};

/// The setup of a session.
#[derive(Debug, Clone)]
pub struct SessionSetup {
    /// The session's id if it continues. `None` for a new session.
    pub id: Option<SessionId>,
    /// The model.
    pub model: ModelSetup,
    /// Models that take over, in order, if this one fails permanently.
    pub fallbacks: Vec<AnsweringModel>,
    /// The system text.
    pub system: SystemPrompt,
    /// The limits.
    pub limits: Limits,
    /// The caps on the session's total usage.
    pub caps: Caps,
    /// The usage so far. A session that another one opened shares it with that one.
    pub spent: SharedUsage,
    /// Caps on its usage together with other sessions.
    pub budget: Option<SharedBudget>,
    /// The rules of the command line and the configuration, and the user's answers.
    pub rules: SharedRules,
    /// How long to wait for an answer to a question. `None` leaves that to the front end.
    pub patience_ms: Option<u64>,
    /// The session's identity, if it is not the main agent.
    pub agent: Option<Agent>,
    /// The gc settings.
    pub gc: GcSettings,
    /// The history, if the session continues.
    pub history: History,
    /// The record before the last collection, if the session continues and had one.
    pub before_collection: Option<Vec<Arc<HistoryEntry>>>,
    /// Whether an event has each new message of the record.
    pub tells_messages: bool,
    /// The state of the history's open calls.
    pub interrupted: InterruptedCalls,
    /// The objects that tools had shown to the model, if the session continues.
    pub objects: InitialObjects,
}

/// The identity of a session that another one or the program opened.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its name for users.
    pub name: String,
    /// The session that opened it.
    pub opener: SessionId,
    /// Whether it shares its opener's rules, so that its turns are a part of its opener's turn.
    pub shares_rules: bool,
    /// Pauses the deadline of the call that opened it while the user is asked.
    pub hold: DeadlineHold,
}

/// The initial objects of a session.
#[derive(Clone)]
pub enum InitialObjects {
    /// The session's own objects.
    Own(ObjectEnvironment),
    /// The objects of the session that opened it.
    Shared(SharedObjects),
}

impl InitialObjects {
    fn into_shared(self, emitter: &EventEmitter) -> SharedObjects {
        match self {
            Self::Own(environment) => SharedObjects::new(environment, emitter.clone()),
            Self::Shared(objects) => objects.for_other_session(),
        }
    }
}

impl Default for InitialObjects {
    fn default() -> Self {
        Self::Own(ObjectEnvironment::default())
    }
}

impl std::fmt::Debug for InitialObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Own(_) => "Own(…)",
            Self::Shared(_) => "Shared(…)",
        })
    }
}

impl SessionSetup {
    /// Creates the setup of a new session with default values.
    pub fn new(model: ModelId, context_limit: u64, system: SystemPrompt) -> Self {
        Self {
            id: None,
            model: ModelSetup::new(model, context_limit),
            fallbacks: Vec::new(),
            system,
            limits: Limits::default(),
            caps: Caps::default(),
            spent: SharedUsage::default(),
            budget: None,
            rules: SharedRules::default(),
            patience_ms: None,
            agent: None,
            gc: GcSettings::default(),
            history: History::new(),
            before_collection: None,
            tells_messages: false,
            interrupted: InterruptedCalls::default(),
            objects: InitialObjects::default(),
        }
    }
}

/// One conversation.
pub struct Session {
    /// The state that its calls share.
    pub(crate) shared: Arc<SessionShared>,
    pub(crate) history: History,
    pub(crate) conditions: ConditionsState,
    /// Command answers that the model sees with the next request.
    pub(crate) answers: Mutex<Vec<Part>>,
    pub(crate) gc: GcState,
    /// The system text without the mode's part.
    pub(crate) system: SystemPrompt,
    /// The beginning of every request. Its messages are empty.
    pub(crate) prefix: CompletionRequest,
    /// The options of the next request, if plugins changed them.
    pub(crate) options_asked: Option<RequestOptions>,
    pub(crate) model: ModelId,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) fallbacks: VecDeque<AnsweringModel>,
    pub(crate) takes: ModelCapabilities,
    pub(crate) sight: MediaTypeState,
    /// Images and files that are not sent, and the model's descriptions of them.
    pub(crate) left_out: OmittedMedia,
    /// Entries of the record that were sent since the last cut. They stay as they are.
    pub(crate) sent_entries: usize,
    /// The tools that the model knows about, from the list and from parts of the history.
    pub(crate) told_tools: Vec<ToolSpec>,
    pub(crate) price: Option<Price>,
    pub(crate) is_price_configured: bool,
    /// Whether the session has told the user about impossible token counts.
    pub(crate) has_told_counts: bool,
    /// The parts of a paused answer. The next request ends with them.
    pub(crate) paused: Vec<Part>,
    /// Whether turns end without waiting for the tasks that they have started.
    pub(crate) lets_tasks_go_on: bool,
}

impl Session {
    /// Starts a session. If the history has open calls or no answer, it is closed first, with
    /// results and a mark that say so.
    pub fn start(setup: SessionSetup, mut ports: SessionPorts) -> Result<Self, HistoryError> {
        ports.outputs = Arc::new(SessionOutputFiles::new(ports.outputs));
        let SessionSetup { id, model: chosen, system, limits, rules, history, gc, .. } = setup;
        let answering = AnsweringModel { model: chosen.clone(), provider: ports.provider.clone() };
        let ModelSetup { id: model, context_limit, origin, options, takes, .. } = chosen;
        let id = id.unwrap_or_else(|| ports.ids.create_session_id());
        let toolbox = Toolbox::new(ports.tools.tools());
        let mut prefix = CompletionRequest::new("", Vec::new());
        prefix.system = system.text_for_mode(rules.lock().mode);
        prefix.tools = toolbox.active_tools().cloned().collect();
        model::set_request_model(&mut prefix, &model, options, &takes, &id);
        let told_tools = prefix.tools.clone();
        let gc = GcState::new((ports.gc.take(), gc), context_limit, origin);
        let facts = initial_facts(&model, context_limit, &history, &gc);
        let emitter = EventEmitter::new(id.clone(), ports.events.clone());
        let objects = setup.objects.into_shared(&emitter);
        let hooks = HookAsker::new(&ports, &emitter, &facts, &id, limits.hook_deadline_ms);
        let shared = Arc::new(SessionShared {
            id,
            ports,
            hooks: Arc::new(hooks),
            limits,
            pace: RequestPace::default(),
            emitter,
            toolbox: Mutex::new(Arc::new(toolbox)),
            rules,
            patience_ms: setup.patience_ms,
            agent: Mutex::new(setup.agent),
            facts,
            objects,
            tasks: BackgroundTasks::new(),
            inbox: Inbox::default(),
            forms: SessionForms::default(),
            model: Mutex::new(answering),
            spent: setup.spent,
            caps: setup.caps,
            budget: setup.budget,
            budget_of_tree: OnceLock::new(),
            told_messages: setup.tells_messages.then(AtomicUsize::default),
            late_instructions: Mutex::default(),
            told_instructions: Mutex::default(),
            beside: PluginModelRequests::default(),
            record: Mutex::default(),
            plugin_calls: AtomicUsize::new(0),
        });
        let mut session = Self {
            provider: Arc::clone(&shared.ports.provider),
            shared,
            history,
            conditions: ConditionsState::default(),
            answers: Mutex::default(),
            gc: gc.with_record_before(setup.before_collection),
            system,
            prefix,
            options_asked: None,
            model: model.clone(),
            fallbacks: setup.fallbacks.into(),
            takes,
            sight: MediaTypeState::default(),
            left_out: OmittedMedia::default(),
            sent_entries: 0,
            told_tools,
            price: chosen.price,
            is_price_configured: chosen.is_price_configured,
            has_told_counts: false,
            paused: Vec::new(),
            lets_tasks_go_on: false,
        };
        session.close_interrupted_turn(setup.interrupted)?;
        session.emit_session_start();
        Ok(session)
    }

    fn emit_session_start(&mut self) {
        if let Some(told) = &self.shared.told_messages {
            // Those of an earlier process are in its file.
            told.store(self.history.entries().len(), Relaxed);
        }
        self.offer_declared_tools();
        self.offer_view_tool();
        self.forget_old_messages();
        self.publish_record();
        let tools = self.prefix.tools.iter().map(|spec| spec.name.clone()).collect();
        let agent = self.shared.agent.lock().clone();
        let (agent, opener) = agent.map(|agent| (agent.name, agent.opener)).unzip();
        let model = self.model.as_str().to_owned();
        self.shared.emitter.emit(Event::SessionStarted { model, tools, agent, opener });
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Returns the record of the conversation.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the current tools.
    pub fn toolbox(&self) -> Arc<Toolbox> {
        self.shared.current_tools()
    }

    /// Returns a handle for calling tools of the session while a turn runs.
    pub fn handle(&self) -> SessionHandle {
        SessionHandle::for_session(&self.shared)
    }

    /// Returns the current model and tokens.
    pub fn facts(&self) -> ContextFacts {
        self.shared.facts.snapshot()
    }

    /// Returns the usage so far.
    pub fn usage(&self) -> SessionUsage {
        *self.shared.spent.lock()
    }

    /// Returns a handle on the session's events, also for events between its turns.
    pub fn emitter(&self) -> EventEmitter {
        self.shared.emitter.clone()
    }

    /// Returns a handle on the facts that stays readable while a turn runs.
    pub fn shared_facts(&self) -> SharedFacts {
        self.shared.facts.clone()
    }

    /// Returns the objects that tools have shown to the model.
    pub fn objects(&self) -> &SharedObjects {
        &self.shared.objects
    }

    /// Writes these objects as JSON and, if `hidden` is set, the data that the model never sees.
    /// Bytes are given as their number.
    pub fn objects_json(&self, hidden: bool) -> serde_json::Value {
        self.shared.objects.with_objects(|objects| {
            let mut json = serde_json::json!({ "environment": objects.to_json() });
            if hidden {
                json["hidden_environment"] = objects.hidden_json();
            }
            json
        })
    }

    /// Returns the rules about calls, with the user's answers.
    pub fn rules(&self) -> &SharedRules {
        &self.shared.rules
    }

    /// Returns the inbox, which takes the user's messages while a turn runs.
    pub fn inbox(&self) -> Inbox {
        self.shared.inbox.clone()
    }

    /// Lets background calls continue after the model's answer: the turn ends without them, and the
    /// end of each wakes the session. Otherwise a turn waits for them.
    pub fn allow_background_tasks(&mut self) {
        self.lets_tasks_go_on = true;
    }

    /// Returns a handle that waits for ends of tasks and for notifications of plugins while the
    /// session is idle.
    pub fn wake_waiter(&self) -> WakeWaiter {
        let tasks = Arc::clone(self.shared.tasks.board());
        WakeWaiter { inbox: self.shared.inbox.clone(), tasks }
    }

    /// Ends all tasks and waits until they have ended. Returns how many there were.
    pub async fn end_tasks(&self) -> usize {
        let board = self.shared.tasks.board();
        let running = board.all_running_count();
        board.cancel_all();
        board.wait_until_all_ended().await;
        running
    }

    /// Withdraws the forms that wait for the user. The session takes no more forms.
    pub async fn end_forms(&self) {
        self.shared.forms.withdraw_forms().await;
    }

    /// Returns true if the last prompt has no complete answer, so that
    /// [`Session::repeat_last_turn`] continues its turn.
    pub fn has_open_turn(&self) -> bool {
        self.history.is_open() || self.history.ends_with_partial_answer()
    }

    /// Saves the record, and publishes it to readers during a turn.
    pub(crate) fn publish_record(&mut self) {
        self.save_record();
        if self.shared.ports.saver.is_some() {
            self.shared.save_state();
        }
        *self.shared.record.lock() = PublishedRecord {
            entries: self.history.entries().to_vec(),
            turns_forgotten: self.history.turns_forgotten(),
        };
    }

    /// Forgets the oldest collected messages. A saved session keeps them, because the saver gets
    /// their marks first.
    pub(crate) fn forget_old_messages(&mut self) {
        self.save_record();
        let before = self.history.entries().len();
        if self.forget_collected(COLLECTED_BYTES_MAX) {
            if let Some(told) = &self.shared.told_messages {
                told.fetch_sub(before - self.history.entries().len(), Relaxed);
            }
            self.save_record();
        }
    }

    fn save_record(&self) {
        if let Some(told) = &self.shared.told_messages {
            let entries = self.history.entries();
            for entry in entries.iter().skip(told.swap(entries.len(), Relaxed)) {
                self.shared.emitter.emit(Event::MessageAdded {
                    message: entry.message.clone(),
                    model: entry.made_by.as_ref().map(ToString::to_string),
                    partial: entry.mark == Some(MessageMark::Partial),
                });
            }
        }
        if let Some(saver) = &self.shared.ports.saver {
            saver.save_record(self.history.entries());
        }
    }

    /// Returns true if the session outlives its process.
    pub fn is_saved(&self) -> bool {
        self.shared.ports.saver.as_ref().is_some_and(|saver| saver.is_saving())
    }

    /// Waits until everything so far is written, if the session is saved. A disk that does not
    /// answer delays it by at most a fifth of a second.
    pub async fn wait_until_written(&self) {
        self.shared.wait_until_written().await;
    }

    /// Gives the session a name, if it is saved.
    pub fn rename(&self, name: &str) {
        if let Some(saver) = &self.shared.ports.saver {
            saver.save_name(name);
        }
    }

    /// Adds a text about something outside the conversation to the model's next message.
    pub fn tell_model(&self, text: impl Into<String>) {
        // As data, because it is not the user who says it.
        self.answers.lock().push(Part::json(serde_json::json!({ "note": text.into() })));
    }

    /// Counts the calls that continue as tasks.
    pub fn running_task_count(&self) -> usize {
        self.shared.tasks.board().all_running_count()
    }

    /// Returns the plugins' instructions about tools that they have set, which the model gets with
    /// the next message.
    pub fn pending_instructions(&self) -> Vec<(PluginName, String)> {
        self.shared.late_instructions.lock().clone().into_iter().collect()
    }

    /// Returns the request that would be sent next.
    pub fn next_request(&self) -> CompletionRequest {
        let mut request = self.prefix.clone();
        if let Some(options) = &self.options_asked {
            request.options = options.clone();
        }
        request.messages = self.history.messages_for_model(&self.model).collect();
        request.messages.iter_mut().for_each(|message| {
            self.takes.replace_with_descriptions(message, self.left_out.omission_notes())
        });
        if !self.paused.is_empty() {
            request.messages.push(Message::model(self.paused.clone()));
        }
        request
    }

    /// Asks plugins what they would add to a prompt, and adds nothing.
    ///
    /// # Errors
    /// If a plugin refuses the prompt.
    pub async fn prompt_additions(
        &self,
        prompt: &str,
        cancel: &Cancel,
    ) -> Result<Vec<HookPromptAddition>> {
        self.shared.hooks.prompt_additions(prompt, cancel).await
    }

    /// Runs a call that the user typed. It is the user's own act, so it causes no permission prompt
    /// and no entry in the history. Returns the whole output.
    pub async fn run_user_call(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        cancel: &Cancel,
    ) -> Result<Output> {
        self.shared.run_call(name, arguments, CallInitiator::Person, cancel).await
    }

    /// Offers the tool that looks at objects, once there are some.
    pub(crate) fn offer_view_tool(&mut self) {
        let tools = self.shared.current_tools();
        // A model without tools may not accept any, including this one.
        let lacks_view = tools.active_tools().next().is_some() && !tools.has_view_tool();
        drop(tools);
        if lacks_view && self.shared.objects.with_objects(|objects| !objects.is_empty(None)) {
            self.shared.change_tools(Toolbox::add_view_tool);
            self.add_active_tools();
        }
    }

    /// Appends inactive tools to the tools in requests. Other tools are left alone.
    pub fn activate_tools(&mut self, names: &[ToolName]) {
        if names.is_empty() {
            return;
        }
        for name in names {
            self.shared.change_tools(|toolbox| toolbox.activate_tool(name));
        }
        self.add_active_tools();
    }
}

fn initial_facts(
    model: &ModelId,
    context_limit: u64,
    history: &History,
    gc: &GcState,
) -> SharedFacts {
    SharedFacts::new(ContextFacts {
        model: model.as_str().to_owned(),
        context_limit,
        turns: history.turn_count(),
        gc: gc.gc_facts(),
        ..ContextFacts::default()
    })
}
