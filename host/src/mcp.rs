//! `jaato mcp`: the command `mcp` of the plugin for servers, with its answer as text.

use jaato_runtime::Runtime;
use jaato_template::shell_word;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::command::{self, AnswerForm};
use crate::exit::{CommandFailure, CommandResult};
use crate::terminal;

/// The plugin's command.
const COMMAND: &str = "mcp";

/// Runs it. The words after a server's name stay separate, as the shell passed them.
pub async fn mcp(global: GlobalArgs, words: &[String]) -> CommandResult {
    terminal::reserve();
    let mut arguments = json!({});
    let mut words = words.iter();
    for key in ["action", "name"] {
        if let Some(word) = words.next() {
            arguments[key] = word.as_str().into();
        }
    }
    let rest: Vec<String> = words.map(|word| shell_word(word)).collect();
    if !rest.is_empty() {
        arguments["command"] = rest.join(" ").into();
    }
    command::run(global, COMMAND, &[arguments.to_string()], AnswerForm::Text).await
}

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
