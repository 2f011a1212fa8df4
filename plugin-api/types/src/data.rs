//! Data: what is no text, by its place.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// What is no text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Media type, such as `image/png`.
    pub mime_type: String,
    /// What people call it, such as the file's name; for models that take names, and for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The bytes' place, or the value.
    #[serde(flatten)]
    pub content: DataContent,
}

/// Where the content of a data part is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DataContent {
    /// In the session's blob store: read by the service `blob.get`.
    #[non_exhaustive]
    Blob {
        /// Its id.
        blob: String,
    },
    /// Here: what the host itself tells the model, such as the outcome of a task. A provider
    /// without data parts sends it as text.
    #[non_exhaustive]
    Json {
        /// The value.
        json: Value,
    },
    /// In a place that this side does not know; kept as it is.
    Unknown(Map<String, Value>),
}

impl<'de> Deserialize<'de> for DataContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut content = Map::<String, Value>::deserialize(deserializer)?;
        if let Some(blob) = content.get("blob") {
            let blob = blob.as_str().ok_or_else(|| D::Error::custom("`blob` is no text"))?;
            return Ok(Self::Blob { blob: blob.to_owned() });
        }
        Ok(match content.remove("json") {
            Some(json) => Self::Json { json },
            None => Self::Unknown(content),
        })
    }
}

impl DataContent {
    /// Names bytes in the session's blob store.
    pub fn blob(blob: impl Into<String>) -> Self {
        Self::Blob { blob: blob.into() }
    }

    /// Holds a value.
    pub fn json(json: Value) -> Self {
        Self::Json { json }
    }
}

impl Default for DataContent {
    fn default() -> Self {
        Self::Json { json: Value::Null }
    }
}

impl Data {
    /// Names bytes in the session's blob store; the media type is one such as `image/png`.
    pub fn blob(mime_type: impl Into<String>, blob: impl Into<String>) -> Self {
        let content = DataContent::blob(blob);
        Self { mime_type: mime_type.into(), content, ..Self::default() }
    }

    /// Makes data of a value that the host tells the model.
    pub fn json(json: Value) -> Self {
        let content = DataContent::json(json);
        Self { mime_type: "application/json".to_owned(), content, ..Self::default() }
    }

    /// Gives it a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns the id of the blob that it names.
    pub fn blob_id(&self) -> Option<&str> {
        match &self.content {
            DataContent::Blob { blob, .. } => Some(blob),
            DataContent::Json { .. } | DataContent::Unknown(_) => None,
        }
    }
}
