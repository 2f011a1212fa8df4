//! What a server says of Responses by a refusal, and what is sent from then on. Pure.

use std::collections::BTreeSet;

use jaato_plugin_sdk_provider::chat::is_of_family;

/// OpenAI's models that do not reason, by the beginnings of their names. Any other may, one of the
/// future as well.
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

/// How a model wants to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Habits {
    /// Whether encrypted reasoning is asked for.
    pub has_encrypted: bool,
    /// Whether summaries of reasoning are asked for.
    pub has_summaries: bool,
    /// Marks of reasoning that the server did not take back, as it is another's.
    pub refused: BTreeSet<u64>,
}

/// What a server wants differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// No encrypted reasoning: the model has none.
    NoEncrypted,
    /// No summaries of reasoning: the model has none, or the account may not see them.
    NoSummaries,
    /// The history without reasoning, which it cannot read.
    NoReasoning,
}

/// Most marks that are kept.
const MARKS_MAX: usize = 4096;

impl Habits {
    /// Those of a model, before anything was refused; `has_summaries` is the server's.
    pub fn of_model(model: &str, has_summaries: bool) -> Self {
        let reasons = !PLAIN.iter().any(|beginning| is_of_family(model, beginning));
        Self {
            has_encrypted: reasons,
            has_summaries: reasons && has_summaries,
            refused: BTreeSet::new(),
        }
    }

    /// Follows a refusal; `None` where that would change nothing of the request. `marks` are those
    /// of the reasoning that it holds.
    pub fn follow(&self, wish: Wish, marks: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut other = self.clone();
        match wish {
            Wish::NoEncrypted => other.has_encrypted = false,
            Wish::NoSummaries => other.has_summaries = false,
            Wish::NoReasoning => {
                if other.refused.len() > MARKS_MAX {
                    other.refused.clear();
                }
                other.refused.extend(marks);
            }
        }
        (other != *self).then_some(other)
    }
}

/// What servers say of reasoning that they cannot read, or cannot place.
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

/// What they say of what they do not take.
const UNSUPPORTED: [&str; 4] = ["not support", "unsupported", "unknown", "invalid value"];

/// Reads what a server wants differently out of its refusal.
pub fn wish(status: u16, body: &[u8]) -> Option<Wish> {
    if !matches!(status, 400 | 422) {
        return None;
    }
    let words = String::from_utf8_lossy(body).to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    if says(&UNREADABLE) {
        return Some(Wish::NoReasoning);
    }
    let names_encrypted =
        says(&["encrypted content", "encrypted_content", "\"include\"", "'include'"]);
    let names_summaries = says(&["reasoning.summary", "reasoning summar"]);
    if names_summaries && (says(&UNSUPPORTED) || says(&["verified"])) {
        return Some(Wish::NoSummaries);
    }
    (names_encrypted && says(&UNSUPPORTED)).then_some(Wish::NoEncrypted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reasons_is_asked_for_its_reasoning() {
        for (model, expected) in [
            ("gpt-5.2", true),
            ("gpt-5.3-codex", true),
            ("o3", true),
            ("of-the-future", true),
            ("gpt-4o-mini", false),
            ("gpt-4.1", false),
            ("gpt-5-chat-latest", false),
        ] {
            let habits = Habits::of_model(model, true);
            assert_eq!((habits.has_encrypted, habits.has_summaries), (expected, expected));
            assert!(!Habits::of_model(model, false).has_summaries);
        }
    }

    #[test]
    fn a_refusal_tells_what_is_wanted() {
        for (body, expected) in [
            (r#"{"error":{"code":"invalid_encrypted_content"}}"#, Wish::NoReasoning),
            ("The encrypted content gAAA... could not be verified.", Wish::NoReasoning),
            (
                "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
                Wish::NoReasoning,
            ),
            ("Encrypted content is not supported with this model.", Wish::NoEncrypted),
            (
                "Your organization must be verified to generate reasoning summaries.",
                Wish::NoSummaries,
            ),
            (
                "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
                Wish::NoSummaries,
            ),
        ] {
            assert_eq!(wish(400, body.as_bytes()), Some(expected), "{body}");
            assert_eq!(wish(500, body.as_bytes()), None);
        }
        for body in ["bad", "Unsupported parameter: 'temperature'", "the model is unknown"] {
            assert_eq!(wish(400, body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn a_wish_is_followed_once() {
        let habits = Habits::of_model("o3", true);
        for wish in [Wish::NoEncrypted, Wish::NoSummaries, Wish::NoReasoning] {
            let other = habits.follow(wish, [7]).unwrap();
            assert_eq!(other.follow(wish, [7]), None, "{wish:?}");
        }
        assert_eq!(habits.follow(Wish::NoReasoning, []), None);
    }
}
