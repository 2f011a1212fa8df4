//! Proposes smaller forms of results and images. Pure.

use std::collections::HashMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::text::{one_line, truncate_chars};
use jaato_plugin_sdk::types::{CallId, DataPart, ToolName};

use crate::turns::{json_size, part_bytes, part_files};

/// Results of more than this many bytes are shortened.
const LONG_BYTES: u64 = 1_200;

/// The size of a shortened result.
const SHORT_BYTES: u64 = 800;

/// The approximate size of the line that replaces a repeated read, in bytes.
const REPEATED_BYTES: u64 = 200;

/// The longest excerpt of an answer that describes an image, in characters.
const ABOUT_CHARS: usize = 300;

/// The key of objects in the session's object environment, by which a model refers to them.
const REFERENCE_KEY: &str = "\"_REF_ID\"";

/// The arguments that name the file that a tool reads.
const PATH_KEYS: [&str; 4] = ["path", "file_path", "file", "filename"];

/// The words in the names of tools that read a file.
const READ_WORDS: [&str; 3] = ["read", "view", "cat"];

/// An edit, and the bytes that it is estimated to free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProposedEdit {
    pub(crate) edit: GcEdit,
    pub(crate) freed: u64,
    order: EditOrder,
}

/// What is shortened first. Objects stay in the session's object environment, so their results lose
/// nothing. A repeated read is in a later message. Images are last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EditOrder {
    Objects,
    Repeated,
    Results,
    Images,
}

/// Lists the possible edits of some messages, the least harmful first. Within one kind, older
/// messages come first. The newest image of the history stays.
pub(crate) fn proposed_edits(
    messages: &[Message],
    is_free: impl Fn(usize) -> bool,
) -> Vec<ProposedEdit> {
    let later = newest_reads(messages);
    let newest_image = messages.iter().rposition(|message| {
        message.role != Role::Model && message.parts.iter().any(|part| !part_files(part).is_empty())
    });
    let mut edits = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if !is_free(at) || message.role == Role::Model {
            continue;
        }
        for (index, part) in message.parts.iter().enumerate() {
            let propose = |change, freed, order| ProposedEdit {
                edit: GcEdit::new(at, index, change),
                freed,
                order,
            };
            if let Some((change, freed, order)) = smaller_part(part, &later) {
                edits.push(propose(change, freed, order));
            } else if newest_image != Some(at) {
                // Indices of attachments shift with each removal, so the last one goes first.
                for (attachment, file) in part_files(part).into_iter().rev() {
                    let text = describe_file(file, messages, at);
                    let freed =
                        part_bytes(&Part::Data(file.clone())).saturating_sub(json_size(&text));
                    let change = GcChange::Describe { attachment, text };
                    edits.push(propose(change, freed, EditOrder::Images));
                }
            }
        }
    }
    // The sort is stable.
    edits.sort_by_key(|edit| edit.order);
    edits
}

fn smaller_part(
    part: &Part,
    later: &HashMap<&CallId, &CallId>,
) -> Option<(GcChange, u64, EditOrder)> {
    let bytes = json_size(part);
    let shorten = |order| {
        let change = GcChange::Shorten { bytes_max: SHORT_BYTES };
        (bytes > LONG_BYTES).then(|| (change, bytes - SHORT_BYTES, order))
    };
    match part {
        Part::ToolResult(result) => match later.get(&result.call_id) {
            Some(by) if bytes > REPEATED_BYTES => {
                let change = GcChange::Repeated { by: (*by).clone() };
                Some((change, part_bytes(part) - REPEATED_BYTES, EditOrder::Repeated))
            }
            _ => {
                let json = serde_json::to_string(&result.content).unwrap_or_default();
                let has_objects = json.contains(REFERENCE_KEY);
                shorten(if has_objects { EditOrder::Objects } else { EditOrder::Results })
            }
        },
        Part::Data(data) if data.blob_id().is_none() => shorten(EditOrder::Objects),
        _ => None,
    }
}

/// Maps each successful read of a file to the newest successful read of the same part of that file
/// by the same tool.
fn newest_reads(messages: &[Message]) -> HashMap<&CallId, &CallId> {
    let results = messages.iter().flat_map(Message::tool_results);
    let succeeded: HashMap<&CallId, bool> =
        results.map(|result| (&result.call_id, !result.is_error)).collect();
    let mut reads: HashMap<(&ToolName, String), Vec<&CallId>> = HashMap::new();
    for call in messages.iter().flat_map(Message::tool_calls) {
        if is_file_read(call) && succeeded.get(&call.id) == Some(&true) {
            let arguments = call.arguments.to_string();
            reads.entry((&call.name, arguments)).or_default().push(&call.id);
        }
    }
    let mut newest = HashMap::new();
    for calls in reads.values() {
        if let Some((last, earlier)) = calls.split_last() {
            newest.extend(earlier.iter().map(|call| (*call, *last)));
        }
    }
    newest
}

/// Returns true if a call reads a file, judged by the names of the tool and its arguments.
fn is_file_read(call: &ToolCall) -> bool {
    let name = call.name.as_str().to_lowercase();
    READ_WORDS.iter().any(|word| name.contains(word))
        && PATH_KEYS.iter().any(|key| call.arguments[key].is_string())
}

/// Describes a file by its name, its type and the beginning of the answer to it.
fn describe_file(file: &DataPart, messages: &[Message], at: usize) -> String {
    let name = file.name.as_deref().map_or(String::new(), |name| format!(" `{}`", one_line(name)));
    let kind = if file.mime_type.starts_with("image/") { "Image" } else { "File" };
    let answers = messages.iter().skip(at + 1).take_while(|message| !message.is_prompt());
    let said = answers.filter(|message| message.role == Role::Model).map(Message::text);
    let said = said.map(|text| one_line(&text)).find(|text| !text.is_empty());
    let about = match said {
        Some(said) => format!("; the answer to it: {}", truncate_chars(&said, ABOUT_CHARS)),
        None => String::new(),
    };
    format!("[{kind}{name} ({}), left out to save room{about}]", file.mime_type)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::Map;
    use jaato_plugin_sdk::types::ToolResult;

    use super::*;

    fn call_exchange(id: &str, name: &str, arguments: Value, content: Value) -> [Message; 2] {
        let content = content.as_object().cloned().unwrap_or_default();
        let result = ToolResult::new(id, name, content);
        let call = Part::ToolCall(ToolCall::new(id, name, arguments));
        [Message::model(vec![call]), Message::tool([result])]
    }

    fn proposed_changes(messages: &[Message]) -> Vec<(usize, GcChange)> {
        let edits = proposed_edits(messages, |_| true);
        edits.into_iter().map(|it| (it.edit.message, it.edit.change)).collect()
    }

    #[test]
    fn objects_are_first_then_repeated_reads_then_long_results_then_images() {
        let long = "x".repeat(3_000);
        let read = |id, path| {
            call_exchange(id, "readFile", json!({ "path": path }), json!({ "text": long }))
        };
        let image = Part::Data(DataPart::blob("image/png", "00").with_name("cat.png"));
        let prompt = |parts| Message { parts, ..Message::default() };
        let messages: Vec<Message> = [prompt(vec![Part::text("look"), image.clone()])]
            .into_iter()
            .chain(read("1", "a"))
            .chain(read("2", "b"))
            .chain(read("3", "a"))
            .chain(call_exchange(
                "4",
                "query",
                json!({}),
                json!({ "_REF_ID": "q_1", "text": long }),
            ))
            .chain([Message::model(vec![Part::text("a white\ncat")]), prompt(vec![image])])
            .collect();
        let shorten = GcChange::Shorten { bytes_max: SHORT_BYTES };
        let text = "[Image `cat.png` (image/png), left out to save room; the answer to it: a white \
                    cat]";
        let describe = GcChange::Describe { attachment: None, text: text.to_owned() };
        let expected = [
            (8, shorten.clone()),
            (2, GcChange::Repeated { by: "3".into() }),
            (4, shorten.clone()),
            (6, shorten),
            (0, describe),
        ];
        assert_eq!(proposed_changes(&messages), expected);
    }

    #[test]
    fn other_calls_than_reads_of_the_same_part_are_not_repeats() {
        let two = |name: &str, first: Value, second: Value| -> Vec<Message> {
            let content = json!({ "text": "x".repeat(500) });
            let calls = [
                call_exchange("1", name, first, content.clone()),
                call_exchange("2", name, second, content),
            ];
            [Message::user("x")].into_iter().chain(calls.into_iter().flatten()).collect()
        };
        let same = json!({ "path": "a" });
        assert_eq!(proposed_changes(&two("readFile", same.clone(), same.clone())).len(), 1);
        assert_eq!(proposed_changes(&two("updateFile", same.clone(), same.clone())), []);
        assert_eq!(proposed_changes(&two("readFile", same, json!({ "path": "a", "from": 9 }))), []);
        assert_eq!(proposed_changes(&two("read", json!({ "id": 1 }), json!({ "id": 1 }))), []);
        let mut failed = two("readFile", json!({ "path": "a" }), json!({ "path": "a" }));
        failed[4] = Message::tool([ToolResult {
            is_error: true,
            ..ToolResult::new("2", "readFile", Map::new())
        }]);
        assert_eq!(proposed_changes(&failed), []);
    }
}
