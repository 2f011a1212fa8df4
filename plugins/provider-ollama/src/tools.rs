//! The tools of a request. Pure.
//!
//! The server reads schemas into types of its own, and refuses a request with a schema that does
//! not fit: `true` in place of an object, several types at the top.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::ToolSpec;

/// The keywords whose values the server reads as properties.
const LISTS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Writes the list of tools.
pub(crate) fn list(tools: &[ToolSpec]) -> Vec<Value> {
    let tool = |spec: &ToolSpec| {
        json!({ "type": "function", "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": parameters(&spec.parameters),
        } })
    };
    tools.iter().map(tool).collect()
}

fn parameters(schema: &Value) -> Value {
    let mut schema = fitted(schema);
    schema["type"] = json!("object");
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    if !schema["required"].is_array() {
        schema.as_object_mut().and_then(|schema| schema.shift_remove("required"));
    }
    schema
}

/// Makes an object of a schema, also inside.
fn fitted(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return json!({}) };
    let mut written = Map::new();
    for (key, value) in fields {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(all)) => {
                all.iter().map(|(name, one)| (name.clone(), fitted(one))).collect()
            }
            (list, Value::Array(all)) if LISTS.contains(&list) => all.iter().map(fitted).collect(),
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
    fn a_schema_is_an_object_through_and_through() {
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
        assert_eq!(parameters(&schema), expected);
        let nothing = json!({ "type": "object", "properties": {} });
        for schema in [json!(true), json!(null), json!({}), json!({ "required": null })] {
            assert_eq!(parameters(&schema), nothing);
        }
    }
}
