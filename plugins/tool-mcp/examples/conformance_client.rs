//! The client under test of the protocol's conformance suite, which starts it for each scenario:
//! the address of its server as last argument, what to do in `MCP_CONFORMANCE_SCENARIO`.
//!
//! It is the plugin's own library: the same transport, the same login, without a host. Where a
//! person would be asked, it says yes.

#[path = "../tests/support/agrees.rs"]
mod agrees;
#[path = "../tests/support/hyper_client.rs"]
mod hyper_client;

use std::sync::Arc;
use std::time::Duration;

use agrees::Agrees;
use futures_util::future::{BoxFuture, FutureExt as _};
use hyper_client::HyperClient;
use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::model::{ErrorData, ProgressNotificationParam};
use tool_mcp::call::{Asked, ask_connection};
use tool_mcp::config::{GrantKind, HttpReach, OAuthSettings};
use tool_mcp::library::McpClientManager;
use tool_mcp::oauth::{Login, MemoryTokens};
use tool_mcp::site::CallSite;

/// The suite's own name for what describes a client.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// Longest run of a scenario.
const TIME: Duration = Duration::from_secs(60);
/// The server's name here.
const SERVER: &str = "suite";

/// Answers what a call asks for.
struct Answers;

impl CallSite for Answers {
    fn progress(&self, _progress: &ProgressNotificationParam) {}

    /// Accepts a form with the values that stand in it.
    fn elicit(&self, params: Value) -> BoxFuture<'static, Value> {
        let properties = params["requestedSchema"]["properties"].as_object().cloned();
        let filled = properties.unwrap_or_default().into_iter().filter_map(|(name, schema)| {
            schema.get("default").map(|default| (name, default.clone()))
        });
        let content: Map<String, Value> = filled.collect();
        async move { json!({ "action": "accept", "content": content }) }.boxed()
    }

    fn sample(&self, _params: Value) -> BoxFuture<'static, std::result::Result<Value, ErrorData>> {
        let answer = json!({
            "role": "assistant", "model": "none", "content": { "type": "text", "text": "Yes." },
        });
        async move { Ok(answer) }.boxed()
    }
}

fn main() -> std::process::ExitCode {
    let url = std::env::args().next_back().unwrap_or_default();
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    let context = serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ran = runtime.map_err(|error| Error::failed(error.to_string())).and_then(|runtime| {
        let late = |_| Err(Error::new(ErrorKind::Timeout, "the scenario takes too long"));
        let run = async { tokio::time::timeout(TIME, run(&scenario, &url, &context)).await };
        runtime.block_on(run).unwrap_or_else(late)
    });
    match ran {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{scenario}: {}", error.message);
            std::process::ExitCode::FAILURE
        }
    }
}

/// Connects, and calls each tool once.
async fn run(scenario: &str, url: &str, context: &Value) -> Result<()> {
    let reach =
        HttpReach { url: url.to_owned(), oauth: settings(scenario, context), ..<_>::default() };
    let (backend, consent) = (Arc::new(HyperClient), Arc::new(Agrees::default()));
    let store = Arc::new(MemoryTokens::default());
    let login = Login::new(SERVER, &reach, backend.clone(), store, Some(consent));
    let mut manager = McpClientManager::new()?;
    manager.connect_http(SERVER, &reach, backend, Some(login)).await?;
    for (tool, arguments) in calls(&manager, context) {
        let connection = manager.get_connection(SERVER)?;
        let asked = Asked::Tool { name: tool, arguments };
        let answer = ask_connection(&connection, &asked, TIME, Some(Arc::new(Answers))).await;
        if let Err(error) = answer {
            eprintln!("a call failed: {}", error.message);
        }
    }
    manager.disconnect(SERVER).await
}

/// What an entry would say.
fn settings(scenario: &str, context: &Value) -> OAuthSettings {
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let mut settings = OAuthSettings {
        client_id: text("client_id"),
        client_secret: text("client_secret"),
        private_key: text("private_key_pem"),
        client_metadata_url: Some(CLIENT_DOCUMENT.to_owned()),
        ..OAuthSettings::default()
    };
    if scenario.starts_with("auth/client-credentials-") {
        settings.grant = GrantKind::ClientCredentials;
    }
    settings
}

/// The calls that the suite names, or one of each tool.
fn calls(manager: &McpClientManager, context: &Value) -> Vec<(String, Map<String, Value>)> {
    if let Some(named) = context["toolCalls"].as_array() {
        let call = |call: &Value| {
            let arguments = call["arguments"].as_object().cloned().unwrap_or_default();
            (call["name"].as_str().unwrap_or_default().to_owned(), arguments)
        };
        return named.iter().map(call).collect();
    }
    let tools = manager.all_tools().flat_map(|(_, tools)| tools);
    tools.map(|tool| (tool.name.clone(), arguments(&tool.schema))).collect()
}

/// Something for each argument that must be there.
fn arguments(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("number") => json!(1.0),
        Some("integer") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("test"),
    };
    required.map(|name| (name.to_owned(), value(name))).collect()
}
