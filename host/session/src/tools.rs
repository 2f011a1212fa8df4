//! The tools as a trait, the session's facts about each, and the scope in which a call runs.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_types::execution::EnvironmentPart;
use jaato_types::file_change::FileChange;
use jaato_types::hooks::{PREVIEW, Preview, PreviewRequest};
use jaato_types::tools_set::ToolSource;
use jaato_types::touches;
use jaato_types::work_plan::WorkPlan;
use jaato_types::{
    CallId, ConditionAnswer, ConditionRequest, Delta, Error, ErrorKind, Event, Output, PluginName,
    Result, SessionId, ToolCall, ToolSpec,
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::events::EventEmitter;
use crate::tasks::TaskOutput;
use crate::{CallFiles, Cancel, DeadlineHold, SharedFacts, SharedObjects, StreamedOutput};

/// The tools of a session.
pub trait ToolSet: Send + Sync {
    /// Lists every tool, including disabled ones, in an order that does not change between starts.
    /// Called once, when the session starts.
    fn tools(&self) -> Vec<KnownTool>;

    /// Lists the tools again if they changed. Called before each turn, each command and each step.
    /// The session may drop the future. The next call then returns the same changes.
    fn renew_tools(&self, moment: RenewalMoment) -> BoxFuture<'_, ToolRenewal> {
        let _ = moment;
        Box::pin(std::future::ready(ToolRenewal::default()))
    }

    /// Waits for tools that plugins have not set yet. `tell` takes a line for the user that shows
    /// which tools it waits for. Returns the sources of tools that failed. The session may drop the
    /// future.
    fn await_tools<'a>(
        &'a self,
        wanted: &'a WantedTools,
        tell: &'a (dyn Fn(String) + Send + Sync),
    ) -> BoxFuture<'a, Vec<ToolSource>> {
        let _ = (wanted, tell);
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Runs one call that passed the permission check and whose arguments match the schema. On
    /// cancel and at its deadline the session sets the scope's flag and drops the future without
    /// waiting. The future may outlive the turn, because a call that takes long continues as a
    /// task.
    fn run_call(&self, call: ToolCall, scope: CallScope) -> BoxFuture<'static, Result<Output>>;

    /// Returns true if the session's execution environment has this part. Called before requests.
    /// It opens nothing.
    fn has_environment_part(&self, part: EnvironmentPart) -> bool;

    /// Asks a tool's plugin whether a condition holds that its spec leaves to the plugin. Called
    /// before requests, which wait for it. The session may drop the future.
    fn check_condition(
        &self,
        request: ConditionRequest,
        scope: CallScope,
    ) -> BoxFuture<'static, Result<ConditionAnswer>>;

    /// Asks a tool's plugin what a call would change, if the spec says `previews`. Called before a
    /// permission prompt, which waits for it. The session may drop the future.
    fn preview_call(
        &self,
        request: PreviewRequest,
        scope: CallScope,
    ) -> BoxFuture<'static, Result<Preview>> {
        let _ = (request, scope);
        let text = format!("no tool here answers `{PREVIEW}`");
        Box::pin(std::future::ready(Err(Error::new(ErrorKind::UnknownOperation, text))))
    }
}

/// When the tools are listed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenewalMoment {
    /// Between turns: all changes are taken.
    Turn,
    /// Between steps of a turn: new tools join. Changes and removals wait for the next turn,
    /// because the model knows those tools.
    Step,
}

/// Tools to wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedTools {
    /// The names. A `*` at the end matches any rest. An empty list means all tools.
    pub names: Vec<String>,
}

impl WantedTools {
    /// Waits for all tools, as long as their plugins say.
    pub fn all() -> Self {
        Self::default()
    }

    /// Waits for tools of these names, as long as their plugins say.
    pub fn only_named(names: Vec<String>) -> Self {
        Self { names }
    }
}

/// The changes of the tools since they were last listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolRenewal {
    /// All tools, as [`ToolSet::tools`] lists them. `None` if nothing changed.
    pub tools: Option<Vec<KnownTool>>,
    /// Messages for the user, one line each.
    pub notices: Vec<String>,
}

/// A tool and where it comes from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KnownTool {
    /// The spec as the model and the rules see it. The schema has no declarations of what the tool
    /// touches.
    pub spec: ToolSpec,
    /// The schema with these declarations, if there are any.
    declared: Option<Value>,
    /// The plugin that it comes from.
    pub plugin: PluginName,
    /// Whether the plugin was shipped with the host.
    pub shipped: bool,
    /// Whether it is in requests.
    pub state: ToolState,
}

/// Whether a tool is in requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolState {
    /// In every request.
    Active,
    /// Known to the host. A call to it activates it for the rest of the session.
    Inactive,
    /// Disabled.
    Disabled {
        /// The setting that disables it, and how to change that: ``by `[tools] disabled` in the
        /// configuration``.
        by: String,
    },
}

impl KnownTool {
    /// Creates a tool that is in requests.
    pub fn new(mut spec: ToolSpec, plugin: PluginName, shipped: bool) -> Self {
        let as_written = spec.parameters.clone();
        let declared = touches::strip_use_keyword(&mut spec.parameters).then_some(as_written);
        Self { spec, declared, plugin, shipped, state: ToolState::Active }
    }

    /// Returns the spec as its author wrote it.
    pub(crate) fn into_spec(self) -> ToolSpec {
        let parameters = self.declared.unwrap_or(self.spec.parameters);
        ToolSpec { parameters, ..self.spec }
    }

    /// Returns the schema of the arguments as rules read it.
    pub fn schema(&self) -> &Value {
        self.declared.as_ref().unwrap_or(&self.spec.parameters)
    }

    /// Returns the plugin's name in events: a shipped plugin's name without its kind, or any other
    /// plugin's full name, so that no plugin's lines look like those of jaato or of a plugin of
    /// another kind.
    pub fn source(&self) -> &str {
        if self.shipped { self.plugin.source() } else { self.plugin.as_str() }
    }

    /// Returns true if its calls may run in parallel.
    pub fn is_parallel(&self) -> bool {
        self.spec.annotations.read_only || self.spec.annotations.parallel_safe
    }
}

/// The resources of one call.
#[derive(Clone)]
pub struct CallScope {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// Set when the call must stop.
    pub cancel: Cancel,
    /// Receives live output.
    pub output: OutputSink,
    /// Receives streamed output that may be long. `None` for commands and questions.
    pub streamed: Option<StreamedOutput>,
    /// Model and tokens.
    pub facts: SharedFacts,
    /// The objects that tools have shown to the model.
    pub objects: SharedObjects,
    /// How many plugin calls are above it.
    pub depth: u32,
    /// Pauses its deadline while it waits for the user.
    pub hold: DeadlineHold,
    /// The limits of its file operations. Without them, only the rules that deny access to everyone
    /// apply.
    pub files: Option<Arc<CallFiles>>,
}

/// Shows a running call's output, from any thread. Refuses everything once the call is over.
#[derive(Clone)]
pub struct OutputSink(Arc<OutputSinkInner>);

struct OutputSinkInner {
    emitter: EventEmitter,
    call: CallId,
    source: String,
    open: Mutex<bool>,
    /// Keeps the output for readers of the call as a task.
    kept: Arc<TaskOutput>,
    is_kept: bool,
}

impl OutputSink {
    pub(crate) fn new(emitter: EventEmitter, call: CallId, source: &str) -> Self {
        Self::create(emitter, call, source, false)
    }

    /// Creates the sink of a call that is, or may become, a task. Its output is kept.
    pub(crate) fn with_kept_output(emitter: EventEmitter, call: CallId, source: &str) -> Self {
        Self::create(emitter, call, source, true)
    }

    fn create(emitter: EventEmitter, call: CallId, source: &str, is_kept: bool) -> Self {
        let (source, open, kept) = (source.to_owned(), Mutex::new(true), Arc::default());
        Self(Arc::new(OutputSinkInner { emitter, call, source, open, kept, is_kept }))
    }

    /// Returns its output. Empty if that is not kept.
    pub(crate) fn kept_output(&self) -> Arc<TaskOutput> {
        Arc::clone(&self.0.kept)
    }

    /// Takes a plugin's delta during a call. Returns false once the call is over. Parts of a
    /// model's answer (text, thoughts) count as output here. A tool call is not a valid delta of a
    /// tool.
    pub fn emit_delta(&self, delta: Delta) -> bool {
        match delta {
            Delta::Output { text, .. } | Delta::Text { text, .. } | Delta::Thought { text, .. } => {
                self.write(text)
            }
            Delta::Notice { text, .. } => self.emit_notice(text),
            Delta::Progress { label, done, total, .. } => self.emit_progress(label, done, total),
            Delta::FileChanged(change) => self.emit_file_change(change),
            Delta::PlanChanged(plan) => self.emit_plan_change(plan),
            Delta::ToolCall(_) | Delta::Alive | Delta::Unknown => self.is_open(),
        }
    }

    /// Shows a piece of output. Returns false once the call is over.
    pub fn write(&self, text: impl Into<String>) -> bool {
        let OutputSinkInner { call, source, .. } = &*self.0;
        let (call_id, source, text) = (call.clone(), source.clone(), text.into());
        if self.0.is_kept && self.is_open() {
            self.0.kept.push(&text);
        }
        self.emit(Event::ToolOutput { call_id, source, text })
    }

    /// Reports a changed file. Returns false once the call is over.
    pub fn emit_file_change(&self, change: FileChange) -> bool {
        let OutputSinkInner { call, source, .. } = &*self.0;
        let (call_id, source) = (call.clone(), source.clone());
        self.emit(Event::FileChanged { call_id, source, change })
    }

    /// Reports the model's work plan. Returns false once the call is over.
    pub fn emit_plan_change(&self, plan: WorkPlan) -> bool {
        let OutputSinkInner { call, source, .. } = &*self.0;
        let (call_id, source) = (call.clone(), source.clone());
        self.emit(Event::PlanChanged { call_id, source, plan })
    }

    /// Shows a one-line notice. Returns false once the call is over.
    pub fn emit_notice(&self, text: impl Into<String>) -> bool {
        self.emit(Event::Notice { source: self.0.source.clone(), text: text.into() })
    }

    /// Reports the progress of a long step. Returns false once the call is over.
    pub fn emit_progress(&self, label: impl Into<String>, done: u64, total: u64) -> bool {
        let (source, label) = (self.0.source.clone(), label.into());
        self.emit(Event::Progress { source, label, done, total })
    }

    fn emit(&self, event: Event) -> bool {
        let open = self.0.open.lock();
        if *open {
            // Held while the event is sent, so that no event can follow the call's end.
            self.0.emitter.emit(event);
        }
        *open
    }

    fn is_open(&self) -> bool {
        *self.0.open.lock()
    }

    pub(crate) fn close(&self) {
        *self.0.open.lock() = false;
    }
}
