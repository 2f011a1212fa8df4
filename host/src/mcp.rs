//! The state of the MCP servers, as the plugin for servers tells it.

use jaato_runtime::Runtime;
use serde_json::json;

use crate::command;
use crate::exit::CommandFailure;

/// The plugin's command.
const COMMAND: &str = "mcp";

/// Returns the state of each server for `doctor`, one line each. Empty without servers.
/// Servers that are down are started first, with a short wait.
pub async fn server_states(runtime: &Runtime) -> Result<Vec<String>, CommandFailure> {
    let asked = json!({ "action": "status" });
    let text = match command::answer_text(runtime, COMMAND, asked).await? {
        None => return Ok(Vec::new()),
        Some(Ok(text)) => text,
        Some(Err(error)) => return Ok(vec![format!("the MCP plugin failed: {}", error.message)]),
    };
    let lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    // The first line counts them.
    let has_some = lines.len() > 1;
    Ok(if has_some { lines } else { Vec::new() })
}
