//! Checks the messages of an own export, and takes apart those that no history would accept.

use std::collections::HashSet;

use jaato_types::{CallId, Message, Part, Role};

use super::assemble::{ConversationPiece, TimedPiece};
use super::notes::ImportNotes;
use crate::export::TranscriptMessage;

/// Returns true if a history accepts the messages. Roles and pairs are checked for the messages
/// that are sent.
pub fn is_valid_history(messages: &[TranscriptMessage]) -> bool {
    let mut call_ids = HashSet::new();
    let calls = messages.iter().flat_map(|it| it.message.tool_calls());
    let has_own_ids =
        calls.into_iter().all(|call| !call.id.as_str().is_empty() && call_ids.insert(&call.id));
    has_own_ids
        && messages.iter().all(|it| has_fitting_parts(&it.message, it.is_sent()))
        && is_in_order(messages.iter().filter(|it| it.is_sent()).map(|it| &it.message))
}

fn has_fitting_parts(message: &Message, is_sent: bool) -> bool {
    let Message { role, parts } = message;
    let is_news = |part: &Part| {
        matches!(part, Part::Text { .. } | Part::Data(_) | Part::ToolsChanged(_) | Part::Unknown(_))
    };
    let is_result = |part: &Part| part.as_tool_result().is_some();
    let fits = match role {
        Role::User => parts.iter().all(is_news),
        Role::Model => !parts.iter().any(is_result),
        Role::Tool if is_sent => {
            let results = parts.iter().take_while(|part| is_result(part)).count();
            parts[results..].iter().all(is_news)
        }
        Role::Tool => parts.iter().all(|part| part.as_tool_call().is_none()),
        Role::Unknown => false,
    };
    fits && !parts.is_empty()
}

fn is_in_order<'a>(messages: impl Iterator<Item = &'a Message>) -> bool {
    let mut before: Option<&Message> = None;
    for message in messages {
        let calls: Vec<&CallId> =
            before.into_iter().flat_map(Message::tool_calls).map(|it| &it.id).collect();
        let fits = match before.map(|it| it.role) {
            None => message.role == Role::User,
            Some(Role::Model) if calls.is_empty() => message.role == Role::User,
            Some(Role::Model) => {
                let results = message.tool_results().map(|it| &it.call_id);
                message.role == Role::Tool && results.eq(calls)
            }
            Some(Role::User | Role::Tool) => message.role == Role::Model,
            Some(Role::Unknown) => false,
        };
        if !fits {
            return false;
        }
        before = Some(message);
    }
    true
}

/// Takes messages apart, to assemble them again.
pub fn into_pieces(messages: Vec<TranscriptMessage>, notes: &mut ImportNotes) -> Vec<TimedPiece> {
    let mut pieces = Vec::new();
    let mut was_sent = false;
    for (number, message) in messages.into_iter().enumerate() {
        let is_sent = message.is_sent();
        let TranscriptMessage { at_ms, message, model, .. } = message;
        if is_sent && !was_sent && number > 0 {
            pieces.push((at_ms, ConversationPiece::Compacted));
        }
        was_sent = is_sent;
        match message.role {
            Role::User => pieces.push((at_ms, ConversationPiece::Prompt(message.parts))),
            Role::Model => {
                let (parts, response) = (message.parts, None);
                pieces.push((at_ms, ConversationPiece::Answer { parts, model, response }));
            }
            Role::Tool => pieces.extend(result_pieces(at_ms, message.parts)),
            Role::Unknown => notes.count_unknown("message of an unknown role"),
        }
    }
    pieces
}

fn result_pieces(at_ms: i64, parts: Vec<Part>) -> Vec<TimedPiece> {
    let mut pieces = Vec::new();
    let mut news = Vec::new();
    for part in parts {
        match part {
            Part::ToolResult(result) => {
                let call_id = result.call_id.as_str().to_owned();
                let (content, is_error) = (result.content, result.is_error);
                pieces.push((at_ms, ConversationPiece::Result { call_id, content, is_error }));
            }
            other => news.push(other),
        }
    }
    pieces.push((at_ms, ConversationPiece::News(news)));
    pieces
}
