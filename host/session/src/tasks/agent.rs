//! Turns of sessions that a plugin has opened, as tasks of the session that opened them.
//!
//! So a turn waits for the agents that it has started, cancels them when it is cancelled, and gets
//! their answers in the next message. Between turns, an answer wakes the session.

use std::sync::{Arc, Weak};

use jaato_types::tasks::TaskStatus;
use jaato_types::{CallId, Event, Outcome, PluginName, SessionId, ToolName};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::board::{TaskEnd, TaskReservation};
use super::{BoardTask, TaskOutput, task_id, to_seconds};
use crate::output::{self as tool_output, ResultLimit, error_content};
use crate::session::SessionShared;
use crate::{Cancel, TurnReport};

/// The agent whose turn becomes a task.
#[derive(Debug, Clone)]
pub struct AgentTurn {
    /// The agent's name for users.
    pub agent: String,
    /// Its session.
    pub session: SessionId,
    /// The plugin that opened the session.
    pub by: PluginName,
    /// Cancels the turn.
    pub stop: Cancel,
}

/// A running turn of an agent, as a task of its opener. Dropping it ends the task without an
/// outcome.
pub struct AgentTask {
    /// Does not keep the opener alive.
    opener: Weak<SessionShared>,
    turn: AgentTurn,
    output: Arc<TaskOutput>,
    /// Taken at the end.
    place: Mutex<Option<TaskReservation>>,
    began_ms: u64,
}

impl AgentTask {
    pub(crate) fn begin_task(opener: &Arc<SessionShared>, turn: AgentTurn, message: &str) -> Self {
        let clock = opener.ports.clock.clone();
        let (output, began_ms) = (Arc::<TaskOutput>::default(), clock.monotonic_ms());
        let by = turn.by.as_str().to_owned();
        let board = opener.tasks.board();
        let number = board.add_task(BoardTask {
            tool: ToolName::from(turn.agent.as_str()),
            arguments: json!({ "message": message }),
            source: by.clone(),
            by: Some(by.clone()),
            is_detached: false,
            stop: turn.stop.clone(),
            is_taken_back: false,
            output: Arc::clone(&output),
            began_ms,
            clock,
            ended: None,
        });
        opener.emitter.emit(Event::TaskStarted {
            task_id: task_id(number),
            call_id: CallId::from(turn.session.as_str()),
            name: ToolName::from(turn.agent.as_str()),
            source: by.clone(),
            by: Some(by),
        });
        let place = TaskReservation::new(Arc::clone(board), number);
        Self {
            opener: Arc::downgrade(opener),
            turn,
            output,
            place: Mutex::new(Some(place)),
            began_ms,
        }
    }

    /// Adds a line about what the agent does, which users see in the list of tasks.
    pub fn add_line(&self, line: &str) {
        self.output.push(&format!("{line}\n"));
    }

    /// Ends the task with the report of the turn, which joins the opener's next message.
    pub async fn end_with_report(&self, report: &TurnReport) {
        let Some(mut place) = self.place.lock().take() else { return };
        let Some(shared) = self.opener.upgrade() else { return };
        let (event, status) = turn_end_status(report.outcome);
        let call_id = CallId::from(self.turn.session.as_str());
        let limit = ResultLimit {
            call: &call_id,
            bytes_max: shared.limits.output_bytes_max,
            store: &*shared.ports.outputs,
        };
        let content = tool_output::fit_to_limit(turn_content(report), limit).await;
        let duration_ms = shared.ports.clock.monotonic_ms().saturating_sub(self.began_ms);
        let task_id = place.task_id();
        let told = json!({
            "task_id": task_id,
            "agent": self.turn.agent,
            "event": event,
            "status": status,
            "duration_seconds": to_seconds(duration_ms),
            "result": content,
        });
        place.end_task(TaskEnd { status, content: content.clone(), duration_ms, told });
        shared.emitter.emit(Event::TaskFinished {
            task_id,
            call_id,
            name: ToolName::from(self.turn.agent.as_str()),
            source: self.turn.by.as_str().to_owned(),
            result: content,
            is_error: status != TaskStatus::Completed,
            duration_ms,
        });
    }
}

/// Returns the word for the model, and the task's status.
fn turn_end_status(outcome: Outcome) -> (&'static str, TaskStatus) {
    match outcome {
        Outcome::Done | Outcome::Denied | Outcome::Limit => ("COMPLETED", TaskStatus::Completed),
        Outcome::Cancelled => ("CANCELLED", TaskStatus::Cancelled),
        Outcome::Failed | Outcome::Unknown => ("ERROR", TaskStatus::Failed),
    }
}

fn turn_content(report: &TurnReport) -> Map<String, Value> {
    let mut content = report.error.as_ref().map(error_content).unwrap_or_default();
    content.insert("response".to_owned(), json!(report.text));
    content.insert("outcome".to_owned(), json!(report.outcome));
    content.insert("turns_used".to_owned(), json!(report.steps));
    content
}
