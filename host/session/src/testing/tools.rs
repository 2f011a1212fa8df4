//! Tools whose behaviour a test defines, and a record of which calls ran at the same time.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::execution::EnvironmentPart;
use jaato_types::hooks::{Preview, PreviewRequest};
use jaato_types::tools_set::ToolSource;
use jaato_types::{
    Annotations, Availability, Condition, ConditionAnswer, ConditionRequest, Error, Offer, Output,
    PluginName, Result, ToolCall, ToolName, ToolSpec,
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::{CallScope, KnownTool, RenewalMoment, ToolRenewal, ToolSet, ToolState, WantedTools};

type ToolBehaviour =
    Arc<dyn Fn(ToolCall, CallScope) -> BoxFuture<'static, Result<Output>> + Send + Sync>;

type ConditionBehaviour = Arc<
    dyn Fn(ConditionRequest, CallScope) -> BoxFuture<'static, Result<ConditionAnswer>>
        + Send
        + Sync,
>;

type PreviewBehaviour =
    Arc<dyn Fn(PreviewRequest) -> BoxFuture<'static, Result<Preview>> + Send + Sync>;

/// A test's tool.
#[derive(Clone)]
pub struct ScriptedTool {
    /// The session's facts about it.
    pub known: KnownTool,
    behaviour: ToolBehaviour,
    condition: Option<ConditionBehaviour>,
    preview: Option<PreviewBehaviour>,
}

/// A call that ran, and the most other calls that ran at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct ConcurrentCallRecord {
    /// The call.
    pub call: ToolCall,
    /// The maximum number of calls at the same time.
    pub beside: usize,
    /// Whether it ran to its own end.
    pub ended: bool,
}

impl ScriptedTool {
    /// Creates a shipped, active, read-only tool that takes any object and does what the closure
    /// does.
    pub fn new<F, B>(name: &str, behaviour: B) -> Self
    where
        F: Future<Output = Result<Output>> + Send + 'static,
        B: Fn(ToolCall, CallScope) -> F + Send + Sync + 'static,
    {
        let spec = ToolSpec {
            name: ToolName::from(name),
            description: format!("{name} of a test"),
            parameters: json!({ "type": "object" }),
            annotations: Annotations {
                read_only: true,
                destructive: false,
                idempotent: true,
                open_world: false,
                parallel_safe: false,
            },
            category: "system".to_owned(),
            availability: Availability::Core,
            auto_approval: false,
            auto_background: false,
            traits: Vec::new(),
            examples: Vec::new(),
            available_if: None,
            run_if: None,
            previews: false,
            foreign: false,
            origin: String::new(),
        };
        let plugin = PluginName::new(format!("tool-{name}"));
        let known = KnownTool::new(spec, plugin, true);
        let behaviour: ToolBehaviour = Arc::new(move |call, scope| behaviour(call, scope).boxed());
        Self { known, behaviour, condition: None, preview: None }
    }

    /// Creates a tool that returns its arguments, under `echo`.
    pub fn echo(name: &str) -> Self {
        Self::new(
            name,
            |call, _| async move { Ok(Output::json(json!({ "echo": call.arguments }))) },
        )
    }

    /// Creates a tool that takes as long as its argument `ms`.
    pub fn sleeping(name: &str) -> Self {
        Self::new(name, |call, _| async move {
            let ms = call.arguments.get("ms").and_then(Value::as_u64).unwrap_or_default();
            tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
            Ok(Output::json(json!({ "slept_ms": ms })))
        })
    }

    /// Makes it a writing tool: neither read-only nor parallel, so that it runs alone and needs
    /// permission.
    #[must_use]
    pub fn writing(mut self) -> Self {
        self.known.spec.annotations = Annotations::default();
        self
    }

    /// Lets it continue as a task if it takes long.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.known.spec.auto_background = true;
        self
    }

    /// Sets its schema.
    #[must_use]
    pub fn with_schema(mut self, parameters: Value) -> Self {
        let KnownTool { spec, plugin, shipped, state, .. } = self.known;
        let spec = ToolSpec { parameters, ..spec };
        self.known = KnownTool::new(spec, plugin, shipped);
        self.known.state = state;
        self
    }

    /// Offers it on a condition.
    #[must_use]
    pub fn available_if(mut self, condition: Condition, reason: &str) -> Self {
        self.known.spec.available_if = Some(Offer { condition, reason: reason.to_owned() });
        self
    }

    /// Lets it run automatically on a condition.
    #[must_use]
    pub fn run_if(mut self, condition: Condition) -> Self {
        self.known.spec.run_if = Some(condition);
        self
    }

    /// Sets its plugin's answer about a condition.
    #[must_use]
    pub fn with_condition_answer<F, B>(mut self, answer: B) -> Self
    where
        F: Future<Output = Result<ConditionAnswer>> + Send + 'static,
        B: Fn(ConditionRequest, CallScope) -> F + Send + Sync + 'static,
    {
        self.condition = Some(Arc::new(move |asked, scope| answer(asked, scope).boxed()));
        self
    }

    /// Sets its plugin's answer about what a call would change.
    #[must_use]
    pub fn with_preview<F, B>(mut self, preview: B) -> Self
    where
        F: Future<Output = Result<Preview>> + Send + 'static,
        B: Fn(PreviewRequest) -> F + Send + Sync + 'static,
    {
        self.known.spec.previews = true;
        self.preview = Some(Arc::new(move |asked| preview(asked).boxed()));
        self
    }

    /// Sets its state.
    #[must_use]
    pub fn with_state(mut self, state: ToolState) -> Self {
        self.known.state = state;
        self
    }
}

/// A test's tools.
#[derive(Default)]
pub struct ScriptedTools {
    tools: Mutex<Vec<ScriptedTool>>,
    renewal: Mutex<ToolRenewal>,
    joining: Mutex<ToolRenewal>,
    missing: Mutex<Option<ToolSource>>,
    awaited: Mutex<Vec<WantedTools>>,
    seats: Arc<Mutex<ConcurrentCallCounter>>,
}

#[derive(Default)]
struct ConcurrentCallCounter {
    all: Vec<ConcurrentCallRecord>,
    /// Indices into `all`.
    running: Vec<usize>,
}

impl ScriptedTools {
    /// Creates a set of these tools, in their order.
    pub fn new(tools: impl IntoIterator<Item = ScriptedTool>) -> Self {
        let tools = Mutex::new(tools.into_iter().collect());
        Self { tools, ..Self::default() }
    }

    /// Replaces the tools, with this notice to the user.
    pub fn replace_tools(&self, tools: impl IntoIterator<Item = ScriptedTool>, notice: &str) {
        *self.lock_tools() = tools.into_iter().collect();
        let renewal = ToolRenewal { tools: Some(self.tools()), notices: vec![notice.to_owned()] };
        *self.renewal.lock() = renewal;
    }

    /// Adds one more tool, which joins with the next step or the next wait.
    pub fn add_tool(&self, tool: ScriptedTool) {
        self.lock_tools().push(tool);
        let renewal = ToolRenewal { tools: Some(self.tools()), notices: Vec::new() };
        *self.joining.lock() = renewal;
    }

    /// Makes waits report a source that failed.
    pub fn add_failed_source(&self, source: ToolSource) {
        *self.missing.lock() = Some(source);
    }

    /// Lists the tools that were waited for, in order.
    pub fn awaited_tools(&self) -> Vec<WantedTools> {
        self.awaited.lock().clone()
    }

    fn lock_tools(&self) -> MutexGuard<'_, Vec<ScriptedTool>> {
        self.tools.lock()
    }

    /// Returns the calls that ran, in the order in which they began.
    pub fn recorded_calls(&self) -> Vec<ConcurrentCallRecord> {
        self.seats.lock().all.clone()
    }
}

fn register_concurrent_call(
    seats: Arc<Mutex<ConcurrentCallCounter>>,
    call: &ToolCall,
    counts: bool,
) -> ConcurrentCallGuard {
    let mut taken = seats.lock();
    let index = taken.all.len();
    taken.all.push(ConcurrentCallRecord { call: call.clone(), beside: 0, ended: false });
    if counts {
        taken.running.push(index);
    }
    let beside = taken.running.len().saturating_sub(1);
    for running in taken.running.clone() {
        let seat = &mut taken.all[running];
        seat.beside = seat.beside.max(beside);
    }
    drop(taken);
    ConcurrentCallGuard { seats, index }
}

/// Frees the seat when the call's future is dropped, at its end or earlier.
struct ConcurrentCallGuard {
    seats: Arc<Mutex<ConcurrentCallCounter>>,
    index: usize,
}

impl ConcurrentCallGuard {
    fn record_end(&self) {
        let mut seats = self.seats.lock();
        seats.all[self.index].ended = true;
    }
}

impl Drop for ConcurrentCallGuard {
    fn drop(&mut self) {
        let mut seats = self.seats.lock();
        seats.running.retain(|running| *running != self.index);
    }
}

impl ToolSet for ScriptedTools {
    fn tools(&self) -> Vec<KnownTool> {
        self.lock_tools().iter().map(|tool| tool.known.clone()).collect()
    }

    fn renew_tools(&self, moment: RenewalMoment) -> BoxFuture<'_, ToolRenewal> {
        let renewal = match moment {
            RenewalMoment::Turn => &self.renewal,
            RenewalMoment::Step => &self.joining,
        };
        async { std::mem::take(&mut *renewal.lock()) }.boxed()
    }

    fn await_tools<'a>(
        &'a self,
        wanted: &'a WantedTools,
        tell: &'a (dyn Fn(String) + Send + Sync),
    ) -> BoxFuture<'a, Vec<ToolSource>> {
        async {
            self.awaited.lock().push(wanted.clone());
            let Some(source) = self.missing.lock().clone() else { return Vec::new() };
            tell(format!("waiting for {}…", source.label));
            vec![source]
        }
        .boxed()
    }

    fn run_call(&self, call: ToolCall, scope: CallScope) -> BoxFuture<'static, Result<Output>> {
        let tool = self.lock_tools().iter().find(|tool| tool.known.spec.name == call.name).cloned();
        let seats = Arc::clone(&self.seats);
        // A task may run alongside everything.
        let counts = !tool.as_ref().is_some_and(|tool| tool.known.spec.auto_background);
        async move {
            let seat = register_concurrent_call(seats, &call, counts);
            let Some(tool) = tool else {
                return Err(Error::failed(format!("the test has no tool `{}`", call.name)));
            };
            let result = (tool.behaviour)(call, scope).await;
            seat.record_end();
            result
        }
        .boxed()
    }

    fn has_environment_part(&self, part: EnvironmentPart) -> bool {
        part == EnvironmentPart::Shell
    }

    fn check_condition(
        &self,
        request: ConditionRequest,
        scope: CallScope,
    ) -> BoxFuture<'static, Result<ConditionAnswer>> {
        let tool = self.lock_tools().iter().find(|it| it.known.spec.name == request.tool).cloned();
        match tool.and_then(|tool| tool.condition) {
            Some(answer) => answer(request, scope),
            None => {
                let text = format!("the test has no condition of `{}`", request.tool);
                async { Err(Error::failed(text)) }.boxed()
            }
        }
    }

    fn preview_call(
        &self,
        request: PreviewRequest,
        _scope: CallScope,
    ) -> BoxFuture<'static, Result<Preview>> {
        let tool = self.lock_tools().iter().find(|it| it.known.spec.name == request.tool).cloned();
        match tool.and_then(|tool| tool.preview) {
            Some(answer) => answer(request),
            None => async { Err(Error::failed("the test has no such preview")) }.boxed(),
        }
    }
}
