//! The input that the model's provider accepts besides text.

use std::collections::BTreeMap;

use jaato_types::{DataContent, DataPart, MediaLimit, Message, Part, ProviderSpec};
use serde_json::Value;

/// A provider's capabilities, from its own description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCapabilities {
    /// The names of the request options that it honours.
    pub options: Vec<String>,
    /// The media types that it accepts besides text: `image/png`, or `image/*`.
    pub media_types: Vec<String>,
    /// Their size limits.
    pub media_limits: Vec<MediaLimit>,
}

impl Default for ModelCapabilities {
    /// Returns the capabilities of a provider that declares none.
    fn default() -> Self {
        Self {
            options: ProviderSpec::default().options,
            media_types: Vec::new(),
            media_limits: Vec::new(),
        }
    }
}

impl ModelCapabilities {
    /// Returns true if the provider honours an option.
    pub fn honours_option(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }

    /// Returns true if the model can look at data of a media type.
    pub fn accepts_media(&self, media_type: &str) -> bool {
        self.media_types.iter().any(|known| is_media_type(media_type, known))
    }

    /// Returns the limit of a media type. A limit for the exact type takes precedence over one for
    /// its kind.
    pub(crate) fn media_limit(&self, media_type: &str) -> Option<&MediaLimit> {
        let of_name = self.media_limits.iter().find(|limit| limit.mime_type == media_type);
        let of_kind =
            || self.media_limits.iter().find(|it| is_media_type(media_type, &it.mime_type));
        of_name.or_else(of_kind)
    }
}

/// Returns true if a media type is the known one, or of the known kind: `image/*`.
fn is_media_type(media_type: &str, known: &str) -> bool {
    let kind = media_type.split('/').next().unwrap_or_default();
    known == media_type || known.strip_suffix("/*").is_some_and(|known| known == kind)
}

impl ModelCapabilities {
    /// Replaces content that the model cannot look at, and blobs that are left out for the given
    /// reasons, with words. The words never vary, so that earlier requests stay the same.
    pub(crate) fn replace_with_descriptions(
        &self,
        message: &mut Message,
        left_out: &BTreeMap<String, String>,
    ) {
        for part in &mut message.parts {
            match part {
                Part::Data(data) => {
                    if let Some(words) = self.replacement_text(data, left_out) {
                        *part = Part::text(format!("[{words}]"));
                    }
                }
                Part::ToolResult(result) => {
                    let mut words: Vec<Value> = Vec::new();
                    result.attachments.retain(|data| {
                        let told = self.replacement_text(data, left_out);
                        let stays = told.is_none();
                        words.extend(told.map(Value::from));
                        stays
                    });
                    if !words.is_empty() {
                        result.content.insert("attached".to_owned(), Value::Array(words));
                    }
                }
                _ => {}
            }
        }
    }

    fn replacement_text(
        &self,
        data: &DataPart,
        left_out: &BTreeMap<String, String>,
    ) -> Option<String> {
        let DataContent::Blob { blob, .. } = &data.content else { return None };
        let why = if self.accepts_media(&data.mime_type) {
            left_out.get(blob)?
        } else {
            "this model cannot look at it"
        };
        let name = data.name.as_deref().unwrap_or("a file");
        Some(format!("{name}, {}: {why}", data.mime_type))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_media_is_replaced_by_text_and_the_rest_is_kept() {
        let takes = ModelCapabilities {
            media_types: vec!["image/*".to_owned()],
            ..ModelCapabilities::default()
        };
        let image = || DataPart::blob("image/png", "b1").with_name("moon.png");
        let pdf = || DataPart::blob("application/pdf", "b2").with_name("moon.pdf");
        let mut result = jaato_types::ToolResult::new("1", "look", serde_json::Map::new());
        result.attachments = vec![pdf(), image()];
        let mut message = Message::tool([result]);
        message.parts.extend([Part::Data(image()), Part::Data(pdf()), Part::json(json!(1))]);
        message.parts.push(Part::Data(DataPart::blob("image/png", "b3")));
        let why = "it was left out: it is too large".to_owned();
        takes.replace_with_descriptions(&mut message, &BTreeMap::from([("b3".to_owned(), why)]));
        let words = "moon.pdf, application/pdf: this model cannot look at it";
        let Part::ToolResult(result) = &message.parts[0] else { panic!("{message:?}") };
        assert_eq!(result.attachments, [image()]);
        assert_eq!(Value::Object(result.content.clone()), json!({ "attached": [words] }));
        let left_out = "[a file, image/png: it was left out: it is too large]";
        let words = format!("[{words}]");
        let rest = [Part::Data(image()), Part::text(words), Part::json(json!(1))];
        assert_eq!(message.parts[1..4], rest);
        assert_eq!(message.parts[4], Part::text(left_out));
    }

    #[test]
    fn media_type_is_accepted_by_exact_name_or_wildcard() {
        let media_types = vec!["image/*".to_owned(), "application/pdf".to_owned()];
        let takes = ModelCapabilities { media_types, ..ModelCapabilities::default() };
        let accepted = |media_type: &str| takes.accepts_media(media_type);
        assert!(accepted("image/png") && accepted("image/webp") && accepted("application/pdf"));
        assert!(!accepted("application/zip") && !accepted("imagery/png") && !accepted(""));
        assert!(takes.honours_option("temperature") && !takes.honours_option("effort"));
        let limit = |mime_type: &str, bytes_max| MediaLimit {
            mime_type: mime_type.to_owned(),
            bytes_max,
            ..MediaLimit::default()
        };
        let media_limits = vec![limit("image/*", 1), limit("image/gif", 2)];
        let takes = ModelCapabilities { media_limits, ..takes };
        let bytes = |media_type| takes.media_limit(media_type).map(|limit| limit.bytes_max);
        assert_eq!(["image/png", "image/gif", "a/b"].map(bytes), [Some(1), Some(2), None]);
    }
}
