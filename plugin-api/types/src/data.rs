//! Content other than text, such as images and JSON values.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Content other than text: a reference to a blob, or a JSON value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DataPart {
    /// Media type, such as `image/png`.
    pub mime_type: String,
    /// The name, such as the file's name, for users and for models that accept names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The reference to the bytes, or the value.
    #[serde(flatten)]
    pub content: DataContent,
}

/// The content of a data part.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DataContent {
    /// A blob in the session's blob store. Read it with the service `blob.get`.
    #[non_exhaustive]
    Blob {
        /// The id of the blob.
        blob: String,
    },
    /// A JSON value from the host to the model, such as the outcome of a background task. A
    /// provider without data parts sends it as text.
    #[non_exhaustive]
    Json {
        /// The value.
        json: Value,
    },
    /// Content from a newer version, preserved unchanged.
    Unknown(Map<String, Value>),
}

impl<'de> Deserialize<'de> for DataContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut content = Map::<String, Value>::deserialize(deserializer)?;
        if let Some(blob) = content.get("blob") {
            let blob = blob.as_str().ok_or_else(|| D::Error::custom("`blob` is not a string"))?;
            return Ok(Self::Blob { blob: blob.to_owned() });
        }
        Ok(match content.remove("json") {
            Some(json) => Self::Json { json },
            None => Self::Unknown(content),
        })
    }
}

impl DataContent {
    /// Creates a reference to a blob in the session's blob store.
    pub fn blob(blob: impl Into<String>) -> Self {
        Self::Blob { blob: blob.into() }
    }

    /// Creates content from a JSON value.
    pub fn json(json: Value) -> Self {
        Self::Json { json }
    }
}

impl Default for DataContent {
    fn default() -> Self {
        Self::Json { json: Value::Null }
    }
}

impl DataPart {
    /// Creates a reference to a blob in the session's blob store. The media type is one such as
    /// `image/png`.
    pub fn blob(mime_type: impl Into<String>, blob: impl Into<String>) -> Self {
        let content = DataContent::blob(blob);
        Self { mime_type: mime_type.into(), content, ..Self::default() }
    }

    /// Creates data from a JSON value of the host for the model.
    pub fn json(json: Value) -> Self {
        let content = DataContent::json(json);
        Self { mime_type: "application/json".to_owned(), content, ..Self::default() }
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns the blob id, if the content is a blob.
    pub fn blob_id(&self) -> Option<&str> {
        match &self.content {
            DataContent::Blob { blob, .. } => Some(blob),
            DataContent::Json { .. } | DataContent::Unknown(_) => None,
        }
    }
}
