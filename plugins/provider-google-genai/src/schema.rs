//! Adapts a JSON Schema to the keywords that the vendor supports. Pure.
//!
//! Unsupported keywords move into the description, so that the model at least reads them.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

/// The supported keywords, except those that contain schemas.
const PLAIN: [&str; 14] = [
    "$anchor",
    "$id",
    "$ref",
    "description",
    "enum",
    "format",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "propertyOrdering",
    "required",
    "title",
    "type",
];

/// Keywords that contain a list of schemas.
const WITH_LIST: [&str; 3] = ["anyOf", "oneOf", "prefixItems"];

/// Keywords that contain schemas by name.
const WITH_NAMES: [&str; 2] = ["$defs", "properties"];

/// The supported formats.
const FORMATS: [&str; 7] = ["date", "date-time", "double", "float", "int32", "int64", "time"];

/// Keywords that do not constrain a value.
const SILENT: [&str; 9] = [
    "$comment",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "deprecated",
    "example",
    "examples",
    "readOnly",
    "writeOnly",
];

/// The older name of `$defs`.
const DEFINITIONS: &str = "definitions";

/// Adapts a schema and its inner schemas.
pub(crate) fn adapt_schema(schema: &Value) -> Value {
    let Value::Object(words) = schema else { return json!({}) };
    let mut fitted = GoogleSchemaDraft::default();
    for (word, value) in words {
        fitted.add_keyword(word, value);
    }
    fitted.finish()
}

/// A schema in progress.
#[derive(Default)]
struct GoogleSchemaDraft {
    kept: Map<String, Value>,
    /// Keywords that go into the description.
    said: Map<String, Value>,
}

impl GoogleSchemaDraft {
    fn add_keyword(&mut self, word: &str, value: &Value) {
        let name = if word == DEFINITIONS { "$defs" } else { word };
        match (name, value) {
            ("items" | "additionalProperties", Value::Object(_)) => {
                self.set_keyword(name, adapt_schema(value))
            }
            ("additionalProperties", Value::Bool(_)) => self.set_keyword(name, value.clone()),
            (_, Value::Array(list)) if WITH_LIST.contains(&name) => {
                self.set_keyword(name, list.iter().map(adapt_schema).collect());
            }
            (_, Value::Object(named)) if WITH_NAMES.contains(&name) => {
                let named = named.iter().map(|(name, schema)| (name.clone(), adapt_schema(schema)));
                self.set_keyword(name, Value::Object(named.collect()));
            }
            ("allOf", Value::Array(all)) => all.iter().for_each(|one| self.add_schema(one)),
            ("const", Value::String(_) | Value::Number(_)) => {
                self.set_keyword("enum", json!([value]))
            }
            ("enum", Value::Array(values)) => self.add_enum(values),
            ("$ref", Value::String(target)) => {
                let target = target.replacen("#/definitions/", "#/$defs/", 1);
                self.set_keyword(name, json!(target));
            }
            ("format", Value::String(format)) if !FORMATS.contains(&format.as_str()) => {}
            ("exclusiveMinimum", Value::Number(_)) => {
                self.add_exclusive_bound(word, "minimum", value, 1)
            }
            ("exclusiveMaximum", Value::Number(_)) => {
                self.add_exclusive_bound(word, "maximum", value, -1)
            }
            _ if PLAIN.contains(&name) => self.set_keyword(name, value.clone()),
            _ if SILENT.contains(&name) || name.starts_with("x-") => {}
            _ => {
                self.said.insert(word.to_owned(), value.clone());
            }
        }
    }

    /// Keeps the texts and numbers of an enum. The vendor accepts no other values.
    fn add_enum(&mut self, values: &[Value]) {
        let is_plain = |value: &&Value| value.is_string() || value.is_number();
        let plain: Vec<Value> = values.iter().filter(is_plain).cloned().collect();
        if plain.len() < values.len() {
            self.said.insert("enum".to_owned(), json!(values));
        }
        // A list from which more than null was removed would have a different meaning.
        if plain.len() == values.iter().filter(|value| !value.is_null()).count()
            && !plain.is_empty()
        {
            self.set_keyword("enum", Value::Array(plain));
        }
    }

    /// Writes an exclusive bound of whole numbers as an inclusive one, and any other into the
    /// description.
    fn add_exclusive_bound(&mut self, word: &str, inclusive: &str, value: &Value, step: i64) {
        match value.as_i64().and_then(|bound| bound.checked_add(step)) {
            Some(bound) => self.set_keyword(inclusive, json!(bound)),
            None => {
                self.said.insert(word.to_owned(), value.clone());
            }
        }
    }

    /// Adds one of several schemas that all apply. Properties are merged, and for a repeated
    /// keyword the first value counts.
    fn add_schema(&mut self, schema: &Value) {
        let Value::Object(words) = adapt_schema(schema) else { return };
        for (word, value) in words {
            match (self.kept.get_mut(&word), value) {
                (Some(Value::Object(known)), Value::Object(more)) => {
                    for (name, value) in more {
                        known.entry(name).or_insert(value);
                    }
                }
                (Some(Value::Array(known)), Value::Array(more)) if word == "required" => {
                    known.extend(more);
                }
                (Some(_), value) => {
                    self.said.entry(word).or_insert(value);
                }
                (None, value) => {
                    self.kept.insert(word, value);
                }
            }
        }
    }

    fn set_keyword(&mut self, word: &str, value: Value) {
        self.kept.insert(word.to_owned(), value);
    }

    fn finish(mut self) -> Value {
        if !self.said.is_empty() {
            let said = Value::Object(self.said).to_string();
            let text = match self.kept.get("description").and_then(Value::as_str) {
                Some(text) => format!("{text}\n{said}"),
                None => said,
            };
            self.kept.insert("description".to_owned(), json!(text));
        }
        // Next to a reference, the vendor accepts only keywords that begin with `$`.
        let has_more = self.kept.keys().any(|word| !word.starts_with('$'));
        if has_more && !self.kept.contains_key("anyOf") {
            if let Some(target) = self.kept.shift_remove("$ref") {
                self.kept.insert("anyOf".to_owned(), json!([{ "$ref": target }]));
            }
        } else if has_more {
            self.kept.shift_remove("$ref");
        }
        Value::Object(self.kept)
    }
}

/// Returns true if a schema describes an object that has no properties and cannot have any.
pub(crate) fn has_no_properties(schema: &Value) -> bool {
    let is_empty = |word: &str| match &schema[word] {
        Value::Null | Value::Bool(false) => true,
        Value::Object(inner) => inner.is_empty(),
        _ => false,
    };
    let holds_more = ["$ref", "anyOf", "oneOf"].iter().any(|word| schema.get(*word).is_some());
    !holds_more && is_empty("properties") && is_empty("additionalProperties")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_adapted_schema(schema: Value, expected: Value) {
        assert_eq!(adapt_schema(&schema), expected);
    }

    #[test]
    fn supported_keywords_are_kept_and_others_move_to_the_description() {
        check_adapted_schema(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "Look",
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "pattern": "^a", "description": "A word." },
                    "n": { "type": ["integer", "null"], "format": "uint", "minimum": 0, "default": 3 },
                    "at": { "type": "string", "format": "date-time", "x-mark": 1 },
                    "list": { "type": "array", "items": { "minLength": 1 }, "uniqueItems": true },
                    "any": true,
                },
                "required": ["pattern"],
                "additionalProperties": false,
            }),
            json!({
                "title": "Look",
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "description": "A word.\n{\"pattern\":\"^a\"}" },
                    "n": { "type": ["integer", "null"], "minimum": 0, "description": "{\"default\":3}" },
                    "at": { "type": "string", "format": "date-time" },
                    "list": {
                        "type": "array",
                        "items": { "description": "{\"minLength\":1}" },
                        "description": "{\"uniqueItems\":true}",
                    },
                    "any": {},
                },
                "required": ["pattern"],
                "additionalProperties": false,
            }),
        );
    }

    #[test]
    fn enum_values_are_only_texts_and_numbers() {
        check_adapted_schema(json!({ "const": "a" }), json!({ "enum": ["a"] }));
        check_adapted_schema(json!({ "enum": ["a", 1] }), json!({ "enum": ["a", 1] }));
        check_adapted_schema(
            json!({ "enum": ["a", null] }),
            json!({ "enum": ["a"], "description": "{\"enum\":[\"a\",null]}" }),
        );
        check_adapted_schema(
            json!({ "enum": [true, "a"] }),
            json!({ "description": "{\"enum\":[true,\"a\"]}" }),
        );
        check_adapted_schema(
            json!({ "const": true }),
            json!({ "description": "{\"const\":true}" }),
        );
    }

    #[test]
    fn references_have_no_sibling_keywords_and_point_to_defs() {
        check_adapted_schema(
            json!({
                "properties": {
                    "a": { "$ref": "#/definitions/A" },
                    "b": { "$ref": "#/$defs/A", "description": "B." },
                    "c": { "$ref": "#/$defs/A", "anyOf": [{ "type": "string" }] },
                },
                "definitions": { "A": { "type": "string", "maxLength": 3 } },
            }),
            json!({
                "properties": {
                    "a": { "$ref": "#/$defs/A" },
                    "b": { "description": "B.", "anyOf": [{ "$ref": "#/$defs/A" }] },
                    "c": { "anyOf": [{ "type": "string" }] },
                },
                "$defs": { "A": { "type": "string", "description": "{\"maxLength\":3}" } },
            }),
        );
    }

    #[test]
    fn all_of_schemas_are_merged_into_one() {
        check_adapted_schema(
            json!({
                "type": "object",
                "properties": { "a": { "type": "string" } },
                "required": ["a"],
                "allOf": [
                    { "properties": { "b": { "type": "integer" } }, "required": ["b"] },
                    { "type": "string", "title": "T" },
                ],
            }),
            json!({
                "type": "object",
                "properties": { "a": { "type": "string" }, "b": { "type": "integer" } },
                "required": ["a", "b"],
                "title": "T",
                "description": "{\"type\":\"string\"}",
            }),
        );
    }

    #[test]
    fn exclusive_integer_bounds_become_inclusive() {
        check_adapted_schema(
            json!({ "exclusiveMinimum": 0, "exclusiveMaximum": 10 }),
            json!({ "minimum": 1, "maximum": 9 }),
        );
        check_adapted_schema(
            json!({ "exclusiveMinimum": 0.5 }),
            json!({ "description": "{\"exclusiveMinimum\":0.5}" }),
        );
    }

    #[test]
    fn value_that_is_not_a_schema_becomes_an_empty_schema() {
        for odd in [json!(true), json!(false), json!(null), json!("x"), json!([1])] {
            check_adapted_schema(odd, json!({}));
        }
        assert!(has_no_properties(&json!({ "type": "object", "additionalProperties": false })));
        assert!(has_no_properties(&json!({ "properties": {} })) && has_no_properties(&json!({})));
        assert!(!has_no_properties(&json!({ "properties": { "a": {} } })));
        assert!(!has_no_properties(&json!({ "type": "object", "additionalProperties": true })));
        assert!(!has_no_properties(&json!({ "$ref": "#/$defs/A" })));
    }
}
