//! Tracks how the model last saw files in this session, so that it never changes a file unaware of
//! later changes.

use std::collections::VecDeque;
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde::{Deserialize, Serialize};

use crate::history::ContentId;
use crate::text::decode_bytes;

/// The maximum number of remembered files. The oldest is forgotten.
const FILES_MAX: usize = 2000;

/// The maximum size of a remembered text, and of all of them. They are used to show later changes.
const TEXT_BYTES_MAX: usize = 256 * 1024;
const TEXTS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The maximum size of a file with such a text. No encoding uses more than twice the bytes of UTF-8
/// for a character, apart from a byte order mark.
const FILE_BYTES_MAX: usize = 2 * TEXT_BYTES_MAX + 4;

/// A file as the model last saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct SeenFile {
    /// The environment's version of the file.
    pub version: Option<String>,
    /// The digest of its bytes, if it was read completely.
    pub digest: Option<ContentId>,
    /// Its text, if it is short.
    #[serde(skip)]
    pub text: Option<Arc<str>>,
}

/// All seen files, latest last.
#[derive(Debug, Default)]
pub struct SeenFiles {
    files: VecDeque<(String, SeenFile)>,
}

impl SeenFiles {
    /// Restores the state of an earlier instance. Ignores data in another format.
    pub fn from_saved(saved: Option<Value>) -> Self {
        let files = saved.and_then(|saved| serde_json::from_value(saved).ok());
        Self { files: files.unwrap_or_default() }
    }

    /// Returns the state for the next instance.
    pub fn to_saved_state(&self) -> Value {
        json!(self.files)
    }

    /// Remembers a file.
    pub fn remember_file(&mut self, path: &str, mut sight: SeenFile) {
        self.forget_file(path);
        sight.text = sight.text.filter(|text| text.len() <= TEXT_BYTES_MAX);
        self.files.push_back((path.to_owned(), sight));
        if self.files.len() > FILES_MAX {
            self.files.pop_front();
        }
        let length = |sight: &SeenFile| sight.text.as_ref().map_or(0, |text| text.len());
        let mut bytes: usize = self.files.iter().map(|(_, sight)| length(sight)).sum();
        for (_, sight) in &mut self.files {
            if bytes <= TEXTS_BYTES_MAX {
                break;
            }
            bytes -= length(sight);
            sight.text = None;
        }
    }

    /// Forgets a file.
    pub fn forget_file(&mut self, path: &str) {
        self.files.retain(|(other, _)| other != path);
    }

    /// Returns how a file was last seen.
    pub fn get(&self, path: &str) -> Option<&SeenFile> {
        self.files.iter().find(|(other, _)| other == path).map(|(_, sight)| sight)
    }
}

impl SeenFile {
    /// Returns true if a file has not changed since it was seen.
    pub fn is_same_file(&self, version: Option<&str>, digest: impl FnOnce() -> ContentId) -> bool {
        if version.is_some() && self.version.as_deref() == version {
            return true;
        }
        self.digest.as_ref().is_some_and(|seen| *seen == digest())
    }
}

/// Returns the text of a file if it is short enough to be remembered.
pub fn text_to_remember(bytes: &[u8]) -> Option<Arc<str>> {
    let bytes = (bytes.len() <= FILE_BYTES_MAX).then_some(bytes)?;
    let text = decode_bytes(bytes).ok()?.text;
    (text.len() <= TEXT_BYTES_MAX).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_text(text: &str) -> SeenFile {
        let digest = Some(ContentId::from_bytes(text.as_bytes()));
        SeenFile { version: Some("1".to_owned()), digest, text: Some(text.into()) }
    }

    #[test]
    fn seen_file_is_recognised_by_version_or_content() {
        let seen = seen_text("a");
        let digest = |text: &'static str| move || ContentId::from_bytes(text.as_bytes());
        assert!(seen.is_same_file(Some("1"), || unreachable!("the version is enough")));
        assert!(seen.is_same_file(Some("2"), digest("a")) && seen.is_same_file(None, digest("a")));
        assert!(!seen.is_same_file(Some("2"), digest("b")));
        let unread = SeenFile { version: None, digest: None, text: None };
        assert!(!unread.is_same_file(None, digest("a")));
    }

    #[test]
    fn seen_files_are_limited_and_saved() {
        let mut sights = SeenFiles::default();
        for number in 0..=FILES_MAX {
            sights.remember_file(&number.to_string(), seen_text(&"x".repeat(100 * 1024)));
        }
        assert!(sights.get("0").is_none() && sights.get("1").is_some());
        let with_text = sights.files.iter().filter(|(_, sight)| sight.text.is_some()).count();
        assert_eq!(with_text, TEXTS_BYTES_MAX / (100 * 1024));
        sights.remember_file("long", seen_text(&"x".repeat(TEXT_BYTES_MAX + 1)));
        assert!(sights.get("long").is_some_and(|sight| sight.text.is_none()));
        let again = SeenFiles::from_saved(Some(sights.to_saved_state()));
        assert_eq!(again.files.len(), sights.files.len());
        assert_eq!(again.get("7").map(|it| &it.digest), sights.get("7").map(|it| &it.digest));
        assert!(SeenFiles::from_saved(Some(json!("moon"))).files.is_empty());
    }
}
