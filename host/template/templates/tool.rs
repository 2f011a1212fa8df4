//! `template-name`: counts words in a text.
#![forbid(unsafe_code)]
use jaato_plugin_sdk::prelude::*;

/// Counts the words in a text.
#[derive(ToolInput)]
#[tool(
    core,
    read_only,
    idempotent,
    open_world = false,
    example("how many words has 'a b c'?", text = "a b c")
)]
struct TemplateName {
    /// Text to count. At most 1 MiB.
    #[schemars(extend("x-jaato-touches" = { "text": "words to count" }))]
    text: String,
}

impl Tool for TemplateName {
    type State = ();

    async fn call(self, _cx: &Cx) -> Result<Output> {
        Ok(Output::json(json!({ "words": count_words(&self.text) })))
    }
}

tool!(TemplateName);
export_plugin! { state: (), tools }

/// Domain code knows nothing of plugins, so it is tested without one.
fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_separated_by_whitespace() {
        assert_eq!(count_words(" a  b\nc "), 3);
        assert_eq!(count_words(""), 0);
    }
}
