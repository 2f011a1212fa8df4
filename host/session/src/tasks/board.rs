//! The running and ended tasks, and the outcomes that are not in a message yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use jaato_types::tasks::{TASKS_ENDED_MAX, TaskFacts, TaskStatus};
use jaato_types::text::truncate_chars;
use jaato_types::{Error, ErrorKind, Result, ToolName};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::{LAST_LINE_BYTES_MAX, RunningTask, TaskOutput, task_id};
use crate::output::error_content;
use crate::{Cancel, SessionClock};

/// The running and ended tasks.
#[derive(Default)]
pub(crate) struct TaskBoard {
    state: Mutex<TaskBoardState>,
    /// Wakes code that waits for the end of a task.
    ended: Notify,
}

#[derive(Default)]
struct TaskBoardState {
    started: u64,
    tasks: BTreeMap<u64, BoardTask>,
    /// Outcomes that are not in a message yet, in the order in which they arrived.
    outcomes: Vec<TaskOutcomeReport>,
}

/// The model's report about an ended task.
struct TaskOutcomeReport {
    told: Value,
    /// Whether it makes a message due. Code that ended a task itself already knows.
    wakes: bool,
}

/// A task.
pub(crate) struct BoardTask {
    pub(crate) tool: ToolName,
    pub(crate) arguments: Value,
    pub(crate) source: String,
    /// The plugin that started it, if one did.
    pub(crate) by: Option<String>,
    /// Whether no turn waits for it.
    pub(crate) is_detached: bool,
    pub(crate) stop: Cancel,
    /// Whether it was ended by its id, rather than with its turn or session.
    pub(crate) is_taken_back: bool,
    pub(crate) output: Arc<TaskOutput>,
    pub(crate) began_ms: u64,
    pub(crate) clock: Arc<dyn SessionClock>,
    /// `None` while it runs.
    pub(crate) ended: Option<TaskEnd>,
}

/// How a task ended.
pub(crate) struct TaskEnd {
    pub(crate) status: TaskStatus,
    pub(crate) content: Map<String, Value>,
    pub(crate) duration_ms: u64,
    /// The report for the model.
    pub(crate) told: Value,
}

impl BoardTask {
    fn is_for_turn(&self) -> bool {
        self.ended.is_none() && !self.is_detached
    }

    fn task_facts(&self, number: u64) -> TaskFacts {
        let mut facts = TaskFacts::default();
        facts.task_id = task_id(number);
        facts.tool = self.tool.clone();
        facts.source.clone_from(&self.source);
        facts.by.clone_from(&self.by);
        facts.is_detached = self.is_detached;
        facts.output_bytes = self.output.total_bytes();
        match &self.ended {
            None => {
                facts.duration_ms = self.clock.monotonic_ms().saturating_sub(self.began_ms);
            }
            Some(ended) => {
                facts.status = ended.status;
                facts.duration_ms = ended.duration_ms;
                facts.result = Some(ended.content.clone());
            }
        }
        facts
    }
}

impl TaskBoard {
    /// Adds a task. Returns its number.
    pub(super) fn add_task(&self, task: BoardTask) -> u64 {
        let mut state = self.lock();
        state.started += 1;
        let number = state.started;
        state.tasks.insert(number, task);
        number
    }

    /// Counts the tasks that a turn waits for.
    pub(crate) fn running_count(&self) -> usize {
        self.lock().tasks.values().filter(|task| task.is_for_turn()).count()
    }

    /// Counts all running tasks.
    pub(crate) fn all_running_count(&self) -> usize {
        self.lock().tasks.values().filter(|task| task.ended.is_none()).count()
    }

    /// Lists all tasks.
    pub(super) fn list_tasks(&self) -> Vec<TaskFacts> {
        self.lock().tasks.iter().map(|(number, task)| task.task_facts(*number)).collect()
    }

    /// Lists the running tasks.
    pub(super) fn list_running(&self) -> Vec<RunningTask> {
        let state = self.lock();
        let running = state.tasks.iter().filter(|(_, task)| task.ended.is_none());
        let look = |(number, task): (&u64, &BoardTask)| RunningTask {
            facts: task.task_facts(*number),
            arguments: task.arguments.clone(),
            last_line: task.output.last_line(LAST_LINE_BYTES_MAX),
        };
        running.map(look).collect()
    }

    /// Lets the tasks that a turn waits for continue without it.
    pub(crate) fn release_turn_tasks(&self) {
        let mut state = self.lock();
        let of_turn = state.tasks.values_mut().filter(|task| task.is_for_turn());
        of_turn.for_each(|task| task.is_detached = true);
    }

    /// Finds a task and its output.
    pub(super) fn find_task(&self, task_id: &str) -> Result<(TaskFacts, Arc<TaskOutput>)> {
        let state = self.lock();
        let number = task_id.strip_prefix("task_").and_then(|it| it.parse().ok());
        let found = number.and_then(|number: u64| Some((number, state.tasks.get(&number)?)));
        let (number, task) = found.ok_or_else(|| {
            let shown = truncate_chars(task_id, 40);
            Error::new(ErrorKind::NotFound, format!("the session has no task `{shown}`")).with_hint(
                format!(
                    "`tasks.list` lists the tasks; only the last {TASKS_ENDED_MAX} ended tasks are \
                     kept"
                ),
            )
        })?;
        Ok((task.task_facts(number), Arc::clone(&task.output)))
    }

    /// Ends one task. Its outcome arrives within moments, says so, and waits for the next message.
    pub(crate) fn cancel_task(&self, task_id: &str) -> Result<TaskFacts> {
        let (facts, _) = self.find_task(task_id)?;
        let number = task_id.strip_prefix("task_").and_then(|it| it.parse::<u64>().ok());
        let mut state = self.lock();
        if let Some(task) = number.and_then(|number| state.tasks.get_mut(&number)) {
            task.is_taken_back = true;
            task.stop.cancel();
        }
        Ok(facts)
    }

    fn is_cancelled_by_id(&self, number: u64) -> bool {
        self.lock().tasks.get(&number).is_some_and(|task| task.is_taken_back)
    }

    /// Ends the tasks that a turn waits for.
    pub(crate) fn cancel_turn_tasks(&self) {
        let state = self.lock();
        state.tasks.values().filter(|task| task.is_for_turn()).for_each(|it| it.stop.cancel());
    }

    /// Ends all running tasks.
    pub(crate) fn cancel_all(&self) {
        let state = self.lock();
        state.tasks.values().filter(|it| it.ended.is_none()).for_each(|it| it.stop.cancel());
    }

    /// Waits until no task runs that a turn waits for.
    pub(crate) async fn wait_until_idle(&self) {
        self.wait_until(|board| board.running_count() == 0).await;
    }

    /// Waits until no task runs at all.
    pub(crate) async fn wait_until_all_ended(&self) {
        self.wait_until(|board| board.all_running_count() == 0).await;
    }

    /// Waits until an outcome makes a message due.
    pub(crate) async fn wait_for_due_outcome(&self) {
        self.wait_until(Self::has_due_outcome).await;
    }

    async fn wait_until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registers before it checks, so that it does not miss a task that ends between the
            // two.
            ended.as_mut().enable();
            if is_so(self) {
                return;
            }
            ended.await;
        }
    }

    /// Returns true if an outcome makes a message due.
    pub(crate) fn has_due_outcome(&self) -> bool {
        self.lock().outcomes.iter().any(|outcome| outcome.wakes)
    }

    /// Lists the tasks whose outcomes wait for a message.
    pub(crate) fn tasks_with_outcomes(&self) -> Vec<String> {
        let id = |outcome: &TaskOutcomeReport| Some(outcome.told["task_id"].as_str()?.to_owned());
        self.lock().outcomes.iter().filter_map(id).collect()
    }

    /// Takes the outcomes.
    pub(crate) fn take_outcomes(&self) -> Vec<Value> {
        let outcomes = std::mem::take(&mut self.lock().outcomes);
        outcomes.into_iter().map(|outcome| json!({ "task_outcome": outcome.told })).collect()
    }

    fn lock(&self) -> MutexGuard<'_, TaskBoardState> {
        self.state.lock()
    }
}

/// A task's place on the board. Dropping it always leaves an outcome.
pub(super) struct TaskReservation {
    board: Arc<TaskBoard>,
    number: u64,
    ended: Option<TaskEnd>,
}

impl TaskReservation {
    pub(super) fn new(board: Arc<TaskBoard>, number: u64) -> Self {
        Self { board, number, ended: None }
    }

    pub(super) fn task_id(&self) -> String {
        task_id(self.number)
    }

    /// Returns true if it was ended by its id.
    pub(super) fn is_cancelled_by_id(&self) -> bool {
        self.board.is_cancelled_by_id(self.number)
    }

    pub(super) fn end_task(&mut self, ended: TaskEnd) {
        self.ended = Some(ended);
    }
}

impl Drop for TaskReservation {
    fn drop(&mut self) {
        let ended = self.ended.take().unwrap_or_else(|| missing_outcome_end(&self.task_id()));
        let mut state = self.board.lock();
        let mut outcome = TaskOutcomeReport { told: ended.told.clone(), wakes: true };
        if let Some(task) = state.tasks.get_mut(&self.number) {
            outcome.wakes = !task.is_taken_back;
            let output = Arc::clone(&task.output);
            task.ended = Some(ended);
            output.mark_complete();
        }
        state.outcomes.push(outcome);
        let of_ended = |(number, task): (&u64, &BoardTask)| task.ended.is_some().then_some(*number);
        let over: Vec<u64> = state.tasks.iter().filter_map(of_ended).collect();
        let surplus = over.len().saturating_sub(TASKS_ENDED_MAX);
        for number in over.into_iter().take(surplus) {
            state.tasks.remove(&number);
        }
        drop(state);
        self.board.ended.notify_waiters();
    }
}

fn missing_outcome_end(task_id: &str) -> TaskEnd {
    let error = Error::new(ErrorKind::HostBug, "the task ended without an outcome");
    let (status, content) = (TaskStatus::Failed, error_content(&error));
    let told = json!({ "task_id": task_id, "status": status, "result": content });
    TaskEnd { status, content, duration_ms: 0, told }
}
