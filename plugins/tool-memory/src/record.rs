//! A memory and its limits.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;
use jaato_plugin_sdk::types::text::one_line;

use crate::search_terms::fold_tag;

/// The longest content in bytes. A model reads a memory completely.
pub const CONTENT_BYTES_MAX: usize = 64 * 1024;
/// The longest description in bytes, because it is a line in a prompt.
pub const DESCRIPTION_BYTES_MAX: usize = 1024;
/// The longest evidence in bytes.
pub const EVIDENCE_BYTES_MAX: usize = 4096;
/// The maximum number of tags in one memory or one search.
pub const TAGS_MAX: usize = 20;
/// The longest tag in bytes.
pub const TAG_BYTES_MAX: usize = 100;
/// The shortest tag. A shorter one would be part of too many words.
const TAG_CHARS_MIN: usize = 2;

/// Where a memory is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "snake_case")]
pub enum MemoryScope {
    /// In this workspace.
    #[default]
    Project,
    /// In all of the user's workspaces.
    Universal,
}

impl MemoryScope {
    /// Both scopes in display order.
    pub const ALL: [Self; 2] = [Self::Project, Self::Universal];

    /// Returns the name that models and users see.
    pub fn scope_name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Universal => "universal",
        }
    }
}

/// A memory to store, after validation.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemory {
    pub content: String,
    pub description: String,
    pub tags: Vec<String>,
    pub confidence: f64,
    pub evidence: String,
}

/// A memory that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRecord {
    pub id: String,
    pub content: String,
    pub description: String,
    pub tags: Vec<String>,
    pub confidence: f64,
    pub evidence: String,
    /// When the memory was stored: UTC in RFC 3339, always with the same length.
    pub stored: String,
    pub usage_count: i64,
}

impl NewMemory {
    /// Validates a memory from a model.
    ///
    /// # Errors
    /// `invalid_arguments` for a text that is empty or too long, or if no tag is left.
    pub fn from_model(
        content: String,
        description: &str,
        tags: &[String],
        confidence: f64,
        evidence: String,
    ) -> Result<Self> {
        let description = one_line(description);
        check_text("content", &content, CONTENT_BYTES_MAX)?;
        check_text("description", &description, DESCRIPTION_BYTES_MAX)?;
        if !evidence.is_empty() {
            check_text("evidence", &evidence, EVIDENCE_BYTES_MAX)?;
        }
        let tags = check_tags(tags)?;
        Ok(Self { content, description, tags, confidence: confidence.clamp(0.0, 1.0), evidence })
    }
}

impl MemoryRecord {
    /// Returns the memory for a tool result.
    pub fn to_json(&self, scope: MemoryScope) -> Value {
        let mut told = json!({
            "id": self.id,
            "description": self.description,
            "content": self.content,
            "tags": self.tags,
            "stored": self.stored,
            "usage_count": self.usage_count,
            "maturity": MATURITY,
            "confidence": self.confidence,
            "scope": scope.scope_name(),
        });
        if !self.evidence.is_empty() {
            told["evidence"] = json!(self.evidence);
        }
        told
    }
}

/// The maturity of every memory. No tool changes it.
pub const MATURITY: &str = "raw";

/// Validates a text of a memory.
///
/// # Errors
/// `invalid_arguments` if it is empty or too long.
pub fn check_text(name: &str, text: &str, bytes_max: usize) -> Result<()> {
    if text.trim().is_empty() {
        return Err(invalid_record_error(format!("`{name}` is empty")));
    }
    if text.len() > bytes_max {
        let text = format!("`{name}` has {} bytes, the limit is {bytes_max}", text.len());
        return Err(invalid_record_error(text)
            .with_hint("keep the important part, and put the rest into a file"));
    }
    Ok(())
}

/// Returns the valid tags: one line each, without duplicates that differ only in case.
///
/// # Errors
/// `invalid_arguments` if none is left, there are too many, or one is too long.
pub fn check_tags(given: &[String]) -> Result<Vec<String>> {
    let mut tags: Vec<String> = Vec::new();
    if given.len() > TAGS_MAX {
        return Err(invalid_record_error(format!(
            "there are {} tags, the limit is {TAGS_MAX}",
            given.len()
        )));
    }
    for tag in given {
        let tag = one_line(tag);
        if tag.len() > TAG_BYTES_MAX {
            let text = format!("a tag has {} bytes, the limit is {TAG_BYTES_MAX}", tag.len());
            return Err(invalid_record_error(text));
        }
        let is_known = tags.iter().any(|known| fold_tag(known) == fold_tag(&tag));
        if tag.chars().count() >= TAG_CHARS_MIN && !is_known {
            tags.push(tag);
        }
    }
    if tags.is_empty() {
        let text = format!(
            "All tags were rejected — each tag must be a meaningful word or phrase (at least 2 characters). Received: {}",
            format_tag_list(given)
        );
        return Err(invalid_record_error(text));
    }
    Ok(tags)
}

/// Formats a list of tags as in the original plugin: `['a', 'b']`.
pub fn format_tag_list(tags: &[String]) -> String {
    let quoted: Vec<String> = tags.iter().map(|tag| format!("'{tag}'")).collect();
    format!("[{}]", quoted.join(", "))
}

fn invalid_record_error(text: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, text)
}
