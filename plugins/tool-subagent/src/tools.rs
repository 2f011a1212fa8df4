//! The tools that use subagents after they are spawned.

use jaato_plugin_sdk::child::ChildState;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;
use jiff::Timestamp;

use crate::activity::ActivityPhase;
use crate::agents::{MessageDelivery, SavedSubagent, Subagents};
use crate::worktree::Worktree;

/// Returns the schema of a tool whose only argument is a subagent.
fn subagent_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "subagent_id": { "type": "string", TOUCHES: { "text": "the name of a subagent" }, "description": "The subagent." } },
        "required": ["subagent_id"],
    })
}

/// Send a message to a subagent: a question, a correction, further work.
#[tool_fn(
    name = "send_to_subagent",
    category = "coordination",
    destructive = false,
    open_world = false,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "subagent_id": { "type": "string", TOUCHES: { "text": "the name of a subagent" }, "description": "The subagent." },
            "message": { "type": "string", TOUCHES: { "text": "a message for another model" }, "description": "The message." },
        },
        "required": ["subagent_id", "message"],
    })
)]
async fn send_to_subagent(
    cx: &Cx<Subagents>,
    subagent_id: String,
    message: String,
) -> Result<Output> {
    let (status, text) = match cx.state().send_message(&subagent_id, message).await? {
        MessageDelivery::Dispatched => (
            "dispatched",
            "Message dispatched to idle subagent. Its answer comes as a message: do not poll.",
        ),
        MessageDelivery::Queued => {
            ("queued", "The subagent is working. It gets the message with its next step.")
        }
    };
    Ok(Output::json(json!({ "success": true, "status": status, "message": text })))
}

/// Cancel the running turn of a subagent, which stays open.
#[tool_fn(
    name = "cancel_subagent",
    category = "coordination",
    destructive = false,
    idempotent,
    open_world = false,
    schema = subagent_schema()
)]
async fn cancel_subagent(cx: &Cx<Subagents>, subagent_id: String) -> Result<Output> {
    let is_cancelled = cx.state().cancel_turn(&subagent_id).await?;
    let message = match is_cancelled {
        true => {
            format!("Cancellation requested for session {subagent_id}. The subagent stops now.")
        }
        false => format!("Session {subagent_id} is not currently running (status: idle)"),
    };
    Ok(Output::json(json!({ "success": is_cancelled, "message": message })))
}

/// Close a subagent that is not needed any more. A worktree with changes that you did not accept
/// stays.
#[tool_fn(
    name = "close_subagent",
    category = "coordination",
    destructive = false,
    open_world = false,
    schema = subagent_schema()
)]
async fn close_subagent(cx: &Cx<Subagents>, subagent_id: String) -> Result<Output> {
    let agents = cx.state();
    let worktree = agents.find_worktree(&subagent_id)?;
    let was_running = agents.close_subagent(&subagent_id).await?;
    let cancelled = if was_running { "cancelled and " } else { "" };
    let mut message = format!("Session {subagent_id} {cancelled}closed successfully");
    if let Some(worktree) = worktree {
        match worktree.diff_changes(cx).await?.is_empty() {
            true => worktree.remove_worktree(cx).await?,
            false => message.push_str(&format!(
                ". Its changes were not accepted and stay in {}",
                worktree.directory
            )),
        }
    }
    Ok(Output::json(json!({ "success": true, "message": message })))
}

/// Show the changes of a subagent that works in a worktree of its own, as a diff.
#[tool_fn(
    name = "show_subagent_changes",
    category = "coordination",
    read_only,
    open_world = false,
    auto_approval,
    schema = subagent_schema()
)]
async fn show_subagent_changes(cx: &Cx<Subagents>, subagent_id: String) -> Result<Output> {
    let diff = require_worktree(cx, &subagent_id)?.diff_changes(cx).await?;
    Ok(Output::json(json!({ "subagent_id": subagent_id, "diff": diff })))
}

/// Apply the changes of a subagent's worktree to the files of this session. If the same lines have
/// changed here, nothing changes.
#[tool_fn(
    name = "accept_subagent_changes",
    category = "coordination",
    open_world = false,
    schema = subagent_schema()
)]
async fn accept_subagent_changes(cx: &Cx<Subagents>, subagent_id: String) -> Result<Output> {
    require_worktree(cx, &subagent_id)?.accept_changes(cx).await?;
    let message = format!("The changes of {subagent_id} are applied to your files.");
    Ok(Output::json(json!({ "success": true, "message": message })))
}

fn require_worktree(cx: &Cx<Subagents>, subagent_id: &str) -> Result<Worktree> {
    cx.state().find_worktree(subagent_id)?.ok_or_else(|| {
        let text = format!("{subagent_id} works in your folder and has no changes of its own");
        Error::new(ErrorKind::InvalidArguments, text)
    })
}

/// List the subagents of this session and what each one does.
#[tool_fn(
    name = "list_active_subagents",
    category = "coordination",
    read_only,
    open_world = false,
    auto_approval
)]
async fn list_active_subagents(cx: &Cx<Subagents>) -> Result<Output> {
    let agents = cx.state();
    let states = agents.list_with_states().await;
    if states.is_empty() {
        let message = "No active subagent sessions";
        return Ok(Output::json(json!({ "active_sessions": [], "message": message })));
    }
    let sessions: Vec<Value> =
        states.iter().map(|(saved, state)| subagent_entry(agents, saved, state.as_ref())).collect();
    Ok(Output::json(json!({ "count": sessions.len(), "active_sessions": sessions })))
}

fn subagent_entry(agents: &Subagents, saved: &SavedSubagent, state: Option<&ChildState>) -> Value {
    let activity = agents.activities.find_activity(&saved.session_id);
    let is_running = state.is_some_and(|state| state.is_running);
    let status = match state {
        Some(_) if is_running => "running",
        Some(_) => "idle",
        // Its process has ended. A message opens its session again.
        None => "saved",
    };
    let phase = activity.as_ref().map_or(ActivityPhase::Idle, |activity| activity.phase);
    let mut entry = json!({
        "subagent_id": saved.id,
        "session_id": saved.session_id,
        "profile": saved.profile,
        "worktree": saved.worktree.as_ref().map(|worktree| &worktree.directory),
        "status": status,
        "activity_phase": phase.status_word(),
        "can_cancel": is_running,
        "can_send": true,
        "created_at": saved.created_at,
        "turn_count": state.map_or(0, |state| state.turns),
        "max_turns": saved.open.steps_max,
    });
    if let Some(activity) = activity {
        let seconds = Timestamp::now().duration_since(activity.phase_began).as_secs_f64();
        entry["phase_started_at"] = json!(activity.phase_began);
        entry["phase_duration_sec"] = json!((seconds * 10.0).round() / 10.0);
        entry["last_activity"] = json!(activity.last_activity);
        entry["model"] = json!(activity.model);
        entry["last_tool"] = json!(activity.last_tool);
    }
    entry
}
