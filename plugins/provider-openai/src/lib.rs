//! Plugin `provider-openai`: any server that speaks OpenAI's chat completions.
//!
//! Pure: `request` writes a request down, `reply` reads what is streamed, `models` reads the list of
//! models, `endpoint` joins URLs. `plugin` stands between them and the host, which owns the connection
//! and the key.
#![forbid(unsafe_code)]

pub mod endpoint;
pub mod models;
pub mod plugin;
pub mod reply;
pub mod request;

use plugin::{OpenAi, OpenAiProvider};

jaato_plugin_sdk::export_plugin! { state: OpenAi, provider: OpenAiProvider, scope: host }
