//! Schemas: the supported part of JSON Schema, and the subset of OpenAPI's schemas.

use serde_json::{Map, Value};

use super::{GoogleCheckResult, check_fields, expect_object, invalid_request};

/// The supported keywords of JSON Schema.
const WORDS: [&str; 20] = [
    "$anchor",
    "$defs",
    "$id",
    "$ref",
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "propertyOrdering",
    "required",
    "title",
];

/// The supported keywords of the older form.
const OPEN_WORDS: [&str; 22] = [
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "propertyOrdering",
    "required",
    "title",
    "type",
];

const OPEN_TYPES: [&str; 6] = ["ARRAY", "BOOLEAN", "INTEGER", "NUMBER", "OBJECT", "STRING"];

/// Checks a JSON Schema.
pub(super) fn check_json_schema(place: &str, schema: &Value) -> GoogleCheckResult {
    let words = expect_object(place, schema)?;
    check_fields(place, words, &[&WORDS[..], &["type"]].concat())?;
    if words.contains_key("$ref") && words.keys().any(|word| !word.starts_with('$')) {
        return Err(invalid_request(format!("{place}: next to $ref only keys with $ are allowed")));
    }
    let is_plain = |value: &Value| value.is_string() || value.is_number();
    let values = words.get("enum").map(|it| it.as_array().map(Vec::as_slice).unwrap_or_default());
    if values.is_some_and(|values| values.is_empty() || !values.iter().all(is_plain)) {
        return Err(invalid_request(format!("{place}.enum: only texts and numbers are taken")));
    }
    for word in ["items", "additionalProperties"] {
        if let Some(inner) = words.get(word).filter(|it| !(it.is_boolean() && word != "items")) {
            check_json_schema(&format!("{place}.{word}"), inner)?;
        }
    }
    for word in ["anyOf", "oneOf", "prefixItems"] {
        let inner = super::expect_list(place, words.get(word))?;
        inner.iter().try_for_each(|inner| check_json_schema(&format!("{place}.{word}"), inner))?;
    }
    for word in ["properties", "$defs"] {
        let inner = words.get(word).map(|inner| expect_object(place, inner)).transpose()?;
        for (name, inner) in inner.into_iter().flatten() {
            check_json_schema(&format!("{place}.{word}[{name}]"), inner)?;
        }
    }
    Ok(())
}

/// Checks a schema of the older form.
pub(super) fn check_openapi_schema(place: &str, schema: &Value) -> GoogleCheckResult {
    let words = expect_object(place, schema)?;
    check_fields(place, words, &OPEN_WORDS)?;
    let name = words.get("type").and_then(Value::as_str).unwrap_or_default();
    if !OPEN_TYPES.contains(&name) && !words.contains_key("anyOf") {
        return Err(invalid_request(format!("{place}.type: must be specified")));
    }
    match (name, words.get("items")) {
        ("ARRAY", None) => return Err(invalid_request(format!("{place}.items: missing field."))),
        ("ARRAY", Some(inner)) => check_openapi_schema(&format!("{place}.items"), inner)?,
        (_, Some(_)) => {
            return Err(invalid_request(format!("{place}.items: only allowed for ARRAY type")));
        }
        (_, None) => {}
    }
    if words.contains_key("enum") && name != "STRING" {
        return Err(invalid_request(format!("{place}.enum: only allowed for STRING type")));
    }
    check_openapi_properties(place, words)?;
    let variants = super::expect_list(place, words.get("anyOf"))?;
    variants
        .iter()
        .try_for_each(|variant| check_openapi_schema(&format!("{place}.any_of"), variant))
}

fn check_openapi_properties(place: &str, words: &Map<String, Value>) -> GoogleCheckResult {
    let properties = words.get("properties").map(|it| expect_object(place, it)).transpose()?;
    let is_there = |name: &Value| {
        name.as_str().is_some_and(|name| properties.is_some_and(|it| it.contains_key(name)))
    };
    if !super::expect_list(place, words.get("required"))?.iter().all(is_there) {
        return Err(invalid_request(format!("{place}.required: property is not defined")));
    }
    for (name, inner) in properties.into_iter().flatten() {
        check_openapi_schema(&format!("{place}.properties[{name}]"), inner)?;
    }
    Ok(())
}
