//! Background tasks: calls that continue, their output, and their outcomes for the model.
//!
//! A call becomes a task because it takes long (its turn eventually waits for it), or because a
//! plugin starts it as one. Then it is *detached*: no turn waits for it, and its end wakes the
//! session. A task runs on the turn's tokio runtime, during turns and between them, until its end,
//! its deadline or its cancellation. Its outcome waits here until the session joins it to a
//! message. Dropping the tasks ends all of them.

mod agent;
mod board;
mod output;
mod wake;

use std::sync::Arc;

use jaato_types::tasks::{TaskFacts, TaskRead, TaskReadAnswer, TaskStatus};
use jaato_types::{Error, ErrorKind, Event, Output, Part, PluginName, Result, ToolCall};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

pub use agent::{AgentTask, AgentTurn};
pub(crate) use board::{BoardTask, TaskBoard};
use board::{TaskEnd, TaskReservation};
pub(crate) use output::TaskOutput;
pub use wake::WakeWaiter;

use crate::OutputStore;
use crate::calls::RunningToolCall;
use crate::events::EventEmitter;
use crate::hooks::{HookAsker, HookedResult};
use crate::output::{self as tool_output, ResultLimit, error_content};

/// How many bytes of output a read returns by default.
const READ_BYTES: u64 = 64 * 1024;

/// The longest last line of a task's output, in bytes.
const LAST_LINE_BYTES_MAX: usize = 400;

/// A running task as the user sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningTask {
    /// The facts that plugins see, too.
    pub facts: TaskFacts,
    /// The arguments of its call.
    pub arguments: Value,
    /// The last line of its output. Empty if there is none.
    pub last_line: String,
}

/// The tasks of a session.
pub(crate) struct BackgroundTasks {
    set: Mutex<JoinSet<()>>,
    board: Arc<TaskBoard>,
}

/// The parts of a session that tasks need.
#[derive(Clone)]
pub(crate) struct BackgroundTaskContext {
    pub(crate) emitter: EventEmitter,
    pub(crate) hooks: Arc<HookAsker>,
    /// The plugin that the tool comes from. Empty for the host's own tools.
    pub(crate) owner: PluginName,
    pub(crate) outputs: Arc<dyn OutputStore>,
    pub(crate) output_bytes_max: usize,
}

impl BackgroundTasks {
    pub(crate) fn new() -> Self {
        Self { set: Mutex::new(JoinSet::new()), board: Arc::default() }
    }

    /// Returns the running and ended tasks.
    pub(crate) fn board(&self) -> &Arc<TaskBoard> {
        &self.board
    }

    /// Lets a running call continue as a task. Returns its number. `by` is the plugin that started
    /// it as a task.
    pub(crate) fn continue_as_task(
        &self,
        running: RunningToolCall,
        by: Option<String>,
        around: BackgroundTaskContext,
    ) -> u64 {
        let task = BoardTask {
            tool: running.call.name.clone(),
            arguments: running.call.arguments.clone(),
            source: running.source.clone(),
            is_detached: by.is_some(),
            by: by.clone(),
            stop: running.stop.clone(),
            is_taken_back: false,
            output: Arc::clone(&running.kept),
            began_ms: running.at_ms,
            clock: running.clock.clone(),
            ended: None,
        };
        let number = self.board.add_task(task);
        around.emitter.emit(Event::TaskStarted {
            task_id: task_id(number),
            call_id: running.call.id.clone(),
            name: running.call.name.clone(),
            source: running.source.clone(),
            by,
        });
        let place = TaskReservation::new(Arc::clone(&self.board), number);
        let mut set = self.set.lock();
        while set.try_join_next().is_some() {}
        set.spawn(run_background_task(running, around, place));
        number
    }

    /// Lists the tasks, including ended ones.
    pub(crate) fn list_tasks(&self) -> Vec<TaskFacts> {
        self.board.list_tasks()
    }

    /// Lists the running tasks, for the user.
    pub(crate) fn list_running_tasks(&self) -> Vec<RunningTask> {
        self.board.list_running()
    }

    /// Reads a task's output.
    pub(crate) fn read_task(&self, asked: &TaskRead) -> Result<TaskReadAnswer> {
        let (task, output) = self.board.find_task(&asked.task_id)?;
        let bytes_max = if asked.bytes_max == 0 { READ_BYTES } else { asked.bytes_max };
        let piece = output.read_piece(asked.offset, bytes_max);
        let mut answer = TaskReadAnswer::default();
        (answer.task, answer.output) = (task, piece.text);
        (answer.offset, answer.lost_bytes) = (piece.offset, piece.lost_bytes);
        Ok(answer)
    }

    /// Waits until a task's output has more than this many bytes, or the task has ended.
    pub(crate) async fn wait_for_change(&self, task_id: &str, offset: u64) -> Result<()> {
        let (_, output) = self.board.find_task(task_id)?;
        output.wait_for_more_than(offset).await;
        Ok(())
    }
}

/// Returns the id by which a model and plugins know a task.
pub(crate) fn task_id(number: u64) -> String {
    format!("task_{number}")
}

async fn run_background_task(
    mut running: RunningToolCall,
    around: BackgroundTaskContext,
    mut place: TaskReservation,
) {
    let mut outcome = running.finish().await;
    if is_cancelled(outcome.as_ref().err()) && place.is_cancelled_by_id() {
        outcome = Err(stopped_task_error());
    }
    let attachments = outcome.as_mut().map(|it| std::mem::take(&mut it.attachments));
    let attachments = attachments.unwrap_or_default();
    let (content, error) = outcome_content(outcome, &running.call, &around).await;
    let duration_ms = running.duration_ms();
    let call = &running.call;
    let status = task_status(error.as_ref());
    let task_id = place.task_id();
    let mut told = json!({
        "task_id": task_id,
        "tool_name": call.name,
        "call_id": call.id,
        "status": status,
        "duration_seconds": to_seconds(duration_ms),
        "result": content,
    });
    if !attachments.is_empty() {
        told["attachments"] = json!(attachments);
    }
    place.end_task(TaskEnd { status, content: content.clone(), duration_ms, told });
    around.emitter.emit(Event::TaskFinished {
        task_id,
        call_id: call.id.clone(),
        name: call.name.clone(),
        source: running.source.clone(),
        result: content,
        is_error: error.is_some(),
        duration_ms,
    });
}

/// Turns an outcome into the model's object, within its size limit.
async fn outcome_content(
    outcome: Result<Output>,
    call: &ToolCall,
    around: &BackgroundTaskContext,
) -> (Map<String, Value>, Option<Error>) {
    let (bytes_max, store) = (around.output_bytes_max, &*around.outputs);
    let fitting = ResultLimit { call: &call.id, bytes_max, store };
    let (content, error) = match outcome {
        Ok(output) => (tool_output::output_content(output, fitting).await, None),
        Err(error) => {
            (tool_output::fit_to_limit(error_content(&error), fitting).await, Some(error))
        }
    };
    if is_cancelled(error.as_ref()) {
        return (content, error);
    }
    let after = around.hooks.ask_after_tool(call, &around.owner, content, error.is_some());
    let HookedResult { mut content, is_changed } = after.await;
    if is_changed {
        content = tool_output::fit_to_limit(content, fitting).await;
    }
    (content, error)
}

fn is_cancelled(error: Option<&Error>) -> bool {
    error.is_some_and(|error| error.kind == ErrorKind::Cancelled)
}

fn stopped_task_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the task was stopped before it finished")
        .with_hint("it may have had some effects")
}

fn task_status(error: Option<&Error>) -> TaskStatus {
    match error.map(|error| error.kind) {
        None => TaskStatus::Completed,
        Some(ErrorKind::Cancelled) => TaskStatus::Cancelled,
        Some(ErrorKind::Timeout) => TaskStatus::Timeout,
        Some(_) => TaskStatus::Failed,
    }
}

/// The result that the model gets when a long call continues in the background.
pub(crate) fn task_handle_output(number: u64, running: (&str, &str), threshold_ms: u64) -> Output {
    let (id, threshold) = (task_id(number), to_seconds(threshold_ms));
    let (source, tool) = running;
    Output::json(json!({
        "auto_backgrounded": true,
        "task_id": id,
        "plugin_name": source,
        "tool_name": tool,
        "threshold_seconds": threshold,
        "message": format!(
            "The call exceeded {threshold}s and continues in the background. A later message \
             reports its outcome under task_id '{id}': do not repeat the call."
        ),
    }))
}

/// Seconds with three decimals. `10.0` if they are whole.
fn to_seconds(ms: u64) -> f64 {
    std::time::Duration::from_millis(ms).as_secs_f64()
}

/// Turns the outcomes into the parts of a message.
pub(crate) fn outcome_parts(outcomes: Vec<Value>) -> Vec<Part> {
    outcomes.into_iter().map(Part::json).collect()
}
