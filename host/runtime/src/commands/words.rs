//! Parses the words that a user typed after a command's name. Pure.
//!
//! Words are assigned in the order in which the schema lists its properties, and each is read as
//! its property's type. A text property with `"x-capture-rest": true` takes all remaining words.

use jaato_types::hooks::WordChoice;
use jaato_types::{CommandSpec, Error, ErrorKind};
use serde_json::{Map, Number, Value};

use super::{empty_arguments, usage_hint};

/// The mark of a parameter that takes the rest of the words.
const CAPTURE_REST: &str = "x-capture-rest";

/// Converts words to arguments.
pub(super) fn arguments_from_words(spec: &CommandSpec, words: &[String]) -> Result<Value, Error> {
    match words {
        [] => Ok(empty_arguments()),
        [word] if word.trim_start().starts_with('{') => parse_object(spec, word),
        words => arguments_in_order(spec, words),
    }
}

/// Maximum number of allowed words that the usage line shows instead of a parameter's name.
const USAGE_WORDS_MAX: usize = 3;

/// Returns a command's usage line: required parameters in `<…>`, others in `[…]`. A parameter with
/// few allowed words is shown as these words.
pub(super) fn usage_line(spec: &CommandSpec) -> String {
    let required = spec.parameters.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let mut text = spec.name.clone();
    for (place, (name, schema)) in schema_properties(spec).enumerate() {
        let words = listed_choices(spec, place);
        let words: Vec<&str> = words.iter().map(|choice| choice.text.as_str()).collect();
        let shown = match words.as_slice() {
            // The name of a switch says more than `true|false`.
            _ if schema_type(schema) == "boolean" => name.to_owned(),
            words @ [_, ..] if words.len() <= USAGE_WORDS_MAX => words.join("|"),
            _ => name.to_owned(),
        };
        let rest = if accepts_rest(schema) { "…" } else { "" };
        let word = if is_required(name) {
            format!(" <{shown}{rest}>")
        } else {
            format!(" [{shown}{rest}]")
        };
        text.push_str(&word);
    }
    text
}

/// Lists the words that the schema allows for the parameter in a place.
pub(super) fn listed_choices(spec: &CommandSpec, place: usize) -> Vec<WordChoice> {
    let Some((_, schema)) = schema_properties(spec).nth(place) else { return Vec::new() };
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut values = Vec::new();
    let forms = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    for form in forms.chain([schema]) {
        values.extend(form.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
        values.extend(form.get("const").cloned());
    }
    if schema_type(schema) == "boolean" {
        values.extend([Value::Bool(true), Value::Bool(false)]);
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    values.iter().filter_map(text).map(|text| WordChoice::new(text, description)).collect()
}

fn parse_object(spec: &CommandSpec, word: &str) -> Result<Value, Error> {
    serde_json::from_str(word)
        .map_err(|error| invalid_word_error(spec, format!("the arguments are not JSON: {error}")))
}

fn arguments_in_order(spec: &CommandSpec, words: &[String]) -> Result<Value, Error> {
    let mut properties = schema_properties(spec);
    let mut arguments = Map::new();
    let mut rest = words;
    while let [word, more @ ..] = rest {
        let Some((name, schema)) = properties.next() else {
            return Err(invalid_word_error(spec, format!("unexpected word: `{word}`")));
        };
        if accepts_rest(schema) {
            arguments.insert(name.clone(), rest.join(" ").into());
            break;
        }
        arguments.insert(name.clone(), parse_word(spec, name, schema, word)?);
        rest = more;
    }
    Ok(Value::Object(arguments))
}

fn schema_properties(spec: &CommandSpec) -> impl Iterator<Item = (&String, &Value)> {
    spec.parameters.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn accepts_rest(schema: &Value) -> bool {
    schema.get(CAPTURE_REST) == Some(&Value::Bool(true)) && schema_type(schema) == "string"
}

/// Returns a parameter's type, ignoring `null` if the parameter is optional.
fn schema_type(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("null")
        }
        // A choice of texts may have no type. Any other untyped value is given as JSON.
        _ if schema.get("enum").is_some() || schema.get("const").is_some() => "string",
        _ => "any",
    }
}

fn parse_word(spec: &CommandSpec, name: &str, schema: &Value, word: &str) -> Result<Value, Error> {
    let (value, wants) = match schema_type(schema) {
        "string" => (Some(word.into()), "a text"),
        "integer" => (parse_integer(word), "a whole number"),
        "number" => (word.parse().ok().and_then(Number::from_f64).map(Value::Number), "a number"),
        "boolean" => (word.parse::<bool>().ok().map(Value::Bool), "true or false"),
        "any" => (Some(serde_json::from_str(word).unwrap_or_else(|_| word.into())), "anything"),
        _ => (serde_json::from_str(word).ok(), "JSON"),
    };
    value.ok_or_else(|| invalid_word_error(spec, format!("`{name}` takes {wants}, not `{word}`")))
}

fn parse_integer(word: &str) -> Option<Value> {
    let signed = word.parse::<i64>().ok().map(Value::from);
    signed.or_else(|| word.parse::<u64>().ok().map(Value::from))
}

fn invalid_word_error(spec: &CommandSpec, what: String) -> Error {
    let text = format!("cannot parse the command `{}`: {what}", spec.name);
    Error::new(ErrorKind::InvalidArguments, text).with_hint(usage_hint(spec))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn note_command() -> CommandSpec {
        let properties = json!({
            "count": { "type": "integer" },
            "loud": { "type": ["boolean", "null"] },
            "part": { "type": "number" },
            "where": { "enum": ["here", "there"] },
            "list": { "type": "array" },
            "text": { "type": "string", "x-capture-rest": true },
        });
        let parameters = json!({ "properties": properties, "required": ["count"] });
        let (name, description) = ("note".to_owned(), String::new());
        CommandSpec { name, description, parameters, ..CommandSpec::default() }
    }

    #[track_caller]
    fn check_arguments(spec: &CommandSpec, words: &[&str], expected: Result<Value, &str>) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let expected =
            expected.map_err(|what| format!("cannot parse the command `{}`: {what}", spec.name));
        assert_eq!(arguments_from_words(spec, &words).map_err(|error| error.message), expected);
    }

    #[test]
    fn command_words_are_parsed_by_their_parameter_types() {
        check_arguments(&note_command(), &[], Ok(json!({})));
        check_arguments(&note_command(), &["-7"], Ok(json!({ "count": -7 })));
        check_arguments(
            &note_command(),
            &["18446744073709551615", "true", "0.5", "here", "[1]", "a", "", "b c"],
            Ok(json!({
                "count": u64::MAX, "loud": true, "part": 0.5, "where": "here", "list": [1],
                "text": "a  b c",
            })),
        );
    }

    #[test]
    fn enum_values_of_a_parameter_are_its_completions() {
        let words = |place| -> Vec<String> {
            listed_choices(&note_command(), place).into_iter().map(|choice| choice.text).collect()
        };
        assert_eq!(words(0), Vec::<String>::new());
        assert_eq!(words(1), ["true", "false"]);
        assert_eq!(words(3), ["here", "there"]);
        assert_eq!(words(9), Vec::<String>::new());
        let choice = json!({ "anyOf": [{ "enum": ["a", 1] }, { "type": "null" }] });
        let parameters = json!({ "properties": { "x": choice } });
        let odd = CommandSpec { parameters, ..note_command() };
        let found: Vec<_> = listed_choices(&odd, 0).into_iter().map(|choice| choice.text).collect();
        assert_eq!(found, ["a", "1"]);
    }

    #[test]
    fn invalid_word_error_names_the_parameter_and_its_type() {
        check_arguments(&note_command(), &["7.5"], Err("`count` takes a whole number, not `7.5`"));
        check_arguments(
            &note_command(),
            &["7", "yes"],
            Err("`loud` takes true or false, not `yes`"),
        );
        check_arguments(
            &note_command(),
            &["7", "true", "inf"],
            Err("`part` takes a number, not `inf`"),
        );
        check_arguments(
            &note_command(),
            &["7", "true", "1", "x", "[1"],
            Err("`list` takes JSON, not `[1`"),
        );
        let usage = "note <count> [loud] [part] [here|there] [list] [text…]";
        assert_eq!(usage_line(&note_command()), usage);
    }

    #[test]
    fn single_json_object_is_used_as_the_arguments() {
        check_arguments(&note_command(), &[r#" {"text": "a"}"#], Ok(json!({ "text": "a" })));
        let words = [r#"{"text""#.to_owned()];
        let error = arguments_from_words(&note_command(), &words).unwrap_err().message;
        assert!(error.contains("the arguments are not JSON: EOF"), "{error}");
    }

    #[test]
    fn a_command_without_parameters_takes_no_word() {
        let bare = CommandSpec { parameters: Value::Null, ..note_command() };
        check_arguments(&bare, &[], Ok(json!({})));
        check_arguments(&bare, &["x"], Err("unexpected word: `x`"));
    }

    #[test]
    fn only_text_parameters_capture_the_rest_of_the_words() {
        let parameters = json!({ "properties": {
            "n": { "type": "integer", "x-capture-rest": true },
            "any": {},
        } });
        let odd = CommandSpec { parameters, ..note_command() };
        check_arguments(&odd, &["1", "2"], Ok(json!({ "n": 1, "any": 2 })));
        check_arguments(&odd, &["1", "two"], Ok(json!({ "n": 1, "any": "two" })));
        check_arguments(&odd, &["1", "2", "3"], Err("unexpected word: `3`"));
    }
}
