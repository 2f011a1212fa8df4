//! Replaces pieces of a text, all of them or none, over reading and writing it whole.

use jaato_types::files::{FileEdit, FileEdited, FileWrite, TextEdit};
use jaato_types::{Error, ErrorKind, Result};

use super::{WHOLE_BYTES_MAX, named, too_large, whole};
use crate::context::Reporter;
use crate::environment::Files;

/// Edits over [`Files::stat`], [`Files::read`] and [`Files::write`]. Where the files have versions,
/// what somebody else writes meanwhile is not overwritten.
pub(in crate::environment) async fn edit<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    request: FileEdit,
) -> Result<FileEdited> {
    let FileEdit { path, edits, expected, .. } = request;
    if edits.is_empty() {
        return Err(refused(ErrorKind::InvalidArguments, &path, "there are no edits"));
    }
    let before = files.stat(host, named(&path)).await?;
    if expected.is_some() && before.version.is_some() && expected != before.version {
        let why = "it is another than the one that was read";
        return Err(refused(ErrorKind::Conflict, &path, why).with_hint("read it again"));
    }
    let bytes = whole(files, host, &path).await?;
    let content = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        refused(ErrorKind::InvalidArguments, &path, &format!("byte {at} is not UTF-8"))
    })?;
    let (mut text, mut replaced) = (content.clone(), Vec::with_capacity(edits.len()));
    for (at, edit) in edits.iter().enumerate() {
        let which = match edits.len() {
            1 => String::new(),
            count => format!("edit {} of {count}: ", at + 1),
        };
        let count = check(&path, &which, &text, edit)?;
        let grown = count.saturating_mul(edit.new.len()).saturating_add(text.len());
        if grown as u64 > WHOLE_BYTES_MAX {
            return Err(too_large(&path, "replace less"));
        }
        text = text.replacen(&edit.old, &edit.new, count);
        replaced.push(count as u64);
    }
    if text == content {
        return Ok(FileEdited { replaced, facts: before, ..FileEdited::default() });
    }
    let expected = before.version.or(expected);
    let write = FileWrite { path, expected, ..FileWrite::default() };
    let facts = files.write(host, write, text.into_bytes()).await?;
    Ok(FileEdited { replaced, facts, ..FileEdited::default() })
}

/// How often an edit replaces.
fn check(path: &str, which: &str, text: &str, edit: &TextEdit) -> Result<usize> {
    if edit.old.is_empty() {
        let why = format!("{which}the text to replace is empty");
        return Err(refused(ErrorKind::InvalidArguments, path, &why));
    }
    let Some(first) = text.find(&edit.old) else {
        let why = format!("{which}the text is not there");
        let hint = "read the file again: the text must be there byte by byte";
        return Err(refused(ErrorKind::NotFound, path, &why).with_hint(hint));
    };
    if edit.all {
        return Ok(text.matches(&edit.old).count());
    }
    let next = first + edit.old.chars().next().map_or(1, char::len_utf8);
    if text[next..].contains(&edit.old) {
        let why = format!("{which}the text is there more than once");
        let hint = "add what stands around it until it is there once, or ask with `all`";
        return Err(refused(ErrorKind::Conflict, path, &why).with_hint(hint));
    }
    Ok(1)
}

fn refused(kind: ErrorKind, path: &str, why: &str) -> Error {
    Error::new(kind, format!("cannot edit `{path}`: {why}"))
}
