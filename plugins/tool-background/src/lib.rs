//! `tool-background`: tools that start another tool's call in the background, read its output and
//! end it, and the command `tasks` for the user.
//!
//! The host runs the tasks, applies the user's rules to the call, and wakes the session when a task
//! ends. This plugin contains the model's interface, with the names of the original plugin.
#![forbid(unsafe_code)]

mod task_format;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::task::{TaskRead, TaskReadAnswer, TaskStart, TaskStatus};
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;
use jaato_plugin_sdk::types::{CommandSpec, ToolName};
use parking_lot::Mutex;

/// The longest wait of one read, in seconds.
const WAIT_SECONDS_MAX: u64 = 60;

/// Run a tool in the background: servers, watchers, long builds. You are notified when it ends.
#[tool_fn(
    name = "startBackgroundTask",
    category = "system",
    destructive = false,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "tool_name": { "type": "string", TOUCHES: { "text": "the name of a tool" }, "description": "The tool's name." },
            "arguments": { "type": "object", TOUCHES: { "text": "the call that is started has a check of its own" }, "description": "The tool's arguments." },
            "timeout_seconds": { "type": "integer", "minimum": 1, "maximum": 86400, "description": "Time limit." },
        },
        "required": ["tool_name", "arguments"],
    }),
    example(
        "start the web server and continue",
        tool_name = "cli_based_tool",
        arguments = json!({ "command": "python3 -m http.server" })
    )
)]
async fn start_background_task(
    cx: &Cx<BackgroundPlugin>,
    tool_name: String,
    arguments: Map<String, Value>,
    #[serde(default)] timeout_seconds: u64,
) -> Result<Output> {
    let request = TaskStart {
        name: ToolName::from(tool_name.as_str()),
        arguments: Value::Object(arguments),
        timeout_ms: timeout_seconds.saturating_mul(1000),
    };
    let task_id = cx.tasks().start_task(&request).await?;
    let message = format!("Task started in background. Use task_id '{task_id}' to check status.");
    let facts = cx.tasks().list().await?.into_iter().find(|task| task.task_id == task_id);
    Ok(Output::json(json!({
        "success": true,
        "task_id": task_id,
        "plugin_name": facts.map(|facts| facts.source),
        "tool_name": tool_name,
        "message": message,
    })))
}

/// Get a background task's status and its output since the last read.
#[tool_fn(
    name = "getBackgroundTask",
    category = "system",
    read_only,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "task_id": { "type": "string", TOUCHES: { "text": "the name of a task" }, "description": "The task." },
            "stdout_offset": {
                "type": "integer", "minimum": 0,
                "description": "Read again from this byte.",
            },
            "wait_seconds": {
                "type": "integer", "minimum": 0, "maximum": WAIT_SECONDS_MAX, "default": 0,
                "description": "Wait for more output or the end.",
            },
            "until_end": {
                "type": "boolean", "default": false,
                "description": "Wait only for the end.",
            },
            "tail": {
                "type": "integer", "minimum": 1,
                "description": "Return only this many last lines.",
            },
        },
        "required": ["task_id"],
    })
)]
async fn get_background_task(
    cx: &Cx<BackgroundPlugin>,
    task_id: String,
    stdout_offset: Option<u64>,
    #[serde(default)] wait_seconds: u64,
    #[serde(default)] until_end: bool,
    tail: Option<usize>,
) -> Result<Output> {
    let seen = || cx.state().offsets.lock().get(&task_id).copied().unwrap_or_default();
    let offset = stdout_offset.unwrap_or_else(seen);
    let wait = Duration::from_secs(wait_seconds.min(WAIT_SECONDS_MAX));
    let begin = Instant::now();
    let mut read = TaskRead { task_id, offset, bytes_max: 0, wait_ms: 0 };
    let mut answer: Option<TaskReadAnswer> = None;
    loop {
        let left = wait.saturating_sub(begin.elapsed());
        read.wait_ms = if answer.is_none() || until_end { to_milliseconds(left) } else { 0 };
        let next = cx.tasks().read(&read).await.map_err(with_tool_hint)?;
        let is_over =
            next.task.status != TaskStatus::Running && next.offset >= next.task.output_bytes;
        let is_more = next.offset > read.offset;
        read.offset = next.offset;
        match &mut answer {
            Some(answer) => task_format::append_output(answer, next),
            None => answer = Some(next),
        }
        // Available output is read to its end, even if the call does not wait.
        let wants_more = (until_end && read.wait_ms > 0) || (tail.is_some() && is_more);
        if is_over || !wants_more {
            break;
        }
    }
    let Some(mut answer) = answer else { return Err(Error::failed("the host returned nothing")) };
    cx.state().offsets.lock().insert(read.task_id, answer.offset);
    if let Some(lines) = tail {
        task_format::keep_last_lines(&mut answer, lines);
    }
    Ok(Output::json(task_format::task_read_json(&answer)))
}

fn to_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Cancel a background task.
#[tool_fn(
    name = "cancelBackgroundTask",
    category = "system",
    destructive = false,
    idempotent,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "task_id": { "type": "string", TOUCHES: { "text": "the name of a task" }, "description": "The task." } },
        "required": ["task_id"],
    })
)]
async fn cancel_background_task(cx: &Cx<BackgroundPlugin>, task_id: String) -> Result<Output> {
    let cancelled = cancel_task(cx, &task_id).await?;
    Ok(Output::json(json!({ "task_id": task_id, "cancelled": cancelled })))
}

/// List running background tasks.
#[tool_fn(
    name = "listBackgroundTasks",
    category = "system",
    read_only,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "plugin_name": { "type": "string", TOUCHES: { "text": "the name of a plugin" }, "description": "Only this plugin's tasks." } },
    })
)]
async fn list_background_tasks(
    cx: &Cx<BackgroundPlugin>,
    #[serde(default)] plugin_name: String,
) -> Result<Output> {
    let mut tasks = cx.tasks().list().await?;
    tasks.retain(|task| {
        let is_wanted = plugin_name.is_empty() || plugin_name == task.source;
        is_wanted && task.status == TaskStatus::Running
    });
    let told: Vec<Value> = tasks.iter().map(task_format::task_list_entry).collect();
    Ok(Output::json(json!({ "count": told.len(), "tasks": told })))
}

/// List the tools that can run in the background.
#[tool_fn(
    name = "listBackgroundCapableTools",
    category = "system",
    read_only,
    idempotent,
    open_world = false,
    auto_approval
)]
async fn list_background_capable_tools(cx: &Cx<BackgroundPlugin>) -> Result<Output> {
    let mut tools = cx.tools().await?;
    tools.retain(|tool| tool.source != task_format::SOURCE);
    let told: Vec<Value> = tools.iter().map(task_format::tool_list_entry).collect();
    Ok(Output::json(json!({ "count": told.len(), "tools": told })))
}

/// Ends a task. Returns true if it was running.
async fn cancel_task(cx: &Cx<BackgroundPlugin>, task_id: &str) -> Result<bool> {
    let before = cx.tasks().cancel(task_id).await.map_err(with_tool_hint)?;
    Ok(before.status == TaskStatus::Running)
}

/// Adds a hint that names the model's tool.
fn with_tool_hint(error: Error) -> Error {
    match error.kind {
        ErrorKind::NotFound => error.with_hint("`listBackgroundTasks` lists the running tasks"),
        _ => error,
    }
}

/// The plugin's state: how far each task was read. The host keeps the tasks.
#[derive(Default)]
pub struct BackgroundPlugin {
    offsets: Mutex<BTreeMap<String, u64>>,
}

impl State for BackgroundPlugin {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }

    fn describe(description: &mut Description) {
        description.services = vec!["tasks".to_owned()];
        description.commands = vec![CommandSpec {
            name: "tasks".to_owned(),
            description: "Lists what runs in the background, or ends it: tasks cancel TASK"
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "action": {
                        "enum": ["list", "cancel"],
                        "default": "list",
                        "description": "What to do.",
                    },
                    "task": { "type": "string", "description": "Which task to end." },
                },
                "additionalProperties": false,
            }),
            ..CommandSpec::default()
        }];
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        if name != "tasks" {
            let text = format!("unknown command `{name}`");
            return Err(Error::new(ErrorKind::UnknownOperation, text));
        }
        if arguments["action"] != "cancel" {
            return Ok(Output::text(task_format::format_tasks(&cx.tasks().list().await?)));
        }
        let Some(task_id) = arguments["task"].as_str() else {
            let error = Error::new(ErrorKind::InvalidArguments, "no task id was given");
            return Err(error.with_hint("tasks cancel task_1"));
        };
        let text = match cancel_task(cx, task_id).await? {
            true => format!("ended {task_id}"),
            false => format!("{task_id} had already ended"),
        };
        Ok(Output::text(text))
    }
}

export_plugin! { state: BackgroundPlugin, tools }
