//! The list of tools, and tool definitions in messages.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{AnthropicCheckResult, check_fields, invalid_request, is_plain_name};

const FIELDS: [&str; 9] = [
    "cache_control",
    "defer_loading",
    "description",
    "eager_input_streaming",
    "input_examples",
    "input_schema",
    "name",
    "strict",
    "type",
];

/// The longest name.
const NAME_CHARS_MAX: usize = 128;

/// Checks the list and returns the names.
pub(super) fn check_tools(body: &Map<String, Value>) -> AnthropicCheckResult<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let list = body.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, tool) in list.iter().enumerate() {
        let name = check_tool_definition(&format!("tools.{index}"), tool)?;
        if !names.insert(name) {
            return Err(invalid_request("tools: Tool names must be unique."));
        }
    }
    Ok(names)
}

/// Checks a definition and returns its name.
pub(super) fn check_tool_definition(place: &str, tool: &Value) -> AnthropicCheckResult<String> {
    let fields =
        tool.as_object().ok_or_else(|| invalid_request(format!("{place}: not an object")))?;
    check_fields(place, fields, &FIELDS)?;
    let name = tool["name"].as_str().unwrap_or_default();
    if !is_plain_name(name) || name.len() > NAME_CHARS_MAX {
        let text = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
        return Err(invalid_request(format!("{place}.custom.name: {text}")));
    }
    check_schema(&format!("{place}.custom.input_schema"), &tool["input_schema"])?;
    Ok(name.to_owned())
}

/// Checks the schema of a tool's arguments.
fn check_schema(place: &str, schema: &Value) -> AnthropicCheckResult {
    if schema["type"] != "object" {
        return Err(invalid_request(format!("{place}.type: Field required")));
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|key| schema.get(key).is_some()) {
        let text = "input_schema does not support oneOf, allOf, or anyOf at the top level";
        return Err(invalid_request(format!("{place}: {text}")));
    }
    let is_key = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
    };
    if !crate::property_names(schema).all(is_key) {
        let text = "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
        return Err(invalid_request(format!("{place}.properties: {text}")));
    }
    if !jsonschema::draft202012::meta::is_valid(schema) {
        let text = "JSON schema is invalid. It must match JSON Schema draft 2020-12";
        return Err(invalid_request(format!("{place}: {text}")));
    }
    Ok(())
}
