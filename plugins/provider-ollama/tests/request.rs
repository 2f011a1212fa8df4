//! Tests written requests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::expect;
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, Message, Part, Role, ToolCall, ToolResult, ToolSpec,
};
use provider_ollama::facts::OllamaModelFacts;
use provider_ollama::request::{RequestBodyInputs, write_request};

fn encode_request(request: &CompletionRequest) -> Value {
    let with = RequestBodyInputs {
        facts: &OllamaModelFacts::default(),
        context_tokens: 4_096,
        keep_alive: "5m",
        blobs: &Default::default(),
    };
    serde_json::from_slice(&write_request(request, &with).unwrap().body).unwrap()
}

fn tool_spec() -> ToolSpec {
    ToolSpec { name: "look".into(), ..ToolSpec::default() }
}

#[test]
fn output_schema_is_enforced_without_tools_and_described_with_tools() {
    let mut request = CompletionRequest::new("m", vec![Message::user("hi")]);
    request.options.output_schema = Some(json!({ "type": "integer" }));
    assert_eq!(encode_request(&request)["format"], json!({ "type": "integer" }));
    request.tools = vec![tool_spec()];
    let words = "Answer with one JSON value that matches this JSON Schema, and nothing else:\n\
                 {\"type\":\"integer\"}";
    for (system, expected) in
        [("", words.to_owned()), ("Be brief.", format!("Be brief.\n\n{words}"))]
    {
        request.system = system.to_owned();
        let body = encode_request(&request);
        assert_eq!((body.get("format"), &body["messages"][0]["content"]), (None, &json!(expected)));
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a whole request")]
fn whole_conversation_is_written_with_its_context_size() {
    let call = ToolCall::new("call-1", "look", json!({ "at": "it" }));
    let content = serde_json::Map::from_iter([("seen".to_owned(), json!(true))]);
    let mut results = Message::tool([ToolResult::new("call-1", "look", content)]);
    results.parts.push(Part::text("And?"));
    let mut request = CompletionRequest::new(
        "m",
        vec![
            Message::user("look"),
            Message::model(vec![
                Part::thought("hm").with_signature("ollama"),
                Part::text("I look."),
                Part::ToolCall(call),
            ]),
            results,
        ],
    );
    request.system = "Be brief.".to_owned();
    request.tools = vec![tool_spec()];
    request.options = serde_json::from_value(json!({
        "max_output_tokens": 7, "temperature": 0.5, "stream": false, "effort": "high",
        "stop": ["END"], "seed": 5,
    }))
    .unwrap();
    expect![[r#"
        {
          "model": "m",
          "stream": false,
          "truncate": false,
          "shift": false,
          "keep_alive": "5m",
          "options": {
            "num_ctx": 4096,
            "num_predict": 7,
            "temperature": 0.5,
            "seed": 5,
            "stop": [
              "END"
            ]
          },
          "think": true,
          "tools": [
            {
              "type": "function",
              "function": {
                "name": "look",
                "description": "",
                "parameters": {
                  "type": "object",
                  "properties": {}
                }
              }
            }
          ],
          "messages": [
            {
              "role": "system",
              "content": "Be brief."
            },
            {
              "role": "user",
              "content": "look"
            },
            {
              "role": "assistant",
              "content": "I look.",
              "thinking": "hm",
              "tool_calls": [
                {
                  "id": "call-1",
                  "function": {
                    "name": "look",
                    "arguments": {
                      "at": "it"
                    }
                  }
                }
              ]
            },
            {
              "role": "tool",
              "content": "{\"seen\":true}",
              "tool_name": "look",
              "tool_call_id": "call-1"
            },
            {
              "role": "user",
              "content": "And?"
            }
          ]
        }"#]]
    .assert_eq(&format!("{:#}", encode_request(&request)));
}

#[test]
fn unset_options_are_left_out() {
    let body = encode_request(&CompletionRequest::new("m", vec![Message::user("hi")]));
    for key in ["think", "format", "tools"] {
        assert_eq!(body.get(key), None, "{key}");
    }
    assert_eq!((&body["options"], &body["stream"]), (&json!({ "num_ctx": 4096 }), &json!(true)));
}

#[test]
fn unknown_role_is_refused() {
    let message = Message { role: Role::Unknown, ..Message::user("hi") };
    let request = CompletionRequest::new("m", vec![message]);
    let with = RequestBodyInputs {
        facts: &OllamaModelFacts::default(),
        context_tokens: 1,
        keep_alive: "",
        blobs: &Default::default(),
    };
    assert_eq!(write_request(&request, &with).unwrap_err().kind, ErrorKind::UnknownOperation);
}
