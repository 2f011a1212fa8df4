//! Tests that the fake of Anthropic's API refuses what the vendor refuses, and models its cache.

use jaato_vendors::anthropic::{AnthropicAnswerPiece, AnthropicTurn, FakeAnthropic};
use jaato_vendors::{VendorAnswer, VendorRequest};
use serde_json::{Value, json};

const BETAS: &str = "inline-tools-2026-09-15,thinking-binding-controls-2026-08-01";

fn vendor_request(body: &Value) -> VendorRequest {
    let headers = [
        ("x-api-key", "key"),
        ("anthropic-version", "2023-06-01"),
        ("content-type", "application/json"),
        ("anthropic-beta", BETAS),
    ];
    VendorRequest {
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        body: body.to_string().into_bytes(),
    }
}

fn body_of(answered: &VendorAnswer) -> Value {
    serde_json::from_slice(&answered.body).unwrap()
}

/// Returns a valid request.
fn valid_request() -> Value {
    json!({
        "model": "claude-opus-5-5",
        "max_tokens": 1_000,
        "system": [{ "type": "text", "text": "Be brief." }],
        "tools": [{ "name": "look", "input_schema": { "type": "object" } }],
        "messages": [
            { "role": "user", "content": "go" },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "a", "name": "look", "input": {} },
                { "type": "tool_use", "id": "b", "name": "look", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "b", "content": "2" },
                { "type": "tool_result", "tool_use_id": "a", "content": [
                    { "type": "image", "source":
                        { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                ] },
                { "type": "text", "text": "And?" },
            ] },
        ],
    })
}

/// Returns the error for a body, or `None` if it is accepted.
fn refusal_text(body: &Value) -> Option<String> {
    let answered = FakeAnthropic::new([AnthropicTurn::text("a")]).answer(&vendor_request(body));
    (answered.status != 200).then(|| {
        let body = body_of(&answered);
        format!("{} {}", answered.status, body["error"]["message"].as_str().unwrap())
    })
}

/// Checks that a single change to a valid body is refused with this message.
#[track_caller]
fn check_refusal(path: &str, value: Value, expected: &str) {
    let mut body = valid_request();
    let (parent, key) = path.rsplit_once('/').unwrap();
    match body.pointer_mut(parent).unwrap() {
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        parent => parent[key] = value,
    }
    let said = refusal_text(&body).unwrap_or_else(|| "taken".to_owned());
    assert!(said.contains(expected), "{path}: {said}");
}

#[test]
fn valid_request_is_answered() {
    assert_eq!(refusal_text(&valid_request()), None);
    let answered = FakeAnthropic::new([AnthropicTurn::text("hello")])
        .answer(&vendor_request(&valid_request()));
    let body = body_of(&answered);
    assert_eq!(body["content"], json!([{ "type": "text", "text": "hello" }]));
    assert_eq!((&body["stop_reason"], &body["type"]), (&json!("end_turn"), &json!("message")));
}

#[test]
fn unsupported_settings_are_refused() {
    check_refusal("/moon", json!(1), "400 moon: Extra inputs are not permitted");
    check_refusal("/model", json!("claude-moon"), "404 model: claude-moon");
    check_refusal("/max_tokens", json!(0), "max_tokens");
    check_refusal("/max_tokens", json!(128_001), "128001 > 128000");
    check_refusal("/temperature", json!(0.5), "`temperature` is deprecated");
    check_refusal("/thinking", json!({ "type": "disabled" }), "thinking.type");
    check_refusal(
        "/thinking",
        json!({ "type": "enabled", "budget_tokens": 2_000 }),
        "thinking.type",
    );
    check_refusal("/tool_choice", json!({ "type": "any" }), "not supported for this model");
    check_refusal("/stop_sequences", json!(["\n"]), "non-whitespace");
    check_refusal("/output_config", json!({ "effort": "minimal" }), "output_config.effort");
    let format = json!({ "type": "json_schema", "schema": { "type": "object" } });
    check_refusal("/output_config", json!({ "format": format }), "additionalProperties");
    check_refusal("/system", json!(" "), "system");
    check_refusal("/system/0/text", json!(""), "non-whitespace");
    check_refusal(
        "/tools/-",
        json!({ "name": "look", "input_schema": { "type": "object" } }),
        "unique",
    );
    check_refusal("/tools/0/name", json!("a.b"), "pattern");
    check_refusal("/tools/0/input_schema", json!({}), "input_schema.type");
    let schema = |key: &str, value: Value| json!({ "type": "object", key: value });
    check_refusal("/tools/0/input_schema", schema("anyOf", json!([{}])), "at the top level");
    let odd = json!({ "a": { "properties": { "$b": {} } } });
    check_refusal("/tools/0/input_schema", schema("properties", odd), "Property keys should match");
    let old = json!({ "a": { "exclusiveMinimum": true } });
    check_refusal("/tools/0/input_schema", schema("properties", old), "draft 2020-12");
}

#[test]
fn misplaced_messages_and_blocks_are_refused() {
    check_refusal("/messages", json!([]), "at least one message");
    check_refusal("/messages/0/role", json!("assistant"), "first message must use");
    check_refusal("/messages/0/role", json!("tool"), "role");
    check_refusal("/messages/0/content", json!(""), "non-empty");
    check_refusal("/messages/0/content", json!([]), "non-empty content");
    check_refusal(
        "/messages/0/content",
        json!([{ "type": "thinking", "thinking": "" }]),
        "Input tag",
    );
    check_refusal("/messages/1/content/1/id", json!("a|b"), "pattern");
    check_refusal("/messages/1/content/1/input", json!("x"), "not valid");
    check_refusal("/messages/1/content/2/id", json!("a"), "ids must be unique");
    check_refusal("/messages/2/content/0/tool_use_id", json!("c"), "unexpected `tool_use_id`");
    check_refusal(
        "/messages/2/content/0",
        json!({ "type": "text", "text": "x" }),
        "without `tool_result`",
    );
    check_refusal("/messages/2/content", json!("x"), "without `tool_result` blocks");
    check_refusal("/messages/2/content/1/content/0/source/data", json!("AAA"), "base64");
    check_refusal(
        "/messages/2/content/1/content/0/source/media_type",
        json!("image/bmp"),
        "media_type",
    );
    check_refusal("/messages/-", json!({ "role": "assistant", "content": "x" }), "prefill");
    check_refusal("/messages/-", json!({ "role": "system", "content": [] }), "non-empty content");
    let unknown = json!({ "type": "tool_reference", "name": "moon" });
    let removal = json!([{ "type": "tool_removal", "tool": unknown }]);
    check_refusal("/messages/-", json!({ "role": "system", "content": removal }), "not declared");
    let mut early = valid_request();
    early["messages"]
        .as_array_mut()
        .unwrap()
        .insert(1, json!({ "role": "system", "content": "x" }));
    assert_eq!(refusal_text(&early), None, "after the user and before the model");
    early["messages"].as_array_mut().unwrap().swap(1, 2);
    assert!(refusal_text(&early).is_some(), "after the model");
}

#[test]
fn forged_thoughts_and_thoughts_in_last_place_are_refused() {
    let forged = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    check_refusal("/messages/1/content/0", forged.clone(), "Invalid `signature`");
    check_refusal("/messages/1/content/-", forged, "cannot be `thinking`");
}

#[test]
fn step_must_begin_with_a_thought_if_thinking_is_enabled() {
    let of = |thinking: Value, first: Option<Value>| {
        let mut body = valid_request();
        body["model"] = json!("claude-haiku-4-5");
        body["max_tokens"] = json!(4_000);
        body["thinking"] = thinking;
        if let Some(first) = first {
            body["messages"][1]["content"].as_array_mut().unwrap().insert(0, first);
        }
        refusal_text(&body).unwrap_or_default()
    };
    let on = || json!({ "type": "enabled", "budget_tokens": 2_000 });
    let off = || json!({ "type": "disabled" });
    let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
    assert!(
        of(on(), None).contains("a final `assistant` message must start with a thinking block")
    );
    assert_eq!(of(off(), None), "");
    assert!(of(off(), Some(thought)).contains("When thinking is disabled"));
}

#[test]
fn cache_marks_are_limited_to_four_and_must_be_ephemeral() {
    let mark = json!({ "type": "ephemeral" });
    let mut body = valid_request();
    for path in ["/tools/0", "/system/0", "/messages/1/content/0", "/messages/2/content/2"] {
        body.pointer_mut(path).unwrap()["cache_control"] = mark.clone();
    }
    assert_eq!(refusal_text(&body), None);
    body["cache_control"] = mark;
    assert!(refusal_text(&body).unwrap().contains("maximum of 4 blocks"));
    check_refusal("/messages/2/content/2/cache_control", json!({ "type": "eternal" }), "ephemeral");
}

#[test]
fn headers_must_name_one_credential_and_a_known_version() {
    // Replaces the header at this position. An empty name removes it.
    let answer = |at: usize, name: &str, value: &str| {
        let mut asked = vendor_request(&valid_request());
        asked.headers[at] = (name.to_owned(), value.to_owned());
        asked.headers.retain(|(name, _)| !name.is_empty());
        FakeAnthropic::new([AnthropicTurn::text("a")]).answer(&asked).status
    };
    assert_eq!(answer(0, "x-api-key", "key"), 200);
    assert_eq!(answer(0, "", ""), 401);
    assert_eq!(answer(0, "authorization", "Bearer t"), 200);
    assert_eq!(answer(0, "authorization", "t"), 401);
    assert_eq!(answer(3, "authorization", "Bearer t"), 401, "both");
    assert_eq!(answer(1, "anthropic-version", "2024-01-01"), 400);
    assert_eq!(answer(1, "", ""), 400);
    assert_eq!(answer(2, "content-type", "text/plain"), 400);
    assert_eq!(answer(3, "anthropic-beta", "moon-2026-01-01"), 400);
}

#[test]
fn newer_api_version_refuses_sampling_settings() {
    let answer = |name: &str| {
        let mut body = valid_request();
        body[name] = json!(1);
        let mut asked = vendor_request(&body);
        asked.headers[1].1 = "2026-10-21".to_owned();
        body_of(&FakeAnthropic::new([AnthropicTurn::text("a")]).answer(&asked)).to_string()
    };
    for name in ["temperature", "top_p", "top_k"] {
        let said = answer(name);
        assert!(said.contains(&format!("{name}: Extra inputs are not permitted")), "{said}");
    }
    assert!(answer("max_tokens").contains("end_turn"));
}

/// Checks a thought with the same and with other content before it.
#[test]
fn thought_is_valid_only_after_the_same_prefix() {
    let vendor = FakeAnthropic::new([
        AnthropicTurn::with_pieces([
            AnthropicAnswerPiece::Thought("hm".to_owned()),
            AnthropicAnswerPiece::Text("so".to_owned()),
        ]),
        AnthropicTurn::text("b"),
        AnthropicTurn::text("c"),
    ]);
    let mut body = valid_request();
    let mut first = body_of(&vendor.answer(&vendor_request(&body)));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": first["content"].take() }));
    messages.push(json!({ "role": "user", "content": "more" }));
    assert_eq!(vendor.answer(&vendor_request(&body)).status, 200);
    // A mark changes nothing, but another word does.
    body["system"][0]["cache_control"] = json!({ "type": "ephemeral" });
    body["system"][0]["text"] = json!("Be long.");
    let refused = body_of(&vendor.answer(&vendor_request(&body)));
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.starts_with("messages.3.content.0: Invalid `signature`"), "{said}");
    assert!(said.contains("bound to a different conversation"), "{said}");
    body["thinking"] = json!({ "type": "adaptive",
        "block_binding": { "prefix_mismatch_behavior": "drop_block" } });
    let dropped = body_of(&vendor.answer(&vendor_request(&body)));
    assert_eq!(dropped["input_transformations"][0]["reason"], "prefix_binding_mismatch");
    let mut without = vendor_request(&body);
    without.headers.pop();
    assert_eq!(vendor.answer(&without).status, 400, "without its header");
}

#[test]
fn cache_has_a_minimum_size_and_looks_back_twenty_blocks() {
    let words = |tokens: usize| "x".repeat(tokens * 4);
    let ask = |vendor: &FakeAnthropic, blocks: &[usize], marks: &[usize]| {
        let block = |(at, tokens): (usize, &usize)| {
            let mut block = json!({ "type": "text", "text": words(*tokens) });
            if marks.contains(&at) {
                block["cache_control"] = json!({ "type": "ephemeral" });
            }
            block
        };
        let content: Vec<Value> = blocks.iter().enumerate().map(block).collect();
        let messages = json!([{ "role": "user", "content": content }]);
        let body = json!({ "model": "claude-opus-5-5", "max_tokens": 9, "messages": messages });
        let usage = body_of(&vendor.answer(&vendor_request(&body)))["usage"].take();
        let count = |key: &str| usage[key].as_u64().unwrap();
        (count("cache_read_input_tokens"), count("cache_creation_input_tokens"))
    };
    let vendor = || FakeAnthropic::new((0..4).map(|_| AnthropicTurn::text("a")));
    // The prompt is too small, so nothing is written.
    let small = vendor();
    assert_eq!(ask(&small, &[490], &[0]), (0, 0));
    assert_eq!(ask(&small, &[490], &[0]), (0, 0));
    let fits = vendor();
    let (_, written) = ask(&fits, &[600], &[0]);
    assert!(written >= 512);
    assert_eq!(ask(&fits, &[600], &[0]), (written, 0));
    // Nothing is written without a mark.
    assert_eq!(ask(&fits, &[601], &[]), (0, 0));
    assert_eq!(ask(&fits, &[601], &[0]).0, 0);
    for (behind, is_found) in [(19, true), (20, false)] {
        let vendor = vendor();
        let (_, written) = ask(&vendor, &[600], &[0]);
        let blocks: Vec<usize> = [600].into_iter().chain((0..behind).map(|_| 1)).collect();
        let (read, _) = ask(&vendor, &blocks, &[behind]);
        assert_eq!(read, if is_found { written } else { 0 }, "{behind} blocks behind");
    }
}
