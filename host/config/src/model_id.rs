//! Parses a model's name, `provider/model`, into a [`ModelId`].

use jaato_types::ModelId;

/// The provider of the embedded default model.
pub const DEFAULT_PROVIDER: &str = "local";

/// The embedded default model, by its name at its provider.
pub const DEFAULT_MODEL: &str = "qwen2.5-coder-1.5b";

/// A text that does not name a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{has}` is not a model: write `provider/model`, for example `{}`", default_model())]
pub struct BadModelId {
    has: String,
}

/// Parses `provider/model`, without white space. The model's own name may contain slashes
/// (`router/meta/llama-3`).
pub fn parse_model_id(text: &str) -> Result<ModelId, BadModelId> {
    let id = ModelId::new(text.trim());
    if id.split().is_some() && !id.as_str().contains(char::is_whitespace) {
        Ok(id)
    } else {
        Err(BadModelId { has: text.to_owned() })
    }
}

/// Parses `provider/model`, or a possible alias of the user for a model. Whether the alias exists,
/// only the whole configuration shows.
pub fn parse_model_name(text: &str) -> Option<ModelId> {
    let name = text.trim();
    let alias = is_alias(name).then(|| ModelId::new(name));
    parse_model_id(text).ok().or(alias)
}

/// Returns true if a name may be a user's alias for a model.
pub(crate) fn is_alias(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.chars().all(is_plain)
}

/// Returns the embedded default model.
pub(crate) fn default_model() -> ModelId {
    ModelId::new(format!("{DEFAULT_PROVIDER}/{DEFAULT_MODEL}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_slash_separates_provider_and_model() {
        let id = parse_model_id(" router/meta/llama-3 ").unwrap();
        assert_eq!(id.split(), Some(("router", "meta/llama-3")));
    }

    #[test]
    fn model_id_without_provider_or_model_is_refused() {
        for text in ["", "model", "/model", "provider/", "a b/c", "a/b c", "a/ "] {
            let error = parse_model_id(text).unwrap_err();
            let expected = format!(
                "`{text}` is not a model: write `provider/model`, for example \
                 `local/qwen2.5-coder-1.5b`"
            );
            assert_eq!(error.to_string(), expected);
        }
    }
}
