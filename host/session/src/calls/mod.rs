//! Runs the tool calls of one answer: safe ones in parallel, results in call order.

mod admission;
mod batch;
mod execute;
mod preview;
mod running;

pub(crate) use execute::failed_result;
pub use preview::PREVIEW_BYTES_MAX;
pub(crate) use running::{CallStart, RunningToolCall};

use std::sync::Arc;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesOrdered, StreamExt};
use jaato_approval::{ChangedCall, EqualCallAnswers};
use jaato_types::{Error, ErrorKind, SessionId, ToolCall, ToolName, ToolResult};
use serde_json::Value;

use crate::events::EventEmitter;
use crate::hooks::HookAsker;
use crate::tasks::BackgroundTasks;
use crate::{
    Agent, CallFiles, CallOrigin, Cancel, KnownTool, Limits, SessionPorts, SharedFacts,
    SharedObjects, SharedRules, Toolbox,
};

/// The context in which the calls of a step run.
pub(crate) struct CallRunner<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) ports: &'a SessionPorts,
    pub(crate) hooks: &'a Arc<HookAsker>,
    pub(crate) emitter: &'a EventEmitter,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) tasks: &'a BackgroundTasks,
    pub(crate) rules: &'a SharedRules,
    /// How long to wait for an answer to a question. `None` leaves that to the front end.
    pub(crate) patience_ms: Option<u64>,
    /// The session's identity, if it is not the main agent.
    pub(crate) agent: Option<Agent>,
    pub(crate) initiative: CallInitiator,
    /// The plugin that makes the call, if a plugin makes it.
    pub(crate) origin: Option<&'a CallOrigin>,
    pub(crate) limits: &'a Limits,
    pub(crate) facts: &'a SharedFacts,
    pub(crate) objects: &'a SharedObjects,
    pub(crate) cancel: &'a Cancel,
}

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallInitiator {
    /// The model, which may use the tools that it is offered.
    Model,
    /// The user, who typed the call.
    Person,
    /// A tool that runs automatically, whether it is offered or not.
    Tool,
    /// A plugin, which waits for the result.
    Plugin,
}

/// The outcome of a step's calls.
#[derive(Debug, Default)]
pub(crate) struct CallsOutcome {
    /// One result for each call, in call order.
    pub(crate) results: Vec<ToolResult>,
    /// The first refusal because no user could be asked.
    pub(crate) without_user: Option<Error>,
    /// Whether a call that a permission let run succeeded.
    pub(crate) did_permitted: bool,
    /// Tools that were called although they were not in the request.
    pub(crate) activated: Vec<ToolName>,
    /// The user's answers so far, which also hold for equal calls.
    equal: EqualCallAnswers,
}

/// A call between its admission and its result.
struct AdmittedCall<'a> {
    /// The call as it was made.
    call: &'a ToolCall,
    /// The call with other arguments, if plugins or the user changed them.
    changed: Option<ChangedCall>,
    /// The tool, if a tool with this name may be called.
    tool: Option<&'a KnownTool>,
    fate: CallDecision,
    /// Whether a permission lets it run, rather than its being harmless.
    is_permitted: bool,
    /// A note for the model next to the result.
    note: Option<String>,
}

impl<'a> AdmittedCall<'a> {
    /// Creates an admission that ends before any plugin sees the call.
    fn without_tool(call: &'a ToolCall, fate: CallDecision) -> Self {
        Self { call, changed: None, tool: None, fate, is_permitted: false, note: None }
    }

    /// Returns the call with the arguments that it runs with.
    fn effective_call(&self) -> &ToolCall {
        self.changed.as_ref().map_or(self.call, |changed| &changed.call)
    }
}

/// The decision about a call.
enum CallDecision {
    /// It runs, with these limits for its file operations.
    Run(Arc<CallFiles>),
    Refuse(Error),
    /// The turn was cancelled before the call began, so no event mentions it.
    Drop,
}

impl CallRunner<'_> {
    /// Returns how many plugin calls are above the ones that this runs.
    fn call_depth(&self) -> u32 {
        self.origin.map_or(0, |origin| origin.depth)
    }

    /// Runs the calls. Always returns one result for each.
    pub(crate) async fn run_calls(&self, calls: &[ToolCall]) -> CallsOutcome {
        let calls: Vec<ToolCall> = calls.iter().map(|call| self.fit_arguments(call)).collect();
        let mut done = CallsOutcome::default();
        let (runnable, excess) = calls.split_at(calls.len().min(self.limits.calls_per_step_max));
        for batch in batch::split_into_batches(runnable, &self.toolbox) {
            self.run_batch(batch, runnable, &mut done).await;
        }
        let most = self.limits.calls_per_step_max;
        for call in excess {
            let text = format!("not run: an answer may make at most {most} calls");
            let error = Error::new(ErrorKind::LimitReached, text)
                .with_hint("make the remaining calls in the next answer");
            let refused = AdmittedCall::without_tool(call, CallDecision::Refuse(error));
            done.results.push(self.run_to_result(refused).await);
        }
        done
    }

    /// Fits a call's arguments to the schema of its tool before anything looks at them. Guards,
    /// rules, the user and the plugin all see the same arguments.
    fn fit_arguments(&self, call: &ToolCall) -> ToolCall {
        let Ok(found) = self.toolbox.find_tool(&call.name) else { return call.clone() };
        self.toolbox.fit_arguments(found.tool, call.clone())
    }

    /// Starts each call as soon as it is allowed, while the next one is being decided.
    async fn run_batch(&self, batch: &[ToolCall], all: &[ToolCall], done: &mut CallsOutcome) {
        let saver = self.ports.saver.as_ref().filter(|_| all.len() > 1);
        let settle = async |admitted| {
            let result = self.run_to_result(admitted).await;
            if let Some(saver) = saver {
                saver.save_call_result(&result);
            }
            result
        };
        let at_once = self.limits.parallel_calls_max.max(1);
        let mut results = Vec::with_capacity(batch.len());
        let mut permitted = Vec::with_capacity(batch.len());
        let mut running = FuturesOrdered::new();
        for call in batch {
            if running.len() >= at_once {
                results.extend(running.next().await);
            }
            let mut admitting = self.admit_call(call, all, done).boxed();
            let admitted = loop {
                tokio::select! {
                    biased;
                    admitted = &mut admitting => break admitted,
                    Some(result) = running.next() => results.push(result),
                }
            };
            drop(admitting);
            permitted.push(admitted.is_permitted);
            running.push_back(settle(admitted).boxed());
        }
        results.extend(running.collect::<Vec<_>>().await);
        let mut outcomes = permitted.iter().zip(&results);
        done.did_permitted |= outcomes.any(|(permitted, result)| *permitted && !result.is_error);
        done.results.extend(results);
    }
}

/// Returns true if the call did its job, as far as its result says.
pub(crate) fn is_success(result: &ToolResult) -> bool {
    !result.is_error && !is_start_failure(result)
}

/// Returns true if the call ran and failed, or its command could not be started. A call that was
/// refused, or that no tool could take, did not run. A result that reports a missing thing is an
/// answer, not a failure.
pub(crate) fn has_failed(result: &ToolResult) -> bool {
    const NO_FAILURE: [ErrorKind; 6] = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::InvalidArguments,
        ErrorKind::UnknownTool,
        ErrorKind::ToolDisabled,
        ErrorKind::Cancelled,
    ];
    let kind = result.content.get("error").and_then(|error| error.get("kind"));
    let kind = kind.and_then(Value::as_str).unwrap_or_default();
    let ran = !NO_FAILURE.iter().any(|other| other.name() == kind);
    (result.is_error && ran) || is_start_failure(result)
}

/// A shell returns 126 or 127 for a command that it cannot start.
fn is_start_failure(result: &ToolResult) -> bool {
    let code = result.content.get("returncode").and_then(Value::as_i64);
    matches!(code, Some(126 | 127))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refused_call_neither_worked_nor_broke() {
        for (content, is_error, expected) in [
            (json!({"stdout": "", "returncode": 1}), false, (true, false)),
            (json!({"stderr": "not found", "returncode": 127}), false, (false, true)),
            (json!({"error": {"kind": "plugin"}}), true, (false, true)),
            (json!({"error": {"kind": "not_found"}}), true, (false, false)),
            (json!({"error": {"kind": "permission_denied"}}), true, (false, false)),
        ] {
            let content = content.as_object().unwrap().clone();
            let result = ToolResult { content, is_error, ..ToolResult::default() };
            assert_eq!((is_success(&result), has_failed(&result)), expected, "{result:?}");
        }
    }
}
