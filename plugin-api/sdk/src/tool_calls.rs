//! Calls of other tools, and the tasks that nobody waits for.

use jaato_types::tasks::{
    TaskCancel, TaskFacts, TaskRead, TaskReadAnswer, TaskStart, TaskStarted, TasksAnswer,
};
use jaato_types::tool_calls::{TOOLS_CALL, ToolsCall, ToolsCallAnswer};
use jaato_types::tools_list::{ToolFacts, ToolsListAnswer};
use jaato_types::tools_set::{ToolsSet, ToolsSetAnswer};
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

    jaato_types::tools_list_operations!(methods []);
    jaato_types::tools_set_operations!(methods []);

    /// Reaches the session's tasks.
    pub fn tasks(&self) -> Tasks {
        Tasks { host: self.clone() }
    }
}

impl Tasks {
    jaato_types::task_operations!(methods [.host]);

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
}
