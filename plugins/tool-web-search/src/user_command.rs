//! The command `/web-search`: names the backend in use.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;

use crate::WebSearchState;
use crate::choose::{LAST_RESORT, WebSearchSettings, choose_backend};

/// The name of the command. `jaato doctor` runs it.
pub const NAME: &str = "web-search";

/// Describes the command.
pub fn search_command_spec() -> CommandSpec {
    CommandSpec {
        name: NAME.to_owned(),
        description: "Name the search service in use".to_owned(),
        parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        ..CommandSpec::default()
    }
}

/// Names the backend in use, and how to get a better one. One fact a line.
pub async fn describe_backend(cx: &Cx<WebSearchState>) -> Result<String> {
    let settings: WebSearchSettings = cx.config().await?;
    let chosen = match choose_backend(cx, &settings).await {
        Ok(chosen) => chosen,
        Err(error) => return Ok(error.message),
    };
    if chosen.name != LAST_RESORT {
        return Ok(chosen.backend.title);
    }
    let title = chosen.backend.title;
    Ok(format!(
        "{title}, without a key, which may block searches\n\
         for a better one set BRAVE_API_KEY, TAVILY_API_KEY or SEARXNG_URL"
    ))
}
