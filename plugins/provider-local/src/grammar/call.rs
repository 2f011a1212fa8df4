//! The format of a tool call, fenced JSON on one line, and its grammar.
//!
//! The format is fixed down to the spaces. A call in the history therefore has the same tokens as
//! one that the model just made, which keeps the cache usable. The model also does not have to
//! compute the tokens that it cannot choose.

use std::fmt::Write;

use jaato_plugin_sdk::types::ToolSpec;
use serde_json::{Value, json};

/// The start of a call.
pub const FENCE: &str = "```json";

/// The format of calls of some tools.
#[derive(Debug, Clone)]
pub struct CallFormat {
    tools: Vec<GrammarTool>,
}

#[derive(Debug, Clone)]
struct GrammarTool {
    /// The text of a call up to its arguments.
    head: String,
    parameters: Value,
}

impl CallFormat {
    /// Creates the format for the tools that the model may call.
    pub fn new(tools: &[&ToolSpec]) -> Self {
        let tools = tools.iter().map(|spec| GrammarTool {
            head: call_beginning(spec.name.as_str()),
            parameters: spec.parameters.clone(),
        });
        Self { tools: tools.collect() }
    }

    /// Returns the length of the longest suffix of `text` that may be the start of a call, or 0.
    pub fn call_prefix_length(&self, text: &[u8]) -> usize {
        let longest = self.tools.iter().map(|tool| tool.head.len()).max().unwrap_or(0);
        let from = text.len().saturating_sub(longest);
        (from..text.len())
            .find(|&start| {
                self.tools.iter().any(|tool| tool.head.as_bytes().starts_with(&text[start..]))
            })
            .map_or(0, |start| text.len() - start)
    }

    /// Returns a grammar for the rest of a call that starts with `begun`.
    ///
    /// With `loose`, the arguments of each tool are any JSON object, for schemas that the grammar
    /// does not support.
    pub fn grammar_for_rest(&self, begun: &str, loose: bool) -> String {
        let mut rules = String::new();
        let mut starts = Vec::new();
        for (index, tool) in self.tools.iter().enumerate() {
            if let Some(rest) = tool.head.strip_prefix(begun) {
                starts.push(format!("{} args_{index} \"}}\\n```\"", grammar_literal(rest)));
                let any = json!({"type": "object"});
                let parameters = if loose { &any } else { &tool.parameters };
                write_arguments_rule(&mut rules, &format!("args_{index}"), parameters);
            }
        }
        format!("start: {}\n{rules}", starts.join("\n     | "))
    }
}

/// Returns a grammar for a whole answer: a call, or JSON that matches the schema.
pub fn grammar_for_answer(format: &CallFormat, schema: &Value, loose: bool) -> String {
    // Whitespace is limited, because a weak model would fill the answer with it.
    let layout = json!({"whitespace_pattern": "[ \\n]{1,20}", "lenient": false});
    let json = format!("answer: %json {}\n", with_layout(schema, layout));
    if format.tools.is_empty() {
        return format!("start: answer\n{json}");
    }
    let calls = format.grammar_for_rest("", loose);
    let calls = calls.strip_prefix("start: ").unwrap_or(&calls);
    format!("start: answer\n     | {calls}{json}")
}

/// Writes a call in the model's format.
pub fn call_text(name: &str, arguments: &Value) -> String {
    let mut text = call_beginning(name);
    spaced_json(arguments, &mut text);
    text.push_str("}\n```");
    text
}

fn call_beginning(name: &str) -> String {
    let name = Value::from(name);
    format!("{FENCE}\n{{\"name\": {name}, \"arguments\": ")
}

/// Writes JSON on one line, with a space after each comma and colon, as the model learned it.
pub fn spaced_json(value: &Value, out: &mut String) {
    let separate = |out: &mut String, index: usize| {
        if index > 0 {
            out.push_str(", ");
        }
    };
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(out, index);
                spaced_json(item, out);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (index, (key, item)) in object.iter().enumerate() {
                separate(out, index);
                // Writing to a string cannot fail.
                let _ = write!(out, "{}: ", Value::from(key.as_str()));
                spaced_json(item, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}

/// Writes a text as a literal of the grammar language, which quotes like JSON.
fn grammar_literal(text: &str) -> String {
    Value::from(text).to_string()
}

fn write_arguments_rule(rules: &mut String, name: &str, schema: &Value) {
    match flat_properties(schema) {
        Some(properties) => write_flat_rules(rules, name, schema, &properties),
        None => write_rule(rules, name, &format!("%json {}", nested_schema(schema))),
    }
}

/// Returns the properties of a plain object in order, each with a flag for required ones.
fn flat_properties(schema: &Value) -> Option<Vec<(&String, &Value, bool)>> {
    const PLAIN: [&str; 10] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "description",
        "title",
        "$schema",
        "$defs",
        "definitions",
        "examples",
    ];
    let object = schema.as_object()?;
    let is_plain = object.keys().all(|key| PLAIN.contains(&key.as_str()));
    if !is_plain || object.get("type").and_then(Value::as_str) != Some("object") {
        return None;
    }
    let Some(properties) = object.get("properties") else {
        // An object without `properties` may contain anything, unless the schema forbids it.
        let is_closed = object.get("additionalProperties") == Some(&Value::Bool(false));
        return is_closed.then(Vec::new);
    };
    let properties = properties.as_object()?;
    let required: Vec<&str> = match object.get("required") {
        Some(names) => names.as_array()?.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    if required.iter().any(|name| !properties.contains_key(*name)) {
        return None;
    }
    let flat =
        properties.iter().map(|(name, value)| (name, value, required.contains(&name.as_str())));
    Some(flat.collect())
}

/// Writes the rules of an object whose keys have the schema's order.
///
/// `NAME_a3` matches the rest if nothing is written yet and property 3 is next, and `NAME_b3` the
/// rest after another property. So each optional property adds one alternative and does not double
/// the rules.
fn write_flat_rules(
    rules: &mut String,
    name: &str,
    schema: &Value,
    properties: &[(&String, &Value, bool)],
) {
    let count = properties.len();
    let all_optional = properties.iter().all(|&(_, _, required)| !required);
    let open = format!("\"{{\" {name}_a0 \"}}\"");
    match (count, all_optional) {
        (0, _) => return write_rule(rules, name, "\"{}\""),
        (_, true) => write_rule(rules, name, &format!("\"{{}}\" | {open}")),
        (_, false) => write_rule(rules, name, &open),
    }
    for (index, &(key, value, required)) in properties.iter().enumerate() {
        let is_last = index + 1 == count;
        let item = format!("{name}_i{index}");
        let key_text = grammar_literal(&format!("{}: ", Value::from(key.as_str())));
        write_rule(rules, &item, &format!("{key_text} {name}_v{index}"));
        let value = with_definitions(value, schema);
        write_rule(rules, &format!("{name}_v{index}"), &format!("%json {value}"));
        let then = if is_last { String::new() } else { format!(" {name}_b{}", index + 1) };
        // If nothing is written yet, the last property cannot be skipped, because `{}` has its own
        // rule.
        let skip_first = !required && !is_last;
        let first = optional_alternatives(
            &format!("{item}{then}"),
            skip_first,
            &format!("{name}_a{}", index + 1),
        );
        let may_start = properties[..index].iter().all(|&(_, _, required)| !required);
        if may_start {
            write_rule(rules, &format!("{name}_a{index}"), &first);
        }
        if index > 0 {
            let skipped =
                if is_last { "\"\"".to_owned() } else { format!("{name}_b{}", index + 1) };
            let later = optional_alternatives(&format!("\", \" {item}{then}"), !required, &skipped);
            write_rule(rules, &format!("{name}_b{index}"), &later);
        }
    }
}

fn optional_alternatives(first: &str, may_skip: bool, skipped: &str) -> String {
    if may_skip { format!("{first} | {skipped}") } else { first.to_owned() }
}

fn write_rule(rules: &mut String, name: &str, body: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(rules, "{name}: {body}");
}

/// Returns a property's schema together with the definitions that it refers to.
fn with_definitions(value: &Value, schema: &Value) -> Value {
    let mut value = nested_schema(value);
    if let Some(object) = value.as_object_mut() {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = schema.get(key) {
                object.entry(key).or_insert_with(|| definitions.clone());
            }
        }
    }
    value
}

/// Makes the grammar write nested JSON like [`spaced_json`]. The grammar ignores unsupported
/// keywords, because the host checks all arguments anyway.
fn nested_schema(schema: &Value) -> Value {
    let layout = json!({
        "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": ", "lenient": true,
    });
    with_layout(schema, layout)
}

fn with_layout(schema: &Value, layout: Value) -> Value {
    match schema {
        Value::Object(object) => {
            let mut object = object.clone();
            object.insert("x-guidance".to_owned(), layout);
            Value::Object(object)
        }
        // `true` or an invalid schema: any JSON.
        _ => json!({"x-guidance": layout}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_spec(name: &str, parameters: Value) -> ToolSpec {
        serde_json::from_value(json!({"name": name, "description": "", "parameters": parameters}))
            .unwrap()
    }

    fn call_format(names: &[&str]) -> CallFormat {
        let tools: Vec<ToolSpec> =
            names.iter().map(|name| tool_spec(name, json!({"type": "object"}))).collect();
        CallFormat::new(&tools.iter().collect::<Vec<_>>())
    }

    #[test]
    fn call_is_written_as_fenced_single_line_json() {
        let text = call_text("read_file", &json!({"path": "a.md"}));
        let expected =
            "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.md\"}}\n```";
        assert_eq!(text, expected);
    }

    #[test]
    fn unfinished_call_start_at_the_end_of_text_is_found() {
        let format = call_format(&["shell", "read_file"]);
        for (text, begun) in [
            ("", 0),
            ("hello", 0),
            ("a `", 1),
            ("so:\n```", 3),
            ("```json\n{\"na", 12),
            ("```json\n{\"name\": \"sh", 20),
            ("```json\n{\"name\": \"rm", 0),
            ("```json\n{\"age\"", 0),
            ("````json", 7),
        ] {
            assert_eq!(format.call_prefix_length(text.as_bytes()), begun, "{text:?}");
        }
    }

    #[test]
    fn text_never_starts_a_call_without_tools() {
        assert_eq!(call_format(&[]).call_prefix_length(b"```json\n{"), 0);
    }
}
