//! Checks whether a schema allows strict mode, and simplifies schemas for servers that support a
//! single type for each value. Pure.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

/// The deepest schema that strict mode allows.
const STRICT_DEPTH_MAX: usize = 10;

/// The keywords that strict mode allows.
const STRICT_WORDS: [&str; 20] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "properties",
    "required",
    "title",
    "type",
];

/// Returns true if an output schema fits the rules of strict mode. Otherwise it is still sent, and
/// the model follows it without a guarantee.
pub fn is_strict(schema: &Value) -> bool {
    schema["type"] == "object" && fits_strict(schema, STRICT_DEPTH_MAX)
}

/// Returns true if a schema fits the rules of strict mode: each object requires all its properties
/// and allows no others, and only supported keywords are used.
fn fits_strict(schema: &Value, depth: usize) -> bool {
    let (Some(words), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
        return false;
    };
    let is_known = words.keys().all(|word| STRICT_WORDS.contains(&word.as_str()));
    let each = |word: &str| {
        let inner = words.get(word).and_then(Value::as_object);
        inner.is_none_or(|inner| inner.values().all(|schema| fits_strict(schema, depth)))
    };
    let of_items = words.get("items").is_none_or(|items| fits_strict(items, depth));
    let of_any = words.get("anyOf").is_none_or(|any| {
        any.as_array().is_some_and(|any| any.iter().all(|schema| fits_strict(schema, depth)))
    });
    is_known
        && is_closed(schema)
        && of_items
        && of_any
        && ["properties", "$defs", "definitions"].into_iter().all(each)
}

/// Returns true for a closed object, which requires all its properties, and for all other values.
fn is_closed(schema: &Value) -> bool {
    let is_object = match &schema["type"] {
        Value::String(name) => name == "object",
        Value::Array(names) => names.iter().any(|name| name == "object"),
        _ => schema.get("properties").is_some(),
    };
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_required = |name: &String| required.iter().any(|one| one == name);
    let has_all = || schema["properties"].as_object().is_some_and(|it| it.keys().all(is_required));
    !is_object || (schema["additionalProperties"] == false && has_all())
}

/// Returns true if a schema has a list of types anywhere.
pub(super) fn has_type_lists(schema: &Value) -> bool {
    match schema {
        Value::Object(words) => {
            words.get("type").is_some_and(Value::is_array) || words.values().any(has_type_lists)
        }
        Value::Array(list) => list.iter().any(has_type_lists),
        _ => false,
    }
}

/// Returns a schema without lists of types. Drops `null`, because a nullable value may be left out.
/// Several other types become variants of `anyOf`.
pub(super) fn without_type_lists(schema: &Value) -> Value {
    match schema {
        Value::Object(words) => {
            let each = words.iter().map(|(word, value)| (word.clone(), without_type_lists(value)));
            let mut written: Map<String, Value> = each.collect();
            if let Some(Value::Array(names)) = words.get("type") {
                let names: Vec<&Value> = names.iter().filter(|name| *name != "null").collect();
                written.remove("type");
                if let [only] = names.as_slice() {
                    written.insert("type".to_owned(), (*only).clone());
                } else if !written.contains_key("anyOf") {
                    let any: Vec<Value> =
                        names.iter().map(|name| json!({ "type": name })).collect();
                    written.insert("anyOf".to_owned(), any.into());
                }
            }
            Value::Object(written)
        }
        Value::Array(list) => list.iter().map(without_type_lists).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_lists_become_a_single_type_or_any_of() {
        let schema = json!({ "type": "object", "required": ["type"], "properties": {
            "type": { "type": ["string", "null"], "enum": ["a"] },
            "list": { "type": "array", "items": { "type": ["integer", "string", "null"] } },
            "any": { "type": ["integer", "null"], "anyOf": [{ "minimum": 1 }] },
        } });
        assert!(has_type_lists(&schema));
        let written = without_type_lists(&schema);
        let expected = json!({ "type": "object", "required": ["type"], "properties": {
            "type": { "type": "string", "enum": ["a"] },
            "list": { "type": "array", "items": {
                "anyOf": [{ "type": "integer" }, { "type": "string" }],
            } },
            "any": { "type": "integer", "anyOf": [{ "minimum": 1 }] },
        } });
        assert_eq!(written, expected);
        assert!(!has_type_lists(&written));
        assert_eq!(without_type_lists(&written), written);
    }

    fn schema_with(properties: Value, required: Value) -> Value {
        json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false })
    }

    #[test]
    fn schema_that_follows_all_rules_is_strict() {
        assert!(is_strict(&schema_with(json!({}), json!([]))));
        let inner = schema_with(json!({ "b": { "type": ["string", "null"] } }), json!(["b"]));
        let list = json!({ "type": "array", "items": { "$ref": "#/$defs/inner" } });
        let mut whole =
            schema_with(json!({ "a": list, "c": { "anyOf": [inner] } }), json!(["c", "a"]));
        whole["$defs"] = json!({ "inner": inner });
        assert!(is_strict(&whole));
        // At each place where a rule can be broken.
        for path in ["/$defs/inner", "/properties/c/anyOf/0", ""] {
            let mut open = whole.clone();
            open.pointer_mut(path).unwrap()["additionalProperties"] = json!(true);
            assert!(!is_strict(&open), "{path}");
            let mut optional = whole.clone();
            optional.pointer_mut(path).unwrap()["required"] = json!([]);
            assert!(!is_strict(&optional), "{path}");
            let mut other = whole.clone();
            other.pointer_mut(path).unwrap()["patternProperties"] = json!({});
            assert!(!is_strict(&other), "{path}");
        }
    }

    #[test]
    fn schema_that_is_not_a_closed_object_is_not_strict() {
        for schema in [
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": false }),
            schema_with(json!({ "a": true }), json!(["a"])),
            schema_with(json!({ "a": { "type": "array", "items": false } }), json!(["a"])),
            schema_with(json!({ "a": { "anyOf": {} } }), json!(["a"])),
            json!(null),
            json!("x"),
        ] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }

    #[test]
    fn too_deep_schema_is_not_strict() {
        let nested = |depth: usize| {
            (1..depth).fold(schema_with(json!({}), json!([])), |it, _| {
                schema_with(json!({ "a": it }), json!(["a"]))
            })
        };
        assert!(is_strict(&nested(STRICT_DEPTH_MAX)) && !is_strict(&nested(STRICT_DEPTH_MAX + 1)));
    }
}
