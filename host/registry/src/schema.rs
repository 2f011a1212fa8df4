//! Checks that a schema is a JSON Schema of an object's properties, as model servers expect.
//!
//! The outline is what makes servers refuse a request, and costs a start almost nothing. A schema
//! that does not compile may pass it, for example because of a `$ref` to nothing.

use jaato_types::text::truncate_chars;
use serde_json::{Map, Value};

use crate::usable::SchemaCheck;

/// Maximum nesting depth. No one can read a deeper schema.
const DEPTH_MAX: usize = 32;

/// Longest name of a property, in bytes: the limit of the strictest servers.
const PROPERTY_BYTES_MAX: usize = 64;

/// Longest reason from the compiler of schemas.
const REASON_CHARS_MAX: usize = 200;

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Keywords whose value is a schema, a list of schemas, or a map of schemas.
const ONE: [&str; 6] = ["items", "additionalProperties", "not", "contains", "propertyNames", "if"];
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Returns why a value is not a schema of arguments, or `None` if it is one.
pub(crate) fn schema_refusal(
    schema: &Value,
    bytes_max: usize,
    check: SchemaCheck,
) -> Option<String> {
    let Value::Object(map) = schema else {
        return Some(format!("its schema is not a JSON object but {}", value_kind(schema)));
    };
    match map.get("type") {
        Some(Value::String(name)) if name == "object" => {}
        // Its alternatives may all describe objects.
        None => {}
        Some(other) => {
            return Some(format!(
                "its schema describes {}, not an object",
                truncate_json(&other.to_string())
            ));
        }
    }
    let properties = map.get("properties").and_then(Value::as_object);
    let bad = properties.into_iter().flat_map(Map::keys).find(|name| !is_property(name));
    if let Some(name) = bad {
        return Some(format!(
            "the property {:?} has a name that servers refuse: 1 to 64 letters (a to z), digits, `_`, `.` and `-`",
            truncate_json(&name.escape_unicode().to_string())
        ));
    }
    if let Some(wrong) = schema_problem(schema, DEPTH_MAX) {
        return Some(format!("its schema is not a JSON Schema: {wrong}"));
    }
    let bytes = schema.to_string().len();
    if bytes > bytes_max {
        return Some(format!("its schema has {bytes} bytes, but the limit is {bytes_max}"));
    }
    match check {
        SchemaCheck::Outline => None,
        SchemaCheck::Compile => compile_error(schema),
    }
}

/// Returns why a schema does not compile, or `None` if it does.
fn compile_error(schema: &Value) -> Option<String> {
    let error = jsonschema::validator_for(schema).err()?.to_string();
    // The text may repeat a piece of the schema.
    let text: String = truncate_chars(&error, REASON_CHARS_MAX)
        .chars()
        .map(|c| if c.is_ascii() && !c.is_control() { c.to_string() } else { escape_character(c) })
        .collect();
    Some(format!("its schema does not compile: {text}"))
}

fn escape_character(c: char) -> String {
    c.escape_default().to_string()
}

fn is_property(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=PROPERTY_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

fn schema_problem(schema: &Value, depth: usize) -> Option<String> {
    let map = match schema {
        Value::Bool(_) => return None,
        Value::Object(map) => map,
        other => return Some(format!("{} is not a schema", value_kind(other))),
    };
    if depth == 0 {
        return Some(format!("it nests deeper than {DEPTH_MAX} schemas"));
    }
    let is_text = |value: &Value| value.is_string();
    map.iter().find_map(|(key, value)| match (key.as_str(), value) {
        ("type", Value::String(name)) if TYPES.contains(&name.as_str()) => None,
        ("type", Value::Array(names)) if !names.is_empty() && names.iter().all(is_type_name) => {
            None
        }
        ("type", other) => {
            Some(format!("the type {} does not exist", truncate_json(&other.to_string())))
        }
        ("required", Value::Array(names)) if names.iter().all(is_text) => None,
        ("required", _) => Some("`required` is not a list of names".to_owned()),
        ("enum", Value::Array(_)) => None,
        ("enum", _) => Some("`enum` is not a list".to_owned()),
        // In older drafts, `items` may be a list of schemas.
        (key, Value::Array(list)) if LISTS.contains(&key) || key == "items" => {
            list.iter().find_map(|schema| schema_problem(schema, depth - 1))
        }
        (key, _) if LISTS.contains(&key) => Some(format!("`{key}` is not a list of schemas")),
        (key, Value::Object(map)) if MAPS.contains(&key) => {
            map.values().find_map(|schema| schema_problem(schema, depth - 1))
        }
        (key, _) if MAPS.contains(&key) => Some(format!("`{key}` is not an object of schemas")),
        (key, schema) if ONE.contains(&key) => schema_problem(schema, depth - 1),
        _ => None,
    })
}

fn is_type_name(name: &Value) -> bool {
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn value_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Truncates a piece of JSON, and escapes deceptive characters.
fn truncate_json(text: &str) -> String {
    let cut = text.chars().take(40).flat_map(char::escape_default);
    format!("`{}`", cut.collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_schema(schema: Value, expected: Option<&str>) {
        assert_eq!(
            schema_refusal(&schema, 1024, SchemaCheck::Compile).as_deref(),
            expected,
            "{schema}"
        );
    }

    #[test]
    fn invalid_tool_schema_is_reported_with_its_reason() {
        check_schema(json!(["a"]), Some("its schema is not a JSON object but a list"));
        check_schema(json!(null), Some("its schema is not a JSON object but nothing"));
        check_schema(
            json!({ "type": "dict" }),
            Some("its schema describes `\\\"dict\\\"`, not an object"),
        );
        check_schema(
            json!({ "type": "string" }),
            Some("its schema describes `\\\"string\\\"`, not an object"),
        );
        let wrong = |properties: Value| json!({ "type": "object", "properties": properties });
        check_schema(
            wrong(json!([])),
            Some("its schema is not a JSON Schema: `properties` is not an object of schemas"),
        );
        check_schema(
            wrong(json!({ "a": { "type": "dict" } })),
            Some("its schema is not a JSON Schema: the type `\\\"dict\\\"` does not exist"),
        );
        check_schema(
            wrong(json!({ "a": { "type": "array", "items": 3 } })),
            Some("its schema is not a JSON Schema: a number is not a schema"),
        );
        check_schema(
            json!({ "type": "object", "required": "a" }),
            Some("its schema is not a JSON Schema: `required` is not a list of names"),
        );
        let deep = (0..40).fold(json!({}), |inner, _| json!({ "not": inner }));
        let told = schema_refusal(&deep, 1024, SchemaCheck::Compile).unwrap();
        assert!(told.ends_with("it nests deeper than 32 schemas"), "{told}");
        let bad = schema_refusal(&wrong(json!({ "a b": {} })), 1024, SchemaCheck::Compile).unwrap();
        assert!(bad.contains("has a name that servers refuse"), "{bad}");
        let long =
            schema_refusal(&json!({ "description": "x".repeat(1024) }), 1024, SchemaCheck::Compile)
                .unwrap();
        assert!(long.ends_with("bytes, but the limit is 1024"), "{long}");
    }

    #[test]
    fn schemas_as_generators_write_them_pass() {
        check_schema(json!({}), None);
        check_schema(json!({ "type": "object" }), None);
        check_schema(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "a": { "type": ["string", "null"], "enum": ["x", null] },
                    "b": { "anyOf": [{ "$ref": "#/$defs/B" }, { "type": "null" }] },
                    "c": true,
                    "type": { "type": "string" },
                },
                "required": ["a"],
                "additionalProperties": false,
                "$defs": { "B": { "type": "number", "minimum": 0.5 } },
            }),
            None,
        );
        // In older drafts, `items` may be a list.
        let list =
            json!({ "type": "array", "items": [{ "type": "integer" }], "additionalItems": false });
        let old = "http://json-schema.org/draft-07/schema#";
        check_schema(
            json!({ "$schema": old, "type": "object", "properties": { "d": list } }),
            None,
        );
    }
}
