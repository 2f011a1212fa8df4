//! Reads the server's list of models, page by page. Pure.

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::ModelInfo;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::failure;
use jaato_plugin_sdk_provider::shown::PDF;

use crate::content::IMAGES;
use crate::facts::{self, GoogleMediaSupport};
use crate::refusal::CHECK_URL;

/// Models per page. The vendor allows no more.
pub(crate) const PAGE_MODELS: usize = 1000;

/// The maximum number of pages to read. The vendor has one or two, so a server with more pages than
/// this may never stop.
pub(crate) const PAGES_MAX: usize = 16;

/// The method with which a model answers.
const GENERATES: &str = "generateContent";

/// A page of the list.
#[derive(Debug, Default, PartialEq)]
pub struct GoogleModelPage {
    /// The models for conversations, in the server's order.
    pub infos: Vec<ModelInfo>,
    /// The name of the next page, if there is one.
    pub next: Option<String>,
}

/// Reads the body of a list: AI Studio's `models`, or Vertex AI's `publisherModels`.
///
/// # Errors
/// `provider` if the body is not a list of models.
pub fn parse_model_page(url: &str, body: &[u8]) -> Result<GoogleModelPage> {
    let wrong = || {
        let text =
            format!("`{}` did not answer with a list of models", failure::url_for_errors(url));
        Error::new(ErrorKind::Provider, text).with_hint(CHECK_URL)
    };
    let list: Value = serde_json::from_slice(body).map_err(|_| wrong())?;
    let lists = ["models", "publisherModels"].map(|key| list.get(key));
    let models = match lists.into_iter().flatten().next() {
        Some(Value::Array(models)) => models.as_slice(),
        Some(_) => return Err(wrong()),
        // The vendor omits empty fields.
        None if list.as_object().is_some_and(|list| list.is_empty()) => &[],
        None if list["nextPageToken"].is_string() => &[],
        None => return Err(wrong()),
    };
    if !models.is_empty() && !models.iter().any(|model| model["name"].is_string()) {
        return Err(wrong());
    }
    let next = list["nextPageToken"].as_str().filter(|next| !next.is_empty());
    let infos = models.iter().filter_map(parse_model_info).collect();
    Ok(GoogleModelPage { infos, next: next.map(str::to_owned) })
}

/// Reads a model. Returns `None` for a model that is not for conversations.
fn parse_model_info(model: &Value) -> Option<ModelInfo> {
    let path = model["name"].as_str()?;
    let place = ["models/", "publishers/google/models/"];
    let name = place.iter().find_map(|place| path.strip_prefix(place)).unwrap_or(path);
    let answers = match model["supportedGenerationMethods"].as_array() {
        Some(methods) => methods.iter().any(|method| method == GENERATES),
        None => facts::is_conversation_model(name),
    };
    if name.is_empty() || !answers {
        return None;
    }
    let facts = facts::facts_of_model(name);
    let told = model["inputTokenLimit"].as_u64().filter(|tokens| *tokens > 0);
    Some(ModelInfo {
        name: name.to_owned(),
        title: model["displayName"].as_str().unwrap_or_default().to_owned(),
        context_limit: told.or(facts.context_limit),
        accepts: Some(accepted_media(facts.sees)),
        ..ModelInfo::default()
    })
}

/// Returns the media that a model accepts, which the list does not contain.
pub(crate) fn accepted_media(sight: GoogleMediaSupport) -> Vec<String> {
    let images = IMAGES.into_iter().filter(|_| sight != GoogleMediaSupport::Nothing);
    let files = [PDF].into_iter().filter(|_| sight == GoogleMediaSupport::ImagesAndFiles);
    images.chain(files).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    fn parse_page(body: &Value) -> GoogleModelPage {
        parse_model_page("http://h/v1beta/models", body.to_string().as_bytes()).unwrap()
    }

    fn listed_facts(page: &GoogleModelPage) -> Vec<(&str, &str, Option<u64>, usize)> {
        let infos = page.infos.iter();
        let seen = |info: &ModelInfo| info.accepts.as_ref().map_or(0, Vec::len);
        infos.map(|it| (it.name.as_str(), it.title.as_str(), it.context_limit, seen(it))).collect()
    }

    #[test]
    fn ai_studio_list_reports_context_windows_and_only_chat_models() {
        let of = |name: &str, method: &str| {
            json!({ "name": name, "displayName": "D", "inputTokenLimit": 5_000,
                "supportedGenerationMethods": ["countTokens", method] })
        };
        let page = parse_page(&json!({ "nextPageToken": "n", "models": [
            of("models/gemini-4-argon", "generateContent"),
            of("models/gemini-embedding-001", "embedContent"),
            of("models/gemma-3-27b-it", "generateContent"),
            of("tunedModels/mine", "generateContent"),
            { "displayName": "nameless" },
        ] }));
        assert_eq!(
            listed_facts(&page),
            [
                ("gemini-4-argon", "D", Some(5_000), 6),
                ("gemma-3-27b-it", "D", Some(5_000), 5),
                ("tunedModels/mine", "D", Some(5_000), 6),
            ]
        );
        assert_eq!(page.next.as_deref(), Some("n"));
    }

    #[test]
    fn vertex_list_has_only_model_names() {
        let page = parse_page(&json!({ "publisherModels": [
            { "name": "publishers/google/models/gemini-2.5-flash", "versionId": "001" },
            { "name": "publishers/google/models/imagen-4.0-generate-001" },
            { "name": "publishers/google/models/gemini-live-2.5-flash" },
        ] }));
        assert_eq!(listed_facts(&page), [("gemini-2.5-flash", "", Some(1_048_576), 6)]);
        assert_eq!(page.next, None);
    }

    #[test]
    fn last_page_may_be_empty_but_invalid_lists_are_errors() {
        assert_eq!(parse_page(&json!({})), GoogleModelPage::default());
        assert_eq!(
            parse_page(&json!({ "models": [], "nextPageToken": "" })),
            GoogleModelPage::default()
        );
        for body in ["", "<html>", "[]", r#"{"models":1}"#, r#"{"models":[{"x":1}]}"#, r#"{"a":1}"#]
        {
            let error =
                parse_model_page("http://u:p@h/v1beta/models?x=9", body.as_bytes()).unwrap_err();
            let text = "`http://…@h/v1beta/models?…` did not answer with a list of models";
            assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Provider, text), "{body}");
        }
    }
}
