//! One conversation: what it is set up with, what it holds, what can be read of it.
//!
//! The session owns the history. System text and tools are put together once, when it starts: the
//! prefix of its requests changes only when a tool is activated or joins, or plugins were replaced
//! between two turns, and an event says so.

mod asked;
mod beside;
mod counted;
mod forms;
mod handle;
mod left_out;
mod listed;
mod model;
mod sight;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use jaato_objects::ObjectEnvironment;
use jaato_types::service::ContextFacts;
use jaato_types::{
    Event, Message, ModelId, Output, Part, PluginName, Price, Request, RequestOptions, Result,
    SessionId, ToolName, ToolSpec,
};
use parking_lot::Mutex;

use crate::calls::Initiative;
use crate::conditions::Conditions;
use crate::events::Emitter;
use crate::gc::{GcState, facts};
use crate::hooks::{Addition, HookAsker};
use crate::output::MadeOutputs;
use crate::pace::Pace;
use crate::tasks::Tasks;
use crate::{
    Cancel, Caps, GcSettings, History, HistoryError, Hold, Inbox, Limits, ModelTakes, Ports,
    Provider, SharedFacts, SharedObjects, SharedRules, SharedSpent, Spent, SystemPrompt, Toolbox,
    Wake,
};
use beside::Beside;
pub use beside::{AskingPlugin, PieceSink};
use forms::Forms;
pub(crate) use handle::Shared;
pub use handle::{Lent, PLUGIN_CALLS_MAX, SessionHandle};
use left_out::LeftOut;
pub(crate) use left_out::TakenOut;
pub use model::{AnsweringModel, ModelSetup};
use sight::Sight;

/// What a session is set up with.
#[derive(Debug, Clone)]
pub struct SessionSetup {
    /// The session's id where it goes on; a fresh one otherwise.
    pub id: Option<SessionId>,
    /// The model.
    pub model: ModelSetup,
    /// Models that answer where this one fails for good, in order.
    pub fallbacks: Vec<AnsweringModel>,
    /// The system text.
    pub system: SystemPrompt,
    /// The bounds.
    pub limits: Limits,
    /// What it may use up as a whole.
    pub caps: Caps,
    /// What it has used up; a session that another one has opened counts with that one.
    pub spent: SharedSpent,
    /// What the command line and the configuration allow, and what the person has answered.
    pub rules: SharedRules,
    /// How long an answer to a question is waited for; `None` leaves it to who is asked.
    pub patience_ms: Option<u64>,
    /// Who it is, where another session opened it.
    pub agent: Option<Agent>,
    /// Settings of the gc.
    pub gc: GcSettings,
    /// What was said before, where the session goes on.
    pub history: History,
    /// What tools had put in front of the model, where the session goes on.
    pub objects: Objects,
}

/// Who a session is that another one opened.
#[derive(Debug, Clone)]
pub struct Agent {
    /// What people see it called.
    pub name: String,
    /// The session that opened it.
    pub opener: SessionId,
    /// Stops the deadline of the call that opened it, while the person is asked.
    pub hold: Hold,
}

/// The objects that a session begins with.
#[derive(Clone)]
pub enum Objects {
    /// Its own.
    Own(ObjectEnvironment),
    /// Those of the session that opened it.
    Shared(SharedObjects),
}

impl Objects {
    fn shared(self, emitter: &Emitter) -> SharedObjects {
        match self {
            Self::Own(environment) => SharedObjects::new(environment, emitter.clone()),
            Self::Shared(objects) => objects.for_another(),
        }
    }
}

impl Default for Objects {
    fn default() -> Self {
        Self::Own(ObjectEnvironment::default())
    }
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Own(_) => "Own(…)",
            Self::Shared(_) => "Shared(…)",
        })
    }
}

impl SessionSetup {
    /// Makes the setup of a fresh session with everything at its default.
    pub fn new(model: ModelId, context_limit: u64, system: SystemPrompt) -> Self {
        Self {
            id: None,
            model: ModelSetup::new(model, context_limit),
            fallbacks: Vec::new(),
            system,
            limits: Limits::default(),
            caps: Caps::default(),
            spent: SharedSpent::default(),
            rules: SharedRules::default(),
            patience_ms: None,
            agent: None,
            gc: GcSettings::default(),
            history: History::new(),
            objects: Objects::default(),
        }
    }
}

/// One conversation.
pub struct Session {
    /// What its calls share.
    pub(crate) shared: Arc<Shared>,
    pub(crate) history: History,
    pub(crate) conditions: Conditions,
    /// Answers of commands that the model is shown with the next request.
    pub(crate) answers: Mutex<Vec<Part>>,
    pub(crate) gc: GcState,
    /// The system text without the part of the mode.
    pub(crate) system: SystemPrompt,
    /// What every request begins with; its messages are empty.
    pub(crate) prefix: Request,
    /// The options of the request that is sent next, where plugins changed them.
    pub(crate) options_asked: Option<RequestOptions>,
    pub(crate) model: ModelId,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) fallbacks: VecDeque<AnsweringModel>,
    pub(crate) takes: ModelTakes,
    pub(crate) sight: Sight,
    /// Images and files that are not sent, and what the model is told of them.
    pub(crate) left_out: LeftOut,
    /// Entries of the record that went out since the last cut: they stay as they are.
    pub(crate) sent_entries: usize,
    /// The tools that the model knows of, by the list and by parts of the history.
    pub(crate) told_tools: Vec<ToolSpec>,
    pub(crate) price: Option<Price>,
    pub(crate) is_price_configured: bool,
    /// Whether the user was told of counts of tokens that cannot be.
    pub(crate) has_told_counts: bool,
    /// What a server said that paused its answer: the next request ends with it.
    pub(crate) paused: Vec<Part>,
    /// Whether turns end without the tasks that they have started.
    pub(crate) lets_tasks_go_on: bool,
}

impl Session {
    /// Starts a session. A history that was left with open calls or without an answer is closed
    /// first, with results and a mark that say so.
    pub fn start(setup: SessionSetup, mut ports: Ports) -> Result<Self, HistoryError> {
        ports.outputs = Arc::new(MadeOutputs::new(ports.outputs));
        let SessionSetup { id, model: setup_of_model, system, limits, rules, history, gc, .. } =
            setup;
        let answering =
            AnsweringModel { model: setup_of_model.clone(), provider: Arc::clone(&ports.provider) };
        let ModelSetup { id: model, context_limit, origin, options, takes, .. } = setup_of_model;
        let id = id.unwrap_or_else(|| ports.ids.session());
        let toolbox = Toolbox::new(ports.tools.tools());
        let mut prefix = Request::new("", Vec::new());
        prefix.system = system.text_in(rules.lock().mode);
        prefix.tools = toolbox.active().cloned().collect();
        model::ask_for(&mut prefix, &model, options, &takes, &id);
        let told_tools = prefix.tools.clone();
        let facts = first_facts(&model, context_limit, &history, &gc, &ports);
        let emitter = Emitter::new(id.clone(), ports.events.clone());
        let provider = Arc::clone(&ports.provider);
        let objects = setup.objects.shared(&emitter);
        let (clock, hooks) = (Arc::clone(&ports.clock), Arc::clone(&ports.hooks));
        let hooks = HookAsker::new(hooks, clock, emitter.clone(), facts.clone(), id.clone());
        let shared = Arc::new(Shared {
            id,
            ports,
            hooks: Arc::new(hooks),
            limits,
            pace: Pace::default(),
            emitter,
            toolbox: Mutex::new(Arc::new(toolbox)),
            rules,
            patience_ms: setup.patience_ms,
            agent: setup.agent,
            facts,
            objects,
            tasks: Tasks::new(),
            inbox: Inbox::default(),
            forms: Forms::default(),
            model: Mutex::new(answering),
            spent: setup.spent,
            caps: setup.caps,
            late_instructions: Mutex::default(),
            told_instructions: Mutex::default(),
            beside: Beside::default(),
            record: Mutex::default(),
            plugin_calls: AtomicUsize::new(0),
        });
        let mut session = Self {
            shared,
            history,
            conditions: Conditions::default(),
            answers: Mutex::default(),
            gc: GcState::new(gc, context_limit, origin),
            system,
            prefix,
            options_asked: None,
            model: model.clone(),
            provider,
            fallbacks: setup.fallbacks.into(),
            takes,
            sight: Sight::default(),
            left_out: LeftOut::default(),
            sent_entries: 0,
            told_tools,
            price: setup_of_model.price,
            is_price_configured: setup_of_model.is_price_configured,
            has_told_counts: false,
            paused: Vec::new(),
            lets_tasks_go_on: false,
        };
        session.close_open_turn()?;
        session.tell_start();
        Ok(session)
    }

    fn tell_start(&mut self) {
        self.offer_declared();
        self.offer_view();
        self.tell_record();
        let tools = self.prefix.tools.iter().map(|spec| spec.name.clone()).collect();
        let agent = self.shared.agent.as_ref();
        let opener = agent.map(|agent| agent.opener.clone());
        let agent = agent.map(|agent| agent.name.clone());
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

    /// Returns the tools as they are at this moment.
    pub fn toolbox(&self) -> Arc<Toolbox> {
        self.shared.tools()
    }

    /// Returns a handle by which tools of the session are called while a turn runs.
    pub fn handle(&self) -> SessionHandle {
        SessionHandle::of(&self.shared)
    }

    /// Returns model and tokens as they are at this moment.
    pub fn facts(&self) -> ContextFacts {
        self.shared.facts.read()
    }

    /// Returns what it has used up.
    pub fn spent(&self) -> Spent {
        *self.shared.spent.lock()
    }

    /// Returns a handle on the session's events, for what happens between its turns too.
    pub fn emitter(&self) -> Emitter {
        self.shared.emitter.clone()
    }

    /// Returns a handle on the facts that stays readable while a turn runs.
    pub fn shared_facts(&self) -> SharedFacts {
        self.shared.facts.clone()
    }

    /// Returns what tools have put in front of the model.
    pub fn objects(&self) -> &SharedObjects {
        &self.shared.objects
    }

    /// Writes what tools have put in front of the model, and where it is asked for what the model
    /// never sees; of bytes their number.
    pub fn objects_json(&self, hidden: bool) -> serde_json::Value {
        self.shared.objects.with(|objects| {
            let mut json = serde_json::json!({ "environment": objects.to_json() });
            if hidden {
                json["hidden_environment"] = objects.hidden_json();
            }
            json
        })
    }

    /// Returns what is decided about calls, with the person's answers.
    pub fn rules(&self) -> &SharedRules {
        &self.shared.rules
    }

    /// Returns what takes a person's messages while a turn runs.
    pub fn inbox(&self) -> Inbox {
        self.shared.inbox.clone()
    }

    /// Lets calls that went to the background go on when the model has given its answer: the turn
    /// ends without them, and their ends wake the session. Else a turn waits for them.
    pub fn let_tasks_go_on(&mut self) {
        self.lets_tasks_go_on = true;
    }

    /// Returns what waits for ends of tasks and for what plugins notify, while the session is idle.
    pub fn wake(&self) -> Wake {
        let tasks = Arc::clone(self.shared.tasks.board());
        Wake { inbox: self.shared.inbox.clone(), tasks }
    }

    /// Ends all tasks and waits until they have; returns how many there were.
    pub async fn end_tasks(&self) -> usize {
        let board = self.shared.tasks.board();
        let running = board.all_running();
        board.cancel_all();
        board.all_ended().await;
        running
    }

    /// Takes back the forms that wait for the person: the session takes no more of them.
    pub async fn end_forms(&self) {
        self.shared.forms.end().await;
    }

    /// Shows the record to who reads it while a turn goes on.
    pub(crate) fn tell_record(&self) {
        let entries = self.history.entries().to_vec();
        *self.shared.record.lock() = entries;
    }

    /// Counts the calls that go on as tasks.
    pub fn running_tasks(&self) -> usize {
        self.shared.tasks.board().all_running()
    }

    /// Returns what plugins say about tools that they have set and that the model is told with the
    /// next message.
    pub fn instructions_to_tell(&self) -> Vec<(PluginName, String)> {
        self.shared.late_instructions.lock().clone().into_iter().collect()
    }

    /// Returns the request that would be sent next.
    pub fn request(&self) -> Request {
        let mut request = self.prefix.clone();
        if let Some(options) = &self.options_asked {
            request.options = options.clone();
        }
        request.messages = self.history.messages_for(&self.model).collect();
        request
            .messages
            .iter_mut()
            .for_each(|message| self.takes.in_words(message, self.left_out.words()));
        if !self.paused.is_empty() {
            request.messages.push(Message::model(self.paused.clone()));
        }
        request
    }

    /// Asks plugins what they would add to a prompt, and adds nothing.
    pub async fn additions_to(&self, prompt: &str, cancel: &Cancel) -> Vec<Addition> {
        self.shared.hooks.before_prompt(prompt, cancel).await
    }

    /// Runs a call that a person typed. It is the person's own act: nobody is asked, nothing of it
    /// joins the history, and the whole output is given back.
    pub async fn call(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        cancel: &Cancel,
    ) -> Result<Output> {
        self.shared.call(name, arguments, Initiative::Person, cancel).await
    }

    /// Offers the tool that looks at objects, once there are some.
    pub(crate) fn offer_view(&mut self) {
        // A model that is to have no tools may take none, this one included.
        let has_tools = self.shared.tools().active().next().is_some();
        let has_objects = self.shared.objects.with(|objects| !objects.is_empty(None));
        if has_tools && has_objects && self.shared.change_tools(Toolbox::add_view) {
            self.send_tools();
        }
    }

    /// Puts inactive tools at the end of the requests' tools; others are left alone.
    pub fn activate(&mut self, names: &[ToolName]) {
        for name in names {
            self.shared.change_tools(|toolbox| toolbox.activate(name));
        }
        self.send_tools();
    }
}

fn first_facts(
    model: &ModelId,
    context_limit: u64,
    history: &History,
    gc: &GcSettings,
    ports: &Ports,
) -> SharedFacts {
    SharedFacts::new(ContextFacts {
        model: model.as_str().to_owned(),
        context_limit,
        turns: history.turns(),
        gc: ports.gc.as_ref().filter(|plugin| plugin.is_there()).map(|_| facts(gc)),
        ..ContextFacts::default()
    })
}
