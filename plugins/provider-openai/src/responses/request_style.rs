//! Learns the limits of a server's Responses API from its refusals, and adapts requests. Pure.

use std::collections::BTreeSet;

use jaato_plugin_sdk_provider::chat::is_in_model_family;

/// OpenAI's models that do not reason, by the start of their names. Any other model may reason,
/// including future ones.
const PLAIN: [&str; 8] = [
    "gpt-3.5",
    "gpt-4",
    "chatgpt-4o",
    "gpt-5-chat",
    "gpt-5.1-chat",
    "gpt-5.2-chat",
    "gpt-5.3-chat",
    "computer-use",
];

/// A model's requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponsesRequestStyle {
    /// Whether to ask for encrypted reasoning.
    pub has_encrypted: bool,
    /// Whether to ask for summaries of reasoning.
    pub has_summaries: bool,
    /// Hashes of reasoning items that the server refused because another server created them.
    pub refused: BTreeSet<u64>,
}

/// A change that a server asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponsesRequestChange {
    /// No encrypted reasoning, because the model does not support it.
    NoEncrypted,
    /// No summaries of reasoning, because the model or the account does not support them.
    NoSummaries,
    /// A history without the reasoning that the server cannot read.
    NoReasoning,
}

/// The maximum number of hashes to keep.
const MARKS_MAX: usize = 4096;

impl ResponsesRequestStyle {
    /// Returns a model's requirements before any refusal. `has_summaries` comes from the server's
    /// facts.
    pub fn for_model(model: &str, has_summaries: bool) -> Self {
        let reasons = !PLAIN.iter().any(|beginning| is_in_model_family(model, beginning));
        Self {
            has_encrypted: reasons,
            has_summaries: reasons && has_summaries,
            refused: BTreeSet::new(),
        }
    }

    /// Applies a refusal. Returns `None` if that would not change the request. `marks` are the
    /// hashes of its reasoning items.
    pub fn adapt_to_refusal(
        &self,
        wish: ResponsesRequestChange,
        marks: impl IntoIterator<Item = u64>,
    ) -> Option<Self> {
        let mut other = self.clone();
        match wish {
            ResponsesRequestChange::NoEncrypted => other.has_encrypted = false,
            ResponsesRequestChange::NoSummaries => other.has_summaries = false,
            ResponsesRequestChange::NoReasoning => {
                if other.refused.len() > MARKS_MAX {
                    other.refused.clear();
                }
                other.refused.extend(marks);
            }
        }
        (other != *self).then_some(other)
    }
}

/// Phrases with which servers refuse reasoning that they cannot read or place.
const UNREADABLE: [&str; 8] = [
    "invalid_encrypted_content",
    "not issued to this caller",
    "encrypted content could not be",
    "could not be decrypted",
    "could not be verified",
    "without its required following item",
    "without its required 'reasoning' item",
    "of type 'reasoning' was provided",
];

/// Phrases with which servers refuse something that they do not support.
const UNSUPPORTED: [&str; 4] = ["not support", "unsupported", "unknown", "invalid value"];

/// Reads the change that a server asks for from its refusal.
pub fn requested_change(status: u16, body: &[u8]) -> Option<ResponsesRequestChange> {
    if !matches!(status, 400 | 422) {
        return None;
    }
    let words = String::from_utf8_lossy(body).to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    if says(&UNREADABLE) {
        return Some(ResponsesRequestChange::NoReasoning);
    }
    let names_encrypted =
        says(&["encrypted content", "encrypted_content", "\"include\"", "'include'"]);
    let names_summaries = says(&["reasoning.summary", "reasoning summar"]);
    if names_summaries && (says(&UNSUPPORTED) || says(&["verified"])) {
        return Some(ResponsesRequestChange::NoSummaries);
    }
    (names_encrypted && says(&UNSUPPORTED)).then_some(ResponsesRequestChange::NoEncrypted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasoning_models_are_asked_for_their_reasoning() {
        for (model, expected) in [
            ("gpt-5.2", true),
            ("gpt-5.3-codex", true),
            ("o3", true),
            ("of-the-future", true),
            ("gpt-4o-mini", false),
            ("gpt-4.1", false),
            ("gpt-5-chat-latest", false),
        ] {
            let habits = ResponsesRequestStyle::for_model(model, true);
            assert_eq!((habits.has_encrypted, habits.has_summaries), (expected, expected));
            assert!(!ResponsesRequestStyle::for_model(model, false).has_summaries);
        }
    }

    #[test]
    fn error_text_decides_how_the_request_is_changed() {
        for (body, expected) in [
            (
                r#"{"error":{"code":"invalid_encrypted_content"}}"#,
                ResponsesRequestChange::NoReasoning,
            ),
            (
                "The encrypted content gAAA... could not be verified.",
                ResponsesRequestChange::NoReasoning,
            ),
            (
                "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
                ResponsesRequestChange::NoReasoning,
            ),
            (
                "Encrypted content is not supported with this model.",
                ResponsesRequestChange::NoEncrypted,
            ),
            (
                "Your organization must be verified to generate reasoning summaries.",
                ResponsesRequestChange::NoSummaries,
            ),
            (
                "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
                ResponsesRequestChange::NoSummaries,
            ),
        ] {
            assert_eq!(requested_change(400, body.as_bytes()), Some(expected), "{body}");
            assert_eq!(requested_change(500, body.as_bytes()), None);
        }
        for body in ["bad", "Unsupported parameter: 'temperature'", "the model is unknown"] {
            assert_eq!(requested_change(400, body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn request_change_is_applied_only_once() {
        let habits = ResponsesRequestStyle::for_model("o3", true);
        for wish in [
            ResponsesRequestChange::NoEncrypted,
            ResponsesRequestChange::NoSummaries,
            ResponsesRequestChange::NoReasoning,
        ] {
            let other = habits.adapt_to_refusal(wish, [7]).unwrap();
            assert_eq!(other.adapt_to_refusal(wish, [7]), None, "{wish:?}");
        }
        assert_eq!(habits.adapt_to_refusal(ResponsesRequestChange::NoReasoning, []), None);
    }
}
