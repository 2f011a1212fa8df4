//! Plugin `provider-anthropic`: Claude models over Anthropic's Messages API.
//!
//! These modules are pure. `request` writes a request, with `settings` for the options, `thinking`
//! for the amount of thinking, `schema` for the schema of the answer, `tools` for the tools and
//! their changes, `history` for the messages, `content` for their blocks, `ids` for call ids, and
//! `cache` for the cache marks. `reply` reads a streamed or a complete answer, with `usage` for the
//! tokens and `reason` for the finish reason. `refusal` adds hints to errors, `models` reads the
//! list of models, `facts` describes the allowed content of a request, and `endpoint` joins URLs.
//!
//! `plugin` connects them to the host, which owns the connection and the key. `state` contains the
//! settings, and `exchange` sends requests with the user's credential.
#![forbid(unsafe_code)]

mod cache;
pub mod content;
mod count;
pub mod endpoint;
mod exchange;
mod facts;
mod history;
mod ids;
pub mod models;
pub mod plugin;
mod reason;
mod refusal;
pub mod reply;
pub mod request;
mod schema;
pub mod settings;
pub mod state;
mod thinking;
mod tools;
mod usage;

use plugin::AnthropicProvider;
use state::AnthropicState;

jaato_plugin_sdk::export_plugin! { state: AnthropicState, provider: AnthropicProvider, scope: host }
