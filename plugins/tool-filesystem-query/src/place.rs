//! Where a call searches, and what a model is told when it cannot.

use jaato_plugin_sdk::files::{FileFacts, FileKind};
use jaato_plugin_sdk::prelude::*;

/// Where a search begins.
#[derive(Debug)]
pub struct Place {
    /// As it was asked for; empty for the session's folder.
    pub asked: String,
    /// Whether it is a folder.
    pub is_folder: bool,
}

impl Place {
    /// Finds it. `what` is what a model is told of it: `Root path` or `Path`.
    pub async fn find(cx: &Reporter, asked: Option<String>, what: &str) -> Result<Self> {
        let asked = asked.unwrap_or_default();
        let path = if asked.is_empty() { "." } else { &asked };
        let FileFacts { kind, .. } =
            cx.files().stat(path).await.map_err(|error| told(error, what, path))?;
        let asked = if asked == "." { String::new() } else { asked };
        Ok(Self { asked, is_folder: kind == FileKind::Folder })
    }

    /// The path of what was found, as a call may name it.
    pub fn relative_of(&self, found: &str) -> String {
        joined(&self.asked, found)
    }
}

fn joined(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", name) => name.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}

/// Puts an error in the words of these tools, with what the environment says as the hint.
pub fn told(error: Error, what: &str, path: &str) -> Error {
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

/// Tells whether a pattern begins at the top of a file system, here or on Windows.
pub fn is_absolute(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let has_drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'/' | b'\\');
    pattern.starts_with('/') || has_drive
}
