//! The frame of the prompt: turns, tools, results.

use std::fmt::Write;

use jaato_plugin_sdk::types::{Data, DataContent, Message, Part, Request, Result, Role, ToolSpec};
use serde_json::{Value, json};

use super::examples::{Answer, example_turns};
use crate::grammar::call_text;
use crate::tokenizer::Tokenizer;

/// The system text of a request that brings none.
const SYSTEM: &str = "You are an agent on the user's computer. Call a function when it is needed \
    to get the answer; otherwise just answer.";

/// What the model was trained to read before and behind its tools, word by word.
const TOOLS_HEAD: &str = "\n\n# Tools\n\nYou may call one or more functions to assist with the user \
    query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>";
const TOOLS_TAIL: &str = "\n</tools>\n\nFor each function call, return a json object with function \
    name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{{\"name\": \
    <function-name>, \"arguments\": <args-json-object>}}\n</tool_call>";

/// Stands behind a result that is no error. Without it the model makes the same call again and
/// again: the examples show calls and no results.
const ASK_FOR_ANSWER: &str = "\nAnswer my question with this result.";

/// A result and an answer from it, shown once behind the first call. It fits every tool.
const RESULT_EXAMPLE: (&str, &str) = ("{\"result\":\"ok\"}", "The result is ok.");

/// A request as tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// All tokens, up to the point where the model's answer begins.
    pub tokens: Vec<u32>,
    /// How many of them come before the history: the same for every request with this system text
    /// and these tools, and without a word of the user's conversation.
    pub prefix_len: usize,
}

/// Writes a request down. `tools` are those of the request, by name.
///
/// # Errors
/// Kind `provider` when the tokenizer fails.
pub fn render(request: &Request, tools: &[&ToolSpec], tokenizer: &Tokenizer) -> Result<Prompt> {
    let mut writer = Writer { tokenizer, tokens: Vec::new() };
    writer.open("system")?;
    // The host's text is not ours: plain. Only the description of the call format holds control
    // tokens.
    let system = request.system.trim();
    writer.plain(if system.is_empty() { SYSTEM } else { system })?;
    if !tools.is_empty() {
        writer.frame(TOOLS_HEAD)?;
        writer.plain(&tools.iter().map(|tool| tool_line(tool)).collect::<String>())?;
        writer.frame(TOOLS_TAIL)?;
    }
    writer.close()?;
    let mut result = Some(RESULT_EXAMPLE);
    for (phrase, answer) in example_turns(tools) {
        writer.turn("user", phrase)?;
        match answer {
            Answer::Call(name, arguments) => {
                writer.turn("assistant", &call_text(name, &arguments))?;
                if let Some((content, text)) = result.take() {
                    writer.turn("user", &result_text(content, ASK_FOR_ANSWER))?;
                    writer.turn("assistant", text)?;
                }
            }
            Answer::Text(text) => writer.turn("assistant", text)?,
        }
    }
    let prefix_len = writer.tokens.len();
    for message in &request.messages {
        writer.message(message)?;
    }
    writer.open("assistant")?;
    Ok(Prompt { tokens: writer.tokens, prefix_len })
}

struct Writer<'a> {
    tokenizer: &'a Tokenizer,
    tokens: Vec<u32>,
}

impl Writer<'_> {
    fn plain(&mut self, text: &str) -> Result<()> {
        self.tokens.extend(self.tokenizer.encode_plain(text)?);
        Ok(())
    }

    fn frame(&mut self, text: &str) -> Result<()> {
        self.tokens.extend(self.tokenizer.encode_frame(text)?);
        Ok(())
    }

    fn open(&mut self, role: &str) -> Result<()> {
        self.tokens.push(self.tokenizer.turn_start());
        self.plain(&format!("{role}\n"))
    }

    fn close(&mut self) -> Result<()> {
        self.tokens.push(self.tokenizer.turn_end());
        self.plain("\n")
    }

    fn turn(&mut self, role: &str, text: &str) -> Result<()> {
        self.tokens.push(self.tokenizer.turn_start());
        self.plain(&format!("{role}\n{text}"))?;
        self.close()
    }

    fn message(&mut self, message: &Message) -> Result<()> {
        let role = match message.role {
            Role::User | Role::Tool => "user",
            Role::Model => "assistant",
            Role::Unknown => return Err(Role::unknown_to_provider()),
        };
        let parts: Vec<String> = message.parts.iter().filter_map(part_text).collect();
        // The model was trained on answers in which a call stands on a line of its own.
        self.turn(role, &parts.join("\n"))
    }
}

/// Writes a part; none for what the model is not to see again.
fn part_text(part: &Part) -> Option<String> {
    match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::ToolCall(call) => Some(call_text(call.name.as_str(), &call.arguments)),
        Part::ToolResult(result) => {
            let content = Value::Object(result.content.clone());
            let ask = if result.is_error { "" } else { ASK_FOR_ANSWER };
            Some(result_text(&content.to_string(), ask))
        }
        Part::Data(Data { mime_type, content, .. }) => Some(match content {
            DataContent::Json { json, .. } => json.to_string(),
            DataContent::Blob { .. } | DataContent::Unknown(_) => {
                format!("[a file of type {mime_type}, which this model cannot read]")
            }
        }),
        Part::Thought { .. } | Part::Opaque(_) | Part::ToolsChanged(_) | Part::Unknown(_) => None,
    }
}

fn result_text(content: &str, ask: &str) -> String {
    format!("<tool_response>\n{content}\n</tool_response>{ask}")
}

/// Writes a tool as the model's template does: JSON with a space behind each comma and colon.
fn tool_line(tool: &ToolSpec) -> String {
    let spec = json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": terse(&tool.parameters),
        },
    });
    let mut line = String::from("\n");
    spaced_json(&spec, &mut line);
    line
}

/// What only a checker reads: the grammar holds the model to it, so that it need not read it.
const UNREAD: [&str; 4] = ["additionalProperties", "minimum", "maximum", "default"];

/// Leaves out of a schema what only costs tokens.
fn terse(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let kept = object.iter().filter(|(key, _)| !UNREAD.contains(&key.as_str()));
    let kept = kept.map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), terse(schema))).collect()
            }
            ("items", items) => terse(items),
            // What may be absent need not be null.
            ("type", Value::Array(types)) => match types.as_slice() {
                [one, Value::String(null)] if null == "null" => one.clone(),
                _ => value.clone(),
            },
            _ => value.clone(),
        };
        (key.clone(), value)
    });
    Value::Object(kept.collect())
}

fn spaced_json(value: &Value, out: &mut String) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_written_as_the_model_was_trained_on_it() {
        let tool: ToolSpec = serde_json::from_value(json!({
            "name": "shell",
            "description": "Run it.",
            "parameters": {"type": "object", "required": ["a", "b"], "nothing": null},
        }))
        .unwrap();
        let expected = "\n{\"type\": \"function\", \"function\": {\"name\": \"shell\", \
            \"description\": \"Run it.\", \"parameters\": {\"type\": \"object\", \
            \"required\": [\"a\", \"b\"], \"nothing\": null}}}";
        assert_eq!(tool_line(&tool), expected);
    }

    #[test]
    fn what_only_a_checker_reads_is_left_out_and_names_are_left_alone() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "minimum": { "type": ["integer", "null"], "minimum": 1, "maximum": 9 },
                "words": { "type": ["array", "null"], "items": { "type": "string", "default": "x" } },
            },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "minimum": { "type": "integer" },
                "words": { "type": "array", "items": { "type": "string" } },
            },
        });
        assert_eq!(terse(&schema), expected);
    }
}
