//! Removed messages as text for the model that summarises them. Pure.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::text::truncate_chars;

use crate::lines::drop_oldest_lines;

/// How much of each result a transcript shows, in characters.
const RESULT_CHARS: usize = 800;

/// The smallest length to which entries are cut if there are too many, in characters.
const ENTRY_CHARS_MIN: usize = 80;

/// Returns an entry for each text, call and result of a message.
pub(crate) fn message_entries(message: &Message) -> Vec<String> {
    let speaker = if message.role == Role::Model { "MODEL" } else { "USER" };
    let entry = |part: &Part| match part {
        Part::Text { text, .. } if !text.trim().is_empty() => {
            Some(format!("{speaker}: {}", text.trim()))
        }
        Part::ToolCall(call) => Some(format!("CALL {} {}", call.name, call.arguments)),
        Part::ToolResult(result) => {
            let content = serde_json::to_string(&result.content).unwrap_or_default();
            let failed = if result.is_error { " FAILED" } else { "" };
            let shown = truncate_chars(&content, RESULT_CHARS);
            Some(format!("RESULT {}{failed}: {shown}", result.name))
        }
        _ => None,
    };
    message.parts.iter().filter_map(entry).collect()
}

/// Cuts the longest entries until all fit, and then leaves out the oldest.
pub(crate) fn fit_entries(entries: &mut Vec<String>, bytes_max: usize) {
    let total = |entries: &[String]| entries.iter().map(|it| it.len() + 1).sum::<usize>();
    let mut chars = entries.iter().map(|it| it.chars().count()).max().unwrap_or(0);
    while total(entries) > bytes_max && chars > ENTRY_CHARS_MIN {
        chars = (chars / 2).max(ENTRY_CHARS_MIN);
        for entry in entries.iter_mut() {
            *entry = truncate_chars(entry, chars);
        }
    }
    // Each entry is followed by a line end.
    let bytes_max = bytes_max.saturating_sub(entries.len()) as u64;
    drop_oldest_lines(entries, bytes_max, |_| true);
}

/// Joins entries to texts of at most `bytes_max` bytes. A longer entry is split.
pub(crate) fn join_into_chunks(entries: &[String], bytes_max: usize) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    for entry in entries {
        let mut rest = entry.as_str();
        while !rest.is_empty() {
            let room = bytes_max.max(4);
            let fits = (0..=room.min(rest.len())).rev().find(|at| rest.is_char_boundary(*at));
            let (piece, after) = rest.split_at(fits.unwrap_or(rest.len()));
            match chunks.last_mut() {
                Some(last) if last.len() + piece.len() < room => {
                    last.push('\n');
                    last.push_str(piece);
                }
                _ => chunks.push(piece.to_owned()),
            }
            rest = after;
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_everything_in_order() {
        let entries = ["a".repeat(10), "é".repeat(30), "c".to_owned()];
        let found = join_into_chunks(&entries, 25);
        assert!(found.iter().all(|chunk| chunk.len() <= 25), "{found:?}");
        let joined: String = found.concat();
        assert_eq!(joined.replace('\n', ""), entries.concat());
    }

    #[test]
    fn too_many_entries_are_cut_before_the_oldest_are_left_out() {
        let mut entries = vec!["x".repeat(5_000), "short".to_owned()];
        fit_entries(&mut entries, 1_000);
        assert_eq!(entries.len(), 2);
        let mut entries: Vec<String> = (0..50).map(|n| format!("{n} {}", "y".repeat(70))).collect();
        fit_entries(&mut entries, 800);
        assert!(entries[0].starts_with("40 "), "{}", entries[0]);
    }
}
