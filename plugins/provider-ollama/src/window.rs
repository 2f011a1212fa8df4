//! Chooses a model's context size. Pure.

use crate::facts::OllamaModelFacts;

/// The largest context to choose by default. It is enough for an agent with tools and files, and
/// needs about 4 GiB next to a model with eight billion parameters. The server's own default is
/// 4,096 on most machines, which the tools alone may fill.
pub const TOKENS_BY_DEFAULT: u64 = 32_768;

/// Chooses the context size. `asked` is the user's setting. `loaded` is the size with which the
/// server has already loaded the model.
///
/// A larger loaded context is used, because another size makes the server load the model again. The
/// server would silently reduce a size above the model's window, so this function reduces it.
pub fn choose_context_size(
    asked: Option<u32>,
    facts: &OllamaModelFacts,
    loaded: Option<u64>,
) -> u64 {
    let within = |tokens: u64| facts.window.map_or(tokens, |window| tokens.min(window));
    match asked.map(u64::from).or(facts.own_context) {
        Some(tokens) => within(tokens),
        // A remote model needs no memory on the user's machine.
        None if facts.is_remote => facts.window.unwrap_or(TOKENS_BY_DEFAULT),
        None => within(TOKENS_BY_DEFAULT).max(loaded.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model_facts(window: Option<u64>, own_context: Option<u64>) -> OllamaModelFacts {
        OllamaModelFacts { window, own_context, ..OllamaModelFacts::default() }
    }

    #[test]
    fn user_setting_overrides_modelfile_and_window_as_context_size() {
        let large = model_facts(Some(262_144), None);
        assert_eq!(choose_context_size(Some(65_536), &large, None), 65_536);
        assert_eq!(
            choose_context_size(Some(4_096), &model_facts(Some(262_144), Some(8_192)), Some(9_999)),
            4_096
        );
        assert_eq!(
            choose_context_size(None, &model_facts(Some(262_144), Some(8_192)), Some(9_999)),
            8_192
        );
        assert_eq!(choose_context_size(None, &large, None), TOKENS_BY_DEFAULT);
        assert_eq!(choose_context_size(None, &model_facts(Some(2_048), None), None), 2_048);
        assert_eq!(
            choose_context_size(None, &OllamaModelFacts::default(), None),
            TOKENS_BY_DEFAULT
        );
    }

    #[test]
    fn context_size_fits_the_window_and_keeps_larger_loaded_size() {
        assert_eq!(choose_context_size(Some(65_536), &model_facts(Some(2_048), None), None), 2_048);
        assert_eq!(choose_context_size(None, &model_facts(Some(2_048), Some(4_096)), None), 2_048);
        assert_eq!(
            choose_context_size(None, &model_facts(Some(131_072), None), Some(65_536)),
            65_536
        );
        assert_eq!(
            choose_context_size(None, &model_facts(Some(131_072), None), Some(4_096)),
            TOKENS_BY_DEFAULT
        );
    }

    #[test]
    fn cloud_model_gets_its_whole_context_window() {
        let facts = OllamaModelFacts { is_remote: true, ..model_facts(Some(262_144), None) };
        assert_eq!(choose_context_size(None, &facts, None), 262_144);
        assert_eq!(choose_context_size(Some(4_096), &facts, None), 4_096);
    }
}
