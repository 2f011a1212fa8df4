//! The rules of a history, as jaato's sessions check them at every append.

use std::collections::HashSet;

use jaato_sessions::TranscriptMessage;
use jaato_types::{CallId, Message, Part, Role};

/// Panics if a history would refuse the messages, or those of them that are sent.
#[track_caller]
pub fn assert_history(messages: &[TranscriptMessage]) {
    let all: Vec<&Message> = messages.iter().map(|it| &it.message).collect();
    let sent: Vec<&Message> =
        messages.iter().filter(|it| it.is_sent()).map(|it| &it.message).collect();
    for messages in [all, sent] {
        assert_eq!(history_problem(&messages), None, "{messages:#?}");
    }
}

fn history_problem(messages: &[&Message]) -> Option<String> {
    let mut ids = HashSet::new();
    let mut open: Vec<CallId> = Vec::new();
    let mut expected = Role::User;
    for (number, message) in messages.iter().enumerate() {
        if message.role != expected || message.parts.is_empty() {
            return Some(format!("message {number} is not a message of role {expected:?}"));
        }
        let calls: Vec<CallId> = message.tool_calls().map(|it| it.id.clone()).collect();
        let results: Vec<CallId> = message.tool_results().map(|it| it.call_id.clone()).collect();
        let is_first =
            |(at, part): (usize, &Part)| part.as_tool_result().is_none() || at < results.len();
        if results != open || !message.parts.iter().enumerate().all(is_first) {
            return Some(format!("message {number} has other results than calls are open"));
        }
        if calls.iter().any(|id| id.as_str().is_empty() || !ids.insert(id.clone())) {
            return Some(format!("message {number} has a call with an empty or taken id"));
        }
        if message.tool_calls().any(|call| !call.name.is_valid()) {
            return Some(format!("message {number} has a tool that providers refuse"));
        }
        let thinks = |part: &Part| matches!(part, Part::Thought { .. } | Part::Opaque(_));
        if message.role != Role::Model && (!calls.is_empty() || message.parts.iter().any(thinks)) {
            return Some(format!("message {number} has a part that belongs in an answer"));
        }
        expected = match message.role {
            Role::User | Role::Tool => Role::Model,
            Role::Model if calls.is_empty() => Role::User,
            _ => Role::Tool,
        };
        open = calls;
    }
    (expected == Role::Tool).then(|| "the last calls have no results".to_owned())
}
