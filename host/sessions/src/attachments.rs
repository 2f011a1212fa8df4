//! Large contents next to a session's records, named by the SHA-256 of their bytes: attached files,
//! and whole outputs of tools. Results name an output by its path.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use jaato_types::{DataPart, Message, Part};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::disk::Disk;
use crate::error::SessionStoreError;
use crate::plain::open_regular_file;
use crate::record::{SessionRecord, record_type};

/// The digits of a SHA-256.
const NAME_CHARS: usize = 64;

/// Stores a content in a folder, unless it is there. Replaces a damaged file with its name. Returns
/// its name. The disk has it then.
///
/// # Errors
/// If the disk refuses.
pub fn store_content(
    disk: &Disk,
    folder: &Path,
    content: &[u8],
) -> Result<String, SessionStoreError> {
    let name = content_digest(content);
    let path = folder.join(&name);
    let has_length = |found: fs::Metadata| found.len() == content.len() as u64;
    let is_whole = fs::symlink_metadata(&path).is_ok_and(has_length)
        && matches!(read_content(folder, &name), Ok(Some(_)));
    if is_whole {
        return Ok(name);
    }
    disk.make_folder(folder)?;
    // A name never has a part of a content, even if the process is killed.
    let part = folder.join(format!("{name}.{}.part", std::process::id()));
    let placed = disk.create_empty(&part).and_then(|file| {
        disk.append_bytes(&file, &part, content)?;
        disk.sync_file(&file, &part)?;
        disk.rename(&part, &path)?;
        disk.sync_folder(folder)?;
        // The folder itself may be new.
        folder.parent().map_or(Ok(()), |session| disk.sync_folder(session))
    });
    if let Err(error) = placed {
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    Ok(name)
}

/// Gives a file its name as a content of a folder. Returns its path. The disk may not have it yet,
/// because no record names it.
///
/// # Errors
/// If the file cannot be read, or the disk refuses.
pub fn adopt_file(disk: &Disk, folder: &Path, file: &Path) -> Result<PathBuf, SessionStoreError> {
    let failed = |error| SessionStoreError::from_io("read", file)(error);
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(file).map_err(failed)?, &mut hasher).map_err(failed)?;
    disk.make_folder(folder)?;
    let path = folder.join(hex_digest(&hasher.finalize()));
    // It replaces a file with the same content, or a damaged one.
    disk.rename(file, &path)?;
    Ok(path)
}

/// Replaces the folder in the paths of contents by another one, in the texts of a record. A model's
/// answer stays as it is, because a provider may have signed it. So do the rules, because an answer
/// of the user has a digest of its text.
pub fn rename_folder(record: &mut SessionRecord, from: &str, to: &str) {
    let is_answer = |entry: &Value| entry["role"] == "model";
    let is_fixed = record.kind == record_type::RULES
        || is_answer(&record.data)
        || is_answer(&record.data["entry"]);
    if !is_fixed {
        replace_in_texts(&mut record.data, from, to);
    }
}

fn replace_in_texts(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) => replace_in_paths(text, from, to),
        Value::Array(items) => items.iter_mut().for_each(|it| replace_in_texts(it, from, to)),
        Value::Object(map) => map.values_mut().for_each(|it| replace_in_texts(it, from, to)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replace_in_paths(text: &mut String, from: &str, to: &str) {
    let paths = content_paths(text, from);
    if paths.is_empty() {
        return;
    }
    let (mut replaced, mut end) = (String::with_capacity(text.len()), 0);
    for (at, _) in paths {
        replaced += &text[end..at];
        replaced += to;
        end = at + from.len();
    }
    replaced += &text[end..];
    *text = replaced;
}

/// Lists the paths of a folder's contents in a text: where each begins, and the content's name.
pub fn content_paths<'a>(text: &'a str, folder: &str) -> Vec<(usize, &'a str)> {
    let folder = format!("{folder}/");
    let path = |(at, found): (usize, &str)| {
        let name = text[at + found.len()..].get(..NAME_CHARS)?;
        is_content_name(name).then_some((at, name))
    };
    text.match_indices(&folder).filter_map(path).collect()
}

/// Lists the parts of a message whose bytes are attachments of its session.
pub fn message_blobs(message: &Message) -> impl Iterator<Item = &DataPart> {
    let data = message.parts.iter().flat_map(|part| match part {
        Part::Data(data) => std::slice::from_ref(data),
        Part::ToolResult(result) => result.attachments.as_slice(),
        _ => &[],
    });
    data.filter(|data| data.blob_id().is_some())
}

/// Reads a content. Returns `None` if it is missing or damaged.
///
/// # Errors
/// If it cannot be read.
pub fn read_content(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, SessionStoreError> {
    if !is_content_name(name) {
        return Ok(None);
    }
    // The folder with the attachments is no link either.
    let session = folder.parent().unwrap_or(folder);
    let path = folder.join(name);
    let mut file = match open_regular_file(session, path.strip_prefix(session).unwrap_or(&path)) {
        Ok(file) => file,
        Err(SessionStoreError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(SessionStoreError::from_io("read", path))?;
    Ok((content_digest(&content) == name).then_some(content))
}

/// Gives all contents of a folder to a second folder, as links. The names there are durable then.
///
/// # Errors
/// If the disk refuses.
pub fn link_contents(disk: &Disk, from: &Path, to: &Path) -> Result<(), SessionStoreError> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(SessionStoreError::from_io("read", from)(error)),
    };
    disk.make_folder(to)?;
    for entry in entries {
        let entry = entry.map_err(SessionStoreError::from_io("read", from))?;
        let name = entry.file_name();
        let is_plain = entry.file_type().is_ok_and(|found| found.is_file());
        if is_plain && name.to_str().is_some_and(is_content_name) {
            disk.link_file(&entry.path(), &to.join(name))?;
        }
    }
    disk.sync_folder(to)
}

/// Returns the name of a content.
pub fn content_digest(content: &[u8]) -> String {
    hex_digest(&Sha256::digest(content))
}

fn hex_digest(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_content_name(name: &str) -> bool {
    name.len() == NAME_CHARS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
