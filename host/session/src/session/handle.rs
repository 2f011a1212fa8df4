//! The state that a session's calls share, behind one handle: its tools, its rules and its ports.
//!
//! The session itself is borrowed while a turn runs. A handle is not, so its owner can call the
//! session's tools during a turn, through the same permission check, with the same limits and the
//! same events as the model.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, Weak};

use jaato_policy::Rules;
use jaato_types::ask::{Form, FormAnswer};
use jaato_types::model::{ModelAnswer, ModelComplete};
use jaato_types::tasks::{
    TASK_MS_MAX, TASK_WAIT_MS_MAX, TaskFacts, TaskRead, TaskReadAnswer, TaskStart,
};
use jaato_types::tools_list::ToolFacts;
use jaato_types::{
    Error, ErrorKind, Event, ModelId, Output, PluginName, Result, SessionId, ToolCall, ToolName,
    Usage,
};
use parking_lot::Mutex;

use super::forms::SessionForms;
use super::limited_count::CountedItem;
use super::side_requests::{AskingPlugin, PieceSink, PluginModelRequests};
use crate::calls::{CallInitiator, CallRunner};
use crate::events::EventEmitter;
use crate::hooks::HookAsker;
use crate::pace::RequestPace;
use crate::session::Agent;
use crate::tasks::{AgentTask, AgentTurn, BackgroundTasks, RunningTask};
use crate::{
    AnsweringModel, CALL_DEPTH_MAX, CallGate, CallOrigin, Cancel, Caps, DeadlineHold, HistoryEntry,
    Inbox, Limits, SavedState, SessionPorts, SharedBudget, SharedFacts, SharedObjects, SharedRules,
    SharedUsage, Toolbox, UserAsker,
};

/// The maximum number of plugin calls that run at once in a session. One more is refused instead of
/// waiting, because the plugin may itself be running one of these calls.
pub const PLUGIN_CALLS_MAX: usize = 16;

/// Longest wait for the disk before a request, in milliseconds.
const WRITTEN_MS_MAX: u64 = 200;

/// The state that a session's calls share.
pub(crate) struct SessionShared {
    pub(crate) id: SessionId,
    pub(crate) ports: SessionPorts,
    pub(crate) hooks: Arc<HookAsker>,
    pub(crate) limits: Limits,
    pub(crate) pace: RequestPace,
    pub(crate) emitter: EventEmitter,
    /// May change between the calls of a turn. A call keeps the tools that it began with.
    pub(crate) toolbox: Mutex<Arc<Toolbox>>,
    pub(crate) rules: SharedRules,
    /// How long to wait for an answer to a question.
    pub(crate) patience_ms: Option<u64>,
    /// The session's identity, if it is not the main agent.
    pub(crate) agent: Mutex<Option<Agent>>,
    pub(crate) facts: SharedFacts,
    pub(crate) objects: SharedObjects,
    pub(crate) tasks: BackgroundTasks,
    pub(crate) inbox: Inbox,
    /// The plugins' forms for the user.
    pub(crate) forms: SessionForms,
    /// The model that currently answers.
    pub(crate) model: Mutex<AnsweringModel>,
    /// The usage so far, and its caps.
    pub(crate) spent: SharedUsage,
    pub(crate) caps: Caps,
    /// The budget that it shares with other sessions.
    pub(crate) budget: Option<SharedBudget>,
    /// The budget that it shares with the sessions that it has opened, if it has caps.
    pub(crate) budget_of_tree: OnceLock<SharedBudget>,
    /// Plugins' instructions about tools that they have set, until the model gets them.
    pub(crate) late_instructions: Mutex<BTreeMap<PluginName, String>>,
    /// Each plugin's last such instructions, so that they are not repeated.
    pub(crate) told_instructions: Mutex<BTreeMap<PluginName, String>>,
    /// The plugins' requests to models.
    pub(crate) beside: PluginModelRequests,
    /// The number of messages that events have had, if front ends ask for messages.
    pub(crate) told_messages: Option<AtomicUsize>,
    /// The record as it was last published.
    pub(crate) record: Mutex<PublishedRecord>,
    /// The number of plugin calls that run.
    pub(crate) plugin_calls: AtomicUsize,
}

/// The record of a session, as calls and front ends read it while a turn runs.
#[derive(Debug, Clone, Default)]
pub struct PublishedRecord {
    /// The entries.
    pub entries: Vec<Arc<HistoryEntry>>,
    /// The number of turns whose entries the record no longer keeps.
    pub turns_forgotten: u64,
}

/// The state that a session shares with sessions that it opens.
pub struct SharedSessionState {
    /// The model that answers in it.
    pub model: ModelId,
    /// The front end that asks the user.
    pub asker: Arc<dyn UserAsker>,
    /// The rules.
    pub rules: SharedRules,
    /// How long to wait for an answer to a question.
    pub patience_ms: Option<u64>,
    /// The usage of all of them so far.
    pub spent: SharedUsage,
    /// The caps for all of them together.
    pub caps: Caps,
    /// The budget that they share with further sessions.
    pub budget: Option<SharedBudget>,
    /// Whether an event has each new message of the record.
    pub tells_messages: bool,
    /// The objects that tools have shown to its model.
    pub objects: SharedObjects,
    /// Its permission check, for sessions in the same environment.
    pub gate: Arc<dyn CallGate>,
    /// Its tools.
    pub tools: Arc<Toolbox>,
    /// Pauses the deadline of the call that opens one.
    pub hold: DeadlineHold,
}

/// A handle for calling a session's tools while a turn runs. It does not keep the session alive.
#[derive(Clone)]
pub struct SessionHandle(Weak<SessionShared>);

impl SessionHandle {
    pub(crate) fn for_session(shared: &Arc<SessionShared>) -> Self {
        Self(Arc::downgrade(shared))
    }

    /// Calls a tool for a plugin, and waits for its whole output. The rules and permission prompts
    /// apply as if the model had called. The call does not join the history, but emits events.
    /// While the user is asked, the deadline of the plugin's own call pauses.
    ///
    /// # Errors
    /// `unavailable` when the session is over. `limit_reached` for a call nested below
    /// [`CALL_DEPTH_MAX`] others, or while [`PLUGIN_CALLS_MAX`] others run. Also the errors of the
    /// permission check and of the tool.
    pub async fn call_tool(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        origin: &CallOrigin,
        cancel: &Cancel,
    ) -> Result<Output> {
        let shared = self.live_session()?;
        if origin.depth > CALL_DEPTH_MAX {
            let text = format!("tool calls can be nested at most {CALL_DEPTH_MAX} deep");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        let _running = shared.count_plugin_call()?;
        let call = ToolCall::new(shared.ports.ids.create_call_id(), name.clone(), arguments);
        shared.await_tool(&call, cancel).await;
        let mut runner = shared.call_runner(CallInitiator::Plugin, cancel);
        runner.origin = Some(origin);
        runner.run_whole(&call).await
    }

    /// Runs a call that the user typed, as
    /// [`Session::run_user_call`](crate::Session::run_user_call).
    ///
    /// # Errors
    /// `unavailable` when the session is over. Also the tool's errors.
    pub async fn run_user_call(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        cancel: &Cancel,
    ) -> Result<Output> {
        self.live_session()?.run_call(name, arguments, CallInitiator::Person, cancel).await
    }

    /// Waits until everything so far is written, as
    /// [`Session::wait_until_written`](crate::Session::wait_until_written).
    pub async fn wait_until_written(&self) {
        if let Ok(shared) = self.live_session() {
            shared.wait_until_written().await;
        }
    }

    /// Changes the session's identity in permission prompts and forms, from the next one on.
    /// `None` makes it the main agent.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn set_agent(&self, agent: Option<Agent>) -> Result<()> {
        *self.live_session()?.agent.lock() = agent;
        Ok(())
    }

    /// Starts a call that no turn waits for, after the permission check. Returns its task.
    ///
    /// # Errors
    /// As [`SessionHandle::call_tool`], and `limit_reached` if too many tasks run.
    pub async fn start_task(
        &self,
        asked: TaskStart,
        origin: &CallOrigin,
        cancel: &Cancel,
    ) -> Result<String> {
        let shared = self.live_session()?;
        let _running = shared.count_plugin_call()?;
        let timeout_ms = (asked.timeout_ms > 0).then(|| asked.timeout_ms.min(TASK_MS_MAX));
        let call = ToolCall::new(shared.ports.ids.create_call_id(), asked.name, asked.arguments);
        shared.await_tool(&call, cancel).await;
        let mut runner = shared.call_runner(CallInitiator::Plugin, cancel);
        runner.origin = Some(origin);
        runner.run_detached(&call, origin.plugin.as_str(), timeout_ms).await
    }

    /// Tells plugins that the session ends, if it had a prompt. Waits for their answers.
    pub async fn notify_end(&self) {
        if let Ok(shared) = self.live_session() {
            shared.hooks.notify_session_end().await;
        }
    }

    /// Lists the tools that may be called.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn list_tools(&self) -> Result<Vec<ToolFacts>> {
        Ok(self.live_session()?.current_tools().tool_facts())
    }

    /// Lists the tasks of the session, including ended ones.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn list_tasks(&self) -> Result<Vec<TaskFacts>> {
        Ok(self.live_session()?.tasks.list_tasks())
    }

    /// Lists the running tasks, for the user.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn running_tasks(&self) -> Result<Vec<RunningTask>> {
        Ok(self.live_session()?.tasks.list_running_tasks())
    }

    /// Returns the rules about calls, with the user's answers.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn rules(&self) -> Result<SharedRules> {
        Ok(Arc::clone(&self.live_session()?.rules))
    }

    /// Changes the rules, for example removes an answer.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn change_rules<T>(&self, change: impl FnOnce(&mut Rules) -> T) -> Result<T> {
        let shared = self.live_session()?;
        let changed = shared.rules.change_rules(change);
        shared.save_changed_rules();
        Ok(changed)
    }

    /// Changes the approval mode for all sessions that share the rules.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn set_mode(&self, mode: jaato_policy::PolicyMode) -> Result<()> {
        let shared = self.live_session()?;
        shared.rules.change_rules(|rules| rules.mode = mode);
        shared.save_changed_rules();
        shared.emitter.emit(Event::ModeChanged { mode: mode.name().to_owned() });
        Ok(())
    }

    /// Reads a task's output. Waits for more output or the task's end, as long as the request says.
    ///
    /// # Errors
    /// `not_found` if the task does not exist. `unavailable` when the session is over.
    pub async fn read_task(&self, asked: &TaskRead) -> Result<TaskReadAnswer> {
        let shared = self.live_session()?;
        if asked.wait_ms > 0 {
            let wait = shared.ports.clock.sleep(asked.wait_ms.min(TASK_WAIT_MS_MAX));
            tokio::select! {
                biased;
                changed = shared.tasks.wait_for_change(&asked.task_id, asked.offset) => changed?,
                () = wait => {}
            }
        }
        shared.tasks.read_task(asked)
    }

    /// Ends a task.
    ///
    /// # Errors
    /// As [`SessionHandle::read_task`].
    pub fn cancel_task(&self, task_id: &str) -> Result<TaskFacts> {
        self.live_session()?.tasks.board().cancel_task(task_id)
    }

    /// Passes a message to the model with the next request. Wakes an idle session.
    ///
    /// # Errors
    /// `limit_reached` if too many messages are already waiting for the model.
    pub fn notify_model(&self, plugin: &PluginName, text: String) -> Result<()> {
        let shared = self.live_session()?;
        let source = plugin.as_str().to_owned();
        let told = Event::Notified { source: source.clone(), text: text.clone() };
        shared.inbox.add_notification(&source, text, || shared.emitter.emit(told))
    }

    /// Returns true if the session has a model and is not over.
    pub fn has_model(&self) -> bool {
        self.live_session().is_ok_and(|shared| !shared.model.lock().model.id.as_str().is_empty())
    }

    /// Shows the user a line.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn show_notice(&self, line: String) -> Result<()> {
        self.live_session()?.emitter.emit_notice(line);
        Ok(())
    }

    /// Passes instructions about tools to the model with the next request, without waking the
    /// session. They replace earlier instructions of the same plugin that still wait.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn set_instructions(&self, plugin: &PluginName, text: &str) -> Result<()> {
        let shared = self.live_session()?;
        let mut late = shared.late_instructions.lock();
        match shared.told_instructions.lock().get(plugin).is_some_and(|told| told == text) {
            true => late.remove(plugin),
            false => late.insert(plugin.clone(), text.to_owned()),
        };
        Ok(())
    }

    /// Asks a model for a plugin, separate from the conversation. Without a given model, the
    /// session's answers. The request counts against the session's caps.
    ///
    /// # Errors
    /// `limit_reached` at a cap, or if too many requests wait. `unavailable` if the session's model
    /// holds only one conversation. Also the provider's errors.
    pub async fn ask_model(
        &self,
        asker: &AskingPlugin,
        asked: ModelComplete,
        other: Option<AnsweringModel>,
        take: PieceSink,
        cancel: &Cancel,
    ) -> Result<ModelAnswer> {
        let shared = self.live_session()?;
        shared.beside.complete_for_plugin(&shared, asker, asked, other, take, cancel).await
    }

    /// Asks the user, one form at a time.
    ///
    /// # Errors
    /// `invalid_arguments` for a form that cannot be shown. `limit_reached` if too many wait.
    pub async fn ask_form(
        &self,
        plugin: &PluginName,
        form: &Form,
        cancel: &Cancel,
    ) -> Result<FormAnswer> {
        let shared = self.live_session()?;
        tokio::select! {
            biased;
            answer = shared.forms.ask_form(plugin, form, &shared) => answer,
            () = cancel.cancelled() => Err(Error::cancelled()),
        }
    }

    /// Returns the state to share with a session that a call with this deadline opens.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn share_state(&self, hold: &DeadlineHold) -> Result<SharedSessionState> {
        let shared = self.live_session()?;
        Ok(SharedSessionState {
            model: shared.model.lock().model.id.clone(),
            asker: Arc::clone(&shared.ports.asker),
            rules: Arc::clone(&shared.rules),
            patience_ms: shared.patience_ms,
            spent: shared.spent.clone(),
            caps: shared.caps.clone(),
            budget: shared.begin_tree_budget(),
            tells_messages: shared.told_messages.is_some(),
            objects: shared.objects.clone(),
            gate: Arc::clone(&shared.ports.gate),
            tools: shared.current_tools(),
            hold: hold.clone(),
        })
    }

    /// Begins a task for a turn of a session that this one has opened.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn begin_agent_task(&self, turn: AgentTurn, message: &str) -> Result<AgentTask> {
        Ok(AgentTask::begin_task(&self.live_session()?, turn, message))
    }

    /// Returns the record of the conversation as it was before the current step.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn published_record(&self) -> Result<PublishedRecord> {
        Ok(self.live_session()?.record.lock().clone())
    }

    fn live_session(&self) -> Result<Arc<SessionShared>> {
        let over = || Error::new(ErrorKind::Unavailable, "the session is over");
        self.0.upgrade().ok_or_else(over)
    }
}

impl SessionShared {
    /// Counts a plugin's call while it runs.
    fn count_plugin_call(&self) -> Result<CountedItem<'_>> {
        CountedItem::try_count(&self.plugin_calls, PLUGIN_CALLS_MAX).ok_or_else(|| {
            let text =
                format!("{PLUGIN_CALLS_MAX} calls of plugins are already running in this session");
            Error::new(ErrorKind::LimitReached, text).temporary()
        })
    }

    /// Returns the current tools.
    pub(crate) fn current_tools(&self) -> Arc<Toolbox> {
        Arc::clone(&self.toolbox.lock())
    }

    /// Changes the tools. Running calls keep the tools that they began with.
    pub(crate) fn change_tools<T>(&self, change: impl FnOnce(&mut Toolbox) -> T) -> T {
        change(Arc::make_mut(&mut self.toolbox.lock()))
    }

    /// Returns the budget that covers its requests, if there is one.
    pub(crate) fn budget(&self) -> Option<SharedBudget> {
        self.budget_of_tree.get().or(self.budget.as_ref()).cloned()
    }

    /// Turns the caps into a budget, so that sessions at the same time do not exceed them together.
    fn begin_tree_budget(&self) -> Option<SharedBudget> {
        if self.caps == Caps::default() {
            return self.budget();
        }
        let new = || {
            let (used, parent) = (*self.spent.lock(), self.budget.clone());
            SharedBudget::new(("session", "--max-"), self.caps.clone(), used, parent)
        };
        Some(self.budget_of_tree.get_or_init(new).clone())
    }

    /// Adds an answer's usage.
    pub(crate) fn add_usage(&self, usage: &Usage) {
        self.spent.lock().add_usage(usage);
        if let Some(budget) = self.budget() {
            budget.add_usage(usage);
        }
    }

    /// Returns the option that limits the cost, so that each request needs a known price.
    pub(crate) fn cost_option(&self) -> Option<String> {
        let own = self.caps.cost.map(|_| "--max-cost".to_owned());
        own.or_else(|| Some(self.budget().filter(SharedBudget::has_cost_limit)?.cost_option()))
    }

    /// Runs one call and returns its whole output.
    pub(crate) async fn run_call(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        initiative: CallInitiator,
        cancel: &Cancel,
    ) -> Result<Output> {
        let call = ToolCall::new(self.ports.ids.create_call_id(), name.clone(), arguments);
        self.await_tool(&call, cancel).await;
        self.call_runner(initiative, cancel).run_whole(&call).await
    }

    /// Waits until everything so far is written, if the session is saved.
    pub(super) async fn wait_until_written(&self) {
        let ports = &self.ports;
        if let Some(saver) = &ports.saver {
            saver.save_rules(&self.rules);
            tokio::select! {
                biased;
                () = saver.wait_until_written() => {}
                () = ports.clock.sleep(WRITTEN_MS_MAX) => {}
            }
        }
    }

    /// Saves rules that the user has changed, if the session is saved.
    fn save_changed_rules(&self) {
        if let Some(saver) = &self.ports.saver {
            saver.save_rules(&self.rules);
            saver.save_pending();
        }
    }

    /// Saves the state that changes outside the record, if the session is saved.
    pub(crate) fn save_state(&self) {
        let Some(saver) = &self.ports.saver else { return };
        saver.save_rules(&self.rules);
        let task = |task: TaskFacts| format!("{} ({})", task.task_id, task.tool);
        let state = SavedState {
            model: self.model.lock().model.id.as_str().to_owned(),
            usage: *self.spent.lock(),
            background: self
                .tasks
                .list_running_tasks()
                .into_iter()
                .map(|it| task(it.facts))
                .collect(),
            // The host adds where the session works.
            ..SavedState::default()
        };
        saver.save_state(state, &self.objects);
    }

    pub(crate) fn call_runner<'a>(
        &'a self,
        initiative: CallInitiator,
        cancel: &'a Cancel,
    ) -> CallRunner<'a> {
        CallRunner {
            session: &self.id,
            ports: &self.ports,
            hooks: &self.hooks,
            emitter: &self.emitter,
            toolbox: self.current_tools(),
            tasks: &self.tasks,
            rules: &self.rules,
            patience_ms: self.patience_ms,
            agent: self.agent.lock().clone(),
            initiative,
            origin: None,
            limits: &self.limits,
            facts: &self.facts,
            objects: &self.objects,
            cancel,
        }
    }
}
