//! Plugin `provider-github-models`: chat completions in the API of GitHub Models.
//!
//! GitHub retired the service on 2026-07-30, and answers each request with one line that reports
//! it. The plugin remains for a replacement server, which `JAATO_GITHUB_ENDPOINT` names.
//!
//! The mapping comes from `jaato-plugin-sdk-provider`. `endpoint` finds the URL, and `refusal` adds
//! hints to errors. Both are pure. The host owns the connection and the token.
#![forbid(unsafe_code)]

mod endpoint;
mod refusal;

use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::CredentialSpec;
use jaato_plugin_sdk_provider::chat::{
    CallIdFormat, ChatRequestStyle, ChatServerQuirks, ReasoningReplay, is_in_model_family,
};
use jaato_plugin_sdk_provider::exchange::{self, ExpectedResponse, is_success, receive_answer};
use jaato_plugin_sdk_provider::shown::{IMAGES, fetch_blobs, media_limits};
use jaato_plugin_sdk_provider::{chat, failure};

use endpoint::GitHubEndpoint;
use refusal::RefusedAnswer;

/// The variable that holds the token.
const TOKEN: &str = "GITHUB_TOKEN";

/// The variable that names another server.
const ENDPOINT: &str = "JAATO_GITHUB_ENDPOINT";

/// The version of GitHub's API.
const VERSION: &str = "2022-11-28";

/// GitHub's own media type, and those of any server.
const ACCEPT: &str = "application/vnd.github+json, application/json, text/event-stream";

/// Options of chat completions that these servers do not support.
const UNKNOWN_OPTIONS: [&str; 2] = ["session_key", "service_tier"];

/// OpenAI's reasoning models, which refuse `max_tokens`.
const REASONING: [&str; 5] =
    ["openai/o1", "openai/o3", "openai/o4", "openai/gpt-5", "openai/gpt-6"];

const OPENAI: ChatServerQuirks = ChatServerQuirks {
    max_tokens_field: "max_completion_tokens",
    call_ids: CallIdFormat::Plain(40),
    ..ChatServerQuirks::COMMON
};

const MISTRAL: ChatServerQuirks = ChatServerQuirks {
    call_ids: CallIdFormat::Short(9),
    habits: ChatRequestStyle { reasoning: ReasoningReplay::Nowhere, ..ChatRequestStyle::COMMON },
    ..ChatServerQuirks::COMMON
};

/// `[plugins.provider-github-models]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
struct Config {
    /// The server's base URL, including `/inference`. `JAATO_GITHUB_ENDPOINT` overrides it.
    #[schemars(extend("x-jaato-workspace" = true))]
    base_url: String,
    /// The organization to which requests are attributed: it pays, and its policy applies.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_GITHUB_ORGANIZATION"]
    ))]
    organization: String,
    /// The enterprise of the organization, which errors name: its policy applies too.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_GITHUB_ENTERPRISE"]
    ))]
    enterprise: String,
}

impl Default for Config {
    fn default() -> Self {
        let base_url = format!("{}/inference", endpoint::ORIGIN);
        Self { base_url, organization: String::new(), enterprise: String::new() }
    }
}

/// The plugin's state, which is empty.
#[derive(Debug, Default)]
struct GitHubModelsState;

impl State for GitHubModelsState {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.credentials = vec![CredentialSpec {
            variable: TOKEN.to_owned(),
            scheme: "bearer".to_owned(),
            origin: endpoint::ORIGIN.to_owned(),
            base_url_variable: ENDPOINT.to_owned(),
            ..CredentialSpec::default()
        }];
    }
}

/// The provider `github-models`.
struct GitHubModelsProvider;

impl Provider for GitHubModelsProvider {
    type State = GitHubModelsState;

    fn spec() -> ProviderSpec {
        let options = chat::OPTIONS.iter().filter(|option| !UNKNOWN_OPTIONS.contains(option));
        ProviderSpec {
            name: "github-models".to_owned(),
            title: "GitHub Models, which was retired in July 2026, and servers in its place"
                .to_owned(),
            options: options.map(|option| (*option).to_owned()).collect(),
            accepts: IMAGES.map(str::to_owned).to_vec(),
            media_limits: media_limits(chat::BLOB_BYTES_MAX),
            ..ProviderSpec::default()
        }
    }

    async fn complete(
        cx: &Cx<GitHubModelsState>,
        request: CompletionRequest,
    ) -> Result<Completion> {
        let config = cx.config::<Config>().await?;
        let GitHubEndpoint { url, is_attributed } = endpoint::from_config(&config)?;
        if !is_attributed {
            let text = "the endpoint has its own path, so requests are not attributed to the \
                        organization";
            cx.log(LogLevel::Warn, text);
        }
        let quirks = model_quirks(&request.model);
        let blobs = fetch_blobs(cx, chat::wanted_blobs(&request)).await?;
        let asked = Arc::new((request, blobs));
        let mut habits = quirks.habits;
        loop {
            // Writing a long history would block the executor for too long.
            let written = Arc::clone(&asked);
            let write =
                move |_: &Reporter| chat::request_body(&written.0, quirks, habits, &written.1);
            let body = cx.blocking(write).await??;
            let sent = exchange::post_accepting(
                cx,
                &url,
                &ExpectedResponse::from_request(&asked.0),
                ACCEPT,
            )
            .header("x-github-api-version", VERSION)
            .credential(TOKEN)
            .body(body);
            let sent = sent.send().await.map_err(|error| refusal::exchange_error(&url, error));
            let response = sent.map_err(failure::exchange_error)?;
            if is_success(&response) {
                let answer = receive_answer(cx, &url, response, chat::ChatReply::new(&url)).await;
                return answer.map_err(refusal::replace_hint);
            }
            let limit = refusal::read_rate_limit(|name| response.header(name));
            let refused = exchange::read_refusal(cx, &url, response).await;
            let exchange::ErrorResponse { status, body, had_key, error, .. } = refused;
            let said = RefusedAnswer { status, body: &body, had_key, error };
            let error = refusal::add_hints(said, limit, &config);
            let wish = chat::requested_change(status, &body);
            habits = wish.and_then(|wish| habits.adapt_to_refusal(wish, &asked.0)).ok_or(error)?;
        }
    }
}

/// Returns the quirks of a model, whose name is `publisher/name`.
fn model_quirks(model: &str) -> &'static ChatServerQuirks {
    if REASONING.iter().any(|beginning| is_in_model_family(model, beginning)) {
        &OPENAI
    } else if model.starts_with("mistral-ai/") {
        &MISTRAL
    } else {
        &ChatServerQuirks::COMMON
    }
}

jaato_plugin_sdk::export_plugin! { state: GitHubModelsState, provider: GitHubModelsProvider, scope: host }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_quirks_depend_on_the_publisher() {
        for (model, expected) in [
            ("openai/o4-mini", &OPENAI),
            ("openai/gpt-5-mini", &OPENAI),
            ("openai/gpt-4.1", &ChatServerQuirks::COMMON),
            ("mistral-ai/mistral-medium-2505", &MISTRAL),
            ("deepseek/deepseek-v3-0324", &ChatServerQuirks::COMMON),
        ] {
            assert_eq!(model_quirks(model), expected, "{model}");
        }
    }
}
