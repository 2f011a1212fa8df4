//! Tests that the fakes of OpenAI's protocols and of GitHub Models refuse what the vendors refuse.

use jaato_vendors::github::{FakeGitHub, GitHubRequestHandling};
use jaato_vendors::openai::{FakeOpenAi, OpenAiAnswerPiece, OpenAiTurn, StreamErrorPlacement};
use jaato_vendors::{VendorAnswer, VendorRequest};
use serde_json::{Value, json};

fn vendor_request(path: &str, body: &Value) -> VendorRequest {
    let headers = [("authorization", "Bearer key"), ("content-type", "application/json")];
    VendorRequest {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        body: body.to_string().into_bytes(),
    }
}

fn body_of(answered: &VendorAnswer) -> Value {
    serde_json::from_slice(&answered.body).unwrap()
}

/// Returns a valid request of Responses.
fn responses_request() -> Value {
    json!({
        "model": "gpt-5.2", "stream": false, "store": false,
        "include": ["reasoning.encrypted_content"],
        "reasoning": { "effort": "low", "summary": "auto" },
        "max_output_tokens": 16, "tool_choice": "auto", "prompt_cache_key": "s",
        "text": { "format": { "type": "json_schema", "name": "answer", "strict": false,
            "schema": { "type": "object" } } },
        "tools": [{ "type": "function", "name": "look", "description": "Looks.", "strict": false,
            "parameters": { "type": "object", "properties": { "at": {} } } }],
        "input": [
            { "type": "message", "role": "developer", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "input_text", "text": "go" },
                { "type": "input_image", "image_url": "data:image/png;base64,AA==" },
                { "type": "input_file", "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,AA==" }] },
            { "type": "message", "role": "assistant", "phase": "commentary",
                "content": [{ "type": "output_text", "text": "I look." }] },
            { "type": "function_call", "call_id": "a", "name": "look", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a", "output": "{}" },
        ],
    })
}

/// Returns a valid request of chat completions.
fn chat_request() -> Value {
    json!({
        "model": "o4-mini", "max_completion_tokens": 16, "reasoning_effort": "low",
        "tools": [{ "type": "function", "function": { "name": "look", "description": "Looks.",
            "parameters": { "type": "object" } } }],
        "messages": [
            { "role": "developer", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "go" }] },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function",
                    "function": { "name": "look", "arguments": "{}" } } ] },
            { "role": "tool", "tool_call_id": "a", "content": "{}" },
        ],
    })
}

/// Checks that each change to a body is refused with its message, and that the body is valid.
#[track_caller]
fn check_refusal(path: &str, good: &Value, changes: &[(&str, Value, &str)]) {
    let answer =
        |body: &Value| FakeOpenAi::new([OpenAiTurn::text("a")]).answer(&vendor_request(path, body));
    assert_eq!(answer(good).status, 200, "{}", body_of(&answer(good)));
    for (place, value, words) in changes {
        let mut body = good.clone();
        let (object, key) = place.rsplit_once('/').unwrap();
        let object = body.pointer_mut(object).unwrap_or_else(|| panic!("{place}"));
        match (object, key.parse::<usize>()) {
            (Value::Array(list), Ok(at)) => list[at] = value.clone(),
            (object, _) => object[key] = value.clone(),
        }
        let answered = answer(&body);
        let said = body_of(&answered)["error"]["message"].to_string();
        assert!(answered.status >= 400 && said.contains(words), "{place}: {said}");
    }
}

#[test]
fn invalid_responses_requests_are_refused() {
    let not_found = "not found. Items are not persisted";
    let of = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
    let (list, old) = (of(json!({ "type": "array" })), of(json!({ "minLength": "1" })));
    check_refusal(
        "/v1/responses",
        &responses_request(),
        &[
            ("/stop", json!(["a"]), "Unknown parameter: 'stop'"),
            ("/seed", json!(7), "Unknown parameter: 'seed'"),
            ("/store", json!(true), "store"),
            ("/model", json!("gpt-9"), "does not exist"),
            ("/model", json!("gpt-4o"), "Encrypted content is not supported"),
            ("/temperature", json!(0.5), "'temperature' is not supported"),
            ("/reasoning/effort", json!("minimal"), "'minimal' is not supported"),
            ("/max_output_tokens", json!(15), ">= 16"),
            ("/prompt_cache_key", json!("x".repeat(65)), "string too long"),
            ("/tools/0/strict", json!(null), "additionalProperties"),
            ("/tools/0/function", json!({}), "Unknown parameter: 'tools[0].function'"),
            ("/tools/0/name", json!("a.b"), "does not match pattern"),
            ("/tools/0/parameters", json!({ "type": "object", "oneOf": [] }), "at the top level"),
            ("/tools/0/parameters", list, "array schema missing items"),
            ("/tools/0/parameters", old, "not valid under"),
            ("/text/format/strict", json!(true), "additionalProperties"),
            ("/input", json!([]), "must be provided"),
            ("/input/2/id", json!("msg_1"), not_found),
            ("/input/2/status", json!(null), "got null"),
            ("/input/1/phase", json!("commentary"), "Unknown parameter: 'input[1].phase'"),
            ("/input/2/content/0/type", json!("input_text"), "Invalid value: 'input_text'"),
            ("/input/1/content/0/type", json!("text"), "Invalid value: 'text'"),
            ("/input/3/call_id", json!("x".repeat(65)), "string too long"),
            ("/input/3/call_id", json!("b"), "No tool call found"),
            ("/input/4", json!({ "role": "user", "content": "x" }), "No tool output found"),
            (
                "/input/2",
                json!({ "type": "reasoning", "summary": [], "encrypted_content": "x" }),
                "could not be verified",
            ),
            (
                "/input/2",
                json!({ "type": "reasoning", "summary": [], "status": "completed" }),
                "Unknown parameter: 'input[2].status'",
            ),
            ("/input/2", json!({ "type": "smell" }), "Invalid value: 'smell'"),
        ],
    );
}

#[test]
fn invalid_chat_completions_requests_are_refused() {
    let user = json!({ "role": "user", "content": "x" });
    check_refusal(
        "/v1/chat/completions",
        &chat_request(),
        &[
            ("/max_tokens", json!(16), "'max_tokens' is not supported"),
            ("/stop", json!(["a"]), "'stop' is not supported"),
            ("/input", json!([]), "Unknown parameter: 'input'"),
            ("/model", json!("gpt-5.3-codex"), "only supported in v1/responses"),
            ("/model", json!("gpt-4o"), "'reasoning_effort' is not supported"),
            ("/stream_options", json!({ "include_usage": true }), "only allowed when"),
            ("/tools/0/name", json!("a"), "Unknown parameter: 'tools[0].name'"),
            ("/messages/2/reasoning_content", json!("hm"), "Unknown parameter"),
            ("/messages/1/content", json!(null), "got null"),
            ("/messages/1/content/0/type", json!("input_text"), "Invalid value"),
            ("/messages/2/tool_calls/0/id", json!("x".repeat(41)), "string too long"),
            ("/messages/2/tool_calls/0/function/name", json!("a b"), "does not match pattern"),
            ("/messages/3", user.clone(), "must be followed by tool messages"),
            ("/messages/2", user, "must be a response to a preceding message"),
        ],
    );
}

#[test]
fn reasoning_is_accepted_only_from_its_model_before_its_answer() {
    let said =
        [OpenAiAnswerPiece::Reasoning("hm".to_owned()), OpenAiAnswerPiece::Text("so".to_owned())];
    let turn = || OpenAiTurn::with_pieces(said.clone());
    let vendor = FakeOpenAi::new([turn(), turn(), turn()]);
    let first = body_of(&vendor.answer(&vendor_request("/v1/responses", &responses_request())));
    let mut reasoning = first["output"][0].clone();
    reasoning.as_object_mut().unwrap().remove("id");
    let with = |model: &str, items: &[Value]| {
        let mut body = responses_request();
        body["model"] = json!(model);
        body["input"].as_array_mut().unwrap().extend(items.iter().cloned());
        vendor.answer(&vendor_request("/v1/responses", &body)).status
    };
    let answer = json!({ "role": "assistant", "content": "so" });
    let user = json!({ "role": "user", "content": "x" });
    assert_eq!(with("gpt-5.2", &[reasoning.clone(), answer.clone(), user.clone()]), 200);
    assert_eq!(with("gpt-5.2", &[reasoning.clone(), user]), 400);
    assert_eq!(with("o4-mini", &[reasoning, answer]), 400);
}

#[test]
fn stream_sends_the_events_of_each_item_in_order() {
    let mut body = responses_request();
    body["stream"] = json!(true);
    let text = |turn: OpenAiTurn| {
        let answered = FakeOpenAi::new([turn]).answer(&vendor_request("/v1/responses", &body));
        String::from_utf8(answered.body).unwrap()
    };
    let kinds = |text: &str| {
        let names = text.lines().filter_map(|line| line.strip_prefix("event: "));
        names.map(|name| name.trim_start_matches("response.").to_owned()).collect::<Vec<_>>()
    };
    let stream = text(OpenAiTurn::text("hello"));
    assert_eq!(
        kinds(&stream),
        [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed"
        ]
    );
    let failing = OpenAiTurn::text("hello").cut_after(2).with_stream_error(
        "server_error",
        "No",
        StreamErrorPlacement::Flat,
    );
    assert_eq!(kinds(&text(failing)), ["created", "in_progress", "error"]);
}

#[test]
fn request_without_a_key_is_refused() {
    let mut without = vendor_request("/v1/responses", &responses_request());
    without.headers.remove(0);
    assert_eq!(FakeOpenAi::new([]).answer(&without).status, 401);
    let azure =
        FakeOpenAi::new([OpenAiTurn::text("a")]).with_azure_deployment("gpt-5.2", "gpt-5.2");
    let mut asked = vendor_request("/openai/v1/responses?api-version=v1", &responses_request());
    asked.headers[0].0 = "api-key".to_owned();
    assert_eq!(azure.answer(&asked).status, 200);
}

#[test]
fn github_requires_its_headers_and_paths() {
    let mut body = chat_request();
    body["model"] = json!("openai/o4-mini");
    let mut good = vendor_request("/orgs/moon/inference/chat/completions", &body);
    let own = [("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")];
    good.headers.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let status = |asked: &VendorRequest, way: GitHubRequestHandling| {
        FakeGitHub::new([OpenAiTurn::text("a")]).with_request_handling([way]).answer(asked).status
    };
    assert_eq!(status(&good, GitHubRequestHandling::Open), 200);
    for (way, expected) in [
        (GitHubRequestHandling::Forbidden, 403),
        (GitHubRequestHandling::TooLarge, 413),
        (GitHubRequestHandling::Limited("UserByMinute", 7), 429),
        (GitHubRequestHandling::Retired, 410),
    ] {
        assert_eq!(status(&good, way), expected);
    }
    let elsewhere = VendorRequest { path: "/v1/chat/completions".to_owned(), ..good.clone() };
    assert_eq!(status(&elsewhere, GitHubRequestHandling::Open), 404);
    for (at, expected) in [(0, 401), (2, 406), (3, 400)] {
        let mut without = good.clone();
        without.headers.remove(at);
        assert_eq!(status(&without, GitHubRequestHandling::Open), expected);
    }
}
