//! Writes the tools of a request. Pure.
//!
//! The server parses schemas into its own types, and refuses a request whose schema does not fit,
//! for example `true` instead of an object, or several types at the top level.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::ToolSpec;

/// The keywords whose values the server parses as properties.
const LISTS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Writes the list of tools.
pub(crate) fn write_tools(tools: &[ToolSpec]) -> Vec<Value> {
    let tool = |spec: &ToolSpec| {
        json!({ "type": "function", "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": tool_parameters(&spec.parameters),
        } })
    };
    tools.iter().map(tool).collect()
}

fn tool_parameters(schema: &Value) -> Value {
    let mut schema = adapt_schema(schema);
    schema["type"] = json!("object");
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    if !schema["required"].is_array() {
        schema.as_object_mut().and_then(|schema| schema.shift_remove("required"));
    }
    schema
}

/// Converts a schema and its inner schemas to objects.
fn adapt_schema(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return json!({}) };
    let mut written = Map::new();
    for (key, value) in fields {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(all)) => {
                all.iter().map(|(name, one)| (name.clone(), adapt_schema(one))).collect()
            }
            (list, Value::Array(all)) if LISTS.contains(&list) => {
                all.iter().map(adapt_schema).collect()
            }
            _ => value.clone(),
        };
        written.insert(key.clone(), value);
    }
    Value::Object(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boolean_schemas_become_objects() {
        let schema = json!({
            "type": ["object", "null"],
            "properties": { "a": true, "b": { "anyOf": [true, { "type": "string" }] } },
            "required": ["a"],
        });
        let expected = json!({
            "type": "object",
            "properties": { "a": {}, "b": { "anyOf": [{}, { "type": "string" }] } },
            "required": ["a"],
        });
        assert_eq!(tool_parameters(&schema), expected);
        let nothing = json!({ "type": "object", "properties": {} });
        for schema in [json!(true), json!(null), json!({}), json!({ "required": null })] {
            assert_eq!(tool_parameters(&schema), nothing);
        }
    }
}
