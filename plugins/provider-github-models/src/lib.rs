//! Plugin `provider-github-models`: chat completions as GitHub Models had them.
//!
//! GitHub retired the service on 2026-07-30: any request to it is told so in one line. What is left
//! is for a server that stands in its place, which `JAATO_GITHUB_ENDPOINT` names.
//!
//! The mapping is `jaato-plugin-sdk-provider`'s. Pure: `endpoint` finds the URL, with the
//! organization to which requests are attributed; `models` tells what the models of each publisher
//! want differently; `refusal` says what to do about an error. `plugin` stands between them and the
//! host, which owns the connection and the token; `config` has its settings.
#![forbid(unsafe_code)]

pub mod config;
mod endpoint;
mod models;
pub mod plugin;
mod refusal;

use config::GitHub;
use plugin::GitHubModelsProvider;

jaato_plugin_sdk::export_plugin! { state: GitHub, provider: GitHubModelsProvider, scope: host }
