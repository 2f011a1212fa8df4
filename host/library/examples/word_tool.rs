//! A plugin file, for the test of workers.

use jaato_plugin_sdk::prelude::*;

/// Counts words.
#[tool_fn(read_only)]
pub async fn count_words(
    _cx: &Cx,
    /// The text.
    text: String,
) -> Result<Output> {
    Ok(Output::json(json!({ "words": text.split_whitespace().count() })))
}

export_plugin! { state: (), tools }
