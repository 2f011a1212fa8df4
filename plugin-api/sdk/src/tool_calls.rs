//! Calls to other tools, and detached tasks.

use jaato_types::tasks::{
    TaskCancel, TaskFacts, TaskRead, TaskReadAnswer, TaskStart, TaskStartAnswer, TasksAnswer,
};
use jaato_types::tool_calls::{TOOLS_CALL, ToolsCall, ToolsCallAnswer};
use jaato_types::tools_list::{ToolFacts, ToolsListAnswer};
use jaato_types::tools_set::{ToolsSet, ToolsSetAnswer};
use jaato_types::{Output, Result, ToolName};
use serde_json::Value;

use crate::context::Reporter;

/// The session's background tasks, made by [`Reporter::tasks`].
pub struct Tasks {
    host: Reporter,
}

impl Reporter {
    /// Calls another tool of the session and waits for its output. The user's rules decide as if
    /// the model had called it, and the user sees which plugin called. The model does not see the
    /// call.
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
    /// The tool's error; `permission_denied` without a grant for `tools.call`, or if the rules or
    /// the user deny the call; `unknown_tool`; `invalid_arguments`; `limit_reached` for calls
    /// nested three deep, for more than 200 in one call, or if 16 others run in the session.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<Output> {
        let request = ToolsCall { name: ToolName::from(name), arguments, ..ToolsCall::default() };
        let (answer, bytes): (ToolsCallAnswer, _) =
            self.service_for_bytes(TOOLS_CALL, &request, &[]).await?;
        let ToolsCallAnswer { content, attachments, .. } = answer;
        Ok(Output { content, bytes, attachments, ..Output::default() })
    }

    jaato_types::tools_list_operations!(methods []);
    jaato_types::tools_set_operations!(methods []);

    /// Returns access to the session's background tasks.
    pub fn tasks(&self) -> Tasks {
        Tasks { host: self.clone() }
    }
}

impl Tasks {
    jaato_types::task_operations!(methods [.host]);

    /// Starts a tool call as a detached task, and returns the task when the user's rules have
    /// allowed the call. It continues after the call that started it. Its end wakes the session,
    /// and the host tells the model the result.
    ///
    /// # Errors
    /// As [`Reporter::call_tool`]; `limit_reached` if too many tasks run.
    pub async fn start(&self, name: &str, arguments: Value) -> Result<String> {
        let name = ToolName::from(name);
        self.start_task(&TaskStart { name, arguments, ..TaskStart::default() }).await
    }
}
