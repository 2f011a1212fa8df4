//! Tests the settings that are sent, model by model.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, ToolSpec};
use provider_anthropic::request::write_request;

fn completion_request(model: &str, options: Value) -> CompletionRequest {
    let mut request = CompletionRequest::new(model, vec![Message::user("hi")]);
    request.options = serde_json::from_value(options).unwrap();
    request.tools = vec![ToolSpec { name: "run".into(), ..ToolSpec::default() }];
    request
}

/// Returns the body except model, tools and messages, and the beta headers that it needs.
fn sent_settings(model: &str, options: Value) -> String {
    match write_request(&completion_request(model, options), &Default::default()) {
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Configuration);
            format!("! {}", error.message)
        }
        Ok(written) => {
            let mut body: Value = serde_json::from_slice(&written.body).unwrap();
            let fields = body.as_object_mut().unwrap();
            fields.retain(|name, _| !["model", "tools", "messages"].contains(&name.as_str()));
            format!("{body} {}", written.betas.join(",")).trim_end().to_owned()
        }
    }
}

/// Checks what each of these models gets, one per line.
#[track_caller]
fn check_settings(models: &[&str], options: Value, expected: Expect) {
    let lines: Vec<_> = models
        .iter()
        .map(|model| format!("{model} {}", sent_settings(model, options.clone())))
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

const MODELS: [&str; 9] = [
    "claude-3-5-haiku-latest",
    "claude-haiku-4-5",
    "claude-opus-4-6",
    "claude-opus-4-8",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-opus-5-5",
    "kimi-k2",
];

#[test]
fn default_options_follow_each_model() {
    check_settings(
        &MODELS,
        json!({}),
        expect![[r#"
            claude-3-5-haiku-latest {"max_tokens":8192,"stream":true}
            claude-haiku-4-5 {"max_tokens":64000,"stream":true}
            claude-opus-4-6 {"max_tokens":64000,"stream":true}
            claude-opus-4-8 {"max_tokens":64000,"stream":true}
            claude-sonnet-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized"},"stream":true}
            claude-sonnet-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"stream":true} thinking-binding-controls-2026-08-01
            claude-haiku-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"stream":true} thinking-binding-controls-2026-08-01
            claude-opus-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"stream":true} thinking-binding-controls-2026-08-01
            kimi-k2 {"max_tokens":8192,"stream":true}"#]],
    );
}

#[test]
fn effort_none_reduces_thinking_to_the_models_minimum() {
    check_settings(
        &MODELS[1..],
        json!({ "effort": "none" }),
        expect![[r#"
            claude-haiku-4-5 {"max_tokens":64000,"stream":true}
            claude-opus-4-6 {"max_tokens":64000,"stream":true}
            claude-opus-4-8 {"max_tokens":64000,"stream":true}
            claude-sonnet-5 {"max_tokens":64000,"thinking":{"type":"disabled"},"stream":true}
            claude-sonnet-5-5 {"max_tokens":64000,"thinking":{"type":"between_tools"},"stream":true}
            claude-haiku-5-5 {"max_tokens":64000,"thinking":{"type":"disabled"},"stream":true}
            claude-opus-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"low"},"stream":true} thinking-binding-controls-2026-08-01
            kimi-k2 {"max_tokens":8192,"stream":true}"#]],
    );
}

#[test]
fn effort_is_a_word_or_a_budget() {
    check_settings(
        &MODELS,
        json!({ "effort": "high" }),
        expect![[r#"
            claude-3-5-haiku-latest ! the model `claude-3-5-haiku-latest` does not accept the option `effort`
            claude-haiku-4-5 {"max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":20000},"stream":true} interleaved-thinking-2025-05-14
            claude-opus-4-6 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},"stream":true}
            claude-opus-4-8 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},"stream":true}
            claude-sonnet-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},"stream":true}
            claude-sonnet-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"high"},"stream":true} thinking-binding-controls-2026-08-01
            claude-haiku-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"high"},"stream":true} thinking-binding-controls-2026-08-01
            claude-opus-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"high"},"stream":true} thinking-binding-controls-2026-08-01
            kimi-k2 {"max_tokens":8192,"thinking":{"type":"enabled","budget_tokens":6144},"stream":true}"#]],
    );
    check_settings(
        &["claude-haiku-4-5", "claude-opus-5-5"],
        json!({ "effort": "max", "max_output_tokens": 8000 }),
        expect![[r#"
            claude-haiku-4-5 {"max_tokens":8000,"thinking":{"type":"enabled","budget_tokens":6000},"stream":true} interleaved-thinking-2025-05-14
            claude-opus-5-5 {"max_tokens":8000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"max"},"stream":true} thinking-binding-controls-2026-08-01"#]],
    );
    // A budget that does not fit is left out.
    check_settings(
        &["claude-haiku-4-5"],
        json!({ "effort": "minimal", "max_output_tokens": 1365 }),
        expect![[
            r#"claude-haiku-4-5 {"max_tokens":1365,"thinking":{"type":"enabled","budget_tokens":1024},"stream":true} interleaved-thinking-2025-05-14"#
        ]],
    );
    check_settings(
        &["claude-haiku-4-5"],
        json!({ "effort": "minimal", "max_output_tokens": 1364 }),
        expect![[r#"claude-haiku-4-5 {"max_tokens":1364,"stream":true}"#]],
    );
}

#[test]
fn temperature_is_sent_only_to_supporting_models() {
    check_settings(
        &MODELS,
        json!({ "temperature": 0.5 }),
        expect![[r#"
            claude-3-5-haiku-latest {"max_tokens":8192,"temperature":0.5,"stream":true}
            claude-haiku-4-5 {"max_tokens":64000,"temperature":0.5,"stream":true}
            claude-opus-4-6 {"max_tokens":64000,"temperature":0.5,"stream":true}
            claude-opus-4-8 ! the model `claude-opus-4-8` does not accept the option `temperature`
            claude-sonnet-5 ! the model `claude-sonnet-5` does not accept the option `temperature`
            claude-sonnet-5-5 ! the model `claude-sonnet-5-5` does not accept the option `temperature`
            claude-haiku-5-5 ! the model `claude-haiku-5-5` does not accept the option `temperature`
            claude-opus-5-5 ! the model `claude-opus-5-5` does not accept the option `temperature`
            kimi-k2 {"max_tokens":8192,"temperature":0.5,"stream":true}"#]],
    );
    // The default temperature is the same for all models.
    check_settings(
        &["claude-opus-5-5", "claude-haiku-4-5"],
        json!({ "temperature": 1.0 }),
        expect![[r#"
            claude-opus-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"stream":true} thinking-binding-controls-2026-08-01
            claude-haiku-4-5 {"max_tokens":64000,"stream":true}"#]],
    );
    check_settings(
        &["claude-opus-4-6"],
        json!({ "temperature": 0, "effort": "low" }),
        expect![
            "claude-opus-4-6 ! the model `claude-opus-4-6` does not accept the option `temperature` while it thinks"
        ],
    );
}

#[test]
fn required_tool_choice_is_sent_only_to_supporting_models() {
    check_settings(
        &MODELS,
        json!({ "tool_choice": "required" }),
        expect![[r#"
            claude-3-5-haiku-latest {"max_tokens":8192,"tool_choice":{"type":"any"},"stream":true}
            claude-haiku-4-5 {"max_tokens":64000,"tool_choice":{"type":"any"},"stream":true}
            claude-opus-4-6 {"max_tokens":64000,"tool_choice":{"type":"any"},"stream":true}
            claude-opus-4-8 {"max_tokens":64000,"tool_choice":{"type":"any"},"stream":true}
            claude-sonnet-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized"},"tool_choice":{"type":"any"},"stream":true}
            claude-sonnet-5-5 ! the model `claude-sonnet-5-5` does not accept the option `tool_choice = "required"`
            claude-haiku-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"tool_choice":{"type":"any"},"stream":true} thinking-binding-controls-2026-08-01
            claude-opus-5-5 ! the model `claude-opus-5-5` does not accept the option `tool_choice = "required"`
            kimi-k2 {"max_tokens":8192,"tool_choice":{"type":"any"},"stream":true}"#]],
    );
    check_settings(
        &["claude-haiku-4-5", "claude-opus-4-6"],
        json!({ "tool_choice": "required", "effort": "high" }),
        expect![[r#"
            claude-haiku-4-5 ! the model `claude-haiku-4-5` does not accept the option `tool_choice = "required"` while it thinks
            claude-opus-4-6 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},"tool_choice":{"type":"any"},"stream":true}"#]],
    );
    check_settings(
        &["claude-opus-5-5"],
        json!({ "tool_choice": "none" }),
        expect![[
            r#"claude-opus-5-5 {"max_tokens":64000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"tool_choice":{"type":"none"},"stream":true} thinking-binding-controls-2026-08-01"#
        ]],
    );
}

#[test]
fn tool_choice_without_tools_is_left_out() {
    let mut request = completion_request("claude-haiku-4-5", json!({ "tool_choice": "auto" }));
    request.tools = Vec::new();
    let body = write_request(&request, &Default::default()).unwrap().body;
    assert!(!String::from_utf8(body).unwrap().contains("tool_choice"));
}

#[test]
fn output_schema_stop_and_token_limit_options_are_sent() {
    let schema =
        json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1 } } });
    check_settings(
        &["claude-opus-5-5"],
        json!({ "output_schema": schema, "effort": "low", "stop": ["END", ""], "stream": false }),
        expect![[
            r#"claude-opus-5-5 {"max_tokens":21333,"stop_sequences":["END"],"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer","description":"{\"minimum\":1}"}},"additionalProperties":false}}},"stream":false} thinking-binding-controls-2026-08-01"#
        ]],
    );
    check_settings(
        &["claude-haiku-4-5"],
        json!({ "stop": ["\n\n"] }),
        expect!["claude-haiku-4-5 ! the server does not accept a stop sequence of only whitespace"],
    );
    // A larger value is reduced to the model's limit. The limit of other vendors' models is
    // unknown.
    check_settings(
        &["claude-opus-4-1", "claude-opus-5-5", "kimi-k2"],
        json!({ "max_output_tokens": 1_000_000 }),
        expect![[r#"
            claude-opus-4-1 {"max_tokens":32000,"stream":true}
            claude-opus-5-5 {"max_tokens":128000,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"stream":true} thinking-binding-controls-2026-08-01
            kimi-k2 {"max_tokens":1000000,"stream":true}"#]],
    );
}
