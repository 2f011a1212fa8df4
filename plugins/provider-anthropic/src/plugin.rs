//! The provider, which connects the host's services to the pure mapping.

use std::collections::HashSet;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_provider::exchange::{
    ExpectedResponse, WHOLE_BYTES_MAX, is_success, receive_answer, start_completion_request,
};
use jaato_plugin_sdk_provider::failure;
use jaato_plugin_sdk_provider::shown::{IMAGES, PDF, fetch_blobs};

use crate::exchange::{refusal_error, send_with_credentials};
use crate::models::{PAGE_MODELS, PAGES_MAX};
use crate::reply::AnthropicReply;
use crate::state::{AnthropicState, Config};
use crate::{content, count, endpoint, models, request, settings};

/// The time limit for a list of models, because a user waits for it.
const LIST_WAIT: Duration = Duration::from_secs(10);

/// The time limit for a count, because a plugin's call waits for it.
const COUNT_WAIT: Duration = Duration::from_secs(10);

/// The provider `anthropic`.
pub struct AnthropicProvider;

impl Provider for AnthropicProvider {
    type State = AnthropicState;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: content::PROVIDER.to_owned(),
            title: "Claude models of Anthropic, and servers that speak as Anthropic's".to_owned(),
            options: settings::NAMES.map(str::to_owned).to_vec(),
            accepts: IMAGES.into_iter().chain([PDF]).map(str::to_owned).collect(),
            media_limits: content::media_limits(),
            default_model: "claude-sonnet-5".to_owned(),
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<AnthropicState>, request: CompletionRequest) -> Result<Completion> {
        let base = cx.config::<Config>().await?.base_url;
        let url = endpoint::join_api_path(&base, "messages");
        let blobs = fetch_blobs(cx, content::wanted_blobs(&request)).await?;
        let wanted = ExpectedResponse::from_request(&request);
        // Writing a long history would block the executor for too long.
        let written = cx.blocking(move |_| request::write_request(&request, &blobs)).await??;
        let make = || start_completion_request(cx, &url, &wanted).body(written.body.as_slice());
        let sent = send_with_credentials(cx, &base, &written.betas, make).await;
        let response = sent.map_err(failure::exchange_error)?;
        if !is_success(&response) {
            return Err(refusal_error(cx, &base, &url, response).await);
        }
        receive_answer(cx, &url, response, AnthropicReply::new(&url)).await
    }

    async fn count_tokens(cx: &Cx<AnthropicState>, request: CompletionRequest) -> Result<u64> {
        let base = cx.config::<Config>().await?.base_url;
        let url = endpoint::join_api_path(&base, "messages/count_tokens");
        let blobs = fetch_blobs(cx, content::wanted_blobs(&request)).await?;
        let written = cx.blocking(move |_| count::write_count_request(&request, &blobs)).await??;
        let make = || {
            let request = cx.http("POST", url.as_str()).timeout(COUNT_WAIT);
            request.header("content-type", "application/json").body(written.body.as_slice())
        };
        let response = send_with_credentials(cx, &base, &written.betas, make).await;
        let response = response.map_err(failure::exchange_error)?;
        if !is_success(&response) {
            return Err(refusal_error(cx, &base, &url, response).await);
        }
        let body = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::exchange_error)?;
        count::parse_token_count(&url, &body)
    }

    async fn models(cx: &Cx<AnthropicState>) -> Result<Vec<ModelInfo>> {
        let base = cx.config::<Config>().await?.base_url;
        let mut infos: Vec<ModelInfo> = Vec::new();
        let mut known = HashSet::new();
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let page = request_model_page(cx, &base, after.as_deref()).await?;
            let before = infos.len();
            infos.extend(page.infos.into_iter().filter(|info| known.insert(info.name.clone())));
            let has_new = infos.len() > before;
            after = page.after.filter(|_| has_new);
            if after.is_none() {
                break;
            }
        }
        Ok(infos)
    }
}

/// Requests a page of the list of models.
async fn request_model_page(
    cx: &Cx<AnthropicState>,
    base: &str,
    after: Option<&str>,
) -> Result<models::AnthropicModelPage> {
    let mut url = endpoint::join_api_path(base, "models");
    url.push_str(if url.contains('?') { "&" } else { "?" });
    url.push_str(&format!("limit={PAGE_MODELS}"));
    if let Some(after) = after {
        url.push_str(&format!("&after_id={}", endpoint::encode_query_value(after)));
    }
    let make = || cx.http("GET", url.as_str()).timeout(LIST_WAIT);
    let response = match send_with_credentials(cx, base, &[], make).await {
        // The user has not set up this provider. The host reports that only to users who want to
        // use it.
        Err(error) if error.kind == ErrorKind::NotFound => return Err(error),
        sent => sent.map_err(failure::exchange_error)?,
    };
    if !is_success(&response) {
        return Err(refusal_error(cx, base, &url, response).await);
    }
    let body = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::exchange_error)?;
    models::parse_model_page(&url, &body)
}
