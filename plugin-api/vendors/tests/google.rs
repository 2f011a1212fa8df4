//! Tests that the fake of Google's API refuses what the vendor refuses.

use jaato_vendors::google::{BAD_KEY, FakeGoogle, GoogleAnswerPiece, GoogleTurn};
use jaato_vendors::{VendorAnswer, VendorRequest};
use serde_json::{Value, json};

const STUDIO: &str = "/v1beta/models/";
const VERTEX: &str = "/v1beta1/projects/p/locations/global/publishers/google/models/";

fn vendor_request(path: &str, credential: (&str, &str), body: &Value) -> VendorRequest {
    let headers = [credential, ("content-type", "application/json")];
    VendorRequest {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        body: body.to_string().into_bytes(),
    }
}

fn studio_request(model: &str, body: &Value) -> VendorRequest {
    vendor_request(&format!("{STUDIO}{model}:generateContent"), ("x-goog-api-key", "key"), body)
}

fn body_of(answered: &VendorAnswer) -> Value {
    serde_json::from_slice(&answered.body).unwrap()
}

/// Returns a request that is valid for models before the third generation.
fn valid_request() -> Value {
    json!({
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "tools": [{ "functionDeclarations": [{ "name": "look", "description": "Looks.",
            "parametersJsonSchema": { "type": "object", "properties": { "at": { "type": "string" } } } }] }],
        "toolConfig": { "functionCallingConfig": { "mode": "AUTO" } },
        "generationConfig": { "temperature": 0.5, "maxOutputTokens": 16, "seed": 1,
            "stopSequences": ["END"], "thinkingConfig": { "includeThoughts": true, "thinkingBudget": 512 } },
        "contents": [
            { "role": "user", "parts": [{ "text": "go" }] },
            { "role": "model", "parts": [
                { "text": "I look." },
                { "functionCall": { "name": "look", "args": {} } },
                { "functionCall": { "name": "look", "args": { "at": "b" } } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "look", "response": { "output": {} } } },
                { "functionResponse": { "name": "look", "response": { "error": {} } } },
                { "inlineData": { "mimeType": "image/png", "data": "AAAA" } },
            ] },
        ],
    })
}

/// Returns the error for a body, or `None` if it is accepted.
fn refusal_text(model: &str, body: &Value) -> Option<String> {
    let answered = FakeGoogle::new([GoogleTurn::text("a")]).answer(&studio_request(model, body));
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
    let said = refusal_text("gemini-2.5-flash", &body).unwrap_or_else(|| "taken".to_owned());
    assert!(said.contains(expected), "{path}: {said}");
}

#[test]
fn valid_request_is_accepted() {
    assert_eq!(refusal_text("gemini-2.5-flash", &valid_request()), None);
    let answered = FakeGoogle::new([GoogleTurn::text("hi")])
        .answer(&studio_request("gemini-2.5-pro", &valid_request()));
    let body = body_of(&answered);
    assert_eq!(body["candidates"][0]["content"]["parts"][0]["text"], "hi");
    assert_eq!(body["candidates"][0]["finishReason"], "STOP");
}

#[test]
fn unknown_fields_are_refused() {
    const UNKNOWN: &str = "Unknown name \"moon\"";
    for path in [
        "/moon",
        "/systemInstruction/moon",
        "/tools/0/moon",
        "/tools/0/functionDeclarations/0/moon",
        "/tools/0/functionDeclarations/0/parametersJsonSchema/moon",
        "/tools/0/functionDeclarations/0/parametersJsonSchema/properties/at/moon",
        "/toolConfig/moon",
        "/generationConfig/moon",
        "/generationConfig/thinkingConfig/moon",
        "/contents/0/moon",
        "/contents/0/parts/0/moon",
        "/contents/1/parts/1/functionCall/moon",
        "/contents/2/parts/0/functionResponse/moon",
    ] {
        check_refusal(path, json!(1), UNKNOWN);
    }
    check_refusal("/labels", json!({}), "Unknown name \"labels\"");
}

#[test]
fn unsupported_settings_are_refused() {
    check_refusal("/generationConfig/temperature", json!(3), "temperature must be between");
    check_refusal("/generationConfig/maxOutputTokens", json!(0), "maxOutputTokens must be between");
    check_refusal("/generationConfig/seed", json!(1_u64 << 40), "seed must be between");
    check_refusal("/generationConfig/stopSequences", json!(vec!["a"; 6]), "at most 5");
    check_refusal(
        "/generationConfig/responseMimeType",
        json!("application/json"),
        "is unsupported",
    );
    check_refusal("/generationConfig/responseJsonSchema", json!({}), "needs response_mime_type");
    check_refusal(
        "/generationConfig/thinkingConfig/thinkingLevel",
        json!("LOW"),
        "only one of thinking",
    );
    check_refusal("/generationConfig/thinkingConfig/thinkingBudget", json!(0), "only enabled when");
    check_refusal(
        "/generationConfig/thinkingConfig/thinkingBudget",
        json!(99_999),
        "not between 1 and",
    );
    check_refusal(
        "/generationConfig/thinkingConfig",
        json!({ "thinkingLevel": "LOW" }),
        "not supported",
    );
    check_refusal("/toolConfig/functionCallingConfig/mode", json!("auto"), "Invalid value");
    let thinking = |model: &str, config: Value| {
        let contents = json!([{ "role": "user", "parts": [{ "text": "go" }] }]);
        let body =
            json!({ "contents": contents, "generationConfig": { "thinkingConfig": config } });
        refusal_text(model, &body).unwrap_or_default()
    };
    assert_eq!(thinking("gemini-3.5-flash", json!({ "thinkingLevel": "MINIMAL" })), "");
    for (model, config) in [
        ("gemini-4-argon", json!({ "thinkingLevel": "MINIMAL" })),
        ("gemini-4-argon", json!({ "thinkingBudget": 1_024 })),
        ("gemini-3-pro-preview", json!({ "thinkingLevel": "MEDIUM" })),
        ("gemini-2.5-flash-lite", json!({ "includeThoughts": true })),
        ("gemini-2.5-pro", json!({ "thinkingBudget": 0 })),
        ("gemini-2.0-flash", json!({ "includeThoughts": true })),
    ] {
        assert!(!thinking(model, config.clone()).is_empty(), "{model} {config}");
    }
}

#[test]
fn invalid_tool_names_and_schemas_are_refused() {
    let tool = "/tools/0/functionDeclarations/0";
    check_refusal("/tools", json!([]), "at least one tool");
    check_refusal(&format!("{tool}/name"), json!("7up"), "Invalid function name");
    check_refusal("/tools/0/functionDeclarations/-", json!({ "name": "look" }), "Duplicate");
    check_refusal(&format!("{tool}/parameters"), json!({}), "exclusive");
    let schema = format!("{tool}/parametersJsonSchema");
    check_refusal(&schema, json!({ "type": "string" }), "must be of type object");
    let bad = json!({ "$ref": "#/$defs/A", "description": "x" });
    check_refusal(&format!("{schema}/properties/at"), bad, "next to $ref");
    check_refusal(
        &format!("{schema}/properties/at"),
        json!({ "const": 1 }),
        "Unknown name \"const\"",
    );
    check_refusal(
        &format!("{schema}/properties/at"),
        json!({ "enum": [true] }),
        "only texts and numbers",
    );
    let open = |schema: Value| {
        let mut body = valid_request();
        body["tools"][0]["functionDeclarations"][0] = json!({ "name": "a", "parameters": schema });
        refusal_text("gemini-2.5-flash", &body).unwrap_or_default()
    };
    let of = |inner: Value| open(json!({ "type": "OBJECT", "properties": { "a": inner } }));
    assert_eq!(of(json!({ "type": "STRING", "enum": ["a"] })), "");
    assert!(open(json!({ "type": "OBJECT", "properties": {} })).contains("non-empty for OBJECT"));
    for (inner, expected) in [
        (json!({ "type": "ARRAY" }), "missing field"),
        (json!({ "description": "a" }), "must be specified"),
        (json!({ "type": "INTEGER", "enum": ["1"] }), "only allowed for STRING"),
        (json!({ "type": "STRING", "items": {} }), "only allowed for ARRAY"),
        (json!({ "type": "OBJECT", "required": ["x"] }), "not defined"),
        (json!({ "type": "OBJECT", "additionalProperties": false }), "additionalProperties"),
    ] {
        let said = of(inner.clone());
        assert!(said.contains(expected), "{inner}: {said}");
    }
}

#[test]
fn misordered_contents_and_unanswered_calls_are_refused() {
    let (model, answers) = ("/contents/1/parts", "/contents/2/parts");
    check_refusal("/contents", json!([]), "contents is not specified");
    check_refusal("/contents/0/role", json!("system"), "valid role");
    check_refusal("/contents/0/role", json!("model"), "begin and end with a user");
    check_refusal("/contents/0/parts", json!([]), "must not be empty");
    check_refusal("/contents/0/parts/0/text", json!(""), "must have one initialized field");
    check_refusal("/contents/0/parts/0/thought", json!(true), "thoughts are the model's");
    check_refusal(&format!("{model}/0/functionCall"), json!({}), "must have one initialized field");
    check_refusal(&format!("{model}/1/functionCall/args"), json!("x"), "Invalid value");
    check_refusal(&format!("{model}/1/functionCall/name"), json!("other"), "do not match");
    check_refusal(&format!("{model}/1/functionCall/id"), json!("a"), "do not match");
    check_refusal(&format!("{answers}/0"), json!({ "text": "no" }), "is equal to the number");
    check_refusal(&format!("{answers}/0/functionResponse/response"), json!([]), "Invalid value");
    let parts = json!([{ "inlineData": { "mimeType": "image/png", "data": "AAAA" } }]);
    check_refusal(
        &format!("{answers}/0/functionResponse/parts"),
        parts,
        "Multimodal function responses",
    );
    check_refusal(
        &format!("{answers}/2/inlineData/mimeType"),
        json!("image/gif"),
        "Unsupported MIME type",
    );
    check_refusal(&format!("{answers}/2/inlineData/data"), json!("*"), "TYPE_BYTES");
    check_refusal(
        "/contents/1",
        json!({ "role": "model", "parts": [{ "text": "a" }] }),
        "comes immediately",
    );
}

#[test]
fn each_endpoint_requires_its_own_credential_and_path() {
    let contents = json!([{ "role": "user", "parts": [{ "text": "go" }] }]);
    let body = json!({ "contents": contents });
    let status = |path: &str, credential: (&str, &str)| {
        let answered = FakeGoogle::new([GoogleTurn::text("a")])
            .answer(&vendor_request(path, credential, &body));
        (answered.status, body_of(&answered)["error"]["status"].as_str().unwrap_or("").to_owned())
    };
    let (key, token) = (("x-goog-api-key", "key"), ("authorization", "Bearer token"));
    let at = |place: &str, model: &str| format!("{place}{model}:generateContent");
    let taken = (200, String::new());
    assert_eq!(status(&at(STUDIO, "gemini-4-argon"), key), taken);
    // The vendor's own library uses the stable version.
    assert_eq!(status(&at("/v1/models/", "gemini-4-argon"), key), taken);
    assert_eq!(status(&at(VERTEX, "gemini-4-argon"), token), taken);
    let express = at("/v1beta1/publishers/google/models/", "gemini-4-argon");
    assert_eq!(status(&express, key), taken);
    assert_eq!(status(&at(STUDIO, "gemini-4-argon"), token).0, 403);
    assert_eq!(status(&at(STUDIO, "gemini-4-argon"), ("x-goog-api-key", BAD_KEY)).0, 400);
    assert_eq!(status(&at(VERTEX, "gemini-4-argon"), key).0, 401);
    let region = VERTEX.replace("global", "us-central1");
    assert_eq!(status(&at(&region, "gemini-2.5-flash"), token), taken);
    assert_eq!(status(&at(&region, "gemini-4-argon"), token).1, "NOT_FOUND");
    assert_eq!(status(&at(STUDIO, "gemini-embedding-001"), key).0, 404);
    assert_eq!(status("/v1beta/moon", key).0, 404);
}

#[test]
fn model_answer_may_be_split_into_several_contents() {
    let mut body = valid_request();
    let parts = body["contents"][1]["parts"].as_array().unwrap().clone();
    let pieces = parts.iter().map(|part| json!({ "role": "model", "parts": [part] }));
    let contents = body["contents"].as_array_mut().unwrap();
    contents.splice(1..2, pieces);
    assert_eq!(refusal_text("gemini-2.5-flash", &body), None);
}

#[test]
fn snake_case_fields_are_accepted_and_schemas_keep_their_names() {
    let schema = json!({ "type": "object", "properties": { "a_b": { "type": "string" } } });
    let body = json!({
        "contents": [{ "role": "user", "parts": [{ "inline_data":
            { "mime_type": "image/png", "data": "AAAA" } }] }],
        "generation_config": { "thinking_config": { "include_thoughts": true } },
        "tools": [{ "function_declarations":
            [{ "name": "look", "parameters_json_schema": schema }] }],
    });
    let vendor = FakeGoogle::new([GoogleTurn::text("a")]);
    let path = format!("{STUDIO}gemini-4-argon:generateContent");
    assert_eq!(vendor.answer(&vendor_request(&path, ("x-goog-api-key", "key"), &body)).status, 200);
    let taken = &vendor.accepted_requests()[0];
    assert_eq!(taken["contents"][0]["parts"][0]["inlineData"]["mimeType"], "image/png");
    let declared = &taken["tools"][0]["functionDeclarations"][0];
    assert_eq!(declared["parametersJsonSchema"], schema);
}

#[test]
fn current_models_require_their_signatures_back() {
    let model = "gemini-4-argon";
    let calls =
        || ["a", "b"].map(|at| GoogleAnswerPiece::Call("look".to_owned(), json!({ "at": at })));
    let vendor = FakeGoogle::new([
        GoogleTurn::with_pieces(calls()),
        GoogleTurn::text("done"),
        GoogleTurn::text("done"),
    ]);
    let user = json!({ "role": "user", "parts": [{ "text": "go" }] });
    let first = vendor.answer(&studio_request(model, &json!({ "contents": [user] })));
    let content = body_of(&first)["candidates"][0]["content"].clone();
    assert!(content["parts"][0]["thoughtSignature"].is_string());
    assert!(content["parts"][1].get("thoughtSignature").is_none());
    let results: Vec<_> = content["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| {
            let id = &part["functionCall"]["id"];
            json!({ "functionResponse": { "name": "look", "id": id, "response": {} } })
        })
        .collect();
    let results = json!({ "role": "user", "parts": results });
    let send = |content: &Value, more: &[Value]| {
        let contents = [&[user.clone(), content.clone(), results.clone()], more].concat();
        let answered = vendor.answer(&studio_request(model, &json!({ "contents": contents })));
        (answered.status, body_of(&answered)["error"]["message"].to_string())
    };
    assert_eq!(send(&content, &[]).0, 200);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut changed = content.clone();
        change(&mut changed["parts"][0]);
        changed
    };
    let missing = changed(&|part| {
        part.as_object_mut().unwrap().remove("thoughtSignature");
    });
    assert!(send(&missing, &[]).1.contains("missing a thought_signature"));
    let edited = changed(&|part| part["functionCall"]["args"] = json!({ "at": "c" }));
    assert!(send(&edited, &[]).1.contains("Corrupted thought signature"));
    // Turns before the last one are not checked.
    let over = [json!({ "role": "model", "parts": [{ "text": "done" }] }), user.clone()];
    assert_eq!(send(&missing, &over).0, 200);
}
