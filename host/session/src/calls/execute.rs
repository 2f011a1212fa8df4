//! Runs one admitted call and makes its result. Each call that begins also ends.

use std::sync::Arc;

use jaato_types::{Error, ErrorKind, Event, Output, ToolCall, ToolResult};
use serde_json::{Map, Value, json};

use super::running::{CallStart, RunningToolCall};
use super::{AdmittedCall, CallDecision, CallInitiator, CallRunner};
use crate::events::HOST;
use crate::hooks::{HookedResult, note_argument_change};
use crate::output::{self, error_content};
use crate::tasks::{self, BackgroundTaskContext};
use crate::{
    CallFiles, CallScope, Cancel, DeadlineHold, KnownTool, OutputSink, StreamedOutput,
    VIEW_ENVIRONMENT, introspection,
};

impl CallRunner<'_> {
    /// Returns the call's one result.
    pub(super) async fn run_to_result(&self, admitted: AdmittedCall<'_>) -> ToolResult {
        let call = admitted.call;
        let Some(begun) = self.announce_call(&admitted) else {
            return failed_result(call, &never_began_error());
        };
        let fitting = self.result_limit(call);
        let outcome = self.call_outcome(&admitted, &begun.source).await;
        let ran = !outcome.as_ref().is_err_and(|error| error.kind == ErrorKind::Cancelled);
        let (mut content, attachments, is_error) = match outcome {
            Ok(mut output) => {
                let attachments = std::mem::take(&mut output.attachments);
                (output::output_content(output, fitting).await, attachments, false)
            }
            // Attachments that a call made before it failed are dropped.
            Err(error) => {
                (output::fit_to_limit(error_content(&error), fitting).await, Vec::new(), true)
            }
        };
        if ran {
            content = self.apply_result_hooks(&admitted, content, is_error).await;
        }
        self.finish_call(call, begun, content.clone(), is_error);
        ToolResult { is_error, attachments, ..tool_result(call, content) }
    }

    /// Runs a call for the user or a plugin. Returns the whole output; only streamed texts are
    /// truncated.
    pub(crate) async fn run_whole(&self, call: &ToolCall) -> Result<Output, Error> {
        let call = &self.fit_arguments(call);
        let admitted = self.admit_single_call(call).await;
        let Some(begun) = self.announce_call(&admitted) else { return Err(never_began_error()) };
        let mut outcome = self.call_outcome(&admitted, &begun.source).await;
        let (content, is_error) = match &mut outcome {
            Ok(output) => {
                let content = std::mem::take(&mut output.content);
                let owner = introspection::tool_owner(admitted.tool);
                let after =
                    self.hooks.ask_after_tool(admitted.effective_call(), &owner, content, false);
                output.content = after.await.content;
                admitted.note_changed_arguments(&mut output.content);
                (output.content.clone(), false)
            }
            // The content is not used here, because the caller gets the error itself.
            Err(error) => (error_content(error), true),
        };
        self.finish_call(call, begun, content, is_error);
        outcome
    }

    /// Lets plugins change the result before the model gets it. Their changes must fit the limit,
    /// too.
    async fn apply_result_hooks(
        &self,
        admitted: &AdmittedCall<'_>,
        content: Map<String, Value>,
        is_error: bool,
    ) -> Map<String, Value> {
        let call = admitted.effective_call();
        let owner = introspection::tool_owner(admitted.tool);
        let after = self.hooks.ask_after_tool(call, &owner, content, is_error);
        let HookedResult { mut content, is_changed } = after.await;
        if is_changed {
            content = output::fit_to_limit(content, self.result_limit(call)).await;
        }
        admitted.note_changed_arguments(&mut content);
        content
    }

    /// Announces the call. Returns `None`, without an event, if the call was cancelled before it
    /// began.
    fn announce_call(&self, admitted: &AdmittedCall<'_>) -> Option<AnnouncedCall> {
        if self.cancel.is_cancelled() || matches!(admitted.fate, CallDecision::Drop) {
            return None;
        }
        let call = admitted.effective_call();
        let source = admitted.tool.map_or(HOST, KnownTool::source).to_owned();
        self.emitter.emit(Event::ToolCallStarted {
            call_id: call.id.clone(),
            name: call.name.clone(),
            source: source.clone(),
            arguments: call.arguments.clone(),
            parent: self.origin.and_then(|origin| origin.parent.clone()),
            by: self.origin.map(|origin| origin.plugin.as_str().to_owned()),
        });
        Some(AnnouncedCall { source, at_ms: self.ports.clock.monotonic_ms() })
    }

    fn finish_call(
        &self,
        call: &ToolCall,
        begun: AnnouncedCall,
        content: Map<String, Value>,
        is_error: bool,
    ) {
        self.emitter.emit(Event::ToolCallFinished {
            call_id: call.id.clone(),
            name: call.name.clone(),
            source: begun.source,
            result: content,
            is_error,
            duration_ms: self.ports.clock.monotonic_ms().saturating_sub(begun.at_ms),
        });
    }

    async fn call_outcome(
        &self,
        admitted: &AdmittedCall<'_>,
        source: &str,
    ) -> Result<Output, Error> {
        match &admitted.fate {
            CallDecision::Run(files) => self.execute_call(admitted, files, source).await,
            CallDecision::Refuse(error) => Err(error.clone()),
            CallDecision::Drop => Err(never_began_error()),
        }
    }

    /// Runs the call to its end. A call that takes long continues as a background task if it may.
    async fn execute_call(
        &self,
        admitted: &AdmittedCall<'_>,
        files: &Arc<CallFiles>,
        source: &str,
    ) -> Result<Output, Error> {
        let call = admitted.effective_call();
        let background = match self.toolbox.find_tool(&call.name) {
            // The host answers its own tools here, and plugins answer all others.
            Ok(found) if introspection::is_host_tool(found.tool) => {
                return match call.name.as_str() {
                    VIEW_ENVIRONMENT => self.objects.answer_view_call(call),
                    _ => introspection::answer_discovery_call(&self.toolbox, call),
                };
            }
            Ok(found) => self.may_become_task(found.tool),
            Err(error) => return Err(error),
        };
        self.save_start(admitted).await?;
        let keeps = if background { OutputRetention::Output } else { OutputRetention::Nothing };
        let mut running = self.start_call(
            (call, files),
            source,
            self.cancel.child_token(),
            keeps,
            self.limits.call_deadline_ms,
        );
        if !background {
            return running.finish().await;
        }
        let threshold_ms = self.limits.auto_background_threshold_ms;
        tokio::select! {
            biased;
            outcome = running.finish() => return outcome,
            () = self.ports.clock.sleep(threshold_ms) => {}
        }
        if self.tasks.board().all_running_count() >= self.limits.tasks_max {
            return running.finish().await;
        }
        let number = self.tasks.continue_as_task(running, None, self.task_context(admitted.tool));
        Ok(tasks::task_handle_output(number, (source, call.name.as_str()), threshold_ms))
    }

    /// Waits until the disk has it that a call starts, if the call may change something.
    async fn save_start(&self, admitted: &AdmittedCall<'_>) -> Result<(), Error> {
        let Some(saver) = &self.ports.saver else { return Ok(()) };
        // Another program's claims about its own tool may be wrong.
        let only_reads = |tool: &KnownTool| tool.spec.annotations.read_only && !tool.spec.foreign;
        if admitted.tool.is_some_and(only_reads) {
            return Ok(());
        }
        saver.save_rules(self.rules);
        saver.save_call_start(admitted.effective_call()).await
    }

    /// Starts a call that no turn waits for, after the permission check. Returns its task.
    pub(crate) async fn run_detached(
        &self,
        call: &ToolCall,
        by: &str,
        timeout_ms: Option<u64>,
    ) -> Result<String, Error> {
        let call = &self.fit_arguments(call);
        let admitted = self.admit_single_call(call).await;
        let Some(begun) = self.announce_call(&admitted) else { return Err(never_began_error()) };
        let started = match &admitted.fate {
            CallDecision::Run(files) => match self.save_start(&admitted).await {
                Ok(()) => self.detach_call((&admitted, files), &begun.source, by, timeout_ms),
                Err(error) => Err(error),
            },
            CallDecision::Refuse(error) => Err(error.clone()),
            CallDecision::Drop => Err(never_began_error()),
        };
        let (content, is_error) = match &started {
            Ok(task_id) => (Output::json(json!({ "task_id": task_id })).content, false),
            Err(error) => (error_content(error), true),
        };
        self.finish_call(call, begun, content, is_error);
        started
    }

    fn detach_call(
        &self,
        (admitted, files): (&AdmittedCall<'_>, &Arc<CallFiles>),
        source: &str,
        by: &str,
        timeout_ms: Option<u64>,
    ) -> Result<String, Error> {
        let call = admitted.effective_call();
        if self
            .toolbox
            .find_tool(&call.name)
            .is_ok_and(|found| introspection::is_host_tool(found.tool))
        {
            let text = format!("`{}` returns at once and cannot run as a task", call.name);
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let most = self.limits.tasks_max;
        if self.tasks.board().all_running_count() >= most {
            let text = format!("{most} tasks are already running in this session");
            let error = Error::new(ErrorKind::LimitReached, text).temporary();
            return Err(error.with_hint("wait for one, or cancel it"));
        }
        // The task continues after the call that started it.
        let deadline_ms = timeout_ms.unwrap_or(self.limits.call_deadline_ms);
        let running = self.start_call(
            (call, files),
            source,
            Cancel::new(),
            OutputRetention::Output,
            deadline_ms,
        );
        let number = self.tasks.continue_as_task(
            running,
            Some(by.to_owned()),
            self.task_context(admitted.tool),
        );
        Ok(tasks::task_id(number))
    }

    fn task_context(&self, tool: Option<&KnownTool>) -> BackgroundTaskContext {
        BackgroundTaskContext {
            emitter: self.emitter.clone(),
            hooks: Arc::clone(self.hooks),
            owner: introspection::tool_owner(tool),
            outputs: self.ports.outputs.clone(),
            output_bytes_max: self.limits.output_bytes_max,
        }
    }

    /// A user or a plugin waits for its call to end. A model can continue without the result.
    fn may_become_task(&self, tool: &KnownTool) -> bool {
        tool.spec.auto_background
            && !matches!(self.initiative, CallInitiator::Person | CallInitiator::Plugin)
            && self.limits.auto_background_threshold_ms > 0
    }

    fn start_call(
        &self,
        (call, files): (&ToolCall, &Arc<CallFiles>),
        source: &str,
        stop: Cancel,
        keeps: OutputRetention,
        deadline_ms: u64,
    ) -> RunningToolCall {
        let (emitter, id) = (self.emitter.clone(), call.id.clone());
        let output = match keeps {
            OutputRetention::Output => OutputSink::with_kept_output(emitter, id, source),
            OutputRetention::Nothing => OutputSink::new(emitter, id, source),
        };
        let (sink, outputs) = (output.clone(), self.ports.outputs.clone());
        let show = Box::new(move |text| {
            sink.write(text);
        });
        let bytes_max = self.limits.output_bytes_max;
        let streamed = StreamedOutput::new(call.id.clone(), outputs, show, bytes_max);
        let hold = self
            .origin
            .map_or_else(DeadlineHold::default, |origin| DeadlineHold::nested_in(&origin.hold));
        let scope = CallScope {
            session: self.session.clone(),
            call: call.id.clone(),
            cancel: stop.clone(),
            output: output.clone(),
            streamed: Some(streamed.clone()),
            facts: self.facts.clone(),
            objects: self.objects.clone(),
            depth: self.call_depth(),
            hold: hold.clone(),
            files: Some(Arc::clone(files)),
        };
        let work = self.ports.tools.run_call(call.clone(), scope);
        let work = async move {
            let mut output = work.await?;
            output.content = streamed.finish_into(output.content).await;
            Ok(output)
        };
        RunningToolCall::new(CallStart {
            work: Box::pin(work),
            call: call.clone(),
            source: source.to_owned(),
            stop,
            clock: self.ports.clock.clone(),
            output,
            deadline_ms,
            hold,
        })
    }

    fn result_limit<'b>(&'b self, call: &'b ToolCall) -> output::ResultLimit<'b> {
        output::ResultLimit {
            call: &call.id,
            bytes_max: self.limits.output_bytes_max,
            store: &*self.ports.outputs,
        }
    }
}

impl AdmittedCall<'_> {
    /// Notes in the result if the call ran with other arguments than the model gave.
    fn note_changed_arguments(&self, content: &mut Map<String, Value>) {
        if let (Some(changed), CallDecision::Run(_)) = (&self.changed, &self.fate) {
            note_argument_change(changed, content);
        }
        if let Some(note) = &self.note {
            content.insert("note".to_owned(), note.as_str().into());
        }
    }
}

/// Whether the output of a call is kept.
enum OutputRetention {
    Output,
    Nothing,
}

/// A call that was announced.
struct AnnouncedCall {
    source: String,
    at_ms: u64,
}

fn tool_result(call: &ToolCall, content: Map<String, Value>) -> ToolResult {
    let (call_id, name) = (call.id.clone(), call.name.clone());
    ToolResult::new(call_id, name, content)
}

/// Returns the result of a call that did not run.
pub(crate) fn failed_result(call: &ToolCall, error: &Error) -> ToolResult {
    ToolResult { is_error: true, ..tool_result(call, error_content(error)) }
}

fn never_began_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the user cancelled the turn before this call began")
}
