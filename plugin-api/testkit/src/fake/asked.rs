//! What a plugin is asked beside its own calls, as the fake host asks it.

use jaato_types::Result;
use jaato_types::hooks::{
    AfterTool, BeforePrompt, BeforeRequest, BeforeTool, COMPLETE_WORDS, CompleteWords, EventsTold,
    GuardAnswer, Hook, PREVIEW, Preview, PreviewRequest, PromptAddition, RequestChange,
    ResultChange, WordChoices,
};
use jaato_types::tools_set::{AWAIT_TOOLS, ToolsAwaited, ToolsMissing};
use serde_json::{Map, Value};

use super::FakeInstance;

/// Each asks in a context that only reads, as the host does.
impl FakeInstance {
    /// Asks what is to stand before a prompt.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn before_prompt(&self, asked: &BeforePrompt) -> Result<PromptAddition> {
        self.ask(Hook::BeforePrompt.name(), asked)
    }

    /// Asks what becomes of a request.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn before_request(&self, asked: &BeforeRequest) -> Result<RequestChange> {
        self.ask(Hook::BeforeRequest.name(), asked)
    }

    /// Asks what becomes of a tool call.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn before_tool(&self, asked: &BeforeTool) -> Result<GuardAnswer> {
        self.ask(Hook::BeforeTool.name(), asked)
    }

    /// Asks what becomes of a result.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn after_tool(&self, asked: &AfterTool) -> Result<ResultChange> {
        self.ask(Hook::AfterTool.name(), asked)
    }

    /// Tells what happened.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn events(&self, told: &EventsTold) -> Result<()> {
        self.ask::<Map<String, Value>>(Hook::Event.name(), told).map(drop)
    }

    /// Asks what a call of one of its tools would change.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn preview(&self, tool: &str, arguments: Value) -> Result<Preview> {
        self.ask(PREVIEW, &PreviewRequest::new(tool, arguments))
    }

    /// Asks which words may come next behind one of its commands.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn complete_words(&self, asked: &CompleteWords) -> Result<WordChoices> {
        self.ask(COMPLETE_WORDS, asked)
    }

    /// Asks for tools that it has not set yet.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn await_tools(&self, awaited: &ToolsAwaited) -> Result<ToolsMissing> {
        self.ask(AWAIT_TOOLS, awaited)
    }
}
