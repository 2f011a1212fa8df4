//! The two names of each field: the vendor accepts `mimeType` and, as its own libraries write it,
//! `mime_type`.

use serde_json::Value;

/// Fields with arbitrary values, whose keys are not field names.
const FREE: [&str; 6] =
    ["args", "labels", "parametersJsonSchema", "properties", "response", "responseJsonSchema"];

/// Renames every field to its first name.
pub(super) fn to_camel_case_fields(body: Value) -> Value {
    match body {
        Value::Object(fields) => Value::Object(fields.into_iter().map(camel_case_field).collect()),
        Value::Array(all) => all.into_iter().map(to_camel_case_fields).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn camel_case_field((key, value): (String, Value)) -> (String, Value) {
    let name = to_camel_case(&key);
    let value = if FREE.contains(&name.as_str()) { value } else { to_camel_case_fields(value) };
    (name, value)
}

fn to_camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(letters.as_str());
    }
    camel
}
