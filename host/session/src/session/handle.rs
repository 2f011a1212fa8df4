//! What the calls of a session share, behind one handle: its tools, its rules and its ports.
//!
//! The session itself is lent out while a turn runs. A handle is not: who has one calls a tool of
//! the session meanwhile, by the same gate, the same bounds and the same events as the model does.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};

use jaato_types::ask::{Form, FormAnswer};
use jaato_types::model::{ModelAnswer, ModelComplete};
use jaato_types::tasks::{
    TASK_MS_MAX, TASK_WAIT_MS_MAX, TaskFacts, TaskRead, TaskReadAnswer, TaskStart,
};
use jaato_types::tools_list::ToolFacts;
use jaato_types::{
    Error, ErrorKind, Event, ModelId, Output, PluginName, Result, SessionId, ToolCall, ToolName,
};
use parking_lot::Mutex;

use super::beside::{AskingPlugin, Beside, PieceSink};
use super::counted::Counted;
use super::forms::Forms;
use crate::calls::{CallRunner, Initiative};
use crate::events::Emitter;
use crate::hooks::HookAsker;
use crate::pace::Pace;
use crate::session::Agent;
use crate::tasks::{RunningTask, Tasks};
use crate::{
    AnsweringModel, Asker, CALL_DEPTH_MAX, CallOrigin, Cancel, Caps, Entry, Hold, Inbox, Limits,
    Ports, SharedFacts, SharedObjects, SharedRules, SharedSpent, Toolbox,
};

/// Most calls of plugins that run at once in a session. One more is refused, as a plugin that waits
/// for its own calls must not wait for room.
pub const PLUGIN_CALLS_MAX: usize = 16;

/// What the calls of a session share.
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) ports: Ports,
    pub(crate) hooks: Arc<HookAsker>,
    pub(crate) limits: Limits,
    pub(crate) pace: Pace,
    pub(crate) emitter: Emitter,
    /// Changed between the calls of a turn; a call keeps what it began with.
    pub(crate) toolbox: Mutex<Arc<Toolbox>>,
    pub(crate) rules: SharedRules,
    /// How long an answer to a question is waited for.
    pub(crate) patience_ms: Option<u64>,
    /// Who it is, where another session opened it.
    pub(crate) agent: Option<Agent>,
    pub(crate) facts: SharedFacts,
    pub(crate) objects: SharedObjects,
    pub(crate) tasks: Tasks,
    pub(crate) inbox: Inbox,
    /// What plugins ask the person.
    pub(crate) forms: Forms,
    /// The model that answers at this moment.
    pub(crate) model: Mutex<AnsweringModel>,
    /// What it has used up, and may.
    pub(crate) spent: SharedSpent,
    pub(crate) caps: Caps,
    /// What plugins say about tools that they have set, until the model is told.
    pub(crate) late_instructions: Mutex<BTreeMap<PluginName, String>>,
    /// What each plugin said last of those: it is not told twice in a row.
    pub(crate) told_instructions: Mutex<BTreeMap<PluginName, String>>,
    /// What plugins ask models.
    pub(crate) beside: Beside,
    /// The record as it was when it was told last.
    pub(crate) record: Mutex<Vec<Arc<Entry>>>,
    /// Calls of plugins that run.
    pub(crate) plugin_calls: AtomicUsize,
}

/// What a session shares with those that are opened beside it.
pub struct Lent {
    /// The model that answers in it.
    pub model: ModelId,
    /// Who is asked.
    pub asker: Arc<dyn Asker>,
    /// What is allowed.
    pub rules: SharedRules,
    /// How long an answer to a question is waited for.
    pub patience_ms: Option<u64>,
    /// What all of them have used up.
    pub spent: SharedSpent,
    /// What all of them may use up.
    pub caps: Caps,
    /// What tools have put in front of its model.
    pub objects: SharedObjects,
    /// Its tools.
    pub tools: Arc<Toolbox>,
    /// Stops the deadline of the call that opens one.
    pub hold: Hold,
}

/// A handle on a session, for who calls its tools while a turn runs. It does not keep the session.
#[derive(Clone)]
pub struct SessionHandle(Weak<Shared>);

impl SessionHandle {
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }

    /// Calls a tool for a plugin, and waits for its whole output. The rules decide and a person is
    /// asked as if the model had called; nothing of it joins the history, events tell of it. While
    /// a person is asked, the deadline of the plugin's own call stands still.
    ///
    /// # Errors
    /// `unavailable` when the session is over; `limit_reached` for a call below
    /// [`CALL_DEPTH_MAX`] others, and beside [`PLUGIN_CALLS_MAX`] others; what the gate says, what
    /// the tool comes to.
    pub async fn call_tool(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        origin: &CallOrigin,
        cancel: &Cancel,
    ) -> Result<Output> {
        let shared = self.shared()?;
        if origin.depth > CALL_DEPTH_MAX {
            let text = format!("tools call tools at most {CALL_DEPTH_MAX} deep");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        let _running = shared.count_plugin_call()?;
        let call = ToolCall::new(shared.ports.ids.call(), name.clone(), arguments);
        shared.await_tool(&call, cancel).await;
        let mut runner = shared.runner(Initiative::Plugin, cancel);
        runner.origin = Some(origin);
        runner.run_whole(&call).await
    }

    /// Starts a call that no turn waits for; returns its task. The gate lets it pass first.
    ///
    /// # Errors
    /// As [`SessionHandle::call_tool`]; `limit_reached` where too many tasks run.
    pub async fn start_task(
        &self,
        asked: TaskStart,
        origin: &CallOrigin,
        cancel: &Cancel,
    ) -> Result<String> {
        let shared = self.shared()?;
        let _running = shared.count_plugin_call()?;
        let timeout_ms = (asked.timeout_ms > 0).then(|| asked.timeout_ms.min(TASK_MS_MAX));
        let call = ToolCall::new(shared.ports.ids.call(), asked.name, asked.arguments);
        shared.await_tool(&call, cancel).await;
        let mut runner = shared.runner(Initiative::Plugin, cancel);
        runner.origin = Some(origin);
        runner.run_detached(&call, origin.plugin.as_str(), timeout_ms).await
    }

    /// Lists the tools that may be called.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn list_tools(&self) -> Result<Vec<ToolFacts>> {
        Ok(self.shared()?.tools().facts())
    }

    /// Lists the tasks of the session, those that ended too.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn tasks(&self) -> Result<Vec<TaskFacts>> {
        Ok(self.shared()?.tasks.list())
    }

    /// Lists the tasks that run, for a person.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn running_tasks(&self) -> Result<Vec<RunningTask>> {
        Ok(self.shared()?.tasks.running())
    }

    /// Returns what is decided about calls, with the person's answers.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn rules(&self) -> Result<SharedRules> {
        Ok(Arc::clone(&self.shared()?.rules))
    }

    /// Changes how much is asked from here on, for all sessions that share the rules.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn set_mode(&self, mode: jaato_policy::Mode) -> Result<()> {
        let shared = self.shared()?;
        shared.rules.change(|rules| rules.mode = mode);
        shared.emitter.emit(Event::ModeChanged { mode: mode.name().to_owned() });
        Ok(())
    }

    /// Reads what a task has shown; waits for more, or its end, as long as it is asked to.
    ///
    /// # Errors
    /// `not_found` where there is no such task; `unavailable` when the session is over.
    pub async fn read_task(&self, asked: &TaskRead) -> Result<TaskReadAnswer> {
        let shared = self.shared()?;
        if asked.wait_ms > 0 {
            let wait = shared.ports.clock.sleep(asked.wait_ms.min(TASK_WAIT_MS_MAX));
            tokio::select! {
                biased;
                changed = shared.tasks.changed(&asked.task_id, asked.offset) => changed?,
                () = wait => {}
            }
        }
        shared.tasks.read(asked)
    }

    /// Ends a task.
    ///
    /// # Errors
    /// As [`SessionHandle::read_task`].
    pub fn cancel_task(&self, task_id: &str) -> Result<TaskFacts> {
        self.shared()?.tasks.board().cancel_one(task_id)
    }

    /// Tells the model something with the next request; wakes an idle session.
    ///
    /// # Errors
    /// `limit_reached` where too much waits for the model already.
    pub fn notify(&self, plugin: &PluginName, text: String) -> Result<()> {
        let shared = self.shared()?;
        let source = plugin.as_str().to_owned();
        let told = Event::Notified { source: source.clone(), text: text.clone() };
        shared.inbox.notify(&source, text, || shared.emitter.emit(told))
    }

    /// Returns true if a model answers in the session, and it is not over.
    pub fn has_model(&self) -> bool {
        self.shared().is_ok_and(|shared| !shared.model.lock().model.id.as_str().is_empty())
    }

    /// Shows the user a line.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn notice(&self, line: String) -> Result<()> {
        self.shared()?.emitter.notice(line);
        Ok(())
    }

    /// Tells the model something about tools with the next request; it wakes nobody. What the same
    /// plugin said before and was not told yet gives way.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn instruct(&self, plugin: &PluginName, text: &str) -> Result<()> {
        let shared = self.shared()?;
        let mut late = shared.late_instructions.lock();
        match shared.told_instructions.lock().get(plugin).is_some_and(|told| told == text) {
            true => late.remove(plugin),
            false => late.insert(plugin.clone(), text.to_owned()),
        };
        Ok(())
    }

    /// Asks a model something for a plugin, beside the conversation: the session's where no other
    /// is given. It counts against the session's caps.
    ///
    /// # Errors
    /// `limit_reached` at a cap, and where too many wait; `unavailable` where the session's model
    /// has room for one conversation alone; what the provider answers.
    pub async fn complete(
        &self,
        asker: &AskingPlugin,
        asked: ModelComplete,
        other: Option<AnsweringModel>,
        take: PieceSink,
        cancel: &Cancel,
    ) -> Result<ModelAnswer> {
        let shared = self.shared()?;
        shared.beside.complete(&shared, asker, asked, other, take, cancel).await
    }

    /// Asks the person, one form at a time.
    ///
    /// # Errors
    /// `invalid_arguments` for a form that cannot be shown; `limit_reached` where too many wait.
    pub async fn ask(
        &self,
        plugin: &PluginName,
        form: &Form,
        cancel: &Cancel,
    ) -> Result<FormAnswer> {
        let shared = self.shared()?;
        tokio::select! {
            biased;
            answer = shared.forms.ask(plugin, form, &shared) => answer,
            () = cancel.cancelled() => Err(Error::cancelled()),
        }
    }

    /// Returns what a session that is opened beside this one, by a call with that deadline, shares
    /// with it.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn lend(&self, hold: &Hold) -> Result<Lent> {
        let shared = self.shared()?;
        Ok(Lent {
            model: shared.model.lock().model.id.clone(),
            asker: Arc::clone(&shared.ports.asker),
            rules: Arc::clone(&shared.rules),
            patience_ms: shared.patience_ms,
            spent: shared.spent.clone(),
            caps: shared.caps.clone(),
            objects: shared.objects.clone(),
            tools: shared.tools(),
            hold: hold.clone(),
        })
    }

    /// Returns the record of the conversation as it was before the step that runs.
    ///
    /// # Errors
    /// `unavailable` when the session is over.
    pub fn record(&self) -> Result<Vec<Arc<Entry>>> {
        Ok(self.shared()?.record.lock().clone())
    }

    fn shared(&self) -> Result<Arc<Shared>> {
        let over = || Error::new(ErrorKind::Unavailable, "the session is over");
        self.0.upgrade().ok_or_else(over)
    }
}

impl Shared {
    /// Counts a call of a plugin while it runs.
    fn count_plugin_call(&self) -> Result<Counted<'_>> {
        Counted::begin(&self.plugin_calls, PLUGIN_CALLS_MAX).ok_or_else(|| {
            let text = format!("{PLUGIN_CALLS_MAX} calls of plugins run already in this session");
            Error::new(ErrorKind::LimitReached, text).temporary()
        })
    }

    /// Returns the tools as they are at this moment.
    pub(crate) fn tools(&self) -> Arc<Toolbox> {
        Arc::clone(&self.toolbox.lock())
    }

    /// Changes the tools. Calls that run keep those that they began with.
    pub(crate) fn change_tools<T>(&self, change: impl FnOnce(&mut Toolbox) -> T) -> T {
        change(Arc::make_mut(&mut self.toolbox.lock()))
    }

    /// Runs one call to its whole output.
    pub(crate) async fn call(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        initiative: Initiative,
        cancel: &Cancel,
    ) -> Result<Output> {
        let call = ToolCall::new(self.ports.ids.call(), name.clone(), arguments);
        self.await_tool(&call, cancel).await;
        self.runner(initiative, cancel).run_whole(&call).await
    }

    pub(crate) fn runner<'a>(
        &'a self,
        initiative: Initiative,
        cancel: &'a Cancel,
    ) -> CallRunner<'a> {
        CallRunner {
            session: &self.id,
            ports: &self.ports,
            hooks: &self.hooks,
            emitter: &self.emitter,
            toolbox: self.tools(),
            tasks: &self.tasks,
            rules: &self.rules,
            patience_ms: self.patience_ms,
            agent: self.agent.as_ref(),
            initiative,
            origin: None,
            limits: &self.limits,
            facts: &self.facts,
            objects: &self.objects,
            cancel,
        }
    }
}
