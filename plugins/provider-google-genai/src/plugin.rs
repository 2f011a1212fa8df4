//! The provider, which connects the host's services to the pure mapping.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_provider::exchange::{
    ExpectedResponse, WHOLE_BYTES_MAX, is_success, receive_answer, start_completion_request,
};
use jaato_plugin_sdk_provider::failure;
use jaato_plugin_sdk_provider::shown::{fetch_blobs, media_limits};

use crate::config::Config;
use crate::endpoint::GoogleEndpoint;
use crate::exchange::{refusal_error, send_with_credentials};
use crate::facts::GoogleMediaSupport;
use crate::models::{PAGE_MODELS, PAGES_MAX};
use crate::reply::GoogleReply;
use crate::state::GoogleState;
use crate::{content, count, models, request, settings};

/// The time limit for a list of models, because a user waits for it.
const LIST_WAIT: Duration = Duration::from_secs(10);

/// The time limit for a count, because a plugin's call waits for it.
const COUNT_WAIT: Duration = Duration::from_secs(10);

/// The provider `google`.
pub struct GoogleProvider;

impl Provider for GoogleProvider {
    type State = GoogleState;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: content::PROVIDER.to_owned(),
            title: "Gemini models of Google, at AI Studio or Vertex AI".to_owned(),
            options: settings::NAMES.map(str::to_owned).to_vec(),
            accepts: models::accepted_media(GoogleMediaSupport::ImagesAndFiles),
            media_limits: media_limits(content::BLOB_BYTES_MAX),
            default_model: "gemini-3.5-flash".to_owned(),
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<GoogleState>, request: CompletionRequest) -> Result<Completion> {
        let endpoint = GoogleEndpoint::from_config(&cx.config::<Config>().await?)?;
        let wanted = ExpectedResponse::from_request(&request);
        let url = endpoint.generation_url(&request.model, wanted.streams())?;
        let blobs = fetch_blobs(cx, content::wanted_blobs(&request)).await?;
        let asked = Arc::new((request, endpoint, blobs));
        let (request, endpoint, _) = &*asked;
        let mut habits = cx.state().request_style(&url);
        loop {
            // Writing a long history would block the executor for too long.
            let written = Arc::clone(&asked);
            let write = move |_: &Reporter| {
                request::write_request_body(&written.0, &written.1, habits, &written.2)
            };
            let body = cx.blocking(write).await??;
            let make = || start_completion_request(cx, &url, &wanted).body(body.as_slice());
            let sent = send_with_credentials(cx, &endpoint.backend, make).await;
            let response = sent.map_err(failure::exchange_error)?;
            if is_success(&response) {
                return receive_answer(cx, &url, response, GoogleReply::new(&url, &request.tools))
                    .await;
            }
            let refused = refusal_error(cx, &endpoint.backend, &url, response).await;
            let other = refused.wish.and_then(|wish| habits.adapt_to_refusal(wish, request));
            habits = other.ok_or(refused.error)?;
            // The server has not processed the request yet, so this is not a retry.
            cx.state().remember_style(&url, habits);
        }
    }

    async fn count_tokens(cx: &Cx<GoogleState>, request: CompletionRequest) -> Result<u64> {
        let endpoint = GoogleEndpoint::from_config(&cx.config::<Config>().await?)?;
        let url = endpoint.token_count_url(&request.model)?;
        let blobs = fetch_blobs(cx, content::wanted_blobs(&request)).await?;
        let habits = cx.state().request_style(&endpoint.generation_url(&request.model, true)?);
        let backend = endpoint.backend.clone();
        let write =
            move |_: &Reporter| count::count_request_body(&request, &endpoint, habits, &blobs);
        let body = cx.blocking(write).await??;
        let make = || {
            let request = cx.http("POST", url.as_str()).timeout(COUNT_WAIT);
            request.header("content-type", "application/json").body(body.as_slice())
        };
        let response =
            send_with_credentials(cx, &backend, make).await.map_err(failure::exchange_error)?;
        if !is_success(&response) {
            return Err(refusal_error(cx, &backend, &url, response).await.error);
        }
        let body = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::exchange_error)?;
        count::parse_token_count(&url, &body)
    }

    async fn models(cx: &Cx<GoogleState>) -> Result<Vec<ModelInfo>> {
        let endpoint = GoogleEndpoint::from_config(&cx.config::<Config>().await?)?;
        let mut infos: Vec<ModelInfo> = Vec::new();
        let mut known = HashSet::new();
        let mut next = String::new();
        for _ in 0..PAGES_MAX {
            let page = request_model_page(cx, &endpoint, &next).await?;
            let before = infos.len();
            infos.extend(page.infos.into_iter().filter(|info| known.insert(info.name.clone())));
            let has_new = infos.len() > before;
            // A page may contain no models for conversations and still have a successor.
            match page.next.filter(|other| has_new || *other != next) {
                Some(other) => next = other,
                None => break,
            }
        }
        Ok(infos)
    }
}

/// Requests a page of the list of models.
async fn request_model_page(
    cx: &Cx<GoogleState>,
    endpoint: &GoogleEndpoint,
    next: &str,
) -> Result<models::GoogleModelPage> {
    let url = endpoint.model_list_url(next, PAGE_MODELS);
    let make = || cx.http("GET", url.as_str()).timeout(LIST_WAIT);
    let response = match send_with_credentials(cx, &endpoint.backend, make).await {
        // The user has not set up this provider. The host reports that only to users who want to
        // use it.
        Err(error) if error.kind == ErrorKind::NotFound => return Err(error),
        sent => sent.map_err(failure::exchange_error)?,
    };
    if !is_success(&response) {
        return Err(refusal_error(cx, &endpoint.backend, &url, response).await.error);
    }
    let body = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::exchange_error)?;
    models::parse_model_page(&url, &body)
}
