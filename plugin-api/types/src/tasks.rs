//! The services `tasks.*`: background tasks, which run independently of the conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ToolName;

crate::operations::service_operations! { $ task_operations, Some("tasks"), answered;
    /// Starts a tool call as a detached task with its own time limit. Fails like `tools.call`, and
    /// with `limit_reached` if too many tasks are running.
    start_task TASKS_START "tasks.start": TaskStart => TaskStartAnswer,
        sdk [(&TaskStart).task_id: String];
    /// Lists the session's tasks, which are those that plugins started and calls that moved to the
    /// background. The list includes the last 64 finished tasks.
    list TASKS_LIST "tasks.list": () => TasksAnswer, sdk [().tasks: Vec<TaskFacts>];
    /// Reads a task's output from an offset, and its result. Fails with `not_found` if the session
    /// has no such task.
    read TASKS_READ "tasks.read": TaskRead => TaskReadAnswer, sdk [(&TaskRead)];
    /// Ends a task. The answer has the outcome.
    cancel TASKS_CANCEL "tasks.cancel": TaskCancel => TaskFacts, sdk [{ task_id: &str }];
}

/// The maximum number of bytes of a task's output that are kept. Earlier output is lost.
pub const TASK_OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// The maximum number of finished tasks that are remembered. The oldest is forgotten first.
pub const TASKS_ENDED_MAX: usize = 64;
/// The maximum wait of one `tasks.read`, in milliseconds. Call it again to wait longer.
pub const TASK_WAIT_MS_MAX: u64 = 600_000;
/// The maximum run time that a task may request, in milliseconds.
pub const TASK_MS_MAX: u64 = 86_400_000;

/// A request to start a tool call as a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskStart {
    /// The tool's name.
    pub name: ToolName,
    /// The arguments: an object that matches the tool's schema.
    pub arguments: Value,
    /// The maximum run time, in milliseconds, at most [`TASK_MS_MAX`]. After that, the task ends
    /// with `timeout`. 0 means the same limit as for any call.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout_ms: u64,
}

/// A started task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskStartAnswer {
    /// The task's id: `task_1`. Unique within the session.
    pub task_id: String,
}

/// A request to read a task's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRead {
    /// The task's id.
    pub task_id: String,
    /// The offset in the output at which to begin: 0, or the `offset` of the last answer.
    pub offset: u64,
    /// The maximum number of bytes to read. 0 means 64 KiB.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_max: u64,
    /// The maximum wait for more output or the end, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
}

/// The output of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskReadAnswer {
    /// The facts about the task.
    pub task: TaskFacts,
    /// The output from the requested offset.
    pub output: String,
    /// The offset after this output, for the next request.
    pub offset: u64,
    /// The number of bytes after the requested offset that were discarded.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_bytes: u64,
}

/// A request to end a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCancel {
    /// The task's id.
    pub task_id: String,
}

/// The tasks of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TasksAnswer {
    /// The tasks, in the order in which they began.
    pub tasks: Vec<TaskFacts>,
}

/// Facts about a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskFacts {
    /// The task's id.
    pub task_id: String,
    /// The tool.
    pub tool: ToolName,
    /// The tool's plugin, as in events.
    pub source: String,
    /// The plugin that started the task. `None` if a call moved to the background automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The state.
    pub status: TaskStatus,
    /// Whether it is a detached task, for which no turn waits.
    pub is_detached: bool,
    /// The run time so far, in milliseconds.
    pub duration_ms: u64,
    /// The number of bytes of output so far.
    pub output_bytes: u64,
    /// The result of a finished task: the tool's result, or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Map<String, Value>>,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// The task is running.
    #[default]
    Running,
    /// The task returned its result.
    Completed,
    /// The task returned an error.
    Failed,
    /// The task was cancelled.
    Cancelled,
    /// The task exceeded its maximum run time.
    Timeout,
    /// A state from a newer version. The task is not running.
    #[serde(other)]
    Unknown,
}

crate::operations::made_by_host!(TaskStartAnswer(task_id: impl Into<String>));

crate::operations::made_by_host!(TasksAnswer(tasks: Vec<TaskFacts>));

fn is_zero(number: &u64) -> bool {
    *number == 0
}
