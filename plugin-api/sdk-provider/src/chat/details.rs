//! Reasoning that must go back unchanged: the `reasoning_details` of OpenRouter and other servers.
//!
//! Pure. Joins the pieces of an entry, and does not inspect or change its other fields.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::Part;

/// The field in a model's message, in both directions, and in the opaque part that stores it.
pub(crate) const DETAILS: &str = "reasoning_details";

/// The fields of an entry that arrive in pieces.
const TEXTS: [&str; 2] = ["text", "summary"];

/// The vendor's signature of an entry's text, which arrives last.
const SIGNATURE: &str = "signature";

/// The entries of one answer.
#[derive(Debug, Default)]
pub(crate) struct ReasoningDetails {
    entries: Vec<Map<String, Value>>,
}

impl ReasoningDetails {
    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds the entries of one piece, all of which are different. Returns their text.
    pub(crate) fn add_entries(&mut self, piece: &Value) -> String {
        let mut said = String::new();
        let mut taken = Vec::new();
        let list = piece[DETAILS].as_array().map(Vec::as_slice).unwrap_or_default();
        for entry in list.iter().filter_map(Value::as_object) {
            said.extend(TEXTS.iter().filter_map(|key| entry.get(*key)?.as_str()));
            let at = self.find_entry(entry).filter(|at| !taken.contains(at));
            match at {
                Some(at) => merge_piece(&mut self.entries[at], entry),
                None => self.entries.push(entry.clone()),
            }
            taken.push(at.unwrap_or(self.entries.len() - 1));
        }
        said
    }

    /// Finds the entry that a piece continues: the last one with its index, if it has the same kind
    /// and is still open.
    fn find_entry(&self, piece: &Map<String, Value>) -> Option<usize> {
        let is_same = |known: &Map<String, Value>, key: &str| known.get(key) == piece.get(key);
        let at = self.entries.iter().rposition(|known| is_same(known, "index"))?;
        let known = &self.entries[at];
        let id = |entry: &Map<String, Value>| entry.get("id").filter(|id| !id.is_null()).cloned();
        let is_other = id(piece).is_some_and(|new| id(known).is_some_and(|old| old != new));
        let is_ended = has_value(known, SIGNATURE) && TEXTS.iter().any(|key| has_value(piece, key));
        // Encrypted entries arrive in full.
        let has_text = TEXTS.iter().any(|key| known.contains_key(*key));
        (is_same(known, "type") && has_text && !is_other && !is_ended).then_some(at)
    }

    /// Returns the opaque part to send back, if there are entries.
    pub(crate) fn finish(self) -> Option<Value> {
        let entries: Value = self.entries.into_iter().map(Value::Object).collect();
        let is_empty = entries.as_array().is_none_or(Vec::is_empty);
        (!is_empty).then(|| json!({ DETAILS: entries }))
    }
}

/// Adds a piece to its entry: appends to texts, and sets missing fields.
fn merge_piece(known: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (key, value) in piece {
        let grows = TEXTS.contains(&key.as_str()) || key == SIGNATURE;
        match (known.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) if grows => text.push_str(more),
            (Some(Value::Null) | None, _) => {
                known.insert(key.clone(), value.clone());
            }
            (Some(_), _) => {}
        }
    }
}

fn has_value(entry: &Map<String, Value>, key: &str) -> bool {
    entry.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

/// Collects the entries to send back with a model's message, in order. Skips other opaque parts.
pub(crate) fn details_of_parts(parts: &[Part]) -> Vec<Value> {
    let kept = parts.iter().filter_map(|part| match part {
        Part::Opaque(opaque) => opaque.item.get(DETAILS)?.as_array(),
        _ => None,
    });
    kept.flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_details(pieces: &[Value], expected: Value) {
        let mut details = ReasoningDetails::default();
        for piece in pieces {
            details.add_entries(&json!({ DETAILS: piece }));
        }
        assert_eq!(details.finish(), Some(json!({ DETAILS: expected })));
    }

    fn text_detail(index: u64, text: &str) -> Value {
        json!({ "type": "reasoning.text", "text": text, "index": index, "format": "f" })
    }

    fn encrypted_detail(id: &str) -> Value {
        json!({ "type": "reasoning.encrypted", "data": "abc", "id": id, "index": 0 })
    }

    #[test]
    fn reasoning_pieces_are_joined_by_index_and_keep_other_fields() {
        let signed = json!({ "type": "reasoning.text", "signature": "s", "index": 0, "x": [1] });
        check_details(
            &[
                json!([text_detail(0, "a")]),
                json!([text_detail(1, "c")]),
                json!([text_detail(0, "b")]),
                json!([signed]),
            ],
            json!([
                { "type": "reasoning.text", "text": "ab", "index": 0, "format": "f",
                    "signature": "s", "x": [1] },
                text_detail(1, "c"),
            ]),
        );
    }

    #[test]
    fn reasoning_text_after_a_signature_is_a_new_entry() {
        let signed = json!({ "type": "reasoning.text", "text": "", "signature": "s", "index": 0 });
        check_details(
            &[json!([text_detail(0, "a"), signed]), json!([text_detail(0, "b")])],
            json!([text_detail(0, "a"), signed, text_detail(0, "b")]),
        );
    }

    #[test]
    fn encrypted_reasoning_entries_are_never_joined() {
        let (one, two) = (encrypted_detail("1"), encrypted_detail("2"));
        check_details(
            &[json!([text_detail(0, "a")]), json!([one]), json!([two])],
            json!([text_detail(0, "a"), one, two]),
        );
        // Also if one of them has no id.
        check_details(&[json!([one]), json!([one])], json!([one, one]));
    }

    #[test]
    fn reasoning_pieces_without_an_index_continue_the_last_entry() {
        let piece = |text: &str| json!([{ "type": "reasoning.summary", "summary": text }]);
        check_details(
            &[piece("a"), piece("b")],
            json!([{ "type": "reasoning.summary", "summary": "ab" }]),
        );
    }

    #[test]
    fn entries_of_one_reasoning_list_are_separate() {
        check_details(
            &[json!([text_detail(0, "a"), text_detail(0, "b")])],
            json!([text_detail(0, "a"), text_detail(0, "b")]),
        );
    }

    #[test]
    fn invalid_reasoning_details_are_ignored() {
        for odd in [json!(null), json!({}), json!([]), json!([1, "x", null])] {
            let mut details = ReasoningDetails::default();
            assert_eq!(details.add_entries(&json!({ DETAILS: odd })), "");
            assert_eq!(details.finish(), None);
        }
    }
}
