//! The services `tasks.*`: calls that run on beside the conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ToolName;

crate::operations::service_operations! { $ task_operations, Some("tasks"), answered;
    /// Starts a tool call that no turn waits for, with a time limit of its own. The errors are
    /// those of `tools.call`, and `limit_reached` if too many tasks run.
    start_task TASKS_START "tasks.start": TaskStart => TaskStarted,
        sdk [(&TaskStart).task_id: String];
    /// Lists the session's tasks: those that plugins started, and calls that went to the
    /// background. Of those that ended, the last 64 are listed.
    list TASKS_LIST "tasks.list": () => TasksAnswer, sdk [().tasks: Vec<TaskFacts>];
    /// Reads the output of a task from an offset, and its result. The error is `not_found` if the
    /// session has no such task.
    read TASKS_READ "tasks.read": TaskRead => TaskReadAnswer, sdk [(&TaskRead)];
    /// Ends a task. Its outcome says so.
    cancel TASKS_CANCEL "tasks.cancel": TaskCancel => TaskFacts, sdk [{ task_id: &str }];
}

/// Bytes of a task's output that are kept; what came before them is lost.
pub const TASK_OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// Ended tasks that are remembered. An older one gives way.
pub const TASKS_ENDED_MAX: usize = 64;
/// Longest wait of one `tasks.read`, in milliseconds: ask again for more.
pub const TASK_WAIT_MS_MAX: u64 = 600_000;
/// Longest time that a task may be given, in milliseconds.
pub const TASK_MS_MAX: u64 = 86_400_000;

/// A call to start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskStart {
    /// The tool's name.
    pub name: ToolName,
    /// Its arguments: an object that matches its schema.
    pub arguments: Value,
    /// How long it may run, in milliseconds, at most [`TASK_MS_MAX`]; then it ends with `timeout`.
    /// As long as any call where this is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout_ms: u64,
}

/// What was started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskStarted {
    /// The task: `task_1`. Unique within the session.
    pub task_id: String,
}

/// What to read of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRead {
    /// The task.
    pub task_id: String,
    /// The byte of its output from which to read: 0, or the `offset` of the last answer.
    pub offset: u64,
    /// Most bytes of output to read; 64 KiB where this is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_max: u64,
    /// How long to wait for more output or the end, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
}

/// What a task has shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskReadAnswer {
    /// What is known of the task.
    pub task: TaskFacts,
    /// Its output from the offset on.
    pub output: String,
    /// The byte behind it: the next offset.
    pub offset: u64,
    /// Bytes between the asked offset and the output that are not kept any more.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_bytes: u64,
}

/// A task to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCancel {
    /// The task.
    pub task_id: String,
}

/// The tasks of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TasksAnswer {
    /// In the order in which they began.
    pub tasks: Vec<TaskFacts>,
}

/// What is known of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskFacts {
    /// The task.
    pub task_id: String,
    /// The tool.
    pub tool: ToolName,
    /// The plugin of the tool, as events name it.
    pub source: String,
    /// The plugin that started it; none where a call went to the background by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How it stands.
    pub status: TaskStatus,
    /// Whether it was started as a task: no turn waits for it.
    pub is_detached: bool,
    /// How long it ran so far, in milliseconds.
    pub duration_ms: u64,
    /// Bytes of output so far.
    pub output_bytes: u64,
    /// What it gave, once it has ended: the tool's result, or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Map<String, Value>>,
}

/// How a task stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It runs.
    #[default]
    Running,
    /// It gave its result.
    Completed,
    /// It gave an error.
    Failed,
    /// It was ended.
    Cancelled,
    /// It took longer than a call may.
    Timeout,
    /// In a way that this side does not know: it does not run.
    #[serde(other)]
    Unknown,
}

crate::operations::made_by_host!(TaskStarted(task_id: impl Into<String>));

crate::operations::made_by_host!(TasksAnswer(tasks: Vec<TaskFacts>));

fn is_zero(number: &u64) -> bool {
    *number == 0
}
