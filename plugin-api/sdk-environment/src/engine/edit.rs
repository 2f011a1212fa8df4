//! Replaces pieces of a text, byte by byte. Applies all edits or none.

use std::fmt::Write as _;
use std::path::Path;

use jaato_types::files::TextEdit;
use jaato_types::{Error, ErrorKind, Result};
use memchr::memmem;

use crate::errors::{self, FileOperationVerb};

/// The largest text that can be edited, before and after the edit.
pub const EDIT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The maximum number of line numbers in the error for a piece that occurs too often.
const LINES_NAMED_MAX: usize = 5;

/// Replaces pieces of a text. Also returns the number of replacements for each edit.
pub(crate) fn apply_edits(
    shown: &Path,
    content: &[u8],
    edits: &[TextEdit],
) -> Result<(Vec<u8>, Vec<u64>)> {
    if edits.is_empty() {
        return Err(errors::refused_error(FileOperationVerb::Edit, shown, "no edits are given"));
    }
    let mut text = content.to_vec();
    let mut counts = Vec::with_capacity(edits.len());
    for (at, edit) in edits.iter().enumerate() {
        let which = match edits.len() {
            1 => String::new(),
            count => format!("edit {} of {count}: ", at + 1),
        };
        let (new, count) = apply_edit(shown, &which, &text, edit)?;
        if new.len() as u64 > EDIT_BYTES_MAX {
            let what = format!("{which}it would become larger than {EDIT_BYTES_MAX} bytes");
            return Err(errors::too_large_error(FileOperationVerb::Edit, shown, &what));
        }
        text = new;
        counts.push(count);
    }
    Ok((text, counts))
}

fn apply_edit(shown: &Path, which: &str, text: &[u8], edit: &TextEdit) -> Result<(Vec<u8>, u64)> {
    let (old, new) = (edit.old.as_bytes(), edit.new.as_bytes());
    if old.is_empty() {
        let reason = format!("{which}the text to replace is empty");
        return Err(errors::refused_error(FileOperationVerb::Edit, shown, &reason));
    }
    let finder = memmem::Finder::new(old);
    let Some(first) = finder.find(text) else {
        let text_there = format!("{which}the text was not found");
        let error = errors::refused_error(FileOperationVerb::Edit, shown, &text_there);
        return Err(
            Error { kind: ErrorKind::NotFound, ..error }.with_hint(missing_text_hint(text, edit))
        );
    };
    if !edit.all && finder.find(&text[first + 1..]).is_some() {
        return Err(ambiguous_text_error(shown, which, text, &finder));
    }
    // Check the size before the text grows.
    let at_most = if edit.all { finder.find_iter(text).count() } else { 1 };
    let grown = text.len() + at_most * new.len().saturating_sub(old.len());
    if grown as u64 > EDIT_BYTES_MAX {
        let what = format!("{which}it would become larger than {EDIT_BYTES_MAX} bytes");
        return Err(errors::too_large_error(FileOperationVerb::Edit, shown, &what));
    }
    let (mut result, mut done, mut count) = (Vec::with_capacity(grown), 0, 0);
    for start in finder.find_iter(text).take(at_most) {
        result.extend_from_slice(&text[done..start]);
        result.extend_from_slice(new);
        done = start + old.len();
        count += 1;
    }
    result.extend_from_slice(&text[done..]);
    Ok((result, count))
}

fn ambiguous_text_error(
    shown: &Path,
    which: &str,
    text: &[u8],
    finder: &memmem::Finder<'_>,
) -> Error {
    let (mut lines, mut from, mut count) = (String::new(), 0, 0);
    while let Some(start) = finder.find(&text[from..]) {
        let at = from + start;
        if count < LINES_NAMED_MAX {
            let line = memchr::memchr_iter(b'\n', &text[..at]).count() + 1;
            let comma = if count == 0 { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(lines, "{comma}{line}");
        }
        count += 1;
        from = at + 1;
    }
    let more = if count > LINES_NAMED_MAX { ", …" } else { "" };
    let reason = format!("{which}the text occurs {count} times, in lines {lines}{more}");
    let error = errors::refused_error(FileOperationVerb::Edit, shown, &reason);
    Error { kind: ErrorKind::Conflict, ..error }
        .with_hint("add surrounding text until it is unique, or set `all`")
}

/// Returns a hint why the text may be missing.
fn missing_text_hint(text: &[u8], edit: &TextEdit) -> String {
    let has_crlf = memmem::find(text, b"\r\n").is_some();
    if has_crlf && edit.old.contains('\n') && !edit.old.contains("\r\n") {
        let old = edit.old.replace('\n', "\r\n");
        if memmem::find(text, old.as_bytes()).is_some() {
            return "the file's lines end with CR LF: write `\\r\\n` in both texts".to_owned();
        }
    }
    if !has_crlf && edit.old.contains("\r\n") {
        return "the file's lines end with only LF: write `\\n` in both texts".to_owned();
    }
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let old = squeezed(&edit.old);
    if !old.is_empty() && squeezed(&String::from_utf8_lossy(text)).contains(&old) {
        return "it occurs with other blanks or line ends: read the file again and copy it exactly"
            .to_owned();
    }
    "read the file again: the text must match exactly".to_owned()
}
