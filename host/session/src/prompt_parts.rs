//! A prompt: what a person says, and what they put beside it.

use jaato_types::{Data, Part};

/// What a person gives the model in one go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    /// The text; not blank.
    pub text: String,
    /// What stands before it: blobs of the session's store, and files of text. A model that cannot
    /// look at a blob is told so in words.
    pub files: Vec<Part>,
}

impl Prompt {
    /// Puts a blob of the session's store beside it.
    #[must_use]
    pub fn with(mut self, file: Data) -> Self {
        self.files.push(Part::Data(file));
        self
    }

    /// Puts a file of text beside it.
    #[must_use]
    pub fn with_text(mut self, name: &str, text: &str) -> Self {
        self.files.push(Part::text(format!("The file `{name}`:\n\n{text}")));
        self
    }

    /// Says something else, with the same files beside it.
    #[must_use]
    pub fn saying(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// Says more, in a paragraph of its own.
    #[must_use]
    pub fn followed_by(self, more: Option<String>) -> Self {
        let Some(more) = more else { return self };
        let is_first = self.text.trim().is_empty();
        let text = if is_first { more } else { format!("{}\n\n{more}", self.text) };
        self.saying(text)
    }

    /// Returns its parts: the files stand before the text that asks about them.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = Part> {
        self.files.into_iter().chain([Part::text(self.text)])
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}
