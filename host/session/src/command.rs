//! Runs a user's command: announces it, runs it to its end or its cancellation, and answers.
//!
//! The command is the user's own act, so it needs no permission check, and it does not join the
//! history on its own. If its plugin says so, the model sees the answer with the next request.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_types::{CallId, Error, ErrorKind, Event, Output, Part, Result, ToolCall, ToolName};
use parking_lot::MutexGuard;
use serde_json::{Value, json};

use crate::calls::{CallStart, RunningToolCall};
use crate::output::{self, ResultLimit, error_content};
use crate::{CallScope, Cancel, DeadlineHold, OutputSink, Session};

/// The maximum number of command answers that wait for the next request. A new one replaces the
/// oldest.
pub const SHARED_ANSWERS_MAX: usize = 16;

/// A command to run.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandCall {
    /// Its name.
    pub name: String,
    /// Its plugin's name without the kind, or `host`.
    pub source: String,
    /// Its checked arguments.
    pub arguments: Value,
    /// Whether the model sees the answer.
    pub share_with_model: bool,
}

impl Session {
    /// Runs a command. `work` makes the future that does it. It is not called if the command is
    /// cancelled first.
    ///
    /// # Errors
    /// The command's own error, `cancelled`, or `timeout` at the deadline of tool calls.
    pub async fn run_command(
        &self,
        command: CommandCall,
        work: impl FnOnce(CallScope) -> BoxFuture<'static, Result<Output>>,
        cancel: &Cancel,
    ) -> Result<Output> {
        if cancel.is_cancelled() {
            let text = format!("the command `{}` was cancelled before it began", command.name);
            return Err(Error::new(ErrorKind::Cancelled, text));
        }
        let call_id = self.shared.ports.ids.create_call_id();
        self.shared.emitter.emit(Event::CommandStarted {
            call_id: call_id.clone(),
            name: command.name.clone(),
            source: command.source.clone(),
            arguments: command.arguments.clone(),
        });
        let mut running = self.start_command(&command, &call_id, work, cancel);
        let outcome = running.finish().await;
        let shared = match &outcome {
            Ok(output) if command.share_with_model => {
                self.keep_answer_for_model(&command, &call_id, output.clone()).await;
                true
            }
            Ok(_) | Err(_) => false,
        };
        let (result, is_error) = match &outcome {
            Ok(output) => (output.content.clone(), false),
            Err(error) => (error_content(error), true),
        };
        self.shared.emitter.emit(Event::CommandFinished {
            call_id,
            name: command.name,
            source: command.source,
            result,
            is_error,
            shared,
            duration_ms: running.duration_ms(),
        });
        outcome
    }

    fn start_command(
        &self,
        command: &CommandCall,
        call_id: &CallId,
        work: impl FnOnce(CallScope) -> BoxFuture<'static, Result<Output>>,
        cancel: &Cancel,
    ) -> RunningToolCall {
        let output = OutputSink::new(self.shared.emitter.clone(), call_id.clone(), &command.source);
        let (stop, hold) = (cancel.child_token(), DeadlineHold::default());
        let scope = CallScope {
            session: self.shared.id.clone(),
            call: call_id.clone(),
            cancel: stop.clone(),
            output: output.clone(),
            streamed: None,
            facts: self.shared.facts.clone(),
            objects: self.shared.objects.clone(),
            depth: 0,
            hold: hold.clone(),
            // The user typed it.
            files: Some(Arc::default()),
        };
        let name = ToolName::from(command.name.as_str());
        RunningToolCall::new(CallStart {
            call: ToolCall::new(call_id.clone(), name, Value::Null),
            source: command.source.clone(),
            stop,
            clock: self.shared.ports.clock.clone(),
            output,
            work: work(scope),
            deadline_ms: self.shared.limits.call_deadline_ms,
            hold,
        })
    }

    /// Keeps an answer for the next request, within the size limit of tool results.
    async fn keep_answer_for_model(&self, command: &CommandCall, call_id: &CallId, output: Output) {
        let fitting = ResultLimit {
            call: call_id,
            bytes_max: self.shared.limits.output_bytes_max,
            store: &*self.shared.ports.outputs,
        };
        let content = output::output_content(output, fitting).await;
        let mut answers = self.lock_command_answers();
        if answers.len() >= SHARED_ANSWERS_MAX {
            answers.remove(0);
        }
        answers.push(Part::json(json!({ "user_command": command.name, "answer": content })));
    }

    /// Takes the command answers that the model has yet to see.
    pub(crate) fn take_command_answers(&self) -> Vec<Part> {
        self.lock_command_answers().drain(..).collect()
    }

    fn lock_command_answers(&self) -> MutexGuard<'_, Vec<Part>> {
        self.answers.lock()
    }
}
