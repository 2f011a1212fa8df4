//! The history: the order of the roles, the kinds of parts, and the pairs of calls and results.

use serde_json::{Map, Value};

use super::models::FakeGoogleModel;
use super::request_target::GoogleRequestTarget;
use super::tools::is_valid_name;
use super::{GoogleCheckResult, check_fields, expect_list, expect_object, invalid_request};

/// The fields of which a part has exactly one.
const DATA: [&str; 7] = [
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "text",
];

/// The fields that may accompany it.
const MARKS: [&str; 2] = ["thought", "thoughtSignature"];

/// The accepted media types, and those that are accepted in results.
const SHOWN: [&str; 6] =
    ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"];
const SHOWN_IN_RESULTS: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "application/pdf"];

/// A checked content. Adjacent contents of the model are merged, because the vendor's own library
/// sends each piece of a streamed answer separately.
#[derive(Debug)]
pub(super) struct CheckedContent<'a> {
    pub(super) is_model: bool,
    pub(super) parts: Vec<&'a Value>,
}

impl<'a> CheckedContent<'a> {
    /// Returns the values of a key.
    pub(super) fn values_of_key(&self, key: &'a str) -> impl Iterator<Item = &'a Value> {
        self.parts.iter().filter_map(move |part| part.get(key))
    }

    fn has_key(&self, key: &'a str) -> bool {
        self.values_of_key(key).next().is_some()
    }

    /// Returns true if a turn of the user starts here.
    pub(super) fn is_prompt(&self) -> bool {
        !self.is_model && !self.has_key("functionResponse")
    }
}

/// Checks the contents.
pub(super) fn check_contents<'a>(
    body: &'a Map<String, Value>,
    model: &FakeGoogleModel,
    place: &GoogleRequestTarget<'_>,
) -> GoogleCheckResult<Vec<CheckedContent<'a>>> {
    if body.contains_key("tools") && !model.can_take_tools() {
        return Err(invalid_request(format!(
            "Function calling is not enabled for models/{}",
            model.name
        )));
    }
    let mut contents: Vec<CheckedContent<'_>> = Vec::new();
    for (index, content) in expect_list("contents", body.get("contents"))?.iter().enumerate() {
        let content = check_content(&format!("contents[{index}]"), content, model, place)?;
        match contents.last_mut().filter(|last| last.is_model && content.is_model) {
            Some(last) => last.parts.extend(content.parts),
            None => contents.push(content),
        }
    }
    match (contents.first(), contents.last()) {
        (None, _) | (_, None) => return Err(invalid_request("contents is not specified")),
        (Some(first), Some(last)) if first.is_model || last.is_model => {
            let text = "Please ensure that multiturn requests begin and end with a user role.";
            return Err(invalid_request(text));
        }
        _ => {}
    }
    for (index, content) in contents.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &contents[before]);
        check_turn_order(content, before, contents.get(index + 1))?;
    }
    Ok(contents)
}

fn check_content<'a>(
    place: &str,
    content: &'a Value,
    model: &FakeGoogleModel,
    server: &GoogleRequestTarget<'_>,
) -> GoogleCheckResult<CheckedContent<'a>> {
    let fields = expect_object(place, content)?;
    check_fields(place, fields, &["role", "parts"])?;
    let is_model = match content["role"].as_str() {
        Some("user") => false,
        Some("model") => true,
        _ => return Err(invalid_request("Please use a valid role: user, model.")),
    };
    let parts = expect_list(place, fields.get("parts"))?;
    if parts.is_empty() {
        return Err(invalid_request(format!(
            "GenerateContentRequest.{place}.parts: must not be empty"
        )));
    }
    for (index, part) in parts.iter().enumerate() {
        check_part(&format!("{place}.parts[{index}]"), part, is_model, model, server)?;
    }
    Ok(CheckedContent { is_model, parts: parts.iter().collect() })
}

fn check_part(
    place: &str,
    part: &Value,
    is_model: bool,
    model: &FakeGoogleModel,
    server: &GoogleRequestTarget<'_>,
) -> GoogleCheckResult {
    let fields = expect_object(place, part)?;
    check_fields(place, fields, &[&DATA[..], &MARKS].concat())?;
    let given: Vec<&str> = DATA.into_iter().filter(|key| fields.contains_key(*key)).collect();
    let is_signed = fields.contains_key("thoughtSignature");
    let is_nothing = part["text"].as_str().is_some_and(str::is_empty) && !is_signed;
    let ([key], false) = (given.as_slice(), is_nothing) else {
        return Err(invalid_request(format!(
            "GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field"
        )));
    };
    if !is_model && MARKS.iter().any(|mark| fields.contains_key(*mark)) {
        return Err(invalid_request(format!("{place}: thoughts are the model's")));
    }
    match (*key, is_model) {
        ("text", _) if part["text"].is_string() => Ok(()),
        ("functionCall", true) => check_function_call(place, &part[key], server),
        ("functionResponse", false) => check_function_response(place, &part[key], model, server),
        ("inlineData", false) => check_inline_data(place, &part[key], &SHOWN),
        ("executableCode" | "codeExecutionResult", true) => Ok(()),
        _ => Err(invalid_request(format!("{place}.{key}: has no place in this role"))),
    }
}

fn check_function_call(
    place: &str,
    call: &Value,
    server: &GoogleRequestTarget<'_>,
) -> GoogleCheckResult {
    let place = format!("{place}.function_call");
    check_fields(&place, expect_object(&place, call)?, &["name", "args", "id"])?;
    check_name_and_id(&place, call, server)?;
    expect_object(&format!("{place}.args"), &call["args"]).map(drop)
}

fn check_function_response(
    place: &str,
    response: &Value,
    model: &FakeGoogleModel,
    server: &GoogleRequestTarget<'_>,
) -> GoogleCheckResult {
    let place = format!("{place}.function_response");
    let known = ["name", "response", "id", "parts"];
    let fields = expect_object(&place, response)?;
    check_fields(&place, fields, &known)?;
    check_name_and_id(&place, response, server)?;
    expect_object(&format!("{place}.response"), &response["response"])?;
    let shown = expect_list(&place, fields.get("parts"))?;
    if !shown.is_empty() && model.generation.0 < 3 {
        let text = "Multimodal function responses are not supported for this model.";
        return Err(invalid_request(text));
    }
    shown
        .iter()
        .try_for_each(|part| check_inline_data(&place, &part["inlineData"], &SHOWN_IN_RESULTS))
}

fn check_name_and_id(
    place: &str,
    value: &Value,
    server: &GoogleRequestTarget<'_>,
) -> GoogleCheckResult {
    if !is_valid_name(value["name"].as_str().unwrap_or_default()) {
        return Err(invalid_request(format!("{place}.name: Name cannot be empty.")));
    }
    match value.get("id") {
        None => Ok(()),
        Some(id) if server.has_call_ids() && id.as_str().is_some_and(|id| !id.is_empty()) => Ok(()),
        Some(_) => Err(invalid_request(format!("{place}.id: is not supported"))),
    }
}

fn check_inline_data(place: &str, inline: &Value, known: &[&str]) -> GoogleCheckResult {
    check_fields(place, expect_object(place, inline)?, &["mimeType", "data"])?;
    let name = inline["mimeType"].as_str().unwrap_or_default();
    if !known.contains(&name) {
        return Err(invalid_request(format!("Unsupported MIME type: {name}")));
    }
    let is_base64 = |text: &str| {
        let plain = text.trim_end_matches('=');
        !plain.is_empty()
            && text.len() % 4 == 0
            && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
    };
    match inline["data"].as_str().is_some_and(is_base64) {
        true => Ok(()),
        false => Err(invalid_request(format!(
            "Invalid value at '{place}.inline_data.data' (TYPE_BYTES)"
        ))),
    }
}

/// Checks that all calls are answered immediately and in order.
fn check_turn_order(
    content: &CheckedContent<'_>,
    before: Option<&CheckedContent<'_>>,
    after: Option<&CheckedContent<'_>>,
) -> GoogleCheckResult {
    if content.has_key("functionCall") {
        let answered = after.into_iter().flat_map(|after| after.values_of_key("functionResponse"));
        let answered: Vec<&Value> = answered.collect();
        let calls: Vec<&Value> = content.values_of_key("functionCall").collect();
        if calls.len() != answered.len() {
            return Err(invalid_request(
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
            ));
        }
        let is_pair = |(call, answer): (&&Value, &&Value)| {
            call["name"] == answer["name"] && call.get("id") == answer.get("id")
        };
        if !calls.iter().zip(&answered).all(is_pair) {
            return Err(invalid_request("Function responses do not match the function calls."));
        }
    }
    let answers_calls = before.is_some_and(|before| before.has_key("functionCall"));
    if content.has_key("functionResponse") && !answers_calls {
        return Err(invalid_request(
            "Please ensure that function response turn comes immediately after a function call turn.",
        ));
    }
    Ok(())
}
