//! Settings for permission prompts: their types, and how each is read and shown.

use std::ffi::OsStr;
use std::path::PathBuf;

use jaato_types::mask;

use crate::setting::{PathBases, Setting, toml_text};
use crate::toml_tree::TomlValue;

/// The actions that a session may take without a permission prompt, apart from the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionMode {
    /// Each call that no rule allows causes a permission prompt.
    #[default]
    Ask,
    /// The same, but shipped tools may change files in the workspace without a prompt.
    AcceptEdits,
    /// Calls that change anything are denied.
    ReadOnly,
    /// The same, but the model may write a plan, and the mode ends when the user agrees to it.
    Plan,
}

/// The channel through which permission prompts are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionChannel {
    /// The terminal, or with `--answers` the program that runs jaato.
    #[default]
    Terminal,
    /// A server, through HTTP requests.
    Webhook,
    /// A folder with a file for each question and each answer.
    File,
}

/// The destination of a channel's questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptEndpoint {
    /// A server.
    Url(String),
    /// A folder.
    Folder(PathBuf),
}

/// The words for [`PermissionMode`].
const MODES: [(&str, PermissionMode); 4] = [
    ("ask", PermissionMode::Ask),
    ("accept-edits", PermissionMode::AcceptEdits),
    ("plan", PermissionMode::Plan),
    ("read-only", PermissionMode::ReadOnly),
];

/// The words for [`PermissionChannel`].
const CHANNELS: [(&str, PermissionChannel); 3] = [
    ("terminal", PermissionChannel::Terminal),
    ("webhook", PermissionChannel::Webhook),
    ("file", PermissionChannel::File),
];

impl PermissionMode {
    /// Returns its word.
    pub fn name(self) -> &'static str {
        keyword_for_value(&MODES, self)
    }
}

/// Parses a word for a mode: `ask`, `accept-edits`, `plan` or `read-only`.
pub fn parse_mode(text: &str) -> Option<PermissionMode> {
    parse_keyword(&MODES, text)
}

fn parse_keyword<T: Copy>(words: &[(&str, T)], text: &str) -> Option<T> {
    let text = text.trim();
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
}

fn keyword_for_value<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, it)| *it == value).map_or("", |(word, _)| word)
}

impl Setting for Option<PromptEndpoint> {
    const KIND: &'static str = "a URL or a folder";

    fn from_toml(value: &TomlValue, bases: PathBases<'_>) -> Option<Self> {
        match toml_text(value) {
            Some(url) if url.contains("://") => Some(Some(PromptEndpoint::Url(url.to_owned()))),
            _ => endpoint_for_folder(<Option<PathBuf> as Setting>::from_toml(value, bases)),
        }
    }

    fn from_text(text: &OsStr, bases: PathBases<'_>) -> Option<Self> {
        match text.to_str() {
            Some(url) if url.contains("://") => Some(Some(PromptEndpoint::Url(url.to_owned()))),
            _ => endpoint_for_folder(<Option<PathBuf> as Setting>::from_text(text, bases)),
        }
    }

    fn to_text(&self) -> String {
        match self {
            // A URL may contain a name and a password.
            Some(PromptEndpoint::Url(url)) => format!("{:?}", mask::mask_urls(url)),
            Some(PromptEndpoint::Folder(folder)) => Some(folder.clone()).to_text(),
            None => None::<PathBuf>.to_text(),
        }
    }
}

fn endpoint_for_folder(folder: Option<Option<PathBuf>>) -> Option<Option<PromptEndpoint>> {
    folder.map(|folder| folder.map(PromptEndpoint::Folder))
}

/// Implements [`Setting`] for an enum with a table of words.
macro_rules! word_setting {
    ($type:ty, $words:expr, $kind:literal) => {
        impl Setting for $type {
            const KIND: &'static str = $kind;

            fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
                toml_text(value).and_then(|text| parse_keyword(&$words, text))
            }

            fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
                parse_keyword(&$words, text.to_str()?)
            }

            fn to_text(&self) -> String {
                format!("{:?}", keyword_for_value(&$words, *self))
            }
        }
    };
}

word_setting!(PermissionMode, MODES, "`ask`, `accept-edits`, `plan` or `read-only`");
word_setting!(PermissionChannel, CHANNELS, "`terminal`, `webhook` or `file`");
