//! Reads the server's list of models, page by page. Pure.

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::ModelInfo;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::failure;
use jaato_plugin_sdk_provider::shown::{IMAGES, PDF};

use crate::facts::{self, AnthropicMediaSupport};
use crate::refusal::CHECK_URL;

/// Models per page. The vendor allows no more.
pub(crate) const PAGE_MODELS: usize = 1000;

/// The maximum number of pages to read. The vendor has one, so a server with more pages than this
/// may never stop.
pub(crate) const PAGES_MAX: usize = 16;

/// A page of the list.
#[derive(Debug, Default, PartialEq)]
pub struct AnthropicModelPage {
    /// The models in the server's order, newest first.
    pub infos: Vec<ModelInfo>,
    /// The model after which the next page begins, if there is one.
    pub after: Option<String>,
}

/// Reads the body of `GET /v1/models`.
///
/// # Errors
/// `provider` if the body is not a list of models.
pub fn parse_model_page(url: &str, body: &[u8]) -> Result<AnthropicModelPage> {
    let wrong = || {
        let text =
            format!("`{}` did not answer with a list of models", failure::url_for_errors(url));
        Error::new(ErrorKind::Provider, text).with_hint(CHECK_URL)
    };
    let list: Value = serde_json::from_slice(body).map_err(|_| wrong())?;
    let models = list["data"].as_array().ok_or_else(wrong)?;
    let infos: Vec<ModelInfo> = models.iter().filter_map(parse_model_info).collect();
    if infos.is_empty() && !models.is_empty() {
        return Err(wrong());
    }
    let has_more = list["has_more"] == true;
    let after = list["last_id"].as_str().filter(|id| has_more && !id.is_empty());
    Ok(AnthropicModelPage { infos, after: after.map(str::to_owned) })
}

fn parse_model_info(model: &Value) -> Option<ModelInfo> {
    let name = model["id"].as_str().filter(|name| !name.is_empty())?;
    let known = facts::facts_of_model(name);
    let told = model["max_input_tokens"].as_u64().filter(|tokens| *tokens > 0);
    Some(ModelInfo {
        name: name.to_owned(),
        title: model["display_name"].as_str().unwrap_or_default().to_owned(),
        context_limit: told.or(known.context_limit),
        accepts: accepted_media(&model["capabilities"], known.sees),
        ..ModelInfo::default()
    })
}

/// Returns the media that a model accepts: from the list, or else from the known facts.
fn accepted_media(told: &Value, known: Option<AnthropicMediaSupport>) -> Option<Vec<String>> {
    let tells = |key: &str| told[key]["supported"].as_bool();
    let images = tells("image_input").or(known.map(|_| true))?;
    let files = tells("pdf_input").unwrap_or(known == Some(AnthropicMediaSupport::ImagesAndFiles));
    let images = IMAGES.into_iter().filter(|_| images);
    Some(images.chain([PDF].into_iter().filter(|_| files)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    fn parse_page(body: &Value) -> AnthropicModelPage {
        parse_model_page("http://h/v1/models", body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn model_list_overrides_known_facts() {
        let supported = |yes: bool| json!({ "supported": yes });
        let page = parse_page(&json!({ "has_more": true, "last_id": "kimi", "data": [
            { "id": "claude-opus-5-5", "display_name": "Claude Opus 5.5", "max_input_tokens": 500_000,
              "capabilities": { "image_input": supported(true), "pdf_input": supported(false) } },
            { "id": "claude-haiku-4-5-20251001" },
            { "id": "claude-3-opus-20240229" },
            { "id": "kimi", "max_input_tokens": 0 },
            { "id": "" },
        ] }));
        let facts: Vec<_> = page
            .infos
            .iter()
            .map(|it| (it.name.as_str(), it.title.as_str(), it.context_limit, it.accepts.as_ref()))
            .map(|(name, title, limit, accepts)| (name, title, limit, accepts.map(Vec::len)))
            .collect();
        assert_eq!(
            facts,
            [
                ("claude-opus-5-5", "Claude Opus 5.5", Some(500_000), Some(4)),
                ("claude-haiku-4-5-20251001", "", Some(200_000), Some(5)),
                ("claude-3-opus-20240229", "", Some(200_000), Some(4)),
                ("kimi", "", None, None),
            ]
        );
        assert_eq!(page.after.as_deref(), Some("kimi"));
    }

    #[test]
    fn last_page_has_no_successor_and_invalid_lists_are_errors() {
        let end = json!({ "data": [], "has_more": false, "last_id": "x" });
        assert_eq!(parse_page(&end), AnthropicModelPage::default());
        assert_eq!(
            parse_page(&json!({ "data": [], "has_more": true })),
            AnthropicModelPage::default()
        );
        for body in ["", "<html>", "[]", r#"{"data":1}"#, r#"{"data":[{"x":1}]}"#] {
            let error =
                parse_model_page("http://u:p@h/v1/models?limit=9", body.as_bytes()).unwrap_err();
            let text = "`http://…@h/v1/models?…` did not answer with a list of models";
            assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Provider, text), "{body}");
        }
    }
}
