//! Tests that the fake of Ollama refuses what the server refuses.

use jaato_vendors::ollama::{FakeOllama, IN_LIBRARY, OllamaAnswerPiece, OllamaTurn};
use jaato_vendors::{VendorAnswer, VendorRequest};
use serde_json::{Value, json};

fn vendor_request(method: &str, path: &str, body: &Value) -> VendorRequest {
    VendorRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: body.to_string().into_bytes(),
    }
}

fn send_chat(server: &FakeOllama, body: &Value) -> VendorAnswer {
    server.answer(&vendor_request("POST", "/api/chat", body))
}

fn answer_lines(answered: &VendorAnswer) -> Vec<Value> {
    let text = std::str::from_utf8(&answered.body).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns a request that is valid for a model with vision, thinking and tools.
fn valid_request() -> Value {
    json!({
        "model": "qwen3-vl:8b", "stream": true, "truncate": false, "shift": false,
        "think": true, "keep_alive": "5m", "format": { "type": "object" },
        "options": { "num_ctx": 4096, "num_predict": 16, "temperature": 0.5, "seed": 1,
            "stop": ["END"] },
        "tools": [{ "type": "function", "function": { "name": "look", "description": "Looks.",
            "parameters": { "type": "object", "properties": { "at": { "type": "string" } } } } }],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "go", "images": ["AAAA"] },
            { "role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
                { "id": "1", "function": { "name": "look", "arguments": {} } },
                { "id": "2", "function": { "name": "look", "arguments": { "at": "b" } } },
            ] },
            { "role": "tool", "content": "{}", "tool_name": "look", "tool_call_id": "2" },
            { "role": "tool", "content": "{}", "tool_name": "look", "tool_call_id": "1" },
        ],
    })
}

/// Returns the error for a body, or `None` if it is accepted.
fn refusal_text(body: &Value) -> Option<String> {
    let answered = send_chat(&FakeOllama::new([OllamaTurn::text("a")]), body);
    let said = || answer_lines(&answered)[0]["error"].as_str().unwrap().to_owned();
    (answered.status != 200).then(|| format!("{} {}", answered.status, said()))
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
fn valid_request_is_accepted_and_unsupported_inputs_are_refused() {
    assert_eq!(refusal_text(&valid_request()), None);
    for (model, key) in [("gemma3:4b", "tools"), ("qwen3:8b", "images")] {
        let mut body = valid_request();
        body["model"] = json!(model);
        assert!(refusal_text(&body).is_some(), "{model} takes no {key}");
    }
}

#[test]
fn unknown_fields_are_refused() {
    const UNKNOWN: &str = "unknown field \"moon\"";
    for path in ["/moon", "/options/moon", "/messages/1/moon"] {
        check_refusal(path, json!(1), UNKNOWN);
    }
    check_refusal("/messages/1/tool_name", json!("look"), "unknown field \"tool_name\"");
    check_refusal("/messages/2/images", json!(["AAAA"]), "unknown field \"images\"");
}

#[test]
fn values_of_the_wrong_type_are_refused() {
    check_refusal("/stream", json!("yes"), "of type bool");
    check_refusal("/options/num_ctx", json!("4096"), "must be of type integer");
    check_refusal("/options/num_ctx", json!(0), "must be of type integer");
    check_refusal("/options/seed", json!(u32::MAX), "must be of type integer");
    check_refusal("/options/temperature", json!(3), "must be of type float32");
    check_refusal("/options/stop", json!([""]), "an array of strings");
    check_refusal("/keep_alive", json!("-1"), "invalid duration");
    check_refusal("/format", json!("yaml"), "invalid format");
    check_refusal("/messages/1/content", json!(["go"]), "of type string");
    check_refusal("/messages/1/images", json!(["?"]), "[]api.ImageData");
    check_refusal("/messages/2/tool_calls/0/function/arguments", json!("{}"), "of type map");
    check_refusal(
        "/tools/0/function/parameters",
        json!({ "type": "object" }),
        "ToolFunctionParameters",
    );
    check_refusal("/tools/0/function/parameters/properties/at", json!(true), "api.ToolProperty");
}

#[test]
fn calls_and_results_must_match() {
    check_refusal("/messages/3/tool_call_id", json!("3"), "answers no call");
    check_refusal(
        "/messages/4",
        json!({ "role": "user", "content": "so?" }),
        "calls without results",
    );
    check_refusal(
        "/messages/-",
        json!({ "role": "assistant", "content": "so" }),
        "asks for nothing",
    );
    check_refusal("/messages/2/tool_calls/1/id", json!("1"), "two calls have one id");
    check_refusal("/messages/0/role", json!("developer"), "invalid role");
    check_refusal("/messages/4/content", Value::Null, "of type string");
}

#[test]
fn calls_without_ids_are_answered_by_name() {
    let mut body = valid_request();
    for (at, key) in [(2, "content"), (3, "tool_call_id"), (4, "tool_call_id")] {
        body["messages"][at].as_object_mut().unwrap().remove(key);
    }
    for call in body["messages"][2]["tool_calls"].as_array_mut().unwrap() {
        call.as_object_mut().unwrap().remove("id");
    }
    assert_eq!(refusal_text(&body), None);
    body["messages"][4]["tool_name"] = json!("other");
    assert!(refusal_text(&body).unwrap().contains("answers no call"));
}

#[test]
fn think_setting_must_fit_the_model() {
    let think = |model: &str, think: Value| {
        refusal_text(&json!({ "model": model, "think": think,
            "messages": [{ "role": "user", "content": "hi" }] }))
    };
    for (model, value) in [
        ("qwen3:8b", json!(true)),
        ("qwen3:8b", json!(false)),
        ("gpt-oss:20b", json!("low")),
        ("gemma3:4b", json!(false)),
    ] {
        assert_eq!(think(model, value), None, "{model}");
    }
    let refused = |model: &str, value: Value| think(model, value).unwrap();
    assert!(refused("gemma3:4b", json!(true)).contains("does not support thinking"));
    assert!(refused("qwen3:8b", json!("low")).contains("is not supported for this model"));
    assert!(refused("gpt-oss:20b", json!(false)).contains("is not supported for this model"));
    assert!(refused("gpt-oss:20b", json!("huge")).contains("invalid think value"));
    assert!(refused("nomic-embed-text", json!(false)).contains("does not support chat"));
    assert_eq!(refused("moon", json!(false)), "404 model 'moon' not found");
}

#[test]
fn overlong_prompt_is_refused_or_truncated() {
    let long = |truncate: bool| {
        json!({ "model": "tiny", "truncate": truncate, "options": { "num_ctx": 9_999 },
            "messages": [{ "role": "user", "content": "word ".repeat(9_000) }] })
    };
    let refused = refusal_text(&long(false)).unwrap();
    assert_eq!(refused, "400 the input length exceeds the context length");
    let server = FakeOllama::new([OllamaTurn::text("a"), OllamaTurn::text("b")]);
    let last = answer_lines(&send_chat(&server, &long(true))).pop().unwrap();
    assert_eq!(last["prompt_eval_count"], 2_048);
    let ps: Value =
        serde_json::from_slice(&server.answer(&vendor_request("GET", "/api/ps", &json!({}))).body)
            .unwrap();
    assert_eq!(ps["models"][0]["context_length"], 2_048);
    assert_eq!(server.reload_count(), 0);
    let other = json!({ "model": "tiny", "options": { "num_ctx": 1_024 },
        "messages": [{ "role": "user", "content": "hi" }] });
    send_chat(&server, &other);
    assert_eq!(server.reload_count(), 1);
}

#[test]
fn answer_is_streamed_in_lines_or_sent_whole() {
    let said = || {
        let call = OllamaAnswerPiece::Call("look".to_owned(), json!({ "at": 1 }));
        OllamaTurn::with_pieces([
            OllamaAnswerPiece::Thought("hm".to_owned()),
            OllamaAnswerPiece::Text("So.".to_owned()),
            call,
        ])
    };
    let server = FakeOllama::new([said(), said()]);
    let streamed = answer_lines(&send_chat(&server, &valid_request()));
    assert_eq!(streamed.len(), 6, "{streamed:#?}");
    assert!(streamed[..5].iter().all(|line| line["done"] == false));
    assert_eq!((&streamed[5]["done"], &streamed[5]["done_reason"]), (&json!(true), &json!("stop")));
    let mut body = valid_request();
    body["stream"] = json!(false);
    let whole = &answer_lines(&send_chat(&server, &body))[0];
    assert_eq!(
        (&whole["message"]["thinking"], &whole["message"]["content"]),
        (&json!("hm"), &json!("So."))
    );
    assert_eq!(whole["message"]["tool_calls"][0]["function"]["arguments"], json!({ "at": 1 }));
}

#[test]
fn configured_key_is_required_and_unknown_paths_are_not_found() {
    let server = FakeOllama::new([]).with_api_key("secret");
    let mut tags = vendor_request("GET", "/api/tags", &json!({}));
    assert_eq!(server.answer(&tags).status, 401);
    tags.headers.push(("authorization".to_owned(), "Bearer secret".to_owned()));
    assert_eq!(server.answer(&tags).status, 200);
    assert_eq!(
        FakeOllama::new([]).answer(&vendor_request("GET", "/v1/models", &json!({}))).status,
        404
    );
}

#[test]
fn pulled_model_is_installed() {
    let server = FakeOllama::new([]);
    let pull = |name: &str| {
        let answered =
            server.answer(&vendor_request("POST", "/api/pull", &json!({ "model": name })));
        answer_lines(&answered).pop().unwrap()
    };
    let has = || {
        let tags = server.answer(&vendor_request("GET", "/api/tags", &json!({})));
        String::from_utf8(tags.body).unwrap().contains(IN_LIBRARY)
    };
    assert_eq!(pull("sun")["error"], "pull model manifest: file does not exist");
    assert!(!has());
    assert_eq!(pull(IN_LIBRARY)["status"], "success");
    assert!(has());
}
