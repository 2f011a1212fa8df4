//! A conversation, its options, and the handle by which other threads reach it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use jaato_runtime::config::GcSettings;
use jaato_runtime::saved::{OpenSession, SaveMode};
use jaato_runtime::session_loop::{
    Agent, CallGate, Cancel, Caps, DeadlineHold, EventSink, GcPreview, GcReport, GcUndoResult,
    History, HistoryEntry, PolicyMode, SessionClock, SessionSaver, SharedFacts, SystemClock,
    UserAsker, UserPrompt,
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
use tokio::runtime::Handle;
use tokio::sync::mpsc::unbounded_channel;

use crate::builder::Jaato;
use crate::environment::OpenEnvironment;
use crate::events::{EventCallback, SessionEvents};
use crate::ledger::{LedgerRecorder, LedgerTap};
use crate::permission::{CallbackAsker, WaitingPrompts};
use crate::turn::Turn;

/// The longest wait for a turn that [`Session::close`] has cancelled. A turn that no one polls does
/// not end.
const TURN_END_MAX: Duration = Duration::from_secs(1);

/// Prepares a session. Every option has a default: no tool needs more than its rules allow, no user
/// is asked, nothing is saved.
#[must_use = "`open` makes the session"]
pub struct SessionBuilder {
    jaato: Jaato,
    template: SessionTemplate,
    history: Vec<HistoryEntry>,
    save: SaveTarget,
}

/// The state of a session after each reset.
#[derive(Clone)]
struct SessionTemplate {
    asker: Option<Arc<dyn UserAsker>>,
    /// The prompts that wait for [`SessionHandle::answer`], if they are answered that way.
    prompts: Option<Arc<WaitingPrompts>>,
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
    /// The program's choice, which may be none. `None` leaves it to the configuration.
    gc: Option<Option<GcSettings>>,
    gate: Option<Arc<dyn CallGate>>,
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

/// A conversation. It ends some time after it is dropped. Before [`Jaato::resume`] continues the
/// same session, await [`Session::close`] and drop its turns.
pub struct Session {
    state: Arc<SessionState>,
    /// Where a dropped session ends. `None` after [`Session::close`].
    runtime: Option<Handle>,
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
    /// Whether the next turns stream, if [`SessionHandle::set_streaming`] said so.
    is_streaming: Mutex<Option<bool>>,
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
            prompts: None,
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
            gc: None,
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

    /// Allows calls to a tool without a permission prompt: `TOOL`, or `PLUGIN:TOOL` for a plugin
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
    pub fn on_permission<F, A>(self, answer: F) -> Self
    where
        F: Fn(PermissionPrompt) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionAnswer> + Send + 'static,
    {
        let ask = move |prompt| {
            let answer = answer(prompt);
            async move { Ok(answer.await) }
        };
        self.asker(Arc::new(CallbackAsker(ask)))
    }

    /// Leaves permission prompts to [`SessionHandle::answer`]. The prompt is an event of the turn,
    /// which waits for the answer. Prompts of sessions that plugins open are events of it too.
    pub fn answer_by_handle(self) -> Self {
        let prompts = Arc::<WaitingPrompts>::default();
        let waiting = Arc::clone(&prompts);
        let wait = move |prompt: PermissionPrompt| Arc::clone(&waiting).wait(prompt.call_id);
        let mut builder = self.asker(Arc::new(CallbackAsker(wait)));
        builder.template.prompts = Some(prompts);
        builder
    }

    /// Asks the user in the program's own way: permission prompts, forms, secrets.
    pub fn asker(mut self, asker: Arc<dyn UserAsker>) -> Self {
        (self.template.asker, self.template.prompts) = (Some(asker), None);
        self
    }

    /// Replaces the policy that decides about calls before anyone is asked.
    pub fn policy(mut self, gate: Arc<dyn CallGate>) -> Self {
        self.template.gate = Some(gate);
        self
    }

    /// Calls a function for each event, also between turns and of sessions that plugins open. It
    /// must return quickly, and must not call the session or its handle except for
    /// [`SessionHandle::answer`].
    pub fn on_event(self, receive: impl Fn(EventEnvelope) + Send + Sync + 'static) -> Self {
        self.events(Arc::new(EventCallback(receive)))
    }

    /// Adds a receiver of all events.
    pub fn events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.template.sinks.push(sink);
        self
    }

    /// Hands the ledger's records to the program, in addition to the ledger's file if there is one.
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
        self.template.agent = Some(to_agent(name, opener));
        self
    }

    /// Lends an open environment to the session, for its files, commands and terminals.
    pub fn environment(mut self, environment: &OpenEnvironment) -> Self {
        self.template.environment = Some(environment.shared_environment());
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
    /// If no provider offers the model, a tool does not exist, a saved session cannot be continued,
    /// or both a folder and a saver were given.
    pub fn open(self) -> Result<Session> {
        let Self { jaato, mut template, history, save } = self;
        let is_continued = matches!(save, SaveTarget::Continued(..));
        if template.saver.is_some() && !matches!(save, SaveTarget::Nothing) {
            let text = "a session cannot be saved both in a folder and by the program's own saver";
            return Err(Error::new(ErrorKind::Configuration, text)
                .with_hint("leave out `saver`, or the folder of `save_in` or `resume`"));
        }
        let events = template.distribute_events();
        let mut options = template.options(&events);
        options.saving = save.into_saving(&jaato)?;
        let history = to_history(history)?;
        let session = jaato.runtime().open_session_from(history, options)?;
        if is_continued {
            // A reset keeps the model and the mode that the session was saved with.
            template.model.get_or_insert(session.facts().model);
            template.mode.get_or_insert(session.rules().lock().mode);
        }
        let state = SessionState {
            current: Mutex::new(CurrentSession::from_session(&session)),
            session: tokio::sync::Mutex::new(session),
            jaato,
            template: Mutex::new(template),
            events,
            running: Mutex::default(),
            turns: AtomicU64::new(0),
            is_streaming: Mutex::new(None),
        };
        Ok(Session { state: Arc::new(state), runtime: Some(Handle::current()) })
    }
}

impl SessionTemplate {
    fn distribute_events(&self) -> Arc<SessionEvents> {
        let clock = Arc::clone(&self.clock);
        let ledger = self.ledger.clone().map(|to| LedgerTap::new(clock, to));
        SessionEvents::new(self.sinks.clone(), ledger, self.prompts.clone())
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
    fn into_saving(self, jaato: &Jaato) -> Result<SaveMode> {
        match self {
            Self::Nothing => Ok(SaveMode::Off),
            Self::Folder(folder) => {
                let workspace = jaato.runtime().setup().workspace.root().display().to_string();
                Ok(SaveMode::New { store: SessionStore::new(folder), workspace, opener: None })
            }
            Self::Continued(folder, id) => {
                let opened = OpenSession::open(SessionStore::new(folder), &id, false);
                let opened =
                    opened.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
                Ok(SaveMode::Continue(Box::new(opened)))
            }
        }
    }
}

impl CurrentSession {
    fn from_session(session: &session_loop::Session) -> Self {
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
            if let Some(is_streaming) = *state.is_streaming.lock() {
                session.set_streaming(is_streaming);
            }
            let events = state.events.send_to(session.id().clone(), to);
            let report = session.run_turn(prompt, &cancel).await;
            session.wait_until_written().await;
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
    /// running turn, so poll or drop it. What the old session saved stays as it is, and the new one
    /// is not saved.
    ///
    /// # Errors
    /// If the entries are not a valid conversation, or the gc of [`Session::change_gc`] has become
    /// unusable. The session then stays as it is.
    pub async fn reset(&self, entries: impl IntoIterator<Item = HistoryEntry>) -> Result<()> {
        let history = to_history(entries.into_iter().collect())?;
        let mut session = self.state.session.lock().await;
        let options = self.state.template.lock().options(&self.state.events);
        let mut begun = self.state.jaato.runtime().open_session_from(history, options)?;
        let gc = self.state.template.lock().gc.clone();
        let chosen = gc.map(|gc| self.state.jaato.runtime().change_gc(&mut begun, gc));
        if let Some(Err(error)) = chosen {
            self.state.jaato.runtime().close_session(begun.id()).await;
            return Err(error);
        }
        *self.state.current.lock() = CurrentSession::from_session(&begun);
        let old = std::mem::replace(&mut *session, begun);
        // The new session has entered a shared environment by now, so that it stays open.
        self.state.jaato.runtime().close_session(old.id()).await;
        Ok(())
    }

    /// Answers with another model from the next turn on. Waits for a running turn, so poll or drop
    /// it.
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

    /// Replaces the gc and its settings from the next turn on. `settings.plugin` names the gc.
    /// `None` removes it. Waits for a running turn, so poll or drop it.
    ///
    /// # Errors
    /// If no usable plugin is that gc. The session then keeps the gc that it has.
    pub async fn change_gc(&self, settings: Option<GcSettings>) -> Result<()> {
        let mut session = self.state.session.lock().await;
        self.state.jaato.runtime().change_gc(&mut session, settings.clone())?;
        self.state.template.lock().gc = Some(settings);
        Ok(())
    }

    /// Collects now, even if the context is not full. Waits for a running turn, so poll or drop it.
    ///
    /// # Errors
    /// If the session has no gc, or the gc fails. The context then stays as it is.
    pub async fn gc(&self) -> Result<GcReport> {
        self.state.session.lock().await.collect_for_user(&Cancel::new()).await
    }

    /// Returns what [`Session::gc`] would leave out, and changes nothing. Waits for a running turn,
    /// so poll or drop it.
    ///
    /// # Errors
    /// As [`Session::gc`].
    pub async fn preview_gc(&self) -> Result<GcPreview> {
        self.state.session.lock().await.preview_gc(&Cancel::new()).await
    }

    /// Undoes the last collection. Waits for a running turn, so poll or drop it.
    ///
    /// # Errors
    /// `not_found` if there is nothing to undo, `limit_reached` if the messages do not fit.
    pub async fn undo_gc(&self) -> Result<GcUndoResult> {
        self.state.session.lock().await.undo_gc()
    }

    /// Changes the session's name in permission prompts, from the next one on: `None` for the main
    /// agent.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn set_agent(&self, agent: Option<&str>) -> Result<()> {
        let agent = agent.map(|name| to_agent(name, None));
        self.state.template.lock().agent.clone_from(&agent);
        self.state.handle().set_agent(agent)
    }

    /// Calls a tool of the session for the program itself: no permission prompt, no entry in the
    /// history. Does not wait for a running turn.
    ///
    /// # Errors
    /// If the tool does not exist, its arguments do not match, or it fails.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Map<String, Value>> {
        let (handle, tool) = (self.state.handle(), ToolName::from(tool));
        Ok(handle.run_user_call(&tool, arguments, &Cancel::new()).await?.content)
    }

    /// Ends the session and waits until its plugins and programs have ended. Cancels a running
    /// turn.
    pub async fn close(mut self) {
        self.handle().stop();
        // Without an end of the turn, only the history so far is written.
        drop(tokio::time::timeout(TURN_END_MAX, self.state.session.lock()).await);
        self.state.handle().wait_until_written().await;
        self.state.close().await;
        self.runtime = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        self.handle().stop();
        // The task holds the session, so that plugins still hear about its end.
        let state = Arc::clone(&self.state);
        // A runtime that has ended drops the task.
        drop(runtime.spawn(async move { state.close().await }));
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
        let prompts = self.0.template.lock().prompts.clone();
        prompts.is_some_and(|prompts| prompts.answer(call, answer))
    }

    /// Streams answers, or gets each one in full, from the next turn on. A provider without this
    /// option keeps its own way.
    pub fn set_streaming(&self, is_streaming: bool) {
        *self.0.is_streaming.lock() = Some(is_streaming);
    }

    /// Returns the model and its tokens so far.
    pub fn facts(&self) -> ContextFacts {
        self.0.current.lock().facts.snapshot()
    }

    /// Changes the approval mode.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn set_mode(&self, mode: PolicyMode) -> Result<()> {
        self.0.handle().set_mode(mode)?;
        self.0.template.lock().mode = Some(mode);
        Ok(())
    }
}

impl SessionState {
    /// Returns the handle of the session as it is now. No lock is held while it is used.
    fn handle(&self) -> session_loop::SessionHandle {
        self.current.lock().handle.clone()
    }

    fn history(&self) -> Vec<HistoryEntry> {
        // The state holds the session, which therefore still exists.
        let record = self.handle().published_record().unwrap_or_default();
        record.entries.iter().map(|entry| HistoryEntry::clone(entry)).collect()
    }

    async fn close(&self) {
        let id = self.current.lock().id.clone();
        self.jaato.runtime().close_session(&id).await;
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

/// Returns the identity of a session that the program opens. It has its own rules.
fn to_agent(name: &str, opener: Option<&SessionId>) -> Agent {
    let opener = opener.cloned().unwrap_or_else(|| SessionId::from("program"));
    Agent { name: name.to_owned(), opener, shares_rules: false, hold: DeadlineHold::default() }
}

fn to_history(entries: Vec<HistoryEntry>) -> Result<History> {
    let restored = History::restore(entries);
    restored.map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))
}
