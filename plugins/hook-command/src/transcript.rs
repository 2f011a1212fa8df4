//! The conversation as a file of JSON lines, in the form that scripts for Claude Code read.
//!
//! It is brought up to date before hooks run, and removed when the session ends. Only the user can
//! read it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use futures_util::lock::Mutex;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::history::{HistoryMessage, HistoryRead};
use jaato_plugin_sdk::types::{Message, Part, Role};

use crate::tool_input::tool_inputs;

/// The transcript of one session.
#[derive(Debug)]
pub struct Transcript {
    path: PathBuf,
    /// The number of messages in the file, or 0 if it must be written from the start.
    written: Mutex<u64>,
}

/// The fields that all lines have.
#[derive(Debug, Clone, Copy)]
pub struct LineFields<'a> {
    /// The session's id.
    pub session_id: &'a str,
    /// The session's folder.
    pub folder: &'a Path,
    /// Whether the session belongs to a subagent.
    pub is_subagent: bool,
}

impl Transcript {
    /// Creates the transcript of a session in the plugin's folder. Writes nothing.
    pub fn new(folder: &Path, session_id: &str) -> Self {
        let path = folder.join("transcripts").join(format!("{session_id}.jsonl"));
        Self { path, written: Mutex::new(0) }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the messages that the file lacks.
    ///
    /// # Errors
    /// The host's error, or `io`. The next update writes the file again from the start.
    pub async fn update(&self, host: &Reporter, fields: &LineFields<'_>) -> Result<()> {
        let mut written = self.written.lock().await;
        let read = |from| host.history(HistoryRead { from, ..HistoryRead::default() });
        let mut from = std::mem::take(&mut *written);
        let mut conversation = read(from).await?;
        if conversation.messages < from {
            // The user took messages back.
            from = 0;
            conversation = read(from).await?;
        }
        let messages = conversation.rest().await?;
        let is_new = from == 0;
        if is_new || !messages.is_empty() {
            let lines: String =
                messages.iter().filter_map(|it| transcript_line(it, fields)).collect();
            let path = self.path.clone();
            let appended = host.blocking(move |_| append_lines(&path, is_new, &lines)).await?;
            appended.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        }
        *written = conversation.messages;
        Ok(())
    }

    /// Removes the file, if there is one.
    pub async fn remove(&self, host: &Reporter) {
        let mut written = self.written.lock().await;
        *written = 0;
        let path = self.path.clone();
        let _ = host.blocking(move |_| fs::remove_file(path)).await;
    }
}

fn append_lines(path: &Path, is_new: bool, lines: &str) -> std::io::Result<()> {
    if let (true, Some(folder)) = (is_new, path.parent()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new()
        .create(true)
        .append(!is_new)
        .write(true)
        .truncate(is_new)
        .mode(0o600)
        .open(path)?;
    file.write_all(lines.as_bytes())
}

/// Returns the line of a message, or `None` for a message without content that scripts know.
fn transcript_line(message: &HistoryMessage, fields: &LineFields<'_>) -> Option<String> {
    let number = message.number;
    let (kind, message) = match message.message.role {
        Role::User => {
            ("user", json!({ "role": "user", "content": user_content(&message.message)? }))
        }
        Role::Tool => (
            "user",
            json!({ "role": "user", "content": content_blocks(&message.message, fields)? }),
        ),
        Role::Model => {
            let content = content_blocks(&message.message, fields)?;
            ("assistant", json!({ "role": "assistant", "type": "message", "content": content }))
        }
        Role::Unknown => return None,
    };
    let id = |number: u64| format!("{}-{number}", fields.session_id);
    let line = json!({
        "type": kind,
        "uuid": id(number),
        "parentUuid": number.checked_sub(1).map(id),
        "sessionId": fields.session_id,
        "cwd": fields.folder,
        "isSidechain": fields.is_subagent,
        "message": message,
    });
    Some(format!("{line}\n"))
}

/// Returns a prompt as one text, because scripts expect that of a message that a user typed.
fn user_content(message: &Message) -> Option<String> {
    let texts: Vec<&str> = message.parts.iter().filter_map(text_of).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text, .. } => Some(text),
        _ => None,
    }
}

fn content_blocks(message: &Message, fields: &LineFields<'_>) -> Option<Vec<Value>> {
    let blocks: Vec<Value> =
        message.parts.iter().filter_map(|part| content_block(part, fields.folder)).collect();
    (!blocks.is_empty()).then_some(blocks)
}

fn content_block(part: &Part, folder: &Path) -> Option<Value> {
    Some(match part {
        Part::Text { text, .. } => json!({ "type": "text", "text": text }),
        Part::Thought { text, .. } => json!({ "type": "thinking", "thinking": text }),
        Part::ToolCall(call) => {
            // A call that touches several files is one block, as its model wrote it.
            let inputs = tool_inputs(call.name.as_str(), &call.arguments, folder);
            let (name, input) = match inputs.as_slice() {
                [input] => (input.name.as_str(), &input.input),
                _ => (call.name.as_str(), &call.arguments),
            };
            json!({ "type": "tool_use", "id": call.id, "name": name, "input": input })
        }
        Part::ToolResult(result) => json!({
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": Value::Object(result.content.clone()).to_string(),
            "is_error": result.is_error,
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::{self, Map};
    use jaato_plugin_sdk::types::{CallId, ToolCall, ToolName, ToolResult};

    use super::*;

    fn transcript_lines(messages: Vec<Message>) -> Vec<Value> {
        let fields = LineFields { session_id: "s", folder: Path::new("/work"), is_subagent: false };
        let numbered = (0..).zip(messages).map(|(number, it)| HistoryMessage::new(number, it));
        numbered
            .filter_map(|message| transcript_line(&message, &fields))
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect()
    }

    #[test]
    fn each_message_is_a_line_with_the_names_that_scripts_know() {
        let call = ToolCall::new("c1", "cli_based_tool", json!({ "command": "ls" }));
        let result = ToolResult {
            call_id: CallId::from("c1"),
            name: ToolName::from("cli_based_tool"),
            content: Map::from_iter([("stdout".to_owned(), json!("a"))]),
            ..ToolResult::default()
        };
        let message = |role, parts| Message { role, parts };
        let found = transcript_lines(vec![
            Message::user("list"),
            message(Role::Model, vec![Part::text("I look."), Part::ToolCall(call)]),
            message(Role::Tool, vec![Part::ToolResult(result)]),
            message(Role::Unknown, Vec::new()),
            message(Role::Model, vec![Part::text("done")]),
        ]);
        assert_eq!(
            found[0],
            json!({
                "type": "user", "uuid": "s-0", "parentUuid": null, "sessionId": "s",
                "cwd": "/work", "isSidechain": false,
                "message": { "role": "user", "content": "list" },
            })
        );
        let contents: Vec<&Value> = found.iter().map(|line| &line["message"]["content"]).collect();
        assert_eq!(
            contents[1..],
            [
                &json!([
                    { "type": "text", "text": "I look." },
                    { "type": "tool_use", "id": "c1", "name": "Bash", "input": { "command": "ls" } },
                ]),
                &json!([{
                    "type": "tool_result", "tool_use_id": "c1", "content": "{\"stdout\":\"a\"}",
                    "is_error": false,
                }]),
                &json!([{ "type": "text", "text": "done" }]),
            ]
        );
        assert_eq!(found[3]["parentUuid"], "s-3");
    }
}
