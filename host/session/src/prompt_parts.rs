//! A prompt: the user's text and attached files.

use jaato_types::{DataPart, Part};

/// A user's input for the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserPrompt {
    /// The text; not blank.
    pub text: String,
    /// The files that precede the text: blobs of the session's store, and text files. For a blob
    /// that the model cannot look at, the model gets a text description.
    pub files: Vec<Part>,
}

impl UserPrompt {
    /// Attaches a blob of the session's store.
    #[must_use]
    pub fn with_file(mut self, file: DataPart) -> Self {
        self.files.push(Part::Data(file));
        self
    }

    /// Attaches a text file.
    #[must_use]
    pub fn with_text(mut self, name: &str, text: &str) -> Self {
        self.files.push(Part::text(format!("The file `{name}`:\n\n{text}")));
        self
    }

    /// Replaces the text and keeps the files.
    #[must_use]
    pub fn with_replaced_text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn with_paragraph(self, more: Option<String>) -> Self {
        let Some(more) = more else { return self };
        let is_first = self.text.trim().is_empty();
        let text = if is_first { more } else { format!("{}\n\n{more}", self.text) };
        self.with_replaced_text(text)
    }

    /// Returns its parts: the files come before the text that asks about them.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = Part> {
        self.files.into_iter().chain([Part::text(self.text)])
    }
}

impl From<&str> for UserPrompt {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

impl From<String> for UserPrompt {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}
