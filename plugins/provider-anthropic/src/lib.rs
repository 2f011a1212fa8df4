//! Plugin `provider-anthropic`: Claude models over Anthropic's Messages API.
//!
//! Pure: `request` writes a request down (`settings` what is set, `thinking` how much a model
//! thinks, `schema` what its answer must look like, `tools` the tools and how they change,
//! `history` the messages, `content` their blocks, `ids` the ids of calls, `cache` what the server
//! is to remember), `reply` reads what is streamed or comes at once (`usage` what it cost, `reason`
//! why it ended), `refusal` says what to do about an error, `models` reads the list of models,
//! `facts` knows what requests to a model may say, `endpoint` joins URLs.
//! `plugin` stands between them and the host, which owns the connection and the key; `state` has
//! its settings, `exchange` sends with the key that the person has.
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
use state::Anthropic;

jaato_plugin_sdk::export_plugin! { state: Anthropic, provider: AnthropicProvider, scope: host }
