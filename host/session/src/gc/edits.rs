//! Applies the edits of a plan to messages that stay. The record keeps the originals.
//!
//! Invariant: an edit never makes a part larger. One that would is left out.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jaato_types::{CallId, DataContent, GcChange, GcEdit, Message, Part, ToolResult};
use serde_json::{Value, json};

use super::PART_BYTES_MIN;
use super::count::{message_weight, part_weight};
use super::cut::PartPosition;
use crate::Session;
use crate::history::HistoryEntry;

/// The key of a result that a later one replaces, and of objects that a later message shows again.
const OUTDATED: &str = "outdated";

/// The key of the text that replaces an attachment of a result.
const ATTACHMENT: &str = "attachment";

/// A message of the record that is sent in another form.
pub(super) struct EditedMessage {
    /// The index in the record.
    pub(super) at: usize,
    pub(super) sent: Message,
    /// How much smaller it is.
    pub(super) freed: u64,
}

impl Session {
    /// Creates the messages that a checked plan's edits lead to. `places` are the indices in the
    /// record of the messages in the gc's request.
    pub(super) async fn edited_messages(
        &self,
        edits: &[GcEdit],
        places: &[usize],
    ) -> Vec<EditedMessage> {
        let mut of_message: BTreeMap<usize, Vec<&GcEdit>> = BTreeMap::new();
        for edit in edits {
            of_message.entry(edit.message).or_default().push(edit);
        }
        let mut edited = Vec::new();
        for (message, mut edits) in of_message {
            // A result is shortened before its attachments are removed, the last one first.
            edits.sort_by_key(|edit| {
                let attachment = described_attachment(edit);
                (edit.part, attachment.is_some(), Reverse(attachment))
            });
            let Some(&at) = places.get(message) else { continue };
            let Some(entry) = self.history.entries().get(at) else { continue };
            let sent = self.edited_message(entry, at, &edits).await;
            let before = message_weight(entry.sent_message());
            let freed = before.saturating_sub(message_weight(&sent));
            if freed > 0 && !sent.parts.is_empty() {
                edited.push(EditedMessage { at, sent, freed });
            }
        }
        edited
    }

    async fn edited_message(&self, entry: &HistoryEntry, at: usize, edits: &[&GcEdit]) -> Message {
        let mut sent = entry.sent_message().clone();
        let in_front = entry.count_leading_parts();
        let own: Vec<&Part> = entry.sent_parts().map(|(_, part)| part).collect();
        for edit in edits {
            let Some(shown) = sent.parts.get(edit.part) else { continue };
            let whole = edit.part.checked_sub(in_front).and_then(|at| own.get(at).copied());
            let changed = match &edit.change {
                GcChange::Shorten { bytes_max } => match whole {
                    Some(whole) => {
                        let short =
                            self.shorten_edited_part(whole, at, edit.part, *bytes_max).await;
                        keep_descriptions(shown, short)
                    }
                    None => continue,
                },
                GcChange::Repeated { by } => {
                    map_result(shown, |result| repeated_result(result, by))
                }
                GcChange::Describe { attachment, text } => described_part(shown, *attachment, text),
                GcChange::Remove | GcChange::Unknown => continue,
            };
            let is_smaller = part_weight(&changed) < part_weight(shown);
            if let Some(shown) = sent.parts.get_mut(edit.part).filter(|_| is_smaller) {
                *shown = changed;
            }
        }
        let removes =
            |at: usize| edits.iter().any(|edit| edit.part == at && edit.change == GcChange::Remove);
        let parts = sent.parts.into_iter().enumerate();
        let parts = parts.filter(|(at, _)| !removes(*at)).map(|(_, part)| part).collect();
        Message { parts, ..sent }
    }

    async fn shorten_edited_part(
        &self,
        whole: &Part,
        at: usize,
        part: usize,
        bytes_max: u64,
    ) -> Part {
        let turn = CallId::new(format!("gc-{}", self.history.turn_count()));
        let position = PartPosition { message: at, part, turn: &turn };
        self.shorten_part(whole, position, bytes_max.max(PART_BYTES_MIN)).await.0
    }

    /// Marks objects that the kept messages show as outdated, because a collection shows all
    /// current objects again in a later message. References to objects that were removed or
    /// replaced end this way. The open turn and pinned turns stay.
    pub(super) fn mark_objects_outdated(&mut self) {
        let open = self.history.last_turn_range().start;
        let pinned = self.pinned_messages();
        let places = self.history.sent_indices().into_iter().enumerate();
        let free = places.filter(|(message, at)| *at < open && !pinned.contains(message));
        let changed: Vec<(usize, Message)> = free
            .map(|(_, at)| (at, self.history.entries()[at].sent_message()))
            .filter(|(_, sent)| sent.parts.iter().any(shows_objects))
            .map(|(at, sent)| (at, sent.clone()))
            .collect();
        for (at, mut sent) in changed {
            for part in sent.parts.iter_mut().filter(|part| shows_objects(part)) {
                if let Part::Data(data) = part {
                    data.content = DataContent::json(json!({
                        OUTDATED: "those of these objects that still exist are in a later message",
                    }));
                }
            }
            if let Err(error) = self.history.replace_sent_message(at, sent) {
                self.shared.emitter.emit_notice(format!("outdated objects stay: {error}"));
            }
        }
    }
}

/// Returns true if a part shows objects of the session, as `SharedObjects::unseen_objects` does.
fn shows_objects(part: &Part) -> bool {
    let Part::Data(data) = part else { return false };
    let DataContent::Json { json: Value::Object(json), .. } = &data.content else { return false };
    json.get("environment").is_some_and(Value::is_object)
        && json.keys().all(|key| key == "environment" || key == "more_objects")
}

/// Returns the attachment that an edit describes.
pub(super) fn described_attachment(edit: &GcEdit) -> Option<usize> {
    match &edit.change {
        GcChange::Describe { attachment, .. } => *attachment,
        _ => None,
    }
}

fn map_result(part: &Part, change: impl FnOnce(&ToolResult) -> ToolResult) -> Part {
    match part {
        Part::ToolResult(result) => Part::ToolResult(change(result)),
        part => part.clone(),
    }
}

fn repeated_result(result: &ToolResult, by: &CallId) -> ToolResult {
    let text = format!("the later call `{by}` of `{}` has the current result", result.name);
    let mut repeated = result.clone();
    repeated.content = [(OUTDATED.to_owned(), text.into())].into_iter().collect();
    repeated.attachments = Vec::new();
    repeated
}

/// Returns a result made from the original, with the descriptions that replaced its attachments.
pub(super) fn keep_descriptions(shown: &Part, made: Part) -> Part {
    let (shown, mut made) = match (shown, made) {
        (Part::ToolResult(shown), Part::ToolResult(made)) => (shown, made),
        (_, made) => return made,
    };
    if made.attachments.len() > shown.attachments.len() {
        made.attachments.clone_from(&shown.attachments);
        let is_description =
            |key: &str| key.starts_with(ATTACHMENT) && !made.content.contains_key(key);
        let descriptions = shown.content.iter().filter(|(key, _)| is_description(key));
        let descriptions: Vec<_> =
            descriptions.map(|(key, text)| (key.clone(), text.clone())).collect();
        made.content.extend(descriptions);
    }
    Part::ToolResult(made)
}

/// Returns a part with a text instead of its file. An attachment's text is under the key
/// `attachment`, followed by a number if the tool uses that key.
fn described_part(part: &Part, attachment: Option<usize>, text: &str) -> Part {
    match (part, attachment) {
        (Part::Data(_), None) => Part::text(text),
        (Part::ToolResult(result), Some(at)) if at < result.attachments.len() => {
            let mut result = result.clone();
            result.attachments.remove(at);
            let numbered = (2..).map(|number| format!("{ATTACHMENT}_{number}"));
            let mut keys = std::iter::once(ATTACHMENT.to_owned()).chain(numbered);
            if let Some(key) = keys.find(|key| !result.content.contains_key(key)) {
                result.content.insert(key, text.into());
            }
            Part::ToolResult(result)
        }
        (part, _) => part.clone(),
    }
}

#[cfg(test)]
mod tests {
    use jaato_types::DataPart;
    use serde_json::Map;

    use super::*;

    #[test]
    fn description_takes_the_place_of_an_image_or_attachment() {
        let image = DataPart::blob("image/png", "00");
        assert_eq!(described_part(&Part::Data(image.clone()), None, "a cat"), Part::text("a cat"));
        let content = Map::from_iter([("attachment".to_owned(), json!(1))]);
        let mut result = ToolResult::new("1", "look", content);
        result.attachments = vec![image];
        let Part::ToolResult(shown) = described_part(&Part::ToolResult(result), Some(0), "a cat")
        else {
            panic!("another part")
        };
        assert!(shown.attachments.is_empty());
        assert_eq!(
            Value::Object(shown.content),
            json!({ "attachment": 1, "attachment_2": "a cat" })
        );
    }

    #[test]
    fn only_the_hosts_view_of_objects_counts_as_objects() {
        let part = |json: Value| Part::json(json);
        assert!(shows_objects(&part(json!({ "environment": {}, "more_objects": {} }))));
        for other in [json!({ "environment": {}, "x": 1 }), json!({}), json!({ "environment": 1 })]
        {
            assert!(!shows_objects(&part(other)));
        }
    }
}
