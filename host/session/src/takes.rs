//! What the model's provider takes beside text.

use jaato_types::{Data, DataContent, Message, Part, ProviderSpec};
use serde_json::Value;

/// What a provider takes, as it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTakes {
    /// The options of a request that it honours, by their names.
    pub options: Vec<String>,
    /// Media types beside text: `image/png`, or `image/*`.
    pub media_types: Vec<String>,
}

impl Default for ModelTakes {
    /// What a provider takes that says nothing of it.
    fn default() -> Self {
        Self { options: ProviderSpec::default().options, media_types: Vec::new() }
    }
}

impl ModelTakes {
    /// Tells whether the provider honours an option.
    pub fn honours(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }

    /// Tells whether the model can look at data of a media type.
    pub fn accepts(&self, media_type: &str) -> bool {
        let kind = media_type.split('/').next().unwrap_or_default();
        let is_it = |known: &String| {
            known == media_type || known.strip_suffix("/*").is_some_and(|known| known == kind)
        };
        self.media_types.iter().any(is_it)
    }
}

impl ModelTakes {
    /// Puts words in the place of what the model cannot look at. The same words each time: what was
    /// sent stays as it was.
    pub(crate) fn in_words(&self, message: &mut Message) {
        for part in &mut message.parts {
            match part {
                Part::Data(data) => {
                    if let Some(words) = self.words_for(data) {
                        *part = Part::text(format!("[{words}]"));
                    }
                }
                Part::ToolResult(result) => {
                    let mut words: Vec<Value> = Vec::new();
                    result.attachments.retain(|data| {
                        let told = self.words_for(data);
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

    fn words_for(&self, data: &Data) -> Option<String> {
        let is_bytes = matches!(data.content, DataContent::Blob { .. });
        if !is_bytes || self.accepts(&data.mime_type) {
            return None;
        }
        let name = data.name.as_deref().unwrap_or("a file");
        Some(format!("{name}, {}: this model cannot look at it", data.mime_type))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_model_cannot_look_at_is_told_in_words_and_the_rest_stays() {
        let takes = ModelTakes { media_types: vec!["image/*".to_owned()], ..ModelTakes::default() };
        let image = || Data::blob("image/png", "b1").named("moon.png");
        let pdf = || Data::blob("application/pdf", "b2").named("moon.pdf");
        let mut result = jaato_types::ToolResult::new("1", "look", serde_json::Map::new());
        result.attachments = vec![pdf(), image()];
        let mut message = Message::tool([result]);
        message.parts.extend([Part::Data(image()), Part::Data(pdf()), Part::json(json!(1))]);
        takes.in_words(&mut message);
        let words = "moon.pdf, application/pdf: this model cannot look at it";
        let Part::ToolResult(result) = &message.parts[0] else { panic!("{message:?}") };
        assert_eq!(result.attachments, [image()]);
        assert_eq!(Value::Object(result.content.clone()), json!({ "attached": [words] }));
        let rest = [Part::Data(image()), Part::text(format!("[{words}]")), Part::json(json!(1))];
        assert_eq!(message.parts[1..], rest);
    }

    #[test]
    fn a_media_type_is_taken_by_its_name_or_by_its_kind() {
        let media_types = vec!["image/*".to_owned(), "application/pdf".to_owned()];
        let takes = ModelTakes { media_types, ..ModelTakes::default() };
        let accepted = |media_type: &str| takes.accepts(media_type);
        assert!(accepted("image/png") && accepted("image/webp") && accepted("application/pdf"));
        assert!(!accepted("application/zip") && !accepted("imagery/png") && !accepted(""));
        assert!(takes.honours("temperature") && !takes.honours("effort"));
    }
}
