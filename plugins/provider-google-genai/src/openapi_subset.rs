//! Writes an adapted schema in the OpenAPI subset that older models and gateways accept. Pure.
//!
//! References are resolved, and an endless schema becomes an object of any kind.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

/// The depth limit of a schema. The vendor accepts no more, and a recursive schema has no end.
const DEPTH_MAX: usize = 12;

/// Keywords with the same meaning in both forms.
const SAME: [&str; 7] =
    ["description", "maxItems", "maximum", "minItems", "minimum", "propertyOrdering", "title"];

/// Writes a schema that [`adapt_schema`](crate::schema::adapt_schema) has adapted.
pub(crate) fn reduce_schema(schema: &Value) -> Value {
    SchemaReducer { root: schema }.reduce_schema_at(schema, DEPTH_MAX)
}

struct SchemaReducer<'a> {
    root: &'a Value,
}

impl SchemaReducer<'_> {
    fn reduce_schema_at(&self, schema: &Value, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return json!({ "type": "OBJECT" }) };
        if let Some(target) = schema["$ref"].as_str() {
            let target = target.strip_prefix('#').and_then(|path| self.root.pointer(path));
            return target
                .map_or(json!({ "type": "OBJECT" }), |found| self.reduce_schema_at(found, depth));
        }
        let mut written = Map::new();
        for word in SAME {
            if let Some(value) = schema.get(word) {
                written.insert(word.to_owned(), value.clone());
            }
        }
        let variants = ["anyOf", "oneOf"].iter().find_map(|word| schema[*word].as_array());
        match variants {
            Some(variants) => self.add_variants(variants, depth, &mut written),
            None => self.add_types(schema, depth, &mut written),
        }
        Value::Object(written)
    }

    fn add_variants(&self, variants: &[Value], depth: usize, written: &mut Map<String, Value>) {
        let is_null = |variant: &&Value| variant["type"] == "null";
        if variants.iter().any(|variant| is_null(&variant)) {
            written.insert("nullable".to_owned(), json!(true));
        }
        let others = variants.iter().filter(|variant| !is_null(variant));
        let mut others: Vec<Value> =
            others.map(|other| self.reduce_schema_at(other, depth)).collect();
        match (others.len(), others.pop()) {
            (1, Some(Value::Object(only))) => {
                for (word, value) in only {
                    written.entry(word).or_insert(value);
                }
            }
            (_, Some(last)) => {
                others.push(last);
                written.insert("anyOf".to_owned(), Value::Array(others));
            }
            (_, None) => {
                written.insert("type".to_owned(), json!("STRING"));
            }
        }
    }

    fn add_types(&self, schema: &Value, depth: usize, written: &mut Map<String, Value>) {
        let listed = match &schema["type"] {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if listed.contains(&"null") {
            written.insert("nullable".to_owned(), json!(true));
        }
        let types: Vec<&str> = listed.into_iter().filter(|name| *name != "null").collect();
        match types.as_slice() {
            [] => self.add_type(inferred_type(schema), schema, depth, written),
            [only] => self.add_type(only, schema, depth, written),
            several => {
                let variants = several.iter().map(|name| {
                    let mut variant = Map::new();
                    self.add_type(name, schema, depth, &mut variant);
                    Value::Object(variant)
                });
                written.insert("anyOf".to_owned(), variants.collect());
            }
        }
    }

    fn add_type(&self, name: &str, schema: &Value, depth: usize, written: &mut Map<String, Value>) {
        written.insert("type".to_owned(), json!(name.to_uppercase()));
        let mut keep = |word: &str, value: Value| written.insert(word.to_owned(), value);
        let format = schema["format"].as_str().unwrap_or_default();
        match (name, format) {
            ("string", "date-time")
            | ("integer", "int32" | "int64")
            | ("number", "float" | "double") => {
                keep("format", json!(format));
            }
            _ => {}
        }
        match name {
            "string" => {
                let values = schema["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
                if !values.is_empty() && values.iter().all(Value::is_string) {
                    keep("enum", json!(values));
                }
            }
            "array" => {
                let item = schema.get("items").or_else(|| schema["prefixItems"].get(0));
                let item =
                    item.map_or(json!({ "type": "STRING" }), |it| self.reduce_schema_at(it, depth));
                keep("items", item);
            }
            "object" => {
                let Some(named) = schema["properties"].as_object().filter(|it| !it.is_empty())
                else {
                    return;
                };
                let properties = named
                    .iter()
                    .map(|(name, inner)| (name.clone(), self.reduce_schema_at(inner, depth)));
                keep("properties", Value::Object(properties.collect()));
                let is_there =
                    |name: &&Value| name.as_str().is_some_and(|it| named.contains_key(it));
                let required = schema["required"].as_array().into_iter().flatten();
                let required: Vec<&Value> = required.filter(is_there).collect();
                if !required.is_empty() {
                    keep("required", json!(required));
                }
            }
            _ => {}
        }
    }
}

/// Infers the type of a schema that names none, because each schema needs one.
fn inferred_type(schema: &Value) -> &'static str {
    if schema.get("properties").is_some() || schema.get("additionalProperties").is_some() {
        "object"
    } else if schema.get("items").is_some() || schema.get("prefixItems").is_some() {
        "array"
    } else if schema["enum"].get(0).is_some_and(Value::is_number) || schema.get("minimum").is_some()
    {
        "number"
    } else {
        "string"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::adapt_schema;

    #[track_caller]
    fn check_reduced_schema(schema: Value, expected: Value) {
        assert_eq!(reduce_schema(&adapt_schema(&schema)), expected);
    }

    #[test]
    fn reduced_schema_has_uppercase_types_and_one_type_per_schema() {
        check_reduced_schema(
            json!({
                "type": "object",
                "properties": {
                    "a": { "type": ["string", "null"], "enum": ["x", "y"], "description": "A." },
                    "b": { "type": ["integer", "boolean"], "minimum": 0 },
                    "c": { "type": "array" },
                    "d": {},
                    "e": { "type": "integer", "enum": [1, 2], "format": "int32" },
                    "f": { "type": "object", "additionalProperties": { "type": "string" } },
                },
                "required": ["a", "gone"],
                "additionalProperties": false,
            }),
            json!({
                "type": "OBJECT",
                "properties": {
                    "a": { "description": "A.", "nullable": true, "type": "STRING", "enum": ["x", "y"] },
                    "b": { "minimum": 0, "anyOf": [{ "type": "INTEGER" }, { "type": "BOOLEAN" }] },
                    "c": { "type": "ARRAY", "items": { "type": "STRING" } },
                    "d": { "type": "STRING" },
                    "e": { "type": "INTEGER", "format": "int32" },
                    "f": { "type": "OBJECT" },
                },
                "required": ["a"],
            }),
        );
    }

    #[test]
    fn reduced_schema_inlines_references_and_keeps_variants() {
        check_reduced_schema(
            json!({
                "properties": {
                    "a": { "anyOf": [{ "$ref": "#/$defs/A" }, { "type": "null" }] },
                    "b": { "oneOf": [{ "$ref": "#/$defs/A" }, { "type": "number" }] },
                    "c": { "$ref": "#/$defs/gone" },
                    "d": { "anyOf": [{ "type": "null" }] },
                },
                "$defs": { "A": { "type": "array", "items": { "type": "string" } } },
            }),
            json!({
                "type": "OBJECT",
                "properties": {
                    "a": { "nullable": true, "type": "ARRAY", "items": { "type": "STRING" } },
                    "b": { "anyOf": [
                        { "type": "ARRAY", "items": { "type": "STRING" } }, { "type": "NUMBER" }] },
                    "c": { "type": "OBJECT" },
                    "d": { "nullable": true, "type": "STRING" },
                },
            }),
        );
    }

    #[test]
    fn recursive_schema_is_reduced_to_a_limited_depth() {
        let tree = json!({
            "$ref": "#/$defs/tree",
            "$defs": { "tree": {
                "type": "object",
                "properties": { "left": { "$ref": "#/$defs/tree" } },
            } },
        });
        let mut at = &reduce_schema(&adapt_schema(&tree));
        let mut depth = 0;
        while let Some(left) = at["properties"].get("left") {
            (at, depth) = (left, depth + 1);
        }
        assert_eq!((at, depth), (&json!({ "type": "OBJECT" }), DEPTH_MAX / 2));
    }
}
