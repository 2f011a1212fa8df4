//! The hooks and other operations that the fake host calls in a plugin, apart from tool calls.

use jaato_types::Result;
use jaato_types::hooks::{
    AfterTool, BeforeGc, BeforeGcAnswer, BeforePrompt, BeforeRequest, BeforeTool, COMPLETE_WORDS,
    CompleteWords, EventBatch, GuardAnswer, Hook, PREVIEW, Preview, PreviewRequest, PromptAddition,
    RequestChange, ResultChange, SessionEnd, SessionStart, SessionText, TurnEnd, TurnEndAnswer,
    WordChoices,
};
use jaato_types::tools_set::{AWAIT_TOOLS, ToolsAwaited, ToolsMissing};
use serde_json::{Map, Value};

use super::FakeInstance;

/// As in the host, each call runs in a read-only context, and hooks run programs and ask models
/// with a grant.
impl FakeInstance {
    /// Calls the hook before a prompt.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn before_prompt(&self, asked: &BeforePrompt) -> Result<PromptAddition> {
        self.ask_hook(Hook::BeforePrompt, asked)
    }

    /// Calls the hook before a request.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn before_request(&self, asked: &BeforeRequest) -> Result<RequestChange> {
        self.ask_hook(Hook::BeforeRequest, asked)
    }

    /// Calls the hook before a tool call.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn before_tool(&self, asked: &BeforeTool) -> Result<GuardAnswer> {
        self.ask_hook(Hook::BeforeTool, asked)
    }

    /// Calls the hook after a tool call.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn after_tool(&self, asked: &AfterTool) -> Result<ResultChange> {
        self.ask_hook(Hook::AfterTool, asked)
    }

    /// Calls the hook at the start of a session.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn session_start(&self, asked: &SessionStart) -> Result<SessionText> {
        self.ask_hook(Hook::SessionStart, asked)
    }

    /// Calls the hook at the end of a turn.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn turn_end(&self, asked: &TurnEnd) -> Result<TurnEndAnswer> {
        self.ask_hook(Hook::TurnEnd, asked)
    }

    /// Calls the hook before a gc.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn before_gc(&self, asked: &BeforeGc) -> Result<BeforeGcAnswer> {
        self.ask_hook(Hook::BeforeGc, asked)
    }

    /// Calls the hook at the end of a session.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn session_end(&self, asked: &SessionEnd) -> Result<()> {
        self.ask_hook::<Map<String, Value>>(Hook::SessionEnd, asked).map(drop)
    }

    /// Reports events.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn events(&self, told: &EventBatch) -> Result<()> {
        self.ask_hook::<Map<String, Value>>(Hook::Event, told).map(drop)
    }

    /// Returns the preview of the changes that a tool call would make.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn preview(&self, tool: &str, arguments: Value) -> Result<Preview> {
        self.ask_operation(PREVIEW, &PreviewRequest::new(tool, arguments))
    }

    /// Returns the possible next words of a command.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn complete_words(&self, asked: &CompleteWords) -> Result<WordChoices> {
        self.ask_operation(COMPLETE_WORDS, asked)
    }

    /// Requests tools that the plugin has not set yet.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn await_tools(&self, awaited: &ToolsAwaited) -> Result<ToolsMissing> {
        self.ask_operation(AWAIT_TOOLS, awaited)
    }
}
