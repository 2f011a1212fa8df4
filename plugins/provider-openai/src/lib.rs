//! Plugin `provider-openai`: any server that speaks OpenAI's protocols.
//!
//! Chat completions are `jaato-plugin-sdk-provider`'s; `responses` maps OpenAI's newer protocol.
//! Pure too: `models` reads the list of models, `sight` what they look at, `window` what servers
//! tell of a context window, `questions` who is asked for it, `endpoint` joins URLs and tells the
//! protocol, `dialect` is the table of what servers want differently, `presets` that of servers
//! that are known by a name.
//! `plugin` stands between them and the host, which owns the connection and the key; `config` has
//! its settings, `state` what it remembers, `exchange` sends and reads refusals.
#![forbid(unsafe_code)]

pub mod config;
pub mod dialect;
pub mod endpoint;
mod exchange;
pub mod models;
pub mod plugin;
pub mod presets;
mod questions;
pub mod responses;
mod sight;
pub mod state;
pub mod window;

use plugin::OpenAiProvider;
use state::OpenAi;

jaato_plugin_sdk::export_plugin! { state: OpenAi, provider: OpenAiProvider, scope: host }
