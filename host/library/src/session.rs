//! A conversation, its options, and the handle by which other threads reach it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jaato_runtime::saved::{OpenSession, Saving};
use jaato_runtime::session_loop::{
    Agent, Cancel, Caps, DeadlineHold, EventSink, Gate, History, HistoryEntry, PolicyMode,
    SessionClock, SessionSaver, SharedFacts, SystemClock, UserAsker, UserPrompt,
};
use jaato_runtime::sessions::SessionStore;
use jaato_runtime::types::permission_prompt::{PermissionAnswer, PermissionPrompt};
use jaato_runtime::types::service::ContextFacts;
use jaato_runtime::types::{
    CallId, Error, ErrorKind, EventEnvelope, RequestOptions, Result, SessionId, ToolName,
};
use jaato_runtime::{SessionOptions, SharedEnvironment, session_loop};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::mpsc::unbounded_channel;

use crate::builder::Jaato;
use crate::environment::OpenEnvironment;
use crate::events::{EventCallback, SessionEvents};
use crate::ledger::{LedgerRecorder, LedgerTap};
use crate::permission::{CallbackAsker, WaitingPrompts};
use crate::turn::Turn;

/// Prepares a session. Every option has a default: no tool needs more than its rules allow, no user
/// is asked, nothing is saved.
#[must_use = "`open` makes the session"]
pub struct SessionBuilder {
    jaato: Jaato,
    template: SessionTemplate,
    history: Vec<HistoryEntry>,
    save: SaveTarget,
}

/// What a session starts with each time that it is reset.
#[derive(Clone)]
struct SessionTemplate {
    asker: Option<Arc<dyn UserAsker>>,
    prompts: Arc<WaitingPrompts>,
    sinks: Vec<Arc<dyn EventSink>>,
    ledger: Option<Arc<dyn LedgerRecorder>>,
    allow: Vec<String>,
    allow_all: bool,
    mode: Option<PolicyMode>,
    system: Option<String>,
    model: Option<String>,
    request: RequestOptions,
    caps: Caps,
    tools: Option<Vec<ToolName>>,
    agent: Option<Agent>,
    gate: Option<Arc<dyn Gate>>,
    saver: Option<Arc<dyn SessionSaver>>,
    clock: Arc<dyn SessionClock>,
    environment: Option<SharedEnvironment>,
    environment_options: Map<String, Value>,
}

/// Where a session is saved.
pub(crate) enum SaveTarget {
    /// Nowhere.
    Nothing,
    /// In a folder, as a new session.
    Folder(PathBuf),
    /// In the folder where it was begun, with its id.
    Continued(PathBuf, SessionId),
}

/// A conversation. It ends when it is dropped; [`Session::close`] also waits for the end.
pub struct Session {
    state: Arc<SessionState>,
    runtime: tokio::runtime::Handle,
}

/// Reaches a session from any thread, also while a turn runs. Clones share the session.
#[derive(Clone)]
pub struct SessionHandle(Arc<SessionState>);

/// The state that a session shares with its handles and turns.
struct SessionState {
    jaato: Jaato,
    template: Mutex<SessionTemplate>,
    events: Arc<SessionEvents>,
    session: tokio::sync::Mutex<session_loop::Session>,
    current: Mutex<CurrentSession>,
    running: Mutex<BTreeMap<u64, Cancel>>,
    turns: AtomicU64,
    /// Whether the next turn must take changed request options.
    is_changed: Mutex<bool>,
}

/// The identity of the session, which changes when it is reset.
struct CurrentSession {
    id: SessionId,
    handle: session_loop::SessionHandle,
    facts: SharedFacts,
}

impl SessionBuilder {
    pub(crate) fn new(jaato: Jaato, save: SaveTarget) -> Self {
        let template = SessionTemplate {
            asker: None,
            prompts: Arc::default(),
            sinks: Vec::new(),
            ledger: None,
            allow: Vec::new(),
            allow_all: false,
            mode: None,
            system: None,
            model: None,
            request: RequestOptions::default(),
            caps: Caps::default(),
            tools: None,
            agent: None,
            gate: None,
            saver: None,
            clock: Arc::new(SystemClock::new()),
            environment: None,
            environment_options: Map::new(),
        };
        Self { jaato, template, history: Vec::new(), save }
    }

    /// Chooses the model: `provider/model`.
    pub fn model(mut self, model: &str) -> Self {
        self.template.model = Some(model.to_owned());
        self
    }

    /// Adds instructions to the system prompt.
    pub fn system(mut self, text: &str) -> Self {
        self.template.system = Some(text.to_owned());
        self
    }

    /// Restricts the session to some tools, which the model sees from the start. A `*` at the end
    /// of a name matches any rest, and `PLUGIN:` before it selects a plugin's. Without this, it has
    /// all tools of the host.
    pub fn tools<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.template.tools = Some(names.into_iter().map(ToolName::from).collect());
        self
    }

    /// Allows calls of a tool without a permission prompt: `TOOL`, or `PLUGIN:TOOL` for a plugin
    /// from elsewhere.
    pub fn allow(mut self, tool: &str) -> Self {
        self.template.allow.push(tool.to_owned());
        self
    }

    /// Allows every call that no rule denies.
    pub fn allow_all(mut self) -> Self {
        self.template.allow_all = true;
        self
    }

    /// Sets the approval mode.
    pub fn mode(mut self, mode: PolicyMode) -> Self {
        self.template.mode = Some(mode);
        self
    }

    /// Answers permission prompts by a function. [`allow`](crate::allow) and
    /// [`deny`](crate::deny) make answers, and each of `prompt.answers` is one.
    pub fn on_permission<F, A>(mut self, answer: F) -> Self
    where
        F: Fn(PermissionPrompt) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionAnswer> + Send + 'static,
    {
        let ask = move |prompt| {
            let answer = answer(prompt);
            async move { Ok(answer.await) }
        };
        self.template.asker = Some(Arc::new(CallbackAsker(ask)));
        self
    }

    /// Leaves permission prompts to [`SessionHandle::answer`]. The prompt is an event of the turn,
    /// which waits for the answer.
    pub fn answer_by_handle(mut self) -> Self {
        let prompts = Arc::clone(&self.template.prompts);
        let wait = move |prompt: PermissionPrompt| Arc::clone(&prompts).wait(prompt.call_id);
        self.template.asker = Some(Arc::new(CallbackAsker(wait)));
        self
    }

    /// Asks the user in the program's own way: permission prompts, forms, secrets.
    pub fn asker(mut self, asker: Arc<dyn UserAsker>) -> Self {
        self.template.asker = Some(asker);
        self
    }

    /// Replaces the policy that decides about calls before anyone is asked.
    pub fn policy(mut self, gate: Arc<dyn Gate>) -> Self {
        self.template.gate = Some(gate);
        self
    }

    /// Calls a function for each event, also between turns and of sessions that plugins open.
    pub fn on_event(self, receive: impl Fn(EventEnvelope) + Send + Sync + 'static) -> Self {
        self.events(Arc::new(EventCallback(receive)))
    }

    /// Adds a receiver of all events.
    pub fn events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.template.sinks.push(sink);
        self
    }

    /// Hands the ledger's records to the program, beside the ledger's file if there is one.
    pub fn ledger(mut self, recorder: Arc<dyn LedgerRecorder>) -> Self {
        self.template.ledger = Some(recorder);
        self
    }

    /// Replaces the source of time.
    pub fn clock(mut self, clock: Arc<dyn SessionClock>) -> Self {
        self.template.clock = clock;
        self
    }

    /// Saves the session in a folder, from which [`Jaato::resume`] continues it.
    pub fn save_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.save = SaveTarget::Folder(folder.into());
        self
    }

    /// Saves the session in the program's own store.
    pub fn saver(mut self, saver: Arc<dyn SessionSaver>) -> Self {
        self.template.saver = Some(saver);
        self
    }

    /// Continues a conversation, whichever model had it.
    pub fn history(mut self, entries: impl IntoIterator<Item = HistoryEntry>) -> Self {
        self.history = entries.into_iter().collect();
        self
    }

    /// Sets the options of each model request: temperature, effort, an output schema.
    pub fn request(mut self, options: RequestOptions) -> Self {
        self.template.request = options;
        self
    }

    /// Limits what the session may use in total.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.template.caps = caps;
        self
    }

    /// Names the session in permission prompts, if it is not the main agent.
    pub fn agent(mut self, name: &str, opener: Option<&SessionId>) -> Self {
        let opener = opener.cloned().unwrap_or_else(|| SessionId::from("program"));
        self.template.agent =
            Some(Agent { name: name.to_owned(), opener, hold: DeadlineHold::default() });
        self
    }

    /// Lends an open environment to the session, for its files, commands and terminals.
    pub fn environment(mut self, environment: &OpenEnvironment) -> Self {
        self.template.environment = Some(environment.shared());
        self
    }

    /// Sets options of the session's own environment, over the configuration.
    pub fn environment_options(mut self, options: Map<String, Value>) -> Self {
        self.template.environment_options = options;
        self
    }

    /// Opens the session. Contacts no server.
    ///
    /// # Errors
    /// If no provider offers the model, a tool does not exist, or a saved session cannot be
    /// continued.
    pub fn open(self) -> Result<Session> {
        let Self { jaato, template, history, save } = self;
        let events = template.distribute_events();
        let mut options = template.options(&events);
        options.saving = save.into_saving(&jaato)?;
        let history = to_history(history)?;
        let session = jaato.runtime().session_from(history, options)?;
        let state = SessionState {
            current: Mutex::new(CurrentSession::of(&session)),
            session: tokio::sync::Mutex::new(session),
            jaato,
            template: Mutex::new(template),
            events,
            running: Mutex::default(),
            turns: AtomicU64::new(0),
            is_changed: Mutex::new(false),
        };
        let runtime = tokio::runtime::Handle::current();
        Ok(Session { state: Arc::new(state), runtime })
    }
}

impl SessionTemplate {
    fn distribute_events(&self) -> Arc<SessionEvents> {
        let clock = Arc::clone(&self.clock);
        let ledger = self.ledger.clone().map(|to| LedgerTap::new(clock, to));
        SessionEvents::new(self.sinks.clone(), ledger)
    }

    fn options(&self, events: &Arc<SessionEvents>) -> SessionOptions {
        let template = self.clone();
        let unattended = SessionOptions::unattended(Arc::clone(events) as _);
        SessionOptions {
            asker: template.asker.unwrap_or(unattended.asker),
            allow: template.allow,
            allow_all: template.allow_all,
            mode: template.mode,
            system: template.system,
            model: template.model,
            request: template.request,
            caps: template.caps,
            tools: template.tools,
            agent: template.agent,
            gate: template.gate,
            saver: template.saver,
            clock: template.clock,
            environment: template.environment,
            environment_options: template.environment_options,
            ..unattended
        }
    }
}

impl SaveTarget {
    fn into_saving(self, jaato: &Jaato) -> Result<Saving> {
        match self {
            Self::Nothing => Ok(Saving::Off),
            Self::Folder(folder) => {
                let workspace = jaato.runtime().setup().workspace.root().display().to_string();
                Ok(Saving::New { store: SessionStore::new(folder), workspace })
            }
            Self::Continued(folder, id) => {
                let opened = OpenSession::open(SessionStore::new(folder), &id, false);
                let opened =
                    opened.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
                Ok(Saving::Continue(Box::new(opened)))
            }
        }
    }
}

impl CurrentSession {
    fn of(session: &session_loop::Session) -> Self {
        let (id, facts) = (session.id().clone(), session.shared_facts());
        Self { id, handle: session.handle(), facts }
    }
}

impl Session {
    /// Sends a prompt. The turn runs while the returned value is polled, and its future ends with
    /// the report. A second turn waits until the first has ended.
    pub fn send(&self, prompt: impl Into<UserPrompt>) -> Turn {
        let guard = RunningTurn::begin(&self.state);
        let (cancel, state, prompt) = (guard.cancel(), Arc::clone(&self.state), prompt.into());
        let (to, events) = unbounded_channel();
        let running = Box::pin(async move {
            let mut session = state.session.lock().await;
            state.apply_changes(&mut session);
            let events = state.events.send_to(session.id().clone(), to);
            let report = session.turn(prompt, &cancel).await;
            session.written().await;
            drop(events);
            report
        });
        Turn::new(guard, running, events)
    }

    /// Returns a handle for other threads.
    pub fn handle(&self) -> SessionHandle {
        SessionHandle(Arc::clone(&self.state))
    }

    /// Returns the session's id.
    pub fn id(&self) -> SessionId {
        self.state.current.lock().id.clone()
    }

    /// Returns the conversation. While a turn runs, it lacks the current step.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.state.history()
    }

    /// Begins again with this conversation, as a new session with the same options. Waits for a
    /// running turn. What the old session saved stays as it is, and the new one is not saved.
    ///
    /// # Errors
    /// If the entries are not a valid conversation. The session then stays as it is.
    pub async fn reset(&self, entries: impl IntoIterator<Item = HistoryEntry>) -> Result<()> {
        let history = to_history(entries.into_iter().collect())?;
        let mut session = self.state.session.lock().await;
        let options = self.state.template.lock().options(&self.state.events);
        let begun = self.state.jaato.runtime().session_from(history, options)?;
        *self.state.current.lock() = CurrentSession::of(&begun);
        let old = std::mem::replace(&mut *session, begun);
        // The new session has entered a shared environment by now, so that it stays open.
        self.state.jaato.runtime().close_session(old.id()).await;
        Ok(())
    }

    /// Answers with another model from the next turn on.
    ///
    /// # Errors
    /// If no provider offers it.
    pub async fn change_model(&self, model: &str) -> Result<()> {
        let mut session = self.state.session.lock().await;
        let request = self.state.template.lock().request.clone();
        self.state.jaato.runtime().change_model(&mut session, model, &request)?;
        self.state.template.lock().model = Some(model.to_owned());
        Ok(())
    }

    /// Changes the session's name in permission prompts: `None` for the main agent. Begins again
    /// with the same conversation, as [`Session::reset`].
    ///
    /// # Errors
    /// As [`Session::reset`].
    pub async fn set_agent(&self, agent: Option<&str>) -> Result<()> {
        self.state.template.lock().agent = agent.map(|name| Agent {
            name: name.to_owned(),
            opener: SessionId::from("program"),
            hold: DeadlineHold::default(),
        });
        self.reset(self.history()).await
    }

    /// Calls a tool of the session for the program itself: no permission prompt, no entry in the
    /// history.
    ///
    /// # Errors
    /// If the tool does not exist, its arguments do not match, or it fails.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Map<String, Value>> {
        let session = self.state.session.lock().await;
        let output = session.call(&ToolName::from(tool), arguments, &Cancel::new()).await?;
        Ok(output.content)
    }

    /// Ends the session and waits until its plugins and programs have ended.
    pub async fn close(self) {
        self.handle().stop();
        let id = self.id();
        self.state.session.lock().await.written().await;
        self.state.jaato.runtime().close_session(&id).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let (id, jaato) = (self.id(), self.state.jaato.clone());
        self.handle().stop();
        // Nothing remains to be closed after `close`, or on a runtime that has ended.
        drop(self.runtime.spawn(async move { jaato.runtime().close_session(&id).await }));
    }
}

impl SessionHandle {
    /// Cancels the running turn, and those that wait for it. Their reports say so.
    pub fn stop(&self) {
        self.0.running.lock().values().for_each(Cancel::cancel);
    }

    /// Returns true from the moment a turn is sent until it has ended or was dropped.
    pub fn is_processing(&self) -> bool {
        !self.0.running.lock().is_empty()
    }

    /// Returns the conversation. While a turn runs, it lacks the current step.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.0.history()
    }

    /// Answers a permission prompt of a session with [`SessionBuilder::answer_by_handle`]. Returns
    /// false if no prompt waits for this call.
    pub fn answer(&self, call: &CallId, answer: PermissionAnswer) -> bool {
        self.0.template.lock().prompts.answer(call, answer)
    }

    /// Streams answers, or gets each one whole, from the next turn on.
    pub fn set_streaming(&self, stream: bool) {
        let mut template = self.0.template.lock();
        if template.request.stream.unwrap_or(true) != stream {
            template.request.stream = Some(stream);
            *self.0.is_changed.lock() = true;
        }
    }

    /// Returns the model and its tokens so far.
    pub fn facts(&self) -> ContextFacts {
        self.0.current.lock().facts.read()
    }

    /// Changes the approval mode.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn set_mode(&self, mode: PolicyMode) -> Result<()> {
        self.0.current.lock().handle.set_mode(mode)
    }
}

impl SessionState {
    fn history(&self) -> Vec<HistoryEntry> {
        let entries = match self.session.try_lock() {
            Ok(session) => session.history().entries().to_vec(),
            Err(_) => self.current.lock().handle.record().unwrap_or_default(),
        };
        entries.iter().map(|entry| HistoryEntry::clone(entry)).collect()
    }

    /// Takes request options that were changed since the last turn.
    fn apply_changes(&self, session: &mut session_loop::Session) {
        if !std::mem::take(&mut *self.is_changed.lock()) {
            return;
        }
        let (model, request) = (session.facts().model, self.template.lock().request.clone());
        // The model answers already, so that only a provider without this option refuses it. It
        // then does what it always does.
        let _ = self.jaato.runtime().change_model(session, &model, &request);
    }
}

/// A turn that was sent, until it has ended. Dropping it before that cancels the turn.
pub(crate) struct RunningTurn {
    state: Arc<SessionState>,
    number: u64,
    cancel: Cancel,
}

impl RunningTurn {
    fn begin(state: &Arc<SessionState>) -> Self {
        let (number, cancel) = (state.turns.fetch_add(1, Relaxed), Cancel::new());
        state.running.lock().insert(number, cancel.clone());
        Self { state: Arc::clone(state), number, cancel }
    }

    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Ends without a cancellation.
    pub(crate) fn end(&self) {
        self.state.running.lock().remove(&self.number);
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        if self.state.running.lock().remove(&self.number).is_some() {
            self.cancel.cancel();
        }
    }
}

fn to_history(entries: Vec<HistoryEntry>) -> Result<History> {
    let restored = History::restore(entries);
    restored.map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))
}
