//! A conversation between a plugin and a fake vendor, request by request.

use std::sync::Arc;

use jaato_types::service::BLOB_GET;
use jaato_types::{
    Completion, CompletionRequest, Delta, Error, Message, OpaqueData, Part, ToolCall, ToolResult,
    ToolSpec,
};
use serde_json::{Map, Value, json};

use super::{VendorAnswer, VendorRequest, anthropic, github, google, ollama, openai};
use jaato_plugin_testkit::{
    FakeHost, FakeHttpAnswer, FakeHttpRequest, FakeServiceReply, FakeStream, Module,
};

/// A strict fake of a vendor.
pub trait FakeVendor: Send + Sync {
    /// Answers a request.
    fn answer(&self, asked: &VendorRequest) -> VendorAnswer;

    /// Answers the request of a plugin on a fake host.
    fn answer_plugin(&self, request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error>;

    /// Returns the bodies of the accepted requests.
    fn accepted_requests(&self) -> Vec<Value>;
}

macro_rules! vendors {
    ($($vendor:ty),*) => {$(
        impl FakeVendor for $vendor {
            fn answer(&self, asked: &VendorRequest) -> VendorAnswer {
                self.answer(asked)
            }

            fn answer_plugin(&self, request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error> {
                self.answer_plugin(request)
            }

            fn accepted_requests(&self) -> Vec<Value> {
                self.accepted_requests()
            }
        }
    )*};
}

vendors!(
    anthropic::FakeAnthropic,
    google::FakeGoogle,
    ollama::FakeOllama,
    openai::FakeOpenAi,
    github::FakeGitHub
);

/// A conversation with a model.
pub struct ModelConversation<V> {
    /// The next request.
    pub request: CompletionRequest,
    /// The fake vendor.
    pub vendor: Arc<V>,
    /// The host of the plugin. Each blob is an image of three bytes.
    pub host: FakeHost,
}

impl<V: FakeVendor + 'static> ModelConversation<V> {
    /// Starts a conversation between a plugin with these settings and a vendor.
    pub fn new(module: Module, config: Value, vendor: V, model: &str) -> Self {
        let vendor = Arc::new(vendor);
        let answering = Arc::clone(&vendor);
        let host = FakeHost::new(module)
            .with_config(config)
            .with_http(move |request| answering.answer_plugin(request))
            .with_service(BLOB_GET, |_| {
                let head = json!({ "mime_type": "image/png", "bytes": 3 });
                Ok(FakeServiceReply::StreamWith(head, FakeStream::from_pieces([vec![1, 2, 3]])))
            });
        let mut request = CompletionRequest::new(model, Vec::new());
        request.system = "Be brief.".to_owned();
        Self { request, vendor, host }
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(mut self, name: &str, parameters: Value) -> Self {
        self.request.tools = vec![tool_spec(name, parameters)];
        self
    }

    /// Sends a message, and adds the model's answer to the history.
    ///
    /// # Panics
    /// Panics if the provider returns an error.
    #[track_caller]
    pub fn ask(&mut self, message: Message) -> Completion {
        self.request.messages.push(message);
        let completion = self.send().unwrap_or_else(|error| panic!("{error}"));
        self.request.messages.push(Message::model(completion.parts.clone()));
        completion
    }

    /// Sends the current request.
    pub fn send(&self) -> Result<Completion, Error> {
        self.host.complete(&self.request).result
    }

    /// Answers all calls of a completion.
    #[track_caller]
    pub fn answer(&mut self, completion: &Completion) -> Completion {
        self.ask(Message::tool(sample_tool_results(completion)))
    }
}

/// Returns the definition of a tool.
pub fn tool_spec(name: &str, parameters: Value) -> ToolSpec {
    let description = "Looks.".to_owned();
    ToolSpec { name: name.into(), description, parameters, ..ToolSpec::default() }
}

/// Returns a result for each call of a completion.
pub fn sample_tool_results(completion: &Completion) -> Vec<ToolResult> {
    let calls = completion.parts.iter().filter_map(Part::as_tool_call);
    let content = Map::from_iter([("seen".to_owned(), json!(true))]);
    calls.map(|call| ToolResult::new(call.id.clone(), call.name.clone(), content.clone())).collect()
}

/// Joins the text, the thoughts and the call ids in deltas, independent of their pieces.
pub fn joined_deltas(deltas: &[Delta]) -> (String, String, Vec<String>) {
    let (mut text, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text { text: piece, .. } => text.push_str(piece),
            Delta::Thought { text: piece, .. } => thought.push_str(piece),
            Delta::ToolCall(call) => calls.push(call.id.to_string()),
            _ => {}
        }
    }
    (text, thought, calls)
}

/// Returns a history from another provider's model, with many unusual parts.
pub fn unusual_history() -> Vec<Message> {
    let call = |id: &str, arguments: Value| Part::ToolCall(ToolCall::new(id, "run.it", arguments));
    let opaque = OpaqueData {
        provider: "of-another".to_owned(),
        model: "moon-1".to_owned(),
        item: json!({ "type": "reasoning", "encrypted_content": "…" }),
        ..OpaqueData::default()
    };
    let long = "fc_".repeat(150);
    let results = ["call_1|fc_2", "call_1|fc_1", &long];
    vec![
        Message::user("go"),
        Message::model(vec![
            Part::thought("unsigned"),
            Part::Opaque(opaque),
            Part::text(""),
            call("call_1|fc_1", json!("{\"x\": tru")),
            call("call_1|fc_2", json!(null)),
            call(&long, json!({})),
        ]),
        Message::tool(results.map(|id| ToolResult::new(id, "run.it", Map::new()))),
        Message::model(vec![Part::thought("only this")]),
        Message::user(" \n"),
        Message::model(vec![Part::text("done ")]),
    ]
}
