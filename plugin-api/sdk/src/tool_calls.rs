//! Calls of other tools, and the tasks that nobody waits for.

use jaato_types::tasks::{
    self, TaskCancel, TaskFacts, TaskRead, TaskReadAnswer, TaskStart, TaskStarted, TasksAnswer,
};
use jaato_types::tool_calls::{TOOLS_CALL, ToolsCall, ToolsCallAnswer};
use jaato_types::tools_list::{TOOLS_LIST, ToolFacts, ToolsListAnswer};
use jaato_types::tools_set::{TOOLS_SET, ToolsSet, ToolsSetAnswer};
use jaato_types::{Output, Result, ToolName};
use serde_json::Value;

use crate::context::Reporter;

/// The session's tasks, made by [`Reporter::tasks`].
pub struct Tasks {
    host: Reporter,
}

impl Reporter {
    /// Calls another tool of the session and waits for its output. The person's rules decide
    /// as if the model had called it, and they are told which plugin calls. The model is told
    /// nothing of it.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # async fn files(cx: &Cx) -> Result<Output> {
    /// let output = cx.call_tool("cli_based_tool", json!({ "command": "ls" })).await?;
    /// Ok(Output::json(json!({ "listing": output.content["stdout"] })))
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the tool answers; `permission_denied` where the plugin has no grant for `tools.call`,
    /// or the rules or the person refuse; `unknown_tool`; `invalid_arguments`; `limit_reached`
    /// three calls deep, for more than 200 of one call, or beside 16 others of the session.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<Output> {
        let request = ToolsCall { name: ToolName::from(name), arguments, ..ToolsCall::default() };
        let (answer, bytes): (ToolsCallAnswer, _) =
            self.service_for_bytes(TOOLS_CALL, &request, &[]).await?;
        let ToolsCallAnswer { content, attachments, .. } = answer;
        Ok(Output { content, bytes, attachments, ..Output::default() })
    }

    /// Sets tools and commands that the plugin offers besides those that its code declares. New
    /// tools join with the next step, and all other changes with the next turn. For plugins with
    /// `tools: dynamic`, whose [`State::call_tool`](crate::State::call_tool) runs them. An instance
    /// of a session sets them for that session, a host-wide one for all.
    ///
    /// # Errors
    /// `limit_reached` for the sixth change without a pause of a second.
    pub async fn set_tools(&self, set: &ToolsSet) -> Result<ToolsSetAnswer> {
        self.service(TOOLS_SET, set).await
    }

    /// Lists the tools that may be called in the session.
    ///
    /// # Errors
    /// `unavailable` where there is no session.
    pub async fn tools(&self) -> Result<Vec<ToolFacts>> {
        let answer: ToolsListAnswer = self.service(TOOLS_LIST, &()).await?;
        Ok(answer.tools)
    }

    /// Reaches the session's tasks.
    pub fn tasks(&self) -> Tasks {
        Tasks { host: self.clone() }
    }
}

impl Tasks {
    /// Starts a call of a tool that no turn waits for; returns its task once the person's rules
    /// have let it pass. It goes on after the call that starts it; its end wakes the session, and
    /// the model is told what came of it.
    ///
    /// # Errors
    /// As [`Reporter::call_tool`]; `limit_reached` where too many tasks run.
    pub async fn start(&self, name: &str, arguments: Value) -> Result<String> {
        let name = ToolName::from(name);
        self.start_task(&TaskStart { name, arguments, ..TaskStart::default() }).await
    }

    /// As [`Tasks::start`], with a time limit of its own.
    ///
    /// # Errors
    /// As [`Tasks::start`].
    pub async fn start_task(&self, request: &TaskStart) -> Result<String> {
        let started: TaskStarted = self.host.service(tasks::TASKS_START, request).await?;
        Ok(started.task_id)
    }

    /// Lists the session's tasks: those that plugins started and calls that went to the background
    /// by themselves; of those that ended the last 64.
    ///
    /// # Errors
    /// `permission_denied` without a grant for `tasks`.
    pub async fn list(&self) -> Result<Vec<TaskFacts>> {
        let answer: TasksAnswer = self.host.service(tasks::TASKS_LIST, &()).await?;
        Ok(answer.tasks)
    }

    /// Reads what a task has shown from a byte of its output on, and what came of it.
    ///
    /// # Errors
    /// `not_found` where the session has no such task.
    pub async fn read(&self, read: &TaskRead) -> Result<TaskReadAnswer> {
        self.host.service(tasks::TASKS_READ, read).await
    }

    /// Ends a task; its outcome says so.
    ///
    /// # Errors
    /// As [`Tasks::read`].
    pub async fn cancel(&self, task_id: &str) -> Result<TaskFacts> {
        let request = TaskCancel { task_id: task_id.to_owned(), ..TaskCancel::default() };
        self.host.service(tasks::TASKS_CANCEL, &request).await
    }
}
