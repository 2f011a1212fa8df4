//! The provider itself: between the host's services and the pure mapping.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk_provider::exchange::{WHOLE_BYTES_MAX, Wanted, config, is_success, receive};
use jaato_plugin_sdk_provider::failure;
use jaato_plugin_sdk_provider::shown::{IMAGES, fetch_blobs};

use crate::exchange::{refused, send};
use crate::reply::Reply;
use crate::request;
use crate::state::{Config, KEY, OpenAi};
use crate::{content, endpoint, models, options, sight, window};

/// Wait for a list of models, for which a person sits and waits.
const LIST_WAIT: Duration = Duration::from_secs(10);

/// The provider `openai`.
pub struct OpenAiProvider;

impl Provider for OpenAiProvider {
    type State = OpenAi;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "openai".to_owned(),
            title: "OpenAI, Ollama, llama.cpp, vLLM, LM Studio and servers that speak as they do"
                .to_owned(),
            options: options::NAMES.map(str::to_owned).to_vec(),
            accepts: IMAGES.map(str::to_owned).to_vec(),
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<OpenAi>, request: Request) -> Result<Completion> {
        let base = config::<Config>(cx).await?.base_url;
        let url = endpoint::below(&base, "chat/completions");
        let dialect = endpoint::dialect(&base);
        let wanted = Wanted::of(&request);
        let blobs = fetch_blobs(cx, content::wanted(&request)).await?;
        let mut habits = cx.state().habits_of(&url, &request.model);
        loop {
            let body = request::body(&request, dialect, habits, &blobs)?;
            let response = send(cx, &url, wanted, body).await?;
            if is_success(&response) {
                return receive(cx, &url, response, Reply::new(&url)).await;
            }
            let refused = refused(cx, &url, response).await;
            let other = refused.wish.and_then(|wish| habits.follow(wish, &request));
            habits = other.ok_or(refused.error)?;
            // The same words in another way: no second attempt, as nothing was attempted yet.
            cx.state().remember(&url, &request.model, habits);
        }
    }

    async fn models(cx: &Cx<OpenAi>) -> Result<Vec<ModelInfo>> {
        let base = config::<Config>(cx).await?.base_url;
        let url = endpoint::below(&base, "models");
        let sent = cx.http("GET", url.as_str()).credential(KEY).timeout(LIST_WAIT);
        let response = match sent.send().await {
            // Nobody has set it up, which the host tells only those who want to use it.
            Err(error) if error.kind == ErrorKind::NotFound => return Err(error),
            sent => sent.map_err(failure::of_exchange)?,
        };
        if !is_success(&response) {
            return Err(refused(cx, &url, response).await.error);
        }
        let body = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::of_exchange)?;
        let mut infos = models::read(&url, &body)?;
        window::add_known(&mut infos, endpoint::is_vendors(&base));
        sight::add_known(&mut infos, endpoint::is_vendors(&base));
        add_window_in_use(cx, &base, &mut infos).await;
        Ok(infos)
    }
}

/// Asks a server of one's own for the window of the session's model where its list does not tell
/// it. What it does not answer is not known: nothing fails for it.
async fn add_window_in_use(cx: &Cx<OpenAi>, base: &str, infos: &mut [ModelInfo]) {
    let facts = cx.session().await.ok().and_then(|session| session.context);
    let Some(model) = facts.map(|facts| facts.model) else { return };
    let Some((_, model)) = model.split_once('/') else { return };
    let is_it = |info: &&mut ModelInfo| window::is_same_model(&info.name, model);
    let Some(info) = infos.iter_mut().find(is_it).filter(|info| info.context_limit.is_none())
    else {
        return;
    };
    for question in window::QUESTIONS {
        let Some(url) = endpoint::at_root(base, question.path) else { return };
        let method = if question.names_model { "POST" } else { "GET" };
        let mut sent = cx.http(method, url.as_str()).credential(KEY).timeout(LIST_WAIT);
        if question.names_model {
            let body = json!({ "model": model }).to_string();
            sent = sent.header("content-type", "application/json").body(body.into_bytes());
        }
        let Ok(response) = sent.send().await else { return };
        if !is_success(&response) {
            continue;
        }
        let Ok(body) = response.bytes(WHOLE_BYTES_MAX).await else { return };
        let answer = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if let Some(tokens) = (question.read)(&answer, model) {
            info.context_limit = Some(tokens);
            return;
        }
    }
}
