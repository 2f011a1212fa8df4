//! The plugin's side of the boundary: factory, instance and facets over an author's state.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RStr, RVec};
use jaato_plugin_api::abi::async_ffi::{FfiFuture, FutureExt};
use jaato_plugin_api::abi::{
    Answer, ContextBox, EnvironmentAbi, EnvironmentBox, FactoryAbi, GcAbi, GcBox, InstanceAbi,
    InstanceBox, Maybe, ProviderAbi, ProviderBox, ToolAbi, ToolBox,
};
use jaato_types::count::{COUNT_TOKENS, TokenCount};
use jaato_types::hooks::{COMPLETE_WORDS, CompleteWords, Hook, PREVIEW, PreviewRequest};
use jaato_types::large::{LARGE, LargeRequest, LargeRequestKind};
use jaato_types::resources::RESOURCE;
use jaato_types::tools_set::{AWAIT_TOOLS, ToolsAwaited};
use jaato_types::{
    CONDITION, CompletionRequest, ConditionRequest, Error, ErrorKind, Frame, FrameError, GcRequest,
    Output, PULL_MODEL, PullModel, PullModelAnswer, Result, ToolName,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::{Cx, Home};
use crate::definition::Definition;
use crate::environment::AnyEnvironmentHandleTable;
use crate::fence::{FencedDrop, FencedFuture, run_fenced};
use crate::large;
use crate::provider::ProviderEntry;
use crate::resources;
use crate::state::State;
use crate::tool::ToolEntry;

/// The data that all instances of a plugin share.
struct PluginShared<S: State> {
    definition: Definition<S>,
    tools: BTreeMap<ToolName, &'static ToolEntry<S>>,
}

/// Creates instances.
pub(crate) struct StateFactory<S: State>(Arc<PluginShared<S>>);

impl<S: State> StateFactory<S> {
    /// Validates the plugin's definition.
    pub(crate) fn new(definition: Definition<S>) -> Result<Self> {
        let tools = definition.tools_by_name()?;
        Ok(Self(Arc::new(PluginShared { definition, tools })))
    }
}

impl<S: State> FactoryAbi for StateFactory<S> {
    fn create(
        &self,
        context: ContextBox,
        saved: ROption<RVec<u8>>,
    ) -> FfiFuture<RResult<InstanceBox, RVec<u8>>> {
        let shared = Arc::clone(&self.0);
        let create = FencedFuture::new(async move {
            let home = Home::new(context);
            let saved = match saved {
                ROption::RSome(frame) => Frame::read(&frame).map_err(invalid_frame_error)?,
                ROption::RNone => None,
            };
            let state = Arc::new(S::create(&home, saved).await?);
            let entry = shared.definition.environment.as_ref();
            let desk = entry.map(|environment| (environment.desk)(home.clone()));
            Ok(StateInstance { core: InstanceCore { state, shared, desk }, _home: home })
        });
        async move {
            match create.await.and_then(|created| created) {
                Ok(instance) => {
                    let instance = FencedDrop::new(instance);
                    RResult::ROk(InstanceBox::from_value(FencedObject(instance), TD_Opaque))
                }
                Err(error) => RResult::RErr(error_frame(&error)),
            }
        }
        .into_ffi()
    }
}

/// The state, with the data that each facet needs.
struct InstanceCore<S: State> {
    state: Arc<S>,
    shared: Arc<PluginShared<S>>,
    /// The open resources of the execution environment, if there is one.
    desk: Option<AnyEnvironmentHandleTable>,
}

impl<S: State> Clone for InstanceCore<S> {
    fn clone(&self) -> Self {
        let (state, shared) = (Arc::clone(&self.state), Arc::clone(&self.shared));
        Self { state, shared, desk: self.desk.clone() }
    }
}

impl<S: State> InstanceCore<S> {
    fn new_cx(&self, context: ContextBox) -> Cx<S> {
        Cx::new(context, Arc::clone(&self.state))
    }

    fn find_tool(&self, name: &str) -> Result<&'static ToolEntry<S>> {
        self.shared.tools.get(name).copied().ok_or_else(|| {
            Error::new(ErrorKind::UnknownTool, format!("the plugin has no tool `{name}`"))
        })
    }
}

impl<S: State> InstanceCore<S> {
    fn provider_entry(&self) -> Result<&ProviderEntry<S>> {
        self.shared.definition.provider.as_ref().ok_or_else(|| missing_facet_error("provider"))
    }

    async fn complete(&self, cx: &Cx<S>, request: CompletionRequest) -> Result<Vec<u8>> {
        encode_value(&(self.provider_entry()?.complete)(cx, request).await?)
    }

    async fn plan(&self, cx: &Cx<S>, request: GcRequest) -> Result<Vec<u8>> {
        let gc = self.shared.definition.gc.as_ref().ok_or_else(|| missing_facet_error("gc"))?;
        encode_value(&(gc.plan)(cx, request).await?)
    }

    async fn pull_model(&self, cx: &Cx<S>, frame: &[u8]) -> Result<Vec<u8>> {
        let provider = self.shared.definition.provider.as_ref();
        let provider = provider.ok_or_else(|| unknown_operation_error(PULL_MODEL))?;
        let asked: PullModel = Frame::read(frame).map_err(invalid_frame_error)?;
        (provider.pull_model)(cx, asked.model).await?;
        encode_value(&PullModelAnswer::default())
    }

    async fn preview(&self, cx: &Cx<S>, frame: &[u8]) -> Result<Vec<u8>> {
        let asked: PreviewRequest = Frame::read(frame).map_err(invalid_frame_error)?;
        let entry = self.find_tool(asked.tool.as_str())?;
        let arguments = serde_json::to_vec(&asked.arguments)
            .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
        encode_value(&(entry.preview)(cx, &arguments).await?)
    }

    /// Runs a hook that the plugin implements.
    async fn answer_hook(&self, cx: &Cx<S>, name: &str, frame: &[u8]) -> Result<Vec<u8>> {
        let entry = self.shared.definition.hook.as_ref();
        let hook = Hook::from_operation(name);
        match entry.zip(hook).filter(|(entry, hook)| entry.asked.contains(hook)) {
            Some((entry, hook)) => (entry.answer)(cx, hook, frame).await,
            None => Err(unknown_operation_error(name)),
        }
    }

    async fn count_tokens(&self, cx: &Cx<S>, frame: &[u8]) -> Result<Vec<u8>> {
        let provider = self.shared.definition.provider.as_ref();
        let provider = provider.ok_or_else(|| unknown_operation_error(COUNT_TOKENS))?;
        let asked: CompletionRequest = Frame::read(frame).map_err(invalid_frame_error)?;
        let tokens = (provider.count_tokens)(cx, asked).await?;
        encode_value(&TokenCount { tokens, ..TokenCount::default() })
    }

    /// Answers a request that does not fit into a frame.
    async fn answer_large(&self, cx: &Cx<S>, frame: &[u8]) -> Result<Vec<u8>> {
        let asked: LargeRequest = Frame::read(frame).map_err(invalid_frame_error)?;
        match asked.of {
            LargeRequestKind::Complete => {
                self.complete(cx, large::read_large_request(cx, asked.bytes).await?).await
            }
            LargeRequestKind::Plan => {
                self.plan(cx, large::read_large_request(cx, asked.bytes).await?).await
            }
            _ => Err(unknown_operation_error(LARGE)),
        }
    }
}

struct StateInstance<S: State> {
    core: InstanceCore<S>,
    _home: Home,
}

/// An object that crosses the boundary, with a fenced drop. The last one drops the author's state.
struct FencedObject<T>(FencedDrop<T>);

impl<T> FencedObject<T> {
    fn get(&self) -> &T {
        match self.0.get() {
            Some(inner) => inner,
            None => unreachable!("taken only by the drop"),
        }
    }
}

impl<S: State> InstanceAbi for FencedObject<StateInstance<S>> {
    fn tools(&self) -> ROption<ToolBox> {
        let core = &self.get().core;
        let has = !core.shared.tools.is_empty() || core.shared.definition.is_dynamic;
        has.then(|| ToolBox::from_value(FencedObject(FencedDrop::new(core.clone())), TD_Opaque))
            .into()
    }

    fn gc(&self) -> ROption<GcBox> {
        let core = &self.get().core;
        let has = core.shared.definition.gc.is_some();
        has.then(|| GcBox::from_value(FencedObject(FencedDrop::new(core.clone())), TD_Opaque))
            .into()
    }

    fn provider(&self) -> ROption<ProviderBox> {
        let core = &self.get().core;
        let has = core.shared.definition.provider.is_some();
        has.then(|| ProviderBox::from_value(FencedObject(FencedDrop::new(core.clone())), TD_Opaque))
            .into()
    }

    fn environment(&self) -> ROption<EnvironmentBox> {
        let core = &self.get().core;
        let boxed =
            || EnvironmentBox::from_value(FencedObject(FencedDrop::new(core.clone())), TD_Opaque);
        core.desk.is_some().then(boxed).into()
    }

    fn operation(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer {
        let core = self.get().core.clone();
        let name = name.as_str().to_owned();
        fenced_answer(async move {
            let cx = core.new_cx(context);
            match name.as_str() {
                "command" => {
                    let command: CommandInvocation =
                        Frame::read(&frame).map_err(invalid_frame_error)?;
                    encode_output(&S::command(&cx, &command.name, command.arguments).await?)
                }
                CONDITION => {
                    let asked: ConditionRequest =
                        Frame::read(&frame).map_err(invalid_frame_error)?;
                    let entry = core.find_tool(asked.tool.as_str())?;
                    encode_value(&(entry.condition)(&cx, asked.deciding).await?)
                }
                RESOURCE => resources::answer_request(&cx, &frame).await,
                LARGE => core.answer_large(&cx, &frame).await,
                PULL_MODEL => core.pull_model(&cx, &frame).await,
                PREVIEW => core.preview(&cx, &frame).await,
                COMPLETE_WORDS => {
                    let asked: CompleteWords = Frame::read(&frame).map_err(invalid_frame_error)?;
                    encode_value(&S::complete_words(&cx, asked).await?)
                }
                AWAIT_TOOLS => {
                    let awaited: ToolsAwaited = Frame::read(&frame).map_err(invalid_frame_error)?;
                    encode_value(&S::await_tools(&cx, awaited).await?)
                }
                COUNT_TOKENS => core.count_tokens(&cx, &frame).await,
                name => core.answer_hook(&cx, name, &frame).await,
            }
        })
    }

    fn save(&self) -> Maybe {
        let state = Arc::clone(&self.get().core.state);
        let save = FencedFuture::new(async move {
            let saved = state.save().await?;
            saved.map(|value| encode_value(&value)).transpose()
        });
        async move {
            match save.await.and_then(|saved| saved) {
                Ok(saved) => RResult::ROk(saved.map(RVec::from).into()),
                Err(error) => RResult::RErr(error_frame(&error)),
            }
        }
        .into_ffi()
    }

    fn close(&self) -> FfiFuture<()> {
        let state = Arc::clone(&self.get().core.state);
        let close = FencedFuture::new(async move { state.close().await });
        // The panic is already in the log, and the instance ends regardless.
        async move { drop(close.await) }.into_ffi()
    }
}

/// The JSON of the operation `command`.
#[derive(Deserialize)]
struct CommandInvocation {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl<S: State> ToolAbi for FencedObject<InstanceCore<S>> {
    fn call(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer {
        let core = self.get().clone();
        let name = name.as_str().to_owned();
        fenced_answer(async move {
            let cx = core.new_cx(context);
            let output = match core.find_tool(&name) {
                Ok(entry) => {
                    let arguments = Frame::parse(&frame).map_err(invalid_frame_error)?.json;
                    (entry.call)(&cx, arguments).await?
                }
                Err(_) if core.shared.definition.is_dynamic => {
                    let arguments = Frame::read(&frame).map_err(invalid_frame_error)?;
                    S::call_tool(&cx, &name, arguments).await?
                }
                Err(error) => return Err(error),
            };
            for data in &output.attachments {
                cx.attach_data(data).await?;
            }
            encode_output(&output)
        })
    }
}

impl<S: State> GcAbi for FencedObject<InstanceCore<S>> {
    fn plan(&self, context: ContextBox, frame: RVec<u8>) -> Answer {
        let core = self.get().clone();
        fenced_answer(async move {
            let request = Frame::read(&frame).map_err(invalid_frame_error)?;
            core.plan(&core.new_cx(context), request).await
        })
    }
}

impl<S: State> ProviderAbi for FencedObject<InstanceCore<S>> {
    fn complete(&self, context: ContextBox, frame: RVec<u8>) -> Answer {
        let core = self.get().clone();
        fenced_answer(async move {
            let request = Frame::read(&frame).map_err(invalid_frame_error)?;
            core.complete(&core.new_cx(context), request).await
        })
    }

    fn models(&self, context: ContextBox, _frame: RVec<u8>) -> Answer {
        let core = self.get().clone();
        fenced_answer(async move {
            let provider = core.provider_entry()?;
            encode_value(&(provider.models)(&core.new_cx(context)).await?)
        })
    }
}

impl<S: State> EnvironmentAbi for FencedObject<InstanceCore<S>> {
    fn call(&self, operation: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer {
        let core = self.get().clone();
        let operation = operation.as_str().to_owned();
        fenced_answer(async move {
            let (Some(environment), Some(desk)) =
                (&core.shared.definition.environment, core.desk.clone())
            else {
                return Err(missing_facet_error("execution environment"));
            };
            let cx = core.new_cx(context);
            (environment.call)(&cx, &desk, &operation, &frame).await
        })
    }
}

fn fenced_answer(work: impl Future<Output = Result<Vec<u8>>> + Send + 'static) -> Answer {
    let work = FencedFuture::new(work);
    async move {
        match work.await.and_then(|answer| answer) {
            Ok(frame) => RResult::ROk(frame.into()),
            Err(error) => RResult::RErr(error_frame(&error)),
        }
    }
    .into_ffi()
}

fn encode_output(output: &Output) -> Result<Vec<u8>> {
    Frame::write_with_bytes(&output.content, &output.bytes).map_err(invalid_answer_error)
}

/// Writes an answer to a frame.
///
/// # Errors
/// `limit_reached` if the answer is too large for a frame.
pub fn encode_value(value: &impl Serialize) -> Result<Vec<u8>> {
    Frame::write(value).map_err(invalid_answer_error)
}

/// Writes an error to a frame. An error that is too large is replaced by a short one.
pub(crate) fn error_frame(error: &Error) -> RVec<u8> {
    let short = || Frame::write(&Error::new(error.kind, "the plugin's error text is too large"));
    Frame::write(error).or_else(|_| short()).unwrap_or_else(|_| Frame::empty()).into()
}

/// Runs work that produces a frame inside the fence, for plain calls.
pub(crate) fn plain_answer(work: impl FnOnce() -> Result<Vec<u8>>) -> RResult<RVec<u8>, RVec<u8>> {
    match run_fenced(work).and_then(|answer| answer) {
        Ok(frame) => RResult::ROk(frame.into()),
        Err(error) => RResult::RErr(error_frame(&error)),
    }
}

/// Creates the error for a request that cannot be parsed.
pub fn invalid_frame_error(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

/// Creates the error for an answer that cannot be written.
pub fn invalid_answer_error(error: FrameError) -> Error {
    let hint = "stream large output with `output`, or return only a part of it";
    match error {
        FrameError::TooLarge { .. } => {
            Error::new(ErrorKind::LimitReached, error.to_string()).with_hint(hint)
        }
        FrameError::Short { .. } | FrameError::Json(_) => Error::failed(error.to_string()),
    }
}

fn unknown_operation_error(operation: &str) -> Error {
    let text = format!("the plugin does not know the operation `{operation}`");
    Error::new(ErrorKind::UnknownOperation, text)
}

fn missing_facet_error(kind: &str) -> Error {
    Error::new(ErrorKind::UnknownOperation, format!("the plugin has no {kind}"))
}
