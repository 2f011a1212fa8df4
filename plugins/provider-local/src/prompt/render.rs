//! The structure of the prompt: turns, tools, results.

use jaato_plugin_sdk::types::{
    CompletionRequest, DataContent, DataPart, Message, Part, Result, Role, ToolSpec,
};
use serde_json::Value;

use super::examples::{ExampleStep, SHELL, example_exchanges};
use super::result::{FAILURES_MAX, is_failed_result, plain_result_text, truncate_middle};
use crate::grammar::{call_text, spaced_json};
use crate::tokenizer::ModelTokenizer;

/// The default system text.
const SYSTEM: &str = "You are an agent on the user's computer. Call a function when it is needed \
    to get the answer; otherwise just answer.";

/// The text before the tools. The model was trained on a longer text, but the examples show how to
/// write a call.
const TOOLS_HEAD: &str = "\n\nFunctions:";

/// The number of characters of the task that are repeated after each result.
const TASK_CHARACTERS_MAX: usize = 400;

/// A request as tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenPrompt {
    /// All tokens up to the start of the model's answer.
    pub tokens: Vec<u32>,
    /// The number of tokens before the history. They are the same for every request with this
    /// system text and these tools, and contain nothing of the user's conversation.
    pub prefix_len: usize,
}

/// Whether the prompt shows example exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleExchanges {
    /// The prompt shows the examples.
    Shown,
    /// The prompt shows no examples, so that the model cannot copy them.
    Hidden,
}

/// Writes a request. `tools` comes from [`super::shown_tools`].
///
/// # Errors
/// Kind `provider` if the tokenizer fails.
pub fn render_prompt(
    request: &CompletionRequest,
    tools: &[&ToolSpec],
    examples: ExampleExchanges,
    tokenizer: &ModelTokenizer,
) -> Result<TokenPrompt> {
    let shows_answers =
        examples == ExampleExchanges::Shown && tools.iter().any(|tool| tool.name.as_str() == SHELL);
    let mut writer = PromptWriter {
        tokenizer,
        tokens: Vec::new(),
        task: String::new(),
        failures: 0,
        shows_answers,
    };
    writer.open_turn("system")?;
    let system = request.system.trim();
    writer.write_plain_text(if system.is_empty() { SYSTEM } else { system })?;
    if !tools.is_empty() {
        let lines: String = tools.iter().map(|tool| tool_line(tool)).collect();
        writer.write_plain_text(&format!("{TOOLS_HEAD}{lines}"))?;
    }
    writer.close_turn()?;
    if examples == ExampleExchanges::Shown {
        for (phrase, steps) in example_exchanges(tools) {
            writer.write_exchange(phrase, &steps)?;
        }
    }
    let prefix_len = writer.tokens.len();
    for message in &request.messages {
        writer.write_message(message)?;
    }
    writer.open_turn("assistant")?;
    Ok(TokenPrompt { tokens: writer.tokens, prefix_len })
}

struct PromptWriter<'a> {
    tokenizer: &'a ModelTokenizer,
    tokens: Vec<u32>,
    /// The last user message.
    task: String,
    /// The number of calls since then that failed in a row.
    failures: usize,
    /// Whether the examples show an answer after a result. If not, the text after a result asks for
    /// one.
    shows_answers: bool,
}

impl PromptWriter<'_> {
    fn write_plain_text(&mut self, text: &str) -> Result<()> {
        self.tokens.extend(self.tokenizer.encode_plain(text)?);
        Ok(())
    }

    fn open_turn(&mut self, role: &str) -> Result<()> {
        self.tokens.push(self.tokenizer.turn_start());
        self.write_plain_text(&format!("{role}\n"))
    }

    fn close_turn(&mut self) -> Result<()> {
        self.tokens.push(self.tokenizer.turn_end());
        self.write_plain_text("\n")
    }

    fn write_turn(&mut self, role: &str, text: &str) -> Result<()> {
        self.tokens.push(self.tokenizer.turn_start());
        self.write_plain_text(&format!("{role}\n{text}"))?;
        self.close_turn()
    }

    fn write_exchange(&mut self, phrase: &str, steps: &[ExampleStep<'_>]) -> Result<()> {
        self.set_task(phrase);
        self.write_turn("user", phrase)?;
        for step in steps {
            match step {
                ExampleStep::Call(name, arguments) => {
                    self.write_turn("assistant", &call_text(name, arguments))?;
                }
                ExampleStep::Result { text, failed } => {
                    self.failures = usize::from(*failed);
                    let text = format!("{}{}", result_text(text, *failed), self.next_step_text());
                    self.write_turn("user", &text)?;
                }
                ExampleStep::Answer(text) => self.write_turn("assistant", text)?,
            }
        }
        Ok(())
    }

    fn set_task(&mut self, text: &str) {
        self.task = text.trim().chars().take(TASK_CHARACTERS_MAX).collect();
        self.failures = 0;
    }

    /// Asks for the step after a result. The text repeats the task, because a small model has lost
    /// sight of it by then.
    fn next_step_text(&self) -> String {
        let ask = match self.failures {
            0 if self.shows_answers => "Make the next call, or answer if all is done.",
            0 => "Answer with this result, or make the next call.",
            1..FAILURES_MAX => "Make another call, or answer with what failed.",
            _ => "It did not work. Answer with what failed.",
        };
        format!("\nTask: {}\n{ask}", self.task)
    }

    fn write_message(&mut self, message: &Message) -> Result<()> {
        let role = match message.role {
            Role::User | Role::Tool => "user",
            Role::Model => "assistant",
            Role::Unknown => return Err(Role::unknown_role_error()),
        };
        if message.role == Role::User {
            self.set_task(&message.text());
        }
        let mut parts = Vec::new();
        let mut has_result = false;
        for part in &message.parts {
            if let Part::ToolResult(result) = part {
                let failed = is_failed_result(result);
                parts.push(result_text(
                    &truncate_middle(&plain_result_text(result), self.tokenizer)?,
                    failed,
                ));
                self.failures = if failed { self.failures + 1 } else { 0 };
                has_result = true;
            } else {
                parts.extend(part_text(part));
            }
        }
        if let (true, Some(last)) = (has_result, parts.last_mut()) {
            last.push_str(&self.next_step_text());
        }
        // In the model's training data, a call has its own line.
        self.write_turn(role, &parts.join("\n"))
    }
}

/// Writes a part. Returns `None` for a part that the model must not see again.
fn part_text(part: &Part) -> Option<String> {
    match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::ToolCall(call) => Some(call_text(call.name.as_str(), &call.arguments)),
        Part::Data(DataPart { mime_type, content, .. }) => Some(match content {
            DataContent::Json { json, .. } => json.to_string(),
            DataContent::Blob { .. } | DataContent::Unknown(_) => {
                format!("[a file of type {mime_type}, which this model cannot read]")
            }
        }),
        // Results are written together with the text that follows them.
        Part::ToolResult(_)
        | Part::Thought { .. }
        | Part::Opaque(_)
        | Part::ToolsChanged(_)
        | Part::Unknown(_) => None,
    }
}

fn result_text(text: &str, failed: bool) -> String {
    let mark = if failed { "This call failed" } else { "Result" };
    format!("{mark}:\n{text}")
}

/// Writes a tool in one line: its name, its parameters as in a call, and its description.
fn tool_line(tool: &ToolSpec) -> String {
    let mut line = format!("\n{} ", tool.name);
    spaced_json(&short_parameters(&tool.parameters), &mut line);
    format!("{line} {}", tool.description)
}

/// Keywords that the model does not have to read, because the grammar enforces them.
const UNREAD: [&str; 4] = ["additionalProperties", "minimum", "maximum", "default"];

/// Writes the parameters of a tool. A plain text parameter is written as its description.
fn short_parameters(schema: &Value) -> Value {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return shorten_schema(schema);
    };
    let short = |schema: &Value| match (schema.get("type"), schema.get("description")) {
        (Some(Value::String(kind)), Some(Value::String(text)))
            if kind == "string" && schema.get("enum").is_none() =>
        {
            Value::from(text.as_str())
        }
        _ => shorten_schema(schema),
    };
    properties.iter().map(|(name, schema)| (name.clone(), short(schema))).collect()
}

/// Removes parts of a schema that only use tokens.
fn shorten_schema(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let kept = object.iter().filter(|(key, _)| !UNREAD.contains(&key.as_str()));
    let kept = kept.map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, schema)| (name.clone(), shorten_schema(schema)))
                .collect(),
            ("items", items) => shorten_schema(items),
            // An optional value does not have to be null.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_is_one_line_and_text_arguments_show_their_description() {
        let tool: ToolSpec = serde_json::from_value(json!({
            "name": "shell",
            "description": "Run it.",
            "parameters": {"type": "object", "required": ["a"], "properties": {
                "a": {"type": "string", "description": "A command."},
                "b": {"type": "string", "enum": ["x"], "description": "Which."},
                "c": {"type": ["integer", "null"], "minimum": 1},
            }},
        }))
        .unwrap();
        let expected = "\nshell {\"a\": \"A command.\", \"b\": {\"type\": \"string\", \"enum\": [\"x\"], \
            \"description\": \"Which.\"}, \"c\": {\"type\": \"integer\"}} Run it.";
        assert_eq!(tool_line(&tool), expected);
    }

    #[test]
    fn validation_keywords_are_left_out_and_property_names_are_kept() {
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
        assert_eq!(shorten_schema(&schema), expected);
    }
}
