//! Truncates the largest parts of messages to head and tail. The whole of each part is in a file.
//!
//! The record keeps the whole, and each truncation starts from it. Counts are therefore exact, and
//! the request stays the same byte for byte until the next truncation.

use std::ops::Range;

use jaato_types::{CallId, DataContent, DataPart, Message, Part, Role};
use serde_json::Value;

use super::edits::keep_descriptions;
use super::json_bytes;
use crate::Session;
use crate::output::{self, ResultLimit, largest_share};

/// The smallest size to which a part is truncated, as JSON. A smaller one would tell a model
/// only where the full content is.
pub(super) const PART_BYTES_MIN: u64 = 512;

/// The result of a truncation.
#[derive(Debug, Default)]
pub(super) struct TruncationResult {
    /// The number of messages that became shorter.
    pub(super) messages: u64,
    /// The note for the user.
    pub(super) note: String,
}

/// The position of a part, for the names of files.
pub(super) struct PartPosition<'a> {
    /// The index of the message within its turn.
    pub(super) message: usize,
    pub(super) part: usize,
    pub(super) turn: &'a CallId,
}

impl Session {
    /// Truncates the largest parts of the messages at these positions of the record, until all of
    /// them together have at most `bytes_max` bytes or no part can be shorter.
    pub(super) async fn truncate_largest_parts(
        &mut self,
        places: Range<usize>,
        bytes_max: u64,
    ) -> TruncationResult {
        let sizes = self.shortenable_sizes(places.clone());
        let total: u64 = self.history.sent_messages(places.clone()).map(json_bytes).sum();
        let fixed = total.saturating_sub(sizes.iter().sum());
        let room = bytes_max.saturating_sub(fixed);
        let most = largest_share(sizes.into_iter(), room).max(PART_BYTES_MIN);
        let turn = CallId::new(format!("turn-{}", self.history.turn_count()));
        let turn_start = self.history.last_turn_range().start;
        let (mut messages, mut notes) = (0, Vec::new());
        let mut was_sent = false;
        for at in places {
            let message = at.saturating_sub(turn_start);
            let Some(shorter) = self.shorten_message(at, message, &turn, most, &mut notes).await
            else {
                continue;
            };
            self.begin_collection();
            // The calls, results and role are the same. If the history refuses the message, that is
            // a bug, and the message stays as it is.
            match self.history.replace_sent_message(at, shorter) {
                Ok(()) => {
                    messages += 1;
                    was_sent |= at < self.sent_entries;
                }
                Err(error) => {
                    self.shared.emitter.emit_notice(format!("a message stays whole: {error}"))
                }
            }
        }
        if was_sent {
            self.make_cut();
        }
        TruncationResult { messages, note: truncation_note(&notes) }
    }

    /// Returns the sizes of all parts that could be shorter.
    fn shortenable_sizes(&self, places: Range<usize>) -> Vec<u64> {
        let others =
            self.history.sent_messages(places).filter(|message| message.role != Role::Model);
        let parts = others.flat_map(|message| &message.parts);
        parts.filter(|part| can_be_shortened(part)).map(json_bytes).collect()
    }

    /// Creates a truncated message to send instead of one. Returns `None` if no part is larger
    /// than `most`.
    async fn shorten_message(
        &self,
        at: usize,
        message: usize,
        turn: &CallId,
        most: u64,
        notes: &mut Vec<String>,
    ) -> Option<Message> {
        let entry = self.history.entries().get(at)?;
        if entry.message.role == Role::Model {
            return None;
        }
        let mut sent = entry.sent_message().clone();
        // A summary comes before the message's own parts.
        let in_front = entry.count_leading_parts();
        let mut changed = false;
        for (place, (part, whole)) in entry.sent_parts().enumerate() {
            let Some(shown) = sent.parts.get_mut(in_front + place) else { continue };
            let bytes = json_bytes(shown);
            if bytes <= most || !can_be_shortened(whole) {
                continue;
            }
            let place = PartPosition { message, part, turn };
            let (shorter, told) = self.shorten_part(whole, place, most).await;
            let shorter = keep_descriptions(shown, shorter);
            if json_bytes(&shorter) < bytes {
                *shown = shorter;
                notes.push(told);
                changed = true;
            }
        }
        changed.then_some(sent)
    }

    /// Returns the head and tail of a part, of about `most` bytes, and the note for the user.
    pub(super) async fn shorten_part(
        &self,
        whole: &Part,
        place: PartPosition<'_>,
        most: u64,
    ) -> (Part, String) {
        let store = &*self.shared.ports.outputs;
        let label = format!("{}-{}", place.message, place.part);
        let bytes_max = |content: &dyn Fn() -> u64| {
            let frame = json_bytes(whole).saturating_sub(content());
            usize::try_from(most.saturating_sub(frame)).unwrap_or(usize::MAX)
        };
        match whole {
            Part::Text { text, .. } => {
                let kept =
                    output::write_whole_file(store, place.turn, &label, text.as_bytes()).await;
                let file = match kept {
                    Ok(path) => format!("the whole text is in the file `{path}`"),
                    Err(error) => format!("the whole text is not kept: {}", error.message),
                };
                let room = usize::try_from(most).unwrap_or(usize::MAX);
                let (text, told) = shorten_text(text, &file, room);
                (Part::text(text), told)
            }
            Part::ToolResult(result) => {
                // Files of the call itself are left alone.
                let call = CallId::new(format!("{}-gc", result.call_id));
                let bytes_max = bytes_max(&|| json_bytes(&result.content));
                let fitting = ResultLimit { call: &call, bytes_max, store };
                let mut result = result.clone();
                result.content = output::fit_to_limit(result.content, fitting).await;
                let told = format!("the result of `{}` is sent as head and tail", result.name);
                (Part::ToolResult(result), told)
            }
            Part::Data(DataPart { mime_type, content: DataContent::Json { json, .. }, .. }) => {
                let Value::Object(content) = json else { return (whole.clone(), String::new()) };
                let call = CallId::new(format!("{}-{label}", place.turn));
                let bytes_max = bytes_max(&|| json_bytes(content));
                let fitting = ResultLimit { call: &call, bytes_max, store };
                let json = Value::Object(output::fit_to_limit(content.clone(), fitting).await);
                let content = DataContent::json(json);
                let told = "the outcome of a task is sent as head and tail".to_owned();
                let mime_type = mime_type.clone();
                (Part::Data(DataPart { mime_type, content, ..DataPart::default() }), told)
            }
            Part::ToolCall(_)
            | Part::Data(_)
            | Part::Thought { .. }
            | Part::Opaque(_)
            | Part::ToolsChanged(_)
            | Part::Unknown(_) => (whole.clone(), String::new()),
        }
    }
}

pub(super) fn can_be_shortened(part: &Part) -> bool {
    match part {
        Part::Text { .. } | Part::ToolResult(_) => true,
        Part::Data(data) => {
            matches!(&data.content, DataContent::Json { json, .. } if json.is_object())
        }
        Part::ToolCall(_)
        | Part::Thought { .. }
        | Part::Opaque(_)
        | Part::ToolsChanged(_)
        | Part::Unknown(_) => false,
    }
}

/// Returns both ends of a text. The note between them says how much is missing and where it is.
fn shorten_text(text: &str, file: &str, bytes_max: usize) -> (String, String) {
    let gap = |left_out: usize| {
        format!("\n\n[… {left_out} of {} bytes are left out here; {file} …]\n\n", text.len())
    };
    // The JSON around the part's text, with the widest note.
    let frame = json_bytes(&Part::text(gap(text.len())));
    let room = bytes_max.saturating_sub(usize::try_from(frame).unwrap_or(usize::MAX));
    let (head, tail) = output::head_and_tail(text, None, room);
    let left_out = text.len() - head.len() - tail.len();
    let told = format!(
        "a text of {} bytes is sent as its first {} and last {} bytes; {file}",
        text.len(),
        head.len(),
        tail.len()
    );
    (format!("{head}{}{tail}", gap(left_out)), told)
}

fn truncation_note(notes: &[String]) -> String {
    match notes {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first}; and {} more like it", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_text_are_shown_with_exact_counts() {
        for text in ["x".repeat(5_000), "ü\n\"".repeat(2_000), "日本".repeat(900)] {
            let (shown, told) = shorten_text(&text, "the whole text is in the file `/f`", 1_500);
            assert!(json_bytes(&Part::text(shown.as_str())) <= 1_500, "{shown}");
            let (head, rest) = shown.split_once("\n\n[… ").unwrap();
            let (gap, tail) = rest.split_once(" …]\n\n").unwrap();
            assert!(text.starts_with(head) && text.ends_with(tail));
            let left_out = text.len() - head.len() - tail.len();
            let expected = format!(
                "{left_out} of {} bytes are left out here; the whole text is in the file `/f`",
                text.len()
            );
            assert_eq!(gap, expected);
            assert!(told.contains(&format!("first {} and last {}", head.len(), tail.len())));
        }
    }
}
