//! Computes the changes of a file as hunks, for users, front ends and the model. Pure.
//!
//! Only the part between the first and the last difference is compared line by line, so a small
//! edit of a large file is fast.

use std::time::Duration;

use jaato_plugin_sdk::types::file_change::{
    FileChange, FileChangeKind, FileHunk, HUNKS_BYTES_MAX, HunkLine, HunkLineKind,
    WHOLE_TEXT_BYTES_MAX,
};
use jaato_plugin_sdk::types::text::truncate_chars;
use similar::{ChangeTag, TextDiffConfig};

/// The number of context lines around a difference.
const CONTEXT_LINES: usize = 3;

/// The time limit for computing a minimal diff. After that, the remaining lines are reported as
/// removed and added.
const PATIENCE: Duration = Duration::from_millis(250);

/// The maximum number of diff lines shown to the model, and of characters in each.
const SHORT_LINES_MAX: usize = 40;
const SHORT_CHARS_MAX: usize = 200;

/// The text of a file before and after. `None` means that the file is missing or has no text.
#[derive(Debug, Clone, Copy)]
pub struct FileTexts<'a> {
    /// The text before.
    pub old: Option<&'a str>,
    /// The text after.
    pub new: Option<&'a str>,
}

/// Computes the change of a file.
pub fn file_change(path: &str, kind: FileChangeKind, texts: FileTexts<'_>) -> FileChange {
    let mut change = FileChange { path: path.to_owned(), kind, ..FileChange::default() };
    let whole = |text: Option<&str>| {
        text.filter(|text| text.len() <= WHOLE_TEXT_BYTES_MAX).map(str::to_owned)
    };
    (change.old, change.new) = (whole(texts.old), whole(texts.new));
    add_hunks(&mut change, texts.old.unwrap_or_default(), texts.new.unwrap_or_default());
    change
}

/// The part of two texts between their first and last difference, with context lines.
struct DifferingRegion<'a> {
    /// The number of lines before the part.
    lines_before: usize,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

fn add_hunks(change: &mut FileChange, old: &str, new: &str) {
    let Some(middle) = differing_region(old, new) else { return };
    let diff = TextDiffConfig::default().timeout(PATIENCE).diff_slices(&middle.old, &middle.new);
    let mut room = HUNKS_BYTES_MAX;
    for ops in diff.grouped_ops(CONTEXT_LINES) {
        let mut hunk = FileHunk::default();
        let (mut old_count, mut new_count) = (0, 0);
        let mut bytes = 0;
        for line in ops.iter().flat_map(|op| diff.iter_changes(op)) {
            let kind = match line.tag() {
                ChangeTag::Equal => HunkLineKind::Same,
                ChangeTag::Delete => HunkLineKind::Removed,
                ChangeTag::Insert => HunkLineKind::Added,
            };
            old_count += usize::from(kind != HunkLineKind::Added);
            new_count += usize::from(kind != HunkLineKind::Removed);
            change.lines_added += u64::from(kind == HunkLineKind::Added);
            change.lines_removed += u64::from(kind == HunkLineKind::Removed);
            bytes += line.value().len();
            // Lines beyond the limit are only counted.
            if bytes <= room {
                hunk.lines.push(hunk_line(kind, line.value()));
            }
        }
        let first = ops.first().map(|op| (op.old_range().start, op.new_range().start));
        let (old_start, new_start) = first.unwrap_or_default();
        hunk.old_start = hunk_start_line(middle.lines_before + old_start, old_count);
        hunk.new_start = hunk_start_line(middle.lines_before + new_start, new_count);
        change.is_cut |= bytes > room;
        if !change.is_cut || !hunk.lines.is_empty() && change.hunks.is_empty() {
            change.hunks.push(hunk);
        }
        room = if change.is_cut { 0 } else { room - bytes };
    }
}

/// Returns the number of a hunk's first line, or of the line before it if the hunk has no lines.
fn hunk_start_line(lines_before: usize, count: usize) -> u64 {
    (lines_before + usize::from(count > 0)) as u64
}

fn hunk_line(kind: HunkLineKind, line: &str) -> HunkLine {
    let text = line.strip_suffix('\n');
    let is_unended = text.is_none();
    HunkLine { kind, text: text.unwrap_or(line).to_owned(), is_unended, ..HunkLine::default() }
}

/// Returns the differing part, or `None` if the texts are equal.
fn differing_region<'a>(old: &'a str, new: &'a str) -> Option<DifferingRegion<'a>> {
    let (old_bytes, new_bytes) = (old.as_bytes(), new.as_bytes());
    let same = common_prefix_length(old_bytes, new_bytes);
    if same == old.len() && same == new.len() {
        return None;
    }
    let start = line_start_before(old_bytes, same, CONTEXT_LINES);
    let shortest = old.len().min(new.len()) - same;
    let same_end = common_suffix_length(
        &old_bytes[old.len() - shortest..],
        &new_bytes[new.len() - shortest..],
    );
    // The common end, from a line start, without the lines that remain as context.
    let ahead = length_of_lines(&old_bytes[old.len() - same_end..], CONTEXT_LINES + 1);
    let tail = same_end - ahead;
    let lines = |text: &'a str| text[start..text.len() - tail].split_inclusive('\n').collect();
    Some(DifferingRegion {
        lines_before: memchr::memchr_iter(b'\n', &old_bytes[..start]).count(),
        old: lines(old),
        new: lines(new),
    })
}

/// Returns the start of the line that is `lines` lines before the line at `at`.
fn line_start_before(text: &[u8], at: usize, lines: usize) -> usize {
    memchr::memrchr_iter(b'\n', &text[..at]).nth(lines).map_or(0, |end| end + 1)
}

/// Returns the number of bytes up to the given count of line ends, or of all bytes if there are
/// fewer.
fn length_of_lines(text: &[u8], lines: usize) -> usize {
    memchr::memchr_iter(b'\n', text).nth(lines - 1).map_or(text.len(), |end| end + 1)
}

/// The number of bytes that are compared at a time.
const BLOCK_BYTES: usize = 4096;

/// Returns the length of the common beginning of two texts.
pub fn common_prefix_length(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks(BLOCK_BYTES).zip(b.chunks(BLOCK_BYTES));
    let same = blocks.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum::<usize>();
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

fn common_suffix_length(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks(BLOCK_BYTES).zip(b.rchunks(BLOCK_BYTES));
    let same = blocks.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum::<usize>();
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    same + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Formats changes as a short unified diff for the model. Empty if no line differs.
pub fn format_short_diff(changes: &[FileChange]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut left_out = 0;
    for change in changes.iter().filter(|change| !change.hunks.is_empty() || change.is_cut) {
        let text = change.to_unified_diff();
        // A single file needs no heading, because the call names it.
        let heading = if changes.len() == 1 { 2 } else { 0 };
        for line in text.lines().skip(heading) {
            if lines.len() == SHORT_LINES_MAX {
                left_out += 1;
                continue;
            }
            let line = line.strip_suffix('\r').unwrap_or(line);
            lines.push(truncate_chars(line, SHORT_CHARS_MAX));
        }
    }
    if left_out > 0 {
        lines.push(format!("[… {left_out} more lines]"));
    }
    lines.join("\n")
}

/// Formats milliseconds since 1970 UTC as `2026-11-24T00:10:00Z`.
pub fn format_timestamp(at_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(at_ms);
    moment.map(|moment| moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change_between(old: &str, new: &str) -> FileChange {
        let texts = FileTexts { old: Some(old), new: Some(new) };
        file_change("f", FileChangeKind::Changed, texts)
    }

    #[track_caller]
    fn check_diff(old: &str, new: &str, expected: &str) {
        let unified = change_between(old, new).to_unified_diff();
        assert_eq!(unified.strip_prefix("--- a/f\n+++ b/f\n"), Some(expected));
    }

    fn numbered_lines(count: usize) -> String {
        (1..=count).map(|number| format!("{number}\n")).collect()
    }

    #[test]
    fn hunks_are_shown_with_context_lines() {
        check_diff("a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        let (old, new) = (numbered_lines(20), numbered_lines(20).replace("\n10\n", "\nten\n"));
        let expected = "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n";
        check_diff(&old, &new, expected);
        let both = new.replace("\n18\n", "\n");
        let expected = format!("{expected}@@ -15,6 +15,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n");
        check_diff(&old, &both, &expected);
    }

    #[test]
    fn diff_handles_empty_files_and_missing_final_newlines() {
        check_diff("", "a\n", "@@ -0,0 +1 @@\n+a\n");
        check_diff("a\n", "", "@@ -1 +0,0 @@\n-a\n");
        let end = "\\ No newline at end of file\n";
        check_diff("a", "a\n", &format!("@@ -1 +1 @@\n-a\n{end}+a\n"));
        check_diff("a\nb", "a\nc", &format!("@@ -1,2 +1,2 @@\n a\n-b\n{end}+c\n{end}"));
        check_diff("a\na\n", "a\na\na\n", "@@ -1,2 +1,3 @@\n a\n a\n+a\n");
        check_diff("a\r\nb\r\n", "a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n");
        check_diff("same\n", "same\n", "");
    }

    /// Applying the hunks to the old text gives the new text.
    #[test]
    fn applying_a_diff_to_the_old_text_gives_the_new_text() {
        let mut state = 1_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for _ in 0..500 {
            let mut text = |_| {
                (0..random(30))
                    .map(|_| ["a\n", "b\n", "ä\r\n", "\n"][random(4) as usize])
                    .collect::<String>()
            };
            let (mut old, new) = (text(0), text(1));
            if old.len() % 3 == 0 {
                old.push_str("unended");
            }
            assert_eq!(apply_change(&old, &change_between(&old, &new)), new, "{old:?} to {new:?}");
        }
    }

    fn apply_change(old: &str, change: &FileChange) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut result, mut done) = (String::new(), 0);
        for hunk in &change.hunks {
            let has_old = hunk.lines.iter().any(|line| line.kind != HunkLineKind::Added);
            let start = usize::try_from(hunk.old_start).unwrap() - usize::from(has_old);
            result.extend(old[done..start].iter().copied());
            done = start;
            for line in &hunk.lines {
                let text = format!("{}{}", line.text, if line.is_unended { "" } else { "\n" });
                if line.kind != HunkLineKind::Added {
                    assert_eq!(old[done], text);
                    done += 1;
                }
                if line.kind != HunkLineKind::Removed {
                    result.push_str(&text);
                }
            }
        }
        result.extend(old[done..].iter().copied());
        result
    }

    #[test]
    fn large_diffs_are_counted_and_truncated() {
        let old = "old line of some length\n".repeat(10_000);
        let new = "new line of some length\n".repeat(10_000);
        let change = change_between(&old, &new);
        assert_eq!((change.lines_added, change.lines_removed), (10_000, 10_000));
        assert!(change.is_cut && change.old.is_none() && change.text_bytes() <= HUNKS_BYTES_MAX);
        let long = change_between(&"x".repeat(1 << 20), &"y".repeat(1 << 20));
        assert_eq!((long.lines_added, long.is_cut, long.hunks.len()), (1, true, 0));
    }

    #[test]
    fn model_gets_a_shortened_diff() {
        let short_of = |old: &str, new: &str| format_short_diff(&[change_between(old, new)]);
        assert_eq!(short_of("a\r\n", "b\r\n"), "@@ -1 +1 @@\n-a\n+b");
        assert_eq!(short_of("a\n", "a\n"), "");
        let many = short_of("", &numbered_lines(100));
        assert!(many.ends_with("+39\n[… 61 more lines]"), "{many}");
        let long = short_of("", &"x".repeat(1000));
        assert_eq!(long.lines().nth(1).map(|line| line.chars().count()), Some(201));
        let two = format_short_diff(&[change_between("a\n", "b\n"), change_between("c\n", "d\n")]);
        assert_eq!(two.matches("+++ b/f").count(), 2);
    }
}
