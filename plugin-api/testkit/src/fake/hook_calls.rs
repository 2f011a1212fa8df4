//! The hooks and other operations that the fake host calls in a plugin, apart from tool calls.

use jaato_types::Result;
use jaato_types::hooks::{
    AfterTool, BeforePrompt, BeforeRequest, BeforeTool, COMPLETE_WORDS, CompleteWords, EventBatch,
    GuardAnswer, Hook, PREVIEW, Preview, PreviewRequest, PromptAddition, RequestChange,
    ResultChange, WordChoices,
};
use jaato_types::tools_set::{AWAIT_TOOLS, ToolsAwaited, ToolsMissing};
use serde_json::{Map, Value};

use super::FakeInstance;

/// Like in the host, each call runs in a read-only context.
impl FakeInstance {
    /// Calls the hook before a prompt.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn before_prompt(&self, asked: &BeforePrompt) -> Result<PromptAddition> {
        self.ask(Hook::BeforePrompt.name(), asked)
    }

    /// Calls the hook before a request.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn before_request(&self, asked: &BeforeRequest) -> Result<RequestChange> {
        self.ask(Hook::BeforeRequest.name(), asked)
    }

    /// Calls the hook before a tool call.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn before_tool(&self, asked: &BeforeTool) -> Result<GuardAnswer> {
        self.ask(Hook::BeforeTool.name(), asked)
    }

    /// Calls the hook after a tool call.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn after_tool(&self, asked: &AfterTool) -> Result<ResultChange> {
        self.ask(Hook::AfterTool.name(), asked)
    }

    /// Reports events.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn events(&self, told: &EventBatch) -> Result<()> {
        self.ask::<Map<String, Value>>(Hook::Event.name(), told).map(drop)
    }

    /// Returns the preview of the changes that a tool call would make.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn preview(&self, tool: &str, arguments: Value) -> Result<Preview> {
        self.ask(PREVIEW, &PreviewRequest::new(tool, arguments))
    }

    /// Returns the possible next words of a command.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn complete_words(&self, asked: &CompleteWords) -> Result<WordChoices> {
        self.ask(COMPLETE_WORDS, asked)
    }

    /// Requests tools that the plugin has not set yet.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn await_tools(&self, awaited: &ToolsAwaited) -> Result<ToolsMissing> {
        self.ask(AWAIT_TOOLS, awaited)
    }
}
