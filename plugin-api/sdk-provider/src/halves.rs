//! Joins characters whose halves arrive in different events.
//!
//! Servers that split UTF-16 text send one half of a surrogate pair at the end of an event and the
//! other half at the start of the next. JSON with half a pair is invalid, so a private character
//! replaces each half until both have arrived. A half without its partner becomes U+FFFD.
//!
//! Readers need not know about this: events are repaired before a reader gets them, and the halves
//! in its results are joined afterwards.

use std::borrow::Cow;

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::{Completion, Delta, Part, ToolCall};

/// The stand-in for U+D800. The last private plane has room for all 2048, and no other use.
const STAND_INS: u32 = 0x10_F800;

/// The first high surrogate, and the first low surrogate.
const HIGH: u32 = 0xD800;
const LOW: u32 = 0xDC00;

/// The last surrogate.
const LAST: u32 = 0xDFFF;

/// The length of an escape in bytes: `\uD83D`.
const ESCAPE: usize = 6;

/// Repairs the JSON of one answer, and joins the halves in the reader's results.
#[derive(Debug, Default)]
pub struct SurrogateRepair {
    has_halves: bool,
    text: SurrogateJoiner,
    thought: SurrogateJoiner,
}

impl SurrogateRepair {
    /// Replaces halves of characters in JSON with stand-ins.
    pub fn repair_json<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        if !json.contains("\\ud") && !json.contains("\\uD") {
            return Cow::Borrowed(json);
        }
        let repaired = replace_halves(json);
        if repaired == json {
            return Cow::Borrowed(json);
        }
        self.has_halves = true;
        Cow::Owned(repaired)
    }

    /// Joins the halves in a delta.
    pub fn join_delta(&mut self, delta: Delta) -> Delta {
        if !self.has_halves {
            return delta;
        }
        match delta {
            Delta::Text { text, .. } => Delta::text(self.text.join_piece(&text)),
            Delta::Thought { text, .. } => Delta::thought(self.thought.join_piece(&text)),
            Delta::ToolCall(mut call) => {
                join_call(&mut call);
                Delta::ToolCall(call)
            }
            other => other,
        }
    }

    /// Joins the halves in the completion.
    pub fn join_completion(&self, completion: &mut Completion) {
        for part in completion.parts.iter_mut().filter(|_| self.has_halves) {
            match part {
                Part::Text { text, .. } | Part::Thought { text, .. } => {
                    *text = join_surrogates(text)
                }
                Part::ToolCall(call) => join_call(call),
                Part::Opaque(opaque) => opaque.item = join_value(std::mem::take(&mut opaque.item)),
                _ => {}
            }
        }
    }
}

/// Parses the JSON of a call's arguments, in which halves may be escaped a second time.
pub fn read_arguments(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| {
        serde_json::from_str(&replace_halves(text)).map(join_value).map_err(|_| error)
    })
}

/// Replaces the escapes of halves in unreadable JSON with stand-ins.
fn replace_halves(json: &str) -> String {
    let mut rest = json;
    let mut written = String::with_capacity(json.len());
    while let Some(at) = rest.find('\\') {
        written.push_str(&rest[..at]);
        rest = &rest[at..];
        let (first, second) =
            (parse_escape(rest), parse_escape(rest.get(ESCAPE..).unwrap_or_default()));
        let length = match (first, second) {
            (Some(HIGH..LOW), Some(LOW..=LAST)) => 2 * ESCAPE,
            (Some(half @ HIGH..=LAST), _) => {
                written.extend(char::from_u32(STAND_INS + half - HIGH));
                rest = &rest[ESCAPE..];
                continue;
            }
            // The character after a backslash belongs to its escape, even if it is a backslash.
            (Some(_) | None, _) => rest.chars().take(2).map(char::len_utf8).sum(),
        };
        written.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    written.push_str(rest);
    written
}

/// Parses an escape at the start of a text.
fn parse_escape(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

/// Joins the halves in a text that arrives in pieces.
#[derive(Debug, Default)]
struct SurrogateJoiner {
    /// The first half of a pair, at the end of the last piece.
    held: Option<u32>,
}

impl SurrogateJoiner {
    /// Takes a piece and returns it with whole characters.
    fn join_piece(&mut self, piece: &str) -> String {
        let mut whole = String::with_capacity(piece.len());
        for character in piece.chars() {
            let half = stand_in_half(character);
            match (self.held.take(), half) {
                (Some(first), Some(second @ LOW..=LAST)) => {
                    let code = 0x1_0000 + ((first - HIGH) << 10) + (second - LOW);
                    whole.extend(char::from_u32(code));
                    continue;
                }
                (Some(_), _) => whole.push(char::REPLACEMENT_CHARACTER),
                (None, _) => {}
            }
            match half {
                Some(first @ HIGH..LOW) => self.held = Some(first),
                Some(_) => whole.push(char::REPLACEMENT_CHARACTER),
                None => whole.push(character),
            }
        }
        whole
    }

    /// Ends the text and returns the replacement for a half without a partner.
    fn finish(&mut self) -> Option<char> {
        self.held.take().map(|_| char::REPLACEMENT_CHARACTER)
    }
}

/// Joins the halves in a call, whose id and name also go back to the vendor.
fn join_call(call: &mut ToolCall) {
    call.id = join_surrogates(call.id.as_str()).into();
    call.name = join_surrogates(call.name.as_str()).into();
    call.arguments = join_value(std::mem::take(&mut call.arguments));
}

/// Joins the halves in the texts of a value.
fn join_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(join_surrogates(&text)),
        Value::Array(values) => values.into_iter().map(join_value).collect(),
        Value::Object(fields) => {
            let join = |(name, value): (String, Value)| (join_surrogates(&name), join_value(value));
            Value::Object(fields.into_iter().map(join).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn join_surrogates(text: &str) -> String {
    let mut halves = SurrogateJoiner::default();
    let mut whole = halves.join_piece(text);
    whole.extend(halves.finish());
    whole
}

fn stand_in_half(character: char) -> Option<u32> {
    let code = u32::from(character);
    (code >= STAND_INS).then(|| code - STAND_INS + HIGH)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::{from_str, json};

    use super::*;

    #[test]
    fn only_unpaired_surrogates_are_replaced() {
        for whole in [r#"{"a":"\ud83e\udd80 \\ud83e \" \u00e9"}"#, "漢字", "\\", r"\u12"] {
            assert_eq!(replace_halves(whole), whole);
        }
        let odd = r#"["\ud83e","\udd80x","\ud83e\ud83e\udd80","\uD83E\n"]"#;
        let read: Value = from_str(&replace_halves(odd)).unwrap();
        assert_eq!(join_value(read), json!(["\u{fffd}", "\u{fffd}x", "\u{fffd}🦀", "\u{fffd}\n"]));
    }

    #[test]
    fn surrogate_halves_in_two_deltas_are_joined() {
        let half = |text: &str| from_str::<String>(&replace_halves(text)).unwrap();
        let mut halves = SurrogateJoiner::default();
        assert_eq!(halves.join_piece(&half(r#""a\ud83e""#)), "a");
        assert_eq!(halves.join_piece(&half(r#""\udd80b\ud83e""#)), "🦀b");
        assert_eq!(halves.join_piece("c"), "\u{fffd}c");
        assert_eq!(halves.finish(), None);
        assert_eq!(halves.join_piece(&half(r#""\ud83e""#)), "");
        assert_eq!(halves.finish(), Some('\u{fffd}'));
    }

    #[test]
    fn deltas_and_completion_contain_the_same_joined_text() {
        let mut whole = SurrogateRepair::default();
        assert!(matches!(whole.repair_json(r#""a\ud83e\udd80""#), Cow::Borrowed(_)));
        let events = [r#""a\ud83e""#, r#""\udd80b\ud83e""#];
        let read = events.map(|event| from_str::<String>(&whole.repair_json(event)).unwrap());
        let shown =
            read.each_ref().map(|text| match whole.join_delta(Delta::text(text.as_str())) {
                Delta::Text { text, .. } => text,
                other => panic!("{other:?}"),
            });
        assert_eq!(shown, ["a", "🦀b"]);
        let mut completion =
            Completion { parts: vec![Part::text(read.concat())], ..Completion::default() };
        whole.join_completion(&mut completion);
        assert_eq!(completion.parts, [Part::text("a🦀b\u{fffd}")]);
        let arguments = read_arguments(r#"{"a":"\ud83e"}"#).unwrap();
        assert_eq!(arguments, json!({ "a": "\u{fffd}" }));
    }

    #[test]
    fn surrogate_halves_in_the_id_and_name_of_a_call_are_replaced() {
        let mut whole = SurrogateRepair::default();
        let json = whole.repair_json(r#"["c\ud83e1","n\ud83e\udd80\ud83e"]"#).into_owned();
        let [id, name] = from_str::<[String; 2]>(&json).unwrap();
        let call = ToolCall::new(id, name, json!({}));
        let expected = ToolCall::new("c\u{fffd}1", "n🦀\u{fffd}", json!({}));
        assert_eq!(
            whole.join_delta(Delta::ToolCall(call.clone())),
            Delta::ToolCall(expected.clone())
        );
        let parts = vec![Part::ToolCall(call)];
        let mut completion = Completion { parts, ..Completion::default() };
        whole.join_completion(&mut completion);
        assert_eq!(completion.parts, [Part::ToolCall(expected)]);
    }

    #[test]
    fn surrogate_halves_in_arguments_are_joined_in_keys_and_values() {
        let text = replace_halves(r#"{"k\ud83e\udd80":["\ud83e"]}"#);
        assert_eq!(join_value(from_str(&text).unwrap()), json!({ "k🦀": ["\u{fffd}"] }));
    }
}
