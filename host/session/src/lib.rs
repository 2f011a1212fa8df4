//! The turn loop: history and its invariants, prompt, limits, cancellation, events.
//!
//! A [`Session`] owns one conversation. It depends on [`jaato_types`], [`jaato_policy`] and its own
//! traits ([`Provider`], [`ToolSet`], [`Hooks`], [`UserAsker`], [`EventSink`], [`OutputStore`],
//! [`Gc`], [`Media`], [`SessionClock`], [`Ids`], [`Random`]). It does not know dynamic libraries,
//! files, terminals or networks. A host program implements the traits. Tests use the
//! implementations in `testing`.

mod accepted_input;
mod arguments;
mod ask;
mod call_files;
mod calls;
mod cancel;
mod clock;
mod command;
mod completion;
mod conditions;
mod deadline_pause;
mod events;
mod exchange;
mod facts;
mod form_check;
mod gc;
mod history;
mod hooks;
mod ids;
mod inbox;
pub mod introspection;
mod media;
mod objects;
mod origin;
mod output;
mod pace;
mod ports;
mod prompt;
mod prompt_parts;
mod provider;
mod random;
mod report;
mod retry;
mod saver;
mod session;
mod shared_budget;
mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
mod tool_changes;
mod toolbox;
mod tools;
mod turn;
mod usage_caps;

pub use accepted_input::ModelCapabilities;
pub use arguments::ArgumentChecks;
pub use ask::{FormQuestion, SecretAnswer, SecretQuestion, TypedSecret, UserAsker};
pub use call_files::{CallFiles, NamedPaths};
pub use calls::PREVIEW_BYTES_MAX;
pub use cancel::{Cancel, Deadline};
pub use clock::{SessionClock, SystemClock};
pub use command::{CommandCall, SHARED_ANSWERS_MAX};
pub use conditions::{CONDITION_MS_MAX, RUNS_BY_THEMSELVES_MAX};
pub use deadline_pause::{AnswerDeadline, DeadlineHold, DeadlinePause};
pub use events::{EventEmitter, EventSink};
pub use facts::{SharedFacts, estimate_tokens, percent_used};
pub use gc::{
    ContextCounter, ContextPart, ContextUsage, Gc, GcPreview, GcReport, GcUndoResult,
    OVERFLOWS_MAX, PlannedTurn, WINDOW_WAIT_MS, WindowOrigin,
};
pub use history::{COLLECTED_BYTES_MAX, History, HistoryEntry, HistoryError, MessageMark};
pub use hooks::{
    ADDITION_TOKENS_MAX, ADDITIONS_TOKENS_MAX, ARGUMENTS_SHOWN_BYTES_MAX, HOOK_FAILURES_MAX,
    HOOK_OPEN_MS_MAX, HookPlugin, HookPromptAddition, HookScope, Hooks, NoHooks,
    REQUEST_TEXT_TOKENS_MAX,
};
pub use ids::{Ids, RandomIds};
pub use inbox::{Inbox, WAITING_MESSAGES_MAX};
pub use introspection::{GET_TOOL_SCHEMAS, LIST_TOOLS, discovery_tools};
pub use jaato_approval::{
    AnswerStore, CallEnvironment, CallGate, NoAnswer, PermissionAsker, RulesGate, SessionRules,
    SharedRules,
};
pub use jaato_config::{Caps, GcSettings, Limits};
pub use jaato_policy::{Decision, PolicyCall, PolicyMode, RuleOutcome, Rules, WorkspaceTrust};
pub use media::{Media, MediaFacts, NoMedia};
pub use objects::{SharedObjects, VIEW_ENVIRONMENT, host_tools};
pub use origin::{CALL_DEPTH_MAX, CallOrigin};
pub use output::{OutputStore, OutputWriter, StreamedOutput, add_bytes_note, error_content};
pub use ports::SessionPorts;
pub use prompt::{BUILT_IN_PROMPT, PLAN_PROMPT, PromptPart, PromptParts, SystemPrompt};
pub use prompt_parts::UserPrompt;
pub use provider::{DeltaSink, Provider};
pub use random::{Random, SeededRandom};
pub use report::TurnReport;
pub use saver::{
    InterruptedCalls, RecordChange, SavedRecord, SavedRules, SavedState, SessionSaver,
};
pub use session::{
    Agent, AnsweringModel, AskingPlugin, InitialObjects, ModelSetup, PLUGIN_CALLS_MAX, PieceSink,
    PublishedRecord, Session, SessionHandle, SessionSetup, SharedSessionState,
};
pub use shared_budget::SharedBudget;
pub use tasks::{AgentTask, AgentTurn, RunningTask, WakeWaiter};
pub use toolbox::{CallableTool, Toolbox};
pub use tools::{
    CallScope, KnownTool, OutputSink, RenewalMoment, ToolRenewal, ToolSet, ToolState, WantedTools,
};
pub use turn::{
    MARK_CANCELLED, MARK_CAP, MARK_CONTEXT_FULL, MARK_FAILED, MARK_FILTERED, MARK_LIMIT,
    MARK_OUTPUT_LIMIT, MARK_PROCESS_ENDED, MARK_REFUSED,
};
pub use usage_caps::{SessionUsage, SharedUsage, cost_micro_usd};
