//! What the model's provider takes beside text.

use jaato_types::ProviderSpec;

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

#[cfg(test)]
mod tests {
    use super::*;

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
