//! Checks whether an entry may join a history. Pure: looks at the record and at that entry.

use std::collections::HashSet;

use jaato_types::{CallId, Message, Part, Role};

use super::{ExpectedMessage, History, HistoryEntry, MessageMark, cut};

/// Why an entry cannot join a history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The role is not the one that must come next.
    #[error("the history needs {expected} next, not a message with the role `{}`", role_name(*.found))]
    Role {
        /// The roles that may come next: `a prompt`, `an answer`, `tool results`.
        expected: &'static str,
        /// The role of the entry.
        found: Role,
    },
    /// A role that this version does not know.
    #[error("a message has a role that this version of jaato does not know")]
    UnknownRole,
    /// The message has no parts.
    #[error("a message with the role `{}` has no parts", role_name(*.0))]
    Empty(Role),
    /// A part that does not belong in a message of that role.
    #[error("a message with the role `{}` has a part that does not belong there", role_name(*.0))]
    Part(Role),
    /// A call's id is empty.
    #[error("a tool call has an empty id")]
    EmptyCallId,
    /// A call's id is taken.
    #[error("the id `{0}` of a tool call is already used")]
    DuplicateCallId(CallId),
    /// The results do not match the calls, one each and in order.
    #[error(
        "the tool results {} do not answer the tool calls {} in order",
        format_ids(.results),
        format_ids(.calls)
    )]
    Results {
        /// The calls.
        calls: Vec<CallId>,
        /// The results.
        results: Vec<CallId>,
    },
    /// A mark that does not fit the role.
    #[error("a message with the role `{}` cannot have that mark", role_name(*.0))]
    Mark(Role),
    /// The summary has no prompt that it could precede.
    #[error("a summary needs a prompt after it")]
    Summary,
    /// The replacement for a message is of another kind.
    #[error("the replacement of a message has another role, call or result")]
    Sent,
}

/// Checks one entry against the record.
pub(super) fn check_entry(history: &History, entry: &HistoryEntry) -> Result<(), HistoryError> {
    let HistoryEntry { message, mark, sent, .. } = entry;
    let is_collected = *mark == Some(MessageMark::Collected);
    if !is_collected {
        check_role(history.expected_message(), message.role)?;
    }
    if let Some(sent) = sent {
        check_replacement(message, sent)?;
    }
    match (mark, message.role) {
        (None | Some(MessageMark::Collected), _)
        | (Some(MessageMark::Unsent), Role::User)
        | (Some(MessageMark::Partial), Role::Model) => {}
        (Some(_), role) => return Err(HistoryError::Mark(role)),
    }
    match message.role {
        Role::User => check_parts(message, is_user_content),
        Role::Model => {
            check_parts(message, |part| !matches!(part, Part::ToolResult(_)))?;
            check_calls(history, message)
        }
        // Its calls may have been collected as well, and may be anywhere before it.
        Role::Tool if is_collected => {
            check_parts(message, |part| !matches!(part, Part::ToolCall(_)))
        }
        Role::Tool => check_results(history, message),
        Role::Unknown => Err(HistoryError::UnknownRole),
    }
}

/// Checks the replacement for a message: it has the same role and, part for part, the same kind,
/// calls and results, or the same without the parts that a cut removes. Texts may precede a prompt.
pub(super) fn check_replacement(message: &Message, sent: &Message) -> Result<(), HistoryError> {
    let holds = has_same_structure(message, sent)
        || cut::without_cut_parts(message)
            .is_some_and(|message| has_same_structure(&message, sent));
    if holds { Ok(()) } else { Err(HistoryError::Sent) }
}

fn has_same_structure(message: &Message, sent: &Message) -> bool {
    let Some(in_front) = sent.parts.len().checked_sub(message.parts.len()) else { return false };
    let (front, rest) = sent.parts.split_at(in_front);
    let is_text = |part: &Part| matches!(part, Part::Text { .. });
    let is_like = |(part, sent): (&Part, &Part)| match (part, sent) {
        (Part::ToolResult(one), Part::ToolResult(other)) => {
            (&one.call_id, &one.name, one.is_error) == (&other.call_id, &other.name, other.is_error)
        }
        (Part::Text { .. }, Part::Text { .. }) | (Part::Data(_), Part::Data(_)) => true,
        // A description of an image or file.
        (Part::Data(data), Part::Text { .. }) => data.blob_id().is_some(),
        (part, sent) => part == sent,
    };
    message.role == sent.role
        && !sent.parts.is_empty()
        && (in_front == 0 || message.role == Role::User)
        && front.iter().all(is_text)
        && message.parts.iter().zip(rest).all(is_like)
}

fn check_role(next: ExpectedMessage, found: Role) -> Result<(), HistoryError> {
    let (wanted, expected) = match next {
        ExpectedMessage::Prompt => (Role::User, "a prompt"),
        ExpectedMessage::Answer => (Role::Model, "an answer"),
        ExpectedMessage::Results => (Role::Tool, "tool results"),
    };
    if found == wanted { Ok(()) } else { Err(HistoryError::Role { expected, found }) }
}

fn check_parts(message: &Message, fits: impl Fn(&Part) -> bool) -> Result<(), HistoryError> {
    if message.parts.is_empty() {
        return Err(HistoryError::Empty(message.role));
    }
    if message.parts.iter().all(fits) { Ok(()) } else { Err(HistoryError::Part(message.role)) }
}

/// Returns true for the parts of a user's message, which may also follow results. A part that this
/// version does not know comes from a newer one, which accepted it.
pub(super) fn is_user_content(part: &Part) -> bool {
    matches!(part, Part::Text { .. } | Part::Data(_) | Part::ToolsChanged(_) | Part::Unknown(_))
}

fn check_calls(history: &History, message: &Message) -> Result<(), HistoryError> {
    let mut fresh = HashSet::new();
    for call in message.tool_calls() {
        if call.id.as_str().is_empty() {
            return Err(HistoryError::EmptyCallId);
        }
        if history.has_call(&call.id) || !fresh.insert(&call.id) {
            return Err(HistoryError::DuplicateCallId(call.id.clone()));
        }
    }
    Ok(())
}

/// Checks results: they come first, one for each call and in call order. Text and data about events
/// during the calls may follow.
fn check_results(history: &History, message: &Message) -> Result<(), HistoryError> {
    let calls: Vec<CallId> = history.open_calls().map(|call| call.id.clone()).collect();
    let results: Vec<CallId> =
        message.tool_results().map(|result| result.call_id.clone()).collect();
    if calls != results {
        return Err(HistoryError::Results { calls, results });
    }
    let (first, rest) = message.parts.split_at(results.len());
    let in_order = first.iter().all(|part| matches!(part, Part::ToolResult(_)))
        && rest.iter().all(is_user_content);
    if in_order { Ok(()) } else { Err(HistoryError::Part(Role::Tool)) }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Model => "model",
        Role::Tool => "tool",
        Role::Unknown => "unknown",
    }
}

fn format_ids(ids: &[CallId]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    if quoted.is_empty() { "(none)".to_owned() } else { quoted.join(", ") }
}
