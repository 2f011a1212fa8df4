//! Converts forms of older drafts, of OpenAPI and of programming languages to 2020-12.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

/// The types of JSON Schema, each with the names that generators use instead.
const TYPES: [(&str, &[&str]); 7] = [
    ("array", &["arraylist", "list", "set", "tuple"]),
    ("boolean", &["bool"]),
    ("integer", &["byte", "int", "int32", "int64", "long", "short"]),
    ("null", &["none", "undefined", "void"]),
    ("number", &["decimal", "double", "float"]),
    ("object", &["dict", "hashmap", "hashtable", "map"]),
    ("string", &["char", "str", "text"]),
];

/// Returns the types that a schema names, or `None` if one of them is unknown, because it may be
/// any type.
pub fn known_types(value: &Value) -> Option<Value> {
    let known = |name: &Value| {
        let name = name.as_str()?.to_ascii_lowercase();
        let is_meant =
            |(known, others): &&(&str, &[&str])| *known == name || others.contains(&name.as_str());
        TYPES.iter().find(is_meant).map(|(known, _)| *known)
    };
    let Value::Array(names) = value else { return known(value).map(Value::from) };
    let mut types = Vec::new();
    for name in names {
        let name = known(name)?;
        if !types.contains(&name) {
            types.push(name);
        }
    }
    match types[..] {
        [] => None,
        [only] => Some(only.into()),
        _ => Some(json!(types)),
    }
}

/// Writes `"minimum": 1, "exclusiveMinimum": true` as `"exclusiveMinimum": 1`.
pub fn convert_exclusive_bounds(old: &Map<String, Value>, lowered: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if old.get(exclusive) == Some(&Value::Bool(true))
            && let Some(bound) = lowered.shift_remove(bound)
        {
            lowered.insert(exclusive.to_owned(), bound);
        }
    }
}

/// Allows null in addition to the schema's values (`"nullable": true`).
pub fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(only) = schema.shift_remove("const") {
        schema.insert("enum".to_owned(), json!([only]));
    }
    let add = |list: &mut Vec<Value>, null: Value| {
        if !list.contains(&null) {
            list.push(null);
        }
    };
    match schema.get_mut("type") {
        Some(Value::Array(types)) => add(types, "null".into()),
        Some(name) if *name != "null" => *name = json!([name.take(), "null"]),
        _ => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        add(values, Value::Null);
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        add(choices, json!({ "type": "null" }));
    }
}
