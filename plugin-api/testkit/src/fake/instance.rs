//! An instance of a plugin on the fake host.

use std::sync::Arc;

use jaato_plugin_engine::{EnginePlugin, Facet, PluginInstance};
use jaato_types::count::{COUNT_TOKENS, TokenCount};
use jaato_types::hooks::Hook;
use jaato_types::large::{LARGE, LargeRequest, LargeRequestKind, REQUEST_BYTES_MAX};
use jaato_types::{
    CONDITION, Completion, CompletionRequest, ConditionAnswer, ConditionDecision, ConditionRequest,
    Description, Error, ErrorKind, Frame, FrameError, GcPlan, GcRequest, ModelInfo, Output,
    PULL_MODEL, PullModel, PullModelAnswer, Result, ToolName, fit_arguments,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::{FakeRunningCall, FinishedCall, read_answer};
use super::context::ContextServices;
use super::host::FakeHostShared;
use super::services::FakeServices;
use crate::schema;

/// An instance of a plugin with its own state, which its tools, commands, gc and provider share.
///
/// Dropping it closes it without saving.
pub struct FakeInstance {
    host: Arc<FakeHostShared>,
    description: Arc<Description>,
    instance: PluginInstance,
}

impl FakeInstance {
    pub(crate) fn create(
        host: &Arc<FakeHostShared>,
        plugin: &EnginePlugin,
        description: Arc<Description>,
        saved: Option<Vec<u8>>,
    ) -> Result<Self> {
        let created = plugin.create(ContextServices::new(host, None), saved);
        let instance = host.wait_for(created)??;
        Ok(Self { host: Arc::clone(host), description, instance })
    }

    /// Calls a tool and returns its output, after checking the arguments against the tool's schema.
    ///
    /// # Errors
    /// `unknown_tool` and `invalid_arguments` from the host, or the tool's error.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Output> {
        self.run(tool, arguments).result
    }

    /// Calls a tool and returns its full result.
    pub fn run(&self, tool: &str, arguments: Value) -> FinishedCall<Output> {
        let failed =
            |error| FinishedCall { result: Err(error), deltas: Vec::new(), output: Vec::new() };
        self.start(tool, arguments).map_or_else(failed, FakeRunningCall::wait)
    }

    /// Starts a tool call, after the arguments are fitted to the tool's schema and checked.
    ///
    /// # Errors
    /// `unknown_tool` and `invalid_arguments` from the host.
    pub fn start(&self, tool: &str, arguments: Value) -> Result<FakeRunningCall<Output>> {
        let name = ToolName::from(tool);
        let set =
            self.host.services.with_session_parts(|lent| lent.tools_set()).unwrap_or_default();
        let mut known = self.description.tools.iter().chain(&set.tools);
        let Some(spec) = known.find(|spec| spec.name == name) else {
            let text = format!("there is no tool `{tool}`");
            return Err(Error::new(ErrorKind::UnknownTool, text));
        };
        let arguments = fit_arguments(spec, arguments);
        schema::check_arguments(spec, &arguments)?;
        Ok(self.start_frame(tool, encode_frame(&arguments)?))
    }

    /// Starts a tool call with an unchecked frame, to test a plugin's own checks.
    pub fn start_frame(&self, tool: &str, frame: Vec<u8>) -> FakeRunningCall<Output> {
        let call = self.start_call(read_output, Facet::Tool, tool, frame, |services, context| {
            services.record_running_tool(context, tool);
            services.record_tool_call(context);
        });
        call.filled_with(|output, beside| {
            output.attachments = beside.attachments;
            output.content.extend(beside.texts);
        })
    }

    /// Requests a completion and waits for it.
    pub fn complete(&self, request: &CompletionRequest) -> FinishedCall<Completion> {
        let failed =
            |error| FinishedCall { result: Err(error), deltas: Vec::new(), output: Vec::new() };
        self.start_complete(request).map_or_else(failed, FakeRunningCall::wait)
    }

    /// Requests a completion. Like the host, sends a request that is larger than a frame in pieces.
    ///
    /// # Errors
    /// `limit_reached` if the request exceeds the largest size.
    pub fn start_complete(
        &self,
        request: &CompletionRequest,
    ) -> Result<FakeRunningCall<Completion>> {
        match Frame::write(request) {
            Err(FrameError::TooLarge { .. }) => {
                self.start_large_call(LargeRequestKind::Complete, request)
            }
            _ => Ok(self.start_complete_frame(encode_frame(request)?)),
        }
    }

    /// Requests a completion with an unchecked frame.
    pub fn start_complete_frame(&self, frame: Vec<u8>) -> FakeRunningCall<Completion> {
        self.start_call(read_answer, Facet::Complete, "", frame, |_, _| {})
    }

    /// Lists the provider's models.
    ///
    /// # Errors
    /// The provider's error.
    pub fn models(&self) -> Result<Vec<ModelInfo>> {
        let call = self.start_call(read_answer, Facet::Models, "", Frame::empty(), |_, _| {});
        call.wait().result
    }

    /// Lets the provider download a model, and waits for it.
    pub fn pull_model(&self, model: &str) -> FinishedCall<PullModelAnswer> {
        match encode_frame(&PullModel::new(model)) {
            Ok(frame) => self.start_operation(read_answer, PULL_MODEL, frame).wait(),
            Err(error) => {
                FinishedCall { result: Err(error), deltas: Vec::new(), output: Vec::new() }
            }
        }
    }

    /// Lets the provider count the tokens of a request.
    ///
    /// # Errors
    /// The provider's error.
    pub fn count_tokens(&self, request: &CompletionRequest) -> Result<u64> {
        let call =
            self.start_operation(read_answer::<TokenCount>, COUNT_TOKENS, encode_frame(request)?);
        call.wait().result.map(|counted| counted.tokens)
    }

    /// Calls an operation of the execution environment with an unchecked frame. Returns a frame.
    pub fn environment(&self, operation: &str, frame: Vec<u8>) -> FakeRunningCall<Vec<u8>> {
        self.start_call(read_frame, Facet::Environment, operation, frame, |_, _| {})
    }

    /// Requests a plan from the gc.
    ///
    /// # Errors
    /// The gc's error.
    pub fn plan(&self, request: &GcRequest) -> Result<GcPlan> {
        let call = match Frame::write(request) {
            Err(FrameError::TooLarge { .. }) => {
                self.start_large_call(LargeRequestKind::Plan, request)?
            }
            _ => self.start_plan_frame(encode_frame(request)?),
        };
        call.wait().result
    }

    /// Requests a plan from the gc with an unchecked frame.
    pub fn start_plan_frame(&self, frame: Vec<u8>) -> FakeRunningCall<GcPlan> {
        self.start_call(read_answer, Facet::Gc, "", frame, |_, _| {})
    }

    /// Runs a command.
    ///
    /// # Errors
    /// The command's error.
    pub fn command(&self, name: &str, arguments: Value) -> Result<Output> {
        let frame = encode_frame(&json!({ "name": name, "arguments": arguments }))?;
        self.start_call_for_tool(read_output, "command", name, frame).wait().result
    }

    /// Checks whether a condition of a tool holds: its `available_if` or `run_if`.
    ///
    /// # Errors
    /// The tool's error.
    pub fn condition(&self, tool: &str, deciding: ConditionDecision) -> Result<ConditionAnswer> {
        let frame = encode_frame(&ConditionRequest::new(tool, deciding))?;
        self.start_call_for_tool(read_answer, CONDITION, tool, frame).wait().result
    }

    /// Runs an operation by name with an unchecked frame. Returns a frame.
    pub fn operation(&self, name: &str, frame: Vec<u8>) -> FakeRunningCall<Vec<u8>> {
        self.start_operation(read_frame, name, frame)
    }

    /// Returns the state to pass to the next instance.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn save(&self) -> Result<Option<Value>> {
        self.save_frame()?.map(|frame| read_answer(&frame)).transpose()
    }

    /// Closes the instance like the host does: cancels the calls in flight, saves, closes, ends the
    /// instance's context, and drops it. Returns the saved state.
    ///
    /// # Errors
    /// The error of `save`, after which the instance is closed all the same.
    pub fn close(self) -> Result<Option<Value>> {
        let saved = self.host.wait_for(self.instance.close())??;
        saved.map(|frame| read_answer(&frame)).transpose()
    }

    /// Calls an operation in a read-only context.
    pub(super) fn ask_operation<A: DeserializeOwned>(
        &self,
        operation: &str,
        request: &impl Serialize,
    ) -> Result<A> {
        let (facet, frame) = (Facet::Operation, encode_frame(request)?);
        let only_reads =
            |services: &FakeServices, context| services.record_read_only_context(context);
        self.start_call(read_answer, facet, operation, frame, only_reads).wait().result
    }

    /// Calls a hook in a context of its own kind.
    pub(super) fn ask_hook<A: DeserializeOwned>(
        &self,
        hook: Hook,
        request: &impl Serialize,
    ) -> Result<A> {
        let (facet, frame) = (Facet::Operation, encode_frame(request)?);
        let in_hook = |services: &FakeServices, context| services.record_hook_context(context);
        self.start_call(read_answer, facet, hook.name(), frame, in_hook).wait().result
    }

    /// Starts a call. `note` registers its context with the services.
    fn start_call<T>(
        &self,
        read: fn(&[u8]) -> Result<T>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        note: impl FnOnce(&FakeServices, u64),
    ) -> FakeRunningCall<T> {
        FakeRunningCall::start(&self.host, read, |context, outlet| {
            if !self.instance.facets().has(facet) {
                let text = format!("the plugin has no {}", facet_name(facet));
                return Err(Error::new(ErrorKind::UnknownOperation, text));
            }
            self.host.services.begin_call(context.number());
            note(&self.host.services, context.number());
            self.instance.call_into(context, facet, name, frame, outlet)
        })
    }

    fn start_large_call<T: DeserializeOwned>(
        &self,
        of: LargeRequestKind,
        request: &impl Serialize,
    ) -> Result<FakeRunningCall<T>> {
        let bad = |error: String| Error::new(ErrorKind::LimitReached, error);
        let json = serde_json::to_vec(request).map_err(|error| bad(error.to_string()))?;
        if json.len() > REQUEST_BYTES_MAX {
            return Err(bad(format!("a request has at most {REQUEST_BYTES_MAX} bytes")));
        }
        let asked = encode_frame(&LargeRequest::new(of, json.len() as u64))?;
        let lend = |services: &FakeServices, context| services.store_request(context, json);
        Ok(self.start_call(read_answer, Facet::Operation, LARGE, asked, lend))
    }

    fn start_operation<T>(
        &self,
        read: fn(&[u8]) -> Result<T>,
        name: &str,
        frame: Vec<u8>,
    ) -> FakeRunningCall<T> {
        self.start_call(read, Facet::Operation, name, frame, |_, _| {})
    }

    /// Starts an operation on behalf of a tool or a command.
    fn start_call_for_tool<T>(
        &self,
        read: fn(&[u8]) -> Result<T>,
        operation: &str,
        tool: &str,
        frame: Vec<u8>,
    ) -> FakeRunningCall<T> {
        let runs = |services: &FakeServices, context| services.record_running_tool(context, tool);
        self.start_call(read, Facet::Operation, operation, frame, runs)
    }

    pub(crate) fn save_frame(&self) -> Result<Option<Vec<u8>>> {
        self.host.wait_for(self.instance.save())?
    }
}

impl Drop for FakeInstance {
    fn drop(&mut self) {
        // Either it was closed before, or it hangs, which is logged.
        if let Err(error) = self.host.wait_for(self.instance.close_unsaved()) {
            self.host.log.write(1, &format!("close: {error}"));
        }
    }
}

fn facet_name(facet: Facet) -> &'static str {
    match facet {
        Facet::Tool => "tools",
        Facet::Gc => "gc",
        Facet::Complete | Facet::Models => "provider",
        Facet::Environment => "execution environment",
        Facet::Operation => "operations",
    }
}

fn read_frame(frame: &[u8]) -> Result<Vec<u8>> {
    Ok(frame.to_vec())
}

fn encode_frame(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>> {
    let bad = |error: FrameError| Error::new(ErrorKind::LimitReached, error.to_string());
    Frame::write(value).map_err(bad)
}

fn read_output(frame: &[u8]) -> Result<Output> {
    let content = read_answer(frame)?;
    let bytes = Frame::parse(frame).map(|frame| frame.bytes.to_vec()).unwrap_or_default();
    Ok(Output { content, bytes, ..Output::default() })
}
