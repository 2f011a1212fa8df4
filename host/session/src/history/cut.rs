//! Cuts: the points in a conversation at which the history that was sent may change. Between them
//! it stays the same byte for byte.
//!
//! Models sign their thoughts over everything before them, and refuse a request in which that
//! differs. So if the sent history changes, every thought, signature and opaque part before the
//! change is removed. No marker replaces them, and no provider has a rule of its own.

use std::sync::Arc;

use jaato_types::{Message, ModelId, Part};

use super::{History, HistoryEntry};

/// Replaces an answer of which nothing is left. That never happens to a turn's answer, because each
/// has text or calls.
const NOTHING_LEFT: &str = "…";

impl History {
    /// Removes thoughts, signatures, opaque parts and changes of tools from everything that is
    /// sent. The record keeps them.
    pub(crate) fn apply_cut(&mut self) {
        for entry in self.entries.iter_mut().filter(|entry| entry.is_sent()) {
            if let Some(shorn) = without_cut_parts(entry.sent_message()) {
                Arc::make_mut(entry).sent = Some(shorn);
            }
        }
    }

    /// Lists the messages for a model. Signatures, thoughts and opaque parts of other models are
    /// left out.
    pub(crate) fn messages_for_model(&self, model: &ModelId) -> impl Iterator<Item = Message> {
        let sent = self.entries.iter().filter(|entry| entry.is_sent());
        sent.map(move |entry| {
            let is_own = entry.made_by.as_ref() == Some(model);
            let message = entry.sent_message();
            let other = if is_own { None } else { without_maker_parts(message) };
            other.unwrap_or_else(|| message.clone())
        })
    }
}

impl HistoryEntry {
    /// Counts the parts that are sent in front of the message's own.
    pub(crate) fn count_leading_parts(&self) -> usize {
        self.sent_message().parts.len().saturating_sub(self.sent_parts().count())
    }

    /// Lists the message's parts of which something is sent, each with its index in the message.
    pub(crate) fn sent_parts(&self) -> impl Iterator<Item = (usize, &Part)> {
        let is_change = |part: &Part| matches!(part, Part::ToolsChanged(_));
        let has_changes = self.sent_message().parts.iter().any(is_change);
        let parts = self.message.parts.iter().enumerate();
        parts.filter(move |(_, part)| has_changes || !is_change(part))
    }
}

/// Returns the message without the parts that a cut removes. Returns `None` if nothing is removed.
pub(super) fn without_cut_parts(message: &Message) -> Option<Message> {
    without_parts(message, |part| {
        matches!(part, Part::Thought { .. } | Part::Opaque(_) | Part::ToolsChanged(_))
    })
}

/// Returns the message without the parts that only their maker understands. Returns `None` if
/// nothing is removed.
fn without_maker_parts(message: &Message) -> Option<Message> {
    without_parts(message, |part| matches!(part, Part::Thought { .. } | Part::Opaque(_)))
}

fn without_parts(message: &Message, goes: impl Fn(&Part) -> bool) -> Option<Message> {
    let stays = |part: &Part| !goes(part) && part.signature().is_none();
    if message.parts.iter().all(stays) {
        return None;
    }
    let mut shorn = message.clone();
    shorn.parts.retain(|part| !goes(part) && !is_empty_signed_text(part));
    for place in shorn.parts.iter_mut().filter_map(Part::signature_mut) {
        *place = None;
    }
    if shorn.parts.is_empty() {
        shorn.parts.push(Part::text(NOTHING_LEFT));
    }
    Some(shorn)
}

/// Returns true for an empty text that exists only for its signature.
fn is_empty_signed_text(part: &Part) -> bool {
    matches!(part, Part::Text { text, signature: Some(_), .. } if text.is_empty())
}

#[cfg(test)]
mod tests {
    use jaato_types::{ToolCall, ToolName, ToolsChanged};
    use serde_json::json;

    use super::*;

    fn answer_parts() -> Vec<Part> {
        let call = Part::ToolCall(ToolCall::new("1", "look", json!({}))).with_signature("c");
        vec![
            Part::thought("hm").with_signature("t"),
            Part::opaque(json!({ "id": 1 })),
            Part::text("one"),
            Part::text("two").with_signature("s"),
            Part::text("").with_signature("e"),
            call,
        ]
    }

    fn sample_history() -> History {
        let mut history = History::new();
        let removed = vec![ToolName::from("gone")];
        let change = Part::ToolsChanged(ToolsChanged { removed, ..ToolsChanged::default() });
        history.append_prompt(vec![Part::text("look"), change]).unwrap();
        history.append_model_answer(&ModelId::from("a/m"), answer_parts(), None).unwrap();
        history
    }

    fn message_texts(messages: impl IntoIterator<Item = Message>) -> Vec<String> {
        let parts = messages.into_iter().flat_map(|message| message.parts);
        parts.map(|part| serde_json::to_string(&part).unwrap()).collect()
    }

    const SHORN: [&str; 3] = [
        r#"{"type":"text","text":"one"}"#,
        r#"{"type":"text","text":"two"}"#,
        r#"{"type":"tool_call","id":"1","name":"look","arguments":{}}"#,
    ];

    #[test]
    fn cut_removes_signatures_and_thoughts_but_the_record_keeps_them() {
        let mut history = sample_history();
        let record: Vec<Message> =
            history.entries().iter().map(|entry| entry.message.clone()).collect();
        history.apply_cut();
        let prompt = r#"{"type":"text","text":"look"}"#;
        let expected: Vec<&str> = [prompt].into_iter().chain(SHORN).collect();
        assert_eq!(message_texts(history.messages().cloned()), expected);
        let kept: Vec<Message> =
            history.entries().iter().map(|entry| entry.message.clone()).collect();
        assert_eq!(kept, record);
        let restored = History::restore(history.entries().iter().cloned());
        assert_eq!(restored.as_ref(), Ok(&history), "a cut history is one");
        let once = history.clone();
        history.apply_cut();
        assert_eq!(history, once, "a second cut finds nothing");
    }

    #[test]
    fn opaque_parts_of_a_model_are_sent_back_only_to_that_model() {
        let history = sample_history();
        let own: Vec<Message> = history.messages_for_model(&ModelId::from("a/m")).collect();
        assert_eq!(own[1].parts, answer_parts());
        let prompt =
            message_texts([history.messages_for_model(&ModelId::from("b/m")).next().unwrap()]);
        assert_eq!(prompt.len(), 2, "the change of tools stays: it is the session's");
        let stranger = ModelId::from("b/m");
        assert_eq!(message_texts(history.messages_for_model(&stranger).skip(1)), SHORN);
    }

    #[test]
    fn message_without_its_tools_change_is_not_confused_with_a_summary() {
        let mut history = sample_history();
        let sent = |history: &History| {
            let entry = &history.entries()[0];
            (entry.count_leading_parts(), entry.sent_parts().count())
        };
        assert_eq!(sent(&history), (0, 2));
        history.apply_cut();
        assert_eq!(sent(&history), (0, 1));
        let mut parts = vec![Part::text("summary")];
        parts.extend(history.entries()[0].sent_message().parts.iter().cloned());
        let message = Message { parts, ..history.entries()[0].message.clone() };
        history.replace_sent_message(0, message).unwrap();
        assert_eq!(sent(&history), (1, 1));
    }
}
