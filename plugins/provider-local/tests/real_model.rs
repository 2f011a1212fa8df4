//! Tests the real model, if its weights are in the user's cache: it calls the right tool and
//! answers from the result.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;

use crate::support::RecordingSink;
use jaato_plugin_sdk::types::{
    CallId, CompletionRequest, FinishReason, Message, ToolResult, ToolSpec,
};
use jaato_plugin_testkit::skip;
use provider_local::cancel::CancelFlag;
use provider_local::catalog;
use provider_local::local::LocalModel;
use serde_json::{Map, Value, json};

/// Returns the best available weights.
fn weights() -> Option<PathBuf> {
    let folder = directories::BaseDirs::new()?.cache_dir().join("jaato/models");
    catalog::weight_assets()
        .iter()
        .map(|asset| folder.join(&asset.file_name))
        .find(|path| path.exists())
}

fn get_environment() -> ToolSpec {
    let aspects = ["os", "shell", "arch", "cwd", "terminal", "context", "all"];
    serde_json::from_value(json!({
        "name": "get_environment",
        "description": "Get facts about this computer, its terminal and this session.",
        "parameters": {"type": "object", "additionalProperties": false, "properties": {
            "aspect": {"type": "string", "enum": aspects, "description": "which facts"}}},
        "examples": [{"phrase": "Which folder are we in?", "arguments": {"aspect": "cwd"}}],
    }))
    .unwrap()
}

#[test]
fn real_model_calls_get_environment_and_reports_the_system() {
    let Some(path) = weights() else {
        return skip("no weights are in this user's cache; `jaato model pull` fetches them");
    };
    let mut model = LocalModel::load(&path, 4096).unwrap();
    let mut request = CompletionRequest::new(
        String::new(),
        vec![Message::user("What operating system am I running on?")],
    );
    request.tools = vec![get_environment()];
    request.options.max_output_tokens = Some(96);
    let asked =
        model.complete(&request, &CancelFlag::default(), &mut RecordingSink::default()).unwrap();
    assert_eq!(asked.finish_reason, FinishReason::ToolUse, "{:?}", asked.parts);
    let call = asked.parts.last().and_then(|part| part.as_tool_call()).unwrap().clone();
    let aspect = call.arguments.get("aspect").and_then(Value::as_str).unwrap_or("all");
    assert!(call.name.as_str() == "get_environment" && ["os", "all"].contains(&aspect), "{call:?}");

    let content: Map<String, Value> = serde_json::from_value(
        json!({"type": "linux", "name": "Linux", "release": "6.1.0", "friendly_name": "Linux"}),
    )
    .unwrap();
    let result = ToolResult {
        call_id: CallId::new(call.id.as_str()),
        name: call.name,
        content,
        is_error: false,
        ..ToolResult::default()
    };
    request.messages.extend([Message::model(asked.parts), Message::tool([result])]);
    let told =
        model.complete(&request, &CancelFlag::default(), &mut RecordingSink::default()).unwrap();
    assert_eq!(told.finish_reason, FinishReason::Stop, "{:?}", told.parts);
    assert!(told.usage.cached_tokens >= asked.usage.prompt_tokens, "{:?}", told.usage);
    assert!(Message::model(told.parts.clone()).text().contains("Linux"), "{:?}", told.parts);
}
