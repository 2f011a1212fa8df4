//! A prompt: what a person says, and what they put beside it.

use jaato_types::{Data, Part};

/// What a person gives the model in one go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    /// The text; not blank.
    pub text: String,
    /// Files beside it: blobs of the session's store. A model that cannot look at one is told so in
    /// words.
    pub files: Vec<Data>,
}

impl Prompt {
    /// Adds a file: a blob of the session's store.
    #[must_use]
    pub fn with(mut self, file: Data) -> Self {
        self.files.push(file);
        self
    }

    /// Returns its parts: the files stand before the text that asks about them.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = Part> {
        self.files.into_iter().map(Part::Data).chain([Part::text(self.text)])
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
