//! Shortens JSON to a bound and keeps its shape: a list stays a list with its first and last items,
//! a text stays a text with its two ends. A mark stands where something is left out. Pure.
//!
//! Invariant: what is short keeps its place beside what is long, so a small field (an exit code, a
//! count) survives any bound that has room for the names around it.

use serde_json::{Map, Value};

/// The least room that a value is given: a mark needs it. Shorter values are never cut.
const LEAST_BYTES: usize = 64;

/// Room for a mark and what parts it from its neighbours.
const MARK_BYTES: usize = 48;

/// The key of the mark in an object.
const MARK_KEY: &str = "…";

/// Shortens an object to so many bytes of JSON. A bound of a few marks may be exceeded by them.
pub(crate) fn shortened(content: &Map<String, Value>, bytes_max: usize) -> Map<String, Value> {
    if object_len(content) <= bytes_max {
        return content.clone();
    }
    let (kept, left_out) = kept_fields(content, bytes_max);
    let names: usize = kept.iter().map(|(name, _)| name_len(name)).sum();
    let mark = if left_out > 0 { name_len(MARK_KEY) + MARK_BYTES } else { 0 };
    let room = bytes_max.saturating_sub(2 + names + mark);
    let lengths: Vec<usize> = kept.iter().map(|(_, value)| value_len(value)).collect();
    let share = share(&lengths, room);
    let half = kept.len().div_ceil(2);
    let mut shown = Map::new();
    for (place, ((name, value), length)) in kept.into_iter().zip(lengths).enumerate() {
        if left_out > 0 && place == half {
            shown.insert(MARK_KEY.to_owned(), mark_of(left_out, "keys").into());
        }
        let value = if length <= share { value.clone() } else { shorter(value, share) };
        shown.insert(name.clone(), value);
    }
    if left_out > 0 && !shown.contains_key(MARK_KEY) {
        shown.insert(MARK_KEY.to_owned(), mark_of(left_out, "keys").into());
    }
    shown
}

fn shorter(value: &Value, room: usize) -> Value {
    match value {
        Value::String(text) => shorter_text(text, room).into(),
        Value::Array(items) => shorter_list(items, room).into(),
        Value::Object(fields) => shortened(fields, room).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn shorter_text(text: &str, room: usize) -> String {
    let cut = Cut::of(text, room.saturating_sub(MARK_BYTES));
    format!("{}\n{}\n{}", cut.head, mark_of(cut.left_out(), "bytes"), cut.tail)
}

/// Keeps as many items of both ends as there is room for; where not even one fits, a part of the
/// first and of the last.
fn shorter_list(items: &[Value], room: usize) -> Vec<Value> {
    let room = room.saturating_sub(2 + MARK_BYTES);
    let lengths: Vec<usize> = items.iter().map(|item| value_len(item) + 1).collect();
    let (head, tail) = both_ends(&lengths, room);
    if head + tail > 0 {
        let mut shown = items[..head].to_vec();
        shown.push(mark_of(items.len() - head - tail, "items").into());
        shown.extend_from_slice(&items[items.len() - tail..]);
        return shown;
    }
    match items {
        [only] => vec![shorter(only, room)],
        [first, between @ .., last] if room >= 2 * LEAST_BYTES => {
            let mut shown = vec![shorter(first, room / 2)];
            if !between.is_empty() {
                shown.push(mark_of(between.len(), "items").into());
            }
            shown.push(shorter(last, room / 2));
            shown
        }
        _ => vec![mark_of(items.len(), "items").into()],
    }
}

/// Chooses the fields that there is room for, each at its least: of too many the first and the
/// last. Returns how many are left out, too.
fn kept_fields(content: &Map<String, Value>, room: usize) -> (Vec<(&String, &Value)>, usize) {
    let least =
        |(name, value): (&String, &Value)| name_len(name) + value_len(value).min(LEAST_BYTES);
    let lengths: Vec<usize> = content.iter().map(least).collect();
    if lengths.iter().sum::<usize>() + 2 <= room {
        return (content.iter().collect(), 0);
    }
    let mark = 2 + name_len(MARK_KEY) + MARK_BYTES;
    let (head, tail) = both_ends(&lengths, room.saturating_sub(mark));
    let behind = content.len() - tail;
    let is_kept = |place: usize| place < head || place >= behind;
    let kept = content.iter().enumerate().filter(|(place, _)| is_kept(*place));
    (kept.map(|(_, field)| field).collect(), behind - head)
}

/// Counts how many fit from the beginning, in half of the room, and then from the end.
fn both_ends(lengths: &[usize], room: usize) -> (usize, usize) {
    let fit = |lengths: &mut dyn Iterator<Item = &usize>, room: usize| {
        let mut left = room;
        let fits = |length: &&usize| {
            let rest = left.checked_sub(**length);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let count = lengths.take_while(fits).count();
        (count, left)
    };
    let (head, left) = fit(&mut lengths.iter(), room / 2);
    let (tail, _) = fit(&mut lengths[head..].iter().rev(), room - room / 2 + left);
    (head, tail)
}

/// Returns the length up to which values stay whole, and to which the others are cut: what short
/// ones do not need is for the long ones.
fn share(lengths: &[usize], room: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut room = room;
    for (place, length) in sorted.iter().enumerate() {
        let share = room / (sorted.len() - place);
        if *length > share {
            return share;
        }
        room -= length;
    }
    usize::MAX
}

/// A text's two ends.
pub(crate) struct Cut<'a> {
    pub(crate) head: &'a str,
    pub(crate) tail: &'a str,
    pub(crate) bytes: usize,
}

impl<'a> Cut<'a> {
    /// Takes as much from both ends as fits into that many bytes of JSON.
    pub(crate) fn of(text: &'a str, json_bytes: usize) -> Self {
        let half = json_bytes / 2;
        let head = &text[..fitting_prefix(text.char_indices(), half)];
        let rest = &text[head.len()..];
        let tail = fitting_prefix(
            rest.chars().rev().scan(0, |at, c| {
                let start = *at;
                *at += c.len_utf8();
                Some((start, c))
            }),
            half,
        );
        Self { head, tail: &rest[rest.len() - tail..], bytes: text.len() }
    }

    pub(crate) fn left_out(&self) -> usize {
        self.bytes.saturating_sub(self.head.len() + self.tail.len())
    }

    /// Writes the counts into a note.
    pub(crate) fn note(&self, note: &mut Value) {
        note["bytes"] = self.bytes.into();
        note["head_bytes"] = self.head.len().into();
        note["tail_bytes"] = self.tail.len().into();
        note["left_out_bytes"] = self.left_out().into();
    }
}

/// Counts the bytes of the characters that fit, whole ones only.
fn fitting_prefix(chars: impl Iterator<Item = (usize, char)>, json_bytes: usize) -> usize {
    let mut left = json_bytes;
    let mut taken = 0;
    for (at, c) in chars {
        let Some(after) = left.checked_sub(escaped_char_len(c)) else { break };
        (left, taken) = (after, at + c.len_utf8());
    }
    taken
}

fn mark_of(count: usize, what: &str) -> String {
    format!("[… {count} {what} left out …]")
}

/// Bytes of a name with what stands around it and its value.
fn name_len(name: &str) -> usize {
    escaped_len(name) + 4
}

fn object_len(content: &Map<String, Value>) -> usize {
    let fields = content.iter().map(|(name, value)| name_len(name) + value_len(value));
    1 + fields.sum::<usize>().max(1)
}

fn value_len(value: &Value) -> usize {
    match value {
        Value::String(text) => escaped_len(text) + 2,
        Value::Array(items) => 1 + items.iter().map(|it| value_len(it) + 1).sum::<usize>().max(1),
        Value::Object(fields) => object_len(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().len(),
    }
}

/// Bytes of a text inside a JSON string, as serde_json writes it.
pub(crate) fn escaped_len(text: &str) -> usize {
    text.chars().map(escaped_char_len).sum()
}

fn escaped_char_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cut(content: Value, bytes_max: usize) -> Value {
        let Value::Object(content) = content else { panic!("no object") };
        let shown = Value::Object(shortened(&content, bytes_max));
        let bytes = shown.to_string().len();
        assert!(bytes <= bytes_max, "{bytes} of {bytes_max}: {shown}");
        shown
    }

    #[test]
    fn lengths_are_those_of_the_json() {
        for value in [json!({}), json!([]), json!({ "a": [1, "\n\u{1}é"], "b": {} }), json!(null)]
        {
            assert_eq!(value_len(&value), value.to_string().len(), "{value}");
        }
    }

    #[test]
    fn what_fits_is_whole() {
        let content = json!({ "a": 1, "list": [1, 2] });
        let bytes = content.to_string().len();
        assert_eq!(cut(content.clone(), bytes), content);
    }

    #[test]
    fn a_list_keeps_its_first_and_last_items() {
        let list: Vec<u32> = (0..10_000).collect();
        let shown = cut(json!({ "list": list, "count": 10_000 }), 200);
        let items = shown["list"].as_array().unwrap();
        assert_eq!((&items[0], items.last()), (&json!(0), Some(&json!(9_999))));
        let mark = items.iter().find_map(Value::as_str).unwrap();
        assert_eq!(mark, format!("[… {} items left out …]", 10_001 - items.len()));
        assert_eq!(shown["count"], 10_000);
    }

    #[test]
    fn items_that_are_too_long_keep_their_shape() {
        let item = |number: u32| json!({ "number": number, "text": "x".repeat(5_000) });
        let shown = cut(json!({ "items": [item(1), item(2), item(3)] }), 600);
        let items = shown["items"].as_array().unwrap();
        assert_eq!((&items[0]["number"], &items[2]["number"]), (&json!(1), &json!(3)));
        assert_eq!(items[1], "[… 1 items left out …]");
        assert!(items[0]["text"].as_str().unwrap().contains(" bytes left out …]\nx"));
        let shown = cut(json!({ "items": [item(1)] }), 300);
        assert_eq!(shown["items"][0]["number"], 1);
    }

    #[test]
    fn short_fields_stay_beside_long_ones() {
        let content = json!({ "stdout": "o".repeat(9_000), "returncode": 3, "stderr": "bad" });
        let shown = cut(content, 300);
        assert_eq!((&shown["returncode"], &shown["stderr"]), (&json!(3), &json!("bad")));
        assert!(shown["stdout"].as_str().unwrap().len() > 100);
    }

    #[test]
    fn of_too_many_keys_the_first_and_the_last_are_kept() {
        let fields: Map<_, _> =
            (0..3_000).map(|n| (format!("key{n}"), json!("v".repeat(600)))).collect();
        let shown = cut(Value::Object(fields), 2_000);
        let keys: Vec<&String> = shown.as_object().unwrap().keys().collect();
        assert_eq!((keys[0].as_str(), keys[keys.len() - 1].as_str()), ("key0", "key2999"));
        let left_out = 3_001 - keys.len();
        assert_eq!(shown[MARK_KEY], format!("[… {left_out} keys left out …]"));
    }

    #[test]
    fn any_shape_fits_any_bound_that_marks_leave_room_for() {
        let deep = (0..40).fold(json!("x".repeat(3_000)), |inner, _| json!({ "in": [inner] }));
        let odd =
            json!({ "deep": deep, "\n\n": "\u{1}".repeat(900), "": [[], {}, [["y".repeat(99)]]] });
        for bytes_max in [200, 512, 1_000, 2_000] {
            cut(odd.clone(), bytes_max);
        }
    }
}
