//! Splits messages into passages: pieces of text that are small enough to be returned, and large
//! enough to be understood.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::{self, Map};
use jaato_plugin_sdk::types::history::HistoryMessage;
use jaato_plugin_sdk::types::{CallId, DataContent};

use crate::RECALL;

/// The largest passage, in bytes. Several of them are returned together, and a hit in a long result
/// is shown with the lines around it.
pub const PASSAGE_BYTES_MAX: usize = 1_600;

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The number of its turn, counted from 1.
    pub turn: u64,
    /// The number of its message in the record.
    pub message: u64,
    /// Who said it: `user`, `assistant`, `tool NAME`, `call of NAME`, or `jaato`.
    pub from: String,
    /// The original text.
    pub text: String,
    /// The number of this piece and of all pieces, if the text is in several.
    pub piece: Option<(usize, usize)>,
    /// The call that it belongs to, with its result.
    pub call: Option<CallId>,
}

/// Splits messages into passages, in their order. Calls of the tool itself are left out, because
/// their results repeat others.
pub fn split_into_passages(messages: &[HistoryMessage]) -> Vec<Passage> {
    let mut passages = Vec::new();
    for told in messages {
        for part in &told.message.parts {
            let Some((from, text, call)) = part_text(part, told.message.role) else { continue };
            let pieces = split_into_pieces(&text);
            for (at, piece) in pieces.iter().enumerate() {
                passages.push(Passage {
                    turn: told.turn,
                    message: told.number,
                    from: from.clone(),
                    text: (*piece).to_owned(),
                    piece: (pieces.len() > 1).then_some((at + 1, pieces.len())),
                    call: call.clone(),
                });
            }
        }
    }
    passages
}

/// Returns who said a part, its text, and its call. Returns `None` for parts without a text.
fn part_text(part: &Part, role: Role) -> Option<(String, String, Option<CallId>)> {
    match part {
        Part::Text { text, .. } => {
            let from = if role == Role::Model { "assistant" } else { "user" };
            Some((from.to_owned(), text.clone(), None))
        }
        Part::ToolCall(call) if call.name.as_str() != RECALL => Some((
            format!("call of {}", call.name),
            call.arguments.to_string(),
            Some(call.id.clone()),
        )),
        Part::ToolResult(result) if result.name.as_str() != RECALL => {
            let text = format_result_text(&result.content);
            Some((format!("tool {}", result.name), text, Some(result.call_id.clone())))
        }
        Part::Data(data) => match &data.content {
            DataContent::Json { json, .. } => Some(("jaato".to_owned(), json.to_string(), None)),
            _ => None,
        },
        _ => None,
    }
}

/// Writes a result with its texts as they are, because escaped lines are hard to read.
fn format_result_text(content: &Map<String, Value>) -> String {
    let texts = content.iter().filter(|(_, value)| value.as_str() != Some(""));
    let lines = texts.map(|(key, value)| match value {
        Value::String(text) if text.contains('\n') => format!("{key}:\n{text}"),
        Value::String(text) => format!("{key}: {text}"),
        value => format!("{key}: {}", serde_json::to_string(value).unwrap_or_default()),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Splits a text into pieces that end with a line if possible, and never inside of a character.
fn split_into_pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_end();
    while rest.len() > PASSAGE_BYTES_MAX {
        let room = &rest[..rest.floor_char_boundary(PASSAGE_BYTES_MAX)];
        let after = |sign: char| room.rfind(sign).map(|at| at + sign.len_utf8());
        // A piece of less than half of the size would tell too little.
        let end = ['\n', ' '].into_iter().filter_map(after).find(|end| *end > room.len() / 2);
        let (piece, more) = rest.split_at(end.unwrap_or(room.len()));
        pieces.push(piece);
        rest = more;
    }
    if !rest.trim().is_empty() {
        pieces.push(rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_small_whole_and_end_with_lines() {
        for text in ["x".repeat(5_000), "日本".repeat(2_000), "a line\n".repeat(900)] {
            let pieces = split_into_pieces(&text);
            assert!(pieces.iter().all(|piece| piece.len() <= PASSAGE_BYTES_MAX));
            assert_eq!(pieces.concat(), text.trim_end());
        }
        assert!(split_into_pieces(&"a line\n".repeat(900))[0].ends_with('\n'));
        assert_eq!(split_into_pieces(" \n"), [""; 0]);
    }

    #[test]
    fn results_are_readable() {
        let content = json!({ "stdout": "one\ntwo", "stderr": "", "returncode": 0 });
        let Value::Object(content) = content else { unreachable!() };
        assert_eq!(format_result_text(&content), "stdout:\none\ntwo\nreturncode: 0");
    }
}
