//! The command `agents`: shows the user the tree of running agents, and lets the user write to one
//! or stop it.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;

use crate::agents::{MessageDelivery, Subagents};

/// The command's name.
pub const NAME: &str = "agents";

/// Returns the command's spec.
pub fn agents_command() -> CommandSpec {
    CommandSpec {
        name: NAME.to_owned(),
        description: "Shows the agents of this session, writes to one, or stops its turn: \
                      agents send NAME MESSAGE, agents stop NAME, agents close NAME"
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "enum": ["list", "send", "stop", "close"],
                    "default": "list",
                    "description": "What to do.",
                },
                "agent": { "type": "string", "description": "Which agent." },
                "message": { "type": "string", "x-capture-rest": true, "description": "The message to it." },
            },
            "additionalProperties": false,
        }),
        ..CommandSpec::default()
    }
}

/// Runs the command.
///
/// # Errors
/// If the action needs an agent that is not named or does not exist.
pub async fn run_agents_command(agents: &Subagents, arguments: &Value) -> Result<Output> {
    let action = arguments["action"].as_str().unwrap_or("list");
    if action == "list" {
        return list_agents(agents).await.map(Output::text);
    }
    let Some(agent) = arguments["agent"].as_str() else {
        let error = Error::new(ErrorKind::InvalidArguments, "no agent was named");
        return Err(error.with_hint("`agents` lists their names"));
    };
    let text = match action {
        "send" => {
            let message = arguments["message"].as_str().unwrap_or_default();
            match agents.send_message(agent, message.to_owned()).await? {
                MessageDelivery::Dispatched => format!("{agent} begins a turn with the message"),
                MessageDelivery::Queued => format!("{agent} gets the message with its next step"),
            }
        }
        "stop" => match agents.cancel_turn(agent).await? {
            true => format!("stopped {agent}"),
            false => format!("{agent} is not working"),
        },
        _ => {
            agents.close_subagent(agent).await?;
            format!("closed {agent}")
        }
    };
    Ok(Output::text(text))
}

async fn list_agents(agents: &Subagents) -> Result<String> {
    let mut lines = agents.activities.tree_lines(&agents.own_session_id().await?);
    let states = agents.list_with_states().await;
    let saved = states.into_iter().filter(|(_, state)| state.is_none());
    lines.extend(saved.map(|(saved, _)| {
        format!("{}: saved; a message continues it ({})", saved.id, saved.session_id)
    }));
    Ok(match lines.is_empty() {
        true => "no agents: the model spawns them with `spawn_subagent`".to_owned(),
        false => lines.join("\n"),
    })
}
