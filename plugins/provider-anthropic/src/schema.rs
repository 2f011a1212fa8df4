//! Adapts an answer's JSON Schema to the keywords that the vendor supports. Pure.
//!
//! Unsupported keywords move into the description, so that the model at least reads them. Each
//! answer that matches the adapted schema has the shape of the original.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

/// Schema keywords that the vendor refuses.
const REFUSED: [&str; 14] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "uniqueItems",
];

/// Keywords that contain one schema.
const WITH_ONE: [&str; 1] = ["items"];

/// Keywords that contain a list of schemas.
const WITH_LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords that contain schemas by name.
const WITH_NAMES: [&str; 3] = ["$defs", "definitions", "properties"];

/// Closes each object and moves refused keywords into the description.
pub(crate) fn adapt_schema(schema: &Value) -> Value {
    let Value::Object(words) = schema else { return schema.clone() };
    let mut kept = Map::new();
    let mut said = Map::new();
    for (word, value) in words {
        let name = word.as_str();
        if REFUSED.contains(&name) {
            said.insert(word.clone(), value.clone());
            continue;
        }
        let value = match value {
            one if WITH_ONE.contains(&name) => adapt_schema(one),
            Value::Array(list) if WITH_LIST.contains(&name) => {
                list.iter().map(adapt_schema).collect()
            }
            Value::Object(named) if WITH_NAMES.contains(&name) => {
                named.iter().map(|(name, schema)| (name.clone(), adapt_schema(schema))).collect()
            }
            other => other.clone(),
        };
        kept.insert(word.clone(), value);
    }
    if is_object_schema(&kept) {
        kept.insert("additionalProperties".to_owned(), json!(false));
    }
    if !said.is_empty() {
        let said = Value::Object(said).to_string();
        let text = match kept.get("description").and_then(Value::as_str) {
            Some(text) => format!("{text}\n{said}"),
            None => said,
        };
        kept.insert("description".to_owned(), json!(text));
    }
    Value::Object(kept)
}

fn is_object_schema(words: &Map<String, Value>) -> bool {
    match words.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(_) | None => words.contains_key("properties"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_objects_are_closed_and_bounds_move_to_the_description() {
        let schema = json!({
            "type": "object",
            "properties": {
                "minimum": { "type": "integer", "minimum": 1, "description": "At least one." },
                "list": { "type": "array", "items": { "type": "object" }, "maxItems": 3 },
                "any": { "anyOf": [{ "properties": {}, "additionalProperties": true }, true] },
            },
            "required": ["minimum"],
        });
        assert_eq!(
            adapt_schema(&schema),
            json!({
                "type": "object",
                "properties": {
                    "minimum": { "type": "integer", "description": "At least one.\n{\"minimum\":1}" },
                    "list": {
                        "type": "array",
                        "items": { "type": "object", "additionalProperties": false },
                        "description": "{\"maxItems\":3}",
                    },
                    "any": { "anyOf": [{ "properties": {}, "additionalProperties": false }, true] },
                },
                "required": ["minimum"],
                "additionalProperties": false,
            })
        );
        for other in [json!(true), json!(null), json!({ "type": "string", "enum": ["a"] })] {
            assert_eq!(adapt_schema(&other), other);
        }
    }
}
