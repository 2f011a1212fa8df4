//! The provider itself: between the host's services and the shared mapping.

use std::sync::Arc;

use jaato_plugin_sdk::HttpResponse;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_provider::exchange::{self, is_success, receive};
use jaato_plugin_sdk_provider::shown::{IMAGES, fetch_blobs};
use jaato_plugin_sdk_provider::{chat, failure};

use crate::config::{Config, GitHub, TOKEN};
use crate::refusal::{CHECK_ENDPOINT, Limits, explained, of_exchange};
use crate::{endpoint, models};

/// The version of GitHub's API that is asked for.
const VERSION: &str = "2022-11-28";

/// What is accepted: GitHub's own form beside those of any server.
const ACCEPT: &str = "application/vnd.github+json, application/json, text/event-stream";

/// The provider `github-models`.
pub struct GitHubModelsProvider;

impl Provider for GitHubModelsProvider {
    type State = GitHub;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "github-models".to_owned(),
            title: "GitHub Models, which was retired in July 2026, and servers in its place"
                .to_owned(),
            options: models::OPTIONS.map(str::to_owned).to_vec(),
            accepts: IMAGES.map(str::to_owned).to_vec(),
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<GitHub>, request: Request) -> Result<Completion> {
        let config = cx.config::<Config>().await?;
        let endpoint = endpoint::of_config(&config)?;
        if !endpoint.is_attributed {
            let text = "the endpoint has a path of its own: requests are attributed to nobody";
            cx.log(Level::Warn, text);
        }
        let url = endpoint.url;
        let quirks = models::quirks(&request.model);
        let blobs = fetch_blobs(cx, chat::wanted_blobs(&request)).await?;
        let asked = Arc::new((request, blobs));
        let mut habits = quirks.habits;
        loop {
            // A long history takes longer to write than the executor may be held up.
            let written = Arc::clone(&asked);
            let write = move |_: &Reporter| chat::body(&written.0, quirks, habits, &written.1);
            let body = cx.blocking(write).await??;
            let sent = exchange::post_accepting(cx, &url, &exchange::Wanted::of(&asked.0), ACCEPT)
                .header("x-github-api-version", VERSION)
                .credential(TOKEN)
                .body(body);
            let sent = sent.send().await.map_err(|error| of_exchange(&url, error));
            let response = sent.map_err(failure::of_exchange)?;
            if is_success(&response) {
                let answer = receive(cx, &url, response, chat::Reply::new(&url)).await;
                return answer.map_err(with_own_hint);
            }
            let (error, wish) = refused(cx, &config, &url, response).await;
            habits = wish.and_then(|wish| habits.follow(wish, &asked.0)).ok_or(error)?;
        }
    }
}

/// Reads what a server says about an answer that is no success, what to do about it, and what the
/// server wants differently.
async fn refused(
    cx: &Cx<GitHub>,
    config: &Config,
    url: &str,
    response: HttpResponse,
) -> (Error, Option<chat::Wish>) {
    let limits = Limits::of(|name| response.header(name));
    let refusal = exchange::refusal(cx, url, response).await;
    let (status, body) = (refusal.status, &refusal.body);
    let wish = chat::wish(status, body);
    (explained(refusal.error, status, body, refusal.had_key, &limits, config), wish)
}

/// The shared mapping tells of base urls.
fn with_own_hint(error: Error) -> Error {
    let is_shared = error.hint.as_deref() == Some(chat::CHECK_URL);
    if is_shared { error.with_hint(CHECK_ENDPOINT) } else { error }
}
