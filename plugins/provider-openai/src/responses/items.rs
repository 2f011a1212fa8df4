//! Converts the items of an answer to parts of the history and back. Pure.
//!
//! Texts, thoughts and calls become parts that every provider understands. Their items' other
//! fields (`phase`, annotations, unknown names) are kept in a part's signature, and an item that no
//! other provider understands becomes an opaque part. So the same item goes back to the server.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::{OpaqueData, Part, ToolCall};
use jaato_plugin_sdk_provider::chat::{
    CallIdFormat, INVALID_ARGUMENTS, to_valid_name, unwrap_calls,
};
use jaato_plugin_sdk_provider::read_arguments;

/// The signature of a text that is a further piece of the previous item.
const FURTHER: &str = "+";

/// The separator between summaries that are shown as one thought.
const BETWEEN: &str = "\n\n";

/// The form of call ids.
pub(super) const CALL_IDS: CallIdFormat = CallIdFormat::Plain(64);

/// The provider name in `openai/MODEL`.
const PROVIDER: &str = "openai";

/// How much of an item arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemCompleteness {
    Whole,
    /// The answer was cut off inside the item.
    InPart,
}

/// Converts an item of an answer to parts.
pub(super) fn item_parts(item: &Value, came: ItemCompleteness) -> Vec<Part> {
    match item["type"].as_str() {
        Some("message") => text_parts(item),
        Some("reasoning") => reasoning_parts(item, came),
        Some("function_call") => call_parts(item, came),
        Some(_) if came == ItemCompleteness::Whole => {
            vec![Part::opaque(without_unsent_fields(item))]
        }
        Some(_) | None => Vec::new(),
    }
}

/// Returns an item without the fields that do not go back: empty fields, and its id, which the
/// server would not find again.
fn without_unsent_fields(item: &Value) -> Value {
    let fields = item.as_object().into_iter().flatten();
    let kept = fields.filter(|(key, value)| *key != "id" && !value.is_null());
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Returns the key of a content piece's text.
fn text_key(piece: &Value) -> &'static str {
    if piece["type"] == "refusal" { "refusal" } else { "text" }
}

/// Returns the content pieces of a message item.
fn content_pieces(item: &Value) -> &[Value] {
    item["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the text of a message item.
pub(super) fn item_text(item: &Value) -> String {
    content_pieces(item).iter().filter_map(|piece| piece[text_key(piece)].as_str()).collect()
}

/// Returns true if a message item contains a refusal.
pub(super) fn has_refusal(item: &Value) -> bool {
    item["type"] == "message" && content_pieces(item).iter().any(|piece| piece["type"] == "refusal")
}

fn text_parts(item: &Value) -> Vec<Part> {
    let mut skeleton = without_unsent_fields(item);
    let mut texts = Vec::new();
    for piece in skeleton["content"].as_array_mut().into_iter().flatten() {
        let key = text_key(piece);
        let Some(fields) = piece.as_object_mut() else { continue };
        // Log probabilities are of no use to the model.
        fields.remove("logprobs");
        let words = fields.remove(key);
        texts.push(words.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned());
    }
    let is_plain = is_single_text(&skeleton);
    let part = |(number, text): (usize, String)| {
        let text = Part::text(text);
        match number {
            _ if is_plain => text,
            0 => text.with_signature(skeleton.to_string()),
            _ => text.with_signature(FURTHER),
        }
    };
    texts.into_iter().enumerate().map(part).collect()
}

/// Returns true if an item contains only one text.
fn is_single_text(item: &Value) -> bool {
    let knows = |value: &Value, keys: &[&str]| {
        let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        let mut fields = value.as_object().into_iter().flatten();
        fields.all(|(key, value)| keys.contains(&key.as_str()) || is_empty(value))
    };
    let [piece] = content_pieces(item) else { return false };
    knows(item, &["type", "role", "status", "content"])
        && piece["type"] == "output_text"
        && knows(piece, &["type", "text"])
}

/// Returns the text of a reasoning item for the user: its summaries, or else the reasoning itself,
/// if the server shows it.
pub(super) fn reasoning_text(item: &Value) -> String {
    let texts = |key: &str, between: &str| {
        let list = item[key].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|piece| piece["text"].as_str()).collect::<Vec<_>>().join(between)
    };
    let summary = texts("summary", BETWEEN);
    if summary.is_empty() { texts("content", "") } else { summary }
}

fn reasoning_parts(item: &Value, came: ItemCompleteness) -> Vec<Part> {
    let thought = reasoning_text(item);
    let mut parts = Vec::new();
    if !thought.is_empty() {
        parts.push(Part::thought(thought));
    }
    let says = |key: &str| item[key].as_str().is_some_and(|text| !text.is_empty());
    let has_content = item["content"].as_array().is_some_and(|content| !content.is_empty());
    // Without either, the server could not use the item.
    if came == ItemCompleteness::Whole && (says("encrypted_content") || has_content) {
        let mut kept = without_unsent_fields(item);
        if let Some(fields) = kept.as_object_mut() {
            fields.remove("status");
        }
        parts.push(Part::opaque(kept));
    }
    parts
}

/// The fields of a call that a part stores itself.
const CALL_FIELDS: [&str; 5] = ["type", "call_id", "name", "arguments", "status"];

fn call_parts(item: &Value, came: ItemCompleteness) -> Vec<Part> {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    // A server that uses a single id may send it under either name.
    let id = if text("call_id").is_empty() { text("id") } else { text("call_id") };
    let written = match &item["arguments"] {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Null => Cow::Borrowed(""),
        whole => Cow::Owned(whole.to_string()),
    };
    let arguments = match read_arguments(&written) {
        Ok(Value::Null) => json!({}),
        Ok(arguments) => arguments,
        Err(_) if written.trim().is_empty() && came == ItemCompleteness::Whole => json!({}),
        Err(_) => Value::String(written.to_string()),
    };
    let mut other = without_unsent_fields(item);
    if let Some(fields) = other.as_object_mut() {
        fields.retain(|key, _| !CALL_FIELDS.contains(&key.as_str()));
        // Keep the exact text that the model wrote, so that caches recognise it.
        let plain = arguments.to_string();
        if arguments.is_object() && plain != written {
            fields.insert("arguments".to_owned(), json!(written));
        }
    }
    let call = ToolCall::new(id, text("name"), arguments);
    let is_signed = other.as_object().is_some_and(|fields| !fields.is_empty());
    let mut parts: Vec<Part> = unwrap_calls(call).into_iter().map(Part::ToolCall).collect();
    // The server does not know the calls inside a wrapper.
    if let [_] = parts[..] {
        parts = parts
            .into_iter()
            .map(|part| if is_signed { part.with_signature(other.to_string()) } else { part })
            .collect();
    }
    parts
}

/// Writes the parts of an answer as items. `is_sent` returns true if the server accepts reasoning
/// with this hash. Trailing reasoning is left out, because the server refuses it.
pub(super) fn write_items(
    parts: &[Part],
    model: &str,
    is_sent: impl Fn(u64) -> bool,
) -> Vec<Value> {
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(part) = parts.get(at) {
        at += 1;
        match part {
            Part::Text { text, signature, .. } => {
                let taken = push_text_item(text, signature.as_deref(), &parts[at..], &mut items);
                at += taken;
            }
            Part::ToolCall(one) => items.push(call_to_item(one)),
            Part::Opaque(opaque) => {
                let item = vendor_item(opaque, model);
                items
                    .extend(item.filter(|item| reasoning_hash(item).is_none_or(&is_sent)).cloned());
            }
            Part::Data(data) => {
                let words = jaato_plugin_sdk_provider::shown::describe_data(data);
                items.push(output_message(&words));
            }
            _ => {}
        }
    }
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
    items
}

fn output_message(text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text }]);
    json!({ "type": "message", "role": "assistant", "content": content })
}

/// Writes a text with its item's other fields. Returns the number of following parts that belong to
/// the same item.
fn push_text_item(
    text: &str,
    signature: Option<&str>,
    behind: &[Part],
    items: &mut Vec<Value>,
) -> usize {
    let skeleton = signature.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(mut item) = skeleton.filter(|item| item["type"] == "message") else {
        if !text.is_empty() {
            items.push(output_message(text));
        }
        return 0;
    };
    let further = behind.iter().map_while(|part| match part {
        Part::Text { text, signature, .. } if signature.as_deref() == Some(FURTHER) => {
            Some(text.as_str())
        }
        _ => None,
    });
    let texts: Vec<&str> = [text].into_iter().chain(further).collect();
    let pieces = item["content"].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    if texts.len() != pieces.len() {
        // A piece was dropped, so write only the texts.
        items.extend(texts.iter().filter(|text| !text.is_empty()).map(|text| output_message(text)));
        return texts.len() - 1;
    }
    for (piece, text) in pieces.iter_mut().zip(&texts) {
        let key = text_key(piece);
        piece[key] = json!(text);
    }
    items.push(item);
    texts.len() - 1
}

fn call_to_item(call: &ToolCall) -> Value {
    let other = call.signature.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let mut other: Map<String, Value> = other.unwrap_or_default();
    let written = match other.remove("arguments") {
        Some(Value::String(text)) if is_same_json(&text, &call.arguments) => text,
        Some(_) | None => match &call.arguments {
            object @ Value::Object(_) => object.to_string(),
            odd => json!({ INVALID_ARGUMENTS: odd }).to_string(),
        },
    };
    let mut item = json!({
        "type": "function_call",
        "call_id": CALL_IDS.format_id(call.id.as_str()),
        "name": to_valid_name(call.name.as_str()),
        "arguments": written,
    });
    if let Some(fields) = item.as_object_mut() {
        fields.extend(other);
    }
    item
}

fn is_same_json(text: &str, arguments: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|read| read == *arguments)
}

/// Returns the vendor's item if it belongs to this model. The host sends an item to no other model,
/// but a caller without the host may.
fn vendor_item<'a>(opaque: &'a OpaqueData, model: &str) -> Option<&'a Value> {
    let is_own = |has: &str, own: &str| has.is_empty() || has == own;
    let is_item = opaque.item["type"].is_string();
    (is_own(&opaque.provider, PROVIDER) && is_own(&opaque.model, model) && is_item)
        .then_some(&opaque.item)
}

/// Returns the hash of a reasoning item, which identifies it after a refusal.
fn reasoning_hash(item: &Value) -> Option<u64> {
    if item["type"] != "reasoning" {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    item.to_string().hash(&mut hasher);
    Some(hasher.finish())
}

/// Lists the hashes of the reasoning items in parts.
pub(super) fn reasoning_hashes(parts: &[Part]) -> impl Iterator<Item = u64> {
    parts.iter().filter_map(|part| match part {
        Part::Opaque(opaque) => reasoning_hash(&opaque.item),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts an item to parts and back.
    #[track_caller]
    fn round_trip(item: &Value) -> Vec<Value> {
        write_items(&item_parts(item, ItemCompleteness::Whole), "m", |_| true)
    }

    fn call_item(arguments: &str) -> Value {
        json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look",
            "arguments": arguments, "status": "completed" })
    }

    #[test]
    fn message_is_sent_back_complete_except_for_its_id() {
        let plain = json!({ "type": "message", "id": "msg_1", "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": "hi", "annotations": [], "logprobs": [] }] });
        assert_eq!(item_parts(&plain, ItemCompleteness::Whole), [Part::text("hi")]);
        assert_eq!(round_trip(&plain), [output_message("hi")]);
        let rich = json!({ "type": "message", "role": "assistant", "status": "completed",
            "phase": "commentary", "of_the_future": [1],
            "content": [
                { "type": "output_text", "text": "a", "annotations": [{ "type": "url" }] },
                { "type": "refusal", "refusal": "b" },
                { "type": "output_text", "text": "" },
            ] });
        let mut sent = rich.clone();
        sent["id"] = json!("msg_1");
        let texts: Vec<String> = item_parts(&sent, ItemCompleteness::Whole)
            .iter()
            .map(|part| if let Part::Text { text, .. } = part { text.clone() } else { panic!() })
            .collect();
        assert_eq!(texts, ["a", "b", ""]);
        assert_eq!(round_trip(&sent), [rich]);
        // If a piece was dropped, only the texts are written.
        let mut fewer = item_parts(&sent, ItemCompleteness::Whole);
        fewer.remove(1);
        assert_eq!(write_items(&fewer, "m", |_| true), [output_message("a")]);
    }

    #[test]
    fn call_arguments_are_sent_back_byte_by_byte() {
        for arguments in ["{}", "{ \"x\" : 1.0 }", "{\"y\":\"é\"}"] {
            let [item] = round_trip(&call_item(arguments)).try_into().unwrap();
            assert_eq!(item["arguments"], arguments);
            assert_eq!((&item["call_id"], item.get("id")), (&json!("call_1"), None));
        }
        let mut named = call_item("{}");
        named["namespace"] = json!("files");
        assert_eq!(round_trip(&named)[0]["namespace"], "files");
    }

    #[test]
    fn changed_call_arguments_are_sent_as_changed() {
        let [Part::ToolCall(mut call)] =
            <[Part; 1]>::try_from(item_parts(&call_item("{ \"x\": 1 }"), ItemCompleteness::Whole))
                .unwrap()
        else {
            panic!()
        };
        call.arguments = json!({ "x": 2 });
        assert_eq!(call_to_item(&call)["arguments"], "{\"x\":2}");
    }

    #[test]
    fn truncated_arguments_are_distinguished_from_missing_ones() {
        let of = |arguments: &str, came| match &item_parts(&call_item(arguments), came)[..] {
            [Part::ToolCall(call)] => call.arguments.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(of("", ItemCompleteness::Whole), json!({}));
        assert_eq!(of("null", ItemCompleteness::Whole), json!({}));
        assert_eq!(of("", ItemCompleteness::InPart), json!(""));
        assert_eq!(of("{\"x\":", ItemCompleteness::InPart), json!("{\"x\":"));
        assert_eq!(round_trip(&call_item("{"))[0]["arguments"], "{\"invalid_arguments\":\"{\"}");
    }

    #[test]
    fn reasoning_is_sent_only_to_its_model_before_another_item() {
        let item = json!({ "type": "reasoning", "id": "rs_1", "status": null, "content": null,
            "summary": [{ "type": "summary_text", "text": "a" }, { "text": "b" }],
            "encrypted_content": "xyz" });
        let mut parts = item_parts(&item, ItemCompleteness::Whole);
        let kept = json!({ "type": "reasoning",
            "summary": [{ "type": "summary_text", "text": "a" }, { "text": "b" }],
            "encrypted_content": "xyz" });
        assert_eq!(parts, [Part::thought("a\n\nb"), Part::opaque(kept.clone())]);
        assert!(write_items(&parts, "m", |_| true).is_empty());
        parts.push(Part::text("so"));
        assert_eq!(write_items(&parts, "m", |_| true), [kept.clone(), output_message("so")]);
        assert_eq!(write_items(&parts, "m", |_| false), [output_message("so")]);
        assert_eq!(reasoning_hashes(&parts).count(), 1);
        let of = |provider: &str, model: &str| {
            let opaque = OpaqueData {
                provider: provider.to_owned(),
                model: model.to_owned(),
                item: kept.clone(),
                ..OpaqueData::default()
            };
            write_items(&[Part::Opaque(opaque), Part::text("so")], "m", |_| true).len()
        };
        assert_eq!((of("openai", "m"), of("openai", "n"), of("anthropic", "m")), (2, 1, 1));
    }

    #[test]
    fn truncated_or_empty_reasoning_is_not_sent_back() {
        let cut = json!({ "type": "reasoning", "summary": [{ "text": "a" }],
            "encrypted_content": "x" });
        assert_eq!(item_parts(&cut, ItemCompleteness::InPart), [Part::thought("a")]);
        let bare = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
        assert!(item_parts(&bare, ItemCompleteness::Whole).is_empty());
        let open = json!({ "type": "reasoning", "summary": [],
            "content": [{ "type": "reasoning_text", "text": "hm" }] });
        assert_eq!(
            item_parts(&open, ItemCompleteness::Whole),
            [Part::thought("hm"), Part::opaque(open.clone())]
        );
    }

    #[test]
    fn unknown_item_is_sent_back_unchanged() {
        let item = json!({ "type": "compaction", "encrypted_content": "x", "n": { "a": 1 } });
        assert_eq!(round_trip(&item), [item]);
        assert!(item_parts(&json!({ "x": 1 }), ItemCompleteness::Whole).is_empty());
    }
}
