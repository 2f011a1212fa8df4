//! Tests servers' quirks. For a user's own server, the setting selects them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, Part, ToolCall, ToolResult, ToolSpec};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};

/// Returns a conversation with a call, the server's reasoning and many settings.
fn completion_request() -> CompletionRequest {
    let thought = Part::thought("hm").with_signature("reasoning_content");
    let call = Part::ToolCall(ToolCall::new("call_1", "look", json!({})));
    let mut request = CompletionRequest::new(
        "m",
        vec![
            Message::user("go"),
            Message::model(vec![thought, call]),
            Message::tool([ToolResult::new("call_1", "look", Map::new())]),
            Message::model(vec![Part::text("done")]),
            Message::user("thanks"),
        ],
    );
    request.tools = vec![ToolSpec { name: "look".into(), ..ToolSpec::default() }];
    request.options = serde_json::from_value(json!({
        "max_output_tokens": 99,
        "tool_choice": "required",
        "seed": 7,
        "effort": "max",
        "session_key": "s",
    }))
    .unwrap();
    request
}

/// Returns the body of a request to a server with this base URL and dialect.
fn sent_body(base: &str, dialect: &str) -> Value {
    let answer = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": base, "dialect": dialect }))
        .with_http(move |_| Ok(FakeHttpAnswer::status(200).body(answer)));
    assert!(host.complete(&completion_request()).result.is_ok());
    serde_json::from_slice(&host.http_requests()[0].body).unwrap()
}

/// Returns the parts of a request that differ from server to server.
fn dialect_fields(body: &Value) -> Value {
    let mut told = Map::new();
    let names = [
        "max_tokens",
        "max_completion_tokens",
        "tool_choice",
        "seed",
        "random_seed",
        "reasoning_effort",
        "prompt_cache_key",
        "provider",
    ];
    for name in names {
        if let Some(value) = body.get(name) {
            told.insert(name.to_owned(), value.clone());
        }
    }
    let reasoning = [1, 3].map(|at| body["messages"][at]["reasoning_content"].clone());
    told.insert("reasoning".to_owned(), json!(reasoning));
    told.insert("usage".to_owned(), json!(body["stream_options"].is_object()));
    let ids = [&body["messages"][1]["tool_calls"][0]["id"], &body["messages"][2]["tool_call_id"]];
    assert_eq!(ids[0], ids[1]);
    told.insert("id".to_owned(), json!(ids[0].as_str().unwrap().len()));
    Value::Object(told)
}

#[test]
fn each_server_dialect_gets_its_own_request_fields() {
    let common = json!({ "max_tokens": 99, "tool_choice": "required", "seed": 7,
        "reasoning_effort": "high", "reasoning": ["hm", null], "usage": true, "id": 6 });
    // Null removes an entry.
    let with = |changes: Value| {
        let mut other = common.clone();
        for (name, value) in changes.as_object().unwrap() {
            other[name] = value.clone();
        }
        other.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        other
    };
    let completion_tokens = json!({ "max_tokens": null, "max_completion_tokens": 99 });
    for (base, dialect, changes) in [
        (
            "https://openrouter.ai/api/v1",
            "openrouter",
            json!({ "reasoning_effort": "xhigh",
            "provider": { "require_parameters": true } }),
        ),
        ("https://api.groq.com/openai/v1", "groq", json!({ "reasoning": [null, null] })),
        (
            "https://api.mistral.ai/v1",
            "mistral",
            json!({ "tool_choice": "any", "seed": null,
            "random_seed": 7, "reasoning": [null, null], "usage": false, "id": 9 }),
        ),
        (
            "https://api.deepseek.com/v1",
            "deepseek",
            json!({ "seed": null,
            "reasoning": ["hm", ""] }),
        ),
        (
            "https://api.x.ai/v1",
            "xai",
            json!({ "max_tokens": null, "max_completion_tokens": 99,
            "prompt_cache_key": "s" }),
        ),
        ("https://api.together.xyz/v1", "together", json!({})),
        ("https://api.cerebras.ai/v1", "cerebras", completion_tokens),
        ("https://elsewhere.example/v1", "common", json!({})),
    ] {
        let expected = with(changes);
        // The URL's host selects the dialect. For a user's own server, the setting does.
        for (base, said) in [(base, "auto"), ("http://localhost:1/v1", dialect)] {
            assert_eq!(dialect_fields(&sent_body(base, said)), expected, "{dialect} at {base}");
        }
    }
}

#[test]
fn refused_key_hint_names_the_key_variable_of_the_dialect() {
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": "https://api.groq.com/openai/v1", "dialect": "groq" }))
        .with_http(|_| Ok(FakeHttpAnswer::status(401).with_credential()));
    let error = host.complete(&completion_request()).result.unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("check the key in `GROQ_API_KEY`"));
}

#[test]
fn type_lists_are_left_out_after_a_server_refuses_them() {
    let refusal = "Unknown name \"type\": Proto field is not repeating, cannot start list.";
    let refusal = json!([{ "error": { "code": 400, "message": refusal } }]).to_string();
    let answer = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": "https://h/v1beta/openai" }))
        .with_http(move |request| {
            let is_refused = String::from_utf8_lossy(&request.body).contains(r#""type":["#);
            Ok(match is_refused {
                true => FakeHttpAnswer::status(400).body(refusal.clone()),
                false => FakeHttpAnswer::status(200).body(answer),
            })
        });
    let mut request = completion_request();
    request.tools[0].parameters = json!({
        "type": "object", "properties": { "at": { "type": ["string", "null"] } },
    });
    let instance = host.instance().unwrap();
    for requests in [2, 3] {
        assert!(instance.complete(&request).result.is_ok());
        assert_eq!(host.http_requests().len(), requests);
    }
    let body: Value = serde_json::from_slice(&host.http_requests()[2].body).unwrap();
    let at = &body["tools"][0]["function"]["parameters"]["properties"]["at"];
    assert_eq!(at, &json!({ "type": "string" }));
}
