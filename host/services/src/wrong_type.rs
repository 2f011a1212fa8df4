//! Explains in plain words that a setting has the wrong type.

use jaato_types::text::truncate_bytes;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

/// Maximum bytes of a value to show.
const VALUE_BYTES_MAX: usize = 60;

/// Returns the error text for a value, and a hint if the fix is clear. Errors other than a wrong
/// type keep the schema's own text.
pub fn wrong_type_message(error: &ValidationError<'_>) -> (String, Option<&'static str>) {
    let ValidationErrorKind::Type { kind } = error.kind() else { return (error.to_string(), None) };
    let wanted: Vec<String> = match kind {
        TypeKind::Single(wanted) => vec![wanted.to_string()],
        TypeKind::Multiple(set) => set.iter().map(|wanted| wanted.to_string()).collect(),
    };
    let value: &Value = error.instance();
    let is_quoted = matches!(value, Value::String(text) if could_parse_as(text, &wanted));
    let hint = is_quoted.then_some("leave out the quotes");
    // A missing key is null, and TOML cannot express null, so do not mention it.
    let wanted: Vec<&str> = wanted
        .iter()
        .filter(|wanted| *wanted != "null")
        .map(|wanted| toml_type_name(wanted))
        .collect();
    let text = format!(
        "{} is {}, and it must be {}",
        format_value(value),
        value_type_name(value),
        wanted.join(" or ")
    );
    (text, hint)
}

/// Returns true if a text holds a value of the wanted type.
fn could_parse_as(text: &str, wanted: &[String]) -> bool {
    wanted.iter().any(|wanted| match wanted.as_str() {
        "integer" => text.parse::<i64>().is_ok(),
        "number" => text.parse::<f64>().is_ok(),
        "boolean" => text.parse::<bool>().is_ok(),
        _ => false,
    })
}

fn format_value(value: &Value) -> String {
    format!("`{}`", truncate_bytes(&value.to_string(), VALUE_BYTES_MAX))
}

fn value_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// Returns the name that TOML authors use for a type.
fn toml_type_name(of_schema: &str) -> &str {
    match of_schema {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text in quotes",
        "array" => "a list",
        "object" => "a table",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_message(types: Value, value: Value, text: &str, hint: Option<&str>) {
        let validator = jsonschema::validator_for(&json!({ "type": types })).unwrap();
        let error = validator.iter_errors(&value).next().unwrap();
        assert_eq!(wrong_type_message(&error), (text.to_owned(), hint));
    }

    #[test]
    fn wrong_type_is_described_in_plain_words() {
        let number = "`\"8\"` is a text, and it must be a whole number";
        check_message(json!(["null", "integer"]), json!("8"), number, Some("leave out the quotes"));
        let soon = "`\"soon\"` is a text, and it must be a number";
        check_message(json!("number"), json!("soon"), soon, None);
        let text = "`5` is a number, and it must be a text in quotes";
        check_message(json!("string"), json!(5), text, None);
        let whole = "`1.5` is a number with a fraction, and it must be a whole number";
        check_message(json!("integer"), json!(1.5), whole, None);
        let switch = "`\"true\"` is a text, and it must be true or false";
        check_message(json!("boolean"), json!("true"), switch, Some("leave out the quotes"));
        check_message(json!("object"), json!([]), "`[]` is a list, and it must be a table", None);
    }

    #[test]
    fn a_long_value_is_cut() {
        let validator = jsonschema::validator_for(&json!({ "type": "integer" })).unwrap();
        let value = json!("é".repeat(VALUE_BYTES_MAX));
        let error = validator.iter_errors(&value).next().unwrap();
        assert!(wrong_type_message(&error).0.len() < 2 * VALUE_BYTES_MAX + 20);
    }

    #[test]
    fn other_schema_errors_keep_their_message() {
        let validator = jsonschema::validator_for(&json!({ "maximum": 9 })).unwrap();
        let value = json!(10);
        let error = validator.iter_errors(&value).next().unwrap();
        assert_eq!(wrong_type_message(&error).0, "10 is greater than the maximum of 9");
    }
}
