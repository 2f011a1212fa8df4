//! Runs one admitted call and makes its result. Each call that begins also ends.

use jaato_types::{Error, ErrorKind, Event, Output, ToolCall, ToolResult};
use serde_json::{Map, Value};

use super::{Admitted, CallRunner, CallsDone, Fate};
use crate::events::HOST;
use crate::output::{self, error_content};
use crate::{CallScope, KnownTool, OutputSink, introspection};

impl CallRunner<'_> {
    /// Gives a call its one result.
    pub(super) async fn settle(&self, admitted: Admitted<'_>) -> ToolResult {
        let call = admitted.call;
        let Some(begun) = self.begin(&admitted) else { return failed(call, &never_began()) };
        let (content, is_error) = match self.outcome(admitted, &begun.source).await {
            Ok(output) => (self.content(call, output).await, false),
            Err(error) => (error_content(&error), true),
        };
        let content = output::fit(content, self.fitting(call)).await;
        self.finish(call, begun, content.clone(), is_error);
        ToolResult { is_error, ..result(call, content) }
    }

    /// Runs a call that a person typed; gives the whole output.
    pub(crate) async fn run_for_person(&self, call: &ToolCall) -> Result<Output, Error> {
        let admitted = self.admit(call, &mut CallsDone::default()).await;
        let Some(begun) = self.begin(&admitted) else { return Err(never_began()) };
        let outcome = self.outcome(admitted, &begun.source).await;
        let (content, is_error) = match &outcome {
            Ok(output) => (output.content.clone(), false),
            Err(error) => (error_content(error), true),
        };
        self.finish(call, begun, content, is_error);
        outcome
    }

    /// Announces the call; nothing if it was cancelled before it began: then no event tells of it.
    fn begin(&self, admitted: &Admitted<'_>) -> Option<Begun> {
        let Admitted { call, tool, fate } = admitted;
        if self.cancel.is_cancelled() || matches!(fate, Fate::Drop) {
            return None;
        }
        let source = tool.map_or(HOST, KnownTool::source).to_owned();
        self.emitter.emit(Event::ToolCallStarted {
            call_id: call.id.clone(),
            name: call.name.clone(),
            source: source.clone(),
            arguments: call.arguments.clone(),
        });
        Some(Begun { source, at_ms: self.ports.clock.monotonic_ms() })
    }

    fn finish(&self, call: &ToolCall, begun: Begun, content: Map<String, Value>, is_error: bool) {
        self.emitter.emit(Event::ToolCallFinished {
            call_id: call.id.clone(),
            name: call.name.clone(),
            source: begun.source,
            result: content,
            is_error,
            duration_ms: self.ports.clock.monotonic_ms().saturating_sub(begun.at_ms),
        });
    }

    async fn outcome(&self, admitted: Admitted<'_>, source: &str) -> Result<Output, Error> {
        match admitted.fate {
            Fate::Run => self.execute(admitted.call, source).await,
            Fate::Refuse(error) => Err(error),
            Fate::Drop => Err(never_began()),
        }
    }

    /// Runs the call to its end, its deadline or the cancellation, whichever comes first.
    async fn execute(&self, call: &ToolCall, source: &str) -> Result<Output, Error> {
        let sink = OutputSink::new(self.emitter.clone(), call.id.clone(), source);
        let stop = self.cancel.child();
        let scope = CallScope {
            session: self.session.clone(),
            call: call.id.clone(),
            cancel: stop.clone(),
            output: sink.clone(),
            facts: self.facts.clone(),
        };
        let deadline_ms = self.limits.call_deadline_ms;
        // A call that is done at the moment of the cancellation is done: its effects are there.
        let outcome = tokio::select! {
            biased;
            outcome = self.call(call, scope) => outcome,
            () = self.cancel.cancelled() => Err(interrupted()),
            () = self.ports.clock.sleep(deadline_ms) => Err(too_slow(call, deadline_ms)),
        };
        sink.close();
        stop.cancel();
        outcome
    }

    /// The host's own tools are answered here, all others by their plugins.
    async fn call(&self, call: &ToolCall, scope: CallScope) -> Result<Output, Error> {
        match self.toolbox.find(&call.name) {
            Ok(found) if introspection::is_own(found.tool) => {
                introspection::answer(self.toolbox, call)
            }
            Ok(_) | Err(_) => self.ports.tools.call(call, scope).await,
        }
    }

    /// The output as one JSON object; raw bytes go to a file.
    async fn content(&self, call: &ToolCall, output: Output) -> Map<String, Value> {
        let Output { mut content, bytes } = output;
        if !bytes.is_empty() {
            let kept = output::keep_bytes(&call.id, &bytes, &*self.ports.outputs).await;
            content.insert("bytes".to_owned(), kept);
        }
        content
    }

    fn fitting<'b>(&'b self, call: &'b ToolCall) -> output::Fitting<'b> {
        output::Fitting {
            call: &call.id,
            bytes_max: self.limits.output_bytes_max,
            store: &*self.ports.outputs,
        }
    }
}

/// A call that was announced.
struct Begun {
    source: String,
    at_ms: u64,
}

fn result(call: &ToolCall, content: Map<String, Value>) -> ToolResult {
    ToolResult { call_id: call.id.clone(), name: call.name.clone(), content, is_error: false }
}

/// Makes the result of a call that did not run.
pub(crate) fn failed(call: &ToolCall, error: &Error) -> ToolResult {
    ToolResult { is_error: true, ..result(call, error_content(error)) }
}

fn never_began() -> Error {
    Error::new(ErrorKind::Cancelled, "the user cancelled the turn before this call began")
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, "the user cancelled this call while it ran")
        .with_hint("some of its effects may be there")
}

fn too_slow(call: &ToolCall, deadline_ms: u64) -> Error {
    let text =
        format!("the call of `{}` took longer than {} s", call.name, deadline_ms.div_ceil(1_000));
    Error::new(ErrorKind::Timeout, text).with_hint("some of its effects may be there")
}
