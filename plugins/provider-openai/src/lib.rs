//! Plugin `provider-openai`: any server with one of OpenAI's protocols.
//!
//! The mapping of chat completions comes from `jaato-plugin-sdk-provider`, and `responses` maps
//! OpenAI's newer protocol. These modules are also pure. `models` reads the list of models, `sight`
//! knows which media they accept, `window` reads context windows, and `questions` lists where to
//! query them. `endpoint` joins URLs and chooses the protocol, `dialect` is the table of servers'
//! quirks, and `presets` is the table of named servers.
//!
//! `plugin` connects them to the host, which owns the connection and the key. `config` contains the
//! settings, `state` what the plugin remembers, and `exchange` reads refusals.
#![forbid(unsafe_code)]

mod accepted_media;
pub mod config;
pub mod dialect;
pub mod endpoint;
mod exchange;
pub mod models;
pub mod plugin;
pub mod presets;
mod questions;
pub mod responses;
pub mod state;
pub mod window;

use plugin::OpenAiProvider;
use state::OpenAiState;

jaato_plugin_sdk::export_plugin! { state: OpenAiState, provider: OpenAiProvider, scope: host }
