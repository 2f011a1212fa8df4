//! The start of a search, and its errors.

use jaato_plugin_sdk::files::{FileFacts, FileKind};
use jaato_plugin_sdk::prelude::*;

/// The path at which a search starts.
#[derive(Debug)]
pub struct SearchStartPath {
    /// The path in the call. Empty for the session's folder.
    pub asked: String,
    /// Whether the path is a folder.
    pub is_folder: bool,
}

impl SearchStartPath {
    /// Finds the path. Errors call it `what`: `Root path` or `Path`.
    pub async fn find_start(cx: &Reporter, asked: Option<String>, what: &str) -> Result<Self> {
        let asked = asked.unwrap_or_default();
        let path = if asked.is_empty() { "." } else { &asked };
        let FileFacts { kind, .. } =
            cx.files().stat(path).await.map_err(|error| rephrase_error(error, what, path))?;
        let asked = if asked == "." { String::new() } else { asked };
        Ok(Self { asked, is_folder: kind == FileKind::Folder })
    }

    /// Returns a result's path in a form that a call can use.
    pub fn callable_path(&self, found: &str) -> String {
        join_path(&self.asked, found)
    }
}

fn join_path(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", name) => name.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}

/// Rephrases an error for these tools, with the environment's message as the hint.
pub fn rephrase_error(error: Error, what: &str, path: &str) -> Error {
    let text = match error.kind {
        ErrorKind::PermissionDenied => format!("Path not allowed: {path}"),
        ErrorKind::NotFound => format!("{what} does not exist: {path}"),
        _ => return error,
    };
    let hint = match error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message,
    };
    Error::new(error.kind, text).with_hint(hint)
}

/// Returns true if a pattern starts at the root of a file system, on Unix or Windows.
pub fn is_absolute_pattern(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let has_drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'/' | b'\\');
    pattern.starts_with('/') || has_drive
}
