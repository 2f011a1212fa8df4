//! An instance of a plugin on the fake host.

use std::sync::Arc;

use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult};
use jaato_plugin_api::abi::{
    Answer, ContextBox, EnvironmentBox, FactoryBox, GcBox, InstanceBox, ProviderBox, ToolBox,
};
use jaato_types::count::{COUNT_TOKENS, TokenCount};
use jaato_types::large::{LARGE, Large, LargeOf, REQUEST_BYTES_MAX};
use jaato_types::{
    CONDITION, Completion, ConditionAnswer, ConditionRequest, Deciding, Description, Error,
    ErrorKind, Frame, FrameError, GcPlan, GcRequest, ModelInfo, Output, PULL_MODEL, PullModel,
    Pulled, Request, Result, ToolName, fit_arguments,
};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::{Call, Finished, Make, read_answer, read_error};
use super::context::{Context, Owner, Phase, Shared};
use super::wanted::channel;
use crate::schema;

/// An instance of a plugin: its own state, shared by its tools, commands, gc and provider.
///
/// Dropping it closes it without asking for what it would save.
pub struct FakeInstance {
    host: Arc<Shared>,
    description: Arc<Description>,
    context: Arc<Context>,
    objects: Option<Arc<Objects>>,
    calls: Mutex<Vec<(Arc<Context>, u64)>>,
}

/// What crossed. Made, used and dropped on the executor's thread.
struct Objects {
    tools: Option<ToolBox>,
    gc: Option<GcBox>,
    provider: Option<ProviderBox>,
    environment: Option<EnvironmentBox>,
    instance: InstanceBox,
}

impl Objects {
    fn of(instance: InstanceBox) -> Self {
        Self {
            tools: instance.tools().into(),
            gc: instance.gc().into(),
            provider: instance.provider().into(),
            environment: instance.environment().into(),
            instance,
        }
    }
}

impl FakeInstance {
    pub(crate) fn create(
        host: &Arc<Shared>,
        factory: Arc<FactoryBox>,
        description: Arc<Description>,
        saved: Option<Vec<u8>>,
    ) -> Result<Self> {
        let context = Context::new(host, Owner::Instance);
        let (sender, receiver) = channel();
        let lent = Arc::clone(&context);
        let task = async move {
            let saved = saved.map(Into::into).into();
            let created = factory.create(lent.lend(), saved).await;
            let created = match created {
                RResult::ROk(instance) => Ok(Arc::new(Objects::of(instance))),
                RResult::RErr(error) => Err(read_error(&error)),
            };
            sender.send(created);
        };
        let task = host.executor.spawn(Box::pin(task));
        let created = host.executor.receive(&receiver, host.patience()).unwrap_or_else(|hung| {
            host.executor.cancel(task);
            Err(hung)
        });
        let objects = created.inspect_err(|_| context.end())?;
        let calls = Mutex::default();
        Ok(Self { host: Arc::clone(host), description, context, objects: Some(objects), calls })
    }

    /// Calls a tool and returns its output, after checking the arguments against the tool's schema.
    ///
    /// # Errors
    /// `unknown_tool`, `invalid_arguments` from the host, whatever the tool fails with.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Output> {
        self.run(tool, arguments).result
    }

    /// Calls a tool and returns all that came of it.
    pub fn run(&self, tool: &str, arguments: Value) -> Finished<Output> {
        let failed =
            |error| Finished { result: Err(error), deltas: Vec::new(), output: Vec::new() };
        self.start(tool, arguments).map_or_else(failed, Call::wait)
    }

    /// Starts a tool call, after the arguments are fitted to the tool's schema and checked.
    ///
    /// # Errors
    /// `unknown_tool`, `invalid_arguments` from the host.
    pub fn start(&self, tool: &str, arguments: Value) -> Result<Call<Output>> {
        let name = ToolName::from(tool);
        let set = self.host.services.lent(|lent| lent.tools_set()).unwrap_or_default();
        let mut known = self.description.tools.iter().chain(&set.tools);
        let Some(spec) = known.find(|spec| spec.name == name) else {
            let text = format!("there is no tool `{tool}`");
            return Err(Error::new(ErrorKind::UnknownTool, text));
        };
        let arguments = fit_arguments(spec, arguments);
        schema::check_arguments(spec, &arguments)?;
        Ok(self.start_frame(tool, frame(&arguments)?))
    }

    /// Starts a tool call with a frame that nobody has checked, for tests of a plugin's own checks.
    pub fn start_frame(&self, tool: &str, frame: Vec<u8>) -> Call<Output> {
        let (tool, host) = (tool.to_owned(), Arc::clone(&self.host));
        let call = self.start_on(read_output, move |objects, context| match &objects.tools {
            Some(tools) => {
                host.services.runs(context.id(), &tool);
                host.services.takes_attachments(context.id());
                tools.call(tool.as_str().into(), context, frame.into())
            }
            None => no_facet("tools"),
        });
        call.filled_with(|output, beside| {
            output.attachments = beside.attachments;
            output.content.extend(beside.texts);
        })
    }

    /// Asks the provider and waits for the completion.
    pub fn complete(&self, request: &Request) -> Finished<Completion> {
        let failed =
            |error| Finished { result: Err(error), deltas: Vec::new(), output: Vec::new() };
        self.start_complete(request).map_or_else(failed, Call::wait)
    }

    /// Asks the provider; what is larger than a frame in pieces, as the host does.
    ///
    /// # Errors
    /// `limit_reached` when the request is larger than anything that crosses.
    pub fn start_complete(&self, request: &Request) -> Result<Call<Completion>> {
        match Frame::write(request) {
            Err(FrameError::TooLarge { .. }) => self.start_large(LargeOf::Complete, request),
            _ => Ok(self.start_complete_frame(frame(request)?)),
        }
    }

    /// Asks the provider with a frame that nobody has checked.
    pub fn start_complete_frame(&self, frame: Vec<u8>) -> Call<Completion> {
        self.start_on(read_answer, move |objects, context| match &objects.provider {
            Some(provider) => provider.complete(context, frame.into()),
            None => no_facet("provider"),
        })
    }

    /// Lists the provider's models.
    ///
    /// # Errors
    /// What the provider fails with.
    pub fn models(&self) -> Result<Vec<ModelInfo>> {
        let call = self.start_on(read_answer, |objects, context| match &objects.provider {
            Some(provider) => provider.models(context, Frame::empty().into()),
            None => no_facet("provider"),
        });
        call.wait().result
    }

    /// Lets the provider fetch a model, and waits for it.
    pub fn pull_model(&self, model: &str) -> Finished<Pulled> {
        match frame(&PullModel::new(model)) {
            Ok(frame) => self.start_operation(read_answer, PULL_MODEL, frame).wait(),
            Err(error) => Finished { result: Err(error), deltas: Vec::new(), output: Vec::new() },
        }
    }

    /// Lets the provider count the tokens of a request.
    ///
    /// # Errors
    /// What the provider fails with.
    pub fn count_tokens(&self, request: &Request) -> Result<u64> {
        let call = self.start_operation(read_answer::<TokenCount>, COUNT_TOKENS, frame(request)?);
        call.wait().result.map(|counted| counted.tokens)
    }

    /// Asks the execution environment with a frame that nobody has checked; the answer is a frame.
    pub fn environment(&self, operation: &str, frame: Vec<u8>) -> Call<Vec<u8>> {
        let operation = operation.to_owned();
        self.start_on(
            |frame| Ok(frame.to_vec()),
            move |objects, context| match &objects.environment {
                Some(environment) => {
                    environment.call(operation.as_str().into(), context, frame.into())
                }
                None => no_facet("execution environment"),
            },
        )
    }

    /// Asks the gc for a plan.
    ///
    /// # Errors
    /// What the gc fails with.
    pub fn plan(&self, request: &GcRequest) -> Result<GcPlan> {
        let call = match Frame::write(request) {
            Err(FrameError::TooLarge { .. }) => self.start_large(LargeOf::Plan, request)?,
            _ => self.start_plan_frame(frame(request)?),
        };
        call.wait().result
    }

    /// Asks the gc with a frame that nobody has checked.
    pub fn start_plan_frame(&self, frame: Vec<u8>) -> Call<GcPlan> {
        self.start_on(read_answer, move |objects, context| match &objects.gc {
            Some(gc) => gc.plan(context, frame.into()),
            None => no_facet("gc"),
        })
    }

    /// Runs a command.
    ///
    /// # Errors
    /// What the command fails with.
    pub fn command(&self, name: &str, arguments: Value) -> Result<Output> {
        let frame = frame(&json!({ "name": name, "arguments": arguments }))?;
        let (host, name) = (Arc::clone(&self.host), name.to_owned());
        let call = self.start_on(read_output, move |objects, context| {
            host.services.runs(context.id(), &name);
            objects.instance.operation("command".into(), context, frame.into())
        });
        call.wait().result
    }

    /// Asks whether a condition of a tool holds: its `available_if` or `run_if`.
    ///
    /// # Errors
    /// What the tool fails with.
    pub fn condition(&self, tool: &str, deciding: Deciding) -> Result<ConditionAnswer> {
        let frame = frame(&ConditionRequest::new(tool, deciding))?;
        let (host, tool) = (Arc::clone(&self.host), tool.to_owned());
        let call = self.start_on(read_answer, move |objects, context| {
            host.services.runs(context.id(), &tool);
            objects.instance.operation(CONDITION.into(), context, frame.into())
        });
        call.wait().result
    }

    /// Runs an operation by name with a frame that nobody has checked; the answer is a frame.
    pub fn operation(&self, name: &str, frame: Vec<u8>) -> Call<Vec<u8>> {
        self.start_operation(|frame| Ok(frame.to_vec()), name, frame)
    }

    /// Asks for what the next instance is to be given.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn save(&self) -> Result<Option<Value>> {
        self.save_frame()?.map(|frame| read_answer(&frame)).transpose()
    }

    /// Ends the instance as the host does: cancels the calls in flight, saves, closes, ends the
    /// instance's context, drops. Returns what it saved.
    ///
    /// # Errors
    /// What `save` fails with; the instance is closed in any case.
    pub fn close(mut self) -> Result<Option<Value>> {
        self.cancel_calls();
        let saved = self.save();
        self.end();
        saved
    }

    /// Asks the plugin something, in a context that only reads.
    pub(super) fn ask<A: DeserializeOwned>(
        &self,
        operation: &str,
        request: &impl Serialize,
    ) -> Result<A> {
        let (host, frame) = (Arc::clone(&self.host), frame(request)?);
        let operation = operation.to_owned();
        let call = self.start_on(read_answer, move |objects, context| {
            host.services.only_reads(context.id());
            objects.instance.operation(operation.as_str().into(), context, frame.into())
        });
        call.wait().result
    }

    fn start_on<T>(
        &self,
        read: fn(&[u8]) -> Result<T>,
        make: impl FnOnce(&Objects, ContextBox) -> Answer + Send + 'static,
    ) -> Call<T> {
        let objects = self.objects.clone();
        let make: Make = Box::new(move |context| match &objects {
            Some(objects) => make(objects, context),
            None => no_facet("instance"),
        });
        let call = Call::start(&self.host, read, make);
        let mut calls = self.calls.lock();
        calls.retain(|(context, _)| context.phase() != Phase::Ended);
        calls.push(call.parts());
        call
    }

    fn start_large<T: DeserializeOwned>(
        &self,
        of: LargeOf,
        request: &impl Serialize,
    ) -> Result<Call<T>> {
        let bad = |error: String| Error::new(ErrorKind::LimitReached, error);
        let json = serde_json::to_vec(request).map_err(|error| bad(error.to_string()))?;
        if json.len() > REQUEST_BYTES_MAX {
            return Err(bad(format!("a request has at most {REQUEST_BYTES_MAX} bytes")));
        }
        let asked = frame(&Large::new(of, json.len() as u64))?;
        let host = Arc::clone(&self.host);
        Ok(self.start_on(read_answer, move |objects, context| {
            host.services.lends_request(context.id(), json);
            objects.instance.operation(LARGE.into(), context, asked.into())
        }))
    }

    fn start_operation<T>(
        &self,
        read: fn(&[u8]) -> Result<T>,
        name: &str,
        frame: Vec<u8>,
    ) -> Call<T> {
        let name = name.to_owned();
        self.start_on(read, move |objects, context| {
            objects.instance.operation(name.as_str().into(), context, frame.into())
        })
    }

    pub(crate) fn save_frame(&self) -> Result<Option<Vec<u8>>> {
        let Some(objects) = self.objects.clone() else { return Ok(None) };
        let saved = self.on_executor(async move { objects.instance.save().await })?;
        match saved {
            RResult::ROk(ROption::RSome(frame)) => Ok(Some(frame.into())),
            RResult::ROk(ROption::RNone) => Ok(None),
            RResult::RErr(error) => Err(read_error(&error)),
        }
    }

    fn on_executor<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = channel();
        let task = async move {
            sender.send(work.await);
        };
        let task = self.host.executor.spawn(Box::pin(task));
        let received = self.host.executor.receive(&receiver, self.host.patience());
        received.inspect_err(|_| self.host.executor.cancel(task))
    }

    fn cancel_calls(&self) {
        for (context, task) in std::mem::take(&mut *self.calls.lock()) {
            if context.phase() == Phase::Open {
                context.begin_cancel();
                self.host.executor.cancel(task);
            }
        }
    }

    fn end(&mut self) {
        let Some(objects) = self.objects.take() else { return };
        let closing = Arc::clone(&objects);
        let closed = self.on_executor(async move { closing.instance.close().await });
        if let Err(error) = closed {
            self.host.log.write(1, &format!("close: {error}"));
        }
        self.context.end();
        self.host.executor.post(move || drop(objects));
    }
}

impl Drop for FakeInstance {
    fn drop(&mut self) {
        self.cancel_calls();
        self.end();
    }
}

fn no_facet(what: &str) -> Answer {
    use jaato_plugin_api::abi::async_ffi::FutureExt;
    let text = format!("the plugin gives out no {what}");
    let error = super::waiting::error_frame(&Error::new(ErrorKind::UnknownOperation, text));
    std::future::ready(RResult::RErr(error)).into_ffi()
}

fn frame(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>> {
    let bad = |error: FrameError| Error::new(ErrorKind::LimitReached, error.to_string());
    Frame::write(value).map_err(bad)
}

fn read_output(frame: &[u8]) -> Result<Output> {
    let content = read_answer(frame)?;
    let bytes = Frame::parse(frame).map(|frame| frame.bytes.to_vec()).unwrap_or_default();
    Ok(Output { content, bytes, ..Output::default() })
}
