//! Converts a model's arguments to the types of a tool's schema if only their JSON types differ.
//!
//! Models write `3.0` or `"3"` for 3, a list as a string of JSON, null for an argument that they
//! leave out, and argument names from other programs. Only values that the schema refuses are
//! changed, and only if the schema allows exactly one type for them. All other values stay the
//! same, so that validation against the schema refuses them.

use serde_json::{Map, Number, Value};

use crate::ToolSpec;

/// The maximum depth at which values are converted. Deeper values stay the same.
const DEPTH_MAX: usize = 32;
/// The limit below which a floating point number represents every whole number exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Argument names of other agents' tools, in lower case and without `_`, with jaato's names.
const ALIASES: [(&str, &str); 27] = [
    ("filepath", "path"),
    ("filename", "path"),
    ("file", "path"),
    ("targetfile", "path"),
    ("absolutepath", "path"),
    ("directory", "path"),
    ("dirpath", "path"),
    ("oldstring", "old"),
    ("oldstr", "old"),
    ("oldtext", "old"),
    ("newstring", "new"),
    ("newstr", "new"),
    ("newtext", "new"),
    ("filetext", "content"),
    ("contents", "content"),
    ("cmd", "command"),
    ("query", "pattern"),
    ("regex", "pattern"),
    ("glob", "file_glob"),
    ("include", "file_glob"),
    ("headlimit", "max_results"),
    ("limit", "max_results"),
    ("maxcount", "max_results"),
    ("mode", "output_mode"),
    ("fixedstrings", "literal"),
    ("root", "path"),
    ("path", "root"),
];

/// Arguments that explain a call and do not affect it.
const EXPLANATIONS: [&str; 6] =
    ["description", "explanation", "justification", "reason", "reasoning", "thought"];

/// Returns a call's arguments in the types that the tool's schema requires, if their meaning is
/// clear.
///
/// Argument names are changed only for tools whose authors know jaato, not for
/// [foreign](ToolSpec::foreign) ones.
#[must_use]
pub fn fit_arguments(spec: &ToolSpec, arguments: Value) -> Value {
    let root = &spec.parameters;
    let mut arguments = arguments_as_object(arguments);
    if let (Value::Object(given), false) = (&mut arguments, spec.foreign) {
        rename_arguments(root, given);
    }
    if arguments.is_object() {
        ArgumentFitter { root }.fit_value(root, &mut arguments, 0);
    }
    arguments
}

/// Returns a call's arguments as an object if a string contains the object, or if they are missing.
#[must_use]
pub fn arguments_as_object(arguments: Value) -> Value {
    match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => {
            parse_json_if(&text, Value::is_object).unwrap_or(Value::String(text))
        }
        other => other,
    }
}

/// Renames arguments that the schema does not know to its own names for them.
fn rename_arguments(schema: &Value, given: &mut Map<String, Value>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return;
    }
    let unknown: Vec<String> =
        given.keys().filter(|name| !properties.contains_key(*name)).cloned().collect();
    for name in unknown {
        let plain = plain_name(&name);
        let same = properties.keys().find(|known| plain_name(known) == plain);
        let by_alias = || {
            let (_, known) = ALIASES.iter().find(|(alias, _)| *alias == plain)?;
            properties.get_key_value(*known).map(|(known, _)| known)
        };
        match same.or_else(by_alias) {
            // There are two values for one argument. Validation reports the unknown name.
            Some(known) if given.contains_key(known) => {}
            Some(known) => {
                if let Some(value) = given.shift_remove(&name) {
                    given.insert(known.clone(), value);
                }
            }
            None if EXPLANATIONS.contains(&plain.as_str()) && given[&name].is_string() => {
                given.shift_remove(&name);
            }
            None => {}
        }
    }
}

fn plain_name(name: &str) -> String {
    name.chars().filter(|char| !"_-".contains(*char)).flat_map(char::to_lowercase).collect()
}

struct ArgumentFitter<'a> {
    root: &'a Value,
}

impl<'a> ArgumentFitter<'a> {
    fn fit_value(&self, schema: &'a Value, value: &mut Value, depth: usize) {
        let Some(schema) = self.single_schema(schema, depth).filter(|_| depth < DEPTH_MAX) else {
            return;
        };
        if let Some(wanted) =
            RequiredType::from_schema(schema).filter(|wanted| !wanted.is_accepted(value))
        {
            convert_value(&wanted, schema, value);
        }
        match value {
            Value::Object(object) => self.fit_object(schema, object, depth + 1),
            Value::Array(items) => self.fit_items(schema, items, depth + 1),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn fit_object(&self, schema: &'a Value, object: &mut Map<String, Value>, depth: usize) {
        let properties = schema.get("properties").and_then(Value::as_object);
        // It is unknown which names the patterns match.
        let has_patterns = schema.get("patternProperties").is_some();
        let others = schema.get("additionalProperties").filter(|_| !has_patterns);
        let is_required = |name: &str| {
            let required = schema.get("required").and_then(Value::as_array);
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let mut left_out = Vec::new();
        for (name, value) in object.iter_mut() {
            let own = properties.and_then(|properties| properties.get(name));
            // Null for an optional argument means that the argument is missing.
            let refuses_null = own.is_some_and(|schema| self.is_null_refused(schema, depth));
            let is_closed = own.is_none() && others == Some(&Value::Bool(false));
            if value.is_null() && !is_required(name) && (refuses_null || is_closed) {
                left_out.push(name.clone());
            } else if let Some(schema) = own.or(others) {
                self.fit_value(schema, value, depth);
            }
        }
        for name in left_out {
            object.shift_remove(&name);
        }
    }

    fn fit_items(&self, schema: &'a Value, items: &mut [Value], depth: usize) {
        let all = schema.get("items");
        let prefix = schema.get("prefixItems").or(all).and_then(Value::as_array);
        for (index, item) in items.iter_mut().enumerate() {
            let own = prefix.and_then(|schemas| schemas.get(index));
            if let Some(schema) = own.or_else(|| all.filter(|schema| schema.is_object())) {
                self.fit_value(schema, item, depth);
            }
        }
    }

    /// Follows references, and a choice between one schema and null. Returns `None` for a choice
    /// between several schemas, because it is unclear which one applies.
    fn single_schema(&self, schema: &'a Value, depth: usize) -> Option<&'a Value> {
        if depth >= DEPTH_MAX {
            return None;
        }
        if let Some(reference) = schema.get("$ref") {
            let target = self.root.pointer(reference.as_str()?.strip_prefix('#')?)?;
            return self.single_schema(target, depth + 1);
        }
        let choice = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        let Some(choice) = choice.and_then(Value::as_array) else { return Some(schema) };
        let mut some = choice.iter().filter(|schema| schema["type"] != "null");
        match (some.next(), some.next()) {
            (Some(only), None) if choice.len() == 2 => self.single_schema(only, depth + 1),
            _ => None,
        }
    }

    /// Returns true if null does not match the schema.
    fn is_null_refused(&self, schema: &'a Value, depth: usize) -> bool {
        if depth >= DEPTH_MAX || schema.get("nullable") == Some(&Value::Bool(true)) {
            return false;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|it| self.root.pointer(it));
            return target.is_some_and(|target| self.is_null_refused(target, depth + 1));
        }
        let list = |word: &str| schema.get(word).and_then(Value::as_array);
        let refuse = |schema: &&'a Value| self.is_null_refused(schema, depth + 1);
        let by_type = schema.get("type").is_some_and(|types| match types {
            Value::Array(names) => !names.iter().any(|name| name == "null"),
            name => name.is_string() && name != "null",
        });
        by_type
            || list("enum").is_some_and(|values| !values.contains(&Value::Null))
            || schema.get("const").is_some_and(|only| !only.is_null())
            || ["anyOf", "oneOf"]
                .iter()
                .any(|word| list(word).is_some_and(|all| all.iter().all(|it| refuse(&it))))
            || list("allOf").is_some_and(|all| all.iter().any(|it| refuse(&it)))
    }
}

/// The type that a schema requires.
struct RequiredType<'a> {
    name: &'a str,
    is_nullable: bool,
}

impl<'a> RequiredType<'a> {
    /// Returns `None` if the schema allows several types or does not specify one.
    fn from_schema(schema: &'a Value) -> Option<Self> {
        let is_nullable = schema.get("nullable") == Some(&Value::Bool(true));
        match schema.get("type") {
            Some(Value::String(name)) => Some(RequiredType { name, is_nullable }),
            Some(Value::Array(names)) => {
                let mut some =
                    names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
                let name = some.next().filter(|_| some.next().is_none())?;
                Some(RequiredType { name, is_nullable: is_nullable || names.len() > 1 })
            }
            Some(_) => None,
            None => {
                let options = schema.get("enum").and_then(Value::as_array)?;
                let is_text = !options.is_empty() && options.iter().all(Value::is_string);
                is_text.then_some(RequiredType { name: "string", is_nullable })
            }
        }
    }

    fn is_accepted(&self, value: &Value) -> bool {
        match (self.name, value) {
            (_, Value::Null) => self.is_nullable,
            // A whole number written as `3.0` matches the schema, but Rust requires `3`.
            ("integer", Value::Number(number)) => !number.is_f64(),
            ("number", Value::Number(_))
            | ("boolean", Value::Bool(_))
            | ("array", Value::Array(_))
            | ("object", Value::Object(_)) => true,
            // A string may still match an allowed value in another case.
            _ => false,
        }
    }
}

fn convert_value(wanted: &RequiredType<'_>, schema: &Value, value: &mut Value) {
    let fitted = match (wanted.name, &*value) {
        (kind, Value::String(text)) if kind != "string" && wanted.is_nullable && text == "null" => {
            Some(Value::Null)
        }
        ("integer", Value::Number(number)) => whole_number(number),
        ("integer", Value::String(text)) => {
            parse_number(text).and_then(|number| match number.is_f64() {
                true => whole_number(&number),
                false => Some(Value::Number(number)),
            })
        }
        ("number", Value::String(text)) => parse_number(text).map(Value::Number),
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("array", Value::String(text)) => parse_json_if(text, Value::is_array),
        ("object", Value::String(text)) => parse_json_if(text, Value::is_object),
        ("string", Value::String(text)) => option_in_another_case(schema, text),
        // A fraction has lost digits: 1.10 is 1.1 here.
        ("string", Value::Number(number)) if !number.is_f64() => {
            Some(Value::String(number.to_string()))
        }
        ("string", Value::Bool(bool)) => Some(Value::String(bool.to_string())),
        _ => None,
    };
    if let Some(fitted) = fitted {
        *value = fitted;
    }
}

/// Parses a complete JSON number, without trailing characters.
fn parse_number(text: &str) -> Option<Number> {
    serde_json::from_str(text.trim()).ok()
}

fn whole_number(number: &Number) -> Option<Value> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT_MAX)?;
    // The check above guarantees a whole number within 53 bits.
    #[allow(clippy::cast_possible_truncation)]
    let whole = float as i64;
    Some(whole.into())
}

fn parse_json_if(text: &str, is_wanted: fn(&Value) -> bool) -> Option<Value> {
    serde_json::from_str(text).ok().filter(is_wanted)
}

fn option_in_another_case(schema: &Value, text: &str) -> Option<Value> {
    let options = schema.get("enum").and_then(Value::as_array)?;
    if options.iter().any(|option| option == text) {
        return None;
    }
    let wanted = text.trim();
    let is_meant =
        |option: &&Value| option.as_str().is_some_and(|option| option.eq_ignore_ascii_case(wanted));
    let mut meant = options.iter().filter(is_meant);
    meant.next().filter(|_| meant.next().is_none()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample_tool_spec(foreign: bool) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "path": { "type": "string" },
                "old": { "type": "string" },
                "limit": { "type": ["integer", "null"] },
                "offset": { "type": "integer" },
                "ratio": { "type": "number" },
                "deep": { "type": "boolean" },
                "steps": { "type": "array", "items": { "type": "string" } },
                "edits": { "type": "array", "items": { "$ref": "#/$defs/edit" } },
                "mode": { "enum": ["Content", "count"] },
                "options": { "type": "object", "additionalProperties": { "type": "integer" } },
                "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                "either": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "any": {},
            },
            "required": ["path"],
            "$defs": { "edit": { "type": "object", "properties": { "line": { "type": "integer" } } } },
        });
        ToolSpec { parameters, foreign, ..ToolSpec::default() }
    }

    #[track_caller]
    fn check_fitted(given: Value, fitted: Value) {
        assert_eq!(fit_arguments(&sample_tool_spec(false), given.clone()), fitted, "{given}");
        // A converted value is not converted again.
        assert_eq!(fit_arguments(&sample_tool_spec(false), fitted.clone()), fitted, "{given}");
    }

    #[track_caller]
    fn check_unchanged(given: Value) {
        check_fitted(given.clone(), given);
    }

    #[test]
    fn arguments_of_another_json_type_are_converted() {
        check_fitted(json!({ "limit": 3.0 }), json!({ "limit": 3 }));
        check_fitted(
            json!({ "limit": "10", "offset": " 1e2 " }),
            json!({ "limit": 10, "offset": 100 }),
        );
        check_fitted(
            json!({ "ratio": "0.5", "deep": "True" }),
            json!({ "ratio": 0.5, "deep": true }),
        );
        check_fitted(json!({ "path": 1, "old": false }), json!({ "path": "1", "old": "false" }));
        check_fitted(json!({ "steps": r#"["a", 2]"# }), json!({ "steps": ["a", "2"] }));
        check_fitted(
            json!({ "edits": r#"[{"line": "7"}]"#, "options": "{\"a\": 1.0}" }),
            json!({ "edits": [{ "line": 7 }], "options": { "a": 1 } }),
        );
        check_fitted(
            json!({ "mode": "CONTENT", "maybe": "4" }),
            json!({ "mode": "Content", "maybe": 4 }),
        );
        check_fitted(json!({ "limit": "null" }), json!({ "limit": null }));
        check_fitted(json!("{\"path\": \"a\"}"), json!({ "path": "a" }));
        check_fitted(Value::Null, json!({}));
    }

    #[test]
    fn null_for_an_optional_argument_leaves_it_out() {
        check_fitted(
            json!({ "offset": null, "other": null, "limit": null }),
            json!({ "limit": null }),
        );
        check_fitted(
            json!({ "either": null, "mode": null, "maybe": null }),
            json!({ "maybe": null }),
        );
        check_unchanged(json!({ "path": null, "any": null, "maybe": null }));
    }

    #[test]
    fn ambiguous_values_are_left_unchanged() {
        check_unchanged(json!({ "path": 1.1, "offset": "3 lines", "deep": "yes" }));
        check_unchanged(json!({ "offset": 2.5, "steps": "a, b", "mode": "none" }));
        check_unchanged(json!({ "either": "7", "any": "7", "offset": 1e30 }));
        check_unchanged(json!(["a"]));
        check_unchanged(json!({ "path": "[1]", "old": "{}" }));
    }

    #[test]
    fn argument_names_of_other_agents_are_mapped_to_the_schema() {
        check_fitted(
            json!({ "file_path": "a", "oldString": "b", "description": "Edit a" }),
            json!({ "path": "a", "old": "b" }),
        );
        check_unchanged(json!({ "path": "a", "file_path": "b" }));
        check_unchanged(json!({ "replace_all": true, "description": 1 }));
        let given = json!({ "file_path": "a", "description": "b", "limit": "3" });
        let fitted = json!({ "file_path": "a", "description": "b", "limit": 3 });
        assert_eq!(fit_arguments(&sample_tool_spec(true), given), fitted);
    }
}
